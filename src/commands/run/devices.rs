//! `runner run --devices`: the groups of all manifests over several GPUs of this machine.
//!
//! Code is compiled first. Every manifest is divided into shards, which begin in the order of their estimated times, the
//! longest first. A thread for each GPU takes one after the other and runs it as `run --shard --resume` does, into a
//! journal of its own. If a GPU is lost, another one continues its shard, which repeats the group that was running. The
//! journals of a manifest are merged into its report.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use super::conclude::breaks_claims;
use super::destination::Destination;
use super::prepare::{compile_ahead, plan_options};
use super::several::{Line, finish, load_all};
use super::{Ended, interrupt, run_one};
use crate::backend::Backend as _;
use crate::backend::cuda::{self, Cuda};
use crate::commands::cli::{DisplayArgs, GateArgs, RunArgs};
use crate::commands::options::{RunOptions, Share, Target};
use crate::commands::{Console, Exit, Failure, merge, worker};
use crate::dispatch::cores::{Cores, divide};
use crate::dispatch::queue::Queue;
use crate::dispatch::{Interrupt, Urgency};
use crate::experiment::Manifest;
use crate::format::{about, plural, seconds};
use crate::model::{DeviceId, DeviceInfo, Shard};
use crate::plan::Shards;
use crate::{journal, render, stored};

/// Shards for each GPU, of all manifests together: enough that the GPUs end at about the same time.
const SHARDS_PER_DEVICE: f64 = 6.0;

/// A shard with less estimated work is not worth the start of a worker.
const LEAST_SECONDS: f64 = 2.0;

/// A GPU that takes part.
#[derive(Debug, Clone)]
struct Gpu {
    id: DeviceId,
    info: DeviceInfo,
    cores: Cores,
}

/// One shard of one manifest.
#[derive(Debug)]
struct Unit {
    manifest: usize,
    shard: Shard,
    seconds: f64,
    folder: PathBuf,
}

/// A manifest with the options of its run.
struct Experiment {
    manifest: Manifest,
    options: RunOptions,
    folders: Vec<PathBuf>,
    /// The time that its shards took together.
    took: Mutex<Duration>,
}

pub fn run(args: &RunArgs, named: &str, console: &mut Console) -> Result<Exit, Failure> {
    let started = Instant::now();
    let gpus = select(named)?;
    let manifests = load_all(&args.manifests, &args.trust.reach, console)?;
    let interrupt = interrupt()?;
    let mut experiments = manifests
        .into_iter()
        .map(|(path, manifest)| Experiment::new(args, path, manifest, &gpus[0]))
        .collect::<Result<Vec<_>, _>>()?;
    compile(&experiments, &interrupt, console)?;
    let units = divided(&mut experiments, &gpus, console)?;
    console.say(&format!("{} on {}", plural(units.len() as u64, "shard"), plural(gpus.len() as u64, "GPU")));
    let run = Run {
        queue: Queue::new(units),
        experiments: &experiments,
        interrupt: &interrupt,
        host: Arc::default(),
        lost: AtomicUsize::new(0),
        console: Mutex::new(console),
    };
    thread::scope(|scope| {
        for gpu in &gpus {
            scope.spawn(|| run.serve(gpu));
        }
    });
    let lost = run.lost.into_inner();
    let lines: Vec<Line> = experiments
        .iter()
        .map(|experiment| experiment.conclude(&gpus[0], &interrupt, console))
        .collect::<Result<_, _>>()?;
    let exit = finish(&lines, args.display.quiet, console)?;
    let (wall, lost) = (seconds(started.elapsed().as_secs_f64()), plural(lost as u64, "GPU"));
    console.say(&format!("wall time {wall} on {}; {lost} lost", plural(gpus.len() as u64, "GPU")));
    Ok(exit)
}

/// The GPUs that `--devices` names.
fn select(named: &str) -> Result<Vec<Gpu>, Failure> {
    let environment = |error: crate::backend::DeviceError| Failure::environment(error.to_string());
    let listed = Cuda::Timed.devices().map_err(environment)?;
    let chosen = choose(named, &listed).map_err(Failure::usage)?;
    let near: Vec<Option<Cores>> = chosen
        .iter()
        .map(|(id, _)| cuda::pci_address(id.ordinal).ok().and_then(|address| Cores::near(&address)))
        .collect();
    let cores = divide(&Cores::available(), &near);
    Ok(chosen.into_iter().zip(cores).map(|((id, info), cores)| Gpu { id, info, cores }).collect())
}

