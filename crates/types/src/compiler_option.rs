//! Allow-list of the compiler options that a manifest may set.
//!
//! A manifest comes with a checkout, and compiler options can write files (`--create-pch`, `--time`, `-o`) and run
//! programs (`-ccbin`, `-fplugin`). So only options that change the code or its diagnostics are allowed. Sources: the
//! option lists in the NVRTC manual, `nvcc --help` and `ptxas --help`; NVRTC and nvcc 13.0 accept all of them.

use super::KernelCompiler;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedOption {
    /// The error, with the option as written.
    pub message: String,
    pub hint: String,
}

/// Syntax of an option's value.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Nothing,
    /// `=true`, `=false` or nothing.
    Bool,
    /// `=` and one of these.
    OneOf(&'static [&'static str]),
    /// `=` and comma-separated words of letters, digits, `_`, `-` and `.`.
    Words,
    /// `=` and the name of a file to read.
    File,
    /// `=` and comma-separated options of the assembler.
    Assembler,
    /// `=` and comma-separated options of the host compiler.
    HostCompiler,
}

type Allowed = (&'static [&'static str], Takes);

/// Options that both NVRTC and nvcc accept, without the leading one or two dashes.
const NVRTC_AND_NVCC: &[Allowed] = &[
    (&["std"], Takes::OneOf(&["c++03", "c++11", "c++14", "c++17", "c++20", "c++23"])),
    (&["ftz", "prec-div", "prec-sqrt", "fmad"], Takes::Bool),
    (&["use_fast_math", "extra-device-vectorization", "restrict"], Takes::Nothing),
    (&["extensible-whole-program", "ewp"], Takes::Nothing),
    (&["lineinfo", "generate-line-info"], Takes::Nothing),
    (&["dopt"], Takes::OneOf(&["on", "off"])),
    (&["Ofast-compile", "Ofc"], Takes::OneOf(&["0", "min", "mid", "max"])),
    (&["jump-table-density", "split-compile"], Takes::Words),
    (&["ptxas-options", "Xptxas"], Takes::Assembler),
    (&["undefine-macro", "U"], Takes::Words),
    (&["pre-include", "include"], Takes::File),
    (&["disable-warnings", "w", "display-error-number", "err-no", "no-display-error-number"], Takes::Nothing),
    (&["no-err-no"], Takes::Nothing),
    (&["optimization-info", "opt-info"], Takes::Words),
    (&["diag-error", "diag-suppress", "diag-warn"], Takes::Words),
    (&["brief-diagnostics", "brief-diag"], Takes::Bool),
];

const ONLY_NVRTC: &[Allowed] = &[
    (&["builtin-move-forward", "builtin-initializer-list", "modify-stack-limit"], Takes::Bool),
    (&["device-stack-protector"], Takes::Bool),
    (&["device-as-default-execution-space", "default-device", "device-int128", "device-float128"], Takes::Nothing),
    (&["minimal"], Takes::Nothing),
];

const ONLY_NVCC: &[Allowed] = &[
    (&["O0", "O1", "O2", "O3", "m64"], Takes::Nothing),
    (&["O", "optimize"], Takes::OneOf(&["0", "1", "2", "3"])),
    (&["extended-lambda", "expt-extended-lambda", "expt-relaxed-constexpr"], Takes::Nothing),
    (&["default-stream"], Takes::OneOf(&["legacy", "null", "per-thread"])),
    (&["threads", "t", "ftemplate-depth", "ftemplate-backtrace-limit"], Takes::Words),
    (&["compiler-options", "Xcompiler"], Takes::HostCompiler),
    (&["resource-usage", "res-usage", "static-global-template-stub"], Takes::Bool),
    (&["Werror"], Takes::Words),
    (&["Wreorder"], Takes::Nothing),
    (&["Wno-deprecated-declarations", "Wno-deprecated-gpu-targets", "Wmissing-launch-bounds"], Takes::Nothing),
    (&["Wdefault-stream-launch", "Wext-lambda-captures-this", "allow-unsupported-compiler"], Takes::Nothing),
];

