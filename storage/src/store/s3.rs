//! The settings of an S3 store: those of the environment, under the names that all S3 programs use.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

/// The longest that one HTTP request may take, and the longest that connecting may.
const REQUEST: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(5);

/// Opens a bucket, without a request to it. `variable` gives the environment.
///
/// # Errors
///
/// A sentence that says which setting is missing or wrong, and what to do. Values are not repeated: some are
/// secret.
pub(crate) fn open(
    bucket: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Arc<dyn ObjectStore>, String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let required = |name: &str| {
        // Without keys the library would ask the metadata service of the cloud, which may not answer for long.
        set(name).ok_or_else(|| {
            format!("{name} is not set; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment")
        })
    };
    let (key, secret) = (required("AWS_ACCESS_KEY_ID")?, required("AWS_SECRET_ACCESS_KEY")?);
    let allow_http = match set("AWS_ALLOW_HTTP").map(|value| value.to_ascii_lowercase()).as_deref() {
        None | Some("false" | "0" | "no") => false,
        Some("true" | "1" | "yes") => true,
        Some(_) => return Err("AWS_ALLOW_HTTP is neither true nor false".to_owned()),
    };
    let retries = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        // Few: what calls this repeats whole operations and knows for how long.
        max_retries: 3,
        retry_timeout: Duration::from_secs(30),
    };
    // The library's HTTP client brings no provider of cryptography. An error says that one is installed already, which
    // is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client =
        ClientOptions::new().with_timeout(REQUEST).with_connect_timeout(CONNECT).with_allow_http(allow_http);
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        .with_region(
            set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).unwrap_or("us-east-1".to_owned()),
        )
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_client_options(client)
        .with_retry(retries);
    if let Some(token) = set("AWS_SESSION_TOKEN") {
        builder = builder.with_token(token);
    }
    if let Some(endpoint) = set("AWS_ENDPOINT_URL_S3").or_else(|| set("AWS_ENDPOINT_URL")) {
        if endpoint.starts_with("http://") && !allow_http {
            return Err(
                "the endpoint is http:// without encryption; set AWS_ALLOW_HTTP=true to allow that, \
                        or give an https:// endpoint"
                    .to_owned(),
            );
        }
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

    fn with(variables: &[(&str, &str)]) -> Result<Arc<dyn ObjectStore>, String> {
        open("bucket", |name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "hush")];

    #[test]
    fn keys_are_required() {
        assert!(with(&KEYS).is_ok());
        assert!(with(&[]).unwrap_err().contains("AWS_ACCESS_KEY_ID is not set"));
        assert!(with(&KEYS[..1]).unwrap_err().contains("AWS_SECRET_ACCESS_KEY is not set"));
        assert!(with(&[KEYS[0], ("AWS_SECRET_ACCESS_KEY", "")]).is_err());
    }

    #[test]
    fn plain_http_must_be_allowed() {
        let endpoint = ("AWS_ENDPOINT_URL", "http://127.0.0.1:5000");
        let refused = with(&[KEYS[0], KEYS[1], endpoint]).unwrap_err();
        assert!(refused.contains("AWS_ALLOW_HTTP=true"), "{refused}");
        assert!(with(&[KEYS[0], KEYS[1], endpoint, ("AWS_ALLOW_HTTP", "true")]).is_ok());
        assert!(with(&[KEYS[0], KEYS[1], ("AWS_ALLOW_HTTP", "perhaps")]).is_err());
    }

    #[test]
    fn secrets_are_not_shown() {
        let store = with(&KEYS).unwrap();
        assert!(!format!("{store:?} {store}").contains("hush"));
    }
}
