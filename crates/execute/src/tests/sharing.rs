//! What the cases of a group share, what is restored before each launch, and what results are compared with.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::rig::{N, buffer, call, case, device, group, kernel, launch, right, run};
use crate::buffers::Store;
use crate::expected::Expected;
use crate::input_sets::{FIRST, OTHER};
use crate::operand::{Number, Operand};
use fake_backend::{Call, FakeKernel};
use runner_backend::Device;
use runner_types::{
    Access, ArgPlan, BodyPlan, BufferPlan, CaseJob, ElementType, ExpectPlan, FillPlan, GroupJob, Mismatch, Outcome,
    RefExpr, RefFunction, SymbolPlan, Unchecked, Value, Verdict,
};

const MEMORY: u64 = 256 << 20;

fn copy(name: &str) -> CaseJob {
    case(name, ElementType::I32)
}

fn group_of(names: &[&str]) -> GroupJob {
    group(names.iter().map(|name| copy(name)).collect())
}

fn rights<'n>(names: &[&'n str]) -> Vec<(&'n str, FakeKernel)> {
    names.iter().map(|name| (*name, kernel(right))).collect()
}

#[test]
fn variants_with_equal_buffers_share_them_and_upload_their_input_once() {
    let names = ["a", "b", "c"];
    let said = run(device(rights(&names)), &group_of(&names));
    assert_eq!(said.device.allocated(), [4000, 4000]);
    assert_eq!(said.device.uploaded(), [4000]);
    assert!(names.iter().all(|name| said.outcome(name) == Outcome::Measured));
}

#[test]
fn a_buffer_of_another_length_type_access_or_content_is_another_buffer() {
    let changes: [fn(&mut CaseJob); 3] = [
        |job| job.buffers.iter_mut().for_each(|buffer| buffer.len = N - 1),
        |job| job.buffers.iter_mut().for_each(|buffer| buffer.element = ElementType::U32),
        |job| job.buffers[0].fill = Some(FillPlan::Constant(Value::Int(5))),
    ];
    for (change, shared) in changes.into_iter().zip([0, 0, 1]) {
        let mut job = group_of(&["a", "b"]);
        change(&mut job.cases[1]);
        let said = run(device(rights(&["a", "b"])), &job);
        assert_eq!(said.device.allocated().len(), 4 - shared);
        assert_eq!(said.device.uploaded().len(), 2);
        assert_eq!((said.outcome("a"), said.outcome("b")), (Outcome::Measured, Outcome::Measured));
    }
}