const CLANG: &[Allowed] = &[
    (&["std"], Takes::OneOf(&["c++03", "c++11", "c++14", "c++17", "c++20", "c++23"])),
    (&["O0", "O1", "O2", "O3", "Os", "Oz"], Takes::Nothing),
    (&["ffast-math", "fno-fast-math", "funroll-loops", "fno-unroll-loops", "fno-exceptions"], Takes::Nothing),
    (
        &["fgpu-flush-denormals-to-zero", "fgpu-approx-transcendentals", "fno-gpu-approx-transcendentals"],
        Takes::Nothing,
    ),
    (&["fcuda-flush-denormals-to-zero", "fcuda-approx-transcendentals", "fcuda-short-ptr"], Takes::Nothing),
    (&["ffp-contract"], Takes::OneOf(&["fast", "on", "off", "fast-honor-pragmas"])),
    (&["ptxas-options", "Xptxas"], Takes::Assembler),
    (&["w", "Wall", "Wextra", "Werror", "Wpedantic"], Takes::Nothing),
];

const ASSEMBLER: &[Allowed] = &[
    (&["v", "verbose", "O0", "O1", "O2", "O3", "w", "disable-warnings"], Takes::Nothing),
    (&["O", "opt-level"], Takes::OneOf(&["0", "1", "2", "3"])),
    (&["dlcm", "def-load-cache"], Takes::OneOf(&["ca", "cg", "cs", "lu", "cv"])),
    (&["flcm", "force-load-cache"], Takes::OneOf(&["ca", "cg", "cs", "lu", "cv"])),
    (&["dscm", "def-store-cache"], Takes::OneOf(&["wb", "cg", "cs", "wt"])),
    (&["fscm", "force-store-cache"], Takes::OneOf(&["wb", "cg", "cs", "wt"])),
    (&["fmad", "allow-expensive-optimizations"], Takes::Bool),
    (&["position-independent-code", "pic"], Takes::Bool),
    (&["register-usage-level", "split-compile", "Ofast-compile"], Takes::Words),
    (&["disable-optimizer-constants", "disable-optimizer-consts", "sp-bounds-check"], Takes::Nothing),
    (&["warn-on-spills", "warn-spills", "warn-on-local-memory-usage", "warn-lmem-usage"], Takes::Nothing),
    (&["warn-on-double-precision-use", "warn-double-usage", "warning-as-error", "Werror"], Takes::Nothing),
    (&["suppress-double-demote-warning", "suppress-stack-size-warning"], Takes::Nothing),
    (&["generate-line-info", "lineinfo", "return-at-end", "suppress-debug-info"], Takes::Nothing),
];

const HOST_COMPILER: &[Allowed] = &[
    (&["O0", "O1", "O2", "O3", "Os", "Og", "Ofast", "g", "w", "Wall", "Wextra", "pthread"], Takes::Nothing),
    (&["fPIC", "fopenmp", "ffast-math", "funroll-loops", "fno-strict-aliasing", "fno-exceptions"], Takes::Nothing),
    (&["mavx", "mavx2", "mavx512f", "mfma", "msse4.2"], Takes::Nothing),
    (&["march", "mtune", "mcpu"], Takes::Words),
];

/// Options that manifest keys set, with the key to use instead.
const SET_BY_KEYS: [(&[&str], &str); 8] = [
    (&["arch", "gpu-architecture", "gencode", "generate-code", "code", "gpu-code"], ARCHITECTURE_HINT),
    (&["G", "device-debug"], "write `debug = true`"),
    (&["maxrregcount"], "write `max_registers`"),
    (&["D", "define-macro"], "write `defines`"),
    (&["I", "include-path"], "write `include_paths`"),
    (&["o", "output-file"], "the program chooses its file names"),
    (&["rdc", "relocatable-device-code", "dc", "device-c"], "write `relocatable = true`"),
    (&["l", "library"], "write `libraries` in a `host` variant"),
];

const ARCHITECTURE_HINT: &str = "the architecture follows from the device; only architectures with their own \
                                 instructions can be named, such as `-arch=sm_90a`";

/// Options that a later version may support.
const LATER: [&str; 2] = ["dlto", "dlink-time-opt"];

impl KernelCompiler {
    /// Checks an option, as written in the manifest or with placeholders filled in. The error says why it is rejected
    /// and what to write instead.
    pub fn check_option(self, option: &str) -> Result<(), RefusedOption> {
        let refused = |message: String, hint: &str| Err(RefusedOption { message, hint: hint.to_owned() });
        let Some(bare) = bare(option) else {
            return refused(
                format!("`{option}` is not an option of the compiler"),
                "options begin with `-`; write each as its own string",
            );
        };
        let (name, value) = split(bare);
        if is_own_architecture(name, value) {
            return Ok(());
        }
        if let Some((_, instead)) =
            SET_BY_KEYS.iter().find(|(names, _)| names.iter().any(|key| is_key(key, bare, name)))
        {
            return refused(format!("the option `{option}` is set by the program itself"), instead);
        }
        if LATER.contains(&name) {
            let message = format!("the option `{option}` (link-time optimisation) is not available in this version");
            return refused(message, "leave it out");
        }
        let own: &[&[Allowed]] = match self {
            Self::Nvrtc => &[NVRTC_AND_NVCC, ONLY_NVRTC],
            Self::Nvcc => &[NVRTC_AND_NVCC, ONLY_NVCC],
            Self::Clang => &[CLANG],
        };
        match find(own, name) {
            Some(takes) => takes.check(option, value),
            None => refused(format!("the option `{option}` is not allowed"), &self.rule()),
        }
    }

