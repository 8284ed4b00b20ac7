//! An open GPU: the [`Device`] of this backend, which assigns ids to modules, kernels and buffers.
//!
//! Every public call makes the device's context current and returns with the device idle. After
//! [`DeviceError::ContextLost`] every further call fails: the process must exit.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::Cuda;
use super::attributes::{self, Listed};
use super::cupti::Tracer;
use super::driver::{api, version};
use super::handles::{Context, Module, Stream};
use super::limits::ContextLimits;
use super::link;
use super::memory::{self, Buffer};
use super::nvml::Gpu;
use super::occupancy::{self, Limits};
use super::operation::{Lanes, Operation};
use super::plugin::Plugin;
use super::prepare::Preparer;
use super::printed::Capture;
use super::table::Table;
use super::timing::Timer;
use super::transfer::Staging;
use super::work::{self, Run, Work};
use crate::variables;
use crate::{
    Batch, BufferId, Clock, Counter, Device, DeviceError, DriverVersion, EnergyMeter, FunctionId, HostFunctions,
    KernelId, LaunchArg, ModuleId, Monitor, Prepare, RunReport, Step,
};
use runner_types::{Bytes, Capabilities, CodeKind, Compiled, DeviceInfo, KernelResources, Note, Occupancy};

/// The driver's default limit of pending device-side launches.
const PENDING_LAUNCHES: u32 = 2048;

/// Note for a report whose launches copy arrays within the measured time.
const COPIED: &str = "each launch copies texture or surface arrays, because the case also uses the buffers in another \
                      way; the time includes the copies";

