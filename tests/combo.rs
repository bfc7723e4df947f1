//! Output and errors of `exact2048 combo`. Its crate tests the numbers.

use crate::common;

use common::exact2048;
use common::snapshots::assert_section;

fn run(words: &str) -> common::Finished {
    exact2048(["combo"].into_iter().chain(words.split_whitespace()))
}

#[test]
fn combos_are_solved() {
    let shown = run("solve --hold --previews 1").exits(0).stdout;
    for text in ["states        1,960", "random, 1 preview, hold", "40, 190 placements", "7.9960273"] {
        assert!(shown.contains(text), "{text:?} is missing from {shown}");
    }
    let json = run("solve --draw bag --hold --previews 2 --json --threads 2").exits(0).json();
    assert_eq!(json["states"], 390_040);
    let (low, high) = (json["mean"]["low"].as_f64().unwrap(), json["mean"]["high"].as_f64().unwrap());
    assert!(low < 38.339_572_184_5 && high > 38.339_572_183_5 && high - low < 1e-9, "{json}");
    let six = run("solve --cells 6 --drops hard --json").exits(0).json();
    assert_eq!((&six["fields"], &six["placements"]), (&517.into(), &2722.into()));
}

#[test]
fn placements_are_listed_best_first() {
    let shown = run("query --field X.../X.../X... --hold T --queue L").exits(0).stdout;
    assert!(shown.contains("X... --L-> XX..\n") && shown.contains("drop L, hold T"), "{shown}");
    let json = run("query --field X.../X.../X... --hold T --queue LSZ --json").exits(0).json();
    let values: Vec<f64> = json["placements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|placement| placement["expected"]["value"].as_f64().unwrap())
        .collect();
    assert_eq!(values.len(), 3);
    assert!(values.is_sorted_by(|a, b| a >= b) && values[0] > values[1], "{json}");
    let over = run("query --field X.../X.../X... --queue O").exits(0).stdout;
    assert_section("end of a combo", &over);
}

#[test]
fn the_graph_has_its_components() {
    let shown = run("graph --cells 6").exits(0).stdout;
    let rows: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["XX../XX../XX..", "6", "356"]), "{shown}");
    let json = run("graph --json").exits(0).json();
    let components = json["components"].as_array().unwrap();
    let largest = components.iter().map(|one| one.as_array().unwrap().len()).max();
    assert_eq!((json["fields"].as_array().unwrap().len(), largest), (40, Some(28)));
    let dot = run("graph --dot").exits(0).stdout;
    assert!(dot.starts_with("digraph fields {") && dot.contains("0 -> 0 [label=I];"), "{dot}");
}

#[test]
fn few_states_are_enough() {
    let json = run("minimise --hold --previews 1 --json").exits(0).json();
    assert_eq!((&json["states"], &json["is_pruned"]), (&1960.into(), &true.into()));
    let states: Vec<u64> =
        json["rounds"].as_array().unwrap().iter().map(|round| round["states"].as_u64().unwrap()).collect();
    assert!(states[0] < 300 && states.is_sorted_by(|a, b| a > b), "{states:?}");
    assert!(json["largest_difference"].as_f64().unwrap() < 1e-9, "{json}");
    let shown = run("minimise --draw bag").exits(0).stdout;
    assert_section("minimised states", &shown);
}

#[test]
fn policies_and_values_are_exported() {
    let policy = run("export policy --hold").exits(0).stdout;
    let mut lines = policy.lines();
    assert_eq!(lines.next(), Some("field,hold,current,previews,bag,piece,after,expected"));
    assert!(lines.all(|line| line.split(',').count() == 8));
    let values = run("export values --draw bag --json").exits(0).stdout;
    assert_eq!(values.lines().count(), 40 * 127);
    let first: serde_json::Value = serde_json::from_str(values.lines().next().unwrap()).unwrap();
    assert!(first["expected"].is_number(), "{first}");
}

#[test]
fn queues_that_bags_cannot_give() {
    run("query --field XX.X --queue TLL --draw bag --bag L").exits(3).says(&["TLL"]);
    run("query --field XXX. --hold I --queue LJ --draw bag --bag TL").exits(3).says(&["LJ"]);
    run("query --field XXX. --hold I --queue LJ --draw bag --bag TO").exits(0);
    run("query --field XXX. --queue L --draw bag --bag IL").exits(3);
    run("query --field XXX. --queue L --draw bag --bag IOTSZJL").exits(0);
}
