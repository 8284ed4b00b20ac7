//! The memory of a group: inputs generated once, and device buffers shared by cases whose buffers agree.
//!
//! Every allocated buffer lies between two guard zones filled with a pattern. Before every launch, outputs (and
//! `scratch` on request) are poisoned, and `inout` buffers are restored. Variants whose buffers agree in name, type,
//! length, access and content share the memory, so a group takes little more than its largest case. The device
//! generates contents if it can; the host generates them only when a check needs them. [`super::inputs`] selects which
//! set of inputs they hold. This module finds changes but does not judge them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fill;
use super::input_sets::Sets;
use super::kernels::Kernels;
use super::stop::Stop;
use runner_backend::{Batch, BufferId, Device, DeviceError, ModuleId, Prepare};
use runner_types::{Access, Allocation, BufferPlan, ElementType, FillPlan, GUARD_BYTES};

/// Pattern of the guard zones. It differs from every poison, so that a kernel that copies too much is detected.
pub const GUARD_PATTERN: u8 = 0xA5;

/// Contents of at least this many bytes are not generated in host memory just to be reduced: touching the pages costs
/// more than computing the elements.
const LARGE: u64 = 1 << 24;

/// Kind of launch for which an output is poisoned. The patterns differ, so that an unwritten element cannot be correct
/// in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poison {
    /// The launch that is checked first. Every float is NaN.
    Checked,
    Timed,
}

impl Poison {
    /// Byte that fills the output.
    pub const fn byte(self, element: ElementType) -> u8 {
        match (self, element.is_float()) {
            (Self::Checked, true) => 0xFF,
            (Self::Checked, false) | (Self::Timed, true) => 0xCB,
            (Self::Timed, false) => 0xB4,
        }
    }
}

#[derive(Debug)]
pub struct Buffer {
    pub plan: BufferPlan,
    /// For a buffer that is a module's variable: the module and the variable's mangled name.
    variable: Option<(ModuleId, String)>,
    pub id: BufferId,
    /// Initial content per set of inputs: one entry if all sets share it, none if the buffer has no content.
    pub contents: Vec<Content>,
}

/// Initial content of a buffer in one set of inputs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Content {
    /// Copy on the device; `None` if only the buffer itself holds the content.
    pub pristine: Option<BufferId>,
    /// Digest of an input that must not change, if the device computes digests.
    pub digest: Option<u64>,
}

impl Buffer {
    /// Whether the buffer is a module's variable, which has no guard zones.
    pub fn is_symbol(&self) -> bool {
        self.variable.is_some()
    }

    /// Whether the buffer has defined content before the launch.
    pub fn has_content(&self) -> bool {
        matches!(self.plan.access, Access::In | Access::InOut)
    }

    /// Whether the buffer is restored before every launch. A module's variable is restored even if it is read-only,
    /// because another case may use it with different content.
    pub fn is_restored(&self) -> bool {
        self.has_content() && (self.plan.access == Access::InOut || self.is_symbol())
    }

    pub fn content(&self, set: usize) -> Option<&Content> {
        self.contents.get(set).or(self.contents.first())
    }
}

/// Index of a buffer in the [`Store`].
pub type Slot = usize;

/// An input on the host, with the plan that it was generated from.
pub type Input = (BufferPlan, Arc<Vec<u8>>);

#[derive(Debug, Default)]
pub struct Store {
    inputs: Vec<Input>,
    buffers: Vec<Option<Buffer>>,
    /// Additional copies of a buffer, in order.
    copies: Vec<(Slot, Vec<BufferId>)>,
    /// For each `scratch` buffer, the index of the case that last ran with it.
    users: BTreeMap<Slot, usize>,
    pub sets: Sets,
    /// Kernels that fill and compare on the device; `None` if it cannot run them.
    pub kernels: Option<Kernels>,
}

impl Store {
    /// A store without buffers; its inputs are on the host.
    pub fn with_inputs(sets: Sets, inputs: Vec<Input>) -> Self {
        Self { inputs, sets, ..Self::default() }
    }

