//! Cluster messages as they arrive from a network.
#![no_main]

use exact2048_cluster::wire::{answer_of, params_of, pull_of};
use exact2048_proto::v1;
use libfuzzer_sys::fuzz_target;
use prost::Message;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = v1::PullRequest::decode(bytes) {
        let _ = pull_of(message);
    }
    if let Ok(message) = v1::PullResponse::decode(bytes) {
        let _ = answer_of(message);
    }
    if let Ok(message) = v1::RunParameters::decode(bytes) {
        let _ = params_of(&message);
    }
});
