//! Kernels on the blocks of 3×3: `cargo bench -p exact2048-worker`. Throughput is in entries (rows ×
//! columns), so that its inverse is the time an entry.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use exact2048_game::backup::Backup;
use exact2048_game::bitset::BitSet;
use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::maps::ColumnMap;
use exact2048_game::patterns::{PatternId, Patterns};
use exact2048_game::rowset::{Row, RowSet, Slot};
use exact2048_game::transitions::{Maker, Transitions};
use exact2048_game::{Lane, Params};
use exact2048_solution::Parts;
use exact2048_worker::bits::{BitMatrix, Source};
use exact2048_worker::kernels::bit_moves::move_bits;
use exact2048_worker::kernels::index_map::{self, MapList, Permutation};
use exact2048_worker::kernels::maxima::{Maxima, maxima};
use exact2048_worker::kernels::means::{Means, means};
use exact2048_worker::kernels::{BitMoves, MoveRun, Rows};
use exact2048_worker::pieces::Pieces;

/// A lane and a class from the middle of the 3×3 game, with 4 large tiles and 24 columns.
const LANE: Lane = Lane::new(4, 16 + 64 + 256 + 512);
const CLASS: ClassId = ClassId { k: 4, small_sum: 16, sector: 0 };

struct Setup {
    params: Params,
    space: Space,
    patterns: Patterns,
    columns: Columns,
}

fn setup() -> Setup {
    let params = Params::small("3x3");
    let columns = Columns::new(&params, LANE);
    Setup { space: Space::new(&params), patterns: Patterns::default(), columns, params }
}

fn transitions(setup: &Setup, id: ClassId) -> Transitions {
    let class = setup.space.class(id).expect("a class of 3x3");
    Transitions::new(id, Arc::new(RowSet::all(class.rows())))
}

/// The set of all rows or slots of these blocks.
fn all<N>() -> BitSet<N> {
    BitSet::from_words(vec![u64::MAX; 100_000])
}

fn kernels(c: &mut Criterion) {
    let setup = setup();
    let maker = Maker { space: &setup.space, patterns: &setup.patterns };
    let own = transitions(&setup, CLASS);
    let (moves, spawns) = (own.moves(maker), own.spawns(maker));
    let rows = own.rows().len();
    let (columns, stride) = (setup.columns.len(), index_map::stride(setup.columns.len()));
    let (all_rows, all_slots) = (all::<Row>(), all::<Slot>());
    let mut group = c.benchmark_group("3x3 block");

    group.throughput(Throughput::Elements(rows as u64));
    group.bench_function("transitions of moves, per row", |b| {
        b.iter(|| black_box(transitions(&setup, CLASS).moves(maker)).groups.len())
    });
    group.bench_function("transitions of spawns, per row", |b| {
        b.iter(|| black_box(transitions(&setup, CLASS).spawns(maker)).edges[0].len())
    });

    let stay = moves
        .groups
        .iter()
        .find(|g| g.step == exact2048_game::lane::Step::STAY)
        .expect("moves within the lane");
    let (params, patterns, own_columns) = (&setup.params, &setup.patterns, &setup.columns);
    let between = ColumnMap { params, patterns, source: own_columns, target: own_columns };
    let known = |pattern: PatternId| patterns.known([pattern]).pop().flatten();
    let made = || {
        let mut maps = MapList::default();
        maps.make(&between, &patterns.known(stay.patterns.iter().copied()));
        maps
    };
    let maps = made();
    let edges = stay.edges_of(0..stay.patterns.len()).enumerate();
    let runs: Vec<MoveRun<'_>> = edges.map(|(map, edges)| MoveRun { edges, map: maps.get(map) }).collect();
    group.throughput(Throughput::Elements((maps.len() * columns) as u64));
    group.bench_function("index maps, per column", |b| b.iter(|| black_box(made()).len()));

    let entries = (stay.edges.len() * columns) as u64;
    group.throughput(Throughput::Elements(entries));
    let source = vec![(1u64 << columns) - 1; rows];
    let mut target = BitMatrix::new(Arc::clone(own.rows()), 1);
    group.bench_function("moves of bits, per entry", |b| {
        let source = Source { words: 1, bits: &source, occupied: &all_slots };
        b.iter(|| {
            target.map_pieces(&Pieces::whole(rows), |target| {
                move_bits(&BitMoves { runs: &runs, states: source }, target);
            })
        });
    });

    let after: Vec<u32> = (0..rows * stride).map(|i| i as u32).collect();
    let mut states = vec![0u32; rows * stride];
    let nothing = vec![0u32; stride];
    let after_rows = Rows { stride, set: own.rows(), occupied: &all_rows, values: &after };
    group.bench_function("maximum over moves, per entry", |b| {
        let wanted = Source { words: 1, bits: &source, occupied: &all_slots };
        b.iter(|| {
            let plan = Maxima { runs: &runs, wanted, stride, after: after_rows, nothing: &nothing };
            maxima(&plan, 0..rows, &mut states);
        });
    });

    let backup = Backup::new(setup.params.game());
    let block = |spawned: u32| -> (RowSet, Vec<u32>) {
        let id = ClassId { small_sum: CLASS.small_sum + spawned, ..CLASS };
        let rows = setup.space.class(id).map_or(0, |class| class.rows());
        (RowSet::all(rows), (0..rows * stride).map(|i| 1 << 20 | i as u32).collect())
    };
    let (twos, fours) = (block(2), block(4));
    let permutation = |&pattern: &PatternId| Permutation::new(&between, known(pattern).as_deref());
    let permutations: Vec<Permutation> = spawns.patterns.iter().map(permutation).collect();
    let permutations: Vec<&Permutation> = permutations.iter().collect();
    let mut out = vec![0u32; rows * stride];
    group.throughput(Throughput::Elements((2 * spawns.edges[0].len() * columns) as u64));
    group.bench_function("mean over spawns, per entry", |b| {
        b.iter(|| {
            let twos = Rows { stride, set: &twos.0, occupied: &all_rows, values: &twos.1 };
            let fours = Rows { stride, set: &fours.0, occupied: &all_rows, values: &fours.1 };
            let plan = Means { backup: &backup, spawns, maps: &permutations, twos, fours, reached: None };
            black_box(means(&plan, 0..rows, &mut out));
        });
    });

    let parts = Parts::new(rows, columns);
    group.throughput(Throughput::Elements((rows * columns) as u64));
    group.bench_function("values to items, per entry", |b| {
        b.iter(|| black_box(parts.encode_values(0, own.rows(), &source, stride, &states, None)).len());
    });
    group.finish();
}

criterion_group!(benches, kernels);
criterion_main!(benches);
