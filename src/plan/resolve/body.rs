//! Launches, with their translation units.

use std::path::Path;

use crate::expr::Program;
use crate::expr::template::{Style, TemplateProgram};
use crate::model::{ArgPlan, BlockPlan, BodyPlan, CompileUnit, GridPlan, HostPlan, LaunchPlan, Plugin, Value};

use super::{Place, Worked, Worker, unresolved};
use crate::plan::recipe::{ArgRecipe, BodyRecipe, CompileRecipe, HostRecipe, LaunchRecipe, NTH, OCCUPANCY_BLOCK};

/// Most repetitions of a launch: what is queued for one run must have an end.
const MOST_REPEATED: u64 = 1024;

/// Launches from kernels that may be at a time: a device sets memory aside for each.
const MOST_PENDING: u32 = 1 << 20;

/// Streams of a body: as many kernels as any GPU runs beside each other.
const MOST_STREAMS: u32 = 128;

impl Worker<'_> {
    pub fn body(&self) -> Worked<BodyPlan> {
        Ok(match &self.recipe.body {
            BodyRecipe::Launches(launches) => BodyPlan::Launches(self.launches(launches)?),
            BodyRecipe::Memcpy(pairs) => BodyPlan::Memcpy(pairs.clone()),
            BodyRecipe::Cpu(reference) => BodyPlan::Cpu(reference.resolve(self.engine, self.scope).place("cpu")?),
            BodyRecipe::Host(host) => BodyPlan::Host(Box::new(self.host(host)?)),
        })
    }

    fn host(&self, recipe: &HostRecipe) -> Worked<HostPlan> {
        let function = recipe.function.render(self.engine, self.scope, Style::Names).place("host")?;
        let libraries = recipe.libraries.iter().map(|library| self.cpp(library, "libraries"));
        let plugin = Some(Plugin { libraries: libraries.collect::<Worked<_>>()? });
        let unit = CompileUnit { plugin, ..self.unit(&recipe.source, &recipe.compile, &function)? };
        Ok(HostPlan { unit, compiled: None, function, args: self.args(&recipe.args)? })
    }

    fn launches(&self, recipes: &[LaunchRecipe]) -> Worked<Vec<LaunchPlan>> {
        let mut launches = Vec::with_capacity(recipes.len());
        for recipe in recipes {
            self.repeat(recipe, &mut launches)?;
        }
        share_units(&mut launches, self.symbols()?);
        Ok(launches)
    }

    /// One launch, or one after the other with the number of each in scope.
    fn repeat(&self, recipe: &LaunchRecipe, launches: &mut Vec<LaunchPlan>) -> Worked<()> {
        let Some(program) = &recipe.repeat else {
            launches.push(self.launch(recipe)?);
            return Ok(());
        };
        let count = self.engine.evaluate_u64(program, self.scope).place("repeat")?;
        if !(1..=MOST_REPEATED).contains(&count) {
            let message =
                format!("`{}` is {count}, and a launch is repeated 1 to {MOST_REPEATED} times", program.text());
            return Err(unresolved("repeat", &message));
        }
        for nth in 0..count {
            let mut scope = self.scope.clone();
            scope.set(NTH, Value::Int(nth as i64));
            launches.push(Worker { scope: &scope, ..*self }.launch(recipe)?);
        }
        Ok(())
    }

    fn stream(&self, recipe: &LaunchRecipe) -> Worked<u32> {
        let Some(program) = &recipe.stream else { return Ok(0) };
        let stream = self.engine.evaluate_u64(program, self.scope).place("stream")?;
        let known = u32::try_from(stream).ok().filter(|stream| *stream < MOST_STREAMS);
        known.ok_or_else(|| {
            let message = format!("`{}` is {stream}, and there are streams 0 to {}", program.text(), MOST_STREAMS - 1);
            unresolved("stream", &message)
        })
    }

    fn pending_launches(&self, recipe: &LaunchRecipe) -> Worked<Option<u32>> {
        let Some(program) = &recipe.pending_launches else { return Ok(None) };
        let pending = self.engine.evaluate_u64(program, self.scope).place("pending_launches")?;
        let known = u32::try_from(pending).ok().filter(|pending| (1..=MOST_PENDING).contains(pending));
        known.map(Some).ok_or_else(|| {
            let message = format!("`{}` is {pending}, and 1 to {MOST_PENDING} launches may be", program.text());
            unresolved("pending_launches", &message)
        })
    }

    fn launch(&self, recipe: &LaunchRecipe) -> Worked<LaunchPlan> {
        let kernel = self.cpp(&recipe.kernel, "kernel")?;
        Ok(LaunchPlan {
            label: recipe.label.clone().unwrap_or_else(|| kernel.clone()),
            unit: self.unit(&recipe.source, &recipe.compile, &kernel)?,
            compiled: None,
            kernel,
            grid: self.grid(recipe)?,
            block: match &recipe.block {
                Some(dims) => BlockPlan::Fixed(self.extent(dims, "block")?),
                None => BlockPlan::Occupancy,
            },
            shared: match &recipe.shared {
                Some(program) => self.engine.evaluate_u64(program, self.scope).place("shared")?,
                None => 0,
            },
            cooperative: recipe.cooperative,
            args: self.args(&recipe.args)?,
            stream: self.stream(recipe)?,
            pending_launches: self.pending_launches(recipe)?,
        })
    }

    /// The unit of one launch alone; [`share_units`] brings equal ones together.
    fn unit(&self, source: &Path, recipe: &CompileRecipe, kernel: &str) -> Worked<CompileUnit> {
        let define = |(name, value): &(String, TemplateProgram)| Ok((name.clone(), self.cpp(value, "defines")?));
        let max_registers = recipe.max_registers.as_ref().map(|program| {
            let count = self.engine.evaluate_u64(program, self.scope).place("max_registers")?;
            let message = || format!("`{}` is {count}, and a thread has 1 to 255 registers", program.text());
            match u32::try_from(count) {
                Ok(count @ 1..=255) => Ok(count),
                _ => Err(unresolved("max_registers", &message())),
            }
        });
        Ok(CompileUnit {
            source: source.to_owned(),
            kernels: vec![kernel.to_owned()],
            symbols: Vec::new(),
            defines: recipe.defines.iter().map(define).collect::<Worked<_>>()?,
            options: recipe.options.iter().map(|option| self.cpp(option, "options")).collect::<Worked<_>>()?,
            include_paths: recipe.include_paths.clone(),
            debug: recipe.debug,
            max_registers: max_registers.transpose()?,
            relocatable: recipe.relocatable,
            plugin: None,
        })
    }

    /// The `__device__` variables that buffers of the case lie in.
    fn symbols(&self) -> Worked<Vec<String>> {
        let templates = self.recipe.buffers.iter().filter_map(|buffer| buffer.symbol.as_ref());
        templates.map(|template| self.cpp(template, "symbol")).collect()
    }

    fn cpp(&self, template: &TemplateProgram, place: &str) -> Worked<String> {
        template.render(self.engine, self.scope, Style::Cpp).place(place)
    }

    fn grid(&self, recipe: &LaunchRecipe) -> Worked<GridPlan> {
        let Some(dims) = &recipe.grid else { return Ok(GridPlan::Occupancy) };
        if !dims.iter().any(|dim| dim.names().contains(OCCUPANCY_BLOCK)) {
            return Ok(GridPlan::Fixed(self.extent(dims, "grid")?));
        }
        let names = dims.iter().flat_map(Program::names);
        let scope = names.filter_map(|name| Some((name.clone(), self.scope.get(name)?.clone()))).collect();
        Ok(GridPlan::AfterBlock { dims: dims.iter().map(|dim| dim.text().to_owned()).collect(), scope })
    }

    /// One to three dimensions; those that are not written are 1.
    fn extent(&self, dims: &[Program], place: &str) -> Worked<[u64; 3]> {
        let mut extent = [1; 3];
        for (value, dim) in extent.iter_mut().zip(dims) {
            *value = self.engine.evaluate_u64(dim, self.scope).place(place)?;
        }
        Ok(extent)
    }

    fn args(&self, recipes: &[ArgRecipe]) -> Worked<Vec<ArgPlan>> {
        recipes.iter().map(|arg| self.arg(arg)).collect()
    }

    fn arg(&self, recipe: &ArgRecipe) -> Worked<ArgPlan> {
        Ok(match recipe {
            ArgRecipe::Buffer(name) => ArgPlan::Buffer(name.clone()),
            ArgRecipe::Scalar { element, value } => ArgPlan::Scalar(self.scalar(element, value)?),
        })
    }
}

