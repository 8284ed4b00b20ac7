//! Classes of values, and the inputs of every case: first combinations of edge values, then random values.

/// The kind of values that a form's register holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A predicate: 0 or 1.
    Pred,
    /// An integer or a bit pattern of this width.
    Bits(u32),
    /// Bits of an IEEE 754 binary16.
    F16,
    /// Bits of a bfloat16.
    Bf16,
    /// Bits of an IEEE 754 binary32.
    F32,
    /// An `f32` NaN.
    Nan,
    /// Bits of an IEEE 754 binary64.
    F64,
    /// Two `f16` in 32 bits.
    F16x2,
    /// Two `bf16` in 32 bits.
    Bf16x2,
    /// A number of bits, which may exceed 32 or 64.
    Amount,
    /// A lane index.
    Lane,
    /// The clamp and segment-mask operand of a shuffle.
    Segment,
    /// A small signed number.
    Small,
    /// One of three values, so that lanes often have equal values.
    Few,
    /// An `f32` from −2π to 2π.
    Angle,
    /// An `f32` from −130 to 130.
    Exponent,
    /// An `f32` of moderate magnitude.
    Moderate,
}

impl Class {
    /// Returns the class with this name in `forms.txt`, e.g. `s32`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "pred" => Self::Pred,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "nan" => Self::Nan,
            "f64" => Self::F64,
            "f16x2" => Self::F16x2,
            "bf16x2" => Self::Bf16x2,
            "amount" => Self::Amount,
            "lane" => Self::Lane,
            "segment" => Self::Segment,
            "small" => Self::Small,
            "few" => Self::Few,
            "angle" => Self::Angle,
            "exponent" => Self::Exponent,
            "moderate" => Self::Moderate,
            _ => Self::Bits(match name {
                "u8" | "s8" => 8,
                "b16" | "u16" | "s16" => 16,
                "b32" | "u32" | "s32" => 32,
                "b64" | "u64" | "s64" => 64,
                _ => return None,
            }),
        })
    }

    /// Returns the type of a source register. 8-bit values are in the low half of a 16-bit register.
    pub const fn register(self) -> &'static str {
        match self {
            Self::Pred => "pred",
            Self::Bits(8 | 16) | Self::F16 | Self::Bf16 => "b16",
            Self::Bits(64) | Self::F64 => "b64",
            _ => "b32",
        }
    }

    /// Returns the type of a result register. 8-bit results are extended to 32 bits.
    pub const fn result_register(self) -> &'static str {
        match self {
            Self::Bits(8) => "b32",
            other => other.register(),
        }
    }

    /// Returns the number of hexadecimal digits of a result.
    pub const fn result_digits(self) -> usize {
        match self {
            Self::Pred => 1,
            Self::Bits(16) | Self::F16 | Self::Bf16 => 4,
            Self::Bits(64) | Self::F64 => 16,
            _ => 8,
        }
    }
}

/// Edge values of integers, truncated to the width. Combinations use only the first ones.
const INTEGERS: [u64; 24] = [
    0,
    1,
    u64::MAX,
    i64::MIN as u64,
    i64::MAX as u64,
    2,
    0x8000_0000,
    0x7fff_ffff,
    0x8000,
    0x7fff,
    0x80,
    0x7f,
    0xff,
    0xffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x5555_5555_5555_5555,
    0xaaaa_aaaa_aaaa_aaaa,
    0xffff_ffff_ffff_fffe,
    0x8000_0001,
    3,
    1000,
    0x0001_0000,
    0xdead_beef_0bad_f00d,
];

