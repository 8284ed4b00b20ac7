//! `runner doctor`: checks what a run needs, and says how to get what is missing.
//!
//! Changes nothing, except with `--calibrate`: that measures the devices, stores the result and may download a
//! compiler.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::cli::DoctorArgs;
use crate::cli::options::network;
use crate::console::Console;
use crate::failure::Exit;
use crate::failure::Failure;
use crate::session::machine::{self, Site};
use crate::session::worker::selected_gpu_args;
use runner_backend::{DriverVersion, cuda};
use runner_compile::{
    Cache, Clang, CompileOptions, Nvcc, Requirement, Target, Toolkit, ToolkitError, compile_all, fetch,
};
use runner_lang::format::{bytes, visible_json};
use runner_process::programs::{self, Programs};
use runner_process::sandbox;
use runner_report::Screen;
use runner_types::{CompileUnit, DeviceId, DeviceInfo};
use runner_workers::calibrate::UNKNOWN_DRIVER;
use runner_workers::{Interrupt, Pool, WorkerSpec};

/// Headers that kernels include, one from each package.
const HEADERS: [&str; 5] = ["cooperative_groups.h", "cuda_fp16.h", "cuda_bf16.h", "cub/cub.cuh", "mma.h"];

/// How a run works without a GPU.
const SIMULATED: &str = "`runner run` uses the simulator, which counts but measures no times";

/// Version of the JSON, raised when a reader of the old one would misread the new one.
const VERSION: u32 = 1;

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct Output<'a> {
    version: u32,
    /// Whether a run is possible, on a GPU or on the simulator.
    ok: bool,
    findings: &'a [Finding],
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    /// What was found, or what is missing and what to do. Further lines are indented when printed.
    text: String,
}

/// What a finding means for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// A run works without it.
    Absent,
    /// A run fails without it.
    Missing,
}

impl Finding {
    fn ok(what: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Ok, what, text: text.into() }
    }

    fn absent(what: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Absent, what, text: text.into() }
    }

    fn missing(what: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Missing, what, text: text.into() }
    }
}

/// Succeeds if a run is possible, on a GPU or on the simulator.
pub fn run(args: &DoctorArgs, console: &mut Console) -> Result<Exit, Failure> {
    let driver = cuda::driver_version();
    let devices = cuda::probe();
    let mut findings = vec![of_driver(&driver), of_devices(&devices)];
    if args.calibrate {
        let found = devices.as_deref().map_err(|why| Failure::environment(nothing_to_calibrate(&why.to_string())))?;
        calibrate(found, args, console)?;
    }
    let python = of_python();
    let can_fetch = !args.offline && python.state == State::Ok;
    findings.extend(match Cache::locate() {
        Ok(cache) => {
            let want = want(driver.as_ref().ok(), devices.as_deref().unwrap_or_default());
            let toolkit = Toolkit::locate(want, &cache);
            let machines = of_machines(&cache, driver.as_ref().ok(), devices.as_deref().unwrap_or_default());
            let compiler = [of_compiler(&toolkit, can_fetch), of_confinement(sandbox::is_enforced())];
            let mut found = compiler.to_vec();
            found.push(of_headers(toolkit.ok().as_ref(), can_fetch));
            found.extend([of_cache(&cache)].into_iter().chain(machines));
            found
        }
        Err(error) => vec![Finding::missing("cache", error.to_string())],
    });
    findings.push(python);
    let programs = Programs::of_this_machine();
    findings.extend(of_tools(&programs));
    findings.push(of_clocks(&programs));
    let exit = exit(&findings);
    let text = if args.json { json(&findings, exit)? } else { render(&findings, console.screen()) };
    console.print(&text)?;
    Ok(exit)
}

fn nothing_to_calibrate(why: &str) -> String {
    format!("there is no GPU to calibrate: {why}")
}

