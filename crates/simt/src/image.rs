//! Texture and surface objects: memory that instructions access by the coordinates of its elements (texels).
//!
//! Texels are numbered like the elements of an array in C order, `(z * height + y) * width + x`; a layer or a cube face
//! is a `z`. Coordinates select texels as the CUDA C++ Programming Guide describes under "Texture Fetching": a filtered
//! fetch at `x` weighs the texels around `x - 0.5` with an 8-bit fraction. It is unknown whether hardware always rounds
//! like the guide's formulas. Here, the weighted sum is computed in 64 bits and rounded once, to `f32`.

use std::collections::BTreeMap;

use half::f16;

use crate::error::SimError;

/// How the texels of an image are arranged, and how many coordinates select one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Geometry {
    /// A row that is indexed only by integers, as with `tex1Dfetch`.
    Linear,
    /// One-dimensional.
    OneD,
    /// Two-dimensional.
    TwoD,
    /// Three-dimensional.
    ThreeD,
    /// One-dimensional, with layers.
    OneDLayered,
    /// Two-dimensional, with layers.
    TwoDLayered,
    /// Six square faces, selected by a direction: +x, -x, +y, -y, +z, -z.
    Cube,
}

impl Geometry {
    /// All geometries.
    pub const ALL: [Self; 7] =
        [Self::Linear, Self::OneD, Self::TwoD, Self::ThreeD, Self::OneDLayered, Self::TwoDLayered, Self::Cube];

    /// Returns the name used in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::OneD => "1d",
            Self::TwoD => "2d",
            Self::ThreeD => "3d",
            Self::OneDLayered => "1d_layered",
            Self::TwoDLayered => "2d_layered",
            Self::Cube => "cube",
        }
    }

    /// Returns the number of axes along which texels are neighbours.
    pub const fn axes(self) -> usize {
        match self {
            Self::Linear | Self::OneD | Self::OneDLayered => 1,
            Self::TwoD | Self::TwoDLayered | Self::Cube => 2,
            Self::ThreeD => 3,
        }
    }

    /// Whether the last extent is the number of layers.
    pub const fn is_layered(self) -> bool {
        matches!(self, Self::OneDLayered | Self::TwoDLayered)
    }
}

/// Type of a texel's channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// An integer of this many bytes.
    Int {
        /// Size in bytes: 1, 2 or 4.
        bytes: u32,
        /// Whether the integer is signed.
        signed: bool,
    },
    /// A 16-bit float.
    Half,
    /// A 32-bit float.
    Float,
}

impl Channel {
    /// Returns the size in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Int { bytes, .. } => bytes,
            Self::Half => 2,
            Self::Float => 4,
        }
    }

    /// Whether the stored values are floats.
    pub const fn is_float(self) -> bool {
        !matches!(self, Self::Int { .. })
    }

    /// Converts the bits of a channel to the 32 bits that a fetch returns.
    fn read(self, bits: u32, normalized: bool) -> u32 {
        match self {
            Self::Float => bits,
            Self::Half => f16::from_bits(bits as u16).to_f32().to_bits(),
            Self::Int { bytes, signed } => {
                let unused = 32 - 8 * bytes;
                let value = if signed { (bits << unused).cast_signed() >> unused } else { bits.cast_signed() };
                if !normalized {
                    return value.cast_unsigned();
                }
                let most = (1_u32 << (8 * bytes - u32::from(signed))) - 1;
                // Clamped, because the most negative value would become less than -1.
                ((f64::from(value) / f64::from(most)).max(-1.0) as f32).to_bits()
            }
        }
    }

    /// Returns the channel bits that a formatted store writes for a 32-bit value.
    fn write(self, value: u32) -> u32 {
        match self {
            Self::Half => u32::from(f16::from_f32(f32::from_bits(value)).to_bits()),
            Self::Int { bytes: bytes @ 1..4, signed: true } => {
                let most = (1_i32 << (8 * bytes - 1)) - 1;
                value.cast_signed().clamp(-most - 1, most).cast_unsigned() & (u32::MAX >> (32 - 8 * bytes))
            }
            Self::Int { bytes: bytes @ 1..4, signed: false } => value.min(u32::MAX >> (32 - 8 * bytes)),
            Self::Float | Self::Int { .. } => value,
        }
    }
}

/// How to handle out-of-range coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressMode {
    /// Use the nearest texel.
    Clamp,
    /// Read zero.
    Border,
    /// Repeat the texture.
    Wrap,
    /// Repeat the texture, mirrored every other time.
    Mirror,
}

/// How a texture is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// How to handle out-of-range coordinates, along every axis.
    pub address: AddressMode,
    /// Whether to interpolate between texels.
    pub linear: bool,
    /// Whether coordinates range from 0 to 1.
    pub normalized: bool,
    /// Whether 8- and 16-bit integers are read as floats, from 0 or -1 to 1.
    pub as_float: bool,
}

