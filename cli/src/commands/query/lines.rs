//! Boards from standard input, one a line: answered in batches while more come than can be answered at once, and each
//! at once where they come one by one.
//!
//! One thread reads, some answer, and the caller prints in order. A batch goes to the first thread that is free, and the
//! end of the channel that its answers will come through goes to the caller. Queues are short: no more is read than is
//! about to be answered.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use exact2048_game::board::{Board, BoardSize};
use exact2048_run::{Evaluation, QueryError};

use super::answerer::Answerer;
use super::print::Printer;
use crate::failure::{self, Failure};

/// Lines that are answered together: enough for a message to be worth its way, and few enough for its time.
const TOGETHER: usize = 256;

/// Batches under way, so that a server far away is not waited for with nothing to do.
const UNDER_WAY: usize = 4;

/// A line that is not empty.
struct Line {
    /// Counted from 1, empty lines included.
    number: u64,
    text: String,
    board: Result<Board>,
}

/// The number and the text of a line, and its answer.
type Answered = (u64, String, Result<Evaluation>);

/// Lines that are answered together, and where their answers go.
struct Batch {
    lines: Vec<Line>,
    answers: SyncSender<Vec<Answered>>,
}

/// Answers every line of standard input; lines that have no answer are told and the rest goes on.
pub fn answer(answerer: Answerer, printer: &Printer, out: &mut impl Write) -> Result<()> {
    let lines = read_lines(answerer.size());
    let mut codes = Vec::new();
    for answers in answer_batches(answerer, lines) {
        // What failed is that lines could not be read: everything before has been answered.
        let answers = answers.context("cannot read boards from standard input")?;
        for (number, text, answer) in answers.recv().context("a thread that answers has ended")? {
            match answer {
                Ok(answer) => printer.write_one_of_many(out, &answer)?,
                Err(error) => {
                    codes.push(failure::code(&error));
                    // In their order with the answers, where both go to a terminal.
                    out.flush()?;
                    printer.refuse(out, number, &text, &error)?;
                }
            }
        }
        out.flush()?;
    }
    // From the worst on: a failure, what is no board, what is not reachable.
    codes.into_iter().min().map_or(Ok(()), |code| Err(Failure::told(code).into()))
}

/// The lines of standard input, read by a thread of their own.
fn read_lines(size: BoardSize) -> Receiver<io::Result<Line>> {
    let (sender, lines) = mpsc::sync_channel(TOGETHER);
    thread::spawn(move || {
        for (number, line) in (1u64..).zip(io::stdin().lines()) {
            let line = line.map(|text| {
                let board = Board::parse(&text, size).map_err(|error| QueryError::from(error).into());
                Line { number, text: text.trim().to_owned(), board }
            });
            let is_last = line.is_err();
            let is_empty = line.as_ref().is_ok_and(|line| line.text.is_empty());
            if !is_empty && sender.send(line).is_err() || is_last {
                break;
            }
        }
    });
    lines
}

/// Where the answers to each batch will come, in the order of the lines. The threads end with the process at the latest:
/// the one that reads may wait for a line that never comes.
fn answer_batches(
    answerer: Answerer,
    lines: Receiver<io::Result<Line>>,
) -> Receiver<io::Result<Receiver<Vec<Answered>>>> {
    let answerer = Arc::new(answerer);
    let (to_answer, batches) = mpsc::sync_channel::<Batch>(0);
    let batches = Arc::new(Mutex::new(batches));
    for _ in 0..UNDER_WAY {
        let (answerer, batches) = (Arc::clone(&answerer), Arc::clone(&batches));
        let next = move || batches.lock().unwrap_or_else(PoisonError::into_inner).recv();
        thread::spawn(move || {
            while let Ok(Batch { lines, answers }) = next() {
                // Nobody listens any more where printing failed.
                let _ = answers.send(answer_lines(&answerer, lines));
            }
        });
    }
    let (to_print, printed) = mpsc::sync_channel(UNDER_WAY);
    thread::spawn(move || {
        while let Some((batch, failed)) = next_batch(&lines) {
            let (answers, awaited) = mpsc::sync_channel(1);
            let is_wanted = batch.is_empty()
                || to_answer.send(Batch { lines: batch, answers }).is_ok()
                    && to_print.send(Ok(awaited)).is_ok();
            if let Some(failed) = failed {
                let _ = to_print.send(Err(failed));
                break;
            }
            if !is_wanted {
                break;
            }
        }
    });
    printed
}

/// The next line, and those that are there already, up to one that could not be read; `None` at the end.
fn next_batch(lines: &Receiver<io::Result<Line>>) -> Option<(Vec<Line>, Option<io::Error>)> {
    let mut batch = Vec::new();
    let mut next = lines.recv().ok()?;
    loop {
        match next {
            Ok(line) => batch.push(line),
            Err(error) => return Some((batch, Some(error))),
        }
        if batch.len() == TOGETHER {
            return Some((batch, None));
        }
        next = match lines.try_recv() {
            Ok(line) => line,
            Err(_) => return Some((batch, None)),
        };
    }
}

fn answer_lines(answerer: &Answerer, lines: Vec<Line>) -> Vec<Answered> {
    let boards: Vec<Board> = lines.iter().filter_map(|line| line.board.as_ref().ok().copied()).collect();
    let mut answers = if boards.is_empty() { Vec::new() } else { answerer.evaluate(&boards) }.into_iter();
    let answer = |Line { number, text, board }| {
        (number, text, board.and_then(|_| answers.next().context("a board was not answered")?))
    };
    lines.into_iter().map(answer).collect()
}
