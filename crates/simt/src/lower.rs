//! Compiles PTX syntax to bytecode, in passes:
//!
//! 1. [`globals`](super::mir::globals): variables get their addresses, functions their numbers;
//! 2. [`builder`](super::mir::builder): names become registers, labels and addresses, and each instruction picks its
//!    handlers in the [operation table](isa);
//! 3. [`flow`]: the control-flow graph and its immediate post-dominators, where diverged lanes reconverge;
//! 4. [`fixed`]: copies of constants, parameters and indices are removed;
//! 5. [`order`]: the accesses through which blocks communicate are put in commit order;
//! 6. [`place`]: registers are allocated to rows of the frame;
//! 7. [`emit`]: reconvergence points, guards and distances become flat code, which [`listing`] prints.
//!
//! A kernel is lowered together with all functions that it can call, so that it has its own layout of shared memory.

mod emit;
mod fixed;
mod flow;
pub mod listing;
mod order;
mod place;

use std::collections::HashMap;

use crate::error::SimError;
use crate::exec::control;
use crate::exec::simd::HostIsa;
use crate::isa;
use crate::isa::call::{self, Signature};
use crate::mir::builder::{Builder, KernelParts, Symbol};
use crate::mir::globals::Globals;
use crate::mir::{Body, Flow, Label, Opnd};
use crate::program::aux::Branch;
use crate::program::{Code, Kernel, Line, Param, source_place};
use ptx_parser::{Function, Instruction, Module, Space, Statement, Variable};

/// Lowers a kernel and all functions that it can call. The first `reserved` bytes of a block's shared memory are
/// reserved by the system.
pub fn kernel<'a>(
    module: &'a Module<'a>,
    globals: &Globals<'a>,
    entry: &'a Function<'a>,
    isa: HostIsa,
    reserved: u32,
) -> Result<Kernel, SimError> {
    let files: Vec<(u32, String)> = module.files.iter().map(|f| (f.index, f.path.to_owned())).collect();
    let number = globals.numbers[entry.name];
    let mut dynamic_base = 0;
    loop {
        let mut parts = KernelParts { reserved, shared_bytes: reserved, dynamic_base, ..KernelParts::default() };
        parts.reach(number);
        let mut functions = Vec::new();
        while functions.len() < parts.functions.len() {
            let next = parts.functions[functions.len()];
            if let Some(Some(function)) = globals.definitions.get(next as usize) {
                functions.push(lower_function(globals, &mut parts, function, isa, entry.name, &files)?);
            }
            if parts.indirect {
                for (at, definition) in globals.definitions.iter().enumerate() {
                    if definition.is_some_and(|f| !f.entry) {
                        parts.reach(at as u32);
                    }
                }
            }
        }
        // Dynamic shared memory follows the static variables, and only now are all of these known.
        if let Some(align) = parts.dynamic
            && parts.shared_bytes.next_multiple_of(align) != dynamic_base
        {
            dynamic_base = parts.shared_bytes.next_multiple_of(align);
            continue;
        }
        order::run(&mut functions);
        let functions = functions.into_iter().map(|function| function.emit(&mut parts.tables)).collect();
        return Ok(assemble(globals, entry, parts, functions, files, dynamic_base));
    }
}

