//! Chooses the kept layers under a disk limit, and estimates the effect on the time of solves and queries.

use anyhow::Result;
use exact2048_coordinator::{Forecast, ForecastTotals, PassCost, Workload, room};
use exact2048_game::{BoardSize, KeptLayers, Params, ValueStep};
use exact2048_solution::Phase;
use exact2048_worker::Tuning;

use crate::Failure;
use crate::job::kept_text;
use crate::units::{self, SizeUnits};

/// Periods that keep two layers each, ascending.
const PERIODS: [u32; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// Number of bytes reserved for the journal and unfinished shards, in addition to the usual headroom.
const WORK_BYTES: u64 = 256 << 10;

/// The kept layers that a limit allows.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The kept layers.
    pub kept: KeptLayers,
    /// Disk needs of the run.
    pub needs: ForecastTotals,
    /// Whether layers must be enumerated twice to stay within the limit.
    pub is_tight: bool,
    /// The next larger choice of layers, and the bytes that the larger choice needs.
    pub more: Option<(KeptLayers, u64)>,
    /// Step to which values are rounded.
    pub step: Option<ValueStep>,
}

/// Disk needs of a run under a limit for every choice of kept layers.
pub struct Choices {
    forecast: Forecast,
    limit_bytes: u64,
    /// Number of bytes of scratch files that can occupy the disk until the run is solved.
    scratch_bytes: u64,
    step: Option<ValueStep>,
}

/// Chooses what a new run stores under a disk limit: the kept layers unless `keep` gives them, and the step of rounded
/// values if it is open. The chosen step is the smallest with which the most layers are kept. Returns the parameters with
/// both. `scratch_bytes` is as in [`Choices::new`].
///
/// # Errors
///
/// A usage error with the smallest sufficient limit and the remedies.
pub fn choose(
    params: &Params,
    (keep, is_step_open): (Option<KeptLayers>, bool),
    limit_bytes: u64,
    scratch_bytes: u64,
) -> Result<(Params, Choice)> {
    let with_step = |step: Option<ValueStep>| -> Result<(Params, Choice)> {
        let params = params.to_builder().value_step(step).build()?;
        let choices = Choices::new(&params, limit_bytes, scratch_bytes);
        let choice = choices.choose(keep, params.game().board())?;
        Ok((params.to_builder().kept(choice.kept).build()?, choice))
    };
    if !is_step_open {
        return with_step(params.contents().value_step());
    }
    let steps = steps(params);
    // A choice that enumerates no layer twice is better than any other. Then more kept layers are better.
    let worth = |step: Option<ValueStep>| -> (bool, f64) {
        with_step(step).map_or((false, -1.0), |(_, choice)| (!choice.is_tight, choice.kept.share()))
    };
    let best = worth(steps.last().copied().flatten());
    let at = steps.partition_point(|&step| worth(step) < best);
    with_step(steps.get(at).or(steps.last()).copied().flatten())
}

/// The steps that a run may choose, ascending, after `None` for all bits.
fn steps(params: &Params) -> Vec<Option<ValueStep>> {
    let [least, _] = ValueStep::limits(params.game());
    let halves = std::iter::successors(Some(ValueStep::coarse(params.game())), |step| Some(step.half()));
    let mut steps: Vec<_> = halves.take_while(|&step| step >= least).map(Some).collect();
    steps.push(None);
    steps.reverse();
    steps
}

impl Choices {
    /// Choices for a run with these parameters. The kept layers in `params` are ignored. `scratch_bytes` is 0 if
    /// scratch files are on another disk.
    pub fn new(params: &Params, limit_bytes: u64, scratch_bytes: u64) -> Self {
        let forecast = Forecast::new(params, &Workload::new(params));
        Self { forecast, limit_bytes, scratch_bytes, step: params.contents().value_step() }
    }

