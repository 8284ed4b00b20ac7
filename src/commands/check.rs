//! `runner check`: validates manifests without running anything.

use std::path::Path;

use crate::cli::CheckArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::templates;
use runner_experiment::{Axis, Manifest};

pub fn run(args: &CheckArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    for path in &args.manifests {
        match runner_manifest::load_within(path, args.reach.project_of(path)?) {
            Ok(manifest) => match templates::of_manifest(&manifest, console) {
                Ok(_) => console.print(&summary(path, &manifest))?,
                Err(fault) => {
                    console.fail(&fault);
                    console.say(&format!("\n{}: {}", path.display(), count(1, "fault")));
                    exit = Exit::Usage;
                }
            },
            Err(diagnostics) => {
                let (color, width) = (console.error_color, console.error_width());
                console.show(diagnostics.render_within(color, width).trim_end());
                console.say(&format!(
                    "\n{}: {}",
                    path.display(),
                    count(diagnostics.items.len() + diagnostics.omitted, "fault")
                ));
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}

fn summary(path: &Path, manifest: &Manifest) -> String {
    let variants = manifest.variants.iter().map(|variant| points(&variant.axes)).fold(0, usize::saturating_add);
    format!("{}: ok: {}, {}\n", path.display(), count(variants, "variant"), count(manifest.axes.len(), "axis"))
}

/// Number of points of these axes; the largest number if there are more.
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
