//! `runner submit --tune N`: an array with the shards of a search, and after it what measures the finalists.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::Path;

use super::describe;
use crate::atomic;
use crate::cluster::scheduler::{Part, Script, Search, Sent};
use crate::cluster::{Job, Retry, logs_folder};
use crate::commands::cli::{BackendChoice, Cli, Command, SubmitArgs};
use crate::commands::options::network;
use crate::commands::send::{Limits, lock};
use crate::commands::{Console, Exit, Failure, load_manifest, refuse_path_outside};
use crate::model::BackendKind;

/// The time limit where none is set, as an estimate of the work: an hour.
const SECONDS: f64 = 1650.0;

/// Sends a search of each manifest.
pub fn run(args: &SubmitArgs, shards: NonZeroU32, console: &mut Console) -> Result<Exit, Failure> {
    let (settings, code) = describe::settings(&args.site)?;
    describe::allow(code, args, console)?;
    let limits = Limits::ask(&settings);
    limits.allow(&settings)?;
    for manifest in describe::relative(&args.manifests)? {
        let arguments = arguments(args, &manifest)?;
        let name = load_manifest(&manifest, &args.trust.reach, network(args.offline), console)?.name;
        let name = args.name.clone().unwrap_or_else(|| format!("tune-{name}"));
        let job = Job { trust: args.trust.words(), settings: settings.clone(), ..describe::bare(name)? };
        send(args, (&job, limits), &arguments, shards.get(), console)?;
    }
    Ok(Exit::Success)
}

/// Returns the arguments of the search, which are read here as a task reads them.
fn arguments(args: &SubmitArgs, manifest: &Path) -> Result<Vec<String>, Failure> {
    let manifest = manifest.to_str().ok_or_else(|| Failure::usage("the name of a manifest is not UTF-8: rename it"))?;
    let mut words = vec![manifest.to_owned(), "--resume".to_owned()];
    // Login nodes have no GPU to choose by.
    let simulates = args.target.backend == BackendChoice::Sim || args.target.sim_device.is_some();
    let backend = if simulates { BackendKind::Sim } else { BackendKind::Cuda };
    words.extend(describe::selection(args, backend));
    words.extend(args.out.iter().map(|out| format!("--out={}", out.display())));
    words.extend(args.offline.then(|| "--offline".to_owned()));
    words.extend(args.options.iter().cloned());
    let line = ["runner", "tune"].into_iter().chain(words.iter().map(String::as_str)).map(OsString::from);
    let refused = |error: clap::Error| Failure::usage(error.to_string().trim_start_matches("error: "));
    let read = Cli::read(line).map_err(refused)?;
    match read.command {
        Command::Tune(tune) if tune.shard.is_none() && tune.simulate.is_none() => Ok(words),
        _ => Err(Failure::usage("--shard and --simulate are not for `submit --tune`, which sets the shards")),
    }
}

/// Writes the scripts of a search and submits them, or prints what the user submits.
fn send(
    args: &SubmitArgs,
    (job, limits): (&Job, Limits),
    arguments: &[String],
    shards: u32,
    console: &mut Console,
) -> Result<(), Failure> {
    let folder = describe::folder(job);
    refuse_path_outside(&folder)?;
    let part = |number: u32, shards: Option<u32>| Part {
        job,
        folder: &folder,
        number,
        first: 0,
        count: shards.unwrap_or(1) as usize,
        seconds: SECONDS,
        snapshot: String::new(),
        retry: Retry::default(),
        longest: limits.tasks,
        search: Some(Search { arguments, shards }),
    };
    let render =
        |part: Part<'_>| job.settings.scheduler.script(&part).map_err(|error| Failure::usage(error.to_string()));
    let (array, mut rest) = (render(part(1, Some(shards)))?, render(part(2, None))?);
    if args.sending.dry_run {
        if let Some(queue) = job.settings.scheduler.queue() {
            queue.start_after(&mut rest, &["IDS".to_owned()]);
        }
        return [array, rest].iter().try_for_each(|script| {
            console.print(&format!("# {}\n{}\n{}\n", script.path.display(), script.text, command(script)?))
        });
    }
    let failed = |error: &dyn std::fmt::Display| Failure::environment(error.to_string());
    atomic::create_folder(&logs_folder(&folder)).map_err(|error| failed(&error))?;
    let _lock = lock(&folder, console)?;
    for script in [&array, &rest] {
        atomic::write(&script.path, script.text.as_bytes()).map_err(|error| failed(&error))?;
    }
    let Some(queue) = job.settings.scheduler.queue() else {
        return console.print(&format!("{}\n# when all of these have ended:\n{}\n", command(&array)?, command(&rest)?));
    };
    let submit = |script: &Script| match queue.submit(script) {
        Sent::Accepted(id) => Ok(id),
        Sent::Refused(why) => Err(Failure::environment(why)),
        Sent::Unknown(why) => {
            let remedy = "look whether the scheduler has the job before you submit it again";
            Err(Failure::environment(format!("{why}; {remedy}")))
        }
    };
    let first = submit(&array)?;
    console.print(&format!("array {first}: {shards} shards of {}\n", job.name))?;
    queue.start_after(&mut rest, std::slice::from_ref(&first));
    let second = submit(&rest)?;
    console.print(&format!("job {second}: reports all evaluations and measures the finalists\n"))?;
    console.print(&format!("what they print is in {}\n", logs_folder(&folder).display()))
}

fn command(script: &Script) -> Result<String, Failure> {
    script.command().map_err(|error| Failure::usage(error.to_string()))
}
