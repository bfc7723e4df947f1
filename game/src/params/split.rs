//! The split of boards into skeletons, sequences and lanes.

use crate::huge::NO_HUGE;
use crate::layer::Layer;

use super::game::Game;

/// Split of the tiles of boards. It changes speed and sizes, but no value and no count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileSplit {
    pub(super) large: u8,
    pub(super) huge: u8,
    pub(super) sectors: u8,
}

/// Highest last layer of runs that split boards of at least 12 cells at tile 8.
///
/// Such runs have few sequences of large tiles, so a small number of skeletons matters more. A run with a higher last
/// layer would have too many sequences.
const FEW_SEQUENCES: Layer = Layer(1024);

/// Last layer above which runs split boards of 12 cells at tile 32.
///
/// Nearly all states of runs above this layer have many large tiles. With a split at tile 16, maps between sequences
/// would cost more than the rows (`docs/dev/performance.md`).
const MANY_SEQUENCES: Layer = Layer(8192);

/// Smallest exponent of huge tiles in runs above [`MANY_SEQUENCES`]: tiles of at least 512 are huge.
///
/// This exponent halves the number of states of the largest block of a layer. A lower exponent would give more lanes
/// without a smaller largest block (`docs/dev/performance.md`).
const HUGE_OF_MANY: u8 = 9;

impl TileSplit {
    /// Smallest exponent of *large* tiles. The sequence holds their exponents instead of the skeleton.
    pub fn large(&self) -> u8 {
        self.large
    }

    /// Smallest exponent of *huge* tiles. Boards with different huge tiles are in different lanes.
    pub fn huge(&self) -> u8 {
        self.huge
    }

    /// Number of [sectors](crate::sector) into which the places of large tiles divide the lanes.
    pub fn sectors(&self) -> u8 {
        self.sectors
    }

    /// Returns the split that was fastest in measurements of the board, for a run up to layer `last`.
    pub(super) fn usual(game: &Game, last: Layer) -> Self {
        let (large, huge) = match game.cells() {
            12.. if last <= FEW_SEQUENCES => (3, NO_HUGE),
            12 if last > MANY_SEQUENCES => (5, HUGE_OF_MANY),
            _ => (4, NO_HUGE),
        };
        Self { large: Self::within(game, large), huge, sectors: 1 }
    }

    /// Limits the smallest exponent of large tiles to that of the winning tile. If the winning tile is the smallest
    /// large tile, no board that the run counts has a large tile.
    pub(super) fn within(game: &Game, large: u8) -> u8 {
        game.winning_exponent().map_or(large, |exponent| large.min(exponent))
    }

    /// Returns the split with more large tiles; `None` unless that split is faster with enough memory.
    ///
    /// The new split has about a tenth of the rows, and each row is longer. With so few rows, the run can keep their
    /// transitions.
    pub(super) fn with_fewer_rows(self, game: &Game, last: Layer) -> Option<Self> {
        let is_deep = game.cells() == 12 && last > MANY_SEQUENCES;
        (is_deep && self.large == 5).then_some(Self { large: 4, ..self })
    }
}
