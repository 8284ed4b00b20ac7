//! Launches on the simulated device, and their counts.

use super::device::SimDevice;
use super::error::host_error;
use crate::{Batch, BufferId, CountReport, Counter, DeviceError, Launch, LaunchArg, Loop, Step};
use runner_types::{
    BodyCounters, Counters, ElementType, LineCounts, Note, Texture, TextureAddress, TextureFilter, TextureKind,
};
use simt::{AddressMode, Channel, Geometry, Image, LaunchError, LaunchSpec, Sampler, TrapKind};

impl SimDevice {
    fn launch(&mut self, launch: &Launch) -> Result<simt::LaunchReport, DeviceError> {
        let kernel = self.kernel_of(launch.kernel)?;
        let loaded = self.module_of(kernel.module)?;
        let module = loaded.id;
        let assumed = loaded.assumed.clone().filter(|_| kernel.resources.registers.is_some());
        let name = kernel.name.clone();
        if launch.settings.cooperative && !self.info.cooperative_launch {
            let message = format!("{} has no cooperative launches", self.info.name);
            return Err(DeviceError::InvalidLaunch(message));
        }
        let mut images = Vec::new();
        let args: Vec<_> =
            launch.args.iter().map(|arg| self.argument(arg, &mut images)).collect::<Result<_, DeviceError>>()?;
        let spec = LaunchSpec {
            kernel: &name,
            grid: [launch.grid.x, launch.grid.y, launch.grid.z],
            block: [launch.block.x, launch.block.y, launch.block.z],
            shared: launch.settings.shared_bytes() as u32,
            cooperative: launch.settings.cooperative,
            cluster: launch.cluster,
            args: &args,
        };
        let ended = self.machine.launch(module, &spec);
        for image in images {
            self.machine.remove_image(image);
        }
        let mut report = ended.map_err(|error| match error {
            LaunchError::Refused(error) => host_error(error),
            LaunchError::Trap(trap) => {
                let message = format!("{trap}{}", remedy(&trap));
                let printed = trap.printed;
                match trap.kind {
                    TrapKind::Deadline(limit) => DeviceError::TimedOut { limit, message, printed },
                    TrapKind::Communication => DeviceError::Driver { call: "simulate", message },
                    _ => DeviceError::Trap { message, printed },
                }
            }
        })?;
        report.notes.extend(assumed);
        Ok(report)
    }

    /// Bytes of an argument. Objects created for the launch are added to `images`.
    fn argument(&mut self, arg: &LaunchArg, images: &mut Vec<u64>) -> Result<Vec<u8>, DeviceError> {
        Ok(match arg {
            LaunchArg::Buffer(id) => self.buffer(*id)?.address.to_le_bytes().to_vec(),
            LaunchArg::Offset(id, bytes) => (self.buffer(*id)?.address + bytes).to_le_bytes().to_vec(),
            LaunchArg::Scalar(value) => value.bits.to_le_bytes()[..value.element.size()].to_vec(),
            LaunchArg::Texture(texture) => {
                let address = self.buffer(texture.buffer)?.address;
                let handle = self.machine.create_image(image(texture, address)).map_err(host_error)?;
                images.push(handle);
                handle.to_le_bytes().to_vec()
            }
            LaunchArg::Struct(value) => value.bytes(|id| self.buffer(id).map(|buffer| buffer.address))?,
        })
    }
}

/// Converts a texture whose first texel is at `address` to the simulator's form.
fn image(texture: &Texture<BufferId>, address: u64) -> Image {
    let geometry = match texture.kind {
        TextureKind::Linear => Geometry::Linear,
        TextureKind::OneD => Geometry::OneD,
        TextureKind::TwoD => Geometry::TwoD,
        TextureKind::ThreeD => Geometry::ThreeD,
        TextureKind::OneDLayered => Geometry::OneDLayered,
        TextureKind::TwoDLayered => Geometry::TwoDLayered,
        TextureKind::Cube => Geometry::Cube,
    };
    let element = texture.element;
    let channel = match element {
        ElementType::F16 => Channel::Half,
        ElementType::F32 => Channel::Float,
        _ => Channel::Int { bytes: element.size() as u32, signed: element.is_signed_integer() },
    };
    let sampler = texture.sampler.map(|sampler| Sampler {
        address: match sampler.address {
            TextureAddress::Clamp => AddressMode::Clamp,
            TextureAddress::Border => AddressMode::Border,
            TextureAddress::Wrap => AddressMode::Wrap,
            TextureAddress::Mirror => AddressMode::Mirror,
        },
        linear: sampler.filter == TextureFilter::Linear,
        normalized: sampler.normalized,
        as_float: sampler.as_float,
    });
    Image { address, geometry, size: texture.shape, channel, channels: texture.channels, sampler }
}

