//! Remedies for errors. Libraries report the expected and the found value. Only this module knows which command or option
//! of the program helps.

use exact2048_game::ParamsError;
use exact2048_run::member::CrewError;
use exact2048_solution::{MissingValues, QueryError, ReadError, RunError};
use exact2048_storage::{ErrorKind, StorageError};
use exact2048_worker::WorkerError;

use crate::network;

/// Remedy for a lost or never computed part of a run.
const CONTINUE: &str = "repeat the solve command of the run; on a cluster, use exact2048 resume";

/// Remedy for a run that does not store the items that the options request.
const STORED_OTHERWISE: &str =
    "omit --keep and --values to resume it, or use exact2048 solve with --run OTHER";

/// The command or the options that remedy an error, if any.
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
    if let Some(QueryError::MissingValues(MissingValues::OnlyEnumerates(_))) = error.downcast_ref() {
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
        ParamsError::TileTooLarge { .. } | ParamsError::TileBesideStones { .. } => {
            Some("--objective reach:TILE, or --until-layer LAYER")
        }
        ParamsError::BelowFirstLayer(_)
        | ParamsError::OddLayer(_)
        | ParamsError::AboveLastLayer { .. }
        | ParamsError::BelowPosition { .. } => Some("--until-layer LAYER; omit it to solve the whole board"),
        ParamsError::Position { .. } => Some("--from BOARD; see docs/from.md"),
        ParamsError::SectorsBesideStones(_) => Some("--locked without --sectors"),
        ParamsError::ScoreWithLooseStones(_) => Some("--objective reach:TILE with --loose"),
        ParamsError::Sectors(_) => Some("--sectors N, from 1 to 8"),
        ParamsError::Discount(_) => Some("--objective reach:TILE with --discount"),
        ParamsError::CertainLoss(_) => Some("--objective reach:TILE with --spawner worst"),
        ParamsError::BestMovesTooFarApart { .. } => Some("--keep 1024 with --values best-move"),
        ParamsError::StepTooSmall { .. } | ParamsError::StepTooLarge { .. } => {
            Some("--value-step STEP; omit it to store all bits")
        }
        ParamsError::StepWithoutValues(_) => Some("--value-step without --until-layer"),
        ParamsError::OutOfReach { .. }
        | ParamsError::Large(_)
        | ParamsError::Huge(_)
        | ParamsError::HugeBesideLooseStones(_)
        | ParamsError::TooManyRows { .. } => None,
    }
}

/// The kind of a run's error, and whether it blames a shard; `None` for other errors.
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

    /// The remedy does not depend on the nesting of the error.
    #[test]
    fn lost_shards_have_the_same_remedy_in_every_error() {
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
