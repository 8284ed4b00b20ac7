//! The traits that a backend implements.
//!
//! Every backend has a [`Device`]. Clocks, counters, monitors, energy meters and host functions are separate traits,
//! since a device may lack them.

use std::ops::Range;
use std::time::Duration;

use super::{Batch, BufferId, DeviceError, FunctionId, KernelId, LaunchArg, ModuleId, Prepare, Step, TimedBatch};
use runner_types::{
    BodyCounters, Compiled, DeviceId, DeviceInfo, DeviceState, Joules, KernelResources, LineCounts, Note, Occupancy,
    Settings, Unsanitized,
};

/// Opens devices of one kind.
pub trait Backend: std::fmt::Debug {
    /// All devices of the kind, in the driver's order.
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError>;

    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError>;
}

/// An open device: memory, code and launches. Every call is synchronous: it returns with the device idle.
pub trait Device: std::fmt::Debug {
    /// Properties of the device when it was opened.
    fn info(&self) -> &DeviceInfo;

    fn uuid(&self) -> Option<String>;

    fn driver(&self) -> Option<DriverVersion>;

    fn clock(&mut self) -> Option<&mut dyn Clock>;

    /// Counter of what kernels do; `None` if neither the device nor a profiler counts.
    fn counter(&mut self) -> Option<&mut dyn Counter>;

    /// Monitor of the hardware state, or the reason for having none.
    fn monitor(&mut self) -> Result<&mut dyn Monitor, String>;

    /// Energy meter, or the reason for having none.
    fn energy_meter(&mut self) -> Result<&mut dyn EnergyMeter, String>;

    /// Host functions of plug-ins; `None` if the device runs only kernels.
    fn host_functions(&mut self) -> Option<&mut dyn HostFunctions>;

    /// Loads compiled code or a plug-in eagerly, so that no later launch includes that cost.
    fn load(&mut self, code: &Compiled) -> Result<ModuleId, DeviceError>;

