//! Resolves buffers, and numbers in the types of the device.

use std::path::PathBuf;

use runner_experiment::{BodySpec, BufferSpec, Expression, FileSpec, FillSpec, StructureSpec, Template, TensorSpec};
use runner_files::npy;
use runner_files::project::Project;
use runner_files::safetensors::Tensor;
use runner_lang::ExprError;
use runner_lang::template::Style;
use runner_types::{
    BufferPlan, ElementType, FilePart, FillPlan, ScalarValue, Sparse, Structure, SymbolPlan, Value, nearest_bf16,
    nearest_f16,
};

use super::{AtPlace, CaseEvaluator, Worked, unreadable, unresolved};

impl CaseEvaluator<'_> {
    pub fn buffers(&self) -> Worked<Vec<BufferPlan>> {
        self.recipe.buffers.iter().map(|recipe| self.buffer(recipe)).collect()
    }

    fn buffer(&self, recipe: &BufferSpec) -> Worked<BufferPlan> {
        let place = |key: &str| format!("buffers.{}.{key}", recipe.name);
        let (element, width) = self.element_or_vector(&recipe.element, &place("type"))?;
        let len = recipe.len.evaluate_u64(self.scope).place(&place("len"))?.saturating_mul(width);
        if len == 0 {
            return Err(unresolved(
                &place("len"),
                &format!("`{}` is 0, but a buffer needs at least one element", recipe.len.text()),
            ));
        }
        let fill = recipe.fill.as_ref().map(|fill| self.fill(fill, element, len, &place("fill"))).transpose()?;
        let symbol = recipe.symbol.as_ref().map(|symbol| {
            let name = symbol.render(self.scope, Style::Cpp).place(&place("symbol"))?;
            Ok(SymbolPlan { name, launch: 0 })
        });
        let symbol = symbol.transpose()?.filter(|_| matches!(self.recipe.body, BodySpec::Launches { .. }));
        let BufferSpec { access, allocate, vary, poison, .. } = *recipe;
        Ok(BufferPlan { name: recipe.name.clone(), element, len, fill, access, symbol, allocate, vary, poison })
    }

    /// Element type (or component type of a vector) that a template names, and the number of components.
    pub fn element_or_vector(&self, template: &Template, place: &str) -> Worked<(ElementType, u64)> {
        let name = template.render(self.scope, Style::Names).place(place)?;
        match ElementType::of_vector(name.trim()) {
            Some(vector) => Ok(vector),
            None => Ok((self.element(template, place)?, 1)),
        }
    }

    /// Element type that a template names.
    pub fn element(&self, template: &Template, place: &str) -> Worked<ElementType> {
        let name = template.render(self.scope, Style::Names).place(place)?;
        name.parse().map_err(|error: runner_types::UnknownElementType| unresolved(place, &error.to_string()))
    }

    fn fill(&self, recipe: &FillSpec, element: ElementType, len: u64, place: &str) -> Worked<FillPlan> {
        let number = |program: &Expression| {
            let value = program.evaluate(self.scope).place(place)?;
            as_element(element, value).map_err(|why| unresolved(place, &format!("`{}`: {why}", program.text())))
        };
        let float = |program: &Expression| program.evaluate_f64(self.scope).place(place);
        Ok(match recipe {
            FillSpec::Constant(value) => FillPlan::Constant(number(value)?),
            // A sequence that exceeds the range of its integer type wraps.
            FillSpec::Iota { start, step } => {
                FillPlan::Iota { start: number(start)?, step: self.step(step, element).place(place)? }
            }
            FillSpec::Uniform { low, high, seed } => {
                FillPlan::Uniform { low: number(low)?, high: number(high)?, seed: *seed }
            }
            FillSpec::Normal { mean, deviation, seed } => {
                FillPlan::Normal { mean: float(mean)?, deviation: float(deviation)?, seed: *seed }
            }
            FillSpec::Npy(file) => {
                let path = self.file(file, place)?;
                let header = npy::Header::read(&path).map_err(|error| unreadable(place, &path, &error))?;
                header
                    .check(element, Some(len))
                    .map_err(|why| unresolved(place, &format!("{} {why}", path.display())))?;
                FillPlan::Npy(path)
            }
            FillSpec::Raw(file) => FillPlan::Raw(self.raw_file(file, element, len, place)?),
            FillSpec::Tensor(tensor) => FillPlan::Part(self.tensor(tensor, element, Some(len), place)?),
            FillSpec::List(elements) => FillPlan::List(self.list(elements, element, Some(len), place)?),
            FillSpec::Like { buffer, fill } => {
                FillPlan::Like { buffer: buffer.clone(), fill: Box::new(self.fill(fill, element, len, place)?) }
            }
            FillSpec::Structured { structure, seed } => {
                FillPlan::Structured { structure: self.structure(structure, element, len, place)?, seed: *seed }
            }
        })
    }

    fn structure(&self, recipe: &StructureSpec, element: ElementType, len: u64, place: &str) -> Worked<Structure> {
        let number = |program: &Expression| {
            let value = program.evaluate(self.scope).place(place)?;
            as_element(element, value).map_err(|why| unresolved(place, &format!("`{}`: {why}", program.text())))
        };
        let count = |program: &Expression| program.evaluate_u64(self.scope).place(place);
        let at_least_one = |program: &Expression| match count(program)? {
            0 => Err(unresolved(place, &format!("`{}` is 0, but must be at least 1", program.text()))),
            count => Ok(count),
        };
        Ok(match recipe {
            StructureSpec::Sorted { low, high } => Structure::Sorted { low: number(low)?, high: number(high)? },
            StructureSpec::Permutation => Structure::Permutation,
            StructureSpec::OneHot(classes) => Structure::OneHot(at_least_one(classes)?),
            StructureSpec::Identity(columns) => Structure::Identity(at_least_one(columns)?),
            StructureSpec::Dominant(columns) => Structure::Dominant(at_least_one(columns)?),
            StructureSpec::Zipf { values, exponent } => {
                let exponent_value = exponent.evaluate_f64(self.scope).place(place)?;
                if !(exponent_value > 0.0 && exponent_value.is_finite()) {
                    return Err(unresolved(
                        place,
                        &format!("`{}` is {exponent_value}, but must be positive", exponent.text()),
                    ));
                }
                Structure::Zipf { values: at_least_one(values)?, exponent: exponent_value }
            }
            StructureSpec::CsrRows { nonzeros, columns } => {
                Structure::CsrRows(sparse(len, count(nonzeros)?, at_least_one(columns)?, place)?)
            }
            StructureSpec::CsrColumns { begins, nonzeros, columns, rows } => {
                let matrix = sparse(count(begins)?, count(nonzeros)?, at_least_one(columns)?, place)?;
                if matrix.nonzeros != len {
                    let message = format!(
                        "the rows in `{rows}` have {} nonzeros, but the buffer has {len} elements",
                        matrix.nonzeros
                    );
                    return Err(unresolved(place, &message));
                }
                Structure::CsrColumns(matrix)
            }
        })
    }

    /// Path of a file whose name may contain placeholders.
    pub fn file(&self, file: &FileSpec, place: &str) -> Worked<PathBuf> {
        let path = file.folder.join(file.name.render(self.scope, Style::Names).place(place)?);
        if self.project.has(&path) {
            return Ok(path);
        }
        Err(unresolved(place, &format!("{}: {}", self.project.refusal(&path), Project::REMEDY)))
    }

    pub fn find_tensor(&self, spec: &TensorSpec, place: &str) -> Worked<(PathBuf, Tensor)> {
        let path = self.file(&spec.file, place)?;
        let name = spec.tensor.render(self.scope, Style::Names).place(place)?;
        let tensor = Tensor::find(&path, &name).map_err(|why| unresolved(place, &why))?;
        Ok((path, tensor))
    }

    /// Location of a tensor in its file, after checking that it has the given number of elements.
    pub fn tensor(&self, spec: &TensorSpec, element: ElementType, len: Option<u64>, place: &str) -> Worked<FilePart> {
        let (path, tensor) = self.find_tensor(spec, place)?;
        let misfit = |why: String| unresolved(place, &format!("{} of {} {why}", spec.tensor.text(), path.display()));
        tensor.check(element, len).map_err(misfit)?;
        Ok(FilePart { path, offset: tensor.offset, bytes: tensor.bytes })
    }

    /// Path of a file, after checking that it has exactly the given number of elements.
    pub fn raw_file(&self, file: &FileSpec, element: ElementType, len: u64, place: &str) -> Worked<PathBuf> {
        let path = self.file(file, place)?;
        let bytes = std::fs::metadata(&path).map_err(|error| unreadable(place, &path, &error))?.len();
        let wanted = len.saturating_mul(element.size() as u64);
        if bytes == wanted {
            return Ok(path);
        }
        let message = format!("{} holds {bytes} bytes, but {len} elements of {element} need {wanted}", path.display());
        Err(unresolved(place, &message))
    }

    /// Elements of a list, whose number must match the length if that is known.
    pub fn list(
        &self,
        elements: &[Expression],
        element: ElementType,
        len: Option<u64>,
        place: &str,
    ) -> Worked<Vec<Value>> {
        if let Some(len) = len.filter(|len| *len != elements.len() as u64) {
            return Err(unresolved(place, &format!("the list has {} elements, expected {len}", elements.len())));
        }
        let number = |program: &Expression| {
            let value = program.evaluate(self.scope).place(place)?;
            as_element(element, value).map_err(|why| unresolved(place, &format!("`{}`: {why}", program.text())))
        };
        elements.iter().map(number).collect()
    }

    /// Step of a sequence, which may be negative even for an unsigned type.
    fn step(&self, program: &Expression, element: ElementType) -> Result<Value, ExprError> {
        if element.is_float() {
            program.evaluate_f64(self.scope).map(Value::Float)
        } else {
            program.evaluate_i64(self.scope).map(Value::Int)
        }
    }

    pub fn scalar(&self, element: &Template, program: &Expression) -> Worked<ScalarValue> {
        let element = self.element(element, "args")?;
        self.number(element, program, "args")
    }

    pub fn number(&self, element: ElementType, program: &Expression, place: &str) -> Worked<ScalarValue> {
        let value = match program.evaluate(self.scope).place(place)? {
            Value::Bool(value) => Value::Int(i64::from(value)),
            value => value,
        };
        let fitted = as_element(element, value);
        let fitted = fitted.map_err(|why| unresolved(place, &format!("`{element}({})`: {why}", program.text())))?;
        Ok(ScalarValue { element, bits: bits(element, &fitted) })
    }
}

