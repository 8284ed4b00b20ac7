//! Which cases the simulator launches a second time.

use super::rig::case;
use crate::repeat::is_cheap;
use runner_types::{Bytes, ElementType, ExpectPlan, FunctionPlan, RefExpr, RefFunction};

#[test]
fn a_second_set_is_cheap_up_to_so_many_instructions_bytes_and_multiplications() {
    // Two buffers of 1000 elements: 8000 bytes, which cost as much as 320 instructions.
    let small = case("it", ElementType::I32);
    assert_eq!(small.buffer_bytes(), Bytes(8000));
    assert!(is_cheap(&small, 19_999_600.0) && !is_cheap(&small, 19_999_800.0));
    let mut large = small.clone();
    large.buffers[0].len = 124_998_000;
    assert!(is_cheap(&large, 0.0) && !is_cheap(&large, 1000.0));
    let mut product = small.clone();
    let arguments = ["a", "b"].map(|name| RefExpr::Buffer(name.to_owned())).to_vec();
    // 2 · 10^8 multiplications take 0.4 seconds, and the instructions the rest.
    let call = RefExpr::Call { function: RefFunction::Matmul, buffers: arguments, integers: vec![1000, 1000, 200] };
    product.checks[0].expect = ExpectPlan::Reference(call);
    assert!(is_cheap(&product, 11_999_000.0) && !is_cheap(&product, 12_001_000.0));
    let mut called = small;
    let (path, function) = ("golden.py".into(), "expected".to_owned());
    called.checks[0].expect = ExpectPlan::Python(FunctionPlan { path, function, arguments: vec![] });
    assert!(!is_cheap(&called, 0.0), "how long it takes is unknown");
}
