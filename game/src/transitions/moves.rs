//! Moves: the targets of sliding the tiles of a state.
//!
//! A move is an edge from a row to a row of the target class, together with a pattern. Edges are grouped by [`Step`],
//! which determines the target lane. Within a step, edges are grouped by pattern, so a kernel fetches each index map
//! once.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Held, HeldRow, Image, Maker, Numbers, OfMask, for_each_mask};
use crate::class::{Class, ClassId, MaskRows, Space};
use crate::lane::Step;
use crate::pattern::Pattern;
use crate::patterns::PatternId;
use crate::rowset::{ROW_BITS, Row, Slot};
use crate::slide::{Kind, Kinds, LineCodes, SlideOutcome, TileSource};
use crate::table::{Store, Table};

/// Legal moves of rows of a class.
#[derive(Debug, Default)]
pub struct Moves {
    /// Moves, grouped by their effect on the large tiles.
    pub groups: Vec<MoveGroup>,
    /// Slots in which a merge of small tiles makes the winning tile, ascending, each with the first such move.
    pub won_rows: Vec<(Slot, Direction)>,
}

/// Number of a move in [`Move::ALL`](crate::rules::Move::ALL).
pub type Direction = u8;

/// Move of one row: from a slot to a row of the target class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct MoveEdge {
    /// Slot of the row.
    pub from: Slot,
    /// Row in the target class, with the direction in the two highest bits.
    to: u32,
}

impl MoveEdge {
    /// Creates the move in a direction from a slot to a row of the target class.
    ///
    /// # Panics
    ///
    /// If the row does not fit in 30 bits, or the direction is not below 4.
    #[must_use]
    pub fn new(from: Slot, direction: Direction, to: Row) -> Self {
        assert!(to.0 >> ROW_BITS == 0 && direction < 4, "a row and a direction fit 32 bits");
        Self { from, to: u32::from(direction) << ROW_BITS | to.0 }
    }

    /// Returns the same move from another slot.
    #[inline(always)]
    pub(super) fn moved_to_slot(self, from: Slot) -> Self {
        Self { from, ..self }
    }

    /// Row in the target class.
    #[inline(always)]
    #[must_use]
    pub fn to(self) -> Row {
        Row(self.to & ((1 << ROW_BITS) - 1))
    }

    /// Direction in which the tiles slide on the stored board of the row.
    #[inline(always)]
    #[must_use]
    pub fn direction(self) -> Direction {
        (self.to >> ROW_BITS) as Direction
    }
}

/// Moves of a class with the same effect on the lane.
#[derive(Clone, Debug)]
pub struct MoveGroup {
    /// Merges and births of large tiles.
    pub step: Step,
    /// Class of the targets.
    pub target: ClassId,
    /// Patterns, each with one contiguous range of edges.
    pub patterns: Vec<PatternId>,
    /// End of the range of each pattern, where the next range begins.
    pub ends: Vec<u32>,
    /// Edges, ordered by pattern and then by slot.
    pub edges: Table<MoveEdge>,
}

impl MoveGroup {
    /// Returns the edges of each pattern in a range of patterns, in order.
    pub fn edges_of(&self, patterns: std::ops::Range<usize>) -> impl Iterator<Item = &[MoveEdge]> {
        let start = patterns.start.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.ends[patterns].iter().scan(start, |start, &end| {
            let edges = &self.edges[*start..end as usize];
            *start = end as usize;
            Some(edges)
        })
    }
}

impl Moves {
    pub(super) fn new(maker: Maker<'_>, class: &Class, held: &Held<'_>) -> Self {
        let numbers = Numbers::new(class.id().k);
        let most_merges = class.id().k.saturating_sub(maker.space.params().game().board().loose()) / 2;
        let mut builder = Builder {
            space: maker.space,
            id: class.id(),
            most_merges,
            numbers,
            groups: Vec::new(),
            won_rows: Vec::new(),
        };
        for_each_mask(maker.space, class, held, |mask, rows| {
            let mut known = Effects::of(maker.space, mask);
            rows.for_each(|row| builder.moves_of(mask, &mut known, &row));
        });
        let ids = builder.numbers.intern(maker.patterns);
        let mut groups: Vec<MoveGroup> = builder.groups.into_iter().map(|group| group.sorted(&ids)).collect();
        groups.sort_by_key(|group| group.step);
        Self { groups, won_rows: builder.won_rows }
    }

