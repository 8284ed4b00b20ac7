//! Compiles kernels with nvcc or clang to PTX, which the toolkit's assembler turns into machine code for a GPU.
//!
//! Unlike NVRTC, neither compiler reports the name of a kernel in the code. So a second file includes the source and
//! initialises a variable with the address of each requested kernel, which also instantiates templates. The names are
//! read from the PTX, and the variables are removed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::elf;
use super::key::Compiler;
use super::log;
use super::nvcc::Nvcc;
use super::nvrtc::{self, Refusal};
use super::options::{Target, UnitOptions};
use super::program::{self, Bounds};
use super::replaced::Replaced;
use super::toolkit::Toolkit;
use runner_process::programs::Programs;
use runner_process::sandbox;
use runner_types::{CodeKind, CompileFailure, CompileUnit, KernelCompiler, describe_layout, layout_definitions};

/// Prefix of the variables that hold addresses of kernels.
const VARIABLE: &str = "runner_name_";

/// Headers that clang includes and newer toolkits lack. Empty ones are provided, in the last folder searched.
const HEADERS_OF_CLANG: [&str; 3] =
    ["texture_fetch_functions.h", "surface_indirect_functions.h", "curand_mtgp32_kernel.h"];

/// Newest version of clang to look for under its versioned name.
const NEWEST_CLANG: u32 = 30;

/// clang, with the toolkit whose headers and assembler it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clang {
    pub path: PathBuf,
    /// First line of `clang --version`, and the identity of the toolkit's nvcc.
    identity: String,
    toolkit: Nvcc,
}

impl Clang {
    /// The first clang on this machine, otherwise the newest with a versioned name.
    pub fn find(toolkit: &Nvcc, programs: &Programs) -> Option<Self> {
        let versioned = (1..=NEWEST_CLANG).rev().map(|version| format!("clang-{version}"));
        let names = std::iter::once("clang".to_owned()).chain(versioned);
        names.filter_map(|name| programs.find(&name)).find_map(|path| Self::at(path, toolkit.clone()))
    }

    /// The clang at this path, if it runs.
    pub fn at(path: PathBuf, toolkit: Nvcc) -> Option<Self> {
        let text = output(Command::new(&path).arg("--version"))?;
        let version = text.lines().next().filter(|line| line.contains("clang version"))?;
        let identity = format!("{version}\n{}", toolkit.compiler().identity);
        Some(Self { path, identity, toolkit })
    }

    /// Name and version, e.g. `clang 19.1.7`.
    pub fn name(&self) -> String {
        let version = self.identity.split_once("clang version ").and_then(|(_, rest)| rest.split_whitespace().next());
        format!("clang {}", version.unwrap_or("of unknown version"))
    }
}

/// Compilers installed on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Installed {
    /// Compiler of host functions, and of kernels with `compiler = "nvcc"`.
    pub nvcc: Option<Nvcc>,
    /// Compiler of kernels with `compiler = "clang"`.
    pub clang: Option<Clang>,
}

impl Installed {
    pub fn find(toolkit: &Toolkit, programs: &Programs) -> Self {
        let nvcc = Nvcc::find(toolkit, programs);
        let clang = nvcc.as_ref().and_then(|nvcc| Clang::find(nvcc, programs));
        Self { nvcc, clang }
    }

    /// Names and versions, e.g. `nvcc 13.0.88, clang 19.1.7`.
    pub fn names(&self) -> Option<String> {
        let names = [self.nvcc.as_ref().map(Nvcc::name), self.clang.as_ref().map(Clang::name)];
        let names: Vec<String> = names.into_iter().flatten().collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Folders of the compilers' own headers.
    pub fn include_dirs(&self) -> &[PathBuf] {
        let toolkit = self.nvcc.as_ref().or(self.clang.as_ref().map(|clang| &clang.toolkit));
        toolkit.map(Nvcc::include_dirs).unwrap_or_default()
    }

    /// Compiler properties on which a unit's code depends; `None` if NVRTC compiles it, or if no installed compiler
    /// does.
    pub(super) fn compiler(&self, unit: &CompileUnit) -> Option<Compiler<'_>> {
        match unit.compiler {
            KernelCompiler::Nvrtc if unit.plugin.is_none() => None,
            KernelCompiler::Nvrtc | KernelCompiler::Nvcc => self.nvcc.as_ref().map(Nvcc::compiler),
            KernelCompiler::Clang => self.clang.as_ref().map(|clang| {
                let compiler = clang.toolkit.compiler();
                Compiler { identity: clang.identity.clone(), ..compiler }
            }),
        }
    }
}

