//! The part of C++ arithmetic that indices, sizes and launches need: parsed from tokens, and bounded by intervals.
//!
//! Anything else becomes [`Expression::Unknown`], so that a caller never uses a wrong value.

use crate::source::{closing, is_name};

/// Maximum nesting depth of an expression; deeper ones are unknown.
const DEEPEST: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Integer(i128),
    Float(f64),
    /// A variable or a component of one, without namespaces: `n`, `threadIdx.x`.
    Name(String),
    Binary(Operator, Box<Self>, Box<Self>),
    Call(String, Vec<Self>),
    /// An array element: `x[i]`.
    Element(String, Box<Self>),
    /// `a` and `b` of `condition ? a : b`.
    Choice(Box<Self>, Box<Self>),
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    ShiftLeft,
    ShiftRight,
    And,
    /// `|` or `^`, whose results have the same bounds.
    Or,
}

impl Operator {
    /// Tokens, precedence and operator.
    const ALL: [(&'static [&'static str], u8, Self); 10] = [
        (&["<", "<"], 3, Self::ShiftLeft),
        (&[">", ">"], 3, Self::ShiftRight),
        (&["*"], 5, Self::Multiply),
        (&["/"], 5, Self::Divide),
        (&["%"], 5, Self::Remainder),
        (&["+"], 4, Self::Add),
        (&["-"], 4, Self::Subtract),
        (&["&"], 2, Self::And),
        (&["^"], 1, Self::Or),
        (&["|"], 1, Self::Or),
    ];

    const fn text(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
            Self::And => "&",
            Self::Or => "|",
        }
    }
}

/// Smallest and largest value.
pub type Interval = (i128, i128);

impl Expression {
    /// Parses an expression, which must consume all tokens.
    pub fn parse(tokens: &[&str]) -> Self {
        let mut parser = Parser { tokens, at: 0, depth: 0 };
        let parsed = parser.choice();
        if parser.at == tokens.len() { parsed } else { Self::Unknown }
    }

    /// Bounds of the expression; `of` returns the bounds of names and elements. `None` if unknown.
    pub fn interval(&self, of: &impl Fn(&Self) -> Option<Interval>) -> Option<Interval> {
        match self {
            Self::Integer(value) => Some((*value, *value)),
            Self::Name(_) | Self::Element(..) => of(self),
            Self::Float(_) | Self::Unknown => None,
            Self::Choice(one, other) => {
                let ((a, b), (c, d)) = (one.interval(of)?, other.interval(of)?);
                Some((a.min(c), b.max(d)))
            }
            Self::Call(name, arguments) => {
                let all: Vec<Interval> = arguments.iter().map(|one| one.interval(of)).collect::<Option<_>>()?;
                match (name.as_str(), &all[..]) {
                    ("min", [(a, b), (c, d)]) => Some((*a.min(c), *b.min(d))),
                    ("max", [(a, b), (c, d)]) => Some((*a.max(c), *b.max(d))),
                    ("ceil_div", [(a, b), (c, d)]) if *c > 0 => Some((ceil_div(*a, *d), ceil_div(*b, *c))),
                    ("__ldg", [only]) => Some(*only),
                    _ => None,
                }
            }
            Self::Binary(operator, left, right) => {
                // A remainder is bounded even if its dividend is not.
                if *operator == Operator::Remainder {
                    let (low, high) = right.interval(of)?;
                    return match left.interval(of) {
                        _ if low <= 0 => None,
                        Some((a, b)) if a >= 0 && b < low => Some((a, b)),
                        _ => Some((0, high - 1)),
                    };
                }
                operator.interval(left.interval(of)?, right.interval(of)?)
            }
        }
    }

