//! Claims: comparisons of two quantities, each computed from results.
//!
//! Examples are `speedup("vector", "neighbored") >= 5` and `counter("gld_sectors", "b") == 2 * counter("gld_sectors",
//! "a")`. A result belongs to a variant, or to a variant with values for the compared axes (`"sum[bx=32, by=8]"`).

use std::cmp::Ordering;
use std::ops::Range;

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::node::{Callee, Kind, Operator, Syntax};
use super::{ExprError, parser};
use crate::diagnostics::nearest;
use runner_types::{Claim, Effect, Value};

#[derive(Debug, Clone, PartialEq)]
pub struct ClaimProgram {
    pub left: Quantity,
    pub relation: Relation,
    pub right: Quantity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// One side of a claim, or part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Quantity {
    Number(f64),
    Result(Measured),
    Negate(Box<Quantity>),
    Binary(Arithmetic, Box<[Quantity; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// A quantity in a claim: a function of one case, or of two for `speedup`.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    pub function: ClaimFunction,
    pub counter: Option<Named>,
    /// Variants that provide the result; two for `speedup`.
    pub cases: Vec<Named>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    pub name: String,
    /// Byte range in the claim's text.
    pub at: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ClaimFunction {
    /// Time of the second variant divided by the first's.
    Speedup,
    Time,
    /// Bytes of the minimum work divided by the time, in GB/s.
    Bandwidth,
    /// Bandwidth divided by the data-sheet peak of the device memory, 0 to 1.
    FractionOfPeak,
    /// Fraction of the measured roof that is reached, 0 to 1.
    FractionOfCeiling,
    Counter,
    ErrorAbs,
    /// Maximum difference relative to the reference.
    ErrorRel,
    /// Maximum difference in units in the last place (ulp).
    ErrorUlp,
    /// Registers per thread, maximum over all launches.
    Registers,
    /// Bytes of spill stores and loads per thread, maximum over all launches.
    Spills,
    /// Theoretical occupancy from 0 to 1, minimum over all launches.
    Occupancy,
}

impl ClaimFunction {
    /// Names of all functions, in the order of the manual.
    pub const NAMES: &[&str] = Self::VARIANTS;

    /// Name in claims, e.g. `speedup`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Arguments and result, for error messages and the manual.
    pub const fn signature(self) -> &'static str {
        match self {
            Self::Speedup => "speedup(\"a\", \"b\"): the time of b divided by the time of a",
            Self::Time => "time(\"a\"): the median time, microseconds",
            Self::Bandwidth => "bandwidth(\"a\"): bytes of [work] divided by the time, GB/s",
            Self::FractionOfPeak => "fraction_of_peak(\"a\"): the bandwidth divided by the memory's data-sheet peak",
            Self::FractionOfCeiling => {
                "fraction_of_ceiling(\"a\"): the fraction of the measured roofline that is reached"
            }
            Self::Counter => "counter(\"name\", \"a\"): the count for the whole body",
            Self::ErrorAbs => "error_abs(\"a\"): the largest difference from the reference",
            Self::ErrorRel => "error_rel(\"a\"): the largest difference as a fraction of the reference",
            Self::ErrorUlp => "error_ulp(\"a\"): the largest difference in units in the last place",
            Self::Registers => "registers(\"a\"): per thread, maximum over all launches",
            Self::Spills => "spills(\"a\"): bytes of spill stores and loads per thread, maximum over all launches",
            Self::Occupancy => "occupancy(\"a\"): theoretical, 0 to 1, minimum over all launches",
        }
    }

    pub const fn is_timed(self) -> bool {
        matches!(self, Self::Speedup | Self::Time | Self::Bandwidth | Self::FractionOfPeak | Self::FractionOfCeiling)
    }

    const fn arguments(self) -> usize {
        match self {
            Self::Speedup | Self::Counter => 2,
            _ => 1,
        }
    }
}

impl ClaimProgram {
    /// Parses a claim. Errors point into `text`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let root = parser::parse(text, 0..text.len())?;
        let at = root.span.clone();
        let Kind::Binary(operator, sides) = root.kind else { return Err(no_comparison(at)) };
        let Some(relation) = relation(operator) else { return Err(no_comparison(at)) };
        let [left, right] = *sides;
        let claim = Self { left: quantity(left)?, relation, right: quantity(right)? };
        if claim.results().is_empty() {
            let functions = ClaimFunction::NAMES.join(", ");
            let error = ExprError::new("the claim uses no result, so it is always true or always false").at(at);
            return Err(error.hint(format!("results are {functions}")));
        }
        Ok(claim)
    }

    /// All results that the claim refers to.
    pub fn results(&self) -> Vec<&Measured> {
        let mut found = Vec::new();
        self.left.collect(&mut found);
        self.right.collect(&mut found);
        found
    }
}

/// A claim that differs between two manifests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Revision<'a> {
    /// `None` for an added claim.
    pub base: Option<&'a Claim>,
    /// `None` for a removed claim.
    pub new: Option<&'a Claim>,
    pub effect: Effect,
}

