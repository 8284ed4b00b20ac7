//! `runner run` with several manifests: runs one experiment after another and prints one table at the end.
//!
//! Each experiment has its own worker, journal and report. A fault in any manifest ends the command before the first
//! run; with a base, the comparison page names the fault, and the other experiments are compared. A failed experiment
//! does not stop the next one; an interrupt does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cli::options::{RunOptions, network};
use crate::cli::{ReachArgs, RunArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use crate::session::{BaseAndNew, Ended, compare, interrupt};
use runner_compile::Network;
use runner_experiment::Manifest;
use runner_lang::format::seconds;
use runner_results::analyse::compare::Failed;
use runner_workers::Urgency;

pub struct Line {
    pub experiment: String,
    /// How the experiment ended; `None` after an interrupt.
    pub ended: Option<Ended>,
    pub took: Duration,
}

pub fn run(args: &RunArgs, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(narrowing) = args.narrowing.describe() {
        return Err(Failure::usage(format!("{narrowing} applies to one experiment: run the manifests one by one")));
    }
    let is_compared = args.against.against.is_some();
    let mut lines: Vec<Line> = Vec::new();
    let mut failed: Vec<Failed> = Vec::new();
    let manifests = if is_compared {
        let mut found = Vec::new();
        for (path, manifest) in load_each(&args.manifests, &args.trust.reach, network(args.offline), console) {
            match manifest {
                Ok(manifest) => found.push((path, manifest)),
                Err(failure) => {
                    console.fail(&failure);
                    let (experiment, why) = (path.display().to_string(), failure.first_line().to_owned());
                    let ended = Some(Ended { exit: failure.exit, counts: why.clone(), both: None });
                    lines.push(Line { experiment: experiment.clone(), ended, took: Duration::ZERO });
                    failed.push(Failed { experiment, why });
                }
            }
        }
        found
    } else {
        load_all(&args.manifests, &args.trust.reach, network(args.offline), console)?
    };
    let interrupt = interrupt()?;
    let mut runs: Vec<BaseAndNew> = Vec::new();
    for (path, manifest) in &manifests {
        let (experiment, started) = (manifest.name.clone(), Instant::now());
        if interrupt.urgency() > Urgency::None {
            lines.push(Line { experiment, ended: None, took: Duration::ZERO });
            continue;
        }
        let own = of_one(args, path, manifest)?;
        let mut ended = super::run_with_pages(own, manifest, &interrupt, console).unwrap_or_else(|failure| {
            console.fail(&failure);
            let counts = failure.first_line().to_owned();
            failed.push(Failed { experiment: manifest.name.clone(), why: counts.clone() });
            Ended { exit: failure.exit, counts, both: None }
        });
        runs.extend(ended.both.take());
        lines.push(Line { experiment, ended: Some(ended), took: started.elapsed() });
    }
    let quiet = args.display.quiet || args.json;
    if !is_compared {
        return finish(&lines, quiet, console);
    }
    // The table goes to standard error: standard output is for the comparison, which a program may read.
    if !quiet {
        console.say(table(&lines).trim_end());
    }
    let exit = worst(&lines);
    if runs.is_empty() && failed.is_empty() && args.folders.is_empty() {
        return Ok(exit);
    }
    let compared = compare(runs, failed, args, console)?;
    Ok(if weight(exit) > weight(compared) { exit } else { compared })
}

/// Prints the table and returns the command's exit code.
pub fn finish(lines: &[Line], quiet: bool, console: &mut Console) -> Result<Exit, Failure> {
    if !quiet {
        console.print(&table(lines))?;
    }
    Ok(worst(lines))
}

/// All manifests, or the faults in any of them.
pub fn load_all<'a>(
    paths: &'a [PathBuf],
    reach: &ReachArgs,
    network: Network,
    console: &mut Console,
) -> Result<Vec<(&'a Path, Manifest)>, Failure> {
    let (mut manifests, mut faults) = (Vec::new(), Vec::new());
    for (path, manifest) in load_each(paths, reach, network, console) {
        match manifest {
            Ok(manifest) => manifests.push((path, manifest)),
            Err(failure) => faults.push(failure.message),
        }
    }
    let message = faults.join("\n\n");
    if faults.is_empty() {
        Ok(manifests)
    } else {
        Err(Failure { exit: Exit::Usage, message, is_rendered: true, is_held: false })
    }
}

