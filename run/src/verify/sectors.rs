//! Sectors, computed independently from the definition of the format.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::geometry::Geometry;

/// The sector of each set of cells with large tiles, by its bits. Empty if the run has a single sector.
pub fn sectors_of_sets((rows, columns): (usize, usize), geometry: &Geometry, sectors: u8) -> Vec<u8> {
    if sectors == 1 {
        return Vec::new();
    }
    let profiles: Vec<u64> =
        (0..1u64 << (rows * columns)).map(|set| profile_of(set, (rows, columns), geometry)).collect();
    let mut members = BTreeMap::<(u32, u64), u64>::new();
    for (set, &profile) in (0u64..).zip(&profiles) {
        *members.entry((set.count_ones(), profile)).or_default() += 1;
    }
    let mut sector_of = BTreeMap::new();
    for tiles in 0..=(rows * columns) as u32 {
        let mut of_tiles: Vec<_> = members
            .iter()
            .filter(|((of, _), _)| *of == tiles)
            .map(|((_, profile), sets)| (Reverse(sets), profile))
            .collect();
        of_tiles.sort();
        let mut dealt = vec![0; usize::from(sectors)];
        for (Reverse(sets), &profile) in of_tiles {
            let fewest = dealt.iter().copied().min().unwrap_or_default();
            let sector = dealt.iter().position(|&has| has == fewest).unwrap_or_default();
            dealt[sector] += sets;
            sector_of.insert(profile, sector as u8);
        }
    }
    profiles.iter().map(|profile| sector_of[profile]).collect()
}

/// The profile of a set: the smallest number, over its images, that has the cells of each line along the shorter side in
/// four bits. The first line is lowest.
fn profile_of(set: u64, (rows, columns): (usize, usize), geometry: &Geometry) -> u64 {
    let cells = rows * columns;
    let board = (0..cells).map(|cell| (set >> cell & 1) << (4 * cell)).sum();
    let line_of = |cell: usize| if rows >= columns { cell / columns } else { cell % columns };
    let number = |image: u64| (0..cells).map(|cell| (image >> (4 * cell) & 1) << (4 * line_of(cell))).sum();
    geometry.images(board).into_iter().map(number).min().unwrap_or_default()
}
