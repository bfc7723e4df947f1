//! One sweep: computes the values of a level's outlooks from the values of the next level.
//!
//! A sweep computes *lives*: the expected number of placements plus one, or 0 for a combo that has ended. With W for lives,
//! the equation of a state is W = 1 + the mean over the drawn pieces of the largest W after a placement.
//!
//! Outlooks that differ only in the next piece have the same mean for the same two pieces in hand, in either order. So a
//! sweep computes means for 28 pairs of pieces instead of 49. It computes eight groups of outlooks in parallel, one in each
//! lane of the vector unit.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::piece::PIECES;
use crate::sequence::Level;
use crate::space::{ComboSpace, Stage};

/// Number of groups to sweep in parallel.
const LANES: usize = 8;

type Lanes = [f64; LANES];

/// Lives of each level, by outlook, then by piece in hold, then by place of the field.
pub(crate) type Lives = Vec<Vec<f64>>;

/// Possible placements for one pair of pieces in hand and one field.
struct Choice {
    /// Place of the field, relative to the first field of the stage.
    place: u32,
    /// Range of the field's successors in `Plan::next`.
    next: std::ops::Range<u32>,
}

/// The sweep of a stage, as lists of indices for the inner loops.
pub(crate) struct Plan<'a> {
    space: &'a ComboSpace,
    stage: &'a Stage,
    /// Choices for each pair of pieces in hand, or for each piece if there is no hold.
    choices: Vec<Vec<Choice>>,
    /// Indices into the rows of a following outlook. Each row ends with the last field of the stage.
    next: Vec<u32>,
}

/// Groups of a level to sweep together.
pub(crate) struct Tile {
    groups: std::ops::Range<usize>,
    /// Outlooks of these groups.
    pub outlooks: std::ops::Range<usize>,
}

/// Working memory of one thread.
#[derive(Default)]
struct Scratch {
    rows: Vec<Lanes>,
    sums: Vec<Lanes>,
}

/// The number of an unordered pair of pieces.
fn pair(a: usize, b: usize) -> usize {
    let (low, high) = (a.min(b), a.max(b));
    high * (high + 1) / 2 + low
}

impl<'a> Plan<'a> {
    pub fn new(space: &'a ComboSpace, stage: &'a Stage) -> Self {
        let mut plan = Self { space, stage, choices: Vec::new(), next: Vec::new() };
        let pieces = 0..PIECES.len();
        if space.holds() == 1 {
            for piece in pieces {
                plan.add(&[(piece, 0)]);
            }
        } else {
            for high in pieces {
                for low in 0..high {
                    // The player drops one piece and holds the other.
                    plan.add(&[(low, high), (high, low)]);
                }
                plan.add(&[(high, high)]);
            }
        }
        plan
    }

    /// Adds the choices between `drops`: pairs of a dropped piece and the piece held afterwards.
    fn add(&mut self, drops: &[(usize, usize)]) {
        let mut choices = Vec::new();
        for place in self.stage.clone() {
            let start = self.next.len() as u32;
            for &(piece, held) in drops {
                let row = held * self.width();
                self.next.extend(self.space.next_places(place, piece).map(|next| (row + next) as u32));
            }
            let next = start..self.next.len() as u32;
            if !next.is_empty() {
                choices.push(Choice { place: (place - self.stage.start) as u32, next });
            }
        }
        self.choices.push(choices);
    }

    /// Number of fields that the stage reads or writes. The stage depends on no field after its own fields.
    fn width(&self) -> usize {
        self.stage.end
    }

    /// Number of states of the stage for one outlook.
    pub fn row(&self) -> usize {
        self.space.holds() * self.stage.len()
    }

    /// The tiles of a level, in order.
    pub fn tiles(&self, level: usize) -> Vec<Tile> {
        let level = &self.space.sequences().levels()[level];
        // Without previews, the lanes would drop different pieces.
        let size = if self.space.sequences().previews() == 0 { 1 } else { LANES };
        (0..level.groups())
            .step_by(size)
            .map(|first| {
                let groups = first..(first + size).min(level.groups());
                let outlooks =
                    level.group(groups.start).outlooks.start..level.group(groups.end - 1).outlooks.end;
                Tile { groups, outlooks }
            })
            .collect()
    }

