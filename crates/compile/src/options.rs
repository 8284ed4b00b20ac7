//! Builds NVRTC's command line for a unit from the manifest's options and the defaults.
//!
//! Options that a manifest must not set are rejected here again, in case the manifest's own checks miss them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use runner_types::{CompileUnit, KernelCompiler, RefusedOption};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Machine code for a GPU of this compute capability; PTX if the compiler does not support the GPU yet.
    Gpu((u32, u32)),
    /// PTX for a virtual architecture, for the simulator.
    Ptx((u32, u32)),
}

impl Target {
    /// Text that identifies the target in keys of compiled code. Changing it makes every stored result stale.
    pub(super) fn identity(self) -> String {
        let (kind, (major, minor)) = match self {
            Self::Gpu(capability) => ("Gpu", capability),
            Self::Ptx(capability) => ("Ptx", capability),
        };
        format!("{kind}(({major}, {minor}))")
    }
}

/// Options of a unit, grouped by what they depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct UnitOptions {
    /// Options without paths, which are part of the content address.
    pub stable: Vec<String>,
    /// Architecture that the manifest names. It overrides the device's, since `sm_90a` has instructions that `sm_90`
    /// lacks.
    pub architecture: Option<String>,
    /// Include folders in order: the source's, then the manifest's. The toolkit's follow.
    pub include_dirs: Vec<PathBuf>,
    /// Files that the options include before the source.
    pub pre_includes: Vec<String>,
    /// Options of the assembler, if it is a separate program.
    pub assembler: Vec<String>,
}

impl UnitOptions {
    /// Groups the options of a unit. Fails if one is not allowed.
    pub fn parse(unit: &CompileUnit) -> Result<Self, RefusedOption> {
        let compiler = if unit.plugin.is_some() { KernelCompiler::Nvcc } else { unit.compiler };
        unit.options.iter().try_for_each(|option| compiler.check_option(option))?;
        let mut sorted = Self::default();
        let own = unit.source.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sorted.include_dirs.push(own.to_owned());
        sorted.include_dirs.extend(unit.include_paths.iter().cloned());
        sorted.stable.extend(defaults(unit));
        sorted.stable.extend(unit.defines.iter().map(|(name, value)| format!("--define-macro={name}={value}")));
        let assembled = unit.plugin.is_none() && unit.compiler != KernelCompiler::Nvrtc;
        for option in &unit.options {
            if let Some(architecture) = value_of(option, ["gpu-architecture", "arch"]) {
                sorted.architecture = Some(architecture.to_owned());
            } else if let Some(list) = value_of(option, ["ptxas-options", "Xptxas"]).filter(|_| assembled) {
                sorted.assembler.extend(list.split(',').map(str::to_owned));
            } else if let Some(file) = value_of(option, ["pre-include", "include"]) {
                sorted.stable.push(format!("--pre-include={file}"));
                sorted.pre_includes.push(file.to_owned());
            } else {
                sorted.stable.push(option.clone());
            }
        }
        Ok(sorted)
    }
}

/// Options that the manifest does not set.
fn defaults(unit: &CompileUnit) -> Vec<String> {
    let mut options = Vec::new();
    if !unit.options.iter().any(|option| option.trim_start_matches('-').starts_with("std=")) {
        options.push("--std=c++17".to_owned());
    }
    let linked = unit.settings.relocatable.then(|| "--relocatable-device-code=true".to_owned());
    if unit.compiler == KernelCompiler::Clang {
        let debug: &[&str] =
            if unit.settings.debug { &["-g", "--cuda-noopt-device-debug"] } else { &["-gline-tables-only"] };
        options.extend(debug.iter().map(|&option| option.to_owned()));
        return options;
    }
    if unit.plugin.is_some() || unit.compiler == KernelCompiler::Nvcc {
        // nvcc has another name for the option to debug device code.
        options.push(if unit.settings.debug { "-G" } else { "--generate-line-info" }.to_owned());
        options.extend(linked);
        return options;
    }
    // Line numbers cost nothing at run time; traps, profilers and the sanitizer need them.
    options.push(if unit.settings.debug { "--device-debug" } else { "--generate-line-info" }.to_owned());
    options.extend(unit.settings.max_registers.map(|registers| format!("--maxrregcount={registers}")));
    options.extend(linked);
    // Only the assembler's log has the spills and, for PTX, all resources.
    options.push("--ptxas-options=-v".to_owned());
    options
}