    /// Heap size of the long lists in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.groups.iter().map(|group| group.edges.heap_bytes()).sum()
    }

    /// Returns the same moves with the long lists in a store.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn stored_in<S: Store>(&self, store: &mut S) -> Result<Self, S::Error> {
        let stored = |group: &MoveGroup| {
            let (patterns, ends) = (group.patterns.clone(), group.ends.clone());
            Ok(MoveGroup { patterns, ends, edges: group.edges.stored_in(store)?, ..*group })
        };
        let groups = self.groups.iter().map(stored).collect::<Result<Vec<_>, S::Error>>()?;
        Ok(Self { groups, won_rows: self.won_rows.clone() })
    }
}

/// Legal move of one row before edges are sorted.
struct Edge {
    pattern: u32,
    edge: MoveEdge,
}

/// State of a move while its lines slide one after the other.
#[derive(Clone, Copy, Default)]
struct Slide {
    /// Small tiles of the lines so far, one nibble per place, in the order of the lines.
    digits: u64,
    kinds: Kinds,
    merges: u8,
    births: u8,
    changed: bool,
}

/// Effect of a move on the L cells of a mask. Thousands of rows share one effect.
struct Effect<'a> {
    /// Target; `None` if its class does not exist.
    target: Option<Target<'a>>,
    /// Images under the symmetries that map the target's mask to the canonical mask, as a range of
    /// [`Effects::images`].
    images: Range<u32>,
}

/// Target mask of a move.
struct Target<'a> {
    /// Group of the edges.
    group: u32,
    /// Number of small cells of the mask.
    small_cells: u8,
    /// Sum of the small tiles.
    small_sum: u32,
    /// Rows of the mask.
    rows: MaskRows<'a>,
}

/// Known effects of moves on the L cells of one mask. All rows of the mask share them.
#[derive(Default)]
struct Effects<'a> {
    /// Indices into `known`, by kinds, for each move.
    numbers: [FxHashMap<Kinds, u32>; 4],
    known: Vec<Effect<'a>>,
    images: Vec<Image>,
    /// Line codes of the stones and of the L cells of the mask.
    large: LineCodes,
}

impl Effects<'_> {
    /// Creates the empty set of effects of a mask.
    fn of(space: &Space, mask: &OfMask<'_>) -> Self {
        let mut large = space.lines.stones;
        mask.mask
            .large_cells
            .iter()
            .for_each(|&cell| space.lines.put(&mut large, cell, space.params().split().large()));
        Self { large, ..Self::default() }
    }
}

/// Unsorted edges of the moves with one step.
struct Group<'a> {
    step: Step,
    target: ClassId,
    class: &'a Class,
    edges: Vec<Edge>,
}

struct Builder<'a> {
    space: &'a Space,
    id: ClassId,
    /// Number of pairs of large tiles that can merge. Loose stones cannot.
    most_merges: u8,
    numbers: Numbers,
    groups: Vec<Group<'a>>,
    won_rows: Vec<(Slot, Direction)>,
}

impl<'a> Builder<'a> {
    /// Adds the legal moves of a row.
    fn moves_of(&mut self, mask: &OfMask<'_>, known: &mut Effects<'a>, row: &HeldRow) {
        let space = self.space;
        let mut codes = known.large;
        let mut digits = row.config;
        for &cell in mask.mask.small_cells.iter().rev() {
            space.lines.put(&mut codes, cell, digits as u8 & 15);
            digits >>= 4;
        }
        let mut sliding = Sliding { slot: row.slot, mask, known, direction: 0, codes };
        for direction in 0..4 {
            sliding.direction = direction;
            self.slide_lines(&mut sliding, 0, Slide::default());
        }
    }

