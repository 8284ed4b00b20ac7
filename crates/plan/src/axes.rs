//! Axes of this run: the manifest's, overridden by the backend's and then by `--set`.

use std::collections::BTreeSet;

use runner_experiment::{Axis, Manifest};
use runner_lang::diagnostics::Diagnostic;
use runner_lang::diagnostics::nearest;
use runner_lang::{Program, Scope};
use runner_types::Value;

use super::PlanOptions;

#[derive(Debug)]
pub struct Axes {
    /// Axes that all variants share, in the manifest's order.
    pub shared: Vec<Axis>,
    /// Axes of single variants, one entry per variant in the manifest's order.
    pub own: Vec<OwnAxes>,
    /// Shared axes whose values differ from the manifest's. Included points must use the new values.
    pub replaced: BTreeSet<String>,
}

/// Axes that only one variant of the manifest has.
#[derive(Debug)]
pub struct OwnAxes {
    pub name: runner_experiment::Template,
    pub axes: Vec<Axis>,
}

pub fn effective(manifest: &Manifest, options: &PlanOptions) -> Result<Axes, Vec<Diagnostic>> {
    let own = manifest.variants.iter().map(|v| OwnAxes { name: v.name.clone(), axes: v.axes.clone() }).collect();
    let replaced = manifest.on.get(&options.sizes).map(|on| on.axes.as_slice()).unwrap_or_default();
    let replaced = replaced.iter().map(|axis| axis.name.clone()).collect();
    let mut axes = Axes { shared: manifest.axes_on(options.sizes), own, replaced };
    let mut faults = Vec::new();
    for set in &options.set {
        if let Err(fault) = axes.set(set, manifest) {
            faults.push(fault);
        }
    }
    faults.extend(manifest.zip.iter().filter_map(|list| unequal(&axes.shared, list)));
    if faults.is_empty() { Ok(axes) } else { Err(faults) }
}

impl Axes {
    /// All axes, shared ones first.
    fn all(&self) -> impl Iterator<Item = &Axis> {
        self.shared.iter().chain(self.own.iter().flat_map(|own| &own.axes))
    }

    /// Applies one `--set` option.
    fn set(&mut self, set: &str, manifest: &Manifest) -> Result<(), Diagnostic> {
        let Some((name, list)) = set.split_once('=') else {
            return Err(Diagnostic::whole(format!("--set {set}: no `=`")).hint("write --set axis=value,value"));
        };
        let name = name.trim();
        let Some(like) = self.all().find(|axis| axis.name == name) else {
            return Err(self.unknown(set, name, manifest));
        };
        let values = read_values(like, list).map_err(|message| Diagnostic::whole(format!("--set {set}: {message}")))?;
        for axis in self.shared.iter_mut().chain(self.own.iter_mut().flat_map(|own| &mut own.axes)) {
            if axis.name == name {
                axis.values.clone_from(&values);
                self.replaced.insert(name.to_owned());
            }
        }
        Ok(())
    }

    fn unknown(&self, set: &str, name: &str, manifest: &Manifest) -> Diagnostic {
        let mut lets = manifest.lets.iter().chain(manifest.variants.iter().flat_map(|variant| &variant.lets));
        if let Some(binding) = lets.find(|binding| *binding.name == *name) {
            let message = format!("--set {set}: `{name}` is a let, but --set changes only axes");
            let hint = format!("change `{}` in the manifest, or make it an axis there", binding.name);
            return Diagnostic::whole(message).hint(hint);
        }
        let names: BTreeSet<&str> = self.all().map(|axis| axis.name.as_str()).collect();
        let fault = Diagnostic::whole(format!("--set {set}: there is no axis `{name}`"));
        match nearest(name, names.iter().copied()) {
            Some(near) => fault.hint(format!("did you mean `{near}`?")),
            None => fault.hint(format!("the axes are {}", names.into_iter().collect::<Vec<_>>().join(", "))),
        }
    }
}

/// Values of a `--set`: expressions if the axis holds numbers or bools, plain strings if it holds strings.
fn read_values(like: &Axis, list: &str) -> Result<Vec<Value>, String> {
    let mut values = Vec::new();
    for text in split(list) {
        let value = read_value(like.values.first(), text.trim())?;
        if values.contains(&value) {
            return Err(format!("`{value}` is listed twice"));
        }
        values.push(value);
    }
    Ok(values)
}

fn read_value(like: Option<&Value>, text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Err("a value is missing".to_owned());
    }
    if matches!(like, Some(Value::Str(_) | Value::Type(_)) | None) {
        let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        return match (like, Value::from_text(bare)) {
            (Some(Value::Type(_)), Value::Str(text)) => Err(format!("`{text}` names no element type")),
            (_, value) => Ok(value),
        };
    }
    let program = Program::parse(text).map_err(|e| e.message)?;
    if let Some(name) = program.names().iter().next() {
        let wanted = like.map_or("value", Value::kind);
        return Err(format!("`{name}` is a name, but the axis has values of type {wanted}: write them out"));
    }
    match (like, program.evaluate(&Scope::new()).map_err(|e| e.message)?) {
        (Some(Value::Float(_)), Value::Int(value)) => Ok(Value::Float(value as f64)),
        (Some(like), value) if like.kind() == value.kind() => Ok(value),
        (like, value) => {
            let wanted = like.map_or("value", Value::kind);
            Err(format!("`{value}` is of type {}, but the axis has values of type {wanted}", value.kind()))
        }
    }
}

/// Splits at commas outside parentheses.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// Error if zipped axes no longer have equal lengths.
fn unequal(axes: &[Axis], zipped: &[String]) -> Option<Diagnostic> {
    let mut lengths = zipped.iter().filter_map(|name| axes.iter().find(|axis| axis.name == *name));
    let first = lengths.next()?;
    let other = lengths.find(|axis| axis.values.len() != first.values.len())?;
    let message = format!(
        "axes `{}` and `{}` advance together, but have {} and {} values",
        first.name,
        other.name,
        first.values.len(),
        other.values.len()
    );
    Some(Diagnostic::whole(message).hint(format!("set both: --set {}=… --set {}=…", first.name, other.name)))
}
