//! `runner templates` and user templates, as a user types the commands.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use runner_results::journal::Journal;

fn runner(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runner")).current_dir(dir).args(words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat()).unwrap()
}

fn with_report() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(&dir.path().join("report")).unwrap();
    fixture::sum_matrix().events.iter().for_each(|event| journal.record(event).unwrap());
    drop(journal);
    assert_eq!(runner(dir.path(), &["report", "report"]).status.code(), Some(0));
    dir
}

#[test]
fn the_exported_template_of_a_report_makes_the_same_page() {
    let dir = with_report();
    let page = || fs::read_to_string(dir.path().join("report/report.md")).unwrap();
    let shipped = page();
    let listed = said(&runner(dir.path(), &["templates", "list"]));
    assert!(listed.contains("report.md.tera") && listed.contains("chart.svg.tera"), "{listed}");
    assert_eq!(runner(dir.path(), &["templates", "export", "mine"]).status.code(), Some(0));
    let again = runner(dir.path(), &["report", "report", "--template", "mine/report.md.tera"]);
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    assert_eq!(page(), shipped);
    // An edited template is not overwritten.
    fs::write(dir.path().join("mine/report.md.tera"), "# {{ title | md }}, short\n").unwrap();
    let refused = runner(dir.path(), &["templates", "export", "mine"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
}

#[test]
fn a_report_keeps_its_template_and_another_machine_makes_the_same_page() {
    let dir = with_report();
    let template = dir.path().join("my.md.tera");
    fs::write(&template, "# {{ title | md }}\n{% for s in sections %}{{ <table t={s.table} /> }}{% endfor %}\n")
        .unwrap();
    assert_eq!(runner(dir.path(), &["report", "report", "--template", "my.md.tera"]).status.code(), Some(0));
    let page = fs::read_to_string(dir.path().join("report/report.md")).unwrap();
    assert!(
        page.starts_with("# Block shapes for the sum of two matrices\n| ") && !page.contains("How this was made"),
        "{page}"
    );
    fs::remove_file(template).unwrap();
    let check = runner(dir.path(), &["report", "report", "--check"]);
    assert_eq!(check.status.code(), Some(0), "{}", said(&check));
}

#[test]
fn a_fault_in_a_template_is_shown_with_its_line_and_nothing_is_written() {
    let dir = with_report();
    let before = fs::read(dir.path().join("report/records.jsonl")).unwrap();
    for (text, place) in
        [("# {{ title | md }}\n{{ nothing }}\n", "my.md.tera:2:4: "), ("\n\n{% if %}", "my.md.tera:3:")]
    {
        fs::write(dir.path().join("my.md.tera"), text).unwrap();
        let output = runner(dir.path(), &["report", "report", "--template", "my.md.tera"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(place), "{}", said(&output));
        assert!(said(&output).contains("docs/reference/templates.md"), "{}", said(&output));
    }
    assert_eq!(fs::read(dir.path().join("report/records.jsonl")).unwrap(), before);
}

const MANIFEST: &str = r#"
[experiment]
name     = "scale"
template = "TEMPLATE"
[axes]
n = [256]
[buffers.output]
type   = "f32"
len    = "n"
access = "out"
[[variant]]
name   = "scale"
source = "scale.cu"
kernel = "scale"
grid   = [1]
block  = ["n"]
args   = ["output"]
"#;

#[test]
fn a_manifest_names_its_template_within_the_project() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("a/project");
    fs::create_dir_all(&project).unwrap();
    fs::write(
        project.join("scale.cu"),
        "extern \"C\" __global__ void scale(float* out) { out[threadIdx.x] = 1.0f; }\n",
    )
    .unwrap();
    fs::write(project.join("page.md.tera"), "# Mine: {{ experiment }}\n").unwrap();
    fs::write(dir.path().join("outside.md.tera"), "# Not mine\n").unwrap();
    assert!(Command::new("mkfifo").arg(project.join("pipe.md.tera")).status().unwrap().success());
    let manifest =
        |template: &str| fs::write(project.join("scale.toml"), MANIFEST.replace("TEMPLATE", template)).unwrap();
    for (template, words) in [
        ("../../outside.md.tera", "is outside of the project"),
        ("missing.md.tera", "cannot read the template"),
        ("pipe.md.tera", "it is a pipe, not a file"),
        ("/tmp/page.md.tera", "absolute paths are not portable"),
    ] {
        manifest(template);
        let check = runner(&project, &["check", "scale.toml"]);
        assert_eq!(check.status.code(), Some(2), "{}", said(&check));
        assert!(said(&check).contains(words) && said(&check).contains("scale.toml:4:"), "{}", said(&check));
    }
    manifest("../../outside.md.tera");
    let allowed = runner(&project, &["check", "scale.toml", "--allow-outside"]);
    assert_eq!(allowed.status.code(), Some(0), "{}", said(&allowed));
    manifest("page.md.tera");
    let run = runner(&project, &["run", "scale.toml", "--backend", "sim", "--out", "out", "--quiet"]);
    assert_eq!(run.status.code(), Some(0), "{}", said(&run));
    assert_eq!(fs::read_to_string(project.join("out/report.md")).unwrap(), "# Mine: scale\n");
}
