//! Checks which buffers an expression uses, by their access.

use super::Context;
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Access, Span};

/// Name and access of a used buffer, and the location of the name.
pub type Use = (String, Access, Span);

/// Reports buffers whose contents before the launch are not defined by the manifest.
pub fn before_launch(ctx: &mut Context, used: &[Use]) {
    for (name, access, at) in used {
        let what = match access {
            Access::In | Access::InOut => continue,
            Access::Out => "`out`: it is poisoned before the launch",
            Access::Scratch => "`scratch`: its content is undefined",
        };
        let message = format!("a reference cannot read buffer `{name}`, which is {what}");
        ctx.fault(Diagnostic::at(at.clone(), message).hint("references work on `in` and `inout` buffers"));
    }
}
