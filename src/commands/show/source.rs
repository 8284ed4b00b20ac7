//! The sources of a case with what the simulator executed on each line, next to the PTX and the machine code.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sass::{Instruction, LineCount, Listing, begins_function};

use super::code::disassemble;
use super::machine_code;
use crate::atomic;
use crate::commands::cli::ShowArgs;
use crate::commands::options::RunOptions;
use crate::commands::session::worker::{self, Worker};
use crate::commands::session::{
    Destination, ManifestRun, compile_case, interrupt, outputs_of, plan_options, source_page_of,
};
use crate::commands::{Console, Failure};
use crate::compile::Target;
use crate::experiment::Manifest;
use crate::format::plural_of;
use crate::model::{Case, CodeKind, CompileUnit, Compiled, Counters, LineCounts, Outcome, SourceForm};
use crate::plan;
use crate::project::Project;
use crate::render::source_view::{At, MachineLine, PtxLine, SourceFile, SourceLine, SourceView};
use crate::render::{SOURCE_DIR, Templates, case_name};

/// Prints the sources of a case that has run. `kept` is the folder with its counts.
pub fn show(
    args: &ShowArgs,
    options: &RunOptions,
    (manifest, case): (&Manifest, &Case),
    (outcome, kept): (Option<&Outcome>, &Path),
    console: &mut Console,
) -> Result<(), Failure> {
    let worker = worker::start(options, &interrupt()?, console)?;
    let mut view = view(options, (manifest, case), (&read_counts(kept), &worker), console)?;
    if let Some(Outcome::Trap { message }) = outcome {
        view.fault = Some(message.clone());
    }
    if let Some(place) = &args.html {
        let path = if place.is_dir() { source_page_of(place, &case.key) } else { place.clone() };
        if place.is_dir() {
            create_folder_of(&path)?;
        }
        write_page(&view, &path)?;
        return console.print(&format!("written to {}\n", path.display()));
    }
    let text = match () {
        () if args.json => view.json().map_err(Failure::environment)?,
        () if args.csv => view.csv().map_err(Failure::environment)?,
        () if args.sarif => view.sarif(&Project::folder_of(&manifest.source.path)).map_err(Failure::environment)?,
        () => view.text(),
    };
    console.print(&text)
}

/// Writes a page for each kernel of a simulated experiment to its report's folder, from the first case of each variant
/// that executed it. `counted` is the folder with the counts of all cases.
pub fn write_pages(run: ManifestRun<'_>, counted: &Path, console: &mut Console) -> Result<(), Failure> {
    let ManifestRun { options, manifest } = run;
    // A GPU counts no PTX lines.
    if std::fs::read_dir(counted).is_ok_and(|mut cases| cases.next().is_none()) {
        return Ok(());
    }
    let worker = worker::start(options, &interrupt()?, console)?;
    let dir = Destination::choose(options, manifest, &worker.ready.device).dir;
    let planned = plan_options(options, &worker.ready.device);
    let plan = plan::expand(manifest, &planned).map_err(|faults| console.faults(&faults))?;
    let mut known: BTreeSet<(String, BTreeSet<String>)> = BTreeSet::new();
    for case in plan.cells().iter().map(|cell| plan.case(*cell)) {
        let counts = read_counts(&outputs_of(counted, &case.key));
        let kernels = counts.iter().map(|line| line.kernel.clone()).collect();
        if counts.is_empty() || !known.insert((case.key.variant.clone(), kernels)) {
            continue;
        }
        let path = source_page_of(&dir, &case.key);
        create_folder_of(&path)?;
        write_page(&view(options, (manifest, &case), (&counts, &worker), console)?, &path)?;
    }
    if !known.is_empty() {
        console.say(&format!(
            "{} in {}",
            plural_of(known.len() as u64, "page of sources", "pages of sources"),
            dir.join(SOURCE_DIR).display()
        ));
    }
    Ok(())
}

/// Counts of each PTX line, if the case left them.
fn read_counts(kept: &Path) -> Vec<LineCounts> {
    let json = std::fs::read(kept.join(LineCounts::FILE)).ok();
    json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}

fn create_folder_of(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent() else { return Ok(()) };
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::environment(format!("cannot create {}: {error}", folder.display())))
}

