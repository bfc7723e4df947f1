//! Bounds on the cost of a board with stones, for which no estimate exists.

use std::io::Write;

use anyhow::Result;
use exact2048_game::Params;
use serde::Serialize;

use crate::output::{write_field, write_sentence};
use crate::states_bound::{SECONDS_A_STATE, states_at_most};
use crate::units;

/// The bounds, as `--json` prints them.
#[derive(Debug, Serialize)]
pub struct FormationPlan<'a> {
    params: &'a Params,
    threads: usize,
    /// Upper bound on the number of states. It is a string, because many readers round large numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    states_at_most: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core_seconds_at_most: Option<f64>,
}

impl<'a> FormationPlan<'a> {
    pub fn new(params: &'a Params, threads: usize) -> Self {
        let states = states_at_most(params);
        Self {
            params,
            threads,
            states_at_most: states.map(|states| states.to_string()),
            core_seconds_at_most: states.map(|states| states as f64 * SECONDS_A_STATE),
        }
    }

    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        write_field(out, "board", self.params.game().board())?;
        write_field(out, "objective", self.params.game().objective())?;
        let states = self.states_at_most.as_deref().and_then(|states| states.parse().ok());
        let states = states.map(|states: f64| format!("at most {}", units::rough(states)));
        write_field(out, "states", states.as_deref().unwrap_or("unknown"))?;
        if let Some(seconds) = self.core_seconds_at_most {
            let with = units::several(self.threads, "thread");
            let time = units::about(seconds / self.threads as f64);
            write_field(out, "time", format!("at most {time} with {with}"))?;
        }
        writeln!(out)?;
        let sentence = "The bound counts all boards of the formation, and games reach fewer of them. On L3 with reach:512, \
                        they reach a sixth. The memory that solve needs is unknown before it has enumerated the states.";
        Ok(write_sentence(out, sentence)?)
    }
}
