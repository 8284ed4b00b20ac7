//! An opened GPU: the [`Device`] of this backend, which gives ids to modules, kernels and buffers.
//!
//! Every public call makes the device's context current, and returns with the device idle. After
//! [`DeviceError::ContextLost`] every further call fails: the process must end. Results are not judged here.

use std::fs;
use std::iter::once;

use super::attributes::{self, Listed};
use super::cupti::{Expected, Tracer};
use super::driver::{api, version};
use super::energy;
use super::flush;
use super::handles::{Context, Module, Stream};
use super::host;
use super::link;
use super::memory::{self, Buffer};
use super::nvml::Monitor;
use super::occupancy::{self, Limits};
use super::operation::{self, Operation};
use super::plugin::Plugin;
use super::printed::Catch;
use super::streams::Lanes;
use super::table::Table;
use super::timing::{Timer, Work};
use super::transfer::Staging;
use crate::backend::{
    Batch, BatchReport, BufferId, Device, DeviceError, DriverVersion, EnergyLook, FunctionId, KernelId, LaunchArg,
    ModuleId, Step,
};
use crate::model::{
    Bytes, Capabilities, CodeKind, Compiled, DeviceInfo, DeviceState, KernelResources, Occupancy, Regime, Settings,
};

/// Launches from kernels that may be at a time unless somebody sets it: the driver's default.
const PENDING_LAUNCHES: u32 = 2048;

/// A GPU with its primary context. Fields drop in this order, so that the context goes last.
#[derive(Debug)]
pub(super) struct CudaDevice {
    info: DeviceInfo,
    uuid: Option<String>,
    driver: DriverVersion,
    timer: Timer,
    tracer: Option<Tracer>,
    /// What watches the device, or why nothing does.
    monitor: Result<Monitor, String>,
    staging: Staging,
    /// Modules of this program's own, by their text.
    own: Vec<(&'static str, ModuleId)>,
    table: Table,
    /// As it was set; the driver's default before.
    pending_launches: Option<u32>,
    lanes: Lanes,
    stream: Stream,
    context: Context,
    watched: bool,
}

impl CudaDevice {
    /// Takes the primary context and allocates what transfers and measurements need. A watched device takes no times:
    /// a profiler around this process counts what its launches do. With a tracer its kernels are timed by both clocks.
    pub fn open(listed: Listed, watched: bool, tracer: Option<Tracer>) -> Result<Self, DeviceError> {
        let Listed { raw, id, mut info } = listed;
        let context = Context::retain(raw)?;
        let stream = Stream::new()?;
        let staging = Staging::new()?;
        let timer = Timer::new(&context, &stream, raw, &info)?;
        info.memory_free = Some(Bytes(context.memory()?.0));
        if watched {
            info.capabilities = Capabilities { has_clock: false, has_counters: true };
        }
        let (driver, table) = (version(api()?), Table::default());
        let monitor = attributes::pci_bus_id(raw).map_err(|e| e.to_string()).and_then(|pci| Monitor::open(&pci));
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
            pending_launches: None,
            lanes: Lanes::default(),
            stream,
            context,
            watched,
        })
    }
}

/// What the compiler left, as the driver loads it.
fn image(code: &Compiled) -> Result<Vec<u8>, DeviceError> {
    let mut image = fs::read(&code.code).map_err(|error| DeviceError::Driver {
        call: "cuModuleLoadDataEx",
        message: format!("cannot read {}: {error}", code.code.display()),
    })?;
    if code.kind == CodeKind::Ptx {
        image.push(0);
    }
    Ok(image)
}

/// The steps of a body with every id looked up, in the streams that they are for.
fn resolved<'a>(
    table: &'a Table,
    lanes: &'a Lanes,
    info: &DeviceInfo,
    steps: &[Step],
) -> Result<Vec<Operation<'a>>, DeviceError> {
    let operations = steps.iter().map(|step| table.step(info, step)).collect::<Result<Vec<_>, _>>()?;
    Ok(lanes.arrange(steps, operations))
}

