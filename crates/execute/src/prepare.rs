//! Prepares every case of a group: loads code, binds memory, uploads inputs, resolves launches.

use super::bench::{Bench, host_allowance};
use super::buffers::Slot;
use super::cases::{Body, Cases, DeviceBody, ReadyCase};
use super::stop::{Lost, Stop};
use super::{host, launch, reference};
use runner_backend::{BufferId, Condition, HostCall, Iteration, Loop, ModuleId, Read, Step};
use runner_lang::Program;
use runner_types::{
    Activity, ArgPlan, BodyPlan, BufferPlan, CaseJob, ConditionPlan, HostPlan, IterationPlan, LaunchPlan, RefExpr,
    StepPlan, StepsPlan,
};

/// Cases whose code, memory and inputs are on the device. None has run yet.
pub struct Prepared<'b, 'a> {
    pub cases: Cases<'b, 'a>,
}

impl<'b, 'a> Prepared<'b, 'a> {
    /// Prepares the cases with these indices, one after the other; settles those that fail.
    pub fn prepare(bench: &'b mut Bench<'a>, places: &[usize]) -> Result<Self, Lost> {
        let mut cases = Cases::new(bench);
        let jobs: &'a [CaseJob] = &cases.bench.job.cases;
        for place in places {
            let job = &jobs[*place];
            cases.bench.announce(job, Activity::Preparing, host_allowance(job));
            let body = prepare_body(cases.bench, job);
            match cases.attempt(*place, body)? {
                Some(body) => cases.push(ReadyCase {
                    place: *place,
                    job,
                    body,
                    is_partial: false,
                    instructions: None,
                    stores: None,
                }),
                // Memory that only this case used is freed for the next one.
                None => cases.free_unused(),
            }
        }
        Ok(Self { cases })
    }
}

fn prepare_body(bench: &mut Bench<'_>, job: &CaseJob) -> Result<Body, Stop> {
    if let Some(check) = job.checks.iter().find(|c| !c.tolerance.is_sound() || !c.whole.is_sound()) {
        let message = format!("the tolerance of `{}` must consist of finite, non-negative numbers", check.text);
        return Err(Stop::unresolved(message));
    }
    match &job.body {
        BodyPlan::Cpu(expression) => prepare_function(bench, job, expression),
        BodyPlan::Memcpy(pairs) => {
            let slots = bind_buffers(bench, job, &names_of_copies(pairs), &[])?;
            let mut body = DeviceBody::without_work(slots);
            for (from, to) in pairs {
                body.steps.push(resolve_copy(bench, &body, from, to)?);
            }
            Ok(Body::Device(body))
        }
        BodyPlan::Host(call) => {
            let slots = bind_buffers(bench, job, &buffers_of(&call.args), &[])?;
            let mut body = DeviceBody::without_work(slots);
            body.steps.push(resolve_call(bench, &body, call)?);
            Ok(Body::Device(body))
        }
        BodyPlan::Launches(launches) => {
            if job.has_device_runtime() {
                // The limit applies to the whole device, and the cases of a group are interleaved.
                bench.device.set_pending_launches(pending_launches(bench))?;
            }
            let mut named = names_of_arguments(launches);
            named.extend(job.steps.iter().flat_map(StepsPlan::buffers));
            let kept = launches.iter().filter_map(|launch| launch.persist.as_ref());
            named.extend(kept.map(|persist| persist.buffer.as_str()));
            let slots = bind_buffers(bench, job, &named, launches)?;
            add_launches(bench, DeviceBody::without_work(slots), launches, job.steps.as_ref()).map(Body::Device)
        }
    }
}

