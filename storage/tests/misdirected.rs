//! Servers that answer in place of a store. The error names such a server without retries.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use exact2048_storage::{ErrorKind, Location, RunDir, StorageError, StoreSettings};
use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, ObjectStore};

/// Answers every connection with the same bytes, and returns the address.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // The client may already have disconnected, which the test notices.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(bytes);
        }
    });
    address
}

fn store(endpoint: &str, client: ClientOptions) -> Arc<dyn ObjectStore> {
    let builder = AmazonS3Builder::new().with_bucket_name("bucket").with_endpoint(endpoint);
    let builder =
        builder.with_access_key_id("key").with_secret_access_key("secret").with_client_options(client);
    Arc::new(builder.build().unwrap())
}

/// Returns the kind of the error from opening a run, and its text with its cause.
fn refusal(objects: Arc<dyn ObjectStore>) -> (ErrorKind, String) {
    let location = Location::objects(objects, "s3://bucket/run", "run", &StoreSettings::default()).unwrap();
    let error: StorageError = RunDir::open_read_only(&location).unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    (error.kind(), format!("{error}: {cause}"))
}

#[test]
fn a_server_in_place_of_a_store_is_named_without_retries() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let open = || ClientOptions::new().with_allow_http(true);
    let plain = answering(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    let tls = answering(&[0x15, 3, 1, 0, 2, 2, 10]);
    let proxy = answering(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    let portal = answering(
        b"HTTP/1.1 200 OK\r\ncontent-length: 29\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\netag: \"1\"\r\n\
          connection: close\r\n\r\n<!DOCTYPE html><p>Log in!</p>",
    );
    let proxied = open().with_proxy_url(format!("http://{proxy}"));
    for (endpoint, client, words) in [
        (format!("https://{plain}"), open(), "write http:// instead of https://"),
        (format!("http://{tls}"), open(), "write https:// instead of http://"),
        ("https://store.example".to_owned(), proxied, "HTTPS_PROXY or ALL_PROXY refuses"),
        (format!("http://{portal}"), open(), "found an HTML page"),
    ] {
        let (kind, text) = refusal(store(&endpoint, client));
        assert_eq!(kind, ErrorKind::Unavailable, "{endpoint}: {text}");
        assert!(text.contains(words) && !text.contains(" tries in "), "{endpoint}: {text}");
    }
}