pub(super) struct KernelBuild<'a> {
    pub unit: &'a CompileUnit,
    pub options: &'a UnitOptions,
    /// The source, if it differs from the file's content.
    pub replaced: Option<&'a Replaced>,
    pub target: Target,
    /// Files that the compiler may read.
    pub readable: &'a [PathBuf],
    pub limit: Duration,
    pub stop: &'a AtomicBool,
}

#[derive(Debug)]
pub(super) struct Built {
    pub kind: CodeKind,
    pub code: Vec<u8>,
    /// Mangled name of each expression.
    pub lowered: BTreeMap<String, String>,
    /// Opcode counts of each function's machine code, by mangled name.
    pub operations: BTreeMap<String, String>,
    /// Machine code assembled from the PTX; empty if there is none.
    pub machine: Vec<u8>,
    pub log: String,
}

impl KernelBuild<'_> {
    /// Compiles the unit. `expressions` are its kernels and variables.
    pub fn run(&self, installed: &Installed, expressions: &[String]) -> Result<Built, CompileFailure> {
        let name = self.unit.compiler.name();
        let toolkit = match self.unit.compiler {
            KernelCompiler::Clang => installed.clang.as_ref().map(|clang| &clang.toolkit),
            _ => installed.nvcc.as_ref(),
        };
        let toolkit = toolkit.ok_or_else(|| failure(format!("{name} was not found")))?;
        let program = installed.clang.as_ref().filter(|_| self.unit.compiler == KernelCompiler::Clang);
        let program = program.map_or(&toolkit.path, |clang| &clang.path);
        let (architecture, kind) = self.architecture(program)?;
        let folder = tempfile::tempdir().map_err(|e| failure(format!("no temporary folder: {e}")))?;
        let place = |name: &str| folder.path().join(name);
        let written = |name: &str, text: &str| {
            fs::write(place(name), text).map_err(|e| failure(format!("cannot write {}: {e}", place(name).display())))
        };
        let included = match self.replaced {
            Some(Replaced { text, .. }) => {
                written("source.cu", &format!("#line 1 \"{}\"\n{text}", absolute(&self.unit.source)))?;
                place("source.cu")
            }
            None => self.unit.source.clone(),
        };
        written("names.cu", &names(&included, layout_definitions(&self.unit.symbols), expressions)?)?;
        let mut command = Command::new(program);
        if self.unit.compiler == KernelCompiler::Clang {
            fs::create_dir(place("headers")).map_err(|e| failure(format!("no temporary folder: {e}")))?;
            HEADERS_OF_CLANG.iter().try_for_each(|name| written(&format!("headers/{name}"), ""))?;
            command.args(self.of_clang(&architecture, toolkit.root())).arg("-idirafter").arg(place("headers"));
        } else {
            command.args(self.of_nvcc(&architecture));
        }
        command.arg("-o").arg(place("code.ptx")).arg(place("names.cu"));
        let places = self.readable.iter().cloned().chain([sandbox::installation(&toolkit.path)]).collect();
        let bounds = Bounds { readable: places, folder: folder.path(), limit: self.limit, stop: self.stop };
        // Messages and line tables name the source as the manifest does.
        let (whole, shown) = (absolute(&self.unit.source), self.unit.source.display().to_string());
        let shorten = |text: &str| text.replace(&whole, &shown);
        let shortened = |failed: CompileFailure| {
            readable(CompileFailure { summary: shorten(&failed.summary), log: shorten(&failed.log) })
        };
        let mut log = shorten(&program::run(&mut command, &bounds).map_err(shortened)?);
        let text = fs::read_to_string(place("code.ptx")).map_err(|e| failure(format!("{name} wrote no PTX: {e}")))?;
        let (ptx, mut found) = without_names(&shorten(&text));
        written("code.ptx", &ptx)?;
        let lowered = expressions.iter().enumerate();
        let lowered = lowered.filter_map(|(at, expression)| Some((expression.clone(), found.remove(&at)?))).collect();
        // For a GPU newer than the compiler, the driver assembles the PTX.
        if architecture.starts_with("sm_") {
            let mut assembler = Command::new(toolkit.root().join("bin").join("ptxas"));
            assembler.args(self.of_assembler(&architecture));
            assembler.arg("-o").arg(place("code.cubin")).arg(place("code.ptx"));
            log.push_str(&program::run(&mut assembler, &bounds).map_err(shortened)?);
        }
        let machine = fs::read(place("code.cubin"));
        let operations = machine.as_ref().map_or_else(|_| BTreeMap::new(), |code| elf::operations(code));
        let (code, machine) = match kind {
            CodeKind::Cubin => (machine.map_err(|e| failure(format!("ptxas wrote no code: {e}")))?, Vec::new()),
            _ => (ptx.into_bytes(), machine.unwrap_or_default()),
        };
        Ok(Built { kind, code, lowered, operations, machine, log })
    }

    fn architecture(&self, program: &Path) -> Result<(String, CodeKind), CompileFailure> {
        let question: &[&str] = match self.unit.compiler {
            KernelCompiler::Clang => &["--print-supported-cpus", "--target=nvptx64-nvidia-cuda"],
            _ => &["--list-gpu-arch"],
        };
        let supported = architectures(&output(Command::new(program).args(question)).unwrap_or_default());
        let own = self.options.architecture.as_deref();
        let name = self.unit.compiler.name();
        nvrtc::architecture(self.target, own, &supported, name).map_err(|refusal| match refusal {
            Refusal::Program(reason) | Refusal::Compiler(reason) => failure(reason),
        })
    }

    fn of_nvcc(&self, architecture: &str) -> Vec<String> {
        let mut arguments = vec!["--ptx".to_owned(), "--x=cu".to_owned(), format!("--gpu-architecture={architecture}")];
        arguments.extend(self.options.stable.iter().cloned());
        arguments.extend(self.options.include_dirs.iter().map(|dir| format!("--include-path={}", dir.display())));
        arguments
    }

    fn of_clang(&self, architecture: &str, toolkit: &Path) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["-x", "cuda", "--cuda-device-only", "-S", "-Wno-unknown-cuda-version", "-O3"].map(str::to_owned).into();
        arguments.push(format!("--cuda-gpu-arch={}", architecture.replace("compute_", "sm_")));
        arguments.push(format!("--cuda-path={}", toolkit.display()));
        arguments.extend(self.options.stable.iter().cloned());
        arguments.extend(self.options.include_dirs.iter().map(|dir| format!("-I{}", dir.display())));
        arguments
    }

    /// Options for the assembler. `-v`, because only its log states the kernels' resources.
    fn of_assembler(&self, architecture: &str) -> Vec<String> {
        let mut arguments = vec!["-v".to_owned(), format!("-arch={architecture}")];
        arguments.push(if self.unit.settings.debug { "-g" } else { "--generate-line-info" }.to_owned());
        arguments.extend(self.unit.settings.max_registers.map(|registers| format!("--maxrregcount={registers}")));
        if self.unit.settings.relocatable {
            // The driver links it.
            arguments.push("--compile-only".to_owned());
        }
        arguments.extend(self.options.assembler.iter().cloned());
        arguments
    }
}

