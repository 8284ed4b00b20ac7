//! The operations: one table from which the decoder and the documentation derive.
//!
//! An entry names an opcode, the forms it takes, what it does, and the function that picks handlers for it. A form
//! that is not decoded completely, down to its last modifier, is refused; nothing is silently ignored.

#![expect(clippy::inline_always, reason = "a lane's work must become part of the loop of each instruction set")]
#![expect(clippy::float_cmp, reason = "comparing floats bit for bit is what a GPU does")]
#![expect(clippy::many_single_char_names, reason = "builder, form, destination and sources, in every entry alike")]
#![expect(clippy::cast_lossless, reason = "one macro converts between all types, widening and narrowing ones")]
#![expect(clippy::neg_cmp_op_on_partial_ord, reason = "unordered comparisons are true for NaN")]
#![expect(clippy::double_comparisons, reason = "an ordered `ne` is false for NaN, which `!=` is not")]

mod asynchronous;
mod atomic;
mod bits;
mod cluster;
mod control;
mod convert;
mod division;
mod float;
mod half;
mod integer;
mod memory;
mod moves;
mod sending;
mod short;
pub mod special;
mod video;

use super::lower::builder::Builder;
use ptx_parser::{Instruction, Operand, ScalarType};

/// One operation.
#[derive(Debug)]
pub struct Op {
    /// The opcode without modifiers.
    pub name: &'static str,
    /// Modifiers it takes, in PTX's notation.
    pub forms: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    lower: Lower,
}

type Lower = for<'a, 'g, 'i> fn(&mut Builder<'a, 'g>, &mut Form<'a, 'i>) -> Result<(), String>;

/// An instruction whose modifiers are being taken apart.
#[derive(Debug)]
pub struct Form<'a, 'i> {
    pub ins: &'i Instruction<'a>,
    modifiers: Vec<&'a str>,
}

impl<'a, 'i> Form<'a, 'i> {
    pub fn new(ins: &'i Instruction<'a>) -> Self {
        Self { ins, modifiers: ins.opcode.split('.').skip(1).collect() }
    }

    /// Takes a modifier; whether it was there.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.modifiers.iter().position(|&m| m == name);
        if let Some(at) = found {
            self.modifiers.remove(at);
        }
        found.is_some()
    }

    /// Takes the first modifier that is one of `names`.
    pub fn one_of(&mut self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.flag(name))
    }

    /// Takes every modifier that is one of `names`.
    pub fn ignore(&mut self, names: &[&'static str]) {
        for name in names {
            while self.flag(name) {}
        }
    }

    /// Takes all types, in order.
    pub fn types(&mut self) -> Vec<ScalarType> {
        let mut types = Vec::new();
        self.modifiers.retain(|m| match ScalarType::from_name(m) {
            Some(ty) => {
                types.push(ty);
                false
            }
            None => true,
        });
        types
    }

    /// Takes the only type.
    pub fn ty(&mut self) -> Result<ScalarType, String> {
        match self.types()[..] {
            [ty] => Ok(ty),
            _ => Err("one type is expected".to_owned()),
        }
    }

    /// Refuses modifiers that were not taken.
    pub fn done(&self) -> Result<(), String> {
        match self.modifiers.first() {
            None => Ok(()),
            Some(unknown) => Err(format!("modifier `.{unknown}` is not simulated here")),
        }
    }

    pub fn operand(&self, at: usize) -> Result<&'i Operand<'a>, String> {
        self.ins.operands.get(at).ok_or_else(|| format!("operand {} is missing", at + 1))
    }

    pub fn count(&self) -> usize {
        self.ins.operands.len()
    }
}

/// Why a type is refused.
fn no_type<T>(ty: ScalarType) -> Result<T, String> {
    Err(format!("type `{ty:?}` is not simulated here"))
}

macro_rules! ops {
    ($($name:literal, $forms:literal, $about:literal, $lower:path;)*) => {
        /// Every operation, by name.
        pub const OPS: &[Op] = &[$(Op { name: $name, forms: $forms, about: $about, lower: $lower }),*];
    };
}

