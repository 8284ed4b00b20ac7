//! Lowers scalar video operations: `d = op2(sat(op(a, b)), c)` on words, halves or bytes.
//!
//! `a.h1` reads a half and extends it according to the signedness of its type; `d.b0` replaces a byte of `c`. The
//! operation's result has 34 bits, even when the secondary operation compares it. An H100 has none of these
//! instructions: ptxas emulates them with others, which in some cases deviate from the PTX ISA. This code follows the
//! PTX ISA.

use crate::exec::context::Handler;
use crate::exec::shapes::quaternary;
use crate::isa::decode::{Done, Form};
use crate::mir::builder::Builder;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{S32, U32};

/// Selectors. A selector's index is its number in a mode.
const SELECTORS: [&str; 6] = ["b0", "b1", "b2", "b3", "h0", "h1"];
/// Number in the mode of an operand that is the whole register.
const WORD: u32 = 7;

/// Bit position in a mode of the destination's selector, which has three bits.
const SELECT_D: u32 = 0;
/// Bit position of the first source's selector.
const SELECT_A: u32 = 3;
/// Bit position of the second source's selector.
const SELECT_B: u32 = 6;
/// Mode bit of a signed destination.
const SIGNED_D: u32 = 1 << 9;
/// Mode bit of a signed first source.
const SIGNED_A: u32 = 1 << 10;
/// Mode bit of a signed second source.
const SIGNED_B: u32 = 1 << 11;
const SATURATE: u32 = 1 << 12;
/// Mode bits of the secondary operation, at most one of which is set.
const ADD: u32 = 1 << 13;
const MIN: u32 = 1 << 14;
const MAX: u32 = 1 << 15;
/// Mode bit of a shift that takes its amount modulo 32.
const WRAP: u32 = 1 << 16;
/// Mode bit of `vmad` that negates the product.
const NEGATE_PRODUCT: u32 = 1 << 17;
/// Mode bit of `vmad` that negates the addend.
const NEGATE_ADDEND: u32 = 1 << 18;
/// Mode bit of `vmad` that adds one.
const PLUS_ONE: u32 = 1 << 19;
/// Mode bit of `vmad` that shifts the sum right by 7.
const SHIFT_7: u32 = 1 << 20;
/// Mode bit of `vmad` that shifts the sum right by 15.
const SHIFT_15: u32 = 1 << 21;

/// Lowers `vadd`, `vsub`, `vabsdiff`, `vmin` and `vmax`.
pub fn arithmetic<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let mode = signs(f, 3)? | saturation(f);
    macro_rules! with {
        ($op:expr) => {
            quaternary(b.isa, |x: u32, y: u32, c: u32, mode: u32| apply(x, y, c, mode, $op))
        };
    }
    let run = match f.ins.opcode.split('.').next().unwrap_or_default() {
        "vadd" => with!(|x, y| x + y),
        "vsub" => with!(|x, y| x - y),
        "vabsdiff" => with!(|x: i64, y: i64| (x - y).abs()),
        "vmin" => with!(i64::min),
        _ => with!(i64::max),
    };
    combine(b, f, run, mode)
}

/// Lowers `vshl` and `vshr`. Shifts by up to 32 with `.clamp`, and by the amount modulo 32 with `.wrap`.
pub fn shifts<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let mut mode = signs(f, 3)? | saturation(f);
    if mode & SIGNED_B != 0 {
        return Err("the shift amount must be `.u32`".to_owned());
    }
    mode |= match f.one_of(&["clamp", "wrap"]) {
        Some("clamp") => 0,
        Some(_) => WRAP,
        None => return Err("expected `.clamp` or `.wrap`".to_owned()),
    };
    macro_rules! with {
        ($op:expr) => {
            quaternary(b.isa, |x: u32, y: u32, c: u32, mode: u32| {
                let amount = move |y: i64| if mode & WRAP == 0 { y.min(32) } else { y & 31 };
                apply(x, y, c, mode, |x, y| $op(x, amount(y)))
            })
        };
    }
    let run = if f.ins.opcode.starts_with("vshl") {
        // The result keeps 34 bits.
        with!(|x: i64, by: i64| x << by << 30 >> 30)
    } else {
        with!(|x: i64, by: i64| x >> by)
    };
    combine(b, f, run, mode)
}

