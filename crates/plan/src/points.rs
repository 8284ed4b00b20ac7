//! Cartesian product of the shared axes, in the manifest's order, with the included points.
//!
//! Points are rows of indices, so that a large matrix stays small. Rows can be limited to some groups, for a task that
//! runs only these.

use std::collections::BTreeSet;

use runner_experiment::{Axis, Manifest};
use runner_lang::diagnostics::Diagnostic;
use runner_types::Value;

use super::MAX_CELLS;
use super::axes::Axes;

/// Points, each a row of indices into the axes' values.
#[derive(Debug, Default)]
pub struct Points {
    width: usize,
    indices: Vec<u32>,
    /// Index of the point in each row, ascending; `None` if every point has a row.
    numbers: Option<Vec<u32>>,
    /// Number of rows. Stored separately, since a manifest without axes has one row of width zero.
    count: usize,
    /// Index of the first included point outside the product.
    included: usize,
}

/// Points, and the values that included points add to the axes.
#[derive(Debug)]
pub struct Layout {
    points: Points,
    added: Vec<Vec<Value>>,
}

/// Groups of a partial plan, each given by the index of one of its points. The points of a group agree on all axes that
/// are not `compared`.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    pub points: &'a [u32],
    pub compared: &'a [bool],
}

/// Expands the product of the axes and appends the included points. If groups are chosen, only their points get rows.
pub fn lay_out(
    manifest: &Manifest,
    axes: &Axes,
    variants: usize,
    chosen: Option<Chosen<'_>>,
) -> Result<Layout, Diagnostic> {
    let dimensions = dimensions(&axes.shared, &manifest.zip);
    let product = dimensions.iter().map(|d| d.length as u64).try_fold(1_u64, u64::checked_mul);
    let cells = product.and_then(|points| points.checked_mul(variants.max(1) as u64));
    if cells.is_none_or(|cells| cells > MAX_CELLS) {
        let count = cells.map_or_else(|| "more than 2^64".to_owned(), |cells| cells.to_string());
        let message = format!("the matrix has {count} cells, but at most {MAX_CELLS} are allowed");
        return Err(Diagnostic::whole(message).hint("shorten an axis, or zip axes that belong together"));
    }
    let width = axes.shared.len();
    let product = dimensions.iter().map(|dimension| dimension.length).product();
    let (mut added, mut included) = (vec![Vec::new(); width], Vec::new());
    let mut seen = BTreeSet::new();
    for include in &manifest.include {
        let values: Option<Vec<&Value>> = axes.shared.iter().map(|axis| include.get(&axis.name)).collect();
        let Some(values) = values else { continue };
        if !fits(axes, &values) || in_product(&dimensions, &axes.shared, &values) {
            continue;
        }
        let row: Vec<u32> = axes.shared.iter().zip(&values).zip(&mut added).map(index_of).collect();
        if seen.insert(row.clone()) {
            included.push(row);
        }
    }
    let numbers = chosen.map(|chosen| chosen.members(&dimensions, product, &included));
    let count = numbers.as_ref().map_or(product + included.len(), Vec::len);
    let mut indices = Vec::with_capacity(count * width);
    for at in 0..count {
        let number = numbers.as_ref().map_or(at, |numbers| numbers[at] as usize);
        push_row(&mut indices, number, &dimensions, width, (product, &included));
    }
    Ok(Layout { points: Points { width, indices, numbers, count, included: product }, added })
}

/// Appends the row of the point with index `number`. Indices enumerate the product with the last dimension varying
/// fastest.
fn push_row(
    indices: &mut Vec<u32>,
    number: usize,
    dimensions: &[Dimension],
    width: usize,
    (product, included): (usize, &[Vec<u32>]),
) {
    if let Some(row) = number.checked_sub(product) {
        indices.extend(included.get(row).into_iter().flatten());
        return;
    }
    let start = indices.len();
    indices.resize(start + width, 0);
    let mut rest = number;
    for dimension in dimensions.iter().rev() {
        let value = (rest % dimension.length) as u32;
        rest /= dimension.length;
        for &axis in &dimension.axes {
            indices[start + axis] = value;
        }
    }
}