/// Each manifest, or its faults.
fn load_each<'a>(
    paths: &'a [PathBuf],
    reach: &ReachArgs,
    network: Network,
    console: &mut Console,
) -> Vec<(&'a Path, Result<Manifest, Failure>)> {
    let mut places: BTreeMap<String, &Path> = BTreeMap::new();
    let mut load = |path: &'a PathBuf| {
        let manifest = load_manifest(path, reach, network, console)?;
        let Some(first) = places.insert(manifest.name.clone(), path) else { return Ok(manifest) };
        let (name, first, second) = (&manifest.name, first.display(), path.display());
        let message = format!(
            "error: {first} and {second} both define experiment `{name}`: one report would overwrite the other"
        );
        Err(Failure { exit: Exit::Usage, message, is_rendered: true, is_held: false })
    };
    paths.iter().map(|path| (path.as_path(), load(path))).collect()
}

fn of_one(args: &RunArgs, path: &Path, manifest: &Manifest) -> Result<RunOptions, Failure> {
    let out = args.out.as_ref().map(|out| out.join(&manifest.name));
    Ok(RunOptions { out, ..RunOptions::of_run(args, path)? })
}

/// Table of all experiments, with lines such as `reduce   ok   12.1 s   130 of 130 cases measured, …`.
fn table(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.experiment.chars().count()).max().unwrap_or(0);
    let mut text = String::from("\n");
    for Line { experiment, ended, took } in lines {
        let word = ended.as_ref().map_or("not run", |ended| word(ended.exit));
        let counts = ended.as_ref().map_or("", |ended| ended.counts.as_str());
        let line = format!("{experiment:<width$}  {word:<11}  {:>9}  {counts}", seconds(took.as_secs_f64()));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let ok = lines.iter().filter(|line| line.ended.as_ref().is_some_and(|e| matches!(e.exit, Exit::Success))).count();
    let all: Duration = lines.iter().map(|line| line.took).sum();
    text + format!("{ok} of {} experiments succeeded in {}.\n", lines.len(), seconds(all.as_secs_f64())).as_str()
}

const fn word(exit: Exit) -> &'static str {
    match exit {
        Exit::Success => "ok",
        Exit::CaseFailed => "failed",
        Exit::Regression => "slower",
        Exit::Incomparable => "incomparable",
        Exit::BrokenClaim => "claim broken",
        Exit::Usage => "refused",
        Exit::Environment => "error",
        Exit::Interrupted => "interrupted",
    }
}

/// Severity of an exit code: an interrupt outranks an environment failure, which outranks failed cases.
const fn weight(exit: Exit) -> u8 {
    match exit {
        Exit::Success => 0,
        Exit::Incomparable => 1,
        Exit::Regression => 2,
        Exit::BrokenClaim => 3,
        Exit::CaseFailed => 4,
        Exit::Usage => 5,
        Exit::Environment => 6,
        Exit::Interrupted => 7,
    }
}

fn worst(lines: &[Line]) -> Exit {
    let exits = lines.iter().map(|line| line.ended.as_ref().map_or(Exit::Interrupted, |ended| ended.exit));
    exits.max_by_key(|exit| weight(*exit)).unwrap_or(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(experiment: &str, exit: Option<Exit>) -> Line {
        let ended = exit.map(|exit| Ended { exit, counts: "3 of 3 cases passed.".to_owned(), both: None });
        Line { experiment: experiment.to_owned(), ended, took: Duration::from_millis(1250) }
    }

    #[test]
    fn the_table_names_every_experiment_and_what_became_of_it() {
        let lines = [line("copy", Some(Exit::Success)), line("reduce", Some(Exit::CaseFailed)), line("late", None)];
        let expected = "\ncopy    ok               1.2 s  3 of 3 cases passed.\n\
                        reduce  failed           1.2 s  3 of 3 cases passed.\n\
                        late    not run          1.2 s\n\
                        1 of 3 experiments succeeded in 3.8 s.\n";
        assert_eq!(table(&lines), expected);
    }

    #[test]
    fn the_worst_end_is_the_exit_code() {
        let worst_of = |exits: &[Option<Exit>]| worst(&exits.iter().map(|exit| line("x", *exit)).collect::<Vec<_>>());
        assert_eq!(worst_of(&[Some(Exit::Success), Some(Exit::Success)]), Exit::Success);
        assert_eq!(worst_of(&[Some(Exit::Success), Some(Exit::CaseFailed)]), Exit::CaseFailed);
        assert_eq!(worst_of(&[Some(Exit::BrokenClaim), Some(Exit::CaseFailed)]), Exit::CaseFailed);
        assert_eq!(worst_of(&[Some(Exit::BrokenClaim), Some(Exit::Success)]), Exit::BrokenClaim);
        assert_eq!(worst_of(&[Some(Exit::Environment), Some(Exit::CaseFailed)]), Exit::Environment);
        assert_eq!(worst_of(&[Some(Exit::CaseFailed), None]), Exit::Interrupted);
    }
}
