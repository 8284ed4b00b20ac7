//! Finds options that make a failed trial run.
//!
//! A kernel's text does not always show how long a buffer must be, or what an integer means. If the first kernel fails
//! for such a reason, some guesses are tried on the simulator, and one that runs is suggested as options. It is not
//! applied automatically: a kernel that really reads out of bounds would then pass.

use std::collections::BTreeMap;
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

/// Maximum number of attempts.
const MOST_ATTEMPTS: usize = 10;

/// Time limit for starting further attempts.
const LONGEST: Duration = Duration::from_secs(30);

/// Maximum factor by which a buffer is enlarged.
const MOST_TIMES: u64 = 1 << 16;

/// Amounts of dynamic shared memory to try, in bytes.
const SHARED: [u32; 4] = [4096, 16384, 49152, 98304];

/// Threads per block to try, in one and in two dimensions.
const BLOCKS: [&[&str]; 2] = [&["128", "64", "32"], &["8,8", "32,8", "32,2"]];

/// First sizes to try for a kernel that does not end in time.
const SMALL: [&str; 3] = ["2**12", "2**9", "2**6"];

/// What a fault reveals about the sizes that were chosen.
#[derive(Debug, PartialEq, Eq)]
enum Fault<'a> {
    /// An access that begins `past` bytes beyond the end of a buffer of `bytes` bytes.
    PastEnd { buffer: &'a str, bytes: u64, past: u64 },
    /// A value comes from a buffer that nothing has filled.
    NeverWritten { buffer: &'a str },
    SharedMemory {
        /// Whether the kernel has no shared memory at all.
        is_absent: bool,
    },
    /// The kernel does not end in time.
    Slow,
}

/// Message of a kernel that does not end in time.
const TIMED_OUT: &str = "timed out";

impl<'a> Fault<'a> {
    fn read(message: &'a str) -> Option<Self> {
        if message == TIMED_OUT {
            return Some(Self::Slow);
        }
        if message.contains("access to shared memory") {
            return Some(Self::SharedMemory { is_absent: message.contains("it has 0 bytes") });
        }
        if let Some((_, rest)) = message.split_once(" depends on buffer `") {
            return rest.split_once('`').map(|(buffer, _)| Self::NeverWritten { buffer });
        }
        let (before, rest) = message.split_once(" the end of buffer `")?;
        let (buffer, rest) = rest.split_once("` (")?;
        let bytes = rest.split(' ').next()?.parse().ok()?;
        let past = before.strip_suffix(" bytes past").and_then(|text| text.rsplit(' ').next()?.parse().ok());
        Some(Self::PastEnd { buffer, bytes, past: past.unwrap_or(0) })
    }
}

/// How an attempt ended.
enum End {
    Passed,
    /// Holds the message of the fault.
    Trapped(String),
}

/// What to try for a buffer.
#[derive(Debug)]
struct Buffer {
    is_input: bool,
    times: u64,
    /// Length that is multiplied.
    len: String,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { is_input: false, times: 1, len: String::new() }
    }
}

#[derive(Debug, Default)]
struct Options {
    /// By parameter.
    buffers: BTreeMap<String, Buffer>,
    integer: Option<(String, String)>,
    shared: Option<String>,
    block: Option<String>,
    n: Option<String>,
}

impl Options {
    /// Values of `--arg`.
    fn arguments(&self) -> Vec<String> {
        let buffers = self.buffers.iter().map(|(parameter, Buffer { is_input, times, len })| {
            let role = is_input.then(|| "in".to_owned());
            let len = (*times > 1).then(|| format!("{times}*{len}"));
            format!("{parameter}={}", role.into_iter().chain(len).collect::<Vec<_>>().join(":"))
        });
        buffers.chain(self.integer.iter().map(|(parameter, value)| format!("{parameter}={value}"))).collect()
    }

    /// The options, quoted for a shell.
    fn shown(&self) -> String {
        let bytes = self.shared.iter().map(|bytes| format!("--shared {bytes}"));
        let block = self.block.iter().map(|block| format!("--block {block}"));
        let n = self.n.iter().map(|n| format!("--n '{n}'"));
        let arguments = self.arguments();
        let arguments = arguments.iter().map(|option| shown(option));
        arguments.chain(bytes).chain(block).chain(n).collect::<Vec<_>>().join(" ")
    }
}

/// Runs the first kernel with other options, such as `--arg sums=2*n`, until it no longer fails.
pub struct Remedy<'a> {
    pub args: &'a TryArgs,
    /// Manifest of the kernels with these options.
    pub manifest_of: &'a dyn Fn(&TryArgs) -> Option<(Draft, Manifest)>,
    pub interrupt: &'a Interrupt,
}

