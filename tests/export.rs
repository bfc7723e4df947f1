//! Exports, compared row by row with the oracle, and exports to folders with other files.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, Solved, exact2048, on_run};
use exact2048_game::Board;
use exact2048_game::packed::PackedRules;
use exact2048_solution::{Evaluation, Oracle, Run};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const ALWAYS: &(dyn Fn() -> bool + Sync) = &|| true;

/// A row by the names of its columns. The board is separate, because f64 cannot represent all 64-bit numbers.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    board: Board,
    /// Numbers by column; `None` if the row has no number in the column.
    numbers: BTreeMap<String, Option<f64>>,
}

impl Row {
    fn get(&self, name: &str) -> f64 {
        self.numbers[name].unwrap()
    }

    fn actions(&self) -> [Option<f64>; 4] {
        ["left", "right", "up", "down"].map(|name| self.numbers[name])
    }
}

/// All data files. Requires that all have the same format.
fn files(folder: &Path, format: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("data")).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.iter().all(|path| path.extension().unwrap() == format), "{files:?}");
    files
}

fn export(run: &Path, folder: &Path, options: &str) -> common::Finished {
    let options: Vec<&str> = options.split_whitespace().chain(["-o", folder.to_str().unwrap()]).collect();
    on_run(run, "export", &options)
}

fn parquet(folder: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for path in files(folder, "parquet") {
        let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let (mut board, mut numbers) = (None, BTreeMap::new());
            for (name, field) in row.unwrap().get_column_iter() {
                let number = match field {
                    Field::ULong(bits) => {
                        board = Some(Board(*bits));
                        continue;
                    }
                    Field::UByte(n) => Some(f64::from(*n)),
                    Field::UShort(n) => Some(f64::from(*n)),
                    Field::UInt(n) => Some(f64::from(*n)),
                    Field::Double(n) => Some(*n),
                    Field::Null => None,
                    other => panic!("{name}: {other:?}"),
                };
                numbers.insert(name.clone(), number);
            }
            rows.push(Row { board: board.unwrap(), numbers });
        }
    }
    rows
}

fn csv(folder: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for path in files(folder, "csv") {
        let text = fs::read_to_string(path).unwrap();
        let (header, lines) = text.split_once('\n').unwrap();
        for line in lines.lines() {
            let mut fields = header.split(',').zip(line.split(','));
            let board = Board(fields.next().filter(|(name, _)| *name == "board").unwrap().1.parse().unwrap());
            let number = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
            let numbers = fields.map(|(name, text)| (name.to_owned(), number(text))).collect();
            rows.push(Row { board, numbers });
        }
    }
    rows
}

/// Reads an array file. Returns the element type from the header, and the elements as words: integers or f64 bits.
fn array(path: &Path) -> (String, Vec<u64>) {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!((data % 64, bytes[data - 1]), (0, b'\n'), "not aligned");
    let header = std::str::from_utf8(&bytes[10..data]).unwrap();
    let kind = header.split('\'').nth(3).unwrap().to_owned();
    let width: usize = kind[2..].parse().unwrap();
    let shape = header.split("'shape': (").nth(1).unwrap().split(',').next().unwrap();
    assert_eq!(bytes.len() - data, shape.parse::<usize>().unwrap() * width);
    let element = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..width].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    (kind, bytes[data..].chunks_exact(width).map(element).collect())
}

/// Rows of arrays, with one array per column. Each missing number is NaN, and its mask is set.
fn npy(folder: &Path) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let all = files(folder, "npy");
    for boards in all.iter().filter(|path| path.to_str().unwrap().ends_with(".board.npy")) {
        let stem = boards.to_str().unwrap().strip_suffix("board.npy").unwrap();
        let (kind, boards) = array(boards);
        assert_eq!(kind, "<u8");
        let first = rows.len();
        rows.extend(boards.into_iter().map(|board| Row { board: Board(board), numbers: BTreeMap::new() }));
        for path in &all {
            let Some(name) = path.to_str().unwrap().strip_prefix(stem) else { continue };
            let name = name.strip_suffix(".npy").unwrap();
            if name == "board" || name.ends_with(".mask") {
                continue;
            }
            let (kind, elements) = array(path);
            let mask = PathBuf::from(format!("{stem}{name}.mask.npy"));
            let mask = if mask.exists() { array(&mask) } else { ("|b1".to_owned(), vec![0; elements.len()]) };
            assert_eq!(
                (mask.0.as_str(), elements.len(), mask.1.len()),
                ("|b1", rows.len() - first, elements.len())
            );
            for ((row, element), is_none) in rows[first..].iter_mut().zip(elements).zip(mask.1) {
                let number = if kind == "<f8" { f64::from_bits(element) } else { element as f64 };
                assert_eq!(number.is_nan(), is_none == 1, "{name}");
                row.numbers.insert(name.to_owned(), (!number.is_nan()).then_some(number));
            }
        }
    }
    rows
}

