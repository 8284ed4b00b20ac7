//! A GPU's clock and ceilings: read from the cache or, the first time for a device, driver and version, measured.
//!
//! Whatever cannot be determined is left out, and the run goes on.

use sha2::{Digest as _, Sha256};

use super::worker::selected_gpu_args;
use crate::console::Console;
use runner_calibrate::Store;
use runner_compile::{Cache, CompileOptions, Target, Toolkit, compile_all};
use runner_lang::format::plural_of;
use runner_types::{Clock, Compiled, Machine, hex};
use runner_workers::calibrate::{Surveyor, identity};
use runner_workers::{Interrupt, Pool, Ready, WorkerSpec};

const FOLDER: &str = "machine";

/// An open device, and everything needed to measure it.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    pub ready: &'a Ready,
    pub ordinal: u32,
    pub toolkit: &'a Toolkit,
    pub interrupt: &'a Interrupt,
}

/// Properties of the device that the pool's worker has opened, measured if none are stored. Corrects the worker's
/// clock.
pub fn known(pool: &mut Pool, site: Site<'_>, console: &mut Console) -> Machine {
    let Some((uuid, _)) = identity(site.ready) else { return Machine::default() };
    let machine = stored_or_measured(pool, site, console).unwrap_or_else(|why| {
        console.say(&format!("the GPU's clock and ceilings are unknown: {why}"));
        Machine::default()
    });
    let other_processes = site.ready.other_processes.filter(|others| *others > 0);
    if let Some(others) = other_processes {
        let others = plural_of(others, "other process uses", "other processes use");
        console.say(&format!("warning: {others} this GPU and may disturb the times"));
    }
    // Settings and other processes may have changed since the last run.
    Machine { gpu: Some(digest(uuid)), settings: site.ready.settings.clone(), other_processes, ..machine }
}

/// Twelve hexadecimal digits that identify a GPU. They distinguish GPUs of one model in committed records, which do not
/// name the machine.
fn digest(uuid: &str) -> String {
    hex(&Sha256::digest(uuid)[..6])
}

fn stored_or_measured(pool: &mut Pool, site: Site<'_>, console: &mut Console) -> Result<Machine, String> {
    let cache = Cache::locate().map_err(|e| e.to_string())?;
    let stored = identity(site.ready).and_then(|(device, driver)| store(&cache).load(device, driver));
    match stored {
        Some(known) if !matches!(known.machine.clock, Some(Clock::Calibrated(_))) => Ok(known.machine),
        Some(known) => surveyor(cache, site)?.adopt(pool, known),
        None => {
            console.say("calibrating the GPU, once per driver: clock, memory, arithmetic");
            measure(pool, site, cache)
        }
    }
}

pub fn measure(pool: &mut Pool, site: Site<'_>, cache: Cache) -> Result<Machine, String> {
    let (device, driver) = identity(site.ready).ok_or("the device has no UUID")?;
    let store = store(&cache);
    surveyor(cache, site)?.measure(pool, |known| store.save(device, driver, known))
}

/// This user's stored measurements of GPUs.
pub fn store(cache: &Cache) -> Store {
    Store::at(cache.root().join(FOLDER))
}

fn surveyor(cache: Cache, site: Site<'_>) -> Result<Surveyor<'_>, String> {
    let worker = selected_gpu_args(site.ordinal);
    let traced = worker.iter().cloned().chain(["--traced".into()]);
    Ok(Surveyor {
        traced_worker: WorkerSpec::of_this_program(traced),
        worker: WorkerSpec::of_this_program(worker),
        code: code(cache, site)?,
        interrupt: site.interrupt,
    })
}

/// Calibration kernels, compiled for the device.
fn code(cache: Cache, site: Site<'_>) -> Result<Compiled, String> {
    let source = runner_calibrate::write_source(store(&cache).folder()).map_err(|e| e.to_string())?;
    let options = CompileOptions::new(cache).map_err(|e| e.to_string())?;
    let target = Target::Gpu(site.ready.device.compute_capability);
    let results = compile_all(&[runner_calibrate::unit(source)], target, site.toolkit, &options, &mut |_, _, _| {});
    let compiled = results.into_values().next().ok_or("its kernels were not compiled")?;
    compiled.map_err(|failure| format!("its kernels do not compile: {}", failure.summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected digits from `printf GPU-8f3c2a1e-0011-2233-4455-66778899aabb | sha256sum`.
    #[test]
    fn a_gpu_is_told_by_the_beginning_of_the_digest_of_its_uuid() {
        assert_eq!(digest("GPU-8f3c2a1e-0011-2233-4455-66778899aabb"), "58e0aa2a2433");
    }
}
