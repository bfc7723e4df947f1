//! Members of an epoch in one process, linked by channels.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exact2048_coordinator::cluster::{LayerPart, WorkerId};
use exact2048_coordinator::{RangePolicy, Ranges, Totals};
use exact2048_game::{Lane, Layer};
use exact2048_run::member::{CrewError, Leader, Link, Member, Next, PeerBlock, Seat, neighbours};
use exact2048_solution::{JournalRecord, Owners, Record, ResumeArchive, Run, Segment, WrittenShards, assign};
use exact2048_storage::{Attempt, ShardKind, ShardWriter};
use exact2048_worker::{BytesList, Heap, Tuning, new_block_engine};

const PAUSE: Duration = Duration::from_millis(1);

/// Small, so that there are several ranges.
const WORTH: RangePolicy =
    RangePolicy { least_bytes: 10_000, most_bytes: 20_000, interval: Duration::MAX, room_bytes: None };

/// A message of a member.
enum Message {
    Block(PeerBlock),
    Frontier(Layer),
}

/// The link from one member to another.
struct Way {
    from: usize,
    to: Sender<(usize, Message)>,
}

impl Link for Way {
    fn send(&self, layer: Layer, lane: Lane, checksum: u64, payload: BytesList) {
        let block = PeerBlock { layer, lane, checksum, payload };
        self.to.send((self.from, Message::Block(block))).unwrap();
    }

    fn send_frontier(&self, layer: Layer) {
        self.to.send((self.from, Message::Frontier(layer))).unwrap();
    }
}

/// State of an epoch, shared by all members.
struct Epoch {
    run: Run,
    opening: u64,
    owners: Owners,
    /// Whether the members deal lanes by the formula of older programs.
    is_older: bool,
    ranges: Ranges,
    /// Sums of the blocks sent minus the blocks accepted.
    exchanged: u64,
    shards: Vec<Option<WrittenShards>>,
}

/// The leader of all members, as one of them sees it.
struct Desk {
    me: usize,
    epoch: Arc<Mutex<Epoch>>,
}

impl Leader for Desk {
    fn progressed(&self, _totals: &Totals, _frontier: Layer) {}

    fn layer_done(&self, part: LayerPart) {
        let mut epoch = self.epoch.lock().unwrap();
        epoch.exchanged = epoch.exchanged.wrapping_add(part.sent).wrapping_sub(part.received);
        epoch.ranges.layer_done(self.me, part.totals);
    }

    fn next_range(&self, _is_over: bool) -> Next {
        let mut epoch = self.epoch.lock().unwrap();
        epoch.ranges.order(&WORTH, false, Duration::ZERO);
        let (ordered, is_written) = (epoch.ranges.ordered(), epoch.ranges.is_written());
        drop(epoch);
        match ordered {
            // A member that has written the range gets the order again, because orders may repeat.
            Some(range) => Next::Write(range),
            None if is_written => Next::End,
            None => {
                std::thread::sleep(PAUSE);
                Next::Wait
            }
        }
    }

    fn create_shard(&self, kind: ShardKind, range: Segment) -> Result<ShardWriter, CrewError> {
        let epoch = self.epoch.lock().unwrap();
        let attempt = Attempt { opening: epoch.opening, epoch: 1, member: self.me as u64 };
        let catalog = epoch.run.catalog();
        let identity = catalog.identity_of(kind, range.first, range.last);
        Ok(ShardWriter::create_as(catalog.files(), identity, attempt)?)
    }