/// All claims that are not in both manifests, in the order of the new one, with removed claims last. A claim is a
/// revision of another if both compare the same quantities and differ only in one number, in their relation or in where
/// they apply.
pub fn revisions<'a>(base: &'a [Claim], new: &'a [Claim]) -> Vec<Revision<'a>> {
    let mut left: Vec<&Claim> = base.iter().filter(|claim| !new.contains(claim)).collect();
    let mut found: Vec<Revision<'_>> = Vec::new();
    for claim in new.iter().filter(|claim| !base.contains(claim)) {
        let of_base = left.iter().enumerate().find_map(|(place, base)| Some((place, revise(base, claim)?)));
        found.push(match of_base {
            Some((place, effect)) => Revision { base: Some(left.remove(place)), new: Some(claim), effect },
            None => Revision { base: None, new: Some(claim), effect: Effect::Tightened },
        });
    }
    found.extend(left.into_iter().map(|claim| Revision { base: Some(claim), new: None, effect: Effect::Loosened }));
    found
}

/// Effect of the revision; `None` if the new claim is not a revision of the base.
fn revise(base: &Claim, new: &Claim) -> Option<Effect> {
    let same_place = (&base.condition, base.regime, base.backend) == (&new.condition, new.regime, new.backend);
    if base.text == new.text {
        // The claim now applies in fewer places (loosened), in more, or in others.
        let restricted = |claim: &Claim| [claim.condition.is_some(), claim.regime.is_some(), claim.backend.is_some()];
        let (before, after) = (restricted(base), restricted(new));
        return Some(match before.iter().zip(&after).all(|(before, after)| before <= after) {
            true if before != after => Effect::Loosened,
            false if before.iter().zip(&after).all(|(before, after)| before >= after) => Effect::Tightened,
            _ => Effect::Neutral,
        });
    }
    let [old, now] = [&base.text, &new.text].map(|text| ClaimProgram::parse(text).ok());
    let (old, now) = (old?, now?);
    let grows = [old.left.growth(&now.left)?, old.right.growth(&now.right)?];
    let is_upper = match (old.relation, now.relation) {
        (Relation::Less | Relation::LessEqual, Relation::Less | Relation::LessEqual) => true,
        (Relation::Greater | Relation::GreaterEqual, Relation::Greater | Relation::GreaterEqual) => false,
        (a, b) if a == b => return Some(Effect::Neutral),
        _ => return None,
    };
    // Raising a bound loosens the claim if it is on the larger side, and tightens it on the smaller side.
    let room = match (grows, is_upper) {
        ([Growth::None, Growth::None], _) => {
            let admits_equal = |relation| matches!(relation, Relation::LessEqual | Relation::GreaterEqual);
            match (admits_equal(old.relation), admits_equal(now.relation)) {
                (false, true) => Growth::Up,
                (true, false) => Growth::Down,
                _ => Growth::Unknown,
            }
        }
        ([Growth::None, right], true) => right,
        ([Growth::None, right], false) => right.opposite(),
        ([left, Growth::None], true) => left.opposite(),
        ([left, Growth::None], false) => left,
        _ => Growth::Unknown,
    };
    Some(match room {
        Growth::Up if same_place => Effect::Loosened,
        Growth::Down if same_place => Effect::Tightened,
        _ => Effect::Neutral,
    })
}

