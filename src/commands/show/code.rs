//! Prints the sources of a case's kernels, and the code that they are compiled to.

use std::fmt::Write as _;
use std::path::Path;

use super::machine_code;
use crate::cli::ShowArgs;
use crate::cli::options::RunOptions;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::session::{ManifestRun, compile_case, interrupt, worker};
use runner_compile::{Assembler, Cache, Disassembler, Target};
use runner_experiment::Manifest;
use runner_files::regular;
use runner_process::programs::Programs;
use runner_types::{CaseKey, CodeKind, CompileFailure, CompileUnit, Compiled, SourceForm};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Ptx,
    Sass,
    Source,
}

impl Form {
    pub fn wanted(args: &ShowArgs) -> Option<Self> {
        let forms = [(args.ptx, Self::Ptx), (args.sass, Self::Sass), (args.source, Self::Source)];
        forms.into_iter().find_map(|(is_wanted, form)| is_wanted.then_some(form))
    }
}

pub fn show(
    form: Form,
    options: &RunOptions,
    (manifest, case): (&Manifest, &CaseKey),
    console: &mut Console,
) -> Result<Exit, Failure> {
    let worker = worker::start(options, &interrupt()?, console)?;
    let capability = worker.ready.device.compute_capability;
    let target = if form == Form::Sass { Target::Gpu(capability) } else { Target::Ptx(capability) };
    let units = compile_case(ManifestRun { manifest, options }, (case, target), &worker, console)?;
    if units.is_empty() {
        return Err(Failure::usage(format!(
            "variant `{}` launches no kernel, so there is no code to show",
            case.variant
        )));
    }
    let mut text = String::new();
    let mut exit = Exit::Success;
    for (unit, compiled) in &units {
        let _ = writeln!(text, "// {}", title(unit));
        match compiled {
            Ok(compiled) => text.push_str(&printed(form, (unit, compiled, capability), options, console)?),
            Err(failure) => {
                let _ = writeln!(text, "does not compile: {}\n{}", failure.summary, failure.log);
                exit = Exit::CaseFailed;
            }
        }
    }
    console.print(&text)?;
    Ok(exit)
}

/// Source of a unit and its compiler options.
fn title(unit: &CompileUnit) -> String {
    let defines = unit.defines.iter().map(|(name, value)| format!("-D{name}={value}"));
    let includes = unit.include_paths.iter().map(|folder| format!("-I{}", folder.display()));
    let registers = unit.settings.max_registers.map(|most| format!("--maxrregcount={most}"));
    let debug = unit.settings.debug.then(|| "-G".to_owned());
    let words = [unit.source.display().to_string()].into_iter().chain(defines).chain(includes).chain(registers);
    words.chain(debug).chain(unit.options.iter().cloned()).collect::<Vec<_>>().join(" ")
}

fn printed(
    form: Form,
    (unit, compiled, capability): Built<'_>,
    options: &RunOptions,
    console: &mut Console,
) -> Result<String, Failure> {
    match (form, compiled.kind) {
        (Form::Source, _) if matches!(unit.form(), SourceForm::Cuda | SourceForm::Ptx) => read(&unit.source),
        (Form::Ptx, CodeKind::Ptx) => read(&compiled.code),
        (Form::Sass, CodeKind::Cubin | CodeKind::Ptx) => {
            let kernels: Vec<&str> = compiled.kernels.values().map(String::as_str).collect();
            disassemble((unit, compiled, capability), &kernels, options, console)
                .map(|listings| machine_code::listings(&listings))
        }
        _ => Err(Failure::usage(format!(
            "`{}` has no {}: it is {}",
            unit.source.display(),
            match form {
                Form::Ptx => "PTX",
                Form::Sass => "machine code of this device",
                Form::Source => "source as text",
            },
            match compiled.kind {
                CodeKind::Ptx => "PTX",
                CodeKind::Cubin => "machine code",
                CodeKind::Plugin => "a host function, which nvcc builds into a library",
            }
        ))),
    }
}

/// A unit, its compiled code, and the compute capability of the device.
type Built<'a> = (&'a CompileUnit, &'a Compiled, (u32, u32));

/// Machine code of some kernels of a unit. PTX is assembled first, as by the driver.
fn disassemble(
    (unit, compiled, capability): Built<'_>,
    kernels: &[&str],
    options: &RunOptions,
    console: &mut Console,
) -> Result<Vec<sass::Listing>, Failure> {
    let cannot = |program: &Path, action: &str, failure: &CompileFailure| {
        Failure::environment(format!("{} cannot {action}: {}\n{}", program.display(), failure.summary, failure.log))
    };
    let cache = Cache::locate().map_err(Failure::environment)?;
    let programs = Programs::of_this_machine();
    let mut say = |line: &str| console.say(line);
    let program = Disassembler::ensure(&programs, &cache, options.network, &mut say).map_err(Failure::environment)?;
    let code = if compiled.kind == CodeKind::Ptx {
        let assembler =
            Assembler::ensure(&programs, &cache, options.network, &mut say).map_err(Failure::environment)?;
        let assembled = assembler.assemble(unit, compiled, capability);
        assembled.map_err(|failure| cannot(assembler.path(), "assemble the PTX", &failure))?.code
    } else {
        compiled.code.clone()
    };
    program.list(&code, kernels).map_err(|failure| cannot(program.path(), "read the code", &failure))
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = regular::read_data(path, regular::LONGEST_DATA)
        .map_err(|error| Failure::environment(format!("cannot read {}: {error}", path.display())))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
