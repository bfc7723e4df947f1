//! Checks of a certificate, and warnings about properties that clients refuse.

use std::path::Path;

use time::{Duration, OffsetDateTime};
use x509_parser::error::X509Error;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::TlsError;
use super::explain::date;

/// Time before expiry at which a certificate starts to cause a warning.
const SOON: Duration = Duration::days(14);

/// Parses the certificate of a file, in DER. Returns warnings about properties that clients may refuse in a server's
/// certificate.
///
/// # Errors
///
/// The bytes are no certificate, or a certificate of version 1. Such a certificate has no extensions, so it has no host
/// names and no purpose.
pub(super) fn warnings(der: &[u8], path: &Path, now: OffsetDateTime) -> Result<Vec<String>, TlsError> {
    let content = |error: X509Error| TlsError::content(path, "certificate", error);
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| content(error.into()))?;
    if certificate.version() != X509Version::V3 {
        return Err(TlsError::File(format!(
            "the certificate in {} has X.509 version 1, as openssl x509 -req makes it without -extfile; expected \
             version 3, with the names of the host (subjectAltName); make one with the commands in docs/tls.md",
            path.display()
        )));
    }
    let constraints = certificate.basic_constraints().map_err(content)?;
    let names = certificate.subject_alternative_name().map_err(content)?;
    let usage = certificate.extended_key_usage().map_err(content)?;
    let validity = certificate.validity();
    let (begin, end) = (validity.not_before.to_datetime(), validity.not_after.to_datetime());
    let warnings = [
        (now > end, format!("expired on {}, so clients refuse it; replace it", date(end))),
        (
            now <= end && now + SOON > end,
            format!(
                "expires on {}, in {} days; replace it and restart the server",
                date(end),
                (end - now).whole_days()
            ),
        ),
        (
            now < begin,
            format!(
                "is not valid before {}, so clients refuse it unless the clock of this machine is wrong",
                date(begin)
            ),
        ),
        (
            constraints.is_some_and(|constraints| constraints.value.ca),
            "is that of a CA, as openssl req -x509 makes it; many clients, exact2048's included, refuse it for a server; \
             make both with the commands in docs/tls.md"
                .to_owned(),
        ),
        (
            names.is_none_or(|names| names.value.general_names.is_empty()),
            "names no host (subjectAltName), so clients refuse it; make one with the commands in docs/tls.md"
                .to_owned(),
        ),
        (
            usage.is_some_and(|usage| !usage.value.server_auth && !usage.value.any),
            "is not for servers (extendedKeyUsage without serverAuth), so clients refuse it".to_owned(),
        ),
    ];
    let warnings = warnings.into_iter().filter_map(|(is_so, what)| is_so.then_some(what));
    Ok(warnings.map(|what| format!("the certificate in {} {what}", path.display())).collect())
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// Returns the warnings on a day about a sound certificate with a change.
    fn warned(day: OffsetDateTime, change: impl FnOnce(&mut CertificateParams)) -> Vec<String> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(2031, 2, 3), date_time_ymd(2031, 8, 9));
        change(&mut params);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        warnings(certificate.der(), Path::new("server.pem"), day).unwrap()
    }

    #[test]
    fn warnings_name_the_properties_that_clients_refuse() {
        let day = date_time_ymd(2031, 5, 1);
        assert_eq!(warned(day, |_| {}), Vec::<String>::new());
        let of_clients = vec![ExtendedKeyUsagePurpose::ClientAuth];
        for (warnings, words) in [
            (warned(date_time_ymd(2031, 8, 10), |_| {}), "expired on 2031-08-09"),
            (warned(date_time_ymd(2031, 7, 30), |_| {}), "expires on 2031-08-09 00:00 UTC, in 10 days"),
            (warned(date_time_ymd(2031, 2, 2), |_| {}), "not valid before 2031-02-03"),
            (warned(day, |of| of.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)), "that of a CA"),
            (warned(day, |of| of.subject_alt_names.clear()), "names no host"),
            (warned(day, |of| of.extended_key_usages = of_clients), "serverAuth"),
        ] {
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(words) && warnings[0].contains("server.pem"), "{warnings:?}");
        }
        assert!(warnings(b"no certificate", Path::new("server.pem"), day).is_err());
    }
}
