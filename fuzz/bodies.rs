//! What each fuzz target does with its input. An error is a valid result; a panic, a hang or unbounded memory use is a
//! bug.
//!
//! `fuzz/run.py` runs the targets for any length of time, guided by coverage. The tests run each of them briefly
//! (`tests/it/fuzz.rs`).

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use runner_cuda_source::kernel_file::KernelFile;
use runner_files::project::Project;
use runner_lang::claim::ClaimProgram;
use runner_lang::template::{self, Style};
use runner_lang::{Program, Scope, argument, reference};
use runner_manifest::draft::{Draft, Request, Wanted};
use runner_plan::PlanOptions;
use runner_results::analyse;
use runner_results::journal::{self, Contents, JOURNAL_FILE};
use runner_types::{BackendKind, CompileUnit, PageTemplate, Records, SourceText, Value};
use sass::{
    Control, Cubin, Disassembly, Function, InstructionText, LineCount, Listing, Tables, Text, read_disassembly,
};
use simt::{DeviceProfile, LaunchSpec, Machine, Options, profiles};

/// A fuzz target, which accepts any bytes.
pub type Target = fn(&[u8]);

/// All targets. Each has a folder of seeds in `corpus/`.
pub const TARGETS: [(&str, Target); 10] = [
    ("manifest", manifest),
    ("expressions", expressions),
    ("sources", sources),
    ("ptx_load", ptx_load),
    ("ptx_run", ptx_run),
    ("journal", journal),
    ("records", records),
    ("template", template),
    ("counters_csv", counters_csv),
    ("cubin", cubin),
];

/// Maximum number of cells of a matrix to plan, and of cases to report.
const MOST_CELLS: usize = 1000;

/// Records of a simulator run.
const RECORDS: &str = include_str!("../reports/nested_hello/simulated-h100/records.jsonl");

/// Validates a manifest and, if it is valid and small, plans it.
pub fn manifest(data: &[u8]) {
    let Ok(text) = String::from_utf8(data.to_vec()) else { return };
    let source = Arc::new(SourceText { path: "/nonexistent/project/experiments/x.toml".into(), text });
    match runner_manifest::parse_within(&source, Project::from_manifest(&source.path)) {
        Err(faults) => drop(faults.render(false)),
        Ok(manifest) => {
            let points = manifest.axes.iter().try_fold(1_usize, |all, axis| all.checked_mul(axis.values.len()));
            if points.is_some_and(|points| points <= MOST_CELLS)
                && let Ok(plan) = runner_plan::expand(&manifest, &PlanOptions::for_backend(BackendKind::Sim))
            {
                (0..plan.group_count().min(8)).for_each(|index| drop(runner_plan::resolve(&manifest, &plan, index)));
            }
        }
    }
}

/// Parses a text in each language that a manifest's strings may use, and evaluates it.
pub fn expressions(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut scope = Scope::new();
    for (name, value) in [("n", Value::Int(1 << 20)), ("x", Value::Float(0.5)), ("s", Value::Str("a".into()))] {
        scope.set(name, value);
    }
    if let Ok(program) = Program::parse(text) {
        let _ = program.evaluate(&scope);
    }
    if let Ok(template) = template::parse(text) {
        let _ = template.render(&scope, Style::Cpp);
    }
    if let Ok(reference) = reference::parse(text) {
        let _ = reference.resolve(&scope);
    }
    let _ = argument::parse(text);
    let _ = ClaimProgram::parse(text);
}

/// A manifest that uses one source as CUDA, as PTX, as a host function and as a reference.
const OF_SOURCES: &str = r#"
[experiment]
name = "x"
[buffers.a]
type = "f32"
len = 8
fill = 1
[buffers.b]
type = "f32"
len = 8
[check]
actual = "b"
expect = { cpp = "k.cpp:f" }
[[variant]]
name = "cuda"
source = "k.cu"
kernel = "k"
grid = [1]
block = [8]
args = ["a", "b"]
[[variant]]
name = "ptx"
source = "k.ptx"
kernel = "k"
grid = [1]
block = [8]
args = ["a", "b"]
[[variant]]
name = "host"
source = "k.cu"
host = "f"
args = ["a", "b"]
"#;

/// Scans a source for its includes and definitions, for a manifest that uses it and for manifests drafted from it.
pub fn sources(data: &[u8]) {
    let Ok(dir) = tempfile::tempdir() else { return };
    let path = |name: &str| dir.path().join(name);
    let Ok(project) = Project::at(dir.path()) else { return };
    if ["k.cu", "k.ptx", "k.cpp"].iter().any(|name| std::fs::write(path(name), data).is_err()) {
        return;
    }
    let check = |text: String| {
        let source = Arc::new(SourceText { path: path("x.toml"), text });
        drop(runner_manifest::parse_within(&source, project.clone()));
    };
    let _ = runner_compile::sources(&CompileUnit::from_kernels(path("k.cu"), ["k"]), &project, &[]);
    let KernelFile { kernels, host, .. } = KernelFile::read(&path("k.cu"), &[], &[]).unwrap_or_default();
    for signature in kernels.into_iter().take(4) {
        let (source, kernel) = ("k.cu".to_owned(), signature.name.clone());
        let launch = host.launches.iter().find(|launch| launch.kernel == signature.name).cloned();
        let wanted = Wanted {
            file: source.clone(),
            source,
            kernel,
            signature,
            constants: host.constants.clone(),
            launch,
            launched_in: None,
        };
        let request = Request { name: "x".to_owned(), kernels: vec![wanted], ..Request::default() };
        if let Ok(draft) = Draft::new(&request) {
            check(draft.text());
        }
    }
    check(OF_SOURCES.to_owned());
}

