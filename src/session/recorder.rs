//! Receives every event of a run: writes it to the journal, shows progress, and prints it as JSON if requested.
//!
//! Outcomes become expected failures here, since workers do not know what the manifest expects.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use crate::cli::options::RunOptions;
use crate::console::Console;
use crate::failure::Failure;
use runner_experiment::{ExpectedFailure, Manifest};
use runner_lang::Scope;
use runner_plan::Plan;
use runner_progress::Progress;
use runner_report::events::EventLines;
use runner_results::journal::{self, FolderLock, Held, JOURNAL_FILE, Journal, JournalError, RECORDS_FILE};
use runner_results::stored;
use runner_types::{CaseKey, Event, Value};

use super::destination::Destination;

#[derive(Debug)]
struct ExpectedFailures {
    /// Name of the variant in case keys.
    variant: String,
    /// Values of the axes that only this variant has.
    own: Vec<(Arc<str>, Value)>,
    fails: Vec<ExpectedFailure>,
}

impl ExpectedFailures {
    /// Ways in which a case is expected to fail.
    fn find(&self, key: &CaseKey) -> Vec<runner_types::Failure> {
        let shared = key.axes.iter().map(|(name, value)| (Arc::from(name.as_str()), value.clone()));
        let scope: Scope = shared.chain(self.own.iter().cloned()).collect();
        // Validation allows only axes in conditions, so they can be evaluated here.
        let applies = |fails: &&ExpectedFailure| {
            fails.condition.as_ref().is_none_or(|condition| condition.evaluate_bool(&scope).unwrap_or(true))
        };
        self.fails.iter().filter(applies).map(|fails| fails.failure).collect()
    }
}

#[derive(Debug)]
pub struct Recorder {
    journal: Journal,
    progress: Progress,
    /// Lines for standard output, if requested.
    lines: Option<EventLines>,
    expected_failures: Vec<ExpectedFailures>,
    /// First journal error. The run goes on, but fails at the end.
    lost: Option<JournalError>,
}

impl Recorder {
    /// Starts a new journal, or continues the existing one and returns its finished work.
    pub fn open(
        options: &RunOptions,
        experiment: &str,
        destination: &Destination,
        console: &mut Console,
    ) -> Result<(Self, Held), Failure> {
        not_of_another(&destination.dir, experiment)?;
        let failure = |error: JournalError| unusable(options, &error);
        let (journal, held) = if options.resume {
            let (journal, contents) = Journal::append_to(&destination.dir).map_err(failure)?;
            for damaged in contents.damaged() {
                let line = stored::damaged_line(&destination.dir.join(JOURNAL_FILE), damaged);
                console.say(&format!("warning: {line}"));
            }
            let history = contents.into_history().map_err(failure)?;
            let other = history.run().map(|run| run.header.experiment.as_str());
            same_experiment(other, experiment, &destination.dir)?;
            (journal, history.held())
        } else {
            (Journal::create(&destination.dir).map_err(failure)?, Held::default())
        };
        let progress = Progress::new(options.style(), console.error_color);
        let lines = options.json.then(EventLines::default);
        Ok((Self { journal, progress, lines, expected_failures: Vec::new(), lost: None }, held))
    }

    /// From now on, compares outcomes with the failures that the manifest expects. Variant names in `renamed` are
    /// replaced first; then `suffix` is appended.
    pub fn expect(&mut self, manifest: &Manifest, plan: &Plan, suffix: &str, renamed: &BTreeMap<String, String>) {
        let failures_of = |variant: &runner_plan::PlannedVariant| {
            let spec = &manifest.variants[variant.spec];
            let fails = plan.device().map_or(spec.fails.as_slice(), |device| spec.fails_on(device.backend));
            (!fails.is_empty()).then(|| ExpectedFailures {
                variant: format!("{}{suffix}", renamed.get(&variant.name).unwrap_or(&variant.name)),
                own: variant.own.clone(),
                fails: fails.to_vec(),
            })
        };
        self.expected_failures.extend(plan.variants().iter().filter_map(failures_of));
    }

    pub fn emit(&mut self, event: &Event) {
        let judged = self.judged(event);
        let event = judged.as_ref().unwrap_or(event);
        self.progress.observe(event);
        if let Some(lines) = &mut self.lines {
            let text = lines.observe(event);
            // A closed reader does not end the run: the journal has every event.
            let mut stdout = io::stdout().lock();
            let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        }
        if self.lost.is_none() {
            self.lost = self.journal.record(event).err();
        }
    }

    /// Outcome of a case with an expected failure; `None` for every other event.
    fn judged(&self, event: &Event) -> Option<Event> {
        let Event::CaseSettled { case, fingerprint, outcome, work } = event else { return None };
        let fails = self.expected_failures.iter().find(|known| known.variant == case.key.variant)?.find(&case.key);
        if fails.is_empty() {
            return None;
        }
        let (outcome, fingerprint) = (outcome.clone().expecting(&fails), fingerprint.clone());
        Some(Event::CaseSettled { case: case.clone(), fingerprint, outcome, work: *work })
    }

