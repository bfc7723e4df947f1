//! Forged runs with intact files and false contents. The tests decode files, change them, and seal them again. The format
//! is in `docs/dev/format.md`.

use std::fs;
use std::path::{Path, PathBuf};

use exact2048_storage::{ItemKey, ShardIdentity, ShardKind, ShardReader};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::{files, text};

/// The decoded files of a run.
#[derive(Clone)]
pub struct Forge {
    /// The journal: file and body of each record.
    pub records: Vec<(PathBuf, Value)>,
    pub shards: Vec<Forged>,
}

/// A decoded shard.
#[derive(Clone)]
pub struct Forged {
    /// Index of the record that names the shard, and index of the shard within the record.
    place: (usize, usize),
    path: PathBuf,
    identity: ShardIdentity,
    pub items: Vec<(ItemKey, Vec<u8>)>,
}

impl Forge {
    /// Reads a run.
    pub fn open(run: &Path) -> Self {
        let records = files(&run.join("journal")).into_iter().map(|path| {
            let sealed: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            (path, sealed["body"].clone())
        });
        let records: Vec<_> = records.collect();
        let mut shards = Vec::new();
        for (record, (_, body)) in records.iter().enumerate() {
            let named = body["record"]["shards"].as_array().unwrap();
            for (index, named) in named.iter().enumerate() {
                let path = run.join("shards").join(text(&named["file"]));
                let reader = ShardReader::open_any(&path).unwrap();
                let read =
                    |entry: &exact2048_storage::Entry| (entry.key, reader.read(entry.key).unwrap().unwrap());
                let items = reader.items().iter().map(read).collect();
                shards.push(Forged { place: (record, index), path, identity: *reader.identity(), items });
            }
        }
        Self { records, shards }
    }

    /// The shards of a kind.
    pub fn of_kind(&self, kind: ShardKind) -> impl Iterator<Item = usize> + '_ {
        (0..self.shards.len()).filter(move |&i| self.shards[i].identity.kind == kind)
    }

    /// The place of the item with a key: shard and index.
    pub fn find(&self, kind: ShardKind, key: ItemKey) -> Option<(usize, usize)> {
        self.of_kind(kind).find_map(|shard| {
            let item = self.shards[shard].items.iter().position(|(other, _)| *other == key)?;
            Some((shard, item))
        })
    }

    /// Splits the only range of values below each of `cuts`, which are in descending order. The resulting fingerprints are
    /// those of empty ranges.
    pub fn split_values(&mut self, cuts: &[u32]) {
        let shard = self.of_kind(ShardKind::Values).next().unwrap();
        let whole = self.shards.remove(shard);
        let record = whole.place.0;
        let (first_path, first_body) = self.records.remove(record);
        assert_eq!(record, self.records.len());
        let mut last_layer = whole.identity.last_layer;
        for (i, &first_layer) in cuts.iter().chain([&whole.identity.first_layer]).enumerate() {
            let identity = ShardIdentity { first_layer, last_layer, ..whole.identity };
            let path = whole.path.with_file_name(identity.file_name());
            let mut body = first_body.clone();
            body["sequence"] = json!(record + i);
            body["record"]["commit"]["first"] = json!(first_layer);
            body["record"]["commit"]["last"] = json!(last_layer);
            body["record"]["commit"]["fingerprint"] = json!("0".repeat(32));
            let shard = &mut body["record"]["shards"][0];
            shard["first_layer"] = json!(first_layer);
            shard["last_layer"] = json!(last_layer);
            shard["file"] = json!(identity.file_name());
            let in_range = |(key, _): &&(ItemKey, Vec<u8>)| (first_layer..=last_layer).contains(&key.layer);
            let items = whole.items.iter().filter(in_range).cloned().collect();
            self.shards.push(Forged { place: (record + i, 0), path, identity, items });
            self.records.push((first_path.with_file_name(format!("{:06}.json", record + i)), body));
            last_layer = first_layer - 2;
        }
    }

    /// Changes the fingerprint of the range of values that begins with a layer.
    pub fn set_fingerprint(&mut self, first: u32, fingerprint: &str) {
        let of_range = |(_, body): &(PathBuf, Value)| {
            let commit = &body["record"]["commit"];
            commit["phase"] == "back_up" && commit["first"] == first
        };
        let record = self.records.iter().position(of_range).unwrap();
        self.records[record].1["record"]["commit"]["fingerprint"] = json!(fingerprint);
        self.write_record(record);
    }

    /// Writes all shards and records.
    pub fn write(&mut self) {
        for shard in 0..self.shards.len() {
            self.write_shard(shard);
        }
    }

    /// Writes one shard, and the record that names it.
    pub fn write_shard(&mut self, shard: usize) {
        let Forged { place: (record, index), path, identity, items } = &self.shards[shard];
        let bytes = shard_of(identity, items);
        fs::write(path, &bytes).unwrap();
        let named = &mut self.records[*record].1["record"]["shards"][*index];
        named["bytes"] = json!(bytes.len());
        named["frames"] = json!(1);
        named["items"] = json!(items.len());
        let checksum = u64::from_le_bytes(bytes[96..104].try_into().unwrap());
        named["header_checksum"] = json!(format!("{checksum:016x}"));
        let record = *record;
        self.write_record(record);
    }

    /// Writes a record of the journal.
    pub fn write_record(&self, record: usize) {
        let (path, body) = &self.records[record];
        let body = body.to_string();
        let sealed = format!("{{\"xxh3\":\"{:016x}\",\"body\":{body}}}\n", xxh3_64(body.as_bytes()));
        fs::write(path, sealed).unwrap();
    }
}

/// An uncompressed block.
fn block(items: u32, content: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for field in [content.len() as u32, content.len() as u32, items, 0] {
        block.extend(field.to_le_bytes());
    }
    let checksum = xxh3_64(&[&block, content].concat());
    block.extend(checksum.to_le_bytes());
    block.extend(content);
    block
}

/// A shard of one frame.
fn shard_of(identity: &ShardIdentity, items: &[(ItemKey, Vec<u8>)]) -> Vec<u8> {
    let content: Vec<u8> = items.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let frame = block(items.len() as u32, &content);
    let mut index = 104u64.to_le_bytes().to_vec();
    index.extend(&frame[..24]);
    items.iter().for_each(|(key, _)| index.extend(key.layer.to_le_bytes()));
    items.iter().for_each(|(key, _)| index.extend(key.lane.to_le_bytes()));
    items.iter().for_each(|(key, _)| index.extend(key.part.to_le_bytes()));
    items.iter().for_each(|(_, bytes)| index.extend((bytes.len() as u32).to_le_bytes()));
    let index = block(items.len() as u32, &index);
    let mut file = b"EX2048SH".to_vec();
    file.extend(1u32.to_le_bytes());
    file.extend(104u32.to_le_bytes());
    file.extend(identity.run.0);
    file.extend([if identity.kind == ShardKind::Reach { 1 } else { 2 }, identity.rows, identity.cols, 0]);
    file.extend(identity.first_layer.to_le_bytes());
    file.extend(identity.last_layer.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    file.extend(identity.rule_hash.to_le_bytes());
    file.extend((items.len() as u64).to_le_bytes());
    file.extend((104 + frame.len() as u64).to_le_bytes());
    file.extend((index.len() as u64).to_le_bytes());
    file.extend(&index[16..24]);
    file.extend((104 + (frame.len() + index.len()) as u64).to_le_bytes());
    file.extend(xxh3_64(&file).to_le_bytes());
    file.extend(frame);
    file.extend(index);
    file
}
