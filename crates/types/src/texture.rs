//! Buffers used as texture or surface objects.
//!
//! One description serves CUDA and the simulator and rejects objects that no device supports.

use serde::{Deserialize, Serialize};

use super::element::ElementType;

/// How texels are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, strum::IntoStaticStr)]
pub enum TextureKind {
    /// A row with integer indices only: for `tex1Dfetch`.
    #[serde(rename = "linear")]
    #[strum(serialize = "linear")]
    Linear,
    /// A one-dimensional array.
    #[serde(rename = "1d")]
    #[strum(serialize = "1d")]
    OneD,
    /// A two-dimensional array.
    #[serde(rename = "2d")]
    #[strum(serialize = "2d")]
    TwoD,
    /// A three-dimensional array.
    #[serde(rename = "3d")]
    #[strum(serialize = "3d")]
    ThreeD,
    /// Layers of one-dimensional arrays.
    #[serde(rename = "1d_layered")]
    #[strum(serialize = "1d_layered")]
    OneDLayered,
    /// Layers of two-dimensional arrays.
    #[serde(rename = "2d_layered")]
    #[strum(serialize = "2d_layered")]
    TwoDLayered,
    /// Six square faces: +x, -x, +y, -y, +z, -z.
    #[serde(rename = "cube")]
    #[strum(serialize = "cube")]
    Cube,
}

impl TextureKind {
    /// Name in manifests.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Number of extents in `size`. The last extent of layered kinds is the number of layers. A cube has only its edge
    /// length.
    pub const fn extents(self) -> usize {
        match self {
            Self::Linear | Self::OneD | Self::Cube => 1,
            Self::TwoD | Self::OneDLayered => 2,
            Self::ThreeD | Self::TwoDLayered => 3,
        }
    }

    /// Width, height and depth of an object with these extents.
    pub const fn shape(self, [first, second, third]: [u32; 3]) -> [u32; 3] {
        match self {
            Self::Cube => [first, first, 6],
            Self::OneDLayered => [first, 1, second],
            _ => [first, second, third],
        }
    }
}

/// How to interpolate between texels.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
pub enum TextureFilter {
    /// Nearest texel.
    #[default]
    Point,
    /// Weighted mean of the neighbouring texels.
    Linear,
}

/// How to handle out-of-range coordinates.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
pub enum TextureAddress {
    /// Use the nearest edge texel.
    #[default]
    Clamp,
    /// Return zero.
    Border,
    /// Repeat the texture.
    Wrap,
    /// Repeat the texture, mirroring every other copy.
    Mirror,
}

/// How to read a texture. A surface has no sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextureSampler {
    pub filter: TextureFilter,
    /// Applies to every axis.
    pub address: TextureAddress,
    /// Whether coordinates range from 0 to 1.
    pub normalized: bool,
    /// Whether to read 8- and 16-bit integers as floats: 0 to 1 if unsigned, -1 to 1 if signed.
    pub as_float: bool,
}

/// A buffer used as a texture or a surface, with its numbers evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texture<B = String> {
    /// Name of the buffer, or its location on a device.
    pub buffer: B,
    pub kind: TextureKind,
    /// Width, height and depth; 1 for dimensions that the kind lacks. Layers and faces count as depth.
    pub shape: [u32; 3],
    pub element: ElementType,
    pub channels: u32,
    /// `None` for a surface.
    pub sampler: Option<TextureSampler>,
}

impl<B> Texture<B> {
    /// Size of the texels in bytes; saturates.
    pub fn bytes(&self) -> u64 {
        let [x, y, z] = self.shape.map(u64::from);
        (x * y).saturating_mul(z).saturating_mul(u64::from(self.channels) * self.element.size() as u64)
    }

    /// The same view of another buffer.
    pub fn with_buffer<C>(&self, buffer: C) -> Texture<C> {
        let Self { kind, shape, element, channels, sampler, .. } = *self;
        Texture { buffer, kind, shape, element, channels, sampler }
    }

    /// Reason why no device supports such an object, if there is one.
    pub fn violation(&self) -> Option<String> {
        let element = self.element;
        if matches!(element, ElementType::I64 | ElementType::U64 | ElementType::F64 | ElementType::Bf16) {
            return Some(format!("texels cannot be {element}: use an integer of up to 32 bits, f16 or f32"));
        }
        if !matches!(self.channels, 1 | 2 | 4) {
            return Some(format!("a texel has 1, 2 or 4 channels, but elements of the buffer have {}", self.channels));
        }
        let Some(sampler) = self.sampler else {
            let none = matches!(self.kind, TextureKind::Linear | TextureKind::Cube);
            return none.then(|| format!("there is no surface of kind `{}`", self.kind.name()));
        };
        let is_linear = sampler.filter == TextureFilter::Linear;
        if sampler.as_float && (element.is_float() || element.size() > 2) {
            return Some(format!("`as_float` is for integers of 8 or 16 bits, but texels are {element}"));
        }
        if is_linear && !element.is_float() && !sampler.as_float {
            return Some(format!("`filter = \"linear\"` returns floats, but texels are {element}"));
        }
        if self.kind == TextureKind::Linear && (is_linear || sampler.normalized) {
            return Some("a texture of kind `linear` has integer coordinates and no filter".to_owned());
        }
        let repeats = matches!(sampler.address, TextureAddress::Wrap | TextureAddress::Mirror);
        let outside = repeats && !sampler.normalized;
        outside.then(|| "`address` of \"wrap\" or \"mirror\" needs `normalized = true`".to_owned())
    }
}
