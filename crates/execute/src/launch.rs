//! Resolves launch plans: loads code, queries occupancy, checks limits.
//!
//! Limits are checked here, before anything runs, so that all devices report an exceeded limit in the same form.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::stop::Stop;
use runner_backend::{BufferId, Device, DeviceError, KernelId, Launch, LaunchArg, ModuleId, Prepare, Struct};
use runner_lang::{Program, Scope};
use runner_types::{
    ArgPlan, BlockPlan, CompileKey, Compiled, Dim3, FieldAddress, GridPlan, KernelResources, LaunchPlan, LaunchRecord,
    Outcome, Persist, Value, lay_out, limits,
};

/// Modules loaded for a group, with their variables' initial content. Cases that share compiled code share its module.
#[derive(Debug, Default)]
pub struct Modules {
    loaded: Vec<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    key: CompileKey,
    module: ModuleId,
    variables: Vec<Variable>,
    /// Whether a case has used the module.
    is_used: bool,
}

/// A variable that the kernels of a module can write.
#[derive(Debug)]
pub struct Variable {
    /// Mangled name.
    pub name: String,
    pub id: BufferId,
    /// Content when the module was loaded.
    pub initial: Rc<[u8]>,
    /// Initial content on the device, present once a launch has written the variable. The variable is then restored
    /// before every launch.
    pub restored_from: Option<BufferId>,
}

impl Variable {
    /// Operation that restores it, if the device holds its initial content.
    pub fn restoration(&self) -> Option<Prepare> {
        self.restored_from.map(|from| Prepare::Copy { from, to: self.id })
    }
}

impl Modules {
    /// Module for compiled code, loaded on first use.
    pub fn load(&mut self, device: &mut dyn Device, code: &Compiled) -> Result<ModuleId, Stop> {
        if let Some(loaded) = self.loaded.iter().find(|loaded| loaded.key == code.key) {
            return Ok(loaded.module);
        }
        let _span = tracing::debug_span!("load a module", key = %code.key.0).entered();
        let module = device.load(code)?;
        self.loaded.push(Loaded { key: code.key.clone(), module, variables: Vec::new(), is_used: false });
        let is_profiled = device.counter().is_some_and(|counter| counter.marks_launches());
        if !is_profiled {
            self.keep_variables(device, module)?;
        }
        Ok(module)
    }

    /// Records the content of the last loaded module's variables.
    fn keep_variables(&mut self, device: &mut dyn Device, module: ModuleId) -> Result<(), DeviceError> {
        let names = device.variables(module)?;
        let ids = names.iter().map(|name| device.symbol(module, name)).collect::<Result<Vec<_>, _>>()?;
        let initial = device.download_all(&ids)?;
        if let Some(loaded) = self.loaded.last_mut() {
            let kept = names.into_iter().zip(ids).zip(initial);
            loaded.variables = kept
                .map(|((name, id), initial)| Variable { name, id, initial: initial.into(), restored_from: None })
                .collect();
        }
        Ok(())
    }

    /// Variables of a module; none under a profiler, which measures only one launch.
    pub fn variables(&self, module: ModuleId) -> &[Variable] {
        self.loaded.iter().find(|loaded| loaded.module == module).map_or(&[], |loaded| &loaded.variables)
    }

    /// Has a variable restored before later launches, from a buffer that holds its initial content.
    pub fn restore_from(&mut self, variable: BufferId, initial: BufferId) {
        let mut variables = self.loaded.iter_mut().flat_map(|loaded| &mut loaded.variables);
        if let Some(known) = variables.find(|known| known.id == variable) {
            known.restored_from = Some(initial);
        }
    }

    pub fn variable(&self, module: ModuleId, name: &str) -> Option<&Variable> {
        self.variables(module).iter().find(|variable| variable.name == name)
    }

