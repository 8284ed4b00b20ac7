//! Text of a comparison in each of its formats.

use std::path::Path;

use runner_report::Screen;
use runner_report::comparison::{self, Compared, MOST_CHARACTERS};
use runner_results::analyse::compare::{Alone, Comparison, Options, Pair, compare};
use runner_types::{CaseRecord, Claim, Mismatch, Outcome, Records, Regime};

use fixture::snapshot;

/// The five formats, each with the name of its golden file.
fn forms(base: &Records, new: &Records) -> [(&'static str, String); 5] {
    let alone = [vec![Alone::new("main:reports/copy/h100", base)], Vec::new()];
    let found = Comparison { alone, ..compare(&[Pair { base, new }], &Options::default()) };
    let names = ["main:reports".to_owned(), "reports".to_owned()];
    let places = [names.clone().map(|name| format!("{name}/regimes/h100"))];
    let compared = Compared { comparison: &found, names: &names, labels: &names, places: &places, faults: &[] };
    [
        ("terminal.txt", comparison::terminal(compared, Screen { styled: false, width: Some(100) })),
        ("page.md", comparison::markdown(compared, None).unwrap()),
        ("page.json", comparison::json(compared).unwrap()),
        ("rows.csv", comparison::csv(compared).unwrap()),
        ("tests.xml", comparison::junit(compared).unwrap()),
    ]
}

fn of_variant<'a>(records: &'a mut Records, variant: &'a str) -> impl Iterator<Item = &'a mut CaseRecord> {
    records.cases.iter_mut().filter(move |record| record.case.key.variant == variant)
}

fn scale(record: &mut CaseRecord, factor: f64) {
    let time = &mut record.result.as_mut().unwrap().time;
    for end in [&mut time.point, &mut time.low, &mut time.high] {
        *end *= factor;
    }
}

/// A report in which every variant has its own source.
fn base() -> Records {
    let mut base = fixture::calibrated(&fixture::regimes());
    for record in &mut base.cases {
        if let Some(hashes) = &mut record.hashes {
            hashes.source.clone_from(&record.case.key.variant);
            hashes.code = (record.case.key.variant == "variant2").then(|| "0123456789ab".to_owned());
        }
    }
    base
}

/// Makes one change of each kind.
fn changed(base: &Records) -> Records {
    let mut new = base.clone();
    let claim = |text: &str| Claim {
        text: text.to_owned(),
        condition: Some("n == 1000".to_owned()),
        regime: Some(Regime::Cold),
        backend: None,
    };
    // Base and new times: 3.488 and 4.534 µs; 3.328 and 1.664 µs; 4 µs in both.
    let claims =
        ["time(\"variant1\") < 4", "time(\"variant2\") < 2", "time(\"variant0\") < 3", "time(\"variant0\") < 5"];
    new.header.claims = claims.map(claim).into();
    for record in of_variant(&mut new, "variant1") {
        scale(record, 1.3);
        "1234567890ab".clone_into(&mut record.hashes.as_mut().unwrap().source);
        let launch = &mut record.launches[0];
        launch.resources.registers = Some(96);
        launch.occupancy.as_mut().unwrap().fraction = 0.25;
    }
    for record in of_variant(&mut new, "variant2") {
        scale(record, 0.5);
        // Only a comment changed.
        "another".clone_into(&mut record.hashes.as_mut().unwrap().source);
    }
    // A change too small to be certain in a kernel of 3 µs.
    for record in of_variant(&mut new, "variant7").take(1) {
        scale(record, 1.05);
    }
    for record in of_variant(&mut new, "variant4") {
        record.work.bytes = Some(4096);
    }
    for record in of_variant(&mut new, "variant5") {
        record.outcome = Outcome::Unstable { reached: 0.02 };
    }
    let mismatch = Mismatch { what: "sum(partial) | <b>".to_owned(), ..fixture::mismatch() };
    for record in of_variant(&mut new, "variant6") {
        record.outcome = Outcome::Wrong { mismatch: mismatch.clone() };
        record.result = None;
    }
    for record in of_variant(&mut new, "variant8") {
        "=new|*name*".clone_into(&mut record.case.key.variant);
        "another".clone_into(&mut record.hashes.as_mut().unwrap().options);
    }
    for record in of_variant(&mut new, "variant9") {
        "=renamed|*name*".clone_into(&mut record.case.key.variant);
    }
    new
}

#[test]
fn each_form_is_as_kept() {
    let base = base();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/compare");
    for (name, text) in forms(&base, &changed(&base)) {
        snapshot::assert_is(&text, &golden.join(name));
    }
}

/// Compares a report with a changed copy of itself, for a terminal.
fn on_screen(screen: Screen) -> String {
    let mut base = fixture::calibrated(&fixture::regimes());
    for record in &mut base.cases {
        record.case.key.variant = format!("{}_with_a_name_that_leaves_little_room", record.case.key.variant);
    }
    let mut new = base.clone();
    for record in new.cases.iter_mut().filter(|record| record.result.is_some()) {
        scale(record, 1.3);
    }
    let found = compare(&[Pair { base: &base, new: &new }], &Options::default());
    let names = ["base".to_owned(), "new".to_owned()];
    let places = [names.clone()];
    comparison::terminal(
        Compared { comparison: &found, names: &names, labels: &names, places: &places, faults: &[] },
        screen,
    )
}

#[test]
fn a_narrow_terminal_leaves_out_times_before_the_change() {
    for width in [60, 80, 200] {
        let said = on_screen(Screen { styled: false, width: Some(width) }).replace('\u{a0}', " ");
        let table = said.lines().skip_while(|line| !line.starts_with(" case")).skip(1);
        // Further rows are only counted.
        let rows: Vec<&str> = table.take(40).collect();
        assert!(rows.len() == 40 && rows.iter().all(|row| row.contains(" +30")), "{width}: {said}");
    }
}

#[test]
fn the_verdict_has_a_colour_where_colours_are_shown() {
    let said = on_screen(Screen { styled: true, width: None });
    assert!(said.starts_with("\u{1b}[31m✗ ") && said.contains("\n\u{1b}[31m▲ Slower\u{1b}[0m: "), "{said}");
    assert!(!on_screen(Screen { styled: false, width: None }).contains('\u{1b}'));
}

#[test]
fn names_are_shown_and_not_obeyed() {
    let mut base = base();
    let mut new = changed(&base);
    for record in base.cases.iter_mut().chain(&mut new.cases) {
        record.case.key.variant = format!("=cmd|<a href=\"x\">`*&{}\u{7}", record.case.key.variant);
    }
    let [_, (_, page), _, (_, csv), (_, tests)] = forms(&base, &new);
    assert!(page.contains("``=cmd\\|<a href=\"x\">`*&variant1"), "{page}");
    assert!(csv.lines().nth(1).unwrap().contains(",\"'=cmd|<a href=\"\"x\"\">`*&variant0"), "{csv}");
    let name = "name=\"=cmd|&lt;a href=&quot;x&quot;&gt;`*&amp;variant0␇[n = 1000] cold\"";
    assert!(tests.contains(name), "{tests}");
    assert!(!tests.contains('\u{7}'));
}

#[test]
fn a_page_that_is_too_long_leaves_out_what_matters_least_and_says_how_much() {
    let base = base();
    let mut new = changed(&base);
    let cases: Vec<CaseRecord> = base.cases.iter().filter(|record| record.result.is_some()).cloned().collect();
    for copy in 0..40 {
        new.cases.extend(cases.iter().cloned().map(|mut record| {
            record.case.key.variant = format!("{}_copy{copy}", record.case.key.variant);
            record
        }));
    }
    let [_, (_, page), ..] = forms(&base, &new);
    let length = page.chars().count();
    let page = page.replace('\u{a0}', " ");
    assert!((MOST_CHARACTERS - 500..MOST_CHARACTERS).contains(&length), "{length}");
    assert!(
        page.starts_with(
            "## ✗ Fails: 3 cases newly wrong, 2 claims newly broken, 3 cases slower (+30 %), 3 cases not comparable (work changed), \
             1 report deleted, 6 cases gone (`regimes`"
        ),
        "{page:.300}"
    );
    // Only rows of the least important kinds are omitted.
    let after = page.split_once("+ New").unwrap().1;
    let omitted = "omitted (size limit)";
    assert!(after.contains(omitted) && page.matches(omitted).count() == after.matches(omitted).count(), "{page}");
    for row in ["`variant1[n = 1000]`", "`variant2[n = 1000]`", "`variant6[n = 1000]`"] {
        assert!(page.contains(row), "{row}");
    }
}

/// In each experiment, one variant is slower and one faster. Even without rows the page is too long.
#[test]
fn a_page_that_is_cut_uses_the_room_that_it_has() {
    let experiment = |number: usize| {
        let mut base = base();
        base.header.experiment = format!("experiment{number}");
        let mut new = base.clone();
        of_variant(&mut new, "variant1").for_each(|record| scale(record, 1.3));
        of_variant(&mut new, "variant2").for_each(|record| scale(record, 0.5));
        [base, new]
    };
    let all: Vec<[Records; 2]> = (0..10).map(experiment).collect();
    let pairs: Vec<Pair<'_>> = all.iter().map(|[base, new]| Pair { base, new }).collect();
    let found = compare(&pairs, &Options::default());
    let names = ["main:reports".to_owned(), "reports".to_owned()];
    let places = vec![names.clone(); pairs.len()];
    let compared = Compared { comparison: &found, names: &names, labels: &names, places: &places, faults: &[] };
    let limit = 2_500;
    let page = comparison::markdown(compared, Some(limit)).unwrap();
    assert!((limit * 4 / 5..=limit).contains(&page.len()), "{} of {limit}: {page}", page.len());
    assert!(page.contains("Parts of this page are left out (size limit)."), "{page}");
}

/// Load requests do not decide, since sectors do; but the output must not claim that no counter changed.
#[test]
fn a_count_that_fell_and_does_not_decide_is_named() {
    let counted = |requests: f64, sectors: f64| {
        let mut records = fixture::calibrated(&fixture::simulated());
        for counters in records.cases.iter_mut().filter_map(|record| record.counters.as_mut()) {
            counters.0.extend([("gld_requests".into(), requests), ("gld_sectors".into(), sectors)]);
        }
        records
    };
    let said = |requests: f64, sectors: f64| {
        let [(_, text), ..] = forms(&counted(64.0, 256.0), &counted(requests, sectors));
        text.replace('\u{a0}', " ").replace("\n  ", " ")
    };
    assert!(said(64.0, 256.0).contains("\nNo count changed.\n"));
    let fell = said(32.0, 256.0);
    assert!(
        fell.contains(
            "\nNo deciding counter changed by more than the threshold; gld_requests changed in 2 of 2 cases."
        ),
        "{fell}"
    );
    let decided = said(64.0, 128.0);
    assert!(decided.contains("Less work") && !decided.contains("No count"), "{decided}");
}

/// Every sample of the new report is 60 ns longer, whatever the kernel: the clock has an offset, and no kernel is
/// slower.
#[test]
fn what_the_clock_of_a_run_reads_more_is_said_and_taken_out() {
    let base = base();
    let mut new = base.clone();
    for record in &mut new.cases {
        if let Some(result) = &record.result {
            let runs = if result.regime == Regime::Cold { 1 } else { result.launches };
            scale(record, 1.0 + 60.0 / f64::from(runs) / result.time.point);
        }
    }
    let [(_, text), _, (_, json), ..] = forms(&base, &new);
    let said = "The clocks of the two runs differ: in the new run, short kernels with unchanged code measure 60 ns \
         more in regimes.";
    assert!(text.replace("\n ", "").replace('\u{a0}', " ").contains(said), "{text}");
    assert!(!text.contains("slower") && text.contains("Average time change: 0.0"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let offset = &json["reports"][0]["clock_offsets"][0];
    assert!((offset["nanoseconds"].as_f64().unwrap() - 60.0).abs() < 2.0, "{offset}");
}
