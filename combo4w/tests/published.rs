//! The published numbers; docs/combo.md has their sources.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use exact2048_combo4w::{
    ComboProblem, ComboSpace, ComboState, Decision, Draw, Drops, Field, Outlook, PIECES, Piece, Placements,
    Solution, ValueSummary, minimise, prune, solve,
};

const THREE: [u8; 4] = [3, 0, 0, 0];
const SIX: [u8; 4] = [3, 3, 0, 0];

fn moves(heights: [u8; 4], drops: Drops) -> Placements {
    Placements::from_field(Field::of_heights(heights), drops).unwrap()
}

fn solved(hold: bool, draw: Draw, previews: usize) -> (ComboSpace, Solution) {
    let first = Field::of_heights(THREE);
    let space = ComboSpace::new(ComboProblem { first, drops: Drops::Srs, hold, draw, previews }).unwrap();
    let solution = solve(&space, 1e-12, |_| true).unwrap();
    (space, solution)
}

/// Whether a published decimal number is in the interval, up to half a unit of its last digit.
fn agrees(published: &str, (low, high): (f64, f64)) -> bool {
    let value: f64 = published.parse().unwrap();
    let half = 0.5000001 * 10f64.powi(-(published.split_once('.').unwrap().1.len() as i32));
    low <= value + half && value - half <= high
}

fn assert_agrees(published: &str, solution: &Solution, (value, rounding): (f64, f64), what: &str) {
    assert!(
        agrees(published, solution.interval(value, rounding)),
        "{what}: {published} is published, {value} computed"
    );
}

fn mean_of(of: ValueSummary) -> (f64, f64) {
    (of.mean, of.mean_rounding)
}

#[test]
fn numbers_of_fields_placements_and_components_match_published_ones() {
    for (drops, placements) in [(Drops::Srs, 190), (Drops::Hard, 178), (Drops::Anywhere, 196)] {
        let moves = moves(THREE, drops);
        assert_eq!((moves.fields().len(), moves.placements()), (40, placements), "{drops:?}");
    }
    for (heights, fields, largest) in [(THREE, 40, 28), (SIX, 517, 356)] {
        let moves = moves(heights, Drops::Srs);
        assert_eq!(moves.fields().len(), fields);
        assert_eq!(moves.components().iter().map(Vec::len).max(), Some(largest));
    }
}

/// Results for random pieces by number of previews: mean and maximum over all states, mean over states with the first field.
#[rustfmt::skip]
const RANDOM: [&[(&str, &str, &str)]; 2] = [
    &[
        ("1.358966225", "3.009951", "1.9197391"),
        ("1.480119139", "5.006665", "2.2665119"),
        ("1.535061800", "6.719001", "2.4463217"),
        ("1.563772366", "8.304745", "2.5316155"),
    ],
    &[
        ("5.536883899", "13.880609", "8.5681512"),
        ("7.996027331", "22.625069", "12.6353771"),
        ("10.278174416", "31.439276", "16.5405956"),
        ("12.305426108", "39.826297", "20.0445987"),
    ],
];

#[test]
fn values_with_random_pieces_are_the_published_ones() {
    for (hold, rows) in [false, true].into_iter().zip(RANDOM) {
        for (previews, (mean, max, first)) in rows.iter().enumerate() {
            let (space, solution) = solved(hold, Draw::Random, previews);
            let what = format!("hold {hold}, {previews} previews");
            assert_agrees(mean, &solution, mean_of(solution.summary()), &what);
            assert_agrees(max, &solution, (solution.summary().max, 0.0), &what);
            assert_agrees(first, &solution, mean_of(solution.first_field(&space)), &what);
        }
    }
}

#[test]
fn values_with_bags_are_the_published_ones() {
    let published = [
        (false, 1, "1.490274398"),
        (false, 2, "1.525687005"),
        (false, 3, "1.537174769"),
        (true, 1, "20.496278"),
        (true, 2, "38.339572"),
        (true, 3, "76.151130"),
    ];
    for (hold, previews, mean) in published {
        let (_, solution) = solved(hold, Draw::Bag, previews);
        assert_agrees(
            mean,
            &solution,
            mean_of(solution.summary()),
            &format!("hold {hold}, {previews} previews"),
        );
    }
}