fn assemble<'a>(
    globals: &Globals<'a>,
    entry: &Function<'a>,
    parts: KernelParts<'a>,
    functions: Vec<Code>,
    files: Vec<(u32, String)>,
    dynamic_base: u32,
) -> Kernel {
    let mut by_number = vec![None; globals.definitions.len()];
    for (at, &number) in parts.functions.iter().enumerate() {
        by_number[number as usize] = Some(at);
    }
    let (params, param_bytes) = kernel_params(entry);
    let reads_unwritten = functions.iter().any(|f| f.reads_unwritten);
    let max_threads = entry
        .directives
        .iter()
        .find(|(name, _)| *name == "maxntid" || *name == "reqntid")
        .map(|(_, n)| n.iter().product());
    Kernel {
        name: entry.name.to_owned(),
        number: globals.numbers[entry.name],
        functions,
        by_number,
        calls: parts.calls,
        tables: parts.tables,
        opcodes: parts.opcodes,
        constants: parts.constants.rows,
        param_rows: parts.constants.params,
        reads_unwritten,
        params,
        param_bytes,
        shared_static: parts.shared_bytes.max(dynamic_base) - parts.reserved,
        shared_base: parts.reserved,
        uses_reserved: parts.uses_reserved,
        max_threads,
        cluster: cluster(entry),
        registers: 0,
        files,
        inner: Vec::new(),
    }
}

/// Returns the blocks per cluster along each axis. They are zero if the launch must set them.
fn cluster(entry: &Function<'_>) -> Option<[u32; 3]> {
    let directive = |wanted: &str| entry.directives.iter().find(|(name, _)| *name == wanted).map(|(_, n)| n);
    match directive("reqnctapercluster") {
        Some(sizes) => Some(std::array::from_fn(|axis| sizes.get(axis).copied().unwrap_or(1))),
        None => directive("explicitcluster").map(|_| [0; 3]),
    }
}

fn kernel_params(entry: &Function<'_>) -> (Vec<Param>, u32) {
    let mut end = 0_u32;
    let params = entry
        .params
        .iter()
        .map(|v| {
            let offset = end.next_multiple_of(v.align.max(1));
            let bytes = v.size().min(1 << 16) as u32;
            end = offset + bytes;
            Param { offset, bytes }
        })
        .collect();
    (params, end)
}

/// A function whose code has not been emitted yet.
struct Lowered {
    name: String,
    body: Body,
    locals: u32,
    params: Vec<(u32, u32)>,
    result: Option<(u32, u32)>,
}

impl Lowered {
    fn emit(self, tables: &mut Vec<Vec<i64>>) -> Code {
        let emitted = emit::emit(&self.body, tables);
        Code {
            name: self.name,
            ins: emitted.ins,
            lines: emitted.lines,
            origins: emitted.origins,
            left_out: emitted.left_out,
            frame: emitted.frame,
            reads_unwritten: emitted.reads_unwritten,
            locals: self.locals,
            params: self.params,
            result: self.result,
        }
    }
}

fn lower_function<'a>(
    globals: &Globals<'a>,
    parts: &mut KernelParts<'a>,
    function: &'a Function<'a>,
    isa: HostIsa,
    kernel: &str,
    files: &[(u32, String)],
) -> Result<Lowered, SimError> {
    let mut b = Builder::new(globals, parts, isa, files);
    b.line.ptx = function.line;
    let lowered = body(&mut b, function);
    let Signature { params, result } = lowered.map_err(|message| {
        let ptx = format!("line {} of the PTX", b.line.ptx);
        let place = source_place(files, &b.line).map_or_else(|| ptx.clone(), |place| format!("{place} ({ptx})"));
        SimError::Load { kernel: kernel.to_owned(), place, message }
    })?;
    let locals = b.locals;
    let mut body = b.body;
    fixed::run(&mut body);
    Ok(Lowered { name: function.name.to_owned(), body, locals, params, result })
}

fn body<'a>(b: &mut Builder<'a, '_>, function: &'a Function<'a>) -> Result<Signature, String> {
    let mut signature = Signature::default();
    b.opcode = b.parts.opcode("end");
    if function.entry {
        b.param_bytes = kernel_params(function).1;
        for (v, param) in function.params.iter().zip(kernel_params(function).0) {
            b.define(v.name, Symbol::Param(param.offset));
        }
    } else {
        signature = call::enter(b, &function.params, &function.returns)?;
    }
    let statements = function.body.as_deref().unwrap_or_default();
    scope(b, statements)?;
    b.bind(b.end);
    let run = if function.entry { control::end } else { control::ret };
    b.opcode = b.parts.opcode("end");
    call::leave(b, &function.returns, &signature)?;
    let end = b.emit::<0>(run, [], 0, 0, 0);
    (end.flow, end.counts) = (Flow::End, 0);
    for (at, label) in b.body.labels.iter().enumerate() {
        if *label == usize::MAX {
            return Err(format!("label {at} is not placed"));
        }
    }
    Ok(signature)
}

