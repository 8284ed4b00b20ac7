//! Loops with a condition in a graph: the device decides when they end.
//!
//! A loop is a WHILE node. Its body is one iteration and a kernel that evaluates the condition ([`super::condition`]),
//! counts, and sets the node's handle. If iterations differ because buffers are swapped, the body holds the first
//! iteration and an IF node with the next one, and so on. A kernel before the WHILE node sets the count to zero. The
//! host reads the results from device memory, once, when the graph has ended.
//!
//! A graph is filled piece by piece. The steps up to a loop are captured into it; then, outside any capture, the loop's
//! conditional node is added. The node's body is filled last.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;

use super::condition::{self, BEGIN, COUNTERS, FAILED, ITERATIONS, JUDGE, VALUES};
use super::driver::{api, check};
use super::handles::{Context, Module, Stream};
use super::kernel::{Arguments, Kernel};
use super::launch::Shape;
use super::memory::{self, DeviceMemory};
use super::operation::Operation;
use super::repeated::{Iteration, Repeated};
use crate::{Condition, DeviceError, Loop, ModuleId};
use runner_types::Dim3;

use sys::CUgraphConditionalNodeType as NodeType;

fn one_thread() -> Shape {
    Shape::new(Dim3::new(1, 1, 1), Dim3::new(1, 1, 1))
}

/// Resources that the loops of a graph need for as long as it lives.
#[derive(Debug)]
pub(super) struct DeviceLoops {
    kernels: Vec<Kernels>,
    /// Conditions with the bounds of their loops, by condition number.
    conditions: Vec<(Condition, u32)>,
    state: DeviceMemory,
}

/// Kernels of a condition.
#[derive(Debug)]
struct Kernels {
    ptx: String,
    begin: Kernel,
    judge: Kernel,
    /// Dropped last, because the kernels are part of it.
    _module: Module,
}

/// An empty body to fill: a loop's body, or the rest of one.
struct Body<'a> {
    graph: sys::CUgraph,
    repeated: &'a Repeated<'a, Operation<'a>>,
    /// Index among the distinct iterations.
    nth: usize,
    handle: sys::CUgraphConditionalHandle,
    counter: sys::CUdeviceptr,
}

impl DeviceLoops {
    /// Fills an empty graph with steps, in order.
    pub fn fill(
        (context, stream): (&Context, &Stream),
        graph: sys::CUgraph,
        steps: &[&Operation<'_>],
    ) -> Result<Self, DeviceError> {
        if !api()?.has_conditional_nodes {
            let (major, minor) = api()?.cuda;
            let message = format!(
                "a loop with `until` needs conditional graph nodes and thus a driver for CUDA 12.4; this one supports \
                 CUDA {major}.{minor}: remove `graph` from `regimes`, or update the driver"
            );
            return Err(refused(message));
        }
        let (mut kernels, mut count) = (Vec::new(), 0);
        for step in steps {
            load(step, &mut kernels, &mut count)?;
        }
        let bytes = (COUNTERS + count) * size_of::<u64>();
        let state = DeviceMemory::alloc(context, bytes)?;
        stream.settle(memory::fill(stream, state.address(), 0, bytes))?;
        let mut loops = Self { kernels, conditions: Vec::new(), state };
        let mut bodies = VecDeque::new();
        let mut counters = (COUNTERS..).map(|word| loops.state.address() + 8 * word as sys::CUdeviceptr);
        let mut filler = Filler { context, stream, graph, last: Vec::new(), is_capturing: false };
        for step in steps {
            loops.add(step, &mut filler, &mut bodies, &mut counters)?;
        }
        filler.end()?;
        while let Some(body) = bodies.pop_front() {
            let mut filler = Filler { context, stream, graph: body.graph, last: Vec::new(), is_capturing: false };
            let iteration = &body.repeated.iterations[body.nth];
            for step in &iteration.steps {
                if step.copies_arrays() {
                    return Err(refused(
                        "a loop with `until` uses a buffer both as a texture or surface array and in another way, but \
                         a graph cannot copy arrays in a loop: remove `graph` from `regimes`"
                            .to_owned(),
                    ));
                }
                loops.add(step, &mut filler, &mut bodies, &mut counters)?;
            }
            let follows = body.nth + 1 < period(body.repeated)?;
            let next = if follows { filler.handle()? } else { body.handle };
            loops.conditions.push((iteration.until.clone(), body.repeated.at_most));
            let mut values = vec![
                loops.state.address(),
                body.counter,
                u64::from(body.repeated.at_most),
                loops.conditions.len() as u64,
            ];
            values.extend([body.handle, next]);
            values.extend(iteration.reads.iter().map(|(address, _)| *address));
            let judge = &loops.kernels_of(iteration)?.judge;
            filler.queue(|stream| judge.launch(stream, &one_thread(), &Arguments::new(values)))?;
            if follows {
                let graph = filler.conditional(next, NodeType::CU_GRAPH_COND_TYPE_IF)?;
                bodies.push_back(Body { graph, nth: body.nth + 1, ..body });
            }
            filler.end()?;
        }
        Ok(loops)
    }

    fn add<'a>(
        &self,
        step: &'a Operation<'a>,
        filler: &mut Filler<'_>,
        bodies: &mut VecDeque<Body<'a>>,
        counters: &mut impl Iterator<Item = sys::CUdeviceptr>,
    ) -> Result<(), DeviceError> {
        let Operation::Loop(repeated) = step else { return filler.queue(|stream| step.queue(stream)) };
        let Some((first, counter)) = repeated.iterations.first().zip(counters.next()) else { return Ok(()) };
        let handle = filler.handle()?;
        let begin = &self.kernels_of(first)?.begin;
        let values = vec![self.state.address(), counter, handle];
        filler.queue(|stream| begin.launch(stream, &one_thread(), &Arguments::new(values)))?;
        let graph = filler.conditional(handle, NodeType::CU_GRAPH_COND_TYPE_WHILE)?;
        bodies.push_back(Body { graph, repeated, nth: 0, handle, counter });
        Ok(())
    }

