//! Shows the progress of a run that this process solves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use exact2048_coordinator::{Pace, PassCost, Rate, is_enough};
use exact2048_game::Layer;
use exact2048_run::alone::{RunSolveError, SolveWatch};
use exact2048_run::member::CrewError;
use exact2048_solution::{LayerCounts, LayerRange, Phase, Run, Segment};
use exact2048_storage::Allowance;
use exact2048_text::with_causes;
use parking_lot::Mutex;

use crate::display::{self, ProgressLine};
use crate::sparkline::Sparkline;
use crate::units::SizeUnits;
use crate::{Failure, pass, units};

const INTERVAL: Duration = Duration::from_millis(100);

/// Time after which the display shows the time left even if little work is done.
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// Counters that tasks increment, and the thread that displays them.
pub struct ProgressDisplay {
    cost: Arc<PassCost>,
    counters: Arc<Counters>,
    course: Arc<Mutex<Course>>,
    begun: Instant,
    disk: Disk,
    /// Whether costs of layers are known. They are estimates for whole games on boards without stones. In other runs,
    /// the unit of work is a state, and the upward pass is of unknown length.
    has_costs: bool,
    display: Mutex<Option<JoinHandle<()>>>,
}

/// Disk use of the run.
#[derive(Clone)]
enum Disk {
    /// No limit. Contains the bytes of the shards that existed before this process.
    Any(u64),
    /// A limit.
    Limited(Arc<Allowance>),
}

impl Disk {
    /// Describes the current use, and the peak if there is a limit. This process wrote `written` bytes.
    fn text(&self, written: u64) -> String {
        match self {
            Self::Any(before) => format!("{} on disk", units::size(before + written)),
            Self::Limited(allowance) => {
                let sizes = SizeUnits::of(allowance.limit_bytes());
                format!(
                    "{} on disk, peak {} of {}",
                    sizes.size(allowance.taken_bytes()),
                    sizes.size(allowance.peak_bytes()),
                    sizes.size(allowance.limit_bytes())
                )
            }
        }
    }
}

#[derive(Default)]
struct Counters {
    states: AtomicU64,
    bytes: AtomicU64,
    layer: AtomicU32,
    finished: AtomicBool,
}

/// Work of this process and its pace.
#[derive(Default)]
struct Course {
    pace: Pace,
    /// Costs of the finished work, of the finished segments, and of all work.
    done: f64,
    finished: f64,
    all: f64,
}

impl Course {
    /// Begins a segment with this work in it and after it, 0 if unknown.
    fn begin(&mut self, work: f64) {
        self.all = self.finished + work;
    }

    /// Records the cost of the finished work at the time `now`.
    fn reach(&mut self, done: f64, now: Duration) {
        self.pace.add((done - self.done).max(0.0), now);
        self.done = self.done.max(done);
    }

    /// Estimated time for some of the work; `None` if too little is done for an estimate.
    fn time_for(&self, work: f64, now: Duration) -> Option<Duration> {
        (is_enough(self.done, self.all) || now >= LONG_ENOUGH).then(|| self.pace.time_for(work, now))?
    }
}

/// The current segment.
struct Task {
    segment: Segment,
    cost: Arc<PassCost>,
    /// The pass of the segment.
    pass: PassWork,
    rate: Rate,
    /// The rate since the segment began.
    history: Sparkline,
    /// States already included in the rate.
    counted: u64,
    /// States of this segment and the rest of its pass; `None` if the work is measured by costs.
    states: Option<PassStates>,
}

/// Number of missing states of a pass; `None` if they are not enumerated yet.
type PassStates = Option<u64>;

impl Task {
    /// The finished work of the segment, up to a layer with this number of states.
    fn finished(&self, layer: Layer, states: u64) -> f64 {
        if self.states.is_some() { states as f64 } else { self.cost.of_finished(self.segment, layer) }
    }

    /// The finished share of the pass; `None` if unknown.
    fn share(&self, finished: f64) -> Option<f64> {
        match self.states {
            None => Some(self.pass.share(finished)),
            Some(left) => left.map(|left| {
                let before = self.pass.states as f64;
                ((before + finished) / (before + left as f64).max(1.0)).min(1.0)
            }),
        }
    }

