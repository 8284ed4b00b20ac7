//! Settings and current state of a GPU, read from NVML.
//!
//! Nothing is changed: no clock, no power limit, no mode. The library is opened at run time under the name that the
//! driver installs. A figure is absent if there is no library or the library does not report it.

use std::ffi::{CStr, CString, c_uint, c_ulonglong};
use std::sync::OnceLock;
use std::{fmt, ptr};

use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlClockType_enum_NVML_CLOCK_MEM as MEMORY_CLOCK, nvmlClockType_enum_NVML_CLOCK_SM as SM_CLOCK,
    nvmlClocksThrottleReasonHwPowerBrakeSlowdown as POWER_BRAKE, nvmlClocksThrottleReasonHwSlowdown as HW_SLOWDOWN,
    nvmlClocksThrottleReasonHwThermalSlowdown as HW_THERMAL, nvmlClocksThrottleReasonSwPowerCap as POWER_CAP,
    nvmlClocksThrottleReasonSwThermalSlowdown as SW_THERMAL, nvmlClocksThrottleReasonSyncBoost as SYNC_BOOST,
    nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT as DEFAULT_MODE,
    nvmlComputeMode_enum_NVML_COMPUTEMODE_EXCLUSIVE_PROCESS as EXCLUSIVE_PROCESS,
    nvmlComputeMode_enum_NVML_COMPUTEMODE_EXCLUSIVE_THREAD as EXCLUSIVE_THREAD,
    nvmlComputeMode_enum_NVML_COMPUTEMODE_PROHIBITED as PROHIBITED, nvmlDevice_t,
    nvmlEccCounterType_enum_NVML_VOLATILE_ECC as VOLATILE, nvmlMemory_t,
    nvmlMemoryErrorType_enum_NVML_MEMORY_ERROR_TYPE_UNCORRECTED as UNCORRECTED,
    nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE as INSUFFICIENT_SIZE,
    nvmlReturn_enum_NVML_ERROR_NO_PERMISSION as NO_PERMISSION,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED, nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t,
    nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU as GPU_SENSOR,
};

use crate::Monitor;
use runner_types::{DeviceState, Joules, Settings, ThrottleReason};

/// Library name that the driver installs; the one without a version comes only with development packages.
const LIBRARY: &str = "libnvidia-ml.so.1";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum NvmlError {
    /// The library is not installed; contains the loader's message.
    #[error("{LIBRARY} was not found; it comes with the driver (in a container: NVIDIA_DRIVER_CAPABILITIES=utility)")]
    Missing(String),
    /// The library is too old to have the function.
    #[error("the installed NVML is too old for it")]
    Unknown,
    #[error("NVML does not support it on this GPU")]
    NotSupported,
    #[error("this user may not query NVML")]
    NoPermission,
    #[error("{0}")]
    Other(String),
}

struct Nvml(NvmlLib);

impl fmt::Debug for Nvml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LIBRARY)
    }
}

impl Nvml {
    fn open() -> Result<Self, NvmlError> {
        // SAFETY: loading the driver's library runs no user code.
        let lib = unsafe { NvmlLib::new(LIBRARY) }.map_err(|error| NvmlError::Missing(error.to_string()))?;
        let nvml = Self(lib);
        let init = function(&nvml.0.nvmlInit_v2)?;
        // SAFETY: no arguments; the library counts initialisations.
        nvml.checked(unsafe { init() })?;
        Ok(nvml)
    }

    fn checked(&self, code: nvmlReturn_t) -> Result<(), NvmlError> {
        match code {
            SUCCESS => Ok(()),
            NOT_SUPPORTED => Err(NvmlError::NotSupported),
            NO_PERMISSION => Err(NvmlError::NoPermission),
            other => Err(NvmlError::Other(self.text(other))),
        }
    }

