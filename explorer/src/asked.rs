//! What requests ask for, from the parts of their URLs.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use exact2048_net::pages::RequestFailure;
use exact2048_net::status::invalid_argument;
use serde::de::DeserializeOwned;
use tonic::{Code, Status};

/// The query of a URL: what follows its `?`.
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = RequestFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFailure> {
        let asked = Query::from_request_parts(parts, state).await;
        let Query(asked) = asked.map_err(|rejection| {
            let why =
                std::error::Error::source(&rejection).map_or(rejection.body_text(), ToString::to_string);
            Status::invalid_argument(format!("{why}; what a URL may ask is in /api/v1/openapi.json"))
        })?;
        Ok(Self(asked))
    }
}

/// How many of something are asked for: `unless_told` where the URL does not say it, and at most `most`.
///
/// # Errors
///
/// If it is 0, or more than `most`.
pub fn count_of(field: &str, asked: Option<u32>, unless_told: u32, most: u32) -> Result<usize, Status> {
    match asked.unwrap_or(unless_told) {
        count if (1..=most).contains(&count) => Ok(count as usize),
        count => Err(invalid_argument(field, format!("{count}: expected 1 to {most}"))),
    }
}

/// The answer for a path that is none of ours.
pub async fn no_such_path() -> RequestFailure {
    let what = "there is nothing here; the paths of the API are in /api/v1/openapi.json";
    Status::new(Code::NotFound, what).into()
}
