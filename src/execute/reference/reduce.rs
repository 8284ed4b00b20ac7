//! Reductions: arrays to one number.

use std::ops::Range;

use rayon::prelude::*;

use super::super::operand::{Lanes, Number, Operand, PIECE, whole, wrapped};
use crate::model::{ElementType, RefFunction};

/// Elements that one task reduces; the tasks' results are combined in order.
const BLOCK: usize = 1 << 16;

/// Independent chains of additions: the processor adds them side by side.
const CHAINS: usize = 4;

/// Reduces one array, or two of one length for `dot`.
pub fn reduce(function: RefFunction, element: ElementType, arguments: &[Operand]) -> Result<Operand, String> {
    let len = arguments.first().and_then(Operand::len).unwrap_or(0);
    if len == 0 && matches!(function, RefFunction::Min | RefFunction::Max) {
        return Err(format!("{}() of no elements has no value", function.name()));
    }
    let value = if element.is_float() {
        Number::Float(floats(function, element, arguments, len)?)
    } else {
        let lane = integers(function, element, arguments, len);
        Number::Int(whole(Some(element), wrapped(element, lane)))
    };
    Ok(Operand::Scalar { element: Some(element), value })
}

fn blocks(len: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    (0..len.div_ceil(BLOCK)).into_par_iter().map(move |i| i * BLOCK..len.min((i + 1) * BLOCK))
}

fn pieces(block: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    block.clone().step_by(PIECE).map(move |start| start..block.end.min(start + PIECE))
}

/// Arithmetic modulo 2^64, of which the type's own is the low bits.
fn integers(function: RefFunction, element: ElementType, arguments: &[Operand], len: usize) -> i64 {
    let unsigned = element == ElementType::U64;
    let combine = move |a: i64, b: i64| match function {
        RefFunction::Min if unsigned => (a as u64).min(b as u64) as i64,
        RefFunction::Max if unsigned => (a as u64).max(b as u64) as i64,
        RefFunction::Min => a.min(b),
        RefFunction::Max => a.max(b),
        RefFunction::Product => a.wrapping_mul(b),
        RefFunction::And => a & b,
        RefFunction::Or => a | b,
        _ => a.wrapping_add(b),
    };
    let identity = match function {
        RefFunction::Min if unsigned => -1,
        RefFunction::Min => i64::MAX,
        RefFunction::Max if unsigned => 0,
        RefFunction::Max => i64::MIN,
        RefFunction::Product => 1,
        RefFunction::And => -1,
        _ => 0,
    };
    let of_block = |block: Range<usize>| {
        pieces(block).fold(identity, |total, piece| {
            let lanes: Vec<Lanes> = arguments.iter().map(|a| a.lanes(piece.clone())).collect();
            match (function, lanes.as_slice()) {
                (RefFunction::Dot, [Lanes::Int(x), Lanes::Int(y)]) => {
                    x.iter().zip(y).fold(total, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)))
                }
                (RefFunction::SumSquares, [Lanes::Int(x)]) => {
                    x.iter().fold(total, |sum, x| sum.wrapping_add(x.wrapping_mul(*x)))
                }
                (_, [Lanes::Int(x)]) => x.iter().fold(total, |total, x| combine(total, *x)),
                _ => total,
            }
        })
    };
    let partial: Vec<i64> = blocks(len).map(of_block).collect();
    partial.into_iter().fold(identity, combine)
}

fn floats(function: RefFunction, element: ElementType, arguments: &[Operand], len: usize) -> Result<f64, String> {
    match function {
        RefFunction::Sum | RefFunction::SumSquares | RefFunction::Dot => {
            Ok(compensated(function, element, arguments, len))
        }
        RefFunction::Product => Ok(folded(arguments, len, 1.0, |a, b| a * b)),
        RefFunction::Min => Ok(folded(arguments, len, f64::INFINITY, f64::minimum_or_nan)),
        RefFunction::Max => Ok(folded(arguments, len, f64::NEG_INFINITY, f64::maximum_or_nan)),
        _ => Err(format!("{}() works on integers, and the array is {element}", function.name())),
    }
}

fn folded(arguments: &[Operand], len: usize, identity: f64, combine: fn(f64, f64) -> f64) -> f64 {
    let of_block = |block: Range<usize>| {
        pieces(block).fold(identity, |total, piece| match arguments.first().map(|a| a.lanes(piece)) {
            Some(Lanes::Float(x)) => x.into_iter().fold(total, combine),
            _ => total,
        })
    };
    let partial: Vec<f64> = blocks(len).map(of_block).collect();
    partial.into_iter().fold(identity, combine)
}

/// Least and greatest that keep NaN: a part of the output that was never written must not vanish in a `max`.
trait OrNan {
    fn minimum_or_nan(self, other: Self) -> Self;
    fn maximum_or_nan(self, other: Self) -> Self;
}

impl OrNan for f64 {
    fn minimum_or_nan(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() { Self::NAN } else { self.min(other) }
    }

    fn maximum_or_nan(self, other: Self) -> Self {
        if self.is_nan() || other.is_nan() { Self::NAN } else { self.max(other) }
    }
}

/// A sum and what its roundings lost (Neumaier 1974).
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let total = self.sum + value;
        let (large, small) = if self.sum.abs() >= value.abs() { (self.sum, value) } else { (value, self.sum) };
        self.lost += (large - total) + small;
        self.sum = total;
    }

    fn join(mut self, other: Self) -> Self {
        self.add(other.sum);
        self.lost += other.lost;
        self
    }

    /// An infinite or NaN sum lost nothing that could be told.
    fn value(self) -> f64 {
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

fn compensated(function: RefFunction, element: ElementType, arguments: &[Operand], len: usize) -> f64 {
    // The product of two narrower floats is exact in f64; that of two f64 leaves a remainder, which is added too.
    let exact = element != ElementType::F64;
    let of_block = |block: Range<usize>| {
        let mut chains = [Sum::default(); CHAINS];
        for piece in pieces(block) {
            let lanes: Vec<Lanes> = arguments.iter().map(|a| a.lanes(piece.clone())).collect();
            match (function, lanes.as_slice()) {
                (RefFunction::Sum, [Lanes::Float(x)]) => add_all(&mut chains, x),
                (RefFunction::SumSquares, [Lanes::Float(x)]) => add_products(&mut chains, x, x, exact),
                (RefFunction::Dot, [Lanes::Float(x), Lanes::Float(y)]) => add_products(&mut chains, x, y, exact),
                _ => {}
            }
        }
        chains.into_iter().fold(Sum::default(), Sum::join)
    };
    let partial: Vec<Sum> = blocks(len).map(of_block).collect();
    partial.into_iter().fold(Sum::default(), Sum::join).value()
}

fn add_all(chains: &mut [Sum; CHAINS], values: &[f64]) {
    for row in values.chunks(CHAINS) {
        chains.iter_mut().zip(row).for_each(|(chain, value)| chain.add(*value));
    }
}

fn add_products(chains: &mut [Sum; CHAINS], x: &[f64], y: &[f64], exact: bool) {
    for (x, y) in x.chunks(CHAINS).zip(y.chunks(CHAINS)) {
        for (chain, (x, y)) in chains.iter_mut().zip(x.iter().zip(y)) {
            let product = x * y;
            chain.add(product);
            if !exact {
                chain.lost += x.mul_add(*y, -product);
            }
        }
    }
}
