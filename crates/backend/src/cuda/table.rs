//! The modules, kernels and buffers of a device by id, and the resolution of a batch's steps.
//!
//! An id is never reused. Kernels, symbols and functions of a module are removed with it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cudarc::driver::sys;

use super::handles::{Module, Stream};
use super::kernel::{Arguments, Kernel};
use super::memory::Buffer;
use super::operation::Operation;
use super::plugin::{HostFunction, Plugin};
use super::prepare::Preparer;
use super::probe::Filled;
use super::repeated::{self, Loops, Repeated};
use super::shape::{Shape, Window};
use super::texture::TextureObject;
use crate::model::{DeviceInfo, Texture, limits};
use crate::{
    BufferId, DeviceError, FunctionId, HostCall, Iteration, KernelId, Launch, LaunchArg, ModuleId, Prepare, Step,
};

/// Everything that has an id. Kernels are dropped before their modules.
#[derive(Debug, Default)]
pub(super) struct Table {
    kernels: BTreeMap<KernelId, Kernel>,
    buffers: BTreeMap<BufferId, Buffer>,
    modules: BTreeMap<ModuleId, Module>,
    /// The writable variables of each module.
    variables: BTreeMap<ModuleId, Vec<String>>,
    functions: BTreeMap<FunctionId, HostFunction>,
    plugins: BTreeMap<ModuleId, Plugin>,
    pub loops: Loops,
    /// The texture objects of buffers.
    textures: RefCell<Vec<(Texture<BufferId>, TextureObject)>>,
    /// The last id, of any kind.
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

    /// Prepares a host function of a plug-in for its arguments.
    pub fn add_function(
        &mut self,
        id: ModuleId,
        name: &str,
        args: &[LaunchArg],
        stream: &Stream,
    ) -> Result<FunctionId, DeviceError> {
        let plugin = *self.plugins.get(&id).ok_or_else(|| unknown("plug-in", id.0))?;
        let function = HostFunction::prepare((id, plugin), name, stream, &self.arguments(args)?.1)?;
        let id = FunctionId(self.next());
        self.functions.insert(id, function);
        Ok(id)
    }

    /// Returns the writable variables of a module; a plug-in has none.
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

