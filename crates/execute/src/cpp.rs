//! Reference functions in C++: the source and a driver, compiled into one program with the host's compiler.
//!
//! Arguments are passed at run time, so one program serves all cases with the same argument types. It is kept in the
//! user's cache.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use tempfile::TempDir;

use super::call::{Bounds, Call, End, Failed, POLL_INTERVAL, finish, last_line};
use runner_cuda_source::cpp::{self, Hashed};
use runner_files::atomic::{self, UNFINISHED};
use runner_files::sealed;
use runner_process::programs;
use runner_process::sandbox;
use runner_types::{ElementType, FunctionArgument, Value, sha256_hex};

/// Part of the program besides the source and `main`.
const DRIVER: &str = include_str!("cpp_driver.hpp");

const OPTIONS: [&str; 3] = ["-std=c++17", "-O2", "-pthread"];

/// How often a source that is saved while it is compiled is compiled.
const ATTEMPTS: u32 = 3;

/// Everything that the result depends on besides the arguments: the driver, the sandbox, the source and its includes.
/// `None` if an include cannot be resolved.
pub fn identity(source: &Path) -> io::Result<Option<String>> {
    Ok(cpp::digest(source)?.map(|digest| {
        let confined = sandbox::is_enforced();
        format!("{}\n{confined}\n{digest}", sha256_hex(DRIVER.as_bytes()))
    }))
}

/// Compiles the program unless it is cached, and runs it in a child process.
pub fn run(call: &Call<'_>) -> Result<(), Failed> {
    let (text, arguments) = program(call)?;
    let compiler = programs::cxx().ok_or_else(|| {
        let variable = programs::CXX_VARIABLE;
        format!("there is no C++ compiler (c++, g++ or clang++); install one, or set {variable} to one")
    })?;
    let (executable, hashed) = compiled(call, &compiler, &text)?;
    let mut command = Command::new(&executable);
    // The program's libraries may come with the compiler.
    let readable = [hashed.files, vec![executable.clone(), sandbox::installation(&compiler)]].concat();
    let bounds = Bounds { readable: &readable, folder: call.folder };
    let ended = finish(command.arg(call.output).args(arguments), &[], call.end, bounds)?;
    ended.map_err(|errors| Failed::Reason(last_line(&errors).to_owned()))
}

/// Source text of the program, and its arguments after the output.
fn program(call: &Call<'_>) -> Result<(String, Vec<String>), Failed> {
    let source = std::path::absolute(&call.plan.path).map_err(|e| format!("{}: {e}", call.plan.path.display()))?;
    let (mut given, mut arguments) = (Vec::new(), Vec::new());
    for argument in &call.plan.arguments {
        let place = format!("argv[{}]", arguments.len() + 2);
        given.push(match argument {
            FunctionArgument::Buffer(name) => {
                let (element, bytes) = call.input(name)?;
                let (type_name, bytes) = array(element, bytes);
                let path = call.folder.join(format!("argument{}.bin", arguments.len()));
                fs::write(&path, bytes)
                    .map_err(|e| Failed::environment(format_args!("cannot write {}", path.display()), &e))?;
                arguments.push(path.display().to_string());
                format!("runner_driver::read<{type_name}>({place})")
            }
            FunctionArgument::Value(value) => {
                arguments.push(match value {
                    Value::Type(element) => element.name().to_owned(),
                    Value::Bool(value) => u8::from(*value).to_string(),
                    Value::Float(value) => format!("{value:e}"),
                    other => other.to_string(),
                });
                match value {
                    Value::Int(_) => format!("std::stoll({place})"),
                    Value::Float(_) => format!("std::stod({place})"),
                    Value::Bool(_) => format!("(*{place} == '1')"),
                    Value::Str(_) | Value::Type(_) => place,
                }
            }
        });
    }
    let mut text = format!("{DRIVER}#include {:?}\n#undef main\n", source.display().to_string());
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "int main(int, char **argv)\n{{\n    try {{\n        runner_driver::write(argv[1], {}({}));\n    }} catch (const \
         std::exception &error) {{\n        std::fprintf(stderr, \"%s\\n\", error.what());\n        return 1;\n    }}\n}}\n",
        call.plan.function,
        given.join(", ")
    );
    Ok((text, arguments))
}

/// C++ type and bytes of the elements. C++17 has no 16-bit floats, so these become `float`.
fn array(element: ElementType, bytes: &[u8]) -> (&'static str, Cow<'_, [u8]>) {
    let widened = |to_f32: fn([u8; 2]) -> f32| {
        bytes.as_chunks::<2>().0.iter().flat_map(|pair| to_f32(*pair).to_le_bytes()).collect()
    };
    let name = match element {
        ElementType::F16 => return ("float", widened(|pair| half::f16::from_le_bytes(pair).to_f32())),
        ElementType::Bf16 => return ("float", widened(|pair| half::bf16::from_le_bytes(pair).to_f32())),
        ElementType::F32 => "float",
        ElementType::F64 => "double",
        ElementType::I8 => "std::int8_t",
        ElementType::I16 => "std::int16_t",
        ElementType::I32 => "std::int32_t",
        ElementType::I64 => "std::int64_t",
        ElementType::U8 => "std::uint8_t",
        ElementType::U16 => "std::uint16_t",
        ElementType::U32 => "std::uint32_t",
        ElementType::U64 => "std::uint64_t",
    };
    (name, Cow::Borrowed(bytes))
}

