//! From the plan of a launch to the launch itself: code loaded, occupancy asked, limits judged.
//!
//! Limits are judged here, before anything runs, so that a row says which one it met in one form for all devices.

use super::stop::Stop;
use crate::backend::{BufferId, Device, KernelId, Launch, LaunchArg, ModuleId};
use crate::expr::{Engine, Scope};
use crate::model::{
    ArgPlan, BlockPlan, CompileKey, Compiled, DeviceInfo, Dim3, GridPlan, KernelResources, LaunchPlan, LaunchRecord,
    Outcome, Value,
};

/// Modules loaded for a group; cases that share compiled code share its module.
#[derive(Debug, Default)]
pub struct Modules {
    loaded: Vec<(CompileKey, ModuleId)>,
}

impl Modules {
    /// The module of compiled code, loaded when it is first asked for.
    pub fn of(&mut self, device: &mut dyn Device, code: &Compiled) -> Result<ModuleId, Stop> {
        if let Some((_, module)) = self.loaded.iter().find(|(key, _)| *key == code.key) {
            return Ok(*module);
        }
        let module = device.load(code)?;
        self.loaded.push((code.key.clone(), module));
        Ok(module)
    }

    /// Unloads everything. A module that stays is freed with the device.
    pub fn unload(&mut self, device: &mut dyn Device) {
        for (_, module) in self.loaded.drain(..) {
            let _ = device.unload(module);
        }
    }
}

pub fn compiled(plan: &LaunchPlan) -> Result<&Compiled, Stop> {
    plan.compiled.as_ref().ok_or_else(|| Stop::launch_error(format!("`{}` was not compiled", plan.kernel)))
}

/// Makes a launch ready. `buffer` gives the memory of a named buffer.
pub fn resolve(
    device: &mut dyn Device,
    modules: &mut Modules,
    plan: &LaunchPlan,
    buffer: &dyn Fn(&str) -> Option<BufferId>,
) -> Result<(Launch, LaunchRecord), Stop> {
    let code = compiled(plan)?;
    let module = modules.of(device, code)?;
    let kernel = device.kernel(module, plan.mangled())?;
    let known = code.resources.get(&plan.kernel).copied().unwrap_or_default();
    let resources = merged(device.resources(kernel)?, known);
    let shared = u32::try_from(plan.shared).map_err(|_| too_much_shared(device.info(), &resources, plan.shared))?;
    let block = block(device, kernel, plan, shared)?;
    // Before the occupancy is asked: of a block past the limits there is none.
    let block = judge_block(device.info(), &resources, block, shared).map_err(invalid)?;
    let occupancy = device.occupancy(kernel, block.count() as u32, shared)?;
    let resident = u64::from(occupancy.blocks_per_sm) * u64::from(device.info().sm_count);
    let grid = judge_grid(device.info(), grid(plan, block, resident)?).map_err(invalid)?;
    if plan.cooperative {
        judge_cooperative(device.info(), grid, resident).map_err(invalid)?;
    }
    let args = plan.args.iter().map(|arg| argument(arg, buffer)).collect::<Result<_, _>>()?;
    let record = LaunchRecord {
        label: plan.label.clone(),
        grid,
        block,
        shared,
        resources,
        occupancy: Some(occupancy),
        stream: plan.stream,
    };
    Ok((Launch { kernel, grid, block, shared, cooperative: plan.cooperative, args, stream: plan.stream }, record))
}

fn invalid(limit: String) -> Stop {
    Stop::Case(Outcome::Invalid { limit })
}

