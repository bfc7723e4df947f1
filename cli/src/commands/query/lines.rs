//! Answers boards from standard input, one per line. If lines arrive faster than answers, several lines form a batch.
//!
//! One thread reads, several threads answer, and the caller prints in order. The first free thread gets a batch, and the
//! caller gets the receiver of its answers. Queues are short, so the reader does not run far ahead.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use anyhow::{Context, Result};
use exact2048_game::{Asked, Board, Game, Perspective};
use exact2048_solution::QueryError;
use parking_lot::Mutex;

use super::answerer::{AnswerWithCost, Answerer};
use super::print::Printer;
use crate::exit;
use crate::failure::Failure;

/// Largest number of lines of a batch. It is large enough to justify a message, and small enough for the message's
/// timeout.
const TOGETHER: usize = 256;

/// Largest number of bytes of a line. A board takes at most a few hundred bytes in any notation.
const LONGEST: u64 = 4096;

/// Number of printed characters of a refused line.
const SHOWN: usize = 80;

/// Byte order mark at the beginning of some texts. In concatenated texts, other lines can also begin with it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Number of concurrent batches. They hide the latency of a distant server.
const UNDER_WAY: usize = 4;

/// A line of input that is not empty.
struct Line {
    /// Number of the line, from 1. Empty lines count.
    number: u64,
    /// The printed beginning of the line.
    text: String,
    asked: Result<Asked>,
}

/// The number and the text of a line, and its answer with the perspective of its boards.
type Answered = (u64, String, Result<(AnswerWithCost, Perspective)>);

/// Lines of a batch, and the channel for their answers.
struct Batch {
    lines: Vec<Line>,
    answers: SyncSender<Vec<Answered>>,
}

/// Answers every line of standard input. Reports lines without an answer and continues.
pub fn answer(answerer: Answerer, printer: &Printer, out: &mut impl Write) -> Result<()> {
    let lines = read_lines(*answerer.params().game());
    let mut codes = Vec::new();
    for answers in answer_batches(answerer, lines) {
        // Reading failed here. All earlier lines have their answers.
        let answers = answers.context("cannot read boards from standard input")?;
        for (number, text, answer) in answers.recv().context("an answering thread ended unexpectedly")? {
            match answer {
                Ok((answer, perspective)) => printer.write_one_of_many(out, &answer, &perspective)?,
                Err(error) => {
                    codes.push(exit::code(&error));
                    // Preserves the order of errors and answers if both go to a terminal.
                    out.flush()?;
                    printer.refuse(out, number, &text, &error)?;
                }
            }
        }
        out.flush()?;
    }
    // The lowest code is the worst: failure, invalid board, unreachable state.
    codes.into_iter().min().map_or(Ok(()), |code| Err(Failure::reported(code).into()))
}

/// The lines of standard input, read by a separate thread.
fn read_lines(game: Game) -> Receiver<io::Result<Line>> {
    let (sender, lines) = mpsc::sync_channel(TOGETHER);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut number = 0;
        while let Some(line) = next_line(&mut input).transpose() {
            number += 1;
            let line = line.map(|bytes| parse(number, &bytes, &game));
            let is_last = line.is_err();
            let is_empty = line.as_ref().is_ok_and(|line| line.text.is_empty());
            if !is_empty && sender.send(line).is_err() || is_last {
                break;
            }
        }
    });
    lines
}

/// The bytes of the next line, truncated to one more than the limit; `None` at the end of the input.
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

/// Parses the board of a line.
fn parse(number: u64, bytes: &[u8], game: &Game) -> Line {
    let is_too_long = bytes.len() as u64 > LONGEST;
    let asked = match exact2048_text::utf8(bytes) {
        _ if is_too_long => {
            let message = format!("expected a board, found a line of more than {LONGEST} bytes");
            Err(Failure::usage(message).into())
        }
        Ok(text) => Asked::parse(without_mark(text), game).map_err(|error| QueryError::from(error).into()),
        Err(found) => Err(Failure::usage(format!("expected a board, found {found}")).into()),
    };
    let text = String::from_utf8_lossy(bytes);
    let text = without_mark(&text).trim();
    let shown = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    Line { number, text: shown, asked }
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Starts the threads, and returns a receiver of answers for each batch, in the order of the lines.
///
/// The reader may block on input forever, so its thread ends with the process.
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
                // The receiver is closed if printing failed.
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

/// The next line and the lines that are already read, up to a line that could not be read; `None` at the
/// end of the input.
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
    let asked = lines.iter().filter_map(|line| line.asked.as_ref().ok());
    let boards: Vec<Board> = asked.map(|asked| asked.board).collect();
    let mut answers = if boards.is_empty() { Vec::new() } else { answerer.answer(&boards) }.into_iter();
    let answer = |Line { number, text, asked }| {
        let next =
            |asked: Asked| Ok((answers.next().context("a board was not answered")??, asked.perspective));
        (number, text, asked.and_then(next))
    };
    lines.into_iter().map(answer).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use exact2048_game::Params;

    use super::*;

    #[test]
    fn lines_can_have_any_length_and_bytes() {
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
    fn errors_of_invalid_boards_are_short() {
        let params = Params::usual("2x2", "score").build().unwrap();
        let game = params.game();
        let (long, cells) = (vec![b'2'; 5000], b"2 ".repeat(2000));
        let cases = [
            (&b"2 \xff / 0 0"[..], "found bytes that are not UTF-8: byte 3 is 0xff"),
            (b"\x1b[2J / 0 0", "1 cell in row 1 in \"\\u{1b}[2J / 0 0\""),
            (&long, "more than 4096 bytes"),
            (&cells, "expected 2 rows"),
        ];
        for (line, words) in cases {
            let Line { text, asked, .. } = parse(1, line, game);
            let error = asked.unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(text.chars().count() <= SHOWN + 1 && error.chars().count() < 300, "{text}: {error}");
        }
        assert!(parse(1, b"2 2 / 0 0\r", game).asked.is_ok());
        assert!(parse(1, "\u{feff}2 2 / 0 0".as_bytes(), game).asked.is_ok());
        assert!(parse(1, "\u{feff}\r".as_bytes(), game).text.is_empty(), "an empty line");
        assert!(parse(1, "2 \u{feff}2 / 0 0".as_bytes(), game).asked.is_err());
    }
}
