//! The checkpoint file of followed games. Large boards can take longer than a machine runs without interruption.
//!
//! The first line names the run, its values and the cutoff. The file continues with the next layer, the sums so far,
//! and the chances of the afterstates from which spawns lead to that layer or beyond. All numbers are little-endian. A
//! checksum of the whole content ends the file. A damaged file is ignored, and so is a file with another first line.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use exact2048_files::open;
use exact2048_game::Layer;
use exact2048_storage::{StorageError, replace_file};
use exact2048_worker::Follower;
use xxhash_rust::xxh3::Xxh3Default;

use super::sums::PlaySums;

/// The file that records how far games were followed.
pub struct Checkpoint {
    place: PathBuf,
    /// The first line.
    of: String,
}

impl Checkpoint {
    /// The checkpoint file for a run, its values and a cutoff, in a folder.
    pub fn new(folder: &Path, run_id: &str, fingerprint: u128, least_chance: f64) -> Self {
        let of = format!(
            "exact2048 perfect play in progress 1, run {run_id}, fingerprint {fingerprint:032x}, cutoff {least_chance:e}\n"
        );
        Self { place: folder.join(format!("perfect-play-{run_id}-{least_chance:e}.part")), of }
    }

    /// Records that games were followed through all layers below `next`.
    ///
    /// # Errors
    ///
    /// The errors of the storage.
    pub fn write(&self, next: Layer, sums: &PlaySums, follower: &dyn Follower) -> Result<(), StorageError> {
        replace_file(&self.place, |file| self.write_to(file, next, sums, follower))
    }

    fn write_to(
        &self,
        file: &mut File,
        next: Layer,
        sums: &PlaySums,
        follower: &dyn Follower,
    ) -> io::Result<()> {
        let mut out = Hashed { inner: BufWriter::with_capacity(1 << 20, file), hash: Xxh3Default::new() };
        out.write_all(self.of.as_bytes())?;
        let numbers = sums.numbers();
        let head = [u64::from(next.0), numbers.len() as u64];
        head.iter().chain(&numbers).try_for_each(|number| out.write_all(&number.to_le_bytes()))?;
        for layer in below(next) {
            follower.write_afterstates(layer, &mut out)?;
        }
        let checksum = out.hash.digest();
        out.inner.write_all(&checksum.to_le_bytes())?;
        out.inner.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    /// Reads the file, if there is one, and gives its chances to `follower`. Returns the next layer and the sums so
    /// far.
    ///
    /// `empty` are the sums before the first layer. `is_next` accepts the next layers that a file can name. A file that
    /// names another layer is ignored.
    pub fn read(
        &self,
        empty: PlaySums,
        is_next: impl Fn(Layer) -> bool,
        follower: &dyn Follower,
    ) -> Option<(Layer, PlaySums)> {
        let whole = self.is_whole().unwrap_or(false);
        let read = whole.then(|| self.read_whole(empty, follower)).and_then(Result::ok);
        let read = read.filter(|&(next, _)| is_next(next));
        if read.is_none() {
            follower.release_all();
        }
        read
    }

    fn read_whole(&self, empty: PlaySums, follower: &dyn Follower) -> io::Result<(Layer, PlaySums)> {
        let mut input = BufReader::with_capacity(1 << 20, open(&self.place)?);
        io::copy(&mut input.by_ref().take(self.of.len() as u64), &mut io::sink())?;
        let mut number = || {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes).map(|()| u64::from_le_bytes(bytes))
        };
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, "expected the layer and the sums of this run");
        let next = Layer(u32::try_from(number()?).map_err(|_| damaged())?);
        let numbers: Vec<u64> = (0..number()?).map(|_| number()).collect::<io::Result<_>>()?;
        let sums = empty.with_numbers(&numbers).ok_or_else(damaged)?;
        for layer in below(next) {
            follower.read_afterstates(layer, &mut input)?;
        }
        Ok((next, sums))
    }

    /// Removes the file, because all games were followed.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.place);
    }

    /// Whether there is an undamaged file with this first line.
    fn is_whole(&self) -> io::Result<bool> {
        let file = open(&self.place)?;
        let Some(length) = file.metadata()?.len().checked_sub(8) else { return Ok(false) };
        let Some(rest) = length.checked_sub(self.of.len() as u64) else { return Ok(false) };
        let mut input = BufReader::with_capacity(1 << 20, file);
        let mut first = vec![0; self.of.len()];
        input.read_exact(&mut first)?;
        if first != self.of.as_bytes() {
            return Ok(false);
        }
        let mut hashed = Hashed { inner: io::sink(), hash: Xxh3Default::new() };
        hashed.write_all(&first)?;
        io::copy(&mut input.by_ref().take(rest), &mut hashed)?;
        let mut checksum = [0; 8];
        input.read_exact(&mut checksum)?;
        Ok(u64::from_le_bytes(checksum) == hashed.hash.digest())
    }
}

/// The layers whose afterstates are needed to continue with the layer `next`.
fn below(next: Layer) -> impl Iterator<Item = Layer> {
    (1..=Layer::RISE).rev().filter_map(move |layers| next.down(layers)).filter(|&layer| layer >= Layer::FIRST)
}

/// A writer, and the checksum of the bytes written.
struct Hashed<W> {
    inner: W,
    hash: Xxh3Default,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