const SINGLES: [u32; 48] = [
    0x0000_0000,
    0x8000_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc1_2345,
    0x0000_0001,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f81_2345,
    0xffc5_4321,
    0x3f00_0000,
    0x3fc0_0000,
    0xc020_0000,
    0x4040_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0xbf80_0001,
    0x4b80_0000,
    0x4b80_0001,
    0x4f00_0000,
    0x4eff_ffff,
    0xcf00_0000,
    0x4f80_0000,
    0x5f00_0000,
    0x5f80_0000,
    0xdf00_0000,
    0x477f_e000,
    0x477f_f000,
    0x477f_efff,
    0x3300_0000,
    0x3300_0001,
    0x3380_0000,
    0x42ff_0000,
    0x437f_8000,
    0xc300_8000,
    0x3eaa_aaab,
    0x4049_0fdb,
    0x1e3c_e508,
    0x60ad_78ec,
    0x3f80_1000,
];

/// NaN payloads at the edges of what narrower formats can represent.
const PAYLOADS: [u32; 12] = [
    0x0000_0001,
    0x0000_0fff,
    0x0000_1000,
    0x0000_1001,
    0x0000_1fff,
    0x0000_2000,
    0x0000_3000,
    0x003f_ffff,
    0x0040_0000,
    0x0040_1000,
    0x007f_efff,
    0x007f_ffff,
];

const DOUBLES: [u64; 40] = [
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_1234_5678_9abc,
    0x0000_0000_0000_0001,
    0x8000_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x800f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x8010_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_1234_5678_9abc,
    0xfff8_5432_1000_0000,
    0x3fe0_0000_0000_0000,
    0x3ff8_0000_0000_0000,
    0xc004_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0001,
    0x4340_0000_0000_0000,
    0x4340_0000_0000_0001,
    0x41df_ffff_ffc0_0000,
    0xc1e0_0000_0000_0000,
    0x41f0_0000_0000_0000,
    0x43e0_0000_0000_0000,
    0xc3e0_0000_0000_0000,
    0x43f0_0000_0000_0000,
    0x3810_0000_0000_0000,
    0x380f_ffff_f000_0000,
    0x3690_0000_0000_0000,
    0x3690_0000_0000_0001,
    0x47ef_ffff_e000_0000,
    0x47ef_ffff_f000_0000,
    0x40ef_fe00_0000_0000,
    0x3fd5_5555_5555_5555,
    0x4009_21fb_5444_2d18,
    0x3ff0_0000_1000_0000,
];

const HALVES: [u16; 28] = [
    0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e01, 0x0001, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x7bff,
    0xfbff, 0x7d01, 0xfe55, 0x3800, 0x3e00, 0xc100, 0x3bff, 0x3c01, 0x6400, 0x57f8, 0xd808, 0x3555, 0x4248, 0x1400,
];

const BFLOATS: [u16; 28] = [
    0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc1, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080, 0x7f7f,
    0xff7f, 0x7f81, 0xffd5, 0x3f00, 0x3fc0, 0xc020, 0x3f7f, 0x3f81, 0x4f00, 0x42ff, 0xc301, 0x3eab, 0x4049, 0x3300,
];

const AMOUNTS: [u32; 16] = [0, 1, 31, 32, 33, 63, 64, 65, 7, 8, 16, 255, 256, 257, 0x8000_0000, u32::MAX];

