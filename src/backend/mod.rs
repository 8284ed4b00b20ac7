//! The seam between running cases and the machine that executes kernels.
//!
//! A [`Backend`] lists and opens devices; a [`Device`] loads compiled code, holds memory and runs batches. `execute`
//! drives a device through these traits alone and asks [`Capabilities`](crate::model::Capabilities) where devices
//! differ. The seam refuses to judge results: poison, guard patterns and checks are `execute`'s.

use std::time::Duration;

use crate::model::{
    Allocation, BodyCounters, Capabilities, Compiled, DeviceId, DeviceInfo, DeviceState, Dim3, Joules, KernelResources,
    Occupancy, Regime, ScalarValue, Settings,
};

pub mod cuda;
pub mod fake;
pub mod sim;

/// Opens devices of one kind.
pub trait Backend: std::fmt::Debug {
    /// Every device of the kind, in the driver's order.
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError>;

    /// Opens a device for use by this process.
    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError>;
}

/// A loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// A kernel of a loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u32);

/// A host function of a loaded plug-in, made ready for its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// A stretch of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// An opened device. Every call is synchronous: when it returns, the device is idle.
pub trait Device: std::fmt::Debug {
    fn info(&self) -> &DeviceInfo;

    /// The device's UUID, where it has one.
    fn uuid(&self) -> Option<String> {
        None
    }

    /// Takes `nanoseconds` off every interval that its clock reads from now on: what the clock reads of itself.
    /// A device without a clock has nothing to correct.
    fn calibrate(&mut self, nanoseconds: f64) {
        let _ = nanoseconds;
    }

    /// Who else takes the times of its kernels; `None` without such a witness.
    fn reference_clock(&self) -> Option<String> {
        None
    }

    /// How the device is set, or why nobody can tell.
    fn settings(&self) -> Result<Settings, String> {
        Err("the device has no settings".to_owned())
    }

    /// What the device does at the moment; `None` where nobody can tell.
    fn state(&mut self) -> Option<DeviceState> {
        None
    }

    /// Processes that have the device open besides this one, where they can be counted.
    fn other_processes(&self) -> Option<u32> {
        None
    }

    /// The driver's version and the CUDA version it speaks; `None` for a device without a driver.
    fn driver(&self) -> Option<DriverVersion>;

    /// How this device takes times, in one sentence for the environment; `None` without a clock.
    fn timing_method(&self) -> Option<String>;

    /// Whether the host's speed stays out of the device's times: what is timed is queued before it starts.
    fn shuts_out_host(&self) -> bool {
        false
    }

    fn capabilities(&self) -> Capabilities {
        self.info().capabilities
    }

    /// Whether a profiler watches this process: what [`Self::run_counted`] launches stands between marks for it.
    fn marks_launches(&self) -> bool {
        false
    }

    /// The step in which the clock advances, nanoseconds; `None` where readings are exact.
    fn tick(&self) -> Option<f64> {
        None
    }

    /// Loads a cubin or PTX, eagerly: no later launch pays for it; or a plug-in, where the device has host functions.
    fn load(&mut self, code: &Compiled) -> Result<ModuleId, DeviceError>;

    /// A module of this program's own, PTX: loaded when first asked for, the same for the same text, there as long as
    /// the device. `None` for a device that runs no PTX.
    fn own(&mut self, ptx: &'static str) -> Result<Option<ModuleId>, DeviceError> {
        let _ = ptx;
        Ok(None)
    }

    /// Lets so many launches from kernels be at a time, from now on; without a number, the device's default. For modules
    /// that are loaded afterwards, too.
    fn set_pending_launches(&mut self, count: Option<u32>) -> Result<(), DeviceError> {
        let _ = count;
        Ok(())
    }

    /// Frees a module and forgets its kernels, symbols and host functions.
    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError>;

