//! Whole layers, by the kernels of the solver. This crate has none: they are handed in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_cone::{self as cone, Progress, SolvedLayer, Values};
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Board, KeptLayers, Layer, Precision};
use exact2048_storage::{ItemKey, ShardKind};

use super::cone_files::ConeFiles;
use super::decoded::PartCache;
use super::layers::StateReader;
use super::{Oracle, QueryError, QuestionLimits};
use crate::archive::Archive;
use crate::parts::Parts;
use crate::read_error::ReadError;

/// Items as shards hold them, by their keys.
type Items = BTreeMap<ItemKey, Vec<u8>>;

/// Items that a [`LayerSolver`] has computed for some layers.
#[derive(Default, Debug)]
pub struct LayerItems {
    /// Which states there are, of the layers whose reach the run does not store.
    pub reach: Items,
    /// The values of the states of all these layers.
    pub values: Items,
}

/// A step that a [`LayerSolver`] has done with a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayerStep {
    /// Its states were found, since the run does not store them.
    Enumerated,
    /// Its states have values.
    BackedUp,
}

/// Whether what follows a step is still wanted; asked after each.
pub type WantedStep<'a> = &'a (dyn Fn(LayerStep, Layer) -> bool + Sync);

/// Backs up whole layers that a run does not store. This crate has no kernels: a program that links them hands them in,
/// with [`Oracle::with_layer_solver`].
pub trait LayerSolver: Send + Sync {
    /// Backs up a range of layers, and gives what it found of those up to `highest`. The values of the next two layers
    /// above the range must be stored, as far as there are any. Layers whose reach is not stored are enumerated first,
    /// from the next two layers below whose reach is. The threads are those of the rayon pool that this is called in.
    /// After each step `goes_on` is asked; if it says no, the result is `None`.
    ///
    /// # Errors
    ///
    /// If the run cannot be read.
    fn back_up(
        &self,
        layers: RangeInclusive<Layer>,
        highest: Layer,
        goes_on: WantedStep<'_>,
    ) -> Result<Option<LayerItems>, ReadError>;

    /// Bytes of memory that backing up a layer should have, beside what is given in the end.
    fn bytes(&self, layer: Layer) -> u64;
}

/// Layers that a [`LayerSolver`] has worked out.
#[derive(Default, Debug)]
pub(super) struct SolvedLayers {
    pub(super) layers: BTreeSet<Layer>,
    /// Those among them whose reach the run does not store.
    pub(super) lost: BTreeSet<Layer>,
    pub(super) items: LayerItems,
}

impl SolvedLayers {
    /// Releases what is below a layer.
    pub(super) fn forget(&mut self, layer: Layer) {
        let first = ItemKey { layer: layer.0, ..ItemKey::default() };
        self.layers = self.layers.split_off(&layer);
        self.lost = self.lost.split_off(&layer);
        self.items.reach = self.items.reach.split_off(&first);
        self.items.values = self.items.values.split_off(&first);
    }

    /// The keys of the parts that have states, of a layer whose reach the run does not store.
    pub(super) fn parts_of(&self, layer: Layer) -> impl Iterator<Item = ItemKey> {
        let first = ItemKey { layer: layer.0, ..ItemKey::default() };
        self.items.reach.range(first..).map(|(key, _)| *key).take_while(move |key| key.layer == layer.0)
    }

    /// Which entries of a part are reachable, row by row; `None` where none is, or where the run itself stores that.
    pub(super) fn states(&self, key: ItemKey, parts: Parts) -> Result<Option<Vec<u64>>, ReadError> {
        Ok(self.items.reach.get(&key).map(|item| parts.reach_rows(key, item)).transpose()?)
    }
}

/// The shards of a run, and what was worked out beside them.
struct WithSolved {
    run: Arc<dyn Archive>,
    solved: Arc<SolvedLayers>,
}