fn write_page(view: &SourceView, path: &Path) -> Result<(), Failure> {
    let page = Templates::new().and_then(|templates| view.html(&templates));
    let page = page.map_err(Failure::environment)?;
    atomic::write(path, page.as_bytes()).map_err(Failure::environment)
}

/// The sources of a case with the counts of their lines, the PTX and the machine code.
fn view(
    options: &RunOptions,
    (manifest, case): (&Manifest, &Case),
    (counts, worker): (&[LineCounts], &Worker),
    console: &mut Console,
) -> Result<SourceView, Failure> {
    let capability = worker.ready.device.compute_capability;
    let mut compiled = |target| compile_case(ManifestRun { manifest, options }, (&case.key, target), worker, console);
    let (ptx, machine) = (compiled(Target::Ptx(capability))?, compiled(Target::Gpu(capability))?);
    let mut view = SourceView { case: case_name(case), ..SourceView::default() };
    if counts.is_empty() {
        view.notes.push("nothing was counted, because the case did not run".to_owned());
    }
    for (unit, compiled) in &ptx {
        let Ok(compiled) = compiled else { continue };
        let bytes = std::fs::read(&compiled.code)
            .map_err(|error| Failure::environment(format!("cannot read {}: {error}", compiled.code.display())))?;
        let text = String::from_utf8_lossy(&bytes);
        let kernels = executed_kernels(compiled, &text, counts);
        let of_unit = machine.iter().find(|(other, _)| other == unit).and_then(|(_, compiled)| compiled.as_ref().ok());
        let listings = of_unit.filter(|compiled| compiled.kind != CodeKind::Plugin).map(|compiled| {
            // Names in an anonymous namespace differ between two compilations, so these are the cubin's.
            let kernels = executed_kernels(compiled, &text, counts);
            disassemble((unit, compiled, capability), &kernels, options, console)
        });
        let listings = match listings {
            Some(Ok(listings)) => listings,
            Some(Err(failure)) => {
                view.notes.push(failure.message);
                Vec::new()
            }
            None => Vec::new(),
        };
        Unit { unit, files: Files::default() }.add_to(&mut view, &text, (&kernels, counts), &listings);
    }
    Ok(view)
}

/// Names of a unit's kernels that the case may have executed: those launched by the host, by their names in the
/// manifest and for the linker, and those launched by kernels.
fn executed_kernels<'a>(compiled: &'a Compiled, ptx: &str, counts: &'a [LineCounts]) -> Vec<&'a str> {
    let host = compiled.kernels.iter().flat_map(|(name, mangled)| [name.as_str(), mangled.as_str()]);
    let mut names: Vec<&str> = host.collect();
    for counted in counts {
        let name = counted.kernel.as_str();
        if !names.contains(&name) && ptx.contains(&format!(".entry {name}(")) {
            names.push(name);
        }
    }
    names
}

/// A source to join with its code.
struct Unit<'u> {
    unit: &'u CompileUnit,
    files: Files,
}

/// Files of a unit by the paths that the compiler wrote. The value is the index in the view; `None` if the file is not
/// the author's.
#[derive(Default)]
struct Files(BTreeMap<String, Option<usize>>);

