//! Executes a warp's matrix instructions on registers: `ldmatrix`, `stmatrix`, `movmatrix` and `mma.sync`.
//!
//! The PTX ISA section "Matrix Fragments for mma" says which lane holds which element. It does not specify how tensor
//! cores round, but others have measured this bit for bit (MMA-Sim; Fasi and others, 2021). The products are exact.
//! They and the addend are aligned to the largest exponent and truncated to a number of fraction bits. The sum is exact
//! and rounded once: toward zero for f32, to nearest for f16. [`Multiply::fraction`] and [`Multiply::group`] depend on
//! the architecture.

use crate::error::TrapKind;
use crate::exec::collective::write_u32;
use crate::exec::context::{Context, Event};
use crate::exec::exact::{F16, Rounding, convert};
use crate::exec::load;
use crate::exec::simd::HostIsa;
use crate::exec::store;
use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};

/// Maximum rows of A and the result.
const ROWS: usize = 16;
/// Maximum columns of B and the result.
const COLUMNS: usize = 8;
/// Maximum products in a sum.
const DEEPEST: usize = 32;

/// Minimum exponent to which terms are aligned, for f32 results.
const LEAST_EXPONENT: i32 = -133;
/// Minimum exponent to which terms are aligned, for f16 results.
const LEAST_EXPONENT_OF_HALVES: i32 = -21;

/// The NaN that tensor cores produce.
const NAN: u32 = 0x7fff_ffff;
const NAN_OF_HALVES: u32 = 0x7fff;

/// Element type of A or B. Two 4-bit integers, or 32 single bits, count as one element, whose product is the sum of
/// their products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
    S4,
    U4,
    B1,
}

impl Element {
    const ALL: [Self; 10] =
        [Self::F16, Self::Bf16, Self::Tf32, Self::E4m3, Self::E5m2, Self::S8, Self::U8, Self::S4, Self::U4, Self::B1];

    /// Returns the type named by a modifier.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "tf32" => Self::Tf32,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "s8" => Self::S8,
            "u8" => Self::U8,
            "s4" => Self::S4,
            "u4" => Self::U4,
            "b1" => Self::B1,
            _ => return None,
        })
    }

    /// Returns the number of elements per register.
    pub const fn in_register(self) -> usize {
        match self {
            Self::Tf32 | Self::B1 => 1,
            Self::F16 | Self::Bf16 => 2,
            _ => 4,
        }
    }

    /// Returns how many numbers one element packs.
    pub const fn packed(self) -> usize {
        match self {
            Self::S4 | Self::U4 => 2,
            Self::B1 => 32,
            _ => 1,
        }
    }

    pub const fn is_integer(self) -> bool {
        matches!(self, Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1)
    }

    pub const fn is_fp8(self) -> bool {
        matches!(self, Self::E4m3 | Self::E5m2)
    }

    /// Extracts an element from a register.
    const fn take(self, word: u32, at: usize) -> u32 {
        match self {
            // The lower bits of a register are ignored.
            Self::Tf32 => word >> 13,
            Self::B1 => word,
            Self::F16 | Self::Bf16 => word >> (16 * at) & 0xffff,
            _ => word >> (8 * at) & 0xff,
        }
    }

    /// Returns both 4-bit integers of an element, or an 8-bit one and zero.
    fn integers(self, bits: u32) -> [i64; 2] {
        let byte = bits as u8;
        match self {
            Self::S8 => [i64::from(byte as i8), 0],
            Self::S4 => [i64::from((byte << 4) as i8 >> 4), i64::from(byte as i8 >> 4)],
            Self::U4 => [i64::from(byte & 15), i64::from(byte >> 4)],
            _ => [i64::from(byte), 0],
        }
    }
}

/// A matrix multiplication, as encoded in `imm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiply {
    pub a: Element,
    pub b: Element,
    /// Number of elements of A and B in each sum.
    pub depth: usize,
    /// Whether addend and result are f16, two per register.
    pub halves: bool,
    /// Whether integer sums are clamped instead of wrapping around.
    pub saturates: bool,
    /// Whether bits are combined with exclusive or instead of and.
    pub exclusive: bool,
    /// Number of fraction bits to which terms are truncated.
    pub fraction: u32,
    /// Number of products that are summed at once.
    pub group: usize,
}

