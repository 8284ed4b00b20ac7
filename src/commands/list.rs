//! `runner list`: prints experiments with their variants and axes. Opens no device.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::{ListArgs, ReachArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use runner_compile::Network;
use runner_experiment::Manifest;
use runner_lang::format::{plural, visible_json};
use runner_plan::{self, Plan, PlanOptions};
use runner_report::{axis_value, prose};
use runner_types::{BackendKind, Value};

const FOLDER: &str = "experiments";

/// Maximum number of axis values to show. A longer axis shows its first values and the last.
const SHOWN_VALUES: usize = 4;

pub fn run(args: &ListArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    let mut entries = Vec::new();
    for path in manifests(&args.manifests)? {
        match entry(&path, &args.reach, console) {
            Ok(entry) => entries.push(entry),
            Err(failure) => {
                console.fail(&failure);
                exit = failure.exit;
            }
        }
    }
    let text = if args.json {
        let lines = entries
            .iter()
            .map(|entry| serde_json::to_string(entry).map(|line| visible_json(&line).into_owned() + "\n"));
        lines.collect::<Result<String, _>>().map_err(Failure::environment)?
    } else {
        table(&entries, console.screen().width)
    };
    console.print(&text)?;
    Ok(exit)
}

/// The named manifests, and those in the named folders.
fn manifests(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let default = [PathBuf::from(FOLDER)];
    let places = if named.is_empty() { &default[..] } else { named };
    let mut found = Vec::new();
    for place in places {
        if !place.is_dir() {
            if named.is_empty() {
                return Err(Failure::usage(format!("there is no folder {FOLDER}; name manifests or a folder of them")));
            }
            found.push(place.clone());
            continue;
        }
        let inside = in_folder(place).map_err(|error| Failure::environment(format!("{}: {error}", place.display())))?;
        if inside.is_empty() {
            return Err(Failure::usage(format!("{} has no manifest; name a folder with TOML files", place.display())));
        }
        found.extend(inside);
    }
    Ok(found)
}

fn in_folder(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let is_manifest = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml") && path.is_file();
    let mut found: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).filter(is_manifest).collect();
    found.sort();
    Ok(found)
}

/// Version of the lines, raised when a reader of the old lines would misread the new ones.
const VERSION: u32 = 1;

/// One experiment in the output of `--json`.
#[derive(Debug, Serialize)]
struct Entry {
    version: u32,
    experiment: String,
    manifest: PathBuf,
    title: String,
    question: Option<String>,
    baseline: Option<String>,
    /// Variant names after expansion, in the manifest's order.
    variants: Vec<String>,
    /// Matrix of a run on a GPU.
    #[serde(flatten)]
    gpu: Matrix,
    /// Matrix of a run on the simulator.
    simulator: Matrix,
}

#[derive(Debug, PartialEq, Serialize)]
struct Matrix {
    axes: Vec<AxisEntry>,
    cases: usize,
    groups: usize,
}

impl Matrix {
    fn of(plan: &Plan) -> Self {
        let axes = plan.axes().iter().map(|axis| AxisEntry { name: axis.name.clone(), values: axis.values.clone() });
        Self { axes: axes.collect(), cases: plan.cells().len(), groups: plan.group_count() }
    }
}

#[derive(Debug, PartialEq, Serialize)]
struct AxisEntry {
    name: String,
    values: Vec<Value>,
}

fn entry(path: &Path, reach: &ReachArgs, console: &mut Console) -> Result<Entry, Failure> {
    let manifest = load_manifest(path, reach, Network::Forbidden, console)?;
    let expand = |backend| {
        runner_plan::expand(&manifest, &PlanOptions::for_backend(backend)).map_err(|faults| console.faults(&faults))
    };
    let plan = expand(BackendKind::Cuda)?;
    let Manifest { name, title, question, .. } = &manifest;
    Ok(Entry {
        version: VERSION,
        experiment: name.clone(),
        manifest: path.to_owned(),
        title: title.clone(),
        question: question.clone(),
        baseline: plan.baseline().map(|(variant, _)| variant.clone()),
        variants: plan.variants().iter().map(|variant| variant.name.clone()).collect(),
        gpu: Matrix::of(&plan),
        simulator: Matrix::of(&expand(BackendKind::Sim)?),
    })
}

/// One row per experiment. On a terminal, long lists continue in their column.
fn table(entries: &[Entry], width: Option<usize>) -> String {
    const TITLES: [&str; 3] = ["experiment", "cases", "variants and axes"];
    let names = entries.iter().map(|entry| entry.experiment.chars().count());
    let first = names.chain([TITLES[0].len()]).max().unwrap_or(0);
    let second =
        entries.iter().map(|entry| entry.gpu.cases.to_string().len()).chain([TITLES[1].len()]).max().unwrap_or(0);
    let indent = first + second + 4;
    // A very narrow terminal has to wrap lines itself.
    let rest = width.map(|width| width.saturating_sub(indent)).filter(|width| *width >= 30);
    let row = |[one, two]: [&str; 2], lines: &[String]| {
        let lines: Vec<String> = lines.iter().map(|line| prose(line, rest, "  ")).collect();
        let cell = lines.join("\n").replace('\n', &format!("\n{}", " ".repeat(indent)));
        format!("{one:<first$}  {two:>second$}  {cell}\n")
    };
    let rows = entries.iter().map(|entry| row([&entry.experiment, &entry.gpu.cases.to_string()], &lists(entry)));
    std::iter::once(row([TITLES[0], TITLES[1]], &[TITLES[2].to_owned()])).chain(rows).collect()
}

/// Describes variants and axes in lines such as `a (baseline), b` and `n = 1024, 2048; type = f32`. If a run on the
/// simulator has others, a line such as `on the simulator 2 cases: n = 64` follows.
fn lists(entry: &Entry) -> Vec<String> {
    let variant = |name: &String| {
        let is_baseline = entry.baseline.as_ref() == Some(name);
        if is_baseline { format!("{name} (baseline)") } else { name.clone() }
    };
    let variants: Vec<String> = entry.variants.iter().map(variant).collect();
    let axes = |axes: &mut dyn Iterator<Item = &AxisEntry>| -> String {
        axes.map(|axis| format!("{} = {}", axis.name, values(&axis.values))).collect::<Vec<_>>().join("; ")
    };
    let Entry { gpu, simulator, .. } = entry;
    let differs = (gpu != simulator).then(|| {
        let other = axes(&mut simulator.axes.iter().filter(|axis| !gpu.axes.contains(axis)));
        let other = if other.is_empty() { other } else { format!(": {other}") };
        format!("on the simulator {}{other}", plural(simulator.cases as u64, "case"))
    });
    let lines = [variants.join(", "), axes(&mut gpu.axes.iter())].into_iter().chain(differs);
    lines.filter(|line| !line.is_empty()).collect()
}

fn values(values: &[Value]) -> String {
    let shown = |values: &[Value]| values.iter().map(axis_value).collect::<Vec<_>>().join(", ");
    match values {
        [head @ .., last] if values.len() > SHOWN_VALUES => {
            format!("{}, …, {}", shown(&head[..SHOWN_VALUES - 2]), axis_value(last))
        }
        _ => shown(values),
    }
}
