//! The objects of a run in an object store.
//!
//! | Module | Contents |
//! |---|---|
//! | [`Store`] (this module) | read, create, list and remove objects from synchronous code |
//! | `transfer` | large objects, in parts and in parallel |
//! | `patience` | retry requests within a time limit |
//! | `misdirected` | faults between this machine and the store |
//! | `runtime` | run async requests for synchronous code |
//! | `probe` | check that the store gives the guarantee that commits require |
//! | `cache` | shards kept as local files |
//! | `found` | results of requests |
//! | `s3` | open a bucket of an S3 store |
//! | `settings` | checked settings of an S3 store |
//! | `absent` | the stand-in for a build without the feature `stores` |

pub(crate) mod cache;
mod found;
mod misdirected;
mod patience;
mod probe;
mod runtime;
pub(crate) mod s3;
pub(crate) mod settings;
mod transfer;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutPayload};

pub(crate) use self::cache::Cache;
pub(crate) use self::found::{Created, Head, ListedObject};
use self::patience::{GivenUp, Persistence, is_full, is_no_bucket};
use crate::error::READING;
use crate::{Place, StorageError, sealed};

/// Default time limit for the retries of a request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Default time limit before the first successful request, when a wrong setting is likelier than an outage.
pub(crate) const FIRST_PATIENCE: Duration = Duration::from_secs(20);

/// Timeout of one attempt at a small request.
const ATTEMPT: Duration = Duration::from_secs(60);

/// Maximum number of concurrent requests.
const PARALLEL: usize = 16;

/// Number of attempts to create an object while the store reports the object both as existing and as missing.
const CREATIONS: u32 = 8;

/// Objects of a run and the client to reach them.
#[derive(Debug)]
pub(crate) struct Store {
    objects: Arc<dyn ObjectStore>,
    /// Prefix of the names of all objects of the run, without the slash that follows it.
    prefix: Path,
    /// The URL as the user gave it, for messages.
    url: String,
    patience: Patience,
    /// True after the first successful request.
    reached: AtomicBool,
}

/// Time limits for retries, and a callback that reports a retry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Time limit of the retries.
    pub(crate) limit: Duration,
    /// Time limit of the retries before the first successful request.
    pub(crate) first: Duration,
    /// Receives a message when a request has failed and is retried, at most once per request.
    pub(crate) on_wait: Option<fn(&str)>,
}

