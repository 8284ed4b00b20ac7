//! Settings of the context that code under test may change: kept when the device is opened, and put back.
//!
//! Only a host function can change them. One that sets aside a part of the L2 for persisting lines, or widens fetches,
//! would change the times of whatever runs after it.

use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use super::driver::{api, check};
use super::handles::{Context, Event, Stream};
use super::plugin::HostFunction;
use crate::backend::DeviceError;

/// What changes how fast later kernels run. A device without one of them has no such limit.
const LIMITS: [sys::CUlimit; 2] =
    [sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE, sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY];

/// Time after which a context that should be idle counts as busy: an event of an idle one is done within some
/// microseconds.
const PATIENCE: Duration = Duration::from_micros(100);

/// The settings as they were.
#[derive(Debug, Clone)]
pub(super) struct ContextLimits(Vec<(sys::CUlimit, usize)>);

impl ContextLimits {
    /// The settings of the current context.
    pub fn keep() -> Self {
        Self(LIMITS.into_iter().filter_map(|limit| Some((limit, get(limit)?))).collect())
    }

    /// After host functions: finds those that leave work in other streams, and puts back what they changed. Nothing
    /// happens if there is none.
    pub fn settle_after<'f>(
        &self,
        functions: impl Iterator<Item = &'f HostFunction>,
        (context, stream): (&Context, &Stream),
    ) -> Result<(), DeviceError> {
        let mut functions = functions.peekable();
        if functions.peek().is_none() {
            return Ok(());
        }
        let busy = is_busy(context)?;
        self.restore(stream)?;
        functions.try_for_each(|function| function.note_busy(busy))
    }

    /// Puts back what was changed, in the current context and in the stream that host functions are given.
    fn restore(&self, stream: &Stream) -> Result<(), DeviceError> {
        for (limit, value) in &self.0 {
            if get(*limit) != Some(*value) {
                // SAFETY: a context is current, which is all that the call needs.
                check("cuCtxSetLimit", unsafe { sys::cuCtxSetLimit(*limit, *value) })?;
            }
        }
        let none = sys::CUaccessPolicyWindow_st {
            base_ptr: ptr::null_mut(),
            num_bytes: 0,
            hitRatio: 0.0,
            hitProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_NORMAL,
            missProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_NORMAL,
        };
        let value = sys::CUstreamAttrValue { accessPolicyWindow: none };
        let window = sys::CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
        // SAFETY: the stream lives, and the value is that of the attribute and outlives the call.
        check("cuStreamSetAttribute", unsafe { sys::cuStreamSetAttribute(stream.raw(), window, &raw const value) })
    }
}

fn get(limit: sys::CUlimit) -> Option<usize> {
    let mut value = 0;
    // SAFETY: a context is current, and `value` outlives the call.
    let code = unsafe { sys::cuCtxGetLimit(&raw mut value, limit) };
    (code == sys::CUresult::CUDA_SUCCESS).then_some(value)
}

/// Whether the context is still busy although the stream of the device has nothing left: something runs in another
/// stream. Waits for it. False where the driver cannot say.
fn is_busy(context: &Context) -> Result<bool, DeviceError> {
    let Some(record) = api()?.record_context else { return Ok(false) };
    let event = Event::untimed()?;
    // SAFETY: the entry point has the signature of its type, and both handles live.
    if unsafe { record(context.raw(), event.raw()) } != sys::CUresult::CUDA_SUCCESS {
        return Ok(false);
    }
    let start = Instant::now();
    while !event.is_done()? {
        if start.elapsed() > PATIENCE {
            event.synchronize()?;
            return Ok(true);
        }
    }
    Ok(false)
}
