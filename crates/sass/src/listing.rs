//! Joins instruction words, their text and the lines they come from.

use std::sync::Arc;

use crate::disassembly::{Disassembly, InstructionText};
use crate::{Control, Cubin, Function, INSTRUCTION_BYTES, Place, SassError, Tables};

/// One machine instruction with all that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The offset in its function's section, bytes.
    pub offset: u64,
    /// The guard, for example `@!P0`; empty without one.
    pub predicate: String,
    /// The operation with its modifiers, for example `LDG.E.64`.
    pub opcode: String,
    /// The operands between commas.
    pub operands: String,
    /// The instruction word.
    pub word: u128,
    /// What it tells the scheduler.
    pub control: Control,
    /// The line of the PTX it comes from, which counts from one.
    pub ptx_line: Option<u32>,
    /// The line of the source, followed by those of the calls that were inlined, the innermost first.
    pub source: Vec<Place>,
}

/// The machine code of one kernel, or of a function that was not inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The name of the kernel as the linker knows it.
    pub name: String,
    /// The index of the section that holds the code. It is that of the kernel also for functions that only it calls.
    pub section: usize,
    /// The instructions in the order of their offsets.
    pub instructions: Vec<Instruction>,
    /// The names of the source files, to which [`Place::file`] refers.
    pub files: Vec<String>,
    /// The text of the PTX to which [`Instruction::ptx_line`] refers. It can be another file than that of a kernel compiled
    /// alone.
    pub ptx: Arc<str>,
}

impl Listing {
    /// Joins the parts of a cubin, one listing per function.
    ///
    /// # Errors
    ///
    /// If the text is of another cubin.
    pub fn join(cubin: &Cubin, text: &Disassembly, tables: &Tables) -> Result<Vec<Self>, SassError> {
        text.functions.iter().map(|text| Self::join_function(cubin, text, tables)).collect()
    }

    fn join_function(cubin: &Cubin, text: &crate::Text, tables: &Tables) -> Result<Self, SassError> {
        let other = |what: &str| SassError::Disassembly(format!("`{}` {what}", text.function));
        let named = |function: &&Function| function.name == text.function && function.start == text.start;
        let function = cubin.functions().iter().find(named).ok_or_else(|| other("is not a function of the cubin"))?;
        // A function that only this one calls lies within its code, and has a text of its own.
        let inside = |inner: &&Function| inner.section == function.section && inner.start > function.start;
        let inner = cubin.functions().iter().filter(inside).map(|inner| inner.start - function.start).min();
        let own = inner.map_or(usize::MAX, |bytes| usize::try_from(bytes / INSTRUCTION_BYTES).unwrap_or(usize::MAX));
        let words = &function.words[..function.words.len().min(own)];
        if words.len() != text.instructions.len() {
            let (there, here) = (text.instructions.len(), words.len());
            return Err(other(&format!("has {there} instructions there and {here} in the cubin")));
        }
        let offsets = (0..).map(|index| function.start + index * INSTRUCTION_BYTES);
        let joined = offsets.zip(words).zip(&text.instructions);
        let instructions = joined.map(|((offset, word), text)| {
            let InstructionText { predicate, opcode, operands } = text.clone();
            let ptx = tables.ptx.places(function.section, offset);
            Instruction {
                offset,
                predicate,
                opcode,
                operands,
                word: *word,
                control: Control::decode(*word),
                ptx_line: ptx.first().map(|place| place.line),
                source: tables.source.places(function.section, offset).into_iter().cloned().collect(),
            }
        });
        Ok(Self {
            name: text.function.clone(),
            section: function.section,
            instructions: instructions.collect(),
            files: tables.source.files().to_vec(),
            ptx: Arc::clone(&tables.ptx_text),
        })
    }
}
