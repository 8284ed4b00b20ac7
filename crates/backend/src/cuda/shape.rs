use cudarc::driver::sys;

use runner_types::{DeviceInfo, Dim3, KernelResources, LaunchSettings, limits};

/// Everything that a launch requires of the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub grid: Dim3,
    pub block: Dim3,
    pub settings: LaunchSettings,
    /// Blocks per cluster along each axis; `None` for the size for which the kernel was compiled.
    pub cluster: Option<[u32; 3]>,
    pub window: Option<Window>,
}

/// Memory to keep in the L2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub address: sys::CUdeviceptr,
    pub bytes: usize,
    /// Fraction of its lines to keep.
    pub ratio: f64,
}

impl Shape {
    /// A launch without settings.
    pub fn new(grid: Dim3, block: Dim3) -> Self {
        Self { grid, block, settings: LaunchSettings::default(), cluster: None, window: None }
    }

    /// Dynamic shared memory in bytes; at most what [`Shape::judge`] allows.
    pub fn shared(&self) -> u32 {
        u32::try_from(self.settings.shared_bytes()).unwrap_or(u32::MAX)
    }

    /// Fails with the first device limit that the launch exceeds.
    pub fn judge(&self, info: &DeviceInfo, kernel: &KernelResources) -> Result<(), String> {
        limits::block(info, kernel, self.block.extents())?;
        let grid = limits::grid(info, self.grid.extents())?;
        let resources = KernelResources { cluster: self.cluster.or(kernel.cluster), ..*kernel };
        limits::clusters(&resources, grid)?;
        limits::shared(info, kernel, self.settings.shared_bytes())?;
        if self.settings.cooperative { limits::cooperative(info) } else { Ok(()) }
    }
}
