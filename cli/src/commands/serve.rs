//! `exact2048 serve`: serves the values of states over gRPC, and to browsers, until stopped.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytesize::ByteSize;
use exact2048_explorer::Explorer;
use exact2048_net::client::is_address;
use exact2048_net::install_crypto;
use exact2048_net::serve::{Bound, ServerEnd};
use exact2048_net::shutdown::Stop;
use exact2048_server::{NamedRun, Runs, Served, Turns};
use exact2048_solution::{OracleOptions, Run};
use exact2048_stats::FollowerOfRun;
use http::HeaderValue;

use super::stats::follower_of;
use crate::cones::{ConeOptions, kernels};
use crate::limits::{self, memory_bytes};
use crate::network::{ServerArgs, run_to_end};
use crate::place::{StoreOptions, named};

/// Default port.
const PORT: u16 = 2048;

/// Options of `serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 serve --run runs/3x3
  exact2048 serve --run runs/3x3 --http 127.0.0.1:8048
  exact2048 serve --run small=runs/2x2 --run runs/3x3 --http 127.0.0.1:8048
  exact2048 serve --run runs/3x3 --listen 0.0.0.0:2048 \\
      --tls-cert server.pem --tls-key server.key --token-file token
  exact2048 query --server http://127.0.0.1:2048 --server-run small \"2 0 / 0 2\"
  exact2048 query --server http://127.0.0.1:2048 \"2 0 0 / 0 2 0 / 0 0 0\"
  grpcurl -plaintext -d '{\"board\": {\"text\": \"2 0 0 / 0 2 0 / 0 0 0\"}}' \\
      127.0.0.1:2048 exact2048.v1.Query/GetValue

Beyond loopback a server needs TLS and a token or client certificates. The server rereads an unsolved run until it is
solved. On SIGTERM or SIGINT the server finishes its current requests, then exits. docs/serving.md describes the calls,
the limits and the metrics. docs/explorer.md describes the explorer for browsers (--http).")]
pub struct Args {
    /// Serve the run at this location: a directory, file:///DIR, or s3://BUCKET/PREFIX (keys from the environment). Can be
    /// repeated; requests that name no run use the first run
    #[arg(long = "run", value_name = "[NAME=]DIR|URL", required = true)]
    runs: Vec<OsString>,
    #[command(flatten)]
    store: StoreOptions,
    /// Serve the explorer for browsers at this address too; port 0 takes any free port
    #[arg(long, value_name = "ADDR", value_parser = crate::network::listen_address)]
    http: Option<SocketAddr>,
    /// Allow pages from this origin to call the API of the explorer: scheme and host, as browsers send them; can be
    /// repeated
    #[arg(long, value_name = "ORIGIN", requires = "http", value_parser = origin)]
    allow_origin: Vec<HeaderValue>,
    /// Limit the memory for decoded parts of the runs, for example to 1GiB
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, default_value = "256MiB")]
    memory: ByteSize,
    /// Limit the memory for values that a run does not store. Each concurrent computation (--cones) gets an equal
    /// part, and so does the cache of earlier results
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, default_value = "2GiB")]
    cone_memory: ByteSize,
    /// Limit the concurrent computations of values that a run does not store. Other computations wait; excess requests
    /// are refused and can be retried
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    cones: u16,
    #[command(flatten)]
    cone_options: ConeOptions,
    /// Answer with this many threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Parses an origin as browsers send it.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let wrong = || {
        format!(
            "expected http://HOST or https://HOST, with :PORT unless it is the default port, found {text:?}"
        )
    };
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or_else(wrong)?;
    // Browsers omit the default port, so an origin with it never matches.
    let default = if text.starts_with("https") { ":443" } else { ":80" };
    if !is_address(text) || host.contains('/') || host.ends_with(default) {
        return Err(wrong());
    }
    HeaderValue::from_str(text).map_err(|_| wrong())
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    install_crypto();
    args.server.start_logs()?;
    let threads = limits::useful_threads(args.threads, None);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        // Threads for the oracle. Batches, the explorer and single requests get `threads` each. Each computation of
        // values that are not stored gets one thread.
        .max_blocking_threads(3 * threads + usize::from(args.cones))
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    // Each computation of values that are not stored uses all of these threads.
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("cannot start threads")?;
    run_to_end(runtime, serve(args, threads))
}

