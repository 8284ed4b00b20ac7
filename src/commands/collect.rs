//! `runner collect`: writes the report of a submitted job, and says what is missing.

use std::fs;
use std::io::Write as _;
use std::path::{Component, Path};
use std::process::{Command as Process, Stdio};

use super::job_view::{counts, listed};
use super::merge::{Report, Target};
use super::send::send_rest;
use super::{compare, history, merge, status};
use crate::cli::{Cli, CollectArgs, Command, GateArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::session::breaks_claims;
use runner_cluster::{Job, State, Submission, is_reported, mark_collected, report_of_search, shards_folder};
use runner_lang::format::visible_lines;
use runner_results::journal::{RECORDS_FILE, read_records};
use runner_types::RunContext;

pub fn run(args: &CollectArgs, console: &mut Console) -> Result<Exit, Failure> {
    let job = Job::read(&args.job).map_err(Failure::usage)?;
    let submissions = Submission::all(&args.job, &job).map_or(0, |all| all.len() as u32);
    let out = match &args.out {
        Some(named) => Some(named.as_path()),
        None => job.out.as_deref().map(below_here).transpose()?,
    };
    let mut headline = Vec::new();
    let collected = collect(&args.job, &job, out, &mut headline, console);
    let scripts = args.send_rest.as_deref().zip(args.own_script.as_deref());
    let rest = scripts.map(|scripts| send_rest(&args.job, &job, scripts, console)).transpose();
    if matches!(rest, Ok(Some(true))) {
        return collected;
    }
    let collected = rest.and(collected);
    if let Some(line) = &args.notify {
        notify(line, &job, &headline, &collected, console);
    }
    // Mark the job even after a failure: a user who waits for this job finds its output in the log.
    let failure = collected.as_ref().err().map(Failure::first_line);
    if let Err(error) = mark_collected(&args.job, submissions, failure) {
        // Users without write access can collect too.
        console.say(&format!("warning: could not mark the job as collected: {error}"));
    }
    collected
}

/// Runs the user's shell command with the outcome of a job on its standard input.
fn notify(line: &str, job: &Job, headline: &[String], outcome: &Result<Exit, Failure>, console: &mut Console) {
    let (exit, failure) = match outcome {
        Ok(exit) => (*exit, None),
        Err(failure) => (failure.exit, Some(failure.message.as_str())),
    };
    let text: String = headline.iter().map(String::as_str).chain(failure).flat_map(|line| [line, "\n"]).collect();
    let started = Process::new("/bin/sh")
        .args(["-c", line])
        .env("RUNNER_JOB", &job.name)
        .env("RUNNER_EXIT", (exit as i32).to_string())
        .stdin(Stdio::piped())
        .spawn();
    let ended = started.and_then(|mut child| {
        if let Some(mut input) = child.stdin.take() {
            // The command may exit without reading its input.
            let _ = input.write_all(visible_lines(&text).as_bytes());
        }
        child.wait()
    });
    match ended {
        Ok(status) if status.success() => {}
        Ok(status) => console.say(&format!("warning: `notify` ended with {status}: {line}")),
        Err(error) => console.say(&format!("warning: `notify` did not run: {error}")),
    }
}

/// Reports folder that a job names. Someone else may have written the job, so only folders below the working directory
/// are allowed, with symbolic links resolved.
fn below_here(out: &Path) -> Result<&Path, Failure> {
    let here = fs::canonicalize(".").unwrap_or_default();
    let real = |part: &Path| fs::canonicalize(if part.as_os_str().is_empty() { Path::new(".") } else { part }).ok();
    let climbs = out.components().any(|part| part == Component::ParentDir);
    if !climbs && out.ancestors().find_map(real).is_some_and(|real| real.starts_with(&here)) {
        return Ok(out);
    }
    let out = out.display();
    Err(Failure::usage(format!(
        "the job writes its reports to `{out}`, outside the working directory: to allow that, pass the folder with \
         --out"
    )))
}

/// Merges the journals in the job's folder into `out` and names the shards without results, with the scheduler's
/// reasons. For a search, only names the shards. Appends the outcome in a few lines to `headline`.
pub fn collect(
    dir: &Path,
    job: &Job,
    out: Option<&Path>,
    headline: &mut Vec<String>,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let mut submissions = Submission::all(dir, job).map_err(Failure::environment)?;
    let shards = status::shards(dir, job, &mut submissions, console);
    let open: Vec<_> = shards.iter().filter(|shard| shard.state != State::Done).cloned().collect();
    headline.push(counts(job, &shards));
    console.print(&(counts(job, &shards) + "\n" + &listed(dir, job, &open)))?;
    if job.searches {
        // The search's last task writes the report itself.
        if let Some(folder) = report_of_search(dir, &shards).filter(|_| open.is_empty()) {
            show_report(&job.directory.join(folder), console)?;
        }
        return Ok(if open.is_empty() { Exit::Success } else { Exit::CaseFailed });
    }
    let sources = vec![shards_folder(dir)];
    let nothing = || Failure::environment("no shard has a result yet");
    if open.len() == shards.len() && !sources[0].exists() {
        return Err(nothing());
    }
    let version = Submission::version(&submissions);
    let counts = |journal: &Path, run: &RunContext| is_reported(journal, run, version);
    let merged = merge::merge(&sources, &Target { out, job: Some(&job.name), counts: &counts }, console)?;
    if merged.reports.is_empty() {
        return Err(nothing());
    }
    let compared = compare_reports(job, &merged.reports, headline, console);
    for Report { folder, records, .. } in &merged.reports {
        headline.push(format!("{}: {}", records.header.experiment, runner_report::counts(records)));
        let claims = runner_report::open_claims(records);
        claims.iter().try_for_each(|line| console.print(&format!("{line}\n")))?;
        headline.extend(claims);
        headline.extend(runner_report::verdict(records).map(|answer| answer.sentence));
        headline.push(format!("report: {}", folder.join(runner_report::REPORT_FILE).display()));
    }
    let is_whole = open.is_empty() && merged.exit == Exit::Success;
    Ok(match compared {
        Exit::CaseFailed => Exit::CaseFailed,
        _ if !is_whole => Exit::CaseFailed,
        _ if merged
            .reports
            .iter()
            .any(|report| breaks_claims(GateArgs { gate: job.gate, strict: false }, &report.records)) =>
        {
            Exit::BrokenClaim
        }
        other => other,
    })
}

/// Shows the counts, the answer and the path of a report.
fn show_report(folder: &Path, console: &mut Console) -> Result<(), Failure> {
    let records = match read_records(&folder.join(RECORDS_FILE)) {
        Ok(records) => records,
        Err(error) => {
            // The tasks have ended all the same.
            console.say(&format!("warning: {error}"));
            return Ok(());
        }
    };
    console.print(&format!("{}: {}\n", records.header.experiment, runner_report::counts(&records)))?;
    for line in runner_report::open_claims(&records) {
        console.print(&format!("{line}\n"))?;
    }
    if let Some(answer) = runner_report::verdict(&records) {
        console.print(&format!("{}\n", answer.sentence))?;
    }
    console.print(&format!("report: {}\n", folder.join(runner_report::REPORT_FILE).display()))
}

/// Compares each report with its version at the job's base revision, and shows its history.
fn compare_reports(job: &Job, reports: &[Report], headline: &mut Vec<String>, console: &mut Console) -> Exit {
    let Some(revision) = &job.compare_with else { return Exit::Success };
    let mut worst = Exit::Success;
    for Report { folder, usual, .. } in reports {
        let folder = folder.display().to_string();
        let base = format!("{revision}:{}", usual.display());
        for words in [vec!["compare", &base, &folder], vec!["history", &folder]] {
            match command(&words, headline, console) {
                Ok(exit) => worst = first(worst, exit),
                // A new experiment has no report at that revision.
                Err(failure) => console.say(&format!("warning: {}: {}", words.join(" "), failure.message)),
            }
        }
    }
    worst
}

/// Compares reports like the command line does. Parsing the words ensures that no text of the job is taken for an
/// option.
fn command(words: &[&str], headline: &mut Vec<String>, console: &mut Console) -> Result<Exit, Failure> {
    let (name, folders) = words.split_at(1);
    let words = [&["runner"], name, &["--"], folders].concat();
    let parsed = Cli::read(words).map_err(Failure::usage)?;
    match &parsed.command {
        Command::Compare(args) => compare::with_headline(args, console).map(|(exit, line)| {
            headline.push(line);
            exit
        }),
        Command::History(args) => history::run(args, console),
        other => Err(Failure::usage(format!("not a comparison: {other:?}"))),
    }
}

/// The more severe exit code: newly wrong, then slower, then incomparable.
fn first(one: Exit, other: Exit) -> Exit {
    let order = [Exit::CaseFailed, Exit::Regression, Exit::Incomparable];
    order.into_iter().find(|exit| *exit == one || *exit == other).unwrap_or(Exit::Success)
}
