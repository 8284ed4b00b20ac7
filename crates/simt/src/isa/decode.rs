//! Decodes an instruction's modifiers and operands.

use crate::exec::context::Handler;
use crate::exec::vector;
use crate::isa::forms::SCOPES;
use crate::mir::builder::Builder;
use crate::program::aux::Access;
use ptx_parser::{Instruction, Operand, ScalarType};

/// Success, or the reason why the instruction is refused.
pub type Done = Result<(), String>;

/// An instruction, with the modifiers that have not been consumed yet.
#[derive(Debug)]
pub struct Form<'a, 'i> {
    pub ins: &'i Instruction<'a>,
    modifiers: Vec<&'i str>,
}

impl<'a, 'i> Form<'a, 'i> {
    pub fn new(ins: &'i Instruction<'a>) -> Self {
        Self { ins, modifiers: ins.opcode.split('.').skip(1).collect() }
    }

    /// Consumes a modifier; returns whether it was present.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.modifiers.iter().position(|&m| m == name);
        if let Some(at) = found {
            self.modifiers.remove(at);
        }
        found.is_some()
    }

    /// Consumes the first modifier that is in `names`.
    pub fn one_of(&mut self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.flag(name))
    }

    /// Consumes and ignores all modifiers in `names`.
    pub fn ignore(&mut self, names: &[&'static str]) {
        for name in names {
            while self.flag(name) {}
        }
    }

    /// Consumes all types, in order.
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

    /// Consumes the only type.
    pub fn ty(&mut self) -> Result<ScalarType, String> {
        match self.types()[..] {
            [ty] => Ok(ty),
            _ => Err("expected one type".to_owned()),
        }
    }

    /// Refuses the instruction if modifiers are left.
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

pub fn no_type<T>(ty: ScalarType) -> Result<T, String> {
    Err(format!("type `{ty:?}` is not simulated here"))
}

/// Returns the elements of a vector operand. A scalar operand counts as a vector of one element.
pub fn elements<'a, 'i>(operand: &'i Operand<'a>, count: usize, what: &str) -> Result<&'i [Operand<'a>], String> {
    let elements = match operand {
        Operand::Vector(elements) => elements,
        one => std::slice::from_ref(one),
    };
    if elements.len() == count {
        return Ok(elements);
    }
    Err(format!("expected {count} {what}, found {}", elements.len()))
}

/// Lowers `op d, a, …`, whose operands have the given types.
pub fn apply<'a, const N: usize>(
    b: &mut Builder<'a, '_>,
    f: &Form<'a, '_>,
    types: [ScalarType; N],
    run: Handler,
) -> Done {
    let mut operands = [b.dst(f.operand(0)?, types[0])?; N];
    for at in 1..N {
        operands[at] = b.src(f.operand(at)?, types[at])?;
    }
    b.emit(run, operands, 1, 0, 0);
    f.done()
}

/// Returns the handler of `selp`.
pub fn selector(b: &Builder<'_, '_>, wide: bool) -> Handler {
    if wide { vector::select(b.isa, |x: u64| x) } else { vector::select(b.isa, |x: u32| x) }
}

/// Consumes the scope of a strong access.
pub fn scope(f: &mut Form<'_, '_>) -> Access {
    match f.one_of(&SCOPES) {
        Some("cta") => Access::BLOCK_SCOPE,
        Some("cluster") => Access::CLUSTER_SCOPE,
        _ => Access::empty(),
    }
}