/// Adds launches to a body, each once and in order unless there is a plan of steps.
fn add_launches(
    bench: &mut Bench<'_>,
    mut body: DeviceBody,
    launches: &[LaunchPlan],
    plan: Option<&StepsPlan>,
) -> Result<DeviceBody, Stop> {
    let mut records = Vec::new();
    for plan in launches {
        let module = bench.modules.load(bench.device, launch::compiled(plan)?)?;
        if !body.modules.contains(&module) {
            body.modules.push(module);
        }
        let store = &bench.store;
        let buffer = |name: &str| body.buffer(store, name);
        let (step, record) = launch::resolve(bench.device, &mut bench.modules, plan, &buffer)?;
        body.steps.push(Step::Launch(step));
        records.push(record);
    }
    body.launches = match plan {
        None => records,
        Some(plan) => {
            let store = &bench.store;
            let buffer = |name: &str| body.buffer(store, name);
            body.steps = resolve_steps(&plan.steps, &body.steps, &buffer)?;
            plan.shown.iter().filter_map(|index| records.get(*index).cloned()).collect()
        }
    };
    Ok(body)
}

/// Largest limit on pending device-side launches that any case of the group requests.
fn pending_launches(bench: &Bench<'_>) -> Option<u32> {
    let launches = bench.job.cases.iter().filter_map(|job| match &job.body {
        BodyPlan::Launches(launches) => Some(launches),
        _ => None,
    });
    launches.flatten().filter_map(|launch| launch.settings.pending_launches).max().map(|most| most as u32)
}

/// Prepares a timed host function, computing its arguments untimed.
fn prepare_function(bench: &mut Bench<'_>, job: &CaseJob, expression: &RefExpr) -> Result<Body, Stop> {
    let RefExpr::Call { function, buffers, integers } = expression else {
        return Err(Stop::unresolved("a cpu variant times a function of buffers, such as sum(x)"));
    };
    // Arguments first: the expected value is then computed from them, and their parts are not generated again.
    let mut arguments = Vec::new();
    for buffer in buffers {
        arguments.push(bench.expected.reference(&mut bench.store, job, buffer)?);
    }
    let value = bench.expected.reference(&mut bench.store, job, expression)?;
    let _span = tracing::debug_span!("prepare a host function", case = %job.case.key).entered();
    host::prepare(*function, &arguments, integers, &value).map(Body::Host)
}

/// Binds the buffers that the body or a check names, and every variable of a module, which a kernel can access without
/// an argument.
fn bind_buffers(
    bench: &mut Bench<'_>,
    job: &CaseJob,
    named: &[&str],
    launches: &[LaunchPlan],
) -> Result<Vec<(String, Slot)>, Stop> {
    let checks = job.checks.iter().chain(bench.checks_against(job));
    let checked: Vec<&str> = checks.flat_map(|check| reference::names(&check.actual)).collect();
    let mut slots = Vec::new();
    for plan in &job.buffers {
        let name = plan.name.as_str();
        if plan.symbol.is_none() && !named.contains(&name) && !checked.contains(&name) {
            continue;
        }
        let symbol = find_variable(bench, plan, launches)?;
        let symbol = symbol.as_ref().map(|(module, mangled)| (*module, mangled.as_str()));
        slots.push((name.to_owned(), bench.store.bind(bench.device, plan, symbol)?));
    }
    Ok(slots)
}

/// Module and mangled name of a buffer that is a variable.
fn find_variable(
    bench: &mut Bench<'_>,
    plan: &BufferPlan,
    launches: &[LaunchPlan],
) -> Result<Option<(ModuleId, String)>, Stop> {
    let Some(symbol) = &plan.symbol else { return Ok(None) };
    let Some(launch) = launches.get(symbol.launch) else {
        let message = format!("buffer `{}` is a variable of a kernel's source, and no kernel runs", plan.name);
        return Err(Stop::unresolved(message));
    };
    let code = launch::compiled(launch)?;
    let module = bench.modules.load(bench.device, code)?;
    let mangled = code.symbols.get(&symbol.name).unwrap_or(&symbol.name);
    Ok(Some((module, mangled.clone())))
}

