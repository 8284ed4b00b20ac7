//! The simulated device: the `simt` crate's machine behind the seam.
//!
//! It has no clock and counts instead. Every access is checked against the exact bounds of its allocation, so guard
//! zones are kept beside the memory, where no kernel reaches them. It judges nothing and formats nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::{
    Backend, Batch, BufferId, Clock, CountReport, Counter, Device, DeviceError, DriverVersion, EnergyMeter,
    HostFunctions, KernelId, Launch, LaunchArg, ModuleId, Monitor, Prepare, RunReport, Step,
};
use crate::model::{
    BackendKind, BodyCounters, Bytes, Capabilities, CodeKind, Compiled, Counters, DeviceId, DeviceInfo, Dim3,
    KernelResources, Note, Occupancy, OccupancyLimiter,
};
use simt::{self, DeviceProfile, LaunchError, LaunchSpec, Limiter, Machine, Options, SimError, TrapKind};

/// Opens simulated devices of one profile.
#[derive(Debug, Clone)]
pub struct SimBackend {
    profile: DeviceProfile,
    options: Options,
}

impl SimBackend {
    /// The device that `--sim-device` names; the first profile where it names none.
    pub fn new(id: Option<&str>, options: Options) -> Result<Self, DeviceError> {
        let profiles = simt::profiles();
        let found = match id {
            None => profiles.first().cloned(),
            Some(id) => profiles.iter().find(|p| p.id.eq_ignore_ascii_case(id)).cloned(),
        };
        let Some(profile) = found else {
            let known: Vec<&str> = profiles.iter().map(|p| p.id.as_str()).collect();
            let id = id.unwrap_or("the default");
            let message = format!("there is no simulated device `{id}`: use one of {}", known.join(", "));
            return Err(DeviceError::Unavailable(message));
        };
        Ok(Self { profile, options })
    }
}

impl Backend for SimBackend {
    fn devices(&self) -> Result<Vec<(DeviceId, DeviceInfo)>, DeviceError> {
        Ok(vec![(DeviceId { ordinal: 0, uuid: None }, info(&self.profile))])
    }

    fn open(&self, id: &DeviceId) -> Result<Box<dyn Device>, DeviceError> {
        if id.ordinal != 0 {
            let message = format!("there is one simulated device, number 0; {} does not exist", id.ordinal);
            return Err(DeviceError::Unavailable(message));
        }
        let machine = Machine::new(self.profile.clone(), self.options).map_err(host_error)?;
        Ok(Box::new(SimDevice {
            info: info(&self.profile),
            machine,
            modules: BTreeMap::new(),
            own: Vec::new(),
            kernels: Vec::new(),
            buffers: BTreeMap::new(),
            next: 0,
        }))
    }
}

/// The properties of a profile in the words of the model.
fn info(p: &DeviceProfile) -> DeviceInfo {
    DeviceInfo {
        backend: BackendKind::Sim,
        name: p.name.clone(),
        compute_capability: p.capability,
        sm_count: p.sm_count,
        cores_per_sm: Some(p.cores_per_sm),
        warp_size: 32,
        max_threads_per_block: 1024,
        max_threads_per_sm: p.max_warps_per_sm * 32,
        max_blocks_per_sm: p.max_blocks_per_sm,
        max_block_dim: Dim3::new(1024, 1024, 64),
        max_grid_dim: Dim3::new(0x7fff_ffff, 0xffff, 0xffff),
        registers_per_block: p.registers_per_block,
        registers_per_sm: p.registers_per_sm,
        shared_per_block: p.shared_per_block,
        shared_per_block_optin: p.shared_per_block_optin,
        shared_per_sm: p.shared_per_sm,
        shared_reserved_per_block: p.shared_reserved,
        constant_memory: 64 << 10,
        l2_bytes: p.l2,
        memory_bytes: Bytes(p.memory),
        memory_free: None,
        memory_bus_bits: p.memory_bus_bits,
        memory_clock_khz: 0,
        sm_clock_khz: 0,
        cooperative_launch: p.capability >= (6, 0),
        ecc: false,
        capabilities: Capabilities { has_clock: false, has_counters: true },
    }
}

#[derive(Debug)]
struct LoadedModule {
    id: simt::ModuleId,
    /// By mangled name.
    resources: BTreeMap<String, KernelResources>,
    /// A note if the code is for a newer GPU than this one, so that its registers are an assumption.
    assumed: Option<String>,
}

#[derive(Debug)]
struct LoadedKernel {
    module: ModuleId,
    name: String,
    resources: KernelResources,
}