impl Multiply {
    pub const fn to_imm(self) -> i64 {
        self.a as i64
            | (self.b as i64) << 4
            | (self.depth as i64) << 8
            | (self.halves as i64) << 16
            | (self.saturates as i64) << 17
            | (self.exclusive as i64) << 18
            | (self.fraction as i64) << 24
            | (self.group as i64) << 32
    }

    pub const fn from_imm(imm: i64) -> Self {
        Self {
            a: Element::ALL[(imm & 15) as usize],
            b: Element::ALL[(imm >> 4 & 15) as usize],
            depth: (imm >> 8 & 255) as usize,
            halves: imm >> 16 & 1 == 1,
            saturates: imm >> 17 & 1 == 1,
            exclusive: imm >> 18 & 1 == 1,
            fraction: (imm >> 24 & 255) as u32,
            group: (imm >> 32 & 255) as usize,
        }
    }
}

/// Waits for all lanes of the warp. `Err` is the handler's return value while lanes are missing.
fn all_lanes(cx: &mut Context<'_>, i: &Ins) -> Result<(), *const Ins> {
    let wanted = cx.alive();
    if wanted != u32::MAX {
        let message =
            format!("a matrix instruction needs all 32 lanes of a warp, but only {wanted:#010x} can execute it");
        return Err(cx.trap(i, TrapKind::Shuffle, !wanted, message));
    }
    if cx.mask != wanted {
        return Err(cx.stop_at(Event::Lanes { wanted }, i));
    }
    let alive = cx.alive();
    cx.shadow.warp_sync(cx.warp.index, cx.mask, alive);
    Ok(())
}

/// Loads the rows of `ldmatrix`: each of the first `PROVIDERS` lanes loads 16 bytes. Slots 0 to 3: the loaded words;
/// slot 4: address.
pub unsafe fn load_rows<const PROVIDERS: u32>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Err(stopped) = all_lanes(cx, i) {
        return stopped;
    }
    cx.set_mask(u32::MAX >> (LANES as u32 - PROVIDERS));
    // SAFETY: the slots are laid out like those of a load of four words.
    let next = unsafe { load::handler(HostIsa::Baseline, |x: u32| x)(cx, i) };
    cx.set_mask(u32::MAX);
    next
}

/// Distributes an 8×8 matrix of 16-bit elements. Slot 0: two elements of a row; slots 1 to 4: words of the rows,
/// starting with lane 8 × `imm`. `aux` is 1 if the matrix is transposed.
pub unsafe fn distribute(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: slots 1 to 4 are 32-bit rows.
    let words: [Row<u32>; 4] = [1, 2, 3, 4].map(|slot| unsafe { cx.row(i.o[slot]) });
    let first = 8 * i.imm as usize;
    let element = |row: usize, column: usize| words[column / 2].0[first + row] >> (16 * (column % 2)) & 0xffff;
    let pair = |lane: usize| {
        let (row, column) = (lane / 4, 2 * (lane % 4));
        if i.aux == 1 {
            element(column, row) | element(column + 1, row) << 16
        } else {
            element(row, column) | element(row, column + 1) << 16
        }
    };
    write_u32(cx, i.o[0], &Row(std::array::from_fn(pair)));
    Context::next(i)
}

