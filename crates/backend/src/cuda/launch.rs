//! What a launch requires of the device, and its attributes for `cuLaunchKernelEx`. Launches without attributes use the
//! plain call, which every driver has.

use std::ffi::c_int;

use cudarc::driver::sys;

use runner_types::{DeviceInfo, Dim3, KernelResources, LaunchSettings, limits};

use sys::CUlaunchAttributeID as Id;

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

/// Maximum number of attributes of a launch.
const MOST: usize = 5;

/// Whether a launch has attributes that `cuLaunchKernel` lacks. The carveout is set on the function instead.
pub(super) fn needs_attributes(shape: &Shape) -> bool {
    let LaunchSettings { overlap, priority, .. } = shape.settings;
    overlap || priority.is_some() || shape.cluster.is_some() || shape.window.is_some()
}

/// Attributes of a launch and their number. Does not allocate.
pub(super) fn attributes(shape: &Shape) -> ([sys::CUlaunchAttribute; MOST], u32) {
    let mut all = [attribute(Id::CU_LAUNCH_ATTRIBUTE_IGNORE, sys::CUlaunchAttributeValue { pad: [0; 64] }); MOST];
    let mut count = 0;
    let mut add = |id, value| {
        all[count] = attribute(id, value);
        count += 1;
    };
    if shape.settings.cooperative {
        add(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, sys::CUlaunchAttributeValue { cooperative: 1 });
    }
    if let Some([x, y, z]) = shape.cluster {
        let dimensions = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
        add(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, sys::CUlaunchAttributeValue { clusterDim: dimensions });
    }
    if shape.settings.overlap {
        let value = sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 };
        add(Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value);
    }
    if let Some(priority) = shape.settings.priority {
        add(Id::CU_LAUNCH_ATTRIBUTE_PRIORITY, sys::CUlaunchAttributeValue { priority: priority as c_int });
    }
    if let Some(Window { address, bytes, ratio }) = shape.window {
        let window = sys::CUaccessPolicyWindow {
            base_ptr: address as *mut _,
            num_bytes: bytes,
            hitRatio: ratio as f32,
            hitProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING,
            missProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING,
        };
        let value = sys::CUlaunchAttributeValue { accessPolicyWindow: window };
        add(Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, value);
    }
    (all, count as u32)
}

const fn attribute(id: Id, value: sys::CUlaunchAttributeValue) -> sys::CUlaunchAttribute {
    sys::CUlaunchAttribute { id, pad: [0; 4], value }
}
