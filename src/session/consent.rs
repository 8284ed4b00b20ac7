//! The user's consent to run host code.
//!
//! Host code is: functions of `host` variants, kernels that nvcc or clang compiles outside a sandbox, references in
//! Python and C++, and shell commands in a project's `cluster.toml`. It can do anything that the user can, and a
//! manifest may come from a stranger.
//!
//! `--allow-host-code` gives consent. It is remembered for the project and the hash of the code, in a file in the
//! user's state folder, and asked for again when the code has changed.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use crate::console::Console;
use crate::failure::Failure;
use runner_files::atomic;
use runner_files::project::Project;
use runner_files::regular;
use runner_process::sandbox;
use runner_types::{CaseJob, CompileUnit, ExpectPlan, KernelCompiler, SourceForm, sha256_hex};

/// Folder below `runner` in the user's state folder, with one file per consent.
const FOLDER: &str = "host-code";

/// Host code of the shipped experiments, which needs no consent: the text of a file, and the prefix of its functions
/// for `host` variants. A function with any other name would come from a system library.
const SHIPPED: [(&str, &str); 9] = [
    (include_str!("../../kernels/cublas.cu"), "cublas_"),
    (include_str!("../../kernels/cub_reduce.cu"), "cub_"),
    (include_str!("../../kernels/thrust_copy.cu"), "thrust_"),
    (include_str!("../../experiments/gallery/references.cpp"), ""),
    (include_str!("../../experiments/gallery/images.cpp"), ""),
    (include_str!("../../experiments/gallery/layers.cpp"), ""),
    (include_str!("../../experiments/gallery/quantized.cpp"), ""),
    (include_str!("../../experiments/gallery/rays.cpp"), ""),
    (include_str!("../../experiments/gallery/splats.cpp"), ""),
];

/// Libraries that shipped host code links with.
const SHIPPED_LIBRARIES: [&str; 1] = ["cublas"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCode {
    /// Files that contain it.
    files: BTreeSet<String>,
    /// Hash of all the code, or why consent cannot be remembered and is asked for every time.
    hash: Result<String, &'static str>,
}

impl HostCode {
    /// Host code of these cases: host functions, references, and kernels that host programs compile. Code shipped with
    /// this program is exempt; `None` if nothing else is left. `headers` are the compiler's own folders.
    pub fn find(
        cases: impl Iterator<Item = impl Borrow<CaseJob>>,
        project: &Project,
        headers: &[PathBuf],
    ) -> Option<Self> {
        let (mut scripts, mut units) = (BTreeSet::new(), BTreeSet::new());
        for case in cases {
            let case = case.borrow();
            for check in &case.checks {
                match &check.expect {
                    ExpectPlan::Python(python) => drop(scripts.insert(python.path.clone())),
                    ExpectPlan::Cpp(function) => {
                        units.insert(CompileUnit::from_kernels(&function.path, [""; 0]));
                    }
                    _ => {}
                }
            }
            units.extend(case.body.units().into_iter().filter(|unit| needs_consent(unit)).cloned());
        }
        units.retain(|unit| !is_shipped(unit, project, headers));
        let of_script = |path: &PathBuf| regular::read(path).ok().map(|text| sha256_hex(&text));
        let units_hashed = units.iter().map(|unit| hash_of(unit, project, headers));
        let each: Vec<Option<String>> = units_hashed.chain(scripts.iter().map(of_script)).collect();
        let files = units.iter().map(|unit| &unit.source).chain(&scripts);
        let files: BTreeSet<String> = files.map(|path| path.display().to_string()).collect();
        let hashes: Option<BTreeSet<String>> = each.into_iter().collect();
        let hash = hashes.ok_or("not all of its includes are known").and_then(|hashes| {
            covers_all_that_is_read(project, sandbox::is_enforced())?;
            Ok(sha256_hex(hashes.into_iter().collect::<Vec<_>>().join("\n").as_bytes()))
        });
        (!files.is_empty()).then_some(Self { files, hash })
    }

    /// Lines of a file that a shell will run.
    pub fn of_text(file: &Path, text: &str) -> Self {
        Self { files: BTreeSet::from([file.display().to_string()]), hash: Ok(sha256_hex(text.as_bytes())) }
    }

    /// Fails unless the user allows this code now, or allowed it before for the same project.
    pub fn ask(&self, (project, place): (&Path, &Path), allowed: bool, console: &mut Console) -> Result<(), Failure> {
        self.ask_with(folder().as_deref(), (project, place), allowed, console)
    }

    /// Asks for consent, using the consents stored in `folder`.
    fn ask_with(
        &self,
        folder: Option<&Path>,
        (project, place): (&Path, &Path),
        allowed: bool,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let folder = folder.ok_or("there is no folder for it");
        let known = self.hash.as_ref().map_err(|why| *why).and_then(|hash| Ok(folder?.join(entry(project, hash))));
        if known.as_ref().is_ok_and(|known| known.is_file()) {
            return Ok(());
        }
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        let files = files.join(", ");
        if !allowed {
            let how_long = match known {
                Ok(_) => "which is remembered until the code changes".to_owned(),
                Err(why) => format!("which is not remembered: {why}"),
            };
            return Err(Failure::usage(format!(
                "{} runs host code, which can do anything that you can: {files}; read it, then allow it with \
                 --allow-host-code, {how_long}",
                place.display()
            )));
        }
        let project = project.display();
        let remembered = known.map_err(str::to_owned).and_then(|known| {
            atomic::write(&known, format!("{project}\n{files}\n").as_bytes()).map_err(|error| error.to_string())
        });
        match remembered {
            Ok(()) => console.say(&format!("host code of {project} is allowed until it changes: {files}")),
            Err(why) => console.say(&format!("warning: could not save your consent to host code: {why}")),
        }
        Ok(())
    }
}

/// Fails if compilers and references can read project files that were not hashed.
fn covers_all_that_is_read(project: &Project, is_enforced: bool) -> Result<(), &'static str> {
    let Some(folders) = project.folders() else {
        return Err("with --allow-outside, compilers can read every file, including ones that were not hashed");
    };
    if !is_enforced {
        return Err(
            "this machine has no Landlock, so compilers can read every file, including ones that were not hashed",
        );
    }
    if folders.iter().any(|folder| sandbox::is_always_readable(folder)) {
        return Err("the project is in a system folder, where compilers can read every file");
    }
    Ok(())
}

