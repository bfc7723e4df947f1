//! Faults between this machine and the store: a URL with the wrong scheme, a proxy that refuses, or an HTML page from
//! another server.

use std::error::Error;

/// Returns the remedy if a request failed because of a fault between this machine and the store. A retry would fail in
/// the same way.
pub(super) fn remedy(error: &object_store::Error) -> Option<&'static str> {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(below) = cause {
        texts.push(below.to_string());
        cause = below.source();
    }
    let says = |words: &str| texts.iter().any(|text| text.contains(words));
    if says("InvalidContentType") {
        Some("the endpoint does not speak TLS; write http:// instead of https:// and set AWS_ALLOW_HTTP=true")
    } else if says("invalid HTTP version") {
        Some("the endpoint does not speak HTTP; write https:// instead of http:// if it has TLS")
    } else if says("tunnel error: unsuccessful") || says("proxy authorization required") {
        Some(
            "the proxy of HTTPS_PROXY or ALL_PROXY refuses to connect to the store; correct the variable, or name the \
             host of the store in NO_PROXY",
        )
    } else {
        None
    }
}

/// Returns whether an object is an HTML page. No file of a run starts with `<`.
pub(super) fn is_page(contents: &[u8]) -> bool {
    contents.trim_ascii_start().starts_with(b"<")
}
