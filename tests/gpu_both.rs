//! Every shipped experiment on two devices at once, at the simulator's sizes: the same sources, the same inputs, and
//! after every launch the same memory, integers bit for bit and floats within what another order of rounding explains.
//!
//! With a GPU the two are that GPU, which gets machine code, and the simulator, which gets PTX of the same compiler.
//! Without a device that test prints `skipped: no CUDA device` and passes, unless `RUNNER_REQUIRE_GPU` is set; another
//! one holds two simulators against each other, so that what is compared is known to be compared. `RUNNER_EXPERIMENTS`
//! names the folder of the manifests and `RUNNER_BIN` the program, where the package is elsewhere.
#![expect(clippy::unwrap_used, reason = "a test panics to fail")]
#![expect(clippy::print_stdout, reason = "a skipped test and what was compared are said in the test's output")]

mod twin;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use runner::backend::cuda::Cuda;
use runner::backend::sim::SimBackend;
use runner::backend::{Backend, Device, DeviceError};
use runner::compile::{Cache, CompileOptions, Network, Target, Toolkit, Want, compile_all};
use runner::model::{
    BackendKind, BodyPlan, BufferPlan, CompileUnit, Compiled, DeviceInfo, ElementType, Event, GroupJob, LaunchPlan,
    Outcome,
};
use runner::plan::{self, PlanOptions};
use runner::sim::Options;
use runner::{execute, manifest};

use self::twin::Twin;

fn experiments() -> Vec<PathBuf> {
    let package = || Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let folder = std::env::var_os("RUNNER_EXPERIMENTS").map_or_else(package, PathBuf::from);
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut manifests: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    manifests.sort();
    manifests
}

/// Groups of an experiment for a device, at the simulator's sizes, without their code.
fn groups(path: &Path, device: &DeviceInfo) -> Vec<GroupJob> {
    let manifest = manifest::load(path).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let sizes = BackendKind::Sim;
    let options = PlanOptions { sizes, device: Some(device.clone()), ..PlanOptions::of(device.backend) };
    let mut plan = plan::expand(&manifest, &options).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    plan.exclude_host("the simulator calls no function of the host");
    (0..plan.group_count()).map(|index| plan::resolve(&manifest, &plan, index).job).collect()
}

fn launches(groups: &[GroupJob]) -> impl Iterator<Item = &LaunchPlan> {
    groups.iter().flat_map(|group| &group.cases).flat_map(|case| match &case.body {
        BodyPlan::Launches(launches) => launches.as_slice(),
        _ => &[],
    })
}

/// What each unit becomes.
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

/// Buffers of one size are floats where every one of them is; what stands beside integers is compared bit for bit.
fn floats(group: &GroupJob) -> BTreeMap<usize, ElementType> {
    let buffers = || group.cases.iter().flat_map(|case| &case.buffers);
    let size = |buffer: &BufferPlan| buffer.bytes().0 as usize;
    let mixed = |one: &BufferPlan| buffers().any(|b| size(b) == size(one) && b.element != one.element);
    buffers().filter(|b| b.element.is_float() && !mixed(b)).map(|b| (size(b), b.element)).collect()
}

/// Two devices, and what their code is made with.
struct Pair {
    twin: Twin,
    toolkit: Toolkit,
    /// The code of the first device.
    target: Target,
    /// Cases that ran.
    ran: usize,
}

impl Pair {
    /// Runs an experiment on both; gives what differed and what did not run.
    fn differences(&mut self, path: &Path) -> Vec<String> {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let mut groups = groups(path, self.twin.info());
        let units: BTreeSet<CompileUnit> = launches(&groups).map(|launch| launch.unit.clone()).collect();
        let units: Vec<CompileUnit> = units.into_iter().collect();
        let ours = code(&units, self.target, &self.toolkit);
        let theirs = code(&units, Target::Ptx((9, 0)), &self.toolkit);
        self.twin.code = units.iter().map(|unit| (ours[unit].key.clone(), theirs[unit].clone())).collect();
        for case in groups.iter_mut().flat_map(|group| &mut group.cases) {
            let BodyPlan::Launches(launches) = &mut case.body else { continue };
            for launch in launches {
                launch.compiled = Some(ours[&launch.unit].clone());
            }
        }
        let before = (self.ran, self.twin.batches);
        let mut wrong: Vec<String> = groups.iter().flat_map(|group| self.group(&name, group)).collect();
        if (self.ran, self.twin.batches) == before {
            wrong.push(format!("{name}: nothing ran"));
        }
        wrong
    }

