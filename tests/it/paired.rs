//! Two devices behind one interface: every call goes to both, and after every batch their memory is compared.

use std::collections::BTreeMap;
use std::time::Duration;

use half::{bf16, f16};
use runner_backend::{
    Batch, BufferId, Clock, Counter, Device, DeviceError, DriverVersion, EnergyMeter, HostFunctions, KernelId, Launch,
    LaunchArg, ModuleId, Monitor, Prepare, RunReport, Step,
};
use runner_types::{Capabilities, CompileKey, Compiled, DeviceInfo, ElementType, KernelResources, Occupancy};

/// A pair of ids, one for each device.
type Both<T> = (T, T);

#[derive(Debug)]
pub struct PairedDevice {
    info: DeviceInfo,
    first: Box<dyn Device>,
    second: Box<dyn Device>,
    modules: BTreeMap<ModuleId, Both<ModuleId>>,
    kernels: BTreeMap<KernelId, (Both<KernelId>, String)>,
    buffers: BTreeMap<BufferId, Both<BufferId>>,
    next: u32,
    /// Code for the second device, by the key of the first device's code; the same code if not listed.
    pub code: BTreeMap<CompileKey, Compiled>,
    /// Element type of each buffer argument, by the kernel's mangled name.
    pub arguments: BTreeMap<String, Vec<Option<ElementType>>>,
    /// Element types of the buffers that have been passed to a kernel.
    elements: BTreeMap<BufferId, ElementType>,
    /// Number of batches that ran on both devices.
    pub batches: usize,
    /// Number of buffers that were compared.
    pub compared: usize,
    pub differences: Vec<String>,
}

