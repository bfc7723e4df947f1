//! What comes in: the parts of a URL.

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use exact2048_net::pages::RequestFailure;
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

/// No path of ours.
pub async fn no_such_path() -> RequestFailure {
    let what = "there is nothing here; the paths of the API are in /api/v1/openapi.json";
    Status::new(Code::NotFound, what).into()
}
