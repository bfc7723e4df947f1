//! The explorer: a page to play and study solved boards, and its API as JSON over HTTP.
//!
//! The type [`Explorer`] holds the runs. The function [`router`] serves the page, the API and the API's description
//! (`openapi.json`). Access control, request limits, deadlines and metrics work as in every server (`exact2048-net`).
//! The explorer reads values as the query service does (`exact2048-server`).

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod assets;
mod compare;
mod layers;
mod pattern;
mod perfect;
mod positions;
mod routes;
mod runs;
mod sample;
mod search;
mod state;
mod statistics;
mod url_query;
mod values;

pub use routes::{paths, router};
pub use state::Explorer;
