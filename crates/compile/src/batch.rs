//! Compiles many units at once, each from the cache or in its own child process.
//!
//! A unit that fails, crashes its compiler or exceeds its time limit affects no other unit. No device is used here.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Display;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::cache::{Cache, CacheError};
use super::child::{self, LIMIT_VARIABLE, NoReply, Reply, Request};
use super::elf;
use super::host_headers;
use super::key::{Compiler, Identity};
use super::layout::DEVICE_RUNTIME;
use super::log;
use super::nvcc::PluginBuild;
use super::on_demand::OnDemand;
use super::options::{Target, UnitOptions};
use super::plain_paths::PlainPaths;
use super::ptx_digest::add_digests;
use super::ready;
use super::replaced::Replaced;
use super::to_ptx::{Built, Installed, KernelBuild};
use super::toolkit::Toolkit;
use super::whole_file;
use runner_cuda_source::device_half::{device_half, reached_half};
use runner_cuda_source::flatten::{File, flattened};
use runner_cuda_source::includes::Scanner;
use runner_cuda_source::source::{is_name, tokens};
use runner_files::project::Project;
use runner_files::regular;
use runner_types::{
    CodeKind, CodePart, CompileFailure, CompileKey, CompileUnit, Compiled, KernelCompiler, KernelResources, ListedCode,
    Plugin, RefusedOption, SourceForm, layout_definitions, sha256_hex,
};

pub type UnitResult = Result<Compiled, CompileFailure>;

/// Upper bound of the time limit, so that deadlines do not overflow.
const LONGEST_LIMIT: Duration = Duration::from_hours(24 * 365);

/// Default time limit per unit.
const LIMIT: Duration = Duration::from_mins(2);

/// How often to check whether another unit has finished compiling the same file.
const WAIT: Duration = Duration::from_millis(20);

/// Maximum number of attempts for a unit whose files change during compilation.
const ATTEMPTS: u32 = 3;

/// Maximum number of headers that are left out with the host half.
const MOST_HOST_HEADERS: usize = 16;

#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error("{LIMIT_VARIABLE} is `{0}`, which is not a duration above zero; write one such as `10min` or `90s`")]
    Limit(String),
}

#[derive(Debug, Clone)]
pub struct CompileOptions {
    /// Maximum number of concurrent child processes.
    pub jobs: usize,
    /// Time limit per unit.
    pub limit: Duration,
    pub cache: Cache,
    /// Executable that implements `__compile`.
    pub compiler: PathBuf,
    /// Folders in which sources and their includes may be.
    pub project: Project,
    /// Compilers besides NVRTC.
    pub installed: Installed,
    /// nvcc for sources that NVRTC rejects because of host code, and headers of libraries. If `None`, such sources are
    /// rejected.
    pub on_demand: Option<OnDemand>,
    /// Set this to stop early. Units not compiled yet fail as interrupted.
    pub stop: Arc<AtomicBool>,
    /// Why `stop` was set, if the machine lacks something that every unit needs.
    pub fault: Arc<OnceLock<String>>,
}

impl CompileOptions {
    /// Default options: one child per core, two minutes per unit unless the environment sets a limit, and this
    /// executable as the compiler. Fails if the cache is not writable.
    pub fn new(cache: Cache) -> Result<Self, OptionsError> {
        cache.prepare()?;
        let limit = env::var_os(LIMIT_VARIABLE).map_or(Ok(LIMIT), |text| parse_limit(&text.to_string_lossy()))?;
        Ok(Self {
            jobs: thread::available_parallelism().map_or(1, usize::from),
            limit,
            cache,
            // The fallback is looked up on the search path.
            compiler: env::current_exe().unwrap_or_else(|_| PathBuf::from("runner")),
            project: Project::everywhere(),
            installed: Installed::default(),
            on_demand: None,
            stop: Arc::default(),
            fault: Arc::default(),
        })
    }
}

