//! Oversized manifests: time and memory stay bounded, and the user can interrupt the program.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tempfile::TempDir;

const KERNEL: &str = "extern \"C\" __global__ void k(int* data) { data[threadIdx.x] = 1; }\n";

/// A project whose manifest has these axes and bindings and ends with `more`.
fn project(axes: &str, lets: &str, more: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "[experiment]\nname = \"x\"\n[axes]\nn = [4]\n{axes}[let]\n{lets}[buffers.data]\ntype = \"i32\"\nlen = 4\n\
         fill = 0\naccess = \"inout\"\n[[variant]]\nname = \"a\"\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\n\
         block = [4]\nargs = [\"data\"]\n{more}"
    );
    fs::write(dir.path().join("x.toml"), text).unwrap();
    fs::write(dir.path().join("k.cu"), KERNEL).unwrap();
    dir
}

fn command(dir: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(dir.path()).args(arguments);
    command
}

/// Runs a command that must be quick: the system kills it after 30 seconds of CPU time.
fn quick(dir: &TempDir, arguments: &[&str]) -> Output {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -t 30; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_runner")]).args(arguments);
    let output = limited.current_dir(dir.path()).output().unwrap();
    assert!(output.status.code().is_some(), "it takes long: {}", output.status);
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A chain of bindings, each of which depends on the previous one.
fn chain(first: &str, count: usize) -> String {
    (1..count).fold(format!("b0 = \"{first}\"\n"), |mut text, i| {
        writeln!(text, "b{i} = \"b{} + 1\"", i - 1).unwrap();
        text
    })
}

/// Axes whose product has a million points.
fn million() -> String {
    (0..6).fold(String::new(), |text, i| format!("{text}a{i} = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n"))
}

#[test]
fn a_chain_of_5000_bindings_is_checked_at_once() {
    let check = quick(&project("", &chain("n", 5000), ""), &["check", "x.toml"]);
    assert!(check.status.success(), "{}", said(&check));
}

#[test]
fn a_cycle_of_5000_bindings_is_one_fault_that_names_some() {
    let check = quick(&project("", &chain("b4999", 5000), ""), &["check", "x.toml"]);
    let said = said(&check);
    assert!(said.contains("bindings form a cycle: `b0` → `b4999` → `b4998`"), "{said}");
    assert!(said.contains("→ 4992 more → `b0`") && said.contains("x.toml: 1 fault"), "{said}");
}

#[test]
fn a_name_that_5000_bindings_lack_is_one_fault() {
    let project = project("", &chain("nowhere", 5000), "shared = \"b4999\"\n");
    let check = quick(&project, &["check", "x.toml"]);
    assert!(said(&check).contains("undefined name `nowhere`"), "{}", said(&check));
    assert!(said(&check).contains("x.toml: 1 fault"), "{}", said(&check));
}

#[test]
fn of_many_faults_some_are_shown_and_all_are_counted() {
    let unknown = (0..5000).fold(String::new(), |text, i| format!("{text}unknown{i} = 1\n"));
    let check = quick(&project("", "", &unknown), &["check", "x.toml"]);
    let said = said(&check);
    assert_eq!(said.matches("unknown key `unknown").count(), 100);
    assert!(said.contains("error: and 4900 more") && said.contains("x.toml: 5000 faults"), "{said}");
}

#[test]
fn a_manifest_of_more_than_8_megabytes_is_refused() {
    let check = quick(&project("", "", &"# comment\n".repeat(1 << 20)), &["check", "x.toml"]);
    assert_eq!(check.status.code(), Some(2));
    assert!(said(&check).contains("cannot read the manifest: it has more than 8 MB"), "{}", said(&check));
}

#[test]
fn a_matrix_of_more_than_a_million_cells_is_refused() {
    let axes = million();
    let plan = quick(&project(&(axes + "c = [0, 1]\n"), "", ""), &["plan", "x.toml", "--backend", "sim"]);
    assert_eq!(plan.status.code(), Some(2));
    assert!(said(&plan).contains("the matrix has 2000000 cells, but at most 1000000 are allowed"), "{}", said(&plan));
}

#[test]
fn axes_with_more_than_a_million_values_together_are_refused_at_once() {
    let axes: String = (0..60).map(|i| format!("a{i} = {{ range = [1, 1000000] }}\n")).collect::<Vec<_>>().concat();
    let dir = project(&axes, "", "");
    let commands: [&[&str]; 3] = [&["check", "x.toml"], &["list", "x.toml"], &["plan", "x.toml", "--backend", "sim"]];
    for words in commands {
        let refused = quick(&dir, words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        let message = "with axis `a0`, the axes have more than 1000000 values in total";
        assert!(said(&refused).contains(message), "{}", said(&refused));
    }
}

#[test]
fn a_variant_with_more_than_a_million_points_is_refused_at_once() {
    let own: String = (0..16).map(|i| format!("{{v{i}}}_")).collect::<Vec<_>>().concat();
    let axes: String = (0..16).map(|i| format!("v{i} = {{ range = [1, 10000] }}\n")).collect::<Vec<_>>().concat();
    let variant = format!(
        "[[variant]]\nname = \"{own}\"\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [4]\nargs = \
         [\"data\"]\n[variant.axes]\n{axes}"
    );
    let dir = project("", "", &variant);
    assert!(quick(&dir, &["check", "x.toml"]).status.success());
    let commands: [&[&str]; 2] = [&["list", "x.toml"], &["plan", "x.toml", "--backend", "sim"]];
    for words in commands {
        let refused = quick(&dir, words);
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
        assert!(said(&refused).contains("there are more than 1000000 variants"), "{}", said(&refused));
    }
}

#[test]
fn a_second_interrupt_ends_planning() {
    let axes = million();
    let dir = project(&axes, "", "");
    let mut run = command(&dir, &["run", "x.toml", "--backend", "sim"]).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_mins(2);
    while !handles_signals(&run) {
        assert!(Instant::now() < until, "it handles no signal");
        sleep(Duration::from_millis(5));
    }
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let term = || kill_process(Pid::from_child(&run), Signal::TERM).unwrap();
    term();
    assert!(lines.any(|line| line.unwrap().contains("again to stop now")));
    // Planning a million cases would take more CPU time.
    let most = Some(processor_seconds(&run) + 5);
    prlimit(Some(Pid::from_child(&run)), Resource::Cpu, Rlimit { current: most, maximum: most }).unwrap();
    term();
    lines.for_each(drop);
    assert_eq!(run.wait().unwrap().code(), Some(130));
}

/// Whether the process handles SIGTERM, which it does once `main` has started to run a command.
fn handles_signals(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (Signal::TERM.as_raw() - 1) & 1 == 1
}

/// CPU time of the process in seconds, rounded up.
fn processor_seconds(child: &Child) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // The program's name may contain blanks and ends with a parenthesis; the CPU times are 11 fields later.
    let mut fields = stat.rsplit(") ").next().unwrap().split(' ').skip(11);
    let ticks: u64 = fields.by_ref().take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    // Linux always reports these times in hundredths of a second.
    ticks.div_ceil(100)
}

/// For each argument with a value, of a command and its subcommands: the words before that value.
fn places(command: &clap::Command, before: &[String], found: &mut Vec<Vec<String>>) {
    for argument in command.get_arguments().filter(|argument| argument.get_action().takes_values()) {
        let option = argument.get_long().map(|name| format!("--{name}"));
        found.push(before.iter().cloned().chain(option).collect());
    }
    for below in command.get_subcommands() {
        places(below, &[before, &[below.get_name().to_owned()]].concat(), found);
    }
}

#[test]
fn every_command_refuses_names_that_are_not_utf_8_in_the_same_words() {
    let dir = project("", "", "");
    let odd = dir.path().join(OsStr::from_bytes(b"od\xffd.toml"));
    fs::copy(dir.path().join("x.toml"), &odd).unwrap();
    let mut all = Vec::new();
    places(&<runner::cli::Cli as clap::CommandFactory>::command(), &[], &mut all);
    assert!(all.len() > 100, "{all:?}");
    for words in all {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = command(&dir, &words).arg(&odd).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        let message = "/od\u{fffd}d.toml` is not UTF-8: rename the file or folder";
        assert!(said(&output).contains(message), "{words:?}: {}", said(&output));
    }
}

#[test]
fn a_folder_whose_name_is_not_utf_8_can_be_the_working_directory() {
    let dir = project("", "", "");
    let odd = dir.path().join(OsStr::from_bytes(b"od\xffd"));
    fs::create_dir(&odd).unwrap();
    for file in ["x.toml", "k.cu"] {
        fs::copy(dir.path().join(file), odd.join(file)).unwrap();
    }
    let commands: [&[&str]; 6] = [
        &["check", "x.toml"],
        &["plan", "x.toml", "--backend", "sim"],
        &["list", "x.toml"],
        &["run", "x.toml", "--backend", "sim", "--out", "a"],
        &["report", "a"],
        &["compare", "a", "a"],
    ];
    for words in commands {
        let output = command(&dir, words).current_dir(&odd).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
    // `try` fails, because it names the source by its absolute path.
    let output = command(&dir, &["try", "k.cu", "--backend", "sim"]).current_dir(&odd).output().unwrap();
    let message = "/od\u{fffd}d/k.cu is not UTF-8: rename the file or folder";
    assert!(output.status.code() == Some(2) && said(&output).contains(message), "{}", said(&output));
}

/// Source lines whose macro expansion doubles 40 times.
fn macro_bomb() -> String {
    let doubled = (0..40).fold(String::new(), |text, i| format!("{text}#define A{i} A{0} A{0}\n", i + 1));
    format!("{doubled}#define A40 ;\nA0\n{KERNEL}")
}

#[test]
fn the_time_limit_of_compilers_can_be_set() {
    let dir = project("", "", "");
    fs::write(dir.path().join("k.cu"), macro_bomb()).unwrap();
    let run = |limit: &str| {
        let mut command = command(&dir, &["run", "x.toml", "--backend", "sim"]);
        command.env("RUNNER_COMPILE_LIMIT", limit).output().unwrap()
    };
    let killed = run("1500ms");
    let message = "the compiler was killed: it ran past its limit of 1.5 s; set RUNNER_COMPILE_LIMIT to a longer one";
    assert_eq!(killed.status.code(), Some(1));
    assert!(said(&killed).contains(message), "{}", said(&killed));
    for wrong in ["", "0s", "10", "-1s", "9999999y"] {
        let refused = run(wrong);
        assert_eq!(refused.status.code(), Some(3), "{wrong}: {}", said(&refused));
        assert!(said(&refused).contains(&format!("RUNNER_COMPILE_LIMIT is `{wrong}`")), "{}", said(&refused));
    }
}

#[test]
fn a_template_that_takes_too_much_time_or_memory_ends_the_command_and_leaves_the_report() {
    let dir = project("", "", "");
    let run = quick(&dir, &["run", "x.toml", "--backend", "sim", "--out", "out"]);
    assert!(run.status.success(), "{}", said(&run));
    let before = fs::read(dir.path().join("out/report.md")).unwrap();
    let loops = "{% for a in range(end=99999) %}".repeat(5) + &"{% endfor %}".repeat(5);
    let doubled = "{% set s = 'x' %}{% for a in range(end=60) %}{% set_global s = s ~ s %}{% endfor %}{{ s }}";
    let report = |text: &str, limit: &str| {
        fs::write(dir.path().join("own.tera"), text).unwrap();
        let mut command = command(&dir, &["report", "out", "--template", "own.tera"]);
        command.env("RUNNER_TEMPLATE_LIMIT", limit).output().unwrap()
    };
    let expected = [
        (loops.as_str(), "1s", 2, "own.tera: no page after 1 s; set RUNNER_TEMPLATE_LIMIT to another limit"),
        (doubled, "10min", 2, "own.tera: it takes more than 2 GiB of memory to render the page"),
        ("{{ title }}", "10", 3, "RUNNER_TEMPLATE_LIMIT is `10`, which is not a duration"),
    ];
    for (text, limit, exit, message) in expected {
        let ended = report(text, limit);
        assert_eq!(ended.status.code(), Some(exit), "{}", said(&ended));
        assert!(said(&ended).contains(message), "{}", said(&ended));
        assert_eq!(fs::read(dir.path().join("out/report.md")).unwrap(), before);
    }
    let made = report("{{ title }}", "10min");
    assert!(made.status.success(), "{}", said(&made));
}
