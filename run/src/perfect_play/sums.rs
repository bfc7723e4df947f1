//! Sums over the blocks of all layers, and bounds on their errors (`docs/dev/error-bound.md`, "Chances").

use std::collections::BTreeMap;

use exact2048_game::board::EXPONENTS;
use exact2048_game::{Layer, Params, SpawnKind, rules};
use exact2048_stats::{LayerStatistics, PlayStatistics};
use exact2048_worker::FollowSums;

/// The sums over all layers so far.
pub struct PlaySums {
    params: Params,
    /// The largest number of blocks of a layer.
    lanes: usize,
    layers: Vec<LayerStatistics>,
    totals: Totals,
    /// For each layer, the largest number of roundings of an afterstate's chance.
    roundings: BTreeMap<Layer, u64>,
    most_roundings: u64,
    longest: u64,
}

/// Sums of [`FollowSums`] over all layers.
#[derive(Default)]
struct Totals {
    moved: f64,
    potential: f64,
    won: f64,
    left_out: f64,
}

impl PlaySums {
    /// The sums of a run with this many lanes, before its first layer.
    pub fn new(params: &Params, lanes: usize) -> Self {
        Self {
            params: params.clone(),
            lanes,
            layers: Vec::new(),
            totals: Totals::default(),
            roundings: BTreeMap::new(),
            most_roundings: 0,
            longest: 0,
        }
    }

    /// The number of states that games have reached so far.
    pub fn states(&self) -> u64 {
        self.layers.iter().map(|layer| layer.states).sum()
    }

    /// Adds the blocks of a layer, in order. `terms` is the largest number of terms in the sum of an afterstate's
    /// chance.
    pub fn take_layer(&mut self, layer: Layer, blocks: &[FollowSums], terms: u32) {
        let mut all = FollowSums::default();
        blocks.iter().for_each(|block| all += block);
        if let Some(target) = self.params.game().winning_exponent() {
            all.ended[usize::from(target)] += all.won;
        }
        self.totals.left_out += all.left_out;
        if all.states == 0 {
            return;
        }
        self.totals.moved += all.moved;
        self.totals.potential += all.potential;
        self.totals.won += all.won;
        let below = SpawnKind::ALL.into_iter().filter_map(|spawn| layer.before(spawn));
        let sent = below.filter_map(|below| self.roundings.get(&below)).copied().max().unwrap_or(0);
        // A spawn divides and multiplies, which are two roundings. The chance of a start is rounded once.
        let of_states = sent + 2 + u64::from(all.terms);
        let of_afterstates = of_states + u64::from(terms);
        self.roundings.retain(|&passed, _| passed.up(Layer::RISE) >= layer);
        self.roundings.insert(layer, of_afterstates);
        self.most_roundings = self.most_roundings.max(of_afterstates);
        self.longest = self.longest.max(all.longest);
        let FollowSums { states, reached, ended, .. } = all;
        self.layers.push(LayerStatistics { layer: layer.0, states, reached, ended });
    }

    /// The sums as numbers, for [`PlaySums::with_numbers`].
    pub fn numbers(&self) -> Vec<u64> {
        let sums = [self.totals.moved, self.totals.potential, self.totals.won, self.totals.left_out]
            .map(f64::to_bits);
        let mut numbers = vec![self.most_roundings, self.longest, self.roundings.len() as u64];
        numbers.extend(sums);
        numbers.extend(self.roundings.iter().flat_map(|(layer, &roundings)| [layer.0.into(), roundings]));
        for LayerStatistics { layer, states, reached, ended } in &self.layers {
            numbers.extend([u64::from(*layer), *states, reached.to_bits()]);
            numbers.extend(ended.iter().map(|share| share.to_bits()));
        }
        numbers
    }

    /// The sums with these [`PlaySums::numbers`], for the run of `self`; `None` if no sums have these numbers.
    pub fn with_numbers(self, numbers: &[u64]) -> Option<Self> {
        let (&[most_roundings, longest, roundings, moved, potential, won, left_out], rest) =
            numbers.split_first_chunk()?;
        let (of_roundings, of_layers) =
            rest.split_at_checked(usize::try_from(roundings).ok()?.checked_mul(2)?)?;
        let layer = |number: u64| u32::try_from(number).ok();
        let roundings =
            of_roundings.as_chunks().0.iter().map(|&[at, roundings]| Some((Layer(layer(at)?), roundings)));
        let layers = of_layers.as_chunks::<{ 3 + EXPONENTS }>().0.iter().map(
            |&[at, states, reached, ref ended @ ..]| {
                let mut shares = [0.0; EXPONENTS];
                shares.iter_mut().zip(ended).for_each(|(share, &bits)| *share = f64::from_bits(bits));
                Some(LayerStatistics {
                    layer: layer(at)?,
                    states,
                    reached: f64::from_bits(reached),
                    ended: shares,
                })
            },
        );
        let [moved, potential, won, left_out] = [moved, potential, won, left_out].map(f64::from_bits);
        Some(Self {
            layers: layers.collect::<Option<_>>()?,
            roundings: roundings.collect::<Option<_>>()?,
            totals: Totals { moved, potential, won, left_out },
            most_roundings,
            longest,
            ..self
        })
    }

    /// The statistics of all layers.
    pub fn into_statistics(self) -> PlayStatistics {
        let Self { params, .. } = &self;
        let last = f64::from(params.last_layer().0);
        // Each of the two first tiles, and the tile after each move, is a 4 with this probability. The potential counts
        // 4 points for such a tile, which the player did not score.
        let unscored_potential = SpawnKind::Four.unscored_potential() as f64;
        let of_spawn = unscored_potential * params.game().spawn4().probability();
        // The player did not score the potential of a given position either.
        let gifts = match params.game().from() {
            None => of_spawn * (self.totals.moved + 2.0),
            Some(board) => of_spawn * self.totals.moved + rules::potential(board) as f64,
        };
        let (value, summed, largest) = match params.game().winning_exponent() {
            None => (
                self.totals.potential - gifts,
                self.totals.potential + gifts,
                last * params.game().cells() as f64,
            ),
            Some(_) => (self.totals.won, self.totals.won, 1.0),
        };
        // The roundings of a chance, of its product with a potential, of the sums over a row, a block, a layer and all
        // layers, and of `gifts`.
        let roundings =
            self.most_roundings + 2 * self.longest + self.lanes as u64 + self.layers.len() as u64 + 8;
        let relative = roundings as f64 * f64::EPSILON / 2.0;
        let rounding = relative / (1.0 - relative);
        // The bound on the moves uses that each move adds at least 2 to the tile sum. The factor 2 covers the roundings
        // in `left_out`.
        let left_out = 2.0 * self.totals.left_out;
        PlayStatistics {
            value,
            value_error: summed * rounding + left_out * largest,
            moves: self.totals.moved,
            moves_error: self.totals.moved * rounding + left_out * last / f64::from(Layer::STEP),
            dropped: self.totals.left_out,
            rounding,
            layers: self.layers,
        }
    }
}
