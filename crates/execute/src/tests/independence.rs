//! Cases that share memory never find what another case has left in it.

use std::sync::{Arc, Mutex};

use super::rig::{Said, buffer, case, device, group, kernel, launch, right, run};
use fake_backend::{Call, FakeDevice, FakeKernel, device_info};
use runner_types::{Access, BodyPlan, Capabilities, CaseJob, CompileKey, ElementType, Outcome, Regime, SymbolPlan};

/// A case that copies, with 400 bytes of scratch memory as its third argument.
fn with_scratch(name: &str, regime: Regime) -> CaseJob {
    let mut job = case(name, ElementType::F32);
    job.buffers.push(buffer("work", ElementType::F32, 100, Access::Scratch));
    job.body = BodyPlan::Launches(vec![launch(name, &["input", "out", "work"])]);
    job.measure.regimes = vec![regime];
    job
}

/// Scratch contents that the launches of a kernel found.
type Found = Arc<Mutex<Vec<Vec<u8>>>>;

/// A correct kernel that fills its scratch memory with `mark`.
fn marks(mark: u8) -> (FakeKernel, Found) {
    let found = Found::default();
    let kept = Arc::clone(&found);
    let body = move |call: &mut Call<'_>| {
        kept.lock().unwrap().push(call.read(2)?);
        call.write(2, 0, &[mark; 400])?;
        right(call)
    };
    (kernel(body), found)
}

/// Runs two cases that share their scratch memory, and returns what each found in it.
fn marked(jobs: [CaseJob; 2], on: impl FnOnce(FakeDevice) -> FakeDevice) -> (Said, [Vec<Vec<u8>>; 2]) {
    let ((one, by_one), (two, by_two)) = (marks(1), marks(2));
    let said = run(on(device(vec![("one", one), ("two", two)])), &group(jobs.into()));
    assert_eq!((said.outcome("one"), said.outcome("two")), (Outcome::Measured, Outcome::Measured));
    (said, [by_one, by_two].map(|found| found.lock().unwrap().clone()))
}

#[test]
fn scratch_memory_holds_poison_or_what_the_case_itself_left_in_every_regime() {
    for regime in [Regime::Cold, Regime::Warm, Regime::Graph, Regime::Rotate] {
        let (_, found) = marked(["one", "two"].map(|name| with_scratch(name, regime)), |device| device);
        for (own, found) in [1, 2].into_iter().zip(found) {
            assert_eq!(found[0], vec![0xFF; 400], "{regime}");
            let is_own = |bytes: &Vec<u8>| [own, 0xCB].iter().any(|byte| *bytes == [*byte; 400]);
            assert!(found.len() > 10 && found[1..].iter().all(is_own), "{regime}");
        }
    }
}

/// Moves the case into the module that all of these share.
fn in_one_module(mut job: CaseJob) -> CaseJob {
    let BodyPlan::Launches(launches) = &mut job.body else { panic!("a launch") };
    launches[0].compiled.as_mut().unwrap().key = CompileKey("shared".to_owned());
    job
}

#[test]
fn a_scratch_variable_holds_what_its_module_has_or_what_the_case_itself_left() {
    let jobs = ["one", "two"].map(|name| {
        let mut job = with_scratch(name, Regime::Cold);
        job.buffers[2].symbol = Some(SymbolPlan { name: "kept".to_owned(), launch: 0 });
        in_one_module(job)
    });
    let (_, found) = marked(jobs, |device| device.with_symbol("kept", 400));
    for (own, found) in [1, 2].into_iter().zip(found) {
        // The fake device fills variables with 0x5C.
        assert_eq!(found[0], vec![0x5C; 400]);
        let is_own = |bytes: &Vec<u8>| [own, 0x5C].iter().any(|byte| *bytes == [*byte; 400]);
        assert!(found.len() > 10 && found[1..].iter().all(is_own));
    }
}

#[test]
fn a_variable_is_as_it_was_loaded_for_every_case_on_a_device_without_a_clock() {
    let adds_up = |call: &mut Call<'_>| {
        let before = call.variable("count")?;
        call.set_variable("count", &before.iter().map(|byte| byte + 1).collect::<Vec<_>>())?;
        if before == [0x5C; 4] { right(call) } else { Ok(()) }
    };
    let kernels = ["one", "two"].map(|name| (name, kernel(adds_up)));
    let jobs = ["one", "two"].map(|name| in_one_module(case(name, ElementType::F32)));
    let mut info = device_info();
    info.capabilities = Capabilities { has_clock: false, has_counters: true };
    let kernels =
        kernels.into_iter().fold(FakeDevice::new(info), |device, (name, body)| device.with_kernel(name, body));
    let said = run(kernels.with_symbol("count", 4), &group(jobs.into()));
    // Each is right in its first launch; the second launch finds what the first left.
    for name in ["one", "two"] {
        assert_eq!(said.mismatch(name).what, "out, in a second launch", "{name}");
    }
}
