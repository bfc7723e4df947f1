//! What `status --watch` shows on a terminal: lines that are written over and over.

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

/// Jobs and workers that are shown at most.
const JOBS_SHOWN: usize = 16;
const WORKERS_SHOWN: usize = 16;

/// Lines on a terminal, and how fast the jobs in them have been.
pub struct Live {
    lines: MultiProgress,
    shown: Vec<ProgressBar>,
    begun: Instant,
    rates: HashMap<String, (Pass, Sparkline)>,
}

impl Live {
    /// No lines yet.
    pub fn new() -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Self { lines, shown: Vec::new(), begun: Instant::now(), rates: HashMap::new() }
    }

    /// Shows jobs, those that are running first, and workers.
    pub fn show(&mut self, message: &WatchResponse) {
        let WatchResponse { jobs, workers } = message;
        self.note_rates(jobs);
        let Some(columns) = columns() else { return };
        // In the last column some terminals go on to the next line.
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

    /// The coordinator does not answer. How fast jobs are until it does again is not known.
    pub fn lost(&mut self, text: &str) {
        self.rates.clear();
        let Some(columns) = columns() else { return };
        let lines = paragraph(text, columns - 1);
        self.write(lines.lines().map(|line| cut(line, columns - 1)).collect());
    }

    /// Takes the lines away.
    pub fn clear(self) -> io::Result<()> {
        self.lines.clear()
    }

    /// Each pass of a job has a rate of its own.
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
            Some((_, rates)) => rates.beside(&rate, Some(columns)),
            None => rate,
        };
        let parts: Vec<String> = headline(job, workers).into_iter().chain(details(job, beside)).collect();
        lines(&format!("{} {}", job.name, share_done(job, done(job.done, columns))), &parts, columns)
    }

    /// Writes these lines in place of those that are there, as many as the terminal has.
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

/// Lines of the terminal that stderr is, or as many as there may be.
fn rows() -> usize {
    let size = terminal_size_of(io::stderr()).map(|(_, Height(rows))| usize::from(rows));
    size.filter(|&rows| rows > 0).unwrap_or(usize::MAX)
}

/// How many there are that are not shown.
fn more(all: usize, shown: usize, noun: &str) -> Option<String> {
    let left = all.saturating_sub(shown);
    let plural = if left == 1 { "" } else { "s" };
    (left > 0).then(|| format!("  and {} more {noun}{plural}", units::count(left)))
}