    /// Host inputs and their sets.
    pub fn into_inputs(self) -> (Sets, Vec<Input>) {
        (self.sets, self.inputs)
    }

    pub fn get(&self, slot: Slot) -> Option<&Buffer> {
        self.buffers.get(slot).and_then(Option::as_ref)
    }

    /// Records a buffer's content in one set of inputs.
    pub fn set_content(&mut self, slot: Slot, set: usize, content: Content) {
        let Some(buffer) = self.buffers.get_mut(slot).and_then(Option::as_mut) else { return };
        buffer.contents.resize_with(buffer.contents.len().max(set + 1), Content::default);
        buffer.contents[set] = content;
    }

    /// Records a content that all sets of inputs share.
    pub fn set_only_content(&mut self, slot: Slot, content: Content) {
        if let Some(buffer) = self.buffers.get_mut(slot).and_then(Option::as_mut) {
            buffer.contents = vec![content];
        }
    }

    pub fn slots(&self) -> Vec<Slot> {
        (0..self.buffers.len()).filter(|slot| self.get(*slot).is_some()).collect()
    }

    /// Device memory that holds a buffer's initial content in the current set of inputs. Valid between launches that do
    /// not change inputs.
    pub fn first_content(&self, slot: Slot) -> Option<BufferId> {
        let buffer = self.get(slot)?;
        buffer.content(self.sets.current).map(|content| content.pristine.unwrap_or(buffer.id))
    }

    /// Plan of a buffer's content in the current set of inputs, if the content is large, not in host memory, and can be
    /// generated chunk by chunk.
    pub fn made_by_chunks(&self, plan: &BufferPlan) -> Option<BufferPlan> {
        let plan = self.sets.varied(plan, self.sets.current);
        let is_known = self.inputs.iter().any(|(known, _)| same_input(known, &plan));
        let is_large = plan.bytes().0 >= LARGE;
        (!is_known && is_large && content(&plan).is_some_and(fill::is_made_by_chunks)).then_some(plan)
    }

    /// Initial content of a buffer in the current set of inputs, generated on first use.
    pub fn input(&mut self, plan: &BufferPlan) -> Result<Arc<Vec<u8>>, Stop> {
        let plan = &self.sets.varied(plan, self.sets.current);
        if let Some((_, bytes)) = self.inputs.iter().find(|(known, _)| same_input(known, plan)) {
            return Ok(Arc::clone(bytes));
        }
        let Some(fill) = content(plan) else {
            let message = format!("buffer `{}` has no content before the launch: give it a fill", plan.name);
            return Err(Stop::unresolved(message));
        };
        let _span = tracing::debug_span!("generate an input on the host", buffer = plan.name).entered();
        let bytes = Arc::new(fill::fill(plan, fill).map_err(Stop::unresolved)?);
        self.inputs.push((plan.clone(), Arc::clone(&bytes)));
        Ok(bytes)
    }

    /// Allocates a buffer, or shares the memory of an equal one. `symbol` names the variable to use as memory, if any.
    pub fn bind(
        &mut self,
        device: &mut dyn Device,
        plan: &BufferPlan,
        symbol: Option<(ModuleId, &str)>,
    ) -> Result<Slot, Stop> {
        let variable = symbol.map(|(module, mangled)| (module, mangled.to_owned()));
        let equal = |b: &Buffer| b.plan == *plan && b.variable == variable;
        if let Some(slot) = self.buffers.iter().position(|b| b.as_ref().is_some_and(equal)) {
            return Ok(slot);
        }
        let _span = tracing::debug_span!("allocate and fill a buffer", buffer = plan.name).entered();
        let size = usize::try_from(plan.bytes().0).unwrap_or(usize::MAX);
        let id = match symbol {
            Some((module, mangled)) => find_variable(device, plan, module, mangled, size)?,
            None => device.alloc(size, GUARD_BYTES as usize)?,
        };
        device.label(id, &plan.name);
        let mut buffer = Buffer { plan: plan.clone(), variable, id, contents: Vec::new() };
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
        let pristine = if buffer.is_restored() { Some(device.alloc(size, 0)?) } else { None };
        buffer.contents.push(Content { pristine, digest: None });
        let digest = self.write_content(device, &buffer.plan, pristine.unwrap_or(buffer.id))?;
        buffer.contents[0].digest = digest;
        Ok(())
    }

