//! The bodies of a variant, for the schema: exactly one of five, each with the keys that apply to it.

use serde_json::{Map, Value, json};

/// Keys of a launch that do not apply to a host function.
const OF_LAUNCHES: [&str; 14] = [
    "grid",
    "block",
    "shared",
    "cooperative",
    "repeat",
    "stream",
    "cluster",
    "overlap",
    "priority",
    "carveout",
    "persist",
    "max_registers",
    "relocatable",
    "pending_launches",
];

/// Keys of a launch that also apply to a host function.
const OF_SOURCES: [&str; 6] = ["source", "args", "defines", "options", "include_paths", "debug"];

/// The alternatives of a variant, one for each body.
pub fn bodies() -> Value {
    let bodies = ["kernel", "launch", "builtin", "cpu", "host"];
    let one_of = |required: &[&str], refused: &[&[&str]]| {
        let others = bodies.iter().filter(|body| !required.contains(body));
        let keys = others.chain(refused.iter().copied().flatten());
        let refused: Map<String, Value> = keys.map(|key| ((*key).to_owned(), Value::Bool(false))).collect();
        json!({ "required": required, "properties": refused })
    };
    let mut sequence = one_of(&["launch"], &[&["libraries"]]);
    // An entry of a sequence inherits what it leaves out from the variant, including the kernel.
    if let Some(refused) = sequence["properties"].as_object_mut() {
        refused.remove("kernel");
    }
    json!([
        one_of(&["kernel", "source", "grid", "block"], &[&["libraries"]]),
        sequence,
        one_of(&["builtin"], &[&OF_LAUNCHES, &OF_SOURCES, &["libraries"]]),
        one_of(&["cpu"], &[&OF_LAUNCHES, &OF_SOURCES, &["libraries"]]),
        one_of(&["host", "source"], &[&OF_LAUNCHES]),
    ])
}
