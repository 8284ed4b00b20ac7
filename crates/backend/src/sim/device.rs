//! The [`Device`] of this backend, which assigns ids to modules, kernels and buffers of the simulated machine. Launches
//! and their counts are in [`super::launch`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::error::host_error;
use crate::variables;
use crate::{
    Batch, BufferId, Clock, Counter, Device, DeviceError, DriverVersion, EnergyMeter, HostFunctions, KernelId,
    ModuleId, Monitor, Prepare, Read, RunReport,
};
use runner_types::{
    CodeKind, Compiled, DeviceInfo, KernelResources, Occupancy, OccupancyLimiter, SanitizerClass, ScalarValue,
    Unsanitized,
};
use simt::{DeviceProfile, FindingClass, Ignored, Limiter, Machine, Part};

#[derive(Debug)]
pub(super) struct LoadedModule {
    pub id: simt::ModuleId,
    /// Resources of each kernel, by mangled name.
    resources: BTreeMap<String, KernelResources>,
    /// Names of the writable variables.
    variables: Vec<String>,
    /// Message about assumed registers, if the code is for a newer GPU than this one.
    pub assumed: Option<String>,
}

#[derive(Debug)]
pub(super) struct LoadedKernel {
    pub module: ModuleId,
    pub name: String,
    pub resources: KernelResources,
}

#[derive(Debug)]
pub(super) struct Buffer {
    pub address: u64,
    bytes: usize,
    /// Whether this is a module's variable, which is not freed.
    symbol: bool,
    /// Guard zones before and after the buffer, as last written.
    guards: (Vec<u8>, Vec<u8>),
}

/// An open simulated device.
#[derive(Debug)]
pub(super) struct SimDevice {
    pub info: DeviceInfo,
    pub machine: Machine,
    modules: BTreeMap<ModuleId, LoadedModule>,
    /// Built-in modules, by their source text.
    own: Vec<(&'static str, ModuleId)>,
    kernels: Vec<LoadedKernel>,
    buffers: BTreeMap<BufferId, Buffer>,
    next: u32,
    /// Iterations of the most recent loop.
    pub iterations: u32,
}

impl SimDevice {
    pub(super) fn new(info: DeviceInfo, machine: Machine) -> Self {
        Self {
            info,
            machine,
            modules: BTreeMap::new(),
            own: Vec::new(),
            kernels: Vec::new(),
            buffers: BTreeMap::new(),
            next: 0,
            iterations: 0,
        }
    }

    fn add_module(&mut self, loaded: LoadedModule) -> ModuleId {
        let module = ModuleId(self.next);
        self.next += 1;
        self.modules.insert(module, loaded);
        module
    }

    pub(super) fn buffer(&self, id: BufferId) -> Result<&Buffer, DeviceError> {
        self.buffers.get(&id).ok_or_else(|| unknown("buffer", id.0))
    }

    pub(super) fn kernel_of(&self, id: KernelId) -> Result<&LoadedKernel, DeviceError> {
        self.kernels.get(id.0 as usize).ok_or_else(|| unknown("kernel", id.0))
    }

    pub(super) fn module_of(&self, id: ModuleId) -> Result<&LoadedModule, DeviceError> {
        self.modules.get(&id).ok_or_else(|| unknown("module", id.0))
    }

    /// Address of a range of a buffer.
    fn range(&self, id: BufferId, offset: usize, bytes: usize) -> Result<u64, DeviceError> {
        let buffer = self.buffer(id)?;
        if offset.checked_add(bytes).is_none_or(|end| end > buffer.bytes) {
            let message = format!("{bytes} bytes at offset {offset} of a buffer of {}", buffer.bytes);
            return Err(DeviceError::Driver { call: "copy", message });
        }
        Ok(buffer.address + offset as u64)
    }

