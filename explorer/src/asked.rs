//! What comes in and goes out: the parts of a URL, answers in JSON, failures.

use axum::body::Body;
use axum::extract::{FromRequestParts, Query};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use exact2048_net::protocol::http_refusal;
use serde::Serialize;
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

/// An answer in JSON.
pub struct ToldAnswer<T>(pub T);

impl<T: Serialize> IntoResponse for ToldAnswer<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(text) => {
                ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], text).into_response()
            }
            Err(error) => RequestFailure(Status::internal(error.to_string())).into_response(),
        }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub struct RequestFailure(Status);

impl From<Status> for RequestFailure {
    fn from(status: Status) -> Self {
        Self(status)
    }
}

impl IntoResponse for RequestFailure {
    fn into_response(self) -> Response {
        http_refusal(&self.0).map(Body::from)
    }
}

/// No path of ours.
pub async fn no_such_path() -> RequestFailure {
    let what = "there is nothing here; the paths of the API are in /api/v1/openapi.json";
    Status::new(Code::NotFound, what).into()
}

/// A path of ours, asked in a way that it does not answer.
pub async fn no_such_method() -> RequestFailure {
    Status::unimplemented("expected GET: nothing is changed by requests").into()
}
