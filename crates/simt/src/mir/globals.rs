//! What the functions of a module share: the addresses of variables and the numbers of functions.

use std::collections::HashMap;

use crate::error::SimError;
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP, Memory, Use};
use crate::mir::names::source_name;
use ptx_parser::{Function, Initializer, Module, ScalarType, Space, Statement, Variable};

/// Names of a module, whose variables are in memory.
#[derive(Debug)]
pub struct Globals<'a> {
    pub addresses: HashMap<&'a str, u64>,
    /// Addresses of variables that are declared inside functions, by declaration.
    inner: HashMap<usize, u64>,
    pub shared: HashMap<&'a str, Variable<'a>>,
    pub numbers: HashMap<&'a str, u32>,
    /// Definitions by number; `None` for a function that is only declared.
    pub definitions: Vec<Option<&'a Function<'a>>>,
    /// Number in the target's name, e.g. 90 for `sm_90a`.
    pub target: Option<u32>,
    /// Version of the PTX ISA; zero if the module does not state it.
    version: (u32, u32),
}

impl<'a> Globals<'a> {
    /// Allocates and initialises the variables of a module.
    pub fn new(module: &'a Module<'a>, memory: &Memory) -> Result<Self, SimError> {
        let mut globals = Self {
            addresses: HashMap::new(),
            inner: HashMap::new(),
            shared: HashMap::new(),
            numbers: HashMap::new(),
            definitions: Vec::new(),
            target: module.target.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().ok(),
            version: module.version,
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
        let mut inner = Vec::new();
        module.functions.iter().for_each(|f| declared(f.body.as_deref().unwrap_or_default(), &mut inner));
        let mut ready = module.variables.iter().try_for_each(|v| globals.place(v, memory));
        ready = ready.and_then(|()| inner.iter().try_for_each(|v| globals.place_inner(v, memory)));
        ready = ready.and_then(|()| {
            let of = |v: &Variable<'a>| globals.addresses.get(v.name).copied();
            module.variables.iter().try_for_each(|v| globals.initialise(v, of(v), memory))?;
            inner.iter().try_for_each(|v| globals.initialise(v, globals.inner(v), memory))
        });
        if ready.is_err() {
            globals.free(memory);
        }
        ready.map(|()| globals)
    }

    /// Frees the variables.
    pub fn free(&self, memory: &Memory) {
        self.placed().for_each(|address| {
            memory.free(address);
        });
    }

    /// Returns the addresses of all variables.
    pub fn placed(&self) -> impl Iterator<Item = u64> + '_ {
        self.addresses.values().chain(self.inner.values()).copied()
    }

    /// Returns the address of a variable that is declared inside a function.
    pub fn inner(&self, v: &Variable<'_>) -> Option<u64> {
        self.inner.get(&place(v)).copied()
    }

    /// Whether `shfl` and `vote` may omit `.sync`. PTX ISA 6.4 disallows this for `sm_70` and later targets.
    pub fn takes_unsynchronised(&self) -> bool {
        matches!(self.target, Some(..70)) || ((1, 0)..(6, 4)).contains(&self.version)
    }

    pub fn is_defined(&self, number: u32) -> bool {
        self.definitions.get(number as usize).is_some_and(Option::is_some)
    }

    pub fn is_kernel(&self, number: u32) -> bool {
        self.definitions.get(number as usize).copied().flatten().is_some_and(|f| f.entry)
    }

    fn place(&mut self, v: &Variable<'a>, memory: &Memory) -> Result<(), SimError> {
        match v.space {
            Space::Shared => {
                self.shared.insert(v.name, v.clone());
            }
            Space::Global | Space::Const if !self.addresses.contains_key(v.name) => {
                self.addresses.insert(v.name, allocate(v, memory)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn place_inner(&mut self, v: &Variable<'a>, memory: &Memory) -> Result<(), SimError> {
        self.inner.insert(place(v), allocate(v, memory)?);
        Ok(())
    }

    fn initialise(&self, v: &Variable<'_>, address: Option<u64>, memory: &Memory) -> Result<(), SimError> {
        let Some(address) = address else { return Ok(()) };
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
                    message: format!("the initial value refers to `{symbol}`, which is not declared"),
                })?;
                base.wrapping_add(offset as u64)
            }
        })
    }
}

/// Identifies a declaration inside a function, where two scopes may declare the same name.
fn place(v: &Variable<'_>) -> usize {
    std::ptr::from_ref(v).addr()
}

/// Collects the variables in global and constant memory that are declared in statements.
fn declared<'m, 'a>(statements: &'m [Statement<'a>], into: &mut Vec<&'m Variable<'a>>) {
    for statement in statements {
        match statement {
            Statement::Variable(v) if matches!(v.space, Space::Global | Space::Const) => into.push(v),
            Statement::Block(inner) => declared(inner, into),
            _ => {}
        }
    }
}

fn allocate(v: &Variable<'_>, memory: &Memory) -> Result<u64, SimError> {
    let (name, used) = match (source_name(v.name), v.space) {
        (Some(name), Space::Const) => (format!("constant `{name}`"), Use::Constant),
        (Some(name), _) => (format!("variable `{name}`"), Use::Data),
        (None, Space::Const) => ("a constant of the compiler".to_owned(), Use::InternalConstant),
        (None, _) => ("a variable of the compiler".to_owned(), Use::Internal),
    };
    let exhausted = || SimError::OutOfMemory { needed: v.size(), available: memory.free_bytes() };
    memory.alloc(v.size(), &name, used).ok_or_else(exhausted)
}
