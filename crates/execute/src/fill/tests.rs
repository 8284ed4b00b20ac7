//! Contents of buffers, compared with `ChaCha8` and SHA-256 written from their specifications, and with expected
//! statistics.

#![expect(clippy::unwrap_used, clippy::float_cmp, reason = "a test panics to fail; fills are known to the bit")]

use proptest::prelude::*;

use super::super::typed::by_type;
use super::{BufferPlan, CHUNK, ElementType, FillPlan, Float, Integer, Typed, Value, below, chunk, fill};
use runner_types::Access;

fn plan(name: &str, element: ElementType, len: u64) -> BufferPlan {
    fake_backend::buffer_plan(name, element, len, Access::In)
}

fn made(name: &str, element: ElementType, len: usize, content: &FillPlan) -> Vec<u8> {
    fill(&plan(name, element, len as u64), content).unwrap()
}

fn refused(element: ElementType, content: &FillPlan) -> String {
    fill(&plan("x", element, 4), content).unwrap_err()
}

/// Elements as f64, which represents all elements in these tests exactly.
fn numbers(element: ElementType, bytes: &[u8]) -> Vec<f64> {
    let parts = bytes.chunks_exact(element.size());
    by_type!(
        element,
        integer T => parts.map(|b| T::load(b).lane() as f64).collect(),
        float T => parts.map(|b| T::load(b).wide()).collect(),
    )
}

fn filled(element: ElementType, len: usize, content: &FillPlan) -> Vec<f64> {
    numbers(element, &made("x", element, len, content))
}

fn uniform(low: impl Into<Number>, high: impl Into<Number>, seed: u64) -> FillPlan {
    FillPlan::Uniform { low: low.into().0, high: high.into().0, seed }
}

/// A literal of a test, converted to a manifest value.
struct Number(Value);

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(Value::Int(value))
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        Self(Value::Float(value))
    }
}

fn every_fill() -> [FillPlan; 4] {
    [
        FillPlan::Constant(Value::Int(3)),
        FillPlan::Iota { start: Value::Int(1), step: Value::Int(2) },
        uniform(0, 100, 9),
        FillPlan::Normal { mean: 50.0, deviation: 10.0, seed: 9 },
    ]
}

#[test]
fn uniform_integers_are_those_of_the_generator_as_it_is_described() {
    // Computed by a separate program, with ChaCha8, SHA-256 and the multiplication method implemented from their
    // papers.
    let bytes = made("input", ElementType::I32, CHUNK + 3, &uniform(0, 255, 1));
    let values = numbers(ElementType::I32, &bytes);
    assert_eq!(values[..6], [217.0, 63.0, 67.0, 150.0, 62.0, 155.0]);
    assert_eq!(values[CHUNK..], [246.0, 207.0, 67.0]);
    let wide = numbers(ElementType::I64, &made("a", ElementType::I64, 6, &uniform(-1_000_000, 1_000_000, 7)));
    assert_eq!(wide, [-26_866.0, -526_754.0, 529_767.0, -731_735.0, 858_405.0, 815_275.0]);
    let whole_range = made("wide", ElementType::I64, 3, &uniform(i64::MIN, i64::MAX, 5));
    let lanes: Vec<i64> = whole_range.chunks_exact(8).map(i64::load).collect();
    let drawn: [u64; 3] = [18_070_385_869_848_913_245, 4_458_747_841_180_694_251, 12_783_079_004_172_635_371];
    assert_eq!(lanes, drawn.map(|drawn| i64::MIN.wrapping_add(drawn as i64)));
}

#[test]
fn uniform_floats_are_those_of_the_generator_as_it_is_described() {
    let narrow = made("a", ElementType::F32, 4, &uniform(-1, 1, 1));
    let expected = [0.621_351_f32, 0.814_766_1, -0.726_184_84, -0.233_927_32];
    assert_eq!(numbers(ElementType::F32, &narrow), expected.map(f64::from));
    let wide = made("a", ElementType::F64, 3, &uniform(-1, 1, 1));
    assert_eq!(
        numbers(ElementType::F64, &wide),
        [0.814_766_083_755_844_8, -0.233_927_327_144_468_4, -0.319_473_694_254_474]
    );
}

