//! The kernels on the simulated device, compared with the host's results.
#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::compare::{Leeway, compare};
use crate::fill::fill;
use crate::operand::{Lanes, Number, Operand};
use runner_backend::sim::SimBackend;
use runner_backend::{Backend, BufferId, Device};
use runner_types::{Access, BufferPlan, DeviceId, ElementType, FillPlan, Tolerance, Value};

use super::Kernels;
use super::check::Wanted;

#[expect(clippy::default_trait_access, reason = "the options' type lies below the backend, out of reach")]
pub fn bench() -> (Box<dyn Device>, Kernels) {
    let backend = SimBackend::new(None, Default::default()).unwrap();
    let mut device = backend.open(&DeviceId { ordinal: 0, uuid: None }).unwrap();
    device.load_builtin(super::PTX).unwrap();
    let kernels = Kernels::load_if_possible(device.as_mut()).unwrap().unwrap();
    (device, kernels)
}

fn holding(device: &mut dyn Device, bytes: &[u8]) -> BufferId {
    let id = device.alloc(bytes.len(), 0).unwrap();
    device.upload(id, 0, bytes).unwrap();
    id
}

fn plan(element: ElementType, len: u64, fill: FillPlan) -> BufferPlan {
    BufferPlan { fill: Some(fill), ..fake_backend::buffer_plan("x", element, len, Access::In) }
}

/// Result of a fill on the device; `None` if the device leaves the fill to the host.
fn made(device: &mut dyn Device, kernels: &Kernels, plan: &BufferPlan) -> Option<Vec<u8>> {
    let size = plan.bytes().0 as usize;
    let id = device.alloc(size, 0).unwrap();
    let done = kernels.fill(device, plan, id).unwrap();
    let mut bytes = vec![0; size];
    device.download(id, 0, &mut bytes).unwrap();
    device.free(id).unwrap();
    done.then_some(bytes)
}

fn fills(element: ElementType) -> Vec<FillPlan> {
    let float = |x: f64| Value::Float(x);
    let (int, seed) = (Value::Int, 11);
    if element.is_float() {
        return vec![
            FillPlan::Constant(float(-0.0)),
            FillPlan::Constant(float(0.1)),
            FillPlan::Iota { start: float(0.1), step: float(0.3) },
            FillPlan::Uniform { low: float(-1.0), high: float(1.0), seed },
            // So narrow that rounding reaches the upper bound, which is excluded.
            FillPlan::Uniform { low: float(1.0), high: float(1.000_000_3), seed },
            FillPlan::Uniform { low: float(0.1), high: float(0.1), seed },
        ];
    }
    vec![
        FillPlan::Constant(int(100)),
        FillPlan::Iota { start: int(3), step: int(7) },
        FillPlan::Uniform { low: int(0), high: int(100), seed },
        FillPlan::Uniform { low: int(5), high: int(5), seed },
    ]
}

#[test]
fn first_contents_have_the_bits_that_the_host_would_make() {
    let (mut device, kernels) = bench();
    for &element in ElementType::ALL {
        let of_16_bits = matches!(element, ElementType::F16 | ElementType::Bf16);
        for fill_plan in fills(element) {
            let plan = plan(element, 5003, fill_plan.clone());
            let made = made(device.as_mut(), &kernels, &plan);
            if of_16_bits && !matches!(fill_plan, FillPlan::Constant(_)) {
                assert_eq!(made, None, "{element} {fill_plan:?}");
                continue;
            }
            assert!(made.unwrap() == fill(&plan, &fill_plan).unwrap(), "{element} {fill_plan:?}");
        }
    }
}

#[test]
fn integers_of_the_whole_range_and_of_spans_past_32_bits_are_drawn_alike() {
    let (mut device, kernels) = bench();
    let cases = [
        (ElementType::I8, -128, 127),
        (ElementType::U32, 0, i64::from(u32::MAX)),
        (ElementType::I64, i64::MIN, i64::MAX),
        (ElementType::I64, -(1 << 40), (1 << 40) - 1),
        (ElementType::U64, 0, i64::MAX),
    ];
    for (element, low, high) in cases {
        let uniform = FillPlan::Uniform { low: Value::Int(low), high: Value::Int(high), seed: 5 };
        let plan = plan(element, 3001, uniform.clone());
        let made = made(device.as_mut(), &kernels, &plan).unwrap();
        assert!(made == fill(&plan, &uniform).unwrap(), "{element} {low}..={high}");
    }
}

