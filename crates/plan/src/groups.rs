//! Groups of cells that are compared with each other.
//!
//! Cells of a group have the same value for every axis that is not compared. A group runs as a unit, on one device.

use std::collections::HashMap;

use super::planned_outcome::Cell;
use super::points::Points;
use runner_types::GroupPlace;

/// Cells of the matrix, group by group, each group in the manifest's order.
#[derive(Debug, Default)]
pub struct Groups {
    cells: Vec<Cell>,
    /// Start of each group, followed by the end of the last.
    starts: Vec<u32>,
    /// Index of each group in the whole plan, if this is a part of it.
    ordinals: Option<Vec<u32>>,
}

impl Groups {
    /// Drops cells, and groups that become empty.
    pub fn retain(&mut self, keep: impl Fn(Cell) -> bool) {
        let (mut cells, mut starts, mut ordinals) = (Vec::new(), vec![0], Vec::new());
        for index in 0..self.len() {
            cells.extend(self.get(index).iter().copied().filter(|&cell| keep(cell)));
            if starts.last() != Some(&(cells.len() as u32)) {
                starts.push(cells.len() as u32);
                ordinals.push(self.ordinal(index));
            }
        }
        *self = Self { cells, starts, ordinals: Some(ordinals) };
    }

    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub const fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Index of a group in the whole plan.
    pub fn ordinal(&self, index: usize) -> u32 {
        self.ordinals.as_ref().and_then(|ordinals| ordinals.get(index)).copied().unwrap_or(index as u32)
    }

    /// Cells of a group; empty if the index is out of range.
    pub fn get(&self, index: usize) -> &[Cell] {
        match self.starts.get(index..index + 2) {
            Some(&[start, end]) => &self.cells[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Groups the cells, which are in the manifest's order. Groups are ordered by their first cells. If `places` are given,
/// these are the groups of a partial plan.
pub fn form(
    points: &Points,
    compared: &[bool],
    variants: usize,
    mut cells: Vec<Cell>,
    places: Option<&[GroupPlace]>,
) -> Groups {
    let group_of: Vec<u32> = group_numbers(points, compared);
    let group_at = |point: usize| points.position(point).and_then(|row| group_of.get(row)).copied().unwrap_or_default();
    let group = |cell: &Cell| group_at(cell.ordinal as usize / variants);
    // Groups are numbered in the order of their first points; the stable sort keeps the order of cells within each.
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
    let ordinals = places.map(|places| {
        let known: HashMap<u32, u32> =
            places.iter().map(|place| (group_at(place.point as usize), place.ordinal)).collect();
        let first_cells = starts.iter().filter_map(|start| cells.get(*start as usize));
        first_cells.map(|cell| known.get(&group(cell)).copied().unwrap_or_default()).collect()
    });
    Groups { cells, starts, ordinals }
}

fn group_numbers(points: &Points, compared: &[bool]) -> Vec<u32> {
    // Points are distinct, so without compared axes each point is its own group.
    if !compared.contains(&true) {
        return (0..points.len() as u32).collect();
    }
    let width = compared.iter().filter(|compared| !**compared).count();
    let rows = points.numbers().map(|point| points.row(point));
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