/// How the value of a quantity changes when its numbers change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    None,
    Up,
    Down,
    Unknown,
}

impl Growth {
    const fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
            other => other,
        }
    }

    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, only) | (only, Self::None) => only,
            (Self::Up, Self::Up) => Self::Up,
            (Self::Down, Self::Down) => Self::Down,
            _ => Self::Unknown,
        }
    }
}

impl Quantity {
    /// How the value changes if its numbers are replaced with those of `new`; `None` if the quantities differ in more
    /// than numbers. Results are never negative.
    fn growth(&self, new: &Self) -> Option<Growth> {
        Some(match (self, new) {
            (Self::Number(a), Self::Number(b)) => match a.total_cmp(b) {
                Ordering::Less => Growth::Up,
                Ordering::Equal => Growth::None,
                Ordering::Greater => Growth::Down,
            },
            (Self::Result(a), Self::Result(b)) => a.is_like(b).then_some(Growth::None)?,
            (Self::Negate(a), Self::Negate(b)) => a.growth(b)?.opposite(),
            (Self::Binary(a, old), Self::Binary(b, now)) if a == b => {
                let [left, right] = [old[0].growth(&now[0])?, old[1].growth(&now[1])?];
                let right = match a {
                    Arithmetic::Add | Arithmetic::Multiply => right,
                    Arithmetic::Subtract | Arithmetic::Divide => right.opposite(),
                };
                let is_product = matches!(a, Arithmetic::Multiply | Arithmetic::Divide);
                let both = left.and(right);
                let is_positive = |side: &Self| !side.may_be_negative();
                if is_product && both != Growth::None && !old.iter().chain(now.iter()).all(is_positive) {
                    Growth::Unknown
                } else {
                    both
                }
            }
            _ => return None,
        })
    }

    fn may_be_negative(&self) -> bool {
        match self {
            Self::Number(value) => *value < 0.0,
            Self::Result(_) => false,
            Self::Negate(_) | Self::Binary(Arithmetic::Subtract, _) => true,
            Self::Binary(_, sides) => sides.iter().any(Self::may_be_negative),
        }
    }
}

impl Measured {
    /// Whether both are the same result, ignoring their positions in the text.
    fn is_like(&self, other: &Self) -> bool {
        let names = |measured: &Self| -> Vec<String> {
            measured.counter.iter().chain(&measured.cases).map(|named| named.name.clone()).collect()
        };
        self.function == other.function && names(self) == names(other)
    }
}

impl Quantity {
    fn collect<'q>(&'q self, found: &mut Vec<&'q Measured>) {
        match self {
            Self::Number(_) => {}
            Self::Result(result) => found.push(result),
            Self::Negate(inner) => inner.collect(found),
            Self::Binary(_, sides) => sides.iter().for_each(|side| side.collect(found)),
        }
    }
}

fn no_comparison(at: Range<usize>) -> ExprError {
    ExprError::new("a claim must be a single comparison with `<`, `<=`, `>`, `>=`, `==` or `!=`")
        .hint("for example: speedup(\"vector\", \"neighbored\") >= 5; write two claims for two comparisons")
        .at(at)
}

const fn relation(operator: Operator) -> Option<Relation> {
    Some(match operator {
        Operator::Less => Relation::Less,
        Operator::LessEqual => Relation::LessEqual,
        Operator::Greater => Relation::Greater,
        Operator::GreaterEqual => Relation::GreaterEqual,
        Operator::Equal => Relation::Equal,
        Operator::NotEqual => Relation::NotEqual,
        _ => return None,
    })
}

