//! Attributes of a launch, for `cuLaunchKernelEx`. Launches without attributes use the plain call, which every driver
//! has.

use std::ffi::c_int;

use cudarc::driver::sys;

use super::shape::{Shape, Window};
use runner_types::LaunchSettings;

use sys::CUlaunchAttributeID as Id;

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
