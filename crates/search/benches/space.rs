//! Time to compile and sample a sparse space, and to propose points after many evaluations.

#![expect(clippy::expect_used, reason = "a benchmark panics to fail")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use search::history::{History, Outcome};
use search::random::Random;
use search::space::{Constraint, Expression, Parameter, Space, Value};
use search::strategy::named;

/// Points drawn per iteration.
const DRAWN: u64 = 100_000;
/// Number of evaluations known to the strategy.
const KNOWN: u64 = 10_000;

/// Ten parameters with eight values each: 10,554 of the 8¹⁰ (10⁹) combinations satisfy the constraints.
fn sparse() -> Space {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let constraints = ["a * b * c * d == 128", "e * f == a * 2", "g + h == b + c", "i * j <= 8 * d", "max(e, g) >= f"];
    let constraints: Vec<Constraint> = constraints
        .iter()
        .map(|text| Constraint::Expression(Expression::parse(text, &names).expect("the constraint is an expression")))
        .collect();
    let values = [1, 2, 4, 8, 16, 32, 64, 128].map(Value::Int).to_vec();
    let parameters = names.map(|name| Parameter::new(name, values.clone())).to_vec();
    Space::new(parameters, &constraints).expect("the space is not empty")
}

/// Five parameters with sixteen values each: a million points.
fn large() -> Space {
    let values: Vec<Value> = (1..=16).map(Value::Int).collect();
    let parameters = ["a", "b", "c", "d", "e"].map(|name| Parameter::new(name, values.clone())).to_vec();
    Space::new(parameters, &[]).expect("the space is not empty")
}

fn space(c: &mut Criterion) {
    let space = sparse();
    let mut group = c.benchmark_group(format!("a space with {} of 8^10 points", space.len()));
    group.bench_function("compile", |b| b.iter(sparse));
    group.throughput(Throughput::Elements(DRAWN));
    group.bench_function("sample", |b| {
        let (mut random, mut point) = (Random::new(1), vec![0; space.parameters().len()]);
        b.iter(|| {
            for _ in 0..DRAWN {
                space.write_point(random.below(space.len()), &mut point);
                black_box(&point);
            }
        });
    });
    group.finish();
}

fn proposals(c: &mut Criterion) {
    let space = large();
    let mut group = c.benchmark_group(format!("a proposal after {KNOWN} evaluations of 16^5"));
    group.sample_size(10);
    for name in ["random", "genetic", "annealing", "portfolio"] {
        let mut random = Random::new(1);
        let mut history = History::default();
        while (history.len() as u64) < KNOWN {
            let point = random.below(space.len());
            let sum: u32 = space.point(point).iter().map(|&value| u32::from(value)).sum();
            history.finish(point, Outcome::Value(f64::from(sum) + random.unit()));
        }
        let mut strategy = named(name).expect("the name is in the list");
        group.bench_function(name, |b| {
            b.iter_batched(
                || history.clone(),
                |history| black_box(strategy.propose(&space, &history, &mut random)),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, space, proposals);
criterion_main!(benches);
