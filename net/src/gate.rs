//! The gate of every port: checks the host names and page origins of requests.
//!
//! A browser can reach the loopback ports of its machine, and so can the pages in the browser. If the name of a
//! page resolves to loopback (DNS rebinding), the page could read answers of a server without a token. The gate
//! refuses such requests, because they contain the page's host name. The gate also refuses requests from pages of
//! other origins. Such a page cannot read answers, but takes the server's time.
//!
//! Ports for gRPC do not check names. Browsers speak HTTP/2 only within TLS, and then the certificate must contain
//! the name.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::response::Response;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use tonic::Status;

use crate::policy::Protection;
use crate::protocol::Protocol;
use crate::text::plain_words;

/// Maximum number of bytes of a refused name that the answer repeats.
const MOST_NAME: usize = 256;

/// Hosts and origins that pass the gate in addition to the server's own.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Host names, without ports.
    pub hosts: Vec<String>,
    /// Origins of pages, as browsers write them.
    pub origins: Vec<HeaderValue>,
}

/// Access rule of one port.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub protocol: Protocol,
    /// The port's address, if requests must use a known host name.
    named: Option<IpAddr>,
    allowed: Allowed,
}

/// Reason for a refusal.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    /// The request names this host, or none.
    Name(Option<String>),
    /// The request comes from a page of another origin.
    Page,
}

impl Gate {
    pub(crate) fn new(
        protocol: Protocol,
        address: SocketAddr,
        protection: Protection,
        allowed: Allowed,
    ) -> Self {
        let ip = address.ip();
        // A token or TLS makes the check unnecessary: pages cannot send the token, and a certificate fixes the
        // names. Outside loopback, a server has many valid names.
        let is_open = !protection.token && !protection.tls && ip.to_canonical().is_loopback();
        let named = (is_open && protocol == Protocol::Http).then_some(ip);
        Self { protocol, named, allowed }
    }

    /// Returns the answer to a request that may not pass; `None` if it may.
    pub(crate) fn refusal(&self, request: &Request) -> Option<Response> {
        let checked = self.check(request.method(), request.uri(), request.headers());
        checked.err().map(|refused| self.answer(refused))
    }

    fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        // HTTP/2 gives the name in the URL, HTTP/1.1 in a header or in both. Every given name must be known.
        let in_headers = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
        let hosts: Vec<&[u8]> =
            uri.authority().map(|of| of.as_str().as_bytes()).into_iter().chain(in_headers).collect();
        if let Some(listens) = self.named {
            let unknown = |host: &&&[u8]| !self.knows(host, listens);
            if let Some(host) = hosts.iter().find(unknown) {
                return Err(Refused::Name(Some(String::from_utf8_lossy(host).into_owned())));
            }
            if hosts.is_empty() {
                return Err(Refused::Name(None));
            }
        }
        let is_allowed = |origin: &HeaderValue| self.allowed.origins.contains(origin);
        let is_own = |origin: &HeaderValue| hosts.iter().any(|host| is_origin_of(origin.as_bytes(), host));
        let mut origins = headers.get_all(ORIGIN).iter();
        let is_from_elsewhere = match origins.next() {
            Some(origin) if is_allowed(origin) => false,
            Some(origin) => !is_own(origin) || is_cross_site(headers),
            None => is_cross_site(headers) && !is_link(method, headers),
        };
        if is_from_elsewhere || origins.next().is_some() { Err(Refused::Page) } else { Ok(()) }
    }

    /// Returns whether a host name is known. The port is ignored because it may be forwarded from another port.
    fn knows(&self, host: &[u8], listens: IpAddr) -> bool {
        let Ok(authority) = Authority::try_from(host) else { return false };
        let host = authority.host();
        let bare = host.trim_matches(['[', ']']);
        let is_own = bare.parse::<IpAddr>().is_ok_and(|ip| ip == listens || ip.to_canonical().is_loopback());
        let mut others = self.allowed.hosts.iter().map(String::as_str).chain(["localhost"]);
        is_own || others.any(|name| name.eq_ignore_ascii_case(host))
    }

    fn answer(&self, refused: Refused) -> Response {
        let why = match &refused {
            Refused::Name(found) => {
                let named = found.as_ref().filter(|host| !host.is_empty());
                let found = named.map_or_else(|| "none".to_owned(), |host| plain_words(host, MOST_NAME));
                format!(
                    "expected the host localhost or a loopback address, found {found}; use one of \
                     these, or configure the server to allow this host or to require a token"
                )
            }
            Refused::Page => {
                "expected a request from this server's pages or an allowed origin, found one from another \
                              origin; configure the server to allow that origin"
                    .to_owned()
            }
        };
        let mut answer = self.protocol.refusal(Status::permission_denied(why));
        if matches!(refused, Refused::Name(_)) {
            *answer.status_mut() = StatusCode::MISDIRECTED_REQUEST;
        }
        answer
    }
}

