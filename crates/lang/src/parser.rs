//! Parses an expression into a tree with an operator-precedence (Pratt) parser.
//!
//! Hand-written, because the language is small and most of the code produces error messages. A generated parser would
//! word errors its own way, and combinators would need each of these messages anyway. Every node keeps the byte range
//! that it was parsed from.

use std::ops::Range;

use super::node::{Callee, Kind, Node, Operator, Syntax};
use super::token::{self, Token};
use super::{ExprError, MAX_DEPTH, MAX_LENGTH};
use runner_types::Value;

/// Binding powers of binary operators. Unary operators bind tighter than all of these.
mod binding {
    pub const LEAST: u8 = 0;
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const EQUALITY: u8 = 3;
    pub const MEMBERSHIP: u8 = 4;
    pub const ORDER: u8 = 5;
    pub const SUM: u8 = 6;
    pub const PRODUCT: u8 = 7;
    pub const POWER: u8 = 8;
    pub const SHIFT: u8 = 9;
}

#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    In,
    NotIn,
    Operator(Operator),
}

impl Infix {
    fn from_token(token: &Token) -> Option<Self> {
        match token {
            Token::Name("in") => Some(Self::In),
            Token::Symbol("!in") => Some(Self::NotIn),
            Token::Symbol("||") => Some(Self::Or),
            Token::Symbol("&&") => Some(Self::And),
            Token::Symbol(symbol) => Operator::from_symbol(symbol).map(Self::Operator),
            _ => None,
        }
    }

    const fn binds(self) -> u8 {
        match self {
            Self::Or => binding::OR,
            Self::And => binding::AND,
            Self::In | Self::NotIn => binding::MEMBERSHIP,
            Self::Operator(operator) => match operator {
                Operator::Equal | Operator::NotEqual => binding::EQUALITY,
                Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => binding::ORDER,
                Operator::Add | Operator::Subtract => binding::SUM,
                Operator::Multiply | Operator::Divide | Operator::Remainder => binding::PRODUCT,
                Operator::Power => binding::POWER,
                Operator::ShiftLeft | Operator::ShiftRight => binding::SHIFT,
            },
        }
    }

    /// Minimum binding power of operators within this operator's right side.
    const fn right_side(self) -> u8 {
        match self {
            Self::Operator(Operator::Power) => binding::POWER,
            _ => self.binds() + 1,
        }
    }
}

/// Parses the expression in the byte range `at` of `text`. Errors point into `text`.
pub fn parse(text: &str, at: Range<usize>) -> Result<Syntax<'_>, ExprError> {
    parse_with(text, at, false)
}

/// Like [`parse`], but names and calls may be indexed: `x[i]` or `x[from..to]` calls the function `slice`.
pub fn parse_indexed(text: &str, at: Range<usize>) -> Result<Syntax<'_>, ExprError> {
    parse_with(text, at, true)
}

fn parse_with(text: &str, at: Range<usize>, indexed: bool) -> Result<Syntax<'_>, ExprError> {
    let written = &text[at.clone()];
    if written.trim().is_empty() {
        return Err(ExprError::new("the expression is empty").at(at));
    }
    if written.len() > MAX_LENGTH {
        let message = format!("the expression has {} bytes, but at most {MAX_LENGTH} are allowed", written.len());
        return Err(ExprError::new(message).hint("name its parts in [let]").at(at));
    }
    let (token, place) = token::next(text, at.start, at.end)?;
    let mut parser = Parser { text, end: at.end, token, at: place, before: at.start, level: 0, height: 0, indexed };
    let root = parser.expression(binding::LEAST)?;
    if parser.token == Token::End { Ok(root) } else { Err(parser.unexpected()) }
}

