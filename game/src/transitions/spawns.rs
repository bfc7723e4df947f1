//! Spawns: the targets of a new tile in each empty cell of an afterstate.

use super::{Held, Image, Maker, Numbers, OfMask, for_each_mask};
use crate::class::{Class, ClassId};
use crate::configs::Config;
use crate::layer::{PerSpawn, SpawnKind};
use crate::patterns::PatternId;
use crate::rowset::Row;
use crate::table::{Store, Table};

/// Targets of spawns in rows of a class.
#[derive(Debug, Default)]
pub struct Spawns {
    /// Start of each slot in each list of edges: the edges of slot `r` are `edges[start[r]..start[r + 1]]`, one for
    /// each empty cell. A row that no move can produce has no spawns.
    pub start: Table<u32>,
    /// Targets of each kind of spawn. A spawned tile adds to the small sum of the class.
    pub edges: PerSpawn<Table<SpawnEdge>>,
    /// Patterns of the edges. The first pattern is the identity.
    pub patterns: Vec<PatternId>,
}

/// Target of a spawn in one empty cell.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct SpawnEdge {
    /// Row in the target class.
    pub row: Row,
    /// Index into [`Spawns::patterns`].
    pub pattern: u32,
}

impl Spawns {
    /// Returns all edges for a kind of spawn.
    pub fn edges(&self, spawn: SpawnKind) -> &[SpawnEdge] {
        &self.edges[spawn.index()]
    }

    /// Returns the edges of each slot, in order, for a kind of spawn.
    pub fn of(&self, spawn: SpawnKind) -> impl Iterator<Item = &[SpawnEdge]> {
        let edges = self.edges(spawn);
        self.start.windows(2).map(|w| &edges[w[0] as usize..w[1] as usize])
    }

    pub(super) fn new(maker: Maker<'_>, class: &Class, held: &Held<'_>) -> Self {
        let (space, id) = (maker.space, class.id());
        let mut numbers = Numbers::new(id.k);
        let mut start = Vec::with_capacity(held.rows.len() + 1);
        start.push(0);
        let mut edges = SpawnKind::ALL.map(|_| Vec::new());
        let above = SpawnKind::ALL.map(|spawn| {
            let small_sum = id.small_sum + spawn.tile();
            Some((spawn.exponent(), space.class(ClassId { small_sum, ..id })?))
        });
        for_each_mask(space, class, held, |mask, rows| {
            let cells = mask.mask.small_cells.len();
            let images = mask.stabiliser(space, &mut numbers);
            for row in rows {
                let occupied = occupied(mask, row.config);
                if space.lines.can_follow_move(occupied) {
                    for (&above, edges) in above.iter().zip(&mut edges) {
                        let Some((exponent, target)) = above else { continue };
                        let empty = (0..cells).map(|i| 4 * i).filter(|shift| row.config >> shift & 15 == 0);
                        edges.extend(empty.map(|shift| {
                            let config = row.config | Config::from(exponent) << shift;
                            let (config, pattern) = canonical(config, cells, &images);
                            SpawnEdge { row: target.row(&space.configs, cells, mask.index, config), pattern }
                        }));
                    }
                }
                start.push(edges[0].len() as u32);
            }
        });
        let patterns = renumber(&mut edges, &numbers.intern(maker.patterns));
        Self { start: start.into(), edges: edges.map(Table::from), patterns }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.start.heap_bytes() + self.edges.iter().map(Table::heap_bytes).sum::<usize>()
    }

    pub(super) fn stored_in<S: Store>(&self, store: &mut S) -> Result<Self, S::Error> {
        let mut edges = PerSpawn::<Table<SpawnEdge>>::default();
        for (stored, edges) in edges.iter_mut().zip(&self.edges) {
            *stored = edges.stored_in(store)?;
        }
        Ok(Self { start: self.start.stored_in(store)?, edges, patterns: self.patterns.clone() })
    }
}

/// Returns the cells of a skeleton that hold any tile, one bit per cell.
fn occupied(mask: &OfMask<'_>, config: Config) -> u32 {
    let small = mask.mask.small_cells.iter().rev().enumerate();
    let small = small.filter(|&(i, _)| config >> (4 * i) & 15 != 0);
    small.fold(mask.large(), |cells, (_, &cell)| cells | 1 << cell)
}

/// Returns the canonical image of a config, and the number of the pattern that maps to that image.
#[inline]
fn canonical(config: Config, cells: usize, images: &[Image]) -> (Config, u32) {
    let (mut best, mut pattern) = (config, 0);
    for image in images {
        let there = image.config(cells, config);
        if there < best {
            (best, pattern) = (there, image.pattern);
        }
    }
    (best, pattern)
}

/// Renumbers the patterns of spawn edges from 0, beginning with the identity. Returns the list of patterns.
fn renumber(edges: &mut PerSpawn<Vec<SpawnEdge>>, ids: &[PatternId]) -> Vec<PatternId> {
    let mut used = vec![ids[0]];
    let mut number = vec![0u32; ids.len()];
    for edge in edges.iter_mut().flatten().filter(|edge| edge.pattern != 0) {
        let number = &mut number[edge.pattern as usize];
        if *number == 0 {
            *number = used.len() as u32;
            used.push(ids[edge.pattern as usize]);
        }
        edge.pattern = *number;
    }
    used
}