    /// Slides line number `next` and all later lines, once for each combination of their outcomes.
    fn slide_lines(&mut self, sliding: &mut Sliding<'_, 'a>, mut next: usize, mut slid: Slide) {
        let lines = &self.space.lines.moves[sliding.direction];
        while let Some(line) = lines.get(next) {
            let places = next * line.len();
            let outcomes = self.space.lines.outcomes(sliding.direction, next, &sliding.codes);
            next += 1;
            let Some((last, others)) = outcomes.split_last() else { return };
            let left = self.most_merges.saturating_sub(slid.merges);
            for outcome in others.iter().filter(|outcome| outcome.merges <= left) {
                self.slide_lines(sliding, next, slid.with(places, outcome));
            }
            slid = slid.with(places, last);
        }
        if slid.changed && slid.merges <= self.most_merges {
            self.add_move(sliding, &slid);
        }
    }

    /// Adds one legal move: finds the canonical row of the target and stores the edge in its group.
    fn add_move(&mut self, sliding: &mut Sliding<'_, 'a>, slid: &Slide) {
        if slid.births > 0
            && self.space.params().game().winning_exponent() == Some(self.space.params().split().large())
        {
            if self.won_rows.last().is_none_or(|&(slot, _)| slot != sliding.slot) {
                self.won_rows.push((sliding.slot, sliding.direction as Direction));
            }
            return;
        }
        let number = match sliding.known.numbers[sliding.direction].get(&slid.kinds) {
            Some(&number) => number,
            None => self.new_effect(sliding, slid),
        };
        let effect = &sliding.known.known[number as usize];
        let Some(target) = &effect.target else { return };
        let images = &sliding.known.images[effect.images.start as usize..effect.images.end as usize];
        let cells = usize::from(target.small_cells);
        let images = images.iter().map(|image| (image.config(cells, slid.digits), image.pattern));
        let Some((config, pattern)) = images.min_by_key(|&(config, _)| config) else { return };
        let to = target.rows.of_rank(self.space.configs.rank(cells, target.small_sum, config));
        let edge = MoveEdge::new(sliding.slot, sliding.direction as Direction, to);
        self.groups[target.group as usize].edges.push(Edge { pattern, edge });
    }

    /// Computes the effect of a move on the L cells of a mask. Returns its index.
    #[cold]
    fn new_effect(&mut self, sliding: &mut Sliding<'_, 'a>, slid: &Slide) -> u32 {
        let (space, known) = (self.space, &mut *sliding.known);
        let lines = &space.lines.moves[sliding.direction];
        let LargeTiles { cells, source, pattern } = large_tiles(sliding.mask, lines, slid.kinds);
        let mut shift_of = [0u8; 16];
        let places = lines.iter().flatten().zip(0u8..);
        places.for_each(|(&cell, place)| shift_of[cell as usize] = 4 * place);
        let image = space.masks.image(cells);
        let k = self.id.k - slid.merges + slid.births;
        let mask = &space.masks(k)[image.index as usize];
        let first = known.images.len() as u32;
        for (g, perm) in space.symmetries.permutations().iter().enumerate() {
            if image.symmetries >> g & 1 == 0 {
                continue;
            }
            let mut shifts = [0u8; 16];
            for (shift, &cell) in shifts.iter_mut().zip(&mask.small_cells) {
                *shift = shift_of[perm[cell as usize] as usize];
            }
            let mut pattern = pattern;
            for (item, &cell) in mask.large_cells.iter().enumerate() {
                pattern.set_item(item, source[perm[cell as usize] as usize]);
            }
            known.images.push(Image { shifts, pattern: self.numbers.number(pattern) });
        }
        let sector = space.sector(k, image.index);
        let step = Step { merges: slid.merges, births: slid.births, sector };
        let target = self.group(step).map(|group| {
            let class = self.groups[group as usize].class;
            let (small_cells, small_sum) = (mask.small_cells.len() as u8, class.id().small_sum);
            Target { group, small_cells, small_sum, rows: class.rows_of_mask(image.index) }
        });
        let effect = Effect { target, images: first..known.images.len() as u32 };
        let number = known.known.len() as u32;
        known.known.push(effect);
        known.numbers[sliding.direction].insert(slid.kinds, number);
        number
    }

    /// Returns the group of a step; `None` if the target class does not exist.
    fn group(&mut self, step: Step) -> Option<u32> {
        if let Some(group) = self.groups.iter().position(|group| group.step == step) {
            return Some(group as u32);
        }
        let births = u32::from(step.births) << self.space.params().split().large();
        let k = self.id.k - step.merges + step.births;
        let small_sum = self.id.small_sum.checked_sub(births)?;
        let target = ClassId { k, small_sum, sector: step.sector };
        let class = self.space.class(target)?;
        self.groups.push(Group { step, target, class, edges: Vec::new() });
        Some(self.groups.len() as u32 - 1)
    }
}

