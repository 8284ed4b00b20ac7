//! Reference functions on row-major matrices: product and transpose.

use std::sync::Arc;

use super::super::operand::{Lanes, Operand, PIECE, wrapped};
use super::super::parallel;
use runner_types::ElementType;

/// Rows of the result per task. Each row of the right side that the task reads is used for all of them.
const ROWS: usize = 8;

/// Side length of transpose tiles, chosen so that both matrices' tiles stay in the cache.
const TILE: usize = 32;

/// Shape of a product: rows×inner times inner×columns gives rows×columns.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
}

/// Multiplies matrices. Every element sums over the inner dimension in order, for any number of threads. `elements`
/// lists the elements to compute.
pub fn product(
    element: ElementType,
    [left, right]: [&Operand; 2],
    shape: Shape,
    elements: Option<&[usize]>,
) -> Operand {
    let lanes = match (all_lanes(left), all_lanes(right)) {
        (Lanes::Int(left), Lanes::Int(right)) => {
            let step = |sum: i64, x: i64, y| sum.wrapping_add(x.wrapping_mul(y));
            let mut out = multiply(&left, &right, (shape, elements), 0, step);
            parallel::chunks(&mut out, PIECE, &|_, lanes| {
                for lane in lanes {
                    *lane = wrapped(element, *lane);
                }
            });
            Lanes::Int(out)
        }
        (Lanes::Float(left), Lanes::Float(right)) => {
            Lanes::Float(multiply(&left, &right, (shape, elements), 0.0, |sum, x, y| sum + x * y))
        }
        // Both sides have one element type, so their lanes are of the same kind.
        (other, _) => other,
    };
    Operand::Wide { element, lanes: Arc::new(lanes) }
}

fn multiply<T: Copy + Send + Sync>(
    left: &[T],
    right: &[T],
    (Shape { rows, columns, inner }, elements): (Shape, Option<&[usize]>),
    zero: T,
    step: impl Fn(T, T, T) -> T + Sync,
) -> Vec<T> {
    if let Some(elements) = elements {
        let mut out = vec![zero; elements.len()];
        parallel::chunks(&mut out, ROWS, &|chunk, out| {
            for (sum, index) in out.iter_mut().zip(&elements[chunk * ROWS..]) {
                let (row, column) = (index / columns, index % columns);
                let right = right[column..].iter().step_by(columns);
                let pairs = left[row * inner..][..inner].iter().zip(right);
                *sum = pairs.fold(zero, |sum, (x, y)| step(sum, *x, *y));
            }
        });
        return out;
    }
    let mut out = vec![zero; rows * columns];
    if out.is_empty() || inner == 0 {
        return out;
    }
    parallel::chunks(&mut out, ROWS * columns, &|band, out| {
        let left = &left[band * ROWS * inner..];
        for (place, right) in right.chunks_exact(columns).enumerate() {
            for (out, left) in out.chunks_exact_mut(columns).zip(left.chunks_exact(inner)) {
                let x = left[place];
                out.iter_mut().zip(right).for_each(|(sum, y)| *sum = step(*sum, x, *y));
            }
        }
    });
    out
}

/// All lanes of an array, read in parallel.
pub fn all_lanes(operand: &Operand) -> Lanes {
    let len = operand.len().unwrap_or(0);
    if operand.element().is_some_and(ElementType::is_float) {
        let mut all = vec![0.0; len];
        parallel::chunks(&mut all, PIECE, &|number, lanes| operand.read_floats(number * PIECE, lanes));
        Lanes::Float(all)
    } else {
        let mut all = vec![0; len];
        parallel::chunks(&mut all, PIECE, &|number, lanes| operand.read_integers(number * PIECE, lanes));
        Lanes::Int(all)
    }
}

/// Transpose of a rows×columns matrix.
pub fn transposed(element: ElementType, from: &Operand, rows: usize, columns: usize) -> Operand {
    if let Operand::Bytes { bytes, .. } = from {
        let bytes = match element.size() {
            1 => transpose::<1>(bytes, rows, columns),
            2 => transpose::<2>(bytes, rows, columns),
            4 => transpose::<4>(bytes, rows, columns),
            _ => transpose::<8>(bytes, rows, columns),
        };
        return Operand::Bytes { element, bytes: Arc::new(bytes) };
    }
    let lanes = match all_lanes(from) {
        Lanes::Int(lanes) => Lanes::Int(transpose_lanes(&lanes, rows, columns)),
        Lanes::Float(lanes) => Lanes::Float(transpose_lanes(&lanes, rows, columns)),
    };
    Operand::Wide { element, lanes: Arc::new(lanes) }
}

/// Transposes a matrix of elements of `N` bytes each.
fn transpose<const N: usize>(from: &[u8], rows: usize, columns: usize) -> Vec<u8> {
    transpose_lanes(from.as_chunks::<N>().0, rows, columns).into_flattened()
}

fn transpose_lanes<T: Copy + Send + Sync>(from: &[T], rows: usize, columns: usize) -> Vec<T> {
    let mut to = from.to_vec();
    if to.is_empty() {
        return to;
    }
    parallel::chunks(&mut to, TILE * rows, &|band, to| {
        let first = band * TILE;
        for top in (0..rows).step_by(TILE) {
            for (offset, to) in to.chunks_exact_mut(rows).enumerate() {
                let tile = top..rows.min(top + TILE);
                to[tile.clone()].iter_mut().zip(tile).for_each(|(to, row)| *to = from[row * columns + first + offset]);
            }
        }
    });
    to
}
