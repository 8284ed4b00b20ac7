//! Buffers and numbers in the types of the device.

use crate::experiment::{BodySpec, BufferSpec, Expression, FillSpec, Template};
use crate::expr::ExprError;
use crate::expr::template::Style;
use crate::model::{BufferPlan, ElementType, FillPlan, ScalarValue, SymbolPlan, Value};
use crate::npy;
use half::{bf16, f16};

use super::{Place, Worked, Worker, unreadable, unresolved};

impl Worker<'_> {
    pub fn buffers(&self) -> Worked<Vec<BufferPlan>> {
        self.recipe.buffers.iter().map(|recipe| self.buffer(recipe)).collect()
    }

    fn buffer(&self, recipe: &BufferSpec) -> Worked<BufferPlan> {
        let place = |key: &str| format!("buffers.{}.{key}", recipe.name);
        let element = self.element(&recipe.element, &place("type"))?;
        let len = recipe.len.evaluate_u64(self.scope).place(&place("len"))?;
        if len == 0 {
            return Err(unresolved(&place("len"), &format!("`{}` is 0, and a buffer has elements", recipe.len.text())));
        }
        let fill = recipe.fill.as_ref().map(|fill| self.fill(fill, element, len, &place("fill"))).transpose()?;
        let symbol = recipe.symbol.as_ref().map(|symbol| {
            let name = symbol.render(self.scope, Style::Cpp).place(&place("symbol"))?;
            Ok(SymbolPlan { name, launch: 0 })
        });
        let symbol = symbol.transpose()?.filter(|_| matches!(self.recipe.body, BodySpec::Launches { .. }));
        let BufferSpec { access, allocate, .. } = *recipe;
        Ok(BufferPlan { name: recipe.name.clone(), element, len, fill, access, symbol, allocate })
    }

    /// The element type that a template names.
    pub fn element(&self, template: &Template, place: &str) -> Worked<ElementType> {
        let name = template.render(self.scope, Style::Names).place(place)?;
        name.parse().map_err(|error: crate::model::UnknownElementType| unresolved(place, &error.to_string()))
    }

    fn fill(&self, recipe: &FillSpec, element: ElementType, len: u64, place: &str) -> Worked<FillPlan> {
        let number = |program: &Expression| {
            let value = program.evaluate(self.scope).place(place)?;
            as_element(element, value).map_err(|why| unresolved(place, &format!("`{}`: {why}", program.text())))
        };
        let float = |program: &Expression| program.evaluate_f64(self.scope).place(place);
        Ok(match recipe {
            FillSpec::Constant(value) => FillPlan::Constant(number(value)?),
            // A sequence that leaves the range of its type wraps, as integers of that type do.
            FillSpec::Iota { start, step } => {
                FillPlan::Iota { start: number(start)?, step: self.step(step, element).place(place)? }
            }
            FillSpec::Uniform { low, high, seed } => {
                FillPlan::Uniform { low: number(low)?, high: number(high)?, seed: *seed }
            }
            FillSpec::Normal { mean, deviation, seed } => {
                FillPlan::Normal { mean: float(mean)?, deviation: float(deviation)?, seed: *seed }
            }
            FillSpec::Npy(path) => {
                let header = npy::Header::read(path).map_err(|error| unreadable(place, path, &error))?;
                header
                    .check(element, Some(len))
                    .map_err(|why| unresolved(place, &format!("{} {why}", path.display())))?;
                FillPlan::Npy(path.clone())
            }
        })
    }

    /// The step of a sequence, which may be negative even for an unsigned type.
    fn step(&self, program: &Expression, element: ElementType) -> Result<Value, ExprError> {
        if element.is_float() {
            program.evaluate_f64(self.scope).map(Value::Float)
        } else {
            program.evaluate_i64(self.scope).map(Value::Int)
        }
    }

    /// A kernel argument.
    pub fn scalar(&self, element: &Template, program: &Expression) -> Worked<ScalarValue> {
        let element = self.element(element, "args")?;
        let value = program.evaluate(self.scope).place("args")?;
        let fitted = as_element(element, value);
        let fitted = fitted.map_err(|why| unresolved("args", &format!("`{element}({})`: {why}", program.text())))?;
        Ok(ScalarValue { element, bits: bits(element, &fitted) })
    }
}

/// A number as a value of an element type: integers in range, floats for float types. The error says why it is not one.
fn as_element(element: ElementType, value: Value) -> Result<Value, String> {
    match value {
        Value::Int(value) if element.is_float() => Ok(Value::Float(value as f64)),
        Value::Float(value) if element.is_float() => Ok(Value::Float(value)),
        Value::Int(value) => {
            let (least, most) = range(element);
            let fits = (least..=most).contains(&i128::from(value));
            if fits { Ok(Value::Int(value)) } else { Err(format!("{value} does not fit {element}, {least} to {most}")) }
        }
        Value::Float(value) => Err(format!("{value} is a float, and {element} holds integers")),
        other => Err(format!("{other} is not a number")),
    }
}

/// Least and greatest number of an integer type.
const fn range(element: ElementType) -> (i128, i128) {
    let bits = element.size() as u32 * 8;
    if element.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// The bytes of a number that fits its type, as [`as_element`] made it.
fn bits(element: ElementType, value: &Value) -> u64 {
    match (value, element) {
        (Value::Float(value), ElementType::F64) => value.to_bits(),
        (Value::Float(value), ElementType::F32) => u64::from((*value as f32).to_bits()),
        (Value::Float(value), ElementType::F16) => u64::from(f16::from_f64(*value).to_bits()),
        (Value::Float(value), _) => u64::from(bf16::from_f64(*value).to_bits()),
        (Value::Int(value), _) => {
            let unused = 64 - element.size() as u32 * 8;
            (*value as u64) << unused >> unused
        }
        _ => 0,
    }
}
