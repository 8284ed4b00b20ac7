//! Host functions of plug-ins: shared libraries built by nvcc, loaded into this process.
//!
//! A function queues work in a given stream. The CUDA runtime in its library uses the current context, which is the
//! device's primary one. A function that crashes ends the worker, and only the function's own row is lost.
//! `docs/reference/host-functions.md` is the contract for authors of functions.

use std::cell::Cell;
use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use cudarc::driver::sys;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use super::driver;
use super::handles::Stream;
use super::kernel::Arguments;
use crate::{DeviceError, ModuleId};
use runner_types::Note;

/// The case ends after this many consecutive calls that leave another stream busy.
const MOST_LEFT: u32 = 3;

/// `int NAME(cudaStream_t stream, void *const *args, void *state)`.
type Call = unsafe extern "C" fn(sys::CUstream, *const *mut c_void, *mut c_void) -> c_int;
/// `int NAME_prepare(cudaStream_t stream, void *const *args, void **state)`.
type Prepare = unsafe extern "C" fn(sys::CUstream, *const *mut c_void, *mut *mut c_void) -> c_int;
/// `void NAME_release(void *state)`.
type Release = unsafe extern "C" fn(*mut c_void);
/// `const char *NAME_error(int code)`.
type Describe = unsafe extern "C" fn(c_int) -> *const c_char;

/// A loaded library. It is never unloaded, since the runtime in it has registered its kernels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plugin(&'static Library);

impl Plugin {
    pub fn load(path: &Path) -> Result<Self, DeviceError> {
        // SAFETY: nvcc built the library from a source that the manifest names, so running its initialisers is
        // intended. A missing symbol is an error here, not when it is called.
        let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let library = opened.map_err(|error| refused("dlopen", reason(&error)))?;
        Ok(Self(Box::leak(Box::new(library))))
    }

    /// Looks up a function; `F` must be its C signature.
    fn find<F: Copy>(self, name: &str) -> Result<F, DeviceError> {
        // SAFETY: the library is never closed. Every caller names the signature that the contract specifies for the
        // name.
        let symbol = unsafe { self.0.get::<F>(format!("{name}\0").as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|error| refused("dlsym", reason(&error)))
    }
}

/// A function that is prepared for its arguments.
#[derive(Debug)]
pub(super) struct HostFunction {
    pub module: ModuleId,
    name: String,
    call: Call,
    describe: Option<Describe>,
    /// State created by `NAME_prepare`, and the function that releases it.
    state: *mut c_void,
    release: Option<Release>,
    /// Whether it has run: only then has the runtime loaded its kernels.
    ran: Cell<bool>,
    /// Whether it waits for the work that it queues, so that it must not be gated.
    waits: Cell<bool>,
    /// Whether `waits` has yet to be reported.
    news: Cell<bool>,
    /// Number of consecutive calls after which another stream was busy.
    left_work: Cell<u32>,
}

impl HostFunction {
    /// Finds a function and calls its `NAME_prepare`, if any.
    pub fn prepare(
        (module, plugin): (ModuleId, Plugin),
        name: &str,
        stream: &Stream,
        arguments: &Arguments,
    ) -> Result<Self, DeviceError> {
        let mut function = Self {
            module,
            name: name.to_owned(),
            call: plugin.find(name)?,
            describe: plugin.find(&format!("{name}_error")).ok(),
            state: ptr::null_mut(),
            release: None,
            ran: Cell::new(false),
            waits: Cell::new(false),
            news: Cell::new(false),
            left_work: Cell::new(0),
        };
        let prepare = format!("{name}_prepare");
        if let Ok(make_ready) = plugin.find::<Prepare>(&prepare) {
            // SAFETY: the signature is the contract's; the stream is alive, the pointers refer to the arguments'
            // values, and `state` outlives the call.
            let code = unsafe { make_ready(stream.raw(), arguments.pointers(), &raw mut function.state) };
            stream.settle(function.judge(&prepare, code))?;
            function.release = plugin.find(&format!("{name}_release")).ok();
        }
        Ok(function)
    }

    /// Calls the function, which queues its work.
    pub fn call(&self, stream: &Stream, arguments: &Arguments) -> Result<(), DeviceError> {
        // SAFETY: the signature is the contract's; the stream and the state are alive, and the pointers refer to values
        // that are as large as the manifest states.
        let code = unsafe { (self.call)(stream.raw(), arguments.pointers(), self.state) };
        self.judge(&self.name, code)
    }

    /// Whether its work may be gated.
    pub fn is_warm(&self) -> bool {
        self.ran.get() && !self.waits.get()
    }

    pub fn note_ran(&self) {
        self.ran.set(true);
    }

    /// Marks the function as one that waits for the work that it queues.
    pub fn note_waits(&self) {
        if !self.waits.replace(true) {
            self.news.set(true);
        }
    }

    /// Records whether another stream was busy after a call. A single occurrence may be chance.
    pub fn note_busy(&self, busy: bool) -> Result<(), DeviceError> {
        self.left_work.set(if busy { self.left_work.get() + 1 } else { 0 });
        if self.left_work.get() < MOST_LEFT {
            return Ok(());
        }
        Err(self.works_elsewhere())
    }

    /// Error for a function that leaves work in other streams.
    pub fn works_elsewhere(&self) -> DeviceError {
        let message =
            format!("`{}` leaves work in a stream other than the one it was given, so it cannot be timed", self.name);
        refused("host function", message)
    }

    /// A finding that has not been reported yet.
    pub fn news(&self) -> Option<Note> {
        self.news.replace(false).then(|| Note::NotGated { function: self.name.clone() })
    }

    fn judge(&self, name: &str, code: c_int) -> Result<(), DeviceError> {
        if code == 0 {
            return Ok(());
        }
        let own = self.describe.and_then(|describe| {
            // SAFETY: by the contract, the string is static or null.
            let text = unsafe { describe(code) };
            // SAFETY: not null, and NUL-terminated by the contract.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        });
        let text = own.or_else(|| driver::text_of(code)).map(|text| format!(" ({text})")).unwrap_or_default();
        Err(refused("host function", format!("`{name}` returned {code}{text}")))
    }
}

impl Drop for HostFunction {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the state comes from `NAME_prepare` and is released once; no queued work is still running.
            unsafe { release(self.state) };
        }
    }
}

/// The loader's message, which is the source of the error.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn refused(call: &'static str, message: String) -> DeviceError {
    DeviceError::Driver { call, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_cannot_be_loaded_is_named() {
        let refusal = Plugin::load(Path::new("/nowhere/plugin.so")).map(drop).map_err(|error| error.to_string());
        let is_named =
            refusal.as_ref().is_err_and(|text| text.starts_with("dlopen: ") && text.contains("/nowhere/plugin.so"));
        assert!(is_named, "{refusal:?}");
    }
}
