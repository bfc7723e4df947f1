//! Every HTTP port of every server gets the same hostile requests.

use crate::common;

use common::Place;
use common::cluster::start_worker;
use common::http::get_with;
use common::query_calls::serve;
use common::serving::Server;

/// The HTTP ports of a server: for each port, a URL that ends with a slash, and a path with an answer.
fn ports(server: &Server) -> Vec<(String, &'static str)> {
    let metrics = server.metrics.as_ref().unwrap().strip_suffix("metrics").unwrap().to_owned();
    let page = server.page.clone().map(|url| (url, ""));
    page.into_iter().chain([(metrics, "metrics")]).collect()
}

#[test]
fn ports_for_http_of_all_servers_have_one_gate() {
    let options = ["--metrics-listen", "127.0.0.1:0", "--allow-host", "name.example"];
    let with_page = [&options[..], &["--http", "127.0.0.1:0"]].concat();
    let place = Place::new();
    let query = serve(&with_page);
    let store = place.join("store");
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let coordinator = Server::launch(&[&args, &with_page[..]].concat(), &[]);
    let worker = start_worker(&coordinator.url, &place.join("cache"), &options);
    let ports: Vec<_> = [&query, &coordinator, &worker].into_iter().flat_map(ports).collect();
    assert_eq!(ports.len(), 5);
    for (url, path) in ports {
        // The page of the coordinator is behind a token, which no page of another name can send. So any host passes.
        let of_unknown_host = if coordinator.page.as_ref() == Some(&url) { 200 } else { 421 };
        for (expected, headers) in [
            (200, &["host: name.example"][..]),
            (of_unknown_host, &["host: evil.example"]),
            (403, &["origin: https://evil.example"]),
            (403, &["sec-fetch-site: cross-site"]),
            (200, &["sec-fetch-site: same-origin"]),
        ] {
            let answer = get_with(&url, path, headers);
            assert_eq!(answer.status, expected, "{url}{path} {headers:?}: {answer:?}");
            if expected != 200 {
                assert_eq!(answer.json()["error"]["code"], "PERMISSION_DENIED", "{answer:?}");
            }
        }
    }
    drop(worker);
    coordinator.stop();
    query.stop();
}
