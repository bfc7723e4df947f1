//! Certificates and tokens, as operators of servers make them.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use super::Place;

/// A CA, with the files of the CA and of the certificates that it signs.
pub struct Ca {
    place: Place,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Ca {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let place = Place::new();
        std::fs::write(place.join("ca.pem"), issuer.pem()).unwrap();
        Self { place, issuer }
    }

    /// Options that name the CA.
    pub fn trust(&self) -> Vec<String> {
        vec!["--tls-ca".to_owned(), path(&self.place.join("ca.pem"))]
    }

    /// Options that name a certificate for `host` and its key.
    pub fn identity(&self, host: &str) -> Vec<String> {
        self.identity_with(host, |_| {})
    }

    /// Options as [`Self::identity`], for a changed certificate.
    pub fn identity_with(&self, host: &str, change: impl FnOnce(&mut CertificateParams)) -> Vec<String> {
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (cert, key_file) =
            (self.place.join(&format!("{host}.pem")), self.place.join(&format!("{host}.key")));
        std::fs::write(&cert, certificate.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        vec!["--tls-cert".to_owned(), path(&cert), "--tls-key".to_owned(), path(&key_file)]
    }
}

/// Options that name a file with a token.
pub fn token_file(place: &Place, token: &str) -> Vec<String> {
    let file = place.join(&format!("token-{}", token.len()));
    std::fs::write(&file, format!("{token}\n")).unwrap();
    vec!["--token-file".to_owned(), path(&file)]
}

fn path(of: &Path) -> String {
    of.to_str().unwrap().to_owned()
}