    /// Ends the display. Fails if an event could not be written. The folder stays locked for writing the report.
    pub fn close(mut self) -> Result<FolderLock, Failure> {
        self.progress.finish();
        if let Some(error) = self.lost {
            let remedy = "free some space and run again with --resume";
            return Err(Failure::environment(format!("the journal is incomplete: {error}; {remedy}")));
        }
        Ok(self.journal.close())
    }
}

/// Why the report's folder cannot be used, with the option that names it or could name another one.
fn unusable(options: &RunOptions, error: &JournalError) -> Failure {
    let message = match (error, &options.out) {
        (JournalError::Io { .. }, Some(out)) => {
            format!("--out {}: {error}; name a writable folder", out.display())
        }
        (JournalError::Io { .. }, None) => format!("{error}; pass a writable folder with --out"),
        (JournalError::Corrupt { path, line, message }, _) => {
            format!("--resume: {}:{line}: {message}: the file is damaged; run without --resume", path.display())
        }
        // These messages already say what to do.
        _ => error.to_string(),
    };
    Failure::environment(message)
}

/// Refuses a folder with the report of another experiment, which would be overwritten.
pub(super) fn not_of_another(dir: &Path, experiment: &str) -> Result<(), Failure> {
    // An unreadable file is not a report.
    let Ok(known) = journal::header_of(&dir.join(RECORDS_FILE)) else { return Ok(()) };
    let other = known.experiment;
    if other == experiment {
        return Ok(());
    }
    let dir = dir.display();
    Err(Failure::usage(format!(
        "{dir} holds the report of experiment `{other}`, not `{experiment}`: name another folder with --out, or \
         remove this one"
    )))
}

/// Refuses to continue the journal of another experiment.
fn same_experiment(other: Option<&str>, experiment: &str, dir: &Path) -> Result<(), Failure> {
    let Some(other) = other.filter(|other| *other != experiment) else { return Ok(()) };
    let dir = dir.display();
    Err(Failure::usage(format!(
        "--resume: {dir} holds the journal of experiment `{other}`, not `{experiment}`: name another folder with \
         --out, or run without --resume"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, ColorChoice, Command};

    /// Why a run into `dir` is refused.
    fn refused(options: &[&str], dir: &Path) -> Option<String> {
        let words = ["runner", "run", "m.toml"].iter().chain(options);
        let Command::Run(args) = Cli::read(words).ok()?.command else { return None };
        let options = RunOptions::of_run(&args, &args.manifests[0]).ok()?;
        let destination = Destination { dir: dir.to_owned() };
        let opened = Recorder::open(&options, "x", &destination, &mut Console::new(ColorChoice::Never));
        opened.err().map(|failure| failure.message)
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_reported_with_its_option() -> io::Result<()> {
        let place = tempfile::tempdir()?;
        let file = place.path().join("file");
        std::fs::write(&file, "")?;
        let dir = file.join("out");
        let why = format!("cannot create the folder {}: {} is a file", dir.display(), file.display());
        let named = format!("--out there: {why}; name a writable folder");
        assert_eq!(refused(&["--out", "there"], &dir), Some(named.clone()));
        assert_eq!(refused(&["--out", "there", "--resume"], &dir), Some(named));
        let unnamed = format!("{why}; pass a writable folder with --out");
        assert_eq!(refused(&[], &dir), Some(unnamed));
        Ok(())
    }

    #[test]
    fn the_report_of_another_experiment_is_not_overwritten() -> io::Result<()> {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/warp_primitives/simulated-h100");
        let place = tempfile::tempdir()?;
        std::fs::copy(shipped.join(RECORDS_FILE), place.path().join(RECORDS_FILE))?;
        let expected = format!(
            "{} holds the report of experiment `warp_primitives`, not `x`: name another folder with --out, or remove \
             this one",
            place.path().display()
        );
        for options in [&["--out", "there"][..], &["--out", "there", "--resume"]] {
            assert_eq!(refused(options, place.path()), Some(expected.clone()));
        }
        assert_eq!(std::fs::read_dir(place.path())?.count(), 1, "nothing is written there");
        // A report that is damaged after its header still counts as one.
        let header = std::fs::read_to_string(shipped.join(RECORDS_FILE))?.lines().next().unwrap_or_default().to_owned();
        std::fs::write(place.path().join(RECORDS_FILE), header + "\n{\"line\":\"ca")?;
        assert_eq!(refused(&["--out", "there"], place.path()), Some(expected));
        // A file that is not a report may be overwritten.
        std::fs::write(place.path().join(RECORDS_FILE), "{}")?;
        assert_eq!(refused(&["--out", "there"], place.path()), None);
        Ok(())
    }

    #[test]
    fn the_journal_of_another_experiment_is_not_continued() {
        let refusal = same_experiment(Some("reduce"), "copy", Path::new("out")).map_err(|failure| failure.message);
        let expected = "--resume: out holds the journal of experiment `reduce`, not `copy`: name another folder with \
                        --out, or run without --resume";
        assert_eq!(refusal, Err(expected.to_owned()));
        assert!(same_experiment(Some("reduce"), "reduce", Path::new("out")).is_ok());
        assert!(same_experiment(None, "copy", Path::new("out")).is_ok(), "the journal is empty");
    }
}
