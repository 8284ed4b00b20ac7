#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use proptest::prelude::*;

use super::{BEGIN, COUNTERS, FAILED, ITERATIONS, JUDGE, SET, VALUES, ptx};
use crate::sim::SimBackend;
use crate::{Backend, Batch, BufferId, Condition, Device, Launch, LaunchArg, Loop, Read, Step};
use runner_lang::{Program, Scope};
use runner_types::{DeviceId, Dim3, ElementType, ScalarValue, Value};

/// Replaces the driver's function: a handle is the address of its value.
const OWN_SET: &str = ".func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)\n{\n    \
    .reg .b64 %to;\n    .reg .b32 %what;\n    ld.param.b64 %to, [handle];\n    ld.param.b32 %what, [value];\n    \
    st.global.u32 [%to], %what;\n    ret;\n}\n";

const BOUND: u64 = 5;
const NUMBER: u64 = 3;
/// The two words to which the handles point.
const HANDLES: [usize; 2] = [COUNTERS + 1, COUNTERS + 2];

fn condition(text: &str, reads: &[(&str, ElementType)]) -> Condition {
    let scope: Scope =
        [("n", Value::Int(8)), ("half", Value::Float(0.5)), ("mode", Value::from_text("fast"))].into_iter().collect();
    let read = |&(name, element): &(&str, ElementType)| Read { name: name.to_owned(), buffer: BufferId(1), element };
    Condition { program: Program::parse(text).unwrap(), scope, reads: reads.iter().map(read).collect() }
}

#[expect(clippy::default_trait_access, reason = "the options' type lies below the backend, out of reach")]
fn simulated() -> Box<dyn Device> {
    SimBackend::new(None, Default::default()).unwrap().open(&DeviceId { ordinal: 0, uuid: None }).unwrap()
}

/// State after the kernel has run on the simulated device. The buffers begin with `values`, and the loop has completed
/// `iterations`.
fn judged(condition: &Condition, values: &[u64], iterations: u64) -> Vec<u64> {
    let ptx = ptx(condition).unwrap();
    assert!(ptx.contains(SET), "{ptx}");
    let text: &'static str = Box::leak(ptx.replace(SET, OWN_SET).into_boxed_str());
    let mut device = simulated();
    let module = device.load_builtin(text).unwrap().unwrap();
    let mut state = vec![0_u64; COUNTERS + 3];
    state[COUNTERS] = iterations;
    state[HANDLES[0]] = 7;
    state[HANDLES[1]] = 7;
    let state = holding(device.as_mut(), &state);
    let word = |word: usize| LaunchArg::Offset(state, 8 * word as u64);
    let number = |bits| LaunchArg::Scalar(ScalarValue { element: ElementType::U64, bits });
    let mut args = vec![
        LaunchArg::Buffer(state),
        word(COUNTERS),
        number(BOUND),
        number(NUMBER),
        word(HANDLES[0]),
        word(HANDLES[1]),
    ];
    args.extend(values.iter().map(|bits| LaunchArg::Buffer(holding(device.as_mut(), &[*bits]))));
    run(device.as_mut(), module, (JUDGE, args));
    read(device.as_mut(), state)
}

fn holding(device: &mut dyn Device, words: &[u64]) -> BufferId {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let id = device.alloc(bytes.len(), 0).unwrap();
    device.upload(id, 0, &bytes).unwrap();
    id
}