impl Archive for WithSolved {
    fn read(&self, kind: ShardKind, key: ItemKey) -> Result<Option<Vec<u8>>, ReadError> {
        let (layers, items) = match kind {
            ShardKind::Reach => (&self.solved.lost, &self.solved.items.reach),
            ShardKind::Values => (&self.solved.layers, &self.solved.items.values),
        };
        if layers.contains(&Layer(key.layer)) {
            Ok(items.get(&key).cloned())
        } else {
            self.run.read(kind, key)
        }
    }
}

/// Bytes of decoded parts of solved layers that are kept while states are looked up in them.
const CACHE_BYTES: u64 = 16 << 20;

/// Memory of a state of a layer while the layer's states are sorted: in the order of the run, in parts, and
/// in the order of boards.
const SORTING_BYTES: u64 = 3 * 16;

/// How many states a byte of reach stands for, at least.
const STATES_A_BYTE_OF_REACH: u64 = 4;

/// Values that were asked for, by a cone or by whole layers.
pub(super) struct FoundValues {
    /// In the order of the states; `None` for a board that is none.
    pub(super) values: Vec<Option<Stored>>,
    /// Values worth keeping for later questions: the cone, or all states of the lower layers, as far as there
    /// is room.
    pub(super) solved: cone::Solved,
    /// How many states were backed up.
    pub(super) computed: u64,
}

impl Oracle {
    /// This oracle, with kernels that back up whole layers. They use all threads of the rayon pool that a question is
    /// asked in. In one pool only one question may be asked at a time: two could wait for each other.
    #[must_use]
    pub fn with_layer_solver(self, solver: Box<dyn LayerSolver>) -> Self {
        Self { layer_solver: Some(solver), ..self }
    }

    /// The number of states of the layers from `first` up to the next ones whose values are stored.
    pub(super) fn states_between(&self, first: Layer) -> u64 {
        let reader = self.state_reader(&|| true);
        reader.between(first).into_iter().map(|layer| reader.states_of(layer)).sum()
    }

    /// The values of states; `None` if there are no kernels, or a cone may take too little memory for that.
    ///
    /// The kernels back up whole layers, from the lowest layer of the states up to the next stored ones. The result has
    /// all states of as many of the lower layers as fit.
    ///
    /// # Errors
    ///
    /// [`QueryError::Read`], [`QueryError::GivenUp`].
    pub(super) fn solve_layers(
        &self,
        asked: &[(Layer, Board)],
        question: &QuestionLimits<'_>,
    ) -> Result<Option<FoundValues>, QueryError> {
        let (Some(solver), Some(&(lowest, _)), Some(&(highest, _))) =
            (&self.layer_solver, asked.first(), asked.last())
        else {
            return Ok(None);
        };
        let mut reader = self.state_reader(question.wanted);
        let between = reader.between(lowest);
        let Some(&last) = between.last() else { return Ok(None) };
        let solver_bytes = between.iter().map(|&layer| solver.bytes(layer)).max().unwrap_or(0);
        let asked_bytes: u64 = lowest.to(highest).map(|layer| self.found_bytes(&reader, layer)).sum();
        if solver_bytes + asked_bytes > question.cone_bytes {
            return Ok(None);
        }
        let listed = self.layers_to_list(&reader, &between, question.cone_bytes - solver_bytes);
        let all: u64 = between.iter().map(|&layer| reader.states_of(layer)).sum();
        (question.progress)(Progress::Up(lowest, 0));
        let (found, left) = (AtomicU64::new(0), AtomicU64::new(all));
        let goes_on = |step, layer| {
            let states = reader.states_of(layer);
            (question.progress)(match step {
                LayerStep::Enumerated => {
                    Progress::Up(layer, found.fetch_add(states, Ordering::Relaxed) + states)
                }
                LayerStep::BackedUp => {
                    Progress::Down(left.fetch_sub(states, Ordering::Relaxed) - states, all)
                }
            });
            (question.wanted)()
        };
        let highest = listed.last().copied().unwrap_or(highest).max(highest);
        let items = solver.back_up(lowest..=last, highest, &goes_on)?.ok_or(QueryError::GivenUp)?;
        question
            .spent
            .add_stored(last.up(1).to(last.up(Layer::RISE)).map(|layer| reader.states_of(layer)).sum());
        let layers: BTreeSet<Layer> = lowest.to(highest).collect();
        let lost = layers.iter().copied().filter(|&layer| !self.has_reach(layer)).collect();
        let solved = Arc::new(SolvedLayers { layers, lost, items });
        let values = self.look_up_in(&solved, asked)?;
        reader.solved = Arc::into_inner(solved).unwrap_or_default();
        Ok(Some(FoundValues { values, solved: self.list(&mut reader, listed)?, computed: all }))
    }

