//! A second implementation of the kernels, slow and simple. On every block, its results equal those of the program's
//! kernels.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod common;

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use exact2048_game::backup::Backup;
use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::maps::Pair;
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::transitions::{Direction, MoveEdge, SpawnEdge, Spawns};
use exact2048_game::value::{Stored, Value};
use exact2048_game::{Layer, Params, Precision};
use exact2048_worker::bits::{BitRows, Source};
use exact2048_worker::kernels::block_hashes::{BlockHashes, HashSum};
use exact2048_worker::kernels::chances::{ChanceMoves, ChanceSpawns, ChanceSums};
use exact2048_worker::kernels::index_map::{self, IndexMap, MapList, Permutation};
use exact2048_worker::kernels::maxima::Maxima;
use exact2048_worker::kernels::means::{Marks, Means};
use exact2048_worker::kernels::{BitMoves, BitSpawns, Kernels, MoveRun, Rows, Vectors};
use exact2048_worker::pieces::SlotBits;
use exact2048_worker::{BestMoves, BlockEngine, FollowSums, Worker};

use common::{Sealed, alive, params, slow_hash, solve_by, worker};

/// Kernels that work on one column of one row after the other.
struct Plain;

/// The target of a column; `None` if it takes no part.
fn target_column(map: IndexMap<'_>, column: usize) -> Option<usize> {
    match map {
        IndexMap::Identity => Some(column),
        IndexMap::Dense(map) => Some(map.leads_to()[column] as usize),
        IndexMap::Sparse(map) => {
            let [_, to] = map.pairs().iter().find(|&&[from, _]| from as usize == column)?;
            Some(*to as usize)
        }
    }
}

fn permuted(permutation: &Permutation, column: usize) -> usize {
    permutation.map().map_or(column, |map| map.leads_to()[column] as usize)
}

fn columns_of(row: &[u64]) -> impl Iterator<Item = usize> {
    (0..64 * row.len()).filter(|column| row[column / 64] >> (column % 64) & 1 == 1)
}

fn set(row: &mut [u64], column: usize) {
    if let Some(word) = row.get_mut(column / 64) {
        *word |= 1 << (column % 64);
    }
}

impl<V: Value> Kernels<V> for Plain {
    fn spawn_bits(&self, plan: &BitSpawns<'_>, states: &mut BitRows<'_>) {
        for (slot, ends) in (0..).map(Slot).zip(plan.start.windows(2)) {
            let Some(from) = plan.afterstates.row(slot) else { continue };
            for edge in &plan.edges[ends[0] as usize..ends[1] as usize] {
                if let Some(to) = states.row_mut(edge.row) {
                    let map = plan.maps[edge.pattern as usize];
                    columns_of(from).for_each(|column| set(to, permuted(map, column)));
                }
            }
        }
    }

    fn move_bits(&self, plan: &BitMoves<'_>, afterstates: &mut BitRows<'_>) {
        for run in plan.runs {
            for edge in run.edges {
                if let (Some(from), Some(to)) = (plan.states.row(edge.from), afterstates.row_mut(edge.to())) {
                    let columns = columns_of(from).filter_map(|column| target_column(run.map, column));
                    columns.for_each(|column| set(to, column));
                }
            }
        }
    }

