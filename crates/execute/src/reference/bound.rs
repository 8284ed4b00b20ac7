//! How far a correct result may be from a reference: a bound on the rounding errors for any order of its operations.
//!
//! A result near 0 that is a sum of large terms has an error that is small relative to the terms but not to the result.
//! So the sizes of the terms are tracked through the expression together with its values. An expression of k operations
//! has an error of at most k·u·Σ|terms| to first order, for any order of the terms, where u is the unit roundoff
//! (Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, sections 3.1 and 3.4). For a reduction of n
//! terms, this worst case is far from realistic (section 4.2): partial sums are about the root of the sum of squares,
//! and their rounding errors, of both signs, grow with √n. A bound of [`SUMMATION`]·√n·u times that root allows every
//! order, and still detects one missing term of many.

use std::sync::Arc;

use super::super::operand::{Lanes, Number, Operand};
use super::arrays::normal_of;
use super::matrix::all_lanes;
use super::{call, evaluate};
use runner_types::{ElementType, Elementwise, Map, Reduction, RefExpr, RefFunction, RefKind};

/// Allowed multiple of the typical error of a sequential sum. For random terms, one sum in many millions exceeds it.
const SUMMATION: f64 = 2.0;

/// Sizes of an expression's terms at some elements, and the number of roundings of that size.
struct Terms {
    sizes: Operand,
    roundings: f64,
}

/// Allowed error at some elements of a float expression's value, in units of the unit roundoff.
pub fn bounds<E: From<String>>(
    expression: &RefExpr,
    elements: &[usize],
    buffer: &mut dyn FnMut(&str) -> Result<Operand, E>,
) -> Result<Vec<f64>, E> {
    let Terms { sizes, roundings } = terms(expression, Some(elements), buffer)?;
    let mut bounds = vec![0.0; elements.len()];
    sizes.read_floats(0, &mut bounds);
    for bound in &mut bounds {
        *bound *= roundings;
    }
    Ok(bounds)
}

/// Terms of an expression. `elements` selects elements of an array; `None` means all.
fn terms<E: From<String>>(
    expression: &RefExpr,
    elements: Option<&[usize]>,
    buffer: &mut dyn FnMut(&str) -> Result<Operand, E>,
) -> Result<Terms, E> {
    match expression {
        RefExpr::Buffer(name) => Ok(Terms { sizes: size(selected(buffer(name)?, elements)?), roundings: 0.0 }),
        RefExpr::Constant(value) => {
            let value = Number::from_value(value).map_or(0.0, Number::as_f64);
            // A fraction may be inexact in the type of the buffers.
            let is_exact = f64::from(value as f32).to_bits() == value.to_bits();
            let roundings = if is_exact { 0.0 } else { 1.0 };
            Ok(Terms { sizes: constant(value.abs()), roundings })
        }
        RefExpr::Elementwise { operation, operands } => {
            let parts = operands.iter().map(|operand| terms(operand, elements, buffer));
            let parts = parts.collect::<Result<Vec<_>, E>>()?;
            let roundings = parts.iter().map(|part| part.roundings).sum::<f64>();
            let mut sizes: Vec<Operand> = parts.into_iter().map(|part| part.sizes).collect();
            let rounded = |sizes: Operand| Ok(Terms { sizes, roundings: roundings + 1.0 });
            let mut value = |place: usize| -> Result<Operand, E> {
                Ok(size(selected(evaluate(&operands[place], buffer)?, elements)?))
            };
            match operation {
                Elementwise::Add | Elementwise::Subtract => rounded(combined(Elementwise::Add, sizes)),
                Elementwise::Multiply => rounded(combined(Elementwise::Multiply, sizes)),
                Elementwise::Divide => {
                    // Errors of the divisor weigh more, the smaller the divisor is relative to its terms.
                    let divisor = value(1)?;
                    rounded(divide(combined(Elementwise::Multiply, sizes), square(divisor)))
                }
                Elementwise::Sqrt => {
                    let root = root(value(0)?);
                    rounded(divide(sizes.remove(0), root))
                }
                Elementwise::Remainder => rounded(sizes.remove(0)),
                Elementwise::Negate | Elementwise::Abs => Ok(Terms { sizes: sizes.remove(0), roundings }),
                Elementwise::Min | Elementwise::Max => {
                    Ok(Terms { sizes: combined(Elementwise::Max, sizes), roundings })
                }
                _ => Ok(Terms { sizes: constant(0.0), roundings: 0.0 }),
            }
        }
        RefExpr::Call { function, buffers, integers } => match (function.kind(), buffers.as_slice()) {
            (RefKind::Map(Map::Copy), [of]) => terms(of, elements, buffer),
            (RefKind::Map(Map::Slice), [of]) => {
                let from = integers.first().and_then(|from| usize::try_from(*from).ok()).unwrap_or(0);
                match elements {
                    Some(elements) => {
                        let shifted: Vec<usize> = elements.iter().map(|element| element + from).collect();
                        terms(of, Some(&shifted), buffer)
                    }
                    None => Ok(of_call(*function, vec![terms(of, None, buffer)?], integers, None)?),
                }
            }
            (RefKind::Map(Map::Softmax | Map::Exp | Map::LayerNorm), _) => {
                let values: Vec<Operand> = buffers.iter().map(|of| evaluate(of, buffer)).collect::<Result<_, E>>()?;
                let parts = buffers.iter().map(|of| terms(of, None, buffer)).collect::<Result<Vec<_>, E>>()?;
                let Terms { sizes, roundings } = of_values(*function, &values, &parts, integers)?;
                Ok(Terms { sizes: selected(sizes, elements)?, roundings })
            }
            (RefKind::Map(Map::Matmul | Map::Convolution) | RefKind::Reduction(_), _) => {
                let parts = buffers.iter().map(|of| terms(of, None, buffer)).collect::<Result<Vec<_>, E>>()?;
                Ok(of_call(*function, parts, integers, elements)?)
            }
            (RefKind::Map(_), _) => {
                let parts = buffers.iter().map(|of| terms(of, None, buffer)).collect::<Result<Vec<_>, E>>()?;
                let Terms { sizes, roundings } = of_call(*function, parts, integers, None)?;
                Ok(Terms { sizes: selected(sizes, elements)?, roundings })
            }
        },
    }
}

