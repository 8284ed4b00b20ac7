//! Bodies as CUDA graphs: captured from the stream, instantiated once, launched repeatedly. Loops with a condition
//! become conditional nodes ([`super::device_loop`]).
//!
//! A graph keeps the addresses and functions with which it was captured. So graphs are dropped when a module or a
//! buffer is freed. Ids are never reused, so no remaining graph can refer to something else.

use std::ptr;

use cudarc::driver::sys;

use super::device_loop::DeviceLoops;
use super::driver::check;
use super::handles::{Context, Stream};
use super::operation::Operation;
use crate::{DeviceError, Step};

/// Number of graphs to keep: more than a group has variants.
const KEPT: usize = 128;

/// A graph that can be launched.
#[derive(Debug)]
pub(super) struct Graph {
    instance: Instance,
    /// Present if the graph has loops with a condition.
    loops: Option<DeviceLoops>,
}

#[derive(Debug)]
struct Instance(sys::CUgraphExec);

impl Graph {
    fn build(at: (&Context, &Stream), steps: &[&Operation<'_>]) -> Result<Self, DeviceError> {
        let stream = at.1;
        if !steps.iter().any(|step| matches!(step, Operation::Loop(_))) {
            return Self::capture(stream, || steps.iter().try_for_each(|step| step.queue(stream)));
        }
        let mut raw: sys::CUgraph = ptr::null_mut();
        // SAFETY: the flags must be zero, and are; `raw` outlives the call.
        check("cuGraphCreate", unsafe { sys::cuGraphCreate(&raw mut raw, 0) })?;
        let template = Template(raw);
        let loops = DeviceLoops::fill(at, raw, steps)?;
        Ok(Self { instance: template.instantiate(stream)?, loops: Some(loops) })
    }

    /// Captures everything that `queue` queues in the stream, and instantiates it.
    pub fn capture(stream: &Stream, queue: impl FnOnce() -> Result<(), DeviceError>) -> Result<Self, DeviceError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive and not capturing, since every capture is ended below.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.raw(), mode) })?;
        let queued = queue();
        let mut raw: sys::CUgraph = ptr::null_mut();
        // SAFETY: the capture was started above; `raw` outlives the call.
        let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream.raw(), &raw mut raw) });
        let template = Template(raw);
        queued.and(ended)?;
        Ok(Self { instance: template.instantiate(stream)?, loops: None })
    }

    pub fn launch(&self, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: both are alive; everything that the graph refers to is alive, or the graph would have been dropped.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.instance.0, stream.raw()) })
    }

    /// Iterations of the last loop, if any. The graph must have ended.
    pub fn iterations(&self, stream: &Stream) -> Result<Option<u32>, DeviceError> {
        self.loops.as_ref().map(|loops| loops.iterations(stream)).transpose()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: instantiated once, destroyed once; every public call of the device waits for its launches.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// A captured graph before it is instantiated; null if the capture failed.
struct Template(sys::CUgraph);

impl Template {
    fn instantiate(&self, stream: &Stream) -> Result<Instance, DeviceError> {
        let mut raw: sys::CUgraphExec = ptr::null_mut();
        // SAFETY: the template was captured and is alive; `raw` outlives the call.
        check("cuGraphInstantiate", unsafe { sys::cuGraphInstantiateWithFlags(&raw mut raw, self.0, 0) })?;
        let graph = Instance(raw);
        // SAFETY: both are alive. Without the upload, the first launch would include its cost.
        check("cuGraphUpload", unsafe { sys::cuGraphUpload(graph.0, stream.raw()) })?;
        Ok(graph)
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: captured once, destroyed once; an instantiated graph does not need it.
            let _ = unsafe { sys::cuGraphDestroy(self.0) };
        }
    }
}

/// Key of a graph: its bodies, and the number of runs, which rotate through them.
type Recipe = (Vec<Vec<Step>>, u32);

#[derive(Debug, Default)]
pub(super) struct Graphs(Vec<(Recipe, Graph)>);

impl Graphs {
    /// Graph of `launches` runs that rotate through the bodies, created on first use.
    pub fn prepare(
        &mut self,
        at: (&Context, &Stream),
        steps: Vec<Vec<Step>>,
        bodies: &[Vec<Operation<'_>>],
        launches: u32,
    ) -> Result<&Graph, DeviceError> {
        let recipe = (steps, launches);
        let known = self.0.iter().position(|(known, _)| *known == recipe);
        let place = if let Some(place) = known {
            place
        } else {
            if self.0.len() >= KEPT {
                self.0.remove(0);
            }
            let steps: Vec<_> = bodies.iter().cycle().take(launches as usize).flatten().collect();
            let graph = Graph::build(at, &steps)?;
            self.0.push((recipe, graph));
            self.0.len() - 1
        };
        Ok(&self.0[place].1)
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}
