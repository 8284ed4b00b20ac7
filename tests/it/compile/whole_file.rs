//! The kernels of a file share one compilation of it.

use super::*;

/// An `extern "C"` kernel, two C++ kernels, two overloads, and a static kernel.
const FILE: &str = "
extern \"C\" __global__ void first(int *p) { p[0] = 1; }
__global__ void second(float *p, int n) { p[n] = 2; }
__global__ void third(float *p) { p[threadIdx.x] = 3; }
__global__ void both(float *p) { p[0] = 4; }
__global__ void both(double *p) { p[0] = 5; }
static __global__ void hidden(int *p) { p[0] = 6; }
";

/// A compiler that appends a line to a file on every run.
fn counting(bench: &Bench) -> PathBuf {
    let count = bench.path("count");
    script(bench, &format!("echo . >> '{}'; exec '{}' \"$@\"", count.display(), env!("CARGO_BIN_EXE_runner")))
}

fn runs(bench: &Bench) -> usize {
    fs::read_to_string(bench.path("count")).unwrap_or_default().lines().count()
}

#[test]
fn plain_kernels_of_one_file_are_compiled_once_and_described_as_if_each_were_alone() {
    for target in [H100, Target::Ptx((9, 0))] {
        let bench = Bench::new(&[("k.cu", FILE)]);
        let options = CompileOptions { compiler: counting(&bench), jobs: 3, ..bench.options() };
        let units = ["first", "second", "third"].map(|kernel| bench.unit("k.cu", &[kernel]));
        let results = compile_all(&units, target, toolkit(), &options, &mut |_, _, _| {});
        assert_eq!(runs(&bench), 1, "{target:?}");
        for unit in &units {
            let shared = results[unit].as_ref().unwrap();
            let options = CompileOptions { cache: Cache::at(bench.path(&unit.kernels[0])), ..bench.options() };
            let alone = compile_all(std::slice::from_ref(unit), target, toolkit(), &options, &mut |_, _, _| {});
            let alone = alone[unit].as_ref().unwrap();
            assert_eq!(fs::read(&shared.code).unwrap(), fs::read(&alone.code).unwrap(), "{unit:?}");
            let bytes = |compiled: &Compiled| compiled.machine.as_ref().map(|path| fs::read(path).unwrap());
            assert_eq!(bytes(shared), bytes(alone), "{unit:?}");
            assert_eq!(bytes(shared).is_some(), matches!(target, Target::Ptx(_)), "{target:?}");
            let (code, machine) = (shared.code.clone(), shared.machine.clone());
            assert_eq!(*shared, Compiled { code, machine, ..alone.clone() });
        }
        // Mangled per the Itanium C++ ABI.
        let names = [("first", "first"), ("second", "_Z6secondPfi"), ("third", "_Z5thirdPf")];
        for (unit, (kernel, mangled)) in units.iter().zip(names) {
            assert_eq!(results[unit].as_ref().unwrap().kernels[kernel], mangled);
        }
    }
}

#[test]
fn a_kernel_that_the_code_of_its_file_does_not_tell_is_compiled_by_its_name() {
    let bench = Bench::new(&[("k.cu", FILE)]);
    let options = CompileOptions { compiler: counting(&bench), ..bench.options() };
    let compile = |kernel: &str| {
        let unit = bench.unit("k.cu", &[kernel]);
        compile_all(std::slice::from_ref(&unit), H100, toolkit(), &options, &mut |_, _, _| {}).remove(&unit).unwrap()
    };
    assert!(compile("first").is_ok());
    // NVRTC keeps static kernels, so the code of the file contains this one.
    assert_eq!(compile("hidden").unwrap().kernels["hidden"], "_Z6hiddenPi");
    assert_eq!(runs(&bench), 1);
    // Two overloads, and a missing kernel. Only the number of compiler runs matters here, not the result.
    for (nth, kernel) in ["both", "absent"].into_iter().enumerate() {
        let made = compile(kernel);
        assert_eq!(runs(&bench), 2 + nth, "{kernel}: {made:?}");
    }
}
