//! Names of axes, bindings and buffers: which are allowed, and which are in use.
//!
//! They share one namespace with each other and with device attributes, since an expression may use any of them.

use std::collections::BTreeMap;

use super::context::{Context, NTH, OCCUPANCY_BLOCK, VARIANT};
use crate::read::At;
use runner_lang::diagnostics::Diagnostic;
use runner_lang::{Function, Program, is_name, reference};
use runner_types::{DeviceInfo, ElementType, RefFunction, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Axis,
    Let,
    Buffer,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Axis => "axis",
            Self::Let => "let",
            Self::Buffer => "buffer",
        }
    }
}

/// Names in use, with their locations.
#[derive(Debug, Clone, Default)]
pub struct Taken(BTreeMap<String, (Kind, Span)>);

impl Taken {
    /// Records a name, or reports why it is not allowed.
    pub fn take(&mut self, ctx: &mut Context, kind: Kind, name: &At<String>) {
        if let Some(why) = unusable(kind, &name.value) {
            let fault = Diagnostic::at(name.span.clone(), format!("{} `{}` {why}", kind.name(), name.value));
            ctx.fault(fault.label("choose another name"));
        } else if let Some((other, place)) = self.0.get(&name.value) {
            let message = if *other == kind {
                format!("there is already {} `{}`", article(kind), name.value)
            } else {
                format!("`{}` is both {} and {}", name.value, article(*other), article(kind))
            };
            ctx.fault(
                Diagnostic::at(name.span.clone(), message)
                    .label(format!("{} here", article(kind)))
                    .related(place.clone(), format!("{} here", article(*other)))
                    .hint("expressions could not distinguish them: rename one"),
            );
        } else {
            self.0.insert(name.value.clone(), (kind, name.span.clone()));
        }
    }

    /// Removes names of one kind, which a variant may then redefine.
    pub fn remove(&self, kind: Kind, names: impl Fn(&str) -> bool) -> Self {
        let kept = self.0.iter().filter(|(name, (other, _))| *other != kind || !names(name));
        Self(kept.map(|(name, entry)| (name.clone(), entry.clone())).collect())
    }
}

const fn article(kind: Kind) -> &'static str {
    match kind {
        Kind::Axis => "an axis",
        Kind::Let => "a let",
        Kind::Buffer => "a buffer",
    }
}

pub fn may_name_buffer(name: &str) -> bool {
    unusable(Kind::Buffer, name).is_none()
}

/// Reason to reject words such as `if`.
const RESERVED: &str = "has a name that is reserved in expressions";

/// Reason why a name is not allowed.
fn unusable(kind: Kind, name: &str) -> Option<&'static str> {
    if !is_name(name) {
        return Some("is not a valid name: use letters, digits and `_`, beginning with a letter");
    }
    if DeviceInfo::attribute_names().any(|known| known == name) {
        return Some("has the name of a device attribute");
    }
    if name == OCCUPANCY_BLOCK {
        return Some("has the name of the block size that `block = \"occupancy\"` selects");
    }
    if name == NTH {
        return Some("has the name of the index of a repeated launch");
    }
    if name == VARIANT {
        return Some("has the name that expressions use for the variant");
    }
    if kind == Kind::Buffer && name == "null" {
        return Some("has the name of the null pointer in `args`");
    }
    if kind == Kind::Buffer {
        // In arguments and checks, a buffer's name cannot be confused with a type or a function: `sum(sum)` is
        // unambiguous.
        let readable = reference::parse(name).is_ok_and(|program| program.bare() == Some(name));
        return (!readable).then_some(RESERVED);
    }
    if Function::from_name(name).is_some() {
        return Some("has the name of a function of expressions");
    }
    if RefFunction::ALL.iter().any(|f| f.name() == name) {
        return Some("has the name of a reference function");
    }
    if name.parse::<ElementType>().is_ok() {
        return Some("has the name of an element type");
    }
    let readable = Program::parse(name).is_ok_and(|program| program.names().contains(name));
    (!readable).then_some(RESERVED)
}
