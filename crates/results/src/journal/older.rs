//! Records of older versions. Each step converts lines of one version to the next, so that each version is described
//! only once.
//!
//! | version | differs from the next by |
//! | --- | --- |
//! | 1 | names for every value, no checksums, notes as sentences |
//! | 2 | names in launches, results, ratios and errors; the header lists neither hashes nor the cases that ratios refer to |
//! | 3 | no last line |

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A JSON object in an older line.
type Object = Map<String, Value>;

/// Lists that the lines of an older file refer to.
#[derive(Debug)]
pub(super) struct Older {
    version: u32,
    /// Counters of version 1, whose header does not list them.
    counters: Vec<String>,
}

impl Older {
    /// Collects the lists that the lines of a file of this version refer to.
    pub fn new<'a>(version: u32, lines: impl Iterator<Item = &'a str>) -> Self {
        let counters = if version == 1 { counters(lines) } else { Vec::new() };
        Self { version, counters }
    }

    /// Converts the header line to the current version.
    pub fn header(&self, header: Value) -> Value {
        let mut header = object(header);
        if self.version == 1 {
            header.insert("columns".to_owned(), json!({ "counters": self.counters }));
            let clock = header.get_mut("environment").and_then(|found| found.pointer_mut("/machine/clock/calibrated"));
            if let Some(clock) = clock.and_then(Value::as_object_mut)
                && let Some(name) = clock.remove("witness")
            {
                clock.insert("reference_clock".to_owned(), name);
            }
        }
        if self.version <= 2 {
            let mut columns = object(take(&mut header, "columns"));
            for list in ["against", "digests"] {
                columns.insert(list.to_owned(), json!([]));
            }
            header.insert("columns".to_owned(), Value::Object(columns));
        }
        Value::Object(header)
    }

    /// Converts a case's line to the current version.
    pub fn case(&self, mut line: Value) -> Value {
        if self.version == 1 {
            line = self.to_second(line);
        }
        if self.version <= 2 {
            line = to_third(line);
        }
        line
    }

    fn to_second(&self, line: Value) -> Value {
        let mut line = object(line);
        line.remove("line");
        let mut case = object(take(&mut line, "case"));
        let mut key = object(take(&mut case, "key"));
        for name in ["experiment", "variant", "axes"] {
            line.insert(name.to_owned(), take(&mut key, name));
        }
        for name in ["ordinal", "group"] {
            line.insert(name.to_owned(), take(&mut case, name));
        }
        each(&mut line, "launches", launch_to_second);
        change(&mut line, "work", |work| listed(work, &["bytes", "flops"]));
        change(&mut line, "result", result_to_second);
        let counts = |counters| {
            let mut counters = object(counters);
            self.counters.iter().map(|name| take(&mut counters, name)).collect()
        };
        change(&mut line, "counters", counts);
        each(&mut line, "each_counters", counts);
        each(&mut line, "notes", |sentence| json!({ "text": sentence }));
        Value::Object(line)
    }
}

fn counters<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names = BTreeSet::new();
    for mut line in lines.filter_map(|line| serde_json::from_str::<Object>(line).ok()) {
        let launches = line.remove("each_counters");
        let all = launches.into_iter().flat_map(|all| all.as_array().cloned().unwrap_or_default());
        let all = line.remove("counters").into_iter().chain(all);
        names.extend(all.flat_map(object).map(|(name, _)| name));
    }
    names.into_iter().collect()
}

fn launch_to_second(launch: Value) -> Value {
    let mut launch = object(launch);
    for dimensions in ["grid", "block"] {
        change(&mut launch, dimensions, |extent| listed(extent, &["x", "y", "z"]));
    }
    let resources = ["registers", "shared_static", "local", "spill_stores", "spill_loads", "max_threads"];
    change(&mut launch, "resources", |stated| {
        let cluster = stated.get("cluster").filter(|cluster| !cluster.is_null()).cloned();
        let mut list = listed(stated, &resources);
        if let (Value::Array(list), Some(cluster)) = (&mut list, cluster) {
            list.push(cluster);
        }
        list
    });
    change(&mut launch, "occupancy", |occupancy| listed(occupancy, &["blocks_per_sm", "fraction", "limiter"]));
    Value::Object(launch)
}

fn result_to_second(result: Value) -> Value {
    let mut result = object(result);
    change(&mut result, "time", interval);
    each(&mut result, "each", interval);
    change(&mut result, "sm_clock", |clock| listed(clock, &["median", "least"]));
    for ratio in ["against_baseline", "against_previous"] {
        change(&mut result, ratio, |ratio| {
            let mut ratio = object(ratio);
            change(&mut ratio, "speedup", interval);
            change(&mut ratio, "reproducible", |wider| listed(wider, &["low", "high"]));
            Value::Object(ratio)
        });
    }
    Value::Object(result)
}

fn interval(estimate: Value) -> Value {
    listed(estimate, &["point", "low", "high", "confidence"])
}

fn to_third(line: Value) -> Value {
    let mut line = object(line);
    let launch = ["label", "grid", "block", "shared", "resources", "occupancy", "stream"];
    each(&mut line, "launches", |stated| with_defaults(stated, &launch, &[("shared", 0), ("stream", 0)]));
    change(&mut line, "error", |error| listed(error, &["abs", "rel", "mean_rel", "ulp"]));
    let Some(mut result) = line.remove("result").filter(|result| !result.is_null()).map(object) else {
        return Value::Object(line);
    };
    for ratio in ["against_baseline", "against_previous"] {
        change(&mut result, ratio, |ratio| listed(ratio, &["against", "speedup", "reproducible", "noise"]));
    }
    for name in ["unit", "each", "against_baseline", "against_previous"] {
        if let Some(value) = result.remove(name) {
            line.insert(name.to_owned(), value);
        }
    }
    let names = ["regime", "time", "samples", "launches", "sets", "working_set", "sm_clock", "discarded"];
    let defaults = [("launches", 1), ("sets", 1), ("discarded", 0)];
    line.insert("result".to_owned(), with_defaults(Value::Object(result), &names, &defaults));
    Value::Object(line)
}

/// Members of an object; empty for any other value, which the reader of the line then rejects.
fn object(value: Value) -> Object {
    if let Value::Object(members) = value { members } else { Object::new() }
}

fn take(object: &mut Object, name: &str) -> Value {
    object.remove(name).unwrap_or_default()
}

/// Modifies a member that is present and not null.
fn change(object: &mut Object, name: &str, change: impl FnOnce(Value) -> Value) {
    if let Some(value) = object.get_mut(name).filter(|value| !value.is_null()) {
        *value = change(value.take());
    }
}

fn each(object: &mut Object, name: &str, mut change_element: impl FnMut(Value) -> Value) {
    change(object, name, |list| match list {
        Value::Array(list) => list.into_iter().map(&mut change_element).collect(),
        other => other,
    });
}

/// Members with these names, as a list.
fn listed(value: Value, names: &[&str]) -> Value {
    with_defaults(value, names, &[])
}

fn with_defaults(value: Value, names: &[&str], defaults: &[(&str, u64)]) -> Value {
    let mut members = object(value);
    for (name, default) in defaults {
        members.entry(*name).or_insert_with(|| json!(default));
    }
    names.iter().map(|name| take(&mut members, name)).collect()
}
