//! Initial contents generated on the device, with the same bits as on the host.
//!
//! Elements are drawn as documented in [`fill`](crate::fill), one per thread. A draw that the host's method rejects
//! shifts all later ones in its chunk of 2^16: such chunks are listed and generated on the host. Fills that need
//! transcendental functions, a file, or rounding to 16-bit floats are left to the host.

use std::ops::Range;

use super::{FOUND, Kernels, code, number, word};
use crate::fill::{self, CHUNK};
use crate::source::Source;
use crate::typed::{Float as _, Typed as _, by_type};
use runner_backend::{BufferId, Device, DeviceError, LaunchArg};
use runner_types::{BufferPlan, ElementType, FillPlan};

/// With more rejected draws than this, the host generates the whole buffer: the list is full, and each draw costs a
/// chunk.
const MOST_REJECTED: usize = FOUND - 1;

/// Arguments of the kernel: the rule and its four numbers.
struct Rule {
    kind: u32,
    numbers: [u64; 4],
    seed: Option<u64>,
    /// Bits of a draw.
    width: u32,
    /// Number of rejected draws out of 2^`width`.
    rejected: u64,
}

impl Kernels {
    /// Fills a buffer. Returns false, with the content undefined, if the host must do it.
    pub fn fill(&self, device: &mut dyn Device, plan: &BufferPlan, to: BufferId) -> Result<bool, DeviceError> {
        match &plan.fill {
            None => Ok(false),
            Some(FillPlan::Spliced { fill, seed, stretch }) => {
                let first = BufferPlan { fill: Some((**fill).clone()), ..plan.clone() };
                let mut other = (**fill).clone();
                other.seed_mut().into_iter().for_each(|own| *own = *seed);
                Ok(self.fill(device, &first, to)? && self.fill_range(device, plan, (&other, stretch), to)?)
            }
            Some(fill) => self.fill_range(device, plan, (fill, &(0..plan.len)), to),
        }
    }

    /// Writes the elements of a range of the buffer. Chunks that the host must generate come from `plan`.
    fn fill_range(
        &self,
        device: &mut dyn Device,
        plan: &BufferPlan,
        (fill, range): (&FillPlan, &Range<u64>),
        to: BufferId,
    ) -> Result<bool, DeviceError> {
        let Some(rule) = rule(plan.element, fill) else { return Ok(false) };
        if rule.expected_rejections(plan.len) > MOST_REJECTED as f64 / 2.0 {
            return Ok(false);
        }
        let key = rule.seed.map_or([0; 4], |seed| Source::new(seed, &plan.name).words());
        let mut args = vec![LaunchArg::Buffer(to), word(range.start), word(range.end)];
        args.extend([code(plan.element), number(rule.kind)]);
        args.extend(rule.numbers.into_iter().chain(key).map(word));
        args.push(LaunchArg::Buffer(self.found));
        let len = range.end.saturating_sub(range.start);
        let items = if rule.seed.is_some() { len.div_ceil(u64::from(512 / rule.width)) + 1 } else { len };
        self.run(device, self.fill, items, args)?;
        if rule.rejected == 0 {
            return Ok(true);
        }
        let [count, listed @ ..] = self.found::<FOUND>(device)?;
        if count as usize > MOST_REJECTED {
            return Ok(false);
        }
        // The device has not looked at the draws of the first chunk that come before the range.
        let unseen = (!range.start.is_multiple_of(CHUNK as u64)).then_some(range.start / CHUNK as u64);
        mend(device, plan, to, listed[..count as usize].iter().copied().chain(unseen).collect())
    }
}

/// Generates chunks on the host; returns false if it cannot.
fn mend(device: &mut dyn Device, plan: &BufferPlan, to: BufferId, mut chunks: Vec<u64>) -> Result<bool, DeviceError> {
    chunks.sort_unstable();
    chunks.dedup();
    for chunk in chunks {
        let Some(Ok(bytes)) = plan.fill.as_ref().map(|f| fill::chunk(plan, f, chunk as usize)) else {
            return Ok(false);
        };
        device.upload(to, chunk as usize * CHUNK * plan.element.size(), &bytes)?;
    }
    Ok(true)
}

impl Rule {
    fn expected_rejections(&self, len: u64) -> f64 {
        len as f64 * self.rejected as f64 / libm::ldexp(1.0, self.width.cast_signed())
    }
}

/// Kernel rule of a fill; `None` if the host must generate or reject it.
fn rule(element: ElementType, fill: &FillPlan) -> Option<Rule> {
    let plain = |kind, a, b| Rule { kind, numbers: [a, b, 0, 0], seed: None, width: 32, rejected: 0 };
    by_type!(
        element,
        integer T => match fill {
            FillPlan::Constant(value) => Some(plain(0, fill::integer::<T>(value).ok()?.cast_unsigned(), 0)),
            FillPlan::Iota { start, step } => {
                let (start, step) = (fill::integer::<T>(start).ok()?, fill::any_integer(step).ok()?);
                Some(plain(1, start.cast_unsigned(), step.cast_unsigned()))
            }
            FillPlan::Uniform { low, high, seed } => {
                let (from, to) = (fill::integer::<T>(low).ok()?, fill::integer::<T>(high).ok()?);
                let span = to.wrapping_sub(from).wrapping_add(1).cast_unsigned();
                (from <= to).then(|| uniform(from.cast_unsigned(), span, *seed))
            }
            _ => None,
        },
        float T => match fill {
            FillPlan::Constant(value) => {
                let mut raw = [0; 8];
                T::nearest(fill::number::<T>(value).ok()?).store(&mut raw[..T::SIZE]);
                Some(plain(0, u64::from_le_bytes(raw), 0))
            }
            _ if T::SIZE == 2 => None,
            FillPlan::Iota { start, step } => {
                let (start, step) = (fill::number::<T>(start).ok()?, fill::number::<T>(step).ok()?);
                // The bits of a NaN differ between machines.
                let sound = start.is_finite() && step.is_finite();
                sound.then(|| plain(2, start.to_bits(), step.to_bits()))
            }
            FillPlan::Uniform { low, high, seed } => {
                let (from, to) = (fill::number::<T>(low).ok()?, fill::number::<T>(high).ok()?);
                let sound = from <= to && from.is_finite() && to.is_finite();
                let last = T::nearest(to).below().wide();
                let numbers = [from, to, last, T::nearest(from).wide()].map(f64::to_bits);
                sound.then(|| Rule { kind: 5, numbers, seed: Some(*seed), width: T::SIZE as u32 * 8, rejected: 0 })
            }
            _ => None,
        },
    )
}

/// Rule of Lemire's method, on 32 bits if the span allows it, otherwise on 64. A span of 0 means all 64-bit numbers.
fn uniform(from: u64, span: u64, seed: u64) -> Rule {
    let seed = Some(seed);
    if (1..=1 << 32).contains(&span) {
        let rejected = ((1 << 32) - span) % span;
        return Rule { kind: 3, numbers: [from, span, rejected, 0], seed, width: 32, rejected };
    }
    let rejected = if span == 0 { 0 } else { span.wrapping_neg() % span };
    Rule { kind: 4, numbers: [from, span, rejected, 0], seed, width: 64, rejected }
}
