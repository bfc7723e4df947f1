//! An open run: its parameters, its catalog, and changes to its journal.

use std::collections::HashMap;
use std::sync::Arc;

use exact2048_game::{Game, Params, ParamsRecord, RunContents};
use exact2048_storage::{
    FORMAT_VERSION, Location, Place, RunDir, RunInfo, ShardKind, ShardRecord, StorageError, TypedRun,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::archive::ShardArchive;
use crate::catalog::{Catalog, CatalogShard};
use crate::commit::{Commit, LayerCounts, fingerprint_of};
use crate::leftovers;
use crate::recipe::{Holdings, LayerRange, Recipe};
use crate::records::{Amended, Amendment, JournalRecord, Record, Removal, Retraction};
use crate::segment::Segment;

mod error;
#[cfg(test)]
mod tests;

pub use error::{MissingValues, RunError};

/// Most ranges that one removal record names. A much longer record would not fit into the space that is reserved for
/// the journal at a disk limit.
const REMOVED_AT_ONCE: usize = 1024;

/// Treatment of shards that no record of the journal names, if there are more than an interrupted command
/// leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnnamedPolicy {
    /// The run is not opened.
    Refuse,
    /// The shards are removed.
    Discard,
}

/// An open run.
#[derive(Debug)]
pub struct Run {
    dir: TypedRun<JournalRecord>,
    params: Params,
    catalog: Arc<Catalog>,
    archive: Arc<ShardArchive>,
    /// Number of journal records, without opening records.
    records: usize,
    last_record: Option<JournalRecord>,
}

impl Run {
    /// Whether a run exists, or an error prevents the answer. [`open`](Self::open) then returns that error.
    pub fn exists(location: impl Into<Location>) -> bool {
        !matches!(RunDir::find(location), Ok(None))
    }

