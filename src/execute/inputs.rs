//! The sets of inputs that launches alternate between, so that a remembered result is wrong.
//!
//! A kernel that keeps the result of an earlier launch is right as long as its inputs stay the same. So a group has two
//! sets of them: the manifest's, and one whose random fills have a seed that is drawn anew for every group and that no
//! kernel can know. Both lie at the same addresses: a set is copied into the buffers when it is chosen, outside of every
//! timed span. Constants, `iota`, lists and files are the same in both, or permuted where the manifest says so. All
//! buffers whose content varies change, or none.

use super::buffers::{Content, Slot, Store};
use super::sets::{FIRST, OTHER};
use super::stop::Stop;
use crate::backend::{Batch, Device, Prepare};
use crate::model::{Access, BufferPlan, FillPlan, Fixed};

/// The second set takes at most one part in so many of the free memory.
const SHARE_OF_FREE: u64 = 4;

/// Whether the content of a buffer before a launch differs between two sets.
fn is_varied(plan: &BufferPlan) -> bool {
    let is_random = || plan.fill.as_ref().and_then(FillPlan::seed).is_some();
    matches!(plan.access, Access::In | Access::InOut) && (plan.vary.is_some() || is_random())
}

impl Store {
    /// Makes the second set of inputs, if any content varies, its results can be judged, and the memory allows it.
    pub fn vary(&mut self, device: &mut dyn Device) -> Result<(), Stop> {
        let varied = |slot: &Slot| self.get(*slot).is_some_and(|buffer| is_varied(&buffer.plan));
        let slots: Vec<Slot> = self.slots().into_iter().filter(varied).collect();
        let needed: u64 = slots.iter().map(|slot| self.needed(*slot)).sum();
        let is_useful = !slots.is_empty() && !self.sets.expects_first;
        self.sets.there = is_useful && device.memory_free().is_none_or(|free| needed <= free / SHARE_OF_FREE);
        if !self.sets.there {
            return Ok(());
        }
        for slot in slots {
            let made = self.vary_one(device, slot);
            if let Err(Stop::Case(_)) = made {
                // Without memory for it, or with a fill that only the first use refuses, there is one set.
                self.sets.there = false;
                return Ok(());
            }
            made?;
        }
        Ok(())
    }

    /// Whether the content of a buffer differs between the sets.
    pub fn varies(&self, slot: Slot) -> bool {
        self.sets.there && self.get(slot).is_some_and(|buffer| is_varied(&buffer.plan))
    }

    /// Why no content of these buffers differs between the sets; `None` if one does, or none has content.
    pub fn fixed(&self, slots: &[Slot]) -> Option<Fixed> {
        let mut filled =
            slots.iter().filter_map(|slot| self.get(*slot)).filter(|buffer| buffer.has_content()).peekable();
        filled.peek()?;
        match filled.any(|buffer| is_varied(&buffer.plan)) {
            true if self.sets.there => None,
            true if self.sets.expects_first => Some(Fixed::Expected),
            true => Some(Fixed::Memory),
            false => Some(Fixed::NotRandom),
        }
    }

    /// Whether any content differs between the sets.
    pub fn has_two_sets(&self) -> bool {
        self.sets.there
    }

    /// Bytes that the second set of a buffer takes.
    fn needed(&self, slot: Slot) -> u64 {
        let Some(buffer) = self.get(slot) else { return 0 };
        let copies =
            [FIRST, OTHER].map(|set| buffer.contents.get(set).is_none_or(|content| content.pristine.is_none()));
        buffer.plan.bytes().0 * copies.into_iter().filter(|missing| *missing).count() as u64
    }

    fn vary_one(&mut self, device: &mut dyn Device, slot: Slot) -> Result<(), Stop> {
        let Some(buffer) = self.get(slot).filter(|buffer| buffer.contents.len() == 1) else { return Ok(()) };
        let Content { pristine, digest } = buffer.contents[FIRST];
        let (id, plan, size) = (buffer.id, buffer.plan.clone(), device.size(buffer.id));
        if pristine.is_none() {
            let kept = device.alloc(size, 0)?;
            self.set_content(slot, FIRST, Content { pristine: Some(kept), digest });
            device.run(&Batch::once(vec![Prepare::Copy { from: id, to: kept }], Vec::new()))?;
        }
        let other = device.alloc(size, 0)?;
        self.set_content(slot, OTHER, Content { pristine: Some(other), digest: None });
        self.sets.current = OTHER;
        let digest = self.write_content(device, &plan, other);
        self.sets.current = FIRST;
        self.set_content(slot, OTHER, Content { pristine: Some(other), digest: digest? });
        Ok(())
    }

    /// Frees the second set; the buffers hold the first.
    pub fn unvary(&mut self, device: &mut dyn Device) {
        self.sets.there = false;
        for slot in self.slots() {
            let Some(buffer) = self.get(slot).filter(|buffer| buffer.contents.len() > OTHER) else { continue };
            let (first, other) = (buffer.contents[FIRST], buffer.contents[OTHER].pristine);
            let kept = first.pristine.filter(|_| buffer.is_restored());
            for id in [other, first.pristine.filter(|_| kept.is_none())].into_iter().flatten() {
                // A failed free leaks memory, which the next allocation reports.
                let _ = device.free(id);
            }
            self.set_only_content(slot, Content { pristine: kept, ..first });
        }
    }

    /// Brings the inputs of a set into the buffers. Buffers that are restored before every launch get theirs then.
    pub fn choose(&mut self, device: &mut dyn Device, set: usize) -> Result<(), Stop> {
        if set == self.sets.current || !self.sets.there {
            return Ok(());
        }
        self.sets.current = set;
        let shared = self.shared_inputs().into_iter().filter(|slot| self.varies(*slot));
        let copy = |slot: Slot| Some(Prepare::Copy { from: self.first_content(slot)?, to: self.get(slot)?.id });
        let copies: Vec<Prepare> = shared.filter_map(copy).collect();
        device.run(&Batch::once(copies, Vec::new()))?;
        Ok(())
    }
}
