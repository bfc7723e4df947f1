//! Boards from standard input, one a line: answered in batches while more come than can be answered at once, and each
//! at once where they come one by one.
//!
//! One thread reads, some answer, and the caller prints in order. A batch goes to the first thread that is free, and
//! the end of the channel that its answers will come through goes to the caller. Queues are short: no more is read than
//! is about to be answered.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use anyhow::{Context, Result};
use exact2048_game::board::{Board, BoardSize};
use exact2048_solution::QueryError;
use parking_lot::Mutex;

use super::answerer::{AnswerWithCost, Answerer};
use super::print::Printer;
use crate::failure::{self, Failure};

/// Lines that are answered together: enough for a message to be worth its way, and few enough for its time.
const TOGETHER: usize = 256;

/// Bytes of a line at most: a board has some hundred, however it is spelled.
const LONGEST: u64 = 4096;

/// Characters of a line without an answer that are shown with it.
const SHOWN: usize = 80;

/// What some programs begin a text with. Where such texts are joined, other lines begin with it too.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Batches under way, so that a server far away is not waited for with nothing to do.
const UNDER_WAY: usize = 4;

/// A line that is not empty.
struct Line {
    /// Counted from 1, empty lines included.
    number: u64,
    /// Its beginning, as much as is shown.
    text: String,
    board: Result<Board>,
}

/// The number and the text of a line, and its answer.
type Answered = (u64, String, Result<AnswerWithCost>);

/// Lines that are answered together, and where their answers go.
struct Batch {
    lines: Vec<Line>,
    answers: SyncSender<Vec<Answered>>,
}

/// Answers every line of standard input; lines that have no answer are reported, and the rest goes on.
pub fn answer(answerer: Answerer, printer: &Printer, out: &mut impl Write) -> Result<()> {
    let lines = read_lines(answerer.params().board);
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
        let mut input = io::stdin().lock();
        let mut number = 0;
        while let Some(line) = next_line(&mut input).transpose() {
            number += 1;
            let line = line.map(|bytes| parse(number, &bytes, size));
            let is_last = line.is_err();
            let is_empty = line.as_ref().is_ok_and(|line| line.text.is_empty());
            if !is_empty && sender.send(line).is_err() || is_last {
                break;
            }
        }
    });
    lines
}

/// The bytes of the next line, as many as a line may have and one more; `None` at the end. What else the line has is
/// read and not kept.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    if input.take(LONGEST + 1).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if bytes.len() as u64 > LONGEST {
        input.skip_until(b'\n')?;
    }
    Ok(Some(bytes))
}

/// What a line asks for.
fn parse(number: u64, bytes: &[u8], size: BoardSize) -> Line {
    let is_too_long = bytes.len() as u64 > LONGEST;
    let board = match exact2048_text::utf8(bytes) {
        _ if is_too_long => {
            let message = format!("expected a board, found a line of more than {LONGEST} bytes");
            Err(Failure::usage(message).into())
        }
        Ok(text) => Board::parse(without_mark(text), size).map_err(|error| QueryError::from(error).into()),
        Err(found) => Err(Failure::usage(format!("expected a board, found {found}")).into()),
    };
    let text = String::from_utf8_lossy(bytes);
    let text = without_mark(&text).trim();
    let shown = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    Line { number, text: shown, board }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Where the answers to each batch will come, in the order of the lines. The threads end with the process at the
/// latest: the one that reads may wait for a line that never comes.
fn answer_batches(
    answerer: Answerer,
    lines: Receiver<io::Result<Line>>,
) -> Receiver<io::Result<Receiver<Vec<Answered>>>> {
    let answerer = Arc::new(answerer);
    let (to_answer, batches) = mpsc::sync_channel::<Batch>(0);
    let batches = Arc::new(Mutex::new(batches));
    for _ in 0..UNDER_WAY {
        let (answerer, batches) = (Arc::clone(&answerer), Arc::clone(&batches));
        let next = move || batches.lock().recv();
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
    let mut answers = if boards.is_empty() { Vec::new() } else { answerer.answer(&boards) }.into_iter();
    let answer = |Line { number, text, board }| {
        (number, text, board.and_then(|_| answers.next().context("a board was not answered")?))
    };
    lines.into_iter().map(answer).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use super::*;

    #[test]
    fn lines_of_any_length_and_bytes_are_lines() {
        let longest = usize::try_from(LONGEST).unwrap();
        let input =
            [b"a\n\n", &vec![b'b'; longest][..], b"\n", &vec![b'c'; 3 * longest], b"\n\xff\r\nend"].concat();
        let mut input = io::BufReader::with_capacity(7, &input[..]);
        let mut lengths = Vec::new();
        while let Some(line) = next_line(&mut input).unwrap() {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [1, 0, longest, longest + 1, 2, 3]);
    }

    #[test]
    fn what_is_no_board_is_told_in_few_words() {
        let size: BoardSize = "2x2".parse().unwrap();
        let (long, cells) = (vec![b'2'; 5000], b"2 ".repeat(2000));
        let cases = [
            (&b"2 \xff / 0 0"[..], "found bytes that are not UTF-8: byte 3 is 0xff"),
            (b"\x1b[2J / 0 0", "1 cell in row 1 in \"\\u{1b}[2J / 0 0\""),
            (&long, "more than 4096 bytes"),
            (&cells, "expected 2 rows"),
        ];
        for (line, words) in cases {
            let Line { text, board, .. } = parse(1, line, size);
            let error = board.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(text.chars().count() <= SHOWN + 1 && error.chars().count() < 300, "{text}: {error}");
        }
        assert!(parse(1, b"2 2 / 0 0\r", size).board.is_ok());
        assert!(parse(1, "\u{feff}2 2 / 0 0".as_bytes(), size).board.is_ok());
        assert!(parse(1, "\u{feff}\r".as_bytes(), size).text.is_empty(), "an empty line");
        assert!(parse(1, "2 \u{feff}2 / 0 0".as_bytes(), size).board.is_err());
    }
}
