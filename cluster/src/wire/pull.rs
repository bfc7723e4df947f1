//! Pulls of workers.

use exact2048_coordinator::Totals;
use exact2048_coordinator::cluster::{
    EpochId, EpochStage, Incarnation, LayerPart, PROTOCOL_VERSION, Pull, WorkerFailure, WorkerId,
    WorkerReport,
};
use exact2048_game::Layer;
use exact2048_net::text::plain_words;
use exact2048_proto::v1;
use v1::worker_failed::Failure as FailureMessage;
use v1::worker_report::Report;

use super::{
    MAX_COUNT, MAX_RECORD_BYTES, MAX_WORDS_BYTES, WireError, address_of, check_version, job_of, threads_of,
    write_message, write_of,
};

/// Converts a pull to its message.
#[must_use]
pub fn pull_message(pull: &Pull) -> v1::PullRequest {
    v1::PullRequest {
        protocol_version: pull.version,
        worker: pull.worker.0,
        incarnation: pull.incarnation.0,
        threads: pull.threads,
        memory_bytes: pull.memory_bytes,
        address: pull.address.clone(),
        leaving: pull.leaving,
        epoch: pull.epoch.map(|epoch| epoch.0),
        stage: stage_message(pull.stage).into(),
        first_report: pull.first_report,
        reports: pull.reports.iter().map(report_message).collect(),
    }
}

/// Checks and converts a pull.
///
/// # Errors
///
/// [`WireError::Version`] if the worker has another version, regardless of other errors. Otherwise
/// [`WireError::Field`].
pub fn pull_of(message: v1::PullRequest) -> Result<Pull, WireError> {
    // The version is checked first, because in another version every other field may have another meaning.
    check_version(message.protocol_version)?;
    if message.first_report > u64::MAX / 2 {
        return Err(WireError::field("first_report", "expected less than 2^63"));
    }
    let reports = message
        .reports
        .into_iter()
        .enumerate()
        .map(|(i, report)| report_of(report).map_err(|error| error.within(&format!("reports[{i}]"))));
    Ok(Pull {
        version: PROTOCOL_VERSION,
        worker: WorkerId(message.worker),
        incarnation: Incarnation(message.incarnation),
        threads: threads_of(message.threads)?,
        memory_bytes: message.memory_bytes,
        address: address_of(message.address)?,
        leaving: message.leaving,
        epoch: message.epoch.map(EpochId),
        stage: stage_of(message.stage, message.epoch.is_some())?,
        first_report: message.first_report,
        reports: reports.collect::<Result<_, _>>()?,
    })
}

fn stage_message(stage: EpochStage) -> v1::EpochStage {
    match stage {
        EpochStage::Preparing => v1::EpochStage::Preparing,
        EpochStage::Working => v1::EpochStage::Working,
        EpochStage::Waiting => v1::EpochStage::Waiting,
    }
}

/// Checks and converts the stage. A worker outside an epoch may omit it.
fn stage_of(message: i32, in_epoch: bool) -> Result<EpochStage, WireError> {
    match v1::EpochStage::try_from(message) {
        Ok(v1::EpochStage::Preparing) => Ok(EpochStage::Preparing),
        Ok(v1::EpochStage::Working) => Ok(EpochStage::Working),
        Ok(v1::EpochStage::Waiting) => Ok(EpochStage::Waiting),
        Ok(v1::EpochStage::Unspecified) if !in_epoch => Ok(EpochStage::Preparing),
        Ok(v1::EpochStage::Unspecified) | Err(_) => {
            Err(WireError::field("stage", format!("expected a known stage, found {message}")))
        }
    }
}

