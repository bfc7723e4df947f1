//! The dashboard for Grafana shows metrics that the processes have.

use crate::common;

use std::collections::BTreeSet;

use common::cluster::start_worker;
use common::serving::Server;
use common::{Place, Solved, exact2048};
use regex::Regex;
use serde_json::Value;

const DASHBOARD: &str = include_str!("../scripts/grafana/dashboard.json");

/// The name and the labels of each sample. All metrics exist once a process has answered a request.
fn samples(scrapes: &[String]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (name, label) = (Regex::new(r"(?m)^exact2048_\w+").unwrap(), Regex::new(r#"(\w+)=""#).unwrap());
    let all = scrapes.concat();
    let names = name.find_iter(&all).map(|name| name.as_str().to_owned()).collect();
    let labels = label.captures_iter(&all).map(|label| label[1].to_owned());
    // Prometheus adds the address of the process to each sample.
    (names, labels.chain(["instance".to_owned()]).collect())
}

#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let (place, solved) = (Place::new(), Solved::new("--board 2x2"));
    let store = place.join("store");
    let metrics = ["--metrics-listen", "127.0.0.1:0"];
    let args = ["coordinator", "--store", store.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let coordinator = Server::launch(&[&args[..], &metrics].concat(), &[]);
    let worker = start_worker(&coordinator.url, &place.join("cache"), &metrics);
    let server = Server::start(&solved.run(), &metrics);
    let call = ["--coordinator", &coordinator.url];
    exact2048([&["submit", "--board", "2x2"][..], &call].concat()).exits(0);
    exact2048([&["status", "2x2", "--watch"][..], &call].concat()).exits(0);
    exact2048(["query", "--server", &server.url, "2 0 / 0 2"]).exits(0);
    let (names, labels) = samples(&[coordinator.scrape(), worker.scrape(), server.scrape()]);

    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let targets = |panel: &Value| panel["targets"].as_array().cloned().unwrap_or_default();
    let targets: Vec<Value> = dashboard["panels"].as_array().unwrap().iter().flat_map(targets).collect();
    assert!(targets.len() > 20, "the dashboard has {} lines", targets.len());
    let name = Regex::new(r"exact2048_\w+").unwrap();
    let label = Regex::new(r"(?:(?:by|on) \((\w+)\)|\{\{(\w+)\}\}|\{(\w+)!)").unwrap();
    for target in &targets {
        let (query, legend) = (target["expr"].as_str().unwrap(), target["legendFormat"].as_str().unwrap());
        for name in name.find_iter(query) {
            assert!(names.contains(name.as_str()), "{query} needs {}, found {names:?}", name.as_str());
        }
        for found in [query, legend].into_iter().flat_map(|text| label.captures_iter(text)) {
            let label = found.iter().skip(1).flatten().next().unwrap().as_str();
            assert!(labels.contains(label), "{query} needs the label {label}, found {labels:?}");
        }
    }
    for process in [worker, coordinator, server] {
        process.stop();
    }
}
