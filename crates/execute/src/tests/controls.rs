//! Negative controls: every kind of wrong result is caught and reported with its first position.

use super::rig::{N, call, case, copies, device, group, kernel, right, run, run_one, run_one_of};
use fake_backend::Call;
use runner_types::{
    Access, ElementType, ExpectPlan, FillPlan, Mismatch, Outcome, RefExpr, RefFunction, Tolerance, Unchecked, Value,
    Verdict,
};

fn place(mismatch: &Mismatch) -> (&str, u64, u64, u64) {
    (&mismatch.what, mismatch.index, mismatch.wrong, mismatch.of)
}

#[test]
fn a_right_kernel_is_measured() {
    let said = run_one(right);
    assert_eq!(said.outcome("it"), Outcome::Measured);
    assert_eq!(said.verdict("it"), Some(&Verdict::Pass));
    assert_eq!(said.measurement("it").unwrap().rounds[0].whole, 1000.0);
}

#[test]
fn one_nan_among_a_thousand_floats_is_found_in_its_place() {
    let said = run_one_of(ElementType::F32, |call| {
        right(call)?;
        call.write(1, 4 * 321, &f32::NAN.to_le_bytes())
    });
    let mismatch = said.mismatch("it");
    assert_eq!(place(&mismatch), ("out", 321, 1, N));
    assert_eq!((mismatch.expected.as_str(), mismatch.got.as_str(), mismatch.error), ("322.0", "NaN", None));
}

#[test]
fn an_infinity_never_passes_whatever_the_tolerance() {
    let mut job = case("it", ElementType::F32);
    job.checks[0].tolerance = Tolerance { abs: f64::MAX, rel: f64::MAX, ulp: u64::MAX, derived: false };
    let body = |call: &mut Call<'_>| {
        right(call)?;
        call.write(1, 0, &f32::INFINITY.to_le_bytes())
    };
    let mismatch = run(device(vec![("it", kernel(body))]), &group(vec![job])).mismatch("it");
    assert_eq!(place(&mismatch), ("out", 0, 1, N));
}

#[test]
fn a_bound_of_endless_last_places_does_not_reach_infinity() {
    let mut job = case("it", ElementType::F64);
    job.checks[0].tolerance = Tolerance { abs: 0.0, rel: 0.0, ulp: u64::MAX, derived: false };
    job.checks[0].expect = ExpectPlan::Reference(RefExpr::Constant(Value::Float(f64::MAX)));
    let body = |call: &mut Call<'_>| call.write(1, 0, &f64::INFINITY.to_le_bytes().repeat(N as usize));
    let mismatch = run(device(vec![("it", kernel(body))]), &group(vec![job])).mismatch("it");
    assert_eq!(place(&mismatch), ("out", 0, N, N));
}

#[test]
fn zeros_in_place_of_the_result_are_wrong_everywhere() {
    for &element in ElementType::ALL {
        let mut job = case("it", element);
        // Up to 100, which fits i8.
        job.buffers.iter_mut().for_each(|b| b.len = 100);
        let body = move |call: &mut Call<'_>| call.write(1, 0, &vec![0; 100 * element.size()]);
        let mismatch = run(device(vec![("it", kernel(body))]), &group(vec![job])).mismatch("it");
        assert_eq!(place(&mismatch), ("out", 0, 100, 100), "{element}");
        assert_eq!(mismatch.error, Some(1.0), "{element}");
    }
}

#[test]
fn a_kernel_that_does_nothing_leaves_the_poison() {
    for &element in ElementType::ALL {
        let mut job = case("it", element);
        job.buffers.iter_mut().for_each(|b| b.len = 100);
        let mismatch = run(device(vec![("it", kernel(|_| Ok(())))]), &group(vec![job])).mismatch("it");
        assert_eq!(place(&mismatch), ("out", 0, 100, 100), "{element}");
        assert!(mismatch.got.ends_with("(never written)"), "{element}: {}", mismatch.got);
        assert!(!element.is_float() || mismatch.got.starts_with("NaN"), "{element}: {}", mismatch.got);
    }
}

