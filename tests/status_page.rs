//! The coordinator's page for browsers: the numbers of `status`, read-only, for callers with the token.

use crate::common;

use std::path::Path;

use common::access::token_of;
use common::browser::Browser;
use common::certificates::token_file;
use common::cluster::{start_worker, watch};
use common::http::{get, get_with, request};
use common::script::Script;
use common::serving::Server;
use common::{Place, exact2048, text};
use exact2048_coordinator::cluster::{WorkerFailure, WorkerReport};
use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef";
const STATUS: &str = "api/v1/status";

/// A coordinator with a page, and the URL of the page.
#[track_caller]
fn coordinator(store: &Path, options: &[&str]) -> (Server, String) {
    let store = store.to_str().unwrap();
    let args = ["coordinator", "--store", store, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let server = Server::launch(&[&args, options].concat(), &[]);
    let page = server.page.clone().unwrap();
    (server, page)
}

/// Removes the fields that change between two calls.
fn still(mut status: Value) -> Value {
    status["workers"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .for_each(|worker| worker["silent_seconds"] = json!(0));
    status
}

#[test]
fn the_page_has_the_numbers_of_status_with_the_token() {
    let place = Place::new();
    let with_token = token_file(&place, TOKEN);
    let with_token: Vec<&str> = with_token.iter().map(String::as_str).collect();
    let (server, page) = coordinator(&place.join("store"), &with_token);
    let worker = start_worker(&server.url, &place.join("cache"), &with_token);
    let client = |args: &[&str]| {
        let given = [&["--coordinator", &server.url][..], &with_token].concat();
        exact2048([&args[..1], &given, &args[1..]].concat())
    };
    client(&["submit", "--board", "3x2"]).exits(0);
    client(&["status", "3x2", "--watch"]).exits(0);

    let shown = get_with(&page, STATUS, &[&format!("authorization: Bearer {TOKEN}")]);
    assert_eq!(shown.status, 200, "{shown:?}");
    let told = client(&["status", "--json"]).exits(0).json();
    assert_eq!(still(shown.json()), still(told.clone()));
    assert_eq!((text(&told["jobs"][0]["state"]), told["workers"].as_array().unwrap().len()), ("done", 1));

    for wrong in [&[][..], &["authorization: Bearer 0123456789abcdeF"], &["authorization: 0123456789abcdef"]]
    {
        let refused = get_with(&page, STATUS, wrong);
        assert_eq!(refused.status, 401, "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], "UNAUTHENTICATED");
        assert!(refused.headers.contains("www-authenticate: bearer"), "{refused:?}");
    }
    // Anyone may load the page, because it has no data of the cluster. It may call only its own server.
    for path in ["", "status.js", "api.js", "style.css", "icon.svg"] {
        let file = get(&page, path);
        assert_eq!(file.status, 200, "{path}");
        assert!(
            file.headers.contains("content-security-policy: default-src 'none'; script-src 'self'"),
            "{file:?}"
        );
        assert!(!file.body.contains("3x2") && !file.body.contains("127.0.0.1"), "{file:?}");
    }
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(request(&page, method, "", &[]).status, 405);
        let known = [&*format!("authorization: Bearer {TOKEN}")];
        assert_eq!(request(&page, method, STATUS, &known).status, 405);
    }
    assert_eq!(get(&page, "api/v1/jobs").status, 401);
    let known = [&*format!("authorization: Bearer {TOKEN}")];
    assert_eq!(get_with(&page, "api/v1/jobs", &known).status, 404);
    worker.stop();
    server.stop();
}

/// A browser with the token shows a running job, and then that the coordinator does not answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_browser_shows_jobs_as_they_proceed() {
    let Some(browser) = Browser::open(1100, 700).await else { return };
    let place = Place::new();
    let with_token = token_file(&place, TOKEN);
    let with_token: Vec<&str> = with_token.iter().map(String::as_str).collect();
    let (server, page) = coordinator(&place.join("store"), &with_token);
    browser.goto(&page).await;
    for given in ["fedcba9876543210", TOKEN] {
        browser.until("document.querySelector('#token-dialog').open").await;
        browser.js("void (document.querySelector('#token').value = '')").await;
        browser.write("#token", given).await;
        browser.click("#token-dialog button").await;
        browser.until("!document.querySelector('#token-dialog').open || !document.querySelector('#token-wrong').hidden").await;
    }
    browser
        .until("!document.querySelector('#no-jobs').hidden && !document.querySelector('#no-workers').hidden")
        .await;

    let client = |args: &[&str]| {
        let given = [&["--coordinator", &server.url][..], &with_token].concat();
        exact2048([&args[..1], &given, &args[1..]].concat()).exits(0);
    };
    client(&["submit", "--board", "3x3", "--objective", "reach:512", "--disk", "6MB"]);
    browser.until("document.querySelector('.job .state')?.textContent === 'waiting for workers'").await;
    let worker = start_worker(&server.url, &place.join("cache"), &with_token);
    browser.until("document.querySelector('#workers td')?.textContent.length > 0").await;
    browser.until("document.querySelector('.job .state')?.textContent === 'done'").await;
    let card = browser.js("document.querySelector('.job').innerText").await;
    for words in ["3x3-reach512-keep16", "reach:512", "14,314,189", "e8321969", ", peak ", " of 6.0 MB"] {
        assert!(text(&card).contains(words), "{words:?} is missing: {card}");
    }
    let summary = browser.text("summary").await;
    assert_eq!(summary, "1 job, 0 running; 1 worker");

    worker.stop();
    server.stop();
    browser.until("!document.querySelector('#away').hidden").await;
    // The console of the browser reports the refused token and the refused connections.
    let expected = |line: &String| line.contains("401") || line.contains("ERR_CONNECTION_REFUSED");
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(expected), "{complaints:?}");
}

