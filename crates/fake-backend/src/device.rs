//! The fake device: runs host functions as kernels and records every operation for tests to inspect.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Call, FakeKernel, Memory};
use runner_backend::{
    Batch, BufferId, Clock, CountReport, Counter, Device, DeviceError, DriverVersion, EnergyMeter, HostCall,
    HostFunctions, KernelId, Launch, Loop, ModuleId, Monitor, Prepare, RunReport, Step, TimedBatch, Timing,
};
use runner_types::{
    Allocation, Capabilities, Compiled, Counters, DeviceInfo, DeviceState, Dim3, KernelResources, Occupancy, Regime,
};

/// An open fake device. Every loaded module has all of its kernels and variables.
#[derive(Debug, Clone)]
pub struct FakeDevice {
    info: DeviceInfo,
    kernels: Vec<(String, FakeKernel, u32)>,
    symbols: BTreeMap<String, usize>,
    variables: BTreeMap<(ModuleId, String), BufferId>,
    modules: u32,
    memory: Memory,
    lost: Option<String>,
    pub(super) launched: Vec<String>,
    /// Number of launches before each counted batch; `None` without a profiler.
    pub(super) counted: Option<Vec<usize>>,
    uploaded: Vec<usize>,
    allocated: Vec<usize>,
    /// Buffers that timed runs allocated themselves: bytes and kind of allocation.
    fresh: Vec<(usize, Allocation)>,
    /// Clock overhead, in nanoseconds.
    pub(super) overhead: f64,
    pub(super) subtracted: f64,
    pub(super) reference: Option<String>,
    /// States that successive readings return; the last one repeats.
    pub(super) states: Vec<DeviceState>,
    pub(super) looks: usize,
    pub(super) tick: Option<f64>,
    /// Interval in seconds at which the energy counter advances, and its increment in joules.
    pub(super) energy: Option<(f64, f64)>,
    /// Time limits so far; `None` for a device that cannot end kernels.
    limits: Option<Vec<Duration>>,
    iterations: u32,
}

impl FakeDevice {
    pub fn new(info: DeviceInfo) -> Self {
        let memory = Memory::new(info.memory_bytes.0);
        Self {
            info,
            memory,
            kernels: Vec::new(),
            symbols: BTreeMap::new(),
            variables: BTreeMap::new(),
            modules: 0,
            lost: None,
            launched: Vec::new(),
            counted: None,
            uploaded: Vec::new(),
            allocated: Vec::new(),
            fresh: Vec::new(),
            overhead: 0.0,
            subtracted: 0.0,
            reference: None,
            states: Vec::new(),
            looks: 0,
            tick: None,
            energy: None,
            limits: None,
            iterations: 0,
        }
    }

    /// Makes the device enforce time limits itself: kernel bodies decide when they are exceeded.
    #[must_use]
    pub fn that_ends_kernels(mut self) -> Self {
        self.limits = Some(Vec::new());
        self
    }

    /// Time limits of all steps so far, in order.
    pub fn limits(&self) -> &[Duration] {
        self.limits.as_deref().unwrap_or_default()
    }

    /// Adds a kernel with this mangled name to every module.
    #[must_use]
    pub fn with_kernel(mut self, mangled: &str, kernel: FakeKernel) -> Self {
        self.kernels.push((mangled.to_owned(), kernel, 0));
        self
    }

    /// Adds a variable with this mangled name and size to every module.
    #[must_use]
    pub fn with_symbol(mut self, mangled: &str, bytes: usize) -> Self {
        self.symbols.insert(mangled.to_owned(), bytes);
        self
    }

    /// Puts the device under a profiler, so that it has no clock.
    #[must_use]
    pub fn watched(mut self) -> Self {
        self.info.capabilities = Capabilities { has_clock: false, has_counters: true };
        self.counted = Some(Vec::new());
        self
    }

    /// Number of launches before each batch that the profiler counted.
    pub fn counted(&self) -> &[usize] {
        self.counted.as_deref().unwrap_or_default()
    }

    /// Adds `nanoseconds` to every clock reading.
    #[must_use]
    pub fn with_overhead(mut self, nanoseconds: f64) -> Self {
        self.overhead = nanoseconds;
        self
    }

    /// Sets the states that successive readings return; the last one repeats. Without states there is no monitor.
    #[must_use]
    pub fn in_states(mut self, states: Vec<DeviceState>) -> Self {
        self.states = states;
        self
    }