impl Unit<'_> {
    fn add_to(
        mut self,
        view: &mut SourceView,
        ptx: &str,
        (kernels, counts): (&[&str], &[LineCounts]),
        listings: &[Listing],
    ) {
        // The file of the kernels comes first.
        self.file(view, &self.unit.source.display().to_string());
        let mut by_ptx: BTreeMap<u32, (Option<At>, Counters)> = BTreeMap::new();
        let mut rounds: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        for counted in counts.iter().filter(|counted| kernels.contains(&counted.kernel.as_str())) {
            let at = counted.place(&[self.unit]).and_then(|(path, line)| self.find_line(view, Some(path), Some(line)));
            let known = by_ptx.entry(counted.ptx_line).or_insert_with(|| (at, Counters::default()));
            add(&mut known.1, &counted.counters);
            rounds.entry(counted.ptx_line).or_default().extend(&counted.rounds);
            if let Some(line) = at.and_then(|at| view.files[at.file].lines.get_mut(at.line.saturating_sub(1) as usize))
            {
                add(&mut line.counters, &counted.counters);
            }
        }
        let lines: Vec<&str> = ptx.lines().collect();
        let same_lines = listings.first().map_or_else(BTreeMap::new, |listing| match_lines(&listing.ptx, &lines));
        let count = |line: u32| {
            let line = *same_lines.get(&line)?;
            let text = lines.get((line as usize).checked_sub(1)?)?;
            let counted = |name| by_ptx.get(&line).and_then(|(_, counters)| counters.get(name)).unwrap_or(0.0) as u64;
            let diverged = is_branch(text).then(|| counted("divergent_branch"));
            let warps = counted("inst_executed") / count_instructions(text).max(1);
            let rounds = rounds.get(&line).map_or(&[][..], Vec::as_slice);
            is_instruction(text).then_some(LineCount { warps, diverged, rounds })
        };
        let mut calls: BTreeMap<&str, Option<u64>> = BTreeMap::new();
        let (added, own): (Vec<&Listing>, Vec<&Listing>) = listings.iter().partition(|listing| listing.is_added());
        for listing in own.into_iter().chain(added) {
            let each = if listing.is_added() {
                // A function that no other one calls is not executed.
                let called = calls.get(&*listing.name).copied().unwrap_or(Some(0));
                called
                    .map_or_else(|| vec![None; listing.instructions.len()], |calls| listing.executed_when_called(calls))
            } else {
                listing.executed(count)
            };
            for (function, executed) in listing.calls_of_added(&each) {
                let before = calls.entry(function).or_insert(Some(0));
                *before = before.zip(executed).map(|(before, executed)| before + executed);
            }
            for (instruction, executed) in listing.instructions.iter().zip(each) {
                let ptx_line = instruction.ptx_line.and_then(|line| same_lines.get(&line)).copied();
                let source = self.author_line(view, listing, instruction).or_else(|| self.ptx_line(view, ptx_line));
                view.machine.push(MachineLine {
                    function: listing.name.clone(),
                    offset: instruction.offset,
                    text: machine_code::statement(instruction),
                    stall: instruction.control().stall,
                    control: machine_code::control(instruction.control()),
                    pipes: instruction.pipes().iter().map(|pipe| pipe.name()).collect(),
                    executed: executed.filter(|_| !counts.is_empty()),
                    ptx_line,
                    source,
                    calls: machine_code::call_chain(listing, instruction),
                });
            }
        }
        for (line, text) in (1..).zip(&lines) {
            let (source, counters) = by_ptx.remove(&line).unwrap_or_default();
            let shown =
                is_instruction(text) || text.starts_with('$') || text.contains(".entry") || text.contains(".func");
            if shown {
                view.ptx.push(PtxLine { line, text: text.trim_end().replace('\t', "    "), source, counters });
            }
        }
    }

    /// Author's line of a machine instruction: the innermost of its calls in the author's own files.
    fn author_line(&mut self, view: &mut SourceView, listing: &Listing, instruction: &Instruction) -> Option<At> {
        instruction
            .source
            .iter()
            .find_map(|place| self.find_line(view, listing.files.get(place.file).map(String::as_str), Some(place.line)))
    }

    fn find_line(&mut self, view: &mut SourceView, path: Option<&str>, line: Option<u32>) -> Option<At> {
        Some(At { file: self.file(view, path?)?, line: line? })
    }

    /// A line of PTX that is itself the source.
    fn ptx_line(&mut self, view: &mut SourceView, line: Option<u32>) -> Option<At> {
        let path = (self.unit.form() == SourceForm::Ptx).then(|| self.unit.source.display().to_string())?;
        self.find_line(view, Some(&path), line)
    }

    /// The file with this path. Reads it if it is one of the author's.
    fn file(&mut self, view: &mut SourceView, path: &str) -> Option<usize> {
        if let Some(known) = self.files.0.get(path) {
            return *known;
        }
        let found = self.unit.find_own(path).and_then(|own| {
            let text = std::fs::read(&own).ok()?;
            let path = own.display().to_string();
            let known = view.files.iter().position(|file| file.path == path);
            Some(known.unwrap_or_else(|| {
                let text = String::from_utf8_lossy(&text);
                let lines = (1..).zip(text.lines()).map(|(line, text)| SourceLine {
                    line,
                    text: text.replace('\t', "    "),
                    counters: Counters::default(),
                });
                view.files.push(SourceFile { path, lines: lines.collect() });
                view.files.len() - 1
            }))
        });
        self.files.0.insert(path.to_owned(), found);
        found
    }
}

