//! Transitions of a class: what moves and spawns do to each of its rows.
//!
//! Computed once for a class and used for every block with its rows; of very large classes, for the rows of
//! one block. Rows of the class itself are given by *slot*, their number among the rows that transitions were
//! computed for; rows of target classes by number. A move is an edge from a row to
//! a row of the target class together with a pattern; edges are grouped by [`Step`], which decides the
//! target lane, and within a step by pattern, so that a kernel fetches each index map once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::class::{Class, ClassId, Space};
use crate::lane::Step;
use crate::maps::{Pattern, PatternId, Patterns};
use crate::rowset::{RowSet, set};
use crate::rules::exponent_potential;
use crate::skeleton::{Config, Mask};
use crate::slide::Outcome;
use crate::table::{Store, Table};

/// What moves and spawns do to rows of one class. Every list has an entry a slot.
#[derive(Debug)]
pub struct Transitions {
    /// The rows.
    pub rows: Arc<RowSet>,
    /// The config of each row.
    pub configs: Table<Config>,
    /// Φ of each row's small tiles.
    pub potential: Table<u32>,
    /// Spawns of slot `r` are `spawns[spawn_start[r]..spawn_start[r + 1]]`, one for each empty cell; none in a
    /// row that no move leads to.
    pub spawn_start: Table<u32>,
    /// One bit a slot: whether a move from another lane may lead here.
    pub entered: Table<u64>,
    /// Where a spawned 2 leads, in the class with small sum + 2.
    pub spawn2: Table<SpawnEdge>,
    /// Where a spawned 4 leads, in the class with small sum + 4.
    pub spawn4: Table<SpawnEdge>,
    /// The patterns that spawn edges refer to; the first is the identity.
    pub spawn_patterns: Vec<PatternId>,
    /// Legal moves, by what they do to the large tiles.
    pub moves: Vec<MoveGroup>,
    /// Slots in which a move of small tiles alone makes the wanted tile, ascending.
    pub won_rows: Vec<u32>,
    /// Rows that symmetries map to themselves, with what those do to the columns.
    pub symmetric: Vec<SymmetricRow>,
}

/// Where a spawn in one empty cell leads.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct SpawnEdge {
    /// Row in the class of the target.
    pub row: u32,
    /// Index into [`Transitions::spawn_patterns`].
    pub pattern: u32,
}

/// A move of one row: from a slot to a row of the target class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct MoveEdge {
    /// The slot.
    pub from: u32,
    /// Row in the class of the target.
    pub to: u32,
}

/// The moves of a class with the same effect on the lane.
#[derive(Clone, Debug)]
pub struct MoveGroup {
    /// Merges and births of large tiles.
    pub step: Step,
    /// Class of the targets.
    pub target: ClassId,
    /// The patterns: each has one run of edges.
    pub patterns: Vec<PatternId>,
    /// Where the run of each pattern ends in the edges, and the next begins.
    pub ends: Vec<u32>,
    /// The edges, ordered by pattern and then by slot.
    pub edges: Table<MoveEdge>,
}

/// A row that symmetries of the board map to itself: its columns fall into orbits.
#[derive(Clone, Debug)]
pub struct SymmetricRow {
    /// The slot.
    pub slot: u32,
    /// What each of the symmetries does to the columns; at least one pattern, none the identity.
    pub patterns: Vec<PatternId>,
}

impl MoveGroup {
    /// The edges of each of some patterns, in order.
    pub fn edges_of(&self, patterns: std::ops::Range<usize>) -> impl Iterator<Item = &[MoveEdge]> {
        let start = patterns.start.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.ends[patterns].iter().scan(start, |start, &end| {
            let edges = &self.edges[*start..end as usize];
            *start = end as usize;
            Some(edges)
        })
    }
}

impl Transitions {
    /// Computes the transitions of some rows of a class. Cost: some hundred nanoseconds a row.
    pub fn new(space: &Space, patterns: &Patterns, class: &Class, rows: Arc<RowSet>) -> Self {
        Builder::new(space, class).build(patterns, rows)
    }

