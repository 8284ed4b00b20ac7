//! Bytecode of a small kernel: how the passes lower a guard, a divergent branch, a loop and a narrow load.
//!
//! `SNAPSHOTS=overwrite cargo test -p simt listing` updates the expected text.

use std::path::Path;

use crate::bench::Bench;

const PTX: &str = r"
.version 9.0
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 data, .param .u32 n)
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b64 %d<4>;
	.shared .align 4 .b8 room[128];
	ld.param.u64 %d1, [data];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra done;
	mov.u32 %r3, 0;
again:
	mul.wide.u32 %d2, %r2, 2;
	add.s64 %d3, %d1, %d2;
	ld.global.u16 %r4, [%d3+4];
	add.s32 %r3, %r3, %r4;
	setp.gt.u32 %p2, %r4, 7;
	@%p2 shl.b32 %r3, %r3, 1;
	add.s32 %r2, %r2, 32;
	setp.lt.u32 %p3, %r2, %r1;
	@%p3 bra again;
	st.shared.u32 [room], %r3;
	bar.sync 0;
done:
	ret;
}";

#[test]
fn the_bytecode_of_a_small_kernel_is_as_expected() {
    let bench = Bench::new(PTX);
    let listing = bench.machine.listing(bench.module, "sums").unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/listing/sums.txt");
    if std::env::var_os("SNAPSHOTS").is_some_and(|action| action == "overwrite") {
        std::fs::write(&path, &listing).unwrap();
    }
    assert_eq!(listing, std::fs::read_to_string(&path).unwrap());
}
