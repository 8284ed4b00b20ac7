//! Lowers `ldmatrix`, `stmatrix`, `movmatrix` and `mma.sync`.

use crate::exec::matrix::{self, Element, Multiply};
use crate::exec::vector::binary;
use crate::isa::address::{address, space};
use crate::isa::decode::{Done, Form, elements};
use crate::isa::moves;
use crate::mir::builder::Builder;
use crate::mir::{Class, Opnd};
use crate::program::aux::StateSpace;
use ptx_parser::{Operand, ScalarType};

use ScalarType::{B32, F32, F64, S32};

/// Lowers `ldmatrix`: each of the first lanes loads a row, and then each matrix is distributed.
pub fn load<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["sync", "aligned", "m8n8"]);
    let (count, run): (usize, crate::exec::context::Handler) = match f.one_of(&["x1", "x2", "x4"]) {
        Some("x1") => (1, matrix::load_rows::<8>),
        Some("x2") => (2, matrix::load_rows::<16>),
        Some(_) => (4, matrix::load_rows::<32>),
        None => return Err("expected `.x1`, `.x2` or `.x4`".to_owned()),
    };
    let transposed = f.flag("trans");
    let space = space(f);
    f.ty()?;
    f.done()?;
    let (row, imm, aux) = address(b, f.operand(1)?, space)?;
    if !matches!(aux.space(), StateSpace::SHARED | StateSpace::GENERIC) {
        return Err("expected an address in shared memory".to_owned());
    }
    let words = [0; 4].map(|_| Opnd::Reg(b.fresh(Class::Narrow)));
    let [x, y, z, w] = words;
    b.emit(run, [x, y, z, w, row], 0b1111, imm, aux.with_elements(4).bits());
    for (place, target) in elements(f.operand(0)?, count, "destinations")?.iter().enumerate() {
        let d = b.dst(target, B32)?;
        b.emit(matrix::distribute, [d, x, y, z, w], 1, place as i64, u32::from(transposed));
        b.uncount_last();
    }
    Ok(())
}

/// Lowers `stmatrix`: the rows of each matrix are gathered, and then each of the first lanes stores a row.
pub fn store<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["sync", "aligned", "m8n8"]);
    let (count, run): (usize, crate::exec::context::Handler) = match f.one_of(&["x1", "x2", "x4"]) {
        Some("x1") => (1, matrix::store_rows::<8>),
        Some("x2") => (2, matrix::store_rows::<16>),
        Some(_) => (4, matrix::store_rows::<32>),
        None => return Err("expected `.x1`, `.x2` or `.x4`".to_owned()),
    };
    let transposed = f.flag("trans");
    let space = space(f);
    f.ty()?;
    f.done()?;
    let (row, imm, aux) = address(b, f.operand(0)?, space)?;
    if !matches!(aux.space(), StateSpace::SHARED | StateSpace::GENERIC) {
        return Err("expected an address in shared memory".to_owned());
    }
    let mut registers = [b.parts.constants.uniform(0, false); 4];
    for (register, source) in registers.iter_mut().zip(elements(f.operand(1)?, count, "sources")?) {
        *register = b.src(source, B32)?;
    }
    b.emit::<0>(matrix::join, [], 0, 0, 0);
    b.uncount_last();
    let words = [0; 4].map(|_| Opnd::Reg(b.fresh(Class::Narrow)));
    let [x, y, z, w] = registers;
    for (place, word) in words.into_iter().enumerate() {
        b.emit(matrix::gather, [word, x, y, z, w], 1, place as i64, u32::from(transposed));
        b.uncount_last();
    }
    let [x, y, z, w] = words;
    b.emit(run, [row, x, y, z, w], 0, imm, aux.with_elements(4).bits());
    Ok(())
}

/// Lowers `movmatrix`.
pub fn transpose<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    f.ignore(&["sync", "aligned", "m8n8", "trans", "b16"]);
    f.done()?;
    let (d, x) = (b.dst(f.operand(0)?, B32)?, b.src(f.operand(1)?, B32)?);
    b.emit(matrix::transpose, [d, x], 1, 0, 0);
    Ok(())
}

/// Packs up to four registers into one 128-bit register, with the first one lowest.
pub fn pack<'a>(b: &mut Builder<'a, '_>, registers: &[Operand<'a>], ty: ScalarType) -> Result<Opnd, String> {
    let mut words = [b.parts.constants.uniform(0, false); 4];
    for (word, register) in words.iter_mut().zip(registers) {
        *word = b.src(register, ty)?;
    }
    let halves = [0, 2].map(|at| {
        let half = Opnd::Reg(b.fresh(Class::Wide));
        let run = binary(b.isa, |low: u32, high: u32| u64::from(high) << 32 | u64::from(low));
        b.emit(run, [half, words[at], words[at + 1]], 1, 0, 0);
        b.uncount_last();
        half
    });
    let all = Opnd::Reg(b.fresh(Class::Quad));
    moves::join(b, all, halves);
    b.uncount_last();
    Ok(all)
}

