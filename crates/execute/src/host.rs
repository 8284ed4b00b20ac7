//! Timed reference functions: sequential host loops to compare a GPU with.
//!
//! Each is a plain loop over elements of the type on one thread, compiled like any Rust code. Integers add in their own
//! type; floats are summed in f64, as in all references. Unpacking the inputs and allocating the output are not timed.
//! A constant or a bare buffer is rejected, because it involves no work.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::operand::{Number, Operand, PIECE};
use super::parallel;
use super::reference::{BLOCK, gelu, gelu_tanh, normal_of};
use super::stop::Stop;
use super::typed::{Float, Integer, Typed, by_type};
use runner_types::{ElementType, Map, Reduction, RefFunction, RefKind};

/// A host function, ready to run.
pub trait HostBody: Send {
    /// Runs it once; returns the duration.
    fn run(&mut self) -> Duration;

    /// Result of the last run.
    fn result(&self) -> Operand;
}

/// Prepares a function. `value` is its expected result, which determines type and length.
pub fn prepare(
    function: RefFunction,
    arguments: &[Operand],
    integers: &[i64],
    value: &Operand,
) -> Result<Box<dyn HostBody>, Stop> {
    let Some(element) = arguments.first().and_then(Operand::element) else {
        return Err(Stop::unresolved("a cpu variant times a function of buffers, such as sum(x)"));
    };
    // The reference was computed with these integers, so they are valid sizes.
    let sizes = integers.iter().map(|n| *n as usize).collect();
    let len = value.len().unwrap_or(0);
    let kind = function.kind();
    Ok(by_type!(
        element,
        integer T => {
            let inputs = arguments.iter().map(unpack_integers::<T>).collect();
            match kind {
                RefKind::Reduction(reduction) => {
                    let run = integer_reduction::<T>(reduction);
                    Box::new(TimedReduction { inputs, element, run, value: T::from_lane(0), number: number::<T> })
                }
                RefKind::Map(map) => {
                    Box::new(TimedMap::<T> { inputs, element, sizes, run: integer_map(map), out: zeros(len) })
                }
            }
        },
        float T => {
            let inputs = arguments.iter().map(unpack_floats::<T>).collect();
            match kind {
                RefKind::Reduction(reduction) => {
                    let run = float_reduction::<T>(reduction)
                        .ok_or_else(|| Stop::unresolved(format!("{}() works on integers", function.name())))?;
                    Box::new(TimedReduction { inputs, element, run, value: 0.0, number: Number::Float })
                }
                RefKind::Map(map) => {
                    Box::new(TimedMap::<T> { inputs, element, sizes, run: float_map(map), out: zeros(len) })
                }
            }
        },
    ))
}

fn zeros<T: Typed>(len: usize) -> Vec<T> {
    vec![T::load(&[0; 8][..T::SIZE]); len]
}

fn number<T: Integer>(value: T) -> Number {
    Number::Int(if T::MIN == 0 { i128::from(value.lane() as u64) } else { i128::from(value.lane()) })
}

fn unpack_integers<T: Integer>(operand: &Operand) -> Vec<T> {
    unpack(operand, Operand::read_integers, T::from_lane)
}

fn unpack_floats<T: Float>(operand: &Operand) -> Vec<T> {
    unpack(operand, Operand::read_floats, T::nearest)
}

/// Unpacks all elements on all cores: each is read as a lane and narrowed to its type.
fn unpack<T: Typed, L: Copy + Default>(
    operand: &Operand,
    read: fn(&Operand, usize, &mut [L]),
    narrow: impl Fn(L) -> T + Sync,
) -> Vec<T> {
    let mut out = zeros(operand.len().unwrap_or(0));
    parallel::chunks(&mut out, BLOCK, &|number, block| {
        let mut lanes = [L::default(); PIECE];
        for (piece, out) in block.chunks_mut(PIECE).enumerate() {
            let lanes = &mut lanes[..out.len()];
            read(operand, number * BLOCK + piece * PIECE, lanes);
            out.iter_mut().zip(lanes).for_each(|(element, lane)| *element = narrow(*lane));
        }
    });
    out
}

/// Times a reduction of arrays to one number.
struct TimedReduction<T, A> {
    inputs: Vec<Vec<T>>,
    element: ElementType,
    run: Reduce<T, A>,
    value: A,
    number: fn(A) -> Number,
}

impl<T: Typed, A: Copy + Send> HostBody for TimedReduction<T, A> {
    fn run(&mut self) -> Duration {
        let start = Instant::now();
        self.value = black_box((self.run)(black_box(&self.inputs)));
        start.elapsed()
    }

    fn result(&self) -> Operand {
        Operand::Scalar { element: Some(self.element), value: (self.number)(self.value) }
    }
}

/// Times a function from arrays to an array.
struct TimedMap<T> {
    inputs: Vec<Vec<T>>,
    element: ElementType,
    sizes: Vec<usize>,
    run: Fill<T>,
    out: Vec<T>,
}

