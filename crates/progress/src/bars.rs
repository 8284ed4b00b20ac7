//! Progress bars on a terminal: one for compiling while it lasts, one for the cases, and the current case below.

use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::tally::Tally;
use super::words::failure;
use runner_lang::format::visible;
use runner_types::Event;

/// Redraws per second. Low, so as not to disturb measurements.
const REDRAWS: u8 = 4;

/// All bars of the process, since it has only one terminal.
static ALL: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS)));

/// Runs `write` while the bars are hidden from standard error.
pub fn above_bars(write: impl FnOnce()) {
    ALL.suspend(write);
}

#[derive(Debug)]
pub(super) struct Bars {
    color: bool,
    compile: Option<ProgressBar>,
    cases: Option<ProgressBar>,
    current: Option<ProgressBar>,
}

impl Bars {
    pub(super) const fn new(color: bool) -> Self {
        Self { color, compile: None, cases: None, current: None }
    }

    pub(super) fn show(&mut self, event: &Event, tally: &Tally) {
        if let Some(failure) = failure(event) {
            let _ = ALL.println(visible(&failure));
        }
        match event {
            Event::CompileStarted { .. } | Event::UnitCompiled { .. } => self.show_compile(tally),
            Event::GroupStarted { .. } | Event::CaseChecked { .. } | Event::CaseSettled { .. } => {
                self.show_cases(tally);
            }
            Event::CaseActive { .. } => {
                self.show_cases(tally);
                if let (Some(bar), Some(text)) = (&self.current, &tally.current) {
                    bar.set_message(visible(text).into_owned());
                }
            }
            Event::RunFinished { .. } => self.clear(),
            _ => {}
        }
    }

    pub(super) fn clear(&self) {
        for bar in [&self.compile, &self.current, &self.cases].into_iter().flatten() {
            bar.finish_and_clear();
        }
    }

    fn show_compile(&mut self, tally: &Tally) {
        let bar = self
            .compile
            .get_or_insert_with(|| ALL.add(ProgressBar::new(0).with_style(bar_style("compiling", self.color))));
        bar.set_length(u64::from(tally.units));
        bar.set_position(u64::from(tally.compiled));
        if tally.cached > 0 {
            bar.set_message(format!("{} from the cache", tally.cached));
        }
        if tally.compiled >= tally.units {
            bar.finish_and_clear();
        }
    }

    fn show_cases(&mut self, tally: &Tally) {
        let bar =
            self.cases.get_or_insert_with(|| ALL.add(ProgressBar::new(0).with_style(bar_style("cases", self.color))));
        self.current.get_or_insert_with(|| {
            let current = ALL.add(ProgressBar::new_spinner().with_style(style(CURRENT)));
            current.enable_steady_tick(Duration::from_millis(500));
            current
        });
        bar.set_length(tally.cases);
        bar.set_position(tally.settled);
        bar.set_message(tally.remark());
    }
}

/// Style for a bar such as `cases ━━━━━━━━━╸────── 12/132 3 failed, about 2 min left`.
fn bar_style(name: &str, color: bool) -> ProgressStyle {
    style(&bar_template(name, color)).progress_chars("━╸─")
}

fn bar_template(name: &str, color: bool) -> String {
    let bar = if color { "{bar:30.cyan}" } else { "{bar:30}" };
    format!("{name:<9} {bar} {{pos}}/{{len}} {{wide_msg}}")
}

/// Template of the line below the bars.
const CURRENT: &str = "          {wide_msg}";

/// Parses a template. Falls back to the default bar, but a test below parses every template.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_parse() {
        for template in [&bar_template("cases", true), &bar_template("compiling", false), CURRENT] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
