//! Settings and current state of a GPU, read from NVML.
//!
//! Reads, and changes nothing: no clock, no power limit, no mode. The library is opened at run time by the name that
//! the driver installs; where it is missing, or does not know a figure, that figure is absent.

use std::ffi::OsStr;
use std::sync::OnceLock;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, ComputeMode, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::backend::Monitor;
use crate::model::{DeviceState, Joules, Settings, ThrottleReason};

/// The driver's own name of the library; the plain one comes with development packages only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// One GPU as NVML knows it.
#[derive(Debug)]
pub(super) struct Gpu {
    device: Device<'static>,
}

impl Gpu {
    /// The GPU at this PCI address, which the driver calls by the same name; a MIG instance is found by its GPU.
    pub fn open(pci_bus_id: &str) -> Result<Self, String> {
        let device = nvml()?.device_by_pci_bus_id(pci_bus_id);
        device.map(|device| Self { device }).map_err(|error| format!("NVML does not know GPU {pci_bus_id}: {error}"))
    }

    /// Energy of the board since the driver was loaded. The counter advances about ten times a second.
    pub fn energy(&self) -> Result<Joules, String> {
        let millijoules = self.device.total_energy_consumption().map_err(|error| match error {
            NvmlError::NotSupported => "NVML does not measure energy on this GPU".to_owned(),
            other => format!("NVML cannot read the energy: {other}"),
        })?;
        Ok(Joules(millijoules as f64 / 1e3))
    }
}

impl Monitor for Gpu {
    fn settings(&self) -> Settings {
        let device = &self.device;
        Settings {
            max_sm_clock_mhz: device.max_clock_info(Clock::SM).ok(),
            max_memory_clock_mhz: device.max_clock_info(Clock::Memory).ok(),
            application_sm_clock_mhz: device.applications_clock(Clock::SM).ok(),
            application_memory_clock_mhz: device.applications_clock(Clock::Memory).ok(),
            power_limit_watts: device.enforced_power_limit().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
            persistence: device.is_in_persistent_mode().ok(),
            compute_mode: device.compute_mode().ok().map(|mode| compute_mode(mode).to_owned()),
            mig: device.mig_mode().ok().map(|mode| mode.current != 0),
        }
    }

    fn state(&mut self) -> DeviceState {
        let device = &self.device;
        DeviceState {
            sm_clock_mhz: device.clock_info(Clock::SM).ok(),
            power_watts: device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
            temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok(),
            throttled_by: device.current_throttle_reasons().map(throttled_by).unwrap_or_default(),
        }
    }

    /// `None` where this user may not list processes.
    fn other_processes(&self) -> Option<u32> {
        // In a container process ids may be of another namespace, so they are counted, not compared.
        self.device.running_compute_processes().ok().map(|all| (all.len() as u32).saturating_sub(1))
    }
}

/// The library, opened once a process and never closed: devices borrow from it.
fn nvml() -> Result<&'static Nvml, String> {
    static NVML: OnceLock<Result<Nvml, String>> = OnceLock::new();
    let opened = NVML.get_or_init(|| Nvml::builder().lib_path(OsStr::new(LIBRARY)).init().map_err(|e| explain(&e)));
    opened.as_ref().map_err(Clone::clone)
}

fn explain(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => {
            format!(
                "{LIBRARY} is not found; it comes with the driver (in a container: NVIDIA_DRIVER_CAPABILITIES=utility)"
            )
        }
        NvmlError::NoPermission => "this user may not ask NVML".to_owned(),
        other => format!("NVML does not start: {other}"),
    }
}

/// Reasons for throttling. Idleness and clocks that were set on purpose are none.
fn throttled_by(reasons: ThrottleReasons) -> Vec<ThrottleReason> {
    let table = [
        (ThrottleReasons::SW_POWER_CAP, ThrottleReason::PowerCap),
        (ThrottleReasons::HW_SLOWDOWN, ThrottleReason::HardwareSlowdown),
        (ThrottleReasons::SYNC_BOOST, ThrottleReason::SyncBoost),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, ThrottleReason::Temperature),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, ThrottleReason::HardwareTemperature),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, ThrottleReason::PowerBrake),
    ];
    table.into_iter().filter(|(flag, _)| reasons.contains(*flag)).map(|(_, name)| name).collect()
}

const fn compute_mode(mode: ComputeMode) -> &'static str {
    match mode {
        ComputeMode::Default => "default",
        ComputeMode::ExclusiveThread => "exclusive thread",
        ComputeMode::Prohibited => "prohibited",
        ComputeMode::ExclusiveProcess => "exclusive process",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_and_chosen_clocks_hold_nothing_back() {
        assert!(throttled_by(ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING).is_empty());
        assert_eq!(
            throttled_by(
                ThrottleReasons::GPU_IDLE | ThrottleReasons::SW_POWER_CAP | ThrottleReasons::HW_THERMAL_SLOWDOWN
            ),
            [ThrottleReason::PowerCap, ThrottleReason::HardwareTemperature]
        );
    }

    #[test]
    fn a_machine_without_the_library_is_told_what_brings_it() {
        let why = explain(&NvmlError::LibraryNotFound);
        assert!(why.contains("libnvidia-ml.so.1") && why.contains("NVIDIA_DRIVER_CAPABILITIES"), "{why}");
    }
}
