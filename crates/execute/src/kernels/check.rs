//! Comparisons on the device: whether every element of an output is certain to pass.
//!
//! Uses the rule of [`compare`](crate::compare). If an element is doubtful (wrong, or within a few ULP for a 16-bit
//! float), the host decides, so the device can only save work. Handles `x`, `copy(x)`, `add(x, y)` and numbers; results
//! of reductions are small and compared on the host.

use super::{Kernels, code, double, number, word};
use crate::bench::Bench;
use crate::cases::ReadyCase;
use crate::operand::{Lanes, Number, Operand};
use crate::stop::Stop;
use crate::values::expectation;
use runner_backend::{BufferId, Device, DeviceError, LaunchArg};
use runner_types::{Access, CheckPlan, ElementType, ExpectPlan, RefExpr, RefFunction, Tolerance};

/// Uploaded expected values are limited to the free memory divided by this.
const SHARE_OF_FREE: u64 = 4;

/// Expected values that the device can read.
#[derive(Debug, Clone, Copy)]
pub enum Wanted {
    Number {
        value: Number,
        /// Element type; `None` for a constant of the manifest.
        element: Option<ElementType>,
    },
    Array(ElementType, BufferId),
    /// Element-wise sum of two arrays.
    Sum(ElementType, BufferId, BufferId),
}

impl Wanted {
    /// Lane type: constants and wide results are f64 or i64.
    const fn element(&self) -> ElementType {
        match *self {
            Self::Number { value: Number::Float(_), .. } => ElementType::F64,
            Self::Number { element: None, .. } => ElementType::I64,
            Self::Number { element: Some(element), .. } | Self::Array(element, _) | Self::Sum(element, ..) => element,
        }
    }

    /// Bits of the number; `None` if the kernels cannot represent it.
    fn bits(&self) -> Option<u64> {
        match *self {
            Self::Number { value: Number::Float(value), .. } => Some(value.to_bits()),
            Self::Number { value: Number::Int(value), element: Some(ElementType::U64) } => u64::try_from(value).ok(),
            Self::Number { value: Number::Int(value), .. } => i64::try_from(value).ok().map(i64::cast_unsigned),
            _ => Some(0),
        }
    }
}

impl Kernels {
    /// Whether every one of the `len` elements of `got` is certain to pass.
    pub fn passes(
        &self,
        device: &mut dyn Device,
        (got, element, len): (BufferId, ElementType, u64),
        wanted: &Wanted,
        tolerance: &Tolerance,
    ) -> Result<bool, DeviceError> {
        let Some(constant) = wanted.bits() else { return Ok(false) };
        let of = wanted.element();
        let rule = match (element.is_float(), of.is_float()) {
            (false, false) => u32::from((element == ElementType::U64) != (of == ElementType::U64)),
            (true, _) => 2,
            (false, true) => 3,
        };
        let (shape, left, right) = match *wanted {
            Wanted::Number { .. } => (0, got, got),
            Wanted::Array(_, left) => (1, left, left),
            Wanted::Sum(_, left, right) => (2, left, right),
        };
        let args = vec![
            LaunchArg::Buffer(got),
            code(element),
            LaunchArg::Buffer(left),
            LaunchArg::Buffer(right),
            code(of),
            number(shape),
            word(constant),
            number(rule),
            word(len),
            double(tolerance.abs),
            double(tolerance.rel),
            double(tolerance.ulp as f64),
            LaunchArg::Buffer(self.found),
        ];
        let hidden = self.expected.iter().position(|(_, id)| *id == left).map(|stream| stream as u64);
        hidden.map_or(Ok(()), |stream| self.mask(device, left, stream))?;
        self.run(device, self.compare, len, args)?;
        // Read now, since the next kernel clears it.
        let [doubtful] = self.found(device)?;
        hidden.map_or(Ok(()), |stream| self.mask(device, left, stream))?;
        Ok(doubtful == 0)
    }

