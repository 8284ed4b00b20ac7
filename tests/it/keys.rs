//! The page of manifest keys is generated from the JSON schema, which is generated from the types that the keys are
//! parsed into.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use runner_lang::format::thousands;
use runner_types::{CompileSettings, LaunchSettings};
use serde_json::Value;

use fixture::snapshot;

const HEAD: &str = "# Keys of the manifest

All tables and keys, with the descriptions that an editor shows through the JSON Schema. [The manifest](manifest.md)
explains how they work together, with examples.
";

/// Definition of the keys that every variant and every `launch` entry has.
const LAUNCH: &str = "RawLaunch";

/// Range and default of a launch key that is a number or a switch.
fn range(key: &str) -> String {
    let settings = LaunchSettings::<i64>::ALL.iter().chain(CompileSettings::<i64>::ALL);
    let Some(setting) = settings.into_iter().find(|setting| setting.name == key) else {
        return String::new();
    };
    let bounds = setting.bounds.filter(|(least, most)| *least >= 0 && *most < i64::MAX);
    let shown = |bound: i64| thousands(bound.cast_unsigned());
    let bounds = bounds.map(|(least, most)| format!(" From {} to {}.", shown(least), shown(most))).unwrap_or_default();
    format!("{bounds} By default {}.", setting.default)
}

struct Schema(Value);

impl Schema {
    /// Name and content of the definition that a schema refers to; without a reference, the schema itself.
    fn resolve<'s>(&'s self, schema: &'s Value) -> (&'s str, &'s Value) {
        let target = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        let name = target.and_then(|target| target.rsplit('/').next());
        name.map_or(("", schema), |name| (name, &self.0["definitions"][name]))
    }

    /// The kind of value that a key takes, in the words of the manifest page.
    fn kind(&self, schema: &Value) -> String {
        let (name, schema) = self.resolve(schema);
        match name {
            "Literal" => return "value".to_owned(),
            "Expression" => return "expression".to_owned(),
            "Template" => return "template".to_owned(),
            "TemplateOrNumber" => return "template, number or bool".to_owned(),
            // Its schema also allows a list of arguments, for structs.
            "Argument" => return "argument".to_owned(),
            _ => {}
        }
        let words = |list: &Value, word: &dyn Fn(&Value) -> String| {
            let mut words: Vec<String> = list.as_array().unwrap().iter().map(word).collect();
            words.dedup();
            // Shortens "A or B or list of A or B" to "A or B or a list of these".
            for at in 1..words.len() {
                if words[at - 1].contains(" or ") && words[at] == format!("list of {}", words[at - 1]) {
                    "a list of these".clone_into(&mut words[at]);
                }
            }
            words.join(" or ")
        };
        let text = |value: &Value| format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        if schema.get("properties").is_some() {
            return "table".to_owned();
        }
        if let Some(value) = schema.get("const") {
            return text(value);
        }
        if let Some(values) = schema.get("enum") {
            return words(values, &text);
        }
        if let Some(choice) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            return words(choice, &|choice| self.kind(choice));
        }
        let one = |kind: &str| match kind {
            "array" => format!("list of {}", self.kind(&schema["items"])),
            "object" if schema["additionalProperties"].is_object() => {
                format!("table of {}", self.kind(&schema["additionalProperties"]))
            }
            "object" => "table".to_owned(),
            "string" => "text".to_owned(),
            "boolean" => "bool".to_owned(),
            other => other.to_owned(),
        };
        schema["type"].as_str().map_or_else(|| words(&schema["type"], &|kind| one(kind.as_str().unwrap())), one)
    }

    /// The definitions of tables that a key takes, each with the text before and after the key's name in its heading.
    ///
    /// A definition that refers to itself, through those in `within`, is followed once.
    fn tables<'s>(
        &'s self,
        schema: &'s Value,
        form: (&'static str, &'static str),
        within: &[&'s str],
    ) -> Vec<(&'s str, (&'static str, &'static str))> {
        let (name, schema) = self.resolve(schema);
        if !name.is_empty() && within.contains(&name) {
            return Vec::new();
        }
        let within = [within, &[name]].concat();
        if schema.get("properties").is_some() {
            return vec![(name, form)];
        }
        let choices = ["anyOf", "oneOf"].iter().filter_map(|key| schema[key].as_array()).flatten();
        let inner = choices.map(|choice| (choice, form));
        let items = schema.get("items").map(|items| (items, ("[[", "]]")));
        let named = schema.get("additionalProperties").filter(|named| named.is_object());
        let named = named.map(|named| (named, ("[", ".NAME]")));
        inner.chain(items).chain(named).flat_map(|(inner, form)| self.tables(inner, form, &within)).collect()
    }

    /// The page: one section per table, in the order in which tables are first named.
    fn page(&self) -> String {
        let mut page = HEAD.to_owned();
        let mut seen = BTreeSet::new();
        let mut left = VecDeque::from([("", "A manifest".to_owned())]);
        while let Some((name, heading)) = left.pop_front() {
            let table = if name.is_empty() { &self.0 } else { &self.0["definitions"][name] };
            let _ = write!(page, "\n## {heading}\n\n");
            let required: Vec<&Value> = table["required"].as_array().into_iter().flatten().collect();
            let launch = &self.0["definitions"][LAUNCH]["properties"];
            let is_own = |key: &str, about: &Value| name == LAUNCH || launch.get(key) != Some(about);
            let keys = table["properties"].as_object().unwrap();
            for (key, about) in keys.iter().filter(|(key, about)| is_own(key, about)) {
                let is_required = if required.iter().any(|name| *name == key) { " Required." } else { "" };
                let meaning =
                    about["description"].as_str().unwrap_or_else(|| panic!("{heading}: {key} has no description"));
                let meaning = meaning.replace('\n', " ");
                let range = if name == LAUNCH { range(key) } else { String::new() };
                let _ = writeln!(page, "- `{key}` ({}): {meaning}{range}{is_required}", self.kind(about));
                for (inner, (before, behind)) in self.tables(about, ("[", "]"), &[]) {
                    let heading = match name {
                        "" => format!("`{before}{key}{behind}`"),
                        _ => format!("`{key}` of {}", heading.split(" of ").last().unwrap()),
                    };
                    if seen.insert(inner) {
                        left.push_back((inner, heading));
                    }
                }
            }
            if keys.iter().any(|(key, about)| !is_own(key, about)) {
                page += "\nIt also takes the keys of a launch, those of [`[defaults]`](#defaults).\n";
            }
        }
        page
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema() -> Schema {
    Schema(serde_json::from_str(&fs::read_to_string(root().join("schema/experiment.schema.json")).unwrap()).unwrap())
}

#[test]
fn the_page_of_keys_is_the_schema_of_manifests() {
    snapshot::assert_is(&schema().page(), &root().join("docs/reference/keys.md"));
}