/// Compiles every distinct unit once, in this order. For each finished unit, calls `on_done` on this thread with its
/// duration in seconds.
pub fn compile_all(
    units: &[CompileUnit],
    target: Target,
    toolkit: &Toolkit,
    options: &CompileOptions,
    on_done: &mut dyn FnMut(&CompileUnit, &UnitResult, f64),
) -> BTreeMap<CompileUnit, UnitResult> {
    let mut seen = BTreeSet::new();
    let distinct: Vec<&CompileUnit> = units.iter().filter(|unit| seen.insert(*unit)).collect();
    let batch = Batch { target, toolkit, options, scanner: Scanner::confined_to(options.project.clone()) };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let mut results = BTreeMap::new();
    thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, distinct.len().max(1)) {
            let (sender, next, distinct, batch) = (sender.clone(), &next, &distinct, &batch);
            scope.spawn(move || {
                while let Some(&unit) = distinct.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let start = Instant::now();
                    let result = batch.compile_or_load(unit).map(|compiled| batch.list_machine_code(unit, compiled));
                    let result = result.map(add_digests);
                    // The receiver outlives every sender.
                    let _ = sender.send((unit, result, start.elapsed().as_secs_f64()));
                }
            });
        }
        drop(sender);
        for (unit, result, seconds) in receiver {
            on_done(unit, &result, seconds);
            results.insert(unit.clone(), result);
        }
    });
    results
}

fn parse_limit(text: &str) -> Result<Duration, OptionsError> {
    let limit = humantime::parse_duration(text).ok().filter(|limit| *limit > Duration::ZERO && *limit <= LONGEST_LIMIT);
    limit.ok_or_else(|| OptionsError::Limit(text.to_owned()))
}

/// State shared by all units of a batch.
struct Batch<'a> {
    target: Target,
    toolkit: &'a Toolkit,
    options: &'a CompileOptions,
    scanner: Scanner,
}