/// The device knows best; what it does not say (spills), the compiler may have.
fn merged(device: KernelResources, compiler: KernelResources) -> KernelResources {
    KernelResources {
        registers: device.registers.or(compiler.registers),
        shared_static: device.shared_static.or(compiler.shared_static),
        local: device.local.or(compiler.local),
        spill_stores: device.spill_stores.or(compiler.spill_stores),
        spill_loads: device.spill_loads.or(compiler.spill_loads),
        max_threads: device.max_threads.or(compiler.max_threads),
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
            Err(invalid(format!("no block of {} threads fits an SM", block.count())))
        }
        GridPlan::Occupancy => Ok([resident, 1, 1]),
        GridPlan::AfterBlock { dims, scope } => {
            let mut names: Scope = scope.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
            names.set("occupancy_block", Value::Int(block.count() as i64));
            let engine = Engine::new();
            let mut grid = [1; 3];
            for (extent, text) in grid.iter_mut().zip(dims) {
                let value = engine.parse(text).and_then(|program| engine.evaluate_u64(&program, &names));
                *extent = value.map_err(|e| Stop::unresolved(format!("grid `{text}`: {e}")))?;
            }
            Ok(grid)
        }
    }
}

pub fn argument(plan: &ArgPlan, buffer: &dyn Fn(&str) -> Option<BufferId>) -> Result<LaunchArg, Stop> {
    match plan {
        ArgPlan::Scalar(value) => Ok(LaunchArg::Scalar(*value)),
        ArgPlan::Buffer(name) => buffer(name)
            .map(LaunchArg::Buffer)
            .ok_or_else(|| Stop::unresolved(format!("the launch takes a buffer `{name}` that the case does not have"))),
    }
}

const AXES: [char; 3] = ['x', 'y', 'z'];

/// A block within the limits of the device and the kernel; else the limit, in words.
fn judge_block(info: &DeviceInfo, resources: &KernelResources, block: [u64; 3], shared: u32) -> Result<Dim3, String> {
    let threads = block.iter().fold(1u64, |product, extent| product.saturating_mul(*extent));
    if threads == 0 {
        return Err(format!("a block of {} × {} × {} threads", block[0], block[1], block[2]));
    }
    let allowed = u64::from(info.max_threads_per_block);
    if threads > allowed {
        return Err(format!("{threads} threads a block, the device allows {allowed}"));
    }
    let dims = within(block, info.max_block_dim, "threads")?;
    if let Some(allowed) = resources.max_threads.filter(|allowed| threads > u64::from(*allowed)) {
        return Err(format!("{threads} threads a block, the kernel's registers and bounds allow {allowed}"));
    }
    if needed_shared(resources, u64::from(shared)) > u64::from(info.shared_per_block_optin) {
        return Err(shared_text(info, resources, u64::from(shared)));
    }
    Ok(dims)
}

fn judge_grid(info: &DeviceInfo, grid: [u64; 3]) -> Result<Dim3, String> {
    if grid.contains(&0) {
        return Err(format!("a grid of {} × {} × {} blocks", grid[0], grid[1], grid[2]));
    }
    within(grid, info.max_grid_dim, "blocks")
}

fn judge_cooperative(info: &DeviceInfo, grid: Dim3, resident: u64) -> Result<(), String> {
    if !info.cooperative_launch {
        return Err("a cooperative launch, which the device does not have".to_owned());
    }
    if grid.count() > resident {
        return Err(format!("{} blocks in a cooperative launch, {resident} reside on the device", grid.count()));
    }
    Ok(())
}

fn within(extents: [u64; 3], allowed: Dim3, what: &str) -> Result<Dim3, String> {
    for ((extent, allowed), axis) in extents.iter().zip([allowed.x, allowed.y, allowed.z]).zip(AXES) {
        if *extent > u64::from(allowed) {
            return Err(format!("{extent} {what} along {axis}, the device allows {allowed}"));
        }
    }
    Ok(Dim3::new(extents[0] as u32, extents[1] as u32, extents[2] as u32))
}

fn needed_shared(resources: &KernelResources, dynamic: u64) -> u64 {
    dynamic.saturating_add(u64::from(resources.shared_static.unwrap_or(0)))
}

fn too_much_shared(info: &DeviceInfo, resources: &KernelResources, dynamic: u64) -> Stop {
    invalid(shared_text(info, resources, dynamic))
}

fn shared_text(info: &DeviceInfo, resources: &KernelResources, dynamic: u64) -> String {
    let (needed, allowed) = (needed_shared(resources, dynamic), info.shared_per_block_optin);
    format!("{needed} bytes of shared memory a block, the device allows {allowed}")
}

#[cfg(test)]
mod tests;
