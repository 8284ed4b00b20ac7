//! Functions in Python: arguments are arrays of numpy.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::call::{Call, Failed, finish, last_line};
use crate::model::{ElementType, FunctionArgument, Value, sha256_hex};
use crate::npy;
use crate::programs;
use crate::regular;

/// What the child runs: a request in JSON on standard input, the result into a file. Isolated mode keeps modules of the
/// working directory away.
const DRIVER: &str = include_str!("python_driver.py");

/// What the result depends on besides the arguments: the driver and the script.
pub fn identity(script: &Path) -> io::Result<String> {
    Ok(format!("{}\n{}", sha256_hex(DRIVER.as_bytes()), sha256_hex(&regular::read(script)?)))
}

/// Runs the function in a child.
pub fn run(call: &Call<'_>) -> Result<(), Failed> {
    let mut arguments = Vec::new();
    for argument in &call.plan.arguments {
        arguments.push(match argument {
            FunctionArgument::Value(Value::Type(element)) => json!({ "value": element.name() }),
            FunctionArgument::Value(value) => json!({ "value": value }),
            FunctionArgument::Buffer(name) => {
                let (element, bytes) = call.input(name)?;
                let path = call.folder.join(format!("{name}.npy"));
                fs::write(&path, array(element, bytes)).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
                json!({ "npy": path })
            }
        });
    }
    let path = &call.plan.path;
    let script = std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let request =
        json!({ "script": script, "function": call.plan.function, "arguments": arguments, "output": call.output });
    let (python, variable) = (programs::python(), programs::PYTHON_VARIABLE);
    let remedy = format!("; set {variable} to an interpreter with numpy");
    let mut command = Command::new(&python);
    let ended = finish(command.args(["-I", "-c", DRIVER]), request.to_string().as_bytes(), call.end, &remedy)?;
    ended.map_err(|errors| {
        let last = last_line(&errors);
        let hint = if last.contains("No module named 'numpy'") {
            format!("; install numpy for `{python}`, or set {variable} to an interpreter that has it")
        } else {
            String::new()
        };
        Failed::Reason(format!("{last}{hint}"))
    })
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