async fn serve(args: &Args, threads: usize) -> Result<()> {
    let mut options = args.server.options(PORT)?;
    options.allowed.origins.clone_from(&args.allow_origin);
    let limits = options.limits;
    let stop = Stop::on_signals(limits.grace).context("cannot handle signals")?;
    let runs = open(args)?;
    let bound = Bound::new(options).await?;
    let for_browsers = match args.http {
        Some(address) => Some(bound.bind_http(address).await?),
        None => None,
    };
    let turns = Turns::new(args.cones.into(), &stop);
    let of_run = Arc::clone(runs.first());
    args.server.serve_metrics(Arc::new(move || of_run.record_metrics()), &stop).await?;
    exact2048_server::describe();
    if let Some(http) = &for_browsers {
        writeln!(io::stdout(), "explorer on {}/", http.url())?;
    }
    // Scripts wait for this line. They can connect from now on, because requests wait in the queue of the listener.
    writeln!(io::stdout(), "listening on {}", bound.url())?;
    io::stdout().flush()?;
    let play = (follower_of as FollowerOfRun, memory_bytes() / 2);
    let explorer = Explorer::new(runs.clone(), threads, turns.clone(), bound.check_token(), play);
    let (of_grpc, of_http) = tokio::try_join!(
        exact2048_server::serve(bound, runs, threads, turns, limits, stop.clone()),
        serve_browsers(for_browsers, explorer, &args.allow_origin, stop),
    )?;
    match [of_grpc, of_http].contains(&ServerEnd::CutOff) {
        false => tracing::info!("stopped: all requests were answered"),
        true => tracing::warn!("stopped: requests were cut off, or connections were left open"),
    }
    Ok(())
}

/// Serves the explorer, if an address is given.
async fn serve_browsers(
    bound: Option<Bound>,
    explorer: Explorer,
    origins: &[HeaderValue],
    stop: Stop,
) -> Result<ServerEnd> {
    let Some(bound) = bound else { return Ok(ServerEnd::Drained) };
    let router = exact2048_explorer::router(explorer, origins);
    Ok(bound.serve_http(router, &exact2048_explorer::paths(), stop).await?)
}

/// Opens the runs. Each run gets an equal part of the memory.
fn open(args: &Args) -> Result<Runs> {
    let count = args.runs.len() as u64;
    let share = args.cone_memory.as_u64() / (u64::from(args.cones) + 1) / count;
    let mut runs: Vec<NamedRun> = Vec::new();
    for (name, place) in named(&args.runs)? {
        let location = args.store.locate_to_serve(&place)?;
        let oracle = OracleOptions {
            cache_bytes: args.memory.as_u64() / count,
            cone_bytes: share,
            solved_bytes: share,
            cone_files: args.cone_options.files(&location),
            kernels: Some(kernels(args.memory.as_u64() + args.cone_memory.as_u64())),
        };
        let served = Arc::new(Served::new(Box::new(move || Ok(Run::open(&location)?)), oracle)?);
        if let Some(reason) = &served.now().not_solved {
            tracing::warn!(run = name, reason, "values are unavailable until the run is solved");
        }
        runs.push(NamedRun { name, served });
    }
    let mut runs = runs.into_iter();
    let first = runs.next().context("no run is given")?;
    Ok(Runs::new(first, runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_parsed_as_browsers_send_them() {
        for good in ["https://example.org", "http://127.0.0.1:8080", "http://[::1]:1"] {
            assert!(origin(good).is_ok(), "{good}");
        }
        for wrong in ["*", "example.org", "https://example.org/", "https://example.org/page", "https://"] {
            assert!(origin(wrong).unwrap_err().contains("expected http://HOST"), "{wrong}");
        }
    }
}
