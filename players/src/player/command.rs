//! A program that is asked for each move, line by line.
//!
//! The protocol (`docs/players.md`): `game RxC` begins a game, `move BOARD` asks for a move and is answered with
//! `left`, `right`, `up` or `down` on a line of its own, `end SCORE` ends the game. Boards are as `query` takes them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use exact2048_game::rules::Move;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{Player, PlayerError, Turn};
use crate::engine::Engine;

/// How long a program may think about a move.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest answer that is read, in bytes.
const LONGEST_ANSWER: u64 = 4096;

/// What a program did instead of answering.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It could not be started.
    #[error("{command:?} cannot be started")]
    Start {
        /// The command.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// It ended, or closed its input or output.
    #[error("{command:?} ended and left a question open: expected left, right, up or down")]
    Ended {
        /// The command.
        command: String,
    },
    /// It said nothing in time.
    #[error("{command:?} said nothing for {} s: expected left, right, up or down", PATIENCE.as_secs())]
    Silent {
        /// The command.
        command: String,
    },
    /// It said something else.
    #[error("{command:?} said {answer:?}: expected left, right, up or down")]
    Answer {
        /// The command.
        command: String,
        /// What it said.
        answer: String,
    },
}

/// A program that plays.
pub struct External {
    command: String,
    running: Option<Running>,
    /// How the game began, where the program ran before that and has answered nothing since: it may have ended after the
    /// last game, and read none of this one.
    unheard: Option<String>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    /// Lines that it has printed, read by a thread of their own so that a program that hangs hangs nobody else.
    lines: Receiver<String>,
}

impl External {
    /// Starts the program through the shell.
    ///
    /// # Errors
    ///
    /// [`CommandError::Start`].
    pub fn start(command: &str) -> Result<Self, CommandError> {
        Ok(Self { command: command.to_owned(), running: Some(Running::start(command)?), unheard: None })
    }

    fn direction(&self, answer: &str) -> Result<Move, CommandError> {
        let word = answer.trim().to_ascii_lowercase();
        Move::ALL.into_iter().find(|direction| direction.name() == word).ok_or_else(|| CommandError::Answer {
            command: self.command.clone(),
            answer: answer.trim().chars().take(60).collect(),
        })
    }

    /// Asks, and takes one line for an answer. A program that turns out to have ended before this game is started again.
    fn ask(&mut self, question: &str) -> Result<String, CommandError> {
        let unheard = self.unheard.take();
        match (self.ask_running(question), unheard) {
            (Err(CommandError::Ended { .. }), Some(game)) => {
                self.start_again(&game)?;
                self.ask_running(question)
            }
            (answer, _) => answer,
        }
    }

    /// Starts the program, in place of one that has ended or failed, and begins a game.
    fn start_again(&mut self, game: &str) -> Result<(), CommandError> {
        self.running = None;
        let running = self.running.insert(Running::start(&self.command)?);
        writeln!(running.input, "{game}").map_err(|_| CommandError::Ended { command: self.command.clone() })
    }

    fn ask_running(&mut self, question: &str) -> Result<String, CommandError> {
        let command = || self.command.clone();
        let running = self.running.as_mut().ok_or_else(|| CommandError::Ended { command: command() })?;
        writeln!(running.input, "{question}").map_err(|_| CommandError::Ended { command: command() })?;
        running.lines.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => CommandError::Silent { command: command() },
            RecvTimeoutError::Disconnected => CommandError::Ended { command: command() },
        })
    }
}

impl Running {
    fn start(command: &str) -> Result<Self, CommandError> {
        let failed = |source| CommandError::Start { command: command.to_owned(), source };
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A process group of its own, so that what the shell starts can be ended with it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(failed(std::io::Error::other("no pipe to it")));
        };
        let (send, lines) = sync_channel(1);
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            while std::io::Read::take(&mut output, LONGEST_ANSWER)
                .read_line(&mut line)
                .is_ok_and(|bytes| bytes > 0)
            {
                if send.send(std::mem::take(&mut line)).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, input, lines })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself. Either way nothing is left of it and of what it has started.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Player for External {
    fn begin(&mut self, engine: &Engine) -> Result<(), PlayerError> {
        let game = format!("game {}", engine.size());
        let is_told = self.running.as_mut().is_some_and(|running| writeln!(running.input, "{game}").is_ok());
        if !is_told {
            self.start_again(&game)?;
        }
        self.unheard = is_told.then_some(game);
        Ok(())
    }

    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let question = format!("move {}", turn.board.to_text(turn.engine.size()));
        let chosen = self.ask(&question).and_then(|answer| self.direction(&answer));
        if chosen.is_err() {
            // What the program says next may be a late answer to this question.
            self.running = None;
        }
        Ok(chosen?)
    }

    fn end(&mut self, score: u64) {
        if let Some(running) = &mut self.running {
            let _ = writeln!(running.input, "end {score}");
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::test_kill_process;

    use super::*;

    #[test]
    fn a_program_that_ends_after_each_game_is_started_for_the_next() {
        let engine = Engine::new("2x2".parse().unwrap(), exact2048_game::Spawn4::default());
        let mut player = External::start("read -r game; read -r question; echo left").unwrap();
        // Whether it has ended already when the next game begins, or is about to.
        for waits in [true, false, false, true, false, false] {
            player.begin(&engine).unwrap();
            assert_eq!(player.ask("move").unwrap().trim(), "left");
            if waits {
                player.running.as_mut().unwrap().child.wait().unwrap();
            }
        }
        // One that ends in a game has failed.
        player.begin(&engine).unwrap();
        player.ask("move").unwrap();
        assert!(matches!(player.ask("move"), Err(CommandError::Ended { .. })));
    }

    /// The shell is not all that a command starts.
    #[test]
    fn nothing_is_left_of_a_program_that_hangs() {
        let mut player = External::start("sleep 1000 & echo $!; wait").unwrap();
        let pid: i32 = player.ask("which").unwrap().trim().parse().unwrap();
        let sleeping = Pid::from_raw(pid).unwrap();
        assert!(test_kill_process(sleeping).is_ok());
        drop(player);
        // One that nobody has waited for yet is still known by its number.
        let is_over = || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z")
        };
        assert!((0..100).any(|_| is_over() || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }));
    }
}
