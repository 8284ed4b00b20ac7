//! Worker processes: how commands start them, and what `runner __worker` does.

use std::ffi::OsString;

use crate::cli::options::{RunOptions, Target};
use crate::cli::{BackendChoice, WorkerArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_backend::cuda::Cuda;
use runner_backend::{Backend, Device, DeviceError, sim::SimBackend};
use runner_profile::memcheck::Memcheck;
use runner_profile::{ProfilerError, ProfilerSession};
use runner_types::BackendKind;
use runner_workers::cores::Cores;
use runner_workers::{Interrupt, Pool, Ready, StartError, WorkerSpec};

/// A running worker with its open device.
#[derive(Debug)]
pub struct Worker {
    pub pool: Pool,
    pub ready: Ready,
}

impl Worker {
    pub const fn backend(&self) -> BackendKind {
        self.ready.device.backend
    }
}

/// Starts a worker for the target. Without a GPU, `Target::Auto` falls back to the simulator and says so.
pub fn start(options: &RunOptions, interrupt: &Interrupt, console: &mut Console) -> Result<Worker, Failure> {
    let open = |words: Vec<OsString>| {
        let (pool, ready) = Pool::start(WorkerSpec::of_this_program(words), interrupt)?;
        Ok(Worker { pool, ready })
    };
    match &options.target {
        Target::Gpu(ordinal) => open(selected_gpu_args(*ordinal)).map_err(|error| failure(&error)),
        Target::Simulator(name) => {
            open(simulator_words(name.as_deref(), options.sanitize)).map_err(|error| failure(&error))
        }
        Target::Auto => match open(selected_gpu_args(0)) {
            Err(StartError::Refused(why)) => {
                let worker = open(simulator_words(None, options.sanitize)).map_err(|error| failure(&error))?;
                let name = &worker.ready.device.name;
                console.say(&format!("no GPU: {why}\nrunning on the simulator ({name}): counters, no times"));
                Ok(worker)
            }
            other => other.map_err(|error| failure(&error)),
        },
    }
}

/// Starts a worker on its own cores, next to workers of other devices. Uses all cores if `cores` is empty.
pub fn start_on(target: &Target, sanitize: bool, cores: &Cores, interrupt: &Interrupt) -> Result<Worker, Failure> {
    let mut words = match target {
        Target::Simulator(name) => simulator_words(name.as_deref(), sanitize),
        Target::Auto | Target::Gpu(_) => selected_gpu_args(target.ordinal()),
    };
    if !cores.is_empty() {
        words.extend(["--cores".into(), cores.to_string().into()]);
    }
    let (pool, ready) = Pool::start(WorkerSpec::of_this_program(words), interrupt).map_err(|error| failure(&error))?;
    Ok(Worker { pool, ready })
}

fn failure(error: &StartError) -> Failure {
    match error {
        // Stopped by the user, not a machine failure.
        StartError::Interrupted => {
            Failure { exit: Exit::Interrupted, message: error.to_string(), is_rendered: false, is_held: false }
        }
        _ => Failure::environment(error),
    }
}

/// Starts a worker for the GPU inside the profiler and waits until its device is open.
pub fn start_profiled(
    ordinal: u32,
    session: &mut ProfilerSession,
    interrupt: &Interrupt,
) -> Result<Worker, ProfilerError> {
    // In the profiler, `/proc/self/exe` is the profiler.
    let this = std::env::current_exe()
        .map_err(|e| ProfilerError::Start(format!("cannot find the path of this program: {e}")))?;
    let mut words = selected_gpu_args(ordinal);
    words.push("--profiled".into());
    let (pool, ready) = session.open(|session| session.worker(&this, words.clone()), interrupt)?;
    Ok(Worker { pool, ready })
}

/// Starts a worker for the GPU inside compute-sanitizer and waits until its device is open.
pub fn start_memchecked(ordinal: u32, memcheck: &Memcheck, interrupt: &Interrupt) -> Result<Pool, StartError> {
    // In compute-sanitizer, `/proc/self/exe` is compute-sanitizer.
    let this =
        std::env::current_exe().map_err(|source| StartError::Spawn { program: "/proc/self/exe".into(), source })?;
    let words = selected_gpu_args(ordinal).into_iter().chain(["--memchecked".into()]);
    Pool::start(memcheck.worker(&this, words), interrupt).map(|(pool, _)| pool)
}

/// Command line of a worker for this GPU.
pub fn selected_gpu_args(ordinal: u32) -> Vec<OsString> {
    vec!["__worker".into(), "--backend".into(), "cuda".into(), "--device".into(), ordinal.to_string().into()]
}

fn simulator_words(name: Option<&str>, sanitize: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["__worker".into(), "--backend".into(), "sim".into()];
    words.extend(name.into_iter().flat_map(|name| ["--sim-device".into(), name.into()]));
    words.extend((!sanitize).then(|| "--no-sanitize".into()));
    words
}

/// `runner __worker`: opens the device and runs groups until told to quit.
pub fn serve(args: &WorkerArgs) -> Result<Exit, Failure> {
    runner_workers::leave_end_to_dispatcher();
    // If memory runs out, the worker should be killed first: only one case is lost then, not the run.
    runner_compile::end_first();
    if let Some(cores) = &args.cores {
        // Must happen before any other thread starts.
        cores.pin().map_err(|e| Failure::environment(format!("cannot run only on the cores {cores}: {e}")))?;
    }
    let open = || match args.target.backend {
        BackendChoice::Sim => simulator(args),
        BackendChoice::Auto | BackendChoice::Cuda => {
            let backend: &dyn Backend = match () {
                () if args.profiled => &Cuda::Profiled,
                () if args.memchecked => &Cuda::Memchecked,
                () if args.traced => &Cuda::Traced,
                () => &Cuda::Timed,
            };
            gpu(backend, args.target.device)
        }
    };
    if !matches!(args.target.backend, BackendChoice::Sim) {
        runner_execute::leave_a_core();
    }
    let mut cache = runner_execute::GroupCache::default();
    runner_workers::worker::serve(
        open,
        |device, job, emit| runner_execute::run_group(device, job, &mut cache, emit),
        runner_calibrate::survey,
    )
    .map_err(Failure::environment)?;
    Ok(Exit::Success)
}

fn gpu(backend: &dyn Backend, ordinal: u32) -> Result<Box<dyn Device>, DeviceError> {
    let devices = backend.devices()?;
    let count = devices.len();
    let id = devices.into_iter().map(|(id, _)| id).find(|id| id.ordinal == ordinal).ok_or_else(|| {
        DeviceError::Unavailable(format!(
            "there is no device {ordinal}: this machine has {count}; `runner devices` lists them"
        ))
    })?;
    backend.open(&id)
}

fn simulator(args: &WorkerArgs) -> Result<Box<dyn Device>, DeviceError> {
    let options = simt::Options { sanitize: !args.no_sanitize, ..simt::Options::default() };
    let backend = SimBackend::new(args.target.sim_device.as_deref(), options)?;
    let (id, _) = backend.devices()?.swap_remove(0);
    backend.open(&id)
}
