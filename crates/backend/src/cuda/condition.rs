//! The condition of a loop as a kernel: PTX that reads buffers, evaluates the expression and decides whether the loop
//! continues.
//!
//! The kernel agrees with [`Condition::holds`], including every case without a value. The driver compiles the PTX and
//! resolves `cudaGraphSetConditional`, so neither a toolkit nor a linker is needed. Some conditions are not translated:
//! those whose types depend on values, and those with functions whose bits differ on a GPU (`**`, `log2`, `%` of
//! floats).

mod expression;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use crate::Condition;
use expression::{Translated, translate};

/// Maximum number of buffers that a condition reads.
pub(super) const MOST_READ: usize = 64;

/// Kernel that starts a loop. Parameters: state, counter, handle.
pub(super) const BEGIN: &str = "begin_loop";
/// Kernel that ends an iteration. Parameters: state, counter, bound, condition number, handles of the loop and of the
/// body's next iteration, and the address of each element that the condition reads.
pub(super) const JUDGE: &str = "end_iteration";

/// Word of the state that all loops of a graph share: 1-based number of the failed condition.
pub(super) const FAILED: usize = 0;
/// Iterations of the loop that ended last.
pub(super) const ITERATIONS: usize = 1;
/// First of the values that the failed condition read.
pub(super) const VALUES: usize = 2;
/// Word index of the first loop counter.
pub(super) const COUNTERS: usize = VALUES + MOST_READ;

/// Declaration of the driver's function.
const SET: &str = ".extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);\n";

/// PTX with the kernels of a condition, or the reason why it cannot be translated.
pub(super) fn ptx(condition: &Condition) -> Result<String, String> {
    let reads = condition.reads.len();
    if reads > MOST_READ {
        return Err(format!("it reads {reads} buffers, but at most {MOST_READ} are allowed"));
    }
    let Translated { text, registers, holds } = translate(condition)?;
    let (mut parameters, mut keep) = (String::new(), String::new());
    for index in 0..reads {
        let _ = write!(parameters, ", .param .u64 read_{index}");
        let _ = writeln!(keep, "    st.global.u64 [%state+{}], %bits{index};", 8 * (VALUES + index));
    }
    let set = |handle: &str| {
        format!(
            "    {{\n    .param .b64 handle_value;\n    .param .b32 goes_on;\n    \
             st.param.b64 [handle_value], {handle};\n    st.param.b32 [goes_on], %value;\n    \
             call.uni cudaGraphSetConditional, (handle_value, goes_on);\n    }}\n"
        )
    };
    Ok(format!(
        ".version 6.0\n.target sm_50\n.address_size 64\n\n{SET}\n\
         .visible .entry {BEGIN}(.param .u64 state, .param .u64 counter, .param .u64 loop)\n{{\n    \
         .reg .pred %is_sound;\n    .reg .b32 %value;\n    .reg .b64 %state, %counter, %failed, %loop;\n    \
         ld.param.u64 %state, [state];\n    ld.param.u64 %counter, [counter];\n    ld.param.u64 %loop, [loop];\n    \
         cvta.to.global.u64 %state, %state;\n    cvta.to.global.u64 %counter, %counter;\n    \
         mov.b64 %failed, 0;\n    st.global.u64 [%counter], %failed;\n    \
         ld.global.u64 %failed, [%state+{failed}];\n    setp.eq.s64 %is_sound, %failed, 0;\n    \
         selp.u32 %value, 1, 0, %is_sound;\n{set_loop}    ret;\n}}\n\n\
         .visible .entry {JUDGE}(.param .u64 state, .param .u64 counter, .param .u64 at_most, .param .u64 number, \
         .param .u64 loop, .param .u64 next{parameters})\n{{\n    \
         .reg .pred %over;\n    .reg .b16 %half;\n    .reg .b32 %value, %word;\n    \
         .reg .b64 %state, %counter, %count, %at_most, %number, %failed, %loop, %next, %address;\n    \
         .reg .b64 %bits<{bits}>;\n{registers}    \
         ld.param.u64 %state, [state];\n    ld.param.u64 %counter, [counter];\n    \
         ld.param.u64 %at_most, [at_most];\n    ld.param.u64 %number, [number];\n    \
         ld.param.u64 %loop, [loop];\n    ld.param.u64 %next, [next];\n    \
         cvta.to.global.u64 %state, %state;\n    cvta.to.global.u64 %counter, %counter;\n    \
         mov.u32 %value, 0;\n    ld.global.u64 %failed, [%state+{failed}];\n    \
         setp.ne.s64 %over, %failed, 0;\n    @%over bra set;\n    \
         ld.global.u64 %count, [%counter];\n    add.s64 %count, %count, 1;\n    \
         st.global.u64 [%counter], %count;\n    st.global.u64 [%state+{iterations}], %count;\n\
         {text}    @{holds} bra set;\n    mov.u32 %value, 1;\n    setp.lt.u64 %over, %count, %at_most;\n    \
         @%over bra set;\n    mov.u32 %value, 0;\n\
         no_value:\n    st.global.u64 [%state+{failed}], %number;\n{keep}\
         set:\n{set_loop}{set_next}    ret;\n}}\n",
        failed = 8 * FAILED,
        iterations = 8 * ITERATIONS,
        bits = reads + 1,
        set_loop = set("%loop"),
        set_next = set("%next"),
    ))
}
