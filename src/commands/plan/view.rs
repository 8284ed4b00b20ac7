//! The plan as text that fits one screen for an ordinary experiment.

use std::fmt::Write;

use runner_experiment::{Axis, BodySpec, Manifest};
use runner_lang::format::{about, bytes, plural};
use runner_plan::{Plan, PlanOptions, Reason, Summary};
use runner_report::{axis_value, prose};
use runner_types::{BackendKind, Value};

/// Maximum number of axis values to show. A longer axis shows its first values and the last.
const SHOWN_VALUES: usize = 6;

/// Maximum number of reasons of one kind to show.
const SHOWN_REASONS: usize = 8;

/// The whole view. On a terminal, lines are wrapped to `width`.
pub fn text(
    manifest: &Manifest,
    plan: &Plan,
    options: &PlanOptions,
    summary: &Summary,
    width: Option<usize>,
) -> String {
    let sections = [
        ("axes", axes(plan)),
        ("variants", variants(manifest, plan)),
        ("cases", cases(plan, summary)),
        ("left out", left_out(summary)),
        ("costs", costs(plan, options, summary)),
    ];
    let mut text = prose(&format!("{}: {}\n", manifest.name, manifest.title), width, "  ");
    for (heading, rows) in &sections {
        section(&mut text, heading, rows, width);
    }
    text
}

/// Appends a heading and rows. The first column is as wide as its widest cell.
fn section(text: &mut String, heading: &str, rows: &[(String, String)], width: Option<usize>) {
    if rows.is_empty() {
        return;
    }
    let names = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    // A very narrow terminal has to wrap lines itself.
    let indent = " ".repeat(names + 4);
    let width = width.map(|width| width.saturating_sub(indent.len())).filter(|width| *width >= 30);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "\n{heading}");
    for (name, value) in rows {
        let value = prose(value, width, "").replace('\n', &format!("\n{indent}"));
        let _ = writeln!(text, "{}", format!("  {name:names$}  {value}").trim_end());
    }
}

fn axes(plan: &Plan) -> Vec<(String, String)> {
    let row = |(axis, column): (&Axis, runner_types::AxisColumn)| {
        let compared = if column.compared { ", compared" } else { "" };
        (axis.name.clone(), format!("{}{compared}", values(&axis.values)))
    };
    plan.axes().iter().zip(plan.axis_columns()).map(row).collect()
}

fn values(values: &[Value]) -> String {
    let shown = |values: &[Value]| values.iter().map(axis_value).collect::<Vec<_>>().join(", ");
    match values {
        [head @ .., last] if values.len() > SHOWN_VALUES => {
            let head = shown(&head[..SHOWN_VALUES - 2]);
            format!("{head}, …, {} ({} values)", axis_value(last), values.len())
        }
        _ => shown(values),
    }
}

fn variants(manifest: &Manifest, plan: &Plan) -> Vec<(String, String)> {
    let baseline = plan.baseline();
    let row = |variant: &runner_plan::PlannedVariant| {
        let what = match &manifest.variants[variant.spec].body {
            BodySpec::Launches { launches, .. } => {
                launches.iter().map(|l| l.kernel.text()).collect::<Vec<_>>().join(", then ")
            }
            BodySpec::Builtin(_) => "device-to-device copy by the driver".to_owned(),
            BodySpec::Host(host) => format!("{} of {}, by nvcc", host.function.text(), host.source.display()),
            BodySpec::Cpu(reference) => format!("{} on the host", reference.text()),
        };
        let mark = match baseline {
            Some((name, at)) if *name == variant.name => {
                let at: Vec<String> = at.iter().map(|(axis, value)| format!(" {axis}={value}")).collect();
                format!("  (baseline{})", at.concat())
            }
            _ => String::new(),
        };
        (variant.name.clone(), format!("{what}{mark}"))
    };
    plan.variants().iter().filter(|variant| variant.selected).map(row).collect()
}