/// Returns a pseudorandom number that depends only on the case and the source.
fn random(case: usize, source: usize) -> u64 {
    let mut z = ((case as u64) << 8 | source as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Returns the index of a source's edge value in a case. First come all combinations of the first few edge values, and
/// then all edge values, with a different step for each source. `None` if the case is random.
fn edge(case: usize, source: usize, sources: usize, edges: usize) -> Option<usize> {
    let core = [64, 64, 8, 4, 2, 2][sources].min(edges);
    let combinations = core.pow(sources as u32).min(64);
    if case < combinations {
        return Some(case / core.pow(source as u32) % core);
    }
    let k = case - combinations;
    (case < 160).then(|| (k * [1, 7, 11, 13, 17][source] + source * (k / edges) + 3 * source) % edges)
}

pub fn of_case(classes: &[Class], case: usize) -> Vec<u64> {
    classes.iter().enumerate().map(|(k, &class)| value(class, case, k, classes.len())).collect()
}

/// Returns an `f32` between `lo` and `hi`.
fn spread(lo: f64, hi: f64, random: u64) -> u64 {
    let unit = (random >> 11) as f64 / (1_u64 << 53) as f64;
    u64::from(((hi - lo).mul_add(unit, lo) as f32).to_bits())
}

/// Generates the random bits of a float. In every other case, it is close to one, so that sums cancel and products
/// round.
fn float(random: u64, case: usize, exponent_bits: u32, mantissa_bits: u32) -> u64 {
    let all = random & (u64::MAX >> (63 - exponent_bits - mantissa_bits));
    if case.is_multiple_of(2) {
        return all;
    }
    let bias = (1_u64 << (exponent_bits - 1)) - 1;
    let exponent = bias - 3 + (random >> 58) % 8;
    let sign = all & 1 << (exponent_bits + mantissa_bits);
    sign | exponent << mantissa_bits | all & ((1 << mantissa_bits) - 1)
}

fn value(class: Class, case: usize, source: usize, sources: usize) -> u64 {
    let r = random(case, source);
    let pick = |edges: usize| edge(case, source, sources, edges);
    let half = |edges: &[u16], at: usize, r: u64, exponent, mantissa| match pick(edges.len()) {
        Some(k) => u64::from(edges[(k + at * 5) % edges.len()]),
        None => float(r, case, exponent, mantissa),
    };
    let singles = |special: &[u32], lo, hi| match special.get(case) {
        Some(&bits) => u64::from(bits),
        None => spread(lo, hi, r),
    };
    match class {
        Class::Pred => r >> 17 & 1,
        Class::Bits(bits) => {
            // 8-bit values are in a 16-bit register, of which the operation reads the low half.
            let value = pick(INTEGERS.len()).map_or(r, |k| match INTEGERS[k] {
                i if i == i64::MIN as u64 => 1 << (bits - 1),
                i if i == i64::MAX as u64 => (1 << (bits - 1)) - 1,
                i => i,
            });
            value & (u64::MAX >> (64 - bits.max(16)))
        }
        Class::F16 => half(&HALVES, 0, r, 5, 10),
        Class::Bf16 => half(&BFLOATS, 0, r, 8, 7),
        Class::F16x2 => half(&HALVES, 0, r, 5, 10) | half(&HALVES, 1, random(case, source + 8), 5, 10) << 16,
        Class::Bf16x2 => half(&BFLOATS, 0, r, 8, 7) | half(&BFLOATS, 1, random(case, source + 8), 8, 7) << 16,
        Class::F32 => pick(SINGLES.len()).map_or_else(|| float(r, case, 8, 23), |k| u64::from(SINGLES[k])),
        Class::Nan => {
            let payload = PAYLOADS.get(case / 2).map_or(r as u32 & 0x007f_ffff | 1, |&p| p);
            u64::from((case as u32 & 1) << 31 | 0x7f80_0000 | payload)
        }
        Class::F64 => pick(DOUBLES.len()).map_or_else(|| float(r, case, 11, 52), |k| DOUBLES[k]),
        Class::Amount => match pick(AMOUNTS.len()) {
            Some(k) => u64::from(AMOUNTS[k]),
            None => r % 72,
        },
        Class::Lane => r % 32,
        Class::Segment => [31, 0, 0x1f03, 0x1807, 0x1018, 0x1c03][case / 32 % 6],
        Class::Small => u64::from((r % 21) as u32).wrapping_sub(10) & 0xffff_ffff,
        Class::Few => {
            if case < 32 {
                7
            } else {
                r % 3
            }
        }
        Class::Angle => singles(&SINGLES[..11], -std::f64::consts::TAU, std::f64::consts::TAU),
        Class::Exponent => singles(&SINGLES[..11], -130.0, 130.0),
        Class::Moderate => singles(&[0x3f80_0000, 0xbf80_0000], 0.01, 100.0),
    }
}
