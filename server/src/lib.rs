//! The query service: answers over gRPC what the states of a run are worth (`proto/exact2048/v1/query.proto`).
//!
//! [`Served`] is a run, read again while it is not solved or could not be read in part, and [`Runs`] are those of a
//! server, by name; [`QueryService`] turns requests into questions to its oracle and answers into messages; [`serve`](serve()) joins it with health and
//! reflection on a server of [`exact2048_net`]. No request names a file.

mod batch;
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

pub use failures::of_query;
pub use messages::{board_of, direction_of};
pub use observe::describe;
pub use runs::{NamedRun, RUN_HEADER, Runs};
pub use serve::serve;
pub use served::{OpenRun, RunSnapshot, Served};
pub use service::QueryService;
pub use state::answer_state;
pub use turns::Turns;
