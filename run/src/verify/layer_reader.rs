//! Reads the states and values of a layer from its shards.

use exact2048_game::Precision;
use exact2048_solution::Run;
use exact2048_solution::cache::weighed_cache;
use exact2048_storage::{ItemKey, ShardKind};
use rayon::prelude::*;

use super::game::CheckedGame;
use super::items::{Content, FrameCache, Item, Items, item_text};
use super::journal;
use super::layout::{Block, BoardPlace, Layout, LayoutRow, RowSymmetry, RowWalk};
use super::outcome::Problem;
use super::policy::BestMoveReader;

/// The names of the moves, in the order of their numbers.
const MOVES: [&str; 4] = ["left", "right", "up", "down"];

/// Bytes of decoded frames that stay in memory between reads of single items.
const FRAMES_KEPT: u64 = 64 << 20;

/// Reads the layers of a run.
pub struct LayerReader<'a> {
    run: &'a Run,
    game: &'a CheckedGame,
    layout: Layout<'a>,
    frames: FrameCache,
}

/// The states of an item, each once.
#[derive(Debug, Default)]
pub struct Part {
    /// The code of the lane of the states.
    pub lane: u64,
    /// The canonical boards of the states.
    pub boards: Vec<u64>,
    /// The values of the states; empty if values are not read.
    pub values: Vec<u64>,
    /// The stored image of each board; empty if best moves are not read.
    pub images: Vec<u64>,
    /// The stored best move of each image.
    pub best: Vec<u8>,
}

impl Part {
    /// The stored images of the boards, or the canonical boards if the images are unknown.
    pub fn as_stored(&self) -> &[u64] {
        if self.images.is_empty() { &self.boards } else { &self.images }
    }
}

/// A parsed item of `reach`.
struct Marked<'i> {
    block: Block,
    rows: std::ops::Range<usize>,
    /// One bit per row, set if the row has an entry.
    occupancy: &'i [u8],
    /// One bit per column for each occupied row, set if the entry is reachable.
    bits: &'i [u8],
}

impl<'i> Marked<'i> {
    /// The numbers of the occupied rows, with the bits of their columns.
    fn occupied(&self) -> impl Iterator<Item = (usize, &'i [u8])> {
        let (first, occupancy) = (self.rows.start, self.occupancy);
        let rows = (0..self.rows.len()).filter(|i| occupancy[i / 8] >> (i % 8) & 1 == 1);
        rows.map(move |i| first + i).zip(self.bits.chunks_exact(self.block.columns().div_ceil(8)))
    }

    /// The number of marked entries.
    fn count(&self) -> usize {
        ones(self.bits)
    }
}

impl<'a> LayerReader<'a> {
    /// A reader of the stored layers of a run.
    pub fn new(run: &'a Run, game: &'a CheckedGame) -> Self {
        Self { run, game, layout: Layout::new(game), frames: weighed_cache(FRAMES_KEPT, 1 << 20) }
    }

    /// The states of a layer by item, with their values and best moves on request.
    ///
    /// Committed shards must cover the layer.
    pub fn layer(&self, layer: u32, with_values: bool, with_best_moves: bool) -> Result<Vec<Part>, Problem> {
        let reach = self.items(Content::Reach, layer)?;
        let values = if with_values { Some(self.items(Content::Values, layer)?) } else { None };
        let best = if with_best_moves { Some(self.items(Content::BestMoves, layer)?) } else { None };
        if let Some(best) = &best {
            require_states(best, &reach)?;
        }
        if let Some(values) = &values
            && values.len() != reach.len()
        {
            let what = format!("items of layer {layer}");
            let expected = format!("{} as in reach", reach.len());
            return Err(values.problem_of_all(what, expected, values.len().to_string()));
        }
        let part = |i: usize| self.part(&reach, values.as_ref(), best.as_ref(), i);
        let parts: Vec<Part> = (0..reach.len()).into_par_iter().map(part).collect::<Result<_, _>>()?;
        let mut lanes: Vec<u64> = parts.iter().map(|part| part.lane).collect();
        lanes.dedup();
        self.layout.forget_others(layer, &lanes);
        Ok(parts)
    }

    fn items(&self, content: Content, layer: u32) -> Result<Items, Problem> {
        let items = Items::read(self.run.catalog(), content, layer)?;
        items.ok_or_else(|| self.not_covered(content.kind(), layer))
    }

