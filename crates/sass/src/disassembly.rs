//! Parser for the output of `nvdisasm -json`.
//!
//! The output is a list of two values: facts about the file, and its functions with one entry per instruction. Unknown
//! fields are ignored, because new versions of nvdisasm add fields.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::SassError;

/// Disassembly of all functions of a cubin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Disassembly {
    /// Functions, each with its instructions in order.
    pub functions: Vec<Text>,
}

/// A function's instructions as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Text {
    /// Name of the function.
    #[serde(rename = "function-name")]
    pub function: String,
    /// Offset of the first instruction in the section, in bytes.
    pub start: u64,
    /// Instructions in order.
    #[serde(rename = "sass-instructions")]
    pub instructions: Vec<InstructionText>,
}

/// One instruction as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstructionText {
    /// Guard, e.g. `@!P0`; empty if there is none.
    #[serde(default)]
    pub predicate: String,
    /// Operation with its modifiers, e.g. `LDG.E.64`.
    pub opcode: String,
    /// Operands, separated by commas.
    #[serde(default)]
    pub operands: String,
}

/// Parses the output of `nvdisasm -json`.
///
/// # Errors
///
/// If the output is not JSON of the expected form.
pub fn read_disassembly(json: &[u8]) -> Result<Disassembly, SassError> {
    let failed = |error: serde_json::Error| SassError::Disassembly(error.to_string());
    let (_, functions): (IgnoredAny, Vec<Text>) = serde_json::from_slice(json).map_err(failed)?;
    Ok(Disassembly { functions })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::read_disassembly as read;
    use crate::SassError;

    #[test]
    fn instructions_have_a_predicate_an_opcode_and_operands() {
        let json = br#"[{"ELF": {}}, [{"function-name": "k", "start": 0, "length": 32, "other-attributes": [],
            "sass-instructions": [
                {"predicate": "@!P0", "opcode": "BRA", "operands": "0x1c0", "other-attributes": {"control-flow": "True"}},
                {"opcode": "EXIT"}]}]]"#;
        let read = read(json).unwrap();
        let [text] = read.functions.as_slice() else { panic!("one function") };
        assert_eq!((text.function.as_str(), text.start), ("k", 0));
        let [branch, exit] = text.instructions.as_slice() else { panic!("two instructions") };
        assert_eq!(
            (branch.predicate.as_str(), branch.opcode.as_str(), branch.operands.as_str()),
            ("@!P0", "BRA", "0x1c0")
        );
        assert_eq!((exit.predicate.as_str(), exit.opcode.as_str(), exit.operands.as_str()), ("", "EXIT", ""));
    }

    #[test]
    fn other_output_is_refused_with_the_reason() {
        let Err(SassError::Disassembly(why)) = read(b"nvdisasm fatal   : Cannot open") else { panic!() };
        assert!(why.contains("line 1"), "{why}");
        assert!(read(b"[{}]").is_err());
        assert!(read(b"").is_err());
    }
}
