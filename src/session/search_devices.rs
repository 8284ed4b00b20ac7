//! Devices of a search: one, or several of the same model.

use super::gpus::{self, Gpu};
use super::machine::{self, Site};
use super::worker::{self, Worker};
use crate::cli::TuneArgs;
use crate::cli::options::RunOptions;
use crate::console::Console;
use crate::failure::Failure;
use runner_compile::Toolkit;
use runner_types::Machine;
use runner_workers::{Interrupt, Pool};

#[derive(Debug)]
pub struct Devices {
    /// Device that measures the finalists.
    pub first: Worker,
    others: Vec<(Gpu, Worker)>,
}

impl Devices {
    /// Starts workers for the devices on the command line. The target of `options` becomes the first device.
    pub fn start(
        options: &mut RunOptions,
        args: &TuneArgs,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Result<Self, Failure> {
        let Some(named) = &args.devices else {
            return Ok(Self { first: worker::start(options, interrupt, console)?, others: Vec::new() });
        };
        let gpus = gpus::select(&args.target, named)?;
        let mut started = gpus.into_iter().map(|gpu| {
            let worker = worker::start_on(&gpu.target, options.sanitize, &gpu.cores, interrupt)?;
            Ok((gpu, worker))
        });
        let (gpu, first) = started.next().ok_or_else(|| Failure::usage("--devices: it names no GPU"))??;
        options.target = gpu.target;
        let others = started.collect::<Result<_, Failure>>()?;
        Ok(Self { first, others })
    }

    /// Measured properties of the first device. Corrects the clocks of all devices.
    pub fn known(
        &mut self,
        options: &RunOptions,
        toolkit: &Toolkit,
        interrupt: &Interrupt,
        console: &mut Console,
    ) -> Machine {
        for (gpu, Worker { pool, ready }) in &mut self.others {
            machine::known(pool, Site { ready, ordinal: gpu.target.ordinal(), toolkit, interrupt }, console);
        }
        let Worker { pool, ready } = &mut self.first;
        machine::known(pool, Site { ready, ordinal: options.target.ordinal(), toolkit, interrupt }, console)
    }

    /// Worker pools, one per device.
    pub fn pools(&mut self) -> impl Iterator<Item = &mut Pool> {
        [&mut self.first.pool].into_iter().chain(self.others.iter_mut().map(|(_, worker)| &mut worker.pool))
    }
}