    /// Adds a reference clock with this name and no overhead.
    #[must_use]
    pub fn with_reference_clock(mut self, name: &str) -> Self {
        self.reference = Some(name.to_owned());
        self
    }

    /// Makes the clock report a resolution; its readings ignore it.
    #[must_use]
    pub fn with_tick(mut self, nanoseconds: f64) -> Self {
        self.tick = Some(nanoseconds);
        self
    }

    /// Adds an energy counter that gains `watts`, in steps of `step` seconds.
    #[must_use]
    pub fn with_energy(mut self, watts: f64, step: f64) -> Self {
        self.energy = Some((step, watts * step));
        self
    }

    /// Mangled names of all launches so far, in order.
    pub fn launched(&self) -> &[String] {
        &self.launched
    }

    /// Sizes of all uploads so far in bytes, in order.
    pub fn uploaded(&self) -> &[usize] {
        &self.uploaded
    }

    /// Sizes of all allocations so far in bytes, without guard zones, in order.
    pub fn allocated(&self) -> &[usize] {
        &self.allocated
    }

    /// Buffers that timed runs allocated themselves, in order: bytes and kind of allocation.
    pub fn fresh(&self) -> &[(usize, Allocation)] {
        &self.fresh
    }

    pub(super) fn alive(&self) -> Result<(), DeviceError> {
        self.lost.as_ref().map_or(Ok(()), |message| Err(DeviceError::ContextLost(message.clone())))
    }

    pub(super) fn prepare(&mut self, prepare: &Prepare) -> Result<(), DeviceError> {
        match prepare {
            Prepare::Fill { buffer, byte } | Prepare::Undefine { buffer, byte } => {
                self.memory.data_mut(*buffer).map(|data| data.fill(*byte))
            }
            Prepare::Copy { from, to } => self.copy(*from, *to),
        }
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), DeviceError> {
        let source = self.memory.data(from)?.to_vec();
        let target = self.memory.data_mut(to)?;
        if source.len() != target.len() {
            let message = format!("{} bytes do not fit {}", source.len(), target.len());
            return Err(DeviceError::Driver { call: "copy", message });
        }
        target.copy_from_slice(&source);
        Ok(())
    }

    /// Runs a launch; returns its time in nanoseconds.
    fn launch(&mut self, launch: &Launch, report: &mut CountReport) -> Result<f64, DeviceError> {
        let unknown = || DeviceError::Driver { call: "launch", message: "there is no such kernel".to_owned() };
        let (name, kernel, count) = self.kernels.get_mut(launch.kernel.0 as usize).ok_or_else(unknown)?;
        let threads = launch.block.count();
        if threads > u64::from(self.info.max_threads_per_block) {
            return Err(DeviceError::InvalidLaunch(format!("{threads} threads per block are too many")));
        }
        self.launched.push(name.clone());
        let mut call = Call {
            memory: &mut self.memory,
            variables: &self.variables,
            args: &launch.args,
            grid: launch.grid,
            block: launch.block,
            nth: *count,
            printed: String::new(),
            notes: Vec::new(),
            counters: Counters::default(),
        };
        *count += 1;
        let done = (kernel.body)(&mut call);
        report.run.printed.push_str(&call.printed);
        report.run.notes.append(&mut call.notes);
        if self.info.capabilities.has_counters {
            let counters = report.counters.get_or_insert_default();
            for (name, count) in call.counters.0 {
                *counters.whole.0.entry(name).or_default() += count;
            }
        }
        if let Err(DeviceError::ContextLost(message)) = &done {
            self.lost = Some(message.clone());
        }
        done.map(|()| (kernel.nanoseconds)(*count - 1))
    }

    /// Runs a host function, which is a kernel under another name; returns its time in nanoseconds.
    fn call(&mut self, call: &HostCall, report: &mut CountReport) -> Result<f64, DeviceError> {
        let kernel = KernelId(call.function.0);
        if self.kernels.get(kernel.0 as usize).is_none() {
            return Err(DeviceError::unknown_function(call.function));
        }
        let (grid, block) = (Dim3::new(1, 1, 1), Dim3::new(1, 1, 1));
        self.launch(&Launch::new(kernel, grid, block, call.args.clone()), report)
    }

