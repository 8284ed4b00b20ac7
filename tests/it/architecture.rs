//! Rules for the code that no compiler checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Source folder of every crate.
fn crates() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join("crates")).expect("the folder of the crates");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    names.map(|name| format!("crates/{name}/src")).chain(["src".to_owned()]).collect()
}

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

/// Every source file below a folder: its path relative to the package, and its text without comments.
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

/// Expands a `use` path: `a::{b, c::d}` becomes `a::b` and `a::c::d`.
fn members(path: &str) -> Vec<String> {
    let Some((before, group)) = path.split_once('{') else { return vec![path.trim().to_owned()] };
    let (mut depth, mut start, mut found) = (1, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            let member = group[start..at].trim();
            found.extend((!member.is_empty()).then(|| members(&format!("{before}{member}"))).into_iter().flatten());
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// A crate's modules, each with its text (without comments and tests) and the paths that it re-exports with `pub use`.
struct Modules(BTreeMap<String, (String, BTreeMap<String, String>)>);

impl Modules {
    fn read(folder: &str) -> Self {
        let mut modules = BTreeMap::new();
        for (path, text) in code_in(folder) {
            let inside = path[folder.len() + 1..].trim_end_matches(".rs").trim_end_matches("/mod");
            if inside.split('/').any(|part| part == "tests" || part == "fixture") || inside == "mod" {
                continue;
            }
            let module = if inside == "lib" { String::new() } else { inside.replace('/', "::") };
            let text = text.split("#[cfg(test)]").next().unwrap_or("").to_owned();
            let handed_on = uses(&text).into_iter().filter(|(is_public, _)| *is_public).map(|(_, path)| {
                let (path, name) = path.split_once(" as ").unwrap_or((&path, ""));
                let name = if name.is_empty() { path.rsplit("::").next().unwrap_or("") } else { name };
                (name.to_owned(), path.to_owned())
            });
            let handed_on = handed_on.collect();
            modules.insert(module, (text, handed_on));
        }
        Self(modules)
    }

    /// The longest prefix of a path that is a module, and the rest of the path.
    fn longest<'p>(&self, path: &'p [String]) -> (String, &'p [String]) {
        let is_module = |len: &usize| self.0.contains_key(&path[..*len].join("::"));
        let len = (0..=path.len()).rev().find(is_module).unwrap_or(0);
        (path[..len].join("::"), &path[len..])
    }

    /// Resolves a path in a module to a path from the crate's root; `None` if it leads to another crate.
    fn absolute(&self, module: &str, path: &str) -> Option<Vec<String>> {
        let mut above: Vec<String> = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut parts = path.split("::").map(|part| part.trim().to_owned()).peekable();
        match parts.peek()?.as_str() {
            "crate" => {
                above.clear();
                parts.next();
            }
            "self" | "super" => {
                while let Some(part) = parts.next_if(|part| part == "self" || part == "super") {
                    if part == "super" {
                        above.pop();
                    }
                }
            }
            own => {
                let child = [above.as_slice(), &[own.to_owned()]].concat().join("::");
                self.0.contains_key(&child).then_some(())?;
            }
        }
        above.extend(parts);
        Some(above)
    }

    /// Module that defines the item at a path, following re-exports.
    fn definition(&self, module: &str, path: &str) -> Option<String> {
        let mut path = self.absolute(module, path.split(" as ").next()?)?;
        for _ in 0..8 {
            let (found, rest) = self.longest(&path);
            let handed_on = rest.first().and_then(|name| self.0.get(&found)?.1.get(name));
            let Some(target) = handed_on else { return Some(found) };
            path = [self.absolute(&found, target)?, rest[1..].to_vec()].concat();
        }
        None
    }

    /// The modules that each module imports, except its ancestors and descendants.
    fn imports(&self) -> Vec<(&str, BTreeSet<String>)> {
        let lies_in = |inner: &str, outer: &str| outer.is_empty() || inner.starts_with(&format!("{outer}::"));
        let imports = |(module, (text, _)): (&String, &(String, BTreeMap<String, String>))| {
            let private = uses(text).into_iter().filter(|(is_public, _)| !is_public).map(|(_, path)| path);
            let paths = private.chain(inline_paths(text));
            let found = paths.filter_map(|path| self.definition(module, &path));
            found.filter(|other| other != module && !lies_in(other, module) && !lies_in(module, other)).collect()
        };
        self.0.iter().map(|entry| (entry.0.as_str(), imports(entry))).collect()
    }
}

/// The paths of every `use` in a text, and whether each is public.
fn uses(text: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let before = text[..at].trim_end();
        let starts = before.is_empty() || before.ends_with([';', '}', '{', ')', ']']) || before.ends_with("pub");
        let Some(path) = text[at + 4..].split(';').next().filter(|_| starts) else { continue };
        let is_public =
            before.ends_with("pub") || before.lines().next_back().is_some_and(|l| l.trim().starts_with("pub("));
        let path = path.split_whitespace().collect::<Vec<_>>().join(" ");
        found.extend(members(&path).into_iter().map(|path| (is_public, path)));
    }
    found
}

/// Qualified paths used in code, such as `crate::a::b` or `super::c`.
fn inline_paths(text: &str) -> Vec<String> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let starts = text.char_indices().filter(|(at, c)| is_path(*c) && !text[..*at].ends_with(is_path));
    let paths = starts.map(|(at, _)| text[at..].chars().take_while(|c| is_path(*c)).collect::<String>());
    paths.filter(|path| path.contains("::")).map(|path| path.trim_matches(':').to_owned()).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let (mut files, mut found) = (0, 0);
    for folder in crates() {
        let modules = Modules::read(&folder);
        let mut imports = modules.imports();
        files += imports.len();
        found += imports.iter().map(|(_, others)| others.len()).sum::<usize>();
        // Repeatedly removes modules without remaining imports. Whatever is left is in a cycle, or imports one.
        while let Some(at) = imports.iter().position(|(_, others)| others.is_empty()) {
            let (done, _) = imports.swap_remove(at);
            for (_, others) in &mut imports {
                others.remove(done);
            }
        }
        // Modules that nothing imports are not in a cycle either.
        while let Some(at) = imports.iter().position(|(file, _)| !imports.iter().any(|(_, o)| o.contains(*file))) {
            imports.swap_remove(at);
        }
        assert!(imports.is_empty(), "in a circle, or between two: {imports:#?}");
    }
    assert!(found > files, "imports are found: {found} in {files} files");
}

/// A file cannot be run while it is open for writing in this process, or in a child process that another test started.
#[test]
fn tests_leave_it_to_another_process_to_write_programs() {
    let makes_a_program =
        |line: &str| line.contains("from_mode(0o755)") || (line.contains("fs::write(") && line.contains("#!"));
    let mut wrong = Vec::new();
    for (path, text) in code_in("tests/it").into_iter().filter(|(path, _)| path != "tests/it/architecture.rs") {
        let lines = text.lines().enumerate().filter(|(_, line)| makes_a_program(line));
        wrong.extend(lines.map(|(at, _)| format!("{path}:{}: use `programs::write_program`", at + 1)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a line declares a field whose type contains `f64`.
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
    for (path, text) in code_in("crates/types/src") {
        let lines: Vec<&str> = text.split("#[cfg(test)]").next().unwrap_or("").lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| declares_floats(line)) {
            let derived = lines[..at].iter().rfind(|before| before.starts_with("#[derive("));
            if derived.is_none_or(|derived| !derived.contains("Serialize")) {
                continue;
            }
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