/// A texture or surface object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// Address of the first texel.
    pub address: u64,
    /// Arrangement of the texels.
    pub geometry: Geometry,
    /// Width, height and depth; 1 for axes that the geometry lacks. Layers and faces count as depth.
    pub size: [u32; 3],
    /// Type of each channel.
    pub channel: Channel,
    /// Number of channels: 1, 2 or 4.
    pub channels: u32,
    /// How a texture is read; `None` for a surface.
    pub sampler: Option<Sampler>,
}

/// A texel of a fetch (its number, or `None` for the border), and its weight.
pub type Weighted = (Option<u64>, f64);

/// Coordinates of a fetch, as bits.
#[derive(Debug, Clone, Copy)]
pub struct Coordinates {
    pub bits: [u32; 4],
    /// Whether the coordinates are floats. A layer is always an integer.
    pub floats: bool,
}

impl Image {
    /// Returns the size of a texel in bytes.
    pub const fn texel_bytes(&self) -> u32 {
        self.channel.bytes() * self.channels
    }

    /// Returns the total size of all texels in bytes, saturating.
    pub const fn bytes(&self) -> u64 {
        let [x, y, z] = self.size;
        (x as u64 * y as u64).saturating_mul(z as u64).saturating_mul(self.texel_bytes() as u64)
    }

    /// Returns the reason why the object is invalid, if it is.
    pub fn violation(&self) -> Option<&'static str> {
        let Self { geometry, size: [x, y, z], sampler, .. } = *self;
        if !matches!(self.channels, 1 | 2 | 4) {
            return Some("a texel must have 1, 2 or 4 channels");
        }
        if x == 0 || y == 0 || z == 0 {
            return Some("an extent is 0");
        }
        if geometry == Geometry::Cube && (x != y || z != 6) {
            return Some("a cube must have six square faces");
        }
        if !self.address.is_multiple_of(u64::from(self.texel_bytes())) {
            return Some("its address is not a multiple of the texel size");
        }
        let Some(sampler) = sampler else {
            return matches!(geometry, Geometry::Linear | Geometry::Cube)
                .then_some("a surface must be `1d`, `2d`, `3d`, `1d_layered` or `2d_layered`");
        };
        let small = matches!(self.channel, Channel::Int { bytes: 1 | 2, .. });
        if sampler.as_float && !small {
            return Some("only integers of 8 or 16 bits can be read as normalized floats");
        }
        if sampler.linear && !(self.channel.is_float() || sampler.as_float) {
            return Some("linear filtering needs texels that are floats or are read as normalized floats");
        }
        if geometry == Geometry::Linear && (sampler.linear || sampler.normalized) {
            return Some("`linear` memory has integer coordinates and no filter");
        }
        let repeats = matches!(sampler.address, AddressMode::Wrap | AddressMode::Mirror);
        (repeats && !sampler.normalized).then_some("`wrap` and `mirror` need normalized coordinates")
    }

    /// Whether fetches return floats.
    pub fn gives_floats(&self) -> bool {
        self.channel.is_float() || self.sampler.is_some_and(|sampler| sampler.as_float)
    }

    /// Returns the 32 bits that a fetch returns for a channel of a texel; 0 if the texel lacks the channel.
    pub fn channel_of(&self, texel: &[u8], channel: usize) -> u32 {
        let bytes = self.channel.bytes() as usize;
        let Some(part) = texel.get(channel * bytes..(channel + 1) * bytes) else { return 0 };
        let bits = part.iter().rev().fold(0, |bits, &byte| bits << 8 | u32::from(byte));
        self.channel.read(bits, self.sampler.is_some_and(|sampler| sampler.as_float))
    }

    /// Returns the bytes that a formatted store writes to a texel for these channel values.
    pub fn texel(&self, values: [u32; 4]) -> [u8; 16] {
        let mut texel = [0; 16];
        let bytes = self.channel.bytes() as usize;
        for (to, value) in texel.chunks_exact_mut(bytes).zip(&values[..self.channels as usize]) {
            to.copy_from_slice(&self.channel.write(*value).to_le_bytes()[..bytes]);
        }
        texel
    }

    /// Returns the texels of a fetch with their weights, first axis fastest, and the number of texels. `gathers`
    /// requests the four texels around the position, whatever the filter.
    pub fn footprint(&self, sampler: Sampler, at: Coordinates, gathers: bool) -> ([Weighted; 8], usize) {
        let axes = self.geometry.axes();
        let layers = usize::from(self.geometry.is_layered());
        let mut sampler = Sampler { linear: sampler.linear || gathers, ..sampler };
        let mut layer = if layers == 1 { i64::from(at.bits[0].cast_signed()) } else { 0 };
        let mut floats = [0, 1, 2].map(|axis| f64::from(f32::from_bits(at.bits[(axis + layers) % 4])));
        if self.geometry == Geometry::Cube {
            let (face, place) = on_cube(floats);
            (layer, floats) = (face, place);
            (sampler.normalized, sampler.address) = (true, AddressMode::Clamp);
        }
        let (mut found, mut count) = ([(Some(0_u64), 1.0); 8], 1);
        let mut stride = 1;
        let border = self.geometry == Geometry::Linear || sampler.address == AddressMode::Border;
        let address = if border { AddressMode::Border } else { sampler.address };
        for (axis, &float) in floats.iter().enumerate().take(axes) {
            let extent = self.size[axis];
            let (first, fraction) = if at.floats {
                place(float, extent, sampler)
            } else {
                (i64::from(at.bits[axis + layers].cast_signed()), 0.0)
            };
            let (before, neighbours) = (found, if sampler.linear && at.floats { 2 } else { 1 });
            for k in 0..neighbours {
                let next = texel(first + k as i64, extent, address);
                let weight = if k == 0 { 1.0 - fraction } else { fraction };
                for n in 0..count {
                    let number = before[n].0.zip(next).map(|(number, at)| number + u64::from(at) * stride);
                    found[k * count + n] = (number, before[n].1 * weight);
                }
            }
            count *= neighbours;
            stride *= u64::from(extent);
        }
        let plane = layer.clamp(0, i64::from(self.size[2]) - 1) as u64 * stride;
        for (number, _) in &mut found {
            *number = number.map(|number| number + plane);
        }
        (found, count)
    }
}

