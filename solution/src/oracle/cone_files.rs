//! Solved cones on disk, for later questions: a folder of files. The least recently used files are removed first.
//!
//! A file is written under a temporary name and then renamed. Nothing is synced, because checksums cover all of a file.
//! A file that is damaged or cut off is removed, and its cone solved again. Files of other runs are skipped. Processes
//! may share a folder. Files that are not cones stay. A failure here only costs time, and is not reported.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use exact2048_cone::{Solved, SolvedLayer};
use exact2048_files::{OFlags, open_with};
use exact2048_game::value::Stored;
use exact2048_game::{Board, Layer};
use exact2048_storage::{StorageError, remove_abandoned, replace_file, temp_target};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::ladder::ValueSource;
use super::{QueryError, QuestionLimits};

/// First bytes of a file, which include the version of its format.
const MAGIC: [u8; 8] = *b"EX2048C1";

/// Number of states of a page; the last page of a layer may have fewer. A look-up reads one page.
const PAGE_STATES: usize = 1024;

/// Bytes of a header before the table of pages.
const HEADER_BYTES: usize = 80;

/// Bytes of a page's entry in the table.
const ENTRY_BYTES: usize = 32;

/// Most files in the folder. A question that is not answered from memory lists all of them.
const MOST_FILES: usize = 512;

/// Key of the cones of a run: the id and the fingerprint of the run. It prevents the use of values of another run.
pub type RunKey = [u8; 48];

/// A folder of solved cones.
#[derive(Debug)]
pub struct ConeFiles {
    folder: PathBuf,
    most_bytes: u64,
    run: RunKey,
    /// Bytes of a value.
    width: usize,
}

impl ConeFiles {
    /// Opens the cones of a run in a folder, which need not exist yet. If all cones in the folder together take more
    /// than `most_bytes`, removes the least recently used ones.
    pub fn open(folder: PathBuf, most_bytes: u64, run: RunKey, width: usize) -> Self {
        let opened = Self { folder, most_bytes, run, width };
        opened.make_space(0, 0);
        opened
    }

    /// Most bytes of all cones in the folder together.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Fills in the missing values that a file has, and returns their number.
    fn read(&self, path: &Path, states: &[(Layer, Board)], values: &mut [Option<Stored>]) -> io::Result<u64> {
        let Some(mut file) = ConeFile::open(path, &self.run, self.width)? else { return Ok(0) };
        let mut found = 0;
        for (&(layer, board), value) in states.iter().zip(values).filter(|(_, value)| value.is_none()) {
            *value = file.value(layer, board)?;
            found += u64::from(value.is_some());
        }
        Ok(found)
    }

    /// Writes a solved cone, and removes the least recently used ones if it needs their space.
    pub fn keep(&self, solved: &Solved) {
        // If the file cannot be written, a later question solves the cone again.
        let _ = self.try_keep(solved);
    }

    fn try_keep(&self, solved: &Solved) -> Result<(), StorageError> {
        let (Some(lowest), Some(highest)) = (solved.layers().first(), solved.layers().last()) else {
            return Ok(());
        };
        let pages: usize = solved.layers().iter().map(|layer| layer.boards.len().div_ceil(PAGE_STATES)).sum();
        let content = solved.states() * (8 + self.width as u64);
        let bytes = content + (HEADER_BYTES + pages * ENTRY_BYTES) as u64 + 8;
        if bytes > self.most_bytes {
            return Ok(());
        }
        self.make_space(1, bytes);
        // The same cone gets the same name, whichever process solves it.
        let mut hash = Xxh3::new();
        hash.update(&self.run);
        lowest.boards.iter().for_each(|board| hash.update(&board.0.to_le_bytes()));
        let name = name_of(lowest.layer, highest.layer, hash.digest());
        replace_file(&self.folder.join(name), |file| write(file, solved, &self.run, self.width, pages))
    }