    fn group(&mut self, name: &str, group: &GroupJob) -> Vec<String> {
        let mut wrong = Vec::new();
        self.twin.floats = floats(group);
        let ran = &mut self.ran;
        let done = execute::run_group(&mut self.twin, group, &mut |event| match event {
            Event::CaseSettled { outcome: Outcome::Measured, .. } => *ran += 1,
            Event::CaseSettled { outcome: Outcome::Invalid { .. }, .. } => {}
            Event::CaseSettled { case, outcome, .. } => wrong.push(format!("{}: {outcome:?}", case.key)),
            _ => {}
        });
        wrong.extend(done.err().map(|lost| format!("{name}: {lost:?}")));
        wrong.extend(self.twin.differences.drain(..).map(|text| format!("{name}, {}: {text}", group.key)));
        wrong
    }

    /// Runs every experiment; fails with all that differed.
    fn run(&mut self, experiments: &[PathBuf]) {
        let mut wrong = Vec::new();
        for path in experiments {
            wrong.extend(self.differences(path));
            let Twin { batches, compared, .. } = self.twin;
            println!("{}: {} cases, {batches} launches, {compared} buffers so far", path.display(), self.ran);
        }
        assert!(self.twin.compared >= self.twin.batches, "{} buffers were compared", self.twin.compared);
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
fn every_experiment_leaves_the_same_memory_on_the_gpu_and_on_the_simulator() {
    let first = match Cuda.devices() {
        Ok(devices) => devices.into_iter().next(),
        Err(DeviceError::Unavailable(_)) => None,
        Err(error) => panic!("{error}"),
    };
    let Some((id, info)) = first else {
        assert!(
            std::env::var_os("RUNNER_REQUIRE_GPU").is_none(),
            "RUNNER_REQUIRE_GPU is set and there is no CUDA device"
        );
        println!("skipped: no CUDA device");
        return;
    };
    let gpu = Cuda.open(&id).unwrap();
    let cuda = gpu.driver().unwrap().cuda;
    let want = Want::Gpu { driver: cuda, compute_capability: info.compute_capability };
    let toolkit = Toolkit::ensure(want, &Cache::locate().unwrap(), Network::Allowed, &mut |_| {}).unwrap();
    let twin = Twin::new(gpu, open_simulator(None));
    Pair { twin, toolkit, target: Target::Gpu(info.compute_capability), ran: 0 }.run(&experiments());
}

#[test]
fn two_simulators_leave_the_same_memory() {
    let toolkit = Toolkit::ensure(Want::Pinned, &Cache::locate().unwrap(), Network::Allowed, &mut |_| {}).unwrap();
    let twin = Twin::new(open_simulator(Some(1)), open_simulator(Some(4)));
    let mut pair = Pair { twin, toolkit, target: Target::Ptx((9, 0)), ran: 0 };
    let few =
        experiments().into_iter().filter(|p| p.ends_with("access_patterns.toml") || p.ends_with("occupancy.toml"));
    pair.run(&few.collect::<Vec<_>>());
    assert!(pair.ran >= 40 && pair.twin.batches == pair.ran, "{} cases, {} launches", pair.ran, pair.twin.batches);
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
    let mut twin = Twin::new(open_simulator(Some(1)), open_simulator(Some(1)));
    assert_eq!(twin.apart_in(&[1, 0, 0, 0], &[1, 0, 1, 0]), Some("byte 2 differs".to_owned()));
    assert_eq!(twin.apart_in(&[1, 0, 0, 0], &[1, 0, 0, 0]), None);
    twin.floats = BTreeMap::from([(8, ElementType::F32)]);
    let pair = |a: f32, b: f32| [a.to_le_bytes(), b.to_le_bytes()].concat();
    // A part in 2^20 of the largest element is within another order of rounding, a thousandth of it is not.
    assert_eq!(twin.apart_in(&pair(1.0, 4.0), &pair(1.0, 4.000_004)), None);
    assert_eq!(
        twin.apart_in(&pair(1.0, 4.0), &pair(1.0, 4.004)),
        Some("element 1 is 4 and 4.004000186920166".to_owned())
    );
    let nan = pair(1.0, f32::NAN);
    assert_eq!(twin.apart_in(&nan, &nan), None);
    assert_eq!(twin.apart_in(&nan, &pair(1.0, 2.0)), Some("element 1 is NaN and 2".to_owned()));
}