fn scope<'a>(b: &mut Builder<'a, '_>, statements: &'a [Statement<'a>]) -> Result<(), String> {
    b.scopes.push(HashMap::new());
    for statement in statements {
        match statement {
            Statement::Label(name) => {
                let label = b.fresh_label();
                b.define(name, Symbol::Label(label));
            }
            Statement::BranchTargets { name, labels } => b.define_table(name, labels),
            _ => {}
        }
    }
    for statement in statements {
        match statement {
            Statement::Label(name) => {
                if let Symbol::Label(label) = b.lookup(name)? {
                    b.bind(label);
                }
            }
            Statement::Location { place, inlined_at } => {
                let place = b.source.place(*place, *inlined_at);
                b.line = Line { file: place.file, source: place.line, ptx: b.line.ptx };
            }
            Statement::Block(inner) => scope(b, inner)?,
            Statement::Variable(v) => variable(b, v)?,
            Statement::Instruction(ins) => instruction(b, ins)?,
            Statement::Prototype { .. } | Statement::BranchTargets { .. } => {}
        }
    }
    b.scopes.pop();
    Ok(())
}

fn variable<'a>(b: &mut Builder<'a, '_>, v: &Variable<'a>) -> Result<(), String> {
    match v.space {
        Space::Reg => b.declare_registers(v),
        Space::Local | Space::Param => {
            let at = b.local(v.size(), v.align)?;
            b.define(v.name, Symbol::Local(at, v.size() as u32));
            Ok(())
        }
        Space::Shared => {
            let at = b.place_shared(v);
            b.define(v.name, Symbol::Shared(at));
            Ok(())
        }
        Space::Global | Space::Const => {
            let address = b.globals.inner(v).ok_or_else(|| format!("`{}` has no address", v.name))?;
            b.define(v.name, Symbol::Global(address));
            Ok(())
        }
    }
}

/// Opcodes that cannot run with some lanes masked off. A guard on them becomes a branch around them.
const BRANCHED_AROUND: [&str; 8] = ["ret", "exit", "trap", "brkpt", "call", "bar", "barrier", "brx"];

fn instruction<'a>(b: &mut Builder<'a, '_>, ins: &'a Instruction<'a>) -> Result<(), String> {
    b.line.ptx = ins.line;
    b.opcode = b.parts.opcode(&ins.opcode);
    let written_out = ins.with_elements(|name| b.width(name));
    let ins = written_out.as_ref().unwrap_or(ins);
    let name = ins.opcode.split('.').next().unwrap_or_default();
    let Some(guard) = ins.guard.filter(|_| name != "bra") else {
        isa::lower(b, ins)?;
        return b.finish();
    };
    let (register, negated) = b.guard(guard)?;
    if BRANCHED_AROUND.contains(&name) {
        let over: Label = b.fresh_label();
        let aux = if negated { Branch::SILENT } else { Branch::SILENT | Branch::NEGATED };
        let around = b.emit(control::bra_if, [Opnd::Reg(register)], 0, 0, aux.bits());
        (around.flow, around.counts) = (Flow::Branch(over), 0);
        isa::lower(b, ins)?;
        b.finish()?;
        b.bind(over);
        return Ok(());
    }
    let start = b.body.insts.len();
    isa::lower(b, ins)?;
    b.finish()?;
    for inst in &mut b.body.insts[start..] {
        inst.guard = Some((register, negated));
    }
    Ok(())
}
