//! Paths for each case's files: those of `--keep-outputs` and `show`, and its source page in a report's folder.

use std::path::{Path, PathBuf};

use runner_files::file_names::{escaped, shortened};
use runner_report::SOURCE_DIR;
use runner_types::CaseKey;

/// Folder of a case, unique over all cases and experiments. Bytes that are not allowed in a name, or that look like
/// separators, are written as `%` and two hexadecimal digits.
pub fn outputs_of(folder: &Path, key: &CaseKey) -> PathBuf {
    let parts = key.axes.iter().map(|(name, value)| format!("{name}={}", escaped(&value.to_string(), "")));
    let axes = parts.collect::<Vec<_>>().join(",");
    let axes = if axes.is_empty() { axes } else { format!("[{axes}]") };
    folder.join(&key.experiment).join(shortened(format!("{}{axes}", escaped(&key.variant, "=,[]"))))
}

/// Path of a case's source page in a report's folder.
pub fn source_page_of(report: &Path, key: &CaseKey) -> PathBuf {
    let mut name = outputs_of(Path::new(""), key).file_name().unwrap_or_default().to_owned();
    name.push(".html");
    report.join(SOURCE_DIR).join(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use runner_types::Value;

    fn key(experiment: &str, variant: &str, axes: &[(&str, &str)]) -> CaseKey {
        let axes = axes.iter().map(|(name, value)| ((*name).to_owned(), Value::Str((*value).to_owned()))).collect();
        CaseKey { experiment: experiment.to_owned(), variant: variant.to_owned(), axes }
    }

    #[test]
    fn no_two_cases_share_a_folder() {
        let values = ["a/b", "a:b", "a_b", "a%b", "a%2Fb", "a b", "ä", "", ".", "..", "a,b=c", "a]"];
        let mut keys: Vec<CaseKey> = values.iter().map(|value| key("one", "v", &[("mode", value)])).collect();
        keys.extend(values.iter().map(|variant| key("one", variant, &[])));
        keys.push(key("two", "v", &[("mode", "a/b")]));
        keys.push(key("one", "v", &[("a", "1, b=2"), ("b", "3")]));
        keys.push(key("one", "v", &[("a", "1"), ("b", "2, b=3")]));
        keys.push(key("one", "v", &[("a", "1"), ("b", "3")]));
        let folders: BTreeSet<PathBuf> = keys.iter().map(|key| outputs_of(Path::new("out"), key)).collect();
        assert_eq!(folders.len(), keys.len(), "{folders:#?}");
    }

    #[test]
    fn a_folder_is_named_after_its_case_and_inside_that_of_its_experiment() {
        let folder = |variant, axes: &[(&str, &str)]| outputs_of(Path::new("out"), &key("one", variant, axes));
        assert_eq!(folder("tiled[b=32]", &[("n", "8"), ("m", "1.5")]), Path::new("out/one/tiled[b=32][n=8,m=1.5]"));
        assert_eq!(folder("..", &[]), Path::new("out/one/%2E."));
        assert_eq!(folder("v", &[("mode", "a/b")]), Path::new("out/one/v[mode=a%2Fb]"));
    }
}