fn resolve_call(bench: &mut Bench<'_>, body: &DeviceBody, plan: &HostPlan) -> Result<Step, Stop> {
    let function = &plan.function;
    let code = plan.compiled.as_ref();
    let code = code.ok_or_else(|| Stop::launch_error(format!("`{function}` was not compiled")))?;
    let store = &bench.store;
    let buffer = |name: &str| body.buffer(store, name);
    let args = plan.args.iter().map(|arg| launch::argument(arg, &code.symbols, &buffer));
    let args = args.collect::<Result<Vec<_>, Stop>>()?;
    let module = bench.modules.load(bench.device, code)?;
    let functions = bench.device.host_functions().ok_or_else(|| {
        Stop::launch_error(format!("`{function}` is a host function, but this device only runs kernels"))
    })?;
    let function = functions.host_function(module, function, &args)?;
    Ok(Step::Call(HostCall { function, args }))
}

fn resolve_copy(bench: &Bench<'_>, body: &DeviceBody, from: &str, to: &str) -> Result<Step, Stop> {
    let find = |name: &str| {
        let buffer = body.slot(name).and_then(|slot| bench.store.get(slot));
        buffer.ok_or_else(|| Stop::unresolved(format!("the copy uses a buffer `{name}` that the case does not have")))
    };
    let (source, target) = (find(from)?, find(to)?);
    let (size, room) = (source.plan.bytes().0, target.plan.bytes().0);
    if size != room {
        let message = format!("the copy from `{from}` has {size} bytes, but `{to}` has {room} bytes");
        return Err(Stop::unresolved(message));
    }
    Ok(Step::Copy { from: source.id, to: target.id })
}

fn names_of_copies(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().flat_map(|(from, to)| [from.as_str(), to.as_str()]).collect()
}

fn names_of_arguments(launches: &[LaunchPlan]) -> Vec<&str> {
    launches.iter().flat_map(|launch| buffers_of(&launch.args)).collect()
}

fn buffers_of(args: &[ArgPlan]) -> Vec<&str> {
    args.iter().flat_map(ArgPlan::buffers).collect()
}

/// Resolves steps. The plan refers to `launches` by index; `buffer` returns the memory of a named buffer.
fn resolve_steps(
    plan: &[StepPlan],
    launches: &[Step],
    buffer: &dyn Fn(&str) -> Option<BufferId>,
) -> Result<Vec<Step>, Stop> {
    plan.iter().map(|step| resolve_step(step, launches, buffer)).collect()
}

fn resolve_step(plan: &StepPlan, launches: &[Step], buffer: &dyn Fn(&str) -> Option<BufferId>) -> Result<Step, Stop> {
    let memory = |name: &str| {
        buffer(name)
            .ok_or_else(|| Stop::unresolved(format!("a step uses a buffer `{name}` that the case does not have")))
    };
    Ok(match plan {
        StepPlan::Launch(index) => {
            let launch = launches.get(*index).cloned();
            launch.ok_or_else(|| Stop::unresolved(format!("the case has no launch {index}")))?
        }
        StepPlan::Memset { buffer, value } => Step::Memset { buffer: memory(buffer)?, value: *value },
        StepPlan::Copy { from, to } => Step::Copy { from: memory(from)?, to: memory(to)? },
        StepPlan::Loop(plan) => {
            let iteration = |plan: &IterationPlan| {
                let steps = resolve_steps(&plan.steps, launches, buffer)?;
                Ok(Iteration { steps, until: condition(&plan.until, &memory)? })
            };
            let iterations = plan.iterations.iter().map(iteration).collect::<Result<_, Stop>>()?;
            Step::Loop(Box::new(Loop { iterations, at_most: plan.at_most }))
        }
    })
}

fn condition(plan: &ConditionPlan, memory: &dyn Fn(&str) -> Result<BufferId, Stop>) -> Result<Condition, Stop> {
    let program = Program::parse(&plan.text).map_err(|error| format!("until `{}`: {}", plan.text, error.message))?;
    let scope = plan.scope.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let reads = plan.reads.iter().map(|read| {
        Ok::<_, Stop>(Read { name: read.name.clone(), buffer: memory(&read.buffer)?, element: read.element })
    });
    Ok(Condition { program, scope, reads: reads.collect::<Result<_, _>>()? })
}
