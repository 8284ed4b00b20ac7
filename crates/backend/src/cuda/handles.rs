//! RAII owners of driver objects: a context, a stream, an event, a module; each is released when dropped.
//!
//! Drops ignore errors: after an aborted kernel every call fails, and the process is about to exit. Except for
//! [`Context`], the owners expect their context to be current, which [`super::device::CudaDevice`] ensures.

use std::ffi::{CStr, CString, c_uint, c_void};
use std::ptr;

use cudarc::driver::sys;

use super::driver::{api, check};
use crate::DeviceError;

/// A device's retained primary context.
#[derive(Debug)]
pub(super) struct Context {
    device: sys::CUdevice,
    raw: sys::CUcontext,
}

impl Context {
    /// Retains the primary context of `device` and makes it current.
    pub fn retain(device: sys::CUdevice) -> Result<Self, DeviceError> {
        let mut raw: sys::CUcontext = ptr::null_mut();
        // SAFETY: `device` comes from `cuDeviceGet`, and `raw` outlives the call.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut raw, device) })?;
        let context = Self { device, raw };
        context.enter()?;
        Ok(context)
    }

    pub const fn device(&self) -> sys::CUdevice {
        self.device
    }

    pub const fn raw(&self) -> sys::CUcontext {
        self.raw
    }

    /// Makes the context current in this thread.
    pub fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context is retained for the life of `self`.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    /// Waits until all streams of the context are idle; makes it current.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the call needs only a current context, and there is one.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// Sets the limit of pending device-side launches; makes the context current.
    pub fn set_pending_launches(&self, count: u32) -> Result<(), DeviceError> {
        self.enter()?;
        let limit = sys::CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
        // SAFETY: the call needs only a current context, and there is one.
        check("cuCtxSetLimit", unsafe { sys::cuCtxSetLimit(limit, count as usize) })
    }

    /// Free and total device memory in bytes; makes the context current.
    pub fn memory(&self) -> Result<(u64, u64), DeviceError> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both outlive the call.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
        Ok((free as u64, total as u64))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `retain`, released once here.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// A stream that does not synchronise with the legacy default stream.
#[derive(Debug)]
pub(super) struct Stream(sys::CUstream);

impl Stream {
    pub fn new() -> Result<Self, DeviceError> {
        let mut raw: sys::CUstream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: `raw` outlives the call.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut raw, flags) })?;
        Ok(Self(raw))
    }

    pub fn raw(&self) -> sys::CUstream {
        self.0
    }

    /// Makes everything queued from here on wait for the event's last record.
    pub fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        // SAFETY: both are alive, and belong to the same context; the flags must be zero, and are.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.0, event.0, 0) })
    }

    /// Waits until everything queued is done; returns the error of an aborted kernel.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the stream lives as long as `self`.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.0) })
    }

    /// Waits whether queueing succeeded or not. The error of a lost context takes precedence over a failed call.
    pub fn settle<T>(&self, queued: Result<T, DeviceError>) -> Result<T, DeviceError> {
        worse(queued, self.synchronize())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.0) };
    }
}

/// A point in a stream whose time is recorded.
#[derive(Debug)]
pub(super) struct Event(sys::CUevent);

