//! `runner compare`: what changed between two reports, two trees of reports, or two variants. Needs no device.

mod variants;

use std::collections::BTreeMap;
use std::path::Path;

use super::stale::tree::{self, Exports, Site};
use super::stale::{self, Placed, Tree};
use crate::cli::{AllowedDifference, CompareArgs, ComparisonFormat};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_file;
use runner_experiment::Manifest;
use runner_process::programs::Programs;
use runner_report::comparison::{self, Compared};
use runner_report::html::Samples;
use runner_report::{RenderError, Screen};
use runner_results::analyse::compare::{self, Alone, DifferenceKind, Gate, Options, Pair};
use runner_results::analyse::stale::Staleness;
use runner_results::journal::JOURNAL_FILE;
use runner_results::stored::{self, ReadError, Source, Stored};
use runner_revision::{Files, describe_checkout};
use runner_types::{ManifestComparison, ManifestState};

pub fn run(args: &CompareArgs, console: &mut Console) -> Result<Exit, Failure> {
    match &args.variant {
        Some(new) => variants::compare(&args.base, [&args.new, new], console),
        None => with_headline(args, console).map(|(exit, _)| exit),
    }
}

/// Compares, and also returns the headline of the result.
pub fn with_headline(args: &CompareArgs, console: &mut Console) -> Result<(Exit, String), Failure> {
    let [base, new] = [read(&args.base, console)?, read(&args.new, console)?];
    let matched = stored::pairs(&base, &new);
    let reports = || matched.pairs.iter().map(|(b, n)| (&base[*b], &new[*n]));
    let pairs: Vec<Pair<'_>> = reports().map(|(b, n)| Pair { base: &b.records, new: &n.records }).collect();
    if pairs.is_empty() {
        return Err(nothing_in_common(args, &base, &new));
    }
    let mut found = compare::compare(&pairs, &options(args));
    found.stale = stale_sides(args, [&base, &new], &matched.pairs);
    found.manifests = manifests(args, reports());
    let places: Vec<[String; 2]> = reports().map(|(b, n)| [b.place.clone(), n.place.clone()]).collect();
    let alone =
        |all: &[Stored], which: &[usize]| which.iter().map(|i| Alone::new(&all[*i].place, &all[*i].records)).collect();
    found.alone = [alone(&base, &matched.only_base), alone(&new, &matched.only_new)];
    let names = [args.base.clone(), args.new.clone()];
    let labels = labels(args);
    let samples = match args.format {
        ComparisonFormat::Html => reports().map(|(b, n)| [b, n].map(|stored| samples(stored, console))).collect(),
        _ => Vec::new(),
    };
    let compared = Compared { comparison: &found, names: &names, labels: &labels, places: &places, faults: &[] };
    write(
        compared,
        &Output {
            format: args.format,
            out: args.out.as_deref(),
            page: page(args.markdown.as_deref(), args.markdown_limit),
            samples: &samples,
        },
        console,
    )?;
    Ok((exit(found.gate()), comparison::headline(compared)))
}

fn read(argument: &str, console: &mut Console) -> Result<Vec<Stored>, Failure> {
    let found = stored::read(&Source::parse(argument), Path::new("."), &Programs::of_this_machine());
    let found = found.map_err(|error| read_failure(&error))?;
    for warning in found.iter().flat_map(|stored| &stored.warnings) {
        console.say(&format!("warning: {warning}"));
    }
    Ok(found)
}

/// Stale reports of base and new, each checked against its own file tree. Base reports are skipped if they equal the
/// new ones, or come from a folder, which is a copy without a file tree of its own.
fn stale_sides(args: &CompareArgs, [base, new]: [&[Stored]; 2], pairs: &[(usize, usize)]) -> [Vec<Staleness>; 2] {
    let is_other = |(b, n): &&(usize, usize)| base[*b].records != new[*n].records;
    let of_base = pairs.iter().filter(is_other).map(|(b, _)| &base[*b]);
    let of_base = match Source::parse(&args.base) {
        Source::Path(_) => Vec::new(),
        Source::Revision { revision, .. } => stale_in(&revision, of_base),
    };
    let of_new = match Source::parse(&args.new) {
        Source::Path(_) => stale::find(new.iter().map(|stored| Placed::new(stored, "")), Tree::Working),
        Source::Revision { revision, .. } => stale_in(&revision, new),
    };
    [of_base, of_new]
}