    fn rule(self) -> String {
        let compiler = if self == Self::Nvrtc { "NVRTC" } else { self.name() };
        format!(
            "a manifest may pass {compiler} only options that change code or diagnostics and touch no file; the \
             manifest's reference lists them"
        )
    }
}

impl Takes {
    fn check(self, option: &str, value: Option<&str>) -> Result<(), RefusedOption> {
        let wanted = match (self, value) {
            (Self::Nothing | Self::Bool, None) | (Self::Bool, Some("true" | "false")) => return Ok(()),
            (Self::Words, Some(words)) if is_words(words) => return Ok(()),
            (Self::OneOf(known), Some(value)) if known.contains(&value) => return Ok(()),
            (Self::File, Some(file)) if !file.is_empty() => return Ok(()),
            (Self::Assembler, Some(list)) => return nested(option, "assembler", ASSEMBLER, list),
            (Self::HostCompiler, Some(list)) => return nested(option, "host compiler", HOST_COMPILER, list),
            (Self::Nothing, _) => "it takes no value".to_owned(),
            (Self::Bool, _) => "it takes `=true` or `=false`".to_owned(),
            (Self::OneOf(known), _) => format!("it takes one of {}", known.join(", ")),
            (Self::Words, _) => "it takes `=` and words or numbers".to_owned(),
            (Self::File, _) => "it takes `=` and a file".to_owned(),
            (Self::Assembler | Self::HostCompiler, None) => "it takes `=` and comma-separated options".to_owned(),
        };
        Err(RefusedOption { message: format!("the option `{option}` has no such value"), hint: wanted })
    }
}

/// Checks the comma-separated options that an option passes to another tool.
fn nested(option: &str, whose: &str, allowed: &[Allowed], list: &str) -> Result<(), RefusedOption> {
    for inner in list.split(',') {
        let known = bare(inner).map(split).and_then(|(name, value)| Some((find(&[allowed], name)?, value)));
        let Some((takes, value)) = known else {
            let names: Vec<&str> = allowed.iter().flat_map(|(names, _)| names.iter().copied()).collect();
            return Err(RefusedOption {
                message: format!("`{option}` passes `{inner}` to the {whose}, which is not allowed"),
                hint: format!("allowed are -{}", names.join(", -")),
            });
        };
        takes.check(inner, value)?;
    }
    Ok(())
}

fn find(tables: &[&[Allowed]], name: &str) -> Option<Takes> {
    let mut entries = tables.iter().flat_map(|table| table.iter());
    entries.find(|(names, _)| names.contains(&name)).map(|(_, takes)| *takes)
}

/// The option without its dashes; `None` if it is not an option, or if a compiler could read it as two.
fn bare(option: &str) -> Option<&str> {
    let bare = option.strip_prefix("--").or_else(|| option.strip_prefix('-'))?;
    let begins = bare.starts_with(|c: char| c.is_ascii_alphabetic());
    (begins && !option.contains(|c: char| c.is_whitespace() || c.is_control())).then_some(bare)
}

fn split(bare: &str) -> (&str, Option<&str>) {
    bare.split_once('=').map_or((bare, None), |(name, value)| (name, Some(value)))
}

/// Whether the option is spelled `key`. `-DNAME` and `-Ifolder` have no separator before their value.
fn is_key(key: &str, bare: &str, name: &str) -> bool {
    key == name || (matches!(key, "D" | "I") && bare.starts_with(key))
}

fn is_words(text: &str) -> bool {
    let word = |word: &str| {
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && word.chars().all(part)
    };
    text.split(',').all(word)
}

