//! The use of a buffer in an expression.

use super::Context;
use runner_lang::diagnostics::Diagnostic;
use runner_types::{Access, Span};

/// A used buffer: its name, its access, and the place of the name.
pub type Use = (String, Access, Span);

/// Reports buffers whose content before the launch is not defined by the manifest.
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