/// Checks the columns of boards, and the order of rows.
fn check_boards(rows: &[Row], rules: &PackedRules) {
    for row in rows {
        assert_eq!(rules.canonical(row.board), row.board);
        let exponents: Vec<u8> = rules.size().playable().map(|cell| row.board.get(cell)).collect();
        assert_eq!(row.get("layer"), f64::from(row.board.tile_sum(rules.size())));
        assert_eq!(row.get("largest"), f64::from(1u32 << exponents.iter().max().unwrap()));
        assert_eq!(row.get("empties"), exponents.iter().filter(|&&e| e == 0).count() as f64);
    }
    assert!(rows.is_sorted_by(|a, b| (a.get("layer"), a.board) < (b.get("layer"), b.board)));
}

struct Case {
    run: Solved,
    oracle: Oracle,
    rules: PackedRules,
    counts: (u64, u64),
}

impl Case {
    fn new(options: &str) -> Self {
        let run = Solved::new(options);
        let opened = Run::open(&run.run()).unwrap();
        let counts = opened
            .layer_counts()
            .iter()
            .fold((0, 0), |(states, after), counts| (states + counts.states, after + counts.afterstates));
        let oracle = Oracle::new(&opened).unwrap();
        Self { rules: PackedRules::new(oracle.params().game().board()), run, oracle, counts }
    }

    fn evaluations(&self, rows: &[Row]) -> Vec<Evaluation> {
        let boards: Vec<Board> = rows.iter().map(|row| row.board).collect();
        self.oracle.evaluate_all(&boards, ALWAYS).unwrap().into_iter().map(Result::unwrap).collect()
    }
}

#[test]
fn tables_agree_with_the_oracle() {
    for options in [
        "--board 3x2",
        "--board 2x3 --keep all",
        "--board 3x2 --keep 16 --precision 64",
        "--board 3x2 --keep starts --spawner worst --large 3",
        "--board 3x3 --objective reach:32",
        "--board 3x2 --objective reach:64 --discount 0.99",
        "--board 3x2 --objective lose:64 --spawn4 1/4",
        "--board 3x2 --values best-move",
        "--board 3x3:.../..x/.xx --objective reach:32",
        "--board 2x4:.#../...# --objective reach:32 --values best-move",
    ] {
        let case = Case::new(options);
        let place = Place::new();
        let run = case.run.run();
        for what in ["states", "afterstates"] {
            export(&run, &place.join(what), &format!("--what {what} --threads 2")).exits(0);
        }
        let states = parquet(&place.join("states"));
        assert_eq!(states.len() as u64, case.counts.0, "{options}");
        check_boards(&states, &case.rules);
        let answers = case.evaluations(&states);
        let mut after_values = BTreeMap::new();
        for (row, answer) in states.iter().zip(&answers) {
            assert_eq!(row.get("value"), answer.value, "{options} {row:?}");
            let target = case.oracle.params().game().winning_exponent();
            let is_won = |board| target.is_some_and(|target| case.rules.has(board, target));
            for outcome in
                answer.moves.iter().filter_map(|m| m.outcome).filter(|outcome| !is_won(outcome.after))
            {
                after_values.insert(case.rules.canonical(outcome.after), (outcome.value, outcome.score));
            }
        }
        let after = parquet(&place.join("afterstates"));
        assert_eq!(after.len() as u64, case.counts.1, "{options}");
        assert_eq!(after.len(), after_values.len(), "{options}");
        check_boards(&after, &case.rules);
        let is_score = options.split("--objective").count() == 1;
        for row in &after {
            let (value, score) = after_values[&row.board];
            let score = if is_score { f64::from(score) } else { 0.0 };
            assert!((row.get("value") - (value - score)).abs() <= 1e-9 * (1.0 + value), "{options} {row:?}");
        }
        if options.contains("best-move") {
            continue;
        }
        export(&run, &place.join("policy"), "--what policy --threads 2").exits(0);
        let policy = parquet(&place.join("policy"));
        check_boards(&policy, &case.rules);
        assert!(policy.iter().map(|row| row.board).eq(states.iter().map(|row| row.board)), "{options}");
        for (row, answer) in policy.iter().zip(&answers) {
            let values = answer.moves.iter().map(|m| m.outcome.map(|outcome| outcome.value));
            assert!(values.eq(row.actions()), "{options} {row:?}");
            let is_best =
                |m: &exact2048_solution::MoveValue| m.outcome.is_some_and(|outcome| outcome.is_best);
            let best: u8 = answer.moves.iter().map(|m| u8::from(is_best(m)) << m.direction as u8).sum();
            assert_eq!(row.get("best"), f64::from(best), "{options} {row:?}");
        }
    }
}

