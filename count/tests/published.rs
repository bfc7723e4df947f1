//! The published numbers: J. Lees-Miller, "The Mathematics of 2048: Counting States with Combinatorics" (2017),
//! recomputed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use exact2048_count::{Bounds, Counted};
use exact2048_game::board::MAX_EXPONENT;
use exact2048_game::symmetry::Symmetries;
use exact2048_game::{Board, BoardSize};

/// For targets 8, 16, …, 2048: baseline, reachable layers, last sum.
type Table = (&'static str, [u128; 9], [u128; 9], [u64; 9]);

#[rustfmt::skip]
const PUBLISHED: [Table; 3] = [
    (
        "2x2",
        [73, 233, 537, 1_033, 1_769, 2_793, 4_153, 5_897, 8_073],
        [73, 233, 529, 905, 905, 905, 905, 905, 905],
        [16, 28, 44, 60, 60, 60, 60, 60, 60],
    ),
    (
        "3x3",
        [19_665, 261_615, 1_933_425, 9_815_535, 38_400_465, 124_140_015, 347_066_865, 865_782_255, 1_970_527_185],
        [19_665, 261_615, 1_933_407, 9_814_437, 38_369_571, 123_560_373, 339_166_485, 786_513_819, 1_400_665_575],
        [36, 68, 124, 220, 380, 636, 1_020, 1_532, 2_044],
    ),
    (
        "4x4",
        [
            43_046_689, 4_294_901_729, 152_544_843_873, 2_816_814_940_129, 33_080_342_678_945, 278_653_866_803_169,
            1_819_787_258_282_209, 9_718_525_023_289_313, 44_096_709_674_720_289,
        ],
        [
            43_046_689, 4_294_901_729, 152_544_843_841, 2_816_814_934_817, 33_080_342_314_753, 278_653_849_430_401,
            1_819_786_604_950_209, 9_718_504_608_259_073, 44_096_167_159_459_777,
        ],
        [64, 124, 236, 444, 828, 1_532, 2_812, 5_116, 9_212],
    ),
];

/// `K^n − (K−2)^n − 2n + 1` for n cells and the target `2^K`.
///
/// The formula subtracts from all boards the boards without a 2 or 4 and the boards with one tile. It adds one for all won
/// boards.
fn baseline_formula(size: BoardSize, target: u8) -> u128 {
    let (tiles, cells) = (u128::from(target), size.cells() as u32);
    tiles.pow(cells) - (tiles - 2).pow(cells) + 1 - 2 * u128::from(cells)
}

#[test]
fn all_numbers_of_the_table_are_reproduced() {
    for (board, baseline, layers, last) in PUBLISHED {
        let size: BoardSize = board.parse().unwrap();
        for exponent in 3..=11 {
            let at = usize::from(exponent) - 3;
            let bounds = Bounds::new(size, Some(1 << exponent), |_| ()).unwrap();
            assert_eq!(baseline_formula(size, exponent), baseline[at], "{board} to 2^{exponent}");
            assert_eq!(bounds.total(Counted::All).boards, baseline[at], "{board} to 2^{exponent}");
            assert_eq!(bounds.total(Counted::Reachable).boards, layers[at], "{board} to 2^{exponent}");
            assert_eq!(bounds.last_sum(Counted::Reachable), Some(last[at]), "{board} to 2^{exponent}");
        }
    }
}

#[test]
fn counts_match_listed_boards() {
    for (board, target) in [
        ("2x2", 64u64),
        ("3x2", 16),
        ("1x4", 64),
        ("5x1", 16),
        ("2x3", 32),
        ("2x3:x../..x", 64),
        ("3x3:x.x/.x./x.x", 32),
        ("2x4:#.../...#", 16),
        ("2x2+1x", 32),
        ("3x2+2x", 16),
        ("2x3+4x", 8),
    ] {
        let size: BoardSize = board.parse().unwrap();
        let (cells, exponents) = (size.cells(), target.trailing_zeros());
        let symmetries = Symmetries::new(size);
        let bounds = Bounds::new(size, Some(target), |_| ()).unwrap();
        let mut want = vec![[0u128; 4]; bounds.layers().len()];
        // The digit after those of the tiles is a loose stone.
        let base = u64::from(exponents) + u64::from(size.loose() > 0);
        for number in 0..base.pow(cells as u32) {
            let digit = |cell: usize| match (number / base.pow(cell as u32) % base) as u8 {
                digit if u32::from(digit) == exponents => MAX_EXPONENT,
                digit => digit,
            };
            let packed = size
                .playable()
                .enumerate()
                .fold(Board::default(), |packed, (cell, place)| packed.with(place, digit(cell)));
            if !size.holds(packed.0) {
                continue;
            }
            let tiles: Vec<u8> =
                (0..cells).map(digit).filter(|&e| e > 0 && !size.is_loose_stone(e)).collect();
            if tiles.len() < 2 || tiles.iter().all(|&e| e > 2) {
                continue;
            }
            let within = (3..=exponents as u8).all(|e| {
                tiles.iter().filter(|&&tile| tile >= e).count()
                    <= (size.tile_cells() + 2).saturating_sub(e.into())
            });
            let canonical = symmetries.canonical(packed) == packed;
            let layer = &mut want[packed.tile_sum(size) as usize / 2 - 2];
            for (count, counts) in layer.iter_mut().zip([true, canonical, within, within && canonical]) {
                *count += u128::from(counts);
            }
        }
        for (layer, want) in bounds.layers().iter().zip(want) {
            let (all, within) = (layer.all, layer.within_tile_bound);
            assert_eq!(
                [all.boards, all.orbits, within.boards, within.orbits],
                want,
                "{board}, sum {}",
                layer.sum
            );
        }
    }
}

#[test]
fn no_layer_has_more_states_than_the_bound() {
    // States of 3x3 by sum, without a target, including final states (published: Yamashita and others, strong solutions).
    let states = [8, 22, 43, 79, 143, 218, 330, 477, 692, 938, 1255, 1586, 1990, 2386];
    let bounds = Bounds::new("3x3".parse().unwrap(), None, |_| ()).unwrap();
    for (layer, &states) in bounds.layers().iter().zip(&states) {
        assert!(
            states <= layer.within_tile_bound.orbits && layer.within_tile_bound.orbits <= layer.all.orbits
        );
    }
    // The tile bound is sharp at both ends.
    assert_eq!(bounds.layers()[0].within_tile_bound.orbits, 8);
    assert_eq!(bounds.last_sum(Counted::WithinTileBound), Some(2044));
    let total = bounds.total(Counted::WithinTileBound).orbits;
    assert!((48_713_519..4 * 48_713_519).contains(&total), "{total}");
}

#[test]
fn progress_is_reported() {
    for (board, target) in [("2x2", Some(8)), ("3x3", None), ("4x3", Some(64))] {
        let mut reached = vec![0.0];
        Bounds::new(board.parse().unwrap(), target, |share| reached.push(share)).unwrap();
        assert!(reached.windows(2).all(|pair| pair[0] < pair[1]), "{board}: {reached:?}");
        assert_eq!(reached.last(), Some(&1.0), "{board}");
    }
}

#[test]
fn invalid_targets_are_refused() {
    for tile in [0, 4, 12, 1 << 18, u64::MAX] {
        let error = Bounds::new("3x3".parse().unwrap(), Some(tile), |_| ()).unwrap_err();
        assert!(error.to_string().contains("power of two from 8 to 131072"), "{error}");
    }
}