#[derive(Debug)]
struct Buffer {
    address: u64,
    bytes: usize,
    /// A variable of a module: not ours to free.
    symbol: bool,
    /// Both guard zones, as last written.
    guards: (Vec<u8>, Vec<u8>),
}

/// An opened simulated device.
#[derive(Debug)]
struct SimDevice {
    info: DeviceInfo,
    machine: Machine,
    modules: BTreeMap<ModuleId, LoadedModule>,
    /// Modules of this program's own, by their text.
    own: Vec<(&'static str, ModuleId)>,
    kernels: Vec<LoadedKernel>,
    buffers: BTreeMap<BufferId, Buffer>,
    next: u32,
}

/// That registers are assumed, where the code's target is newer than the device: the compiler no longer makes code for
/// it, and what it makes of the same source for another architecture need not take as many registers.
fn assumed_registers(ptx: &str, profile: &DeviceProfile) -> Option<String> {
    let target = ptx.lines().find_map(|line| line.strip_prefix(".target sm_"))?;
    let digits: String = target.chars().take_while(char::is_ascii_digit).collect();
    let (made_for, (major, minor)) = (digits.parse::<u32>().ok()?, profile.capability);
    (made_for > major * 10 + minor).then(|| {
        format!(
            "registers are assumed: {} is sm_{major}{minor}, and the oldest code that the compiler makes is for sm_{made_for}",
            profile.name
        )
    })
}

/// A refusal of the machine in the words of the seam.
fn host_error(error: SimError) -> DeviceError {
    match error {
        SimError::OutOfMemory { needed, available } => DeviceError::OutOfMemory { needed, available },
        SimError::Launch(message) => DeviceError::InvalidLaunch(message),
        SimError::Arguments(message) => DeviceError::Driver { call: "launch", message },
        SimError::Host(message) => DeviceError::Unavailable(message),
        other => DeviceError::Driver { call: "simulator", message: other.to_string() },
    }
}

fn unknown(what: &str, number: u32) -> DeviceError {
    DeviceError::Driver { call: "simulator", message: format!("there is no {what} {number} on the device") }
}

impl SimDevice {
    fn add_module(&mut self, loaded: LoadedModule) -> ModuleId {
        let module = ModuleId(self.next);
        self.next += 1;
        self.modules.insert(module, loaded);
        module
    }

    fn buffer(&self, id: BufferId) -> Result<&Buffer, DeviceError> {
        self.buffers.get(&id).ok_or_else(|| unknown("buffer", id.0))
    }

    fn kernel_of(&self, id: KernelId) -> Result<&LoadedKernel, DeviceError> {
        self.kernels.get(id.0 as usize).ok_or_else(|| unknown("kernel", id.0))
    }

    fn module_of(&self, id: ModuleId) -> Result<&LoadedModule, DeviceError> {
        self.modules.get(&id).ok_or_else(|| unknown("module", id.0))
    }

    /// The address of a range that lies in a buffer.
    fn range(&self, id: BufferId, offset: usize, bytes: usize) -> Result<u64, DeviceError> {
        let buffer = self.buffer(id)?;
        if offset.checked_add(bytes).is_none_or(|end| end > buffer.bytes) {
            let message = format!("{bytes} bytes at offset {offset} of a buffer of {}", buffer.bytes);
            return Err(DeviceError::Driver { call: "copy", message });
        }
        Ok(buffer.address + offset as u64)
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), DeviceError> {
        let (source, target) = (self.buffer(from)?, self.buffer(to)?);
        if source.bytes != target.bytes {
            let message = format!("a copy of {} bytes into {}", source.bytes, target.bytes);
            return Err(DeviceError::Driver { call: "copy", message });
        }
        let (from, to, bytes) = (source.address, target.address, source.bytes as u64);
        self.machine.copy(from, to, bytes).map_err(host_error)
    }

    fn prepare(&mut self, prepare: &Prepare) -> Result<(), DeviceError> {
        match *prepare {
            Prepare::Fill { buffer, byte } => {
                let target = self.buffer(buffer)?;
                let (address, bytes) = (target.address, target.bytes as u64);
                self.machine.fill(address, bytes, byte).map_err(host_error)
            }
            Prepare::Copy { from, to } => self.copy(from, to),
        }
    }

