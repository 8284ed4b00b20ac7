//! The CUDA driver library: its presence, its version, and what its error codes mean for a run.
//!
//! The library is opened at run time, and cudarc panics on a missing library or entry point. So [`api`] precedes every
//! call and checks that the driver is present. Entry points that CUDA 12.0 lacks are looked up individually. No call is
//! retried.

use std::ffi::{CStr, c_char, c_int};
use std::fs;
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::{result, sys};

use crate::{DeviceError, DriverVersion};

/// Oldest driver with all entry points that are used unchecked.
const OLDEST: (u32, u32) = (12, 0);

/// Oldest driver whose graphs may have conditional nodes.
const CONDITIONAL_NODES: (u32, u32) = (12, 4);

/// Entry points that conditional nodes need.
const CONDITIONAL_CALLS: [&[u8]; 4] = [
    b"cuGraphConditionalHandleCreate\0",
    b"cuGraphAddNode_v2\0",
    b"cuStreamBeginCaptureToGraph\0",
    b"cuStreamGetCaptureInfo_v3\0",
];

/// Signature shared by both names of `cuEventElapsedTime`.
type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> sys::CUresult;

/// Signature of `cuCtxRecordEvent`.
type RecordContext = unsafe extern "C" fn(sys::CUcontext, sys::CUevent) -> sys::CUresult;

/// An entry point that is only checked for presence; cudarc calls it.
type Any = unsafe extern "C" fn();

/// An initialised driver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Api {
    /// CUDA version that the driver supports.
    pub cuda: (u32, u32),
    pub elapsed: Elapsed,
    /// `cuCtxRecordEvent` (CUDA 12.5), if it exists.
    pub record_context: Option<RecordContext>,
    /// Whether `cuStreamWaitValue32_v2` exists.
    pub has_stream_wait: bool,
    /// Whether `cuFuncGetParamInfo` exists (CUDA 12.4).
    pub has_parameter_info: bool,
    /// Whether graphs may have conditional nodes and be captured into (CUDA 12.4).
    pub has_conditional_nodes: bool,
}

/// The driver, initialised once per process.
pub(super) fn api() -> Result<&'static Api, DeviceError> {
    static API: OnceLock<Result<Api, DeviceError>> = OnceLock::new();
    API.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Api, DeviceError> {
    // SAFETY: opening the driver library runs its initialisers, which have no precondition.
    if !unsafe { sys::is_culib_present() } {
        return Err(unavailable(
            "libcuda.so.1 not found; install the NVIDIA driver, or in a container pass the GPU through (`--gpus all`)",
        ));
    }
    let mut version: c_int = 0;
    // SAFETY: the library is present, and `version` outlives the call, which may come before `cuInit`.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
    let cuda = (version.unsigned_abs() / 1000, version.unsigned_abs() % 1000 / 10);
    if cuda < OLDEST {
        return Err(unavailable(&format!(
            "the NVIDIA driver supports CUDA {}.{}, and {}.{} or newer is needed: update the driver",
            cuda.0, cuda.1, OLDEST.0, OLDEST.1
        )));
    }
    // SAFETY: the flags must be zero, and are.
    let code = unsafe { sys::cuInit(0) };
    if code != sys::CUresult::CUDA_SUCCESS {
        return Err(unavailable(&initialisation_hint(code)));
    }
    let elapsed = find::<Elapsed>(b"cuEventElapsedTime_v2\0")
        .or_else(|| find::<Elapsed>(b"cuEventElapsedTime\0"))
        .ok_or_else(|| unavailable("the NVIDIA driver has no cuEventElapsedTime: reinstall the driver"))?;
    Ok(Api {
        cuda,
        elapsed,
        record_context: find::<RecordContext>(b"cuCtxRecordEvent\0"),
        has_stream_wait: find::<Any>(b"cuStreamWaitValue32_v2\0").is_some(),
        has_parameter_info: find::<Any>(b"cuFuncGetParamInfo\0").is_some(),
        has_conditional_nodes: cuda >= CONDITIONAL_NODES
            && CONDITIONAL_CALLS.iter().all(|name| find::<Any>(name).is_some()),
    })
}

/// Looks up an entry point; `F` must be its C signature.
fn find<F: Copy>(name: &[u8]) -> Option<F> {
    // SAFETY: the caller has checked that the library is present, and it stays open until the process ends, so the
    // copied pointer stays valid. Each caller names the signature that NVIDIA documents for the entry point, or never
    // calls it.
    unsafe { sys::culib().get::<F>(name).ok().map(|symbol| *symbol) }
}

fn unavailable(message: &str) -> DeviceError {
    DeviceError::Unavailable(message.to_owned())
}

