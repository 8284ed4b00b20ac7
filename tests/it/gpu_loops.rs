//! Loops with a condition: driven by the host, and as graphs, where the device decides when they end.
//!
//! The first test runs the same loops on the simulated device, which does not support graphs.

use std::sync::MutexGuard;

use simt::Options;

use crate::gpu::{first, launch, load, scalar};
use runner_backend::sim::SimBackend;
use runner_backend::{
    Backend, Batch, BufferId, Condition, Device, DeviceError, Iteration, KernelId, LaunchArg, Loop, Read, Series, Step,
    TimedBatch,
};
use runner_lang::{Program, Scope};
use runner_types::{DeviceId, ElementType, Regime, ScalarValue, Value};

const ONE: (u32, u32, u32) = (1, 1, 1);
/// Number of vertices in the path, and of elements in the vector.
const LENGTH: u32 = 40;

struct Bench {
    device: Box<dyn Device>,
    add_one: KernelId,
    level: KernelId,
    sweep: KernelId,
    _folder: tempfile::TempDir,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// Steps and their expected effect.
struct Work {
    name: &'static str,
    /// Each buffer's contents before and after a run.
    buffers: Vec<(BufferId, Vec<u8>, Vec<u8>)>,
    steps: Vec<Step>,
    /// Iterations of the loop that ends last.
    iterations: u32,
}

fn simulated() -> Bench {
    let backend = SimBackend::new(None, Options::default()).unwrap();
    Bench::new(backend.open(&DeviceId { ordinal: 0, uuid: None }).unwrap(), None)
}

fn gpu() -> Bench {
    let (device, turn) = first::device();
    Bench::new(device, Some(turn))
}

fn bytes(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A loop that cycles through `iterations`, each with its own condition.
fn repeated(iterations: Vec<(Vec<Step>, Condition)>, at_most: u32) -> Step {
    let iterations = iterations.into_iter().map(|(steps, until)| Iteration { steps, until }).collect();
    Step::Loop(Box::new(Loop { iterations, at_most }))
}

fn until(text: &str, reads: &[(&str, BufferId, ElementType)]) -> Condition {
    let read =
        |&(name, buffer, element): &(&str, BufferId, ElementType)| Read { name: name.to_owned(), buffer, element };
    let scope: Scope = [("digits", Value::Int(3))].into_iter().collect();
    Condition { program: Program::parse(text).unwrap(), scope, reads: reads.iter().map(read).collect() }
}

impl Bench {
    fn new(mut device: Box<dyn Device>, turn: Option<MutexGuard<'static, ()>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = ["add_one", "level", "sweep"];
        let module = load(device.as_mut(), &folder, include_str!("gpu/loops.ptx"), &names).unwrap();
        let [add_one, level, sweep] = names.map(|name| device.kernel(module, name).unwrap());
        Self { device, add_one, level, sweep, _folder: folder, _turn: turn }
    }

    fn buffer(&mut self, bytes: &[u8]) -> BufferId {
        let buffer = self.device.alloc(bytes.len(), 0).unwrap();
        self.device.upload(buffer, 0, bytes).unwrap();
        buffer
    }

    fn counter(&mut self) -> BufferId {
        self.buffer(&bytes(&[0]))
    }

    fn add_one(&self, to: BufferId) -> Step {
        launch(self.add_one, ONE, ONE, vec![LaunchArg::Buffer(to)])
    }

    /// Computes the distance of every vertex of a path from the first one.
    fn search(&mut self) -> Work {
        let mut before = vec![u32::MAX; LENGTH as usize];
        before[0] = 0;
        let after: Vec<u32> = (0..LENGTH).collect();
        let distance = self.buffer(&bytes(&before));
        let (level, changed) = (self.counter(), self.counter());
        let n = scalar(ElementType::U32, u64::from(LENGTH));
        let args = vec![LaunchArg::Buffer(distance), LaunchArg::Buffer(level), LaunchArg::Buffer(changed), n];
        let zero = ScalarValue { element: ElementType::U32, bits: 0 };
        let steps = vec![
            Step::Memset { buffer: changed, value: zero },
            launch(self.level, ONE, (LENGTH, 1, 1), args),
            self.add_one(level),
        ];
        let condition = until("changed == 0", &[("changed", changed, ElementType::I32)]);
        Work {
            name: "search",
            buffers: vec![(distance, bytes(&before), bytes(&after)), (level, bytes(&[0]), bytes(&[LENGTH]))],
            steps: vec![repeated(vec![(steps, condition)], 100)],
            iterations: LENGTH,
        }
    }

    /// Each iteration halves the distance to 2, swapping two buffers, until the change is small. The first change is 1,
    /// so change k is 2^(1-k).
    fn relax(&mut self, text: &str, iterations: u32) -> Work {
        let (zeros, n) = (bytes(&[0; LENGTH as usize]), scalar(ElementType::U32, u64::from(LENGTH)));
        let left = |count: u32| bytes(&[(2.0 - 0.5_f32.powi(count as i32 - 1)).to_bits(); LENGTH as usize]);
        let (x, next, change) = (self.buffer(&zeros), self.buffer(&zeros), self.counter());
        let sweep = |to: BufferId, from: BufferId| {
            let args = vec![LaunchArg::Buffer(to), LaunchArg::Buffer(from), LaunchArg::Buffer(change), n.clone()];
            let zero = ScalarValue { element: ElementType::U32, bits: 0 };
            let steps =
                vec![Step::Memset { buffer: change, value: zero }, launch(self.sweep, ONE, (LENGTH, 1, 1), args)];
            (steps, until(text, &[("change", change, ElementType::F32)]))
        };
        let (last, other) = if iterations.is_multiple_of(2) { (x, next) } else { (next, x) };
        Work {
            name: "relax",
            steps: vec![repeated(vec![sweep(next, x), sweep(x, next)], 100)],
            buffers: vec![(last, zeros.clone(), left(iterations)), (other, zeros, left(iterations - 1))],
            iterations,
        }
    }

    /// A loop in a loop: five inner iterations in each of three outer ones.
    fn nested(&mut self) -> Work {
        let (inner, outer) = (self.counter(), self.counter());
        let names = [("inner", inner, ElementType::U32), ("outer", outer, ElementType::U32)];
        let five = repeated(vec![(vec![self.add_one(inner)], until("inner % 5 == 0", &names[..1]))], 10);
        let three = (vec![five, self.add_one(outer)], until("outer == 3 && inner == 15", &names));
        Work {
            name: "nested",
            buffers: vec![(inner, bytes(&[0]), bytes(&[15])), (outer, bytes(&[0]), bytes(&[3]))],
            steps: vec![repeated(vec![three], 10)],
            iterations: 3,
        }
    }

    /// Two loops in sequence, with steps before, between and after them.
    fn several(&mut self) -> Work {
        let (first, second) = (self.counter(), self.counter());
        let counting = |bench: &Self, of: BufferId, text: &str| {
            repeated(vec![(vec![bench.add_one(of)], until(text, &[("count", of, ElementType::U32)]))], 50)
        };
        Work {
            name: "several",
            buffers: vec![(first, bytes(&[0]), bytes(&[7])), (second, bytes(&[0]), bytes(&[13]))],
            steps: vec![
                self.add_one(first),
                counting(self, first, "count >= 6"),
                self.add_one(second),
                counting(self, second, "count * 2 == 24"),
                self.add_one(second),
                self.add_one(first),
            ],
            iterations: 11,
        }
    }

    fn all(&mut self) -> Vec<Work> {
        vec![
            self.search(),
            self.relax("change < 10.0 ** -digits", 11),
            self.relax("change < 1e-2", 8),
            self.relax("change < 2", 1),
            self.nested(),
            self.several(),
        ]
    }

    fn restore(&mut self, work: &Work) {
        for (buffer, before, _) in &work.buffers {
            self.device.upload(*buffer, 0, before).unwrap();
        }
    }

    fn check(&mut self, work: &Work, how: &str) {
        assert_eq!(self.device.iterations(), work.iterations, "{} {how}", work.name);
        for (place, (buffer, _, after)) in work.buffers.iter().enumerate() {
            let mut found = vec![0; after.len()];
            self.device.download(*buffer, 0, &mut found).unwrap();
            assert_eq!(&found, after, "buffer {place} of {} {how}", work.name);
        }
    }

    fn run(&mut self, steps: &[Step]) -> Result<(), DeviceError> {
        self.device.run(&Batch::once(Vec::new(), steps.to_vec())).map(drop)
    }

    /// Time of one run, in nanoseconds.
    fn time(&mut self, steps: &[Step], regime: Regime) -> Result<f64, DeviceError> {
        let (prepare, steps) = (Vec::new(), steps.to_vec());
        let batch = TimedBatch { prepare, steps, regime, series: Series::default(), samples: 1 };
        self.device.clock().unwrap().time(&batch).map(|samples| samples.times[0].whole)
    }
}

#[test]
fn the_loops_of_these_tests_leave_what_is_expected_on_the_simulator() {
    let mut bench = simulated();
    for work in bench.all() {
        bench.run(&work.steps).unwrap();
        bench.check(&work, "on the simulator");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_loop_in_a_graph_makes_the_iterations_of_one_that_the_host_drives() {
    let mut bench = gpu();
    for work in bench.all() {
        bench.run(&work.steps).unwrap();
        bench.check(&work, "driven by the host");
        bench.restore(&work);
        let warm = bench.time(&work.steps, Regime::Warm).unwrap();
        bench.check(&work, "in the regime `warm`");
        // The second launch reuses the graph.
        let mut graph = 0.0;
        for _ in 0..2 {
            bench.restore(&work);
            graph = bench.time(&work.steps, Regime::Graph).unwrap();
            bench.check(&work, "in a graph");
        }
        println!(
            "{}, {} iterations: {:.1} µs by the host, {:.1} in a graph",
            work.name,
            work.iterations,
            warm / 1e3,
            graph / 1e3
        );
    }
}

#[test]
#[ignore = "needs a GPU"]
fn a_graph_of_several_runs_loops_in_each_of_them() {
    let mut bench = gpu();
    let count = bench.counter();
    let condition = until("count % 4 == 0", &[("count", count, ElementType::U32)]);
    let steps = vec![repeated(vec![(vec![bench.add_one(count)], condition)], 10)];
    bench.run(&steps).unwrap();
    let series = Series { launches: 5, ..Series::default() };
    let batch = TimedBatch { prepare: Vec::new(), steps, regime: Regime::Graph, series, samples: 1 };
    bench.device.clock().unwrap().time(&batch).unwrap();
    let mut found = [0; 4];
    bench.device.download(count, 0, &mut found).unwrap();
    assert_eq!(u32::from_le_bytes(found), 4 * 6);
}

#[test]
#[ignore = "needs a GPU"]
fn a_loop_in_a_graph_that_reaches_its_bound_fails_as_one_that_the_host_drives() {
    let mut bench = gpu();
    let count = bench.counter();
    let reads = [("count", count, ElementType::U32)];
    let counting = |bench: &Bench, text: &str, at_most: u32| {
        vec![repeated(vec![(vec![bench.add_one(count)], until(text, &reads))], at_most)]
    };
    let never = counting(&bench, "count == 100", 7);
    let by_host = bench.run(&never).unwrap_err().to_string();
    assert_eq!(by_host, "loop: `count == 100` does not hold after 7 iterations (`at_most`): `count` is 7");
    for _ in 0..2 {
        bench.device.upload(count, 0, &bytes(&[0])).unwrap();
        assert_eq!(bench.time(&never, Regime::Graph).unwrap_err().to_string(), by_host);
    }
    // The condition may hold after the last allowed iteration.
    bench.device.upload(count, 0, &bytes(&[93])).unwrap();
    bench.time(&never, Regime::Graph).unwrap();
    assert_eq!(bench.device.iterations(), 7);
    // An inner loop that exceeds its limit ends the outer loop too.
    bench.device.upload(count, 0, &bytes(&[0])).unwrap();
    let nested = vec![repeated(vec![(never, until("count == 1000", &reads))], 50)];
    assert_eq!(bench.time(&nested, Regime::Graph).unwrap_err().to_string(), by_host);
    let no_value = counting(&bench, "10 / (count - count) == 1", 7);
    bench.device.upload(count, 0, &bytes(&[0])).unwrap();
    let by_host = bench.run(&no_value).unwrap_err().to_string();
    assert!(by_host.starts_with("loop: `until` cannot be evaluated: division by zero"), "{by_host}");
    bench.device.upload(count, 0, &bytes(&[0])).unwrap();
    assert_eq!(bench.time(&no_value, Regime::Graph).unwrap_err().to_string(), by_host);
}

#[test]
#[ignore = "needs a GPU"]
fn a_loop_that_no_graph_can_hold_says_why() {
    let mut bench = gpu();
    let count = bench.counter();
    let read = |element| [("count", count, element)];
    let different = (0..9)
        .map(|nth| (vec![bench.add_one(count)], until(&format!("count == {}", 100 + nth), &read(ElementType::U32))));
    let different = vec![repeated(different.collect(), 9)];
    let refusal = bench.time(&different, Regime::Graph).unwrap_err().to_string();
    assert!(refusal.starts_with("graph: more than 8 iterations of a loop with `until` differ"), "{refusal}");
    let power =
        vec![repeated(vec![(vec![bench.add_one(count)], until("count ** 2 > 1.0", &read(ElementType::F32)))], 9)];
    let refusal = bench.time(&power, Regime::Graph).unwrap_err().to_string();
    assert!(refusal.contains("`count ** 2 > 1.0` cannot be evaluated by a kernel: `**` of floats"), "{refusal}");
}
