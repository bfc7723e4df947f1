//! Scaling limits of a cluster: the real coordinator, with simulated workers in simulated time.
//!
//! A block's time is proportional to its number of states. The owner of the block's lane computes the block once
//! its inputs have arrived. Workers pull, push, write shards and begin epochs as `docs/dev/cluster-protocol.md`
//! describes.
//!
//! ```sh
//! cargo run --release -p exact2048-coordinator --example scale -- --workers 1,8,64,100
//! ```

mod job;
mod model;
mod world;

use std::collections::HashMap;
use std::time::Instant;

use exact2048_game::ParamsBuilder;
use job::Job;
use model::Model;
use world::World;

fn main() {
    let mut options = match options() {
        Ok(options) => options,
        Err(error) => return eprintln!("error: {error}\n\n{}", Model::HELP),
    };
    let board = options.remove("board").unwrap_or_else(|| "4x3".to_owned());
    let workers = options.remove("workers").unwrap_or_else(|| "1,8,64,100".to_owned());
    let huge = options.remove("huge").map(|huge| huge.parse()).transpose();
    let sectors = options.remove("sectors").map_or(Ok(1), |sectors| sectors.parse());
    let keep = options.remove("keep").map(|keep| keep.parse()).transpose();
    let states = options.remove("states").map_or(Ok(1_152_817_492_752), |states| states.parse());
    let counts: Result<Vec<usize>, _> = workers.split(',').map(str::parse).collect();
    let numbers = (states, counts, huge, sectors, keep, Model::new(options));
    let (Ok(states), Ok(counts), Ok(huge), Ok(sectors), Ok(keep), Ok(model)) = numbers else {
        return eprintln!("error: an option has an invalid value\n\n{}", Model::HELP);
    };
    let started = Instant::now();
    let split = |builder: ParamsBuilder| builder.huge(huge).sectors(sectors).kept(keep);
    let job = Job::new(&board, states, split);
    println!("{board}: {job}, counted in {:.1?}\n{model}\n", started.elapsed());
    println!("{}", world::Summary::HEAD);
    for workers in counts {
        println!("{}", World::new(&job, &model, workers).run());
    }
}

/// Parses pairs of `--name value`.
fn options() -> Result<HashMap<String, String>, String> {
    let mut options = HashMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let Some(name) = name.strip_prefix("--") else {
            return Err(format!("expected --NAME VALUE, found {name}"));
        };
        let Some(value) = arguments.next() else { return Err(format!("expected a value after --{name}")) };
        options.insert(name.to_owned(), value);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failed epoch is a panic, so the coordinator accepts all reports of the simulated workers.
    #[test]
    fn jobs_end_on_any_number_of_workers() {
        let model = Model::new(HashMap::new()).unwrap();
        for sectors in [1, 2] {
            let job = Job::new("3x3", 48_713_519, |builder| builder.sectors(sectors));
            for workers in [1, 3] {
                let busy = World::new(&job, &model, workers).run().busy_threads();
                let threads = f64::from(model.threads) * workers as f64;
                assert!(busy > 0.0 && busy <= threads, "{busy} of {threads}");
            }
        }
    }
}