fn quantity(syntax: Syntax) -> Result<Quantity, ExprError> {
    let at = syntax.span;
    match syntax.kind {
        Kind::Literal(Value::Int(value)) => Ok(Quantity::Number(value as f64)),
        Kind::Literal(Value::Float(value)) => Ok(Quantity::Number(value)),
        Kind::Negate(inner) => Ok(Quantity::Negate(Box::new(quantity(*inner)?))),
        Kind::Binary(operator, sides) => {
            let arithmetic = match operator {
                Operator::Add => Arithmetic::Add,
                Operator::Subtract => Arithmetic::Subtract,
                Operator::Multiply => Arithmetic::Multiply,
                Operator::Divide => Arithmetic::Divide,
                _ => return Err(ExprError::new("claims support only `+`, `-`, `*` and `/`").at(at)),
            };
            let [left, right] = *sides;
            Ok(Quantity::Binary(arithmetic, Box::new([quantity(left)?, quantity(right)?])))
        }
        Kind::Call(callee, arguments) => result(&callee, arguments).map(Quantity::Result),
        Kind::Name(name) => {
            let error = ExprError::new(format!("`{name}` has no value in a claim")).at(at);
            Err(error.hint("put conditions on axes in `where`, and variant names in quotes"))
        }
        _ => Err(ExprError::new("a claim can compare only numbers and results").at(at)),
    }
}

fn result(callee: &Callee, arguments: Vec<Syntax>) -> Result<Measured, ExprError> {
    let Ok(function) = callee.name.parse::<ClaimFunction>() else {
        let names = ClaimFunction::NAMES;
        let error = ExprError::new(format!("there is no result `{}`", callee.name)).at(callee.at.clone());
        return Err(match nearest(callee.name, names.iter().copied()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("known results: {}", names.join(", "))),
        });
    };
    let wanted = function.arguments();
    if arguments.len() != wanted {
        let message = format!("`{}` takes {wanted} names in quotes, not {}", function.name(), arguments.len());
        return Err(ExprError::new(message).hint(function.signature()).at(callee.at.clone()));
    }
    let mut names = arguments.into_iter().map(|argument| named(function, argument)).collect::<Result<Vec<_>, _>>()?;
    let counter = (function == ClaimFunction::Counter).then(|| names.remove(0));
    Ok(Measured { function, counter, cases: names })
}