fn read(device: &mut dyn Device, id: BufferId) -> Vec<u64> {
    let mut bytes = vec![0; device.size(id)];
    device.download(id, 0, &mut bytes).unwrap();
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

fn run(device: &mut dyn Device, module: crate::ModuleId, (name, args): (&str, Vec<LaunchArg>)) {
    let kernel = device.kernel(module, name).unwrap();
    let one = Dim3::new(1, 1, 1);
    device.run(&Batch::once(Vec::new(), vec![Step::Launch(Launch::new(kernel, one, one, args))])).unwrap();
}

/// Whether the condition holds according to the kernel; `None` if it has no value.
fn on_the_device(condition: &Condition, values: &[u64]) -> Option<bool> {
    let state = judged(condition, values, 1);
    let goes_on = state[HANDLES[0]] as u32;
    assert_eq!(goes_on, state[HANDLES[1]] as u32);
    assert_eq!((state[ITERATIONS], state[COUNTERS]), (2, 2));
    match (state[FAILED], goes_on) {
        (0, 0) => Some(true),
        (0, 1) => Some(false),
        (NUMBER, 0) => {
            assert_eq!(&state[VALUES..][..values.len()], values);
            None
        }
        other => panic!("{other:?}"),
    }
}

fn agrees(condition: &Condition, values: &[u64]) {
    let host = condition.holds(values).ok();
    assert_eq!(on_the_device(condition, values), host, "{} of {values:x?}", condition.program.text());
}

#[test]
fn an_element_of_every_type_is_read_as_the_host_reads_it() {
    let cases = [
        (ElementType::I8, 0xfe, "x == -2"),
        (ElementType::I16, 0xfffe, "x == -2"),
        (ElementType::I32, 0xffff_fffe, "x == -2"),
        (ElementType::I64, u64::MAX, "x == -1"),
        (ElementType::U8, 0xfe, "x == 254"),
        (ElementType::U16, 0xfffe, "x == 65534"),
        (ElementType::U32, 0xffff_fffe, "x == 4294967294"),
        (ElementType::U64, u64::MAX, "x == 9223372036854775807"),
        (ElementType::F16, 0x3e00, "x == 1.5"),
        (ElementType::Bf16, 0xbfc0, "x == -1.5"),
        (ElementType::F32, u64::from(1.5_f32.to_bits()), "x == 1.5"),
        (ElementType::F64, 1.5_f64.to_bits(), "x == 1.5"),
    ];
    for (element, bits, text) in cases {
        assert_eq!(on_the_device(&condition(text, &[("x", element)]), &[bits]), Some(true), "{element:?}");
    }
}

#[test]
fn a_condition_without_a_value_ends_the_loop() {
    let (int, float) = ([("x", ElementType::I64)], [("x", ElementType::F32)]);
    let nan = u64::from(f32::NAN.to_bits());
    for (text, reads, bits) in [
        ("x < 1.0", &float, nan),
        ("x + 1 > 0", &int, i64::MAX as u64),
        ("-x > 0", &int, i64::MIN as u64),
        ("x * 3 > 0", &int, 1 << 62),
        ("10 / x > 0", &int, 0),
        ("x % 0 == 0", &int, 1),
        ("1 << x == 0", &int, 63),
        ("sqrt(x) > 0", &float, u64::from((-1.0_f32).to_bits())),
        ("int(x) > 0", &float, u64::from(f32::INFINITY.to_bits())),
    ] {
        let condition = condition(text, reads);
        assert!(condition.holds(&[bits]).is_err(), "{text}");
        assert_eq!(on_the_device(&condition, &[bits]), None, "{text}");
    }
    // A NaN differs from a number, and the minimum of both is the number.
    agrees(&condition("x == 1.0 || min(x, 2.0) == 2.0", &float), &[nan]);
    agrees(&condition("x == x", &float), &[nan]);
}

#[test]
fn a_loop_ends_at_its_bound_and_after_a_failure() {
    let condition = condition("x == 0", &[("x", ElementType::I32)]);
    let state = judged(&condition, &[4], BOUND - 1);
    assert_eq!((state[FAILED], state[ITERATIONS], state[VALUES]), (NUMBER, BOUND, 4));
    assert_eq!(state[HANDLES[0]] as u32, 0);
    let state = judged(&condition, &[0], BOUND - 1);
    assert_eq!((state[FAILED], state[ITERATIONS], state[HANDLES[0]] as u32), (0, BOUND, 0));
}

#[test]
fn a_loop_begins_with_a_count_of_zero() {
    let text: &'static str = Box::leak(
        ptx(&condition("x == 0", &[("x", ElementType::I32)])).unwrap().replace(SET, OWN_SET).into_boxed_str(),
    );
    for (failed, goes_on) in [(0, 1), (NUMBER, 0)] {
        let mut device = simulated();
        let module = device.load_builtin(text).unwrap().unwrap();
        let mut state = vec![9; COUNTERS + 2];
        (state[FAILED], state[HANDLES[0]]) = (failed, 0);
        let state = holding(device.as_mut(), &state);
        let word = |word: usize| LaunchArg::Offset(state, 8 * word as u64);
        run(device.as_mut(), module, (BEGIN, vec![LaunchArg::Buffer(state), word(COUNTERS), word(HANDLES[0])]));
        let after = read(device.as_mut(), state);
        assert_eq!((after[COUNTERS], after[HANDLES[0]]), (0, goes_on));
    }
}

#[test]
fn what_a_gpu_computes_differently_is_not_translated() {
    let refusal = |text: &str| ptx(&condition(text, &[("x", ElementType::F32)])).unwrap_err();
    assert_eq!(refusal("x ** 2 < 1"), "`**` of floats that a kernel wrote");
    assert_eq!(refusal("log2(x) < 1"), "`log2` of a value that a kernel wrote");
    assert_eq!(refusal("select(x < 1, 1, 2.0) < 2"), "`select` of integer and float");
    assert_eq!(refusal("x < 1 && missing == 2"), "`missing == 2` has no value");
    assert_eq!(refusal("x"), "expected a bool, not float");
    // Parts known before the launch may use every function.
    assert_eq!(
        on_the_device(&condition("x < 10.0 ** -n && mode == \"fast\"", &[("x", ElementType::F32)]), &[0]),
        Some(true)
    );
}