    fn kernels_of(&self, iteration: &Iteration<Operation<'_>>) -> Result<&Kernels, DeviceError> {
        let ptx = translated(&iteration.until)?;
        let found = self.kernels.iter().find(|kernels| kernels.ptx == ptx);
        found.ok_or_else(|| refused(format!("`{}` was not loaded", iteration.until.program.text())))
    }

    /// Iterations of the loop that ended last. The graph must have ended. Fails if a condition never held or had no
    /// value.
    pub fn iterations(&self, stream: &Stream) -> Result<u32, DeviceError> {
        let mut words = [0_u64; COUNTERS];
        // SAFETY: the state has more than this many words, the graph has ended, and `words` outlives the call.
        check("cuMemcpyDtoH", unsafe {
            sys::cuMemcpyDtoH_v2(words.as_mut_ptr().cast::<c_void>(), self.state.address(), size_of_val(&words))
        })?;
        let failed = words[FAILED].checked_sub(1).and_then(|number| self.conditions.get(number as usize));
        let Some((condition, at_most)) = failed else { return Ok(words[ITERATIONS] as u32) };
        stream.settle(memory::fill(stream, self.state.address(), 0, size_of::<u64>()))?;
        let values = &words[VALUES..][..condition.reads.len()];
        if condition.holds(values)? {
            let message = format!("`{}` holds on the host, but not on the device", condition.program.text());
            return Err(DeviceError::Driver { call: "loop", message });
        }
        Err(condition.never_held(*at_most, values))
    }
}

/// Loads the kernels for every condition in a step, and counts the loops.
fn load(step: &Operation<'_>, kernels: &mut Vec<Kernels>, count: &mut usize) -> Result<(), DeviceError> {
    let Operation::Loop(repeated) = step else { return Ok(()) };
    *count += 1;
    for iteration in &repeated.iterations[..period(repeated)?] {
        let ptx = translated(&iteration.until)?;
        if kernels.iter().all(|known| known.ptx != ptx) {
            let module = Module::load(format!("{ptx}\0").as_bytes())?;
            let find = |name| Kernel::find(ModuleId(u32::MAX), &module, name);
            let (begin, judge) = (find(BEGIN)?, find(JUDGE)?);
            kernels.push(Kernels { ptx, begin, judge, _module: module });
        }
        for step in &iteration.steps {
            load(step, kernels, count)?;
        }
    }
    Ok(())
}

fn translated(condition: &Condition) -> Result<String, DeviceError> {
    condition::ptx(condition).map_err(|why| {
        let text = condition.program.text();
        refused(format!(
            "`{text}` cannot be evaluated by a kernel: {why}; remove `graph` from `regimes`, or let a kernel write a \
             flag"
        ))
    })
}

/// Number of iterations after which the first one repeats.
fn period(repeated: &Repeated<'_, Operation<'_>>) -> Result<usize, DeviceError> {
    repeated.period.ok_or_else(|| {
        refused(format!(
            "more than {} iterations of a loop with `until` differ from each other, for example because `nth` is an \
             argument: remove `graph` from `regimes`, or let a kernel count",
            Loop::LONGEST_PERIOD
        ))
    })
}

