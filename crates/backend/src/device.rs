//! What a device can do: the traits that a backend implements.
//!
//! [`Device`] is required of every backend. Clocks, counters, monitors, energy meters and host functions are traits of
//! their own, which a device hands out where it has them.

use std::ops::Range;
use std::time::Duration;

use super::{Batch, BufferId, DeviceError, FunctionId, KernelId, LaunchArg, ModuleId, Prepare, Step, TimedBatch};
use crate::model::{
    BodyCounters, Compiled, DeviceId, DeviceInfo, DeviceState, Joules, KernelResources, LineCounts, Note, Occupancy,
    Settings, Unsanitized,
};

/// Opens devices of one kind.
pub trait Backend: std::fmt::Debug {
    /// Returns every device of the kind, in the driver's order.
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError>;

    /// Opens a device for use by this process.
    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError>;
}

/// An opened device: memory, code and launches. Every call is synchronous: when it returns, the device is idle.
pub trait Device: std::fmt::Debug {
    /// Returns the properties of the device, as they were when it was opened.
    fn info(&self) -> &DeviceInfo;

    /// Returns the device's UUID; `None` for a device that has none.
    fn uuid(&self) -> Option<String>;

    /// Returns the version of the driver; `None` for a device without a driver.
    fn driver(&self) -> Option<DriverVersion>;

    /// Takes times; `None` without a clock.
    fn clock(&mut self) -> Option<&mut dyn Clock>;

    /// Counts what kernels do; `None` where neither the device nor a profiler counts.
    fn counter(&mut self) -> Option<&mut dyn Counter>;

    /// Observes the state of the hardware; the error is the reason why nothing can.
    fn monitor(&mut self) -> Result<&mut dyn Monitor, String>;

    /// Reads the energy that the device consumes; the error is the reason why nothing can.
    fn energy_meter(&mut self) -> Result<&mut dyn EnergyMeter, String>;

    /// Calls functions of plug-ins on the host; `None` where the device runs kernels only.
    fn host_functions(&mut self) -> Option<&mut dyn HostFunctions>;

    /// Loads compiled code or a plug-in, eagerly: no later launch pays for it.
    fn load(&mut self, code: &Compiled) -> Result<ModuleId, DeviceError>;

