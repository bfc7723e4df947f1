//! Lanes are dealt to the members of an epoch by their work.

use exact2048_game::lane::lanes;
use exact2048_game::{Layer, Params};
use exact2048_solution::{LaneWork, assign};
use xxhash_rust::xxh3::xxh3_64;

/// The work of each member in each layer, and the work of each layer's largest lane.
fn loads(params: &Params, threads: &[u32]) -> (Vec<Vec<u64>>, Vec<u64>) {
    let (lanes, owners) = (lanes(params), assign(params, threads));
    let layers = params.last_layer().index() + 1;
    let (mut loads, mut largest) = (vec![vec![0; threads.len()]; layers], vec![0; layers]);
    for (&lane, work) in lanes.iter().zip(LaneWork::of_lanes(params, &lanes)) {
        for (layer, &work) in (work.first..).zip(&work.blocks) {
            loads[layer][owners.owner(lane)] += work;
            largest[layer] = work.max(largest[layer]);
        }
    }
    (loads, largest)
}

/// Lanes are dealt as evenly as their sizes allow. The busiest member has little more than the mean, or little more than
/// the largest lane of the layer.
#[test]
fn members_have_about_the_same_work_in_each_layer() {
    for (board, from) in [("4x3", Layer(1000)), ("5x2", Layer(1000)), ("3x3", Layer(200))] {
        let params = Params::small(board);
        for members in (2..=16).chain([64]) {
            let (loads, largest) = loads(&params, &vec![1; members]);
            let (mut busiest, mut least) = (0.0, 0.0);
            for (loads, largest) in loads.iter().zip(largest).skip(from.index()) {
                busiest += loads.iter().copied().max().unwrap_or_default() as f64;
                least += (loads.iter().sum::<u64>() as f64 / members as f64).max(largest as f64);
            }
            let most = if board == "4x3" { 1.15 } else { 1.2 };
            assert!(busiest <= most * least, "{board}, {members}: {} times the least", busiest / least);
        }
    }
}

/// Sectors divide the largest lanes, so that more members have about the same work. With one sector, the busiest of 8
/// members has 1.47 times the mean, and that of 16 members 2.6 times.
#[test]
fn sectors_make_the_work_even() {
    for (sectors, members, most) in [(3, 8, 1.15), (8, 4, 1.15), (8, 16, 1.15), (8, 64, 2.2)] {
        let params = Params::usual("4x3", "score").sectors(sectors).build().unwrap();
        let (loads, _) = loads(&params, &vec![1; members]);
        let (mut busiest, mut mean) = (0.0, 0.0);
        for loads in loads.iter().skip(Layer(1000).index()) {
            busiest += loads.iter().copied().max().unwrap_or_default() as f64;
            mean += loads.iter().sum::<u64>() as f64 / members as f64;
        }
        assert!(busiest <= most * mean, "{sectors} sectors, {members} members: {}", busiest / mean);
    }
}

#[test]
fn members_have_work_by_their_threads() {
    let params = Params::small("4x3");
    for threads in [vec![4, 2, 2], vec![3, 1], vec![1, 1, 2], vec![0, 1]] {
        let (loads, _) = loads(&params, &threads);
        let whole: u64 = loads.iter().flatten().sum();
        let all: u32 = threads.iter().map(|&n| n.max(1)).sum();
        for (member, &threads) in threads.iter().enumerate() {
            let has = loads.iter().map(|loads| loads[member]).sum::<u64>() as f64;
            let fair = whole as f64 * f64::from(threads.max(1)) / f64::from(all);
            assert!(has > 0.8 * fair && has < 1.2 * fair, "{member}: {has} instead of {fair}");
        }
    }
}

/// Members of one epoch must deal alike, so another dealing needs another version of the protocol
/// (`PROTOCOL_VERSION` in `coordinator/src/cluster/messages.rs`).
#[test]
fn the_dealing_of_this_version_of_the_protocol() {
    let hash = |board: &str, sectors: u8, threads: &[u32]| {
        let params = Params::small(board).to_builder().sectors(sectors).build().unwrap();
        let owners = assign(&params, threads);
        let owners = lanes(&params).into_iter().map(|lane| owners.owner(lane) as u8);
        xxh3_64(&owners.collect::<Vec<u8>>())
    };
    let dealt = [
        ("3x3", 1, &[1, 1][..]),
        ("5x2", 1, &[1, 3]),
        ("4x3", 1, &[32; 8]),
        ("4x3", 1, &[1; 64]),
        ("5x2", 4, &[1; 8]),
    ];
    assert_eq!(
        dealt.map(|(board, sectors, threads)| hash(board, sectors, threads)),
        [
            12_647_493_754_727_887_319,
            9_442_073_459_480_615_990,
            16_103_613_937_564_325_521,
            6_435_777_267_404_814_245,
            13_634_514_536_166_277_421,
        ]
    );
}
