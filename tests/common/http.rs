//! The part of plain HTTP that the tests need.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// An answer of a server.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    /// Lines in lower case.
    pub headers: String,
    pub body: String,
}

impl HttpReply {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Requests a path below a URL that ends with a slash. `headers` are lines without line ends.
#[track_caller]
pub fn get_with(url: &str, path: &str, headers: &[&str]) -> HttpReply {
    request(url, "GET", path, headers)
}

/// Requests a path without headers.
#[track_caller]
pub fn get(url: &str, path: &str) -> HttpReply {
    get_with(url, path, &[])
}

/// Requests a path with any method.
#[track_caller]
pub fn request(url: &str, method: &str, path: &str, headers: &[&str]) -> HttpReply {
    let address = url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let request =
        format!("{method} /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) =
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer to {path}: {answer:?}"));
    let (first, headers) = head.split_once("\r\n").unwrap();
    let status = first.split(' ').nth(1).unwrap().parse().unwrap();
    HttpReply { status, headers: headers.to_lowercase(), body: body.to_owned() }
}

/// Requests a path that must exist, and returns the JSON of the answer.
#[track_caller]
pub fn get_json(url: &str, path: &str) -> Value {
    let answer = get(url, path);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

/// Escapes a text for use in a URL.
pub fn escape(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}
