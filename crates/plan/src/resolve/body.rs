//! Resolves launches: their numbers, arguments and translation units.
//!
//! Launches with the same source and options share a unit, and thus their `__device__` variables.

use std::ops::RangeInclusive;
use std::path::Path;

use runner_experiment::{
    ArgSpec, BlockSpec, BodySpec, BuiltinSpec, CompileSpec, Expression, GridSpec, HostSpec, LaunchSpec, Template,
    TextureSpec,
};
use runner_lang::template::Style;
use runner_types::{
    ArgPlan, BlockPlan, BodyPlan, BufferPlan, CompileUnit, FieldAddress, GridPlan, HostPlan, LaunchPlan,
    LaunchSettings, NamedField, Persist, Plugin, Setting, SourceForm, StepsPlan, Texture, Value, layout_symbol,
};

use super::{AtPlace, CaseEvaluator, Worked, unresolved};
use crate::recipe::{NTH, OCCUPANCY_BLOCK};

impl CaseEvaluator<'_> {
    /// The body of the case, and the order of its launches unless each is made once.
    pub fn body(&self, buffers: &[BufferPlan]) -> Worked<(BodyPlan, Option<StepsPlan>)> {
        let body = match &self.recipe.body {
            BodySpec::Launches { launches, steps: Some(steps), .. } => {
                let (mut launches, steps) = self.steps(launches, steps, buffers)?;
                share_units(&mut launches, self.symbols()?);
                return Ok((BodyPlan::Launches(launches), Some(steps)));
            }
            BodySpec::Launches { rounds, launches, .. } => {
                BodyPlan::Launches(self.launches(rounds.as_ref(), launches)?)
            }
            BodySpec::Builtin(BuiltinSpec::Memcpy(pairs)) => BodyPlan::Memcpy(pairs.clone()),
            BodySpec::Cpu(reference) => BodyPlan::Cpu(reference.resolve(self.scope).place("cpu")?),
            BodySpec::Host(host) => BodyPlan::Host(Box::new(self.host(host)?)),
        };
        Ok((body, None))
    }

    fn host(&self, recipe: &HostSpec) -> Worked<HostPlan> {
        let function = recipe.function.render(self.scope, Style::Names).place("host")?;
        let libraries = recipe.libraries.iter().map(|library| self.cpp(library, "libraries"));
        let plugin = Some(Plugin { libraries: libraries.collect::<Worked<_>>()? });
        let unit = CompileUnit { plugin, ..self.unit(&recipe.source, &recipe.compile, &function)? };
        let args = self.args(&recipe.args, &function)?;
        Ok(HostPlan { unit, compiled: None, function, args })
    }

    /// All launches of one run, in order. Every round repeats the whole sequence.
    fn launches(&self, rounds: Option<&Expression>, recipes: &[LaunchSpec]) -> Worked<Vec<LaunchPlan>> {
        let mut launches = Vec::with_capacity(recipes.len());
        self.repeat(rounds, 1, &mut |round, rounds| {
            for recipe in recipes {
                round.repeat(recipe.repeat.as_ref(), rounds, &mut |worker, _| {
                    launches.push(worker.launch(recipe)?);
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        share_units(&mut launches, self.symbols()?);
        Ok(launches)
    }

    /// Runs `step` `count` times, or once if there is no count, with the index of the repetition in scope. `step`
    /// receives the total number of repetitions, including those of the `outer` loop.
    pub fn repeat(
        &self,
        count: Option<&Expression>,
        outer: u64,
        step: &mut dyn FnMut(&CaseEvaluator<'_>, u64) -> Worked<()>,
    ) -> Worked<()> {
        let Some(program) = count else { return step(self, outer) };
        let count = self.bounded_integer(program, "repeat", &LaunchSpec::REPEATS)?;
        let total = outer.saturating_mul(count);
        if !LaunchSpec::REPEATS.contains(&total) {
            let most = LaunchSpec::REPEATS.end();
            let message =
                format!("{outer} rounds of {count} repetitions are {total}, but at most {most} can be queued");
            return Err(unresolved("repeat", &message));
        }
        for nth in 0..count {
            let mut scope = self.scope.clone();
            scope.set(NTH, Value::Int(nth as i64));
            step(&CaseEvaluator { scope: &scope, ..*self }, total)?;
        }
        Ok(())
    }

    /// Evaluates to an integer within bounds.
    pub fn bounded_integer(&self, program: &Expression, place: &str, bounds: &RangeInclusive<u64>) -> Worked<u64> {
        let value = program.evaluate_u64(self.scope).place(place)?;
        if bounds.contains(&value) {
            return Ok(value);
        }
        let (least, most) = (bounds.start(), bounds.end());
        Err(unresolved(place, &format!("`{}` is {value}, but must be from {least} to {most}", program.text())))
    }

    /// Value of a setting, within its bounds.
    fn setting(&self, setting: &Setting, program: &Expression) -> Worked<i64> {
        let (least, most) = setting.bounds.unwrap_or((i64::MIN, i64::MAX));
        match u64::try_from(least) {
            Ok(least) => self.bounded_integer(program, setting.name, &(least..=most as u64)).map(|value| value as i64),
            // Settings that may be negative are clamped to their bounds.
            Err(_) => Ok(program.evaluate_i64(self.scope).place(setting.name)?.clamp(least, most)),
        }
    }

    pub fn launch(&self, recipe: &LaunchSpec) -> Worked<LaunchPlan> {
        if recipe.lets.is_empty() {
            return self.launch_in_scope(recipe);
        }
        let scope = self.bound(&recipe.lets)?;
        CaseEvaluator { scope: &scope, ..*self }.launch_in_scope(recipe)
    }

    fn launch_in_scope(&self, recipe: &LaunchSpec) -> Worked<LaunchPlan> {
        // Only C++ has its own spelling of element types.
        let style = if SourceForm::from_path(&recipe.source) == SourceForm::Cuda { Style::Cpp } else { Style::Names };
        let kernel = recipe.kernel.render(self.scope, style).place("kernel")?;
        let args = self.args(&recipe.args, &kernel)?;
        let mut unit = self.unit(&recipe.source, &recipe.compile, &kernel)?;
        unit.symbols.extend(args.iter().filter_map(|arg| match arg {
            ArgPlan::Named { layout, .. } => Some(layout.clone()),
            _ => None,
        }));
        Ok(LaunchPlan {
            label: recipe.label.clone().unwrap_or_else(|| kernel.clone()),
            unit,
            compiled: None,
            kernel,
            grid: self.grid(recipe)?,
            block: match &recipe.block {
                BlockSpec::Dims(dims) => BlockPlan::Fixed(self.extent(dims, "block")?),
                BlockSpec::Occupancy => BlockPlan::Occupancy,
            },
            settings: self.settings(&recipe.settings)?,
            args,
            cluster: recipe.cluster.as_ref().map(|dims| self.cluster(dims)).transpose()?,
            persist: recipe.persist.as_ref().map(|persist| self.persist(persist)).transpose()?,
        })
    }

    fn settings(&self, recipe: &LaunchSettings<Expression>) -> Worked<LaunchSettings> {
        let settings = recipe.try_map(|setting, program| self.setting(setting, program))?;
        // A plan always states the amount of shared memory.
        Ok(LaunchSettings { shared: Some(settings.shared.unwrap_or(0)), ..settings })
    }

    fn cluster(&self, dims: &[Expression]) -> Worked<[u32; 3]> {
        Ok(self.extent(dims, "cluster")?.map(|extent| u32::try_from(extent).unwrap_or(u32::MAX)))
    }

    fn persist(&self, recipe: &Persist<String, Expression>) -> Worked<Persist> {
        let ratio = recipe.ratio.evaluate_f64(self.scope).place("persist")?;
        if !(ratio > 0.0 && ratio <= 1.0) {
            let message =
                format!("`{}` is {ratio}, but a ratio must be more than 0 and at most 1", recipe.ratio.text());
            return Err(unresolved("persist", &message));
        }
        Ok(Persist { buffer: recipe.buffer.clone(), ratio })
    }

    /// The unit of one launch. [`share_units`] merges equal ones.
    fn unit(&self, source: &Path, recipe: &CompileSpec, kernel: &str) -> Worked<CompileUnit> {
        let define = |(name, value): &(String, Template)| Ok((name.clone(), self.cpp(value, "defines")?));
        Ok(CompileUnit {
            source: source.to_owned(),
            kernels: vec![kernel.to_owned()],
            symbols: Vec::new(),
            defines: recipe.defines.iter().map(define).collect::<Worked<_>>()?,
            options: recipe.options.iter().map(|option| self.cpp(option, "options")).collect::<Worked<_>>()?,
            include_paths: recipe.include_paths.clone(),
            settings: recipe.settings.try_map(|setting, program| self.setting(setting, program))?,
            compiler: recipe.compiler,
            linked: recipe.linked.clone(),
            plugin: None,
        })
    }

    /// Names of the `__device__` variables that provide buffer memory.
    fn symbols(&self) -> Worked<Vec<String>> {
        let templates = self.recipe.buffers.iter().filter_map(|buffer| buffer.symbol.as_ref());
        templates.map(|template| self.cpp(template, "symbol")).collect()
    }

    fn cpp(&self, template: &Template, place: &str) -> Worked<String> {
        template.render(self.scope, Style::Cpp).place(place)
    }

    fn grid(&self, recipe: &LaunchSpec) -> Worked<GridPlan> {
        let GridSpec::Dims(dims) = &recipe.grid else { return Ok(GridPlan::Occupancy) };
        if !dims.iter().any(|dim| dim.names().contains(OCCUPANCY_BLOCK)) {
            return Ok(GridPlan::Fixed(self.extent(dims, "grid")?));
        }
        let names = dims.iter().flat_map(|dim| dim.names());
        let scope = names.filter_map(|name| Some((name.clone(), self.scope.get(name)?.clone()))).collect();
        Ok(GridPlan::AfterBlock { dims: dims.iter().map(|dim| dim.text().to_owned()).collect(), scope })
    }

    /// Extents in three dimensions; omitted ones are 1.
    fn extent(&self, dims: &[Expression], place: &str) -> Worked<[u64; 3]> {
        let mut extent = [1; 3];
        for (value, dim) in extent.iter_mut().zip(dims) {
            *value = dim.evaluate_u64(self.scope).place(place)?;
        }
        Ok(extent)
    }

    fn args(&self, recipes: &[ArgSpec], function: &str) -> Worked<Vec<ArgPlan>> {
        recipes.iter().enumerate().map(|(place, arg)| self.arg(arg, (function, place))).collect()
    }

    /// Byte offset of an address in a buffer. The address must be before the buffer's end.
    fn offset(&self, name: &str, offset: &Expression) -> Worked<u64> {
        let offset_value = offset.evaluate_u64(self.scope).place("args")?;
        let Some(recipe) = self.recipe.buffers.iter().find(|buffer| buffer.name == name) else {
            return Err(unresolved("args", &format!("the case has no buffer `{name}`")));
        };
        let (element, width) = self.element_or_vector(&recipe.element, "args")?;
        let len = recipe.len.evaluate_u64(self.scope).place("args")?;
        if offset_value >= len {
            let message = format!(
                "`{name} + {}` is {offset_value} elements from the beginning, but the buffer has {len}",
                offset.text()
            );
            return Err(unresolved("args", &message));
        }
        Ok(offset_value.saturating_mul(width).saturating_mul(element.size() as u64))
    }

    /// A struct field in C layout: every member is at a multiple of its alignment.
    fn field(&self, recipe: &ArgSpec) -> Worked<Laid> {
        match recipe {
            ArgSpec::Scalar { element, value } => {
                let value = self.scalar(element, value)?;
                let size = value.element.size();
                Ok(Laid { bytes: value.bits.to_le_bytes()[..size].to_vec(), addresses: Vec::new(), alignment: size })
            }
            ArgSpec::Buffer(name) => Ok(Laid::address(name, 0)),
            ArgSpec::Offset { buffer, offset } => Ok(Laid::address(buffer, self.offset(buffer, offset)?)),
            ArgSpec::Texture(_) => Err(unresolved("args", "a texture must be a separate argument, not a field")),
            ArgSpec::Named(_) => {
                Err(unresolved("args", "a struct in a list must be a list of its fields, without names"))
            }
            ArgSpec::Struct(fields) => {
                let mut whole = Laid::default();
                for field in fields {
                    whole.append(&self.field(field)?)?;
                }
                whole.bytes.resize(whole.bytes.len().next_multiple_of(whole.alignment), 0);
                Ok(whole)
            }
            ArgSpec::Array { of, count, align } => {
                let (element, mut whole) = (self.field(of)?, Laid::default());
                for _ in 0..count.evaluate_u64(self.scope).place("args")? {
                    whole.append(&element)?;
                }
                whole.alignment = whole.alignment.max(*align as usize);
                whole.bytes.resize(whole.bytes.len().next_multiple_of(whole.alignment), 0);
                Ok(whole)
            }
        }
    }

    /// Collects the named fields of a struct, with full paths for fields of nested structs.
    fn named(&self, path: &str, fields: &[(String, ArgSpec)], all: &mut Vec<NamedField>) -> Worked<()> {
        for (name, value) in fields {
            let dot = if path.is_empty() || name.starts_with('[') { "" } else { "." };
            let path = format!("{path}{dot}{name}");
            if let ArgSpec::Named(fields) = value {
                if fields.iter().any(|(name, _)| name.starts_with('[')) {
                    all.push(NamedField::array(&path));
                }
                self.named(&path, fields, all)?;
            } else {
                let Laid { bytes, addresses, .. } = self.field(value)?;
                all.push(NamedField { path, bytes, addresses });
            }
        }
        Ok(())
    }

    /// A texture or surface, after checking that devices support it and that it fits its buffer.
    fn texture(&self, recipe: &TextureSpec) -> Worked<Texture> {
        let (name, kind) = (&recipe.buffer, recipe.kind);
        let Some(buffer) = self.recipe.buffers.iter().find(|buffer| buffer.name == *name) else {
            return Err(unresolved("args", &format!("the case has no buffer `{name}`")));
        };
        let (element, width) = self.element_or_vector(&buffer.element, "args")?;
        let len = buffer.len.evaluate_u64(self.scope).place("args")?;
        let extents = self.extent(&recipe.size, "args")?.map(|extent| u32::try_from(extent).unwrap_or(u32::MAX));
        let shape = kind.shape(extents);
        let channels = width as u32;
        let texture = Texture { buffer: name.clone(), kind, shape, element, channels, sampler: recipe.sampler };
        let [x, y, z] = shape;
        let (needed, held) = (texture.bytes(), len.saturating_mul(width).saturating_mul(element.size() as u64));
        let problem = texture.violation().or_else(|| {
            let fits = x > 0 && y > 0 && z > 0 && needed <= held;
            let size = || format!("{x} × {y} × {z} texels have {needed} bytes, but the buffer has {held}");
            (!fits).then(size)
        });
        problem.map_or(Ok(texture), |why| Err(unresolved("args", &format!("a texture of `{name}`: {why}"))))
    }

    /// Resolves an argument. Structs with named fields need the kernel and the parameter's index.
    fn arg(&self, recipe: &ArgSpec, (kernel, parameter): (&str, usize)) -> Worked<ArgPlan> {
        Ok(match recipe {
            ArgSpec::Named(named) => {
                let mut fields = Vec::new();
                self.named("", named, &mut fields)?;
                ArgPlan::Named { layout: layout_symbol(kernel, parameter, &fields), fields }
            }
            ArgSpec::Buffer(name) => ArgPlan::Buffer(name.clone()),
            ArgSpec::Scalar { element, value } => ArgPlan::Scalar(self.scalar(element, value)?),
            ArgSpec::Texture(texture) => ArgPlan::Texture(self.texture(texture)?),
            ArgSpec::Offset { buffer, offset } => {
                ArgPlan::Offset { buffer: buffer.clone(), bytes: self.offset(buffer, offset)? }
            }
            ArgSpec::Struct(_) | ArgSpec::Array { .. } => {
                let Laid { bytes, addresses, .. } = self.field(recipe)?;
                if addresses.is_empty() { ArgPlan::Struct(bytes) } else { ArgPlan::Addressed { bytes, addresses } }
            }
        })
    }
}

/// One or more consecutive fields in C layout.
#[derive(Debug)]
struct Laid {
    bytes: Vec<u8>,
    addresses: Vec<FieldAddress>,
    alignment: usize,
}

impl Default for Laid {
    fn default() -> Self {
        Self { bytes: Vec::new(), addresses: Vec::new(), alignment: 1 }
    }
}

impl Laid {
    fn address(buffer: &str, bytes: u64) -> Self {
        let size = size_of::<u64>();
        let address = FieldAddress { at: 0, buffer: buffer.to_owned(), bytes };
        Self { bytes: vec![0; size], addresses: vec![address], alignment: size }
    }

    /// Appends a field. Fails if the total exceeds the size limit of kernel parameters.
    fn append(&mut self, field: &Self) -> Worked<()> {
        let (begin, most) = (self.bytes.len().next_multiple_of(field.alignment), ArgPlan::MOST_STRUCT_BYTES);
        let end = begin + field.bytes.len();
        if end > most {
            return Err(unresolved("args", &format!("a struct has {end} bytes, but at most {most} can be passed")));
        }
        self.bytes.resize(begin, 0);
        self.bytes.extend_from_slice(&field.bytes);
        let moved = |address: &FieldAddress| FieldAddress { at: begin + address.at, ..address.clone() };
        self.addresses.extend(field.addresses.iter().map(moved));
        self.alignment = self.alignment.max(field.alignment);
        Ok(())
    }
}

/// Merges the units of launches with the same source and options into one with all their kernels. Symbols go to the
/// first launch's unit.
fn share_units(launches: &mut [LaunchPlan], symbols: Vec<String>) {
    let mut units: Vec<CompileUnit> = Vec::new();
    for launch in launches.iter() {
        match units.iter_mut().find(|unit| agree(unit, &launch.unit)) {
            Some(unit) => {
                unit.kernels.push(launch.kernel.clone());
                unit.symbols.extend_from_slice(&launch.unit.symbols);
            }
            None => units.push(launch.unit.clone()),
        }
    }
    if let Some(unit) = units.first_mut() {
        unit.symbols.extend(symbols);
    }
    for unit in &mut units {
        unit.kernels.sort();
        unit.kernels.dedup();
        unit.symbols.sort();
        unit.symbols.dedup();
    }
    for launch in launches {
        if let Some(unit) = units.iter().find(|unit| agree(unit, &launch.unit)) {
            launch.unit = unit.clone();
        }
    }
}

/// Whether two units differ only in the requested kernels and symbols.
fn agree(a: &CompileUnit, b: &CompileUnit) -> bool {
    let of_source = |unit: &CompileUnit| CompileUnit { kernels: Vec::new(), symbols: Vec::new(), ..unit.clone() };
    of_source(a) == of_source(b)
}
