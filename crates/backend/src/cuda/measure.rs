//! Times, counts and energy of a GPU: the [`Clock`], [`Counter`] and [`EnergyMeter`] of this backend.

use super::cupti::{Expected, Tracer};
use super::device::{CudaDevice, resolved};
use super::operation::Operation;
use super::work::{self, Work};
use super::{cycle, energy, flush, host};
use crate::{
    Batch, Clock, CountReport, Counter, DeviceError, EnergyMeter, EnergyReading, Prepare, Samples, Step, TimedBatch,
};
use runner_types::Regime;

impl Clock for CudaDevice {
    fn method(&self) -> String {
        self.timer.method()
    }

    fn tick(&self) -> Option<f64> {
        Some(self.timer.tick())
    }

    fn cycle(&self) -> u32 {
        cycle::LAUNCHES
    }

    fn launch_interval(&mut self) -> Result<Option<f64>, DeviceError> {
        self.context.enter()?;
        self.timer.launch_interval(&self.stream).map(Some)
    }

    fn excludes_host(&self) -> bool {
        self.timer.is_gated()
    }

    fn calibrate(&mut self, nanoseconds: f64) {
        self.timer.calibrate(nanoseconds);
    }

    fn reference_clock(&self) -> Option<String> {
        self.tracer.as_ref().map(|tracer| tracer.name.clone())
    }

    fn time(&mut self, batch: &TimedBatch) -> Result<Samples, DeviceError> {
        self.context.enter()?;
        batch.sets().try_for_each(|steps| self.lanes.provide(steps))?;
        let Self { context, table, preparer, timer, stream, lanes, info, tracer, limits, .. } = self;
        let sets = batch.sets().map(Vec::as_slice);
        let mut work = resolved((table, preparer, lanes), info, &batch.prepare, sets)?;
        tracer.as_ref().map_or(Ok(()), Tracer::clear)?;
        if batch.regime != Regime::Host {
            timer.probe((context, stream), &work, &table.filled(&batch.prepare))?;
        }
        let times = match batch.regime {
            Regime::Host => host::samples(context, stream, table, batch, &mut work)?,
            _ => timer.samples((context, stream), batch, &work)?,
        };
        limits.settle_after(work.functions(), (context, stream))?;
        let reference = match tracer.as_ref().zip(expected_records(batch, &work)) {
            Some((tracer, expected)) => tracer.bodies(expected, flush::KERNEL)?,
            None => Vec::new(),
        };
        Ok(Samples { times, reference, notes: work.news() })
    }
}

/// Expected tracer records of a timed batch. `None` if unknown, and in regimes that are not timed run by run.
fn expected_records(batch: &TimedBatch, work: &Work<'_>) -> Option<Expected> {
    let body = work.bodies.first().filter(|_| batch.regime == Regime::Cold)?;
    let runs = batch.series.launches.max(1);
    let counted = runs as usize;
    // The launches of a sequence are timed in separate runs.
    let several = body.len() > 1 && !batch.series.whole_only;
    let of_parts = if several { cycle::runs_of_parts(runs) as usize } else { 0 };
    Some(Expected {
        samples: batch.samples as usize,
        runs: counted + of_parts,
        counted,
        prepare: work.prepare.iter().map(Operation::records).sum::<Option<usize>>()?,
        body: body.iter().map(Operation::records).sum::<Option<usize>>()?,
    })
}

/// Counting is done by a profiler around this process.
impl Counter for CudaDevice {
    fn count(&mut self, batch: &Batch) -> Result<CountReport, DeviceError> {
        let run = self.run_batch(batch, work::run_marked)?;
        Ok(CountReport { run, ..CountReport::default() })
    }

    fn marks_launches(&self) -> bool {
        true
    }
}

impl EnergyMeter for CudaDevice {
    fn run_metered(
        &mut self,
        prepare: &[Prepare],
        bodies: &[&[Step]],
        continues: &mut dyn FnMut(EnergyReading) -> bool,
    ) -> Result<(), DeviceError> {
        self.context.enter()?;
        bodies.iter().try_for_each(|steps| self.lanes.provide(steps))?;
        let Self { table, preparer, stream, lanes, info, monitor, .. } = self;
        let monitor = monitor.as_ref().map_err(|why| DeviceError::Unavailable(why.clone()))?;
        let work = resolved((table, preparer, lanes), info, prepare, bodies.iter().copied())?;
        energy::run_metered(stream, &work, || monitor.energy(), continues)?;
        work.finish(stream)
    }
}
