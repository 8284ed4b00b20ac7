//! Lowers a function from syntax to virtual registers. Holds its names, its operands, and the instructions so far.

use std::collections::HashMap;

use crate::exec::context::Handler;
use crate::exec::simd::HostIsa;
use crate::exec::system;
use crate::exec::vector::{binary, unary};
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP};
use crate::mir::constants::Constants;
use crate::mir::globals::Globals;
use crate::mir::names::{SELECTORS, element};
use crate::mir::source::Source;
use crate::mir::{Body, Class, Flow, Inst, Label, Opnd, Order, Reg, Work, special};
use crate::program::{CallSite, Line};
use ptx_parser::{Guard, Operand, ScalarType, Variable};

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbol {
    Register(Reg, ScalarType),
    /// A vector of registers: the first one, their number and their type.
    Vector(Reg, u8, ScalarType),
    /// Registers such as `%r0` to `%r16`: the first one, their number, the number of elements of each, and their type.
    Range(Reg, u32, u8, ScalarType),
    /// A variable, or a parameter of a device function or a call. Offset in the function's locals and size, in bytes.
    Local(u32, u32),
    /// Offset in the kernel's parameters.
    Param(u32),
    Label(Label),
    /// Offset in shared memory.
    Shared(u32),
    /// Address in global memory.
    Global(u64),
    /// Number of a device function in the module.
    Function(u32),
}

/// What the functions of a kernel share while they are lowered.
#[derive(Debug, Default)]
pub struct KernelParts<'a> {
    pub constants: Constants,
    pub calls: Vec<CallSite>,
    pub tables: Vec<Vec<i64>>,
    /// Offsets of the shared variables used so far.
    pub shared: HashMap<&'a str, u32>,
    /// End of the static shared variables so far.
    pub shared_bytes: u32,
    /// Size of the system's reserved bytes at the start of shared memory, and whether the kernel queries where they
    /// are.
    pub reserved: u32,
    pub uses_reserved: bool,
    /// Numbers of the functions that the kernel can call, ordered by their index in the kernel.
    pub functions: Vec<u32>,
    /// Whether the address of a function is taken, so that an indirect call may call any function.
    pub indirect: bool,
    /// Alignment of `extern .shared` variables, if the kernel uses one.
    pub dynamic: Option<u32>,
    /// Start of the `extern .shared` variables, which follow all static ones.
    pub dynamic_base: u32,
    /// Opcodes used so far, with their modifiers.
    pub opcodes: Vec<String>,
    pub opcode_numbers: HashMap<&'a str, u32>,
}

impl<'a> KernelParts<'a> {
    /// Returns the number of an opcode.
    pub fn opcode(&mut self, name: &'a str) -> u32 {
        let next = self.opcodes.len() as u32;
        let number = *self.opcode_numbers.entry(name).or_insert(next);
        if number == next {
            self.opcodes.push(name.to_owned());
        }
        number
    }

    /// Returns the kernel's index of the function with this number; adds the function if it is new.
    pub fn reach(&mut self, number: u32) -> usize {
        if let Some(at) = self.functions.iter().position(|&f| f == number) {
            return at;
        }
        self.functions.push(number);
        self.functions.len() - 1
    }
}

/// The function that is being lowered.
#[derive(Debug)]
pub struct Builder<'a, 'g> {
    pub globals: &'g Globals<'a>,
    pub parts: &'g mut KernelParts<'a>,
    pub isa: HostIsa,
    pub body: Body,
    pub scopes: Vec<HashMap<&'a str, Symbol>>,
    pub locals: u32,
    pub line: Line,
    /// Number of the opcode whose instructions are being emitted.
    pub opcode: u32,
    pub source: Source<'g>,
    /// Label to which every `ret` branches.
    pub end: Label,
    /// Bytes of the kernel's parameters; zero in a device function.
    pub param_bytes: u32,
    tables: HashMap<&'a str, Vec<&'a str>>,
    fixups: Vec<(Reg, Reg, ScalarType)>,
}

