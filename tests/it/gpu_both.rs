//! Runs every shipped experiment on two devices at once, at the simulator's sizes, from the same sources and inputs.
//! After every launch, memory must match: integers bit for bit, floats within what a different order of rounding
//! explains.
//!
//! With a GPU, the two devices are the GPU, which runs machine code, and the simulator, which runs PTX from the same
//! compiler. Another test pairs two simulators, so that the comparison itself is tested without a GPU.
//! `RUNNER_EXPERIMENTS` and `RUNNER_BIN` override the folder of the manifests and the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use runner_backend::cuda::Cuda;
use runner_backend::sim::SimBackend;
use runner_backend::{Backend, Device};
use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_plan::{self, PlanOptions};
use runner_types::{
    ArgPlan, BackendKind, BodyPlan, CompileUnit, Compiled, DeviceInfo, ElementType, Event, GroupJob, LaunchPlan,
    Outcome,
};
use simt::Options;

use crate::paired::{PairedDevice, apart};

fn experiments() -> Vec<PathBuf> {
    let package = || Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let folder = std::env::var_os("RUNNER_EXPERIMENTS").map_or_else(package, PathBuf::from);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut manifests: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    manifests.sort();
    manifests
}

/// An experiment's groups for a device, at the simulator's sizes, without their code.
fn groups(path: &Path, device: &DeviceInfo) -> Vec<GroupJob> {
    let manifest = runner_manifest::load(path).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let sizes = BackendKind::Sim;
    let options = PlanOptions { sizes, device: Some(device.clone()), ..PlanOptions::for_backend(device.backend) };
    let mut plan = runner_plan::expand(&manifest, &options).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    plan.exclude_host("the simulator calls no function of the host");
    let mut groups: Vec<GroupJob> =
        (0..plan.group_count()).map(|index| runner_plan::resolve(&manifest, &plan, index).job).collect();
    // A case that must fail leaves no result to compare, and may have no code.
    let failing: BTreeSet<&str> =
        manifest.variants.iter().filter(|v| !v.fails.is_empty()).map(|v| v.name.text()).collect();
    for group in &mut groups {
        group.cases.retain(|case| !failing.contains(case.case.key.variant.as_str()));
    }
    groups.retain(|group| !group.cases.is_empty());
    groups
}

fn launches(groups: &[GroupJob]) -> impl Iterator<Item = &LaunchPlan> {
    groups.iter().flat_map(|group| &group.cases).flat_map(|case| launches_of(&case.body))
}

fn launches_of(body: &BodyPlan) -> &[LaunchPlan] {
    match body {
        BodyPlan::Launches(launches) => launches,
        _ => &[],
    }
}

/// Compiles every unit.
fn code(units: &[CompileUnit], target: Target, toolkit: &Toolkit) -> BTreeMap<CompileUnit, Compiled> {
    let binary = std::env::var_os("RUNNER_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_runner").into());
    let cache = Cache::locate().unwrap();
    let options = CompileOptions { compiler: PathBuf::from(binary), ..CompileOptions::new(cache).unwrap() };
    let compiled = compile_all(units, target, toolkit, &options, &mut |_, _, _| {});
    let code = compiled.into_iter().map(|(unit, made)| {
        let made = made.unwrap_or_else(|failure| panic!("{}\n{}", failure.summary, failure.log));
        (unit, made)
    });
    code.collect()
}

/// Element types of each kernel's buffer arguments, keyed by mangled name. `None` where cases disagree; those buffers
/// are compared bit for bit.
fn arguments(group: &GroupJob) -> BTreeMap<String, Vec<Option<ElementType>>> {
    let mut all: BTreeMap<String, Vec<Option<ElementType>>> = BTreeMap::new();
    for case in &group.cases {
        let element = |name: &String| case.buffers.iter().find(|b| b.name == *name).map(|b| b.element);
        for launch in launches_of(&case.body) {
            let args = launch.args.iter().map(|arg| match arg {
                ArgPlan::Buffer(name) | ArgPlan::Offset { buffer: name, .. } => element(name),
                ArgPlan::Texture(texture) => element(&texture.buffer),
                ArgPlan::Scalar(_) | ArgPlan::Struct(_) | ArgPlan::Addressed { .. } | ArgPlan::Named { .. } => None,
            });
            let args: Vec<_> = args.collect();
            let known = all.entry(launch.mangled().to_owned()).or_insert_with(|| args.clone());
            for (known, arg) in known.iter_mut().zip(args) {
                *known = known.filter(|_| *known == arg);
            }
        }
    }
    all
}

/// Two devices, and what is needed to compile for them.
struct Pair {
    paired: PairedDevice,
    toolkit: Toolkit,
    /// Target of the first device.
    target: Target,
    /// Number of cases that ran.
    ran: usize,
}

impl Pair {
    /// Runs an experiment on both devices. Returns what differed and what did not run.
    fn differences(&mut self, path: &Path) -> Vec<String> {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut groups = groups(path, self.paired.info());
        let units: BTreeSet<CompileUnit> = launches(&groups).map(|launch| launch.unit.clone()).collect();
        let units: Vec<CompileUnit> = units.into_iter().collect();
        let ours = code(&units, self.target, &self.toolkit);
        let theirs = code(&units, Target::Ptx((9, 0)), &self.toolkit);
        self.paired.code = units.iter().map(|unit| (ours[unit].key.clone(), theirs[unit].clone())).collect();
        for case in groups.iter_mut().flat_map(|group| &mut group.cases) {
            let BodyPlan::Launches(launches) = &mut case.body else { continue };
            for launch in launches {
                launch.compiled = Some(ours[&launch.unit].clone());
            }
        }
        let before = (self.ran, self.paired.batches);
        let mut wrong: Vec<String> = groups.iter().flat_map(|group| self.group(&name, group)).collect();
        if (self.ran, self.paired.batches) == before {
            wrong.push(format!("{name}: nothing ran"));
        }
        wrong
    }

