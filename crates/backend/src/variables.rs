//! Names of the variables that a module's kernels can write.
//!
//! Machine code lists them in its symbol table, as data of global memory sections; PTX declares them. Kernels cannot
//! write constant memory, so it is not listed.

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use runner_types::CodeKind;

/// Sections of global memory, without and with initial values.
const SECTIONS: [&str; 2] = [".nv.global", ".nv.global.init"];

/// Prefix of the names of string constants; no identifier in source can start with it.
const STRING: char = '$';

/// Mangled names of the writable variables of compiled code; none for a plug-in.
pub(super) fn names(code: &[u8], kind: CodeKind) -> Vec<String> {
    let mut names = match kind {
        CodeKind::Cubin => of_cubin(code),
        CodeKind::Ptx => std::str::from_utf8(code).map(of_ptx).unwrap_or_default(),
        CodeKind::Plugin => Vec::new(),
    };
    names.retain(|name| !name.starts_with(STRING));
    names
}

fn of_cubin(code: &[u8]) -> Vec<String> {
    let Ok(file) = ElfFile64::<Endianness>::parse(code) else { return Vec::new() };
    let sections = file.sections().filter(|section| section.name().is_ok_and(|name| SECTIONS.contains(&name)));
    let global: Vec<_> = sections.map(|section| section.index()).collect();
    let symbols = file.symbols().filter(|symbol| {
        symbol.kind() == SymbolKind::Data && symbol.section_index().is_some_and(|index| global.contains(&index))
    });
    symbols.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
}

/// Names declared outside functions. Such a declaration begins a line: `.visible .global .align 4 .b8 name[16];`.
fn of_ptx(text: &str) -> Vec<String> {
    let declared = text.lines().filter_map(|line| {
        let mut words = line.trim_end().split_ascii_whitespace().peekable();
        let linkage = words.next_if(|word| [".visible", ".weak", ".common"].contains(word));
        (linkage.is_some() || line.starts_with(".global")).then_some(())?;
        words.next_if_eq(&".global")?;
        let name = words.find(|word| !word.starts_with('.') && word.parse::<u32>().is_err())?;
        Some(name.split(['[', ';', '=']).next()?.to_owned())
    });
    declared.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_declares_variables_of_global_memory_at_the_beginning_of_a_line() {
        let text = ".version 9.0\n.visible .global .align 4 .b8 stored[262148];\n.global .align 4 .u32 _ZL5count;\n\
                    .global .align 1 .b8 $str[4] = {37, 100, 10, 0};\n\
                    .visible .const .align 4 .b8 table[16];\n.weak .global .f32 x = 1;\n.extern .global .u32 other;\n\
                    .visible .entry k(\n.param .u64 p\n)\n{\n\tld.global.u32 %r1, [stored];\n}\n";
        assert_eq!(names(text.as_bytes(), CodeKind::Ptx), ["stored", "_ZL5count", "x"]);
        assert!(names(text.as_bytes(), CodeKind::Plugin).is_empty());
        assert!(names(b"no ELF", CodeKind::Cubin).is_empty());
    }
}