/// Whether an option such as `-arch=sm_90a` requests instructions specific to one architecture or family. The case is
/// excluded on other devices.
fn is_own_architecture(name: &str, value: Option<&str>) -> bool {
    let digits = value.and_then(|value| value.strip_prefix("sm_")).and_then(|value| value.strip_suffix(['a', 'f']));
    matches!(name, "arch" | "gpu-architecture")
        && digits.is_some_and(|digits| (2..=3).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::KernelCompiler;

    fn allowed(compiler: KernelCompiler, option: &str) -> bool {
        compiler.check_option(option).is_ok()
    }

    #[test]
    fn options_that_change_code_or_diagnostics_are_allowed() {
        let options = [
            "--use_fast_math",
            "-use_fast_math",
            "--fmad=false",
            "--ftz=true",
            "--std=c++20",
            "--ptxas-options=-dlcm=cg",
            "-Xptxas=-v,--warn-on-spills,-O1",
            "--diag-suppress=177,20",
            "--extra-device-vectorization",
            "-arch=sm_90a",
            "--gpu-architecture=sm_100f",
            "--pre-include=config.h",
        ];
        for option in options {
            for compiler in [KernelCompiler::Nvrtc, KernelCompiler::Nvcc] {
                assert!(allowed(compiler, option), "{compiler:?} {option}");
            }
        }
        for option in
            ["-O3", "--extended-lambda", "--compiler-options=-fopenmp,-march=native", "--default-stream=legacy"]
        {
            assert!(allowed(KernelCompiler::Nvcc, option) && !allowed(KernelCompiler::Nvrtc, option), "{option}");
        }
    }

    #[test]
    fn options_that_write_files_or_run_programs_are_refused() {
        let options = [
            "--create-pch=x.pch",
            "-create-pch=x.pch",
            "--pch-dir=.",
            "--use-pch=x.pch",
            "--time=times.csv",
            "-time=times.csv",
            "--fdevice-time-trace=trace.json",
            "--output-file=x",
            "-o=x",
            "-ox",
            "--options-file=x",
            "-optf=x",
            "-ccbin=./gcc",
            "--compiler-bindir=./gcc",
            "--keep",
            "--keep-dir=x",
            "--dependency-output=x",
            "-MF=x",
            "--run",
            "--run-args=x",
            "--archive-options=x",
            "-Xlinker=-plugin,./x.so",
            "--linker-options=x",
            "--libdevice-directory=x",
            "--dryrun",
            "--ptxas-options=-o=x",
            "--ptxas-options=--output-file=x",
            "--ptxas-options=-v,--options-file=x",
            "--ptxas-options=",
            "--compiler-options=-fplugin=./x.so",
            "--compiler-options=-B.",
            "--compiler-options=-wrapper,./x",
            "--compiler-options=-O2,-o,x",
            "--compiler-options=-Wl",
            "@options",
            "--use_fast_math --time=x",
            "--use_fast_math\n--time=x",
            "--use_fast_math=true;x",
            "--std=c++17 --time=x",
            "",
            "-",
            "--",
        ];
        for option in options {
            for compiler in [KernelCompiler::Nvrtc, KernelCompiler::Nvcc, KernelCompiler::Clang] {
                assert!(!allowed(compiler, option), "{compiler:?} {option}");
            }
        }
    }

    #[test]
    fn clang_gets_its_own_options_and_none_that_reads_writes_or_loads_a_file() {
        for option in ["-O2", "-ffast-math", "-ffp-contract=off", "-std=c++20", "-arch=sm_90a", "--ptxas-options=-O1"] {
            assert!(allowed(KernelCompiler::Clang, option), "{option}");
        }
        let refused = [
            "-fplugin=./x.so",
            "-fpass-plugin=./x.so",
            "-Xclang",
            "-mllvm",
            "-B.",
            "-include=x",
            "--config=x",
            "--ptxas-path=./x",
            "--cuda-path=.",
            "-save-temps",
            "-o=x",
            "-use_fast_math",
            "-Wl",
            "@x",
        ];
        for option in refused {
            assert!(!allowed(KernelCompiler::Clang, option), "{option}");
        }
    }

    #[test]
    fn options_with_keys_of_their_own_name_the_key() {
        let hint = |option: &str| {
            KernelCompiler::Nvrtc.check_option(option).err().map(|refused| refused.hint).unwrap_or_default()
        };
        assert!(hint("-arch=sm_90").contains("`-arch=sm_90a`"));
        assert_eq!(hint("-DN=4"), "write `defines`");
        assert_eq!(hint("-Iinclude"), "write `include_paths`");
        assert_eq!(hint("--include-path=x"), "write `include_paths`");
        assert_eq!(hint("-G"), "write `debug = true`");
        assert_eq!(hint("--maxrregcount=32"), "write `max_registers`");
    }
}
