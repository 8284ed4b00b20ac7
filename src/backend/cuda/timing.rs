//! Takes cold samples: CUDA events around a body whose launches wait behind a gate, on a cache that was flushed.
//!
//! A sample is: preparation; flush; gate closed; event, step, event, step, …, event; gate opened; wait. One sample is
//! queued at a time, which bounds the queue. Warm and graph samples are not taken here.

use super::flush::Flush;
use super::gate::{self, Gate, MOST_QUEUED};
use super::handles::{Context, Event, Stream};
use super::operation::{Operation, queue_all, settle};
use crate::backend::{DeviceError, Timing};
use crate::model::DeviceInfo;

use cudarc::driver::sys;

/// What measuring needs, made once a device.
#[derive(Debug)]
pub(super) struct Timer {
    flush: Flush,
    /// The gate, or why there is none.
    gate: Result<Gate, String>,
    /// One more than the steps of the longest body so far.
    events: Vec<Event>,
    /// What an interval between two events reads besides the kernel in it, nanoseconds.
    of_itself: f64,
}

impl Timer {
    pub fn new(
        context: &Context,
        stream: &Stream,
        device: sys::CUdevice,
        info: &DeviceInfo,
    ) -> Result<Self, DeviceError> {
        let flush = Flush::new(context, stream, device, info)?;
        let events = vec![Event::new()?, Event::new()?];
        let gate = gate::open_or_explain(stream, || {
            events[0].record(stream)?;
            flush.queue(stream)?;
            events[1].record(stream)
        })?;
        Ok(Self { flush, gate, events, of_itself: 0.0 })
    }

    /// How times are taken, in one sentence for the environment.
    pub fn method(&self) -> String {
        sentence(self.gate.as_ref().err().map(String::as_str), self.flush.bytes())
    }

    /// Takes `nanoseconds` off every interval from now on.
    pub fn calibrate(&mut self, nanoseconds: f64) {
        self.of_itself = nanoseconds;
    }

    /// Takes `repeat` samples.
    pub fn cold(
        &mut self,
        stream: &Stream,
        prepare: &[Operation<'_>],
        steps: &[Operation<'_>],
        repeat: u32,
    ) -> Result<Vec<Timing>, DeviceError> {
        while self.events.len() <= steps.len() {
            self.events.push(Event::new()?);
        }
        let mut samples = Vec::with_capacity(repeat as usize);
        for _ in 0..repeat {
            self.flush.reset_persisting()?;
            let queued = self.queue_sample(stream, prepare, steps);
            settle(queued, stream)?;
            steps.iter().for_each(Operation::note_ran);
            samples.push(self.read(steps.len())?);
        }
        Ok(samples)
    }

    /// Queues one sample. The gate is open when this returns, whatever it returns.
    fn queue_sample(
        &mut self,
        stream: &Stream,
        prepare: &[Operation<'_>],
        steps: &[Operation<'_>],
    ) -> Result<(), DeviceError> {
        let Self { flush, gate, events, .. } = self;
        queue_all(prepare, stream)?;
        flush.queue(stream)?;
        let fits = 2 * steps.len() < MOST_QUEUED && steps.iter().all(Operation::is_warm);
        let _closed = match gate {
            Ok(gate) if fits => Some(gate.close(stream)?),
            _ => None,
        };
        events[0].record(stream)?;
        for (step, event) in steps.iter().zip(&events[1..]) {
            step.queue(stream)?;
            event.record(stream)?;
        }
        Ok(())
    }

    fn read(&self, steps: usize) -> Result<Timing, DeviceError> {
        let whole = self.interval(&self.events[0], &self.events[steps])?;
        let pairs = if steps > 1 { steps } else { 0 };
        let each: Result<_, _> = self.events.windows(2).take(pairs).map(|e| self.interval(&e[0], &e[1])).collect();
        Ok(Timing { whole, each: each? })
    }

    /// From one event to another, less what the pair reads of itself.
    fn interval(&self, from: &Event, to: &Event) -> Result<f64, DeviceError> {
        Ok((from.nanoseconds_to(to)? - self.of_itself).max(0.0))
    }
}

fn sentence(no_gate: Option<&str>, flush: u64) -> String {
    let gate = match no_gate {
        None => "launches queued behind a gate and let go together".to_owned(),
        Some(reason) => format!("launches not gated ({reason}), so that launch latency is in the figures"),
    };
    format!("CUDA events around each body, {gate}, L2 flushed before each by reading {} MiB", flush >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_whether_launches_were_gated() {
        assert_eq!(
            sentence(None, 125 << 20),
            "CUDA events around each body, launches queued behind a gate and let go together, L2 flushed before each \
             by reading 125 MiB"
        );
        assert_eq!(
            sentence(Some("CUDA_LAUNCH_BLOCKING is set"), 16 << 20),
            "CUDA events around each body, launches not gated (CUDA_LAUNCH_BLOCKING is set), so that launch latency \
             is in the figures, L2 flushed before each by reading 16 MiB"
        );
    }
}
