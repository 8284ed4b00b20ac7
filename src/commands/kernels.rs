//! Drafts a manifest for the kernels named on the command line, for `try` and `init`.

mod headers;

use std::path::{Path, PathBuf};

use crate::cli::KernelArgs;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::files::write_new;
use runner_cuda_source::flatten::included;
use runner_cuda_source::host_half::{HostFunction, host_half};
use runner_cuda_source::kernel_file::KernelFile;
use runner_cuda_source::launches::{HostCode, Launch};
use runner_cuda_source::signature::Signature;
use runner_files::regular;
use runner_lang::diagnostics::nearest;
use runner_manifest::draft::reference::{Reference, fits};
use runner_manifest::draft::{Draft, Request, Wanted, fitting, template_guess};

/// Maximum number of rounds in which to search for headers included by headers.
const MOST_ROUNDS: usize = 4;

/// Names in the drafted manifest.
pub struct Names<'a> {
    pub experiment: &'a str,
    /// Name of a source.
    pub source: &'a dyn Fn(&Path) -> String,
    /// Name of the C++ source with a reference; `None` to only mention a host function that may be one.
    pub reference: Option<String>,
}

/// Which sizes a draft has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizesFrom {
    /// Sizes that show faults of a kernel.
    Kernels,
    /// Those that the source's launch passes.
    Launch,
}

/// Drafts a manifest for the kernels of the sources.
pub fn draft(sources: &[String], args: &KernelArgs, names: &Names<'_>, from: SizesFrom) -> Result<Draft, Failure> {
    let mut faults = Vec::new();
    let mut kernels: Vec<Wanted> = Vec::new();
    let mut notes = Vec::new();
    let args = &with_headers(sources, args, &mut notes);
    if sources.len() > 1 && !args.kernel.is_empty() {
        faults.push("-k names kernels of one file: with several, write `a.cu:old b.cu:new`".to_owned());
    }
    for source in sources {
        let (path, named) = split(source);
        let asked: Vec<&str> = named.into_iter().chain(args.kernel.iter().map(String::as_str)).collect();
        match wanted(&path, &asked, names, args) {
            Ok((found, left_out)) => {
                kernels.extend(found);
                notes.extend(left_out);
            }
            Err(found) => faults.extend(found),
        }
    }
    if !faults.is_empty() {
        return Err(refused(&faults));
    }
    adopt_launches(&mut kernels);
    let reference = reference(sources, &kernels, args, names, &mut notes);
    let request = Request {
        name: names.experiment.to_owned(),
        kernels,
        n: args.n.clone(),
        block: args.block.clone(),
        grid: args.grid.clone(),
        shared: args.shared.clone(),
        include_paths: args.include_paths.iter().map(|path| (names.source)(path)).collect(),
        defines: args.defines.clone(),
        arguments: args.arguments.clone(),
        tolerance: args.tolerance,
        reference,
        is_exact: from == SizesFrom::Launch,
        notes,
    };
    Draft::new(&request).map_err(|faults| refused(&faults))
}

/// Host function of the sources that takes the kernels' parameters. If the manifest is not to use it, adds a note.
fn reference(
    sources: &[String],
    kernels: &[Wanted],
    args: &KernelArgs,
    names: &Names<'_>,
    notes: &mut Vec<String>,
) -> Option<Reference> {
    sources.iter().map(|source| file_of(source)).find_map(|path| {
        let file = KernelFile::read(&path, &args.include_paths, &args.defines).ok()?;
        let is_fitting = |function: &HostFunction| kernels.iter().all(|wanted| fits(function, &wanted.signature));
        let function = file.functions.into_iter().find(is_fitting)?;
        let place = format!("{}, {}:{}", function.name, path.display(), function.line);
        let Some(reference) = names.reference.clone() else {
            notes.push(format!("{place}, takes the same parameters: --allow-host-code uses it as the reference"));
            return None;
        };
        let text = regular::read(&path).ok()?;
        let half = host_half(&String::from_utf8_lossy(&text), &function.name)?;
        Some(Reference { path: reference, half, function, place })
    })
}

/// The options, with include folders found in the sources' checkouts added, and a note for each.
fn with_headers(sources: &[String], args: &KernelArgs, notes: &mut Vec<String>) -> KernelArgs {
    let mut args = args.clone();
    for path in sources.iter().map(|source| compiled(&file_of(source))) {
        // A header found in one round may include others.
        for _ in 0..MOST_ROUNDS {
            let file = KernelFile::read(&path, &args.include_paths, &args.defines).unwrap_or_default();
            let before = args.include_paths.len();
            for (header, folder) in headers::find(&path, &file.absent) {
                if !args.include_paths.contains(&folder) {
                    notes.push(format!("{header} is found in {} (-I)", folder.display()));
                    args.include_paths.push(folder);
                }
            }
            if args.include_paths.len() == before {
                break;
            }
        }
    }
    args
}

