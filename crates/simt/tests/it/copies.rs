//! Asynchronous copies that read fewer bytes than they write, and registers that were never written.

use simt::{Options, TrapKind};

use crate::bench::{Arg, Bench, trap};

const PTX: &str = "
.version 9.0
.target sm_90
.address_size 64

.visible .entry short(.param .u64 from, .param .u64 to, .param .u32 bytes)
{
	.reg .b32 %r<8>;
	.reg .b64 %d<4>;
	.shared .align 16 .b8 room[16];
	ld.param.u64 %d1, [from];
	ld.param.u64 %d2, [to];
	ld.param.u32 %r1, [bytes];
	mov.u32 %r2, room;
	cp.async.ca.shared.global [%r2], [%d1], 16, %r1;
	cp.async.wait_all;
	ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2];
	st.global.v4.u32 [%d2], {%r3, %r4, %r5, %r6};
	ret;
}

.visible .entry unwritten(.param .u64 to)
{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %d<4>;
	ld.param.u64 %d1, [to];
	mov.u32 %r1, %ctaid.x;
	mad.wide.u32 %d1, %r1, 4, %d1;
	and.b32 %r2, %r1, 1;
	setp.ne.u32 %p1, %r2, 0;
	@%p1 bra L;
	add.u32 %r5, %r1, 7;
L:	st.global.u32 [%d1], %r5;
	ret;
}
";

fn bench() -> Bench {
    Bench::load(PTX, Options { threads: Some(1), ..Options::default() })
}

#[test]
fn a_short_copy_reads_no_more_than_it_says_and_fills_up_with_zeros() {
    let mut b = bench();
    let (from, to) = (b.buffer(&[0x0101_0101, 0x0202_0202, 0x0303_0303]), b.buffer(&[-1; 4]));
    for (bytes, expected) in [
        (12, [0x0101_0101, 0x0202_0202, 0x0303_0303, 0]),
        (7, [0x0101_0101, 0x0002_0202, 0, 0]),
        (4, [0x0101_0101, 0, 0, 0]),
        (0, [0; 4]),
    ] {
        let args = [Arg::Address(from), Arg::Address(to), Arg::Int(bytes)];
        let report = b.launch("short", [1, 1, 1], [1, 1, 1], &args).unwrap();
        assert_eq!(b.ints(to, 4), expected, "{bytes} bytes");
        let read = report.counters.global_load;
        assert_eq!((read.requests, read.bytes), (u64::from(bytes > 0), bytes as u64));
    }
}

#[test]
fn a_copy_of_nothing_may_have_any_address() {
    let mut b = bench();
    let to = b.buffer(&[-1; 4]);
    b.launch("short", [1, 1, 1], [1, 1, 1], &[Arg::Address(0), Arg::Address(to), Arg::Int(0)]).unwrap();
    assert_eq!(b.ints(to, 4), [0; 4]);
}

#[test]
fn a_short_copy_is_held_to_bounds_to_alignment_and_to_what_was_written() {
    let mut b = bench();
    let (from, to) = (b.buffer(&[1, 2, 3]), b.buffer(&[0; 4]));
    let fresh = b.machine.alloc(16).unwrap();
    b.machine.write(fresh, &[1; 8]).unwrap();
    let mut caught = |from: u64, bytes: i32| {
        let args = [Arg::Address(from), Arg::Address(to), Arg::Int(bytes)];
        b.launch("short", [1, 1, 1], [1, 1, 1], &args).map_err(|e| trap(Err(e)).0)
    };
    assert_eq!(caught(from, 13).unwrap_err(), TrapKind::OutOfBounds);
    assert_eq!(caught(from + 4, 4).unwrap_err(), TrapKind::Misaligned);
    assert!(caught(fresh, 8).is_ok());
    assert_eq!(caught(fresh, 9).unwrap_err(), TrapKind::Uninitialised);
}

#[test]
fn a_register_that_was_never_written_holds_zero_whatever_ran_before() {
    let mut b = bench();
    let to = b.buffer(&[-1; 6]);
    b.launch("unwritten", [6, 1, 1], [1, 1, 1], &[Arg::Address(to)]).unwrap();
    assert_eq!(b.ints(to, 6), [7, 0, 9, 0, 11, 0]);
}