    /// Writes a buffer's initial content in the current set of inputs: generated on the device if possible, otherwise
    /// uploaded. Returns an input's digest if the device computes it.
    pub fn write_content(
        &mut self,
        device: &mut dyn Device,
        plan: &BufferPlan,
        to: BufferId,
    ) -> Result<Option<u64>, Stop> {
        let varied = self.sets.varied(plan, self.sets.current);
        let filled = match &self.kernels {
            Some(kernels) => kernels.fill(device, &varied, to)?,
            None => false,
        };
        if !filled {
            let first = self.input(plan)?;
            device.upload(to, 0, &first)?;
        }
        match &self.kernels {
            Some(kernels) if plan.access == Access::In => Ok(Some(kernels.digest(device, to)?)),
            _ => Ok(None),
        }
    }

    /// Whether the device confirms that a buffer still has its initial content, bit for bit.
    pub fn surely_unchanged(&self, device: &mut dyn Device, slot: Slot) -> Result<bool, Stop> {
        let (Some(kernels), Some(buffer)) = (&self.kernels, self.get(slot)) else { return Ok(false) };
        let digest = buffer.content(self.sets.current).and_then(|content| content.digest);
        let Some(digest) = digest else { return Ok(false) };
        Ok(kernels.digest(device, buffer.id)? == digest)
    }

    pub fn is_scratch(&self, slot: Slot) -> bool {
        self.get(slot).is_some_and(|buffer| buffer.plan.access == Access::Scratch)
    }

    /// Marks these `scratch` buffers as unused, so that the next launch finds nothing in them.
    pub fn forget_users(&mut self, slots: &[Slot]) {
        self.users.retain(|slot, _| !slots.contains(slot));
    }

    /// Assigns these `scratch` buffers to the case `place`. Returns those that another case used last; its leftovers
    /// must not affect this case's results.
    pub fn take_scratch(&mut self, slots: &[Slot], place: usize) -> Vec<Slot> {
        let scratch: Vec<Slot> = slots.iter().copied().filter(|slot| self.is_scratch(*slot)).collect();
        scratch.into_iter().filter(|slot| self.users.insert(*slot, place) != Some(place)).collect()
    }

    /// Module and mangled name of the variable that serves as the buffer's memory.
    pub fn variable(&self, slot: Slot) -> Option<(ModuleId, &str)> {
        self.get(slot)?.variable.as_ref().map(|(module, name)| (*module, name.as_str()))
    }

    /// Operations that poison a buffer and its copies.
    pub fn undefine(&self, slot: Slot, poison: Poison) -> Vec<Prepare> {
        let Some(buffer) = self.get(slot) else { return Vec::new() };
        let copies = self.copies.iter().filter(|(of, _)| *of == slot).flat_map(|(_, copies)| copies);
        let byte = poison.byte(buffer.plan.element);
        std::iter::once(&buffer.id).chain(copies).map(|buffer| Prepare::Undefine { buffer: *buffer, byte }).collect()
    }

    /// Operations that restore a case's buffers before a launch.
    pub fn prepare(&self, slots: &[Slot], poison: Poison) -> Vec<Prepare> {
        let step = |slot: &Slot| {
            let buffer = self.get(*slot)?;
            match buffer.plan.access {
                Access::Scratch if !buffer.plan.poison => None,
                Access::Out | Access::Scratch => {
                    Some(Prepare::Undefine { buffer: buffer.id, byte: poison.byte(buffer.plan.element) })
                }
                Access::In | Access::InOut => self.restoration(*slot),
            }
        };
        slots.iter().filter_map(step).collect()
    }

    /// Whether one of these buffers is this variable, so that the manifest decides how it is prepared.
    pub fn has_variable(&self, slots: &[Slot], module: ModuleId, name: &str) -> bool {
        let variables = slots.iter().filter_map(|slot| self.get(*slot)?.variable.as_ref());
        variables.into_iter().any(|(of, known)| *of == module && known == name)
    }