fn append(before: &str, text: &str) -> String {
    let mut all = before.to_owned();
    simt::printed::append(&mut all, text);
    all
}

/// Adds to a launch's error the launch's number, if the batch may have several, and the text `printed` before it.
fn of_launch(error: DeviceError, (number, of): (usize, Option<usize>), printed: &str) -> DeviceError {
    let say = |message: String| match of {
        Some(0 | 1) => message,
        Some(of) => format!("launch {number} of {of}: {message}"),
        None => format!("launch {number}: {message}"),
    };
    match error {
        DeviceError::Trap { message, printed: own } => {
            DeviceError::Trap { message: say(message), printed: append(printed, &own) }
        }
        DeviceError::TimedOut { limit, message, printed: own } => {
            DeviceError::TimedOut { limit, message: say(message), printed: append(printed, &own) }
        }
        other => other,
    }
}

/// Remedy for a fault that a manifest key or an option resolves; empty for others.
fn remedy(trap: &simt::Trap) -> String {
    let Some(site) = &trap.site else { return String::new() };
    let buffer = site.allocation.strip_prefix("buffer `").and_then(|rest| rest.strip_suffix('`'));
    match (trap.kind, buffer) {
        (TrapKind::Uninitialised, Some(name)) => format!(
            "; to start with content, make it `access = \"inout\"` with a `fill` (`runner try`: --arg {name}=inout), \
             or write it first"
        ),
        (TrapKind::OutOfBounds, Some(name)) => {
            format!("; to make `{name}` longer, set its `len` (`runner try`: --arg {name}=LENGTH)")
        }
        (TrapKind::OutOfBounds, None) if site.allocation == "shared memory" => {
            "; a dynamic array needs `shared` bytes (`runner try`: --shared BYTES)".to_owned()
        }
        _ => String::new(),
    }
}

/// Counters of a body: of all launches together and, if there are several, of each.
fn counters(launches: &[simt::Counters]) -> BodyCounters {
    let named = |counters: &simt::Counters| {
        Counters(counters.metrics().into_iter().map(|(name, value)| (name.into(), value)).collect()).of_simulator()
    };
    let mut whole = simt::Counters::default();
    for launch in launches {
        whole.add(launch);
    }
    let each = if launches.len() > 1 { launches.iter().map(named).collect() } else { Vec::new() };
    BodyCounters { whole: named(&whole), each, lines: Vec::new() }
}

/// Counts by metric name, once per line, in the order of the PTX.
fn line_counts(mut lines: Vec<simt::LineCounts>) -> Vec<LineCounts> {
    simt::LineCounts::merge(&mut lines);
    let named = |simt::LineCounts { kernel, ptx_line, source, counters, rounds }: simt::LineCounts| {
        let counts = counters.metrics().into_iter().filter(|(_, value)| *value > 0.0);
        let wide = [counters.shared_load.wide_conflicts, counters.shared_store.wide_conflicts];
        let counters = Counters(counts.map(|(name, value)| (name.into(), value)).collect());
        let (file, line) = source.unzip();
        LineCounts { kernel, ptx_line, file, line, counters, rounds: rounds.into_iter().collect(), wide }
    };
    lines.into_iter().map(named).collect()
}

/// Results of a run's launches so far.
struct Progress<'r> {
    report: &'r mut CountReport,
    lines: Vec<simt::LineCounts>,
    each: Vec<simt::Counters>,
    /// Number of launches of a run, if known in advance.
    of: Option<usize>,
}

impl SimDevice {
    fn steps(&mut self, steps: &[Step], progress: &mut Progress<'_>) -> Result<(), DeviceError> {
        for step in steps {
            match step {
                Step::Copy { from, to } => self.copy(*from, *to)?,
                Step::Memset { buffer, value } => self.set(*buffer, *value)?,
                Step::Call(call) => return Err(DeviceError::unknown_function(call.function)),
                Step::Launch(launch) => self.counted(launch, progress)?,
                Step::Loop(inner) => self.repeated(inner, progress)?,
            }
        }
        Ok(())
    }

