//! Holds what the functions of a module share: the addresses of its variables and the numbers of its functions.

use std::collections::HashMap;

use crate::error::SimError;
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP, Memory, Use};
use crate::mir::names::source_name;
use ptx_parser::{Function, Initializer, Module, ScalarType, Space, Variable};

/// The names of a module whose variables are in memory.
#[derive(Debug)]
pub struct Globals<'a> {
    pub addresses: HashMap<&'a str, u64>,
    pub shared: HashMap<&'a str, Variable<'a>>,
    pub numbers: HashMap<&'a str, u32>,
    /// Definitions by number; `None` for a function that is only declared.
    pub definitions: Vec<Option<&'a Function<'a>>>,
}

impl<'a> Globals<'a> {
    /// Allocates and initialises the variables of a module.
    pub fn new(module: &'a Module<'a>, memory: &Memory) -> Result<Self, SimError> {
        let mut globals = Self {
            addresses: HashMap::new(),
            shared: HashMap::new(),
            numbers: HashMap::new(),
            definitions: Vec::new(),
        };
        for function in &module.functions {
            let next = globals.definitions.len() as u32;
            let number = *globals.numbers.entry(function.name).or_insert(next);
            if number == next {
                globals.definitions.push(None);
            }
            if function.body.is_some() {
                globals.definitions[number as usize] = Some(function);
            }
        }
        let mut ready = module.variables.iter().try_for_each(|v| globals.place(v, memory));
        ready = ready.and_then(|()| module.variables.iter().try_for_each(|v| globals.initialise(v, memory)));
        if ready.is_err() {
            globals.free(memory);
        }
        ready.map(|()| globals)
    }

    /// Frees the variables.
    pub fn free(&self, memory: &Memory) {
        for &address in self.addresses.values() {
            memory.free(address);
        }
    }

    /// Whether a function has a body.
    pub fn is_defined(&self, number: u32) -> bool {
        self.definitions.get(number as usize).is_some_and(Option::is_some)
    }

    /// Whether a function is a kernel of the module.
    pub fn is_kernel(&self, number: u32) -> bool {
        self.definitions.get(number as usize).copied().flatten().is_some_and(|f| f.entry)
    }

    fn place(&mut self, v: &Variable<'a>, memory: &Memory) -> Result<(), SimError> {
        match v.space {
            Space::Shared => {
                self.shared.insert(v.name, v.clone());
            }
            Space::Global | Space::Const if !self.addresses.contains_key(v.name) => {
                let (name, used) = match (source_name(v.name), v.space) {
                    (Some(name), Space::Const) => (format!("constant `{name}`"), Use::Constant),
                    (Some(name), _) => (format!("variable `{name}`"), Use::Data),
                    (None, Space::Const) => ("a constant of the compiler".to_owned(), Use::InternalConstant),
                    (None, _) => ("a variable of the compiler".to_owned(), Use::Internal),
                };
                let address = memory
                    .alloc(v.size(), &name, used)
                    .ok_or_else(|| SimError::OutOfMemory { needed: v.size(), available: memory.free_bytes() })?;
                self.addresses.insert(v.name, address);
            }
            _ => {}
        }
        Ok(())
    }

    fn initialise(&self, v: &Variable<'_>, memory: &Memory) -> Result<(), SimError> {
        let Some(&address) = self.addresses.get(v.name) else { return Ok(()) };
        memory.zero(address, v.size())?;
        let size = u64::from(v.ty.size());
        for (init, at) in v.init.iter().zip((0..v.size()).step_by(size as usize)) {
            let value = self.value(v, init)?;
            memory.write(address + at, &value.to_le_bytes()[..size.min(8) as usize])?;
        }
        Ok(())
    }

    fn value(&self, v: &Variable<'_>, init: &Initializer<'_>) -> Result<u64, SimError> {
        Ok(match *init {
            Initializer::Int(bits) => bits,
            Initializer::Float(x) if v.ty == ScalarType::F32 => u64::from((x as f32).to_bits()),
            Initializer::Float(x) => x.to_bits(),
            Initializer::Address { symbol, offset, .. } => {
                let base = self
                    .addresses
                    .get(symbol)
                    .copied()
                    .or_else(|| self.numbers.get(symbol).map(|&n| FUNCTION_BASE + u64::from(n) * FUNCTION_STEP));
                let base = base.ok_or_else(|| SimError::Load {
                    kernel: v.name.to_owned(),
                    place: format!("line {} of the PTX", v.line),
                    message: format!("the initial value names `{symbol}`, which is not declared"),
                })?;
                base.wrapping_add(offset as u64)
            }
        })
    }
}
