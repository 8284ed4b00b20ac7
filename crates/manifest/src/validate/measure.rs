//! Validates `[measure]`: regimes, precision, limits.

use super::context::Context;
use crate::raw::{RawMeasure, RawPrecision};
use crate::read::At;
use runner_experiment::MeasureSpec;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_types::{CounterInfo, Regime};

/// Maximum number of processes that may measure a group. Each takes as long as a whole measurement.
const MOST_PROCESSES: u32 = 64;

fn standard() -> MeasureSpec {
    MeasureSpec {
        regimes: vec![Regime::Cold],
        precision: 0.005,
        timeout: 30.0,
        warmup: 2,
        min_samples: 15,
        max_samples: 2000,
        budget: 0.5,
        energy: false,
        processes: None,
        metrics: Vec::new(),
    }
}

pub fn measure(ctx: &mut Context, raw: Option<&At<RawMeasure>>) -> MeasureSpec {
    let mut spec = standard();
    let Some(At { value: raw, span }) = raw else { return spec };
    if let Some(list) = &raw.regimes {
        spec.regimes = regimes(ctx, list);
    }
    if let Some(value) = &raw.precision {
        spec.precision = percentage(ctx, "measure.precision", value, 1.0).unwrap_or(spec.precision);
    }
    if let Some(text) = &raw.timeout {
        spec.timeout = duration(ctx, "timeout", text).unwrap_or(spec.timeout);
    }
    if let Some(text) = &raw.budget {
        spec.budget = duration(ctx, "budget", text).unwrap_or(spec.budget);
    }
    spec.processes = raw.processes.as_ref().and_then(|at| processes(ctx, at));
    spec.energy = raw.energy.as_ref().map_or(spec.energy, |at| at.value);
    if let Some(list) = &raw.metrics {
        spec.metrics = metrics(ctx, list);
    }
    let counts = [&raw.min_samples, &raw.max_samples].into_iter().flatten();
    for count in counts.filter(|count| count.value == 0) {
        ctx.fault(Diagnostic::at(count.span.clone(), "the number of samples must be at least 1"));
    }
    spec.warmup = raw.warmup.as_ref().map_or(spec.warmup, |at| at.value);
    spec.max_samples = raw.max_samples.as_ref().map_or(spec.max_samples, |at| at.value);
    // A manifest for short runs may set only `max_samples`.
    let fewest = spec.min_samples.min(spec.max_samples);
    spec.min_samples = raw.min_samples.as_ref().map_or(fewest, |at| at.value);
    if spec.min_samples > spec.max_samples {
        let place = raw.min_samples.as_ref().map_or(span.clone(), |at| at.span.clone());
        let message = format!("`min_samples` {} is more than `max_samples` {}", spec.min_samples, spec.max_samples);
        ctx.fault(Diagnostic::at(place, message));
    }
    spec
}

/// Number of processes, limited to [`MOST_PROCESSES`].
fn processes(ctx: &mut Context, at: &At<u32>) -> Option<u32> {
    if !(1..=MOST_PROCESSES).contains(&at.value) {
        let message = format!("`measure.processes` must be between 1 and {MOST_PROCESSES}, found {}", at.value);
        ctx.fault(Diagnostic::at(at.span.clone(), message));
        return None;
    }
    Some(at.value)
}

fn regimes(ctx: &mut Context, list: &At<Vec<At<String>>>) -> Vec<Regime> {
    if list.value.is_empty() && !ctx.faulty(&list.span) {
        ctx.fault(Diagnostic::at(list.span.clone(), "`measure.regimes` is empty").hint("write [\"cold\"]"));
    }
    let mut regimes = Vec::new();
    for At { value: name, span } in &list.value {
        match name.parse() {
            Ok(regime) if regimes.contains(&regime) => {
                ctx.fault(Diagnostic::at(span.clone(), format!("the regime `{name}` is listed twice")));
            }
            Ok(regime) => regimes.push(regime),
            Err(_) => {
                let fault =
                    Diagnostic::at(span.clone(), format!("there is no regime `{name}`")).label("no such regime");
                ctx.fault(match nearest(name, Regime::NAMES.iter().copied()) {
                    Some(near) => fault.hint(format!("did you mean `{near}`?")),
                    None => fault.hint(format!("valid regimes: `{}`", Regime::NAMES.join("`, `"))),
                });
            }
        }
    }
    regimes
}

/// Converts a percentage to a fraction, which must be above 0 and below `most`.
pub fn percentage(ctx: &mut Context, key: &str, raw: &At<RawPrecision>, most: f64) -> Option<f64> {
    let fraction = match &raw.value {
        RawPrecision::Fraction(fraction) => Some(*fraction),
        RawPrecision::Percent(text) => {
            text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()).map(|percent| percent / 100.0)
        }
    };
    let Some(fraction) = fraction else {
        let message = format!("`{key}` is not a percentage");
        ctx.fault(Diagnostic::at(raw.span.clone(), message).hint("write \"0.5%\", or the fraction 0.005"));
        return None;
    };
    if !(fraction > 0.0 && fraction < most) {
        let message = format!("`{key}` must be between 0 % and {} %", 100.0 * most);
        ctx.fault(Diagnostic::at(raw.span.clone(), message).hint("\"0.5%\" is half a percent; 0.5 is fifty percent"));
        return None;
    }
    Some(fraction)
}

/// Parses a duration to seconds.
fn duration(ctx: &mut Context, key: &str, raw: &At<String>) -> Option<f64> {
    let text = raw.value.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => Some(1e-6),
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "min" => Some(60.0),
        _ => None,
    };
    let seconds = unit.and_then(|unit| digits.trim().parse::<f64>().ok().map(|number| number * unit));
    let seconds = seconds.filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0);
    if seconds.is_none() {
        let message = format!("`measure.{key}` is not a duration");
        let hint = "write a positive number and a unit: \"30s\", \"500ms\", \"2min\"; at most one day";
        ctx.fault(Diagnostic::at(raw.span.clone(), message).hint(hint));
    }
    seconds
}

/// Names of metrics. Only the syntax is checked: which metrics exist depends on the GPU.
fn metrics(ctx: &mut Context, list: &At<Vec<At<String>>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for metric in &list.value {
        let (name, span) = (metric.value.as_str(), metric.span.clone());
        if CounterInfo::named(name).is_some() {
            let message = format!("`{name}` is always collected");
            ctx.fault(Diagnostic::at(span, message).hint("`metrics` takes Nsight Compute's own names"));
        } else if !is_metric(name) {
            let message = format!("`{name}` is not a metric of Nsight Compute");
            let hint =
                "write its full name with the roll-up: \"dram__bytes_read.sum\"; `ncu --query-metrics` lists them";
            ctx.fault(Diagnostic::at(span, message).hint(hint));
        } else if names.iter().any(|known| known == name) {
            ctx.fault(Diagnostic::at(span, format!("`{name}` is listed twice")));
        } else {
            names.push(name.to_owned());
        }
    }
    names
}

/// Whether a string has the form of a metric: `unit__quantity`, usually followed by roll-ups such as `.sum` or
/// `.avg.pct_of_peak_sustained_active`.
fn is_metric(name: &str) -> bool {
    let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    name.contains("__") && name.split('.').all(word)
}
