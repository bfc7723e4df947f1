//! Conversion of boards from Python: texts, numbers, arrays.

use exact2048_game::{Board as Packed, BoardSize};
use numpy::{PyArrayDescrMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::board::Board;
use crate::errors::{BoardError, of_board};

/// Boards of a question: one board, or an array.
pub(crate) enum Question {
    One(Packed),
    Many(Vec<Packed>),
}

impl Question {
    /// Requires one board.
    pub(crate) fn one(self) -> PyResult<Self> {
        match self {
            Self::One(_) => Ok(self),
            Self::Many(boards) => {
                let found = boards.len();
                Err(BoardError::new_err(format!(
                    "expected one board, found an array of {found}; call values for arrays"
                )))
            }
        }
    }

    /// Requires an array of boards.
    pub(crate) fn many(self) -> PyResult<Self> {
        match self {
            Self::Many(_) => Ok(self),
            Self::One(_) => {
                Err(BoardError::new_err("expected an array of boards, found one board; call value for one"))
            }
        }
    }

    /// The boards.
    pub fn boards(&self) -> &[Packed] {
        match self {
            Self::One(board) => std::slice::from_ref(board),
            Self::Many(boards) => boards,
        }
    }
}

/// Reads one board or an array of boards of a size.
///
/// One board is a `Board`, a text, a packed number, or exponents as uint8 [R, C]. An array has exponents as uint8 [N, R, C]
/// or packed numbers as uint64 [N].
pub fn read(given: &Bound<'_, PyAny>, size: BoardSize) -> PyResult<Question> {
    if is_masked(given)? {
        return Err(BoardError::new_err(MASKED));
    }
    if let Ok(board) = given.cast::<Board>() {
        let board = board.get();
        return if board.size == size {
            Ok(Question::One(board.packed))
        } else {
            Err(BoardError::new_err(format!("expected a board of {size}, found one of {}", board.size)))
        };
    }
    if let Ok(text) = given.extract::<String>() {
        return Packed::parse(&text, size).map(Question::One).map_err(|error| of_board(&error));
    }
    if given.cast::<PyUntypedArray>().is_err()
        && let Ok(packed) = given.extract::<u64>()
    {
        return packed_board(packed, size).map(Question::One);
    }
    if let Ok(packed) = given.extract::<PyReadonlyArrayDyn<'_, u64>>() {
        let array = packed.as_array();
        if array.ndim() == 1 {
            return array
                .iter()
                .map(|&packed| packed_board(packed, size))
                .collect::<PyResult<_>>()
                .map(Question::Many);
        }
    }
    if let Ok(exponents) = given.extract::<PyReadonlyArrayDyn<'_, u8>>() {
        let (rows, cols) = (size.rows(), size.cols());
        let shape = exponents.shape();
        let is_of_size = |of_board: &[usize]| of_board == [rows, cols];
        let is_one = is_of_size(shape);
        if is_one || shape.len() == 3 && is_of_size(&shape[1..]) {
            let contiguous;
            let array = exponents.as_array();
            let cells = match array.as_slice() {
                Some(cells) => cells,
                None => {
                    contiguous = array.iter().copied().collect::<Vec<u8>>();
                    &contiguous
                }
            };
            let boards = cells.chunks_exact(size.cells()).map(of_exponents).collect::<PyResult<Vec<_>>>()?;
            return Ok(if is_one { Question::One(boards[0]) } else { Question::Many(boards) });
        }
    }
    Err(BoardError::new_err(format!(
        "expected a Board, a text such as \"{}\", exponents as uint8 [{2}, {3}] or [N, {2}, {3}], or packed boards as uint64 [N]; \
         found {1}",
        Packed(0x21).to_text(size),
        kind_of(given),
        size.rows(),
        size.cols(),
    )))
}

/// Error text for a masked array.
pub(crate) const MASKED: &str =
    "expected an array without a mask, found a masked array; pass the result of its `compressed` or `filled`";

/// Whether a value is one of NumPy's masked arrays.
///
/// The data of such an array shows masked cells as ordinary cells.
pub fn is_masked(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_derived = given.cast::<PyUntypedArray>().is_ok() && given.cast_exact::<PyUntypedArray>().is_err();
    Ok(is_derived && given.hasattr("mask")?)
}

fn of_exponents(exponents: &[u8]) -> PyResult<Packed> {
    let mut packed = 0;
    let mut all = 0;
    for (cell, &exponent) in exponents.iter().enumerate() {
        packed |= u64::from(exponent & 15) << (4 * cell);
        all |= exponent;
    }
    if all > 15 {
        let found = exponents.iter().max().copied().unwrap_or_default();
        return Err(BoardError::new_err(format!(
            "expected exponents from 0 (empty cell) to 15 (tile 32,768), found {found}: uint8 arrays hold exponents, not \
             tiles"
        )));
    }
    Ok(Packed(packed))
}

fn packed_board(packed: u64, size: BoardSize) -> PyResult<Packed> {
    if packed.checked_shr(4 * size.cells() as u32).unwrap_or(0) == 0 {
        return Ok(Packed(packed));
    }
    Err(BoardError::new_err(format!(
        "expected a packed board of {size}, four bits for each cell, found {packed:#x}, which has bits above its {} cells",
        size.cells()
    )))
}

/// Describes the found value in words.
fn kind_of(given: &Bound<'_, PyAny>) -> String {
    match given.cast::<PyUntypedArray>() {
        Ok(array) => {
            let shape: Vec<String> = array.shape().iter().map(ToString::to_string).collect();
            let kind =
                array.dtype().typeobj().name().map_or_else(|_| "values".to_owned(), |name| name.to_string());
            format!("an array of {kind} [{}]", shape.join(", "))
        }
        Err(_) => {
            given.get_type().name().map_or_else(|_| "something else".to_owned(), |name| name.to_string())
        }
    }
}
