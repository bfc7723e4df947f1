//! Runs in an S3 store, with the whole program: solving, crashes, two writers, damage, copies.
//!
//! Needs a server: `scripts/ci-s3.sh` starts several servers and runs these tests against each. `EXACT2048_TEST_S3` is the
//! URL of a bucket or prefix that the tests may write to. The usual variables configure the access. Without
//! `EXACT2048_TEST_S3`, the tests are skipped, unless `EXACT2048_REQUIRE_S3` is set.

use crate::{common, disk};

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use common::cluster::watch;
use common::proxy::{Fate, Proxy};
use common::serving::Server;
use common::snapshots::assert_section;
use common::{Finished, Place, command, events, exact2048, files, signal, text, whole};
use exact2048_storage::{Location, RunDir, StoreSettings};
use serde_json::Value;

const JOB: [&str; 2] = ["--board", "3x2"];

/// Fingerprint of every run of 3x2.
const FINGERPRINT: &str = "d824fa6f0a7d0cde64a79087a89cab66";

/// A new prefix in the store, and a new cache.
struct Bucket {
    url: String,
    local: Place,
}

impl Bucket {
    /// `None` without a store for tests.
    fn new(test: &str) -> Option<Self> {
        let Ok(base) = std::env::var("EXACT2048_TEST_S3") else {
            assert!(
                std::env::var_os("EXACT2048_REQUIRE_S3").is_none(),
                "EXACT2048_TEST_S3 is not set: run scripts/ci-s3.sh"
            );
            eprintln!("{test} is skipped: EXACT2048_TEST_S3 is not set, see scripts/ci-s3.sh");
            return None;
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let url = format!("{}/{test}-{}-{now}", base.trim_end_matches('/'), std::process::id());
        Some(Self { url, local: Place::new() })
    }

    fn cache(&self) -> PathBuf {
        self.local.join("cache")
    }

    fn args(&self, subcommand: &str, options: &[&str]) -> Vec<String> {
        let cache = self.cache();
        let place = [subcommand, "--run", &self.url, "--cache", cache.to_str().unwrap()];
        [&place, options].concat().into_iter().map(str::to_owned).collect()
    }

    fn call(&self, subcommand: &str, options: &[&str]) -> Finished {
        exact2048(self.args(subcommand, options))
    }

    fn solve_command(&self, failpoints: &str) -> Command {
        let mut command = command(self.args("solve", &[&JOB[..], &["--json"]].concat()));
        command.env("FAILPOINTS", failpoints);
        command
    }

    fn solve_failing(&self, failpoints: &str) -> Finished {
        Finished::new(self.solve_command(failpoints).output().unwrap())
    }

    fn start(&self, failpoints: &str) -> Child {
        let mut command = self.solve_command(failpoints);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Solves to the end, and requires the fingerprint of this job.
    #[track_caller]
    fn is_solved(&self) -> Value {
        let summary = self.solve_failing("").exits(0).json();
        assert_eq!(text(&summary["fingerprint"]), FINGERPRINT);
        self.call("verify", &[]).exits(0);
        summary
    }

    /// Runs the usual client of S3, as users do to copy a run.
    fn aws(&self, args: &[&str]) {
        let done = Command::new("aws").args(["s3"]).args(args).output().unwrap();
        assert!(done.status.success(), "aws s3 {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn copy_to(&self, folder: &Path) {
        self.aws(&["cp", "--recursive", "--quiet", &self.url, folder.to_str().unwrap()]);
    }

    fn shards(&self) -> Vec<String> {
        self.shards_of("")
    }

    /// The shards of a job of a cluster.
    fn shards_of(&self, job: &str) -> Vec<String> {
        let copy = Place::new();
        self.copy_to(copy.path());
        common::shards(&copy.join(job))
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    fn reader(&self) -> RunDir {
        let settings = StoreSettings { cache_folder: Some(self.cache()), ..StoreSettings::default() };
        RunDir::open_read_only(Location::parse(self.url.as_ref(), &settings).unwrap()).unwrap()
    }
}

/// Bytes of the objects of a run, counted in a copy.
fn bytes_of(copy: &Path) -> u64 {
    let folders = ["", "journal", "shards"].map(|folder| copy.join(folder));
    let files = folders.iter().flat_map(|folder| files(folder)).filter(|path| path.is_file());
    files.map(|path| path.metadata().unwrap().len()).sum()
}

fn in_time<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_is_solved_queried_and_copied() {
    let Some(bucket) = Bucket::new("whole") else { return };
    for subcommand in ["info", "layers", "verify"] {
        bucket.call(subcommand, &[]).exits(1).says(&["manifest.json", &bucket.url]);
    }
    let summary = bucket.is_solved();
    let copy = bucket.local.join("copy");
    bucket.copy_to(&copy);
    assert_eq!(whole(&summary["bytes_on_disk"]), bytes_of(&copy));
    let answer = |run: &str| exact2048(["query", "--json", "--run", run, "2 2 / 0 0 / 0 0"]).exits(0).json();
    let in_store = bucket.call("query", &["--json", "2 2 / 0 0 / 0 0"]).exits(0).json();

    // The copy is an ordinary run, and `solve` can repair it.
    assert_eq!(answer(copy.to_str().unwrap()), in_store);
    exact2048(["verify", "--run", copy.to_str().unwrap()]).exits(0);
    std::fs::remove_file(common::shards(&copy).remove(0)).unwrap();
    let url = format!("file://{}", copy.display());
    let mended = exact2048([&["solve", "--json", "--run", &url], &JOB[..]].concat()).exits(0).json();
    assert_eq!(text(&mended["fingerprint"]), FINGERPRINT);

    let shard = format!("{}/shards/{}", bucket.url, bucket.shards()[0]);
    let cache = bucket.cache();
    exact2048(["inspect", "--cache", cache.to_str().unwrap(), &shard]).exits(0);
    // A second solve changes only the journal. Another job is refused and changes nothing.
    let shards = bucket.shards();
    bucket.is_solved();
    assert_eq!(bucket.shards(), shards);
    exact2048(bucket.args("solve", &["--board", "2x2"])).exits(2).says(&["2x2", "3x2"]);
}

#[test]
fn a_run_begun_in_a_directory_is_finished_in_a_store() {
    let Some(bucket) = Bucket::new("moved") else { return };
    let local = bucket.local.join("run");
    let args = [&["solve", "--run", local.to_str().unwrap()], &JOB[..]].concat();
    let mut begun = command(args);
    let ended = Finished::new(begun.env("FAILPOINTS", "journal.folder_synced=return").output().unwrap());
    assert_eq!(ended.signal, Some(6), "{ended:?}");
    bucket.aws(&["cp", "--recursive", "--quiet", "--exclude", "lock", local.to_str().unwrap(), &bucket.url]);
    bucket.is_solved();
}

/// The limit counts the objects of the run. A solve that is killed during a removal resumes and deletes the rest.
#[test]
fn a_limit_of_the_disk_removes_objects() {
    let Some(bucket) = Bucket::new("limit") else { return };
    let limit = 1_800_000;
    let options = format!("{} --keep 128 --disk {limit} --json", disk::JOB);
    let args = bucket.args("solve", &options.split(' ').collect::<Vec<_>>());
    for point in ["removal.committed", "removal.begun"] {
        let mut begun = command(&args);
        let ended = begun.env("FAILPOINTS", format!("{point}=3*off->return")).output().unwrap();
        let ended = Finished::new(ended);
        assert_eq!(ended.signal, Some(6), "{point}: {ended:?}");
    }
    let summary = exact2048(&args).exits(0).json();
    assert!(whole(&summary["peak_disk_bytes"]) <= limit, "{summary}");
    let copy = bucket.local.join("copy");
    bucket.copy_to(&copy);
    disk::is_stored_whole(&copy, text(&summary["fingerprint"]));
    assert!(disk::enumerated_again(&copy) > 50);
    assert!(bytes_of(&copy) <= limit, "{} there", bytes_of(&copy));
}

#[test]
fn crashes_at_every_point_are_resumed() {
    let Some(bucket) = Bucket::new("crash") else { return };
    let points = [
        "store.manifest_created",
        "store.opened",
        "store.before_shard",
        "store.shard_uploaded",
        "store.before_record",
        "store.record_created",
    ];
    for point in points {
        let ended = bucket.solve_failing(&format!("{point}=return"));
        assert_eq!(ended.signal, Some(6), "{point}: {ended:?}");
        bucket.call("info", &["--json"]).exits(0).json();
    }
    let committed = bucket.reader().records().len();
    assert_eq!(committed, 1);
    bucket.is_solved();
    let run = bucket.reader();
    let named: Vec<&str> = run.records().iter().map(|record| text(&record["shards"][0]["file"])).collect();
    for shard in bucket.shards() {
        assert!(named.contains(&shard.as_str()), "{shard} is left over");
    }
}

#[test]
fn a_cluster_solves_in_a_store() {
    let Some(bucket) = Bucket::new("cluster") else { return };
    a_cluster_solves(&bucket, &[]);
}

/// Some requests to the store are refused, some are slow, and some are carried out without an answer.
#[test]
fn a_cluster_solves_in_a_store_that_fails_now_and_then() {
    use Fate::{AnswerLost, Busy, Passes, Refused, Slow};
    let Some(bucket) = Bucket::new("failing") else { return };
    let fates = &[Passes, Refused, Passes, Slow, Passes, AnswerLost, Passes, Busy];
    let proxy = Proxy::start(store_address(), fates);
    a_cluster_solves(&bucket, &[("AWS_ENDPOINT_URL", &proxy.url())]);
    assert!(proxy.requests() > 50, "{} requests took that way", proxy.requests());
}

/// With a full store, the job fails, names the remedy, and preserves its committed shards. With free space, it resumes from
/// these shards.
#[test]
fn a_job_whose_store_is_full_resumes_when_there_is_room() {
    let Some(bucket) = Bucket::new("full") else { return };
    let has_room = Arc::new(AtomicBool::new(false));
    let room = Arc::clone(&has_room);
    let proxy = Proxy::start_with(store_address(), move |_, line| {
        let adds_values = line.starts_with("PUT ") && line.contains("/shards/values-");
        if adds_values && !room.load(Ordering::Relaxed) { Fate::Full } else { Fate::Passes }
    });
    let endpoint = proxy.url();
    let cluster = StoreCluster::start(&bucket, &[("AWS_ENDPOINT_URL", &endpoint)]);
    cluster.client("submit", &JOB).exits(0);
    cluster.client("status", &["3x2", "--watch"]).exits(1);
    let failed = cluster.client("status", &["3x2", "--json"]).exits(0).json();
    // The job fails after five retries. Failures within one lease count as one.
    assert_eq!(text(&failed["state"]), "failed", "{failed}");
    assert!(whole(&failed["retries"]) >= 5, "{failed}");
    let reason = text(&failed["failure"]);
    let object = format!("{}/3x2/shards/values-", bucket.url);
    for fact in [&*object, "QuotaExceeded"] {
        assert!(reason.contains(fact), "{fact:?} is missing from: {reason}");
    }
    let advice = "exact2048 resume 3x2";
    let shown = cluster.client("status", &["3x2"]).exits(0).stdout;
    assert!(shown.contains(advice), "{advice:?} is missing from: {shown}");

    // The upward pass stays committed.
    cluster.on_run("verify", &["--partial"]);
    let committed = bucket.shards_of("3x2");
    assert!(
        !committed.is_empty() && committed.iter().all(|name| name.starts_with("reach-")),
        "{committed:?}"
    );
    has_room.store(true, Ordering::Relaxed);
    cluster.client("resume", &["3x2"]).exits(0);
    cluster.is_solved();
    let shards = bucket.shards_of("3x2");
    assert!(committed.iter().all(|name| shards.contains(name)), "{committed:?} became {shards:?}");
}

/// A worker that joins with an empty cache copies the committed shards from other workers. It reads none of them from the
/// store.
#[test]
fn workers_take_copies_from_each_other() {
    let Some(bucket) = Bucket::new("peers") else { return };
    let (downward, gate) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begun, open) = (Arc::clone(&downward), Arc::clone(&gate));
    let proxy = Proxy::start_with(store_address(), move |_, line| {
        if line.starts_with("PUT ") && line.contains("/shards/values-") {
            begun.store(true, Ordering::Relaxed);
            // Blocks commits of the downward pass until another worker has joined.
            in_time("the gate opens", || open.load(Ordering::Relaxed).then_some(()));
        }
        Fate::Passes
    });
    let endpoint = proxy.url();
    let mut cluster = StoreCluster::start(&bucket, &[("AWS_ENDPOINT_URL", &endpoint)]);
    cluster.client("submit", &JOB).exits(0);
    in_time("the downward pass begins", || downward.load(Ordering::Relaxed).then_some(()));
    cluster.start_worker("three");
    // The next coordinator restarts the downward pass with all three workers. Their lanes differ from before.
    cluster.restart_coordinator();
    gate.store(true, Ordering::Relaxed);
    watch(&cluster.coordinator.url, "3x2");
    let new = cluster.workers[2].scrape();
    let shards =
        new.lines().find_map(|line| line.strip_prefix("exact2048_fetched_shards_total{from=\"peer\"} "));
    assert!(shards.is_some_and(|shards| shards.parse::<u64>().unwrap() > 0), "{new}");
    cluster.is_solved();
}

/// The address of the store itself.
fn store_address() -> SocketAddr {
    let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap();
    let server = endpoint.strip_prefix("http://").unwrap().trim_end_matches('/');
    server.to_socket_addrs().unwrap().next().unwrap()
}

/// A coordinator and workers with separate caches that share only the store.
struct StoreCluster<'a> {
    bucket: &'a Bucket,
    variables: Vec<(&'a str, &'a str)>,
    coordinator: Server,
    workers: Vec<Server>,
}

impl<'a> StoreCluster<'a> {
    /// Starts a cluster with two workers.
    #[track_caller]
    fn start(bucket: &'a Bucket, variables: &[(&'a str, &'a str)]) -> Self {
        let coordinator = start_coordinator(bucket, "127.0.0.1:0", variables);
        let mut cluster = Self { bucket, variables: variables.to_vec(), coordinator, workers: Vec::new() };
        ["one", "two"].iter().for_each(|name| cluster.start_worker(name));
        cluster
    }

    /// Kills the coordinator, and restarts it at the same address.
    #[track_caller]
    fn restart_coordinator(&mut self) {
        let address = self.coordinator.address().to_string();
        self.coordinator.kill();
        self.coordinator = start_coordinator(self.bucket, &address, &self.variables);
    }

    #[track_caller]
    fn start_worker(&mut self, name: &str) {
        let cache = self.bucket.local.join(name);
        let url = &self.coordinator.url;
        let args = ["worker", "--coordinator", url, "--store", &self.bucket.url, "--listen", "127.0.0.1:0"];
        let what = ["--threads", "1", "--memory", "1GiB", "--metrics-listen", "127.0.0.1:0", "--cache"];
        let args = [&args[..], &what, &[cache.to_str().unwrap()]].concat();
        self.workers.push(Server::launch(&args, &self.variables));
    }

    /// Runs a client's command.
    fn client(&self, subcommand: &str, args: &[&str]) -> Finished {
        exact2048([&[subcommand, "--coordinator", &self.coordinator.url], args].concat())
    }

    /// Runs a command on the run of the job 3x2.
    #[track_caller]
    fn on_run(&self, subcommand: &str, options: &[&str]) -> Finished {
        let run = format!("{}/3x2", self.bucket.url);
        let cache = self.bucket.local.join("reader");
        let place = [subcommand, "--run", &run, "--cache", cache.to_str().unwrap()];
        exact2048([&place, options].concat()).exits(0)
    }

    /// Waits for the job 3x2, and requires its fingerprint.
    #[track_caller]
    fn is_solved(&self) {
        watch(&self.coordinator.url, "3x2");
        assert_eq!(text(&self.on_run("info", &["--json"]).json()["fingerprint"]), FINGERPRINT);
        self.on_run("verify", &[]);
    }
}

#[track_caller]
fn start_coordinator(bucket: &Bucket, listen: &str, variables: &[(&str, &str)]) -> Server {
    let cache = bucket.local.join("head");
    let args =
        ["coordinator", "--store", &bucket.url, "--listen", listen, "--cache", cache.to_str().unwrap()];
    Server::launch(&args, variables)
}

/// Solves the job with a cluster.
#[track_caller]
fn a_cluster_solves(bucket: &Bucket, variables: &[(&str, &str)]) {
    let cluster = StoreCluster::start(bucket, variables);
    assert_eq!(cluster.client("submit", &JOB).exits(0).stdout.trim(), "3x2");
    cluster.is_solved();
}

/// A process that sleeps while another process takes over the run cannot commit when it wakes.
#[test]
fn the_earlier_of_two_writers_is_fenced_off() {
    let Some(bucket) = Bucket::new("fence") else { return };
    let sleeper = bucket.start("store.before_record=1*sleep(6000)");
    in_time("the first writer opens the run", || {
        // Does not use the client of S3, because its start takes a large part of the time that the first writer sleeps.
        let found = bucket.call("info", &[]);
        (found.code == Some(0) && !bucket.reader().shard_files().unwrap().is_empty()).then_some(())
    });
    let summary = bucket.solve_failing("").exits(0).json();
    assert_eq!(text(&summary["fingerprint"]), FINGERPRINT);
    let shards = bucket.shards();
    let fenced = Finished::new(sleeper.wait_with_output().unwrap());
    assert_section("fenced writer", &fenced.exits(1).last_line().replace(&bucket.url, "[RUN]"));
    assert_eq!(bucket.shards(), shards, "a process that was fenced off changed the run");
    bucket.is_solved();
}

#[test]
fn of_many_writers_one_at_a_time_commits() {
    let Some(bucket) = Bucket::new("race") else { return };
    let writers: Vec<Child> = (0..4).map(|_| bucket.start("")).collect();
    let ended: Vec<Finished> =
        writers.into_iter().map(|child| Finished::new(child.wait_with_output().unwrap())).collect();
    for finished in &ended {
        assert!(matches!(finished.code, Some(0 | 1)), "{finished:?}");
    }
    bucket.is_solved();
}

#[test]
fn lost_and_damaged_shards_are_made_again() {
    let Some(bucket) = Bucket::new("damage") else { return };
    bucket.is_solved();
    type Damage = fn(&mut Vec<u8>);
    let damage: [(&str, Damage); 3] = [
        ("flipped", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        }),
        ("cut", |bytes| bytes.truncate(bytes.len() / 2)),
        ("emptied", Vec::clear),
    ];
    for which in [0, 1] {
        for (how, damage) in damage {
            let copy = Place::new();
            bucket.copy_to(copy.path());
            let victim = common::shards(copy.path()).remove(which);
            let mut bytes = std::fs::read(&victim).unwrap();
            damage(&mut bytes);
            std::fs::write(&victim, bytes).unwrap();
            let name = victim.file_name().unwrap().to_str().unwrap();
            bucket.aws(&[
                "cp",
                "--quiet",
                victim.to_str().unwrap(),
                &format!("{}/shards/{name}", bucket.url),
            ]);
            bucket.call("verify", &[]).exits(1).says(&[name]);
            let solved = bucket.solve_failing("");
            assert!(solved.stderr.contains(name), "{how}: {solved:?}");
            bucket.is_solved();
        }
        bucket.aws(&["rm", "--quiet", &format!("{}/shards/{}", bucket.url, bucket.shards()[which])]);
        bucket.is_solved();
    }
    // A damaged copy in the cache does no harm.
    for entry in files(&bucket.cache()) {
        let mut bytes = std::fs::read(&entry).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&entry, bytes).unwrap();
    }
    let answered = bucket.call("query", &["2 2 / 0 0 / 0 0"]).exits(0);
    assert!(answered.stderr.is_empty(), "{answered:?}");
}

