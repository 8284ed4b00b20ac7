//! The same run repeated, and a narrower one.

use std::collections::BTreeSet;
use std::fs;
use std::time::SystemTime;

use runner_types::Event;

use super::bench::{Bench, bench, fixture, text};
use super::left::{Left, files};

/// Cells of `quick.toml`: three variants at three sizes.
const CELLS: usize = 9;

/// Whether each compiled unit came from the cache.
fn cached(left: &Left) -> Vec<bool> {
    let cached = |event: &Event| match event {
        Event::UnitCompiled { cached, failed, .. } => {
            assert!(!failed, "{}", left.story());
            Some(*cached)
        }
        _ => None,
    };
    left.events().iter().filter_map(cached).collect()
}

fn measured(left: &Left) -> BTreeSet<u64> {
    let ordinal = |event: &Event| if let Event::CaseMeasured { case, .. } = event { Some(case.ordinal) } else { None };
    left.events().iter().filter_map(ordinal).collect()
}

#[test]
#[ignore = "needs a GPU"]
fn an_unchanged_manifest_compiles_nothing_and_measures_everything_again() {
    let bench = bench();
    let manifest = bench.path("quick.toml");
    fs::copy(fixture("quick.toml"), &manifest).unwrap();
    // A source that is in no cache.
    let source = fs::read_to_string(fixture("quick.cu")).unwrap();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    fs::write(bench.path("quick.cu"), format!("{source}\n// {now}\n")).unwrap();

    let first = bench.run(&manifest, "out", &[]);
    first.expect_code(0);
    first.expect_whole(3, 3);
    assert_eq!(cached(&first), [false; 3], "{}", first.story());
    let before = (measured(&first), first.records().cases.len());

    let second = bench.run(&manifest, "out", &[]);
    second.expect_code(0);
    second.expect_whole(3, 3);
    second.expect_sound(&["sound", "unrolled2", "unrolled4"]);
    assert_eq!(cached(&second), [true; 3], "{}", second.story());
    assert_eq!((measured(&second), second.records().cases.len()), before, "{}", second.story());
    assert_eq!(before.0.len(), CELLS);
    // The samples of the previous run are kept until the next one.
    assert!(second.dir.join("journal.previous.jsonl").exists(), "{}", second.story());
}

/// Runs without `--out`, so that the report goes to its default place below the current folder.
fn run_here(bench: &Bench, more: &[&str]) -> Left {
    let mut args = vec!["run".to_owned(), text(&fixture("quick.toml"))];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    let left = bench.start(&args, bench.path("")).end();
    left.expect_code(0);
    let report = left.stdout.lines().find_map(|line| line.strip_prefix("report: ")).unwrap().to_owned();
    Left { dir: bench.path(&report).parent().unwrap().to_owned(), ..left }
}

#[test]
#[ignore = "needs a GPU"]
fn a_narrowed_run_never_touches_the_report_of_a_full_one() {
    let bench = bench();
    let full = run_here(&bench, &[]);
    full.expect_whole(3, 3);
    assert!(full.dir.starts_with(bench.path("reports/quick")), "{}", full.dir.display());
    let before = files(&bench.path("reports"));
    let narrowings: [(&[&str], usize, &str); 3] = [
        (&["--filter", "n == 4096"], 3, "--filter 'n == 4096'"),
        (&["--set", "n=512,2048"], 6, "--set n=512,2048"),
        (&["--variant", "sound", "--resume"], 3, "--variant sound"),
    ];
    for (options, cells, said) in narrowings {
        let narrowed = run_here(&bench, options);
        assert!(narrowed.dir.starts_with(bench.path("target")), "{}", narrowed.dir.display());
        let records = narrowed.records();
        assert_eq!(records.cases.len(), cells, "{}", narrowed.story());
        assert_eq!(records.header.narrowed.as_deref(), Some(said));
        assert!(narrowed.report().contains("Partial"), "{}", narrowed.report());
        assert!(files(&bench.path("reports")) == before, "{options:?} changed the full report");
    }
}
