//! Sources with host code that NVRTC refuses, compiled by the nvcc of the same build.

use std::sync::Mutex;

use runner_compile::{Cache, Network, Nvcc, OnDemand, Requirement, Target, Toolkit, UnitResult, compile_all};
use runner_process::programs::Programs;

use super::Bench;

/// A kernel that follows each of the parts below.
const KERNEL: &str = "__global__ void k(float *p) { p[threadIdx.x] = threadIdx.x; }\n";

/// Host code for which only a compiler knows where it ends, or whether device code uses it.
const PARTS: [(&str, &str); 7] = [
    (
        "a brace in two arms",
        "void f(float *p) {\n#ifdef TWICE\n  if (p[0] > 2) {\n#else\n  if (p[0] > 1) {\n#endif\n  }\n}\n",
    ),
    ("a member that is pure virtual", "struct Clock { virtual ~Clock() {} virtual double now() = 0; };\n"),
    ("a static member", "struct Sum { static double all; void add(double x) { all += x; } };\ndouble Sum::all = 0;\n"),
    ("a declaration within a macro", "#define OLD(f) f __attribute__((deprecated))\nOLD(\ndouble old(int kind)\n);\n"),
    ("an enumeration declared twice", "enum Way { Up, Down };\nextern enum Way way;\n"),
    (
        "a container and a clock",
        "#include <chrono>\n#include <vector>\nstruct Run { std::vector<float> at; std::chrono::seconds took; };\n",
    ),
    (
        "a constexpr function of the host",
        "#include <algorithm>\n__device__ int most(int a) { return std::max(a, 3); }\n",
    ),
];

fn toolkit() -> Toolkit {
    Toolkit::ensure(Requirement::PinnedMajor(13), &Cache::locate().unwrap(), Network::Allowed, &mut |_| {}).unwrap()
}

fn compile(bench: &Bench, nvcc: OnDemand, target: Target) -> UnitResult {
    let mut options = bench.options();
    options.on_demand = Some(nvcc);
    let unit = bench.unit("k.cu", &["k"]);
    compile_all(std::slice::from_ref(&unit), target, &toolkit(), &options, &mut |_, _, _| {}).remove(&unit).unwrap()
}

fn of_the_user() -> OnDemand {
    OnDemand::new(Cache::locate().unwrap(), Network::Allowed, |_| {})
}

#[test]
fn what_only_nvcc_compiles_is_compiled_by_it() {
    for (part, text) in PARTS {
        let bench = Bench::new(&[("k.cu", &format!("{text}{KERNEL}"))]);
        for target in [Target::Ptx((9, 0)), Target::Gpu((9, 0))] {
            let compiled = compile(&bench, of_the_user(), target).unwrap_or_else(|why| panic!("{part}: {why:?}"));
            assert_eq!(compiled.kernels["k"], "_Z1kPf", "{part}");
            let again = compile(&bench, of_the_user(), target).unwrap();
            assert!(again.cached, "{part}: compiled again");
        }
    }
}

#[test]
fn the_log_says_that_nvcc_compiled_a_source_and_why() {
    let bench = Bench::new(&[("k.cu", &format!("{}{KERNEL}", PARTS[1].1))]);
    let compiled = compile(&bench, of_the_user(), Target::Ptx((9, 0))).unwrap();
    assert!(compiled.log.starts_with("compiled by nvcc 13.0.88, since NVRTC rejects it: "), "{}", compiled.log);
}

#[test]
fn an_error_in_a_file_with_code_of_the_host_is_that_of_nvcc() {
    let source =
        "#include <vector>\nstruct Run { std::vector<float> at; };\n__global__ void k(float *p) { p[0] = q; }\n";
    let bench = Bench::new(&[("k.cu", source)]);
    let refused = compile(&bench, of_the_user(), Target::Ptx((9, 0))).unwrap_err();
    let place = bench.path("k.cu");
    let expected = format!("{}(3): error: identifier \"q\" is undefined", place.display());
    assert_eq!(refused.summary, expected);
}