    /// Uploads the host's expected values once, masked; `None` if they do not fit or have not been computed.
    pub fn upload_expected(
        &mut self,
        device: &mut dyn Device,
        operand: &Operand,
    ) -> Result<Option<Wanted>, DeviceError> {
        let (element, bytes) = match operand {
            Operand::Scalar { element, value } => {
                return Ok(Some(Wanted::Number { value: *value, element: *element }));
            }
            Operand::Elementwise { .. } => return Ok(None),
            Operand::Bytes { element, bytes } => (*element, bytes.len()),
            Operand::Wide { element, lanes } => match **lanes {
                Lanes::Float(ref lanes) => (ElementType::F64, lanes.len() * 8),
                Lanes::Int(ref lanes) if *element == ElementType::U64 => (ElementType::U64, lanes.len() * 8),
                Lanes::Int(ref lanes) => (ElementType::I64, lanes.len() * 8),
            },
        };
        if let Some((_, id)) = self.expected.iter().find(|(known, _)| known.is_same(operand)) {
            return Ok(Some(Wanted::Array(element, *id)));
        }
        if device.memory_free().is_none_or(|free| bytes as u64 > free / SHARE_OF_FREE) {
            return Ok(None);
        }
        let id = match device.alloc(bytes, 0) {
            Ok(id) => id,
            Err(DeviceError::OutOfMemory { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        let stream = self.expected.len() as u64;
        self.expected.push((operand.clone(), id));
        self.upload_masked(device, id, bytes, stream, &|offset, to| match operand {
            Operand::Bytes { bytes, .. } => to.copy_from_slice(&bytes[offset..][..to.len()]),
            Operand::Wide { lanes, .. } => match &**lanes {
                Lanes::Int(lanes) => store(&lanes[offset / 8..], to, i64::to_le_bytes),
                Lanes::Float(lanes) => store(&lanes[offset / 8..], to, f64::to_le_bytes),
            },
            Operand::Elementwise { .. } | Operand::Scalar { .. } => {}
        })?;
        Ok(Some(Wanted::Array(element, id)))
    }
}

/// Whether the device finds that all compared elements of a check are correct.
pub fn surely_passes(bench: &mut Bench<'_>, case: &ReadyCase<'_>, check: &CheckPlan) -> Result<bool, Stop> {
    if case.is_partial {
        return Ok(false);
    }
    let Some((got, element, len)) = find_output(bench, case, &check.actual) else { return Ok(false) };
    let Some(wanted) = upload_wanted(bench, case, check, len)? else { return Ok(false) };
    let Some(kernels) = &bench.store.kernels else { return Ok(false) };
    Ok(kernels.passes(bench.device, (got, element, len), &wanted, &check.tolerance)?)
}

/// Output that a check compares unmodified.
fn find_output(bench: &Bench<'_>, case: &ReadyCase<'_>, actual: &RefExpr) -> Option<(BufferId, ElementType, u64)> {
    bench.store.kernels.as_ref()?;
    let name = name_of(actual)?;
    let slot = case.slot_after(bench, name)?;
    let buffer = bench.store.get(slot).filter(|buffer| buffer.plan.access != Access::In && buffer.plan.len > 0)?;
    Some((buffer.id, buffer.plan.element, buffer.plan.len))
}

/// Expected value of a check on the device; `None` if the device does not hold it or its length differs.
fn upload_wanted(
    bench: &mut Bench<'_>,
    case: &ReadyCase<'_>,
    check: &CheckPlan,
    len: u64,
) -> Result<Option<Wanted>, Stop> {
    if let ExpectPlan::Reference(expression) = &check.expect
        && let Some(wanted) = find_wanted(bench, case, expression, len)
    {
        return Ok(Some(wanted));
    }
    let Some(operand) = expectation(bench, case, check)? else { return Ok(None) };
    if operand.len().is_some_and(|of| of as u64 != len) {
        return Ok(None);
    }
    let Some(kernels) = &mut bench.store.kernels else { return Ok(None) };
    Ok(kernels.upload_expected(bench.device, &operand)?)
}

/// Expected array or sum that the case already has on the device.
pub fn find_wanted(bench: &Bench<'_>, case: &ReadyCase<'_>, expression: &RefExpr, len: u64) -> Option<Wanted> {
    let first = |expression: &RefExpr| {
        let slot = case.device_body()?.slot(name_of(expression)?)?;
        let buffer = bench.store.get(slot).filter(|buffer| buffer.plan.len == len)?;
        Some((buffer.plan.element, bench.store.first_content(slot)?))
    };
    match expression {
        RefExpr::Call { function: RefFunction::Add, buffers, .. } => {
            let [left, right] = buffers.as_slice() else { return None };
            let ((element, left), (other, right)) = (first(left)?, first(right)?);
            (element == other).then_some(Wanted::Sum(element, left, right))
        }
        _ => first(expression).map(|(element, id)| Wanted::Array(element, id)),
    }
}

/// Buffer named in `x` or `copy(x)`.
fn name_of(expression: &RefExpr) -> Option<&str> {
    match expression {
        RefExpr::Buffer(name) => Some(name),
        RefExpr::Call { function: RefFunction::Copy, buffers, .. } => name_of(buffers.first()?),
        _ => None,
    }
}

/// Writes the bytes of the first lanes, as many as fit.
fn store<L: Copy>(lanes: &[L], to: &mut [u8], bytes: impl Fn(L) -> [u8; 8]) {
    to.chunks_exact_mut(8).zip(lanes).for_each(|(place, lane)| place.copy_from_slice(&bytes(*lane)));
}
