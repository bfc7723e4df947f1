//! The best move follows from the stored bits. The values of two moves may differ by less than an f64 can show.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::collections::BTreeMap;
use std::path::Path;

use exact2048_game::bitset::Number;
use exact2048_game::board::Board;
use exact2048_game::fixed::Scale;
use exact2048_game::locate::{EntryPlace, Locator};
use exact2048_game::rowset::RowSet;
use exact2048_game::rules::Move;
use exact2048_game::value::Stored;
use exact2048_game::{KeptLayers, Layer, Params, Precision};
use exact2048_solution::{
    Commit, Evaluation, JournalRecord, Oracle, Parts, Phase, Record, Run, UnnamedPolicy,
};
use exact2048_storage::{Frame, ItemKey, ShardWriter};

/// Left and right merge the twos, down moves one of them, up changes nothing.
const ASKED: &str = "2 2 / 4 0";

/// The boards after a move and a spawn of 2 or 4, up to symmetry. The boards after the move right are images of those
/// after the move left.
const AFTER_LEFT: [&str; 2] = ["4 2 / 4 0", "4 4 / 4 0"];
const AFTER_DOWN: [&str; 2] = ["2 2 / 4 2", "2 4 / 4 2"];

/// The answer about [`ASKED`] from a 2x2 run that holds only the given boards, with these values.
fn answer(folder: &Path, params: &Params, values: &BTreeMap<&str, u64>) -> Evaluation {
    let locator = Locator::new(params);
    let mut blocks: BTreeMap<ItemKey, (EntryPlace, Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for (text, &value) in values {
        let place = locator.place(Board::parse(text, params.game().board()).unwrap()).unwrap();
        let (rows, columns) = (place.rows as usize, place.columns as usize);
        assert!(columns <= 64, "a row of bits fits into a word");
        let (_, bits, of_rows) = blocks
            .entry(Parts::key(place.layer, place.lane, 0))
            .or_insert_with(|| (place, vec![0; rows], vec![0; rows * columns]));
        bits[place.row.index()] |= 1 << place.column.0;
        of_rows[place.row.index() * columns + place.column.0 as usize] = value;
    }
    let mut run = Run::open_or_create(folder, params, UnnamedPolicy::Refuse).unwrap();
    for phase in [Phase::Enumerate, Phase::BackUp] {
        let (first, last) = (Layer(4), params.last_layer());
        let mut writer = ShardWriter::create(run.dir(), run.catalog().identity(phase, first, last)).unwrap();
        for (&key, (place, bits, of_rows)) in &blocks {
            let (rows, columns) = (place.rows as usize, place.columns as usize);
            let (parts, all) = (Parts::new(rows, columns), RowSet::all(rows));
            let item = match phase {
                Phase::Enumerate => parts.encode_reach(0, &all, bits),
                Phase::BackUp => parts.encode_values(0, &all, bits, columns, of_rows, None),
            };
            writer.push(Frame::encode(&[(key, &item)], 1).unwrap()).unwrap();
        }
        let shards = vec![writer.finish().unwrap()];
        let fingerprint = (phase == Phase::BackUp).then_some(0);
        let commit = Commit { phase, first, last, layers: Vec::new(), fingerprint };
        let record = Record::new(commit, shards);
        run.append(JournalRecord::Commit(record)).unwrap();
    }
    let asked = Board::parse(ASKED, params.game().board()).unwrap();
    Oracle::new(&run).unwrap().evaluate(asked, &|| true).unwrap()
}

/// If the values of two moves are the same floating-point number, the stored integers decide which move is best.
#[test]
fn moves_that_differ_only_in_the_last_bit_are_distinguished() {
    let params =
        Params::usual("2x2", "score").precision(Precision::Bits64).kept(KeptLayers::ALL).build().unwrap();
    let Stored(bits) = Scale::new(params.game()).points(100);
    assert_eq!(bits as f64, (bits + 1) as f64);
    for (better, worse, best) in
        [(AFTER_DOWN, AFTER_LEFT, &[Move::Down][..]), (AFTER_LEFT, AFTER_DOWN, &[Move::Left, Move::Right])]
    {
        let mut values: BTreeMap<&str, u64> = worse.map(|text| (text, bits)).into();
        values.extend(better.map(|text| (text, bits + 1)));
        values.insert(ASKED, bits);
        let place = tempfile::tempdir().unwrap();
        let answer = answer(&place.path().join("run"), &params, &values);
        let legal: Vec<_> = answer.moves.iter().filter_map(|m| Some((m.direction, m.outcome?))).collect();
        assert_eq!(legal.len(), 3);
        let shown: Vec<f64> = legal.iter().map(|(_, outcome)| outcome.value).collect();
        assert!(shown.iter().all(|&value| value == shown[0]), "they differ as f64: {shown:?}");
        let found: Vec<Move> =
            legal.iter().filter(|(_, outcome)| outcome.is_best).map(|(direction, _)| *direction).collect();
        assert_eq!(found, best);
        assert_eq!(answer.best, Some(best[0]));
    }
}
