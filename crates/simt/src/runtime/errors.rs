//! The `cudaError_t` codes that the device runtime returns, with their names and descriptions. Source: `driver_types.h`
//! of CUDA 13.0.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::memory::{Memory, Use};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code(pub u32);

impl Code {
    pub const SUCCESS: Self = Self(0);
    pub const INVALID_VALUE: Self = Self(1);
    pub const MEMORY_ALLOCATION: Self = Self(2);
    pub const INVALID_CONFIGURATION: Self = Self(9);
    pub const INVALID_PITCH: Self = Self(12);
    pub const INVALID_DIRECTION: Self = Self(21);
    pub const PENDING_COUNT_EXCEEDED: Self = Self(69);
    pub const INVALID_DEVICE_FUNCTION: Self = Self(98);
    pub const INVALID_DEVICE: Self = Self(101);
    pub const INVALID_HANDLE: Self = Self(400);
}

/// Code, name and description of each error.
const TEXTS: [(u32, &str, &str); 15] = [
    (0, "cudaSuccess", "no error"),
    (1, "cudaErrorInvalidValue", "invalid argument"),
    (2, "cudaErrorMemoryAllocation", "out of memory"),
    (9, "cudaErrorInvalidConfiguration", "invalid configuration argument"),
    (12, "cudaErrorInvalidPitchValue", "invalid pitch argument"),
    (21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"),
    (65, "cudaErrorLaunchMaxDepthExceeded", "launch would exceed maximum depth of nested launches"),
    (
        69,
        "cudaErrorLaunchPendingCountExceeded",
        "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount",
    ),
    (98, "cudaErrorInvalidDeviceFunction", "invalid device function"),
    (101, "cudaErrorInvalidDevice", "invalid device ordinal"),
    (400, "cudaErrorInvalidResourceHandle", "invalid resource handle"),
    (700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    (701, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"),
    (801, "cudaErrorNotSupported", "operation not supported"),
    (999, "cudaErrorUnknown", "unknown error"),
];

/// Strings that kernels have requested, with their addresses in device memory. Never freed, because a kernel may keep
/// the pointer.
#[derive(Debug, Default)]
pub struct Texts(Mutex<BTreeMap<(Code, bool), u64>>);

impl Texts {
    /// Returns the address of a code's name or description; zero if there is not enough memory.
    pub fn address(&self, memory: &Memory, code: Code, name: bool) -> u64 {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&address) = known.get(&(code, name)) {
            return address;
        }
        let found = TEXTS.iter().find(|t| t.0 == code.0);
        let text = found.map_or("unrecognized error code", |t| if name { t.1 } else { t.2 });
        let bytes = [text.as_bytes(), b"\0"].concat();
        let address = memory.alloc(bytes.len() as u64, "the text of an error", Use::InternalConstant).unwrap_or(0);
        if address != 0 && memory.write(address, &bytes).is_err() {
            return 0;
        }
        known.insert((code, name), address);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sorted_by_code_and_end_where_their_strings_end() {
        assert!(TEXTS.is_sorted_by_key(|t| t.0));
        assert!(TEXTS.iter().all(|t| t.1.starts_with("cuda") && !t.2.is_empty()));
    }
}
