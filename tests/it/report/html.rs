//! `runner report --html`: the file, and its behaviour in a browser.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use runner_report::Templates;
use runner_report::html::{Companions, Page, SourceFile, html};
use runner_report::source_view::{self, At, MachineLine, PtxLine, SourceLine, SourceView};
use runner_results::analyse;
use runner_results::journal::Journal;
use runner_types::{CaseRecord, Counters, Event, Records, Value};

use fixture::Run;

fn records(run: &Run) -> Records {
    analyse::records(&run.events).unwrap()
}

fn page(records: &Records, beside: &Companions) -> String {
    html(&[Page { place: "reports/one", records, beside }]).unwrap()
}

fn write(dir: &Path, events: &[Event]) {
    let mut journal = Journal::create(dir).unwrap();
    for event in events {
        journal.record(event).unwrap();
    }
    drop(journal);
    fixture::write(dir, &analyse::records(events).unwrap());
}

fn runner(dir: &Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runner")).arg("report").arg(dir).args(options).output().unwrap()
}

/// Data of the first report on a page.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once(r#"<script type="application/json" class="data">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// A browser, if this machine has one.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("RUNNER_CHROMIUM").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|file| file.is_file())
}

/// The DOM after the page's script ran in the browser, and the script's console output.
fn shown(browser: &Path, file: &Path, state: &str) -> (String, String) {
    let home = tempfile::tempdir().unwrap();
    let mut user = OsString::from("--user-data-dir=");
    user.push(home.path());
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=20000"])
        .arg(user)
        .arg("--dump-dom")
        .arg(format!("file://{}{state}", file.display()))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    let console: String = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

/// Cells of the case rows, in display order.
fn rows(dom: &str) -> Vec<Vec<String>> {
    let body = dom.split_once(r#"<table class="cases">"#).unwrap().1.split_once("</table>").unwrap().0;
    let lines = body.split(r#"<tr class="case"#).skip(1);
    let cell = |cell: &str| cell.split_once('>').unwrap().1.split_once("</td>").unwrap().0.to_owned();
    lines.map(|line| line.split_once("</tr>").unwrap().0.split("<td").skip(1).map(cell).collect()).collect()
}

#[test]
fn the_same_records_give_the_same_file_which_needs_no_network() {
    let records = records(&fixture::reduce());
    let page = page(&records, &Companions::default());
    assert!(page == self::page(&records, &Companions::default()));
    for remote in ["src=", "@import", "fetch(", "XMLHttpRequest", "<link"] {
        assert!(!page.contains(remote), "{remote}");
    }
    let remote = page.match_indices("http").map(|(at, _)| &page[at..(at + 40).min(page.len())]);
    let remote: Vec<&str> =
        remote.filter(|text| !text.starts_with("http://www.w3.org/") && !text.starts_with("http-equiv")).collect();
    assert!(remote.is_empty(), "{remote:?}");
}

#[test]
fn every_case_is_embedded_once_with_its_time_in_nanoseconds() {
    let records = records(&fixture::reduce());
    let data = data(&page(&records, &Companions::default()));
    assert_eq!(data["rows"], 80);
    let time = data["columns"].as_array().unwrap().iter().find(|column| column["key"] == "time").unwrap();
    for (record, value) in records.cases.iter().zip(time["values"].as_array().unwrap()) {
        match &record.result {
            None => assert!(value.is_null()),
            Some(result) => assert!((value.as_f64().unwrap() / result.time.point - 1.0).abs() < 1e-5, "{value}"),
        }
    }
}

#[test]
fn markup_in_names_and_texts_is_shown_and_never_obeyed() {
    let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";
    let mut records = records(&fixture::faults());
    records.header.title = hostile.to_owned();
    records.header.question = Some(hostile.to_owned());
    records.header.manifest_text = hostile.to_owned();
    for record in &mut records.cases {
        record.case.key.variant = hostile.to_owned();
    }
    let source = SourceFile { name: hostile.to_owned(), text: hostile.to_owned() };
    let beside = Companions { sources: [("0".to_owned(), vec![source])].into(), ..Companions::default() };
    let page = page(&records, &beside);
    assert!(!page.contains("<script>alert") && !page.contains("<img"), "{page}");
    // The report's data, and the page's script.
    assert_eq!(page.matches("</script>").count(), 2);
    let data = data(&page);
    assert_eq!(data["columns"][0]["texts"][0], hostile);
}

#[test]
fn samples_are_on_the_page_if_the_journal_is_of_the_same_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = fixture::sum_matrix();
    write(dir.path(), &run.events);
    let made = || {
        let output = runner(dir.path(), &["--html"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        data(&fs::read_to_string(dir.path().join("report.html")).unwrap())
    };
    let records = records(&run);
    let measured = records.cases.iter().position(|record| record.result.is_some()).unwrap();
    let samples = records.cases[measured].result.as_ref().unwrap().samples as usize;
    assert_eq!(made()["facts"][measured]["samples"].as_array().unwrap().len(), samples);
    // Another run, in which all times are twice as long.
    let text = fs::read_to_string(dir.path().join("records.jsonl")).unwrap();
    let mut other = runner_results::journal::parse_records(&text, Path::new("records.jsonl")).unwrap();
    for result in other.cases.iter_mut().filter_map(|record| record.result.as_mut()) {
        result.time.point *= 2.0;
        result.time.high *= 2.0;
    }
    fixture::write(dir.path(), &other);
    assert!(made()["facts"][measured].get("samples").is_none());
}

#[test]
fn a_source_is_on_the_page_only_while_it_has_the_hash_in_the_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let committed = root.join("reports/divergence/simulated-h100/records.jsonl");
    for folder in ["experiments", "kernels"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
        for entry in fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                fs::copy(entry.path(), dir.path().join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    let report = dir.path().join("reports/divergence");
    fs::create_dir_all(&report).unwrap();
    fs::copy(committed, report.join("records.jsonl")).unwrap();
    fs::copy(root.join("reports/divergence/simulated-h100/environment.json"), report.join("environment.json")).unwrap();
    let made = || {
        let output = runner(&report, &["--html"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        data(&fs::read_to_string(report.join("report.html")).unwrap())["sources"].clone()
    };
    let sources = made();
    let text = sources[0][0]["text"].as_str().unwrap_or_default().to_owned();
    let file = dir.path().join("kernels").join(sources[0][0]["name"].as_str().unwrap_or("none"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    fs::write(&file, text + "// another line\n").unwrap();
    let left = made();
    let names = left.as_array().unwrap().iter().filter_map(|files| files.as_array()).flatten();
    let names: Vec<&str> = names.filter_map(|file| file["name"].as_str()).collect();
    assert!(!names.iter().any(|name| file.ends_with(name)), "{names:?}");
}

#[test]
fn several_reports_are_one_page_with_an_index() {
    let dir = tempfile::tempdir().unwrap();
    for (name, run) in [("one", fixture::sum_matrix()), ("two", fixture::faults())] {
        fs::create_dir(dir.path().join(name)).unwrap();
        write(&dir.path().join(name), &run.events);
    }
    let site = dir.path().join("site.html");
    let output = runner(dir.path(), &["--html", "-o", site.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = fs::read_to_string(site).unwrap();
    assert!(page.contains(r##"<a href="#report=1">"##) && page.contains("<h1>2 reports</h1>"), "{page}");
    assert_eq!(page.matches(r#"<section class="report""#).count(), 2);
}

/// That all cases passed is not a result. 6,128 sectors are half of 12,256.
#[test]
fn the_index_says_what_a_report_of_counts_found() {
    let mut counted = records(&fixture::simulated());
    let counts = [[12_256.0, 6_128.0], [6_128.0, 6_128.0]];
    for (record, [loads, stores]) in counted.cases.iter_mut().zip(counts) {
        let counters = record.counters.as_mut().unwrap();
        counters.0.extend([("gld_sectors".into(), loads), ("gst_sectors".into(), stores)]);
    }
    let mut same = counted.clone();
    let first = same.cases[0].counters.clone();
    same.cases.iter_mut().for_each(|record| record.counters.clone_from(&first));
    let beside = Companions::default();
    let pages = [("a", &counted), ("b", &same)].map(|(place, records)| Page { place, records, beside: &beside });
    let page = html(&pages).unwrap();
    let index = page.split_once("<nav id=\"index\">").unwrap().1.split_once("</nav>").unwrap().0;
    assert!(
        index.contains("<b><code>interleaved</code></b> loads 0.500× the sectors of <code>neighbored</code>."),
        "{index}"
    );
    assert!(index.contains("2 of 2 cases passed. No deciding counter differs."), "{index}");
}

/// The first kernel is not executed. The page shows one counter, and each pane shows the code with the largest count.
#[test]
fn a_source_page_opens_at_the_hottest_line_with_its_code() {
    let Some(browser) = browser() else { return };
    let counters = |warps: f64| Counters([("inst_executed".into(), warps)].into());
    let at = |line| Some(At { file: 0, line });
    let source = |(line, warps)| SourceLine { line, text: format!("source {line}"), counters: counters(warps) };
    let ptx = |(line, source, warps)| PtxLine { line, text: format!("ptx {line}"), source, counters: counters(warps) };
    let machine = |(offset, ptx_line, source)| MachineLine {
        offset,
        text: format!("machine {offset}"),
        ptx_line,
        source,
        executed: Some(1),
        ..MachineLine::default()
    };
    let view = SourceView {
        case: "k".to_owned(),
        files: vec![source_view::SourceFile {
            path: "k.cu".to_owned(),
            lines: [(1, 2.0), (2, 9.0), (3, 4.0)].map(source).into(),
        }],
        ptx: [(5, None, 0.0), (7, at(1), 2.0), (8, at(2), 9.0), (9, None, 4.0)].map(ptx).into(),
        machine: [(0, Some(7), at(1)), (16, Some(8), at(2)), (32, Some(9), at(3))].map(machine).into(),
        ..SourceView::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("source.html");
    fs::write(&file, view.html(&Templates::new().unwrap()).unwrap()).unwrap();
    let (dom, console) = shown(&browser, &file, "");
    assert_eq!(console, "");
    assert!(dom.contains("<style id=\"only\">.count:not(.c0) { display: none; }</style>"), "{dom}");
    let rows = |class: &str| -> Vec<String> {
        let rows = dom.split("<tr ").skip(1).filter(|row| row.split_once('>').unwrap().0.contains(class));
        rows.map(|row| row.split_once("</tr>").unwrap().0.rsplit_once('>').unwrap().0.rsplit_once('>').unwrap().1)
            .map(|text| text.trim_end_matches("</td").to_owned())
            .collect()
    };
    assert_eq!(rows("picked"), ["source 2", "machine 16", "ptx 8"]);
    // PTX without a source line still links to its machine code; source lines that produce no code have no link.
    assert_eq!(
        rows("linked"),
        ["source 1", "source 2", "source 3", "machine 0", "machine 16", "machine 32", "ptx 7", "ptx 8", "ptx 9"]
    );
}

/// A text as part of an address.
fn escaped(text: &str) -> String {
    let bytes: Vec<String> = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    bytes.concat()
}

/// Value of an integer axis.
fn at(record: &CaseRecord, axis: &str) -> i64 {
    match record.case.key.axes.iter().find(|(name, _)| name == axis) {
        Some((_, Value::Int(value))) => *value,
        other => panic!("{axis}: {other:?}"),
    }
}

/// Folders of two runs. In the second, one variant takes 1.3 times as long.
fn slower_run(dir: &Path) -> [PathBuf; 2] {
    let run = fixture::regimes();
    let folders = ["base", "new"].map(|name| dir.join(name));
    for (folder, factor) in folders.iter().zip([1.0, 1.3]) {
        let mut events = run.events.clone();
        for event in &mut events {
            if let Event::CaseMeasured { case, measurement } = event
                && case.key.variant == "variant2"
            {
                measurement.rounds.iter_mut().for_each(|round| round.whole *= factor);
            }
        }
        fs::create_dir(folder).unwrap();
        write(folder, &events);
    }
    folders
}

fn compared(dir: &Path, [base, new]: &[PathBuf; 2]) -> PathBuf {
    let file = dir.join("compare.html");
    let words = [Path::new("compare"), base, new, Path::new("--format"), Path::new("html"), Path::new("-o"), &file];
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

#[test]
fn a_comparison_has_a_row_for_each_case_with_the_samples_of_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let folders = slower_run(dir.path());
    let page = fs::read_to_string(compared(dir.path(), &folders)).unwrap();
    let data = data(&page);
    let columns = data["columns"].as_array().unwrap();
    let column = |key: &str| columns.iter().find(|column| column["key"] == key).unwrap();
    let variant = |row: usize| {
        let place = column("variant")["cells"][row].as_u64().unwrap() as usize;
        column("variant")["texts"][place].as_str().unwrap().to_owned()
    };
    let rows = data["rows"].as_u64().unwrap() as usize;
    let mut slower = 0;
    for row in 0..rows {
        let change = column("change")["values"][row].as_f64();
        let lanes = data["facts"][row]["lanes"].as_array().cloned().unwrap_or_default();
        if variant(row) == "variant2" {
            assert!((change.unwrap() - 30.0).abs() < 1e-3, "{change:?}");
            slower += 1;
        }
        for lane in &lanes {
            // It contains every sample, and their median.
            let mut samples: Vec<f64> =
                lane["samples"].as_array().unwrap().iter().map(|sample| sample.as_f64().unwrap()).collect();
            samples.sort_by(f64::total_cmp);
            let median = lane["interval"][0].as_f64().unwrap();
            assert!(samples.first().unwrap() <= &median && &median <= samples.last().unwrap());
        }
        assert_eq!(lanes.len(), if change.is_some() { 2 } else { 0 });
    }
    assert_eq!(slower, 6, "three sizes in two regimes");
    assert!(page.contains("<h1>✗ Fails: 3 cases slower (+30 %) ("), "{page}");
    // Without journals, only the intervals remain.
    for folder in &folders {
        fs::remove_file(folder.join("journal.jsonl")).unwrap();
    }
    let data = self::data(&fs::read_to_string(compared(dir.path(), &folders)).unwrap());
    let lanes = |row: usize| data["facts"][row]["lanes"].as_array().cloned().unwrap_or_default();
    assert!((0..rows).flat_map(lanes).all(|lane| lane.get("samples").is_none() && lane["interval"][0].is_number()));
}

#[test]
fn in_a_browser_a_comparison_is_filtered_and_shows_two_distributions() {
    let Some(browser) = browser() else {
        println!("skipped: no Chromium on PATH; set RUNNER_CHROMIUM to one");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let folders = slower_run(dir.path());
    let file = compared(dir.path(), &folders);
    let data = data(&fs::read_to_string(&file).unwrap());
    let (dom, console) = shown(&browser, &file, &format!("#filter={}", escaped("slower change > 20")));
    assert!(console.is_empty() && !dom.contains("data-error"), "{console}: {dom}");
    assert_eq!(rows(&dom).len(), 6, "{dom}");
    let facts = data["facts"].as_array().unwrap();
    let row = facts.iter().position(|facts| facts["lanes"].is_array()).unwrap();
    let samples: usize =
        facts[row]["lanes"].as_array().unwrap().iter().map(|lane| lane["samples"].as_array().unwrap().len()).sum();
    let (open, console) = shown(&browser, &file, &format!("#case={row}"));
    assert!(console.is_empty() && !open.contains("data-error"), "{console}: {open}");
    assert_eq!(open.matches("<circle ").count(), samples);
    assert!(open.contains("Times, with their intervals and samples"), "{open}");
}

#[test]
fn in_a_browser_the_table_sorts_filters_and_opens_a_case() {
    let Some(browser) = browser() else {
        println!("skipped: no Chromium on PATH; set RUNNER_CHROMIUM to one");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let run = fixture::sum_matrix();
    write(dir.path(), &run.events);
    let file = dir.path().join("report.html");
    assert_eq!(runner(dir.path(), &["--html"]).status.code(), Some(0));
    let records = records(&run);
    let shown = |state: &str| {
        let (dom, console) = shown(&browser, &file, state);
        assert!(console.is_empty(), "{state}: {console}");
        assert!(dom.contains(r#"data-ready="yes""#) && !dom.contains("data-error"), "{state}: {dom}");
        dom
    };

    // All rows, in the manifest's order, and a chart whose cells are labelled.
    let plain = shown("");
    assert!(plain.contains(r#"data-about="sum[bx=32, by=2]: 1."#), "{plain}");
    let all = rows(&plain);
    assert_eq!(all.len(), records.cases.len());
    assert_eq!(all[1][1..3], ["16", "2"], "{all:?}");

    // Fastest first. Of the blocks with neither few threads nor few rows, 32 × 2 has the fewest threads.
    let sorted = rows(&shown("#sort=time"));
    assert_eq!(sorted[0][1..3], ["32", "2"], "{sorted:?}");
    // Rows without a time come last in either direction.
    let slowest = rows(&shown("#sort=time&desc=1"));
    assert_eq!(slowest[0][1..3], ["16", "1"], "{slowest:?}");
    assert!(slowest.last().unwrap().iter().any(|cell| cell.contains("invalid")), "{slowest:?}");

    // Filters: an axis, a comparison, a word of the outcome.
    let filtered = shown("#filter=bx%3D32");
    assert_eq!(rows(&filtered).len(), 6);
    assert!(filtered.contains("6 of 36 rows"), "{filtered}");
    let invalid = records.cases.iter().filter(|record| record.result.is_none()).count();
    assert_eq!(rows(&shown("#filter=invalid")).len(), invalid);
    let fast = records.cases.iter().filter_map(|record| record.result.as_ref()).filter(|r| r.time.point < 1.25e6);
    assert_eq!(rows(&shown("#filter=time%3C1.25")).len(), fast.count());

    // An opened case shows its compiled code and its samples.
    let measured = records.cases.iter().position(|record| record.result.is_some()).unwrap();
    let open = shown(&format!("#case={measured}"));
    let samples = records.cases[measured].result.as_ref().unwrap().samples;
    assert!(open.contains(&format!("{samples} samples, in the order of rounds")), "{open}");
    assert_eq!(open.matches("<circle ").count(), samples as usize);
    assert!(open.contains("Launches and compiled code") && open.contains("<th>registers</th>"), "{open}");

    // Whatever the page shows can be typed as a filter. What cannot be parsed is named and ignored.
    let queried = |query: &str| shown(&format!("#filter={}", escaped(query)));
    for query in ["bx >= 2^5 by < 4", "bx≥32 by<4", "sum[bx >= 32] by < 4", "\"sum\", bx != 16 by < 4 bx <= 1024"] {
        let wanted = |record: &&CaseRecord| at(record, "bx") >= 32 && at(record, "by") < 4;
        let count = records.cases.iter().filter(wanted).count();
        let dom = queried(query);
        assert_eq!(rows(&dom).len(), count, "{query}");
        assert!(dom.contains(r#"role="status" hidden"#), "{query}: {dom}");
    }
    let fast = records.cases.iter().filter_map(|record| record.result.as_ref()).filter(|r| r.time.point < 1.25e6);
    assert_eq!(rows(&queried("time < 1250 µs")).len(), fast.count());
    let quick = records.cases.iter().filter_map(|record| record.result.as_ref()?.against_baseline.as_ref());
    assert_eq!(rows(&queried("speedup > 1.5")).len(), quick.filter(|ratio| ratio.speedup.point > 1.5).count());
    let faulty = queried("tmie < 3 time < fast by = 2 bx >");
    let named =
        "Ignored (not understood): tmie: no such column; time (ms) &lt; fast: not a number; bx &gt;: value missing";
    assert!(faulty.contains(named) && faulty.contains(r#"aria-invalid="true""#), "{faulty}");
    assert_eq!(rows(&faulty).len(), records.cases.iter().filter(|record| at(record, "by") == 2).count());

    // A theme in the URL overrides the system's.
    assert!(shown("#theme=dark").contains(r#"data-theme="dark""#));
}
