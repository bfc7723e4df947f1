//! `exact2048 coordinator`: gives out work to workers, until it is stopped.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use exact2048_cluster::coordinator::{Gate, Shell, describe, serve};
use exact2048_coordinator::cluster::ClusterConfig;
use exact2048_net::install_crypto;
use exact2048_net::serve::{Bound, ServerEnd};
use exact2048_net::shutdown::Stop;

use crate::network::{ServerArgs, run_to_end};
use crate::place::StoreOptions;

/// Where it listens unless told otherwise.
const PORT: u16 = 2049;

/// Time for a request: to submit a job may mean to read the journal of a run in a distant store.
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

The queue is kept in STORE/coordinator, the run of each job in STORE/JOB. Started again, with the same store, it goes
on with its jobs. One coordinator owns a store. SIGTERM lets what is being committed end. docs/cluster.md is the
guide.")]
pub struct Args {
    /// Where queue and runs are: a directory that all workers share, file:///DIR, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR|URL")]
    store: OsString,
    #[command(flatten)]
    cache: StoreOptions,
    /// Seconds after which a worker that was not heard is lost, and its work given out again
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=3600))]
    lease: u32,
    /// Serve a page for browsers at this address too, which shows jobs and workers; port 0 takes any that is free
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
    let mut options = args.server.cluster_options(PORT)?;
    options.limits.request_time = REQUEST_TIME;
    let limits = options.limits;
    let stop = Stop::on_signals(limits.grace).context("cannot handle signals")?;
    let bound = Bound::new(options).await?;
    let for_browsers = match args.http {
        Some(address) => Some(bound.http_beside(address).await?),
        None => None,
    };
    let config = ClusterConfig { lease: Duration::from_secs(args.lease.into()), ..ClusterConfig::default() };
    // Who shows a token or a certificate is no stranger.
    let gate = if bound.knows_clients() { Gate::open() } else { Gate::new(args.server.client("")?) };
    let begun = stop.begun.clone();
    let opening = tokio::task::spawn_blocking(move || Shell::open(store, config, gate, begun));
    let shell = tokio::select! {
        opened = opening => opened.context("the coordinator cannot start")??,
        () = stop.over.cancelled() => {
            tracing::warn!("stopped before the queue was read");
            return Ok(());
        }
    };
    let of_shell = Arc::clone(&shell);
    args.server.serve_metrics(Arc::new(move || of_shell.record_metrics()), &stop).await?;
    describe();
    if let Some(http) = &for_browsers {
        writeln!(io::stdout(), "page on {}/", http.url())?;
    }
    // A program that waits for this line can connect: the address is taken, and requests wait in its queue.
    writeln!(io::stdout(), "listening on {}", bound.url())?;
    io::stdout().flush()?;
    match serve(bound, for_browsers, shell, limits, stop).await? {
        ServerEnd::Drained => tracing::info!("stopped: every request had its answer"),
        ServerEnd::CutOff => tracing::warn!("stopped: requests or an append were cut off"),
    }
    Ok(())
}
