//! Asking a coordinator.

use std::future::Future;

use anyhow::{Context, Result, anyhow};
use exact2048_cluster::client::{self, Client, Shown};
use tokio::runtime::Runtime;
use tonic::{Code, Response, Status};
use tonic_types::StatusExt;

use crate::Failure;
use crate::network::{ClientArgs, refusal, words};

/// Where the coordinator is.
#[derive(clap::Args, Debug)]
pub struct CoordinatorPlace {
    /// The coordinator: http://HOST:PORT, or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    coordinator: String,
    #[command(flatten)]
    client: ClientArgs,
}

impl CoordinatorPlace {
    /// Connects to the coordinator.
    pub fn connect(&self) -> Result<Coordinator> {
        exact2048_net::install_crypto();
        let options = self.client.options(&self.coordinator)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start a runtime")?;
        let client = runtime.block_on(client::open(&options))?;
        Ok(Coordinator { runtime, client })
    }
}

/// A coordinator that answers.
pub struct Coordinator {
    runtime: Runtime,
    client: Client,
}

impl Coordinator {
    /// A client of it. Those of one connection are cheap, and each is its own to change.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Makes a call and waits for its answer.
    pub fn ask<T: Shown, F>(&self, call: impl FnOnce(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let answer = self.runtime.block_on(call(self.client()));
        let mut answer = answer.map_err(|status| failure(&status))?.into_inner();
        answer.make_plain();
        Ok(answer)
    }

    /// Waits for what an answer still brings.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

/// What a status is on the command line.
pub fn failure(status: &Status) -> anyhow::Error {
    // It may quote what others sent.
    let message = words(status);
    let reason = status.get_details_error_info().map(|info| info.reason);
    match status.code() {
        Code::InvalidArgument => Failure::usage(message).into(),
        // As `solve` has it of a place that holds another job.
        Code::FailedPrecondition if reason.as_deref() == Some("OTHER_RUN") => Failure::usage(message).into(),
        Code::NotFound | Code::AlreadyExists | Code::FailedPrecondition => anyhow!(message),
        _ => refusal("coordinator", status),
    }
}
