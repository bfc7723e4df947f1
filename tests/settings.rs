//! Options and environment variables with arbitrary contents. The program works, or refuses them with exit code 2. It never
//! panics and never prints a secret.

use std::fs;
use std::path::Path;

use crate::common::{Finished, Place, Solved, command, exact2048, try_solve};

/// Default variables of a store at an address without a server. Tests override one of them.
const STORE: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "key"),
    ("AWS_SECRET_ACCESS_KEY", "secret"),
    ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
    ("AWS_ALLOW_HTTP", "true"),
];

/// Variables of a store with invalid values. The word `hush` represents a secret.
const REFUSED: [(&str, &str); 12] = [
    ("AWS_ENDPOINT_URL", "127.0.0.1:9000/hush"),
    ("AWS_ENDPOINT_URL", "\"http://hush\""),
    ("AWS_ENDPOINT_URL_S3", "http://hush:99999"),
    ("AWS_ENDPOINT_URL_S3", "https://user:hush@host"),
    ("AWS_ENDPOINT_URL", "http://"),
    ("AWS_ACCESS_KEY_ID", "hush hush"),
    ("AWS_SECRET_ACCESS_KEY", "hush\nhush"),
    ("AWS_SESSION_TOKEN", "h\u{fc}sh hush"),
    ("AWS_REGION", "hush/hush"),
    ("AWS_DEFAULT_REGION", "hush\u{7f}hush"),
    ("AWS_ALLOW_HTTP", "hush"),
    ("https_proxy", "\"http://hush:3128\""),
];

/// Runs the program with the variables of a store, and sets one of them to `value`.
fn with(args: &[&str], (name, value): (&str, &str)) -> Finished {
    let finished = Finished::new(command(args).envs(STORE).env(name, value).output().unwrap());
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(!said.contains("hush"), "{args:?} with {name}={value:?} shows it: {said}");
    finished
}

#[test]
fn a_variable_of_a_store_is_refused_by_its_name() {
    for (name, value) in REFUSED {
        with(&["info", "--run", "s3://bucket/run"], (name, value)).exits(2).says(&[name]);
    }
}

/// Servers and workers refuse invalid variables at their start. A worker does so before it knows the stores of its jobs.
#[test]
fn every_command_that_uses_stores_refuses_such_a_variable() {
    let (url, place) = ("s3://bucket/run", Place::new());
    let new = place.join("new");
    let new = new.to_str().unwrap();
    for args in [
        &["solve", "--board", "2x2", "--run", url][..],
        &["query", "--run", url, "2 2 / 0 0"],
        &["layers", "--run", url],
        &["verify", "--run", url],
        &["stats", "--run", url],
        &["inspect", "s3://bucket/run/shards/x"],
        &["count", "--run", url],
        &["report", "--run", url, "-o", new],
        #[cfg(feature = "export")]
        &["export", "--run", url, "--what", "states", "-o", new],
        &["serve", "--run", url, "--listen", "127.0.0.1:0"],
        &["coordinator", "--store", url, "--listen", "127.0.0.1:0"],
        &["worker", "--coordinator", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"],
    ] {
        with(args, ("AWS_ENDPOINT_URL", "hush")).exits(2).says(&["AWS_ENDPOINT_URL"]);
    }
    assert!(!Path::new(new).exists());
}

/// A secret of Kubernetes often ends with a line feed.
#[test]
fn line_ends_around_variables_of_a_store_are_ignored() {
    let variables = STORE.into_iter().chain([("AWS_SESSION_TOKEN", "token"), ("AWS_REGION", "eu-central-1")]);
    let mut info = command(["info", "--run", "s3://bucket/run"]);
    info.envs(variables.map(|(name, value)| (name, format!(" {value}\r\n"))));
    Finished::new(info.output().unwrap()).exits(1).says(&["Connection refused"]);
}

#[test]
fn options_that_name_no_address_are_refused() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let run = run.to_str().unwrap();
    let (server, job) = (["serve", "--run", run], ["solve", "--board", "2x2", "--run", "/nowhere/run"]);
    let worker = ["worker", "--coordinator", "http://127.0.0.1:1"];
    let long = "x".repeat(20_000);
    let hostile =
        ["", " ", "::", "[::1", "a b", "http://", "\u{1b}[31m", "\u{202e}x", "%00", "1e400", long.as_str()];
    for (args, option) in [
        (&server[..], "--listen"),
        (&server, "--metrics-listen"),
        (&server, "--http"),
        (&server, "--allow-origin"),
        (&server, "--threads"),
        (&server, "--memory"),
        (&server, "--max-connections"),
        (&worker, "--listen"),
        (&["worker"], "--coordinator"),
        (&["status"], "--coordinator"),
        (&["query", "2 2 / 0 0"], "--server"),
        (&job, "--objective"),
        (&job, "--spawn4"),
        (&job, "--discount"),
        (&job, "--spawner"),
        (&job, "--keep"),
        (&job, "--disk"),
        (&job, "--memory"),
        (&job, "--until-layer"),
        (&["solve", "--run", "/nowhere/run"], "--board"),
    ] {
        for value in hostile {
            let given = format!("{option}={value}");
            let refused = exact2048([args, &[given.as_str()]].concat()).exits(2);
            assert!(!refused.stderr.contains('\u{1b}'), "{given}: {refused:?}");
        }
    }
    for value in hostile.into_iter().filter(|value| *value != "1e400").chain(["0.0.0.0", "[::]:1"]) {
        exact2048([&worker[..], &[&format!("--advertise={value}")]].concat()).exits(2);
    }
    for wrong in ["=", "[", "info,[", "exact2048=loud", "hush hush"] {
        exact2048([&server[..], &["--listen", "127.0.0.1:0", "--log", wrong]].concat()).exits(2);
    }
    for bucket in ["..", "a%2fb", "[::1]", "\"a\"", "b\u{fc}cket"] {
        let url = format!("s3://{bucket}/run");
        Finished::new(command(["info", "--run", &url]).envs(STORE).output().unwrap()).exits(2);
    }
}

