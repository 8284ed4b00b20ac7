//! Warp instructions per second of the simulator: the thirteen kernels of the reduction ladder on 2^24 integers, on two
//! threads, in three modes: counters only, with the full sanitizer, and with counts per line. Eleven are from
//! `experiments/reduce.toml`, with blocks of 512. Two-pass trees, in shared memory and with shuffles, are from
//! `experiments/reduction_tree.toml`.
//!
//! Every sum is checked. Criterion's output, which covers all launches, is followed by a table of each kernel's fastest
//! launch, in millions of warp instructions per second per core: by wall clock, and by the CPU time of both threads,
//! which other programs on the machine affect less. For the table, every kernel is launched again in several rounds
//! that alternate between the modes, since the load of a shared machine varies from minute to minute. Excludes copying
//! the input to the device.

#![expect(clippy::unwrap_used, reason = "a benchmark panics to fail")]
#![expect(clippy::print_stdout, reason = "the table is what it is run for")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode};
use runner_backend::Backend as _;
use runner_backend::sim::SimBackend;
use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, compile_all};
use runner_plan::{self, PlanOptions};
use runner_types::{ArgPlan, BackendKind, BlockPlan, BodyPlan, CaseJob, GridPlan, LaunchPlan};
use simt::{LaunchSpec, Machine, ModuleId, Options, profiles};

const THREADS: usize = 2;
/// Rounds over all kernels for the table, and launches per kernel and round.
const ROUNDS: usize = 4;
const LAUNCHES: usize = 2;
/// Counters only, with the sanitizer, and with counts per PTX line.
const MODES: [&str; 3] = ["counters", "sanitizer", "lines"];

/// A kernel of the ladder, ready to load.
struct Rung {
    name: String,
    ptx: String,
    passes: Vec<Pass>,
    /// Name and size in bytes of each buffer.
    buffers: Vec<(String, u64)>,
    /// Buffer whose sum must equal the input's.
    result: &'static str,
}

struct Pass {
    kernel: String,
    grid: [u32; 3],
    block: [u32; 3],
    args: Vec<ArgPlan>,
}

/// The kernels of an experiment (all or the named variants), compiled as for a simulator run.
fn rungs(experiment: &str, set: &[&str], variants: &[&str], result: &'static str) -> Vec<Rung> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(experiment);
    let manifest = runner_manifest::load(&path).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let (_, device) = SimBackend::new(Some("h100"), Options::default()).unwrap().devices().unwrap().swap_remove(0);
    let target = Target::Ptx(device.compute_capability);
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let (set, variants, filter) = (owned(set), owned(variants), Some("n == 16777216".to_owned()));
    let options =
        PlanOptions { device: Some(device), set, filter, variants, ..PlanOptions::for_backend(BackendKind::Sim) };
    let plan = runner_plan::expand(&manifest, &options).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    assert_eq!(plan.group_count(), 1);
    let cases = runner_plan::resolve(&manifest, &plan, 0).job.cases;
    let launched: Vec<(&CaseJob, &[LaunchPlan])> = cases.iter().filter_map(|c| Some((c, launches(c)?))).collect();
    let units: Vec<_> = launched.iter().map(|(_, launches)| launches[0].unit.clone()).collect();
    let cache = Cache::locate().unwrap();
    let toolkit = Toolkit::ensure(Requirement::Pinned, &cache, Network::Allowed, &mut |_| {}).unwrap();
    let options =
        CompileOptions { compiler: env!("CARGO_BIN_EXE_runner").into(), ..CompileOptions::new(cache).unwrap() };
    let compiled = compile_all(&units, target, &toolkit, &options, &mut |_, _, _| {});
    let rung = |(case, launches): (&CaseJob, &[LaunchPlan])| {
        let unit = compiled[&launches[0].unit].as_ref().unwrap_or_else(|failure| panic!("{}", failure.log));
        let pass = |launch: &LaunchPlan| {
            let (GridPlan::Fixed(grid), BlockPlan::Fixed(block)) = (&launch.grid, &launch.block) else {
                panic!("the ladder's launches have fixed sizes");
            };
            assert_eq!(launch.unit, launches[0].unit);
            Pass {
                kernel: unit.kernels[&launch.kernel].clone(),
                grid: grid.map(|n| u32::try_from(n).unwrap()),
                block: block.map(|n| u32::try_from(n).unwrap()),
                args: launch.args.clone(),
            }
        };
        Rung {
            name: case.case.key.variant.clone(),
            ptx: std::fs::read_to_string(&unit.code).unwrap(),
            passes: launches.iter().map(pass).collect(),
            buffers: case.buffers.iter().map(|b| (b.name.clone(), b.bytes().0)).collect(),
            result,
        }
    };
    launched.into_iter().map(rung).collect()
}

