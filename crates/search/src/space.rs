//! A search space: parameters with lists of values, and the valid combinations of these.

mod constraint;
mod diagram;
mod expression;
mod node;
mod parameter;

use diagram::Diagram;

pub use constraint::{Constraint, SpaceError};
pub use expression::{Expression, ExpressionError};
pub use parameter::{Parameter, Scale, Value};

/// A point: the index of the value of each parameter.
pub type Point = Box<[u16]>;

/// Parameters and their valid combinations, indexed from 0.
#[derive(Debug, Clone)]
pub struct Space {
    parameters: Vec<Parameter>,
    diagram: Diagram,
}

impl Space {
    /// Creates a space from a list of valid points.
    pub fn from_points(parameters: Vec<Parameter>, points: Vec<Point>) -> Result<Self, SpaceError> {
        let diagram = Diagram::list(parameters.len(), points).ok_or(SpaceError::Empty)?;
        Ok(Self { parameters, diagram })
    }

    /// Creates the space of all combinations that satisfy the constraints.
    pub fn new(parameters: Vec<Parameter>, constraints: &[Constraint]) -> Result<Self, SpaceError> {
        let diagram = constraint::compile(&parameters, constraints)?;
        Ok(Self { parameters, diagram })
    }

    /// Parameters, in order.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Number of valid points, at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a space has at least one point")]
    pub fn len(&self) -> u64 {
        self.diagram.len()
    }

    /// Point with index `number`, which must be below [`Self::len`].
    #[must_use]
    pub fn point(&self, number: u64) -> Point {
        let mut point = vec![0; self.parameters.len()].into_boxed_slice();
        self.diagram.write_point(number, &mut point);
        point
    }

    /// Writes the point with index `number`, which must be below [`Self::len`], into a slice with one element per
    /// parameter.
    pub fn write_point(&self, number: u64, point: &mut [u16]) {
        self.diagram.write_point(number, point);
    }

    /// Index of the valid point at a position in the unit cube, with coordinates in `0.0..1.0`. Equal volumes contain
    /// the same number of points, so an even cover of the cube covers the space evenly.
    #[must_use]
    pub fn number_at(&self, position: &[f64]) -> u64 {
        let mut point = vec![0; self.parameters.len()];
        self.diagram.write_at(position, &mut point);
        self.diagram.number(&point).unwrap_or_default()
    }

    /// Index of the point, or of a nearby valid one.
    #[must_use]
    pub fn nearest(&self, point: &[u16]) -> u64 {
        let mut point = point.to_vec();
        self.diagram.repair(&mut point);
        self.diagram.number(&point).unwrap_or_default()
    }

    /// Index of a point; `None` if it is invalid.
    #[must_use]
    pub fn number(&self, point: &[u16]) -> Option<u64> {
        self.diagram.number(point)
    }

    /// Values of a point.
    #[must_use]
    pub fn values(&self, number: u64) -> Vec<Value> {
        self.point(number)
            .iter()
            .zip(&self.parameters)
            .map(|(&index, parameter)| parameter.values[usize::from(index)].clone())
            .collect()
    }

    /// Valid points that differ in one parameter, nearest values first.
    #[must_use]
    pub fn neighbours(&self, number: u64) -> Vec<u64> {
        let mut point = self.point(number);
        let mut neighbours = Vec::new();
        for (place, parameter) in self.parameters().iter().enumerate() {
            let own = point[place];
            for value in 0..parameter.values.len() as u16 {
                if value != own {
                    point[place] = value;
                    neighbours.extend(self.number(&point).map(|number| (value.abs_diff(own), number)));
                }
            }
            point[place] = own;
        }
        neighbours.sort_unstable();
        neighbours.into_iter().map(|(_, number)| number).collect()
    }

    /// Valid points that differ in exactly two parameters.
    #[must_use]
    pub fn second_neighbours(&self, number: u64) -> Vec<u64> {
        let mut point = self.point(number);
        let own = point.clone();
        let mut found = Vec::new();
        for first in 0..own.len() {
            for second in first + 1..own.len() {
                for one in (0..self.parameters()[first].values.len() as u16).filter(|&value| value != own[first]) {
                    point[first] = one;
                    for two in (0..self.parameters()[second].values.len() as u16).filter(|&value| value != own[second])
                    {
                        point[second] = two;
                        found.extend(self.number(&point));
                    }
                }
                point[first] = own[first];
                point[second] = own[second];
            }
        }
        found
    }

    /// Number of parameters in which two points differ.
    #[must_use]
    pub fn distance(&self, one: u64, other: u64) -> usize {
        self.point(one).iter().zip(&*self.point(other)).filter(|(a, b)| a != b).count()
    }
}
