//! Bindings to NVRTC. They run only in the compiler's child process, where a crash or a hang affects one unit.
//!
//! The library is opened by absolute path, so that the loader cannot choose another one, and its version is checked.
//! Result codes stay integers, since a newer library may return unknown ones. Source: the NVRTC manual of CUDA 12 and
//! 13.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

use super::options::Target;
use runner_types::CodeKind;

type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type AddName = unsafe extern "C" fn(Program, *const c_char) -> c_int;
type LoweredName = unsafe extern "C" fn(Program, *const c_char, *mut *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Bytes = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type ArchCount = unsafe extern "C" fn(*mut c_int) -> c_int;
type Archs = unsafe extern "C" fn(*mut c_int) -> c_int;

const SUCCESS: c_int = 0;

/// `NVRTC_ERROR_COMPILATION`: the log describes an error in the program.
const ERROR_COMPILATION: c_int = 6;

pub(super) struct Nvrtc {
    library: Library,
    /// Kept open, since NVRTC finds it only if it is already loaded.
    _builtins: Library,
}

pub(super) struct Source<'a> {
    pub text: &'a str,
    /// Name of the source in the log and the line table.
    pub name: &'a str,
    /// C++ names of kernels, and of variables prefixed with `&`.
    pub expressions: &'a [String],
    /// All options except the architecture.
    pub options: &'a [String],
}

/// Result of a successful compilation.
pub(super) struct Product {
    pub code: Vec<u8>,
    /// Machine code; empty if the architecture is virtual.
    pub machine: Vec<u8>,
    /// Mangled name of each expression.
    pub lowered: BTreeMap<String, String>,
    pub log: String,
}

#[derive(Debug)]
pub(super) enum Refusal {
    /// The program does not compile; contains NVRTC's log.
    Program(String),
    /// The compiler cannot be used, or not for this request.
    Compiler(String),
}

impl Nvrtc {
    pub fn open(library: &Path, builtins: &Path) -> Result<Self, Refusal> {
        let open = |path: &Path| {
            // SAFETY: loading runs the library's initialisers; these are NVIDIA's, from the chosen toolkit, and this
            // process exists to run them.
            unsafe { Library::new(path) }.map_err(|e| {
                // The loader's own message, such as a missing file, is the source of the error.
                let message = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
                Refusal::Compiler(format!("cannot open {}: {message}", path.display()))
            })
        };
        let builtins = open(builtins)?;
        Ok(Self { library: open(library)?, _builtins: builtins })
    }

