use super::*;
use exact2048_game::bitset::Number;
use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::{Board, Lane, Layer, Params, lane};

fn params(board: &str, large: u8, huge: u8, sectors: u8) -> Params {
    let objective = if board.contains('+') { "reach:64" } else { "score" };
    let params = Params::usual(board, objective).large(large).huge(huge).sectors(sectors).build();
    params.unwrap()
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// The numberings of the solver and of the verifier implement the same text, so they must be equal.
#[test]
fn boards_have_the_same_places_as_in_the_solver() {
    // 5x2 and 4x3 have classes whose symmetric masks number all configs.
    let boards =
        [("2x2", 3), ("3x3", 4), ("2x4", 3), ("1x8", 4), ("5x2", 4), ("4x3", 4), ("3x3", 6), ("4x2", 6)];
    let with_stones = [
        ("3x3:x../.../..x", 3),
        ("3x3:.../.#./...", 4),
        ("2x4:.xx./....", 3),
        ("4x4:..../..../xxxx/xxxx", 4),
        ("4x4:...#/...#/...#/####", 4),
    ];
    let splits = [(16, 1), (8, 1), (16, 3), (8, 8)];
    let of_all = boards.into_iter().flat_map(|board| splits.map(|split| (board, split)));
    // A board with stones has one sector, and one with loose stones no huge tiles.
    let of_stones = with_stones.into_iter().flat_map(|board| [(board, (16, 1)), (board, (8, 1))]);
    let with_loose = [("3x3+2x", 3), ("4x4+8x", 4), ("3x3+1x", 5)].map(|board| (board, (16, 1)));
    for ((board, large), (huge, sectors)) in of_all.chain(of_stones).chain(with_loose) {
        let params = params(board, large, huge, sectors);
        let (game, space) = (CheckedGame::new(&params), Space::new(&params));
        let layout = Layout::new(&game);
        let playable: Vec<usize> = game.geometry().playable().collect();
        let mut seed = 5;
        for _ in 0..400 {
            let mut board = 0u64;
            for &cell in &playable {
                // Only small tiles at first: few boards with many large tiles satisfy the bound on large tiles.
                let exponent = random(&mut seed) % 5 % u64::from(large);
                board |= exponent << (4 * cell);
            }
            for _ in 0..random(&mut seed) % 3 {
                let cell = playable[random(&mut seed) as usize % playable.len()];
                board =
                    board & !(15 << (4 * cell)) | (u64::from(large) + random(&mut seed) % 3) << (4 * cell);
            }
            for _ in 0..game.geometry().loose() {
                let cell = playable[random(&mut seed) as usize % playable.len()];
                board |= 15 << (4 * cell);
            }
            if board == 0 {
                continue;
            }
            let (layer, lane) = (game.layer(board), game.lane(board));
            let block = layout.block(layer, lane);
            let place = block.as_ref().and_then(|block| layout.locate(block, board));
            let found = place.map(|place| (lane, layer, place.row, place.column));
            let wanted = space.locate(Board(board)).and_then(|(lane, layer, row, sequence)| {
                let columns = Columns::new(&params, lane);
                let column = columns.sequences().iter().position(|&s| s == sequence)?;
                Some((lane.code(), layer.0, row.index(), column))
            });
            assert_eq!(found, wanted, "{board:x} on {}", params.game().board());
            // Conversely, the entry at this place is an image of the board.
            let (Some(place), Some(block)) = (place, block) else { continue };
            assert!(block.rows(block.part_of(place.row)).contains(&place.row));
            let mut rows = RowWalk::new(&layout, &block);
            let row = rows.get(place.row);
            assert_ne!(rows.symmetry(&row), RowSymmetry::Smaller);
            let entry = row.small | rows.large_tiles()[place.column];
            assert_eq!(game.geometry().canonical(entry), game.geometry().canonical(board));
        }
    }
}

#[test]
fn blocks_have_the_same_sizes_as_in_the_solver() {
    let boards = [("2x2", 3, 16), ("3x2", 4, 16), ("2x4", 3, 8), ("3x3", 4, 16), ("3x3", 4, 8)];
    let with_stones = [("3x3:x../.../..x", 3, 16), ("3x3:.../.#./...", 4, 8), ("2x4:.xx./....", 3, 16)];
    for (board, large, huge) in boards.into_iter().chain(with_stones) {
        let params = params(board, large, huge, if board.contains(':') { 1 } else { 2 });
        let (game, space) = (CheckedGame::new(&params), Space::new(&params));
        let layout = Layout::new(&game);
        for lane in lane::lanes(&params) {
            assert_eq!(
                *layout.columns(lane.code(), usize::from(lane.k), lane.large_sum),
                Columns::new(&params, lane).sequences(),
                "{lane:?}"
            );
        }
        let sector = |sector| Lane { sector, ..Lane::new(2, 2 << large) };
        let sectors = (0..params.split().sectors()).map(sector);
        for lane in sectors.chain([Lane::new(0, 0)]) {
            for layer in (4..=120).step_by(2) {
                let rows =
                    ClassId::of(Layer(layer), lane).and_then(|id| space.class(id)).map_or(0, |c| c.rows());
                let found = layout.block(layer, lane.code());
                assert_eq!(found.map_or(0, |block| block.row_count()), rows, "{lane:?}, {layer}");
            }
        }
    }
}

/// The example of `docs/dev/format.md`.
#[test]
fn masks_with_many_configs_number_all_of_them() {
    let game = CheckedGame::new(&params("5x2", 4, 16, 1));
    let layout = Layout::new(&game);
    assert_eq!(layout.block(22, 0).unwrap().row_count(), 36_430);
}
