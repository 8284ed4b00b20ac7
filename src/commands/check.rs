//! `runner check`: validates manifests without running anything.

use std::path::Path;

use serde::Serialize;

use crate::cli::CheckArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::templates;
use runner_experiment::{Axis, Manifest};
use runner_lang::diagnostics::{Diagnostic, Diagnostics};
use runner_lang::format::visible_json;

/// Version of the lines, raised when a reader of the old lines would misread the new ones.
const VERSION: u32 = 1;

pub fn run(args: &CheckArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    for path in &args.manifests {
        let checked = check(path, args, console)?;
        if checked.is_err() {
            exit = Exit::Usage;
        }
        if args.json {
            let line = serde_json::to_string(&Line::new(path, &checked)).map_err(Failure::environment)?;
            console.print(&(visible_json(&line).into_owned() + "\n"))?;
            continue;
        }
        match &checked {
            Ok(sound) => {
                let (variants, axes) = (count(sound.variants, "variant"), count(sound.axes, "axis"));
                console.print(&format!("{}: ok: {variants}, {axes}\n", path.display()))?;
            }
            Err(faults) => faults.show(path, console),
        }
    }
    Ok(exit)
}

fn check(path: &Path, args: &CheckArgs, console: &Console) -> Result<Result<Sound, Faults>, Failure> {
    Ok(match runner_manifest::load_within(path, args.reach.project_of(path)?) {
        Ok(manifest) => match templates::of_manifest(&manifest, console) {
            Ok(_) => Ok(Sound::new(&manifest)),
            Err(fault) => Err(Faults::OfTemplate(fault)),
        },
        Err(diagnostics) => Err(Faults::OfManifest(diagnostics)),
    })
}

/// Size of a sound manifest.
#[derive(Debug, Serialize)]
struct Sound {
    experiment: String,
    variants: usize,
    axes: usize,
}

impl Sound {
    fn new(manifest: &Manifest) -> Self {
        let variants = manifest.variants.iter().map(|variant| points(&variant.axes)).fold(0, usize::saturating_add);
        Self { experiment: manifest.name.clone(), variants, axes: manifest.axes.len() }
    }
}

enum Faults {
    OfManifest(Diagnostics),
    OfTemplate(Failure),
}

impl Faults {
    fn show(&self, path: &Path, console: &mut Console) {
        let number = match self {
            Self::OfManifest(diagnostics) => {
                let (color, width) = (console.error_color, console.error_width());
                console.show(diagnostics.render_within(color, width).trim_end());
                diagnostics.items.len() + diagnostics.omitted
            }
            Self::OfTemplate(fault) => {
                console.fail(fault);
                1
            }
        };
        console.say(&format!("\n{}: {}", path.display(), count(number, "fault")));
    }
}

/// One manifest in the output of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    version: u32,
    manifest: &'a Path,
    ok: bool,
    #[serde(flatten)]
    sound: Option<&'a Sound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<Vec<Fault<'a>>>,
    /// Number of further faults.
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<usize>,
}

#[derive(Default, Serialize)]
struct Fault<'a> {
    message: &'a str,
    /// 1-based; `None` if the fault concerns the whole file.
    line: Option<usize>,
    column: Option<usize>,
    /// Text about the marked place.
    label: Option<&'a str>,
    hint: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn new(manifest: &'a Path, checked: &'a Result<Sound, Faults>) -> Self {
        let line = Self { version: VERSION, manifest, ok: checked.is_ok(), sound: None, faults: None, omitted: None };
        match checked {
            Ok(sound) => Self { sound: Some(sound), ..line },
            Err(Faults::OfTemplate(fault)) => Self {
                faults: Some(vec![Fault { message: &fault.message, ..Fault::default() }]),
                omitted: Some(0),
                ..line
            },
            Err(Faults::OfManifest(diagnostics)) => {
                let fault = |item: &'a Diagnostic| {
                    let place = diagnostics.place(item);
                    Fault {
                        message: &item.message,
                        line: place.map(|(line, _)| line),
                        column: place.map(|(_, column)| column),
                        label: item.label.as_deref(),
                        hint: item.hint.as_deref(),
                    }
                };
                let faults = diagnostics.in_order().into_iter().map(fault).collect();
                Self { faults: Some(faults), omitted: Some(diagnostics.omitted), ..line }
            }
        }
    }
}

/// Number of points of these axes; saturates on overflow.
fn points(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.values.len()).fold(1, usize::saturating_mul)
}

fn count(number: usize, what: &str) -> String {
    match (number, what) {
        (1, _) => format!("1 {what}"),
        (_, "axis") => format!("{number} axes"),
        _ => format!("{number} {what}s"),
    }
}