    /// The edges of each slot, in order, for a spawned 2 or for a spawned 4.
    pub fn spawns_of(&self, tile: u32) -> impl Iterator<Item = &[SpawnEdge]> {
        let edges = if tile == 2 { &self.spawn2 } else { &self.spawn4 };
        self.spawn_start.windows(2).map(|w| &edges[w[0] as usize..w[1] as usize])
    }

    /// Bytes that making the transitions of one row takes at most, about: mean numbers of spawns and moves,
    /// lists that grow by doubling, and edges before and after they are sorted.
    pub const BYTES_TO_MAKE_A_ROW: usize = 512;

    /// The same transitions, with their lists in a store.
    pub fn stored_in<S: Store>(&self, store: &mut S) -> Result<Self, S::Error> {
        let mut moves = Vec::with_capacity(self.moves.len());
        for group in &self.moves {
            let (patterns, ends) = (group.patterns.clone(), group.ends.clone());
            moves.push(MoveGroup { patterns, ends, edges: store.store(&group.edges)?, ..*group });
        }
        Ok(Self {
            rows: Arc::clone(&self.rows),
            configs: store.store(&self.configs)?,
            potential: store.store(&self.potential)?,
            spawn_start: store.store(&self.spawn_start)?,
            entered: store.store(&self.entered)?,
            spawn2: store.store(&self.spawn2)?,
            spawn4: store.store(&self.spawn4)?,
            spawn_patterns: self.spawn_patterns.clone(),
            moves,
            won_rows: self.won_rows.clone(),
            symmetric: self.symmetric.clone(),
        })
    }
}

/// A legal move of one row, before edges are sorted.
struct Edge {
    pattern: u32,
    from: u32,
    to: u32,
}

/// A skeleton while it is being put together: digits, L cells with their sources, conditions.
#[derive(Clone)]
struct Target {
    digits: [u8; 16],
    large_mask: u32,
    pattern: Pattern,
    source: [crate::slide::Source; 16],
    merges: u8,
    births: u8,
    changed: bool,
}

