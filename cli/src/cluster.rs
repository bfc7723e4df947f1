//! Client of a coordinator.

use std::future::Future;
use std::io::Write;

use anyhow::{Context, Result, anyhow};
use exact2048_cluster::client::{self, Client, Shown};
use exact2048_cluster::token;
use exact2048_cluster::view::JobView;
use exact2048_proto::v1::Job;
use tokio::runtime::Runtime;
use tonic::{Code, Response, Status};
use tonic_types::StatusExt;

use crate::network::{COORDINATOR, ClientArgs, refusal, words};
use crate::{Failure, output};

/// Options for the connection to a coordinator.
#[derive(clap::Args, Debug)]
pub struct CoordinatorPlace {
    /// Call this coordinator: http://HOST:PORT, or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    coordinator: String,
    #[command(flatten)]
    client: ClientArgs,
}

impl CoordinatorPlace {
    /// Connects to the coordinator.
    pub fn connect(&self) -> Result<Coordinator> {
        exact2048_net::install_crypto();
        let mut options = self.client.options(&self.coordinator)?;
        options.token = options.token.or_else(|| token::announced(&self.coordinator));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start a runtime")?;
        let client = runtime.block_on(client::open(&options))?;
        Ok(Coordinator { runtime, client })
    }
}

/// Arguments of the commands that change a job.
#[derive(clap::Args, Debug)]
pub struct JobPlace {
    #[command(flatten)]
    place: CoordinatorPlace,
    /// Change the job of this name
    job: String,
    /// Print the job as one JSON object
    #[arg(long)]
    json: bool,
}

impl JobPlace {
    /// Calls the coordinator about the job and prints the returned job, as JSON or in words.
    pub fn change<T: Shown, F>(
        &self,
        call: impl FnOnce(Client, String) -> F,
        job_of: fn(T) -> Option<Job>,
        words: fn(&Job) -> String,
    ) -> Result<()>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let coordinator = self.place.connect()?;
        let answer = coordinator.ask(|client| call(client, self.job.clone()))?;
        let job = job_of(answer).context("the coordinator returned no job")?;
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&JobView(job))?)?;
        } else {
            output::write_sentence(&mut out, &words(&job))?;
        }
        Ok(())
    }
}

/// A connection to a coordinator.
pub struct Coordinator {
    runtime: Runtime,
    client: Client,
}

impl Coordinator {
    /// Creates a client on the connection. A client is cheap.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Calls the coordinator and waits for the answer.
    pub fn ask<T: Shown, F>(&self, call: impl FnOnce(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.answer(call).map_err(|status| failure(&status))
    }

    /// Calls the coordinator and returns its status if it refuses.
    pub fn answer<T: Shown, F>(&self, call: impl FnOnce(Client) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut answer = self.runtime.block_on(call(self.client()))?.into_inner();
        answer.make_plain();
        Ok(answer)
    }

    /// Waits for a future of the connection.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

/// The error for a status of the coordinator.
pub fn failure(status: &Status) -> anyhow::Error {
    // The message can quote texts from other clients.
    let message = words(status);
    let reason = status.get_details_error_info().map(|info| info.reason);
    match status.code() {
        Code::InvalidArgument => Failure::usage(message).into(),
        // The exit code is the same as for `solve` in the directory of another job.
        Code::FailedPrecondition if reason.as_deref() == Some("OTHER_RUN") => Failure::usage(message).into(),
        Code::FailedPrecondition if reason.as_deref() == Some("DOES_NOT_FIT") => {
            anyhow!("{message} (--memory SIZE and --threads N of exact2048 worker)")
        }
        Code::NotFound | Code::AlreadyExists | Code::FailedPrecondition => anyhow!(message),
        _ => refusal(COORDINATOR, status),
    }
}
