//! Line tables: which lines a cubin's instructions come from.
//!
//! A cubin compiled with `-lineinfo` has two line tables in DWARF 2 format. `.debug_line` refers to the source,
//! `.nv_debug_line_sass` to the PTX in `.nv_debug_ptx_txt`. NVIDIA adds an extended opcode (0x90) for inlined calls.
//! Its first operand is the number of an earlier row of the same kernel, at which the following rows are inlined. The
//! second is the offset of their function's name in `.debug_str`. Row number 0 ends the inlined code.

use gimli::{DebugLine, DebugLineOffset, LineInstruction, LineRow, LittleEndian, Reader as _};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};
use serde::{Deserialize, Serialize};

use crate::{Cubin, SassError};

const SOURCE_LINES: &str = ".debug_line";
const PTX_LINES: &str = ".nv_debug_line_sass";
/// Prefix of the section that contains the PTX text, whose lines end with a zero byte. In code that is not linked yet,
/// a number follows.
const PTX_TEXT: &str = ".nv_debug_ptx_txt";
/// NVIDIA's extended opcode for an inlined call.
const INLINED_CALL: gimli::DwLne = gimli::DwLne(0x90);
/// Maximum number of rows in a table, so that a damaged program cannot fill the memory.
const MOST_ROWS: usize = 1 << 24;
/// Maximum depth of nested inlined calls.
const DEEPEST: usize = 256;
/// While tables are read, the addresses of section `i` start at `i << SECTION_BITS`.
const SECTION_BITS: u32 = 40;

type Bytes<'data> = gimli::EndianSlice<'data, LittleEndian>;

/// A line of a file, and the inlined function that contains it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Index in [`LineTable::files`].
    pub file: usize,
    /// Line number, 1-based.
    pub line: u32,
    /// Inlined function that contains the line, if the table names it.
    pub function: Option<String>,
}

/// Lines of all instructions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineTable {
    files: Vec<String>,
    /// All rows, in the order of the table. An inlined row refers to the row of its call.
    rows: Vec<Row>,
    /// Section, offset and index of each row, sorted. A row applies up to the next one in its section. Of several rows
    /// at one offset, the last one applies.
    places: Vec<((usize, u64), usize)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    place: Place,
    /// Row number of the call, 1-based; 0 if the line was not inlined.
    caller: usize,
    /// Whether the row ends a sequence of the section's code.
    ends: bool,
}

/// Both line tables of a cubin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables {
    /// Lines of the source; empty without `-lineinfo`.
    pub source: LineTable,
    /// Lines of the PTX; empty without `-lineinfo`.
    pub ptx: LineTable,
    /// Text of the PTX to which its lines refer; empty without `-lineinfo`.
    pub ptx_text: String,
}

impl LineTable {
    /// Names of the files to which [`Place::file`] refers.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Whether the table has no lines.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the line of the instruction at `offset` in a section, followed by the lines of the inlined calls,
    /// innermost first. Empty if unknown.
    pub fn places(&self, section: usize, offset: u64) -> Vec<&Place> {
        let following = self.places.partition_point(|(place, _)| *place <= (section, offset));
        let before = self.places[..following].last().filter(|((of, _), _)| *of == section);
        let row = before.and_then(|(_, index)| self.rows.get(*index));
        let mut row = row.filter(|row| !row.ends && row.place.line > 0);
        let mut places = Vec::new();
        while let Some(Row { place, caller, .. }) = row {
            places.push(place);
            // Rows only refer to earlier rows, but in a damaged table, a row may refer to itself.
            let earlier = places.len() < DEEPEST;
            row = caller.checked_sub(1).filter(|_| earlier).and_then(|number| self.rows.get(number));
        }
        places
    }
}

