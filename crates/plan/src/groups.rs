//! Cells that are compared with each other: they share the value of every axis that is not compared.

use std::collections::HashMap;

use super::planned_outcome::Cell;
use super::points::Points;

/// The cells of the matrix, group after group; those of a group are in the manifest's order.
#[derive(Debug, Default)]
pub struct Groups {
    cells: Vec<Cell>,
    /// Where each group starts, and at last where the last one ends.
    starts: Vec<u32>,
}

impl Groups {
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub const fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns the cells of a group; none for an index past the last.
    pub fn get(&self, index: usize) -> &[Cell] {
        match self.starts.get(index..index + 2) {
            Some(&[start, end]) => &self.cells[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Puts the cells, which are in the manifest's order, into groups. Groups are in the order of their first cells.
pub fn form(points: &Points, compared: &[bool], variants: usize, mut cells: Vec<Cell>) -> Groups {
    let group_of: Vec<u32> = group_numbers(points, compared);
    let group = |cell: &Cell| group_of[cell.ordinal as usize / variants];
    // Groups are numbered in the order of their first points, and the sort keeps the order of the cells within each.
    if compared.contains(&true) {
        cells.sort_by_key(group);
    }
    let mut starts = vec![0];
    for (index, pair) in cells.windows(2).enumerate() {
        if group(&pair[0]) != group(&pair[1]) {
            starts.push(index as u32 + 1);
        }
    }
    starts.push(cells.len() as u32);
    Groups { cells, starts }
}

/// Returns the number of each point's group.
fn group_numbers(points: &Points, compared: &[bool]) -> Vec<u32> {
    // Points are distinct, so without compared axes each is a group of its own.
    if !compared.contains(&true) {
        return (0..points.len() as u32).collect();
    }
    let width = compared.iter().filter(|compared| !**compared).count();
    let rows = (0..points.len()).map(|point| points.row(point));
    let shared = |row: &[u32]| -> Vec<u32> {
        row.iter().zip(compared).filter(|(_, compared)| !**compared).map(|(index, _)| *index).collect()
    };
    let keys: Vec<u32> = rows.flat_map(shared).collect();
    let mut known: HashMap<&[u32], u32> = HashMap::new();
    let number = |point: usize| {
        let next = known.len() as u32;
        *known.entry(&keys[point * width..(point + 1) * width]).or_insert(next)
    };
    (0..points.len()).map(number).collect()
}
