//! Clock, profiler counter, monitor and energy meter of the fake device.

use super::FakeDevice;
use runner_backend::{
    Batch, Clock, CountReport, Counter, Device as _, DeviceError, EnergyMeter, EnergyReading, FunctionId,
    HostFunctions, LaunchArg, ModuleId, Monitor, Prepare, Samples, Step, TimedBatch,
};
use runner_types::{DeviceState, Joules, Settings};

impl Clock for FakeDevice {
    fn method(&self) -> String {
        "as the test sets it".to_owned()
    }

    fn tick(&self) -> Option<f64> {
        self.tick
    }

    fn cycle(&self) -> u32 {
        1
    }

    fn excludes_host(&self) -> bool {
        false
    }

    fn calibrate(&mut self, nanoseconds: f64) {
        self.subtracted = nanoseconds;
    }

    fn reference_clock(&self) -> Option<String> {
        self.reference.clone()
    }

    fn time(&mut self, batch: &TimedBatch) -> Result<Samples, DeviceError> {
        self.alive()?;
        let (mut samples, mut report) = (Samples::default(), CountReport::default());
        for _ in 0..batch.samples {
            batch.prepare.iter().try_for_each(|prepare| self.prepare(prepare))?;
            let taken = self.sample(batch, &mut report)?;
            samples.reference.extend(self.reference.as_ref().map(|_| taken.whole));
            samples.times.push(self.as_read(taken));
        }
        samples.notes = report.run.notes;
        Ok(samples)
    }
}

impl Counter for FakeDevice {
    fn count(&mut self, batch: &Batch) -> Result<CountReport, DeviceError> {
        if let Some(counted) = &mut self.counted {
            counted.push(self.launched.len());
        }
        let report = self.run_batch(batch)?;
        Ok(if self.marks_launches() { CountReport { counters: None, ..report } } else { report })
    }

    fn marks_launches(&self) -> bool {
        self.counted.is_some()
    }
}

impl Monitor for FakeDevice {
    fn settings(&self) -> Settings {
        Settings::default()
    }

    /// Next state; the last one repeats.
    fn state(&mut self) -> DeviceState {
        let state = self.states.get(self.looks).or(self.states.last()).cloned();
        self.looks += 1;
        state.unwrap_or_default()
    }

    fn other_processes(&self) -> Option<u32> {
        None
    }
}

impl EnergyMeter for FakeDevice {
    /// Reads the energy counter after each run, at the kernels' own times.
    fn run_metered(
        &mut self,
        prepare: &[Prepare],
        bodies: &[&[Step]],
        continues: &mut dyn FnMut(EnergyReading) -> bool,
    ) -> Result<(), DeviceError> {
        self.alive()?;
        let (step, gain) = self.energy.unwrap_or((1.0, 0.0));
        prepare.iter().try_for_each(|prepare| self.prepare(prepare))?;
        let (mut report, mut at) = (CountReport::default(), 0.0);
        for (run, body) in bodies.iter().cycle().enumerate() {
            at += self.steps(body, &mut report)?.whole / 1e9;
            let energy = Joules(1e6 + gain * (at / step).floor());
            if !continues(EnergyReading { at, energy, runs: run as u64 + 1 }) {
                break;
            }
        }
        Ok(())
    }
}

impl HostFunctions for FakeDevice {
    /// Host functions are among the device's kernels.
    fn host_function(&mut self, module: ModuleId, name: &str, _args: &[LaunchArg]) -> Result<FunctionId, DeviceError> {
        self.kernel(module, name).map(|kernel| FunctionId(kernel.0))
    }
}
