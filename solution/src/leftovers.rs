//! Shards that no journal record names: leftovers of a crash, or a sign of lost records.

use std::collections::{HashMap, HashSet};

use exact2048_storage::{ShardKind, ShardName};

/// Most published but uncommitted ranges of a process outside a cluster. The process commits each range before it
/// begins the next.
const MOST_ALONE: usize = 1;

/// Most published but uncommitted ranges of one epoch of a cluster. Members continue for a while if the coordinator
/// cannot write.
const MOST_OF_A_CLUSTER: usize = 16;

/// Whether these shards, which no record names, are more than crashes leave. `journal_length` is the number of journal
/// records, including opening records.
///
/// Each opening of a run removes the leftovers of earlier openings. So only the last attempt of each process can
/// remain. The name of a shard may contain the number of an opening record, which then existed when the shard was
/// written.
pub fn shows_loss(unnamed: &[&str], journal_length: u64) -> bool {
    let mut attempts: HashMap<_, HashSet<_>> = HashMap::new();
    for name in unnamed.iter().filter_map(|file| ShardName::parse(file)) {
        if name.writer.is_some_and(|writer| writer >= journal_length) {
            return true;
        }
        // A checkpoint belongs to the range of a shard of values.
        if name.kind == ShardKind::Checkpoint {
            continue;
        }
        let range = (name.kind, name.first_layer, name.last_layer);
        attempts.entry((name.writer, name.epoch)).or_default().insert(range);
    }
    attempts.iter().any(|((_, epoch), ranges)| {
        ranges.len() > if epoch.is_some() { MOST_OF_A_CLUSTER } else { MOST_ALONE }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_a_crash_are_no_loss() {
        assert!(!shows_loss(&[], 0));
        assert!(!shows_loss(&["reach-000004-000120.shard"], 0));
        assert!(!shows_loss(&["notes.txt", "values-000004-000120.shard"], 5));
        // One shard of each of three writers of a store, which have opening records.
        let three = [
            "reach-000004-000120-000000-0.shard",
            "reach-000004-000120-000001-0.shard",
            "reach-000004-000130-000002-0.shard",
        ];
        assert!(!shows_loss(&three, 3));
        // Ranges of two epochs of a cluster, by two members.
        let member = |range: u32, epoch: u32, member: u32| {
            format!("values-{range:06}-{:06}-000002-{epoch:x}.{member:x}.shard", range + 6)
        };
        let all: Vec<String> = (0..16)
            .flat_map(|n| [(1, 7), (1, 8), (2, 7), (2, 8)].map(|(epoch, m)| member(8 * n, epoch, m)))
            .collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(!shows_loss(&all, 3));
        let one_more = member(8 * 16, 2, 7);
        assert!(shows_loss(&[&all[..], &[one_more.as_str()]].concat(), 3));
    }

    #[test]
    fn shards_of_several_records_are_a_loss() {
        assert!(shows_loss(&["reach-000004-000120.shard", "values-000004-000120.shard"], 0));
        assert!(shows_loss(&["values-000004-000060.shard", "values-000064-000120.shard"], 9));
        // The journal lacks the opening record that this shard names.
        assert!(shows_loss(&["reach-000004-000120-000003-0.shard"], 3));
        assert!(!shows_loss(&["reach-000004-000120-000003-0.shard"], 4));
    }
}
