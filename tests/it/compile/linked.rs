//! Code that is linked with libraries: kernels that launch kernels, and host functions.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::{Bench, H100, SCALE, script, toolkit};
use runner_compile::{CompileOptions, Installed, Nvcc, Target, Toolkit, ToolkitSource, compile_all};
use runner_files::project::Project;
use runner_process::programs::Programs;
use runner_process::sandbox;
use runner_types::{CodeKind, CompileUnit, Plugin};

#[test]
fn a_kernel_that_launches_kernels_is_left_to_be_linked_with_the_toolkits_device_runtime() {
    let source =
        "__global__ void child(int *p) { p[0] = 1; }\n__global__ void parent(int *p) { child<<<1, 1>>>(p); }\n";
    let bench = Bench::new(&[("k.cu", source)]);
    let plain = bench.unit("k.cu", &["parent"]);
    let refused = bench.compile(&plain).unwrap_err();
    assert!(refused.log.contains("kernel launch"), "{}", refused.log);

    let mut unit = plain;
    unit.settings.relocatable = true;
    let runtime = toolkit().device_runtime.clone().unwrap();
    assert!(runtime.is_file() && runtime.ends_with("libcudadevrt.a"), "{}", runtime.display());
    for cached in [false, true] {
        let compiled = bench.compile(&unit).unwrap();
        assert_eq!((compiled.cached, compiled.kind), (cached, CodeKind::Cubin));
        assert_eq!(compiled.device_runtime.as_ref(), Some(&runtime));
        // Byte 16 of an ELF file is its type: 1 is relocatable, 2 is executable (System V ABI, chapter 4).
        assert_eq!(fs::read(&compiled.code).unwrap()[16], 1);
    }
    // The simulator has its own device runtime.
    let simulated = bench.compile_for(&unit, Target::Ptx((9, 0))).unwrap();
    assert_eq!((simulated.kind, simulated.device_runtime), (CodeKind::Ptx, None));
}

#[test]
fn a_toolkit_without_the_device_runtime_costs_only_the_kernels_that_launch_kernels() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let plain = bench.unit("k.cu", &["plain"]);
    let mut launching = plain.clone();
    launching.settings.relocatable = true;
    let bare = Toolkit { device_runtime: None, ..toolkit().clone() };
    let units = [plain, launching];
    let results = compile_all(&units, H100, &bare, &bench.options(), &mut |_, _, _| {});
    assert!(results[&units[0]].is_ok());
    let refusal = &results[&units[1]].as_ref().unwrap_err().summary;
    assert!(refusal.contains("libcudadevrt.a") && refusal.contains("RUNNER_TOOLKIT=pinned"), "{refusal}");
}

/// Answers `--version` like nvcc. Otherwise writes its arguments to the output file.
const STAND_IN: &str = r#"[ "$1" = --version ] && { echo "release 13.0, V13.0.88 VERSION"; exit 0; }
for argument in "$@"; do case "$argument" in --output-file=*) printf '%s\n' "$@" > "${argument#--output-file=}";; esac; done"#;

#[test]
fn a_host_function_is_built_by_nvcc_and_kept_until_something_it_depends_on_changes() {
    let bench =
        Bench::new(&[("p.cu", "#include \"size.h\"\nextern \"C\" int f(void *) { return 0; }"), ("size.h", "")]);
    let nvcc = |version: &str| Nvcc::at(script(&bench, &STAND_IN.replace("VERSION", version))).unwrap();
    let mut unit = bench.unit("p.cu", &["f"]);
    unit.plugin = Some(Plugin { libraries: vec!["cublas".to_owned()] });
    let build = |unit: &CompileUnit, nvcc: Option<Nvcc>| {
        let options = CompileOptions { installed: Installed { nvcc, clang: None }, ..bench.options() };
        compile_all(std::slice::from_ref(unit), H100, toolkit(), &options, &mut |_, _, _| {}).remove(unit).unwrap()
    };
    let failure = build(&unit, None).unwrap_err();
    assert_eq!(failure.summary, "a host function needs nvcc, which was not found");

    let first = build(&unit, Some(nvcc("a"))).unwrap();
    assert_eq!((first.kind, first.cached, first.kernels["f"].as_str()), (CodeKind::Plugin, false, "f"));
    assert_eq!(first.code.extension().unwrap(), "so");
    let arguments = fs::read_to_string(&first.code).unwrap();
    for argument in ["--shared", "--generate-code=arch=compute_90,code=sm_90", "--library=cublas"] {
        assert!(arguments.lines().any(|line| line == argument), "{argument} in\n{arguments}");
    }
    let again = build(&unit, Some(nvcc("a"))).unwrap();
    assert!(again.cached && again.key == first.key);

    let other = build(&unit, Some(nvcc("b"))).unwrap();
    assert!(!other.cached && other.key != first.key, "another compiler");
    bench.write("size.h", "#define SIZE 2");
    assert!(!build(&unit, Some(nvcc("a"))).unwrap().cached, "an included file");
    unit.plugin = Some(Plugin { libraries: Vec::new() });
    assert!(!build(&unit, Some(nvcc("a"))).unwrap().cached, "what it is linked with");
}

