//! Texture and surface objects, over the memory of buffers or over arrays.
//!
//! The driver supports textures over plain memory only for integer-indexed rows and for planes with aligned rows. Other
//! kinds, and surfaces, need arrays ([`super::array`]).

use cudarc::driver::sys;

use super::array::format;
use super::driver::check;
use crate::{BufferId, DeviceError};
use runner_types::{Texture, TextureAddress, TextureFilter, TextureKind};

/// Flag of `CUDA_TEXTURE_DESC`: integers are read unconverted.
const READ_AS_INTEGER: u32 = 1;
/// Flag of `CUDA_TEXTURE_DESC`: coordinates range from 0 to 1.
const NORMALIZED_COORDINATES: u32 = 2;

/// Storage of the texels: the memory of a buffer, or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texels {
    Memory(sys::CUdeviceptr),
    Array(sys::CUarray),
}

/// A texture or surface object, destroyed when dropped.
#[derive(Debug)]
pub(super) enum TextureObject {
    Texture(sys::CUtexObject),
    Surface(sys::CUsurfObject),
}

impl TextureObject {
    /// Creates an object over memory or an array, which must outlive it.
    pub fn new(texture: &Texture<BufferId>, texels: Texels) -> Result<Self, DeviceError> {
        let resource = resource(texture, texels);
        let mut object = 0;
        if texture.sampler.is_none() {
            // SAFETY: the description outlives the call, and the current context owns the array.
            let code = unsafe { sys::cuSurfObjectCreate(&raw mut object, &raw const resource) };
            return check("cuSurfObjectCreate", code).map(|()| Self::Surface(object));
        }
        let sampling = sampling(texture);
        // SAFETY: the descriptions outlive the call, and the current context owns memory and array.
        let code = unsafe {
            sys::cuTexObjectCreate(&raw mut object, &raw const resource, &raw const sampling, std::ptr::null())
        };
        check("cuTexObjectCreate", code).map(|()| Self::Texture(object))
    }

    pub const fn handle(&self) -> u64 {
        match self {
            Self::Texture(object) | Self::Surface(object) => *object,
        }
    }
}

impl Drop for TextureObject {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once; every public call of the device waits for work that uses it.
        let _ = unsafe {
            match self {
                Self::Texture(object) => sys::cuTexObjectDestroy(*object),
                Self::Surface(object) => sys::cuSurfObjectDestroy(*object),
            }
        };
    }
}

/// Descriptor of the memory or the array.
fn resource(texture: &Texture<BufferId>, texels: Texels) -> sys::CUDA_RESOURCE_DESC {
    use sys::CUresourcetype as Kind;
    let row = texture.shape[0] as usize * texture.channels as usize * texture.element.size();
    let mut resource = sys::CUDA_RESOURCE_DESC {
        resType: Kind::CU_RESOURCE_TYPE_ARRAY,
        res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
            reserved: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_5 { reserved: [0; 32] },
        },
        flags: 0,
    };
    let (format, channels) = (format(texture.element), texture.channels);
    match texels {
        Texels::Array(array) => {
            resource.res.array = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_1 { hArray: array };
        }
        Texels::Memory(address) if texture.kind == TextureKind::Linear => {
            resource.resType = Kind::CU_RESOURCE_TYPE_LINEAR;
            resource.res.linear = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
                devPtr: address,
                format,
                numChannels: channels,
                sizeInBytes: row,
            };
        }
        Texels::Memory(address) => {
            resource.resType = Kind::CU_RESOURCE_TYPE_PITCH2D;
            resource.res.pitch2D = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
                devPtr: address,
                format,
                numChannels: channels,
                width: texture.shape[0] as usize,
                height: texture.shape[1] as usize,
                pitchInBytes: row,
            };
        }
    }
    resource
}

fn sampling(texture: &Texture<BufferId>) -> sys::CUDA_TEXTURE_DESC {
    let sampler = texture.sampler.unwrap_or_default();
    let address = match sampler.address {
        TextureAddress::Clamp => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
        TextureAddress::Border => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
        TextureAddress::Wrap => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
        TextureAddress::Mirror => sys::CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR,
    };
    let is_small = texture.element.size() < 4 && !texture.element.is_float();
    // An H100 also filters one-dimensional rows along the second dimension, and took half of each texel from a border
    // above.
    let clamp = sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP;
    let second = if matches!(texture.kind, TextureKind::OneD | TextureKind::OneDLayered) { clamp } else { address };
    sys::CUDA_TEXTURE_DESC {
        addressMode: [address, second, address],
        filterMode: match sampler.filter {
            TextureFilter::Point => sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
            TextureFilter::Linear => sys::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
        },
        flags: if is_small && !sampler.as_float { READ_AS_INTEGER } else { 0 }
            | if sampler.normalized || texture.kind == TextureKind::Cube { NORMALIZED_COORDINATES } else { 0 },
        maxAnisotropy: 0,
        mipmapFilterMode: sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
        mipmapLevelBias: 0.0,
        minMipmapLevelClamp: 0.0,
        maxMipmapLevelClamp: 0.0,
        borderColor: [0.0; 4],
        reserved: [0; 12],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::{ElementType, TextureSampler};

    /// On an H100, half of each texel came from the border of the second dimension.
    #[test]
    fn rows_of_one_dimension_have_no_border_in_the_second() {
        let modes = |kind| {
            let sampler = Some(TextureSampler { address: TextureAddress::Border, ..TextureSampler::default() });
            let (shape, element) = ([8, 1, 1], ElementType::F32);
            sampling(&Texture { buffer: BufferId(1), kind, shape, element, channels: 1, sampler }).addressMode
        };
        let [border, clamp] =
            [sys::CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER, sys::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP];
        assert_eq!(modes(TextureKind::OneD), [border, clamp, border]);
        assert_eq!(modes(TextureKind::OneDLayered), [border, clamp, border]);
        assert_eq!(modes(TextureKind::TwoD), [border; 3]);
    }

    #[test]
    fn small_integers_are_read_as_they_are_unless_asked_for_as_floats() {
        let flags = |as_float, normalized, element| {
            let sampler = Some(TextureSampler { as_float, normalized, ..TextureSampler::default() });
            let (kind, shape) = (TextureKind::TwoD, [8, 4, 1]);
            sampling(&Texture { buffer: BufferId(1), kind, shape, element, channels: 4, sampler }).flags
        };
        assert_eq!([flags(false, false, ElementType::U8), flags(true, false, ElementType::U8)], [1, 0]);
        assert_eq!([flags(false, true, ElementType::F32), flags(true, true, ElementType::I16)], [2, 2]);
    }
}
