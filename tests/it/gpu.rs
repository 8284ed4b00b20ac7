//! Shared code of the GPU tests: a device for one test at a time, the kernels, and a child process for tests that make
//! their context unusable.

pub mod first;
mod occupancy;

use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use fake_backend::compiled;
use runner_backend::{
    Batch, BufferId, Clock, Device, DeviceError, KernelId, Launch, LaunchArg, ModuleId, Prepare, Samples, Series, Step,
    TimedBatch,
};
use runner_types::{CodeKind, Compiled, Dim3, ElementType, LaunchSettings, Regime, ScalarValue};

/// Environment variable that names the test that a child process runs.
const CHILD: &str = "RUNNER_GPU_TEST_CHILD";
/// A child that takes longer counts as hung.
const CHILD_LIMIT: Duration = Duration::from_mins(2);

/// A device with the test kernels loaded. Only one test at a time has it.
pub struct Gpu {
    pub device: Box<dyn Device>,
    pub module: ModuleId,
    folder: tempfile::TempDir,
    alone: MutexGuard<'static, ()>,
}

pub fn gpu() -> Gpu {
    let (mut device, alone) = first::device();
    let folder = tempfile::tempdir().unwrap();
    let module = load(device.as_mut(), &folder, include_str!("gpu/kernels.ptx"), &["add", "copy"]).unwrap();
    Gpu { device, module, folder, alone }
}

/// Loads PTX from a file, as the compiler wrote it.
pub fn load(
    device: &mut dyn Device,
    folder: &tempfile::TempDir,
    ptx: &str,
    kernels: &[&str],
) -> Result<ModuleId, DeviceError> {
    let code = folder.path().join("kernels.ptx");
    std::fs::write(&code, ptx).unwrap();
    device.load(&Compiled {
        kind: CodeKind::Ptx,
        code,
        kernels: kernels.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect(),
        ..compiled(&"0".repeat(64))
    })
}

impl Gpu {
    /// Closes the device. While the returned guard lives, no other test of this process can open it.
    pub fn close(self) -> MutexGuard<'static, ()> {
        self.alone
    }

    pub fn kernel(&mut self, name: &str) -> KernelId {
        self.device.kernel(self.module, name).unwrap()
    }

    pub fn load(&mut self, ptx: &str, kernels: &[&str]) -> Result<ModuleId, DeviceError> {
        load(self.device.as_mut(), &self.folder, ptx, kernels)
    }

    /// A buffer with this content, without guards.
    pub fn buffer(&mut self, data: &[u8]) -> BufferId {
        let buffer = self.device.alloc(data.len(), 0).unwrap();
        self.device.upload(buffer, 0, data).unwrap();
        buffer
    }

    pub fn read(&mut self, buffer: BufferId) -> Vec<u8> {
        let mut data = vec![0; self.device.size(buffer)];
        self.device.download(buffer, 0, &mut data).unwrap();
        data
    }

    /// Runs steps once, untimed.
    pub fn run(&mut self, steps: Vec<Step>) -> Result<(), DeviceError> {
        self.device.run(&untimed(Vec::new(), steps, 1)).map(drop)
    }

    pub fn clock(&mut self) -> &mut dyn Clock {
        self.device.clock().unwrap()
    }

    pub fn time(&mut self, batch: &TimedBatch) -> Result<Samples, DeviceError> {
        self.clock().time(batch)
    }

    /// Device address of a buffer, as a kernel receives it.
    pub fn address(&mut self, buffer: BufferId) -> u64 {
        let kernel = self.kernel("echo");
        let to = self.device.alloc(40, 0).unwrap();
        let zero = |element| scalar(element, 0);
        let args = vec![
            LaunchArg::Buffer(to),
            zero(ElementType::U8),
            zero(ElementType::U16),
            zero(ElementType::U32),
            LaunchArg::Buffer(buffer),
            zero(ElementType::F64),
        ];
        self.run(vec![launch(kernel, (1, 1, 1), (1, 1, 1), args)]).unwrap();
        let words = words(&self.read(to));
        self.device.free(to).unwrap();
        words[3]
    }
}

pub fn untimed(prepare: Vec<Prepare>, steps: Vec<Step>, repeat: u32) -> Batch {
    Batch { repeat, ..Batch::once(prepare, steps) }
}

pub fn timed(steps: Vec<Step>, samples: u32) -> TimedBatch {
    let series = Series::default();
    TimedBatch { prepare: Vec::new(), steps, regime: Regime::Cold, series, samples }
}

pub fn launch(kernel: KernelId, grid: (u32, u32, u32), block: (u32, u32, u32), args: Vec<LaunchArg>) -> Step {
    Step::Launch(shaped(kernel, grid, block, 0, args))
}

pub fn shaped(
    kernel: KernelId,
    grid: (u32, u32, u32),
    block: (u32, u32, u32),
    shared: u32,
    args: Vec<LaunchArg>,
) -> Launch {
    let dim = |(x, y, z)| Dim3::new(x, y, z);
    let settings = LaunchSettings { shared: Some(shared.into()), ..LaunchSettings::default() };
    Launch { settings, ..Launch::new(kernel, dim(grid), dim(block), args) }
}

pub fn scalar(element: ElementType, bits: u64) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element, bits })
}

/// Little-endian 64-bit words.
pub fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Runs `body` in a child process and returns the child's output; returns `None` in the child.
///
/// `test` is the full name of the calling test.
pub fn in_child(test: &str, environment: &[(&str, &str)], body: impl FnOnce(&mut Gpu)) -> Option<String> {
    if std::env::var_os(CHILD).is_some_and(|name| name == test) {
        let mut gpu = gpu();
        body(&mut gpu);
        return None;
    }
    drop(gpu());
    let _turn = first::turn();
    let output = run_child(test, environment);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} failed in its own process:\n{text}");
    assert!(text.contains("1 passed"), "{test} did not run in its own process:\n{text}");
    Some(text)
}

fn run_child(test: &str, environment: &[(&str, &str)]) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > CHILD_LIMIT {
            child.kill().unwrap();
            panic!("{test} hung in its own process");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}