#[test]
fn nvcc_builds_a_host_function_that_may_not_contain_a_file_from_outside_of_the_project() {
    let Some(nvcc) = Nvcc::installed(&Programs::of_this_machine()) else {
        println!("skipped: nvcc is not installed");
        return;
    };
    if !sandbox::is_enforced() {
        println!("skipped: the kernel has no Landlock");
        return;
    }
    let secret = tempfile::NamedTempFile::new().unwrap();
    // A scan for included files does not see what the assembler includes.
    let contains = |path: &Path| format!("asm(\".incbin \\\"{}\\\"\");\n", path.display());
    let function = "extern \"C\" int f(void *) { return 0; }\n";
    let bench = Bench::new(&[("own.txt", "own"), ("leaks.cu", &(contains(secret.path()) + function))]);
    bench.write("leaks_own.cu", &(contains(&bench.path("own.txt")) + function));
    bench.write("honest.cu", function);
    let installed = Installed { nvcc: Some(nvcc), clang: None };
    let project = Project::at(&bench.path("")).unwrap();
    let options = CompileOptions { installed, project, ..bench.options() };
    let build = |source: &str| {
        let unit = CompileUnit { plugin: Some(Plugin { libraries: Vec::new() }), ..bench.unit(source, &["f"]) };
        compile_all(std::slice::from_ref(&unit), H100, toolkit(), &options, &mut |_, _, _| {}).remove(&unit).unwrap()
    };
    assert_eq!(build("honest.cu").unwrap().kind, CodeKind::Plugin);
    let failure = build("leaks.cu").unwrap_err();
    assert!(failure.log.contains(&secret.path().display().to_string()), "{}", failure.log);
    let failure = build("leaks_own.cu").unwrap_err();
    assert!(failure.log.contains("own.txt"), "{}", failure.log);
}

/// A stand-in for nvcc that reads FILE and writes it as the library.
const READS: &str = r#"[ "$1" = --version ] && { echo "release 13.0, V13.0.88 FILE"; exit 0; }
for argument in "$@"; do case "$argument" in --output-file=*) output="${argument#--output-file=}";; esac; done
cat FILE > "$output""#;

#[test]
fn a_compiler_reads_the_hashed_files_and_no_others_of_the_project() {
    if !sandbox::is_enforced() {
        println!("skipped: the kernel has no Landlock");
        return;
    }
    let source = "#include \"a.cuh\"\nextern \"C\" int f(void *) { return 0; }";
    let bench = Bench::new(&[("k.cu", source), ("a.cuh", "//"), ("late.s", "evil")]);
    // A compiler may read the folder that it is installed in, so it must lie outside the project.
    let installation = Bench::new(&[]);
    let project = Project::at(&bench.path("")).unwrap();
    let unit = CompileUnit { plugin: Some(Plugin { libraries: Vec::new() }), ..bench.unit("k.cu", &["f"]) };
    let build = |file: &str| {
        let text = READS.replace("FILE", &bench.path(file).display().to_string());
        let installed = Installed { nvcc: Nvcc::at(script(&installation, &text)), clang: None };
        let options = CompileOptions { installed, project: project.clone(), ..bench.options() };
        compile_all(std::slice::from_ref(&unit), H100, toolkit(), &options, &mut |_, _, _| {}).remove(&unit).unwrap()
    };
    assert_eq!(fs::read(build("a.cuh").unwrap().code).unwrap(), b"//");
    let failure = build("late.s").unwrap_err();
    assert!(failure.log.contains("late.s: Permission denied"), "{}", failure.log);
    assert!(failure.summary.contains("a compiler may read only its own files"), "{}", failure.summary);
}

