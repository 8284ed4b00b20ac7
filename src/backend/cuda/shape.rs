//! What a launch asks of the device.

use cudarc::driver::sys;

use crate::backend::Attributes;
use crate::model::{DeviceInfo, Dim3, KernelResources, limits};

/// What a launch asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    pub cooperative: bool,
    pub attributes: Attributes,
    /// Address and bytes of what stays in the L2.
    pub window: Option<(sys::CUdeviceptr, usize)>,
}

impl Shape {
    /// Why the device cannot run the launch, if it cannot: the first limit that it passes.
    pub fn judge(&self, info: &DeviceInfo, kernel: &KernelResources) -> Result<(), String> {
        limits::block(info, kernel, self.block.extents())?;
        let grid = limits::grid(info, self.grid.extents())?;
        let resources = KernelResources { cluster: self.attributes.cluster.or(kernel.cluster), ..*kernel };
        limits::clusters(&resources, grid)?;
        limits::shared(info, kernel, u64::from(self.shared))?;
        if self.cooperative { limits::cooperative(info) } else { Ok(()) }
    }
}
