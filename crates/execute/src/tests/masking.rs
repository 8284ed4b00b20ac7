//! Checks that compare only the elements that their `where` selects.

use super::rig::*;
use fake_backend::Call;
use runner_backend::DeviceError;
use runner_types::{CaseJob, ElementType, Elementwise, INDEX, Outcome, RefExpr, Value};

/// A case that compares the elements from index `first` on.
fn from_index(first: i64) -> CaseJob {
    let mut job = case("it", ElementType::I32);
    job.checks[0].mask = Some(RefExpr::Elementwise {
        operation: Elementwise::GreaterOrEqual,
        operands: vec![RefExpr::Buffer(INDEX.to_owned()), RefExpr::Constant(Value::Int(first))],
    });
    job
}

/// Copies its first argument to its second, except element 5.
fn wrong_at_5(call: &mut Call<'_>) -> Result<(), DeviceError> {
    let mut copy = call.read(0)?;
    copy[5 * 4] ^= 1;
    call.write(1, 0, &copy)
}

#[test]
fn an_element_that_is_not_selected_may_hold_anything() {
    let said = run(device(vec![("it", kernel(wrong_at_5))]), &group(vec![from_index(6)]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
}

#[test]
fn a_wrong_element_is_named_by_its_index_in_the_whole_array() {
    let mismatch = run(device(vec![("it", kernel(wrong_at_5))]), &group(vec![from_index(3)])).mismatch("it");
    assert_eq!((mismatch.index, mismatch.wrong, mismatch.of), (5, 1, N - 3));
    assert_eq!((mismatch.expected.as_str(), mismatch.got.as_str()), ("6", "7"));
}

#[test]
fn a_mask_that_selects_nothing_is_refused() {
    let said = run(device(vec![("it", kernel(right))]), &group(vec![from_index(N as i64)]));
    let outcome = format!("{:?}", said.outcome("it"));
    assert!(outcome.contains(&format!("`where` selects none of the {N} elements")), "{outcome}");
}
