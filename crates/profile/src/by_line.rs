//! Attributes instruction counts to source lines, through the line tables of the code that ran.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use sass::{Cubin, Tables};

use super::source_page::InstructionRow;
use runner_cuda_source::source_lines::gather_lines;
use runner_types::{CompileUnit, CountedLine, Counters, KernelCode};

/// A launch: its kernel's mangled name and code, and counts per instruction.
#[derive(Debug, Clone, Copy)]
pub struct CountedLaunch<'a> {
    pub kernel: &'a str,
    pub code: &'a KernelCode,
    pub instructions: &'a [InstructionRow],
}

/// Counts per source line. Code without line tables has none.
pub fn count_lines(launches: &[CountedLaunch<'_>]) -> Vec<CountedLine> {
    let mut tables: HashMap<&Path, Option<Code>> = HashMap::new();
    let mut counted: BTreeMap<(String, u32), Counters> = BTreeMap::new();
    for launch in launches {
        let code = tables.entry(launch.code.path.as_path()).or_insert_with(|| Code::read(&launch.code.path));
        let Some((code, section)) = code.as_ref().and_then(|code| Some((code, code.section(launch.kernel)?))) else {
            continue;
        };
        let first = launch.instructions.iter().map(|row| row.address).min().unwrap_or(0);
        for row in launch.instructions {
            let places = code.tables.source.places(section, row.address - first);
            let path = |file: usize| code.tables.source.files().get(file).map(String::as_str);
            let own = |path: &str| launch.code.unit.find_own(path).is_some();
            // The innermost inlined call in one of the user's own files.
            let place = places.iter().find_map(|place| Some((path(place.file).filter(|path| own(path))?, place.line)));
            let Some((path, line)) = place else { continue };
            let known = counted.entry((path.to_owned(), line)).or_default();
            for (name, count) in &row.counters.0 {
                *known.0.entry(name.clone()).or_insert(0.0) += count;
            }
        }
    }
    let units: Vec<&CompileUnit> = launches.iter().map(|launch| &launch.code.unit).collect();
    gather_lines(&units, counted.iter().map(|((path, line), counters)| ((path.as_str(), *line), counters)))
}

/// Parts of a cubin that map instructions to lines.
struct Code {
    tables: Tables,
    sections: BTreeMap<String, usize>,
}

impl Code {
    fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let cubin = Cubin::parse(&bytes).ok()?;
        let sections = cubin.functions().iter().map(|function| (function.name.clone(), function.section)).collect();
        Some(Self { tables: Tables::read(&cubin).ok()?, sections })
    }

    fn section(&self, kernel: &str) -> Option<usize> {
        self.sections.get(kernel).copied()
    }
}