struct Builder<'a> {
    space: &'a Space,
    class: &'a Class,
    id: ClassId,
    /// Patterns seen in this class, numbered as they come; number 0 is the identity.
    local: FxHashMap<Pattern, u32>,
    seen: Vec<Pattern>,
    groups: Vec<(Step, ClassId, &'a Class, Vec<Edge>)>,
    won_rows: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(space: &'a Space, class: &'a Class) -> Self {
        let id = class.id();
        let identity = Pattern::identity(id.k);
        Self {
            space,
            class,
            id,
            local: FxHashMap::from_iter([(identity, 0)]),
            seen: vec![identity],
            groups: Vec::new(),
            won_rows: Vec::new(),
        }
    }

    fn build(mut self, patterns: &Patterns, rows: Arc<RowSet>) -> Transitions {
        let count = rows.len();
        let (mut configs, mut potential) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut spawn_start = vec![0u32];
        let (mut spawn2, mut spawn4) = (Vec::new(), Vec::new());
        let mut entered = vec![0u64; count.div_ceil(64)];
        let mut symmetric = Vec::new();
        for (index, mask) in self.space.masks(self.id.k).iter().enumerate() {
            let of_mask = self.class.mask_rows(index);
            let first = of_mask.start as u32;
            for row in rows.rows_in(of_mask) {
                let slot = potential.len() as u32;
                let cells = mask.small_cells.len();
                let config = self.class.config(&self.space.configs, cells, index, row - first);
                let digits = self.space.digits(mask, config);
                configs.push(config);
                potential.push(
                    mask.small_cells.iter().map(|&c| exponent_potential(digits[c as usize])).sum::<u64>()
                        as u32,
                );
                let (occupied, large) = cells_of(mask, &digits);
                let follows_a_move = self.space.lines.may_follow_a_move(occupied);
                if follows_a_move && self.space.lines.may_follow_a_step(occupied, large) {
                    set(&mut entered, slot);
                }
                for (exponent, edges) in [(1u8, &mut spawn2), (2, &mut spawn4)] {
                    if !follows_a_move {
                        break;
                    }
                    let target = ClassId { k: self.id.k, small_sum: self.id.small_sum + (1 << exponent) };
                    let Some(target) = self.space.class(target) else { continue };
                    for &cell in mask.small_cells.iter().filter(|&&c| digits[c as usize] == 0) {
                        let mut digits = digits;
                        digits[cell as usize] = exponent;
                        edges.push(self.spawn(mask, index as u32, target, &digits));
                    }
                }
                spawn_start.push(spawn2.len() as u32);
                self.moves_of(slot, mask, &digits);
                if let Some(kept) = self.symmetries_of(mask, config) {
                    symmetric.push((slot, kept));
                }
            }
        }
        let ids = self.intern(patterns);
        let spawn_patterns = renumber(&mut spawn2, &mut spawn4, &ids);
        let groups = std::mem::take(&mut self.groups);
        let mut moves: Vec<MoveGroup> = groups
            .into_iter()
            .map(|(step, target, _, edges)| sort_edges(step, target, edges, &ids))
            .collect();
        moves.sort_by_key(|group| group.step);
        Transitions {
            rows,
            configs: Table::new(configs),
            potential: Table::new(potential),
            spawn_start: Table::new(spawn_start),
            entered: Table::new(entered),
            spawn2: Table::new(spawn2),
            spawn4: Table::new(spawn4),
            moves,
            won_rows: self.won_rows,
            symmetric: symmetric
                .into_iter()
                .map(|(slot, kept)| SymmetricRow {
                    slot,
                    patterns: kept.iter().map(|&p: &u32| ids[p as usize]).collect(),
                })
                .collect(),
            spawn_patterns,
        }
    }

    /// Numbers this class's patterns for all classes.
    fn intern(&self, patterns: &Patterns) -> Vec<PatternId> {
        let mut ids = vec![PatternId::IDENTITY];
        ids.extend(patterns.intern(&self.seen[1..]));
        ids
    }

    fn local_pattern(&mut self, pattern: Pattern) -> u32 {
        if pattern == self.seen[0] {
            return 0;
        }
        let next = self.seen.len() as u32;
        let number = *self.local.entry(pattern).or_insert(next);
        if number == next {
            self.seen.push(pattern);
        }
        number
    }

    /// The canonical row of a skeleton whose mask is canonical already.
    fn spawn(&mut self, mask: &Mask, index: u32, target: &Class, digits: &[u8; 16]) -> SpawnEdge {
        let cells = mask.small_cells.len();
        let identity = pack(mask, digits, |cell| cell);
        let (mut best, mut by) = (identity, None);
        for &g in &mask.stabiliser {
            let perm = &self.space.symmetries.permutations()[g];
            let image = pack(mask, digits, |cell| perm[cell as usize]);
            if image < best {
                (best, by) = (image, Some(g));
            }
        }
        let pattern = by.map_or(0, |g| {
            let pattern = self.permutation(mask, g);
            self.local_pattern(pattern)
        });
        SpawnEdge { row: target.row(&self.space.configs, cells, index, best), pattern }
    }

    /// What a symmetry that keeps the mask does to the sequence.
    fn permutation(&self, mask: &Mask, symmetry: usize) -> Pattern {
        let perm = &self.space.symmetries.permutations()[symmetry];
        let mut pattern = Pattern::empty();
        for (item, &cell) in mask.large_cells.iter().enumerate() {
            let from = mask.large_cells.iter().position(|&c| c == perm[cell as usize]).unwrap_or(item);
            pattern.set_item(item, crate::slide::Source::Plain(from as u8));
        }
        pattern
    }

    /// The patterns of the symmetries that keep a skeleton and move some of its columns.
    fn symmetries_of(&mut self, mask: &Mask, config: Config) -> Option<Vec<u32>> {
        let kept = mask.stabiliser.iter().filter(|&&g| self.space.config_image(mask, config, g) == config);
        let kept: Vec<usize> = kept.copied().collect();
        let mut patterns: Vec<u32> = kept
            .into_iter()
            .map(|g| {
                let pattern = self.permutation(mask, g);
                self.local_pattern(pattern)
            })
            .filter(|&p| p != 0)
            .collect();
        patterns.sort_unstable();
        patterns.dedup();
        (!patterns.is_empty()).then_some(patterns)
    }

    /// Adds the legal moves of a row.
    fn moves_of(&mut self, slot: u32, mask: &Mask, digits: &[u8; 16]) {
        let large = self.space.params().large;
        let (mut tokens, mut number) = (*digits, [0u8; 16]);
        for (i, &cell) in mask.large_cells.iter().enumerate() {
            tokens[cell as usize] = large;
            number[cell as usize] = i as u8;
        }
        let space = self.space;
        for lines in &space.lines.moves {
            let start = Target {
                digits: [0; 16],
                large_mask: 0,
                pattern: Pattern::empty(),
                source: [crate::slide::Source::Born; 16],
                merges: 0,
                births: 0,
                changed: false,
            };
            self.slide_lines(slot, lines, &tokens, &number, start);
        }
    }

    /// Slides the lines one after the other, once for each outcome of each.
    fn slide_lines(
        &mut self,
        slot: u32,
        lines: &[Vec<u8>],
        tokens: &[u8; 16],
        number: &[u8; 16],
        mut target: Target,
    ) {
        let Some((line, rest)) = lines.split_first() else {
            if target.changed {
                self.add_move(slot, &target);
            }
            return;
        };
        let space = self.space;
        let outcomes = space.lines.outcomes(line.iter().map(|&cell| tokens[cell as usize]));
        let (last, others) = outcomes.split_last().map_or((None, outcomes), |(l, o)| (Some(l), o));
        for outcome in others {
            let mut branch = target.clone();
            branch.put(line, outcome, tokens, number, space.params().large);
            self.slide_lines(slot, rest, tokens, number, branch);
        }
        if let Some(outcome) = last {
            target.put(line, outcome, tokens, number, space.params().large);
            self.slide_lines(slot, rest, tokens, number, target);
        }
    }

    /// Adds one legal move: canonicalises the target skeleton and files the edge.
    fn add_move(&mut self, slot: u32, target: &Target) {
        let space = self.space;
        if target.births > 0 && space.params().winning_exponent() == Some(space.params().large) {
            if self.won_rows.last() != Some(&slot) {
                self.won_rows.push(slot);
            }
            return;
        }
        let image = space.masks.image(target.large_mask);
        let k = self.id.k - target.merges + target.births;
        let mask = &space.masks(k)[image.index as usize];
        let (mut best, mut by) = (Config::MAX, 0);
        for (g, perm) in space.symmetries.permutations().iter().enumerate() {
            if image.symmetries >> g & 1 == 1 {
                let config = pack(mask, &target.digits, |cell| perm[cell as usize]);
                if config < best {
                    (best, by) = (config, g);
                }
            }
        }
        let perm = &space.symmetries.permutations()[by];
        let mut pattern = target.pattern;
        for (item, &cell) in mask.large_cells.iter().enumerate() {
            pattern.set_item(item, target.source[perm[cell as usize] as usize]);
        }
        let pattern = self.local_pattern(pattern);
        let step = Step { merges: target.merges, births: target.births };
        let group = match self.groups.iter().position(|g| g.0 == step) {
            Some(group) => group,
            None => {
                let births = u32::from(target.births) << space.params().large;
                let id = ClassId { k, small_sum: self.id.small_sum - births };
                let Some(class) = space.class(id) else { return };
                self.groups.push((step, id, class, Vec::new()));
                self.groups.len() - 1
            }
        };
        let (_, _, class, edges) = &mut self.groups[group];
        let to = class.row(&space.configs, mask.small_cells.len(), image.index, best);
        edges.push(Edge { pattern, from: slot, to });
    }
}

