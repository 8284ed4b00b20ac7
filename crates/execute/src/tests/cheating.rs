//! Kernels that cheat: right where they are checked, or fast because they compute nothing.

use std::sync::{Arc, Mutex};

use super::rig::{N, Said, buffer, case, device, group, kernel, launch, right, run};
use fake_backend::{Call, FakeDevice, FakeKernel, device_info};
use runner_backend::{Device, DeviceError};
use runner_types::{
    Access, BodyPlan, BufferPlan, Bytes, CaseJob, ElementType, Event, ExpectPlan, FillPlan, FixedInputsReason, Note,
    Outcome, RefExpr, Regime, Value, Vary,
};

/// A case that copies random integers.
fn random(name: &str) -> CaseJob {
    let mut job = case(name, ElementType::I32);
    job.buffers[0].fill = Some(FillPlan::Uniform { low: Value::Int(0), high: Value::Int(1 << 30), seed: 5 });
    job
}

fn run_random(body: impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static) -> Said {
    run(device(vec![("it", kernel(body))]), &group(vec![random("it")]))
}

/// A kernel that is right before launch `from` and afterwards always writes the result of that launch.
fn remembers(from: u32) -> impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static {
    let first: Mutex<Option<Vec<u8>>> = Mutex::default();
    move |call| {
        if call.nth < from {
            return right(call);
        }
        let mut first = first.lock().unwrap();
        let result = first.get_or_insert(call.read(0)?);
        call.write(1, 0, result)
    }
}

#[test]
fn a_kernel_that_remembers_its_first_result_is_wrong_on_other_inputs() {
    let what = run_random(remembers(0)).mismatch("it").what;
    assert_eq!(what, "out, on a second set of inputs");
}

/// Asserts that a kernel is reported wrong in a timed launch.
#[track_caller]
fn assert_is_wrong_once_timed(body: impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static) {
    let what = run_random(body).mismatch("it").what;
    assert!(what.starts_with("out, in timed "), "{what}");
}

#[test]
fn a_kernel_that_remembers_a_result_once_it_is_timed_is_wrong_when_inputs_change() {
    // Launch 4 is the first sample. The inputs change at random between rounds, or else after the last sample.
    for _ in 0..20 {
        assert_is_wrong_once_timed(remembers(4));
    }
}

/// A kernel that, starting with launch `from`, recognises its last two inputs by one element and returns their stored
/// results; it computes all others.
fn finds(from: u32, element: usize) -> impl Fn(&mut Call<'_>) -> Result<(), DeviceError> + Send + Sync + 'static {
    let known: Mutex<Vec<(Vec<u8>, Vec<u8>)>> = Mutex::default();
    move |call| {
        if call.nth < from {
            return right(call);
        }
        let input = call.read(0)?;
        let key = &input[4 * element..4 * element + 4];
        let mut known = known.lock().unwrap();
        if let Some((_, result)) = known.iter().find(|(of, _)| of == key) {
            return call.write(1, 0, result);
        }
        known.push((key.to_vec(), input.clone()));
        if known.len() > 2 {
            known.remove(0);
        }
        call.write(1, 0, &input)
    }
}

#[test]
fn a_kernel_that_finds_two_results_by_one_element_is_wrong_on_a_third_set_of_inputs() {
    for element in [0, 1, 499, 998, 999] {
        let what = run_random(finds(0, element)).mismatch("it").what;
        assert_eq!(what, "out, on a third set of inputs");
    }
}

#[test]
fn a_kernel_that_finds_two_results_once_it_is_timed_is_wrong_on_the_other_sets() {
    for element in [0, 500, 999].repeat(7) {
        assert_is_wrong_once_timed(finds(4, element));
    }
}

#[test]
fn a_kernel_that_returns_early_because_its_output_exists_is_wrong() {
    let said = run_random(|call| {
        let is_poison = call.read(1)?.iter().all(|byte| [0xCB, 0xB4].contains(byte));
        if is_poison { right(call) } else { Ok(()) }
    });
    let what = said.mismatch("it").what;
    assert_eq!(what, "out, in a launch that finds outputs, variables and scratch as an earlier launch left them");
}

#[test]
fn a_kernel_that_returns_early_because_a_part_of_its_output_is_right_is_wrong_in_a_span() {
    let early = |call: &mut Call<'_>| {
        let [wanted, found] = [call.read(0)?, call.read(1)?];
        // Cheats only after the launches that are checked first.
        if call.nth > 3 && wanted[..4] == found[..4] { Ok(()) } else { right(call) }
    };
    for regime in [Regime::Warm, Regime::Graph] {
        let mut job = random("it");
        job.measure.regimes = vec![regime];
        let said = run(device(vec![("it", kernel(early))]).with_tick(320.0), &group(vec![job]));
        let what = said.mismatch("it").what;
        assert!(
            what.starts_with("out, in timed run ") && what.ends_with(&format!(" of a sample ({regime})")),
            "{what}"
        );
    }
}