fn cases(plan: &Plan, summary: &Summary) -> Vec<(String, String)> {
    let total = plan.cells().len();
    let groups = plan.group_count();
    let mut rows = vec![
        ("total".to_owned(), format!("{total} in {}", plural(groups as u64, "group"))),
        ("to run".to_owned(), summary.ready.to_string()),
    ];
    for name in ["excluded", "invalid", "too large", "unresolved", "undecided"] {
        let belongs = |(reason, _): &(&Reason, &u64)| kind(reason) == name;
        let count: u64 = summary.others.iter().filter(belongs).map(|(_, count)| count).sum();
        if count > 0 {
            rows.push((name.to_owned(), count.to_string()));
        }
    }
    if summary.without_baseline > 0 {
        let groups = plural(summary.without_baseline, "group");
        rows.push(("no speedup".to_owned(), format!("in {groups}: the baseline does not run there")));
    }
    rows
}

const fn kind(reason: &Reason) -> &'static str {
    match reason {
        Reason::Rule(_) | Reason::Requires { .. } | Reason::Host(_) => "excluded",
        Reason::Invalid(_) => "invalid",
        Reason::OutOfMemory { .. } => "too large",
        Reason::Unresolved(_) | Reason::NotRun(_) => "unresolved",
        Reason::Device(_) => "undecided",
    }
}

/// Each reason with its count; of many reasons of one kind, only the most frequent.
fn left_out(summary: &Summary) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let reasons: Vec<(&Reason, &u64)> = summary.others.iter().collect();
    // Reasons are sorted, so those of one kind are adjacent.
    for same in reasons.chunk_by(|(a, _), (b, _)| std::mem::discriminant(*a) == std::mem::discriminant(*b)) {
        let mut same = same.to_vec();
        same.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let (shown, rest) = same.split_at(same.len().min(SHOWN_REASONS));
        rows.extend(shown.iter().map(|(reason, count)| (count.to_string(), words(reason))));
        if !rest.is_empty() {
            let count: u64 = rest.iter().map(|(_, count)| **count).sum();
            rows.push((count.to_string(), format!("{}: for {} more reasons", kind(rest[0].0), rest.len())));
        }
    }
    rows
}

fn words(reason: &Reason) -> String {
    match reason {
        Reason::Rule(why) | Reason::Host(why) => format!("excluded: {why}"),
        Reason::Requires { variant, text } => format!("excluded: {variant} requires {text}"),
        Reason::Invalid(limit) => format!("invalid: {limit}"),
        Reason::OutOfMemory { variant } => format!("too large: {variant} needs more memory than the device has"),
        Reason::Unresolved(message) => format!("unresolved: {message}"),
        Reason::NotRun(why) => format!("not run: {why}"),
        Reason::Device(names) => format!(
            "undecided: depends on the device's {names}; name a device with --device-profile (`runner devices --json` \
             writes one)"
        ),
    }
}

fn costs(plan: &Plan, options: &PlanOptions, summary: &Summary) -> Vec<(String, String)> {
    let mut rows = vec![("compile".to_owned(), plural(summary.units as u64, "unit"))];
    if let Some((most, group)) = summary.largest {
        let key = plan.group_key(group).to_string();
        let largest = if key.is_empty() { String::new() } else { format!(" for the group {key}") };
        let device = match plan.device() {
            Some(device) => format!(", {} has {}", device.name, bytes(device.memory_bytes.0)),
            None => String::new(),
        };
        rows.push(("memory".to_owned(), format!("at most {}{largest}{device}", bytes(most.0))));
    }
    let assumed = match (options.backend, plan.device()) {
        (BackendKind::Sim, _) => ", on two cores",
        (_, Some(_)) => "",
        (_, None) => ", for a device with 1 TB/s",
    };
    rows.push(("time".to_owned(), format!("about {}, without compiling{assumed}", about(summary.seconds))));
    let backend = match plan.device() {
        Some(device) => format!("{} on {}", options.backend, device.name),
        None => format!("{}, device unknown; --device-profile names one", options.backend),
    };
    rows.push(("backend".to_owned(), backend));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_too_long_for_the_terminal_goes_on_below_its_value() {
        let rows = [("35".to_owned(), "undecided: depends on the device; give --device-profile".to_owned())];
        let drawn = |width| {
            let mut text = String::new();
            section(&mut text, "left out", &rows, width);
            text
        };
        let first = "\nleft out\n  35  undecided: depends on the device;";
        assert_eq!(drawn(Some(43)), format!("{first}\n      give --device-profile\n"));
        assert_eq!(drawn(None), format!("{first} give --device-profile\n"));
        assert_eq!(drawn(Some(12)), drawn(None), "too narrow to be of use");
    }
}