/// Second file with one variable per expression, after the source and the definitions. A `#line` per variable makes
/// compiler errors name the expression.
fn names(source: &Path, definitions: &str, expressions: &[String]) -> Result<String, CompileFailure> {
    if std::path::absolute(source).is_ok_and(|path| path.to_str().is_none()) {
        return Err(failure(format!("the path {} is not UTF-8: rename the file or folder", absolute(source))));
    }
    let path = absolute(source);
    if path.contains(['"', '\\', '\n']) {
        return Err(failure(format!("the path {path} cannot be included: rename it")));
    }
    let mut text = format!("#include \"{path}\"\n{definitions}");
    for (at, expression) in expressions.iter().enumerate() {
        let shown = describe_layout(expression).unwrap_or_else(|| format!("the kernel {expression}"));
        // Writing to a string does not fail.
        let _ = writeln!(text, "#line 1 \"{}\"", shown.replace(['"', '\\', '\n'], " "));
        let expression = nvrtc::overload(expression);
        let _ = writeln!(text, "__device__ __attribute__((used)) void *{VARIABLE}{at} = (void *)({expression});");
    }
    Ok(text)
}

fn absolute(source: &Path) -> String {
    std::path::absolute(source).unwrap_or_else(|_| source.to_owned()).display().to_string()
}