impl Chosen<'_> {
    /// Indices of all points of the groups, ascending.
    fn members(self, dimensions: &[Dimension], product: usize, included: &[Vec<u32>]) -> Vec<u32> {
        let width = self.compared.len();
        let mut numbers = BTreeSet::new();
        let known = self.points.iter().filter(|point| (**point as usize) < product + included.len());
        for &point in known {
            if numbers.contains(&point) {
                continue;
            }
            let mut row = Vec::with_capacity(width);
            push_row(&mut row, point as usize, dimensions, width, (product, included));
            numbers.extend(self.of_product(&row, dimensions));
            let is_shared = |other: &&Vec<u32>| {
                let mut pairs = other.iter().zip(&row).zip(self.compared);
                pairs.all(|((one, other), compared)| *compared || one == other)
            };
            let of_included = included.iter().enumerate().filter(|(_, other)| is_shared(other));
            numbers.extend(of_included.map(|(at, _)| (product + at) as u32));
        }
        numbers.into_iter().collect()
    }

    /// Indices of the product's points in the same group as `row`.
    fn of_product(self, row: &[u32], dimensions: &[Dimension]) -> Vec<u32> {
        let mut numbers = vec![0_u32];
        for dimension in dimensions {
            let mut shared = dimension.axes.iter().filter(|axis| !self.compared[**axis]).map(|axis| row[*axis]);
            let values = match shared.next() {
                None => 0..dimension.length as u32,
                // An index past the dimension is a value added by an included point.
                Some(first) if (first as usize) < dimension.length && shared.all(|other| other == first) => {
                    first..first + 1
                }
                Some(_) => return Vec::new(),
            };
            let longer = numbers.iter().flat_map(|number| {
                let before = number * dimension.length as u32;
                values.clone().map(move |value| before + value)
            });
            numbers = longer.collect();
        }
        numbers
    }
}

/// Axes that advance in lockstep.
struct Dimension {
    axes: Vec<usize>,
    length: usize,
}

/// The axes and lists of zipped axes, each at the position of its first axis.
fn dimensions(axes: &[Axis], zip: &[Vec<String>]) -> Vec<Dimension> {
    let mut dimensions = Vec::new();
    for (index, axis) in axes.iter().enumerate() {
        let partners = zip.iter().find(|list| list.contains(&axis.name));
        let members: Vec<usize> = match partners {
            Some(list) => axes.iter().enumerate().filter(|(_, a)| list.contains(&a.name)).map(|(i, _)| i).collect(),
            None => vec![index],
        };
        if members.first() == Some(&index) {
            dimensions.push(Dimension { axes: members, length: axis.values.len() });
        }
    }
    dimensions
}

/// Whether a point uses only current values of the axes that were overridden.
fn fits(axes: &Axes, values: &[&Value]) -> bool {
    let mut pairs = axes.shared.iter().zip(values);
    pairs.all(|(axis, value)| !axes.replaced.contains(&axis.name) || axis.values.contains(value))
}

/// Whether the product contains the point.
fn in_product(dimensions: &[Dimension], axes: &[Axis], values: &[&Value]) -> bool {
    dimensions.iter().all(|dimension| {
        (0..dimension.length).any(|i| dimension.axes.iter().all(|&axis| axes[axis].values[i] == *values[axis]))
    })
}

/// Index of an included value in its axis. Added values follow the axis's own.
fn index_of(((axis, value), added): ((&Axis, &&Value), &mut Vec<Value>)) -> u32 {
    if let Some(index) = axis.values.iter().chain(&*added).position(|known| known == *value) {
        return index as u32;
    }
    added.push((*value).clone());
    (axis.values.len() + added.len() - 1) as u32
}

impl Layout {
    /// The axes, with added values after their own.
    pub fn tables(&self, axes: &[Axis]) -> Vec<Axis> {
        let mut tables = axes.to_vec();
        for (axis, added) in tables.iter_mut().zip(&self.added) {
            axis.values.extend(added.iter().cloned());
        }
        tables
    }

    pub fn into_points(self) -> Points {
        self.points
    }
}

impl Points {
    /// Indices of the points, ascending.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        (0..self.count).map(|row| self.number(row))
    }

    pub const fn len(&self) -> usize {
        self.count
    }

    pub fn number(&self, row: usize) -> usize {
        self.numbers.as_ref().map_or(row, |numbers| numbers[row] as usize)
    }

    /// Row number of a point, if it has a row.
    pub fn position(&self, point: usize) -> Option<usize> {
        match &self.numbers {
            None => (point < self.count).then_some(point),
            Some(numbers) => numbers.binary_search(&u32::try_from(point).ok()?).ok(),
        }
    }

    /// Whether a point comes from an `include`, so that `exclude` does not apply to it.
    pub const fn is_included(&self, point: usize) -> bool {
        point >= self.included
    }

    /// Indices into the values of each axis; empty for a point without a row.
    pub fn row(&self, point: usize) -> &[u32] {
        self.position(point).map_or(&[], |row| &self.indices[row * self.width..(row + 1) * self.width])
    }
}
