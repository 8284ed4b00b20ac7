//! Constant expressions of the PTX ISA: 64-bit integers, signed or unsigned, and doubles.

use super::ParseError;
use super::lexer::Token;
use super::parser::Parser;

/// Maximum depth of nested expressions, so that no input overflows the stack.
const MAX_DEPTH: u32 = 64;

/// Lowest precedence of a binary operator.
const ANY: u8 = 1;
/// Precedence of sums.
const SUM: u8 = 9;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Constant {
    Signed(i64),
    Unsigned(u64),
    /// Bits of a `0f` literal, which cannot be part of an expression.
    Single(u32),
    Double(f64),
}

use Constant::{Double, Signed, Single, Unsigned};

impl Constant {
    pub const fn integer(self) -> Option<u64> {
        match self {
            Signed(v) => Some(v as u64),
            Unsigned(v) => Some(v),
            Single(_) | Double(_) => None,
        }
    }
}

/// Whether a word is a predefined constant. There is only `WARP_SZ`, the number of threads in a warp.
pub fn is_constant(word: &str) -> bool {
    word == "WARP_SZ"
}

/// Precedence of a binary operator. Higher values bind more tightly.
fn precedence(token: Token<'_>) -> Option<(u8, &'static str)> {
    Some(match token {
        Token::Operator(op) => match op {
            "||" => (1, op),
            "&&" => (2, op),
            "==" | "!=" => (6, op),
            "<=" | ">=" => (7, op),
            _ => (8, op),
        },
        Token::Punct(c) => match c {
            b'|' => (3, "|"),
            b'^' => (4, "^"),
            b'&' => (5, "&"),
            b'<' => (7, "<"),
            b'>' => (7, ">"),
            b'+' => (SUM, "+"),
            b'-' => (SUM, "-"),
            b'*' => (10, "*"),
            b'/' => (10, "/"),
            b'%' => (10, "%"),
            _ => return None,
        },
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn constant(&mut self) -> Result<Constant, ParseError> {
        self.expression(0)
    }

    /// Parses the rest of an expression after its first operand.
    pub(super) fn continued(&mut self, start: Constant) -> Result<Constant, ParseError> {
        self.choice(start, 0)
    }

    /// Parses an offset such as `+ 4 * 3 - 2` and returns its value.
    pub(super) fn offset(&mut self) -> Result<i64, ParseError> {
        let sum = self.binary(Signed(0), SUM, 0)?;
        self.as_integer(sum).map(|v| v as i64)
    }

    /// Parses an expression that must have an integer value.
    pub(super) fn integer(&mut self) -> Result<u64, ParseError> {
        let value = self.constant()?;
        self.as_integer(value)
    }

    fn as_integer(&self, value: Constant) -> Result<u64, ParseError> {
        value.integer().ok_or_else(|| self.lexer.error("expected an integer, not a floating-point number"))
    }

    fn expression(&mut self, depth: u32) -> Result<Constant, ParseError> {
        let start = self.unary(depth)?;
        self.choice(start, depth)
    }

    /// Parses the rest of an expression after its first operand, including `a ? b : c`.
    fn choice(&mut self, start: Constant, depth: u32) -> Result<Constant, ParseError> {
        let condition = self.binary(start, ANY, depth)?;
        if !self.eat(b'?')? {
            return Ok(condition);
        }
        let yes = self.expression(depth + 1)?;
        self.expect(b':')?;
        let no = self.expression(depth + 1)?;
        let (yes, no) = match (yes, no) {
            (Unsigned(_), Signed(no)) => (yes, Unsigned(no as u64)),
            (Signed(yes), Unsigned(_)) => (Unsigned(yes as u64), no),
            pair => pair,
        };
        Ok(if self.as_integer(condition)? == 0 { no } else { yes })
    }

    fn binary(&mut self, mut left: Constant, least: u8, depth: u32) -> Result<Constant, ParseError> {
        while let Some((level, operator)) = precedence(self.peek()?).filter(|(level, _)| *level >= least) {
            self.next()?;
            let operand = self.unary(depth)?;
            let right = self.binary(operand, level + 1, depth)?;
            left = apply(operator, left, right).map_err(|message| self.lexer.error(message))?;
        }
        Ok(left)
    }

    /// Parses the operand of a `-` or `!`, and applies that sign.
    pub(super) fn signed(&mut self, sign: u8, depth: u32) -> Result<Constant, ParseError> {
        let value = self.unary(depth + 1)?;
        if sign == b'!' {
            return Ok(Signed(i64::from(self.as_integer(value)? == 0)));
        }
        Ok(match value {
            Signed(v) => Signed(v.wrapping_neg()),
            Unsigned(v) => Unsigned(v.wrapping_neg()),
            Single(v) => Single(v ^ (1 << 31)),
            Double(v) => Double(-v),
        })
    }

    /// Parses a literal, an expression in parentheses, a cast, or a unary operator with its operand.
    fn unary(&mut self, depth: u32) -> Result<Constant, ParseError> {
        if depth > MAX_DEPTH {
            return Err(self.lexer.error(format!("the expression is nested deeper than {MAX_DEPTH}")));
        }
        Ok(match self.next()? {
            Token::Int(v) => i64::try_from(v).map_or(Unsigned(v), Signed),
            Token::Unsigned(v) => Unsigned(v),
            Token::F32(v) => Single(v),
            Token::F64(v) => Double(f64::from_bits(v)),
            Token::Word(word) if is_constant(word) => Signed(32),
            Token::Punct(b'+') => self.unary(depth + 1)?,
            Token::Punct(sign @ (b'-' | b'!')) => self.signed(sign, depth)?,
            Token::Punct(b'~') => {
                let value = self.unary(depth + 1)?;
                Unsigned(!self.as_integer(value)?)
            }
            Token::Punct(b'(') => {
                let Token::Word(cast @ (".s64" | ".u64")) = self.peek()? else {
                    let value = self.expression(depth + 1)?;
                    self.expect(b')')?;
                    return Ok(value);
                };
                self.next()?;
                self.expect(b')')?;
                let value = self.unary(depth + 1)?;
                let bits = self.as_integer(value)?;
                if cast == ".s64" { Signed(bits as i64) } else { Unsigned(bits) }
            }
            other => return Err(self.unexpected("an operand", other)),
        })
    }
}

/// Evaluates `left operator right`.
#[expect(clippy::float_cmp, reason = "an expression says what it compares")]
fn apply(operator: &str, left: Constant, right: Constant) -> Result<Constant, String> {
    let truth = |value: bool| Ok(Signed(i64::from(value)));
    if let (Double(x), Double(y)) = (left, right) {
        return match operator {
            "+" => Ok(Double(x + y)),
            "-" => Ok(Double(x - y)),
            "*" => Ok(Double(x * y)),
            "/" => Ok(Double(x / y)),
            "<" => truth(x < y),
            ">" => truth(x > y),
            "<=" => truth(x <= y),
            ">=" => truth(x >= y),
            "==" => truth(x == y),
            "!=" => truth(x != y),
            _ => Err(format!("`{operator}` takes integers, not floating-point numbers")),
        };
    }
    let (Some(x), Some(y)) = (left.integer(), right.integer()) else {
        return Err(format!("`{operator}` takes two integers or two doubles"));
    };
    let (a, b) = (x as i64, y as i64);
    let signed = matches!((left, right), (Signed(_), Signed(_)));
    let of = |bits: u64| if signed { Signed(bits as i64) } else { Unsigned(bits) };
    let shift = u32::try_from(y).ok().filter(|&by| by < 64);
    Ok(match operator {
        "+" => of(x.wrapping_add(y)),
        "-" => of(x.wrapping_sub(y)),
        "*" => of(x.wrapping_mul(y)),
        "/" | "%" if y == 0 => return Err("a division by zero".to_owned()),
        "/" if signed => Signed(a.wrapping_div(b)),
        "/" => Unsigned(x / y),
        "%" => Signed((x % y) as i64),
        "&" => Unsigned(x & y),
        "|" => Unsigned(x | y),
        "^" => Unsigned(x ^ y),
        // A shift has the type of its first operand; the second operand is unsigned.
        "<<" => match (left, shift.map_or(0, |by| x << by)) {
            (Signed(_), bits) => Signed(bits as i64),
            (_, bits) => Unsigned(bits),
        },
        ">>" => match left {
            Signed(_) => Signed(a >> shift.unwrap_or(63)),
            _ => Unsigned(shift.map_or(0, |by| x >> by)),
        },
        "&&" => return truth(x != 0 && y != 0),
        "||" => return truth(x != 0 || y != 0),
        "==" => return truth(x == y),
        "!=" => return truth(x != y),
        "<" => return truth(if signed { a < b } else { x < y }),
        ">" => return truth(if signed { a > b } else { x > y }),
        "<=" => return truth(if signed { a <= b } else { x <= y }),
        _ => return truth(if signed { a >= b } else { x >= y }),
    })
}