/// Whether a unit is host code, or a kernel that nvcc or clang compiles outside a sandbox. Inside the sandbox they only
/// read hashed files and write PTX, as for a source that NVRTC rejects.
fn needs_consent(unit: &CompileUnit) -> bool {
    let is_program = unit.compiler != KernelCompiler::Nvrtc && !sandbox::is_enforced();
    unit.form() == SourceForm::Cuda && (unit.plugin.is_some() || is_program)
}

/// Whether a unit is shipped with this program and the manifest does not change its meaning. It must not include
/// project files, which could replace headers that the compiler's own headers include.
fn is_shipped(unit: &CompileUnit, project: &Project, headers: &[PathBuf]) -> bool {
    let is_plain = unit.defines.is_empty() && unit.options.is_empty() && unit.linked.is_empty();
    let mut libraries = unit.plugin.iter().flat_map(|plugin| &plugin.libraries);
    if !is_plain || !libraries.all(|library| SHIPPED_LIBRARIES.contains(&library.as_str())) {
        return false;
    }
    let Some(sources) = runner_compile::sources(unit, project, headers).filter(|sources| sources.is_whole) else {
        return false;
    };
    let [(_, source)] = sources.files.as_slice() else { return false };
    let is_named = |prefix: &str| unit.kernels.iter().all(|name| name.starts_with(prefix));
    SHIPPED.iter().any(|(text, prefix)| **source == **text && is_named(prefix))
}

/// File name of a consent.
fn entry(project: &Path, hash: &str) -> String {
    sha256_hex([project.as_os_str().as_encoded_bytes(), &[0], hash.as_bytes()].concat().as_slice())
}

fn folder() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()).join("runner").join(FOLDER))
}

