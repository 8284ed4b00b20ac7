//! Settings of the context that code under test may change: kept when the device is opened, and put back.
//!
//! Only a host function can change them. One that sets aside a part of the L2 for persisting lines, widens fetches, or
//! prefers shared memory over the L1 would change the times of what runs after it; one that takes away stack, heap or
//! the buffer of `printf` would make it fail.

use std::ffi::c_int;
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use super::driver::{api, check};
use super::handles::{Context, Event, Stream};
use super::plugin::HostFunction;
use crate::DeviceError;

/// Limits that are put back. A device without one of them has no such limit.
const LIMITS: [sys::CUlimit; 6] = [
    sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
    sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
    sys::CUlimit::CU_LIMIT_STACK_SIZE,
    sys::CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE,
    sys::CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE,
    sys::CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
];

/// Time after which a context that should be idle counts as busy: an event of an idle one is done within some
/// microseconds.
const PATIENCE: Duration = Duration::from_micros(100);

/// The settings as they were.
#[derive(Debug, Clone)]
pub(super) struct ContextLimits {
    limits: Vec<(sys::CUlimit, usize)>,
    /// Whether kernels get more L1 or more shared memory, where they do not say.
    carve_out: Option<sys::CUfunc_cache>,
    /// The priority of the stream that host functions are given.
    priority: Option<c_int>,
}

impl ContextLimits {
    /// Returns the settings of the current context and of this stream.
    pub fn keep(stream: &Stream) -> Self {
        let limits = LIMITS.into_iter().filter_map(|limit| Some((limit, get(limit)?))).collect();
        Self { limits, carve_out: carve_out(), priority: priority(stream) }
    }

    /// Finds host functions that left work in other streams, and puts back what they changed. Nothing
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
        for (limit, kept) in &self.limits {
            // The driver itself raises the stack for kernels that need more.
            let is_stack = *limit == sys::CUlimit::CU_LIMIT_STACK_SIZE;
            if get(*limit).is_some_and(|now| if is_stack { now < *kept } else { now != *kept }) {
                // SAFETY: a context is current, which is all that the call needs.
                check("cuCtxSetLimit", unsafe { sys::cuCtxSetLimit(*limit, *kept) })?;
            }
        }
        if let Some(kept) = self.carve_out.filter(|kept| carve_out() != Some(*kept)) {
            // SAFETY: as above.
            check("cuCtxSetCacheConfig", unsafe { sys::cuCtxSetCacheConfig(kept) })?;
        }
        if let Some(kept) = self.priority.filter(|kept| priority(stream) != Some(*kept)) {
            let value = sys::CUstreamAttrValue { priority: kept };
            let which = sys::CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
            // SAFETY: the stream lives, and the value is that of the attribute and outlives the call.
            check("cuStreamSetAttribute", unsafe { sys::cuStreamSetAttribute(stream.raw(), which, &raw const value) })?;
        }
        if self.limits.iter().any(|(limit, _)| *limit == sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
            // SAFETY: as above; the call has no argument.
            check("cuCtxResetPersistingL2Cache", unsafe { sys::cuCtxResetPersistingL2Cache() })?;
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

fn carve_out() -> Option<sys::CUfunc_cache> {
    let mut value = sys::CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE;
    // SAFETY: a context is current, and `value` outlives the call.
    let code = unsafe { sys::cuCtxGetCacheConfig(&raw mut value) };
    (code == sys::CUresult::CUDA_SUCCESS).then_some(value)
}

fn priority(stream: &Stream) -> Option<c_int> {
    let mut value = 0;
    // SAFETY: the stream lives, and `value` outlives the call.
    let code = unsafe { sys::cuStreamGetPriority(stream.raw(), &raw mut value) };
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
