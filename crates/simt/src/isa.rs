//! All operations, in one table from which the decoder and the documentation are derived.
//!
//! An entry has the opcode, a description, the function that picks its handlers, and its forms as data. The decoder,
//! the reference page on instructions and the coverage tests use this table. Instructions in any other form are
//! refused.

#![expect(clippy::float_cmp, reason = "a GPU compares floats exactly")]
#![expect(clippy::many_single_char_names, reason = "builder, form, destination and sources, in every entry alike")]
#![expect(clippy::cast_lossless, reason = "one macro has both widening and narrowing conversions")]
#![expect(clippy::neg_cmp_op_on_partial_ord, reason = "unordered comparisons are true for NaN")]
#![expect(clippy::double_comparisons, reason = "an ordered `ne` is false for NaN, which `!=` is not")]

mod address;
mod asynchronous;
mod atomic;
mod bits;
pub mod call;
mod cluster;
mod control;
mod convert;
mod decode;
mod division;
mod float;
mod forms;
mod half;
mod integer;
mod matrix;
mod memory;
mod moves;
mod reductions;
mod sending;
mod short;
mod texture;
mod video;
mod video_scalar;
mod wmma;

pub use forms::{CLASSES, takes};

use crate::isa::decode::Form;
use crate::mir::builder::Builder;
use ptx_parser::Instruction;

#[derive(Debug)]
pub struct Op {
    /// Opcode without modifiers.
    pub name: &'static str,
    /// Accepted modifiers, in the notation of [`forms`].
    pub forms: &'static [&'static str],
    /// Short description.
    pub about: &'static str,
    lower: Lower,
}

type Lower = for<'a, 'g, 'i> fn(&mut Builder<'a, 'g>, &mut Form<'a, 'i>) -> Result<(), String>;

macro_rules! ops {
    ($($name:literal, $about:literal, $lower:path, [$($form:literal),* $(,)?];)*) => {
        /// All operations, sorted by name.
        pub const OPS: &[Op] = &[$(Op { name: $name, forms: &[$($form),*], about: $about, lower: $lower }),*];
    };
}

