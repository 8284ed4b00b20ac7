//! Carry chains and predicate logic: instructions that read or write one bit per lane.

use crate::exec::context::Context;
use crate::exec::control::go_on;
use crate::program::aux::{Carry, Negations};
use crate::program::ins::{Ins, Slot};
use crate::program::row::{LANES, Row};

/// Carry-chain operations, in the low bits of `aux`.
pub const ADD: u32 = 0;
pub const SUB: u32 = 1;
pub const MAD_LOW: u32 = 2;
pub const MAD_HIGH: u32 = 3;

/// Computes `a op b (op c) ± carry` in double width. Returns the value and the carry.
#[inline(always)]
fn chain(operation: u32, flags: Carry, width: u32, a: u128, b: u128, c: u128, carry: u128) -> (u128, bool) {
    let ones = (1_u128 << width) - 1;
    let signed = |x: u128| ((x << (128 - width)) as i128 >> (128 - width)) as u128;
    let (a_full, b_full) = if flags.contains(Carry::SIGNED) { (signed(a), signed(b)) } else { (a, b) };
    let taken = |flag| if flags.contains(Carry::TAKES) { flag } else { 0 };
    match operation {
        // For a subtraction, carry means "no borrow": the hardware adds the complement plus one.
        SUB => {
            let borrowed = taken(1 - carry);
            (a.wrapping_sub(b).wrapping_sub(borrowed) & ones, a >= b + borrowed)
        }
        operation => {
            let carry = taken(carry);
            let sum = match operation {
                ADD => a + b + carry,
                MAD_LOW => (a_full.wrapping_mul(b_full) & ones) + c + carry,
                _ => (a_full.wrapping_mul(b_full) >> width & ones) + c + carry,
            };
            (sum & ones, sum >> width != 0)
        }
    }
}

macro_rules! chain_handler {
    ($(#[$doc:meta])* $name:ident, $t:ty, $width:literal) => {
        $(#[$doc])*
        pub unsafe fn $name(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
            // SAFETY: the loader assigned rows of this width.
            unsafe {
                let (a, b): (Row<$t>, Row<$t>) = (cx.row(i.o[1]), cx.row(i.o[2]));
                let c: Row<$t> = if i.o[3] == Slot::NONE { a } else { cx.row(i.o[3]) };
                let mask = cx.mask;
                for k in (0..LANES).filter(|&k| mask >> k & 1 == 1) {
                    let carry = u128::from(cx.warp.carry >> k & 1);
                    let wide = |x: $t| u128::from(x);
                    let (x, y, z) = (wide(a.0[k]), wide(b.0[k]), wide(c.0[k]));
                    let (value, out) = chain(i.aux & 3, Carry::from_bits_retain(i.aux), $width, x, y, z, carry);
                    if i.o[0] != Slot::NONE {
                        cx.set_lane(i.o[0], k, value as $t);
                    }
                    if i.has(Carry::SETS) {
                        cx.warp.carry = (cx.warp.carry & !(1 << k)) | u32::from(out) << k;
                    }
                }
            }
            Context::next(i)
        }
    };
}
chain_handler!(/// `add.cc`, `subc`, `madc` and the like on 32 bits.
    narrow, u32, 32);
chain_handler!(/// 64-bit version of the above.
    wide, u64, 64);

/// Predicate operations, in the low bits of `aux`.
pub const PRED_AND: u32 = 0;
pub const PRED_OR: u32 = 1;
pub const PRED_XOR: u32 = 2;
pub const PRED_NOT: u32 = 3;

/// Predicate logic: slot 0 = slot 1 op slot 2.
pub unsafe fn predicates(cx: &mut Context<'_>, i: &Ins) -> *const Ins {
    // SAFETY: all three are predicates; the loader marks whether a branch follows.
    unsafe {
        let flip = |negation: Negations| if i.has(negation) { u32::MAX } else { 0 };
        let (a, b) = (cx.pred(i.o[1]) ^ flip(Negations::FIRST), cx.pred(i.o[2]) ^ flip(Negations::SECOND));
        let bits = match i.aux & 3 {
            PRED_AND => a & b,
            PRED_OR => a | b,
            PRED_XOR => a ^ b,
            _ => !a,
        };
        cx.set_pred(i.o[0], bits);
        go_on(cx, i)
    }
}