#[test]
fn without_nvcc_and_a_network_the_error_says_what_to_do() {
    if Nvcc::installed(&Programs::of_this_machine()).is_some() {
        println!("skipped: nvcc is installed here");
        return;
    }
    let bench = Bench::new(&[("k.cu", &format!("{}{KERNEL}", PARTS[1].1))]);
    let nvcc = OnDemand::new(Cache::at(bench.path("empty")), Network::Forbidden, |_| {});
    let refused = compile(&bench, nvcc, Target::Ptx((9, 0))).unwrap_err();
    let expected = "nvcc, which compiles host code, cannot be used: nvcc 13.0.88 (104 MB) is not in the cache, and \
                    --offline forbids fetching it: run once without it";
    assert!(refused.summary.ends_with(expected), "{}", refused.summary);
}

#[test]
fn without_headers_of_a_library_and_a_network_the_error_says_what_to_do() {
    let bench = Bench::new(&[("k.cu", &format!("#include <curand_kernel.h>\n{KERNEL}"))]);
    let none = OnDemand::new(Cache::at(bench.path("empty")), Network::Forbidden, |_| {});
    let refused = compile(&bench, none, Target::Ptx((9, 0))).unwrap_err();
    let expected = "k.cu:1: cannot open source file \"curand_kernel.h\"; the headers of cuRAND 10.4.0.35 (60 MB) are not in the cache, and --offline forbids fetching them: run once without it";
    assert!(refused.summary.ends_with(expected), "{}", refused.summary);
}

/// nvcc compiles the file with a host function, NVRTC the one without.
#[test]
fn kernels_that_launch_kernels_are_compiled_for_linking_or_the_error_says_how() {
    let kernels =
        "__global__ void child(float *p) { p[0] = 1; }\n__global__ void k(float *p) { child<<<1, 1>>>(p); }\n";
    for host in ["", "int main() { return 0; }\n"] {
        let bench = Bench::new(&[("k.cu", &format!("{kernels}{host}"))]);
        let refused = compile(&bench, of_the_user(), Target::Ptx((9, 0))).unwrap_err();
        let remedy = "; a kernel that launches kernels needs `relocatable = true`";
        assert!(refused.summary.contains("k.cu") && refused.summary.ends_with(remedy), "{}", refused.summary);
        let mut options = bench.options();
        options.on_demand = Some(of_the_user());
        let mut unit = bench.unit("k.cu", &["k"]);
        unit.settings.relocatable = true;
        for target in [Target::Ptx((9, 0)), Target::Gpu((9, 0))] {
            let all = compile_all(std::slice::from_ref(&unit), target, &toolkit(), &options, &mut |_, _, _| {});
            let compiled = all[&unit].as_ref().unwrap_or_else(|why| panic!("{host}: {why:?}"));
            assert_eq!(compiled.kernels["k"], "_Z1kPf");
            assert_eq!(compiled.device_runtime.is_some(), matches!(target, Target::Gpu(_)));
        }
    }
}

/// An error in a kernel must not trigger a download.
#[test]
fn an_error_in_a_file_of_kernels_alone_does_not_ask_for_nvcc() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let bench = Bench::new(&[("k.cu", "__global__ void k(float *p) { p[0] = q; }\n")]);
    let say = |line: &str| SAID.lock().unwrap().push(line.to_owned());
    let nvcc = OnDemand::new(Cache::at(bench.path("empty")), Network::Allowed, say);
    let refused = compile(&bench, nvcc, Target::Ptx((9, 0))).unwrap_err();
    assert!(refused.summary.ends_with("k.cu:1: identifier \"q\" is undefined"), "{}", refused.summary);
    assert!(SAID.lock().unwrap().is_empty() && !bench.path("empty").exists());
}
