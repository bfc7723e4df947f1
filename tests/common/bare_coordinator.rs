//! A coordinator without real workers: for workers that follow a script, and for clients that send anything.

use std::path::Path;

use exact2048_proto::v1::coordinator_client::CoordinatorClient;
use serde_json::Value;

use super::access::{Connected, connect_to};
use super::serving::Server;
use super::{Finished, Place, exact2048};

type Client = CoordinatorClient<Connected>;

/// A coordinator that soon counts a silent worker as lost.
pub struct Coordinator {
    pub place: Place,
    pub server: Server,
}

impl Coordinator {
    #[track_caller]
    pub fn new() -> Self {
        Self::with(&[])
    }

    #[track_caller]
    pub fn with(options: &[&str]) -> Self {
        let place = Place::new();
        let server = Self::launch(&place.join("store"), options);
        Self { place, server }
    }

    #[track_caller]
    pub fn launch(store: &Path, options: &[&str]) -> Server {
        let store = store.to_str().unwrap();
        let args = ["coordinator", "--store", store, "--listen", "127.0.0.1:0", "--lease", "1"];
        Server::launch(&[&args, options].concat(), &[])
    }

    pub fn ask(&self, args: &[&str]) -> Finished {
        exact2048([&args[..1], &["--coordinator", &self.server.url], &args[1..]].concat())
    }

    #[track_caller]
    pub fn status(&self, job: &str) -> Value {
        self.ask(&["status", job, "--json"]).exits(0).json()
    }

    pub async fn client(&self) -> Client {
        CoordinatorClient::new(connect_to(&self.server.url).await)
    }
}