/// Of 2^32 draws for this span, 1,967,296 are rejected: about 30 of these 66,000. Each shifts all later ones.
#[test]
fn chunks_with_a_rejected_draw_are_redrawn() {
    let (mut device, kernels) = bench();
    let uniform = FillPlan::Uniform { low: Value::Int(0), high: Value::Int(2_999_999), seed: 3 };
    let plan = plan(ElementType::I32, 66_000, uniform.clone());
    let made = made(device.as_mut(), &kernels, &plan).unwrap();
    assert!(made == fill(&plan, &uniform).unwrap());
    let [count] = kernels.found(device.as_mut()).unwrap();
    assert!(count > 0, "the seed draws no rejected number: choose another");
}

/// The range begins and ends within draw blocks and within chunks; the first case's span rejects some draws.
#[test]
fn a_stretch_has_the_elements_of_another_seed() {
    let (mut device, kernels) = bench();
    let uniform = |high| FillPlan::Uniform { low: Value::Int(0), high: Value::Int(high), seed: 3 };
    let floats = FillPlan::Uniform { low: Value::Float(0.0), high: Value::Float(1.0), seed: 3 };
    let cases = [
        (ElementType::I32, uniform(2_999_999)),
        (ElementType::I64, uniform(1 << 40)),
        (ElementType::F32, floats.clone()),
        (ElementType::F64, floats),
    ];
    for (element, first) in cases {
        let first = Box::new(first);
        let spliced = FillPlan::Spliced { fill: first.clone(), seed: 4, stretch: 60_007..131_075 };
        let plan = plan(element, 140_000, spliced.clone());
        let made = made(device.as_mut(), &kernels, &plan).unwrap();
        assert!(made == fill(&plan, &spliced).unwrap(), "{element}");
        assert!(made != fill(&plan, &first).unwrap(), "{element}");
    }
}

