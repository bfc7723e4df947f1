//! Damaged runs that commands refuse or `solve` repairs.

use std::fs;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::{Finished, Place, Solved, committed, files, on_run, shards, solve, text, try_solve};

/// A run of two shards.
pub const JOB: &str = "--board 2x2";

/// A job with several shards of values. It takes a second or two.
pub const LARGE_JOB: &str = "--board 3x3 --objective reach:512 --precision 64";

/// A damaged run that `solve` can repair.
pub struct Patient {
    place: Place,
    pub fingerprint: String,
}

impl Patient {
    /// A copy of a finished run.
    pub fn of(healthy: &Solved) -> Self {
        let place = Place::new();
        copy(&healthy.run(), &place.join("run"));
        Self { place, fingerprint: healthy.fingerprint().to_owned() }
    }

    pub fn run(&self) -> PathBuf {
        self.place.join("run")
    }

    pub fn shard(&self, kind: &str) -> PathBuf {
        let named = |path: &PathBuf| name(path).starts_with(kind);
        shards(&self.run()).into_iter().find(named).unwrap()
    }

    /// Requires that `verify` refuses the run and names the damaged file.
    #[track_caller]
    pub fn is_ill(&self, file: &Path) {
        for sample in [&[][..], &["--sample", "10"]] {
            on_run(&self.run(), "verify", sample).exits(1).says(&[name(file)]);
        }
    }

    /// Requires that the command that made the run restores the same fingerprint.
    #[track_caller]
    pub fn is_mended_by_solving(&self) {
        let summary = solve(&self.run(), JOB);
        assert_eq!(text(&summary["fingerprint"]), self.fingerprint);
        on_run(&self.run(), "verify", &[]).exits(0);
        let named: Vec<PathBuf> = committed(&self.run()).into_iter().map(|(path, _)| path).collect();
        for shard in shards(&self.run()) {
            assert!(named.contains(&shard), "{} is left over", shard.display());
        }
    }

    /// Requires that all commands refuse the run, name the file, and leave the run unchanged.
    #[track_caller]
    pub fn is_refused(&self, file: &Path) -> Finished {
        let before = contents(&self.run());
        let run = self.run();
        for (subcommand, options) in
            [("verify", &[][..]), ("info", &[]), ("layers", &[]), ("query", &["2 2 / 0 0"])]
        {
            on_run(&run, subcommand, options).exits(1).says(&[name(file)]);
        }
        let refused = try_solve(&run, JOB).exits(1).says(&[name(file)]);
        assert!(contents(&run) == before, "a refused run was changed: {refused:?}");
        refused
    }
}

pub fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for path in files(from) {
        let to = to.join(name(&path));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, to).unwrap();
        }
    }
}

/// All files of a run with their bytes, except for the lock, because every writer writes the lock.
pub fn contents(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let folders = [run.to_path_buf(), run.join("journal"), run.join("shards")];
    let all = folders.iter().flat_map(|folder| files(folder));
    let plain = all.filter(|path| path.is_file() && name(path) != "lock");
    plain.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

pub fn flip(file: &Path, at: usize, bits: u8) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= bits;
    fs::write(file, bytes).unwrap();
}

/// Seals JSON in the same way as the manifest and the journal, see `docs/dev/format.md`.
pub fn seal(body: &str) -> String {
    format!("{{\"xxh3\":\"{:016x}\",\"body\":{body}}}\n", xxh3_64(body.as_bytes()))
}