/// `all`, or numbers and UUIDs between commas. Only GPUs of one model can share a matrix.
fn choose(named: &str, listed: &[(DeviceId, DeviceInfo)]) -> Result<Vec<(DeviceId, DeviceInfo)>, String> {
    let find = |word: &str| {
        let is_it = |id: &DeviceId| match word.parse::<u32>() {
            Ok(ordinal) => id.ordinal == ordinal,
            Err(_) => id.uuid.as_deref().is_some_and(|uuid| uuid.eq_ignore_ascii_case(word)),
        };
        let found = listed.iter().find(|(id, _)| is_it(id)).cloned();
        found.ok_or_else(|| format!("--devices {named}: there is no GPU `{word}`; `runner devices` lists them"))
    };
    let mut chosen: Vec<(DeviceId, DeviceInfo)> = match named {
        "all" => listed.to_vec(),
        _ => named.split(',').map(|word| find(word.trim())).collect::<Result<_, _>>()?,
    };
    chosen.sort_by_key(|(id, _)| id.ordinal);
    chosen.dedup_by_key(|(id, _)| id.ordinal);
    let Some((_, first)) = chosen.first() else { return Err("--devices all: this machine has no GPU".to_owned()) };
    if let Some((id, other)) = chosen.iter().find(|(_, info)| info.name != first.name) {
        return Err(format!(
            "--devices {named}: GPU {} is {}, another is {}; results of different GPUs cannot share a report: name those \
             of one model",
            id.ordinal, other.name, first.name
        ));
    }
    Ok(chosen)
}

impl Experiment {
    fn new(args: &RunArgs, path: &Path, manifest: Manifest, gpu: &Gpu) -> Result<Self, Failure> {
        let out = match (&args.out, args.manifests.len()) {
            (Some(out), 2..) => Some(out.join(&manifest.name)),
            (out, _) => out.clone(),
        };
        let options = RunOptions { out, target: Target::Gpu(gpu.id.ordinal), ..RunOptions::of_run(args, path)? };
        Ok(Self { manifest, options, folders: Vec::new(), took: Mutex::default() })
    }

    /// The options of one shard on one GPU.
    fn of_unit(&self, unit: &Unit, gpu: &Gpu, host: &Arc<RwLock<()>>) -> RunOptions {
        RunOptions {
            target: Target::Gpu(gpu.id.ordinal),
            out: Some(unit.folder.clone()),
            shard: Some(unit.shard),
            resume: true,
            share: Some(Share { host: Arc::clone(host), cores: gpu.cores.clone() }),
            display: DisplayArgs { quiet: true, ..self.options.display },
            gate: GateArgs::default(),
            ..self.options.clone()
        }
    }

    fn took(&self, more: Duration) {
        *self.took.lock().unwrap_or_else(PoisonError::into_inner) += more;
    }

    /// Merges the journals and writes the report.
    fn conclude(&self, gpu: &Gpu, interrupt: &Interrupt, console: &mut Console) -> Result<Line, Failure> {
        let took = *self.took.lock().unwrap_or_else(PoisonError::into_inner);
        let experiment = self.manifest.name.clone();
        let files: Vec<PathBuf> =
            self.folders.iter().map(|folder| folder.join(journal::JOURNAL_FILE)).filter(|f| f.exists()).collect();
        let joined = stored::join(&files).map_err(|error| Failure::environment(error.to_string()))?;
        let Some(part) = joined.parts.into_iter().next() else {
            return Ok(Line { experiment, ended: None, took });
        };
        let is_whole = part.missing.is_empty();
        let destination = Destination::of(&self.options, &self.manifest, &gpu.info);
        let records = merge::write(part, &destination.dir)?;
        console.say(&format!("report: {}", destination.dir.join(render::REPORT_FILE).display()));
        let exit = if interrupt.urgency() > Urgency::None {
            Exit::Interrupted
        } else if !is_whole {
            Exit::Environment
        } else if records.cases.iter().any(|case| case.outcome.is_failure()) {
            Exit::CaseFailed
        } else if breaks_claims(self.options.gate, &records) {
            Exit::BrokenClaim
        } else {
            Exit::Success
        };
        Ok(Line { experiment, ended: Some(Ended { exit, counts: render::counts(&records), both: None }), took })
    }
}

/// Compiles all code into the cache, before any GPU measures.
fn compile(experiments: &[Experiment], interrupt: &Interrupt, console: &mut Console) -> Result<(), Failure> {
    let Some(first) = experiments.first() else { return Ok(()) };
    let worker = worker::start(&first.options, interrupt, console)?;
    for Experiment { manifest, options, .. } in experiments {
        compile_ahead(options, manifest, &worker, console)?;
    }
    Ok(())
}

