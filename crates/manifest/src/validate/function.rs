//! Validates functions in Python and C++ that compute expected values.
//!
//! Nothing is executed. The parameters are read from the source text, so that a wrong name is found before anything
//! runs.

use super::context::Context;
use super::declared::CheckedVariants;
use super::uses::{Use, before_launch};
use crate::read::At;
use runner_cuda_source::signature;
use runner_experiment::{Expression, FunctionParameter, FunctionSpec};
use runner_files::project::Project;
use runner_files::regular;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_lang::is_name;
use runner_types::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    Cpp,
}

impl Language {
    const fn name(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Cpp => "C++",
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Python => "golden.py:softmax",
            Self::Cpp => "golden.cpp:softmax",
        }
    }

    /// Names of the parameters without a default; `None` if the text does not define the function.
    fn parameters(self, text: &str, function: &str) -> Option<Vec<String>> {
        match self {
            Self::Python => parameters(text, function),
            Self::Cpp => signature::parameters_of(text, function),
        }
    }
}

/// Checks `FILE:FUNCTION` and the function's parameters.
pub fn function(
    ctx: &mut Context,
    (text, language): (&At<String>, Language),
    of: CheckedVariants<'_>,
) -> Option<FunctionSpec> {
    let span = &text.span;
    let Some((file, function)) = text.value.rsplit_once(':').filter(|(file, name)| !file.is_empty() && is_name(name))
    else {
        let fault = Diagnostic::at(span.clone(), format!("`{}` names no {} function", text.value, language.name()));
        ctx.fault(fault.hint(format!("write the file and the function, as in \"{}\"", language.example())));
        return None;
    };
    let path = ctx.files.path_beside(file);
    if !ctx.is_inside(&path, span) {
        return None;
    }
    let script = match regular::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => {
            ctx.unreadable(&path, span, &error);
            return None;
        }
    };
    if language == Language::Cpp
        && let Some(outside) = ctx.files.source(&path, &[]).outside.first()
    {
        let why = ctx.files.project().refusal(outside);
        let fault = Diagnostic::at(span.clone(), format!("`{}` includes a file: {why}", path.display()));
        ctx.fault(fault.label("includes a file outside of the project").hint(Project::REMEDY));
        return None;
    }
    let Some(names) = language.parameters(&script, function) else {
        let fault = Diagnostic::at(span.clone(), format!("`{}` defines no function `{function}`", path.display()));
        let defined: Vec<&str> =
            script.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next()).collect();
        ctx.fault(match nearest(function, defined.iter().copied()) {
            _ if language == Language::Cpp => fault.hint("it must be defined outside of namespaces and classes"),
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.hint(format!("it defines {}", defined.join(", "))),
        });
        return None;
    };
    let parameters = names.iter().filter_map(|name| parameter(ctx, name, span, of)).collect();
    Some(FunctionSpec { path, function: function.to_owned(), parameters, text: text.value.clone() })
}

/// Value to pass for a parameter, selected by its name.
fn parameter(ctx: &mut Context, name: &str, span: &Span, of: CheckedVariants<'_>) -> Option<FunctionParameter> {
    let CheckedVariants { declared, variants } = of;
    let buffers: Vec<Use> = variants
        .iter()
        .filter_map(|variant| variant.buffer(&declared.buffers, name))
        .map(|buffer| (name.to_owned(), buffer.access, span.clone()))
        .collect();
    if !buffers.is_empty() {
        before_launch(ctx, &buffers);
        return Some(FunctionParameter::Buffer(name.to_owned()));
    }
    if let Some(scope) = of.scopes().iter().find(|scope| !scope.known.contains(name)) {
        let buffers = declared.buffers.iter().map(|buffer| buffer.name.as_str());
        let near = nearest(name, scope.known.iter().map(String::as_str).chain(buffers));
        let fault = Diagnostic::at(span.clone(), format!("parameter `{name}` is not a buffer, axis or let"));
        ctx.fault(match near {
            Some(near) => fault.hint(format!("did you mean `{near}`? Give the parameter a default to leave it out")),
            None => fault.hint("give the parameter a default to leave it out"),
        });
        return None;
    }
    Expression::parse(name, span.clone()).ok().map(FunctionParameter::Value)
}

/// Parameters without a default of a top-level function in a script; `None` if there is no such function.
fn parameters(script: &str, function: &str) -> Option<Vec<String>> {
    let begins = |line: &str| {
        line.strip_prefix("def ").is_some_and(|rest| {
            rest.trim_start().strip_prefix(function).is_some_and(|rest| rest.trim_start().starts_with('('))
        })
    };
    let mut at = 0;
    let start = script.split_inclusive('\n').find_map(|line| {
        let here = at;
        at += line.len();
        begins(line).then_some(here)
    })?;
    let list = script[start..].split_once('(')?.1;
    let (mut depth, mut part, mut names) = (0, String::new(), Vec::new());
    let mut comment = false;
    for c in list.chars() {
        match c {
            '\n' => comment = false,
            _ if comment => {}
            '#' => comment = true,
            ')' if depth == 0 => break,
            ',' if depth == 0 => names.push(std::mem::take(&mut part)),
            '(' | '[' | '{' => {
                depth += 1;
                part.push(c);
            }
            ')' | ']' | '}' => {
                depth -= 1;
                part.push(c);
            }
            c => part.push(c),
        }
    }
    names.push(part);
    let required = names.iter().filter(|part| !part.contains('='));
    let names = required.map(|part| part.split(':').next().unwrap_or_default().trim().to_owned());
    Some(names.filter(|name| is_name(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_without_defaults_are_read_over_several_lines() {
        let script = "import numpy as np\n\ndef other(x): return x\n\ndef softmax(x: np.ndarray,  # (rows, columns)\n  \
                      rows: int, eps=1e-5, *, scale: tuple[int, int] = (1, 2)) -> np.ndarray:\n    return x\n";
        let names = |function| parameters(script, function);
        assert_eq!(names("softmax"), Some(vec!["x".to_owned(), "rows".to_owned()]));
        assert_eq!(names("other"), Some(vec!["x".to_owned()]));
        assert_eq!(names("soft"), None);
    }
}