    /// Bytes of a layer as a [`LayerSolver`] gives it.
    fn found_bytes(&self, reader: &StateReader<'_>, layer: Layer) -> u64 {
        let states = reader.states_of(layer);
        states * self.params.game().precision().bytes() + states / STATES_A_BYTE_OF_REACH
    }

    /// The lowest of some layers, as many as there is room for: in memory while their states are listed, and where
    /// these are kept for later questions.
    fn layers_to_list(&self, reader: &StateReader<'_>, between: &[Layer], bytes: u64) -> Vec<Layer> {
        let kept_bytes =
            self.cone_files.as_ref().map_or(0, ConeFiles::most_bytes).max(self.solved.most_bytes());
        // Files have a table as well.
        let kept_bytes = kept_bytes - kept_bytes / 16;
        let of_state = size_of::<Board>() as u64 + self.params.game().precision().bytes();
        let sums = between.iter().scan((0, 0), |(held, listed), &layer| {
            let bytes = reader.states_of(layer) * of_state;
            *held += self.found_bytes(reader, layer) + bytes;
            *listed += bytes;
            Some((layer, *held, *listed))
        });
        let fitting = sums.take_while(|&(layer, held, listed)| {
            held + SORTING_BYTES * reader.states_of(layer) <= bytes && listed <= kept_bytes
        });
        fitting.map(|(layer, ..)| layer).collect()
    }

    /// All states of some layers that were worked out, ascending.
    fn list(&self, reader: &mut StateReader<'_>, layers: Vec<Layer>) -> Result<cone::Solved, QueryError> {
        let of_layer = |layer| {
            let states = reader.states(layer)?;
            let values = states.values.iter();
            let values = match self.params.game().precision() {
                Precision::Bits32 => Values::Bits32(values.map(|&value| u32::of_stored(value)).collect()),
                Precision::Bits64 => Values::Bits64(values.map(|&value| u64::of_stored(value)).collect()),
            };
            Ok(SolvedLayer { layer, boards: states.boards.clone().into(), values })
        };
        Ok(cone::Solved::new(layers.into_iter().map(of_layer).collect::<Result<_, QueryError>>()?))
    }

    /// The values of states of layers that were worked out; `None` for boards that are no states.
    fn look_up_in(
        &self,
        solved: &Arc<SolvedLayers>,
        states: &[(Layer, Board)],
    ) -> Result<Vec<Option<Stored>>, QueryError> {
        let archive = WithSolved { run: Arc::clone(self.parts.archive()), solved: Arc::clone(solved) };
        let parts =
            PartCache::new(Arc::new(archive), self.params.game().precision(), KeptLayers::ALL, CACHE_BYTES);
        let value = |&(_, board): &(Layer, Board)| {
            let Some(entry) = self.entry(board) else { return Ok(None) };
            let Some(part) = parts.get(entry.key, entry.parts, false)? else { return Ok(None) };
            part.rank(entry.number).map_or(Ok(None), |rank| Ok(part.value(rank)?))
        };
        states.iter().map(value).collect()
    }
}