/// PTX without the variables, and the name that each of them held.
fn without_names(ptx: &str) -> (String, BTreeMap<usize, String>) {
    let (mut rest, mut names) = (String::with_capacity(ptx.len()), BTreeMap::new());
    for line in ptx.lines() {
        let Some((_, variable)) = line.split_once(VARIABLE) else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        // `.global .align 8 .u64 runner_name_0 = _Z6kernelv;`, or `= generic(table);` for a variable.
        let digits = variable.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
        let value = variable.split_once('=').map(|(_, value)| value.trim().trim_end_matches(';').trim());
        if let (Some(at), Some(value)) = (digits, value) {
            let name = value.strip_prefix("generic(").and_then(|name| name.strip_suffix(')')).unwrap_or(value);
            names.insert(at, name.to_owned());
        }
    }
    (rest, names)
}

/// Numbers in `compute_90` or `sm_90` in a text, ascending, without architecture-specific ones (`sm_90a`).
fn architectures(text: &str) -> Vec<u32> {
    let known = |word: &str| word.strip_prefix("compute_").or_else(|| word.strip_prefix("sm_"))?.parse().ok();
    let mut all: Vec<u32> = text.split_whitespace().filter_map(known).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Output of a successful program, including standard error, where clang lists its architectures.
fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    Some([output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat())
}

fn readable(failed: CompileFailure) -> CompileFailure {
    CompileFailure { log: log::readable(&failed.log), ..failed }
}

fn failure(summary: String) -> CompileFailure {
    CompileFailure { summary, log: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_code_are_read_from_the_variables_and_these_are_taken_out() {
        let ptx = "// .globl\trunner_name_0\n.visible .entry _Z1kIfEvPf(\n)\n;\n\
                   .global .align 8 .u64 runner_name_0 = _Z1kIfEvPf;\n\
                   .visible .global .align 8 .u64 runner_name_1 = generic(table);\n.global .align 4 .b8 table[4];\n";
        let (rest, names) = without_names(ptx);
        assert_eq!(rest, ".visible .entry _Z1kIfEvPf(\n)\n;\n.global .align 4 .b8 table[4];\n");
        assert_eq!(names, BTreeMap::from([(0, "_Z1kIfEvPf".to_owned()), (1, "table".to_owned())]));
    }

    #[test]
    fn architectures_are_read_from_what_each_compiler_prints() {
        assert_eq!(architectures("compute_75\ncompute_110\ncompute_103\n"), [75, 103, 110]);
        assert_eq!(architectures("Target: nvptx64\nAvailable CPUs:\n\n\tsm_89\n\tsm_90\n\tsm_90a\n"), [89, 90]);
    }
}
