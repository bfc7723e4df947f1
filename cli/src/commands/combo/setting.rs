//! Options for the rules and the solver, shared by the subcommands.

use std::time::Instant;

use anyhow::Result;
use bytesize::ByteSize;
use exact2048_combo4w::{
    ComboProblem, ComboProgress, ComboSpace, Draw, Drops, Field, Placements, Solution, memory_bytes, solve,
};

use crate::display::{self, ProgressLine};
use crate::units::{self, SizeUnits};
use crate::{Failure, limits};

/// Options for the first field.
#[derive(clap::Args, Debug)]
pub struct FieldArgs {
    /// Begin with this many filled cells, a number that most placements preserve: 3 (columns 3,0,0,0) or 6 (3,3,0,0)
    #[arg(long, default_value = "3", value_parser = ["3", "6"], value_name = "CELLS")]
    cells: String,
    /// Begin with this field instead: rows from the top, X or . for each cell, separated by /
    #[arg(long, value_name = "FIELD", conflicts_with = "cells")]
    from: Option<Field>,
}

impl FieldArgs {
    pub fn first(&self) -> Field {
        let columns = if self.cells == "6" { [3, 3, 0, 0] } else { [3, 0, 0, 0] };
        self.from.unwrap_or(Field::of_heights(columns))
    }
}

/// Options for drawing and dropping pieces.
#[derive(clap::Args, Debug)]
pub struct RuleArgs {
    /// Choose how pieces are drawn
    #[arg(long, value_enum, default_value = "random")]
    pub draw: DrawArg,
    /// Choose how pieces may be dropped
    #[arg(long, value_enum, default_value = "srs")]
    pub drops: DropsArg,
}

/// Ways to draw pieces.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum DrawArg {
    /// Draw each piece at random from all seven
    Random,
    /// Draw pieces from bags of all seven
    Bag,
}

impl From<DrawArg> for Draw {
    fn from(arg: DrawArg) -> Self {
        match arg {
            DrawArg::Random => Self::Random,
            DrawArg::Bag => Self::Bag,
        }
    }
}

/// Ways to drop pieces.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum DropsArg {
    /// Allow moves, tucks and spins with the kicks of the Super Rotation System
    Srs,
    /// Allow only straight drops
    Hard,
    /// Allow any placement that fits and rests on something, reachable or not
    Anywhere,
}

impl From<DropsArg> for Drops {
    fn from(arg: DropsArg) -> Self {
        match arg {
            DropsArg::Srs => Self::Srs,
            DropsArg::Hard => Self::Hard,
            DropsArg::Anywhere => Self::Anywhere,
        }
    }
}

/// Options for a complete problem.
#[derive(clap::Args, Debug)]
struct ProblemArgs {
    #[command(flatten)]
    field: FieldArgs,
    #[command(flatten)]
    rules: RuleArgs,
    /// Allow the player to hold one piece
    #[arg(long)]
    hold: bool,
    /// Show the player this many pieces after the current one
    #[arg(long, default_value_t = 0, value_name = "N")]
    previews: u8,
}

impl ProblemArgs {
    fn problem(&self) -> ComboProblem {
        ComboProblem {
            first: self.field.first(),
            drops: self.rules.drops.into(),
            hold: self.hold,
            draw: self.rules.draw.into(),
            previews: self.previews.into(),
        }
    }
}

