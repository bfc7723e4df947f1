//! `exact2048 worker`: computes for a coordinator until stopped.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use bytesize::ByteSize;
use exact2048_cluster::token;
use exact2048_cluster::worker::{self, MemoryClaim, WorkerOptions};
use exact2048_game::{BoardSize, Objective, Params};
use exact2048_net::install_crypto;
use exact2048_net::serve::{Bound, ServerEnd};
use exact2048_net::shutdown::Stop;
use exact2048_net::token::Token;

use crate::network::{ServerArgs, run_to_end};
use crate::place::StoreOptions;
use crate::units::{self, SizeUnits};
use crate::{Failure, limits};

/// Options of `worker`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  exact2048 worker --coordinator http://127.0.0.1:2049
  exact2048 worker --coordinator https://head:2049 --listen 0.0.0.0:0 \\
      --tls-cert worker.pem --tls-key worker.key --tls-ca ca.pem
  exact2048 worker --coordinator http://head:2049 --store /shared/2048 --listen 0.0.0.0:0 --insecure \\
      --threads 32 --memory 200GiB --cache /local/cache

Any number of workers can join and leave at any time. A worker presents its certificate and token to the coordinator
and to other workers, and requires them from other workers. Without --token-file, it reads the token in --store, or
finds the token of a coordinator of the same user on the same machine. With --tls-ca it needs no token. On SIGTERM it
hands back its unfinished work. docs/cluster.md is the guide.")]
pub struct Args {
    /// Work for this coordinator: http://HOST:PORT, or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    coordinator: String,
    /// Advertise this name or address, and optionally a port, to other workers [default: the local address of the route
    /// to the coordinator, and the port of --listen]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = Advertise::from_str)]
    advertise: Option<Advertise>,
    /// Compute with this many threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = crate::parsing::threads())]
    threads: Option<u16>,
    /// Limit the memory, for example to 64GiB [default: 3/4 of the memory that is free and not claimed by other workers
    /// with the same cache]
    #[arg(long, value_name = "SIZE", value_parser = crate::parsing::size, allow_negative_numbers = true)]
    memory: Option<ByteSize>,
    /// Read the token in this store, which is the --store of the coordinator; wait until the coordinator has made it
    #[arg(long, value_name = "DIR|URL")]
    store: Option<OsString>,
    #[command(flatten)]
    cache: StoreOptions,
    #[command(flatten)]
    server: ServerArgs,
}

/// Largest length of a host name in the DNS.
const LONGEST_NAME: usize = 253;

/// Time between attempts to read the token.
const TOKEN_RETRY: Duration = Duration::from_millis(500);

/// Number of compute threads for each network thread.
const COMPUTING_PER_NETWORK_THREAD: usize = 4;

/// Number of network threads for `threads` compute threads.
fn network_threads(threads: usize) -> usize {
    threads.div_ceil(COMPUTING_PER_NETWORK_THREAD)
}

/// Runs the command.
pub fn main(args: &Args) -> Result<()> {
    install_crypto();
    args.server.start_logs()?;
    // The worker learns later which stores its jobs use, so check all S3 variables of the environment now.
    exact2048_storage::check_environment().map_err(|error| Failure::usage(error.to_string()))?;
    let threads = limits::useful_threads(args.threads, None);
    // The compute threads are separate from these network threads.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(network_threads(threads))
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    run_to_end(runtime, work(args, threads))
}

async fn work(args: &Args, threads: usize) -> Result<()> {
    let claim = memory(args, threads)?;
    let memory_bytes = claim.bytes;
    let mut client = args.server.client(&args.coordinator, args.server.token()?);
    client.check()?;
    let stop = Stop::on_signals(args.server.grace()).context("cannot handle signals")?;
    if client.token.is_none() && !args.server.asks_for_certificates() {
        let Some(token) = stop.begun.run_until_cancelled(find_token(args)).await else { return Ok(()) };
        client.token = Some(token?);
        client.check()?;
    }
    let options = args.server.cluster_options(0, client.token.clone());
    let bound = Bound::new(options).await?;
    let tuning = limits::worker_tuning(memory_bytes, threads);
    limits::tune_allocator(tuning.limit_bytes, threads + network_threads(threads));
    let advertise = match &args.advertise {
        Some(advertise) => {
            format!("{}://{}", bound.scheme(), advertise.with_port(bound.options.listen.port()))
        }
        None => format!("{}://{}", bound.scheme(), reachable(bound.options.listen, &args.coordinator)?),
    };
    let options = WorkerOptions {
        client,
        advertise,
        threads,
        memory_bytes,
        tuning,
        store: args.cache.settings(),
        folder: folder(args)?,
    };
    args.server.serve_metrics(std::sync::Arc::new(|| {}), &stop).await?;
    worker::describe();
    writeln!(io::stdout(), "listening on {}", bound.url())?;
    io::stdout().flush()?;
    match worker::run(bound, options, stop).await? {
        ServerEnd::Drained => tracing::info!("stopped: running work was committed or handed back"),
        ServerEnd::CutOff => tracing::warn!("stopped during work: other workers will repeat it"),
    }
    Ok(())
}