fn calibrate(devices: &[(DeviceId, DeviceInfo)], args: &DoctorArgs, console: &mut Console) -> Result<(), Failure> {
    if devices.is_empty() {
        return Err(Failure::environment(nothing_to_calibrate("the driver lists none")));
    }
    let interrupt = Interrupt::new();
    for (id, info) in devices {
        let spec = WorkerSpec::of_this_program(selected_gpu_args(id.ordinal));
        let (mut pool, ready) = Pool::start(spec, &interrupt).map_err(Failure::environment)?;
        let cache = Cache::locate().map_err(Failure::environment)?;
        let want = ready.driver_cuda.map_or(Requirement::Pinned, |driver| Requirement::Gpu {
            driver,
            compute_capability: info.compute_capability,
        });
        let toolkit = Toolkit::ensure(want, &cache, network(args.offline), &mut |line| console.say(line))
            .map_err(Failure::environment)?;
        let site = Site { ready: &ready, ordinal: id.ordinal, toolkit: &toolkit, interrupt: &interrupt };
        machine::measure(&mut pool, site, cache)
            .map_err(|why| Failure::environment(format!("GPU {} cannot be measured: {why}", id.ordinal)))?;
    }
    Ok(())
}

/// What earlier runs measured on the devices.
fn of_machines(cache: &Cache, driver: Option<&DriverVersion>, devices: &[(DeviceId, DeviceInfo)]) -> Option<Finding> {
    let store = machine::store(cache);
    let version = driver?.version.clone().unwrap_or_else(|| UNKNOWN_DRIVER.to_owned());
    let known = |id: &DeviceId| store.load(id.uuid.as_deref()?, &version);
    let mut lines = Vec::new();
    for (id, _) in devices {
        let Some(known) = known(id) else { continue };
        let words = runner_report::machine(&known.machine);
        lines.extend(words.into_iter().map(|sentence| format!("GPU {}: {sentence}", id.ordinal)));
    }
    match (devices.is_empty(), lines.is_empty()) {
        (true, _) => None,
        (false, true) => Some(Finding::absent(
            "calibration",
            "not measured yet; the first run measures it, as does `runner doctor --calibrate`",
        )),
        (false, false) => Some(Finding::ok("calibration", lines.join("\n"))),
    }
}

fn exit(findings: &[Finding]) -> Exit {
    if findings.iter().any(|f| f.state == State::Missing) { Exit::Environment } else { Exit::Success }
}

fn json(findings: &[Finding], exit: Exit) -> Result<String, Failure> {
    let found = Output { version: VERSION, ok: exit == Exit::Success, findings };
    let text = serde_json::to_string_pretty(&found).map_err(Failure::environment)?;
    Ok(visible_json(&text).into_owned() + "\n")
}

fn render(findings: &[Finding], screen: Screen) -> String {
    const INDENT: &str = "\n                            ";
    // A very narrow terminal has to wrap lines itself.
    let width = screen.width.map(|width| width.saturating_sub(INDENT.len() - 1)).filter(|width| *width >= 30);
    let mut text = String::new();
    for finding in findings {
        let (mark, code) = match finding.state {
            State::Ok => ("ok     ", "32"),
            State::Absent => ("absent ", "33"),
            State::Missing => ("missing", "31"),
        };
        let mark = if screen.styled { format!("\u{1b}[{code}m{mark}\u{1b}[0m") } else { mark.to_owned() };
        let words = runner_report::prose(finding.text.trim_end(), width, "").replace('\n', INDENT);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{mark}  {:<17}  {words}", finding.what);
    }
    text
}

/// The compiler that a run on the oldest of these devices would use.
fn want(driver: Option<&DriverVersion>, devices: &[(DeviceId, DeviceInfo)]) -> Requirement {
    let oldest = devices.iter().map(|(_, info)| info.compute_capability).min();
    match (driver, oldest) {
        (Some(driver), Some(compute_capability)) => Requirement::Gpu { driver: driver.cuda, compute_capability },
        _ => Requirement::Pinned,
    }
}

