//! Page that compares simulated counters with measured ones.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::{Cell, Folding, Table, number as number_column, text};
use super::{RenderError, Templates, units};
use runner_lang::format;
use runner_results::analyse::{Agreement, CLOSE, Cause, Compared, Fidelity};
use runner_types::{CounterInfo, CounterTheme};

/// Counters that match exactly if the machine code makes the same accesses as the PTX.
const EXACT: [&str; 4] = ["gld_requests", "gld_sectors", "gst_requests", "gst_sectors"];

/// Maximum number of variants with the same difference to list; further ones are only counted.
const MOST_NAMES: usize = 6;

/// Input of the page's template.
#[derive(Debug, Serialize)]
pub struct Page {
    /// Maximum difference of counts that are called close, in percent.
    close: String,
    exact: Vec<&'static str>,
    overview: Table,
    experiments: Vec<Experiment>,
}

/// The page's content about one experiment.
#[derive(Debug, Serialize)]
struct Experiment {
    name: String,
    title: String,
    /// Sources of the counts, and the cases without a counterpart.
    facts: Vec<String>,
    /// Counter tables, one per theme, with one row per variant and one column per counter.
    grids: Vec<Grid>,
    differences: Table,
}

#[derive(Debug, Serialize)]
struct Grid {
    title: &'static str,
    /// Counters that are equal in all variants.
    equal: Vec<&'static str>,
    /// Counters that differ in some variant; has no columns if there are none.
    table: Table,
}

pub fn fidelity(compared: &[Fidelity], causes: &[Cause]) -> Result<String, RenderError> {
    let page = Page {
        close: format::rough(CLOSE * 100.0),
        exact: EXACT.to_vec(),
        overview: overview(compared),
        experiments: compared.iter().map(|fidelity| experiment(fidelity, causes)).collect(),
    };
    Templates::new()?.fidelity(&page)
}

fn overview(compared: &[Fidelity]) -> Table {
    let mut table = Table::new(vec![text("experiment", Folding::Keep)]);
    let titles =
        ["variants", "cases", "counters", "equal", "close", "different", "unexplained", "requests and sectors"];
    table.columns.extend(titles.map(|title| number_column(title, Folding::Keep)));
    for fidelity in compared {
        let all = &fidelity.compared;
        let count = |agreement| all.iter().filter(|c| c.agreement == agreement).count();
        let mut variants: Vec<&str> = all.iter().map(|c| c.variant.as_str()).collect();
        variants.dedup();
        let exact: Vec<&Compared> = all.iter().filter(|c| EXACT.contains(&c.counter)).collect();
        let held = exact.iter().filter(|c| c.agreement == Agreement::Equal).count();
        let mut cells = vec![Cell::code(&fidelity.experiment)];
        let counts = [
            variants.len(),
            fidelity.cases,
            all.len(),
            count(Agreement::Equal),
            count(Agreement::Close),
            count(Agreement::Different),
            all.iter().filter(|c| c.unexplained > 0).count(),
        ];
        cells.extend(counts.map(|count| Cell::plain(count.to_string())));
        cells.push(Cell::plain(format!("{held} of {} equal", exact.len())));
        table.rows.push(cells);
    }
    table
}

fn experiment(fidelity: &Fidelity, causes: &[Cause]) -> Experiment {
    let mut facts = vec![format!("{} against {}", fidelity.simulated_device, fidelity.hardware_device)];
    facts.extend(fidelity.counting_method.clone());
    let sides = [("simulated", fidelity.alone.0), ("counted by hardware", fidelity.alone.1)];
    for (what, count) in sides.into_iter().filter(|(_, count)| *count > 0) {
        let text = match count {
            1 => format!("1 case is only {what}, so it is not compared"),
            _ => format!("{count} cases are only {what}, so they are not compared"),
        };
        facts.push(text);
    }
    let themes = [
        ("Global memory", CounterTheme::Global),
        ("Shared and local memory", CounterTheme::SharedAndLocal),
        ("Instructions", CounterTheme::Instructions),
    ];
    Experiment {
        name: fidelity.experiment.clone(),
        title: fidelity.title.clone(),
        facts,
        grids: themes.into_iter().filter_map(|(title, theme)| grid(fidelity, title, theme)).collect(),
        differences: differences(fidelity, causes),
    }
}

