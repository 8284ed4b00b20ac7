//! Drafts a manifest for the kernels named on the command line, for `try` and `init`.

use std::path::{Path, PathBuf};

use crate::cli::KernelArgs;
use crate::failure::Exit;
use crate::failure::Failure;
use runner_cuda_source::launches::HostCode;
use runner_cuda_source::signature::{Signature, signatures};
use runner_lang::diagnostics::nearest;
use runner_manifest::draft::{Draft, Request, Wanted};

/// Drafts a manifest called `name`. `source_name` gives the name of each source in it.
pub fn draft(
    sources: &[String],
    args: &KernelArgs,
    name: &str,
    source_name: impl Fn(&Path) -> String,
) -> Result<Draft, Failure> {
    let mut faults = Vec::new();
    let mut kernels: Vec<Wanted> = Vec::new();
    if sources.len() > 1 && !args.kernel.is_empty() {
        faults.push("-k names kernels of one file: with several, write `a.cu:old b.cu:new`".to_owned());
    }
    for source in sources {
        let (path, named) = split(source);
        let asked: Vec<&str> = named.into_iter().chain(args.kernel.iter().map(String::as_str)).collect();
        match wanted(&path, &asked, &source_name(&path)) {
            Ok(found) => kernels.extend(found),
            Err(found) => faults.extend(found),
        }
    }
    if !faults.is_empty() {
        return Err(refused(&faults));
    }
    let request = Request {
        name: name.to_owned(),
        kernels,
        n: args.n.clone(),
        block: args.block.clone(),
        grid: args.grid.clone(),
        shared: args.shared.clone(),
        include_paths: args.include_paths.iter().map(|path| source_name(path)).collect(),
        defines: args.defines.clone(),
        arguments: args.arguments.clone(),
        tolerance: args.tolerance,
    };
    Draft::new(&request).map_err(|faults| refused(&faults))
}

/// Name of an experiment about this file: `reduce_fast` for `src/reduce_fast.cu`.
pub fn experiment_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = stem.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if name.is_empty() { "kernels".to_owned() } else { name }
}

/// File of `FILE[:KERNEL]`.
pub fn file_of(source: &str) -> PathBuf {
    split(source).0
}

/// `a.cu:ns::old` is a file and a kernel, unless there is a file with a colon in its name.
fn split(source: &str) -> (PathBuf, Option<&str>) {
    let colons = source.match_indices(':').map(|(at, _)| at);
    let ends = std::iter::once(source.len()).chain(colons.clone());
    let end = ends.into_iter().find(|end| Path::new(&source[..*end]).is_file());
    // Without such a file, complain about the part before the first colon.
    let end = end.or_else(|| colons.into_iter().next()).unwrap_or(source.len());
    (PathBuf::from(&source[..end]), source.get(end + 1..).filter(|kernel| !kernel.is_empty()))
}

/// The requested kernels, or every kernel of the file.
fn wanted(path: &Path, asked: &[&str], source: &str) -> Result<Vec<Wanted>, Vec<String>> {
    let file = path.display().to_string();
    let known = signatures(path).map_err(|error| {
        let hint = "name a CUDA C++ file, as in `runner try kernels.cu`";
        vec![format!("cannot read {file}: {}; {hint}", error.to_string().to_lowercase())]
    })?;
    let host = std::fs::read(path).map(|bytes| HostCode::read(&String::from_utf8_lossy(&bytes))).unwrap_or_default();
    let whole = |signature: &Signature, kernel: &str| {
        let launch = host.launches.iter().find(|launch| launch.kernel == signature.name);
        let template = launch.and_then(|launch| launch.template.as_ref()).filter(|_| !kernel.contains('<'));
        Wanted {
            source: source.to_owned(),
            file: file.clone(),
            kernel: template.map_or_else(|| kernel.to_owned(), |template| format!("{kernel}<{template}>")),
            signature: signature.clone(),
            constants: host.constants.clone(),
            launch: launch.cloned(),
        }
    };
    if known.is_empty() {
        return Err(vec![format!("{file} defines no __global__ function, nor does a file that it includes")]);
    }
    if asked.is_empty() {
        let has_own = known.iter().any(|signature| signature.own);
        let own = known.iter().filter(|signature| signature.own || !has_own);
        return Ok(own.map(|signature| whole(signature, &signature.name)).collect());
    }
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for kernel in asked {
        let path = kernel.split('<').next().unwrap_or_default();
        let name = path.rsplit("::").next().unwrap_or_default().trim();
        if let Some(signature) = known.iter().find(|signature| signature.name == name) {
            found.push(whole(signature, kernel));
            continue;
        }
        let names: Vec<&str> = known.iter().map(|signature| signature.name.as_str()).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", names.join(", ")),
        };
        faults.push(format!("{file} has no kernel `{name}`; {hint}"));
    }
    if faults.is_empty() { Ok(found) } else { Err(faults) }
}

/// All faults, one per line.
fn refused(faults: &[String]) -> Failure {
    let message = faults.iter().map(|fault| format!("error: {fault}")).collect::<Vec<_>>().join("\n");
    Failure { exit: Exit::Usage, message, is_rendered: true, is_held: false }
}

/// Name of a source in the manifest at `manifest`: the file name if manifests find it by that, otherwise the path
/// relative to the manifest's folder.
pub fn source_name(source: &Path, manifest: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (source, manifest) = (absolute(source), absolute(manifest));
    let folder = manifest.parent().unwrap_or(Path::new("/"));
    let kernels = folder.parent().map(|above| above.join("kernels"));
    if let Some(inside) = kernels.as_ref().and_then(|kernels| source.strip_prefix(kernels).ok()) {
        return inside.display().to_string();
    }
    let shared = source.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| Path::new("..").to_owned());
    let relative: PathBuf = up.chain([source.components().skip(shared).collect::<PathBuf>()]).collect();
    // A file of this name in `kernels/` would be found first.
    let is_hidden = kernels.is_some_and(|kernels| kernels.join(&relative).is_file());
    if is_hidden { source.display().to_string() } else { relative.display().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_named_as_the_manifest_finds_it() {
        let name = |source: &str, manifest: &str| source_name(Path::new(source), Path::new(manifest));
        assert_eq!(name("/p/kernels/a.cu", "/p/experiments/a.toml"), "a.cu");
        assert_eq!(name("/p/a.cu", "/p/a.toml"), "a.cu");
        assert_eq!(name("/p/src/a.cu", "/p/experiments/a.toml"), "../src/a.cu");
        assert_eq!(name("a.cu", "experiments/a.toml"), "../a.cu");
    }

    #[test]
    fn a_file_and_its_kernel_are_taken_apart() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("odd:a.cu");
        std::fs::write(&file, "")?;
        let text = file.display().to_string();
        assert_eq!(split(&text), (file.clone(), None));
        assert_eq!(split(&format!("{text}:ns::k<1>")), (file, Some("ns::k<1>")));
        assert_eq!(split("missing.cu:k"), (PathBuf::from("missing.cu"), Some("k")));
        Ok(())
    }

    #[test]
    fn an_experiment_is_named_after_its_source() {
        assert_eq!(experiment_name(Path::new("src/my kernel.v2.cu")), "my_kernel_v2");
    }
}
