//! The source lines of a case with their execution counts, next to the PTX and the machine code compiled from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;

use super::csv::table;
use super::{RenderError, Templates};
use runner_lang::format::thousands;
use runner_types::Counters;

/// Sources of a case's kernels, line by line.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SourceView {
    /// Name of the case, as in reports.
    pub case: String,
    /// Why counts or machine code are missing, one sentence each.
    pub notes: Vec<String>,
    /// The fault that ended the case, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Files, starting with those that define the kernels.
    pub files: Vec<SourceFile>,
    /// PTX lines with instructions, labels and function names.
    pub ptx: Vec<PtxLine>,
    /// Machine instructions in the order of their offsets, kernel by kernel.
    pub machine: Vec<MachineLine>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SourceFile {
    /// Path as the compiler names it.
    pub path: String,
    pub lines: Vec<SourceLine>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SourceLine {
    /// 1-based.
    pub line: u32,
    pub text: String,
    /// Nonzero counts of the line.
    pub counters: Counters,
}

/// Source location of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct At {
    /// Index in [`SourceView::files`].
    pub file: usize,
    /// 1-based.
    pub line: u32,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PtxLine {
    /// 1-based.
    pub line: u32,
    pub text: String,
    /// Source line that it was compiled from, if it was executed.
    pub source: Option<At>,
    pub counters: Counters,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MachineLine {
    pub function: String,
    /// Offset in the function's section, in bytes.
    pub offset: u64,
    /// Guard, opcode and operands.
    pub text: String,
    /// Cycles until the next instruction of the warp may issue.
    pub stall: u8,
    /// The other control bits: the barriers to wait for, the barriers to set, and the yield flag.
    pub control: String,
    /// Pipelines that count it, named as in Nsight Compute's counters; empty if it only takes an issue slot.
    pub pipes: Vec<&'static str>,
    /// Number of warps that executed it, derived from the PTX counts; `None` if they do not determine it.
    pub executed: Option<u64>,
    pub ptx_line: Option<u32>,
    /// Line of the user's own source that it was compiled from.
    pub source: Option<At>,
    /// All lines that it was compiled from, innermost inlined call first.
    pub calls: String,
}

/// Counters to show per line: the title, and the counters to add up.
const SHOWN: [(&str, &[&str]); 8] = [
    ("warps", &["inst_executed"]),
    ("threads", &["thread_inst_executed"]),
    ("load sectors", &["gld_sectors"]),
    ("store sectors", &["gst_sectors"]),
    ("bank conflicts", &["shared_ld_bank_conflicts", "shared_st_bank_conflicts"]),
    ("local", &["local_ld_requests", "local_st_requests"]),
    ("atomics", &["global_atomics", "shared_atomics"]),
    ("divergent", &["divergent_branch"]),
];

/// Columns for a line's machine code, after the counters.
const OF_MACHINE_CODE: [&str; 2] = ["machine instructions", "stall cycles"];

/// Number of context lines that the terminal shows around lines with counts or machine code.
const AROUND: u32 = 2;

/// Summary of a line's machine instructions.
#[derive(Debug, Clone, Copy, Default)]
struct Machine {
    instructions: u64,
    stall: u64,
    executed: u64,
    unknown: u64,
}

pub(super) fn sum(counters: &Counters, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counters.get(name)).sum::<f64>() as u64
}

impl SourceView {
    /// Counters that at least one line has.
    fn shown(&self) -> Vec<(&'static str, &'static [&'static str])> {
        let lines = || self.files.iter().flat_map(|file| &file.lines);
        let has = |(_, names): &(&str, &[&str])| lines().any(|line| sum(&line.counters, names) > 0);
        SHOWN.into_iter().filter(has).collect()
    }

    /// Machine instructions per source line.
    fn by_line(&self) -> BTreeMap<At, Machine> {
        let mut by_line: BTreeMap<At, Machine> = BTreeMap::new();
        for (at, instruction) in self.machine.iter().filter_map(|one| Some((one.source?, one))) {
            let line = by_line.entry(at).or_default();
            line.instructions += 1;
            line.stall += u64::from(instruction.stall);
            line.executed += instruction.executed.unwrap_or(0);
            line.unknown += u64::from(instruction.executed.is_none());
        }
        by_line
    }

    /// Summary of the machine code in a sentence; `None` without machine code.
    fn join(&self) -> Option<String> {
        let all = self.machine.len();
        let unplaced = self.machine.iter().filter(|one| one.source.is_none()).count();
        let known = self.machine.iter().filter_map(|one| one.executed);
        let (executed, unknown) = (known.clone().sum::<u64>(), all - known.count());
        let mapped = match unplaced {
            0 => "all mapped to source".to_owned(),
            count => format!("{count} without a source line"),
        };
        let without = match unknown {
            0 => String::new(),
            count => format!("; {count} without a count, because the PTX counts do not determine it"),
        };
        let executed = thousands(executed);
        (all > 0).then(|| format!("{all} machine instructions, {mapped}; executed {executed} times by warps{without}"))
    }

    /// Warp-level instructions executed per pipeline, in a sentence; `None` if unknown.
    fn pipes(&self) -> Option<String> {
        let mut pipes: BTreeMap<&str, u64> = BTreeMap::new();
        let counts = self.machine.iter().filter_map(|one| Some((&one.pipes, one.executed?)));
        for (pipe, executed) in counts.flat_map(|(pipes, executed)| pipes.iter().map(move |pipe| (pipe, executed))) {
            *pipes.entry(pipe).or_default() += executed;
        }
        let mut pipes: Vec<(&str, u64)> = pipes.into_iter().filter(|(_, executed)| *executed > 0).collect();
        pipes.sort_by_key(|(name, executed)| (std::cmp::Reverse(*executed), *name));
        let parts: Vec<String> = pipes.iter().map(|(name, executed)| format!("{name} {executed}")).collect();
        (!parts.is_empty()).then(|| format!("by pipeline: {}", parts.join(", ")))
    }

    pub fn text(&self) -> String {
        let (shown, by_line) = (self.shown(), self.by_line());
        let mut text = format!("{}\n", self.case);
        for note in self.notes.iter().cloned().chain(self.join()).chain(self.pipes()) {
            let _ = writeln!(text, "{note}");
        }
        for (index, file) in self.files.iter().enumerate() {
            let _ = write!(text, "\n{}\n{:>6}", file.path, "line");
            for (title, _) in &shown {
                let _ = write!(text, " {title:>14}");
            }
            text.push_str("  source, and below it the machine code: warps × stall cycles\n");
            let matters = |line: &SourceLine| {
                !line.counters.0.is_empty() || by_line.contains_key(&At { file: index, line: line.line })
            };
            let numbers: Vec<u32> = file.lines.iter().filter(|line| matters(line)).map(|line| line.line).collect();
            let near = |line: u32| {
                let at = numbers.partition_point(|number| *number < line.saturating_sub(AROUND));
                numbers.get(at).is_some_and(|number| *number <= line + AROUND)
            };
            let mut skipped = false;
            for line in &file.lines {
                if !near(line.line) {
                    if !std::mem::replace(&mut skipped, true) {
                        text.push_str("     …\n");
                    }
                    continue;
                }
                skipped = false;
                self.line(&mut text, line, At { file: index, line: line.line }, &shown);
            }
        }
        text
    }

    fn line(&self, text: &mut String, line: &SourceLine, at: At, shown: &[(&str, &[&str])]) {
        let _ = write!(text, "{:>6}", line.line);
        for (_, names) in shown {
            let count = sum(&line.counters, names);
            let cell = if count == 0 { String::new() } else { count.to_string() };
            let _ = write!(text, " {cell:>14}");
        }
        let _ = writeln!(text, "  {}", line.text.trim_end());
        let indent = 6 + 15 * shown.len() + 4;
        for one in self.machine.iter().filter(|one| one.source == Some(at)) {
            let executed = one.executed.map_or_else(|| "?".to_owned(), |count| count.to_string());
            let _ = writeln!(text, "{:indent$}{executed:>8} × {:>2}  {}", "", one.stall, one.text);
        }
    }

    /// The view as JSON: the fields of this type.
    pub fn json(&self) -> Result<String, RenderError> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }

    /// CSV per RFC 4180 with one row per source line that was executed or became machine code.
    pub fn csv(&self) -> Result<String, RenderError> {
        let by_line = self.by_line();
        let lines = || self.files.iter().flat_map(|file| &file.lines);
        let names = lines().flat_map(|line| line.counters.0.keys()).map(|name| &**name);
        let names: BTreeSet<&str> = names.collect();
        let machine = ["machine_instructions", "stall_cycles", "machine_executed", "machine_without_count"];
        let titles = names.iter().map(|name| format!("counter.{name}"));
        let begin = ["file", "line", "source"].map(str::to_owned);
        let mut rows: Vec<Vec<String>> =
            vec![begin.into_iter().chain(titles).chain(machine.map(str::to_owned)).collect()];
        for (index, file) in self.files.iter().enumerate() {
            for line in &file.lines {
                let machine = by_line.get(&At { file: index, line: line.line });
                if line.counters.0.is_empty() && machine.is_none() {
                    continue;
                }
                let machine = machine.copied().unwrap_or_default();
                let counts = names.iter().map(|name| line.counters.get(name).unwrap_or(0.0).to_string());
                let Machine { instructions, stall, executed, unknown } = machine;
                let own = [file.path.clone(), line.line.to_string(), line.text.trim().to_owned()];
                let end = [instructions, stall, executed, unknown].map(|number| number.to_string());
                rows.push(own.into_iter().chain(counts).chain(end).collect());
            }
        }
        table(rows)
    }

    /// The view as one HTML file that works offline.
    pub fn html(&self, templates: &Templates) -> Result<String, RenderError> {
        let (shown, by_line) = (self.shown(), self.by_line());
        let counts = |line: &SourceLine, at: At| -> Vec<u64> {
            let machine = by_line.get(&at).copied().unwrap_or_default();
            let counted = shown.iter().map(|(_, names)| sum(&line.counters, names));
            counted.chain([machine.instructions, machine.stall]).collect()
        };
        let key = |at: Option<At>| at.map_or_else(String::new, |at| format!("{}-{}", at.file, at.line));
        let row = |line: &SourceLine, at: At| Row {
            key: key(Some(at)),
            line: line.line,
            text: line.text.clone(),
            counts: counts(line, at),
            heat: Vec::new(),
        };
        let files = self.files.iter().enumerate().map(|(index, file)| Rows {
            path: file.path.clone(),
            rows: file.lines.iter().map(|line| row(line, At { file: index, line: line.line })).collect(),
        });
        let mut files: Vec<Rows> = files.collect();
        let mut most = vec![1; shown.len() + OF_MACHINE_CODE.len()];
        for row in files.iter().flat_map(|file| &file.rows) {
            most.iter_mut().zip(&row.counts).for_each(|(most, count)| *most = *count.max(most));
        }
        for row in files.iter_mut().flat_map(|file| &mut file.rows) {
            row.heat = row.counts.iter().zip(&most).map(|(count, most)| 100 * count / most).collect();
        }
        let page = Page {
            case: &self.case,
            notes: self.notes.iter().cloned().chain(self.join()).chain(self.pipes()).collect(),
            counters: shown.iter().map(|(title, _)| *title).chain(OF_MACHINE_CODE).collect(),
            files,
            ptx: self
                .ptx
                .iter()
                .map(|line| (key(line.source), line, sum(&line.counters, &["inst_executed"])))
                .collect(),
            machine: self.machine.iter().map(|line| (key(line.source), line)).collect(),
            style: super::html::STYLE,
        };
        templates.source(&page)
    }
}

/// Input of the page's template.
#[derive(Debug, Serialize)]
pub(super) struct Page<'a> {
    case: &'a str,
    notes: Vec<String>,
    counters: Vec<&'static str>,
    files: Vec<Rows>,
    ptx: Vec<(String, &'a PtxLine, u64)>,
    machine: Vec<(String, &'a MachineLine)>,
    style: &'static str,
}

#[derive(Debug, Serialize)]
struct Rows {
    path: String,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    /// Links the line to its PTX and its machine code.
    key: String,
    line: u32,
    text: String,
    /// Count of each counter of the page.
    counts: Vec<u64>,
    /// Percentage of the column maximum, per column.
    heat: Vec<u64>,
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn counters(counts: &[(&'static str, f64)]) -> Counters {
        Counters(counts.iter().map(|&(name, count)| (name.into(), count)).collect())
    }

    fn view() -> SourceView {
        let texts = ["// a", "", "", "", "load <b>;", "store;", "end"];
        let line = |(line, text): (u32, &&str)| SourceLine {
            line,
            text: (*text).to_owned(),
            counters: match line {
                5 => counters(&[("inst_executed", 8.0), ("thread_inst_executed", 250.0), ("gld_sectors", 64.0)]),
                6 => counters(&[("inst_executed", 2.0), ("thread_inst_executed", 64.0)]),
                _ => Counters::default(),
            },
        };
        let machine = |offset, text: &str, executed, line| MachineLine {
            function: "k".to_owned(),
            offset,
            text: text.to_owned(),
            stall: 4,
            pipes: vec![if text.starts_with("LDG") { "lsu" } else { "alu" }],
            executed,
            source: Some(At { file: 0, line }),
            ..MachineLine::default()
        };
        SourceView {
            case: "k[n = 8]".to_owned(),
            files: vec![SourceFile { path: "k.cu".to_owned(), lines: (1..).zip(&texts).map(line).collect() }],
            machine: vec![
                machine(0, "LDG.E R1, [R2]", Some(8), 5),
                machine(16, "IADD3 R1", None, 5),
                machine(32, "EXIT", Some(2), 7),
            ],
            ..SourceView::default()
        }
    }

    #[test]
    fn a_terminal_shows_counts_and_the_machine_code_below_each_line() {
        let expected = "\
k[n = 8]
3 machine instructions, all mapped to source; executed 10 times by warps; 1 without a count, because the PTX counts do \
not determine it
by pipeline: lsu 8, alu 2

k.cu
  line          warps        threads   load sectors  source, and below it the machine code: warps × stall cycles
     …
     3                                              \n     4                                              \n     5              \
8            250             64  load <b>;
                                                              8 ×  4  LDG.E R1, [R2]
                                                              ? ×  4  IADD3 R1
     6              2             64                 store;
     7                                               end
                                                              2 ×  4  EXIT
";
        let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(trimmed(&view().text()), trimmed(expected));
    }

    #[test]
    fn a_table_has_a_row_for_each_line_with_counts_or_code() {
        let expected = "file,line,source,counter.gld_sectors,counter.inst_executed,counter.thread_inst_executed,\
machine_instructions,stall_cycles,machine_executed,machine_without_count\r
k.cu,5,load <b>;,64,8,250,2,8,8,1\r
k.cu,6,store;,0,2,64,0,0,0,0\r
k.cu,7,end,0,0,0,1,4,2,0\r
";
        assert_eq!(view().csv().unwrap(), expected);
    }

    #[test]
    fn a_page_shows_text_as_text() {
        let page = view().html(&Templates::new().unwrap()).unwrap();
        assert!(page.contains("load &lt;b&gt;;") && !page.contains("<b>;"), "{page}");
        assert!(page.contains("data-at=\"0-5\"") && page.contains("LDG.E R1, [R2]"), "{page}");
    }
}
