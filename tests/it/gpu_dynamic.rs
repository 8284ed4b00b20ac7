//! Device-side launches on a real GPU: linked by the driver, cached, and with the same semantics as on the simulator,
//! whose tests use the same kernels.

use std::path::{Path, PathBuf};

use crate::gpu::{Gpu, gpu, in_child, launch, scalar, untimed};
use fake_backend::compiled;
use runner_backend::{Batch, BufferId, Device, DeviceError, LaunchArg, ModuleId};
use runner_compile::{Cache, Requirement, Toolkit};
use runner_types::{CodeKind, Compiled, ElementType};

const KERNELS: &str = include_str!("../../crates/simt/tests/ptx/kernels/device_launch.ptx");
const ONE: (u32, u32, u32) = (1, 1, 1);

/// `libcudadevrt.a` of the toolkit that a run would use.
fn device_runtime(gpu: &Gpu) -> PathBuf {
    let driver = gpu.device.driver().unwrap().cuda;
    let want = Requirement::Gpu { driver, compute_capability: gpu.device.info().compute_capability };
    let toolkit = Toolkit::locate(want, &Cache::locate().unwrap()).unwrap();
    toolkit.device_runtime.expect("a toolkit with libcudadevrt.a")
}

fn load(device: &mut dyn Device, code: &Path, text: &str, runtime: &Path) -> Result<ModuleId, DeviceError> {
    std::fs::write(code, text).unwrap();
    device.load(&Compiled {
        kind: CodeKind::Ptx,
        code: code.to_owned(),
        device_runtime: Some(runtime.to_owned()),
        ..compiled(&"1".repeat(64))
    })
}

/// A GPU with the linked kernels of `device_launch.cu`.
struct Bench {
    gpu: Gpu,
    module: ModuleId,
    folder: tempfile::TempDir,
    runtime: PathBuf,
}

fn bench() -> Bench {
    let mut gpu = gpu();
    let runtime = device_runtime(&gpu);
    let folder = tempfile::tempdir().unwrap();
    let module = load(gpu.device.as_mut(), &folder.path().join("k.ptx"), KERNELS, &runtime).unwrap();
    Bench { gpu, module, folder, runtime }
}

