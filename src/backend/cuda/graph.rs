//! Bodies as CUDA graphs: captured from the stream, instantiated once, launched again and again.
//!
//! A graph keeps the addresses and functions that it was captured with. So graphs are dropped when a module or a
//! buffer is freed; ids are never reused, so that a remaining graph cannot refer to something else.

use std::ptr;

use cudarc::driver::sys;

use super::driver::check;
use super::handles::Stream;
use super::operation::Operation;
use crate::backend::{DeviceError, Step};

/// Graphs kept at a time: more than a group has variants.
const KEPT: usize = 128;

/// An instantiated graph.
#[derive(Debug)]
pub(super) struct Graph(sys::CUgraphExec);

impl Graph {
    /// Captures what `queue` puts into the stream, and makes it ready to launch.
    pub fn capture(stream: &Stream, queue: impl FnOnce() -> Result<(), DeviceError>) -> Result<Self, DeviceError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives and captures nothing yet: every capture is ended below.
        check("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.raw(), mode) })?;
        let queued = queue();
        let mut raw: sys::CUgraph = ptr::null_mut();
        // SAFETY: the capture was begun above; `raw` outlives the call.
        let ended = check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream.raw(), &raw mut raw) });
        let template = Template(raw);
        queued.and(ended)?;
        template.instantiate(stream)
    }

    pub fn launch(&self, stream: &Stream) -> Result<(), DeviceError> {
        // SAFETY: both live; what the graph names lives, or the graph was forgotten.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.0, stream.raw()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: instantiated once, destroyed once; every public call of the device waits for its launches.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// A captured graph before it is instantiated; null where the capture failed.
struct Template(sys::CUgraph);

impl Template {
    fn instantiate(&self, stream: &Stream) -> Result<Graph, DeviceError> {
        let mut raw: sys::CUgraphExec = ptr::null_mut();
        // SAFETY: the template was captured and lives; `raw` outlives the call.
        check("cuGraphInstantiate", unsafe { sys::cuGraphInstantiateWithFlags(&raw mut raw, self.0, 0) })?;
        let graph = Graph(raw);
        // SAFETY: both live. The first launch then pays for no upload.
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

/// What a graph was made of: the bodies, and how many runs, which alternate between them.
type Recipe = (Vec<Vec<Step>>, u32);

/// The graphs that were made so far.
#[derive(Debug, Default)]
pub(super) struct Graphs(Vec<(Recipe, Graph)>);

impl Graphs {
    /// The graph of `launches` runs that alternate between the bodies, made on first use.
    pub fn of(
        &mut self,
        stream: &Stream,
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
            let runs = bodies.iter().cycle().take(launches as usize);
            let graph = Graph::capture(stream, || runs.flatten().try_for_each(|step| step.queue(stream)))?;
            self.0.push((recipe, graph));
            self.0.len() - 1
        };
        Ok(&self.0[place].1)
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }
}