/// Lives are multiples of 2^-52, so integers can sum them without rounding.
#[test]
fn the_bound_of_a_mean_covers_the_roundings_of_its_sum() {
    let scaled = |number: f64| (number * 2f64.powi(52)) as i128;
    let mut rounded = 0;
    for (hold, previews) in [(false, 2), (true, 1), (true, 2)] {
        let (_, solution) = solved(hold, Draw::Random, previews);
        let (mean, rounding) = mean_of(solution.summary());
        let exact: i128 = solution.lives().map(scaled).sum();
        let states = solution.lives().count() as i128;
        let off = (scaled(mean + 1.0) * states - exact).abs();
        assert!(off <= scaled(rounding) * states, "hold {hold}, {previews} previews: {off}");
        rounded += i32::from(off > 0);
        let (low, high) = solution.interval(mean, rounding);
        let (least, most) = solution.interval(mean, 0.0);
        assert!(low < least && most < high && high - low < 1e-6);
    }
    assert!(rounded > 0, "no sum was rounded: the test shows nothing");
}

/// The same game, solved state by state, directly from the definition.
fn plainly(hold: bool) -> f64 {
    let moves = moves(THREE, Drops::Srs);
    let (fields, holds) = (moves.fields().len(), if hold { 7 } else { 1 });
    let index = |bag: usize, hold: usize, field: usize| (bag * holds + hold) * fields + field;
    let mut values = vec![0.0; 128 * holds * fields];
    loop {
        let mut change = 0.0_f64;
        for bag in 1..128_usize {
            for held in 0..holds {
                for field in 0..fields {
                    let mut sum = 0.0;
                    for drawn in (0..7).filter(|drawn| bag >> drawn & 1 == 1) {
                        let left = if bag == 1 << drawn { 127 } else { bag & !(1 << drawn) };
                        let mut best = 0.0_f64;
                        for &next in moves.next(field, PIECES[drawn]) {
                            best = best.max(1.0 + values[index(left, held, next)]);
                        }
                        for &next in moves.next(field, PIECES[held]).iter().filter(|_| hold) {
                            best = best.max(1.0 + values[index(left, drawn, next)]);
                        }
                        sum += best;
                    }
                    let value = sum / f64::from(bag.count_ones());
                    let old = std::mem::replace(&mut values[index(bag, held, field)], value);
                    change = change.max((value - old).abs());
                }
            }
        }
        if change < 1e-13 {
            return values.iter().sum::<f64>() / (127 * holds * fields) as f64;
        }
    }
}

/// For bags without previews, the published values of c4w are 1.635337731 and 10.731794. They are neither the mean over
/// these outlooks nor the mean over any mixture of levels.
#[test]
fn values_of_bags_without_previews_match_a_plain_iteration() {
    for (hold, on_record) in [(false, 1.635_337_731), (true, 10.731_794)] {
        let (space, solution) = solved(hold, Draw::Bag, 0);
        let (mean, rounding) = mean_of(solution.summary());
        let (low, high) = solution.interval(mean, rounding);
        let plain = plainly(hold);
        assert!(low - 1e-9 < plain && plain < high + 1e-9, "{low} {plain} {high}");
        let mut levels = [(0.0, 0); 8];
        for (state, value) in solution.values(&space) {
            let (sum, count) = &mut levels[state.outlook.bag.len()];
            *sum += value;
            *count += 1;
        }
        let largest = levels[1..].iter().map(|(sum, count)| sum / f64::from(*count)).fold(0.0, f64::max);
        assert!(largest < on_record - 0.05, "{largest}");
    }
}

