//! A slow, simple solver that shares no code with the solver under test.
//!
//! Boards are plain arrays of exponents, and sets and values are hash maps. The solver treats every board separately.
//! Values are expected remaining scores, not the potentials that the solver under test stores. They have 128-bit fixed
//! point with 80 fraction bits, so they are exact compared with the 64 bits of the solver under test. This solver
//! minimises the probability of a loss directly, and does not compute it from the probability of a win.
//!
//! This code is a separate crate, so the compiler can optimise it. Without optimisation, it would take a tenth of the time
//! of all tests.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(missing_docs, reason = "only tests use it")]

use std::collections::{BTreeMap, HashMap, HashSet};

/// Exponents row by row, 0 for an empty cell. Cells beyond the board are 0.
pub type Board = [u8; 16];

/// A value in units of 2^-80.
pub type Value = u128;

const ONE: Value = 1 << 80;

/// Objective of the game.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Objective {
    Score,
    Reach { exponent: u8 },
    Lose { exponent: u8 },
}

/// The rules of one game.
pub struct Game {
    rows: usize,
    cols: usize,
    objective: Objective,
    /// Weight of a 4: a spawned tile is a 4 with probability `fours / of`.
    fours: u128,
    of: u128,
    /// Numerator and denominator of the discount. A win after n moves counts as the n-th power of the discount.
    discount: [u128; 2],
    /// Whether an adversary chooses the spawns, instead of chance.
    worst: bool,
    /// Position from which games begin, instead of two tiles on an empty board.
    from: Option<Board>,
    /// For each symmetry, the source of each cell.
    symmetries: Vec<Vec<usize>>,
    /// For each direction, the sliding lines, each with its cells from the wall outward.
    lines: [Vec<Vec<usize>>; 4],
}

/// A layer: its states up to symmetry, its afterstates, and the number of states without a move.
#[derive(Default)]
pub struct Layer {
    pub states: HashSet<Board>,
    pub afterstates: HashSet<Board>,
    pub dead: usize,
}

/// A solved game.
pub struct Solution {
    pub layers: BTreeMap<u32, Layer>,
    /// Values of the canonical states.
    pub values: HashMap<Board, Value>,
}

/// The directions, in the program's order of moves.
pub const DIRECTIONS: [&str; 4] = ["left", "right", "up", "down"];

/// A value as a number.
pub fn as_f64(value: Value) -> f64 {
    value as f64 / ONE as f64
}

impl Game {
    /// Creates the game for options of `solve`: `3x2`, `score` or `reach:16`, `1/10`.
    pub fn new(board: &str, objective: &str, spawn4: &str) -> Self {
        let (rows, cols) = board.split_once('x').unwrap();
        let (rows, cols): (usize, usize) = (rows.parse().unwrap(), cols.parse().unwrap());
        let exponent = |tile: &str| tile.parse::<u32>().unwrap().ilog2() as u8;
        let objective = match objective.split_once(':') {
            Some(("lose", tile)) => Objective::Lose { exponent: exponent(tile) },
            Some((_, tile)) => Objective::Reach { exponent: exponent(tile) },
            None => Objective::Score,
        };
        let (fours, of) = spawn4.split_once('/').unwrap();
        let cell = |r: usize, c: usize| r * cols + c;
        let mut symmetries = Vec::new();
        for flips in 0..8 {
            let (down, across, diagonal) = (flips & 1 != 0, flips & 2 != 0, flips & 4 != 0);
            if diagonal && rows != cols {
                continue;
            }
            let mut from = Vec::new();
            for r in 0..rows {
                for c in 0..cols {
                    let (r, c) = if diagonal { (c, r) } else { (r, c) };
                    let r = if down { rows - 1 - r } else { r };
                    let c = if across { cols - 1 - c } else { c };
                    from.push(cell(r, c));
                }
            }
            symmetries.push(from);
        }
        let left: Vec<Vec<usize>> = (0..rows).map(|r| (0..cols).map(|c| cell(r, c)).collect()).collect();
        let up: Vec<Vec<usize>> = (0..cols).map(|c| (0..rows).map(|r| cell(r, c)).collect()).collect();
        let reversed = |lines: &[Vec<usize>]| -> Vec<Vec<usize>> {
            lines.iter().map(|line| line.iter().rev().copied().collect()).collect()
        };
        let lines = [left.clone(), reversed(&left), up.clone(), reversed(&up)];
        Self {
            rows,
            cols,
            objective,
            fours: fours.parse().unwrap(),
            of: of.parse().unwrap(),
            discount: [1, 1],
            worst: false,
            from: None,
            symmetries,
            lines,
        }
    }