/// The file to compile for a source: one next to it that includes it, if only that one launches its kernels.
pub fn compiled(source: &Path) -> PathBuf {
    let own = KernelFile::read(source, &[], &[]).unwrap_or_default();
    let (Some(name), false) = (source.file_name().and_then(|name| name.to_str()), own.kernels.is_empty()) else {
        return source.to_owned();
    };
    let launches = |file: &KernelFile| own.kernels.iter().any(|kernel| kernel.own && launches(&file.host, kernel));
    let includes = |path: &&PathBuf| {
        let text = regular::read(path).unwrap_or_default();
        let is_included = String::from_utf8_lossy(&text).lines().any(|line| included(line) == Some(name));
        *path != source && is_included && launches(&KernelFile::read(path, &[], &[]).unwrap_or_default())
    };
    let user = if launches(&own) { None } else { sources_beside(source).into_iter().find(|path| includes(&path)) };
    user.unwrap_or_else(|| source.to_owned())
}

fn launches(host: &HostCode, kernel: &Signature) -> bool {
    host.launches.iter().any(|launch| launch.kernel == kernel.name)
}

/// CUDA sources in the folder of a file, sorted.
fn sources_beside(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let all = entries.map(|entry| path.with_file_name(entry.file_name()));
    let mut sources: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|end| end == "cu" || end == "cuh")).collect();
    sources.sort();
    sources
}

/// Launches of a file's own kernels in another file of its folder, with that file's path.
fn launches_beside(path: &Path, whole: &Path, known: &[Signature], args: &KernelArgs) -> (Option<String>, Vec<Launch>) {
    let others = sources_beside(path).into_iter().filter(|other| *other != whole);
    let read = |other: PathBuf| {
        let file = KernelFile::read(&other, &args.include_paths, &args.defines).ok()?;
        let is_launching = known.iter().any(|kernel| kernel.own && launches(&file.host, kernel));
        is_launching.then(|| (Some(other.display().to_string()), file.host.launches))
    };
    others.into_iter().find_map(read).unwrap_or_default()
}

/// If the sources do not launch a kernel, gives it the launch of another kernel with the same parameters.
fn adopt_launches(kernels: &mut [Wanted]) {
    for place in 0..kernels.len() {
        let wanted = &kernels[place];
        if wanted.launch.is_some() {
            continue;
        }
        let is_like = |other: &&Wanted| other.signature.types() == wanted.signature.types();
        let others: Vec<&Launch> = kernels.iter().filter(is_like).filter_map(|other| other.launch.as_ref()).collect();
        let launch = fitting(&wanted.signature, &wanted.constants, &others);
        let template = launch.as_ref().and_then(|launch| launch.template.as_deref());
        // An overload's parameter types follow its template arguments.
        if let Some(template) =
            template.filter(|_| !wanted.signature.template.is_empty() && !wanted.kernel.contains('<'))
        {
            let (name, types) = wanted.kernel.split_at(wanted.kernel.find('(').unwrap_or(wanted.kernel.len()));
            kernels[place].kernel = format!("{name}<{template}>{types}");
        }
        kernels[place].launch = launch;
    }
}

/// Name of the C++ source with the reference of the manifest at `manifest`.
pub fn reference_name(manifest: &Path) -> String {
    format!("{}_reference.cpp", experiment_name(manifest))
}

/// Writes the C++ source with a draft's reference, if it has one, next to the manifest.
pub fn write_reference(
    option: &str,
    manifest: &Path,
    drafted: &Draft,
    (force, console): (bool, &mut Console),
) -> Result<(), Failure> {
    let Some((name, text)) = drafted.reference() else { return Ok(()) };
    let path = manifest.with_file_name(name);
    write_new(option, &path, text, force)?;
    console.say(&format!("wrote {}, the reference", path.display()));
    Ok(())
}

/// Experiment name for this file: `reduce_fast` for `src/reduce_fast.cu`.
pub fn experiment_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String = stem.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    if name.is_empty() { "kernels".to_owned() } else { name }
}

/// File in `FILE[:KERNEL]`.
pub fn file_of(source: &str) -> PathBuf {
    split(source).0
}