    /// Number of bytes of scratch files that can occupy the disk until the run is solved.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch_bytes
    }

    /// Chooses these layers.
    ///
    /// # Errors
    ///
    /// The smallest sufficient limit.
    pub fn with(&self, kept: KeptLayers) -> Result<Choice, u64> {
        let needs = self.needs(kept);
        if needs.least_bytes > self.limit_bytes {
            return Err(needs.least_bytes);
        }
        let is_tight = needs.peak_bytes > self.limit_bytes;
        let of_more = candidates().filter(|more| more.share() > kept.share()).last();
        let more = of_more.map(|more| (more, self.needs(more).peak_bytes));
        Ok(Choice { kept, needs, is_tight, more, step: self.step })
    }

    /// Chooses the layers of `keep`, or the largest number of layers that fits.
    ///
    /// # Errors
    ///
    /// A usage error with the smallest sufficient limit and the remedies.
    pub fn choose(&self, keep: Option<KeptLayers>, board: BoardSize) -> Result<Choice, Failure> {
        let choice = keep.map_or_else(|| self.best(), |kept| self.with(kept));
        choice.map_err(|least| {
            let sizes = SizeUnits::of(self.limit_bytes);
            let scratch = match self.scratch_bytes {
                0 => String::new(),
                bytes => format!(
                    "; scratch files take {} because memory is short; give more --memory or more --disk",
                    sizes.at_least(bytes)
                ),
            };
            let remedy = match keep.map(|_| self.best()) {
                Some(Ok(other)) => format!(" with this --keep; --keep {} fits", other.kept),
                Some(Err(of_any)) if of_any < least => {
                    format!(" with this --keep, and {} with another", sizes.at_least(of_any))
                }
                Some(Err(_)) | None => String::new(),
            };
            let (limit, least) = (sizes.size(self.limit_bytes), sizes.at_least(least));
            Failure::usage(format!(
                "--disk {limit} is too small: {board} takes at least about {least}{remedy}{scratch}"
            ))
        })
    }

    /// Chooses the largest number of layers that fits. Prefers a choice that enumerates no layer twice.
    ///
    /// # Errors
    ///
    /// The smallest limit that suffices for any choice.
    pub fn best(&self) -> Result<Choice, u64> {
        let fits = |kept: &KeptLayers| self.needs(*kept).peak_bytes <= self.limit_bytes;
        let is_enough = |kept: &KeptLayers| self.needs(*kept).least_bytes <= self.limit_bytes;
        match candidates().find(fits).or_else(|| candidates().find(is_enough)) {
            Some(kept) => self.with(kept),
            None => Err(candidates().map(|kept| self.needs(kept).least_bytes).min().unwrap_or_default()),
        }
    }

    /// Disk needs of a run that keeps these layers, without headroom.
    pub fn takes(&self, kept: KeptLayers) -> ForecastTotals {
        let ForecastTotals { peak_bytes, least_bytes, end_bytes } = self.forecast.whole(kept);
        let [peak_bytes, least_bytes] = [peak_bytes, least_bytes].map(|bytes| bytes + self.scratch_bytes);
        ForecastTotals { peak_bytes, least_bytes, end_bytes }
    }

    /// Disk needs of a run that keeps these layers, with the headroom of a limit.
    pub fn needs(&self, kept: KeptLayers) -> ForecastTotals {
        let needs = self.takes(kept);
        // Enumerating twice does not always take less space.
        let least_bytes = needs.least_bytes.min(needs.peak_bytes);
        ForecastTotals {
            peak_bytes: room::with_headroom(needs.peak_bytes + WORK_BYTES),
            least_bytes: room::with_headroom(least_bytes + WORK_BYTES),
            ..needs
        }
    }
}

/// The possible choices, largest first.
pub fn candidates() -> impl Iterator<Item = KeptLayers> {
    let some = PERIODS.into_iter().filter_map(|period| KeptLayers::new(period, 2).ok());
    std::iter::once(KeptLayers::ALL).chain(some)
}

/// Thread seconds of a query of a state eight layers below the next stored ones, on a board of 10 cells and in the middle of
/// a game. Most of the time goes into reading stored values.
///
/// The time grows with a power of the number of layers, and by a factor with each further cell. All three constants were
/// measured on 5x2 and 4x3.
const CONE_SECONDS: f64 = 0.06;
const CONE_GROWTH: f64 = 4.0;
const CONE_GROWTH_A_CELL: f64 = 2.6;

/// Thread seconds for listing a state of a layer that is backed up whole.
const LISTED_SECONDS: f64 = 0.1e-6;

