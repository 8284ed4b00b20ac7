//! Counts per line of code: of the PTX for a page with sources, and of the author's sources for records.

use serde::{Deserialize, Serialize};

use super::{CompileUnit, Counters, SourceForm};

/// Counts for one line of the PTX, as stored in `lines.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineCounts {
    /// Kernel that ran the line, by its name in the manifest.
    pub kernel: String,
    /// Counted from one.
    pub ptx_line: u32,
    /// Path of the author's source. Code inlined from elsewhere belongs to the author's call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Counted from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Counts that are not zero.
    pub counters: Counters,
    /// For a branch that closes a loop: numbers of rounds, each with how many warps made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<(u64, u64)>,
    /// Bank conflicts of loads and of stores if each access were the 8 or the 16 bytes around it, as where a compiler merges
    /// accesses.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub wide: [[u64; 2]; 2],
}

impl LineCounts {
    /// File with the counts of all lines, in a case's folder.
    pub const FILE: &str = "lines.json";

    /// Path and source line that the counts belong to, if known. A PTX source is its own source, unless it names lines
    /// of one of the author's files.
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

/// Counts for one source line, as stored in records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountedLine {
    /// Path relative to the folder of the kernel's source, or the file name if it is not below.
    pub file: String,
    /// Counted from one.
    pub line: u32,
    /// Trimmed text of the line, cut off if it is long. Lines of two revisions are matched by it.
    pub text: String,
    /// Counts of work that are not zero.
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