impl Tables {
    /// Reads the line tables of a cubin. The tables are empty if it has no line information.
    ///
    /// # Errors
    ///
    /// If a table is damaged.
    pub fn read(cubin: &Cubin) -> Result<Self, SassError> {
        let is_text =
            |name: &str| name.strip_prefix(PTX_TEXT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let section = cubin.elf().sections().find(|section| section.name().is_ok_and(is_text));
        let text = section.and_then(|section| section.data().ok());
        let text: Vec<u8> =
            text.unwrap_or_default().iter().map(|byte| if *byte == 0 { b'\n' } else { *byte }).collect();
        Ok(Self {
            source: read_table(cubin, SOURCE_LINES)?,
            ptx: read_table(cubin, PTX_LINES)?,
            ptx_text: String::from_utf8_lossy(&text).trim_end_matches('\n').to_owned(),
        })
    }
}

fn read_table(cubin: &Cubin, name: &'static str) -> Result<LineTable, SassError> {
    let damaged = |why: &dyn std::fmt::Display| SassError::Lines { section: name, why: why.to_string() };
    let Some(data) = relocated(cubin, name).map_err(|error| damaged(&error))? else { return Ok(LineTable::default()) };
    let strings = cubin.elf().section_by_name(".debug_str").and_then(|section| section.data().ok());
    run_programs(&data, strings.unwrap_or_default()).map_err(|why| damaged(&why))
}

/// Runs the line programs of a section whose addresses have been relocated.
fn run_programs(data: &[u8], strings: &[u8]) -> Result<LineTable, String> {
    let mut table = LineTable::default();
    let mut offset = 0;
    while offset < data.len() {
        let section = DebugLine::new(data, LittleEndian);
        let program = section.program(DebugLineOffset(offset), 8, None, None).map_err(|error| error.to_string())?;
        // The length excludes its own four bytes. Since the header could be read, it is within the section.
        offset += 4 + program.header().unit_length();
        run_program(program, strings, &mut table)?;
    }
    table.places.sort_by_key(|(place, _)| *place);
    Ok(table)
}

/// Returns the content of a section with the addresses that the linker would insert: the section of the code in the
/// bits from [`SECTION_BITS`] up, and the offset below.
fn relocated(cubin: &Cubin, name: &str) -> Result<Option<Vec<u8>>, object::Error> {
    let Some(section) = cubin.elf().section_by_name(name) else { return Ok(None) };
    let mut data = section.data()?.to_vec();
    for (at, relocation) in section.relocations() {
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let symbol = cubin.elf().symbol_by_index(symbol)?;
        let Some(target) = symbol.section_index() else { continue };
        let address = ((target.0 as u64) << SECTION_BITS).wrapping_add(symbol.address());
        let address = address.wrapping_add_signed(relocation.addend());
        let at = usize::try_from(at).ok().filter(|at| at.checked_add(8).is_some_and(|end| end <= data.len()));
        if let Some(at) = at {
            data[at..at + 8].copy_from_slice(&address.to_le_bytes());
        }
    }
    Ok(Some(data))
}

/// Runs one line program and appends its rows to the table.
fn run_program<'data>(
    mut program: gimli::IncompleteLineProgram<Bytes<'data>>,
    strings: &'data [u8],
    table: &mut LineTable,
) -> Result<(), String> {
    let header = program.header().clone();
    let first_file = table.files.len();
    for entry in header.file_names() {
        table.files.push(file_name(&header, entry));
    }
    let mut instructions = header.instructions();
    let mut row = LineRow::new(&header);
    let mut first_row = table.rows.len();
    let (mut caller, mut function) = (0, None);
    while let Some(instruction) = instructions.next_instruction(&header).map_err(|error| error.to_string())? {
        if let LineInstruction::UnknownExtended(INLINED_CALL, mut operands) = instruction {
            let number = operands.read_uleb128().map_err(|error| error.to_string())?;
            let name = operands.read_uleb128().map_err(|error| error.to_string())?;
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            caller = if number == 0 { 0 } else { first_row.saturating_add(number) };
            function = if number == 0 { None } else { read_string(strings, name) };
            if caller > table.rows.len() {
                let row = table.rows.len() + 1 - first_row;
                return Err(format!("row {row} is inlined at row {number}, which follows it"));
            }
            continue;
        }
        if !row.execute(instruction, &mut program).map_err(|error| error.to_string())? {
            continue;
        }
        if table.rows.len() == MOST_ROWS {
            return Err(format!("it has more than {MOST_ROWS} rows"));
        }
        let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(u32::MAX));
        // File numbers are 1-based. The table of PTX lines names file 0, because there is only one text.
        let file = usize::try_from(row.file_index().saturating_sub(1)).unwrap_or(usize::MAX).saturating_add(first_file);
        if row.file_index() > 0 && file >= table.files.len() {
            return Err(format!("row {} names file {}, which is not listed", table.rows.len() + 1, row.file_index()));
        }
        let made = Row { place: Place { file, line, function: function.clone() }, caller, ends: row.end_sequence() };
        let section = usize::try_from(row.address() >> SECTION_BITS).unwrap_or(usize::MAX);
        table.places.push(((section, row.address() & ((1 << SECTION_BITS) - 1)), table.rows.len()));
        if made.ends {
            // The next rows belong to another kernel or function, where row numbers start from one again.
            (first_row, caller, function) = (table.rows.len() + 1, 0, None);
        }
        table.rows.push(made);
        row.reset(&header);
    }
    Ok(())
}