    /// The files of the folder, the most recently used first.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = self.listed().unwrap_or_default().kept;
        files.sort_by_key(|(_, used, _)| std::cmp::Reverse(*used));
        files.into_iter().map(|(path, ..)| path).collect()
    }

    /// The cones in the folder.
    fn listed(&self) -> io::Result<Listed> {
        let mut listed = Listed::default();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let (is_kept, is_begun) = (is_cone(name), temp_target(name).is_some_and(is_cone));
            // Another process may have removed the file since it was listed.
            let Some(data) = entry.metadata().ok().filter(|data| (is_kept || is_begun) && data.is_file())
            else {
                continue;
            };
            if is_kept {
                listed.kept.push((entry.path(), data.modified()?, data.len()));
            } else {
                listed.begun_bytes += data.len();
            }
        }
        Ok(listed)
    }

    /// Removes the least recently used files, until there is space for this number of new files with these bytes.
    fn make_space(&self, files: usize, bytes: u64) {
        remove_abandoned(&self.folder, is_cone);
        let Listed { mut kept, begun_bytes } = self.listed().unwrap_or_default();
        kept.sort_by_key(|(_, used, _)| *used);
        let mut total = begun_bytes + bytes + kept.iter().map(|(.., bytes)| bytes).sum::<u64>();
        let mut count = kept.len() + files;
        for (path, _, size) in kept {
            if total <= self.most_bytes && count <= MOST_FILES {
                break;
            }
            // Another process may already have removed the file.
            let _ = fs::remove_file(path);
            (total, count) = (total - size, count - 1);
        }
    }
}

impl ValueSource for ConeFiles {
    fn fill(
        &self,
        states: &[(Layer, Board)],
        values: &mut [Option<Stored>],
        question: &QuestionLimits<'_>,
    ) -> Result<(), QueryError> {
        let (Some((first, _)), Some((last, _))) = (states.first(), states.last()) else { return Ok(()) };
        for path in self.files() {
            let of = path.file_name().and_then(|name| layers_of(name.to_str()?));
            if of.is_none_or(|(from, to)| *last < from || to < *first) {
                continue;
            }
            question.check()?;
            match self.read(&path, states, values) {
                Ok(0) => {}
                Ok(found) => {
                    question.spent.add_found(found);
                    touch(&path);
                }
                Err(error) if is_damaged(&error) => drop(fs::remove_file(&path)),
                // Another process removed the file, or it cannot be read at present.
                Err(_) => {}
            }
            if values.iter().all(Option::is_some) {
                break;
            }
        }
        Ok(())
    }
}

/// The cones in a folder.
#[derive(Default)]
struct Listed {
    /// The path of each cone, the time of its last use, and its bytes.
    kept: Vec<(PathBuf, SystemTime, u64)>,
    /// Bytes of the cones that are being written.
    begun_bytes: u64,
}

/// Whether an error says that a file is damaged or cut off, and so useless to every process.
fn is_damaged(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Records that a file was used. Ignores failures: a process that cannot write to the folder removes no files either.
fn touch(path: &Path) {
    let opened = open_with(File::options().append(true), OFlags::empty(), path);
    let _ = opened.and_then(|file| file.set_modified(SystemTime::now()));
}

/// The name of the file of a cone, by its layers and a hash of its run and its lowest boards.
fn name_of(first: Layer, last: Layer, hash: u64) -> String {
    format!("{:06}-{:06}-{hash:016x}.cone", first.0, last.0)
}

/// The lowest and the highest layer of a cone, by the name of its file; `None` for a file that is no cone.
fn layers_of(name: &str) -> Option<(Layer, Layer)> {
    let mut parts = name.strip_suffix(".cone")?.splitn(3, '-');
    let (first, last) = (Layer(parts.next()?.parse().ok()?), Layer(parts.next()?.parse().ok()?));
    let hash = u64::from_str_radix(parts.next()?, 16).ok()?;
    (name_of(first, last, hash) == name).then_some((first, last))
}

/// Whether a file of this name is a cone.
fn is_cone(name: &str) -> bool {
    layers_of(name).is_some()
}

/// Place and checksum of a page.
#[derive(Clone, Copy, Debug)]
struct Page {
    layer: Layer,
    states: u32,
    /// The lowest board of the page.
    first: Board,
    offset: u64,
    checksum: u64,
}

impl Page {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&self.layer.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.states.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let at = |at: usize| u64_at(bytes, at);
        Self {
            layer: Layer(at(0) as u32),
            states: (at(0) >> 32) as u32,
            first: Board(at(8)),
            offset: at(16),
            checksum: at(24),
        }
    }
}