    /// Restores all variables of a module if an earlier case may have written them.
    pub fn begin(&mut self, device: &mut dyn Device, module: ModuleId) -> Result<(), DeviceError> {
        let Some(loaded) = self.loaded.iter_mut().find(|loaded| loaded.module == module) else { return Ok(()) };
        if !std::mem::replace(&mut loaded.is_used, true) {
            return Ok(());
        }
        loaded.variables.iter().try_for_each(|variable| device.upload(variable.id, 0, &variable.initial))
    }

    /// Unloads everything. A module that cannot be unloaded is freed with the device.
    pub fn unload(&mut self, device: &mut dyn Device) {
        for Loaded { module, variables, .. } in self.loaded.drain(..) {
            for Variable { id, restored_from, .. } in variables {
                let _ = device.free(id);
                restored_from.map(|initial| device.free(initial));
            }
            let _ = device.unload(module);
        }
    }
}

pub fn compiled(plan: &LaunchPlan) -> Result<&Compiled, Stop> {
    plan.compiled.as_ref().ok_or_else(|| Stop::launch_error(format!("`{}` was not compiled", plan.kernel)))
}

/// Resolves a launch. `buffer` returns the memory of a named buffer.
pub fn resolve(
    device: &mut dyn Device,
    modules: &mut Modules,
    plan: &LaunchPlan,
    buffer: &dyn Fn(&str) -> Option<BufferId>,
) -> Result<(Launch, LaunchRecord), Stop> {
    let code = compiled(plan)?;
    let module = modules.load(device, code)?;
    let kernel = device.kernel(module, plan.mangled())?;
    let known = code.resources.get(&plan.kernel).copied().unwrap_or_default();
    let resources = merged(device.resources(kernel)?, known);
    let settings = plan.settings;
    limits::shared(device.info(), &resources, settings.shared_bytes()).map_err(invalid)?;
    let shared = settings.shared_bytes() as u32;
    let block = block(device, kernel, plan, shared)?;
    // First, since a block beyond the limits has no occupancy.
    let block = limits::block(device.info(), &resources, block).map_err(invalid)?;
    let occupancy = device.occupancy(kernel, block.count() as u32, shared)?;
    let resident = u64::from(occupancy.blocks_per_sm) * u64::from(device.info().sm_count);
    let grid = limits::grid(device.info(), grid(plan, block, resident)?).map_err(invalid)?;
    if let (Some(given), Some(own)) = (plan.cluster, resources.cluster)
        && given != own
    {
        let dims = |[x, y, z]: [u32; 3]| format!("{x}×{y}×{z}");
        let message = format!("`cluster` is {}, but the kernel is compiled for {}", dims(given), dims(own));
        return Err(invalid(message));
    }
    let resources = KernelResources { cluster: plan.cluster.or(resources.cluster), ..resources };
    limits::clusters(&resources, grid).map_err(invalid)?;
    if settings.cooperative {
        limits::cooperative(device.info()).and_then(|()| limits::resident(grid, resident)).map_err(invalid)?;
    }
    let args = plan.args.iter().map(|arg| argument(arg, &code.symbols, buffer)).collect::<Result<_, _>>()?;
    let record = LaunchRecord {
        label: plan.label.clone(),
        grid,
        block,
        shared,
        resources,
        occupancy: Some(occupancy),
        stream: settings.stream_index() as u32,
    };
    let persist = plan.persist.as_ref().map(|persist| persisted(persist, buffer)).transpose()?;
    Ok((Launch { kernel, grid, block, args, settings, cluster: plan.cluster, persist }, record))
}

fn persisted(plan: &Persist, buffer: &dyn Fn(&str) -> Option<BufferId>) -> Result<Persist<BufferId>, Stop> {
    let missing = || format!("`persist` refers to a buffer `{}` that the case does not have", plan.buffer);
    let buffer = buffer(&plan.buffer).ok_or_else(|| Stop::unresolved(missing()))?;
    Ok(Persist { buffer, ratio: plan.ratio })
}

fn invalid(limit: String) -> Stop {
    Stop::Case(Outcome::Invalid { limit })
}

