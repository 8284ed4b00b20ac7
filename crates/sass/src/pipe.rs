//! Names the pipeline of a multiprocessor that executes an instruction.
//!
//! The pipelines are those of Nsight Compute's counters `sm__inst_executed_pipe_*`, as its documentation describes them for
//! Hopper ("Pipelines" of the Kernel Profiling Guide).

use crate::Instruction;

/// A pipeline of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Integers without multiplication, logic, comparisons, selections and moves.
    Alu,
    /// Single and half precision, integer multiplication.
    Fma,
    /// Double precision.
    Fp64,
    /// Transcendental functions, conversions and bit counts.
    Xu,
    /// Loads, stores, atomics, shuffles and reads of special registers.
    Lsu,
    /// Matrix products.
    Tensor,
    /// Texture fetches and surface accesses.
    Tex,
    /// Copies of the tensor memory accelerator.
    Tma,
    /// Instructions whose result is the same for all lanes of a warp.
    Uniform,
    /// Branches and convergence of the lanes of a warp.
    Cbu,
    /// Constants by index and barriers of a block.
    Adu,
}

/// The pipelines that are not the ALU, each with its operations.
const OPERATIONS: [(Pipe, &[&str]); 9] = [
    (
        Pipe::Fma,
        &["FADD", "FMUL", "FFMA", "FSWZADD", "IMAD", "IMUL", "IDP", "HADD2", "HMUL2", "HFMA2", "FADD2", "FFMA2"],
    ),
    (Pipe::Fp64, &["DADD", "DMUL", "DFMA", "DSETP"]),
    (Pipe::Xu, &["MUFU", "I2F", "F2I", "F2F", "I2I", "FRND", "POPC", "FLO", "BREV"]),
    (
        Pipe::Lsu,
        &[
            "LD",
            "LDG",
            "LDS",
            "LDL",
            "LDSM",
            "LDGSTS",
            "LDGDEPBAR",
            "LDGMC",
            "ST",
            "STG",
            "STS",
            "STL",
            "STSM",
            "STAS",
            "ATOM",
            "ATOMG",
            "ATOMS",
            "RED",
            "REDG",
            "REDAS",
            "SHFL",
            "S2R",
            "SYNCS",
            "MEMBAR",
            "CCTL",
            "CCTLL",
            "MATCH",
            "QSPC",
            "ARRIVES",
            "FENCE",
            "ERRBAR",
        ],
    ),
    (Pipe::Tensor, &["HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "IGMMA", "BGMMA", "QGMMA"]),
    (Pipe::Tex, &["TEX", "TLD", "TLD4", "TMML", "TXD", "TXQ", "SULD", "SUST", "SUATOM", "SURED", "SUQUERY"]),
    (
        Pipe::Tma,
        &["UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UTMACCTL", "UTMACMDFLUSH", "UBLKCP", "UBLKRED", "UBLKPF"],
    ),
    (
        Pipe::Cbu,
        &[
            "BRA",
            "BRX",
            "BRXU",
            "JMP",
            "JMX",
            "JMXU",
            "CALL",
            "RET",
            "EXIT",
            "BSSY",
            "BSYNC",
            "BREAK",
            "BMOV",
            "WARPSYNC",
            "YIELD",
            "NANOSLEEP",
            "KILL",
            "BPT",
            "RPCMOV",
            "ELECT",
        ],
    ),
    (Pipe::Adu, &["LDC", "BAR", "B2R", "DEPBAR", "ACQBULK"]),
];

impl Pipe {
    /// Returns the name in Nsight Compute's counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alu => "alu",
            Self::Fma => "fma",
            Self::Fp64 => "fp64",
            Self::Xu => "xu",
            Self::Lsu => "lsu",
            Self::Tensor => "tensor",
            Self::Tex => "tex",
            Self::Tma => "tma",
            Self::Uniform => "uniform",
            Self::Cbu => "cbu",
            Self::Adu => "adu",
        }
    }
}

impl Instruction {
    /// Returns the pipeline that executes the instruction; `None` for one that only takes an issue slot.
    pub fn pipe(&self) -> Option<Pipe> {
        let operation = self.operation();
        if operation == "NOP" {
            return None;
        }
        let listed = OPERATIONS.iter().find(|(_, operations)| operations.contains(&operation)).map(|(pipe, _)| *pipe);
        let uniform = || matches!(operation, "S2UR" | "R2UR") || operation.starts_with('U');
        Some(listed.unwrap_or_else(|| if uniform() { Pipe::Uniform } else { Pipe::Alu }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Control;

    fn pipe(opcode: &str) -> Option<&'static str> {
        let instruction = Instruction {
            offset: 0,
            predicate: String::new(),
            opcode: opcode.to_owned(),
            operands: String::new(),
            word: 0,
            control: Control::decode(0),
            ptx_line: None,
            source: Vec::new(),
        };
        instruction.pipe().map(Pipe::name)
    }

    #[test]
    fn an_instruction_is_executed_by_the_pipeline_of_its_operation() {
        let expected = [
            ("IMAD.MOV.U32", "fma"),
            ("IADD3.X", "alu"),
            ("ISETP.GE.U32.AND", "alu"),
            ("MUFU.RCP", "xu"),
            ("LDG.E.128", "lsu"),
            ("HMMA.16816.F32", "tensor"),
            ("ULDC.64", "uniform"),
            ("UTMALDG.2D", "tma"),
            ("BSYNC", "cbu"),
            ("BAR.SYNC.DEFER_BLOCKING", "adu"),
            ("DFMA", "fp64"),
            ("TEX.B.LL", "tex"),
        ];
        for (opcode, name) in expected {
            assert_eq!(pipe(opcode), Some(name), "{opcode}");
        }
        assert_eq!(pipe("NOP"), None);
    }
}
