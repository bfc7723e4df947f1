//! The hashes of the fingerprint: the kernel of the program against the definition, board by board.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod common;

use exact2048_game::bitset::{BitSet, Number};
use exact2048_game::board::Board;
use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::configs::Config;
use exact2048_game::images::FirstImages;
use exact2048_game::rowset::{RowSet, Slot};
use exact2048_game::transitions::Skeletons;
use exact2048_game::{BoardSize, Objective, Params, Precision};
use exact2048_worker::bits::Source;
use exact2048_worker::kernels::block_hashes::{BlockHashes, HashSum};
use exact2048_worker::kernels::{Kernels, Vectors};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use common::slow_hash;

/// The hash that the kernel computes for a block with one state; `None` if the board exceeds the tile bound.
fn fast_hash(space: &Space, board: Board, value: u64) -> Option<u128> {
    let (lane, layer, row, sequence) = space.locate(board)?;
    let class = space.class(ClassId::of(layer, lane)?)?;
    let mask = (0..class.masks()).find(|&mask| class.mask_rows(mask).contains(&row.index()))?;
    let (small, cells) = (space.small_tiles(class, mask, row), &space.masks(lane.k)[mask].small_cells);
    let config = cells.iter().fold(0, |c, &cell| c << 4 | Config::from(small.get(cell as usize)));
    let columns = Columns::new(space.params(), lane);
    let column = columns.sequences().iter().position(|&found| found == sequence)?;
    let mut bits = vec![0; columns.words()];
    bits[column / 64] = 1 << (column % 64);
    let mut values = vec![u64::MAX; columns.len().next_multiple_of(64)];
    values[column] = value;
    let first_images = FirstImages::new(space.symmetries(), &space.masks(lane.k)[mask]).of(config);
    let mut rows = BitSet::with_room(class.rows());
    rows.insert(row);
    let occupied: BitSet<Slot> = BitSet::below(1);
    let plan = BlockHashes {
        space,
        class,
        columns: &columns,
        rows: &RowSet::new(rows),
        configs: &[config],
        skeletons: &Skeletons { first_images: vec![first_images].into(), ..Skeletons::default() },
        orbits: &[],
        states: Source { words: bits.len(), bits: &bits, occupied: &occupied },
        stride: values.len(),
        values: &values,
    };
    let HashSum { states, sum } = Vectors.hashes(&plan, 0..1);
    assert_eq!(states, 1);
    Some(sum)
}

fn space(board: &str, large: u8) -> Space {
    let board: BoardSize = board.parse().unwrap();
    let is_wide = board == "4x4".parse().unwrap();
    let objective = if is_wide { "reach:2048".parse().unwrap() } else { Objective::Score };
    Space::new(&Params::builder(board, objective).precision(Precision::Bits64).large(large).build().unwrap())
}

#[test]
fn hashes_are_those_of_whole_boards_for_any_split() {
    let mut compared = 0;
    for board in ["2x2", "1x5", "3x2", "3x3", "5x2", "4x3", "4x4", "3x3:..x/.../x..", "4x3:.##/.../.../..."] {
        // With a larger split, 16 small cells would have more configs than their numbers can count.
        let splits = if board == "4x4" { 3..=4 } else { 3..=6 };
        let spaces: Vec<Space> = splits.map(|large| space(board, large)).collect();
        let (size, places) = (spaces[0].params().game().board(), spaces[0].params().game().places());
        let exponents = proptest::collection::vec(0..6u8, places);
        let mut runner = TestRunner::deterministic();
        for _ in 0..40 {
            let exponents = exponents.new_tree(&mut runner).unwrap().current();
            // Some boards have a symmetry, so that several images are canonical.
            let plain = size.playable().fold(Board::default(), |b, cell| b.with(cell, exponents[cell]));
            for board in [plain, made_symmetric(&spaces[0], plain)] {
                for (i, space) in spaces.iter().enumerate() {
                    let value = u64::from(exponents[0]) << (20 * i);
                    let Some(found) = fast_hash(space, board, value) else { continue };
                    assert_eq!(found, slow_hash(space, board, value), "{board:?}, split {}", 3 + i);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1_200, "only {compared} boards are within the tile bound");
}

/// A board that a symmetry maps to itself: of each two exchanged cells, one is copied to the other.
fn made_symmetric(space: &Space, board: Board) -> Board {
    let last = space.symmetries().permutations().last().unwrap();
    (0..space.params().game().places()).fold(board, |b, cell| {
        let from = last[cell] as usize;
        if from > cell && last[from] as usize == cell { b.with(from, b.get(cell)) } else { b }
    })
}
