//! Arguments of `try` and `init`, which draft a manifest for the kernels of a source.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{DisplayArgs, TargetArgs, TrustArgs};

/// The kernels and what they are run with.
#[derive(Debug, Clone, Args)]
pub struct KernelArgs {
    /// Kernel in the file, as in `-k old -k 'new<float>'` or `-k 'add(const float*, int)'`; may be repeated. The first
    /// one is the baseline [default: all that take the same parameters].
    #[arg(help_heading = "Kernels", long, short = 'k', value_name = "KERNEL")]
    pub kernel: Vec<String>,
    /// First size, as in `2**20,2**24`; other sizes follow from it [default: about 2**24, or 2**16 on the simulator;
    /// 2**12 and 2**8 if buffers are two-dimensional].
    #[arg(help_heading = "Kernels", long, value_name = "N", value_delimiter = ',')]
    pub n: Vec<String>,
    /// Threads per block, as in `256` or `32,8`, for all kernels, or repeated for each [default: from the file's
    /// launch, or what the kernel is written for; otherwise 256, or 16,16 in two dimensions].
    #[arg(help_heading = "Kernels", long, value_name = "THREADS")]
    pub block: Vec<String>,
    /// Blocks, as in `ceil_div(n, 4 * block)`, for all kernels, or repeated for each [default: from the file's launch,
    /// or one thread per element].
    #[arg(help_heading = "Kernels", long, value_name = "BLOCKS")]
    pub grid: Vec<String>,
    /// Bytes of dynamic shared memory, as in `4 * block`, for all kernels, or repeated for each [default: from the
    /// file's launch, or as much as the kernel indexes].
    #[arg(help_heading = "Kernels", long, value_name = "BYTES")]
    pub shared: Vec<String>,
    /// Header folder; may be repeated.
    #[arg(help_heading = "Kernels", long = "include-path", short = 'I', value_name = "DIR")]
    pub include_paths: Vec<PathBuf>,
    /// Macro, as in `-D TILE=16`; may be repeated.
    #[arg(help_heading = "Kernels", long = "define", short = 'D', value_name = "NAME[=VALUE]")]
    pub defines: Vec<String>,
    /// Value of a parameter, as in `alpha=0.5`, `sums=n/256`, `data=inout` or `index=in:0..255:n`; may be repeated.
    #[arg(help_heading = "Kernels", long = "arg", value_name = "NAME=VALUE")]
    pub arguments: Vec<String>,
    /// Permitted relative difference of floats [default: depends on the type, 1e-5 for float].
    #[arg(help_heading = "Kernels", long, value_name = "FRACTION", value_parser = fraction)]
    pub tolerance: Option<f64>,
}

fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a non-negative number, such as `1e-4`".to_owned())
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Pointers to const become random inputs, and so do pointers that the kernel only reads. Other pointers become outputs; \
if the kernel reads them first, as in y[i] += x[i], they also have initial contents. Integers become sizes, and floats \
numbers, that differ from each other; bools take both values. Buffers are as long as the kernels index, and launches \
are those in the file. The outputs of every kernel are compared with those of the first.")]
pub struct TryArgs {
    /// CUDA C++ file, or kernels from several: `a.cu:old b.cu:new`.
    #[arg(required = true, value_name = "FILE[:KERNEL]")]
    pub sources: Vec<String>,
    #[command(flatten)]
    pub kernels: KernelArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Turn the simulator's sanitizer off; bounds are still checked.
    #[arg(long, help_heading = "Device")]
    pub no_sanitize: bool,
    /// On the simulator, check the kernels on a second set of inputs, however long it takes.
    #[arg(long, help_heading = "Device")]
    pub thorough: bool,
    /// Also write the manifest to this file.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Also write the report to this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do not download anything.
    #[arg(long)]
    pub offline: bool,
    #[command(flatten)]
    pub trust: TrustArgs,
    #[command(flatten)]
    pub display: DisplayArgs,
}

/// A service that runs jobs for pull requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CiService {
    /// GitHub Actions.
    Github,
    /// GitLab CI.
    Gitlab,
}

#[derive(Debug, Args)]
pub struct InitArgs {
    /// CUDA C++ file, or kernels from several: `a.cu:old b.cu:new`.
    #[arg(required_unless_present = "ci", value_name = "FILE[:KERNEL]")]
    pub sources: Vec<String>,
    #[command(flatten)]
    pub kernels: KernelArgs,
    /// File of the manifest [default: `experiments/NAME.toml`, named after the source].
    #[arg(long, value_name = "FILE", conflicts_with = "ci")]
    pub out: Option<PathBuf>,
    /// Write CI jobs that compare a pull request with its base and comment on it, instead of a manifest.
    #[arg(long, value_enum, value_name = "SERVICE", conflicts_with = "sources")]
    pub ci: Option<CiService>,
    /// Overwrite existing files.
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(subcommand)]
    pub from: ImportFrom,
}

/// Where compiled kernels come from.
#[derive(Debug, Subcommand)]
pub enum ImportFrom {
    /// Import a kernel from Triton's cache, with its PTX, metadata and intermediate code.
    Triton(TritonArgs),
}

#[derive(Debug, Args)]
pub struct TritonArgs {
    /// Folder of the kernel in Triton's cache (`~/.triton/cache/HASH`), or the whole cache.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Kernel to import, if the folder has several.
    #[arg(long, short = 'k', value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// File of the manifest [default: `experiments/KERNEL.toml`]. The PTX goes to `kernels/` next to the manifest's
    /// folder.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite existing files.
    #[arg(long)]
    pub force: bool,
}