    /// The work that is left in the pass; `None` if unknown.
    fn left(&self, finished: f64) -> Option<f64> {
        match self.states {
            None => Some(self.cost.of(self.segment) - finished + self.pass.later),
            Some(left) => left.map(|left| (left as f64 - finished).max(0.0)),
        }
    }
}

/// A pass at the start of one of its segments. `done`, `all` and `later` are costs.
struct PassWork {
    done: f64,
    all: f64,
    /// Numbers of finished states, and of counted states that are missing.
    states: u64,
    missing_states: u64,
    /// Cost of the pass's segments after the current one.
    later: f64,
}

impl PassWork {
    /// Derives the pass of a segment from the later segments and the known counts of layers.
    fn new(segment: Segment, later: &[Segment], counts: &[LayerCounts], cost: &PassCost) -> Self {
        let later: Vec<Segment> = later.iter().copied().filter(|part| part.phase == segment.phase).collect();
        let missing = [&[segment], later.as_slice()].concat();
        let is_missing = |layer: Layer| missing.iter().any(|part| (part.first..=part.last).contains(&layer));
        let (missing_counts, there): (Vec<&LayerCounts>, Vec<_>) =
            counts.iter().partition(|counts| is_missing(counts.layer));
        let left = cost.left(&missing);
        Self {
            done: left.whole_pass - left.of_pass,
            all: left.whole_pass,
            states: there.iter().map(|counts| counts.states).sum(),
            missing_states: missing_counts.iter().map(|counts| counts.states).sum(),
            later: left.of_pass - cost.of(segment),
        }
    }

