//! User-defined references: functions in Python and C++ that compute the expected values, from
//! `any_kernel/experiments/golden.py` and `golden.cpp`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Whether the tests' Python has numpy; prints a line if not.
fn has_numpy() -> bool {
    let python = std::env::var("RUNNER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-I", "-c", "import numpy"]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: `{python}` has no numpy; set RUNNER_PYTHON to an interpreter that has it");
    }
    found
}

/// Whether there is a C++ compiler; prints a line if not.
fn has_cxx() -> bool {
    let found = runner_process::programs::cxx().is_some();
    if !found {
        println!("skipped: there is no C++ compiler");
    }
    found
}

/// A project with a manifest that uses a reference, its files, and its own cache of references.
struct Project {
    folder: tempfile::TempDir,
    manifest: &'static str,
}

impl Project {
    fn new(manifest: &'static str, files: &[&str]) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap(), manifest };
        let paths = files.iter().chain([&manifest]).map(|file| format!("experiments/{file}"));
        for path in paths.chain(["kernels/softmax.cu".to_owned()]) {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/any_kernel").join(&path);
            std::fs::create_dir_all(project.folder.path().join(&path).parent().unwrap()).unwrap();
            std::fs::copy(from, project.folder.path().join(&path)).unwrap();
        }
        project
    }

    fn python() -> Self {
        Self::new("python_reference.toml", &["golden.py"])
    }

    fn cpp() -> Self {
        Self::new("cpp_reference.toml", &["golden.cpp", "golden.hpp"])
    }

    /// Replaces text in a file of `experiments/`.
    fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.folder.path().join("experiments").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        command
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .args(["--color", "never", "run", &format!("experiments/{}", self.manifest)])
            .args(["--backend", "sim", "--quiet"])
            .args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn allowed(&self) -> Output {
        self.run(&["--allow-host-code"])
    }

    /// Exit code and output with another function in place of `softmax`.
    fn with(&self, function: &str) -> (Option<i32>, String) {
        let extension = if self.manifest.starts_with("cpp") { "cpp" } else { "py" };
        self.change(self.manifest, &format!("golden.{extension}:softmax"), &format!("golden.{extension}:{function}"));
        let output = self.run(&["--allow-host-code"]);
        (output.status.code(), text(&output))
    }
}

#[test]
fn a_function_in_python_computes_what_is_expected() {
    if !has_numpy() {
        return;
    }
    let output = Project::python().allowed();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let (code, said) = Project::python().with("wrong");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("output against golden.py:wrong"), "{said}");
}

#[test]
fn an_input_is_never_taken_for_the_result() {
    if !has_numpy() {
        return;
    }
    // The file with the function's result has this name too.
    let project = Project::python();
    project.change(project.manifest, "input", "out");
    let (code, said) = project.with("silent");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("golden.py:silent: its result cannot be read"), "{said}");
}

#[test]
fn a_function_in_python_that_does_not_end_is_killed_at_the_limit() {
    if !has_numpy() {
        return;
    }
    let project = Project::python();
    project.change(project.manifest, "[check]", "[measure]\ntimeout = \"15s\"\n\n[check]");
    let (code, said) = project.with("endless");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("golden.py:endless: ran past its limit of 15 s"), "{said}");
}

#[test]
fn a_function_in_cpp_computes_what_is_expected() {
    if !has_cxx() {
        return;
    }
    let output = Project::cpp().allowed();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let (code, said) = Project::cpp().with("wrong");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("output against golden.cpp:wrong"), "{said}");
    // Returns a single number, the maximum, which differs from the output's first element.
    let (code, said) = Project::cpp().with("number");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("8000 elements"), "{said}");
}

