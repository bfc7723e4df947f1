//! Messages of the cluster, as they come from a network. What is understood is said again in the same words.
#![no_main]

use exact2048_cluster::wire::{Answer, params_of, pull_message, pull_of};
use exact2048_proto::v1;
use libfuzzer_sys::fuzz_target;
use prost::Message;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = v1::PullRequest::decode(bytes)
        && let Ok(pull) = pull_of(message)
    {
        let again = pull_of(pull_message(&pull)).expect("what was understood");
        assert_eq!(again, pull);
    }
    if let Ok(message) = v1::PullResponse::decode(bytes) {
        let _ = Answer::try_from(message);
    }
    if let Ok(message) = v1::RunParameters::decode(bytes) {
        let _ = params_of(&message);
    }
});