#[test]
fn a_run_without_its_journal_is_not_started_over_in_silence() {
    let Some(bucket) = Bucket::new("journal") else { return };
    bucket.is_solved();
    let shards = bucket.shards();
    bucket.aws(&["rm", "--recursive", "--quiet", &format!("{}/journal", bucket.url)]);
    let refused = bucket.call("solve", &JOB).exits(1);
    refused.says(&["journal", "--discard-shards"]);
    assert_eq!(bucket.shards(), shards);
    bucket.call("solve", &[&JOB[..], &["--discard-shards"]].concat()).exits(0);
    bucket.is_solved();
}

/// Needs no store. The test acts as a store without buckets.
#[test]
fn a_bucket_that_does_not_exist() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // Reads one request per connection to its end.
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let _ = lines.find(String::is_empty);
            let body = "<?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code></Error>";
            let head = format!(
                "HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = (&stream).write_all((head + body).as_bytes());
        }
    });
    let place = Place::new();
    let cache = place.join("cache");
    for (subcommand, options) in [("info", &[][..]), ("solve", &JOB[..]), ("query", &["2 2 0 / 0 0 0"])] {
        let args = [subcommand, "--run", "s3://nowhere/run", "--cache", cache.to_str().unwrap()];
        let mut command = command([&args[..], options].concat());
        let keys = [("AWS_ACCESS_KEY_ID", "AK"), ("AWS_SECRET_ACCESS_KEY", "SK"), ("AWS_ALLOW_HTTP", "true")];
        command.envs(keys).env("AWS_ENDPOINT_URL", &endpoint);
        let refused = Finished::new(command.output().unwrap());
        refused.exits(1).says(&["nowhere"]).prints("missing bucket");
    }
}

