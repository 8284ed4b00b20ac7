//! Expected values that a Python function computes, in a child process with a time limit.
//!
//! This is the only place that runs a script of a manifest; the user has consented to it before. The function gets arrays
//! of numpy and numbers, and returns an array. Results are kept in the user's cache by the hash of the script and of
//! everything that the function gets.

use std::env;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use etcetera::BaseStrategy as _;
use serde_json::json;

use super::operand::{Lanes, Operand};
use crate::atomic;
use crate::model::{ElementType, PythonArgument, PythonPlan, Value, sha256_hex};
use crate::npy;
use crate::programs;
use crate::regular;

/// What the child runs: a request in JSON on standard input, the result into a file. Isolated mode keeps modules of the
/// working directory away.
const DRIVER: &str = include_str!("python_driver.py");

/// How often a waiting parent looks whether the child has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An input, by the name of its buffer.
pub type Input<'a> = (&'a str, ElementType, Arc<Vec<u8>>);

/// The array that the function returns, as elements of `element`; `keep` says whether the cache is used. Errors name the
/// function.
pub fn call(
    plan: &PythonPlan,
    inputs: &[Input<'_>],
    element: ElementType,
    limit: Duration,
    keep: bool,
) -> Result<Operand, String> {
    let name = format!("{}:{}", plan.path.file_name().unwrap_or_default().display(), plan.function);
    let named = |problem: String| format!("{name}: {problem}");
    let script = regular::read(&plan.path).map_err(|e| named(format!("cannot read {}: {e}", plan.path.display())))?;
    let kept = cached(plan, &script, inputs).filter(|_| keep);
    let known = kept.as_deref().and_then(|file| result(file, element).ok());
    if let Some(known) = known {
        return known.map_err(named);
    }
    let folder = tempfile::tempdir().map_err(|e| named(format!("no folder for its inputs: {e}")))?;
    let output = folder.path().join("out.npy");
    run(plan, inputs, folder.path(), &output, limit).map_err(named)?;
    let made = result(&output, element).map_err(named)?;
    if let Some(kept) = kept
        && let Ok(bytes) = regular::read_up_to(&output, u64::MAX)
    {
        // Without the cache the function is called again.
        let _ = atomic::write(&kept, &bytes);
    }
    made.map_err(named)
}

/// The file of the cache for this call.
fn cached(plan: &PythonPlan, script: &[u8], inputs: &[Input<'_>]) -> Option<PathBuf> {
    let root = match env::var_os("RUNNER_CACHE").filter(|root| !root.is_empty()) {
        Some(root) => PathBuf::from(root),
        None => etcetera::choose_base_strategy().ok()?.cache_dir().join("runner"),
    };
    let mut parts = vec![sha256_hex(DRIVER.as_bytes()), sha256_hex(script), plan.function.clone()];
    parts.push(serde_json::to_string(&plan.arguments).ok()?);
    parts.extend(inputs.iter().map(|(name, element, bytes)| format!("{name} {element} {}", sha256_hex(bytes))));
    Some(root.join("references").join(format!("{}.npy", sha256_hex(parts.join("\n").as_bytes()))))
}

/// Runs the function in a child, which is killed at the limit.
fn run(plan: &PythonPlan, inputs: &[Input<'_>], folder: &Path, output: &Path, limit: Duration) -> Result<(), String> {
    let mut arguments = Vec::new();
    for argument in &plan.arguments {
        arguments.push(match argument {
            PythonArgument::Value(Value::Type(element)) => json!({ "value": element.name() }),
            PythonArgument::Value(value) => json!({ "value": value }),
            PythonArgument::Buffer(name) => {
                let (_, element, bytes) = inputs
                    .iter()
                    .find(|(known, ..)| known == name)
                    .ok_or_else(|| format!("the case has no buffer `{name}`"))?;
                let path = folder.join(format!("{name}.npy"));
                std::fs::write(&path, array(*element, bytes))
                    .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
                json!({ "npy": path })
            }
        });
    }
    let script = std::path::absolute(&plan.path).map_err(|e| format!("{}: {e}", plan.path.display()))?;
    let request = json!({ "script": script, "function": plan.function, "arguments": arguments, "output": output });
    let python = programs::python();
    let mut child = Command::new(&python)
        .args(["-I", "-c", DRIVER])
        .env("PATH", programs::search_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| {
            format!("cannot start `{python}`: {e}; set {} to an interpreter with numpy", programs::PYTHON_VARIABLE)
        })?;
    // A child that does not read its request ends with an error, which is reported below.
    let _ = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(request.to_string().as_bytes()));
    let errors = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL_INTERVAL),
            Ok(None) => {
                // Killing fails if the child has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("ran past its limit of {} s; set a longer [measure] timeout", limit.as_secs_f64()));
            }
            Err(error) => return Err(format!("cannot wait for `{python}`: {error}")),
        }
    };
    if status.success() {
        return Ok(());
    }
    let errors = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    let hint = if last.contains("No module named 'numpy'") {
        format!("; install numpy for `{python}`, or set {} to an interpreter that has it", programs::PYTHON_VARIABLE)
    } else {
        String::new()
    };
    Err(format!("{last}{hint}"))
}

/// A file for numpy, which has no bf16: these become f32.
fn array(element: ElementType, bytes: &[u8]) -> Vec<u8> {
    if element != ElementType::Bf16 {
        return npy::file(element, bytes);
    }
    let pairs = bytes.as_chunks::<2>().0.iter();
    let widened: Vec<u8> = pairs.flat_map(|pair| half::bf16::from_le_bytes(*pair).to_f32().to_le_bytes()).collect();
    npy::file(ElementType::F32, &widened)
}

/// The result in a file: the driver writes f64, i64 or u64. The inner error is one of the function.
fn result(file: &Path, element: ElementType) -> Result<Result<Operand, String>, String> {
    let header = npy::Header::read(file).map_err(|e| format!("its result cannot be read: {e}"))?;
    let stored = [ElementType::F64, ElementType::I64, ElementType::U64].into_iter().find(|known| header.holds(*known));
    let stored = stored.ok_or("its result is no array of numbers")?;
    let bytes = npy::read(file, stored, None)?;
    let words = bytes.as_chunks::<8>().0.iter();
    let lanes = match (stored, element.is_float()) {
        (ElementType::F64, true) => Lanes::Float(words.map(|word| f64::from_le_bytes(*word)).collect()),
        (ElementType::F64, false) => return Ok(Err(format!("returned floats, and {element} is expected; use astype"))),
        (ElementType::U64, true) => Lanes::Float(words.map(|word| u64::from_le_bytes(*word) as f64).collect()),
        (_, true) => Lanes::Float(words.map(|word| i64::from_le_bytes(*word) as f64).collect()),
        (_, false) => Lanes::Int(words.map(|word| i64::from_le_bytes(*word)).collect()),
    };
    Ok(Ok(Operand::Wide { element, lanes: Arc::new(lanes) }))
}