impl Batch<'_> {
    /// Compiles every source of a unit as a separate unit. They are linked when the unit is loaded.
    fn compile_parts(&self, unit: &CompileUnit) -> UnitResult {
        let own = CompileUnit { linked: Vec::new(), ..unit.clone() };
        let other = |source: &PathBuf| {
            let (source, kernels, symbols) = (source.clone(), Vec::new(), Vec::new());
            self.compile_or_load(&CompileUnit { source, kernels, symbols, ..own.clone() })
        };
        let first = self.compile_or_load(&own)?;
        let others = unit.linked.iter().map(other).collect::<Result<Vec<Compiled>, _>>()?;
        let all = || [&first].into_iter().chain(&others);
        let joined = |of: fn(&Compiled) -> &str| all().map(of).collect::<Vec<_>>().join("\n");
        let hash = |of: fn(&Compiled) -> &str| sha256_hex(joined(of).as_bytes());
        let parts = [&unit.source].into_iter().chain(&unit.linked).zip(all()).map(|(source, made)| CodePart {
            source: source.file_name().unwrap_or_default().display().to_string(),
            code: made.code.clone(),
        });
        Ok(Compiled {
            key: CompileKey(hash(|made| &made.key.0)),
            source: hash(|made| &made.source),
            log: joined(|made| &made.log).trim().to_owned(),
            parts: parts.collect(),
            // A digest would not cover the code that is linked with the kernel.
            digests: BTreeMap::new(),
            operations: BTreeMap::new(),
            machine: None,
            cached: all().all(|made| made.cached),
            ..first.clone()
        })
    }

    /// For a unit compiled for the simulator, adds the kernels' machine instructions, which the simulator counts.
    fn list_machine_code(&self, unit: &CompileUnit, compiled: Compiled) -> Compiled {
        let (Target::Ptx(capability), Some(on_demand)) = (self.target, &self.options.on_demand) else {
            return compiled;
        };
        if compiled.kind != CodeKind::Ptx {
            return compiled;
        }
        let listed = on_demand.list(unit, &compiled, capability);
        Compiled { listing: Some(listed.map_or_else(ListedCode::Unknown, ListedCode::File)), ..compiled }
    }

    fn compile_or_load(&self, unit: &CompileUnit) -> UnitResult {
        if !unit.linked.is_empty() {
            return self.compile_parts(unit);
        }
        if unit.form() != SourceForm::Cuda {
            let code = regular::read(&unit.source)
                .map_err(|e| failure(&format!("cannot read {}: {e}", unit.source.display()), ""))?;
            let compiled = ready::describe(unit, &code, &self.toolkit.info)?;
            let address = compiled.key.0.clone();
            return self.options.cache.store(&address, &code, compiled).map_err(|e| self.unusable(&e));
        }
        let mut fresh = None;
        for _ in 0..ATTEMPTS {
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(failure(&NoReply::Interrupted, ""));
            }
            let identity = self.identify(unit, fresh.as_ref().unwrap_or(&self.scanner))?;
            if let Some(compiled) = self.options.cache.load(&identity.address) {
                tracing::info!(entry = identity.address, "found in the cache: {}", unit.source.display());
                return self.finished(unit, &identity, compiled);
            }
            let span = tracing::info_span!("compile", source = %unit.source.display(), kernels = ?unit.kernels);
            let made = span.in_scope(|| self.compile_or_share(unit, &identity));
            drop(span);
            // The compiler reads the included files after they were hashed. Code of a file saved in between must not be
            // stored under the old hash.
            let now = fresh.insert(Scanner::confined_to(self.options.project.clone()));
            if !identity.whole || identity.is_unchanged(&self.identify(unit, now)?) {
                let (code, compiled) = made?;
                let stored = self.options.cache.store(&identity.address, &code, compiled);
                return stored.map_err(|e| self.unusable(&e)).and_then(|kept| self.finished(unit, &identity, kept));
            }
        }
        Err(failure(&"its source or an included file kept changing while it was compiled", ""))
    }

    /// Stops the batch for a reason that affects all units; returns this unit's failure.
    fn unusable(&self, why: &dyn Display) -> CompileFailure {
        // Only the first reason is kept.
        let _ = self.options.fault.set(why.to_string());
        self.options.stop.store(true, Ordering::Relaxed);
        failure(why, "")
    }

    /// Adds this unit's hashes, which a cache entry may lack, and the library with which GPU code is linked later. The
    /// cache does not store toolkit paths.
    fn finished(&self, unit: &CompileUnit, identity: &Identity, compiled: Compiled) -> UnitResult {
        let device_runtime = match self.target {
            Target::Gpu(_) if unit.settings.relocatable => {
                Some(self.toolkit.device_runtime.clone().ok_or_else(|| {
                    let message = format!(
                        "a kernel that launches kernels is linked with {DEVICE_RUNTIME}, which the toolkit lacks: {}; \
                     install the toolkit's static runtime, or set RUNNER_TOOLKIT=pinned",
                        self.toolkit.describe()
                    );
                    failure(&message, "")
                })?)
            }
            _ => None,
        };
        let (source, options) = (identity.source_hash.clone(), identity.options_hash.clone());
        Ok(Compiled { source, options, device_runtime, ..compiled })
    }

    fn identify(&self, unit: &CompileUnit, scanner: &Scanner) -> Result<Identity, CompileFailure> {
        let installed = self.options.installed.compiler(unit);
        let compiler = installed.unwrap_or_else(|| Compiler::nvrtc(self.toolkit));
        let options = UnitOptions::parse(unit).map_err(|refused| {
            let RefusedOption { message, hint } = refused;
            failure(&format!("{message}: {hint}"), "")
        })?;
        Identity::compute(unit, options, self.target, &compiler, scanner)
            .map_err(|e| failure(&format!("cannot read {}: {e}", unit.source.display()), ""))
    }

    /// Compiles a unit, or takes its kernels from code compiled for other kernels of the file. Waits if this or another
    /// process is compiling the file.
    fn compile_or_share(&self, unit: &CompileUnit, identity: &Identity) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let Some(address) = &identity.file_address else { return self.compile(unit, identity) };
        let lock = self.options.cache.lock_file(address).map_err(|e| self.unusable(&e))?;
        // Without file locks, the file may be compiled twice.
        while let Err(TryLockError::WouldBlock) = lock.try_lock() {
            if self.options.stop.load(Ordering::Relaxed) {
                return Err(failure(&NoReply::Interrupted, ""));
            }
            thread::sleep(WAIT);
        }
        let file = self.options.cache.load(address);
        if let Some(shared) = file.and_then(|file| whole_file::narrow(&file, unit, identity)) {
            tracing::info!(entry = address, "taken from the code of its file: {:?}", unit.kernels);
            return Ok((read(&shared.code)?, shared));
        }
        self.compile(unit, identity)
    }

    /// Describes the code of a unit, and stores the file's other kernels in it. `note` precedes the compiler's
    /// messages.
    fn describe_and_share(
        &self,
        unit: &CompileUnit,
        identity: &Identity,
        Built { kind, code, lowered, operations, machine, log }: Built,
        note: &str,
    ) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let machine = (!machine.is_empty()).then(|| self.options.cache.store_machine(&machine));
        let machine = machine.transpose().map_err(|e| self.unusable(&e))?;
        let describe = |unit: &CompileUnit, lowered: &BTreeMap<String, String>| {
            let compiled = describe(unit, identity, self.toolkit, kind, lowered, &log, &code);
            let replaced = identity.replaced.as_ref().map_or("", |replaced| &replaced.log);
            let log = [note, replaced, &compiled.log].join("\n").trim().to_owned();
            let operations = whole_file::rename_keys(&operations, &compiled.kernels);
            Compiled { operations, machine: machine.clone(), log, ..compiled }
        };
        if let Some(address) = identity.file_address.as_ref().filter(|_| self.is_unchanged(unit, identity)) {
            let kernels = whole_file::list_kernels(kind, &code);
            let lowered = kernels.iter().map(|name| (name.clone(), name.clone())).collect();
            let file = describe(&CompileUnit { kernels, ..unit.clone() }, &lowered);
            self.options.cache.store(address, &code, file).map_err(|e| self.unusable(&e))?;
        }
        let compiled = describe(unit, &lowered);
        Ok((code, compiled))
    }

    /// Whether no file of the unit has changed since the unit was identified for NVRTC.
    fn is_unchanged(&self, unit: &CompileUnit, identity: &Identity) -> bool {
        let unit = CompileUnit { compiler: KernelCompiler::Nvrtc, ..unit.clone() };
        let scanner = Scanner::confined_to(self.options.project.clone());
        self.identify(&unit, &scanner).is_ok_and(|now| identity.is_unchanged(&now))
    }

    /// Compiles a unit with nvcc or clang.
    fn compile_with(
        &self,
        installed: &Installed,
        unit: &CompileUnit,
        identity: &Identity,
        note: &str,
    ) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let CompileOptions { limit, stop, .. } = self.options;
        let (options, target, readable) = (&options_of_program(identity), self.target, &self.readable(identity));
        let replaced = identity.replaced.as_ref();
        let build = KernelBuild { unit, options, replaced, target, readable, limit: *limit, stop };
        self.describe_and_share(unit, identity, build.run(installed, &expressions(unit))?, note)
    }

    /// Compiles a source with nvcc after NVRTC has rejected it, if host code may be the reason.
    fn compile_refused(
        &self,
        unit: &CompileUnit,
        identity: &Identity,
        refusal: CompileFailure,
    ) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let may_compile = identity.includes_host_headers
            || log::needs_nvcc(&refusal.log)
            || host_headers::lacks_warp_function(&refusal.log);
        let Some(nvcc) = self.options.on_demand.as_ref().filter(|_| may_compile) else { return Err(refusal) };
        let nvcc = nvcc.nvcc(self.toolkit).map_err(|lack| CompileFailure {
            summary: format!("{}; nvcc, which compiles host code, cannot be used: {lack}", refusal.summary),
            log: refusal.log.clone(),
        })?;
        let installed = Installed { nvcc: Some(nvcc.clone()), ..Installed::default() };
        // NVRTC allows `constexpr` host functions in device code by default.
        let options = [identity.options.stable.clone(), vec!["--expt-relaxed-constexpr".to_owned()]].concat();
        let identity =
            &Identity { options: UnitOptions { stable: options, ..identity.options.clone() }, ..identity.clone() };
        let unit = CompileUnit { compiler: KernelCompiler::Nvcc, ..unit.clone() };
        let note = format!("compiled by {}, since NVRTC rejects it: {}", nvcc.name(), refusal.summary);
        let refused = match self.compile_with(&installed, &unit, identity, &note) {
            Err(refused) if !self.options.stop.load(Ordering::Relaxed) => refused,
            result => return result,
        };
        self.compile_device_half(&installed, &unit, identity, refused)
    }

    /// Compiles a source that nvcc refused without its host half. Fails with the first error, and the last one if it is
    /// another.
    fn compile_device_half(
        &self,
        installed: &Installed,
        unit: &CompileUnit,
        identity: &Identity,
        refused: CompileFailure,
    ) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let source = identity.replaced.as_ref().map_or(&*identity.source, |replaced| &replaced.text);
        let log = identity.replaced.as_ref().map_or("", |replaced| &replaced.log);
        let path = std::path::absolute(&unit.source).unwrap_or_else(|_| unit.source.clone()).display().to_string();
        let mut headers: Vec<File> = identity
            .files
            .iter()
            .skip(1)
            .filter_map(|path| Some((path.display().to_string(), regular::read(path).ok()?)))
            .map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned()))
            .collect();
        let note =
            format!("compiled without its host code, because nvcc rejects it with that code: {}", refused.summary);
        let own = (path.clone(), without_mark(source).to_owned());
        let roots = expressions(unit);
        let roots: Vec<&str> = roots.iter().flat_map(|root| tokens(root)).filter(|word| is_name(word)).collect();
        let (mut absent, mut last) = (Vec::new(), None);
        // A header that does not compile may not be needed at all.
        for (is_narrow, may_drop) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut why = refused.summary.clone();
            for _ in 0..=MOST_HOST_HEADERS {
                let source = flattened(&own, &headers);
                absent.extend(log::header_of_error(&why, &source).filter(|header| !absent.contains(header)));
                let half =
                    if is_narrow { reached_half(&source, &absent, &roots) } else { device_half(&source, &absent) };
                let is_enough = host_headers::lacks_warp_function(&refused.summary);
                let Some(half) = half.or_else(|| is_enough.then(|| source.clone())) else { break };
                let text = host_headers::instead(&absent, &refused.summary, &path) + &half;
                let half = Identity { replaced: Some(Replaced { text, log: log.to_owned() }), ..identity.clone() };
                match self.compile_with(installed, unit, &half, &note) {
                    Err(failure) => why = failure.summary,
                    compiled => return compiled,
                }
                let place = why.split([':', '(']).next().unwrap_or_default();
                let at_fault = headers.iter().position(|(path, _)| may_drop && path == place);
                drop(at_fault.map(|header| headers.remove(header)));
                let is_known = log::header_of_error(&why, &source).is_none_or(|header| absent.contains(&header));
                if is_known && at_fault.is_none() {
                    break;
                }
            }
            last = last.or(Some(why));
        }
        let last = last.filter(|last| *last != refused.summary);
        Err(match last {
            Some(last) => extended(refused, &format!("without its host code: {last}")),
            None => refused,
        })
    }

    /// Compiles a unit to code and its description, which has no path yet. A rejected source that includes library
    /// headers is compiled again with them.
    fn compile(&self, unit: &CompileUnit, identity: &Identity) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let compiled = match self.compile_once(unit, identity) {
            Err(refusal) if self.lacks_headers(identity) => match self.headers(identity) {
                Ok(headers) => self.compile_once(unit, &Identity { headers, ..identity.clone() }),
                Err(lack) => Err(extended(refusal, &lack)),
            },
            compiled => compiled,
        };
        compiled.map_err(|refusal| match log::remedy(&refusal.summary, unit.settings.relocatable) {
            Some(remedy) => extended(refusal, remedy),
            None => refusal,
        })
    }

    /// Whether a rejected unit might compile with headers of libraries.
    fn lacks_headers(&self, identity: &Identity) -> bool {
        !identity.libraries.is_empty() && identity.headers.is_empty() && self.options.on_demand.is_some()
    }

    fn headers(&self, identity: &Identity) -> Result<Vec<PathBuf>, String> {
        let on_demand = self.options.on_demand.as_ref();
        let folders = on_demand
            .into_iter()
            .flat_map(|on_demand| identity.libraries.iter().map(|library| on_demand.headers(self.toolkit, library)));
        folders.collect::<Result<Vec<_>, _>>().map(|folders| folders.concat())
    }

    fn compile_once(&self, unit: &CompileUnit, identity: &Identity) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let plain = PlainPaths::find(unit, identity, &self.options.cache).map_err(|error| self.unusable(&error))?;
        let Some(plain) = plain else { return self.compile_plain(unit, identity) };
        match self.compile_plain(&plain.unit, &plain.identity) {
            Ok((code, compiled)) => Ok((code, plain.restore_log(compiled))),
            Err(failure) => Err(plain.restore(&failure)),
        }
    }

    /// Compiles a unit whose paths a compiler can write into a string.
    fn compile_plain(&self, unit: &CompileUnit, identity: &Identity) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        if let Some(plugin) = &unit.plugin {
            return self.build(unit, plugin, identity);
        }
        if unit.compiler != KernelCompiler::Nvrtc {
            return self.compile_with(&self.options.installed, unit, identity, "");
        }
        if let Some(place) = identity.source.find('\0') {
            let line = identity.source[..place].lines().count().max(1);
            return Err(failure(&format!("line {line} of {} has a NUL byte: remove it", unit.source.display()), ""));
        }
        let [scratch, machine] = [self.options.cache.scratch(), self.options.cache.scratch()];
        let (scratch, machine) = (scratch.map_err(|e| self.unusable(&e))?, machine.map_err(|e| self.unusable(&e))?);
        let request = self.request(unit, identity, [scratch.path(), machine.path()]);
        let reply = child::ask(&self.options.compiler, &request, self.options.limit, &self.options.stop);
        let no_reply = |reason: NoReply| match reason {
            NoReply::NotStarted { .. } => self.unusable(&reason),
            _ => failure(&reason, reason.stderr()),
        };
        match reply.map_err(no_reply)? {
            Reply::Unwritable { reason } => Err(self.unusable(&reason)),
            Reply::Rejected { log } => {
                let log = log::readable(&log);
                let summary = log::first_error(&log).unwrap_or_else(|| "the compiler gave no reason".to_owned());
                let refusal = CompileFailure { summary, log };
                if self.lacks_headers(identity) { Err(refusal) } else { self.compile_refused(unit, identity, refusal) }
            }
            Reply::Unusable { reason } => Err(failure(&reason, "")),
            Reply::Compiled { kind, lowered, operations, log } => {
                let (code, machine) = (read(scratch.path())?, read(machine.path())?);
                let built = Built { kind, code, lowered, operations, machine, log };
                self.describe_and_share(unit, identity, built, "")
            }
        }
    }

    /// Builds the library of a host function with nvcc.
    fn build(
        &self,
        unit: &CompileUnit,
        plugin: &Plugin,
        identity: &Identity,
    ) -> Result<(Vec<u8>, Compiled), CompileFailure> {
        let nvcc = self.options.installed.nvcc.as_ref();
        let nvcc = nvcc.ok_or_else(|| failure(&"a host function needs nvcc, which was not found", ""))?;
        let (Target::Gpu(compute_capability) | Target::Ptx(compute_capability)) = self.target;
        let CompileOptions { limit, stop, .. } = self.options;
        let (options, readable) = (&options_of_program(identity), &self.readable(identity));
        let build = PluginBuild { unit, plugin, options, compute_capability, readable, limit: *limit, stop };
        let folder = tempfile::tempdir().map_err(|e| failure(&format!("no temporary folder: {e}"), ""))?;
        let (code, log) = nvcc.build(&build, folder.path())?;
        let lowered = unit.kernels.iter().map(|name| (name.clone(), name.clone())).collect();
        let compiled = describe(unit, identity, self.toolkit, CodeKind::Plugin, &lowered, &log, &code);
        Ok((code, compiled))
    }

    /// Files that a compiler may read besides its own installation: exactly the hashed ones, so that no other file can
    /// affect the code. Without a project to limit it, everything.
    fn readable(&self, identity: &Identity) -> Vec<PathBuf> {
        if self.options.project.is_limited() {
            [&identity.files[..], &identity.headers].concat()
        } else {
            vec![PathBuf::from("/")]
        }
    }

    fn request(&self, unit: &CompileUnit, identity: &Identity, [output, machine]: [&Path; 2]) -> Request {
        let dirs = identity.options.include_dirs.iter().chain(&self.toolkit.include_dirs).chain(&identity.headers);
        let mut options = identity.options.stable.clone();
        options.extend(dirs.map(|dir| format!("--include-path={}", dir.display())));
        Request {
            toolkit: self.toolkit.clone(),
            target: self.target,
            architecture: identity.options.architecture.clone(),
            name: unit.source.display().to_string(),
            source: without_mark(identity.replaced.as_ref().map_or(&*identity.source, |replaced| &replaced.text))
                .to_owned()
                + layout_definitions(&unit.symbols),
            expressions: expressions(unit),
            options,
            output: output.to_owned(),
            machine: machine.to_owned(),
            readable: self.readable(identity),
        }
    }
}

