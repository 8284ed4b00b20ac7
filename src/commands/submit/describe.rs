//! Builds the job that a command line describes.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::again;
use crate::cli::{BackendChoice, SiteArgs, SubmitArgs};
use crate::commands::jobs::JOBS;
use crate::commands::send::Limits;
use crate::commands::{hints, plan};
use crate::console::Console;
use crate::failure::Failure;
use crate::session::HostCode;
use runner_cluster::{
    self, Experiment, Job, SETTINGS_FILE, Settings, Submission, plain_path, project_code, read_layer,
};
use runner_compile::Cache;
use runner_experiment::Manifest;
use runner_files::file_names::{hyphenated, slug};
use runner_lang::format::plural;
use runner_plan::Shards;
use runner_types::{BackendKind, DeviceInfo, GroupPlace, sha256_hex};

/// A job, with information gathered while describing it.
#[derive(Debug)]
pub struct Described {
    pub job: Job,
    pub dir: PathBuf,
    pub device: DeviceInfo,
    pub backend: BackendKind,
    /// Groups of each shard of each experiment.
    pub groups: Vec<Vec<Vec<GroupPlace>>>,
    /// Maximum time limits that the scheduler allows.
    pub limits: Limits,
}

pub fn job(args: &SubmitArgs, manifests: &[(&Path, Manifest)], console: &mut Console) -> Result<Described, Failure> {
    let (settings, code) = settings(&args.site)?;
    let (backend, device) = device(args)?;
    allow(code, args, console)?;
    let limits = Limits::ask(&settings);
    limits.allow(&settings)?;
    let (mut experiments, mut groups) = (Vec::with_capacity(manifests.len()), Vec::with_capacity(manifests.len()));
    for (path, manifest) in manifests {
        let planned = plan::narrowed(&args.narrowing, backend, Some(device.clone()));
        let shards = Shards::plan(manifest, &planned).map_err(|faults| console.faults(&faults))?;
        let divided = shards.divide(shards.count(settings.min_task_time.0 as f64));
        experiments.push(Experiment {
            manifest: path.to_path_buf(),
            name: manifest.name.clone(),
            hash: manifest.hash.clone(),
            seconds: divided.seconds,
            cases: divided.cases,
            groups: shards.whole().group_count() as u32,
        });
        groups.push(divided.groups);
    }
    let options = options(args, backend);
    let name = args.name.clone().unwrap_or_else(|| name(&experiments, &options));
    let bare = bare(name)?;
    let dir = folder(&bare);
    let job = Job {
        options,
        out: args.out.clone(),
        compare_with: args.verdict.compare_with.clone(),
        gate: args.verdict.gate,
        trust: args.trust.words(),
        device: (backend == BackendKind::Cuda).then(|| device.name.clone()),
        experiments,
        settings,
        command: command(args),
        ..bare
    };
    Ok(Described { job, dir, device, backend, groups, limits })
}

/// Words of the command that describes the job, without options for the present submission.
pub fn command(args: &SubmitArgs) -> Vec<String> {
    if !args.words.is_empty() {
        return args.words.clone();
    }
    let mut given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut words = Vec::new();
    while let Some(word) = given.next() {
        match word.as_str() {
            "--" => {
                words.push(word);
                words.extend(given.by_ref());
            }
            "--wait" => {}
            "--rerun" | "--after" => drop(given.next()),
            other if other.starts_with("--rerun=") || other.starts_with("--after=") => {}
            _ => words.push(word),
        }
    }
    words
}

/// A job of this program without experiments.
pub fn bare(name: String) -> Result<Job, Failure> {
    if hyphenated(&name).is_empty() {
        return Err(Failure::usage(format!("--name `{name}` cannot name the job's folder: use letters or digits")));
    }
    let here = std::env::current_dir()
        .map_err(|e| Failure::environment(format!("cannot determine the working directory: {e}")))?;
    let cache = Cache::locate().map_err(Failure::environment)?;
    if cache.root().is_relative() {
        let cache = cache.root().display();
        return Err(Failure::usage(format!(
            "the cache path {cache} is relative, but tasks run in a different directory: set RUNNER_CACHE to an \
             absolute path"
        )));
    }
    let job = Job {
        version: Job::VERSION,
        name,
        // Replaced by the copy that the submission keeps.
        program: std::env::current_exe().unwrap_or_default(),
        cache: cache.root().to_owned(),
        directory: here,
        ..Job::default()
    };
    Ok(Job { id: new_identity(&folder(&job)), ..job })
}

pub fn folder(job: &Job) -> PathBuf {
    let jobs = job.directory.join(JOBS);
    // Earlier versions wrote all names in lower case.
    let lower_case = jobs.join(slug(&job.name));
    if Job::read(&lower_case).is_ok_and(|known| known.name == job.name) {
        return lower_case;
    }
    jobs.join(hyphenated(&job.name))
}

