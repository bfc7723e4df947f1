//! Boards as Python objects, and their conversion from texts, numbers and arrays.

use exact2048_game::board::tile;
use exact2048_game::rules::{Move, make_move};
use exact2048_game::symmetry::Symmetries;
use exact2048_game::{Asked, Board as Packed, BoardSize, Game};
use numpy::ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray2, PyArrayDescrMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use crate::errors::{BoardError, of_board};

/// A board with the player to move. Boards are immutable, so a move returns a new board.
#[pyclass(module = "exact2048", frozen, eq, hash)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Board {
    pub(crate) packed: Packed,
    pub(crate) size: BoardSize,
}

#[pymethods]
impl Board {
    /// Creates a board from a text, an array of exponents (uint8, 0 for an empty cell), or a packed number with a size.
    ///
    /// In a text, "/" or line ends separate rows, and spaces or commas separate cells. "0" or "." is an empty cell, "x" a
    /// lock, and "#" a wall. In arrays and numbers, cells of stones are 0, and the size names the stones.
    #[new]
    #[pyo3(signature = (board, size=None))]
    fn new(board: &Bound<'_, PyAny>, size: Option<&str>) -> PyResult<Self> {
        let size: BoardSize = match size {
            Some(size) => size.parse().map_err(|error| of_board(&error))?,
            None => size_of(board)?,
        };
        Ok(Self { packed: read(board, size)?.one()?.board, size })
    }

    /// Numbers of rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.size.rows(), self.size.cols())
    }

    /// The size as text: "3x3".
    #[getter]
    fn size(&self) -> String {
        self.size.to_string()
    }

    /// The exponents as a number: four bits a cell, row by row, with the first cell in the lowest bits.
    #[getter]
    fn packed(&self) -> u64 {
        self.packed.0
    }

    /// The exponents: uint8 [R, C], 0 for an empty cell.
    #[getter]
    fn exponents<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<u8>> {
        let (rows, cols) = self.shape();
        Array2::from_shape_fn((rows, cols), |(r, c)| self.packed.get(r * cols + c)).into_pyarray(py)
    }

    /// The tiles: uint32 [R, C], 0 for an empty cell.
    #[getter]
    fn tiles<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<u32>> {
        let (rows, cols) = self.shape();
        Array2::from_shape_fn((rows, cols), |(r, c)| tile(self.packed.get(r * cols + c))).into_pyarray(py)
    }

    /// Sum of the tiles.
    #[getter]
    fn layer(&self) -> u32 {
        self.packed.tile_sum(self.size)
    }

    /// The canonical form: among the board's images under symmetries, the one with the smallest packed number.
    #[getter]
    fn canonical(&self) -> Self {
        Self { packed: Symmetries::new(self.size).canonical(self.packed), size: self.size }
    }

    /// The moves that change the board, from "left", "right", "up" and "down".
    #[getter]
    fn legal_moves(&self) -> Vec<&'static str> {
        let changes = |&direction: &Move| make_move(self.packed, direction, self.size).is_some();
        Move::ALL.into_iter().filter(changes).map(Move::name).collect()
    }

    /// The board after a move, before the spawn, with the score of the move; None if the move changes nothing.
    fn after(&self, direction: &str) -> PyResult<Option<(Self, u32)>> {
        let found = Move::ALL.into_iter().find(|known| known.name() == direction);
        let direction = found.ok_or_else(|| {
            let text = format!("expected left, right, up or down, found {direction}");
            crate::errors::UsageError::new_err(text)
        })?;
        let made = make_move(self.packed, direction, self.size);
        Ok(made.map(|(packed, score)| (Self { packed, size: self.size }, score)))
    }

    fn __str__(&self) -> String {
        self.packed.to_text(self.size)
    }

    fn __repr__(&self) -> String {
        format!("Board(\"{}\")", self.packed.to_text(self.size))
    }

    /// A table, for notebooks.
    fn _repr_html_(&self) -> String {
        let (rows, cols) = self.shape();
        let cell = |r: usize, c: usize| {
            let place = r * cols + c;
            let exponent = self.packed.get(place);
            let is_empty = exponent == 0 && !self.size.is_stone(place);
            let text = if is_empty { String::new() } else { self.packed.cell_text(place, self.size) };
            // Colours range from pale to deep, so large tiles stand out on light and dark pages.
            let (light, colour) =
                (92.0 - 4.5 * f64::from(exponent), if exponent > 7 { "#fff" } else { "#222" });
            format!(
                "<td style='width:3em;height:2.4em;text-align:center;border:1px solid #888;color:{colour};\
                 background:hsl(32,70%,{light:.0}%)'>{text}</td>"
            )
        };
        let row = |r: usize| format!("<tr>{}</tr>", (0..cols).map(|c| cell(r, c)).collect::<String>());
        format!("<table>{}</table>", (0..rows).map(row).collect::<String>())
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (u64, String))> {
        let class = py.get_type::<Self>().into_any().unbind();
        Ok((class, (self.packed.0, self.size.to_string())))
    }
}

