//! A group of copies and sums on the fake device, and its reports.

use crate::{GroupCache, Lost, run_group};
use fake_backend::{Call, FakeDevice, FakeKernel, device_info};
use runner_backend::DeviceError;
use runner_types::{
    Access, ArgPlan, BlockPlan, BodyPlan, BufferPlan, Case, CaseJob, CaseKey, CheckPlan, ElementType, Event,
    ExpectPlan, FillPlan, GridPlan, GroupJob, GroupKey, LaunchPlan, MeasurePlan, Measurement, Mismatch, Note, Outcome,
    RefExpr, RefFunction, Regime, Sharing, Tolerance, Value, Verdict, WholeTolerance,
};

/// Length of every array, unless a test says otherwise.
pub const N: u64 = 1000;

/// Everything that a group reported, and the device afterwards.
pub struct Said {
    pub events: Vec<Event>,
    pub device: FakeDevice,
    pub result: Result<(), Lost>,
}

impl Said {
    pub fn outcomes(&self, variant: &str) -> Vec<Outcome> {
        let settled = |event: &Event| match event {
            Event::CaseSettled { case, outcome, .. } if case.key.variant == variant => Some(outcome.clone()),
            _ => None,
        };
        self.events.iter().filter_map(settled).collect()
    }

    /// The single outcome of a variant; fails the test if there are more or none.
    pub fn outcome(&self, variant: &str) -> Outcome {
        let outcomes = self.outcomes(variant);
        assert_eq!(outcomes.len(), 1, "{variant} settled {} times: {outcomes:?}", outcomes.len());
        outcomes[0].clone()
    }

    pub fn mismatch(&self, variant: &str) -> Mismatch {
        match self.outcome(variant) {
            Outcome::Wrong { mismatch } => {
                assert!(self.measurement(variant).is_none(), "{variant} is wrong and has a measurement");
                mismatch
            }
            other => panic!("{variant} ended as {other:?}"),
        }
    }

    pub fn measurement(&self, variant: &str) -> Option<&Measurement> {
        self.events.iter().find_map(|event| match event {
            Event::CaseMeasured { case, measurement } if case.key.variant == variant => Some(measurement),
            _ => None,
        })
    }

    /// Notes on a variant, except that its inputs are fixed, which is so in most tests.
    pub fn notes(&self, variant: &str) -> Vec<Note> {
        let note = |event: &Event| match event {
            Event::CaseNote { case, note } if case.key.variant == variant => Some(note.clone()),
            _ => None,
        };
        let is_other = |note: &Note| !matches!(note, Note::FixedInputs { .. });
        self.events.iter().filter_map(note).filter(is_other).collect()
    }

    pub fn verdict(&self, variant: &str) -> Option<&Verdict> {
        self.events.iter().find_map(|event| match event {
            Event::CaseChecked { case, verdict, .. } if case.key.variant == variant => Some(verdict),
            _ => None,
        })
    }
}

pub fn run(mut device: FakeDevice, job: &GroupJob) -> Said {
    let mut events = Vec::new();
    let result = run_group(&mut device, job, &mut GroupCache::default(), &mut |event| events.push(event));
    Said { events, device, result }
}

/// A device with one kernel per variant, under the variant's name.
pub fn device(kernels: Vec<(&str, FakeKernel)>) -> FakeDevice {
    kernels.into_iter().fold(FakeDevice::new(device_info()), |device, (name, kernel)| device.with_kernel(name, kernel))
}

pub fn kernel(body: impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static) -> FakeKernel {
    FakeKernel::new(body)
}

/// Copies its first argument to its second.
pub fn right(call: &mut Call<'_>) -> Result<(), DeviceError> {
    let input = call.read(0)?;
    call.write(1, 0, &input)
}

pub fn buffer(name: &str, element: ElementType, len: u64, access: Access) -> BufferPlan {
    let fill = matches!(access, Access::In | Access::InOut)
        .then_some(FillPlan::Iota { start: Value::Int(1), step: Value::Int(1) });
    BufferPlan { fill, ..fake_backend::buffer_plan(name, element, len, access) }
}

pub fn call(function: RefFunction, buffer: &str) -> RefExpr {
    RefExpr::Call { function, buffers: vec![RefExpr::Buffer(buffer.to_owned())], integers: vec![] }
}

/// A check that `out` is a copy of `input`.
pub fn copies(element: ElementType) -> CheckPlan {
    CheckPlan {
        text: "out".to_owned(),
        actual: RefExpr::Buffer("out".to_owned()),
        expect: ExpectPlan::Reference(call(RefFunction::Copy, "input")),
        tolerance: Tolerance::default_for(element),
        whole: WholeTolerance::default(),
        mask: None,
        error: false,
    }
}

pub fn measure() -> MeasurePlan {
    MeasurePlan {
        regimes: vec![Regime::Cold],
        precision: 0.01,
        timeout: 30.0,
        warmup: 1,
        min_samples: 10,
        max_samples: 40,
        // More than any test takes on a busy machine: the greater of the host's and the device's time counts.
        budget: 1e6,
        energy: false,
        processes: None,
        drop_above: None,
    }
}

pub fn launch(kernel: &str, buffers: &[&str]) -> LaunchPlan {
    LaunchPlan {
        grid: GridPlan::Fixed([4, 1, 1]),
        block: BlockPlan::Fixed([256, 1, 1]),
        args: buffers.iter().map(|name| ArgPlan::Buffer((*name).to_owned())).collect(),
        ..fake_backend::ready_launch("kernels/test.cu", kernel)
    }
}

/// The variant `name` copies `input` to `out` with the kernel of the same name.
pub fn case(name: &str, element: ElementType) -> CaseJob {
    let key = CaseKey { experiment: "test".to_owned(), variant: name.to_owned(), axes: vec![] };
    let body = BodyPlan::Launches(vec![launch(name, &["input", "out"])]);
    CaseJob {
        buffers: vec![buffer("input", element, N, Access::In), buffer("out", element, N, Access::Out)],
        checks: vec![copies(element)],
        ..fake_backend::case_job(Case { ordinal: 0, key, group: GroupKey(vec![]) }, body, measure())
    }
}

/// A group whose first case is the baseline.
pub fn group(cases: Vec<CaseJob>) -> GroupJob {
    GroupJob { ordinal: 0, key: GroupKey(vec![]), cases, baseline: Some(0), seed: 7, sharing: Sharing::Alone }
}

/// Runs one kernel as the only variant, `it`, on i32.
pub fn run_one(body: impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static) -> Said {
    run_one_of(ElementType::I32, body)
}

pub fn run_one_of(
    element: ElementType,
    body: impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static,
) -> Said {
    run(device(vec![("it", kernel(body))]), &group(vec![case("it", element)]))
}