fn of_driver<E: ToString>(driver: &Result<DriverVersion, E>) -> Finding {
    match driver {
        Ok(driver) => {
            let version = driver.version.as_deref().unwrap_or("of unknown version");
            Finding::ok("driver", format!("{version}, CUDA {}.{}", driver.cuda.0, driver.cuda.1))
        }
        Err(error) => Finding::absent("driver", error.to_string()),
    }
}

fn of_devices<E: ToString>(devices: &Result<Vec<(DeviceId, DeviceInfo)>, E>) -> Finding {
    let devices = match devices {
        Ok(devices) if devices.is_empty() => {
            let hidden = env::var_os("CUDA_VISIBLE_DEVICES").is_some();
            let why = if hidden { "; CUDA_VISIBLE_DEVICES is set and may hide it" } else { "" };
            return Finding::absent("device", format!("the driver lists no GPU{why}; {SIMULATED}"));
        }
        Ok(devices) => devices,
        Err(_) => return Finding::absent("device", format!("no driver, so no GPU; {SIMULATED}")),
    };
    let lines: Vec<String> = devices
        .iter()
        .map(|(id, info)| {
            let free = info.memory_free.map_or(String::new(), |free| format!(", {} free", bytes(free.0)));
            format!("GPU {}: {} ({}{free})", id.ordinal, info.name, info.architecture())
        })
        .collect();
    Finding::ok("device", lines.join("\n"))
}

fn of_compiler(toolkit: &Result<Toolkit, ToolkitError>, can_fetch: bool) -> Finding {
    match toolkit {
        Ok(toolkit) => match try_out(toolkit) {
            Ok(()) => Finding::ok("compiler", format!("{}: {}", toolkit.describe(), toolkit.library.display())),
            Err(reason) => Finding::missing("compiler", format!("{} does not work: {reason}", toolkit.describe())),
        },
        Err(ToolkitError::Missing(missing)) if can_fetch => Finding::absent(
            "compiler",
            format!(
                "NVRTC {} is not installed; the first run downloads it ({} MB), as does `runner setup`",
                missing.pinned.build, missing.pinned.download_mb
            ),
        ),
        Err(error) => Finding::missing("compiler", error.to_string()),
    }
}

fn of_confinement(is_enforced: bool) -> Finding {
    if is_enforced {
        return Finding::ok(
            "sandbox",
            "the compiler can read the project and the toolkit, and can write only its output",
        );
    }
    Finding::absent(
        "sandbox",
        "this kernel lacks Landlock (Linux 5.13), so the compiler runs with all your permissions; compile untrusted \
         code in a container",
    )
}

/// Compiles an empty kernel, bypassing the cache.
fn try_out(toolkit: &Toolkit) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    let source = dir.path().join("trial.cu");
    fs::write(&source, "extern \"C\" __global__ void trial() {}\n").map_err(|e| e.to_string())?;
    let unit = CompileUnit::from_kernels(source, ["trial"]);
    let options = CompileOptions::new(Cache::at(dir.path())).map_err(|e| e.to_string())?;
    let target = Target::Ptx((9, 0));
    let results = compile_all(&[unit], target, toolkit, &options, &mut |_, _, _| {});
    results.into_values().try_for_each(|result| result.map(drop).map_err(|failure| failure.summary))
}

fn of_headers(toolkit: Option<&Toolkit>, can_fetch: bool) -> Finding {
    let Some(toolkit) = toolkit else {
        let text = "they come with the compiler";
        return if can_fetch { Finding::absent("headers", text) } else { Finding::missing("headers", text) };
    };
    let (there, not): (Vec<&str>, Vec<&str>) = HEADERS.iter().partition(|name| toolkit.header(name).is_some());
    if not.is_empty() {
        return Finding::ok("headers", there.join(", "));
    }
    Finding::absent(
        "headers",
        format!(
            "{} not found in {}; kernels that include them do not compile; RUNNER_TOOLKIT=pinned uses the downloaded \
             ones",
            not.join(", "),
            toolkit.include_dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ")
        ),
    )
}

fn of_cache(cache: &Cache) -> Finding {
    match cache.prepare() {
        Ok(()) => Finding::ok("cache", format!("{}, {}", cache.root().display(), bytes(size(cache.root())))),
        Err(error) => Finding::missing("cache", error.to_string()),
    }
}

fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Looks for pip, which is needed only to download a compiler.
fn of_python() -> Finding {
    let python = programs::python();
    let use_of_it = "`runner setup` needs it to download a compiler";
    match output(fetch::pip(&python, Path::new("/")).arg("--version")) {
        Ok(version) => {
            Finding::ok("python with pip", format!("{python}: {}", version.split(" from ").next().unwrap_or("")))
        }
        Err(_) => Finding::absent("python with pip", format!("`{python} -m pip` does not run; {use_of_it}")),
    }
}

fn of_tools(programs: &Programs) -> Vec<Finding> {
    let tools: [(&str, &str, &str); 2] = [
        ("profiler", "ncu", "`run --counters` and `profile` need Nsight Compute"),
        (
            "memory checker",
            "compute-sanitizer",
            "it is part of the CUDA toolkit and finds races and out-of-bounds accesses",
        ),
    ];
    let found = tools.into_iter().map(|(what, program, advice)| match programs.find(program) {
        Some(path) if program == "ncu" && counters_are_roots() => Finding::ok(
            what,
            format!(
                "{}; only root may read counters (the driver option NVreg_RestrictProfilingToAdminUsers=0 allows \
                others)",
                path.display()
            ),
        ),
        Some(path) => Finding::ok(what, path.display().to_string()),
        None => Finding::absent(what, format!("{program} is not on the search path; {advice}")),
    });
    found.chain(of_compilers(programs)).collect()
}

/// Compilers that are separate programs, with their versions.
fn of_compilers(programs: &Programs) -> [Finding; 2] {
    let nvcc = Nvcc::installed(programs);
    let clang = nvcc.as_ref().and_then(|nvcc| Clang::find(nvcc, programs));
    let found = |name: String, path: &Path| format!("{name}: {}", path.display());
    [
        match &nvcc {
            Some(nvcc) => Finding::ok("nvcc", found(nvcc.name(), &nvcc.path)),
            None => Finding::absent(
                "nvcc",
                "nvcc is not on the search path; `host` variants and `compiler = \"nvcc\"` need it",
            ),
        },
        match (&clang, &nvcc) {
            (Some(clang), _) => Finding::ok("clang", found(clang.name(), &clang.path)),
            (None, Some(_)) => {
                Finding::absent("clang", "clang is not on the search path; `compiler = \"clang\"` needs it")
            }
            (None, None) => Finding::absent("clang", "`compiler = \"clang\"` needs it, and a CUDA toolkit with nvcc"),
        },
    ]
}

/// Whether the driver reserves hardware counters for root, and this user is not root.
fn counters_are_roots() -> bool {
    let params = fs::read_to_string("/proc/driver/nvidia/params").unwrap_or_default();
    params.lines().any(|line| line.trim() == "RmProfilingAdminOnly: 1") && !rustix::process::geteuid().is_root()
}

/// Current GPU clocks. Times measured at reduced clocks are not representative.
fn of_clocks(programs: &Programs) -> Finding {
    const FIELDS: &str = "index,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,persistence_mode";
    let query = format!("--query-gpu={FIELDS}");
    let Some(program) = programs.find("nvidia-smi") else {
        return Finding::absent("clocks", "nvidia-smi not found; it is part of the driver");
    };
    match output(Command::new(program).args([query.as_str(), "--format=csv,noheader"])) {
        Ok(text) => Finding::ok("clocks", text.lines().map(clocks_line).collect::<Vec<_>>().join("\n")),
        Err(reason) => Finding::absent("clocks", format!("nvidia-smi failed: {reason}")),
    }
}

/// Describes the clocks: `GPU 0: SM 345 MHz of 1980 MHz, memory 2619 MHz of 2619 MHz, persistence Enabled`.
fn clocks_line(line: &str) -> String {
    match line.split(", ").collect::<Vec<_>>()[..] {
        [index, sm, sm_max, memory, memory_max, persistence] => {
            format!("GPU {index}: SM {sm} of {sm_max}, memory {memory} of {memory_max}, persistence {persistence}")
        }
        _ => line.to_owned(),
    }
}

