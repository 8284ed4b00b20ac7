//! Names of the contenders that are compared within a group.

use runner_types::{Case, RunHeader, Value};

/// Name of a contender: the variant, with the values of compared axes if any (`sum[bx=32, by=8]`).
pub fn contender(header: &RunHeader, case: &Case) -> String {
    let compared: Vec<String> = compared_axes(header, case).map(|(name, value)| format!("{name}={value}")).collect();
    if compared.is_empty() {
        case.key.variant.clone()
    } else {
        format!("{}[{}]", case.key.variant, compared.join(", "))
    }
}

/// Whether the case is its group's baseline.
pub fn is_baseline(header: &RunHeader, case: &Case) -> bool {
    header.baseline.as_ref().is_some_and(|(variant, at)| {
        case.key.variant == *variant && at.iter().all(|wanted| case.key.axes.contains(wanted))
    })
}

pub fn compared_axes<'a>(header: &'a RunHeader, case: &'a Case) -> impl Iterator<Item = &'a (String, Value)> {
    case.key.axes.iter().filter(|(name, _)| header.axes.iter().any(|axis| axis.compared && axis.name == *name))
}