#[test]
fn a_run_of_best_moves_has_a_policy_of_one_move_a_state() {
    let case = Case::new("--board 3x2 --values best-move");
    let place = Place::new();
    export(&case.run.run(), &place.join("policy"), "--what policy").exits(0);
    let rows = parquet(&place.join("policy"));
    assert_eq!(rows.len() as u64, case.counts.0);
    check_boards(&rows, &case.rules);
    let boards: Vec<Board> = rows.iter().map(|row| row.board).collect();
    for (row, advice) in rows.iter().zip(case.oracle.advise_all(&boards, ALWAYS).unwrap()) {
        let best = advice.unwrap().best.map_or(0, |best| 1u8 << best as u8);
        assert_eq!(row.get("best"), f64::from(best), "{row:?}");
        assert_eq!(row.numbers.len(), 4);
    }
    assert!(files(&place.join("policy"), "parquet")[0].to_str().unwrap().contains("best-moves-000004-"));
}

#[test]
fn formats_hold_the_same_rows() {
    let case = Case::new("--board 3x2");
    let place = Place::new();
    for what in ["states", "policy"] {
        for format in ["parquet", "npy", "csv"] {
            let options = format!("--what {what} --format {format}");
            export(&case.run.run(), &place.join(&format!("{what}-{format}")), &options).exits(0);
        }
        let expected = parquet(&place.join(&format!("{what}-parquet")));
        let has_none = expected.iter().any(|row| row.numbers.values().any(Option::is_none));
        assert_eq!(has_none, what == "policy");
        assert_eq!(npy(&place.join(&format!("{what}-npy"))), expected);
        assert_eq!(csv(&place.join(&format!("{what}-csv"))), expected);
    }
}

#[test]
fn layers_and_samples_are_those_asked_for() {
    let case = Case::new("--board 3x2");
    let (run, place) = (case.run.run(), Place::new());
    export(&run, &place.join("all"), "--what policy").exits(0);
    let all = parquet(&place.join("all"));
    // Also exports from the middle between kept layers.
    for (nth, layers) in ["10..30", "12..12", "..8", "200.."].into_iter().enumerate() {
        let folder = place.join(&format!("some{nth}"));
        export(&run, &folder, &format!("--what policy --layers {layers}")).exits(0);
        let (first, last) = layers.split_once("..").unwrap();
        let (first, last) = (first.parse().unwrap_or(0.0), last.parse().unwrap_or(1e9));
        let expected: Vec<Row> =
            all.iter().filter(|row| (first..=last).contains(&row.get("layer"))).cloned().collect();
        assert!(!expected.is_empty() && parquet(&folder) == expected, "{layers}");
    }
    for sample in [1, 100, 1_000_000] {
        let folder = place.join(&format!("sample{sample}"));
        let json = export(&run, &folder, &format!("--what policy --sample {sample} --json")).exits(0).json();
        let rows = parquet(&folder);
        assert_eq!((rows.len(), json["rows"].as_u64().unwrap()), (sample.min(all.len()), rows.len() as u64));
        let mut of_all = all.iter();
        assert!(rows.iter().all(|row| of_all.any(|other| other == row)));
    }
}

/// A repeated export preserves complete files, and rewrites missing and truncated files.
#[test]
fn an_interrupted_export_resumes() {
    let case = Case::new("--board 3x2");
    let (run, place) = (case.run.run(), Place::new());
    let folder = place.join("states");
    let first = export(&run, &folder, "--what states --json").exits(0).json();
    assert_eq!((first["files"].as_u64(), first["files_before"].as_u64()), (Some(1), Some(0)));
    let file = files(&folder, "parquet").remove(0);
    let whole = fs::read(&file).unwrap();
    assert_eq!(first["bytes"].as_u64(), Some(whole.len() as u64));
    let unfinished = folder.join(format!("{}.part", file.file_name().unwrap().display()));
    fs::write(&unfinished, &whole[..100]).unwrap();
    fs::remove_file(&file).unwrap();
    export(&run, &folder, "--what states").exits(0);
    assert_eq!(fs::read(&file).unwrap(), whole);
    assert!(!unfinished.exists());
    let modified = || fs::metadata(&file).unwrap().modified().unwrap();
    let before = modified();
    let again = export(&run, &folder, "--what states --json").exits(0).json();
    assert_eq!((again["files_before"].as_u64(), again["files_damaged"].as_u64()), (Some(1), Some(0)));
    assert_eq!(modified(), before);
}

