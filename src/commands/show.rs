//! `runner show`: runs one case and shows what it left: its buffers, its output, and what is wrong in its surroundings.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::cli::ShowArgs;
use super::options::RunOptions;
use super::run::{interrupt, outputs_of, run_one};
use super::{Console, Exit, Failure, load_manifest};
use crate::experiment::{Expectation, Manifest};
use crate::journal;
use crate::model::{Case, Event, Outcome};
use crate::plan::{self, PlanOptions};
use crate::render::{axis_value, case_name, reason};
use array::Array;

mod array;

/// Elements of a buffer that are shown from its beginning, and as many from its end.
const SHOWN: usize = 6;

/// Elements before a wrong one that are shown, and as many after it.
const AROUND: u64 = 3;

pub fn run(args: &ShowArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut manifest = load_manifest(&args.manifest, &args.trust.reach, console)?;
    // One sample: what is shown is what the first run left.
    (manifest.measure.warmup, manifest.measure.min_samples, manifest.measure.max_samples) = (0, 1, 1);
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::environment(format!("cannot create a temporary folder: {error}; set TMPDIR")))?;
    let outputs = args.dump.clone().unwrap_or_else(|| folder.path().join("outputs"));
    let mut options = RunOptions::of_show(args, folder.path(), &outputs)?;
    let case = find(&manifest, args, &options, console)?;
    narrow(&mut options, &manifest, &case);
    console.quiet = true;
    let ended = run_one(&options, &manifest, &interrupt()?, console)?;
    console.quiet = false;
    let journal = journal::read(&folder.path().join("report/journal.jsonl"))
        .map_err(|error| Failure::environment(error.to_string()))?;
    let settled = journal.events.iter().rev().find_map(|event| match event {
        Event::CaseSettled { case: settled, outcome, .. } if settled.key == case.key => Some(outcome.clone()),
        _ => None,
    });
    let mut text = format!("{}\n", case_name(&case));
    let kept = outputs_of(&outputs, &case.key);
    buffers(&mut text, &kept);
    if let Ok(printed) = std::fs::read_to_string(kept.join("printed.txt")) {
        let _ = write!(text, "\nprinted\n{}", indented(&printed));
    }
    match &settled {
        Some(outcome) => {
            let why = reason(outcome).map_or_else(String::new, |why| format!(": {why}"));
            let _ = writeln!(text, "\n{}{why}", outcome.name().replace('_', " "));
            if *outcome != Outcome::Measured {
                surroundings(&mut text, &kept);
            }
        }
        None => text.push_str("\nthe case was not run\n"),
    }
    if args.dump.is_some() {
        let _ = writeln!(text, "\nwritten to {}", kept.display());
    }
    console.print(&text)?;
    Ok(ended.exit)
}

/// The one case that is named: a variant, and values of axes where it has several cases.
fn find(manifest: &Manifest, args: &ShowArgs, options: &RunOptions, console: &Console) -> Result<Case, Failure> {
    let (backend, device) = super::plan::machine(&args.target, None)?;
    let planned = PlanOptions {
        backend,
        sizes: backend,
        device,
        set: options.narrowing.set.clone(),
        filter: None,
        variants: Vec::new(),
    };
    let plan = plan::expand(manifest, &planned).map_err(|faults| Failure::faults(&faults, console))?;
    let (variant, values) = split(&args.case)?;
    let fits = |case: &Case| {
        let has = |(name, value): &(String, String)| {
            case.key.axes.iter().any(|(axis, known)| axis == name && axis_value(known) == *value)
        };
        case.key.variant == variant && values.iter().all(has)
    };
    let cases: Vec<Case> = plan.cells().iter().map(|cell| plan.case(*cell)).collect();
    let mut fitting: Vec<Case> = cases.iter().filter(|case| fits(case)).cloned().collect();
    if fitting.len() == 1 {
        return Ok(fitting.remove(0));
    }
    let (what, among) = if fitting.is_empty() {
        (format!("there is no case `{}`", args.case), &cases)
    } else {
        (format!("`{}` names {} cases", args.case, fitting.len()), &fitting)
    };
    let names: Vec<String> = among.iter().take(12).map(|case| format!("  {}", case_name(case))).collect();
    let more =
        if among.len() > names.len() { format!("\n  … {} more", among.len() - names.len()) } else { String::new() };
    Err(Failure::usage(format!("{what}; name one of\n{}{more}", names.join("\n"))))
}

