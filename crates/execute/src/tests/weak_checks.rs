//! Checks that accept wrong results are reported together with those results; no other check is.

use proptest::prelude::*;

use super::rig::*;
use runner_types::{
    Access, BodyPlan, BufferPlan, CaseJob, CheckPlan, ElementType, Elementwise, ExpectPlan, FillPlan, INDEX, Mutant,
    Note, Outcome, RefExpr, RefFunction, Tolerance, Value, WeakCheck, WholeTolerance,
};

fn abs(abs: f64) -> Tolerance {
    Tolerance { abs, rel: 0.0, ulp: 0, derived: false }
}

fn list(values: &[f64]) -> FillPlan {
    FillPlan::List(values.iter().map(|value| Value::Float(*value)).collect())
}

/// A case that copies these values, with a tolerance.
fn copy_of(values: &[f64], tolerance: Tolerance) -> CaseJob {
    let mut job = case("it", ElementType::F32);
    for plan in &mut job.buffers {
        plan.len = values.len() as u64;
    }
    job.buffers[0].fill = Some(list(values));
    job.checks[0].tolerance = tolerance;
    job
}

fn weak_checks(job: CaseJob) -> Vec<WeakCheck> {
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    said.notes("it")
        .into_iter()
        .filter_map(|note| if let Note::Weak(weak) = note { Some(weak) } else { None })
        .collect()
}

/// Mutants that the only check of a case accepts.
fn accepted(job: CaseJob) -> Vec<Mutant> {
    weak_checks(job).into_iter().flat_map(|weak| weak.accepts).collect()
}

#[test]
fn a_tolerance_above_all_values_accepts_every_mutant() {
    let weak = weak_checks(copy_of(&[0.5, 0.25, 1.0, 0.125], abs(2.0)));
    let accepts = vec![
        Mutant::Zeros,
        Mutant::SmallerHalfZero,
        Mutant::Constant,
        Mutant::Changed,
        Mutant::Swapped,
        Mutant::Shifted,
    ];
    let whole = WholeTolerance::default();
    assert_eq!(weak, [WeakCheck { check: "out".to_owned(), accepts, greatest: 1.0, tolerance: abs(2.0), whole }]);
}

#[test]
fn each_mutant_is_accepted_by_the_tolerance_that_covers_its_difference_alone() {
    // The tolerance equals the mutant's difference; other mutants exceed it.
    let cases: [(&[f64], f64, &[Mutant]); 7] = [
        (&[3.0, -3.0, 3.0, -3.0], 3.0, &[Mutant::Zeros]),
        (&[3.0, -3.0, 3.0, -3.0], 2.99, &[]),
        (&[1.0, 2.0, 1000.0, 2000.0], 2.0, &[Mutant::SmallerHalfZero]),
        (&[1.0, 2.0, 1000.0, 2000.0], 1.99, &[]),
        (&[100.0, 101.0, 102.0, 103.0], 1.5, &[Mutant::Constant]),
        (&[100.0, 102.0, 104.0, 106.0, 104.0, 102.0], 2.0, &[Mutant::Shifted]),
        (&[10.0, 12.0], 2.0, &[Mutant::Constant, Mutant::Changed, Mutant::Swapped]),
    ];
    for (values, tolerance, expected) in cases {
        assert_eq!(accepted(copy_of(values, abs(tolerance))), expected, "{values:?} within {tolerance}");
    }
}

#[test]
fn an_input_with_nearly_the_expected_values_is_named_and_one_with_exactly_these_is_right() {
    let near = |tolerance| {
        let mut job = copy_of(&[1.0, 2.0, 3.0, 4.0], abs(tolerance));
        let other = buffer("other", ElementType::F32, 4, Access::In);
        job.buffers.push(BufferPlan { fill: Some(list(&[1.25, 2.25, 3.25, 4.25])), ..other });
        job.body = BodyPlan::Launches(vec![launch("it", &["input", "out", "other"])]);
        accepted(job)
    };
    assert_eq!(near(0.25), [Mutant::Input("other".to_owned())]);
    assert_eq!(near(0.24), []);
}

#[test]
fn results_for_other_inputs_are_a_mutant_on_a_device_that_makes_them() {
    let uniform = |low, tolerance| {
        let mut job = case("it", ElementType::F32);
        job.buffers[0].fill = Some(FillPlan::Uniform { low: Value::Float(low), high: Value::Float(1001.0), seed: 5 });
        job.checks[0].tolerance = tolerance;
        accepted(job)
    };
    assert!(uniform(1000.0, abs(1.0)).contains(&Mutant::OtherInputs));
    assert_eq!(uniform(0.0, abs(1.0)), []);
}

#[test]
fn the_order_below_a_sort_is_no_mutant() {
    let sorted = |name: &str| call(RefFunction::Sort, name);
    let mut job = copy_of(&[3.0, 1.0, 2.0, 5.0], abs(0.0));
    job.checks[0].actual = sorted("out");
    job.checks[0].expect = ExpectPlan::Reference(sorted("input"));
    assert_eq!(accepted(job.clone()), []);
    job.checks[0].tolerance = abs(5.0);
    assert_eq!(accepted(job), [Mutant::Zeros]);
}

#[test]
fn a_check_of_what_is_computed_of_an_output_is_tried_with_outputs_of_zeros() {
    let sum = |name: &str| call(RefFunction::Sum, name);
    let mut job = copy_of(&[3.0, -1.0, 2.0, -3.5], abs(0.5));
    job.checks[0].actual = sum("out");
    job.checks[0].expect = ExpectPlan::Reference(sum("input"));
    assert_eq!(accepted(job.clone()), [Mutant::Zeros]);
    job.checks[0].tolerance = abs(0.25);
    assert_eq!(accepted(job), []);
}

