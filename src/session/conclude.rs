//! End of a run: closes the journal, writes the report, shows the results.
//!
//! The report is generated from the journal as read back from disk, so that it never contains more than the journal.

use std::path::Path;
use std::time::Instant;

use super::destination::Destination;
use super::ended::Ended;
use super::recorder::Recorder;
use crate::cli::GateArgs;
use crate::cli::options::{Kind, RunOptions};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::templates;
use runner_lang::format;
use runner_report::{Answer, RenderError};
use runner_results::analyse;
use runner_results::analyse::ClaimState;
use runner_results::journal;
use runner_results::journal::{Contents, FolderLock, Spent};
use runner_types::{CaseRecord, Event, Outcome, Records, Verdict};
use runner_workers::RunEnd;

/// A finished run whose report is not written yet.
#[derive(Debug)]
pub struct Unwritten<'a> {
    pub end: &'a RunEnd,
    pub started: Instant,
    pub recorder: Recorder,
    pub destination: &'a Destination,
}

/// Ends the journal, writes the report and shows the results.
pub fn conclude(run: Unwritten<'_>, options: &RunOptions, console: &mut Console) -> Result<Ended, Failure> {
    let (end, destination) = (run.end, run.destination);
    // The report of a single shard would look like the whole plan's.
    let conclude = if options.shard.is_some() { close } else { finish };
    let Written { records, spent, .. } = conclude(run)?;
    let mut exit = exit(options.gate, end, &records);
    // The purpose of a trial is to run its kernels, so a launch that the device does not allow is a failure.
    let is_trial = matches!(options.kind, Kind::Try { .. });
    if is_trial && exit.as_ref().is_ok_and(|exit| *exit == Exit::Success) && not_launched(&records).is_some() {
        exit = Ok(Exit::CaseFailed);
    }
    if options.json {
        let code = exit.as_ref().map_or_else(|failure| failure.exit, |exit| *exit);
        console.print(&runner_report::events::end(&records, &destination.dir, options.shard.is_none(), code as u8))?;
    } else {
        show(options, &records, &spent, destination, console)?;
    }
    Ok(Ended { exit: exit?, counts: runner_report::counts(&records), both: None })
}

/// A run whose files are written.
#[derive(Debug)]
pub struct Written {
    pub records: Records,
    pub spent: Spent,
    /// Lock of the folder, so that no other process writes there meanwhile.
    pub lock: FolderLock,
}

/// Ends the journal, reads it back and writes everything derived from it.
pub fn finish(run: Unwritten<'_>) -> Result<Written, Failure> {
    let (end, destination) = (run.end, run.destination);
    let written = close(run)?;
    // After an environment failure, keep the previous run's records.
    if matches!(end, RunEnd::Environment(_)) && destination.dir.join(journal::RECORDS_FILE).exists() {
        return Ok(written);
    }
    let write = || runner_report::write_all(&destination.dir, &written.lock, &written.records);
    templates::watched(&written.records, write)?.map_err(|error| {
        let dir = destination.dir.display();
        let template = if matches!(error, RenderError::OfUser { .. }) { " --template FILE" } else { "" };
        let remedy =
            format!("the journal has every result: `runner report {dir} --from-journal{template}` writes the rest");
        Failure::environment(format!("{error}; {remedy}"))
    })?;
    Ok(written)
}

/// Reads the journal back, adds the ratios of its samples, and ends it.
pub fn close(run: Unwritten<'_>) -> Result<Written, Failure> {
    let Unwritten { end, started, mut recorder, destination } = run;
    let complete = *end == RunEnd::Complete;
    let finished = Event::RunFinished { complete, wall_seconds: started.elapsed().as_secs_f64() };
    match analysed(&destination.dir.join(journal::JOURNAL_FILE), &finished) {
        Ok(Analysed { records, ratios, spent }) => {
            // Ratios must precede the end of the run: a journal with an end is complete.
            ratios.iter().chain([&finished]).for_each(|event| recorder.emit(event));
            Ok(Written { records, spent, lock: recorder.close()? })
        }
        // This journal is unusable, so it must not end like a finished run's.
        Err(failure) => recorder.close().and(Err(failure)),
    }
}

struct Analysed {
    records: Records,
    /// Ratios to append to it.
    ratios: Vec<Event>,
    /// Time that the last run took.
    spent: Spent,
}

/// Reads a journal that will end with `end`.
fn analysed(path: &Path, end: &Event) -> Result<Analysed, Failure> {
    let history = journal::read(path).and_then(Contents::into_history);
    let mut history = history.map_err(Failure::environment)?;
    history.add(end.clone());
    let spent = history.run().map(|run| run.spent.clone()).unwrap_or_default();
    let made = analyse::records_and_ratios(history);
    let (records, ratios) = made.map_err(Failure::environment)?;
    Ok(Analysed { records, ratios, spent })
}

