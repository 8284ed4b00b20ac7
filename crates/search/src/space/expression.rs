//! Constraints as expressions in the subset of Python that tuners use: arithmetic, comparisons, `and`, `or`, `not`,
//! `in`, `a if c else b`, `min`, `max` and `abs`.
//!
//! An expression is folded as parameters become known, leaving a residual expression. Partial points with the same
//! residual have the same completions. Bounds on the unknown parameters show early whether a residual can be true or is
//! always true.

use super::node::{Bounds, Choose, Compare, Divide, Node};
use super::parameter::Value;

/// An expression over the parameters of a space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expression(pub(super) Node);

impl Expression {
    /// Parses a constraint. `names` are the parameters of the space, in order.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, ExpressionError> {
        expression(text, names).map(Self)
    }

    /// Indices of the parameters in the expression, ascending.
    #[must_use]
    pub fn parameters(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.0.visit(&mut |node| {
            if let Node::Name(place) = node {
                found.push(*place);
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Substitutes the known parameters.
    pub(super) fn fold(&self, known: &[Option<&Value>]) -> Self {
        Self(self.0.fold(known))
    }

    /// Truth value of the expression, if it is the same for all values within the bounds.
    pub(super) fn decided(&self, bounds: &[Bounds]) -> Option<bool> {
        match self.0.bounds(bounds) {
            Bounds { least, most } if least == 0.0 && most == 0.0 => Some(false),
            Bounds { least, most } if least > 0.0 || most < 0.0 => Some(true),
            _ => None,
        }
    }
}

/// Syntax error in a constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {at} of `{text}`")]
pub struct ExpressionError {
    /// Text of the constraint.
    pub text: String,
    /// Byte offset of the error.
    pub at: usize,
    /// Description of the error.
    pub message: String,
}

/// Maximum nesting of parentheses and unary operators, so that no text overflows the stack.
const DEEPEST: usize = 100;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Value),
    Text(String),
    Name(String),
    Sign(&'static str),
    End,
}

/// Symbols. Each comes before its own prefixes.
const SIGNS: [&str; 21] =
    ["**", "//", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", ",", "!"];

fn expression(text: &str, names: &[&str]) -> Result<Node, ExpressionError> {
    let mut parser = Parser { text, names, tokens: tokens(text)?, next: 0, depth: 0 };
    let node = parser.choice()?;
    if *parser.peek() != Token::End {
        return Err(parser.error("expected an operator or the end"));
    }
    Ok(node)
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let fail = |at: usize, message: &str| ExpressionError { text: text.to_owned(), at, message: message.to_owned() };
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = |accept: &dyn Fn(char) -> bool| rest.find(|c: char| !accept(c)).unwrap_or(rest.len());
        let taken = if first.is_whitespace() {
            first.len_utf8()
        } else if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let taken = length(&|c| c.is_ascii_alphanumeric() || c == '.');
            let number = rest[..taken].parse().map(Value::Int).or_else(|_| rest[..taken].parse().map(Value::Real));
            tokens.push((at, Token::Number(number.map_err(|_| fail(at, "this is not a number"))?)));
            taken
        } else if first.is_alphabetic() || first == '_' {
            let taken = length(&|c| c.is_alphanumeric() || c == '_');
            tokens.push((at, Token::Name(rest[..taken].to_owned())));
            taken
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).ok_or_else(|| fail(at, "this string is not closed"))?;
            tokens.push((at, Token::Text(rest[1..=end].to_owned())));
            end + 2
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| fail(at, "unexpected character"))?;
            tokens.push((at, Token::Sign(sign)));
            sign.len()
        };
        at += taken;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

struct Parser<'a> {
    text: &'a str,
    names: &'a [&'a str],
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn error(&self, message: &str) -> ExpressionError {
        ExpressionError { text: self.text.to_owned(), at: self.tokens[self.next].0, message: message.to_owned() }
    }

    fn take(&mut self, signs: &[&str]) -> bool {
        let found = match self.peek() {
            Token::Sign(sign) => signs.contains(sign),
            Token::Name(name) => signs.contains(&name.as_str()),
            _ => false,
        };
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), ExpressionError> {
        if self.take(&[sign]) { Ok(()) } else { Err(self.error(&format!("expected `{sign}`"))) }
    }

    fn choice(&mut self) -> Result<Node, ExpressionError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("the expression is nested too deeply"));
        }
        let value = self.any()?;
        let node = if self.take(&["if"]) {
            let condition = self.any()?;
            self.expect("else")?;
            Node::If(Box::new([condition, value, self.choice()?]))
        } else {
            value
        };
        self.depth -= 1;
        Ok(node)
    }

    fn any(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.all()?];
        while self.take(&["or", "||"]) {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Any(parts) })
    }

    fn all(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.not()?];
        while self.take(&["and", "&&"]) {
            parts.push(self.not()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::All(parts) })
    }

    fn not(&mut self) -> Result<Node, ExpressionError> {
        let mut negated = false;
        let mut some = false;
        while self.take(&["not", "!"]) {
            negated = !negated;
            some = true;
        }
        let node = self.comparison()?;
        Ok(match (some, negated) {
            (false, _) => node,
            (true, true) => Node::Not(Box::new(node)),
            (true, false) => Node::Not(Box::new(Node::Not(Box::new(node)))),
        })
    }

    fn comparison(&mut self) -> Result<Node, ExpressionError> {
        let mut left = self.sum()?;
        let mut parts = Vec::new();
        loop {
            let how = match self.peek() {
                Token::Sign("<") => Compare::Less,
                Token::Sign("<=") => Compare::LessEqual,
                Token::Sign(">") => Compare::Greater,
                Token::Sign(">=") => Compare::GreaterEqual,
                Token::Sign("==") => Compare::Equal,
                Token::Sign("!=") => Compare::NotEqual,
                Token::Name(name) if name == "in" || name == "not" => {
                    let negated = self.take(&["not"]);
                    self.expect("in")?;
                    let node = self.membership(&left)?;
                    parts.push(if negated { Node::Not(Box::new(node)) } else { node });
                    break;
                }
                _ => break,
            };
            self.next += 1;
            let right = self.sum()?;
            parts.push(Node::Compare(how, Box::new([left, right.clone()])));
            left = right;
        }
        Ok(match parts.len() {
            0 => left,
            1 => parts.remove(0),
            _ => Node::All(parts),
        })
    }

    fn membership(&mut self, left: &Node) -> Result<Node, ExpressionError> {
        let end = if self.take(&["["]) {
            "]"
        } else {
            self.expect("(")?;
            ")"
        };
        let mut parts = Vec::new();
        while !self.take(&[end]) {
            parts.push(Node::Compare(Compare::Equal, Box::new([left.clone(), self.choice()?])));
            if !self.take(&[","]) {
                self.expect(end)?;
                break;
            }
        }
        Ok(Node::Any(parts))
    }

    fn sum(&mut self) -> Result<Node, ExpressionError> {
        let mut parts = vec![self.product()?];
        loop {
            if self.take(&["+"]) {
                parts.push(self.product()?);
            } else if self.take(&["-"]) {
                parts.push(negative(self.product()?));
            } else {
                return Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Sum(parts) });
            }
        }
    }

    fn product(&mut self) -> Result<Node, ExpressionError> {
        let mut node = self.unary()?;
        loop {
            let how = match self.peek() {
                Token::Sign("*") => None,
                Token::Sign("/") => Some(Divide::Exact),
                Token::Sign("//") => Some(Divide::Floor),
                Token::Sign("%") => Some(Divide::Rest),
                _ => return Ok(node),
            };
            self.next += 1;
            let right = self.unary()?;
            node = match (how, node) {
                (Some(how), node) => Node::Divide(how, Box::new([node, right])),
                (None, Node::Product(mut parts)) => {
                    parts.push(right);
                    Node::Product(parts)
                }
                (None, node) => Node::Product(vec![node, right]),
            };
        }
    }

    fn unary(&mut self) -> Result<Node, ExpressionError> {
        let mut negated = false;
        loop {
            if self.take(&["-"]) {
                negated = !negated;
            } else if !self.take(&["+"]) {
                break;
            }
        }
        let base = self.atom()?;
        let node = if self.take(&["**"]) {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.error("the expression is nested too deeply"));
            }
            let power = Node::Divide(Divide::Power, Box::new([base, self.unary()?]));
            self.depth -= 1;
            power
        } else {
            base
        };
        Ok(if negated { negative(node) } else { node })
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        let token = self.peek().clone();
        match token {
            Token::Number(value) => {
                self.next += 1;
                Ok(Node::Value(value))
            }
            Token::Text(text) => {
                self.next += 1;
                Ok(Node::Value(Value::Text(text)))
            }
            Token::Sign("(") => {
                self.next += 1;
                let node = self.choice()?;
                self.expect(")")?;
                Ok(node)
            }
            Token::Name(name) => self.name(&name),
            Token::Sign(_) | Token::End => Err(self.error("expected a value or a parameter")),
        }
    }

    fn name(&mut self, name: &str) -> Result<Node, ExpressionError> {
        if let Some(place) = self.names.iter().position(|known| *known == name) {
            self.next += 1;
            return Ok(Node::Name(place));
        }
        let literal = match name {
            "True" | "true" => Some(true),
            "False" | "false" => Some(false),
            _ => None,
        };
        if let Some(value) = literal {
            self.next += 1;
            return Ok(Node::Value(Value::Bool(value)));
        }
        if !["min", "max", "abs"].contains(&name) {
            let known = self.names.join(", ");
            return Err(self.error(&format!("`{name}` is not a parameter; the parameters are {known}")));
        }
        self.next += 1;
        self.expect("(")?;
        let mut arguments = vec![self.choice()?];
        while self.take(&[","]) {
            arguments.push(self.choice()?);
        }
        self.expect(")")?;
        match name {
            "min" => Ok(Node::Choose(Choose::Least, arguments)),
            "max" => Ok(Node::Choose(Choose::Most, arguments)),
            _ if arguments.len() == 1 => Ok(Node::Absolute(Box::new(arguments.remove(0)))),
            _ => Err(self.error("`abs` takes 1 argument")),
        }
    }
}

fn negative(node: Node) -> Node {
    Node::Product(vec![Node::Value(Value::Int(-1)), node])
}
