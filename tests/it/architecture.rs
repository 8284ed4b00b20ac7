//! Which module may import which, checked by reading the sources.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module with the modules of the crate that it may name. Absent means: everything (the commands).
const FLOORS: &[(&str, &[&str])] = &[
    ("cluster", &["atomic", "backend", "format", "journal", "programs", "regular", "model"]),
    ("profiler", &["dispatch", "programs", "model"]),
    ("dispatch", &["execute", "machine", "backend", "plan", "journal", "stdout", "model"]),
    ("progress", &["format", "model"]),
    ("execute", &["atomic", "backend", "cpp", "expr", "host_lock", "npy", "programs", "regular", "stats", "model"]),
    ("machine", &["atomic", "backend", "stats", "model"]),
    ("backend", &["atomic", "expr", "format", "model", "stats", "stdout"]),
    ("compile", &["atomic", "includes", "programs", "project", "regular", "model", "ptx"]),
    ("plan", &["cpp", "experiment", "expr", "npy", "safetensors", "diagnostics", "project", "model"]),
    ("render", &["atomic", "analyse", "format", "journal", "regular", "stats", "model"]),
    ("stored", &["analyse", "journal", "revision", "programs", "model"]),
    ("analyse", &["expr", "journal", "stats", "model"]),
    ("journal", &["atomic", "regular", "model"]),
    ("atomic", &[]),
    ("host_lock", &[]),
    ("stats", &[]),
    ("stdout", &[]),
    ("programs", &[]),
    ("revision", &["programs", "regular", "model"]),
];

/// The same for the crate of what all stages share.
const MODEL_FLOORS: &[(&str, &[&str])] = &[
    ("experiment", &["expr", "project", "model"]),
    ("expr", &["diagnostics", "format", "model"]),
    ("format", &[]),
    ("diagnostics", &["model"]),
    ("npy", &["regular", "model"]),
    ("safetensors", &["regular", "diagnostics", "model"]),
    ("cpp", &["includes", "model"]),
    ("includes", &["project", "regular"]),
    ("ptx", &["includes"]),
    ("project", &[]),
    ("regular", &[]),
    ("model", &[]),
];

/// The same for the simulator's crate.
const SIMULATOR_FLOORS: &[(&str, &[&str])] = &[
    (
        "machine",
        &["launch", "link", "lower", "mir", "exec", "runtime", "program", "sanitize", "memory", "profile", "error"],
    ),
    (
        "launch",
        &[
            "schedule", "exec", "runtime", "program", "sample", "sanitize", "memory", "profile", "counters", "printed",
            "error",
        ],
    ),
    ("schedule", &["exec", "program", "sample", "sanitize", "memory", "counters", "printed", "error"]),
    ("link", &["error"]),
    ("lower", &["isa", "mir", "exec", "program", "error"]),
    ("isa", &["mir", "exec", "program", "memory"]),
    ("mir", &["exec", "program", "memory", "error"]),
    ("exec", &["runtime", "program", "sample", "sanitize", "memory", "profile", "counters", "printed", "error"]),
    ("runtime", &["program", "memory", "profile", "error"]),
    ("program", &[]),
    ("sample", &[]),
    ("sanitize", &["memory"]),
    ("memory", &["error"]),
    ("profile", &[]),
    ("counters", &[]),
    ("printed", &[]),
    ("error", &[]),
];

/// Crates that stand behind one door each.
const DOORS: &[(&str, &[&str])] = &[
    ("cudarc", &["src/backend/cuda"]),
    ("libloading", &["src/compile/nvrtc", "src/backend/cuda/cupti", "src/backend/cuda/plugin"]),
    ("nvml_wrapper_sys", &["src/backend/cuda/nvml"]),
    ("tera", &["src/render", "src/cluster/script", "src/cluster/others"]),
    ("textwrap", &["src/render"]),
    ("csv", &["src/render", "src/profiler/table"]),
    ("indicatif", &["src/progress"]),
    ("simt", &["src/backend/sim", "src/commands"]),
    ("annotate_snippets", &["crates/model/src/diagnostics"]),
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

/// Every source below a folder with its path relative to the package and its text without comments.
fn code_in(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    sources(&root.join(folder), &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
            (path.strip_prefix(root).expect("under the root").display().to_string(), code.join("\n"))
        })
        .collect()
}

/// The sources of the program, in all of its crates.
fn code() -> Vec<(String, String)> {
    ["src", "crates/manifest/src", "crates/model/src"].into_iter().flat_map(code_in).collect()
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

/// The imports in `folder` that its floors do not allow.
fn upward_imports(folder: &str, floors: &[(&str, &[&str])]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, text) in code_in(folder) {
        let inside = path.strip_prefix(folder).and_then(|p| p.strip_prefix('/'));
        let Some(module) = inside.and_then(|p| p.split(['/', '.']).next()) else { continue };
        let Some((_, allowed)) = floors.iter().find(|(name, _)| *name == module) else { continue };
        for named in named_modules(&text) {
            if named != module && !allowed.contains(&named.as_str()) {
                wrong.push(format!("{path} names crate::{named}"));
            }
        }
    }
    wrong
}