ops! {
    "abs", "absolute value", integer::abs, ["{.ftz}.f32|f16|f16x2", ".f64|bf16|bf16x2", ".s16|s32|s64"];
    "activemask", "mask of the active lanes", control::activemask, [".b32"];
    "add", "sum", integer::add, [
        ".int|u16x2|s16x2",
        ".sat.s32",
        ".cc.u32|s32|u64|s64",
        "{.rnd}{.ftz}{.sat}.f32",
        "{.rnd}.f64",
        "{.rn}{.ftz}{.sat}.f16|f16x2",
        "{.rn}.bf16|bf16x2",
    ];
    "addc", "sum with carry", integer::carry, ["{.cc}.u32|s32|u64|s64"];
    "and", "bitwise and", integer::logic, [".pred|bits"];
    "applypriority", "L2 eviction priority: no effect here", control::nop, ["{.global}.L2::evict_normal"];
    "atom", "atomic read-modify-write, returns the old value", atomic::atomic, [
        "{.sem}{.scope}{.global|shared_any}.add|inc|dec|min|max{.noftz}{.L2::cache_hint}.u32|s32|u64|s64|f32|f64|half",
        "{.sem}{.scope}{.global|shared_any}.and|or|xor|exch|cas{.L2::cache_hint}.bits|b128",
        "{.sem}{.scope}{.global}.add|min|max{.noftz}{.L2::cache_hint}.v2|v4|v8.f32|half",
    ];
    "bar", "barrier of a block or of a warp", control::barrier, [
        "{.cta}.sync|arrive",
        "{.cta}.red.and|or.pred",
        "{.cta}.red.popc.u32",
        ".warp.sync",
    ];
    "barrier", "barrier of a block or of a cluster", control::barrier, [
        "{.cta}.sync|arrive{.aligned}",
        "{.cta}.red.and|or{.aligned}.pred",
        "{.cta}.red.popc{.aligned}.u32",
        ".cluster.arrive{.release|relaxed}{.aligned}",
        ".cluster.wait{.acquire}{.aligned}",
    ];
    "bfe", "bit-field extract", bits::bfe, [".u32|s32|u64|s64"];
    "bfi", "bit-field insert", bits::bfi, [".b32|b64"];
    "bfind", "position of the most significant non-sign bit", bits::bfind, ["{.shiftamt}.u32|s32|u64|s64"];
    "bmsk", "bit mask with a given start and width", bits::bmsk, [".clamp|wrap.b32"];
    "bra", "branch", control::bra, ["{.uni}"];
    "brev", "bit reversal", bits::bits, [".b32|b64"];
    "brkpt", "breakpoint: ends the launch", control::trap, [""];
    "brx", "indirect branch through a table of labels", control::brx, [".idx{.uni}"];
    "call", "direct or indirect function call", call::call, ["{.uni}"];
    "clz", "number of leading zeros", bits::bits, [".b32|b64"];
    "cnot", "1 if the source is 0, otherwise 0", bits::bits, [".bits"];
    "copysign", "magnitude of one source with the sign of the other", float::copysign, [".f32|f64"];
    "cos", "cosine", float::transcendental, [".approx{.ftz}.f32"];
    "cp", "asynchronous copy or reduction", asynchronous::copy, [
        ".async.ca|cg.shared_cta.global{.L2::64B|L2::128B|L2::256B}{.L2::cache_hint}",
        ".async.commit_group|wait_group|wait_all",
        ".async.mbarrier.arrive{.noinc}{.shared_cta}.b64",
        ".async.bulk.commit_group",
        ".async.bulk.wait_group{.read}",
        ".async.bulk.shared::cta|shared::cluster.global.tx{.multicast::cluster}{.L2::cache_hint}",
        ".async.bulk.shared::cluster.shared::cta.tx",
        ".async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}",
        ".async.bulk.prefetch.L2.global{.L2::cache_hint}",
        ".reduce.async.bulk.shared::cluster.shared::cta.tx.add|inc|dec|min|max|and|or|xor.u32|s32|u64|s64|b32|b64",
        ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add|inc|dec|min|max|and|or|xor\
         {.noftz}.u32|s32|u64|s64|b32|b64|f16|bf16|f32|f64",
    ];
    "createpolicy", "cache eviction policy: no effect here", memory::policy, [
        ".fractional.evict{.evict}.b64",
        ".range{.global}.evict{.evict}.b64",
        ".cvt.L2.b64",
    ];
    "cvt", "conversion", convert::cvt, [
        "{.rnd|irnd}{.ftz}{.sat}.int|u8|s8|f16|bf16|f32|f64.int|u8|s8|f16|bf16|f32|f64",
        ".rn|rz{.relu}{.satfinite}.half.f32",
        ".rn|rz|rna{.relu}{.satfinite}.tf32.f32",
        ".rn.satfinite{.relu}.e4m3x2|e5m2x2.f32|f16x2",
        ".rn{.relu}.f16x2.e4m3x2|e5m2x2",
        ".pack.sat.u16|s16.s32",
        ".pack.sat.u8|s8|u4|s4|u2|s2.s32.b32",
    ];
    "cvta", "conversion between generic and state-space addresses", memory::cvta, ["{.to}.space.u64"];
    "discard", "hint to discard cached data: no effect here", control::nop, ["{.global}.L2"];
    "div", "quotient", division::div, [".int", ".approx|full{.ftz}.f32", ".rnd{.ftz}.f32", ".rnd.f64"];
    "dp2a", "dot product of two 16-bit and two 8-bit values, plus an addend", bits::dot, [".lo|hi.u32|s32.u32|s32"];
    "dp4a", "dot product of four 8-bit values each, plus an addend", bits::dot, [".u32|s32.u32|s32"];
    "elect", "leader lane of a lane mask", control::elect, [".sync"];
    "ex2", "base-2 exponential", float::transcendental, [
        ".approx{.ftz}.f32",
        ".approx.f16|f16x2",
        ".approx.ftz.bf16|bf16x2",
    ];
    "exit", "end of the thread", control::exit, [""];
    "fence", "memory fence", control::fence, [
        "{.sc|acq_rel|acquire|release}.scope",
        ".acquire|release.order.cluster",
        ".mbarrier_init.release.cluster",
        ".proxy.alias",
        ".proxy.async{.global|shared::cta|shared::cluster}",
        ".proxy.async::generic.acquire|release.order.cluster",
    ];
    "fma", "fused multiply-add", float::fma, [
        ".rnd{.ftz}{.sat}.f32",
        ".rnd.f64",
        ".rn{.ftz}{.sat|relu}.f16|f16x2",
        ".rn{.relu}.bf16|bf16x2",
    ];
    "fns", "position of the n-th set bit", bits::fns, [".b32"];
    "getctarank", "rank in the cluster of the block that owns a shared address", cluster::rank,
        ["{.shared::cluster}.u32|u64"];
    "griddepcontrol", "no effect here: launches do not overlap", control::nop, [".launch_dependents|wait"];
    "isspacep", "whether a generic address is in a state space", memory::isspacep, [".space"];
    "ld", "load", memory::load, [
        "{.volatile}{.relaxed|acquire}{.scope}{.space}{.cache}{.cache}{.cache}{.cache}{.v2|v4|v8}.mem",
    ];
    "ldmatrix", "load of 8-by-8 matrices of 16-bit elements from shared memory", matrix::load,
        [".sync.aligned.m8n8.x1|x2|x4{.trans}{.shared_cta}.b16"];
    "ldu", "load of read-only data", memory::load, ["{.global}{.v2|v4}.mem"];
    "lg2", "binary logarithm", float::transcendental, [".approx{.ftz}.f32"];
    "lop3", "arbitrary logic function of three sources", bits::lop3, ["{.or|and}.b32"];
    "mad", "multiply and add", integer::mad, [
        ".lo|hi.int",
        ".hi.sat.s32",
        ".wide.u16|s16|u32|s32",
        ".lo|hi.cc.u32|s32|u64|s64",
        "{.rnd}{.ftz}{.sat}.f32",
        "{.rnd}.f64",
    ];
    "mad24", "24-bit multiply and add", integer::mad24, [".lo|hi.u32|s32", ".hi.sat.s32"];
    "madc", "multiply and add with carry", integer::carry, [".lo|hi{.cc}.u32|s32|u64|s64"];
    "mapa", "shared address in another block of the cluster", cluster::map, ["{.shared::cluster}.u32|u64"];
    "match", "mask of lanes with equal values", control::matching, [".any|all.sync.b32|b64"];
    "max", "maximum", integer::minmax, [
        ".int|u16x2|s16x2",
        ".relu.s32|s16x2",
        "{.ftz}{.NaN}{.xorsign}{.abs}.f32|f16|f16x2",
        "{.NaN}{.xorsign}{.abs}.bf16|bf16x2",
        ".f64",
    ];
    "mbarrier", "mbarrier object in shared memory", asynchronous::barrier_object, [
        ".init|inval{.shared_cta}.b64",
        ".expect_tx|complete_tx{.relaxed}{.scope}{.shared_any}.b64",
        ".arrive|arrive_drop{.expect_tx}{.noComplete}{.release|relaxed}{.scope}{.shared_any}.b64",
        ".test_wait|try_wait{.parity}{.acquire|relaxed}{.scope}{.shared_cta}.b64",
        ".pending_count.b64",
    ];
    "membar", "memory fence", control::fence, [".cta|gl|sys"];
    "min", "minimum", integer::minmax, [
        ".int|u16x2|s16x2",
        ".relu.s32|s16x2",
        "{.ftz}{.NaN}{.xorsign}{.abs}.f32|f16|f16x2",
        "{.NaN}{.xorsign}{.abs}.bf16|bf16x2",
        ".f64",
    ];
    "mma", "product of matrices in the registers of a warp, plus an addend", matrix::multiply, [
        ".sync.aligned.m16n8k8|m16n8k16.row.col.f32.f16.f16.f32",
        ".sync.aligned.m16n8k8|m16n8k16.row.col.f16.f16.f16.f16",
        ".sync.aligned.m16n8k8|m16n8k16.row.col.f32.bf16.bf16.f32",
        ".sync.aligned.m16n8k4|m16n8k8.row.col.f32.tf32.tf32.f32",
        ".sync.aligned.m16n8k16|m16n8k32.row.col.f32.e4m3|e5m2.e4m3|e5m2.f32",
        ".sync.aligned.m16n8k16|m16n8k32.row.col.f16.e4m3|e5m2.e4m3|e5m2.f16",
        ".sync.aligned.m8n8k16|m16n8k16|m16n8k32.row.col{.satfinite}.s32.s8|u8.s8|u8.s32{.satfinite}",
        ".sync.aligned.m8n8k32|m16n8k32|m16n8k64.row.col{.satfinite}.s32.s4|u4.s4|u4.s32{.satfinite}",
        ".sync.aligned.m8n8k128|m16n8k128|m16n8k256.row.col.s32.b1.b1.s32.and|xor.popc",
        ".sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    ];
    "mov", "copy, pack, unpack, or address of a name", moves::mov,
        [".pred|bits|b128|int|f32|f64", ".v2|v4|v8.bits|int|f32|f64"];
    "movmatrix", "transposed 8-by-8 matrix of 16-bit elements", matrix::transpose, [".sync.aligned.m8n8.trans.b16"];
    "mul", "product", integer::mul, [
        ".lo|hi.int",
        ".wide.u16|s16|u32|s32",
        "{.rnd}{.ftz}{.sat}.f32",
        "{.rnd}.f64",
        "{.rn}{.ftz}{.sat}.f16|f16x2",
        "{.rn}.bf16|bf16x2",
    ];
    "mul24", "24-bit product", integer::mul24, [".lo|hi.u32|s32"];
    "nanosleep", "suspends the thread so that other warps run", control::nanosleep, [".u32"];
    "neg", "negation", integer::neg, ["{.ftz}.f32|f16|f16x2", ".f64|bf16|bf16x2", ".s16|s32|s64"];
    "not", "bitwise complement", integer::not, [".pred|bits"];
    "or", "bitwise or", integer::logic, [".pred|bits"];
    "pmevent", "performance monitor event: no effect here", control::nop, ["{.mask}"];
    "popc", "number of set bits", bits::bits, [".b32|b64"];
    "prefetch", "prefetch into a cache: no effect here", control::nop,
        ["{.global|local}.L1|L2", ".global.L2::evict_last|L2::evict_normal"];
    "prefetchu", "prefetch into the uniform cache: no effect here", control::nop, [".L1"];
    "prmt", "permutation of the bytes of two registers", bits::prmt, [".b32{.f4e|b4e|rc8|ecl|ecr|rc16}"];
    "rcp", "reciprocal", float::reciprocal, [".approx{.ftz}.f32|f64", ".rnd{.ftz}.f32", ".rnd.f64"];
    "red", "atomic read-modify-write without a result", atomic::atomic, [
        "{.sem}{.scope}{.global|shared_any}.add|inc|dec|min|max{.noftz}{.L2::cache_hint}.u32|s32|u64|s64|f32|f64|half",
        "{.sem}{.scope}{.global|shared_any}.and|or|xor{.L2::cache_hint}.b32|b64",
        "{.sem}{.scope}{.global}.add|min|max{.noftz}{.L2::cache_hint}.v2|v4|v8.f32|half",
        ".async.relaxed.cluster{.shared::cluster}.tx.add|inc|dec|min|max|and|or|xor.u32|s32|u64|b32",
    ];
    "redux", "reduction across the lanes of a mask", control::redux, [
        ".sync.add|min|max.u32|s32",
        ".sync.and|or|xor.b32",
        ".sync.min|max{.abs}{.NaN}.f32",
    ];
    "rem", "remainder", division::rem, [".int"];
    "ret", "return", control::ret, ["{.uni}"];
    "rsqrt", "reciprocal square root", float::reciprocal, [".approx{.ftz}.f32|f64"];
    "sad", "absolute difference plus an addend", integer::sad, [".int"];
    "selp", "selection by a predicate", integer::selp, [".bits|int|f32|f64"];
    "set", "comparison with a numeric result", float::set, [
        ".cmp{.and|or|xor}{.ftz}.u32|s32|u16|f32|half.bits|int|f32|f64|half",
    ];
    "setp", "comparison with a predicate result", float::setp, [".cmp{.and|or|xor}{.ftz}.bits|int|f32|f64|half"];
    "shf", "funnel shift", bits::funnel, [".l|r.clamp|wrap.b32"];
    "shfl", "value of another lane", control::shuffle, ["{.sync}.up|down|bfly|idx.b32"];
    "shl", "left shift", bits::shift, [".bits"];
    "shr", "right shift", bits::shift, [".bits|int"];
    "sin", "sine", float::transcendental, [".approx{.ftz}.f32"];
    "slct", "selection by the sign of a source", float::slct, ["{.ftz}.bits|int|f32|f64.s32|f32"];
    "sqrt", "square root", float::reciprocal, [".approx{.ftz}.f32", ".rnd{.ftz}.f32", ".rnd.f64"];
    "st", "store", memory::store, [
        "{.volatile}{.relaxed|release}{.scope}{.space}{.cache}{.cache}{.cache}{.cache}{.v2|v4|v8}.mem",
        ".async{.weak}{.shared::cluster}.tx{.v2|v4}.b32|b64|u32|u64|s32|s64|f32|f64",
    ];
    "stmatrix", "store of 8-by-8 matrices of 16-bit elements to shared memory", matrix::store,
        [".sync.aligned.m8n8.x1|x2|x4{.trans}{.shared_cta}.b16"];
    "sub", "difference", integer::sub, [
        ".int",
        ".sat.s32",
        ".cc.u32|s32|u64|s64",
        "{.rnd}{.ftz}{.sat}.f32",
        "{.rnd}.f64",
        "{.rn}{.ftz}{.sat}.f16|f16x2",
        "{.rn}.bf16|bf16x2",
    ];
    "subc", "difference with borrow", integer::carry, ["{.cc}.u32|s32|u64|s64"];
    "suld", "load from a surface", texture::load,
        [".b.1d|2d|3d|a1d|a2d{.ca|cg|cs|cv}{.v2|v4}.b8|b16|b32|b64{.trap|clamp|zero}"];
    "suq", "extent of a surface", texture::query, [".width|height|depth|array_size.b32"];
    "sust", "store to a surface", texture::store, [
        ".b.1d|2d|3d|a1d|a2d{.wb|cg|cs|wt}{.v2|v4}.b8|b16|b32|b64{.trap|clamp|zero}",
        ".p.1d|2d|3d|a1d|a2d{.v2|v4}.b32{.trap|clamp|zero}",
    ];
    "szext", "sign- or zero-extension from a given width", bits::szext, [".clamp|wrap.u32|s32"];
    "tanh", "hyperbolic tangent", float::transcendental, [".approx.f32|half"];
    "testp", "test of the class of a float", float::testp,
        [".finite|infinite|number|notanumber|normal|subnormal.f32|f64"];
    "tex", "fetch from a texture", texture::fetch,
        ["{.base|level|grad}.1d|2d|3d|a1d|a2d|cube.v4.u32|s32|f32.s32|f32"];
    "tld4", "one channel of the four texels around a point of a texture", texture::fetch,
        [".r|g|b|a.2d|a2d|cube.v4.u32|s32|f32.f32"];
    "trap", "ends the launch", control::trap, [""];
    "txq", "extent of a texture", texture::query, [".width|height|depth|array_size|normalized_coords.b32"];
    "vabsdiff", "absolute difference of words, halves or bytes", video_scalar::arithmetic,
        [".u32|s32.u32|s32.u32|s32{.sat}{.add|min|max}"];
    "vabsdiff2", "absolute differences of halves", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vabsdiff4", "absolute differences of bytes", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vadd", "sum of words, halves or bytes", video_scalar::arithmetic, [".u32|s32.u32|s32.u32|s32{.sat}{.add|min|max}"];
    "vadd2", "sums of halves", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vadd4", "sums of bytes", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vmad", "product of words, halves or bytes, plus an addend", video_scalar::multiply_add,
        [".u32|s32.u32|s32.u32|s32{.po}{.sat}{.shr7|shr15}"];
    "vmax", "maximum of words, halves or bytes", video_scalar::arithmetic,
        [".u32|s32.u32|s32.u32|s32{.sat}{.add|min|max}"];
    "vmax2", "maxima of halves", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vmax4", "maxima of bytes", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vmin", "minimum of words, halves or bytes", video_scalar::arithmetic,
        [".u32|s32.u32|s32.u32|s32{.sat}{.add|min|max}"];
    "vmin2", "minima of halves", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vmin4", "minima of bytes", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vote", "vote across the lanes of a mask", control::vote, ["{.sync}.all|any|uni.pred", "{.sync}.ballot.b32"];
    "vset", "comparison of words, halves or bytes", video_scalar::comparison,
        [".u32|s32.u32|s32.eq|ne|lt|le|gt|ge{.add|min|max}"];
    "vset2", "comparisons of halves", video::comparisons, [".u32|s32.u32|s32.eq|ne|lt|le|gt|ge{.add}"];
    "vset4", "comparisons of bytes", video::comparisons, [".u32|s32.u32|s32.eq|ne|lt|le|gt|ge{.add}"];
    "vshl", "left shift of a word, half or byte", video_scalar::shifts,
        [".u32|s32.u32|s32.u32{.sat}.clamp|wrap{.add|min|max}"];
    "vshr", "right shift of a word, half or byte", video_scalar::shifts,
        [".u32|s32.u32|s32.u32{.sat}.clamp|wrap{.add|min|max}"];
    "vsub", "difference of words, halves or bytes", video_scalar::arithmetic,
        [".u32|s32.u32|s32.u32|s32{.sat}{.add|min|max}"];
    "vsub2", "differences of halves", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "vsub4", "differences of bytes", video::parts, [".u32|s32.u32|s32.u32|s32{.sat}{.add}"];
    "wmma", "loads, stores and products of matrix fragments", wmma::lower, [
        ".load.a|b.sync.aligned.row|col.m16n16k16|m32n8k16|m8n32k16{.global|shared_cta}.f16|bf16|s8|u8",
        ".load.a|b.sync.aligned.row|col.m16n16k8{.global|shared_cta}.tf32",
        ".load.a|b|c.sync.aligned.row|col.m8n8k4{.global|shared_cta}.f64",
        ".load.c.sync.aligned.row|col.m16n16k16|m32n8k16|m8n32k16{.global|shared_cta}.f16|f32|s32",
        ".load.c.sync.aligned.row|col.m16n16k8{.global|shared_cta}.f32",
        ".store.d.sync.aligned.row|col.m16n16k16|m32n8k16|m8n32k16{.global|shared_cta}.f16|f32|s32",
        ".store.d.sync.aligned.row|col.m16n16k8{.global|shared_cta}.f32",
        ".store.d.sync.aligned.row|col.m8n8k4{.global|shared_cta}.f64",
        ".mma.sync.aligned.row|col.row|col.m16n16k16|m32n8k16|m8n32k16.f16.f16",
        ".mma.sync.aligned.row|col.row|col.m16n16k16|m32n8k16|m8n32k16.f32.f32",
        ".mma.sync.aligned.row|col.row|col.m16n16k16|m32n8k16|m8n32k16.f32.bf16.bf16.f32",
        ".mma.sync.aligned.row|col.row|col.m16n16k16|m32n8k16|m8n32k16{.satfinite}.s32.s8|u8.s8|u8.s32{.satfinite}",
        ".mma.sync.aligned.row|col.row|col.m16n16k8.f32.tf32.tf32.f32",
        ".mma.sync.aligned.row|col.row|col.m8n8k4{.rn}.f64.f64.f64.f64",
    ];
    "xor", "bitwise exclusive or", integer::logic, [".pred|bits"];
}

/// Decodes an instruction and appends its handlers.
pub fn lower<'a>(b: &mut Builder<'a, '_>, ins: &Instruction<'a>) -> Result<(), String> {
    let name = ins.opcode.split('.').next().unwrap_or_default();
    let Ok(at) = OPS.binary_search_by(|op| op.name.cmp(name)) else {
        return Err(format!("opcode `{}` is not simulated", ins.opcode));
    };
    let op = &OPS[at];
    // The function runs before the check against the forms, because its errors state a reason.
    (op.lower)(b, &mut Form::new(ins)).map_err(|message| format!("`{}`: {message}", ins.opcode))?;
    let modifiers: Vec<&str> = ins.opcode.split('.').skip(1).collect();
    if op.forms.iter().any(|form| takes(form, &modifiers)) {
        return Ok(());
    }
    let known: Vec<String> = op.forms.iter().map(|form| format!("`{name}{form}`")).collect();
    Err(format!("`{}` is not one of the simulated forms: {}", ins.opcode, known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(OPS.is_sorted_by(|a, b| a.name < b.name));
    }
}