/// Needs no store.
#[test]
fn missing_and_wrong_settings_are_named() {
    let call = |variables: &[(&str, &str)], url: &str| {
        let mut command = command(["info", "--run", url]);
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        Finished::new(command.output().unwrap())
    };
    let keys = [("AWS_ACCESS_KEY_ID", "AK"), ("AWS_SECRET_ACCESS_KEY", "very-secret")];
    call(&[], "s3://bucket/x").exits(2).says(&["AWS_ACCESS_KEY_ID"]);
    call(&keys[..1], "s3://bucket/x").exits(2).says(&["AWS_SECRET_ACCESS_KEY"]);
    call(&keys, "gs://bucket/x").exits(2).says(&["gs://", "s3://"]);
    let nowhere = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    call(&[keys[0], keys[1], nowhere], "s3://bucket/x").exits(2).says(&["AWS_ALLOW_HTTP"]);
    let begun = Instant::now();
    let place = Place::new();
    let cache = ("XDG_CACHE_HOME", place.path().to_str().unwrap());
    let refused = call(&[keys[0], keys[1], nowhere, ("AWS_ALLOW_HTTP", "true"), cache], "s3://bucket/x");
    let refused = refused.exits(1).says(&["s3://bucket/x/manifest.json"]);
    assert!(!refused.stderr.contains("very-secret"), "{refused:?}");
    // The program warns while it waits. There is nothing to resume.
    assert!(refused.stderr.lines().count() >= 2, "{refused:?}");
    assert_section("store that does not answer", refused.last_line());
    assert!(begun.elapsed() < Duration::from_secs(60), "it took too long to give up");
}

