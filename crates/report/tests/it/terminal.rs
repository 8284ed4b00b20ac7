//! What a terminal shows, depending on its width.

use std::collections::BTreeMap;

use runner_report::Screen;
use runner_results::analyse;
use runner_types::{Counters, Note, Outcome, Records};

/// Output that does not go to a terminal.
const PLAIN: Screen = Screen { styled: false, width: None };

fn records(run: &fixture::Run) -> Records {
    analyse::records(&run.events).unwrap()
}

#[test]
fn the_terminal_shows_every_row_of_few_groups_and_the_fastest_of_many() {
    let few = runner_report::terminal(&records(&fixture::faults()), PLAIN);
    let limit = "– invalid, too_large[layout = a|b <c>]: 2048 threads per block, the device allows 1024";
    for word in ["pipe|name", "✗ timed out", "Incomplete", "no answer within 30 s", limit] {
        assert!(few.contains(word), "{word}: {few}");
    }
    let many = runner_report::terminal(&records(&fixture::reduce()), PLAIN);
    assert_eq!(many.lines().filter(|l| l.contains("shuffle") && l.contains("2^2")).count(), 11, "{many}");
    let bold = runner_report::terminal(&records(&fixture::reduce()), Screen { styled: true, ..PLAIN });
    assert!(!many.contains('\u{1b}') && bold.contains('\u{1b}'));
}

fn of_width(records: &Records, width: usize) -> String {
    runner_report::terminal(records, Screen { width: Some(width), ..PLAIN })
}

/// The simulated run with these variants; each case counts five metrics of one theme.
fn counted(variants: &[&str]) -> Records {
    let names =
        ["inst_executed", "inst_per_warp", "thread_inst_executed", "warp_execution_efficiency", "warps_launched"];
    let mut records = records(&fixture::simulated());
    let model = records.cases[0].clone();
    records.header.variants = variants.iter().map(|variant| (*variant).to_owned()).collect();
    records.cases.clear();
    for (i, variant) in variants.iter().enumerate() {
        let mut record = model.clone();
        (record.case.ordinal, record.case.key.variant) = (i as u64, (*variant).to_owned());
        let count = |(place, name): (usize, &&str)| ((*name).to_owned().into(), (1 + i * 7 + place) as f64);
        record.counters = Some(Counters(names.iter().enumerate().map(count).collect::<BTreeMap<_, _>>()));
        records.cases.push(record);
    }
    records
}

#[test]
fn a_table_too_wide_for_the_terminal_loses_its_last_columns_and_names_them() {
    let records = counted(&["neighbored", "interleaved"]);
    let roomy = of_width(&records, 200);
    assert!(!roomy.contains("more in report.md"), "{roomy}");
    // In the table of counters, the name takes 13 columns including blanks; the counters take 15, 15, 22, 27 and 16.
    let titles =
        ["inst_executed", "inst_per_warp", "thread_inst_executed", "warp_execution_efficiency", "warps_launched"];
    let header = |text: &str| {
        text.lines().find(|line| line.starts_with(" variant  ") && line.contains("inst_")).unwrap().to_owned()
    };
    for (width, shown) in [(200, 5), (80, 3), (60, 2), (40, 1)] {
        let text = of_width(&records, width);
        let header = header(&text);
        assert!(titles[..shown].iter().all(|title| header.contains(title)), "{width}: {text}");
        assert!(titles[shown..].iter().all(|title| !header.contains(title)), "{width}: {text}");
        if shown < 5 {
            let plural = if 5 - shown == 1 { "column" } else { "columns" };
            let note = format!(" … and {} {plural} more in report.md:", 5 - shown);
            let (_, rest) = text.split_once(&note).unwrap_or_else(|| panic!("{width}: {text}"));
            assert!(titles[shown..].iter().all(|title| rest.contains(title)), "{width}: {text}");
        }
        let of_table = |line: &&str| line.starts_with(' ');
        let widest = text.lines().filter(of_table).map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= width), "{width}: {text}");
    }
}