#[test]
fn a_kernel_that_is_wrong_in_every_eighth_launch_is_wrong() {
    let eighth = kernel(|call| {
        right(call)?;
        if call.nth % 8 == 7 { call.write(1, 4 * 3, &[0; 4]) } else { Ok(()) }
    });
    // Every sample is checked as long as a check takes less than a fortieth of a sample, here 25 s.
    let said = run(device(vec![("it", eighth.taking(|_| 1e12))]), &group(vec![case("it", ElementType::I32)]));
    let mismatch = said.mismatch("it");
    // A check, a second launch, a warm-up: launch 7 is the fifth sample.
    assert_eq!((mismatch.what.as_str(), mismatch.index, mismatch.wrong), ("out, in timed sample 5 (cold)", 3, 1));
}

#[test]
fn a_kernel_that_changes_a_random_input_is_named() {
    let said = run_random(|call| {
        right(call)?;
        call.write(0, 4 * 500, &[0; 4])
    });
    let mismatch = said.mismatch("it");
    assert_eq!((mismatch.what.as_str(), mismatch.index, mismatch.wrong), ("input `input` was changed", 500, 1));
}

/// Distinct contents of its input that a correct kernel sees.
fn seen(job: &CaseJob, memory: u64) -> (Said, Vec<Vec<u8>>) {
    let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let mut info = device_info();
    info.memory_bytes = Bytes(memory);
    let body = move |call: &mut Call<'_>| {
        let input = call.read(0)?;
        let mut kept = kept.lock().unwrap();
        if !kept.contains(&input) {
            kept.push(input);
        }
        right(call)
    };
    let said = run(FakeDevice::new(info).with_kernel("it", FakeKernel::new(body)), &group(vec![job.clone()]));
    let seen = seen.lock().unwrap().clone();
    (said, seen)
}

#[test]
fn random_inputs_have_three_contents_of_which_the_first_is_the_manifests() {
    let (said, contents) = seen(&random("it"), 256 << 20);
    assert_eq!(said.outcome("it"), Outcome::Measured);
    assert_eq!(contents.len(), 3);
    let job = random("it");
    let manifest = crate::fill::fill(&job.buffers[0], job.buffers[0].fill.as_ref().unwrap()).unwrap();
    assert!(contents[0] == manifest);
    let equal = contents[0].chunks(4).zip(contents[1].chunks(4)).filter(|(one, other)| one == other).count();
    assert!(equal < 5, "{equal} of {N} integers are equal");
    // The third set differs from the first in a range of a half to a sixteenth of the buffer, which comes from the
    // second.
    let others: Vec<usize> = (0..4 * N as usize).filter(|byte| contents[2][*byte] != contents[0][*byte]).collect();
    let stretch = others[0] / 4..others[others.len() - 1] / 4 + 1;
    assert!((N as usize / 16 - 2..=N as usize / 2).contains(&stretch.len()), "{stretch:?}");
    assert!(contents[2][4 * stretch.start..4 * stretch.end] == contents[1][4 * stretch.start..4 * stretch.end]);
    // The second set differs from run to run.
    assert!(seen(&random("it"), 256 << 20).1[1] != contents[1]);
}

/// Reported reasons why inputs do not change.
fn fixed(said: &Said) -> Vec<FixedInputsReason> {
    let note = |event: &Event| match event {
        Event::CaseNote { note: Note::FixedInputs { why }, .. } => Some(*why),
        _ => None,
    };
    said.events.iter().filter_map(note).collect()
}

#[test]
fn inputs_that_are_not_random_or_have_no_room_for_a_second_set_stay() {
    let (said, contents) = seen(&case("it", ElementType::I32), 256 << 20);
    assert_eq!((contents.len(), fixed(&said)), (1, vec![FixedInputsReason::NotRandom]));
    // Two buffers of 4000 bytes between guard zones of 65536 leave 27,856 bytes; a quarter of that is less than three
    // copies.
    let (said, contents) = seen(&random("it"), 2 * (4000 + 2 * 65536) + 27_856);
    assert_eq!(
        (said.outcome("it"), contents.len(), fixed(&said)),
        (Outcome::Measured, 1, vec![FixedInputsReason::Memory])
    );
    assert_eq!(fixed(&seen(&random("it"), 256 << 20).0), []);
}