/// Options for a problem, its solver and the output.
#[derive(clap::Args, Debug)]
pub struct SolvedArgs {
    #[command(flatten)]
    problem: ProblemArgs,
    #[command(flatten)]
    pub solve: SolveArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

impl SolvedArgs {
    /// Solves the problem with progress on stderr.
    pub fn solved(&self) -> Result<SolvedCombo> {
        self.solve.solve(self.problem.problem())
    }
}

/// Options for the solver, which change its time and the width of the intervals.
#[derive(clap::Args, Debug)]
pub struct SolveArgs {
    /// Sweep until no value changes by more than this, or by more than the rounding error
    #[arg(long, default_value = "1e-12", value_name = "CHANGE", value_parser = goal)]
    goal: f64,
    /// Use this many threads, which do not affect values [default: all]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Limit the memory [default: the free memory]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size)]
    memory: Option<ByteSize>,
}

fn goal(text: &str) -> Result<f64, String> {
    let goal = text.parse().ok().filter(|goal| (0.0..=0.1).contains(goal));
    goal.ok_or_else(|| "expected a number from 0 to 0.1, such as 1e-12".to_owned())
}

/// A problem and its solution.
pub struct SolvedCombo {
    pub space: ComboSpace,
    pub solution: Solution,
    pub seconds: f64,
}

impl SolveArgs {
    /// Solves a problem with progress on stderr.
    pub fn solve(&self, problem: ComboProblem) -> Result<SolvedCombo> {
        let moves = Placements::from_field(problem.first, problem.drops)
            .map_err(|error| Failure::usage(error.to_string()))?;
        self.check_memory(&problem, moves.fields().len())?;
        let pool = self.pool()?;
        let begun = Instant::now();
        let line = ProgressLine::new("solve");
        let space = pool.install(|| ComboSpace::new(problem))?;
        let mut course = Course::default();
        let solution = pool.install(|| {
            solve(&space, self.goal, |progress| {
                course.show(&line, progress);
                true
            })
        });
        line.finish();
        Ok(SolvedCombo { space, solution: solution?, seconds: begun.elapsed().as_secs_f64() })
    }

    /// The thread pool of the solver.
    pub fn pool(&self) -> Result<rayon::ThreadPool> {
        Ok(limits::pool(self.threads)?)
    }

    fn check_memory(&self, problem: &ComboProblem, fields: usize) -> Result<()> {
        let allowed = self.memory.map(|size| size.as_u64()).or_else(limits::free_memory_bytes);
        let allowed = allowed.unwrap_or_else(limits::memory_bytes);
        let needed = memory_bytes(problem, fields);
        if needed.is_some_and(|needed| needed <= allowed) {
            return Ok(());
        }
        let sizes = SizeUnits::of(allowed);
        let needed = needed.map_or("more than 16 EiB".to_owned(), |needed| sizes.at_least(needed));
        Err(Failure::usage(format!(
            "{} previews take {needed} of memory, the limit is {}; give fewer previews, a field with fewer cells, no \
             hold, or a larger --memory",
            problem.previews,
            sizes.size(allowed)
        ))
        .into())
    }
}

/// Progress of a stage. The residual falls by about the same factor with every sweep.
#[derive(Default)]
struct Course {
    /// Start of the stage and its first residual.
    first: Option<(Instant, f64)>,
}

impl Course {
    fn show(&mut self, line: &ProgressLine, progress: ComboProgress) {
        if progress.sweeps == 1 {
            self.first = None;
        }
        let (begun, first) = *self.first.get_or_insert((Instant::now(), progress.residual));
        let share = share(first, progress.residual, progress.goal);
        let left = (share > 0.02).then(|| begun.elapsed().mul_f64((1.0 - share) / share));
        let parts = [
            display::eta(left),
            format!("sweep {}", units::count(progress.sweeps)),
            format!("largest change {:.1e}", progress.residual),
        ];
        line.show(share, &parts);
    }
}

/// Finished share of the way from the first residual to the goal, on a logarithmic scale.
fn share(first: f64, now: f64, goal: f64) -> f64 {
    if now <= goal || goal <= 0.0 {
        return if now <= goal { 1.0 } else { 0.0 };
    }
    ((first / now).ln() / (first / goal).ln()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_orders_of_magnitude() {
        assert!((share(1.0, 1e-6, 1e-12) - 0.5).abs() < 1e-12);
        assert_eq!(share(1.0, 1.0, 1e-12), 0.0);
        assert_eq!(share(1.0, 1e-13, 1e-12), 1.0);
        assert_eq!(share(1.0, 2.0, 1e-12), 0.0, "it was less before");
        assert_eq!(share(1.0, 0.5, 0.0), 0.0);
        assert_eq!(share(0.0, 0.0, 0.0), 1.0);
    }
}