struct Parser<'t> {
    text: &'t str,
    end: usize,
    /// Current token with its byte range.
    token: Token<'t>,
    at: Range<usize>,
    before: usize,
    /// Nesting level of the current token, which limits the parser's recursion.
    level: usize,
    /// Height of the last parsed tree, which limits every recursion over it.
    height: usize,
    /// Whether names and calls may be indexed.
    indexed: bool,
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Result<(), ExprError> {
        self.before = self.at.end;
        (self.token, self.at) = token::next(self.text, self.at.end, self.end)?;
        Ok(())
    }

    fn begins_with(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    /// Parses one nesting level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ExprError>) -> Result<T, ExprError> {
        self.level += 1;
        self.within_limit(self.level)?;
        let read = read(self);
        self.level -= 1;
        read
    }

    fn within_limit(&self, levels: usize) -> Result<(), ExprError> {
        if levels <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("the expression nests deeper than {MAX_DEPTH} levels");
        Err(ExprError::new(message).hint("name its parts in [let]").at(self.at.clone()))
    }

    /// Parses an operand and all following operators that bind at least as tightly as `least`.
    fn expression(&mut self, least: u8) -> Result<Syntax<'t>, ExprError> {
        let start = self.at.start;
        let mut left = self.operand()?;
        while let Some(infix) = Infix::from_token(&self.token).filter(|infix| infix.binds() >= least) {
            let (whole_left, height) = (start..self.before, self.height);
            self.advance()?;
            left = match infix {
                Infix::In => self.membership(left, start)?,
                Infix::NotIn => {
                    let found = self.membership(left, start)?;
                    let span = found.span.clone();
                    Node { kind: Kind::Not(Box::new(found)), span }
                }
                _ => {
                    let right = self.nested(|parser| parser.expression(infix.right_side()))?;
                    let kind = match infix {
                        Infix::Operator(operator) => Kind::Binary(operator, Box::new([left, right])),
                        Infix::And => Kind::And(chain(left, right, &whole_left, "&&")?),
                        _ => Kind::Or(chain(left, right, &whole_left, "||")?),
                    };
                    Node { kind, span: start..self.before }
                }
            };
            self.height = 1 + height.max(self.height);
            self.within_limit(self.height)?;
        }
        Ok(left)
    }

    /// Parses the list after `in`.
    fn membership(&mut self, value: Syntax<'t>, start: usize) -> Result<Syntax<'t>, ExprError> {
        if !self.begins_with("[") {
            let message = "`in` needs a list on its right, as in `block in [128, 256]`";
            return Err(ExprError::new(message).at(self.at.clone()));
        }
        let list = self.nested(|parser| parser.list("]"))?;
        let span = start..self.before;
        if Infix::from_token(&self.token).is_some_and(|next| next.binds() > binding::MEMBERSHIP) {
            let symbol = &self.text[self.at.clone()];
            return Err(ExprError::new(format!("`{symbol}` does not take a list")).at(self.at.clone()));
        }
        Ok(Node { kind: Kind::In(Box::new(value), list), span })
    }

    /// Parses the expressions from the current bracket to `close`, which it consumes.
    fn list(&mut self, close: &str) -> Result<Vec<Syntax<'t>>, ExprError> {
        let open = self.at.clone();
        self.advance()?;
        let (mut items, mut height) = (Vec::new(), 0);
        while !self.begins_with(close) {
            items.push(self.expression(binding::LEAST)?);
            height = height.max(self.height);
            if self.begins_with(",") {
                self.advance()?;
            } else if !self.begins_with(close) {
                return Err(self.unclosed(open));
            }
        }
        self.advance()?;
        self.height = height;
        Ok(items)
    }

    fn operand(&mut self) -> Result<Syntax<'t>, ExprError> {
        self.height = 0;
        let at = self.at.clone();
        let literal = |value| Node { kind: Kind::Literal(value), span: at.clone() };
        let node = match &mut self.token {
            Token::Integer(magnitude) => match i64::try_from(*magnitude) {
                Ok(value) => literal(Value::Int(value)),
                Err(_) => return Err(token::too_large_integer(&self.text[at.clone()], at)),
            },
            Token::Float(value) => literal(Value::Float(*value)),
            Token::Text(content) => literal(Value::from_text(&std::mem::take(content))),
            Token::Name("true") => literal(Value::Bool(true)),
            Token::Name("false") => literal(Value::Bool(false)),
            Token::Name(name) => {
                let name = *name;
                return self.name(name);
            }
            Token::Symbol("(") => return self.parenthesised(),
            Token::Symbol(sign @ ("-" | "+" | "!")) => {
                let sign = *sign;
                return self.unary(sign);
            }
            Token::Symbol("[") => {
                return Err(ExprError::new("a list can only follow `in`").at(at));
            }
            Token::Symbol(symbol) => {
                return Err(foreign(symbol, at.clone())
                    .unwrap_or_else(|| ExprError::new(format!("a value is missing before `{symbol}`")).at(at)));
            }
            Token::End => return Err(ExprError::new("the expression ends too early").at(at)),
        };
        self.advance()?;
        Ok(node)
    }

    fn parenthesised(&mut self) -> Result<Syntax<'t>, ExprError> {
        let open = self.at.clone();
        self.advance()?;
        let inner = self.nested(|parser| parser.expression(binding::LEAST))?;
        if !self.begins_with(")") {
            return Err(self.unclosed(open));
        }
        self.advance()?;
        Ok(inner)
    }

    fn unary(&mut self, sign: &str) -> Result<Syntax<'t>, ExprError> {
        let start = self.at.start;
        self.advance()?;
        if let ("-", Token::Integer(_) | Token::Float(_)) = (sign, &self.token) {
            let value = match self.token {
                // The magnitude of the lowest integer exceeds that of the highest by one.
                Token::Integer(magnitude) => Value::Int((magnitude as i64).wrapping_neg()),
                Token::Float(value) => Value::Float(-value),
                _ => return Err(self.unexpected()),
            };
            self.advance()?;
            return Ok(Node { kind: Kind::Literal(value), span: start..self.before });
        }
        let inner = self.nested(Self::operand)?;
        self.height += 1;
        let span = start..self.before;
        Ok(match sign {
            "-" => Node { kind: Kind::Negate(Box::new(inner)), span },
            "!" => Node { kind: Kind::Not(Box::new(inner)), span },
            _ => inner,
        })
    }

    /// Parses an index after an operand, where one is allowed.
    fn index(&mut self, of: Syntax<'t>) -> Result<Syntax<'t>, ExprError> {
        if !self.indexed || !self.begins_with("[") {
            return Ok(of);
        }
        let open = self.at.clone();
        self.advance()?;
        let from = self.nested(|parser| parser.expression(binding::LEAST))?;
        let to = if self.begins_with("..") {
            self.advance()?;
            self.nested(|parser| parser.expression(binding::LEAST))?
        } else {
            let (span, one) = (from.span.clone(), Kind::Literal(Value::Int(1)));
            let one = Node { kind: one, span: span.clone() };
            Node { kind: Kind::Binary(Operator::Add, Box::new([from.clone(), one])), span }
        };
        if !self.begins_with("]") {
            return Err(self.unclosed(open));
        }
        self.advance()?;
        self.height += 2;
        let span = of.span.start..self.before;
        Ok(Node { kind: Kind::Call(Callee { name: "slice", at: open }, vec![of, from, to]), span })
    }

    fn name(&mut self, name: &'t str) -> Result<Syntax<'t>, ExprError> {
        let at = self.at.clone();
        if let Some(error) = word_of_statements(name, at.clone()) {
            return Err(error);
        }
        self.advance()?;
        if self.begins_with("(") {
            let arguments = self.nested(|parser| parser.list(")"))?;
            self.height += 1;
            let span = at.start..self.before;
            return self.index(Node { kind: Kind::Call(Callee { name, at }, arguments), span });
        }
        self.index(Node { kind: Kind::Name(name.to_owned()), span: at })
    }

    fn unclosed(&self, open: Range<usize>) -> ExprError {
        match self.token {
            Token::End => ExprError::new(format!("`{}` is not closed", &self.text[open.clone()])).at(open),
            _ => self.unexpected(),
        }
    }

    /// Error for an unexpected token after an operand.
    fn unexpected(&self) -> ExprError {
        let at = self.at.clone();
        let found = &self.text[at.clone()];
        let error = match self.token {
            Token::End => return ExprError::new("the expression ends too early").at(at),
            Token::Symbol(symbol) => match foreign(symbol, at.clone()) {
                Some(error) => return error,
                None if symbol == "[" => return refused("an index", at),
                None if matches!(symbol, ")" | "]" | ",") => ExprError::new(format!("unexpected `{found}`")),
                None => ExprError::new(format!("an operator is missing before `{found}`")),
            },
            Token::Name(name) => match word_of_statements(name, at.clone()) {
                Some(error) => return error,
                None => ExprError::new(format!("an operator is missing before `{found}`")),
            },
            _ => ExprError::new(format!("an operator is missing before `{found}`")),
        };
        let error = error.at(at);
        match found {
            "and" => error.hint("write `&&`"),
            "or" => error.hint("write `||`"),
            "not" => error.hint("write `!in`, or `!` before a bool"),
            _ => error,
        }
    }
}

/// Operands of a chain of `&&` or `||`. If the left side is such a chain without parentheses, it is merged.
fn chain<'t>(
    left: Syntax<'t>,
    right: Syntax<'t>,
    whole_left: &Range<usize>,
    symbol: &str,
) -> Result<Vec<Syntax<'t>>, ExprError> {
    for side in [&left, &right] {
        if let Kind::Literal(value) = &side.kind
            && !matches!(value, Value::Bool(_))
        {
            let message = format!("`{symbol}` takes bools, but `{value}` is the {}", value.kind());
            return Err(ExprError::new(message).at(side.span.clone()));
        }
    }
    let mut parts = match left.kind {
        Kind::And(parts) if symbol == "&&" && left.span == *whole_left => parts,
        Kind::Or(parts) if symbol == "||" && left.span == *whole_left => parts,
        kind => vec![Node { kind, span: left.span }],
    };
    parts.push(right);
    Ok(parts)
}

