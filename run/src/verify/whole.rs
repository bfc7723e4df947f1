//! Checks every byte of every shard against its checksums and the journal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use exact2048_game::Layer;
use exact2048_solution::{Catalog, CatalogShard};
use rayon::prelude::*;

use super::items::{Content, item_text};
use super::journal;
use super::outcome::{CheckOutcome, CheckProgress, Checked, MOST_PROBLEMS, Problem};
use super::span::Span;
use super::verifier::Verifier;

/// Reads every frame of every committed shard that has a layer of a span. Checks each commit of the journal separately.
pub(super) fn check_shards(verifier: &Verifier<'_>, span: Span) -> CheckOutcome {
    let mut outcome =
        CheckOutcome { problems: journal::check(verifier.run(), verifier.game()), ..CheckOutcome::default() };
    let catalog = verifier.run().catalog();
    let shards = catalog.shards();
    let bytes = AtomicU64::new(0);
    for shard in shards.iter().filter(|shard| span.touches(&shard.commit)) {
        if verifier.is_stopped() {
            outcome.stopped = true;
            break;
        }
        match verifier.in_pool(|| check_shard(verifier, catalog, shard, &bytes)) {
            Ok(()) => add(&mut outcome.checked, shard),
            Err(problem) => outcome.problems.push(problem),
        }
        // If one file cannot be read now, the next files are probably unreadable too.
        let is_unread = outcome.problems.last().is_some_and(Problem::is_unread);
        if is_unread || outcome.problems.len() >= MOST_PROBLEMS {
            break;
        }
    }
    outcome
}

/// Checks one shard with all threads together, because a run may have few and large shards.
fn check_shard(
    verifier: &Verifier<'_>,
    catalog: &Catalog,
    shard: &Arc<CatalogShard>,
    bytes: &AtomicU64,
) -> Result<(), Problem> {
    let reader = shard.original()?;
    let (identity, record) = (shard.identity(), &shard.record);
    if (record.kind, record.first_layer, record.last_layer)
        != (identity.kind, identity.first_layer, identity.last_layer)
    {
        let expected =
            format!("{} of layers {} to {}", identity.kind, identity.first_layer, identity.last_layer);
        let found = format!("{} of layers {} to {}", record.kind, record.first_layer, record.last_layer);
        return Err(content(shard, "kind and layers in the journal", expected, found));
    }
    compare(shard, "bytes", shard.record.bytes, reader.file_bytes())?;
    compare(shard, "frames", shard.record.frames, reader.frames().len() as u64)?;
    compare(shard, "items", shard.record.items, reader.items().len() as u64)?;
    // A query would never find a misplaced item, and no check would read it.
    for entry in reader.items() {
        let (key, kind) = (entry.key, shard.record.kind);
        let kept = match Content::of(kind, key) {
            Content::Reach => true,
            Content::Values => verifier.game().keeps(key.layer),
            Content::Checkpoint => verifier.game().params().contents().is_in_checkpoint(Layer(key.layer)),
            Content::BestMoves => verifier.game().params().contents().stores_best_moves(),
        };
        let holder = catalog.find(kind, key);
        let is_misplaced = !key.layer.is_multiple_of(2)
            || !kept
            || key.layer < verifier.game().first_layer()
            || key.layer > verifier.game().last_layer();
        if is_misplaced || holder.is_none_or(|holder| holder.serial != shard.serial) {
            let expected = format!("only items that queries find in this {kind} shard");
            return Err(content(shard, "items", expected, item_text(key.layer, key.lane, key.part)));
        }
    }
    reader.frames().par_iter().enumerate().try_for_each(|(number, frame)| {
        reader.read_frame(number as u32)?;
        let read = u64::from(frame.encoded_bytes);
        let read = bytes.fetch_add(read, Ordering::Relaxed) + read;
        verifier.report(CheckProgress::Bytes(read));
        Ok(())
    })
}

fn add(checked: &mut Checked, shard: &CatalogShard) {
    checked.shards += 1;
    checked.bytes += shard.record.bytes;
    checked.frames += shard.record.frames;
}

fn compare(shard: &CatalogShard, of: &str, journal: u64, found: u64) -> Result<(), Problem> {
    if journal == found {
        return Ok(());
    }
    Err(content(shard, &format!("number of {of}"), format!("{journal} as in the journal"), found.to_string()))
}

fn content(shard: &CatalogShard, what: &str, expected: String, found: String) -> Problem {
    Problem::Content { file: shard.place.clone(), offset: None, what: what.to_owned(), expected, found }
}