#[test]
fn text_that_goes_to_a_file_has_every_column() {
    let text = runner_report::terminal(&counted(&["neighbored", "interleaved"]), PLAIN);
    assert!(text.contains("thread_inst_executed") && !text.contains("more in"), "{text}");
}

#[test]
fn the_counters_stand_under_their_theme_with_what_all_rows_share() {
    let mut records = counted(&["neighbored", "interleaved"]);
    for record in &mut records.cases {
        record.counters.get_or_insert_default().0.extend([("branch".into(), 12.0)]);
    }
    let text = of_width(&records, 120);
    assert!(text.contains("\nInstructions\n variant  "), "{text}");
    assert!(text.contains("\nBranches and barriers, all rows: branch 12\n"), "{text}");
}

#[test]
fn counters_of_many_rows_are_left_to_the_page() {
    let names: Vec<String> = (0..17).map(|i| format!("v{i}")).collect();
    let variants: Vec<&str> = names.iter().map(String::as_str).collect();
    let text = of_width(&counted(&variants), 120);
    assert!(text.contains(" … and 1 table more in report.md: Instructions\n"), "{text}");
    assert!(!text.contains("inst_executed"), "{text}");
    assert!(of_width(&counted(&variants[..16]), 120).contains("inst_executed"));
}

#[test]
fn sentences_keep_to_the_width_and_a_table_of_all_groups_says_what_it_holds() {
    let records = records(&fixture::reduce());
    let text = of_width(&records, 60);
    assert!(text.starts_with("The fastest of each group\n"), "{text}");
    let sentences = text.lines().skip_while(|line| !line.is_empty());
    assert!(sentences.clone().any(|line| line.starts_with("  ")), "nothing was broken: {text}");
    assert!(sentences.clone().all(|line| line.chars().count() <= 60), "{text}");
    let whole = runner_report::terminal(&records, PLAIN);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let end = words(&sentences.collect::<Vec<_>>().join("\n"));
    assert!(words(&whole).ends_with(&end), "{text}");
}

#[test]
fn a_terminal_of_no_width_at_all_still_gets_names() {
    let text = of_width(&records(&fixture::faults()), 1);
    assert!(text.contains("pipe|name"), "{text}");
}

#[test]
fn the_first_notes_are_shown_with_their_cases_and_all_are_counted() {
    let mut records = counted(&["a", "b", "c", "d", "e"]);
    for record in &mut records.cases {
        record.notes = vec![Note::Text("bimodal".to_owned())];
    }
    for (record, note) in records.cases.iter_mut().zip(["one", "two", "three"]) {
        record.notes.push(Note::Text(note.to_owned()));
    }
    let text = runner_report::terminal(&records, PLAIN);
    let (_, notes) = text.split_once("4 notes; all of them are in report.md:\n").unwrap_or_else(|| panic!("{text}"));
    let lines: Vec<&str> = notes.lines().take_while(|line| line.starts_with("  ")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].ends_with(" and 2 more: bimodal"), "{text}");
    assert!(lines[1].ends_with(": one") && lines[2].ends_with(": two"), "{text}");
}

#[test]
fn an_interrupted_run_has_one_line_about_cases_not_run() {
    let mut records = counted(&["a", "b", "c", "d"]);
    records.header.complete = false;
    for record in &mut records.cases[1..] {
        record.outcome = Outcome::not_run("interrupted");
    }
    let text = runner_report::terminal(&records, PLAIN);
    let line = "Incomplete: 3 of 4 cases were not run. Add --resume to run what is missing.";
    assert_eq!(text.lines().filter(|l| *l == line).count(), 1, "{text}");
    assert!(!text.contains("interrupted"), "{text}");
    assert_eq!(runner_report::incomplete(&records).as_deref(), Some(line));
}