/// The little-endian number at an offset, which must be within the bytes.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Writes the header: magic, bytes of a value, number of pages, key of the run, bytes of the file. Then follow the
/// table of the pages, the checksum of header and table, and the pages. A page has its boards, ascending, and then
/// their values.
fn write(file: &mut File, solved: &Solved, run: &RunKey, width: usize, pages: usize) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let table_bytes = HEADER_BYTES + pages * ENTRY_BYTES + 8;
    out.seek(SeekFrom::Start(table_bytes as u64))?;
    let (mut table, mut page, mut offset) = (Vec::with_capacity(pages), Vec::new(), table_bytes as u64);
    for SolvedLayer { layer, boards, values } in solved.layers() {
        for (nth, boards) in boards.chunks(PAGE_STATES).enumerate() {
            page.clear();
            boards.iter().for_each(|board| page.extend(board.0.to_le_bytes()));
            let of_page = nth * PAGE_STATES..nth * PAGE_STATES + boards.len();
            of_page.for_each(|at| page.extend(&values.get(at).0.to_le_bytes()[..width]));
            out.write_all(&page)?;
            let (states, checksum) = (boards.len() as u32, xxh3_64(&page));
            table.push(Page { layer: *layer, states, first: boards[0], offset, checksum });
            offset += page.len() as u64;
        }
    }
    let mut header = Vec::with_capacity(table_bytes);
    header.extend(MAGIC);
    header.extend((width as u64).to_le_bytes());
    header.extend((pages as u64).to_le_bytes());
    header.extend(run);
    header.extend(offset.to_le_bytes());
    table.iter().for_each(|page| header.extend(page.to_bytes()));
    header.extend(xxh3_64(&header).to_le_bytes());
    out.seek(SeekFrom::Start(0))?;
    out.write_all(&header)?;
    out.flush()
}

/// An open file of a cone.
struct ConeFile {
    file: File,
    width: usize,
    pages: Vec<Page>,
    /// The page that was read last, and its number.
    last: Option<(usize, Vec<u8>)>,
}

impl ConeFile {
    /// Reads and checks the header and the table; `None` if the file belongs to another run.
    fn open(path: &Path, run: &RunKey, width: usize) -> io::Result<Option<Self>> {
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let mut file = exact2048_files::open(path)?;
        let length = file.metadata()?.len();
        let mut header = vec![0; HEADER_BYTES];
        file.read_exact(&mut header)?;
        if header.starts_with(&MAGIC) && header[24..72] != run[..] {
            return Ok(None);
        }
        let expected = [&MAGIC[..], &(width as u64).to_le_bytes()].concat();
        let is_whole = header.starts_with(&expected) && u64_at(&header, 72) == length;
        // This check precedes the allocation of the table, which cannot be larger than the file.
        let pages = usize::try_from(u64_at(&header, 16)).ok();
        let pages = pages.filter(|&pages| is_whole && (pages as u64) < length / ENTRY_BYTES as u64);
        header.resize(HEADER_BYTES + pages.ok_or_else(damaged)? * ENTRY_BYTES + 8, 0);
        file.read_exact(&mut header[HEADER_BYTES..])?;
        let (covered, checksum) = header.split_at(header.len() - 8);
        if xxh3_64(covered) != u64_at(checksum, 0) {
            return Err(damaged());
        }
        let pages: Vec<Page> =
            covered[HEADER_BYTES..].chunks_exact(ENTRY_BYTES).map(Page::from_bytes).collect();
        if pages.iter().any(|page| page.states as usize > PAGE_STATES) {
            return Err(damaged());
        }
        Ok(Some(Self { file, width, pages, last: None }))
    }