/// Terms of a function that needs only the terms of its arguments. Products and convolutions compute only the selected
/// `elements`.
fn of_call(
    function: RefFunction,
    mut parts: Vec<Terms>,
    integers: &[i64],
    elements: Option<&[usize]>,
) -> Result<Terms, String> {
    let roundings = parts.iter().map(|part| part.roundings).sum::<f64>();
    let len = parts[0].sizes.len();
    let of_sum = |sizes: Operand, extra: f64| -> Result<Terms, String> {
        let squares = call(RefFunction::Sum, &[square(sizes)], &[], None)?;
        Ok(Terms { sizes: root(squares), roundings: summed(len) + roundings + extra })
    };
    let mut next = || parts.remove(0).sizes;
    match function.kind() {
        RefKind::Reduction(Reduction::Sum) => of_sum(next(), 0.0),
        RefKind::Reduction(Reduction::SumSquares) => of_sum(square(next()), roundings + 1.0),
        RefKind::Reduction(Reduction::Dot) => {
            let factors = [next(), next()];
            of_sum(combined(Elementwise::Multiply, factors), 1.0)
        }
        RefKind::Reduction(Reduction::Product) => {
            Ok(Terms { sizes: call(function, &[next()], integers, None)?, roundings: summed(len) * (1.0 + roundings) })
        }
        RefKind::Reduction(Reduction::Min | Reduction::Max) | RefKind::Map(Map::Sort) => {
            Ok(Terms { sizes: call(RefFunction::Max, &[next()], &[], None)?, roundings })
        }
        RefKind::Reduction(Reduction::And | Reduction::Or) | RefKind::Map(Map::Histogram) => {
            Ok(Terms { sizes: constant(0.0), roundings: 0.0 })
        }
        RefKind::Map(Map::Add) => {
            let both = [next(), next()];
            Ok(Terms { sizes: combined(Elementwise::Add, both), roundings: roundings + 1.0 })
        }
        RefKind::Map(Map::Matmul | Map::Convolution) => {
            let (left, right) = (next(), next());
            let terms = match function.kind() {
                RefKind::Map(Map::Matmul) => integers.get(2).and_then(|inner| usize::try_from(*inner).ok()),
                _ => right.len(),
            };
            let squares = call(function, &[square(left), square(right)], integers, elements)?;
            Ok(Terms { sizes: root(squares), roundings: summed(terms) + roundings + 1.0 })
        }
        RefKind::Map(Map::Scan) => {
            let Lanes::Float(mut lanes) = all_lanes(&call(function, &[square(next())], integers, None)?) else {
                return Ok(Terms { sizes: constant(0.0), roundings: 0.0 });
            };
            for (place, lane) in lanes.iter_mut().enumerate() {
                *lane = lane.sqrt() * (summed(Some(place + 1)) + roundings);
            }
            Ok(Terms { sizes: wide(lanes), roundings: 1.0 })
        }
        // Two terms of the argument's size: x, and x times a function that tends to −1.
        RefKind::Map(Map::Gelu | Map::GeluTanh) => Ok(Terms { sizes: next(), roundings: roundings + 2.0 }),
        RefKind::Map(Map::Copy | Map::Transpose | Map::Slice) => {
            Ok(Terms { sizes: call(function, &[next()], integers, None)?, roundings })
        }
        RefKind::Map(Map::Softmax | Map::Exp | Map::LayerNorm) => Ok(Terms { sizes: next(), roundings }),
    }
}