fn grid(fidelity: &Fidelity, title: &'static str, theme: CounterTheme) -> Option<Grid> {
    let in_theme = |c: &&Compared| CounterInfo::named(c.counter).is_some_and(|info| info.theme == theme);
    let all: Vec<&Compared> = fidelity.compared.iter().filter(in_theme).collect();
    let (mut counters, mut variants): (Vec<&'static str>, Vec<&str>) = (Vec::new(), Vec::new());
    for one in &all {
        if !counters.contains(&one.counter) {
            counters.push(one.counter);
        }
        if !variants.contains(&one.variant.as_str()) {
            variants.push(&one.variant);
        }
    }
    let is_equal =
        |counter: &&str| all.iter().filter(|c| c.counter == *counter).all(|c| c.agreement == Agreement::Equal);
    let (equal, others): (Vec<&'static str>, Vec<&'static str>) = counters.into_iter().partition(is_equal);
    let mut table = Table::default();
    if !others.is_empty() {
        table = Table::new(vec![text("variant", Folding::Keep)]);
        table.columns.extend(others.iter().map(|counter| number_column(*counter, Folding::Keep)));
        for variant in variants {
            let cell = |counter: &&str| {
                let found = all.iter().find(|c| c.variant == variant && c.counter == *counter);
                Cell::maybe(found.map(|c| mark(c)))
            };
            let mut cells = vec![Cell::code(variant)];
            cells.extend(others.iter().map(cell));
            table.rows.push(cells);
        }
    }
    (!all.is_empty()).then_some(Grid { title, equal, table })
}

/// Marks how the hardware's count compares with the simulator's, in the worst case: `=`, `≈ 0.972×`, `≠ 0.521×`.
fn mark(compared: &Compared) -> String {
    match compared.agreement {
        Agreement::Equal => "=".to_owned(),
        Agreement::Close => format!("≈ {}", excess(compared)),
        Agreement::Different => format!("≠ {}", excess(compared)),
    }
}

fn excess(compared: &Compared) -> String {
    let worst = &compared.worst;
    if worst.simulated > 0.0 {
        format!("{}×", format::ratio_of_counts(worst.hardware / worst.simulated))
    } else {
        format!("{} instead of 0", format::count(worst.hardware))
    }
}

/// Differences, grouped by counter and cause.
fn differences(fidelity: &Fidelity, causes: &[Cause]) -> Table {
    let mut table = Table::new(vec![
        text("counter", Folding::Keep),
        text("variants", Folding::Keep),
        number_column("simulated", Folding::Keep),
        number_column("hardware", Folding::Keep),
        text("largest difference in", Folding::Keep),
        text("cause", Folding::Keep),
    ]);
    let mut groups: BTreeMap<(usize, Vec<usize>, bool), Vec<&Compared>> = BTreeMap::new();
    let place = |counter: &str| runner_types::VOCABULARY.iter().position(|info| info.name == counter).unwrap_or(0);
    for one in fidelity.compared.iter().filter(|c| c.agreement != Agreement::Equal) {
        groups.entry((place(one.counter), one.causes.clone(), one.unexplained > 0)).or_default().push(one);
    }
    for ((_, because, unexplained), members) in groups {
        let Some(worst) = members.iter().max_by(|a, b| a.worst.distance().total_cmp(&b.worst.distance())) else {
            continue;
        };
        let mut words: Vec<String> = because.iter().map(|index| causes[*index].because.clone()).collect();
        if unexplained {
            words.push(if words.is_empty() { "unexplained" } else { "unexplained in some cases" }.to_owned());
        }
        table.rows.push(vec![
            Cell::code(worst.counter),
            Cell::plain(names(&members)),
            Cell::plain(format::count(worst.worst.simulated)),
            Cell::plain(format::count(worst.worst.hardware)),
            Cell::plain(name_worst_case(worst)),
            Cell::plain(words.join("; ")).strong_if(because.is_empty()),
        ]);
    }
    table
}

fn names(members: &[&Compared]) -> String {
    let named: Vec<&str> = members.iter().take(MOST_NAMES).map(|c| c.variant.as_str()).collect();
    let more = members.len() - named.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", named.join(", "))
}

fn name_worst_case(compared: &Compared) -> String {
    let case = &compared.worst.case;
    let axes = units::axes_text(&case.key.axes);
    if axes.is_empty() { compared.variant.clone() } else { format!("{}, {axes}", compared.variant) }
}
