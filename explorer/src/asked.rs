//! What comes in: the parts of a URL.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use exact2048_net::pages::RequestFailure;
use exact2048_net::status::invalid_argument;
use serde::de::DeserializeOwned;
use tonic::{Code, Status};

/// What a URL asks for behind its `?`.
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = RequestFailure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, RequestFailure> {
        let asked = Query::from_request_parts(parts, state).await;
        let Query(asked) = asked.map_err(|error| Status::invalid_argument(error.body_text()))?;
        Ok(Self(asked))
    }
}

/// How many of something are asked for, with what it is unless told otherwise, and at most.
///
/// # Errors
///
/// It is none, or more than that.
pub fn count_of(field: &str, asked: Option<u32>, unless_told: u32, most: u32) -> Result<usize, Status> {
    match asked.unwrap_or(unless_told) {
        count if (1..=most).contains(&count) => Ok(count as usize),
        count => Err(invalid_argument(field, format!("{count}: expected 1 to {most}"))),
    }
}

/// No path of ours.
pub async fn no_such_path() -> RequestFailure {
    let what = "there is nothing here; the paths of the API are in /api/v1/openapi.json";
    Status::new(Code::NotFound, what).into()
}
