//! What the cases of a group share, what one may not do to another, and what a case needs to run at all.

use std::io::Write;

use super::rig::{N, buffer, call, case, device, group, kernel, launch, right, run, run_one};
use crate::backend::Device;
use crate::backend::fake::{Call, FakeDevice, device_info};
use crate::model::{
    Access, ArgPlan, BlockPlan, BodyPlan, Bytes, CaseJob, ElementType, Event, ExpectPlan, FillPlan, GridPlan,
    KernelResources, LaunchRecord, Outcome, RefExpr, RefFunction, ScalarValue, SymbolPlan, Unchecked, Value, Verdict,
};

/// Memory of one buffer with its guard zones.
const fn taken(bytes: u64) -> u64 {
    bytes + 2 * 65536
}

fn small_device(memory: u64) -> FakeDevice {
    let mut info = device_info();
    info.memory_bytes = Bytes(memory);
    FakeDevice::new(info)
}

fn reference(name: &str) -> CaseJob {
    let mut job = case(name, ElementType::I32);
    job.checks[0].expect = ExpectPlan::Variant("naive".to_owned());
    job
}

fn launches(said: &super::rig::Said) -> Vec<LaunchRecord> {
    let found = said.events.iter().find_map(|event| match event {
        Event::CaseChecked { launches, .. } => Some(launches.clone()),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn variants_with_equal_buffers_take_their_memory_once() {
    let device = small_device(2 * taken(4 * N));
    let names = ["a", "b", "c"];
    let device = names.iter().fold(device, |device, name| device.with_kernel(name, kernel(right)));
    let said = run(device, &group(names.map(|name| case(name, ElementType::I32)).to_vec()));
    for name in names {
        assert_eq!(said.outcome(name), Outcome::Measured, "{name}");
    }
}

#[test]
fn all_memory_is_given_back_when_the_group_ends() {
    let mut inout = case("b", ElementType::I32);
    inout.buffers.push(buffer("work", ElementType::F64, 5000, Access::InOut));
    inout.body = BodyPlan::Launches(vec![launch("b", &["input", "out", "work"])]);
    let kernels = vec![("a", kernel(right)), ("b", kernel(right))];
    let said = run(device(kernels), &group(vec![case("a", ElementType::I32), inout]));
    assert_eq!(said.outcome("b"), Outcome::Measured);
    assert_eq!(said.device.memory_free(), Some(device_info().memory_bytes.0));
}

#[test]
fn a_case_past_the_memory_is_refused_alone_and_keeps_nothing() {
    // Its input would fit, its output not; the third case needs what the second one must give back.
    let mut large = case("large", ElementType::I32);
    large.buffers = vec![
        buffer("input", ElementType::I32, 100_000, Access::In),
        buffer("out", ElementType::I32, 10_000_000, Access::Out),
    ];
    let mut third = case("third", ElementType::I32);
    third.buffers = vec![
        buffer("input", ElementType::I32, 50_000, Access::In),
        buffer("out", ElementType::I32, 50_000, Access::Out),
    ];
    let memory = 2 * taken(4 * N) + 2 * taken(200_000) + 300_000;
    let device = ["first", "large", "third"]
        .into_iter()
        .fold(small_device(memory), |device, name| device.with_kernel(name, kernel(right)));
    let said = run(device, &group(vec![case("first", ElementType::I32), large, third]));
    assert_eq!(said.outcome("first"), Outcome::Measured);
    assert_eq!(said.outcome("third"), Outcome::Measured);
    let Outcome::OutOfMemory { needed, available } = said.outcome("large") else {
        panic!("{:?}", said.outcome("large"))
    };
    assert_eq!(needed, taken(40_000_000));
    assert!(available < needed);
}

#[test]
fn a_length_past_all_memory_is_refused_by_arithmetic() {
    let mut job = case("it", ElementType::F64);
    job.buffers[1].len = u64::MAX;
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert!(matches!(said.outcome("it"), Outcome::OutOfMemory { .. }));
}

#[test]
fn an_empty_buffer_is_no_fault() {
    let mut job = case("it", ElementType::F32);
    job.buffers.iter_mut().for_each(|b| b.len = 0);
    let said = run(device(vec![("it", kernel(right))]), &group(vec![job]));
    assert_eq!(said.outcome("it"), Outcome::Measured);
}

#[test]
fn another_variant_can_be_what_is_expected() {
    let off_by_one = |call: &mut Call<'_>| {
        right(call)?;
        call.write(1, 40, &[0; 4])
    };
    let kernels = vec![("it", kernel(right)), ("wrong", kernel(off_by_one)), ("naive", kernel(right))];
    let mut naive = reference("naive");
    // The plan leaves out the check of a case against itself.
    naive.checks.clear();
    let said = run(device(kernels), &group(vec![reference("it"), reference("wrong"), naive]));
    assert_eq!(said.verdict("naive"), Some(&Verdict::Unchecked(Unchecked::IsReference)));
    assert_eq!(said.outcome("naive"), Outcome::Measured);
    assert_eq!(said.verdict("it"), Some(&Verdict::Pass));
    assert_eq!(said.mismatch("wrong").index, 10);
}

#[test]
fn nothing_is_right_by_comparison_with_what_is_wrong() {
    let trespasser = |call: &mut Call<'_>| {
        right(call)?;
        call.write(1, -1, &[0])
    };
    let kernels = vec![("it", kernel(right)), ("naive", kernel(trespasser))];
    let said = run(device(kernels), &group(vec![reference("it"), reference("naive")]));
    assert_eq!(said.mismatch("naive").what, "guard zone before `out`, byte by byte away from it");
    assert!(matches!(said.outcome("it"), Outcome::NotRun { why } if why.contains("`naive`")));
    assert!(said.measurement("it").is_none());
}

#[test]
fn a_reference_that_was_filtered_out_is_named() {
    let said = run(device(vec![("it", kernel(right))]), &group(vec![reference("it")]));
    let Outcome::NotRun { why } = said.outcome("it") else { panic!("{:?}", said.outcome("it")) };
    assert_eq!(why, "`naive`, which it is compared with, is not in this run");
}

#[test]
fn a_golden_file_is_compared_by_type_and_length() {
    let golden = |len: usize, value: i32| {
        let header = format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({len},), }}\n");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\x93NUMPY\x01\x00").unwrap();
        file.write_all(&u16::try_from(header.len()).unwrap().to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        (1..=len as i32).for_each(|i| file.write_all(&(i * value).to_le_bytes()).unwrap());
        file
    };
    let against = |file: &tempfile::NamedTempFile| {
        let mut job = case("it", ElementType::I32);
        job.checks[0].expect = ExpectPlan::Npy(file.path().to_owned());
        run(device(vec![("it", kernel(right))]), &group(vec![job]))
    };
    assert_eq!(against(&golden(1000, 1)).outcome("it"), Outcome::Measured);
    assert_eq!(against(&golden(1000, 2)).mismatch("it").wrong, 1000);
    let short = against(&golden(999, 1)).outcome("it");
    assert!(
        matches!(&short, Outcome::Unresolved { message } if message.contains("1000 elements with 999")),
        "{short:?}"
    );
}

