//! Formations of 4x4 that players practise, by name.

use std::str::FromStr;

use crate::board::BoardSize;

/// A formation of 4x4: stones in place of large tiles. The name of a formation with locks counts the playable cells of
/// each row that has some, or describes the shape of the locks. The name of a formation with loose stones counts the other
/// cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formation {
    /// Name.
    pub name: &'static str,
    /// Stones, as the end of the text of a board.
    pub stones: &'static str,
}

impl Formation {
    /// All formations: those with locks, then those with loose stones, each in the order of the cells for tiles.
    pub const ALL: [Self; 16] = [
        Self { name: "44", stones: ":..../..../xxxx/xxxx" },
        Self { name: "L1", stones: ":..../..xx/.xxx/.xxx" },
        Self { name: "L3", stones: ":..../..../.xxx/.xxx" },
        Self { name: "442", stones: ":..../..../..xx/xxxx" },
        Self { name: "4421", stones: ":..../..../..xx/.xxx" },
        Self { name: "444", stones: ":..../..../..../xxxx" },
        Self { name: "4431", stones: ":..../..../...x/.xxx" },
        Self { name: "LL", stones: ":..../..../..xx/..xx" },
        Self { name: "4441", stones: ":..../..../..../.xxx" },
        Self { name: "4432", stones: ":..../..../...x/..xx" },
        Self { name: "4442", stones: ":..../..../..../..xx" },
        Self { name: "free8", stones: "+8x" },
        Self { name: "free9", stones: "+7x" },
        Self { name: "free10", stones: "+6x" },
        Self { name: "free11", stones: "+5x" },
        Self { name: "free12", stones: "+4x" },
    ];

    /// The board of the formation.
    #[must_use]
    pub fn size(self) -> BoardSize {
        let size = format!("4x4{}", self.stones).parse();
        size.unwrap_or_else(|error| unreachable!("{}: {error}", self.name))
    }

    /// Number of stones.
    #[must_use]
    pub fn large_tiles(self) -> u32 {
        self.size().stones().count_ones() + u32::from(self.size().loose())
    }
}

impl FromStr for Formation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|formation| formation.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names = Self::ALL.map(|formation| formation.name).join(", ");
            format!("expected one of {names}, found {name:?}; for another formation draw it with --locked, or give --loose")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formations_are_boards_in_order_of_their_cells() {
        let cells: Vec<usize> =
            Formation::ALL.iter().map(|formation| formation.size().tile_cells()).collect();
        assert_eq!(cells, [8, 8, 10, 10, 11, 12, 12, 12, 13, 13, 14, 8, 9, 10, 11, 12]);
        assert_eq!("ll".parse(), Ok(Formation::ALL[7]));
        assert!("L2".parse::<Formation>().unwrap_err().contains("L1, L3"));
    }

    /// A name of digits counts the playable cells of the rows.
    #[test]
    fn names_count_playable_cells() {
        for formation @ Formation { name, stones } in Formation::ALL {
            if let Some(cells) = name.strip_prefix("free") {
                assert_eq!(cells, formation.size().tile_cells().to_string());
            }
            let Some(picture) = stones.strip_prefix(':').filter(|_| !name.starts_with('L')) else { continue };
            let rows = picture.split('/').map(|row| row.matches('.').count()).filter(|&cells| cells > 0);
            assert_eq!(rows.map(|cells| cells.to_string()).collect::<String>(), name);
        }
    }
}
