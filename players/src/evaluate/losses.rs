//! Sums of the losses of moves.

use std::collections::BTreeMap;

use exact2048_game::rules::Move;
use exact2048_game::{Board, Objective, ValueUnit};
use serde::Serialize;

use crate::engine::Engine;

/// Number of size classes of losses. Moves without a loss belong to no class.
pub const SIZES: usize = 6;

/// Number of worst positions to keep.
const WORST: usize = 5;

/// Losses of moves, each weighted by the number of times that the move is made.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Losses {
    /// Number of moves.
    pub moves: f64,
    /// Number of best moves.
    pub best: f64,
    /// Sum of the losses.
    pub lost: f64,
    /// The largest loss.
    pub most: f64,
    /// Numbers of moves with a loss, by size class: see [`LossTable::limits`].
    pub by_size: [f64; SIZES],
}

impl Losses {
    fn add(&mut self, times: f64, loss: f64, size: Option<usize>) {
        self.moves += times;
        self.lost += times * loss;
        self.most = self.most.max(loss);
        match size {
            None => self.best += times,
            Some(size) => self.by_size[size] += times,
        }
    }

    fn take_in(&mut self, other: &Self) {
        self.moves += other.moves;
        self.best += other.best;
        self.lost += other.lost;
        self.most = self.most.max(other.most);
        for (sum, more) in self.by_size.iter_mut().zip(other.by_size) {
            *sum += more;
        }
    }

    fn divide(&mut self, by: f64) {
        let sums = [&mut self.moves, &mut self.best, &mut self.lost];
        sums.into_iter().chain(&mut self.by_size).for_each(|sum| *sum /= by);
    }

    /// Mean loss of a move.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.moves > 0.0 { self.lost / self.moves } else { 0.0 }
    }

    /// Share of the moves that are best moves.
    #[must_use]
    pub fn share_best(&self) -> f64 {
        if self.moves > 0.0 { self.best / self.moves } else { 1.0 }
    }
}

/// One of the moves with the largest losses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorstMove {
    /// The board.
    pub board: Board,
    /// The move.
    pub direction: Move,
    /// Loss of the move.
    pub loss: f64,
    /// Mean number of times that the move is made in a game; `None` if games were sampled.
    pub times: Option<f64>,
}

/// Losses of moves by layer and by largest tile, and the worst moves.
#[derive(Clone, PartialEq, Debug)]
pub struct LossTable {
    limits: [f64; SIZES - 1],
    /// All moves together.
    pub all: Losses,
    /// By layer.
    pub by_layer: BTreeMap<u32, Losses>,
    /// By the exponent of the largest tile.
    pub by_largest: BTreeMap<u8, Losses>,
    /// The moves with the largest losses, worst first. A board and its images have at most one entry.
    pub worst: Vec<WorstMove>,
}

/// A move that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChosenMove {
    pub layer: u32,
    pub board: Board,
    pub direction: Move,
    /// Number of times that the move is made.
    pub times: f64,
    /// Loss of the move; `None` if no move is better.
    pub loss: Option<f64>,
}

impl LossTable {
    /// Creates an empty table for values of an objective.
    #[must_use]
    pub fn new(objective: Objective) -> Self {
        let is_probability = objective.unit() == ValueUnit::Probability;
        let limits =
            if is_probability { [1e-5, 1e-4, 1e-3, 1e-2, 1e-1] } else { [0.1, 1.0, 10.0, 100.0, 1_000.0] };
        let (by_layer, by_largest) = Default::default();
        Self { limits, all: Losses::default(), by_layer, by_largest, worst: Vec::new() }
    }

    /// The limits between the classes of [`Losses::by_size`].
    ///
    /// The first class counts losses below the first limit. The last class counts losses of at least the last limit.
    #[must_use]
    pub fn limits(&self) -> [f64; SIZES - 1] {
        self.limits
    }