#[test]
fn a_variable_of_the_module_is_restored_and_watched() {
    let mut job = case("it", ElementType::I32);
    job.buffers[0].symbol = Some(SymbolPlan { name: "table".to_owned(), launch: 0 });
    job.body = BodyPlan::Launches(vec![launch("it", &["input", "out"])]);
    let device = |bytes, body: fn(&mut Call<'_>) -> _| device(vec![("it", kernel(body))]).with_symbol("table", bytes);
    assert_eq!(run(device(4000, right), &group(vec![job.clone()])).outcome("it"), Outcome::Measured);
    let said = run(
        device(4000, |call| {
            right(call)?;
            call.write(0, 0, &[9])
        }),
        &group(vec![job.clone()]),
    );
    assert_eq!(said.mismatch("it").what, "input `input` was changed");
    let Outcome::LaunchError { message } = run(device(4096, right), &group(vec![job])).outcome("it") else {
        panic!("a variable of another size is no launch error")
    };
    assert_eq!(
        message,
        "buffer `input` has 4000 bytes, the variable `table` has 4096: declare it with the buffer's length"
    );
}

#[test]
fn the_launch_is_recorded_as_it_was_made() {
    let mut job = case("it", ElementType::I32);
    let mut plan = launch("it", &["input", "out"]);
    plan.block = BlockPlan::Occupancy;
    plan.grid = GridPlan::Occupancy;
    let spills = KernelResources { spill_loads: Some(3), registers: Some(99), ..KernelResources::default() };
    plan.compiled.as_mut().unwrap().resources.insert("it".to_owned(), spills);
    job.body = BodyPlan::Launches(vec![plan]);
    let record = launches(&run(device(vec![("it", kernel(right))]), &group(vec![job]))).remove(0);
    // The fake proposes 256; 2048 threads an SM are 8 blocks, 4 SMs make 32. The device knows its registers best.
    assert_eq!((record.block.x, record.grid.x), (256, 32));
    assert_eq!((record.resources.registers, record.resources.spill_loads), (Some(32), Some(3)));
    assert_eq!(record.occupancy.unwrap().blocks_per_sm, 8);
}

#[test]
fn a_grid_can_depend_on_the_block_that_occupancy_chose() {
    let mut job = case("it", ElementType::I32);
    let mut plan = launch("it", &["input", "out"]);
    plan.block = BlockPlan::Occupancy;
    plan.grid = GridPlan::AfterBlock {
        dims: vec!["ceil_div(n, occupancy_block)".to_owned()],
        scope: [("n".to_owned(), Value::Int(1000))].into(),
    };
    job.body = BodyPlan::Launches(vec![plan]);
    let record = launches(&run(device(vec![("it", kernel(right))]), &group(vec![job]))).remove(0);
    assert_eq!(record.grid.x, 4);
}

#[test]
fn a_copy_by_the_driver_is_checked_like_a_kernel() {
    let mut job = case("it", ElementType::I32);
    job.body = BodyPlan::Memcpy(vec![("input".to_owned(), "out".to_owned())]);
    let said = run(device(vec![]), &group(vec![job.clone()]));
    assert_eq!((said.outcome("it"), said.verdict("it")), (Outcome::Measured, Some(&Verdict::Pass)));
    job.buffers[1].len = 999;
    let said = run(device(vec![]), &group(vec![job]));
    assert!(matches!(said.outcome("it"), Outcome::Unresolved { message } if message.contains("4000 bytes")));
}

#[test]
fn each_launch_of_a_sequence_has_a_time_and_a_record() {
    let mut job = case("it", ElementType::I32);
    job.buffers.push(buffer("middle", ElementType::I32, N, Access::Scratch));
    let plans = vec![launch("one", &["input", "middle"]), launch("two", &["middle", "out"])];
    job.body = BodyPlan::Launches(plans);
    let kernels = vec![("one", kernel(right)), ("two", kernel(right).taking(|_| 500.0))];
    let said = run(device(kernels), &group(vec![job]));
    assert_eq!(launches(&said).len(), 2);
    let round = &said.measurement("it").unwrap().rounds[0];
    assert_eq!((round.whole, round.each.as_slice()), (1500.0, &[1000.0, 500.0][..]));
}

#[test]
fn scalars_reach_the_kernel() {
    let mut job = case("it", ElementType::I32);
    let mut plan = launch("it", &["input", "out"]);
    plan.args.push(ArgPlan::Scalar(ScalarValue { element: ElementType::U32, bits: 77 }));
    job.body = BodyPlan::Launches(vec![plan]);
    let body = |call: &mut Call<'_>| {
        assert_eq!(call.scalar(2)?.bits, 77);
        right(call)
    };
    assert_eq!(run(device(vec![("it", kernel(body))]), &group(vec![job])).outcome("it"), Outcome::Measured);
}

