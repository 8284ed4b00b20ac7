//! Converts records of version 2: launches, results, ratios and errors had names for their values.

use serde_json::{Map, Value};

/// The fields of a launch, of a result, of a ratio and of an error, in the order that version 3 has.
const LAUNCH: [&str; 7] = ["label", "grid", "block", "shared", "resources", "occupancy", "stream"];
const RESULT: [&str; 8] = ["regime", "time", "samples", "launches", "sets", "working_set", "sm_clock", "discarded"];
const RATIO: [&str; 4] = ["against", "speedup", "reproducible", "noise"];
const ERROR: [&str; 4] = ["abs", "rel", "mean_rel", "ulp"];

/// Numbers that version 2 left out, with the values that they then have.
const LEFT_OUT: [(&str, u32); 5] = [("shared", 0), ("stream", 0), ("launches", 1), ("sets", 1), ("discarded", 0)];

/// What a result had and the line now has.
const OF_LINE: [&str; 4] = ["unit", "each", "against_baseline", "against_previous"];

/// A case's line with the fields of version 3.
pub(super) fn upgrade(line: Value) -> Value {
    let Value::Object(mut line) = line else { return line };
    if let Some(Value::Object(mut result)) = line.remove("result") {
        let lifted = OF_LINE.iter().filter_map(|name| Some(((*name).to_owned(), result.remove(*name)?)));
        line.extend(lifted.collect::<Vec<_>>());
        line.insert("result".to_owned(), in_order(result, &RESULT));
    }
    for name in ["against_baseline", "against_previous"] {
        replace(&mut line, name, &RATIO);
    }
    replace(&mut line, "error", &ERROR);
    if let Some(Value::Array(launches)) = line.get_mut("launches") {
        for launch in launches {
            if let Value::Object(fields) = launch.take() {
                *launch = in_order(fields, &LAUNCH);
            }
        }
    }
    Value::Object(line)
}

fn replace(line: &mut Map<String, Value>, name: &str, order: &[&str]) {
    if let Some(Value::Object(fields)) = line.get_mut(name).map(Value::take) {
        line.insert(name.to_owned(), in_order(fields, order));
    }
}

fn in_order(mut fields: Map<String, Value>, order: &[&str]) -> Value {
    let left_out = |name: &str| LEFT_OUT.iter().find(|(known, _)| *known == name).map(|(_, value)| Value::from(*value));
    let value = |name: &&str| fields.remove(*name).or_else(|| left_out(name)).unwrap_or(Value::Null);
    Value::Array(order.iter().map(value).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::upgrade;

    #[test]
    fn named_values_become_values_in_order() {
        let old = json!({
            "ordinal": 2, "variant": "a", "axes": [1],
            "launches": [{ "label": "k", "grid": [8], "block": [128], "resources": [16, 0, 0, 0, 0, 1024] }],
            "result": {
                "regime": "cold", "time": [3.0, 2.5, 4.0], "samples": 15, "launches": 2,
                "unit": "host_nanoseconds", "each": [[1.0, 0.5, 2.0]],
                "against_baseline": { "against": "b", "speedup": [1.5, 1.0, 2.0], "noise": 0.25 },
                "against_previous": { "against": "c", "speedup": [1.5, 1.0, 2.0], "reproducible": [0.5, 2.5] },
            },
            "error": { "abs": 1.0, "rel": 2.0, "mean_rel": 3.0, "ulp": 4.0 },
        });
        let new = json!({
            "ordinal": 2, "variant": "a", "axes": [1],
            "launches": [["k", [8], [128], 0, [16, 0, 0, 0, 0, 1024], null, 0]],
            "result": ["cold", [3.0, 2.5, 4.0], 15, 2, 1, null, null, 0],
            "unit": "host_nanoseconds",
            "each": [[1.0, 0.5, 2.0]],
            "against_baseline": ["b", [1.5, 1.0, 2.0], null, 0.25],
            "against_previous": ["c", [1.5, 1.0, 2.0], [0.5, 2.5], null],
            "error": [1.0, 2.0, 3.0, 4.0],
        });
        assert_eq!(upgrade(old), new);
    }

    #[test]
    fn a_line_without_measurement_stays_as_it_is() {
        let line = json!({ "ordinal": 0, "variant": "a", "axes": [], "outcome": { "kind": "excluded", "rule": "n" } });
        assert_eq!(upgrade(line.clone()), line);
    }
}
