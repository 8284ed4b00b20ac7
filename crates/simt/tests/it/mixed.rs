//! Requests with generic addresses, whose lanes are in different allocations and state spaces.

use simt::{LaunchError, LaunchReport, Options, Trap, TrapKind};

use crate::bench::{Arg, Bench};

/// Where a lane's word can be. Every place has 32 words; the word of lane `k` is initially `100 * place + k`.
const PLACES: [&str; 7] = ["first", "second", "variable", "tile", "mine", "table", "parameter"];
/// First read-only place; all later ones are read-only, too.
const TABLE: usize = 5;

/// Kernel whose lane `k` accesses its word in place `kinds[k]` of [`PLACES`]. It ends by storing `%r9` to `out`.
fn kernel(body: &str) -> String {
    let words = |place: i32| (0..32).map(|k| (100 * place + k).to_string()).collect::<Vec<_>>().join(", ");
    let of_place = |place| format!("setp.eq.u32 %p1, %r2, {place};\nselp.b64 %rd9, %rd1{place}, %rd9, %p1;");
    let select = (1..7).map(of_place).collect::<Vec<_>>().join("\n");
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"/home/me/mixed.cu\"
.global .align 16 .u32 variable[32] = {{{variable}}};
.const .align 16 .u32 table[32] = {{{table}}};
.visible .entry test(.param .u64 first, .param .u64 second, .param .u64 kinds, .param .u64 out,
                     .param .align 16 .b8 parameter[128])
{{
    .local .align 16 .b8 mine[128];
    .shared .align 16 .b8 tile[128];
    .reg .pred %p<9>;
    .reg .b32 %r<19>;
    .reg .b64 %rd<29>;
    .loc 1 3 1
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
    ld.param.u64 %rd2, [first];
    add.s64 %rd9, %rd2, %rd1;
    ld.param.u64 %rd2, [second];
    add.s64 %rd11, %rd2, %rd1;
    mov.u64 %rd2, variable;
    cvta.global.u64 %rd2, %rd2;
    add.s64 %rd12, %rd2, %rd1;
    mov.u64 %rd2, tile;
    cvta.shared.u64 %rd2, %rd2;
    add.s64 %rd13, %rd2, %rd1;
    add.u32 %r3, %r1, 300;
    st.u32 [%rd13], %r3;
    mov.u64 %rd2, mine;
    cvta.local.u64 %rd2, %rd2;
    add.s64 %rd14, %rd2, %rd1;
    add.u32 %r3, %r1, 400;
    st.u32 [%rd14], %r3;
    // Local memory is private to each lane, which therefore also stores the other word of its pair.
    xor.b32 %r4, %r1, 1;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd3, %rd2, %rd3;
    xor.b32 %r3, %r1, 1;
    add.u32 %r3, %r3, 400;
    st.u32 [%rd3], %r3;
    mov.u64 %rd2, table;
    cvta.const.u64 %rd2, %rd2;
    add.s64 %rd15, %rd2, %rd1;
    mov.b64 %rd2, parameter;
    cvta.param.u64 %rd2, %rd2;
    add.s64 %rd16, %rd2, %rd1;
    ld.param.u64 %rd2, [kinds];
    add.s64 %rd2, %rd2, %rd1;
    ld.global.u32 %r2, [%rd2];
    {select}
    .loc 1 9 1
    {body}
    .loc 1 20 1
    ld.param.u64 %rd2, [out];
    add.s64 %rd2, %rd2, %rd1;
    st.u32 [%rd2], %r9;
    ret;
}}\n",
        variable = words(2),
        table = words(5),
    )
}

/// Returns distributions of the lanes over several places: alternating, in halves, and all but one lane in the first
/// place.
fn patterns(places: &[usize]) -> Vec<[usize; 32]> {
    let last = *places.last().unwrap();
    vec![
        std::array::from_fn(|k| places[k % places.len()]),
        std::array::from_fn(|k| places[k * places.len() / 32]),
        std::array::from_fn(|k| if k == 31 { last } else { places[0] }),
        std::array::from_fn(|k| if k == 0 { last } else { places[0] }),
    ]
}

/// Returns mixtures of the places before `end`: all pairs, in both orders, and all of these places at once.
fn mixtures(end: usize) -> Vec<[usize; 32]> {
    let pairs = (0..end).flat_map(|a| (0..end).map(move |b| vec![a, b]));
    pairs.chain([(0..end).collect(), (0..end).rev().collect()]).flat_map(|places| patterns(&places)).collect()
}

