//! Translates the profiler's metrics to the counter vocabulary, for single launches and for whole bodies.

use std::collections::BTreeMap;

use runner_types::{CounterInfo, CounterKind, Counters, VOCABULARY, counter_name};

/// Profiler metrics needed for all hardware counters of the vocabulary.
pub fn of_vocabulary() -> impl Iterator<Item = &'static str> {
    VOCABULARY.iter().flat_map(|info| info.nsight).copied()
}

/// Counters of one launch. Metrics that the vocabulary does not use keep their names.
pub fn of_launch(values: &BTreeMap<String, f64>) -> Counters {
    let mut counters = Counters::default();
    for info in VOCABULARY.iter().filter(|info| !info.nsight.is_empty()) {
        let parts: Option<Vec<f64>> = info.nsight.iter().map(|name| values.get(*name).copied()).collect();
        if let Some(parts) = parts {
            counters.0.insert(info.name.into(), parts.iter().sum());
        }
    }
    counters.form_ratios();
    let others = values.iter().filter(|(name, _)| !of_vocabulary().any(|known| known == *name));
    counters.0.extend(others.map(|(name, value)| (counter_name(name), *value)));
    counters
}

/// Counters of a whole body: counts are summed, ratios are formed from the sums, and averages are weighted. Other
/// metrics ending in `.sum`, `.max` and `.min` are combined accordingly. The rest have no defined value over several
/// launches and are only reported per launch.
pub fn of_body(launches: &[Counters]) -> Counters {
    if let [only] = launches {
        return only.clone();
    }
    let mut whole = Counters::default();
    for name in launches.first().into_iter().flat_map(|first| first.0.keys()) {
        let values: Option<Vec<f64>> = launches.iter().map(|launch| launch.get(name)).collect();
        let value = values.and_then(|values| match CounterInfo::named(name).map(|info| info.kind) {
            Some(CounterKind::Count) => Some(values.iter().sum()),
            Some(CounterKind::Weighted(by)) => average(&values, launches, by),
            Some(CounterKind::Formed(_)) => None,
            None => other(name, &values),
        });
        whole.0.extend(value.map(|value| (name.clone(), value)));
    }
    whole.form_ratios();
    whole
}

fn average(values: &[f64], launches: &[Counters], by: &str) -> Option<f64> {
    let weights: Vec<f64> = launches.iter().map(|launch| launch.get(by)).collect::<Option<_>>()?;
    let total: f64 = weights.iter().sum();
    (total > 0.0).then(|| values.iter().zip(&weights).map(|(value, weight)| value * weight).sum::<f64>() / total)
}

fn other(name: &str, values: &[f64]) -> Option<f64> {
    match name.rsplit('.').next() {
        Some("sum") => Some(values.iter().sum()),
        Some("max") => values.iter().copied().reduce(f64::max),
        Some("min") => values.iter().copied().reduce(f64::min),
        _ => None,
    }
}