    /// The value of a state, if the cone has it.
    fn value(&mut self, layer: Layer, board: Board) -> io::Result<Option<Stored>> {
        let after = self.pages.partition_point(|page| (page.layer, page.first) <= (layer, board));
        let Some(number) = after.checked_sub(1) else { return Ok(None) };
        let page = self.pages[number];
        if page.layer != layer {
            return Ok(None);
        }
        let states = page.states as usize;
        if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
            let mut bytes = vec![0; states * (8 + self.width)];
            self.file.read_exact_at(&mut bytes, page.offset)?;
            if xxh3_64(&bytes) != page.checksum {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.last = Some((number, bytes));
        }
        let Some((_, bytes)) = &self.last else { return Ok(None) };
        let (boards, values) = bytes.split_at(8 * states);
        let (mut low, mut high) = (0, states);
        while low < high {
            let middle = low.midpoint(high);
            match u64_at(boards, 8 * middle).cmp(&board.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let mut value = [0; 8];
                    value[..self.width].copy_from_slice(&values[middle * self.width..][..self.width]);
                    return Ok(Some(Stored(u64::from_le_bytes(value))));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use exact2048_cone::Values;
    use tempfile::TempDir;

    use super::super::CostSum;
    use super::*;

    const LAYER: Layer = Layer(40);

    /// Bytes of a file with this many states of one layer, at most a page.
    fn bytes_of(states: u64) -> u64 {
        (HEADER_BYTES + ENTRY_BYTES) as u64 + 8 + 12 * states
    }

    /// A cone of this many states. The boards are the numbers from `first` on, and the value of each is one less than
    /// its number.
    fn cone(first: u64, states: u64) -> Solved {
        let numbers = first..first + states;
        let boards = numbers.clone().map(Board).collect();
        let values = Values::Bits32(numbers.map(|number| number as u32 - 1).collect());
        Solved::new(vec![SolvedLayer { layer: LAYER, boards, values }])
    }

    /// An empty folder for cones of a run.
    fn cone_files(place: &TempDir, most_bytes: u64, run: u8) -> ConeFiles {
        let folder = place.path().join("cones");
        fs::create_dir_all(&folder).unwrap();
        ConeFiles::open(folder, most_bytes, [run; 48], 4)
    }

    /// Writes a cone, and returns its file.
    fn kept(files: &ConeFiles, solved: &Solved) -> PathBuf {
        let before = files.files();
        files.keep(solved);
        let path = files.files().into_iter().find(|path| !before.contains(path)).unwrap();
        let bytes = bytes_of(solved.states());
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        path
    }

    /// Sets the last use of a file to this many seconds ago.
    fn age(path: &Path, seconds: u64) {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        File::options().append(true).open(path).unwrap().set_modified(then).unwrap();
    }

    /// Whether the state of a board is known.
    fn knows(files: &ConeFiles, board: u64) -> bool {
        let (mut values, spent) = ([None], CostSum::default());
        files.fill(&[(LAYER, Board(board))], &mut values, &QuestionLimits::new(&|| true, 0, &spent)).unwrap();
        let value = values[0];
        assert!(value.is_none_or(|value| value == Stored(board - 1)), "{board}: {value:?}");
        value.is_some()
    }

    #[test]
    fn least_recently_used_cones_are_removed_first() {
        let place = tempfile::tempdir().unwrap();
        // There is space for three cones of 100 states.
        let most_bytes = 3 * bytes_of(100) + 10;
        let files = cone_files(&place, most_bytes, 1);
        let others = cone_files(&place, most_bytes, 2);
        let first = kept(&files, &cone(1000, 100));
        let second = kept(&others, &cone(2000, 100));
        let third = kept(&files, &cone(3000, 100));
        for (path, seconds) in [(&first, 30), (&second, 20), (&third, 10)] {
            age(path, seconds);
        }
        // Only a search with a result uses a file.
        assert!(!knows(&files, 999) && !knows(&files, 2000), "board 2000 is of another run");
        assert!(knows(&files, 1099));
        let fourth = kept(&files, &cone(4000, 100));
        assert_eq!([&first, &second, &third, &fourth].map(|path| path.exists()), [true, false, true, true]);
        assert!(!knows(&others, 2000));
    }

    #[test]
    fn as_many_cones_are_removed_as_needed() {
        let place = tempfile::tempdir().unwrap();
        let files = cone_files(&place, 3 * bytes_of(100) + 10, 1);
        let cones = [1000, 2000, 3000].map(|first| kept(&files, &cone(first, 100)));
        cones.iter().zip([20, 30, 10]).for_each(|(path, seconds)| age(path, seconds));
        // Files that are not cones are neither counted nor removed.
        let note = place.path().join("cones").join("note.txt");
        fs::write(&note, [0u8; 10_000]).unwrap();
        age(&note, 40);
        let small = kept(&files, &cone(4000, 50));
        let are_there = || cones.each_ref().map(|path| path.exists());
        assert_eq!(are_there(), [true, false, true]);
        // A cone that is twice as large replaces two cones.
        age(&small, 5);
        kept(&files, &cone(5000, 200));
        assert_eq!(are_there(), [false, false, false]);
        assert!(knows(&files, 4049) && knows(&files, 5199));
        // A cone above the limit is not kept, and no other cone is removed for it.
        files.keep(&cone(6000, 400));
        assert!(knows(&files, 4049) && knows(&files, 5199) && !knows(&files, 6000));
        assert!(note.exists());
    }

    /// A forged table may have a valid checksum. Even then, no more memory is allocated than a page needs.
    #[test]
    fn pages_of_too_many_states_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let files = cone_files(&place, 1 << 20, 1);
        let path = kept(&files, &cone(1000, 100));
        let (mut bytes, end) = (fs::read(&path).unwrap(), HEADER_BYTES + ENTRY_BYTES);
        bytes[HEADER_BYTES + 4..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
        let checksum = xxh3_64(&bytes[..end]).to_le_bytes();
        bytes[end..][..8].copy_from_slice(&checksum);
        fs::write(&path, bytes).unwrap();
        assert!(!knows(&files, 1000) && !path.exists());
    }

    /// Creates a temporary file, as another process does before it renames the file to `name`.
    fn temporary(place: &TempDir, name: &str, bytes: u64) -> PathBuf {
        let path = place.path().join("cones").join(format!(".tmp-{name}-{:032x}", 7));
        fs::write(&path, vec![0u8; bytes as usize]).unwrap();
        path
    }

    /// A file counts and stays while a process writes it, and is removed later. Files of other programs stay.
    #[test]
    fn abandoned_temporary_files_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let files = cone_files(&place, 2 * bytes_of(100) + 10, 1);
        let first = kept(&files, &cone(1000, 100));
        age(&first, 10);
        let begun = temporary(&place, &name_of(LAYER, LAYER, 3), bytes_of(100));
        let others = ["perfect-play.part", "notes.cone", "000004-000008-12.cone"];
        let others = others.map(|name| temporary(&place, name, 10 * bytes_of(100)));
        let note = place.path().join("cones/.tmp-my.cone-1");
        fs::write(&note, "mine").unwrap();
        let second = kept(&files, &cone(2000, 100));
        assert!(begun.exists() && !first.exists() && second.exists());
        for file in others.iter().chain([&begun, &note]) {
            age(file, 24 * 3600);
        }
        let writer = File::open(&begun).unwrap();
        writer.lock().unwrap();
        files.make_space(0, 0);
        assert!(begun.exists(), "its writer has it open");
        drop(writer);
        kept(&files, &cone(3000, 100));
        assert!(!begun.exists() && second.exists());
        assert!(others.iter().chain([&note]).all(|file| file.exists()), "files of other programs stay");
    }

    /// Opening with a smaller limit removes cones at once, not when the next cone is written.
    #[test]
    fn opening_applies_the_limit() {
        let place = tempfile::tempdir().unwrap();
        let files = cone_files(&place, 1 << 20, 1);
        let [older, newer] = [1000, 2000].map(|first| kept(&files, &cone(first, 100)));
        age(&older, 10);
        let mine = place.path().join("cones/my.cone");
        fs::write(&mine, vec![0u8; 10_000]).unwrap();
        cone_files(&place, 2 * bytes_of(100), 1);
        assert!(older.exists() && newer.exists());
        cone_files(&place, 2 * bytes_of(100) - 1, 1);
        assert!(!older.exists() && newer.exists() && mine.exists());
    }
}
