//! State shared by all validation: the files, the faults found so far, and the checks of names.
//!
//! Every fault is reported through this module, so that a fault in a shared line is reported only once, and its
//! consequences are not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::files::{Files, reason};
use crate::read::Findings;
use runner_experiment::{Axis, Expression, Located, Template};
use runner_files::project::Project;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_lang::template::Style;
use runner_lang::{Function, Parsed, Scope};
use runner_types::{BackendKind, Span, Value};

/// Maximum number of axis points at which to evaluate a template.
const MOST_POINTS: usize = 4096;

pub const BESIDE: &str = "the path is relative to the manifest's folder";

/// Block size selected by `block = "occupancy"`, for expressions in `grid`.
pub const OCCUPANCY_BLOCK: &str = "occupancy_block";

/// 0-based index of a launch's repetition, for expressions of a launch with `repeat`.
pub const NTH: &str = "nth";

/// Name of the variant, for `exclude` and `--filter`.
pub const VARIANT: &str = "variant";

/// Names that a variant's expressions may use.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The variant's name as written in the manifest; `None` for the shared names.
    pub variant: Option<String>,
    pub known: BTreeSet<String>,
    /// Bindings that have no value in this variant, each with the missing name.
    pub broken: BTreeMap<String, String>,
}

#[derive(Debug)]
pub struct Context {
    pub files: Files,
    found: Findings,
    /// Names already reported as undefined. Faults that follow from them are not reported.
    undefined: BTreeSet<String>,
    pub axis_values: i64,
}

impl Context {
    pub fn new(folder: &Path, project: Project, found: Findings) -> Self {
        Self { files: Files::new(folder, project), found, undefined: BTreeSet::new(), axis_values: 0 }
    }

    pub fn fault(&mut self, fault: Diagnostic) {
        // A shared line is checked once per variant but reported only once.
        if !self.found.faults.contains(&fault) {
            self.found.push(fault);
        }
    }

    /// Reports an unreadable file, by its name relative to the manifest's folder.
    pub fn unreadable(&mut self, path: &Path, at: &Span, error: &io::Error) {
        let message = format!("cannot read `{}`: {}", path.display(), reason(error));
        self.fault(Diagnostic::at(at.clone(), message).hint(BESIDE));
    }

    /// Whether a file is in the project. Reports it if not. Every file is looked up here before it is read.
    pub fn is_inside(&mut self, path: &Path, at: &Span) -> bool {
        let is_inside = self.files.note(path);
        if !is_inside {
            let fault = Diagnostic::at(at.clone(), self.files.project().refusal(path)).label("outside of the project");
            self.fault(fault.hint(Project::REMEDY));
        }
        is_inside
    }

    /// The faults, and the number of faults left out.
    pub fn into_faults(self) -> (Vec<Diagnostic>, usize) {
        (self.found.faults, self.found.omitted)
    }

    /// Whether a fault was found within a span. Faults that follow from it are not reported.
    pub fn faulty(&self, place: &Span) -> bool {
        let end = self.found.extents.get(&place.start).map_or(place.end, |end| place.end.max(*end));
        let inside = |span: &Span| span.start >= place.start && span.end <= end;
        self.found.faults.iter().any(|fault| fault.span.as_ref().is_some_and(inside))
    }

    /// Whether the value of this key in the table was rejected.
    pub fn refused(&self, table: &Span, key: &'static str) -> bool {
        self.found.refused.contains(&(table.start, key))
    }

    /// The backend with this name. Reports an unknown one.
    pub fn backend(&mut self, name: &str, span: &Span) -> Option<BackendKind> {
        match name {
            "cuda" => Some(BackendKind::Cuda),
            "sim" => Some(BackendKind::Sim),
            other => {
                self.unknown(span.clone(), "backend", other, ["cuda", "sim"]);
                None
            }
        }
    }

