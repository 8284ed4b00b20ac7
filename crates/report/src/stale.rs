//! Says which reports are not known to be current, and why.

use runner_lang::format::{plural, plural_of};
use runner_results::analyse::stale::{Finding, Part, Staleness};

/// Maximum number of names of one kind to list; further ones are only counted.
const MOST_NAMES: usize = 3;

/// Maximum number of reports to name in a sentence; further ones are only counted.
const MOST_REPORTS: usize = 6;

/// One sentence per reason why reports are stale, then one per reason why they may be.
pub fn sentences(found: &[Staleness]) -> Vec<String> {
    let (mut sure, mut doubtful) = (Reasons::default(), Reasons::default());
    for report in found {
        for finding in &report.findings {
            let reasons = if finding.doubt.is_none() { &mut sure } else { &mut doubtful };
            reasons.add(reason(finding), subject(report, finding));
        }
    }
    sure.sentences().chain(doubtful.sentences()).collect()
}

/// One sentence per reason why it is unknown whether reports are current.
pub fn unknown(found: &[Staleness]) -> Vec<String> {
    let mut reasons = Reasons::default();
    for report in found {
        if let Some(why) = &report.unknown {
            reasons
                .add(format!("Not checked whether the report fits the sources of this revision ({why})"), name(report));
        }
    }
    reasons.sentences().collect()
}

/// Reasons in the order in which they were found, each with the reports that it applies to.
#[derive(Default)]
struct Reasons(Vec<(String, Vec<String>)>);

impl Reasons {
    fn add(&mut self, reason: String, subject: String) {
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, subjects)) => subjects.push(subject),
            None => self.0.push((reason, vec![subject])),
        }
    }

    fn sentences(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(reason, subjects)| format!("{reason}: {}.", some(&subjects, MOST_REPORTS)))
    }
}

/// `1 stale report`, `2 reports that may be stale`; `None` if all are current or cannot be judged.
pub fn tally(found: &[Staleness]) -> Option<String> {
    let stale = found.iter().filter(|report| report.is_stale()).count();
    let doubtful = found.iter().filter(|report| !report.is_stale() && !report.findings.is_empty()).count();
    match (stale, doubtful) {
        (0, 0) => None,
        (0, count) => Some(plural_of(count as u64, "report that may be stale", "reports that may be stale")),
        (count, _) => Some(plural_of(count as u64, "stale report", "stale reports")),
    }
}

fn reason(Finding { part, files, files_known, doubt, .. }: &Finding) -> String {
    let files: Vec<String> = files.iter().cloned().collect();
    let sources = some(&files, MOST_NAMES);
    if let Some(why) = doubt {
        let what =
            if *part == Part::Options { "compiler options differ".to_owned() } else { differ(&sources, *files_known) };
        return format!("May be stale: {what}, but the code was not compared ({why})");
    }
    let what = match part {
        Part::Source => changed(&sources, *files_known),
        Part::Options => "its compiler options changed".to_owned(),
        Part::Inputs => "its inputs or arguments changed".to_owned(),
        Part::Check => return "Stale: checked before the check changed".to_owned(),
        Part::Work => "the stated work changed".to_owned(),
        Part::Kernel => "its kernel changed".to_owned(),
        Part::Grid => "its grid changed".to_owned(),
        Part::Block => "its block changed".to_owned(),
        Part::Shared => "its dynamic shared memory changed".to_owned(),
        Part::Removed => return "Stale: no longer in the manifest".to_owned(),
        Part::Added => return "Stale: in the manifest, not measured".to_owned(),
    };
    format!("Stale: measured before {what}")
}

fn changed(sources: &str, is_known: bool) -> String {
    if is_known { format!("{sources} changed") } else { format!("a source changed (one of {sources})") }
}

fn differ(sources: &str, is_known: bool) -> String {
    if is_known { format!("{sources} changed since") } else { format!("a source differs (one of {sources})") }
}

/// `vector of reduce on NVIDIA H100 80GB HBM3 (35 of 420 cases)`.
fn subject(report: &Staleness, finding: &Finding) -> String {
    let variants = some(&finding.variants, MOST_NAMES);
    let cases = if finding.part == Part::Added {
        plural(finding.cases as u64, "case")
    } else {
        format!("{} of {}", finding.cases, plural(report.of as u64, "case"))
    };
    format!("{} ({cases}: {variants})", name(report))
}

fn name(Staleness { experiment, device, .. }: &Staleness) -> String {
    format!("{experiment} on {device}")
}

/// `a, b and 2 more`.
fn some(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(most);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