#[test]
fn no_token_is_shown() {
    for token in ["hush", "hush\nhush-hush-hush-hush", "h\u{fc}sh-hush-hush-hush-hush"] {
        let mut status = command(["status", "--coordinator", "http://127.0.0.1:1"]);
        let refused = Finished::new(status.env("EXACT2048_TOKEN", token).output().unwrap()).exits(2);
        assert!(
            refused.stderr.contains("EXACT2048_TOKEN") && !refused.stderr.contains("hush"),
            "{refused:?}"
        );
    }
    let place = Place::new();
    let file = place.join("token");
    let utf16: Vec<u8> = "hush-hush-hush-hush".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&file, utf16).unwrap();
    let status = ["status", "--coordinator", "http://127.0.0.1:1", "--token-file", file.to_str().unwrap()];
    exact2048(status).exits(2).says(&["UTF-16"]);
}

/// Invalid values in variables that many programs read have no effect.
#[test]
fn nonsense_in_other_variables_is_harmless() {
    let solved = Solved::new("--board 2x2");
    let run = solved.run();
    let query = ["query", "--run", run.to_str().unwrap(), "2 2 / 0 0"];
    let usual = exact2048(query).exits(0).stdout;
    for name in [
        "COLUMNS",
        "HOME",
        "LANG",
        "LC_ALL",
        "NO_COLOR",
        "NO_PROXY",
        "RAYON_NUM_THREADS",
        "RUST_LOG",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TERM",
        "TMPDIR",
        "XDG_CACHE_HOME",
        "AWS_ENDPOINT_URL",
        "EXACT2048_TOKEN",
    ] {
        for value in ["", "\"hush\"", "-1", "99999999999999999999", "/no/such/hush\n", "\u{1b}[31m"] {
            let finished = Finished::new(command(query).env(name, value).output().unwrap()).exits(0);
            assert_eq!((finished.stdout, finished.stderr.as_str()), (usual.clone(), ""), "{name}={value:?}");
        }
    }
}

/// Other programs write to stdout for `-`. In this program, `-` would be the name of a file or folder.
#[test]
fn a_hyphen_names_no_file_or_folder() {
    let (solved, place) = (Solved::new("--board 2x2"), Place::new());
    let run = solved.run();
    let run = run.to_str().unwrap();
    for args in [
        &["report", "--run", run, "-o", "-"][..],
        &["report", "--run", run, "-o", "page.html", "--svg", "-"],
        #[cfg(feature = "export")]
        &["export", "--run", run, "--what", "states", "-o", "-"],
        &["man", "--out", "-"],
        &["play", "--player", "greedy", "--board", "2x2", "--games", "1", "--record", "-"],
        &["stats", "--run", run, "--cone-cache", "-"],
        &["info", "--run", "s3://bucket/run", "--cache", "-"],
    ] {
        let refused = Finished::new(command(args).current_dir(place.path()).output().unwrap()).exits(2);
        refused.says(&["'-'", "./-"]);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "{args:?}");
    }
}

/// The cache is also unwritable in a container without a home directory.
#[test]
fn an_unwritable_cache_names_the_option() {
    let place = Place::new();
    let file = place.join("file");
    fs::write(&file, "").unwrap();
    let home = file.to_str().unwrap();
    for args in [
        &["inspect", "s3://bucket/run/shards/x"][..],
        &["worker", "--coordinator", "http://127.0.0.1:1", "--listen", "127.0.0.1:0"],
    ] {
        let mut command = command(args);
        command.envs(STORE).env("HOME", home).env_remove("XDG_CACHE_HOME");
        Finished::new(command.output().unwrap()).exits(1).says(&[".cache/exact2048", "--cache"]);
    }
}

/// A thousand threads would starve a machine for minutes.
#[test]
fn threads_without_work_are_not_started() {
    let place = Place::new();
    let solved = try_solve(&place.join("run"), "--board 2x2 --threads 1000").exits(0).says(&["1,000"]);
    assert_eq!(solved.json()["fingerprint"], Solved::new("--board 2x2").fingerprint());
}

#[test]
fn the_citation_is_of_this_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let citation = fs::read_to_string(root.join("CITATION.cff")).unwrap();
    let field = |name: &str| citation.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    assert_eq!(field("version"), Some(env!("CARGO_PKG_VERSION")));
    let repository = Some(env!("CARGO_PKG_REPOSITORY")).filter(|url| !url.is_empty());
    assert_eq!(field("repository-code"), repository);
}
