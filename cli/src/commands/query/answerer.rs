//! What answers: a run that is read here, or a server. Both give the same answers, word for word.

use anyhow::Result;
use exact2048_game::Objective;
use exact2048_game::board::{Board, BoardSize};
use exact2048_solution::{Evaluation, Oracle, QueryError, Run};

use super::Source;
use crate::failure::Failure;
use crate::network::ClientArgs;
use crate::place::StoreOptions;
use crate::remote::Remote;

/// What answers.
pub enum Answerer {
    /// A run that is read here.
    Run(Box<Oracle>),
    /// A server.
    Server(Box<Remote>),
}

impl Answerer {
    /// Opens the run or connects to the server.
    pub fn new(source: &Source, store: &StoreOptions, client: &ClientArgs) -> Result<Self> {
        match (&source.run, &source.server) {
            (_, Some(url)) => Ok(Self::Server(Box::new(Remote::connect(url, client)?))),
            (Some(run), None) => {
                client.refuse()?;
                let run = Run::open(store.locate_to_read(run)?)?;
                Ok(Self::Run(Box::new(Oracle::new(&run)?)))
            }
            (None, None) => Err(Failure::usage("give --run or --server".to_owned()).into()),
        }
    }

    /// The size of the run's board.
    pub fn size(&self) -> BoardSize {
        match self {
            Self::Run(oracle) => oracle.params().board,
            Self::Server(remote) => remote.size(),
        }
    }

    /// What the run maximises.
    pub fn objective(&self) -> Objective {
        match self {
            Self::Run(oracle) => oracle.params().objective,
            Self::Server(remote) => remote.objective(),
        }
    }

    /// The values of boards and of their moves, each or why it has none, in their order.
    pub fn evaluate(&self, boards: &[Board]) -> Vec<Result<Evaluation>> {
        match self {
            Self::Run(oracle) => evaluate_here(oracle, boards),
            Self::Server(remote) => remote.evaluate(boards),
        }
    }
}

fn evaluate_here(oracle: &Oracle, boards: &[Board]) -> Vec<Result<Evaluation>> {
    match oracle.evaluate_all(boards, &|| true) {
        Ok(answers) => answers.into_iter().map(|answer| answer.map_err(Into::into)).collect(),
        Err(error) if boards.len() == 1 => vec![Err(error.into())],
        // Some of them cannot be answered: one by one it shows which.
        Err(_) => boards.iter().map(|&board| one(oracle, board).map_err(Into::into)).collect(),
    }
}

fn one(oracle: &Oracle, board: Board) -> Result<Evaluation, QueryError> {
    oracle.evaluate(board, &|| true)
}