/// A case that copies 1, 2, 3, …; the second set of inputs permutes them.
fn permuted(name: &str) -> CaseJob {
    let mut job = case(name, ElementType::I32);
    job.buffers[0].vary = Some(Vary::Permute);
    job
}

#[test]
fn permuted_inputs_have_the_same_elements_in_three_orders() {
    let (said, contents) = seen(&permuted("it"), 256 << 20);
    assert_eq!((said.outcome("it"), fixed(&said), contents.len()), (Outcome::Measured, vec![], 3));
    let elements =
        |bytes: &[u8]| bytes.chunks(4).map(|e| i32::from_le_bytes(e.try_into().unwrap())).collect::<Vec<_>>();
    let [first, others @ ..] = [0, 1, 2].map(|set| elements(&contents[set]));
    assert_eq!(first, (1..=N as i32).collect::<Vec<_>>());
    let moved = |other: &Vec<i32>| first.iter().zip(other).filter(|(one, other)| one != other).count();
    assert!(moved(&others[0]) > N as usize - 10 && moved(&others[1]) <= N as usize / 2 && moved(&others[1]) > 40);
    for mut other in others {
        other.sort_unstable();
        assert_eq!(first, other);
    }
}

#[test]
fn a_kernel_that_remembers_its_first_result_is_wrong_on_permuted_inputs() {
    let said = run(device(vec![("it", kernel(remembers(0)))]), &group(vec![permuted("it")]));
    assert_eq!(said.mismatch("it").what, "out, on a second set of inputs");
}

#[test]
fn inputs_stay_where_a_list_has_the_expected_values_of_one_content() {
    let mut job = permuted("it");
    job.checks[0].expect = ExpectPlan::List((1..=N as i64).map(Value::Int).collect());
    let (said, contents) = seen(&job, 256 << 20);
    assert_eq!(
        (said.outcome("it"), fixed(&said), contents.len()),
        (Outcome::Measured, vec![FixedInputsReason::Expected], 1)
    );
}

#[test]
fn a_case_is_compared_with_what_another_made_of_the_same_inputs() {
    let mut cases = vec![random("reference"), random("same"), random("remembers")];
    for job in &mut cases[1..] {
        job.checks[0].actual = RefExpr::Buffer("out".to_owned());
        job.checks[0].expect = ExpectPlan::Variant("reference".to_owned());
    }
    let kernels = vec![("reference", kernel(right)), ("same", kernel(right)), ("remembers", kernel(remembers(0)))];
    let said = run(device(kernels), &group(cases));
    assert_eq!((said.outcome("reference"), said.outcome("same")), (Outcome::Measured, Outcome::Measured));
    assert_eq!(said.mismatch("remembers").what, "out, on a second set of inputs");
}

#[test]
fn a_variable_holds_in_every_timed_launch_what_it_held_when_the_module_was_loaded() {
    let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let counts = move |call: &mut Call<'_>| {
        kept.lock().unwrap().push(call.variable("launches")?);
        call.set_variable("launches", &[1 + call.nth as u8; 4])?;
        right(call)
    };
    let said = run(device(vec![("it", kernel(counts))]).with_symbol("launches", 4), &group(vec![random("it")]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let mut seen = seen.lock().unwrap().clone();
    // Only launches on other inputs find what the previous one left.
    assert_eq!([seen.remove(1), seen.remove(1)], [[1; 4], [2; 4]]);
    assert!(seen.len() > 10 && seen.iter().all(|found| *found == seen[0]), "{seen:?}");
    assert_eq!(said.device.memory_free(), Some((256 << 20) - 4));
}

#[test]
fn a_variable_that_no_launch_writes_costs_no_copy_and_one_that_is_written_late_voids_the_samples() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    // First written in the 12th launch, long after the two that are checked.
    let late = move |call: &mut Call<'_>| {
        kept.lock().unwrap().push((u64::from(call.nth), call.variable("stored")?));
        if call.nth >= 11 {
            call.set_variable("stored", &[7; 4])?;
        }
        right(call)
    };
    let said = run(device(vec![("it", kernel(late))]).with_symbol("stored", 4), &group(vec![random("it")]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let seen = seen.lock().unwrap();
    let found_it: Vec<u64> = seen.iter().filter(|(_, held)| *held == [7; 4]).map(|(nth, _)| *nth).collect();
    // Launches from the 13th to the last discarded sample saw the changed variable; none of the kept samples did.
    let samples = said.measurement("it").unwrap().rounds.len() as u64;
    let last = seen.last().unwrap().0;
    assert!(!found_it.is_empty() && found_it.iter().all(|nth| *nth + samples <= last), "{found_it:?} {samples} {last}");
}

#[test]
fn a_result_that_depends_on_what_an_earlier_launch_left_in_a_variable_is_reported_as_that() {
    let remembers = |call: &mut Call<'_>| {
        if call.variable("stored")? == [0x5C; 4000] {
            let input = call.read(0)?;
            call.set_variable("stored", &input)?;
        }
        let stored = call.variable("stored")?;
        call.write(1, 0, &stored)
    };
    let said = run(device(vec![("it", kernel(remembers))]).with_symbol("stored", 4000), &group(vec![random("it")]));
    let what = said.mismatch("it").what;
    assert_eq!(what, "out, in a launch that finds outputs, variables and scratch as an earlier launch left them");
}

