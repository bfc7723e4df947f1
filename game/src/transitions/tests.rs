//! Tests that compare transitions and index maps with the rules, board by board.

use std::collections::BTreeSet;

use super::*;
use crate::bitset::{BitSet, Number};
use crate::board::{Board, BoardSize};
use crate::columns::Columns;
use crate::huge::NO_HUGE;
use crate::lane::{lanes, layer_range};
use crate::maps::ColumnMap;
use crate::patterns::{PatternId, Patterns};
use crate::rowset::{Row, Slot};
use crate::rules::{self, Move};
use crate::{Layer, Params, SpawnKind, Stone};

/// Blocks of a small run, with the tables from which their transitions are computed.
struct Game {
    params: Params,
    space: Space,
    patterns: Patterns,
}

impl Game {
    fn new(board: &str, (large, huge, sectors): (u8, u8, u8)) -> Self {
        // Boards with loose stones have no score.
        let objective = if board.contains('+') { "reach:64" } else { "score" };
        let params =
            Params::usual(board, objective).large(large).huge(huge).sectors(sectors).build().unwrap();
        Self { space: Space::new(&params), patterns: Patterns::default(), params }
    }

    fn maker(&self) -> Maker<'_> {
        Maker { space: &self.space, patterns: &self.patterns }
    }

    fn canonical(&self, board: Board) -> Board {
        self.space.symmetries.canonical(board)
    }

    /// Calls `visit` with every block that has rows and columns.
    fn each_block(&self, mut visit: impl FnMut(Layer, &Class, &Columns)) {
        for lane in lanes(&self.params) {
            let columns = Columns::new(&self.params, lane);
            let (first, last) = layer_range(&self.params, lane);
            for layer in (first.0..=last.0).step_by(2).map(Layer) {
                let class = ClassId::of(layer, lane).and_then(|id| self.space.class(id));
                if let Some(class) = class.filter(|class| class.rows() > 0) {
                    visit(layer, class, &columns);
                }
            }
        }
    }

    /// Returns the target of each column; `None` for a column that takes no part.
    fn map(&self, pattern: PatternId, from: &Columns, to: &Columns) -> Vec<Option<u32>> {
        let [Some(pattern)] = &self.patterns.known([pattern])[..] else {
            return (0..from.len() as u32).map(Some).collect();
        };
        let between = ColumnMap { params: &self.params, patterns: &self.patterns, source: from, target: to };
        let leads_to = between.of_all_columns(pattern).into_iter();
        leads_to.map(|column| Some(column).filter(|&column| (column as usize) < to.len())).collect()
    }

    fn board(&self, class: &Class, row: Row, columns: &Columns, column: u32) -> Board {
        self.canonical(self.space.board(class, row, columns.sequences()[column as usize]))
    }

    /// Adds the targets of edges to each entry of a block.
    fn follow(
        &self,
        found: &mut [BTreeSet<Board>],
        (from, to): (&Columns, &Columns),
        target: &Class,
        pattern: PatternId,
        edges: impl Iterator<Item = (Slot, Row)>,
    ) {
        let map = self.map(pattern, from, to);
        for (slot, row) in edges {
            for (column, leads_to) in map.iter().enumerate() {
                let there = leads_to.map(|leads_to| self.board(target, row, to, leads_to));
                found[slot.index() * from.len() + column].extend(there);
            }
        }
    }

    /// The boards of a block, in the order of its entries.
    fn boards(&self, class: &Class, columns: &Columns) -> Vec<Board> {
        let rows = (0..class.rows() as u32).map(Row);
        rows.flat_map(|row| (0..columns.len() as u32).map(move |column| (row, column)))
            .map(|(row, column)| self.board(class, row, columns, column))
            .collect()
    }

    /// Whether the large tiles of a board obey the tile bound. Other boards have no column.
    fn is_within_bound(&self, board: Board) -> bool {
        let size = self.params.game().board();
        let exponents = (0..size.places()).map(|cell| size.tiles_of(board).get(cell));
        let most = |e: u8| exponents.clone().filter(|&exponent| exponent >= e).count();
        (self.params.split().large()..=16).all(|e| most(e) <= self.params.most_cells_with(e))
    }
}

const GAMES: [(&str, (u8, u8, u8)); 20] = [
    ("2x2", (3, NO_HUGE, 1)),
    ("2x2", (3, NO_HUGE, 2)),
    ("3x2", (3, NO_HUGE, 1)),
    ("3x2", (3, NO_HUGE, 3)),
    ("3x2", (4, NO_HUGE, 1)),
    ("1x5", (3, NO_HUGE, 1)),
    ("2x3", (5, NO_HUGE, 1)),
    ("1x6", (4, NO_HUGE, 1)),
    ("7x1", (3, 8, 1)),
    ("7x1", (3, 8, 4)),
    ("2x3:..x/...", (3, NO_HUGE, 1)),
    ("3x2:.x/../..", (4, NO_HUGE, 1)),
    ("3x3:.../.xx/.xx", (3, NO_HUGE, 1)),
    ("1x6:..x...", (3, NO_HUGE, 1)),
    ("7x1:./././x/././.", (3, 8, 1)),
    ("2x3:.#./...", (3, NO_HUGE, 1)),
    ("3x3:.../.#./#.#", (3, NO_HUGE, 1)),
    ("3x2+1x", (3, NO_HUGE, 1)),
    ("2x4+3x", (3, NO_HUGE, 1)),
    ("1x8+3x", (4, NO_HUGE, 1)),
];

