//! `runner submit --tune N`: submits the shards of a search as tasks, and a last task that measures the finalists.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use super::new_folder::NewFolder;
use super::other_version::refuse_other_version;
use super::{describe, wait};
use crate::cli::options::network;
use crate::cli::{BackendChoice, Cli, Command, SubmitArgs};
use crate::commands::send::{self, Batch, Limits, lock};
use crate::commands::{hints, plan, status};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::load_manifest;
use crate::files::refuse_path_outside;
use runner_cluster::{Experiment, Job, ShardStatus, State, Submission, Work};
use runner_experiment::Manifest;
use runner_lang::format::plural;
use runner_types::{BackendKind, sha256_hex};

/// Work estimate that yields the default time limit of an hour.
const SECONDS: f64 = 1650.0;

/// Submits a search for each manifest.
pub fn run(args: &SubmitArgs, shards: NonZeroU32, console: &mut Console) -> Result<Exit, Failure> {
    let (mut settings, code) = describe::settings(&args.site)?;
    // Shards learn from each other, so all of them are submitted at once.
    settings.queue = None;
    describe::allow(code, args, console)?;
    let limits = Limits::ask(&settings);
    limits.allow(&settings)?;
    // Login nodes have no GPU from which to choose the backend.
    let simulates = args.target.backend == BackendChoice::Sim || args.target.sim_device.is_some();
    let backend = if simulates { BackendKind::Sim } else { BackendKind::Cuda };
    let options = describe::selection(args, backend);
    let mut sent = Vec::new();
    for path in describe::relative(&args.manifests)? {
        let search = arguments(args, &path, &options)?;
        let manifest = load_manifest(&path, &args.trust.reach, network(args.offline), console)?;
        let version = version(args, &manifest, backend);
        let name = args.name.clone().unwrap_or_else(|| format!("tune-{}", manifest.name));
        let tasks = shards.get() as usize + 1;
        let experiment = Experiment {
            manifest: path,
            name: manifest.name,
            hash: manifest.hash,
            seconds: vec![SECONDS; tasks],
            cases: vec![0; tasks],
            groups: 0,
        };
        let job = Job {
            options: options.clone(),
            searches: true,
            search,
            trust: args.trust.words(),
            experiments: vec![experiment],
            settings: settings.clone(),
            command: describe::command(args),
            ..describe::bare(name)?
        };
        sent.push(send(args, job, version, limits, console)?);
    }
    let mut exit = Exit::Success;
    for dir in sent.iter().filter(|_| args.sending.wait && !args.sending.dry_run) {
        let ended = wait::wait(dir, None, console)?;
        exit = if exit == Exit::Success { ended } else { exit };
    }
    Ok(exit)
}

/// Hash of the manifest and of the files that its cases read, by which the next submission detects edits. If the nodes'
/// device is unknown, the cases may be too; then it is the hash of the manifest only.
fn version(args: &SubmitArgs, manifest: &Manifest, backend: BackendKind) -> String {
    let device = plan::machine(&args.target, None).ok().and_then(|(kind, device)| device.filter(|_| kind == backend));
    let manifest = manifest.clone().with_searched_axes();
    let mut files = BTreeSet::new();
    if let Ok(plan) = runner_plan::expand(&manifest, &plan::narrowed(&args.narrowing, backend, device)) {
        let cells = (0..plan.group_count()).flat_map(|group| plan.group(group).iter().copied());
        let cases = cells.filter_map(|cell| runner_plan::resolve_case(&manifest, &plan, cell).ok());
        cases.for_each(|case| runner_tune::files_of(&case, &mut files));
    }
    sha256_hex(format!("{}\n{}", manifest.hash, runner_tune::identify(&manifest, &files).files).as_bytes())
}