    fn means(&self, plan: &Means<'_, V>, slots: Range<usize>, after: &mut [V]) -> SlotBits {
        let (mut computed, stride) = (SlotBits::new(&slots), plan.twos.stride);
        let has = |rows: &Rows<'_, V>, row| rows.has(row);
        for slot in slots.clone() {
            let edges = plan.spawns.start[slot] as usize..plan.spawns.start[slot + 1] as usize;
            let [twos, fours] = plan.spawns.edges.each_ref().map(|of| &of[edges.clone()]);
            let all =
                twos.iter().all(|e| has(&plan.twos, e.row)) && fours.iter().all(|e| has(&plan.fours, e.row));
            if edges.is_empty() || !all {
                continue;
            }
            computed.set(Slot::from_index(slot));
            for column in 0..stride {
                let value = |rows: &Rows<'_, V>, row, pattern: u32| {
                    rows.row(row)[permuted(plan.maps[pattern as usize], column)].stored()
                };
                let twos: Vec<Stored> = twos.iter().map(|e| value(&plan.twos, e.row, e.pattern)).collect();
                let fours: Vec<Stored> = fours.iter().map(|e| value(&plan.fours, e.row, e.pattern)).collect();
                after[(slot - slots.start) * stride + column] =
                    V::of_stored(plan.backup.of_spawns::<V>([&twos, &fours]));
            }
        }
        computed
    }

    fn maxima(&self, plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]) {
        for run in plan.runs {
            for edge in run.edges {
                if !slots.contains(&edge.from.index()) || !plan.wanted.occupied.contains(edge.from) {
                    continue;
                }
                let after = if plan.after.has(edge.to()) { plan.after.row(edge.to()) } else { plan.nothing };
                let state = &mut states[(edge.from.index() - slots.start) * plan.stride..][..plan.stride];
                for (column, state) in state.iter_mut().enumerate() {
                    if let Some(to) = target_column(run.map, column) {
                        *state = (*state).max(after[to]);
                    }
                }
            }
        }
    }

    fn best_moves(
        &self,
        plan: &Maxima<'_, V>,
        slots: Range<usize>,
        states: &mut [V],
        best: &mut [Direction],
    ) {
        for (map, edge) in plan.runs.iter().flat_map(|run| run.edges.iter().map(|edge| (run.map, edge))) {
            if !slots.contains(&edge.from.index()) || !plan.wanted.occupied.contains(edge.from) {
                continue;
            }
            let after = if plan.after.has(edge.to()) { plan.after.row(edge.to()) } else { plan.nothing };
            for column in 0..plan.stride {
                let Some(to) = target_column(map, column) else { continue };
                let at = (edge.from.index() - slots.start) * plan.stride + column;
                match after[to].cmp(&states[at]) {
                    Ordering::Greater => (states[at], best[at]) = (after[to], edge.direction()),
                    Ordering::Equal => best[at] = best[at].min(edge.direction()),
                    Ordering::Less => {}
                }
            }
        }
    }

    fn hashes(&self, plan: &BlockHashes<'_, V>, slots: Range<usize>) -> HashSum {
        let mut found = HashSum::default();
        for slot in slots.map(Slot::from_index) {
            let Some(bits) = plan.states.row(slot) else { continue };
            let orbits = plan.orbits.iter().find(|row| row.slot == slot);
            let counts =
                |&column: &usize| orbits.is_none_or(|row| row.marked[column / 64] >> (column % 64) & 1 == 1);
            for column in columns_of(bits).filter(counts) {
                let sequence = plan.columns.sequences()[column];
                let board = plan.space.board(plan.class, plan.rows.row(slot), sequence);
                let value = plan.values[slot.index() * plan.stride + column].stored().0;
                found.states += 1;
                found.sum = found.sum.wrapping_add(slow_hash(plan.space, board, value));
            }
        }
        found
    }

    fn spawn_chances(&self, plan: &ChanceSpawns<'_>, states: &mut ChanceSums<'_>) -> f64 {
        let mut left_out = 0.0;
        for (slot, ends) in plan.start.windows(2).enumerate() {
            let edges = &plan.edges[ends[0] as usize..ends[1] as usize];
            let cells = edges.len() as f64;
            let share = |(column, chance)| (column, chance / (plan.all * cells) * plan.weight);
            let shares = some_of(plan.afterstates.chances, plan.afterstates.stride, slot).map(share);
            let (sent, small): (Vec<_>, Vec<_>) =
                shares.filter(|_| !edges.is_empty()).partition(|&(_, share)| share >= plan.least);
            small.iter().for_each(|(_, share)| left_out += share * cells);
            // Rows that send nothing may lead to rows that are not held.
            for edge in edges.iter().filter(|_| !sent.is_empty()) {
                let (state, map) = (states.add_to(edge.row), plan.maps[edge.pattern as usize]);
                sent.iter().for_each(|&(column, share)| state[permuted(map, column)] += share);
            }
        }
        left_out
    }

    fn move_chances(&self, plan: &ChanceMoves<'_>, afterstates: &mut ChanceSums<'_>) {
        for (map, edge) in plan.runs.iter().flat_map(|run| run.edges.iter().map(|edge| (run.map, edge))) {
            let (slot, stride) = (edge.from.index(), plan.states.stride);
            let after = afterstates.add_to(edge.to());
            for (column, chance) in some_of(plan.states.chances, stride, slot) {
                if plan.best[slot * stride + column] == edge.direction()
                    && let Some(to) = target_column(map, column)
                {
                    after[to] += chance;
                }
            }
        }
    }
}

