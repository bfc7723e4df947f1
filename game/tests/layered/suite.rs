//! Checks of the laws, and a slow solver that relies only on the laws.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use exact2048_game::layered::LayeredGame;

/// Law of a layered game.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    Layers,
    Spawns,
    Symmetries,
    Potential,
    Lanes,
}

/// Returns the law as an error unless it holds.
fn require(holds: bool, law: Law) -> Result<(), Law> {
    if holds { Ok(()) } else { Err(law) }
}

/// Checks all laws on all reachable boards. Returns the number of states and afterstates.
pub fn check<G: LayeredGame>(game: &G) -> Result<usize, Law> {
    let (mut open, mut checked) = (BTreeMap::<u32, BTreeSet<G::Board>>::new(), 0);
    require(game.spawns().iter().all(|spawn| spawn.rise >= 1), Law::Layers)?;
    for start in game.starts() {
        open.entry(game.layer(start)).or_default().insert(start);
    }
    while let Some((layer, states)) = open.pop_first() {
        require(layer <= game.last_layer(), Law::Layers)?;
        let mut afterstates = BTreeSet::new();
        for &state in &states {
            check_state(game, state)?;
            afterstates.extend(game.moves(state).into_iter().map(|(after, _)| after));
        }
        checked += states.len() + afterstates.len();
        for after in afterstates.into_iter().filter(|&after| !game.is_won(after)) {
            check_afterstate(game, after)?;
            for kind in 0..game.spawns().len() {
                for state in game.spawned(after, kind) {
                    open.entry(game.layer(state)).or_default().insert(state);
                }
            }
        }
    }
    Ok(checked)
}

/// Checks the laws of moves.
fn check_state<G: LayeredGame>(game: &G, state: G::Board) -> Result<(), Law> {
    let (lane, targets) = (game.lane(state), game.target_lanes(game.lane(state)));
    require(!targets.contains(&lane), Law::Lanes)?;
    for (after, score) in game.moves(state) {
        require(game.layer(after) == game.layer(state), Law::Layers)?;
        require(game.potential(after) == game.potential(state) + score, Law::Potential)?;
        let target = game.lane(after);
        require(target == lane || targets.contains(&target), Law::Lanes)?;
    }
    check_images(game, state, |board| {
        let moves = game.moves(board).into_iter();
        moves.map(|(after, score)| (canonical(game, after), score)).collect()
    })
}

/// Checks the laws of spawns.
fn check_afterstate<G: LayeredGame>(game: &G, after: G::Board) -> Result<(), Law> {
    let spawns = game.spawns();
    let places: BTreeSet<usize> = (0..spawns.len()).map(|kind| game.spawned(after, kind).len()).collect();
    require(places.len() == 1 && !places.contains(&0), Law::Spawns)?;
    for (kind, spawn) in spawns.iter().enumerate() {
        for state in game.spawned(after, kind) {
            require(game.layer(state) == game.layer(after) + spawn.rise, Law::Layers)?;
            require(game.potential(state) == game.potential(after) + spawn.unscored, Law::Potential)?;
            require(game.lane(state) == game.lane(after), Law::Lanes)?;
        }
    }
    check_images(game, after, |board| {
        let kinds = 0..spawns.len();
        let states = kinds.flat_map(|kind| game.spawned(board, kind).into_iter().map(move |s| (kind, s)));
        states.map(|(kind, state)| (canonical(game, state), kind as u64)).collect()
    })
}

/// Returns the smallest image of a board.
fn canonical<G: LayeredGame>(game: &G, board: G::Board) -> G::Board {
    game.images(board).into_iter().min().unwrap_or(board)
}

/// Checks that the images of a board are images of one another, and that they agree in all properties and in
/// `leads_to`.
fn check_images<G: LayeredGame>(
    game: &G,
    board: G::Board,
    leads_to: impl Fn(G::Board) -> Vec<(G::Board, u64)>,
) -> Result<(), Law> {
    let sorted = |mut list: Vec<(G::Board, u64)>| {
        list.sort_unstable();
        list
    };
    let all: BTreeSet<G::Board> = game.images(board).into_iter().collect();
    require(all.contains(&board), Law::Symmetries)?;
    for &image in &all {
        let of_image: BTreeSet<G::Board> = game.images(image).into_iter().collect();
        let properties = |b| (game.layer(b), game.potential(b), game.is_won(b), game.lane(b));
        require(of_image == all && properties(image) == properties(board), Law::Symmetries)?;
        require(sorted(leads_to(image)) == sorted(leads_to(board)), Law::Symmetries)?;
    }
    Ok(())
}

/// Expected future scores of all reachable states.
pub struct Solution<B> {
    /// Values by backward induction. Only one image of each board is computed. Its other images get the same value.
    pub values: HashMap<B, f64>,
    /// Values by the definition, computed board by board.
    pub by_definition: HashMap<B, f64>,
}

/// Solves a game without winning boards, twice.
pub fn solve<G: LayeredGame>(game: &G) -> Solution<G::Board> {
    let mut by_definition = HashMap::new();
    game.starts().into_iter().for_each(|start| {
        value_of(game, start, &mut by_definition);
    });
    let mut layers = BTreeMap::<u32, BTreeSet<G::Board>>::new();
    for &state in by_definition.keys() {
        layers.entry(game.layer(state)).or_default().insert(canonical(game, state));
    }
    // `above` holds the layers above the current layer, up to the largest rise. No other layer is needed.
    let most = game.spawns().iter().map(|spawn| spawn.rise).max().unwrap_or_default();
    let (mut above, mut values) = (BTreeMap::<u32, HashMap<G::Board, f64>>::new(), HashMap::new());
    for (layer, states) in layers.into_iter().rev() {
        above.retain(|&other, _| other <= layer + most);
        let mut of_layer = HashMap::new();
        for state in states {
            let w = |after| {
                mean(game, after, |state, unscored| {
                    above[&game.layer(state)][&canonical(game, state)] - unscored as f64
                })
            };
            let best = game.moves(state).into_iter().map(|(after, _)| w(canonical(game, after)));
            let over = game.potential(state) as f64;
            of_layer.insert(state, best.reduce(f64::max).unwrap_or(over));
        }
        values.extend(of_layer.iter().map(|(&state, w)| (state, w - game.potential(state) as f64)));
        above.insert(layer, of_layer);
    }
    let images: Vec<_> =
        by_definition.keys().map(|&state| (state, values[&canonical(game, state)])).collect();
    values.extend(images);
    Solution { values, by_definition }
}

/// Expected future score by the definition: the largest sum of a move's score and the mean over its spawns.
fn value_of<G: LayeredGame>(game: &G, state: G::Board, known: &mut HashMap<G::Board, f64>) -> f64 {
    if let Some(&value) = known.get(&state) {
        return value;
    }
    let mut best: Option<f64> = None;
    for (after, score) in game.moves(state) {
        let value = score as f64 + mean(game, after, |state, _| value_of(game, state, known));
        best = Some(best.map_or(value, |best| best.max(value)));
    }
    known.insert(state, best.unwrap_or_default());
    best.unwrap_or_default()
}

/// Mean over the spawns in an afterstate. `value` gets the state and the unscored points of the spawn.
fn mean<G: LayeredGame>(game: &G, after: G::Board, mut value: impl FnMut(G::Board, u64) -> f64) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (kind, spawn) in game.spawns().into_iter().enumerate() {
        for state in game.spawned(after, kind) {
            sum += f64::from(spawn.weight) * value(state, spawn.unscored);
            weights += f64::from(spawn.weight);
        }
    }
    sum / weights
}
