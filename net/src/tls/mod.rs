//! Certificates and keys, read from files and checked once before the first connection.

mod certificate;
pub mod explain;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use time::OffsetDateTime;

use crate::reasons::Reason;

/// Maximum size of a PEM file, in bytes. A wrong path must not fill the memory.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Protocol names within TLS.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Unusable certificates or keys.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or used.
    #[error("{0}")]
    File(String),
    /// One of a pair of files is missing.
    #[error("expected a certificate with its private key, found {given} without {missing}; give both")]
    Half {
        /// The file given.
        given: &'static str,
        /// The file missing.
        missing: &'static str,
    },
    /// The server has no certificate but must ask clients for theirs.
    #[error("expected a server certificate with the CA for client certificates, found none; give both")]
    CaAlone,
    /// The key belongs to another certificate.
    #[error(
        "the private key in {} does not belong to the certificate in {}; give the key that the certificate was made for \
         (the certificate of the server itself comes first in its file, then those between it and its CA)", key.display(), cert.display()
    )]
    Pair {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
}

impl TlsError {
    /// A file has unexpected contents.
    fn content(path: &Path, expected: &str, found: impl Display) -> Self {
        Self::File(format!("expected PEM text with a {expected} in {}, found {found}", path.display()))
    }

    /// The TLS library refuses a certificate, a key or a CA for another reason.
    fn unusable(path: &Path, what: impl Display) -> Self {
        Self::File(format!("cannot use the certificate in {}: {what}", path.display()))
    }
}

/// Files of a certificate chain, its private key and a CA, as the options of servers and clients name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file with this side's certificate, followed by the certificates between it and the CA.
    pub cert: Option<PathBuf>,
    /// PEM file with this side's private key.
    pub key: Option<PathBuf>,
    /// PEM file with the CA that must have signed the other side's certificate.
    pub ca: Option<PathBuf>,
}

/// TLS settings of a server.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// Configuration for connections.
    pub config: Arc<ServerConfig>,
    /// Whether clients must show a certificate.
    pub mutual: bool,
    /// Warnings for the log about certificate properties that clients may refuse.
    pub warnings: Vec<String>,
}

impl ServerTls {
    /// Returns these settings, extended to clients without HTTP/2.
    pub(crate) fn for_http(&self) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols.push(HTTP1.to_vec());
        Self { config: Arc::new(config), ..self.clone() }
    }
}

/// A certificate chain and its matching key.
struct Identity {
    path: PathBuf,
    key_path: PathBuf,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    warnings: Vec<String>,
}

impl TlsFiles {
    /// Explains a TLS error of a client with these files.
    #[must_use]
    pub(crate) fn explain(&self, error: &rustls::Error) -> Reason {
        explain::to_client(error, self.cert.as_deref(), self.ca.as_deref())
    }

    /// Returns the server's settings; `None` without a certificate. With a CA, clients must show a certificate
    /// that this CA signed.
    ///
    /// # Errors
    ///
    /// Fails if a file is unreadable or has other contents, if the key belongs to another certificate, or if
    /// options contradict each other.
    pub fn server(&self) -> Result<Option<ServerTls>, TlsError> {
        let Some(identity) = self.identity()? else {
            return if self.ca.is_some() { Err(TlsError::CaAlone) } else { Ok(None) };
        };
        let builder = ServerConfig::builder();
        let builder = match &self.ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let verifier = WebPkiClientVerifier::builder(Arc::new(read_ca(path)?)).build();
                let verifier = verifier.map_err(|error| TlsError::unusable(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let Identity { path, key_path, chain, key, warnings } = identity;
        let mut config =
            builder.with_single_cert(chain, key).map_err(|error| of_identity(path, key_path, &error))?;
        config.alpn_protocols.push(HTTP2.to_vec());
        Ok(Some(ServerTls { config: Arc::new(config), mutual: self.ca.is_some(), warnings }))
    }

    /// Returns the client's settings. The given CA must have signed the server's certificate. Without a given CA,
    /// a CA that the system trusts must have signed it. The client shows its certificate, if it has one.
    ///
    /// # Errors
    ///
    /// Those of [`server`](Self::server).
    pub fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let roots = match &self.ca {
            Some(path) => read_ca(path)?,
            None => {
                let mut roots = RootCertStore::empty();
                // A system without CAs trusts no server, and the connection error says so.
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                roots
            }
        };
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let mut config = match self.identity()? {
            None => builder.with_no_client_auth(),
            Some(Identity { path, key_path, chain, key, .. }) => builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| of_identity(path, key_path, &error))?,
        };
        config.alpn_protocols.push(HTTP2.to_vec());
        Ok(Arc::new(config))
    }