    /// Visits the expression and all its subexpressions.
    pub fn visit<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        match self {
            Self::Binary(_, one, other) | Self::Choice(one, other) => {
                one.visit(visit);
                other.visit(visit);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|argument| argument.visit(visit)),
            Self::Element(_, index) => index.visit(visit),
            Self::Integer(_) | Self::Float(_) | Self::Name(_) | Self::Unknown => {}
        }
    }

    /// Replaces each name by the expression that `of` returns for it.
    #[must_use]
    pub fn replaced(&self, of: &impl Fn(&str) -> Self) -> Self {
        match self {
            Self::Name(name) => of(name),
            Self::Binary(operator, one, other) => {
                Self::Binary(*operator, Box::new(one.replaced(of)), Box::new(other.replaced(of)))
            }
            Self::Choice(..) | Self::Element(..) | Self::Unknown => Self::Unknown,
            Self::Call(name, arguments) => {
                Self::Call(name.clone(), arguments.iter().map(|argument| argument.replaced(of)).collect())
            }
            Self::Integer(_) | Self::Float(_) => self.clone(),
        }
    }

    /// The expression in the manifest's language, assuming that every name is defined there. `None` if the language
    /// cannot express it.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Integer(value) if *value < 0 => Some(format!("({value})")),
            Self::Integer(value) => Some(value.to_string()),
            Self::Float(value) => Some(format!("{value:?}")),
            Self::Name(name) => Some(name.clone()),
            Self::Binary(Operator::And | Operator::Or, ..) | Self::Choice(..) | Self::Element(..) | Self::Unknown => {
                None
            }
            Self::Call(name, arguments) => {
                let known = matches!(name.as_str(), "min" | "max" | "ceil_div");
                let texts: Vec<String> = arguments.iter().map(Self::text).collect::<Option<_>>()?;
                known.then(|| format!("{name}({})", texts.join(", ")))
            }
            Self::Binary(operator, one, other) => {
                if let Some((dividend, divisor)) = self.as_ceil_div() {
                    return Some(format!("ceil_div({}, {})", dividend.text()?, divisor.text()?));
                }
                let side = |side: &Self| {
                    let text = side.text()?;
                    let is_whole = !matches!(side, Self::Binary(..)) || side.as_ceil_div().is_some();
                    Some(if is_whole { text } else { format!("({text})") })
                };
                Some(format!("{} {} {}", side(one)?, operator.text(), side(other)?))
            }
        }
    }

    /// Dividend and divisor, if the expression is a form of `(a + b - 1) / b`.
    pub fn as_ceil_div(&self) -> Option<(&Self, &Self)> {
        use Operator::{Add, Divide, Subtract};
        let Self::Binary(Divide, sum, divisor) = self else { return None };
        let less_one = |whole: &Self, part: &Self| match (whole, part) {
            (Self::Integer(whole), Self::Integer(part)) => *part == whole - 1,
            (whole, Self::Binary(Subtract, one, other)) => **one == *whole && **other == Self::Integer(1),
            _ => false,
        };
        match &**sum {
            Self::Binary(Add, dividend, rest) if less_one(divisor, rest) => Some((dividend, divisor)),
            // Parsed left to right as (a + b) - 1.
            Self::Binary(Subtract, sum, one) if **one == Self::Integer(1) => match &**sum {
                Self::Binary(Add, dividend, rest) if rest == divisor => Some((dividend, divisor)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Operator {
    fn interval(self, (a, b): Interval, (c, d): Interval) -> Option<Interval> {
        let extremes = |values: [Option<i128>; 4]| {
            let values: Vec<i128> = values.into_iter().collect::<Option<_>>()?;
            Some((*values.iter().min()?, *values.iter().max()?))
        };
        match self {
            Self::Add => Some((a.checked_add(c)?, b.checked_add(d)?)),
            Self::Subtract => Some((a.checked_sub(d)?, b.checked_sub(c)?)),
            Self::Multiply => extremes([a.checked_mul(c), a.checked_mul(d), b.checked_mul(c), b.checked_mul(d)]),
            Self::Divide if c > 0 => extremes([a.checked_div(c), a.checked_div(d), b.checked_div(c), b.checked_div(d)]),
            Self::ShiftLeft if c >= 0 && d < 64 => {
                Self::Multiply.interval((a, b), (1_i128 << u32::try_from(c).ok()?, 1_i128 << u32::try_from(d).ok()?))
            }
            Self::ShiftRight if c >= 0 && d < 64 && a >= 0 => Some((a >> d, b >> c)),
            Self::And if a >= 0 && c >= 0 => Some((0, b.min(d))),
            Self::And if c >= 0 => Some((0, d)),
            Self::Or if a >= 0 && c >= 0 && b.max(d) < 1 << 62 => {
                Some((0, (b.max(d) + 1).cast_unsigned().next_power_of_two().cast_signed() - 1))
            }
            _ => None,
        }
    }
}

pub const fn ceil_div(a: i128, b: i128) -> i128 {
    (a + b - 1).div_euclid(b)
}

struct Parser<'t, 'a> {
    tokens: &'t [&'a str],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'_, 'a> {
    fn peek(&self) -> &'a str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.peek() == token;
        self.at += usize::from(is_next);
        is_next
    }

    /// Parses an expression that may contain `?:`.
    fn choice(&mut self) -> Expression {
        self.depth += 1;
        let parsed = if self.depth > DEEPEST { Expression::Unknown } else { self.condition() };
        self.depth -= 1;
        parsed
    }

    fn condition(&mut self) -> Expression {
        let first = self.binary(0);
        let mut is_compared = false;
        // Skip a comparison: only the two choices have values of interest.
        while matches!(self.peek(), "<" | ">" | "=" | "!" | "&" | "|") {
            is_compared = true;
            while matches!(self.peek(), "<" | ">" | "=" | "!" | "&" | "|") {
                self.at += 1;
            }
            self.binary(0);
        }
        if self.take("?") {
            let one = self.choice();
            return if self.take(":") {
                Expression::Choice(Box::new(one), Box::new(self.choice()))
            } else {
                Expression::Unknown
            };
        }
        if is_compared { Expression::Unknown } else { first }
    }

    fn operator(&self, least: u8) -> Option<(usize, u8, Operator)> {
        let rest = &self.tokens[self.at.min(self.tokens.len())..];
        let (tokens, binds, operator) = Operator::ALL.into_iter().find(|(tokens, ..)| rest.starts_with(tokens))?;
        let is_doubled =
            tokens.len() == 1 && matches!(rest.get(1), Some(next) if *next == tokens[0] && matches!(*next, "&" | "|"));
        (binds >= least && !is_doubled).then_some((tokens.len(), binds, operator))
    }

    fn binary(&mut self, least: u8) -> Expression {
        let mut left = self.unary();
        while let Some((length, binds, operator)) = self.operator(least) {
            self.at += length;
            let right = self.binary(binds + 1);
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
        }
        left
    }

    fn unary(&mut self) -> Expression {
        self.depth += 1;
        let parsed = if self.depth > DEEPEST { Expression::Unknown } else { self.primary() };
        self.depth -= 1;
        parsed
    }

    fn primary(&mut self) -> Expression {
        let token = self.peek();
        match token {
            "+" => {
                self.at += 1;
                self.unary()
            }
            "-" => {
                self.at += 1;
                match self.unary() {
                    Expression::Integer(value) => Expression::Integer(-value),
                    Expression::Float(value) => Expression::Float(-value),
                    other => Expression::Binary(Operator::Subtract, Box::new(Expression::Integer(0)), Box::new(other)),
                }
            }
            "(" => {
                let Some(close) = closing(self.tokens, self.at) else { return self.give_up() };
                let inside = &self.tokens[self.at + 1..close];
                let follows = self.tokens.get(close + 1).copied().unwrap_or("");
                if is_type(inside)
                    && (is_name(follows) || follows == "(" || follows.starts_with(|c: char| c.is_ascii_digit()))
                {
                    self.at = close + 1;
                    return self.unary();
                }
                let mut inner = Parser { tokens: inside, at: 0, depth: self.depth };
                let parsed = inner.choice();
                let is_whole = inner.at == inside.len();
                self.at = close + 1;
                if is_whole { self.postfix(parsed) } else { Expression::Unknown }
            }
            "true" | "false" => {
                self.at += 1;
                Expression::Integer(i128::from(token == "true"))
            }
            _ if token.starts_with(|c: char| c.is_ascii_digit()) || token == "." => self.number(),
            _ if is_name(token) => self.name(),
            _ => self.give_up(),
        }
    }

    fn give_up(&mut self) -> Expression {
        self.at = self.tokens.len();
        Expression::Unknown
    }

    /// Parses a number. [`tokens`](crate::source::tokens) splits it at points and signs: `1`, `.`, `5e`, `-`, `3f`.
    fn number(&mut self) -> Expression {
        let mut text = String::new();
        let is_hex = self.peek().starts_with("0x") || self.peek().starts_with("0X");
        loop {
            let token = self.peek();
            let ends_with_exponent = !is_hex && text.ends_with(['e', 'E']);
            let is_part = token == "."
                || token.starts_with(|c: char| c.is_ascii_digit())
                || (text.ends_with('.') && matches!(token, "f" | "F"))
                || (ends_with_exponent && matches!(token, "-" | "+"));
            if !is_part {
                break;
            }
            text.push_str(token);
            self.at += 1;
        }
        let text = text.replace('\'', "");
        if is_hex {
            let digits = text[2..].trim_end_matches(['u', 'U', 'l', 'L']);
            return i128::from_str_radix(digits, 16).map_or(Expression::Unknown, Expression::Integer);
        }
        let is_float = text.contains(['.', 'e', 'E', 'f', 'F']);
        let digits = text.trim_end_matches(['u', 'U', 'l', 'L', 'f', 'F']);
        if is_float {
            return digits.parse().map_or(Expression::Unknown, Expression::Float);
        }
        // Octal numbers are left unknown.
        let is_octal = digits.len() > 1 && digits.starts_with('0');
        digits.parse().ok().filter(|_| !is_octal).map_or(Expression::Unknown, Expression::Integer)
    }

    fn name(&mut self) -> Expression {
        let mut name = self.peek().to_owned();
        self.at += 1;
        if name.ends_with("_cast") && self.peek() == "<" {
            let rest = &self.tokens[self.at..];
            let Some(end) = rest.iter().position(|token| *token == ">") else { return self.give_up() };
            self.at += end + 1;
            return self.unary();
        }
        while self.tokens[self.at.min(self.tokens.len())..].starts_with(&[":", ":"]) {
            self.at += 2;
            self.peek().clone_into(&mut name);
            self.at += 1;
        }
        if self.peek() == "<" && matches!(name.as_str(), "min" | "max") {
            let rest = &self.tokens[self.at..];
            let Some(end) = rest.iter().position(|token| *token == ">") else { return self.give_up() };
            self.at += end + 1;
        }
        if self.peek() != "(" {
            return self.postfix(Expression::Name(name));
        }
        let Some(close) = closing(self.tokens, self.at) else { return self.give_up() };
        let inside = &self.tokens[self.at + 1..close];
        self.at = close + 1;
        if name == "sizeof" {
            return size_of(inside).map_or(Expression::Unknown, Expression::Integer);
        }
        let mut arguments = crate::source::split(inside).into_iter().map(Expression::parse).collect::<Vec<_>>();
        if arguments.len() == 1 && (is_type(&[name.as_str()]) || matches!(name.as_str(), "ceil" | "ceilf" | "floor")) {
            return arguments.remove(0);
        }
        let lower = name.to_lowercase();
        let rounds_up = lower.contains("div") && ["up", "ceil", "cdiv"].iter().any(|word| lower.contains(word));
        let name = match lower.as_str() {
            _ if rounds_up && arguments.len() == 2 => "ceil_div".to_owned(),
            "imin" | "fmin" | "fminf" => "min".to_owned(),
            "imax" | "fmax" | "fmaxf" => "max".to_owned(),
            _ => name,
        };
        Expression::Call(name, arguments)
    }

    /// Parses component and element accesses after a primary expression.
    fn postfix(&mut self, mut parsed: Expression) -> Expression {
        loop {
            if self.peek() == "[" {
                let Some(close) = closing(self.tokens, self.at) else { return self.give_up() };
                let index = Expression::parse(&self.tokens[self.at + 1..close]);
                self.at = close + 1;
                parsed = match parsed {
                    Expression::Name(name) => Expression::Element(name, Box::new(index)),
                    _ => Expression::Unknown,
                };
            } else if self.peek() == "." && self.tokens.get(self.at + 1).is_some_and(|next| is_name(next)) {
                let member = self.tokens[self.at + 1];
                self.at += 2;
                parsed = match parsed {
                    Expression::Name(name) if self.peek() != "(" => Expression::Name(format!("{name}.{member}")),
                    // A field of an element is loaded from the same array.
                    element @ Expression::Element(..) if self.peek() != "(" => element,
                    _ => Expression::Unknown,
                };
            } else {
                return parsed;
            }
        }
    }
}

/// Whether the tokens are a type name, as in a cast.
fn is_type(tokens: &[&str]) -> bool {
    let is_word = |token: &&str| {
        matches!(
            *token,
            "const"
                | "signed"
                | "unsigned"
                | "char"
                | "short"
                | "int"
                | "long"
                | "float"
                | "double"
                | "bool"
                | "uint"
                | "std"
                | ":"
                | "T"
        ) || token.ends_with("_t")
    };
    !tokens.is_empty() && tokens.iter().all(is_word)
}

/// Size of a built-in type in bytes.
fn size_of(tokens: &[&str]) -> Option<i128> {
    let words: Vec<&str> = tokens.iter().copied().filter(|token| !matches!(*token, "const" | "std" | ":")).collect();
    let long = words.contains(&"long") || words.contains(&"double") || words.contains(&"*");
    Some(match *words.first()? {
        _ if long => 8,
        _ if words.contains(&"char") => 1,
        _ if words.contains(&"short") => 2,
        "int" | "unsigned" | "signed" | "float" | "uint" | "int32_t" | "uint32_t" | "half2" | "__half2" | "uchar4"
        | "char4" => 4,
        "bool" | "uint8_t" | "int8_t" | "uchar" => 1,
        "half" | "__half" | "__nv_bfloat16" | "nv_bfloat16" | "int16_t" | "uint16_t" => 2,
        "float2" | "int2" | "uint2" | "size_t" | "int64_t" | "uint64_t" => 8,
        "float3" | "int3" => 12,
        "float4" | "int4" | "uint4" | "double2" => 16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    fn text(source: &str) -> Option<String> {
        Expression::parse(&tokens(source)).text()
    }

    #[test]
    fn arithmetic_of_the_host_becomes_that_of_manifests() {
        for (source, expected) in [
            ("(n + 255) / 256", "ceil_div(n, 256)"),
            ("(n + block.x - 1) / block.x", "ceil_div(n, block.x)"),
            ("(n - 1) / 256 + 1", "((n - 1) / 256) + 1"),
            ("cdiv(rows, 32)", "ceil_div(rows, 32)"),
            ("iDivUp(w, TILE)", "ceil_div(w, TILE)"),
            ("1 << 20", "1 << 20"),
            ("(size_t)n * sizeof(float)", "n * 4"),
            ("static_cast<unsigned>(n) * m", "n * m"),
            ("std::min(n, 64)", "min(n, 64)"),
            ("2.5e-1f", "0.25"),
            ("-3", "(-3)"),
            ("0x10", "16"),
        ] {
            assert_eq!(text(source).as_deref(), Some(expected), "{source}");
        }
        for unknown in ["a ? b : c", "f(x)", "n & 3", "x[3]", "010", "a b", "(", "*p", "a < b"] {
            assert_eq!(text(unknown), None, "{unknown}");
        }
        assert_eq!(text(&format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000))), None);
    }

    #[test]
    fn values_are_bounded_by_those_of_the_names() {
        let bounds = |source: &str| {
            Expression::parse(&tokens(source)).interval(&|name| match name {
                Expression::Name(name) if name == "i" => Some((0, 9)),
                Expression::Name(name) if name == "n" => Some((100, 100)),
                _ => None,
            })
        };
        assert_eq!(bounds("i * n + i"), Some((0, 909)));
        assert_eq!(bounds("n - 1 - i"), Some((90, 99)));
        assert_eq!(bounds("unknown % n"), Some((0, 99)));
        assert_eq!(bounds("i / 4 + (i >> 1)"), Some((0, 6)));
        assert_eq!(bounds("i ^ 1"), Some((0, 15)));
        assert_eq!(bounds("i < 3 ? i : n"), Some((0, 100)));
        assert_eq!(bounds("i * unknown"), None);
    }
}
