//! A slow, simple solver that shares no code with the solver under test.
//!
//! Boards are plain arrays of exponents, and sets and values are hash maps. The solver treats every board separately.
//! Values are expected remaining scores, not the potentials that the solver under test stores. They have 128-bit fixed
//! point with 80 fraction bits, so they are exact compared with the 64 bits of the solver under test. This solver
//! minimises the probability of a loss directly, and does not compute it from the probability of a win.
//!
//! A board may have stones: cells of a *picture* that hold no tile. Stones of the kind *locked* take part in moves as
//! tiles that never merge, and a move that leaves a cell of the picture without a stone is illegal. Stones of the kind
//! *wall* never move, and tiles slide between them. *Loose* stones are tiles that never merge, without a picture.
//!
//! This code is a separate crate, so the compiler can optimise it. Without optimisation, it would take a tenth of the time
//! of all tests.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(missing_docs, reason = "only tests use it")]

use std::collections::{BTreeMap, HashMap, HashSet};

/// Exponents row by row, 0 for an empty cell, [`STONE`] for a stone. Cells beyond the board are 0.
pub type Board = [u8; 16];

/// The mark of a stone in a [`Board`].
pub const STONE: u8 = u8::MAX;

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
    /// The board without tiles: its stones.
    picture: Board,
    /// Whether stones are locked or loose; otherwise they are walls.
    locked: bool,
    /// The number of loose stones.
    loose: usize,
    /// For each symmetry of the picture, the source of each cell.
    symmetries: Vec<Vec<usize>>,
    /// For each direction, the sliding lines, each with its cells from the wall outward. Walls divide lines.
    lines: [Vec<Vec<usize>>; 4],
}

