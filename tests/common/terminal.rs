//! The program on a terminal of a given width, as a user sees it.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::command;

/// Number of rows. It exceeds the output of every tested command, so no line scrolls away.
const ROWS: u16 = 300;

/// Pause after which a picture is complete. A terminal passes one write on in several pieces.
const SETTLED: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The screen and all wrapped lines so far.
struct Screen {
    parser: vt100::Parser,
    /// The last complete picture.
    now: String,
    /// Wrapped lines, each as first seen.
    wrapped: Vec<String>,
    /// All complete pictures so far, without consecutive repeats.
    shown: Vec<String>,
}

/// A command that runs on a terminal.
pub struct Terminal {
    child: Child,
    screen: Arc<Mutex<Screen>>,
    reader: JoinHandle<()>,
}

/// The final screen of a command.
pub struct Seen {
    pub status: ExitStatus,
    /// The final screen.
    pub screen: String,
    /// All complete pictures during the command, without repeats.
    pub shown: Vec<String>,
    /// Lines that were wrapped.
    pub wrapped: Vec<String>,
}

impl Terminal {
    /// Starts the program on a terminal with this number of columns.
    pub fn start(columns: u16, args: &[&str]) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let side = || open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let (stdin, stdout, stderr): (OwnedFd, OwnedFd, OwnedFd) = (side(), side(), side());
        tcsetwinsize(&stdin, Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let mut command = command(args);
        command.stdin(stdin).stdout(stdout).stderr(stderr).env("TERM", "xterm");
        let child = command.spawn().unwrap();
        // The command holds the terminal. Without this drop, reading would not end with the program.
        drop(command);
        let parser = vt100::Parser::new(ROWS, columns, 0);
        let screen = Arc::new(Mutex::new(Screen {
            parser,
            now: String::new(),
            wrapped: Vec::new(),
            shown: Vec::new(),
        }));
        let of_reader = Arc::clone(&screen);
        let mut main = File::from(main);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails after the other side is closed.
            while let Ok(length @ 1..) = main.read(&mut bytes) {
                of_reader.lock().unwrap().parser.process(&bytes[..length]);
                if poll(&mut [PollFd::new(&main, PollFlags::IN)], Some(&SETTLED)).unwrap() == 0 {
                    of_reader.lock().unwrap().look();
                }
            }
            of_reader.lock().unwrap().look();
        });
        Self { child, screen, reader }
    }

    /// The last complete picture.
    pub fn now(&self) -> String {
        self.screen.lock().unwrap().now.clone()
    }

    /// Waits until the screen meets a condition.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.now()) {
            assert!(begun.elapsed() < Duration::from_secs(120), "never {what}: {}", self.now());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills the program, and returns its last screen.
    pub fn stop(mut self) -> Seen {
        self.child.kill().unwrap();
        self.end()
    }

    /// Waits until the program has ended.
    pub fn end(mut self) -> Seen {
        let status = self.child.wait().unwrap();
        self.reader.join().unwrap();
        let screen = self.screen.lock().unwrap();
        let (shown, wrapped) = (screen.shown.clone(), screen.wrapped.clone());
        Seen { status, screen: screen.now.clone(), shown, wrapped }
    }
}

impl Screen {
    /// Notes the picture, which is complete.
    fn look(&mut self) {
        let screen = self.parser.screen();
        let columns = screen.size().1;
        for (row, text) in screen.rows(0, columns).enumerate() {
            // Spaces fill the lines of a live display up to the last column.
            let is_full = text.trim_end().chars().count() >= usize::from(columns);
            if screen.row_wrapped(row as u16) && is_full && !self.wrapped.contains(&text) {
                self.wrapped.push(text);
            }
        }
        self.now = screen.contents();
        if self.shown.last() != Some(&self.now) {
            self.shown.push(self.now.clone());
        }
    }
}

/// Runs the program to its end on a terminal with this number of columns.
pub fn on_terminal(columns: u16, args: &[&str]) -> Seen {
    Terminal::start(columns, args).end()
}
