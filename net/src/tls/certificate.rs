//! Properties of a certificate, and warnings about properties that clients refuse.

use std::path::Path;

use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use super::explain::date;

/// Time before expiry at which a certificate starts to cause a warning.
const SOON: Duration = Duration::days(14);

/// Relevant properties of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether the version is below 3. Such a certificate has no extensions, so it has no host names and no
    /// purpose.
    pub is_version_1: bool,
    /// Whether the certificate may sign other certificates, like that of a CA.
    is_ca: bool,
    /// Whether the certificate names a host.
    names_hosts: bool,
    /// Whether the certificate's purpose includes servers.
    is_for_servers: bool,
    not_before: OffsetDateTime,
    not_after: OffsetDateTime,
}

impl Facts {
    /// Parses a certificate in DER. The error is the parser's description.
    pub fn of(der: &[u8]) -> Result<Self, String> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let constraints = certificate.basic_constraints().map_err(|error| error.to_string())?;
        let names = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
        let usage = certificate.extended_key_usage().map_err(|error| error.to_string())?;
        let validity = certificate.validity();
        Ok(Self {
            is_version_1: certificate.version() != X509Version::V3,
            is_ca: constraints.is_some_and(|constraints| constraints.value.ca),
            names_hosts: names.is_some_and(|names| !names.value.general_names.is_empty()),
            is_for_servers: usage.is_none_or(|usage| usage.value.server_auth || usage.value.any),
            not_before: validity.not_before.to_datetime(),
            not_after: validity.not_after.to_datetime(),
        })
    }

    /// Returns warnings about properties of the server certificate at `path` that clients may refuse.
    pub fn warnings(&self, path: &Path, now: OffsetDateTime) -> Vec<String> {
        let path = path.display();
        let mut warnings = Vec::new();
        if now > self.not_after {
            let day = date(self.not_after);
            warnings.push(format!(
                "the certificate in {path} expired on {day}, so clients refuse it; replace it"
            ));
        } else if now + SOON > self.not_after {
            let (day, days) = (date(self.not_after), (self.not_after - now).whole_days());
            warnings.push(format!(
                "the certificate in {path} expires on {day}, in {days} days; replace it and restart the server"
            ));
        }
        if now < self.not_before {
            let day = date(self.not_before);
            warnings.push(format!(
                "the certificate in {path} is not valid before {day}, so clients refuse it unless the clock of this \
                 machine is wrong"
            ));
        }
        if self.is_ca {
            warnings.push(format!(
                "the certificate in {path} is that of a CA, as openssl req -x509 makes it; many clients, exact2048's \
                 included, refuse it for a server; make both with the commands in docs/tls.md"
            ));
        }
        if !self.names_hosts {
            warnings.push(format!(
                "the certificate in {path} names no host (subjectAltName), so clients refuse it; make one with the commands \
                 in docs/tls.md"
            ));
        }
        if !self.is_for_servers {
            warnings.push(format!(
                "the certificate in {path} is not for servers (extendedKeyUsage without serverAuth), so clients refuse it"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let day = |days| OffsetDateTime::UNIX_EPOCH + Duration::days(days);
        Facts {
            is_version_1: false,
            is_ca: false,
            names_hosts: true,
            is_for_servers: true,
            not_before: day(100),
            not_after: day(200),
        }
    }

    fn warnings(facts: &Facts, day: i64) -> Vec<String> {
        facts.warnings(Path::new("server.pem"), OffsetDateTime::UNIX_EPOCH + Duration::days(day))
    }

    #[test]
    fn warnings_name_the_properties_that_clients_refuse() {
        let sound = facts();
        assert_eq!(warnings(&sound, 150), Vec::<String>::new());
        for (facts, day, words) in [
            (sound, 201, "expired on 1970-07-20"),
            (sound, 190, "expires on 1970-07-20 00:00 UTC, in 10 days"),
            (sound, 99, "not valid before 1970-04-11"),
            (Facts { is_ca: true, ..sound }, 150, "that of a CA"),
            (Facts { names_hosts: false, ..sound }, 150, "names no host"),
            (Facts { is_for_servers: false, ..sound }, 150, "serverAuth"),
        ] {
            let warnings = warnings(&facts, day);
            assert_eq!(warnings.len(), 1, "{warnings:?}");
            assert!(warnings[0].contains(words) && warnings[0].contains("server.pem"), "{warnings:?}");
        }
    }

    #[test]
    fn certificates_are_read() {
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 2, 3);
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let facts = Facts::of(certificate.der()).unwrap();
        assert_eq!(date(facts.not_after), "2031-02-03 00:00 UTC");
        assert!(facts.names_hosts && !facts.is_ca && !facts.is_for_servers && !facts.is_version_1);
        assert!(Facts::of(b"no certificate").is_err());
    }
}