fn refused(message: String) -> DeviceError {
    DeviceError::Driver { call: "graph", message }
}

/// Appends to a graph.
struct Filler<'a> {
    context: &'a Context,
    stream: &'a Stream,
    graph: sys::CUgraph,
    last: Vec<sys::CUgraphNode>,
    is_capturing: bool,
}

impl Filler<'_> {
    /// Captures everything that `queue` queues in the stream.
    fn queue(&mut self, queue: impl FnOnce(&Stream) -> Result<(), DeviceError>) -> Result<(), DeviceError> {
        if !self.is_capturing {
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            // SAFETY: the stream is alive and not capturing; the nodes belong to the graph, which is alive, and their
            // edges are plain ones.
            check("cuStreamBeginCaptureToGraph", unsafe {
                sys::cuStreamBeginCaptureToGraph(
                    self.stream.raw(),
                    self.graph,
                    self.last_nodes(),
                    ptr::null(),
                    self.last.len(),
                    mode,
                )
            })?;
            self.is_capturing = true;
        }
        queue(self.stream)
    }

    /// Creates a handle for a conditional node of this graph, which a kernel sets before the node.
    fn handle(&self) -> Result<sys::CUgraphConditionalHandle, DeviceError> {
        let mut handle = 0;
        // SAFETY: graph and context are alive, and `handle` outlives the call.
        check("cuGraphConditionalHandleCreate", unsafe {
            sys::cuGraphConditionalHandleCreate(&raw mut handle, self.graph, self.context.raw(), 0, 0)
        })?;
        Ok(handle)
    }

    /// Adds a conditional node and returns its empty body.
    fn conditional(
        &mut self,
        handle: sys::CUgraphConditionalHandle,
        kind: NodeType,
    ) -> Result<sys::CUgraph, DeviceError> {
        self.note_last()?;
        self.end()?;
        let conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: kind,
            size: 1,
            phGraph_out: ptr::null_mut(),
            ctx: self.context.raw(),
        };
        // Reserved bytes must be zero.
        let mut content = sys::CUgraphNodeParams_st__bindgen_ty_1 { reserved1: [0; 29] };
        content.conditional = conditional;
        let mut parameters = sys::CUgraphNodeParams {
            type_: sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            reserved0: [0; 3],
            __bindgen_anon_1: content,
            reserved2: 0,
        };
        let mut node = ptr::null_mut();
        // SAFETY: the graph is alive and nothing is captured into it; the last nodes are its own, with plain edges;
        // node and parameters outlive the call.
        check("cuGraphAddNode", unsafe {
            sys::cuGraphAddNode_v2(
                &raw mut node,
                self.graph,
                self.last_nodes(),
                ptr::null(),
                self.last.len(),
                &raw mut parameters,
            )
        })?;
        self.last = vec![node];
        // SAFETY: the call succeeded, so it set the pointer to an array of one graph, which lives as long as the node.
        Ok(unsafe { *parameters.__bindgen_anon_1.conditional.phGraph_out })
    }

    /// Most recently captured nodes; null if there are none.
    fn last_nodes(&self) -> *const sys::CUgraphNode {
        if self.last.is_empty() { ptr::null() } else { self.last.as_ptr() }
    }

    /// Records which nodes were captured last.
    fn note_last(&mut self) -> Result<(), DeviceError> {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut nodes, mut edges, mut count) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the stream is alive, and all results outlive the call.
        check("cuStreamGetCaptureInfo", unsafe {
            sys::cuStreamGetCaptureInfo_v3(
                self.stream.raw(),
                &raw mut status,
                ptr::null_mut(),
                ptr::null_mut(),
                &raw mut nodes,
                &raw mut edges,
                &raw mut count,
            )
        })?;
        self.last.clear();
        if !nodes.is_null() {
            // SAFETY: the driver set pointer and count; the array lives until the next call on the stream.
            self.last.extend_from_slice(unsafe { std::slice::from_raw_parts(nodes, count) });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), DeviceError> {
        if !std::mem::replace(&mut self.is_capturing, false) {
            return Ok(());
        }
        let mut graph = ptr::null_mut();
        // SAFETY: the capture was begun by `queue`; `graph` outlives the call.
        check("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(self.stream.raw(), &raw mut graph) })
    }
}

impl Drop for Filler<'_> {
    /// Ends a failed capture, since the stream must not stay in it.
    fn drop(&mut self) {
        let _ = self.end();
    }
}