/// Matches lines of the PTX behind a cubin with equal lines of the simulated PTX. A kernel may have been compiled by
/// itself for one and with its whole file for the other, so only lines within a function match.
fn match_lines(of_cubin: &str, simulated: &[&str]) -> BTreeMap<u32, u32> {
    let simulated: Vec<Cow<'_, str>> = simulated.iter().map(|line| comparable(line)).collect();
    let functions: BTreeMap<&str, u32> =
        (0..).zip(&simulated).filter(|(_, line)| begins_function(line)).map(|(at, line)| (&**line, at)).collect();
    let mut same = BTreeMap::new();
    let (mut first, mut there) = (0, Some(0));
    for (at, line) in (0_u32..).zip(of_cubin.lines().map(comparable)) {
        if begins_function(&line) {
            (first, there) = (at, functions.get(&*line).copied());
        }
        let other = there.map(|there| there + at - first);
        if let Some(other) = other.filter(|other| simulated.get(*other as usize).is_some_and(|o| *o == line)) {
            same.insert(at + 1, other + 1);
        }
    }
    same
}

/// Removes from a PTX line what differs between two compilations of one source. Labels and the depot of local memory
/// contain the number of their function in the file. The name of an anonymous namespace contains a hash of the source's
/// path or the compiler's process id, and its length precedes it.
fn comparable(line: &str) -> Cow<'_, str> {
    const ANONYMOUS: &str = "_GLOBAL__N__";
    const NUMBERED: [&str; 2] = ["$L__BB", "__local_depot"];
    let is_digit = |c: char| c.is_ascii_digit();
    let mut rest = line.trim();
    let mut text = Cow::Borrowed("");
    let markers = || NUMBERED.into_iter().chain([ANONYMOUS]);
    while let Some((at, marker)) = markers().filter_map(|marker| Some((rest.find(marker)?, marker))).min() {
        let (before, after) = (&rest[..at], &rest[at + marker.len()..]);
        let digits = &before[before.trim_end_matches(is_digit).len()..];
        let named = (marker == ANONYMOUS).then(|| at.checked_add(digits.parse().ok()?)).flatten();
        let named = named.filter(|end| *end >= at + marker.len() && rest.is_char_boundary(*end));
        text.to_mut().push_str(if named.is_some() { before.trim_end_matches(is_digit) } else { before });
        text.to_mut().push_str(marker);
        rest = match named {
            Some(end) => &rest[end..],
            None if marker == ANONYMOUS => after,
            None => after.trim_start_matches(is_digit),
        };
    }
    if text.is_empty() { Cow::Borrowed(rest) } else { text + rest }
}

fn is_instruction(line: &str) -> bool {
    let text = line.trim_start();
    text.contains(';') && text.starts_with(|first: char| first.is_ascii_lowercase() || first == '@' || first == '{')
}

/// Number of instructions in a line of PTX. Inline `asm` of the source stays on one line.
fn count_instructions(line: &str) -> u64 {
    let statements =
        line.split("//").next().unwrap_or_default().split(';').map(|part| part.trim_matches(['{', '}', ' ', '\t']));
    statements.filter(|part| !part.is_empty() && !part.starts_with('.')).count() as u64
}

/// Whether a PTX instruction is a branch.
fn is_branch(line: &str) -> bool {
    let text = line.trim_start();
    let text =
        if text.starts_with('@') { text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest) } else { text };
    ["bra", "brx"].contains(&text.trim_start().split(['.', ' ', '\t']).next().unwrap_or_default())
}

