//! The functions of a cubin and their instruction words.

use object::elf::{EM_CUDA, STT_FUNC};
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::{INSTRUCTION_BYTES, SassError};

/// A kernel, or a device function that was not inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Mangled name, e.g. `_Z6reducePKfPf`.
    pub name: String,
    /// Index of the symbol that selects the function in nvdisasm.
    pub symbol: usize,
    /// Index of the section that contains the code.
    pub section: usize,
    /// Offset of the first instruction in the section, in bytes.
    pub start: u64,
    /// Instruction words. Bit 0 of a word is the lowest bit of its first byte.
    pub words: Vec<u128>,
}

/// The machine code of a cubin.
#[derive(Debug)]
pub struct Cubin<'data> {
    elf: ElfFile64<'data, Endianness>,
    functions: Vec<Function>,
}

impl<'data> Cubin<'data> {
    /// Reads the functions of a cubin, ordered by section and offset.
    ///
    /// # Errors
    ///
    /// If the file is not an ELF file for a GPU, is damaged, or has instructions that are not 16 bytes long.
    pub fn parse(bytes: &'data [u8]) -> Result<Self, SassError> {
        let damaged = |error: object::Error| SassError::Elf(error.to_string());
        let elf = ElfFile64::<Endianness>::parse(bytes).map_err(damaged)?;
        let machine = elf.elf_header().e_machine.get(Endianness::Little);
        if machine != EM_CUDA {
            return Err(SassError::Machine(machine.0));
        }
        let mut functions = Vec::new();
        for symbol in elf.symbols() {
            let raw = symbol.elf_symbol();
            let (Some(section), true) = (symbol.section_index(), raw.st_type() == STT_FUNC) else { continue };
            let name = symbol.name().map_err(damaged)?.to_owned();
            let code = elf.section_by_index(section).and_then(|section| section.data()).map_err(damaged)?;
            let (start, bytes) = (symbol.address(), symbol.size());
            let words = read_words(&name, (start, bytes), code)?;
            functions.push(Function { name, symbol: symbol.index().0, section: section.0, start, words });
        }
        functions.sort_by_key(|function| (function.section, function.start));
        Ok(Self { elf, functions })
    }

    /// All functions, ordered by section and offset.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Architecture as a number, e.g. 90 for `sm_90`.
    pub fn architecture(&self) -> u32 {
        let header = self.elf.elf_header();
        let flags = header.e_flags.get(Endianness::Little).0;
        // Since CUDA 13, the lowest byte has another meaning.
        if header.e_ident.abi_version >= 8 { (flags >> 8) & 0xff } else { flags & 0xff }
    }

    pub(crate) const fn elf(&self) -> &ElfFile64<'data, Endianness> {
        &self.elf
    }
}

/// Reads the instruction words of a function, given its start and length in the code of its section.
fn read_words(name: &str, (start, bytes): (u64, u64), code: &[u8]) -> Result<Vec<u128>, SassError> {
    if !bytes.is_multiple_of(INSTRUCTION_BYTES) {
        return Err(SassError::Length { function: name.to_owned(), bytes });
    }
    let range = usize::try_from(start).ok().zip(start.checked_add(bytes).and_then(|end| usize::try_from(end).ok()));
    let code = range.and_then(|(start, end)| code.get(start..end));
    let code = code.ok_or_else(|| SassError::Elf(format!("the code of `{name}` is outside of its section")))?;
    let (words, _) = code.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
    Ok(words.iter().map(|word| u128::from_le_bytes(*word)).collect())
}
