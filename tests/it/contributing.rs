//! `CONTRIBUTING.md` matches the code: every file and item named in its walk-throughs exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Text in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Table rows outside examples: the files that each row names, and what it says about them.
fn rows(page: &str) -> Vec<(Vec<&str>, &str)> {
    let prose = page.split("```").step_by(2).flat_map(str::lines);
    let cells = prose.filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    // The prefix above already removed the first backtick.
    cells.map(|(files, about)| (files.split('`').step_by(2).collect(), about)).collect()
}

/// Whether a path is a placeholder for something that the reader adds.
fn is_example(path: &str) -> bool {
    path.contains("NAME") || path.contains("OPCODE") || path.contains('<')
}

#[test]
fn every_file_that_a_table_names_exists() {
    let page = read("CONTRIBUTING.md");
    let files: BTreeSet<&str> = rows(&page).into_iter().flat_map(|(files, _)| files).collect();
    assert!(files.len() > 40, "{files:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Skips glob patterns, and bare file names, which are relative to the file named before them.
    let is_path = |path: &&str| path.contains('/') && !path.contains('*') && !is_example(path);
    let missing: Vec<&str> = files.into_iter().filter(is_path).filter(|path| !root.join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_macro_that_a_table_names_is_in_the_file_of_its_row() {
    let page = read("CONTRIBUTING.md");
    let mut count = 0;
    for (files, about) in rows(&page) {
        for name in quoted(about).filter(|word| word.ends_with('!')) {
            count += 1;
            assert!(read(files[0]).contains(name.trim_end_matches('!')), "{} has no {name}", files[0]);
        }
    }
    assert!(count >= 4, "{count} macros are named");
}

/// The manifest and line number of every error in an example.
fn shown_manifests(page: &str) -> Vec<(&str, usize)> {
    let places = page.lines().filter_map(|line| line.trim_start().strip_prefix("--> experiments/"));
    let parts = places.filter_map(|place| place.split_once(':'));
    parts.map(|(file, rest)| (file, rest.split(':').next().and_then(|line| line.parse().ok()).unwrap_or(0))).collect()
}

/// The line may be one that the reader adds, so it only has to lie within the manifest.
#[test]
fn errors_in_the_examples_are_of_manifests_that_are_shipped() {
    let page = read("CONTRIBUTING.md");
    let shown = shown_manifests(&page);
    assert!(shown.len() >= 2, "{shown:?}");
    for (file, line) in shown {
        assert!((1..=read(&format!("experiments/{file}")).lines().count()).contains(&line), "{file}:{line}");
    }
}

#[test]
fn every_walk_applies_to_the_tree_and_is_named_on_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = read("CONTRIBUTING.md");
    let walks: Vec<_> = fs::read_dir(root.join("docs/walks")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(walks.len() >= 6, "{walks:?}");
    for walk in walks {
        let name = walk.strip_prefix(root).unwrap().display().to_string();
        assert!(page.contains(&format!("git apply {name}")), "{name}");
        let output = Command::new("git").current_dir(root).args(["apply", "--check", &name]).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
