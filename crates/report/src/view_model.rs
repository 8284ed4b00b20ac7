//! Tests that a template of `report.md` gets what `docs/reference/templates.md` describes.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::limits::Limits;
use super::report::{report, report_within};
use super::section::GridView;
use super::table::Table;
use runner_results::analyse;
use runner_results::journal::{self, RECORDS_FILE};

/// Object types that occur in many places; the page describes each once.
const TYPES: [(&str, &[&str]); 5] = [
    ("overall", &["is_folded", "more_rows", "table"]),
    ("table", &["columns", "rows"]),
    ("column", &["is_number", "title"]),
    ("cell", &["is_code", "is_strong", "text"]),
    ("reason", &["cases", "log", "more", "text", "what"]),
];

/// Collects paths such as `sections[].table`: of every scalar, and of objects with a type.
fn paths(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if is_type(fields) => {
            into.insert(at.to_owned());
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                paths(field, &at, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{at}[]"), into)),
        // The value could be of any type.
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            into.insert(at.to_owned());
        }
    }
}

fn is_type(fields: &Map<String, Value>) -> bool {
    let names: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
    TYPES.iter().any(|(_, known)| names == known.iter().copied().collect())
}

/// Names in the first column of the table below a heading.
fn documented(heading: &str) -> BTreeSet<String> {
    let page = include_str!("../../../docs/reference/templates.md");
    let below = page.split_once(&format!("## {heading}\n")).unwrap().1.split("\n## ").next().unwrap();
    let cells = below.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    cells.map(|(path, _)| path.to_owned()).collect()
}

#[test]
fn the_documented_types_are_those_of_the_view() {
    let fields = TYPES.iter().flat_map(|(name, fields)| fields.iter().map(move |field| format!("{name}.{field}")));
    assert_eq!(documented("Types"), fields.collect());
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn the_documented_fields_are_those_of_the_view() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports");
    // No committed report has a failure or exceeds the page size, and all their grids have charts.
    let mut found = BTreeSet::from(["view_version", "failures[]"].map(str::to_owned));
    let grid = GridView { caption: "Time".to_owned(), table: Table::default() };
    paths(&serde_json::to_value(grid).unwrap(), "sections[].grids[]", &mut found);
    let no_room = Limits { section_bytes: 0, ..Limits::WIDEST };
    for folder in folders(&root).iter().flat_map(|experiment| folders(experiment)) {
        let path = folder.join(RECORDS_FILE);
        if path.exists() {
            let records = journal::read_records(&path).unwrap();
            for view in [report(&records), report_within(&records, &analyse::summary(&records), &no_room)] {
                paths(&serde_json::to_value(view).unwrap(), "", &mut found);
            }
        }
    }
    let documented = documented("Fields");
    let missing: Vec<&String> = found.difference(&documented).collect();
    let extra: Vec<&String> = documented.difference(&found).collect();
    assert!(missing.is_empty() && extra.is_empty(), "not documented: {missing:#?}\nnot in the view: {extra:#?}");
}
