//! What a launch asks of the device.

use crate::model::{DeviceInfo, Dim3, KernelResources, limits};

/// What a launch asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    /// Dynamic shared memory, bytes.
    pub shared: u32,
    pub cooperative: bool,
}

impl Shape {
    /// Why the device cannot run the launch, if it cannot: the first limit that it passes.
    pub fn judge(&self, info: &DeviceInfo, kernel: &KernelResources) -> Result<(), String> {
        limits::block(info, kernel, self.block.extents())?;
        let grid = limits::grid(info, self.grid.extents())?;
        limits::clusters(kernel, grid)?;
        limits::shared(info, kernel, u64::from(self.shared))?;
        if self.cooperative { limits::cooperative(info) } else { Ok(()) }
    }
}
