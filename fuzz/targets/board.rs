//! User input: sizes, boards, objectives and probabilities. Printing a parsed value and parsing it again yields the
//! same.
#![no_main]

use exact2048_game::{Board, BoardSize, Objective, Spawn4};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (size, board) = text.split_once(' ').unwrap_or(("3x3", text));
    if let Ok(size) = size.parse::<BoardSize>() {
        assert_eq!(size.to_string().parse(), Ok(size));
        if let Ok(board) = Board::parse(board, size) {
            assert_eq!(Board::parse(&board.to_text(size), size), Ok(board));
        }
    }
    if let Ok(objective) = text.parse::<Objective>() {
        assert_eq!(objective.to_string().parse(), Ok(objective));
    }
    if let Ok(spawn4) = text.parse::<Spawn4>() {
        assert_eq!(spawn4.to_string().parse(), Ok(spawn4));
    }
});
