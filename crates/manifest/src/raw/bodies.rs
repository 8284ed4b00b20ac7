//! The bodies of a variant, for the schema: exactly one of five, each with the keys that apply to it.

use serde_json::{Map, Value, json};

use super::RawLaunch;
use crate::read::Table as _;

/// Keys of a launch that also apply to a host function: it has arguments and is compiled, but has no grid.
pub const OF_HOST: [&str; 6] = ["source", "args", "defines", "options", "include_paths", "debug"];

/// The alternatives of a variant, one for each body.
pub fn bodies() -> Value {
    let keys = RawLaunch::keys();
    let of_launches: Vec<&str> = keys.iter().copied().filter(|key| *key != "kernel").collect();
    let not_of_host: Vec<&str> = of_launches.iter().copied().filter(|key| !OF_HOST.contains(key)).collect();
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
        one_of(&["builtin"], &[&of_launches, &["libraries"]]),
        one_of(&["cpu"], &[&of_launches, &["libraries"]]),
        one_of(&["host", "source"], &[&not_of_host]),
    ])
}