    fn identity(&self) -> Result<Option<Identity>, TlsError> {
        let (cert, key) = match (&self.cert, &self.key) {
            (None, None) => return Ok(None),
            (Some(_), None) => {
                return Err(TlsError::Half { given: "a certificate", missing: "a private key" });
            }
            (None, Some(_)) => {
                return Err(TlsError::Half { given: "a private key", missing: "a certificate" });
            }
            (Some(cert), Some(key)) => (cert, key),
        };
        let chain = certificates(cert)?;
        let warnings = certificate::warnings(&chain[0], cert, OffsetDateTime::now_utc())?;
        let text = read(key)?;
        let private = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
            _ if is_encrypted(&text) => {
                let path = key.display();
                TlsError::File(format!(
                    "the private key in {path} is encrypted; expected one without a passphrase; make one with: openssl \
                     pkey -in {path} -out NEW_FILE"
                ))
            }
            pem::Error::NoItemsFound => TlsError::content(key, "private key", "none"),
            error => TlsError::content(key, "private key", error),
        })?;
        Ok(Some(Identity { path: cert.clone(), key_path: key.clone(), chain, key: private, warnings }))
    }
}

/// Returns whether the key in a PEM file is encrypted, in PKCS #8 or in OpenSSL's older format.
fn is_encrypted(pem: &[u8]) -> bool {
    let marks = ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"];
    String::from_utf8_lossy(pem).lines().any(|line| marks.contains(&line.trim()))
}

/// Converts the library's error about a certificate and its key.
fn of_identity(cert: PathBuf, key: PathBuf, error: &rustls::Error) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Pair { cert, key },
        error => TlsError::unusable(&cert, explain::plain(error)),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error| TlsError::File(format!("cannot read {}: {error}", path.display()));
    exact2048_files::read_at_most(path, MAX_PEM_BYTES).map_err(failed)
}

/// Reads a CA file. A file without a usable certificate is an error, because no client could reach the server.
fn read_ca(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| TlsError::content(path, "CA certificate", explain::plain(&error)))?;
    }
    Ok(roots)
}

/// Reads the certificates of a file. Fails if the file has no certificate.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    let certificates = certificates.map_err(|error| TlsError::content(path, "certificate", error))?;
    if certificates.is_empty() {
        return Err(TlsError::content(path, "certificate", "none"));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_unusable_keys() {
        let place = tempfile::tempdir().unwrap();
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| place.path().join(name));
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, pair.cert.pem()).unwrap();
        let files = TlsFiles { cert: Some(cert), key: Some(key.clone()), ca: None };
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGb\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMIGb\n\
                   -----END RSA PRIVATE KEY-----\n";
        for text in [encrypted, old, &encrypted.replace('\n', "\r\n")] {
            std::fs::write(&key, text).unwrap();
            let error = files.server().unwrap_err().to_string();
            assert!(error.contains("is encrypted") && error.contains("openssl pkey -in"), "{error}");
        }
        std::fs::write(&key, "nothing").unwrap();
        let error = files.server().unwrap_err().to_string();
        assert!(
            error.starts_with("expected PEM text with a private key in ") && error.ends_with("found none"),
            "{error}"
        );
    }
}