    fn item(&self, content: Content, key: ItemKey) -> Result<Items, Problem> {
        let items = Items::read_one(self.run.catalog(), content, key, &self.frames)?;
        items.ok_or_else(|| self.not_covered(content.kind(), key.layer))
    }

    fn not_covered(&self, kind: ShardKind, layer: u32) -> Problem {
        let what = format!("{kind} shards that cover layer {layer}");
        journal::problem(self.run, what, "one".to_owned(), "none".to_owned())
    }

    /// Parses an item of `reach`.
    fn marked<'i>(&self, reach: &'i Items, item: &Item) -> Result<Marked<'i>, Problem> {
        let bad = |expected: String, found: String| Err(reach.problem(item, expected, found));
        let (key, bytes) = (item.key(), reach.bytes(item));
        let Some(block) = self.layout.block(key.layer, key.lane) else {
            return bad("a lane with boards in its layer".to_owned(), "one without".to_owned());
        };
        if key.part as usize >= block.parts() {
            return bad(format!("a part number below {}", block.parts()), key.part.to_string());
        }
        let rows = block.rows(key.part as usize);
        let (occupancy, bits) = bytes.split_at(rows.len().div_ceil(8).min(bytes.len()));
        let occupied = ones(occupancy);
        let row_bytes = block.columns().div_ceil(8);
        let length = rows.len().div_ceil(8) + occupied * row_bytes;
        if bytes.len() != length {
            return bad(
                format!("{length} bytes for {occupied} occupied rows"),
                format!("{} bytes", bytes.len()),
            );
        }
        if occupied == 0 {
            return bad("an item with an entry".to_owned(), "one without".to_owned());
        }
        if has_bit_from(occupancy, rows.len()) {
            let expected = format!("occupied rows among the first {}", rows.len());
            return bad(expected, "an occupied row beyond them".to_owned());
        }
        let marked = Marked { block, rows, occupancy, bits };
        for (row, bits) in marked.occupied() {
            if has_bit_from(bits, marked.block.columns()) {
                let expected = format!("entries in the first {} columns", marked.block.columns());
                return bad(expected, format!("an entry of row {row} beyond them"));
            }
            if bits.iter().all(|&byte| byte == 0) {
                return bad("an entry in each occupied row".to_owned(), format!("none in row {row}"));
            }
        }
        Ok(marked)
    }

    /// The states of item number `i` of `reach`, with the values of item number `i` of `values` and the best moves of
    /// the same part.
    fn part(
        &self,
        reach: &Items,
        values: Option<&Items>,
        best: Option<&Items>,
        i: usize,
    ) -> Result<Part, Problem> {
        let Some(item) = reach.get(i) else { return Ok(Part::default()) };
        let marked = self.marked(reach, &item)?;
        let count = marked.count();
        let boards = Vec::with_capacity(count);
        let mut part = Part { lane: item.key().lane, boards, ..Part::default() };
        if let Some(values) = values {
            let bytes = self.values(values, i, item.key(), count)?;
            part.values = bytes.chunks_exact(self.width()).map(little_endian).collect();
        }
        let best_item = best.and_then(|best| best.find(item.key()));
        let code = best.zip(best_item).map_or(&[][..], |(best, item)| best.bytes(&item));
        let mut moves = best.map(|_| BestMoveReader::new(code, marked.block.columns()));
        let mut rows = RowWalk::new(&self.layout, &marked.block);
        // A symmetric row has fewer states than entries. So the values of later rows move to lower indices.
        let mut read = 0;
        for (number, bits) in marked.occupied() {
            let (row, start) = (rows.get(number), part.boards.len());
            let large = rows.large_tiles();
            for_each_bit(bits, |column| part.boards.push(row.small | large[column]));
            let entries = part.boards.len() - start;
            if let Some(moves) = &mut moves {
                moves.next_row();
                self.read_best(moves, bits, start, &mut part);
            }
            if !part.values.is_empty() {
                part.values.copy_within(read..read + entries, start);
            }
            read += entries;
            match rows.symmetry(&row) {
                RowSymmetry::None => {}
                RowSymmetry::Itself => {
                    let folded = self.fold(&row, &mut part, start);
                    folded.map_err(|(expected, found)| reach.problem(&item, expected, found))?;
                }
                RowSymmetry::Smaller => {
                    let found = format!("{} in row {number}", self.text(part.boards[start]));
                    return Err(reach.problem(&item, "only boards in canonical rows".to_owned(), found));
                }
            }
        }
        if !part.values.is_empty() {
            part.values.truncate(part.boards.len());
        }
        if let (Some(best), Some(item), Some(moves)) = (best, best_item, moves)
            && moves.unread() > 0
        {
            let expected = format!("{} bytes for {count} best moves", code.len() - moves.unread());
            return Err(best.problem(&item, expected, format!("{} bytes", code.len())));
        }
        self.game.geometry().canonicalise(&mut part.boards);
        Ok(part)
    }

    /// Reads the best moves of the entries of a row. The boards of the row begin at `start` in the part.
    fn read_best(&self, moves: &mut BestMoveReader<'_>, bits: &[u8], start: usize, part: &mut Part) {
        let boards = &part.boards[start..];
        let mut after = [const { Vec::new() }; 4];
        self.game.geometry().slide(boards, &mut after);
        let mut next = 0;
        for_each_bit(bits, |column| {
            let changes = |m: &usize| after[*m][next] != boards[next];
            let legal = (0..4).filter(changes).map(|m| 1 << m).sum();
            part.best.push(moves.next(column, legal));
            next += 1;
        });
        part.images.extend_from_slice(boards);
    }

    /// Keeps one board of each set of images in a row. The boards of the row begin at `start` in the part.
    ///
    /// # Errors
    ///
    /// The expected and the found content, if images are missing in the row or their values differ.
    fn fold(&self, row: &LayoutRow, part: &mut Part, start: usize) -> Result<(), (String, String)> {
        let geometry = self.game.geometry();
        let boards = part.boards.split_off(start);
        let best = part.best.split_off(start.min(part.best.len()));
        part.images.truncate(part.best.len());
        let value = |i: usize| part.values.get(start + i).copied().unwrap_or(0);
        let with_value = |(i, &board): (usize, &u64)| (geometry.canonical(board), board, value(i), i);
        let mut entries: Vec<(u64, u64, u64, usize)> = boards.iter().enumerate().map(with_value).collect();
        entries.sort_unstable();
        let mut values = Vec::new();
        for images in entries.chunk_by(|a, b| a.0 == b.0) {
            let (canonical, _, value, _) = images[0];
            let mut in_row = geometry.images(canonical).to_vec();
            in_row.sort_unstable();
            in_row.dedup();
            let skeleton = |board: u64| (board & row.small_cells) == row.small;
            let in_row = in_row.into_iter().filter(|&image| skeleton(image)).count();
            if images.len() != in_row {
                let expected = format!("all {in_row} images of {} in its row", self.text(canonical));
                return Err((expected, format!("{} of them", images.len())));
            }
            if let Some(other) = images.iter().find(|image| image.2 != value) {
                let expected = format!("one value for all images of {}", self.text(canonical));
                return Err((expected, format!("{value} and {}", other.2)));
            }
            part.boards.push(canonical);
            values.push(value);
            // A query reads the image whose large tiles are the smallest in the order of the cells.
            let first = images.iter().min_by_key(|image| in_reading_order(image.1));
            if let Some((image, best)) = first.and_then(|&(_, image, _, i)| Some((image, *best.get(i)?))) {
                part.images.push(image);
                part.best.push(best);
            }
        }
        if !part.values.is_empty() {
            part.values[start..start + values.len()].copy_from_slice(&values);
        }
        Ok(())
    }

    /// The bytes of item number `i` of `values`. The item must have this key and this number of values.
    fn values<'i>(
        &self,
        values: &'i Items,
        i: usize,
        key: ItemKey,
        count: usize,
    ) -> Result<&'i [u8], Problem> {
        let Some(item) = values.get(i).filter(|item| item.key() == key) else {
            let what = format!("values {}", item_text(key.layer, key.lane, key.part));
            return Err(values.problem_of_all(what, "an item as in reach".to_owned(), "none".to_owned()));
        };
        let (bytes, width) = (values.bytes(&item), self.width());
        if bytes.len() != count * width {
            let expected = format!("{count} values of {width} bytes");
            return Err(values.problem(&item, expected, format!("{} bytes", bytes.len())));
        }
        Ok(bytes)
    }

    /// The value of entry number `nth` of an item of `reach`; `None` past the end of the item.
    fn value_of(&self, key: ItemKey, count: usize, nth: usize) -> Result<Option<u64>, Problem> {
        let items = self.item(Content::Values, key)?;
        let bytes = self.values(&items, 0, key, count)?;
        Ok(bytes.chunks_exact(self.width()).nth(nth).map(little_endian))
    }

    /// The number of bytes of a stored value.
    pub fn width(&self) -> usize {
        match self.game.params().game().precision() {
            Precision::Bits32 => 4,
            Precision::Bits64 => 8,
        }
    }

    /// The board and the value of entry number `nth` of an item; `None` past the end of the item.
    pub fn nth_value(&self, key: ItemKey, nth: usize) -> Result<Option<(u64, u64)>, Problem> {
        let reach = self.item(Content::Reach, key)?;
        let Some(item) = reach.get(0) else { return Ok(None) };
        let marked = self.marked(&reach, &item)?;
        let Some(value) = self.value_of(key, marked.count(), nth)? else { return Ok(None) };
        let mut before = 0;
        for (number, bits) in marked.occupied() {
            let entries = ones(bits);
            if nth < before + entries {
                let mut columns = Vec::with_capacity(entries);
                for_each_bit(bits, |column| columns.push(column));
                let mut rows = RowWalk::new(&self.layout, &marked.block);
                let small = rows.get(number).small;
                return Ok(Some((small | rows.large_tiles()[columns[nth - before]], value)));
            }
            before += entries;
        }
        Ok(None)
    }

    /// The stored value of a board at its place in the format; `None` if its entry is not marked.
    pub fn value(&self, board: u64) -> Result<Option<u64>, Problem> {
        Ok(self.values_of(self.game.layer(board), self.game.lane(board), &[board])?[0])
    }

    /// Adds the stored values to a part of boards of a stored layer. Boards whose entries are not marked are removed.
    pub fn with_values(&self, part: Part) -> Result<Part, Problem> {
        let Some(&any) = part.boards.first() else { return Ok(part) };
        let values = self.values_of(self.game.layer(any), part.lane, &part.boards)?;
        let mut found = Part { lane: part.lane, ..Part::default() };
        found.boards.reserve_exact(part.boards.len());
        found.values.reserve_exact(part.boards.len());
        for (&board, value) in part.boards.iter().zip(values) {
            found.boards.extend(value.map(|_| board));
            found.values.extend(value);
        }
        Ok(found)
    }

    /// The stored values of boards of a lane in a layer, in the order of the boards. Each item is read only once.
    fn values_of(&self, layer: u32, lane: u64, boards: &[u64]) -> Result<Vec<Option<u64>>, Problem> {
        let mut values = vec![None; boards.len()];
        let Some(block) = self.layout.block(layer, lane) else { return Ok(values) };
        let place = |(i, &board): (usize, &u64)| self.layout.locate(&block, board).map(|place| (place, i));
        let mut places: Vec<(BoardPlace, usize)> = boards.par_iter().enumerate().filter_map(place).collect();
        places.par_sort_unstable();
        let part = |place: &BoardPlace| block.part_of(place.row) as u32;
        let of_part = |places: &[(BoardPlace, usize)]| {
            self.values_of_part(ItemKey { layer, lane, part: part(&places[0].0) }, places)
        };
        let parts = places.par_chunk_by(|(a, _), (b, _)| part(a) == part(b));
        let found: Vec<_> = parts.map(of_part).collect::<Result<_, Problem>>()?;
        found.into_iter().flatten().for_each(|(number, value)| values[number] = Some(value));
        Ok(values)
    }

    /// The stored values at ascending places of a part, each with the number of its place. Entries that are not marked
    /// are left out.
    fn values_of_part(
        &self,
        key: ItemKey,
        places: &[(BoardPlace, usize)],
    ) -> Result<Vec<(usize, u64)>, Problem> {
        let (reach, mut found) = (self.item(Content::Reach, key)?, Vec::new());
        let Some(item) = reach.get(0) else { return Ok(found) };
        let marked = self.marked(&reach, &item)?;
        let items = self.item(Content::Values, key)?;
        let stored = self.values(&items, 0, key, marked.count())?;
        let (mut places, mut before) = (places.iter().peekable(), 0);
        for (row, bits) in marked.occupied() {
            // The number of marked entries in the first `counted` bytes of the row.
            let (mut entries, mut counted) = (0, 0);
            _ = std::iter::from_fn(|| places.next_if(|(place, _)| place.row < row)).count();
            while let Some(&(place, number)) = places.next_if(|(place, _)| place.row == row) {
                let (byte, bit) = (place.column / 8, place.column % 8);
                entries += ones(&bits[counted..byte]);
                counted = byte;
                if bits[byte] >> bit & 1 == 1 {
                    let nth = before + entries + ones(&[bits[byte] & ((1 << bit) - 1)]);
                    let value = stored.chunks_exact(self.width()).nth(nth).map(little_endian);
                    found.extend(value.map(|value| (number, value)));
                }
            }
            if places.peek().is_none() {
                break;
            }
            before += entries + ones(&bits[counted..]);
        }
        Ok(found)
    }

    /// A board as text for messages.
    pub fn text(&self, board: u64) -> String {
        exact2048_game::Board(board).to_text(self.run.params().game().board())
    }

    /// A problem of a layer, reported for a shard that has the layer.
    pub fn problem(
        &self,
        kind: ShardKind,
        layer: u32,
        what: String,
        expected: String,
        found: String,
    ) -> Problem {
        match self.run.catalog().find_layer(kind, layer).first() {
            Some(shard) => {
                Problem::Content { file: shard.place.clone(), offset: None, what, expected, found }
            }
            None => journal::problem(self.run, what, expected, found),
        }
    }

    /// The problem of a missing state, which a spawn makes of an afterstate.
    pub fn missing_problem(&self, after: u64, board: u64) -> Problem {
        let (layer, text, after) = (self.game.layer(board), self.text(board), self.text(after));
        let expected = format!("{text}, a successor of the afterstate {after}");
        let what = format!("states of layer {layer}");
        self.problem(ShardKind::Reach, layer, what, expected, "none".to_owned())
    }

    /// The problem of a stored move that is not the first best move.
    pub fn best_move_problem(&self, layer: u32, image: u64, computed: u8, stored: u8) -> Problem {
        let what = format!("best move of {}", self.text(image));
        let [expected, found] = [computed, stored].map(|m| MOVES[usize::from(m) % 4].to_owned());
        self.problem(ShardKind::Values, layer, what, expected, found)
    }

    /// The problem of a stored value that differs from the value computed from the successors.
    pub fn value_problem(&self, layer: u32, board: u64, computed: u64, stored: u64) -> Problem {
        let what = format!("value of {}", self.text(board));
        let expected = self.game.values().text(computed);
        self.problem(ShardKind::Values, layer, what, expected, stored.to_string())
    }
}

