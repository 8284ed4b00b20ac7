//! Launches a kernel of a loaded module, and reports its resources.
//!
//! [`Shape`] checks launches against the device's limits. This module checks the number and sizes of arguments
//! if the driver reports them, since the driver reads as many as the kernel declares.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys;

use super::driver::{api, check};
use super::handles::{Module, Stream};
use super::launch;
use super::launch::Shape;
use crate::{DeviceError, ModuleId};
use runner_types::KernelResources;

use sys::CUfunction_attribute as Attribute;

/// Bytes of shared memory, static and dynamic, that a kernel may use without opting in.
const SHARED_WITHOUT_OPTIN: u32 = 48 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelFacts {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of static shared memory per block.
    pub shared_static: u32,
    /// Bytes of local memory per thread.
    pub local: u32,
    /// Maximum number of threads per block that registers and launch bounds allow.
    pub max_threads: u32,
    /// Blocks per cluster along each axis, if compiled for clusters.
    pub cluster: Option<[u32; 3]>,
}

#[derive(Debug)]
pub(super) struct Kernel {
    pub module: ModuleId,
    pub name: String,
    pub facts: KernelFacts,
    /// Whether it has run: the first launch may wait for memory to be set up.
    pub ran: Cell<bool>,
    function: sys::CUfunction,
    /// Size of each parameter in bytes; `None` if the driver does not report them.
    parameters: Option<Vec<usize>>,
    /// Bytes of dynamic shared memory that it has opted in to.
    opted_in: Cell<u32>,
    /// Preferred percentage of shared memory, if set.
    carveout: Cell<Option<i64>>,
}

