//! The output of `--json` has exactly the fields and types of docs/json.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Place, Solved, exact2048, exact2048_reading, on_run, shards, solve};

/// A field of a command's object: `a.b` is field `b` of `a`, `a[]` the elements of list `a`, and `*` stands for numbers.
type Field = (String, String);

/// The contents of the page.
struct Page {
    fields: BTreeSet<Field>,
    /// The allowed types of each field.
    types: BTreeMap<Field, String>,
    /// Objects that have the same fields as another object.
    like: BTreeMap<Field, Field>,
}

impl Page {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/json.md");
        let text = fs::read_to_string(path).unwrap();
        let mut page = Self { fields: BTreeSet::new(), types: BTreeMap::new(), like: BTreeMap::new() };
        let mut command = String::new();
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                command = heading.trim_matches('`').to_owned();
            } else if let Some(row) = line.strip_prefix("| `") {
                page.add(&command, row);
            }
        }
        page
    }

    fn add(&mut self, command: &str, row: &str) {
        let columns: Vec<&str> = row.trim_end_matches(" |").splitn(3, " | ").collect();
        let [names, types, meaning] = columns[..] else { panic!("expected three columns, found {row}") };
        let names: Vec<String> = names.split(", ").map(|name| name.replace('`', "")).collect();
        if let Some((_, like)) = meaning.split_once("like `") {
            let like: Vec<&str> = like.split('`').collect();
            let of = if like[1] == " of " { like[2] } else { command };
            let [name] = &names[..] else { panic!("{row} is of several objects") };
            self.like.insert((command.to_owned(), name.clone()), (of.to_owned(), like[0].to_owned()));
        }
        let types: Vec<&str> = types.split(", ").collect();
        assert!(
            [1, names.len()].contains(&types.len()),
            "expected one type or one for each field, found {row}"
        );
        for (name, of_field) in names.iter().zip(types.iter().cycle()) {
            self.types.insert((command.to_owned(), name.clone()), (*of_field).to_owned());
        }
        self.fields.extend(names.into_iter().map(|name| (command.to_owned(), name)));
    }

    /// Finds the page's entry for a field. The entry may belong to a similar object.
    fn resolve(&self, (command, name): &Field) -> Field {
        let like = |(of, (command_of_like, like)): (&Field, &Field)| {
            let rest = inside(name, &of.1).filter(|_| &of.0 == command)?;
            Some((command_of_like.clone(), format!("{like}{rest}")))
        };
        self.like.iter().find_map(like).unwrap_or_else(|| (command.clone(), name.clone()))
    }

    /// Whether the page lists fields of this field.
    fn has_inside(&self, (command, name): &Field) -> bool {
        self.fields.iter().any(|field| &field.0 == command && inside(&field.1, name).is_some())
    }
}

/// The rest of a field's name after the name of its object or list of objects.
fn inside<'a>(name: &'a str, of: &str) -> Option<&'a str> {
    name.strip_prefix(of).filter(|rest| rest.starts_with(['.', '[']))
}

/// Collects all fields of a value, with their values.
fn fields(value: &Value, prefix: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(of) => {
            for (key, value) in of {
                let key = if key.bytes().all(|digit| digit.is_ascii_digit()) { "*" } else { key };
                let name = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
                found.push((name.clone(), value.clone()));
                fields(value, &name, found);
            }
        }
        Value::Array(list) => {
            list.iter().filter(|value| value.is_object()).for_each(|value| {
                fields(value, &format!("{prefix}[]"), found);
            });
        }
        _ => {}
    }
}

/// The page's name for the type of a value.
fn type_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Array(list) => {
            let elements: BTreeSet<String> = list.iter().map(type_of).collect();
            let plural = |of: String| match of.strip_prefix("list") {
                Some(rest) => format!("lists{rest}"),
                None => of + "s",
            };
            let elements: Vec<String> = elements.into_iter().map(plural).collect();
            if elements.is_empty() { "list".to_owned() } else { format!("list of {}", elements.join(", ")) }
        }
    }
}

/// Whether a type is one of the types on the page. An empty list matches every list type.
fn is_one_of(found: &str, types: &str) -> bool {
    types.split(" or ").any(|one| one == found || found == "list" && one.starts_with("list of"))
}