impl PairedDevice {
    /// Reports the limits of the first device, and neither a clock nor counters.
    pub fn new(first: Box<dyn Device>, second: Box<dyn Device>) -> Self {
        let capabilities = Capabilities { has_clock: false, has_counters: false };
        let info = DeviceInfo { capabilities, ..first.info().clone() };
        Self {
            info,
            first,
            second,
            modules: BTreeMap::new(),
            kernels: BTreeMap::new(),
            buffers: BTreeMap::new(),
            next: 0,
            code: BTreeMap::new(),
            arguments: BTreeMap::new(),
            elements: BTreeMap::new(),
            batches: 0,
            compared: 0,
            differences: Vec::new(),
        }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn add_buffer(&mut self, both: Both<BufferId>) -> BufferId {
        let id = BufferId(self.number());
        self.buffers.insert(id, both);
        id
    }

    /// The batch with the ids of one of the two devices.
    fn translated(&self, batch: &Batch, side: impl Fn(Both<u32>) -> u32) -> Batch {
        let buffer = |id: &BufferId| {
            let (a, b) = self.buffers[id];
            BufferId(side((a.0, b.0)))
        };
        let prepare = batch.prepare.iter().map(|p| match p {
            Prepare::Fill { buffer: at, byte } => Prepare::Fill { buffer: buffer(at), byte: *byte },
            Prepare::Undefine { buffer: at, byte } => Prepare::Undefine { buffer: buffer(at), byte: *byte },
            Prepare::Copy { from, to } => Prepare::Copy { from: buffer(from), to: buffer(to) },
        });
        let steps = batch.steps.iter().map(|step| match step {
            Step::Copy { from, to } => Step::Copy { from: buffer(from), to: buffer(to) },
            Step::Launch(launch) => {
                let ((a, b), _) = self.kernels[&launch.kernel];
                let args = launch.args.iter().map(|arg| match arg {
                    LaunchArg::Buffer(id) => LaunchArg::Buffer(buffer(id)),
                    LaunchArg::Offset(id, bytes) => LaunchArg::Offset(buffer(id), *bytes),
                    LaunchArg::Texture(texture) => LaunchArg::Texture(texture.with_buffer(buffer(&texture.buffer))),
                    value @ (LaunchArg::Scalar(_) | LaunchArg::Struct(_)) => value.clone(),
                });
                Step::Launch(Launch { kernel: KernelId(side((a.0, b.0))), args: args.collect(), ..launch.clone() })
            }
            Step::Memset { buffer: at, value } => Step::Memset { buffer: buffer(at), value: *value },
            Step::Loop(inner) => panic!("{inner:?}: no experiment that is compared has a loop"),
            Step::Call(call) => panic!("{call:?}: the simulator calls no function of the host"),
        });
        Batch { prepare: prepare.collect(), steps: steps.collect(), ..batch.clone() }
    }

    /// Records the element types of the buffers that a batch passes to kernels.
    fn learn(&mut self, batch: &Batch) {
        for step in &batch.steps {
            let Step::Launch(launch) = step else { continue };
            let Some(known) = self.arguments.get(&self.kernels[&launch.kernel].1) else { continue };
            for (arg, element) in launch.args.iter().zip(known) {
                if let (LaunchArg::Buffer(id), Some(element)) = (arg, element) {
                    self.elements.insert(*id, *element);
                }
            }
        }
    }

    /// Compares every buffer between the devices.
    fn compare(&mut self) -> Result<(), DeviceError> {
        for (id, (a, b)) in &self.buffers {
            let size = self.first.size(*a);
            let (mut ours, mut theirs) = (vec![0; size], vec![0; size]);
            self.first.download(*a, 0, &mut ours)?;
            self.second.download(*b, 0, &mut theirs)?;
            self.compared += 1;
            let element = self.elements.get(id).copied();
            let difference = apart(element, &ours, &theirs);
            self.differences.extend(difference.map(|text| format!("{size} bytes of {element:?}: {text}")));
        }
        Ok(())
    }
}

/// First difference between two contents of a buffer. Floats may differ by what another order of rounding explains;
/// everything else must be equal bit for bit.
pub fn apart(element: Option<ElementType>, ours: &[u8], theirs: &[u8]) -> Option<String> {
    match element {
        Some(element) if element.is_float() => floats_apart(element, ours, theirs),
        _ => ours.iter().zip(theirs).position(|(x, y)| x != y).map(|at| format!("byte {at} differs")),
    }
}

/// Value of a float element, and the tolerance relative to the largest element.
fn value(element: ElementType, bytes: &[u8]) -> Option<(f64, f64)> {
    Some(match (element, bytes) {
        (ElementType::F16, &[a, b]) => (f16::from_le_bytes([a, b]).to_f64(), 4e-3),
        (ElementType::Bf16, &[a, b]) => (bf16::from_le_bytes([a, b]).to_f64(), 3e-2),
        (ElementType::F32, &[a, b, c, d]) => (f32::from_le_bytes([a, b, c, d]).into(), 1e-5),
        (ElementType::F64, bytes) => (f64::from_le_bytes(bytes.try_into().ok()?), 1e-12),
        _ => return None,
    })
}

/// First element that differs by more than another order of rounding explains, relative to the largest element.
fn floats_apart(element: ElementType, ours: &[u8], theirs: &[u8]) -> Option<String> {
    let pairs = || ours.chunks_exact(element.size()).zip(theirs.chunks_exact(element.size()));
    let magnitude = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    let largest = pairs().filter_map(|(x, _)| value(element, x)).map(|(x, _)| magnitude(x)).fold(0.0, f64::max);
    pairs().enumerate().filter(|(_, (x, y))| x != y).find_map(|(at, (x, y))| {
        let ((x, tolerance), (y, _)) = (value(element, x)?, value(element, y)?);
        let near = (x - y).abs() <= tolerance * largest || (x.is_nan() && y.is_nan());
        (!near).then(|| format!("element {at} is {x} and {y}"))
    })
}

impl Device for PairedDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn driver(&self) -> Option<DriverVersion> {
        self.first.driver()
    }

    fn uuid(&self) -> Option<String> {
        None
    }

    fn clock(&mut self) -> Option<&mut dyn Clock> {
        None
    }

    fn counter(&mut self) -> Option<&mut dyn Counter> {
        None
    }

    fn monitor(&mut self) -> Result<&mut dyn Monitor, String> {
        Err("two devices have no common monitor".to_owned())
    }

    fn energy_meter(&mut self) -> Result<&mut dyn EnergyMeter, String> {
        Err("two devices have no common energy meter".to_owned())
    }

    fn host_functions(&mut self) -> Option<&mut dyn HostFunctions> {
        None
    }

    fn load_builtin(&mut self, _ptx: &'static str) -> Result<Option<ModuleId>, DeviceError> {
        Ok(None)
    }