    /// The parameters of the run at a location, as its journal amends them; `None` if there is no run.
    ///
    /// # Errors
    ///
    /// As for [`RunDir::find`] and [`TypedRun::open_read_only`]; also [`RunError::Manifest`], [`RunError::Params`] and
    /// [`RunError::Journal`].
    pub fn find_params(location: impl Into<Location>) -> Result<Option<Params>, RunError> {
        let location = location.into();
        if RunDir::find(&location)?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self::load(TypedRun::open_read_only(location)?)?.params))
    }

    /// Opens a run to read it.
    ///
    /// # Errors
    ///
    /// [`RunError::UnnamedShards`] if journal records must have been lost. Also the errors of opening a [`TypedRun`].
    pub fn open(location: impl Into<Location>) -> Result<Self, RunError> {
        let mut run = Self::load(TypedRun::open_read_only(location)?)?;
        // A finished run lacks no needed record, so its shards need not be listed.
        if !run.missing().is_empty() {
            // The journal is read again after the listing, so it names every shard that was committed before the
            // listing.
            let files = run.dir.shard_files()?;
            run.reread()?;
            if let Some(loss) = run.loss(&files) {
                return Err(loss);
            }
        }
        Ok(run)
    }

    /// Opens a run to continue it, or creates a run. Refuses a place that holds another job. If the run has no values
    /// yet, its precision changes to the requested one.
    ///
    /// In a store, the call fences off every process that has the run open for writing, but only after it has checked
    /// that the job is the same. Removes the shards that do not count, such as leftovers of an interrupted command or
    /// of a repair.
    ///
    /// # Errors
    ///
    /// [`RunError::OtherJob`], [`RunError::StoredOtherwise`], [`RunError::OlderFormat`]. [`RunError::UnnamedShards`] if
    /// journal records must have been lost, unless `unnamed` discards their shards. Also the errors of opening or
    /// creating a [`TypedRun`].
    pub fn open_or_create(
        location: impl Into<Location>,
        wanted: &Params,
        unnamed: UnnamedPolicy,
    ) -> Result<Self, RunError> {
        let location = location.into();
        if let Some(held) = RunDir::find(&location)? {
            return Self::resume_held(location, held, wanted, unnamed);
        }
        let params = serde_json::to_value(wanted).map_err(|e| manifest_error(&location.place(), &e))?;
        match TypedRun::create(&location, &params) {
            // Another process created the run in the meantime, so that run is opened.
            Err(StorageError::AlreadyARun { .. }) if RunDir::find(&location)?.is_some() => {
                Self::resume(location, wanted, unnamed)
            }
            made => Self::load(made?),
        }
    }

    /// Like [`open_or_create`](Self::open_or_create), for a run that must already exist. Creates nothing if the run is
    /// missing.
    ///
    /// # Errors
    ///
    /// [`StorageError::NotARun`], and as for [`open_or_create`](Self::open_or_create).
    pub fn resume(
        location: impl Into<Location>,
        wanted: &Params,
        unnamed: UnnamedPolicy,
    ) -> Result<Self, RunError> {
        let location = location.into();
        match RunDir::find(&location)? {
            Some(held) => Self::resume_held(location, held, wanted, unnamed),
            None => {
                let (place, reason) = (location.place(), "it does not exist");
                Err(StorageError::NotARun { place, reason }.into())
            }
        }
    }

    /// Opens the run with the manifest `held` to continue it.
    fn resume_held(
        location: Location,
        held: RunInfo,
        wanted: &Params,
        unnamed: UnnamedPolicy,
    ) -> Result<Self, RunError> {
        let place = location.place();
        // These checks precede the opening that fences off other writers. The manifest shows most differences. Only the
        // journal shows whether the precision may still change.
        let held = parse_params(&place, held.params)?;
        require_same(&place, &held.with_precision(wanted.game().precision()), wanted)?;
        Self::load(TypedRun::open_read_only(location.clone())?)?.continued_as(wanted)?;
        let mut run = Self::open_again(location)?;
        let amended = Amended { precision: run.continued_as(wanted)?.game().precision() };
        let shards = run.catalog.shards();
        let referenced = shards.iter().map(|shard| shard.record.file.clone()).collect();
        match unnamed {
            UnnamedPolicy::Refuse => {
                run.require_journal()?;
                run.dir.remove_unreferenced_shards(&referenced)?;
            }
            UnnamedPolicy::Discard => {
                run.dir.discard_unreferenced_shards(&referenced)?;
            }
        }
        if amended.precision != run.params.game().precision() {
            run.append(JournalRecord::Amendment(Amendment { amended }))?;
        }
        Ok(run)
    }

    /// The parameters of this run if the job `wanted` continues it. They are its own parameters, with the precision of
    /// the job if there are no values yet.
    ///
    /// # Errors
    ///
    /// [`RunError::OtherJob`] names the first differing parameter that changes results. [`RunError::StoredOtherwise`]
    /// names the first differing choice of stored data.
    pub fn continued_as(&self, wanted: &Params) -> Result<Params, RunError> {
        let decides = if self.catalog.has_values() { &self.params } else { wanted };
        let params = self.params.with_precision(decides.game().precision());
        require_same(self.dir.place(), &params, wanted)?;
        Ok(params)
    }

    /// Requires that the journal lost no records. Otherwise the caller would remove the shards of these records, which
    /// may be hours of work.
    fn require_journal(&self) -> Result<(), RunError> {
        let Some(loss) = self.loss(&self.dir.shard_files()?) else { return Ok(()) };
        // The shards may belong to a process that opened the run later, and whose records were not read. Then `confirm`
        // fails with its own error.
        self.dir.confirm()?;
        Err(loss)
    }

    /// The error if more of these shards lack a record than a crash leaves.
    fn loss(&self, files: &HashMap<String, u64>) -> Option<RunError> {
        let unnamed = self.catalog.unnamed(files.keys().map(String::as_str));
        leftovers::shows_loss(&unnamed, self.dir.records_before()).then(|| RunError::UnnamedShards {
            place: self.dir.place().clone(),
            shards: unnamed.len(),
            bytes: unnamed.iter().filter_map(|file| files.get(*file)).sum(),
        })
    }

    /// Requires that this run belongs to the job `wanted`.
    ///
    /// # Errors
    ///
    /// [`RunError::OtherJob`] names the first differing parameter that changes results. [`RunError::StoredOtherwise`]
    /// names the first differing choice of stored data.
    pub fn require(&self, wanted: &Params) -> Result<(), RunError> {
        require_same(self.dir.place(), &self.params, wanted)
    }

    /// Opens an existing run for writing. Removes nothing, because shards that no record names yet may still be
    /// committed.
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::open_for_writing`]; also [`RunError::OlderFormat`] and [`RunError::Journal`].
    pub fn open_again(location: impl Into<Location>) -> Result<Self, RunError> {
        let location = location.into();
        // The format is checked before other writers are fenced off.
        if let Some(found) = RunDir::find(&location)? {
            require_own_format(&location.place(), found.format_version)?;
        }
        Self::load(TypedRun::open_for_writing(location)?)
    }

    /// Requires that this program can continue the run, and not only read it.
    ///
    /// # Errors
    ///
    /// [`RunError::OlderFormat`].
    pub fn require_own_format(&self) -> Result<(), RunError> {
        require_own_format(self.dir.place(), self.format_version())
    }

    /// The format version of the run. It determines the definition of the fingerprint.
    pub fn format_version(&self) -> u32 {
        self.dir.format_version()
    }

    fn load(dir: TypedRun<JournalRecord>) -> Result<Self, RunError> {
        let params = parse_params(dir.place(), dir.params().clone())?;
        let catalog = Arc::new(Catalog::new(&dir, &params, rule_hash(&params)));
        let archive = Arc::new(ShardArchive::new(Arc::clone(&catalog)));
        let mut run = Self { dir, params, catalog, archive, records: 0, last_record: None };
        run.take_records()?;
        run.catalog.forget_superseded();
        Ok(run)
    }

    /// Reads the records that other processes committed since the run was opened or last reread.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn reread(&mut self) -> Result<(), RunError> {
        self.dir.reread()?;
        self.take_records()
    }

    /// Moves new journal records into the catalog, which holds them in less memory.
    fn take_records(&mut self) -> Result<(), RunError> {
        let records = self.dir.take_records();
        self.records += records.len();
        if let Some((_, last)) = records.last() {
            self.last_record = Some(last.clone());
        }
        for (number, record) in records {
            let place = || self.dir.place().clone();
            if let JournalRecord::Amendment(Amendment { amended: Amended { precision } }) = &record {
                self.params = self.params.with_precision(*precision);
            }
            self.catalog.add(record).map_err(|reason| RunError::Journal {
                place: place(),
                number,
                reason,
            })?;
        }
        Ok(())
    }

    /// Number of journal records read so far, without opening records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The last record read, without opening records.
    pub fn last_record(&self) -> Option<&JournalRecord> {
        self.last_record.as_ref()
    }

    /// The files or objects of the run.
    pub fn dir(&self) -> &TypedRun<JournalRecord> {
        &self.dir
    }

    /// Lets members of a cluster make shards of the run; see [`TypedRun::share`].
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::share`].
    pub fn share(&mut self) -> Result<u64, RunError> {
        Ok(self.dir.share()?)
    }

    /// Appends a record to the journal, so that it counts. If the record is a commit, removes the shards that the
    /// commit replaces, as far as this [`Run`] knows them. A shard that cannot be removed takes disk space until the
    /// run is next opened.
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::commit`]; [`RunError::CountedOtherwise`] if layers were enumerated again with different
    /// counts.
    pub fn append(&mut self, record: JournalRecord) -> Result<(), RunError> {
        if let JournalRecord::Commit(record) = &record {
            self.require_same_counts(&record.commit)?;
        }
        self.dir.commit(&record)?;
        self.take_records()?;
        if let JournalRecord::Commit(record) = &record {
            let mut replaced = self.catalog.take_superseded(&record.commit);
            replaced.extend(self.catalog.take_dropped());
            if !replaced.is_empty() {
                // The commit counts even if this removal fails.
                let _ = self.dir.remove_needless_shards(&replaced);
            }
        }
        Ok(())
    }

    /// Requires that layers which were enumerated before have the same counts as in the journal.
    ///
    /// # Errors
    ///
    /// [`RunError::CountedOtherwise`].
    pub fn require_same_counts(&self, commit: &Commit) -> Result<(), RunError> {
        match self.catalog.counted_otherwise(commit) {
            Some((before, now)) => {
                Err(RunError::CountedOtherwise { place: self.dir.place().clone(), before, now })
            }
            None => Ok(()),
        }
    }

    /// Removes the reach of ranges that a [`Recipe`] names. First records that the shards of these ranges no longer
    /// count, then deletes the shards. After a failure or an interruption, the next opening of the run deletes the
    /// remaining shards.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append), and an I/O or store error.
    pub fn remove_reach(&mut self, removed: &[LayerRange]) -> Result<(), RunError> {
        for removed in removed.chunks(REMOVED_AT_ONCE) {
            let shards = self.catalog.reach_of(removed);
            self.append(JournalRecord::Removal(Removal { removed: removed.to_vec() }))?;
            self.dir.remove_needless_shards(&shards)?;
        }
        Ok(())
    }

    /// Records that a commit no longer counts, and deletes its shards. After an interruption, the next opening of the
    /// run deletes the remaining shards.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append), and an I/O or store error.
    pub fn retract(&mut self, retracted: Commit) -> Result<(), RunError> {
        let shards = self.catalog.shards();
        let those = shards.iter().filter(|shard| *shard.commit == retracted);
        let those: Vec<ShardRecord> = those.map(|shard| shard.record.clone()).collect();
        self.append(JournalRecord::Retraction(Retraction { retracted }))?;
        Ok(self.dir.remove_needless_shards(&those)?)
    }

    /// Limits the disk space of the run; see [`TypedRun::limit_disk`].
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::limit_disk`].
    pub fn limit_disk(&mut self, limit_bytes: u64) -> Result<(), RunError> {
        self.dir.limit_disk(limit_bytes)?;
        Ok(())
    }

    /// The committed ranges.
    pub fn holdings(&self) -> Holdings {
        self.catalog.holdings()
    }

    /// The parameters of the manifest, with the amendments of the journal.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The committed shards.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The items of the committed shards.
    pub fn archive(&self) -> &Arc<ShardArchive> {
        &self.archive
    }

    /// The steps still to do.
    pub fn missing(&self) -> Vec<Segment> {
        Recipe::new(&self.params, &self.catalog.holdings()).steps()
    }

    /// The shards that are missing, or have another length or header than in their record, each with its fault. Lists
    /// the shards, and checks the header of each shard that the list lacks or shows with another length. Does not read
    /// the data after the headers.
    ///
    /// # Errors
    ///
    /// As for [`TypedRun::shard_files`], and errors that prevent the check of a shard.
    pub fn absent_shards(&self) -> Result<Vec<(Arc<CatalogShard>, StorageError)>, RunError> {
        let shards = self.catalog.shards();
        if shards.is_empty() {
            return Ok(Vec::new());
        }
        let files = self.dir.shard_files()?;
        let is_listed = |record: &ShardRecord| files.get(&record.file) == Some(&record.bytes);
        // The list may be wrong, and recomputing a shard may take hours. So each doubtful shard itself is checked.
        let doubtful: Vec<_> = shards.iter().filter(|shard| !is_listed(&shard.record)).collect();
        let look: Vec<_> = doubtful.iter().map(|shard| (&shard.record, *shard.identity())).collect();
        let mut absent = Vec::new();
        for (shard, looked) in doubtful.iter().zip(self.catalog.files().look(&look)?) {
            match looked {
                Ok(()) => {}
                Err(error) if error.blames().is_some() => absent.push((Arc::clone(shard), error)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(absent)
    }

    /// The commits with a missing or different shard; see [`absent_shards`](Self::absent_shards).
    ///
    /// # Errors
    ///
    /// As for [`absent_shards`](Self::absent_shards).
    pub fn absent(&self) -> Result<Vec<Commit>, RunError> {
        let absent = self.absent_shards()?;
        let mut commits: Vec<Commit> = absent.iter().map(|(shard, _)| Commit::clone(&shard.commit)).collect();
        commits.dedup();
        Ok(commits)
    }

    /// Checks that each shard of a record exists with the recorded length and header. Callers check a record before
    /// they append it. Cost: reads the 104-byte header of each shard.
    ///
    /// # Errors
    ///
    /// As for [`Shards::look`](exact2048_storage::Shards::look).
    pub fn look(&self, record: &Record) -> Result<Vec<Result<(), StorageError>>, StorageError> {
        let Commit { phase, first, last, .. } = record.commit;
        let of = |kind| self.catalog.identity_of(kind, first, last);
        let [identity, of_checkpoint] = [phase.shard_kind(), ShardKind::Checkpoint].map(of);
        let shards = record.shards.iter().map(|shard| (shard, identity));
        let shards: Vec<_> =
            shards.chain(record.checkpoint.iter().map(|shard| (shard, of_checkpoint))).collect();
        self.catalog.files().look(&shards)
    }

    /// The counts of all enumerated layers that have states, ascending.
    pub fn layer_counts(&self) -> Vec<LayerCounts> {
        self.catalog.layer_counts()
    }

    /// Whether every state has a value.
    pub fn is_solved(&self) -> bool {
        !self.params.contents().enumerates_only() && self.missing().is_empty()
    }

    /// The reason why not all states have values; `None` for a solved run.
    pub fn why_not_solved(&self) -> Option<MissingValues> {
        match (self.params.contents().until(), self.missing().first()) {
            (Some(layer), _) => Some(MissingValues::OnlyEnumerates(layer.0)),
            (None, Some(&next)) if self.require_own_format().is_err() => {
                Some(MissingValues::OlderFormat(next))
            }
            (None, Some(&next)) => Some(MissingValues::Unfinished(next)),
            (None, None) => None,
        }
    }

    /// The fingerprint of a solved run.
    pub fn fingerprint(&self) -> Option<u128> {
        self.is_solved().then(|| fingerprint_of(&self.catalog.commits()))
    }
}

/// The parameters in a manifest.
fn parse_params(place: &Place, params: serde_json::Value) -> Result<Params, RunError> {
    let record: ParamsRecord = serde_json::from_value(params).map_err(|e| manifest_error(place, &e))?;
    Ok(Params::try_from(record)?)
}

/// Requires that a run has the format that this program writes, because other formats have other fingerprints.
fn require_own_format(place: &Place, found: u32) -> Result<(), RunError> {
    if found == FORMAT_VERSION { Ok(()) } else { Err(RunError::OlderFormat { place: place.clone(), found }) }
}

/// Requires that a run has the requested parameters.
fn require_same(place: &Place, held: &Params, wanted: &Params) -> Result<(), RunError> {
    let (game, held, asked, wanted) = (held.game(), held.contents(), wanted.game(), wanted.contents());
    let until = |of: &RunContents| of.until().map_or("none".to_owned(), |layer| layer.to_string());
    let position = |of: &Game| of.from().map_or("none".to_owned(), |board| board.to_text(of.board()));
    let values = |of: &RunContents| if of.stores_best_moves() { "best-move" } else { "layers" }.to_owned();
    let step = |of: &RunContents| of.value_step().map_or("none".to_owned(), |step| step.to_string());
    let of_job = [
        ("board", game.board().to_string(), asked.board().to_string()),
        ("objective", game.objective().to_string(), asked.objective().to_string()),
        ("spawn4", game.spawn4().to_string(), asked.spawn4().to_string()),
        ("precision", u8::from(game.precision()).to_string(), u8::from(asked.precision()).to_string()),
        ("from", position(game), position(asked)),
        ("until-layer", until(held), until(wanted)),
        ("discount", game.discount().to_string(), asked.discount().to_string()),
        ("spawner", game.spawner().to_string(), asked.spawner().to_string()),
    ];
    let of_stored = [
        ("choice of values", values(held), values(wanted)),
        ("choice of kept layers", held.kept().to_string(), wanted.kept().to_string()),
        ("value step", step(held), step(wanted)),
    ];
    let differs = |(_, found, wanted): &(&str, String, String)| found != wanted;
    if let Some((field, found, wanted)) = of_job.into_iter().find(differs) {
        return Err(RunError::OtherJob { place: place.clone(), field, found, wanted });
    }
    if let Some((field, found, wanted)) = of_stored.into_iter().find(differs) {
        return Err(RunError::StoredOtherwise { place: place.clone(), field, found, wanted });
    }
    Ok(())
}

/// A hash of the parameters. Together with the layers in a shard's header, they determine the content of the shard.
fn rule_hash(params: &Params) -> u64 {
    let text = serde_json::to_string(params).unwrap_or_default();
    xxh3_64(text.as_bytes())
}

fn manifest_error(place: &Place, error: &serde_json::Error) -> RunError {
    RunError::Manifest { place: place.clone(), reason: error.to_string() }
}