/// Tests files that were overwritten, truncated or extended after the export.
#[test]
fn damaged_files_are_written_again_and_said() {
    let case = Case::new("--board 3x2");
    let (run, place) = (case.run.run(), Place::new());
    for format in ["parquet", "csv", "npy"] {
        let (folder, options) = (place.join(format), format!("--what policy --format {format}"));
        export(&run, &folder, &options).exits(0);
        let all = files(&folder, format);
        for file in &all {
            let whole = fs::read(file).unwrap();
            let first_row = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let overwritten = [b"?", &whole[1..]].concat();
            let second_row =
                whole[first_row..].iter().position(|&byte| byte == b'\n').map_or(30, |end| end + 1);
            let without_a_line = [&whole[..first_row], &whole[first_row + second_row..]].concat();
            let damaged: [&[u8]; 6] = [
                b"",
                b"not a table",
                &whole[..whole.len() - 1],
                &[&whole[..], b"\0"].concat(),
                &overwritten,
                &without_a_line,
            ];
            for (nth, damaged) in damaged.into_iter().enumerate() {
                fs::write(file, damaged).unwrap();
                let said = export(&run, &folder, &options).exits(0).stdout;
                assert!(said.contains(&format!("{} written again", all.len())), "{file:?} {nth}: {said}");
                assert!(fs::read(file).unwrap() == whole, "{file:?} {nth}");
            }
        }
        let said = export(&run, &folder, &options).exits(0).stdout;
        assert!(said.contains(&format!("{} of them existed before", all.len())), "{said}");
    }
}

#[test]
fn exports_neither_wait_for_a_fifo_nor_follow_a_link() {
    let case = Case::new("--board 2x2");
    let (run, place) = (case.run.run(), Place::new());
    let folder = place.join("out");
    export(&run, &folder, "--what states").exits(0);
    let table = files(&folder, "parquet").remove(0);
    fs::remove_file(&table).unwrap();
    common::make_fifo(&table);
    export(&run, &folder, "--what states").exits(1).says(&[table.to_str().unwrap(), "a FIFO"]);
    fs::remove_file(&table).unwrap();
    let (notes, unfinished) = (place.join("notes"), folder.join("states-000004-000060.parquet.part"));
    fs::write(&notes, "precious").unwrap();
    std::os::unix::fs::symlink(&notes, &unfinished).unwrap();
    assert_eq!(unfinished.file_stem(), table.file_name());
    export(&run, &folder, "--what states").exits(1).says(&[unfinished.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "precious");
    fs::remove_file(&unfinished).unwrap();
    export(&run, &folder, "--what states").exits(0);
}

#[test]
fn a_folder_that_another_process_exports_to_is_refused() {
    let case = Case::new("--board 2x2");
    let place = Place::new();
    let folder = place.join("out");
    export(&case.run.run(), &folder, "--what states").exits(0);
    let description = fs::File::open(folder.join("_export.txt")).unwrap();
    description.lock().unwrap();
    export(&case.run.run(), &folder, "--what states").exits(2).prints("export during another one");
    drop(description);
    export(&case.run.run(), &folder, "--what states").exits(0);
}

#[test]
fn failed_exports() {
    let case = Case::new("--board 2x2");
    let (run, place) = (case.run.run(), Place::new());
    let folder = place.join("out");
    export(&run, &folder, "--what states").exits(0);
    let other = Solved::new("--board 2x2 --spawn4 0.2");
    export(&other.run(), &folder, "--what states").exits(2).says(&["1/5"]);
    fs::create_dir(place.join("full")).unwrap();
    fs::write(place.join("full").join("notes"), "mine").unwrap();
    export(&run, &place.join("full"), "--what states").exits(2).says(&["notes"]);
    fs::write(place.join("file"), "").unwrap();
    export(&run, &place.join("file"), "--what states").exits(2).says(&["file"]);
    exact2048(["export", "--run", "/no/such/run", "--what", "states", "-o", "/tmp/x"]).exits(1);
    assert!(!place.join("none").exists());
    let begun = Place::new();
    let begun_run = begun.join("run");
    common::solve(&begun_run, "--board 3x2 --until-layer 30");
    export(&begun_run, &place.join("none"), "--what states").exits(1).says(&["--until-layer"]);
    assert!(!place.join("none").exists());
}
