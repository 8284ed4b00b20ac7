//! `runner show`: runs one case and prints its buffers, its output, and wrong elements with their neighbours; or prints
//! the code that its kernels are compiled to.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::cli::ShowArgs;
use crate::cli::options::{RunOptions, network};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use crate::session::{ManifestRun, interrupt, outputs_of, run_one};
use array::Array;
use runner_experiment::{Expectation, Manifest};
use runner_files::regular;
use runner_plan::{self, PlanOptions};
use runner_report::{axis_value, case_name, reason};
use runner_results::journal::{self, Contents};
use runner_types::{BackendKind, Case, Outcome};
use shape::{Selection, Shape};

mod array;
mod code;
mod machine_code;
mod shape;
mod source;

pub use source::write_pages;

/// Number of buffer elements to show from each end.
const SHOWN: usize = 6;

/// Number of rows to show from each end of a buffer with a shape.
const ROWS: usize = 3;

/// Number of elements to show before and after a wrong one.
const AROUND: u64 = 3;

pub fn run(args: &ShowArgs, console: &mut Console) -> Result<Exit, Failure> {
    let shapes = args.shape.iter().map(|text| Shape::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let selections = args.element.iter().map(|text| Selection::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let mut manifest = load_manifest(&args.manifest, &args.trust.reach, network(args.offline), console)?;
    // One sample is enough, since only the results of the first run are shown.
    (manifest.measure.warmup, manifest.measure.min_samples, manifest.measure.max_samples) = (0, 1, 1);
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::environment(format!(
            "cannot create a temporary folder: {error}; set TMPDIR to a \
            writable folder"
        ))
    })?;
    let outputs = args.dump.clone().unwrap_or_else(|| folder.path().join("outputs"));
    let mut options = RunOptions::of_show(args, folder.path(), &outputs)?;
    let case = find(&manifest, args, &options, console)?;
    narrow(&mut options, &manifest, &case);
    let (backend, _) = super::plan::machine(&args.target, None)?;
    let counts = args.source && backend == BackendKind::Sim;
    if let Some(form) = code::Form::wanted(args).filter(|_| !counts) {
        return code::show(form, &options, (&manifest, &case.key), console);
    }
    console.quiet = true;
    let ended = run_one(ManifestRun { manifest: &manifest, options: &options }, &interrupt()?, console)?;
    console.quiet = false;
    let history = journal::read(&folder.path().join("report/journal.jsonl"))
        .and_then(Contents::into_history)
        .map_err(Failure::environment)?;
    let settled = history.outcome(&case.key).cloned();
    if counts {
        let left = (settled.as_ref(), outputs_of(&outputs, &case.key));
        source::show(args, &options, (&manifest, &case), (left.0, &left.1), console)?;
        return Ok(ended.exit);
    }
    let mut text = format!("{}\n", case_name(&case));
    let kept = outputs_of(&outputs, &case.key);
    let arrays = arrays(&kept);
    if !arrays.is_empty() {
        shape::check(&shapes, &sizes(&arrays, &kept))?;
        buffers(&mut text, &arrays, &shapes);
        elements(&mut text, &arrays, &shapes, &selections)?;
    }
    if let Ok(printed) = regular::read_text(&kept.join("printed.txt")) {
        let _ = write!(text, "\nprinted\n{}", indented(&printed));
    }
    match &settled {
        Some(outcome) => {
            let why = reason(outcome).map_or_else(String::new, |why| format!(": {why}"));
            let _ = writeln!(text, "\n{}{why}", outcome.name().replace('_', " "));
            if *outcome != Outcome::Measured {
                surroundings(&mut text, &kept, &shapes);
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

/// The named case: a variant, with axis values if it has several cases.
fn find(manifest: &Manifest, args: &ShowArgs, options: &RunOptions, console: &Console) -> Result<Case, Failure> {
    let (backend, device) = super::plan::machine(&args.target, None)?;
    let planned = PlanOptions { device, set: options.narrowing.set.clone(), ..PlanOptions::for_backend(backend) };
    let plan = runner_plan::expand(manifest, &planned).map_err(|faults| console.faults(&faults))?;
    let (variant, values) = split(&args.case)?;
    let fits = |case: &Case| {
        let has = |(name, value): &(String, String)| {
            let is_it = |known| axis_value(known) == *value || known.to_string() == *value;
            case.key.axes.iter().any(|(axis, known)| axis == name && is_it(known))
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

/// Splits `variant[axis = value, …]` into the variant and its axes.
fn split(text: &str) -> Result<(String, Vec<(String, String)>), Failure> {
    let Some((variant, rest)) = text.split_once('[') else { return Ok((text.trim().to_owned(), Vec::new())) };
    let wrong = || Failure::usage(format!("`{text}` is not a case: write variant[axis = value, …]"));
    let inside = rest.trim_end().strip_suffix(']').ok_or_else(wrong)?;
    let pairs = inside.split(',').filter(|pair| !pair.trim().is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        Ok((name.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
    };
    Ok((variant.trim().to_owned(), pairs.map(pair).collect::<Result<_, Failure>>()?))
}

/// Narrows the run to the case and the variants that its results are compared with.
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
    let condition = |(name, value): &(String, runner_types::Value)| match value {
        runner_types::Value::Str(text) => format!("{name} == {text:?}"),
        runner_types::Value::Type(element) => format!("{name} == \"{element}\""),
        number => format!("{name} == {number}"),
    };
    let conditions: Vec<String> = case.key.axes.iter().map(condition).collect();
    options.narrowing.filter = (!conditions.is_empty()).then(|| conditions.join(" && "));
}

/// Buffers that were saved, by name.
fn arrays(folder: &Path) -> Vec<(String, Array)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    files.retain(|path| path.extension().is_some_and(|end| end == "npy"));
    files.sort();
    let read = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if stem.contains('.') { None } else { Array::read(path).map(|array| (stem, array)) }
    };
    files.iter().filter_map(read).collect()
}

/// Names and lengths of the buffers, and lengths of both sides of each check.
fn sizes(arrays: &[(String, Array)], folder: &Path) -> Vec<(Option<String>, usize)> {
    let of_checks = (0..).map_while(|number| side(folder, number, "actual")).map(|array| (None, array.len()));
    arrays.iter().map(|(name, array)| (Some(name.clone()), array.len())).chain(of_checks).collect()
}

fn side(folder: &Path, check: usize, side: &str) -> Option<Array> {
    Array::read(&folder.join(format!("check{check}.{side}.npy")))
}

/// Formats one line per buffer, and some rows of each buffer with a shape.
fn buffers(text: &mut String, arrays: &[(String, Array)], shapes: &[Shape]) {
    for (name, array) in arrays {
        let (len, element) = (array.len(), array.element());
        let Some(shape) = shape::find_shape(shapes, name, len) else {
            let _ = writeln!(text, "  {name}  {len} {element}  {}", ends(array, 0..len));
            continue;
        };
        let _ = writeln!(text, "  {name}  {} {element}", shape.extents());
        let (row, rows) = (shape.row(), len / shape.row());
        for number in 0..rows {
            if number < ROWS || number + ROWS >= rows {
                let begin = number * row;
                let _ = writeln!(text, "    {}  {}", shape.indices(begin), ends(array, begin..begin + row));
            } else if number == ROWS {
                text.push_str("    …\n");
            }
        }
    }
}

/// First and last elements of a range.
fn ends(array: &Array, range: Range<usize>) -> String {
    let shown = |range: Range<usize>| range.map(|index| array.text(index)).collect::<Vec<_>>().join(" ");
    if range.len() <= 2 * SHOWN {
        return shown(range);
    }
    format!("{} … {}", shown(range.start..range.start + SHOWN), shown(range.end - SHOWN..range.end))
}

fn elements(
    text: &mut String,
    arrays: &[(String, Array)],
    shapes: &[Shape],
    selections: &[Selection],
) -> Result<(), Failure> {
    for selection in selections {
        let name = &selection.buffer;
        let Some((_, array)) = arrays.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = arrays.iter().map(|(known, _)| known.as_str()).collect();
            let message = format!("--element: the case has no buffer `{name}`; it has {}", known.join(", "));
            return Err(Failure::usage(message));
        };
        let shape = shape::find_shape(shapes, name, array.len());
        for line in selection.lines(array.len(), shape)? {
            let place = shape::place(shape, &line);
            let shown: Vec<String> = line.map(|index| array.text(index)).collect();
            let _ = writeln!(text, "  {name}{place}  {}", shown.join(" "));
        }
    }
    Ok(())
}

/// Formats the elements around the first difference of every check.
fn surroundings(text: &mut String, folder: &Path, shapes: &[Shape]) {
    for number in 0.. {
        let sides = side(folder, number, "actual").zip(side(folder, number, "expected"));
        let Some((actual, expected)) = sides else { return };
        let wanted = |index: usize| if expected.len() == 1 { expected.text(0) } else { expected.text(index) };
        let near = |index: usize| {
            let (got, wanted) = (actual.number(index), expected.number(if expected.len() == 1 { 0 } else { index }));
            (got - wanted).abs() <= 1e-6 * wanted.abs() || (got.is_nan() && wanted.is_nan())
        };
        let Some(first) = (0..actual.len()).find(|index| !near(*index)) else { continue };
        let from = (first as u64).saturating_sub(AROUND) as usize;
        let to = (first + AROUND as usize + 1).min(actual.len());
        let shape = shape::find_shape(shapes, "", actual.len());
        let _ = writeln!(text, "\ncheck {number}: element, got, expected");
        for index in from..to {
            let mark = if near(index) { ' ' } else { '>' };
            let indices = shape.map_or_else(String::new, |shape| format!(" {}", shape.indices(index)));
            let _ = writeln!(text, "{mark} {index:>8}{indices}  {}  {}", actual.text(index), wanted(index));
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "  {line}");
        all
    })
}