/// Gathers word `imm` of the row that each lane stores, from the matrix of its group of eight lanes. Slot 0: the word;
/// slots 1 to 4: registers of the matrices. `aux` is 1 if the matrix is transposed.
pub unsafe fn gather(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: slots 1 to 4 are 32-bit rows.
    let registers: [Row<u32>; 4] = [1, 2, 3, 4].map(|slot| unsafe { cx.row(i.o[slot]) });
    let first = 2 * i.imm as usize;
    let pair = |lane: usize| {
        let (matrix, row) = (&registers[lane / 8].0, lane % 8);
        let element = |column: usize| {
            let (row, column) = if i.aux == 1 { (column, row) } else { (row, column) };
            matrix[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff
        };
        element(first) | element(first + 1) << 16
    };
    write_u32(cx, i.o[0], &Row(std::array::from_fn(pair)));
    Context::next(i)
}

/// Stores the rows of `stmatrix`, the inverse of [`load_rows`]. Slot 0: address; slots 1 to 4: words.
pub unsafe fn store_rows<const PROVIDERS: u32>(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    cx.set_mask(u32::MAX >> (LANES as u32 - PROVIDERS));
    // SAFETY: the slots are laid out like those of a store of four words.
    let next = unsafe { store::handler(HostIsa::Baseline, |x: u32| x)(cx, i) };
    cx.set_mask(u32::MAX);
    next
}

pub unsafe fn join(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    all_lanes(cx, i).map_or_else(|stopped| stopped, |()| Context::next(i))
}

/// `movmatrix`. Slot 0: the transposed matrix; slot 1: two elements of a row in each lane.
pub unsafe fn transpose(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Err(stopped) = all_lanes(cx, i) {
        return stopped;
    }
    // SAFETY: slot 1 is a 32-bit row.
    let from: Row<u32> = unsafe { cx.row(i.o[1]) };
    let element = |row: usize, column: usize| from.0[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
    let pair = |lane: usize| element(2 * (lane % 4), lane / 4) | element(2 * (lane % 4) + 1, lane / 4) << 16;
    write_u32(cx, i.o[0], &Row(std::array::from_fn(pair)));
    Context::next(i)
}

/// Matrices, as the bits in their registers.
struct Matrices {
    a: [[u32; DEEPEST]; ROWS],
    b: [[u32; COLUMNS]; DEEPEST],
    c: [[u32; COLUMNS]; ROWS],
}

fn word(row: &Row<u128>, lane: usize, register: usize) -> u32 {
    (row.0[lane] >> (32 * register)) as u32
}

/// Returns the elements of the addend and the result that a lane holds: register, index within the register, row and
/// column.
fn places(what: Multiply, lane: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    (0..4).map(move |k| {
        let (register, within) = if what.halves { (k / 2, k % 2) } else { (k, 0) };
        (register, within, lane / 4 + 8 * (k / 2), 2 * (lane % 4) + k % 2)
    })
}

impl Matrices {
    fn gather(what: Multiply, [a, b, c]: [&Row<u128>; 3]) -> Self {
        let mut all = Self { a: [[0; DEEPEST]; ROWS], b: [[0; COLUMNS]; DEEPEST], c: [[0; COLUMNS]; ROWS] };
        for lane in 0..LANES {
            let (group, place) = (lane / 4, lane % 4);
            let each = what.a.in_register();
            for column in (0..what.depth).filter(|column| column % (4 * each) / each == place) {
                let (quarter, at) = (column / (4 * each), column % each);
                for half in 0..2 {
                    all.a[group + 8 * half][column] = what.a.take(word(a, lane, 2 * quarter + half), at);
                }
                all.b[column][group] = what.b.take(word(b, lane, quarter), at);
            }
            for (register, within, row, column) in places(what, lane) {
                let bits = word(c, lane, register);
                all.c[row][column] = if what.halves { Element::F16.take(bits, within) } else { bits };
            }
        }
        all
    }
}

/// `mma.sync` with a result of 16 rows. Slots 0 to 3: result, A, B and addend, in 128-bit rows; `imm` is a
/// [`Multiply`].
pub unsafe fn multiply(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Err(stopped) = all_lanes(cx, i) {
        return stopped;
    }
    let what = Multiply::from_imm(i.imm);
    // SAFETY: slots 1 to 3 are rows of 128 bits.
    let [a, b, c]: [Row<u128>; 3] = [1, 2, 3].map(|slot| unsafe { cx.row(i.o[slot]) });
    let all = Matrices::gather(what, [&a, &b, &c]);
    let result = if what.a.is_integer() { multiply_integers(what, &all) } else { multiply_floats(what, &all) };
    let of_lane = |lane: usize| {
        let part = |(register, within, row, column): (usize, usize, usize, usize)| {
            u128::from(result[row][column]) << (32 * register + 16 * within)
        };
        places(what, lane).map(part).fold(0, |bits, part| bits | part)
    };
    // SAFETY: slot 0 is a row of 128 bits.
    unsafe { *cx.row_mut::<u128>(i.o[0]) = Row(std::array::from_fn(of_lane)) };
    Context::next(i)
}

fn multiply_integers(what: Multiply, all: &Matrices) -> [[u32; COLUMNS]; ROWS] {
    let mut result = [[0; COLUMNS]; ROWS];
    for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
        let product = |k: usize| {
            let (a, b) = (all.a[row][k], all.b[k][column]);
            if what.a == Element::B1 {
                return i64::from(if what.exclusive { a ^ b } else { a & b }.count_ones());
            }
            let (a, b) = (what.a.integers(a), what.b.integers(b));
            a[0] * b[0] + a[1] * b[1]
        };
        let sum = (0..what.depth).map(product).sum::<i64>() + i64::from(all.c[row][column] as i32);
        let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        result[row][column] = if what.saturates { clamped } else { sum } as u32;
    }
    result
}

/// A term of a sum: `significand` × 2^(`exponent` − `fraction`), or a special value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Term {
    Finite { significand: i64, exponent: i32, fraction: u32 },
    Infinite { is_negative: bool },
    NotANumber,
}

