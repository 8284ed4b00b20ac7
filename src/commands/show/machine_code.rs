//! Machine code as text: each instruction with its control bits and its source lines.

use std::fmt::Write as _;

use sass::{Control, Instruction, Listing};

const HEADER: &str =
    "offset   control                  PTX  instruction, and the line of the source that it comes from";

/// Lists the instructions of kernels, one per line.
pub fn listings(listings: &[Listing]) -> String {
    let mut text = String::new();
    for listing in listings {
        let _ = writeln!(text, "{}: {} instructions\n{HEADER}", listing.name, listing.instructions.len());
        for instruction in &listing.instructions {
            let line = instruction.ptx_line.map_or_else(|| "-".to_owned(), |line| line.to_string());
            let place = call_chain(listing, instruction);
            let comment = if place.is_empty() { place } else { format!("  // {place}") };
            let (offset, control) = (instruction.offset, control(instruction.control()));
            let _ = writeln!(text, "{offset:#06x}  {control}  {line:>6}  {:<56}{comment}", statement(instruction));
        }
        text.push('\n');
    }
    text
}

/// An instruction in assembler syntax.
pub fn statement(instruction: &Instruction) -> String {
    let parts = [&instruction.predicate, &instruction.opcode, &instruction.operands];
    let parts: Vec<&str> = parts.into_iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    // nvdisasm prints operands without spaces.
    parts.join(" ").replace(',', ", ").replace(",  ", ", ")
}

/// Control bits in the notation of assemblers for Volta and later: barriers to wait for, read and write barriers to
/// set, yield flag, and stall cycles.
pub fn control(control: Control) -> String {
    let waits: String =
        (0..6).map(|k| if control.waits().any(|wait| wait == k) { digit(Some(k)) } else { '-' }).collect();
    let (read, write) = (digit(control.read_barrier), digit(control.write_barrier));
    let yields = if control.yields { 'Y' } else { '-' };
    format!("B{waits}:R{read}:W{write}:{yields}:S{:02}", control.stall)
}

fn digit(barrier: Option<u8>) -> char {
    barrier.map_or('-', |barrier| char::from(b'0' + barrier))
}

/// Source line, followed by the lines that it was inlined into.
pub fn call_chain(listing: &Listing, instruction: &Instruction) -> String {
    let place = |place: &sass::Place| {
        let file = listing.files.get(place.file).map_or("?", |path| path.rsplit('/').next().unwrap_or(path));
        format!("{file}:{}", place.line)
    };
    instruction.source.iter().map(place).collect::<Vec<_>>().join(" in ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_has_its_control_bits_its_text_and_its_lines() {
        let word = 0x000e_a200_0c1e_1900_0000_0006_0405_7981_u128;
        let place = |file, line| sass::Place { file, line, function: None };
        let load = Instruction {
            offset: 0x40,
            predicate: "@!P0".to_owned(),
            opcode: "LDG.E".to_owned(),
            operands: "R5, desc[UR6][R4.64]".to_owned(),
            word,
            ptx_line: Some(31),
            source: vec![place(1, 7), place(0, 13)],
        };
        let exit = Instruction {
            offset: 0x50,
            predicate: String::new(),
            opcode: "EXIT".to_owned(),
            operands: String::new(),
            ptx_line: None,
            source: Vec::new(),
            ..load.clone()
        };
        let files = vec!["/home/me/k.cu".to_owned(), "/home/me/sum.cuh".to_owned()];
        let text = listings(&[Listing {
            name: "k".to_owned(),
            section: 1,
            instructions: vec![load, exit],
            files,
            ptx: String::new(),
        }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "k: 2 instructions");
        assert_eq!(
            lines[2],
            "0x0040  B------:R-:W2:-:S01      31  @!P0 LDG.E R5, desc[UR6][R4.64]                           \
             // sum.cuh:7 in k.cu:13"
        );
        assert_eq!(lines[3].trim_end(), "0x0050  B------:R-:W2:-:S01       -  EXIT");
    }
}
