//! CUDA arrays: the texels of a buffer in the layout that the hardware fetches. [`crate::views`] decides which textures
//! and surfaces need one.

use std::ptr;

use cudarc::driver::sys;

use super::driver::check;
use super::handles::Stream;
use crate::views::ArrayView;
use crate::{BufferId, DeviceError};
use runner_types::{ElementType, Texture, TextureKind};

#[derive(Debug)]
pub(super) struct Array(sys::CUarray);

impl Array {
    /// Creates an array with undefined content in the current context.
    pub fn new(view: &ArrayView) -> Result<Self, DeviceError> {
        let (mut description, mut array) = (description(view), ptr::null_mut());
        // SAFETY: the description and `array` outlive the call.
        let mut create = |description| unsafe { sys::cuArray3DCreate_v2(&raw mut array, description) };
        let mut code = create(&raw const description);
        if code != sys::CUresult::CUDA_SUCCESS && description.Flags == sys::CUDA_ARRAY3D_TEXTURE_GATHER {
            // Gathers have smaller size limits than fetches.
            description.Flags = 0;
            code = create(&raw const description);
        }
        match code {
            sys::CUresult::CUDA_ERROR_INVALID_VALUE => {
                let ([x, y, z], kind) = (view.texels.shape, view.texels.kind.name());
                Err(DeviceError::InvalidLaunch(format!(
                    "the driver cannot create an array of kind `{kind}` with {x} × {y} × {z} texels: the CUDA C++ \
                     Programming Guide lists the largest extents under \"Technical Specifications per Compute \
                     Capability\""
                )))
            }
            _ => check("cuArray3DCreate", code).map(|()| Self(array)),
        }
    }

    pub const fn raw(&self) -> sys::CUarray {
        self.0
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once; every public call of the device waits for work that uses it.
        let _ = unsafe { sys::cuArrayDestroy(self.0) };
    }
}

/// Descriptor of an array. Extents that the kind lacks are zero; layers and faces are the depth.
fn description(view: &ArrayView) -> sys::CUDA_ARRAY3D_DESCRIPTOR {
    let [width, height, depth] = view.texels.shape.map(|extent| extent as usize);
    let (height, depth, flags) = match view.texels.kind {
        TextureKind::Linear | TextureKind::OneD => (0, 0, 0),
        TextureKind::TwoD if view.has_surfaces => (height, 0, 0),
        TextureKind::TwoD => (height, 0, sys::CUDA_ARRAY3D_TEXTURE_GATHER),
        TextureKind::ThreeD => (height, depth, 0),
        TextureKind::OneDLayered => (0, depth, sys::CUDA_ARRAY3D_LAYERED),
        TextureKind::TwoDLayered => (height, depth, sys::CUDA_ARRAY3D_LAYERED),
        TextureKind::Cube => (height, depth, sys::CUDA_ARRAY3D_CUBEMAP),
    };
    sys::CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: depth,
        Format: format(view.texels.element),
        NumChannels: view.texels.channels,
        Flags: flags | if view.has_surfaces { sys::CUDA_ARRAY3D_SURFACE_LDST } else { 0 },
    }
}

/// Driver's channel format for an element type.
pub(super) const fn format(element: ElementType) -> sys::CUarray_format {
    use sys::CUarray_format_enum as F;
    match element {
        ElementType::I8 => F::CU_AD_FORMAT_SIGNED_INT8,
        ElementType::U8 => F::CU_AD_FORMAT_UNSIGNED_INT8,
        ElementType::I16 => F::CU_AD_FORMAT_SIGNED_INT16,
        ElementType::U16 => F::CU_AD_FORMAT_UNSIGNED_INT16,
        ElementType::I32 => F::CU_AD_FORMAT_SIGNED_INT32,
        ElementType::U32 => F::CU_AD_FORMAT_UNSIGNED_INT32,
        ElementType::F16 => F::CU_AD_FORMAT_HALF,
        // The plan rejects the other types.
        _ => F::CU_AD_FORMAT_FLOAT,
    }
}

/// A copy between a buffer and an array of its texels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArrayCopy {
    array: sys::CUarray,
    address: sys::CUdeviceptr,
    texels: Texture<BufferId>,
    /// Whether the copy goes from the array to the buffer.
    pub is_store: bool,
}