    /// Operation that restores a buffer before every launch.
    pub fn restoration(&self, slot: Slot) -> Option<Prepare> {
        let buffer = self.get(slot).filter(|buffer| buffer.is_restored())?;
        Some(Prepare::Copy { from: self.first_content(slot)?, to: buffer.id })
    }

    /// The buffer and its kind of allocation, if host-timed runs allocate it themselves.
    pub fn allocated_each_run(&self, slot: Slot) -> Option<(BufferId, Allocation)> {
        let buffer = self.get(slot).filter(|buffer| buffer.plan.allocate != Allocation::Once)?;
        Some((buffer.id, buffer.plan.allocate))
    }

    /// Copy number `nth` of a buffer, with its initial content, if any; created on first use.
    pub fn copy(&mut self, device: &mut dyn Device, slot: Slot, nth: usize) -> Result<BufferId, DeviceError> {
        let place = self.copies.iter().position(|(of, _)| *of == slot).unwrap_or_else(|| {
            self.copies.push((slot, Vec::new()));
            self.copies.len() - 1
        });
        if let Some(id) = self.copies[place].1.get(nth) {
            return Ok(*id);
        }
        let buffer = self.get(slot);
        let (size, from) = (buffer.map_or(0, |buffer| device.size(buffer.id)), self.first_content(slot));
        let name = buffer.map(|buffer| buffer.plan.name.clone());
        let byte = Poison::Timed.byte(buffer.map_or(ElementType::U8, |buffer| buffer.plan.element));
        let id = device.alloc(size, GUARD_BYTES as usize)?;
        if let Some(name) = &name {
            device.label(id, name);
        }
        self.copies[place].1.push(id);
        // Memory without content may hold what another case left in it.
        let first = from.map_or(Prepare::Undefine { buffer: id, byte }, |from| Prepare::Copy { from, to: id });
        device.run(&Batch::once(vec![first], Vec::new()))?;
        Ok(id)
    }

    /// Operations that restore the first `count` copies of an `inout` buffer.
    pub fn prepare_copies(&self, slot: Slot, count: usize) -> Vec<Prepare> {
        let Some(Prepare::Copy { from, .. }) = self.restoration(slot) else { return Vec::new() };
        let copies = self.copies.iter().find(|(of, _)| *of == slot).map_or(&[][..], |(_, copies)| copies);
        copies.iter().take(count).map(|to| Prepare::Copy { from, to: *to }).collect()
    }

    pub fn free_copies(&mut self, device: &mut dyn Device) {
        for id in self.copies.drain(..).flat_map(|(_, copies)| copies) {
            // A failed free leaks memory, which the next allocation reports.
            let _ = device.free(id);
        }
    }

    pub fn restore(&mut self, device: &mut dyn Device, slot: Slot) -> Result<(), Stop> {
        let Some((id, plan)) = self.get(slot).filter(|b| b.has_content()).map(|b| (b.id, b.plan.clone())) else {
            return Ok(());
        };
        self.write_content(device, &plan, id).map(drop)
    }

    /// Buffers that no launch may change and that are not restored before each launch.
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

/// Frees a buffer. A failed free leaks memory, which the next allocation reports.
fn release(device: &mut dyn Device, buffer: &Buffer) {
    let pristine = buffer.contents.iter().filter_map(|content| content.pristine);
    for id in std::iter::once(buffer.id).chain(pristine) {
        let _ = device.free(id);
    }
}

fn find_variable(
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
        "buffer `{}` has {size} bytes, but the variable `{symbol}` has {found}: declare it with the buffer's length",
        plan.name
    )))
}

/// Fill of a buffer that has content before the launch.
fn content(plan: &BufferPlan) -> Option<&FillPlan> {
    plan.fill.as_ref().filter(|_| matches!(plan.access, Access::In | Access::InOut))
}

/// Whether both buffers have the same initial content.
pub fn same_input(known: &BufferPlan, plan: &BufferPlan) -> bool {
    known.name == plan.name
        && known.element == plan.element
        && known.len == plan.len
        && known.fill == plan.fill
        && content(plan).is_some()
}
