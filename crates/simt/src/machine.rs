//! The simulated device: memory, modules and launches.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::error::SimError;
use crate::exec::launch_state::Deadline;
use crate::exec::simd::HostIsa;
use crate::image::{Image, Images};
use crate::launch::{LaunchError, LaunchReport, Options, Tree, resident};
use crate::link::{self, Part};
use crate::lower;
use crate::memory::{Memory, Use, WORKSPACE};
use crate::mir::globals::Globals;
use crate::profile::DeviceProfile;
use crate::program::Kernel;
use crate::runtime::errors::Texts;
use crate::runtime::heap::{self, Heap};
use crate::runtime::limits::violation;
use crate::runtime::{Device, PENDING_LAUNCHES, Shape, Slots};
use crate::sanitize::Ignored;
use ptx_parser::Module;

/// Handle of a loaded module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(u32);

/// Kernel, shape and arguments of a launch.
#[derive(Debug, Clone, Copy)]
pub struct LaunchSpec<'s> {
    /// Name of the kernel.
    pub kernel: &'s str,
    /// Blocks of the grid along each axis.
    pub grid: [u32; 3],
    /// Threads of a block along each axis.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, in bytes.
    pub shared: u32,
    /// Whether all blocks must reside on the device at the same time, as a grid barrier requires.
    pub cooperative: bool,
    /// Blocks per cluster along each axis; `None` for the size that the kernel was compiled for.
    pub cluster: Option<[u32; 3]>,
    /// Arguments, each as little-endian bytes.
    pub args: &'s [Vec<u8>],
}

/// Properties of a kernel that are known without a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelFacts {
    /// Static shared memory per block, in bytes.
    pub shared: u32,
    /// Local memory per thread for the kernel's own frame, in bytes.
    pub local: u32,
    /// Thread limit from `.maxntid`.
    pub max_threads: Option<u32>,
    /// Blocks per cluster along each axis, if the kernel was compiled for clusters.
    pub cluster: Option<[u32; 3]>,
}

#[derive(Debug)]
struct Loaded {
    kernels: BTreeMap<String, Kernel>,
    /// Kernels that contain a form that is not simulated: number and error.
    refused: BTreeMap<String, (u32, SimError)>,
    variables: BTreeMap<String, (u64, u64)>,
    /// Addresses of all variables, including those declared in functions.
    allocated: Vec<u64>,
}

/// A simulated device.
#[derive(Debug)]
pub struct Machine {
    profile: DeviceProfile,
    options: Options,
    /// Whether later launches use the sanitizer, provided that the options enable it.
    sanitizes: bool,
    /// Whether later launches run only a sample of their blocks.
    samples: bool,
    counts_lines: bool,
    memory: Memory,
    heap: Heap,
    images: Images,
    modules: BTreeMap<u32, Loaded>,
    next_module: u32,
    isa: HostIsa,
    /// Grid barrier of cooperative groups, which find it through `%envreg1` and `%envreg2`.
    workspace: u64,
    names: u64,
    /// Maximum number of pending launches from kernels.
    pending_launches: u64,
    texts: Texts,
    deadline: Option<Deadline>,
}

impl Machine {
    /// Creates a machine with a profile. Its memory is reserved but not committed. Fails if the host cannot reserve it.
    pub fn new(profile: DeviceProfile, options: Options) -> Result<Self, SimError> {
        let memory = Memory::new(profile.memory, options.memory)?;
        let workspace = memory
            .alloc(WORKSPACE, "the workspace of the grid", Use::Internal)
            .ok_or_else(|| SimError::Host("the device has no memory".to_owned()))?;
        let heap = Heap::new(options.heap);
        let isa = HostIsa::detect();
        let modules = BTreeMap::new();
        Ok(Self {
            profile,
            options,
            sanitizes: true,
            samples: false,
            counts_lines: false,
            memory,
            heap,
            images: Images::default(),
            modules,
            next_module: 0,
            isa,
            workspace,
            names: 0,
            pending_launches: PENDING_LAUNCHES,
            texts: Texts::default(),
            deadline: None,
        })
    }

    /// Returns the profile of the machine.
    pub const fn profile(&self) -> &DeviceProfile {
        &self.profile
    }

    /// Parses a module and lowers all its kernels. A kernel with a form that is not simulated is refused only when it
    /// is used; the others work. Fails if the module's only kernel is not simulated.
    pub fn load(&mut self, ptx: &str) -> Result<ModuleId, SimError> {
        self.load_module(&ptx_parser::parse(ptx)?)
    }

