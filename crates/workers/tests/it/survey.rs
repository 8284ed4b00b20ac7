//! A worker that surveys its device, or fails to, as the file `survey` in its folder says.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fake_backend::compiled;
use runner_backend::DeviceError;
use runner_types::{CalibrationPoint, Ceilings, Survey, SurveyRequest};
use runner_workers::{Interrupt, Pool, RunEnd, SurveyError};
use tempfile::TempDir;

use super::scripted::{NEVER, group, spec};

const CEILINGS: Ceilings =
    Ceilings { read: 3e12, write: None, copy: 2.9e12, l2_read: 6e12, fma_f32: 6e13, fma_f64: 3e13, fma_f16: 1.2e14 };

fn found() -> Survey {
    let point = CalibrationPoint { label: "1×32, 0 cycles".into(), read: 3170.0, error: 0.0, reference: None };
    Survey {
        ceilings: Some(CEILINGS),
        points: vec![point],
        short: Vec::new(),
        long: Vec::new(),
        empty: 1300.0,
        reference_clock: None,
    }
}

/// The worker's side of a survey: does what the file `survey` says.
pub fn act(folder: &Path) -> Result<Survey, DeviceError> {
    match fs::read_to_string(folder.join("survey")).unwrap_or_default().as_str() {
        "hangs" => thread::sleep(NEVER),
        "aborts" => std::process::abort(),
        "refuses" => return Err(DeviceError::OutOfMemory { needed: 2, available: 1 }),
        "loses" => return Err(DeviceError::ContextLost("an illegal memory access was encountered".into())),
        _ => {}
    }
    Ok(found())
}

fn request() -> SurveyRequest {
    SurveyRequest { spread: true, ceilings: true, code: compiled("0") }
}

/// Result of a survey. The pool must still run a group after it.
fn survey(script: &str) -> Result<Survey, SurveyError> {
    survey_within(Duration::from_mins(2), script)
}

fn survey_within(limit: Duration, script: &str) -> Result<Survey, SurveyError> {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("survey"), script).unwrap();
    let interrupt = Interrupt::new();
    let (mut pool, _) = Pool::start(spec(folder.path()), &interrupt).unwrap();
    let found = pool.survey(request(), limit, &interrupt);
    assert_eq!(pool.run([group(0, &["good"])], &mut |_| {}, &interrupt), RunEnd::Complete, "after {script}");
    found
}

#[test]
fn what_the_worker_finds_reaches_the_dispatcher() {
    assert_eq!(survey("").unwrap(), found());
}

#[test]
fn a_refusal_is_told_in_the_devices_words_and_costs_no_worker() {
    let refused = survey("refuses").unwrap_err();
    assert!(matches!(refused, SurveyError::Refused(_)), "{refused}");
    assert_eq!(refused.to_string(), "needs 2 B, 1 B free on the device");
}

#[test]
fn a_worker_that_hangs_dies_or_loses_its_device_is_told_and_replaced() {
    let hung = survey_within(Duration::from_millis(500), "hangs").unwrap_err().to_string();
    assert_eq!(hung, "the worker sent no reply within 0.5 s while it measured the device");
    let died = survey("aborts").unwrap_err().to_string();
    assert!(died.starts_with("the worker was killed by SIGABRT (it aborted itself)"), "{died}");
    let lost = survey("loses").unwrap_err().to_string();
    assert!(lost.starts_with("the worker lost its device (an illegal memory access was encountered)"), "{lost}");
}