    /// Returns the same game with a discount, for example `19/20`.
    pub fn discounted(self, discount: &str) -> Self {
        let (numerator, denominator) = discount.split_once('/').unwrap();
        Self { discount: [numerator.parse().unwrap(), denominator.parse().unwrap()], ..self }
    }

    /// Returns the same game against an adversary.
    pub fn against_the_worst(self) -> Self {
        Self { worst: true, ..self }
    }

    /// Returns the same game from a position.
    pub fn from(self, board: Board) -> Self {
        Self { from: Some(board), ..self }
    }

    pub fn cells(&self) -> usize {
        self.rows * self.cols
    }

    /// The sum of the tiles.
    pub fn sum(&self, board: &Board) -> u32 {
        board.iter().filter(|&&e| e > 0).map(|&e| 1u32 << e).sum()
    }

    /// The board in the text form of the program.
    pub fn text(&self, board: &Board) -> String {
        let tile = |e: &u8| if *e == 0 { "0".to_owned() } else { (1u32 << e).to_string() };
        let row = |row: &[u8]| row.iter().map(tile).collect::<Vec<_>>().join(" ");
        board[..self.cells()].chunks(self.cols).map(row).collect::<Vec<_>>().join(" / ")
    }

    /// All images of a board, possibly with repetitions.
    pub fn images(&self, board: &Board) -> Vec<Board> {
        let image = |from: &Vec<usize>| {
            let mut image = Board::default();
            from.iter().enumerate().for_each(|(to, &from)| image[to] = board[from]);
            image
        };
        self.symmetries.iter().map(image).collect()
    }

    /// The smallest image of a board.
    pub fn canonical(&self, board: &Board) -> Board {
        self.images(board).into_iter().min().unwrap()
    }

    /// Makes a move. Returns the board after it and the score; `None` if nothing changes.
    pub fn slide(&self, board: &Board, direction: usize) -> Option<(Board, u32)> {
        let mut after = Board::default();
        let mut score = 0;
        for line in &self.lines[direction] {
            let mut at = 0;
            let mut may_merge = false;
            for exponent in line.iter().map(|&cell| board[cell]).filter(|&e| e > 0) {
                if may_merge && after[line[at - 1]] == exponent {
                    after[line[at - 1]] += 1;
                    score += 1 << (exponent + 1);
                    may_merge = false;
                } else {
                    after[line[at]] = exponent;
                    at += 1;
                    may_merge = true;
                }
            }
        }
        (after != *board).then_some((after, score))
    }

    /// The legal moves, each as direction, board after the move, and score.
    pub fn moves(&self, board: &Board) -> Vec<(usize, Board, u32)> {
        let slide = |d| self.slide(board, d).map(|(after, score)| (d, after, score));
        (0..4).filter_map(slide).collect()
    }

    /// Whether an adversary chooses the spawns.
    pub fn has_adversary(&self) -> bool {
        self.worst
    }

    pub fn is_won(&self, board: &Board) -> bool {
        match self.objective {
            Objective::Score => false,
            Objective::Reach { exponent } | Objective::Lose { exponent } => {
                board.iter().any(|&e| e >= exponent)
            }
        }
    }

