//! Warp operations whose mask names lanes that never execute them.

use crate::bench::{Arg, Bench};

/// Kernel in which only odd lanes execute `operation`.
fn kernel(before: &str, operation: &str, after: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{
        .reg .pred %p, %q;\n.reg .b32 %t, %r<4>;\n.reg .b64 %o, %a;
        ld.param.u64 %o, [out];\nmov.u32 %t, %tid.x;\nmul.wide.u32 %a, %t, 4;\nadd.u64 %o, %o, %a;
        and.b32 %r1, %t, 1;\nsetp.ne.u32 %p, %r1, 0;\nmov.u32 %r2, %t;
        {before}\n@!%p bra L;\n{operation}\nL: {after}\nst.global.u32 [%o], %r2;\nret;\n}}"
    )
}

fn notes(before: &str, operation: &str, after: &str) -> Vec<String> {
    let mut b = Bench::new(&kernel(before, operation, after));
    let out = b.buffer(&[0; 32]);
    b.launch("k", [1; 3], [32, 1, 1], &[Arg::Address(out)]).unwrap().notes
}

const SHUFFLE: &str = "shfl.sync.idx.b32 %r2, %r2, 1, 0x1f, 0xffffffff;";

#[test]
fn lanes_that_never_come_to_an_operation_that_names_them_are_noted() {
    let operations = [
        SHUFFLE,
        "vote.sync.ballot.b32 %r2, %p, 0xffffffff;",
        "match.any.sync.b32 %r2, %r1, 0xffffffff;",
        "redux.sync.add.u32 %r2, %t, 0xffffffff;",
    ];
    for operation in operations {
        let notes = notes("", operation, "");
        let [note] = &notes[..] else { panic!("{operation}: {notes:?}") };
        assert!(
            note.starts_with("kernel `k`: lanes 0x55555555 exit without executing the warp operation at"),
            "{note}"
        );
        assert!(note.ends_with("(block (0,0,0), thread (1,0,0))"), "{note}");
    }
}

#[test]
fn lanes_that_are_not_named_have_exited_before_or_come_later_are_not() {
    assert_eq!(notes("", &SHUFFLE.replace("0xffffffff", "0xaaaaaaaa"), ""), [""; 0]);
    assert_eq!(notes("@!%p exit;", SHUFFLE, ""), [""; 0]);
    assert_eq!(notes("setp.lt.u32 %p, %t, 99;", SHUFFLE, ""), [""; 0]);
}