fn output(command: &mut Command) -> Result<String, String> {
    let out = command.output().map_err(|e| e.to_string())?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    } else {
        Err(out.status.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_compile::{Missing, pinned};

    const PLAIN: Screen = Screen { styled: false, width: None };

    #[test]
    fn a_run_is_possible_as_long_as_nothing_is_missing() {
        let absent = Finding::absent("profiler", "no ncu");
        assert_eq!(exit(&[Finding::ok("driver", "580"), absent.clone()]), Exit::Success);
        assert_eq!(exit(&[Finding::missing("driver", "none"), absent]), Exit::Environment);
    }

    #[test]
    fn json_has_a_version_and_every_finding_with_its_state() -> Result<(), Box<dyn std::error::Error>> {
        let findings = [Finding::ok("device", "GPU 0\nGPU 1"), Finding::missing("cache", "no room")];
        let found: serde_json::Value = serde_json::from_str(&json(&findings, exit(&findings)).map_err(|f| f.message)?)?;
        let expected = serde_json::json!({ "version": 1, "ok": false, "findings": [
            { "what": "device", "state": "ok", "text": "GPU 0\nGPU 1" },
            { "what": "cache", "state": "missing", "text": "no room" },
        ] });
        assert_eq!(found, expected);
        Ok(())
    }

    #[test]
    fn a_machine_without_a_gpu_uses_the_simulator() {
        let finding = of_devices::<String>(&Err("no driver".to_owned()));
        assert_eq!(finding.state, State::Absent);
        assert!(finding.text.contains("`runner run` uses the simulator"), "{}", finding.text);
        assert_eq!(of_driver::<String>(&Err("no driver".to_owned())), Finding::absent("driver", "no driver"));
    }

    #[test]
    fn a_compiler_that_a_run_fetches_is_missing_only_where_it_cannot_be_fetched() {
        // Constructed here, since the machine running this test may have the toolkit.
        let nowhere = Err(ToolkitError::Missing(Missing { tried: Vec::new(), pinned: pinned::NEWEST }));
        assert_eq!(of_compiler(&nowhere, true).state, State::Absent);
        assert_eq!(of_compiler(&nowhere, false).state, State::Missing);
        assert_eq!(of_headers(None, true).state, State::Absent);
        assert_eq!(of_headers(None, false).state, State::Missing);
    }

    #[test]
    fn lines_of_one_finding_are_aligned() {
        let text = render(&[Finding::ok("device", "GPU 0\nGPU 1"), Finding::absent("nvcc", "none")], PLAIN);
        let device = format!("{:<9}{:<19}GPU 0\n{:<28}GPU 1\n", "ok", "device", "");
        assert_eq!(text, format!("{device}{:<9}{:<19}none\n", "absent", "nvcc"));
    }

    #[test]
    fn findings_keep_to_the_width_of_the_terminal() {
        let findings = [Finding::absent("nvcc", "it builds what the host runs, kernels are compiled without it")];
        let text = render(&findings, Screen { width: Some(60), ..PLAIN });
        let first = format!("{:<9}{:<19}it builds what the host runs,\n", "absent", "nvcc");
        assert_eq!(text, format!("{first}{:<28}kernels are compiled without it\n", ""));
        let narrow = render(&findings, Screen { width: Some(20), ..PLAIN });
        assert_eq!(narrow.lines().count(), 1, "{narrow}");
    }

    #[test]
    fn clocks_are_read_from_the_line_that_nvidia_smi_prints() {
        assert_eq!(
            clocks_line("0, 345 MHz, 1980 MHz, 2619 MHz, 2619 MHz, Enabled"),
            "GPU 0: SM 345 MHz of 1980 MHz, memory 2619 MHz of 2619 MHz, persistence Enabled"
        );
        assert_eq!(clocks_line("something else"), "something else");
    }
}