/// Whether kernels were compared of which nothing says that they compute the same: the command line does not name them,
/// and the file launches them itself or they have different names.
pub fn is_guess(sources: &[String], args: &KernelArgs, drafted: &Draft) -> bool {
    if sources.len() > 1 || names_kernels(sources, args) {
        return false;
    }
    let file = KernelFile::read(&compiled(&file_of(&sources[0])), &args.include_paths, &args.defines);
    let plain = |name: &str| words(name.split(['<', '(']).next().unwrap_or_default());
    let names: Vec<Vec<String>> = drafted.names().map(plain).collect();
    let is_program = file.is_ok_and(|file| !file.host.launches.is_empty());
    names.len() > 1 && (is_program || names.iter().any(|name| *name != names[0]))
}

/// Whether the command line names kernels.
pub fn names_kernels(sources: &[String], args: &KernelArgs) -> bool {
    !args.kernel.is_empty() || sources.iter().any(|source| split(source).1.is_some())
}

/// Splits `a.cu:ns::old` into a file and a kernel, unless a file with a colon in its name exists.
fn split(source: &str) -> (PathBuf, Option<&str>) {
    let colons = source.match_indices(':').map(|(at, _)| at);
    let ends = std::iter::once(source.len()).chain(colons.clone());
    let end = ends.into_iter().find(|end| Path::new(&source[..*end]).is_file());
    // If no such file exists, an error should name the part before the first colon.
    let end = end.or_else(|| colons.into_iter().next()).unwrap_or(source.len());
    (PathBuf::from(&source[..end]), source.get(end + 1..).filter(|kernel| !kernel.is_empty()))
}

/// The requested kernels, or those of the file that can be compared, with a note for each that cannot.
fn wanted(
    path: &Path,
    asked: &[&str],
    names: &Names<'_>,
    args: &KernelArgs,
) -> Result<(Vec<Wanted>, Vec<String>), Vec<String>> {
    let read = |path: &Path| {
        KernelFile::read(path, &args.include_paths, &args.defines).map_err(|error| {
            let hint = "name a CUDA C++ file, as in `runner try kernels.cu`";
            vec![format!("cannot read {}: {}; {hint}", path.display(), error.to_string().to_lowercase())]
        })
    };
    let whole = compiled(path);
    let mut notes = Vec::new();
    let KernelFile { kernels: mut known, host, .. } = read(&whole)?;
    if whole != path {
        let own = read(path)?.kernels;
        for kernel in &mut known {
            kernel.own = own.iter().any(|other| other.own && other.path() == kernel.path());
        }
        notes.push(format!(
            "{} is compiled as part of {}, which includes and launches it",
            path.display(),
            whole.display()
        ));
    }
    let (file, source) = (whole.display().to_string(), (names.source)(&whole));
    let is_launched = known.iter().any(|kernel| kernel.own && launches(&host, kernel));
    let (launching, elsewhere) =
        if is_launched { (None, Vec::new()) } else { launches_beside(path, &whole, &known, args) };
    let whole = |signature: &Signature, template: Option<&str>| {
        let all = host.launches.iter().chain(&elsewhere);
        let launches: Vec<&Launch> = all.filter(|launch| launch.kernel == signature.name).collect();
        // Even a launch that does not match the kernel's signature shows how the file launches it.
        let launch =
            fitting(signature, &host.constants, &launches).or_else(|| launches.first().map(|launch| (*launch).clone()));
        let launched = launch.as_ref().and_then(|launch| launch.template.as_deref()).unwrap_or_default();
        let launched: Vec<String> = launched.split(", ").map(str::to_owned).collect();
        let guess = || template_guess(signature, &launched).join(", ");
        let has_defaults = signature.template.iter().all(|parameter| parameter.default.is_some());
        let is_plain = signature.template.is_empty() || (launch.is_none() && has_defaults);
        let template = template.map(str::to_owned).or_else(|| (!is_plain).then(guess));
        let template = template.map(|template| format!("<{template}>")).unwrap_or_default();
        let types = if is_overloaded(signature, &known) { format!("({})", signature.types()) } else { String::new() };
        Wanted {
            source: source.clone(),
            file: file.clone(),
            kernel: format!("{}{template}{types}", signature.path()),
            signature: signature.clone(),
            constants: host.constants.clone(),
            launched_in: launch.as_ref().and(launching.clone()),
            launch,
        }
    };
    if known.is_empty() {
        return Err(vec![format!("{file} defines no __global__ function, nor does a file that it includes")]);
    }
    let mut faults = Vec::new();
    let mut found: Vec<&Signature> = Vec::new();
    let mut kernels = Vec::new();
    if asked.is_empty() {
        let has_own = known.iter().any(|signature| signature.own);
        let own: Vec<&Signature> = known.iter().filter(|signature| signature.own || !has_own).collect();
        let defined: Vec<&Signature> = own.iter().copied().filter(|signature| signature.body.is_some()).collect();
        let all = if defined.is_empty() { own } else { defined };
        let left_out;
        (found, left_out) = comparable(&all, &file, !host.launches.is_empty());
        notes.extend(left_out);
        kernels.extend(found.iter().map(|signature| whole(signature, None)));
    }
    for kernel in asked {
        let Asked { name, template, types } = Asked::parse(kernel);
        let of_name: Vec<&Signature> = known.iter().filter(|signature| is_path(&signature.path(), &name)).collect();
        let fitting = of_name
            .iter()
            .filter(|signature| types.as_ref().is_none_or(|types| plain(&signature.types()) == plain(types)));
        let fitting: Vec<&Signature> = fitting.copied().collect();
        match (&fitting[..], &of_name[..]) {
            ([only], _) => {
                found.push(only);
                kernels.push(whole(only, template.as_deref()));
            }
            ([], []) => {
                let names: Vec<String> = known.iter().map(Signature::path).collect();
                let last = name.rsplit("::").next().unwrap_or_default();
                let hint = match nearest(last, names.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("it has {}", names.join(", ")),
                };
                faults.push(format!("{file} has no kernel `{name}`; {hint}"));
            }
            (_, several) => {
                let shown = |signature: &&Signature| format!("-k '{}({})'", signature.path(), signature.types());
                let options: Vec<String> = several.iter().map(shown).collect();
                faults.push(format!("{file} has several kernels `{name}`: name one with {}", options.join(" or ")));
            }
        }
    }
    faults.extend(
        found.iter().filter(|signature| signature.body.is_none()).map(|signature| declared_only(path, signature)),
    );
    if faults.is_empty() { Ok((kernels, notes)) } else { Err(faults) }
}