/// `variant[axis = value, …]`.
fn split(text: &str) -> Result<(String, Vec<(String, String)>), Failure> {
    let Some((variant, rest)) = text.split_once('[') else { return Ok((text.trim().to_owned(), Vec::new())) };
    let wrong = || Failure::usage(format!("`{text}` is no case: write variant[axis = value, …]"));
    let inside = rest.trim_end().strip_suffix(']').ok_or_else(wrong)?;
    let pairs = inside.split(',').filter(|pair| !pair.trim().is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        Ok((name.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
    };
    Ok((variant.trim().to_owned(), pairs.map(pair).collect::<Result<_, _>>()?))
}

/// Runs the case, and the variants whose results it is compared with.
fn narrow(options: &mut RunOptions, manifest: &Manifest, case: &Case) {
    let mut variants = vec![case.key.variant.clone()];
    let own = manifest.variants.iter().filter_map(|variant| variant.checks.as_ref()).flatten();
    for check in manifest.checks.iter().chain(own) {
        if let Expectation::Variant { name, .. } = &check.expect
            && !variants.contains(name)
        {
            variants.push(name.clone());
        }
    }
    options.narrowing.variant = variants;
    let condition = |(name, value): &(String, crate::model::Value)| match value {
        crate::model::Value::Str(text) => format!("{name} == {text:?}"),
        crate::model::Value::Type(element) => format!("{name} == \"{element}\""),
        number => format!("{name} == {number}"),
    };
    let conditions: Vec<String> = case.key.axes.iter().map(condition).collect();
    options.narrowing.filter = (!conditions.is_empty()).then(|| conditions.join(" && "));
}

/// One line for each buffer that was written.
fn buffers(text: &mut String, folder: &Path) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|end| end == "npy"));
    files.sort();
    for path in files {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem.contains('.') {
            continue;
        }
        if let Some(array) = Array::read(&path) {
            let len = array.len();
            let shown = |range: std::ops::Range<usize>| range.map(|i| array.text(i)).collect::<Vec<_>>().join(" ");
            let elements = if len <= 2 * SHOWN {
                shown(0..len)
            } else {
                format!("{} … {}", shown(0..SHOWN), shown(len - SHOWN..len))
            };
            let _ = writeln!(text, "  {stem}  {len} {}  {elements}", array.element());
        }
    }
}

/// The elements around the first that differs, of every check.
fn surroundings(text: &mut String, folder: &Path) {
    for number in 0.. {
        let side = |side: &str| Array::read(&folder.join(format!("check{number}.{side}.npy")));
        let (Some(actual), Some(expected)) = (side("actual"), side("expected")) else { return };
        let wanted = |index: usize| if expected.len() == 1 { expected.text(0) } else { expected.text(index) };
        let near = |index: usize| {
            let (got, wanted) = (actual.number(index), expected.number(if expected.len() == 1 { 0 } else { index }));
            (got - wanted).abs() <= 1e-6 * wanted.abs() || (got.is_nan() && wanted.is_nan())
        };
        let Some(first) = (0..actual.len()).find(|index| !near(*index)) else { continue };
        let from = (first as u64).saturating_sub(AROUND) as usize;
        let to = (first + AROUND as usize + 1).min(actual.len());
        let _ = writeln!(text, "\ncheck {number}: element, got, expected");
        for index in from..to {
            let mark = if near(index) { ' ' } else { '>' };
            let _ = writeln!(text, "{mark} {index:>8}  {}  {}", actual.text(index), wanted(index));
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "  {line}");
        all
    })
}
