//! The JSON Schema of the manifest, generated from the raw types.
//!
//! The generated schema is then adapted to TOML, which has no null, and made to reject empty strings.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

use super::raw::RawManifest;

/// The schema as stored in the repository: JSON with two-space indentation and a final newline.
pub fn schema() -> String {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<RawManifest>();
    RecursiveTransform(without_null).transform(&mut schema);
    RecursiveTransform(never_empty).transform(&mut schema);
    format!("{:#}\n", schema.as_value())
}

/// Rejects empty strings. A value that also accepts numbers, such as a macro's, may be empty.
fn never_empty(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let narrowed = ["enum", "pattern", "minLength"].iter().any(|key| object.contains_key(*key));
    if object.get("type").is_some_and(|kind| kind == "string") && !narrowed {
        object.insert("minLength".to_owned(), Value::from(1));
    }
}

/// Removes null, which TOML does not have: an optional key may be absent, but not null.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        object.remove("anyOf");
        // In draft 7, keywords next to `$ref` are ignored.
        if only.contains_key("$ref") && !object.is_empty() {
            object.insert("allOf".to_owned(), Value::Array(vec![Value::Object(only)]));
        } else {
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}