    fn set_pending_launches(&mut self, _count: Option<u32>) -> Result<(), DeviceError> {
        Ok(())
    }

    fn label(&mut self, _buffer: BufferId, _name: &str) {}

    fn set_time_limit(&mut self, _limit: Duration) -> bool {
        false
    }

    fn load(&mut self, code: &Compiled) -> Result<ModuleId, DeviceError> {
        let other = self.code.get(&code.key).unwrap_or(code);
        let both = (self.first.load(code)?, self.second.load(other)?);
        let id = ModuleId(self.number());
        self.modules.insert(id, both);
        Ok(id)
    }

    fn unload(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        let (a, b) = self.modules[&module];
        self.first.unload(a)?;
        self.second.unload(b)
    }

    fn kernel(&mut self, module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError> {
        let (a, b) = self.modules[&module];
        let both = (self.first.kernel(a, mangled)?, self.second.kernel(b, mangled)?);
        let id = KernelId(self.number());
        self.kernels.insert(id, (both, mangled.to_owned()));
        Ok(id)
    }

    fn resources(&self, kernel: KernelId) -> Result<KernelResources, DeviceError> {
        self.first.resources(self.kernels[&kernel].0.0)
    }

    fn occupancy(&self, kernel: KernelId, threads: u32, shared: u32) -> Result<Occupancy, DeviceError> {
        self.first.occupancy(self.kernels[&kernel].0.0, threads, shared)
    }

    fn best_block(&self, kernel: KernelId, shared: u32) -> Result<u32, DeviceError> {
        self.first.best_block(self.kernels[&kernel].0.0, shared)
    }

    fn alloc(&mut self, bytes: usize, guard: usize) -> Result<BufferId, DeviceError> {
        let both = (self.first.alloc(bytes, guard)?, self.second.alloc(bytes, guard)?);
        // The contents are undefined and would differ.
        let id = self.add_buffer(both);
        self.upload(id, 0, &vec![0; bytes])?;
        Ok(id)
    }

    fn symbol(&mut self, module: ModuleId, mangled: &str) -> Result<BufferId, DeviceError> {
        let (a, b) = self.modules[&module];
        let both = (self.first.symbol(a, mangled)?, self.second.symbol(b, mangled)?);
        Ok(self.add_buffer(both))
    }

    /// Pairs are not timed, so no variables of a module need to be restored.
    fn variables(&mut self, _module: ModuleId) -> Result<Vec<String>, DeviceError> {
        Ok(Vec::new())
    }

    fn size(&self, buffer: BufferId) -> usize {
        self.buffers.get(&buffer).map_or(0, |both| self.first.size(both.0))
    }

    fn free(&mut self, buffer: BufferId) -> Result<(), DeviceError> {
        let (a, b) = self.buffers[&buffer];
        self.buffers.remove(&buffer);
        self.elements.remove(&buffer);
        self.first.free(a)?;
        self.second.free(b)
    }

    fn upload(&mut self, buffer: BufferId, offset: usize, data: &[u8]) -> Result<(), DeviceError> {
        let (a, b) = self.buffers[&buffer];
        self.first.upload(a, offset, data)?;
        self.second.upload(b, offset, data)
    }

    fn download(&mut self, buffer: BufferId, offset: usize, data: &mut [u8]) -> Result<(), DeviceError> {
        self.first.download(self.buffers[&buffer].0, offset, data)
    }

    fn write_guards(&mut self, buffer: BufferId, byte: u8) -> Result<(), DeviceError> {
        let (a, b) = self.buffers[&buffer];
        self.first.write_guards(a, byte)?;
        self.second.write_guards(b, byte)
    }

    fn read_guards(&mut self, buffer: BufferId) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        self.first.read_guards(self.buffers[&buffer].0)
    }

    fn run(&mut self, batch: &Batch) -> Result<RunReport, DeviceError> {
        let (ours, theirs) = (self.translated(batch, |both| both.0), self.translated(batch, |both| both.1));
        let RunReport { printed, .. } = self.first.run(&ours)?;
        self.second.run(&theirs)?;
        self.batches += 1;
        self.learn(batch);
        self.compare()?;
        Ok(RunReport { printed, ..RunReport::default() })
    }

    fn memory_free(&self) -> Option<u64> {
        None
    }

    fn iterations(&self) -> u32 {
        0
    }
}
