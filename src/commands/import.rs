//! `runner import`: writes a source file and a manifest for a kernel from another compiler.

use std::fs;
use std::path::{Path, PathBuf};

use super::kernels::experiment_name;
use crate::cli::{ImportArgs, ImportFrom, TritonArgs};
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;
use runner_manifest::draft::TritonKernel;

pub fn run(args: &ImportArgs, console: &mut Console) -> Result<Exit, Failure> {
    let ImportFrom::Triton(args) = &args.from;
    let ptx = cached_kernel(args)?;
    let read = |extension: &str| {
        let path = ptx.with_extension(extension);
        fs::read_to_string(&path).map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))
    };
    let (code, metadata, ttir) = (read("ptx")?, read("json")?, read("ttir").ok());
    let name = experiment_name(&ptx);
    let default = || Path::new("experiments").join(&name).with_extension("toml");
    let manifest = args.out.clone().unwrap_or_else(default);
    let source = format!("{name}.ptx");
    let kernel = TritonKernel { metadata: &metadata, ptx: &code, ttir: ttir.as_deref() };
    let text = kernel
        .manifest(&experiment_name(&manifest), &source)
        .map_err(|why| Failure::usage(format!("{}: {why}", ptx.display())))?;
    let kernels = kernels_beside(&manifest).join(&source);
    write_new("--out", &kernels, &code, args.force)?;
    write_new("--out", &manifest, &text, args.force)?;
    let manifest = manifest.display();
    console.say(&format!(
        "wrote {} and {manifest}; edit it, then `runner check {manifest}` and `runner run {manifest}`",
        kernels.display()
    ));
    Ok(Exit::Success)
}

/// The folder `kernels/` next to the manifest's folder.
fn kernels_beside(manifest: &Path) -> PathBuf {
    let folder = manifest.parent().unwrap_or(Path::new(""));
    match folder.file_name() {
        Some(_) => folder.with_file_name("kernels"),
        None => folder.join("../kernels"),
    }
}

/// PTX file of the requested kernel.
fn cached_kernel(args: &TritonArgs) -> Result<PathBuf, Failure> {
    let mut found = Vec::new();
    let inner: Vec<PathBuf> = entries(&args.folder)?.into_iter().filter(|path| path.is_dir()).collect();
    for folder in std::iter::once(&args.folder).chain(&inner) {
        let is_kernel =
            |path: &PathBuf| path.extension().is_some_and(|e| e == "ptx") && path.with_extension("json").is_file();
        found.extend(entries(folder)?.into_iter().filter(is_kernel));
    }
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let wanted = |path: &&PathBuf| args.kernel.as_ref().is_none_or(|kernel| stem(path) == *kernel);
    let folder = args.folder.display();
    match found.iter().filter(wanted).collect::<Vec<_>>().as_slice() {
        [only] => Ok((*only).clone()),
        [] if found.is_empty() => Err(Failure::usage(format!(
            "{folder} has no Triton kernel (a .ptx with its .json): name a folder of ~/.triton/cache"
        ))),
        [] => Err(Failure::usage(format!("{folder} has no such kernel; it has {}", list(&found)))),
        several => {
            let several: Vec<PathBuf> = several.iter().map(|path| (*path).clone()).collect();
            Err(Failure::usage(format!(
                "{folder} has several kernels; name the folder of one of them: {}",
                list(&several)
            )))
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Entries of a folder, sorted by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = fs::read_dir(folder).map_err(|e| Failure::usage(format!("cannot read {}: {e}", folder.display())))?;
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}