#[test]
fn normal_numbers_are_those_of_box_and_muller() {
    let values = numbers(
        ElementType::F64,
        &made("x", ElementType::F64, 4, &FillPlan::Normal { mean: 10.0, deviation: 2.0, seed: 3 }),
    );
    let expected = [9.967_146_349_219_526, 6.324_594_625_444_558, 14.082_621_184_570_534, 7.610_060_557_053_792];
    for (value, expected) in values.iter().zip(expected) {
        // The other program's logarithm and cosine may be off by one ULP.
        assert!((value - expected).abs() <= 1e-14 * expected, "{value} {expected}");
    }
}

#[test]
fn one_thread_and_five_make_the_same_bytes() {
    for (element, content) in
        every_fill().into_iter().flat_map(|fill| [(ElementType::I16, fill.clone()), (ElementType::F64, fill)])
    {
        let by = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| made("x", element, 2 * CHUNK + 77, &content))
        };
        assert!(by(1) == by(5), "{element} {content:?}");
    }
}

#[test]
fn a_longer_buffer_starts_as_a_shorter_one() {
    let element = ElementType::F32;
    for content in every_fill() {
        let long = made("x", element, CHUNK + 5, &content);
        for len in [0, 1, 2, 501, CHUNK, CHUNK + 1] {
            let short = made("x", element, len, &content);
            assert!(long[..len * element.size()] == short, "{len} of {content:?}");
        }
    }
}

#[test]
fn another_name_or_another_seed_is_another_content() {
    let content = |name, seed| made(name, ElementType::U64, 100, &uniform(0, i64::MAX, seed));
    assert_eq!(content("a", 1), content("a", 1));
    assert_ne!(content("a", 1), content("b", 1));
    assert_ne!(content("a", 1), content("a", 2));
}

#[test]
fn both_bounds_of_a_uniform_integer_are_hit_and_all_between_equally_often() {
    let len = 1 << 14;
    for element in ElementType::ALL.iter().copied().filter(|e| !e.is_float()) {
        let mut count = [0u32; 6];
        for value in filled(element, len, &uniform(3, 8, 4)) {
            count[value as usize - 3] += 1;
        }
        // A binomial with mean 2731 and standard deviation 48; the bound is six deviations.
        assert!(count.iter().all(|n| n.abs_diff(2731) < 6 * 48), "{element}: {count:?}");
    }
}

#[test]
fn the_whole_range_of_small_types_can_be_asked_for() {
    for (element, low, high) in [(ElementType::I8, -128, 127), (ElementType::U8, 0, 255)] {
        let mut values = filled(element, 1 << 14, &uniform(low, high, 2));
        values.sort_by(f64::total_cmp);
        values.dedup();
        assert_eq!(values.len() as i64, high - low + 1, "{element}");
    }
}

#[test]
fn uniform_floats_never_reach_the_upper_bound() {
    for element in [ElementType::F16, ElementType::Bf16, ElementType::F32, ElementType::F64] {
        for (low, high) in [(-1.0, 1.0), (0.0, 1.0), (-2.0, -1.0), (-1.0, 0.0)] {
            // Of 2^14 draws below 1, four round to 1 as f16 and 32 as bf16.
            let values = filled(element, 1 << 14, &uniform(low, high, 6));
            assert!(values.iter().all(|v| (low..high).contains(v)), "{element} on [{low}, {high})");
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            // The mean of this many draws deviates by 0.0023 of the range, and bf16 rounds by up to 2^-9.
            assert!((mean - f64::midpoint(low, high)).abs() < 0.015 * (high - low), "{element}: {mean}");
        }
        assert_eq!(filled(element, 3, &uniform(0.5, 0.5, 6)), [0.5; 3], "{element}");
    }
}