/// The page shows messages of workers as text and never as markup, even on a narrow screen.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_of_workers_are_text() {
    let Some(browser) = Browser::open(320, 640).await else { return };
    let place = Place::new();
    let (server, page) = coordinator(&place.join("store"), &[]);
    let markup = "<img src=x onerror=document.title='forged'><script>document.title='forged'</script>";
    let mut worker = Script::new(&server.url, 1).await;
    let failure = WorkerFailure::DiskFull(markup.to_owned());
    worker.pull.reports.push(WorkerReport::Failed { epoch: None, failure });
    worker.pull().await.unwrap();
    let token = token_of(&server.url);
    let known = format!("authorization: Bearer {}", token.secret());
    let told = get_with(&page, STATUS, &[&known]).json();
    assert!(text(&told["workers"][0]["reason"]).contains(markup), "{told}");
    browser.goto(&page).await;
    browser.until("document.querySelector('#token-dialog').open").await;
    browser.write("#token", token.secret()).await;
    browser.click("#token-dialog button").await;
    browser
        .until("document.querySelector('#workers td:nth-child(2)')?.textContent.includes('onerror=')")
        .await;
    let shown = browser.js("document.querySelector('#workers').textContent").await;
    assert!(text(&shown).contains(markup), "{shown}");
    assert_eq!(
        browser.js("[document.title, document.querySelectorAll('img').length]").await,
        json!(["exact2048 cluster", 0])
    );
    let fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
    assert_eq!(browser.js(fits).await, true, "it is wider than the screen");
    // The first request of the page has no token.
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(|line| line.contains("401")), "{complaints:?}");
    server.stop();
}

/// The page has the same protection as the calls. The coordinator binds its address before it prints it.
#[test]
fn the_page_is_protected_like_the_calls() {
    let place = Place::new();
    let store = place.join("store");
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let open = exact2048([&args[..], &["--http", "0.0.0.0:0"]].concat());
    open.exits(2).says(&["0.0.0.0"]);
    let (server, page) = coordinator(&store, &[]);
    let address = page.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let other = place.join("other");
    let again =
        ["coordinator", "--store", other.to_str().unwrap(), "--listen", "127.0.0.1:0", "--http", &address];
    exact2048(again).exits(1).says(&[&address]);
    exact2048(["submit", "--coordinator", &server.url, "--board", "2x2"]).exits(0);
    let worker = start_worker(&server.url, &place.join("cache"), &[]);
    watch(&server.url, "2x2");
    worker.stop();
    server.stop();
}
