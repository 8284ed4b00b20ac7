//! Resolves the checks of a case and their tolerances.

use runner_experiment::{
    BodySpec, CheckSpec, Expectation, FunctionParameter, FunctionSpec, PrintedSpec, Template, ToleranceSpec,
};
use runner_files::npy;
use runner_files::project::Project;
use runner_lang::template::Style;
use runner_types::{
    BufferPlan, CheckPlan, ElementType, ExpectPlan, FunctionArgument, FunctionPlan, Map, PrintedPlan, RefExpr, RefKind,
    Tolerance, WholeTolerance,
};

use super::{AtPlace, CaseEvaluator, Worked, unreadable, unresolved};

impl CaseEvaluator<'_> {
    /// Checks of a variant, except those whose expected values come from this variant itself.
    pub fn checks(&self, variant: &str, buffers: &[BufferPlan]) -> Worked<Vec<CheckPlan>> {
        let itself = |check: &&CheckSpec| matches!(&check.expect, Expectation::Variant { name, .. } if name == variant);
        self.recipe.checks.iter().filter(|check| !itself(check)).map(|check| self.check(check, buffers)).collect()
    }

    pub fn printed(&self) -> Worked<Option<PrintedPlan>> {
        let render = |text: &Template| text.render(self.scope, Style::Names).place("check.printed");
        Ok(match &self.recipe.printed {
            None => None,
            Some(PrintedSpec::Lines(lines)) => {
                Some(PrintedPlan::Lines(lines.iter().map(render).collect::<Worked<_>>()?))
            }
            Some(PrintedSpec::File(folder, name)) => {
                let file = folder.join(render(name)?);
                if !self.project.has(&file) {
                    let why = format!("{}: {}", self.project.refusal(&file), Project::REMEDY);
                    return Err(unresolved("check.printed", &why));
                }
                Some(PrintedPlan::File(file))
            }
        })
    }

    fn function(&self, recipe: &FunctionSpec) -> Worked<FunctionPlan> {
        let argument = |parameter: &FunctionParameter| {
            Ok(match parameter {
                FunctionParameter::Buffer(name) => FunctionArgument::Buffer(name.clone()),
                FunctionParameter::Value(value) => {
                    FunctionArgument::Value(value.evaluate(self.scope).place("check.expect")?)
                }
            })
        };
        let arguments = recipe.parameters.iter().map(argument).collect::<Worked<_>>()?;
        Ok(FunctionPlan { path: recipe.path.clone(), function: recipe.function.clone(), arguments })
    }

    fn check(&self, recipe: &CheckSpec, buffers: &[BufferPlan]) -> Worked<CheckPlan> {
        let actual = recipe.actual.resolve(self.scope).place("check.actual")?;
        let expect = match &recipe.expect {
            Expectation::Reference(expect) => ExpectPlan::Reference(expect.resolve(self.scope).place("check.expect")?),
            Expectation::Variant { name, .. } => ExpectPlan::Variant(name.clone()),
            Expectation::Npy(file) => ExpectPlan::Npy(self.file(file, "check.expect")?),
            Expectation::Raw(file) => ExpectPlan::Raw(self.file(file, "check.expect")?),
            Expectation::List(_) | Expectation::Tensor(_) => ExpectPlan::List(Vec::new()),
            Expectation::Python(function) => ExpectPlan::Python(self.function(function)?),
            Expectation::Cpp(function) => ExpectPlan::Cpp(self.function(function)?),
        };
        let Some(element) = element_of(&actual, buffers) else {
            return Err(unresolved("check.actual", "it uses no buffer, so there is nothing to check"));
        };
        let place = "check.expect";
        let len = len_of(&actual, buffers).filter(|_| !matches!(self.recipe.body, BodySpec::Cpu(_)));
        let expect = match (&recipe.expect, len) {
            (Expectation::List(elements), len) => ExpectPlan::List(self.list(elements, element, len, place)?),
            (Expectation::Tensor(tensor), len) => ExpectPlan::Part(self.tensor(tensor, element, len, place)?),
            (Expectation::Raw(file), Some(len)) => ExpectPlan::Raw(self.raw_file(file, element, len, place)?),
            _ => expect,
        };
        if let ExpectPlan::Npy(path) = &expect {
            let header = npy::Header::read(path).map_err(|error| unreadable(place, path, &error))?;
            header.check(element, len).map_err(|why| unresolved(place, &format!("{} {why}", path.display())))?;
        }
        let mask = recipe.mask.as_ref().map(|mask| mask.resolve(self.scope).place("check.where")).transpose()?;
        if let Some(RefExpr::Constant(value)) = &mask {
            return Err(unresolved("check.where", &format!("it is {value} for every element, and uses no buffer")));
        }
        let tolerance = tolerance(&recipe.tolerance, element);
        let whole = whole(&recipe.tolerance, element);
        Ok(CheckPlan { text: text(recipe), actual, expect, tolerance, whole, mask, error: recipe.error })
    }
}