    fn launch(&mut self, launch: &Launch) -> Result<simt::LaunchReport, DeviceError> {
        let args = launch.args.iter().map(|arg| self.argument(*arg)).collect::<Result<Vec<_>, _>>()?;
        let kernel = self.kernel_of(launch.kernel)?;
        let loaded = self.module_of(kernel.module)?;
        let module = loaded.id;
        let assumed = loaded.assumed.clone().filter(|_| kernel.resources.registers.is_some());
        let name = kernel.name.clone();
        if launch.cooperative && !self.info.cooperative_launch {
            let message = format!("{} has no cooperative launches", self.info.name);
            return Err(DeviceError::InvalidLaunch(message));
        }
        let spec = LaunchSpec {
            kernel: &name,
            grid: [launch.grid.x, launch.grid.y, launch.grid.z],
            block: [launch.block.x, launch.block.y, launch.block.z],
            shared: launch.shared,
            cooperative: launch.cooperative,
            args: &args,
        };
        let mut report = self.machine.launch(module, &spec).map_err(|error| match error {
            LaunchError::Refused(error) => host_error(error),
            LaunchError::Trap(trap) => {
                let (message, printed) = (trap.to_string(), trap.printed);
                match trap.kind {
                    TrapKind::Deadline(limit) => DeviceError::TimedOut { limit, message, printed },
                    _ => DeviceError::Trap { message, printed },
                }
            }
        })?;
        report.notes.extend(assumed);
        Ok(report)
    }

