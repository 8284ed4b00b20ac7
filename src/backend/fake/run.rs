//! What the tests of a run need besides a device: code, an environment, one sample a case.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::{
    CodeKind, CompileKey, Compiled, DeviceInfo, Environment, Machine, MeasurePlan, Regime, ToolkitInfo,
};

fn toolkit() -> ToolkitInfo {
    ToolkitInfo { version: (13, 0), build: None }
}

/// Code of no kernel, in no file.
pub fn compiled(key: &str) -> Compiled {
    Compiled {
        key: CompileKey(key.to_owned()),
        kind: CodeKind::Cubin,
        code: PathBuf::new(),
        kernels: BTreeMap::new(),
        symbols: BTreeMap::new(),
        resources: BTreeMap::new(),
        toolkit: toolkit(),
        log: String::new(),
        device_runtime: None,
        cached: false,
    }
}

/// A machine of which nothing but the device is known.
pub fn environment(device: DeviceInfo) -> Environment {
    Environment {
        device,
        driver: None,
        driver_cuda: None,
        toolkit: toolkit(),
        host_compiler: None,
        runner: "0".to_owned(),
        timing_method: None,
        counting_method: None,
        machine: Machine::default(),
    }
}

/// One sample of a regime, however wide its interval; `timeout` in seconds.
pub fn one_sample(regime: Regime, timeout: f64) -> MeasurePlan {
    MeasurePlan {
        regimes: vec![regime],
        precision: 0.01,
        timeout,
        warmup: 0,
        min_samples: 1,
        max_samples: 1,
        budget: 1.0,
        energy: false,
    }
}