#[test]
fn a_skipped_last_element_is_found_at_the_end() {
    let said = run_one(|call| {
        let input = call.read(0)?;
        call.write(1, 0, &input[..input.len() - 4])
    });
    let mismatch = said.mismatch("it");
    assert_eq!(place(&mismatch), ("out", N - 1, 1, N));
    assert_eq!(mismatch.got, "-875836469 (never written)");
}

#[test]
fn a_forgotten_partial_sum_does_not_vanish_in_a_maximum() {
    let mut job = case("it", ElementType::F64);
    job.checks[0].actual = call(RefFunction::Max, "out");
    job.checks[0].expect = ExpectPlan::Reference(call(RefFunction::Max, "input"));
    let body = |call: &mut Call<'_>| {
        let input = call.read(0)?;
        call.write(1, 8, &input[8..])
    };
    let mismatch = run(device(vec![("it", kernel(body))]), &group(vec![job])).mismatch("it");
    assert_eq!((mismatch.expected.as_str(), mismatch.got.as_str()), ("1000.0", "NaN"));
}

#[test]
fn a_write_one_past_the_end_lands_in_the_zone_behind() {
    let said = run_one(|call| {
        right(call)?;
        call.write(1, 4 * N as i64, &[1, 2, 3, 4])
    });
    let mismatch = said.mismatch("it");
    assert_eq!(place(&mismatch), ("guard zone after `out`, indexed by distance in bytes", 0, 4, 65536));
    assert_eq!((mismatch.expected.as_str(), mismatch.got.as_str()), ("0xa5", "0x01"));
}

#[test]
fn a_write_before_the_start_lands_in_the_zone_before() {
    let said = run_one(|call| {
        right(call)?;
        call.write(1, -8, &[7; 4])
    });
    let mismatch = said.mismatch("it");
    assert_eq!(place(&mismatch), ("guard zone before `out`, indexed by distance in bytes", 4, 4, 65536));
}

#[test]
fn a_write_behind_an_input_is_a_trespass_too() {
    let said = run_one(|call| {
        right(call)?;
        call.write(0, 4 * N as i64 + 100, &[0])
    });
    let mismatch = said.mismatch("it");
    assert_eq!(place(&mismatch), ("guard zone after `input`, indexed by distance in bytes", 100, 1, 65536));
}

#[test]
fn a_kernel_that_changes_its_input_is_named_though_its_result_is_right() {
    let said = run_one(|call| {
        right(call)?;
        call.write(0, 4 * 500, &[0; 8])
    });
    let mismatch = said.mismatch("it");
    assert_eq!(place(&mismatch), ("input `input` was changed", 500, 2, N));
    assert_eq!((mismatch.expected.as_str(), mismatch.got.as_str()), ("501", "0"));
}

#[test]
fn a_changed_input_is_attributed_to_the_case_that_changed_it_and_not_to_those_after_it() {
    let vandal = |call: &mut Call<'_>| {
        right(call)?;
        call.write(0, 0, &[9; 4])
    };
    let kernels = vec![("first", kernel(right)), ("vandal", kernel(vandal)), ("last", kernel(right))];
    let cases = ["first", "vandal", "last"].map(|name| case(name, ElementType::I32)).to_vec();
    let said = run(device(kernels), &group(cases));
    assert_eq!(said.mismatch("vandal").what, "input `input` was changed");
    assert_eq!(said.outcome("first"), Outcome::Measured);
    assert_eq!(said.outcome("last"), Outcome::Measured);
}

#[test]
fn right_the_first_time_and_wrong_on_the_last_timed_launch_is_wrong() {
    // Two launches that are checked, one warm-up, ten samples of equal time: launch 12 is the last.
    let said = run_one(|call| {
        right(call)?;
        if call.nth == 12 { call.write(1, 4 * 7, &[0; 4]) } else { Ok(()) }
    });
    assert_eq!(said.verdict("it"), Some(&Verdict::Pass));
    assert_eq!(place(&said.mismatch("it")), ("out, in timed sample 10 (cold)", 7, 1, N));
    // Two more launches look for the cause.
    assert_eq!(said.device.launched().len(), 13 + 2);
}