impl Target {
    /// Puts the outcome of one line in place.
    fn put(&mut self, line: &[u8], outcome: &Outcome, tokens: &[u8; 16], number: &[u8; 16], large: u8) {
        use crate::slide::Source;
        // Numbers of the line's L tiles on the board, from the wall outward.
        let (mut board_number, mut count) = ([0u8; 8], 0);
        for &cell in line.iter().filter(|&&cell| tokens[cell as usize] == large) {
            board_number[count] = number[cell as usize];
            count += 1;
        }
        let mut sources = outcome.sources.iter();
        for (&cell, &token) in line.iter().zip(&outcome.tokens) {
            if token == large {
                self.large_mask |= 1 << cell;
                if let Some(source) = sources.next() {
                    self.source[cell as usize] = match *source {
                        Source::Plain(i) => Source::Plain(board_number[i as usize]),
                        // Either of two equal tiles will do: the lower number makes one pattern of both.
                        Source::Merged(i) => {
                            Source::Merged(board_number[i as usize].min(board_number[i as usize + 1]))
                        }
                        Source::Born => Source::Born,
                    };
                }
            } else {
                self.digits[cell as usize] = token;
            }
        }
        for &(first, equal) in &outcome.conditions {
            let (a, b) = (board_number[first as usize], board_number[first as usize + 1]);
            self.pattern.set_condition(a.min(b), a.max(b), equal);
        }
        self.merges += outcome.merges;
        self.births += outcome.births;
        self.changed |= outcome.changed;
    }
}

