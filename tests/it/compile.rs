//! The compile stage through its public interface: the real NVRTC, in real child processes of the real binary.
//!
//! The pinned compiler is fetched once into the user's cache; every test has its own cache for code.
//! `RUNNER_TEST_CUDA=12` runs the tests with the pinned compiler of CUDA 12.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use runner_compile::{Cache, CompileOptions, Network, Requirement, Target, Toolkit, UnitResult, compile_all};
use runner_types::{CodeKind, CompileUnit, Compiled};
use tempfile::TempDir;

use crate::programs::write_program;

mod linked;
mod listing;
mod programs;
mod ready;
mod refused;
mod whole_file;

const H100: Target = Target::Gpu((9, 0));

fn toolkit() -> &'static Toolkit {
    static TOOLKIT: OnceLock<Toolkit> = OnceLock::new();
    TOOLKIT.get_or_init(|| {
        let major = env::var("RUNNER_TEST_CUDA").map_or(13, |major| major.parse().unwrap());
        Toolkit::ensure(Requirement::PinnedMajor(major), &Cache::locate().unwrap(), Network::Allowed, &mut |_| {})
            .unwrap()
    })
}

/// A folder with sources, and a cache next to them.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap() };
        for (name, text) in files {
            bench.write(name, text);
        }
        bench
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn unit(&self, source: &str, kernels: &[&str]) -> CompileUnit {
        CompileUnit::from_kernels(self.path(source), kernels.iter().copied())
    }

    fn options(&self) -> CompileOptions {
        CompileOptions {
            compiler: PathBuf::from(env!("CARGO_BIN_EXE_runner")),
            ..CompileOptions::new(Cache::at(self.path("cache"))).unwrap()
        }
    }

    fn compile(&self, unit: &CompileUnit) -> UnitResult {
        self.compile_for(unit, H100)
    }

    fn compile_for(&self, unit: &CompileUnit, target: Target) -> UnitResult {
        compile_all(std::slice::from_ref(unit), target, toolkit(), &self.options(), &mut |_, _, _| {})
            .remove(unit)
            .unwrap()
    }
}

const SCALE: &str = "
__device__ int counter;
namespace ns { __constant__ float coefficients[4]; }
template <typename T> __global__ void __launch_bounds__(96) foo(T *p) {
    __shared__ T tile[64];
    tile[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = tile[63 - threadIdx.x] * ns::coefficients[0];
    counter = 1;
}
extern \"C\" __global__ void plain(float *p) { p[0] = 1; }
";

#[test]
fn a_unit_becomes_a_cubin_with_mangled_names_and_resources() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let mut unit = bench.unit("k.cu", &["foo<int>", "plain"]);
    unit.symbols = vec!["counter".to_owned(), "ns::coefficients".to_owned()];
    let compiled = bench.compile(&unit).unwrap();
    assert_eq!(compiled.kind, CodeKind::Cubin);
    assert!(fs::read(&compiled.code).unwrap().starts_with(b"\x7fELF"));
    // Mangled per the Itanium C++ ABI.
    assert_eq!(compiled.kernels["foo<int>"], "_Z3fooIiEvPT_");
    assert_eq!(compiled.kernels["plain"], "plain");
    assert_eq!(compiled.symbols["counter"], "counter");
    assert_eq!(compiled.symbols["ns::coefficients"], "_ZN2ns12coefficientsE");
    let resources = compiled.resources["foo<int>"];
    assert!((4..=32).contains(&resources.registers.unwrap()), "{resources:?}");
    assert_eq!(resources.shared_static, Some(64 * 4));
    assert_eq!((resources.spill_stores, resources.spill_loads, resources.local), (Some(0), Some(0), Some(0)));
    assert_eq!(resources.max_threads, Some(96));
    assert_eq!(compiled.resources["plain"].max_threads, None);
    assert_eq!(&compiled.toolkit, &toolkit().info);
    assert_eq!(compiled.log, "");
}

#[test]
fn an_error_names_its_line_and_costs_its_unit_alone() {
    let bench = Bench::new(&[
        ("bad.cu", "__global__ void foo(int *p) {\n  p[0] = missing;\n}\n"),
        ("good.cu", "__global__ void foo(int *p) { p[0] = 1; }\n"),
    ]);
    let units = [bench.unit("bad.cu", &["foo"]), bench.unit("good.cu", &["foo"])];
    let mut told = 0;
    let results = compile_all(&units, H100, toolkit(), &bench.options(), &mut |_, _, _| told += 1);
    assert_eq!(told, 2);
    assert!(results[&units[1]].is_ok());
    let failure = results[&units[0]].as_ref().unwrap_err();
    assert_eq!(failure.summary, format!("{}:2: identifier \"missing\" is undefined", bench.path("bad.cu").display()));
    assert!(failure.log.contains("p[0] = missing;"), "{}", failure.log);
}

