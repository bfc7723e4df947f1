//! What is left of `remote` in a program that was built without the feature `net`.

use anyhow::Result;
use exact2048_game::Params;
use exact2048_game::board::Board;
use exact2048_solution::StateAnswer;

use crate::Failure;
use crate::cones::Cost;
use crate::network::ClientArgs;

/// No server.
pub enum Remote {}

impl Remote {
    /// Says that there is no way to a server.
    pub fn connect(_: &str, _: Option<&str>, _: &ClientArgs) -> Result<Self> {
        let what = "--server: this program was built without servers: build it with its default features";
        Err(Failure::usage(what.to_owned()).into())
    }

    pub fn params(&self) -> &Params {
        match *self {}
    }

    pub fn answer(&self, _: &[Board], _: bool) -> Vec<Result<(StateAnswer, Cost)>> {
        match *self {}
    }
}
