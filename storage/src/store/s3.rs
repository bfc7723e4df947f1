//! Opening a bucket of an S3 store.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use super::settings::{S3Settings, is_name};

/// Timeouts of an HTTP request and of connecting.
const REQUEST: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(5);

/// Opens a bucket without sending a request.
///
/// # Errors
///
/// A sentence that states the missing or wrong setting and the remedy, without the value of a setting.
pub(crate) fn open(bucket: &str, settings: &S3Settings) -> Result<Arc<dyn ObjectStore>, String> {
    if !is_name(bucket) {
        return Err("expected a bucket name of letters, digits, '-', '_' and '.'".to_owned());
    }
    let (key, secret) = settings.keys()?;
    let retries = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        // Few retries, because the caller repeats whole operations within its own time limit.
        max_retries: 3,
        retry_timeout: Duration::from_secs(30),
    };
    // The library's HTTP client has no cryptography provider. An error means that a provider is already installed, so
    // ignore the error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = ClientOptions::new()
        .with_timeout(REQUEST)
        .with_connect_timeout(CONNECT)
        .with_allow_http(settings.allow_http);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        .with_region(settings.region.as_deref().unwrap_or("us-east-1"))
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_client_options(client)
        .with_retry(retries);
    if let Some(token) = &settings.token {
        builder = builder.with_token(token);
    }
    if let Some(endpoint) = &settings.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    match builder.build() {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bucket: &str) -> Result<Arc<dyn ObjectStore>, String> {
        let settings = S3Settings::read(|name| match name {
            "AWS_ACCESS_KEY_ID" => Some("key".into()),
            "AWS_SECRET_ACCESS_KEY" => Some("hush".into()),
            _ => None,
        });
        open(bucket, &settings?)
    }

    #[test]
    fn secrets_are_not_shown() {
        let store = opened("bucket").unwrap();
        assert!(!format!("{store:?} {store}").contains("hush"));
    }

    #[test]
    fn invalid_bucket_names_are_refused() {
        for bucket in ["", ".", "..", "a%2fb", "a b", "[::1]", "a\"b", "b\u{fc}cket"] {
            assert!(opened(bucket).is_err(), "{bucket:?}");
        }
    }
}
