//! A worker's process. It asks the coordinator for work, computes its share of an epoch, and exchanges blocks with the
//! other workers.
//!
//! | Module | Purpose |
//! |---|---|
//! | `claims` | the memory that workers of one machine may use |
//! | [`identity`] | the identity of a worker, which survives restarts |
//! | `options` | settings of a worker |
//! | `process` | pulls: sends reports, follows answers |
//! | `assigned` | the assigned epochs, from their assignment to their end |
//! | `runner` | the thread that runs epochs and reports their failures |
//! | `jobs` | opens the runs of jobs |
//! | `epoch`, `leader` | one epoch: this worker as a member, and the coordinator as the leader |
//! | `links`, `exchange` | blocks to and from the other workers |
//! | `membership` | authentication of the other workers |
//! | `peers`, `copies` | copies of committed shards from and for the other workers |
//! | `outbox` | reports until they are acknowledged |
//! | `outage` | decides when to log that the coordinator does not answer |
//! | `observe` | metrics |

mod assigned;
mod claims;
mod copies;
mod epoch;
mod exchange;
pub mod identity;
mod jobs;
mod leader;
mod links;
mod membership;
mod observe;
mod options;
mod outage;
mod outbox;
mod peers;
mod process;
mod room;
mod runner;

pub use claims::MemoryClaim;
pub use observe::describe;
pub use options::WorkerOptions;
pub use process::{WorkerRefusal, run};