    /// Loads PTX of this program's own, once for each text; it stays for the life of the device. `None` where the
    /// device does not run PTX.
    fn load_builtin(&mut self, ptx: &'static str) -> Result<Option<ModuleId>, DeviceError>;

    /// Frees a module with its kernels, symbols and host functions.
    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError>;

    /// Sets how many launches from kernels may be pending, also for modules that are loaded later; `None` restores the
    /// device's default.
    fn set_pending_launches(&mut self, count: Option<u32>) -> Result<(), DeviceError>;

    /// Finds a kernel by its mangled name.
    fn kernel(&mut self, module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError>;

    /// Returns the registers, shared and local memory as the device reports them.
    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError>;

    /// Returns the theoretical occupancy of a launch with `threads` per block and `shared` bytes of dynamic shared
    /// memory per block.
    fn occupancy(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<Occupancy, DeviceError>;

    /// Returns the block size with the most resident threads, for `shared` bytes of dynamic shared memory per block.
    fn best_block(&self, kernel: KernelId, shared: u32) -> Result<u32, DeviceError>;

    /// Allocates `bytes` of memory between two guard zones of `guard` bytes each; the one behind it may be longer.
    /// Contents are undefined.
    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError>;

    /// Names a buffer for the device's own messages.
    fn label(&mut self, buffer: BufferId, name: &str);

    /// Returns the memory of a `__device__` variable, by its mangled name. It has no guard zones; freeing it only
    /// forgets it.
    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError>;

    /// Returns the mangled names of the variables of a module that its kernels can write, as far as [`Self::symbol`]
    /// finds them.
    fn variables(&mut self, module: ModuleId) -> Result<Vec<String>, DeviceError>;

    /// Returns the bytes of a buffer, guard zones excluded; 0 for an unknown one.
    fn size(&self, buffer: BufferId) -> usize;

    /// Frees the memory of a buffer; its id becomes unknown.
    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError>;

    /// Copies to the device, `offset` bytes into the buffer.
    fn upload(&mut self, buffer: BufferId, offset: usize, data: &[u8]) -> Result<(), DeviceError>;

    /// Copies from the device, `offset` bytes into the buffer.
    fn download(&mut self, buffer: BufferId, offset: usize, data: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies whole buffers from the device.
    fn download_all(&mut self, buffers: &[BufferId]) -> Result<Vec<Vec<u8>>, DeviceError> {
        let mut all = Vec::with_capacity(buffers.len());
        for buffer in buffers {
            let mut data = vec![0; self.size(*buffer)];
            self.download(*buffer, 0, &mut data)?;
            all.push(data);
        }
        Ok(all)
    }

    /// Returns the bytes of a buffer that neither [`Self::upload`] nor a batch has written since [`Prepare::Undefine`]
    /// or the allocation, in order; `None` where the device does not record what launches write.
    fn unwritten(&self, _buffer: BufferId) -> Result<Option<Vec<Range<u64>>>, DeviceError> {
        Ok(None)
    }

    /// Fills both guard zones with `byte`.
    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError>;

    /// Returns the guard zones before and behind a buffer; empty for one without.
    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError>;

    /// Returns the free device memory in bytes; `None` where it is unknown.
    fn memory_free(&self) -> Option<u64>;

    /// Runs a body `batch.repeat` times, each prepared first.
    fn run(&mut self, batch: &Batch) -> Result<RunReport, DeviceError>;

    /// Sets what the simulator's sanitizer does not look for in later launches; it looks for everything at first. Other
    /// devices have none.
    fn set_unsanitized(&mut self, _unsanitized: Option<&Unsanitized>) {}

    /// Makes later launches of the simulator run a sample of their blocks, or all, as at first. Their report then has
    /// [`Note::Sampled`], unless the grid is small. Other devices always run all blocks.
    fn set_sampling(&mut self, _is_on: bool) {}

    /// Makes later launches of the simulator count per line of the PTX, or not, as at first: see [`CountReport::lines`].
    /// Other devices do not.
    fn count_lines(&mut self, _is_on: bool) {}

    /// Returns the iterations that the last loop of the last run made; 0 before the first loop.
    fn iterations(&self) -> u32;

    /// Limits the run time of later launches: a longer one ends with [`DeviceError::TimedOut`]. Returns false if the
    /// device cannot end a kernel, so that its process has to be ended.
    fn set_time_limit(&mut self, limit: Duration) -> bool;
}

/// A device with a clock.
pub trait Clock {
    /// Returns how times are taken, in one sentence for the environment.
    fn method(&self) -> String;

    /// Returns the resolution, nanoseconds; `None` where readings are exact.
    fn tick(&self) -> Option<f64>;

    /// Returns how many runs in a row it takes until a short kernel's time goes through all its values, because the
    /// hardware begins each launch somewhere else; 1 where it always begins in the same place.
    fn cycle(&self) -> u32;

    /// Whether host latency stays out of the times: what is timed is queued before it starts.
    fn excludes_host(&self) -> bool;

    /// Subtracts `nanoseconds`, the clock's own overhead, from every later interval.
    fn calibrate(&mut self, nanoseconds: f64);

    /// Returns the reference clock that also records kernels in this process; `None` without one.
    fn reference_clock(&self) -> Option<String>;

    /// Takes `batch.samples` samples: prepare (untimed), bring the caches into the regime's state, then the timed runs.
    fn time(&mut self, batch: &TimedBatch) -> Result<Samples, DeviceError>;
}

/// A device that counts.
pub trait Counter {
    /// Runs a body as [`Device::run`] does, and counts.
    fn count(&mut self, batch: &Batch) -> Result<CountReport, DeviceError>;

    /// Whether a profiler outside of this process counts: [`Self::count`] then marks the launches for it and reports no
    /// counters itself.
    fn marks_launches(&self) -> bool;
}

/// Observes the state of the hardware.
pub trait Monitor {
    /// Returns how the device is set.
    fn settings(&self) -> Settings;

    /// Returns the clocks, the temperature and the reasons for throttling at this moment.
    fn state(&mut self) -> DeviceState;

    /// Returns how many processes have the device open besides this one; `None` where they cannot be counted.
    fn other_processes(&self) -> Option<u32>;
}

/// A device whose energy can be read.
pub trait EnergyMeter {
    /// Prepares once, then runs the bodies in turn, back to back, until `continues` returns false. It is called with a
    /// reading of the energy counter again and again.
    fn run_metered(
        &mut self,
        prepare: &[Prepare],
        bodies: &[&[Step]],
        continues: &mut dyn FnMut(EnergyReading) -> bool,
    ) -> Result<(), DeviceError>;
}

/// A device that calls functions of plug-ins on the host.
pub trait HostFunctions {
    /// Finds a function of a plug-in and lets it prepare for these arguments, outside of the measured time. Every call
    /// of it has the same scalars, and buffers of the same sizes.
    fn host_function(&mut self, module: ModuleId, name: &str, args: &[LaunchArg]) -> Result<FunctionId, DeviceError>;
}

/// The driver of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverVersion {
    /// The driver's own version, for example `580.159.04`; `None` where it cannot be read.
    pub version: Option<String>,
    /// The CUDA version that the driver supports, for example `(13, 0)`.
    pub cuda: (u32, u32),
}

/// What a batch that was not timed reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunReport {
    /// Output of `printf`, where the device captures it.
    pub printed: String,
    /// Notes of the device about the kernels, a line each.
    pub notes: Vec<Note>,
}

/// What a batch that was counted reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CountReport {
    /// What the kernels printed, and notes.
    pub run: RunReport,
    /// Counts of one repetition; `None` where a profiler counts instead.
    pub counters: Option<BodyCounters>,
    /// Counts of one repetition per line of the PTX, if [`Device::count_lines`] asked for them.
    pub lines: Vec<LineCounts>,
}

/// The times that a batch took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// The time of each sample, in order.
    pub times: Vec<Timing>,
    /// Nanoseconds of each repetition by the reference clock, from the begin of its first operation to the end of its
    /// last; empty without a reference clock, and where it cannot tell.
    pub reference: Vec<f64>,
    /// What was found out about how the samples were taken, a line each.
    pub notes: Vec<Note>,
}

/// A reading of the device's energy counter while work runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyReading {
    /// Seconds since the work began.
    pub at: f64,
    /// The energy that was used since an arbitrary moment before.
    pub energy: Joules,
    /// How many runs of the body were completed.
    pub runs: u64,
}

/// Times of one run of the body in nanoseconds, the mean over the runs of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// The time that the whole body took.
    pub whole: f64,
    /// One per step; empty for a single step, and where runs follow each other without events between them.
    pub each: Vec<f64>,
}