/// Why `cuInit` failed, and what to do about it.
fn initialisation_hint(code: sys::CUresult) -> String {
    use sys::CUresult as E;
    match code {
        E::CUDA_ERROR_NO_DEVICE => {
            let visible = std::env::var("CUDA_VISIBLE_DEVICES")
                .map_or_else(|_| "is not set".to_owned(), |value| format!("is `{value}`"));
            format!("the NVIDIA driver finds no GPU: see `nvidia-smi`; CUDA_VISIBLE_DEVICES {visible}")
        }
        E::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH => {
            "the NVIDIA driver library and kernel module have different versions: reboot after updating the driver"
                .to_owned()
        }
        E::CUDA_ERROR_STUB_LIBRARY => {
            "the libcuda.so that was found is the toolkit's stub, not the driver: remove its \
             folder from LD_LIBRARY_PATH"
                .to_owned()
        }
        E::CUDA_ERROR_SYSTEM_NOT_READY => {
            "the GPUs' fabric is not up (CUDA_ERROR_SYSTEM_NOT_READY): start nvidia-fabricmanager".to_owned()
        }
        other => format!("the NVIDIA driver does not start: {}; see `nvidia-smi`", describe(other)),
    }
}

/// Converts a driver result code to an error.
pub(super) fn check(call: &'static str, code: sys::CUresult) -> Result<(), DeviceError> {
    if code == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let message = describe(code);
    Err(if kills_context(code) {
        DeviceError::ContextLost(format!("{message} (seen in {call})"))
    } else {
        DeviceError::Driver { call, message }
    })
}

/// Name and description of a code.
fn describe(code: sys::CUresult) -> String {
    match result::DriverError(code).error_string() {
        Ok(text) => format!("{code:?}: {}", CStr::to_string_lossy(text)),
        Err(_) => format!("{code:?}"),
    }
}

/// Name and description of a code that may come from the CUDA runtime, which shares most codes with the driver. `None`
/// for a code that the driver does not know.
pub(super) fn text_of(code: c_int) -> Option<String> {
    type Text = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
    api().ok()?;
    let text = |entry: &[u8]| {
        let mut found: *const c_char = ptr::null();
        // SAFETY: the entry points have this signature, and their enumeration is an `int` that may hold any value;
        // `found` outlives the call.
        let answer = unsafe { find::<Text>(entry)?(code, &raw mut found) };
        // SAFETY: the driver's strings are constants of its library.
        (answer == 0 && !found.is_null()).then(|| unsafe { CStr::from_ptr(found) }.to_string_lossy().into_owned())
    };
    Some(format!("{}: {}", text(b"cuGetErrorName\0")?, text(b"cuGetErrorString\0")?))
}

/// Whether the error destroys the context, so that every later call of the process fails.
fn kills_context(code: sys::CUresult) -> bool {
    use sys::CUresult as E;
    matches!(
        code,
        E::CUDA_ERROR_DEINITIALIZED
            | E::CUDA_ERROR_DEVICE_UNAVAILABLE
            | E::CUDA_ERROR_ECC_UNCORRECTABLE
            | E::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | E::CUDA_ERROR_CONTAINED
            | E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_TENSOR_MEMORY_LEAK
            | E::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | E::CUDA_ERROR_EXTERNAL_DEVICE
            | E::CUDA_ERROR_UNKNOWN
    )
}

/// Version of the kernel module, and the CUDA version that the library supports.
pub(super) fn version(api: &Api) -> DriverVersion {
    let version = fs::read_to_string("/proc/driver/nvidia/version")
        .ok()
        .and_then(|text| parse_version(&text))
        .or_else(|| fs::read_to_string("/sys/module/nvidia/version").ok().and_then(|text| parse_version(&text)));
    DriverVersion { version, cuda: api.cuda }
}

/// First word that looks like a driver version: two or three numbers separated by dots.
fn parse_version(text: &str) -> Option<String> {
    let looks_right = |word: &&str| {
        let parts: Vec<&str> = word.split('.').collect();
        (2..=3).contains(&parts.len()) && parts.iter().all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()))
    };
    text.split_whitespace().find(looks_right).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_both_kinds_of_kernel_module() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n\
                      GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@build)\n";
        assert_eq!(parse_version(closed).as_deref(), Some("535.129.03"));
        assert_eq!(parse_version(open).as_deref(), Some("580.65.06"));
        assert_eq!(parse_version("550.54\n").as_deref(), Some("550.54"));
        assert_eq!(parse_version("no version here"), None);
    }

    #[test]
    fn an_aborted_kernel_costs_the_context_and_a_refused_call_does_not() {
        use sys::CUresult as E;
        for code in [E::CUDA_ERROR_ILLEGAL_ADDRESS, E::CUDA_ERROR_ASSERT, E::CUDA_ERROR_LAUNCH_FAILED] {
            assert!(kills_context(code), "{code:?}");
        }
        for code in [
            E::CUDA_ERROR_INVALID_VALUE,
            E::CUDA_ERROR_OUT_OF_MEMORY,
            E::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            E::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            E::CUDA_ERROR_NO_BINARY_FOR_GPU,
            E::CUDA_ERROR_NOT_FOUND,
        ] {
            assert!(!kills_context(code), "{code:?}");
        }
    }
}
