//! Compares integer operations with wide arithmetic: PTX text in, lanes out, expectation in 128 bits.

use proptest::prelude::*;

use crate::vectors_on_simulator::run_on;
use ptx_conformance::{CASES, Form};

/// An operation for several types. In its text and operand classes, `T` stands for each of them.
struct Operation {
    text: &'static str,
    classes: &'static str,
    types: &'static [&'static str],
    /// Expected result for sign-extended sources, given the width of the type.
    expected: fn(&[i128], u32) -> i128,
}

const ALL: &[&str] = &["u16", "s16", "u32", "s32", "u64", "s64"];
const BITS: &[&str] = &["b32", "b64"];

/// Returns the upper half of the product of two `width`-bit numbers, rounded down. Needs no more than 128 bits.
fn high(a: i128, b: i128, width: u32) -> i128 {
    let half = width / 2;
    let (a1, a0, b1, b0) = (a >> half, a & ((1 << half) - 1), b >> half, b & ((1 << half) - 1));
    a1 * b1 + ((a1 * b0 + a0 * b1 + ((a0 * b0) >> half)) >> half)
}

/// Returns bit `at` of a number, or its sign beyond its width.
fn bit(x: i128, at: i128) -> i128 {
    x >> at.clamp(0, 127) & 1
}

/// Returns the part of a position or length that is used: the low eight bits, or for 64-bit fields all of it.
fn extent(x: i128, width: u32) -> i128 {
    if width == 64 { x } else { x & 0xff }
}

/// Extracts a bit field. If `signed`, the result is sign-extended, and bits beyond the number's width repeat its sign.
fn field(x: &[i128], width: u32, signed: bool) -> i128 {
    let (position, length) = (extent(x[1], width), extent(x[2], width));
    let last = i128::from(width) - 1;
    let sign = if signed && length > 0 { bit(x[0], (position + length - 1).min(last)) } else { 0 };
    (0..=last).fold(0, |d, i| {
        let inside = i < length && position + i <= last;
        d | (if inside { bit(x[0], position + i) } else { sign }) << i
    })
}

fn insert(x: &[i128], width: u32) -> i128 {
    let (position, length) = (extent(x[2], width), extent(x[3], width));
    (0..i128::from(width)).fold(0, |d, i| {
        let inside = i >= position && i < position + length;
        d | (if inside { bit(x[0], i - position) } else { bit(x[1], i) }) << i
    })
}

/// Returns the position of the highest bit that differs from the sign, or all ones.
fn highest(x: i128) -> i128 {
    (0..64).rev().find(|&at| bit(x, at) != bit(x, 127)).unwrap_or(-1)
}

fn shifted(x: &[i128], width: u32) -> i128 {
    if x[1] >= i128::from(width) { 0 } else { x[0] << x[1] }
}

fn permuted(x: &[i128]) -> i128 {
    let byte = |k: i128| if k < 4 { x[0] >> (8 * k) & 0xff } else { x[1] >> (8 * (k - 4)) & 0xff };
    (0..4).fold(0, |d, k| {
        let pick = x[2] >> (4 * k) & 0xf;
        let value = byte(pick & 7);
        d | (if pick & 8 == 0 { value } else { (value >> 7) * 0xff }) << (8 * k)
    })
}

fn dot(x: &[i128], signs: [bool; 2]) -> i128 {
    let byte = |v: i128, k: u32, signed: bool| {
        let value = v >> (8 * k) & 0xff;
        if signed && value > 127 { value - 256 } else { value }
    };
    (0..4).fold(x[2], |sum, k| sum + byte(x[0], k, signs[0]) * byte(x[1], k, signs[1]))
}