/// The chances of a row that are not 0, with their columns.
fn some_of(chances: &[f64], stride: usize, slot: usize) -> impl Iterator<Item = (usize, f64)> {
    let row = chances[slot * stride..][..stride].iter().copied().enumerate();
    row.filter(|&(_, chance)| chance != 0.0)
}

/// Whether all spawned 2s lead to states from an afterstate.
fn leads_to_states<V>(plan: &Means<'_, V>, slot: usize, column: usize) -> bool {
    let Some(Marks { words, bits }) = plan.reached else { return true };
    let edges = plan.spawns.start[slot] as usize..plan.spawns.start[slot + 1] as usize;
    plan.spawns.edges[0][edges].iter().all(|edge| {
        let to = permuted(plan.maps[edge.pattern as usize], column);
        let row = &bits[plan.twos.set.slot(edge.row).index() * words..][..words];
        row.get(to / 64).is_some_and(|word| word >> (to % 64) & 1 == 1)
    })
}

/// The entries of some slots' rows at the wanted states.
fn wanted_of<V, T: Copy>(plan: &Maxima<'_, V>, slots: &Range<usize>, all: &[T]) -> Vec<T> {
    let rows = slots.clone().zip(all.chunks(plan.stride));
    rows.flat_map(|(slot, row)| {
        columns_of(plan.wanted.slot(Slot::from_index(slot))).map(|column| row[column])
    })
    .collect()
}

/// The program's kernels, each compared with the plain one on the same block.
struct Compared(Arc<AtomicUsize>);