/// Asks whether the code in the project's settings may run. A dry run only shows that code.
pub fn allow(code: Option<HostCode>, args: &SubmitArgs, console: &mut Console) -> Result<(), Failure> {
    let Some(code) = code.filter(|_| !args.sending.dry_run) else { return Ok(()) };
    let here = std::fs::canonicalize(".").unwrap_or_default();
    code.ask((&here, Path::new(SETTINGS_FILE)), args.trust.allow_host_code, console)
}

/// Reads settings from the command line, the project and the user, in this order of precedence. Also returns the code
/// in the project's settings.
pub fn settings(site: &SiteArgs) -> Result<(Settings, Option<HostCode>), Failure> {
    let refused = |error: runner_cluster::SettingsError| Failure::usage(error);
    let file = Path::new(SETTINGS_FILE);
    let options = toml::Table::try_from(site).map_err(Failure::usage)?;
    let project = read_layer(file).map_err(refused)?;
    let code = project_code(&project).map(|code| HostCode::of_text(file, &code));
    let user = match etcetera::choose_base_strategy() {
        Ok(strategy) => read_layer(&strategy.config_dir().join("runner").join(SETTINGS_FILE)).map_err(refused)?,
        Err(_) => toml::Table::new(),
    };
    Ok((runner_cluster::resolve([options, project, user]).map_err(refused)?, code))
}

/// Device that the nodes run the cases on.
fn device(args: &SubmitArgs) -> Result<(BackendKind, DeviceInfo), Failure> {
    let (backend, device) = plan::machine(&args.target, args.device_profile.as_deref())?;
    let was_named =
        args.device_profile.is_some() || args.target.backend == BackendChoice::Sim || args.target.sim_device.is_some();
    device.filter(|_| was_named || backend == BackendKind::Cuda).map(|device| (backend, device)).ok_or_else(|| {
        Failure::usage(
            "the nodes' GPU is unknown on this machine: pass --device-profile FILE, written by `runner devices --json` \
             on a node, or simulate one with --backend sim",
        )
    })
}

/// Options of `runner run` in each task.
fn options(args: &SubmitArgs, backend: BackendKind) -> Vec<String> {
    let mut options = selection(args, backend);
    options.extend(args.passes.processes.iter().map(|count| format!("--processes={count}")));
    let flags = [
        (args.passes.counters, "--counters"),
        (args.passes.memcheck, "--memcheck"),
        (args.passes.energy, "--energy"),
        (args.passes.thorough, "--thorough"),
        (args.passes.lines, "--lines"),
    ];
    options.extend(flags.into_iter().filter(|(given, _)| *given).map(|(_, flag)| flag.to_owned()));
    options
}

/// Options that select cases and device.
pub fn selection(args: &SubmitArgs, backend: BackendKind) -> Vec<String> {
    let mut options = vec![format!("--backend={backend}")];
    let mut add = |name: &str, value: &str| options.push(format!("--{name}={value}"));
    args.target.sim_device.iter().for_each(|name| add("sim-device", name));
    args.narrowing.set.iter().for_each(|set| add("set", set));
    args.narrowing.filter.iter().for_each(|filter| add("filter", filter));
    args.narrowing.variant.iter().for_each(|variant| add("variant", variant));
    options.extend(args.no_sanitize.then(|| "--no-sanitize".to_owned()));
    options
}

/// Job name, the same for the same manifests and options.
fn name(experiments: &[Experiment], options: &[String]) -> String {
    let first = experiments.first().map_or("", |experiment| experiment.name.as_str());
    let more = if experiments.len() > 1 { format!("-and-{}-more", experiments.len() - 1) } else { String::new() };
    let parts: Vec<String> = experiments
        .iter()
        .flat_map(|e| [e.manifest.display().to_string(), e.hash.clone(), e.seconds.len().to_string()])
        .chain(options.iter().cloned())
        .collect();
    let hash = sha256_hex(parts.join("\0").as_bytes());
    format!("{first}{more}-{}", hash.get(..8).unwrap_or_default())
}

/// Manifests relative to the working directory, since tasks have a different one.
pub fn relative(manifests: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let here = std::env::current_dir()
        .map_err(|e| Failure::environment(format!("cannot determine the working directory: {e}")))?;
    let relative = |manifest: &PathBuf| {
        if manifest.is_relative() {
            return manifest.clone();
        }
        let manifest = plain_path(manifest);
        let shared = here.components().zip(manifest.components()).take_while(|(one, other)| one == other).count();
        let up = here.components().skip(shared).map(|_| std::path::Component::ParentDir);
        up.chain(manifest.components().skip(shared)).collect()
    };
    Ok(manifests.iter().map(relative).collect())
}

