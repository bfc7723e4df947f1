//! The states and values of a layer as its shards hold them.

use std::sync::{Arc, Mutex};

use exact2048_game::class::{ClassId, Space};
use exact2048_game::columns::Columns;
use exact2048_game::{Lane, Layer, Precision};
use exact2048_storage::{ItemKey, ShardKind};
use exact2048_worker::{Parts, for_each_bit};
use rustc_hash::FxHashMap;

use super::boards::{Boards, merge};
use super::items::{Item, Items};
use super::rules::Rules;
use super::{Problem, parallel};
use crate::Run;

/// Reads layers.
pub struct Store<'a> {
    run: &'a Run,
    rules: &'a Rules,
    space: Space,
    columns: Mutex<FxHashMap<Lane, Arc<Columns>>>,
}

impl<'a> Store<'a> {
    /// The store of a run.
    pub fn new(run: &'a Run, rules: &'a Rules) -> Self {
        Self { run, rules, space: Space::new(run.params()), columns: Mutex::default() }
    }

    /// The states of a layer, and their values where `with_values`. The layer must be covered.
    pub fn layer(&self, layer: Layer, with_values: bool, threads: usize) -> Result<Boards, Problem> {
        let reach = self.items(ShardKind::Reach, layer, threads)?;
        let values = if with_values { Some(self.items(ShardKind::Values, layer, threads)?) } else { None };
        if let Some(values) = &values
            && values.len() != reach.len()
        {
            let (reach, found) = (reach.len(), values.len());
            let what = format!("items of layer {layer}");
            return Err(values.problem(
                None,
                None,
                what,
                format!("{reach}, as in the reach shard"),
                found.to_string(),
            ));
        }
        let mut read: Vec<Vec<(u64, u64)>> = parallel::each(threads, reach.len(), |i| {
            let mut found = Vec::new();
            self.item(&reach, values.as_ref(), i, |_, board, value| found.push((board, value)))?;
            found.sort_unstable();
            Ok(found)
        })
        .into_iter()
        .collect::<Result<_, Problem>>()?;
        self.forget_lanes(&reach);
        let mut all = merge(&mut read);
        // A row that is symmetric itself holds all images of a board, and each of them once.
        all.dedup();
        if let Some(two) = all.windows(2).find(|two| two[0].0 == two[1].0) {
            let (board, first, second) = (two[0].0, two[0].1, two[1].1);
            let values = values.as_ref().unwrap_or(&reach);
            let what = format!("values of the images of {}", self.text(board));
            return Err(values.problem(
                None,
                None,
                what,
                format!("{first} for all"),
                format!("{second} for one"),
            ));
        }
        let (boards, values) = all.into_iter().unzip();
        Ok(Boards::new(boards, with_values.then_some(values)))
    }

    /// The state whose values entry is number `nth` of an item, and the value; `None` behind its end.
    pub fn nth_of_item(&self, key: ItemKey, nth: usize) -> Result<Option<(u64, u64)>, Problem> {
        let reach = self.items_of(ShardKind::Reach, Layer(key.layer), Some(key), 1)?;
        let values = self.items_of(ShardKind::Values, Layer(key.layer), Some(key), 1)?;
        let mut found = None;
        if reach.len() > 0 {
            self.item(&reach, Some(&values), 0, |i, board, value| {
                if i == nth {
                    found = Some((board, value));
                }
            })?;
        }
        Ok(found)
    }

    /// A problem with a stored value of a state, with the frame that holds it.
    pub fn value_problem(&self, layer: Layer, board: u64, expected: u64, found: u64) -> Problem {
        let located = self.locate_value(layer, board);
        let (values, entry, offset, place) = match located {
            Ok(Some(located)) => located,
            Ok(None) => {
                return self.problem(ShardKind::Values, layer, "states".to_owned(), self.text(board), "none");
            }
            Err(problem) => return problem,
        };
        let what = format!("value of the state {} of layer {layer} ({place})", self.text(board));
        values.problem(
            Some(&entry),
            Some(offset),
            what,
            format!("{expected} from its successors"),
            found.to_string(),
        )
    }

    /// The items, the item, the frame's offset and the place of a state's stored value.
    fn locate_value(&self, layer: Layer, board: u64) -> Result<Option<(Items, Item, u64, String)>, Problem> {
        let reach = self.items(ShardKind::Reach, layer, 1)?;
        let values = self.items(ShardKind::Values, layer, 1)?;
        let width = self.width();
        for i in 0..reach.len() {
            let mut nth = None;
            self.item(&reach, Some(&values), i, |n, found, _| {
                nth = if found == board { Some(n) } else { nth }
            })?;
            if let (Some(nth), Some(entry)) = (nth, values.get(i)) {
                let (offset, place) = values.place(&entry)?;
                let byte = entry.entry.offset as usize + nth * width;
                return Ok(Some((
                    values,
                    entry,
                    offset,
                    format!("{place}, byte {byte} of the decoded frame"),
                )));
            }
        }
        Ok(None)
    }

    /// A problem of a layer that is no single frame's.
    pub fn problem(
        &self,
        kind: ShardKind,
        layer: Layer,
        what: String,
        expected: String,
        found: &str,
    ) -> Problem {
        let shards = self.run.catalog().find_layer(kind, layer.0);
        let path = shards.first().map(|shard| shard.path.clone());
        Problem::Content {
            file: path.unwrap_or_else(|| self.run.dir().path().to_path_buf()),
            offset: None,
            what,
            expected,
            found: found.to_owned(),
        }
    }

