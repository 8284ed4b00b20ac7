#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod accesses;
mod balance;
mod blocks;
mod branch_targets;
mod control;
mod cubin;
mod disassembly;
mod executed;
mod lines;
mod listing;
mod operations;
mod pipe;
mod simulated;

pub use accesses::{Access, Fate, Fates};
pub use control::Control;
pub use cubin::{Cubin, Function};
pub use disassembly::{Disassembly, InstructionText, Text, read_disassembly};
pub use executed::LineCount;
pub use lines::{LineTable, Place, Tables};
pub use listing::{Instruction, Listing, begins_function};
pub use pipe::Pipe;
pub use simulated::{Executed, PtxCount, Simulated, is_instruction};

/// Size of an instruction in bytes, since Volta.
pub const INSTRUCTION_BYTES: u64 = 16;

/// Why machine code could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SassError {
    /// The file is not an ELF file, or its structure is damaged.
    #[error("not a readable cubin: {0}")]
    Elf(String),
    /// The ELF file is not for a GPU.
    #[error("not machine code of an NVIDIA GPU: the ELF machine is {0}, expected 190")]
    Machine(u16),
    /// A function does not consist of whole instructions.
    #[error(
        "the code of `{function}` has {bytes} bytes, which is not a multiple of 16: only Volta and later are \
        supported"
    )]
    Length {
        /// Name of the function.
        function: String,
        /// Length of its code in bytes.
        bytes: u64,
    },
    /// The line table is damaged.
    #[error("the line table `{section}` is damaged: {why}")]
    Lines {
        /// Name of the section.
        section: &'static str,
        /// What is wrong.
        why: String,
    },
    /// The output of `nvdisasm -json` has an unexpected form.
    #[error("unexpected output of nvdisasm: {0}")]
    Disassembly(String),
}
