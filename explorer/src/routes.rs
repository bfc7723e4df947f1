//! Which path is answered by what, and what holds for all.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use tower_http::cors::CorsLayer;

use crate::asked::{RequestFailure, no_such_method, no_such_path};
use crate::runs::Explorer;
use crate::{assets, layers, positions, runs, search, values};

/// What a page of ours may do: load our own files, ask us, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The description of the API.
const OPENAPI: &str = include_str!("openapi.json");

/// Each path of the API, and what answers it.
fn api() -> [(&'static str, MethodRouter<Explorer>); 7] {
    [
        ("/api/v1/runs", get(runs::runs)),
        ("/api/v1/layers", get(runs::layers)),
        ("/api/v1/values", get(values::values)),
        ("/api/v1/layer", get(layers::layer)),
        ("/api/v1/positions", get(positions::positions)),
        ("/api/v1/search", get(search::search)),
        ("/api/v1/openapi.json", get(|| async { ([(CONTENT_TYPE, "application/json")], OPENAPI) })),
    ]
}

/// All paths, as requests are counted by them.
#[must_use]
pub fn paths() -> Vec<&'static str> {
    assets::paths().chain(api().into_iter().map(|(path, _)| path)).collect()
}

/// The page for anyone, and the API for those who show the token. Pages from `origins` may ask the API too.
pub fn router(explorer: Explorer, origins: &[HeaderValue]) -> Router {
    let api = api().into_iter().fold(Router::new(), |router, (path, answer)| router.route(path, answer));
    let checked = from_fn_with_state(explorer.clone(), check_token);
    let mut api = api.method_not_allowed_fallback(no_such_method).layer(checked);
    if !origins.is_empty() {
        let cors = CorsLayer::new().allow_origin(origins.to_vec());
        api = api.layer(cors.allow_methods([Method::GET]).allow_headers([AUTHORIZATION]));
    }
    api.merge(assets::router().method_not_allowed_fallback(no_such_method))
        .fallback(no_such_path)
        .layer(map_response(with_headers))
        .with_state(explorer)
}

async fn check_token(
    State(explorer): State<Explorer>,
    request: Request,
    next: Next,
) -> Result<Response, RequestFailure> {
    explorer.token().check(request.headers(), request.extensions())?;
    Ok(next.run(request).await)
}

async fn with_headers(mut response: Response) -> Response {
    let headers: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_each_path() {
        let described: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = described["paths"].as_object().unwrap();
        let described: Vec<&str> = paths.keys().map(String::as_str).collect();
        let mut answered = api().map(|(path, _)| path);
        answered.sort_unstable();
        assert_eq!(described, answered);
    }

    #[test]
    fn the_page_is_small() {
        let bytes = assets::bytes();
        assert!(bytes < 80_000, "{bytes} bytes");
    }
}