impl Kernel {
    pub fn find(id: ModuleId, module: &Module, mangled: &str) -> Result<Self, DeviceError> {
        let function = module.function(mangled)?;
        let facts = KernelFacts {
            registers: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared_static: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            local: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            max_threads: attribute(function, Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            cluster: cluster(function),
        };
        Ok(Self {
            module: id,
            name: mangled.to_owned(),
            facts,
            ran: Cell::new(false),
            function,
            parameters: parameters(function)?,
            opted_in: Cell::new(0),
            carveout: Cell::new(None),
        })
    }

    pub fn resources(&self) -> KernelResources {
        KernelResources {
            registers: Some(self.facts.registers),
            shared_static: Some(self.facts.shared_static),
            local: Some(self.facts.local),
            spill_stores: None,
            spill_loads: None,
            max_threads: Some(self.facts.max_threads),
            cluster: self.facts.cluster,
        }
    }

    /// Opts in to `dynamic` bytes of shared memory, which must be within the device's limit.
    pub fn opt_in(&self, dynamic: u32) -> Result<(), DeviceError> {
        let all = self.facts.shared_static.saturating_add(dynamic);
        if all <= SHARED_WITHOUT_OPTIN || dynamic <= self.opted_in.get() {
            return Ok(());
        }
        let which = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function lives as long as its module, which outlives every kernel found in it.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.function, which, dynamic as c_int) })?;
        self.opted_in.set(dynamic);
        Ok(())
    }

    /// Sets the preferred percentage of L1 memory for shared memory; `None` for the driver's choice.
    pub fn carve_out(&self, percent: Option<i64>) -> Result<(), DeviceError> {
        if percent == self.carveout.get() {
            return Ok(());
        }
        let which = Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        let value = percent.map_or(-1, |percent| percent as c_int);
        // SAFETY: the function lives as long as its module, which outlives every kernel found in it.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.function, which, value) })?;
        self.carveout.set(percent);
        Ok(())
    }

    /// Queues a launch with attributes that `cuLaunchKernel` lacks.
    fn launch_with_attributes(&self, stream: &Stream, shape: &Shape, arguments: &Arguments) -> Result<(), DeviceError> {
        if !api()?.has_parameter_info {
            let message = "the driver is too old for launch attributes: it must support CUDA 12.4";
            return Err(DeviceError::InvalidLaunch(message.to_owned()));
        }
        let (mut attributes, count) = launch::attributes(shape);
        let config = sys::CUlaunchConfig {
            gridDimX: shape.grid.x,
            gridDimY: shape.grid.y,
            gridDimZ: shape.grid.z,
            blockDimX: shape.block.x,
            blockDimY: shape.block.y,
            blockDimZ: shape.block.z,
            sharedMemBytes: shape.shared(),
            hStream: stream.raw(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: count,
        };
        // SAFETY: function and stream are alive, the attributes outlive the call, and the pointers refer to values that
        // are as large as the parameters, which the driver copies before it returns.
        check("cuLaunchKernelEx", unsafe {
            sys::cuLaunchKernelEx(&raw const config, self.function, arguments.pointers(), std::ptr::null_mut())
        })
    }

    /// Resident blocks of `threads` threads per SM, according to the driver.
    pub fn resident_blocks(&self, threads: u32, dynamic: u32) -> Result<u32, DeviceError> {
        let mut blocks: c_int = 0;
        // SAFETY: the function lives as long as its module, and `blocks` outlives the call.
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.function,
                threads as c_int,
                dynamic as usize,
            )
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Block size that the driver proposes for the most resident threads.
    pub fn best_block(&self, dynamic: u32) -> Result<u32, DeviceError> {
        let (mut grid, mut block): (c_int, c_int) = (0, 0);
        // SAFETY: the function lives as long as its module, both results outlive the call, and without a callback
        // the dynamic shared memory is the same for every block size.
        check("cuOccupancyMaxPotentialBlockSize", unsafe {
            sys::cuOccupancyMaxPotentialBlockSize(
                &raw mut grid,
                &raw mut block,
                self.function,
                None,
                dynamic as usize,
                0,
            )
        })?;
        u32::try_from(block).ok().filter(|block| *block > 0).ok_or_else(|| {
            DeviceError::InvalidLaunch(format!("no block size fits {dynamic} bytes of shared memory per block"))
        })
    }

    /// Compares the number and sizes of arguments with the kernel's declaration.
    pub fn accept(&self, sizes: &[usize]) -> Result<(), DeviceError> {
        let Some(declared) = &self.parameters else { return Ok(()) };
        compare_parameters(declared, sizes).map_err(|message| DeviceError::Driver {
            call: "cuLaunchKernel",
            message: format!("kernel `{}` {message}", self.name),
        })
    }

    /// Queues one launch. `arguments` must have as many entries as the kernel has parameters.
    pub fn launch(&self, stream: &Stream, shape: &Shape, arguments: &Arguments) -> Result<(), DeviceError> {
        if launch::needs_attributes(shape) {
            return self.launch_with_attributes(stream, shape, arguments);
        }
        let Shape { grid, block, .. } = *shape;
        let pointers = arguments.pointers();
        let shared: c_uint = shape.shared();
        // The part shared by both calls.
        macro_rules! queue {
            ($call:ident $(, $end:expr)?) => {
                // SAFETY: function and stream are alive; the pointers refer to values that are as large as the
                // parameters, which the driver copies before it returns and does not write.
                check(stringify!($call), unsafe {
                    sys::$call(
                        self.function,
                        grid.x,
                        grid.y,
                        grid.z,
                        block.x,
                        block.y,
                        block.z,
                        shared,
                        stream.raw(),
                        pointers
                        $(, $end)?
                    )
                })
            };
        }
        if shape.settings.cooperative {
            queue!(cuLaunchCooperativeKernel)
        } else {
            queue!(cuLaunchKernel, std::ptr::null_mut())
        }
    }
}

/// Arguments of a launch as the driver takes them: a pointer to each value.
#[derive(Debug)]
pub(super) struct Arguments {
    /// Little-endian in the low bytes; the pointers refer to them. A struct takes several.
    values: Box<[u64]>,
    /// Index of each argument in `values`.
    begins: Box<[usize]>,
    pointers: Box<[*mut c_void]>,
}

impl Arguments {
    /// Arguments of one value each.
    pub fn new(values: Vec<u64>) -> Self {
        Self::from_lists(values.into_iter().map(|value| vec![value]).collect())
    }

    /// Arguments of one or more values each.
    pub fn from_lists(arguments: Vec<Vec<u64>>) -> Self {
        let mut end = 0;
        let begin = |argument: &Vec<u64>| {
            let begin = end;
            end += argument.len();
            begin
        };
        let begins: Box<[usize]> = arguments.iter().map(begin).collect();
        let values: Box<[u64]> = arguments.into_iter().flatten().collect();
        let pointers = begins.iter().map(|begin| (&raw const values[*begin]).cast_mut().cast()).collect();
        Self { values, begins, pointers }
    }