#[test]
fn values_are_the_means_of_the_best_placements() {
    for (hold, draw, previews) in [(true, Draw::Bag, 2), (true, Draw::Random, 1), (false, Draw::Bag, 0)] {
        let (space, solution) = solved(hold, draw, previews);
        let mut checked = 0;
        for (state, value) in solution.values(&space).step_by(97) {
            let ComboState { field, hold, outlook } = state;
            let best = |drawn: usize| {
                let mut previews = outlook.previews.clone();
                previews.push(PIECES[drawn]);
                let current = previews.remove(0);
                let mut bag: Vec<_> = outlook.bag.clone();
                if draw == Draw::Bag {
                    bag.retain(|&piece| piece != PIECES[drawn]);
                }
                let bag = if bag.is_empty() { PIECES.to_vec() } else { bag };
                let decision = Decision { field, hold, current, outlook: Outlook { previews, bag } };
                let placements = solution.placements(&space, &decision).unwrap();
                placements.first().map_or(0.0, |best| best.value)
            };
            let sum: f64 = outlook.bag.iter().map(|piece| best(piece.index())).sum();
            assert!((value - sum / outlook.bag.len() as f64).abs() < 1e-9, "{field} {hold:?} {outlook:?}");
            checked += 1;
        }
        assert!(checked > 5);
    }
}

#[test]
fn values_have_the_same_bits_for_any_number_of_threads() {
    let bits = |threads: usize, draw: Draw, previews: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (space, solution) = solved(true, draw, previews);
            solution.values(&space).map(|(_, value)| value.to_bits()).collect::<Vec<u64>>()
        })
    };
    for (draw, previews) in [(Draw::Random, 3), (Draw::Bag, 2)] {
        assert_eq!(bits(1, draw, previews), bits(3, draw, previews));
    }
}

#[test]
fn every_decision_is_listed_once() {
    for (hold, draw, previews, count) in [
        (false, Draw::Random, 0, 40 * 7),
        (true, Draw::Random, 1, 40 * 7 * 7 * 7),
        // A state has a bag and the piece last drawn from the bag.
        (false, Draw::Bag, 0, 40 * 7 * 64),
    ] {
        let first = Field::of_heights(THREE);
        let space = ComboSpace::new(ComboProblem { first, drops: Drops::Srs, hold, draw, previews }).unwrap();
        let decisions: Vec<Decision> = space.decisions().collect();
        assert_eq!(decisions.len(), count);
        let distinct: std::collections::HashSet<String> =
            decisions.iter().map(|decision| format!("{decision:?}")).collect();
        assert_eq!(distinct.len(), count);
    }
}

/// Whether each state is in one class with its mirror image.
fn mirror_images_are_merged(space: &ComboSpace, class_of: &[u32]) -> bool {
    let mirrored = |state: &ComboState| {
        let pieces = |pieces: &[Piece]| pieces.iter().map(|piece| piece.mirrored()).collect::<Vec<_>>();
        let mut bag = pieces(&state.outlook.bag);
        bag.sort();
        let outlook = Outlook { previews: pieces(&state.outlook.previews), bag };
        ComboState { field: state.field.mirrored(), hold: state.hold.map(Piece::mirrored), outlook }
    };
    (0..space.len()).all(|node| {
        let image = space.node(&mirrored(&space.state_of(node as u32)));
        image.is_some_and(|image| class_of[image as usize] == class_of[node])
    })
}

#[test]
fn minimised_and_pruned_states_keep_their_values() {
    for (hold, draw, previews) in [
        (false, Draw::Random, 0),
        (false, Draw::Random, 2),
        (true, Draw::Random, 0),
        (true, Draw::Random, 1),
        (false, Draw::Bag, 0),
    ] {
        let (space, solution) = solved(hold, draw, previews);
        let lives: Vec<f64> = solution.lives().collect();
        let is_same = |class_of: &[u32], classes: &[f64]| {
            lives.iter().zip(class_of).all(|(lives, &class)| (lives - classes[class as usize]).abs() < 1e-9)
        };
        let minimised = minimise(&space);
        let classes = minimised.graph.lives(1e-13);
        assert!(is_same(&minimised.class_of, &classes), "hold {hold}, {draw:?}, {previews} previews");
        assert!(mirror_images_are_merged(&space, &minimised.class_of));

        let mut pruned = minimised.graph.clone();
        let gone = prune(&mut pruned, &classes);
        assert_eq!(pruned.edges() + gone, minimised.graph.edges());
        assert!(gone > 0);
        let again = minimise(&pruned);
        let classes = again.graph.lives(1e-13);
        let class_of: Vec<u32> =
            minimised.class_of.iter().map(|&class| again.class_of[class as usize]).collect();
        assert!(is_same(&class_of, &classes), "pruned: hold {hold}, {draw:?}, {previews} previews");
    }
}
