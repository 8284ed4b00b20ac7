//! Modules, kernels and buffers of a device by id, and the resolution of a batch's steps.
//!
//! Ids are never reused. Kernels, symbols and functions of a module are removed with it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cudarc::driver::sys;

use super::array::{Array, ArrayCopy};
use super::handles::{Module, Stream};
use super::kernel::{Arguments, Kernel};
use super::launch::{Shape, Window};
use super::memory::Buffer;
use super::operation::Operation;
use super::plugin::{HostFunction, Plugin};
use super::prepare::Preparer;
use super::probe::Filled;
use super::repeated::{self, Loops, Repeated};
use super::texture::{Texels, TextureObject};
use crate::views::{ArrayView, UsedArray, Views};
use crate::work;
use crate::{
    BufferId, DeviceError, FunctionId, HostCall, Iteration, KernelId, Launch, LaunchArg, ModuleId, Prepare, Step,
    streams,
};
use runner_types::{DeviceInfo, Texture, limits};

/// A texture or surface, and the storage of its texels.
type TexelView = (Texture<BufferId>, Texels);

/// Everything that has an id. Kernels are dropped before their modules.
#[derive(Debug, Default)]
pub(super) struct Table {
    kernels: BTreeMap<KernelId, Kernel>,
    buffers: BTreeMap<BufferId, Buffer>,
    modules: BTreeMap<ModuleId, Module>,
    /// Writable variables of each module.
    variables: BTreeMap<ModuleId, Vec<String>>,
    functions: BTreeMap<FunctionId, HostFunction>,
    plugins: BTreeMap<ModuleId, Plugin>,
    pub loops: Loops,
    /// Texture and surface objects of buffers.
    textures: RefCell<Vec<(TexelView, TextureObject)>>,
    /// Arrays of buffers, dropped after the texture objects that use them.
    arrays: RefCell<Vec<(ArrayView, Array)>>,
    /// Most recently assigned id, of any kind.
    last: u32,
}

impl Table {
    fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub fn add_module(&mut self, module: Module, variables: Vec<String>) -> ModuleId {
        let id = ModuleId(self.next());
        self.modules.insert(id, module);
        self.variables.insert(id, variables);
        id
    }

    pub fn add_plugin(&mut self, plugin: Plugin) -> ModuleId {
        let id = ModuleId(self.next());
        self.plugins.insert(id, plugin);
        id
    }

    pub fn add_function(
        &mut self,
        id: ModuleId,
        name: &str,
        args: &[LaunchArg],
        stream: &Stream,
    ) -> Result<FunctionId, DeviceError> {
        let plugin = *self.plugins.get(&id).ok_or_else(|| unknown("plug-in", id.0))?;
        let function =
            HostFunction::prepare((id, plugin), name, stream, &self.arguments(args, &Views::of_arguments(args))?.1)?;
        let id = FunctionId(self.next());
        self.functions.insert(id, function);
        Ok(id)
    }

    /// Writable variables of a module; a plug-in has none.
    pub fn variables(&self, id: ModuleId) -> Vec<String> {
        self.variables.get(&id).cloned().unwrap_or_default()
    }

    pub fn module(&self, id: ModuleId) -> Result<&Module, DeviceError> {
        self.modules.get(&id).ok_or_else(|| unknown("module", id.0))
    }

    pub fn remove_module(&mut self, id: ModuleId) -> Result<(), DeviceError> {
        if self.plugins.remove(&id).is_some() {
            self.functions.retain(|_, function| function.module != id);
            return Ok(());
        }
        self.module(id)?;
        self.kernels.retain(|_, kernel| kernel.module != id);
        self.buffers.retain(|_, buffer| buffer.module != Some(id));
        self.variables.remove(&id);
        self.modules.remove(&id);
        Ok(())
    }

    /// Finds a kernel by mangled name. The same kernel has the same id.
    pub fn find_kernel(&mut self, module: ModuleId, mangled: &str) -> Result<KernelId, DeviceError> {
        let known = self.kernels.iter().find(|(_, kernel)| kernel.module == module && kernel.name == mangled);
        if let Some((id, _)) = known {
            return Ok(*id);
        }
        let kernel = Kernel::find(module, self.module(module)?, mangled)?;
        let id = KernelId(self.next());
        self.kernels.insert(id, kernel);
        Ok(id)
    }