#[test]
fn a_timed_launch_that_writes_nothing_leaves_the_other_poison() {
    let said = run_one(|call| if call.nth == 0 { right(call) } else { Ok(()) });
    let mismatch = said.mismatch("it");
    // 0xb4b4b4b4 as an i32.
    assert_eq!((mismatch.index, mismatch.got.as_str()), (0, "-1263225676 (never written)"));
}

#[test]
fn a_trespass_of_the_last_timed_launch_is_found() {
    let said = run_one(|call| {
        right(call)?;
        if call.nth == 12 { call.write(1, 4 * N as i64, &[0; 1]) } else { Ok(()) }
    });
    assert_eq!(said.mismatch("it").what, "guard zone after `out`, indexed by distance in bytes");
}

#[test]
fn an_input_changed_by_a_timed_launch_is_found() {
    let said = run_one(|call| {
        right(call)?;
        if call.nth >= 5 { call.write(0, 0, &[0; 1]) } else { Ok(()) }
    });
    assert_eq!(said.mismatch("it").what, "input `input` was changed");
}

#[test]
fn an_input_changed_once_in_the_rounds_leaves_no_case_measured() {
    let once = |call: &mut Call<'_>| {
        // The result stays right: the changed input byte is replaced by its original value.
        let mut input = call.read(0)?;
        input[0] = 1;
        call.write(1, 0, &input)?;
        if call.nth == 5 { call.write(0, 0, &[77]) } else { Ok(()) }
    };
    let said = run(
        device(vec![("once", kernel(once)), ("also", kernel(once))]),
        &group(vec![case("once", ElementType::I32), case("also", ElementType::I32)]),
    );
    for variant in ["once", "also"] {
        let what = said.mismatch(variant).what;
        assert!(what.contains("during the timed launches, by this variant or by one interleaved with it"), "{what}");
    }
}

#[test]
fn wrong_for_one_element_type_is_wrong_for_that_type_alone() {
    // A kernel that truncates to 32 bits.
    let body = |call: &mut Call<'_>| {
        let mut input = call.read(0)?;
        if input.len() == 8 * N as usize {
            input.chunks_exact_mut(8).for_each(|element| element[4..].fill(0));
        }
        call.write(1, 0, &input)
    };
    for element in [ElementType::I16, ElementType::I32, ElementType::F32] {
        assert_eq!(run_one_of(element, body).outcome("it"), Outcome::Measured, "{element}");
    }
    assert_eq!(run_one_of(ElementType::F64, body).mismatch("it").index, 0);
}

#[test]
fn a_large_error_against_a_negative_reference_is_no_small_relative_error() {
    let mut job = case("it", ElementType::F32);
    job.checks[0].expect = ExpectPlan::Reference(RefExpr::Constant(Value::Float(-100.0)));
    let body = |call: &mut Call<'_>| call.write(1, 0, &[-100f32, 5000.0].map(f32::to_le_bytes).concat().repeat(500));
    let mismatch = run(device(vec![("it", kernel(body))]), &group(vec![job])).mismatch("it");
    assert_eq!(place(&mismatch), ("out", 1, 500, N));
    assert_eq!(mismatch.error, Some(5100.0));
}

#[test]
fn an_infinite_tolerance_is_refused_and_not_obeyed() {
    for tolerance in [
        Tolerance { abs: f64::INFINITY, rel: 0.0, ulp: 0, derived: false },
        Tolerance { abs: 0.0, rel: f64::NAN, ulp: 0, derived: false },
        Tolerance { abs: -1.0, rel: 0.0, ulp: 0, derived: false },
    ] {
        let mut job = case("it", ElementType::F32);
        job.checks[0].tolerance = tolerance;
        let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
        assert!(matches!(said.outcome("it"), Outcome::Unresolved { message } if message.contains("tolerance")));
    }
}