/// Row whose tiles slide in one direction.
struct Sliding<'b, 'a> {
    slot: Slot,
    mask: &'b OfMask<'b>,
    known: &'b mut Effects<'a>,
    /// Number of the move in [`Lines::moves`](crate::slide::Lines).
    direction: usize,
    /// Tiles of the row, as line codes.
    codes: LineCodes,
}

impl Slide {
    /// Adds the outcome of one more line, whose places begin at `places`.
    #[inline]
    fn with(self, places: usize, outcome: &SlideOutcome) -> Self {
        Self {
            digits: self.digits | u64::from(outcome.digits) << (4 * places),
            kinds: Kinds(self.kinds.0 | outcome.kinds.0 << (2 * places)),
            merges: self.merges + outcome.merges,
            births: self.births + outcome.births,
            changed: self.changed | outcome.changed,
        }
    }
}

/// Large tiles after a move.
struct LargeTiles {
    /// Cells with a large tile, one bit per cell.
    cells: u32,
    /// Source of the large tile in each cell.
    source: [TileSource; 16],
    /// Conditions of the move. The items are not set yet.
    pattern: Pattern,
}

/// Follows the large tiles of a mask through a move.
fn large_tiles(of_mask: &OfMask<'_>, lines: &[Vec<u8>], kinds: Kinds) -> LargeTiles {
    let mut after = LargeTiles { cells: 0, source: [TileSource::Born; 16], pattern: Pattern::empty() };
    let is_large = |cell: &&u8| of_mask.mask.large_cells.contains(cell);
    for (line, kinds) in lines.iter().scan(kinds, |rest, line| {
        let kinds = *rest;
        *rest = rest.after(line.len());
        Some((line, kinds))
    }) {
        // The numbers of the large tiles of the line, from the wall outward.
        let mut numbers = line.iter().filter(is_large).map(|&cell| of_mask.number[cell as usize]);
        let mut met = |a: u8, b: u8, equal| after.pattern.set_condition(a.min(b), a.max(b), equal);
        // The large tile at the previous place, if it did not merge.
        let mut neighbour = None;
        for (place, &cell) in line.iter().enumerate() {
            let kind = kinds.at(place);
            if kind == Kind::Small {
                neighbour = None;
                continue;
            }
            after.cells |= 1 << cell;
            let first = if kind == Kind::Born { None } else { numbers.next() };
            if let (Some(neighbour), Some(first)) = (neighbour, first) {
                met(neighbour, first, false);
            }
            neighbour = first.filter(|_| kind == Kind::Plain);
            after.source[cell as usize] = match (first, kind) {
                (Some(first), Kind::Merged) => {
                    let second = numbers.next().unwrap_or(first);
                    met(first, second, true);
                    // The two tiles are equal. Always use the lower number, so both orders give the same pattern.
                    TileSource::Merged(first.min(second))
                }
                (Some(first), _) => TileSource::Plain(first),
                (None, _) => TileSource::Born,
            };
        }
    }
    after
}

impl Group<'_> {
    /// Sorts the edges by pattern. The edges are already in the order of rows.
    fn sorted(self, ids: &[PatternId]) -> MoveGroup {
        let Group { step, target, edges, .. } = self;
        let mut start = vec![0u32; ids.len() + 1];
        for edge in &edges {
            start[edge.pattern as usize + 1] += 1;
        }
        for i in 1..start.len() {
            start[i] += start[i - 1];
        }
        let used = (0..ids.len()).filter(|&p| start[p + 1] > start[p]);
        let (patterns, ends) = used.map(|p| (ids[p], start[p + 1])).unzip();
        let mut sorted = vec![MoveEdge::default(); edges.len()];
        for Edge { pattern, edge } in edges {
            let slot = &mut start[pattern as usize];
            sorted[*slot as usize] = edge;
            *slot += 1;
        }
        MoveGroup { step, target, patterns, ends, edges: sorted.into() }
    }
}