    pub(super) fn add(&mut self, engine: &Engine, made: &ChosenMove) {
        let &ChosenMove { layer, board, direction, times, loss } = made;
        let size = loss.map(|loss| self.limits.partition_point(|&limit| limit <= loss));
        let loss = loss.unwrap_or(0.0);
        let by_layer = self.by_layer.entry(layer).or_default();
        let by_largest = self.by_largest.entry(engine.size().largest(board)).or_default();
        for losses in [&mut self.all, by_layer, by_largest] {
            losses.add(times, loss, size);
        }
        if loss > 0.0 {
            self.rank(engine, WorstMove { board, direction, loss, times: Some(times) });
        }
    }

    /// Adds another table of the same objective.
    pub(super) fn take_in(&mut self, engine: &Engine, other: &Self) {
        self.all.take_in(&other.all);
        for (layer, losses) in &other.by_layer {
            self.by_layer.entry(*layer).or_default().take_in(losses);
        }
        for (largest, losses) in &other.by_largest {
            self.by_largest.entry(*largest).or_default().take_in(losses);
        }
        other.worst.iter().for_each(|&worst| self.rank(engine, worst));
    }

    /// Divides the sums over sampled games by the number of games to compute means.
    pub(super) fn divide(&mut self, games: u64) {
        let groups = self.by_layer.values_mut().chain(self.by_largest.values_mut());
        groups.chain([&mut self.all]).for_each(|losses| losses.divide(games as f64));
        self.worst.iter_mut().for_each(|worst| worst.times = None);
    }

    /// Keeps a move if it is among the worst moves. Of moves with equal losses, the move added first ranks higher.
    ///
    /// Of the moves on images of one board, only the move with the largest loss stays.
    fn rank(&mut self, engine: &Engine, new: WorstMove) {
        if self.worst.len() == WORST && self.worst.last().is_some_and(|last| new.loss <= last.loss) {
            return;
        }
        let image = |worst: &WorstMove| engine.canonical(worst.board);
        let same = self.worst.iter().position(|worst| image(worst) == image(&new));
        match same {
            Some(at) if self.worst[at].loss >= new.loss => return,
            Some(at) => drop(self.worst.remove(at)),
            None => {}
        }
        let at = self.worst.partition_point(|worst| worst.loss >= new.loss);
        self.worst.insert(at, new);
        self.worst.truncate(WORST);
    }
}

/// [`Losses`] as JSON.
#[derive(Serialize)]
struct Shown {
    moves: f64,
    share_best: f64,
    mean_loss: f64,
    most: f64,
    by_size: [f64; SIZES],
}

impl Serialize for Losses {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { moves, most, by_size, .. } = *self;
        let shown = Shown { moves, share_best: self.share_best(), mean_loss: self.mean(), most, by_size };
        shown.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_classed_by_size_and_images_count_once() {
        let engine = Engine::new("2x2".parse().unwrap(), Default::default());
        let mut table = LossTable::new(Objective::Score);
        let made = |board, times, loss| ChosenMove {
            layer: 6,
            board: Board(board),
            direction: Move::Left,
            times,
            loss,
        };
        table.add(&engine, &made(0x0012, 2.0, Some(0.5)));
        table.add(&engine, &made(0x0021, 1.0, Some(10.0)));
        table.add(&engine, &made(0x0021, 1.0, None));
        assert_eq!(table.all.by_size, [0.0, 2.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!((table.all.moves, table.all.best, table.all.lost), (4.0, 1.0, 11.0));
        assert_eq!((table.all.mean(), table.all.share_best()), (2.75, 0.25));
        assert_eq!(table.by_largest[&2], table.by_layer[&6]);
        assert_eq!(table.worst.iter().map(|worst| worst.loss).collect::<Vec<_>>(), [10.0]);
        for loss in 1..20u32 {
            table.add(&engine, &made(0x0101 + u64::from(loss), 1.0, Some(loss.into())));
        }
        assert_eq!(
            table.worst.iter().map(|worst| worst.loss).collect::<Vec<_>>(),
            [19.0, 18.0, 17.0, 16.0, 15.0]
        );
    }
}