impl Event {
    pub fn new() -> Result<Self, DeviceError> {
        Self::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// An event without a time, for streams to wait on; it is cheaper.
    pub fn untimed() -> Result<Self, DeviceError> {
        Self::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn create(flags: sys::CUevent_flags) -> Result<Self, DeviceError> {
        let mut raw: sys::CUevent = ptr::null_mut();
        // SAFETY: `raw` outlives the call.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut raw, flags as c_uint) })?;
        Ok(Self(raw))
    }

    pub const fn raw(&self) -> sys::CUevent {
        self.0
    }

    pub fn record(&self, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: both are alive, and belong to the same context.
        check("cuEventRecord", unsafe { sys::cuEventRecord(self.0, stream.raw()) })
    }

    pub fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the event lives as long as `self`.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.0) })
    }

    /// Whether everything queued before the event is done.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        // SAFETY: the event lives as long as `self`.
        match unsafe { sys::cuEventQuery(self.0) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Nanoseconds from this event to a later one; both must be recorded and done.
    pub fn nanoseconds_to(&self, later: &Self) -> Result<f64, DeviceError> {
        let mut milliseconds = 0.0_f32;
        let elapsed = api()?.elapsed;
        // SAFETY: the entry point has the signature of its type, and all three pointers outlive the call.
        check("cuEventElapsedTime", unsafe { elapsed(&raw mut milliseconds, self.0, later.0) })?;
        Ok(f64::from(milliseconds) * 1e6)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

#[derive(Debug)]
pub(super) struct Module(sys::CUmodule);

impl Module {
    /// Bytes of each of the two logs that the driver's compiler may fill.
    const LOG: usize = 16 * 1024;

    /// Loads an image: a cubin, or NUL-terminated PTX. Errors contain the driver's log.
    pub fn load(image: &[u8]) -> Result<Self, DeviceError> {
        let mut error_log = vec![0_u8; Self::LOG];
        let mut info_log = vec![0_u8; Self::LOG];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            sys::CUjit_option::CU_JIT_INFO_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes sizes as pointers whose address is the number.
        let mut values: [*mut c_void; 4] = [
            error_log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(Self::LOG),
            info_log.as_mut_ptr().cast(),
            ptr::without_provenance_mut(Self::LOG),
        ];
        let mut raw: sys::CUmodule = ptr::null_mut();
        // SAFETY: options and values are arrays of the given length; the logs are as long as stated; the image is a
        // cubin, whose header states its size, or is NUL-terminated. All outlive the call.
        let code = unsafe {
            sys::cuModuleLoadDataEx(
                &raw mut raw,
                image.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        check("cuModuleLoadDataEx", code).map_err(|error| with_log(error, &error_log))?;
        Ok(Self(raw))
    }

    /// Looks up a kernel by mangled name, which loads it.
    pub fn function(&self, mangled: &str) -> Result<sys::CUfunction, DeviceError> {
        let name = c_name("cuModuleGetFunction", mangled)?;
        let mut raw: sys::CUfunction = ptr::null_mut();
        // SAFETY: the module is alive, the name is NUL-terminated, `raw` outlives the call.
        let code = unsafe { sys::cuModuleGetFunction(&raw mut raw, self.0, name.as_ptr()) };
        check("cuModuleGetFunction", code).map_err(|error| with_name(error, "kernel", mangled))?;
        Ok(raw)
    }

    /// Address and size in bytes of a `__device__` variable, by mangled name.
    pub fn global(&self, mangled: &str) -> Result<(sys::CUdeviceptr, usize), DeviceError> {
        let name = c_name("cuModuleGetGlobal", mangled)?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is alive, the name is NUL-terminated, both results outlive the call.
        let code = unsafe { sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, self.0, name.as_ptr()) };
        check("cuModuleGetGlobal", code).map_err(|error| with_name(error, "variable", mangled))?;
        Ok((address, bytes))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded in `load`, unloaded once.
        let _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

fn c_name(call: &'static str, name: &str) -> Result<CString, DeviceError> {
    CString::new(name).map_err(|_| DeviceError::Driver { call, message: format!("the name {name:?} contains a NUL") })
}

fn with_name(error: DeviceError, what: &str, name: &str) -> DeviceError {
    match error {
        DeviceError::Driver { call, message } => {
            DeviceError::Driver { call, message: format!("{what} `{name}`: {message}") }
        }
        other => other,
    }
}

/// Appends the log of the driver's compiler.
fn with_log(error: DeviceError, log: &[u8]) -> DeviceError {
    let text = CStr::from_bytes_until_nul(log).map(|c| c.to_string_lossy().trim().to_owned()).unwrap_or_default();
    match error {
        DeviceError::Driver { call, message } if !text.is_empty() => {
            DeviceError::Driver { call, message: format!("{message}\n{text}") }
        }
        other => other,
    }
}

/// The more important of the errors from queueing work and from waiting for it.
pub(super) fn worse<T>(queued: Result<T, DeviceError>, finished: Result<(), DeviceError>) -> Result<T, DeviceError> {
    match (queued, finished) {
        (Ok(value), Ok(())) => Ok(value),
        (_, Err(lost @ DeviceError::ContextLost(_))) => Err(lost),
        (Err(first), _) | (Ok(_), Err(first)) => Err(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_module_carries_the_compilers_log_up_to_its_nul() {
        let refused = DeviceError::Driver { call: "cuModuleLoadDataEx", message: "CUDA_ERROR_INVALID_PTX".to_owned() };
        let log = b"ptxas application ptx input, line 3; error : Unexpected token\n\0\0garbage";
        assert_eq!(
            with_log(refused.clone(), log).to_string(),
            "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX\nptxas application ptx input, line 3; error : Unexpected token"
        );
        assert_eq!(with_log(refused.clone(), &[0; 8]), refused);
    }

    #[test]
    fn a_lost_context_outranks_the_call_that_was_refused_first() {
        let refused = || DeviceError::Driver { call: "cuLaunchKernel", message: "refused".to_owned() };
        let lost = || DeviceError::ContextLost("lost".to_owned());
        assert_eq!(worse(Ok(1), Ok(())), Ok(1));
        assert_eq!(worse::<u8>(Err(refused()), Ok(())), Err(refused()));
        assert_eq!(worse::<u8>(Err(refused()), Err(lost())), Err(lost()));
        assert_eq!(worse(Ok(1), Err(lost())), Err(lost()));
    }
}