/// Needs no store. The test acts as a store that accepts connections and sends nothing. The coordinator ends at the signal.
#[test]
fn a_coordinator_ends_while_its_store_does_not_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let place = Place::new();
    let mut coordinator = command([
        "coordinator",
        "--store",
        "s3://bucket/x",
        "--listen",
        "127.0.0.1:0",
        "--grace",
        "1",
        "--cache",
    ]);
    coordinator.arg(place.join("cache")).stdout(Stdio::piped()).stderr(Stdio::piped());
    coordinator.envs([
        ("AWS_ACCESS_KEY_ID", "AK"),
        ("AWS_SECRET_ACCESS_KEY", "SK"),
        ("AWS_ALLOW_HTTP", "true"),
    ]);
    let mut coordinator = coordinator.env("AWS_ENDPOINT_URL", endpoint).spawn().unwrap();
    // Waits until the coordinator has contacted the store.
    let (_asked, _) = silent.accept().unwrap();
    assert!(signal(coordinator.id(), "TERM"));
    let begun = Instant::now();
    while coordinator.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            coordinator.kill().unwrap();
            panic!("it waits for its store");
        }
        thread::sleep(Duration::from_millis(20));
    }
    Finished::new(coordinator.wait_with_output().unwrap()).exits(0).says(&[events::STOPPED_EARLY]);
}