    /// Finds a kernel by its mangled name.
    fn kernel(&mut self, module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError>;

    /// Finds a host function of a plug-in and lets it make itself ready for these arguments, which costs no measured
    /// time. Every call of it has the same scalars and buffers of the same sizes.
    fn host_function(&mut self, module: ModuleId, name: &str, args: &[LaunchArg]) -> Result<FunctionId, DeviceError> {
        let _ = (module, args);
        Err(DeviceError::Unavailable(format!("`{name}` is a function of the host, and this device runs kernels only")))
    }

    /// Registers, shared and local memory as the device reports them.
    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError>;

    /// Theoretical occupancy of a launch with `threads` a block and `shared` bytes of dynamic shared memory.
    fn occupancy(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<Occupancy, DeviceError>;

    /// The block size with the most resident threads, for `shared` bytes of dynamic shared memory a block.
    fn best_block(&self, kernel: KernelId, shared: u32) -> Result<u32, DeviceError>;

    /// Allocates `bytes` of memory between two zones of `guard` bytes each. Contents are undefined.
    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError>;

    /// Says what a buffer is called, for messages about it. A device that names no memory in messages forgets it.
    fn label(&mut self, buffer: BufferId, name: &str) {
        let _ = (buffer, name);
    }

    /// The memory of a `__device__` variable, by its mangled name. It has no guard zones; freeing it only forgets it.
    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError>;

    /// Bytes of a buffer, guards not counted.
    fn size(&self, buffer: BufferId) -> usize;

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError>;

    /// Copies to the device, `offset` bytes into the buffer.
    fn upload(&mut self, buffer: BufferId, offset: usize, data: &[u8]) -> Result<(), DeviceError>;

    /// Copies from the device, `offset` bytes into the buffer.
    fn download(&mut self, buffer: BufferId, offset: usize, data: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes both guard zones with `byte`.
    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError>;

    /// The guard zones before and behind a buffer; empty where it has none.
    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError>;

    /// Runs `batch.repeat` times: prepare (untimed), bring the caches into the regime's state, then the timed runs.
    fn run(&mut self, batch: &Batch) -> Result<BatchReport, DeviceError>;

    /// As [`Self::run`] of an untimed batch, whose steps a profiler that watches may count.
    fn run_counted(&mut self, batch: &Batch) -> Result<BatchReport, DeviceError> {
        self.run(batch)
    }

    /// As [`Self::run_counted`], with everything that its kernels print in the report, also where a driver writes that
    /// elsewhere.
    fn run_heard(&mut self, batch: &Batch) -> Result<BatchReport, DeviceError> {
        self.run_counted(batch)
    }

    /// Ends what is launched from now on once that has passed, with [`DeviceError::TimedOut`]; false for a
    /// device that cannot, whose process its dispatcher ends.
    fn allow(&mut self, limit: Duration) -> bool {
        let _ = limit;
        false
    }

    /// Whether there is a counter of the energy that the device takes; if not, why.
    fn counts_energy(&self) -> Result<(), String> {
        Err("the device counts no energy".to_owned())
    }

    /// Runs the bodies of an untimed batch in turns, back to back and prepared once, until `heed` has enough: it hears the
    /// counter of energy again and again meanwhile. For a device that counts energy.
    fn run_metered(&mut self, batch: &Batch, heed: &mut dyn FnMut(EnergyLook) -> bool) -> Result<(), DeviceError> {
        let _ = (batch, heed);
        Err(DeviceError::Unavailable("the device counts no energy".to_owned()))
    }

    /// Free device memory, bytes, where the device knows.
    fn memory_free(&self) -> Option<u64>;
}

/// The driver of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverVersion {
    /// For example `580.159.04`; `None` where it cannot be read.
    pub version: Option<String>,
    /// For example `(13, 0)`.
    pub cuda: (u32, u32),
}

/// One body, ready to run some times.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Done before every repetition, outside the timed span.
    pub prepare: Vec<Prepare>,
    /// Timed together, and one by one.
    pub steps: Vec<Step>,
    pub regime: Regime,
    pub series: Series,
    /// Samples, or untimed runs.
    pub repeat: u32,
    /// Whether to time. An untimed batch runs the steps and reports only what they did.
    pub timed: bool,
}

/// What one sample of a timed batch is made of. An untimed batch has none of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Runs of the body that make a sample, at least 1; the sample is their mean. Cold ones are prepared and timed one
    /// by one; those of the other regimes stand back to back in one timed span, prepared once.
    pub launches: u32,
    /// The same steps on other sets of buffers: they take turns with the batch's own.
    pub others: Vec<Vec<Step>>,
    /// Runs before the timed span, outside of it, that bring the caches into the state which the span keeps.
    pub lead: u32,
    /// Buffers that each run allocates, uses in place of those that are there, and frees; only in the regime `host`,
    /// none of them twice.
    pub fresh: Vec<(BufferId, Allocation)>,
}

impl Default for Series {
    /// A sample is one run.
    fn default() -> Self {
        Self { launches: 1, others: Vec::new(), lead: 0, fresh: Vec::new() }
    }
}

/// Brings a buffer into its state before a launch.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepare {
    /// Every byte becomes `byte`.
    Fill { buffer: BufferId, byte: u8 },
    /// The whole of `to` becomes what `from` holds; equal sizes.
    Copy { from: BufferId, to: BufferId },
}

/// One timed operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Launch(Launch),
    /// A device-to-device copy of the whole of `from`.
    Copy {
        from: BufferId,
        to: BufferId,
    },
    /// A host function queues its work.
    Call(HostCall),
}

impl Step {
    /// Most operations that it queues: of a host function nobody knows, and those of a library queue a few.
    pub const fn operations(&self) -> usize {
        match self {
            Self::Launch(_) | Self::Copy { .. } => 1,
            Self::Call(_) => 8,
        }
    }
}