fn report_message(report: &WorkerReport) -> v1::WorkerReport {
    let report = match report {
        WorkerReport::LayerDone { epoch, part: LayerPart { layer, totals, sent, received } } => {
            Report::LayerDone(v1::LayerDone {
                epoch: epoch.0,
                layer: layer.0,
                states: totals.states,
                afterstates: totals.afterstates,
                fingerprint_high: (totals.fingerprint >> 64) as u64,
                fingerprint_low: totals.fingerprint as u64,
                sealed_bytes: totals.sealed_bytes,
                sent: *sent,
                received: *received,
            })
        }
        WorkerReport::ShardWritten { shard, record } => Report::ShardWritten(v1::ShardWritten {
            shard: Some(write_message(*shard)),
            record: record.clone(),
        }),
        WorkerReport::Failed { epoch, failure } => {
            let failure = Some(failure_message(failure));
            Report::Failed(v1::WorkerFailed { epoch: epoch.map(|epoch| epoch.0), failure })
        }
        WorkerReport::Well => Report::Well(v1::WorkerWell {}),
    };
    v1::WorkerReport { report: Some(report) }
}

fn report_of(message: v1::WorkerReport) -> Result<WorkerReport, WireError> {
    match message.report {
        None => Err(WireError::field("report", "expected a known report")),
        Some(Report::LayerDone(done)) => {
            let part = part_of(&done).map_err(|error| error.within("layer_done"))?;
            Ok(WorkerReport::LayerDone { epoch: EpochId(done.epoch), part })
        }
        Some(Report::ShardWritten(written)) => {
            written_of(written).map_err(|error| error.within("shard_written"))
        }
        Some(Report::Failed(failed)) => {
            let failure = failure_of(failed.failure).map_err(|error| error.within("failed"))?;
            Ok(WorkerReport::Failed { epoch: failed.epoch.map(EpochId), failure })
        }
        Some(Report::Well(v1::WorkerWell {})) => Ok(WorkerReport::Well),
    }
}

fn part_of(done: &v1::LayerDone) -> Result<LayerPart, WireError> {
    for (field, count) in
        [("states", done.states), ("afterstates", done.afterstates), ("sealed_bytes", done.sealed_bytes)]
    {
        WireError::unless(count < MAX_COUNT, field, || {
            format!("expected less than {MAX_COUNT}, found {count}")
        })?;
    }
    let totals = Totals {
        states: done.states,
        afterstates: done.afterstates,
        fingerprint: u128::from(done.fingerprint_high) << 64 | u128::from(done.fingerprint_low),
        sealed_bytes: done.sealed_bytes,
    };
    Ok(LayerPart { layer: Layer(done.layer), totals, sent: done.sent, received: done.received })
}

fn written_of(written: v1::ShardWritten) -> Result<WorkerReport, WireError> {
    let shard = written.shard.ok_or_else(|| WireError::field("shard", "expected a shard, found none"))?;
    let shard = write_of(shard).map_err(|error| error.within("shard"))?;
    let length = written.record.len();
    WireError::unless(length <= MAX_RECORD_BYTES, "record", || {
        format!("expected at most {MAX_RECORD_BYTES} bytes, found {length}")
    })?;
    Ok(WorkerReport::ShardWritten { shard, record: written.record })
}

fn failure_message(failure: &WorkerFailure) -> FailureMessage {
    match failure {
        WorkerFailure::DiskFull(what) => FailureMessage::DiskFull(clip(what)),
        WorkerFailure::Peer(peer) => FailureMessage::Peer(peer.0),
        WorkerFailure::BadBlock { peer, what } => {
            FailureMessage::BadBlock(v1::BadBlock { worker: peer.0, what: clip(what) })
        }
        WorkerFailure::ShardLost { job, file } => {
            FailureMessage::ShardLost(v1::ShardLost { job: job.0.clone(), file: clip(file) })
        }
        WorkerFailure::Other(what) => FailureMessage::Other(clip(what)),
    }
}

fn failure_of(message: Option<FailureMessage>) -> Result<WorkerFailure, WireError> {
    match message {
        None => Err(WireError::field("failure", "expected a known failure")),
        Some(FailureMessage::DiskFull(what)) => Ok(WorkerFailure::DiskFull(clip(&what))),
        Some(FailureMessage::Peer(peer)) => Ok(WorkerFailure::Peer(WorkerId(peer))),
        Some(FailureMessage::Other(what)) => Ok(WorkerFailure::Other(clip(&what))),
        Some(FailureMessage::BadBlock(v1::BadBlock { worker, what })) => {
            Ok(WorkerFailure::BadBlock { peer: WorkerId(worker), what: clip(&what) })
        }
        Some(FailureMessage::ShardLost(lost)) => lost_of(&lost).map_err(|error| error.within("shard_lost")),
    }
}

