//! Resolves arguments into options.
//!
//! Contradictions are refused here, so the commands see only combinations that can be run.

use std::path::{Path, PathBuf};

use crate::cli::{
    AgainstArgs, BackendChoice, DisplayArgs, GateArgs, Narrowing, PassArgs, ProfileArgs, ProgressChoice, RunArgs,
    ShowArgs, Sizes, TargetArgs, TrustArgs, TryArgs, TuneArgs,
};
use crate::failure::Failure;
use runner_backend::sim::SimBackend;
use runner_compile::Network;
use runner_progress::Style;
use runner_types::{BackendKind, GroupPlace, Shard};

/// Name in messages of the manifest that `runner try` drafts.
pub const TRIED: &str = "try.toml";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The first GPU or, without one, the simulator's default GPU.
    Auto,
    /// GPU with this ordinal.
    Gpu(u32),
    /// Simulator of the GPU with this name, or of the default one.
    Simulator(Option<String>),
}

impl Target {
    /// Fails if the options contradict each other or name a GPU that the simulator does not know.
    pub fn resolve(args: &TargetArgs) -> Result<Self, Failure> {
        let simulates = args.backend == BackendChoice::Sim || args.sim_device.is_some();
        if let (Some(name), BackendChoice::Cuda) = (&args.sim_device, args.backend) {
            return Err(Failure::usage(format!("--sim-device {name} and --backend cuda contradict each other")));
        }
        if simulates && args.device != 0 {
            return Err(Failure::usage(format!(
                "--device {} needs a GPU, but the simulator was requested",
                args.device
            )));
        }
        if let Some(name) = &args.sim_device {
            SimBackend::new(Some(name), simt::Options::default())
                .map_err(|error| Failure::usage(format!("--sim-device: {error}")))?;
        }
        Ok(match args.backend {
            _ if simulates => Self::Simulator(args.sim_device.clone()),
            BackendChoice::Auto if args.device == 0 => Self::Auto,
            _ => Self::Gpu(args.device),
        })
    }

    /// Ordinal of the GPU, if the target is one; otherwise 0.
    pub const fn ordinal(&self) -> u32 {
        match self {
            Self::Gpu(ordinal) => *ordinal,
            Self::Auto | Self::Simulator(_) => 0,
        }
    }
}

/// Command that a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Run,
    /// One manifest of a `run` that ends with one table of all experiments.
    OneOfSeveral,
    /// A run that only counts.
    Profile,
    /// A run without a manifest, whose report is kept on request.
    Try {
        keeps_report: bool,
    },
    /// A run that shows nothing.
    Probe,
    /// Finalists of a search.
    Tune,
}

/// Part of a plan for one task of a submitted job, as planned at submission.
#[derive(Debug, Clone)]
pub struct Portion {
    pub groups: Vec<GroupPlace>,
    /// Number of cases in the whole plan.
    pub cases: u64,
    /// Number of groups in the whole plan.
    pub group_count: u32,
    /// Commit of the submitted checkout.
    pub revision: Option<String>,
    /// Hash of the files that the job copied.
    pub files: String,
}

/// What `run` and `profile` do with one manifest.
#[derive(Debug, Clone)]
pub struct RunOptions {
    pub manifest: PathBuf,
    pub narrowing: Narrowing,
    pub target: Target,
    pub sanitize: bool,
    /// Backend whose axes are used; `None` for the one that runs.
    pub sizes: Option<BackendKind>,
    pub kind: Kind,
    pub out: Option<PathBuf>,
    pub resume: bool,
    /// Part of the plan to run; `None` for all of it.
    pub shard: Option<Shard>,
    /// Part that a submission has already planned; `None` to plan here.
    pub portion: Option<Portion>,
    pub network: Network,
    pub trust: TrustArgs,
    pub passes: PassArgs,
    pub gate: GateArgs,
    pub against: AgainstArgs,
    /// Whether to print events instead of tables.
    pub json: bool,
    /// Folder for the buffers and output of each case.
    pub keep_outputs: Option<PathBuf>,
    /// Folder for the counts of each PTX line.
    pub line_counts: Option<PathBuf>,
    /// Number of slowest cases to list at the end.
    pub slowest: Option<usize>,
    pub display: DisplayArgs,
}

impl RunOptions {
    /// A whole run of a manifest, with every option at its default.
    fn new(manifest: &Path, kind: Kind, target: Target) -> Self {
        Self {
            manifest: manifest.to_owned(),
            narrowing: Narrowing::default(),
            target,
            sanitize: true,
            sizes: None,
            kind,
            out: None,
            resume: false,
            shard: None,
            portion: None,
            network: Network::Allowed,
            trust: TrustArgs::default(),
            passes: PassArgs::default(),
            gate: GateArgs::default(),
            against: AgainstArgs::default(),
            json: false,
            keep_outputs: None,
            line_counts: None,
            slowest: None,
            display: DisplayArgs::default(),
        }
    }

    pub fn of_run(args: &RunArgs, manifest: &Path) -> Result<Self, Failure> {
        let kind = if args.manifests.len() > 1 || !args.folders.is_empty() { Kind::OneOfSeveral } else { Kind::Run };
        Ok(Self {
            narrowing: args.narrowing.clone(),
            sanitize: !args.no_sanitize,
            out: args.out.clone(),
            resume: args.resume,
            shard: args.shard,
            network: network(args.offline),
            trust: args.trust.clone(),
            passes: args.passes,
            gate: args.gate,
            against: args.against.clone(),
            json: args.json,
            keep_outputs: args.keep_outputs.clone(),
            slowest: args.slowest,
            display: args.display,
            ..Self::new(manifest, kind, Target::resolve(&args.target)?)
        })
    }