/// Path of the program's executable, and the files that it was compiled from. A file saved meanwhile starts it anew.
fn compiled(call: &Call<'_>, compiler: &Path, text: &str) -> Result<(PathBuf, Hashed), Failed> {
    for _ in 0..ATTEMPTS {
        let hashed = read(call)?;
        if let Some(executable) = compile_once(call, (compiler, &hashed), text)? {
            return Ok((executable, hashed));
        }
    }
    Err(Failed::Environment("its source or an included file kept changing while it was compiled".to_owned()))
}

fn read(call: &Call<'_>) -> Result<Hashed, Failed> {
    let path = &call.plan.path;
    cpp::read(path).map_err(|e| Failed::Reason(format!("cannot read {}: {e}", path.display())))
}

/// Compiles the program unless it is cached. `None` if its files changed while the compiler read them.
fn compile_once(call: &Call<'_>, (compiler, hashed): (&Path, &Hashed), text: &str) -> Result<Option<PathBuf>, Failed> {
    let kept = hashed.digest.as_ref().zip(call.cache).map(|(digest, cache)| {
        let version = Command::new(compiler).arg("--version").stdin(Stdio::null()).output();
        let version = version.map(|output| sha256_hex(&output.stdout)).unwrap_or_default();
        // Without the sandbox, the executable may include files that were not hashed.
        let confined = sandbox::is_enforced();
        cache.join(sha256_hex(format!("{digest}\n{version}\n{OPTIONS:?}\n{confined}\n{text}").as_bytes()))
    });
    // The sandbox lets a child read the file that was there before it started, so no other call may replace it.
    let _lock = kept.as_deref().map(|kept| lock(kept, call.end)).transpose()?;
    if let Some(kept) = kept.as_ref().filter(|kept| kept.is_file()) {
        match sealed::is_intact(kept) {
            Some(true) => return Ok(Some(kept.clone())),
            Some(false) => sealed::warn_damaged(kept),
            None => {}
        }
    }
    // The compiler writes the cache file itself: a file that this process had open for writing might fail to run.
    let beside = kept.as_deref().and_then(|kept| unfinished(kept.parent()?).ok());
    let folder = beside.as_ref().map_or(call.folder, TempDir::path);
    let (source, executable) = (folder.join("program.cpp"), folder.join("program"));
    fs::write(&source, text).map_err(|e| Failed::environment(format_args!("cannot write {}", source.display()), &e))?;
    let readable = [hashed.files.as_slice(), &[sandbox::installation(compiler)]].concat();
    let mut command = Command::new(compiler);
    command.args(OPTIONS).arg("-o").arg(&executable).arg(&source);
    let ended = finish(&mut command, &[], call.end, Bounds { readable: &readable, folder })?;
    if read(call)? != *hashed {
        return Ok(None);
    }
    ended.map_err(|errors| {
        let first = errors.lines().find(|line| line.to_lowercase().contains("error"));
        let reason = first.unwrap_or_else(|| last_line(&errors)).trim();
        format!("does not compile: {reason}{}", sandbox::hint(&errors))
    })?;
    let (Some(_), Some(kept)) = (&beside, kept) else { return Ok(Some(executable)) };
    fs::rename(&executable, &kept)
        .map_err(|e| Failed::environment(format_args!("cannot rename {}", executable.display()), &e))?;
    // Without its checksum, the program is compiled again.
    let _ = sealed::attest(&kept);
    Ok(Some(kept))
}

/// Waits until no other call compiles this program. Without file locks, it may be compiled twice.
fn lock(kept: &Path, end: End<'_>) -> Result<fs::File, Failed> {
    let path = kept.with_added_extension("lock");
    kept.parent().map_or(Ok(()), atomic::create_folder).map_err(|e| Failed::Environment(e.to_string()))?;
    let made = fs::File::create(&path);
    let file = made.map_err(|e| Failed::environment(format_args!("cannot write {}", path.display()), &e))?;
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        if Instant::now() >= end.deadline || end.cancelled.load(Ordering::Relaxed) {
            return Err(Failed::Limit);
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(file)
}

/// Makes a new folder for the compiler inside a cache folder.
fn unfinished(folder: &Path) -> io::Result<TempDir> {
    atomic::create_folder(folder).map_err(|error| error.source)?;
    tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(folder)
}
