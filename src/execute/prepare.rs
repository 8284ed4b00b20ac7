//! Makes every case of a group ready: code loaded, memory bound, inputs uploaded, launches resolved.

use super::buffers::Slot;
use super::group::{Body, DeviceBody, Group, host_allowance};
use super::kernels::Kernels;
use super::stop::{Lost, Stop};
use super::{host, launch, reference, steps};
use crate::backend::{HostCall, ModuleId, Step};
use crate::model::{Activity, ArgPlan, BodyPlan, BufferPlan, CaseJob, HostPlan, LaunchPlan, RefExpr, StepsPlan};

impl Group<'_> {
    /// Makes the cases ready one after the other; one that cannot be is settled.
    pub fn prepare_all(&mut self) -> Result<(), Lost> {
        self.store.kernels = Kernels::on(self.device).unwrap_or_default();
        (0..self.members.len()).try_for_each(|member| self.prepare_one(member))
    }

    pub fn prepare_one(&mut self, member: usize) -> Result<(), Lost> {
        let job = self.members[member].job;
        self.active(member, Activity::Preparing, host_allowance(job));
        let body = self.prepare(job);
        let failed = matches!(body, Err(Stop::Case(_)));
        if let Some(body) = self.attempt(member, body)? {
            self.members[member].body = Some(body);
        }
        if failed {
            // Memory that only this case used is free for the next one.
            self.free_unused();
        }
        Ok(())
    }

    fn prepare(&mut self, job: &CaseJob) -> Result<Body, Stop> {
        if let Some(check) = job.checks.iter().find(|c| !c.tolerance.is_sound() || !c.whole.is_sound()) {
            let message = format!("the tolerance of `{}` must be of finite numbers of at least 0", check.text);
            return Err(Stop::unresolved(message));
        }
        match &job.body {
            BodyPlan::Cpu(expression) => self.host(job, expression),
            BodyPlan::Memcpy(pairs) => {
                let slots = self.bind(job, &names_of_copies(pairs), &[])?;
                let mut body = DeviceBody::on(slots);
                for (from, to) in pairs {
                    body.steps.push(self.copy(&body, from, to)?);
                }
                Ok(Body::Device(body))
            }
            BodyPlan::Host(call) => {
                let slots = self.bind(job, &buffers_of(&call.args), &[])?;
                let mut body = DeviceBody::on(slots);
                body.steps.push(self.call(&body, call)?);
                Ok(Body::Device(body))
            }
            BodyPlan::Launches(launches) => {
                if launches.iter().any(|launch| launch.unit.settings.relocatable) {
                    // The limit applies to the device, and the cases of a group are interleaved.
                    self.device.set_pending_launches(self.pending_launches())?;
                }
                let mut named = names_of_arguments(launches);
                named.extend(job.steps.iter().flat_map(StepsPlan::buffers));
                let kept = launches.iter().filter_map(|launch| launch.persist.as_ref());
                named.extend(kept.map(|persist| persist.buffer.as_str()));
                let slots = self.bind(job, &named, launches)?;
                self.launches(DeviceBody::on(slots), launches, job.steps.as_ref()).map(Body::Device)
            }
        }
    }

    /// Adds launches to a body, each once in order unless there is a plan of the steps.
    fn launches(
        &mut self,
        mut body: DeviceBody,
        launches: &[LaunchPlan],
        plan: Option<&StepsPlan>,
    ) -> Result<DeviceBody, Stop> {
        let mut records = Vec::new();
        for plan in launches {
            let module = self.modules.of(self.device, launch::compiled(plan)?)?;
            if !body.modules.contains(&module) {
                body.modules.push(module);
            }
            let store = &self.store;
            let buffer = |name: &str| body.slot(name).and_then(|slot| store.get(slot)).map(|b| b.id);
            let (step, record) = launch::resolve(self.device, &mut self.modules, plan, &buffer)?;
            body.steps.push(Step::Launch(step));
            records.push(record);
        }
        body.launches = match plan {
            None => records,
            Some(plan) => {
                let store = &self.store;
                let buffer = |name: &str| body.slot(name).and_then(|slot| store.get(slot)).map(|b| b.id);
                body.steps = steps::resolve(&plan.steps, &body.steps, &buffer)?;
                plan.shown.iter().filter_map(|index| records.get(*index).cloned()).collect()
            }
        };
        Ok(body)
    }

    /// The most launches from kernels that a case of the group asks for.
    fn pending_launches(&self) -> Option<u32> {
        let launches = self.job.cases.iter().filter_map(|job| match &job.body {
            BodyPlan::Launches(launches) => Some(launches),
            _ => None,
        });
        launches.flatten().filter_map(|launch| launch.settings.pending_launches).max().map(|most| most as u32)
    }

    /// Arguments of the function that are functions themselves are worked out here and are not timed.
    fn host(&mut self, job: &CaseJob, expression: &RefExpr) -> Result<Body, Stop> {
        let RefExpr::Call { function, buffers, integers } = expression else {
            return Err(Stop::unresolved("a cpu variant times a function of buffers, such as sum(x)"));
        };
        let value = self.expected.reference(&mut self.store, job, expression)?;
        let mut arguments = Vec::new();
        for buffer in buffers {
            arguments.push(self.expected.reference(&mut self.store, job, buffer)?);
        }
        host::prepare(*function, &arguments, integers, &value).map(Body::Host)
    }

    /// Binds the buffers that the body or a check names, and every variable of a module, which a kernel reaches
    /// without an argument.
    fn bind(&mut self, job: &CaseJob, named: &[&str], launches: &[LaunchPlan]) -> Result<Vec<(String, Slot)>, Stop> {
        let checks = job.checks.iter().chain(self.awaited(job));
        let checked: Vec<&str> = checks.flat_map(|check| reference::names(&check.actual)).collect();
        let mut slots = Vec::new();
        for plan in &job.buffers {
            let name = plan.name.as_str();
            if plan.symbol.is_none() && !named.contains(&name) && !checked.contains(&name) {
                continue;
            }
            let symbol = self.variable(plan, launches)?;
            let symbol = symbol.as_ref().map(|(module, mangled)| (*module, mangled.as_str()));
            slots.push((name.to_owned(), self.store.bind(self.device, plan, symbol)?));
        }
        Ok(slots)
    }

    /// The module and the mangled name of a buffer that is a variable.
    fn variable(&mut self, plan: &BufferPlan, launches: &[LaunchPlan]) -> Result<Option<(ModuleId, String)>, Stop> {
        let Some(symbol) = &plan.symbol else { return Ok(None) };
        let Some(launch) = launches.get(symbol.launch) else {
            let message = format!("buffer `{}` is a variable of a kernel's source, and no kernel runs", plan.name);
            return Err(Stop::unresolved(message));
        };
        let code = launch::compiled(launch)?;
        let module = self.modules.of(self.device, code)?;
        let mangled = code.symbols.get(&symbol.name).unwrap_or(&symbol.name);
        Ok(Some((module, mangled.clone())))
    }

    fn call(&mut self, body: &DeviceBody, plan: &HostPlan) -> Result<Step, Stop> {
        let function = &plan.function;
        let code = plan.compiled.as_ref();
        let code = code.ok_or_else(|| Stop::launch_error(format!("`{function}` was not compiled")))?;
        let store = &self.store;
        let buffer = |name: &str| body.slot(name).and_then(|slot| store.get(slot)).map(|b| b.id);
        let args = plan.args.iter().map(|arg| launch::argument(arg, &buffer)).collect::<Result<Vec<_>, Stop>>()?;
        let module = self.modules.of(self.device, code)?;
        let functions = self.device.host_functions().ok_or_else(|| {
            Stop::launch_error(format!("`{function}` is a function of the host, and this device runs kernels only"))
        })?;
        let function = functions.host_function(module, function, &args)?;
        Ok(Step::Call(HostCall { function, args }))
    }

    fn copy(&self, body: &DeviceBody, from: &str, to: &str) -> Result<Step, Stop> {
        let find = |name: &str| {
            let buffer = body.slot(name).and_then(|slot| self.store.get(slot));
            buffer.ok_or_else(|| Stop::unresolved(format!("the copy names a buffer `{name}` that the case lacks")))
        };
        let (source, target) = (find(from)?, find(to)?);
        let (size, room) = (source.plan.bytes().0, target.plan.bytes().0);
        if size != room {
            let message = format!("the copy takes `{from}` of {size} bytes to `{to}` of {room} bytes");
            return Err(Stop::unresolved(message));
        }
        Ok(Step::Copy { from: source.id, to: target.id })
    }
}

fn names_of_copies(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().flat_map(|(from, to)| [from.as_str(), to.as_str()]).collect()
}

fn names_of_arguments(launches: &[LaunchPlan]) -> Vec<&str> {
    launches.iter().flat_map(|launch| buffers_of(&launch.args)).collect()
}

fn buffers_of(args: &[ArgPlan]) -> Vec<&str> {
    args.iter().filter_map(ArgPlan::buffer).collect()
}

/// Whether a case's body is this reference expression.
pub fn is_reference(job: &CaseJob, expression: &RefExpr) -> bool {
    matches!(&job.body, BodyPlan::Cpu(own) if own == expression)
}
