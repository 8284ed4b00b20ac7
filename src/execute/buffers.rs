//! The memory of a group: inputs made once, device buffers shared by the cases that agree in them.
//!
//! Every allocated buffer lies between two guard zones with a pattern; outputs are poisoned and `inout` buffers are
//! restored before every launch. Variants that have a buffer of the same name, type, length, access and content share
//! its memory, so that a group takes little more than its largest case. Contents are made on the device where it can, and
//! on the host only when a check needs them. Finds what changed, and does not judge it.

use std::sync::Arc;

use super::fill;
use super::kernels::Kernels;
use super::stop::Stop;
use crate::backend::{Batch, BufferId, Device, DeviceError, ModuleId, Prepare};
use crate::model::{Access, Allocation, BufferPlan, ElementType, FillPlan, GUARD_BYTES};

/// The pattern of the guard zones. It differs from every poison, so that a kernel that copies too much is detected.
pub const GUARD_PATTERN: u8 = 0xA5;

/// Which launch an output is poisoned for. The patterns differ, so that an unwritten element cannot be right twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poison {
    /// The launch that is checked first: every float is NaN.
    Checked,
    /// The launches that are timed.
    Timed,
}

impl Poison {
    /// Every byte of the output.
    pub const fn byte(self, element: ElementType) -> u8 {
        match (self, element.is_float()) {
            (Self::Checked, true) => 0xFF,
            (Self::Checked, false) | (Self::Timed, true) => 0xCB,
            (Self::Timed, false) => 0xB4,
        }
    }
}

/// A buffer's memory on the device.
#[derive(Debug)]
pub struct Buffer {
    pub plan: BufferPlan,
    /// The module whose variable it is.
    module: Option<ModuleId>,
    pub id: BufferId,
    /// A device copy of the first content, where it is restored before every launch.
    pristine: Option<BufferId>,
    /// The digest of the first content of an input that is not restored, where the device computes it.
    digest: Option<u64>,
}

impl Buffer {
    /// A variable of a module has no guard zones.
    pub fn is_symbol(&self) -> bool {
        self.module.is_some()
    }

    /// Whether it has defined content before the launch.
    pub fn has_content(&self) -> bool {
        matches!(self.plan.access, Access::In | Access::InOut)
    }

    /// The device memory with the first content, between launches that change no input.
    pub fn first_content(&self) -> Option<BufferId> {
        self.has_content().then_some(self.pristine.unwrap_or(self.id))
    }
}

/// Place of a buffer in the [`Store`].
pub type Slot = usize;

/// The buffers and inputs of a group.
#[derive(Debug, Default)]
pub struct Store {
    inputs: Vec<(BufferPlan, Arc<Vec<u8>>)>,
    buffers: Vec<Option<Buffer>>,
    /// Other sets of a buffer's memory, in order.
    copies: Vec<(Slot, Vec<BufferId>)>,
    /// Kernels that fill and compare on the device; `None` where it cannot run them.
    pub kernels: Option<Kernels>,
}

impl Store {
    pub fn get(&self, slot: Slot) -> Option<&Buffer> {
        self.buffers.get(slot).and_then(Option::as_ref)
    }

    /// The first content of a buffer, made on first use.
    pub fn input(&mut self, plan: &BufferPlan) -> Result<Arc<Vec<u8>>, Stop> {
        if let Some((_, bytes)) = self.inputs.iter().find(|(known, _)| same_input(known, plan)) {
            return Ok(Arc::clone(bytes));
        }
        let Some(fill) = content(plan) else {
            let message = format!("buffer `{}` has no content before the launch: give it a fill", plan.name);
            return Err(Stop::unresolved(message));
        };
        let bytes = Arc::new(fill::fill(plan, fill).map_err(Stop::unresolved)?);
        self.inputs.push((plan.clone(), Arc::clone(&bytes)));
        Ok(bytes)
    }

