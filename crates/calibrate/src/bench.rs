//! Tools of a survey: loaded kernels, buffers, launches and their samples.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use runner_backend::{
    Batch, BufferId, Clock, Device, DeviceError, KernelId, Launch, LaunchArg, ModuleId, Prepare, Samples, Series, Step,
    TimedBatch,
};
use runner_types::{Compiled, Dim3, ElementType, Regime, ScalarValue};

/// A device with the survey's kernels and buffers.
pub(super) struct Bench<'a> {
    pub device: &'a mut dyn Device,
    code: &'a Compiled,
    module: ModuleId,
    buffers: Vec<BufferId>,
}

/// A launch to time.
pub(super) struct Shape<'a> {
    pub kernel: &'a str,
    pub blocks: u64,
    pub threads: u32,
    pub args: Vec<LaunchArg>,
}

/// Measured times of a launch, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Readings {
    /// Times from the device's own clock.
    pub read: Vec<f64>,
    /// Times from the reference clock; empty if there is none.
    pub reference: Vec<f64>,
}

impl Readings {
    /// Standard error of the trimmed mean.
    pub fn error(&self) -> f64 {
        runner_stats::trimmed_error(&self.read).unwrap_or_default()
    }
}

impl<'a> Bench<'a> {
    pub fn new(device: &'a mut dyn Device, code: &'a Compiled) -> Result<Self, DeviceError> {
        let module = device.load(code)?;
        Ok(Self { device, code, module, buffers: Vec::new() })
    }

    /// Allocates a zeroed buffer.
    pub fn zeros(&mut self, bytes: u64) -> Result<BufferId, DeviceError> {
        let buffer = self.device.alloc(bytes as usize, 0)?;
        self.buffers.push(buffer);
        self.device.run(&Batch::once(vec![Prepare::Fill { buffer, byte: 0 }], Vec::new()))?;
        Ok(buffer)
    }

    /// Times a launch, in nanoseconds: one value per repetition, after a warm-up.
    pub fn times(&mut self, shape: &Shape<'_>, repeat: u32) -> Result<Vec<f64>, DeviceError> {
        let launch = self.launch(shape)?;
        self.warm_up(&launch)?;
        self.sample(&launch, shape, repeat).map(|sample| sample.read)
    }

    /// Takes samples of several launches, interleaved: each round has one of each, in random order. A launch's position
    /// in the driver's queue affects its time, so a fixed order would give each launch a bias that differs between
    /// processes.
    pub fn in_rounds(&mut self, shapes: &[Shape<'_>], rounds: u32) -> Result<Vec<Readings>, DeviceError> {
        let launches = shapes.iter().map(|shape| self.launch(shape)).collect::<Result<Vec<_>, _>>()?;
        for launch in &launches {
            self.warm_up(launch)?;
        }
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut order: Vec<usize> = (0..shapes.len()).collect();
        let mut all = vec![Readings::default(); shapes.len()];
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

    fn sample(&mut self, launch: &Launch, shape: &Shape<'_>, repeat: u32) -> Result<Readings, DeviceError> {
        let Samples { times, reference, .. } = self.time(vec![Step::Launch(launch.clone())], repeat)?;
        let read: Vec<f64> = times.iter().map(|sample| sample.whole).collect();
        if read.is_empty() || read.iter().any(|time| !time.is_finite() || *time <= 0.0) {
            return Err(DeviceError::Driver {
                call: "survey",
                message: format!("the device's clock returns no valid time for `{}`", shape.kernel),
            });
        }
        Ok(Readings { read, reference })
    }

    fn warm_up(&mut self, launch: &Launch) -> Result<(), DeviceError> {
        self.device.run(&Batch::once(Vec::new(), vec![Step::Launch(launch.clone())])).map(drop)
    }

    /// Takes samples of steps with cold caches.
    pub fn time(&mut self, steps: Vec<Step>, samples: u32) -> Result<Samples, DeviceError> {
        let (prepare, regime, series) = (Vec::new(), Regime::Cold, Series::default());
        self.clock()?.time(&TimedBatch { prepare, steps, regime, series, samples })
    }

    pub fn clock(&mut self) -> Result<&mut dyn Clock, DeviceError> {
        self.device.clock().ok_or_else(|| DeviceError::Unavailable("this device has no clock to survey".to_owned()))
    }

    fn launch(&mut self, shape: &Shape<'_>) -> Result<Launch, DeviceError> {
        let grid = Dim3::new(u32::try_from(shape.blocks).unwrap_or(u32::MAX), 1, 1);
        Ok(Launch::new(self.kernel(shape.kernel)?, grid, Dim3::new(shape.threads, 1, 1), shape.args.clone()))
    }

    fn kernel(&mut self, name: &str) -> Result<KernelId, DeviceError> {
        let missing = || DeviceError::Driver { call: "survey", message: format!("`{name}` was not compiled") };
        let mangled = self.code.kernels.get(name).ok_or_else(missing)?;
        self.device.kernel(self.module, mangled)
    }

    /// Frees everything; returns the first error.
    pub fn close(self) -> Result<(), DeviceError> {
        let Self { device, module, buffers, .. } = self;
        let freed = buffers.into_iter().map(|buffer| device.free(buffer)).collect::<Vec<_>>();
        let unloaded = device.unload(module);
        freed.into_iter().chain([unloaded]).collect()
    }
}

pub(super) fn count(value: u64) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element: ElementType::U64, bits: value })
}

pub(super) fn word(value: u32) -> LaunchArg {
    LaunchArg::Scalar(ScalarValue { element: ElementType::U32, bits: u64::from(value) })
}