/// Returns the first of the texels around a coordinate, and the weight of the next one.
fn place(x: f64, extent: u32, sampler: Sampler) -> (i64, f64) {
    let x = if x.is_nan() { 0.0 } else { x.clamp(-1e12, 1e12) };
    let x = match (sampler.normalized, sampler.address) {
        (false, _) => x,
        (true, AddressMode::Wrap) => (x - x.floor()) * f64::from(extent),
        (true, AddressMode::Mirror) => {
            let part = x - x.floor();
            f64::from(extent) * if x.floor() % 2.0 == 0.0 { part } else { 1.0 - part }
        }
        (true, _) => x * f64::from(extent),
    };
    if !sampler.linear {
        return (x.floor() as i64, 0.0);
    }
    let (first, fraction) = ((x - 0.5).floor(), x - 0.5 - (x - 0.5).floor());
    // The fraction has 9 bits, 8 of them after the point, so it can be 1.
    (first as i64, (fraction * 256.0).round() / 256.0)
}

/// Returns the index, along an axis, of a texel that may be out of range; `None` for the border.
fn texel(at: i64, extent: u32, address: AddressMode) -> Option<u32> {
    let extent = i64::from(extent);
    let inside = match address {
        AddressMode::Border if !(0..extent).contains(&at) => return None,
        AddressMode::Border | AddressMode::Clamp => at.clamp(0, extent - 1),
        AddressMode::Wrap => at.rem_euclid(extent),
        AddressMode::Mirror => {
            let at = at.rem_euclid(2 * extent);
            at.min(2 * extent - 1 - at)
        }
    };
    Some(inside as u32)
}

/// Returns the cube face that a direction hits, and the position on it from 0 to 1.
fn on_cube([x, y, z]: [f64; 3]) -> (i64, [f64; 3]) {
    let [across, up, deep] = [x, y, z].map(f64::abs);
    let (face, major, place) = if across >= up && across >= deep {
        if x >= 0.0 { (0, across, [-z, -y]) } else { (1, across, [z, -y]) }
    } else if up >= deep {
        if y >= 0.0 { (2, up, [x, z]) } else { (3, up, [x, -z]) }
    } else if z >= 0.0 {
        (4, deep, [x, -y])
    } else {
        (5, deep, [-x, -y])
    };
    let [across, down] = place.map(|part| f64::midpoint(part / major, 1.0));
    (face, [across, down, 0.0])
}

/// Texture and surface objects of a machine, by handle.
#[derive(Debug, Default)]
pub struct Images {
    live: BTreeMap<u64, Image>,
    made: u64,
}

/// Value of the first handle. Later handles follow at a fixed distance.
const FIRST_HANDLE: u64 = 0x5_0000_0000;
const HANDLE_STEP: u64 = 16;

impl Images {
    pub fn insert(&mut self, image: Image) -> Result<u64, SimError> {
        if let Some(why) = image.violation() {
            return Err(SimError::Image(why));
        }
        let handle = FIRST_HANDLE + self.made * HANDLE_STEP;
        self.made += 1;
        self.live.insert(handle, image);
        Ok(handle)
    }

    pub fn get(&self, handle: u64) -> Option<&Image> {
        self.live.get(&handle)
    }

    pub fn remove(&mut self, handle: u64) {
        self.live.remove(&handle);
    }
}
