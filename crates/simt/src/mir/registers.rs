//! Register names: scalars, ranges such as `%r<17>`, and vectors with their elements.

use crate::mir::builder::{Builder, Symbol, class_of};
use crate::mir::names::{SELECTORS, element};
use crate::mir::{Class, Reg};
use ptx_parser::{Operand, ScalarType, Variable};

impl<'a> Builder<'a, '_> {
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