    /// Mean time of a sample's runs; cold runs are prepared one by one.
    pub(super) fn sample(&mut self, batch: &TimedBatch, report: &mut CountReport) -> Result<Timing, DeviceError> {
        let bodies: Vec<&Vec<Step>> = batch.sets().collect();
        let fresh: Vec<_> = batch.series.fresh.iter().map(|(buffer, how)| (self.size(*buffer), *how)).collect();
        self.fresh.extend(fresh);
        let lead = batch.series.lead as usize;
        let first = (bodies.len() - lead % bodies.len()) % bodies.len();
        for body in bodies.iter().cycle().skip(first).take(lead) {
            self.steps(body, report)?;
        }
        let launches = batch.series.launches.max(1);
        let mut mean = Timing { whole: 0.0, each: Vec::new() };
        for (run, body) in bodies.iter().cycle().take(launches as usize).enumerate() {
            if run > 0 && batch.regime == Regime::Cold {
                batch.prepare.iter().try_for_each(|prepare| self.prepare(prepare))?;
            }
            let timing = self.steps(body, report)?;
            mean.whole += timing.whole / f64::from(launches);
            mean.each.resize(timing.each.len(), 0.0);
            mean.each.iter_mut().zip(&timing.each).for_each(|(sum, each)| *sum += each / f64::from(launches));
        }
        if batch.regime != Regime::Cold || batch.series.whole_only {
            mean.each.clear();
        }
        Ok(mean)
    }

    pub(super) fn steps(&mut self, steps: &[Step], report: &mut CountReport) -> Result<Timing, DeviceError> {
        let mut each = Vec::with_capacity(steps.len());
        for step in steps {
            each.push(match step {
                Step::Launch(launch) => self.launch(launch, report)?,
                Step::Copy { from, to } => {
                    self.copy(*from, *to)?;
                    if self.size(*from) == 0 { 0.0 } else { 1000.0 }
                }
                Step::Call(call) => self.call(call, report)?,
                Step::Memset { buffer, value } => {
                    let size = value.element.size();
                    let target = self.memory.data_mut(*buffer)?;
                    target.chunks_mut(size).for_each(|place| place.copy_from_slice(&value.bits.to_le_bytes()[..size]));
                    1000.0
                }
                Step::Loop(inner) => self.repeated(inner, report)?,
            });
        }
        let whole = each.iter().sum();
        if each.len() == 1 {
            each.clear();
        }
        Ok(Timing { whole, each })
    }
}

impl FakeDevice {
    /// Runs a loop; returns its time in nanoseconds.
    fn repeated(&mut self, inner: &Loop, report: &mut CountReport) -> Result<f64, DeviceError> {
        let mut whole = 0.0;
        let mut values = Vec::new();
        for nth in 0..inner.at_most {
            let Some(iteration) = inner.iteration(nth) else { return Ok(whole) };
            whole += self.steps(&iteration.steps, report)?.whole;
            values.clear();
            for read in &iteration.until.reads {
                let mut word = [0; size_of::<u64>()];
                let size = read.element.size();
                word[..size].copy_from_slice(&self.memory.data(read.buffer)?[..size]);
                values.push(u64::from_le_bytes(word));
            }
            self.iterations = nth + 1;
            if iteration.until.holds(&values)? {
                return Ok(whole);
            }
        }
        let last = inner.at_most.checked_sub(1).and_then(|last| inner.iteration(last));
        last.map_or(Ok(whole), |last| Err(last.until.never_held(inner.at_most, &values)))
    }

    pub(super) fn run_batch(&mut self, batch: &Batch) -> Result<CountReport, DeviceError> {
        self.alive()?;
        let mut report = CountReport::default();
        for _ in 0..batch.repeat {
            report.counters = None;
            batch.prepare.iter().try_for_each(|prepare| self.prepare(prepare))?;
            self.steps(&batch.steps, &mut report)?;
        }
        Ok(report)
    }

    /// Clock readings for the actual kernel times.
    pub(super) fn as_read(&self, taken: Timing) -> Timing {
        let read = |nanoseconds: f64| nanoseconds + self.overhead - self.subtracted;
        Timing { whole: read(taken.whole), each: taken.each.into_iter().map(read).collect() }
    }
}

