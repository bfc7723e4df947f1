//! The published numbers: J. Lees-Miller, "The Mathematics of 2048: Minimum Moves to Win with Markov Chains" (2017),
//! recomputed in fractions.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use exact2048_bag::{
    BigRational, Bounded, Chain, Exact, Extremes, Floating, absorption, extremes, moments, simulate, times,
};
use exact2048_game::Spawn4;

struct Row {
    target: u64,
    states: usize,
    absorbing: usize,
    /// Rounded to ten decimals.
    mean: &'static str,
    variance: &'static str,
    extremes: [u32; 4],
}

#[rustfmt::skip]
const PUBLISHED: [Row; 9] = [
    Row { target: 8, states: 12, absorbing: 5, mean: "3.5371000000", variance: "0.5066235900", extremes: [1, 4, 2, 3] },
    Row { target: 16, states: 27, absorbing: 7, mean: "8.1735537100", variance: "0.7764498197", extremes: [4, 9, 3, 4] },
    Row { target: 32, states: 56, absorbing: 10, mean: "16.4462809917", variance: "1.3173963527", extremes: [9, 18, 4, 5] },
    Row { target: 64, states: 112, absorbing: 12, mean: "31.9917355372", variance: "2.3992896660", extremes: [18, 35, 5, 6] },
    Row { target: 128, states: 223, absorbing: 15, mean: "62.0826446281", variance: "4.5630762926", extremes: [35, 68, 6, 7] },
    Row { target: 256, states: 442, absorbing: 18, mean: "121.2644628099", variance: "8.8906495458", extremes: [68, 133, 7, 8] },
    Row { target: 512, states: 878, absorbing: 21, mean: "238.6280991736", variance: "17.5457960522", extremes: [133, 262, 8, 9] },
    Row { target: 1024, states: 1748, absorbing: 23, mean: "472.3553719008", variance: "34.8560890650", extremes: [262, 519, 9, 10] },
    Row { target: 2048, states: 3487, absorbing: 26, mean: "938.8099173554", variance: "69.4766750905", extremes: [519, 1032, 10, 11] },
];

fn chain(target: u64) -> Chain {
    Chain::new(target, Spawn4::default()).unwrap()
}

/// Prints a fraction rounded to the nearest ten-digit decimal.
fn decimals(value: &BigRational) -> String {
    let scaled =
        (value * BigRational::from_integer(10_000_000_000_u64.into())).round().to_integer().to_string();
    let (whole, fraction) = scaled.split_at(scaled.len().saturating_sub(10));
    format!("{}.{fraction:0>10}", if whole.is_empty() { "0" } else { whole })
}

fn within(near: Bounded, exact: &BigRational) -> bool {
    let difference = BigRational::from_float(near.value).unwrap() - exact;
    let error = BigRational::from_float(near.error).unwrap();
    difference <= error && -difference <= error
}

#[test]
fn states_moments_and_extremes_match_published_ones() {
    for row in PUBLISHED {
        let chain = chain(row.target);
        let target = row.target;
        assert_eq!(chain.states().len() + 1, row.states, "with the empty bag, {target}");
        assert_eq!(chain.absorbing().count(), row.absorbing, "{target}");
        let exact = moments(&chain, &Exact::new(Spawn4::default()));
        assert_eq!(decimals(&exact.mean), row.mean, "{target}");
        assert_eq!(decimals(&exact.variance), row.variance, "{target}");
        let near = moments(&chain, &Floating::new(Spawn4::default()));
        for (near, exact) in [(near.mean, &exact.mean), (near.variance, &exact.variance)] {
            assert!(within(near, exact), "{target}: {near:?}");
            assert!(near.error <= 1e-9, "{target}: {near:?}");
        }
        let [min_moves, max_moves, min_cells, max_cells] = row.extremes;
        assert_eq!(extremes(&chain), Extremes { min_moves, max_moves, min_cells, max_cells }, "{target}");
    }
}

#[test]
fn only_the_published_variance_of_2048_has_round_off() {
    let near = moments(&chain(2048), &Floating::new(Spawn4::default())).variance;
    assert!((near.value - 69.476_675_090_499_28).abs() <= near.error && near.error < 1e-9, "{near:?}");
    assert!((near.value - 69.476_675_074_896_78).abs() > near.error);
}