#[test]
fn a_range_as_wide_as_the_type_does_not_overflow() {
    let values = filled(ElementType::F64, 1000, &uniform(-f64::MAX, f64::MAX, 1));
    assert!(values.iter().all(|v| v.is_finite()));
    assert!(values.iter().any(|v| *v < -1e307) && values.iter().any(|v| *v > 1e307));
}

#[test]
fn normal_numbers_have_their_mean_and_deviation() {
    let (mean, deviation) = (3.0, 0.5);
    let values = filled(ElementType::F32, 1 << 14, &FillPlan::Normal { mean, deviation, seed: 11 });
    let n = values.len() as f64;
    let found = values.iter().sum::<f64>() / n;
    let spread = (values.iter().map(|v| (v - found).powi(2)).sum::<f64>() / n).sqrt();
    // Five standard errors: deviation / 128 for the mean, and that / √2 for the deviation.
    assert!((found - mean).abs() < 5.0 * deviation / 128.0, "{found}");
    assert!((spread - deviation).abs() < 5.0 * deviation / 128.0 / 2f64.sqrt(), "{spread}");
    let within = values.iter().filter(|v| (**v - mean).abs() < deviation).count() as f64 / n;
    assert!((within - 0.6827).abs() < 0.018, "{within}");
}

#[test]
fn normal_integers_are_rounded_and_stay_within_their_type() {
    let values = filled(ElementType::I8, 10_000, &FillPlan::Normal { mean: 100.0, deviation: 50.0, seed: 1 });
    assert!(values.contains(&127.0));
    assert!(values.iter().all(|v| v.fract() == 0.0 && (-128.0..=127.0).contains(v)));
}

#[test]
fn iota_counts_from_its_start_and_wraps_in_integers() {
    let iota = |start: i64, step: i64| FillPlan::Iota { start: Value::Int(start), step: Value::Int(step) };
    assert_eq!(filled(ElementType::I32, 4, &iota(5, -2)), [5.0, 3.0, 1.0, -1.0]);
    assert_eq!(filled(ElementType::U8, 4, &iota(254, 1)), [254.0, 255.0, 0.0, 1.0]);
    assert_eq!(filled(ElementType::I8, 3, &iota(127, 256)), [127.0; 3]);
    let halves = FillPlan::Iota { start: Value::Float(0.5), step: Value::Float(0.25) };
    assert_eq!(filled(ElementType::F32, 4, &halves), [0.5, 0.75, 1.0, 1.25]);
    assert_eq!(filled(ElementType::I32, CHUNK + 2, &iota(0, 1))[CHUNK..], [CHUNK as f64, (CHUNK + 1) as f64]);
    // Not accumulated: element 2^20 has the error of a single product.
    let tenths =
        filled(ElementType::F64, (1 << 20) + 1, &FillPlan::Iota { start: Value::Int(0), step: Value::Float(0.1) });
    assert_eq!(tenths[1 << 20], 0.1 * 1_048_576.0);
}

#[test]
fn a_constant_is_in_every_place() {
    for &element in ElementType::ALL {
        assert_eq!(filled(element, 5, &FillPlan::Constant(Value::Int(7))), [7.0; 5], "{element}");
        assert_eq!(filled(element, 5, &FillPlan::Constant(Value::Float(7.0))), [7.0; 5], "{element}");
    }
    assert_eq!(filled(ElementType::F16, 1, &FillPlan::Constant(Value::Float(0.1))), [0.099_975_585_937_5]);
}

