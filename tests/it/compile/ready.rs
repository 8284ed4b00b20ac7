//! Code from another compiler, in place of a source.

use runner_compile::Target;
use runner_types::CodeKind;

use super::{Bench, H100, SCALE};

#[test]
fn ptx_is_taken_as_it_is_for_both_backends() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let made = bench.compile_for(&bench.unit("k.cu", &["plain"]), Target::Ptx((9, 0))).unwrap();
    std::fs::copy(&made.code, bench.path("k.ptx")).unwrap();
    for target in [H100, Target::Ptx((9, 0))] {
        let compiled = bench.compile_for(&bench.unit("k.ptx", &["plain"]), target).unwrap();
        assert_eq!(compiled.kind, CodeKind::Ptx);
        assert_eq!(compiled.kernels["plain"], "plain");
        assert_eq!(std::fs::read(&compiled.code).unwrap(), std::fs::read(bench.path("k.ptx")).unwrap());
    }
}

#[test]
fn a_cubin_is_taken_as_it_is_with_the_registers_that_it_states() {
    let bench = Bench::new(&[("k.cu", SCALE)]);
    let made = bench.compile(&bench.unit("k.cu", &["plain"])).unwrap();
    std::fs::copy(&made.code, bench.path("k.cubin")).unwrap();
    let compiled = bench.compile(&bench.unit("k.cubin", &["plain"])).unwrap();
    assert_eq!(compiled.kind, CodeKind::Cubin);
    assert_eq!(compiled.resources["plain"].registers, made.resources["plain"].registers);
}

#[test]
fn a_kernel_that_the_code_lacks_is_named_with_those_that_it_has() {
    let bench = Bench::new(&[("k.ptx", ".version 8.0\n.target sm_80\n.visible .entry a(.param .u64 p)\n{ ret; }\n")]);
    let failure = bench.compile(&bench.unit("k.ptx", &["b"])).unwrap_err();
    assert_eq!(failure.summary, format!("`{}` has no kernel `b`; it has a", bench.path("k.ptx").display()));
}

#[test]
fn other_code_has_another_key() {
    let text = |value: u32| {
        format!(".version 8.0\n.target sm_80\n.entry a()\n{{ .reg .u32 %r; mov.u32 %r, {value}; ret; }}\n")
    };
    let bench = Bench::new(&[("k.ptx", &text(1))]);
    let unit = bench.unit("k.ptx", &["a"]);
    let first = bench.compile(&unit).unwrap().key;
    assert_eq!(bench.compile(&unit).unwrap().key, first);
    bench.write("k.ptx", &text(2));
    assert_ne!(bench.compile(&unit).unwrap().key, first);
}
