//! Stand-in for the module `store` in a build without object stores.

#[path = "cache.rs"]
pub(crate) mod cache;
#[path = "found.rs"]
mod found;

use std::convert::Infallible;
use std::fs::File;
use std::ops::Range;

use bytes::Bytes;

pub(crate) use self::cache::Cache;
pub(crate) use self::found::{Created, Head, ListedObject};
use crate::publish::TempFile;
use crate::{Place, StorageError};

/// An object store. No value of this type can exist.
#[derive(Debug)]
pub(crate) struct Store {
    never: Infallible,
}

/// The methods that `Store` has in a build with the feature `stores`.
impl Store {
    pub(crate) fn child(&self, _: &str) -> Self {
        match self.never {}
    }

    pub(crate) fn url(&self) -> &str {
        match self.never {}
    }

    pub(crate) fn place(&self) -> Place {
        match self.never {}
    }

    pub(crate) fn place_of(&self, _: &str) -> Place {
        match self.never {}
    }

    pub(crate) fn probe(&self) -> Result<(), StorageError> {
        match self.never {}
    }

    pub(crate) fn read(&self, _: &str) -> Result<Option<Bytes>, StorageError> {
        match self.never {}
    }

    pub(crate) fn read_all(
        &self,
        _: impl IntoIterator<Item = String>,
    ) -> Result<Vec<Option<Bytes>>, StorageError> {
        match self.never {}
    }

    pub(crate) fn read_heads(
        &self,
        _: Vec<String>,
        _: u64,
    ) -> Result<Vec<Result<Option<Head>, StorageError>>, StorageError> {
        match self.never {}
    }

    pub(crate) fn read_range(&self, _: &str, _: Range<u64>) -> Result<Bytes, StorageError> {
        match self.never {}
    }

    pub(crate) fn list(&self, _: Option<&str>, _: Option<usize>) -> Result<Vec<ListedObject>, StorageError> {
        match self.never {}
    }

    pub(crate) fn create(&self, _: &str, _: &[u8]) -> Result<Created, StorageError> {
        match self.never {}
    }

    pub(crate) fn remove(&self, _: impl IntoIterator<Item = String>) -> Result<(), StorageError> {
        match self.never {}
    }

    pub(crate) fn upload(&self, _: &str, _: &File, _: u64) -> Result<(), StorageError> {
        match self.never {}
    }

    pub(crate) fn download(&self, _: &str, _: &mut TempFile, _: Option<u64>) -> Result<u64, StorageError> {
        match self.never {}
    }
}
