//! Where kernels run.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum BackendChoice {
    /// A GPU if there is one, otherwise the simulator.
    #[default]
    Auto,
    /// An NVIDIA GPU.
    Cuda,
    /// The embedded simulator.
    Sim,
}

/// Where the kernels run.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct TargetArgs {
    /// What runs the kernels.
    #[arg(help_heading = "Device", long, value_enum, default_value_t)]
    pub backend: BackendChoice,
    /// Index of the GPU in the list of `runner devices`.
    #[arg(help_heading = "Device", long, value_name = "N", default_value_t = 0)]
    pub device: u32,
    /// GPU to simulate: h100, a100, v100, k80, rtx4090 or b200.
    #[arg(help_heading = "Device", long, value_name = "NAME")]
    pub sim_device: Option<String>,
}