const OPERATIONS: &[Operation] = &[
    Operation { text: "add.T", classes: "T T T", types: ALL, expected: |x, _| x[0] + x[1] },
    Operation { text: "sub.T", classes: "T T T", types: ALL, expected: |x, _| x[0] - x[1] },
    Operation { text: "mul.lo.T", classes: "T T T", types: ALL, expected: |x, _| x[0].wrapping_mul(x[1]) },
    Operation { text: "mul.hi.T", classes: "T T T", types: ALL, expected: |x, w| high(x[0], x[1], w) },
    Operation { text: "mul.wide.u16", classes: "u32 u16 u16", types: &["u16"], expected: |x, _| x[0] * x[1] },
    Operation { text: "mul.wide.s16", classes: "s32 s16 s16", types: &["s16"], expected: |x, _| x[0] * x[1] },
    Operation { text: "mul.wide.u32", classes: "u64 u32 u32", types: &["u32"], expected: |x, _| x[0] * x[1] },
    Operation { text: "mul.wide.s32", classes: "s64 s32 s32", types: &["s32"], expected: |x, _| x[0] * x[1] },
    Operation {
        text: "mad.lo.T",
        classes: "T T T T",
        types: ALL,
        expected: |x, _| x[0].wrapping_mul(x[1]).wrapping_add(x[2]),
    },
    Operation { text: "mad.hi.T", classes: "T T T T", types: ALL, expected: |x, w| high(x[0], x[1], w) + x[2] },
    Operation {
        text: "mad.wide.s32",
        classes: "s64 s32 s32 s64",
        types: &["s32"],
        expected: |x, _| x[0] * x[1] + x[2],
    },
    Operation {
        text: "mad.hi.sat.s32",
        classes: "s32 s32 s32 s32",
        types: &["s32"],
        expected: |x, _| (((x[0] * x[1]) >> 32) + x[2]).clamp(i32::MIN.into(), i32::MAX.into()),
    },
    Operation {
        text: "add.sat.s32",
        classes: "s32 s32 s32",
        types: &["s32"],
        expected: |x, _| (x[0] + x[1]).clamp(i32::MIN.into(), i32::MAX.into()),
    },
    // Dividing by zero has neither a quotient nor a remainder; the GPU returns all ones for both.
    Operation { text: "div.T", classes: "T T T", types: ALL, expected: |x, _| x[0].checked_div(x[1]).unwrap_or(-1) },
    Operation { text: "rem.T", classes: "T T T", types: ALL, expected: |x, _| x[0].checked_rem(x[1]).unwrap_or(-1) },
    Operation { text: "min.T", classes: "T T T", types: ALL, expected: |x, _| x[0].min(x[1]) },
    Operation { text: "max.T", classes: "T T T", types: ALL, expected: |x, _| x[0].max(x[1]) },
    Operation { text: "abs.T", classes: "T T", types: &["s16", "s32", "s64"], expected: |x, _| x[0].abs() },
    Operation { text: "neg.T", classes: "T T", types: &["s16", "s32", "s64"], expected: |x, _| -x[0] },
    Operation { text: "sad.T", classes: "T T T T", types: ALL, expected: |x, _| (x[0] - x[1]).abs() + x[2] },
    Operation { text: "shl.T", classes: "T T amount", types: &["b16", "b32", "b64"], expected: shifted },
    Operation { text: "shr.T", classes: "T T amount", types: ALL, expected: |x, _| x[0] >> x[1].min(127) },
    Operation {
        text: "shf.l.wrap.b32",
        classes: "b32 b32 b32 amount",
        types: &["b32"],
        expected: |x, _| (x[1] << 32 | x[0]) << (x[2] & 31) >> 32,
    },
    Operation {
        text: "shf.l.clamp.b32",
        classes: "b32 b32 b32 amount",
        types: &["b32"],
        expected: |x, _| (x[1] << 32 | x[0]) << x[2].min(32) >> 32,
    },
    Operation {
        text: "shf.r.wrap.b32",
        classes: "b32 b32 b32 amount",
        types: &["b32"],
        expected: |x, _| (x[1] << 32 | x[0]) >> (x[2] & 31),
    },
    Operation {
        text: "shf.r.clamp.b32",
        classes: "b32 b32 b32 amount",
        types: &["b32"],
        expected: |x, _| (x[1] << 32 | x[0]) >> x[2].min(32),
    },
    Operation {
        text: "bfe.T",
        classes: "T T amount amount",
        types: &["u32", "u64"],
        expected: |x, w| field(x, w, false),
    },
    Operation {
        text: "bfe.T",
        classes: "T T amount amount",
        types: &["s32", "s64"],
        expected: |x, w| field(x, w, true),
    },
    Operation { text: "bfi.T", classes: "T T T amount amount", types: BITS, expected: insert },
    Operation {
        text: "bfind.T",
        classes: "u32 T",
        types: &["u32", "s32", "u64", "s64"],
        expected: |x, _| highest(x[0]),
    },
    Operation {
        text: "bfind.shiftamt.T",
        classes: "u32 T",
        types: &["u32", "s32", "u64", "s64"],
        expected: |x, w| if highest(x[0]) < 0 { -1 } else { i128::from(w) - 1 - highest(x[0]) },
    },
    Operation { text: "clz.T", classes: "u32 T", types: BITS, expected: |x, w| i128::from(w) - 1 - highest(x[0]) },
    Operation { text: "popc.T", classes: "u32 T", types: BITS, expected: |x, _| (0..64).map(|at| bit(x[0], at)).sum() },
    Operation {
        text: "brev.T",
        classes: "T T",
        types: BITS,
        expected: |x, w| (0..i128::from(w)).fold(0, |d, at| d | bit(x[0], at) << (i128::from(w) - 1 - at)),
    },
    Operation { text: "prmt.b32", classes: "b32 b32 b32 b32", types: &["b32"], expected: |x, _| permuted(x) },
    Operation {
        text: "lop3.b32 d, a, b, c, 0xca;",
        classes: "b32 b32 b32 b32",
        types: &["b32"],
        expected: |x, _| (x[0] & x[1]) | (!x[0] & x[2]),
    },
    Operation {
        text: "lop3.b32 d, a, b, c, 0x96;",
        classes: "b32 b32 b32 b32",
        types: &["b32"],
        expected: |x, _| x[0] ^ x[1] ^ x[2],
    },
    Operation { text: "dp4a.s32.s32", classes: "s32 b32 b32 s32", types: &["b32"], expected: |x, _| dot(x, [true; 2]) },
    Operation {
        text: "dp4a.u32.s32",
        classes: "s32 b32 b32 s32",
        types: &["b32"],
        expected: |x, _| dot(x, [false, true]),
    },
    Operation {
        text: "add.cc.u64 w, a, b; addc.u64 d, c, e;",
        classes: "u64 u64 u64 u64 u64",
        types: &["u64"],
        expected: |x, _| x[2] + x[3] + ((x[0] + x[1]) >> 64),
    },
    Operation {
        text: "sub.cc.u32 t, a, b; subc.u32 d, c, e;",
        classes: "u32 u32 u32 u32 u32",
        types: &["u32"],
        expected: |x, _| x[2] - x[3] - i128::from(x[0] < x[1]),
    },
    Operation {
        text: "mad.lo.cc.u32 t, a, b, c; madc.hi.u32 d, a, b, e;",
        classes: "u32 u32 u32 u32 u32",
        types: &["u32"],
        expected: |x, _| (x[0] * x[1] + x[2] + (x[3] << 32)) >> 32,
    },
];

