//! Decides the next steps of a run, in pure code.
//!
//! The coordinator never computes a value, opens a file or reads a clock. It receives finished tasks and returns
//! tasks and events. This crate's `README.md` states the scheduling problem.

pub mod cluster;
mod forecast;
mod layer_sums;
mod pass_cost;
mod planner;
mod ranges;
mod rate;
pub mod room;
mod states;
mod task;
mod workload;

pub use forecast::{Forecast, ForecastTotals, Relief};
pub use pass_cost::{PassCost, RemainingCost};
pub use planner::Planner;
pub use ranges::{COMMIT_INTERVAL, RangeOrder, RangePolicy, Ranges, SHARD_BYTES};
pub use rate::{Pace, Rate, is_enough};
pub use states::Knowledge;
pub use task::{PlanEvent, Release, Stage, Task, Totals};
pub use workload::Workload;
