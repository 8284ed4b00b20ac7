//! `runner submit`: from manifests to job arrays and the job that collects their results.

mod ahead;
mod describe;
mod outdated;
mod rerun;
mod send;
mod wait;

use std::path::Path;

use super::cli::SubmitArgs;
use super::options::network;
use super::{Console, Exit, Failure, refuse_path_outside, run, status};
use crate::cluster::{Job, Submission, Work, pack};
use crate::format::{about, plural};

pub fn run(args: &SubmitArgs, console: &mut Console) -> Result<Exit, Failure> {
    let manifests = run::load_all(&args.manifests, &args.trust.reach, network(args.offline), console)?;
    let described = describe::job(args, &manifests, console)?;
    let dir = described.dir.as_path();
    refuse_path_outside(dir)?;
    let job = &described.job;
    let earlier = describe::same_job(dir, job)?;
    let sends = !args.sending.dry_run;
    if sends {
        let ahead = ahead::compile(args, &manifests, &described, console)?;
        outdated::mark(dir, job, &manifests, &ahead, earlier.len() as u32)?;
    }
    let missing = if args.sending.rerun.is_empty() {
        missing(dir, job, &earlier, console)
    } else {
        let again = rerun::chosen(&args.sending.rerun, dir, job, &earlier, console)?;
        if sends {
            outdated::mark_again(dir, job, &again, earlier.len() as u32)?;
        }
        again
    };
    if missing.is_empty() {
        let dir = dir.display();
        let state = if args.sending.rerun.is_empty() { "missing" } else { "of that state" };
        console
            .print(&format!("job {}: no shard is {state}; `runner status {dir}` shows how far it is\n", job.name))?;
        return if args.sending.wait {
            wait::wait(&described.dir, args.out.as_deref(), console)
        } else {
            Ok(Exit::Success)
        };
    }
    let tasks = pack(job, missing.iter().copied(), job.settings.min_task_time.0 as f64);
    announce(job, &missing, &tasks, console);
    if !sends {
        send::show(dir, job, &tasks, console)?;
        return Ok(Exit::Success);
    }
    send::send(dir, job, tasks, earlier.len() as u32 + 1, console)?;
    if args.sending.wait { wait::wait(dir, args.out.as_deref(), console) } else { Ok(Exit::Success) }
}

/// Returns the shards that have no results and are not on their way.
fn missing(dir: &Path, job: &Job, earlier: &[Submission], console: &mut Console) -> Vec<Work> {
    if earlier.is_empty() {
        return job.work().collect();
    }
    let shards = status::shards(dir, job, earlier, console);
    shards.into_iter().filter(|shard| shard.state.is_missing()).map(|shard| shard.work).collect()
}

fn announce(job: &Job, missing: &[Work], tasks: &[Vec<Work>], console: &mut Console) {
    let seconds: f64 = missing.iter().map(|work| job.seconds(*work)).sum();
    let (shards, count) = (plural(missing.len() as u64, "shard"), plural(tasks.len() as u64, "task"));
    let all = job.work().count();
    let of = if missing.len() < all { format!(" of {all}") } else { String::new() };
    console.say(&format!("job {}: {shards}{of} in {count}, about {} in all", job.name, about(seconds)));
}
