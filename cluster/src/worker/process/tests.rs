//! Tests of the content of pulls, without a coordinator.

use std::sync::atomic::Ordering;

use exact2048_coordinator::cluster::{EpochId, JobId, Secret, Share};
use exact2048_game::Params;
use exact2048_net::client::ClientOptions;
use exact2048_net::gate::Allowed;
use exact2048_net::limits::ServerLimits;
use exact2048_net::serve::ServerOptions;
use exact2048_net::tls::TlsFiles;
use exact2048_net::token::RequiredToken;
use exact2048_solution::{Holdings, Recipe};
use exact2048_worker::{Heap, Tuning};

use super::super::assigned::Start;
use super::*;
use crate::wire::{Assignment, OpeningId};

/// A worker without a runner, the epoch that the runner would be in, and the epochs that it would start.
async fn process(folder: &std::path::Path) -> (Process, Arc<Present>, std::sync::mpsc::Receiver<Arc<Start>>) {
    let client = ClientOptions {
        server: "http://127.0.0.1:1".to_owned(),
        tls: TlsFiles::default(),
        token: None,
        insecure: false,
    };
    let listening = ServerOptions {
        listen: ([127, 0, 0, 1], 0).into(),
        tls: TlsFiles::default(),
        token: RequiredToken::None,
        is_health_open: false,
        insecure: false,
        limits: ServerLimits::default(),
        allowed: Allowed::default(),
    };
    let (starts, received) = std::sync::mpsc::channel();
    let identity = Identity::take(folder).unwrap();
    let present: Arc<Present> = Arc::default();
    let epochs = AssignedEpochs::new(identity.id, Arc::clone(&present), starts);
    let process = Process {
        options: WorkerOptions {
            client,
            advertise: "http://127.0.0.1:2".to_owned(),
            threads: 1,
            memory_bytes: 1 << 30,
            tuning: Tuning {
                limit_bytes: 1 << 30,
                heap: Heap::of(|| 0),
                dense_rows: Tuning::DENSE_ROWS,
                piece_bytes: Tuning::PIECE_BYTES,
            },
            store: StoreSettings::default(),
            folder: folder.to_path_buf(),
        },
        identity,
        outbox: Arc::default(),
        epochs,
        capacity: Bound::new(listening).await.unwrap().capacity,
        last_needed_memory: None,
        outage: Outage::default(),
    };
    (process, present, received)
}

/// Creates an answer that withdraws an epoch and assigns the next one.
fn assigned(number: u64) -> Answer {
    let params = Params::small("2x2");
    let share = Share {
        job: JobId("job".to_owned()),
        epoch: EpochId(number),
        segment: Recipe::new(&params, &Holdings::default()).steps()[0],
        params,
        members: Vec::new(),
        window_layers: 4,
        secret: Secret::new([1; 16]),
    };
    Answer {
        acknowledged: 0,
        withdrawn: number.checked_sub(1).map(EpochId),
        share: Some(Assignment { share, run_url: "file:///nowhere".to_owned(), opening: OpeningId(1) }),
        progress: None,
        write: None,
        needed_memory: None,
        hold: Duration::ZERO,
    }
}

/// If a pull named such an epoch, the coordinator would wait for a worker that hangs in an ended epoch, without blame.
#[tokio::test]
async fn an_epoch_that_waits_for_the_runner_is_not_named() {
    let folder = tempfile::tempdir().unwrap();
    let (mut process, present, starts) = process(folder.path()).await;
    let named = |process: &Process| process.pull(false).epoch;
    process.take(assigned(1));
    let first = starts.try_recv().unwrap();
    assert_eq!((first.assignment.share.epoch, named(&process)), (EpochId(1), None));
    *present.entered.lock() = Some(EpochId(1));
    assert_eq!(named(&process), Some(EpochId(1)));
    // The next epoch begins, but the runner does not leave the first.
    process.take(assigned(2));
    assert!(first.stop.load(Ordering::Relaxed));
    let second = starts.try_recv().unwrap().assignment.share.epoch;
    assert_eq!((second, named(&process)), (EpochId(2), Some(EpochId(1))));
    *present.entered.lock() = Some(EpochId(2));
    assert_eq!(named(&process), Some(EpochId(2)));
}

/// Otherwise a stopping worker would wait for a withdrawal that never arrives.
#[tokio::test]
async fn an_epoch_that_failed_here_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (mut process, _, starts) = process(folder.path()).await;
    let nothing = || Answer { share: None, withdrawn: None, ..assigned(1) };
    process.take(assigned(1));
    let first = starts.try_recv().unwrap();
    process.take(nothing());
    assert!(process.epochs.current().is_some());
    first.has_left.store(true, Ordering::Relaxed);
    process.take(nothing());
    assert!(process.epochs.current().is_none() && first.stop.load(Ordering::Relaxed));
    // A late share does not begin the epoch again. The share of the next epoch begins that epoch.
    process.take(assigned(1));
    assert!(process.epochs.current().is_none());
    process.take(assigned(2));
    assert_eq!(process.epochs.current(), Some(EpochId(2)));
}

/// A coordinator of another store does not know the epochs of the coordinator before, and may use their numbers again.
#[tokio::test]
async fn a_coordinator_of_another_store_may_reuse_numbers_of_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let (mut process, _, starts) = process(folder.path()).await;
    process.take(assigned(1));
    process.take(assigned(7));
    let mut other = assigned(1);
    other.withdrawn = Some(EpochId(7));
    if let Some(assignment) = &mut other.share {
        assignment.share.secret = Secret::new([2; 16]);
    }
    process.take(other.clone());
    assert_eq!(process.epochs.current(), Some(EpochId(1)));
    process.take(other);
    let begun = starts.try_iter().map(|start| start.assignment.share.epoch.0);
    assert_eq!(begun.collect::<Vec<_>>(), [1, 7, 1]);
}
