//! `runner submit`: turns manifests into job arrays and the job that collects their results.

mod again;
mod ahead;
mod describe;
mod needs;
mod new_folder;
mod other_version;
mod outdated;
mod rerun;
mod search;
mod wait;

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::send::{self, After, Batch, lock};
use super::{hints, run, status};
use crate::cli::SubmitArgs;
use crate::cli::options::network;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::refuse_path_outside;
use describe::{Described, Earlier};
use new_folder::NewFolder;
use other_version::refuse_other_version;
use runner_cluster::scheduler::Cause;
use runner_cluster::{
    self, Job, Known, Retry, ShardStatus, Snapshot, State, Submission, Work, are_groups_sound, finished_attempts, pack,
    write_groups,
};
use runner_experiment::Manifest;
use runner_lang::format::{about, plural};
use runner_types::calendar_time;

pub fn run(args: &SubmitArgs, console: &mut Console) -> Result<Exit, Failure> {
    match &args.again {
        Some(job) => submit(&again::arguments(args, job)?, console),
        None => submit(args, console),
    }
}

fn submit(args: &SubmitArgs, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(shards) = args.tune {
        return search::run(args, shards, console);
    }
    let paths = describe::relative(&args.manifests)?;
    let manifests = run::load_all(&paths, &args.trust.reach, network(args.offline), console)?;
    let mut described = describe::job(args, &manifests, console)?;
    let dir = described.dir.clone();
    refuse_path_outside(&dir)?;
    if args.sending.dry_run {
        return dry_run(args, &manifests, described, console);
    }
    let folder = NewFolder::create(&dir)?;
    let lock = lock(&dir, console)?;
    let Earlier { submissions: mut earlier, collects_otherwise } = describe::same_job(&dir, &mut described.job)?;
    if earlier.is_empty() && !args.sending.rerun.is_empty() {
        return Err(rerun::unsubmitted(&described.job));
    }
    let after = send::open_jobs(&args.sending.after, &described.job, console)?;
    let hash = ahead::hash_of_this_program()?;
    let ready = ahead::get_ready(args, &manifests, &described, hash.clone(), console)?;
    if ready.has_host_code && !args.trust.allow_host_code {
        // The user has allowed it for this project, but tasks use copies in another folder.
        described.job.trust.push("--allow-host-code".to_owned());
    }
    let job = &described.job;
    let mut shards = if earlier.is_empty() { Vec::new() } else { status::shards(&dir, job, &mut earlier, console) };
    // An unreadable snapshot is not a reason to refuse.
    let is_other = |snapshot: &Snapshot| snapshot.of_files() != ready.files;
    refuse_other_version(&dir, &earlier, &shards, |sent| {
        Snapshot::read(&dir, &sent.snapshot).is_ok_and(|s| is_other(&s))
    })?;
    let finished = outdated::find(&dir, job, &manifests, &ready.kernels);
    finished.mark(earlier.len() as u32, &ready.files)?;
    // Without missing shards, no task is submitted, but the job is of this version from now on.
    let next = send::without_tasks(earlier.len() as u32 + 1, (ready.snapshot.clone(), ready.files.clone()));
    let is_other = Submission::version(&earlier).is_some_and(|version| version != ready.files);
    if is_other || !finished.outdated.is_empty() {
        let all = earlier.iter().cloned().chain(is_other.then(|| next.clone())).collect::<Vec<_>>();
        shards = runner_cluster::status(&dir, job, &all, &Known::read(&dir));
    }
    let chosen = chosen(args, job, &earlier, &shards)?;
    if !args.sending.rerun.is_empty() {
        outdated::mark_again(&dir, job, &chosen, earlier.len() as u32)?;
    }
    described.job.program = ahead::keep_this_program(&dir, &hash)?;
    let job = &described.job;
    if chosen.is_empty() {
        if collects_otherwise {
            refuse_while_held_back(job, &earlier)?;
            job.write(&dir).map_err(Failure::environment)?;
        }
        if let Some(after) = unconfirmed_until(&earlier) {
            return Ok(not_confirmed(job, after, console));
        }
        if is_other {
            next.write(&dir).map_err(Failure::environment)?;
            earlier.push(next);
        }
        nothing_missing(args, &described, (&earlier, collects_otherwise), &shards, console)?;
    } else {
        for (experiment, groups) in job.experiments.iter().zip(&described.groups) {
            if earlier.is_empty() || !are_groups_sound(&dir, experiment) {
                write_groups(&dir, experiment, groups).map_err(Failure::environment)?;
            }
        }
        let batch = Batch { after, ..batch(job, &chosen, &earlier, &shards, (ready.snapshot, Some(ready.files))) };
        announce(job, &chosen, batch.tasks.len(), console);
        send::send((&dir, job, described.limits), batch, &earlier, &shards, console)?;
        // A killed `submit` may have left another array, which may not have been accepted.
        if let Some(after) = unconfirmed_until(&earlier) {
            return Ok(not_confirmed(job, after, console));
        }
    }
    drop((lock, folder));
    if args.sending.wait { wait::wait(&dir, args.out.as_deref(), console) } else { Ok(Exit::Success) }
}