/// One draw in about 65,536 is rejected, so for most seeds the draws that the stretch follows in its chunk have a
/// rejected one and those of the stretch have none.
#[test]
fn a_rejected_draw_before_a_stretch_shifts_the_stretch() {
    let (mut device, kernels) = bench();
    let first =
        Box::new(FillPlan::Uniform { low: Value::Int(0), high: Value::Int((1 << 32) - (1 << 16) - 1), seed: 3 });
    for seed in 0..8 {
        let spliced = FillPlan::Spliced { fill: first.clone(), seed, stretch: 60_000..65_400 };
        let plan = plan(ElementType::U32, 66_000, spliced.clone());
        let made = made(device.as_mut(), &kernels, &plan).unwrap();
        assert!(made == fill(&plan, &spliced).unwrap(), "seed {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_range_of_integers_and_any_stretch_has_the_bits_that_the_host_would_make(
        element in select(ElementType::ALL.iter().copied().filter(|e| !e.is_float()).collect::<Vec<_>>()),
        (low, span, shift) in any::<(u64, u64, u32)>(),
        (seed, other) in any::<(u64, u64)>(),
        len in 1_u64..140_000,
        ends in any::<[Index; 2]>(),
    ) {
        let bits = element.size() * 8;
        let (least, most) = if element.is_signed_integer() {
            (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
        } else {
            (0, ((1_i128 << bits) - 1).min(i128::from(i64::MAX)))
        };
        let low = least + i128::from(low) % (most - least + 1);
        let high = low + i128::from(span >> (shift % 64)) % (most - low + 1);
        let value = |number: i128| Value::Int(i64::try_from(number).unwrap());
        let first = FillPlan::Uniform { low: value(low), high: value(high), seed };
        let mut ends = ends.map(|end| end.index(len as usize + 1) as u64);
        ends.sort_unstable();
        let spliced = FillPlan::Spliced { fill: Box::new(first), seed: other, stretch: ends[0]..ends[1] };
        let plan = plan(element, len, spliced.clone());
        let (mut device, kernels) = bench();
        if let Some(made) = made(device.as_mut(), &kernels, &plan) {
            prop_assert!(made == fill(&plan, &spliced).unwrap());
        }
    }
}

#[test]
fn spans_that_reject_often_and_what_needs_the_host_are_left_to_it() {
    let (mut device, kernels) = bench();
    let often = FillPlan::Uniform { low: Value::Int(0), high: Value::Int(3_000_000_000), seed: 3 };
    let normal = FillPlan::Normal { mean: 0.0, deviation: 1.0, seed: 3 };
    let empty = FillPlan::Uniform { low: Value::Int(2), high: Value::Int(1), seed: 3 };
    for (element, fill) in [(ElementType::U32, often), (ElementType::F32, normal), (ElementType::I32, empty)] {
        assert_eq!(made(device.as_mut(), &kernels, &plan(element, 5000, fill)), None);
    }
}

fn mixed(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[test]
fn a_digest_depends_on_every_byte_and_its_place() {
    let (mut device, kernels) = bench();
    let bytes: Vec<u8> = (0..1003_u32).map(|i| (i * 37 % 251) as u8).collect();
    let words = bytes.chunks(8).map(|word| word.iter().rev().fold(0_u64, |w, b| w << 8 | u64::from(*b)));
    let expected = words.zip(1..).fold(0_u64, |sum, (word, place)| sum.wrapping_add(mixed(word ^ mixed(place))));
    let id = holding(device.as_mut(), &bytes);
    assert_eq!(kernels.digest(device.as_mut(), id).unwrap(), expected);
    let mut changed = |change: &dyn Fn(&mut [u8])| {
        let mut other = bytes.clone();
        change(&mut other);
        device.upload(id, 0, &other).unwrap();
        kernels.digest(device.as_mut(), id).unwrap() != expected
    };
    assert!(changed(&|bytes| bytes[0] ^= 1));
    assert!(changed(&|bytes| bytes[1002] ^= 0x80));
    assert!(changed(&|bytes| bytes[..16].rotate_left(8)), "two words that change places");
    assert!(!changed(&|_| ()));
}

/// Numbers of a type that implementations treat differently: zeros, neighbours, limits, infinities, NaN.
fn specials(element: ElementType) -> Vec<Vec<u8>> {
    let floats = [0.0, -0.0, 1.0, -1.0, 1.0 + f64::EPSILON, 1.0 + f64::from(f32::EPSILON), 3e38, -3e38, 1e300, 1e-310];
    // Between 0 and the smallest f32, midway between them, subnormal as f32 and as f16, and the smallest normal f32.
    let small = [1e-60, 7.006_492_321_624_085e-46, 1e-45, 1e-40, 1.175_494_350_822_287_5e-38, 1e-8, 6e-8];
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let floats = floats.into_iter().chain(small).chain(special);
    let size = element.size();
    match element {
        ElementType::F64 => floats.map(|x| x.to_le_bytes().to_vec()).collect(),
        ElementType::F32 => floats.map(|x| (x as f32).to_le_bytes().to_vec()).collect(),
        ElementType::F16 => floats.map(|x| half::f16::from_f64(x).to_le_bytes().to_vec()).collect(),
        ElementType::Bf16 => floats.map(|x| half::bf16::from_f64(x).to_le_bytes().to_vec()).collect(),
        _ => [0_i64, 1, -1, i64::MAX, i64::MIN, 127, -128].map(|x| x.to_le_bytes()[..size].to_vec()).to_vec(),
    }
}

/// Every pair of special numbers, as two arrays.
fn pairs(got: ElementType, wanted: ElementType) -> (Vec<u8>, Vec<u8>) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for x in specials(got) {
        for y in specials(wanted) {
            left.extend_from_slice(&x);
            right.extend(y);
        }
    }
    (left, right)
}

fn tolerances() -> [Tolerance; 4] {
    let of = |abs, rel, ulp| Tolerance { abs, rel, ulp, derived: false };
    [of(0.0, 0.0, 0), of(0.0, 1e-5, 0), of(2.5, 0.0, 0), of(0.0, 0.0, 1)]
}

/// Number of pairs that the host rejects, and number that the device doubts.
fn judged(got: ElementType, wanted: ElementType, tolerance: &Tolerance) -> (u64, u64) {
    let (mut device, kernels) = bench();
    let (left, right) = pairs(got, wanted);
    let len = (left.len() / got.size()) as u64;
    let operand = |element, bytes: &Vec<u8>| Operand::Bytes { element, bytes: Arc::new(bytes.clone()) };
    let host = compare(&operand(got, &left), &operand(wanted, &right), tolerance, &[], &Leeway::default()).unwrap();
    let (left, right) = (holding(device.as_mut(), &left), holding(device.as_mut(), &right));
    let passes = kernels.passes(device.as_mut(), (left, got, len), &Wanted::Array(wanted, right), tolerance).unwrap();
    let [doubtful] = kernels.found(device.as_mut()).unwrap();
    assert_eq!(passes, doubtful == 0);
    (host.map_or(0, |difference| difference.wrong), doubtful)
}

#[test]
fn the_device_doubts_exactly_what_the_host_refuses() {
    for &element in ElementType::ALL {
        for tolerance in tolerances() {
            let (refused, doubted) = judged(element, element, &tolerance);
            let of_16_bits = matches!(element, ElementType::F16 | ElementType::Bf16);
            if of_16_bits {
                // Infinities and ULP bounds of 16-bit floats are left to the host.
                assert!(doubted >= refused, "{element} {tolerance:?}: {doubted} doubted, {refused} refused");
            } else {
                assert_eq!(doubted, refused, "{element} {tolerance:?}");
            }
            assert!(refused > 0, "{element} {tolerance:?}");
        }
    }
}

#[test]
fn types_that_meet_are_judged_as_the_host_judges_them() {
    use ElementType::{F32, F64, I8, I32, I64, U32, U64};
    for (got, wanted) in [(I64, U64), (U64, I64), (I32, U32), (I8, F64), (U64, F64), (F32, F64), (F64, I64), (F32, U64)]
    {
        for tolerance in tolerances() {
            let (refused, doubted) = judged(got, wanted, &tolerance);
            assert_eq!(doubted, refused, "{got} with {wanted}, {tolerance:?}");
        }
    }
}

#[test]
fn one_wrong_element_is_doubted_wherever_it_stands() {
    let (mut device, kernels) = bench();
    let len = 70_000_usize;
    let right: Vec<u8> = (0..len).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let expected = holding(device.as_mut(), &right);
    let got = holding(device.as_mut(), &right);
    let exact = Tolerance::default_for(ElementType::F32);
    for place in [0, 1, 31, 256, 65_536, len - 1] {
        for wrong in [-1.0_f32, f32::NAN, f32::INFINITY] {
            device.upload(got, place * 4, &wrong.to_le_bytes()).unwrap();
            let side = (got, ElementType::F32, len as u64);
            let wanted = Wanted::Array(ElementType::F32, expected);
            assert!(!kernels.passes(device.as_mut(), side, &wanted, &exact).unwrap(), "{wrong} at {place}");
            let [count, first] = kernels.found(device.as_mut()).unwrap();
            assert_eq!((count, !first), (1, place as u64));
        }
        device.upload(got, place * 4, &(place as f32).to_le_bytes()).unwrap();
    }
    let side = (got, ElementType::F32, len as u64);
    assert!(kernels.passes(device.as_mut(), side, &Wanted::Array(ElementType::F32, expected), &exact).unwrap());
}

#[test]
fn sums_of_two_arrays_wrap_as_integers_and_are_not_rounded_as_floats() {
    let (mut device, kernels) = bench();
    let device = device.as_mut();
    let exact = Tolerance::EXACT;
    let (x, y, sum) = (holding(device, &[200, 1]), holding(device, &[100, 2]), holding(device, &[44, 3]));
    let wanted = Wanted::Sum(ElementType::U8, x, y);
    assert!(kernels.passes(device, (sum, ElementType::U8, 2), &wanted, &exact).unwrap());
    assert!(!kernels.passes(device, (x, ElementType::U8, 2), &wanted, &exact).unwrap());
    let (x, y) = (1.0_f32, 1e-8_f32);
    let sum = holding(device, &(x + y).to_le_bytes());
    let wanted = Wanted::Sum(ElementType::F32, holding(device, &x.to_le_bytes()), holding(device, &y.to_le_bytes()));
    let side = (sum, ElementType::F32, 1);
    assert!(kernels.passes(device, side, &wanted, &exact).unwrap(), "the f32 next to the sum in f64");
    let side = (holding(device, &x.next_up().to_le_bytes()), ElementType::F32, 1);
    assert!(!kernels.passes(device, side, &wanted, &exact).unwrap());
    assert!(kernels.passes(device, side, &wanted, &Tolerance { ulp: 1, ..exact }).unwrap());
}

#[test]
fn one_number_is_expected_of_every_element() {
    let (mut device, kernels) = bench();
    let device = device.as_mut();
    let exact = Tolerance::EXACT;
    let of = |value, element| Wanted::Number { value, element };
    let ones = holding(device, &[1, 0, 0, 0, 1, 0, 0, 0]);
    let side = (ones, ElementType::U32, 2);
    assert!(kernels.passes(device, side, &of(Number::Int(1), None), &exact).unwrap());
    assert!(kernels.passes(device, side, &of(Number::Float(1.0), None), &exact).unwrap());
    assert!(!kernels.passes(device, side, &of(Number::Int(2), None), &exact).unwrap());
    // As u64 these are large, as i64 they are −1; values of different signedness are never equal.
    let all = holding(device, &[0xff; 8]);
    let side = (all, ElementType::U64, 1);
    assert!(!kernels.passes(device, side, &of(Number::Int(-1), None), &exact).unwrap());
    let most = of(Number::Int(i128::from(u64::MAX)), Some(ElementType::U64));
    assert!(kernels.passes(device, side, &most, &exact).unwrap());
}

#[test]
fn expected_values_of_the_host_are_brought_once() {
    let (mut device, mut kernels) = bench();
    let device = device.as_mut();
    let lanes = Operand::Wide { element: ElementType::F32, lanes: Arc::new(Lanes::Float(vec![0.5, 1e300])) };
    let Some(Wanted::Array(element, first)) = kernels.upload_expected(device, &lanes).unwrap() else {
        panic!("not uploaded")
    };
    let Some(Wanted::Array(_, again)) = kernels.upload_expected(device, &lanes.clone()).unwrap() else {
        panic!("not uploaded")
    };
    assert_eq!((element, first), (ElementType::F64, again));
    let got = holding(device, &[0.5_f32, f32::INFINITY].map(f32::to_le_bytes).concat());
    let side = (got, ElementType::F32, 2);
    let tolerance = Tolerance::default_for(ElementType::F32);
    // The second one is infinite as an f32.
    assert!(kernels.passes(device, side, &Wanted::Array(element, first), &tolerance).unwrap());
}

#[test]
fn expected_values_lie_masked_on_the_device_and_are_unmasked_for_a_comparison_only() {
    let (mut device, mut kernels) = bench();
    // Two of the host's pieces, and not a whole number of words.
    let values: Vec<u8> = (0..(1 << 20) + 131u32).map(|i| (i % 251) as u8).collect();
    let element = ElementType::U8;
    let operand = Operand::Bytes { element, bytes: Arc::new(values.clone()) };
    let got = holding(device.as_mut(), &values);
    let wanted = kernels.upload_expected(device.as_mut(), &operand).unwrap().unwrap();
    let Wanted::Array(_, id) = wanted else { panic!("{wanted:?}") };
    let read = |device: &mut dyn Device| {
        let mut bytes = vec![0; values.len()];
        device.download(id, 0, &mut bytes).unwrap();
        bytes
    };
    let masked = read(device.as_mut());
    let equal = masked.iter().zip(&values).filter(|(one, other)| one == other).count();
    // By chance, one byte in 256 is equal.
    assert!((3_000..5_500).contains(&equal), "{equal}");
    let passes = |kernels: &Kernels, device: &mut dyn Device| {
        let len = values.len() as u64;
        kernels.passes(device, (got, element, len), &wanted, &Tolerance::default_for(element)).unwrap()
    };
    assert!(passes(&kernels, device.as_mut()));
    assert!(read(device.as_mut()) == masked);
    device.upload(got, values.len() - 1, &[values[values.len() - 1] ^ 1]).unwrap();
    assert!(!passes(&kernels, device.as_mut()));
}
