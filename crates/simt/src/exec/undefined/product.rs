//! Which elements of a matrix product are undefined.

use crate::exec::context::Context;
use crate::exec::matrix::Multiply;
use crate::exec::undefined::shadow::Info;
use crate::exec::undefined::state::Shadow;
use crate::program::Width;
use crate::program::ins::Ins;
use crate::program::row::LANES;

/// Sets the undefined elements of the result: the rows in which A has undefined elements, the columns in which B has,
/// and the undefined elements of the addend. The PTX ISA defines the layouts of fragments in "Matrix Fragments for
/// mma".
pub fn product(shadow: &mut Shadow, cx: &Context<'_>, i: &Ins, info: &Info) {
    let operand = |k: usize| (i.o[k], info.widths[k]);
    let (mut rows, mut columns) = (0_u32, 0_u32);
    let of_doubles = info.widths[1] == Width::Wide && info.widths[2] == Width::Wide;
    for lane in 0..LANES {
        let a = shadow.get(cx, operand(1), lane);
        for register in 0..4 {
            // Odd registers hold rows 8 to 15.
            let row = lane / 4 + if of_doubles { 0 } else { 8 * (register % 2) };
            rows |= u32::from((a >> (32 * register)) as u32 != 0) << row;
        }
        columns |= u32::from(shadow.get(cx, operand(2), lane) != 0) << (lane / 4);
    }
    let halves = !of_doubles && Multiply::from_imm(i.imm).halves;
    // A lane's elements: mask, index, row, and whether it is in the second column.
    let (bits, count) = if of_doubles {
        (64, 2)
    } else if halves {
        (16, 4)
    } else {
        (32, 4)
    };
    let any = [1, 2, 3].into_iter().find(|&k| shadow.lanes(cx, operand(k)) != 0);
    for lane in 0..LANES {
        let mut out = shadow.get(cx, operand(3), lane);
        for element in 0..count {
            let (row, column) = (lane / 4 + 8 * (element / 2), 2 * (lane % 4) + element % 2);
            if rows >> row & 1 == 1 || columns >> column & 1 == 1 {
                out |= ((1 << bits) - 1) << (bits * element);
            }
        }
        shadow.set(cx, operand(0), lane, out);
    }
    if let Some(k) = any {
        shadow.pass(cx, i.o[k], i.o[0], false);
    }
}
