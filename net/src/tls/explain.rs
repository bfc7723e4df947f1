//! What went wrong between two that speak TLS, and what mends it.

use rustls::{AlertDescription as Alert, CertificateError as Bad, Error, InvalidMessage};
use time::OffsetDateTime;

use super::TlsFiles;
use crate::client::{Lack, Reason};
use crate::text::chain;

/// A point in time as people read it.
#[must_use]
pub fn date(time: OffsetDateTime) -> String {
    format!("{} {:02}:{:02} UTC", time.date(), time.hour(), time.minute())
}

fn date_of(time: rustls::pki_types::UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_or_else(|_| "a distant day".to_owned(), date)
}

/// What is wrong with a connection, for the client, which has these files.
#[must_use]
pub fn to_client(error: &Error, files: &TlsFiles) -> Reason {
    let shown = files.cert.as_ref().map(|path| path.display());
    let lacks = |lack, text: String| Reason { text, lacks: Some(lack) };
    match error {
        Error::InvalidCertificate(bad) => of_server(bad, files),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it does not speak TLS: write http:// instead of https://, or give the server a certificate"
                .into()
        }
        Error::NoApplicationProtocol | Error::AlertReceived(Alert::NoApplicationProtocol) => {
            "something else answers there: it does not speak HTTP/2 within TLS".into()
        }
        Error::AlertReceived(alert) => match (alert, shown) {
            (Alert::CertificateRequired, _) | (Alert::HandshakeFailure | Alert::BadCertificate, None) => {
                lacks(
                    Lack::Certificate,
                    "it asks clients for a certificate: give yours, and its key".to_owned(),
                )
            }
            (Alert::UnknownCA | Alert::DecryptError, Some(cert)) => lacks(
                Lack::Certificate,
                format!(
                    "it does not trust the certificate in {cert}: give one that comes from the CA that the server was \
                     given for its clients"
                ),
            ),
            (Alert::CertificateExpired, Some(cert)) => lacks(
                Lack::Certificate,
                format!("it refuses the certificate in {cert}, which has expired: give a new one"),
            ),
            (
                Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateUnknown
                | Alert::AccessDenied,
                Some(cert),
            ) => lacks(
                Lack::Certificate,
                format!(
                    "it refuses the certificate in {cert} ({}): give one for clients (extendedKeyUsage clientAuth) from \
                     the CA that the server was given for its clients; the server's log says more",
                    words(*alert)
                ),
            ),
            (alert, _) => format!("it ended the TLS connection: {}; its log says more", words(*alert)).into(),
        },
        error => plain(error).into(),
    }
}

/// What is wrong with a server's certificate.
fn of_server(bad: &Bad, files: &TlsFiles) -> Reason {
    // The signature is wrong where another CA has the same name.
    if !matches!(bad, Bad::UnknownIssuer | Bad::BadSignature) {
        return format!("its certificate cannot be trusted: {}", of_certificate(bad)).into();
    }
    let text = match &files.ca {
        Some(ca) => format!(
            "its certificate does not come from the CA in {}: give the certificate of the CA that the server's comes from",
            ca.display()
        ),
        None => {
            "its certificate comes from a CA that this system does not trust: give the certificate of that CA"
                .to_owned()
        }
    };
    Reason { text, lacks: Some(Lack::Ca) }
}

/// What is wrong with a certificate, of a server or of a client.
fn of_certificate(bad: &Bad) -> String {
    match bad {
        Bad::ExpiredContext { not_after, .. } => format!("it expired on {}", date_of(*not_after)),
        Bad::NotValidYetContext { not_before, .. } => {
            format!("it is not valid before {}; is the clock of this machine right?", date_of(*not_before))
        }
        Bad::Expired => "it has expired".to_owned(),
        Bad::NotValidYet => "it is not valid yet".to_owned(),
        Bad::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let names = if names.is_empty() { "no host".to_owned() } else { names.join(", ") };
            format!(
                "it is for {names}, not for {}: connect by a name that it has, or make one with this name \
                 (subjectAltName)",
                expected.to_str()
            )
        }
        Bad::NotValidForName => "it is for another host".to_owned(),
        Bad::UnknownIssuer | Bad::BadSignature => "it does not come from the CA that is trusted here".to_owned(),
        Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. } => {
            "it is for another purpose (extendedKeyUsage: serverAuth for servers, clientAuth for clients)".to_owned()
        }
        Bad::BadEncoding => "it does not parse".to_owned(),
        Bad::Other(other) => match other.0.downcast_ref::<webpki::Error>() {
            Some(webpki::Error::CaUsedAsEndEntity) => "it is the certificate of a CA itself, as openssl req -x509 makes \
                                                       it; docs/tls.md has commands that make a CA and, signed by \
                                                       it, a certificate"
                .to_owned(),
            Some(webpki::Error::UnsupportedCertVersion) => {
                "it is of X.509 version 1, and has to be of version 3; docs/tls.md has commands that make one".to_owned()
            }
            Some(error) => error.to_string(),
            None => other.to_string(),
        },
        bad => bad.to_string(),
    }
}