    /// Loads a module that is linked from the PTX of several files. Each file may use functions and variables of the
    /// others.
    pub fn load_linked(&mut self, parts: &[Part<'_>]) -> Result<ModuleId, SimError> {
        let texts = link::separate(parts)?;
        self.load_module(&link::merged(parts, &texts)?)
    }

    fn load_module(&mut self, module: &Module<'_>) -> Result<ModuleId, SimError> {
        let globals = Globals::new(module, &self.memory)?;
        let (mut kernels, mut refused) = (BTreeMap::new(), BTreeMap::new());
        for entry in module.functions.iter().filter(|f| f.entry && f.body.is_some()) {
            match lower::kernel(module, &globals, entry, self.isa, self.profile.shared_reserved) {
                Ok(kernel) => {
                    kernels.insert(entry.name.to_owned(), kernel);
                }
                Err(error) => {
                    refused.insert(entry.name.to_owned(), (globals.numbers[entry.name], error));
                }
            }
        }
        if kernels.is_empty()
            && refused.len() == 1
            && let Some((_, (_, error))) = refused.pop_first()
        {
            globals.free(&self.memory);
            return Err(error);
        }
        let variables = module
            .variables
            .iter()
            .filter_map(|v| Some((v.name.to_owned(), (*globals.addresses.get(v.name)?, v.size()))))
            .collect();
        self.next_module += 1;
        self.modules
            .insert(self.next_module, Loaded { kernels, refused, variables, allocated: globals.placed().collect() });
        Ok(ModuleId(self.next_module))
    }

    /// Sets a kernel's number of registers per thread, for kernels that query it.
    pub fn set_registers(&mut self, module: ModuleId, kernel: &str, registers: u32) {
        if let Some(kernel) = self.modules.get_mut(&module.0).and_then(|m| m.kernels.get_mut(kernel)) {
            kernel.registers = registers;
        }
    }

    /// Sets the name that traps and notes use for a kernel, instead of its symbol.
    pub fn name_kernel(&mut self, module: ModuleId, kernel: &str, name: &str) {
        if let Some(kernel) = self.modules.get_mut(&module.0).and_then(|m| m.kernels.get_mut(kernel)) {
            name.clone_into(&mut kernel.name);
        }
    }

    /// Sets the name that traps and notes use for memory from [`Self::alloc`].
    pub fn name_memory(&mut self, address: u64, name: &str) {
        self.memory.rename(address, name);
    }

    /// Sets the maximum number of pending launches from kernels (`cudaLimitDevRuntimePendingLaunchCount`). `None` sets
    /// CUDA's default.
    pub fn set_pending_launches(&mut self, limit: Option<u64>) {
        self.pending_launches = limit.unwrap_or(PENDING_LAUNCHES);
    }

    /// Turns the sanitizer on or off for later launches; it stays off if the options disable it. Findings of the
    /// classes in `ignored` are not reported.
    pub const fn set_sanitizer(&mut self, is_on: bool, ignored: Ignored) {
        self.sanitizes = is_on;
        self.options.ignored = ignored;
    }

    /// Makes later launches run only a stratified sample of their blocks, and scale the counts; see
    /// [`LaunchReport::sampled`]. The sample depends only on the extents of the grid. A small grid runs as a whole.
    ///
    /// Blocks that do not run write nothing. A launch is therefore refused if it is cooperative or has clusters. It
    /// ends with [`TrapKind::Communication`] at the first access through which blocks communicate, including atomics on
    /// global memory.
    ///
    /// [`TrapKind::Communication`]: super::error::TrapKind::Communication
    pub const fn set_sampling(&mut self, is_on: bool) {
        self.samples = is_on;
    }

    /// Makes later launches count per PTX line; see [`LaunchReport::lines`].
    pub const fn count_lines(&mut self, is_on: bool) {
        self.counts_lines = is_on;
    }

    /// Sets the time limit of later launches; `None` for no limit. A launch that exceeds it ends with
    /// [`TrapKind::Deadline`]. Each block checks the time about every 10 ms.
    ///
    /// [`TrapKind::Deadline`]: super::error::TrapKind::Deadline
    pub fn set_deadline(&mut self, span: Option<Duration>) {
        self.deadline = span.and_then(|span| Some(Deadline { at: Instant::now().checked_add(span)?, span }));
    }

    /// Frees a module and its variables.
    pub fn unload(&mut self, module: ModuleId) {
        if let Some(loaded) = self.modules.remove(&module.0) {
            for address in loaded.allocated {
                self.memory.free(address);
            }
        }
    }

    fn kernel(&self, module: ModuleId, name: &str) -> Result<&Kernel, SimError> {
        let module = self.modules.get(&module.0);
        let found = module.and_then(|m| m.kernels.get(name));
        found.ok_or_else(|| match module.and_then(|m| m.refused.get(name)) {
            Some((_, reason)) => reason.clone(),
            None => SimError::NoKernel(name.to_owned()),
        })
    }

    /// Returns the names of a module's simulated kernels.
    pub fn kernels(&self, module: ModuleId) -> Vec<&str> {
        self.modules.get(&module.0).map_or_else(Vec::new, |m| m.kernels.keys().map(String::as_str).collect())
    }

    /// Returns the module's kernels that contain a form that is not simulated, with the reasons.
    pub fn refused(&self, module: ModuleId) -> impl Iterator<Item = (&str, &SimError)> {
        let refused = self.modules.get(&module.0).into_iter().flat_map(|m| &m.refused);
        refused.map(|(name, (_, reason))| (name.as_str(), reason))
    }

    /// Returns properties of a kernel that are known without a launch.
    pub fn facts(&self, module: ModuleId, kernel: &str) -> Result<KernelFacts, SimError> {
        let kernel = self.kernel(module, kernel)?;
        let &Kernel { shared_static, max_threads, cluster, .. } = kernel;
        Ok(KernelFacts { shared: shared_static, local: kernel.local_bytes(), max_threads, cluster })
    }

    /// Returns the bytecode of a kernel, and of the functions that it can call, as text.
    pub fn listing(&self, module: ModuleId, kernel: &str) -> Result<String, SimError> {
        Ok(lower::listing::listing(self.kernel(module, kernel)?))
    }

    /// Returns the address and the size in bytes of a `__device__` or `__constant__` variable.
    pub fn variable(&self, module: ModuleId, name: &str) -> Result<(u64, u64), SimError> {
        let found = self.modules.get(&module.0).and_then(|m| m.variables.get(name));
        found.copied().ok_or_else(|| SimError::NoVariable(name.to_owned()))
    }

    /// Allocates memory, whose bytes count as never written. Fails if no gap is large enough.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, SimError> {
        let name = format!("buffer {}", self.names);
        self.names += 1;
        let available = self.memory.free_bytes();
        self.memory.alloc(bytes, &name, Use::Data).ok_or(SimError::OutOfMemory { needed: bytes, available })
    }

