//! CUPTI's activity records: when the hardware started and finished each kernel, copy and memset.
//!
//! They are the reference clock for event times, in a separate process, since tracing slows what it traces. The library
//! is opened at run time without its headers. The few entry points and the first fields of the records are declared
//! here. `cupti_activity.h` has kept those since CUDA 7 (`CUpti_ActivityKernel3` to `…10`, `CUpti_ActivityMemcpy` to
//! `…6`, `CUpti_ActivityMemset` to `…4`). A batch with a host function, which may queue anything, has no reference
//! times.

use std::alloc::{Layout, alloc, dealloc};
use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::driver::sys;
use libloading::Library;

use crate::DeviceError;

/// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`.
const CONCURRENT_KERNEL: c_int = 10;
/// `CUPTI_ACTIVITY_KIND_KERNEL`.
const KERNEL: c_int = 3;
/// `CUPTI_ACTIVITY_KIND_MEMCPY`: every copy except those between devices.
const MEMCPY: c_int = 1;
/// `CUPTI_ACTIVITY_KIND_MEMSET`.
const MEMSET: c_int = 2;
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`.
const FLUSH_FORCED: u32 = 1;

/// Interface versions whose records begin as [`KernelHead`] and [`CopyHead`]: CUDA 11.8 to 12.9, then 13.x.
const KNOWN_VERSIONS: [std::ops::RangeInclusive<u32>; 2] = [18..=28, 130_000..=139_999];

/// A buffer of records, aligned to eight bytes as CUPTI requires.
const BUFFER: Layout = match Layout::from_size_align(1 << 20, 8) {
    Ok(layout) => layout,
    Err(_) => Layout::new::<u64>(),
};

type GetVersion = unsafe extern "C" fn(*mut u32) -> c_int;
type ResultString = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;
type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(sys::CUcontext, u32, *mut u8, usize, usize);
type RegisterCallbacks = unsafe extern "C" fn(Requested, Completed) -> c_int;
type Enable = unsafe extern "C" fn(c_int) -> c_int;
type FlushAll = unsafe extern "C" fn(u32) -> c_int;
type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut c_void) -> c_int;

/// First fields of a kernel record.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelHead {
    kind: c_int,
    cache_config: u8,
    shared_memory_config: u8,
    registers: u16,
    cache_requested: c_int,
    cache_executed: c_int,
    /// Nanoseconds; both are 0 if the times are unknown.
    start: u64,
    end: u64,
    completed: u64,
    /// Device, context, stream, grid, block, shared and local memory, correlation: not read.
    configuration: [u32; 14],
    grid_id: i64,
    name: *const c_char,
}

/// First fields of a copy or memset record.
#[repr(C)]
#[derive(Clone, Copy)]
struct CopyHead {
    kind: c_int,
    /// A copy's kind, both memory kinds and flags; a memset's value.
    what: u32,
    bytes: u64,
    /// Nanoseconds; both are 0 if the times are unknown.
    start: u64,
    end: u64,
}

// Offsets printed by a C++ program with CUDA 13.0's header, for every version of the record.
const _: () = {
    assert!(std::mem::offset_of!(KernelHead, start) == 16);
    assert!(std::mem::offset_of!(KernelHead, end) == 24);
    assert!(std::mem::offset_of!(KernelHead, name) == 104);
    assert!(std::mem::offset_of!(CopyHead, bytes) == 8);
    assert!(std::mem::offset_of!(CopyHead, start) == 16);
    assert!(std::mem::offset_of!(CopyHead, end) == 24);
};

/// Interval in which one operation ran.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    start: u64,
    end: u64,
    /// Kernel name; empty for copies and memsets.
    name: String,
}

/// Expected records of a timed batch, in order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub samples: usize,
    /// Runs per sample.
    pub runs: usize,
    /// How many of the first runs make up the sample; the others time the launches of a sequence one by one.
    pub counted: usize,
    /// Operations that prepare a run.
    pub prepare: usize,
    /// Operations of the body.
    pub body: usize,
}

/// Shared with the callbacks, which get no user pointer.
static NEXT_RECORD: OnceLock<NextRecord> = OnceLock::new();
static SPANS: Mutex<Vec<Span>> = Mutex::new(Vec::new());

/// Tracing, enabled until the process ends.
#[derive(Debug)]
pub(super) struct Tracer {
    flush_all: FlushAll,
    /// Name in messages, e.g. `CUPTI 13.0`.
    pub name: String,
}

impl Tracer {
    /// Finds CUPTI and enables its records. No context may exist yet. The error is one sentence.
    pub fn start(driver: (u32, u32)) -> Result<Self, String> {
        // The library stays open: its threads may call back until the process ends.
        let library: &'static Library = Box::leak(Box::new(open(driver)?));
        let version = version(library)?;
        if !KNOWN_VERSIONS.iter().any(|known| known.contains(&version)) {
            return Err(format!("CUPTI's interface has version {version}, which is not supported"));
        }
        let next: NextRecord = entry(library, c"cuptiActivityGetNextRecord")?;
        if NEXT_RECORD.set(next).is_err() {
            return Err("kernels are already being traced in this process".to_owned());
        }
        let register: RegisterCallbacks = entry(library, c"cuptiActivityRegisterCallbacks")?;
        let enable: Enable = entry(library, c"cuptiActivityEnable")?;
        let flush_all: FlushAll = entry(library, c"cuptiActivityFlushAll")?;
        // SAFETY: both callbacks have the signatures that CUPTI documents, and live as long as the process.
        check(library, "cuptiActivityRegisterCallbacks", unsafe { register(requested, completed) })?;
        for kind in [CONCURRENT_KERNEL, MEMCPY, MEMSET] {
            // SAFETY: the callbacks are registered; CUPTI knows the kind.
            check(library, "cuptiActivityEnable", unsafe { enable(kind) })?;
        }
        Ok(Self { flush_all, name: release(version) })
    }

    /// Drops all records so far.
    pub fn clear(&self) -> Result<(), DeviceError> {
        self.take().map(drop)
    }

    /// Nanoseconds of each sample, in order: from the start of a body's first operation to the end of its last,
    /// averaged over the runs. Kernels named `ignored` are left out. The device must be idle. Fails unless the records
    /// are exactly the expected ones, each with its times.
    pub fn bodies(&self, expected: Expected, ignored: &str) -> Result<Vec<f64>, DeviceError> {
        bodies(self.take()?, expected, ignored)
            .map_err(|message| DeviceError::Driver { call: "cuptiActivityFlushAll", message })
    }

    fn take(&self) -> Result<Vec<Span>, DeviceError> {
        // SAFETY: the callbacks are registered. They run before this returns, and the lock is not held meanwhile.
        let code = unsafe { (self.flush_all)(FLUSH_FORCED) };
        if code != 0 {
            return Err(DeviceError::Driver { call: "cuptiActivityFlushAll", message: format!("error {code}") });
        }
        Ok(std::mem::take(&mut *SPANS.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn bodies(mut spans: Vec<Span>, expected: Expected, ignored: &str) -> Result<Vec<f64>, String> {
    let Expected { samples, runs, counted, prepare, body } = expected;
    let of_run = prepare + body;
    spans.retain(|span| span.name != ignored && span.end > span.start);
    spans.sort_by_key(|span| span.start);
    if spans.len() != samples * runs * of_run {
        let ran = samples * runs * of_run;
        return Err(format!("{ran} operations ran, but CUPTI has valid records for {}", spans.len()));
    }
    let whole = |run: &[Span]| {
        let body = &run[prepare..];
        let end = body.iter().map(|span| span.end).max().unwrap_or(0);
        end.saturating_sub(body.first().map_or(end, |span| span.start)) as f64
    };
    let of_sample = |sample: &[Span]| {
        let runs: Vec<f64> = sample.chunks(of_run).take(counted).map(whole).collect();
        runs.iter().sum::<f64>() / runs.len().max(1) as f64
    };
    Ok(spans.chunks((runs * of_run).max(1)).map(of_sample).collect())
}

/// Callback that provides CUPTI with an empty buffer.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // SAFETY: the layout has a size above zero.
    let memory = unsafe { alloc(BUFFER) };
    // SAFETY: CUPTI passes three places to write to. Without memory the size is 0, and records are dropped.
    unsafe {
        buffer.write(memory);
        size.write(if memory.is_null() { 0 } else { BUFFER.size() });
        most_records.write(0);
    }
}

/// Callback that takes a buffer with `valid` bytes of records.
unsafe extern "C" fn completed(_: sys::CUcontext, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    if buffer.is_null() {
        return;
    }
    if let Some(next) = NEXT_RECORD.get() {
        let mut record: *mut c_void = ptr::null_mut();
        let mut spans = SPANS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the buffer holds `valid` bytes of records, and `record` is null or the previous one.
        while unsafe { next(buffer, valid, &raw mut record) } == 0 && !record.is_null() {
            // SAFETY: every record begins with its kind, and records are aligned within an aligned buffer.
            let kind = unsafe { record.cast::<c_int>().read() };
            if kind == CONCURRENT_KERNEL || kind == KERNEL {
                // SAFETY: in every known version, a record of these kinds begins like `KernelHead`.
                let head = unsafe { record.cast::<KernelHead>().read() };
                spans.push(span(&head));
            } else if kind == MEMCPY || kind == MEMSET {
                // SAFETY: in every known version, a record of these kinds begins like `CopyHead`.
                let CopyHead { start, end, .. } = unsafe { record.cast::<CopyHead>().read() };
                spans.push(Span { start, end, name: String::new() });
            }
        }
    }
    // SAFETY: allocated in `requested` with the same layout, and freed once.
    unsafe { dealloc(buffer, BUFFER) };
}

fn span(head: &KernelHead) -> Span {
    let name = if head.name.is_null() {
        String::new()
    } else {
        // SAFETY: CUPTI's kernel name is NUL-terminated and lives as long as the process.
        unsafe { CStr::from_ptr(head.name) }.to_string_lossy().into_owned()
    };
    Span { start: head.start, end: head.end, name }
}

/// Opens the library for the driver's major version, or for the previous one.
fn open((major, _): (u32, u32)) -> Result<Library, String> {
    let roots = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let roots: Vec<PathBuf> = roots.chain([PathBuf::from("/usr/local/cuda")]).collect();
    let places = places(&roots, major);
    for place in &places {
        // The loader searches for a bare name; other paths must exist.
        if place.components().count() > 1 && !place.is_file() {
            continue;
        }
        // SAFETY: CUPTI's initialisers have no precondition.
        if let Ok(library) = unsafe { Library::new(place) } {
            return Ok(library);
        }
    }
    Err(format!(
        "CUPTI (libcupti.so.{major}) is neither below {} nor in the loader's search path; it comes with the CUDA \
         toolkit",
        roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(" nor below ")
    ))
}

/// Candidate paths of CUPTI: in the toolkits' folders, then the bare name.
fn places(roots: &[PathBuf], major: u32) -> Vec<PathBuf> {
    let names: Vec<String> = [major, major.saturating_sub(1)].iter().map(|m| format!("libcupti.so.{m}")).collect();
    let folders = ["extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
    let mut places = Vec::new();
    for name in &names {
        places.extend(roots.iter().flat_map(|root| folders.iter().map(move |f| root.join(f))).map(|f| f.join(name)));
        places.push(Path::new(name).to_owned());
    }
    places
}

fn version(library: &Library) -> Result<u32, String> {
    let get: GetVersion = entry(library, c"cuptiGetVersion")?;
    let mut version = 0;
    // SAFETY: `version` outlives the call.
    check(library, "cuptiGetVersion", unsafe { get(&raw mut version) })?;
    Ok(version)
}

/// Toolkit version, which the number encodes since CUDA 13.0.
fn release(version: u32) -> String {
    match version {
        130_000.. => format!("CUPTI {}.{}", version / 10_000, version / 100 % 100),
        old => format!("CUPTI, interface {old}"),
    }
}

/// Looks up an entry point; `F` must be its C signature.
fn entry<F: Copy>(library: &Library, name: &CStr) -> Result<F, String> {
    // SAFETY: the library stays open until the process ends; each caller names the signature that NVIDIA documents.
    let symbol = unsafe { library.get::<F>(name.to_bytes_with_nul()) };
    symbol.map(|symbol| *symbol).map_err(|error| format!("CUPTI lacks an entry point: {error}"))
}

fn check(library: &Library, call: &str, code: c_int) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    let message = entry::<ResultString>(library, c"cuptiGetResultString").ok().and_then(|text| {
        let mut words: *const c_char = ptr::null();
        // SAFETY: `words` outlives the call; CUPTI returns a NUL-terminated constant.
        let known = unsafe { text(code, &raw mut words) } == 0 && !words.is_null();
        // SAFETY: `words` is a NUL-terminated constant of CUPTI; `known` has checked that it is not null.
        known.then(|| unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned())
    });
    Err(format!("{call} failed with error {code} ({})", message.unwrap_or_else(|| "no message".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toolkits_library_comes_before_the_loaders_and_the_drivers_version_before_an_older_one() {
        let places = places(&[PathBuf::from("/opt/cuda")], 13);
        assert_eq!(places[0], Path::new("/opt/cuda/extras/CUPTI/lib64/libcupti.so.13"));
        let bare: Vec<&PathBuf> = places.iter().filter(|place| place.components().count() == 1).collect();
        assert_eq!(bare, [Path::new("libcupti.so.13"), Path::new("libcupti.so.12")]);
    }

    fn span_of(name: &str, start: u64, end: u64) -> Span {
        Span { start, end, name: name.to_owned() }
    }

    fn expected(samples: usize, body: usize) -> Expected {
        Expected { samples, runs: 1, counted: 1, prepare: 0, body }
    }

    #[test]
    fn a_body_lasts_from_the_beginning_of_its_first_operation_to_the_end_of_its_last() {
        let spans = vec![
            span_of("b", 300, 350),
            span_of("read_all", 0, 90),
            span_of("", 280, 290),
            span_of("", 400, 430),
            span_of("b", 410, 570),
        ];
        assert_eq!(bodies(spans, expected(2, 2), "read_all"), Ok(vec![70.0, 170.0]));
    }

    #[test]
    fn what_prepares_a_run_and_what_times_its_launches_one_by_one_is_no_part_of_it() {
        // A fill, then a body of two; once as a whole, once launch by launch; two samples.
        let run = |at: u64, long: u64| {
            [span_of("", at, at + 5), span_of("a", at + 10, at + 20), span_of("a", at + 21, at + 21 + long)]
        };
        let spans = [run(0, 30), run(100, 77), run(200, 32), run(300, 78)].concat();
        let two = Expected { samples: 2, runs: 2, counted: 1, prepare: 1, body: 2 };
        assert_eq!(bodies(spans.clone(), two, "read_all"), Ok(vec![41.0, 43.0]));
        // The spans may also be one sample of four runs.
        let four = Expected { samples: 1, runs: 4, counted: 4, prepare: 1, body: 2 };
        assert_eq!(bodies(spans, four, "read_all"), Ok(vec![(41.0 + 88.0 + 43.0 + 89.0) / 4.0]));
    }

    #[test]
    fn a_record_that_is_missing_or_has_no_time_is_told() {
        let spans = vec![span_of("a", 100, 120), span_of("a", 0, 0)];
        let message = "2 operations ran, but CUPTI has valid records for 1".to_owned();
        assert_eq!(bodies(spans, expected(2, 1), "read_all"), Err(message));
    }

    #[test]
    fn a_version_names_the_toolkit_since_thirteen() {
        assert_eq!(release(130_001), "CUPTI 13.0");
        assert_eq!(release(130_200), "CUPTI 13.2");
        assert_eq!(release(28), "CUPTI, interface 28");
        assert!(!KNOWN_VERSIONS.iter().any(|known| known.contains(&140_000)));
    }

    #[test]
    fn a_record_is_read_at_the_offsets_of_the_header() {
        // A CUPTI record: 216 bytes, with the field offsets printed by a C++ program.
        let name = c"spin";
        let mut bytes = [0_u64; 27];
        bytes[0] = KERNEL as u64;
        (bytes[2], bytes[3]) = (1_000, 3_500);
        bytes[13] = name.as_ptr().addr() as u64;
        // SAFETY: the array is as long as a record and aligned.
        let mut head = unsafe { bytes.as_ptr().cast::<KernelHead>().read() };
        head.name = name.as_ptr();
        assert_eq!((head.kind, bytes[13] as usize), (KERNEL, name.as_ptr().addr()));
        assert_eq!(span(&head), Span { start: 1_000, end: 3_500, name: "spin".to_owned() });
    }
}