    fn group(&mut self, name: &str, group: &GroupJob) -> Vec<String> {
        let mut wrong = Vec::new();
        self.paired.arguments = arguments(group);
        let ran = &mut self.ran;
        let done = runner_execute::run_group(
            &mut self.paired,
            group,
            &mut runner_execute::GroupCache::default(),
            &mut |event| match event {
                Event::CaseSettled { outcome: Outcome::Measured, .. } => *ran += 1,
                Event::CaseSettled { outcome: Outcome::Invalid { .. }, .. } => {}
                Event::CaseSettled { case, outcome, .. } => wrong.push(format!("{}: {outcome:?}", case.key)),
                _ => {}
            },
        );
        wrong.extend(done.err().map(|lost| format!("{name}: {lost:?}")));
        wrong.extend(self.paired.differences.drain(..).map(|text| format!("{name}, {}: {text}", group.key)));
        wrong
    }

    /// Runs every experiment; panics with a list of all differences.
    fn run(&mut self, experiments: &[PathBuf]) {
        let mut wrong = Vec::new();
        for path in experiments {
            wrong.extend(self.differences(path));
            let PairedDevice { batches, compared, .. } = self.paired;
            println!("{}: {} cases, {batches} launches, {compared} buffers so far", path.display(), self.ran);
        }
        assert!(self.paired.compared >= self.paired.batches, "{} buffers were compared", self.paired.compared);
        assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
    }
}

fn open_simulator(threads: Option<usize>) -> Box<dyn Device> {
    let options = Options { threads, sanitize: false, ..Options::default() };
    let backend = SimBackend::new(Some("h100"), options).unwrap();
    let (id, _) = backend.devices().unwrap().remove(0);
    backend.open(&id).unwrap()
}

#[test]
#[ignore = "needs a GPU"]
fn every_experiment_leaves_the_same_memory_on_the_gpu_and_on_the_simulator() {
    let first = Cuda::Timed.devices().unwrap().into_iter().next();
    let (id, info) = first.expect("a CUDA device");
    let gpu = Cuda::Timed.open(&id).unwrap();
    let cuda = gpu.driver().unwrap().cuda;
    let want = Requirement::Gpu { driver: cuda, compute_capability: info.compute_capability };
    let toolkit = Toolkit::ensure(want, &Cache::locate().unwrap(), Network::Allowed, &mut |_| {}).unwrap();
    let paired = PairedDevice::new(gpu, open_simulator(None));
    Pair { paired, toolkit, target: Target::Gpu(info.compute_capability), ran: 0 }.run(&experiments());
}

#[test]
fn two_simulators_leave_the_same_memory() {
    let toolkit =
        Toolkit::ensure(Requirement::Pinned, &Cache::locate().unwrap(), Network::Allowed, &mut |_| {}).unwrap();
    let paired = PairedDevice::new(open_simulator(Some(1)), open_simulator(Some(4)));
    let mut pair = Pair { paired, toolkit, target: Target::Ptx((9, 0)), ran: 0 };
    let few =
        experiments().into_iter().filter(|p| p.ends_with("access_patterns.toml") || p.ends_with("occupancy.toml"));
    pair.run(&few.collect::<Vec<_>>());
    assert!(pair.ran >= 40 && pair.paired.batches == pair.ran, "{} cases, {} launches", pair.ran, pair.paired.batches);
}

#[test]
fn every_experiment_has_cases_at_the_simulators_sizes() {
    let simulator = open_simulator(Some(1));
    let gpu = DeviceInfo { backend: BackendKind::Cuda, ..simulator.info().clone() };
    for path in experiments() {
        let groups = groups(&path, &gpu);
        assert!(launches(&groups).next().is_some(), "{} launches nothing", path.display());
    }
}

#[test]
fn memory_that_differs_is_found() {
    let words = |words: [u32; 2]| words.map(u32::to_le_bytes).concat();
    let floats = |a: f32, b: f32| words([a.to_bits(), b.to_bits()]);
    let (int, float) = (Some(ElementType::I32), Some(ElementType::F32));
    assert_eq!(apart(int, &words([1, 2]), &words([1, 2])), None);
    assert_eq!(apart(int, &words([1, 2]), &words([1, 0x10002])), Some("byte 6 differs".to_owned()));
    assert_eq!(apart(None, &floats(1.0, 4.0), &floats(1.0, 4.000_004)), Some("byte 4 differs".to_owned()));
    // A difference of 2^-20 of the largest element can be due to the order of rounding; a thousandth cannot.
    assert_eq!(apart(float, &floats(1.0, 4.0), &floats(1.0, 4.000_004)), None);
    let far = apart(float, &floats(1.0, 4.0), &floats(1.0, 4.004));
    assert_eq!(far, Some("element 1 is 4 and 4.004000186920166".to_owned()));
    let nan = floats(1.0, f32::NAN);
    assert_eq!(apart(float, &nan, &nan), None);
    assert_eq!(apart(float, &nan, &floats(1.0, 2.0)), Some("element 1 is NaN and 2".to_owned()));
}