#[test]
fn all_memory_is_given_back_whatever_the_cases_came_to() {
    let wrong = kernel(|call: &mut Call<'_>| call.write(1, 0, &[0; 8]));
    let names = ["right", "wrong", "missing"];
    let kernels = vec![("right", kernel(right)), ("wrong", wrong)];
    let said = run(device(kernels), &group_of(&names));
    assert_eq!(said.device.memory_free(), Some(MEMORY));
    assert!(!said.device.allocated().is_empty());
    assert!(matches!(said.outcome("wrong"), Outcome::Wrong { .. }));
    assert!(matches!(said.outcome("missing"), Outcome::LaunchError { .. }));
}

#[test]
fn equal_inputs_are_made_once_and_others_apart() {
    let mut store = Store::default();
    let plan = buffer("x", ElementType::I32, 100, Access::In);
    let first = store.input(&plan).unwrap();
    assert!(Arc::ptr_eq(&first, &store.input(&plan.clone()).unwrap()));
    // A variant that may write it starts from the same content.
    let inout = buffer("x", ElementType::I32, 100, Access::InOut);
    assert!(Arc::ptr_eq(&first, &store.input(&inout).unwrap()));
    let other = buffer("y", ElementType::I32, 100, Access::In);
    assert!(!Arc::ptr_eq(&first, &store.input(&other).unwrap()));
}

#[test]
fn a_reference_is_worked_out_once_for_all_who_have_its_inputs() {
    let (mut store, mut expected) = (Store::default(), Expected::default());
    let square = |name: &str| RefExpr::Call {
        function: RefFunction::Matmul,
        buffers: vec![RefExpr::Buffer(name.to_owned()); 2],
        integers: vec![10, 10, 10],
    };
    let mut job = copy("a");
    job.buffers = vec![buffer("x", ElementType::I32, 100, Access::In), buffer("y", ElementType::I32, 100, Access::In)];
    let mut lanes = |job: &CaseJob, name: &str| match expected.reference(&mut store, job, &square(name)).unwrap() {
        Operand::Wide { lanes, .. } => lanes,
        other => panic!("{other:?}"),
    };
    let first = lanes(&job, "x");
    let second = CaseJob { buffers: job.buffers.clone(), ..copy("b") };
    assert!(Arc::ptr_eq(&first, &lanes(&second, "x")));
    assert!(!Arc::ptr_eq(&first, &lanes(&second, "y")));
    job.buffers[0].fill = Some(FillPlan::Constant(Value::Int(2)));
    let other = lanes(&job, "x");
    assert!(!Arc::ptr_eq(&first, &other));
    assert_ne!(first, other);
}

/// Length at which buffers of 64-bit elements are too large to be generated in memory just for a reduction, with an
/// uneven remainder.
const LARGE: u64 = (1 << 21) + 4321;

fn large(name: &str, element: ElementType, fill: FillPlan) -> BufferPlan {
    BufferPlan { fill: Some(fill), ..buffer(name, element, LARGE, Access::In) }
}

#[test]
fn a_reduction_of_a_large_input_needs_no_memory_for_it() {
    let (mut store, mut expected) = (Store::default(), Expected::default());
    let mut job = copy("a");
    job.buffers = vec![large("x", ElementType::I64, FillPlan::Iota { start: Value::Int(1), step: Value::Int(1) })];
    let n = i128::from(LARGE);
    for (function, value) in [
        (RefFunction::Sum, n * (n + 1) / 2),
        (RefFunction::Max, n),
        (RefFunction::Min, 1),
        (RefFunction::SumSquares, n * (n + 1) * (2 * n + 1) / 6),
    ] {
        let found = expected.reference(&mut store, &job, &call(function, "x")).unwrap();
        assert!(matches!(found, Operand::Scalar { value: Number::Int(found), .. } if found == value), "{found:?}");
    }
    assert!(store.made_by_chunks(&job.buffers[0]).is_some(), "the input was made in memory");
}

#[test]
fn a_reduction_in_blocks_has_the_bits_of_one_in_memory() {
    let uniform = |seed| FillPlan::Uniform { low: Value::Int(-1), high: Value::Int(1), seed };
    let mut job = copy("a");
    job.buffers = vec![
        large("x", ElementType::F64, uniform(1)),
        large("y", ElementType::F64, FillPlan::Normal { mean: 0.5, deviation: 2.0, seed: 2 }),
    ];
    let dot = RefExpr::Call {
        function: RefFunction::Dot,
        buffers: ["x", "y"].map(|name| RefExpr::Buffer(name.to_owned())).to_vec(),
        integers: vec![],
    };
    let mut values = Vec::new();
    for set in [FIRST, OTHER] {
        for expression in [&call(RefFunction::Sum, "x"), &call(RefFunction::Product, "y"), &dot] {
            let (mut store, mut expected) = (Store::default(), Expected::default());
            store.sets.current = set;
            let value =
                |store: &mut Store, expected: &mut Expected| match expected.reference(store, &job, expression).unwrap()
                {
                    Operand::Scalar { value: Number::Float(value), .. } => value.to_bits(),
                    other => panic!("{other:?}"),
                };
            let in_blocks = value(&mut store, &mut expected);
            for plan in &job.buffers {
                assert!(store.made_by_chunks(plan).is_some(), "{expression:?}");
                store.input(plan).unwrap();
                assert!(store.made_by_chunks(plan).is_none(), "{expression:?}");
            }
            assert_eq!(in_blocks, value(&mut store, &mut Expected::default()), "{expression:?}");
            values.push(in_blocks);
        }
    }
    // The product underflows or overflows in both sets.
    assert!(values[0] != values[3] && values[2] != values[5], "the other set has the same inputs: {values:?}");
}

/// A kernel that records its argument `arg` at each launch, then does its work.
fn observed(
    arg: usize,
    work: impl Fn(&mut Call<'_>) -> Result<(), runner_backend::DeviceError> + Send + Sync + 'static,
) -> (FakeKernel, Arc<Mutex<Vec<Vec<u8>>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&seen);
    let kernel = kernel(move |call: &mut Call<'_>| {
        found.lock().unwrap().push(call.read(arg)?);
        work(call)
    });
    (kernel, seen)
}

#[test]
fn an_output_is_poisoned_before_every_launch_and_otherwise_before_those_that_are_timed() {
    for &element in ElementType::ALL {
        let mut job = case("it", element);
        job.buffers.iter_mut().for_each(|buffer| buffer.len = 100);
        let (kernel, seen) = observed(1, right);
        let said = run(device(vec![("it", kernel)]), &group(vec![job]));
        assert_eq!(said.outcome("it"), Outcome::Measured);
        // Two launches that are checked, one warm-up, ten samples.
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 13);
        let (checked, timed) = if element.is_float() { (0xFF, 0xCB) } else { (0xCB, 0xB4) };
        assert!(seen[0].iter().all(|byte| *byte == checked), "{element}");
        assert!(seen[1..].iter().flatten().all(|byte| *byte == timed), "{element}");
        assert!(seen.iter().all(|found| found.len() == 100 * element.size()));
    }
}

