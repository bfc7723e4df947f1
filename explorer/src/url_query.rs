//! Parameters of requests, from their URLs.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use exact2048_net::pages::RequestFailure;
use exact2048_net::status::invalid_argument;
use serde::de::DeserializeOwned;
use tonic::{Code, Status};

/// The parsed query of a URL (the part after `?`).
pub struct UrlQuery<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = RequestFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFailure> {
        let asked = Query::from_request_parts(parts, state).await;
        let Query(asked) = asked.map_err(|rejection| {
            let why =
                std::error::Error::source(&rejection).map_or(rejection.body_text(), ToString::to_string);
            Status::invalid_argument(format!("{why}; see the parameters in /api/v1/openapi.json"))
        })?;
        Ok(Self(asked))
    }
}

/// Checks a requested number. Without a request, the number is `default`.
///
/// # Errors
///
/// INVALID_ARGUMENT if the number is 0 or more than `most`.
pub fn count_of(field: &str, asked: Option<u32>, default: u32, most: u32) -> Result<usize, Status> {
    match asked.unwrap_or(default) {
        count if (1..=most).contains(&count) => Ok(count as usize),
        count => Err(invalid_argument(field, format!("{count}: expected 1 to {most}"))),
    }
}

/// The answer for an unknown path.
pub async fn no_such_path() -> RequestFailure {
    let what = "unknown path; the paths of the API are in /api/v1/openapi.json";
    Status::new(Code::NotFound, what).into()
}
