//! An in-memory store that fails as real stores do.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    Put,
    Multipart,
    /// The completion of a multipart upload.
    Complete,
    Get,
    Head,
    Delete,
    List,
}

/// Outcome of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The request succeeds.
    None,
    /// The request has no effect and returns this error.
    Error(&'static str),
    /// The request takes effect but returns an error.
    LostReply,
    /// The request never returns.
    Hang,
    /// The request succeeds after a short delay.
    Slow,
    /// A put ignores its condition.
    NoCondition,
    /// The answer to a get is truncated to half.
    Cut,
    /// The answer to a get has a flipped bit in the middle.
    Flip,
    /// A list shows no objects.
    Overlook,
    /// The request takes effect but returns "not found".
    Forgotten,
}

type Plan = Box<dyn FnMut(Request, &str) -> Fault + Send>;

/// A store with planned faults.
pub struct Faulty {
    pub inner: InMemory,
    plan: Mutex<Plan>,
}

impl Faulty {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { inner: InMemory::new(), plan: Mutex::new(Box::new(|_, _| Fault::None)) })
    }

    /// Sets the plan, which returns the fault of each request from its object's name.
    pub fn plan(&self, plan: impl FnMut(Request, &str) -> Fault + Send + 'static) {
        *self.plan.lock().unwrap() = Box::new(plan);
    }

    pub fn heal(&self) {
        self.plan(|_, _| Fault::None);
    }

    /// The names of all objects, sorted.
    pub fn names(&self) -> Vec<String> {
        let listed = self.inner.list(None).map(|meta| meta.unwrap().location.to_string());
        let mut names: Vec<String> = now(listed.collect());
        names.sort();
        names
    }

    pub fn contents(&self, name: &str) -> Bytes {
        now(async { self.inner.get(&Path::from(name)).await.unwrap().bytes().await.unwrap() })
    }

    pub fn set_contents(&self, name: &str, contents: Bytes) {
        now(self.inner.put(&Path::from(name), contents.into())).unwrap();
    }

    pub fn remove(&self, name: &str) {
        now(self.inner.delete(&Path::from(name))).unwrap();
    }

    async fn fate(&self, request: Request, place: &Path) -> Result<Fault> {
        let fault = (self.plan.lock().unwrap())(request, place.as_ref());
        match fault {
            Fault::Error(what) => Err(error(what)),
            Fault::Hang => std::future::pending().await,
            Fault::Slow => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(Fault::None)
            }
            other => Ok(other),
        }
    }
}

/// Runs a future of the in-memory store, which is ready at once.
fn now<T>(done: impl Future<Output = T>) -> T {
    done.now_or_never().expect("memory does not wait")
}

fn error(what: &'static str) -> Error {
    Error::Generic { store: "faulty", source: what.into() }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

/// An upload that the store no longer knows after its completion.
#[derive(Debug)]
struct Forgotten(Box<dyn MultipartUpload>);

#[async_trait]
impl MultipartUpload for Forgotten {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.0.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.0.complete().await?;
        Err(Error::NotFound { path: "upload".to_owned(), source: "NoSuchUpload".into() })
    }

    async fn abort(&mut self) -> Result<()> {
        self.0.abort().await
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, place: &Path, payload: PutPayload, mut opts: PutOptions) -> Result<PutResult> {
        let fault = self.fate(Request::Put, place).await?;
        if fault == Fault::NoCondition {
            opts.mode = PutMode::Overwrite;
        }
        let done = self.inner.put_opts(place, payload, opts).await;
        if fault == Fault::LostReply { Err(error("the answer was lost")) } else { done }
    }

    async fn put_multipart_opts(
        &self,
        place: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.fate(Request::Multipart, place).await?;
        let upload = self.inner.put_multipart_opts(place, opts).await?;
        let fault = self.fate(Request::Complete, place).await?;
        Ok(if fault == Fault::Forgotten { Box::new(Forgotten(upload)) } else { upload })
    }

    async fn get_opts(&self, place: &Path, options: GetOptions) -> Result<GetResult> {
        let request = if options.head { Request::Head } else { Request::Get };
        let fault = self.fate(request, place).await?;
        let found = self.inner.get_opts(place, options).await?;
        if !matches!(fault, Fault::Cut | Fault::Flip) {
            return Ok(found);
        }
        let (meta, range, attributes, extensions) =
            (found.meta.clone(), found.range.clone(), found.attributes.clone(), found.extensions.clone());
        let mut bytes = found.bytes().await?.to_vec();
        let middle = bytes.len() / 2;
        match fault {
            Fault::Cut => bytes.truncate(middle),
            _ => bytes[middle] ^= 0x10,
        }
        let payload = GetResultPayload::Stream(stream::iter([Ok(Bytes::from(bytes))]).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(&self, places: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        // Ask the plan only once, because each call here removes one object.
        match (self.plan.lock().unwrap())(Request::Delete, "") {
            Fault::Error(what) => stream::iter([Err(error(what))]).boxed(),
            Fault::Hang => stream::pending().boxed(),
            _ => self.inner.delete_stream(places),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let name = prefix.map(ToString::to_string).unwrap_or_default();
        match (self.plan.lock().unwrap())(Request::List, &name) {
            Fault::Error(what) => stream::iter([Err(error(what))]).boxed(),
            Fault::Hang => stream::pending().boxed(),
            Fault::Overlook => stream::empty().boxed(),
            _ => self.inner.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