/// Lowers `vset`: 1 if the comparison is true, otherwise 0.
pub fn comparison<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let comparison = f.one_of(&["eq", "ne", "lt", "le", "gt", "ge"]).ok_or("expected a comparison")?;
    let mode = signs(f, 2)?;
    macro_rules! with {
        ($op:tt) => {
            quaternary(b.isa, |x: u32, y: u32, c: u32, mode: u32| apply(x, y, c, mode, |x, y| i64::from(x $op y)))
        };
    }
    let run = match comparison {
        "eq" => with!(==),
        "ne" => with!(!=),
        "lt" => with!(<),
        "le" => with!(<=),
        "gt" => with!(>),
        _ => with!(>=),
    };
    combine(b, f, run, mode)
}

/// Lowers `vmad`: `a * b + c`, where the product or `c` may be negated, or `a * b + c + 1` with `.po`.
pub fn multiply_add<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let mut mode = signs(f, 3)? | saturation(f) | flag(f.flag("po"), PLUS_ONE);
    mode |= match f.one_of(&["shr7", "shr15"]) {
        Some("shr7") => SHIFT_7,
        Some(_) => SHIFT_15,
        None => 0,
    };
    f.done()?;
    let negated = |operand: &Operand<'a>| matches!(operand, Operand::Negative(_));
    mode |= flag(negated(f.operand(1)?) != negated(f.operand(2)?), NEGATE_PRODUCT);
    mode |= flag(negated(f.operand(3)?), NEGATE_ADDEND);
    let any = (1..4).any(|at| f.operand(at).is_ok_and(negated));
    if any && mode & PLUS_ONE != 0 {
        return Err("with `.po` no source can be negated".to_owned());
    }
    if mode & NEGATE_PRODUCT != 0 && mode & NEGATE_ADDEND != 0 {
        return Err("the product and `c` cannot both be negated".to_owned());
    }
    if select(f.operand(0)?).1 != WORD {
        return Err("`vmad` writes the whole destination, not a part of it".to_owned());
    }
    let run = quaternary(b.isa, |x: u32, y: u32, c: u32, mode: u32| fused(x, y, c, mode));
    emit(b, f, run, mode, true)
}

const fn flag(on: bool, bit: u32) -> u32 {
    if on { bit } else { 0 }
}

/// Consumes the types of both sources, preceded by the type of the destination if there are three.
fn signs(f: &mut Form<'_, '_>, count: usize) -> Result<u32, String> {
    let types = f.types();
    if types.len() != count || !types.iter().all(|ty| matches!(ty, U32 | S32)) {
        let count = if count == 3 { "three" } else { "two" };
        return Err(format!("expected {count} types, each `.u32` or `.s32`"));
    }
    let bits = [SIGNED_B, SIGNED_A, SIGNED_D];
    Ok(types.iter().rev().zip(bits).map(|(&ty, bit)| flag(ty == S32, bit)).sum())
}

fn saturation(f: &mut Form<'_, '_>) -> u32 {
    flag(f.flag("sat"), SATURATE)
}

/// Consumes the secondary operation and emits `d, a, b`, followed by `c` if that operation or a selector of `d` needs
/// it.
fn combine<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, run: Handler, mode: u32) -> Done {
    let secondary = match f.one_of(&["add", "min", "max"]) {
        Some("add") => ADD,
        Some("min") => MIN,
        Some(_) => MAX,
        None => 0,
    };
    f.done()?;
    if f.ins.operands.iter().any(|operand| matches!(operand, Operand::Negative(_))) {
        return Err("only `vmad` negates a source".to_owned());
    }
    let merges = select(f.operand(0)?).1 != WORD;
    if merges && secondary != 0 {
        return Err("a part of the destination and a secondary operation cannot be combined".to_owned());
    }
    emit(b, f, run, mode | secondary, merges || secondary != 0)
}

fn emit<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>, run: Handler, mut mode: u32, third: bool) -> Done {
    let count = if third { 4 } else { 3 };
    if f.count() != count {
        return Err(format!("expected {count} operands, found {}", f.count()));
    }
    let mut operands = Vec::with_capacity(count);
    for (operand, place) in f.ins.operands.iter().zip([Some(SELECT_D), Some(SELECT_A), Some(SELECT_B), None]) {
        let (register, selector) = match place {
            Some(_) => select(operand),
            None => (whole(operand), WORD),
        };
        mode |= place.map_or(0, |place| selector << place);
        operands.push(register);
    }
    let d = b.dst(&operands[0], U32)?;
    let (x, y) = (b.src(&operands[1], U32)?, b.src(&operands[2], U32)?);
    let c = b.src(operands.get(3).unwrap_or(&Operand::Int(0)), U32)?;
    let mode = b.parts.constants.uniform(mode.into(), false);
    b.emit(run, [d, x, y, c, mode], 1, 0, 0);
    Ok(())
}