/// A board with its first cell in the highest bits, so that boards compare in the order of their cells.
fn in_reading_order(board: u64) -> u64 {
    let pairs = board.swap_bytes();
    (pairs & 0x0f0f_0f0f_0f0f_0f0f) << 4 | pairs >> 4 & 0x0f0f_0f0f_0f0f_0f0f
}

/// Requires that each item of best moves belongs to a part with states.
fn require_states(best: &Items, reach: &Items) -> Result<(), Problem> {
    for item in (0..best.len()).filter_map(|i| best.get(i)) {
        if reach.find(item.key()).is_none() {
            return Err(best.problem(&item, "a part with states".to_owned(), "one without".to_owned()));
        }
    }
    Ok(())
}

fn little_endian(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// The number of set bits.
fn ones(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| byte.count_ones() as usize).sum()
}

/// Whether any bit from number `first` upward is set.
fn has_bit_from(bytes: &[u8], first: usize) -> bool {
    let (byte, bit) = (first / 8, first % 8);
    bytes.get(byte).is_some_and(|&byte| byte >> bit != 0)
        || bytes.iter().skip(byte + 1).any(|&byte| byte != 0)
}

/// Calls `visit` with the number of each set bit.
#[inline]
fn for_each_bit(bytes: &[u8], mut visit: impl FnMut(usize)) {
    for (i, chunk) in bytes.chunks(8).enumerate() {
        let mut word = little_endian(chunk);
        while word != 0 {
            visit(64 * i + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}
