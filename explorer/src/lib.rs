//! The explorer: a page on which people play and study solved boards, and the API that it asks, as JSON over HTTP.
//!
//! [`Explorer`] holds the runs; [`router`] has the page, the API and its description (`openapi.json`). Who may ask, how much
//! is taken on at once, deadlines and what is counted are those of every other server (`exact2048-net`), and values come
//! from where the query service has them (`exact2048-server`).

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may end at the first surprise"))]

mod asked;
mod assets;
mod layers;
mod pattern;
mod perfect;
mod positions;
mod routes;
mod runs;
mod sample;
mod search;
mod values;

pub use routes::{paths, router};
pub use runs::Explorer;