/// Refuses to replace the collecting job while it has tasks to submit.
fn refuse_while_held_back(job: &Job, earlier: &[Submission]) -> Result<(), Failure> {
    let last = earlier.last().filter(|_| job.settings.scheduler.queue().is_some());
    let held_back = last.filter(|last| last.refused.is_none() && last.cancelled.is_none());
    match held_back.map_or(0, |last| last.tasks.len() - last.sent()) {
        0 => Ok(()),
        count => Err(Failure::usage(format!(
            "job {}: --out, --gate and --compare-with can change once its last {} submitted",
            job.name,
            if count == 1 { "task is".to_owned() } else { format!("{count} tasks are") }
        ))),
    }
}

/// When an unconfirmed array will count as rejected, if there is one, in seconds since 1970.
fn unconfirmed_until(submissions: &[Submission]) -> Option<u64> {
    let arrays = submissions.iter().flat_map(|submission| &submission.arrays);
    let sent = arrays.filter(|array| array.id.is_none()).map(|array| array.sent).max()?;
    Some(sent + status::CONFIRMED_AFTER + 1)
}

/// Says that the scheduler may not have accepted all tasks, and when that is known.
fn not_confirmed(job: &Job, after: u64, console: &mut Console) -> Exit {
    let time = humantime::format_rfc3339_seconds(calendar_time(UNIX_EPOCH + Duration::from_secs(after))).to_string();
    console.say(&format!(
        "job {}: the scheduler has not confirmed the last tasks yet; run the command again after {} UTC",
        job.name,
        time.get(11..19).unwrap_or(&time)
    ));
    Exit::CaseFailed
}

/// Prints what would be submitted.
fn dry_run(
    args: &SubmitArgs,
    manifests: &[(&Path, Manifest)],
    mut described: Described,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let dir = described.dir.clone();
    let mut earlier = describe::same_job(&dir, &mut described.job)?.submissions;
    let job = &described.job;
    let mut shards = if earlier.is_empty() { Vec::new() } else { status::shards(&dir, job, &mut earlier, console) };
    let is_edited = |snapshot: &Snapshot| snapshot.edited(&dir).next().is_some();
    refuse_other_version(&dir, &earlier, &shards, |sent| {
        Snapshot::read(&dir, &sent.snapshot).is_ok_and(|s| is_edited(&s))
    })?;
    if job.work().any(|work| finished_attempts(&job.folder(&dir, work)).next().is_some()) {
        let kernels = ahead::compile_in_place(args, manifests, &described, console)?;
        let found = outdated::find(&dir, job, manifests, &kernels);
        let outdated = found.outdated.iter().map(|(work, _)| (*work, State::Outdated));
        for (work, state) in outdated.chain(found.current.iter().map(|current| (current.work, State::Done))) {
            let changed = shards.iter_mut().filter(|shard| shard.work == work);
            changed.for_each(|shard| shard.state = state);
        }
    }
    let chosen = chosen(args, job, &earlier, &shards)?;
    if chosen.is_empty() {
        console.print(&nothing_to_do(args, &described))?;
        return Ok(Exit::Success);
    }
    let after = send::open_jobs(&args.sending.after, job, console)?;
    let batch = Batch { after, ..batch(job, &chosen, &earlier, &shards, ("SNAPSHOT".to_owned(), None)) };
    announce(job, &chosen, batch.tasks.len(), console);
    send::show((&dir, job, described.limits), batch, console)?;
    Ok(Exit::Success)
}

