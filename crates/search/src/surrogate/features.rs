//! Represents points as numbers that a model can compare.

use crate::space::{Scale, Space, Value};

/// Numeric representation of the points of a space.
#[derive(Debug, Clone)]
pub struct Features {
    /// Coordinates between 0 and 1, for each value of each parameter.
    coordinates: Vec<Vec<Vec<f32>>>,
    len: usize,
}

impl Features {
    /// Chooses the features of a space. A numeric parameter has its rank; its logarithm, if the values span more than a
    /// factor of two; and its number of factors of two, unless that grows with the value. Hardware prefers multiples of
    /// powers of two.
    #[must_use]
    pub fn new(space: &Space) -> Self {
        let coordinates: Vec<Vec<Vec<f32>>> = space
            .parameters()
            .iter()
            .map(|parameter| {
                let mut columns = Vec::new();
                let len = parameter.values.len();
                if parameter.scale == Scale::Ordered && len > 2 {
                    columns.push((0..len).map(|rank| rank as f64).collect::<Vec<_>>());
                    let numbers: Option<Vec<f64>> = parameter.values.iter().map(Value::number).collect();
                    if let Some(numbers) = numbers.filter(|numbers| numbers[0] > 0.0) {
                        if numbers[len - 1] / numbers[0] > 2.0 {
                            columns.push(numbers.iter().map(|number| number.ln()).collect());
                        }
                        let divisions: Vec<f64> = numbers.iter().map(|&number| divisions(number)).collect();
                        if divisions.windows(2).any(|pair| pair[1] < pair[0]) {
                            columns.push(divisions);
                        }
                    }
                }
                (0..len).map(|value| columns.iter().map(|column| scaled(column, value)).collect()).collect()
            })
            .collect();
        let len = coordinates.iter().filter_map(|values| values.first()).map(|value| value.len() + 1).sum();
        Self { coordinates, len }
    }

    /// Number of distances written by [`Self::write_distances`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the space has no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes the distances between two points: one per feature, and one per parameter that indicates whether it
    /// differs.
    pub fn write_distances(&self, one: &[u16], other: &[u16], distances: &mut [f32]) {
        let mut next = 0;
        for ((values, &a), &b) in self.coordinates.iter().zip(one).zip(other) {
            let (at, bt) = (&values[usize::from(a)], &values[usize::from(b)]);
            for (x, y) in at.iter().zip(bt) {
                distances[next] = (x - y).abs();
                next += 1;
            }
            distances[next] = f32::from(u8::from(a != b));
            next += 1;
        }
    }

    /// Coordinates of a point, parameter by parameter. Categorical parameters have none.
    #[must_use]
    pub fn coordinates(&self, point: &[u16]) -> Vec<f32> {
        let each = self.coordinates.iter().zip(point);
        each.flat_map(|(values, &value)| values[usize::from(value)].iter().copied()).collect()
    }

    /// Whether a parameter has coordinates. Otherwise its values are only equal or different.
    #[must_use]
    pub fn has_coordinates(&self, parameter: usize) -> bool {
        self.coordinates[parameter].first().is_some_and(|coordinates| !coordinates.is_empty())
    }

    /// Tables of weighted distances between all pairs of values, one for each parameter.
    #[must_use]
    pub fn tables(&self, weights: &[f64]) -> Vec<Table> {
        let mut first = 0;
        self.coordinates
            .iter()
            .map(|values| {
                let columns = values.first().map_or(0, Vec::len);
                let (own, differs) = (&weights[first..first + columns], weights[first + columns]);
                first += columns + 1;
                let distance = |a: &Vec<f32>, b: &Vec<f32>| -> f32 {
                    own.iter().zip(a.iter().zip(b)).map(|(weight, (x, y))| *weight as f32 * (x - y).abs()).sum()
                };
                let table = values.iter().enumerate().flat_map(|(i, a)| {
                    values.iter().enumerate().map(
                        move |(j, b)| {
                            if i == j { 0.0 } else { distance(a, b) + differs as f32 }
                        },
                    )
                });
                Table { len: values.len(), distances: table.collect() }
            })
            .collect()
    }
}

/// Weighted distances between all pairs of values of a parameter.
#[derive(Debug, Clone)]
pub struct Table {
    len: usize,
    distances: Vec<f32>,
}

impl Table {
    #[must_use]
    /// Precomputed distance between two values, given by index.
    pub fn distance(&self, one: u16, other: u16) -> f32 {
        self.distances[usize::from(one) * self.len + usize::from(other)]
    }
}

/// Exponent of 2 in the factorisation of an integer; 0 for other numbers.
fn divisions(number: f64) -> f64 {
    let integer = number as i64;
    if number.fract() == 0.0 && integer != 0 { f64::from(integer.trailing_zeros()) } else { 0.0 }
}

/// An element of a column, scaled by the column's range.
fn scaled(column: &[f64], place: usize) -> f32 {
    let least = column.iter().copied().fold(f64::INFINITY, f64::min);
    let most = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most > least { ((column[place] - least) / (most - least)) as f32 } else { 0.0 }
}