/// Largest number of listed states. More states would not fit into the memory or the cache.
const MOST_LISTED: f64 = 300e6;

/// Factor by which storing best moves lengthens a solve. Measured: 1.25 on 3x3 and 1.4 on 5x2.
const WITH_BEST_MOVES: f64 = 1.33;

/// Estimated average cost of the layers of a solve, and of the layers computed for a query.
#[derive(Clone, Copy, Debug)]
pub struct LayerCost {
    /// Average number of states of a layer.
    states: f64,
    layers: f64,
    /// Seconds to enumerate all layers, and to back them up.
    passes: [f64; 2],
    /// Factor by which best moves lengthen the solve. `passes` does not include this factor.
    longer: f64,
    threads: f64,
    cells: f64,
    /// Whether any values are stored.
    has_values: bool,
    /// Whether the cost was measured on this machine.
    is_measured: bool,
}

impl LayerCost {
    /// Cost of a run whose passes take these seconds on this machine.
    pub fn new(params: &Params, workload: &Workload, [up, down]: [f64; 2], threads: usize) -> Self {
        let layers = f64::from(params.last_layer().number() + 1);
        // A run that only enumerates has no downward pass.
        let down = if params.contents().enumerates_only() { 0.0 } else { down };
        Self {
            states: workload.whole_states() / layers,
            layers,
            passes: [up, down],
            longer: 1.0,
            threads: threads.max(1) as f64,
            cells: params.game().cells() as f64,
            has_values: !params.contents().enumerates_only(),
            is_measured: true,
        }
    }

    /// Cost of a run at the speed of the machine on which [`PassCost`] was measured.
    pub fn usual(params: &Params, workload: &Workload, tuning: Tuning, threads: usize) -> Self {
        let cost = PassCost::new(params, tuning.for_run(params).dense_rows);
        let seconds = [Phase::Enumerate, Phase::BackUp].map(|phase| cost.core_seconds(phase));
        let seconds = seconds.map(|seconds| seconds / threads.max(1) as f64);
        let cost = Self { is_measured: false, ..Self::new(params, workload, seconds, threads) };
        if params.contents().stores_best_moves() { cost.with_best_moves() } else { cost }
    }

    /// Adds the cost of best moves. `passes` must not include this cost already.
    pub fn with_best_moves(self) -> Self {
        Self { longer: WITH_BEST_MOVES, ..self }
    }

    /// Estimated seconds of the solve.
    pub fn solve_seconds(&self, enumerates_twice: bool) -> f64 {
        let [up, down] = self.passes;
        self.longer * (if enumerates_twice { 2.0 * up } else { up } + down)
    }

    /// Estimated seconds to query a state halfway between kept layers.
    ///
    /// Returns the smaller of two times, and at most the time of the solve. The first is the time for the state's cone.
    /// The second is the time to enumerate all layers between the kept layers, whose reach is no longer stored, and to
    /// back up the layers above the state.
    pub fn query_seconds(&self, kept: KeptLayers) -> f64 {
        let (period, above) = (f64::from(kept.period()), f64::from(kept.period()) / 2.0);
        let of_board = CONE_SECONDS * CONE_GROWTH_A_CELL.powf(self.cells - 10.0);
        let of_cone = of_board * (above / 8.0).powf(CONE_GROWTH) / self.threads;
        let [up, down] = self.passes;
        let listed = (self.states * above).min(MOST_LISTED) * LISTED_SECONDS / self.threads;
        let of_layers = (up * period + down * above) / self.layers + listed;
        of_cone.min(of_layers).min(up + down)
    }

    /// Describes the kept layers, the time of a query, the time of the solve, and the machine.
    fn text(&self, kept: KeptLayers, enumerates_twice: bool) -> String {
        let place = match self.is_measured {
            true => "at the speed measured here",
            false => "on cores as fast as AMD's Zen 5",
        };
        let solve = time_text(self.solve_seconds(enumerates_twice));
        if !self.has_values {
            return format!("{place} the solve takes {solve}");
        }
        let query = time_text(self.query_seconds(kept));
        let twice = if enumerates_twice { ", in which most layers are enumerated twice" } else { "" };
        format!(
            "layers whose values are kept: {}; {place} a query of a state halfway between them takes {query}, and the \
             solve {solve}{twice}",
            kept_text(kept, false)
        )
    }
}

