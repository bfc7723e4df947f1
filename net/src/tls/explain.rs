//! Explanations of TLS errors, with remedies.

use std::path::Path;

use rustls::{AlertDescription as Alert, CertificateError as Bad, Error, InvalidMessage};
use time::OffsetDateTime;

use crate::reasons::{MissingTls, Reason};
use crate::text::chain;

/// Formats a point in time for people.
#[must_use]
pub fn date(time: OffsetDateTime) -> String {
    format!("{} {:02}:{:02} UTC", time.date(), time.hour(), time.minute())
}

fn date_of(time: rustls::pki_types::UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_or_else(|_| "a distant day".to_owned(), date)
}

/// Explains a TLS error to a client that has this certificate and was given this CA.
#[must_use]
pub(super) fn to_client(error: &Error, cert: Option<&Path>, ca: Option<&Path>) -> Reason {
    let shown = cert.map(Path::display);
    let lacks = |lack, text: String| Reason { text, lacks: Some(lack) };
    match error {
        Error::InvalidCertificate(bad) => of_server(bad, ca),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS; write http:// instead of https://, or give the server a certificate"
                .into()
        }
        Error::NoApplicationProtocol | Error::AlertReceived(Alert::NoApplicationProtocol) => {
            "expected a gRPC server, found one without HTTP/2 over TLS; check the port".into()
        }
        Error::AlertReceived(alert) => match (alert, shown) {
            (Alert::CertificateRequired, _) | (Alert::HandshakeFailure | Alert::BadCertificate, None) => {
                lacks(
                    MissingTls::Certificate,
                    "the server asks clients for a certificate; give yours and its key".to_owned(),
                )
            }
            (Alert::UnknownCA | Alert::DecryptError, Some(cert)) => lacks(
                MissingTls::Certificate,
                format!(
                    "the server does not trust the certificate in {cert}; give one signed by the CA that the server was \
                     given for its clients"
                ),
            ),
            (
                Alert::BadCertificate
                | Alert::CertificateExpired
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateUnknown
                | Alert::AccessDenied,
                Some(cert),
            ) => lacks(
                MissingTls::Certificate,
                format!(
                    "the server refuses the certificate in {cert} ({alert:?}); give one for clients (extendedKeyUsage \
                     clientAuth) signed by the CA that the server was given for its clients, or see the server's log"
                ),
            ),
            (alert, _) => format!("the server ended the TLS connection: {alert:?}; see the server's log").into(),
        },
        error => plain(error).into(),
    }
}

/// Explains why a client refuses a server's certificate.
fn of_server(bad: &Bad, ca: Option<&Path>) -> Reason {
    // A bad signature also means the wrong CA: a CA with the same name signed another certificate.
    if !matches!(bad, Bad::UnknownIssuer | Bad::BadSignature) {
        return format!("the server's certificate cannot be trusted: {}", of_certificate(bad)).into();
    }
    let text = match ca {
        Some(ca) => format!(
            "the server's certificate is not signed by the CA in {}; give the certificate of the CA that signed it",
            ca.display()
        ),
        None => {
            "the server's certificate is signed by a CA that this system does not trust; give the certificate of that CA"
                .to_owned()
        }
    };
    Reason { text, lacks: Some(MissingTls::Ca) }
}

/// Explains the refusal of a server's or a client's certificate.
fn of_certificate(bad: &Bad) -> String {
    match bad {
        Bad::ExpiredContext { not_after, .. } => format!("it expired on {}", date_of(*not_after)),
        Bad::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}; check the clock of this machine", date_of(*not_before))
        }
        Bad::Expired => "it has expired".to_owned(),
        Bad::NotValidYet => "it is not valid yet".to_owned(),
        Bad::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() { "no host".to_owned() } else { names.join(", ") };
            format!(
                "it is for {names}, not for {}; connect by one of its names, or make a certificate with this name \
                 (subjectAltName)",
                expected.to_str()
            )
        }
        Bad::NotValidForName => "it is for another host".to_owned(),
        Bad::UnknownIssuer | Bad::BadSignature => "it is not signed by the trusted CA".to_owned(),
        Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. } => {
            "it is for another purpose (extendedKeyUsage: serverAuth for servers, clientAuth for clients)"
                .to_owned()
        }
        Bad::BadEncoding => "it cannot be parsed".to_owned(),
        Bad::Other(other) => match other.0.downcast_ref::<webpki::Error>() {
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "it is the certificate of a CA itself, as openssl req -x509 makes it; make a CA and a certificate \
                 signed by it with the commands in docs/tls.md"
                    .to_owned()
            }
            Some(webpki::Error::UnsupportedCertVersion) => {
                "expected X.509 version 3, found version 1; make one with the commands in docs/tls.md"
                    .to_owned()
            }
            Some(error) => error.to_string(),
            None => other.to_string(),
        },
        bad => bad.to_string(),
    }
}

