//! Forms the product of the shared axes, in the manifest's order, and the points added to it.

use std::collections::BTreeSet;

use crate::experiment::{Axis, Manifest};
use crate::model::{Diagnostic, Value};

use super::MAX_CELLS;
use super::axes::Axes;

/// Every point, a row of indices into the axes' values.
#[derive(Debug, Default)]
pub struct Points {
    /// The number of axes in each row.
    width: usize,
    indices: Vec<u32>,
    /// Rows; stored separately, since a manifest without axes has one row of width zero.
    count: usize,
    /// The first row that was included and is not part of the product.
    included: usize,
}

/// Points, with the values that included ones add to their axes.
#[derive(Debug)]
pub struct Layout {
    points: Points,
    added: Vec<Vec<Value>>,
}

/// Multiplies the axes out and appends the included points.
pub fn lay_out(manifest: &Manifest, axes: &Axes, variants: usize) -> Result<Layout, Diagnostic> {
    let dimensions = dimensions(&axes.shared, &manifest.zip);
    let product = dimensions.iter().map(|d| d.length as u64).try_fold(1_u64, u64::checked_mul);
    let cells = product.and_then(|points| points.checked_mul(variants.max(1) as u64));
    if cells.is_none_or(|cells| cells > MAX_CELLS) {
        let count = cells.map_or_else(|| "more than 2^64".to_owned(), |cells| cells.to_string());
        let message = format!("the matrix has {count} cells, at most {MAX_CELLS} are planned");
        return Err(Diagnostic::whole(message).hint("shorten an axis, or zip axes that belong together"));
    }
    let mut points = multiply(&dimensions, axes.shared.len());
    let mut added = vec![Vec::new(); axes.shared.len()];
    let mut seen = BTreeSet::new();
    for include in &manifest.include {
        let values: Option<Vec<&Value>> = axes.shared.iter().map(|axis| include.get(&axis.name)).collect();
        let Some(values) = values else { continue };
        if !fits(axes, &values) || in_product(&dimensions, &axes.shared, &values) {
            continue;
        }
        let row: Vec<u32> = axes.shared.iter().zip(&values).zip(&mut added).map(index_of).collect();
        if seen.insert(row.clone()) {
            points.indices.extend(row);
            points.count += 1;
        }
    }
    Ok(Layout { points, added })
}

/// Axes that advance together.
struct Dimension {
    axes: Vec<usize>,
    length: usize,
}

/// Returns each axis, or list of zipped axes, once: at the place of its first axis.
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

/// Counts through all points like an odometer: the last dimension changes fastest.
fn multiply(dimensions: &[Dimension], width: usize) -> Points {
    let count = dimensions.iter().map(|d| d.length).product();
    let mut indices = vec![0_u32; count * width];
    let mut run = count;
    for dimension in dimensions {
        // A value of this dimension is repeated for `run` rows.
        run /= dimension.length.max(1);
        for (row, indices) in indices.chunks_exact_mut(width).enumerate() {
            let value = (row / run % dimension.length) as u32;
            for &axis in &dimension.axes {
                indices[axis] = value;
            }
        }
    }
    Points { width, indices, count, included: count }
}

/// Whether a point has only values of the axes that replaced the manifest's.
fn fits(axes: &Axes, values: &[&Value]) -> bool {
    let mut pairs = axes.shared.iter().zip(values);
    pairs.all(|(axis, value)| !axes.replaced.contains(&axis.name) || axis.values.contains(value))
}

/// Whether the product has the point already.
fn in_product(dimensions: &[Dimension], axes: &[Axis], values: &[&Value]) -> bool {
    dimensions.iter().all(|dimension| {
        (0..dimension.length).any(|i| dimension.axes.iter().all(|&axis| axes[axis].values[i] == *values[axis]))
    })
}

/// Returns the index of an included value in its axis; added values come after the axis's own.
fn index_of(((axis, value), added): ((&Axis, &&Value), &mut Vec<Value>)) -> u32 {
    if let Some(index) = axis.values.iter().chain(&*added).position(|known| known == *value) {
        return index as u32;
    }
    added.push((*value).clone());
    (axis.values.len() + added.len() - 1) as u32
}

impl Layout {
    /// Returns the axes, with the added values after their own.
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
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether a point was included, so that `exclude` does not apply to it.
    pub const fn is_included(&self, point: usize) -> bool {
        point >= self.included
    }

    /// Indices into the values of each axis.
    pub fn row(&self, point: usize) -> &[u32] {
        &self.indices[point * self.width..(point + 1) * self.width]
    }
}
