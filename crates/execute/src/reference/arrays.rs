//! Reference functions from arrays to an array: sorted, scanned, counted, normalised, convolved, sliced.

use std::ops::Range;
use std::sync::Arc;

use super::super::operand::{Lanes, Operand, PIECE, wrapped};
use super::super::parallel;
use super::matrix::all_lanes;
use runner_types::ElementType;

fn wide(element: ElementType, lanes: Lanes) -> Operand {
    Operand::Wide { element, lanes: Arc::new(lanes) }
}

/// Sorts the elements in ascending order; floats in their total order, NaN last.
pub fn sorted(element: ElementType, x: &Operand) -> Operand {
    let lanes = match all_lanes(x) {
        Lanes::Int(mut lanes) if element == ElementType::U64 => {
            lanes.sort_unstable_by_key(|lane| lane.cast_unsigned());
            Lanes::Int(lanes)
        }
        Lanes::Int(mut lanes) => {
            lanes.sort_unstable();
            Lanes::Int(lanes)
        }
        Lanes::Float(mut lanes) => {
            lanes.sort_unstable_by(f64::total_cmp);
            Lanes::Float(lanes)
        }
    };
    wide(element, lanes)
}

/// Inclusive prefix sums; float sums are compensated (Neumaier).
pub fn scanned(element: ElementType, x: &Operand) -> Operand {
    let lanes = match all_lanes(x) {
        Lanes::Int(mut lanes) => {
            let mut sum = 0;
            for lane in &mut lanes {
                sum = wrapped(element, lane.wrapping_add(sum));
                *lane = sum;
            }
            Lanes::Int(lanes)
        }
        Lanes::Float(mut lanes) => {
            let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
            for lane in &mut lanes {
                let next = sum + *lane;
                lost += if sum.abs() >= lane.abs() { (sum - next) + *lane } else { (*lane - next) + sum };
                sum = next;
                // An infinite sum has no meaningful correction.
                *lane = if sum.is_finite() { sum + lost } else { sum };
            }
            Lanes::Float(lanes)
        }
    };
    wide(element, lanes)
}

/// Counts the elements equal to 0, 1, …, `bins` - 1. Other integers are not counted.
pub fn histogram(element: ElementType, x: &Operand, bins: usize) -> Result<Operand, String> {
    if element.is_float() {
        return Err(format!("counts integers, but got {element}"));
    }
    let mut counts = vec![0; bins];
    if let Lanes::Int(lanes) = all_lanes(x) {
        for lane in lanes {
            if let Some(count) = usize::try_from(lane).ok().and_then(|bin| counts.get_mut(bin)) {
                *count += 1;
            }
        }
    }
    Ok(wide(ElementType::I64, Lanes::Int(counts)))
}

/// Softmax of each row, after subtracting its largest element.
pub fn softmax(element: ElementType, x: &Operand, columns: usize) -> Result<Operand, String> {
    let Lanes::Float(mut lanes) = all_lanes(x) else { return Err(format!("works on floats, but got {element}")) };
    parallel::chunks(&mut lanes, columns.max(1), &|_, row| {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for lane in &mut *row {
            *lane = libm::exp(*lane - most);
        }
        let sum: f64 = row.iter().sum();
        for lane in row {
            *lane /= sum;
        }
    });
    Ok(wide(element, Lanes::Float(lanes)))
}

/// Applies a function to each element.
pub fn each(element: ElementType, x: &Operand, function: fn(f64) -> f64) -> Result<Operand, String> {
    let Lanes::Float(mut lanes) = all_lanes(x) else { return Err(format!("works on floats, but got {element}")) };
    parallel::chunks(&mut lanes, PIECE, &|_, piece| piece.iter_mut().for_each(|lane| *lane = function(*lane)));
    Ok(wide(element, Lanes::Float(lanes)))
}