    /// Computes the lives of the stage in a level from the lives of the next level. `out` has a row for each outlook.
    pub fn sweep(&self, lives: &Lives, level: usize, tiles: &[Tile], out: &mut [f64]) {
        let mut rest = out;
        let mut work = Vec::with_capacity(tiles.len());
        for tile in tiles {
            let (own, others) = rest.split_at_mut(tile.outlooks.len() * self.row());
            work.push((tile, own));
            rest = others;
        }
        work.into_par_iter().for_each_init(Scratch::default, |scratch, (tile, out)| {
            self.tile(lives, level, tile, scratch, out)
        });
    }

    /// The smallest and the largest change by a sweep of a level. These changes bound the error of the lives.
    pub fn changes(&self, lives: &Lives, level: usize) -> (f64, f64) {
        let row = self.row();
        let tiles = self.tiles(level);
        let changes = tiles.par_iter().map_init(
            || (Scratch::default(), Vec::new()),
            |(scratch, out), tile| {
                out.resize(tile.outlooks.len() * row, 0.0);
                self.tile(lives, level, tile, scratch, out);
                let before = &lives[level][tile.outlooks.start * row..tile.outlooks.end * row];
                let changes = out.iter().zip(before).map(|(new, old)| new - old);
                changes
                    .fold((0.0, 0.0), |(low, high): (f64, f64), change| (low.min(change), high.max(change)))
            },
        );
        changes.reduce(|| (0.0, 0.0), |a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn tile(&self, lives: &Lives, level: usize, tile: &Tile, scratch: &mut Scratch, out: &mut [f64]) {
        let levels = self.space.sequences().levels();
        let after = &lives[(level + 1) % levels.len()];
        let level = &levels[level];
        let (holds, own) = (self.space.holds(), self.stage.len());
        scratch.rows.resize(holds * self.width(), [0.0; LANES]);
        scratch.sums.clear();
        scratch.sums.resize(self.choices.len() * own, [0.0; LANES]);
        let Scratch { rows, sums } = scratch;
        for branch in 0..level.branches() {
            self.load(level, tile, branch, after, rows);
            if self.space.sequences().previews() > 0 {
                for (choices, sums) in self.choices.iter().zip(sums.chunks_exact_mut(own)) {
                    accumulate(choices, &self.next, rows, sums);
                }
            } else {
                // The drawn piece is the current one.
                let drawn = usize::from(level.group(tile.groups.start).follow[branch].0);
                for (hold, sums) in sums.chunks_exact_mut(own).take(holds).enumerate() {
                    accumulate(&self.choices[self.hand(hold, drawn)], &self.next, rows, sums);
                }
            }
        }
        let branches = level.branches() as f64;
        let mut out = out.chunks_exact_mut(own);
        for (lane, group) in tile.groups.clone().enumerate() {
            for outlook in level.group(group).outlooks {
                for hold in 0..holds {
                    let hand = match self.space.sequences().previews() {
                        0 => hold,
                        _ => self.hand(hold, level.first(outlook)),
                    };
                    let Some(out) = out.next() else { return };
                    for (out, sum) in out.iter_mut().zip(&sums[hand * own..]) {
                        *out = 1.0 + sum[lane] / branches;
                    }
                }
            }
        }
    }

    /// The number of the pair in hand: the held piece and the current piece.
    fn hand(&self, hold: usize, piece: usize) -> usize {
        if self.space.holds() == 1 { piece } else { pair(hold, piece) }
    }

    /// Interleaves the rows of the following outlooks, up to the end of the stage.
    fn load(&self, level: &Level, tile: &Tile, branch: usize, after: &[f64], rows: &mut [Lanes]) {
        let (width, row) = (self.width(), self.space.row());
        let last = tile.groups.end - 1;
        let from: [&[f64]; LANES] = std::array::from_fn(|lane| {
            let group = level.group((tile.groups.start + lane).min(last));
            &after[group.follow[branch].1 as usize * row..][..row]
        });
        for (hold, rows) in rows.chunks_exact_mut(width).enumerate() {
            let from = from.map(|row| &row[hold * self.space.width()..][..width]);
            for (place, lanes) in rows.iter_mut().enumerate() {
                *lanes = from.map(|row| row[place]);
            }
        }
    }
}

/// Adds the largest lives of each choice to the sum of its field.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn accumulate(choices: &[Choice], next: &[u32], rows: &[Lanes], sums: &mut [Lanes]) {
    for choice in choices {
        let mut best = [0.0; LANES];
        for &at in &next[choice.next.start as usize..choice.next.end as usize] {
            for (best, &value) in best.iter_mut().zip(&rows[at as usize]) {
                *best = if value > *best { value } else { *best };
            }
        }
        for (sum, best) in sums[choice.place as usize].iter_mut().zip(best) {
            *sum += best;
        }
    }
}
