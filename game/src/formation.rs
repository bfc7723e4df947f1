//! Formations of 4x4 that players practise, by name.

use std::str::FromStr;

use crate::board::BoardSize;

/// A formation of 4x4: locks in place of large tiles. Its name counts the playable cells of each row that has some, or
/// describes the shape of the locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formation {
    /// Name.
    pub name: &'static str,
    /// Picture for [`BoardSize::with_picture`].
    pub picture: &'static str,
}

impl Formation {
    /// All formations, those with few playable cells first.
    pub const ALL: [Self; 11] = [
        Self { name: "44", picture: "..../..../xxxx/xxxx" },
        Self { name: "L1", picture: "..../..xx/.xxx/.xxx" },
        Self { name: "L3", picture: "..../..../.xxx/.xxx" },
        Self { name: "442", picture: "..../..../..xx/xxxx" },
        Self { name: "4421", picture: "..../..../..xx/.xxx" },
        Self { name: "444", picture: "..../..../..../xxxx" },
        Self { name: "4431", picture: "..../..../...x/.xxx" },
        Self { name: "LL", picture: "..../..../..xx/..xx" },
        Self { name: "4441", picture: "..../..../..../.xxx" },
        Self { name: "4432", picture: "..../..../...x/..xx" },
        Self { name: "4442", picture: "..../..../..../..xx" },
    ];

    /// The board of the formation.
    #[must_use]
    pub fn size(self) -> BoardSize {
        let size = BoardSize::new(4, 4).and_then(|plain| plain.with_picture(self.picture));
        size.unwrap_or_else(|error| unreachable!("{}: {error}", self.name))
    }
}

impl FromStr for Formation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|formation| formation.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names = Self::ALL.map(|formation| formation.name).join(", ");
            format!("expected one of {names}, found {name:?}; for another formation draw it with --locked")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formations_are_boards_in_order_of_their_cells() {
        let cells: Vec<usize> = Formation::ALL.iter().map(|formation| formation.size().cells()).collect();
        assert_eq!(cells, [8, 8, 10, 10, 11, 12, 12, 12, 13, 13, 14]);
        assert_eq!("ll".parse(), Ok(Formation::ALL[7]));
        assert!("L2".parse::<Formation>().unwrap_err().contains("L1, L3"));
    }

    /// A name of digits counts the playable cells of the rows.
    #[test]
    fn names_count_playable_cells() {
        for Formation { name, picture } in Formation::ALL {
            if name.starts_with('L') {
                continue;
            }
            let rows = picture.split('/').map(|row| row.matches('.').count()).filter(|&cells| cells > 0);
            assert_eq!(rows.map(|cells| cells.to_string()).collect::<String>(), name);
        }
    }
}