fn recompiled(bench: &Bench, unit: &CompileUnit) -> Compiled {
    let compiled = bench.compile(unit).unwrap();
    assert!(!compiled.cached);
    compiled
}

#[test]
fn what_was_compiled_once_comes_from_the_cache_until_something_it_depends_on_changes() {
    let bench = Bench::new(&[
        ("k.cu", "#include \"a.cuh\"\n__global__ void k(int *p) { p[0] = VALUE + N; }\n"),
        ("a.cuh", "#include <deep/b.cuh>\n"),
        ("inc/deep/b.cuh", "#define VALUE 1\n"),
    ]);
    let mut unit = bench.unit("k.cu", &["k"]);
    unit.include_paths = vec![bench.path("inc")];
    unit.defines = vec![("N".to_owned(), "1".to_owned())];
    let first = recompiled(&bench, &unit);
    let second = bench.compile(&unit).unwrap();
    assert!(second.cached);
    assert_eq!(Compiled { cached: false, ..second }, first);

    bench.write("inc/deep/b.cuh", "#define VALUE 2\n");
    let changed = recompiled(&bench, &unit);
    assert_ne!(changed.key, first.key);
    unit.defines[0].1 = "2".to_owned();
    assert_ne!(recompiled(&bench, &unit).key, changed.key);
    bench.write("a.cuh", "#define VALUE 3\n");
    recompiled(&bench, &unit);
}

/// 2^60 instantiations, which never finish in practice.
const ENDLESS: &str = "
template <int D, unsigned long long N> struct T {
    static constexpr int v = T<D - 1, 2 * N>::v + T<D - 1, 2 * N + 1>::v;
};
template <unsigned long long N> struct T<0, N> { static constexpr int v = 1; };
__global__ void k(int *p) { p[0] = T<60, 0>::v; }
";

#[test]
fn a_compiler_that_does_not_end_is_killed_at_its_limit() {
    let bench = Bench::new(&[("k.cu", ENDLESS)]);
    let unit = bench.unit("k.cu", &["k"]);
    let options = CompileOptions { limit: Duration::from_millis(1500), ..bench.options() };
    let results = compile_all(std::slice::from_ref(&unit), H100, toolkit(), &options, &mut |_, _, _| {});
    let failure = results[&unit].as_ref().unwrap_err();
    assert!(failure.summary.contains("killed: it ran past its limit of 1.5 s"), "{}", failure.summary);
}

#[test]
fn a_compiler_that_reads_nothing_is_killed_at_its_limit() {
    // More than a pipe holds.
    let source = format!("{ENDLESS}//{}", "x".repeat(1 << 20));
    let bench = Bench::new(&[("k.cu", source.as_str())]);
    let unit = bench.unit("k.cu", &["k"]);
    let compiler = script(&bench, "exec sleep 600");
    let options = CompileOptions { limit: Duration::from_millis(500), compiler, ..bench.options() };
    let results = compile_all(std::slice::from_ref(&unit), H100, toolkit(), &options, &mut |_, _, _| {});
    let failure = results[&unit].as_ref().unwrap_err();
    assert!(failure.summary.contains("killed: it ran past its limit of 0.5 s"), "{}", failure.summary);
}

#[test]
fn headers_of_the_toolkit_are_found() {
    let source = "
        #include <cooperative_groups.h>
        #include <cub/block/block_reduce.cuh>
        #include <cuda_bf16.h>
        #include <cuda_fp16.h>
        #include <mma.h>
        __global__ void k(int *p, __half h) {
            using Reduce = cub::BlockReduce<int, 128>;
            __shared__ typename Reduce::TempStorage storage;
            int sum = Reduce(storage).Sum(p[threadIdx.x]);
            cooperative_groups::this_thread_block().sync();
            if (threadIdx.x == 0) p[0] = sum + int(__half2float(h));
        }";
    let bench = Bench::new(&[("k.cu", source)]);
    let compiled = bench.compile(&bench.unit("k.cu", &["k"])).unwrap();
    assert_eq!(compiled.kernels["k"], "_Z1kPi6__half");
}