/// A layer: its states up to symmetry, its afterstates, its won afterstates, and the number of states without a move.
#[derive(Default)]
pub struct Layer {
    pub states: HashSet<Board>,
    pub afterstates: HashSet<Board>,
    pub won: HashSet<Board>,
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
    /// Creates the game for options of `solve`: `3x2` or `2x2:.x/..` or `3x2+2x`, `score` or `reach:16`, `1/10`.
    pub fn new(board: &str, objective: &str, spawn4: &str) -> Self {
        let (board, loose) = board.split_once('+').unwrap_or((board, "0x"));
        let loose: usize = loose.strip_suffix('x').unwrap().parse().unwrap();
        let (size, stones) = board.split_once(':').unwrap_or((board, ""));
        let mut picture = Board::default();
        for (cell, character) in picture.iter_mut().zip(stones.chars().filter(|&c| c != '/')) {
            *cell = if character == '.' { 0 } else { STONE };
        }
        let locked = stones.contains('x') || loose > 0;
        let (rows, cols) = size.split_once('x').unwrap();
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
            if image(&picture, &from) == picture {
                symmetries.push(from);
            }
        }
        let left: Vec<Vec<usize>> = (0..rows).map(|r| (0..cols).map(|c| cell(r, c)).collect()).collect();
        let up: Vec<Vec<usize>> = (0..cols).map(|c| (0..rows).map(|r| cell(r, c)).collect()).collect();
        let reversed = |lines: &[Vec<usize>]| -> Vec<Vec<usize>> {
            lines.iter().map(|line| line.iter().rev().copied().collect()).collect()
        };
        let divided = |lines: Vec<Vec<usize>>| -> Vec<Vec<usize>> {
            let is_wall = |cell: &usize| !locked && picture[*cell] == STONE;
            lines.iter().flat_map(|line| line.split(is_wall).map(<[usize]>::to_vec)).collect()
        };
        let lines = [left.clone(), reversed(&left), up.clone(), reversed(&up)].map(divided);
        Self {
            rows,
            cols,
            objective,
            fours: fours.parse().unwrap(),
            of: of.parse().unwrap(),
            discount: [1, 1],
            worst: false,
            from: None,
            picture,
            locked,
            loose,
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

    /// Returns the same game, but with the identity as its only symmetry.
    pub fn without_symmetries(mut self) -> Self {
        self.symmetries.truncate(1);
        self
    }

    /// The number of cells, including those of stones.
    pub fn cells(&self) -> usize {
        self.rows * self.cols
    }

    /// Reads a board from its text, in which each tile is a number and any other word but `.` is a stone.
    pub fn board(&self, text: &str) -> Board {
        let exponent = |word: &str| match word.parse::<u32>() {
            Ok(tile) => tile.checked_ilog2().unwrap_or_default() as u8,
            Err(_) if word == "." => 0,
            Err(_) => STONE,
        };
        let mut board = Board::default();
        let words = text.split([' ', '/']).filter(|word| !word.is_empty());
        board.iter_mut().zip(words).for_each(|(cell, word)| *cell = exponent(word));
        board
    }

    /// The sum of the tiles.
    pub fn sum(&self, board: &Board) -> u32 {
        board.iter().filter(|&&e| e > 0 && e != STONE).map(|&e| 1u32 << e).sum()
    }

    /// The board in the text form of the program.
    pub fn text(&self, board: &Board) -> String {
        let tile = |&e: &u8| match e {
            0 => "0".to_owned(),
            STONE => if self.locked { "x" } else { "#" }.to_owned(),
            e => (1u32 << e).to_string(),
        };
        let row = |row: &[u8]| row.iter().map(tile).collect::<Vec<_>>().join(" ");
        board[..self.cells()].chunks(self.cols).map(row).collect::<Vec<_>>().join(" / ")
    }

    /// All images of a board, possibly with repetitions.
    pub fn images(&self, board: &Board) -> Vec<Board> {
        self.symmetries.iter().map(|from| image(board, from)).collect()
    }

    /// The smallest image of a board.
    pub fn canonical(&self, board: &Board) -> Board {
        self.images(board).into_iter().min().unwrap()
    }

    /// Makes a move. Returns the board after it and the score; `None` if nothing changes, or a locked stone moves away.
    pub fn slide(&self, board: &Board, direction: usize) -> Option<(Board, u32)> {
        // Locked stones slide like tiles.
        let mut after = if self.locked { Board::default() } else { self.picture };
        let mut score = 0;
        for line in &self.lines[direction] {
            let mut at = 0;
            let mut may_merge = false;
            for exponent in line.iter().map(|&cell| board[cell]).filter(|&e| e > 0) {
                if may_merge && exponent != STONE && after[line[at - 1]] == exponent {
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
        (after != *board && self.has_all_stones(&after)).then_some((after, score))
    }

    /// Whether each cell of the picture holds a stone.
    fn has_all_stones(&self, board: &Board) -> bool {
        self.picture.iter().zip(board).all(|(&wanted, &found)| wanted != STONE || found == STONE)
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
                board.iter().any(|&e| e >= exponent && e != STONE)
            }
        }
    }

    /// The boards with one more tile in an empty cell.
    pub fn spawns(&self, board: &Board, exponent: u8) -> Vec<Board> {
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
        let mut starts = Vec::new();
        for stones in self.without_tiles() {
            for [first, second] in [[1, 1], [1, 2], [2, 1], [2, 2]] {
                for board in self.spawns(&stones, first) {
                    starts.extend(self.spawns(&board, second));
                }
            }
        }
        starts
    }

    /// Every board without tiles: the picture with the loose stones in any cells.
    fn without_tiles(&self) -> Vec<Board> {
        let one_more = |boards: HashSet<Board>| -> HashSet<Board> {
            boards.iter().flat_map(|board| self.spawns(board, STONE)).collect()
        };
        let boards = (0..self.loose).fold(HashSet::from([self.picture]), |boards, _| one_more(boards));
        let mut boards: Vec<Board> = boards.into_iter().collect();
        boards.sort();
        boards
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
        self.with_successors(layers, until)
    }

    /// All layers of the games that begin with the spawn after one of some afterstates.
    pub fn enumerate_after(&self, afterstates: &[Board]) -> BTreeMap<u32, Layer> {
        let mut layers = BTreeMap::<u32, Layer>::new();
        for after in afterstates {
            layers.entry(self.sum(after)).or_default().afterstates.insert(self.canonical(after));
        }
        self.with_successors(layers, u32::MAX - 8)
    }

    /// Adds the successors of some layers, up to the layer `until`.
    fn with_successors(&self, mut layers: BTreeMap<u32, Layer>, until: u32) -> BTreeMap<u32, Layer> {
        let mut sum = layers.keys().next().copied().unwrap_or_default();
        while sum <= until && layers.range(sum..).next().is_some() {
            let mut layer = layers.remove(&sum).unwrap_or_default();
            for state in &layer.states {
                let moves = self.moves(state);
                layer.dead += usize::from(moves.is_empty());
                for (_, after, _) in moves {
                    let of_kind = if self.is_won(&after) { &mut layer.won } else { &mut layer.afterstates };
                    of_kind.insert(self.canonical(&after));
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
        let is_empty = |layer: &Layer| layer.states.is_empty() && layer.afterstates.is_empty();
        layers.retain(|&layer, content| layer <= until && !is_empty(content));
        layers
    }

    /// Solves the game by backward induction.
    pub fn solve(&self) -> Solution {
        self.solve_layers(self.enumerate(u32::MAX - 8))
    }

    /// Solves the games that begin with the spawn after one of some afterstates.
    pub fn solve_after(&self, afterstates: &[Board]) -> Solution {
        self.solve_layers(self.enumerate_after(afterstates))
    }

    fn solve_layers(&self, layers: BTreeMap<u32, Layer>) -> Solution {
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

    /// The value of an afterstate.
    pub fn after_value(&self, after: &Board, solution: &Solution) -> Value {
        self.after_spawns(after, &solution.values)
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

/// The image of a board under a symmetry, which is given by the source of each cell.
fn image(board: &Board, from: &[usize]) -> Board {
    let mut image = Board::default();
    from.iter().enumerate().for_each(|(to, &from)| image[to] = board[from]);
    image
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board from hexadecimal digits, as other programs write it: `f` is a stone.
    fn board(digits: &str) -> Board {
        let exponent = |digit: char| match digit.to_digit(16).unwrap() as u8 {
            15 => STONE,
            exponent => exponent,
        };
        let mut board = Board::default();
        board.iter_mut().zip(digits.chars()).for_each(|(cell, digit)| *cell = exponent(digit));
        board
    }

    /// Solves a formation from seeds. Requires the number of afterstates, the number of those with a positive value, and
    /// the values of the seeds.
    fn check(picture: &str, tile: u32, counts: [usize; 2], seeds: &[(&str, f64)]) {
        let game =
            Game::new(&format!("4x4:{picture}"), &format!("reach:{tile}"), "1/10").without_symmetries();
        let boards: Vec<Board> = seeds.iter().map(|(digits, _)| board(digits)).collect();
        let solution = game.solve_after(&boards);
        let won: usize = solution.layers.values().map(|layer| layer.won.len()).sum();
        let others = || solution.layers.values().flat_map(|layer| &layer.afterstates);
        let positive = others().filter(|after| game.after_value(after, &solution) > 0).count();
        assert_eq!([won + others().count(), won + positive], counts, "{picture} to {tile}");
        for (&(digits, expected), board) in seeds.iter().zip(&boards) {
            let found = as_f64(game.after_value(board, &solution));
            assert!((found - expected).abs() < 1e-14, "{picture} to {tile}, {digits}: {found}");
        }
    }

    /// The numbers of an independent program.
    #[test]
    fn formations_have_the_published_numbers() {
        let l3 = |values: [f64; 2]| [("100000001fff2fff", values[0]), ("000000012fff1fff", values[1])];
        check("..../..../.xxx/.xxx", 8, [4_901, 4_901], &l3([1.0, 1.0]));
        check(
            "..../..../.xxx/.xxx",
            16,
            [159_183, 158_657],
            &l3([0.999_999_917_365_830_8, 0.999_951_573_560_736_2]),
        );
        let seed = |value| [("00001000ffffffff", value)];
        check("..../..../xxxx/xxxx", 64, [264_043, 244_409], &seed(0.992_517_834_036_123_4));
    }

    /// The moves of a board as texts, in the order of [`DIRECTIONS`]; `-` for one that is illegal.
    fn moves(picture: &str, text: &str) -> [String; 4] {
        let game = Game::new(picture, "score", "1/10");
        let after = |direction| game.slide(&game.board(text), direction);
        [0, 1, 2, 3].map(|d| after(d).map_or("-".to_owned(), |(after, _)| game.text(&after)))
    }

    #[test]
    fn locked_stones_forbid_moves_and_walls_divide_lines() {
        for (picture, text, left, right) in [
            ("1x4:.xxx", ". x x x", "-", "-"),
            ("1x4:x...", "x . 2 .", "x 2 0 0", "-"),
            ("1x4:#...", "# . 2 .", "# 2 0 0", "# 0 0 2"),
            ("1x4:..xx", "2 . x x", "-", "0 2 x x"),
            ("1x4:..##", "2 . # #", "-", "0 2 # #"),
            // A merge ahead of a stone would leave a gap before the stone.
            ("1x4:..x.", "2 2 x .", "-", "-"),
            ("1x4:..#.", "2 2 # .", "4 0 # 0", "0 4 # 0"),
            ("1x4:.x..", "2 x 2 2", "2 x 4 0", "-"),
            ("1x4:.x..", "2 x 4 2", "-", "-"),
            ("1x4:.#..", ". # 2 2", "0 # 4 0", "0 # 0 4"),
        ] {
            let [found_left, found_right, up, down] = moves(picture, text);
            assert_eq!([&*found_left, &*found_right, &*up, &*down], [left, right, "-", "-"], "{text}");
        }
        // A line with a gap before its stone forbids the move of all lines.
        assert_eq!(moves("2x2:.x/..", ". x / . 2")[0], "-");
        assert_eq!(moves("2x2:.#/..", ". # / . 2")[0], "0 # / 2 0");
    }

    #[test]
    fn symmetries_are_those_of_the_picture() {
        for (picture, number) in
            [("2x2", 8), ("2x2:x./..", 2), ("3x3:.../.#./...", 8), ("2x3:x../...", 1), ("2x3:x.x/...", 2)]
        {
            let game = Game::new(picture, "score", "1/10");
            assert_eq!(game.images(&game.picture).len(), number, "{picture}");
        }
    }
}
