//! Folders that vanish during work and return: renamed, replaced by an empty folder, read-only. The program makes no files
//! in their place and reports no false results. After their return, all work resumes (finding B1).

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::serving::Server;
use common::snapshots::assert_section;
use common::{Finished, Place, Solved, command, exact2048, on_run, solve_args, text, whole};
use serde_json::Value;

/// Fingerprint of every run of 4x2.
const FINGERPRINT: &str = "512d941b138950ab02da28252f0e594a";

/// The change that a test makes to a folder.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Instead {
    Nothing,
    EmptyFolder,
    /// The folder exists, but is not writable.
    ReadOnly,
}

const ALL: [Instead; 3] = [Instead::Nothing, Instead::EmptyFolder, Instead::ReadOnly];

fn system(command: &str) -> bool {
    let done = Command::new("sh").args(["-c", command]).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

/// A folder that is missing or read-only until the test restores it.
struct Away {
    folder: PathBuf,
    aside: PathBuf,
    instead: Instead,
}

impl Away {
    /// Moves a folder away; `None` if this process lacks the permission.
    fn take(folder: &Path, instead: Instead) -> Option<Self> {
        let aside = folder.with_extension("aside");
        let away = Self { folder: folder.to_path_buf(), aside, instead };
        match instead {
            Instead::Nothing | Instead::EmptyFolder => fs::rename(folder, &away.aside).unwrap(),
            Instead::ReadOnly => {
                let at = folder.display();
                if !system(&format!("mount --bind {at} {at}")) {
                    let required = std::env::var_os("EXACT2048_REQUIRE_ROOT").is_some();
                    assert!(!required, "this test needs root to mount a folder");
                    eprintln!("a folder that is read-only is not tested: that needs root");
                    return None;
                }
                assert!(system(&format!("mount -o remount,ro,bind {at}")));
            }
        }
        if instead == Instead::EmptyFolder {
            fs::create_dir(folder).unwrap();
        }
        Some(away)
    }

    /// Restores the folder. Requires that no files were made in its place.
    #[track_caller]
    fn put_back(&self) {
        match self.instead {
            Instead::Nothing => assert!(!self.folder.exists()),
            // This call removes only an empty folder.
            Instead::EmptyFolder => fs::remove_dir(&self.folder).unwrap(),
            Instead::ReadOnly => return assert!(system(&format!("umount -l {}", self.folder.display()))),
        }
        fs::rename(&self.aside, &self.folder).unwrap();
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        if self.instead == Instead::ReadOnly {
            system(&format!("umount -l {}", self.folder.display()));
        }
    }
}

/// Waits until `look` succeeds.
#[track_caller]
fn wait_until<T>(look: impl Fn() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(what) => assert!(begun.elapsed() < Duration::from_secs(180), "waited too long: {what}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a job reports trouble. Until then no job may fail or finish.
#[track_caller]
fn wait_for_trouble(cluster: &Cluster, job: &str) -> String {
    wait_until(|| {
        let status = cluster.status(job);
        let state = text(&status["state"]);
        assert!(["queued", "running"].contains(&state), "{status}\n{}", cluster.logs());
        let trouble = text(&status["trouble"]).to_owned();
        if trouble.is_empty() { Err(status.to_string()) } else { Ok(trouble) }
    })
}

/// The running job and the queued job both wait until the store is back.
#[test]
fn a_store_that_is_away_is_waited_for() {
    for instead in ALL {
        let cluster = Cluster::new(1);
        cluster.submit("--board 4x2 --name first --disk 1GB");
        cluster.submit("--board 2x2 --name second");
        let at_work = |status: &Value| whole(&status["bytes"]) > 0 && whole(&status["states"]) > 0;
        cluster.wait_until("first", at_work);
        let Some(away) = Away::take(&cluster.store(), instead) else { continue };
        let trouble = ["first", "second"].map(|job| wait_for_trouble(&cluster, job));
        let store = cluster.store().display().to_string();
        let fact = if instead == Instead::ReadOnly { "os error 30" } else { &store };
        assert!(trouble.iter().any(|trouble| trouble.contains(fact)), "{trouble:?}");
        for refused in [["submit", "--board", "2x2", "--name", "third"].as_slice(), &["cancel", "second"]] {
            cluster.client(refused).exits(1);
        }
        away.put_back();
        for job in ["first", "second"] {
            cluster.wait(job);
        }
        assert_eq!(cluster.verified_fingerprint("first"), FINGERPRINT, "{instead:?}");
        on_run(&cluster.run("second"), "verify", &[]).exits(0);
        assert!(!cluster.run("third").exists());
    }
}

/// Even without work in progress, the job reports the missing store, and the coordinator does not recreate the store.
#[test]
fn a_job_without_workers_says_that_the_store_is_away() {
    let mut cluster = Cluster::new(0);
    let job = cluster.submit("--board 2x2");
    let run = cluster.run(&job);
    // The coordinator knows the next pass once it has opened the run. Then it no longer reads the run's folder.
    cluster.wait_until(&job, |status| status["phase"] == "enumerate");
    let away = Away::take(&cluster.store(), Instead::EmptyFolder).unwrap();
    let trouble = wait_for_trouble(&cluster, &job);
    assert_section("trouble of a job whose store is away", &trouble);
    away.put_back();
    cluster.add_worker(&[]);
    cluster.wait(&job);
    on_run(&run, "verify", &[]).exits(0);
}

/// A job fails if its run is moved away, because the coordinator makes a run only once. The job resumes after the run is
/// back.
#[test]
fn a_run_that_was_moved_away_fails_its_job_alone() {
    for options in ["", " --disk 1GB"] {
        let cluster = Cluster::new(1);
        cluster.submit(&format!("--board 4x2 --name moved{options}"));
        cluster.wait_until("moved", |status| whole(&status["bytes"]) > 0 && whole(&status["states"]) > 0);
        let away = Away::take(&cluster.run("moved"), Instead::Nothing).unwrap();
        cluster.submit("--board 2x2 --name other");
        let failure = wait_until(|| {
            let status = cluster.status("moved");
            match text(&status["state"]) {
                "failed" => Ok(text(&status["failure"]).to_owned()),
                _ => Err(format!("{status}\n{}", cluster.logs())),
            }
        });
        assert!(failure.contains("moved"), "{failure}");
        cluster.wait("other");
        cluster.client(&["resume", "moved"]).exits(1).prints("resume of a job whose run was moved");
        away.put_back();
        cluster.client(&["resume", "moved"]).exits(0);
        cluster.wait("moved");
        assert_eq!(cluster.verified_fingerprint("moved"), FINGERPRINT);
    }
}

/// `solve` ends with the reason, and the same command resumes after the run is back.
#[test]
fn a_run_that_goes_away_ends_its_solve() {
    for instead in ALL {
        let place = Place::new();
        let run = place.join("run");
        let args = solve_args(&run, "--board 4x2 --threads 1");
        let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let first = run.join("journal/000000.json");
        wait_until(|| if first.exists() { Ok(()) } else { Err("nothing is committed yet".to_owned()) });
        let Some(away) = Away::take(&run, instead) else {
            child.kill().unwrap();
            child.wait().unwrap();
            continue;
        };
        let ended = Finished::new(child.wait_with_output().unwrap()).exits(1);
        match instead {
            Instead::ReadOnly => assert!(ended.last_line().contains("/run/"), "{ended:?}"),
            _ => assert_section("solve whose run was moved", ended.last_line()),
        }
        away.put_back();
        assert_eq!(text(&exact2048(&args).exits(0).json()["fingerprint"]), FINGERPRINT, "{instead:?}");
        on_run(&run, "verify", &[]).exits(0);
    }
}

/// Readers of a missing run fail and make no files.
#[test]
fn readers_make_nothing_in_the_place_of_a_run() {
    let solved = Solved::new("--board 2x2 --keep 16");
    for instead in [Instead::Nothing, Instead::EmptyFolder] {
        let away = Away::take(&solved.run(), instead).unwrap();
        let folder = solved.run().with_extension("exported");
        let export = ["--what", "states", "-o", folder.to_str().unwrap()];
        for (reader, options) in [("stats", [].as_slice()), ("query", &["2 0 / 0 2"]), ("export", &export)] {
            on_run(&solved.run(), reader, options).exits(1).says(&["run"]);
        }
        assert!(!folder.exists());
        away.put_back();
    }
}

/// A server continues with its open files, reports no lost shard and makes no files. After the run is back, it answers all
/// requests.
#[test]
fn a_server_waits_for_its_run() {
    let solved = Solved::new("--board 3x2 --keep 64");
    let boards = ["2 0 / 0 2 / 0 0", "4 2 / 0 0 / 0 0"];
    let ask = |server: &Server, board: &str| exact2048(["query", "--server", &server.url, board]);
    let server = Server::start(&solved.run(), &[]);
    for instead in [Instead::Nothing, Instead::EmptyFolder] {
        let away = Away::take(&solved.run(), instead).unwrap();
        for board in boards {
            ask(&server, board).exits(0);
        }
        away.put_back();
        for board in boards {
            wait_until(|| {
                let answer = ask(&server, board);
                if answer.code == Some(0) { Ok(()) } else { Err(answer.stderr) }
            });
        }
    }
    server.stop();
}
