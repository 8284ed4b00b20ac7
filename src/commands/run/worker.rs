//! The worker process: how `run` starts it, and what it does.

use crate::backend::{Backend, DeviceError, cuda::Cuda};
use crate::commands::cli::{BackendChoice, RunArgs, WorkerArgs};
use crate::commands::{Exit, Failure};
use crate::dispatch::{self, Interrupt, Pool, Ready, StartError, Urgency, WorkerSpec};
use crate::execute;
use crate::model::BackendKind;

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

/// Starts the worker of the wanted backend.
pub fn start(args: &RunArgs, interrupt: &Interrupt) -> Result<Worker, Failure> {
    let backend = match args.backend {
        BackendChoice::Auto | BackendChoice::Cuda => "cuda",
        BackendChoice::Sim => return Err(Failure::environment(NO_SIMULATOR)),
    };
    let program = std::env::current_exe()
        .map_err(|e| Failure::environment(format!("cannot find this program's own file to start a worker: {e}")))?;
    let device = args.device.to_string();
    let spec = WorkerSpec::new(program, ["__worker", "--backend", backend, "--device", &device]);
    let (pool, ready) = Pool::start(spec, interrupt).map_err(|e| refuse(args, &e))?;
    Ok(Worker { pool, ready })
}

const NO_SIMULATOR: &str = "the simulator is not part of this version: run on a machine with an NVIDIA GPU; \
    `runner plan` and `runner check` work anywhere";

fn refuse(args: &RunArgs, error: &StartError) -> Failure {
    let next = match args.backend {
        BackendChoice::Auto => format!("\n{NO_SIMULATOR}"),
        BackendChoice::Cuda | BackendChoice::Sim => String::new(),
    };
    Failure::environment(format!("{error}{next}"))
}

/// Says on standard error what the user's Ctrl-C will do.
pub fn tell_interrupt(urgency: Urgency) {
    use std::io::Write as _;
    let line = match urgency {
        Urgency::None => return,
        Urgency::Soon => "stopping after the current step; once more stops at once",
        Urgency::Now => "stopping at once",
    };
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// `runner __worker`: opens the device and serves groups until told to quit.
pub fn worker(args: &WorkerArgs) -> Result<Exit, Failure> {
    let ordinal = args.device;
    let open = move || {
        let devices = Cuda.devices()?;
        let count = devices.len();
        let id = devices.into_iter().map(|(id, _)| id).find(|id| id.ordinal == ordinal).ok_or_else(|| {
            DeviceError::Unavailable(format!(
                "there is no device {ordinal}: this machine has {count}; `runner devices` lists them"
            ))
        })?;
        Cuda.open(&id)
    };
    dispatch::worker::serve(open, execute::run_group).map_err(|e| Failure::environment(e.to_string()))?;
    Ok(Exit::Success)
}
