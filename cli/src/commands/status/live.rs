//! Live display of `status --watch` on a terminal: lines that are redrawn in place.

use std::collections::HashMap;
use std::io;
use std::time::Instant;

use exact2048_proto::v1::{Job, JobState, Pass, WatchResponse, Worker};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use terminal_size::{Height, terminal_size_of};

use crate::display::{bare_style, columns, cut, done, lines, paragraph};
use crate::job_view::{details, doing, headline, plain, share_done};
use crate::sparkline::Sparkline;
use crate::units;

/// Largest numbers of jobs and of workers in the display.
const JOBS_SHOWN: usize = 16;
const WORKERS_SHOWN: usize = 16;

/// Lines on a terminal, and the history of the rates of jobs.
pub struct Live {
    lines: MultiProgress,
    shown: Vec<ProgressBar>,
    begun: Instant,
    rates: HashMap<String, (Pass, Sparkline)>,
}

impl Live {
    /// Creates a display without lines.
    pub fn new() -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Self { lines, shown: Vec::new(), begun: Instant::now(), rates: HashMap::new() }
    }

    /// Shows the jobs, with running jobs first, and the workers.
    pub fn show(&mut self, message: &WatchResponse) {
        let WatchResponse { jobs, workers } = message;
        self.note_rates(jobs);
        let Some(columns) = columns() else { return };
        // Some terminals wrap after the last column.
        let columns = columns - 1;
        let (running, others): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().partition(|job| job.state() == JobState::Running);
        let in_order = running.into_iter().chain(others);
        let mut texts: Vec<String> =
            in_order.take(JOBS_SHOWN).flat_map(|job| self.lines_of(job, workers, columns)).collect();
        texts.extend(more(jobs.len(), JOBS_SHOWN, "job"));
        texts.extend(workers.iter().take(WORKERS_SHOWN).map(|worker| line_of(worker, columns)));
        texts.extend(more(workers.len(), WORKERS_SHOWN, "worker"));
        self.write(texts);
    }

    /// Shows that the coordinator does not answer. The rates are unknown until the next answer.
    pub fn lost(&mut self, text: &str) {
        self.rates.clear();
        let Some(columns) = columns() else { return };
        let lines = paragraph(text, columns - 1);
        self.write(lines.lines().map(|line| cut(line, columns - 1)).collect());
    }

    /// Clears the lines.
    pub fn clear(self) -> io::Result<()> {
        self.lines.clear()
    }

    /// Records the rates of jobs, separately for each pass.
    fn note_rates(&mut self, jobs: &[Job]) {
        let now = self.begun.elapsed();
        self.rates.retain(|name, _| jobs.iter().any(|job| job.name == *name));
        for job in jobs {
            let (pass, rates) =
                self.rates.entry(job.name.clone()).or_insert_with(|| (job.pass(), Sparkline::default()));
            if *pass != job.pass() {
                (*pass, *rates) = (job.pass(), Sparkline::default());
            }
            rates.add(job.states_per_second, now);
        }
    }

    fn lines_of(&self, job: &Job, workers: &[Worker], columns: usize) -> Vec<String> {
        let beside = |rate: String| match self.rates.get(&job.name) {
            Some((_, rates)) => rates.with_bars(&rate, Some(columns)),
            None => rate,
        };
        let parts: Vec<String> = headline(job, workers).into_iter().chain(details(job, beside)).collect();
        lines(&format!("{} {}", job.name, share_done(job, done(job.done, columns))), &parts, columns)
    }

    /// Replaces the lines on the terminal. Omits lines that do not fit.
    fn write(&mut self, mut texts: Vec<String>) {
        texts.truncate(rows().saturating_sub(1).max(1));
        while self.shown.len() > texts.len() {
            self.shown.pop().into_iter().for_each(|line| self.lines.remove(&line));
        }
        while self.shown.len() < texts.len() {
            let line = self.lines.add(ProgressBar::new_spinner());
            line.set_style(bare_style());
            self.shown.push(line);
        }
        self.shown.iter().zip(texts).for_each(|(line, text)| line.set_message(text));
    }
}

fn line_of(worker: &Worker, columns: usize) -> String {
    cut(&format!("  {} {}, {}", worker.id, doing(worker), plain(&worker.address)), columns)
}

/// Number of lines of the terminal on stderr; unlimited if unknown.
fn rows() -> usize {
    let size = terminal_size_of(io::stderr()).map(|(_, Height(rows))| usize::from(rows));
    size.filter(|&rows| rows > 0).unwrap_or(usize::MAX)
}

/// A line with the number of omitted jobs or workers.
fn more(all: usize, shown: usize, noun: &str) -> Option<String> {
    let left = all.saturating_sub(shown);
    let plural = if left == 1 { "" } else { "s" };
    (left > 0).then(|| format!("  and {} more {noun}{plural}", units::count(left)))
}