/// Finds the token of the cluster in the store, or that of a coordinator of this user on this machine.
async fn find_token(args: &Args) -> Result<Token> {
    let Some(store) = &args.store else {
        let none = || {
            Failure::usage(format!(
                "expected the token of the coordinator at {}, found none. Start the coordinator first, or name its \
                 store (--store DIR|URL) or its token (--token-file FILE)",
                args.coordinator
            ))
        };
        return Ok(token::announced(&args.coordinator).ok_or_else(none)?);
    };
    let location = args.cache.locate(store)?;
    let mut has_waited = false;
    loop {
        let place = location.clone();
        if let Some(token) = tokio::task::spawn_blocking(move || token::of_store(&place)).await?? {
            return Ok(token);
        }
        if !std::mem::replace(&mut has_waited, true) {
            tracing::warn!(store = %location, "no token in the store, waiting for its coordinator");
        }
        tokio::time::sleep(TOKEN_RETRY).await;
    }
}

/// The address of `--advertise`, at which other workers reach this worker.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Advertise {
    /// A name, an IPv4 address, or an IPv6 address in brackets.
    host: String,
    port: Option<u16>,
}

impl Advertise {
    /// `HOST:PORT`, with `port` unless the option gives a port.
    fn with_port(&self, port: u16) -> String {
        format!("{}:{}", self.host, self.port.unwrap_or(port))
    }
}

impl FromStr for Advertise {
    type Err = String;

    /// Parses `HOST`, `HOST:PORT`, or an address. An IPv6 address needs brackets if a port follows.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_nowhere = |host: &str| host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        if let Ok(address) = text.parse::<IpAddr>()
            && !is_nowhere(text)
        {
            let host = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
            return Ok(Self { host, port: None });
        }
        let wrong = || {
            let text = exact2048_text::quoted(text, LONGEST_NAME);
            format!("expected HOST, HOST:PORT or [IPv6]:PORT of this machine, found {text}")
        };
        let (host, port) = match text.rsplit_once(':') {
            _ if text.ends_with(']') => (text, None),
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_host = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)),
        };
        let is_host = is_host && host.len() <= LONGEST_NAME && !is_nowhere(bracketed.unwrap_or(host));
        if is_host && port != Some(0) { Ok(Self { host: host.to_owned(), port }) } else { Err(wrong()) }
    }
}

/// Claims the memory of this worker.
///
/// # Errors
///
/// A usage error if the memory is too small for any job.
fn memory(args: &Args, threads: usize) -> Result<MemoryClaim> {
    let smallest = Params::builder(BoardSize::new(2, 2)?, Objective::Score).build()?;
    let least = exact2048_worker::least_memory_bytes(&smallest, threads);
    let refusal = |what: &str, bytes: u64| {
        let (sizes, threads) = (SizeUnits::of(bytes), units::several(threads, "thread"));
        let (bytes, least) = (sizes.size(bytes), sizes.at_least(least));
        let needed =
            format!("the smallest board needs at least {least} with {threads}, and others need more");
        Failure::usage(format!("--memory {bytes} {what}: {needed}"))
    };
    let asked = args.memory.map(|size| size.as_u64());
    if let Some(bytes) = asked.filter(|bytes| *bytes < least) {
        return Err(refusal("is too small for any job", bytes).into());
    }
    let free = limits::free_memory_bytes().unwrap_or_else(limits::memory_bytes);
    let claim = MemoryClaim::take(&folder(args)?, asked, free, &exact2048_run::machine::resident_bytes)?;
    if claim.bytes < least {
        return Err(refusal("is 3/4 of the free memory, too little for any job", claim.bytes).into());
    }
    Ok(claim)
}

/// The address at which other machines reach a socket.
fn reachable(address: SocketAddr, coordinator: &str) -> Result<SocketAddr> {
    if !address.ip().is_unspecified() {
        return Ok(address);
    }
    let host = coordinator.split("://").nth(1).unwrap_or(coordinator).trim_end_matches('/');
    let unknown =
        || format!("cannot find the local address of the route to {coordinator}; give --advertise HOST");
    let targets = host.to_socket_addrs().with_context(unknown)?;
    let own = |target: SocketAddr| {
        let any: SocketAddr = if target.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(any).ok()?;
        // `connect` sends nothing on a UDP socket. The system only chooses the route.
        socket.connect(target).ok()?;
        Some(SocketAddr::new(socket.local_addr().ok()?.ip(), address.port()))
    };
    targets.into_iter().find_map(own).with_context(unknown)
}

/// The folder for scratch files and for the name of the worker.
fn folder(args: &Args) -> Result<PathBuf> {
    Ok(args.cache.settings().cache_folder())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_advertise_addresses_of_both_kinds_and_names() {
        for (given, advertised) in [
            ("10.0.0.7", "10.0.0.7:2048"),
            ("10.0.0.7:99", "10.0.0.7:99"),
            ("fd00::7", "[fd00::7]:2048"),
            ("[fd00::7]", "[fd00::7]:2048"),
            ("[fd00::7]:99", "[fd00::7]:99"),
            ("node-1_a.example", "node-1_a.example:2048"),
            ("node1:99", "node1:99"),
        ] {
            let read = given.parse::<Advertise>().map(|advertise| advertise.with_port(2048));
            assert_eq!(read.as_deref(), Ok(advertised), "{given}");
        }
        for wrong in [
            "::",
            "0.0.0.0",
            "0.0.0.0:99",
            "[::]:99",
            &"x".repeat(254),
            "",
            ":99",
            "node1:",
            "node1:0",
            "node1:65536",
            "http://node1",
            "a b",
            "[node1]:99",
            "a\u{1b}[m",
        ] {
            assert!(wrong.parse::<Advertise>().is_err(), "{wrong:?}");
        }
    }
}