/// The size of a board given as a text or an array.
fn size_of(board: &Bound<'_, PyAny>) -> PyResult<BoardSize> {
    let (rows, cols) = if let Ok(text) = board.extract::<String>() {
        return BoardSize::of_text(&text).map_err(|error| of_board(&error));
    } else if let Ok(board) = board.cast::<Board>() {
        return Ok(board.get().size);
    } else if let Ok(shape) = board.getattr("shape").and_then(|shape| shape.extract::<Vec<usize>>())
        && let [rows, cols] = shape[..]
    {
        (rows, cols)
    } else {
        return Err(BoardError::new_err(
            "expected a board as text, as an array of exponents (uint8), or as a packed number with its size",
        ));
    };
    BoardSize::new(rows as u64, cols as u64).map_err(|error| of_board(&error))
}

/// Boards of a question: one board, or an array.
pub(crate) enum Question {
    One(Asked),
    Many(Vec<Packed>),
}

impl Question {
    /// Requires one board.
    pub(crate) fn one(self) -> PyResult<Asked> {
        match self {
            Self::One(asked) => Ok(asked),
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
    pub(crate) fn boards(&self) -> &[Packed] {
        match self {
            Self::One(asked) => std::slice::from_ref(&asked.board),
            Self::Many(boards) => boards,
        }
    }
}

/// Reads the boards of a question about a run. A text may show a position of the real game, if the game has locks.
pub(crate) fn read_question(given: &Bound<'_, PyAny>, game: &Game) -> PyResult<Question> {
    match given.extract::<String>() {
        Ok(text) => Asked::parse(&text, game).map(Question::One).map_err(|error| of_board(&error)),
        Err(_) => read(given, game.board()),
    }
}

/// Reads one board or an array of boards of a size.
///
/// One board is a `Board`, a text, a packed number, or exponents as uint8 [R, C]. An array has exponents as uint8 [N, R, C]
/// or packed numbers as uint64 [N].
pub(crate) fn read(given: &Bound<'_, PyAny>, size: BoardSize) -> PyResult<Question> {
    let one = |board| Question::One(Asked::of_run(board, size));
    if is_masked(given)? {
        return Err(BoardError::new_err(MASKED));
    }
    if let Ok(board) = given.cast::<Board>() {
        let board = board.get();
        return if board.size == size {
            Ok(one(board.packed))
        } else {
            Err(BoardError::new_err(format!("expected a board of {size}, found one of {}", board.size)))
        };
    }
    if let Ok(text) = given.extract::<String>() {
        return Packed::parse(&text, size).map(one).map_err(|error| of_board(&error));
    }
    if given.cast::<PyUntypedArray>().is_err()
        && let Ok(packed) = given.extract::<u64>()
    {
        return packed_board(packed, size).map(one);
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
            let boards = cells.chunks_exact(size.places()).map(|cells| of_exponents(cells, size));
            let boards = boards.collect::<PyResult<Vec<_>>>()?;
            return Ok(if is_one { one(boards[0]) } else { Question::Many(boards) });
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
pub(crate) fn is_masked(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    let is_derived = given.cast::<PyUntypedArray>().is_ok() && given.cast_exact::<PyUntypedArray>().is_err();
    Ok(is_derived && given.hasattr("mask")?)
}

fn of_exponents(exponents: &[u8], size: BoardSize) -> PyResult<Packed> {
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
    packed_board(packed, size)
}

fn packed_board(packed: u64, size: BoardSize) -> PyResult<Packed> {
    if size.holds(packed) {
        return Ok(Packed(packed));
    }
    Err(BoardError::new_err(format!(
        "expected a packed board of {size}, four bits for each cell, found {packed:#x}, which has bits above its {} cells, or \
         in the cell of a stone",
        size.places()
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