#[test]
fn values_that_the_type_cannot_hold_are_refused_with_both() {
    let constant = |value: Value| FillPlan::Constant(value);
    for (element, content, expected) in [
        (ElementType::U8, constant(Value::Int(256)), "buffer `x`: its fill has 256, which is not a value of u8"),
        (ElementType::U64, constant(Value::Int(-1)), "buffer `x`: its fill has -1, which is not a value of u64"),
        (ElementType::I32, constant(Value::Float(0.5)), "buffer `x`: its fill has 0.5, which is not a value of i32"),
        (
            ElementType::F16,
            constant(Value::Float(1e6)),
            "buffer `x`: its fill has 1000000.0, which is not a value of f16",
        ),
        (ElementType::F32, constant(Value::Bool(true)), "buffer `x`: its fill has true, which is not a value of f32"),
        (ElementType::I8, uniform(-129, 0, 1), "buffer `x`: its fill has -129, which is not a value of i8"),
        (ElementType::I32, uniform(5, 4, 1), "buffer `x`: its fill is uniform on [5, 4], which is empty"),
        (ElementType::F32, uniform(5.0, 4.0, 1), "buffer `x`: its fill is uniform on [5.0, 4.0], which is empty"),
    ] {
        assert_eq!(refused(element, &content), expected);
    }
    let normal = refused(ElementType::F32, &FillPlan::Normal { mean: f64::NAN, deviation: 1.0, seed: 0 });
    assert_eq!(
        normal,
        "buffer `x`: its fill is normal with mean NaN and standard deviation 1: both must be finite numbers"
    );
}

#[test]
fn a_length_past_all_memory_is_an_error_and_no_abort() {
    for len in [u64::MAX, 1 << 58] {
        let error = fill(&plan("x", ElementType::F64, len), &FillPlan::Constant(Value::Int(0))).unwrap_err();
        assert!(error.contains("the host has no memory for its"), "{error}");
    }
}

proptest! {
    #[test]
    fn uniform_integers_stay_within_any_bounds(a in any::<i32>(), b in any::<i32>(), seed in any::<u64>()) {
        let (low, high) = (a.min(b), a.max(b));
        let values = filled(ElementType::I32, 500, &uniform(i64::from(low), i64::from(high), seed));
        prop_assert!(values.iter().all(|v| (f64::from(low)..=f64::from(high)).contains(v)));
    }

    #[test]
    fn uniform_floats_stay_within_any_bounds(
        a in -1e30f64..1e30,
        b in -1e30f64..1e30,
        seed in any::<u64>(),
        element in prop::sample::select(vec![ElementType::Bf16, ElementType::F32, ElementType::F64]),
    ) {
        // Bounds are rounded to the type, because a bound between two values of the type becomes one of them.
        let round = |x: f64| by_type!(element, integer _T => x, float T => T::nearest(x).wide());
        let (low, high) = (round(a.min(b)), round(a.max(b)));
        prop_assume!(low < high);
        let values = filled(element, 500, &uniform(low, high, seed));
        prop_assert!(values.iter().all(|v| (low..high).contains(v)));
    }

    #[test]
    fn draws_below_a_span_are_below_it(span in 1u64.., seed in any::<u64>()) {
        use rand_chacha::rand_core::SeedableRng;
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        for span in [span, span >> 31, 1, 1 << 32, (1 << 32) + 1].into_iter().filter(|span| *span > 0) {
            prop_assert!((0..20).all(|_| below(&mut rng, span) < span));
        }
    }
}

#[test]
fn a_list_holds_its_elements_as_the_type_does() {
    let list = FillPlan::List(vec![Value::Int(-1), Value::Int(300), Value::Int(2)]);
    let made = fill(&plan("b", ElementType::I16, 3), &list).unwrap();
    assert_eq!(made, [-1_i16, 300, 2].map(i16::to_le_bytes).concat());
    let refused = fill(&plan("b", ElementType::U8, 3), &list).unwrap_err();
    assert_eq!(refused, "buffer `b`: its fill has -1, which is not a value of u8");
}