    pub(super) fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), DeviceError> {
        let (source, target) = (self.buffer(from)?, self.buffer(to)?);
        if source.bytes != target.bytes {
            let message = format!("a copy of {} bytes into {}", source.bytes, target.bytes);
            return Err(DeviceError::Driver { call: "copy", message });
        }
        let (from, to, bytes) = (source.address, target.address, source.bytes as u64);
        self.machine.copy(from, to, bytes).map_err(host_error)
    }

    pub(super) fn set(&mut self, id: BufferId, value: ScalarValue) -> Result<(), DeviceError> {
        let target = self.buffer(id)?;
        let size = value.element.size();
        let number = &value.bits.to_le_bytes()[..size];
        let (address, bytes) = (target.address, number.repeat(target.bytes / size));
        self.machine.write(address, &bytes).map_err(host_error)
    }

    /// First elements of a condition's buffers, as little-endian bits.
    pub(super) fn read_first(&self, reads: &[Read]) -> Result<Vec<u64>, DeviceError> {
        let first = |read: &Read| {
            let mut word = [0; size_of::<u64>()];
            let address = self.range(read.buffer, 0, read.element.size())?;
            self.machine.read(address, &mut word[..read.element.size()]).map_err(host_error)?;
            Ok(u64::from_le_bytes(word))
        };
        reads.iter().map(first).collect()
    }

    pub(super) fn prepare(&mut self, prepare: &Prepare) -> Result<(), DeviceError> {
        match *prepare {
            Prepare::Fill { buffer, byte } => {
                let target = self.buffer(buffer)?;
                let (address, bytes) = (target.address, target.bytes as u64);
                self.machine.fill(address, bytes, byte).map_err(host_error)
            }
            Prepare::Undefine { buffer, byte } => {
                let target = self.buffer(buffer)?;
                let (address, bytes) = (target.address, target.bytes as u64);
                self.machine.undefine(address, bytes, byte).map_err(host_error)
            }
            Prepare::Copy { from, to } => self.copy(from, to),
        }
    }
}

fn read(path: &Path) -> Result<String, DeviceError> {
    let message = |error| format!("cannot read {}: {error}", path.display());
    std::fs::read_to_string(path).map_err(|error| DeviceError::Driver { call: "load", message: message(error) })
}

fn unknown(what: &str, number: u32) -> DeviceError {
    DeviceError::Driver { call: "simulator", message: format!("there is no {what} {number} on the device") }
}