/// A GPU, used through its primary context. Fields drop in this order, so the context drops last.
#[derive(Debug)]
pub(super) struct CudaDevice {
    pub(super) info: DeviceInfo,
    uuid: Option<String>,
    driver: DriverVersion,
    pub(super) timer: Timer,
    pub(super) tracer: Option<Tracer>,
    /// NVML, or the reason why it cannot be used.
    pub(super) monitor: Result<Gpu, String>,
    staging: Staging,
    /// This program's own modules, by their source text.
    own: Vec<(&'static str, ModuleId)>,
    pub(super) table: Table,
    pub(super) preparer: Preparer,
    /// Limit of pending launches; `None` for the driver's default.
    pending_launches: Option<u32>,
    pub(super) lanes: Lanes,
    pub(super) stream: Stream,
    pub(super) context: Context,
    pub(super) limits: ContextLimits,
    observed: Cuda,
}

impl CudaDevice {
    /// Retains the primary context and allocates what transfers and measurements need. Inside a profiler or
    /// compute-sanitizer, the device has no clock. With a tracer, both clocks time its kernels.
    pub fn open(listed: Listed, observed: Cuda, tracer: Option<Tracer>) -> Result<Self, DeviceError> {
        let Listed { raw, id, mut info } = listed;
        let context = Context::retain(raw)?;
        let stream = Stream::new()?;
        let staging = Staging::new()?;
        let timer = Timer::new(&context, &stream, raw, &info)?;
        let preparer = Preparer::new(&info)?;
        info.memory_free = Some(Bytes(context.memory()?.0));
        let (has_clock, has_counters) = (observed.has_clock(), observed == Cuda::Profiled);
        if !has_clock {
            info.capabilities = Capabilities { has_clock, has_counters };
        }
        let (driver, table, limits) = (version(api()?), Table::default(), ContextLimits::keep(&stream));
        let monitor = attributes::pci_bus_id(raw).map_err(|e| e.to_string()).and_then(|pci| Gpu::open(&pci));
        Ok(Self {
            info,
            uuid: id.uuid,
            driver,
            timer,
            tracer,
            monitor,
            staging,
            own: Vec::new(),
            table,
            preparer,
            pending_launches: None,
            lanes: Lanes::default(),
            stream,
            context,
            limits,
            observed,
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, DeviceError> {
    let message = |error| format!("cannot read {}: {error}", path.display());
    fs::read(path).map_err(|error| DeviceError::Driver { call: "cuModuleLoadDataEx", message: message(error) })
}

/// Compiled code in the form that the driver loads: PTX is NUL-terminated.
fn image(code: &Compiled) -> Result<Vec<u8>, DeviceError> {
    let mut image = read(&code.code)?;
    if code.kind == CodeKind::Ptx {
        image.push(0);
    }
    Ok(image)
}

/// Resolves the ids in the preparation and in one body per set of buffers. Adds array copies, which run once, before
/// the first body and after the last.
pub(super) fn resolved<'a, 's>(
    (table, preparer, lanes): (&'a Table, &'a Preparer, &'a Lanes),
    info: &DeviceInfo,
    prepare: &[Prepare],
    sets: impl Iterator<Item = &'s [Step]>,
) -> Result<Work<'a>, DeviceError> {
    let (mut work, mut loads) = (Work::default(), Vec::new());
    work.prepare = table.prepare_all(prepare, preparer)?;
    for steps in sets {
        let views = table.views(steps)?;
        let operations = steps.iter().map(|step| table.step(info, step, &views)).collect::<Result<Vec<_>, _>>()?;
        work.bodies.push(lanes.arrange(steps, operations));
        for (load, store) in table.array_copies(&views.steady())? {
            if !loads.contains(&load) {
                work.finish.extend(store.map(Operation::Array));
                loads.push(load);
            }
        }
    }
    work.prepare.extend(loads.into_iter().map(Operation::Array));
    Ok(work)
}

impl CudaDevice {
    /// Runs each repetition of a batch with `once`.
    pub(super) fn run_batch(&mut self, batch: &Batch, once: Run) -> Result<RunReport, DeviceError> {
        self.context.enter()?;
        self.lanes.provide(&batch.steps)?;
        let Self { table, preparer, stream, lanes, info, limits, context, .. } = self;
        let sets = std::iter::once(batch.steps.as_slice());
        let work = resolved((table, preparer, lanes), info, &batch.prepare, sets)?;
        let capture = if batch.capture_printf { Some(Capture::begin()?) } else { None };
        let done = (0..batch.repeat).try_for_each(|_| once(&work, stream));
        let done = done.and_then(|()| limits.settle_after(work.functions(), (context, stream)));
        let printed = match (capture, &done) {
            (Some(capture), Ok(())) => capture.end()?,
            (Some(capture), Err(_)) => {
                capture.pass_on();
                String::new()
            }
            (None, _) => String::new(),
        };
        let has_loop = batch.steps.iter().any(|step| matches!(step, Step::Loop(_)));
        let copies = work.bodies.iter().flatten().any(Operation::copies_arrays);
        let copies = copies.then_some(COPIED);
        let notes = has_loop.then(|| table.loops.note()).into_iter();
        let notes = notes.chain(copies.map(|text| Note::Text(text.to_owned()))).collect();
        done.map(|()| RunReport { printed, notes })
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // The fields drop next and need the context. Without it, their memory is freed when the process exits.
        let _ = self.context.enter();
    }
}

impl Device for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn uuid(&self) -> Option<String> {
        self.uuid.clone()
    }

    fn driver(&self) -> Option<DriverVersion> {
        Some(self.driver.clone())
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        if self.observed.has_clock() { Some(self) } else { None }
    }

    fn counter(&mut self) -> Option<&mut dyn Counter> {
        if self.observed == Cuda::Profiled { Some(self) } else { None }
    }

    fn monitor(&mut self) -> Result<&mut dyn Monitor, String> {
        match &mut self.monitor {
            Ok(monitor) => Ok(monitor),
            Err(why) => Err(why.clone()),
        }
    }

    fn energy_meter(&mut self) -> Result<&mut dyn EnergyMeter, String> {
        self.monitor.as_ref().map_err(Clone::clone)?.energy()?;
        Ok(self)
    }

    fn host_functions(&mut self) -> Option<&mut dyn HostFunctions> {
        Some(self)
    }

    fn load(&mut self, code: &Compiled) -> Result<ModuleId, DeviceError> {
        self.context.enter()?;
        if code.kind == CodeKind::Plugin {
            return Plugin::load(&code.code).map(|plugin| self.table.add_plugin(plugin));
        }
        // List the variables before linking: the device runtime has its own variables.
        let original = image(code)?;
        let mut variables = variables::names(&original, code.kind);
        for part in code.parts.iter().skip(1) {
            variables.extend(variables::names(&read(&part.code)?, code.kind));
        }
        let image = match &code.device_runtime {
            Some(library) => {
                let maker = format!("{:?} {:?}", self.driver, self.info.compute_capability);
                link::image(code, library, &maker)?
            }
            None => original,
        };
        let module = Module::load(&image)?;
        // Looking a kernel up loads it, even if the driver loads lazily.
        for mangled in code.kernels.values() {
            module.function(mangled)?;
        }
        // The linker may have dropped a variable.
        let variables = variables.into_iter().filter(|name| module.global(name).is_ok()).collect();
        Ok(self.table.add_module(module, variables))
    }

    fn set_pending_launches(&mut self, count: Option<u32>) -> Result<(), DeviceError> {
        if count != self.pending_launches {
            self.context.set_pending_launches(count.unwrap_or(PENDING_LAUNCHES))?;
            self.pending_launches = count;
            self.limits = ContextLimits::keep(&self.stream);
        }
        Ok(())
    }

    fn load_builtin(&mut self, ptx: &'static str) -> Result<Option<ModuleId>, DeviceError> {
        if let Some((_, module)) = self.own.iter().find(|(text, _)| std::ptr::eq(*text, ptx)) {
            return Ok(Some(*module));
        }
        self.context.enter()?;
        let image = [ptx.as_bytes(), b"\0"].concat();
        let module = self.table.add_module(Module::load(&image)?, Vec::new());
        self.own.push((ptx, module));
        Ok(Some(module))
    }

    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        self.context.enter()?;
        self.timer.graphs.forget();
        self.table.remove_module(module)
    }

    fn kernel(&mut self, module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError> {
        self.context.enter()?;
        self.table.find_kernel(module, mangled)
    }

    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError> {
        Ok(self.table.kernel(kernel)?.resources())
    }

    fn occupancy(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<Occupancy, DeviceError> {
        self.context.enter()?;
        let kernel = self.table.kernel(kernel)?;
        let limits = Limits::new(&self.info, &kernel.facts, threads, shared);
        let blocks = if threads == 0 || limits.shared == 0 {
            0
        } else {
            kernel.opt_in(shared)?;
            kernel.resident_blocks(threads, shared)?
        };
        Ok(occupancy::summarise(&self.info, limits, threads, blocks))
    }

    fn best_block(&self, kernel: KernelId, shared: u32) -> Result<u32, DeviceError> {
        self.context.enter()?;
        let kernel = self.table.kernel(kernel)?;
        let one_warp = Limits::new(&self.info, &kernel.facts, self.info.warp_size, shared);
        if one_warp.shared == 0 {
            return Err(DeviceError::InvalidLaunch(format!(
                "{} bytes of shared memory per block, but the device allows {}",
                u64::from(kernel.facts.shared_static) + u64::from(shared),
                self.info.shared_per_block_optin
            )));
        }
        kernel.opt_in(shared)?;
        kernel.best_block(shared)
    }

    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError> {
        self.context.enter()?;
        let guard = if self.observed == Cuda::Memchecked { 0 } else { guard };
        let buffer = Buffer::alloc(&self.context, bytes, guard)?;
        Ok(self.table.add_buffer(buffer))
    }

    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError> {
        self.context.enter()?;
        let (address, bytes) = self.table.module(module)?.global(mangled)?;
        Ok(self.table.add_buffer(Buffer::variable(module, address, bytes)))
    }

    fn variables(&mut self, module: ModuleId) -> Result<Vec<String>, DeviceError> {
        Ok(self.table.variables(module))
    }

    fn size(&self, buffer: BufferId) -> usize {
        self.table.buffer(buffer).map_or(0, |buffer| buffer.bytes)
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        self.context.enter()?;
        self.timer.graphs.forget();
        self.table.remove_buffer(buffer)
    }

    fn upload(&mut self, buffer: BufferId, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        self.context.enter()?;
        let address = self.table.stretch(buffer, offset, data.len())?;
        self.staging.upload(&self.stream, address, data)
    }

    fn download(&mut self, buffer: BufferId, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        self.context.enter()?;
        let address = self.table.stretch(buffer, offset, data.len())?;
        self.staging.download(&self.stream, address, data)
    }

    fn download_all(&mut self, buffers: &[BufferId]) -> Result<Vec<Vec<u8>>, DeviceError> {
        self.context.enter()?;
        let places = buffers.iter().map(|id| self.table.buffer(*id)).collect::<Result<Vec<_>, _>>()?;
        let ranges: Vec<_> = places.iter().map(|buffer| (buffer.address, buffer.bytes)).collect();
        self.staging.download_each(&self.stream, &ranges)
    }

    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError> {
        self.context.enter()?;
        let buffer = self.table.buffer(buffer)?;
        for (address, bytes) in buffer.guards().into_iter().flatten() {
            memory::fill(&self.stream, address, byte, bytes)?;
        }
        self.stream.synchronize()
    }

    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        self.context.enter()?;
        let buffer = self.table.buffer(buffer)?;
        let Some([before, behind]) = buffer.guards() else { return Ok((Vec::new(), Vec::new())) };
        let mut zones = (vec![0; before.1], vec![0; behind.1]);
        self.staging.download(&self.stream, before.0, &mut zones.0)?;
        self.staging.download(&self.stream, behind.0, &mut zones.1)?;
        Ok(zones)
    }

    fn run(&mut self, batch: &Batch) -> Result<RunReport, DeviceError> {
        self.run_batch(batch, work::run_once)
    }

    fn iterations(&self) -> u32 {
        self.table.loops.iterations()
    }

    /// The driver cannot end a kernel.
    fn set_time_limit(&mut self, _limit: Duration) -> bool {
        false
    }

    /// The driver's messages do not name memory.
    fn label(&mut self, _buffer: BufferId, _name: &str) {}

    fn memory_free(&self) -> Option<u64> {
        self.context.enter().and_then(|()| self.context.memory()).ok().map(|(free, _)| free)
    }
}

impl HostFunctions for CudaDevice {
    fn host_function(&mut self, module: ModuleId, name: &str, args: &[LaunchArg]) -> Result<FunctionId, DeviceError> {
        self.context.enter()?;
        self.table.add_function(module, name, args, &self.stream)
    }
}
