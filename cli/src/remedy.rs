//! What to type against an error. Libraries say what was expected, what was found and what helps; which command or option
//! of this program that is, is known here alone.

use exact2048_game::ParamsError;
use exact2048_run::member::CrewError;
use exact2048_solution::{NotSolved, QueryError, ReadError, RunError};
use exact2048_storage::{ErrorKind, StorageError};
use exact2048_worker::WorkerError;

use crate::network;

/// What computes a part of a run that is lost or was never computed.
const CONTINUE: &str = "the solve command that began it does that; on a cluster, exact2048 resume of its job";

/// What goes on with a run as it is, and what makes one that stores other things of the job.
const STORED_OTHERWISE: &str = "leave --keep and --values out to go on; or exact2048 solve with --run OTHER";

/// The command or the options that help against an error, if any do.
pub fn of(error: &anyhow::Error) -> Option<&'static str> {
    if let Some(error) = error.downcast_ref::<ParamsError>() {
        return of_params(error);
    }
    match error.downcast_ref::<RunError>() {
        Some(RunError::UnnamedShards { .. }) => return Some("exact2048 solve --discard-shards"),
        Some(RunError::OtherJob { .. }) => return Some("another --run"),
        Some(RunError::StoredOtherwise { .. }) => return Some(STORED_OTHERWISE),
        Some(RunError::Params(error)) => return of_params(error),
        _ => {}
    }
    if let Some(QueryError::NotSolved(NotSolved::OnlyEnumerates(_))) = error.downcast_ref() {
        return Some("exact2048 solve without --until-layer, with another --run");
    }
    if let Some(QueryError::TooLarge(_)) = error.downcast_ref() {
        return Some("query --memory SIZE; solve --keep N in another --run");
    }
    if let Some(CrewError::Threads { .. }) = error.downcast_ref() {
        return Some("--threads N");
    }
    match kind(error) {
        Some((ErrorKind::UnsafeCache, _)) => Some("--cache DIR"),
        Some((ErrorKind::NotComputed, _)) | Some((ErrorKind::DataLoss, true)) => Some(CONTINUE),
        _ => network::remedy(error),
    }
}

fn of_params(error: &ParamsError) -> Option<&'static str> {
    match error {
        ParamsError::TileTooLarge { .. } => Some("--objective reach:TILE, or --until-layer LAYER"),
        ParamsError::BelowFirstLayer(_) | ParamsError::OddLayer(_) | ParamsError::AboveLastLayer { .. } => {
            Some("--until-layer LAYER; without --until-layer the whole board is solved")
        }
        ParamsError::Discount(_) => Some("--objective reach:TILE with --discount"),
        ParamsError::CertainLoss(_) => Some("--objective reach:TILE with --spawner worst"),
        ParamsError::BestMovesTooFarApart { .. } => Some("--keep 1024 with --values best-move"),
        ParamsError::OutOfReach { .. }
        | ParamsError::Large(_)
        | ParamsError::Huge(_)
        | ParamsError::TooManyRows { .. } => None,
    }
}

/// What kind an error of a run is, and whether a shard is to blame; `None` for an error of anything else.
pub fn kind(error: &anyhow::Error) -> Option<(ErrorKind, bool)> {
    if let Some(error) = error.downcast_ref::<StorageError>() {
        return Some((error.kind(), error.blames().is_some()));
    }
    if let Some(error) = error.downcast_ref::<RunError>() {
        return Some((error.kind(), error.blames().is_some()));
    }
    if let Some(error) = error.downcast_ref::<ReadError>() {
        return Some((error.kind(), error.blames().is_some()));
    }
    if let Some(error) = error.downcast_ref::<QueryError>() {
        return Some((error.kind()?, error.blames().is_some()));
    }
    if let Some(error) = error.downcast_ref::<WorkerError>() {
        return Some((error.kind(), error.blames().is_some()));
    }
    let error = error.downcast_ref::<CrewError>()?;
    Some((error.kind(), error.blames().is_some()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use exact2048_solution::ItemKind;
    use exact2048_storage::{ItemKey, RunId, ShardIdentity, ShardKind, ShardReader};

    use super::*;

    /// The same remedy, however deep the error lies.
    #[test]
    fn a_lost_shard_is_computed_again_whoever_misses_it() {
        let lost = || {
            let (run, kind) = (RunId::random(), ShardKind::Values);
            let identity =
                ShardIdentity { run, kind, rows: 2, cols: 2, first_layer: 4, last_layer: 8, rule_hash: 0 };
            ShardReader::open("/no/such/values-000004-000008.shard".as_ref(), &identity).unwrap_err()
        };
        for error in [
            anyhow::Error::from(lost()),
            RunError::from(lost()).into(),
            ReadError::from(lost()).into(),
            QueryError::from(ReadError::from(lost())).into(),
            WorkerError::from(ReadError::from(lost())).into(),
            CrewError::from(WorkerError::from(ReadError::from(lost()))).into(),
            CrewError::from(RunError::from(lost())).into(),
            ReadError::ItemMissing { kind: ItemKind::BestMoves, part: ItemKey::default() }.into(),
        ] {
            assert_eq!(kind(&error), Some((ErrorKind::DataLoss, true)), "{error}");
            assert_eq!(of(&error.context("while it was read")), Some(CONTINUE));
        }
        assert_eq!(kind(&anyhow::anyhow!("something else")), None);
        assert_eq!(of(&anyhow::anyhow!("something else")), None);
    }

    #[test]
    fn remedies_name_options() {
        let folder = std::path::Path::new("/tmp/cache").into();
        let cache = StorageError::UnsafeCache { folder, reason: "it is everybody's".to_owned() };
        assert_eq!(of(&CrewError::from(RunError::from(cache)).into()), Some("--cache DIR"));
        assert_eq!(
            of(&RunError::from(ParamsError::OddLayer(7)).into()),
            of(&ParamsError::OddLayer(9).into())
        );
        let place: exact2048_storage::Place = std::path::Path::new("/tmp/run").into();
        let (found, wanted) = ("4".to_owned(), "16".to_owned());
        let kept = RunError::StoredOtherwise { place, field: "choice of kept layers", found, wanted };
        assert_eq!(of(&kept.into()), Some(STORED_OTHERWISE));
    }
}
