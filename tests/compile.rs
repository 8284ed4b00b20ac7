//! The compile stage through its public face: the real NVRTC, in real children of the real binary.
//!
//! The pinned compiler is fetched once into the user's cache; every test has a cache of its own for its code.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use runner::compile::{Cache, CompileOptions, Network, Target, Toolkit, UnitResult, Want, compile_all};
use runner::model::{CodeKind, CompileUnit, Compiled};
use tempfile::TempDir;

const H100: Target = Target::Gpu((9, 0));

fn toolkit() -> &'static Toolkit {
    static TOOLKIT: OnceLock<Toolkit> = OnceLock::new();
    TOOLKIT.get_or_init(|| {
        Toolkit::ensure(Want::Pinned, &Cache::locate().unwrap(), Network::Allowed, &mut |_| {}).unwrap()
    })
}

/// A folder with sources, and a cache beside them.
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
        CompileUnit {
            source: self.path(source),
            kernels: kernels.iter().map(|&k| k.to_owned()).collect(),
            symbols: vec![],
            defines: vec![],
            options: vec![],
            include_paths: vec![],
            debug: false,
            max_registers: None,
        }
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
    // Names by the Itanium C++ ABI.
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
    assert_eq!(compiled.toolkit.version, (13, 0));
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

#[test]
fn a_compiler_that_does_not_end_is_killed_at_its_limit() {
    // 2^k instantiations for k = 60: longer than anybody waits.
    let source = "
        template <int D, unsigned long long N> struct T { static constexpr int v = T<D - 1, 2 * N>::v + T<D - 1, 2 * N + 1>::v; };
        template <unsigned long long N> struct T<0, N> { static constexpr int v = 1; };
        __global__ void k(int *p) { p[0] = T<60, 0>::v; }
    ";
    let bench = Bench::new(&[("k.cu", source)]);
    let unit = bench.unit("k.cu", &["k"]);
    let options = CompileOptions { limit: Duration::from_millis(1500), ..bench.options() };
    let start = Instant::now();
    let results = compile_all(std::slice::from_ref(&unit), H100, toolkit(), &options, &mut |_, _, _| {});
    assert!(start.elapsed() < Duration::from_secs(10));
    let failure = results[&unit].as_ref().unwrap_err();
    assert_eq!(failure.summary, "the compiler was killed: it ran past its limit of 1.5 s");
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
    assert_eq!(compiled.resources["foo<int>"].registers, None);
    // The line table names the source by its path, so that faults can.
    assert!(text.contains(&format!(".file\t1 \"{}\"", unit.source.display())), "{text}");
}

#[test]
fn offline_setup_says_what_is_missing_and_how_to_get_it() {
    let out = Command::new(env!("CARGO_BIN_EXE_runner"))
        .args(["setup", "--offline"])
        .env("RUNNER_CACHE", Path::new("/nonexistent/cache"))
        .env_remove("RUNNER_TOOLKIT")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(3));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("/nonexistent/cache/toolkit/cuda-13.0.88 is not there"), "{said}");
    assert!(said.contains("`runner setup --cuda 13` fetches NVRTC 13.0.88"), "{said}");
}