#[test]
fn an_inout_buffer_is_restored_before_every_launch() {
    let mut job = copy("it");
    job.buffers = vec![buffer("data", ElementType::I32, N, Access::InOut)];
    job.checks[0].actual = call(RefFunction::Max, "data");
    job.checks[0].expect = ExpectPlan::Reference(RefExpr::Constant(Value::Int(7)));
    job.body = BodyPlan::Launches(vec![launch("it", &["data"])]);
    let sevens = |call: &mut Call<'_>| call.write(0, 0, &7i32.to_le_bytes().repeat(N as usize));
    let (kernel, seen) = observed(0, sevens);
    let said = run(device(vec![("it", kernel)]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let first: Vec<u8> = (1..=N as i32).flat_map(i32::to_le_bytes).collect();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 13);
    assert!(seen.iter().all(|found| *found == first));
    // The buffer and the copy from which it is restored; only the copy is uploaded.
    assert_eq!((said.device.allocated(), said.device.uploaded()), (&[4000, 4000][..], &[4000][..]));
    assert_eq!(said.device.memory_free(), Some(MEMORY));
}

#[test]
fn scratch_is_left_as_it_is() {
    let mut job = copy("it");
    job.buffers.push(buffer("scratch", ElementType::I32, 10, Access::Scratch));
    job.body = BodyPlan::Launches(vec![launch("it", &["input", "out", "scratch"])]);
    let marks = |call: &mut Call<'_>| {
        right(call)?;
        call.write(2, 0, &[call.nth as u8; 40])
    };
    let (kernel, seen) = observed(2, marks);
    let said = run(device(vec![("it", kernel)]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    for (nth, found) in seen.lock().unwrap().iter().enumerate().skip(1) {
        assert_eq!(*found, [nth as u8 - 1; 40]);
    }
}

#[test]
fn a_buffer_that_neither_body_nor_check_names_takes_no_memory() {
    let mut job = copy("it");
    job.buffers.push(buffer("unused", ElementType::F64, 1 << 40, Access::In));
    let said = run(device(rights(&["it"])), &group(vec![job]));
    assert_eq!((said.outcome("it"), said.device.allocated()), (Outcome::Measured, &[4000, 4000][..]));
}

/// A group in which `others` are compared with `naive`, which is checked against `own` or, with `None`, against
/// nothing.
fn against_naive(others: &[&str], own: Option<&ExpectPlan>) -> GroupJob {
    let mut job = group_of(&[others, &["naive"]].concat());
    for case in &mut job.cases {
        let expect = ExpectPlan::Variant("naive".to_owned());
        case.checks[0].expect = match own {
            Some(own) if case.case.key.variant == "naive" => own.clone(),
            _ => expect,
        };
    }
    job
}

fn copy_of_input() -> ExpectPlan {
    ExpectPlan::Reference(call(RefFunction::Copy, "input"))
}

#[test]
fn a_variant_that_others_are_compared_with_runs_first_and_is_compared_with_nothing() {
    let kernels = rights(&["a", "b", "naive"]);
    let said = run(device(kernels), &against_naive(&["a", "b"], None));
    assert_eq!(said.device.launched()[0], "naive");
    assert_eq!(said.verdict("naive"), Some(&Verdict::Unchecked(Unchecked::IsReference)));
    for name in ["a", "b"] {
        assert_eq!((said.outcome(name), said.verdict(name)), (Outcome::Measured, Some(&Verdict::Pass)));
    }
    assert_eq!(said.outcome("naive"), Outcome::Measured);
}

#[test]
fn a_variant_that_differs_from_the_named_one_is_wrong_in_its_first_place() {
    let off = kernel(|call: &mut Call<'_>| {
        right(call)?;
        call.write(1, 4 * 9, &[0; 8])
    });
    let said = run(device(vec![("a", off), ("naive", kernel(right))]), &against_naive(&["a"], None));
    let Mismatch { index, expected, got, wrong, of, .. } = said.mismatch("a");
    assert_eq!((index, expected.as_str(), got.as_str(), wrong, of), (9, "10", "0", 2, N));
    assert_eq!(said.outcome("naive"), Outcome::Measured);
}

#[test]
fn a_named_variant_that_is_wrong_itself_judges_no_other() {
    let wrong = kernel(|call: &mut Call<'_>| call.write(1, 0, &[0; 4000]));
    let kernels = vec![("a", kernel(right)), ("naive", wrong)];
    let said = run(device(kernels), &against_naive(&["a"], Some(&copy_of_input())));
    assert!(matches!(said.outcome("naive"), Outcome::Wrong { .. }));
    let why = "variant `naive`, with which it is compared, did not pass its own check".to_owned();
    assert_eq!(said.outcome("a"), Outcome::not_run(why));
}

#[test]
fn a_named_variant_that_is_not_there_judges_no_other() {
    let mut job = against_naive(&["a"], None);
    job.cases.truncate(1);
    let said = run(device(rights(&["a"])), &job);
    let why = "variant `naive`, with which it is compared, is not in this run".to_owned();
    assert_eq!(said.outcome("a"), Outcome::not_run(why));
}

#[test]
fn the_named_variant_is_the_one_at_the_same_point_of_the_axes() {
    // Blocks are compared too: each block's variants are checked against their own `naive`, whose results differ.
    let mut job = GroupJob { baseline: None, ..group(vec![]) };
    for (block, scale) in [(32, 1), (64, 3)] {
        for mut case in against_naive(&["a"], None).cases {
            case.case.key.axes = vec![("block".to_owned(), Value::Int(block))];
            let step = Value::Int(scale);
            case.buffers[0].fill = Some(FillPlan::Iota { start: Value::Int(0), step });
            job.cases.push(case);
        }
    }
    let said = run(device(rights(&["a", "naive"])), &job);
    assert_eq!(said.outcomes("a"), [Outcome::Measured, Outcome::Measured]);
    assert_eq!(said.outcomes("naive"), [Outcome::Measured, Outcome::Measured]);
}

#[test]
fn what_the_named_variant_made_is_kept_though_others_use_its_memory() {
    // The second check of a variant runs after both have overwritten the shared output many times.
    let late = kernel(|call: &mut Call<'_>| {
        right(call)?;
        if call.nth == 12 { call.write(1, 0, &[9; 4]) } else { Ok(()) }
    });
    let mut job = against_naive(&["late"], None);
    job.baseline = None;
    let said = run(device(vec![("late", late), ("naive", kernel(right))]), &job);
    assert_eq!(said.verdict("late"), Some(&Verdict::Pass));
    assert_eq!((said.mismatch("late").index, said.mismatch("late").expected), (0, "1".to_owned()));
}

/// An .npy file of little-endian elements, written exactly as the format specifies.
fn golden(descr: &str, values: &[i32]) -> tempfile::NamedTempFile {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({},), }}\n", values.len());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&u16::try_from(header.len()).unwrap().to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    for value in values {
        file.write_all(&value.to_le_bytes()).unwrap();
    }
    file
}