    /// Frees memory from [`Self::alloc`].
    pub fn free(&mut self, address: u64) -> Result<(), SimError> {
        if self.memory.free(address) { Ok(()) } else { Err(SimError::Address { address, bytes: 0 }) }
    }

    /// Creates a texture or surface object. Returns its handle, which kernels take as a 64-bit argument. Fails if the
    /// object is invalid or its texels are not inside one allocation. If the memory is freed, the object remains, and
    /// fetches from it are out of bounds.
    pub fn create_image(&mut self, image: Image) -> Result<u64, SimError> {
        let (address, bytes) = (image.address, image.bytes());
        if !self.memory.owns(address, bytes) {
            return Err(SimError::Address { address, bytes });
        }
        self.images.insert(image)
    }

    /// Removes a texture or surface object.
    pub fn remove_image(&mut self, handle: u64) {
        self.images.remove(handle);
    }

    /// Copies to the device. Fails if the range is not inside one allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), SimError> {
        self.memory.write(address, data)
    }

    /// Copies from the device. Fails if the range is not inside one allocation.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), SimError> {
        self.memory.read(address, data)
    }

    /// Sets every byte of a range. Fails if the range is not inside one allocation.
    pub fn fill(&mut self, address: u64, bytes: u64, byte: u8) -> Result<(), SimError> {
        self.memory.fill(address, bytes, byte)
    }

    /// Sets every byte of a range, and marks the range as never written. Fails if the range is not inside one
    /// allocation.
    pub fn undefine(&mut self, address: u64, bytes: u64, byte: u8) -> Result<(), SimError> {
        self.memory.undefine(address, bytes, byte)
    }

    /// Returns the parts of a range, relative to its start, that neither the host nor a launch has written since they
    /// were allocated or undefined. Copies of unwritten bytes count as unwritten. `None` if launches run without the
    /// sanitizer, which records writes. Fails if the range is not inside one allocation.
    pub fn unwritten(&self, address: u64, bytes: u64) -> Result<Option<Vec<Range<u64>>>, SimError> {
        if !(self.options.sanitize && self.sanitizes) {
            return Ok(None);
        }
        self.memory.unwritten(address, bytes).map(Some)
    }

    /// Copies on the device. Fails if either range is not inside one allocation.
    pub fn copy(&mut self, from: u64, to: u64, bytes: u64) -> Result<(), SimError> {
        self.memory.copy(from, to, bytes)
    }

    /// Frees all memory that kernels have allocated with `malloc` and not freed.
    pub fn clear_heap(&mut self) {
        heap::clear(&self.memory, &self.heap);
    }

    /// Returns how many more bytes can be allocated.
    pub fn free_bytes(&self) -> u64 {
        self.memory.free_bytes()
    }

    /// Runs a kernel and everything that it launches to completion.
    pub fn launch(&mut self, module: ModuleId, spec: &LaunchSpec<'_>) -> Result<LaunchReport, LaunchError> {
        let kernel = self.kernel(module, spec.kernel)?;
        self.check(kernel, spec)?;
        let params = arguments(kernel, spec.args)?;
        let shape = Shape { grid: spec.grid, block: spec.block, shared: spec.shared, cluster: spec.cluster };
        let resident = resident(&self.profile, kernel, &shape);
        let blocks: u64 = spec.grid.iter().map(|&n| u64::from(n)).product();
        if spec.cooperative && blocks > resident {
            let message =
                format!("a cooperative launch of {blocks} blocks, but only {resident} fit on the device at once");
            return Err(SimError::Launch(message).into());
        }
        let loaded = || self.modules.get(&module.0).into_iter();
        let kernels = loaded().flat_map(|m| m.kernels.values());
        let refused = loaded().flat_map(|m| m.refused.values());
        let (stack, heap) = (u64::from(self.options.stack), self.options.heap);
        let device = Device {
            profile: &self.profile,
            kernels: kernels.map(|k| (k.number, k)).collect(),
            refused: refused.map(|(number, reason)| (*number, reason)).collect(),
            texts: &self.texts,
            stack,
            heap,
            slots: Slots::new(self.pending_launches),
        };
        let tree = Tree {
            options: Options { sanitize: self.options.sanitize && self.sanitizes, ..self.options },
            memory: &self.memory,
            heap: &self.heap,
            images: &self.images,
            workspace: (self.workspace, WORKSPACE),
            device: &device,
            deadline: self.deadline,
            sampling: self.samples,
            counts_lines: self.counts_lines,
        };
        tree.run(kernel, &shape, params, spec.cooperative)
    }

    fn check(&self, kernel: &Kernel, spec: &LaunchSpec<'_>) -> Result<(), SimError> {
        let shape = Shape { grid: spec.grid, block: spec.block, shared: spec.shared, cluster: spec.cluster };
        if let (Some(given), Some(own)) = (spec.cluster, kernel.cluster)
            && given != own
        {
            let message = format!("a launch in clusters of {given:?} blocks, but the kernel is compiled for {own:?}");
            return Err(SimError::Launch(message));
        }
        if self.samples && (spec.cooperative || spec.cluster.or(kernel.cluster).is_some_and(|size| size != [1; 3])) {
            let how = if spec.cooperative { "a cooperative launch" } else { "a launch in clusters" };
            let message = format!("{how}: its blocks communicate, and a sample of them cannot run without the others");
            return Err(SimError::Launch(message));
        }
        let exceeded = violation(kernel, &shape, &self.profile, self.profile.shared_per_block_optin);
        exceeded.map_or(Ok(()), |limit| Err(SimError::Launch(limit)))
    }
}

/// Returns the launch's parameters, laid out as the kernel reads them.
fn arguments(kernel: &Kernel, args: &[Vec<u8>]) -> Result<Vec<u8>, SimError> {
    if args.len() != kernel.params.len() {
        let (name, wanted, given) = (&kernel.name, kernel.params.len(), args.len());
        return Err(SimError::Arguments(format!(
            "kernel `{name}` has {wanted} parameters, but got {given}: `args` needs one per parameter"
        )));
    }
    let mut block = vec![0; kernel.param_bytes as usize];
    for (k, (param, arg)) in kernel.params.iter().zip(args).enumerate() {
        if param.bytes as usize != arg.len() {
            let (name, wanted, given) = (&kernel.name, param.bytes, arg.len());
            let of_struct = "; in a struct, a field with its own alignment, such as a `float4`, needs `align`";
            let hint = if wanted > 8 { of_struct } else { "" };
            return Err(SimError::Arguments(format!(
                "parameter {} of kernel `{name}` has {wanted} bytes, but the argument has {given}{hint}",
                k + 1
            )));
        }
        block[param.offset as usize..][..arg.len()].copy_from_slice(arg);
    }
    Ok(block)
}