    /// Version of NVRTC, e.g. `(13, 0)`.
    pub fn version(&self) -> Result<(u32, u32), Refusal> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the type is from the manual, and both pointers are to live integers.
        let code = unsafe { self.function::<Version>("nvrtcVersion")?(&raw mut major, &raw mut minor) };
        self.check(code, "nvrtcVersion")?;
        Ok((major as u32, minor as u32))
    }

    /// Supported architectures, such as `75`, `90`, `120`, in ascending order.
    pub fn architectures(&self) -> Result<Vec<u32>, Refusal> {
        let mut count = 0;
        // SAFETY: the type is from the manual, and the pointer is to a live integer.
        let code = unsafe { self.function::<ArchCount>("nvrtcGetNumSupportedArchs")?(&raw mut count) };
        self.check(code, "nvrtcGetNumSupportedArchs")?;
        let mut archs = vec![0; count.max(0) as usize];
        // SAFETY: the type is from the manual, and the vector has the requested size.
        let code = unsafe { self.function::<Archs>("nvrtcGetSupportedArchs")?(archs.as_mut_ptr()) };
        self.check(code, "nvrtcGetSupportedArchs")?;
        archs.sort_unstable();
        Ok(archs.into_iter().map(|arch| arch as u32).collect())
    }

    /// Compiles for `architecture` (`sm_90`, `compute_75`) into the given kind of code.
    pub fn compile(&self, source: &Source<'_>, architecture: &str, kind: CodeKind) -> Result<Product, Refusal> {
        let program = OpenProgram::new(self, source)?;
        let log = program.compile(source.options, architecture)?;
        let lowered = source.expressions.iter().map(|e| Ok((e.clone(), program.lowered(e)?)));
        let lowered = lowered.collect::<Result<_, Refusal>>()?;
        let (size, bytes) = match kind {
            CodeKind::Cubin => ("nvrtcGetCUBINSize", "nvrtcGetCUBIN"),
            CodeKind::Ptx => ("nvrtcGetPTXSize", "nvrtcGetPTX"),
            CodeKind::Plugin => return Err(Refusal::Compiler("NVRTC cannot build host functions".to_owned())),
        };
        let mut code = program.bytes(size, bytes)?;
        if kind == CodeKind::Ptx {
            // The text is NUL-terminated, but the file must not contain the NUL.
            code.pop_if(|last| *last == 0);
        }
        let machine = match kind {
            CodeKind::Cubin => code.clone(),
            _ => program.bytes("nvrtcGetCUBINSize", "nvrtcGetCUBIN").unwrap_or_default(),
        };
        Ok(Product { code, machine, lowered, log })
    }

    /// Looks up a function of the library. The caller guarantees that `F` is its type.
    fn function<F: Copy>(&self, name: &str) -> Result<F, Refusal> {
        // SAFETY: every use below names a type written down from the manual; the pointer does not outlive `self`, which
        // each caller borrows while it calls.
        let symbol = unsafe { self.library.get::<F>(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|e| Refusal::Compiler(format!("NVRTC has no {name}: {e}")))
    }

    fn check(&self, code: c_int, call: &str) -> Result<(), Refusal> {
        if code == SUCCESS { Ok(()) } else { Err(Refusal::Compiler(format!("{call}: {}", self.explain(code)))) }
    }

    fn explain(&self, code: c_int) -> String {
        let Ok(error_string) = self.function::<ErrorString>("nvrtcGetErrorString") else {
            return format!("error {code}");
        };
        // SAFETY: the manual promises a static string for every code, known or not; null is checked.
        let text = unsafe {
            let text = error_string(code);
            if text.is_null() { None } else { Some(CStr::from_ptr(text).to_string_lossy().into_owned()) }
        };
        text.unwrap_or_else(|| format!("error {code}"))
    }
}

/// A program that is destroyed with its handle.
struct OpenProgram<'a> {
    nvrtc: &'a Nvrtc,
    raw: Program,
}