/// Hash of everything in a unit that comes from the project, without paths; `None` if some of it is unknown.
fn hash_of(unit: &CompileUnit, project: &Project, headers: &[PathBuf]) -> Option<String> {
    let sources = runner_compile::sources(unit, project, headers).filter(|sources| sources.is_whole)?;
    let libraries = unit.plugin.as_ref().map(|plugin| plugin.libraries.clone()).unwrap_or_default();
    let texts = BTreeMap::from([
        ("defines", unit.defines.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        ("functions", unit.kernels.clone()),
        ("libraries", libraries),
        ("options", unit.options.clone()),
        ("source", vec![sources.hash]),
    ]);
    serde_json::to_vec(&texts).ok().map(|text| sha256_hex(&text))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;

    use super::*;
    use crate::cli::ColorChoice;
    use runner_compile::Cache;
    use runner_compile::package::fetch_package;
    use runner_lang::diagnostics::Diagnostics;
    use runner_plan::{self, PlanOptions};
    use runner_types::BackendKind;

    const MANIFEST: &str = "[experiment]\nname = \"x\"\n[buffers.data]\ntype = \"i32\"\nlen = 4\n[[variant]]\n\
                            name = \"a\"\n\
                            source = \"f.cu\"\nhost = \"f\"\nargs = [\"data\"]\n";

    /// A project with one host function whose source includes a header.
    fn project(header: &str) -> io::Result<tempfile::TempDir> {
        let dir = tempfile::tempdir()?;
        fs::create_dir(dir.path().join("experiments"))?;
        fs::create_dir(dir.path().join("kernels"))?;
        fs::write(dir.path().join("experiments/x.toml"), MANIFEST)?;
        fs::write(dir.path().join("kernels/f.cu"), "#include \"f.cuh\"\nextern \"C\" void f(void *) { step(); }\n")?;
        fs::write(dir.path().join("kernels/f.cuh"), header)?;
        Ok(dir)
    }

    /// Host code of a manifest on a GPU.
    fn code(manifest: &Path) -> Result<Option<HostCode>, String> {
        let find = || -> Result<_, Diagnostics> {
            let manifest = runner_manifest::load(manifest)?;
            let plan = runner_plan::expand(&manifest, &PlanOptions::for_backend(BackendKind::Cuda))?;
            let groups: Vec<_> = (0..plan.group_count()).map(|i| runner_plan::resolve(&manifest, &plan, i)).collect();
            Ok(HostCode::find(groups.iter().flat_map(|group| &group.job.cases), &manifest.project, &[]))
        };
        find().map_err(|faults| faults.render_within(false, None))
    }

    fn asked(code: &HostCode, state: &Path, project: &str, allowed: bool) -> Result<(), String> {
        let mut console = Console::new(ColorChoice::Never);
        console.quiet = true;
        let place = (Path::new(project), Path::new("experiments/x.toml"));
        code.ask_with(Some(state), place, allowed, &mut console).map_err(|failure| failure.message)
    }

    #[test]
    fn consent_holds_for_the_project_until_a_file_of_the_code_changes() -> Result<(), Box<dyn std::error::Error>> {
        if !sandbox::is_enforced() {
            return Ok(());
        }
        let (dir, state) = (project("void step() {}\n")?, tempfile::tempdir()?);
        let code_now = || code(&dir.path().join("experiments/x.toml"));
        let first = code_now()?.ok_or("no host code")?;
        let refused = asked(&first, state.path(), "/p", false).err().unwrap_or_default();
        assert!(refused.contains("f.cu; read it, then allow it with --allow-host-code"), "{refused}");
        assert!(refused.starts_with("experiments/x.toml runs host code"), "{refused}");
        assert_eq!(asked(&first, state.path(), "/p", true), Ok(()));
        assert_eq!(asked(&first, state.path(), "/p", false), Ok(()), "it is remembered");
        assert!(asked(&first, state.path(), "/q", false).is_err(), "another project");
        fs::write(dir.path().join("kernels/f.cuh"), "void step() { remove(\"/\"); }\n")?;
        let second = code_now()?.ok_or("no host code")?;
        assert!(asked(&second, state.path(), "/p", false).is_err(), "the code has changed");
        fs::write(dir.path().join("kernels/f.cuh"), "#include WHATEVER\nvoid step() {}\n")?;
        let unknown = code_now()?.ok_or("no host code")?;
        assert_eq!(asked(&unknown, state.path(), "/p", true), Ok(()));
        assert!(asked(&unknown, state.path(), "/p", false).is_err(), "what it includes is unknown");
        Ok(())
    }

    /// Compilers that can read more than the hashed files could compile changed code.
    #[test]
    fn consent_is_not_remembered_where_compilers_read_files_that_were_not_hashed()
    -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let limited = Project::at(dir.path())?;
        assert_eq!(covers_all_that_is_read(&limited, true), Ok(()));
        let without_landlock = covers_all_that_is_read(&limited, false).err().unwrap_or_default();
        assert!(without_landlock.contains("Landlock"), "{without_landlock}");
        let everywhere = covers_all_that_is_read(&Project::everywhere(), true).err().unwrap_or_default();
        assert!(everywhere.contains("--allow-outside"), "{everywhere}");
        assert!(covers_all_that_is_read(&Project::at(Path::new("/usr/share"))?, true).is_err());

        let state = tempfile::tempdir()?;
        let code = HostCode { files: BTreeSet::from(["f.cu".to_owned()]), hash: Err(everywhere) };
        assert_eq!(asked(&code, state.path(), "/p", true), Ok(()));
        let refused = asked(&code, state.path(), "/p", false).err().unwrap_or_default();
        assert!(refused.contains("--allow-host-code, which is not remembered: with --allow-outside"), "{refused}");
        Ok(())
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "it says which packages could not be fetched")]
    fn shipped_host_code_needs_no_consent_until_a_file_of_it_changes() -> Result<(), Box<dyn std::error::Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (mut with_host_code, mut unreachable) = (0, false);
        for folder in ["experiments", "experiments/gallery"] {
            for entry in fs::read_dir(root.join(folder))? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "toml") {
                    let text = fs::read_to_string(&path)?;
                    with_host_code += u32::from(text.contains("\nhost ") || text.contains("cpp = "));
                    let cache = Cache::locate()?;
                    let packages = runner_manifest::packages(&path);
                    if unreachable && packages.iter().any(|package| !cache.package_dir(&package.sha256).is_dir()) {
                        println!("not looked at: {}: no network", path.display());
                        continue;
                    }
                    match packages.iter().find_map(|package| fetch_package(package, &cache, &mut |_| {}).err()) {
                        None => assert_eq!(code(&path)?, None, "{}", path.display()),
                        Some(why) => {
                            println!("not looked at: {}: {why}", path.display());
                            // Each further attempt would take seconds without a network.
                            unreachable = true;
                        }
                    }
                }
            }
        }
        assert_eq!(with_host_code, 57, "manifests with host code");

        let dir = tempfile::tempdir()?;
        let path = |name: &str| dir.path().join(name);
        for folder in ["experiments", "kernels"] {
            fs::create_dir(path(folder))?;
        }
        let (source, manifest) = (fs::read_to_string(root.join("kernels/cublas.cu"))?, path("experiments/x.toml"));
        let host = MANIFEST.replace("host = \"f\"", "host = \"cublas_sgemm\"\nlibraries = [\"cublas\"]");
        let asks = |source: &str, host: &str| -> Result<bool, Box<dyn std::error::Error>> {
            fs::write(path("kernels/f.cu"), source)?;
            fs::write(&manifest, host)?;
            Ok(code(&manifest)?.is_some())
        };
        assert!(!asks(&source, &host)?, "the same text in another project");
        assert!(asks(&format!("{source}\n"), &host)?, "an edited source");
        // Its functions come from a macro, so any name passes the manifest's checks.
        let cub = fs::read_to_string(root.join("kernels/cub_reduce.cu"))?;
        assert!(!asks(&cub, &host.replace("cublas_sgemm", "cub_sum_i32"))?);
        assert!(asks(&cub, &host.replace("cublas_sgemm", "system"))?, "a function of a library");
        assert!(asks(&source, &host.replace("[\"cublas\"]", "[\"cublas\", \"mine\"]"))?, "another library");
        assert!(asks(&source, &format!("{host}defines = {{ cublasCreate = \"mine\" }}\n"))?, "another meaning");
        assert!(asks(&source, &format!("{host}options = [\"--pre-include=mine.h\"]\n"))?, "an option");
        fs::write(path("kernels/cublas_v2.h"), "")?;
        assert!(asks(&source, &host)?, "a file of the project in place of a header");
        Ok(())
    }

    #[test]
    fn kernels_are_host_code_only_if_a_program_compiles_them_without_a_sandbox()
    -> Result<(), Box<dyn std::error::Error>> {
        let dir = project("void step() {}\n")?;
        let manifest = dir.path().join("experiments/x.toml");
        let text = MANIFEST.replace("host = \"f\"", "kernel = \"k\"\ngrid = [1]\nblock = [1]");
        fs::write(&manifest, text)?;
        fs::write(dir.path().join("kernels/f.cu"), "__global__ void k(int *data) {}\n")?;
        assert_eq!(code(&manifest)?, None);
        let by_nvcc = format!("{}compiler = \"nvcc\"\n", fs::read_to_string(&manifest)?);
        fs::write(&manifest, by_nvcc)?;
        assert_eq!(code(&manifest)?.is_some(), !sandbox::is_enforced(), "nvcc is a program");
        Ok(())
    }
}
