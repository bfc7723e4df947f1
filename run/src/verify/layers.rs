//! Checks all states, layer by layer, downward.

use std::collections::VecDeque;

use exact2048_game::Layer;
use exact2048_solution::{Commit, Phase};
use exact2048_storage::ShardKind;
use rayon::prelude::*;

use super::fingerprint::Fingerprint;
use super::journal;
use super::layer_reader::{LayerReader, Part};
use super::moves::{States, Successors, successors};
use super::outcome::{CheckOutcome, CheckProgress, MOST_PROBLEMS};
use super::span::Span;
use super::verifier::Verifier;

/// Checks every committed layer of a span, downward, until a layer has a problem.
pub(super) fn check_states(verifier: &Verifier<'_>, span: Span) -> CheckOutcome {
    let commits = verifier.run().catalog().commits();
    let last_of_run = verifier.all_layers().last;
    let mut descent = Descent {
        verifier,
        reader: LayerReader::new(verifier.run(), verifier.game()),
        starts: verifier.game().starts(),
        fingerprint: Fingerprint::of_format(verifier.run().format_version(), verifier.game().geometry()),
        span,
        above: VecDeque::from([None, None]),
        shares: vec![Some(0); commits.len()],
        commits,
        outcome: CheckOutcome::default(),
    };
    if span.last == last_of_run && !verifier.run().params().contents().enumerates_only() {
        // The layers above the last layer are known to have no states.
        descent.above =
            [(); 2].map(|()| Some(States { valued: true, is_exact: true, ..States::default() })).into();
    }
    descent.go();
    let mut outcome = descent.outcome;
    if span == verifier.all_layers()
        && verifier.run().is_solved()
        && outcome.problems.is_empty()
        && !outcome.stopped
    {
        let add = |sum: u128, share: &Option<u128>| Some(sum.wrapping_add((*share)?));
        outcome.checked.fingerprint = descent.shares.iter().try_fold(0, add);
    }
    outcome
}

/// Estimates the largest memory of [`check_states`] in bytes, from the counts in the journal.
pub(super) fn memory_bytes(verifier: &Verifier<'_>, span: Span) -> u64 {
    let commits = verifier.run().catalog().commits();
    let mut counts: Vec<_> = commits.iter().flat_map(|commit| &commit.layers).collect();
    counts.sort_by_key(|counts| counts.layer);
    let above = span.above(verifier.game()).next();
    let last = above.unwrap_or(span.last);
    let touched = |layer: Layer| layer.0 + 4 >= span.first.0 && layer <= last;
    let layers = counts.windows(3).filter(|three| touched(three[0].layer));
    let bytes = |three: &[&exact2048_solution::LayerCounts]| {
        let held = three.iter().map(|counts| counts.states).sum::<u64>() * STATE_BYTES;
        held + three[0].states * WORK_BYTES
    };
    FIXED_BYTES + layers.map(bytes).max().unwrap_or(0)
}

/// Bytes of a state: its board, its value, and whether a state leads to it.
const STATE_BYTES: u64 = 17;

/// Additional bytes of a state while its layer is checked: its share of stored items, its moves, and in large lanes the
/// tables for its spawns. Measured: 144 bytes in total on 4x3 until layer 120, without values.
const WORK_BYTES: u64 = 130;

/// Bytes that do not depend on the run: tables of rows and columns, hash tables, buffers of threads.
const FIXED_BYTES: u64 = 64 << 20;

/// The data of a check that proceeds downward.
struct Descent<'a> {
    verifier: &'a Verifier<'a>,
    reader: LayerReader<'a>,
    starts: Vec<u64>,
    fingerprint: Fingerprint,
    span: Span,
    /// The layers 2 and 4 above the next layer; `None` if their states are unknown.
    above: VecDeque<Option<States>>,
    commits: Vec<Commit>,
    /// For each commit, the sum of its states' hashes so far; `None` once one of its values is unknown.
    shares: Vec<Option<u128>>,
    outcome: CheckOutcome,
}

