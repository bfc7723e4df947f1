//! `exact2048 inspect`: the header and the structure of a shard file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use exact2048_solution::ItemKind;
use exact2048_storage::{Codec, FrameInfo, ShardIdentity, ShardReader};
use serde::Serialize;

use crate::place::StoreOptions;
use crate::{Failure, output, units};

/// Options of `inspect`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 inspect runs/3x3/shards/reach-000004-002044.shard
  exact2048 inspect --json runs/3x3/shards/reach-000004-002044.shard | jq .items

The command checks the checksums of the header and the index. It does not read the frames; verify does.")]
pub struct Args {
    /// Show this shard: a file, or s3://BUCKET/PREFIX/shards/NAME
    #[arg(value_name = "FILE|URL")]
    file: OsString,
    #[command(flatten)]
    store: StoreOptions,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shard<'a> {
    file: String,
    format_version: u32,
    identity: &'a ShardIdentity,
    header_checksum: String,
    file_bytes: u64,
    index_bytes: u64,
    items: Items,
    raw_bytes: u64,
    encoded_bytes: u64,
    ratio: f64,
    frames: Vec<Frame>,
}

#[derive(Serialize)]
struct Items {
    count: usize,
    /// Number of items with best moves.
    #[serde(skip_serializing_if = "is_none")]
    best_moves: usize,
    first_layer: Option<u32>,
    last_layer: Option<u32>,
    layers: usize,
    lanes: usize,
    least_bytes: u32,
    most_bytes: u32,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize)]
struct Frame {
    offset: u64,
    items: u32,
    raw_bytes: u32,
    encoded_bytes: u32,
    ratio: f64,
    codec: &'static str,
    checksum: String,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    let location = args.store.locate_to_read(&args.file)?;
    if location.as_folder().is_some_and(Path::is_dir) {
        return Err(Failure::usage(format!(
            "expected a shard file, found the directory {location}; give a file in the shards folder of a run, or use info \
             for the run",
        ))
        .into());
    }
    let reader = location.open_shard()?;
    let shard = describe(&reader);
    let mut out = io::BufWriter::new(io::stdout().lock());
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&shard)?)?;
    } else {
        write_for_people(&mut out, &shard)?;
    }
    out.flush()?;
    Ok(())
}

fn describe(reader: &ShardReader) -> Shard<'_> {
    let total = |of: fn(&FrameInfo) -> u32| reader.frames().iter().map(|frame| u64::from(of(frame))).sum();
    let (raw_bytes, encoded_bytes) = (total(|f| f.raw_bytes), total(|f| f.encoded_bytes));
    Shard {
        file: reader.place().to_string(),
        format_version: exact2048_storage::SHARD_VERSION,
        identity: reader.identity(),
        header_checksum: format!("{:016x}", reader.header_checksum()),
        file_bytes: reader.file_bytes(),
        index_bytes: reader.index_bytes(),
        items: items(reader),
        raw_bytes,
        encoded_bytes,
        ratio: ratio(raw_bytes, encoded_bytes),
        frames: reader.frames().iter().map(frame).collect(),
    }
}

fn items(reader: &ShardReader) -> Items {
    let items = reader.items();
    let distinct = |values: &mut dyn Iterator<Item = u64>| values.collect::<BTreeSet<u64>>().len();
    let lengths = || items.iter().map(|entry| entry.length);
    let holds = |key| ItemKind::of(reader.identity().kind, key);
    Items {
        count: items.len(),
        best_moves: items.iter().filter(|entry| holds(entry.key) == ItemKind::BestMoves).count(),
        first_layer: items.first().map(|entry| entry.key.layer),
        last_layer: items.last().map(|entry| entry.key.layer),
        layers: distinct(&mut items.iter().map(|entry| entry.key.layer.into())),
        lanes: distinct(&mut items.iter().map(|entry| entry.key.lane)),
        least_bytes: lengths().min().unwrap_or(0),
        most_bytes: lengths().max().unwrap_or(0),
    }
}

fn frame(info: &FrameInfo) -> Frame {
    Frame {
        offset: info.file_offset,
        items: info.items,
        raw_bytes: info.raw_bytes,
        encoded_bytes: info.encoded_bytes,
        ratio: ratio(info.raw_bytes.into(), info.encoded_bytes.into()),
        codec: match info.codec {
            Codec::Raw => "raw",
            Codec::Zstd => "zstd",
            Codec::Planes => "planes",
        },
        checksum: format!("{:016x}", info.checksum),
    }
}

/// Compression ratio.
fn ratio(raw: u64, encoded: u64) -> f64 {
    raw as f64 / encoded.max(1) as f64
}

fn write_for_people(out: &mut impl Write, shard: &Shard<'_>) -> io::Result<()> {
    let Shard { identity, items, .. } = shard;
    let bytes = units::size;
    output::write_field(out, "file", &shard.file)?;
    output::write_field(out, "kind", identity.kind)?;
    output::write_field(out, "run", identity.run)?;
    output::write_field(out, "board", format!("{}x{}", identity.rows, identity.cols))?;
    output::write_field(out, "layers", units::layers(&[[identity.first_layer, identity.last_layer]]))?;
    output::write_field(out, "rule hash", format!("{:016x}", identity.rule_hash))?;
    output::write_field(out, "format", format!("version {}", shard.format_version))?;
    output::write_field(out, "header", format!("checksum {}", shard.header_checksum))?;
    output::write_field(
        out,
        "size",
        format!("{}, of which the index takes {}", bytes(shard.file_bytes), bytes(shard.index_bytes)),
    )?;
    output::write_field(
        out,
        "items",
        format!(
            "{} of {} and {}, {} to {} each",
            units::count(items.count),
            units::several(items.layers, "layer"),
            units::several(items.lanes, "lane"),
            bytes(items.least_bytes.into()),
            bytes(items.most_bytes.into()),
        ),
    )?;
    if items.best_moves > 0 {
        output::write_field(out, "best moves", format!("{} of the items", units::count(items.best_moves)))?;
    }
    output::write_field(
        out,
        "frames",
        format!(
            "{}, {} compressed to {}: {:.2} times smaller",
            units::count(shard.frames.len()),
            bytes(shard.raw_bytes),
            bytes(shard.encoded_bytes),
            shard.ratio,
        ),
    )?;
    let rows = shard.frames.iter().enumerate().map(|(number, frame)| {
        vec![
            number.to_string(),
            units::count(frame.offset),
            units::count(frame.items),
            units::count(frame.raw_bytes),
            units::count(frame.encoded_bytes),
            format!("{:.2}", frame.ratio),
            frame.codec.to_owned(),
            frame.checksum.clone(),
        ]
    });
    let header = ["frame", "offset", "items", "raw bytes", "stored bytes", "ratio", "codec", "checksum"];
    writeln!(out)?;
    output::write_fitting(out, &header, &[], &rows.collect::<Vec<_>>(), &[1, 6, 7, 5])?;
    Ok(())
}