/// Returns the storage class of registers of a type. For 128-bit registers, use [`Builder::quad`].
pub fn class_of(ty: ScalarType) -> Result<Class, String> {
    match ty {
        ScalarType::Pred => Ok(Class::Pred),
        ScalarType::B128 => Err("a 128-bit value can only be moved, loaded, stored, exchanged and compared".to_owned()),
        ty if ty.size() == 8 => Ok(Class::Wide),
        _ => Ok(Class::Narrow),
    }
}

impl<'a, 'g> Builder<'a, 'g> {
    pub fn new(
        globals: &'g Globals<'a>,
        parts: &'g mut KernelParts<'a>,
        isa: HostIsa,
        files: &'g [(u32, String)],
    ) -> Self {
        let line = Line { file: 0, source: 0, ptx: 0 };
        Self {
            globals,
            parts,
            isa,
            body: Body::default(),
            scopes: vec![HashMap::new()],
            locals: 0,
            line,
            opcode: 0,
            source: Source::new(files),
            end: Label(0),
            param_bytes: 0,
            tables: HashMap::new(),
            fixups: Vec::new(),
        }
        .with_end()
    }

    fn with_end(mut self) -> Self {
        self.end = self.fresh_label();
        self
    }

    /// Declares a branch target table.
    pub fn define_table(&mut self, name: &'a str, labels: &[&'a str]) {
        self.tables.insert(name, labels.to_vec());
    }

    pub fn table(&self, name: &str) -> Option<Vec<&'a str>> {
        self.tables.get(name).cloned()
    }

    pub fn fresh(&mut self, class: Class) -> Reg {
        self.body.classes.push(class);
        Reg(self.body.classes.len() as u32 - 1)
    }

    pub fn fresh_label(&mut self) -> Label {
        self.body.labels.push(usize::MAX);
        Label(self.body.labels.len() as u32 - 1)
    }

    /// Places a label before the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.body.labels[label.0 as usize] = self.body.insts.len();
    }

    pub fn define(&mut self, name: &'a str, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, symbol);
        }
    }

    /// Reserves local memory for a variable.
    pub fn local(&mut self, bytes: u64, align: u32) -> Result<u32, String> {
        let at = self.locals.next_multiple_of(align.max(1));
        let end = u64::from(at) + bytes;
        if end > 512 << 10 {
            return Err(format!("{end} bytes of local memory, but a thread has only 512 KiB"));
        }
        self.locals = end as u32;
        Ok(at)
    }

    /// Returns the offset of a shared variable in this kernel; allocates the variable if it is new.
    pub fn place_shared(&mut self, v: &Variable<'a>) -> u32 {
        if let Some(&at) = self.parts.shared.get(v.name) {
            return at;
        }
        let at = if v.count == 0 {
            self.parts.dynamic = Some(self.parts.dynamic.unwrap_or(1).max(v.align));
            self.parts.dynamic_base
        } else {
            let at = self.parts.shared_bytes.next_multiple_of(v.align.max(1));
            self.parts.shared_bytes = at.saturating_add(v.size().min(u64::from(u32::MAX)) as u32);
            at
        };
        self.parts.shared.insert(v.name, at);
        at
    }

    /// Lowers a source operand of the given type.
    pub fn src(&mut self, operand: &Operand<'a>, ty: ScalarType) -> Result<Opnd, String> {
        let class = class_of(ty)?;
        let wide = class == Class::Wide;
        let bits = match *operand {
            Operand::Name(name) => return self.named(name, 0, class),
            Operand::Element(name, k) => return self.named(&element(name, k), 0, class),
            Operand::Offset(name, offset) => return self.named(name, offset, class),
            Operand::Int(v) if ty == ScalarType::F32 => u64::from((v as i64 as f32).to_bits()),
            Operand::Int(v) if ty == ScalarType::F64 => (v as i64 as f64).to_bits(),
            Operand::Int(v) => v,
            Operand::F32(v) if ty == ScalarType::F64 => f64::from(f32::from_bits(v)).to_bits(),
            Operand::F32(v) => u64::from(v),
            Operand::F64(v) if ty == ScalarType::F64 => v,
            Operand::F64(v) if ty == ScalarType::F32 => u64::from((f64::from_bits(v) as f32).to_bits()),
            Operand::Sink => 0,
            ref other => return Err(format!("expected a value of type `{ty:?}`, found {other:?}")),
        };
        if class == Class::Pred {
            return Err("expected a predicate, found a literal".to_owned());
        }
        let bits = if ty.size() == 2 { bits & 0xffff } else { bits };
        Ok(self.parts.constants.uniform(if wide { bits } else { bits & 0xffff_ffff }, wide))
    }

    fn named(&mut self, name: &str, offset: i64, class: Class) -> Result<Opnd, String> {
        if let Some(offset) = special::reserved_shared(name, self.parts.reserved) {
            self.parts.uses_reserved = true;
            return Ok(self.parts.constants.uniform(u64::from(offset), class == Class::Wide));
        }
        if let Some(special) = special::row(&mut self.parts.constants, name) {
            return Ok(self.adapt(special, Class::Narrow, class, false));
        }
        let wide = class == Class::Wide;
        let constant = |b: &mut Self, base: u64| {
            let value = base.wrapping_add(offset as u64);
            Ok(b.parts.constants.uniform(if wide { value } else { value & 0xffff_ffff }, wide))
        };
        match self.lookup(name)? {
            Symbol::Register(register, ty) => {
                let have = class_of(ty)?;
                if (have == Class::Pred) != (class == Class::Pred) {
                    return Err(format!("register `{name}` does not fit the instruction's type"));
                }
                let value = self.adapt(Opnd::Reg(register), have, class, false);
                if offset == 0 {
                    return Ok(value);
                }
                if ty.is_float() || class == Class::Pred {
                    return Err(format!("`{name}` is not an integer, and cannot have an offset"));
                }
                let (sum, by) = (Opnd::Reg(self.fresh(class)), constant(self, 0)?);
                let run = if wide {
                    binary(self.isa, |x: u64, y: u64| x.wrapping_add(y))
                } else {
                    binary(self.isa, |x: u32, y: u32| x.wrapping_add(y))
                };
                self.emit(run, [sum, value, by], 1, 0, 0);
                self.uncount_last();
                Ok(sum)
            }
            Symbol::Local(at, _) => {
                let address = Opnd::Reg(self.fresh(Class::Wide));
                let imm = i64::from(at).wrapping_add(offset);
                self.emit(system::local_address, [address; 1], 1, imm, 0);
                self.uncount_last();
                Ok(self.adapt(address, Class::Wide, class, false))
            }
            Symbol::Param(at) | Symbol::Shared(at) => constant(self, u64::from(at)),
            Symbol::Global(address) => constant(self, address),
            Symbol::Function(number) => {
                // A kernel's address is only passed to the device runtime; no instruction calls it.
                self.parts.indirect |= !self.globals.is_kernel(number);
                constant(self, FUNCTION_BASE + u64::from(number) * FUNCTION_STEP)
            }
            Symbol::Vector(..) => Err(format!("`{name}` is a vector: expected an element such as `{name}.x`")),
            Symbol::Range(..) | Symbol::Label(_) => Err(format!("`{name}` is not a value")),
        }
    }

    /// Converts between row widths if a register is wider or narrower than the instruction expects.
    pub fn adapt(&mut self, from: Opnd, have: Class, want: Class, signed: bool) -> Opnd {
        let run = match (have, want) {
            (Class::Narrow, Class::Wide) if signed => unary(self.isa, |x: u32| i64::from(x as i32) as u64),
            (Class::Narrow, Class::Wide) => unary(self.isa, |x: u32| u64::from(x)),
            (Class::Wide, Class::Narrow) => unary(self.isa, |x: u64| x as u32),
            _ => return from,
        };
        let to = Opnd::Reg(self.fresh(want));
        self.emit(run, [to, from], 1, 0, 0);
        self.uncount_last();
        to
    }

    /// Lowers a destination operand of the given type. If the register is wider, the value is sign- or zero-extended
    /// according to the type.
    pub fn dst(&mut self, operand: &Operand<'a>, ty: ScalarType) -> Result<Opnd, String> {
        let class = class_of(ty)?;
        if *operand == Operand::Sink {
            return Ok(Opnd::None);
        }
        let Some((register, have)) = self.register(operand)? else {
            return Err(format!("expected a destination register, found {operand:?}"));
        };
        let have = class_of(have)?;
        if have == class {
            return Ok(Opnd::Reg(register));
        }
        if have == Class::Pred || class == Class::Pred {
            return Err(format!("the register of {operand:?} does not fit the instruction's type"));
        }
        let temporary = self.fresh(class);
        self.fixups.push((temporary, register, ty));
        Ok(Opnd::Reg(temporary))
    }

    /// Returns a 128-bit register.
    pub fn quad(&mut self, operand: &Operand<'a>) -> Result<Opnd, String> {
        if let Operand::Name(name) = *operand
            && let Symbol::Register(register, ScalarType::B128) = self.lookup(name)?
        {
            return Ok(Opnd::Reg(register));
        }
        Err(format!("expected a register of 128 bits, found {operand:?}"))
    }

    /// Returns the storage class of the register that an operand names.
    pub fn register_class(&mut self, operand: &Operand<'a>) -> Option<Class> {
        class_of(self.register(operand).ok()??.1).ok()
    }

    /// Returns a predicate source and whether it is negated.
    pub fn pred(&mut self, operand: &Operand<'a>) -> Result<(Opnd, bool), String> {
        match *operand {
            Operand::Name(_) | Operand::Element(..) => Ok((self.src(operand, ScalarType::Pred)?, false)),
            Operand::Not(name) => Ok((self.src(&Operand::Name(name), ScalarType::Pred)?, true)),
            Operand::Int(v) => {
                // A predicate source reads only its first word.
                let bits = if v == 0 { 0 } else { u64::from(u32::MAX) };
                Ok((self.parts.constants.uniform(bits, false), false))
            }
            ref other => Err(format!("expected a predicate, found {other:?}")),
        }
    }

    /// Appends an instruction. Bit `k` of `defs` is set if the instruction writes operand `k`.
    pub fn emit<const N: usize>(
        &mut self,
        run: Handler,
        operands: [Opnd; N],
        defs: u8,
        imm: i64,
        aux: u32,
    ) -> &mut Inst {
        let mut o = [Opnd::None; 6];
        o[..N].copy_from_slice(&operands);
        let at = self.body.insts.len();
        self.body.insts.push(Inst {
            run,
            o,
            defs,
            imm,
            aux,
            flow: Flow::Next,
            guard: None,
            line: self.line,
            opcode: self.opcode,
            order: Order::Never,
            address: 0,
            polls: false,
            work: Work::Any,
            counts: 1,
        });
        &mut self.body.insts[at]
    }

    /// Excludes the last instruction from the counts, because it is part of another instruction that is counted.
    pub fn uncount_last(&mut self) {
        if let Some(last) = self.body.insts.last_mut() {
            last.counts = 0;
        }
    }

    /// Counts the last instruction on behalf of the PTX instruction that it and the uncounted instructions come from.
    pub fn count_last(&mut self) {
        if let Some(last) = self.body.insts.last_mut() {
            last.counts = 1;
        }
    }

    /// Extends results that belong in wider registers, after the instruction that computes them.
    pub fn finish(&mut self) -> Result<(), String> {
        for (from, to, ty) in std::mem::take(&mut self.fixups) {
            let (have, want) = (class_of(ty)?, self.body.classes[to.0 as usize]);
            let run = match (have, want) {
                (Class::Narrow, Class::Wide) if ty.is_signed() => unary(self.isa, |x: u32| i64::from(x as i32) as u64),
                (Class::Narrow, Class::Wide) => unary(self.isa, |x: u32| u64::from(x)),
                _ => return Err(format!("the register is narrower than the instruction's type `{ty:?}`")),
            };
            self.emit(run, [Opnd::Reg(to), Opnd::Reg(from)], 1, 0, 0);
            self.uncount_last();
        }
        Ok(())
    }

    /// Returns the register of a guard, and whether it is negated.
    pub fn guard(&mut self, guard: Guard<'a>) -> Result<(Reg, bool), String> {
        match self.src(&Operand::Name(guard.register), ScalarType::Pred)? {
            Opnd::Reg(register) => Ok((register, guard.negated)),
            _ => Err(format!("`{}` is not a predicate", guard.register)),
        }
    }

    /// Declares the registers of a `.reg` directive.
    pub fn declare_registers(&mut self, v: &Variable<'a>) -> Result<(), String> {
        let class = if v.ty == ScalarType::B128 { Class::Quad } else { class_of(v.ty)? };
        let width = match v.count {
            1 | 2 | 4 => v.count as u8,
            count => return Err(format!("`{}` has {count} elements: a vector register has 2 or 4", v.name)),
        };
        let first = Reg(self.body.classes.len() as u32);
        let count = v.range.unwrap_or(1) as usize * usize::from(width);
        self.body.classes.resize(self.body.classes.len() + count, class);
        let symbol = match v.range {
            Some(range) => Symbol::Range(first, range, width, v.ty),
            None => of_width(first, width, v.ty),
        };
        self.define(v.name, symbol);
        Ok(())
    }

    /// Resolves a name: first from the innermost scope outward, then in the module, then as an element of a vector
    /// register.
    pub fn lookup(&mut self, name: &str) -> Result<Symbol, String> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = name.split_at(name.len() - digits);
        let number: Option<u32> = number.parse().ok();
        for scope in self.scopes.iter().rev() {
            if let Some(&symbol) = scope.get(name) {
                return Ok(symbol);
            }
            if let (Some(&Symbol::Range(first, count, width, ty)), Some(number)) = (scope.get(prefix), number)
                && number < count
            {
                return Ok(of_width(Reg(first.0 + number * u32::from(width)), width, ty));
            }
        }
        if let Some(shared) = self.globals.shared.get(name) {
            return Ok(Symbol::Shared(self.place_shared(shared)));
        }
        if let Some(&address) = self.globals.addresses.get(name) {
            return Ok(Symbol::Global(address));
        }
        if let Some(&number) = self.globals.numbers.get(name) {
            return Ok(Symbol::Function(number));
        }
        if let Some((vector, &[selector])) = name.rsplit_once('.').map(|(vector, rest)| (vector, rest.as_bytes()))
            && let Some(k) = SELECTORS.iter().find_map(|names| names.iter().position(|&n| n == selector))
            && let Ok(Symbol::Vector(first, width, ty)) = self.lookup(vector)
        {
            if k < usize::from(width) {
                return Ok(Symbol::Register(Reg(first.0 + k as u32), ty));
            }
            return Err(format!("`{vector}` has {width} elements, and `{name}` is not one of them"));
        }
        Err(format!("`{name}` is not declared"))
    }

    /// Returns the number of elements of a vector register.
    pub fn width(&mut self, name: &str) -> Option<u8> {
        match self.lookup(name) {
            Ok(Symbol::Vector(_, width, _)) => Some(width),
            Err(_) if matches!(name, "%tid" | "%ntid" | "%ctaid" | "%nctaid") => Some(4),
            _ => None,
        }
    }

    /// Returns the register that an operand names; `None` if it names something else.
    pub fn register(&mut self, operand: &Operand<'a>) -> Result<Option<(Reg, ScalarType)>, String> {
        let symbol = match *operand {
            Operand::Name(name) => self.lookup(name)?,
            Operand::Element(name, k) => self.lookup(&element(name, k))?,
            _ => return Ok(None),
        };
        Ok(match symbol {
            Symbol::Register(register, ty) => Some((register, ty)),
            _ => None,
        })
    }
}

const fn of_width(first: Reg, width: u8, ty: ScalarType) -> Symbol {
    if width == 1 { Symbol::Register(first, ty) } else { Symbol::Vector(first, width, ty) }
}
