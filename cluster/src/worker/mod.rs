//! A worker's process: it asks the coordinator what to do, computes its share of an epoch, and exchanges blocks with
//! the other workers.
//!
//! | Module | Its job |
//! |---|---|
//! | `claims` | the memory that workers of one machine may use |
//! | [`identity`] | who a worker is, also after it was started again |
//! | `process` | pulls: what is reported, what is answered |
//! | `runner` | the thread that runs epochs, and what it reports of their failures |
//! | `jobs` | the run of a job, as it is in the store |
//! | `epoch`, `leader` | one epoch: a member, and the coordinator as it sees it |
//! | `links`, `exchange` | blocks to and from the other workers |
//! | `membership` | who may speak to this worker |
//! | `peers`, `copies` | copies of committed shards from and for the other workers |
//! | `outbox` | reports until they are acknowledged |
//! | `outage` | when a coordinator that does not answer is logged |
//! | `observe` | what is counted and measured |

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
mod outage;
mod outbox;
mod peers;
mod process;
mod runner;

pub use claims::MemoryClaim;
pub use observe::describe;
pub use process::{WorkerEnd, WorkerOptions, WorkerRefusal, run};