/// Shards to run: those that the user named, or else those that have no result and will not produce one.
fn chosen(args: &SubmitArgs, job: &Job, earlier: &[Submission], shards: &[ShardStatus]) -> Result<Vec<Work>, Failure> {
    if !args.sending.rerun.is_empty() {
        return rerun::chosen(&args.sending.rerun, job, earlier, shards);
    }
    if earlier.is_empty() {
        return Ok(job.work().collect());
    }
    Ok(shards.iter().filter(|shard| shard.state.is_missing()).map(|shard| shard.work).collect())
}

/// Packs shards into tasks. Retries with extra resources get their own tasks.
fn batch(
    job: &Job,
    chosen: &[Work],
    earlier: &[Submission],
    shards: &[ShardStatus],
    (snapshot, files): (String, Option<String>),
) -> Batch {
    let retry_of = |work: &Work| {
        let Some(shard) = shards.iter().find(|shard| shard.work == *work) else { return Retry::default() };
        let last = shard.place.and_then(|(number, task)| {
            earlier.iter().find(|submission| submission.number == number).map(|submission| submission.retry(task))
        });
        let mut retry = last.unwrap_or_default();
        match shard.cause {
            Some(Cause::Memory) => retry.memory += 1,
            Some(Cause::Time) => retry.time += 1,
            None => {}
        }
        retry
    };
    let grows = job.settings.memory_factor.is_some() || job.settings.time_factor.is_some();
    let mut classes: Vec<(Retry, Vec<Work>)> = Vec::new();
    for work in chosen {
        let retry = if grows { retry_of(work) } else { Retry::default() };
        match classes.iter_mut().find(|(known, _)| *known == retry) {
            Some((_, of_class)) => of_class.push(*work),
            None => classes.push((retry, vec![*work])),
        }
    }
    let (mut tasks, mut retries) = (Vec::new(), Vec::new());
    for (retry, work) in classes {
        let packed = pack(job, work, job.settings.min_task_time.0 as f64);
        retries.extend(packed.iter().map(|_| retry));
        tasks.extend(packed);
    }
    if retries.iter().all(|retry| *retry == Retry::default()) {
        retries.clear();
    }
    Batch { number: earlier.len() as u32 + 1, tasks, retries, snapshot, files, after: After::default() }
}

/// Says that there is nothing to submit, and shows what the user has to submit. Submits the collecting job if the last
/// submission has none, or if it is to collect in another way.
fn nothing_missing(
    args: &SubmitArgs,
    described: &Described,
    (earlier, collects_otherwise): (&[Submission], bool),
    shards: &[ShardStatus],
    console: &mut Console,
) -> Result<(), Failure> {
    console.print(&nothing_to_do(args, described))?;
    let place = (described.dir.as_path(), &described.job, described.limits);
    send::show_unstarted(place, earlier, shards, console)?;
    if collects_otherwise {
        console.say("the results are collected with the new options");
        return send::collect_otherwise(place, earlier, shards, console);
    }
    send::collect_again(place, earlier, shards, console)
}

fn nothing_to_do(args: &SubmitArgs, described: &Described) -> String {
    let state = if args.sending.rerun.is_empty() { "missing" } else { "of that state" };
    let (name, status) = (&described.job.name, hints::of_job("status", &described.dir));
    format!("job {name}: no shard is {state}; {status} shows its progress\n")
}

fn announce(job: &Job, chosen: &[Work], tasks: usize, console: &mut Console) {
    let seconds: f64 = chosen.iter().map(|work| job.seconds(*work)).sum();
    let (shards, count) = (plural(chosen.len() as u64, "shard"), plural(tasks as u64, "task"));
    let all = job.work().count();
    let of = if chosen.len() < all { format!(" of {all}") } else { String::new() };
    console.say(&format!("job {}: {shards}{of} in {count}, about {} in all", job.name, about(seconds)));
}