/// Differences between the manifests that were measured, once per experiment.
fn manifests<'a>(args: &CompareArgs, pairs: impl Iterator<Item = (&'a Stored, &'a Stored)>) -> Vec<ManifestComparison> {
    let sides = [&args.base, &args.new].map(|argument| Manifests::new(argument));
    let mut found: Vec<ManifestComparison> = Vec::new();
    for (base, new) in pairs {
        let header = &new.records.header;
        let is_known = found.iter().any(|known| known.experiment == header.experiment);
        if is_known || base.records.header.manifest_text == header.manifest_text {
            continue;
        }
        let read = sides[0].read(base).and_then(|base| Ok((base, sides[1].read(new)?)));
        let state = match read.map(|(base, new)| runner_experiment::changes(&base, &new, &BTreeMap::new())) {
            Ok(changes) if changes.is_empty() => continue,
            Ok(changes) => ManifestState::Changed(changes),
            Err(why) => ManifestState::Unknown(why),
        };
        found.push(ManifestComparison::new(header.experiment.clone(), state));
    }
    found
}

/// Manifests of one side, found in its file tree by the records.
struct Manifests {
    /// The revision, and the prefix of report locations in it; `None` for the working tree.
    revision: Option<(Files, String)>,
    exports: Exports,
}

impl Manifests {
    fn new(argument: &str) -> Self {
        let revision = match Source::parse(argument) {
            Source::Path(_) => None,
            Source::Revision { revision, .. } => {
                let files = Files::open(Path::new("."), &revision, &Programs::of_this_machine());
                files.ok().map(|files| (files, format!("{revision}:")))
            }
        };
        Self { revision, exports: Exports::default() }
    }

    fn read(&self, stored: &Stored) -> Result<Manifest, String> {
        match &self.revision {
            Some((files, before)) => self.exports.site(files, Placed::new(stored, before))?.measured(&stored.records),
            None => match tree::around(Placed::new(stored, ""))? {
                Some(site) => site.measured(&stored.records),
                None => Site::of_command(&stored.records).measured(&stored.records),
            },
        }
    }
}

fn stale_in<'a>(revision: &str, reports: impl IntoIterator<Item = &'a Stored>) -> Vec<Staleness> {
    let files = Files::open(Path::new("."), revision, &Programs::of_this_machine());
    let before = format!("{revision}:");
    let placed = reports.into_iter().map(|stored| Placed::new(stored, &before));
    // An unreadable revision has already been reported.
    files.map(|files| stale::find(placed, Tree::Revision(&files))).unwrap_or_default()
}

/// Samples in the journal next to a report; empty without a journal. Warns about an unreadable journal.
pub fn samples(stored: &Stored, console: &mut Console) -> Samples {
    samples_in(Path::new(&stored.place), console)
}

/// Samples in the journal of a folder, as in [`samples`].
pub fn samples_in(dir: &Path, console: &mut Console) -> Samples {
    let journal = dir.join(JOURNAL_FILE);
    let found = if journal.is_file() { stored::samples(&journal) } else { Ok(Samples::new()) };
    found.unwrap_or_else(|error| {
        console.say(&format!("warning: no samples: {error}"));
        Samples::new()
    })
}

/// Failure for an unreadable source. A wrong name is a usage error; anything else is damage or lack of access.
pub fn read_failure(error: &ReadError) -> Failure {
    let message = error.to_string();
    if error.is_misnamed() { Failure::usage(message) } else { Failure::environment(message) }
}

fn options(args: &CompareArgs) -> Options {
    let allowed = |difference: &AllowedDifference| match difference {
        AllowedDifference::Device => DifferenceKind::Device,
        AllowedDifference::Gpu => DifferenceKind::Gpu,
        AllowedDifference::Driver => DifferenceKind::Driver,
        AllowedDifference::Timing => DifferenceKind::Timing,
        AllowedDifference::Work => DifferenceKind::Work,
        AllowedDifference::Check => DifferenceKind::Check,
        AllowedDifference::Inputs => DifferenceKind::Inputs,
    };
    let [allow, inform] = [&args.allow, &args.inform].map(|kinds| kinds.iter().map(allowed).collect());
    Options { threshold: args.threshold, allow, inform, gate_counters: args.gate_counters, strict: args.strict }
}

