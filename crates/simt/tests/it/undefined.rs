//! Undefined values: reading memory that was never written is not a fault, but using the value is.

use simt::{FindingClass, Ignored, LaunchError, Options, Trap, TrapKind};

use crate::bench::{Arg, Bench};

/// Words 0 to 31 of `data` are written, the others are not. The first 16 bytes of `tile` have three written words.
const HEAD: &str = r"
.version 9.0
.target sm_90
.address_size 64

.func keep(.param .b32 value, .param .b64 to)
{
    .reg .b32 %v;
    .reg .b64 %t;
    ld.param.b32 %v, [value];
    ld.param.b64 %t, [to];
    st.global.b32 [%t], %v;
    ret;
}

.func drop(.param .b32 value, .param .b64 to)
{
    .reg .b32 %v;
    .reg .b64 %t;
    ld.param.b64 %t, [to];
    mov.b32 %v, 5;
    st.global.b32 [%t], %v;
    ret;
}

.func (.param .b32 result) twice(.param .b32 value)
{
    .reg .b32 %v;
    ld.param.b32 %v, [value];
    add.s32 %v, %v, %v;
    st.param.b32 [result], %v;
    ret;
}
";

const ENTRY: &str = r"
.visible .entry k(.param .u64 out, .param .u64 data)
{
    .reg .pred %p, %q, %zero;
    .reg .b16 %h<4>;
    .reg .b32 %t, %bad, %good, %r<20>;
    .reg .b64 %o, %d, %a, %w, %x;
    .shared .align 16 .b8 tile[256];
    .local .align 8 .b8 own[16];
    ld.param.u64 %o, [out];
    ld.param.u64 %d, [data];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %a, %t, 16;
    add.u64 %o, %o, %a;
    setp.eq.u32 %zero, %t, 0;
    ld.global.u32 %good, [%d+8];
";

/// Loads an undefined value into `%bad`.
const BAD: &str = "ld.global.u32 %bad, [%d+128];\n";

struct Outcome {
    result: Result<(), Box<Trap>>,
    out: Vec<i32>,
    undefined: Vec<std::ops::Range<u64>>,
}

fn run(body: &str, options: Options) -> Outcome {
    let mut b = Bench::load(&format!("{HEAD}{ENTRY}{body}\nret;\n}}\n"), options);
    let data = b.machine.alloc(256).unwrap();
    let words: Vec<u8> = (100..132_u32).flat_map(u32::to_le_bytes).collect();
    b.machine.write(data, &words).unwrap();
    let out = b.buffer(&[0; 128]);
    let result = match b.launch("k", [1; 3], [32, 1, 1], &[Arg::Address(out), Arg::Address(data)]) {
        Ok(_) => Ok(()),
        Err(LaunchError::Trap(trap)) => Err(trap),
        Err(LaunchError::Refused(error)) => panic!("{error}"),
    };
    let undefined = b.machine.unwritten(out, 512).unwrap().unwrap_or_default();
    Outcome { result, out: b.ints(out, 128), undefined }
}

/// Runs a body that uses no undefined value. Lane 0 must output these words.
#[track_caller]
fn clean(body: &str, expected: &[i32]) {
    let Outcome { result, out, undefined } = run(body, Options::default());
    assert_eq!(result, Ok(()), "{body}");
    assert_eq!(&out[..expected.len()], expected, "{body}");
    assert_eq!(undefined, [], "{body}");
}

/// Runs a body that uses an undefined value. The message must start with the use and name the memory.
#[track_caller]
fn caught(body: &str, uses: &str) -> Box<Trap> {
    let Err(trap) = run(body, Options::default()).result else { panic!("not caught: {body}") };
    assert_eq!(trap.kind, TrapKind::Uninitialised, "{trap}");
    assert!(trap.message.starts_with(uses), "{trap}");
    assert!(trap.message.contains("was never written and is read at"), "{trap}");
    trap
}

/// Returns a body that starts with an undefined value in `%bad`.
fn bad(body: &str) -> String {
    format!("{BAD}{body}")
}

#[test]
fn a_value_that_nothing_uses_is_no_finding() {
    clean(&bad("st.global.u32 [%o], %good;"), &[102]);
    // The value is dead, even though its register later holds another one.
    clean(&bad("mov.u32 %bad, 3; st.global.u32 [%o], %bad;"), &[3]);
    clean(&bad("add.u32 %r1, %bad, %good; st.global.u32 [%o], %good;"), &[102]);
    // Only lane 0 has the value, and it stores nothing.
    clean("mov.u32 %bad, 4; @%zero ld.global.u32 %bad, [%d+128]; @!%zero st.global.u32 [%o], %bad;", &[0, 0, 0, 0, 4]);
}

#[test]
fn what_is_stored_branched_on_or_an_address_is() {
    let trap = caught(&bad("st.global.u32 [%o], %bad;"), "a value stored to buffer 1 + 0 depends on buffer 0 + 128,");
    let site = trap.site.as_ref().unwrap();
    assert_eq!((site.allocation.as_str(), site.offset, trap.thread), ("buffer 0", 128, Some([0; 3])), "{trap}");
    assert!(trap.message.contains("(write it first, or switch"), "{trap}");
    caught(&bad("add.u32 %r1, %bad, 1; st.global.u32 [%o], %r1;"), "a value stored to");
    // Multiplying the value by zero still uses it.
    caught(&bad("mul.lo.u32 %r1, %bad, 0; st.global.u32 [%o], %r1;"), "a value stored to");
    caught(&bad("setp.eq.u32 %p, %bad, 0; @%p bra L; st.global.u32 [%o], %good; L:"), "a branch");
    // The branch does not immediately follow the comparison.
    let apart = "setp.eq.u32 %p, %bad, 0; add.u32 %good, %good, 1; @%p bra L; st.global.u32 [%o], %good; L:";
    caught(&bad(apart), "a branch");
    caught(&bad("setp.eq.u32 %p, %bad, 0; @%p st.global.u32 [%o], %good;"), "a condition");
    caught(&bad("mul.wide.u32 %a, %bad, 4; add.u64 %a, %a, %d; ld.global.u32 %r1, [%a];"), "the address of a load");
    caught(&bad("mul.wide.u32 %a, %bad, 4; add.u64 %a, %a, %o; st.global.u32 [%a], %r1;"), "the address of a store");
    caught(&bad("red.global.add.u32 [%o], %bad;"), "an atomic");
    caught("@%zero ld.global.u32 %bad, [%d+128]; @%zero st.global.u32 [%o], %bad;", "a value stored to");
}

#[test]
fn the_padding_of_a_structure_is_not_used_by_its_other_members() {
    let fill = "st.shared.u32 [tile], %good; st.shared.u32 [tile+4], 7; st.shared.u32 [tile+8], 8;\n"
        .replace(", 7", ", %t")
        .replace(", 8", ", %t");
    let load = format!("{fill} bar.warp.sync 0xffffffff; ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [tile];\n");
    let lanes = "setp.eq.u32 %p, %t, 0; @!%p bra END;\n";
    clean(
        &format!(
            "{lanes}{fill} ld.shared.v4.u32 {{%r1, %r2, %r3, %r4}}, [tile]; add.u32 %r1, %r1, %r2; st.global.u32 [%o], %r1; END:"
        ),
        &[102],
    );
    let trap = caught(
        &format!("{lanes}{load} st.global.u32 [%o], %r4; END:").replace("bar.warp.sync 0xffffffff;", ""),
        "a value stored to",
    );
    assert_eq!(trap.site.as_ref().map(|site| (site.allocation.as_str(), site.offset)), Some(("shared memory", 12)));
    // Read as two 64-bit values.
    let wide = format!("{lanes}{fill} ld.shared.v2.b64 {{%w, %x}}, [tile]; mov.b64 {{%r1, %r2}}, %x;");
    clean(&format!("{wide} st.global.u32 [%o], %r1; END:"), &[0]);
    caught(&format!("{wide} st.global.u32 [%o], %r2; END:"), "a value stored to");
}

#[test]
fn a_structure_that_is_copied_keeps_its_undefined_padding() {
    let copy = "@!%zero bra END; ld.global.u32 %bad, [%d+128]; st.global.v2.u32 [%o], {%good, %bad}; END:";
    let done = run(copy, Options::default());
    assert_eq!((done.result, done.out[0], done.undefined.len()), (Ok(()), 102, 1));
    assert_eq!(done.undefined[0], 4..8);
    caught(
        "@!%zero bra END; ld.global.u32 %bad, [%d+128]; st.global.v2.u32 [%o], {%good, %bad};
         ld.global.v2.u32 {%r1, %r2}, [%o]; st.global.u32 [%o+8], %r2; END:",
        "a value stored to",
    );
}

#[test]
fn bits_that_another_operand_decides_are_defined() {
    clean(&bad("and.b32 %r1, %bad, 0; st.global.u32 [%o], %r1;"), &[0]);
    clean(&bad("or.b32 %r1, %bad, -1; st.global.u32 [%o], %r1;"), &[-1]);
    caught(&bad("and.b32 %r1, %bad, 0xff; st.global.u32 [%o], %r1;"), "a value stored to");
    clean(&bad("setp.ne.u32 %p, %t, 99; selp.u32 %r1, %good, %bad, %p; st.global.u32 [%o], %r1;"), &[102]);
    caught(&bad("setp.ne.u32 %p, %t, 5; selp.u32 %r1, %good, %bad, %p; st.global.u32 [%o], %r1;"), "a value stored to");
    caught(&bad("setp.eq.u32 %p, %bad, 5; selp.u32 %r1, 1, 2, %p; st.global.u32 [%o], %r1;"), "a value stored to");
    let both =
        "setp.eq.u32 %p, %bad, 5; setp.eq.u32 %q, %t, 99; and.pred %p, %p, %q; @%p bra L; st.global.u32 [%o], 1; L:"
            .replace("[%o], 1", "[%o], %good");
    clean(&bad(&both), &[102]);
    caught(&bad(&both.replace("and.pred", "or.pred")), "a branch");
}

#[test]
fn bits_keep_their_place_when_they_are_moved() {
    let byte = "@!%zero bra END; cvt.u16.u32 %h1, %good; st.shared.u8 [tile], %h1; ld.shared.u32 %r1, [tile];\n";
    let ends = |body: &str| format!("{byte}{body} st.global.u32 [%o], %r2; END:");
    clean(&ends("and.b32 %r2, %r1, 0xff;"), &[102]);
    clean(&ends("bfe.u32 %r2, %r1, 0, 8;"), &[102]);
    caught(&ends("bfe.u32 %r2, %r1, 4, 8;"), "a value stored to");
    clean(&ends("shl.b32 %r2, %r1, 24; shr.u32 %r2, %r2, 24;"), &[102]);
    clean(&ends("prmt.b32 %r2, %r1, 0, 0x4440;"), &[102]);
    clean(&ends("prmt.b32 %r2, %r1, 7, 0x4440;"), &[0x0707_0766].map(|_: i32| 0x0707_0766));
    caught(&ends("prmt.b32 %r2, %r1, 0, 0x4441;"), "a value stored to");
    clean(&ends("cvt.u32.u8 %r2, %r1;"), &[102]);
    caught(&ends("cvt.rn.f32.u32 %r2, %r1; and.b32 %r2, %r2, 1;"), "a value stored to");
    clean(
        &ends("mov.b32 {%h1, %h2}, %r1; and.b16 %h1, %h1, 0xff; mov.b32 %r2, {%h1, 9};")
            .replace("9}", "%h3}")
            .replace("mov.b32 {%h1", "mov.b16 %h3, 9; mov.b32 {%h1"),
        &[0x9_0066],
    );
}

#[test]
fn undefined_values_go_through_memory() {
    clean(&bad("st.shared.u32 [tile], %bad; st.global.u32 [%o], %good;"), &[102]);
    let own = "@!%zero bra END; ld.global.u32 %bad, [%d+128];\n";
    caught(
        &format!("{own} st.shared.u32 [tile], %bad; ld.shared.u32 %r1, [tile]; st.global.u32 [%o], %r1; END:"),
        "a value",
    );
    let again =
        "st.shared.u32 [tile], %bad; st.shared.u32 [tile], %good; ld.shared.u32 %r1, [tile]; st.global.u32 [%o], %r1;";
    clean(&format!("{own} {again} END:"), &[102]);
    caught(
        &format!("{own} st.local.u32 [own], %bad; ld.local.u32 %r1, [own]; st.global.u32 [%o], %r1; END:"),
        "a value",
    );
    caught("mov.u64 %w, own; ld.local.u32 %r1, [%w+4]; st.global.u32 [%o], %r1;", "a value stored to");
    // Another warp would read what this one has stored. Here, the same warp does so after a barrier.
    caught(
        &format!(
            "{own} st.shared.u32 [tile], %bad; END: bar.sync 0; ld.shared.u32 %r1, [tile]; st.global.u32 [%o], %r1;"
        ),
        "a value",
    );
}

#[test]
fn undefined_values_go_through_calls() {
    let call = |function: &str| {
        bad(&format!(
            "{{ .param .b32 v; .param .b64 to; st.param.b32 [v], %bad; st.param.b64 [to], %o; call {function}, (v, to); }}"
        ))
    };
    caught(&call("keep"), "a value stored to");
    clean(&call("drop"), &[5]);
    let twice = |value: &str, stored: &str| {
        bad(&format!(
            "{{ .param .b32 v; .param .b32 res; st.param.b32 [v], {value}; call (res), twice, (v); ld.param.b32 %r1, [res]; }}
             st.global.u32 [%o], {stored};"
        ))
    };
    clean(&twice("%good", "%r1"), &[204]);
    clean(&twice("%bad", "%good"), &[102]);
    caught(&twice("%bad", "%r1"), "a value stored to");
}

#[test]
fn undefined_values_go_from_lane_to_lane() {
    let one = "mov.u32 %bad, 4; @%zero ld.global.u32 %bad, [%d+128];\n";
    clean(&format!("{one} shfl.sync.idx.b32 %r1, %bad, 1, 0x1f, 0xffffffff; st.global.u32 [%o], %r1;"), &[4]);
    caught(&format!("{one} shfl.sync.idx.b32 %r1, %bad, 0, 0x1f, 0xffffffff; st.global.u32 [%o], %r1;"), "a value");
    // Lane 0's value moves up to lane 1.
    let up = caught(
        &format!("{one} shfl.sync.up.b32 %r1, %bad, 1, 0, 0xffffffff; @!%zero st.global.u32 [%o], %r1;"),
        "a value",
    );
    assert_eq!(up.thread, Some([1, 0, 0]));
    caught(
        &format!("{one} setp.eq.u32 %p, %bad, 4; vote.sync.ballot.b32 %r1, %p, 0xffffffff; st.global.u32 [%o], %r1;"),
        "a value",
    );
    let vote = "setp.eq.u32 %p, %bad, 4; vote.sync.ballot.b32 %r1, %p, 0xffffffff; and.b32 %r1, %r1, 0xfffffffe; st.global.u32 [%o], %r1;";
    clean(&format!("{one} {vote}"), &[-2]);
    caught(&format!("{one} redux.sync.add.u32 %r1, %bad, 0xffffffff; @!%zero st.global.u32 [%o], %r1;"), "a value");
    caught(&bad("add.cc.u32 %r1, %bad, 1; addc.u32 %r2, %good, 0; st.global.u32 [%o], %r2;"), "a value stored to");
    clean(&bad("add.cc.u32 %r1, %good, 1; addc.u32 %r2, %good, 0; st.global.u32 [%o], %r2;"), &[102]);
}

#[test]
fn a_product_is_undefined_in_the_rows_and_columns_of_undefined_elements() {
    // Registers 1 and 3 of A hold rows 8 to 15, and so do registers 2 and 3 of the result.
    let mma = |stored: &str| {
        bad(&format!(
            "mov.u32 %r1, 0; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%r5, %r6, %r7, %r8}},
             {{%r1, %bad, %r1, %bad}}, {{%r1, %r1}}, {{%r1, %r1, %r1, %r1}}; st.global.u32 [%o], {stored};"
        ))
    };
    clean(&mma("%r6"), &[0]);
    caught(&mma("%r7"), "a value stored to");
    // Lane 0's element of B is in column 0, which is held by lanes 0, 4, 8, …
    let column = |stored: &str| {
        format!(
            "mov.u32 %bad, 0; @%zero ld.global.u32 %bad, [%d+128]; mov.u32 %r1, 0;
             mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%r5, %r6, %r7, %r8}}, {{%r1, %r1}}, {{%bad}},
             {{%r1, %r1, %r1, %r1}}; {stored}"
        )
    };
    clean(&column("st.global.u32 [%o], %r6;"), &[0]);
    let trap = caught(&column("and.b32 %r2, %t, 3; setp.ne.u32 %p, %r2, 0; @!%p st.global.u32 [%o], %r5;"), "a value");
    assert_eq!(trap.thread, Some([0; 3]));
    clean(&column("and.b32 %r2, %t, 3; setp.ne.u32 %p, %r2, 0; @%p st.global.u32 [%o], %r5;"), &[0]);
}

#[test]
fn the_class_can_be_off() {
    let body = bad("st.global.u32 [%o], %bad;");
    let mut b = Bench::new(&format!("{HEAD}{ENTRY}{body}\nret;\n}}\n"));
    let data = b.machine.alloc(256).unwrap();
    b.machine.write(data, &[0; 128]).unwrap();
    let out = b.buffer(&[0; 128]);
    b.machine.set_sanitizer(true, Ignored::from_classes([FindingClass::Uninitialised]));
    b.launch("k", [1; 3], [32, 1, 1], &[Arg::Address(out), Arg::Address(data)]).unwrap();
}