/// Output of commands. Together, the outputs of a command have every field.
fn printed() -> Vec<(&'static str, Vec<Value>)> {
    let place = Place::new();
    let plain = Solved::new("--board 2x2 --objective reach:16 --keep all");
    let lose = Solved::new("--board 2x2 --objective lose:16 --keep all");
    let worst = Solved::new("--board 2x2 --objective reach:16 --spawner worst --keep all");
    let discounted = Solved::new("--board 2x2 --objective reach:16 --discount 0.5");
    let rounded = Solved::new("--board 2x2 --value-step 1/4");
    let from = Solved::new("--board 2x2 --objective reach:16 --from 8,2/2,0");
    let moves = Solved::new("--board 3x2 --values best-move --keep 16 --disk 10MB --huge 8 --sectors 2");
    let without_reach = Solved::new("--board 3x3 --objective reach:128 --keep starts --disk 20MB");
    let runs = [&plain, &worst, &discounted, &moves, &rounded, &from];
    let part = solve(&place.join("part"), "--board 2x2 --until-layer 20");
    let of_part = on_run(&place.join("part"), "info", &["--json"]).exits(0).json_lines();
    let on = |run: &Solved, args: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        on_run(&run.run(), args[0], &[&args[1..], &["--json"]].concat()).exits(0).json_lines()
    };
    let call = |args: &str| {
        let args = args.split(' ').chain(["--json"]);
        exact2048(args).exits(0).json_lines()
    };
    let query = |run: &Solved, boards: &str, options: &[&str]| {
        let run = run.run();
        let args = [&["query", "--run", run.to_str().unwrap(), "--json", "-"], options].concat();
        exact2048_reading(args, boards.to_owned()).json_lines()
    };
    let file = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let inspect = |shard: &Path| call(&format!("inspect {}", shard.display()));
    let of_moves = "2 2 / 2 0 / 0 0\n";
    vec![
        ("solve", runs.map(|run| run.summary.clone()).into_iter().chain([part]).collect()),
        ("info", [runs.into_iter().flat_map(|run| on(run, "info")).collect(), of_part].concat()),
        ("layers", [on(&plain, "layers"), on(&plain, "layers --dead")].concat()),
        ("inspect", shards(&moves.run()).iter().flat_map(|shard| inspect(shard)).collect()),
        (
            "plan",
            [
                call("plan --board 3x2 --disk 10MB"),
                call("plan --board 4x4 --objective reach:128"),
                call("plan --board 2x3:..x/... --objective reach:16"),
            ]
            .concat(),
        ),
        (
            "query",
            [
                query(&plain, "2 2 / 0 0\n9 9\n", &[]),
                query(&lose, "4 4 / 8 0\n", &[]),
                query(&worst, "2 2 / 2 0\n", &[]),
                query(&rounded, "2 2 / 2 0\n", &[]),
                query(&without_reach, "2 2 0 / 4 0 0 / 8 0 0\n", &[]),
                query(&moves, of_moves, &[]),
                query(&moves, of_moves, &["--value"]),
            ]
            .concat(),
        ),
        ("stats", on(&plain, "stats")),
        ("count", [on(&plain, "count"), call("count --board 2x2")].concat()),
        ("formations", call("formations")),
        (
            "play",
            [
                on(&plain, "play --player perfect --games 9"),
                call("play --player greedy --board 2x2 --games 9"),
                call("play --player greedy --board 2x2 --games 9 --from 2,2/0,0"),
            ]
            .concat(),
        ),
        (
            "evaluate",
            [on(&plain, "evaluate --player greedy"), on(&plain, "evaluate --player greedy --games 99")]
                .concat(),
        ),
        ("report", on(&plain, &format!("report --output {}", file("page.html")))),
        ("export", on(&plain, &format!("export --what states --output {}", file("tables")))),
        ("bag", [call("bag --target 16 --simulate 9"), call("bag --target 16 --exact")].concat()),
        ("combo solve", call("combo solve")),
        ("combo query", call("combo query --field X.../X.../X... --hold T --queue I")),
        ("combo graph", call("combo graph")),
        ("combo minimise", call("combo minimise")),
        ("combo export", [call("combo export values"), call("combo export policy")].concat()),
    ]
}

#[test]
fn json_has_the_fields_and_types_that_are_documented() {
    let page = Page::read();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (command, objects) in printed() {
        let mut found = Vec::new();
        objects.iter().for_each(|object| fields(object, "", &mut found));
        for (name, value) in found {
            let field = page.resolve(&(command.to_owned(), name));
            let may_lack_fields = value.is_object() || value.is_null() || value.is_array();
            let is_documented = page.fields.contains(&field) || (may_lack_fields && page.has_inside(&field));
            if !is_documented {
                wrong.push(format!("{field:?} is not documented"));
            }
            let (found, types) = (type_of(&value), page.types.get(&field));
            if let Some(types) = types.filter(|types| !is_one_of(&found, types)) {
                wrong.push(format!("{field:?}: documented as {types}, printed as {found}"));
            }
            seen.insert(field);
        }
    }
    wrong.extend(page.fields.difference(&seen).map(|field| format!("{field:?} was never printed")));
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
