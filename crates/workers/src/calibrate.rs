//! Calibrates a device. Several worker processes time the same kernels, because times differ slightly between
//! processes.
//!
//! The arithmetic is in [`machine`]; this module only runs the surveys.

use std::time::Duration;

use super::{Interrupt, OwnCalibration, Pool, Ready, SurveyError, WorkerSpec};
use runner_calibrate::Known;
use runner_types::{BackendKind, Clock, Compiled, Machine, ReferenceTimes, Survey, SurveyRequest};

/// Time limit of a survey, which takes two seconds on an idle device.
const LIMIT: Duration = Duration::from_mins(1);

/// Number of processes that time the kernels.
const PROCESSES: usize = 5;

/// Number of processes that time the kernels with CUPTI.
const TRACED: usize = 3;

/// Used in place of a driver version that is not reported.
pub const UNKNOWN_DRIVER: &str = "of unknown version";

/// Everything needed to survey (calibrate) a device.
#[derive(Debug)]
pub struct Surveyor<'a> {
    /// Spec for another worker on the device.
    pub worker: WorkerSpec,
    /// Spec for a worker whose kernels CUPTI traces. Such a process never measures.
    pub traced_worker: WorkerSpec,
    /// Survey kernels.
    pub code: Compiled,
    pub interrupt: &'a Interrupt,
}

/// GPU UUID and driver version, under which calibrations are stored. `None` for the simulator, which needs no
/// calibration.
pub fn identity(ready: &Ready) -> Option<(&str, &str)> {
    let is_gpu = ready.device.backend == BackendKind::Cuda && ready.device.capabilities.has_clock;
    let driver = ready.driver.as_deref().unwrap_or(UNKNOWN_DRIVER);
    ready.uuid.as_deref().filter(|_| is_gpu).map(|device| (device, driver))
}

impl Surveyor<'_> {
    /// Measures the clock, the differences between processes and the device's ceilings. `keep` receives the part that
    /// applies to every process. The result also includes the clock correction of the pool's worker.
    pub fn measure<E: ToString>(
        &self,
        pool: &mut Pool,
        keep: impl FnOnce(&Known) -> Result<(), E>,
    ) -> Result<Machine, String> {
        let words = |error: SurveyError| error.to_string();
        let mut own = vec![self.survey(pool, true, false).map_err(words)?];
        for _ in 1..PROCESSES {
            own.push(self.elsewhere(&self.worker, true).map_err(words)?);
        }
        let traced: Result<Vec<Survey>, String> =
            (0..TRACED).map(|_| self.elsewhere(&self.traced_worker, false).map_err(words)).collect();
        let reference = traced.and_then(|traced| runner_calibrate::reference_times(&traced));
        let clock = runner_calibrate::calibrate(&own, reference.as_ref().map_err(Clone::clone));
        let ceilings = self.survey(pool, false, true).map_err(words)?.ceilings;
        let spread = runner_calibrate::spread(&own, reference.as_ref().ok());
        let machine = Machine { ceilings, clock: Some(clock), spread, ..Machine::default() };
        let mut known = Known { machine, reference: reference.ok() };
        keep(&known).map_err(|error| error.to_string())?;
        if let Some(reference) = &known.reference {
            self.correct(pool, &mut known.machine, &own[0], reference);
        }
        Ok(known.machine)
    }

    /// Corrects the clock of the pool's worker, which differs slightly from the clocks of the processes in the stored
    /// calibration.
    pub fn adopt(&self, pool: &mut Pool, known: Known) -> Result<Machine, String> {
        let Known { mut machine, reference } = known;
        if let (Some(Clock::Calibrated(_)), Some(reference)) = (&machine.clock, reference) {
            let survey = self.survey(pool, false, false).map_err(|error| error.to_string())?;
            self.correct(pool, &mut machine, &survey, &reference);
        }
        Ok(machine)
    }

    fn survey(&self, pool: &mut Pool, spread: bool, ceilings: bool) -> Result<Survey, SurveyError> {
        pool.survey(SurveyRequest { code: self.code.clone(), spread, ceilings }, LIMIT, self.interrupt)
    }

    /// Surveys the device in another process, which then exits.
    fn elsewhere(&self, worker: &WorkerSpec, spread: bool) -> Result<Survey, SurveyError> {
        let (mut pool, _) = Pool::start(worker.clone(), self.interrupt)?;
        self.survey(&mut pool, spread, false)
    }

    /// Replaces the calibration constant with the one of the surveyed process. All further processes of the pool
    /// measure their own.
    fn correct(&self, pool: &mut Pool, machine: &mut Machine, survey: &Survey, reference: &ReferenceTimes) {
        if let Some(Clock::Calibrated(calibration)) = &mut machine.clock
            && let Some(constant) = runner_calibrate::constant(survey, reference)
        {
            calibration.constant = constant;
            pool.calibrate(constant);
            let own = OwnCalibration { code: self.code.clone(), reference: reference.clone(), limit: LIMIT };
            pool.calibrate_each(own);
        }
    }
}