/// Arguments of the search, parsed here to check them as the tasks will.
fn arguments(args: &SubmitArgs, manifest: &Path, options: &[String]) -> Result<Vec<String>, Failure> {
    let manifest = manifest.to_str().ok_or_else(|| Failure::usage("the name of a manifest is not UTF-8: rename it"))?;
    let mut words = vec![manifest.to_owned(), "--resume".to_owned()];
    words.extend(options.iter().cloned());
    words.extend(args.out.iter().map(|out| format!("--out={}", out.display())));
    words.extend(args.offline.then(|| "--offline".to_owned()));
    words.extend(args.options.iter().cloned());
    let line = ["runner", "tune"].into_iter().chain(words.iter().map(String::as_str)).map(OsString::from);
    let refused = |error: clap::Error| Failure::usage(error.to_string().trim_start_matches("error: "));
    let read = Cli::read(line).map_err(refused)?;
    match read.command {
        Command::Tune(tune) if tune.shard.is_none() && tune.simulate.is_none() => Ok(words),
        _ => Err(Failure::usage(
            "--shard and --simulate cannot be used with `submit --tune`, which sets the shards itself",
        )),
    }
}

/// Submits the tasks of a search that have neither ended nor are in the scheduler's queue. The finalists are measured
/// after them. Returns the job's folder.
fn send(
    args: &SubmitArgs,
    mut job: Job,
    version: String,
    limits: Limits,
    console: &mut Console,
) -> Result<PathBuf, Failure> {
    let dir = describe::folder(&job);
    refuse_path_outside(&dir)?;
    let folder = if args.sending.dry_run { None } else { Some(NewFolder::create(&dir)?) };
    let lock = if folder.is_some() { lock(&dir, console)? } else { None };
    let mut earlier = describe::same_job(&dir, &mut job)?.submissions;
    let shards = if earlier.is_empty() { Vec::new() } else { status::shards(&dir, &job, &mut earlier, console) };
    let is_other = |sent: &Submission| sent.files.as_ref().is_some_and(|files| *files != version);
    refuse_other_version(&dir, &earlier, &shards, is_other)?;
    let is_edited = earlier.last().is_some_and(is_other);
    let chosen = if is_edited { Some(job.work().collect()) } else { chosen(&job, &earlier, &shards)? };
    let Some(chosen) = chosen else {
        let (name, status) = (&job.name, hints::of_job("status", &dir));
        console.print(&format!("job {name}: no task is missing; {status} shows its progress\n"))?;
        send::show_unstarted((&dir, &job, limits), &earlier, &shards, console)?;
        return Ok(dir);
    };
    let tasks: Vec<Vec<Work>> = chosen.into_iter().map(|work| vec![work]).collect();
    let after = send::open_jobs(&args.sending.after, &job, console)?;
    let batch = Batch {
        number: earlier.len() as u32 + 1,
        tasks,
        retries: Vec::new(),
        snapshot: String::new(),
        files: Some(version),
        after,
    };
    if args.sending.dry_run {
        send::show((&dir, &job, limits), batch, console)?;
        return Ok(dir);
    }
    let all = job.work().count() - 1;
    let missing = if batch.tasks.len() > all { String::new() } else { format!("{} of ", batch.tasks.len() - 1) };
    console.say(&format!("job {}: {missing}{all} shards, and then the finalists", job.name));
    send::send((&dir, &job, limits), batch, &earlier, &shards, console)?;
    drop((lock, folder));
    Ok(dir)
}

/// Tasks to submit; `None` if all have ended or are queued or running. The last one measures the finalists, so it is
/// submitted again with any shard. Fails if the scheduler still has the last one.
fn chosen(job: &Job, earlier: &[Submission], shards: &[ShardStatus]) -> Result<Option<Vec<Work>>, Failure> {
    if earlier.is_empty() {
        return Ok(Some(job.work().collect()));
    }
    let Some((finalists, searched)) = shards.split_last() else { return Ok(None) };
    let mut missing: Vec<Work> =
        searched.iter().filter(|shard| shard.state.is_missing()).map(|shard| shard.work).collect();
    if missing.is_empty() && !finalists.state.is_missing() {
        return Ok(None);
    }
    if matches!(finalists.state, State::Queued | State::Running) && job.settings.scheduler.queue().is_some() {
        return Err(Failure::usage(format!(
            "{} of the search must be submitted again, but the finalists' task is {}: wait for it, or end the job with \
             `runner cancel`",
            plural(missing.len() as u64, "shard"),
            finalists.state
        )));
    }
    missing.push(finalists.work);
    Ok(Some(missing))
}