    /// Replaces a value without allocating.
    pub fn set(&mut self, index: usize, value: u64) {
        if let Some(place) = self.begins.get(index).and_then(|begin| self.values.get_mut(*begin)) {
            *place = value;
        }
        for (pointer, begin) in self.pointers.iter_mut().zip(&self.begins) {
            *pointer = (&raw const self.values[*begin]).cast_mut().cast();
        }
    }

    /// Pointers to the arguments, in order.
    pub fn pointers(&self) -> *mut *mut c_void {
        self.pointers.as_ptr().cast_mut()
    }
}

fn attribute(function: sys::CUfunction, which: Attribute) -> Result<u32, DeviceError> {
    let mut value: c_int = 0;
    // SAFETY: the function was found in a module that is still loaded, and `value` outlives the call.
    check("cuFuncGetAttribute", unsafe { sys::cuFuncGetAttribute(&raw mut value, which, function) })?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Cluster size for which a kernel was compiled. Older drivers lack these attributes.
fn cluster(function: sys::CUfunction) -> Option<[u32; 3]> {
    let [x, y, z] = [
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
        Attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
    ]
    .map(|which| attribute(function, which).unwrap_or(0));
    (x > 0).then_some([x, y.max(1), z.max(1)])
}

/// Size of each parameter in bytes; `None` if the driver is too old to report them.
fn parameters(function: sys::CUfunction) -> Result<Option<Vec<usize>>, DeviceError> {
    if !api()?.has_parameter_info {
        return Ok(None);
    }
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the entry point exists, the function is valid, both results outlive the call.
        let code = unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &raw mut offset, &raw mut size) };
        if code == sys::CUresult::CUDA_ERROR_INVALID_VALUE {
            return Ok(Some(sizes));
        }
        check("cuFuncGetParamInfo", code)?;
        sizes.push(size);
    }
}

fn compare_parameters(declared: &[usize], given: &[usize]) -> Result<(), String> {
    if declared.len() != given.len() {
        return Err(format!("takes {} arguments, but the launch passes {}", declared.len(), given.len()));
    }
    match declared.iter().zip(given).position(|(declared, given)| declared != given) {
        None => Ok(()),
        Some(index) => {
            let (wanted, given) = (declared[index], given[index]);
            let of_struct = "; in a struct, a field with its own alignment, such as a `float4`, needs `align`";
            let hint = if wanted > 8 { of_struct } else { "" };
            Err(format!("takes {wanted} bytes as argument {}, but the launch passes {given}{hint}", index + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_must_agree_in_number_and_size() {
        assert_eq!(compare_parameters(&[8, 8, 4], &[8, 8, 4]), Ok(()));
        assert_eq!(
            compare_parameters(&[8, 8, 4], &[8, 8]),
            Err("takes 3 arguments, but the launch passes 2".to_owned())
        );
        assert_eq!(
            compare_parameters(&[8, 8, 4], &[8, 8, 8]),
            Err("takes 4 bytes as argument 3, but the launch passes 8".to_owned())
        );
        let of_struct = "takes 32 bytes as argument 1, but the launch passes 20; in a struct, a field";
        assert!(compare_parameters(&[32], &[20]).is_err_and(|message| message.starts_with(of_struct)));
    }

    #[test]
    fn each_pointer_leads_to_its_value() {
        let arguments = Arguments::new(vec![7, u64::from(2.5_f32.to_bits())]);
        // SAFETY: the pointers refer to the boxed values, which `arguments` keeps.
        let read: Vec<u32> = arguments.pointers.iter().map(|p| unsafe { p.cast::<u32>().read() }).collect();
        assert_eq!(read, [7, 2.5_f32.to_bits()]);
    }

    #[test]
    fn a_value_that_was_replaced_is_the_one_that_its_pointer_leads_to() {
        let packed = Arguments::from_lists(vec![vec![1], vec![2, 3], vec![4]]);
        // SAFETY: three arguments have three pointers, the last of which refers to its own value.
        let last = unsafe { (*packed.pointers().add(2)).cast::<u64>().read() };
        assert_eq!(last, 4, "a struct of two words is one argument");
        let mut arguments = Arguments::new(vec![1, 2, 3]);
        arguments.set(1, 1 << 40);
        arguments.set(9, 5);
        // SAFETY: the pointers refer to the boxed values, which `arguments` keeps.
        let read: Vec<u64> = arguments.pointers.iter().map(|p| unsafe { p.cast::<u64>().read() }).collect();
        assert_eq!(read, [1, 1 << 40, 3]);
    }
}