    /// Returns a kernel by its mangled name; the same one has the same id.
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
        self.textures.get_mut().retain(|(texture, _)| texture.buffer != id);
        self.buffers.remove(&id).map(drop).ok_or_else(|| unknown("buffer", id.0))
    }

    /// Returns the address of a stretch of a buffer; `bytes` from `offset` must lie in it.
    pub fn stretch(&self, id: BufferId, offset: usize, bytes: usize) -> Result<sys::CUdeviceptr, DeviceError> {
        let buffer = self.buffer(id)?;
        match offset.checked_add(bytes) {
            Some(end) if end <= buffer.bytes => Ok(buffer.address + offset as sys::CUdeviceptr),
            _ => Err(DeviceError::Driver {
                call: "copy",
                message: format!("{bytes} bytes from {offset} do not lie in a buffer of {}", buffer.bytes),
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

    /// Returns what preparation fills.
    pub fn filled(&self, prepare: &[Prepare]) -> Vec<Filled> {
        let filled = |prepare: &Prepare| match *prepare {
            Prepare::Fill { buffer, byte } | Prepare::Undefine { buffer, byte } => {
                self.buffer(buffer).ok().map(|found| (found.address, byte, found.bytes))
            }
            Prepare::Copy { .. } => None,
        };
        prepare.iter().filter_map(filled).collect()
    }

    pub fn step(&self, info: &DeviceInfo, step: &Step) -> Result<Operation<'_>, DeviceError> {
        match step {
            Step::Launch(launch) => self.launch(info, launch),
            Step::Copy { from, to } => {
                let (to, from, bytes) = self.copied(*from, *to)?;
                Ok(Operation::Copy { to, from, bytes })
            }
            Step::Call(HostCall { function, args }) => {
                let function = self.functions.get(function).ok_or_else(|| DeviceError::unknown_function(*function))?;
                Ok(Operation::Call { function, arguments: self.arguments(args)?.1 })
            }
            Step::Memset { buffer, value } => {
                let Buffer { address, bytes, .. } = *self.buffer(*buffer)?;
                // A number of eight bytes has equal halves.
                let value = (value.bits as u32, value.element.size().min(size_of::<u32>()));
                Ok(Operation::Set { address, value, bytes })
            }
            Step::Loop(inner) => {
                let iterations = inner.iterations.iter().map(|iteration| self.iteration(info, iteration));
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
    ) -> Result<repeated::Iteration<Operation<'_>>, DeviceError> {
        let reads = iteration.until.reads.iter().map(|read| {
            let bytes = read.element.size();
            Ok((self.stretch(read.buffer, 0, bytes)?, bytes))
        });
        Ok(repeated::Iteration {
            steps: iteration.steps.iter().map(|step| self.step(info, step)).collect::<Result<_, _>>()?,
            until: iteration.until.clone(),
            reads: reads.collect::<Result<_, DeviceError>>()?,
        })
    }

    /// Returns the addresses that a copy goes to and comes from, and its bytes.
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
    fn launch(&self, info: &DeviceInfo, launch: &Launch) -> Result<Operation<'_>, DeviceError> {
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
        let (sizes, arguments) = self.arguments(&launch.args)?;
        kernel.accept(&sizes)?;
        Ok(Operation::Launch { kernel, shape, arguments })
    }

    /// Returns the bytes of each argument, and all of them packed.
    fn arguments(&self, arguments: &[LaunchArg]) -> Result<(Vec<usize>, Arguments), DeviceError> {
        let read: Vec<(usize, Vec<u64>)> =
            arguments.iter().map(|argument| self.argument(argument)).collect::<Result<_, _>>()?;
        let (sizes, values) = read.into_iter().unzip();
        Ok((sizes, Arguments::from_lists(values)))
    }

    /// Returns the handle of a texture object; the same one for the same view of a buffer, as long as that lives.
    fn texture(&self, texture: &Texture<BufferId>) -> Result<u64, DeviceError> {
        let mut textures = self.textures.borrow_mut();
        if let Some((_, object)) = textures.iter().find(|(known, _)| known == texture) {
            return Ok(object.handle());
        }
        let object = TextureObject::new(texture, self.buffer(texture.buffer)?.address)?;
        let handle = object.handle();
        textures.push((texture.clone(), object));
        Ok(handle)
    }

    /// Returns the bytes and bits that an argument consists of.
    fn argument(&self, argument: &LaunchArg) -> Result<(usize, Vec<u64>), DeviceError> {
        Ok(match argument {
            LaunchArg::Buffer(id) => (size_of::<sys::CUdeviceptr>(), vec![self.buffer(*id)?.address]),
            LaunchArg::Offset(id, bytes) => (size_of::<sys::CUdeviceptr>(), vec![self.buffer(*id)?.address + bytes]),
            LaunchArg::Scalar(scalar) => (scalar.element.size(), vec![scalar.bits]),
            LaunchArg::Texture(texture) => (size_of::<u64>(), vec![self.texture(texture)?]),
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
    use crate::model::h100;

    #[test]
    fn copies_stay_inside_their_buffers() {
        let mut table = Table::default();
        let small = table.add_buffer(Buffer::variable(ModuleId(9), 4096, 100));
        let large = table.add_buffer(Buffer::variable(ModuleId(9), 8192, 200));
        assert_eq!(table.stretch(small, 60, 40), Ok(4156));
        assert_eq!(
            table.stretch(small, 60, 41).map_err(|e| e.to_string()),
            Err("copy: 41 bytes from 60 do not lie in a buffer of 100".to_owned())
        );
        assert!(table.stretch(small, usize::MAX, 2).is_err());
        let copied = |from, to| table.step(&h100(), &Step::Copy { from, to }).map(drop).map_err(|e| e.to_string());
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
