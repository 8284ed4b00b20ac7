//! Recognises manifests among other TOML files, without validating them.

use toml::{Table, Value};

/// Whether a TOML file defines an experiment. A file that does not parse counts if it mentions one, so that its fault is
/// reported.
pub fn is_manifest(text: &str) -> bool {
    table(text).map_or_else(|| text.contains(EXPERIMENT), |table| table.contains_key(EXPERIMENT))
}

/// Name of a manifest's experiment; `None` if the file does not parse or defines none.
pub fn experiment_name(text: &str) -> Option<String> {
    table(text)?.get(EXPERIMENT)?.get("name").and_then(Value::as_str).map(str::to_owned)
}

const EXPERIMENT: &str = "experiment";

fn table(text: &str) -> Option<Table> {
    text.strip_prefix('\u{feff}').unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_recognised_however_its_table_is_written() {
        let written = [
            "[experiment]\nname = \"a\"",
            "  [ experiment ]\nname = 'a'",
            "experiment.name = \"a\"",
            "experiment = { name = \"a\" }",
        ];
        for text in written.map(str::to_owned).into_iter().chain([format!("\u{feff}{}", written[0])]) {
            assert!(is_manifest(&text), "{text}");
            assert_eq!(experiment_name(&text).as_deref(), Some("a"), "{text}");
        }
        for text in ["[package]\nname = \"a\"", "# [experiment]", "text = \"\"\"\n[experiment]\n\"\"\""] {
            assert!(!is_manifest(text), "{text}");
        }
        assert!(is_manifest("[experiment\nname = 1"));
    }
}