/// Unique id: a hash of the folder, the time and this process.
fn new_identity(dir: &Path) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let text = format!("{}\0{}\0{}", dir.display(), now.as_nanos(), std::process::id());
    sha256_hex(text.as_bytes()).chars().take(8).collect()
}

/// What the folder of a job already holds.
#[derive(Debug, Default)]
pub struct Earlier {
    pub submissions: Vec<Submission>,
    /// Whether the job now collects in another way: into another folder, with another base or other consequences.
    pub collects_otherwise: bool,
}

/// Earlier submissions of the job in `dir`, which `job` then continues. Fails if it is a different job.
pub fn same_job(dir: &Path, job: &mut Job) -> Result<Earlier, Failure> {
    if !Job::exists(dir) {
        return Ok(Earlier::default());
    }
    let known = Job::read(dir).map_err(Failure::environment)?;
    if let Some(what) = difference(&known, job) {
        return Err(Failure::usage(format!(
            "{} already contains a job with {what}: choose another --name, or remove that job with {}",
            dir.display(),
            hints::of_job("prune", dir)
        )));
    }
    let collects_otherwise = (&known.out, &known.compare_with, known.gate) != (&job.out, &job.compare_with, job.gate);
    job.id = known.id;
    if !known.searches {
        // Groups keep the shards of the first submission.
        job.experiments = known.experiments;
    }
    let submissions = Submission::all(dir, job).map_err(Failure::environment)?;
    Ok(Earlier { submissions, collects_otherwise })
}

/// How a job differs from the one in its folder, apart from what may change between submissions: the settings of the
/// scheduler, and how results are collected.
fn difference(known: &Job, job: &Job) -> Option<String> {
    // Different names may map to the same folder.
    if known.name != job.name {
        return Some(format!("a different name (`{}`)", known.name));
    }
    if known.searches != job.searches {
        return Some(if known.searches { "a search" } else { "a run instead of a search" }.to_owned());
    }
    // Older versions did not keep the command.
    let has_command = job.searches && !known.command.is_empty();
    let of_search = |job: &Job| if has_command { searched(job) } else { Vec::new() };
    let words = |job: &Job| [job.options.clone(), of_search(job)].concat();
    if let Some(options) = differing(&words(known), &words(job)) {
        return Some(format!("different options ({options})"));
    }
    if known.device != job.device {
        let device = |job: &Job| job.device.clone().unwrap_or_else(|| "the simulator".to_owned());
        return Some(format!("a different device (there {}, here {})", device(known), device(job)));
    }
    let manifests = |job: &Job| job.experiments.iter().map(|e| e.manifest.display().to_string()).collect::<Vec<_>>();
    if manifests(known) != manifests(job) {
        let differing = differing(&manifests(known), &manifests(job));
        return Some(format!("different manifests ({})", differing.unwrap_or_else(|| "in another order".to_owned())));
    }
    let mut pairs = known.experiments.iter().zip(&job.experiments);
    // A search starts again after an edit of its manifest.
    if let Some((_, edited)) = pairs.clone().find(|(known, own)| !job.searches && known.hash != own.hash) {
        return Some(format!("another version of {}", edited.manifest.display()));
    }
    let (known, own) = pairs.find(|(known, own)| known.seconds.len() != own.seconds.len())?;
    let option = if job.searches { "--tune" } else { "--min-task-time" };
    let counts = [known, own].map(|experiment| experiment.seconds.len() - usize::from(job.searches));
    Some(format!("a different {option} ({} there, {} here)", plural(counts[0] as u64, "shard"), counts[1]))
}

/// Where and how a search runs, by the command that submitted it. The job itself does not say, since others may be able
/// to write to it; a command of another user that cannot be read counts as different.
fn searched(job: &Job) -> Vec<String> {
    let Some(given) = again::read(&job.command).ok() else { return vec!["an unknown command".to_owned()] };
    given.out.iter().map(|out| format!("--out={}", out.display())).chain(given.options).collect()
}

/// Words that only one of two lists has.
fn differing(there: &[String], here: &[String]) -> Option<String> {
    let without = |all: &[String], other: &[String]| {
        let words: Vec<&str> = all.iter().filter(|word| !other.contains(word)).map(String::as_str).collect();
        if words.is_empty() { "none".to_owned() } else { format!("`{}`", words.join(" ")) }
    };
    let texts = (without(there, here), without(here, there));
    (texts != ("none".to_owned(), "none".to_owned())).then(|| format!("there {}, here {}", texts.0, texts.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(differing(&words("a b c"), &words("a b c")), None);
        assert_eq!(differing(&words("a b c"), &words("a d")).as_deref(), Some("there `b c`, here `d`"));
        assert_eq!(differing(&words("a"), &words("a d")).as_deref(), Some("there none, here `d`"));
    }
}