#[test]
fn a_raw_file_must_be_as_long_as_the_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    std::fs::write(&path, [1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    assert_eq!(fill(&plan("b", ElementType::U32, 2), &FillPlan::Raw(path.clone())).unwrap(), [1, 0, 0, 0, 2, 0, 0, 0]);
    let refused = fill(&plan("b", ElementType::U32, 3), &FillPlan::Raw(path)).unwrap_err();
    assert!(refused.ends_with("x.bin holds 8 bytes, expected 12"), "{refused}");
}

#[test]
fn a_buffer_like_another_has_its_random_content() {
    let uniform = FillPlan::Uniform { low: Value::Int(0), high: Value::Int(1000), seed: 1 };
    let like = FillPlan::Like { buffer: "a".to_owned(), fill: Box::new(uniform.clone()) };
    let (a, b) = (plan("a", ElementType::I32, 100), plan("b", ElementType::I32, 100));
    assert_eq!(fill(&a, &uniform), fill(&b, &like));
    assert_ne!(fill(&b, &uniform), fill(&b, &like));
}

#[test]
fn a_permuted_content_has_the_same_elements_in_an_order_of_its_seed_and_buffer() {
    let len = 3 * CHUNK / 2;
    let iota = FillPlan::Iota { start: Number::from(5).0, step: Number::from(1).0 };
    let shuffled = |name: &str, seed| {
        numbers(ElementType::I32, &made(name, ElementType::I32, len, &iota.clone().permuted(seed, 0..len as u64)))
    };
    let first = filled(ElementType::I32, len, &iota);
    let mut permuted = shuffled("x", 3);
    let equal = permuted.iter().zip(&first).filter(|(one, other)| one == other).count();
    assert!(equal < 20, "{equal} of {len} elements kept their place");
    assert_eq!(permuted, shuffled("x", 3));
    assert!(permuted != shuffled("x", 4) && permuted != shuffled("y", 3));
    // A buffer that copies another's content keeps it.
    let like = FillPlan::Like { buffer: "x".to_owned(), fill: Box::new(iota.clone()) };
    assert_eq!(
        numbers(ElementType::I32, &made("y", ElementType::I32, len, &like.permuted(3, 0..len as u64))),
        permuted
    );
    permuted.sort_by(f64::total_cmp);
    assert_eq!(permuted, first);
}

#[test]
fn a_stretch_of_a_content_has_the_elements_of_another_seed_at_their_places() {
    let (len, secret) = (3 * CHUNK + 100, 0x5EED);
    let uniform = uniform(0, 100, 5);
    let normal = FillPlan::Normal { mean: 0.0, deviation: 1.0, seed: 5 };
    for (element, fill) in [(ElementType::I32, &uniform), (ElementType::F16, &uniform), (ElementType::F64, &normal)] {
        let mut other = fill.clone();
        *other.seed_mut().unwrap() ^= secret;
        let (first, second) = (made("x", element, len, fill), made("x", element, len, &other));
        for stretch in [0..len, 7..8, 5..CHUNK, CHUNK..2 * CHUNK, CHUNK - 1..2 * CHUNK + 1, len - 1..len, 9..9] {
            let bytes = [stretch.start, stretch.end].map(|place| place * element.size());
            let stretch = stretch.start as u64..stretch.end as u64;
            let spliced = fill.clone().spliced(secret, stretch.clone());
            let expected = [&first[..bytes[0]], &second[bytes[0]..bytes[1]], &first[bytes[1]..]].concat();
            assert!(made("x", element, len, &spliced) == expected, "{element} {stretch:?}");
            // A single chunk, and the content of a buffer that is `like` it.
            let plan = plan("x", element, len as u64);
            let chunks: Vec<Vec<u8>> = (0..4).map(|number| chunk(&plan, &spliced, number).unwrap()).collect();
            assert!(chunks.concat() == expected, "{element} {stretch:?}");
            let like = FillPlan::Like { buffer: "x".to_owned(), fill: Box::new(fill.clone()) };
            assert!(made("y", element, len, &like.spliced(secret, stretch)) == expected);
        }
    }
    // Rows of a sparse matrix would not match its columns.
    let rows = runner_types::Structure::CsrRows(runner_types::Sparse { rows: 10, columns: 10, nonzeros: 20 });
    let rows = FillPlan::Structured { structure: rows, seed: 5 };
    assert_eq!(rows.clone().spliced(secret, 2..5), rows);
}
