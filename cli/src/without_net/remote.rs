//! Stand-in for `remote` in a program built without the feature `net`.

use anyhow::Result;
use exact2048_game::Params;
use exact2048_game::board::Board;
use exact2048_solution::StateAnswer;

use crate::Failure;
use crate::cones::Cost;
use crate::network::ClientArgs;

/// A connection that cannot exist.
pub enum Remote {}

impl Remote {
    /// Refuses to connect.
    pub fn connect(_: &str, _: Option<&str>, _: &ClientArgs) -> Result<Self> {
        let what = "--server: this program was built without the feature net; build it with default features";
        Err(Failure::usage(what.to_owned()).into())
    }

    pub fn params(&self) -> &Params {
        match *self {}
    }

    pub fn answer(&self, _: &[Board], _: bool) -> Vec<Result<(StateAnswer, Cost)>> {
        match *self {}
    }
}