impl Store {
    pub(crate) fn new(objects: Arc<dyn ObjectStore>, url: &str, prefix: Path, patience: Patience) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        Self { objects, prefix, url, patience, reached: AtomicBool::new(false) }
    }

    /// Returns the store of the objects below a name. The new store counts as not yet reached.
    pub(crate) fn child(&self, name: &str) -> Self {
        Self {
            objects: Arc::clone(&self.objects),
            prefix: self.prefix.clone().join(name),
            url: format!("{}/{name}", self.url),
            patience: self.patience,
            reached: AtomicBool::new(false),
        }
    }

    #[cfg(test)]
    pub(crate) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// URL of the run, for messages.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Place of the run, for errors.
    pub(crate) fn place(&self) -> Place {
        Place::url(&*self.url)
    }

    /// Returns the place of an object, given its name within the run.
    pub(crate) fn place_of(&self, object: &str) -> Place {
        self.place().join(object)
    }

    /// Reads an object of at most [`sealed::MAX_BYTES`]; `None` if it does not exist.
    pub(crate) fn read(&self, object: &str) -> Result<Option<Bytes>, StorageError> {
        self.read_all([object.to_owned()]).map(|mut found| found.pop().flatten())
    }

    /// Reads many objects in parallel, and returns them in order.
    pub(crate) fn read_all(
        &self,
        objects: impl IntoIterator<Item = String>,
    ) -> Result<Vec<Option<Bytes>>, StorageError> {
        let requests: Vec<_> = objects.into_iter().map(|object| (self.key(&object), object)).collect();
        let (store, patience) = (Arc::clone(&self.objects), self.persistently());
        let fetched = self.wait(READING, async move {
            let fetch = |(place, object): (Path, String)| {
                let store = Arc::clone(&store);
                async move {
                    match patience.persist(|| read_small(&store, &place)).await {
                        Ok(read) => Ok((object, Some(read))),
                        Err(given_up) if given_up.is_not_found() => Ok((object, None)),
                        Err(given_up) => Err((object, given_up)),
                    }
                }
            };
            stream::iter(requests).map(fetch).buffered(PARALLEL).try_collect::<Vec<_>>().await
        })?;
        let contents = |(object, read): (String, Option<Read>)| match read {
            None => Ok(None),
            Some(Read::Whole(bytes)) if misdirected::is_page(&bytes) => {
                let found = "expected an object, found an HTML page: a captive portal or a proxy answers in place of \
                             the store; log in there, or correct the address";
                Err(StorageError::Store {
                    place: self.place_of(&object),
                    doing: READING,
                    after: String::new(),
                    source: io::Error::other(found),
                })
            }
            Some(Read::Whole(bytes)) => Ok(Some(bytes)),
            Some(Read::TooLarge(bytes)) => {
                let limit = sealed::MAX_BYTES;
                let (expected, found) = (format!("at most {limit} bytes"), format!("{bytes} bytes"));
                Err(StorageError::damaged(self.place_of(&object), limit, expected, found))
            }
        };
        let fetched = fetched.map_err(|(object, given_up)| self.failed(READING, &object, given_up))?;
        fetched.into_iter().map(contents).collect()
    }

    /// Creates an object unless its name exists.
    ///
    /// The store's answer can be lost after the object was created. So an existing object with these contents counts
    /// as created by this call. The caller ensures that no other process creates the same name with the same
    /// contents.
    pub(crate) fn create(&self, object: &str, contents: &[u8]) -> Result<Created, StorageError> {
        let contents = Bytes::copy_from_slice(contents);
        for _ in 0..CREATIONS {
            let attempt = self.create_once(object, contents.clone())?;
            let Err(given_up) = attempt else { return Ok(Created::Here) };
            let there = self.read(object);
            match there {
                Ok(Some(found)) if found == contents => return Ok(Created::Here),
                Ok(Some(found)) if given_up.is_already_there() => return Ok(Created::Taken(found)),
                // Two requests collided, or the creator has removed the object again.
                Ok(None) if given_up.is_already_there() => {}
                _ => return Err(self.failed("creating", object, given_up)),
            }
        }
        let given_up = GivenUp { error: None, tries: CREATIONS, took: Duration::ZERO };
        Err(self.failed("creating", object, given_up))
    }

    /// Reads the first `most` bytes and the length of each object, in parallel; `None` for a missing object.
    pub(crate) fn read_heads(
        &self,
        objects: Vec<String>,
        most: u64,
    ) -> Result<Vec<Result<Option<Head>, StorageError>>, StorageError> {
        let (store, patience) = (Arc::clone(&self.objects), self.persistently());
        let requests: Vec<_> = objects.iter().map(|object| self.key(object)).collect();
        let looked = self.wait(READING, async move {
            let look = |place: Path| {
                let store = Arc::clone(&store);
                async move {
                    let attempt = || async {
                        let bytes = store.head(&place).await?.size;
                        // An empty object has no valid range.
                        let head = match most.min(bytes) {
                            0 => Bytes::new(),
                            read => store.get_range(&place, 0..read).await?,
                        };
                        Ok(Head { first: head, bytes })
                    };
                    match patience.persist(attempt).await {
                        Err(given_up) if given_up.is_not_found() => Ok(None),
                        looked => looked.map(Some),
                    }
                }
            };
            Ok::<_, Infallible>(stream::iter(requests).map(look).buffered(PARALLEL).collect::<Vec<_>>().await)
        });
        let looked = looked?.unwrap_or_else(|never| match never {});
        let named = looked.into_iter().zip(&objects);
        Ok(named
            .map(|(head, object)| head.map_err(|given_up| self.failed(READING, object, given_up)))
            .collect())
    }

    fn create_once(&self, object: &str, contents: Bytes) -> Result<Result<(), GivenUp>, StorageError> {
        let (store, place, patience) = (Arc::clone(&self.objects), self.key(object), self.persistently());
        let created = self.wait("creating", async move {
            let put = || store.put_opts(&place, PutPayload::from(contents.clone()), PutMode::Create.into());
            patience.persist(put).await
        })?;
        Ok(created.map(drop))
    }

    /// Lists the objects below `folder`, or all objects of the run. Returns at most `at_most` objects, with names
    /// relative to the run.
    pub(crate) fn list(
        &self,
        folder: Option<&str>,
        at_most: Option<usize>,
    ) -> Result<Vec<ListedObject>, StorageError> {
        let within = folder.map_or_else(|| self.prefix.clone(), |folder| self.key(folder));
        let (store, patience) = (Arc::clone(&self.objects), self.persistently());
        let limit = at_most.unwrap_or(usize::MAX);
        let listed = self.wait(READING, async move {
            let whole = || store.list(Some(&within)).take(limit).try_collect::<Vec<_>>();
            // Allow the full time limit per attempt, because a long list needs many requests.
            patience.of(patience.limit).persist(whole).await
        })?;
        let listed = listed.map_err(|given_up| self.failed(READING, folder.unwrap_or_default(), given_up))?;
        let in_run = |meta: object_store::ObjectMeta| {
            let parts = meta.location.prefix_match(&self.prefix)?;
            let name = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
            Some(ListedObject { name, bytes: meta.size })
        };
        let mut listed: Vec<ListedObject> = listed.into_iter().filter_map(in_run).collect();
        listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// Removes objects and ignores missing objects.
    pub(crate) fn remove(&self, objects: impl IntoIterator<Item = String>) -> Result<(), StorageError> {
        let requests: Vec<_> = objects.into_iter().map(|object| (self.key(&object), object)).collect();
        let (store, patience) = (Arc::clone(&self.objects), self.persistently());
        let removed = self.wait("removing", async move {
            let remove = |(place, object): (Path, String)| {
                let store = Arc::clone(&store);
                async move {
                    match patience.persist(|| store.delete(&place)).await {
                        Err(given_up) if !given_up.is_not_found() => Err((object, given_up)),
                        _ => Ok(()),
                    }
                }
            };
            stream::iter(requests).map(remove).buffer_unordered(PARALLEL).try_collect::<Vec<()>>().await
        })?;
        removed.map(drop).map_err(|(object, given_up)| self.failed("removing", &object, given_up))
    }

    /// Returns the full name of an object. The empty name gives the prefix. The prefix may itself be an object.
    fn key(&self, object: &str) -> Path {
        object
            .split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |place, part| place.join(part))
    }

    fn patience(&self) -> Duration {
        let Patience { limit, first, .. } = self.patience;
        if self.reached.load(Ordering::Relaxed) { limit } else { limit.min(first) }
    }

    /// Returns the retry policy of a small request.
    fn persistently(&self) -> Persistence {
        let limit = self.patience();
        Persistence { limit, each: ATTEMPT.min(limit), on_wait: self.patience.on_wait }
    }

    /// Waits for a request and records whether the store was reached.
    fn wait<T: Send + 'static, E: Send + 'static>(
        &self,
        doing: &'static str,
        request: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<Result<T, E>, StorageError> {
        let result = runtime::wait_for(request).map_err(|source| StorageError::Store {
            place: self.place(),
            doing,
            after: String::new(),
            source,
        })?;
        if result.is_ok() {
            self.reached.store(true, Ordering::Relaxed);
        }
        Ok(result)
    }

    /// Converts the failure of a request to an error. A missing object gives `NotFound`, like a missing file.
    fn failed(&self, doing: &'static str, object: &str, given_up: GivenUp) -> StorageError {
        let GivenUp { error, tries, took } = given_up;
        let place = if object.is_empty() { self.place() } else { self.place_of(object) };
        let after = match tries {
            1 => String::new(),
            _ => format!(" after {tries} tries in {} s", took.as_secs()),
        };
        match error {
            Some(error) if is_full(&error) => StorageError::Full {
                place,
                needed: None,
                source: in_words(io::ErrorKind::StorageFull, &error),
            },
            Some(error) if is_no_bucket(&error) => self.no_bucket(),
            Some(error @ Error::NotFound { .. }) => {
                StorageError::read(place, in_words(io::ErrorKind::NotFound, &error))
            }
            Some(error) => {
                let source = in_words(io::ErrorKind::Other, &error);
                let source = match misdirected::remedy(&error) {
                    Some(remedy) => io::Error::other(format!("{remedy} ({source})")),
                    None => source,
                };
                StorageError::Store { place, doing, after, source }
            }
            None => {
                let silent = io::Error::new(io::ErrorKind::TimedOut, "the store did not answer in time");
                StorageError::Store { place, doing, after, source: silent }
            }
        }
    }

    fn no_bucket(&self) -> StorageError {
        let url = &*self.url;
        let bucket =
            url.split_once("://").map_or(url, |(_, place)| place).split('/').next().unwrap_or_default();
        StorageError::NoBucket { place: self.place(), bucket: bucket.to_owned() }
    }
}

/// Flattens a store error to one text, because its own text repeats all of its causes except the last.
fn in_words(kind: io::ErrorKind, error: &Error) -> io::Error {
    let mut cause: &dyn std::error::Error = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    let (text, cause) = (error.to_string(), cause.to_string());
    let known = text.contains(&cause);
    io::Error::new(kind, if known { text } else { format!("{text}: {cause}") })
}

/// Result of reading a small object.
enum Read {
    Whole(Bytes),
    /// The object has this many bytes and was not read.
    TooLarge(u64),
}

async fn read_small(store: &Arc<dyn ObjectStore>, place: &Path) -> Result<Read, Error> {
    let found = store.get(place).await?;
    match found.meta.size {
        size if size > sealed::MAX_BYTES => Ok(Read::TooLarge(size)),
        _ => found.bytes().await.map(Read::Whole),
    }
}
