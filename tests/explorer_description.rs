//! The description of the explorer's API (OpenAPI), compared with its answers.

use crate::common;

use std::collections::BTreeSet;

use common::http::{escape, get, get_json};
use common::query_calls::serve;
use common::text;
use serde_json::Value;

/// The description names each parameter, gives working examples, and matches the answers.
#[test]
fn the_description_is_true() {
    let server = serve(&["--http", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]);
    let url = server.page.clone().unwrap();
    let described = get_json(&url, "api/v1/openapi.json");
    for (path, operation) in described["paths"].as_object().unwrap() {
        let operation = &operation["get"];
        let mut asked = String::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let schema = &parameter["schema"];
            let value = match (text(&parameter["name"]), text(&schema["type"])) {
                ("run", _) => "run".to_owned(),
                ("layer" | "first", _) => "60".to_owned(),
                ("last", _) => "80".to_owned(),
                ("board", _) => "4 2 / 8 16 / 0 2".to_owned(),
                ("pattern", _) => "32 * / * * / * *".to_owned(),
                ("from", _) => "0.0".to_owned(),
                ("kind", _) => "close".to_owned(),
                (_, "integer") => "5".to_owned(),
                (_, "boolean") => "true".to_owned(),
                other => panic!("{other:?}"),
            };
            let mark = if asked.is_empty() { '?' } else { '&' };
            asked += &format!("{mark}{}={}", text(&parameter["name"]), escape(&value));
        }
        let answer = get_json(&url, &format!("{}{asked}", path.trim_start_matches('/')));
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        fits(&answer, schema, &described, path);
    }
    let error = get(&url, "api/v1/values?board=x").json();
    fits(&error, &described["components"]["schemas"]["Error"], &described, "an error");
    let metrics = server.scrape();
    for line in [
        "exact2048_requests_total{method=\"api/v1/values\",code=\"Ok\"} 1",
        "exact2048_requests_total{method=\"api/v1/values\",code=\"InvalidArgument\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is missing from {metrics}");
    }
    server.stop();
}

/// Requires that a value fits a schema: the types, all required fields, and no unknown fields.
#[track_caller]
fn fits(value: &Value, schema: &Value, described: &Value, what: &str) {
    if let Some(name) = schema.get("$ref") {
        let name = text(name).rsplit('/').next().unwrap();
        return fits(value, &described["components"]["schemas"][name], described, what);
    }
    if let Some(all) = schema.get("allOf") {
        let resolved: Vec<&Value> =
            all.as_array().unwrap().iter().map(|part| resolve(part, described)).collect();
        let properties: BTreeSet<&String> =
            resolved.iter().flat_map(|of| of["properties"].as_object().unwrap().keys()).collect();
        let found: BTreeSet<&String> = value.as_object().unwrap().keys().collect();
        assert!(found.is_subset(&properties), "{what}: {found:?} in {properties:?}");
        for part in resolved {
            let mine = part["properties"].as_object().unwrap();
            let own = value.as_object().unwrap().iter().filter(|(key, _)| mine.contains_key(*key));
            fits(&own.map(|(k, v)| (k.clone(), v.clone())).collect(), part, described, what);
        }
        return;
    }
    if let Some(any) = schema.get("anyOf") {
        let other = &any.as_array().unwrap()[0];
        if !value.is_null() {
            fits(value, other, described, what);
        }
        return;
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect(),
        one => vec![text(one)],
    };
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_u64() && types.contains(&"integer") => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.contains(&found), "{what}: {value} is {found}, expected {types:?}");
    if let (Some(choices), Value::String(_)) = (schema.get("enum"), value) {
        assert!(choices.as_array().unwrap().contains(value), "{what}: {value} of {choices}");
    }
    for item in value.as_array().into_iter().flatten() {
        fits(item, &schema["items"], described, what);
    }
    if let (Some(object), Some(others)) = (value.as_object(), schema.get("additionalProperties")) {
        object.values().for_each(|value| fits(value, others, described, what));
    } else if let (Some(object), Some(properties)) = (value.as_object(), schema.get("properties")) {
        for required in schema["required"].as_array().unwrap() {
            assert!(object.contains_key(text(required)), "{what} lacks {required}: {value}");
        }
        for (key, value) in object {
            let schema = properties.get(key).unwrap_or_else(|| panic!("{what}: nothing is said of {key}"));
            fits(value, schema, described, &format!("{what}, {key}"));
        }
    }
}

fn resolve<'a>(schema: &'a Value, described: &'a Value) -> &'a Value {
    match schema.get("$ref") {
        Some(name) => &described["components"]["schemas"][text(name).rsplit('/').next().unwrap()],
        None => schema,
    }
}