/// A toolkit header includes another one by `<name>`, which the compiler looks up in the folder of the source first.
#[test]
fn a_file_of_the_project_does_not_replace_a_header_of_the_toolkit() {
    if !sandbox::is_enforced() {
        println!("skipped: the kernel has no Landlock");
        return;
    }
    let source = "#include <outer.h>\nextern \"C\" __global__ void k(int *p) { p[0] = VALUE; }\n";
    let bench = Bench::new(&[
        ("p/k.cu", source),
        ("toolkit/outer.h", "#include <inner.h>\n"),
        ("toolkit/inner.h", "#define VALUE 11\n"),
    ]);
    let mut own = toolkit().clone();
    own.include_dirs.insert(0, bench.path("toolkit"));
    let project = Project::at(&bench.path("p")).unwrap();
    let unit = bench.unit("p/k.cu", &["k"]);
    let build = || {
        let _ = fs::remove_dir_all(bench.path("cache"));
        let options = CompileOptions { project: project.clone(), ..bench.options() };
        let target = Target::Ptx((9, 0));
        compile_all(std::slice::from_ref(&unit), target, &own, &options, &mut |_, _, _| {}).remove(&unit).unwrap()
    };
    let before = build().unwrap();
    assert!(fs::read_to_string(&before.code).unwrap().contains(", 11;"));
    bench.write("p/inner.h", "#define VALUE 13\n");
    match build() {
        Ok(after) => {
            assert_eq!(after.key, before.key);
            assert!(fs::read_to_string(&after.code).unwrap().contains(", 11;"));
        }
        Err(failure) => panic!("{failure:?}"),
    }
}

#[test]
fn nvcc_is_ended_before_other_programs_when_memory_runs_out() {
    let bench = Bench::new(&[("p.cu", "extern \"C\" int f(void *) { return 0; }")]);
    let seen = bench.path("seen");
    let waits = format!("while [ ! -e '{}' ]; do sleep 0.1; done", seen.display());
    let slow = format!("{}\n{waits}", STAND_IN.replace("VERSION", "a"));
    let path = script(&bench, &slow);
    let installed = Installed { nvcc: Nvcc::at(path.clone()), clang: None };
    let options = CompileOptions { installed, ..bench.options() };
    let unit = CompileUnit { plugin: Some(Plugin { libraries: Vec::new() }), ..bench.unit("p.cu", &["f"]) };
    let score = thread::scope(|scope| {
        let build = scope.spawn(|| {
            let units = std::slice::from_ref(&unit);
            compile_all(units, H100, toolkit(), &options, &mut |_, _, _| {}).remove(&unit).unwrap()
        });
        let (mut score, started) = (None, Instant::now());
        while !build.is_finished() {
            score = score_of(&path).or(score);
            if score.as_deref() == Some("1000") || started.elapsed() > Duration::from_mins(1) {
                fs::write(&seen, "").unwrap();
            }
            thread::sleep(Duration::from_millis(50));
        }
        build.join().unwrap().unwrap();
        score
    });
    // The highest score: the system kills this process first.
    assert_eq!(score.as_deref(), Some("1000"));
}

/// `oom_score_adj` of the process that runs this script for a build.
fn score_of(script: &Path) -> Option<String> {
    let script = script.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let mut builds = processes.filter(|process| {
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        words.contains(&script) && words.contains("--output-file=")
    });
    Some(fs::read_to_string(builds.next()?.join("oom_score_adj")).ok()?.trim().to_owned())
}

#[test]
fn nvcc_is_the_one_beside_the_compiler_of_kernels_before_any_other() {
    let bench = Bench::new(&[]);
    let place = |root: &str, version: &str| {
        fs::create_dir_all(bench.path(root).join("bin")).unwrap();
        fs::rename(script(&bench, &STAND_IN.replace("VERSION", version)), bench.path(root).join("bin/nvcc")).unwrap();
        bench.path(root)
    };
    let (beside, elsewhere) = (place("beside", "a"), place("elsewhere", "b"));
    let programs = Programs::in_dirs([elsewhere.join("bin")]);
    let find = |source| Nvcc::find(&Toolkit { source, ..toolkit().clone() }, &programs);
    assert_eq!(find(ToolkitSource::System(beside.clone())).unwrap().path, beside.join("bin/nvcc"));
    assert_eq!(find(ToolkitSource::System(bench.path("without"))).unwrap().path, elsewhere.join("bin/nvcc"));
    assert_eq!(find(ToolkitSource::Fetched).unwrap().name(), "nvcc 13.0.88");
    let none = Programs::in_dirs([bench.path("without")]);
    assert_eq!(Nvcc::find(&Toolkit { source: ToolkitSource::Fetched, ..toolkit().clone() }, &none), None);
}
