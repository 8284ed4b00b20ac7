//! Converts lines of version 1: fields had other names, and notes were sentences.

use serde_json::{Map, Value, json};

/// Field names of version 1, and their new names.
const RENAMED: [(&str, &str); 4] =
    [("aside", "discarded"), ("twin", "control"), ("held_back", "throttled_by"), ("witness", "reference_clock")];

/// The line with the fields of version 2.
pub(super) fn upgrade(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(upgrade).collect()),
        Value::Object(fields) => Value::Object(object(fields)),
        other => other,
    }
}

fn object(fields: Map<String, Value>) -> Map<String, Value> {
    let is_note = fields.get("event").is_some_and(|event| event == "case_note");
    let each = fields.into_iter().map(|(name, value)| match (name.as_str(), value) {
        ("notes", Value::Array(notes)) => (name, notes.iter().map(note).collect()),
        ("text", Value::String(text)) if is_note => ("note".to_owned(), note(&Value::String(text))),
        (_, value) => {
            let renamed = RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| (*new).to_owned());
            (renamed.unwrap_or(name), upgrade(value))
        }
    });
    each.collect()
}

/// A sentence as data; as text if its words are unknown.
fn note(sentence: &Value) -> Value {
    let text = sentence.as_str().unwrap_or_default();
    known(text).unwrap_or_else(|| json!({ "text": text }))
}

fn known(text: &str) -> Option<Value> {
    if let Some(lines) = text.strip_prefix("the kernel printed ").and_then(|rest| rest.split_once(' ')) {
        return matches!(lines.1, "line, kept in the journal" | "lines, kept in the journal")
            .then_some(json!({ "printed": { "lines": lines.0.parse::<u64>().ok()? } }));
    }
    if text == "the journal holds no usable samples of it" {
        return Some(json!("no_samples"));
    }
    if let Some(why) = text.strip_prefix("no hardware counters: under the profiler it ended as ") {
        return Some(json!({ "failed_under_profiler": { "outcome": why } }));
    }
    if let Some(why) = text.strip_prefix("no hardware counters: ") {
        return Some(json!({ "no_counters": { "why": why } }));
    }
    if let Some(rest) = text.strip_prefix('`') {
        let end =
            "` waits for the work that it queues: its launches are not gated, so that launch latency is in its times";
        return rest.strip_suffix(end).map(|function| json!({ "not_gated": { "function": function } }));
    }
    let (regime, text) = text.split_once(": ")?;
    if !["cold", "warm", "graph", "rotate", "host"].contains(&regime) {
        return None;
    }
    of_samples(regime, text)
}

fn of_samples(regime: &str, text: &str) -> Option<Value> {
    if let Some(rest) = text.strip_prefix("its samples grew ") {
        let (drift, way) = rest.strip_suffix(" from first to last")?.rsplit_once(' ')?;
        let sign = if way == "slower" { 1.0 } else { -1.0 };
        return Some(json!({ "trend": { "regime": regime, "drift": sign * percent(drift)? } }));
    }
    if let Some(rest) = text.strip_prefix("its samples fall into two groups, ") {
        let (share, slower) = rest.strip_suffix(" above the others")?.split_once(" of them ")?;
        return Some(json!({ "bimodal": { "regime": regime, "share": percent(share)?, "slower": percent(slower)? } }));
    }
    let rest = text.strip_prefix("neighbouring samples resemble each other (correlation ")?;
    let (correlation, half) = rest.split_once("), so the interval is rather ± ")?;
    let correlation: f64 = correlation.parse().ok()?;
    Some(json!({ "correlated": { "regime": regime, "correlation": correlation, "half_width": percent(half)? } }))
}

/// `7.5 %` as a fraction: read with its exponent, so that no digit is lost to a division.
fn percent(text: &str) -> Option<f64> {
    format!("{}e-2", text.strip_suffix(" %")?).parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::upgrade;

    #[test]
    fn sentences_become_data_and_unknown_ones_stay_text() {
        let notes = json!({ "notes": [
            "cold: its samples grew 11.4 % faster from first to last",
            "warm: its samples fall into two groups, 70.8 % of them 1.8 % above the others",
            "cold: neighbouring samples resemble each other (correlation 0.62), so the interval is rather ± 1.4 %",
            "the kernel printed 1 line, kept in the journal",
            "kernel `k`: reads what nobody wrote",
        ]});
        let expected = json!({ "notes": [
            { "trend": { "regime": "cold", "drift": -0.114 } },
            { "bimodal": { "regime": "warm", "share": 0.708, "slower": 0.018 } },
            { "correlated": { "regime": "cold", "correlation": 0.62, "half_width": 0.014 } },
            { "printed": { "lines": 1 } },
            { "text": "kernel `k`: reads what nobody wrote" },
        ]});
        assert_eq!(upgrade(notes), expected);
    }

    #[test]
    fn fields_have_their_new_names_wherever_they_are() {
        let old = json!({ "event": "case_measured", "measurement": { "twin": [], "aside": [1], "rounds": [] } });
        let new = json!({ "event": "case_measured", "measurement": { "control": [], "discarded": [1], "rounds": [] } });
        assert_eq!(upgrade(old), new);
        let event = upgrade(json!({ "event": "case_note", "text": "the kernel printed 2 lines, kept in the journal" }));
        assert_eq!(event, json!({ "event": "case_note", "note": { "printed": { "lines": 2 } } }));
    }
}
