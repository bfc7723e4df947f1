//! An upper bound on the number of states of a run.

use exact2048_count::{Bounds, Counted};
use exact2048_game::Params;

/// Seconds of a core for a state of a formation of 4x4: 59 s for the 535 million states of L3 to 512 on an AMD EPYC.
pub const SECONDS_A_STATE: f64 = 1e-7;

/// Smallest exponent of a target tile for which boards can be counted.
const LEAST_TARGET: u8 = 3;

/// Upper bound on the number of states up to symmetry, from formulas; `None` if no formula covers the largest tiles.
pub fn states_at_most(params: &Params) -> Option<u128> {
    let Some(until) = params.contents().until() else {
        let target = params.game().objective().winning_exponent().map(|exponent| 1 << exponent);
        let bounds = Bounds::new(params.game().board(), target, |_| ()).ok()?;
        return Some(bounds.total(Counted::WithinTileBound).orbits);
    };
    // No board up to `until_layer` contains this tile.
    let target = 1 << (params.largest_exponent() + 1).max(LEAST_TARGET);
    let bounds = Bounds::new(params.game().board(), Some(target), |_| ()).ok()?;
    let layers = bounds.layers().iter().filter(|layer| layer.sum <= u64::from(until.0));
    Some(layers.map(|layer| layer.within_tile_bound.orbits).sum())
}