/// Strips the type from a name: `DnsName("head")` becomes `head`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// Explains a client's TLS failure in the server's log.
#[must_use]
pub fn to_server(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => "expected a client certificate, found none".to_owned(),
        Error::InvalidCertificate(bad) => {
            format!("the client's certificate is refused: {}", of_certificate(bad))
        }
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the client does not speak TLS; use https:// instead of http://".to_owned()
        }
        Error::NoApplicationProtocol => "the client does not speak HTTP/2 over TLS".to_owned(),
        Error::AlertReceived(Alert::UnknownCA | Alert::DecryptError) => {
            "the client does not trust the CA of this server's certificate; give the client that CA"
                .to_owned()
        }
        Error::AlertReceived(
            alert @ (Alert::BadCertificate
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnsupportedCertificate),
        ) => format!("the client refuses this server's certificate ({alert:?})"),
        Error::AlertReceived(alert) => format!("the client ended the handshake: {alert:?}"),
        error => plain(error),
    }
}

/// Describes a TLS error without a remedy.
#[must_use]
pub fn plain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(bad) => of_certificate(bad),
        error => error.to_string(),
    }
}

/// Returns the TLS error among an error's causes, if there is one.
#[must_use]
pub fn tls_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    chain(error).find_map(|error| {
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        error.downcast_ref().or_else(|| wrapped.and_then(|error| error.downcast_ref()))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::super::TlsFiles;
    use super::*;

    #[test]
    fn explanations_to_clients_have_remedies() {
        let with_ca = TlsFiles { ca: Some("ca.pem".into()), ..TlsFiles::default() };
        let with_cert = TlsFiles { cert: Some("me.pem".into()), ..with_ca.clone() };
        let none = TlsFiles::default();
        let other = |error: webpki::Error| Bad::Other(OtherError(Arc::new(error)));
        let (ca, certificate) = (Some(MissingTls::Ca), Some(MissingTls::Certificate));
        for (error, files, lacks, words) in [
            (Error::InvalidCertificate(Bad::UnknownIssuer), &none, ca, &["does not trust"][..]),
            (Error::InvalidCertificate(Bad::UnknownIssuer), &with_ca, ca, &["ca.pem"]),
            (
                Error::InvalidCertificate(other(webpki::Error::CaUsedAsEndEntity)),
                &none,
                None,
                &["CA itself", "docs/tls.md"],
            ),
            (
                Error::InvalidCertificate(other(webpki::Error::UnsupportedCertVersion)),
                &none,
                None,
                &["version 1"],
            ),
            (Error::AlertReceived(Alert::CertificateRequired), &with_ca, certificate, &["its key"]),
            (Error::AlertReceived(Alert::UnknownCA), &with_cert, certificate, &["me.pem"]),
            (
                Error::AlertReceived(Alert::BadCertificate),
                &with_cert,
                certificate,
                &["me.pem", "BadCertificate", "clientAuth"],
            ),
            (Error::AlertReceived(Alert::InternalError), &none, None, &["InternalError", "log"]),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), &none, None, &["http://"]),
        ] {
            let reason = files.explain(&error);
            assert_eq!(reason.lacks, lacks, "{error:?}");
            let text = reason.text;
            assert!(words.iter().all(|word| text.contains(word)), "{error:?}: {text}");
            let raw = ["Other(", "OtherError", "UnknownIssuer", "AlertReceived"];
            assert!(!raw.iter().any(|raw| text.contains(raw)), "{text}");
        }
    }

    #[test]
    fn names_become_words() {
        assert_eq!(bare("DnsName(\"head.example.org\")"), "head.example.org");
        assert_eq!(bare("IpAddress(192.0.2.1)"), "192.0.2.1");
        assert_eq!(bare("head"), "head");
    }

    #[test]
    fn tls_errors_are_found_among_causes() {
        let of_tls = || std::io::Error::new(std::io::ErrorKind::InvalidData, Error::NoCertificatesPresented);
        assert_eq!(tls_error(&of_tls()), Some(&Error::NoCertificatesPresented));
        assert_eq!(
            tls_error(&tonic::ConnectError(Box::new(of_tls()))),
            Some(&Error::NoCertificatesPresented)
        );
        assert_eq!(tls_error(&std::io::Error::other("x")), None);
    }
}