impl<'a> OpenProgram<'a> {
    fn new(nvrtc: &'a Nvrtc, source: &Source<'_>) -> Result<Self, Refusal> {
        let (text, name) = (c_string(source.text)?, c_string(source.name)?);
        let mut raw = ptr::null_mut();
        // SAFETY: the type is from the manual; both strings are NUL-terminated and outlive the call; no headers are
        // passed, so both of their lists may be null.
        let code = unsafe {
            let create = nvrtc.function::<Create>("nvrtcCreateProgram")?;
            create(&raw mut raw, text.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        nvrtc.check(code, "nvrtcCreateProgram")?;
        let program = Self { nvrtc, raw };
        for expression in source.expressions {
            let text = c_string(&overload(expression))?;
            // SAFETY: the program is live and the string is NUL-terminated.
            let code = unsafe { nvrtc.function::<AddName>("nvrtcAddNameExpression")?(program.raw, text.as_ptr()) };
            nvrtc.check(code, &format!("nvrtcAddNameExpression({expression})"))?;
        }
        Ok(program)
    }

    /// Compiles and returns the log.
    fn compile(&self, options: &[String], architecture: &str) -> Result<String, Refusal> {
        let mut owned = vec![c_string(&format!("--gpu-architecture={architecture}"))?];
        for option in options {
            owned.push(c_string(option)?);
        }
        let pointers: Vec<*const c_char> = owned.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is live, and `owned` keeps the `pointers.len()` strings to which the pointers refer.
        let code = unsafe {
            let compile = self.nvrtc.function::<Compile>("nvrtcCompileProgram")?;
            compile(self.raw, pointers.len() as c_int, pointers.as_ptr())
        };
        let log = self.bytes("nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?;
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim_end().to_owned();
        match code {
            SUCCESS => Ok(log),
            ERROR_COMPILATION => Err(Refusal::Program(log)),
            // NVRTC checks options before the program; the log has the reason in both cases.
            _ if !log.is_empty() => Err(Refusal::Program(log)),
            _ => Err(Refusal::Compiler(format!("nvrtcCompileProgram: {}", self.nvrtc.explain(code)))),
        }
    }

    fn lowered(&self, expression: &str) -> Result<String, Refusal> {
        let text = c_string(&overload(expression))?;
        let mut name = ptr::null();
        // SAFETY: the program is live; the returned name belongs to it and is copied while it is alive.
        unsafe {
            let lowered_name = self.nvrtc.function::<LoweredName>("nvrtcGetLoweredName")?;
            let code = lowered_name(self.raw, text.as_ptr(), &raw mut name);
            self.nvrtc.check(code, &format!("nvrtcGetLoweredName({expression})"))?;
            Ok(CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    }

    /// Reads a result whose size is queried first.
    fn bytes(&self, size_call: &str, bytes_call: &str) -> Result<Vec<u8>, Refusal> {
        let mut size = 0;
        // SAFETY: the program is live and the pointer is to a live integer.
        let code = unsafe { self.nvrtc.function::<Size>(size_call)?(self.raw, &raw mut size) };
        self.nvrtc.check(code, size_call)?;
        let mut bytes = vec![0_u8; size];
        if size > 0 {
            // SAFETY: the program is live and the vector has the requested size.
            let code = unsafe { self.nvrtc.function::<Bytes>(bytes_call)?(self.raw, bytes.as_mut_ptr().cast()) };
            self.nvrtc.check(code, bytes_call)?;
        }
        Ok(bytes)
    }
}

impl Drop for OpenProgram<'_> {
    fn drop(&mut self) {
        if let Ok(destroy) = self.nvrtc.function::<Destroy>("nvrtcDestroyProgram") {
            // SAFETY: the program is live and is not used afterwards. The result code can be ignored.
            let _ = unsafe { destroy(&raw mut self.raw) };
        }
    }
}

/// C++ expression for a kernel that is named with its parameter types: `add(const float *, int)` becomes `(void
/// (*)(const float *, int))add`, which selects one of several overloads.
pub(super) fn overload(kernel: &str) -> Cow<'_, str> {
    match kernel.trim_end().strip_suffix(')').and_then(|rest| rest.split_once('(')) {
        Some((name, types)) if !name.trim().is_empty() => Cow::Owned(format!("(void (*)({types})){}", name.trim())),
        _ => Cow::Borrowed(kernel),
    }
}

fn c_string(text: &str) -> Result<CString, Refusal> {
    CString::new(text)
        .map_err(|_| Refusal::Program("error: the source or an option contains a null character".to_owned()))
}

/// Architecture to compile for with a compiler that supports `supported`, and the resulting kind of code.
///
/// A GPU newer than the compiler gets PTX for the newest supported architecture that is not newer than the GPU. PTX for
/// the simulator is compiled for a real architecture, so that ptxas runs too and reports resources. A simulated device
/// older than the compiler gets the oldest supported architecture.
pub(super) fn architecture(
    target: Target,
    own: Option<&str>,
    supported: &[u32],
    compiler: &str,
) -> Result<(String, CodeKind), Refusal> {
    let (Target::Gpu((major, minor)) | Target::Ptx((major, minor))) = target;
    if let Some(own) = own {
        return Ok(match (target, own.strip_prefix("sm_")) {
            (Target::Gpu(_), Some(_)) => (own.to_owned(), CodeKind::Cubin),
            (Target::Gpu(_), None) | (Target::Ptx(_), Some(_)) => (own.to_owned(), CodeKind::Ptx),
            (Target::Ptx(_), None) => (own.replacen("compute_", "sm_", 1), CodeKind::Ptx),
        });
    }
    let wanted = major * 10 + minor;
    if let (Target::Ptx(_), Some(oldest)) = (target, supported.first()) {
        let best = supported.iter().rev().find(|&&known| known <= wanted).unwrap_or(oldest);
        return Ok((format!("sm_{best}"), CodeKind::Ptx));
    }
    if matches!(target, Target::Gpu(_)) && supported.contains(&wanted) {
        return Ok((format!("sm_{wanted}"), CodeKind::Cubin));
    }
    match supported.iter().rev().find(|&&known| known <= wanted) {
        Some(best) => Ok((format!("compute_{best}"), CodeKind::Ptx)),
        None => Err(Refusal::Compiler(format!(
            "{compiler} does not compile for compute capability {major}.{minor}; the oldest it supports is {}",
            supported.first().map_or_else(String::new, |oldest| format!("{}.{}", oldest / 10, oldest % 10))
        ))),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    const KNOWN: [u32; 5] = [75, 80, 90, 100, 120];

    fn decide(target: Target, own: Option<&str>) -> (String, CodeKind) {
        architecture(target, own, &KNOWN, "NVRTC 13.0").unwrap()
    }

    #[test]
    fn a_gpu_that_the_compiler_knows_gets_machine_code() {
        assert_eq!(decide(Target::Gpu((9, 0)), None), ("sm_90".to_owned(), CodeKind::Cubin));
        assert_eq!(decide(Target::Gpu((12, 0)), None), ("sm_120".to_owned(), CodeKind::Cubin));
    }

    #[test]
    fn a_gpu_newer_than_the_compiler_gets_ptx_of_the_newest_architecture_not_newer_than_it() {
        assert_eq!(decide(Target::Gpu((13, 0)), None), ("compute_120".to_owned(), CodeKind::Ptx));
        assert_eq!(decide(Target::Gpu((8, 9)), None), ("compute_80".to_owned(), CodeKind::Ptx));
    }

    #[test]
    fn a_gpu_older_than_the_compiler_is_refused_with_the_oldest_that_is_known() {
        let Err(Refusal::Compiler(text)) = architecture(Target::Gpu((7, 0)), None, &KNOWN, "NVRTC 13.0") else {
            panic!("must be refused")
        };
        assert_eq!(text, "NVRTC 13.0 does not compile for compute capability 7.0; the oldest it supports is 7.5");
    }

    #[test]
    fn the_simulator_gets_ptx_of_a_real_architecture_so_that_registers_are_known() {
        assert_eq!(decide(Target::Ptx((9, 0)), None), ("sm_90".to_owned(), CodeKind::Ptx));
        assert_eq!(decide(Target::Ptx((8, 9)), None), ("sm_80".to_owned(), CodeKind::Ptx));
        assert_eq!(decide(Target::Ptx((3, 7)), None), ("sm_75".to_owned(), CodeKind::Ptx));
    }

    #[test]
    fn the_manifests_own_architecture_wins() {
        assert_eq!(decide(Target::Gpu((9, 0)), Some("sm_90a")), ("sm_90a".to_owned(), CodeKind::Cubin));
        assert_eq!(decide(Target::Gpu((9, 0)), Some("compute_80")), ("compute_80".to_owned(), CodeKind::Ptx));
        assert_eq!(decide(Target::Ptx((9, 0)), Some("sm_90a")), ("sm_90a".to_owned(), CodeKind::Ptx));
        assert_eq!(decide(Target::Ptx((9, 0)), Some("compute_80")), ("sm_80".to_owned(), CodeKind::Ptx));
    }

    #[test]
    fn a_library_that_does_not_load_is_reported_with_the_loaders_message() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvrtc-builtins.so");
        std::fs::write(&library, "this is no shared object").unwrap();
        let Err(Refusal::Compiler(text)) = Nvrtc::open(&library, &library).map(drop) else { panic!("must be refused") };
        assert!(text.starts_with(&format!("cannot open {}: ", library.display())), "{text}");
        // glibc's message, which names the fault. Without it, the error only says that opening failed.
        assert!(text.contains("file too short") || text.contains("invalid ELF header"), "{text}");
    }
}
