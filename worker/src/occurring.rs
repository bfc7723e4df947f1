//! The moves that some state of a block makes.

use std::ops::Range;

use exact2048_game::lane::Step;
use exact2048_game::patterns::PatternId;
use exact2048_game::transitions::{MoveEdge, MoveGroup, Moves};

use crate::kernels::MoveRun;
use crate::kernels::index_map::IndexMap;

/// The moves of a group that some state makes. Tasks make index maps only for the patterns of these moves.
pub struct OccurringMoves {
    /// The patterns that occur.
    pub patterns: Vec<PatternId>,
    edges: Vec<MoveEdge>,
    /// Where the edges of each pattern end.
    ends: Vec<usize>,
}

impl OccurringMoves {
    /// The moves of a group for which `occurs` is true.
    pub fn new(group: &MoveGroup, occurs: impl Fn(MoveEdge) -> bool) -> Self {
        let (mut patterns, mut ends) = (Vec::new(), Vec::new());
        // The loop leaves out most edges, and the choice looks random. So it writes each edge, over the one before if
        // that was left out. No branch can be mispredicted.
        let (mut edges, mut kept) = (vec![MoveEdge::default(); group.edges.len()], 0);
        let all = group.edges_of(0..group.patterns.len());
        for (&pattern, of_pattern) in group.patterns.iter().zip(all) {
            let before = kept;
            for &edge in of_pattern {
                edges[kept] = edge;
                kept += usize::from(occurs(edge));
            }
            if kept > before {
                patterns.push(pattern);
                ends.push(kept);
            }
        }
        edges.truncate(kept);
        Self { patterns, edges, ends }
    }

    /// The edges of some patterns with their maps, without the patterns in which no column takes part.
    pub fn runs<'a>(&'a self, patterns: Range<usize>, maps: &[IndexMap<'a>]) -> Vec<MoveRun<'a>> {
        let mut start = patterns.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        let runs = self.ends[patterns].iter().zip(maps).map(|(&end, &map)| {
            let edges = &self.edges[start..end];
            start = end;
            MoveRun { edges, map }
        });
        runs.filter(|run| !run.map.is_empty()).collect()
    }
}

/// The moves of a step, if the class has any.
pub fn group_of(moves: &Moves, step: Step) -> Option<&MoveGroup> {
    moves.groups.iter().find(|group| group.step == step)
}