/// Numbers the patterns of spawn edges from 0, the identity first, and lists them.
fn renumber(spawn2: &mut [SpawnEdge], spawn4: &mut [SpawnEdge], ids: &[PatternId]) -> Vec<PatternId> {
    let mut used = vec![ids[0]];
    let mut number = vec![0u32; ids.len()];
    for edge in spawn2.iter_mut().chain(spawn4).filter(|edge| edge.pattern != 0) {
        let number = &mut number[edge.pattern as usize];
        if *number == 0 {
            *number = used.len() as u32;
            used.push(ids[edge.pattern as usize]);
        }
        edge.pattern = *number;
    }
    used
}

/// The cells of a skeleton with any tile, and those with a large one, as bits.
fn cells_of(mask: &Mask, digits: &[u8; 16]) -> (u32, u32) {
    let large = mask.large_cells.iter().fold(0, |cells, &cell| cells | 1 << cell);
    let small = mask.small_cells.iter().filter(|&&cell| digits[cell as usize] != 0);
    (small.fold(large, |cells, &cell| cells | 1 << cell), large)
}

/// The config that a mask's small cells read, each from `from(cell)`.
#[inline]
fn pack(mask: &Mask, digits: &[u8; 16], from: impl Fn(u8) -> u8) -> Config {
    mask.small_cells.iter().fold(0, |c, &cell| c << 4 | Config::from(digits[from(cell) as usize]))
}

/// Sorts edges by pattern; they come ordered by row.
fn sort_edges(step: Step, target: ClassId, edges: Vec<Edge>, ids: &[PatternId]) -> MoveGroup {
    let mut start = vec![0u32; ids.len() + 1];
    for edge in &edges {
        start[edge.pattern as usize + 1] += 1;
    }
    for i in 1..start.len() {
        start[i] += start[i - 1];
    }
    let used = (0..ids.len()).filter(|&p| start[p + 1] > start[p]);
    let (patterns, ends) = used.map(|p| (ids[p], start[p + 1])).unzip();
    let mut sorted = vec![MoveEdge { from: 0, to: 0 }; edges.len()];
    for edge in edges {
        let slot = &mut start[edge.pattern as usize];
        sorted[*slot as usize] = MoveEdge { from: edge.from, to: edge.to };
        *slot += 1;
    }
    MoveGroup { step, target, patterns, ends, edges: Table::new(sorted) }
}
