//! What is known of the machine at hand: taken from the cache, and measured first where it is not there.
//!
//! A device is measured once a driver and version of this program. What cannot be found out is told and left out: a
//! run goes without it.

use std::time::Duration;

use super::Console;
use crate::compile::{Cache, CompileOptions, Target, Toolkit, compile_all};
use crate::dispatch::{Interrupt, Pool, Ready};
use crate::machine::{self, Store};
use crate::model::{BackendKind, Compiled, Machine, SurveyRequest};

/// How long a device may take to be measured: it takes two seconds where nothing else uses it.
const LIMIT: Duration = Duration::from_mins(1);

/// Where in the cache the machines are kept.
const FOLDER: &str = "machine";

/// What is known of the device that the worker has opened, measured by it where nothing is.
pub fn known(
    pool: &mut Pool,
    ready: &Ready,
    toolkit: &Toolkit,
    interrupt: &Interrupt,
    console: &mut Console,
) -> Machine {
    let Some((device, driver)) = identity(ready) else { return Machine::default() };
    let found = Cache::locate().map_err(|e| e.to_string()).and_then(|cache| {
        let store = Store::at(cache.root().join(FOLDER));
        if let Some(machine) = store.load(device, driver) {
            return Ok(machine);
        }
        console.say("measuring the device itself, once for this driver: ceilings of memory and arithmetic");
        let code = code(&store, cache, ready, toolkit)?;
        let survey = pool.survey(SurveyRequest { code }, LIMIT, interrupt).map_err(|e| e.to_string())?;
        let machine = Machine { ceilings: Some(survey.ceilings) };
        store.save(device, driver, &machine).map_err(|e| e.to_string())?;
        Ok(machine)
    });
    found.unwrap_or_else(|why| {
        console.say(&format!("the ceilings of the device stay unknown: {why}"));
        Machine::default()
    })
}

/// What a machine is kept under: the GPU's UUID and its driver. A simulator has neither, and nothing to measure.
fn identity(ready: &Ready) -> Option<(&str, &str)> {
    let is_real = ready.device.backend == BackendKind::Cuda && ready.device.capabilities.has_clock;
    let driver = ready.driver.as_deref().unwrap_or("of unknown version");
    ready.uuid.as_deref().filter(|_| is_real).map(|device| (device, driver))
}

/// The kernels of the survey, compiled for the device.
fn code(store: &Store, cache: Cache, ready: &Ready, toolkit: &Toolkit) -> Result<Compiled, String> {
    let unit = machine::unit(machine::write_source(store.folder()).map_err(|e| e.to_string())?);
    let options = CompileOptions::new(cache).map_err(|e| e.to_string())?;
    let target = Target::Gpu(ready.device.compute_capability);
    let results = compile_all(&[unit], target, toolkit, &options, &mut |_, _, _| {});
    let compiled = results.into_values().next().ok_or("its kernels were not compiled")?;
    compiled.map_err(|failure| format!("its kernels do not compile: {}", failure.summary))
}
