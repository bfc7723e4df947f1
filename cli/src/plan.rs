//! Estimates of the disk and memory of a job before it begins.

use std::path::Path;

use exact2048_coordinator::{Forecast, Workload};
use exact2048_game::Params;
use exact2048_solution::Segment;

use crate::units::{self, SizeUnits};

/// Estimated needs of the rest of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Needs {
    /// Number of states of the whole run.
    pub states: f64,
    /// Number of bytes that the run has yet to write to disk.
    pub disk_bytes: u64,
}

impl Needs {
    /// Needs of a run that lacks these segments.
    pub fn of(params: &Params, workload: &Workload, missing: &[Segment]) -> Self {
        let forecast = Forecast::new(params, workload);
        let disk_bytes = missing.iter().map(|&segment| forecast.added_bytes(segment)).sum();
        Self { states: workload.whole_states(), disk_bytes }
    }

    /// Needs of a run with `left_bytes` bytes of disk left. The run needs no more, because it removes data that it does
    /// not keep.
    pub fn within(self, left_bytes: u64) -> Self {
        Self { disk_bytes: self.disk_bytes.min(left_bytes), ..self }
    }

    /// The needs in words.
    pub fn text(&self) -> String {
        let (states, bytes) = (units::rough(self.states), units::size(self.disk_bytes));
        format!("this run has about {states} states and takes {bytes} on disk")
    }
}

/// Free disk and memory.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct FreeRoom {
    /// Free bytes on the disk of the run; `None` if unknown, as in stores.
    pub disk_bytes: Option<u64>,
    /// Free bytes of memory; `None` if unknown.
    pub memory_bytes: Option<u64>,
}

/// Smallest disk use of a job, in bytes, that causes a note.
const LEAST_NOTED_BYTES: u64 = 1 << 30;

/// Upper estimate of the memory of a job: a fixed number of bytes, and bytes per state. Even jobs with ample memory
/// have used less.
const MOST_MEMORY: (u64, f64) = (64 << 20, 16.0);

/// Notes and warnings to print before a job that may use `memory_limit` bytes of memory.
pub fn notes(needs: &Needs, memory_limit: u64, room: &FreeRoom) -> Vec<String> {
    let mut notes = Vec::new();
    match room.disk_bytes {
        Some(free) if free < needs.disk_bytes => notes.push(format!(
            "warning: {}, but only {} are free there. The run stops when the disk is full. Its commits stay, so free \
             some space and repeat the command to resume",
            needs.text(),
            units::size(free)
        )),
        _ if needs.disk_bytes >= LEAST_NOTED_BYTES => {
            let free = room.disk_bytes.map(|free| format!("; {} are free there", units::size(free)));
            notes.push(format!("note: {}{}", needs.text(), free.unwrap_or_default()));
        }
        _ => {}
    }
    let (any, a_state) = MOST_MEMORY;
    let memory_bytes = memory_limit.min(any + (a_state * needs.states) as u64);
    if let Some(free) = room.memory_bytes.filter(|free| *free < memory_bytes) {
        notes.push(format!(
            "warning: the run may use up to {} of memory, but only {} are free now. The system may kill the process, so \
             free memory or give a smaller --memory",
            SizeUnits::of(memory_limit).size(memory_bytes),
            SizeUnits::of(memory_limit).size(free)
        ));
    }
    notes
}

/// Number of bytes that this user can still write in `folder`, which may not exist yet; `None` if unknown.
pub fn free_disk(folder: &Path) -> Option<u64> {
    // A path without a folder is in the current folder.
    let ancestors =
        folder.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let stat = ancestors.into_iter().find_map(|path| rustix::fs::statvfs(path).ok())?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use super::*;

    use exact2048_solution::{Holdings, Recipe};

    fn needs(board: &str, objective: &str, until_layer: Option<u32>) -> Needs {
        let params = Params::usual(board, objective).until(until_layer).build().unwrap();
        Needs::of(&params, &Workload::new(&params), &Recipe::new(&params, &Holdings::default()).steps())
    }

    #[test]
    fn needs_of_known_runs_match_the_records() {
        for (board, objective, until_layer, states, bytes) in [
            ("3x3", "score", None, 48_713_519.0, 50e6),
            ("3x3", "reach:512", None, 14_314_189.0, 16.7e6),
            ("2x5", "score", None, 1_814_373_350.0, 1.6e9),
            // Keeps half of the layers. The expected bytes were computed from those of the layers that a run stored.
            ("4x3", "score", None, 1.153e12, 8.4e11),
            ("4x3", "score", Some(224), 792_386_098.0, 29.5e6),
        ] {
            let needs = needs(board, objective, until_layer);
            let off = (needs.states / states, needs.disk_bytes as f64 / bytes);
            let near = |off: f64| (0.6..1.7).contains(&off);
            assert!(near(off.0) && near(off.1), "{board} {objective}: {needs:?}, off by {off:?}");
        }
    }

    #[test]
    fn jobs_that_do_not_fit_cause_warnings() {
        let needs = needs("4x3", "score", None);
        let room = |disk, memory| FreeRoom { disk_bytes: Some(disk), memory_bytes: Some(memory) };
        let said = notes(&needs, 12 << 30, &room(73 << 30, 3 << 30));
        assert!(
            said[0].starts_with("warning: this run has about 1.2 T states and takes 788.6 GiB"),
            "{said:?}"
        );
        assert!(said[0].contains("73.0 GiB are free"), "{said:?}");
        assert!(said[1].contains("12.0 GiB of memory") && said[1].contains("3.0 GiB are free"), "{said:?}");
        let said = notes(&needs, 1 << 30, &room(9 << 40, 3 << 30));
        assert_eq!(
            said,
            ["note: this run has about 1.2 T states and takes 788.6 GiB on disk; 9.0 TiB are free there"]
        );
        assert_eq!(notes(&needs, 1, &FreeRoom::default()).len(), 1, "free space of a store is not known");
        let said = notes(&needs.within(60 << 30), 1 << 30, &room(73 << 30, 3 << 30));
        assert_eq!(
            said,
            ["note: this run has about 1.2 T states and takes 60.0 GiB on disk; 73.0 GiB are free there"]
        );
    }

    #[test]
    fn free_space_of_a_missing_folder_is_known() {
        let here = free_disk(Path::new("."));
        assert!(here.is_some_and(|free| free > 0));
        assert!(free_disk(Path::new("no/such/folder/yet")).is_some());
    }
}