/// The comparison as shown in messages.
fn text(spec: &CheckSpec) -> String {
    let compared = compared_text(spec);
    match &spec.mask {
        Some(mask) => format!("{compared} where {}", mask.text()),
        None => compared,
    }
}

fn compared_text(spec: &CheckSpec) -> String {
    match &spec.expect {
        Expectation::Reference(expect) => format!("{} against {}", spec.actual.text(), expect.text()),
        Expectation::Variant { name, .. } => format!("{} against variant {name}", spec.actual.text()),
        Expectation::Npy(file) | Expectation::Raw(file) => {
            format!("{} against {}", spec.actual.text(), file.folder.join(file.name.text()).display())
        }
        Expectation::Tensor(tensor) => {
            let path = tensor.file.folder.join(tensor.file.name.text());
            format!("{} against {} of {}", spec.actual.text(), tensor.tensor.text(), path.display())
        }
        Expectation::List(_) => format!("{} against a list", spec.actual.text()),
        Expectation::Python(function) | Expectation::Cpp(function) => {
            format!("{} against {}", spec.actual.text(), function.text)
        }
    }
}

/// Element type of a reference expression, taken from its first buffer.
fn element_of(expression: &RefExpr, buffers: &[BufferPlan]) -> Option<ElementType> {
    match expression {
        RefExpr::Buffer(name) => buffers.iter().find(|buffer| buffer.name == *name).map(|buffer| buffer.element),
        RefExpr::Constant(_) => None,
        RefExpr::Call { buffers: operands, .. } | RefExpr::Elementwise { operands, .. } => {
            operands.iter().find_map(|operand| element_of(operand, buffers))
        }
    }
}

/// Number of elements of a reference expression; `None` if it is a single number.
fn len_of(expression: &RefExpr, buffers: &[BufferPlan]) -> Option<u64> {
    let (function, operands, integers) = match expression {
        RefExpr::Call { function, buffers, integers } => (function, buffers, integers),
        RefExpr::Elementwise { operands, .. } => return operands.iter().find_map(|operand| len_of(operand, buffers)),
        RefExpr::Buffer(name) => return buffers.iter().find(|buffer| buffer.name == *name).map(|buffer| buffer.len),
        RefExpr::Constant(_) => return None,
    };
    // No wildcard, so that a new function must state the length of its result.
    match function.kind() {
        RefKind::Reduction(_) => None,
        RefKind::Map(Map::Matmul) => {
            let [rows, columns, _] = integers[..] else { return None };
            u64::try_from(rows).ok()?.checked_mul(u64::try_from(columns).ok()?)
        }
        RefKind::Map(Map::Histogram) => u64::try_from(*integers.first()?).ok(),
        RefKind::Map(Map::Slice) => {
            let [from, to] = integers[..] else { return None };
            u64::try_from(to.checked_sub(from)?).ok()
        }
        RefKind::Map(
            Map::Add
            | Map::Copy
            | Map::Transpose
            | Map::Sort
            | Map::Scan
            | Map::Softmax
            | Map::Exp
            | Map::Gelu
            | Map::GeluTanh
            | Map::LayerNorm
            | Map::Convolution,
        ) => operands.first().and_then(|operand| len_of(operand, buffers)),
    }
}

/// Tolerance for the array as a whole. Norms apply only to floats.
fn whole(spec: &ToleranceSpec, element: ElementType) -> WholeTolerance {
    let of_floats = |bound: Option<f64>| bound.filter(|_| element.is_float()).unwrap_or(0.0);
    WholeTolerance {
        fraction: spec.fraction.unwrap_or(0.0),
        norm: of_floats(spec.norm),
        max_norm: of_floats(spec.max_norm),
    }
}

/// The manifest's tolerance, with 0 for omitted parts, or the type's default if there is none.
fn tolerance(spec: &ToleranceSpec, element: ElementType) -> Tolerance {
    if !element.is_float() {
        return Tolerance::EXACT;
    }
    let bounds = ToleranceSpec { fraction: None, ..*spec };
    if bounds == ToleranceSpec::default() {
        return Tolerance::default_for(element);
    }
    let ToleranceSpec { abs, rel, ulp, .. } = *spec;
    let (abs, rel, ulp) = (abs.unwrap_or(0.0), rel.unwrap_or(0.0), ulp.unwrap_or(0));
    Tolerance { abs, rel, ulp, derived: false }
}