impl<T: Typed> HostBody for TimedMap<T> {
    fn run(&mut self) -> Duration {
        let start = Instant::now();
        (self.run)(black_box(&self.inputs), &self.sizes, black_box(&mut self.out));
        start.elapsed()
    }

    fn result(&self) -> Operand {
        let mut bytes = vec![0; self.out.len() * T::SIZE];
        for (place, value) in bytes.chunks_exact_mut(T::SIZE).zip(&self.out) {
            value.store(place);
        }
        Operand::Bytes { element: self.element, bytes: Arc::new(bytes) }
    }
}

#[inline]
fn add<T: Integer>(a: T, b: T) -> T {
    T::from_lane(a.lane().wrapping_add(b.lane()))
}

#[inline]
fn multiply<T: Integer>(a: T, b: T) -> T {
    T::from_lane(a.lane().wrapping_mul(b.lane()))
}

/// A loop that reduces the inputs to a number.
type Reduce<T, A> = fn(&[Vec<T>]) -> A;

/// A loop that fills the output from the inputs and the sizes.
type Fill<T> = fn(&[Vec<T>], &[usize], &mut [T]);

fn integer_reduction<T: Integer>(reduction: Reduction) -> Reduce<T, T> {
    match reduction {
        Reduction::Sum => |x| x[0].iter().fold(T::from_lane(0), |sum, x| add(sum, *x)),
        Reduction::Product => |x| x[0].iter().fold(T::from_lane(1), |product, x| multiply(product, *x)),
        Reduction::SumSquares => |x| x[0].iter().fold(T::from_lane(0), |sum, x| add(sum, multiply(*x, *x))),
        Reduction::Dot => |x| x[0].iter().zip(&x[1]).fold(T::from_lane(0), |sum, (x, y)| add(sum, multiply(*x, *y))),
        Reduction::Min => |x| x[0].iter().copied().fold(T::from_lane(T::MAX as i64), T::min),
        Reduction::Max => |x| x[0].iter().copied().fold(T::from_lane(T::MIN as i64), T::max),
        Reduction::And => |x| x[0].iter().fold(T::from_lane(-1), |bits, x| T::from_lane(bits.lane() & x.lane())),
        Reduction::Or => |x| x[0].iter().fold(T::from_lane(0), |bits, x| T::from_lane(bits.lane() | x.lane())),
    }
}

/// Loop of a reduction; `None` for bitwise functions, which floats do not have.
fn float_reduction<T: Float>(reduction: Reduction) -> Option<Reduce<T, f64>> {
    Some(match reduction {
        Reduction::Sum => |x| x[0].iter().fold(0.0, |sum, x| sum + x.wide()),
        Reduction::Product => |x| x[0].iter().fold(1.0, |product, x| product * x.wide()),
        Reduction::SumSquares => |x| x[0].iter().fold(0.0, |sum, x| sum + x.wide() * x.wide()),
        Reduction::Dot => |x| x[0].iter().zip(&x[1]).fold(0.0, |sum, (x, y)| sum + x.wide() * y.wide()),
        Reduction::Min => {
            |x| x[0].iter().fold(f64::INFINITY, |least, x| if x.wide() < least { x.wide() } else { least })
        }
        Reduction::Max => {
            |x| x[0].iter().fold(f64::NEG_INFINITY, |most, x| if x.wide() > most { x.wide() } else { most })
        }
        Reduction::And | Reduction::Or => return None,
    })
}

fn integer_map<T: Integer>(map: Map) -> Fill<T> {
    match map {
        Map::Add => |x, _, out| element_by_element(x, out, add),
        Map::Matmul => |x, sizes, out| {
            rows_by_columns(x, sizes, out, T::from_lane(0), |sum, x, y| add(sum, multiply(x, y)), |sum| sum);
        },
        Map::Transpose => transpose,
        Map::Copy => |x, _, out| out.copy_from_slice(&x[0]),
        Map::Sort => |x, _, out| {
            out.copy_from_slice(&x[0]);
            out.sort_unstable();
        },
        Map::Scan => |x, _, out| {
            let mut sum = T::from_lane(0);
            for (out, x) in out.iter_mut().zip(&x[0]) {
                sum = add(sum, *x);
                *out = sum;
            }
        },
        Map::Histogram => |x, _, out| {
            out.fill(T::from_lane(0));
            for x in &x[0] {
                if let Some(count) = usize::try_from(x.lane()).ok().and_then(|bin| out.get_mut(bin)) {
                    *count = add(*count, T::from_lane(1));
                }
            }
        },
        Map::Convolution => {
            |x, sizes, out| convolution(x, sizes, out, T::from_lane(0), |sum, x, y| add(sum, multiply(x, y)), |sum| sum)
        }
        Map::Slice => slice,
        // The reference has rejected integers.
        Map::Softmax | Map::Exp | Map::Gelu | Map::GeluTanh | Map::LayerNorm => |_, _, _| {},
    }
}

