//! Every shipped experiment compiles for a GPU and runs on the simulator with every result right. The simulator's
//! committed report must be reproduced byte for byte; `SNAPSHOTS=overwrite` updates it. The committed reports of GPUs
//! must match their own records to the last byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;
use runner_backend::Backend as _;
use runner_backend::sim::SimBackend;
use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_experiment::Manifest;
use runner_plan::{self, PlanOptions, PlannedOutcome};
use runner_results::analyse::{self, ClaimState};
use runner_results::journal;
use runner_types::{BackendKind, BodyPlan, CompileUnit, Failure, Outcome, Verdict};

use fixture::snapshot;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn experiments() -> Vec<PathBuf> {
    manifests("experiments")
}

/// The manifests of a folder, sorted by name.
fn manifests(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    paths.sort();
    assert!(paths.len() >= 3, "{paths:?}");
    paths
}

/// The experiment without variants that are expected to fail to compile.
fn load(path: &Path) -> Manifest {
    let mut manifest = runner_manifest::load(path).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    manifest.variants.retain(|variant| !variant.fails.iter().any(|fails| fails.failure == Failure::CompileError));
    manifest
}

/// All units that the experiment compiles for an H100.
fn units(path: &Path) -> BTreeSet<CompileUnit> {
    let manifest = load(path);
    let (_, mut device) =
        SimBackend::new(Some("h100"), simt::Options::default()).unwrap().devices().unwrap().swap_remove(0);
    device.backend = BackendKind::Cuda;
    let options = PlanOptions { device: Some(device), ..PlanOptions::for_backend(BackendKind::Cuda) };
    let plan = runner_plan::expand(&manifest, &options).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let groups = (0..plan.group_count()).map(|index| runner_plan::resolve(&manifest, &plan, index));
    let bodies = groups.flat_map(|group| group.job.cases).map(|case| case.body);
    let launches =
        bodies.filter_map(|body| if let BodyPlan::Launches(launches) = body { Some(launches) } else { None });
    launches.flatten().map(|launch| launch.unit).collect()
}

/// Variants that declare an empty list of checks.
fn unchecked(path: &Path) -> BTreeSet<String> {
    let manifest = load(path);
    let nothing = manifest.variants.iter().filter(|variant| variant.checks.as_ref().is_some_and(Vec::is_empty));
    nothing.map(|variant| variant.name.text().to_owned()).collect()
}

#[test]
fn every_shipped_kernel_compiles_to_machine_code() {
    let mut units: Vec<CompileUnit> = experiments().iter().flat_map(|path| units(path)).collect();
    // Skips PTX that another compiler wrote.
    units.retain(|unit| unit.source.extension().is_some_and(|extension| extension == "cu"));
    assert!(units.len() > 30, "{} units", units.len());
    let cache = Cache::locate().unwrap();
    let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
    let options =
        CompileOptions { compiler: env!("CARGO_BIN_EXE_runner").into(), ..CompileOptions::new(cache).unwrap() };
    let compiled = compile_all(&units, Target::Gpu((9, 0)), &toolkit, &options, &mut |_, _, _| {});
    for (unit, result) in compiled {
        let compiled = result.unwrap_or_else(|failure| panic!("{unit:?}: {}", failure.log));
        for kernel in &unit.kernels {
            let resources = compiled.resources[kernel];
            assert!(resources.registers.is_some_and(|n| (1..=255).contains(&n)), "{kernel}: {resources:?}");
            let allowed = unit.settings.max_registers.is_some();
            assert!(allowed || resources.spill_stores.unwrap_or(0) == 0, "{kernel} spills");
        }
    }
}

/// The search space has as many configurations as the published one. One configuration of each kind is run and must be
/// right.
#[test]
fn the_convolution_has_the_published_configurations_and_each_kind_is_right() {
    let manifest = load(&root().join("experiments/convolution.toml")).with_searched_axes();
    for options in [PlanOptions::for_backend(BackendKind::Cuda), PlanOptions::for_backend(BackendKind::Sim)] {
        let plan = runner_plan::expand(&manifest, &options).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        let valid = plan.cells().iter().filter(|cell| !matches!(cell.outcome, PlannedOutcome::Excluded(_)));
        assert_eq!((plan.group_count(), valid.count()), (1, 4362));
    }
    let out = tempfile::tempdir().unwrap();
    let narrowed = ["block_size_x=16,32", "block_size_y=4", "tile_size_x=2", "tile_size_y=3", "read_only=0,1"];
    let run = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(root())
        .args(["run", "experiments/convolution.toml", "--backend", "sim", "--progress", "lines", "--out"])
        .arg(out.path())
        .args(narrowed.iter().flat_map(|set| ["--set", set]))
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let records = journal::read_records(&out.path().join("records.jsonl")).unwrap();
    let right = records.cases.iter().filter(|case| case.verdict == Verdict::Pass);
    // With 16 threads in x: two without shared memory, four with it. With 32, each of the two read modes has one form
    // fewer.
    assert_eq!(right.count(), 6 + 4);
}

