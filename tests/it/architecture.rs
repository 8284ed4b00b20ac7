//! The house's rules on who may import whom, kept by reading the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module with the modules of the crate that it may name. Absent means: everything (the commands).
const FLOORS: &[(&str, &[&str])] = &[
    ("profiler", &["dispatch", "programs", "model"]),
    ("dispatch", &["execute", "machine", "backend", "plan", "journal", "stdout", "model"]),
    ("progress", &["model"]),
    ("execute", &["backend", "expr", "npy", "stats", "model"]),
    ("machine", &["atomic", "backend", "stats", "model"]),
    ("backend", &["atomic", "model", "stats", "stdout"]),
    ("compile", &["atomic", "includes", "programs", "model"]),
    ("manifest", &["experiment", "expr", "includes", "npy", "diagnostics", "model"]),
    ("plan", &["experiment", "expr", "npy", "diagnostics", "model"]),
    ("render", &["atomic", "analyse", "journal", "stats", "model"]),
    ("analyse", &["stats", "model"]),
    ("journal", &["atomic", "model"]),
    ("diagnostics", &["model"]),
    ("atomic", &[]),
    ("experiment", &["expr", "model"]),
    ("expr", &["diagnostics", "model"]),
    ("includes", &[]),
    ("npy", &["model"]),
    ("stats", &[]),
    ("stdout", &[]),
    ("programs", &[]),
    ("revision", &["programs"]),
    ("model", &[]),
];

/// Crates that stand behind one door each.
const DOORS: &[(&str, &[&str])] = &[
    ("cudarc", &["src/backend/cuda"]),
    ("libloading", &["src/compile/nvrtc", "src/backend/cuda/cupti", "src/backend/cuda/plugin"]),
    ("nvml_wrapper", &["src/backend/cuda/nvml"]),
    ("tera", &["src/render"]),
    ("textwrap", &["src/render"]),
    ("csv", &["src/render", "src/profiler/table"]),
    ("indicatif", &["src/progress"]),
    ("simt", &["src/backend/sim", "src/commands"]),
    ("annotate_snippets", &["src/diagnostics"]),
];

fn sources(dir: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(dir).expect("src is there").map(|e| e.expect("entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

/// Every source with its path relative to the package and its text without comments.
fn code() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&root.join("src"), &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
            (path.strip_prefix(root).expect("under the root").display().to_string(), code.join("\n"))
        })
        .collect()
}

/// Modules of the crate that a text names: `crate::model::…`, and each of `use crate::{model::…, stats::…}`.
fn named_modules(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 1;
            let mut fresh = true;
            let mut word = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => fresh = true,
                    c if depth == 1 && fresh && (c.is_alphanumeric() || c == '_') => {
                        word.push(c);
                        continue;
                    }
                    _ => {}
                }
                if !word.is_empty() {
                    found.push(std::mem::take(&mut word));
                    fresh = false;
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    found
}

#[test]
fn imports_go_down_only() {
    let mut wrong = Vec::new();
    for (path, text) in code() {
        let Some(module) = path.strip_prefix("src/").and_then(|p| p.split(['/', '.']).next()) else { continue };
        let Some((_, allowed)) = FLOORS.iter().find(|(name, _)| *name == module) else { continue };
        for named in named_modules(&text) {
            if named != module && !allowed.contains(&named.as_str()) {
                wrong.push(format!("{path} names crate::{named}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_module_has_a_floor() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).expect("lib.rs");
    for line in text.lines().filter_map(|line| line.strip_prefix("pub mod ")) {
        let module = line.trim_end_matches(';');
        assert!(
            module == "commands" || FLOORS.iter().any(|(name, _)| *name == module),
            "src/lib.rs declares `{module}`, which has no floor in tests/architecture.rs"
        );
    }
}

/// Whether `name` stands there as a word of its own that a path continues or a `use` begins with.
fn names_crate(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        begins && (after.starts_with("::") || before.ends_with("use "))
    })
}

#[test]
fn crates_stay_behind_their_doors() {
    let mut wrong = Vec::new();
    for (path, text) in code() {
        for (name, doors) in DOORS {
            let used = names_crate(&text, name);
            if used && !doors.iter().any(|door| path.starts_with(door)) {
                wrong.push(format!("{path} names {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sources_stay_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&root.join("src"), &mut paths);
    let long: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let lines = fs::read_to_string(path).expect("a source can be read").lines().count();
            (lines > 600).then(|| format!("{}: {lines} lines", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
