//! The kernels with which the CUDA backend fills and copies memory before a run, on the simulator.

use simt::{LaunchSpec, Machine, Options};

const PTX: &str = include_str!("../../crates/backend/src/cuda/prepare.ptx");

const THREADS: u32 = 256;

const ROOM: u64 = 80_000;

/// Runs `kernel` on memory filled with 0xaa and returns that memory. The destination is at offset `target`.
fn run(machine: &mut Machine, kernel: &str, to: u64, target: u64, others: [Vec<u8>; 2]) -> Vec<u8> {
    let module = machine.load(PTX).unwrap();
    machine.fill(to, ROOM, 0xaa).unwrap();
    let [second, third] = others;
    let args = [(to + target).to_le_bytes().to_vec(), second, third];
    let (grid, block) = ([2, 1, 1], [THREADS, 1, 1]);
    let spec = LaunchSpec { kernel, grid, block, shared: 0, cooperative: false, cluster: None, args: &args };
    machine.launch(module, &spec).unwrap();
    let mut found = vec![0; ROOM as usize];
    machine.read(to, &mut found).unwrap();
    found
}

fn machine() -> Machine {
    Machine::new(simt::profiles().into_iter().next().unwrap(), Options::default()).unwrap()
}

#[test]
fn every_byte_is_copied_and_none_besides_however_they_are_aligned() {
    let mut machine = machine();
    let [from, to] = [(); 2].map(|()| machine.alloc(ROOM).unwrap());
    let content: Vec<u8> = (0..ROOM as u32).map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    machine.write(from, &content).unwrap();
    for (source, target) in [(0, 0), (16, 32), (4, 0), (3, 1), (0, 8)] {
        for bytes in [0, 1, 15, 16, 17, 4095, 70_001_u64] {
            let others = [from + source, bytes].map(|value| value.to_le_bytes().to_vec());
            let found = run(&mut machine, "copy_bytes", to, target, others);
            let mut expected = vec![0xaa; ROOM as usize];
            let [source, target, bytes] = [source, target, bytes].map(|value| value as usize);
            expected[target..target + bytes].copy_from_slice(&content[source..source + bytes]);
            assert!(found == expected, "{bytes} bytes from {source} to {target}");
        }
    }
}

#[test]
fn every_byte_is_filled_and_none_besides_however_they_are_aligned() {
    let mut machine = machine();
    let to = machine.alloc(ROOM).unwrap();
    for target in [0, 16, 4, 1] {
        for bytes in [0, 1, 15, 16, 17, 4095, 70_001_u64] {
            let value = 0xc3c3_c3c3_u32;
            let others = [value.to_le_bytes().to_vec(), bytes.to_le_bytes().to_vec()];
            let found = run(&mut machine, "fill_bytes", to, target, others);
            let mut expected = vec![0xaa; ROOM as usize];
            expected[target as usize..(target + bytes) as usize].fill(0xc3);
            assert!(found == expected, "{bytes} bytes at {target}");
        }
    }
}
