//! The figures of a report: drawings, descriptions in words, and numbers.

mod comparison;
mod figure;
mod play;
mod states;

use crate::gathered::RunReport;
pub use figure::Figure;

/// The figures of each run in turn, then the figures that compare several runs.
#[must_use]
pub fn figures(runs: &[RunReport]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (nth, run) in runs.iter().enumerate() {
        let of_run = states::figures(run).into_iter().chain(play::figures(run));
        figures.extend(of_run.map(|mut figure| {
            if runs.len() > 1 {
                figure.name = format!("run{}-{}", nth + 1, figure.name);
            }
            figure.run = Some(nth);
            figure
        }));
    }
    if runs.len() > 1 {
        figures.extend(comparison::figures(runs));
    }
    figures
}