#[test]
fn elements_outside_of_where_are_no_mutant() {
    let mut job = copy_of(&[1.0, 2.0, 1.0, 2.0, 100.0, 200.0, 400.0, 800.0], abs(2.0));
    assert_eq!(accepted(job.clone()), [Mutant::SmallerHalfZero]);
    job.checks[0].mask = Some(RefExpr::Elementwise {
        operation: Elementwise::GreaterOrEqual,
        operands: vec![RefExpr::Buffer(INDEX.to_owned()), RefExpr::Constant(Value::Int(4))],
    });
    assert_eq!(accepted(job), []);
}

#[test]
fn as_few_elements_as_a_fraction_or_a_norm_allows_are_no_mutant() {
    let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let whole = |whole| {
        let mut job = copy_of(&values, abs(0.0));
        job.checks[0].whole = whole;
        accepted(job)
    };
    let none = WholeTolerance::default();
    assert_eq!(whole(WholeTolerance { fraction: 0.25, ..none }), []);
    assert_eq!(whole(WholeTolerance { fraction: 0.5, ..none }), [Mutant::SmallerHalfZero]);
    // The norm of the shift's errors is sqrt(7 + 49), that of the values sqrt(204): a ratio of 0.524.
    assert_eq!(whole(WholeTolerance { norm: 0.5, ..none }), [Mutant::SmallerHalfZero, Mutant::Constant]);
}

#[test]
fn what_equals_the_expected_values_once_rounded_is_right() {
    // In f32, 1 + 1e-9 is 1.
    let mut job = copy_of(&[1.0, 2.0, 4.0], abs(1e-6));
    job.checks[0].expect = ExpectPlan::Reference(RefExpr::Elementwise {
        operation: Elementwise::Multiply,
        operands: vec![RefExpr::Buffer("input".to_owned()), RefExpr::Constant(Value::Float(1.0 + 1e-9))],
    });
    assert_eq!(accepted(job.clone()), []);
    // In f32, 1 + 1e-6 differs from 1.
    job.checks[0].tolerance = abs(1e-5);
    if let ExpectPlan::Reference(RefExpr::Elementwise { operands, .. }) = &mut job.checks[0].expect {
        operands[1] = RefExpr::Constant(Value::Float(1.0 + 1e-6));
    }
    assert_eq!(accepted(job), [Mutant::Input("input".to_owned())]);
}

#[test]
fn zeros_are_right_where_zeros_are_expected() {
    assert_eq!(accepted(copy_of(&[0.0; 5], abs(0.5))), []);
    assert_eq!(accepted(copy_of(&[0.0; 5], abs(1.0))), [Mutant::Changed]);
}

#[test]
fn a_long_array_is_judged_as_a_whole_before_its_check_is_called_weak() {
    // Element 80,000 is in none of the ranges that are judged first.
    let mut values: Vec<f64> = (0..1 << 18).map(|i| f64::from(i % 7) / 8.0).collect();
    assert_eq!(accepted(copy_of(&values, abs(0.75))).len(), 6);
    values[80_000] = 1000.0;
    // Zeroing the smaller half still passes, since it changes other elements; the shift is wrong at this one.
    assert_eq!(accepted(copy_of(&values, abs(0.75))), [Mutant::SmallerHalfZero]);
}

#[test]
fn cases_with_the_same_check_have_the_same_note() {
    let mut other = copy_of(&[1.0, 2.0], abs(10.0));
    other.case.key.variant = "other".to_owned();
    let job = group(vec![copy_of(&[1.0, 2.0], abs(10.0)), other]);
    let said = run(device(vec![("it", kernel(right)), ("other", kernel(right))]), &job);
    assert!(matches!(said.notes("it").as_slice(), [Note::Weak(_)]), "{:?}", said.notes("it"));
    assert_eq!(said.notes("it"), said.notes("other"));
}

fn elements() -> impl Strategy<Value = ElementType> {
    prop_oneof![Just(ElementType::I32), Just(ElementType::U8), Just(ElementType::F16), Just(ElementType::F64)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A mutant that an exact comparison accepts equals the expected result.
    #[test]
    fn an_exact_check_accepts_no_mutant(
        element in elements(),
        values in prop::collection::vec(0_i64..40, 1..60),
        others in prop::collection::vec(0_i64..3, 60),
    ) {
        let mut job = case("it", element);
        for plan in &mut job.buffers {
            plan.len = values.len() as u64;
        }
        let fill = |values: &[i64]| Some(FillPlan::List(values.iter().map(|value| Value::Int(*value)).collect()));
        job.buffers[0].fill = fill(&values);
        let other = buffer("other", element, values.len() as u64, Access::In);
        job.buffers.push(BufferPlan { fill: fill(&others[..values.len()]), ..other });
        job.body = BodyPlan::Launches(vec![launch("it", &["input", "out", "other"])]);
        let copies = CheckPlan { tolerance: abs(0.0), ..copies(element) };
        let sorts = CheckPlan {
            actual: call(RefFunction::Sort, "out"),
            expect: ExpectPlan::Reference(call(RefFunction::Sort, "input")),
            ..copies.clone()
        };
        job.checks = vec![copies, sorts];
        prop_assert_eq!(weak_checks(job), []);
    }
}