    fn argument(&self, arg: LaunchArg) -> Result<Vec<u8>, DeviceError> {
        Ok(match arg {
            LaunchArg::Buffer(id) => self.buffer(id)?.address.to_le_bytes().to_vec(),
            LaunchArg::Scalar(value) => value.bits.to_le_bytes()[..value.element.size()].to_vec(),
        })
    }
}

/// The error of a launch of a batch: says which one of several it is, and has what was `printed` before it.
fn of_launch(error: DeviceError, (number, of): (usize, usize), printed: &str) -> DeviceError {
    let say = |message: String| if of > 1 { format!("launch {number} of {of}: {message}") } else { message };
    match error {
        DeviceError::Trap { message, printed: own } => {
            DeviceError::Trap { message: say(message), printed: format!("{printed}{own}") }
        }
        DeviceError::TimedOut { limit, message, printed: own } => {
            DeviceError::TimedOut { limit, message: say(message), printed: format!("{printed}{own}") }
        }
        other => other,
    }
}

/// What the launches of a body counted, together and, where there are several, each.
fn counters(launches: &[simt::Counters]) -> BodyCounters {
    let named = |counters: &simt::Counters| {
        Counters(counters.metrics().into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let mut whole = simt::Counters::default();
    for launch in launches {
        whole.add(launch);
    }
    let each = if launches.len() > 1 { launches.iter().map(named).collect() } else { Vec::new() };
    BodyCounters { whole: named(&whole), each }
}

impl Device for SimDevice {
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
        None
    }

    fn counter(&mut self) -> Option<&mut dyn Counter> {
        Some(self)
    }

    fn monitor(&mut self) -> Result<&mut dyn Monitor, String> {
        Err("the simulator has no hardware to monitor".to_owned())
    }

    fn energy_meter(&mut self) -> Result<&mut dyn EnergyMeter, String> {
        Err("the simulator does not measure energy".to_owned())
    }

    fn host_functions(&mut self) -> Option<&mut dyn HostFunctions> {
        None
    }

    fn load(&mut self, code: &Compiled) -> Result<ModuleId, DeviceError> {
        if code.kind != CodeKind::Ptx {
            let message = "the simulator executes PTX, not a cubin".to_owned();
            return Err(DeviceError::Driver { call: "load", message });
        }
        let text = std::fs::read_to_string(&code.code).map_err(|e| DeviceError::Driver {
            call: "load",
            message: format!("cannot read {}: {e}", code.code.display()),
        })?;
        let id = self.machine.load(&text).map_err(host_error)?;
        let resources: BTreeMap<String, KernelResources> = code
            .kernels
            .iter()
            .filter_map(|(expression, mangled)| Some((mangled.clone(), *code.resources.get(expression)?)))
            .collect();
        for (name, known) in &resources {
            self.machine.set_registers(id, name, known.registers.unwrap_or(0));
        }
        for (expression, mangled) in &code.kernels {
            self.machine.name_kernel(id, mangled, expression);
        }
        let assumed = assumed_registers(&text, self.machine.profile());
        Ok(self.add_module(LoadedModule { id, resources, assumed }))
    }

    fn set_pending_launches(&mut self, count: Option<u32>) -> Result<(), DeviceError> {
        self.machine.set_pending_launches(count.map(u64::from));
        Ok(())
    }

    fn load_builtin(&mut self, ptx: &'static str) -> Result<Option<ModuleId>, DeviceError> {
        if let Some((_, module)) = self.own.iter().find(|(text, _)| std::ptr::eq(*text, ptx)) {
            return Ok(Some(*module));
        }
        let id = self.machine.load(ptx).map_err(host_error)?;
        let module = self.add_module(LoadedModule { id, resources: BTreeMap::new(), assumed: None });
        self.own.push((ptx, module));
        Ok(Some(module))
    }

    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        let loaded = self.modules.remove(&module).ok_or_else(|| unknown("module", module.0))?;
        self.machine.unload(loaded.id);
        Ok(())
    }

    fn kernel(&mut self, module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError> {
        let loaded = self.module_of(module)?;
        let facts = self.machine.facts(loaded.id, mangled).map_err(host_error)?;
        // Registers come from the cubin that was compiled with the PTX, the rest from the PTX itself.
        let known = loaded.resources.get(mangled).copied().unwrap_or_default();
        let resources = KernelResources {
            shared_static: known.shared_static.or(Some(facts.shared)),
            local: known.local.or(Some(facts.local)),
            max_threads: known.max_threads.or(facts.max_threads).or(Some(1024)),
            cluster: facts.cluster,
            ..known
        };
        self.kernels.push(LoadedKernel { module, name: mangled.to_owned(), resources });
        Ok(KernelId(self.kernels.len() as u32 - 1))
    }

    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError> {
        Ok(self.kernel_of(kernel)?.resources)
    }

    fn occupancy(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<Occupancy, DeviceError> {
        let resources = self.kernel_of(kernel)?.resources;
        let total = shared.saturating_add(resources.shared_static.unwrap_or(0));
        let facts = self.machine.profile().occupancy(threads, resources.registers.unwrap_or(0), total);
        let limiter = facts.limiter.map(|limiter| match limiter {
            Limiter::Blocks => OccupancyLimiter::Blocks,
            Limiter::Warps => OccupancyLimiter::Warps,
            Limiter::Registers => OccupancyLimiter::Registers,
            Limiter::Shared => OccupancyLimiter::Shared,
        });
        Ok(Occupancy { blocks_per_sm: facts.blocks_per_sm, fraction: facts.fraction, limiter })
    }

    fn best_block(&self, kernel: KernelId, shared: u32) -> Result<u32, DeviceError> {
        let resources = self.kernel_of(kernel)?.resources;
        let total = shared.saturating_add(resources.shared_static.unwrap_or(0));
        let most = resources.max_threads.unwrap_or(1024);
        Ok(self.machine.profile().best_block(resources.registers.unwrap_or(0), total, most))
    }

    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError> {
        let address = self.machine.alloc(bytes as u64).map_err(host_error)?;
        let id = BufferId(self.next);
        self.next += 1;
        let guards = (vec![0; guard], vec![0; guard]);
        self.buffers.insert(id, Buffer { address, bytes, symbol: false, guards });
        Ok(id)
    }

    fn label(&mut self, buffer: BufferId, name: &str) {
        if let Some(buffer) = self.buffers.get(&buffer).filter(|b| !b.symbol) {
            self.machine.name_memory(buffer.address, &format!("buffer `{name}`"));
        }
    }

    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError> {
        let (address, bytes) = self.machine.variable(self.module_of(module)?.id, mangled).map_err(host_error)?;
        let id = BufferId(self.next);
        self.next += 1;
        let guards = (Vec::new(), Vec::new());
        self.buffers.insert(id, Buffer { address, bytes: bytes as usize, symbol: true, guards });
        Ok(id)
    }

    fn size(&self, buffer: BufferId) -> usize {
        self.buffers.get(&buffer).map_or(0, |b| b.bytes)
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        let old = self.buffers.remove(&buffer).ok_or_else(|| unknown("buffer", buffer.0))?;
        if old.symbol { Ok(()) } else { self.machine.free(old.address).map_err(host_error) }
    }

    fn upload(&mut self, buffer: BufferId, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        let address = self.range(buffer, offset, data.len())?;
        self.machine.write(address, data).map_err(host_error)
    }

    fn download(&mut self, buffer: BufferId, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        let address = self.range(buffer, offset, data.len())?;
        self.machine.read(address, data).map_err(host_error)
    }

    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError> {
        let found = self.buffers.get_mut(&buffer).ok_or_else(|| unknown("buffer", buffer.0))?;
        found.guards.0.fill(byte);
        found.guards.1.fill(byte);
        Ok(())
    }

    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        Ok(self.buffer(buffer)?.guards.clone())
    }

    fn run(&mut self, batch: &Batch) -> Result<RunReport, DeviceError> {
        self.count(batch).map(|report| report.run)
    }

    fn set_time_limit(&mut self, limit: Duration) -> bool {
        self.machine.set_deadline(Some(limit));
        true
    }

    fn memory_free(&self) -> Option<u64> {
        Some(self.machine.free_bytes())
    }
}

impl Counter for SimDevice {
    fn count(&mut self, batch: &Batch) -> Result<CountReport, DeviceError> {
        let mut report = CountReport::default();
        let launches = batch.steps.iter().filter(|step| matches!(step, Step::Launch(_))).count();
        for repetition in 0..batch.repeat {
            for prepare in &batch.prepare {
                self.prepare(prepare)?;
            }
            let mut each = Vec::new();
            for step in &batch.steps {
                match step {
                    Step::Copy { from, to } => self.copy(*from, *to)?,
                    Step::Call(call) => return Err(DeviceError::unknown_function(call.function)),
                    Step::Launch(launch) => {
                        let place = (each.len() + 1, launches);
                        let done = self.launch(launch).map_err(|error| of_launch(error, place, &report.run.printed))?;
                        each.push(done.counters);
                        report.run.printed.push_str(&done.printed);
                        for note in done.notes.into_iter().map(Note::Text) {
                            if !report.run.notes.contains(&note) {
                                report.run.notes.push(note);
                            }
                        }
                    }
                }
            }
            if repetition == 0 && !each.is_empty() {
                report.counters = Some(counters(&each));
            }
        }
        Ok(report)
    }

    fn marks_launches(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::model::{ElementType, ScalarValue};

    /// Prints its argument, and traps where that is 2.
    const PRINTS: &str = ".version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[4] = {37, 117, 10, 0};
.visible .entry prints(.param .u32 number)
{
    .local .align 8 .b8 values[8];
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    ld.param.u32 %r1, [number];
    mov.u64 %rd1, values;
    cvta.local.u64 %rd2, %rd1;
    st.local.u32 [values], %r1;
    mov.u64 %rd3, text;
    cvta.global.u64 %rd4, %rd3;
    {
    .param .b64 param0;
    st.param.b64 [param0+0], %rd4;
    .param .b64 param1;
    st.param.b64 [param1+0], %rd2;
    .param .b32 retval0;
    call.uni (retval0), vprintf, (param0, param1);
    }
    setp.ne.u32 %p1, %r1, 2;
    @%p1 bra $L_end;
    trap;
$L_end:
    ret;
}
";

    /// Launches a kernel with each of these arguments.
    fn launched(arguments: &[u64]) -> Result<RunReport, DeviceError> {
        let backend = SimBackend::new(None, Options::default()).unwrap();
        let mut device = backend.open(&DeviceId { ordinal: 0, uuid: None }).unwrap();
        let module = device.load_builtin(PRINTS).unwrap().unwrap();
        let kernel = device.kernel(module, "prints").unwrap();
        let one = Dim3::new(1, 1, 1);
        let step = |&bits: &u64| {
            let args = vec![LaunchArg::Scalar(ScalarValue { element: ElementType::U32, bits })];
            Step::Launch(Launch { kernel, grid: one, block: one, shared: 0, cooperative: false, args, stream: 0 })
        };
        device.run(&Batch::once(Vec::new(), arguments.iter().map(step).collect()))
    }

    #[test]
    fn a_fault_of_one_launch_of_several_says_which_and_keeps_what_was_printed() {
        assert_eq!(launched(&[5, 7]).unwrap().printed, "5\n7\n");
        let Err(DeviceError::Trap { message, printed }) = launched(&[5, 2, 7]) else { panic!() };
        assert!(message.starts_with("launch 2 of 3: `trap` in kernel `prints` at "), "{message}");
        assert_eq!(printed, "5\n2\n");
        let Err(DeviceError::Trap { message, printed }) = launched(&[2]) else { panic!() };
        assert!(message.starts_with("`trap` in kernel `prints` at "), "{message}");
        assert_eq!(printed, "2\n");
    }

    #[test]
    fn registers_are_assumed_where_the_compiler_makes_no_code_for_the_device() {
        let profile = |id: &str| simt::profiles().into_iter().find(|p| p.id == id).unwrap_or_else(|| panic!("no {id}"));
        let text = ".version 9.0\n.target sm_75\n.address_size 64\n";
        for (id, own) in [("k80", "sm_37"), ("v100", "sm_70")] {
            let note = assumed_registers(text, &profile(id)).unwrap_or_default();
            assert!(note.contains(own) && note.ends_with("for sm_75"), "{note}");
        }
        assert_eq!(assumed_registers(text, &profile("a100")), None);
        assert_eq!(assumed_registers(&text.replace("75", "90a, debug"), &profile("h100")), None);
    }
}
