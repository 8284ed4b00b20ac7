//! Prints the machine code of a cubin next to its source lines. Usage: `list FILE.cubin FILE.json`, where the second
//! file is the output of `nvdisasm -json FILE.cubin`.

use std::error::Error;

use sass::{Cubin, Listing, Tables, read_disassembly};

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let [cubin, json] = paths.as_slice() else { return Err("usage: list FILE.cubin FILE.json".into()) };
    let bytes = std::fs::read(cubin)?;
    let cubin = Cubin::parse(&bytes)?;
    let tables = Tables::read(&cubin)?;
    for listing in Listing::join(&cubin, &read_disassembly(&std::fs::read(json)?)?, &tables)? {
        println!("{}", listing.name);
        for instruction in &listing.instructions {
            let lines: Vec<String> = instruction.source.iter().map(|place| place.line.to_string()).collect();
            let ptx = instruction.ptx_line.map_or_else(String::new, |line| line.to_string());
            println!(
                "{:>6x}  stall {:>2}  PTX {ptx:>4}  source {:<12}  {:>4} {} {}",
                instruction.offset,
                instruction.control().stall,
                lines.join(" < "),
                instruction.predicate,
                instruction.opcode,
                instruction.operands,
            );
        }
    }
    Ok(())
}