/// Distinct contents of `scratch` memory that a correct kernel finds.
fn found_in_scratch(poison: bool) -> Vec<Vec<u8>> {
    let found: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let kept = Arc::clone(&found);
    let body = move |call: &mut Call<'_>| {
        kept.lock().unwrap().push(call.read(2)?);
        call.write(2, 0, &[7; 400])?;
        right(call)
    };
    let mut job = random("it");
    job.buffers.push(BufferPlan { poison, ..buffer("work", ElementType::F32, 100, Access::Scratch) });
    job.body = BodyPlan::Launches(vec![launch("it", &["input", "out", "work"])]);
    assert_eq!(run(device(vec![("it", kernel(body))]), &group(vec![job])).outcome("it"), Outcome::Measured);
    found.lock().unwrap().clone()
}

#[test]
fn a_kernel_that_stores_its_result_in_scratch_for_the_rest_of_a_span_is_wrong() {
    // Scratch holds the number of launches since it was poisoned and, after the fifth, the result. It is poisoned
    // before every sample, so the inputs of all launches that find it are the same.
    let stores = |call: &mut Call<'_>| {
        let found = call.read(2)?;
        let count = if found[1..4] == [1, 2, 3] { found[0] } else { 0 };
        call.write(2, 0, &[count.saturating_add(1), 1, 2, 3])?;
        if count > 4 {
            return call.write(1, 0, &found[4..]);
        }
        let input = call.read(0)?;
        call.write(2, 4, &input)?;
        right(call)
    };
    for regime in [Regime::Warm, Regime::Graph] {
        let mut job = random("it");
        job.measure.regimes = vec![regime];
        let work = buffer("work", ElementType::F32, 1 + N, Access::Scratch);
        job.buffers.push(BufferPlan { poison: true, ..work });
        job.body = BodyPlan::Launches(vec![launch("it", &["input", "out", "work"])]);
        let said = run(device(vec![("it", kernel(stores))]).with_tick(320.0), &group(vec![job]));
        let what = said.mismatch("it").what;
        assert!(what.starts_with("out, in timed run "), "{what}");
    }
}

#[test]
fn poisoned_scratch_keeps_nothing_from_one_launch_to_the_next() {
    let found = found_in_scratch(true);
    // The first launch has its own poison; the next two find what the previous one left, so that carried state shows.
    assert_eq!((&found[0], &found[1], &found[2]), (&vec![0xFF; 400], &vec![7; 400], &vec![7; 400]));
    assert!(found.len() > 10 && found[3..].iter().all(|bytes| *bytes == [0xCB; 400]));
    assert!(found_in_scratch(false)[1..].iter().all(|bytes| *bytes == [7; 400]));
}

#[test]
fn a_kernel_that_is_wrong_in_every_eighth_run_is_wrong_though_a_sample_ends_with_another() {
    // A tick of 320 ns calls for 32 runs per sample; the last is never the eighth.
    let every_eighth = |call: &mut Call<'_>| {
        right(call)?;
        if call.nth % 8 == 3 { call.write(1, 4 * 3, &[0; 4]) } else { Ok(()) }
    };
    let mut job = random("it");
    job.measure.warmup = 0;
    let said = run(device(vec![("it", kernel(every_eighth))]).with_tick(320.0), &group(vec![job]));
    let what = said.mismatch("it").what;
    // A shortened sample shifts the ends of the samples after it.
    assert!(what.starts_with("out, in timed run ") || what.starts_with("out, in timed sample "), "{what}");
}
