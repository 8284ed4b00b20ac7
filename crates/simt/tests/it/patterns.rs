//! The sanitizer reports the same for any set of active lanes and any distance between them. Each address pattern takes
//! a different path through the simulator.

use simt::{LaunchError, LaunchReport, Options, Trap, TrapKind};

use crate::bench::{Arg, Bench};

/// In the first kernel, each lane `k` in `lanes` loads word `first + stride * k` and stores its value to word `k` of
/// `to`. In the second kernel, the first warp loads words 0 to 31, and the second warp stores to some of them.
const KERNELS: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 data, .param .u64 to, .param .u32 lanes, .param .u32 first, .param .u32 stride)
{
    .reg .pred %p<2>;
    .reg .b32 %r<14>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [to];
    ld.param.u32 %r2, [lanes];
    ld.param.u32 %r3, [first];
    ld.param.u32 %r4, [stride];
    mov.u32 %r1, %tid.x;
    shr.u32 %r5, %r2, %r1;
    and.b32 %r5, %r5, 1;
    setp.eq.u32 %p1, %r5, 0;
    @%p1 bra DONE;
    mad.lo.u32 %r6, %r4, %r1, %r3;
    mul.wide.u32 %rd3, %r6, 4;
    add.u64 %rd4, %rd1, %rd3;
    LOAD
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd6, %rd2, %rd5;
    st.global.u32 [%rd6], %r7;
DONE:
    ret;
}
.visible .entry meet(.param .u64 data, .param .u32 lanes, .param .u32 first, .param .u32 stride)
{
    .reg .pred %p<3>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r2, [lanes];
    ld.param.u32 %r3, [first];
    ld.param.u32 %r4, [stride];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra SECOND;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r5, [%rd3];
    bra DONE;
SECOND:
    sub.u32 %r6, %r1, 32;
    shr.u32 %r7, %r2, %r6;
    and.b32 %r7, %r7, 1;
    setp.eq.u32 %p2, %r7, 0;
    @%p2 bra DONE;
    mad.lo.u32 %r8, %r4, %r6, %r3;
    mul.wide.u32 %rd4, %r8, 4;
    add.u64 %rd5, %rd1, %rd4;
    st.global.u32 [%rd5], %r1;
DONE:
    ret;
}
";
/// Expansions of `LOAD`, by number of words per lane.
const LOADS: [(u32, &str); 3] = [
    (1, "ld.global.u32 %r7, [%rd4];"),
    (2, "ld.global.v2.u32 {%r7, %r8}, [%rd4];"),
    (4, "ld.global.v4.u32 {%r7, %r8, %r9, %r10}, [%rd4];"),
];
const WORDS: u32 = 4096;
const LANES: [u32; 6] = [u32::MAX, 0xaaaa_aaaa, 0xffff_0000, 0x0000_1fff, 0x8000_0001, 1 << 7];

/// Returns a machine with a buffer in which all words but one are written.
fn machine(load: &str, hole: u32, sanitize: bool) -> (Bench, u64) {
    let mut bench = Bench::load(&KERNELS.replace("LOAD", load), Options { sanitize, ..Options::default() });
    let data = bench.machine.alloc(u64::from(WORDS) * 4).unwrap();
    let words: Vec<u8> = (0..WORDS).flat_map(u32::to_le_bytes).collect();
    let at = hole as usize * 4;
    bench.machine.write(data, &words[..at]).unwrap();
    bench.machine.write(data + u64::from(hole) * 4 + 4, &words[at + 4..]).unwrap();
    (bench, data)
}

fn numbers(lanes: u32, first: u32, stride: u32) -> impl Iterator<Item = Arg> {
    [lanes, first, stride].into_iter().map(|n| Arg::Int(n as i32))
}

fn read(
    load: &str,
    (lanes, first, stride): (u32, u32, u32),
    hole: u32,
    sanitize: bool,
) -> Result<LaunchReport, Box<Trap>> {
    let (mut bench, data) = machine(load, hole, sanitize);
    let to = bench.buffer(&[0; 32]);
    let args: Vec<Arg> =
        [Arg::Address(data), Arg::Address(to)].into_iter().chain(numbers(lanes, first, stride)).collect();
    let report = bench.launch("read", [1; 3], [32, 1, 1], &args).map_err(fault)?;
    let got = bench.ints(to, 32);
    for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
        let word = first + stride * lane;
        assert!(word == hole || got[lane as usize] == word as i32, "lane {lane} of {lanes:#x}, {first} + {stride} k");
    }
    Ok(report)
}

fn fault(error: LaunchError) -> Box<Trap> {
    match error {
        LaunchError::Trap(trap) => trap,
        LaunchError::Refused(error) => panic!("refused: {error}"),
    }
}

fn lane_of(lanes: u32, touches: impl Fn(u32) -> bool) -> Option<u32> {
    (0..32).find(|&lane| lanes >> lane & 1 == 1 && touches(lane))
}

/// Compares the findings for one pattern of loads with those expected.
fn look((width, load): (u32, &str), (lanes, first, stride): (u32, u32, u32), hole: u32) {
    // Only the first word of a vector is used.
    let found = lane_of(lanes, |lane| first + stride * lane == hole);
    let pattern = format!("{width} words, lanes {lanes:#x}, {first} + {stride} k, word {hole} unwritten");
    match (read(load, (lanes, first, stride), hole, true), found) {
        (Err(trap), Some(lane)) => {
            assert_eq!((trap.kind, trap.thread), (TrapKind::Uninitialised, Some([lane, 0, 0])), "{pattern}");
            assert_eq!(trap.site.as_ref().map(|s| s.offset), Some(i64::from(hole) * 4), "{pattern}");
        }
        (Ok(report), None) => {
            assert_eq!(report, read(load, (lanes, first, stride), hole, false).unwrap(), "{pattern}");
        }
        (other, _) => panic!("{pattern}: {other:?}"),
    }
}

#[test]
fn a_word_that_nothing_wrote_is_found_by_the_first_lane_that_reads_it() {
    for (width, load) in LOADS {
        for lanes in LANES {
            for first in [0, 4, 100] {
                for stride in [0, 1, 2, 7, 24].map(|stride| stride * width) {
                    let middle = first + stride * 13;
                    for hole in [middle, middle + width - 1, first + stride * 31, WORDS - 1] {
                        look((width, load), (lanes, first, stride), hole);
                    }
                }
            }
        }
    }
}

#[test]
fn a_store_to_a_word_that_another_warp_has_loaded_is_found_in_every_pattern() {
    for lanes in LANES {
        for first in [0, 5, 20, 31, 32, 40] {
            for stride in [1, 2, 3, 7, 24] {
                let (mut bench, data) = machine(LOADS[0].1, WORDS - 1, true);
                let args: Vec<Arg> = std::iter::once(Arg::Address(data)).chain(numbers(lanes, first, stride)).collect();
                let met = bench.launch("meet", [1; 3], [64, 1, 1], &args).map_err(fault);
                let pattern = format!("lanes {lanes:#x}, {first} + {stride} k");
                match (met, lane_of(lanes, |lane| first + stride * lane < 32)) {
                    (Err(trap), Some(lane)) => {
                        assert_eq!((trap.kind, trap.thread), (TrapKind::Race, Some([32 + lane, 0, 0])), "{pattern}");
                    }
                    (Ok(_), None) => {}
                    (other, _) => panic!("{pattern}: {other:?}"),
                }
            }
        }
    }
}
