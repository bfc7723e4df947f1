//! Tests of the whole program. Most tests start it. All tests are in one binary, because linking takes long.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

#[cfg(feature = "net")]
mod away;
#[cfg(feature = "net")]
mod clients;
#[cfg(feature = "net")]
mod cluster;
#[cfg(feature = "net")]
mod cluster_attacks;
#[cfg(feature = "net")]
mod cluster_disk;
#[cfg(feature = "net")]
mod cluster_faults;
#[cfg(feature = "net")]
mod cluster_members;
#[cfg(feature = "net")]
mod cluster_token;
mod combo;
mod commands;
#[cfg(feature = "net")]
mod cones;
#[cfg(feature = "net")]
mod containers;
#[cfg(feature = "net")]
mod coordinator;
#[cfg(feature = "net")]
mod coordinator_calls;
#[cfg(feature = "net")]
mod coordinator_strange_calls;
mod crash;
mod damage;
mod damaged_journals;
#[cfg(feature = "net")]
mod dashboard;
mod determinism;
mod disk;
mod display;
mod evaluate;
#[cfg(feature = "net")]
mod explorer;
#[cfg(feature = "net")]
mod explorer_description;
mod explorer_formations;
#[cfg(feature = "net")]
mod explorer_page;
#[cfg(feature = "export")]
mod export;
mod formations;
mod formats;
mod from;
#[cfg(feature = "net")]
mod guides;
#[cfg(feature = "export")]
mod json;
mod kept_layers;
#[cfg(feature = "net")]
mod loose_stones;
mod memory;
mod names;
#[cfg(feature = "net")]
mod networks;
mod odd_files;
mod output;
mod payloads;
mod plan;
mod policies;
#[cfg(feature = "net")]
mod ports;
mod precision;
mod published;
mod reference;
mod report;
mod rounding;
mod samples;
#[cfg(feature = "net")]
mod scale;
#[cfg(feature = "net")]
mod serving;
#[cfg(feature = "net")]
mod serving_limits;
#[cfg(feature = "net")]
mod serving_security;
#[cfg(feature = "net")]
mod settings;
mod stats;
#[cfg(feature = "net")]
mod status_page;
#[cfg(feature = "net")]
mod stores;
#[cfg(feature = "net")]
mod systems;
mod usage;
mod verify;
#[cfg(feature = "net")]
mod worker;