    fn text(&self, code: nvmlReturn_t) -> String {
        let Ok(text) = &self.0.nvmlErrorString else { return format!("NVML error {code}") };
        // SAFETY: the library returns a static string for a known code, and null otherwise.
        let text = unsafe { text(code) };
        if text.is_null() {
            return format!("NVML error {code}");
        }
        // SAFETY: not null, and NUL-terminated as the interface promises.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// The function, if this version of the library has it.
fn function<F: Copy>(loaded: &Result<F, impl Sized>) -> Result<F, NvmlError> {
    loaded.as_ref().map(|function| *function).map_err(|_| NvmlError::Unknown)
}

#[derive(Debug)]
pub(super) struct Gpu {
    nvml: &'static Nvml,
    handle: nvmlDevice_t,
}

// SAFETY: the interface is thread-safe, and a handle is valid in every thread of the process.
unsafe impl Send for Gpu {}

/// A function that reads one number from a device.
type Read<T> = unsafe extern "C" fn(nvmlDevice_t, *mut T) -> nvmlReturn_t;
/// A function that reads the kind of value named by its second argument.
type ReadOf = unsafe extern "C" fn(nvmlDevice_t, c_uint, *mut c_uint) -> nvmlReturn_t;

impl Gpu {
    /// Opens the GPU at a PCI address, which driver and NVML share. A MIG instance is found through its GPU.
    pub fn open(pci_bus_id: &str) -> Result<Self, String> {
        let nvml = nvml()?;
        let unknown = |why: String| format!("NVML does not know GPU {pci_bus_id}: {why}");
        let address = CString::new(pci_bus_id).map_err(|error| unknown(error.to_string()))?;
        let mut handle = ptr::null_mut();
        let find = function(&nvml.0.nvmlDeviceGetHandleByPciBusId_v2).map_err(|error| unknown(error.to_string()))?;
        // SAFETY: `address` is NUL-terminated, and `handle` outlives the call.
        let code = unsafe { find(address.as_ptr(), &raw mut handle) };
        nvml.checked(code).map_err(|error| unknown(error.to_string()))?;
        Ok(Self { nvml, handle })
    }

    /// Energy of the board since the driver was loaded. The counter of an H100 advances about ten times a second.
    pub fn energy(&self) -> Result<Joules, String> {
        let millijoules =
            self.number(&self.nvml.0.nvmlDeviceGetTotalEnergyConsumption).map_err(|error| match error {
                NvmlError::NotSupported => "NVML does not measure energy on this GPU".to_owned(),
                other => format!("NVML cannot read the energy: {other}"),
            })?;
        Ok(Joules(millijoules as f64 / 1e3))
    }

    fn number<T: Copy + Default>(&self, read: &Result<Read<T>, impl Sized>) -> Result<T, NvmlError> {
        let mut value = T::default();
        // SAFETY: the handle is the library's, and `value` has the type that the function writes.
        let code = unsafe { function(read)?(self.handle, &raw mut value) };
        self.nvml.checked(code).map(|()| value)
    }

    fn number_of(&self, read: &Result<ReadOf, impl Sized>, kind: c_uint) -> Result<u32, NvmlError> {
        let mut value = 0;
        // SAFETY: the handle is the library's, and `value` has room for one number.
        let code = unsafe { function(read)?(self.handle, kind, &raw mut value) };
        self.nvml.checked(code).map(|()| value)
    }

    /// Whether MIG is enabled. A pending change takes effect at the next reset.
    fn mig(&self) -> Result<bool, NvmlError> {
        let (mut current, mut pending) = (0, 0);
        let read = function(&self.nvml.0.nvmlDeviceGetMigMode)?;
        // SAFETY: the handle is the library's, and both places have room for a number.
        let code = unsafe { read(self.handle, &raw mut current, &raw mut pending) };
        self.nvml.checked(code).map(|()| current != 0)
    }

    /// Total and free memory in bytes.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let mut memory = nvmlMemory_t { total: 0, free: 0, used: 0 };
        let read = function(&self.nvml.0.nvmlDeviceGetMemoryInfo).ok()?;
        // SAFETY: the handle is the library's, and `memory` is the structure that the function writes.
        let code = unsafe { read(self.handle, &raw mut memory) };
        self.nvml.checked(code).ok().map(|()| (memory.total, memory.free))
    }

    /// Memory errors that ECC could not correct, since the driver was loaded.
    pub fn uncorrected_errors(&self) -> Option<u64> {
        let mut count = 0;
        let read = function(&self.nvml.0.nvmlDeviceGetTotalEccErrors).ok()?;
        // SAFETY: the handle is the library's, and `count` has room for one number.
        let code = unsafe { read(self.handle, UNCORRECTED, VOLATILE, &raw mut count) };
        self.nvml.checked(code).ok().map(|()| count)
    }

    /// Number of processes on the GPU, as seen from a process that does not use it; `None` if this user may not list
    /// them.
    pub fn users(&self) -> Option<u32> {
        self.processes().ok()
    }

    /// Number of processes with a compute context on the GPU.
    fn processes(&self) -> Result<u32, NvmlError> {
        let mut count = 0;
        let read = function(&self.nvml.0.nvmlDeviceGetComputeRunningProcesses_v3)?;
        // SAFETY: with space for no entries, the function writes only the number.
        match unsafe { read(self.handle, &raw mut count, ptr::null_mut()) } {
            INSUFFICIENT_SIZE => Ok(count),
            code => self.nvml.checked(code).map(|()| count),
        }
    }
}

impl Monitor for Gpu {
    fn settings(&self) -> Settings {
        let lib = &self.nvml.0;
        Settings {
            max_sm_clock_mhz: self.number_of(&lib.nvmlDeviceGetMaxClockInfo, SM_CLOCK).ok(),
            max_memory_clock_mhz: self.number_of(&lib.nvmlDeviceGetMaxClockInfo, MEMORY_CLOCK).ok(),
            application_sm_clock_mhz: self.number_of(&lib.nvmlDeviceGetApplicationsClock, SM_CLOCK).ok(),
            application_memory_clock_mhz: self.number_of(&lib.nvmlDeviceGetApplicationsClock, MEMORY_CLOCK).ok(),
            power_limit_watts: self.number(&lib.nvmlDeviceGetEnforcedPowerLimit).ok().map(watts),
            persistence: self.number(&lib.nvmlDeviceGetPersistenceMode).ok().map(|mode| mode != 0),
            compute_mode: self.number(&lib.nvmlDeviceGetComputeMode).ok().and_then(compute_mode).map(str::to_owned),
            mig: self.mig().ok(),
        }
    }