/// One call of a host function.
#[derive(Debug, Clone, PartialEq)]
pub struct HostCall {
    pub function: FunctionId,
    pub args: Vec<LaunchArg>,
}

/// One kernel launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    pub kernel: KernelId,
    pub grid: Dim3,
    pub block: Dim3,
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    pub cooperative: bool,
    pub args: Vec<LaunchArg>,
    /// Launches of one stream run one after the other, those of several may run beside each other; copies are in stream
    /// 0. A body begins in all of its streams at once and has ended when all of them have.
    pub stream: u32,
}

/// The streams that steps use: one more than the highest.
pub fn streams(steps: &[Step]) -> usize {
    let last = steps.iter().filter_map(|step| if let Step::Launch(launch) = step { Some(launch.stream) } else { None });
    1 + last.max().unwrap_or(0) as usize
}

/// Most operations that a device queues for a run of steps: those themselves, and what lets streams begin and end
/// together.
pub fn operations(steps: &[Step]) -> usize {
    let own: usize = steps.iter().map(Step::operations).sum();
    match streams(steps) {
        1 => own,
        // One mark of the beginning; on each other stream two waits and a mark.
        several => own + 1 + 3 * (several - 1),
    }
}

/// One kernel argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchArg {
    /// The buffer's address.
    Buffer(BufferId),
    Scalar(ScalarValue),
}

/// What a batch did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchReport {
    /// One a repetition, in order; empty for an untimed batch and for a device without a clock.
    pub samples: Vec<Timing>,
    /// Nanoseconds of each repetition, from the beginning of its first operation to the end of its last, as the device's
    /// witness has them; empty without one, and where it cannot tell.
    pub reference: Vec<f64>,
    /// Of one repetition, where the device counts.
    pub counters: Option<BodyCounters>,
    /// Device printf, where the device captures it itself.
    pub printed: String,
    /// Lints of the device's checker, and what it found out about how the samples were taken: each a line.
    pub notes: Vec<String>,
}

/// The device's counter of energy at some moment of its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyLook {
    /// Seconds since the work began.
    pub at: f64,
    /// What the device took since some moment long ago.
    pub energy: Joules,
    /// Runs of the body that are done.
    pub runs: u64,
}

/// Times of one run of the body, the mean over a sample's runs, in nanoseconds on the device's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    pub whole: f64,
    /// One a step; empty where there is a single step, and where runs stand back to back.
    pub each: Vec<f64>,
}

/// Why a device did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No driver, no device, or a device that cannot be opened; says what to do.
    #[error("{0}")]
    Unavailable(String),
    /// The launch asks for more than the device allows; nothing ran.
    #[error("{0}")]
    InvalidLaunch(String),
    #[error("{needed} bytes are needed, {available} are free on the device")]
    OutOfMemory { needed: u64, available: u64 },
    /// A kernel was aborted. After this the context is gone and the process must end.
    #[error("{0}")]
    ContextLost(String),
    /// A simulator's fault; the device lives on. `printed` is what the batch had printed by then.
    #[error("{message}")]
    Trap { message: String, printed: String },
    /// A kernel ran longer than it was [allowed](Device::allow) to. Says where it was; the device lives on.
    #[error("{message}")]
    TimedOut { limit: Duration, message: String, printed: String },
    /// Code that cannot be linked into something to load; the linker's words stand in `log`.
    #[error("{summary}")]
    NotLinked { summary: String, log: String },
    /// Any other refusal of the driver; the context lives on.
    #[error("{call}: {message}")]
    Driver { call: &'static str, message: String },
}

impl DeviceError {
    /// What the kernels of a failed batch had printed, where the device captures that.
    pub fn printed(&self) -> &str {
        match self {
            Self::Trap { printed, .. } | Self::TimedOut { printed, .. } => printed,
            _ => "",
        }
    }
}

/// The answer to a call of a function that was never found.
fn no_function(id: FunctionId) -> DeviceError {
    DeviceError::Driver { call: "lookup", message: format!("the device knows no host function {}", id.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(stream: u32) -> Step {
        let one = Dim3::new(1, 1, 1);
        let args = Vec::new();
        Step::Launch(Launch { kernel: KernelId(0), grid: one, block: one, shared: 0, cooperative: false, args, stream })
    }

    #[test]
    fn a_body_in_several_streams_queues_what_lets_them_begin_and_end_together() {
        let copy = || Step::Copy { from: BufferId(0), to: BufferId(1) };
        assert_eq!((streams(&[]), operations(&[])), (1, 0));
        let plain = [launch(0), copy(), launch(0)];
        assert_eq!((streams(&plain), operations(&plain)), (1, 3));
        // A mark, then on each of two streams a wait, and a mark for which the first one waits.
        let spread = [launch(0), launch(2), copy()];
        assert_eq!((streams(&spread), operations(&spread)), (3, 3 + 1 + 2 * 3));
    }
}