/// The shards of every manifest, the longest first.
fn divided(experiments: &mut [Experiment], gpus: &[Gpu], console: &Console) -> Result<Vec<Unit>, Failure> {
    let mut shards = Vec::new();
    for Experiment { manifest, options, .. } in experiments.iter() {
        let planned = plan_options(options, &gpus[0].info);
        shards.push(Shards::of(manifest, &planned).map_err(|faults| Failure::faults(&faults, console))?);
    }
    let all: f64 = shards.iter().map(Shards::seconds).sum();
    let least = (all / (SHARDS_PER_DEVICE * gpus.len() as f64)).max(LEAST_SECONDS);
    let mut units = Vec::new();
    for (index, (experiment, shards)) in experiments.iter_mut().zip(&shards).enumerate() {
        let of = shards.count(least);
        let root = Path::new("target/devices").join(&experiment.manifest.name);
        for (at, seconds) in shards.seconds_of(of).into_iter().enumerate() {
            let shard = Shard { index: at as u32 + 1, of };
            let folder = root.join(shard.folder());
            if !experiment.options.resume {
                remove_journal(&folder)?;
            }
            experiment.folders.push(folder.clone());
            units.push(Unit { manifest: index, shard, seconds, folder });
        }
    }
    units.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    Ok(units)
}

/// A shard continues its journal, so that of an earlier run is removed.
fn remove_journal(folder: &Path) -> Result<(), Failure> {
    let journal = folder.join(journal::JOURNAL_FILE);
    match std::fs::remove_file(&journal) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::environment(format!("cannot remove {}: {error}", journal.display())))
        }
        _ => Ok(()),
    }
}

/// What the threads share.
struct Run<'a> {
    queue: Queue<Unit>,
    experiments: &'a [Experiment],
    interrupt: &'a Interrupt,
    host: Arc<RwLock<()>>,
    /// How many GPUs were lost.
    lost: AtomicUsize,
    console: Mutex<&'a mut Console>,
}

impl Run<'_> {
    /// Runs shards on one GPU until none is left or the GPU is lost.
    fn serve(&self, gpu: &Gpu) {
        while let Some(unit) = self.queue.take() {
            if self.interrupt.urgency() > Urgency::None {
                self.queue.done();
                return self.queue.close();
            }
            let experiment = &self.experiments[unit.manifest];
            let options = experiment.of_unit(&unit, gpu, &self.host);
            let mut quiet = self.with_console(|console| Console { quiet: true, ..*console });
            let started = Instant::now();
            let ended = run_one(&options, &experiment.manifest, self.interrupt, &mut quiet);
            let took = started.elapsed();
            experiment.took(took);
            let name = format!("GPU {}: {} {}", gpu.id.ordinal, experiment.manifest.name, unit.shard);
            match ended {
                // What another GPU may be able to do.
                Err(failure) if failure.exit == Exit::Environment => {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                    self.with_console(|console| console.fail(&failure));
                    self.with_console(|console| console.say(&format!("{name} goes to another GPU")));
                    return self.queue.give_back(unit);
                }
                Err(failure) => self.with_console(|console| console.fail(&failure)),
                Ok(ended) => {
                    let (time, left) = (seconds(took.as_secs_f64()), self.queue.len());
                    let line = format!("{name} of about {}, {time}: {} {left} left", about(unit.seconds), ended.counts);
                    self.with_console(|console| console.say(&line));
                }
            }
            self.queue.done();
        }
    }

    fn with_console<T>(&self, act: impl FnOnce(&mut Console) -> T) -> T {
        act(&mut self.console.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::h100;

    fn listed() -> Vec<(DeviceId, DeviceInfo)> {
        let gpu = |ordinal: u32, name: &str| {
            let id = DeviceId { ordinal, uuid: Some(format!("GPU-{ordinal}")) };
            (id, DeviceInfo { name: name.to_owned(), ..h100() })
        };
        vec![gpu(0, "H100"), gpu(1, "H100"), gpu(2, "A100")]
    }

    fn chosen(named: &str) -> Result<Vec<u32>, String> {
        Ok(choose(named, &listed())?.into_iter().map(|(id, _)| id.ordinal).collect())
    }

    #[test]
    fn gpus_are_named_by_number_or_uuid() {
        assert_eq!(chosen("0,1"), Ok(vec![0, 1]));
        assert_eq!(chosen("1, gpu-0,1"), Ok(vec![0, 1]));
        assert_eq!(chosen("2"), Ok(vec![2]));
        let unknown = chosen("0,7").err().unwrap_or_default();
        assert_eq!(unknown, "--devices 0,7: there is no GPU `7`; `runner devices` lists them");
        assert_eq!(choose("all", &[]), Err("--devices all: this machine has no GPU".to_owned()));
    }

    #[test]
    fn gpus_of_different_models_do_not_share_a_report() {
        let mixed = chosen("all").err().unwrap_or_default();
        assert!(mixed.contains("GPU 2 is A100, another is H100"), "{mixed}");
    }
}
