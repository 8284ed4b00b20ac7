//! Settings of the context that code under test may change: read when the device is opened, and restored.
//!
//! Only a host function can change them. It could change the times of later work by setting aside L2 for persisting
//! lines, widening fetches, or preferring shared memory over L1. Or it could make later work fail, by reducing the
//! stack, the heap or the `printf` buffer.

use std::ffi::c_int;
use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::sys;

use super::driver::{api, check};
use super::handles::{Context, Event, Stream};
use super::plugin::HostFunction;
use crate::DeviceError;

/// Limits to restore. A device may lack some of them.
const LIMITS: [sys::CUlimit; 6] = [
    sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
    sys::CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
    sys::CUlimit::CU_LIMIT_STACK_SIZE,
    sys::CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE,
    sys::CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE,
    sys::CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
];

/// Time after which a context that should be idle counts as busy. On an idle context, an event completes within a few
/// microseconds.
const PATIENCE: Duration = Duration::from_micros(100);

/// Settings when the device was opened.
#[derive(Debug, Clone)]
pub(super) struct ContextLimits {
    limits: Vec<(sys::CUlimit, usize)>,
    /// Default preference between L1 and shared memory.
    carve_out: Option<sys::CUfunc_cache>,
    /// Priority of the stream passed to host functions.
    priority: Option<c_int>,
}

impl ContextLimits {
    /// Reads the settings of the current context and of this stream.
    pub fn keep(stream: &Stream) -> Self {
        let limits = LIMITS.into_iter().filter_map(|limit| Some((limit, get(limit)?))).collect();
        Self { limits, carve_out: carve_out(), priority: priority(stream) }
    }

    /// Restores what host functions changed, and fails if one repeatedly left work in other streams. Does nothing if
    /// there are no host functions.
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

    /// Restores the current context, and the stream passed to host functions.
    fn restore(&self, stream: &Stream) -> Result<(), DeviceError> {
        for (limit, kept) in &self.limits {
            // The driver itself raises the stack limit for kernels that need more.
            let is_stack = *limit == sys::CUlimit::CU_LIMIT_STACK_SIZE;
            if get(*limit).is_some_and(|now| if is_stack { now < *kept } else { now != *kept }) {
                // SAFETY: the call needs only a current context, and there is one.
                check("cuCtxSetLimit", unsafe { sys::cuCtxSetLimit(*limit, *kept) })?;
            }
        }
        if let Some(kept) = self.carve_out.filter(|kept| carve_out() != Some(*kept)) {
            // SAFETY: the call needs only a current context, and there is one.
            check("cuCtxSetCacheConfig", unsafe { sys::cuCtxSetCacheConfig(kept) })?;
        }
        if let Some(kept) = self.priority.filter(|kept| priority(stream) != Some(*kept)) {
            let value = sys::CUstreamAttrValue { priority: kept };
            let which = sys::CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
            // SAFETY: the stream is alive, and the value belongs to the attribute and outlives the call.
            check("cuStreamSetAttribute", unsafe { sys::cuStreamSetAttribute(stream.raw(), which, &raw const value) })?;
        }
        if self.limits.iter().any(|(limit, _)| *limit == sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
            // SAFETY: the call needs only a current context, and there is one.
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
        // SAFETY: the stream is alive, and the value belongs to the attribute and outlives the call.
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
    // SAFETY: the stream is alive, and `value` outlives the call.
    let code = unsafe { sys::cuStreamGetPriority(stream.raw(), &raw mut value) };
    (code == sys::CUresult::CUDA_SUCCESS).then_some(value)
}

/// Whether work still runs in another stream although the device's own stream is idle. Waits for that work. Returns
/// false if the driver cannot tell.
fn is_busy(context: &Context) -> Result<bool, DeviceError> {
    let Some(record) = api()?.record_context else { return Ok(false) };
    let event = Event::untimed()?;
    // SAFETY: the entry point has the signature of its type, and both handles are alive.
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
