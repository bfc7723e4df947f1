//! Interesting positions, for example those in which one move is much better than all others.

use std::collections::HashSet;

use axum::extract::State;
use exact2048_game::board::{BoardSize, MOST_CELLS};
use exact2048_game::{Board, KeptLayers, Layer};
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_net::status;
use exact2048_solution::{Advice, Evaluation, Oracle, QueryError, QuestionLimits, StateAnswer, StateView};
use serde::{Deserialize, Serialize};
use tonic::Status;

use crate::sample::sample_or_play;
use crate::state::Explorer;
use crate::url_query::{UrlQuery, count_of};

/// Default and largest number of sampled states.
const SAMPLE: u32 = 2_000;
const MOST_SAMPLED: u32 = 20_000;

/// Largest number of layers of the sampled states.
const LAYERS: u32 = 8;

/// Default and largest number of positions in an answer.
const LIMIT: u32 = 20;
const MOST: u32 = 200;

/// Criterion of an interesting position.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PositionKind {
    /// The second-best move is much worse.
    #[default]
    Gap,
    /// The second-best move is hardly worse.
    Close,
    /// Of three or four moves, all but one lose a large share of the value.
    Only,
    /// Any position with several legal moves and one best move. If values are unknown, several moves may be best.
    Any,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PositionsQuery {
    run: Option<String>,
    #[serde(default)]
    kind: PositionKind,
    first: Option<u32>,
    last: Option<u32>,
    sample: Option<u32>,
    limit: Option<u32>,
    #[serde(default)]
    seed: u64,
}

#[derive(Serialize)]
pub struct PositionList {
    /// Layers of the sampled states.
    layers: Vec<u32>,
    /// Number of sampled states.
    sampled: usize,
    positions: Vec<PositionView>,
}

#[derive(Serialize)]
struct PositionView {
    #[serde(flatten)]
    state: StateView,
    /// Difference between the best and the second-best move; `None` if the run has only best moves.
    gap: Option<f64>,
    /// The difference as a share of the larger value.
    share: Option<f64>,
}

/// A position before it is formatted.
#[derive(Clone)]
struct Position {
    answer: StateAnswer,
    /// Difference between the best and the second-best move; 0 if the run has only best moves.
    gap: f64,
    /// The difference as a share of the larger value.
    share: f64,
}

/// `GET /api/v1/positions`.
pub async fn positions(
    State(explorer): State<Explorer>,
    UrlQuery(asked): UrlQuery<PositionsQuery>,
) -> Result<JsonReply<PositionList>, RequestFailure> {
    let run = explorer.run(asked.run.as_deref())?;
    if run.params.contents().stores_best_moves() && asked.kind != PositionKind::Any {
        let what = "the run stores best moves and few values, so the losses of moves are unknown and cannot select \
                    positions; kind=any returns positions with their best moves";
        return Err(Status::failed_precondition(what).into());
    }
    let first_of_run = run.params.first_layer();
    let first = asked.first.unwrap_or(0).max(if asked.first.is_some() { 0 } else { first_of_run.0 });
    let last_of_run = run.layers.last().map_or(0, |counts| counts.layer.0);
    let last = asked.last.unwrap_or(last_of_run).min(last_of_run);
    if first > last {
        let what = format!(
            "expected a first layer up to {last}, found {first}; the last layer of the run is {last_of_run}"
        );
        return Err(status::invalid_argument("first", what).into());
    }
    let range =
        Layer::at_least(first.max(first_of_run.0)).zip(Layer::at_most(last)).filter(|(from, to)| from <= to);
    let Some((from, to)) = range else {
        let what =
            format!("found no layer from {first} to {last}; layers are even numbers from {first_of_run}");
        return Err(status::invalid_argument("first", what).into());
    };
    let layers = layers_between(from.0, to.0, last_of_run, run.params.contents().kept());
    let most = count_of("sample", asked.sample, SAMPLE, MOST_SAMPLED)?;
    let limit = count_of("limit", asked.limit, LIMIT, MOST)?;
    let (kind, seed, size) = (asked.kind, asked.seed, run.params.game().board());
    let is_less_better = run.params.game().objective().is_less_better();
    let question = move |oracle: &Oracle, limits: &QuestionLimits<'_>| {
        let (mut found, mut sampled, mut layers_of, mut removed) = (Vec::new(), 0, Vec::new(), None);
        for &layer in &layers {
            let boards = match sample_or_play(oracle, layer, most.div_ceil(layers.len()), seed, limits.wanted)
            {
                Err(error @ QueryError::ReachRemoved(_)) => {
                    removed.get_or_insert(error);
                    continue;
                }
                boards => boards?,
            };
            layers_of.push(layer.0);
            sampled += boards.len();
            if oracle.params().contents().stores_best_moves() {
                let advice = oracle.advise_all(&boards, limits.wanted)?.into_iter().flatten();
                found.extend(advice.filter(|advice| advice.moves.iter().count() > 1).map(without_values));
            } else {
                let evaluations = oracle.evaluate_as(&boards, limits)?.into_iter().flatten();
                found.extend(evaluations.filter_map(|evaluation| position(evaluation, kind, is_less_better)));
            }
        }
        match removed {
            Some(error) if layers_of.is_empty() => Err(error),
            _ => Ok((found, sampled, layers_of)),
        }
    };
    let (found, sampled, layers) = explorer.ask_heavy(run.oracle()?, question).await?;
    let chosen = choose(found, kind, limit);
    Ok(JsonReply(PositionList {
        layers,
        sampled,
        positions: chosen.into_iter().map(|position| listed(position, size)).collect(),
    }))
}

