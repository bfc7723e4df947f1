//! What is left of `network` in a program that was built without the feature `net`.

use crate::Failure;

/// No options of a client.
#[derive(clap::Args, Debug)]
pub struct ClientArgs {}

impl ClientArgs {
    /// Nothing can have been given.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with the feature there are options")]
    pub fn refuse(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// No error is of the network.
pub fn is_usage(_: &anyhow::Error) -> bool {
    false
}

/// No error is of the network.
pub fn remedy(_: &anyhow::Error) -> Option<&'static str> {
    None
}