#[test]
fn imports_go_down_only() {
    let mut wrong = upward_imports("src", FLOORS);
    wrong.extend(upward_imports("crates/model/src", MODEL_FLOORS));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_of_the_simulator_go_down_only() {
    let wrong = upward_imports("crates/simt/src", SIMULATOR_FLOORS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The paths after each `crate::` of a text, with the members of a group one by one: `exec::context::Context`.
fn named_paths(text: &str) -> Vec<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let path: String = rest.chars().take_while(|&c| is_path(c)).collect();
        match rest[path.len()..].strip_prefix('{').and_then(|group| group.split('}').next()) {
            Some(group) => found.extend(group.split(',').map(|member| format!("{path}{}", member.trim()))),
            None => found.push(path),
        }
    }
    found
}

#[test]
fn no_files_of_the_simulator_import_each_other_in_a_circle() {
    let module_of = |path: &str| {
        let inside = path.trim_start_matches("crates/simt/src/").trim_end_matches(".rs");
        inside.trim_end_matches("/mod").replace('/', "::")
    };
    let files: Vec<(String, String)> = code_in("crates/simt/src")
        .into_iter()
        .filter(|(path, _)| !path.ends_with("/tests.rs"))
        .map(|(path, text)| (module_of(&path), text.split("#[cfg(test)]").next().unwrap_or("").to_owned()))
        .collect();
    let file_of = |path: &str| {
        let named = files.iter().filter(|(module, _)| path == module || path.starts_with(&format!("{module}::")));
        named.map(|(module, _)| module.as_str()).max_by_key(|module| module.len())
    };
    let mut imports: Vec<(&str, Vec<&str>)> = files
        .iter()
        .map(|(module, text)| {
            let named = named_paths(text);
            (module.as_str(), named.iter().filter_map(|path| file_of(path)).filter(|other| other != module).collect())
        })
        .collect();
    assert!(imports.iter().map(|(_, others)| others.len()).sum::<usize>() > 300, "the imports are found");
    // Files that import no file that is left are taken away, until none is left or all are in a circle or above one.
    while let Some(at) = imports.iter().position(|(_, others)| others.is_empty()) {
        let (done, _) = imports.swap_remove(at);
        for (_, others) in &mut imports {
            others.retain(|other| *other != done);
        }
    }
    assert!(imports.is_empty(), "in a circle, or above one: {imports:#?}");
}

#[test]
fn each_module_has_a_floor() {
    for (file, floors) in [
        ("src/lib.rs", FLOORS),
        ("crates/model/src/lib.rs", MODEL_FLOORS),
        ("crates/simt/src/lib.rs", SIMULATOR_FLOORS),
    ] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a library");
        for line in text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")) {
            let module = line.trim_end_matches(';');
            assert!(
                module == "commands" || floors.iter().any(|(name, _)| *name == module),
                "{file} declares `{module}`, which has no floor in {}",
                file!()
            );
        }
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
    sources(&root.join("crates"), &mut paths);
    let long: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let lines = fs::read_to_string(path).expect("a source can be read").lines().count();
            (lines > 600).then(|| format!("{}: {lines} lines", path.display()))
        })
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Whether a line declares a field that holds an `f64`.
fn declares_floats(line: &str) -> bool {
    let line = line.trim();
    let field = line.trim_start_matches("pub ").split_once(": ").filter(|(name, _)| {
        name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && line.ends_with(',') && !line.contains('(')
    });
    let wrapper = line.starts_with("pub struct ").then(|| line.split_once('(')).flatten();
    field.or(wrapper).is_some_and(|(_, kind)| kind.contains("f64") || kind.contains("FormedRatios"))
}

#[test]
fn every_float_that_is_stored_or_sent_is_written_as_a_real() {
    let mut wrong = Vec::new();
    let mut floats = 0;
    for (path, text) in code_in("crates/model/src/model") {
        let lines: Vec<&str> = text.split("#[cfg(test)]").next().unwrap_or("").lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| declares_floats(line)) {
            let attributes = lines[..at].iter().rev().take_while(|before| before.trim().starts_with("#["));
            let is_real = attributes.chain([line]).any(|part| part.contains("super::real"));
            floats += 1;
            if !is_real && !path.ends_with("/real.rs") {
                wrong.push(format!("{path}: `{}` has no #[serde(with = \"super::real\")]", line.trim()));
            }
        }
    }
    assert!(floats > 50, "{floats} floats are found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