fn checked_against(path: PathBuf) -> GroupJob {
    let mut job = group_of(&["it"]);
    job.cases[0].checks[0].expect = ExpectPlan::Npy(path);
    job
}

#[test]
fn a_golden_file_is_what_the_output_must_be() {
    let mut values: Vec<i32> = (1..=N as i32).collect();
    let file = golden("<i4", &values);
    let said = run(device(rights(&["it"])), &checked_against(file.path().to_owned()));
    assert_eq!((said.outcome("it"), said.verdict("it")), (Outcome::Measured, Some(&Verdict::Pass)));
    values[500] = -3;
    let file = golden("<i4", &values);
    let mismatch = run(device(rights(&["it"])), &checked_against(file.path().to_owned())).mismatch("it");
    assert_eq!((mismatch.index, mismatch.expected.as_str(), mismatch.got.as_str()), (500, "-3", "501"));
}

#[test]
fn a_golden_file_of_another_type_or_length_is_a_fault_of_the_case() {
    for (file, problem) in [
        (golden("<f4", &(1..=N as i32).collect::<Vec<_>>()), "holds '<f4', but the buffer is i32"),
        (golden("<i4", &[1, 2]), "the check compares 1000 elements with 2 elements"),
    ] {
        let said = run(device(rights(&["it"])), &checked_against(file.path().to_owned()));
        let Outcome::Unresolved { message } = said.outcome("it") else { panic!("{:?}", said.outcome("it")) };
        assert!(message.contains(problem), "{message}");
    }
    let said = run(device(rights(&["it"])), &checked_against(PathBuf::from("/nonexistent/golden.npy")));
    let Outcome::Unresolved { message } = said.outcome("it") else { panic!() };
    assert!(message.starts_with("/nonexistent/golden.npy: cannot be opened"), "{message}");
}