    /// Memory for a buffer, shared with an equal one if there is one. `symbol` names the variable to use as memory.
    pub fn bind(
        &mut self,
        device: &mut dyn Device,
        plan: &BufferPlan,
        symbol: Option<(ModuleId, &str)>,
    ) -> Result<Slot, Stop> {
        let module = symbol.map(|(module, _)| module);
        let equal = |b: &Buffer| b.plan == *plan && b.module == module;
        if let Some(slot) = self.buffers.iter().position(|b| b.as_ref().is_some_and(equal)) {
            return Ok(slot);
        }
        let size = usize::try_from(plan.bytes().0).unwrap_or(usize::MAX);
        let id = match symbol {
            Some((module, mangled)) => variable(device, plan, module, mangled, size)?,
            None => device.alloc(size, GUARD_BYTES as usize)?,
        };
        device.label(id, &plan.name);
        let mut buffer = Buffer { plan: plan.clone(), module, id, pristine: None, digest: None };
        match self.fill_in(device, &mut buffer, size) {
            Ok(()) => {
                self.buffers.push(Some(buffer));
                Ok(self.buffers.len() - 1)
            }
            Err(stop) => {
                release(device, &buffer);
                Err(stop)
            }
        }
    }

    fn fill_in(&mut self, device: &mut dyn Device, buffer: &mut Buffer, size: usize) -> Result<(), Stop> {
        if !buffer.is_symbol() {
            device.write_guards(buffer.id, GUARD_PATTERN)?;
        }
        if !buffer.has_content() {
            return Ok(());
        }
        // A module's variable is restored even where it is only read: another case may hold it with other content.
        if buffer.plan.access == Access::InOut || buffer.is_symbol() {
            buffer.pristine = Some(device.alloc(size, 0)?);
        }
        self.write_content(device, &buffer.plan, buffer.pristine.unwrap_or(buffer.id))?;
        if buffer.plan.access == Access::In
            && let Some(kernels) = &self.kernels
        {
            buffer.digest = Some(kernels.digest(device, buffer.pristine.unwrap_or(buffer.id))?);
        }
        Ok(())
    }

    /// Writes the first content of a buffer: made on the device if it can, else uploaded.
    fn write_content(&mut self, device: &mut dyn Device, plan: &BufferPlan, to: BufferId) -> Result<(), Stop> {
        if let Some(kernels) = &self.kernels
            && kernels.fill(device, plan, to)?
        {
            return Ok(());
        }
        let first = self.input(plan)?;
        Ok(device.upload(to, 0, &first)?)
    }

    /// Whether the device finds that a buffer still has its first content, bit for bit.
    pub fn surely_unchanged(&self, device: &mut dyn Device, slot: Slot) -> Result<bool, Stop> {
        let (Some(kernels), Some(buffer)) = (&self.kernels, self.get(slot)) else { return Ok(false) };
        let Some(digest) = buffer.digest else { return Ok(false) };
        Ok(kernels.digest(device, buffer.id)? == digest)
    }

    /// Operations that restore the state of a case's buffers before a launch.
    pub fn prepare(&self, slots: &[Slot], poison: Poison) -> Vec<Prepare> {
        let step = |buffer: &Buffer| match (buffer.plan.access, buffer.pristine) {
            (_, Some(from)) => Some(Prepare::Copy { from, to: buffer.id }),
            (Access::Out, None) => Some(Prepare::Fill { buffer: buffer.id, byte: poison.byte(buffer.plan.element) }),
            _ => None,
        };
        slots.iter().filter_map(|slot| self.get(*slot)).filter_map(step).collect()
    }

    /// The buffer, if a run that the host times allocates its memory itself.
    pub fn allocated_each_run(&self, slot: Slot) -> Option<(BufferId, Allocation)> {
        let buffer = self.get(slot).filter(|buffer| !buffer.plan.allocate.is_once())?;
        Some((buffer.id, buffer.plan.allocate))
    }

