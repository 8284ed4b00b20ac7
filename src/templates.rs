//! `runner templates`: lists and exports the page templates. Also reads the template of a manifest.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use crate::cli::{TemplatesAction, TemplatesArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_experiment::Manifest;
use runner_files::atomic;
use runner_files::regular;
use runner_lang::diagnostics::{Diagnostic, Diagnostics};
use runner_lang::format::visible_lines;
use runner_report::{SHIPPED, Templates};
use runner_types::{PageTemplate, Records};

const EXTENSION: &str = "tera";

/// Environment variable for the time limit of a user's template, such as `10min`.
const LIMIT_VARIABLE: &str = "RUNNER_TEMPLATE_LIMIT";

const LIMIT: Duration = Duration::from_mins(1);

/// Maximum growth of this process, in bytes, while it renders a user's template.
const MOST_MEMORY: usize = 2 << 30;

/// Interval for checking time and memory.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

pub fn run(args: &TemplatesArgs, console: &mut Console) -> Result<Exit, Failure> {
    match &args.action {
        TemplatesAction::List => {
            for (name, what, _) in SHIPPED {
                console.print(&format!("{:<17} {what}\n", format!("{name}.{EXTENSION}")))?;
            }
        }
        TemplatesAction::Export { dir } => {
            for (name, _, text) in SHIPPED {
                let path = dir.join(format!("{name}.{EXTENSION}"));
                if fs::read_to_string(&path).is_ok_and(|there| there != text) {
                    return Err(Failure::usage(format!(
                        "{} already exists and differs: name another folder",
                        path.display()
                    )));
                }
                atomic::write(&path, text.as_bytes()).map_err(Failure::environment)?;
                console.say(&format!("wrote {}", path.display()));
            }
        }
    }
    Ok(Exit::Success)
}

/// Template that a manifest names. Fails if it does not parse.
pub fn of_manifest(manifest: &Manifest, console: &Console) -> Result<Option<PageTemplate>, Failure> {
    let Some((path, span)) = &manifest.template else { return Ok(None) };
    let refused = |message: String, hint: &str| {
        let fault = Diagnostic::at(span.clone(), message).hint(hint);
        console.faults(&Diagnostics::new(Arc::clone(&manifest.source), vec![fault]))
    };
    let read = read(path).map_err(|failure| {
        refused(
            failure.message,
            "docs/reference/templates.md describes templates; the path is relative to the manifest",
        )
    })?;
    Ok(Some(read))
}

/// Template from a file. Only its syntax is checked; unknown fields are found when a page is rendered.
pub fn read(path: &Path) -> Result<PageTemplate, Failure> {
    let text = regular::read_text(path)
        .map_err(|error| Failure::usage(format!("cannot read the template {}: {error}", path.display())))?;
    let template = PageTemplate { path: path.display().to_string(), text };
    Templates::load(Some(&template)).map_err(Failure::usage)?;
    Ok(template)
}

/// Calls `make`, which renders `records`. If they have a user's template, ends the process if that takes too much time
/// or memory: Tera has no limits, and a single thread cannot be killed. Nothing is written before the page is complete.
pub fn watched<T>(records: &Records, make: impl FnOnce() -> T) -> Result<T, Failure> {
    let Some(template) = &records.header.template else { return Ok(make()) };
    let limit = match env::var_os(LIMIT_VARIABLE) {
        None => LIMIT,
        Some(text) => humantime::parse_duration(&text.to_string_lossy()).map_err(|error| {
            Failure::environment(format!("{LIMIT_VARIABLE} is `{}`, which is not a duration: {error}", text.display()))
        })?,
    };
    let path = template.path.clone();
    let (made, waits) = mpsc::channel::<()>();
    thread::spawn(move || {
        let (start, before) = (Instant::now(), memory());
        while waits.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if start.elapsed() >= limit {
                let seconds = limit.as_secs_f64();
                end(&format!(
                    "{path}: no page after {seconds} s; set {LIMIT_VARIABLE} to another limit, such as 10min"
                ));
            }
            if memory().saturating_sub(before) > MOST_MEMORY {
                end(&format!("{path}: it takes more than {} GiB of memory to render the page", MOST_MEMORY >> 30));
            }
        }
    });
    let result = make();
    drop(made);
    Ok(result)
}

/// Ends the process with an error.
fn end(message: &str) -> ! {
    let remedy =
        "`runner report DIR --template FILE` uses another template; add --from-journal to render the journal of a run";
    let _ = writeln!(std::io::stderr().lock(), "error: {}; {remedy}", visible_lines(message));
    process::exit(Exit::Usage as i32)
}

/// Resident memory of this process, in bytes; 0 if unknown.
fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    resident.and_then(|kilobytes| kilobytes.parse::<usize>().ok()).unwrap_or(0).saturating_mul(1 << 10)
}