    fn written(&self, range: Segment, shards: WrittenShards) -> Result<(), CrewError> {
        let mut epoch = self.epoch.lock().unwrap();
        assert_eq!(epoch.ranges.ordered(), Some(range));
        assert!(epoch.shards[self.me].replace(shards).is_none(), "each member writes its shard once");
        if epoch.shards.iter().any(Option::is_none) {
            return Ok(());
        }
        let written = epoch.shards.iter_mut().filter_map(Option::take);
        let (shards, checkpoint): (Vec<_>, Vec<_>) = written.map(|of| (of.shard, of.checkpoint)).unzip();
        let checkpoint = checkpoint.into_iter().flatten().collect();
        let commit = epoch.ranges.complete(Duration::ZERO).unwrap();
        let (members, range) = (shards.len(), (commit.first, commit.last));
        let (lanes, threads) = if epoch.is_older {
            (Vec::new(), vec![1; members])
        } else {
            (epoch.owners.lanes_by_member(epoch.run.params(), members, range), Vec::new())
        };
        let record = Record { lanes, threads, checkpoint, ..Record::new(commit, shards) };
        Ok(epoch.run.append(JournalRecord::Commit(record))?)
    }
}

/// Passes messages to a member until the epoch is over.
fn receive(member: &Member<Desk>, messages: &Receiver<(usize, Message)>, is_over: &AtomicBool) {
    loop {
        match messages.recv_timeout(PAUSE) {
            Ok((from, Message::Block(block))) => member.accept(from, block).unwrap(),
            Ok((from, Message::Frontier(layer))) => member.frontier_of(from, layer),
            Err(RecvTimeoutError::Timeout) if !is_over.load(Ordering::Relaxed) => {}
            Err(_) => return,
        }
    }
}

/// Solves a segment with `count` members, each with a separate worker.
pub fn run_segment(
    run: Run,
    opening: u64,
    segment: Segment,
    scratch: &Path,
    count: usize,
    least_apart: Option<u64>,
) -> Run {
    run_segment_as(run, opening, segment, scratch, (count, false), least_apart)
}

/// Solves a segment with `count` members. The owners of lanes and the records are those of older programs, if
/// `is_older`.
pub fn run_segment_as(
    run: Run,
    opening: u64,
    segment: Segment,
    scratch: &Path,
    (count, is_older): (usize, bool),
    least_apart: Option<u64>,
) -> Run {
    let params = run.params().clone();
    let (dense_rows, piece_bytes) = (Tuning::DENSE_ROWS, Tuning::PIECE_BYTES);
    let tuning = Tuning { limit_bytes: 1 << 30, heap: Heap::of(|| 0), dense_rows, piece_bytes };
    let archive = Arc::new(ResumeArchive::new(&params, run.archive().clone()));
    let ranges = Ranges::new(segment, *params.contents(), count, Duration::ZERO).apart(least_apart);
    let shards = vec![None; count];
    let deal = if is_older { Owners::by_formula } else { assign };
    let owners = deal(&params, &vec![1; count]);
    let epoch = Epoch { run, opening, owners: owners.clone(), is_older, ranges, exchanged: 0, shards };
    let epoch = Arc::new(Mutex::new(epoch));
    let (to, from): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
    let members = (0..count).map(|me| {
        let seat = Seat {
            params: params.clone(),
            segment,
            members: (0..count as u64).map(WorkerId).collect(),
            owners: owners.clone(),
            me,
            window_layers: segment.layers(),
        };
        let way = |other: usize| Box::new(Way { from: me, to: to[other].clone() }) as Box<dyn Link>;
        let neighbours = neighbours(&seat).into_iter().enumerate();
        let links = neighbours.map(|(other, is_neighbour)| is_neighbour.then(|| way(other))).collect();
        let worker = new_block_engine(&params, tuning, scratch.to_path_buf().into(), archive.clone());
        Member::new(seat, worker, links, Desk { me, epoch: Arc::clone(&epoch) }, Arc::default())
    });
    let members: Vec<Member<Desk>> = members.collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (member, messages) in members.iter().zip(from) {
            let is_over = &is_over;
            scope.spawn(move || receive(member, &messages, is_over));
        }
        let running: Vec<_> = members.iter().map(|member| scope.spawn(|| member.run(2).unwrap())).collect();
        running.into_iter().for_each(|member| member.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
    });
    drop(members);
    let epoch = Arc::into_inner(epoch).unwrap().into_inner().unwrap();
    assert_eq!(epoch.exchanged, 0, "every sent block was accepted");
    epoch.run
}
