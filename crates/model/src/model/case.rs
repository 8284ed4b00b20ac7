//! Cases, their names and their fingerprints.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;

/// Names one cell of the matrix: results are matched by this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CaseKey {
    /// The experiment's name in the manifest.
    pub experiment: String,
    /// The variant's name, after expansion of its own axes.
    pub variant: String,
    /// The values of the shared axes, in the manifest's order.
    pub axes: Vec<(String, Value)>,
}

impl fmt::Display for CaseKey {
    /// Writes the key like `interleaved[n=1024, block=256]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.variant)?;
        write_axes(f, &self.axes)
    }
}

/// Names one group: the axes that are not compared, in the manifest's order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupKey(pub Vec<(String, Value)>);

impl fmt::Display for GroupKey {
    /// Writes the axes of the group, as in `n=1024, type=i32`; nothing if every axis is compared.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

fn write_axes(f: &mut fmt::Formatter<'_>, axes: &[(String, Value)]) -> fmt::Result {
    if axes.is_empty() {
        return Ok(());
    }
    f.write_str("[")?;
    for (i, (name, value)) in axes.iter().enumerate() {
        write!(f, "{}{name}={value}", if i == 0 { "" } else { ", " })?;
    }
    f.write_str("]")
}

/// SHA-256 over source, included files, options, launch, toolkit, driver and device, hexadecimal: a stored result with
/// the same fingerprint still applies, so `--resume` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

/// The parts of a case, hashed one by one, so that a comparison can say what changed. Each is the first 12 hexadecimal
/// digits of a SHA-256 and does not depend on paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CaseHashes {
    /// The sources of its launches, with the project files that they include; for a case without sources, what it does.
    pub source: String,
    /// The compiler options of the manifest.
    pub options: String,
    /// Buffers, their fills and the files that they are read from, and the launches' arguments.
    pub inputs: String,
    /// The hash of the expected result, its tolerance, and the files of expected values.
    pub check: String,
    /// The machine code of its launches, without what tells lines of the source; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How many instructions of each operation the machine code of its kernels has, such as `BAR 2 LDG 4`, and behind that the
    /// list of them if it is not too long: no hash, so that two runs can be compared; `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<String>,
}

/// A point of the matrix for one variant, with its position in the manifest's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Position in the expansion: reports are in this order.
    pub ordinal: u64,
    /// The experiment, the variant and the values of the shared axes.
    pub key: CaseKey,
    /// The cases that it is compared with.
    pub group: GroupKey,
}

/// Returns a value of an axis for display: powers of two from 2^16 on are written as such.
pub fn axis_value(value: &Value) -> String {
    match value {
        Value::Int(n) if *n >= 1 << 16 && n.count_ones() == 1 => format!("2^{}", n.trailing_zeros()),
        other => other.to_string(),
    }
}

/// Writes axes as reports do: `n = 2^20, block = 256`.
pub fn axes_text<'a>(axes: impl IntoIterator<Item = &'a (String, Value)>) -> String {
    let each: Vec<String> = axes.into_iter().map(|(name, v)| format!("{name} = {}", axis_value(v))).collect();
    each.join(", ")
}

/// Writes the name of a case as reports do: `sum[n = 2^20]`.
pub fn case_name(key: &CaseKey) -> String {
    if key.axes.is_empty() { key.variant.clone() } else { format!("{}[{}]", key.variant, axes_text(&key.axes)) }
}
