//! Constants of backward induction.

use crate::board::Board;
use crate::fixed::Scale;
use crate::layer::{PerSpawn, SpawnKind};
use crate::objective::{Spawner, ValueUnit};
use crate::params::Game;
use crate::rules::potential;
use crate::spawning::{self, FixedMean, SpawnRule, WorstSpawn};
use crate::value::{Divisor, Stored, Value};

/// Constants of backward induction for a game.
#[derive(Clone, Debug)]
pub struct Backup {
    divisors: Vec<Divisor>,
    rule: SpawnRule,
    won: Stored,
    /// Number of bits after the binary point; `None` if values are not scores in fixed point.
    score_bits: Option<u32>,
    can_win: bool,
}

impl Backup {
    /// Computes the constants of a game.
    pub fn new(game: &Game) -> Self {
        let (scale, spawn4) = (Scale::new(game), game.spawn4());
        let unscored = SpawnKind::ALL.map(|spawn| scale.points(spawn.unscored_potential()));
        let weights = SpawnKind::ALL.map(|spawn| spawn.weight(spawn4));
        let offset: u64 =
            unscored.iter().zip(weights).map(|(points, weight)| points.0 * u64::from(weight)).sum();
        let divisors = (0..=game.cells() as u64).map(|empty| Divisor::new(spawn4, empty, offset * empty));
        let rule = match (game.spawner(), scale.floating()) {
            (Spawner::Random, None) => SpawnRule::Mean(FixedMean),
            (Spawner::Random, Some(floating)) => SpawnRule::Floating(floating),
            (Spawner::Worst, floating) => SpawnRule::Worst(WorstSpawn::new(
                weights.map(|weight| weight > 0),
                unscored,
                floating.map(|_| game.discount()),
            )),
        };
        let can_win = game.winning_exponent().is_some();
        let score_bits = scale.fraction_bits().filter(|_| game.objective().unit() == ValueUnit::Points);
        Self { divisors: divisors.collect(), rule, won: scale.won(), score_bits, can_win }
    }

    /// Whether the objective has a winning tile.
    pub fn can_win(&self) -> bool {
        self.can_win
    }

    /// Value of an afterstate that holds the winning tile.
    pub fn won<V: Value>(&self) -> V {
        V::of_stored(self.won)
    }

    /// Value of a board without a legal move, from its potential.
    #[inline(always)]
    pub fn terminal<V: Value>(&self, potential: u32) -> V {
        match self.score_bits {
            Some(bits) => V::of_stored(Stored(u64::from(potential) << bits)),
            None => V::default(),
        }
    }

    /// Does the same as [`terminal`](Self::terminal) for a board, in the form in which values are stored.
    #[inline]
    pub fn terminal_of(&self, board: Board) -> Stored {
        self.terminal::<u64>(potential(board) as u32).stored()
    }

    /// Rule that combines the values after spawns into the value of the afterstate.
    pub fn rule(&self) -> SpawnRule {
        self.rule
    }

    /// Computes the value of an afterstate from the values after each kind of spawn in each empty cell.
    pub fn of_spawns<V: Value>(&self, spawned: PerSpawn<&[Stored]>) -> Stored {
        let values = |of: &[Stored]| -> Vec<V> { of.iter().map(|&stored| V::of_stored(stored)).collect() };
        self.of_values(spawned.map(values).each_ref().map(Vec::as_slice)).stored()
    }

    /// Does the same as [`of_spawns`](Self::of_spawns) for values in memory.
    #[inline]
    pub fn of_values<V: Value>(&self, spawned: PerSpawn<&[V]>) -> V {
        let divisor = self.divisor(spawned[0].len());
        match self.rule {
            SpawnRule::Mean(rule) => spawning::of_lists(rule, spawned, divisor),
            SpawnRule::Floating(rule) => spawning::of_lists(rule, spawned, divisor),
            SpawnRule::Worst(rule) => spawning::of_lists(rule, spawned, divisor),
        }
    }

    /// Divisor of a sum over the spawns in `empty` cells.
    #[inline]
    pub fn divisor(&self, empty: usize) -> &Divisor {
        &self.divisors[empty]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;

    /// The f64 mean is within half a unit of the exact mean, as the proof of the error bound requires.
    #[test]
    fn means_round_to_nearest() {
        let params = Params::small("3x3");
        let backup = Backup::new(params.game());
        let Stored(offset) = Scale::new(params.game()).points(4);
        let mut seed = 1u64;
        for round in 0..20_000 {
            let empty = round % 8 + 1;
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ((seed >> 32) as u32).max(1 << 20)
            };
            let twos: Vec<Stored> = (0..empty).map(|_| Stored(u64::from(next()))).collect();
            let fours: Vec<Stored> = (0..empty).map(|_| Stored(u64::from(next()))).collect();
            let Stored(mean) = backup.of_spawns::<u32>([&twos, &fours]);
            let sum: i128 = twos.iter().map(|v| 9 * i128::from(v.0)).sum::<i128>()
                + fours.iter().map(|v| i128::from(v.0) - i128::from(offset)).sum::<i128>();
            let divisor = 10 * empty as i128;
            let error = (i128::from(mean) * divisor - sum).abs();
            assert!(2 * error <= divisor, "{sum} / {divisor} gave {mean}");
        }
    }
}
