use std::collections::{BTreeMap, BTreeSet};

use exact2048_game::Precision;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::owners::assign;
use crate::parts::Parts;
use crate::records::{Amended, Amendment};

/// Number of layers that the tests commit, from the first layer on.
const LAYERS: u32 = 12;

/// Lanes that several members own.
const LANES: [Lane; 4] = [Lane::new(0, 0), Lane::new(1, 16), Lane::new(2, 32), Lane::new(1, 32)];

const KINDS: [ShardKind; 2] = [ShardKind::Reach, ShardKind::Values];

fn params() -> Params {
    Params::small("2x2")
}

/// An empty run, which exists as long as its folder.
fn run() -> (TempDir, TypedRun<JournalRecord>) {
    let place = tempfile::tempdir().unwrap();
    let run = TypedRun::create(&place.path().join("run"), &serde_json::json!({})).unwrap();
    (place, run)
}

fn catalog(run: &TypedRun<JournalRecord>) -> Catalog {
    Catalog::new(run, &params(), 7)
}

/// Counts that differ from layer to layer; some layers have no states.
fn counts(layer: Layer) -> LayerCounts {
    LayerCounts { layer, states: u64::from(layer.0 % 6), afterstates: 1 }
}

fn range(first: u32, last: u32) -> LayerRange {
    LayerRange { first: Layer(first), last: Layer(last) }
}

/// The record with this number, written by this many members of a cluster; 0 stands for a process outside a cluster.
fn record(number: usize, phase: Phase, LayerRange { first, last }: LayerRange, members: u32) -> Record {
    let layers = match phase {
        Phase::Enumerate => first.to(last).map(counts).collect(),
        Phase::BackUp => Vec::new(),
    };
    let shard = |member: u32| ShardRecord {
        file: format!("{number}-{member}.shard"),
        kind: phase.shard_kind(),
        first_layer: first.0,
        last_layer: last.0,
        bytes: 1,
        frames: 1,
        items: 1,
        header_checksum: number as u64,
    };
    // Every third record of several members is older than the dealing by size.
    let (older, threads) = (number % 3 == 2, (1..=members).collect::<Vec<_>>());
    let dealt = || assign(&params(), &threads);
    let lanes =
        (members > 1 && !older).then(|| dealt().lanes_by_member(&params(), members as usize, (first, last)));
    Record {
        commit: Commit { phase, first, last, layers, fingerprint: None },
        shards: (0..members.max(1)).map(shard).collect(),
        lanes: lanes.unwrap_or_default(),
        threads: if older { threads } else { Vec::new() },
        checkpoint: Vec::new(),
        took: None,
    }
}

/// A change to a catalog. A number that is too large is taken modulo the number of records or shards.
#[derive(Clone, Debug)]
enum Step {
    /// Layers are committed, by this many members.
    Commit(Phase, LayerRange, u32),
    /// The layers of an earlier record are committed once more.
    Again(usize, u32),
    /// The commit of a record is retracted.
    Retract(usize),
    /// The reach of layers is removed.
    LetGo([LayerRange; 2]),
    /// A shard is lost that holds a layer.
    Lose(ShardKind, Layer, usize),
    /// A shard that no longer counts is lost.
    LoseInVain(usize),
    /// The shard that holds a layer is opened again.
    Reopen(ShardKind, Layer),
    /// Parameters change.
    Amend,
}

