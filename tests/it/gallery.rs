//! The gallery: kernels of published packages on the simulator, each checked against its own reference.
//!
//! The packages are downloaded once. If a registry cannot be reached, these tests say so and are skipped, unless
//! `CI_PACKAGES=required` is set.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;
use runner_compile::Cache;
use runner_compile::package::fetch_package;
use runner_results::journal;
use runner_types::{Outcome, Verdict};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The manifests, sorted by name.
fn manifests() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("experiments/gallery")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    paths
}

/// Fetches all packages. Returns whether that succeeded.
fn has_packages() -> bool {
    let named = manifests().into_iter().flat_map(|path| runner_manifest::packages(&path));
    let packages: BTreeMap<String, _> = named.map(|package| (package.sha256.clone(), package)).collect();
    let cache = Cache::locate().unwrap();
    let failed = packages.values().find_map(|package| fetch_package(package, &cache, &mut |_| {}).err());
    let Some(why) = failed else { return true };
    assert_ne!(env::var("CI_PACKAGES").as_deref(), Ok("required"), "{why}");
    println!("skipped: {why}");
    false
}

#[test]
fn every_manifest_of_the_gallery_is_valid_checks_all_variants_and_is_in_the_manual() {
    if !has_packages() {
        return;
    }
    let manual = fs::read_to_string(root().join("docs/explanation/gallery.md")).unwrap();
    let paths = manifests();
    assert!(paths.len() >= 60, "{} manifests", paths.len());
    assert!(manual.contains(&format!("has {} manifests", paths.len())), "{} manifests", paths.len());
    for path in &paths {
        let manifest = runner_manifest::load(path).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(manifest.name, format!("gallery-{stem}"));
        assert!(manifest.question.is_some(), "{stem} asks nothing");
        assert!(manual.contains(&format!("| [{stem}](../../experiments/gallery/{stem}.toml) |")), "{stem}");
    }
}

#[test]
fn every_kernel_of_the_gallery_computes_what_its_reference_says() {
    if runner_process::programs::cxx().is_none() {
        println!("skipped: there is no C++ compiler");
        return;
    }
    if !has_packages() {
        return;
    }
    manifests().par_iter().for_each(|path| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let run = Command::new(env!("CARGO_BIN_EXE_runner"))
            .current_dir(root())
            .env("XDG_STATE_HOME", folder.path().join("state"))
            // High enough for the slowest machine.
            .env("RUNNER_COMPILE_LIMIT", "30min")
            .arg("run")
            .arg(path)
            .args(["--backend", "sim", "--progress", "lines", "--out"])
            .arg(&out)
            .output()
            .unwrap();
        let name = path.display();
        assert_eq!(run.status.code(), Some(0), "{name}:\n{}", String::from_utf8_lossy(&run.stderr));
        let records = journal::read_records(&out.join("records.jsonl")).unwrap();
        assert!(!records.cases.is_empty(), "{name}");
        for case in &records.cases {
            match case.outcome {
                Outcome::Measured => assert_eq!(case.verdict, Verdict::Pass, "{}", case.case.key),
                Outcome::FailedAsExpected { .. } => {}
                _ => panic!("{}: {:?}", case.case.key, case.outcome),
            }
        }
    });
}