fn named(function: ClaimFunction, argument: Syntax) -> Result<Named, ExprError> {
    let name = match argument.kind {
        Kind::Literal(Value::Str(name)) => name,
        // A variant may be named like an element type.
        Kind::Literal(Value::Type(element)) => element.name().to_owned(),
        _ => {
            let message = format!("`{}` takes names in quotes", function.name());
            return Err(ExprError::new(message).hint(function.signature()).at(argument.span));
        }
    };
    Ok(Named { name, at: argument.span })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::*;

    #[test]
    fn a_comparison_of_results_is_read_with_its_arithmetic() {
        let claim =
            ClaimProgram::parse("counter(\"gld_sectors\", \"b\") == 2 * counter(\"gld_sectors\", \"a\") + 1").unwrap();
        assert_eq!(claim.relation, Relation::Equal);
        let cases: Vec<&str> = claim.results().iter().map(|result| result.cases[0].name.as_str()).collect();
        assert_eq!(cases, ["b", "a"]);
        let Quantity::Binary(Arithmetic::Add, sides) = &claim.right else { panic!("{claim:?}") };
        assert!(matches!(sides[0], Quantity::Binary(Arithmetic::Multiply, _)));
        assert_eq!(sides[1], Quantity::Number(1.0));
    }

    fn claim(text: &str) -> Claim {
        Claim { text: text.to_owned(), condition: None, regime: None, backend: None }
    }

    /// Effect of replacing the first claim with the second; `None` if they are different claims.
    fn effect(base: &Claim, new: &Claim) -> Option<Effect> {
        let (base, new) = ([base.clone()], [new.clone()]);
        match &revisions(&base, &new)[..] {
            [one] => Some(one.effect),
            [added, removed] => {
                assert_eq!((added.base, removed.new), (None, None));
                None
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_bound_that_moves_loosens_or_tightens_a_claim() {
        use Effect::{Loosened, Neutral, Tightened};
        for (base, new, expected) in [
            ("time(\"a\") < 5", "time(\"a\") < 6", Some(Loosened)),
            ("time(\"a\") < 5", "time(\"a\") < 4.5", Some(Tightened)),
            ("time(\"a\") < 5", "time(\"a\") <= 5", Some(Loosened)),
            ("time(\"a\") <= 5", "time(\"a\") < 5", Some(Tightened)),
            ("speedup(\"a\", \"b\") >= 5", "speedup(\"a\", \"b\") >= 4", Some(Loosened)),
            ("speedup(\"a\", \"b\") >= 5", "speedup(\"a\", \"b\") >= 10", Some(Tightened)),
            ("5 > time(\"a\")", "6 > time(\"a\")", Some(Loosened)),
            ("time(\"a\") < 0.5 * time(\"b\")", "time(\"a\") < 0.9 * time(\"b\")", Some(Loosened)),
            ("2 * time(\"a\") < time(\"b\")", "3 * time(\"a\") < time(\"b\")", Some(Tightened)),
            ("time(\"a\") / 2 < time(\"b\")", "time(\"a\") / 3 < time(\"b\")", Some(Loosened)),
            ("time(\"a\") < time(\"b\") - 3", "time(\"a\") < time(\"b\") - 2", Some(Loosened)),
            ("-2 * time(\"a\") < 3", "-1 * time(\"a\") < 3", Some(Neutral)),
            ("spills(\"a\") == 0", "spills(\"a\") == 8", Some(Neutral)),
            // A different quantity, or the reversed relation.
            ("time(\"a\") < 5", "time(\"b\") < 5", None),
            ("time(\"a\") < 5", "time(\"a\") > 5", None),
        ] {
            assert_eq!(effect(&claim(base), &claim(new)), expected, "{base} → {new}");
        }
    }

    #[test]
    fn a_claim_that_is_judged_in_fewer_places_is_loosened() {
        let everywhere = claim("time(\"a\") < 5");
        let large = Claim { condition: Some("n > 4".to_owned()), ..everywhere.clone() };
        let larger = Claim { condition: Some("n > 8".to_owned()), ..everywhere.clone() };
        assert_eq!(effect(&everywhere, &large), Some(Effect::Loosened));
        assert_eq!(effect(&large, &everywhere), Some(Effect::Tightened));
        assert_eq!(effect(&large, &larger), Some(Effect::Neutral));
        assert!(revisions(&[everywhere.clone(), large.clone()], &[large, everywhere]).is_empty());
    }

    /// Each case has a part of the message and the text that the error points at.
    #[test]
    fn what_is_no_claim_is_refused_at_its_place() {
        for (text, message, part) in [
            ("speedup(\"a\", \"b\")", "a single comparison", "speedup(\"a\", \"b\")"),
            ("1 < 2", "uses no result", "1 < 2"),
            ("spedup(\"a\", \"b\") > 1", "no result `spedup`", "spedup"),
            ("speedup(\"a\") > 1", "takes 2 names", "speedup"),
            ("time(n) > 1", "names in quotes", "n"),
            ("time(\"a\") > n", "`n` has no value", "n"),
            ("time(\"a\") % 2 > 1", "`+`, `-`, `*` and `/`", "time(\"a\") % 2"),
            ("time(\"a\") > 1 && time(\"a\") < 2", "a single comparison", "time(\"a\") > 1 && time(\"a\") < 2"),
        ] {
            let error = ClaimProgram::parse(text).unwrap_err();
            assert!(error.message.contains(message), "{text}: {}", error.message);
            assert_eq!(error.at.map(|at| &text[at]), Some(part), "{text}");
        }
    }
}
