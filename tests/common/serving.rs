//! A server process on a free port.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

use super::{Finished, command, exact2048, on_run, signal};

/// Longest time for a server to end. It exceeds the server's grace period for running requests.
const PATIENCE: Duration = Duration::from_secs(40);

/// A server process. It ends when the value is dropped.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: NamedTempFile,
    /// The URL for clients.
    pub url: String,
    /// The URL of the metrics, if requested.
    pub metrics: Option<String>,
    /// The URL of the page for browsers, if requested. It ends with a slash.
    pub page: Option<String>,
}

impl Server {
    /// Starts a server on any port of loopback.
    #[track_caller]
    pub fn start(run: &Path, options: &[&str]) -> Self {
        Self::start_with(run, options, &[])
    }

    /// Does the same as [`Self::start`], with environment variables.
    #[track_caller]
    pub fn start_with(run: &Path, options: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_on("127.0.0.1:0", run, options, variables)
    }

    /// Starts a server on any port of all addresses.
    #[track_caller]
    pub fn start_anywhere(run: &Path, options: &[&str]) -> Self {
        Self::start_on("0.0.0.0:0", run, options, &[])
    }

    #[track_caller]
    fn start_on(listen: &str, run: &Path, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let args = ["serve", "--run", run.to_str().unwrap(), "--listen", listen];
        Self::launch(&[&args, options].concat(), variables)
    }

    /// Starts any command that prints its listening address on stdout.
    #[track_caller]
    pub fn launch(args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn(command(args), variables)
    }

    /// Starts a command through another one. `prefix` is that command, and the program with its arguments follows.
    #[track_caller]
    pub fn launch_within(prefix: &[&str], args: &[&str]) -> Self {
        let mut outer = std::process::Command::new(prefix[0]);
        outer.args(&prefix[1..]).arg(env!("CARGO_BIN_EXE_exact2048")).args(args).stdin(Stdio::null());
        Self::spawn(outer, &[])
    }

    #[track_caller]
    fn spawn(mut command: std::process::Command, variables: &[(&str, &str)]) -> Self {
        let stderr = NamedTempFile::new().unwrap();
        command.env_remove("EXACT2048_TOKEN").envs(variables.iter().copied());
        command.stdout(Stdio::piped()).stderr(stderr.reopen().unwrap());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (mut metrics, mut page) = (None, None);
        let url = loop {
            let mut line = String::new();
            let read = stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "the server did not start: {}", text_of(&stderr));
            match line.trim_end().split_once(" on ") {
                Some(("metrics", url)) => metrics = Some(url.to_owned()),
                Some(("explorer" | "page", url)) => page = Some(url.to_owned()),
                Some(("listening", url)) => break url.to_owned(),
                _ => panic!("unexpected line {line:?}"),
            }
        };
        Self { child, stdout, stderr, url, metrics, page }
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.url.split("://").nth(1).unwrap().parse().unwrap()
    }

    /// The metrics, read in the same way as by Prometheus.
    #[track_caller]
    pub fn scrape(&self) -> String {
        let url = self.metrics.as_ref().unwrap();
        let address = url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// The log of the server so far.
    pub fn log(&self) -> String {
        text_of(&self.stderr)
    }

    /// The process id of the server.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub fn rss_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Whether the server still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        assert!(signal(self.child.id(), name));
    }

    /// Kills the server like `kill -9`, and waits for its end. The end releases the server's locks.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the server ends without a signal.
    #[track_caller]
    pub fn end(mut self) -> Finished {
        let begun = Instant::now();
        while self.runs() {
            assert!(begun.elapsed() < PATIENCE, "the server does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut stdout = Vec::new();
        self.stdout.read_to_end(&mut stdout).unwrap();
        let status = self.child.wait().unwrap();
        Finished::new(std::process::Output { status, stdout, stderr: self.log().into_bytes() })
    }

    /// Stops the server. It must end with success and must not have panicked.
    #[track_caller]
    pub fn stop(self) -> Finished {
        self.signal("TERM");
        self.end().exits(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if the server has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text_of(file: &NamedTempFile) -> String {
    let mut text = String::new();
    File::open(file.path()).unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Asks a run and its server for a board. Both must give the same answer.
pub fn answer_of_both(run: &Path, server: &Server, board: &str) -> serde_json::Value {
    let here = on_run(run, "query", &["--json", board]).exits(0);
    let there = exact2048(["query", "--server", &server.url, "--json", board]).exits(0);
    assert_eq!(here.stdout, there.stdout, "{board}");
    here.json()
}