/// A kernel as named on the command line: `ns::scale<float>`, `add(const float*, float*, int)`.
struct Asked {
    name: String,
    template: Option<String>,
    types: Option<String>,
}

impl Asked {
    fn parse(text: &str) -> Self {
        let (rest, types) = match text.trim_end().strip_suffix(')').and_then(|rest| rest.split_once('(')) {
            Some((rest, types)) => (rest, Some(types.to_owned())),
            None => (text, None),
        };
        let (name, template) = match rest.trim_end().strip_suffix('>').and_then(|rest| rest.split_once('<')) {
            Some((name, template)) => (name, Some(template.to_owned())),
            None => (rest.split('<').next().unwrap_or_default(), None),
        };
        Self { name: name.trim().to_owned(), template, types }
    }
}

/// Whether a name, possibly without namespaces, refers to a kernel.
fn is_path(path: &str, name: &str) -> bool {
    path == name || path.strip_suffix(name).is_some_and(|before| before.ends_with("::"))
}

/// Types without spaces, to compare them regardless of formatting.
fn plain(types: &str) -> String {
    types
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" *", "*")
        .replace("* ", "*")
        .replace(", ", ",")
        .replace(" ,", ",")
}

/// Whether another kernel has the same name.
fn is_overloaded(signature: &Signature, known: &[Signature]) -> bool {
    known.iter().filter(|other| other.path() == signature.path()).count() > 1
}

/// Words in kernel names that say how a kernel computes, not what it computes.
const OF_VARIANTS: [&str; 68] = [
    "bad",
    "base",
    "baseline",
    "basic",
    "best",
    "better",
    "block",
    "blocked",
    "coalesced",
    "conflict",
    "cuda",
    "device",
    "dynamic",
    "edited",
    "fast",
    "faster",
    "first",
    "fixed",
    "float4",
    "free",
    "global",
    "gmem",
    "good",
    "gpu",
    "impl",
    "improved",
    "kern",
    "kernel",
    "local",
    "loop",
    "mutant",
    "naive",
    "new",
    "no",
    "old",
    "one",
    "opt",
    "optimised",
    "optimized",
    "original",
    "padded",
    "plain",
    "ref",
    "reference",
    "right",
    "second",
    "shared",
    "shuffle",
    "simple",
    "slow",
    "smem",
    "static",
    "stride",
    "strided",
    "test",
    "third",
    "tile",
    "tiled",
    "tuned",
    "two",
    "unroll",
    "unrolled",
    "vec",
    "vectorized",
    "ver",
    "version",
    "warp",
    "wrong",
];

/// Whether two names may belong to kernels that compute the same: they share a word, or one has only words of
/// [`OF_VARIANTS`].
fn alike(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(words);
    one.is_empty() || other.is_empty() || one.iter().any(|word| other.contains(word))
}