#[test]
fn an_input_may_come_from_a_file() {
    let values: Vec<i32> = (0..N as i32).map(|i| i * i % 97).collect();
    let file = golden("<i4", &values);
    let mut job = group_of(&["it"]);
    job.cases[0].buffers[0].fill = Some(FillPlan::Npy(file.path().to_owned()));
    let (kernel, seen) = observed(0, right);
    let said = run(device(vec![("it", kernel)]), &job);
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert!(seen.lock().unwrap().iter().all(|found| *found == bytes));
}

/// A case with `out` and `input` as variables of the kernel's source. The fake kernel gets them as arguments.
fn variables(name: &str) -> CaseJob {
    let mut job = copy(name);
    for buffer in &mut job.buffers {
        let variable = if buffer.name == "out" { "result" } else { "table" };
        buffer.symbol = Some(SymbolPlan { name: variable.to_owned(), launch: 0 });
    }
    job
}

#[test]
fn buffers_that_are_variables_are_filled_poisoned_and_checked() {
    let (kernel, seen) = observed(1, right);
    let device = device(vec![("it", kernel)]).with_symbol("table", 4000).with_symbol("result", 4000);
    let said = run(device, &group(vec![variables("it")]));
    assert_eq!((said.outcome("it"), said.verdict("it")), (Outcome::Measured, Some(&Verdict::Pass)));
    let seen = seen.lock().unwrap();
    assert!(seen[0].iter().all(|byte| *byte == 0xCB) && seen[1..].iter().flatten().all(|byte| *byte == 0xB4));
}

#[test]
fn a_variable_that_is_an_input_is_restored_before_every_launch_and_watched() {
    let vandal = |call: &mut Call<'_>| {
        right(call)?;
        call.write(0, 40, &[0xEE])
    };
    let (kernel, seen) = observed(0, vandal);
    let device = device(vec![("it", kernel)]).with_symbol("table", 4000).with_symbol("result", 4000);
    let said = run(device, &group(vec![variables("it")]));
    let mismatch = said.mismatch("it");
    assert_eq!((mismatch.what.as_str(), mismatch.index), ("input `input` was changed", 10));
    let first: Vec<u8> = (1..=N as i32).flat_map(i32::to_le_bytes).collect();
    assert!(seen.lock().unwrap().iter().all(|found| *found == first));
}

#[test]
fn a_variable_that_no_kernel_is_handed_is_bound_all_the_same() {
    let mut job = variables("it");
    job.buffers.push(buffer("flag", ElementType::I32, 1, Access::InOut));
    job.buffers[2].symbol = Some(SymbolPlan { name: "flag".to_owned(), launch: 0 });
    let device = device(rights(&["it"])).with_symbol("table", 4000).with_symbol("result", 4000).with_symbol("flag", 4);
    let said = run(device, &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
    assert!(said.device.allocated().contains(&4));
}

#[test]
fn a_variable_of_another_size_or_none_at_all_is_named() {
    let small = device(rights(&["it"])).with_symbol("table", 4000).with_symbol("result", 40);
    let said = run(small, &group(vec![variables("it")]));
    let message = "buffer `out` has 4000 bytes, but the variable `result` has 40: declare it with the buffer's length";
    assert_eq!(said.outcome("it"), Outcome::LaunchError { message: message.to_owned() });
    let none = device(rights(&["it"])).with_symbol("table", 4000);
    let said = run(none, &group(vec![variables("it")]));
    assert!(matches!(said.outcome("it"), Outcome::LaunchError { message } if message.contains("no variable `result`")));
    assert_eq!(said.device.memory_free(), Some(MEMORY - 4000));
}

#[test]
fn a_variable_without_a_kernel_is_unresolved() {
    let mut job = variables("it");
    job.body = BodyPlan::Memcpy(vec![("input".to_owned(), "out".to_owned())]);
    let said = run(device(vec![]), &group(vec![job]));
    let message = "buffer `input` is a variable of a kernel's source, and no kernel runs".to_owned();
    assert_eq!(said.outcome("it"), Outcome::Unresolved { message });
}

#[test]
fn a_launch_that_takes_a_buffer_the_case_lacks_is_unresolved() {
    let mut job = copy("it");
    let BodyPlan::Launches(launches) = &mut job.body else { panic!() };
    launches[0].args.push(ArgPlan::Buffer("ghost".to_owned()));
    let said = run(device(rights(&["it"])), &group(vec![job]));
    let message = "the launch takes a buffer `ghost` that the case does not have".to_owned();
    assert_eq!(said.outcome("it"), Outcome::Unresolved { message });
}