    /// Reports an unknown name, with the most similar known name as a hint.
    pub fn unknown<'c>(
        &mut self,
        span: Span,
        what: &str,
        name: &str,
        candidates: impl IntoIterator<Item = &'c str> + Clone,
    ) {
        let known: Vec<&str> = candidates.clone().into_iter().collect();
        let mut fault = Diagnostic::at(span, format!("there is no {what} `{name}`")).label(format!("no such {what}"));
        if let Some(near) = nearest(name, candidates) {
            fault = fault.hint(format!("did you mean `{near}`?"));
        } else if !known.is_empty() && known.len() <= 12 {
            let list: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            let lead = if list.len() == 1 { "there is only" } else { "known:" };
            fault = fault.hint(format!("{lead} {}", list.join(", ")));
        }
        self.fault(fault);
    }

    /// Reports names in an expression or template that any of `scopes` lacks.
    pub fn known<T: Parsed>(&mut self, text: &Located<T>, scopes: &[&Names]) {
        for name in text.names() {
            self.name(name, text.place_of(name), scopes);
        }
    }

    /// Reports a name that any of `scopes` lacks.
    pub fn name(&mut self, name: &str, at: Span, scopes: &[&Names]) {
        let Some(lacking) = scopes.iter().find(|scope| !scope.known.contains(name)) else { return };
        if name == OCCUPANCY_BLOCK {
            let fault = Diagnostic::at(at, "`occupancy_block` has no value here")
                .hint("only `grid` may name it, in a launch with `block = \"occupancy\"`");
            return self.fault(fault);
        }
        if name == NTH {
            let fault = Diagnostic::at(at, "`nth` has no value here")
                .hint("only a launch with `repeat`, a loop and the steps in it may name it");
            return self.fault(fault);
        }
        if let Some(root) = lacking.broken.get(name) {
            return self.broken(name, root, at, lacking);
        }
        let variant = lacking.variant.clone().filter(|_| scopes.iter().any(|scope| scope.known.contains(name)));
        if let Some(variant) = variant {
            let fault = Diagnostic::at(at, format!("`{name}` is not defined in variant `{variant}`"))
                .label("not defined in every variant that uses this")
                .hint(format!("define `{name}` in [let], or in the `let` or `axes` of `{variant}`"));
            return self.fault(fault);
        }
        self.undefined.insert(name.to_owned());
        // The name has a definition, whose fault has been reported.
        if self.found.dropped.contains(name) {
            return;
        }
        let mut fault =
            Diagnostic::at(at, format!("undefined name `{name}`")).label("not an axis, a let or an attribute");
        let functions = Function::ALL.iter().map(|f| f.name());
        if let Some(near) = nearest(name, lacking.known.iter().map(String::as_str).chain(functions)) {
            fault = fault.hint(format!("did you mean `{near}`?"));
        }
        self.fault(fault);
    }

    /// Reports a binding that has no value in a variant, unless the missing name was already reported.
    fn broken(&mut self, name: &str, root: &str, at: Span, scope: &Names) {
        if self.undefined.contains(root) {
            return;
        }
        let variant = scope.variant.as_deref().unwrap_or_default();
        let message = format!("`{name}` needs `{root}`, which variant `{variant}` does not have");
        let hint = format!("give `{variant}` a `{root}`, or a `{name}` in its own `let`");
        self.fault(Diagnostic::at(at, message).hint(hint));
    }

    /// Value of an expression without names. Reports one that cannot be evaluated.
    pub fn constant(&mut self, expression: &Expression) -> Option<Value> {
        if !expression.names().is_empty() || expression.is_missing() {
            return None;
        }
        match expression.evaluate(&Scope::new()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(expression.fault(error));
                None
            }
        }
    }
}

/// Integer values of an expression over all points of the axes that it uses. Empty if it uses other names, has a value
/// of another type, or has too many points.
pub fn integers(expression: &Expression, axes: &[Axis]) -> Vec<i64> {
    if expression.is_missing() {
        return Vec::new();
    }
    let value = |scope: Scope| match expression.evaluate(&scope) {
        Ok(Value::Int(value)) => Some(value),
        _ => None,
    };
    let values = points(expression.names(), axes).and_then(|points| points.into_iter().map(value).collect());
    values.unwrap_or_default()
}

/// Each point of the axes that a template uses, with the template's value there. `None` if it uses other names or has
/// too many points.
pub fn written(template: &Template, axes: &[Axis], style: Style) -> Option<Vec<(Scope, String)>> {
    if template.is_missing() {
        return None;
    }
    let points = points(template.names(), axes)?;
    points.into_iter().map(|scope| template.render(&scope, style).ok().map(|text| (scope, text))).collect()
}

/// All points of the axes with these names. The last axis varies fastest.
fn points(names: &BTreeSet<String>, axes: &[Axis]) -> Option<Vec<Scope>> {
    let mut points = vec![Scope::new()];
    let named: Vec<&Axis> = axes.iter().filter(|axis| names.contains(&axis.name)).collect();
    if named.len() != names.len() {
        return None;
    }
    for axis in named {
        if points.len().saturating_mul(axis.values.len()) > MOST_POINTS {
            return None;
        }
        let extended = points.iter().flat_map(|point| {
            axis.values.iter().map(move |value| {
                let mut point = point.clone();
                point.set(axis.name.as_str(), value.clone());
                point
            })
        });
        points = extended.collect();
    }
    Some(points)
}
