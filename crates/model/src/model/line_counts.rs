//! Counts per line of the code.

use serde::{Deserialize, Serialize};

use super::{CompileUnit, Counters, SourceForm};

/// The counts of what comes from one line of the PTX, as `lines.json` has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineCounts {
    /// The kernel that ran it, by the name that the manifest gives.
    pub kernel: String,
    /// The line of the PTX, which counts from one.
    pub ptx_line: u32,
    /// The path of the author's source. Code that was inlined from elsewhere belongs to the author's call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of that file, which counts from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The counts that are not zero.
    pub counters: Counters,
    /// Numbers of rounds of the loop that a branch leads back in, and how many warps made so many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<(u64, u64)>,
}

impl LineCounts {
    /// The file with the counts of all lines, in the folder of what a case left.
    pub const FILE: &str = "lines.json";

    /// Returns the path and the line of the source that the counts belong to, where it is known. A source that is PTX is
    /// the source itself, unless it names lines of a file of the author.
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

/// What was executed on one line of a source, as records have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountedLine {
    /// The path of the file from the folder of the kernel's source, or its name where it is not below.
    pub file: String,
    /// The line, which counts from one.
    pub line: u32,
    /// The text of the line without what is around it; the beginning of a long one. Lines of two revisions are matched by
    /// it.
    pub text: String,
    /// The counts of work that are not zero.
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