/// Evenly spread layers of a range. If possible, each layer is just below two stored layers, so the values after its
/// moves are stored.
fn layers_between(first: u32, last: u32, last_of_run: u32, kept: KeptLayers) -> Vec<Layer> {
    let near = |sum: u32| Layer::at_most(sum).unwrap_or(Layer::FIRST);
    let below_a_cut = |layer: Layer| kept.next_cut(layer.up(1)).down(1).unwrap_or(layer);
    let steps = (LAYERS - 1).min((last - first) / Layer::STEP).max(1);
    let wanted =
        (0..=steps).map(|i| near(first + (u64::from(last - first) * u64::from(i) / u64::from(steps)) as u32));
    let mut layers: Vec<Layer> = Vec::new();
    for layer in wanted {
        let below = below_a_cut(layer);
        if below.0 <= last {
            layers.push(below);
        } else if below.0 > last_of_run || layers.is_empty() {
            // Above the last cut no values are stored, but only few values must be computed there. If no layer of the
            // range is just below a cut, use the wanted layer.
            layers.push(layer);
        }
    }
    layers.dedup();
    layers
}

/// Makes a position of a state; `None` if the position is not of this kind.
fn position(evaluation: Evaluation, kind: PositionKind, is_less_better: bool) -> Option<Position> {
    let mut values: Vec<f64> = evaluation.moves.iter().filter_map(|m| Some(m.outcome?.value)).collect();
    values.sort_by(f64::total_cmp);
    if !is_less_better {
        values.reverse();
    }
    let (&best, &second) = (values.first()?, values.get(1)?);
    let (gap, larger) = ((best - second).abs(), best.abs().max(second.abs()));
    let counts = gap > 0.0 && (kind != PositionKind::Only || values.len() >= 3);
    counts.then(|| Position { answer: StateAnswer::Values(evaluation), gap, share: gap / larger })
}

/// A position of a run that has only best moves.
fn without_values(advice: Advice) -> Position {
    Position { answer: StateAnswer::BestMove(advice), gap: 0.0, share: 0.0 }
}

/// Chooses the positions that fit the kind best, the best fit first. Prefers positions that look different.
fn choose(mut found: Vec<Position>, kind: PositionKind, limit: usize) -> Vec<Position> {
    match kind {
        PositionKind::Gap => found.sort_by(|a, b| b.gap.total_cmp(&a.gap)),
        PositionKind::Close => found.sort_by(|a, b| a.gap.total_cmp(&b.gap)),
        PositionKind::Only => found.sort_by(|a, b| b.share.total_cmp(&a.share)),
        // Any position fits, so choose evenly from all layers.
        PositionKind::Any => return evenly_spaced(found, limit),
    }
    different(&found.iter().map(|position| position.answer.state().1).collect::<Vec<_>>(), limit)
        .into_iter()
        .map(|at| found[at].clone())
        .collect()
}

/// Smallest exponent of a large tile for the choice of positions. Boards that differ only in smaller tiles look the
/// same.
const SMALL: u8 = 3;

