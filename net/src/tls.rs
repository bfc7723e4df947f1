//! Certificates and keys, read from files and checked once.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// Longest PEM file that is read, in bytes: a path given by mistake must not fill the memory.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Time for a handshake: a client that connects and stays silent is let go.
const HANDSHAKE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{} holds no {expected}: expected PEM text with one; found {found}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What is wrong.
        found: String,
    },
    /// One of a pair of options is missing.
    #[error("{given} was given without {missing}: a certificate and its private key go together")]
    Half {
        /// The option given.
        given: &'static str,
        /// The option missing.
        missing: &'static str,
    },
    /// Clients are to be asked for certificates by a server that has none.
    #[error("a CA for client certificates was given, but no certificate for the server itself: give both")]
    CaAlone,
}

/// A certificate chain, its private key and a CA: what the options of servers and clients name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM file with our certificate, and those between it and the CA.
    pub cert: Option<PathBuf>,
    /// PEM file with our private key.
    pub key: Option<PathBuf>,
    /// PEM file with the CA that the other side's certificate must come from.
    pub ca: Option<PathBuf>,
}

/// TLS as a server speaks it.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// For tonic.
    pub config: ServerTlsConfig,
    /// Whether clients must show a certificate.
    pub mutual: bool,
}

impl TlsFiles {
    /// The server's side: `None` without a certificate. With a CA, clients must show a certificate from it.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or holds something else, or options that do not go together.
    pub fn server(&self) -> Result<Option<ServerTls>, TlsError> {
        let Some(identity) = self.identity()? else {
            return if self.ca.is_some() { Err(TlsError::CaAlone) } else { Ok(None) };
        };
        let mut config = ServerTlsConfig::new().identity(identity).timeout(HANDSHAKE_TIMEOUT);
        if let Some(path) = &self.ca {
            config = config.client_ca_root(read_ca(path)?);
        }
        Ok(Some(ServerTls { config, mutual: self.ca.is_some() }))
    }

    /// The client's side: the server's certificate must come from the CA, or from one that the system trusts where
    /// none is given. Shows our certificate where one is given.
    ///
    /// # Errors
    ///
    /// As for [`server`](Self::server).
    pub fn client(&self) -> Result<ClientTlsConfig, TlsError> {
        let mut config = ClientTlsConfig::new();
        config = match &self.ca {
            Some(path) => config.ca_certificate(read_ca(path)?),
            None => config.with_native_roots(),
        };
        if let Some(identity) = self.identity()? {
            config = config.identity(identity);
        }
        Ok(config)
    }

    /// Whether any file is named.
    #[must_use]
    pub fn any(&self) -> bool {
        self.cert.is_some() || self.key.is_some() || self.ca.is_some()
    }

    fn identity(&self) -> Result<Option<Identity>, TlsError> {
        let (cert, key) = match (&self.cert, &self.key) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(TlsError::Half { given: "--tls-cert", missing: "--tls-key" }),
            (None, Some(_)) => return Err(TlsError::Half { given: "--tls-key", missing: "--tls-cert" }),
            (Some(cert), Some(key)) => (cert, key),
        };
        let (cert_pem, key_pem) = (read(cert)?, read(key)?);
        certificates(cert, &cert_pem)?;
        PrivateKeyDer::from_pem_slice(&key_pem).map_err(|error| TlsError::Content {
            path: key.clone(),
            expected: "private key",
            found: error.to_string(),
        })?;
        Ok(Some(Identity::from_pem(cert_pem, key_pem)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    use std::io::Read;

    let failed = |source| TlsError::Read { path: path.to_path_buf(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_PEM_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// A CA file. A file without a usable certificate would make a server that no client can reach.
fn read_ca(path: &Path) -> Result<Certificate, TlsError> {
    let pem = read(path)?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, &pem)? {
        roots.add(certificate).map_err(|error| TlsError::Content {
            path: path.to_path_buf(),
            expected: "CA certificate",
            found: error.to_string(),
        })?;
    }
    Ok(Certificate::from_pem(pem))
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let content = |found| TlsError::Content { path: path.to_path_buf(), expected: "certificate", found };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| content(error.to_string()))?;
    if certificates.is_empty() { Err(content("none".to_owned())) } else { Ok(certificates) }
}