impl Term {
    /// Decomposes an IEEE 754 float, given its fraction bits, bias and exponent bits.
    fn new(bits: u32, fraction: u32, bias: i32, exponent_bits: u32) -> Self {
        let mantissa = i64::from(bits & ((1 << fraction) - 1));
        let exponent = (bits >> fraction & ((1 << exponent_bits) - 1)) as i32;
        let is_negative = bits >> (fraction + exponent_bits) & 1 == 1;
        if exponent == (1 << exponent_bits) - 1 {
            return if mantissa == 0 { Self::Infinite { is_negative } } else { Self::NotANumber };
        }
        Self::finite(is_negative, exponent, bias, mantissa, fraction)
    }

    fn finite(is_negative: bool, exponent: i32, bias: i32, mantissa: i64, fraction: u32) -> Self {
        let magnitude = if exponent == 0 { mantissa } else { mantissa | 1 << fraction };
        let significand = if is_negative { -magnitude } else { magnitude };
        Self::Finite { significand, exponent: exponent.max(1) - bias, fraction }
    }

    fn of_element(element: Element, bits: u32) -> Self {
        match element {
            Element::F16 => Self::new(bits, 10, 15, 5),
            Element::Bf16 => Self::new(bits, 7, 127, 8),
            Element::E5m2 => Self::new(bits, 2, 15, 5),
            // E4M3 has no infinity, and one NaN per sign.
            Element::E4m3 if bits & 0x7f == 0x7f => Self::NotANumber,
            Element::E4m3 => Self::finite(bits & 0x80 != 0, (bits >> 3 & 15) as i32, 7, i64::from(bits & 7), 3),
            _ => Self::new(bits, 10, 127, 8),
        }
    }

    fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::NotANumber, _) | (_, Self::NotANumber) => Self::NotANumber,
            (
                Self::Finite { significand: x, exponent: e, fraction: f },
                Self::Finite { significand: y, exponent, fraction },
            ) => Self::Finite { significand: x * y, exponent: e + exponent, fraction: f + fraction },
            (Self::Infinite { is_negative }, finite @ Self::Finite { significand, .. })
            | (finite @ Self::Finite { significand, .. }, Self::Infinite { is_negative }) => match finite {
                _ if significand == 0 => Self::NotANumber,
                _ => Self::Infinite { is_negative: is_negative != (significand < 0) },
            },
            (Self::Infinite { is_negative: x }, Self::Infinite { is_negative: y }) => {
                Self::Infinite { is_negative: x != y }
            }
        }
    }
}

/// Adds terms without rounding the result.
fn sum(terms: &[Term], fraction: u32, least_exponent: i32) -> Term {
    let mut infinite = None;
    let mut largest = least_exponent;
    for term in terms {
        match *term {
            Term::NotANumber => return Term::NotANumber,
            Term::Infinite { is_negative } if infinite == Some(!is_negative) => return Term::NotANumber,
            Term::Infinite { is_negative } => infinite = Some(is_negative),
            Term::Finite { significand: 0, .. } => {}
            Term::Finite { exponent, .. } => largest = largest.max(exponent),
        }
    }
    if let Some(is_negative) = infinite {
        return Term::Infinite { is_negative };
    }
    let aligned = |term: &Term| {
        let Term::Finite { significand, exponent, fraction: own } = *term else { return 0 };
        // A zero term may have a larger exponent than the other terms.
        if significand == 0 {
            return 0;
        }
        let shift = exponent - largest + fraction as i32 - own as i32;
        // Bits that are shifted out are dropped, which truncates toward zero.
        if shift >= 0 { significand << shift } else { significand.signum() * (significand.abs() >> (-shift).min(63)) }
    };
    Term::Finite { significand: terms.iter().map(aligned).sum(), exponent: largest, fraction }
}

