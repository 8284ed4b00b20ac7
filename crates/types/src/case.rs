//! Cases: their names, fingerprints and hashes.
//!
//! The key matches results of different runs. The fingerprint says whether a stored result still applies, and the
//! hashes say what changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;

/// Names one cell of the matrix. Results are matched by this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CaseKey {
    pub experiment: String,
    pub variant: String,
    /// Values of the shared axes, in the manifest's order.
    pub axes: Vec<(String, Value)>,
}

impl fmt::Display for CaseKey {
    /// Writes the key like `interleaved[n=1024, block=256]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.variant)?;
        write_axes(f, &self.axes)
    }
}

/// Names one group by the axes that are not compared, in the manifest's order.
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

/// SHA-256 over source, included files, options, launch, toolkit, driver and device, hexadecimal. A stored result with
/// the same fingerprint still applies, so `--resume` keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

/// Hashes of the parts of a case, so that a comparison can say what changed. Each is the first 12 hexadecimal digits of
/// a SHA-256 and does not depend on paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CaseHashes {
    /// Sources of its launches with the project files that they include. For a case without sources, what it does.
    pub source: String,
    pub options: String,
    /// Buffers, their fills and input files, and the launches' arguments.
    pub inputs: String,
    /// Expected result, its tolerance, and the files of expected values.
    pub check: String,
    /// Machine code of its launches without line information; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Instruction counts per operation of the kernels' machine code, such as `BAR 2 LDG 4`, followed by the list of
    /// instructions if it is short. Not a hash, so that two runs can be compared; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<String>,
}

/// A point of the matrix for one variant, with its position in the manifest's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Position in the expansion, which is the order of reports.
    pub ordinal: u64,
    pub key: CaseKey,
    /// Group of cases that it is compared with.
    pub group: GroupKey,
}

/// Writes an axis value for display. Powers of two from 2^16 on are written as such.
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
