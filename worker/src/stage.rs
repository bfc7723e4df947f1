//! The common course of the stages of a block: gather the inputs, plan, run the kernels, settle the result.

use std::sync::MutexGuard;

use exact2048_game::value::Value;

use crate::error::WorkerError;
use crate::memory::{Need, Reservation};
use crate::open_block::OpenBlock;
use crate::sink::Outcome;
use crate::store::BlockStore;
use crate::tables::MapCache;

/// The resources of a running task.
pub struct StageResources<'a> {
    /// The memory that it may use.
    pub reserved: Reservation<'a>,
    /// The index maps of its lane.
    pub maps: MutexGuard<'a, MapCache>,
}

/// One computation for a block. Enumerating has two stages, and backing up has two.
pub trait BlockStage {
    /// The blocks that the stage reads.
    type Inputs;
    /// The entries or values that the kernels make.
    type Made;

    /// The memory that gathering needs.
    fn need_to_gather(&self) -> Need;

    /// Finds the inputs; `None` if the block has no entry.
    fn gather(&self, task: &mut StageResources<'_>) -> Result<Option<Self::Inputs>, WorkerError>;

    /// The memory that planning and computing need; `None` if the memory for gathering suffices.
    fn need_to_compute(&self, _inputs: &Self::Inputs) -> Option<Need> {
        None
    }

    /// Plans and runs the kernels.
    fn compute(&self, inputs: Self::Inputs, task: &mut StageResources<'_>)
    -> Result<Self::Made, WorkerError>;

    /// Holds the result, and hands it to the sink if the stage has one.
    fn settle(&self, made: Option<Self::Made>, task: &mut StageResources<'_>)
    -> Result<Outcome, WorkerError>;
}

/// Runs a stage of a block.
///
/// # Errors
///
/// If data cannot be read, or cannot be written to a scratch file.
pub fn run<V: Value>(
    stage: &impl BlockStage,
    open: &OpenBlock<'_>,
    store: &BlockStore<V>,
) -> Result<Outcome, WorkerError> {
    let maps = open.tables.maps();
    let mut task = StageResources { reserved: store.reserve(stage.need_to_gather())?, maps };
    let Some(inputs) = stage.gather(&mut task)? else { return stage.settle(None, &mut task) };
    if let Some(need) = stage.need_to_compute(&inputs) {
        let StageResources { reserved, maps } = task;
        // A task that waits for more memory while it holds some might wait for ever.
        drop(reserved);
        task = StageResources { reserved: store.reserve(need)?, maps };
    }
    let made = stage.compute(inputs, &mut task)?;
    stage.settle(Some(made), &mut task)
}