impl Remedy<'_> {
    /// The options that the first kernel needs, in one sentence, after a run with outputs in `folder`.
    pub fn find(&self, draft: &Draft, folder: &std::path::Path, console: &mut Console) -> Option<String> {
        let records = journal::read_records(&folder.join(journal::RECORDS_FILE)).ok()?;
        if records.header.backend != BackendKind::Sim {
            return None;
        }
        let name = draft.baseline()?.to_owned();
        let mut message = fault_of(&records.cases, &name)?;
        let begin = Instant::now();
        let mut found = Options::default();
        let mut amounts = SHARED.into_iter();
        let mut integers = draft.integers().into_iter();
        // Block sizes to try, if the user has not chosen one.
        let dimensions = draft.block().filter(|_| self.args.kernels.block.is_empty()).map_or(0, <[String]>::len);
        let mut blocks = dimensions.checked_sub(1).and_then(|at| BLOCKS.get(at)).copied().unwrap_or_default().iter();
        let mut small = SMALL.iter().filter(|_| self.args.kernels.n.is_empty());
        // The kernel may need a multiple of the block size.
        let whole = draft
            .whole_size()
            .filter(|_| self.args.kernels.n.is_empty() && matches!(Fault::read(&message), Some(Fault::PastEnd { .. })));
        if let Some(whole) = whole {
            let options = Options { n: Some(whole.to_owned()), ..Options::default() };
            if let Some(End::Passed) = self.outcome(&options, &name, console) {
                return Some(format!("With {} it runs without a fault.", options.shown()));
            }
        }
        for _ in 0..MOST_ATTEMPTS {
            if begin.elapsed() > LONGEST {
                return None;
            }
            match Fault::read(&message)? {
                Fault::PastEnd { buffer, bytes, past } => {
                    let (parameter, len) = draft.length_of(buffer)?;
                    let buffer = self.buffer(&mut found, parameter)?;
                    let is_again = buffer.times > 1;
                    buffer.times *= (past / bytes.max(1) + 2).next_power_of_two() * if is_again { 2 } else { 1 };
                    buffer.len = if len.contains(' ') { format!("({len})") } else { len.to_owned() };
                    (buffer.times <= MOST_TIMES).then_some(())?;
                }
                Fault::NeverWritten { buffer } => {
                    let buffer = self.buffer(&mut found, draft.length_of(buffer)?.0)?;
                    (!std::mem::replace(&mut buffer.is_input, true)).then_some(())?;
                }
                Fault::SharedMemory { is_absent: true } => found.shared = Some(amounts.next()?.to_string()),
                // The kernel indexes more of a dynamic array than its text shows.
                Fault::SharedMemory { .. }
                    if draft.has_dynamic_memory() && self.args.kernels.shared.is_empty() && amounts.len() > 0 =>
                {
                    found.shared = amounts.next().map(|bytes| bytes.to_string());
                }
                Fault::SharedMemory { is_absent: false } => {
                    found.block = blocks.next().map(|block| (*block).to_owned());
                    if found.block.is_none() {
                        found.integer = Some(integers.next()?);
                    }
                }
                Fault::Slow => found.n = Some((*small.next()?).to_owned()),
            }
            match self.outcome(&found, &name, console)? {
                End::Passed => return Some(format!("With {} it runs without a fault.", found.shown())),
                End::Trapped(next) => message = next,
            }
        }
        None
    }

    /// What to try for a parameter; `None` if the user has set it.
    fn buffer<'o>(&self, found: &'o mut Options, parameter: &str) -> Option<&'o mut Buffer> {
        let begin = format!("{parameter}=");
        let is_given = self.args.kernels.arguments.iter().any(|option| option.starts_with(&begin));
        (!is_given).then(|| found.buffers.entry(parameter.to_owned()).or_default())
    }

    /// How the first kernel ends with these options; `None` if it ends in any other way.
    fn outcome(&self, found: &Options, name: &str, console: &mut Console) -> Option<End> {
        let mut args = self.args.clone();
        if let Some(bytes) = &found.shared {
            args.kernels.shared = vec![bytes.clone()];
        }
        if let Some(block) = &found.block {
            args.kernels.block = vec![block.clone()];
        }
        if let Some(n) = &found.n {
            args.kernels.n = vec![n.clone()];
        }
        args.kernels.arguments.extend(found.arguments());
        let (_, manifest) = (self.manifest_of)(&args)?;
        let folder = tempfile::tempdir().ok()?;
        let options = RunOptions::of_probe(&args, folder.path(), &[name]).ok()?;
        run_one(ManifestRun { manifest: &manifest, options: &options }, self.interrupt, console).ok()?;
        let records = journal::read_records(&folder.path().join(journal::RECORDS_FILE)).ok()?;
        let is_done = records.cases.iter().all(|case| !case.outcome.is_failure());
        if is_done { Some(End::Passed) } else { fault_of(&records.cases, name).map(End::Trapped) }
    }
}

/// Message of the trap or the timeout that ended a variant.
fn fault_of(cases: &[runner_types::CaseRecord], name: &str) -> Option<String> {
    cases.iter().filter(|case| case.case.key.variant == name).find_map(|case| match &case.outcome {
        Outcome::Trap { message } => Some(message.clone()),
        Outcome::TimedOut { .. } => Some(TIMED_OUT.to_owned()),
        _ => None,
    })
}

/// Quotes an option for a shell.
fn shown(option: &str) -> String {
    let is_plain = option.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '=' | '/'));
    if is_plain { format!("--arg {option}") } else { format!("--arg '{option}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_shown_as_a_shell_takes_them() {
        let text = |text: &str| Some(text.to_owned());
        let mut options = Options { shared: text("4096"), block: text("8,8"), n: text("2**9"), ..Options::default() };
        options.buffers.insert("x".to_owned(), Buffer { is_input: true, times: 4, len: "n".to_owned() });
        options.buffers.insert("y".to_owned(), Buffer { is_input: true, ..Buffer::default() });
        options.integer = Some(("size".to_owned(), "256".to_owned()));
        assert_eq!(options.shown(), "--arg 'x=in:4*n' --arg y=in --arg size=256 --shared 4096 --block 8,8 --n '2**9'");
    }

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
        let unwritten =
            "a value stored to buffer `d` + 0 depends on buffer `b` + 0, which was never written and is read at";
        assert_eq!(Fault::read(unwritten), Some(Fault::NeverWritten { buffer: "b" }));
        assert_eq!(Fault::read("4 bytes before buffer `b` (64 bytes)"), None);
    }
}
