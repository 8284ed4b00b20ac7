//! Bytecode: kernels that are ready to run, and where their instructions come from.

pub mod aux;
pub mod ins;
pub mod row;

use crate::program::ins::{Entry, Ins};
use crate::program::row::Row;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub function: usize,
    /// Index in the function's list of lines.
    pub line: u32,
}

/// Position of an instruction in the sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// File number in the kernel; zero for none.
    pub file: u32,
    pub source: u32,
    pub ptx: u32,
}

pub fn source_path<'f>(files: &'f [(u32, String)], line: &Line) -> Option<&'f str> {
    files.iter().find(|(index, _)| *index == line.file && line.source > 0).map(|(_, path)| path.as_str())
}

/// Returns `file:line` of the source, if known, without the folders of the machine that compiled it.
pub fn source_place(files: &[(u32, String)], line: &Line) -> Option<String> {
    let path = source_path(files, line)?;
    Some(format!("{}:{}", path.rsplit('/').next().unwrap_or(path), line.source))
}

/// The size of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// The operand is not a register.
    None,
    Pred,
    /// 32 bits per lane; `Wide` has 64, and `Quad` has 128.
    Narrow,
    Wide,
    Quad,
}

impl Width {
    /// Returns the number of 32-bit words per lane; zero for a predicate.
    pub const fn words(self) -> usize {
        match self {
            Self::None | Self::Pred => 0,
            Self::Narrow => 1,
            Self::Wide => 2,
            Self::Quad => 4,
        }
    }
}

/// What an instruction of the bytecode comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An instruction of the PTX, as an index into the kernel's opcodes. Bit `k` of `defs` is set if operand `k` is
    /// written. If `branches`, the immediate is a distance. The instruction counts as `counts` PTX instructions. If
    /// `ends`, it is the last one of its straight-line run; if `decides`, it also executes the branch after it.
    Instruction {
        opcode: u32,
        defs: u8,
        /// Mask of the written operands that some instruction of the function reads.
        read: u8,
        /// Width of each operand's register.
        widths: [Width; 6],
        branches: bool,
        counts: u32,
        ends: bool,
        decides: bool,
    },
    /// Guard of the next instruction.
    Guard,
    /// Reconvergence point.
    Join,
}

/// Bytecode of one function.
#[derive(Debug, Clone)]
pub struct Code {
    pub name: String,
    pub ins: Vec<Ins>,
    pub lines: Vec<Line>,
    /// Where each instruction comes from.
    pub origins: Vec<Origin>,
    /// Removed instructions: index of the instruction that counts for them, their line, and their number.
    pub left_out: Vec<(usize, Line, u32)>,
    /// Size of the function's registers in bytes.
    pub frame: u32,
    /// Local memory per lane for variables and parameters, in bytes.
    pub locals: u32,
    /// See [`Kernel::reads_unwritten`].
    pub reads_unwritten: bool,
    /// Offset in the locals, and size, of each parameter of a device function.
    pub params: Vec<(u32, u32)>,
    pub result: Option<(u32, u32)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    pub offset: u32,
    pub bytes: u32,
}

/// A parameter, or part of one, that has a row among the constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamRow {
    /// Index of the first row.
    pub row: u32,
    /// Offset in the kernel's parameters.
    pub offset: u32,
    /// Whether the parameter has eight bytes and two rows, instead of four bytes and one row.
    pub wide: bool,
}

/// A call site: where the arguments and the result are in the locals of caller and callee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// The called function; `None` if its address is in a register.
    pub function: Option<usize>,
    /// Offsets of the arguments in the caller's locals, and their sizes.
    pub args: Vec<(u32, u32)>,
    pub result: Option<(u32, u32)>,
}

/// A kernel and all functions that it can call.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub name: String,
    /// Number of the kernel in the module, which determines its address.
    pub number: u32,
    /// The kernel itself, followed by the functions that it can call.
    pub functions: Vec<Code>,
    /// Index in `functions` for each function number of the module, for indirect calls.
    pub by_number: Vec<Option<usize>>,
    pub calls: Vec<CallSite>,
    /// Jump tables of `brx.idx`, as distances from the instruction.
    pub tables: Vec<Vec<i64>>,
    /// PTX opcodes that the code comes from.
    pub opcodes: Vec<String>,
    pub constants: Vec<Row<u32>>,
    pub param_rows: Vec<ParamRow>,
    /// Whether a thread may read a register that it, or the lane from which it reads, never wrote. Registers then start
    /// as zero.
    pub reads_unwritten: bool,
    pub params: Vec<Param>,
    pub param_bytes: u32,
    /// Static shared memory in bytes.
    pub shared_static: u32,
    /// Start of static shared memory, after the system's reserved bytes.
    pub shared_base: u32,
    /// Whether the kernel queries where the reserved shared memory is, and so may access it.
    pub uses_reserved: bool,
    pub max_threads: Option<u32>,
    /// Blocks per cluster along each axis, if the kernel was compiled for clusters.
    pub cluster: Option<[u32; 3]>,
    /// Registers per thread, as reported by the compiler, or zero.
    pub registers: u32,
    pub files: Vec<(u32, String)>,
    /// The wrapped handlers, by instruction number, in a kernel that counts per instruction.
    pub inner: Vec<Inner>,
}

/// A wrapped handler, and the loop whose iterations the wrapper counts.
#[derive(Debug, Clone, Copy)]
pub struct Inner {
    /// The handler that executes the instruction.
    pub run: Entry,
    /// The loop for which the instruction is a back edge, if any.
    pub back: Option<u32>,
}

// SAFETY: the code holds function pointers and plain data, and does not change after loading.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Returns `file:line` of the source, or else the line of the PTX.
    pub fn place(&self, at: Position) -> String {
        let Some(line) = self.functions.get(at.function).and_then(|f| f.lines.get(at.line as usize)) else {
            return "an unknown line".to_owned();
        };
        source_place(&self.files, line).unwrap_or_else(|| format!("line {} of the PTX", line.ptx))
    }

    /// Returns the constants of a launch with these parameters.
    pub fn constants(&self, params: &[u8]) -> Vec<Row<u32>> {
        let mut rows = self.constants.clone();
        for &ParamRow { row, offset, wide } in &self.param_rows {
            let word = |k: usize| {
                let at = offset as usize + 4 * k;
                let bytes = params.get(at..at + 4).and_then(|b| b.try_into().ok());
                bytes.map_or(0, u32::from_le_bytes)
            };
            let parts = 1 + usize::from(wide);
            for part in &mut rows[row as usize..row as usize + parts] {
                *part = Row(std::array::from_fn(|k| word(k % parts)));
            }
        }
        rows
    }

    /// Returns the local memory per thread for the kernel's own frame, in bytes.
    pub fn local_bytes(&self) -> u32 {
        self.functions.first().map_or(0, |f| f.locals)
    }
}