    /// The boards with one more tile in an empty cell.
    fn spawns(&self, board: &Board, exponent: u8) -> Vec<Board> {
        let empty = (0..self.cells()).filter(|&cell| board[cell] == 0);
        let spawn = |cell| {
            let mut spawned = *board;
            spawned[cell] = exponent;
            spawned
        };
        empty.map(spawn).collect()
    }

    /// Every start, once for each order of its two tiles.
    pub fn starts(&self) -> Vec<Board> {
        if let Some(board) = self.from {
            return vec![board];
        }
        let empty = Board::default();
        let mut starts = Vec::new();
        for [first, second] in [[1, 1], [1, 2], [2, 1], [2, 2]] {
            for board in self.spawns(&empty, first) {
                starts.extend(self.spawns(&board, second));
            }
        }
        starts
    }

    /// The distinct canonical starts.
    pub fn canonical_starts(&self) -> Vec<Board> {
        let set: HashSet<Board> = self.starts().iter().map(|start| self.canonical(start)).collect();
        let mut starts: Vec<Board> = set.into_iter().collect();
        starts.sort();
        starts
    }

    /// All layers up to `until`. A board is reachable if moves and spawns of 2s and 4s lead from a start to the board, with
    /// any probability. Won boards do not count, and have no successors.
    pub fn enumerate(&self, until: u32) -> BTreeMap<u32, Layer> {
        let mut layers = BTreeMap::<u32, Layer>::new();
        for start in self.starts() {
            layers.entry(self.sum(&start)).or_default().states.insert(self.canonical(&start));
        }
        let mut sum = self.from.map_or(4, |board| self.sum(&board));
        while sum <= until && layers.range(sum..).next().is_some() {
            let mut layer = layers.remove(&sum).unwrap_or_default();
            for state in &layer.states {
                let moves = self.moves(state);
                layer.dead += usize::from(moves.is_empty());
                for (_, after, _) in moves {
                    if !self.is_won(&after) {
                        layer.afterstates.insert(self.canonical(&after));
                    }
                }
            }
            for after in &layer.afterstates {
                for exponent in [1, 2] {
                    let next = &mut layers.entry(sum + (1 << exponent)).or_default().states;
                    next.extend(self.spawns(after, exponent).iter().map(|board| self.canonical(board)));
                }
            }
            layers.insert(sum, layer);
            sum += 2;
        }
        layers.retain(|&layer, content| layer <= until && !content.states.is_empty());
        layers
    }

    /// Solves the game by backward induction.
    pub fn solve(&self) -> Solution {
        let layers = self.enumerate(u32::MAX - 8);
        let mut solution = Solution { layers, values: HashMap::new() };
        for layer in solution.layers.values().rev() {
            let of_layer: HashMap<Board, Value> = {
                let mut afterstates = HashMap::new();
                for after in &layer.afterstates {
                    afterstates.insert(*after, self.after_spawns(after, &solution.values));
                }
                let value = |state: &Board| {
                    let moves = self.moves(state).into_iter();
                    let worth = |(_, after, score)| self.worth(&after, score, |after| afterstates[after]);
                    (*state, self.best(moves.map(worth)).unwrap_or_else(|| self.dead()))
                };
                layer.states.iter().map(value).collect()
            };
            solution.values.extend(of_layer);
        }
        solution
    }

    /// The value of a move to `after` with this `score`.
    fn worth(&self, after: &Board, score: u32, value: impl Fn(&Board) -> Value) -> Value {
        let [numerator, denominator] = self.discount;
        match self.objective {
            Objective::Score => Value::from(score) * ONE + value(&self.canonical(after)),
            Objective::Lose { .. } if self.is_won(after) => 0,
            Objective::Reach { .. } if self.is_won(after) => ONE * numerator / denominator,
            _ => value(&self.canonical(after)) * numerator / denominator,
        }
    }

