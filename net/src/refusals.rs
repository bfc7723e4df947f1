//! Bodies for the answers of the HTTP library to unreadable requests.
//!
//! The library answers such requests without a body and cannot add one. So a connection replaces the answer on its way
//! to the client. Each of these answers is the last on its connection.

use tonic::Status;
use tonic::codegen::Bytes;

use crate::protocol::http_refusal;

/// Header at the end of the library's own answers. It declares an empty body.
const EMPTY: &str = "content-length: 0\r\n";

/// Returns the answer with a body, if the library made it.
pub(crate) fn with_body(answer: &[u8]) -> Option<Bytes> {
    let text = std::str::from_utf8(answer).ok().filter(|text| text.ends_with("\r\n\r\n"))?;
    let why = match text.strip_prefix("HTTP/1.1 ")?.split(' ').next()? {
        "400" => "expected an HTTP/1.1 request, found something else",
        "414" => "the URL is too long; request less at a time",
        "431" => "the headers are too long or too many; send fewer",
        _ => return None,
    };
    let (before, after) = text.split_once(EMPTY)?;
    let refusal = http_refusal(&Status::invalid_argument(why));
    let body = refusal.body();
    let mut full = before.to_owned();
    for (name, value) in refusal.headers() {
        full.extend([name.as_str(), ": ", value.to_str().ok()?, "\r\n"]);
    }
    full.push_str(&format!("content-length: {}\r\n{after}{body}", body.len()));
    Some(full.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers that must pass unchanged; `tests/ports.rs` covers the library's own answers.
    #[test]
    fn other_answers_stay_unchanged() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n{}",
            "",
        ] {
            assert_eq!(with_body(answer.as_bytes()), None, "{answer}");
        }
    }
}
