//! Time to plan a matrix of a million cells, and to evaluate one expression.

#![expect(clippy::unwrap_used, reason = "a benchmark panics to fail")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use runner_experiment::Manifest;
use runner_lang::{Program, Scope};
use runner_plan::{self, PlanOptions, Shards};
use runner_types::{BackendKind, SourceText, Value};

/// 25 × 10 × 25 × 2 × 5 points and 16 variants: a million cells (the maximum), with rules and bindings like a real
/// experiment.
fn million() -> Manifest {
    let variant = r#"
[[variant]]
name     = "u{u}v{v}"
axes     = { u = [1, 2, 3, 4], v = [1, 2, 3, 4] }
requires = "n % (u * block) == 0 && blocks < 2 ** 30"
let      = { blocks = "ceil_div(n, u * block)" }
source   = "k.cu"
kernel   = "t<{type}, {u}>"
grid     = ["blocks"]
block    = ["block"]
args     = ["input", "u32(n)"]
"#;
    let text = format!(
        r#"
[experiment]
name  = "million"
title = "A million cells"
compare = ["layout"]
[axes]
n      = {{ range = [1024, 25600, 1024] }}
m      = {{ range = [1, 10, 1] }}
block  = {{ range = [32, 800, 32] }}
type   = ["i32", "f32"]
layout = {{ range = [1, 5, 1] }}
[matrix]
exclude = [
    {{ when = 'type == "f32" && n > 2**13 && m == 3', why = "rounding" }},
    {{ when = 'm * block > 8000', why = "too wide" }},
]
[let]
blocks = "ceil_div(n, block)"
[buffers.input]
type = "{{type}}"
len  = "n * m"
fill = 0
{variant}"#
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/plan/tests/it/manifests/million.toml").into();
    runner_manifest::parse(&Arc::new(SourceText { path, text })).unwrap()
}

fn matrix(c: &mut Criterion) {
    let manifest = million();
    let whole = PlanOptions::for_backend(BackendKind::Cuda);
    let narrowed = PlanOptions { filter: Some("blocks > 2 && variant != \"u1v1\"".to_owned()), ..whole.clone() };
    let plan = runner_plan::expand(&manifest, &whole).unwrap();
    assert_eq!(plan.cells().len(), 1_000_000);
    let mut group = c.benchmark_group("million");
    group.sample_size(10);
    group.bench_function("expand", |b| {
        b.iter(|| runner_plan::expand(&manifest, black_box(&whole)).unwrap().group_count());
    });
    group.bench_function("expand_filtered", |b| {
        b.iter(|| runner_plan::expand(&manifest, black_box(&narrowed)).unwrap().group_count());
    });
    group.bench_function("resolve_and_summarise", |b| {
        b.iter(|| runner_plan::summarise(&manifest, black_box(&plan)).ready);
    });
    group.bench_function("10000 shards", |b| {
        b.iter(|| Shards::plan(&manifest, black_box(&whole)).unwrap().divide(10_000).groups.len());
    });
    group.finish();
}

fn expression(c: &mut Criterion) {
    let scope: Scope = [("n", 1 << 24), ("block", 256), ("u", 4), ("m", 3)]
        .map(|(name, v)| (name, Value::Int(v)))
        .into_iter()
        .collect();
    let program = Program::parse("n % (u * block) == 0 && ceil_div(n, u * block) < 2 ** 30").unwrap();
    c.bench_function("expression/evaluate", |b| b.iter(|| black_box(&program).evaluate_bool(&scope).unwrap()));
    c.bench_function("expression/parse", |b| b.iter(|| Program::parse(black_box("ceil_div(n, u * block)")).unwrap()));
}

criterion_group!(benches, matrix, expression);
criterion_main!(benches);