impl Descent<'_> {
    fn go(&mut self) {
        let span = self.span;
        for layer in span.above(self.verifier.game()).chain(span.layers()).chain(span.below()) {
            if self.verifier.is_stopped() {
                self.outcome.stopped = true;
                return;
            }
            let known = self.step(layer);
            if !self.outcome.problems.is_empty() {
                return;
            }
            self.above.push_front(known);
            self.check_led_to(Layer(layer.0 + 4), 2);
            self.above.truncate(2);
            self.outcome.done_down_to = Some(Layer(layer.0 + 4));
            self.verifier.report(CheckProgress::Layer(layer, self.outcome.checked.states));
        }
        // No layer lies below layer 4, so every layer that leads to the layers 4 and 6 is checked now.
        self.check_led_to(Layer(4), 0);
        self.check_led_to(Layer(6), 1);
        self.outcome.done_down_to = Some(span.first);
    }

    fn covers(&self, kind: ShardKind, layer: Layer) -> bool {
        self.verifier.run().catalog().covers(kind, layer.0)
    }

    /// Checks one layer. Returns its states, or `None` if it is not committed.
    fn step(&mut self, layer: Layer) -> Option<States> {
        if layer < self.verifier.all_layers().first {
            // Nothing lies below the position from which the run begins.
            return Some(States { valued: true, ..States::default() });
        }
        if !self.covers(ShardKind::Reach, layer) {
            self.add_to_shares(layer, None);
            return None;
        }
        let committed = self.covers(ShardKind::Values, layer);
        let is_kept = self.verifier.game().keeps(layer.0);
        let with_best_moves = committed
            && self.verifier.run().params().contents().stores_best_moves()
            && layer >= self.span.first;
        let parts =
            self.reader.layer(layer.0, committed && is_kept, with_best_moves && layer <= self.span.last);
        let mut parts = parts.map_err(|problem| self.outcome.problems.push(problem)).ok()?;
        let in_span = self.span.contains(layer);
        if in_span {
            self.check_starts(layer, &parts);
        }
        let above = [0, 1].map(|at| self.above.get(at).and_then(Option::as_ref));
        let back_up = committed && above.iter().all(|above| above.as_ref().is_some_and(|above| above.valued));
        let is_above_exact = above.iter().all(|above| above.as_ref().is_some_and(|above| above.is_exact));
        let back_up = back_up && layer >= self.span.first;
        let found = if back_up || layer <= self.span.last {
            successors(self.verifier.game(), &parts, above, back_up)
        } else {
            Successors::default()
        };
        if in_span {
            self.check_counts(layer, &parts, &found);
        }
        self.report_missing(layer, &found);
        let valued = parts.is_empty() || committed && (back_up || is_kept);
        // Rounded values of a layer follow bit for bit only if the layers above were computed too, and so on.
        let is_exact =
            !self.verifier.game().values().is_rounded() || parts.is_empty() || back_up && is_above_exact;
        if back_up {
            self.take_values(layer, &mut parts, found.values, is_exact);
        } else if in_span && committed {
            let count = |of: fn(&Part) -> usize| parts.iter().map(|part| of(part) as u64).sum::<u64>();
            self.outcome.checked.values_left_out += count(|part| part.values.len());
            self.outcome.checked.best_moves_left_out += count(|part| part.best.len());
        }
        if in_span {
            let checked = &mut self.outcome.checked;
            checked.layers += 1;
            checked.states += parts.iter().map(|part| part.boards.len() as u64).sum::<u64>();
            checked.afterstates += found.afterstates;
            let is_sure = back_up && is_exact && self.outcome.problems.is_empty();
            self.add_to_shares(layer, is_sure.then_some(&parts));
        }
        Some(States { is_exact, ..States::new(parts, valued) })
    }

    /// Requires that every start of the layer is a state.
    fn check_starts(&mut self, layer: Layer, parts: &[Part]) {
        let is_state = |start: &u64| parts.iter().any(|part| part.boards.contains(start));
        let of_layer = self.starts.iter().filter(|&&start| self.verifier.game().layer(start) == layer.0);
        let missing: Vec<u64> = of_layer.filter(|start| !is_state(start)).copied().collect();
        for start in missing {
            let expected = format!("the start {}", self.reader.text(start));
            self.states_problem(layer, expected, "none".to_owned());
        }
    }

    fn states_problem(&mut self, layer: Layer, expected: String, found: String) {
        let what = format!("states of layer {layer}");
        let problem = self.reader.problem(ShardKind::Reach, layer.0, what, expected, found);
        self.outcome.problems.push(problem);
    }

    /// Requires that the numbers of states and afterstates equal those in the journal.
    fn check_counts(&mut self, layer: Layer, parts: &[Part], found: &Successors) {
        let states: u64 = parts.iter().map(|part| part.boards.len() as u64).sum();
        let commits = self.commits.iter().filter(|commit| commit.phase == Phase::Enumerate);
        let counts = commits.flat_map(|commit| &commit.layers).find(|counts| counts.layer == layer);
        let pairs = match counts {
            Some(counts) => vec![
                ("states", counts.states.to_string(), states),
                ("afterstates", counts.afterstates.to_string(), found.afterstates),
            ],
            None => vec![("states and afterstates", "none".to_owned(), states)],
        };
        for (of, journal, found) in
            pairs.into_iter().filter(|(_, journal, found)| *journal != found.to_string())
        {
            let what = format!("number of {of} of layer {layer}");
            let expected = format!("{found} as in the shards");
            let problem = journal::problem(self.verifier.run(), what, expected, journal);
            self.outcome.problems.push(problem);
        }
    }

    /// Reports afterstates with a spawn that leads to no state.
    fn report_missing(&mut self, layer: Layer, found: &Successors) {
        let mut missing = found.missing.clone();
        missing.sort_unstable();
        for (after, board) in missing.into_iter().take(MOST_PROBLEMS) {
            let (text, after) = (self.reader.text(board), self.reader.text(after));
            let expected = format!("{text}, a successor of the afterstate {after} of layer {layer}");
            self.states_problem(Layer(self.verifier.game().layer(board)), expected, "none".to_owned());
        }
    }

    /// Compares the computed values and best moves with the stored ones. A layer without stored values gets the
    /// computed values, and so does a layer of rounded values if the computed ones are exact.
    ///
    /// Values that are computed from rounded values are compared by their bounds, and best moves not at all.
    fn take_values(
        &mut self,
        layer: Layer,
        parts: &mut [Part],
        computed: Vec<(Vec<u64>, Vec<u8>)>,
        is_exact: bool,
    ) {
        let (is_kept, form) = (self.verifier.game().keeps(layer.0), self.verifier.game().values());
        let layers = (self.verifier.game().next_cut(layer.0 + 2) - layer.0) / 2 + 1;
        let is_right = |stored: u64, computed: u64| match is_exact {
            true => stored == form.rounded(computed),
            false => form.is_near(stored, computed, layers),
        };
        for (part, (computed, best)) in parts.iter_mut().zip(computed) {
            let differs = |&i: &usize| is_exact && part.best[i] != best[i];
            for i in (0..part.best.len()).filter(differs).take(MOST_PROBLEMS) {
                let problem = self.reader.best_move_problem(layer.0, part.images[i], best[i], part.best[i]);
                self.outcome.problems.push(problem);
            }
            if is_exact {
                self.outcome.checked.best_moves += part.best.len() as u64;
            }
            if !is_kept {
                part.values = computed;
                continue;
            }
            let differs = |&i: &usize| !is_right(part.values[i], computed[i]);
            for i in (0..computed.len()).filter(differs).take(MOST_PROBLEMS) {
                let (board, stored) = (part.boards[i], part.values[i]);
                let computed = if is_exact { form.rounded(computed[i]) } else { computed[i] };
                self.outcome.problems.push(self.reader.value_problem(layer.0, board, computed, stored));
            }
            if self.span.contains(layer) {
                self.outcome.checked.values += computed.len() as u64;
                if !is_exact {
                    self.outcome.checked.values_by_bound += computed.len() as u64;
                }
            }
            if form.is_rounded() && is_exact {
                part.values = computed;
            }
        }
    }

    /// Adds a layer to the fingerprints of the commits that cover it, and compares the fingerprints that it completes.
    fn add_to_shares(&mut self, layer: Layer, parts: Option<&[Part]>) {
        let hashes = parts.map(|parts| self.hash_sum(parts));
        for (commit, share) in self.commits.iter().zip(&mut self.shares) {
            let covers = commit.phase == Phase::BackUp && (commit.first..=commit.last).contains(&layer);
            if !covers {
                continue;
            }
            *share = share.zip(hashes).map(|(share, hashes)| share.wrapping_add(hashes));
            let (true, Some(share)) = (commit.first == layer, *share) else { continue };
            self.outcome.checked.fingerprints += 1;
            if commit.fingerprint != Some(share) {
                let what = format!("fingerprint of layers {} to {}", commit.first, commit.last);
                let expected = format!("{share:032x} from the states and their values");
                let found = commit.fingerprint.map_or("none".to_owned(), |found| format!("{found:032x}"));
                self.outcome.problems.push(journal::problem(self.verifier.run(), what, expected, found));
            }
        }
    }

    /// The sum of the hashes of a layer's states with their values.
    fn hash_sum(&self, parts: &[Part]) -> u128 {
        let (geometry, fingerprint) = (self.verifier.game().geometry(), &self.fingerprint);
        let of_part = |part: &Part| {
            let states = part.boards.iter().zip(&part.values);
            let hashes = states.map(|(&board, &value)| fingerprint.hash(geometry, board, value));
            hashes.fold(0, u128::wrapping_add)
        };
        parts.par_iter().map(of_part).reduce(|| 0, u128::wrapping_add)
    }

    /// Requires that every state of a layer is a start or a successor.
    ///
    /// `at` is the index of the layer in `above`. Nothing is reported for a layer outside the span, or if a layer that
    /// can lead to it is not committed.
    fn check_led_to(&mut self, layer: Layer, at: usize) {
        let Some(Some(states)) = self.above.get(at) else { return };
        let known = self.above.iter().take(at).all(Option::is_some) && self.span.contains(layer);
        if !known || !self.outcome.problems.is_empty() {
            return;
        }
        let not_start = |board: &u64| self.starts.binary_search(board).is_err();
        let alone: Vec<u64> = states.not_led_to().filter(not_start).take(MOST_PROBLEMS).collect();
        for board in alone {
            let found = format!("{}, which is neither", self.reader.text(board));
            self.states_problem(layer, "only starts and successors of lower states".to_owned(), found);
        }
    }
}
