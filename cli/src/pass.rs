//! The progress of a run or a job in words: `59.9% of the upward pass, 3 s; whole job 17 s`.
//!
//! The share and the first time refer to the current pass, upward or downward, and the second time to both passes.

use exact2048_solution::Phase;

use crate::units;

/// Words for the pass. Messages print them after its finished share.
pub fn way(phase: Phase) -> &'static str {
    match phase {
        Phase::Enumerate => " of the upward pass",
        Phase::BackUp => " of the downward pass",
    }
}

/// The time left in the pass and in the whole job. If both times are about the same, prints only one.
pub fn time_left(pass: Option<f64>, job: Option<f64>) -> String {
    match pass.zip(job) {
        None => "time left unknown".to_owned(),
        Some((pass, job)) if job - pass < 1.0 => units::about(job),
        Some((pass, job)) => format!("{}; whole job {}", units::about(pass), units::about(job)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_time_names_the_whole_job() {
        assert_eq!(time_left(Some(3.2), Some(17.0)), "3 s; whole job 17 s");
        assert_eq!(time_left(Some(125.0), Some(125.4)), "2 min 5 s");
        assert_eq!(time_left(None, None), "time left unknown");
    }
}