    /// The `nth` copy of a buffer, with its first content where it has one; made on first use.
    pub fn copy(&mut self, device: &mut dyn Device, slot: Slot, nth: usize) -> Result<BufferId, DeviceError> {
        let place = self.copies.iter().position(|(of, _)| *of == slot).unwrap_or_else(|| {
            self.copies.push((slot, Vec::new()));
            self.copies.len() - 1
        });
        if let Some(id) = self.copies[place].1.get(nth) {
            return Ok(*id);
        }
        let buffer = self.get(slot);
        let (size, from) = buffer.map_or((0, None), |buffer| (device.size(buffer.id), buffer.first_content()));
        let name = buffer.map(|buffer| buffer.plan.name.clone());
        let id = device.alloc(size, GUARD_BYTES as usize)?;
        if let Some(name) = &name {
            device.label(id, name);
        }
        self.copies[place].1.push(id);
        if let Some(from) = from {
            device.run(&Batch::once(vec![Prepare::Copy { from, to: id }], Vec::new()))?;
        }
        Ok(id)
    }

    /// Operations that restore the first `count` copies of an `inout` buffer.
    pub fn prepare_copies(&self, slot: Slot, count: usize) -> Vec<Prepare> {
        let Some(from) = self.get(slot).and_then(|buffer| buffer.pristine) else { return Vec::new() };
        let copies = self.copies.iter().find(|(of, _)| *of == slot).map_or(&[][..], |(_, copies)| copies);
        copies.iter().take(count).map(|to| Prepare::Copy { from, to: *to }).collect()
    }

    /// Frees all copies.
    pub fn free_copies(&mut self, device: &mut dyn Device) {
        for id in self.copies.drain(..).flat_map(|(_, copies)| copies) {
            // A failed free leaks memory, which the next allocation reports.
            let _ = device.free(id);
        }
    }

    /// Restores an input that was changed.
    pub fn restore(&mut self, device: &mut dyn Device, slot: Slot) -> Result<(), Stop> {
        let Some((id, plan)) = self.get(slot).filter(|b| b.has_content()).map(|b| (b.id, b.plan.clone())) else {
            return Ok(());
        };
        self.write_content(device, &plan, id)
    }

    /// Buffers that no launch may change and that are not restored before each.
    pub fn shared_inputs(&self) -> Vec<Slot> {
        let shared = |b: &Buffer| b.plan.access == Access::In && !b.is_symbol();
        (0..self.buffers.len()).filter(|slot| self.get(*slot).is_some_and(shared)).collect()
    }

    /// Frees every buffer that is not in `kept`.
    pub fn retain(&mut self, device: &mut dyn Device, kept: &[Slot]) {
        for (slot, place) in self.buffers.iter_mut().enumerate() {
            if !kept.contains(&slot)
                && let Some(buffer) = place.take()
            {
                release(device, &buffer);
            }
        }
    }
}

/// A failed free leaks memory, which the next allocation reports.
fn release(device: &mut dyn Device, buffer: &Buffer) {
    for id in [Some(buffer.id), buffer.pristine].into_iter().flatten() {
        let _ = device.free(id);
    }
}

fn variable(
    device: &mut dyn Device,
    plan: &BufferPlan,
    module: ModuleId,
    mangled: &str,
    size: usize,
) -> Result<BufferId, Stop> {
    let id = device.symbol(module, mangled)?;
    let found = device.size(id);
    if found == size {
        return Ok(id);
    }
    let symbol = plan.symbol.as_ref().map_or(mangled, |s| &s.name);
    Err(Stop::launch_error(format!(
        "buffer `{}` has {size} bytes, the variable `{symbol}` has {found}: declare it with the buffer's length",
        plan.name
    )))
}

/// The fill of a buffer that has content before the launch.
fn content(plan: &BufferPlan) -> Option<&FillPlan> {
    plan.fill.as_ref().filter(|_| matches!(plan.access, Access::In | Access::InOut))
}

fn same_input(known: &BufferPlan, plan: &BufferPlan) -> bool {
    known.name == plan.name
        && known.element == plan.element
        && known.len == plan.len
        && known.fill == plan.fill
        && content(plan).is_some()
}
