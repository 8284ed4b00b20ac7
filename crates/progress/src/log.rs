//! The log of `-v` and `RUNNER_LOG`: what is found, compiled, waited for and sent. Each event is a line on standard
//! error with the seconds since the start. Warnings are always shown, as messages.
//!
//! All modules log through the macros of `tracing`. Without the option, each macro below the warning level costs one
//! integer comparison. A worker marks its log lines, so that the dispatcher can tell them from other output of the
//! process.

use std::env;
use std::ffi::OsString;
use std::fmt::{Debug, Write as _};
use std::io::{self, Write as _};
use std::sync::LazyLock;
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use runner_lang::format::visible;

/// Environment variable with the log level: `info` or `debug`.
pub const VARIABLE: &str = "RUNNER_LOG";

/// First character of each log line of a worker.
const MARK: char = '\u{1e}';

/// Prefix of warnings, which have no time.
const WARNING: &str = "warning: ";

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Starts logging: warnings only, or more if `-v` was given (`verbose` times) or the environment requests it.
///
/// # Errors
///
/// If the environment names an unknown level; the message says which.
pub fn start(verbose: u8, is_worker: bool) -> Result<(), String> {
    let named = env::var_os(VARIABLE).filter(|level| !level.is_empty());
    let level = match (verbose, named.map(|level| level.to_string_lossy().into_owned())) {
        (0, None) => LevelFilter::WARN,
        (0, Some(level)) => level.parse::<LevelFilter>().map_err(|_| {
            format!("{VARIABLE} is `{}`, which is not a level: set it to info or debug", visible(&level))
        })?,
        (1, _) => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    LazyLock::force(&START);
    let write = if is_worker { write_marked } else { write_line };
    // Fails if there already is a log, which then stays in use.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(level).with(Lines { write }));
    Ok(())
}

/// Environment variables that give a worker the log level of this process.
pub fn for_worker() -> Vec<(OsString, OsString)> {
    match LevelFilter::current() {
        LevelFilter::OFF => Vec::new(),
        level => vec![(VARIABLE.into(), level.to_string().into())],
    }
}

/// Forwards a line from a worker's standard error to the log. Returns whether it is a log line.
pub fn forward(worker: u32, line: &str) -> bool {
    let logged = line.strip_prefix(MARK).filter(|_| LevelFilter::current() != LevelFilter::OFF);
    if let Some(text) = logged {
        let text = text.trim_end();
        write_line(&if text.starts_with(WARNING) { text.to_owned() } else { format!("worker {worker}: {text}") });
    }
    logged.is_some()
}

fn write_line(text: &str) {
    crate::above_bars(|| {
        // Read the time while holding the lock, so that times are in order.
        let mut out = io::stderr().lock();
        let line = match (visible(text), START.elapsed().as_secs_f64()) {
            (text, _) if text.starts_with(WARNING) => format!("{text}\n"),
            (text, seconds) => format!("{seconds:9.3} s  {text}\n"),
        };
        // A failing log must not end the run.
        drop(out.write_all(line.as_bytes()));
    });
}

fn write_marked(text: &str) {
    let _ = io::stderr().write_all(format!("{MARK}{}\n", visible(text)).as_bytes());
}

/// Writes one line per event and two per span.
struct Lines {
    write: fn(&str),
}

/// A span's name and fields, and its start time.
struct Begun(Text, Instant);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        if *event.metadata().level() == Level::WARN {
            text.0.push_str(WARNING);
        }
        event.record(&mut text);
        (self.write)(&text.0);
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, spans: Context<'_, S>) {
        let mut text = Text(attributes.metadata().name().to_owned());
        attributes.record(&mut text);
        (self.write)(&format!("begin {}", text.0));
        if let Some(span) = spans.span(id) {
            span.extensions_mut().insert(Begun(text, Instant::now()));
        }
    }

    fn on_close(&self, id: Id, spans: Context<'_, S>) {
        let Some(span) = spans.span(&id) else { return };
        if let Some(Begun(text, begun)) = span.extensions().get() {
            (self.write)(&format!("end {} after {:.3} s", text.0, begun.elapsed().as_secs_f64()));
        }
    }
}

/// A message, followed by `name=value` for each field.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
