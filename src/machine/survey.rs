//! One survey of a device: its kernels loaded, everything measured, everything freed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::{ceilings, clock, spread};
use crate::atomic::{self, WriteError};
use crate::backend::{
    Batch, BufferId, Device, DeviceError, KernelId, Launch, LaunchArg, ModuleId, Prepare, Series, Step,
};
use crate::model::{CompileUnit, Compiled, Dim3, ElementType, Regime, ScalarValue, Survey, SurveyRequest, sha256_hex};
use crate::stats;

/// The kernels, as CUDA C++.
const SOURCE: &str = include_str!("kernels.cu");

/// Writes the kernels' source below `folder`, under a name that changes with its text.
pub fn write_source(folder: &Path) -> Result<PathBuf, WriteError> {
    let path = folder.join(format!("survey-{}.cu", &sha256_hex(SOURCE.as_bytes())[..16]));
    if std::fs::read_to_string(&path).is_ok_and(|text| text == SOURCE) {
        return Ok(path);
    }
    atomic::write(&path, SOURCE.as_bytes())?;
    Ok(path)
}

/// What is to be compiled, with its source at `source`.
pub fn unit(source: PathBuf) -> CompileUnit {
    let kernels: BTreeSet<&str> = ceilings::kernels().chain(clock::kernels()).chain(spread::kernels()).collect();
    CompileUnit::of(source, kernels)
}

/// Measures the device. Leaves nothing on it, whatever the end.
///
/// # Errors
///
/// The device's own, and [`DeviceError::Driver`] where its clock gives no sound time.
pub fn survey(device: &mut dyn Device, request: &SurveyRequest) -> Result<Survey, DeviceError> {
    let module = device.load(&request.code)?;
    let mut bench = Bench { device, code: &request.code, module, buffers: Vec::new() };
    let measured = bench.measure(request);
    let freed = bench.close();
    let survey = measured?;
    freed.map(|()| survey)
}

/// A device with the survey's kernels, and the memory that it took.
pub(super) struct Bench<'a> {
    pub device: &'a mut dyn Device,
    code: &'a Compiled,
    module: ModuleId,
    buffers: Vec<BufferId>,
}

/// A launch to be timed.
pub(super) struct Shape<'a> {
    pub kernel: &'a str,
    pub blocks: u64,
    pub threads: u32,
    pub args: Vec<LaunchArg>,
}

/// What was read of a launch, nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Samples {
    /// By the device's own clock.
    pub read: Vec<f64>,
    /// By the reference clock; empty where there is none.
    pub reference: Vec<f64>,
}

impl Samples {
    /// The standard error of the trimmed mean of what was read.
    pub fn error(&self) -> f64 {
        stats::trimmed_error(&self.read).unwrap_or_default()
    }
}

impl Bench<'_> {
    fn measure(&mut self, request: &SurveyRequest) -> Result<Survey, DeviceError> {
        let empty = clock::empty_interval(self)?;
        let points = clock::climb(self)?;
        let (short, long) = if request.spread { spread::run(self)? } else { Default::default() };
        let ceilings = if request.ceilings { Some(ceilings::measure(self)?) } else { None };
        Ok(Survey { ceilings, points, short, long, empty, reference_clock: self.device.reference_clock() })
    }

    /// A buffer of zeros.
    pub fn zeros(&mut self, bytes: u64) -> Result<BufferId, DeviceError> {
        let buffer = self.device.alloc(bytes as usize, 0)?;
        self.buffers.push(buffer);
        let prepare = vec![Prepare::Fill { buffer, byte: 0 }];
        let (steps, regime, series) = (Vec::new(), Regime::Cold, Series::default());
        let fill = Batch { prepare, steps, regime, series, repeat: 1, timed: false };
        self.device.run(&fill)?;
        Ok(buffer)
    }

    /// Times of a launch, nanoseconds: one a repetition, after one that does not count.
    pub fn times(&mut self, shape: &Shape<'_>, repeat: u32) -> Result<Vec<f64>, DeviceError> {
        let launch = self.launch(shape)?;
        self.device.run(&batch(&launch, 1, false))?;
        self.sample(&launch, shape, repeat).map(|sample| sample.read)
    }

    /// Samples of several launches, which take turns: a round has one of each, in an order of its own. Where in the
    /// driver's queue a launch comes to lie shows in its time, so launches that follow each other regularly would each
    /// have an error of their own, and another one in another process.
    pub fn in_rounds(&mut self, shapes: &[Shape<'_>], rounds: u32) -> Result<Vec<Samples>, DeviceError> {
        let launches = shapes.iter().map(|shape| self.launch(shape)).collect::<Result<Vec<_>, _>>()?;
        for launch in &launches {
            self.device.run(&batch(launch, 1, false))?;
        }
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut order: Vec<usize> = (0..shapes.len()).collect();
        let mut all = vec![Samples::default(); shapes.len()];
        for _ in 0..rounds {
            for last in (1..order.len()).rev() {
                order.swap(last, random.next_u32() as usize % (last + 1));
            }
            for &i in &order {
                let sample = self.sample(&launches[i], &shapes[i], 1)?;
                all[i].read.extend(sample.read);
                all[i].reference.extend(sample.reference);
            }
        }
        Ok(all)
    }

    fn sample(&mut self, launch: &Launch, shape: &Shape<'_>, repeat: u32) -> Result<Samples, DeviceError> {
        let report = self.device.run(&batch(launch, repeat, true))?;
        let read: Vec<f64> = report.samples.iter().map(|sample| sample.whole).collect();
        if read.is_empty() || read.iter().any(|time| !time.is_finite() || *time <= 0.0) {
            return Err(DeviceError::Driver {
                call: "survey",
                message: format!("the device's clock gives no sound time for `{}`", shape.kernel),
            });
        }
        Ok(Samples { read, reference: report.reference })
    }

    fn launch(&mut self, shape: &Shape<'_>) -> Result<Launch, DeviceError> {
        Ok(Launch {
            kernel: self.kernel(shape.kernel)?,
            grid: Dim3::new(u32::try_from(shape.blocks).unwrap_or(u32::MAX), 1, 1),
            block: Dim3::new(shape.threads, 1, 1),
            shared: 0,
            cooperative: false,
            stream: 0,
            args: shape.args.clone(),
        })
    }

    fn kernel(&mut self, name: &str) -> Result<KernelId, DeviceError> {
        let missing = || DeviceError::Driver { call: "survey", message: format!("`{name}` was not compiled") };
        let mangled = self.code.kernels.get(name).ok_or_else(missing)?;
        self.device.kernel(self.module, mangled)
    }

    /// Gives everything back; the first refusal is told.
    fn close(self) -> Result<(), DeviceError> {
        let Self { device, module, buffers, .. } = self;
        let freed = buffers.into_iter().map(|buffer| device.free(buffer)).collect::<Vec<_>>();
        let unloaded = device.unload(module);
        freed.into_iter().chain([unloaded]).collect()
    }
}

fn batch(launch: &Launch, repeat: u32, timed: bool) -> Batch {
    Batch {
        prepare: Vec::new(),
        steps: vec![Step::Launch(launch.clone())],
        regime: Regime::Cold,
        series: Series::default(),
        repeat,
        timed,
    }
}

/// A 64-bit count as an argument.
pub(super) fn count(value: u64) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element: ElementType::U64, bits: value })
}

/// A 32-bit number as an argument.
pub(super) fn word(value: u32) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element: ElementType::U32, bits: u64::from(value) })
}
