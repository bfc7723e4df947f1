//! A player that asks an external program for each move, line by line.
//!
//! The protocol (`docs/players.md`): `game RxC` begins a game and `end SCORE` ends it. `move BOARD` asks for a move,
//! and the program answers with one line: `left`, `right`, `up` or `down`. Boards have the form that `query` accepts.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use exact2048_game::rules::Move;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{Player, PlayerError, Turn};
use crate::engine::Engine;

/// Timeout of a program's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest number of bytes to read of an answer.
const LONGEST_ANSWER: u64 = 4096;

/// Failure of an external program.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The program could not be started.
    #[error("cannot start {command:?}")]
    Start {
        /// The command.
        command: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The program ended, or closed its input or output.
    #[error("expected left, right, up or down from {command:?}, found the end of its output")]
    Ended {
        /// The command.
        command: String,
    },
    /// The program did not answer in time.
    #[error("expected left, right, up or down from {command:?} within {} s, found no answer", PATIENCE.as_secs())]
    Silent {
        /// The command.
        command: String,
    },
    /// The program's answer is not a move.
    #[error("expected left, right, up or down from {command:?}, found {answer:?}")]
    Answer {
        /// The command.
        command: String,
        /// First 60 characters of the answer.
        answer: String,
    },
}

/// A program that plays.
pub struct External {
    command: String,
    running: Option<Running>,
    /// Opening line of this game, until the program first answers; `None` if the program was restarted for this game.
    ///
    /// The program of the previous game may have ended without reading this line. A restarted program gets the line
    /// again.
    unheard: Option<String>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    /// Lines of the program's output. A separate thread reads the output, so a program that hangs cannot block the
    /// caller.
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

    /// Asks a question and reads one line as the answer. Restarts a program that ended before this game.
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

    /// Restarts a program that ended or failed, and begins a game.
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
            // The shell leads a new process group, so killing the group also kills the shell's children.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(failed(std::io::Error::other("no pipe to the program")));
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
        // Kills the program's children too, even if the program has already ended.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Player for External {
    fn begin(&mut self, engine: &Engine) -> Result<(), PlayerError> {
        let game = format!("game {}", engine.size());
        let is_announced =
            self.running.as_mut().is_some_and(|running| writeln!(running.input, "{game}").is_ok());
        if !is_announced {
            self.start_again(&game)?;
        }
        self.unheard = is_announced.then_some(game);
        Ok(())
    }

    fn choose(&mut self, turn: &mut Turn<'_>) -> Result<Move, PlayerError> {
        let question = format!("move {}", turn.board.to_text(turn.engine.size()));
        let chosen = self.ask(&question).and_then(|answer| self.direction(&answer));
        if chosen.is_err() {
            // The program's next line may be a late answer to this question.
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
        // When the next game begins, the program has ended or is about to end.
        for waits in [true, false, false, true, false, false] {
            player.begin(&engine).unwrap();
            assert_eq!(player.ask("move").unwrap().trim(), "left");
            if waits {
                player.running.as_mut().unwrap().child.wait().unwrap();
            }
        }
        // A program that ends during a game has failed.
        player.begin(&engine).unwrap();
        player.ask("move").unwrap();
        assert!(matches!(player.ask("move"), Err(CommandError::Ended { .. })));
    }

    /// The shell's children are killed too.
    #[test]
    fn a_hanging_program_is_killed_with_its_children() {
        let mut player = External::start("sleep 1000 & echo $!; wait").unwrap();
        let pid: i32 = player.ask("which").unwrap().trim().parse().unwrap();
        let sleeping = Pid::from_raw(pid).unwrap();
        assert!(test_kill_process(sleeping).is_ok());
        drop(player);
        // An ended process keeps its number until its parent waits for it.
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
