//! Rows that all functions of a kernel share: constants, parameters, and values that depend only on the lane.

use std::collections::HashMap;

use crate::mir::Opnd;
use crate::program::ParamRow;
use crate::program::ins::{Area, Slot};
use crate::program::row::{LANES, Row};

/// Rows that all functions of a kernel share.
#[derive(Debug, Default)]
pub struct Constants {
    pub rows: Vec<Row<u32>>,
    known: HashMap<(u64, bool), u32>,
    lanes: HashMap<&'static str, u32>,
    /// Rows that a launch fills with its parameters.
    pub params: Vec<ParamRow>,
}

impl Constants {
    /// Returns a row with the same bits in all lanes.
    pub fn uniform(&mut self, bits: u64, wide: bool) -> Opnd {
        let offset = *self.known.entry((bits, wide)).or_insert_with(|| {
            let at = self.rows.len() as u32 * 128;
            if wide {
                let halves = Row(std::array::from_fn(|k| (bits >> (32 * (k % 2))) as u32));
                self.rows.extend([halves, halves]);
            } else {
                self.rows.push(Row([bits as u32; LANES]));
            }
            at
        });
        Opnd::Fixed(Slot::new(Area::Constants, offset))
    }

    /// Returns the row of a kernel parameter.
    pub fn param(&mut self, offset: u32, wide: bool) -> Opnd {
        let known = self.params.iter().find(|p| (p.offset, p.wide) == (offset, wide)).map(|p| p.row);
        let row = known.unwrap_or_else(|| {
            let row = self.rows.len() as u32;
            self.rows.extend(vec![Row([0; LANES]); 1 + usize::from(wide)]);
            self.params.push(ParamRow { row, offset, wide });
            row
        });
        Opnd::Fixed(Slot::new(Area::Constants, row * 128))
    }

    /// Returns a row whose value depends only on the lane.
    pub fn lanes(&mut self, name: &'static str, lane: impl Fn(u32) -> u32) -> Opnd {
        let rows = &mut self.rows;
        let offset = *self.lanes.entry(name).or_insert_with(|| {
            rows.push(Row(std::array::from_fn(|k| lane(k as u32))));
            (rows.len() as u32 - 1) * 128
        });
        Opnd::Fixed(Slot::new(Area::Constants, offset))
    }
}