/// A small GPU, since each simulated machine reserves its memory.
fn small() -> Option<DeviceProfile> {
    profiles().into_iter().next().map(|profile| DeviceProfile { memory: 16 << 20, ..profile })
}

fn machine() -> Option<Machine> {
    let options = Options { threads: Some(1), watchdog: 20_000, heap: 1 << 16, stack: 1 << 14, ..Options::default() };
    let mut machine = Machine::new(small()?, options).ok()?;
    machine.set_deadline(Some(Duration::from_millis(500)));
    Some(machine)
}

/// Parses a module and loads it into a simulated GPU.
pub fn ptx_load(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(mut machine) = machine() {
        let _ = machine.load(text);
    }
}

/// Runs the first kernels of a module in blocks of one warp, with up to three arguments.
pub fn ptx_run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(mut machine) = machine() else { return };
    let (Ok(buffer), Ok(module)) = (machine.alloc(4096), machine.load(text)) else { return };
    let names: Vec<String> = machine.kernels(module).into_iter().map(str::to_owned).collect();
    for kernel in names.iter().take(4) {
        for count in [0, 1, 2, 3] {
            let args = vec![buffer.to_le_bytes().to_vec(); count];
            let (grid, block) = ([2, 1, 1], [32, 1, 1]);
            let spec = LaunchSpec { kernel, grid, block, shared: 0, cooperative: false, cluster: None, args: &args };
            let _ = machine.launch(module, &spec);
        }
    }
}

/// Reads a journal, resumes it and reports its results.
pub fn journal(data: &[u8]) {
    let Ok(dir) = tempfile::tempdir() else { return };
    let path = dir.path().join(JOURNAL_FILE);
    if std::fs::write(&path, data).is_err() {
        return;
    }
    let _ = journal::is_complete(&path);
    if let Ok(history) = journal::read(&path).and_then(Contents::into_history) {
        let _ = history.held();
        if let Ok(records) = analyse::records_of(history) {
            report(&records);
        }
    }
}

/// Reads records and renders a report of them.
pub fn records(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(records) = journal::parse_records(text, Path::new("records.jsonl")) {
        report(&records);
    }
}

fn report(records: &Records) {
    if records.cases.len() <= MOST_CELLS {
        let _ = runner_report::files(records);
        let _ = runner_report::terminal(records, runner_report::Screen { styled: true, width: Some(80) });
    }
}

/// Renders a report's page with a user's template.
pub fn template(data: &[u8]) {
    static KNOWN: OnceLock<Option<Records>> = OnceLock::new();
    let Ok(text) = String::from_utf8(data.to_vec()) else { return };
    let known = KNOWN.get_or_init(|| journal::parse_records(RECORDS, Path::new("records.jsonl")).ok());
    let Some(mut records) = known.clone() else { return };
    records.header.template = Some(PageTemplate { path: "page.md.tera".into(), text });
    let _ = runner_report::files(&records);
}

/// Parses the output of a profiler.
pub fn counters_csv(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = runner_profile::read_table(&text);
    let _ = runner_profile::read_source_page(&text);
}

/// Parses the output of nvdisasm, and a cubin with its line tables.
pub fn cubin(data: &[u8]) {
    let _ = read_disassembly(data);
    let Ok(cubin) = Cubin::parse(data) else { return };
    let tables = Tables::read(&cubin).unwrap_or_default();
    for function in cubin.functions() {
        for (offset, word) in (function.start..).step_by(16).zip(&function.words) {
            let _ = Control::decode(*word).waits().count();
            let _ = (tables.source.places(function.section, offset), tables.ptx.places(function.section, offset));
        }
    }
    let text = Disassembly { functions: cubin.functions().iter().map(text_of).collect() };
    for listing in Listing::join(&cubin, &text, &tables).unwrap_or_default() {
        let executed = listing.executed(|line| {
            let diverged = (line % 3 == 0).then_some(u64::from(line % 2));
            Some(LineCount { warps: u64::from(line % 7), diverged, rounds: &[(1, 2), (3, 1)][..line as usize % 3] })
        });
        assert_eq!(executed.len(), listing.instructions.len());
    }
}

/// Invents a function's disassembly. The bits of its words select what determines the control flow: predicates, opcodes
/// and branch targets.
fn text_of(function: &Function) -> Text {
    const OPCODES: [&str; 10] =
        ["BRA", "BSSY", "BSYNC", "STG.E", "FFMA", "EXIT", "BRA.DIV", "CALL.REL.NOINC", "BREAK", "MUFU.RCP"];
    let instruction = |word: &u128| InstructionText {
        predicate: if word >> 12 & 1 == 1 { "@P0".to_owned() } else { String::new() },
        opcode: OPCODES[(*word % 10) as usize].to_owned(),
        operands: format!("0x{:x}", word >> 16 & 0xfff0),
    };
    Text {
        function: function.name.clone(),
        start: function.start,
        instructions: function.words.iter().map(instruction).collect(),
    }
}