    /// Finished share of the pass after `more` work.
    fn share(&self, more: f64) -> f64 {
        if self.all > 0.0 { ((self.done + more) / self.all).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl ProgressDisplay {
    /// Creates the counters of a run that stores the transitions of classes of up to `dense_rows` rows. The display starts
    /// later.
    pub fn of(run: &Run, dense_rows: usize) -> Self {
        let shards = run.catalog().shards();
        let before = shards.iter().map(|shard| shard.record.bytes).sum();
        let limited = run.dir().allowance().cloned().map(Disk::Limited);
        let cost = PassCost::new(run.params(), dense_rows);
        Self::new(cost, limited.unwrap_or(Disk::Any(before)), run.params().game().is_whole())
    }

    fn new(cost: PassCost, disk: Disk, has_costs: bool) -> Self {
        let mut course = Course::default();
        course.pace.resume(Duration::ZERO);
        Self {
            cost: Arc::new(cost),
            counters: Arc::default(),
            course: Arc::new(Mutex::new(course)),
            begun: Instant::now(),
            disk,
            has_costs,
            display: Mutex::default(),
        }
    }

    /// Layers that must be backed up again after an interruption. These layers are not kept, so their values are not
    /// committed.
    pub fn layers_to_repeat(&self, run: &Run) -> Option<LayerRange> {
        let next = *run.missing().first().filter(|next| next.phase == Phase::BackUp)?;
        let first = Layer(self.counters.layer.load(Ordering::Relaxed)).up(1);
        (next.first..=next.last).contains(&first).then_some(LayerRange { first, last: next.last })
    }

    fn task(&self, segment: Segment, later: &[Segment], states: &[LayerCounts]) -> Task {
        let pass = PassWork::new(segment, later, states, &self.cost);
        let mut rate = Rate::default();
        rate.begin(self.begun.elapsed());
        let cost = Arc::clone(&self.cost);
        let known = (segment.phase == Phase::BackUp).then_some(pass.missing_states);
        let states = (!self.has_costs).then_some(known);
        Task { segment, cost, pass, rate, history: Sparkline::default(), counted: 0, states }
    }

    /// The work of a segment and of all later ones; 0 if unknown.
    fn work(&self, task: &Task, later: &[Segment]) -> f64 {
        match task.states {
            None => self.cost.of(task.segment) + later.iter().map(|&part| self.cost.of(part)).sum::<f64>(),
            Some(left) => left.unwrap_or(0) as f64,
        }
    }
}

/// Shows the progress of each segment.
impl SolveWatch for ProgressDisplay {
    fn begins(&self, segment: Segment, later: &[Segment], states: &[LayerCounts]) {
        self.counters.states.store(0, Ordering::Relaxed);
        self.counters.finished.store(false, Ordering::Relaxed);
        let layer = if segment.phase == Phase::Enumerate { segment.first } else { segment.last };
        self.counters.layer.store(layer.0, Ordering::Relaxed);
        let (counters, course, begun) = (Arc::clone(&self.counters), Arc::clone(&self.course), self.begun);
        let disk = self.disk.clone();
        let mut task = self.task(segment, later, states);
        course.lock().begin(self.work(&task, later));
        let thread = std::thread::spawn(move || {
            let line = ProgressLine::with_share_of(segment.phase.name(), pass::way(segment.phase));
            while !counters.finished.load(Ordering::Relaxed) {
                std::thread::park_timeout(INTERVAL);
                let mut course = course.lock();
                let (share, mut parts) =
                    describe(&counters, &mut task, &mut course, begun.elapsed(), line.columns());
                drop(course);
                parts.push(disk.text(counters.bytes.load(Ordering::Relaxed)));
                line.show(share, &parts);
            }
            line.finish();
            let mut course = course.lock();
            // The segment ends early if a shard must be recomputed first.
            let layer = Layer(counters.layer.load(Ordering::Relaxed));
            course.finished += task.finished(layer, counters.states.load(Ordering::Relaxed));
        });
        *self.display.lock() = Some(thread);
    }

    fn progressed(&self, states: u64, frontier: Layer) {
        self.counters.states.fetch_add(states, Ordering::Relaxed);
        self.counters.layer.store(frontier.0, Ordering::Relaxed);
    }

    fn written(&self, bytes: u64) {
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn ends(&self) {
        self.counters.finished.store(true, Ordering::Relaxed);
        let thread = self.display.lock().take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            // A panic of the display does not stop the run.
            let _ = thread.join();
        }
    }

    fn repeats(&self, error: &CrewError) {
        display::print_note(&format!("warning: {}; recomputing it", with_causes(error)));
    }
}

/// The error of an unfinished solve, with the layers that must be backed up again.
pub fn unsolved(error: RunSolveError, repeated: Option<LayerRange>) -> anyhow::Error {
    match error {
        RunSolveError::Stopped(place) => {
            let repeated = repeated.map_or(String::new(), |LayerRange { first, last }| {
                let [first, last] = [first, last].map(|layer| units::count(layer.0));
                format!("; it will resume from stored values and back up layers {first} to {last} again")
            });
            let what = format!("stopped; {place} is intact, repeat the command to resume it{repeated}");
            Failure::interrupted(what).into()
        }
        RunSolveError::OverDisk { limit_bytes, needed_bytes } => Failure::usage(format!(
            "--disk {} is too small: the rest of this run needs at least {}; commits are safe, repeat the command with a \
             larger limit to resume",
            SizeUnits::of(limit_bytes).size(limit_bytes),
            SizeUnits::of(limit_bytes).at_least(needed_bytes),
        ))
        .into(),
        RunSolveError::Crew(error) => error.into(),
        RunSolveError::Run(error) => error.into(),
    }
}

/// Returns the finished share of the pass, if known, and further texts. The most important texts come first, because terminals can be
/// narrow. With `columns`, the texts include a sparkline of the rate.
fn describe(
    counters: &Counters,
    task: &mut Task,
    course: &mut Course,
    now: Duration,
    columns: Option<usize>,
) -> (Option<f64>, Vec<String>) {
    let states = counters.states.load(Ordering::Relaxed);
    let layer = Layer(counters.layer.load(Ordering::Relaxed));
    let finished = task.finished(layer, states);
    course.reach(course.finished + finished, now);
    task.rate.add(states.saturating_sub(task.counted) as f64, now);
    task.counted = states;
    let rate = task.rate.per_second(now);
    task.history.add(rate, now);
    let time_for = |work: f64| course.time_for(work, now).map(|left| left.as_secs_f64());
    let of_pass = task.left(finished).and_then(time_for);
    let parts = vec![
        pass::time_left(of_pass, time_for(course.all - course.done)),
        format!("layer {} of {}", units::count(layer.0), units::count(task.segment.last.0)),
        task.history.with_bars(&units::rate(rate), columns),
        format!("{} states", units::count(task.pass.states + states)),
    ];
    (task.share(finished), parts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

    use super::*;
    use exact2048_game::Params;
    use exact2048_solution::{Holdings, Recipe};

    #[test]
    fn the_time_left_follows_the_remaining_work() {
        let params = Params::small("3x3");
        let segments = Recipe::new(&params, &Holdings::default()).steps();
        let cost = cost(&params);
        let progress = ProgressDisplay::new(cost.clone(), Disk::Any(0), true);
        let mut course = progress.course.lock();
        let mut up = progress.task(segments[0], &segments[1..], &[]);
        course.begin(progress.work(&up, &segments[1..]));
        let mut print_note = |task: &mut Task, layer: u32, states: u64, seconds: f64| {
            progress.counters.layer.store(layer, Ordering::Relaxed);
            progress.counters.states.store(states, Ordering::Relaxed);
            let said =
                describe(&progress.counters, task, &mut course, Duration::from_secs_f64(seconds), None);
            (said.0.unwrap(), said.1.join(", "))
        };
        assert!(print_note(&mut up, 4, 0, 0.0).1.starts_with("time left unknown, layer 4 of 2,044"));
        // Layers take time in proportion to their cost, 200 s in total.
        let [whole, later] = [Phase::Enumerate, Phase::BackUp].map(|phase| cost.of_pass(phase));
        let seconds = |layer| 200.0 * cost.of_layers(Phase::Enumerate, Layer(4), Layer(layer)) / whole;
        let middle = (4..=2044).step_by(2).find(|&layer| seconds(layer) >= 100.0).unwrap();
        let mut share = 0.0;
        for layer in (6..=middle).step_by(2) {
            let (done, line) = print_note(&mut up, layer, u64::from(layer), seconds(layer));
            share = done;
            assert_eq!(line.contains("unknown"), done < 0.01 * (whole + later) / whole, "{line}");
        }
        assert!((0.49..0.51).contains(&share), "half of the work is below layer {middle}, not {share}");
        let (_, line) = print_note(&mut up, middle, middle.into(), seconds(middle));
        let left = 200.0 * (1.0 - share + later / whole);
        assert!(line.contains(&format!("; whole job {}, layer ", units::about(left))), "{line}, not {left}");
        assert!(line.contains(" of 2,044") && line.starts_with("1 min 4"), "{line}");
    }

    fn cost(params: &Params) -> PassCost {
        PassCost::new(params, 1 << 18)
    }

    #[test]
    fn a_resumed_run_shows_the_whole_pass() {
        let params = Params::small("3x3");
        let progress = ProgressDisplay::new(cost(&params), Disk::Any(0), true);
        let segment = |phase, first, last| Segment { phase, first: Layer(first), last: Layer(last) };
        let counts = [(1018, 700), (1020, 200), (1022, 100)].map(|(layer, states)| LayerCounts {
            layer: Layer(layer),
            states,
            afterstates: 1,
        });
        let mut course = progress.course.lock();
        let mut print_note = |mut task: Task, states: u64| {
            progress.counters.states.store(states, Ordering::Relaxed);
            let (share, parts) = describe(&progress.counters, &mut task, &mut course, Duration::ZERO, None);
            (share.unwrap(), parts[3].clone())
        };

        progress.counters.layer.store(1024, Ordering::Relaxed);
        let later = [segment(Phase::BackUp, 4, 2044)];
        let (share, states) =
            print_note(progress.task(segment(Phase::Enumerate, 1024, 2044), &later, &counts), 0);
        let of_layers = |phase, first, end| progress.cost.of_layers(phase, Layer(first), Layer(end));
        let [whole, later_whole] =
            [Phase::Enumerate, Phase::BackUp].map(|phase| progress.cost.of_pass(phase));
        let below = of_layers(Phase::Enumerate, 4, 1024) / whole;
        assert!(below > 0.3 && (share - below).abs() < 1e-9, "{share}, of which {below} was there");
        assert_eq!(states, "1,000 states");

        let later = [segment(Phase::BackUp, 4, 1018)];
        progress.counters.layer.store(1020, Ordering::Relaxed);
        let (share, states) =
            print_note(progress.task(segment(Phase::BackUp, 1020, 1020), &later, &counts), 50);
        let above = of_layers(Phase::BackUp, 1022, 2046) / later_whole;
        assert!(above > 0.3 && (share - above).abs() < 1e-9, "{share}, of which {above} was there");
        assert_eq!(states, "150 states");
    }

    #[test]
    fn the_downward_pass_has_its_own_cost() {
        let params = Params::small("3x3");
        let segments = Recipe::new(&params, &Holdings::default()).steps();
        let progress = ProgressDisplay::new(cost(&params), Disk::Any(0), true);
        let mut course = progress.course.lock();
        let mut down = progress.task(segments[1], &[], &[]);
        course.begin(progress.work(&down, &[]));
        let whole = progress.cost.of_pass(Phase::BackUp);
        for layer in (800..2044).rev().step_by(2) {
            progress.counters.layer.store(layer, Ordering::Relaxed);
            let done = progress.cost.of_finished(segments[1], Layer(layer)) / whole;
            let now = Duration::from_secs_f64(80.0 * done);
            let (share, parts) = describe(&progress.counters, &mut down, &mut course, now, None);
            let share = share.unwrap();
            assert!((share - done).abs() < 1e-9, "{share} at layer {layer}, not {done}");
            // No pass follows.
            assert!(!parts[0].contains("whole job"), "{}", parts[0]);
            if done >= 0.02 {
                let left: u64 = parts[0].split(' ').find_map(|word| word.parse().ok()).unwrap();
                let left = if parts[0].contains("min") { 60 * left } else { left };
                assert!((left as f64 - 80.0 * (1.0 - done)).abs() <= 21.0, "{} at {done}", parts[0]);
            }
        }
    }

    /// The number of states of a formation is unknown before its upward pass ends.
    #[test]
    fn a_run_without_costs_counts_states() {
        let params = Params::usual("2x3:..x/...", "reach:16").build().unwrap();
        let progress = ProgressDisplay::new(cost(&params), Disk::Any(0), false);
        let segment = |phase, first, last| Segment { phase, first: Layer(first), last: Layer(last) };
        let (up, down) = (segment(Phase::Enumerate, 4, 40), segment(Phase::BackUp, 4, 36));
        let counts = [(30, 300), (34, 500), (38, 200)].map(|(layer, states)| LayerCounts {
            layer: Layer(layer),
            states,
            afterstates: 1,
        });
        let mut course = progress.course.lock();
        let mut show = |task: &mut Task, work: f64, states: u64, seconds: u64| {
            course.begin(work);
            progress.counters.states.store(states, Ordering::Relaxed);
            let (share, parts) =
                describe(&progress.counters, task, &mut course, Duration::from_secs(seconds), None);
            (share, parts[0].clone())
        };
        let mut task = progress.task(up, &[down], &[]);
        let work = progress.work(&task, &[down]);
        let unknown = (None, "time left unknown".to_owned());
        assert_eq!(
            [show(&mut task, work, 100, 1), show(&mut task, work, 900, 100)],
            [unknown.clone(), unknown]
        );
        let mut task = progress.task(down, &[], &counts);
        let work = progress.work(&task, &[]);
        assert_eq!((work, show(&mut task, work, 0, 100).0), (800.0, Some(0.2)));
        let (share, left) = show(&mut task, work, 400, 140);
        assert!(share == Some(0.6) && left != "time left unknown" && !left.contains("whole job"), "{left}");
    }
}
