//! The sources of a case with the simulator's counts per line, next to the PTX and the machine code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sass::{Executed, Instruction, Listing, Simulated, is_instruction};

use super::machine_code;
use crate::cli::ShowArgs;
use crate::cli::options::RunOptions;
use crate::console::Console;
use crate::failure::Failure;
use crate::session::worker::{self, Worker};
use crate::session::{Destination, ManifestRun, compile_case, interrupt, outputs_of, plan_options, source_page_of};
use runner_compile::Target;
use runner_execute::{count_ptx, read_listings};
use runner_experiment::Manifest;
use runner_files::atomic;
use runner_files::project::Project;
use runner_files::regular;
use runner_lang::format::plural_of;
use runner_report::source_view::{At, MachineLine, PtxLine, SourceFile, SourceLine, SourceView};
use runner_report::{SOURCE_DIR, Templates, case_name};
use runner_types::{Case, CodeKind, CompileUnit, Compiled, Counters, LineCounts, Outcome, SourceForm};

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

/// Writes a page for each kernel of a simulated experiment into its report's folder, from the first case of each
/// variant that executed it. `counted` is the folder with the counts of all cases.
pub fn write_pages(run: ManifestRun<'_>, counted: &Path, console: &mut Console) -> Result<(), Failure> {
    let ManifestRun { options, manifest } = run;
    // A GPU does not count per PTX line.
    if std::fs::read_dir(counted).is_ok_and(|mut cases| cases.next().is_none()) {
        return Ok(());
    }
    let worker = worker::start(options, &interrupt()?, console)?;
    let dir = Destination::choose(options, manifest, &worker.ready.device).dir;
    let planned = plan_options(options, &worker.ready.device);
    let plan = runner_plan::expand(manifest, &planned).map_err(|faults| console.faults(&faults))?;
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

/// Counts per PTX line; empty if the case wrote none.
fn read_counts(kept: &Path) -> Vec<LineCounts> {
    let json = regular::read_data(&kept.join(LineCounts::FILE), regular::LONGEST_DATA).ok();
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

/// Sources of a case with counts per line, PTX and machine code.
fn view(
    options: &RunOptions,
    (manifest, case): (&Manifest, &Case),
    (counts, worker): (&[LineCounts], &Worker),
    console: &mut Console,
) -> Result<SourceView, Failure> {
    let capability = worker.ready.device.compute_capability;
    let target = Target::Ptx(capability);
    let units = compile_case(ManifestRun { manifest, options }, (&case.key, target), worker, console)?;
    let mut view = SourceView { case: case_name(case), ..SourceView::default() };
    if counts.is_empty() {
        view.notes.push("nothing was counted, because the case did not run".to_owned());
    }
    for (unit, compiled) in &units {
        let Ok(compiled) = compiled else { continue };
        let bytes = regular::read_data(&compiled.code, regular::LONGEST_DATA)
            .map_err(|error| Failure::environment(format!("cannot read {}: {error}", compiled.code.display())))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let kernels = executed_kernels(compiled, &text, counts);
        let listings = match compiled.kind {
            CodeKind::Ptx => read_listings(compiled).unwrap_or_else(|why| {
                view.notes.push(format!("no machine code: {why}"));
                Vec::new()
            }),
            CodeKind::Cubin | CodeKind::Plugin => Vec::new(),
        };
        let code = Simulated::new(listings, text);
        Unit { unit, files: Files::default() }.add_to(&mut view, (&kernels, counts), &code);
    }
    Ok(view)
}

/// Names of a unit's kernels that the case may have executed: kernels launched by the host, by manifest name and by
/// mangled name, and kernels launched by kernels.
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

/// A unit whose source is joined with its code.
struct Unit<'u> {
    unit: &'u CompileUnit,
    files: Files,
}

/// Files of a unit, by the paths in the compiler's line information. The value is the index in the view; `None` if the
/// file is not the user's own.
#[derive(Default)]
struct Files(BTreeMap<String, Option<usize>>);

impl Unit<'_> {
    fn add_to(mut self, view: &mut SourceView, (kernels, counts): (&[&str], &[LineCounts]), code: &Simulated) {
        // The kernels' own file comes first.
        self.file(view, &self.unit.source.display().to_string());
        let mut by_ptx: BTreeMap<u32, (Option<At>, Counters)> = BTreeMap::new();
        for counted in counts.iter().filter(|counted| kernels.contains(&counted.kernel.as_str())) {
            let at = counted.place(&[self.unit]).and_then(|(path, line)| self.find_line(view, Some(path), Some(line)));
            let known = by_ptx.entry(counted.ptx_line).or_insert_with(|| (at, Counters::default()));
            add(&mut known.1, &counted.counters);
            if let Some(line) = at.and_then(|at| view.files[at.file].lines.get_mut(at.line.saturating_sub(1) as usize))
            {
                add(&mut line.counters, &counted.counters);
            }
        }
        let of_kernels: Vec<&LineCounts> =
            counts.iter().filter(|counted| kernels.contains(&counted.kernel.as_str())).collect();
        for (listing, each) in Executed::derive(code, &count_ptx(&of_kernels)).functions {
            for (instruction, executed) in listing.instructions.iter().zip(each) {
                let ptx_line = instruction.ptx_line.and_then(|line| code.lines.get(&line)).copied();
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
        for (line, text) in (1..).zip(code.ptx().lines()) {
            let (source, counters) = by_ptx.remove(&line).unwrap_or_default();
            let shown =
                is_instruction(text) || text.starts_with('$') || text.contains(".entry") || text.contains(".func");
            if shown {
                view.ptx.push(PtxLine { line, text: text.trim_end().replace('\t', "    "), source, counters });
            }
        }
    }

    /// The user's source line of a machine instruction: the innermost inlined call in the user's own files.
    fn author_line(&mut self, view: &mut SourceView, listing: &Listing, instruction: &Instruction) -> Option<At> {
        instruction
            .source
            .iter()
            .find_map(|place| self.find_line(view, listing.files.get(place.file).map(String::as_str), Some(place.line)))
    }

    fn find_line(&mut self, view: &mut SourceView, path: Option<&str>, line: Option<u32>) -> Option<At> {
        Some(At { file: self.file(view, path?)?, line: line? })
    }

    /// A PTX line, if the source itself is PTX.
    fn ptx_line(&mut self, view: &mut SourceView, line: Option<u32>) -> Option<At> {
        let path = (self.unit.form() == SourceForm::Ptx).then(|| self.unit.source.display().to_string())?;
        self.find_line(view, Some(&path), line)
    }

    /// Index of the file with this path. Reads it if it is one of the user's own.
    fn file(&mut self, view: &mut SourceView, path: &str) -> Option<usize> {
        if let Some(known) = self.files.0.get(path) {
            return *known;
        }
        let found = self.unit.find_own(path).and_then(|own| {
            let text = regular::read_data(&own, regular::LONGEST_DATA).ok()?;
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

/// Adds counts. Ratios are dropped, because they cannot be added.
fn add(into: &mut Counters, more: &Counters) {
    let counts = more.0.iter().filter(|(name, _)| !name.ends_with("efficiency") && !name.ends_with("per_warp"));
    for (name, count) in counts {
        *into.0.entry(name.clone()).or_insert(0.0) += count;
    }
}