/// Unpacks a 128-bit register.
pub fn unpack<'a>(b: &mut Builder<'a, '_>, registers: &[Operand<'a>], ty: ScalarType, from: Opnd) -> Done {
    for (half, registers) in registers.chunks(2).enumerate() {
        let wide = Opnd::Reg(b.fresh(Class::Wide));
        moves::half(b, wide, from, half);
        b.uncount_last();
        for (place, register) in registers.iter().enumerate() {
            let d = b.dst(register, ty)?;
            if d != Opnd::None {
                let by = b.parts.constants.uniform(32 * place as u64, false);
                let run = binary(b.isa, |x: u64, by: u32| (x >> by) as u32);
                b.emit(run, [d, wide, by], 1, 0, 0);
                b.uncount_last();
            }
        }
    }
    Ok(())
}

/// Number of fraction bits to which a target's tensor cores truncate terms, and number of products that they add at
/// once.
pub fn rounding(target: Option<u32>, element: Element) -> (u32, usize) {
    match target {
        Some(..75) => (23, 4),
        Some(75..80) => (24, 4),
        Some(80..90) => (24, if element == Element::Tf32 { 4 } else { 8 }),
        _ => (25, 32),
    }
}

/// Lowers `mma`.
pub fn multiply<'a>(b: &mut Builder<'a, '_>, f: &mut Form<'a, '_>) -> Done {
    // The modifiers were already checked against the forms.
    let names = || f.ins.opcode.split('.');
    if names().any(|name| name.starts_with("sp")) {
        return Err("sparse matrices are not simulated".to_owned());
    }
    let shape = names().find(|name| name.starts_with('m') && name.contains("n8k"));
    let is_type = |name: &&str| Element::from_name(name).is_some() || matches!(*name, "f32" | "s32" | "f64");
    let types: Vec<&str> = names().filter(is_type).collect();
    let &[d, a, right, c] = &types[..] else { return Err("expected four matrix types".to_owned()) };
    let [saturates, exclusive] = ["satfinite", "xor"].map(|wanted| names().any(|name| name == wanted));
    if (shape, a) == (Some("m8n8k4"), "f64") {
        return multiply_doubles(b, f);
    }
    let size = shape.and_then(|shape| {
        let (rows, depth) = shape.strip_prefix('m')?.split_once("n8k")?;
        Some((rows.parse::<usize>().ok()?, depth.parse::<usize>().ok()?))
    });
    let (Some((rows, depth)), Some(a), Some(right)) = (size, Element::from_name(a), Element::from_name(right)) else {
        return Err("this shape of these types is not simulated".to_owned());
    };
    let (depth, quarter) = (depth / a.packed(), 4 * a.in_register());
    // A has one to four registers per fragment, B at most two.
    if !(quarter..=2 * quarter).contains(&depth) || (rows == 8 && (depth > quarter || !a.is_integer())) {
        return Err("this shape of these types is not simulated".to_owned());
    }
    if a.is_fp8() && b.globals.target.is_some_and(|target| target < 90) {
        return Err("products of 8-bit floats are simulated only for `sm_90` and later".to_owned());
    }
    let (fraction, group) = rounding(b.globals.target, a);
    let what = Multiply { a, b: right, depth, exclusive, halves: d == "f16", saturates, fraction, group };
    // A result of eight rows is the upper half of a result of sixteen rows.
    let halves = rows / 8;
    let (count, ty) = match c {
        "f16" => (2, B32),
        "f32" => (4, F32),
        _ => (2 * halves, S32),
    };
    let quarters = depth / quarter;
    let registers = |at: usize, count: usize| elements(f.operand(at)?, count, "registers of a matrix");
    let left = pack(b, registers(1, halves * quarters)?, B32)?;
    let right = pack(b, registers(2, quarters)?, B32)?;
    let addend = pack(b, registers(3, count)?, ty)?;
    let result = Opnd::Reg(b.fresh(Class::Quad));
    b.emit(matrix::multiply, [result, left, right, addend], 1, what.to_imm(), 0);
    unpack(b, registers(0, count)?, ty, result)
}

/// Lowers an f64 product, for `mma` and for `wmma`.
pub fn multiply_doubles<'a>(b: &mut Builder<'a, '_>, f: &Form<'a, '_>) -> Done {
    let mut one = |at: usize| b.src(&elements(f.operand(at)?, 1, "registers of a matrix")?[0], F64);
    let (left, right) = (one(1)?, one(2)?);
    let addend = elements(f.operand(3)?, 2, "registers of a matrix")?;
    let halves = [b.src(&addend[0], F64)?, b.src(&addend[1], F64)?];
    let (addend, result) = (Opnd::Reg(b.fresh(Class::Quad)), Opnd::Reg(b.fresh(Class::Quad)));
    moves::join(b, addend, halves);
    b.uncount_last();
    b.emit(matrix::multiply_doubles, [result, left, right, addend], 1, 0, 0);
    for (which, target) in elements(f.operand(0)?, 2, "registers of a matrix")?.iter().enumerate() {
        let d = b.dst(target, F64)?;
        if d != Opnd::None {
            moves::half(b, d, result, which);
            b.uncount_last();
        }
    }
    Ok(())
}
