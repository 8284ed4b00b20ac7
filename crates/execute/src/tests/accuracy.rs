//! The error of results that passed is reported if a check requests it, and not otherwise.

use super::rig::{N, Said, case, device, group, kernel, right, run};
use fake_backend::Call;
use runner_types::{CaseJob, ElementType, Event, Outcome, ResultError};

fn errors(said: &Said) -> Vec<ResultError> {
    said.events
        .iter()
        .filter_map(|e| if let Event::CaseErred { error, .. } = e { Some(*error) } else { None })
        .collect()
}

/// A copy whose third element, 3, is one ULP too large.
fn nearly(call: &mut Call<'_>) -> Result<(), runner_backend::DeviceError> {
    right(call)?;
    call.write(1, 8, &3.0f32.next_up().to_le_bytes())
}

fn asking(element: ElementType) -> CaseJob {
    let mut job = case("it", element);
    job.checks[0].error = true;
    job
}

#[test]
fn a_result_within_its_tolerance_has_its_error_told() {
    let said = run(device(vec![("it", kernel(nearly))]), &group(vec![asking(ElementType::F32)]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let place = 2f64.powi(-22);
    let expected = ResultError { abs: place, rel: place / 3.0, mean_rel: place / 3.0 / N as f64, ulp: 1.0 };
    assert_eq!(errors(&said), [expected]);
}

#[test]
fn errors_are_reported_only_where_asked_for_and_integers_have_none() {
    let quiet = run(device(vec![("it", kernel(nearly))]), &group(vec![case("it", ElementType::F32)]));
    assert_eq!(errors(&quiet), []);
    let integers = run(device(vec![("it", kernel(right))]), &group(vec![asking(ElementType::I32)]));
    assert_eq!((integers.outcome("it"), errors(&integers)), (Outcome::Measured, vec![]));
}

#[test]
fn a_wrong_result_has_a_first_wrong_element_and_no_error() {
    let wrong = |call: &mut Call<'_>| {
        right(call)?;
        call.write(1, 8, &4.0f32.to_le_bytes())
    };
    let said = run(device(vec![("it", kernel(wrong))]), &group(vec![asking(ElementType::F32)]));
    assert_eq!(said.mismatch("it").index, 2);
    assert_eq!(errors(&said), []);
}