#[test]
fn the_end_of_the_chain_matches_published_numbers() {
    #[rustfmt::skip]
    let by_sum = [
        (2066, "0.0352200445"), (2068, "0.3557224490"), (2070, "0.3678537976"), (2072, "0.1782018299"),
        (2074, "0.0516947155"), (2076, "0.0098826554"), (2078, "0.0012982032"), (2080, "0.0001185619"),
        (2082, "0.0000074299"), (2084, "0.0000003057"), (2086, "0.0000000075"), (2088, "0.0000000001"),
    ];
    let by_state = [
        ("2,2,8,8,2048", "0.347896"),
        ("2,4,16,2048", "0.290978"),
        ("2,2,4,16,2048", "0.141673"),
        ("2,4,8,8,2048", "0.076875"),
        ("2,4,4,16,2048", "0.039535"),
        ("2,4,4,8,2048", "0.035220"),
    ];
    let chain = chain(2048);
    let exact = absorption(&chain, &Exact::new(Spawn4::default()));
    let near = absorption(&chain, &Floating::new(Spawn4::default()));
    let sums: Vec<_> = exact.sums.iter().map(|(sum, p)| (*sum, decimals(p))).collect();
    assert_eq!(sums, by_sum.map(|(sum, p)| (sum, p.to_owned())));
    let mut states: Vec<_> = near.states.iter().map(|(bag, p)| (bag.to_string(), p.value)).collect();
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    let states: Vec<_> = states.into_iter().take(6).map(|(bag, p)| (bag, format!("{p:.6}"))).collect();
    assert_eq!(states, by_state.map(|(bag, p)| (bag.to_owned(), p.to_owned())));
    let one: BigRational = exact.states.iter().map(|(_, p)| p.clone()).sum();
    assert_eq!(one, BigRational::from_integer(1.into()));
    for ((bag, near), (_, exact)) in near.states.iter().zip(&exact.states) {
        assert!(within(*near, exact) && near.error <= 1e-12, "{bag}: {near:?}");
    }
}

#[test]
fn the_distribution_of_the_target_has_the_moments_of_the_equations() {
    for (target, spawn4) in [(8, "1/10"), (64, "1/10"), (2048, "1/10"), (512, "0"), (512, "1"), (256, "2/3")]
    {
        let spawn4: Spawn4 = spawn4.parse().unwrap();
        let chain = Chain::new(target, spawn4).unwrap();
        let times = times(&chain);
        let moments = moments(&chain, &Floating::new(spawn4));
        let last = times.tiles.last().unwrap();
        let total: f64 = last.probabilities.iter().sum();
        assert!((total - 1.0).abs() < 1e-11 && times.left_out < 1e-20, "{target} {spawn4}: {total}");
        assert!((last.mean() - moments.mean.value).abs() < 1e-8, "{target} {spawn4}");
        let deviation = moments.variance.sqrt();
        assert!(
            (last.standard_deviation() - deviation.value).abs() < 1e-7,
            "{target} {spawn4}: {deviation:?}"
        );
        let extremes = extremes(&chain);
        assert!(last.first >= extremes.min_moves);
        assert!(last.first + last.probabilities.len() as u32 - 1 <= extremes.max_moves);
    }
}

#[test]
fn times_of_smaller_tiles_match_their_own_chains() {
    let all = times(&chain(256));
    for (time, row) in all.tiles.iter().zip(&PUBLISHED) {
        let own = times(&chain(row.target));
        let own = own.tiles.last().unwrap();
        assert_eq!((time.exponent, time.first), (own.exponent, own.first));
        for (a, b) in time.probabilities.iter().zip(&own.probabilities) {
            assert!((a - b).abs() <= 1e-12 * a, "{}: {a} {b}", row.target);
        }
    }
}

#[test]
fn simulations_agree_and_depend_on_the_seed_alone() {
    let sample = simulate(7, Spawn4::default(), 200_000, 1);
    let exact = moments(&chain(128), &Floating::new(Spawn4::default()));
    // The tolerance is three times the half width at 95%. One seed in 10^8 exceeds it, and this seed does not.
    let (mean, variance) = (sample.mean(), sample.variance());
    assert!((mean.value - exact.mean.value).abs() < 3.0 * mean.half_width, "{mean:?}");
    assert!((variance.value - exact.variance.value).abs() < 3.0 * variance.half_width, "{variance:?}");
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(alone.install(|| simulate(7, Spawn4::default(), 200_000, 1)), sample);
    assert_ne!(simulate(7, Spawn4::default(), 200_000, 2), sample);
}

#[test]
fn spawns_of_one_kind_leave_one_path() {
    let only = |spawn4: &str| extremes(&Chain::new(1024, spawn4.parse().unwrap()).unwrap());
    assert_eq!(only("0"), Extremes { min_moves: 519, max_moves: 519, min_cells: 10, max_cells: 10 });
    assert_eq!(only("1"), Extremes { min_moves: 262, max_moves: 262, min_cells: 9, max_cells: 9 });
}

#[test]
fn invalid_targets_are_refused() {
    for tile in [0, 1, 2, 4, 12, 2047, 1 << 24, u64::MAX] {
        let error = Chain::new(tile, Spawn4::default()).unwrap_err();
        assert!(error.to_string().contains("power of two from 8 to 8388608"), "{error}");
    }
}

#[test]
#[ignore = "takes a minute"]
fn far_beyond_the_table() {
    let chain = chain(131_072);
    let near = moments(&chain, &Floating::new(Spawn4::default()));
    let exact = moments(&chain, &Exact::new(Spawn4::default()));
    assert!(within(near.mean, &exact.mean) && within(near.variance, &exact.variance));
}
