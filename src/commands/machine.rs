//! What is known of the machine at hand: taken from the cache, and measured first where it is not there.
//!
//! A device is measured once a driver and version of this program. What cannot be found out is told and left out: a
//! run goes without it.

use std::ffi::OsString;
use std::time::Duration;

use super::Console;
use crate::compile::{Cache, CompileOptions, Target, Toolkit, compile_all};
use crate::dispatch::{Interrupt, Pool, Ready, StartError, SurveyError, WorkerSpec};
use crate::machine::{self, Known, Store};
use crate::model::{BackendKind, Calibration, Clock, Compiled, Machine, ReferenceTimes, Survey, SurveyRequest};

/// How long a device may take to be measured: it takes two seconds where nothing else uses it.
const LIMIT: Duration = Duration::from_mins(1);

/// Processes that time the same kernels: each reads a little more or less than another, and by how much is found so.
const PROCESSES: usize = 5;

/// Processes in which they are traced.
const TRACED: usize = 3;

/// Where in the cache the machines are kept.
const FOLDER: &str = "machine";

/// Stands for the version of a driver that does not tell it.
pub const UNKNOWN_DRIVER: &str = "of unknown version";

/// An opened device, and what measuring it takes.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    pub ready: &'a Ready,
    /// The device's number, for another worker on it.
    pub ordinal: u32,
    pub toolkit: &'a Toolkit,
    pub interrupt: &'a Interrupt,
}

/// What is known of the device that the pool's worker has opened, measured by it where nothing is. The worker's clock
/// is set right by it.
pub fn known(pool: &mut Pool, site: Site<'_>, console: &mut Console) -> Machine {
    let Some((device, driver)) = identity(site.ready) else { return Machine::default() };
    let found = Cache::locate().map_err(|e| e.to_string()).and_then(|cache| {
        if let Some(known) = store(&cache).load(device, driver) {
            return set_right(pool, site, cache, known);
        }
        console.say("measuring the device itself, once for this driver: its clock, its memory, its arithmetic");
        measure(pool, site, cache)
    });
    let machine = found.unwrap_or_else(|why| {
        console.say(&format!("the device's clock and ceilings stay unknown: {why}"));
        Machine::default()
    });
    let other_processes = site.ready.other_processes.filter(|others| *others > 0);
    if let Some(others) = other_processes {
        let plural = if others == 1 { "process has" } else { "processes have" };
        console.say(&format!("{others} other {plural} the GPU open: what they do there disturbs the times"));
    }
    // Both are asked for anew in every run: somebody may have changed them.
    Machine { settings: site.ready.settings.clone(), other_processes, ..machine }
}

/// Times the kernels of the calibration in the worker, which reads a little more or less than another process, and takes
/// its own constant off from then on.
fn set_right(pool: &mut Pool, site: Site<'_>, cache: Cache, known: Known) -> Result<Machine, String> {
    let Known { mut machine, reference } = known;
    if let (Some(Clock::Calibrated(calibration)), Some(reference)) = (&mut machine.clock, reference) {
        let code = code(&store(&cache), cache, site)?;
        let request = SurveyRequest { code, spread: false, ceilings: false };
        let survey = pool.survey(request, LIMIT, site.interrupt).map_err(|e| e.to_string())?;
        take_off(pool, calibration, &survey, &reference);
    }
    Ok(machine)
}

/// Takes what the worker's survey reads too much off its intervals, in place of what other processes do.
fn take_off(pool: &mut Pool, calibration: &mut Calibration, survey: &Survey, reference: &ReferenceTimes) {
    if let Some(constant) = machine::constant(survey, reference) {
        calibration.constant = constant;
        pool.calibrate(constant);
    }
}

/// Measures the device and keeps what was found. The worker's clock is set right by it.
pub fn measure(pool: &mut Pool, site: Site<'_>, cache: Cache) -> Result<Machine, String> {
    let (device, driver) = identity(site.ready).ok_or("it is no GPU with a name of its own")?;
    let store = store(&cache);
    let code = code(&store, cache, site)?;
    let ask = |pool: &mut Pool, spread, ceilings| {
        pool.survey(SurveyRequest { code: code.clone(), spread, ceilings }, LIMIT, site.interrupt)
    };
    let mut own = vec![ask(pool, true, false).map_err(|e| e.to_string())?];
    for _ in 1..PROCESSES {
        own.push(elsewhere(site, &[], |pool| ask(pool, true, false)).map_err(|e| e.to_string())?);
    }
    let traced = |_| elsewhere(site, &["--traced"], |pool| ask(pool, false, false)).map_err(|e| e.to_string());
    let surveys: Result<Vec<Survey>, String> = (0..TRACED).map(traced).collect();
    let reference = surveys.and_then(|surveys| machine::reference_times(&surveys));
    let clock = machine::calibrate(&own, reference.as_ref().map_err(Clone::clone));
    let ceilings = ask(pool, false, true).map_err(|e| e.to_string())?.ceilings;
    let machine = Machine {
        ceilings,
        clock: Some(clock),
        spread: machine::spread(&own, reference.as_ref().ok()),
        ..Machine::default()
    };
    let mut known = Known { machine, reference: reference.ok() };
    store.save(device, driver, &known).map_err(|e| e.to_string())?;
    if let (Some(Clock::Calibrated(calibration)), Some(reference)) = (&mut known.machine.clock, &known.reference) {
        take_off(pool, calibration, &own[0], reference);
    }
    Ok(known.machine)
}

/// The machines of this user's cache.
pub fn store(cache: &Cache) -> Store {
    Store::at(cache.root().join(FOLDER))
}

/// The same kernels in another process, which ends after it: CUPTI comes near none that measures.
fn elsewhere(
    site: Site<'_>,
    more: &[&str],
    ask: impl Fn(&mut Pool) -> Result<Survey, SurveyError>,
) -> Result<Survey, SurveyError> {
    let mut words = worker_words(site.ordinal);
    words.extend(more.iter().map(OsString::from));
    let started: Result<_, StartError> = Pool::start(WorkerSpec::of_this_program(words), site.interrupt);
    let (mut pool, _) = started?;
    ask(&mut pool)
}

/// The command line of a worker on this GPU.
pub fn worker_words(ordinal: u32) -> Vec<OsString> {
    vec!["__worker".into(), "--backend".into(), "cuda".into(), "--device".into(), ordinal.to_string().into()]
}

/// What a machine is kept under: the GPU's UUID and its driver. A simulator has neither, and nothing to measure.
pub fn identity(ready: &Ready) -> Option<(&str, &str)> {
    let is_real = ready.device.backend == BackendKind::Cuda && ready.device.capabilities.has_clock;
    let driver = ready.driver.as_deref().unwrap_or(UNKNOWN_DRIVER);
    ready.uuid.as_deref().filter(|_| is_real).map(|device| (device, driver))
}

/// The kernels of the survey, compiled for the device.
fn code(store: &Store, cache: Cache, site: Site<'_>) -> Result<Compiled, String> {
    let unit = machine::unit(machine::write_source(store.folder()).map_err(|e| e.to_string())?);
    let options = CompileOptions::new(cache).map_err(|e| e.to_string())?;
    let target = Target::Gpu(site.ready.device.compute_capability);
    let results = compile_all(&[unit], target, site.toolkit, &options, &mut |_, _, _| {});
    let compiled = results.into_values().next().ok_or("its kernels were not compiled")?;
    compiled.map_err(|failure| format!("its kernels do not compile: {}", failure.summary))
}
