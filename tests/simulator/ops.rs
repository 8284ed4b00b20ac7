//! One file an operation: `tests/ptx/ops/*.ptx` on the simulator.

use crate::bench::{Arg, Bench};
use crate::vectors::files::{OpFile, files};

fn check(file: &OpFile) -> Result<(), String> {
    let mut bench = Bench::new(&file.ptx);
    let out = bench.buffer(&vec![0; 32 * file.width / 4]);
    bench.launch("test", [1, 1, 1], [32, 1, 1], &[Arg::Address(out)]).map_err(|e| e.to_string())?;
    let mut bytes = vec![0; 32 * file.width];
    bench.machine.read(out, &mut bytes).unwrap();
    file.judge(&bytes)
}

#[test]
fn every_operation_gives_the_lanes_that_its_file_expects() {
    let files = files();
    let wrong: Vec<String> =
        files.iter().filter_map(|file| check(file).err().map(|e| format!("{}: {e}", file.name))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