    /// Loads this program's own PTX, once per text, for the life of the device. `None` if the device does not run PTX.
    fn load_builtin(&mut self, ptx: &'static str) -> Result<Option<ModuleId>, DeviceError>;

    /// Frees a module with its kernels, symbols and host functions.
    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError>;

    /// Limits the pending device-side launches of this and later modules; `None` restores the device's default.
    fn set_pending_launches(&mut self, count: Option<u32>) -> Result<(), DeviceError>;

    fn kernel(&mut self, module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError>;

    /// Registers, shared and local memory, as the device reports them.
    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError>;

    /// Theoretical occupancy of a launch with `threads` threads and `shared` bytes of dynamic shared memory per block.
    fn occupancy(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<Occupancy, DeviceError>;

    /// Block size with the most resident threads, for `shared` bytes of dynamic shared memory per block.
    fn best_block(&self, kernel: KernelId, shared: u32) -> Result<u32, DeviceError>;

    /// Allocates `bytes` of undefined memory between two guard zones of at least `guard` bytes each.
    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError>;

    /// Names a buffer for the device's own messages.
    fn label(&mut self, buffer: BufferId, name: &str);

    /// Memory of a `__device__` variable, by mangled name. It has no guard zones, and freeing it only invalidates the
    /// id.
    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError>;

    /// Mangled names of the variables that a module's kernels can write and [`Self::symbol`] finds.
    fn variables(&mut self, module: ModuleId) -> Result<Vec<String>, DeviceError>;

    /// Size of a buffer in bytes, without guard zones; 0 if the id is unknown.
    fn size(&self, buffer: BufferId) -> usize;

    /// Frees the memory of a buffer; its id becomes invalid.
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

    /// Byte ranges that neither [`Self::upload`] nor a batch has written since [`Prepare::Undefine`] or the allocation,
    /// in order. `None` if the device does not record what launches write.
    fn unwritten(&self, _buffer: BufferId) -> Result<Option<Vec<Range<u64>>>, DeviceError> {
        Ok(None)
    }

    /// Frees the memory that kernels have allocated on the device and not freed. A GPU cannot do this, since its heap
    /// belongs to its context.
    fn clear_heap(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError>;

    /// Contents of the guard zones before and after a buffer; empty without guard zones.
    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError>;

    /// Free device memory in bytes, if known.
    fn memory_free(&self) -> Option<u64>;

    /// Runs a body `batch.repeat` times, each prepared first.
    fn run(&mut self, batch: &Batch) -> Result<RunReport, DeviceError>;

    /// Restricts what the simulator's sanitizer checks in later launches; by default it checks everything. Other
    /// devices have no sanitizer.
    fn set_unsanitized(&mut self, _unsanitized: Option<&Unsanitized>) {}

    /// Makes later launches of the simulator run only a sample of their blocks. Their report then has
    /// [`Note::Sampled`], unless the grid is small. Off by default; other devices always run all blocks.
    fn set_sampling(&mut self, _is_on: bool) {}

    /// Makes later launches of the simulator count per PTX line: see [`CountReport::lines`]. Off by default and on
    /// other devices.
    fn count_lines(&mut self, _is_on: bool) {}

    /// Iterations of the last run's last loop; 0 before the first loop.
    fn iterations(&self) -> u32;

    /// Limits the run time of later launches: a longer one ends with [`DeviceError::TimedOut`]. Returns false if the
    /// device cannot end a kernel, so that its process must be killed.
    fn set_time_limit(&mut self, limit: Duration) -> bool;
}

/// Measures times on a device.
pub trait Clock {
    /// How times are measured, as a sentence for the report's environment.
    fn method(&self) -> String;

    /// Resolution in nanoseconds; `None` if readings are exact.
    fn tick(&self) -> Option<f64>;

    /// Number of consecutive runs in which a short kernel's time takes all its values, because the hardware starts each
    /// launch in a different place; 1 if it always starts in the same place.
    fn cycle(&self) -> u32;

    /// Nanoseconds from one empty launch to the next if they are queued back to back; no kernel can follow another
    /// faster. `None` if launches take no time.
    fn launch_interval(&mut self) -> Result<Option<f64>, DeviceError> {
        Ok(None)
    }

    /// Whether times exclude host latency, because work is queued before it starts.
    fn excludes_host(&self) -> bool;

    /// Subtracts `nanoseconds`, the clock's own overhead, from every later interval.
    fn calibrate(&mut self, nanoseconds: f64);

    /// Name of the reference clock that also records kernels in this process, if any.
    fn reference_clock(&self) -> Option<String>;

    /// Takes `batch.samples` samples: prepare (untimed), bring the caches into the regime's state, then the timed runs.
    fn time(&mut self, batch: &TimedBatch) -> Result<Samples, DeviceError>;
}

/// Counts what kernels do.
pub trait Counter {
    /// Like [`Device::run`], with counts.
    fn count(&mut self, batch: &Batch) -> Result<CountReport, DeviceError>;

    /// Whether a profiler outside this process does the counting. [`Self::count`] then only marks the launches for it.
    fn marks_launches(&self) -> bool;
}

/// Observes the state of the hardware.
pub trait Monitor {
    fn settings(&self) -> Settings;

    /// Current clocks, temperature and reasons for throttling.
    fn state(&mut self) -> DeviceState;

    /// Number of other processes that have the device open; `None` if they cannot be counted.
    fn other_processes(&self) -> Option<u32>;
}

/// Reads a device's energy counter while work runs.
pub trait EnergyMeter {
    /// Prepares once, then runs the bodies in rotation, back to back, until `continues` returns false. It is called
    /// repeatedly with a reading of the energy counter.
    fn run_metered(
        &mut self,
        prepare: &[Prepare],
        bodies: &[&[Step]],
        continues: &mut dyn FnMut(EnergyReading) -> bool,
    ) -> Result<(), DeviceError>;
}

/// Calls functions of plug-ins on the host.
pub trait HostFunctions {
    /// Finds a function of a plug-in and lets it prepare for these arguments, outside the measured time. Every later
    /// call then has the same scalars and buffers of the same sizes.
    fn host_function(&mut self, module: ModuleId, name: &str, args: &[LaunchArg]) -> Result<FunctionId, DeviceError>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverVersion {
    /// Version of the driver, e.g. `580.159.04`; `None` if unreadable.
    pub version: Option<String>,
    /// CUDA version that the driver supports, e.g. `(13, 0)`.
    pub cuda: (u32, u32),
}

/// Report of an untimed batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunReport {
    /// Output of `printf`, if the device captures it.
    pub printed: String,
    /// The device's notes about the kernels.
    pub notes: Vec<Note>,
}

/// Report of a counted batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CountReport {
    pub run: RunReport,
    /// Counts of one repetition; `None` if a profiler counts instead.
    pub counters: Option<BodyCounters>,
    /// Counts of one repetition per PTX line, if [`Device::count_lines`] requested them.
    pub lines: Vec<LineCounts>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples {
    /// Time of each sample, in order.
    pub times: Vec<Timing>,
    /// Nanoseconds of each repetition by the reference clock, from the start of its first operation to the end of its
    /// last; empty if there is no reference clock or it cannot measure them.
    pub reference: Vec<f64>,
    /// Notes about how the samples were taken.
    pub notes: Vec<Note>,
}

/// A reading of the device's energy counter while work runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyReading {
    /// Seconds since the work began.
    pub at: f64,
    /// Energy consumed since an arbitrary earlier time.
    pub energy: Joules,
    /// Completed runs of the body.
    pub runs: u64,
}

/// Nanoseconds of one run of the body, averaged over the runs of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Time of the whole body.
    pub whole: f64,
    /// Time of each step; empty for a single step, and if no events separate consecutive runs.
    pub each: Vec<f64>,
}
