//! Paths of the server, their handlers, and the access rules of all paths.

use axum::Router;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderValue, Method};
use axum::routing::{MethodRouter, get};
use exact2048_net::pages::{files, require_token};
use tower_http::cors::CorsLayer;

use crate::state::Explorer;
use crate::url_query::no_such_path;
use crate::{assets, compare, layers, perfect, positions, runs, search, values};

/// The description of the API.
const OPENAPI: &str = include_str!("openapi.json");

/// Each path of the API, and its handler.
fn api() -> [(&'static str, MethodRouter<Explorer>); 9] {
    [
        ("/api/v1/runs", get(runs::runs)),
        ("/api/v1/layers", get(runs::layers)),
        ("/api/v1/values", get(values::values)),
        ("/api/v1/compare", get(compare::compare_runs)),
        ("/api/v1/layer", get(layers::layer)),
        ("/api/v1/positions", get(positions::positions)),
        ("/api/v1/search", get(search::search)),
        ("/api/v1/perfect-play", get(perfect::perfect_play)),
        ("/api/v1/openapi.json", get(|| async { ([(CONTENT_TYPE, "application/json")], OPENAPI) })),
    ]
}

/// All paths, as labels of the request counters.
#[must_use]
pub fn paths() -> Vec<&'static str> {
    assets::all().map(|asset| asset.path).chain(api().into_iter().map(|(path, _)| path)).collect()
}

/// Serves the page without a token, and the API with the token. Browsers let pages from `origins` read answers of the
/// API.
pub fn router(explorer: Explorer, origins: &[HeaderValue]) -> Router {
    let api = api().into_iter().fold(Router::new(), |router, (path, answer)| router.route(path, answer));
    let mut api = require_token(api, explorer.token().clone());
    if !origins.is_empty() {
        let cors = CorsLayer::new().allow_origin(origins.to_vec());
        api = api.layer(cors.allow_methods([Method::GET]).allow_headers([AUTHORIZATION]));
    }
    api.merge(files(assets::all())).fallback(no_such_path).with_state(explorer)
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

    /// The limit excludes files that the page loads when the user opens Quiz or Study, trains, or exports a game.
    #[test]
    fn the_page_is_small() {
        let is_first =
            |path: &str| !["/perfect.js", "/quiz.js", "/record.js", "/study.js", "/train.js"].contains(&path);
        let first = assets::all().filter(|asset| is_first(asset.path));
        let bytes: usize = first.map(|asset| asset.text.len()).sum();
        assert!(bytes < 85_000, "{bytes} bytes");
    }
}
