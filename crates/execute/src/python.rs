//! Reference functions in Python, called with numpy arrays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::json;

use super::call::{Bounds, Call, Failed, finish, last_line};
use runner_files::npy;
use runner_files::regular;
use runner_process::programs;
use runner_process::sandbox;
use runner_types::{ElementType, FunctionArgument, Value, sha256_hex};

/// Script that the child runs: it reads a JSON request from standard input and writes the result to a file. Isolated
/// mode ignores modules in the working directory.
const DRIVER: &str = include_str!("python_driver.py");

/// Prints the interpreter's path and the folders it reads: those of a virtual environment, of the installation it was
/// created from, and of packages.
const WHERE: &str = "import json, sys; print(json.dumps([sys.executable, [sys.prefix, sys.base_prefix, *sys.path]]))";

/// Everything that the result depends on besides the arguments: the driver, the sandbox and the script.
pub fn identity(script: &Path) -> io::Result<String> {
    let confined = sandbox::is_enforced();
    Ok(format!("{}\n{confined}\n{}", sha256_hex(DRIVER.as_bytes()), sha256_hex(&regular::read(script)?)))
}

/// Runs the function in a child.
pub fn run(call: &Call<'_>) -> Result<(), Failed> {
    let mut arguments = Vec::new();
    for (position, argument) in call.plan.arguments.iter().enumerate() {
        arguments.push(match argument {
            FunctionArgument::Value(Value::Type(element)) => json!({ "value": element.name() }),
            FunctionArgument::Value(value) => json!({ "value": value }),
            FunctionArgument::Buffer(name) => {
                let (element, bytes) = call.input(name)?;
                let path = call.folder.join(format!("argument{position}.npy"));
                fs::write(&path, array(element, bytes))
                    .map_err(|e| Failed::environment(format_args!("cannot write {}", path.display()), &e))?;
                json!({ "npy": path })
            }
        });
    }
    let path = &call.plan.path;
    let script = std::path::absolute(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let request =
        json!({ "script": script, "function": call.plan.function, "arguments": arguments, "output": call.output });
    let interpreter = Interpreter::of_this_machine()?;
    let readable = [interpreter.folders.as_slice(), &[script]].concat();
    let mut command = Command::new(&interpreter.program);
    command.args(["-I", "-c", DRIVER]);
    let bounds = Bounds { readable: &readable, folder: call.folder };
    let ended = finish(&mut command, request.to_string().as_bytes(), call.end, bounds)?;
    ended.map_err(|errors| {
        let last = last_line(&errors);
        let hint = if last.contains("No module named 'numpy'") {
            let (python, variable) = (programs::python(), programs::PYTHON_VARIABLE);
            format!("; install numpy for `{python}`, or set {variable} to an interpreter that has it")
        } else if sandbox::is_denied(last) {
            "; a script may read only itself and what is installed for its interpreter".to_owned()
        } else {
            String::new()
        };
        Failed::Reason(format!("{last}{hint}"))
    })
}

/// An interpreter and the folders it reads.
#[derive(Debug)]
struct Interpreter {
    program: PathBuf,
    /// Folders of its libraries and of installed packages.
    folders: Vec<PathBuf>,
}

impl Interpreter {
    /// Interpreter for reference functions. Queried once, before any manifest code runs in it.
    fn of_this_machine() -> Result<&'static Self, String> {
        static KNOWN: OnceLock<Result<Interpreter, String>> = OnceLock::new();
        KNOWN.get_or_init(|| Self::ask(&programs::python())).as_ref().map_err(Clone::clone)
    }

    fn ask(python: &str) -> Result<Self, String> {
        let remedy = format!("set {} to an interpreter with numpy", programs::PYTHON_VARIABLE);
        let mut command = Command::new(python);
        command.args(["-I", "-c", WHERE]).env("PATH", programs::search_path()).stdin(Stdio::null());
        let output = command.output().map_err(|e| format!("cannot start `{python}`: {e}; {remedy}"))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        let known: Option<(PathBuf, Vec<PathBuf>)> = serde_json::from_slice(&output.stdout).ok();
        let (program, mut folders) = known.filter(|(program, _)| program.is_absolute()).ok_or_else(|| {
            format!("`{python}` does not say where it is installed: {}; {remedy}", last_line(&errors))
        })?;
        folders.retain(|folder| !sandbox::has_home(folder));
        folders.push(sandbox::installation(&program));
        Ok(Self { program, folders })
    }
}

/// Array in `.npy` format. numpy has no bf16, so these become f32.
fn array(element: ElementType, bytes: &[u8]) -> Vec<u8> {
    if element != ElementType::Bf16 {
        return npy::file(element, bytes);
    }
    let pairs = bytes.as_chunks::<2>().0.iter();
    let widened: Vec<u8> = pairs.flat_map(|pair| half::bf16::from_le_bytes(*pair).to_f32().to_le_bytes()).collect();
    npy::file(ElementType::F32, &widened)
}
