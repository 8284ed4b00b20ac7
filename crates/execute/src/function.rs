//! Expected values computed by a Python or C++ function, in a child process with a time limit.
//!
//! This is the only manifest code besides host functions that runs on the host; the user has consented to it. The
//! function takes arrays and numbers and returns an array. Results are kept in the user's cache under a hash of the
//! code and all arguments. Up to one function per host core runs at a time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use super::call::{Call, End, Failed, Input};
use super::operand::{Lanes, Operand};
use super::stop::Stop;
use super::{cpp, python};
use runner_files::cache_folder::cache_folder;
use runner_files::npy;
use runner_files::regular;
use runner_files::sealed;
use runner_types::{ElementType, ExpectPlan, FunctionPlan, Outcome, sha256_hex};

/// Largest result to keep, in bytes per second that the function took: more would take longer to store and read than to
/// recompute.
const WORTH_KEEPING: f64 = 50e6;

/// Function whose value a check expects.
pub const fn called(expect: &ExpectPlan) -> Option<(&FunctionPlan, Language)> {
    match expect {
        ExpectPlan::Python(plan) => Some((plan, Language::Python)),
        ExpectPlan::Cpp(plan) => Some((plan, Language::Cpp)),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Cpp,
}

/// A function with everything that its value depends on.
#[derive(Debug, Clone)]
pub struct Task {
    plan: FunctionPlan,
    language: Language,
    inputs: Vec<Input>,
    /// Type of the returned elements.
    element: ElementType,
    limit: Duration,
    /// Whether to keep the value in the cache.
    keep: bool,
    cancelled: Arc<AtomicBool>,
}

impl Task {
    pub fn new(
        (plan, language): (FunctionPlan, Language),
        inputs: Vec<Input>,
        element: ElementType,
        (limit, keep): (Duration, bool),
    ) -> Self {
        Self { plan, language, inputs, element, limit, keep, cancelled: Arc::default() }
    }

    /// Whether both have the same value: the same function of the same arrays in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.inputs.iter().zip(&other.inputs);
        self.plan == other.plan
            && (self.language, self.element) == (other.language, other.element)
            && pairs.all(|((.., one), (.., other))| Arc::ptr_eq(one, other))
    }

    /// Arguments that are arrays in memory.
    pub fn inputs(&self) -> impl Iterator<Item = &Arc<Vec<u8>>> {
        self.inputs.iter().map(|(.., bytes)| bytes)
    }

    /// Kills the child if it is running; prevents it from starting if it is waiting.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Number of further functions that may start; `None` before the first.
static PERMITS: (Mutex<Option<usize>>, Condvar) = (Mutex::new(None), Condvar::new());

/// Permission to run a child, held until dropped.
struct Permit;

impl Permit {
    /// Waits until a core is free for another function; at least two may always run.
    fn wait() -> Self {
        let cores = || available_parallelism().map_or(2, |cores| cores.get().max(2));
        let mut free = PERMITS.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *free.get_or_insert_with(cores) == 0 {
            let _span = tracing::info_span!("wait until fewer references are computed").entered();
            free = PERMITS.1.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free = free.map(|free| free - 1);
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut free = PERMITS.0.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.map(|free| free + 1);
        PERMITS.1.notify_one();
    }
}

/// Computes the function's array. Errors name the function.
pub fn call(task: &Task) -> Result<Operand, Stop> {
    let Task { plan, language, inputs, element, limit, keep, cancelled } = task;
    let _permit = Permit::wait();
    let name = format!("{}:{}", plan.path.file_name().unwrap_or_default().display(), plan.function);
    let named = |problem: String| format!("{name}: {problem}");
    let environment = |problem: String| Stop::Case(Outcome::NotRun { why: named(problem), environment: true });
    let identity = || match *language {
        Language::Python => python::identity(&plan.path).map(Some),
        Language::Cpp => cpp::identity(&plan.path),
    };
    let code = identity().map_err(|e| named(format!("cannot read {}: {e}", plan.path.display())))?;
    let cache = folder();
    let kept = code.as_ref().filter(|_| *keep);
    let kept = kept.and_then(|code| Some(cache.as_ref()?.join(result_name(plan, code, inputs)?)));
    let known = kept.as_deref().and_then(|file| result(&sealed::read(file)?, *element).ok());
    if let Some(known) = known {
        return Ok(known.map_err(named)?);
    }
    let folder = tempfile::tempdir().map_err(|e| environment(format!("no folder for its inputs: {e}")))?;
    let output = folder.path().join("out.npy");
    let end = End { deadline: Instant::now() + *limit, cancelled };
    let call = Call { plan, inputs, folder: folder.path(), output: &output, end, cache: cache.as_deref() };
    let started = Instant::now();
    let ran = match *language {
        Language::Python => python::run(&call),
        Language::Cpp => cpp::run(&call),
    };
    ran.map_err(|failed| match failed {
        Failed::Limit => {
            let seconds = limit.as_secs_f64();
            Stop::from(named(format!("ran past its limit of {seconds} s; set a longer [measure] timeout")))
        }
        Failed::Environment(reason) => environment(reason),
        Failed::Reason(reason) => Stop::from(named(reason)),
    })?;
    let took = started.elapsed().as_secs_f64();
    let bytes = regular::read_up_to(&output, u64::MAX).map_err(|e| named(format!("its result cannot be read: {e}")))?;
    let made = result(&bytes, *element).map_err(named)?;
    // The file may have been saved after it was hashed.
    let is_of_code = || identity().is_ok_and(|now| now == code);
    if let Some(kept) = kept.filter(|_| bytes.len() as f64 <= took * WORTH_KEEPING && is_of_code()) {
        // If writing fails, the function is called again next time.
        let _ = sealed::write(&kept, &bytes);
    }
    Ok(made.map_err(named)?)
}

/// Cache folder for results.
fn folder() -> Option<PathBuf> {
    Some(cache_folder().ok()?.join("references"))
}

/// File name of a call's cached result.
fn result_name(plan: &FunctionPlan, code: &str, inputs: &[Input]) -> Option<String> {
    let mut parts = vec![code.to_owned(), plan.function.clone()];
    parts.push(serde_json::to_string(&plan.arguments).ok()?);
    parts.extend(inputs.iter().map(|(name, element, bytes)| format!("{name} {element} {}", sha256_hex(bytes))));
    Some(format!("{}.npy", sha256_hex(parts.join("\n").as_bytes())))
}

/// Parses a result of type f64, i64 or u64. The inner error is the function's own.
fn result(file: &[u8], element: ElementType) -> Result<Result<Operand, String>, String> {
    let header = npy::Header::from_start(&mut &*file).map_err(|e| format!("its result cannot be read: {e}"))?;
    let stored = [ElementType::F64, ElementType::I64, ElementType::U64].into_iter().find(|known| header.holds(*known));
    let stored = stored.ok_or("its result is not an array of numbers")?;
    let bytes = npy::parse(file, stored, None).map_err(|problem| format!("its result {problem}"))?;
    let words = bytes.as_chunks::<8>().0.iter();
    let lanes = match (stored, element.is_float()) {
        (ElementType::F64, true) => Lanes::Float(words.map(|word| f64::from_le_bytes(*word)).collect()),
        (ElementType::F64, false) => {
            return Ok(Err(format!("returned floats, but {element} is expected; return integers")));
        }
        (ElementType::U64, true) => Lanes::Float(words.map(|word| u64::from_le_bytes(*word) as f64).collect()),
        (_, true) => Lanes::Float(words.map(|word| i64::from_le_bytes(*word) as f64).collect()),
        (_, false) => Lanes::Int(words.map(|word| i64::from_le_bytes(*word)).collect()),
    };
    Ok(Ok(Operand::Wide { element, lanes: Arc::new(lanes) }))
}