impl Bench {
    fn ints(&mut self, values: &[i32]) -> BufferId {
        self.gpu.buffer(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    }

    fn read(&mut self, buffer: BufferId) -> Vec<i32> {
        let bytes = self.gpu.read(buffer);
        bytes.chunks_exact(4).map(|four| i32::from_le_bytes(four.try_into().unwrap())).collect()
    }

    fn run(&mut self, kernel: &str, threads: u32, args: Vec<LaunchArg>) {
        let kernel = self.gpu.device.kernel(self.module, kernel).unwrap();
        self.gpu.run(vec![launch(kernel, ONE, (threads, 1, 1), args)]).unwrap();
    }
}

fn int(value: u32) -> LaunchArg {
    scalar(ElementType::I32, u64::from(value))
}

#[test]
#[ignore = "needs a GPU"]
fn a_child_sees_what_its_parent_wrote_and_the_next_one_what_it_wrote() {
    let mut bench = bench();
    let data = bench.ints(&[0; 64]);
    bench.run("relay", 64, vec![LaunchArg::Buffer(data)]);
    assert_eq!(bench.read(data), (0..64).map(|t| ((t + 1) * 10 + 1) * 2 + 5).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs a GPU"]
fn what_the_tail_stream_holds_comes_after_all_that_children_launch() {
    let mut bench = bench();
    let log = bench.ints(&[0; 64]);
    bench.run("order", 1, vec![LaunchArg::Buffer(log)]);
    let log = bench.read(log);
    let said = &log[1..=log[0] as usize];
    println!("order on the GPU: {said:?}");
    let position = |what: i32| said.iter().position(|said| *said == what).unwrap();
    let mut all = said.to_vec();
    all.sort_unstable();
    assert_eq!(all, [1, 10, 11, 12, 13, 20, 21, 22, 30, 31, 32, 40, 41, 42]);
    // The default stream runs in order, each grid with its children; an event holds back the second named stream.
    assert!(position(10) < position(11) && position(11) < position(12) && position(12) < position(13));
    assert!(position(20) < position(21));
    // The tail stream starts after all of those, and a grid's own tail ends before the next grid starts.
    assert_eq!(said[said.len() - 6..], [30, 31, 32, 40, 41, 42]);
}

#[test]
#[ignore = "needs a GPU"]
fn launches_nest_as_deep_as_there_are_slots() {
    let mut bench = bench();
    for (kernel, deepest, refusal) in [("descend", 2048, 69), ("descend_by_tail", 40, 0)] {
        let (reached, code) = (bench.ints(&[-1]), bench.ints(&[0]));
        bench.run(kernel, 1, vec![LaunchArg::Buffer(reached), LaunchArg::Buffer(code), int(0)]);
        let (reached, code) = (bench.read(reached), bench.read(code));
        println!("{kernel} on the GPU: depth {reached:?}, code {code:?}");
        assert_eq!((reached, code), (vec![deepest], vec![refusal]), "{kernel}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn launches_that_have_not_ended_are_limited() {
    let mut bench = bench();
    let out = bench.ints(&[-1, -1]);
    bench.run("flood", 1, vec![LaunchArg::Buffer(out), int(5000)]);
    let out = bench.read(out);
    println!("flood on the GPU: launched {}, code {}", out[0], out[1]);
    assert_eq!(out, [2048, 69]);
}

#[test]
#[ignore = "needs a GPU"]
fn what_is_refused_comes_back_as_a_code_which_is_also_the_threads_last_error() {
    let mut bench = bench();
    let codes = bench.ints(&[-1; 16]);
    bench.run("refused", 1, vec![LaunchArg::Buffer(codes)]);
    let codes = bench.read(codes);
    println!("codes on the GPU: {codes:?}");
    assert_eq!(codes[..15], [9, 9, 9, 9, 9, 9, 9, 0, 1, 21, 1, 0, 9, 9, 0]);
}

#[test]
#[ignore = "needs a GPU"]
fn what_was_linked_is_kept_and_taken_again_unless_it_was_damaged() {
    let mut bench = bench();
    let kept = |bench: &Bench| {
        let files = std::fs::read_dir(bench.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|end| end == "linked")).collect::<Vec<_>>()
    };
    let files = kept(&bench);
    assert_eq!(files.len(), 1, "{files:?}");
    let whole = std::fs::read(&files[0]).unwrap();
    // A seal precedes the code.
    assert!(whole[..256].windows(4).any(|bytes| bytes == b"\x7fELF"));
    let code = bench.folder.path().join("k.ptx");
    std::fs::write(&files[0], &whole[..1000]).unwrap();
    load(bench.gpu.device.as_mut(), &code, KERNELS, &bench.runtime).unwrap();
    assert_eq!((kept(&bench), std::fs::read(&files[0]).unwrap()), (files, whole));
}

#[test]
#[ignore = "needs a GPU"]
fn a_call_without_a_definition_is_refused_in_the_linkers_own_words() {
    let mut bench = bench();
    let text = KERNELS.replace("__cudaCDP2PeekAtLastError", "__defined_nowhere");
    assert_ne!(text, KERNELS);
    let code = bench.folder.path().join("undefined.ptx");
    let refusal = load(bench.gpu.device.as_mut(), &code, &text, &bench.runtime).unwrap_err();
    println!("{refusal:?}");
    let DeviceError::NotLinked { summary, log } = refusal else { panic!("{refusal:?}") };
    assert!(summary.starts_with("the device linker failed: "), "{summary}");
    assert!(log.contains("__defined_nowhere"), "{log}");
}

#[test]
#[ignore = "needs a GPU"]
fn what_a_launch_and_its_children_print_is_caught_where_it_is_asked_for() {
    let name = "gpu_dynamic::what_a_launch_and_its_children_print_is_caught_where_it_is_asked_for";
    // Runs in a separate process, because capturing affects everything that a process prints.
    in_child(name, &[], |gpu| {
        let runtime = device_runtime(gpu);
        let folder = tempfile::tempdir().unwrap();
        let module = load(gpu.device.as_mut(), &folder.path().join("k.ptx"), KERNELS, &runtime).unwrap();
        let kernel = gpu.device.kernel(module, "hello").unwrap();
        let step = || vec![launch(kernel, ONE, (8, 1, 1), vec![int(8), int(0)])];
        let mut expected = Vec::new();
        for (depth, threads) in [8, 4, 2, 1].into_iter().enumerate() {
            expected.extend((0..threads).map(|t| format!("Recursion={depth}: Hello World from thread {t} block 0")));
            if threads > 1 {
                expected.push(format!("-------> nested execution depth: {}", depth + 1));
            }
        }
        expected.sort();
        for _ in 0..2 {
            let report = gpu.device.run(&Batch { capture_printf: true, ..untimed(Vec::new(), step(), 1) }).unwrap();
            let mut lines: Vec<&str> = report.printed.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, expected);
        }
        assert_eq!(gpu.device.run(&untimed(Vec::new(), step(), 1)).unwrap().printed, "");
    });
}