impl Compared {
    /// Runs both on the bits of a block.
    fn bits(
        &self,
        rows: &mut BitRows<'_>,
        plain: impl Fn(&mut BitRows<'_>),
        vectors: impl Fn(&mut BitRows<'_>),
    ) {
        let words = |rows: &mut BitRows<'_>| -> Vec<Vec<u64>> {
            let slots = rows.slots().map(Slot::from_index);
            slots.map(|slot| rows.slot_mut(slot).to_vec()).collect()
        };
        let before = words(rows);
        plain(rows);
        let wanted = words(rows);
        for (slot, row) in rows.slots().zip(&before) {
            rows.slot_mut(Slot::from_index(slot)).copy_from_slice(row);
        }
        vectors(rows);
        assert!(words(rows) == wanted, "slots {:?}", rows.slots());
        self.0.fetch_add(1, Relaxed);
    }

    /// Runs both on the chances of a block.
    fn chances<R: PartialEq + std::fmt::Debug>(
        &self,
        sums: &mut ChanceSums<'_>,
        plain: impl Fn(&mut ChanceSums<'_>) -> R,
        vectors: impl Fn(&mut ChanceSums<'_>) -> R,
    ) -> R {
        let (mut chances, mut terms) = (sums.chances.to_vec(), sums.terms.to_vec());
        let (set, stride) = (sums.set, sums.stride);
        let wanted = plain(&mut ChanceSums { set, stride, chances: &mut chances, terms: &mut terms });
        let found = vectors(sums);
        assert_eq!(found, wanted);
        assert!(sums.chances == &chances[..] && sums.terms == &terms[..]);
        self.0.fetch_add(1, Relaxed);
        found
    }
}

impl<V: Value> Kernels<V> for Compared {
    fn spawn_bits(&self, plan: &BitSpawns<'_>, states: &mut BitRows<'_>) {
        let plain = |rows: &mut BitRows<'_>| Kernels::<V>::spawn_bits(&Plain, plan, rows);
        self.bits(states, plain, |rows| Kernels::<V>::spawn_bits(&Vectors, plan, rows));
    }

    fn move_bits(&self, plan: &BitMoves<'_>, afterstates: &mut BitRows<'_>) {
        let plain = |rows: &mut BitRows<'_>| Kernels::<V>::move_bits(&Plain, plan, rows);
        self.bits(afterstates, plain, |rows| Kernels::<V>::move_bits(&Vectors, plan, rows));
    }

    fn means(&self, plan: &Means<'_, V>, slots: Range<usize>, after: &mut [V]) -> SlotBits {
        let mut wanted = after.to_vec();
        let computed = Plain.means(plan, slots.clone(), &mut wanted);
        let found = Vectors.means(plan, slots.clone(), after);
        let list = |bits: &SlotBits| {
            let mut slots = Vec::new();
            bits.for_each(|slot| slots.push(slot));
            slots
        };
        assert_eq!(list(&found), list(&computed));
        let columns = wanted.chunks(plan.twos.stride).zip(after.chunks(plan.twos.stride)).zip(slots);
        for ((wanted, found), slot) in columns {
            for (column, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                let may_be_left_out = found == &V::default() && !leads_to_states(plan, slot, column);
                assert!(wanted == found || may_be_left_out, "slot {slot}, column {column}");
            }
        }
        self.0.fetch_add(1, Relaxed);
        found
    }

    fn maxima(&self, plan: &Maxima<'_, V>, slots: Range<usize>, states: &mut [V]) {
        let mut wanted = states.to_vec();
        Plain.maxima(plan, slots.clone(), &mut wanted);
        Vectors.maxima(plan, slots.clone(), states);
        assert!(wanted_of(plan, &slots, states) == wanted_of(plan, &slots, &wanted), "slots {slots:?}");
        self.0.fetch_add(1, Relaxed);
    }

    fn best_moves(
        &self,
        plan: &Maxima<'_, V>,
        slots: Range<usize>,
        states: &mut [V],
        best: &mut [Direction],
    ) {
        let (mut wanted, mut wanted_best) = (states.to_vec(), best.to_vec());
        Plain.best_moves(plan, slots.clone(), &mut wanted, &mut wanted_best);
        Vectors.best_moves(plan, slots.clone(), states, best);
        assert!(wanted_of(plan, &slots, states) == wanted_of(plan, &slots, &wanted), "slots {slots:?}");
        assert!(wanted_of(plan, &slots, best) == wanted_of(plan, &slots, &wanted_best), "slots {slots:?}");
        self.0.fetch_add(1, Relaxed);
    }

    fn hashes(&self, plan: &BlockHashes<'_, V>, slots: Range<usize>) -> HashSum {
        let found = Vectors.hashes(plan, slots.clone());
        assert_eq!(found, Plain.hashes(plan, slots.clone()), "slots {slots:?}");
        self.0.fetch_add(1, Relaxed);
        found
    }

    fn spawn_chances(&self, plan: &ChanceSpawns<'_>, states: &mut ChanceSums<'_>) -> f64 {
        self.chances(
            states,
            |sums| Kernels::<V>::spawn_chances(&Plain, plan, sums),
            |sums| Kernels::<V>::spawn_chances(&Vectors, plan, sums),
        )
    }

    fn move_chances(&self, plan: &ChanceMoves<'_>, afterstates: &mut ChanceSums<'_>) {
        self.chances(
            afterstates,
            |sums| Kernels::<V>::move_chances(&Plain, plan, sums),
            |sums| Kernels::<V>::move_chances(&Vectors, plan, sums),
        );
    }
}

/// Follows games through a solved board with best moves. Returns the chance of all ends.
fn follow<V: Value>(params: &Params, worker: &Worker<V>) -> f64 {
    let (follower, mut sums) = (worker.follower(BestMoves::Stored, 1e-9), FollowSums::default());
    for layer in (4..=params.last_layer().0).step_by(2).map(Layer) {
        for lane in alive(params, layer) {
            sums += &follower.follow_states(layer, lane).unwrap();
        }
        for lane in alive(params, layer) {
            follower.follow_moves(layer, lane).unwrap();
        }
    }
    sums.ended.iter().sum::<f64>() + sums.won + sums.left_out
}

/// Solves a board with both kernels on every block. Returns the number of comparisons.
fn compare<V: Value>(params: &Params, tuning: (usize, usize)) -> usize {
    let (archive, compared) = (Arc::new(Sealed::default()), Arc::new(AtomicUsize::new(0)));
    let both = worker::<V>(params, &archive, tuning).with_kernels(Compared(Arc::clone(&compared)));
    let (states, fingerprint, _) = solve_by::<V>(params, &[1], vec![both], &archive);
    assert!(states > 0 && fingerprint != 0);
    if params.contents().stores_best_moves() {
        let both = worker::<V>(params, &archive, tuning).with_kernels(Compared(Arc::clone(&compared)));
        let ends = follow(params, &both);
        assert!((ends - 1.0).abs() < 1e-9, "every game ends, but {ends} of them did");
    }
    compared.load(Relaxed)
}

#[test]
fn both_kernels_do_the_same_to_every_block() {
    let (sparse, dense, whole) = (0, usize::MAX, usize::MAX);
    assert!(compare::<u32>(&params("2x2", Precision::Bits32), (dense, whole)) > 100);
    assert!(compare::<u64>(&params("2x2", Precision::Bits64), (sparse, whole)) > 100);
    assert!(compare::<u32>(&params("3x2", Precision::Bits32), (dense, 300)) > 1_000);
    // Won games, spawns that exchange columns, maps without a merge and with one, rows of several words.
    let reach = Params::usual("3x3", "reach:64").large(3).build().unwrap();
    assert!(compare::<u32>(&reach, (dense, whole)) > 1_000);
    assert!(compare::<u32>(&reach.with_all_contents(), (dense, 300)) > 1_000);
    let wide = params("2x2", Precision::Bits64).with_all_contents();
    assert!(compare::<u64>(&wide, (sparse, whole)) > 100);
}

/// The arithmetic of discounts, of chances to lose and of adversaries, in both widths.
#[test]
fn both_kernels_do_the_same_by_every_rule() {
    let tuning = (usize::MAX, usize::MAX);
    let rules = [("lose:32", "1", "random"), ("reach:32", "19/20", "random"), ("score", "1", "worst")];
    for (objective, discount, spawner) in rules.into_iter().chain([("reach:32", "19/20", "worst")]) {
        for precision in [Precision::Bits32, Precision::Bits64] {
            let params = Params::usual("3x2", objective).precision(precision).large(3);
            let params = params.discount(discount.parse().unwrap()).spawner(spawner.parse().unwrap());
            let params = params.build().unwrap();
            let compared = match precision {
                Precision::Bits32 => compare::<u32>(&params, tuning),
                Precision::Bits64 => compare::<u64>(&params, tuning),
            };
            assert!(compared > 100, "{params:?}");
        }
    }
}

/// Pseudorandom numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// One bit a column. In stretches of columns none, few, some, most or all are marked.
fn marks(numbers: &mut Numbers, rows: usize, columns: usize) -> Vec<u64> {
    let words = columns.div_ceil(64);
    let mut bits = vec![0; rows * words];
    for (row, bits) in bits.chunks_mut(words).enumerate() {
        for column in 0..columns {
            let share = [0, 1, 30, 100, 101][(row + column / 700) % 5];
            bits[column / 64] |= u64::from(numbers.below(101) < share) << (column % 64);
        }
    }
    bits
}

/// Lengths of long rows, below, at and above multiples of the columns that kernels work on at a time.
const LONG_ROWS: [usize; 5] = [511, 1022, 1024, 1030, 2500];

/// Rows of small boards are short and nearly full, so this test makes up longer rows.
#[test]
fn both_kernels_find_the_same_maxima_where_few_states_are_wanted() {
    let (mut numbers, compared) = (Numbers(7), Compared(Arc::default()));
    for columns in LONG_ROWS {
        let (rows, stride) = (40, index_map::stride(columns));
        let bits = marks(&mut numbers, rows, columns);
        let occupied: BitSet<Slot> = BitSet::below(rows - 1);
        let dense: Vec<u32> = (0..columns).map(|_| numbers.below(columns + 2) as u32).collect();
        let some: Vec<u32> = (0..columns as u32).filter(|_| numbers.below(3) == 0).collect();
        let pairs: Vec<Pair> =
            some.into_iter().map(|from| [from, numbers.below(columns + 2) as u32]).collect();
        let mut maps = MapList::default();
        maps.push_identity();
        maps.push_dense(&dense, columns);
        maps.push_sparse(&pairs);
        let mut edge = |slot, direction| {
            MoveEdge::new(Slot::from_index(slot), direction, Row::from_index(numbers.below(rows)))
        };
        let edges: Vec<MoveEdge> =
            (0..rows).flat_map(|slot| [0, 1, 3].map(|direction| edge(slot, direction))).collect();
        let runs: Vec<MoveRun<'_>> =
            (0..maps.len()).map(|map| MoveRun { edges: &edges, map: maps.get(map) }).collect();
        let (set, computed) = (RowSet::all(rows), BitSet::below(rows - 3));
        let mut values = || (0..rows * stride).map(|_| numbers.below(50) as u32).collect::<Vec<_>>();
        let (after, mut states) = (values(), values());
        let nothing = vec![0; stride];
        let plan = Maxima {
            runs: &runs,
            wanted: Source { words: columns.div_ceil(64), bits: &bits, occupied: &occupied },
            stride,
            after: Rows { stride, set: &set, occupied: &computed, values: &after },
            nothing: &nothing,
        };
        for slots in [0..rows, 3..17] {
            let states = &mut states[..slots.len() * stride];
            compared.best_moves(&plan, slots.clone(), &mut states.to_vec(), &mut vec![0; states.len()]);
            compared.maxima(&plan, slots, states);
        }
    }
}

#[test]
fn both_kernels_find_the_same_means_where_few_afterstates_lead_to_states() {
    let (mut numbers, compared) = (Numbers(8), Compared(Arc::default()));
    let params = params("3x2", Precision::Bits64);
    let backup = Backup::new(params.game());
    for columns in LONG_ROWS {
        let (rows, stride) = (20, index_map::stride(columns));
        let bits = marks(&mut numbers, rows, columns);
        let mut exchanged: Vec<u32> = (0..columns as u32).collect();
        exchanged.reverse();
        let maps = [&Permutation::IDENTITY, &Permutation::of(exchanged)];
        // From none to three spawns a row; some of them exchange columns.
        let start: Vec<u32> =
            (0..=rows as u32).map(|slot| slot / 4 * 6 + [0, 0, 1, 3][slot as usize % 4]).collect();
        let mut edges = || -> Vec<SpawnEdge> {
            let edge = |_| SpawnEdge {
                row: Row::from_index(numbers.below(rows)),
                pattern: u32::from(numbers.below(4) == 0),
            };
            (0..*start.last().unwrap()).map(edge).collect()
        };
        let (twos, fours) = (edges().into(), edges().into());
        let spawns = Spawns { start: start.into(), edges: [twos, fours], patterns: Vec::new() };
        let mut values = || (0..rows * stride).map(|_| numbers.below(1 << 20) as u64).collect::<Vec<_>>();
        let (twos, fours, mut after) = (values(), values(), values());
        let (set, computed) = (RowSet::all(rows), BitSet::below(rows));
        let of = |values| Rows { stride, set: &set, occupied: &computed, values };
        for reached in [None, Some(Marks { words: columns.div_ceil(64), bits: &bits })] {
            let (twos, fours) = (of(&twos[..]), of(&fours[..]));
            let plan = Means { backup: &backup, spawns: &spawns, maps: &maps, twos, fours, reached };
            compared.means(&plan, 0..rows, &mut after);
        }
    }
}

/// The plain kernels solve a whole board. So no other code depends on how kernels compute.
#[test]
fn another_implementation_solves_a_board() {
    let (params, archive) = (params("3x2", Precision::Bits32), Arc::new(Sealed::default()));
    let tuning = (usize::MAX, usize::MAX);
    let plain = worker::<u32>(&params, &archive, tuning).with_kernels(Plain);
    let (states, fingerprint, items) = solve_by::<u32>(&params, &[1], vec![plain], &archive);
    let wanted = common::solve::<u32>(&params, &[1], tuning);
    assert_eq!((states, fingerprint), (wanted.0, wanted.1));
    assert!(items == wanted.2, "other items");
}