fn lost_of(lost: &v1::ShardLost) -> Result<WorkerFailure, WireError> {
    Ok(WorkerFailure::ShardLost { job: job_of("job", &lost.job)?, file: clip(&lost.file) })
}

/// Truncates a text and escapes control characters.
fn clip(text: &str) -> String {
    plain_words(text, MAX_WORDS_BYTES)
}

#[cfg(test)]
mod tests {
    use super::super::damaged::{any_damage, damaged};
    use super::*;
    use exact2048_coordinator::cluster::{JobId, WriteShard};
    use proptest::prelude::*;

    fn any_layers() -> impl Strategy<Value = (Layer, Layer)> {
        (2u32..1000, 0u32..1000).prop_map(|(first, more)| (Layer(2 * first), Layer(2 * (first + more))))
    }

    fn any_words() -> impl Strategy<Value = String> {
        "[ -~äß€]{0,40}"
    }

    fn any_failure() -> impl Strategy<Value = WorkerFailure> {
        prop_oneof![
            any_words().prop_map(WorkerFailure::DiskFull),
            (any::<u64>(), any_words())
                .prop_map(|(id, what)| WorkerFailure::BadBlock { peer: WorkerId(id), what }),
            any::<u64>().prop_map(|id| WorkerFailure::Peer(WorkerId(id))),
            any_words().prop_map(WorkerFailure::Other),
            ("[a-z0-9][a-z0-9._-]{0,8}", any_words())
                .prop_map(|(job, file)| WorkerFailure::ShardLost { job: JobId(job), file }),
        ]
    }

    fn any_report() -> impl Strategy<Value = WorkerReport> {
        let count = || 0..MAX_COUNT;
        prop_oneof![
            (any::<u64>(), any::<u32>(), count(), count(), any::<[u64; 4]>(), count()).prop_map(
                |(epoch, layer, states, afterstates, [high, low, sent, received], sealed_bytes)| {
                    let fingerprint = u128::from(high) << 64 | u128::from(low);
                    let layer = Layer(layer);
                    let totals = Totals { states, afterstates, fingerprint, sealed_bytes };
                    let part = LayerPart { layer, totals, sent, received };
                    WorkerReport::LayerDone { epoch: EpochId(epoch), part }
                }
            ),
            (any::<u64>(), any_layers(), ".{0,40}").prop_map(|(epoch, (first, last), record)| {
                let epoch = EpochId(epoch);
                WorkerReport::ShardWritten { shard: WriteShard { epoch, first, last }, record }
            }),
            (any::<Option<u64>>(), any_failure())
                .prop_map(|(epoch, failure)| WorkerReport::Failed { epoch: epoch.map(EpochId), failure }),
            Just(WorkerReport::Well),
        ]
    }

