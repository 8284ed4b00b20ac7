//! A fake device with the survey's kernels, for tests.

use super::unit;
use fake_backend::{FakeDevice, FakeKernel, compiled, device_info};
use runner_types::{Compiled, SurveyRequest};

/// A request that compiles every kernel under its own name.
pub(super) fn request(ceilings: bool) -> SurveyRequest {
    let kernels = unit("survey.cu".into()).kernels;
    SurveyRequest {
        spread: ceilings,
        ceilings,
        code: Compiled {
            code: "survey.cubin".into(),
            kernels: kernels.into_iter().map(|name| (name.clone(), name)).collect(),
            ..compiled("")
        },
    }
}

/// A device whose kernels take the time that `nanoseconds` returns for their names.
pub(super) fn device(nanoseconds: impl Fn(&str) -> f64) -> FakeDevice {
    let kernel = |name: &str| {
        let time = nanoseconds(name);
        FakeKernel::new(|_| Ok(())).taking(move |_| time)
    };
    request(false).code.kernels.keys().fold(FakeDevice::new(device_info()), |d, name| d.with_kernel(name, kernel(name)))
}