/// Sign-extends a number of the given class.
fn extended(class: &str, bits: u64) -> i128 {
    match class {
        "s16" => i128::from(bits as i16),
        "s32" => i128::from(bits as i32),
        "s64" => i128::from(bits as i64),
        "u16" | "b16" => i128::from(bits as u16),
        "u64" | "b64" => i128::from(bits),
        _ => i128::from(bits as u32),
    }
}

/// Generates random numbers, the extremes of every width, and shift amounts both small and far too large.
fn number() -> impl Strategy<Value = u64> {
    let ends = [0, 1, 15, 16, 31, 32, 33, 63, 64, 255, 256, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, u64::MAX];
    prop_oneof![
        any::<u64>(),
        0..70_u64,
        proptest::sample::select(ends.to_vec()),
        Just(i64::MIN as u64),
        Just(i64::MAX as u64)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn integer_operations_are_those_of_wide_arithmetic(
        lanes in proptest::collection::vec(proptest::array::uniform4(number()), CASES)
    ) {
        for operation in OPERATIONS {
            for ty in operation.types {
                let line = format!("{} | {}", operation.text, operation.classes).replace('T', ty);
                let form = Form::parse(ty, &line);
                let classes: Vec<&str> = line.rsplit('|').next().unwrap().split_whitespace().collect();
                let sources = classes.len() - 1;
                let width: u32 = ty[1..].parse().unwrap();
                let inputs: Vec<Vec<u64>> = lanes.iter().map(|lane| lane[..sources].to_vec()).collect();
                let results = run_on(&form, &inputs).unwrap();
                for (lane, got) in inputs.iter().zip(results) {
                    let values = lane.iter().zip(&classes[1..]).map(|(&v, class)| extended(class, v));
                    let values: Vec<i128> = values.collect();
                    let expected = (operation.expected)(&values, width);
                    let (got, expected) = (extended(classes[0], got), extended(classes[0], expected as u64));
                    prop_assert_eq!(got, expected, "{} of {:?}", &line, values);
                }
            }
        }
    }
}
