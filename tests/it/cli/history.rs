//! `runner history`, as a user types it, on a repository that the test creates.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use runner_results::journal;
use runner_types::{Estimate, Records};
use tempfile::TempDir;

use fixture::snapshot;

const REPORT: &str = "reports/regimes/h100";

/// 0-based index of the revision with the planted change.
const CHANGED: usize = 20;

struct Repository {
    dir: TempDir,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { dir: tempfile::tempdir().unwrap() };
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    /// Fixed author and date: equal records always yield the same commit, so that snapshots can name it.
    fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let date = "2026-03-04T05:06:07+0000";
        let mut command = Command::new("git");
        command.current_dir(self.dir.path()).args(identity).args(arguments);
        let output = command.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit(&self, subject: &str, records: &Records) {
        self.commit_in(REPORT, subject, records);
    }

    fn commit_in(&self, report: &str, subject: &str, records: &Records) {
        let folder = self.dir.path().join(report);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("records.jsonl"), journal::records_text(records).unwrap()).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", subject]);
    }

    fn history(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        history(self.dir.path(), arguments)
    }
}

fn history(dir: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let words = ["--color", "never", "history"].iter().chain(arguments);
    let output = Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(dir).args(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Cold and warm times of two variants' long kernels, which vary by 0.1 % between processes.
static RECORDS: LazyLock<Records> = LazyLock::new(|| {
    let mut records = fixture::calibrated(&fixture::regimes());
    let is_kept = |variant: &str| ["variant2", "variant3"].contains(&variant);
    records.cases.retain(|record| {
        is_kept(&record.case.key.variant) && record.result.as_ref().is_some_and(|result| result.time.point > 1e6)
    });
    records
});

fn scale(time: &mut Estimate, factor: f64) {
    for end in [&mut time.point, &mut time.low, &mut time.high] {
        *end *= factor;
    }
}

/// Forty reruns with 0.3 % noise; `variant3` becomes 1 % slower halfway.
fn noisy_history() -> Repository {
    let repository = Repository::new();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for revision in 0..40 {
        let mut records = RECORDS.clone();
        for record in &mut records.cases {
            let mut uniform = || (f64::from(rng.next_u32()) + 0.5) / f64::from(u32::MAX);
            let normal = (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
            let is_slow = record.case.key.variant == "variant3" && revision >= CHANGED;
            let factor = (1.0 + 0.003 * normal) * if is_slow { 1.01 } else { 1.0 };
            scale(&mut record.result.as_mut().unwrap().time, factor);
            if is_slow {
                record.launches[0].resources.registers = Some(96);
            }
        }
        repository.commit(&format!("Rerun {revision}"), &records);
    }
    repository
}

/// Six measurements with an old driver and six with a new one, which is twice as slow. The seventh revision repeats the
/// times of the sixth.
fn broken_history() -> Repository {
    let repository = Repository::new();
    let mut last = RECORDS.clone();
    for revision in 0..12 {
        let mut records = RECORDS.clone();
        let factor = if revision % 2 == 0 { 1.0 } else { 1.001 };
        let factor = if revision < 6 { factor } else { 2.0 * factor };
        for record in &mut records.cases {
            scale(&mut record.result.as_mut().unwrap().time, factor * (1.0 + 1e-5 * f64::from(revision)));
        }
        if revision >= 6 {
            records.environment.driver = Some("590.10".to_owned());
        }
        if revision == 6 {
            "Another title".clone_into(&mut last.header.title);
            repository.commit("Change the title only", &last);
        }
        repository.commit(&format!("Rerun {revision}"), &records);
        last = records;
    }
    repository
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/history").join(name)
}

#[test]
fn a_planted_change_of_one_percent_is_found_with_its_cause_and_no_other_is() {
    let repository = noisy_history();
    let (code, json, error) = repository.history(&[REPORT, "--format", "json"]);
    assert_eq!(code, Some(0), "{error}");
    let page: serde_json::Value = serde_json::from_str(&json).unwrap();
    let report = &page["reports"][0];
    assert_eq!(report["revisions"].as_array().unwrap().len(), 40);
    assert_eq!(report["revisions"][0]["subject"], "Rerun 0");
    for series in report["series"].as_array().unwrap() {
        let changes = series["changes"].as_array().unwrap();
        assert_eq!(series["points"].as_array().unwrap().len(), 40);
        assert_eq!(series["breaks"].as_array().unwrap().len(), 0);
        if series["variant"] == "variant2" {
            assert_eq!(changes.len(), 0, "{series}");
            continue;
        }
        let [change] = &changes[..] else { panic!("{series}") };
        let at = change["revision"].as_u64().unwrap() as usize;
        assert!(at.abs_diff(CHANGED) <= 3, "{change}");
        assert!((change["ratio"].as_f64().unwrap() - 1.01).abs() < 0.003, "{change}");
        if at == CHANGED {
            assert_eq!(change["causes"], "registers 40 → 96");
        }
    }
}

#[test]
fn the_outputs_are_those_of_the_snapshots() {
    let repository = noisy_history();
    let (_, text, _) = repository.history(&[REPORT]);
    snapshot::assert_is(&text, &golden("history.txt"));
    let page = repository.dir.path().join("page.md");
    let (code, said, error) =
        repository.history(&[REPORT, "--format", "markdown", "-o", "page.md", "--charts", "charts"]);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{error}");
    assert!(error.contains("wrote 4 of 4 charts to charts"), "{error}");
    snapshot::assert_is(&fs::read_to_string(page).unwrap(), &golden("history.md"));
    let charts = repository.dir.path().join("charts");
    let chart = fs::read_to_string(charts.join("variant3-n-19260817-cold.svg")).unwrap();
    snapshot::assert_is(&chart, &golden("history.svg"));
    assert_eq!(fs::read_dir(charts).unwrap().count(), 4);
    let (_, csv, _) = repository.history(&[REPORT, "--format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + 4 * 40);
}

#[test]
fn every_chart_has_a_file_of_its_own() {
    let repository = Repository::new();
    let mut records = RECORDS.clone();
    let mut names = ["one.step", "one step", "one+step", "One-Step"].into_iter().cycle();
    for record in &mut records.cases {
        names.next().unwrap().clone_into(&mut record.case.key.variant);
    }
    for revision in 0..2 {
        let time = &mut records.cases[0].result.as_mut().unwrap().time;
        scale(time, 1.0 + f64::from(revision));
        repository.commit(&format!("Rerun {revision}"), &records);
    }
    let (code, said, error) = repository.history(&[REPORT, "--charts", "charts"]);
    assert_eq!(code, Some(0), "{said}{error}");
    assert!(error.contains("wrote 4 of 4 charts to charts"), "{error}");
    assert_eq!(fs::read_dir(repository.dir.path().join("charts")).unwrap().count(), 4);
}

#[test]
fn a_new_driver_is_a_break_and_never_a_change() {
    let repository = broken_history();
    let (code, text, error) = repository.history(&[REPORT]);
    assert_eq!(code, Some(0), "{error}");
    assert!(text.starts_with("No change in the history of 4 cases\n"), "{text}");
    assert!(text.contains("→ 590.10"), "{text}");
    assert!(text.contains('┊'), "{text}");
    let (_, json, _) = repository.history(&[REPORT, "--format", "json"]);
    let page: serde_json::Value = serde_json::from_str(&json).unwrap();
    let series = &page["reports"][0]["series"][0];
    assert_eq!(series["breaks"][0]["what"], serde_json::json!(["driver"]));
    // A revision that repeats all times is not a measurement.
    assert_eq!(series["points"].as_array().unwrap().len(), 12);
    assert_eq!(series["breaks"][0]["revision"], 7);
}

#[test]
fn a_range_and_a_filter_narrow_the_history() {
    let repository = broken_history();
    let revisions = |arguments: &[&str]| {
        let (code, json, error) = repository.history(&[arguments, &["--format", "json"]].concat());
        assert_eq!(code, Some(0), "{error}");
        let page: serde_json::Value = serde_json::from_str(&json).unwrap();
        let report = page["reports"][0].clone();
        (report["revisions"].as_array().unwrap().len(), report["series"].as_array().unwrap().len())
    };
    assert_eq!(revisions(&["reports"]), (13, 4));
    assert_eq!(revisions(&[REPORT, "main~3.."]), (3, 4));
    assert_eq!(revisions(&[REPORT, "main~10"]), (3, 4));
    assert_eq!(revisions(&[REPORT, "--variant", "variant2"]), (13, 2));
    assert_eq!(revisions(&[REPORT, "--filter", "n > 1000 && variant == \"variant3\""]), (13, 2));
}

#[test]
fn what_has_no_history_says_why() {
    let repository = broken_history();
    fs::create_dir(repository.dir.path().join("new")).unwrap();
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let (found, _, error) = repository.history(arguments);
        assert_eq!(found, Some(code), "{error}");
        assert!(error.contains(words), "`{words}` is not in {error}");
    };
    refused(&["new"], 2, "new is not in revision `HEAD`, so it has no history");
    refused(&[REPORT, "topic.."], 2, "git knows no revision `topic` here");
    refused(&[REPORT, "main..main"], 2, "no commit in this range changed a report");
    refused(&[REPORT, "--variant", "none"], 2, "no timed case of");
    refused(&[REPORT, "--filter", "m > 1"], 2, "m");
    refused(&["/"], 2, "name a folder of reports in it");
    let outside = tempfile::tempdir().unwrap();
    let (code, _, error) = history(outside.path(), &["."]);
    assert_eq!(code, Some(2));
    assert!(error.contains("is not in a git checkout"), "{error}");
}

#[test]
fn a_shallow_clone_is_refused_where_history_is_missing() {
    let repository = broken_history();
    let clone = tempfile::tempdir().unwrap();
    let source = format!("file://{}", repository.dir.path().display());
    let words = ["clone", "-q", "--depth", "4", &source, "."];
    assert!(Command::new("git").current_dir(clone.path()).args(words).status().unwrap().success());
    let (code, _, error) = history(clone.path(), &[REPORT]);
    assert_eq!(code, Some(3), "{error}");
    assert!(error.contains("the clone is shallow"), "{error}");
    let (code, text, error) = history(clone.path(), &[REPORT, "HEAD~2.."]);
    assert_eq!(code, Some(0), "{error}");
    assert!(text.contains("2 measured revisions"), "{text}");
}

#[test]
fn a_report_has_its_history_whatever_its_folder_is_called() {
    for name in ["my run 3000 x", "tab\tand\nline", "blob 7", "missing", "\"quoted\"", "-z", ":3 d"] {
        let repository = Repository::new();
        let report = format!("reports/{name}");
        for revision in 0..4 {
            let mut records = RECORDS.clone();
            for record in &mut records.cases {
                scale(&mut record.result.as_mut().unwrap().time, 1.0 + 1e-4 * f64::from(revision));
            }
            repository.commit_in(&report, &format!("Rerun\t{revision}"), &records);
            repository.git(&["rm", "-rq", "--", "reports"]);
            repository.git(&["commit", "-qm", "Remove the report"]);
        }
        repository.commit_in(&report, "Restore it", &RECORDS);
        let (code, text, error) = repository.history(&["./reports"]);
        assert_eq!(code, Some(0), "{name}: {error}");
        assert_eq!(error, "", "{name}");
        assert!(text.contains("5 measured revisions"), "{name}: {text}");
    }
}

/// Files of two megabytes exceed a limit of one; they are refused as soon as their size is known.
#[test]
fn files_of_a_revision_that_are_too_long_are_refused() {
    let repository = broken_history();
    let file = repository.dir.path().join(REPORT).join("records.jsonl");
    fs::File::create(&file).unwrap().set_len(2 << 20).unwrap();
    repository.git(&["commit", "-qam", "Swell"]);
    let base = format!("HEAD:{REPORT}");
    for words in [&["history", REPORT][..], &["compare", &base, REPORT]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command.current_dir(repository.dir.path()).args(words);
        let output = command.env("RUNNER_LONGEST_FILE", "1").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{words:?}: {error}");
        let object = repository.git(&["rev-parse", &format!("{base}/records.jsonl")]);
        let expected = format!(
            "records.jsonl` (git object {}) is 2 MB, over the limit of 1 MB; raise it with RUNNER_LONGEST_FILE=MB",
            object.trim()
        );
        assert!(error.contains(&expected), "{words:?}: {error}");
    }
}

#[test]
fn a_revision_that_cannot_be_read_is_part_of_the_verdict() {
    let repository = broken_history();
    let file = repository.dir.path().join(REPORT).join("records.jsonl");
    let good = fs::read_to_string(&file).unwrap();
    let second = good.lines().nth(1).unwrap();
    let without_a_case = good.replacen(&format!("{second}\n"), "", 1);
    for damaged in ["{}\n", &without_a_case] {
        fs::write(&file, damaged).unwrap();
        repository.git(&["commit", "-qam", "Damage"]);
        fs::write(&file, &good).unwrap();
        repository.git(&["commit", "-qam", "Repair"]);
    }
    let (code, text, error) = repository.history(&[REPORT]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(error, "");
    let verdict = text.lines().next().unwrap();
    assert!(verdict.contains(" in the history of 4 cases; 2 of 17 revisions could not be read"), "{verdict}");
    assert_eq!(text.matches("Not read: ").count(), 2, "{text}");
    assert!(text.contains("case lines, but"), "{text}");
    assert!(text.contains("15 measured revisions"), "{text}");
}

/// Six identical reruns, except that one variant is 16 % slower in one of them.
#[test]
fn a_scatter_that_no_change_explains_is_in_the_first_line() {
    let repository = Repository::new();
    for revision in 0..6 {
        let mut records = RECORDS.clone();
        for record in &mut records.cases {
            let is_outlier = revision == 3 && record.case.key.variant == "variant3";
            let factor = if is_outlier { 1.16 } else { 1.0 + 1e-5 * f64::from(revision) };
            scale(&mut record.result.as_mut().unwrap().time, factor);
        }
        repository.commit(&format!("Rerun {revision}"), &records);
    }
    let (code, text, error) = repository.history(&[REPORT]);
    assert_eq!(code, Some(0), "{error}");
    let first = "No change in the history of 4 cases; 2 cases are noisy (up to 16.0 %): ";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn a_page_for_a_browser_has_every_time_at_its_revision() {
    let repository = broken_history();
    let (code, page, _) = repository.history(&[REPORT, "--format", "html"]);
    assert_eq!(code, Some(0));
    let (_, rest) = page.split_once(r#"<script type="application/json" class="data">"#).unwrap();
    let data: serde_json::Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["rows"].as_u64().unwrap() as usize, RECORDS.cases.len());
    for (facts, record) in data["facts"].as_array().unwrap().iter().zip(&RECORDS.cases) {
        let lanes = facts["lanes"].as_array().unwrap();
        // The seventh revision repeats the sixth, so it is not a measurement.
        assert_eq!(lanes.len(), 12);
        let time = record.result.as_ref().unwrap().time.point;
        let ratio = |lane: usize| lanes[lane]["interval"][0].as_f64().unwrap() / time;
        assert!((ratio(0) - 1.0).abs() < 1e-4 && (ratio(11) - 2.002).abs() < 1e-3, "{}", ratio(11));
        assert_eq!(lanes[6]["note"], "break: driver");
    }
    // The page has a chart for each case.
    assert_eq!(page.matches("<svg ").count(), RECORDS.cases.len());
}