    fn any_pull() -> impl Strategy<Value = Pull> {
        let numbers = (any::<u64>(), any::<u64>(), 1..=super::super::MAX_THREADS, any::<u64>());
        let stage =
            prop_oneof![Just(EpochStage::Preparing), Just(EpochStage::Working), Just(EpochStage::Waiting)];
        let rest = (any::<bool>(), any::<Option<u64>>(), stage, 0..1u64 << 63);
        (
            numbers,
            "http://[a-z][a-z0-9]{0,12}:[1-9][0-9]{0,3}",
            rest,
            prop::collection::vec(any_report(), 0..8),
        )
            .prop_map(
                |(
                    (worker, incarnation, threads, memory_bytes),
                    address,
                    (leaving, epoch, stage, first_report),
                    reports,
                )| {
                    Pull {
                        version: PROTOCOL_VERSION,
                        worker: WorkerId(worker),
                        incarnation: Incarnation(incarnation),
                        threads,
                        memory_bytes,
                        address,
                        leaving,
                        epoch: epoch.map(EpochId),
                        stage,
                        first_report,
                        reports,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn pulls_round_trip(pull in any_pull()) {
            prop_assert_eq!(pull_of(pull_message(&pull)).unwrap(), pull);
        }

        #[test]
        fn damaged_pulls_are_refused_or_sound(pull in any_pull(), damage in any_damage()) {
            let Some(message) = damaged(&pull_message(&pull), &damage) else { return Ok(()) };
            if let Ok(read) = pull_of(message) {
                prop_assert_eq!(pull_of(pull_message(&read)).unwrap(), read);
            }
        }
    }

    fn good() -> v1::PullRequest {
        v1::PullRequest {
            protocol_version: PROTOCOL_VERSION,
            threads: 1,
            address: "http://node:2048".to_owned(),
            ..v1::PullRequest::default()
        }
    }

    #[test]
    fn the_version_comes_first() {
        let other = v1::PullRequest { protocol_version: PROTOCOL_VERSION + 1, threads: 0, ..good() };
        let expected = WireError::Version { expected: PROTOCOL_VERSION, got: PROTOCOL_VERSION + 1 };
        assert_eq!(pull_of(other), Err(expected));
        assert!(pull_of(good()).is_ok());
    }

    #[test]
    fn wrong_fields_are_named() {
        let reports = |report| v1::PullRequest { reports: vec![v1::WorkerReport { report }], ..good() };
        let written = |shard, record| reports(Some(Report::ShardWritten(v1::ShardWritten { shard, record })));
        let failed = |failure| reports(Some(Report::Failed(v1::WorkerFailed { epoch: None, failure })));
        let layers = |first_layer, last_layer| Some(v1::WriteShard { epoch: 1, first_layer, last_layer });
        let lost = v1::ShardLost { job: "../x".to_owned(), file: String::new() };
        let counts = v1::LayerDone { states: MAX_COUNT, ..v1::LayerDone::default() };
        for (wrong, named) in [
            (v1::PullRequest { threads: 0, ..good() }, "threads"),
            (v1::PullRequest { address: "x".repeat(513), ..good() }, "address"),
            (v1::PullRequest { address: String::new(), ..good() }, "address"),
            (v1::PullRequest { address: "\x1b[31mhost:1".to_owned(), ..good() }, "address"),
            (v1::PullRequest { first_report: u64::MAX, ..good() }, "first_report"),
            (v1::PullRequest { epoch: Some(1), ..good() }, "stage"),
            (v1::PullRequest { stage: 9, ..good() }, "stage"),
            (reports(None), "reports[0].report"),
            (reports(Some(Report::LayerDone(counts))), "reports[0].layer_done.states"),
            (written(None, String::new()), "reports[0].shard_written.shard"),
            (written(layers(6, 4), String::new()), "reports[0].shard_written.shard.last_layer"),
            (written(layers(5, 7), String::new()), "reports[0].shard_written.shard.first_layer"),
            (written(layers(4, 4), "x".repeat(20_000)), "reports[0].shard_written.record"),
            (failed(None), "reports[0].failed.failure"),
            (failed(Some(FailureMessage::ShardLost(lost))), "reports[0].failed.shard_lost.job"),
        ] {
            match pull_of(wrong) {
                Err(WireError::Field { field, .. }) => assert_eq!(field, named),
                other => panic!("{named}: {other:?}"),
            }
        }
    }

    #[test]
    fn words_are_cut_and_escaped() {
        let what = "\x1b[2Jgone\nWARN forged".to_owned();
        for failure in [
            FailureMessage::Other(what.clone()),
            FailureMessage::DiskFull(what.clone()),
            FailureMessage::BadBlock(v1::BadBlock { worker: 1, what }),
        ] {
            let taken = failure_of(Some(failure)).unwrap().to_string();
            assert!(taken.ends_with("\\u{1b}[2Jgone\\nWARN forged"), "{taken}");
        }

        let failure = WorkerFailure::Other("ä".repeat(MAX_WORDS_BYTES));
        let WorkerFailure::Other(what) = failure_of(Some(failure_message(&failure))).unwrap() else {
            panic!()
        };
        assert!(what.len() <= MAX_WORDS_BYTES && what.len() > MAX_WORDS_BYTES - 4);
    }
}