/// Returns whether a page from the host has this origin. The scheme may differ if a proxy terminates TLS.
fn is_origin_of(origin: &[u8], host: &[u8]) -> bool {
    let bare = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    bare.is_some_and(|of| of.eq_ignore_ascii_case(host))
}

/// Returns whether the browser reports a request from a page of another origin.
fn is_cross_site(headers: &HeaderMap) -> bool {
    has(headers, "sec-fetch-site", &["cross-site", "same-site"])
}

/// Returns whether the user followed a link. The page with the link cannot read the answer.
fn is_link(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::GET
        && has(headers, "sec-fetch-mode", &["navigate"])
        && has(headers, "sec-fetch-dest", &["document"])
}

fn has(headers: &HeaderMap, name: &str, values: &[&str]) -> bool {
    headers.get_all(name).iter().any(|found| values.iter().any(|value| found.as_bytes() == value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Protection = Protection { tls: false, mutual_tls: false, token: false };

    fn check(gate: &Gate, uri: &str, headers: &[(&'static str, &str)]) -> Result<(), Refused> {
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        });
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        gate.check(&Method::GET, &uri.parse().unwrap(), &map)
    }

    #[test]
    fn open_loopback_ports_require_a_known_host() {
        let address = "127.0.0.1:8048".parse().unwrap();
        let allowed = Allowed { hosts: vec!["head.example".to_owned()], ..Allowed::default() };
        let gate = Gate::new(Protocol::Http, address, OPEN, allowed.clone());
        for good in
            ["127.0.0.1:8048", "localhost:8048", "LocalHost", "[::1]:9000", "127.9.9.9", "Head.Example:1"]
        {
            assert_eq!(check(&gate, "/", &[("host", good)]), Ok(()), "{good}");
            assert_eq!(check(&gate, &format!("http://{good}/"), &[]), Ok(()), "{good}");
        }
        for wrong in [
            "evil.example:8048",
            "localhost.evil.example",
            "localhost@evil.example",
            "localhost.",
            "192.0.2.1",
            "0.0.0.0:8048",
            "",
            "a b",
            "ö",
        ] {
            let refused = Err(Refused::Name(Some(wrong.to_owned())));
            assert_eq!(check(&gate, "/", &[("host", wrong)]), refused, "{wrong}");
            // Neither a valid name in the URL nor a second header hides an invalid name.
            assert_eq!(check(&gate, "http://localhost/", &[("host", wrong)]), refused, "{wrong}");
            assert_eq!(check(&gate, "/", &[("host", "localhost"), ("host", wrong)]), refused, "{wrong}");
        }
        assert_eq!(check(&gate, "/", &[]), Err(Refused::Name(None)));
        let with_token = Protection { token: true, ..OPEN };
        let with_tls = Protection { tls: true, ..OPEN };
        for (protocol, address, protection) in [
            (Protocol::Http, "127.0.0.1:1", with_token),
            (Protocol::Http, "[::1]:1", with_tls),
            (Protocol::Http, "0.0.0.0:1", OPEN),
            (Protocol::Grpc, "127.0.0.1:1", OPEN),
        ] {
            let gate = Gate::new(protocol, address.parse().unwrap(), protection, Allowed::default());
            assert_eq!(check(&gate, "/", &[("host", "any.example")]), Ok(()), "{gate:?}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused_everywhere() {
        let origin = "https://allowed.example";
        let allowed = Allowed { origins: vec![HeaderValue::from_static(origin)], ..Allowed::default() };
        let (site, mode, dest) = ("sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest");
        let link = [(site, "cross-site"), (mode, "navigate"), (dest, "document")];
        let cases: [(&[(&'static str, &str)], bool); 12] = [
            (&[], true),
            (&[(site, "same-origin")], true),
            (&[(site, "none")], true),
            (&[("origin", "http://localhost:1")], true),
            (&[("origin", origin), (site, "cross-site")], true),
            (&link, true),
            (&[(site, "cross-site"), (mode, "navigate"), (dest, "iframe")], false),
            (&[(site, "same-site")], false),
            (&[("origin", "http://localhost:2")], false),
            (&[("origin", "null")], false),
            (&[("origin", "http://localhost:1"), (site, "cross-site")], false),
            (&[("origin", "http://localhost:1"), ("origin", "https://evil.example")], false),
        ];
        for protocol in [Protocol::Http, Protocol::Grpc] {
            for protection in [OPEN, Protection { tls: true, mutual_tls: true, token: true }] {
                let gate = Gate::new(protocol, "127.0.0.1:1".parse().unwrap(), protection, allowed.clone());
                for (headers, passes) in cases {
                    let headers = [&[("host", "localhost:1")], headers].concat();
                    let expected = if passes { Ok(()) } else { Err(Refused::Page) };
                    assert_eq!(check(&gate, "/", &headers), expected, "{headers:?} {gate:?}");
                }
            }
        }
    }
}
