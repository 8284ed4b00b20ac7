//! Arguments of commands about the machine and the program, and of the worker.

use std::path::PathBuf;

use clap::Args;

use super::TargetArgs;
use runner_workers::cores::Cores;

#[derive(Debug, Args)]
pub struct DevicesArgs {
    /// Print JSON, which `runner plan --device-profile` reads.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Measure each GPU again: its clock, memory and arithmetic.
    #[arg(long)]
    pub calibrate: bool,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct SetupArgs {
    /// CUDA major version to download [default: the newest that the driver supports].
    #[arg(long, value_name = "MAJOR")]
    pub cuda: Option<u32>,
    /// Also download nvcc (which compiles sources that NVRTC refuses), library headers, compute-sanitizer and nvdisasm.
    #[arg(long)]
    pub all: bool,
    /// Do not download anything; fail if the compiler is missing.
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Write to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to generate completions for.
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Command to describe; without one, the program itself.
    pub command: Option<String>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct WorkerArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[arg(long)]
    pub no_sanitize: bool,
    /// Mark launches for the profiler around this process, and measure no times.
    #[arg(long)]
    pub profiled: bool,
    /// Leave out guard zones for the compute-sanitizer around this process, and measure no times.
    #[arg(long)]
    pub memchecked: bool,
    /// Let CUPTI trace the kernels, for calibration.
    #[arg(long)]
    pub traced: bool,
    /// Run only on these cores.
    #[arg(long, value_name = "LIST")]
    pub cores: Option<Cores>,
}