#[test]
fn an_entry_that_was_damaged_is_made_again() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let unit = bench.unit("k.cu", &["plain"]);
    let first = recompiled(&bench, &unit);
    let sound = fs::read(&first.code).unwrap();
    let mut damaged = sound.clone();
    damaged[200] ^= 1;
    fs::write(&first.code, damaged).unwrap();
    let again = recompiled(&bench, &unit);
    assert_eq!(fs::read(&again.code).unwrap(), sound);
    for entry in fs::read_dir(first.code.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "json") {
            fs::write(path, "{ torn").unwrap();
        }
    }
    recompiled(&bench, &unit);
    assert!(bench.compile(&unit).unwrap().cached);
}

#[test]
fn ptx_is_given_where_it_is_asked_for() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let unit = bench.unit("k.cu", &["foo<int>"]);
    let compiled = bench.compile_for(&unit, Target::Ptx((9, 0))).unwrap();
    assert_eq!(compiled.kind, CodeKind::Ptx);
    let text = fs::read_to_string(&compiled.code).unwrap();
    assert!(text.contains(".target sm_90") && text.contains(".entry _Z3fooIiEvPT_("), "{text}");
    assert!(!text.contains('\0'));
    // The assembler still ran, to report the resource usage.
    assert_eq!(compiled.resources["foo<int>"].shared_static, Some(64 * 4));
    assert_eq!(compiled.resources["foo<int>"].registers, bench.compile(&unit).unwrap().resources["foo<int>"].registers);
    // The line table contains the path of the source, so that faults can name it.
    assert!(text.contains(&format!(".file\t1 \"{}\"", unit.source.display())), "{text}");
}

/// A shell script in place of the compiler.
fn script(bench: &Bench, text: &str) -> PathBuf {
    let path = bench.path("compiler.sh");
    write_program(&path, &format!("#!/bin/sh\n{text}\n"));
    path
}

#[test]
fn a_compiler_that_crashes_costs_its_unit_and_leaves_its_last_words() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let unit = bench.unit("k.cu", &["plain"]);
    let compiler = script(&bench, "echo about to die >&2; kill -SEGV $$");
    let options = CompileOptions { compiler, ..bench.options() };
    let results = compile_all(std::slice::from_ref(&unit), H100, toolkit(), &options, &mut |_, _, _| {});
    let failure = results[&unit].as_ref().unwrap_err();
    assert!(failure.summary.starts_with("the compiler crashed (signal: 11 (SIGSEGV)"), "{}", failure.summary);
    assert_eq!(failure.log, "about to die");
}

const INCLUDING: &str = "#include \"a.cuh\"\nextern \"C\" __global__ void k(int *p) { p[0] = VALUE; }\n";

fn compile_with(bench: &Bench, unit: &CompileUnit, compiler: PathBuf) -> UnitResult {
    let options = CompileOptions { compiler, ..bench.options() };
    compile_all(std::slice::from_ref(unit), H100, toolkit(), &options, &mut |_, _, _| {}).remove(unit).unwrap()
}

#[test]
fn code_of_a_file_that_changes_under_the_compiler_is_not_taken_for_the_old_ones() {
    let bench = Bench::new(&[("k.cu", INCLUDING), ("a.cuh", "#define VALUE 1\n")]);
    let unit = bench.unit("k.cu", &["k"]);
    let (flag, header) = (bench.path("flag"), bench.path("a.cuh"));
    let once = format!(
        "if [ ! -e '{0}' ]; then touch '{0}'; echo '#define VALUE 2' > '{1}'; fi; exec '{2}' \"$@\"",
        flag.display(),
        header.display(),
        env!("CARGO_BIN_EXE_runner")
    );
    let compiled = compile_with(&bench, &unit, script(&bench, &once)).unwrap();
    let again = bench.compile(&unit).unwrap();
    assert!(again.cached);
    assert_eq!(again.key, compiled.key);
    bench.write("a.cuh", "#define VALUE 1\n");
    let old = recompiled(&bench, &unit);
    assert_ne!(old.key, compiled.key);
    assert_ne!(fs::read(&old.code).unwrap(), fs::read(&compiled.code).unwrap());
}

#[test]
fn files_that_never_hold_still_are_told() {
    let bench = Bench::new(&[("k.cu", INCLUDING), ("a.cuh", "#define VALUE 1\n")]);
    let always = format!(
        "echo \"#define VALUE $$\" > '{}'; exec '{}' \"$@\"",
        bench.path("a.cuh").display(),
        env!("CARGO_BIN_EXE_runner")
    );
    let failure = compile_with(&bench, &bench.unit("k.cu", &["k"]), script(&bench, &always)).unwrap_err();
    assert!(failure.summary.contains("kept changing while"), "{failure:?}");
}

