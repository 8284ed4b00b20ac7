//! Sums counts per line of the author's sources, for records and reports.

use std::collections::BTreeMap;
use std::path::Path;

use runner_files::regular;
use runner_types::{CompileUnit, CountedLine, CounterInfo, CounterTheme, Counters};

/// Maximum number of lines to keep per case. The lines with the largest shares of its counts are kept.
const MOST_LINES: usize = 64;

const LONGEST_TEXT: usize = 120;

/// Sums counts per line of the author's files. `counts` refers to files by the compiler's paths; other files are left
/// out.
pub fn gather_lines<'c>(
    units: &[&CompileUnit],
    counts: impl IntoIterator<Item = ((&'c str, u32), &'c Counters)>,
) -> Vec<CountedLine> {
    let mut files: BTreeMap<&str, Option<(String, Vec<String>)>> = BTreeMap::new();
    let mut lines: BTreeMap<(String, u32), CountedLine> = BTreeMap::new();
    for ((path, line), counters) in counts {
        let known = files.entry(path).or_insert_with(|| units.iter().find_map(|unit| read_own(unit, path)));
        let Some((file, texts)) = known else { continue };
        let at = (line as usize).checked_sub(1).and_then(|at| texts.get(at));
        let known = lines.entry((file.clone(), line)).or_insert_with(|| CountedLine {
            file: file.clone(),
            line,
            text: at.map_or_else(String::new, |text| text.trim().chars().take(LONGEST_TEXT).collect()),
            counters: Counters::default(),
        });
        let is_kept = |info: &CounterInfo| info.is_cost() || info.theme == CounterTheme::Pipelines;
        let is_work = |name: &str| CounterInfo::named(name).is_some_and(is_kept);
        for (name, count) in counters.0.iter().filter(|(name, count)| is_work(name) && **count > 0.0) {
            *known.counters.0.entry(name.clone()).or_insert(0.0) += count;
        }
    }
    let lines = lines.into_values().filter(|line| !line.counters.0.is_empty()).collect();
    keep_largest(lines)
}

/// Keeps the lines with the largest share of any count, in the original order.
fn keep_largest(mut lines: Vec<CountedLine>) -> Vec<CountedLine> {
    if lines.len() <= MOST_LINES {
        return lines;
    }
    let mut totals = Counters::default();
    for (name, count) in lines.iter().flat_map(|line| &line.counters.0) {
        *totals.0.entry(name.clone()).or_insert(0.0) += count;
    }
    let share = |line: &CountedLine| {
        let shares = line.counters.0.iter().map(|(name, count)| count / totals.get(name).unwrap_or(*count));
        shares.fold(0.0, f64::max)
    };
    lines.sort_by(|a, b| share(b).total_cmp(&share(a)));
    lines.truncate(MOST_LINES);
    lines.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    lines
}

/// Name and lines of a file, if it is one of the author's.
fn read_own(unit: &CompileUnit, path: &str) -> Option<(String, Vec<String>)> {
    let own = unit.find_own(path)?;
    let text = regular::read_data(&own, regular::LONGEST_DATA).ok()?;
    let below = unit.source.parent().and_then(|folder| own.strip_prefix(folder).ok());
    let name = below.or_else(|| own.file_name().map(Path::new))?.to_string_lossy().into_owned();
    Some((name, String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn counters(counts: &[(&'static str, f64)]) -> Counters {
        Counters(counts.iter().map(|&(name, count)| (name.into(), count)).collect())
    }

    #[test]
    fn counts_are_added_by_lines_of_own_files_that_the_compiler_knew_by_other_paths() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("k.cu");
        std::fs::write(&source, "int a;\n  load();  \n").unwrap();
        std::fs::create_dir(dir.path().join("inc")).unwrap();
        std::fs::write(dir.path().join("inc/h.cuh"), "\n\nhelp();\n").unwrap();
        let unit = CompileUnit::from_kernels(source.clone(), ["k"]);
        let [one, two, other] = [
            counters(&[("gld_sectors", 8.0), ("gld_efficiency", 50.0)]),
            counters(&[("gld_sectors", 4.0), ("inst_executed", 2.0)]),
            counters(&[("inst_executed", 7.0), ("barriers", 0.0)]),
        ];
        let counts = [
            ((source.to_str().unwrap(), 2), &one),
            (("/elsewhere/k.cu", 2), &two),
            (("/elsewhere/inc/h.cuh", 3), &other),
            (("/usr/include/cuda.h", 3), &other),
        ];
        let line = |file: &str, line, text: &str, counters| CountedLine {
            file: file.to_owned(),
            line,
            text: text.to_owned(),
            counters,
        };
        let expected = [
            line("inc/h.cuh", 3, "help();", counters(&[("inst_executed", 7.0)])),
            line("k.cu", 2, "load();", counters(&[("gld_sectors", 12.0), ("inst_executed", 2.0)])),
        ];
        assert_eq!(gather_lines(&[&unit], counts), expected);
    }

    #[test]
    fn of_many_lines_those_with_the_largest_share_of_a_count_are_kept() {
        let line = |number: u32| CountedLine {
            file: "k.cu".to_owned(),
            line: number,
            text: String::new(),
            // Line 3 has the fewest instructions but all atomics.
            counters: match number {
                3 => counters(&[("inst_executed", 1.0), ("global_atomics", 1.0)]),
                _ => counters(&[("inst_executed", f64::from(1000 + number))]),
            },
        };
        let kept: Vec<u32> = keep_largest((1..=100).map(line).collect()).iter().map(|line| line.line).collect();
        assert_eq!(kept, std::iter::once(3).chain(38..=100).collect::<Vec<_>>());
    }
}