/// Strips the sign from an operand.
fn whole<'a>(operand: &Operand<'a>) -> Operand<'a> {
    match *operand {
        Operand::Negative(name) => Operand::Name(name),
        ref other => other.clone(),
    }
}

/// Strips the sign and the selector from an operand. Also returns the selector's number.
fn select<'a>(operand: &Operand<'a>) -> (Operand<'a>, u32) {
    let operand = whole(operand);
    if let Operand::Name(name) = operand
        && let Some((register, selector)) = name.rsplit_once('.')
        && let Some(number) = SELECTORS.iter().position(|&s| s == selector)
    {
        return (Operand::Name(register), number as u32);
    }
    (operand, WORD)
}

/// Returns the bit position and width of a selected part.
const fn place(mode: u32, at: u32) -> (u32, u32) {
    match mode >> at & 7 {
        byte @ 0..4 => (8 * byte, 8),
        half @ 4..6 => (16 * (half - 4), 16),
        _ => (0, 32),
    }
}

/// Returns the selected part of a source, sign-extended if `signed`.
#[inline(always)]
fn part(v: u32, mode: u32, at: u32, signed: bool) -> i64 {
    let (start, width) = place(mode, at);
    let high = u64::from(v >> start) << (64 - width);
    if signed { high as i64 >> (64 - width) } else { (high >> (64 - width)) as i64 }
}

/// Applies the operation to the selected parts of both sources, then the saturation, the secondary operation and the
/// merge.
#[inline(always)]
fn apply(x: u32, y: u32, c: u32, mode: u32, op: impl Fn(i64, i64) -> i64) -> u32 {
    let x = part(x, mode, SELECT_A, mode & SIGNED_A != 0);
    let y = part(y, mode, SELECT_B, mode & SIGNED_B != 0);
    finish(op(x, y), c, mode)
}

fn finish(result: i64, c: u32, mode: u32) -> u32 {
    let signed = mode & SIGNED_D != 0;
    let (start, width) = place(mode, SELECT_D);
    let result = if mode & SATURATE == 0 { result } else { clamp(result.into(), signed, width) as i64 };
    let addend = if signed { i64::from(c as i32) } else { i64::from(c) };
    if mode & ADD != 0 {
        (result + addend) as u32
    } else if mode & MIN != 0 {
        result.min(addend) as u32
    } else if mode & MAX != 0 {
        result.max(addend) as u32
    } else {
        let ones = u32::MAX >> (32 - width) << start;
        (result as u32) << start & ones | c & !ones
    }
}

fn clamp(v: i128, signed: bool, width: u32) -> i128 {
    if signed { v.clamp(-1 << (width - 1), (1 << (width - 1)) - 1) } else { v.clamp(0, (1 << width) - 1) }
}

/// Adds the product and `c` exactly. The sum and `c` are unsigned if both sources are unsigned and nothing is negated.
fn fused(x: u32, y: u32, c: u32, mode: u32) -> u32 {
    let x = part(x, mode, SELECT_A, mode & SIGNED_A != 0);
    let y = part(y, mode, SELECT_B, mode & SIGNED_B != 0);
    let signed = mode & (SIGNED_A | SIGNED_B | NEGATE_PRODUCT | NEGATE_ADDEND) != 0;
    let product = i128::from(x) * i128::from(y);
    let addend = if signed { i128::from(c as i32) } else { i128::from(c) };
    let product = if mode & NEGATE_PRODUCT == 0 { product } else { -product };
    let addend = if mode & NEGATE_ADDEND == 0 { addend } else { -addend };
    let sum = product + addend + i128::from(mode & PLUS_ONE != 0);
    let scaled = match mode & (SHIFT_7 | SHIFT_15) {
        0 => sum,
        SHIFT_7 => sum >> 7,
        _ => sum >> 15,
    };
    let result = if mode & SATURATE == 0 { scaled } else { clamp(scaled, signed, 32) };
    result as u32
}