/// Words of a name in lowercase, without those of [`OF_VARIANTS`]: `sum` and `rows` of `sumRowsKernel_v2`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        let begins = c == '_' || (c.is_uppercase() && !before.is_uppercase()) || c.is_ascii_digit();
        if begins {
            words.push(String::new());
        }
        if c.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| word.len() > 1 && !OF_VARIANTS.contains(&word.as_str()));
    words
}

/// The largest group of kernels with the same parameter types, and with similar names if the file launches kernels. A note
/// names the others.
fn comparable<'a>(all: &[&'a Signature], file: &str, is_program: bool) -> (Vec<&'a Signature>, Vec<String>) {
    let is_like = |one: &Signature, other: &Signature| {
        other.types() == one.types() && (!is_program || alike(&one.name, &other.name))
    };
    let like = |one: &Signature| all.iter().copied().filter(|other| is_like(one, other)).collect::<Vec<_>>();
    let groups = all.iter().map(|signature| like(signature));
    // The first of several largest groups.
    let mut largest = groups.rev().max_by_key(Vec::len).unwrap_or_default();
    let has_output = |signature: &&Signature| {
        signature
            .parameters
            .iter()
            .any(|parameter| (parameter.pointers > 0 && !parameter.is_const) || !parameter.fields.is_empty())
    };
    // Without outputs there is nothing to compare.
    if !largest.iter().any(has_output) {
        largest.truncate(1);
    }
    let shown = |signature: &&&Signature| {
        let is_alone = all.iter().filter(|other| other.path() == signature.path()).count() == 1;
        if is_alone { signature.path() } else { format!("{}({})", signature.path(), signature.types()) }
    };
    let others: Vec<String> =
        all.iter().filter(|signature| !largest.contains(signature)).map(|signature| shown(&signature)).collect();
    let note =
        format!("left out because of their parameters or names: {}; name kernels of {file} with -k", others.join(", "));
    (largest, if others.is_empty() { Vec::new() } else { vec![note] })
}

/// Names the file that defines a kernel which this one only declares.
fn declared_only(path: &Path, declared: &Signature) -> String {
    let (file, name) = (path.display(), declared.path());
    let defines = |path: &&PathBuf| {
        let found = KernelFile::read(path, &[], &[]).unwrap_or_default();
        found
            .kernels
            .iter()
            .any(|other| other.own && other.body.is_some() && other.path() == name && other.types() == declared.types())
    };
    match sources_beside(path).iter().find(defines) {
        Some(other) => {
            format!("{file} only declares `{name}`; {} defines it: `runner try {}`", other.display(), other.display())
        }
        None => format!("{file} only declares `{name}`: name the file that defines it"),
    }
}

/// Usage error that lists all faults, one per line.
fn refused(faults: &[String]) -> Failure {
    let message = faults.iter().map(|fault| format!("error: {fault}")).collect::<Vec<_>>().join("\n");
    Failure { exit: Exit::Usage, message, is_rendered: true, is_held: false }
}

/// Name of a source in the manifest at `manifest`: the file name if manifests can find it by that, otherwise the path
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
    // A file of this name in `kernels/` would take precedence.
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
    fn kernels_are_asked_for_by_namespace_template_and_types() {
        let Asked { name, template, types } = Asked::parse("ns::k<float, 4>(const float*, int)");
        assert_eq!(
            (name.as_str(), template.as_deref(), types.as_deref()),
            ("ns::k", Some("float, 4"), Some("const float*, int"))
        );
        assert!(is_path("a::b::k", "b::k") && is_path("k", "k") && !is_path("a::bk", "k"));
        assert_eq!(plain("const float *,int"), plain("const float*, int"));
        assert_ne!(plain("unsigned int"), plain("unsignedint"));
    }

    #[test]
    fn an_experiment_is_named_after_its_source() {
        assert_eq!(experiment_name(Path::new("src/my kernel.v2.cu")), "my_kernel_v2");
    }

    #[test]
    fn names_of_kernels_that_compute_different_things_are_told_from_those_of_variants() {
        for (one, other) in [
            ("naive", "tiled"),
            ("old", "anything"),
            ("matrix_transpose_naive", "matrix_transpose_shared"),
            ("reduce0", "reduce1"),
            ("sgemmKernel", "sgemm_v2"),
            ("SobelTex", "SobelShared"),
        ] {
            assert!(alike(one, other) && alike(other, one), "{one}, {other}");
        }
        for (one, other) in [("init", "add"), ("RowSumKernel", "NegEntropyKernel"), ("DCT8x8_kernel", "IDCT8x8_kernel")]
        {
            assert!(!alike(one, other) && !alike(other, one), "{one}, {other}");
        }
    }
}
