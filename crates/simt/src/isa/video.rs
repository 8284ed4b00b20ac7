//! Lowers video operations on the two halves or the four bytes of a register.
//!
//! Averages are refused, and so are parts chosen by a selector (`a.h32`, `d.b1`). `video_scalar.rs` has the scalar
//! operations.

use crate::exec::context::Handler;
use crate::exec::shapes::quaternary;
use crate::isa::decode::{Done, Form};
use crate::mir::builder::Builder;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{S32, U32};

/// Mode bit of a signed result.
const SIGNED_D: u32 = 1;
/// Mode bit of a signed first source.
const SIGNED_A: u32 = 1 << 1;
/// Mode bit of a signed second source.
const SIGNED_B: u32 = 1 << 2;
/// Mode bit that saturates the results.
const SATURATE: u32 = 1 << 3;
/// Mode bit that sums the results.
const SUM: u32 = 1 << 4;
/// Mode bit of parts that are bytes, not halves.
const BYTES: u32 = 1 << 5;

/// Lowers `vadd2`, `vsub4` and similar: `d, a, b, c`. With `.add`, `c` is the initial value of the sum.
pub fn parts<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let (name, bytes) = width(f);
    let mut mode = bytes | flag(f.flag("sat"), SATURATE) | flag(f.flag("add"), SUM);
    if mode & (SATURATE | SUM) == SATURATE | SUM {
        return Err("`.sat` and `.add` cannot be combined".to_owned());
    }
    match f.types()[..] {
        [d, x, y] if [d, x, y].iter().all(|ty| matches!(ty, U32 | S32)) => {
            mode |= flag(d == S32, SIGNED_D) | flag(x == S32, SIGNED_A) | flag(y == S32, SIGNED_B);
        }
        _ => return Err("expected three types, each `.u32` or `.s32`".to_owned()),
    }
    f.done()?;
    macro_rules! with {
        ($op:expr) => {
            quaternary(b.isa, |x: u32, y: u32, z: u32, mode: u32| each(x, y, z, mode, $op))
        };
    }
    let run = match name.trim_end_matches(['2', '4']) {
        "vadd" => with!(|x, y| x + y),
        "vsub" => with!(|x, y| x - y),
        "vabsdiff" => with!(|x: i32, y: i32| (x - y).abs()),
        "vmin" => with!(i32::min),
        _ => with!(i32::max),
    };
    finish(b, f, run, mode)
}

/// Lowers `vset2` and `vset4`. Each part is 1 if the comparison is true, otherwise 0.
pub fn comparisons<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    let comparison = f.one_of(&["eq", "ne", "lt", "le", "gt", "ge"]).ok_or("expected a comparison")?;
    let mut mode = width(f).1 | flag(f.flag("add"), SUM);
    match f.types()[..] {
        [x, y] if [x, y].iter().all(|ty| matches!(ty, U32 | S32)) => {
            mode |= flag(x == S32, SIGNED_A) | flag(y == S32, SIGNED_B);
        }
        _ => return Err("expected two types, each `.u32` or `.s32`".to_owned()),
    }
    f.done()?;
    macro_rules! with {
        ($op:tt) => {
            quaternary(b.isa, |x: u32, y: u32, z: u32, mode: u32| each(x, y, z, mode, |x, y| i32::from(x $op y)))
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
    finish(b, f, run, mode)
}

/// Returns the opcode, and the mode bits for its width.
fn width<'i>(f: &Form<'_, 'i>) -> (&'i str, u32) {
    let name = f.ins.opcode.split('.').next().unwrap_or_default();
    (name, flag(name.ends_with('4'), BYTES))
}

const fn flag(on: bool, bit: u32) -> u32 {
    if on { bit } else { 0 }
}

fn finish<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>, run: Handler, mode: u32) -> Done {
    let d = b.dst(whole(f.operand(0)?)?, U32)?;
    let (x, y) = (b.src(whole(f.operand(1)?)?, U32)?, b.src(whole(f.operand(2)?)?, U32)?);
    let z = b.src(f.operand(3)?, U32)?;
    let mode = b.parts.constants.uniform(mode.into(), false);
    b.emit(run, [d, x, y, z, mode], 1, 0, 0);
    Ok(())
}

/// Refuses an operand with a selector.
fn whole<'o, 'a>(operand: &'o Operand<'a>) -> Result<&'o Operand<'a>, String> {
    if let Operand::Name(name) = operand
        && let Some((_, selector)) = name.rsplit_once('.')
        && let Some(parts) = selector.strip_prefix(['b', 'h'])
        && parts.bytes().all(|c| c.is_ascii_digit())
    {
        return Err(format!(
            "the selector `.{selector}` of `{name}` is not simulated: only selectors of all parts in order are"
        ));
    }
    Ok(operand)
}

/// Applies the operation to each part. Packs the results or, with `.add`, adds them to `start`.
#[inline(always)]
fn each(x: u32, y: u32, start: u32, mode: u32, op: impl Fn(i32, i32) -> i32) -> u32 {
    let width = if mode & BYTES == 0 { 16 } else { 8 };
    let ones = (1_u32 << width) - 1;
    let part = |v: u32, at: u32, signed: bool| {
        let high = v << (32 - width - at);
        if signed { high as i32 >> (32 - width) } else { (high >> (32 - width)) as i32 }
    };
    let (least, most) =
        if mode & SIGNED_D == 0 { (0, ones as i32) } else { (-(1 << (width - 1)), (1 << (width - 1)) - 1) };
    let (mut side_by_side, mut sum) = (0, start);
    for at in (0..32).step_by(width as usize) {
        let value = op(part(x, at, mode & SIGNED_A != 0), part(y, at, mode & SIGNED_B != 0));
        let value = if mode & SATURATE == 0 { value } else { value.clamp(least, most) };
        side_by_side |= (value as u32 & ones) << at;
        sum = sum.wrapping_add(value as u32);
    }
    if mode & SUM == 0 { side_by_side } else { sum }
}