#[test]
fn functions_run_at_the_same_time() {
    if !has_cxx() {
        return;
    }
    let project = Project::cpp();
    project.change("golden.cpp", "FOLDER", project.folder.path().to_str().unwrap());
    let check =
        |function: &str| format!("[[check]]\nactual = \"output\"\nexpect = {{ cpp = \"golden.cpp:{function}\" }}\n\n");
    let checks = [check("one"), check("other"), "[measure]\ntimeout = \"20min\"\n\n[[variant]]".to_owned()].concat();
    project.change(project.manifest, "[check]\nactual = \"output\"\nexpect = { cpp = \"golden.cpp:softmax\" }\n\n", "");
    project.change(project.manifest, "[[variant]]", &checks);
    let folders = project.path("calls");
    std::fs::create_dir(&folders).unwrap();
    let run = project.command(&["--allow-host-code"]).env("TMPDIR", &folders).stderr(Stdio::piped()).spawn().unwrap();
    // The folder of a call exists while its function runs.
    let runs = |name: &str| {
        let calls = std::fs::read_dir(&folders).unwrap().flatten();
        calls.into_iter().any(|call| call.path().join(name).exists())
    };
    let deadline = Instant::now() + Duration::from_mins(10);
    while !(runs("one") && runs("other")) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let is_met = runs("one") && runs("other");
    std::fs::write(project.path("met"), "").unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(is_met, "one function ended before the other began: {}", text(&output));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

/// Whether references are sandboxed on this machine; prints a line if not.
fn are_confined() -> bool {
    let confined = runner_process::sandbox::is_enforced();
    if !confined {
        println!("skipped: the kernel has no Landlock");
    }
    confined
}

/// Code that runs before `main` and creates a file.
const ASSEMBLY: &str = r#"
.section .rodata
command: .asciz "touch ran $TMPDIR/ran"
.text
before: subq $8, %rsp
leaq command(%rip), %rdi
call system@PLT
addq $8, %rsp
ret
.section .init_array, "aw"
.quad before
.text
"#;

/// A scan for `#include` lines does not see files that the assembler includes. They would be compiled without being
/// hashed.
#[test]
fn what_assembly_includes_is_not_compiled_and_changing_it_changes_nothing() {
    if !has_cxx() || !are_confined() || !cfg!(target_arch = "x86_64") {
        return;
    }
    for include in [".include", ".incbin"] {
        let project = Project::cpp();
        std::fs::write(project.path("late.s"), "").unwrap();
        let statement = format!("asm(\"{include} \\\"late.s\\\"\");\n\nstd::vector<double> softmax");
        project.change("golden.cpp", "std::vector<double> softmax", &statement);
        for assembly in ["", ASSEMBLY] {
            std::fs::write(project.path("late.s"), assembly).unwrap();
            let output = project.allowed();
            assert!(!project.path("ran").exists(), "{include}: {}", text(&output));
            assert_eq!(output.status.code(), Some(1), "{include}: {}", text(&output));
            let said = text(&output);
            assert!(
                said.contains("late.s") && said.contains("a compiler may read only its own files"),
                "{include}: {said}"
            );
        }
    }
}

#[test]
fn a_reference_reads_no_file_that_was_not_hashed() {
    if !are_confined() {
        return;
    }
    if has_cxx() {
        let project = Project::cpp();
        project.change("golden.cpp", "FOLDER", project.folder.path().to_str().unwrap());
        let (code, said) = project.with("reading");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("golden.cpp:reading: not readable"), "{said}");
    }
    if has_numpy() {
        let (code, said) = Project::python().with("reading");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("golden.py:reading: PermissionError") && said.contains("softmax.cu"), "{said}");
        assert!(said.contains("a script may read only itself"), "{said}");
    }
}

