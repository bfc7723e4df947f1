//! Names of jobs. The run of a job has the same name in the store.

use exact2048_coordinator::cluster::JobId;
use exact2048_game::{Discount, KeptLayers, Objective, Params, Precision, Spawn4, Spawner, Stone};

/// Maximum length of a name in bytes. File systems allow longer names, but these are hard to read.
pub const MAX_BYTES: usize = 63;

/// Name of the coordinator's queue in the store. No job may have this name, because runs share the folder with the
/// queue.
pub const QUEUE: &str = "coordinator";

/// Error in the name of a job.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NameError {
    /// The name has a wrong length or wrong characters.
    #[error(
        "expected a job name of 1 to {MAX_BYTES} characters from a-z, 0-9, '.', '_' and '-' that begins with a letter \
         or digit, found {0:?}"
    )]
    Characters(String),
    /// The name of the queue.
    #[error("{QUEUE:?} is reserved for the coordinator's queue; choose another job name")]
    Reserved,
}

/// Checks the name of a job.
///
/// # Errors
///
/// [`NameError`]. It repeats at most [`MAX_BYTES`] + 1 characters of the text.
pub fn parse(text: &str) -> Result<JobId, NameError> {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = text.bytes().next().is_some_and(known);
    let all = text.bytes().all(|byte| known(byte) || b"._-".contains(&byte));
    match text {
        QUEUE => Err(NameError::Reserved),
        _ if first && all && text.len() <= MAX_BYTES => Ok(JobId(text.to_owned())),
        _ => Err(NameError::Characters(text.chars().take(MAX_BYTES + 1).collect())),
    }
}

/// Derives a job's name from its parameters. Parameters that change results or stored data change the name.
#[must_use]
pub fn of_params(params: &Params) -> JobId {
    let (game, contents) = (params.game(), params.contents());
    let board = game.board();
    let mut name = format!("{}x{}", board.rows(), board.cols());
    if let Some(stone) = board.stone() {
        let stones = if stone == Stone::Locked { "locked" } else { "walls" };
        name += &format!("-{stones}{:x}", board.stones());
    }
    if board.loose() > 0 {
        name += &format!("-loose{}", board.loose());
    }
    if game.objective() != Objective::Score {
        name += &format!("-{}", game.objective().to_string().replace(':', ""));
    }
    if game.discount() != Discount::NONE {
        name += &format!("-discount{}.{}", game.discount().numerator(), game.discount().denominator());
    }
    if game.spawner() == Spawner::Worst {
        name += "-worst";
    }
    if game.spawn4() != Spawn4::default() {
        name += &format!("-spawn{}.{}", game.spawn4().weight4(), game.spawn4().denominator());
    }
    if game.precision() == Precision::Bits64 {
        name += "-64bit";
    }
    if contents.stores_best_moves() {
        name += "-moves";
    }
    if let Some(step) = contents.value_step() {
        name += &format!("-step{}", step.to_string().replace('/', "."));
    }
    if let Some(board) = game.from() {
        name += &format!("-from{:x}", board.0);
    }
    if let Some(layer) = contents.until() {
        name += &format!("-to{layer}");
    }
    if contents.kept().policy() != KeptLayers::default() {
        name += &format!("-keep{}", contents.kept().to_string().replace('/', "."));
    }
    JobId(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths() {
        for name in ["3x3", "a", "4x4-reach16", "0._-", &"x".repeat(63)] {
            assert_eq!(parse(name).unwrap().0, name);
        }
        for name in ["", ".", "..", "a/b", "-a", "A", "ä", "a b", "a\0", "../x", &"x".repeat(64)] {
            assert!(matches!(parse(name), Err(NameError::Characters(_))), "{name:?}");
        }
        assert_eq!(parse(QUEUE), Err(NameError::Reserved));
    }

    #[test]
    fn parameters_make_names() {
        let params = |board: &str, objective: &str, spawn4: &str, precision, until_layer| {
            Params::usual(board, objective)
                .spawn4(spawn4.parse().unwrap())
                .precision(precision)
                .until(until_layer)
                .build()
                .unwrap()
        };
        for (params, name) in [
            (params("3x3", "score", "0.1", Precision::Bits32, None), "3x3"),
            (params("4x4", "reach:16", "0.1", Precision::Bits32, None), "4x4-reach16"),
            (params("2x2", "score", "0", Precision::Bits64, None), "2x2-spawn0.1-64bit"),
            (
                params("3x3", "score", "0.1", Precision::Bits32, None)
                    .to_builder()
                    .kept(KeptLayers::ALL)
                    .build()
                    .unwrap(),
                "3x3-keepall",
            ),
            (
                params("2x2", "score", "0.1", Precision::Bits32, None)
                    .to_builder()
                    .kept("3/7".parse::<KeptLayers>().unwrap())
                    .build()
                    .unwrap(),
                "2x2-keep3.7",
            ),
            (params("3x3", "lose:64", "0.1", Precision::Bits64, None), "3x3-lose64-64bit"),
            (params("2x3:..x/...", "reach:16", "0.1", Precision::Bits32, None), "2x3-locked4-reach16"),
            (params("2x3:.../#.#", "reach:16", "0.1", Precision::Bits32, None), "2x3-walls28-reach16"),
            (
                Params::usual("3x3", "score").best_moves(true).kept(KeptLayers::default()).build().unwrap(),
                "3x3-moves",
            ),
            (
                Params::usual("3x3", "reach:64")
                    .discount("0.95".parse().unwrap())
                    .spawner(Spawner::Worst)
                    .build()
                    .unwrap(),
                "3x3-reach64-discount19.20-worst",
            ),
            (params("4x3", "score", "3/20", Precision::Bits32, Some(224)), "4x3-spawn3.20-to224"),
        ] {
            assert_eq!(of_params(&params).0, name);
            assert!(parse(name).is_ok());
        }
    }
}