/// Returns the result of the launch, with or without the sanitizer, and the words of `out`.
fn run(ptx: &str, kinds: &[usize; 32], sanitize: bool) -> (Result<LaunchReport, LaunchError>, Vec<i32>) {
    let mut bench = Bench::load(ptx, Options { sanitize, ..Options::default() });
    let words = |place: i32| (0..32).map(|k| 100 * place + k).collect::<Vec<_>>();
    let buffers = [words(0), words(1), kinds.map(|k| k as i32).to_vec(), vec![-1; 32]];
    let addresses = buffers.map(|values| bench.buffer(&values));
    let mut args = addresses.map(Arg::Address).to_vec();
    args.push(Arg::Bytes(words(6).iter().flat_map(|v| v.to_le_bytes()).collect()));
    let ended = bench.launch("test", [1, 1, 1], [32, 1, 1], &args);
    (ended, bench.ints(addresses[3], 32))
}

/// Checks what each mixture of the places before `end` leaves in `out`, given the lane and its place.
#[track_caller]
fn expect(body: &str, end: usize, expected: impl Fn(usize, usize) -> usize) {
    let ptx = kernel(body);
    for kinds in mixtures(end) {
        for sanitize in [true, false] {
            let (ended, out) = run(&ptx, &kinds, sanitize);
            let names = kinds.map(|k| PLACES[k]);
            if let Err(error) = ended {
                panic!("sanitizer {sanitize}, {names:?}: {error}");
            }
            let right: Vec<i32> = (0..32).map(|k| expected(k, kinds[k]) as i32).collect();
            assert_eq!(out, right, "sanitizer {sanitize}, {names:?}");
        }
    }
}

#[test]
fn lanes_load_from_any_mixture_of_places() {
    expect("ld.u32 %r9, [%rd9];", PLACES.len(), |lane, place| 100 * place + lane);
}

#[test]
fn lanes_load_bytes_and_vectors_from_any_mixture_of_places() {
    // The low byte of the lane's word, and the other word of the aligned pair that contains it.
    let body = "ld.u8 %r4, [%rd9];
    and.b64 %rd3, %rd9, -8;
    ld.v2.u32 {%r5, %r6}, [%rd3];
    and.b32 %r7, %r1, 1;
    setp.eq.u32 %p2, %r7, 0;
    selp.b32 %r9, %r6, %r5, %p2;
    shl.b32 %r9, %r9, 8;
    or.b32 %r9, %r9, %r4;";
    expect(body, PLACES.len(), |lane, place| (100 * place + (lane ^ 1)) << 8 | (100 * place + lane) & 255);
}

#[test]
fn lanes_store_to_any_mixture_of_writable_places() {
    let body = "add.u32 %r3, %r1, 1000;\nst.u32 [%rd9], %r3;\nld.u32 %r9, [%rd9];";
    expect(body, TABLE, |lane, _| lane + 1000);
}

#[test]
fn atomics_of_lanes_reach_any_mixture_of_global_and_shared_memory() {
    let body = "atom.add.u32 %r3, [%rd9], 7;\nld.u32 %r4, [%rd9];\nshl.b32 %r4, %r4, 12;\nor.b32 %r9, %r3, %r4;";
    expect(body, 4, |lane, place| (100 * place + lane + 7) << 12 | (100 * place + lane));
}

#[test]
fn a_store_to_a_buffer_is_right_after_a_load_from_any_mixture_of_places() {
    // Each later request of the warp accesses only one buffer.
    let body = "ld.u32 %r3, [%rd9];
    ld.param.u64 %rd3, [first];
    add.s64 %rd3, %rd3, %rd1;
    st.u32 [%rd3], %r3;
    st.u32 [%rd11], %r3;
    ld.u32 %r4, [%rd3];
    ld.u32 %r5, [%rd11];
    add.u32 %r9, %r4, %r5;";
    expect(body, PLACES.len(), |lane, place| 2 * (100 * place + lane));
}

fn caught(body: &str, kinds: &[usize; 32], sanitize: bool) -> Trap {
    match run(&kernel(body), kinds, sanitize).0 {
        Err(LaunchError::Trap(trap)) => *trap,
        other => panic!("it ends in {other:?}"),
    }
}

#[test]
fn a_store_by_some_lanes_to_constants_names_the_first_of_them() {
    for body in ["st.u32 [%rd9], %r1;", "atom.add.u32 %r3, [%rd9], 7;", "ld.u32 %r3, [%rd9];\nst.u32 [%rd9], %r3;"] {
        for (buffer, lane, sanitize) in (0..3).flat_map(|b| (0..32).flat_map(move |l| [(b, l, true), (b, l, false)])) {
            let kinds = std::array::from_fn(|k| if k == lane || k == 31 { TABLE } else { buffer });
            let trap = caught(body, &kinds, sanitize);
            let site = trap.site.as_ref().unwrap();
            let (kind, thread) = (TrapKind::OutOfBounds, Some([lane as u32, 0, 0]));
            assert_eq!((trap.kind, trap.thread, trap.place.as_str()), (kind, thread, "mixed.cu:9"), "{trap}");
            assert_eq!((site.allocation.as_str(), site.offset), ("constant `table`", 4 * lane as i64), "{trap}");
            assert!(trap.message.starts_with("a store to constant memory at "), "{trap}");
        }
    }
}
