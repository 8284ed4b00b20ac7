//! How the undefined bits of an instruction's results follow from its operands', by opcode.

use crate::exec::context::Context;
use crate::exec::undefined::shadow::Info;
use crate::program::Width;
use crate::program::aux::Access;
use crate::program::ins::{Ins, Slot};

/// How the undefined bits of an instruction's results follow from its operands'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A lane's whole result is undefined if any bit of its operands is.
    Any,
    /// Like `Any`, for each 32-bit half.
    Halves,
    /// A bit is undefined if that bit of any operand is.
    Union,
    /// A bit is undefined unless a defined operand bit decides it.
    And,
    Or,
    /// Predicate logic.
    Predicates,
    /// The instruction moves bits. Operands at this index and above determine where.
    Move(usize),
    /// The results of all lanes are undefined if any bit of any lane's operands is.
    Warp,
    /// The bits of lanes with an undefined predicate are undefined.
    Ballot,
    /// Matrix product: rows and columns that contain undefined elements are undefined.
    Product,
    Load,
    Store,
    /// The instruction needs its operands, so none may be undefined.
    Use(&'static str),
}

pub fn rule(cx: &Context<'_>, i: &Ins, info: &Info) -> Rule {
    let opcode = info.opcode(cx);
    let (name, modifiers) = opcode.split_once('.').unwrap_or((opcode, ""));
    let has = |wanted: &str| modifiers.split('.').any(|modifier| modifier == wanted);
    let is_access = i.access().elements() > 0;
    match name {
        "ld" | "ldu" | "ldmatrix" if is_access && (i.o[4] != Slot::NONE || i.has(Access::ABSOLUTE)) => Rule::Load,
        "st" | "stmatrix" if info.defs == 0 && is_access && !has("async") => Rule::Store,
        "bra" | "brx" => Rule::Use("a branch"),
        "call" if info.defs == 0 => Rule::Use("a call"),
        "bar" | "barrier" => Rule::Use("a barrier"),
        "atom" | "red" => Rule::Use("an atomic"),
        "cp" | "mbarrier" => Rule::Use("an asynchronous access"),
        "st" | "stmatrix" if info.defs == 0 => Rule::Use("an asynchronous access"),
        "tex" | "tld4" | "suld" | "sust" | "suq" | "txq" => Rule::Use("a texture access"),
        "wmma" if is_access => Rule::Use("a matrix access"),
        "mma" | "wmma" if info.widths[0] == Width::Quad && info.widths[3] == Width::Quad => Rule::Product,
        "ld" | "ldu" | "ldmatrix" | "st" | "stmatrix" | "movmatrix" | "mov" | "mma" => movement(info),
        // Conversions that change the width of one operand.
        _ if !info.whole && info.defs == 1 && i.o[1] != Slot::NONE && i.o[2] == Slot::NONE => movement(info),
        "shfl" | "selp" | "shf" | "prmt" | "bfi" => Rule::Move(3),
        "shl" | "shr" | "bfe" | "szext" => Rule::Move(2),
        "cvt" if is_between_integers(modifiers) => Rule::Move(2),
        "not" | "and" | "or" | "xor" if info.widths[0] == Width::Pred => Rule::Predicates,
        "and" => Rule::And,
        "or" => Rule::Or,
        "xor" | "not" | "lop3" => Rule::Union,
        "vote" if has("ballot") => Rule::Ballot,
        "vote" | "match" | "redux" => Rule::Warp,
        "set" | "setp" | "testp" | "cvt" => Rule::Any,
        _ if modifiers.contains("16x2") => Rule::Halves,
        _ => Rule::Any,
    }
}

/// Returns the rule of an instruction that packs its operands or unpacks its first one.
fn movement(info: &Info) -> Rule {
    let first = info.operands(false).next().unwrap_or(1);
    if info.widths[0] == Width::Pred || info.widths[first] == Width::Pred {
        return Rule::Predicates;
    }
    let narrows = info.widths[0].words() < info.widths[first].words();
    let extracts = info.operands(false).count() == 1 && info.widths[0] == info.widths[first];
    Rule::Move(if narrows || extracts { first + 1 } else { 6 })
}

/// Whether a conversion only truncates or extends integers.
fn is_between_integers(modifiers: &str) -> bool {
    let is_integer =
        |modifier: &str| modifier.strip_prefix(['u', 's']).is_some_and(|bits| matches!(bits, "8" | "16" | "32" | "64"));
    modifiers.split('.').all(is_integer)
}