    /// The value that the player chooses.
    fn best(&self, values: impl Iterator<Item = Value>) -> Option<Value> {
        if let Objective::Lose { .. } = self.objective { values.min() } else { values.max() }
    }

    /// The value of a finished game.
    fn dead(&self) -> Value {
        if let Objective::Lose { .. } = self.objective { ONE } else { 0 }
    }

    /// The possible boards after an afterstate's spawn of a 2 or a 4.
    fn possible(&self, after: &Board) -> Vec<Board> {
        let twos = self.spawns(after, 1).into_iter().filter(|_| self.fours < self.of);
        twos.chain(self.spawns(after, 2).into_iter().filter(|_| self.fours > 0)).collect()
    }

    /// The possible boards after an afterstate's spawn, with their values.
    pub fn spawn_values(&self, after: &Board, solution: &Solution) -> Vec<(Board, Value)> {
        let value = |board| (board, solution.values[&self.canonical(&board)]);
        self.possible(after).into_iter().map(value).collect()
    }

    fn after_spawns(&self, after: &Board, values: &HashMap<Board, Value>) -> Value {
        if self.worst {
            let values = self.possible(after).into_iter().map(|board| values[&self.canonical(&board)]);
            return values.min().unwrap();
        }
        let sum = |exponent| -> Value {
            let spawns = self.spawns(after, exponent);
            spawns.iter().map(|board| values[&self.canonical(board)]).sum()
        };
        let empty = after[..self.cells()].iter().filter(|&&e| e == 0).count() as u128;
        ((self.of - self.fours) * sum(1) + self.fours * sum(2)) / (self.of * empty)
    }

    /// The values of the four moves; `None` for a move that changes nothing.
    pub fn move_values(&self, board: &Board, solution: &Solution) -> [Option<(Board, u32, Value)>; 4] {
        std::array::from_fn(|direction| {
            let (after, score) = self.slide(board, direction)?;
            let value = self.worth(&after, score, |after| self.after_spawns(after, &solution.values));
            Some((after, score, value))
        })
    }

    /// The mean over all starts with their probabilities, and the means over the starts of layers 4, 6 and 8.
    ///
    /// Each place and order counts once. Against an adversary, returns the least values instead of means.
    pub fn start_values(&self, solution: &Solution) -> (f64, BTreeMap<u32, f64>) {
        if self.worst {
            let of = |start: &Board| (self.sum(start), as_f64(solution.values[&self.canonical(start)]));
            let mut by_layer = BTreeMap::<u32, f64>::new();
            for (layer, value) in self.starts().iter().map(of) {
                let least = by_layer.entry(layer).or_insert(value);
                *least = least.min(value);
            }
            let possible = |layer: &u32| match layer {
                4 => self.fours < self.of,
                8 => self.fours > 0,
                _ => self.fours < self.of && self.fours > 0,
            };
            let least = by_layer.iter().filter(|(layer, _)| possible(layer)).map(|(_, &value)| value);
            return (least.fold(f64::MAX, f64::min), by_layer);
        }
        let mut by_layer = BTreeMap::<u32, (Value, u128)>::new();
        let (mut weighted, mut weights) = (0, 0);
        for start in self.starts() {
            // Drops the last bits, so the weighted sum fits.
            let value = solution.values[&self.canonical(&start)] >> 16;
            let fours = start.iter().filter(|&&e| e == 2).count() as u32;
            let weight = self.fours.pow(fours) * (self.of - self.fours).pow(2 - fours);
            weighted += weight * value;
            weights += weight;
            let (sum, number) = by_layer.entry(self.sum(&start)).or_default();
            *sum += value;
            *number += 1;
        }
        let mean = |(layer, (sum, number)): (u32, (Value, u128))| (layer, as_f64((sum / number) << 16));
        (as_f64((weighted / weights) << 16), by_layer.into_iter().map(mean).collect())
    }
}