#[test]
#[ignore = "the process that the next test kills"]
fn compiling_without_end_in_a_folder() {
    let bench = Bench { dir: tempfile::tempdir().unwrap() };
    let dir = PathBuf::from(env::var_os(SHARED).unwrap());
    let note = format!(
        "echo $$ > '{0}/pid.new'; mv '{0}/pid.new' '{0}/pid'; exec '{1}' \"$@\"",
        dir.display(),
        env!("CARGO_BIN_EXE_runner")
    );
    bench.write("k.cu", ENDLESS);
    let _ = compile_with(&bench, &bench.unit("k.cu", &["k"]), script(&bench, &note));
}

#[test]
fn a_parent_that_is_killed_takes_its_compiler_along() {
    toolkit();
    let dir = tempfile::tempdir().unwrap();
    let mut parent = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "compile::compiling_without_end_in_a_folder"])
        .env(SHARED, dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = until("the compiler runs", || fs::read_to_string(dir.path().join("pid")).ok());
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    // The compiler itself asks to be killed with its parent. Once NVRTC is loaded, it has done so.
    let library = toolkit().library.to_str().unwrap();
    until("NVRTC is loaded", || fs::read_to_string(process.join("maps")).ok().filter(|maps| maps.contains(library)));
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the compiler is gone", || {
        let state = fs::read_to_string(process.join("stat")).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
}

/// Waits for a condition; the time limit is ample on any machine.
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < Duration::from_mins(5), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupt_ends_the_compiler_that_runs_and_starts_no_other() {
    let bench = Bench::new(&[("a.cu", ENDLESS), ("b.cu", ENDLESS), ("c.cu", ENDLESS)]);
    let units: Vec<_> = ["a.cu", "b.cu", "c.cu"].iter().map(|name| bench.unit(name, &["k"])).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let options = CompileOptions { stop: Arc::clone(&stop), jobs: 1, ..bench.options() };
    let results = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
        });
        compile_all(&units, H100, toolkit(), &options, &mut |_, _, _| {})
    });
    for unit in &units {
        assert_eq!(results[unit].as_ref().unwrap_err().summary, "interrupted before compilation finished");
    }
}

#[test]
fn a_kernel_that_the_source_lacks_is_told_by_its_name() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let failure = bench.compile(&bench.unit("k.cu", &["nope<int>"])).unwrap_err();
    assert_eq!(failure.summary, "kernel name `nope<int>`: identifier \"nope\" is undefined");
}

#[test]
fn a_missing_header_is_named_at_its_line() {
    let bench = Bench::new(&[("own.cu", "\n#include \"helper_cuda.h\"\n__global__ void k() {}\n")]);
    let failure = bench.compile(&bench.unit("own.cu", &["k"])).unwrap_err().summary;
    assert!(failure.ends_with("own.cu:2: cannot open source file \"helper_cuda.h\""), "{failure}");
}

#[test]
fn a_source_that_is_not_there_and_an_option_that_nvrtc_does_not_know_are_told() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let absent = bench.compile(&bench.unit("absent.cu", &["k"])).unwrap_err();
    assert!(absent.summary.starts_with(&format!("cannot read {}", bench.path("absent.cu").display())), "{absent:?}");
    let mut unit = bench.unit("k.cu", &["plain"]);
    unit.options = vec!["--no-such-option".to_owned()];
    let unknown = bench.compile(&unit).unwrap_err();
    assert!(unknown.summary.contains("--no-such-option"), "{unknown:?}");
}

#[test]
fn an_option_that_writes_a_file_never_reaches_the_compiler() {
    let bench = Bench::new(&[("k.cu", SCALE), ("canary", "as it was")]);
    for option in ["--create-pch", "--time", "-time"] {
        let mut unit = bench.unit("k.cu", &["plain"]);
        unit.options = vec![format!("{option}={}", bench.path("canary").display())];
        let failure = bench.compile(&unit).unwrap_err();
        assert!(failure.summary.contains("is not allowed"), "{failure:?}");
        assert_eq!(fs::read_to_string(bench.path("canary")).unwrap(), "as it was", "{option}");
    }
}