/// Rounds a sum to f32, toward zero.
fn to_float(sum: Term) -> u32 {
    let (significand, exponent, fraction) = match sum {
        Term::NotANumber => return NAN,
        Term::Infinite { is_negative } => return if is_negative { 0xff80_0000 } else { 0x7f80_0000 },
        Term::Finite { significand, exponent, fraction } => (significand, exponent, fraction),
    };
    let sign = if significand < 0 { 1 << 31 } else { 0 };
    let magnitude = significand.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    // Exponents of the leading bit and of the lowest bit that f32 can hold with it.
    let leading = 63 - magnitude.leading_zeros() as i32 + exponent - fraction as i32;
    let last = (leading - 23).max(-149);
    let shift = last - (exponent - fraction as i32);
    let kept = if shift >= 0 { magnitude >> shift.min(63) } else { magnitude << -shift };
    if leading > 127 {
        return sign | 0x7f80_0000;
    }
    // A subnormal has no leading bit, and its exponent field is zero.
    let field = if leading >= -126 { (leading + 126) as u32 } else { 0 };
    sign | ((field << 23) + kept as u32)
}

/// Rounds a sum to f16, to nearest.
fn to_half(sum: Term) -> u32 {
    match sum {
        Term::NotANumber => NAN_OF_HALVES,
        Term::Infinite { is_negative } => {
            if is_negative {
                0xfc00
            } else {
                0x7c00
            }
        }
        // The sum has fewer than 53 bits, so it is exact in f64.
        Term::Finite { significand, exponent, fraction } => {
            let exact = significand as f64 * f64::from(exponent - fraction as i32).exp2();
            convert(exact, F16, Rounding::Even) as u32
        }
    }
}

fn multiply_floats(what: Multiply, all: &Matrices) -> [[u32; COLUMNS]; ROWS] {
    let a = all.a.map(|row| row.map(|bits| Term::of_element(what.a, bits)));
    let b = all.b.map(|row| row.map(|bits| Term::of_element(what.b, bits)));
    let least = if what.halves { LEAST_EXPONENT_OF_HALVES } else { LEAST_EXPONENT };
    let mut result = [[0; COLUMNS]; ROWS];
    for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
        let mut bits = all.c[row][column];
        for begin in (0..what.depth).step_by(what.group) {
            let addend = if what.halves { Term::of_element(Element::F16, bits) } else { Term::new(bits, 23, 127, 8) };
            let mut terms = [addend; DEEPEST + 1];
            let end = what.depth.min(begin + what.group);
            for (term, k) in terms[1..].iter_mut().zip(begin..end) {
                *term = a[row][k].times(b[k][column]);
            }
            let sum = sum(&terms[..=end - begin], what.fraction, least);
            bits = if what.halves { to_half(sum) } else { to_float(sum) };
        }
        result[row][column] = bits;
    }
    result
}

/// `mma.sync.m8n8k4` for f64, a chain of fused multiply-adds. Slot 0: result, with 128 bits; slots 1 and 2: A and B,
/// with 64 bits; slot 3: addend, with 128 bits.
pub unsafe fn multiply_doubles(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    if let Err(stopped) = all_lanes(cx, i) {
        return stopped;
    }
    // SAFETY: the slots are rows of these widths.
    let (a, b, c): (Row<u64>, Row<u64>, Row<u128>) = unsafe { (cx.row(i.o[1]), cx.row(i.o[2]), cx.row(i.o[3])) };
    let of_lane = |lane: usize| {
        let (row, place) = (lane / 4, lane % 4);
        let element = |which: usize| {
            let column = 2 * place + which;
            let addend = f64::from_bits((c.0[lane] >> (64 * which)) as u64);
            let step =
                |sum: f64, k: usize| f64::from_bits(a.0[4 * row + k]).mul_add(f64::from_bits(b.0[4 * column + k]), sum);
            u128::from((0..4).fold(addend, step).to_bits()) << (64 * which)
        };
        element(0) | element(1)
    };
    // SAFETY: slot 0 is a row of 128 bits.
    unsafe { *cx.row_mut::<u128>(i.o[0]) = Row(std::array::from_fn(of_lane)) };
    Context::next(i)
}