/// Resources that the device reports, completed with the compiler's report (spills).
fn merged(device: KernelResources, compiler: KernelResources) -> KernelResources {
    KernelResources {
        registers: device.registers.or(compiler.registers),
        shared_static: device.shared_static.or(compiler.shared_static),
        local: device.local.or(compiler.local),
        spill_stores: device.spill_stores.or(compiler.spill_stores),
        spill_loads: device.spill_loads.or(compiler.spill_loads),
        max_threads: device.max_threads.or(compiler.max_threads),
        cluster: device.cluster.or(compiler.cluster),
    }
}

fn block(device: &dyn Device, kernel: KernelId, plan: &LaunchPlan, shared: u32) -> Result<[u64; 3], Stop> {
    match &plan.block {
        BlockPlan::Fixed(dims) => Ok(*dims),
        BlockPlan::Occupancy => Ok([u64::from(device.best_block(kernel, shared)?), 1, 1]),
    }
}

fn grid(plan: &LaunchPlan, block: Dim3, resident: u64) -> Result<[u64; 3], Stop> {
    match &plan.grid {
        GridPlan::Fixed(dims) => Ok(*dims),
        GridPlan::Occupancy if resident == 0 => {
            Err(invalid(format!("no block of {} threads fits on an SM", block.count())))
        }
        GridPlan::Occupancy => Ok([resident, 1, 1]),
        GridPlan::AfterBlock { dims, scope } => {
            let mut names: Scope = scope.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            names.set("occupancy_block", Value::Int(block.count() as i64));
            let mut grid = [1; 3];
            for (extent, text) in grid.iter_mut().zip(dims) {
                let value = Program::parse(text).and_then(|program| program.evaluate_u64(&names));
                *extent = value.map_err(|e| Stop::unresolved(format!("grid `{text}`: {e}")))?;
            }
            Ok(grid)
        }
    }
}

fn by_value(bytes: &[u8], addresses: &[(usize, BufferId, u64)]) -> Result<LaunchArg, Stop> {
    let value = Struct::new(bytes, addresses).map(LaunchArg::Struct);
    value.ok_or_else(|| Stop::unresolved(format!("a struct of {} bytes has an address beyond its end", bytes.len())))
}

/// Builds an argument. `symbols` maps the unit's variables to their mangled names.
pub fn argument(
    plan: &ArgPlan,
    symbols: &BTreeMap<String, String>,
    buffer: &dyn Fn(&str) -> Option<BufferId>,
) -> Result<LaunchArg, Stop> {
    let memory = |name: &str| {
        let missing = || format!("the launch takes a buffer `{name}` that the case does not have");
        buffer(name).ok_or_else(|| Stop::unresolved(missing()))
    };
    let addressed = |bytes: &[u8], addresses: &[FieldAddress]| {
        let address = |field: &FieldAddress| Ok((field.at, memory(&field.buffer)?, field.bytes));
        by_value(bytes, &addresses.iter().map(address).collect::<Result<Vec<_>, Stop>>()?)
    };
    match plan {
        ArgPlan::Scalar(value) => Ok(LaunchArg::Scalar(*value)),
        ArgPlan::Buffer(name) => memory(name).map(LaunchArg::Buffer),
        ArgPlan::Texture(texture) => memory(&texture.buffer).map(|id| LaunchArg::Texture(texture.with_buffer(id))),
        ArgPlan::Offset { buffer, bytes } => memory(buffer).map(|id| LaunchArg::Offset(id, *bytes)),
        ArgPlan::Struct(bytes) => by_value(bytes, &[]),
        ArgPlan::Addressed { bytes, addresses } => addressed(bytes, addresses),
        ArgPlan::Named { layout, fields } => {
            let mangled = symbols.get(layout).map_or("", String::as_str);
            let (bytes, addresses) =
                lay_out(fields, mangled).map_err(|why| Stop::unresolved(format!("args: {why}")))?;
            addressed(&bytes, &addresses)
        }
    }
}

#[cfg(test)]
mod tests;
