//! Searches a layer for states that match a pattern, page by page.

use axum::extract::State;
use exact2048_game::Layer;
use exact2048_game::board::Board;
use exact2048_game::symmetry::Symmetries;
use exact2048_net::pages::{JsonReply, RequestFailure};
use exact2048_net::status;
use exact2048_solution::{Oracle, QueryError, QuestionLimits};
use serde::{Deserialize, Serialize};

use crate::layers::no_such_layer;
use crate::pattern::BoardPattern;
use crate::state::Explorer;
use crate::url_query::{UrlQuery, count_of};

/// Default and largest number of states in an answer.
const LIMIT: u32 = 50;
const MOST: u32 = 1_000;

/// Approximate number of states that one request scans. One thread scans them in about a second.
const SCANNED: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    run: Option<String>,
    layer: u32,
    pattern: String,
    limit: Option<u32>,
    /// `next` of the previous answer.
    from: Option<String>,
}

#[derive(Serialize)]
pub struct SearchAnswer {
    states: Vec<FoundState>,
    /// Number of scanned states.
    scanned: usize,
    /// The place to resume; `None` at the end of the layer.
    next: Option<String>,
}

#[derive(Serialize)]
struct FoundState {
    /// The matching image.
    board: String,
    /// `None` if the run stores best moves.
    value: Option<f64>,
}

/// A place in a layer: the number of a part, and the number of a state in the part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ScanPlace {
    part: usize,
    state: usize,
}

impl ScanPlace {
    fn parse(text: &str) -> Option<Self> {
        let (part, state) = text.split_once('.')?;
        Some(Self { part: part.parse().ok()?, state: state.parse().ok()? })
    }

    fn text(self) -> String {
        format!("{}.{}", self.part, self.state)
    }
}

/// Result of a scan.
struct Scan {
    boards: Vec<Board>,
    scanned: usize,
    next: Option<ScanPlace>,
}

/// `GET /api/v1/search`.
pub async fn search(
    State(explorer): State<Explorer>,
    UrlQuery(asked): UrlQuery<SearchQuery>,
) -> Result<JsonReply<SearchAnswer>, RequestFailure> {
    let run = explorer.run(asked.run.as_deref())?;
    let (size, layer) = (run.params.game().board(), Layer(asked.layer));
    if !run.layers.iter().any(|counts| counts.layer == layer) {
        return Err(
            no_such_layer(layer, run.params.first_layer(), run.layers.last().map(|last| last.layer)).into()
        );
    }
    let pattern = BoardPattern::parse(&asked.pattern, size);
    let pattern = pattern.map_err(|what| status::invalid_argument("pattern", what))?;
    let from = match &asked.from {
        None => ScanPlace::default(),
        Some(text) => ScanPlace::parse(text).ok_or_else(|| {
            status::invalid_argument(
                "from",
                format!("{text:?}: expected the value of \"next\" in the previous answer"),
            )
        })?,
    };
    let limit = count_of("limit", asked.limit, LIMIT, MOST)?;
    let with_values = !run.params.contents().stores_best_moves();
    let question = move |oracle: &Oracle, limits: &QuestionLimits<'_>| {
        let found = scan(oracle, layer, &pattern, from, limit, limits)?;
        let values = match with_values {
            true => oracle.values_as(&found.boards, limits)?,
            false => vec![None; found.boards.len()],
        };
        Ok((found, values))
    };
    let (Scan { boards, scanned, next }, values) = explorer.ask_heavy(run.oracle()?, question).await?;
    let states =
        boards.iter().zip(values).map(|(board, value)| FoundState { board: board.to_text(size), value });
    Ok(JsonReply(SearchAnswer { states: states.collect(), scanned, next: next.map(ScanPlace::text) }))
}

fn scan(
    oracle: &Oracle,
    layer: Layer,
    pattern: &BoardPattern,
    from: ScanPlace,
    limit: usize,
    limits: &QuestionLimits<'_>,
) -> Result<Scan, QueryError> {
    let symmetries = Symmetries::new(oracle.params().game().board());
    let (mut boards, mut scanned, mut first) = (Vec::new(), 0, from.state);
    for (part, &key) in oracle.parts_of(layer)?.iter().enumerate().skip(from.part) {
        if scanned >= SCANNED {
            return Ok(Scan { boards, scanned, next: Some(ScanPlace { part, state: 0 }) });
        }
        if !(limits.wanted)() {
            return Err(QueryError::GivenUp);
        }
        for (state, &board) in oracle.states_of(key)?.iter().enumerate().skip(std::mem::take(&mut first)) {
            if boards.len() == limit {
                return Ok(Scan { boards, scanned, next: Some(ScanPlace { part, state }) });
            }
            scanned += 1;
            boards.extend(pattern.image_that_matches(board, &symmetries));
        }
    }
    Ok(Scan { boards, scanned, next: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_parse_as_they_are_printed() {
        let place = ScanPlace { part: 12, state: 345 };
        assert_eq!(ScanPlace::parse(&place.text()), Some(place));
        for text in ["", "1", ".", "1.", "a.b", "-1.2", "1.99999999999999999999999"] {
            assert_eq!(ScanPlace::parse(text), None, "{text}");
        }
    }
}