#[test]
fn registers_can_be_bounded_and_what_spills_is_counted() {
    let source = "
        extern \"C\" __global__ void k(const double *in, double *out, int n) {
            double v[24];
            #pragma unroll
            for (int i = 0; i < 24; i++) v[i] = in[i * n + threadIdx.x];
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 24; i++) out[i * n + threadIdx.x] = v[i] * v[(i + 7) % 24] + v[(i + 13) % 24];
        }";
    let bench = Bench::new(&[("k.cu", source)]);
    let mut unit = bench.unit("k.cu", &["k"]);
    let free = bench.compile(&unit).unwrap().resources["k"];
    // 24 live doubles need 48 registers.
    assert!(free.registers.unwrap() >= 48, "{free:?}");
    assert_eq!(free.spill_stores, Some(0));
    unit.settings.max_registers = Some(32);
    let bound = bench.compile(&unit).unwrap().resources["k"];
    assert!(bound.registers.unwrap() <= 32, "{bound:?}");
    assert!(bound.spill_stores.unwrap() > 0 && bound.spill_loads.unwrap() > 0, "{bound:?}");
    assert!(bound.local.unwrap() >= bound.spill_stores.unwrap() / 2, "{bound:?}");
}

#[test]
fn warnings_are_kept_with_the_code_in_the_cache() {
    let bench = Bench::new(&[("k.cu", "extern \"C\" __global__ void k() {\n  int unused;\n}\n")]);
    let unit = bench.unit("k.cu", &["k"]);
    let first = bench.compile(&unit).unwrap();
    assert!(first.log.contains("k.cu(2): warning #177-D"), "{}", first.log);
    assert!(!first.log.contains("ptxas"), "{}", first.log);
    let second = bench.compile(&unit).unwrap();
    assert!(second.cached);
    assert_eq!(second.log, first.log);
}

#[test]
fn a_unit_has_the_same_key_in_every_checkout_and_a_line_table_of_its_own() {
    let (here, there) = (Bench::new(&[("k.cu", SCALE)]), Bench::new(&[("k.cu", SCALE)]));
    let options = here.options();
    let units = [here.unit("k.cu", &["plain"]), there.unit("k.cu", &["plain"])];
    let results = compile_all(&units, Target::Ptx((9, 0)), toolkit(), &options, &mut |_, _, _| {});
    let [a, b] = units.each_ref().map(|unit| results[unit].as_ref().unwrap());
    assert_eq!(a.key, b.key);
    assert!(fs::read_to_string(&b.code).unwrap().contains(there.dir.path().to_str().unwrap()));
}

const SHARED: &str = "RUNNER_TEST_SHARED_CACHE";

#[test]
#[ignore = "one of the processes of the next test"]
fn compiling_in_a_shared_cache() {
    let dir = PathBuf::from(env::var_os(SHARED).unwrap());
    let cache = Cache::at(dir.join("cache"));
    let compiler = PathBuf::from(env!("CARGO_BIN_EXE_runner"));
    let options = CompileOptions { compiler, ..CompileOptions::new(cache).unwrap() };
    let bench = Bench { dir: tempfile::tempdir().unwrap() };
    let units: Vec<_> = (0..4)
        .map(|n| CompileUnit {
            source: dir.join("k.cu"),
            defines: vec![("N".to_owned(), n.to_string())],
            ..bench.unit("k.cu", &["plain"])
        })
        .collect();
    let results = compile_all(&units, H100, toolkit(), &options, &mut |_, _, _| {});
    for result in results.values() {
        let compiled = result.as_ref().unwrap();
        assert!(fs::read(&compiled.code).unwrap().starts_with(b"\x7fELF"));
    }
}

#[test]
fn processes_that_compile_the_same_at_once_do_not_disturb_each_other() {
    toolkit();
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let start = || {
        Command::new(env::current_exe().unwrap())
            .args(["--ignored", "--exact", "compile::compiling_in_a_shared_cache"])
            .env(SHARED, bench.dir.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    // Four descriptions of units, four of the files that contain them, their code, and the locks of the files. Locks
    // are removed with other old scratch files.
    let names: Vec<_> = fs::read_dir(bench.path("cache/code/v3")).unwrap().map(|e| e.unwrap().file_name()).collect();
    let ends = |end: &str| names.iter().filter(|name| name.to_str().unwrap().ends_with(end)).count();
    let locks = names.iter().filter(|name| name.to_str().unwrap().starts_with(".compiling-")).count();
    assert_eq!((ends(".json"), locks), (8, 4), "{names:?}");
    assert_eq!(ends(".json") + ends(".cubin") + locks, names.len(), "{names:?}");
}