/// x times the probability that a standard normal variable is at most x.
pub fn gelu(x: f64) -> f64 {
    0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// Approximates [`gelu`] with the formula of Hendrycks and Gimpel (2016), which GPT-2 uses.
pub fn gelu_tanh(x: f64) -> f64 {
    let scale = (2.0 / std::f64::consts::PI).sqrt();
    0.5 * x * (1.0 + libm::tanh(scale * (x + 0.044_715 * x * x * x)))
}

/// Added to the variance before taking its square root.
pub const LAYERNORM_EPSILON: f64 = 1e-5;

pub fn layernorm(element: ElementType, [x, weight, bias]: [&Operand; 3], columns: usize) -> Result<Operand, String> {
    let (Lanes::Float(mut lanes), Lanes::Float(weight), Lanes::Float(bias)) =
        (all_lanes(x), all_lanes(weight), all_lanes(bias))
    else {
        return Err(format!("works on floats, but got {element}"));
    };
    parallel::chunks(&mut lanes, columns.max(1), &|_, row| {
        let (mean, scale) = normal_of(row.iter().copied());
        for ((lane, weight), bias) in row.iter_mut().zip(&weight).zip(&bias) {
            *lane = (*lane - mean) * scale * weight + bias;
        }
    });
    Ok(wide(element, Lanes::Float(lanes)))
}

/// Mean of a row, and reciprocal of its standard deviation.
pub fn normal_of(row: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let count = row.len() as f64;
    let mean = row.clone().sum::<f64>() / count;
    let variance = row.map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    (mean, 1.0 / (variance + LAYERNORM_EPSILON).sqrt())
}

/// Convolves: every element is the sum of its neighbourhood times the filter, whose centre is at half its extents.
/// `elements` lists the elements to compute.
pub fn convolution(
    element: ElementType,
    [x, filter]: [&Operand; 2],
    sizes: [usize; 4],
    elements: Option<&[usize]>,
) -> Operand {
    let lanes = match (all_lanes(x), all_lanes(filter)) {
        (Lanes::Int(x), Lanes::Int(filter)) => {
            let step = |sum: i64, x: i64, weight: i64| sum.wrapping_add(x.wrapping_mul(weight));
            let mut out = convolved((&x, &filter), (sizes, elements), 0, step);
            for lane in &mut out {
                *lane = wrapped(element, *lane);
            }
            Lanes::Int(out)
        }
        (Lanes::Float(x), Lanes::Float(filter)) => {
            let step = |sum, x, weight| sum + x * weight;
            Lanes::Float(convolved((&x, &filter), (sizes, elements), 0.0, step))
        }
        // Both have one element type, so their lanes are of the same kind.
        (other, _) => other,
    };
    wide(element, lanes)
}

fn convolved<T: Copy + Send + Sync>(
    (x, filter): (&[T], &[T]),
    ([rows, columns, down, across], elements): ([usize; 4], Option<&[usize]>),
    zero: T,
    step: impl Fn(T, T, T) -> T + Sync,
) -> Vec<T> {
    // Index of the image element under a filter element, if it is inside.
    let under = |place: usize, offset: usize, middle: usize, end: usize| {
        (place + offset).checked_sub(middle).filter(|index| *index < end)
    };
    let sum_at = |row: usize, column: usize| {
        let mut sum = zero;
        for i in 0..down {
            let Some(y) = under(row, i, down / 2, rows) else { continue };
            for j in 0..across {
                let Some(at) = under(column, j, across / 2, columns) else { continue };
                sum = step(sum, x[y * columns + at], filter[i * across + j]);
            }
        }
        sum
    };
    let columns = columns.max(1);
    let Some(elements) = elements else {
        let mut out = vec![zero; x.len()];
        // Adds a weight to a whole row at once: the sums are the same, but this is several times as fast.
        parallel::chunks(&mut out, columns, &|row, sums| {
            for i in 0..down {
                let Some(y) = under(row, i, down / 2, rows) else { continue };
                let image = &x[y * columns..][..columns];
                for (j, weight) in filter[i * across..][..across].iter().enumerate() {
                    let (left, right) = ((across / 2).saturating_sub(j), j.saturating_sub(across / 2));
                    if left.max(right) < columns {
                        let pairs = sums[left..].iter_mut().zip(&image[right..]);
                        pairs.for_each(|(sum, x)| *sum = step(*sum, *x, *weight));
                    }
                }
            }
        });
        return out;
    };
    let mut out = vec![zero; elements.len()];
    parallel::chunks(&mut out, columns, &|chunk, out| {
        for (index, out) in elements[chunk * columns..].iter().zip(out) {
            *out = sum_at(index / columns, index % columns);
        }
    });
    out
}

pub fn slice(element: ElementType, x: &Operand, range: Range<usize>) -> Operand {
    if let Operand::Bytes { bytes, .. } = x {
        let size = element.size();
        return Operand::Bytes { element, bytes: Arc::new(bytes[range.start * size..range.end * size].to_vec()) };
    }
    wide(
        element,
        match all_lanes(x) {
            Lanes::Int(lanes) => Lanes::Int(lanes[range].to_vec()),
            Lanes::Float(lanes) => Lanes::Float(lanes[range].to_vec()),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f64]) -> Operand {
        wide(ElementType::F64, Lanes::Float(values.to_vec()))
    }

    fn integers(element: ElementType, values: &[i64]) -> Operand {
        wide(element, Lanes::Int(values.to_vec()))
    }

    fn lanes(operand: &Operand) -> Lanes {
        all_lanes(operand)
    }

    #[test]
    fn sorting_follows_the_type() {
        let signed = sorted(ElementType::I64, &integers(ElementType::I64, &[3, -1, 2]));
        assert_eq!(lanes(&signed), Lanes::Int(vec![-1, 2, 3]));
        let unsigned = sorted(ElementType::U64, &integers(ElementType::U64, &[3, -1, 2]));
        assert_eq!(lanes(&unsigned), Lanes::Int(vec![2, 3, -1]), "-1 has the bits of 2^64 - 1");
        assert_eq!(lanes(&sorted(ElementType::F64, &floats(&[0.5, -2.0]))), Lanes::Float(vec![-2.0, 0.5]));
    }

    #[test]
    fn sums_wrap_as_the_type_does_and_lose_nothing_of_floats() {
        let sums = scanned(ElementType::U8, &integers(ElementType::U8, &[200, 100, 1]));
        assert_eq!(lanes(&sums), Lanes::Int(vec![200, 44, 45]));
        let sums = scanned(ElementType::F64, &floats(&[1e16, 1.0, 1.0, -1e16]));
        assert_eq!(lanes(&sums), Lanes::Float(vec![1e16, 1e16, 1e16 + 2.0, 2.0]));
    }

    #[test]
    fn counts_are_of_the_integers_below_the_number_of_bins() {
        let counts = histogram(ElementType::I32, &integers(ElementType::I32, &[0, 2, 2, 5, -1]), 3);
        assert_eq!(counts.map(|counts| lanes(&counts)), Ok(Lanes::Int(vec![1, 0, 2])));
        assert!(histogram(ElementType::F64, &floats(&[1.0]), 3).is_err());
    }

    #[test]
    fn a_row_of_softmax_adds_up_to_one_whatever_its_size() {
        let rows = softmax(ElementType::F64, &floats(&[0.0, 2f64.ln(), 1000.0, 1000.0]), 2);
        let Ok(Lanes::Float(found)) = rows.map(|rows| lanes(&rows)) else { panic!("floats") };
        for (found, expected) in found.iter().zip([1.0 / 3.0, 2.0 / 3.0, 0.5, 0.5]) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
    }

    #[test]
    fn functions_of_each_element_have_their_known_values() {
        let values = |function: fn(f64) -> f64| {
            let found = each(ElementType::F64, &floats(&[-1.0, 0.0, 1.0, 3.0]), function);
            let Ok(Lanes::Float(found)) = found.map(|found| lanes(&found)) else { panic!("floats") };
            found
        };
        // Computed in Python: x times the normal distribution function, and the formula with tanh.
        let is = |function: fn(f64) -> f64, expected: [f64; 4]| {
            for (found, expected) in values(function).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-14, "{found} {expected}");
            }
        };
        // Computed in Python: x times the normal distribution function, and the formula with tanh.
        is(libm::exp, [0.367_879_441_171_442_33, 1.0, std::f64::consts::E, 20.085_536_923_187_668]);
        is(gelu, [-0.158_655_253_931_457_07, 0.0, 0.841_344_746_068_542_9, 2.995_950_305_905_11]);
        is(gelu_tanh, [-0.158_808_009_391_723_24, 0.0, 0.841_191_990_608_276_8, 2.996_362_607_918_227]);
        assert!(each(ElementType::I32, &integers(ElementType::I32, &[1]), gelu).is_err());
    }

    #[test]
    fn a_row_of_layernorm_has_the_mean_and_deviation_of_bias_and_weight() {
        let (weight, bias) = (floats(&[1.0, 2.0]), floats(&[0.5, 0.0]));
        let rows = layernorm(ElementType::F64, [&floats(&[1.0, 3.0, -4.0, -4.0]), &weight, &bias], 2);
        let Ok(Lanes::Float(found)) = rows.map(|rows| lanes(&rows)) else { panic!("floats") };
        // Mean 2 and variance 1, then mean -4 and variance 0.
        let scale = 1.0 / 1.000_01_f64.sqrt();
        for (found, expected) in found.iter().zip([0.5 - scale, 2.0 * scale, 0.5, 0.0]) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
    }

    #[test]
    fn all_elements_of_a_convolution_are_those_that_are_computed_one_by_one() {
        for sizes in [[5, 9, 3, 3], [4, 3, 7, 5], [6, 2, 2, 8], [1, 1, 1, 1]] {
            let [rows, columns, down, across] = sizes;
            let made = |count: usize| floats(&(0..count).map(|i| (i * 37 % 101) as f64 / 7.0).collect::<Vec<_>>());
            let (image, filter) = (made(rows * columns), made(down * across));
            let every: Vec<usize> = (0..rows * columns).collect();
            let [all, each] =
                [None, Some(&every[..])].map(|some| convolution(ElementType::F64, [&image, &filter], sizes, some));
            assert_eq!(lanes(&all), lanes(&each), "{sizes:?}");
        }
    }

    #[test]
    fn a_convolution_is_zero_outside_of_the_image_and_does_not_mirror_the_filter() {
        let image = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let right = floats(&[0.0, 0.0, 1.0]);
        let moved = convolution(ElementType::F64, [&image, &right], [2, 3, 1, 3], None);
        assert_eq!(lanes(&moved), Lanes::Float(vec![2.0, 3.0, 0.0, 5.0, 6.0, 0.0]));
        let ones = floats(&[1.0; 9]);
        let sums = convolution(ElementType::F64, [&image, &ones], [2, 3, 3, 3], None);
        assert_eq!(lanes(&sums), Lanes::Float(vec![12.0, 21.0, 16.0, 12.0, 21.0, 16.0]));
        let some = convolution(ElementType::F64, [&image, &ones], [2, 3, 3, 3], Some(&[5, 1, 0]));
        assert_eq!(lanes(&some), Lanes::Float(vec![16.0, 21.0, 12.0]));
    }

    #[test]
    fn a_slice_has_the_elements_between_its_indices() {
        assert_eq!(lanes(&slice(ElementType::F64, &floats(&[1.0, 2.0, 3.0]), 1..3)), Lanes::Float(vec![2.0, 3.0]));
        let bytes = Operand::Bytes { element: ElementType::U8, bytes: Arc::new(vec![7, 8, 9]) };
        assert_eq!(lanes(&slice(ElementType::U8, &bytes, 0..1)), Lanes::Int(vec![7]));
    }
}
