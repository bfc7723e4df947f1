//! `exact2048 coordinator`: assigns work to the workers of a cluster until stopped.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use exact2048_cluster::coordinator::{Shell, describe, serve};
use exact2048_cluster::token::{self, Announcement};
use exact2048_coordinator::cluster::ClusterConfig;
use exact2048_net::install_crypto;
use exact2048_net::serve::{Bound, ServerEnd};
use exact2048_net::shutdown::Stop;
use exact2048_net::token::{RequiredToken, Token};

use crate::network::{ServerArgs, run_to_end};
use crate::place::StoreOptions;

/// Default port.
const PORT: u16 = 2049;

/// Time limit of a request. It is long because a submitted job can require reading a run's journal in a distant store.
const REQUEST_TIME: Duration = Duration::from_secs(120);

/// Options of `coordinator`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 coordinator --store /shared/2048
  exact2048 coordinator --store /shared/2048 --http 127.0.0.1:8049
  exact2048 coordinator --store s3://bucket/2048 --listen 0.0.0.0:2049 \\
      --tls-cert head.pem --tls-key head.key --tls-ca ca.pem
  exact2048 worker --coordinator http://127.0.0.1:2049
  exact2048 submit --coordinator http://127.0.0.1:2049 --board 3x3

STORE/coordinator holds the queue and the token, and STORE/JOB the run of each job. A worker with --store reads the
token there. Workers and clients of the same user on the same machine find it; others need --token-file. A coordinator
that is restarted with the same store resumes its jobs. Only one coordinator can own a store. On SIGTERM the coordinator
finishes its current commits, then exits. docs/cluster.md is the guide.")]
pub struct Args {
    /// Keep the queue and the runs at this location: a directory that all workers share, file:///DIR, or
    /// s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR|URL")]
    store: OsString,
    #[command(flatten)]
    cache: StoreOptions,
    /// Treat a worker as lost after this many seconds without a request, and reassign its work
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=3600))]
    lease: u32,
    /// Serve a web page of jobs and workers at this address too; port 0 takes any free port
    #[arg(long, value_name = "ADDR", value_parser = crate::network::listen_address)]
    http: Option<SocketAddr>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    install_crypto();
    args.server.start_logs()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    run_to_end(runtime.context("cannot start a runtime")?, coordinate(args))
}

async fn coordinate(args: &Args) -> Result<()> {
    let store = args.cache.locate(&args.store)?;
    let mut options = args.server.cluster_options(PORT, args.server.token()?);
    options.limits.request_time = REQUEST_TIME;
    let limits = options.limits;
    let stop = Stop::on_signals(limits.grace).context("cannot handle signals")?;
    let mut bound = Bound::new(options).await?;
    let mut for_browsers = match args.http {
        Some(address) => Some(bound.bind_http(address).await?),
        None => None,
    };
    let config = ClusterConfig { lease: Duration::from_secs(args.lease.into()), ..ClusterConfig::default() };
    let begun = stop.begun.clone();
    let of_store = store.clone();
    let opening = tokio::task::spawn_blocking(move || Shell::open(store, config, begun));
    let shell = tokio::select! {
        opened = opening => opened.context("the coordinator cannot start")??,
        () = stop.over.cancelled() => {
            tracing::warn!("stopped before the queue was read");
            return Ok(());
        }
    };
    if matches!(bound.options.token, RequiredToken::Later) {
        let token = tokio::task::spawn_blocking(move || token::make(&of_store)).await?;
        let token = RequiredToken::Given(token.context("cannot use the token of the store")?);
        for_browsers.iter_mut().for_each(|page| page.options.token = token.clone());
        bound.options.token = token;
    }
    let _announced = bound.options.token.given().and_then(|token| announce(&bound, token));
    let of_shell = Arc::clone(&shell);
    args.server.serve_metrics(Arc::new(move || of_shell.record_metrics()), &stop).await?;
    describe();
    if let Some(http) = &for_browsers {
        writeln!(io::stdout(), "page on {}/", http.url())?;
    }
    // Scripts wait for this line. They can connect from now on, because requests wait in the queue of the listener.
    writeln!(io::stdout(), "listening on {}", bound.url())?;
    io::stdout().flush()?;
    match serve(bound, for_browsers, shell, limits, stop).await? {
        ServerEnd::Drained => tracing::info!("stopped: all requests were answered"),
        ServerEnd::CutOff => tracing::warn!("stopped: requests or an append were cut off"),
    }
    Ok(())
}

/// Announces the token to clients of this user on this machine. Without that they need `--token-file`.
fn announce(bound: &Bound, token: &Token) -> Option<Announcement> {
    let announced = Announcement::make(bound.options.listen, token);
    announced.inspect_err(|error| tracing::warn!(%error, "local clients cannot find the token")).ok()
}