fn ranges(most: u32) -> impl Strategy<Value = LayerRange> {
    (0..LAYERS, 0..most).prop_map(|(first, more)| LayerRange {
        first: Layer::FIRST.up(first),
        last: Layer::FIRST.up((first + more).min(LAYERS - 1)),
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let phase = prop_oneof![2 => Just(Phase::Enumerate), 1 => Just(Phase::BackUp)];
    let kind = || prop::sample::select(KINDS.to_vec());
    let layer = || (0..LAYERS).prop_map(|number| Layer::FIRST.up(number));
    prop_oneof![
        6 => (phase, ranges(5), 0u32..4).prop_map(|(phase, layers, by)| Step::Commit(phase, layers, by)),
        3 => (any::<usize>(), 0u32..4).prop_map(|(number, by)| Step::Again(number, by)),
        2 => any::<usize>().prop_map(Step::Retract),
        3 => [ranges(9), ranges(9)].prop_map(Step::LetGo),
        2 => (kind(), layer(), any::<usize>()).prop_map(|(kind, layer, n)| Step::Lose(kind, layer, n)),
        1 => any::<usize>().prop_map(Step::LoseInVain),
        1 => (kind(), layer()).prop_map(|(kind, layer)| Step::Reopen(kind, layer)),
        1 => Just(Step::Amend),
    ]
}

/// The expected content of a catalog, layer by layer.
#[derive(Default)]
struct Model {
    /// All records that were ever added.
    records: Vec<Record>,
    /// By kind and layer, the number of the record whose shards hold the layer.
    held: BTreeMap<(ShardKind, Layer), usize>,
    /// The numbers of the records whose reach was removed, and whose counts stay.
    counted: Vec<usize>,
}

impl Model {
    fn commit(&self, number: usize) -> &Commit {
        &self.records[number].commit
    }

    fn layers(&self, number: usize) -> impl Iterator<Item = (ShardKind, Layer)> + use<> {
        let &Commit { phase, first, last, .. } = self.commit(number);
        first.to(last).map(move |layer| (phase.shard_kind(), layer))
    }

    /// The numbers of the records whose shards count.
    fn stored(&self) -> BTreeSet<usize> {
        self.held.values().copied().collect()
    }

    fn lose(&mut self, lost: &BTreeSet<usize>) {
        self.held.retain(|_, number| !lost.contains(number));
    }

    fn add(&mut self, record: Record) {
        let number = self.records.len();
        self.records.push(record);
        let replaced = self.layers(number).filter_map(|layer| self.held.get(&layer).copied()).collect();
        self.lose(&replaced);
        self.held.extend(self.layers(number).map(|layer| (layer, number)));
    }

    fn retract(&mut self, commit: &Commit) {
        let same = self.stored().into_iter().filter(|&number| self.commit(number) == commit).collect();
        self.lose(&same);
    }

    /// The records of enumerated ranges that lie inside one of `removed`.
    fn within(&self, removed: &[LayerRange]) -> BTreeSet<usize> {
        let is_within = |number: &usize| {
            let &Commit { phase, first, last, .. } = self.commit(*number);
            phase == Phase::Enumerate
                && removed.iter().any(|range| range.first <= first && last <= range.last)
        };
        self.stored().into_iter().filter(is_within).collect()
    }

    fn forget_reach(&mut self, removed: &[LayerRange]) {
        let gone = self.within(removed);
        let known: BTreeSet<_> = self.counted.iter().flat_map(|&number| self.layers(number)).collect();
        for &number in &gone {
            // Layers that are counted already are not counted twice.
            if !self.layers(number).all(|layer| known.contains(&layer)) {
                self.counted.push(number);
            }
        }
        self.lose(&gone);
    }

    /// The shards of some records, in the order of the records.
    fn shards(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<&ShardRecord> {
        numbers.into_iter().flat_map(|number| &self.records[number].shards).collect()
    }

    /// Requires that a catalog agrees with the model.
    fn check(&self, catalog: &Catalog) {
        let stored = self.stored();
        for kind in KINDS {
            for layer in Layer::FIRST.to(Layer::FIRST.up(LAYERS)) {
                let holder = self.held.get(&(kind, layer)).copied();
                assert_eq!(catalog.covers(kind, layer.0), holder.is_some(), "{kind} of layer {layer}");
                let found = catalog.find_layer(kind, layer.0);
                let found: Vec<_> = found.iter().map(|shard| &shard.record).collect();
                assert_eq!(found, self.shards(holder), "{kind} of layer {layer}");
                for lane in LANES {
                    let wanted = holder.map(|number| {
                        let Record { shards, lanes, threads, .. } = &self.records[number];
                        if !threads.is_empty() {
                            return &shards[Owners::by_formula(&params(), threads).owner(lane)];
                        }
                        let named = lanes.iter().position(|lanes| lanes.contains(&lane.code()));
                        &shards[named.unwrap_or(0)]
                    });
                    let found = catalog.find(kind, Parts::key(layer, lane, 1));
                    let found = found.as_ref().map(|shard| &shard.record);
                    assert_eq!(found, wanted, "{kind} of layer {layer}, {lane}");
                }
            }
        }

        let order = |number: &usize| {
            let commit = self.commit(*number);
            (commit.phase, commit.first, commit.last)
        };
        let mut numbers: Vec<usize> = stored.iter().copied().collect();
        numbers.sort_by_key(order);
        let found = catalog.shards();
        assert_eq!(found.iter().map(|shard| &shard.record).collect::<Vec<_>>(), self.shards(numbers.clone()));
        let serials: BTreeSet<u64> = found.iter().map(|shard| shard.serial).collect();
        assert_eq!(serials.len(), found.len());

        numbers.extend(&self.counted);
        numbers.sort_by_key(order);
        let mut commits = catalog.commits();
        assert!(commits.is_sorted_by_key(|commit| (commit.phase, commit.first)));
        commits.sort_by_key(|commit| (commit.phase, commit.first, commit.last));
        assert!(commits.iter().eq(numbers.iter().map(|&number| self.commit(number))), "{commits:?}");
        assert_eq!(catalog.holdings().stored().count(), stored.len());
        let layers = numbers.iter().flat_map(|&number| self.layers(number));
        let layers: BTreeSet<Layer> =
            layers.filter(|(kind, _)| *kind == ShardKind::Reach).map(|(_, layer)| layer).collect();
        let mut wanted: Vec<LayerCounts> = layers.into_iter().map(counts).collect();
        wanted.retain(|counts| counts.states > 0);
        assert_eq!(catalog.layer_counts(), wanted);
        assert_eq!(catalog.has_values(), self.held.keys().any(|(kind, _)| *kind == ShardKind::Values));

        // A journal names the shards of all its records, whether they count or not.
        let named = self.shards(0..self.records.len());
        let files = named.iter().map(|shard| shard.file.as_str()).chain(["other.shard"]);
        assert_eq!(catalog.unnamed(files), ["other.shard"]);
        for (number, record) in self.records.iter().enumerate() {
            for shard in &record.shards {
                let blamed = catalog.blamed(&Blame::Shard(shard.id()));
                assert_eq!(blamed.is_some(), stored.contains(&number), "{}", shard.file);
            }
        }
    }
}

/// A catalog, its model, and shards that the catalog held earlier.
struct Both {
    catalog: Catalog,
    model: Model,
    stale: Vec<Arc<CatalogShard>>,
}

impl Both {
    fn commit(&mut self, phase: Phase, layers: LayerRange, members: u32) {
        let record = record(self.model.records.len(), phase, layers, members);
        self.catalog.add(JournalRecord::Commit(record.clone())).unwrap();
        self.model.add(record);
    }

    fn step(&mut self, step: Step) {
        let before = self.catalog.shards();
        let count = self.model.records.len();
        match step {
            Step::Commit(phase, layers, members) => self.commit(phase, layers, members),
            Step::Again(number, members) if count > 0 => {
                let &Commit { phase, first, last, .. } = self.model.commit(number % count);
                self.commit(phase, LayerRange { first, last }, members);
            }
            Step::Retract(number) if count > 0 => {
                let retracted = self.model.commit(number % count).clone();
                self.model.retract(&retracted);
                self.catalog.add(JournalRecord::Retraction(Retraction { retracted })).unwrap();
            }
            Step::LetGo(removed) => {
                let found = self.catalog.reach_of(&removed);
                let files: BTreeSet<&str> = found.iter().map(|shard| &*shard.file).collect();
                let wanted = self.model.shards(self.model.within(&removed));
                let wanted: BTreeSet<&str> = wanted.iter().map(|shard| &*shard.file).collect();
                assert_eq!(files, wanted);
                self.model.forget_reach(&removed);
                let removal = Removal { removed: removed.to_vec() };
                self.catalog.add(JournalRecord::Removal(removal)).unwrap();
            }
            Step::Lose(kind, layer, which) => {
                let shards = self.catalog.find_layer(kind, layer.0);
                if let Some(shard) = shards.get(which % shards.len().max(1)) {
                    self.catalog.remove(shard);
                }
                let lost = self.model.held.get(&(kind, layer)).copied();
                self.model.lose(&BTreeSet::from_iter(lost));
            }
            Step::LoseInVain(which) if !self.stale.is_empty() => {
                self.catalog.remove(&self.stale[which % self.stale.len()]);
            }
            Step::Reopen(kind, layer) => {
                let key = Parts::key(layer, LANES[0], 0);
                let open = self.catalog.find(kind, key);
                self.catalog.reopen(kind, key);
                let opened = self.catalog.find(kind, key);
                let serials = [&open, &opened].map(|shard| shard.as_ref().map(|shard| shard.serial));
                assert!(open.is_none() || serials[0] != serials[1]);
                self.stale.extend(open);
            }
            Step::Amend => {
                let amendment = Amendment { amended: Amended { precision: Precision::Bits64 } };
                let amended = self.catalog.add(JournalRecord::Amendment(amendment));
                assert_eq!(amended.is_err(), self.catalog.has_values());
            }
            Step::Again(..) | Step::Retract(_) | Step::LoseInVain(_) => {}
        }
        let counting = self.model.shards(self.model.stored());
        self.stale.extend(before.into_iter().filter(|shard| !counting.contains(&&shard.record)));
    }
}

/// Tries random sequences of commits, retractions, removals and losses.
#[test]
fn a_catalog_agrees_with_its_model() {
    let (_place, run) = run();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) };
    proptest!(config, |(steps in prop::collection::vec(any_step(), 1..60))| {
        let mut both = Both { catalog: catalog(&run), model: Model::default(), stale: Vec::new() };
        both.model.check(&both.catalog);
        for step in steps {
            both.step(step);
            both.model.check(&both.catalog);
        }
    });
}

/// A range counts as a whole or not at all. A commit does not affect the other phase.
#[test]
fn a_commit_replaces_every_range_that_shares_a_layer() {
    let (_place, run) = run();
    let catalog = catalog(&run);
    let add = |number, phase, layers| {
        catalog.add(JournalRecord::Commit(record(number, phase, layers, 0))).unwrap();
    };
    let holders = |kind| {
        let number = |shard: Arc<CatalogShard>| shard.record.header_checksum;
        let layers = Layer(4).to(Layer(16));
        layers.map(|layer| catalog.find_layer(kind, layer.0).pop().map(number)).collect::<Vec<_>>()
    };
    add(0, Phase::Enumerate, range(4, 8));
    add(1, Phase::Enumerate, range(10, 16));
    add(2, Phase::BackUp, range(8, 16));
    assert_eq!(holders(ShardKind::Reach), [0, 0, 0, 1, 1, 1, 1].map(Some));
    add(3, Phase::Enumerate, range(8, 10));
    assert_eq!(holders(ShardKind::Reach), [None, None, Some(3), Some(3), None, None, None]);
    let values = [None, None, Some(2), Some(2), Some(2), Some(2), Some(2)];
    assert_eq!(holders(ShardKind::Values), values);

    // The counts of removed reach stay, whatever is committed or retracted later.
    let counted = || catalog.layer_counts().iter().map(|counts| counts.layer.0).collect::<Vec<_>>();
    catalog.add(JournalRecord::Removal(Removal { removed: vec![range(4, 8), range(10, 16)] })).unwrap();
    assert!(catalog.covers(ShardKind::Reach, 8), "its range lies in neither of these");
    catalog.add(JournalRecord::Removal(Removal { removed: vec![range(4, 16)] })).unwrap();
    add(4, Phase::Enumerate, range(10, 14));
    assert_eq!(counted(), [8, 10, 14], "12 has no states");
    let retracted = record(3, Phase::Enumerate, range(8, 10), 0).commit;
    catalog.add(JournalRecord::Retraction(Retraction { retracted })).unwrap();
    assert_eq!(counted(), [8, 10, 14]);
    assert_eq!(holders(ShardKind::Reach), [None, None, None, Some(4), Some(4), Some(4), None]);
    assert_eq!(holders(ShardKind::Values), values);
}

/// A lane without a known owner is in no shard, unless one shard has all lanes.
#[test]
fn a_record_has_a_shard_of_each_member() {
    let (_place, run) = run();
    let catalog = catalog(&run);
    let layers = range(4, 10);
    let no_lane = ItemKey { layer: 6, lane: Lane::new(17, 0).code(), part: 0 };
    let add = |record: Record| catalog.add(JournalRecord::Commit(record));
    add(record(0, Phase::BackUp, layers, 0)).unwrap();
    assert!(catalog.find(ShardKind::Values, no_lane).is_some());
    let sound = record(1, Phase::BackUp, layers, 2);
    add(sound.clone()).unwrap();
    assert!(catalog.find(ShardKind::Values, no_lane).is_none());
    let (twice, other) = (vec![vec![0], vec![0]], vec![vec![17], Vec::new()]);
    for (lanes, threads, expected) in [
        (twice, Vec::new(), "expected lane 0 in one shard"),
        (other, Vec::new(), "expected the code of a lane, found 17"),
        (sound.lanes.clone(), vec![1, 1], "expected lanes or threads"),
        (vec![Vec::new(); 3], Vec::new(), "expected 3 shards, found 2"),
    ] {
        let refused = add(Record { lanes, threads, ..sound.clone() }).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    }

    for (first, last) in [(2, 8), (5, 8), (4, 9), (10, 8), (8, 1 << 20)] {
        let layers = LayerRange { first: Layer(first), last: Layer(last) };
        let refused = add(record(2, Phase::BackUp, layers, 0)).unwrap_err();
        assert!(refused.contains("expected a range of layers"), "{refused}");
    }
    let wrong = |members: u32, shards: u32| {
        let other = record(2, Phase::BackUp, layers, shards);
        Record { lanes: Vec::new(), threads: vec![1; members as usize], ..other }
    };
    for (members, shards, expected) in [(0, 2, 1), (1, 3, 1), (3, 2, 3), (65_537, 65_537, 65_536)] {
        let reason = add(wrong(members, shards)).unwrap_err();
        assert_eq!(reason, format!("expected {expected} shards, found {shards}"));
        let held = catalog.find_layer(ShardKind::Values, 6);
        assert!(held.len() == 2 && held.iter().all(|shard| shard.record.header_checksum == 1));
    }
}

#[test]
fn a_shard_of_another_folder_is_refused() {
    let (_place, run) = run();
    let catalog = catalog(&run);
    for name in ["../victim.shard", "/tmp/victim.shard", "x/reach-000004-000010.shard", "..", ""] {
        let mut record = record(0, Phase::Enumerate, range(4, 10), 0);
        name.clone_into(&mut record.shards[0].file);
        let reason = catalog.add(JournalRecord::Commit(record)).unwrap_err();
        assert!(reason.contains("expected the name of a shard"), "{reason}");
    }
}
