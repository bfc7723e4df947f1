//! Rereading of the shards of done jobs, at a client's request.

/// Check of a job's shards.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) enum ShardCheck {
    #[default]
    None,
    UnderWay,
    /// The shards could not be reread, for this reason.
    Failed(String),
}

impl ShardCheck {
    pub fn is_under_way(&self) -> bool {
        *self == Self::UnderWay
    }

    /// Describes a failed check for users.
    pub fn trouble(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(format!("cannot reread its shards: {why}")),
            Self::None | Self::UnderWay => None,
        }
    }
}
