//! The worker process: how `run` starts it, and what it does.

use std::ffi::OsString;
use std::io::Write as _;

use crate::backend::cuda::{Cuda, TracedCuda, WatchedCuda};
use crate::backend::{Backend, Device, DeviceError, sim::SimBackend};
use crate::commands::cli::{BackendChoice, RunArgs, SimulatorArgs, WorkerArgs};
use crate::commands::{Console, Exit, Failure};
use crate::dispatch::{self, Interrupt, Pool, Ready, StartError, Urgency, WorkerSpec};
use crate::model::BackendKind;
use crate::profiler::{ProfilerError, Session};
use crate::{execute, machine};

/// A started worker and what it opened.
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

/// Starts the worker of the wanted backend. Where none is wanted in particular, a machine without a GPU simulates one,
/// and says so.
pub fn start(args: &RunArgs, interrupt: &Interrupt, console: &mut Console) -> Result<Worker, Failure> {
    if let Some(fault) = contradiction(args) {
        return Err(Failure::usage(fault));
    }
    match args.backend {
        BackendChoice::Cuda => open(args, "cuda", interrupt).map_err(failure),
        BackendChoice::Sim => open(args, "sim", interrupt).map_err(failure),
        BackendChoice::Auto if args.simulator.sim_device.is_some() => open(args, "sim", interrupt).map_err(failure),
        BackendChoice::Auto => match open(args, "cuda", interrupt) {
            // Whoever names a GPU wants that one.
            Err(StartError::Refused(why)) if args.device == 0 => {
                let worker = open(args, "sim", interrupt).map_err(failure)?;
                let name = &worker.ready.device.name;
                console.say(&format!("no GPU ({why})\nrunning on the simulator ({name}): counters in place of times"));
                Ok(worker)
            }
            other => other.map_err(failure),
        },
    }
}

/// What the options ask for that cannot be, whatever the machine has.
fn contradiction(args: &RunArgs) -> Option<String> {
    let simulator = &args.simulator;
    let simulates = args.backend == BackendChoice::Sim || simulator.sim_device.is_some();
    if let Some(name) = &simulator.sim_device
        && args.backend == BackendChoice::Cuda
    {
        return Some(format!(
            "--sim-device {name} is the simulator's and --backend cuda is a GPU: leave one of them out"
        ));
    }
    if simulates && args.device != 0 {
        return Some(format!("--device {} names a GPU, and the run is on the simulator", args.device));
    }
    let name = simulator.sim_device.as_deref()?;
    SimBackend::new(Some(name), simt::Options::default()).err().map(|e| format!("--sim-device: {e}"))
}

/// Starts a worker of the GPU inside the profiler and waits until its device is open.
pub fn start_watched(args: &RunArgs, session: &mut Session, interrupt: &Interrupt) -> Result<Worker, ProfilerError> {
    // The profiler starts it by its path: what `/proc/self/exe` is there is the profiler.
    let this = std::env::current_exe()
        .map_err(|e| ProfilerError::Start(format!("the place of this program is unknown: {e}")))?;
    let mut words = words(args, "cuda");
    words.push("--watched".into());
    let (pool, ready) = session.open(|session| session.worker(&this, words.clone()), interrupt)?;
    Ok(Worker { pool, ready })
}

fn open(args: &RunArgs, backend: &str, interrupt: &Interrupt) -> Result<Worker, StartError> {
    let (pool, ready) = Pool::start(WorkerSpec::of_this_program(words(args, backend)), interrupt)?;
    Ok(Worker { pool, ready })
}

/// The command line of a worker.
fn words(args: &RunArgs, backend: &str) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["__worker".into(), "--backend".into(), backend.into()];
    words.extend(["--device".into(), args.device.to_string().into()]);
    if let Some(name) = &args.simulator.sim_device {
        words.extend(["--sim-device".into(), name.into()]);
    }
    if args.simulator.no_sanitize {
        words.push("--no-sanitize".into());
    }
    words
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
fn failure(error: StartError) -> Failure {
    Failure::environment(error.to_string())
}

/// Says on standard error what the user's Ctrl-C will do.
pub fn tell_interrupt(urgency: Urgency) {
    let line = match urgency {
        Urgency::None => return,
        Urgency::Soon => "stopping after the current step; once more stops at once",
        Urgency::Now => "stopping at once",
    };
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// `runner __worker`: opens the device and serves groups until told to quit.
pub fn worker(args: &WorkerArgs) -> Result<Exit, Failure> {
    let open = || match args.backend {
        BackendChoice::Sim => simulated(&args.simulator),
        BackendChoice::Auto | BackendChoice::Cuda if args.watched => gpu(&WatchedCuda, args.device),
        BackendChoice::Auto | BackendChoice::Cuda if args.traced => gpu(&TracedCuda, args.device),
        BackendChoice::Auto | BackendChoice::Cuda => gpu(&Cuda, args.device),
    };
    dispatch::worker::serve(open, execute::run_group, machine::survey)
        .map_err(|e| Failure::environment(e.to_string()))?;
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

fn simulated(args: &SimulatorArgs) -> Result<Box<dyn Device>, DeviceError> {
    let options = simt::Options { sanitize: !args.no_sanitize, ..simt::Options::default() };
    let backend = SimBackend::new(args.sim_device.as_deref(), options)?;
    let (id, _) = backend.devices()?.swap_remove(0);
    backend.open(&id)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::commands::cli::{Cli, Command};

    fn refused(options: &[&str]) -> Option<String> {
        let words = ["runner", "run", "m.toml"].iter().chain(options);
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Command::Run(args)) => contradiction(&args),
            other => Some(format!("{other:?}")),
        }
    }

    #[test]
    fn what_can_be_is_let_pass() {
        assert_eq!(refused(&[]), None);
        assert_eq!(refused(&["--device", "3"]), None);
        assert_eq!(refused(&["--sim-device", "k80"]), None);
        assert_eq!(refused(&["--backend", "sim", "--device", "0"]), None);
    }

    #[test]
    fn the_help_names_every_device_that_the_simulator_stands_for() {
        let unknown = refused(&["--sim-device", "none"]).unwrap_or_default();
        let (_, names) = unknown.split_once("use one of ").unwrap_or_default();
        let help =
            Cli::try_parse_from(["runner", "run", "--help"]).map_or_else(|help| help.to_string(), |_| String::new());
        assert!(names.split(", ").count() >= 6, "{unknown}");
        for name in names.split(", ") {
            assert!(help.contains(&format!(" {name}")), "{name} is not in:\n{help}");
        }
    }

    #[test]
    fn what_no_machine_can_do_is_told_by_its_option() {
        let unknown = refused(&["--sim-device", "h1000"]).unwrap_or_default();
        assert!(unknown.starts_with("--sim-device: ") && unknown.contains("h100, a100"), "{unknown}");
        let two = refused(&["--sim-device", "k80", "--backend", "cuda"]).unwrap_or_default();
        assert!(two.contains("leave one of them out"), "{two}");
        for options in [&["--backend", "sim", "--device", "7"], &["--sim-device", "k80", "--device", "7"]] {
            let text = refused(options).unwrap_or_default();
            assert!(text.starts_with("--device 7 names a GPU"), "{text}");
        }
    }
}
