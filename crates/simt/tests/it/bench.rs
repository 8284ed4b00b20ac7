//! A simulated device under test, with one module.

use simt::{Counters, LaunchError, LaunchReport, LaunchSpec, Machine, ModuleId, Options, TrapKind, profiles};

pub struct Bench {
    pub machine: Machine,
    pub module: ModuleId,
}

#[derive(Clone)]
pub enum Arg {
    Address(u64),
    Int(i32),
    Bytes(Vec<u8>),
}

impl Bench {
    pub fn new(ptx: &str) -> Self {
        Self::load(ptx, Options::default())
    }

    pub fn load(ptx: &str, options: Options) -> Self {
        let mut machine = Machine::new(profiles().remove(0), options).unwrap();
        machine.count_lines(true);
        let module = machine.load(ptx).unwrap();
        Self { machine, module }
    }

    pub fn buffer(&mut self, values: &[i32]) -> u64 {
        let address = self.machine.alloc(values.len() as u64 * 4).unwrap();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.machine.write(address, &bytes).unwrap();
        address
    }

    pub fn ints(&self, address: u64, count: usize) -> Vec<i32> {
        let mut bytes = vec![0; count * 4];
        self.machine.read(address, &mut bytes).unwrap();
        bytes.chunks_exact(4).map(|c| i32::from_le_bytes(c.try_into().unwrap())).collect()
    }

    pub fn launch(
        &mut self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        args: &[Arg],
    ) -> Result<LaunchReport, LaunchError> {
        self.launch_with(kernel, (grid, block, 0, false), args)
    }

    pub fn launch_with(
        &mut self,
        kernel: &str,
        (grid, block, shared, cooperative): ([u32; 3], [u32; 3], u32, bool),
        args: &[Arg],
    ) -> Result<LaunchReport, LaunchError> {
        let args: Vec<Vec<u8>> = args
            .iter()
            .map(|a| match a {
                Arg::Address(a) => a.to_le_bytes().to_vec(),
                Arg::Int(v) => v.to_le_bytes().to_vec(),
                Arg::Bytes(bytes) => bytes.clone(),
            })
            .collect();
        let spec = LaunchSpec { kernel, grid, block, shared, cooperative, cluster: None, args: &args };
        let done = self.machine.launch(self.module, &spec);
        done.inspect(check_lines)
    }
}

/// Checks that the counts of all lines add up to those of the launch.
fn check_lines(report: &LaunchReport) {
    let mut sum = Counters::default();
    report.lines.iter().for_each(|line| sum.add(&line.counters));
    let Counters { warps, blocks, barriers, .. } = report.counters;
    assert_eq!(Counters { warps, blocks, barriers, ..sum }, report.counters);
}

/// Returns the fault of a launch, which must have one.
pub fn trap(result: Result<LaunchReport, LaunchError>) -> (TrapKind, String) {
    match result.unwrap_err() {
        LaunchError::Trap(trap) => (trap.kind, trap.to_string()),
        LaunchError::Refused(error) => panic!("refused: {error}"),
    }
}
