//! NVRTC's command line for a unit: what the manifest asks for, and what is set where it does not.
//!
//! Only options that say where things lie or which architecture is meant are read; all others go to NVRTC as written.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::CompileUnit;

/// What code is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Machine code for a GPU of this compute capability; PTX where the compiler does not know the GPU yet.
    Gpu((u32, u32)),
    /// PTX of a virtual architecture, for the simulator.
    Ptx((u32, u32)),
}

/// A unit's options, sorted by what they depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct UnitOptions {
    /// Those that mean the same wherever the files lie: part of the content address.
    pub stable: Vec<String>,
    /// The architecture that the manifest's options name. It wins over the device's, since `sm_90a` has instructions
    /// that `sm_90` has not.
    pub architecture: Option<String>,
    /// Where includes are sought, in order: the source's folder, the manifest's paths, those in its options. The
    /// toolkit's own folders come after these.
    pub include_dirs: Vec<PathBuf>,
    /// Files that the options put in front of the source.
    pub pre_includes: Vec<String>,
    /// Macros that the options define, as `NAME=VALUE`, beside the unit's own.
    pub macros: Vec<String>,
}

impl UnitOptions {
    /// Sorts the options of a unit.
    pub fn of(unit: &CompileUnit) -> Self {
        let mut sorted = Self::default();
        let own = unit.source.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sorted.include_dirs.push(own.to_owned());
        sorted.include_dirs.extend(unit.include_paths.iter().cloned());
        sorted.stable.extend(defaults(unit));
        sorted.stable.extend(unit.defines.iter().map(|(name, value)| format!("--define-macro={name}={value}")));
        let mut options = unit.options.iter();
        while let Some(option) = options.next() {
            let mut value_of = |names: [&str; 2]| value_of(option, names, &mut options);
            if let Some(architecture) = value_of(["--gpu-architecture", "-arch"]) {
                sorted.architecture = Some(architecture);
            } else if let Some(dir) = value_of(["--include-path", "-I"]) {
                sorted.include_dirs.push(PathBuf::from(dir));
            } else if let Some(file) = value_of(["--pre-include", "-include"]) {
                sorted.stable.push(format!("--pre-include={file}"));
                sorted.pre_includes.push(file);
            } else if let Some(definition) = value_of(["--define-macro", "-D"]) {
                sorted.stable.push(format!("--define-macro={definition}"));
                sorted.macros.push(definition);
            } else {
                sorted.stable.push(option.clone());
            }
        }
        sorted
    }
}

/// What is asked of the compiler unless the manifest's options say otherwise.
fn defaults(unit: &CompileUnit) -> Vec<String> {
    let mut options = Vec::new();
    if !unit.options.iter().any(|option| option.trim_start_matches('-').starts_with("std=")) {
        options.push("--std=c++17".to_owned());
    }
    if unit.plugin.is_some() {
        // In words of nvcc, which names the debugger's option of device code otherwise.
        options.push(if unit.debug { "-G" } else { "--generate-line-info" }.to_owned());
        return options;
    }
    // Line numbers cost nothing at run time; traps, profilers and the sanitizer name source lines by them.
    options.push(if unit.debug { "--device-debug" } else { "--generate-line-info" }.to_owned());
    options.extend(unit.max_registers.map(|registers| format!("--maxrregcount={registers}")));
    if unit.relocatable {
        options.push("--relocatable-device-code=true".to_owned());
    }
    // The assembler's log is the one place that tells spills, and where PTX is wanted the one that tells anything.
    options.push("--ptxas-options=-v".to_owned());
    options
}

/// The value of an option written `name=value`, `name value` or, for one letter, `-Xvalue`.
fn value_of<'a>(option: &str, names: [&str; 2], rest: &mut impl Iterator<Item = &'a String>) -> Option<String> {
    names.iter().find_map(|name| {
        let tail = option.strip_prefix(name)?;
        match tail.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if tail.is_empty() => rest.next().cloned(),
            None if name.len() == 2 => Some(tail.to_owned()),
            None => None,
        }
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn unit(options: &[&str]) -> CompileUnit {
        CompileUnit {
            source: PathBuf::from("kernels/a.cu"),
            kernels: vec![],
            symbols: vec![],
            defines: vec![("N".to_owned(), "4".to_owned())],
            options: options.iter().map(|&o| o.to_owned()).collect(),
            include_paths: vec![PathBuf::from("inc")],
            debug: false,
            max_registers: Some(32),
            relocatable: false,
            plugin: None,
        }
    }

    #[test]
    fn an_architecture_among_the_options_is_taken_out_in_every_spelling() {
        for spelling in [&["-arch=sm_90a"][..], &["-arch", "sm_90a"], &["--gpu-architecture=sm_90a"]] {
            let sorted = UnitOptions::of(&unit(spelling));
            assert_eq!(sorted.architecture.as_deref(), Some("sm_90a"), "{spelling:?}");
            assert!(sorted.stable.iter().all(|o| !o.contains("sm_90a")), "{spelling:?}");
        }
    }

    #[test]
    fn include_folders_are_the_sources_then_the_manifests_then_those_of_the_options() {
        let sorted = UnitOptions::of(&unit(&["-Ia", "-I", "b", "--include-path=c"]));
        let dirs: Vec<_> = sorted.include_dirs.iter().map(|d| d.to_str().unwrap()).collect();
        assert_eq!(dirs, ["kernels", "inc", "a", "b", "c"]);
    }

    #[test]
    fn defaults_give_way_to_what_the_manifest_says() {
        let plain = UnitOptions::of(&unit(&[]));
        assert_eq!(
            plain.stable,
            ["--std=c++17", "--generate-line-info", "--maxrregcount=32", "--ptxas-options=-v", "--define-macro=N=4"]
        );
        let own = UnitOptions::of(&CompileUnit { debug: true, ..unit(&["-std=c++20"]) });
        assert_eq!(
            own.stable,
            ["--device-debug", "--maxrregcount=32", "--ptxas-options=-v", "--define-macro=N=4", "-std=c++20"]
        );
    }

    #[test]
    fn code_that_launches_kernels_is_made_to_be_linked() {
        let plain = UnitOptions::of(&unit(&[]));
        let linked = UnitOptions::of(&CompileUnit { relocatable: true, ..unit(&[]) });
        let added: Vec<_> = linked.stable.iter().filter(|option| !plain.stable.contains(option)).collect();
        assert_eq!(added, ["--relocatable-device-code=true"]);
    }

    #[test]
    fn macros_and_files_put_in_front_are_known_in_both_spellings() {
        let sorted = UnitOptions::of(&unit(&["-DA=1", "-D", "B", "-include=x.h", "--use_fast_math"]));
        assert_eq!(sorted.macros, ["A=1", "B"]);
        assert_eq!(sorted.pre_includes, ["x.h"]);
        assert_eq!(
            sorted.stable[5..],
            ["--define-macro=A=1", "--define-macro=B", "--pre-include=x.h", "--use_fast_math"]
        );
    }
}