#[test]
fn moves_agree_with_the_rules() {
    for (board, split) in GAMES {
        let game = Game::new(board, split);
        let mut moves_seen = 0;
        game.each_block(|_, class, columns| {
            let boards = game.boards(class, columns);
            let transitions = Transitions::new(class.id(), Arc::new(RowSet::all(class.rows())));
            let mut found = vec![BTreeSet::new(); boards.len()];
            for group in &transitions.moves(game.maker()).groups {
                for lane in columns.lane().after(group.step, &game.params) {
                    let (target, to) =
                        (game.space.class(group.target).unwrap(), Columns::new(&game.params, lane));
                    for (edges, &pattern) in group.edges_of(0..group.patterns.len()).zip(&group.patterns) {
                        let edges = edges.iter().map(|edge| (edge.from, edge.to()));
                        game.follow(&mut found, (columns, &to), target, pattern, edges);
                    }
                }
            }
            for (&board, found) in boards.iter().zip(found) {
                let legal = Move::ALL
                    .into_iter()
                    .filter_map(|m| rules::make_move(board, m, game.params.game().board()));
                let wanted = legal
                    .map(|(after, _)| after)
                    .filter(|&after| game.is_within_bound(after))
                    .map(|after| game.canonical(after));
                let wanted: BTreeSet<Board> = wanted.collect();
                moves_seen += wanted.len();
                assert_eq!(found, wanted, "{:?} of {}", board, game.params.game().board());
            }
        });
        assert!(moves_seen > 50, "{board}: {moves_seen} moves");
    }
}

#[test]
fn spawns_agree_with_the_rules() {
    for (board, split) in GAMES {
        let game = Game::new(board, split);
        let mut spawns_seen = 0;
        game.each_block(|_, class, columns| {
            let boards = game.boards(class, columns);
            let transitions = Transitions::new(class.id(), Arc::new(RowSet::all(class.rows())));
            let spawns = transitions.spawns(game.maker());
            for (exponent, spawn) in [(1u8, SpawnKind::Two), (2, SpawnKind::Four)] {
                let rise = 1 << exponent;
                let above = ClassId { small_sum: class.id().small_sum + rise, ..class.id() };
                let Some(target) = game.space.class(above) else { continue };
                let mut found = vec![BTreeSet::new(); boards.len()];
                for (slot, edges) in spawns.of(spawn).enumerate() {
                    for edge in edges {
                        let pattern = spawns.patterns[edge.pattern as usize];
                        let edge = std::iter::once((Slot::from_index(slot), edge.row));
                        game.follow(&mut found, (columns, columns), target, pattern, edge);
                    }
                }
                for (i, (&board, found)) in boards.iter().zip(found).enumerate() {
                    let slot = i / columns.len();
                    if spawns.start[slot] == spawns.start[slot + 1] {
                        // After a move, no line of the move has a gap between the wall and a tile or a lock.
                        let size = game.params.game().board();
                        let full = rules::empty_cells(board, size).next().is_none();
                        let lines = |m: Move| m.lines(size);
                        let stands = |line: &Vec<u8>| stands(board, line, size);
                        let settled = Move::ALL.into_iter().any(|m| lines(m).iter().all(stands));
                        assert!(full || !settled, "{board:?} may follow a move");
                        continue;
                    }
                    let empty = rules::empty_cells(board, game.params.game().board());
                    let wanted: BTreeSet<Board> =
                        empty.map(|cell| game.canonical(board.with(cell, exponent))).collect();
                    spawns_seen += wanted.len();
                    assert_eq!(found, wanted, "{board:?} of {}", game.params.game().board());
                }
            }
        });
        assert!(spawns_seen > 50, "{board}: {spawns_seen} spawns");
    }
}

/// Whether a line has no gap between a wall and a tile, or before a lock.
fn stands(board: Board, line: &[u8], size: BoardSize) -> bool {
    let mut has_gap = false;
    line.iter().map(|&cell| usize::from(cell)).all(|cell| {
        let is_wall = size.is_stone(cell) && size.stone() == Some(Stone::Wall);
        let is_empty = !size.is_stone(cell) && board.get(cell) == 0;
        let is_allowed = is_wall || is_empty || !has_gap;
        has_gap = !is_wall && (has_gap || is_empty);
        is_allowed
    })
}

