//! A gate in a stream: work behind it starts when the host opens it, not when it is queued.
//!
//! The stream waits on a 32-bit word of mapped host memory (`cuStreamWaitValue32`), which occupies no SM. Work behind
//! the gate runs back to back, so launch latency is not measured. A gate deadlocks if a launch call waits for earlier
//! work: under a profiler, with blocking launches, or on a full queue. So a gate is first tried under a watchdog, calls
//! of host functions get a watchdog each time, and a closed gate opens when dropped.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cudarc::driver::sys;

use super::driver::{api, check};
use super::handles::Stream;
use super::memory::PinnedMemory;
use crate::DeviceError;

/// Duration after which the watchdog assumes that calls are waiting for the gate.
const TRIAL: Duration = Duration::from_millis(250);

/// Maximum number of operations queued behind a closed gate, far below the depth at which a launch call blocks.
pub(super) const MOST_QUEUED: usize = 400;

/// The word on which the stream waits.
#[derive(Debug)]
pub(super) struct Gate {
    memory: PinnedMemory,
    device: sys::CUdeviceptr,
    /// Value that opens the gate next. It grows by one each time, and the comparison is cyclic.
    epoch: u32,
}

/// A closed gate; it opens when dropped.
#[derive(Debug)]
#[must_use = "the gate opens when this is dropped"]
pub(super) struct Closed<'a> {
    word: &'a AtomicU32,
    device: sys::CUdeviceptr,
    epoch: u32,
}

impl Closed<'_> {
    /// Makes everything queued from here on wait.
    pub fn wait(&self, stream: &Stream) -> Result<(), DeviceError> {
        let flags = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // SAFETY: the word is mapped host memory that lives as long as the gate; the caller that queues work behind it
        // waits for the stream before the gate is dropped.
        check("cuStreamWaitValue32", unsafe {
            sys::cuStreamWaitValue32_v2(stream.raw(), self.device, self.epoch, flags)
        })
    }

    /// Runs `work` under a watchdog that opens the gate after [`TRIAL`]. Returns the result, and whether the gate
    /// stayed closed.
    pub fn watched<T>(&self, work: impl FnOnce() -> T) -> (T, bool) {
        thread::scope(|scope| {
            let (done, watch) = channel::<()>();
            let watchdog = scope.spawn(move || match watch.recv_timeout(TRIAL) {
                Err(RecvTimeoutError::Timeout) => {
                    self.open();
                    false
                }
                Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
            });
            let given = work();
            drop(done);
            (given, watchdog.join().unwrap_or(false))
        })
    }

    fn open(&self) {
        self.word.store(self.epoch, Ordering::Release);
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.open();
    }
}

impl Gate {
    pub fn new() -> Result<Self, DeviceError> {
        let memory = PinnedMemory::alloc(size_of::<u32>(), true)?;
        let device = memory.device_address()?;
        Ok(Self { memory, device, epoch: 0 })
    }

    /// Closes the gate for work queued after [`Closed::wait`].
    pub fn close(&mut self) -> Closed<'_> {
        self.epoch = self.epoch.wrapping_add(1);
        // SAFETY: the memory holds an aligned 32-bit word that the host only accesses through this atomic, and it lives
        // as long as `self`, from which the reference borrows.
        let word = unsafe { AtomicU32::from_ptr(self.memory.host().as_ptr().cast()) };
        Closed { word, device: self.device, epoch: self.epoch }
    }

    /// Whether the calls of `work` return while the gate is closed.
    fn holds(&mut self, stream: &Stream, work: impl Fn() -> Result<(), DeviceError>) -> Result<bool, DeviceError> {
        let closed = self.close();
        closed.wait(stream)?;
        let (queued, returned) = closed.watched(work);
        drop(closed);
        let finished = stream.synchronize();
        queued.and(finished)?;
        Ok(returned)
    }
}

/// A gate that works on this device and in this process, or the reason why there is none. `work` queues a launch
/// between events, as a measurement does, and has run before.
pub(super) fn open_or_explain(
    stream: &Stream,
    work: impl Fn() -> Result<(), DeviceError>,
) -> Result<Result<Gate, String>, DeviceError> {
    let environment =
        std::env::vars_os().map(|(k, v)| (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned()));
    if let Some(reason) = obstacle(environment) {
        return Ok(Err(reason));
    }
    if !api()?.has_stream_wait {
        return Ok(Err("the driver has no cuStreamWaitValue32".to_owned()));
    }
    let mut gate = Gate::new()?;
    match gate.holds(stream, work) {
        Ok(true) => Ok(Ok(gate)),
        Ok(false) => Ok(Err("launch calls wait for the work before them, as under a profiler".to_owned())),
        Err(error @ DeviceError::ContextLost(_)) => Err(error),
        Err(error) => Ok(Err(format!("the device cannot wait on a word ({error})"))),
    }
}

/// Environment variable that makes launch calls wait, if any.
fn obstacle(environment: impl Iterator<Item = (String, String)>) -> Option<String> {
    for (name, value) in environment {
        let set = !value.is_empty() && value != "0";
        let profiler = name == "CUDA_INJECTION64_PATH"
            || ["NV_COMPUTE_PROFILER", "NV_NSIGHT", "NV_TPS", "NV_SANITIZER"].iter().any(|p| name.starts_with(p));
        if name == "CUDA_LAUNCH_BLOCKING" && set {
            return Some("CUDA_LAUNCH_BLOCKING is set".to_owned());
        }
        if profiler && set {
            return Some(format!("a profiler is attached ({name} is set)"));
        }
        if name == "LD_PRELOAD" && value.contains("cuda-injection") {
            return Some("a profiler is attached (LD_PRELOAD names it)".to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(pairs: &[(&str, &str)]) -> Option<String> {
        obstacle(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_watched_gate_opens_by_itself_before_work_that_waits_for_it_and_for_no_other() {
        let word = AtomicU32::new(6);
        let closed = Closed { word: &word, device: 0, epoch: 7 };
        assert_eq!(closed.watched(|| word.load(Ordering::Acquire)), (6, true));
        let waits = || {
            while word.load(Ordering::Acquire) != 7 {
                thread::yield_now();
            }
            "let through"
        };
        assert_eq!(closed.watched(waits), ("let through", false));
    }

    #[test]
    fn blocking_launches_and_profilers_are_seen_in_the_environment() {
        assert_eq!(reason(&[("HOME", "/root"), ("CUDA_LAUNCH_BLOCKING", "0"), ("LD_PRELOAD", "")]), None);
        assert_eq!(reason(&[("CUDA_LAUNCH_BLOCKING", "1")]), Some("CUDA_LAUNCH_BLOCKING is set".to_owned()));
        assert_eq!(
            reason(&[("NV_COMPUTE_PROFILER_PERFWORKS_DIR", "/opt/ncu")]),
            Some("a profiler is attached (NV_COMPUTE_PROFILER_PERFWORKS_DIR is set)".to_owned())
        );
        assert_eq!(
            reason(&[("LD_PRELOAD", "/opt/ncu/libcuda-injection.so")]),
            Some("a profiler is attached (LD_PRELOAD names it)".to_owned())
        );
        assert_eq!(reason(&[("NVIDIA_VISIBLE_DEVICES", "all"), ("NV_CUDA_LIB_VERSION", "13.0")]), None);
    }
}
