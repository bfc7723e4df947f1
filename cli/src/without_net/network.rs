//! Stand-in for `network` in a program built without the feature `net`.

use crate::Failure;

/// Empty options of a client.
#[derive(clap::Args, Debug)]
pub struct ClientArgs {}

impl ClientArgs {
    /// Accepts the options, because none exist.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with the feature there are options")]
    pub fn refuse(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Returns false, because no error comes from the network.
pub fn is_usage(_: &anyhow::Error) -> bool {
    false
}

/// Returns `None`, because no error comes from the network.
pub fn remedy(_: &anyhow::Error) -> Option<&'static str> {
    None
}