    /// A board as people write it.
    pub fn text(&self, board: u64) -> String {
        exact2048_game::Board(board).to_text(self.run.params().board)
    }

    fn width(&self) -> usize {
        if self.run.params().precision == Precision::Bits64 { 8 } else { 4 }
    }

    fn items(&self, kind: ShardKind, layer: Layer, threads: usize) -> Result<Items, Problem> {
        self.items_of(kind, layer, None, threads)
    }

    /// The items of a layer, or one of them.
    fn items_of(
        &self,
        kind: ShardKind,
        layer: Layer,
        only: Option<ItemKey>,
        threads: usize,
    ) -> Result<Items, Problem> {
        let not_covered = || {
            let what = format!("{kind} shards that cover layer {layer}");
            self.problem(kind, layer, what, "one".to_owned(), "none")
        };
        Items::read(self.run.catalog(), kind, layer, only, threads)?.ok_or_else(not_covered)
    }

    /// Calls `visit` with the number, the canonical board and the value (0 without values) of each entry
    /// of an item of `reach`, in the order in which values are stored.
    fn item(
        &self,
        reach: &Items,
        values: Option<&Items>,
        i: usize,
        mut visit: impl FnMut(usize, u64, u64),
    ) -> Result<(), Problem> {
        let Some(entry) = reach.get(i) else { return Ok(()) };
        let (key, item) = (entry.key(), reach.bytes(&entry));
        let bad = |expected: &str, found: String| {
            let (offset, place) = reach.place(&entry)?;
            let what = format!("reach item ({place})");
            Err(reach.problem(Some(&entry), Some(offset), what, expected.to_owned(), found))
        };
        let Some(lane) = Lane::from_code(key.lane) else { return bad("a lane", format!("{:#x}", key.lane)) };
        let columns = self.columns(lane);
        let class = ClassId::of(Layer(key.layer), lane).and_then(|id| self.space.class(id));
        let Some(class) = class.filter(|_| !columns.is_empty()) else {
            return bad("a lane that has boards in its layer", "one that has none".to_owned());
        };
        let parts = Parts::new(class.rows(), columns.len());
        if key.part >= parts.count() {
            return bad(&format!("a part below {}", parts.count()), key.part.to_string());
        }
        let (rows, words) = (parts.rows(key.part), columns.len().div_ceil(64));
        let mut bits = vec![0u64; rows.len() * words];
        if let Err(error) = parts.decode_reach_part(key, item, &mut bits) {
            return bad("an item that parses", error.to_string());
        }
        let marked = bits.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let stored = match values {
            Some(values) => Some(self.values_item(values, i, key, marked)?),
            None => None,
        };
        let mut next = stored.map(|bytes| bytes.chunks_exact(self.width()));
        let (mut mask, mut number) = (0, 0);
        for (row, row_bits) in rows.zip(bits.chunks_exact(words)) {
            while !class.mask_rows(mask).contains(&row) {
                mask += 1;
            }
            let small = self.space.small_tiles(class, mask, row as u32).0;
            let large_cells = &self.space.masks(lane.k)[mask].large_cells;
            for_each_bit(row_bits, |column| {
                let mut sequence = columns.sequences()[column];
                let board = large_cells.iter().rev().fold(small, |board, &cell| {
                    let exponent = sequence & 15;
                    sequence >>= 4;
                    board | exponent << (4 * cell)
                });
                let value = next.as_mut().and_then(Iterator::next).map_or(0, little_endian);
                visit(number, self.rules.canonical(board), value);
                number += 1;
            });
        }
        Ok(())
    }

    /// The bytes of the values item that belongs to a reach item with so many marked entries.
    fn values_item<'i>(
        &self,
        values: &'i Items,
        i: usize,
        key: ItemKey,
        marked: usize,
    ) -> Result<&'i [u8], Problem> {
        let entry = values.get(i).filter(|entry| entry.key() == key);
        let Some(entry) = entry else {
            let what = format!("values item of layer {}, lane {:#x}, part {}", key.layer, key.lane, key.part);
            return Err(values.problem(
                None,
                None,
                what,
                "one, as the reach shard has it".to_owned(),
                "none".to_owned(),
            ));
        };
        let item = values.bytes(&entry);
        if item.len() != marked * self.width() {
            let (offset, place) = values.place(&entry)?;
            let expected = format!("{marked} of {} bytes", self.width());
            return Err(values.problem(
                Some(&entry),
                Some(offset),
                format!("values ({place})"),
                expected,
                format!("{} bytes", item.len()),
            ));
        }
        Ok(item)
    }

    fn columns(&self, lane: Lane) -> Arc<Columns> {
        let mut columns = self.columns.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let make = || Arc::new(Columns::new(self.run.params(), lane));
        Arc::clone(columns.entry(lane).or_insert_with(make))
    }

    /// Keeps the columns of the lanes of a layer only: the next layer has most of them too.
    fn forget_lanes(&self, items: &Items) {
        let lanes = items.lanes();
        let mut columns = self.columns.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        columns.retain(|lane, _| lanes.binary_search(&lane.code()).is_ok());
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