/// A sparse matrix whose row offsets are in a buffer of `begins` elements.
fn sparse(begins: u64, nonzeros: u64, columns: u64, place: &str) -> Worked<Sparse> {
    let rows = begins.saturating_sub(1);
    if rows == 0 {
        return Err(unresolved(place, "row offsets need at least two elements: one more than there are rows"));
    }
    if nonzeros > rows.saturating_mul(columns) {
        let message = format!("{nonzeros} nonzeros do not fit in {rows} rows of {columns} columns");
        return Err(unresolved(place, &message));
    }
    Ok(Sparse { rows, columns, nonzeros })
}

/// Converts a number to an element type: integers in range, floats for float types. The error explains why the number
/// does not fit.
fn as_element(element: ElementType, value: Value) -> Result<Value, String> {
    match value {
        Value::Int(value) if element.is_float() => Ok(Value::Float(value as f64)),
        Value::Float(value) if element.is_float() => Ok(Value::Float(value)),
        Value::Int(value) => {
            let (least, most) = range(element);
            let fits = (least..=most).contains(&i128::from(value));
            if fits {
                Ok(Value::Int(value))
            } else {
                Err(format!("{value} does not fit in {element} ({least} to {most})"))
            }
        }
        Value::Float(value) => Err(format!("{value} is a float, but {element} holds integers")),
        other => Err(format!("{other} is not a number")),
    }
}

/// Minimum and maximum of an integer type.
const fn range(element: ElementType) -> (i128, i128) {
    let bits = element.size() as u32 * 8;
    if element.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Bit pattern of a number from [`as_element`], which fits its type.
fn bits(element: ElementType, value: &Value) -> u64 {
    match (value, element) {
        (Value::Float(value), ElementType::F64) => value.to_bits(),
        (Value::Float(value), ElementType::F32) => u64::from((*value as f32).to_bits()),
        (Value::Float(value), ElementType::F16) => u64::from(nearest_f16(*value).to_bits()),
        (Value::Float(value), _) => u64::from(nearest_bf16(*value).to_bits()),
        (Value::Int(value), _) => {
            let unused = 64 - element.size() as u32 * 8;
            (*value as u64) << unused >> unused
        }
        _ => 0,
    }
}
