//! Links code from several sources, and links the toolkit's device runtime to code that launches kernels. The driver's
//! linker accepts NVRTC's output, so the toolkit's libraries need not match the driver.
//!
//! The linked cubin is cached next to the code, so each pair of code and library is linked once per driver and
//! architecture. A damaged file is replaced. If the folder is not writable, code is linked each time.

use std::ffi::{CStr, CString, c_uint, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;

use cudarc::driver::sys;
use sha2::{Digest as _, Sha256};

use super::driver::check;
use crate::DeviceError;
use runner_files::sealed;
use runner_types::{CodeKind, Compiled, hex};

/// Links relocatable code with a library. `maker` names driver and architecture, on which the result also depends. A
/// context must be current.
pub(super) fn image(code: &Compiled, library: &Path, maker: &str) -> Result<Vec<u8>, DeviceError> {
    let mut inputs = inputs(code)?;
    let bytes: Vec<&[u8]> = inputs.iter().map(|input| input.bytes.as_slice()).collect();
    let place = place(&code.code, &bytes, &read(library)?, maker);
    if let Some(kept) = sealed::read(&place) {
        return Ok(kept);
    }
    if code.kind == CodeKind::Ptx {
        for input in &mut inputs {
            input.bytes.push(0);
        }
    }
    let linked = Linker::new()?.link(code.kind, &mut inputs, library)?;
    // Without the cache, the code is linked again.
    let _ = sealed::write(&place, &linked);
    Ok(linked)
}

/// Code to link, with its name in messages.
struct Input {
    name: CString,
    bytes: Vec<u8>,
}

fn inputs(code: &Compiled) -> Result<Vec<Input>, DeviceError> {
    if code.parts.is_empty() {
        return Ok(vec![Input { name: c_path(&code.code)?, bytes: read(&code.code)? }]);
    }
    let parts = code.parts.iter();
    parts.map(|part| Ok(Input { name: c_path(Path::new(&part.source))?, bytes: read(&part.code)? })).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, DeviceError> {
    fs::read(path).map_err(|error| DeviceError::Driver {
        call: "cuLinkAddData",
        message: format!("cannot read {}: {error}", path.display()),
    })
}

/// Path of the linked code: next to its first part, named by the hash of everything that it depends on.
fn place(code: &Path, bytes: &[&[u8]], library: &[u8], maker: &str) -> PathBuf {
    let mut hash = Sha256::new();
    for part in bytes.iter().copied().chain([library, maker.as_bytes()]) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    code.with_file_name(format!("{}.linked", hex(&hash.finalize())))
}

/// The driver's linker, with its log.
struct Linker {
    state: sys::CUlinkState,
    /// Boxed, since the driver keeps pointers to the arrays and to the log.
    _options: Box<[sys::CUjit_option; 2]>,
    _values: Box<[*mut c_void; 2]>,
    log: Box<[u8]>,
}

impl Linker {
    /// Bytes of the log.
    const LOG: usize = 16 * 1024;

    fn new() -> Result<Self, DeviceError> {
        let mut log = vec![0_u8; Self::LOG].into_boxed_slice();
        let mut options = Box::new([
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ]);
        // The driver takes sizes as pointers whose address is the number.
        let mut values: Box<[*mut c_void; 2]> =
            Box::new([log.as_mut_ptr().cast(), ptr::without_provenance_mut(Self::LOG)]);
        let mut state: sys::CUlinkState = ptr::null_mut();
        // SAFETY: options and values are arrays of the given length; they and the log live as long as the linker, as
        // the driver requires; a context is current, whose device is the target.
        let code = unsafe {
            sys::cuLinkCreate_v2(options.len() as c_uint, options.as_mut_ptr(), values.as_mut_ptr(), &raw mut state)
        };
        check("cuLinkCreate", code)?;
        Ok(Self { state, _options: options, _values: values, log })
    }

    fn link(self, kind: CodeKind, inputs: &mut [Input], library: &Path) -> Result<Vec<u8>, DeviceError> {
        let kind = match kind {
            CodeKind::Cubin => sys::CUjitInputType::CU_JIT_INPUT_CUBIN,
            CodeKind::Ptx => sys::CUjitInputType::CU_JIT_INPUT_PTX,
            CodeKind::Plugin => {
                let message = "a host library cannot be linked with other code".to_owned();
                return Err(DeviceError::Driver { call: "cuLinkAddData", message });
            }
        };
        let path = c_path(library)?;
        for Input { name, bytes } in inputs {
            // SAFETY: the state is alive; the data is as long as stated, PTX including its NUL; the name is
            // NUL-terminated; there are no options, for which null is allowed.
            let added = unsafe {
                sys::cuLinkAddData_v2(
                    self.state,
                    kind,
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    name.as_ptr(),
                    0,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
            self.judge("cuLinkAddData", added)?;
        }
        let kind = sys::CUjitInputType::CU_JIT_INPUT_LIBRARY;
        // SAFETY: the state is alive; the path is NUL-terminated; there are no options, for which null is allowed.
        let added =
            unsafe { sys::cuLinkAddFile_v2(self.state, kind, path.as_ptr(), 0, ptr::null_mut(), ptr::null_mut()) };
        self.judge("cuLinkAddFile", added)?;
        let (mut cubin, mut size): (*mut c_void, usize) = (ptr::null_mut(), 0);
        // SAFETY: the state is alive, and both results outlive the call.
        let done = unsafe { sys::cuLinkComplete(self.state, &raw mut cubin, &raw mut size) };
        self.judge("cuLinkComplete", done)?;
        // SAFETY: the driver returns this many bytes at this address, which live until the state is destroyed; they are
        // copied before that.
        Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
    }

    /// Adds the linker's log to a failure, unless the context is lost.
    fn judge(&self, call: &'static str, code: sys::CUresult) -> Result<(), DeviceError> {
        check(call, code).map_err(|error| match error {
            DeviceError::ContextLost(_) => error,
            other => not_linked(&other, &self.log),
        })
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: created in `new`, destroyed once.
        let _ = unsafe { sys::cuLinkDestroy(self.state) };
    }
}

fn not_linked(error: &DeviceError, log: &[u8]) -> DeviceError {
    let log = CStr::from_bytes_until_nul(log).map(|text| text.to_string_lossy().trim().to_owned()).unwrap_or_default();
    let summary = match log.lines().find(|line| line.contains("error")) {
        Some(line) => {
            format!("the device linker failed: {}", line.trim_start_matches("error").trim_start_matches([' ', ':']))
        }
        None => format!("the device linker failed: {error}"),
    };
    DeviceError::NotLinked { summary, log: if log.is_empty() { error.to_string() } else { log } }
}

fn c_path(path: &Path) -> Result<CString, DeviceError> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| DeviceError::Driver {
        call: "cuLinkAddFile",
        message: format!("the path {} contains a NUL", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_found_again_by_all_that_it_depends_on() {
        let code = Path::new("/cache/code/v1/a.cubin");
        let first = place(code, &[b"code"], b"library", "driver 1");
        assert_eq!(first.parent(), code.parent());
        assert_eq!(first, place(code, &[b"code"], b"library", "driver 1"));
        for other in [
            place(code, &[b"codes"], b"library", "driver 1"),
            place(code, &[b"code"], b"libraries", "driver 1"),
            place(code, &[b"code"], b"library", "driver 2"),
            place(code, &[b"codel"], b"ibrary", "driver 1"),
            place(code, &[b"code", b"code"], b"library", "driver 1"),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn a_refusal_says_the_linkers_first_error_and_keeps_its_log() {
        let error = DeviceError::Driver { call: "cuLinkComplete", message: "CUDA_ERROR_UNKNOWN".to_owned() };
        let log = b"info : something\nerror   : Undefined reference to 'f' in 'a.cubin'\n\0rest";
        assert_eq!(
            not_linked(&error, log),
            DeviceError::NotLinked {
                summary: "the device linker failed: Undefined reference to 'f' in 'a.cubin'".to_owned(),
                log: "info : something\nerror   : Undefined reference to 'f' in 'a.cubin'".to_owned(),
            }
        );
        assert_eq!(
            not_linked(&error, &[0; 4]).to_string(),
            "the device linker failed: cuLinkComplete: CUDA_ERROR_UNKNOWN"
        );
    }
}