fn float_map<T: Float>(map: Map) -> Fill<T> {
    match map {
        Map::Add => |x, _, out| element_by_element(x, out, |x, y| T::nearest(x.wide() + y.wide())),
        Map::Matmul => |x, sizes, out| {
            rows_by_columns(x, sizes, out, 0.0, |sum, x: T, y: T| sum + x.wide() * y.wide(), T::nearest);
        },
        Map::Transpose => transpose,
        Map::Copy => |x, _, out| out.copy_from_slice(&x[0]),
        Map::Sort => |x, _, out| {
            out.copy_from_slice(&x[0]);
            out.sort_unstable_by(|a, b| a.wide().total_cmp(&b.wide()));
        },
        Map::Scan => |x, _, out| {
            let mut sum = 0.0;
            for (out, x) in out.iter_mut().zip(&x[0]) {
                sum += x.wide();
                *out = T::nearest(sum);
            }
        },
        Map::Softmax => |x, sizes, out| {
            let columns = sizes[0].max(1);
            for (out, row) in out.chunks_mut(columns).zip(x[0].chunks(columns)) {
                let most = row.iter().fold(f64::NEG_INFINITY, |most, x| most.max(x.wide()));
                let sum: f64 = row.iter().map(|x| libm::exp(x.wide() - most)).sum();
                out.iter_mut().zip(row).for_each(|(out, x)| *out = T::nearest(libm::exp(x.wide() - most) / sum));
            }
        },
        Map::Exp => |x, _, out| each(x, out, libm::exp),
        Map::Gelu => |x, _, out| each(x, out, gelu),
        Map::GeluTanh => |x, _, out| each(x, out, gelu_tanh),
        Map::LayerNorm => |x, sizes, out| {
            let columns = sizes[0].max(1);
            for (out, row) in out.chunks_mut(columns).zip(x[0].chunks(columns)) {
                let (mean, scale) = normal_of(row.iter().map(|x| x.wide()));
                for (((out, x), weight), bias) in out.iter_mut().zip(row).zip(&x[1]).zip(&x[2]) {
                    *out = T::nearest((x.wide() - mean) * scale * weight.wide() + bias.wide());
                }
            }
        },
        Map::Convolution => {
            |x, sizes, out| convolution(x, sizes, out, 0.0, |sum, x: T, y: T| sum + x.wide() * y.wide(), T::nearest)
        }
        Map::Slice => slice,
        // The reference has rejected floats.
        Map::Histogram => |_, _, _| {},
    }
}

fn each<T: Float>(x: &[Vec<T>], out: &mut [T], function: fn(f64) -> f64) {
    out.iter_mut().zip(&x[0]).for_each(|(out, x)| *out = T::nearest(function(x.wide())));
}

fn slice<T: Copy>(x: &[Vec<T>], sizes: &[usize], out: &mut [T]) {
    out.copy_from_slice(&x[0][sizes[0]..sizes[1]]);
}

/// Convolves: every element is the sum of its neighbourhood times the filter; outside, the image is 0.
fn convolution<T: Copy, A: Copy>(
    x: &[Vec<T>],
    sizes: &[usize],
    out: &mut [T],
    zero: A,
    step: impl Fn(A, T, T) -> A,
    finish: impl Fn(A) -> T,
) {
    let (rows, columns, down, across) = (sizes[0], sizes[1], sizes[2], sizes[3]);
    for (place, out) in out.iter_mut().enumerate() {
        let mut sum = zero;
        for i in 0..down {
            let Some(row) = (place / columns + i).checked_sub(down / 2).filter(|row| *row < rows) else { continue };
            for j in 0..across {
                let column = (place % columns + j).checked_sub(across / 2).filter(|column| *column < columns);
                if let Some(column) = column {
                    sum = step(sum, x[0][row * columns + column], x[1][i * across + j]);
                }
            }
        }
        *out = finish(sum);
    }
}

fn element_by_element<T: Copy>(x: &[Vec<T>], out: &mut [T], join: impl Fn(T, T) -> T) {
    for ((out, x), y) in out.iter_mut().zip(&x[0]).zip(&x[1]) {
        *out = join(*x, *y);
    }
}

/// Multiplies matrices by definition: each element is a row times a column.
fn rows_by_columns<T: Copy, A: Copy>(
    x: &[Vec<T>],
    sizes: &[usize],
    out: &mut [T],
    zero: A,
    step: impl Fn(A, T, T) -> A,
    finish: impl Fn(A) -> T,
) {
    let (n, k) = (sizes[1], sizes[2]);
    for (place, out) in out.iter_mut().enumerate() {
        let (row, column) = (place / n, place % n);
        let products = x[0][row * k..(row + 1) * k].iter().enumerate();
        *out = finish(products.fold(zero, |sum, (i, x0)| step(sum, *x0, x[1][i * n + column])));
    }
}

fn transpose<T: Copy>(x: &[Vec<T>], sizes: &[usize], out: &mut [T]) {
    let (rows, columns) = (sizes[0], sizes[1]);
    for (place, out) in out.iter_mut().enumerate() {
        *out = x[0][(place % rows) * columns + place / rows];
    }
}
