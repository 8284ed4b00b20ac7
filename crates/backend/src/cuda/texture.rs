//! Texture objects over the memory of buffers.
//!
//! A fetch reads the buffer itself, so that what the host or another launch writes is seen by the next launch, and
//! nothing is copied in the time that is measured. The driver makes such objects of rows that only integers index and of
//! planes whose rows are aligned. Other kinds, and surfaces, need arrays, whose texels are in an order of their own.

use cudarc::driver::sys;

use super::driver::check;
use crate::model::{ElementType, Texture, TextureAddress, TextureFilter, TextureKind};
use crate::{BufferId, DeviceError};

/// The bytes that the rows of a plane are aligned to (`CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`).
const PITCH: u64 = 32;
/// Flags of `CUDA_TEXTURE_DESC`: integers are read as they are; coordinates are from 0 to 1.
const READ_AS_INTEGER: u32 = 1;
const NORMALIZED_COORDINATES: u32 = 2;

/// A texture object, which is destroyed when dropped.
#[derive(Debug)]
pub(super) struct TextureObject(sys::CUtexObject);

impl TextureObject {
    /// Makes an object of the memory at an address, which must outlive it.
    pub fn new(texture: &Texture<BufferId>, address: sys::CUdeviceptr) -> Result<Self, DeviceError> {
        let (resource, sampling) = (resource(texture, address)?, sampling(texture));
        let mut object = 0;
        // SAFETY: the descriptions outlive the call, and the current context owns the memory.
        let code = unsafe {
            sys::cuTexObjectCreate(&raw mut object, &raw const resource, &raw const sampling, std::ptr::null())
        };
        check("cuTexObjectCreate", code)?;
        Ok(Self(object))
    }

    pub const fn handle(&self) -> u64 {
        self.0
    }
}

impl Drop for TextureObject {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once; every public call of the device waits for work that uses it.
        let _ = unsafe { sys::cuTexObjectDestroy(self.0) };
    }
}

/// Describes the memory; fails for what the driver makes of arrays only.
fn resource(texture: &Texture<BufferId>, address: sys::CUdeviceptr) -> Result<sys::CUDA_RESOURCE_DESC, DeviceError> {
    let refuse = |why: String| Err(DeviceError::InvalidLaunch(why));
    if texture.sampler.is_none() {
        return refuse("surfaces are simulated, and not made on a GPU yet: they need an array".to_owned());
    }
    let row = u64::from(texture.shape[0]) * u64::from(texture.channels) * texture.element.size() as u64;
    let mut resource = sys::CUDA_RESOURCE_DESC {
        resType: sys::CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
        res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
            reserved: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_5 { reserved: [0; 32] },
        },
        flags: 0,
    };
    let (format, channels) = (format(texture.element), texture.channels);
    match texture.kind {
        TextureKind::Linear => {
            resource.res.linear = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
                devPtr: address,
                format,
                numChannels: channels,
                sizeInBytes: row as usize,
            };
        }
        TextureKind::TwoD if row.is_multiple_of(PITCH) => {
            resource.resType = sys::CUresourcetype::CU_RESOURCE_TYPE_PITCH2D;
            resource.res.pitch2D = sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
                devPtr: address,
                format,
                numChannels: channels,
                width: texture.shape[0] as usize,
                height: texture.shape[1] as usize,
                pitchInBytes: row as usize,
            };
        }
        TextureKind::TwoD => {
            return refuse(format!(
                "the rows of the texture have {row} bytes: on a GPU they begin at multiples of {PITCH}, so that the \
                 width times the size of a texel must be one"
            ));
        }
        kind => {
            let name = kind.name();
            return refuse(format!(
                "textures of kind `{name}` are simulated, and not made on a GPU yet: they need an array"
            ));
        }
    }
    Ok(resource)
}

const fn format(element: ElementType) -> sys::CUarray_format {
    use sys::CUarray_format_enum as F;
    match element {
        ElementType::I8 => F::CU_AD_FORMAT_SIGNED_INT8,
        ElementType::U8 => F::CU_AD_FORMAT_UNSIGNED_INT8,
        ElementType::I16 => F::CU_AD_FORMAT_SIGNED_INT16,
        ElementType::U16 => F::CU_AD_FORMAT_UNSIGNED_INT16,
        ElementType::I32 => F::CU_AD_FORMAT_SIGNED_INT32,
        ElementType::U32 => F::CU_AD_FORMAT_UNSIGNED_INT32,
        ElementType::F16 => F::CU_AD_FORMAT_HALF,
        // The plan refuses the other types.
        _ => F::CU_AD_FORMAT_FLOAT,
    }
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
    sys::CUDA_TEXTURE_DESC {
        addressMode: [address; 3],
        filterMode: match sampler.filter {
            TextureFilter::Point => sys::CUfilter_mode::CU_TR_FILTER_MODE_POINT,
            TextureFilter::Linear => sys::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR,
        },
        flags: if is_small && !sampler.as_float { READ_AS_INTEGER } else { 0 }
            | if sampler.normalized { NORMALIZED_COORDINATES } else { 0 },
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
    use crate::model::TextureSampler;

    #[test]
    fn what_the_driver_makes_of_arrays_only_is_refused_with_a_reason() {
        let plane = |width, kind, sampler| Texture {
            buffer: BufferId(1),
            kind,
            shape: [width, 4, 1],
            element: ElementType::U8,
            channels: 4,
            sampler,
        };
        let sampler = Some(TextureSampler::default());
        let why = |texture| resource(&texture, 4096).err().map(|error| error.to_string());
        assert_eq!(why(plane(8, TextureKind::TwoD, sampler)), None);
        assert_eq!(why(plane(7, TextureKind::Linear, sampler)), None);
        assert!(why(plane(7, TextureKind::TwoD, sampler)).is_some_and(|why| why.contains("28 bytes")));
        assert!(why(plane(8, TextureKind::ThreeD, sampler)).is_some_and(|why| why.contains("`3d`")));
        assert!(why(plane(8, TextureKind::TwoD, None)).is_some_and(|why| why.contains("surfaces")));
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
