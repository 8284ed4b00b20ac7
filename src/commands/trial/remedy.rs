//! Options with which a trial that failed runs.
//!
//! How long a buffer must be, or what an integer means, is not always visible in a kernel's text. Where the first
//! kernel fails for such a reason, some answers are tried on the simulator, and the one that runs is shown as options.
//! It is not taken by itself: a kernel that really reads too far would pass then.

use std::time::{Duration, Instant};

use crate::cli::TryArgs;
use crate::cli::options::RunOptions;
use crate::console::Console;
use crate::session::{ManifestRun, run_one};
use runner_experiment::Manifest;
use runner_manifest::draft::Draft;
use runner_results::journal;
use runner_types::{BackendKind, Outcome};
use runner_workers::Interrupt;

/// Attempts after which no more options are tried.
const MOST_ATTEMPTS: usize = 10;

/// Time after which no more options are tried.
const LONGEST: Duration = Duration::from_secs(30);

/// Elements by which a buffer is made longer at most.
const MOST_TIMES: u64 = 1 << 16;

/// Bytes of dynamic shared memory that are tried.
const SHARED: [u32; 3] = [4096, 16384, 49152];

/// What a fault says of the sizes that were chosen.
#[derive(Debug, PartialEq, Eq)]
enum Fault<'a> {
    /// An access this many bytes past the end of a buffer of so many.
    PastEnd { buffer: &'a str, bytes: u64, past: u64 },
    SharedMemory {
        /// Whether the kernel has none.
        is_absent: bool,
    },
}

impl<'a> Fault<'a> {
    fn read(message: &'a str) -> Option<Self> {
        if message.contains("access to shared memory") {
            return Some(Self::SharedMemory { is_absent: message.contains("it has 0 bytes") });
        }
        let (before, rest) = message.split_once(" the end of buffer `")?;
        let (buffer, rest) = rest.split_once("` (")?;
        let bytes = rest.split(' ').next()?.parse().ok()?;
        let past = before.strip_suffix(" bytes past").and_then(|text| text.rsplit(' ').next()?.parse().ok());
        Some(Self::PastEnd { buffer, bytes, past: past.unwrap_or(0) })
    }
}

/// Runs the first kernel with other options, as `--arg sums=2*n`, until it does not fail any more.
pub struct Remedy<'a> {
    pub args: &'a TryArgs,
    /// Manifest of the kernels with these options.
    pub manifest_of: &'a dyn Fn(&TryArgs) -> Option<(Draft, Manifest)>,
    pub interrupt: &'a Interrupt,
}

impl Remedy<'_> {
    /// Options that the first kernel needs, in one sentence, after a run into this folder.
    pub fn find(&self, draft: &Draft, folder: &std::path::Path, console: &mut Console) -> Option<String> {
        let records = journal::read_records(&folder.join(journal::RECORDS_FILE)).ok()?;
        if records.header.backend != BackendKind::Sim {
            return None;
        }
        let name = draft.baseline()?.to_owned();
        let mut message = fault_of(&records.cases, &name)?;
        let begin = Instant::now();
        let mut added: Vec<String> = Vec::new();
        let mut shared: Option<String> = None;
        let mut amounts = SHARED.into_iter();
        let mut integers = draft.integers().into_iter();
        for _ in 0..MOST_ATTEMPTS {
            if begin.elapsed() > LONGEST {
                return None;
            }
            match Fault::read(&message)? {
                Fault::PastEnd { buffer, bytes, past } => {
                    let (parameter, len) = draft.length_of(buffer)?;
                    let given = |option: &String| option.starts_with(&format!("{parameter}="));
                    if self.args.kernels.arguments.iter().any(given) {
                        return None;
                    }
                    let before = added.iter().position(|option| given(option));
                    let times: u64 = before
                        .and_then(|at| added[at].split_once('=')?.1.split('*').next()?.trim().parse().ok())
                        .unwrap_or(1);
                    let faster = if before.is_some() { 2 } else { 1 };
                    let needed = (past / bytes.max(1) + 2).next_power_of_two() * times * faster;
                    if needed > MOST_TIMES {
                        return None;
                    }
                    before.map(|at| added.remove(at));
                    let len = if len.contains(' ') { format!("({len})") } else { len.to_owned() };
                    added.push(format!("{parameter}={needed}*{len}"));
                }
                Fault::SharedMemory { is_absent: true } => shared = Some(amounts.next()?.to_string()),
                Fault::SharedMemory { is_absent: false } => {
                    added.clear();
                    let (parameter, value) = integers.next()?;
                    added.push(format!("{parameter}={value}"));
                }
            }
            match self.outcome(&added, shared.as_ref(), &name, console)? {
                None => {
                    let bytes = shared.iter().map(|bytes| format!("--shared {bytes}"));
                    let options: Vec<String> = added.iter().map(|option| shown(option)).chain(bytes).collect();
                    return Some(format!("With {} it runs without a fault.", options.join(" ")));
                }
                Some(next) => message = next,
            }
        }
        None
    }

    /// How the first kernel ends with these options; `Some(None)` without a fault.
    fn outcome(
        &self,
        added: &[String],
        shared: Option<&String>,
        name: &str,
        console: &mut Console,
    ) -> Option<Option<String>> {
        let mut args = self.args.clone();
        if let Some(bytes) = shared {
            args.kernels.shared = vec![bytes.clone()];
        }
        args.kernels.arguments.extend(added.iter().cloned());
        let (_, manifest) = (self.manifest_of)(&args)?;
        let folder = tempfile::tempdir().ok()?;
        let options = RunOptions::of_probe(&args, folder.path(), name).ok()?;
        run_one(ManifestRun { manifest: &manifest, options: &options }, self.interrupt, console).ok()?;
        let records = journal::read_records(&folder.path().join(journal::RECORDS_FILE)).ok()?;
        let is_done = records.cases.iter().all(|case| !case.outcome.is_failure());
        if is_done { Some(None) } else { fault_of(&records.cases, name).map(Some) }
    }
}

/// Message of the trap with which a variant ended.
fn fault_of(cases: &[runner_types::CaseRecord], name: &str) -> Option<String> {
    cases.iter().filter(|case| case.case.key.variant == name).find_map(|case| match &case.outcome {
        Outcome::Trap { message } => Some(message.clone()),
        _ => None,
    })
}

/// An option as a shell takes it.
fn shown(option: &str) -> String {
    let is_plain = option.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '=' | '/'));
    if is_plain { format!("--arg {option}") } else { format!("--arg '{option}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_that_sizes_may_cause_are_told_from_others() {
        let past =
            "out-of-bounds 4-byte read of global memory at 0x700, 16 bytes past the end of buffer `b` (64 bytes) in";
        assert_eq!(Fault::read(past), Some(Fault::PastEnd { buffer: "b", bytes: 64, past: 16 }));
        let across =
            "out-of-bounds 8-byte read of global memory at 0x7, at offset 60, across the end of buffer `b` (64 bytes)";
        assert_eq!(Fault::read(across), Some(Fault::PastEnd { buffer: "b", bytes: 64, past: 0 }));
        assert_eq!(
            Fault::read("out-of-bounds 4-byte access to shared memory, at offset 0x0: it has 0 bytes"),
            Some(Fault::SharedMemory { is_absent: true })
        );
        assert_eq!(Fault::read("4 bytes before buffer `b` (64 bytes)"), None);
    }
}
