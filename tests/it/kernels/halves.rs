//! Half precision and bfloat16.

use half::{bf16, f16};

use super::lab::{Arg, Lab, ints, line};

const KERNELS: [&str; 6] =
    ["axpy_half", "axpy_relu_half2", "dot_bfloat", "compare_bfloat2", "atomic_halves", "convert_half"];

fn lab() -> Lab {
    Lab::new("halves.cu", &KERNELS)
}

/// Half-precision numbers from −8 to 8 in steps of 1/64.
fn halves(count: usize, seed: u64) -> Vec<f16> {
    ints(count, 1024, seed).into_iter().map(|v| f16::from_f32((v - 512) as f32 / 64.0)).collect()
}

fn bfloats(count: usize, seed: u64) -> Vec<bf16> {
    ints(count, 256, seed).into_iter().map(|v| bf16::from_f32((v - 128) as f32 / 8.0)).collect()
}

fn bits<T>(values: &[T], bits: impl Fn(&T) -> u16) -> Vec<u16> {
    values.iter().map(bits).collect()
}

#[test]
fn halves_are_fused_and_rounded_once() {
    let n = 500;
    let (x, y, a) = (halves(n, 1), halves(n, 2), f16::from_f32(1.375));
    let mut lab = lab();
    let (xs, ys) = (lab.buffer(&bits(&x, |v| v.to_bits())), lab.buffer(&bits(&y, |v| v.to_bits())));
    let factor = Arg::Bytes(a.to_bits().to_le_bytes().to_vec());
    lab.launch("axpy_half", line(4, 128), &[xs.into(), ys.into(), factor, (n as i32).into()]);
    // Products and sums of halves of this size are exact in single precision.
    let expected: Vec<u16> =
        x.iter().zip(&y).map(|(x, y)| f16::from_f32(a.to_f32().mul_add(x.to_f32(), y.to_f32())).to_bits()).collect();
    assert_eq!(lab.read::<u16>(ys), expected);
}

#[test]
fn pairs_of_halves_are_cut_at_zero() {
    let n = 300;
    let (x, y, a) = (halves(n, 3), halves(n, 4), [f16::from_f32(0.75), f16::from_f32(-2.5)]);
    let mut lab = lab();
    let (xs, ys) = (lab.buffer(&bits(&x, |v| v.to_bits())), lab.buffer(&bits(&y, |v| v.to_bits())));
    let factor = Arg::Bytes(a.iter().flat_map(|a| a.to_bits().to_le_bytes()).collect());
    lab.launch("axpy_relu_half2", line(2, 96), &[xs.into(), ys.into(), factor, (n as i32 / 2).into()]);
    let expected: Vec<u16> = (0..n)
        .map(|i| f16::from_f32(a[i % 2].to_f32().mul_add(x[i].to_f32(), y[i].to_f32()).max(0.0)).to_bits())
        .collect();
    assert_eq!(lab.read::<u16>(ys), expected);
}

#[test]
fn bfloats_are_multiplied_in_single_precision() {
    let n = 777;
    let (x, y) = (bfloats(n, 5), bfloats(n, 6));
    let mut lab = lab();
    let (xs, ys) = (lab.buffer(&bits(&x, |v| v.to_bits())), lab.buffer(&bits(&y, |v| v.to_bits())));
    let out = lab.fresh(4);
    lab.launch("dot_bfloat", line(1, 128), &[xs.into(), ys.into(), out.into(), (n as i32).into()]);
    // Multiples of 1/64 below 2²⁰, so every sum is exact.
    let expected: f32 = x.iter().zip(&y).map(|(x, y)| x.to_f32() * y.to_f32()).sum();
    assert_eq!(lab.read::<f32>(out), [expected]);
}

#[test]
fn pairs_of_bfloats_are_compared_and_multiplied() {
    let (x, y) = (bfloats(256, 7), bfloats(256, 8));
    let mut lab = lab();
    let (xs, ys) = (lab.buffer(&bits(&x, |v| v.to_bits())), lab.buffer(&bits(&y, |v| v.to_bits())));
    let [most, least, product] = [(); 3].map(|()| lab.fresh(512));
    let less = lab.buffer(&[0_i32]);
    lab.launch("compare_bfloat2", line(1, 128), &[xs, ys, most, least, product, less].map(Into::into));
    let pairs = || x.iter().zip(&y);
    let bits = |f: fn(f32, f32) -> f32| {
        pairs().map(|(x, y)| bf16::from_f32(f(x.to_f32(), y.to_f32())).to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(lab.read::<u16>(most), bits(f32::max));
    assert_eq!(lab.read::<u16>(least), bits(f32::min));
    assert_eq!(lab.read::<u16>(product), bits(|x, y| x * y));
    assert_eq!(lab.read::<i32>(less), [pairs().step_by(2).filter(|(x, y)| x < y).count() as i32]);
}

#[test]
fn atomics_add_halves_one_and_in_pairs() {
    let mut lab = lab();
    let (one, two, brain) = (lab.buffer(&[0_u16; 2]), lab.buffer(&[0_u16; 2]), lab.buffer(&[0_u16; 2]));
    lab.launch("atomic_halves", line(2, 96), &[one, two, brain].map(Into::into));
    assert_eq!(lab.read::<u16>(one)[0], f16::from_f32(192.0).to_bits());
    assert_eq!(lab.read::<u16>(two), [f16::from_f32(192.0).to_bits(), f16::from_f32(384.0).to_bits()]);
    assert_eq!(lab.read::<u16>(brain)[0], bf16::from_f32(128.0).to_bits());
}

#[test]
fn halves_become_integers_in_every_direction() {
    let values: Vec<f32> =
        (0..64).map(|i| (i as f32 - 32.0) * 0.25 + if i % 5 == 0 { 1000.125 } else { 0.0 }).collect();
    let mut lab = lab();
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * 256));
    lab.launch("convert_half", line(1, 64), &[input, out].map(Into::into));
    let expected: Vec<i32> = values
        .iter()
        .map(|v| f16::from_f32(*v).to_f32())
        .flat_map(|h| [h.round_ties_even(), h.trunc(), h.floor(), h.ceil()].map(|r| r as i32))
        .collect();
    assert_eq!(lab.read::<i32>(out), expected);
}