/// Makes a command run as on a kernel without Landlock.
fn without_landlock(command: &mut Command) {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let is_first_call = libc::sock_filter { jt: 0, jf: 1, ..statement(0x15, libc::SYS_landlock_create_ruleset as u32) };
    let filter = [
        // A filter's input begins with the system call number.
        statement(0x20, 0),
        is_first_call,
        statement(0x06, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        statement(0x06, libc::SECCOMP_RET_ALLOW),
    ];
    let install = move || {
        let mut filter = filter;
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: the program and its statements live until the call returns.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: only makes system calls, which are allowed between `fork` and `exec`.
    unsafe { std::os::unix::process::CommandExt::pre_exec(command, install) };
}

#[test]
fn a_result_that_was_computed_without_the_sandbox_is_not_taken_with_it() {
    if !has_cxx() || !are_confined() {
        return;
    }
    let project = Project::cpp();
    // The folder is part of the code, so no other run has a cached result for it.
    project.change("golden.cpp", "FOLDER", project.folder.path().to_str().unwrap());
    project.change(project.manifest, "golden.cpp:softmax", "golden.cpp:informed");
    let mut open = project.command(&["--allow-host-code"]);
    without_landlock(&mut open);
    let output = open.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = project.allowed();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("golden.cpp:informed: not readable"), "{}", text(&output));
}

#[test]
fn a_function_gets_no_more_memory_than_the_host_can_spare() {
    if !has_cxx() {
        return;
    }
    let (code, said) = Project::cpp().with("greedy");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("golden.cpp:greedy: std::bad_alloc; limited to "), "{said}");
    let (code, said) = Project::cpp().with("talkative");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn what_goes_wrong_in_a_function_in_cpp_is_said_with_its_name() {
    if !has_cxx() {
        return;
    }
    for (function, message) in [
        ("failing", "golden.cpp:failing: no softmax of 8 rows"),
        ("crashing", "golden.cpp:crashing: it ended with signal: 11"),
    ] {
        let (code, said) = Project::cpp().with(function);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(message), "{said}");
    }
    let project = Project::cpp();
    project.change(project.manifest, "[check]", "[measure]\ntimeout = \"15s\"\n\n[check]");
    let (code, said) = project.with("endless");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("golden.cpp:endless: ran past its limit of 15 s"), "{said}");
    let project = Project::cpp();
    project.change("golden.cpp", "std::vector<double> result;", "std::vector<double> result = nothing;");
    let output = project.allowed();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let said = text(&output);
    assert!(said.contains("golden.cpp:softmax: does not compile: ") && said.contains("golden.cpp:16:"), "{said}");
    assert!(said.contains("nothing"), "{said}");
}

#[test]
fn faults_of_a_function_are_found_before_anything_runs() {
    let refused = |project: &Project, message: &str| {
        let output = project.run(&[]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains(message), "{message}: {}", text(&output));
    };
    let project = Project::cpp();
    project.change("golden.cpp", "long rows, int columns, double", "long lines, int columns, double");
    refused(&project, "parameter `lines` is not a buffer, axis or let");
    let project = Project::cpp();
    project.change(project.manifest, "golden.cpp:softmax", "golden.cpp:hardmax");
    refused(&project, "defines no function `hardmax`");
    project.change(project.manifest, "golden.cpp:hardmax", "golden.cpp");
    refused(&project, "`golden.cpp` names no C++ function");
}

#[test]
fn a_function_runs_only_with_consent_which_ends_when_a_file_that_it_includes_changes() {
    let output = Project::python().run(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("golden.py") && text(&output).contains("--allow-host-code"), "{}", text(&output));
    let project = Project::cpp();
    let output = project.run(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("golden.cpp") && text(&output).contains("--allow-host-code"), "{}", text(&output));
    if !has_cxx() {
        return;
    }
    assert_eq!(project.allowed().status.code(), Some(0));
    assert_eq!(project.run(&[]).status.code(), Some(0), "it is remembered");
    project.change("golden.hpp", "1.0", "2.0");
    assert_eq!(project.run(&[]).status.code(), Some(2), "the code has changed");
    let output = project.allowed();
    assert_eq!(output.status.code(), Some(1), "the old result is not taken: {}", text(&output));
}

#[test]
fn integers_are_no_floats_and_floats_no_integers() {
    if !has_cxx() {
        return;
    }
    // Integers are accepted where floats are expected. This function returns only ones, so the comparison fails.
    let (code, said) = Project::cpp().with("integers");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("output against golden.cpp:integers"), "{said}");
    let project = Project::cpp();
    project.change(project.manifest, "[buffers.output]\ntype = \"f32\"", "[buffers.output]\ntype = \"i32\"");
    let output = project.allowed();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let message = "golden.cpp:softmax: returned floats, but i32 is expected; return integers";
    assert!(text(&output).contains(message), "{}", text(&output));
}