fn read_string(strings: &[u8], offset: u64) -> Option<String> {
    let rest = strings.get(usize::try_from(offset).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// Returns the path of a file: its folder, if any, and its name.
fn file_name(header: &gimli::LineProgramHeader<Bytes>, entry: &gimli::FileEntry<Bytes>) -> String {
    let text = |value: gimli::AttributeValue<Bytes>| match value {
        gimli::AttributeValue::String(text) => text.to_string_lossy().into_owned(),
        _ => String::new(),
    };
    let name = text(entry.path_name());
    let folder = entry.directory(header).map(text).unwrap_or_default();
    if folder.is_empty() || name.starts_with('/') { name } else { format!("{folder}/{name}") }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::run_programs;

    /// Returns a table as NVRTC 13.0 writes it for a kernel with nested inlined calls: rows at 0x00 to 0x20, two calls
    /// inlined into each other, and the end at 0x40.
    fn table() -> Vec<u8> {
        table_of(&[(3, 12)])
    }

    /// Returns a table for several kernels, given the section of each and the line before its first one.
    fn table_of(kernels: &[(u64, u8)]) -> Vec<u8> {
        // Version 2. After the length of the rest of the header: units of one byte, statements, lines from -5 in a
        // range of 14, opcodes from 10 up, and the operand counts of the standard opcodes.
        let mut rest = vec![1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
        rest.extend(b"/src\0\0k.cu\0\x01\0\0\0");
        let mut program = vec![2, 0];
        program.extend(u32::try_from(rest.len()).unwrap().to_le_bytes());
        program.extend(rest);
        for (section, line) in kernels {
            // Address of the section; line 13; row 1.
            program.extend([0, 9, 2]);
            program.extend((section << super::SECTION_BITS).to_le_bytes());
            program.extend([3, *line, 1]);
            // Inlined at row 1, in the function at string offset 0; line 6 at 0x10; row 2.
            program.extend([0, 3, 0x90, 1, 0, 2, 16, 3, 0x79, 1]);
            // Inlined at row 2, in the function at string offset 3; line 3 at 0x20; row 3.
            program.extend([0, 3, 0x90, 2, 3, 2, 16, 3, 0x7d, 1]);
            // No longer inlined; line 14 at 0x30, and the end at 0x40.
            program.extend([0, 3, 0x90, 0, 0, 2, 16, 3, 11, 1, 2, 16, 0, 1, 1]);
        }
        let mut all = u32::try_from(program.len()).unwrap().to_le_bytes().to_vec();
        all.extend(program);
        all
    }

    fn lines(bytes: &[u8], section: usize, offset: u64) -> Vec<(u32, Option<String>)> {
        let table = run_programs(bytes, b"sq\0red\0").unwrap();
        table.places(section, offset).into_iter().map(|place| (place.line, place.function.clone())).collect()
    }

    #[test]
    fn an_inlined_line_is_followed_by_the_lines_of_its_calls() {
        let red = (3, Some("red".to_owned()));
        let sq = (6, Some("sq".to_owned()));
        assert_eq!(lines(&table(), 3, 0x00), [(13, None)]);
        assert_eq!(lines(&table(), 3, 0x10), [sq.clone(), (13, None)]);
        assert_eq!(lines(&table(), 3, 0x20), [red, sq, (13, None)]);
        assert_eq!(lines(&table(), 3, 0x30), [(14, None)]);
        assert_eq!(run_programs(&table(), b"").unwrap().files(), ["/src/k.cu"]);
    }

    #[test]
    fn a_line_holds_until_the_next_row_and_none_after_the_end_or_in_another_section() {
        assert_eq!(lines(&table(), 3, 0x3f), [(14, None)]);
        assert_eq!(lines(&table(), 3, 0x40), []);
        assert_eq!(lines(&table(), 2, 0x10), []);
        assert_eq!(lines(&table(), 4, 0x10), []);
    }

    #[test]
    fn several_programs_number_their_rows_and_files_apart() {
        let mut two = table();
        two.extend(table());
        // The second program has the same addresses, so its rows replace those of the first.
        assert_eq!(lines(&two, 3, 0x20).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 6, 13]);
        assert_eq!(run_programs(&two, b"").unwrap().places(3, 0)[0].file, 1);
    }

    #[test]
    fn rows_of_each_kernel_count_from_one() {
        let two = table_of(&[(3, 12), (4, 22)]);
        let lines_at = |section, offset| lines(&two, section, offset).iter().map(|(line, _)| *line).collect::<Vec<_>>();
        assert_eq!(lines_at(3, 0x20), [3, 6, 13]);
        assert_eq!(lines_at(4, 0x20), [13, 16, 23]);
    }

    #[test]
    fn a_row_that_is_inlined_at_a_later_row_or_in_an_unlisted_file_is_refused() {
        let mut later = table();
        let at = later.windows(3).position(|bytes| bytes == [0x90, 1, 0]).unwrap();
        later[at + 1] = 9;
        assert_eq!(run_programs(&later, b"").unwrap_err(), "row 2 is inlined at row 9, which follows it");
        let mut other = table();
        let at = other.windows(3).position(|bytes| bytes == [3, 12, 1]).unwrap();
        // Sets file 7 in place of line 13.
        other[at..at + 2].copy_from_slice(&[4, 7]);
        assert_eq!(run_programs(&other, b"").unwrap_err(), "row 1 names file 7, which is not listed");
    }

    #[test]
    fn a_table_cut_anywhere_is_an_error_and_a_changed_byte_no_panic() {
        let whole = table();
        for end in 1..whole.len() {
            assert!(run_programs(&whole[..end], b"").is_err(), "cut at {end}");
        }
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut changed = whole.clone();
                changed[at] = byte;
                if let Ok(table) = run_programs(&changed, b"sq\0") {
                    table.places(3, 0x20);
                }
            }
        }
    }
}