/// Adds counts. Ratios are dropped, because they cannot be added.
fn add(into: &mut Counters, more: &Counters) {
    let counts = more.0.iter().filter(|(name, _)| !name.ends_with("efficiency") && !name.ends_with("per_warp"));
    for (name, count) in counts {
        *into.0.entry(name.clone()).or_insert(0.0) += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_kernel_match_those_of_the_same_kernel_in_its_whole_file() {
        let whole =
            ["", ".visible .entry a(", ")", "{", "ret;", "}", ".visible .entry b(", ")", "{", "add;", "ret;", "}"];
        let alone = ".version 9.0\n.visible .entry b(\n)\n{\nadd;\nret;\n}\n.visible .entry c(\n)\n{\nret;\n}";
        let same = match_lines(alone, &whole);
        assert_eq!(same.into_iter().collect::<Vec<_>>(), [(2, 7), (3, 8), (4, 9), (5, 10), (6, 11), (7, 12)]);
    }

    #[test]
    fn labels_match_that_have_another_number_of_their_function() {
        let (whole, alone) = ("\t@%p15 bra \t$L__BB5_12;", "\t@%p15 bra \t$L__BB0_12;");
        assert_eq!(comparable(whole), comparable(alone));
        assert_ne!(comparable(whole), comparable("@%p15 bra \t$L__BB5_13;"));
        assert_eq!(comparable("mov.u64 %SPL, __local_depot12;"), comparable("mov.u64 %SPL, __local_depot0;"));
    }

    #[test]
    fn lines_match_where_names_of_an_anonymous_namespace_have_another_hash_or_length() {
        let kernel = |name: &str| format!(".entry _ZN{}{name}1kEv(", name.len());
        let load = |name: &str| format!("ld.param.u64 %rd1, [_ZN{}{name}1kEv_param_0];", name.len());
        let pairs = [
            ["_GLOBAL__N__f1121b59_8_names_cu_ff4b9f7f", "_GLOBAL__N__1fa45f6a_8_names_cu_ff4b9f7f"],
            ["_GLOBAL__N__00000000_4_k_cu_d52f3acb_268676", "_GLOBAL__N__00000000_4_k_cu_d52f3acb_1"],
        ];
        for [one, other] in pairs {
            let (begin, line) = (kernel(one), load(one));
            let same = match_lines(&format!("{}\n{}\nret;", kernel(other), load(other)), &["", &begin, &line, "ret;"]);
            assert_eq!(same.into_iter().collect::<Vec<_>>(), [(1, 2), (2, 3), (3, 4)], "{one}");
        }
        assert_ne!(comparable("_ZN12_GLOBAL__N__1kEv"), comparable("_ZN12_GLOBAL__N__1jEv"));
        // A number that is not the length of the name stays.
        let odd = ["_GLOBAL__N__x", "3_GLOBAL__N__x", "99_GLOBAL__N__x", "13_GLOBAL__N__é"];
        for odd in odd.into_iter().chain(["99999999999999999999_GLOBAL__N__"]) {
            assert_eq!(comparable(odd), odd);
        }
    }

    #[test]
    fn instructions_of_a_line_of_ptx_are_counted_without_declarations() {
        for (line, count) in [
            ("\tadd.u32 %r1, %r1, {1};", 1),
            (
                "{ .reg .f32 r0;  .reg .pred p;  shfl.sync.down.b32 r0|p, %f1, 1, 31, -1;  @p add.f32 r0, r0, %f1;  mov.f32 %f2, r0;}",
                3,
            ),
            ("{ mov.b32 {low, high}, %r1; }", 1),
            ("mov.u32 %r1, 0; // ;", 1),
            ("{", 0),
        ] {
            assert_eq!(count_instructions(line), count, "{line}");
        }
    }

    #[test]
    fn branches_of_ptx_are_told_from_other_instructions() {
        for line in ["\tbra.uni \t$L_1;", "@%p1 bra $L_1;", "@!%p12 bra.uni \t$L;", "\tbrx.idx %r1, $L_t;"] {
            assert!(is_branch(line), "{line}");
        }
        for line in ["\tbrev.b32 %r1, %r2;", "@%p1 ret;", "\tst.global.u32 [bra], %r1;", ""] {
            assert!(!is_branch(line), "{line}");
        }
    }

    #[test]
    fn instructions_of_ptx_are_told_from_directives_and_labels() {
        for line in ["\tld.param.u64 %rd1, [x];", "@%p1 bra $L_1;", "\tret;", "\t{ mov.b32 %r1, 0; }"] {
            assert!(is_instruction(line), "{line}");
        }
        for line in [".reg .b32 %r<3>;", "$L_1:", "// ld;", "", "{", ".loc 1 2 3"] {
            assert!(!is_instruction(line), "{line}");
        }
    }
}
