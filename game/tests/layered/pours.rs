//! A second layered game: pouring stones between the cups of a row.
//!
//! A cup holds at most nine stones. A move pours all stones of a cup into a neighbouring cup, if they fit. Its score is
//! the product of both numbers. Then chance fills one empty cup with one, two or three stones. The game is over when no
//! pour fits.
//!
//! So the layer is the number of stones, and there are three kinds of spawns. The potential of a cup of n stones is
//! n·(n − 1)/2, because pouring a into b adds a·b. Cups of at least four stones are large. No spawn makes one, and
//! large cups remain large.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use exact2048_game::layered::{LayeredGame, SpawnLaw};

/// Numbers of stones, cup by cup. Cups beyond the row are empty.
pub type Cups = [u8; 4];

/// Largest number of stones of a cup.
const MOST: u8 = 9;

/// Smallest number of stones of a large cup.
const LARGE: u8 = 4;

/// Game with a row of cups.
pub struct Pours {
    cups: usize,
}

impl Pours {
    pub fn new(cups: usize) -> Self {
        Self { cups }
    }

    /// Returns one board for each empty cup, with `stones` stones in that cup.
    fn filled(&self, board: Cups, stones: u8) -> Vec<Cups> {
        let empty = (0..self.cups).filter(|&cup| board[cup] == 0);
        let fill = |cup: usize| {
            let mut filled = board;
            filled[cup] = stones;
            filled
        };
        empty.map(fill).collect()
    }
}

/// Potential of a cup.
fn potential(stones: u8) -> u64 {
    u64::from(stones) * u64::from(stones.saturating_sub(1)) / 2
}

impl LayeredGame for Pours {
    type Board = Cups;
    /// Number of stones in large cups, and number of these cups. Of two lanes with equally many stones, the lane with
    /// more cups is lower, because pouring large cups together leaves fewer.
    type Lane = (u8, Reverse<u8>);

    fn starts(&self) -> Vec<Cups> {
        self.filled(Cups::default(), 1).into_iter().flat_map(|board| self.filled(board, 1)).collect()
    }

    fn moves(&self, state: Cups) -> Vec<(Cups, u64)> {
        let pairs = (0..self.cups).flat_map(|from| [(from, from.wrapping_sub(1)), (from, from + 1)]);
        let pour = |(from, to): (usize, usize)| {
            let (poured, held) = (state[from], state[..self.cups].get(to).copied()?);
            if poured == 0 || poured + held > MOST {
                return None;
            }
            let mut after = state;
            (after[from], after[to]) = (0, poured + held);
            Some((after, u64::from(poured) * u64::from(held)))
        };
        pairs.filter_map(pour).collect()
    }

    fn spawns(&self) -> Vec<SpawnLaw> {
        let law = |(stones, weight): (u8, u32)| SpawnLaw {
            rise: u32::from(stones),
            weight,
            unscored: potential(stones),
        };
        [(1, 5), (2, 2), (3, 1)].map(law).to_vec()
    }

    fn spawned(&self, after: Cups, kind: usize) -> Vec<Cups> {
        self.filled(after, kind as u8 + 1)
    }

    fn layer(&self, board: Cups) -> u32 {
        board.iter().map(|&stones| u32::from(stones)).sum::<u32>() - 2
    }

    fn last_layer(&self) -> u32 {
        self.cups as u32 * u32::from(MOST) - 2
    }

    fn images(&self, board: Cups) -> Vec<Cups> {
        let mut mirrored = board;
        mirrored[..self.cups].reverse();
        vec![board, mirrored]
    }

    fn potential(&self, board: Cups) -> u64 {
        board.iter().map(|&stones| potential(stones)).sum()
    }

    fn is_won(&self, _: Cups) -> bool {
        false
    }

    fn lane(&self, board: Cups) -> Self::Lane {
        let large: Vec<u8> = board.into_iter().filter(|&stones| stones >= LARGE).collect();
        (large.iter().sum(), Reverse(large.len() as u8))
    }

    /// A pour of two small cups can make a large cup of four to six stones. A pour of a small cup and a large cup adds
    /// one to three stones to the large cups. A pour of two large cups leaves one large cup fewer.
    fn target_lanes(&self, (stones, Reverse(cups)): Self::Lane) -> BTreeSet<Self::Lane> {
        let mut targets: BTreeSet<Self::Lane> =
            (LARGE..=2 * (LARGE - 1)).map(|born| (stones + born, Reverse(cups + 1))).collect();
        if cups > 0 {
            targets.extend((1..LARGE).map(|added| (stones + added, Reverse(cups))));
            targets.insert((stones, Reverse(cups - 1)));
        }
        targets
    }
}
