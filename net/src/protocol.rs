//! Protocols of a server, and how each reports statuses.
//!
//! Inside a server every failure is a gRPC status. gRPC services send it unchanged. Plain HTTP sends an HTTP status
//! and a JSON object with the same code and message.

use axum::body::Body;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tonic::codegen::Bytes;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::status::{field_of, seconds_of};

/// Number of seconds after which refused clients should try again.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Content security policy: pages load files only from their own server and send requests only to it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Header at the end of the HTTP library's own answers. It declares an empty body.
const EMPTY: &str = "content-length: 0\r\n";

/// Protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC, over HTTP/2.
    Grpc,
    /// HTTP/1.1 and HTTP/2, with answers in JSON.
    Http,
}

impl Protocol {
    /// Returns the answer to a request that was refused, or cut off before its answer began.
    pub(crate) fn refusal(self, status: Status) -> Response<Body> {
        match self {
            Self::Grpc => status.into_http(),
            Self::Http => http_refusal(&status).map(Body::from),
        }
    }

    /// Returns the code of an answer if its head contains the code. In HTTP the head always does. In gRPC it does
    /// only for answers without messages.
    pub(crate) fn code_of<B>(self, response: &Response<B>) -> Option<Code> {
        match self {
            Self::Grpc => Status::from_header_map(response.headers()).map(|status| status.code()),
            Self::Http => Some(response.extensions().get::<Code>().copied().unwrap_or(Code::Ok)),
        }
    }
}

/// Converts a status to an HTTP answer: `{"error": {"code": …, "message": …}}`, with the invalid field or the estimated
/// seconds, if any.
#[must_use]
pub fn http_refusal(status: &Status) -> Response<String> {
    let (code, name) = http_status_of(status.code());
    let mut error = serde_json::json!({ "code": name, "message": status.message() });
    if let Some(field) = field_of(status) {
        // Unlike fields of messages, parameters of a URL have no parts.
        error["field"] = field.split('.').next().into();
    }
    if let Some(seconds) = seconds_of(status) {
        error["seconds"] = seconds.into();
    }
    let mut response = Response::new(serde_json::json!({ "error": error }).to_string());
    *response.status_mut() = code;
    response.extensions_mut().insert(status.code());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if code == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    // After any other failure, a retry would fail the same way.
    if status.get_details_retry_info().is_some() {
        headers.insert(RETRY_AFTER, RETRY_SECONDS);
    }
    with_headers(response)
}

/// Returns an answer with a body, if the HTTP library made the answer to an unreadable request.
///
/// The library answers such requests without a body and cannot add one. So a connection replaces the answer on its way
/// to the client. Each of these answers is the last on its connection.
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

/// Adds the headers of all answers to browsers. They restrict a page to its own server.
pub(crate) fn with_headers<B>(mut response: Response<B>) -> Response<B> {
    let headers: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the HTTP status for a code, and the code's name.
fn http_status_of(code: Code) -> (StatusCode, &'static str) {
    match code {
        Code::InvalidArgument => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT"),
        Code::Unauthenticated => (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED"),
        Code::PermissionDenied => (StatusCode::FORBIDDEN, "PERMISSION_DENIED"),
        Code::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
        Code::Unimplemented => (StatusCode::METHOD_NOT_ALLOWED, "UNIMPLEMENTED"),
        Code::FailedPrecondition => (StatusCode::CONFLICT, "FAILED_PRECONDITION"),
        Code::ResourceExhausted => (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED"),
        Code::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
        Code::DeadlineExceeded => (StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED"),
        Code::DataLoss => (StatusCode::INTERNAL_SERVER_ERROR, "DATA_LOSS"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status;

    #[test]
    fn http_answers_carry_statuses_as_json() {
        let answer = http_refusal(&status::invalid_argument("board.text", "\"2 2\" has 1 row"));
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        let expected =
            r#"{"error":{"code":"INVALID_ARGUMENT","field":"board","message":"\"2 2\" has 1 row"}}"#;
        assert_eq!(answer.body(), expected);
        assert_eq!(Protocol::Http.code_of(&answer), Some(Code::InvalidArgument));
        assert_eq!(Protocol::Http.code_of(&Response::new(())), Some(Code::Ok));
        let slow = http_refusal(&status::too_slow("about 65 s", 65));
        let expected = r#"{"error":{"code":"DEADLINE_EXCEEDED","message":"about 65 s","seconds":65}}"#;
        assert_eq!((slow.status(), slow.body().as_str()), (StatusCode::GATEWAY_TIMEOUT, expected));
        let again = http_refusal(&status::exhausted("256 requests are running"));
        assert_eq!(again.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(again.headers()[RETRY_AFTER], "1");
    }

    #[test]
    fn grpc_answers_carry_statuses_unchanged() {
        let answer = Protocol::Grpc.refusal(status::exhausted("256 requests are running"));
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["grpc-status"], "8");
        assert_eq!(Protocol::Grpc.code_of(&answer), Some(Code::ResourceExhausted));
    }

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
