//! Functions in expressions: one table for the parser, the evaluator and the error messages.

use super::operand::{Operand, Refusal, Worked, float, int};

/// How to compute a function from its arguments.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// One argument of the named kind; `None` if it is of another kind.
    One(&'static str, fn(Operand<'_>) -> Option<Worked<'_>>),
    /// Two integers.
    Integers(fn(i64, i64) -> Worked<'static>),
    /// Two or more numbers, folded pairwise: one function for integers, one for floats.
    Fold(fn(i64, i64) -> i64, fn(f64, f64) -> f64),
    /// The second or the third argument, depending on whether the first is true.
    Select,
}

/// Declares the functions, each with its documentation, name in manifests, signature for error messages, and rule.
macro_rules! functions {
    ($( $(#[$doc:meta])+ $variant:ident, $name:literal, $signature:literal, $rule:expr; )+) => {
        /// A function that expressions may call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Function { $($(#[$doc])+ $variant,)+ }

        impl Function {
            /// Every function, in the order of the manual.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Name in manifests, e.g. `ceil_div`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Arguments and result, for error messages.
            pub const fn signature(self) -> &'static str {
                match self { $(Self::$variant => $signature,)+ }
            }

            pub(super) const fn rule(self) -> Rule {
                match self { $(Self::$variant => $rule,)+ }
            }
        }
    };
}

functions! {
    /// Quotient of two integers, rounded up.
    CeilDiv, "ceil_div", "ceil_div(a, b): a / b of integers, rounded up",
        Rule::Integers(|a, b| int(quotient_up(a, b)?));
    /// Smallest multiple of the second integer that is at least the first.
    RoundUp, "round_up", "round_up(a, b): the smallest multiple of b that is at least a",
        Rule::Integers(|a, b| match quotient_up(a, b)? {
            _ if b < 0 => Err(Refusal::new("a multiple of a negative number")),
            quotient => int(quotient.and_then(|quotient| quotient.checked_mul(b))),
        });
    /// Minimum of several numbers.
    Min, "min", "min(a, b, ...): the smallest number", Rule::Fold(i64::min, f64::min);
    /// Maximum of several numbers.
    Max, "max", "max(a, b, ...): the largest number", Rule::Fold(i64::max, f64::max);
    /// Absolute value.
    Abs, "abs", "abs(x)", Rule::One("a number", |x| Some(match x {
        Operand::Int(value) => int(value.checked_abs()),
        other => float(other.number()?.abs()),
    }));
    /// Base-2 logarithm.
    Log2, "log2", "log2(x): an integer for an integer, which must be a power of two; a float for a float",
        Rule::One("a number", |x| Some(match x {
            Operand::Int(value) if is_pow2(value) => int(Some(i64::from(value.trailing_zeros()))),
            Operand::Int(_) => Err(Refusal::new("log2 of an integer that is not a power of two")
                .hint("for a float write log2(float(x))")),
            other => match other.number()? {
                value if value <= 0.0 => Err(Refusal::new("log2 of a number that is not positive")),
                value => float(value.log2()),
            },
        }));
    /// Square root as a float.
    Sqrt, "sqrt", "sqrt(x): a float", Rule::One("a number", |x| Some(match x.number()? {
        value if value < 0.0 => Err(Refusal::new("square root of a negative number")),
        value => float(value.sqrt()),
    }));
    /// Whether an integer is a power of two.
    IsPow2, "is_pow2", "is_pow2(n): whether an integer is a power of two", Rule::One("an integer", |x| match x {
        Operand::Int(value) => Some(Ok(Operand::Bool(is_pow2(value)))),
        _ => None,
    });
    /// Bytes per element of a type.
    Sizeof, "sizeof", "sizeof(type): bytes of one element", Rule::One("an element type", |x| match x {
        Operand::Type(element) => Some(int(Some(element.size() as i64))),
        _ => None,
    });
    /// A number truncated to an integer.
    Int, "int", "int(x): a float truncated to its integer part", Rule::One("a number", |x| match x {
        Operand::Int(_) => Some(Ok(x)),
        // 2^63 is the first float above the range; -2^63 is the lowest one in it.
        other => other.number().map(|value| int((-TWO_TO_63..TWO_TO_63).contains(&value).then_some(value as i64))),
    });
    /// A number converted to a float.
    Float, "float", "float(x)", Rule::One("a number", |x| x.number().map(float));
    /// One of two values, depending on a condition.
    Select, "select", "select(condition, a, b): a if the condition is true, otherwise b", Rule::Select;
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

impl Function {
    /// Minimum and maximum number of arguments.
    pub const fn arity(self) -> (usize, usize) {
        match self.rule() {
            Rule::One(..) => (1, 1),
            Rule::Integers(_) => (2, 2),
            Rule::Fold(..) => (2, usize::MAX),
            Rule::Select => (3, 3),
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }
}

/// Quotient, rounded up; `None` on overflow.
fn quotient_up(a: i64, b: i64) -> Result<Option<i64>, Refusal> {
    if b == 0 {
        return Err(Refusal::new("division by zero"));
    }
    let Some((quotient, remainder)) = a.checked_div(b).zip(a.checked_rem(b)) else { return Ok(None) };
    Ok(quotient.checked_add(i64::from(remainder != 0 && (remainder < 0) == (b < 0))))
}

const fn is_pow2(value: i64) -> bool {
    value > 0 && value.count_ones() == 1
}
