//! Kernels that nvcc or clang compiles. Scripts replace the compilers here; `compilers` runs the real ones, if
//! installed.

use std::fs;
use std::path::PathBuf;

use super::{Bench, H100, script, toolkit};
use runner_compile::{Clang, CompileOptions, Installed, Nvcc, Target, UnitResult, compile_all};
use runner_types::{CodeKind, CompileSettings, CompileUnit, KernelCompiler};

/// Answers questions about versions and architectures like nvcc and clang. Otherwise writes PTX, with its arguments in
/// a comment and the variables of the file that it compiles.
const COMPILER: &str = r#"case "$1" in
--version) echo 'NAME release 13.0, V13.0.88 VERSION'; exit 0;;
--list-gpu-arch) echo compute_75; echo compute_90; exit 0;;
--print-supported-cpus) printf '\tsm_75\n\tsm_90\n\tsm_90a\n' >&2; exit 0;;
esac
arguments="$*"
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; last=$1; shift; done
grep -q forbidden "$last" && { echo 'the kernel forbidden(1): error: identifier "forbidden" is undefined' >&2; exit 1; }
{ echo "// $arguments"
  echo "// $(head -1 "$last")"
  echo '.visible .entry mangled() {}'
  sed -n 's/^__device__.* \*\(runner_name_0\) = .*/.global .align 8 .u64 \1 = mangled;/p' "$last"
  sed -n 's/^__device__.* \*\(runner_name_1\) = .*/.global .align 8 .u64 \1 = generic(table);/p' "$last"
} > "$out""#;

/// Writes its arguments and its input as machine code, and prints resource usage like the assembler.
const ASSEMBLER: &str = r#"arguments="$*"
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; last=$1; shift; done
{ echo "machine code: $arguments"; cat "$last"; } > "$out"
echo "ptxas info    : Compiling entry function 'mangled' for 'sm_90'" >&2
echo "ptxas info    : Used 17 registers, 64 bytes smem" >&2"#;

/// A toolkit of these programs, and a clang with this version.
fn installed(bench: &Bench, version: &str) -> Installed {
    both(bench, version, version)
}

fn both(bench: &Bench, of_nvcc: &str, of_clang: &str) -> Installed {
    fs::create_dir_all(bench.path("cuda/bin")).unwrap();
    let place = |text: &str, name: &str| {
        fs::rename(script(bench, text), bench.path(name)).unwrap();
        bench.path(name)
    };
    place(ASSEMBLER, "cuda/bin/ptxas");
    let compiler = |name: &str, version: &str| COMPILER.replace("NAME", name).replace("VERSION", version);
    let nvcc = Nvcc::at(place(&compiler("nvcc", of_nvcc), "cuda/bin/nvcc")).unwrap();
    let clang = place(&compiler("Debian clang version 19.1.7", of_clang), "cuda/bin/clang");
    let clang = Clang::at(clang, nvcc.clone()).unwrap();
    Installed { nvcc: Some(nvcc), clang: Some(clang) }
}

fn compile(bench: &Bench, unit: &CompileUnit, target: Target, installed: Installed) -> UnitResult {
    let options = CompileOptions { installed, ..bench.options() };
    compile_all(std::slice::from_ref(unit), target, toolkit(), &options, &mut |_, _, _| {}).remove(unit).unwrap()
}

fn bench() -> Bench {
    Bench::new(&[("k.cu", "__device__ int table[4];\n__global__ void k() {}\n")])
}

fn unit(bench: &Bench, compiler: KernelCompiler) -> CompileUnit {
    CompileUnit {
        compiler,
        symbols: vec!["table".to_owned()],
        defines: vec![("N".to_owned(), "4".to_owned())],
        settings: CompileSettings { max_registers: Some(32), ..CompileSettings::default() },
        ..bench.unit("k.cu", &["k"])
    }
}

