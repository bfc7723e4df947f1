//! The chain as a drawing.

use std::fmt::{self, Display, Formatter};

use crate::chain::Chain;

/// The chain in the language of Graphviz.
///
/// Layers are ranks, absorbing states have two circles, and the label of an edge is the spawned tile.
#[derive(Debug)]
pub struct Dot<'a>(pub &'a Chain);

impl Display for Dot<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let states = self.0.states();
        writeln!(f, "digraph bag {{\n  rankdir=LR; node [shape=box]; edge [fontsize=9];")?;
        writeln!(f, "  \"empty\";")?;
        for id in self.0.starts() {
            writeln!(f, "  \"empty\" -> \"{}\";", states[id].bag)?;
        }
        for (sum, layer) in self.0.layers().filter(|(_, layer)| !layer.is_empty()) {
            write!(f, "  {{ rank=same; /* sum {sum} */")?;
            for state in &states[layer] {
                let shape = if state.next.is_none() { " [peripheries=2]" } else { "" };
                write!(f, " \"{}\"{shape};", state.bag)?;
            }
            writeln!(f, " }}")?;
        }
        for state in states {
            for (id, tile) in state.next.into_iter().flatten().zip([2, 4]) {
                if let Some(id) = id {
                    writeln!(f, "  \"{}\" -> \"{}\" [label={tile}];", state.bag, states[id].bag)?;
                }
            }
        }
        writeln!(f, "}}")
    }
}