fn launches(case: &CaseJob) -> Option<&[LaunchPlan]> {
    match &case.body {
        BodyPlan::Launches(launches) => Some(launches),
        _ => None,
    }
}

fn ladder() -> Vec<Rung> {
    let mut ladder = rungs("experiments/reduce.toml", &["n=16777216", "block=512", "type=i32"], &[], "partial");
    let set = ["n=16777216", "type=i32"];
    ladder.extend(rungs("experiments/reduction_tree.toml", &set, &["two_pass", "shuffle"], "result"));
    assert_eq!(ladder.len(), 13);
    ladder
}

/// A kernel on its own machine, with its buffers.
struct Bench<'r> {
    rung: &'r Rung,
    machine: Machine,
    module: ModuleId,
    buffers: BTreeMap<&'r str, (u64, u64)>,
    input: Vec<u8>,
    sum: i32,
}

/// Cost of a launch, or of one launch of every kernel.
#[derive(Clone, Copy, Default)]
struct Spent {
    instructions: u64,
    wall: Duration,
    processor: Duration,
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.wall += other.wall;
        self.processor += other.processor;
    }

    /// Minimum of each time.
    fn fastest(self, other: Self) -> Self {
        assert_eq!(self.instructions, other.instructions, "a launch counts the same every time");
        Self { wall: self.wall.min(other.wall), processor: self.processor.min(other.processor), ..self }
    }

    /// Millions of warp instructions per second per core, by wall clock and by CPU time.
    fn rates(self) -> (f64, f64) {
        let rate = |time: Duration| self.instructions as f64 / time.as_secs_f64() / 1e6;
        (rate(self.wall) / THREADS as f64, rate(self.processor))
    }
}

/// CPU time of all threads of this process.
fn processor_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer refers to a local variable that the call fills in.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    assert_eq!(failed, 0);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

impl<'r> Bench<'r> {
    fn new(rung: &'r Rung, mode: &str) -> Self {
        let profile = profiles().into_iter().find(|p| p.id == "h100").unwrap();
        let options = Options { sanitize: mode == "sanitizer", threads: Some(THREADS), ..Options::default() };
        let mut machine = Machine::new(profile, options).unwrap();
        machine.count_lines(mode == "lines");
        let module = machine.load(&rung.ptx).unwrap();
        let buffers: BTreeMap<_, _> = rung
            .buffers
            .iter()
            .map(|(name, bytes)| (name.as_str(), (machine.alloc(*bytes).unwrap(), *bytes)))
            .collect();
        let values = || (0..buffers["input"].1 as u32 / 4).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as i32);
        let input = values().flat_map(i32::to_le_bytes).collect();
        let sum = values().fold(0, i32::wrapping_add);
        Self { rung, machine, module, buffers, input, sum }
    }

    /// Runs one launch on fresh buffers and checks the sum of its result.
    fn run(&mut self) -> Spent {
        for (&name, &(address, bytes)) in &self.buffers {
            match name {
                "input" => self.machine.write(address, &self.input).unwrap(),
                "ticket" | "result" => self.machine.fill(address, bytes, 0).unwrap(),
                _ => {}
            }
        }
        let argument = |arg: &ArgPlan| match arg {
            ArgPlan::Buffer(name) => self.buffers[name.as_str()].0.to_le_bytes().to_vec(),
            ArgPlan::Offset { buffer, bytes } => (self.buffers[buffer.as_str()].0 + bytes).to_le_bytes().to_vec(),
            ArgPlan::Scalar(value) => value.bits.to_le_bytes()[..value.element.size()].to_vec(),
            ArgPlan::Struct(bytes) | ArgPlan::Addressed { bytes, .. } => bytes.clone(),
            ArgPlan::Texture(_) | ArgPlan::Named { .. } => {
                panic!("no kernel of the ladder gets such an argument: {arg:?}")
            }
        };
        let (start, before) = (Instant::now(), processor_time());
        let mut instructions = 0;
        for Pass { kernel, grid, block, args } in &self.rung.passes {
            let args: Vec<Vec<u8>> = args.iter().map(argument).collect();
            let spec = LaunchSpec {
                kernel,
                grid: *grid,
                block: *block,
                shared: 0,
                cooperative: false,
                cluster: None,
                args: &args,
            };
            instructions += self.machine.launch(self.module, &spec).unwrap().counters.warp_instructions;
        }
        let processor = processor_time().saturating_sub(before);
        let spent = Spent { instructions, wall: start.elapsed(), processor };
        let (address, bytes) = self.buffers[self.rung.result];
        let mut partial = vec![0; bytes as usize];
        self.machine.read(address, &mut partial).unwrap();
        let values = partial.chunks_exact(4).map(|c| i32::from_le_bytes(c.try_into().unwrap()));
        assert_eq!(values.fold(0, i32::wrapping_add), self.sum, "{}", self.rung.name);
        spent
    }
}