/// Transitions computed for some rows equal the transitions computed for all rows.
#[test]
fn transitions_do_not_depend_on_the_other_rows() {
    let game = Game::new("3x2", (3, NO_HUGE, 1));
    let class = game.space.class(ClassId { k: 2, small_sum: 8, sector: 0 }).unwrap();
    let all = Transitions::new(class.id(), Arc::new(RowSet::all(class.rows())));
    let mut every_third = BitSet::with_room(class.rows());
    (0..class.rows() as u32).step_by(3).for_each(|row| every_third.insert(Row(row)));
    let rows = Arc::new(RowSet::new(every_third));
    let some = Transitions::new(class.id(), Arc::clone(&rows));
    let edges = |transitions: &Transitions| {
        let mut found = BTreeSet::new();
        for group in &transitions.moves(game.maker()).groups {
            for (edges, pattern) in group.edges_of(0..group.patterns.len()).zip(&group.patterns) {
                let of_row = |edge: &MoveEdge| (transitions.rows().row(edge.from), *pattern, edge.to());
                found.extend(edges.iter().map(of_row));
            }
        }
        found
    };
    let kept: BTreeSet<_> = edges(&all).into_iter().filter(|&(row, ..)| rows.contains(row)).collect();
    assert_eq!(edges(&some), kept);
    let symmetric = |transitions: &Transitions| -> Vec<Row> {
        let rows = transitions.symmetric(game.maker()).iter();
        rows.map(|row| transitions.rows().row(row.slot)).filter(|&row| rows_has(&some, row)).collect()
    };
    assert_eq!(symmetric(&some), symmetric(&all));
    assert!(!symmetric(&all).is_empty() && !kept.is_empty());
    let (few, many) = (some.skeletons(game.maker()), all.skeletons(game.maker()));
    for (slot, row) in rows.iter().enumerate() {
        assert_eq!(some.configs(game.maker())[slot], all.configs(game.maker())[row.index()]);
        assert_eq!(few.potential[slot], many.potential[row.index()]);
    }
}

fn rows_has(transitions: &Transitions, row: Row) -> bool {
    transitions.rows().contains(row)
}

/// Contents of transitions, without the numbers of patterns and without patterns that have no edge.
#[derive(Debug, PartialEq)]
struct Contents {
    configs: Vec<Config>,
    skeletons: (Vec<u32>, Vec<u8>),
    symmetric: Vec<(Slot, Vec<PatternId>)>,
    spawns: Vec<Vec<(Row, PatternId)>>,
    moves: Vec<(ClassId, PatternId, MoveEdge)>,
    won: Vec<(Slot, Direction)>,
}

impl Contents {
    fn of(transitions: &Transitions, maker: Maker<'_>) -> Self {
        let (skeletons, spawns) = (transitions.skeletons(maker), transitions.spawns(maker));
        let of_kind = |kind| {
            spawns.of(kind).map(|edges| edges.iter().map(|e| (e.row, spawns.patterns[e.pattern as usize])))
        };
        let moves = transitions.moves(maker);
        let edges = moves.groups.iter().flat_map(|group| {
            let runs = group.patterns.iter().zip(group.edges_of(0..group.patterns.len()));
            runs.flat_map(move |(&pattern, edges)| {
                edges.iter().map(move |&edge| (group.target, pattern, edge))
            })
        });
        let symmetric = transitions.symmetric(maker).iter().map(|row| {
            let mut patterns = row.patterns.clone();
            patterns.sort_unstable();
            (row.slot, patterns)
        });
        Self {
            configs: transitions.configs(maker).to_vec(),
            skeletons: (skeletons.potential.to_vec(), skeletons.first_images.to_vec()),
            symmetric: symmetric.collect(),
            spawns: SpawnKind::ALL.into_iter().flat_map(of_kind).map(Iterator::collect).collect(),
            moves: edges.collect(),
            won: moves.won_rows.clone(),
        }
    }
}

/// Transitions copied from a whole class equal transitions computed for the same rows.
#[test]
fn transitions_of_some_rows_are_those_of_all() {
    for (board, large) in [("3x2", 3), ("2x3", 3), ("3x3", 4), ("2x3:x../...", 3)] {
        let game = Game::new(board, (large, NO_HUGE, 1));
        let mut seen = BTreeSet::new();
        game.each_block(|layer, class, _| {
            if !seen.insert(class.id()) || (board == "3x3" && layer.0 % 32 != 0) {
                return;
            }
            let all = Arc::new(Transitions::new(class.id(), Arc::new(RowSet::all(class.rows()))));
            for step in [1, 2, 3, 7] {
                let mut rows = BitSet::with_room(class.rows());
                (step / 2..class.rows()).step_by(step).for_each(|row| rows.insert(Row::from_index(row)));
                let rows = Arc::new(RowSet::new(rows));
                let some = Transitions::subset_of(&all, Arc::clone(&rows));
                let made = Transitions::new(class.id(), rows);
                let mut contents = [some, made].map(|transitions| Contents::of(&transitions, game.maker()));
                contents.iter_mut().for_each(|contents| {
                    contents
                        .moves
                        .sort_by_key(|(class, pattern, edge)| (*class, *pattern, edge.from, edge.direction()))
                });
                assert_eq!(contents[0], contents[1], "{board}, {layer}, every {step}");
            }
        });
    }
}