/// Error for an operator of other languages that this one lacks.
fn foreign(symbol: &str, at: Range<usize>) -> Option<ExprError> {
    let operator = |at| ExprError::new(format!("`{symbol}` is not an operator")).at(at);
    Some(match symbol {
        "^" => refused("`^`", at).hint("a power is written `**`"),
        "&" | "|" => refused(&format!("`{symbol}`"), at).hint("use `&&` and `||`"),
        "===" | "=" => operator(at).hint("compare with `==`"),
        "!==" => operator(at).hint("compare with `!=`"),
        "//" => operator(at).hint("integer `/` truncates towards zero"),
        "++" | "--" => operator(at).hint("put a space between the two signs"),
        "." | "?." => refused("a method call", at).hint("write it as a function: f(x)"),
        ".." | "..=" | "..." => refused("a range", at),
        "{" => refused("a block", at),
        ";" => refused("a statement", at).hint("only expressions are allowed, not statements"),
        ":=" | "+=" | "-=" | "*=" | "/=" | "%=" | "**=" | "<<=" | ">>=" | "&=" | "|=" | "^=" => {
            refused("an assignment", at)
        }
        "?" => operator(at).hint("use select(condition, a, b)"),
        "??" | "=>" | "->" | "/*" | "::" | ":" | "~" => operator(at),
        _ => return None,
    })
}

/// Error for a keyword that starts a statement in other languages. None of these can be a name.
fn word_of_statements(word: &str, at: Range<usize>) -> Option<ExprError> {
    let hint = match word {
        "if" | "else" | "switch" => "use select(condition, a, b)",
        "let" | "const" | "while" | "for" | "loop" | "do" | "fn" | "return" => {
            "only expressions are allowed, not statements"
        }
        "in" => return Some(ExprError::new("a value is missing before `in`").at(at)),
        _ => return None,
    };
    Some(ExprError::new(format!("`{word}` is a reserved word and cannot be a name")).hint(hint).at(at))
}

fn refused(what: &str, at: Range<usize>) -> ExprError {
    ExprError::new(format!("{what} is not allowed: only expressions over numbers, bools and strings are")).at(at)
}