fn show(
    options: &RunOptions,
    records: &Records,
    spent: &Spent,
    destination: &Destination,
    console: &mut Console,
) -> Result<(), Failure> {
    if options.kind == Kind::Probe {
        return Ok(());
    }
    if options.display.quiet {
        // Failed cases were already shown as they occurred.
        if let Some(line) = runner_report::incomplete(records) {
            console.show(&line);
        }
        if breaks_claims(options.gate, records) {
            for line in runner_report::open_claims(records) {
                console.show(&line);
            }
        }
        return Ok(());
    }
    if options.kind != Kind::OneOfSeveral {
        let screen = console.screen();
        console.print(&runner_report::terminal(records, screen))?;
    }
    let (what, file) = match options.shard {
        Some(_) => ("journal", journal::JOURNAL_FILE),
        None => ("report", runner_report::REPORT_FILE),
    };
    if options.kind == (Kind::Try { keeps_report: false }) {
        console.say("--out DIR keeps the report, --save FILE writes the manifest");
    } else {
        console.print(&format!("{what}: {}\n", destination.dir.join(file).display()))?;
    }
    if let Some(line) = times(spent) {
        console.say(&line);
    }
    // The answer comes last, since the last line is read first.
    let is_whole = options.kind != Kind::OneOfSeveral && options.shard.is_none();
    let is_trial = matches!(options.kind, Kind::Try { .. });
    let alone = || Some(Answer { reasons: Vec::new(), sentence: alone(records).filter(|_| is_trial)? });
    if let Some(Answer { reasons, sentence }) = runner_report::verdict(records).or_else(alone).filter(|_| is_whole) {
        for line in reasons.iter().chain([&sentence]) {
            console.print(&format!("{line}\n"))?;
        }
    }
    if let Some(sentence) = not_launched(records).filter(|_| is_trial) {
        console.print(&format!("{sentence}\n"))?;
    }
    Ok(())
}

/// Summary sentence of a trial with only one kernel, unless it could not be launched.
fn alone(records: &Records) -> Option<String> {
    let (first, rest) = records.cases.split_first()?;
    let name = &first.case.key.variant;
    let is_alone = rest.iter().all(|record| record.case.key.variant == *name);
    let is_right = records.cases.iter().all(|record| record.verdict == Verdict::Pass);
    (is_alone && not_launched(records).is_none()).then(|| {
        if is_right {
            format!("`{name}` is right: it matches the reference.")
        } else {
            format!("`{name}` ran without a fault; name a second kernel to compare it with, as in -k {name} -k OTHER.")
        }
    })
}

/// The first kernel whose launch the device does not allow, with what to do.
fn not_launched(records: &Records) -> Option<String> {
    records.cases.iter().find_map(|record| match &record.outcome {
        Outcome::Invalid { limit } => Some(format!(
            "`{}` did not run: {limit}; choose others with --block, --grid or --n.",
            record.case.key.variant
        )),
        _ => None,
    })
}

/// Describes the time: `time: 5.2 s (compile 1.1 s, transfer 0.3 s, check 0.6 s, measure 2.9 s, idle 0.3 s; compiling
/// meanwhile 2.0 s)`.
fn times(spent: &Spent) -> Option<String> {
    let (wall, idle) = (spent.wall?, spent.idle()?);
    let phases = spent.phases.iter().map(|(phase, seconds)| format!("{phase} {}", format::seconds(*seconds)));
    let parts: Vec<String> = phases.chain([format!("idle {}", format::seconds(idle))]).collect();
    // Shorter times would print as 0.0 s.
    let beside = Some(spent.seconds_beside()).filter(|beside| *beside >= 0.05);
    let beside = beside.map(|beside| format!("; compiling meanwhile {}", format::seconds(beside))).unwrap_or_default();
    Some(format!("time: {} ({}{beside})", format::seconds(wall), parts.join(", ")))
}

/// Exit code by severity: environment failure, user's interrupt, failed cases, broken claims.
fn exit(gate: GateArgs, end: &RunEnd, records: &Records) -> Result<Exit, Failure> {
    match end {
        RunEnd::Environment(why) => Err(Failure::environment(why)),
        RunEnd::Interrupted => Ok(Exit::Interrupted),
        RunEnd::Complete => Ok(judge(gate, records)),
    }
}

/// Exit code for a complete run.
pub fn judge(gate: GateArgs, records: &Records) -> Exit {
    let fails = |case: &CaseRecord| case.outcome.is_failure() || (gate.strict && case.has_weak_check());
    if records.cases.iter().any(fails) {
        Exit::CaseFailed
    } else if breaks_claims(gate, records) {
        Exit::BrokenClaim
    } else {
        Exit::Success
    }
}

/// Whether claims are judged and one does not hold.
pub fn breaks_claims(gate: GateArgs, records: &Records) -> bool {
    gate.gate && !claims_hold(gate, records)
}

fn claims_hold(gate: GateArgs, records: &Records) -> bool {
    analyse::claims(records).iter().all(|claim| match claim.state {
        ClaimState::Held => true,
        ClaimState::Broken => false,
        ClaimState::Undecided | ClaimState::NotApplicable => !gate.strict,
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::cli::{Cli, ColorChoice, Command};

    #[test]
    fn a_journal_of_which_nothing_can_be_made_does_not_end_as_that_of_a_finished_run() {
        let dir = tempfile::tempdir().unwrap();
        let Command::Run(args) = Cli::read(["runner", "run", "m.toml"]).unwrap().command else { unreachable!() };
        let options = RunOptions::of_run(&args, &args.manifests[0]).unwrap();
        let destination = Destination { dir: dir.path().to_owned() };
        let mut console = Console::new(ColorChoice::Never);
        let (mut recorder, _) = Recorder::open(&options, "x", &destination, &mut console).unwrap();
        recorder.emit(&Event::CompileStarted { units: 1 });
        let failure =
            close(Unwritten { end: &RunEnd::Complete, started: Instant::now(), recorder, destination: &destination })
                .unwrap_err();
        assert!(failure.message.contains("the journal has no run"), "{}", failure.message);
        let text = std::fs::read_to_string(dir.path().join(journal::JOURNAL_FILE)).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