/// Labels of both sides for the reader: the commit, even for a folder of the checkout, or the name if the commits are
/// equal.
fn labels(args: &CompareArgs) -> [String; 2] {
    let programs = Programs::of_this_machine();
    let commit = |argument: &String| match Source::parse(argument) {
        Source::Revision { revision, .. } => {
            Files::open(Path::new("."), &revision, &programs).ok().map(|files| short(files.commit()))
        }
        Source::Path(path) => describe_checkout(folder(&path), &programs).map(|commit| short(&commit)),
    };
    match [&args.base, &args.new].map(|argument| (argument, commit(argument))) {
        [(_, Some(base)), (_, Some(new))] if base != new => [base, new],
        [(base, _), (new, _)] => [base.clone(), new.clone()],
    }
}

/// The path itself if it is a folder, otherwise its parent.
fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !path.is_dir() && !parent.as_os_str().is_empty());
    parent.unwrap_or(if path.is_dir() { path } else { Path::new(".") })
}

/// Abbreviated commit, keeping the mark for uncommitted changes.
pub fn short(commit: &str) -> String {
    match commit.strip_suffix("-dirty") {
        Some(name) => format!("{} with changes", name.get(..7).unwrap_or(name)),
        None => commit.get(..7).unwrap_or(commit).to_owned(),
    }
}

fn nothing_in_common(args: &CompareArgs, base: &[Stored], new: &[Stored]) -> Failure {
    let experiments = |reports: &[Stored]| {
        let mut names: Vec<String> =
            reports.iter().map(|report| format!("`{}`", report.records.header.experiment)).collect();
        names.dedup();
        names.join(", ")
    };
    let (of_base, of_new) = (experiments(base), experiments(new));
    Failure::usage(format!(
        "nothing to compare: {} has reports of {of_base}, {} of {of_new}; name two reports of one experiment",
        args.base, args.new
    ))
}

#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    pub format: ComparisonFormat,
    /// File to write to instead of standard output.
    pub out: Option<&'a Path>,
    /// Page for a pull request, if requested.
    pub page: Option<Page<'a>>,
    /// Samples of base and new, in the order of the reports.
    pub samples: &'a [[Samples; 2]],
}

#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    path: &'a Path,
    /// Size limit in bytes; `None` for the limit of a GitHub comment.
    limit: Option<usize>,
}

pub fn page(path: Option<&Path>, limit: Option<usize>) -> Option<Page<'_>> {
    path.map(|path| Page { path, limit })
}

pub fn write(compared: Compared<'_>, output: &Output<'_>, console: &mut Console) -> Result<(), Failure> {
    write_page(compared, output.page, console)?;
    match output.out {
        Some(path) => {
            let plain = Screen { styled: false, width: None };
            to_file(&text(compared, output, plain)?, "--out", path, console)
        }
        None => console.print(&text(compared, output, console.screen())?),
    }
}

/// Writes the page for a pull request, if requested.
pub fn write_page(compared: Compared<'_>, page: Option<Page<'_>>, console: &mut Console) -> Result<(), Failure> {
    let Some(Page { path, limit }) = page else { return Ok(()) };
    to_file(&rendered(comparison::markdown(compared, limit))?, "--markdown", path, console)
}

fn to_file(text: &str, option: &str, path: &Path, console: &mut Console) -> Result<(), Failure> {
    write_file(option, path, text)?;
    console.say(&format!("wrote {}", path.display()));
    Ok(())
}

fn text(compared: Compared<'_>, output: &Output<'_>, screen: Screen) -> Result<String, Failure> {
    rendered(match output.format {
        ComparisonFormat::Text => Ok(comparison::terminal(compared, screen)),
        ComparisonFormat::Markdown => comparison::markdown(compared, None),
        ComparisonFormat::Html => comparison::html(compared, output.samples),
        ComparisonFormat::Json => comparison::json(compared),
        ComparisonFormat::Csv => comparison::csv(compared),
        ComparisonFormat::Junit => comparison::junit(compared),
    })
}

fn rendered(text: Result<String, RenderError>) -> Result<String, Failure> {
    text.map_err(Failure::environment)
}

pub const fn exit(gate: Gate) -> Exit {
    match gate {
        Gate::NewlyWrong => Exit::CaseFailed,
        Gate::BrokenClaim => Exit::BrokenClaim,
        Gate::Regression => Exit::Regression,
        Gate::Incomparable => Exit::Incomparable,
        Gate::Pass => Exit::Success,
    }
}
