//! What every check needs: the expression the files, the faults so far.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::diagnostics::nearest;
use crate::experiment::{Axis, Expression, Located, Template};
use crate::expr::template::Style;
use crate::expr::{Function, Parsed, Scope};
use crate::manifest::files::Files;
use crate::manifest::read::Findings;
use crate::model::{Diagnostic, Span, Value};

/// Most points of axes that a template is written out for.
const MOST_POINTS: usize = 4096;

/// The names that expressions of one variant may use.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The variant as the manifest writes it; `None` where no variant is meant.
    pub variant: Option<String>,
    pub known: BTreeSet<String>,
    /// Bindings that have no value here, with the name that they lack.
    pub broken: BTreeMap<String, String>,
}

#[derive(Debug)]
pub struct Context {
    pub files: Files,
    found: Findings,
    /// Names that were reported as undefined: what hangs on them is not.
    undefined: BTreeSet<String>,
}

impl Context {
    pub fn new(folder: &Path, found: Findings) -> Self {
        Self { files: Files::new(folder), found, undefined: BTreeSet::new() }
    }

    pub fn fault(&mut self, fault: Diagnostic) {
        // A shared line is looked at once for each variant; it is said once.
        if !self.found.faults.contains(&fault) {
            self.found.faults.push(fault);
        }
    }

    pub fn into_faults(self) -> Vec<Diagnostic> {
        self.found.faults
    }

    /// Whether a fault was found within a place: what would follow from it is not said.
    pub fn faulty(&self, place: &Span) -> bool {
        let end = self.found.extents.get(&place.start).map_or(place.end, |end| place.end.max(*end));
        let inside = |span: &Span| span.start >= place.start && span.end <= end;
        self.found.faults.iter().any(|fault| fault.span.as_ref().is_some_and(inside))
    }

    /// Whether a table has this key, with a value that was refused.
    pub fn refused(&self, table: &Span, key: &'static str) -> bool {
        self.found.refused.contains(&(table.start, key))
    }

    /// Reports a name that is not there, with the nearest of those that are.
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
            let verb = if list.len() == 1 { "is only" } else { "are" };
            fault = fault.hint(format!("there {verb} {}", list.join(", ")));
        }
        self.fault(fault);
    }

    /// Reports the names of an expression or template that are not known to each of `scopes`.
    pub fn known<T: Parsed>(&mut self, text: &Located<T>, scopes: &[&Names]) {
        for name in text.names() {
            self.name(name, text.place_of(name), scopes);
        }
    }

    /// Reports a name that one of `scopes` does not know.
    pub fn name(&mut self, name: &str, at: Span, scopes: &[&Names]) {
        let Some(lacking) = scopes.iter().find(|scope| !scope.known.contains(name)) else { return };
        if name == super::names::OCCUPANCY_BLOCK {
            let fault = Diagnostic::at(at, "`occupancy_block` has no value here")
                .hint("only `grid` may name it, in a launch with `block = \"occupancy\"`");
            return self.fault(fault);
        }
        if name == super::names::NTH {
            let fault = Diagnostic::at(at, "`nth` has no value here").hint("only a launch with `repeat` may name it");
            return self.fault(fault);
        }
        if let Some(root) = lacking.broken.get(name) {
            return self.broken(name, root, at, lacking);
        }
        let variant = lacking.variant.clone().filter(|_| scopes.iter().any(|scope| scope.known.contains(name)));
        if let Some(variant) = variant {
            let fault = Diagnostic::at(at, format!("`{name}` is not defined in variant `{variant}`"))
                .label("not there for every variant that uses this")
                .hint(format!("define `{name}` in [let], or in the `let` or `axes` of `{variant}`"));
            return self.fault(fault);
        }
        self.undefined.insert(name.to_owned());
        // It is there, and what is wrong with it was said.
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

    /// Reports a binding that has no value in a variant, unless what it lacks was reported.
    fn broken(&mut self, name: &str, root: &str, at: Span, scope: &Names) {
        if self.undefined.contains(root) {
            return;
        }
        let variant = scope.variant.as_deref().unwrap_or_default();
        let message = format!("`{name}` needs `{root}`, which variant `{variant}` does not have");
        let hint = format!("give `{variant}` a `{root}`, or a `{name}` in its own `let`");
        self.fault(Diagnostic::at(at, message).hint(hint));
    }

    /// The value of an expression without names; reports one that cannot be worked out.
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

/// The integers that an expression gives over the points of the axes that it names; empty where it names anything
/// else, gives anything else, or names too many points to look at.
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

/// A template written out for every point of the axes that it names, with the point; `None` where it names
/// anything else, or too many points to look at.
pub fn written(template: &Template, axes: &[Axis], style: Style) -> Option<Vec<(Scope, String)>> {
    if template.is_missing() {
        return None;
    }
    let points = points(template.names(), axes)?;
    points.into_iter().map(|scope| template.render(&scope, style).ok().map(|text| (scope, text))).collect()
}

/// Every point of the axes with these names, the last one fastest.
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
