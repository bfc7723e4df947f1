//! Places that errors name: a file, a folder or an object, and the shard that belongs there, if any.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of a shard, unique among the committed shards of its run.
///
/// Displays as its file name, for example `values-000004-000120.shard`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShardId(Arc<str>);

impl ShardId {
    /// Returns the id of the shard with this file name.
    ///
    /// The name may be any text. Only its last path component is used, so the name cannot lead out of the folder of
    /// shards.
    #[must_use]
    pub fn of(file: &str) -> Self {
        let name = Path::new(file).file_name().unwrap_or_default();
        Self(name.to_string_lossy().into())
    }

    /// Returns the file name of the shard.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Place of a file, a folder or an object: a local path or a URL, with the shard that belongs there.
///
/// Cheap to clone, and as small as a pointer because errors hold several of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Place(Arc<Placed>);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Placed {
    address: Address,
    shard: Option<ShardId>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Address {
    Path(PathBuf),
    Url(String),
}

impl Place {
    fn at(address: Address) -> Self {
        Self(Arc::new(Placed { address, shard: None }))
    }

    /// Creates the place of this URL. The URL must not contain a secret, because errors print it.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self::at(Address::Url(url.into()))
    }

    /// Returns the path, or `None` for a URL.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match &self.0.address {
            Address::Path(path) => Some(path),
            Address::Url(_) => None,
        }
    }

    /// Returns the shard that belongs at this place, if any.
    #[must_use]
    pub fn shard(&self) -> Option<&ShardId> {
        self.0.shard.as_ref()
    }

    /// Returns the place called `name` in this folder or below this prefix.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match &self.0.address {
            Address::Path(path) => path.join(name).into(),
            Address::Url(url) => Self::url(format!("{url}/{name}")),
        }
    }

    /// Returns the same place, marked as the place of this shard.
    #[must_use]
    pub(crate) fn of_shard(&self, shard: ShardId) -> Self {
        Self(Arc::new(Placed { address: self.0.address.clone(), shard: Some(shard) }))
    }

    /// Returns the place of a shard known only by its path or URL. The last component names the shard.
    #[must_use]
    pub(crate) fn of_lone_shard(&self) -> Self {
        let shard = match &self.0.address {
            Address::Path(path) => ShardId::of(&path.to_string_lossy()),
            Address::Url(url) => ShardId::of(url),
        };
        self.of_shard(shard)
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self::at(Address::Path(path))
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        path.to_path_buf().into()
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Self {
        path.clone().into()
    }
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Self {
        place.clone()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.address {
            Address::Path(path) => path.display().fmt(f),
            Address::Url(url) => f.write_str(url),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_the_same_name_in_every_place() {
        let file = "values-000004-000120.shard";
        let places =
            [Place::from(Path::new("run/shards")).join(file), Place::url("s3://b/run/shards").join(file)];
        assert_eq!(places[1].to_string(), format!("s3://b/run/shards/{file}"));
        for place in places {
            assert_eq!(place.shard(), None);
            assert_eq!(place.of_lone_shard().shard(), Some(&ShardId::of(file)));
        }
        assert_eq!(ShardId::of(&format!("../../{file}")), ShardId::of(file));
        assert_eq!(ShardId::of("..").file(), "");
    }
}