/// Gives launches that agree in source and options one unit with all their kernels. Symbols go to the first launch's.
fn share_units(launches: &mut [LaunchPlan], mut symbols: Vec<String>) {
    symbols.sort();
    symbols.dedup();
    if let [launch] = launches {
        launch.unit.symbols = symbols;
        return;
    }
    let mut units: Vec<CompileUnit> = Vec::new();
    for launch in launches.iter() {
        match units.iter_mut().find(|unit| agree(unit, &launch.unit)) {
            Some(unit) => unit.kernels.push(launch.kernel.clone()),
            None => units.push(launch.unit.clone()),
        }
    }
    if let Some(unit) = units.first_mut() {
        unit.symbols = symbols;
    }
    for unit in &mut units {
        unit.kernels.sort();
        unit.kernels.dedup();
    }
    for launch in launches {
        if let Some(unit) = units.iter().find(|unit| agree(unit, &launch.unit)) {
            launch.unit = unit.clone();
        }
    }
}

/// Whether two units differ in nothing but what is wanted from them.
fn agree(a: &CompileUnit, b: &CompileUnit) -> bool {
    a.source == b.source
        && a.defines == b.defines
        && a.options == b.options
        && a.include_paths == b.include_paths
        && a.debug == b.debug
        && a.max_registers == b.max_registers
        && a.relocatable == b.relocatable
}