#[test]
fn the_simulator_gets_the_ptx_of_the_compiler_with_the_names_that_are_in_it() {
    let bench = bench();
    for compiler in [KernelCompiler::Nvcc, KernelCompiler::Clang] {
        let unit = unit(&bench, compiler);
        let compiled = compile(&bench, &unit, Target::Ptx((9, 0)), installed(&bench, "a")).unwrap();
        assert_eq!(compiled.kind, CodeKind::Ptx);
        assert_eq!((compiled.kernels["k"].as_str(), compiled.symbols["table"].as_str()), ("mangled", "table"));
        assert_eq!((compiled.resources["k"].registers, compiled.resources["k"].shared_static), (Some(17), Some(64)));
        let ptx = fs::read_to_string(&compiled.code).unwrap();
        assert!(!ptx.contains("runner_name_"), "{ptx}");
        assert!(ptx.contains(&format!("// #include \"{}\"", bench.path("k.cu").display())), "{ptx}");
        let expected: &[&str] = match compiler {
            KernelCompiler::Nvcc => &["--ptx --x=cu --gpu-architecture=sm_90 --std=c++17 --generate-line-info"],
            _ => &["-x cuda --cuda-device-only -S", "--cuda-gpu-arch=sm_90", "-idirafter", "--std=c++17"],
        };
        for arguments in expected.iter().chain(&["--define-macro=N=4"]) {
            assert!(ptx.contains(arguments), "{arguments} in {ptx}");
        }
    }
}

#[test]
fn a_gpu_gets_machine_code_of_the_toolkits_assembler() {
    let bench = bench();
    let mut unit = unit(&bench, KernelCompiler::Nvcc);
    unit.options = vec!["--ptxas-options=-O1,-dlcm=cg".to_owned()];
    let compiled = compile(&bench, &unit, H100, installed(&bench, "a")).unwrap();
    assert_eq!(compiled.kind, CodeKind::Cubin);
    let code = fs::read_to_string(&compiled.code).unwrap();
    assert!(code.starts_with("machine code: -v -arch=sm_90 --generate-line-info --maxrregcount=32 -O1"), "{code}");
    assert!(code.lines().next().unwrap().contains(" -dlcm=cg "), "{code}");
    // For a GPU that it does not know, the compiler writes PTX, which the driver assembles.
    let newer = compile(&bench, &unit, Target::Gpu((12, 0)), installed(&bench, "a")).unwrap();
    assert_eq!(newer.kind, CodeKind::Ptx);
    assert!(fs::read_to_string(&newer.code).unwrap().contains("--gpu-architecture=compute_90"));
}

#[test]
fn the_identity_of_code_has_its_compiler_and_its_version() {
    let bench = bench();
    let key = |compiler, of_nvcc, of_clang| {
        let unit = unit(&bench, compiler);
        let unit = CompileUnit { symbols: Vec::new(), settings: CompileSettings::default(), ..unit };
        compile(&bench, &unit, Target::Ptx((9, 0)), both(&bench, of_nvcc, of_clang)).unwrap()
    };
    let first = key(KernelCompiler::Nvcc, "a", "a");
    assert!(!first.cached && key(KernelCompiler::Nvcc, "a", "b").cached);
    let others = [
        key(KernelCompiler::Nvcc, "b", "a"),
        key(KernelCompiler::Clang, "a", "a"),
        key(KernelCompiler::Clang, "a", "b"),
        key(KernelCompiler::Clang, "b", "a"),
        key(KernelCompiler::Nvrtc, "a", "a"),
    ];
    for (at, other) in others.iter().enumerate() {
        assert!(!other.cached, "{at}");
        assert!(others[..at].iter().chain([&first]).all(|known| known.key != other.key), "{at}");
    }
}

#[test]
fn an_error_about_a_kernel_names_it() {
    let bench = bench();
    let unit = CompileUnit { compiler: KernelCompiler::Nvcc, ..bench.unit("k.cu", &["forbidden"]) };
    let failure = compile(&bench, &unit, H100, installed(&bench, "a")).unwrap_err();
    assert_eq!(failure.summary, "the kernel forbidden(1): error: identifier \"forbidden\" is undefined");
    let none = compile(&bench, &unit, H100, Installed::default()).unwrap_err();
    assert_eq!(none.summary, "nvcc was not found");
}

#[test]
fn a_program_that_is_not_clang_is_not_taken_for_it() {
    let bench = bench();
    let nvcc = installed(&bench, "a").nvcc.unwrap();
    assert_eq!(Clang::at(nvcc.path.clone(), nvcc.clone()), None);
    assert_eq!(Clang::at(PathBuf::from("/nowhere/clang"), nvcc), None);
}