/// Chooses up to `limit` of these boards. Returns their indices in ascending order.
///
/// Chooses a board with the same large tiles in the same cells as an earlier board only if too few others exist.
fn different(boards: &[Board], limit: usize) -> Vec<usize> {
    let large = |board: &Board| {
        let exponents = (0..MOST_CELLS).map(|cell| board.get(cell));
        exponents.map(|exponent| if exponent < SMALL { 0 } else { exponent }).collect::<Vec<_>>()
    };
    let mut seen = HashSet::new();
    let (first, others): (Vec<usize>, Vec<usize>) =
        (0..boards.len()).partition(|&at| seen.insert(large(&boards[at])));
    let mut chosen: Vec<usize> = first.into_iter().chain(others).take(limit).collect();
    chosen.sort_unstable();
    chosen
}

fn evenly_spaced(found: Vec<Position>, limit: usize) -> Vec<Position> {
    let step = (found.len() / limit.max(1)).max(1);
    found.into_iter().step_by(step).take(limit).collect()
}

fn listed(Position { answer, gap, share }: Position, size: BoardSize) -> PositionView {
    let is_known = matches!(answer, StateAnswer::Values(_));
    let [gap, share] = [gap, share].map(|number| is_known.then_some(number));
    PositionView { state: StateView::new(&answer, &size.into()), gap, share }
}

#[cfg(test)]
mod tests {
    use exact2048_game::rules::Move;
    use exact2048_solution::{MoveOutcome, MoveValue};

    use super::*;

    fn evaluation(values: [Option<f64>; 4]) -> Evaluation {
        let outcome = |value| MoveOutcome {
            after: Board::default(),
            score: 0,
            value,
            error_bound: 0.0,
            worst_spawn: None,
            is_best: false,
            may_be_best: None,
        };
        let moves = Move::ALL.into_iter().zip(values);
        Evaluation {
            board: Board::default(),
            canonical: Board::default(),
            layer: Layer(8),
            is_known_reachable: true,
            value: 0.0,
            error_bound: 0.0,
            best: None,
            moves: moves
                .map(|(direction, value)| MoveValue { direction, outcome: value.map(outcome) })
                .collect(),
        }
    }

    #[test]
    fn gaps_are_to_the_second_best_move() {
        let of = |values, kind, less| position(evaluation(values), kind, less).map(|p| (p.gap, p.share));
        let values = [Some(8.0), None, Some(10.0), Some(2.0)];
        assert_eq!(of(values, PositionKind::Gap, false), Some((2.0, 0.2)));
        assert_eq!(of(values, PositionKind::Gap, true), Some((6.0, 0.75)));
        let two = [Some(8.0), None, Some(10.0), None];
        assert_eq!(of(two, PositionKind::Only, false), None, "two moves");
        assert!(of(two, PositionKind::Close, false).is_some());
        assert_eq!(of([Some(8.0), Some(8.0), Some(1.0), None], PositionKind::Gap, false), None, "a tie");
        assert_eq!(of([Some(8.0), None, None, None], PositionKind::Any, false), None, "no choice");
    }

    #[test]
    fn positions_that_look_the_same_are_chosen_last() {
        let boards = ["64 2 / 4 0", "64 4 / 2 0", "32 16 / 2 0", "32 16 / 0 4", "16 32 / 0 4"];
        let boards = boards.map(|text| Board::parse(text, "2x2".parse().unwrap()).unwrap());
        assert_eq!(different(&boards, 3), [0, 2, 4]);
        assert_eq!(different(&boards, 4), [0, 1, 2, 4]);
        assert_eq!(different(&boards, 9), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn layers_are_spread_and_just_below_stored_ones() {
        let kept = KeptLayers::TWO_IN_FOUR;
        let layers = layers_between(0, 2044, 2044, kept);
        assert_eq!(layers.len(), 8);
        for layer in &layers[..7] {
            assert!(kept.keeps(layer.up(1)) && kept.keeps(layer.up(2)), "{layer}");
        }
        assert_eq!(layers_between(30, 30, 2044, kept).len(), 1);
        assert!(layers_between(2044, 2044, 2044, kept)[0].0 <= 2044);
        for kept in [kept, KeptLayers::ALL, KeptLayers::new(128, 2).unwrap()] {
            for (first, last) in [(4, 40), (20, 600), (300, 340), (2000, 2044)] {
                let layers = layers_between(first, last, 2044, kept);
                assert!(!layers.is_empty() && layers.is_sorted(), "{kept:?}");
                assert!(layers.iter().all(|layer| (first..=last).contains(&layer.0)), "{kept:?}: {layers:?}");
            }
        }
    }
}