/// Message about assumed registers, if the code's target is newer than the device. The compiler no longer supports the
/// device, and code for another architecture may need a different number of registers.
fn assumed_registers(ptx: &str, profile: &DeviceProfile) -> Option<String> {
    let target = ptx.lines().find_map(|line| line.strip_prefix(".target sm_"))?;
    let digits: String = target.chars().take_while(char::is_ascii_digit).collect();
    let (made_for, (major, minor)) = (digits.parse::<u32>().ok()?, profile.capability);
    (made_for > major * 10 + minor).then(|| {
        format!(
            "registers are assumed: {} is sm_{major}{minor}, but the oldest code that the compiler generates is for \
             sm_{made_for}",
            profile.name
        )
    })
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
        let text = read(&code.code)?;
        let others = code.parts.iter().skip(1).map(|part| read(&part.code)).collect::<Result<Vec<_>, _>>()?;
        let id = if code.parts.is_empty() {
            self.machine.load(&text)
        } else {
            let texts = std::iter::once(&text).chain(&others);
            let parts = code.parts.iter().zip(texts).map(|(part, ptx)| Part { name: &part.source, ptx });
            self.machine.load_linked(&parts.collect::<Vec<_>>())
        };
        let id = id.map_err(host_error)?;
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
        let names = std::iter::once(&text).chain(&others).map(|text| variables::names(text.as_bytes(), CodeKind::Ptx));
        // A variable without linkage may have another name in the linked module.
        let variables = names.flatten().filter(|name| self.machine.variable(id, name).is_ok()).collect();
        Ok(self.add_module(LoadedModule { id, resources, variables, assumed }))
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
        let module =
            self.add_module(LoadedModule { id, resources: BTreeMap::new(), variables: Vec::new(), assumed: None });
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

    fn variables(&mut self, module: ModuleId) -> Result<Vec<String>, DeviceError> {
        Ok(self.module_of(module)?.variables.clone())
    }

    fn size(&self, buffer: BufferId) -> usize {
        self.buffers.get(&buffer).map_or(0, |b| b.bytes)
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        let old = self.buffers.remove(&buffer).ok_or_else(|| unknown("buffer", buffer.0))?;
        if old.symbol {
            return Ok(());
        }
        self.machine.free(old.address).map_err(host_error)
    }

    fn upload(&mut self, buffer: BufferId, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        let address = self.range(buffer, offset, data.len())?;
        self.machine.write(address, data).map_err(host_error)
    }

    fn download(&mut self, buffer: BufferId, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        let address = self.range(buffer, offset, data.len())?;
        self.machine.read(address, data).map_err(host_error)
    }

    fn unwritten(&self, buffer: BufferId) -> Result<Option<Vec<Range<u64>>>, DeviceError> {
        let found = self.buffer(buffer)?;
        self.machine.unwritten(found.address, found.bytes as u64).map_err(host_error)
    }

    fn clear_heap(&mut self) -> Result<(), DeviceError> {
        self.machine.clear_heap();
        Ok(())
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

    fn set_unsanitized(&mut self, unsanitized: Option<&Unsanitized>) {
        let class = |class: &SanitizerClass| match class {
            SanitizerClass::Race => FindingClass::Race,
            SanitizerClass::Uninitialised => FindingClass::Uninitialised,
            SanitizerClass::Asynchronous => FindingClass::Asynchronous,
            SanitizerClass::Shuffle => FindingClass::Shuffle,
        };
        let classes = unsanitized.map(|unsanitized| unsanitized.classes.as_slice()).unwrap_or_default();
        let is_on = unsanitized.is_none() || !classes.is_empty();
        self.machine.set_sanitizer(is_on, Ignored::from_classes(classes.iter().map(class)));
    }

    fn set_sampling(&mut self, is_on: bool) {
        self.machine.set_sampling(is_on);
    }

    fn count_lines(&mut self, is_on: bool) {
        self.machine.count_lines(is_on);
    }

    fn iterations(&self) -> u32 {
        self.iterations
    }

    fn set_time_limit(&mut self, limit: Duration) -> bool {
        self.machine.set_deadline(Some(limit));
        true
    }

    fn memory_free(&self) -> Option<u64> {
        Some(self.machine.free_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_and_variables_take_no_more_than_the_hosts_memory_allows() -> Result<(), DeviceError> {
        let profile = simt::profiles().remove(0);
        let options = simt::Options { memory: Some(1 << 20), ..simt::Options::default() };
        let machine = Machine::new(profile.clone(), options).map_err(host_error)?;
        let mut device = SimDevice::new(super::super::info(&profile), machine);
        let free = |device: &SimDevice| device.memory_free().unwrap_or_default();
        let all = free(&device);
        let first = device.alloc(700 << 10, 0)?;
        let left = free(&device);
        assert_eq!(all - left, 700 << 10);
        let needed = left + 1;
        let refusal = device.alloc(needed as usize, 0).map(drop);
        assert_eq!(refusal, Err(DeviceError::OutOfMemory { needed, available: left }));
        let variables = |bytes: u64| {
            format!(".version 9.0\n.target sm_90\n.address_size 64\n.global .b8 a[1000];\n.global .b8 b[{bytes}];\n")
        };
        for needed in [left - 999, 4_294_967_295, u64::MAX] {
            let refusal = device.machine.load(&variables(needed)).map(drop).map_err(host_error);
            assert_eq!(refusal, Err(DeviceError::OutOfMemory { needed, available: left - 1000 }));
            assert_eq!(free(&device), left);
        }
        device.machine.load(&variables(left - 1000)).map(drop).map_err(host_error)?;
        assert_eq!(free(&device), 0);
        device.free(first)
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