ops! {
    "abs", "{.ftz}.f32 .f64 .f16{x2} .bf16{x2} .s16 .s32 .s64", "absolute value", integer::abs;
    "activemask", ".b32", "mask of the active lanes", control::activemask;
    "add", "{.rnd}{.ftz}{.sat}.type, .cc.u32 .cc.u64", "sum", integer::add;
    "addc", "{.cc}.u32 .u64", "sum with carry", integer::carry;
    "and", ".pred .b16 .b32 .b64", "bitwise and", integer::logic;
    "applypriority", "{.global}.L2::evict_normal", "no effect here", control::nop;
    "atom", "{.sem}{.scope}{.space}.op{.vec}.type", "read, modify, write, give the old value", atomic::atomic;
    "bar", ".sync .arrive .red.op .warp.sync", "barrier of the block or of a warp", control::barrier;
    "barrier", "{.cta}.sync .arrive .red{.aligned}, .cluster.arrive .wait", "barrier of the block or of the cluster", control::barrier;
    "bfe", ".u32 .s32 .u64 .s64", "bit-field extract", bits::bfe;
    "bfi", ".b32 .b64", "bit-field insert", bits::bfi;
    "bfind", "{.shiftamt}.u32 .s32 .u64 .s64", "highest bit that is not the sign", bits::bfind;
    "bmsk", ".clamp .wrap .b32", "mask of so many bits", bits::bmsk;
    "bra", "{.uni}", "branch", control::bra;
    "brev", ".b32 .b64", "bits in reverse", bits::bits;
    "brkpt", "", "breakpoint: ends the launch", control::trap;
    "brx", ".idx{.uni}", "branch through a table", control::brx;
    "call", "{.uni}", "call of a function, known or by address", control::call;
    "clz", ".b32 .b64", "leading zeros", bits::bits;
    "cnot", ".b16 .b32 .b64", "one where zero", bits::bits;
    "copysign", ".f32 .f64", "magnitude of one, sign of the other", float::copysign;
    "cos", ".approx{.ftz}.f32", "cosine", float::transcendental;
    "cp", ".async{.ca .cg .bulk{.multicast::cluster}}, .commit_group .wait_group .wait_all .mbarrier.arrive, .reduce.async.bulk.op.type", "asynchronous copy or reduction", asynchronous::copy;
    "createpolicy", ".fractional .range .cvt", "policy of the cache: no effect here", memory::policy;
    "cvt", "{.rnd}{.ftz}{.sat}{.relu}{.satfinite}.to.from, .pack.sat", "conversion", convert::cvt;
    "cvta", "{.to}.space.u64 .u32", "address between a space and generic", memory::cvta;
    "discard", "{.global}.L2", "no effect here", control::nop;
    "div", "{.rnd}{.approx}{.full}{.ftz}.type", "quotient", division::div;
    "dp2a", ".lo .hi .u32 .s32", "dot product of two halves and bytes", bits::dot;
    "dp4a", ".u32 .s32", "dot product of four bytes", bits::dot;
    "elect", ".sync", "the lane that is chosen among those of a mask", control::elect;
    "ex2", ".approx{.ftz}.f32 .f16{x2} .bf16{x2}", "power of two", float::transcendental;
    "exit", "", "end of the thread", control::exit;
    "fence", "{.sem}{.scope}, .proxy", "order of memory", control::fence;
    "fma", ".rnd{.ftz}{.sat}{.relu}.type", "fused multiply-add", float::fma;
    "fns", ".b32", "position of the n-th set bit", bits::fns;
    "getctarank", "{.shared::cluster}.u32 .u64", "block of the cluster that an address leads to", cluster::rank;
    "griddepcontrol", ".launch_dependents .wait", "no effect here: launches do not overlap", control::nop;
    "isspacep", ".global .shared .local .const .param", "whether an address lies in a space", memory::isspacep;
    "ld", "{.volatile .relaxed .acquire}{.scope}{.space}{.cache}{.vec}.type", "load", memory::load;
    "ldu", "{.global}{.vec}.type", "load of what does not change", memory::load;
    "lg2", ".approx{.ftz}.f32", "binary logarithm", float::transcendental;
    "lop3", "{.or .and}.b32", "any logic function of three", bits::lop3;
    "mad", ".lo .hi .wide{.sat}.type, .cc, .rnd.f32 .f64", "multiply and add", integer::mad;
    "mad24", ".lo .hi{.sat}.u32 .s32", "24-bit multiply and add", integer::mad24;
    "madc", ".lo .hi{.cc}.u32 .u64", "multiply and add with carry", integer::carry;
    "mapa", "{.shared::cluster}.u32 .u64", "address in another block of the cluster", cluster::map;
    "match", ".any.sync .all.sync .b32 .b64", "lanes with equal values", control::matching;
    "max", "{.ftz}{.NaN}{.xorsign.abs}{.relu}.type", "larger", integer::minmax;
    "mbarrier", ".init .inval .arrive .arrive_drop{.expect_tx} .expect_tx .complete_tx .pending_count .test_wait .try_wait", "barrier object in shared memory", asynchronous::barrier_object;
    "membar", ".cta .gl .sys", "order of memory", control::fence;
    "min", "{.ftz}{.NaN}{.xorsign.abs}{.relu}.type", "smaller", integer::minmax;
    "mov", ".type", "copy, pack, unpack, address of", moves::mov;
    "mul", ".lo .hi .wide .type, {.rnd}{.ftz}{.sat}.f32 .f64", "product", integer::mul;
    "mul24", ".lo .hi .u32 .s32", "24-bit product", integer::mul24;
    "nanosleep", ".u32", "lets other warps run", control::nanosleep;
    "neg", "{.ftz}.type", "negation", integer::neg;
    "not", ".pred .b16 .b32 .b64", "bitwise complement", integer::not;
    "or", ".pred .b16 .b32 .b64", "bitwise or", integer::logic;
    "pmevent", "", "no effect here", control::nop;
    "popc", ".b32 .b64", "number of set bits", bits::bits;
    "prefetch", "{.space}.L1 .L2", "no effect here", control::nop;
    "prefetchu", ".L1", "no effect here", control::nop;
    "prmt", ".b32{.f4e .b4e .rc8 .ecl .ecr .rc16}", "bytes of a pair, permuted", bits::prmt;
    "rcp", ".approx .rnd{.ftz}.f32 .f64", "reciprocal", float::reciprocal;
    "red", "{.sem}{.scope}{.space}.op{.vec}.type, .async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.op.type", "read, modify, write", atomic::atomic;
    "redux", ".sync.op.type", "reduction over lanes", control::redux;
    "rem", ".type", "remainder", division::rem;
    "ret", "{.uni}", "return", control::ret;
    "rsqrt", ".approx{.ftz}.f32 .f64", "reciprocal square root", float::reciprocal;
    "sad", ".type", "sum of absolute differences", integer::sad;
    "selp", ".type", "choice by a predicate", integer::selp;
    "set", ".cmp{.bool}{.ftz}.to.from", "comparison to a number", float::set;
    "setp", ".cmp{.bool}{.ftz}.type", "comparison to a predicate", float::setp;
    "shf", ".l .r .wrap .clamp .b32", "funnel shift", bits::funnel;
    "shfl", ".sync.up .down .bfly .idx .b32", "value of another lane", control::shuffle;
    "shl", ".b16 .b32 .b64", "left shift", bits::shift;
    "shr", ".type", "right shift", bits::shift;
    "sin", ".approx{.ftz}.f32", "sine", float::transcendental;
    "slct", "{.ftz}.type.s32 .f32", "choice by a sign", float::slct;
    "sqrt", ".approx .rnd{.ftz}.f32 .f64", "square root", float::reciprocal;
    "st", "{.volatile .relaxed .release}{.scope}{.space}{.cache}{.vec}.type, .async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type", "store", memory::store;
    "sub", "{.rnd}{.ftz}{.sat}.type, .cc", "difference", integer::sub;
    "subc", "{.cc}.u32 .u64", "difference with borrow", integer::carry;
    "szext", ".clamp .wrap .u32 .s32", "extension from so many bits", bits::szext;
    "tanh", ".approx.f32 .f16{x2} .bf16{x2}", "hyperbolic tangent", float::transcendental;
    "testp", ".finite .infinite .number .notanumber .normal .subnormal", "class of a float", float::testp;
    "trap", "", "ends the launch", control::trap;
    "vabsdiff2", ".d.a.b{.sat}{.add}", "absolute differences of halves", video::parts;
    "vabsdiff4", ".d.a.b{.sat}{.add}", "absolute differences of bytes", video::parts;
    "vadd2", ".d.a.b{.sat}{.add}", "sums of halves", video::parts;
    "vadd4", ".d.a.b{.sat}{.add}", "sums of bytes", video::parts;
    "vmax2", ".d.a.b{.sat}{.add}", "larger ones of halves", video::parts;
    "vmax4", ".d.a.b{.sat}{.add}", "larger ones of bytes", video::parts;
    "vmin2", ".d.a.b{.sat}{.add}", "smaller ones of halves", video::parts;
    "vmin4", ".d.a.b{.sat}{.add}", "smaller ones of bytes", video::parts;
    "vote", ".sync.all .any .uni .pred .ballot.b32", "votes of lanes", control::vote;
    "vsub2", ".d.a.b{.sat}{.add}", "differences of halves", video::parts;
    "vsub4", ".d.a.b{.sat}{.add}", "differences of bytes", video::parts;
    "xor", ".pred .b16 .b32 .b64", "bitwise exclusive or", integer::logic;
}

/// Decodes an instruction and appends its handlers.
pub fn lower<'a>(b: &mut Builder<'a, '_>, ins: &Instruction<'a>) -> Result<(), String> {
    let name = ins.opcode.split('.').next().unwrap_or_default();
    let Ok(at) = OPS.binary_search_by(|op| op.name.cmp(name)) else {
        return Err(format!("opcode `{}` is not simulated", ins.opcode));
    };
    let mut form = Form::new(ins);
    (OPS[at].lower)(b, &mut form).map_err(|message| format!("`{}`: {message}", ins.opcode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(OPS.is_sorted_by(|a, b| a.name < b.name));
    }
}
