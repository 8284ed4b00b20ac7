//! Cubins that the tests build instruction by instruction, and files that are not cubins.

#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use sass::{Cubin, Listing, SassError, Tables, read_disassembly};

/// Instruction words of an exit and of a branch to itself, as ptxas writes them for `sm_90`.
const EXIT: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d;
const LOOP: u128 = 0x000f_c000_0383_ffff_ffff_fffc_00fc_7947;

/// Returns an ELF file with the section `.text.k`, which contains `code`, and a function of `length` bytes at offset
/// `start`.
fn cubin(machine: u16, code: &[u8], start: u64, length: u64) -> Vec<u8> {
    cubin_with(machine, code, &[(1, start, length)])
}

/// Like [`cubin`], with several functions: index of the name in `\0k\0f\0`, start, and length.
fn cubin_with(machine: u16, code: &[u8], functions: &[(u32, u64, u64)]) -> Vec<u8> {
    const HEADER: usize = 64;
    const SYMBOL: usize = 24;
    // A function with global binding, in section 1.
    let mut symbols = vec![0; SYMBOL];
    for (name, start, length) in functions {
        symbols.extend(name.to_le_bytes());
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend(start.to_le_bytes());
        symbols.extend(length.to_le_bytes());
    }
    let names = b"\0.text.k\0.symtab\0.strtab\0.shstrtab\0";
    // Name, type, flags, content and link of each section, followed by the size of its entries.
    let sections = [
        (1_u32, 1_u32, 6_u64, code, 0_u32, 0_u64),
        (9, 2, 0, symbols.as_slice(), 3, SYMBOL as u64),
        (17, 3, 0, b"\0k\0f\0".as_slice(), 0, 0),
        (25, 3, 0, names.as_slice(), 0, 0),
    ];
    let contents: usize = sections.iter().map(|section| section.3.len()).sum();
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 65, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    bytes.extend(machine.to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    bytes.extend([0; 16]);
    bytes.extend((HEADER as u64 + contents as u64).to_le_bytes());
    bytes.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 5, 0, 4, 0]);
    assert_eq!(bytes.len(), HEADER);
    let mut headers = vec![0; HEADER];
    for (name, kind, flags, content, link, entry) in sections {
        headers.extend(name.to_le_bytes());
        headers.extend(kind.to_le_bytes());
        headers.extend(flags.to_le_bytes());
        headers.extend(0_u64.to_le_bytes());
        headers.extend((bytes.len() as u64).to_le_bytes());
        headers.extend((content.len() as u64).to_le_bytes());
        headers.extend(link.to_le_bytes());
        headers.extend(1_u32.to_le_bytes());
        headers.extend(1_u64.to_le_bytes());
        headers.extend(entry.to_le_bytes());
        bytes.extend(content);
    }
    bytes.extend(headers);
    bytes
}

fn code() -> Vec<u8> {
    [EXIT, LOOP].into_iter().flat_map(u128::to_le_bytes).collect()
}

const TEXT: &[u8] = br#"[{}, [{"function-name": "k", "start": 0, "length": 32, "sass-instructions": [
    {"opcode": "EXIT"}, {"opcode": "BRA", "operands": "0x10"}]}]]"#;

#[test]
fn words_text_and_control_bits_are_joined_in_order() {
    let bytes = cubin(190, &code(), 0, 32);
    let cubin = Cubin::parse(&bytes).unwrap();
    assert_eq!(cubin.functions()[0].words, [EXIT, LOOP]);
    let tables = Tables::read(&cubin).unwrap();
    let listings = Listing::join(&cubin, &read_disassembly(TEXT).unwrap(), &tables).unwrap();
    let [listing] = listings.as_slice() else { panic!("one function") };
    let joined: Vec<_> =
        listing.instructions.iter().map(|i| (i.offset, i.opcode.as_str(), i.control().stall)).collect();
    assert_eq!(joined, [(0, "EXIT", 5), (16, "BRA", 0)]);
    assert!(listing.instructions.iter().all(|i| i.ptx_line.is_none() && i.source.is_empty()), "there is no table");
}

#[test]
fn a_function_within_the_code_of_its_caller_has_a_listing_of_its_own() {
    let bytes = cubin_with(190, &code(), &[(1, 0, 32), (3, 16, 16)]);
    let cubin = Cubin::parse(&bytes).unwrap();
    let text = br#"[{}, [
        {"function-name": "k", "start": 0, "length": 32, "sass-instructions": [{"opcode": "EXIT"}]},
        {"function-name": "f", "start": 16, "length": 16, "sass-instructions": [{"opcode": "BRA"}]}]]"#;
    let listings = Listing::join(&cubin, &read_disassembly(text).unwrap(), &Tables::default()).unwrap();
    let joined: Vec<_> = listings.iter().map(|l| (l.name.as_str(), l.section, l.instructions[0].word)).collect();
    assert_eq!(joined, [("k", 1, EXIT), ("f", 1, LOOP)]);
}

#[test]
fn text_of_another_cubin_is_refused() {
    let bytes = cubin(190, &code()[..16], 0, 16);
    let cubin = Cubin::parse(&bytes).unwrap();
    let why = Listing::join(&cubin, &read_disassembly(TEXT).unwrap(), &Tables::default()).unwrap_err();
    let expected = "unexpected output of nvdisasm: `k` has 2 instructions there, but 1 in the cubin";
    assert_eq!(why.to_string(), expected);
}

#[test]
fn files_that_are_no_cubins_are_refused_with_the_reason() {
    assert!(matches!(Cubin::parse(b"no ELF file"), Err(SassError::Elf(_))));
    assert!(matches!(Cubin::parse(&cubin(62, &code(), 0, 32)), Err(SassError::Machine(62))));
    let short = Cubin::parse(&cubin(190, &code(), 0, 24)).map(|_| ()).unwrap_err();
    assert_eq!(short, SassError::Length { function: "k".to_owned(), bytes: 24 });
    for (start, length) in [(16, 32), (u64::MAX - 15, 16), (0, u64::MAX - 15)] {
        let outside = Cubin::parse(&cubin(190, &code(), start, length)).map(|_| ()).unwrap_err();
        assert_eq!(outside, SassError::Elf("the code of `k` is outside of its section".to_owned()));
    }
}

#[test]
fn a_cubin_that_is_cut_or_has_a_changed_byte_never_panics() {
    let whole = cubin(190, &code(), 0, 32);
    let read = |bytes: &[u8]| Cubin::parse(bytes).and_then(|cubin| Tables::read(&cubin)).is_ok();
    assert!(read(&whole));
    for end in 0..whole.len() {
        read(&whole[..end]);
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            read(&changed);
        }
    }
}
