//! Asking a coordinator.

use std::future::Future;
use std::io::Write;

use anyhow::{Context, Result, anyhow};
use exact2048_cluster::client::{self, Client, Shown};
use exact2048_cluster::view::JobView;
use exact2048_proto::v1::Job;
use tokio::runtime::Runtime;
use tonic::{Code, Response, Status};
use tonic_types::StatusExt;

use crate::network::{ClientArgs, refusal, words};
use crate::{Failure, output};

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

/// One job of a cluster: the arguments of the commands that change it.
#[derive(clap::Args, Debug)]
pub struct JobPlace {
    #[command(flatten)]
    place: CoordinatorPlace,
    /// Name of the job
    job: String,
    /// Print the job as one JSON object
    #[arg(long)]
    json: bool,
}

impl JobPlace {
    /// Makes a call about the job and prints the job that is in its answer: as JSON, or as what there is to say of it.
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
        let job = job_of(answer).context("the coordinator does not say what became of the job")?;
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&JobView::from(&job))?)?;
        } else {
            output::write_sentence(&mut out, &words(&job))?;
        }
        Ok(())
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
        self.answer(call).map_err(|status| failure(&status))
    }

    /// The same, with what the coordinator says where it refuses.
    pub fn answer<T: Shown, F>(&self, call: impl FnOnce(Client) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut answer = self.runtime.block_on(call(self.client()))?.into_inner();
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
        Code::FailedPrecondition if reason.as_deref() == Some("DOES_NOT_FIT") => {
            anyhow!("{message} (--memory SIZE and --threads N of exact2048 worker)")
        }
        Code::NotFound | Code::AlreadyExists | Code::FailedPrecondition => anyhow!(message),
        _ => refusal("coordinator", status),
    }
}