    fn state(&mut self) -> DeviceState {
        let lib = &self.nvml.0;
        let reasons = self.number(&lib.nvmlDeviceGetCurrentClocksThrottleReasons);
        DeviceState {
            sm_clock_mhz: self.number_of(&lib.nvmlDeviceGetClockInfo, SM_CLOCK).ok(),
            power_watts: self.number(&lib.nvmlDeviceGetPowerUsage).ok().map(watts),
            temperature_celsius: self.number_of(&lib.nvmlDeviceGetTemperature, GPU_SENSOR).ok(),
            throttled_by: reasons.map(throttled_by).unwrap_or_default(),
        }
    }

    /// `None` if this user may not list processes.
    fn other_processes(&self) -> Option<u32> {
        // In a container, process ids may belong to another namespace, so they are counted, not compared.
        self.processes().ok().map(|all| all.saturating_sub(1))
    }
}

fn watts(milliwatts: c_uint) -> f64 {
    f64::from(milliwatts) / 1e3
}

/// The library, opened once per process and never closed, since devices borrow from it.
fn nvml() -> Result<&'static Nvml, String> {
    static NVML: OnceLock<Result<Nvml, NvmlError>> = OnceLock::new();
    NVML.get_or_init(Nvml::open).as_ref().map_err(|error| match error {
        NvmlError::Missing(_) | NvmlError::NoPermission => error.to_string(),
        other => format!("NVML does not start: {other}"),
    })
}

/// Reasons for throttling. Idle clocks and deliberately set clocks are not among them.
fn throttled_by(reasons: c_ulonglong) -> Vec<ThrottleReason> {
    let table = [
        (POWER_CAP, ThrottleReason::PowerCap),
        (HW_SLOWDOWN, ThrottleReason::HardwareSlowdown),
        (SYNC_BOOST, ThrottleReason::SyncBoost),
        (SW_THERMAL, ThrottleReason::Temperature),
        (HW_THERMAL, ThrottleReason::HardwareTemperature),
        (POWER_BRAKE, ThrottleReason::PowerBrake),
    ];
    table.into_iter().filter(|(flag, _)| reasons & c_ulonglong::from(*flag) != 0).map(|(_, name)| name).collect()
}

/// `None` for a mode newer than this table.
const fn compute_mode(mode: c_uint) -> Option<&'static str> {
    match mode {
        DEFAULT_MODE => Some("default"),
        EXCLUSIVE_THREAD => Some("exclusive thread"),
        PROHIBITED => Some("prohibited"),
        EXCLUSIVE_PROCESS => Some("exclusive process"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits as `nvml.h` defines them: idle 0x1, clocks setting 0x2, power cap 0x4, thermal slowdown 0x40.
    #[test]
    fn idleness_and_chosen_clocks_are_no_throttling() {
        assert!(throttled_by(0x1 | 0x2).is_empty());
        assert_eq!(throttled_by(0x1 | 0x4 | 0x40), [ThrottleReason::PowerCap, ThrottleReason::HardwareTemperature]);
    }

    #[test]
    fn a_machine_without_the_library_learns_what_brings_it() {
        let why = NvmlError::Missing("no such file".to_owned()).to_string();
        assert!(why.contains("libnvidia-ml.so.1") && why.contains("NVIDIA_DRIVER_CAPABILITIES"), "{why}");
    }
}
