//! Stores surveys of machines, one file per device and driver.
//!
//! Results from another version of the program or another driver are ignored: measuring takes little time, and a wrong
//! ceiling is worse than none. An unreadable file is replaced.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use runner_files::atomic::WriteError;
use runner_files::sealed;
use runner_types::{Machine, ReferenceTimes, sha256_hex};

/// Version of the file format; raised when older files would be misread, or when a survey measures more.
const FORMAT: u32 = 5;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the survey of the machine cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// Stored results of a device under one driver.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Results that apply to every process on the device.
    pub machine: Machine,
    /// Times from which each process derives its clock constant; absent without a reference clock.
    pub reference: Option<ReferenceTimes>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    format: u32,
    runner: String,
    device: String,
    driver: String,
    machine: Machine,
    /// Reference clock times; absent if there are none.
    #[serde(alias = "ladder")]
    reference: Option<ReferenceTimes>,
}

impl Store {
    /// Store in this folder, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Results of the device with this UUID under this driver.
    pub fn load(&self, device: &str, driver: &str) -> Option<Known> {
        let entry: Entry = serde_json::from_slice(&sealed::read(&self.file(device, driver))?).ok()?;
        let is_of_this = entry.format == FORMAT
            && entry.runner == env!("CARGO_PKG_VERSION")
            && entry.device == device
            && entry.driver == driver;
        is_of_this.then_some(Known { machine: entry.machine, reference: entry.reference })
    }

    pub fn save(&self, device: &str, driver: &str, known: &Known) -> Result<(), StoreError> {
        let entry = Entry {
            format: FORMAT,
            runner: env!("CARGO_PKG_VERSION").to_owned(),
            device: device.to_owned(),
            driver: driver.to_owned(),
            machine: known.machine.clone(),
            reference: known.reference.clone(),
        };
        let text = serde_json::to_string_pretty(&entry)? + "\n";
        Ok(sealed::write(&self.file(device, driver), text.as_bytes())?)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// File of a device. Its name is a hash, since device and driver names come from the driver and may contain any
    /// character.
    fn file(&self, device: &str, driver: &str) -> PathBuf {
        let name = sha256_hex(format!("{device}\n{driver}").as_bytes());
        self.folder.join(format!("{}.json", &name[..16]))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use std::fs;

    use super::*;
    use runner_types::{Ceilings, Clock};

    fn known() -> Known {
        let machine = Machine {
            gpu: None,
            ceilings: Some(Ceilings {
                read: 3.2e12,
                write: Some(3.3e12),
                copy: 3.0e12,
                l2_read: 6e12,
                fma_f32: 6e13,
                fma_f64: 3e13,
                fma_f16: 1.2e14,
            }),
            clock: Some(Clock::Uncalibrated { why: "CUPTI is not found".to_owned(), empty: 1300.5 }),
            spread: None,
            settings: None,
            other_processes: None,
        };
        let times = [("1×32, 0 cycles".to_owned(), 900.5)].into();
        Known { machine, reference: Some(ReferenceTimes { reference_clock: "CUPTI 13.0".to_owned(), times }) }
    }

    #[test]
    fn what_is_kept_comes_back_for_the_same_device_and_driver_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("machines"));
        assert_eq!(store.load("GPU-a", "580.1"), None);
        store.save("GPU-a", "580.1", &known()).unwrap();
        assert_eq!(store.load("GPU-a", "580.1"), Some(known()));
        assert_eq!(store.load("GPU-b", "580.1"), None);
        assert_eq!(store.load("GPU-a", "590.2"), None);
    }

    #[test]
    fn a_damaged_file_is_nothing_known_and_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        store.save("GPU-a", "580.1", &known()).unwrap();
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("1300.5", "1300.4")).unwrap();
        assert_eq!(store.load("GPU-a", "580.1"), None);
        fs::write(&file, &text[..text.len() / 2]).unwrap();
        assert_eq!(store.load("GPU-a", "580.1"), None);
        store.save("GPU-a", "580.1", &known()).unwrap();
        assert_eq!(store.load("GPU-a", "580.1"), Some(known()));
    }
}
