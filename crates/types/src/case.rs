//! Cases: their names, fingerprints and hashes.
//!
//! The key matches results of different runs. The fingerprint tells whether a stored result is still current, and the
//! hashes tell what changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;

/// Identifies a cell of the matrix. Results of different runs are matched by this key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CaseKey {
    pub experiment: String,
    pub variant: String,
    /// Values of the shared axes, in the manifest's order.
    pub axes: Vec<(String, Value)>,
}

impl fmt::Display for CaseKey {
    /// Formats the key like `interleaved[n=1024, block=256]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.variant)?;
        write_axes(f, &self.axes)
    }
}

/// Identifies a group by the axes that are not compared, in the manifest's order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupKey(pub Vec<(String, Value)>);

impl fmt::Display for GroupKey {
    /// Formats the axes like `n=1024, type=i32`. Empty if every axis is compared.
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

/// SHA-256 over source, included files, options, launch, toolkit, driver and device, hexadecimal. `--resume` keeps a
/// stored result if its fingerprint is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

/// Hashes of the parts of a case, so that a comparison can tell what changed. Each is the first 12 hexadecimal digits
/// of a SHA-256 and does not depend on paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CaseHashes {
    /// Sources of the launches with the project files that they include. For a case without sources, its body.
    pub source: String,
    pub options: String,
    /// Buffers, their fills and input files, and the launches' arguments.
    pub inputs: String,
    /// Expected result, tolerance and files of expected values.
    pub check: String,
    /// Machine code of the launches without line information; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Opcode counts of the kernels' machine code, such as `BAR 2 LDG 4`, followed by the list of instructions if it is
    /// short. Kept as text so that two runs can be compared; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<String>,
}

/// A cell of the matrix: one variant at one point of the axes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Position in the expanded matrix, which is the order of reports.
    pub ordinal: u64,
    pub key: CaseKey,
    /// Cases with the same group are compared with each other.
    pub group: GroupKey,
}

/// Formats an axis value for display. Powers of two of at least 2^16 are written as powers.
pub fn axis_value(value: &Value) -> String {
    match value {
        Value::Int(n) if *n >= 1 << 16 && n.count_ones() == 1 => format!("2^{}", n.trailing_zeros()),
        other => other.to_string(),
    }
}

/// Formats axes as in reports: `n = 2^20, block = 256`.
pub fn axes_text<'a>(axes: impl IntoIterator<Item = &'a (String, Value)>) -> String {
    let each: Vec<String> = axes.into_iter().map(|(name, v)| format!("{name} = {}", axis_value(v))).collect();
    each.join(", ")
}

/// Formats a case's name as in reports: `sum[n = 2^20]`.
pub fn case_name(key: &CaseKey) -> String {
    if key.axes.is_empty() { key.variant.clone() } else { format!("{}[{}]", key.variant, axes_text(&key.axes)) }
}
