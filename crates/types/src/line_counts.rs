//! Counts per line: of the PTX for the source page, and of the author's sources for records.

use serde::{Deserialize, Serialize};

use super::{CompileUnit, Counters, SourceForm};

/// Counts for a line of PTX, as stored in `lines.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineCounts {
    /// Name in the manifest of the kernel that executed the line.
    pub kernel: String,
    /// 1-based.
    pub ptx_line: u32,
    /// Path of the author's source. Code inlined from other files is attributed to the author's call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Nonzero counts.
    pub counters: Counters,
    /// For a loop's back edge: iteration counts, each with the number of warps that ran that many iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<(u64, u64)>,
    /// Bank conflicts of loads and of stores if each access covered the surrounding 8 or 16 bytes, as when a compiler
    /// merges accesses.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub wide: [[u64; 2]; 2],
}

impl LineCounts {
    /// File in a case's folder with the counts of all lines.
    pub const FILE: &str = "lines.json";

    /// Path and line that the counts belong to, if known. For a PTX source this is the PTX itself, unless it names
    /// lines of one of the author's files.
    pub fn place<'a>(&'a self, units: &[&'a CompileUnit]) -> Option<(&'a str, u32)> {
        let named = self.file.as_deref().zip(self.line);
        let is_own = |unit: &CompileUnit| unit.kernels.contains(&self.kernel) && unit.form() == SourceForm::Ptx;
        match units.iter().find(|unit| is_own(unit)) {
            Some(unit) if named.is_none_or(|(path, _)| unit.find_own(path).is_none()) => {
                Some((unit.source.to_str()?, self.ptx_line))
            }
            _ => named,
        }
    }
}

/// Counts for a source line, as stored in records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountedLine {
    /// Path relative to the folder of the kernel's source, or the file name if the file is outside it.
    pub file: String,
    /// 1-based.
    pub line: u32,
    /// Trimmed text of the line, truncated if long. Lines of two revisions are matched by it.
    pub text: String,
    /// Nonzero work counts.
    pub counters: Counters,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_the_source_of_its_own_lines_unless_it_names_a_file_of_the_author() {
        let ptx = CompileUnit::from_kernels("/nowhere/k.ptx", ["k"]);
        let cuda = CompileUnit::from_kernels("/nowhere/k.cu", ["of_cuda"]);
        let line = |kernel: &str, named: Option<(&str, u32)>| LineCounts {
            kernel: kernel.to_owned(),
            ptx_line: 7,
            file: named.map(|(file, _)| file.to_owned()),
            line: named.map(|(_, line)| line),
            counters: Counters::default(),
            rounds: Vec::new(),
            wide: Default::default(),
        };
        let units = [&cuda, &ptx];
        let own = Some(("/nowhere/k.ptx", 7));
        assert_eq!(line("k", None).place(&units), own);
        assert_eq!(line("k", Some(("/elsewhere/triton.py", 3))).place(&units), own);
        assert_eq!(line("k", Some(("/nowhere/k.ptx", 3))).place(&units), Some(("/nowhere/k.ptx", 3)));
        assert_eq!(line("of_cuda", None).place(&units), None);
        assert_eq!(line("of_cuda", Some(("/usr/include/a.h", 2))).place(&units), Some(("/usr/include/a.h", 2)));
    }
}
