//! The simulator accepts what the compiler is known to emit: compares `tests/ptx/coverage.txt` with the tests' own PTX.

use std::collections::BTreeSet;

use ptx_parser::{Statement, parse};
use simt::{Machine, Options, profiles};

use ptx_conformance::files::files;
use ptx_conformance::forms;

const FORMS: &str = include_str!("../ptx/coverage.txt");

fn opcodes<'a>(statements: &'a [Statement<'a>], into: &mut BTreeSet<&'a str>) {
    for statement in statements {
        match statement {
            Statement::Instruction(instruction) => {
                into.insert(&*instruction.opcode);
            }
            Statement::Block(inner) => opcodes(inner, into),
            _ => {}
        }
    }
}

#[test]
fn every_form_that_the_compiler_writes_is_loaded() {
    let mut machine = Machine::new(profiles().remove(0), Options::default()).unwrap();
    let kernels = [include_str!("../ptx/kernels/features.ptx"), include_str!("../ptx/kernels/ladder.ptx")];
    let files = files().into_iter().filter(|f| f.refused.is_none()).map(|f| f.ptx);
    let texts = files.chain(forms().into_iter().map(|f| f.ptx())).chain(kernels.map(str::to_owned));
    let mut loaded = BTreeSet::new();
    for text in texts {
        // A file that does not load proves nothing; other tests report it.
        let Ok(module) = machine.load(&text) else { continue };
        machine.unload(module);
        let parsed = parse(&text).unwrap();
        let mut found = BTreeSet::new();
        for function in &parsed.functions {
            opcodes(function.body.as_deref().unwrap_or_default(), &mut found);
        }
        loaded.extend(found.into_iter().map(str::to_owned));
    }
    let wanted: Vec<&str> = FORMS.lines().filter(|l| !l.starts_with('#')).collect();
    assert!(wanted.len() > 300, "{} forms", wanted.len());
    let missing: Vec<&&str> = wanted.iter().filter(|form| !loaded.contains(**form)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let unused: Vec<String> = simt::operations().flat_map(|operation| unused(&operation, &loaded)).collect();
    assert!(unused.is_empty(), "no test has an instruction in these forms: {unused:?}");
}

/// Returns the operation's forms that match no loaded opcode.
fn unused(operation: &simt::Operation, loaded: &BTreeSet<String>) -> Vec<String> {
    let opcodes: Vec<&String> =
        loaded.iter().filter(|opcode| opcode.split('.').next() == Some(operation.name)).collect();
    let forms = operation.forms.iter().filter(|form| !opcodes.iter().any(|opcode| simt::is_form(form, opcode)));
    forms.map(|form| format!("{}{form}", operation.name)).collect()
}

#[test]
fn what_is_not_simulated_is_refused_at_load_by_opcode_line_and_kernel() {
    let refused = [
        (
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%d2, {%r2}], \
             [%r3];",
            "tensors",
        ),
        ("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%d1, {%r1}], [%r2];", "tensors"),
        ("wgmma.fence.sync.aligned;", "is not simulated"),
        ("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%e0}, {%e2}, {%e3}, {%e0};", "this shape of these types"),
        (
            "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1}, %r1, 0;",
            "sparse matrices are not simulated",
        ),
        ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r1}, {%r2}, {%r3}, {%r1};", "this shape of these types"),
        (
            "wmma.load.a.sync.aligned.row.m8n8k32.shared.s4 {%r1}, [%r2], 32;",
            "the simulated shapes are m16n16k16, m32n8k16, m8n32k16, m16n16k8, m8n8k4",
        ),
        ("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1}, [%d1];", "expected `.x1`, `.x2` or `.x4`"),
        ("stmatrix.sync.aligned.m8n8.x3.shared.b16 [%d1], {%r1};", "expected `.x1`, `.x2` or `.x4`"),
        ("redux.sync.add.f32 %f1, %f2, -1;", "f32 has only `.min` and `.max`"),
        ("cvt.rn.f16x2.e2m3x2 %r1, %h1;", "modifier `.e2m3x2` is not simulated"),
        ("shfl.up.b32 %r1, %r2, 1, 0;", "sm_70 and later need the form with `.sync`"),
        ("vadd2.s32.s32.s32 %r1, %r2.h32, %r3, %r1;", "the selector `.h32` of `%r2.h32` is not simulated"),
        ("vadd.s32.s32.s32.min %r1.b0, %r2, %r3, %r1;", "and a secondary operation cannot be combined"),
        ("vadd.s32.s32.s32 %r1.b0, %r2, %r3;", "expected 4 operands, found 3"),
        ("vadd.s32.s32.s32 %r1, -%r2, %r3;", "only `vmad` negates a source"),
        ("vshl.u32.u32.s32.clamp %r1, %r2, %r3;", "the shift amount must be `.u32`"),
        ("vmad.s32.s32.s32 %r1, -%r2, %r3, -%r1;", "the product and `c` cannot both be negated"),
        ("vmad.s32.s32.s32.po %r1, %r2, -%r3, %r1;", "with `.po` no source can be negated"),
        ("vmad.s32.s32.s32 %r1.b0, %r2, %r3, %r1;", "`vmad` writes the whole destination"),
        ("add.s32 %r1, %v.z, %r2;", "`%v` has 2 elements, and `%v.z` is not one of them"),
        ("mov.v4.b32 %v, {%r0, %r1, %r2, %r3};", "expected 4 destinations, found 2"),
        ("call (%r1), twice, (%r2, 3);", "2 arguments, but `twice` takes 1"),
        ("call (%r1, %r2), twice, (%r3);", "2 results, but the function returns 1"),
        ("call (%r1), twice, (%v);", "elements in the value: expected 1, found 2"),
        ("add.s32 %r1, %r2, -%r3;", ", found Negative"),
    ];
    let mut machine = Machine::new(profiles().remove(0), Options::default()).unwrap();
    for (instruction, why) in refused {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.func (.reg .b32 r) twice(.reg .b32 x) {{ add.s32 \
             r, x, x; ret; }} .visible .entry unlucky()\n{{\n.reg .b16 %h<4>; .reg .v2 .b32 %v;\n.reg .b32 \
             %r<4>;\n.reg .b64 %d<4>;\n.reg .f32 %f<5>;\n.reg .f64 %e<4>;\n{instruction}\nret;\n}}\n"
        );
        let error = machine.load(&text).unwrap_err().to_string();
        let opcode = instruction.split(' ').next().unwrap().trim_end_matches(';');
        assert!(error.contains("kernel `unlucky`") && error.contains("line 11 of the PTX"), "{error}");
        assert!(error.contains(opcode) && error.contains(why), "{error}");
    }
}