/// Terms of a function that also needs the values of its arguments.
fn of_values(function: RefFunction, values: &[Operand], parts: &[Terms], integers: &[i64]) -> Result<Terms, String> {
    let roundings = parts.iter().map(|part| part.roundings).sum::<f64>() + 1.0;
    let lanes = |operand: &Operand| match all_lanes(operand) {
        Lanes::Float(lanes) => lanes,
        Lanes::Int(_) => Vec::new(),
    };
    let mut sizes = lanes(&parts[0].sizes);
    if matches!(function.kind(), RefKind::Map(Map::LayerNorm)) {
        let columns = integers.first().and_then(|columns| usize::try_from(*columns).ok()).unwrap_or(1).max(1);
        let (x, weight, bias) = (lanes(&values[0]), lanes(&parts[1].sizes), lanes(&parts[2].sizes));
        for (row, x) in sizes.chunks_mut(columns).zip(x.chunks(columns)) {
            let mean = row.iter().sum::<f64>() / row.len() as f64;
            let (_, scale) = normal_of(x.iter().copied());
            for ((size, weight), bias) in row.iter_mut().zip(&weight).zip(&bias) {
                *size = (*size + mean) * scale * weight + bias;
            }
        }
        // The mean, the difference from it, two products, and the sum.
        return Ok(Terms { sizes: wide(sizes), roundings: roundings + summed(Some(columns)) + 3.0 });
    }
    // An error of the exponent, which has the size of its terms, is a relative error of the result.
    let results = lanes(&call(function, values, integers, None)?);
    let most = sizes.iter().copied().fold(0.0, f64::max);
    for (size, result) in sizes.iter_mut().zip(results) {
        let exponent = if matches!(function.kind(), RefKind::Map(Map::Softmax)) { 2.0 * most } else { *size };
        *size = result * (1.0 + exponent);
    }
    Ok(Terms { sizes: wide(sizes), roundings })
}

/// Roundings allowed for a sum, relative to the root of its sum of squares.
fn summed(len: Option<usize>) -> f64 {
    SUMMATION * (len.unwrap_or(1) as f64).sqrt()
}

fn selected(operand: Operand, elements: Option<&[usize]>) -> Result<Operand, String> {
    match elements {
        Some(elements) => operand.select(elements),
        None => Ok(operand),
    }
}

fn constant(value: f64) -> Operand {
    Operand::Scalar { element: None, value: Number::Float(value) }
}

fn wide(lanes: Vec<f64>) -> Operand {
    Operand::Wide { element: ElementType::F64, lanes: Arc::new(Lanes::Float(lanes)) }
}

/// Combines sizes element by element, as f64 whatever the type of their buffers.
fn combined(operation: Elementwise, operands: impl IntoIterator<Item = Operand>) -> Operand {
    let mut operands = operands.into_iter();
    let mut next = || Box::new(operands.next().unwrap_or_else(|| constant(0.0)));
    Operand::Elementwise { element: ElementType::F64, operation, left: next(), right: next() }
}

fn size(operand: Operand) -> Operand {
    combined(Elementwise::Abs, [operand])
}

fn square(operand: Operand) -> Operand {
    combined(Elementwise::Multiply, [operand.clone(), operand])
}

fn root(operand: Operand) -> Operand {
    combined(Elementwise::Sqrt, [operand])
}

fn divide(left: Operand, right: Operand) -> Operand {
    combined(Elementwise::Divide, [left, right])
}
