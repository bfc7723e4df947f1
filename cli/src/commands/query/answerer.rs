//! Sources of answers: a local run or a server. Both give the same answers, word for word.

use std::time::Instant;

use anyhow::Result;
use exact2048_game::Board;
use exact2048_game::Params;
use exact2048_solution::{
    CostSum, Evaluation, Oracle, OracleOptions, QueryError, QuestionLimits, Run, StateAnswer,
};
use parking_lot::Mutex;

use super::Args;
use crate::cones::{self, ConeWatch, Cost};
use crate::failure::Failure;
use crate::limits;
use crate::remote::Remote;

/// An answer, and the cost of its whole batch.
pub struct AnswerWithCost {
    pub answer: StateAnswer,
    pub cost: Option<Cost>,
}

/// Answers queries from a source.
pub struct Answerer {
    source: Source,
    /// Whether to compute values for a run that stores best moves.
    with_values: bool,
}

/// A source of answers.
enum Source {
    /// A local run.
    Run(Box<LocalRun>),
    /// A server.
    Server(Box<Remote>),
}

/// A run that this process reads.
struct LocalRun {
    oracle: Oracle,
    watch: ConeWatch,
    /// Held by the thread that computes values with much memory.
    turn: Mutex<()>,
}

/// Memory for a cone in each of several concurrent threads, in bytes. It suffices for a few hundred thousand states.
const TRIAL_BYTES: u64 = 16 << 20;

impl Answerer {
    /// Opens the run or connects to the server.
    pub fn new(args: &Args) -> Result<Self> {
        let Args { source, server_run, store, client, cones, memory, .. } = args;
        let source = match (&source.run, &source.server) {
            (_, Some(url)) => {
                cones.refuse()?;
                Source::Server(Box::new(Remote::connect(url, server_run.as_deref(), client)?))
            }
            (Some(run), None) => {
                client.refuse()?;
                let location = store.locate_to_read(run)?;
                let (cone_bytes, cone_files) = (limits::memory_or_half(*memory), cones.files(&location));
                let options = OracleOptions { cone_bytes, cone_files, ..cones::options(cone_bytes) };
                let oracle = Oracle::with_options(&Run::open(location)?, options)?;
                let (watch, turn) = (ConeWatch::default(), Mutex::default());
                Source::Run(Box::new(LocalRun { oracle, watch, turn }))
            }
            (None, None) => return Err(Failure::usage("expected --run or --server".to_owned()).into()),
        };
        Ok(Self { source, with_values: args.value })
    }

    /// Parameters of the run.
    pub fn params(&self) -> &Params {
        match &self.source {
            Source::Run(here) => here.oracle.params(),
            Source::Server(remote) => remote.params(),
        }
    }

    /// Returns the values of boards and of their moves, or their best moves, in the order of `boards`.
    ///
    /// # Errors
    ///
    /// Each board has its own result.
    pub fn answer(&self, boards: &[Board]) -> Vec<Result<AnswerWithCost>> {
        let answers = match &self.source {
            Source::Run(here) if here.oracle.params().contents().stores_best_moves() && !self.with_values => {
                here.choose(boards)
            }
            Source::Run(here) => here.evaluate(boards),
            Source::Server(remote) => remote.answer(boards, self.with_values),
        };
        let has_cost = cones::should_report_cost(self.params().contents().kept());
        let with_cost = |(answer, cost): (StateAnswer, Cost)| {
            let cost = Some(cost).filter(|_| has_cost && matches!(answer, StateAnswer::Values(_)));
            AnswerWithCost { answer, cost }
        };
        answers.into_iter().map(|answer| answer.map(with_cost)).collect()
    }
}

impl LocalRun {
    /// The best moves of boards.
    fn choose(&self, boards: &[Board]) -> Vec<Result<(StateAnswer, Cost)>> {
        match self.oracle.advise_all(boards, &|| true) {
            Ok(answers) => answers
                .into_iter()
                .map(|answer| Ok((StateAnswer::BestMove(answer?), Cost::default())))
                .collect(),
            Err(error) if boards.len() == 1 => vec![Err(error.into())],
            Err(_) => boards.iter().flat_map(|&board| self.choose(&[board])).collect(),
        }
    }

    fn evaluate(&self, boards: &[Board]) -> Vec<Result<(StateAnswer, Cost)>> {
        match self.ask(boards) {
            Ok((answers, cost)) => {
                answers.into_iter().map(|answer| Ok((StateAnswer::Values(answer?), cost))).collect()
            }
            Err(error) if boards.len() == 1 => vec![Err(error.into())],
            // Some boards have no answer. Single questions show which boards these are.
            Err(_) => boards.iter().flat_map(|&board| self.evaluate(&[board])).collect(),
        }
    }

    /// Asks with little memory first. If that does not suffice, asks with the whole memory, one thread at a time.
    fn ask(&self, boards: &[Board]) -> Result<(Vec<Result<Evaluation, QueryError>>, Cost), QueryError> {
        let (begun, spent) = (Instant::now(), CostSum::default());
        let (kept, last) = (self.oracle.params().contents().kept(), self.oracle.params().last_layer().0);
        let show = |at| self.watch.show(at, kept, last);
        let trial = QuestionLimits::new(&|| true, TRIAL_BYTES.min(self.oracle.cone_bytes()), &spent);
        let answers = match self.oracle.evaluate_as(boards, &trial) {
            Err(QueryError::TooLarge(_)) => {
                let _turn = self.turn.lock();
                let asking =
                    QuestionLimits { progress: &show, cone_bytes: self.oracle.cone_bytes(), ..trial };
                let answers = self.oracle.evaluate_as(boards, &asking);
                self.watch.finish();
                answers?
            }
            answers => answers?,
        };
        let cost = Cost {
            computed_states: spent.computed_states(),
            stored_states: spent.stored_states(),
            found_states: spent.found_states(),
            seconds: begun.elapsed().as_secs_f64(),
            boards: boards.len(),
        };
        Ok((answers, cost))
    }
}
