//! Shells of a cluster. They connect the pure code of `exact2048_coordinator::cluster` to stores, networks and clocks.
//!
//! | Module | Purpose |
//! |---|---|
//! | [`wire`] | converts between messages of `proto/exact2048/v1/coordinator.proto` and types of the pure code |
//! | [`names`] | names of jobs |
//! | [`coordinator`] | the coordinator's process: queue, journals, service, metrics |
//! | [`worker`] | a worker's process: pulls, epochs, blocks from and to other workers |
//! | [`client`] | submitting and watching jobs |
//! | [`view`] | jobs and workers as JSON |
//! | [`token`] | the token of a cluster, in the store and in a folder for local clients |
//! | `random` | ids, tokens and secrets |

pub mod client;
pub mod coordinator;
pub mod names;
mod random;
pub mod token;
pub mod view;
pub mod wire;
pub mod worker;
