//! The best configuration of each size, as JSON and as a C++ header that selects one.

use std::fmt::Write as _;
use std::path::Path;

use search::space::Value;
use serde::Serialize;

use crate::error::TuneError;
use crate::objective::Objective;
use crate::values::{Values, configuration, value_of};
use runner_experiment::Manifest;
use runner_files::atomic;
use runner_results::journal::{RECORDS_FILE, read_records};

/// The configurations measured at one size.
struct Size {
    /// The axes that the configurations share.
    axes: Values,
    results: Vec<(Values, f64)>,
}

/// Content of `dispatch.json`.
#[derive(Serialize)]
struct Table<'a> {
    experiment: &'a str,
    device: &'a str,
    objective: &'a str,
    /// Unit of the values; empty for counts.
    unit: &'a str,
    /// Configuration with the best geometric mean over all sizes; `null` if none is correct at every size.
    best_for_all: Option<Configuration<'a>>,
    sizes: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    size: Configuration<'a>,
    best: Configuration<'a>,
    /// Objective of `best`.
    value: f64,
    /// Objective of `best_for_all` at this size, as a multiple of `value`.
    best_for_all: Option<f64>,
}

/// Parameter values, serialized as an object.
#[derive(Clone, Copy)]
struct Configuration<'a>(&'a Values);

impl Serialize for Configuration<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Writes `dispatch.json` and `dispatch.h` from the records of the finalists at all sizes, and tells the user.
pub fn write_table(
    folder: &Path,
    manifest: &Manifest,
    objective: &Objective,
    say: &mut dyn FnMut(&str),
) -> Result<(), TuneError> {
    let failed = |error: &dyn std::fmt::Display| TuneError::Environment(error.to_string());
    let records = read_records(&folder.join(RECORDS_FILE)).map_err(|error| failed(&error))?;
    let objective = &objective.common_to(&records.cases);
    let first = manifest.measure.regimes.first();
    let mut sizes: Vec<Size> = Vec::new();
    for record in &records.cases {
        if record.result.as_ref().is_some_and(|result| Some(&result.regime) != first) {
            continue;
        }
        let Some(value) = objective.value_of(record) else { continue };
        let axes: Values = record.case.group.0.iter().map(|(name, value)| (name.clone(), value_of(value))).collect();
        let place = sizes.iter().position(|size| size.axes == axes).unwrap_or(sizes.len());
        if place == sizes.len() {
            sizes.push(Size { axes, results: Vec::new() });
        }
        sizes[place].results.push((configuration(&record.case), value));
    }
    let Some(first) = sizes.first() else { return Ok(()) };
    let for_all = first.results.iter().filter_map(|(values, _)| Some((mean_logarithm(values, &sizes)?, values)));
    let for_all = for_all.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, values)| values);
    let rows: Vec<Row<'_>> = sizes
        .iter()
        .filter_map(|size| {
            let (best, value) = size.results.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
            let other = for_all.and_then(|values| size.value(values)).map(|other| other / value);
            Some(Row { size: Configuration(&size.axes), best: Configuration(best), value: *value, best_for_all: other })
        })
        .collect();
    let table = Table {
        experiment: &manifest.name,
        device: &records.environment.device.name,
        objective: objective.name(),
        unit: objective.unit(),
        best_for_all: for_all.map(Configuration),
        sizes: rows,
    };
    let json = serde_json::to_string_pretty(&table).map_err(|error| failed(&error))?;
    let write =
        |name: &str, text: &str| atomic::write(&folder.join(name), text.as_bytes()).map_err(|error| failed(&error));
    write("dispatch.json", &(json + "\n"))?;
    write("dispatch.h", &header_of(&table))?;
    runner_report::write_search_sums(folder).map_err(|error| failed(&error))?;
    say(&format!("which configuration for which size: {}", folder.join("dispatch.h").display()));
    Ok(())
}

impl Size {
    /// Objective of a configuration at this size.
    fn value(&self, values: &Values) -> Option<f64> {
        self.results.iter().find(|(known, _)| known == values).map(|(_, value)| *value)
    }
}

/// Mean logarithm of a configuration's objectives; `None` unless it is correct at every size.
fn mean_logarithm(values: &Values, sizes: &[Size]) -> Option<f64> {
    let logarithms: Option<Vec<f64>> = sizes.iter().map(|size| size.value(values).map(f64::ln)).collect();
    Some(logarithms?.iter().sum::<f64>() / sizes.len() as f64)
}

/// The table as a C++17 header. `choose` selects the size whose numbers have the closest ratios; strings must be equal.
fn header_of(table: &Table<'_>) -> String {
    let (Some(first), name) = (table.sizes.first(), identifier(table.experiment)) else { return String::new() };
    let fields = |values: &Values| -> String {
        values.iter().fold(String::new(), |text, (name, value)| text + "    " + kind(value) + name + ";\n")
    };
    let list = |values: &Values| values.iter().map(|(_, value)| literal(value)).collect::<Vec<_>>().join(", ");
    let axes = first.size.0;
    let mut text = format!(
        "// The configurations of `{}` with the least {} on {}, by size. Generated by `runner tune`.\n#pragma once\n\n\
         #include <cmath>\n#include <string_view>\n\nnamespace {name} {{\n\nstruct Configuration {{\n{}}};\n\n",
        table.experiment,
        table.objective,
        table.device,
        fields(first.best.0)
    );
    if let Some(Configuration(values)) = table.best_for_all {
        let _ = writeln!(
            text,
            "// The best for all sizes.\nconstexpr Configuration best_for_all = {{{}}};\n",
            list(values)
        );
    }
    let _ = writeln!(
        text,
        "struct Entry {{\n{}    Configuration best;\n}};\n\nconstexpr Entry entries[] = {{",
        fields(axes)
    );
    for row in &table.sizes {
        let _ = writeln!(text, "    {{{}, {{{}}}}},", list(row.size.0), list(row.best.0));
    }
    let parameters: Vec<String> = axes.iter().map(|(name, value)| kind(value).to_owned() + name).collect();
    let _ = writeln!(
        text,
        "}};\n\n// Returns the best configuration of the nearest size that was measured.\n\
         inline const Configuration& choose({}) {{\n    const Entry* nearest = entries;\n    double least = HUGE_VAL;\n    \
         for (const Entry& entry : entries) {{\n        double distance = 0;",
        parameters.join(", ")
    );
    for (name, value) in axes {
        let line = match value {
            Value::Int(_) | Value::Real(_) => format!("std::fabs(std::log(double({name}) / double(entry.{name})))"),
            Value::Bool(_) => format!("{name} == entry.{name} ? 0 : 1e9"),
            Value::Text(_) => format!("std::string_view({name}) == entry.{name} ? 0 : 1e9"),
        };
        let _ = writeln!(text, "        distance += {line};");
    }
    text + "        if (distance < least) {\n            least = distance;\n            nearest = &entry;\n        }\n    }\n    \
            return nearest->best;\n}\n\n}\n"
}

/// C++ type of a value, with a trailing space so that a name can follow.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Int(_) => "long long ",
        Value::Real(_) => "double ",
        Value::Bool(_) => "bool ",
        Value::Text(_) => "const char* ",
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        other => other.to_string(),
    }
}

/// Converts an experiment's name to a C++ identifier.
fn identifier(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_digit()) { format!("n{plain}") } else { plain }
}