/// An estimated time in words.
fn time_text(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 0.05 => "a few milliseconds".to_owned(),
        seconds if seconds < 0.95 => "less than a second".to_owned(),
        seconds => format!("about {}", units::about(seconds)),
    }
}

impl Choice {
    /// The choice in words.
    pub fn text(&self, limit_bytes: u64, layer_cost: &LayerCost) -> String {
        let ForecastTotals { peak_bytes, end_bytes, .. } = self.needs;
        let sizes = SizeUnits::of(limit_bytes);
        let peak = sizes.size(peak_bytes.min(limit_bytes));
        let (limit, end) = (sizes.size(limit_bytes), sizes.size(end_bytes));
        let mut text = format!(
            "note: this run takes at most about {peak} of the {limit} of --disk, and {end} in the end; {}",
            layer_cost.text(self.kept, self.is_tight)
        );
        if let Some(step) = self.step {
            text += &format!(
                "; values are rounded to multiples of {step}, so they are within {} of the exact ones",
                step.half()
            );
        }
        let more = self.more.map(|(kept, bytes)| (kept, sizes.at_least(bytes)));
        if let Some((kept, size)) = more.filter(|(_, size)| layer_cost.has_values && *size != limit) {
            text += &format!("; with {size} the run would keep {}", kept_text(kept, false));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::limits;

    fn choices(board: &str, limit_bytes: u64) -> Choices {
        Choices::new(&Params::small(board), limit_bytes, 0)
    }

    #[test]
    fn more_disk_keeps_more() {
        let mut periods = Vec::new();
        for limit in [60e6, 100e6, 200e6, 400e6, 1e9, 2.5e9, 5e9] {
            let choice = choices("5x2", limit as u64).best().unwrap();
            assert!(choice.needs.least_bytes <= limit as u64, "{choice:?}");
            assert!(
                choice.needs.end_bytes <= choice.needs.least_bytes
                    && choice.needs.end_bytes <= choice.needs.peak_bytes
            );
            if let Some((more, bytes)) = choice.more {
                assert!(more.share() > choice.kept.share() && bytes > choice.needs.end_bytes, "{choice:?}");
            }
            periods.push(choice.kept.period());
        }
        assert!(periods.is_sorted_by(|less, more| less >= more), "{periods:?}");
        assert_eq!(periods.last(), Some(&1), "all layers are kept");
        assert!(choices("5x2", 60_000_000).best().unwrap().is_tight, "reach alone takes 100 MB");
        assert!(!choices("5x2", 200_000_000).best().unwrap().is_tight);
    }

    /// The step of rounded values is the smallest with which the most layers are kept.
    #[test]
    fn a_limit_chooses_the_step() {
        let chosen = |step: Option<&str>, limit_bytes| {
            let params = Params::usual("5x2", "score").value_step(step.map(|step| step.parse().unwrap()));
            choose(&params.build().unwrap(), (None, step.is_none()), limit_bytes, 0).unwrap().1
        };
        let exact = choices("5x2", 500_000_000).best().unwrap();
        let open = chosen(None, 500_000_000);
        assert!(open.kept.share() > exact.kept.share(), "{open:?}, {exact:?}");
        assert_eq!(open.kept, chosen(Some("4"), 500_000_000).kept, "the largest step keeps no more");
        let less = open.step.unwrap().half().to_string();
        assert!(
            chosen(Some(&less), 500_000_000).kept.share() < open.kept.share(),
            "a smaller step keeps less"
        );
        assert_eq!(chosen(None, 5_000_000_000).step, None, "all bits fit");
        let open =
            choose(&Params::small("5x2"), (Some(KeptLayers::TWO_IN_FOUR), true), 1_200_000_000, 0).unwrap().1;
        assert!(open.kept == KeptLayers::TWO_IN_FOUR && open.step.is_some(), "{open:?}");
    }

    #[test]
    fn scratch_files_need_room_too() {
        let keeps = |scratch| {
            Choices::new(&Params::small("5x2"), 400_000_000, scratch)
                .best()
                .map(|choice| choice.kept.period())
        };
        assert!(keeps(250_000_000) > keeps(0), "{:?}, {:?}", keeps(250_000_000), keeps(0));
        assert!(keeps(400_000_000).is_err());
    }

    #[test]
    fn errors_name_scratch_files_that_do_not_fit() {
        let refused = |scratch_bytes| {
            let choices = Choices::new(&Params::small("3x3"), 1_000_000, scratch_bytes);
            choices.choose(None, "3x3".parse().unwrap()).unwrap_err().to_string()
        };
        let said = refused(4 << 20);
        assert!(
            said.contains("scratch files take 4.2 MB because memory is short; give more --memory"),
            "{said}"
        );
        assert!(!refused(0).contains("memory"), "{}", refused(0));
    }

    #[test]
    fn errors_state_the_smallest_limit() {
        let least = choices("5x2", 1_000_000).best().unwrap_err();
        assert!((8_000_000..60_000_000).contains(&least), "{least}");
        assert!(choices("5x2", least + least / 4).best().is_ok());
        let least = choices("5x2", 200_000_000).with(KeptLayers::TWO_IN_FOUR).unwrap_err();
        assert!((1_400_000_000..2_000_000_000).contains(&least), "{least}");
    }

    fn usual(params: &Params) -> LayerCost {
        LayerCost::usual(params, &Workload::new(params), limits::worker_tuning(2 << 30, 2), 2)
    }

    #[test]
    fn queries_take_longer_if_less_is_kept() {
        let costs = ["5x2", "4x3"].map(|board| usual(&Params::small(board)));
        let seconds = |cost: &LayerCost, period| cost.query_seconds(KeptLayers::new(period, 2).unwrap());
        let [small, large] = costs.each_ref().map(|cost| [16, 32, 128].map(|period| seconds(cost, period)));
        assert!((0.01..0.2).contains(&small[0]) && (2.0..10.0).contains(&small[2]), "{small:?}");
        // Half of the states of 4x3 in such layers take a server 0.2 s.
        assert!((0.1..0.4).contains(&large[0]), "{large:?}");
        assert!((2.0..30.0).contains(&large[1]) && (60.0..600.0).contains(&large[2]), "{large:?}");
        assert_eq!(time_text(costs[1].query_seconds(KeptLayers::TWO_IN_FOUR)), "a few milliseconds");
    }

    /// A query computes at most the layers of a solve. On 3x2, a solve takes a few milliseconds.
    #[test]
    fn no_query_takes_longer_than_the_solve() {
        for board in ["2x2", "3x2", "4x2", "3x3"] {
            let cost = usual(&Params::small(board));
            let solve = cost.solve_seconds(false);
            assert_eq!(cost.query_seconds(KeptLayers::STARTS), solve, "{board}");
            assert!(candidates().all(|kept| cost.query_seconds(kept) <= solve), "{board}: {cost:?}");
        }
        assert!(usual(&Params::small("3x2")).solve_seconds(true) < 0.5);
    }

    #[test]
    fn the_text_states_the_time_of_the_solve_and_the_machine() {
        let cost = usual(&Params::small("5x2"));
        let (once, twice) = (cost.solve_seconds(false), cost.solve_seconds(true));
        assert!((15.0..100.0).contains(&once) && (1.2..1.7).contains(&(twice / once)), "{once}, {twice}");
        let with_best_moves = usual(&Params::small("5x2").with_all_contents()).solve_seconds(false);
        assert!((1.2..1.45).contains(&(with_best_moves / once)), "{with_best_moves}, {once}");
        for (limit, enumerates_twice) in [(60_000_000, true), (200_000_000, false)] {
            let choice = choices("5x2", limit).best().unwrap();
            let seconds = cost.solve_seconds(enumerates_twice);
            let said = format!("and the solve about {}", units::about(seconds));
            let text = choice.text(limit, &cost);
            assert!(text.contains(&said) && text.contains("; on cores as fast as AMD's Zen 5"), "{text}");
            assert_eq!(text.contains("enumerated twice"), enumerates_twice, "{text}");
            let measured = LayerCost { is_measured: true, ..cost };
            let text = choice.text(limit, &measured);
            assert!(text.contains(&said) && text.contains("; at the speed measured here"), "{text}");
            assert!(!text.contains("Zen 5"), "{text}");
        }
    }
}