/// Value of an option with one of these names.
fn value_of<'a>(option: &'a str, names: [&str; 2]) -> Option<&'a str> {
    let (name, value) = option.trim_start_matches('-').split_once('=')?;
    names.contains(&name).then_some(value)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use runner_types::{CompileSettings, Plugin};

    fn unit(options: &[&str]) -> CompileUnit {
        CompileUnit {
            defines: vec![("N".to_owned(), "4".to_owned())],
            options: options.iter().map(|&o| o.to_owned()).collect(),
            include_paths: vec![PathBuf::from("inc")],
            settings: CompileSettings { max_registers: Some(32), ..CompileSettings::default() },
            ..CompileUnit::from_kernels("kernels/a.cu", [""; 0])
        }
    }

    #[test]
    fn an_architecture_among_the_options_is_taken_out_in_every_spelling() {
        for spelling in ["-arch=sm_90a", "--gpu-architecture=sm_90a"] {
            let sorted = UnitOptions::parse(&unit(&[spelling])).unwrap();
            assert_eq!(sorted.architecture.as_deref(), Some("sm_90a"), "{spelling}");
            assert!(sorted.stable.iter().all(|o| !o.contains("sm_90a")), "{spelling}");
        }
    }

    #[test]
    fn include_folders_are_the_sources_then_the_manifests() {
        let sorted = UnitOptions::parse(&unit(&[])).unwrap();
        let dirs: Vec<_> = sorted.include_dirs.iter().map(|d| d.to_str().unwrap()).collect();
        assert_eq!(dirs, ["kernels", "inc"]);
    }

    #[test]
    fn defaults_give_way_to_what_the_manifest_says() {
        let plain = UnitOptions::parse(&unit(&[])).unwrap();
        assert_eq!(
            plain.stable,
            ["--std=c++17", "--generate-line-info", "--maxrregcount=32", "--ptxas-options=-v", "--define-macro=N=4"]
        );
        let mut debugged = unit(&["-std=c++20"]);
        debugged.settings.debug = true;
        let own = UnitOptions::parse(&debugged).unwrap();
        assert_eq!(
            own.stable,
            ["--device-debug", "--maxrregcount=32", "--ptxas-options=-v", "--define-macro=N=4", "-std=c++20"]
        );
    }

    #[test]
    fn the_identity_of_a_target_is_the_text_in_all_stored_keys() {
        assert_eq!([Target::Gpu((9, 0)), Target::Ptx((8, 6))].map(Target::identity), ["Gpu((9, 0))", "Ptx((8, 6))"]);
    }

    #[test]
    fn code_that_launches_kernels_is_made_to_be_linked() {
        let plain = UnitOptions::parse(&unit(&[])).unwrap();
        let mut relocatable = unit(&[]);
        relocatable.settings.relocatable = true;
        let linked = UnitOptions::parse(&relocatable).unwrap();
        let added: Vec<_> = linked.stable.iter().filter(|option| !plain.stable.contains(option)).collect();
        assert_eq!(added, ["--relocatable-device-code=true"]);
    }

    #[test]
    fn files_put_in_front_are_known_in_both_spellings() {
        for spelling in ["-include=x.h", "--pre-include=x.h"] {
            let sorted = UnitOptions::parse(&unit(&[spelling, "--use_fast_math"])).unwrap();
            assert_eq!(sorted.pre_includes, ["x.h"]);
            assert_eq!(sorted.stable[5..], ["--pre-include=x.h", "--use_fast_math"]);
        }
    }

    #[test]
    fn an_option_that_only_a_case_fills_in_is_refused_before_the_compiler_gets_it() {
        assert!(UnitOptions::parse(&unit(&["--time=times.csv"])).is_err());
        let host = CompileUnit { plugin: Some(Plugin { libraries: vec![] }), ..unit(&["-ccbin=./gcc"]) };
        assert!(UnitOptions::parse(&host).is_err());
    }
}