impl Device for FakeDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn uuid(&self) -> Option<String> {
        None
    }

    fn driver(&self) -> Option<DriverVersion> {
        None
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        if self.info.capabilities.has_clock { Some(self) } else { None }
    }

    fn counter(&mut self) -> Option<&mut dyn Counter> {
        if self.info.capabilities.has_counters { Some(self) } else { None }
    }

    fn monitor(&mut self) -> Result<&mut dyn Monitor, String> {
        if self.states.is_empty() { Err("the fake device has no states".to_owned()) } else { Ok(self) }
    }

    fn energy_meter(&mut self) -> Result<&mut dyn EnergyMeter, String> {
        if self.energy.is_none() { Err("the fake device does not measure energy".to_owned()) } else { Ok(self) }
    }

    fn host_functions(&mut self) -> Option<&mut dyn HostFunctions> {
        Some(self)
    }

    fn load(&mut self, _code: &Compiled) -> Result<ModuleId, DeviceError> {
        self.alive()?;
        self.modules += 1;
        Ok(ModuleId(self.modules))
    }

    fn load_builtin(&mut self, _ptx: &'static str) -> Result<Option<ModuleId>, DeviceError> {
        Ok(None)
    }

    fn set_pending_launches(&mut self, _count: Option<u32>) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Error messages of this device do not name buffers.
    fn label(&mut self, _buffer: BufferId, _name: &str) {}

    fn unload(&mut self, _module: ModuleId) -> Result<(), DeviceError> {
        self.alive()
    }

    fn kernel(&mut self, _module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError> {
        self.alive()?;
        let place = self.kernels.iter().position(|(name, ..)| name == mangled);
        let missing = || DeviceError::Driver { call: "kernel", message: format!("there is no kernel `{mangled}`") };
        place.map(|place| KernelId(place as u32)).ok_or_else(missing)
    }

    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError> {
        self.alive()?;
        Ok(self.kernels.get(kernel.0 as usize).map(|(_, k, _)| k.resources).unwrap_or_default())
    }

    /// Only the thread count limits the occupancy.
    fn occupancy(&self, _kernel: KernelId, threads: u32, _shared: u32) -> Result<Occupancy, DeviceError> {
        self.alive()?;
        let most = self.info.max_threads_per_sm;
        let blocks_per_sm = (most / threads.max(1)).min(self.info.max_blocks_per_sm);
        let fraction = f64::from(blocks_per_sm * threads) / f64::from(most);
        Ok(Occupancy { blocks_per_sm, fraction, limiter: None })
    }

    fn best_block(&self, _kernel: KernelId, _shared: u32) -> Result<u32, DeviceError> {
        self.alive()?;
        Ok(256)
    }

    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError> {
        self.alive()?;
        self.allocated.push(bytes);
        self.memory.alloc(bytes, guard)
    }

    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError> {
        self.alive()?;
        let missing = || DeviceError::Driver { call: "symbol", message: format!("there is no variable `{mangled}`") };
        let bytes = *self.symbols.get(mangled).ok_or_else(missing)?;
        let key = (module, mangled.to_owned());
        if let Some(id) = self.variables.get(&key) {
            return Ok(*id);
        }
        let id = self.memory.alloc(bytes, 0)?;
        self.variables.insert(key, id);
        Ok(id)
    }

    fn variables(&mut self, _module: ModuleId) -> Result<Vec<String>, DeviceError> {
        self.alive()?;
        Ok(self.symbols.keys().cloned().collect())
    }

    fn size(&self, buffer: BufferId) -> usize {
        self.memory.data(buffer).map_or(0, <[u8]>::len)
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        self.alive()?;
        if self.variables.values().any(|id| *id == buffer) {
            return Ok(());
        }
        self.memory.release(buffer)
    }

    fn upload(&mut self, buffer: BufferId, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        self.alive()?;
        let target = self.memory.data_mut(buffer)?;
        let place = target.get_mut(offset..offset + data.len()).ok_or_else(|| outside("upload"))?;
        place.copy_from_slice(data);
        self.uploaded.push(data.len());
        Ok(())
    }

    fn download(&mut self, buffer: BufferId, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        self.alive()?;
        let source = self.memory.data(buffer)?;
        data.copy_from_slice(source.get(offset..offset + data.len()).ok_or_else(|| outside("download"))?);
        Ok(())
    }

    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError> {
        self.alive()?;
        self.memory.write_guards(buffer, byte)
    }

    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        self.alive()?;
        self.memory.guards(buffer).map(|(before, behind)| (before.to_vec(), behind.to_vec()))
    }

    fn run(&mut self, batch: &Batch) -> Result<RunReport, DeviceError> {
        self.run_batch(batch).map(|report| report.run)
    }

    fn iterations(&self) -> u32 {
        self.iterations
    }

    fn set_time_limit(&mut self, limit: Duration) -> bool {
        self.limits.as_mut().map(|limits| limits.push(limit)).is_some()
    }

    fn memory_free(&self) -> Option<u64> {
        Some(self.memory.free_bytes())
    }
}

fn outside(call: &'static str) -> DeviceError {
    DeviceError::Driver { call, message: "past the end of the buffer".to_owned() }
}
