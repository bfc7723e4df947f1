//! What an error is about: a file, a folder or an object, and which shard of the run it is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names a shard among those of its run: no two committed shards of a run have the same. Shown as the name of its file,
/// for example `values-000004-000120.shard`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShardId(Arc<str>);

impl ShardId {
    /// The shard with this file name. A name may be any text; of one that leads through folders only the last part
    /// counts, so that no name leads out of the folder of shards.
    #[must_use]
    pub fn of(file: &str) -> Self {
        let name = Path::new(file).file_name().unwrap_or_default();
        Self(name.to_string_lossy().into())
    }

    /// The name of its file.
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

/// Where a file, a folder or an object is: a path of this machine, or a URL. Where it is a shard, it says which. Cheap to
/// clone, and as small as a pointer: errors hold some of them.
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

    /// The place with this URL, which must hold no secret: it is for people to read.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self::at(Address::Url(url.into()))
    }

    /// The path, `None` for a URL.
    #[must_use]
    pub fn as_path(&self) -> Option<&Path> {
        match &self.0.address {
            Address::Path(path) => Some(path),
            Address::Url(_) => None,
        }
    }

    /// The shard that is or was to be there.
    #[must_use]
    pub fn shard(&self) -> Option<&ShardId> {
        self.0.shard.as_ref()
    }

    /// The place of this name in the folder, or below the prefix.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match &self.0.address {
            Address::Path(path) => path.join(name).into(),
            Address::Url(url) => Self::url(format!("{url}/{name}")),
        }
    }

    /// The same place, known as the place of this shard.
    #[must_use]
    pub(crate) fn of_shard(&self, shard: ShardId) -> Self {
        Self(Arc::new(Placed { address: self.0.address.clone(), shard: Some(shard) }))
    }

    /// The place of a shard of which nothing but its place is known: its name is the last part of that.
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
    fn a_shard_has_the_same_name_wherever_it_is() {
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