/// A name without its kind: `DnsName("head")` is `head`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"')
}

/// What is wrong with a client, for the log of the server.
#[must_use]
pub fn to_server(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => {
            "the client showed no certificate, which this server asks clients for".to_owned()
        }
        Error::InvalidCertificate(bad) => format!("the client's certificate is refused: {}", of_certificate(bad)),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the client does not speak TLS: was http:// given instead of https://?".to_owned()
        }
        Error::NoApplicationProtocol => "the client does not speak HTTP/2 within TLS".to_owned(),
        Error::AlertReceived(Alert::UnknownCA | Alert::DecryptError) => {
            "the client does not trust the CA that this server's certificate comes from: it was given no CA, or another"
                .to_owned()
        }
        Error::AlertReceived(Alert::CertificateExpired) => {
            "the client finds this server's certificate expired".to_owned()
        }
        Error::AlertReceived(Alert::BadCertificate | Alert::CertificateUnknown | Alert::UnsupportedCertificate) => {
            "the client refuses this server's certificate: wrong name, or of a kind that it does not take".to_owned()
        }
        Error::AlertReceived(alert) => format!("the client ended it: {}", words(*alert)),
        error => plain(error),
    }
}

/// What an error of TLS says by itself.
#[must_use]
pub fn plain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(bad) => of_certificate(bad),
        Error::AlertReceived(alert) => words(*alert),
        error => error.to_string(),
    }
}

/// The name of an alert as words: `UnknownCA` is no sentence.
fn words(alert: Alert) -> String {
    let name = format!("{alert:?}");
    let mut words = String::new();
    let mut after_small = false;
    for letter in name.chars() {
        if letter.is_uppercase() && after_small {
            words.push(' ');
        }
        after_small = letter.is_lowercase();
        words.extend(letter.to_lowercase());
    }
    words
}

/// The error of TLS that an error comes from, if it comes from one.
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

    use super::*;

    #[test]
    fn clients_are_told_what_mends_it() {
        let with_ca = TlsFiles { ca: Some("ca.pem".into()), ..TlsFiles::default() };
        let with_cert = TlsFiles { cert: Some("me.pem".into()), ..with_ca.clone() };
        let none = TlsFiles::default();
        let other = |error: webpki::Error| Bad::Other(OtherError(Arc::new(error)));
        let (ca, certificate) = (Some(Lack::Ca), Some(Lack::Certificate));
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
                &["me.pem", "bad certificate", "clientAuth"],
            ),
            (Error::AlertReceived(Alert::InternalError), &none, None, &["internal error", "log"]),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), &none, None, &["http://"]),
        ] {
            let told = to_client(&error, files);
            assert_eq!(told.lacks, lacks, "{error:?}");
            let told = told.text;
            assert!(words.iter().all(|word| told.contains(word)), "{error:?}: {told}");
            let raw = ["Other(", "OtherError", "UnknownIssuer", "AlertReceived"];
            assert!(!raw.iter().any(|raw| told.contains(raw)), "{told}");
        }
    }

    #[test]
    fn names_become_words() {
        assert_eq!(bare("DnsName(\"head.example.org\")"), "head.example.org");
        assert_eq!(bare("IpAddress(192.0.2.1)"), "192.0.2.1");
        assert_eq!(bare("head"), "head");
        assert_eq!(words(Alert::UnknownCA), "unknown ca");
        assert_eq!(words(Alert::CertificateRequired), "certificate required");
    }

    #[test]
    fn errors_of_tls_are_found_in_others() {
        let of_tls = || std::io::Error::new(std::io::ErrorKind::InvalidData, Error::NoCertificatesPresented);
        assert_eq!(tls_error(&of_tls()), Some(&Error::NoCertificatesPresented));
        assert_eq!(
            tls_error(&tonic::ConnectError(Box::new(of_tls()))),
            Some(&Error::NoCertificatesPresented)
        );
        assert_eq!(tls_error(&std::io::Error::other("x")), None);
    }
}