#[test]
fn without_a_check_trespassers_are_still_caught() {
    let mut job = case("it", ElementType::I32);
    job.checks.clear();
    job.buffers[1].access = Access::Scratch;
    let quiet = run(device(vec![("it", kernel(right))]), &group(vec![job.clone()]));
    assert_eq!(quiet.verdict("it"), Some(&Verdict::Unchecked(Unchecked::NoCheck)));
    assert_eq!(quiet.outcome("it"), Outcome::Measured);
    let body = |call: &mut Call<'_>| call.write(1, -1, &[0]);
    let mismatch = run(device(vec![("it", kernel(body))]), &group(vec![job])).mismatch("it");
    assert_eq!(mismatch.what, "guard zone before `out`, indexed by distance in bytes");
}

#[test]
fn the_second_of_two_checks_counts_as_much_as_the_first() {
    let mut job = case("it", ElementType::I32);
    let mut second = copies(ElementType::I32);
    second.text = "sum(out)".to_owned();
    second.actual = call(RefFunction::Sum, "out");
    second.expect = ExpectPlan::Reference(RefExpr::Constant(Value::Int(1)));
    job.checks.push(second);
    let mismatch = run(device(vec![("it", kernel(right))]), &group(vec![job])).mismatch("it");
    assert_eq!(
        (mismatch.what.as_str(), mismatch.got.as_str(), mismatch.error),
        ("sum(out)", "500500", Some(500_499.0))
    );
}

#[test]
fn an_inout_buffer_that_was_not_restored_would_be_caught() {
    // Doubles in place: run twice without a restore, it would quadruple.
    let mut job = case("it", ElementType::I32);
    job.buffers = vec![super::rig::buffer("input", ElementType::I32, N, Access::InOut)];
    let expected = RefExpr::Call {
        function: RefFunction::Add,
        buffers: vec![RefExpr::Buffer("input".to_owned()), RefExpr::Buffer("input".to_owned())],
        integers: vec![],
    };
    job.checks[0].actual = RefExpr::Buffer("input".to_owned());
    job.checks[0].expect = ExpectPlan::Reference(expected);
    job.body = runner_types::BodyPlan::Launches(vec![super::rig::launch("it", &["input"])]);
    let body = |call: &mut Call<'_>| {
        let doubled: Vec<u8> = call
            .read(0)?
            .chunks_exact(4)
            .flat_map(|b| (2 * i32::from_le_bytes([b[0], b[1], b[2], b[3]])).to_le_bytes())
            .collect();
        call.write(0, 0, &doubled)
    };
    let said = run(device(vec![("it", kernel(body))]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
}

#[test]
fn elements_outside_of_the_bins_of_a_histogram_are_wrong_although_the_counts_are_right() {
    let bins = |name: &str| RefExpr::Call {
        function: RefFunction::Histogram,
        buffers: vec![RefExpr::Buffer(name.to_owned())],
        integers: vec![500],
    };
    let mut job = case("it", ElementType::I32);
    (job.checks[0].text, job.checks[0].actual) = ("histogram(out, 500)".to_owned(), bins("out"));
    job.checks[0].expect = ExpectPlan::Reference(bins("input"));
    // The input is 1 to 1000: the first 499 are counted, in both input and output.
    let mismatch = run(device(vec![("it", kernel(right))]), &group(vec![job.clone()])).mismatch("it");
    assert_eq!(place(&mismatch), ("histogram(out, 500): elements that are counted", 499, 501, N));
    assert_eq!((mismatch.expected.as_str(), mismatch.got.as_str()), ("an integer from 0 to 499", "500"));
    // Every bin has its count, and one element is negative.
    let body = |call: &mut Call<'_>| {
        right(call)?;
        call.write(1, 0, &(-1_i32).to_le_bytes())
    };
    job.buffers[0].fill = Some(FillPlan::Constant(Value::Int(-1)));
    let mismatch = run(device(vec![("it", kernel(body))]), &group(vec![job.clone()])).mismatch("it");
    assert_eq!((place(&mismatch).1, mismatch.got.as_str()), (0, "-1"));
    job.buffers[0].fill = Some(FillPlan::Constant(Value::Int(499)));
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(said.verdict("it"), Some(&Verdict::Pass));
}