/// Options for nvcc or clang. Include folders that the source does not use are left out: they would be searched for the
/// compiler's own headers too, which no hash of the unit covers.
fn options_of_program(identity: &Identity) -> UnitOptions {
    let mut options = identity.options.clone();
    if identity.whole && !identity.includes_files {
        options.include_dirs.clear();
    }
    options.include_dirs.extend(identity.headers.iter().cloned());
    options
}

/// Strips the byte order mark that some editors write; it is an error in NVRTC but not in nvcc.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Names to look up in the code of a unit.
fn expressions(unit: &CompileUnit) -> Vec<String> {
    unit.kernels.iter().cloned().chain(unit.symbols.iter().map(|symbol| address_of(symbol))).collect()
}

/// A variable's name with the `&` that NVRTC requires.
fn address_of(symbol: &str) -> String {
    format!("&{symbol}")
}

fn read(path: &Path) -> Result<Vec<u8>, CompileFailure> {
    regular::read_data(path, regular::LONGEST_DATA)
        .map_err(|e| failure(&format!("cannot read {}: {e}", path.display()), ""))
}

fn describe(
    unit: &CompileUnit,
    identity: &Identity,
    toolkit: &Toolkit,
    kind: CodeKind,
    lowered: &BTreeMap<String, String>,
    log: &str,
    code: &[u8],
) -> Compiled {
    let read = log::read(log);
    let attributes = if kind == CodeKind::Cubin { elf::attributes(code) } else { BTreeMap::new() };
    let digests = if kind == CodeKind::Cubin { elf::digests(code) } else { BTreeMap::new() };
    let names = |wanted: &[String], expression: &dyn Fn(&str) -> String| -> BTreeMap<String, String> {
        let pairs = wanted.iter().filter_map(|name| Some((name.clone(), lowered.get(&expression(name))?.clone())));
        pairs.collect()
    };
    let kernels = names(&unit.kernels, &str::to_owned);
    let resources = kernels.iter().map(|(name, mangled)| {
        let elf = attributes.get(mangled).copied().unwrap_or_default();
        let figures = read.figures.get(mangled).copied().unwrap_or_default();
        let resources = KernelResources {
            registers: elf.registers.or(figures.registers),
            shared_static: figures.shared,
            local: elf.frame.or(figures.stack),
            spill_stores: figures.spill_stores,
            spill_loads: figures.spill_loads,
            max_threads: elf.max_threads,
            cluster: None,
        };
        (name.clone(), resources)
    });
    Compiled {
        key: identity.key.clone(),
        kind,
        code: PathBuf::new(),
        resources: resources.collect(),
        digests: whole_file::rename_keys(&digests, &kernels),
        operations: BTreeMap::new(),
        symbols: names(&unit.symbols, &address_of),
        kernels,
        toolkit: toolkit.info.clone(),
        log: read.warnings,
        machine: None,
        listing: None,
        device_runtime: None,
        parts: Vec::new(),
        source: identity.source_hash.clone(),
        options: identity.options_hash.clone(),
        cached: false,
    }
}

fn extended(CompileFailure { summary, log }: CompileFailure, more: &str) -> CompileFailure {
    CompileFailure { summary: format!("{summary}; {more}"), log }
}

fn failure(summary: &dyn Display, log: &str) -> CompileFailure {
    CompileFailure { summary: summary.to_string(), log: log.to_owned() }
}