#[test]
fn a_loop_recurs_after_the_iterations_that_differ() {
    let iteration =
        |text: &str| crate::Iteration { steps: Vec::new(), until: condition(text, &[("x", ElementType::I32)]) };
    let period =
        |texts: &[&str]| Loop { iterations: texts.iter().map(|text| iteration(text)).collect(), at_most: 9 }.period();
    assert_eq!(period(&["x == 0"]), Some(1));
    assert_eq!(period(&["x == 0", "x == 1"]), Some(2));
    assert_eq!(period(&["x == 0"; 12]), Some(1));
    assert_eq!(period(&["x == 0", "x == 1", "x == 0"]), Some(3));
    let texts: Vec<String> = (0..9).map(|nth| format!("x == {nth}")).collect();
    assert_eq!(period(&texts.iter().map(String::as_str).collect::<Vec<_>>()), None);
}

/// Integers, sometimes at the limits of the range.
fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![3 => -9_i64..9, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

fn real() -> impl Strategy<Value = f32> {
    prop_oneof![3 => (-4_i8..4).prop_map(|x| f32::from(x) / 2.0), 1 => any::<f32>(), 1 => Just(f32::INFINITY)]
}

/// An integer, a float and a bool expression, nested up to `depth`.
fn expression(depth: u32) -> (BoxedStrategy<String>, BoxedStrategy<String>, BoxedStrategy<String>) {
    let int = prop_oneof![
        Just("i".to_owned()),
        Just("j".to_owned()),
        Just("n".to_owned()),
        (0_i64..70).prop_map(|value| value.to_string())
    ]
    .boxed();
    let float =
        prop_oneof![Just("x".to_owned()), Just("half".to_owned()), (0_u8..9).prop_map(|value| format!("{value}.25"))]
            .boxed();
    let bool = prop_oneof![Just("i == 0".to_owned()), Just("x < 1".to_owned())].prop_map(|t| format!("({t})")).boxed();
    if depth == 0 {
        return (int, float, bool);
    }
    let (i, f, b) = expression(depth - 1);
    let operator = |list: &'static [&'static str]| prop::sample::select(list);
    let two = |a: &BoxedStrategy<String>, o: &'static [&'static str], c: &BoxedStrategy<String>| {
        (a.clone(), operator(o), c.clone()).prop_map(|(a, o, c)| format!("({a} {o} {c})")).boxed()
    };
    let whole = prop_oneof![
        int,
        two(&i, &["+", "-", "*", "/", "%", "<<", ">>"], &i),
        i.clone().prop_map(|i| format!("(-{i})")),
        i.clone().prop_map(|i| format!("abs({i})")),
        f.clone().prop_map(|f| format!("int({f})")),
        (operator(&["min", "max"]), i.clone(), i.clone()).prop_map(|(o, a, c)| format!("{o}({a}, {c})")),
        (b.clone(), i.clone(), i.clone()).prop_map(|(b, a, c)| format!("select({b}, {a}, {c})")),
    ]
    .boxed();
    let real = prop_oneof![
        float,
        two(&f, &["+", "-", "*", "/"], &f),
        two(&i, &["+", "*"], &f),
        f.clone().prop_map(|f| format!("sqrt(abs({f}))")),
        i.clone().prop_map(|i| format!("float({i})")),
        (operator(&["min", "max"]), f.clone(), i.clone()).prop_map(|(o, a, c)| format!("{o}({a}, {c})")),
        (b.clone(), f.clone(), f.clone()).prop_map(|(b, a, c)| format!("select({b}, {a}, {c})")),
    ]
    .boxed();
    let relations: &'static [&'static str] = &["==", "!=", "<", "<=", ">", ">="];
    let truth = prop_oneof![
        bool,
        two(&i, relations, &i),
        two(&f, relations, &f),
        two(&i, relations, &f),
        two(&b, &["&&", "||", "=="], &b),
        b.prop_map(|b| format!("(!{b})")),
        (i.clone(), i.clone(), f).prop_map(|(a, c, d)| format!("({a} in [{c}, {d}])")),
    ]
    .boxed();
    (whole, real, truth)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_kernel_finds_the_same_truth_as_the_host(
        text in expression(3).2,
        (i, j, x) in (whole(), any::<i32>(), real()),
    ) {
        let condition = condition(&text, &[("i", ElementType::I64), ("j", ElementType::I32), ("x", ElementType::F32)]);
        let values = [i as u64, u64::from(j as u32), u64::from(x.to_bits())];
        // A constant without a value, such as `1 / 0`, is rejected.
        if ptx(&condition).is_ok() {
            agrees(&condition, &values);
        }
    }
}