    pub fn kernel(&self, id: KernelId) -> Result<&Kernel, DeviceError> {
        self.kernels.get(&id).ok_or_else(|| unknown("kernel", id.0))
    }

    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        let id = BufferId(self.next());
        self.buffers.insert(id, buffer);
        id
    }

    pub fn buffer(&self, id: BufferId) -> Result<&Buffer, DeviceError> {
        self.buffers.get(&id).ok_or_else(|| unknown("buffer", id.0))
    }

    pub fn remove_buffer(&mut self, id: BufferId) -> Result<(), DeviceError> {
        self.textures.get_mut().retain(|((texture, _), _)| texture.buffer != id);
        self.arrays.get_mut().retain(|(view, _)| view.texels.buffer != id);
        self.buffers.remove(&id).map(drop).ok_or_else(|| unknown("buffer", id.0))
    }

    /// Address of a range of a buffer; `bytes` from `offset` must be within it.
    pub fn stretch(&self, id: BufferId, offset: usize, bytes: usize) -> Result<sys::CUdeviceptr, DeviceError> {
        let buffer = self.buffer(id)?;
        match offset.checked_add(bytes) {
            Some(end) if end <= buffer.bytes => Ok(buffer.address + offset as sys::CUdeviceptr),
            _ => Err(DeviceError::Driver {
                call: "copy",
                message: format!("{bytes} bytes at offset {offset} are outside a buffer of {}", buffer.bytes),
            }),
        }
    }

    pub fn prepare_all<'a>(
        &'a self,
        prepare: &[Prepare],
        preparer: &'a Preparer,
    ) -> Result<Vec<Operation<'a>>, DeviceError> {
        prepare.iter().map(|prepare| self.prepare(prepare, preparer)).collect()
    }

    fn prepare<'a>(&'a self, prepare: &Prepare, preparer: &'a Preparer) -> Result<Operation<'a>, DeviceError> {
        match *prepare {
            Prepare::Fill { buffer, byte } | Prepare::Undefine { buffer, byte } => {
                let buffer = self.buffer(buffer)?;
                Ok(preparer.fill(buffer.address, byte, buffer.bytes))
            }
            Prepare::Copy { from, to } => {
                let (to, from, bytes) = self.copied(from, to)?;
                Ok(preparer.copy(to, from, bytes))
            }
        }
    }

    /// Buffers that preparation fills.
    pub fn filled(&self, prepare: &[Prepare]) -> Vec<Filled> {
        let filled = |prepare: &Prepare| match *prepare {
            Prepare::Fill { buffer, byte } | Prepare::Undefine { buffer, byte } => {
                self.buffer(buffer).ok().map(|found| (found.address, byte, found.bytes))
            }
            Prepare::Copy { .. } => None,
        };
        prepare.iter().filter_map(filled).collect()
    }

    /// How a body uses its buffers. Kernels may use a module's variable by its name.
    pub fn views(&self, steps: &[Step]) -> Result<Views, DeviceError> {
        let views = self.with_variables(work::views(steps))?;
        let are_mixed =
            steps.iter().any(|step| matches!(step, Step::Launch(launch) if !views.mixed(&launch.args).is_empty()));
        if are_mixed && streams(steps) > 1 {
            return Err(DeviceError::InvalidLaunch(
                "a body in several streams uses a buffer both as a texture or surface array and in another way: on a \
                 GPU the array would be copied while another stream uses it; use one stream"
                    .to_owned(),
            ));
        }
        Ok(views)
    }

    fn with_variables(&self, mut views: Views) -> Result<Views, DeviceError> {
        for buffer in views.buffers() {
            if self.buffer(buffer)?.module.is_some() {
                views.note_address(buffer);
            }
        }
        Ok(views)
    }

    /// Resolves a step of a body that uses its buffers as in `views`.
    pub fn step(&self, info: &DeviceInfo, step: &Step, views: &Views) -> Result<Operation<'_>, DeviceError> {
        match step {
            Step::Launch(launch) => self.launch(info, launch, views),
            Step::Copy { from, to } => {
                let (to, from, bytes) = self.copied(*from, *to)?;
                Ok(Operation::Copy { to, from, bytes })
            }
            Step::Call(HostCall { function, args }) => {
                let function = self.functions.get(function).ok_or_else(|| DeviceError::unknown_function(*function))?;
                if !views.mixed(args).is_empty() {
                    return Err(DeviceError::InvalidLaunch(
                        "a host function takes a buffer as a texture or surface array, but the case also uses it in \
                         another way: pass the buffer's address to the function"
                            .to_owned(),
                    ));
                }
                Ok(Operation::Call { function, arguments: self.arguments(args, views)?.1 })
            }
            Step::Memset { buffer, value } => {
                let Buffer { address, bytes, .. } = *self.buffer(*buffer)?;
                // A number of eight bytes has equal halves.
                let value = (value.bits as u32, value.element.size().min(size_of::<u32>()));
                Ok(Operation::Set { address, value, bytes })
            }
            Step::Loop(inner) => {
                let iterations = inner.iterations.iter().map(|iteration| self.iteration(info, iteration, views));
                let iterations = iterations.collect::<Result<_, _>>()?;
                Ok(Operation::Loop(Repeated {
                    iterations,
                    at_most: inner.at_most,
                    period: inner.period(),
                    shared: &self.loops,
                }))
            }
        }
    }

    fn iteration(
        &self,
        info: &DeviceInfo,
        iteration: &Iteration,
        views: &Views,
    ) -> Result<repeated::Iteration<Operation<'_>>, DeviceError> {
        let reads = iteration.until.reads.iter().map(|read| {
            let bytes = read.element.size();
            Ok((self.stretch(read.buffer, 0, bytes)?, bytes))
        });
        Ok(repeated::Iteration {
            steps: iteration.steps.iter().map(|step| self.step(info, step, views)).collect::<Result<_, _>>()?,
            until: iteration.until.clone(),
            reads: reads.collect::<Result<_, DeviceError>>()?,
        })
    }

    /// Destination, source and size in bytes of a copy.
    fn copied(&self, from: BufferId, to: BufferId) -> Result<(sys::CUdeviceptr, sys::CUdeviceptr, usize), DeviceError> {
        let (from, to) = (self.buffer(from)?, self.buffer(to)?);
        if from.bytes > to.bytes {
            return Err(DeviceError::Driver {
                call: "copy",
                message: format!("{} bytes do not fit in a buffer of {}", from.bytes, to.bytes),
            });
        }
        Ok((to.address, from.address, from.bytes))
    }

    /// Checks a launch against the device's limits and packs its arguments.
    fn launch(&self, info: &DeviceInfo, launch: &Launch, views: &Views) -> Result<Operation<'_>, DeviceError> {
        let kernel = self.kernel(launch.kernel)?;
        let Launch { grid, block, settings, cluster, .. } = *launch;
        let window = launch.persist.map(|kept| {
            self.buffer(kept.buffer).map(|&Buffer { address, bytes, .. }| Window { address, bytes, ratio: kept.ratio })
        });
        let shape = Shape { grid, block, settings, cluster, window: window.transpose()? };
        shape.judge(info, &kernel.resources()).map_err(DeviceError::InvalidLaunch)?;
        kernel.opt_in(shape.shared())?;
        kernel.carve_out(settings.carveout)?;
        if settings.cooperative {
            let blocks = kernel.resident_blocks(block.count() as u32, shape.shared())?;
            let resident = u64::from(blocks) * u64::from(info.sm_count);
            limits::resident(grid, resident).map_err(DeviceError::InvalidLaunch)?;
        }
        let (sizes, arguments) = self.arguments(&launch.args, views)?;
        kernel.accept(&sizes)?;
        if self.with_variables(Views::of_arguments(&launch.args))?.conflicts() {
            return Err(DeviceError::InvalidLaunch(
                "a launch takes a buffer as a surface, and also by its address or as a surface of another shape: on a \
                 GPU a surface has its own copy of the buffer, so one would undo what the other writes"
                    .to_owned(),
            ));
        }
        let copies = self.array_copies(&views.mixed(&launch.args))?;
        let copies = copies.into_iter().flat_map(|(load, store)| [Some(load), store]).flatten().collect();
        Ok(Operation::Launch { kernel, shape, arguments, copies })
    }

    /// Size of each argument in bytes, and all arguments packed.
    fn arguments(&self, arguments: &[LaunchArg], views: &Views) -> Result<(Vec<usize>, Arguments), DeviceError> {
        let read: Vec<(usize, Vec<u64>)> =
            arguments.iter().map(|argument| self.argument(argument, views)).collect::<Result<_, _>>()?;
        let (sizes, values) = read.into_iter().unzip();
        Ok((sizes, Arguments::from_lists(values)))
    }

    /// Array of a view, created once per buffer.
    fn array(&self, view: &ArrayView) -> Result<sys::CUarray, DeviceError> {
        let mut arrays = self.arrays.borrow_mut();
        if let Some((_, array)) = arrays.iter().find(|(known, _)| known == view) {
            return Ok(array.raw());
        }
        let array = Array::new(view)?;
        let raw = array.raw();
        arrays.push((view.clone(), array));
        Ok(raw)
    }

    /// For each array the copy into it and, for a surface, the copy back.
    pub fn array_copies(&self, arrays: &[UsedArray]) -> Result<Vec<(ArrayCopy, Option<ArrayCopy>)>, DeviceError> {
        let copies = arrays.iter().map(|(view, is_stored)| {
            let texels = view.texels.clone();
            let load = ArrayCopy::load(self.array(view)?, self.buffer(texels.buffer)?.address, texels);
            let store = is_stored.then(|| load.store());
            Ok((load, store))
        });
        copies.collect()
    }

    /// Handle of a texture or surface object, created once per view of a buffer.
    fn texture(&self, texture: &Texture<BufferId>, views: &Views) -> Result<u64, DeviceError> {
        let texels = match views.array(texture) {
            Some(view) => Texels::Array(self.array(&view)?),
            None => Texels::Memory(self.buffer(texture.buffer)?.address),
        };
        let view = (texture.clone(), texels);
        let mut textures = self.textures.borrow_mut();
        if let Some((_, object)) = textures.iter().find(|(known, _)| *known == view) {
            return Ok(object.handle());
        }
        let object = TextureObject::new(texture, texels)?;
        let handle = object.handle();
        textures.push((view, object));
        Ok(handle)
    }

    /// Size of an argument in bytes, and its bits.
    fn argument(&self, argument: &LaunchArg, views: &Views) -> Result<(usize, Vec<u64>), DeviceError> {
        Ok(match argument {
            LaunchArg::Buffer(id) => (size_of::<sys::CUdeviceptr>(), vec![self.buffer(*id)?.address]),
            LaunchArg::Offset(id, bytes) => (size_of::<sys::CUdeviceptr>(), vec![self.buffer(*id)?.address + bytes]),
            LaunchArg::Scalar(scalar) => (scalar.element.size(), vec![scalar.bits]),
            LaunchArg::Texture(texture) => (size_of::<u64>(), vec![self.texture(texture, views)?]),
            LaunchArg::Struct(value) => {
                let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                let bytes = value.bytes(|id| self.buffer(id).map(|buffer| buffer.address))?;
                (bytes.len(), bytes.chunks(size_of::<u64>()).map(word).collect())
            }
        })
    }
}