fn main() {
    let rungs = ladder();
    let mut criterion = Criterion::default().configure_from_args();
    // Fastest launch by kernel and mode, if launched.
    let mut table: Vec<(&Rung, [Option<Spent>; MODES.len()])> = Vec::new();
    let mut group = criterion.benchmark_group("ladder");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(1));
    for rung in &rungs {
        let mut row = [None; MODES.len()];
        for (what, fastest) in MODES.into_iter().zip(&mut row) {
            let mut bench = None;
            let id = BenchmarkId::new(&rung.name, what);
            group.bench_function(id, |b| {
                let bench = bench.get_or_insert_with(|| Bench::new(rung, what));
                b.iter_custom(|launches| (0..launches).map(|_| keep(fastest, bench.run()).wall).sum());
            });
        }
        table.push((rung, row));
    }
    group.finish();
    criterion.final_summary();
    // Kernels that the command line filtered out have not been launched.
    table.retain(|(_, row)| row.iter().all(Option::is_some));
    for _ in 0..ROUNDS {
        for (rung, row) in &mut table {
            let mut benches = MODES.map(|mode| Bench::new(rung, mode));
            for _ in 0..LAUNCHES {
                for (bench, fastest) in benches.iter_mut().zip(row.iter_mut()) {
                    keep(fastest, bench.run());
                }
            }
        }
    }
    print(&table);
}

/// Updates the fastest launch and returns this one's cost.
fn keep(fastest: &mut Option<Spent>, spent: Spent) -> Spent {
    *fastest = Some(fastest.map_or(spent, |least| least.fastest(spent)));
    spent
}

fn print(table: &[(&Rung, [Option<Spent>; MODES.len()])]) {
    println!("\nmillion warp instructions a second a core, fastest launch: wall clock (processor time)");
    let mut total = [Spent::default(); MODES.len()];
    for (rung, spent) in table {
        let spent = spent.map(Option::unwrap_or_default);
        line(&rung.name, spent);
        total.iter_mut().zip(spent).for_each(|(total, spent)| total.add(spent));
    }
    if total[0].instructions > 0 {
        line("all", total);
    }
}

fn line(name: &str, spent: [Spent; MODES.len()]) {
    let [(wall, processor), (wall_checked, processor_checked), (wall_lines, processor_lines)] = spent.map(Spent::rates);
    println!(
        "{name:24} {wall:6.1} ({processor:6.1})   with the sanitizer {wall_checked:6.1} ({processor_checked:6.1}), \
         {:4.2} times slower   per line {wall_lines:6.1} ({processor_lines:6.1}), {:4.2} times slower",
        processor / processor_checked,
        processor / processor_lines
    );
}
