//! The query service. It returns values of a run's states over gRPC (`proto/exact2048/v1/query.proto`).
//!
//! [`Served`] is a run that is reread while it is not solved or not fully readable. [`Runs`] are the runs of a
//! server, by name. [`QueryService`] converts requests to queries of an oracle, and the oracle's answers to
//! messages. [`serve`](serve()) runs the service on a server of [`exact2048_net`], with health checks and reflection.
//! Requests cannot name files.

mod batch;
mod compare;
mod failures;
mod messages;
mod observe;
mod runs;
mod serve;
mod served;
mod service;
mod state;
mod stream;
mod turns;

pub use compare::{Comparison, RunAnswer, compare};
pub use failures::of_query;
pub use messages::{asked_of, direction_of};
pub use observe::describe;
pub use runs::{NamedRun, RUN_HEADER, Runs};
pub use serve::serve;
pub use served::{OpenRun, RunSnapshot, Served};
pub use service::QueryService;
pub use state::answer_state;
pub use turns::Turns;