/// What a tracer records of a timed batch; `None` where nobody can tell, and in regimes that are not taken run by run.
fn expected_records(batch: &Batch, work: &Work<'_>) -> Option<Expected> {
    let body = work.bodies.first().filter(|_| batch.regime == Regime::Cold)?;
    let counted = batch.series.launches.max(1) as usize;
    Some(Expected {
        samples: batch.repeat as usize,
        // The launches of a sequence are timed in runs of their own.
        runs: if body.len() > 1 { 2 * counted } else { counted },
        counted,
        prepare: work.prepare.iter().map(Operation::records).sum::<Option<usize>>()?,
        body: body.iter().map(Operation::records).sum::<Option<usize>>()?,
    })
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        // The fields drop next, and need the context; without it they leave everything to the process's end.
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

    fn calibrate(&mut self, nanoseconds: f64) {
        self.timer.calibrate(nanoseconds);
    }

    fn reference_clock(&self) -> Option<String> {
        self.tracer.as_ref().map(|tracer| tracer.name.clone())
    }

    fn settings(&self) -> Result<Settings, String> {
        self.monitor.as_ref().map(Monitor::settings).map_err(Clone::clone)
    }

    fn state(&mut self) -> Option<DeviceState> {
        self.monitor.as_ref().ok().map(Monitor::state)
    }

    fn other_processes(&self) -> Option<u32> {
        self.monitor.as_ref().ok().and_then(Monitor::other_processes)
    }

    fn driver(&self) -> Option<DriverVersion> {
        Some(self.driver.clone())
    }

    fn timing_method(&self) -> Option<String> {
        (!self.watched).then(|| self.timer.method())
    }

    fn shuts_out_host(&self) -> bool {
        !self.watched && self.timer.is_gated()
    }

    fn marks_launches(&self) -> bool {
        self.watched
    }

    fn tick(&self) -> Option<f64> {
        Some(self.timer.tick())
    }

    fn load(&mut self, code: &Compiled) -> Result<ModuleId, DeviceError> {
        self.context.enter()?;
        if code.kind == CodeKind::Plugin {
            return Plugin::load(&code.code).map(|plugin| self.table.add_plugin(plugin));
        }
        let image = match &code.device_runtime {
            Some(library) => {
                let maker = format!("{:?} {:?}", self.driver, self.info.compute_capability);
                link::image(&code.code, code.kind, library, &maker)?
            }
            None => image(code)?,
        };
        let module = Module::load(&image)?;
        // Looking a kernel up loads it, also where the driver loads lazily.
        for mangled in code.kernels.values() {
            module.function(mangled)?;
        }
        Ok(self.table.add_module(module))
    }

    fn set_pending_launches(&mut self, count: Option<u32>) -> Result<(), DeviceError> {
        if count != self.pending_launches {
            self.context.set_pending_launches(count.unwrap_or(PENDING_LAUNCHES))?;
            self.pending_launches = count;
        }
        Ok(())
    }

    fn own(&mut self, ptx: &'static str) -> Result<Option<ModuleId>, DeviceError> {
        if let Some((_, module)) = self.own.iter().find(|(text, _)| std::ptr::eq(*text, ptx)) {
            return Ok(Some(*module));
        }
        self.context.enter()?;
        let image = [ptx.as_bytes(), b"\0"].concat();
        let module = self.table.add_module(Module::load(&image)?);
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

    fn host_function(&mut self, module: ModuleId, name: &str, args: &[LaunchArg]) -> Result<FunctionId, DeviceError> {
        self.context.enter()?;
        self.table.add_function(module, name, args, &self.stream)
    }

    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError> {
        Ok(self.table.kernel(kernel)?.resources())
    }

    fn occupancy(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<Occupancy, DeviceError> {
        self.context.enter()?;
        let kernel = self.table.kernel(kernel)?;
        let limits = Limits::of(&self.info, &kernel.facts, threads, shared);
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
        let one_warp = Limits::of(&self.info, &kernel.facts, self.info.warp_size, shared);
        if one_warp.shared == 0 {
            return Err(DeviceError::InvalidLaunch(format!(
                "{} bytes of shared memory a block, the device allows {}",
                u64::from(kernel.facts.shared_static) + u64::from(shared),
                self.info.shared_per_block_optin
            )));
        }
        kernel.opt_in(shared)?;
        kernel.best_block(shared)
    }

    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError> {
        self.context.enter()?;
        let buffer = Buffer::alloc(&self.context, bytes, guard)?;
        Ok(self.table.add_buffer(buffer))
    }

    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError> {
        self.context.enter()?;
        let (address, bytes) = self.table.module(module)?.global(mangled)?;
        Ok(self.table.add_buffer(Buffer::variable(module, address, bytes)))
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

    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError> {
        self.context.enter()?;
        let buffer = self.table.buffer(buffer)?;
        let Some((before, behind)) = buffer.guards() else { return Ok(()) };
        memory::fill(&self.stream, before, byte, buffer.guard)?;
        memory::fill(&self.stream, behind, byte, buffer.guard)?;
        self.stream.synchronize()
    }

    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        self.context.enter()?;
        let buffer = self.table.buffer(buffer)?;
        let Some((before, behind)) = buffer.guards() else { return Ok((Vec::new(), Vec::new())) };
        let mut zones = (vec![0; buffer.guard], vec![0; buffer.guard]);
        self.staging.download(&self.stream, before, &mut zones.0)?;
        self.staging.download(&self.stream, behind, &mut zones.1)?;
        Ok(zones)
    }

    fn run(&mut self, batch: &Batch) -> Result<BatchReport, DeviceError> {
        self.context.enter()?;
        let bodies = || once(&batch.steps).chain(&batch.series.others);
        bodies().try_for_each(|steps| self.lanes.provide(steps))?;
        let Self { context, table, timer, stream, lanes, info, tracer, .. } = self;
        let prepare = batch.prepare.iter().map(|p| table.prepare(p)).collect::<Result<Vec<_>, _>>()?;
        let bodies: Vec<_> = bodies().map(|steps| resolved(table, lanes, info, steps)).collect::<Result<_, _>>()?;
        let mut report = BatchReport::default();
        if batch.timed {
            tracer.as_ref().map_or(Ok(()), Tracer::clear)?;
            let mut work = Work { prepare, bodies };
            report.samples = match batch.regime {
                Regime::Host => host::samples(context, stream, table, batch, &mut work)?,
                _ => timer.samples(stream, batch, &work)?,
            };
            report.notes = work.news();
            if let Some((tracer, expected)) = tracer.as_ref().zip(expected_records(batch, &work)) {
                report.reference = tracer.bodies(expected, flush::KERNEL)?;
            }
        } else {
            for _ in 0..batch.repeat {
                operation::run_once(&prepare, &bodies[0], stream)?;
            }
        }
        Ok(report)
    }

    fn run_counted(&mut self, batch: &Batch) -> Result<BatchReport, DeviceError> {
        if !self.watched {
            return self.run(batch);
        }
        self.context.enter()?;
        self.lanes.provide(&batch.steps)?;
        let Self { table, stream, lanes, info, .. } = self;
        let prepare = batch.prepare.iter().map(|p| table.prepare(p)).collect::<Result<Vec<_>, _>>()?;
        let steps = resolved(table, lanes, info, &batch.steps)?;
        for _ in 0..batch.repeat {
            operation::run_marked(&prepare, &steps, stream)?;
        }
        Ok(BatchReport::default())
    }

    fn run_heard(&mut self, batch: &Batch) -> Result<BatchReport, DeviceError> {
        let caught = Catch::begin()?;
        match self.run_counted(batch) {
            Ok(report) => Ok(BatchReport { printed: caught.end()?, ..report }),
            Err(error) => {
                caught.pass_on();
                Err(error)
            }
        }
    }

    fn counts_energy(&self) -> Result<(), String> {
        let monitor = self.monitor.as_ref().map_err(Clone::clone)?;
        monitor.energy().map(drop)
    }

    fn run_metered(&mut self, batch: &Batch, heed: &mut dyn FnMut(EnergyLook) -> bool) -> Result<(), DeviceError> {
        self.context.enter()?;
        let bodies = || once(&batch.steps).chain(&batch.series.others);
        bodies().try_for_each(|steps| self.lanes.provide(steps))?;
        let Self { table, stream, lanes, info, monitor, .. } = self;
        let monitor = monitor.as_ref().map_err(|why| DeviceError::Unavailable(why.clone()))?;
        let prepare = batch.prepare.iter().map(|p| table.prepare(p)).collect::<Result<Vec<_>, _>>()?;
        let bodies = bodies().map(|steps| resolved(table, lanes, info, steps)).collect::<Result<_, _>>()?;
        energy::run_metered(stream, &Work { prepare, bodies }, || monitor.energy(), heed)
    }

    fn memory_free(&self) -> Option<u64> {
        self.context.enter().and_then(|()| self.context.memory()).ok().map(|(free, _)| free)
    }
}