#[test]
fn what_cannot_be_resolved_is_said_in_words() {
    let unresolved = |change: &dyn Fn(&mut CaseJob)| {
        let mut job = case("it", ElementType::F32);
        change(&mut job);
        match run(device(vec![("it", kernel(right))]), &group(vec![job])).outcome("it") {
            Outcome::Unresolved { message } => message,
            other => panic!("{other:?}"),
        }
    };
    let expect = |name: &str| ExpectPlan::Reference(RefExpr::Buffer(name.to_owned()));
    let message = unresolved(&|job| job.checks[0].expect = expect("out"));
    assert_eq!(message, "buffer `out` has no content before the launch: give it a fill");
    let message = unresolved(&|job| job.checks[0].expect = expect("absent"));
    assert_eq!(message, "a reference names a buffer `absent` that the case does not have");
    let message = unresolved(&|job| job.checks[0].expect = ExpectPlan::Reference(call(RefFunction::And, "input")));
    assert_eq!(message, "and() works on integers, and the array is f32");
    let message = unresolved(&|job| job.buffers[0].fill = Some(FillPlan::Npy("absent.npy".into())));
    assert!(message.starts_with("buffer `input`: absent.npy: cannot be opened"), "{message}");
}

#[test]
fn the_first_of_many_kernels_that_is_missing_is_named() {
    let said = run_one(right);
    assert_eq!(said.outcome("it"), Outcome::Measured);
    let said = run(device(vec![]), &group(vec![case("it", ElementType::I32)]));
    assert!(matches!(said.outcome("it"), Outcome::LaunchError { message } if message.contains("`it`")));
}