    fn counted(
        &mut self,
        launch: &Launch,
        Progress { report, lines, each, of }: &mut Progress<'_>,
    ) -> Result<(), DeviceError> {
        let place = (each.len() + 1, *of);
        let done = self.launch(launch).map_err(|error| of_launch(error, place, &report.run.printed))?;
        each.push(done.counters);
        lines.extend(done.lines);
        simt::printed::append(&mut report.run.printed, &done.printed);
        let sampled = done.sampled.map(|simt::Sampled { ran, of }| Note::Sampled { ran, of });
        for note in done.notes.into_iter().map(Note::Text).chain(sampled) {
            if !report.run.notes.contains(&note) {
                report.run.notes.push(note);
            }
        }
        Ok(())
    }

    fn repeated(&mut self, inner: &Loop, progress: &mut Progress<'_>) -> Result<(), DeviceError> {
        for nth in 0..inner.at_most {
            let Some(iteration) = inner.iteration(nth) else { return Ok(()) };
            self.steps(&iteration.steps, progress)?;
            let values = self.read_first(&iteration.until.reads)?;
            self.iterations = nth + 1;
            if iteration.until.holds(&values)? {
                return Ok(());
            }
            if nth + 1 == inner.at_most {
                return Err(iteration.until.never_held(inner.at_most, &values));
            }
        }
        Ok(())
    }
}

impl Counter for SimDevice {
    fn count(&mut self, batch: &Batch) -> Result<CountReport, DeviceError> {
        let mut report = CountReport::default();
        let has_loop = batch.steps.iter().any(|step| matches!(step, Step::Loop(_)));
        let launches = batch.steps.iter().filter(|step| matches!(step, Step::Launch(_))).count();
        for repetition in 0..batch.repeat {
            for prepare in &batch.prepare {
                self.prepare(prepare)?;
            }
            let of = (!has_loop).then_some(launches);
            let mut progress = Progress { report: &mut report, lines: Vec::new(), each: Vec::new(), of };
            self.steps(&batch.steps, &mut progress)?;
            let (each, lines) = (progress.each, progress.lines);
            if repetition == 0 && !each.is_empty() {
                report.counters = Some(counters(&each));
                report.lines = line_counts(lines);
            }
        }
        if has_loop {
            report.run.notes.push(Note::Loop { iterations: self.iterations, round_trip: None });
        }
        Ok(report)
    }

    fn marks_launches(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;
    use crate::sim::SimBackend;
    use crate::{Backend, RunReport};
    use runner_types::{DeviceId, Dim3, ScalarValue};
    use simt::Options;

    /// Prints its argument, and traps if that is 2.
    const PRINTS: &str = ".version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[4] = {37, 117, 10, 0};
.visible .entry prints(.param .u32 number)
{
    .local .align 8 .b8 values[8];
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    ld.param.u32 %r1, [number];
    mov.u64 %rd1, values;
    cvta.local.u64 %rd2, %rd1;
    st.local.u32 [values], %r1;
    mov.u64 %rd3, text;
    cvta.global.u64 %rd4, %rd3;
    {
    .param .b64 param0;
    st.param.b64 [param0+0], %rd4;
    .param .b64 param1;
    st.param.b64 [param1+0], %rd2;
    .param .b32 retval0;
    call.uni (retval0), vprintf, (param0, param1);
    }
    setp.ne.u32 %p1, %r1, 2;
    @%p1 bra $L_end;
    trap;
$L_end:
    ret;
}
";

    /// Launches the kernel once per argument.
    fn launched(arguments: &[u64]) -> Result<RunReport, DeviceError> {
        let backend = SimBackend::new(None, Options::default()).unwrap();
        let mut device = backend.open(&DeviceId { ordinal: 0, uuid: None }).unwrap();
        let module = device.load_builtin(PRINTS).unwrap().unwrap();
        let kernel = device.kernel(module, "prints").unwrap();
        let one = Dim3::new(1, 1, 1);
        let step = |&bits: &u64| {
            let args = vec![LaunchArg::Scalar(ScalarValue { element: ElementType::U32, bits })];
            Step::Launch(Launch::new(kernel, one, one, args))
        };
        device.run(&Batch::once(Vec::new(), arguments.iter().map(step).collect()))
    }

    #[test]
    fn a_fault_of_one_launch_of_several_says_which_and_keeps_what_was_printed() {
        assert_eq!(launched(&[5, 7]).unwrap().printed, "5\n7\n");
        let Err(DeviceError::Trap { message, printed }) = launched(&[5, 2, 7]) else { panic!() };
        assert!(message.starts_with("launch 2 of 3: `trap` in kernel `prints` at "), "{message}");
        assert_eq!(printed, "5\n2\n");
        let Err(DeviceError::Trap { message, printed }) = launched(&[2]) else { panic!() };
        assert!(message.starts_with("`trap` in kernel `prints` at "), "{message}");
        assert_eq!(printed, "2\n");
    }
}
