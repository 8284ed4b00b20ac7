//! The sets of inputs that launches alternate between, so that a remembered result is wrong.
//!
//! A kernel that keeps an earlier launch's result stays right as long as its inputs stay the same. So a group has up to
//! three sets: the manifest's; one whose random fills use a secret seed drawn at run time; and a mixture, which is the
//! first set except for one range of each buffer that comes from the second. A kernel that tells the first two apart by
//! a single element mistakes the third for one of them. All sets use the same addresses: choosing a set copies it into
//! the buffers, outside every timed span. Constants, `iota`, lists and files are the same in all sets, or permuted if
//! the manifest says so. Either all buffers with varying content change, or none.

use super::buffers::{Content, Slot, Store};
use super::input_sets::{FIRST, MIXED, OTHER};
use super::stop::Stop;
use runner_backend::{Batch, BufferId, Device, Prepare};
use runner_types::{Access, BufferPlan, FillPlan, FixedInputsReason};

/// The sets together are limited to the free memory divided by this.
const SHARE_OF_FREE: u64 = 4;

/// Whether the content of a buffer before a launch differs between two sets.
fn is_varied(plan: &BufferPlan) -> bool {
    let is_random = || plan.fill.as_ref().and_then(FillPlan::seed).is_some();
    matches!(plan.access, Access::In | Access::InOut) && (plan.vary.is_some() || is_random())
}

/// Whether a range of a buffer's content can come from another set.
fn is_mixed(plan: &BufferPlan) -> bool {
    is_varied(plan) && (plan.vary.is_some() || plan.fill.as_ref().is_some_and(FillPlan::is_random_by_element))
}

impl Store {
    /// Creates up to `most` sets of inputs, if any content varies, the results can be judged, and memory allows it.
    pub fn vary(&mut self, device: &mut dyn Device, most: usize) -> Result<(), Stop> {
        let varied = |slot: &Slot| self.get(*slot).is_some_and(|buffer| is_varied(&buffer.plan));
        let slots: Vec<Slot> = self.slots().into_iter().filter(varied).collect();
        let mixes = slots.iter().any(|slot| self.get(*slot).is_some_and(|buffer| is_mixed(&buffer.plan)));
        let count = if mixes { most } else { most.min(MIXED) };
        let needed: u64 = slots.iter().map(|slot| self.needed(*slot, count)).sum();
        let is_useful = !slots.is_empty() && !self.sets.expects_first;
        if !is_useful || device.memory_free().is_some_and(|free| needed > free / SHARE_OF_FREE) {
            self.sets.count = 1;
            return Ok(());
        }
        self.sets.count = count;
        let _span = tracing::debug_span!("generate the other sets of inputs", count).entered();
        for slot in slots {
            let made = self.vary_one(device, slot);
            if let Err(Stop::Case(_)) = made {
                // If memory is short, or if a fill is rejected on first use, there is only one set.
                self.sets.count = 1;
                return Ok(());
            }
            made?;
        }
        Ok(())
    }

    /// Whether the content of a buffer differs between the sets.
    pub fn varies(&self, slot: Slot) -> bool {
        self.has_other_sets() && self.get(slot).is_some_and(|buffer| is_varied(&buffer.plan))
    }

    /// Whether the content of these buffers can differ between two sets with known results for both.
    pub fn can_vary(&self, slots: &[Slot]) -> bool {
        let varied = |slot: &Slot| self.get(*slot).is_some_and(|buffer| is_varied(&buffer.plan));
        !self.sets.expects_first && slots.iter().any(varied)
    }

    /// Why the content of these buffers is the same in all sets; `None` if it is not, or if there is no content.
    pub fn fixed(&self, slots: &[Slot]) -> Option<FixedInputsReason> {
        let mut filled =
            slots.iter().filter_map(|slot| self.get(*slot)).filter(|buffer| buffer.has_content()).peekable();
        filled.peek()?;
        match filled.any(|buffer| is_varied(&buffer.plan)) {
            true if self.has_other_sets() => None,
            true if self.sets.expects_first => Some(FixedInputsReason::Expected),
            true => Some(FixedInputsReason::Memory),
            false => Some(FixedInputsReason::NotRandom),
        }
    }

    pub const fn has_other_sets(&self) -> bool {
        self.sets.count > 1
    }

    /// Additional bytes that `count` sets of a buffer take.
    fn needed(&self, slot: Slot, count: usize) -> u64 {
        let Some(buffer) = self.get(slot) else { return 0 };
        let is_missing = |set: &usize| buffer.contents.get(*set).is_none_or(|content| content.pristine.is_none());
        buffer.plan.bytes().0.saturating_mul((0..count).filter(is_missing).count() as u64)
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
        for set in OTHER..self.sets.count {
            let other = device.alloc(size, 0)?;
            self.set_content(slot, set, Content { pristine: Some(other), digest: None });
            self.sets.current = set;
            let digest = self.write_content(device, &plan, other);
            self.sets.current = FIRST;
            self.set_content(slot, set, Content { pristine: Some(other), digest: digest? });
        }
        Ok(())
    }

    /// Frees all sets but the first, which the buffers hold.
    pub fn unvary(&mut self, device: &mut dyn Device) {
        self.sets.count = 1;
        for slot in self.slots() {
            let Some(buffer) = self.get(slot).filter(|buffer| buffer.contents.len() > OTHER) else { continue };
            let first = buffer.contents[FIRST];
            let kept = first.pristine.filter(|_| buffer.is_restored());
            let freed: Vec<BufferId> = buffer.contents.iter().filter_map(|content| content.pristine).collect();
            for id in freed.into_iter().filter(|id| Some(*id) != kept) {
                // A failed free leaks memory, which the next allocation reports.
                let _ = device.free(id);
            }
            self.set_only_content(slot, Content { pristine: kept, ..first });
        }
    }

    /// Copies a set's inputs into the buffers, except those that are restored before every launch anyway.
    pub fn choose(&mut self, device: &mut dyn Device, set: usize) -> Result<(), Stop> {
        if set == self.sets.current || !self.has_other_sets() {
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