    pub fn of_profile(args: &ProfileArgs) -> Self {
        Self {
            narrowing: args.narrowing.clone(),
            sizes: (args.sizes == Sizes::Sim).then_some(BackendKind::Sim),
            out: args.out.clone(),
            network: network(args.offline),
            trust: args.trust.clone(),
            passes: PassArgs { counters: true, lines: args.source, ..PassArgs::default() },
            display: args.display,
            ..Self::new(&args.manifest, Kind::Profile, Target::Gpu(args.device))
        }
    }

    /// Run of kernels without a manifest. The report goes to `folder` unless `--out` names another.
    pub fn of_try(args: &TryArgs, folder: &Path) -> Result<Self, Failure> {
        let kind = Kind::Try { keeps_report: args.out.is_some() };
        Ok(Self {
            sanitize: !args.no_sanitize,
            out: Some(args.out.clone().unwrap_or_else(|| folder.to_owned())),
            network: network(args.offline),
            trust: args.trust.clone(),
            passes: PassArgs { thorough: args.thorough, ..PassArgs::default() },
            display: args.display,
            ..Self::new(Path::new(TRIED), kind, Target::resolve(&args.target)?)
        })
    }

    /// Silent run of these kernels, or of all, to learn how they end.
    pub fn of_probe(args: &TryArgs, folder: &Path, variants: &[&str]) -> Result<Self, Failure> {
        let variant = variants.iter().map(|variant| (*variant).to_owned()).collect();
        let narrowing = Narrowing { variant, ..Narrowing::default() };
        Ok(Self { kind: Kind::Probe, narrowing, out: Some(folder.to_owned()), ..Self::of_try(args, folder)? })
    }

    pub fn of_tune(args: &TuneArgs, manifest: &Path) -> Result<Self, Failure> {
        Ok(Self {
            narrowing: args.narrowing.clone(),
            sanitize: !args.no_sanitize,
            out: args.out.clone(),
            network: network(args.offline),
            trust: args.trust.clone(),
            display: args.display,
            ..Self::new(manifest, Kind::Tune, Target::resolve(&args.target)?)
        })
    }

    /// Run of one case. The report goes to `folder`, the case's buffers and output to `outputs`.
    pub fn of_show(args: &ShowArgs, folder: &Path, outputs: &Path) -> Result<Self, Failure> {
        Ok(Self {
            narrowing: Narrowing { set: args.set.clone(), ..Narrowing::default() },
            sanitize: !args.no_sanitize,
            out: Some(folder.join("report")),
            network: network(args.offline),
            trust: args.trust.clone(),
            passes: PassArgs { thorough: args.thorough, ..PassArgs::default() },
            keep_outputs: Some(outputs.to_owned()),
            display: DisplayArgs { quiet: true, ..DisplayArgs::default() },
            ..Self::new(&args.manifest, Kind::Try { keeps_report: false }, Target::resolve(&args.target)?)
        })
    }

    pub const fn style(&self) -> Style {
        match self.display.progress {
            _ if matches!(self.kind, Kind::Probe) => Style::Silent,
            _ if self.display.quiet => Style::Quiet,
            ProgressChoice::Auto | ProgressChoice::Bars => Style::Bars,
            ProgressChoice::Lines => Style::Lines,
            ProgressChoice::Json => Style::Json,
        }
    }
}

pub const fn network(offline: bool) -> Network {
    if offline { Network::Forbidden } else { Network::Allowed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};

    fn target(options: &[&str]) -> Result<Target, String> {
        let words = ["runner", "run", "m.toml"].iter().chain(options);
        match Cli::read(words).map(|cli| cli.command) {
            Ok(Command::Run(args)) => Target::resolve(&args.target).map_err(|failure| failure.message),
            other => Err(format!("{other:?}")),
        }
    }

    fn refusal(options: &[&str]) -> String {
        target(options).err().unwrap_or_default()
    }

    #[test]
    fn options_decide_the_target() {
        assert_eq!(target(&[]), Ok(Target::Auto));
        assert_eq!(target(&["--device", "3"]), Ok(Target::Gpu(3)));
        assert_eq!(target(&["--backend", "cuda"]), Ok(Target::Gpu(0)));
        assert_eq!(target(&["--sim-device", "k80"]), Ok(Target::Simulator(Some("k80".to_owned()))));
        assert_eq!(target(&["--backend", "sim", "--device", "0"]), Ok(Target::Simulator(None)));
    }

    #[test]
    fn the_help_names_every_device_that_the_simulator_knows() {
        let unknown = refusal(&["--sim-device", "none"]);
        let (_, names) = unknown.split_once("use one of ").unwrap_or_default();
        let help = Cli::read(["runner", "run", "--help"]).map_or_else(|help| help.to_string(), |_| String::new());
        assert!(names.split(", ").count() >= 6, "{unknown}");
        for name in names.split(", ") {
            assert!(help.contains(&format!(" {name}")), "{name} is not in:\n{help}");
        }
    }

    #[test]
    fn contradicting_options_are_refused_by_name() {
        let unknown = refusal(&["--sim-device", "h1000"]);
        assert!(unknown.starts_with("--sim-device: ") && unknown.contains("h100, a100"), "{unknown}");
        let two = refusal(&["--sim-device", "k80", "--backend", "cuda"]);
        assert_eq!(two, "--sim-device k80 and --backend cuda contradict each other");
        for options in [&["--backend", "sim", "--device", "7"], &["--sim-device", "k80", "--device", "7"]] {
            let text = refusal(options);
            assert!(text.starts_with("--device 7 needs a GPU"), "{text}");
        }
    }
}