impl ArrayCopy {
    /// Copy into an array from the buffer at this address. The array must have these texels.
    pub const fn load(array: sys::CUarray, address: sys::CUdeviceptr, texels: Texture<BufferId>) -> Self {
        Self { array, address, texels, is_store: false }
    }

    /// The reverse copy.
    pub fn store(&self) -> Self {
        Self { is_store: true, ..self.clone() }
    }

    pub fn queue(&self, stream: &Stream) -> Result<(), DeviceError> {
        let parameters = self.parameters();
        // SAFETY: array and buffer hold the texels, and the table that `self` comes from keeps both until the work is
        // done, which every public call of the device waits for.
        check("cuMemcpy3DAsync", unsafe { sys::cuMemcpy3DAsync_v2(&raw const parameters, stream.raw()) })
    }

    /// Parameters of the copy. Rows and planes of the buffer are contiguous; widths are in bytes.
    fn parameters(&self) -> sys::CUDA_MEMCPY3D {
        use sys::CUmemorytype_enum::{CU_MEMORYTYPE_ARRAY as ARRAY, CU_MEMORYTYPE_DEVICE as DEVICE};
        let [width, height, depth] = self.texels.shape.map(|extent| extent as usize);
        let row = width * self.texels.channels as usize * self.texels.element.size();
        let (from, to) = if self.is_store { (ARRAY, DEVICE) } else { (DEVICE, ARRAY) };
        sys::CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: from,
            srcHost: ptr::null(),
            srcDevice: self.address,
            srcArray: self.array,
            reserved0: ptr::null_mut(),
            srcPitch: row,
            srcHeight: height,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: to,
            dstHost: ptr::null_mut(),
            dstDevice: self.address,
            dstArray: self.array,
            reserved1: ptr::null_mut(),
            dstPitch: row,
            dstHeight: height,
            WidthInBytes: row,
            Height: height,
            Depth: depth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texels(kind: TextureKind, extents: [u32; 3]) -> Texture<BufferId> {
        let (shape, element) = (kind.shape(extents), ElementType::U16);
        Texture { buffer: BufferId(1), kind, shape, element, channels: 4, sampler: None }
    }

    #[test]
    fn extents_that_a_kind_lacks_are_zero_and_layers_and_faces_are_the_depth() {
        use TextureKind as K;
        let described = |kind, extents, has_surfaces| {
            let made = description(&ArrayView { texels: texels(kind, extents), has_surfaces });
            (made.Width, made.Height, made.Depth, made.Flags)
        };
        // Flags: 1 is layered, 2 surface load and store, 4 cube map, 8 gather.
        assert_eq!(described(K::OneD, [5, 1, 1], false), (5, 0, 0, 0));
        assert_eq!(described(K::TwoD, [5, 6, 1], true), (5, 6, 0, 2));
        assert_eq!(described(K::TwoD, [5, 6, 1], false), (5, 6, 0, 8));
        assert_eq!(described(K::ThreeD, [5, 6, 7], true), (5, 6, 7, 2));
        assert_eq!(described(K::OneDLayered, [5, 3, 1], true), (5, 0, 3, 3));
        assert_eq!(described(K::TwoDLayered, [5, 6, 3], false), (5, 6, 3, 1));
        assert_eq!(described(K::Cube, [5, 1, 1], false), (5, 5, 6, 4));
    }

    #[test]
    fn a_copy_has_its_width_in_bytes_and_each_layer_as_a_plane() {
        // Only described, never accessed.
        let array = ptr::dangling_mut();
        let load = ArrayCopy::load(array, 4096, texels(TextureKind::OneDLayered, [5, 3, 1]));
        let (made, back) = (load.parameters(), load.store().parameters());
        assert_eq!((made.WidthInBytes, made.Height, made.Depth), (40, 1, 3));
        assert_eq!((made.srcPitch, made.srcHeight, made.dstPitch, made.dstHeight), (40, 1, 40, 1));
        let kinds = |copy: &sys::CUDA_MEMCPY3D| (copy.srcMemoryType as u32, copy.dstMemoryType as u32);
        assert_eq!((kinds(&made), kinds(&back)), ((2, 3), (3, 2)));
        assert_eq!((made.srcDevice, back.dstDevice), (4096, 4096));
    }
}