/// Runs an experiment on the simulator and compares the report with the committed one.
fn rerun(path: &Path) {
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let unchecked = unchecked(path);
    let out = tempfile::tempdir().unwrap();
    let manifest = format!("experiments/{name}.toml");
    let run = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(root())
        .args(["run", &manifest, "--backend", "sim", "--progress", "lines", "--out"])
        .arg(out.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{name}:\n{said}");
    let records = journal::read_records(&out.path().join("records.jsonl")).unwrap();
    for case in &records.cases {
        match case.outcome {
            Outcome::Measured if unchecked.contains(&case.case.key.variant) => {}
            Outcome::Measured => assert_eq!(case.verdict, Verdict::Pass, "{}", case.case.key),
            Outcome::Excluded { .. } | Outcome::Invalid { .. } | Outcome::FailedAsExpected { .. } => {}
            _ => panic!("{}: {:?}", case.case.key, case.outcome),
        }
        assert!(case.result.is_none(), "{} has a time", case.case.key);
    }
    let kept = root().join("reports").join(&name).join("simulated-h100");
    for file in ["records.jsonl", "report.md", "results.csv", "environment.json"] {
        snapshot::assert_is(&std::fs::read_to_string(out.path().join(file)).unwrap(), &kept.join(file));
    }
}

#[test]
fn every_experiment_is_right_on_the_simulator_and_its_report_is_the_committed_one() {
    // Each experiment plans, checks and writes on one core.
    experiments().par_iter().for_each(|path| rerun(path));
}

/// Folders of all committed reports, including those of GPUs.
fn reports() -> Vec<PathBuf> {
    let folders = |dir: PathBuf| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = folders(root().join("reports")).filter(|path| path.is_dir());
    let found: Vec<PathBuf> = named.flat_map(folders).filter(|d| d.join("records.jsonl").exists()).collect();
    // Every experiment has been simulated, and both timed and profiled on a GPU.
    assert!(found.len() >= 3 * experiments().len(), "{found:?}");
    found
}

#[test]
fn every_committed_report_is_what_its_records_make() {
    let check = Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(root()).args(["report", "--check"]).output();
    let check = check.unwrap();
    let said = [check.stdout, check.stderr].concat();
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&said));
    // Reports of a GPU may be stale; the output says so in addition.
    let whole = format!("{} reports checked: every file matches its records", reports().len());
    assert!(String::from_utf8_lossy(&said).contains(&whole), "{}", String::from_utf8_lossy(&said));
}

/// Visible width of each cell in a row of a Markdown table, in characters.
fn cells(row: &str) -> Vec<usize> {
    let text = row.replace("\\|", "¦").replace("&lt;", "<").replace("&amp;", "&").replace("**", "").replace('`', "");
    let seen = |cell: &str| cell.trim().replace('\\', "").chars().count();
    text.trim_matches('|').split('|').map(seen).collect()
}

/// GitHub renders pages about 950 pixels wide and gives wider tables a scroll bar. The convolution is exempt: its
/// tables have a column for each of its seven parameters.
#[test]
fn every_table_of_a_committed_report_fits_a_page() {
    let mut wide = Vec::new();
    for folder in reports().into_iter().filter(|folder| folder.parent() != Some(&root().join("reports/convolution"))) {
        let page = std::fs::read_to_string(folder.join("report.md")).unwrap();
        let mut widths: Vec<usize> = Vec::new();
        for (number, line) in page.lines().chain([""]).enumerate() {
            if line.starts_with("| --") {
                continue;
            }
            if line.starts_with('|') {
                let row = cells(line);
                widths.resize(row.len(), 0);
                widths.iter_mut().zip(row).for_each(|(width, cell)| *width = cell.max(*width));
                continue;
            }
            // Each column adds a border and two blanks.
            let width = 1 + widths.iter().map(|width| width + 3).sum::<usize>();
            if width > 100 {
                wide.push(format!("{}:{number}: {width}", folder.display()));
            }
            widths.clear();
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

/// Every claim of a manifest must hold in every committed report of its experiment, even in reports that only have
/// counters. At least one report must be able to judge it.
#[test]
fn the_committed_reports_bear_out_every_claim() {
    let mut wrong = Vec::new();
    for path in experiments() {
        let claims = load(&path).claims;
        let folder = root().join("reports").join(path.file_stem().unwrap());
        let mut judged = vec![0; claims.len()];
        for device in reports().into_iter().filter(|device| device.parent() == Some(&folder)) {
            let mut records = journal::read_records(&device.join("records.jsonl")).unwrap();
            records.header.claims = claims.clone();
            for (count, claim) in judged.iter_mut().zip(analyse::claims(&records)) {
                if matches!(claim.state, ClaimState::Broken | ClaimState::Undecided) {
                    let (claim, state, group) = (&claim.claim.text, claim.state, claim.decisive());
                    wrong.push(format!("{}: {state:?}: {claim}: {group:?}", device.display()));
                }
                *count += claim.groups.len();
            }
        }
        let unsupported = claims.iter().zip(judged).filter(|(_, groups)| *groups == 0);
        wrong.extend(unsupported.map(|(claim, _)| format!("{}: no report judges {}", path.display(), claim.text)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
