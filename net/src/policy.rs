//! Addresses that a server may listen on without protection.

use std::net::SocketAddr;

/// Encryption and client authentication of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Whether clients must show a certificate.
    pub mutual_tls: bool,
    /// Whether clients must show a token.
    pub token: bool,
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [(self.tls, "TLS"), (self.mutual_tls, "client certificates"), (self.token, "a token")];
        let parts: Vec<&str> = parts.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
        f.write_str(&if parts.is_empty() { "none".to_owned() } else { parts.join(", ") })
    }
}

/// Refusal to open a server to a network without enough protection.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "refusing to listen on {address}: other machines can reach it, and {lacks}; give a certificate and its \
     key, with a token or a CA for client certificates; or listen on 127.0.0.1; or allow it if the network is trusted"
)]
pub struct Exposed {
    address: SocketAddr,
    lacks: &'static str,
}

/// Checks that a server is protected: it listens on loopback, is encrypted and authenticates its clients, or may
/// be open.
///
/// # Errors
///
/// [`Exposed`] names the missing protection.
pub fn check_listen(address: SocketAddr, protection: Protection, insecure: bool) -> Result<(), Exposed> {
    let lacks = match protection {
        _ if address.ip().to_canonical().is_loopback() || insecure => return Ok(()),
        Protection { tls: false, .. } => "connections are not encrypted",
        Protection { mutual_tls: false, token: false, .. } => "anyone could send requests",
        _ => return Ok(()),
    };
    Err(Exposed { address, lacks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_may_be_open() {
        let all = [false, true];
        for (tls, mutual_tls, token) in
            all.into_iter().flat_map(|a| all.into_iter().flat_map(move |b| all.map(|c| (a, b, c))))
        {
            let protection = Protection { tls, mutual_tls: tls && mutual_tls, token };
            let safe = tls && (mutual_tls || token);
            for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:10.0.0.1]:1"] {
                let address = address.parse().unwrap();
                assert_eq!(
                    check_listen(address, protection, false).is_ok(),
                    safe,
                    "{address} {protection:?}"
                );
                assert!(check_listen(address, protection, true).is_ok());
            }
            for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
                assert!(check_listen(address.parse().unwrap(), protection, false).is_ok(), "{address}");
            }
        }
    }

    #[test]
    fn protection_is_displayed_in_words() {
        let none = Protection { tls: false, mutual_tls: false, token: false };
        assert_eq!(none.to_string(), "none");
        assert_eq!(Protection { tls: true, token: true, ..none }.to_string(), "TLS, a token");
    }
}