fn unknown(what: &str, id: u32) -> DeviceError {
    DeviceError::Driver { call: "lookup", message: format!("the device knows no {what} {id}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::h100;

    #[test]
    fn copies_stay_inside_their_buffers() {
        let mut table = Table::default();
        let small = table.add_buffer(Buffer::variable(ModuleId(9), 4096, 100));
        let large = table.add_buffer(Buffer::variable(ModuleId(9), 8192, 200));
        assert_eq!(table.stretch(small, 60, 40), Ok(4156));
        assert_eq!(
            table.stretch(small, 60, 41).map_err(|e| e.to_string()),
            Err("copy: 41 bytes at offset 60 are outside a buffer of 100".to_owned())
        );
        assert!(table.stretch(small, usize::MAX, 2).is_err());
        let copied = |from, to| {
            table.step(&h100(), &Step::Copy { from, to }, &Views::default()).map(drop).map_err(|e| e.to_string())
        };
        assert_eq!(copied(small, large), Ok(()));
        assert_eq!(copied(large, small), Err("copy: 200 bytes do not fit in a buffer of 100".to_owned()));
    }

    #[test]
    fn an_id_that_went_is_named() {
        let mut table = Table::default();
        let id = table.add_buffer(Buffer::variable(ModuleId(9), 4096, 100));
        assert_eq!(table.remove_buffer(id), Ok(()));
        assert_eq!(
            table.remove_buffer(id).map_err(|e| e.to_string()),
            Err("lookup: the device knows no buffer 1".to_owned())
        );
        assert!(table.add_buffer(Buffer::variable(ModuleId(9), 0, 0)) != id);
    }
}
