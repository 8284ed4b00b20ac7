//! Which pipelines of a multiprocessor count an instruction.
//!
//! The pipelines are the ones in the names of Nsight Compute's counters `sm__inst_executed_pipe_*`. What each of them
//! counts was measured on an H100; see docs/explanation/machine-code.md.

use crate::Instruction;

/// A pipeline of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Pipe {
    /// Integer operations except multiplication, logic, comparisons, selections, votes and moves.
    Alu,
    /// Single and half precision, integer multiplication, and some integer additions and moves.
    Fma,
    /// Double precision.
    Fp64,
    /// Transcendental functions, conversions and bit counts.
    Xu,
    /// Loads, stores, atomics, fences, shuffles and reads of special registers that differ between lanes.
    Lsu,
    /// Matrix products, and some half-precision additions and moves.
    Tensor,
    /// Texture fetches, surface accesses, and fences with a scope beyond the block.
    Tex,
    /// Copies by the Tensor Memory Accelerator.
    Tma,
    /// Instructions whose result is the same for all lanes of a warp.
    Uniform,
    /// Calls, exits and reconvergence of lanes.
    Cbu,
    /// Loads from constant memory, block barriers, reductions over a warp, and reads of other special registers.
    Adu,
}

/// Pipelines that count each operation. Operations that are not listed are counted by the ALU, or by the uniform
/// datapath if their name starts with `U`. Measured on an H100 for the operations that occur in its kernels, otherwise
/// as documented.
const OPERATIONS: [(&[Pipe], &[&str]); 11] = [
    (
        &[Pipe::Fma],
        &[
            "FADD", "FMUL", "FFMA", "FSWZADD", "IMAD", "IMUL", "IDP", "HADD2", "HMUL2", "HFMA2", "FADD2", "FFMA2",
            "VIADD",
        ],
    ),
    (&[Pipe::Fp64], &["DADD", "DMUL", "DFMA", "DSETP"]),
    (&[Pipe::Xu], &["MUFU", "I2F", "F2I", "F2F", "I2I", "FRND", "POPC", "FLO", "BREV", "FCHK"]),
    (
        &[Pipe::Lsu],
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
            "MEMBAR",
            "CCTL",
            "CCTLL",
            "QSPC",
            "ARRIVES",
            "FENCE",
        ],
    ),
    (&[Pipe::Tensor], &["HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "HGMMA", "IGMMA", "BGMMA", "QGMMA"]),
    (&[Pipe::Tex], &["TEX", "TLD", "TLD4", "TMML", "TXD", "TXQ", "SULD", "SUST", "SUATOM", "SURED", "SUQUERY"]),
    (
        &[Pipe::Tma],
        &["UTMALDG", "UTMASTG", "UTMAREDG", "UTMAPF", "UTMACCTL", "UTMACMDFLUSH", "UBLKCP", "UBLKRED", "UBLKPF"],
    ),
    (
        &[Pipe::Cbu],
        &[
            "BRX",
            "BRXU",
            "JMX",
            "JMXU",
            "CALL",
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
        ],
    ),
    (&[Pipe::Cbu, Pipe::Adu], &["RET"]),
    (&[Pipe::Adu], &["LDC", "S2R", "S2UR", "BAR", "B2R", "ERRBAR", "REDUX", "MATCH", "SYNCS", "ACQBULK"]),
    // Not counted by any pipeline, like branches to a fixed target.
    (&[], &["NOP", "BRA", "JMP", "UMOV", "ULDC", "VOTEU", "CGAERRBAR", "DEPBAR", "ENDCOLLECTIVE", "PREEXIT"]),
];

/// Special registers that differ between the lanes of a warp. The LSU reads them.
const OF_LANES: [&str; 8] =
    ["SR_TID", "SR_LANEID", "SR_VIRTID", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK"];

impl Pipe {
    /// Returns the name of the pipeline's counter in the counts of a launch.
    pub const fn counter(self) -> &'static str {
        match self {
            Self::Alu => "pipe_alu",
            Self::Fma => "pipe_fma",
            Self::Fp64 => "pipe_fp64",
            Self::Xu => "pipe_xu",
            Self::Lsu => "pipe_lsu",
            Self::Tensor => "pipe_tensor",
            Self::Tex => "pipe_tex",
            Self::Tma => "pipe_tma",
            Self::Uniform => "pipe_uniform",
            Self::Cbu => "pipe_cbu",
            Self::Adu => "pipe_adu",
        }
    }

    /// Returns the name that Nsight Compute's counters use.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Instruction {
    /// Returns the pipelines that count the instruction; none if it only takes an issue slot.
    pub fn pipes(&self) -> &'static [Pipe] {
        let operation = self.operation();
        let has = |modifier: &str| self.opcode.split('.').any(|part| part == modifier);
        let of_lanes = || OF_LANES.iter().any(|register| self.operands.contains(register));
        match operation {
            "HFMA2" if has("MMA") => &[Pipe::Tensor],
            "S2R" if of_lanes() => &[Pipe::Lsu],
            "MEMBAR" if !has("CTA") => &[Pipe::Lsu, Pipe::Tex],
            _ => {
                let listed = OPERATIONS.iter().find(|(_, operations)| operations.contains(&operation));
                let other: &[Pipe] = if operation.starts_with('U') { &[Pipe::Uniform] } else { &[Pipe::Alu] };
                listed.map_or(other, |(pipes, _)| pipes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipes(opcode: &str, operands: &str) -> Vec<&'static str> {
        let instruction = Instruction {
            offset: 0,
            predicate: String::new(),
            opcode: opcode.to_owned(),
            operands: operands.to_owned(),
            word: 0,
            ptx_line: None,
            source: Vec::new(),
        };
        instruction.pipes().iter().map(|pipe| pipe.name()).collect()
    }

    #[test]
    fn an_instruction_counts_in_the_pipelines_of_its_operation() {
        let expected = [
            ("IMAD.MOV.U32", "fma"),
            ("VIADD", "fma"),
            ("IADD3.X", "alu"),
            ("ISETP.GE.U32.AND", "alu"),
            ("R2UR", "alu"),
            ("MUFU.RCP", "xu"),
            ("LDG.E.128", "lsu"),
            ("MEMBAR.SC.CTA", "lsu"),
            ("HMMA.16816.F32", "tensor"),
            ("HFMA2.MMA", "tensor"),
            ("HFMA2.BF16_V2", "fma"),
            ("UIADD3", "uniform"),
            ("UTMALDG.2D", "tma"),
            ("BSYNC", "cbu"),
            ("BAR.SYNC.DEFER_BLOCKING", "adu"),
            ("DFMA", "fp64"),
            ("TEX.B.LL", "tex"),
        ];
        for (opcode, name) in expected {
            assert_eq!(pipes(opcode, ""), [name], "{opcode}");
        }
        assert_eq!(pipes("RET.REL.NODEC", "R2 0x0"), ["cbu", "adu"]);
        assert_eq!(pipes("MEMBAR.SC.GPU", ""), ["lsu", "tex"]);
        for opcode in ["NOP", "BRA", "UMOV", "ULDC.64", "PREEXIT"] {
            assert!(pipes(opcode, "").is_empty(), "{opcode}");
        }
    }

    #[test]
    fn the_load_store_unit_reads_special_registers_that_differ_between_lanes() {
        assert_eq!(pipes("S2R", "R0,SR_TID.X"), ["lsu"]);
        assert_eq!(pipes("S2R", "R0,SR_LANEID"), ["lsu"]);
        assert_eq!(pipes("S2R", "R0,SR_CTAID.X"), ["adu"]);
        assert_eq!(pipes("S2UR", "UR4,SR_CTAID.X"), ["adu"]);
    }
}
