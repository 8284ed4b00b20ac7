//! Operands and initialisers.

use super::ParseError;
use super::ast::{Call, Initializer, Operand};
use super::constant::{Constant, is_constant};
use super::lexer::Token;
use super::parser::Parser;

impl<'a> Parser<'a> {
    /// Parses the operands of an instruction, including the semicolon.
    pub(super) fn operands(&mut self) -> Result<Vec<Operand<'a>>, ParseError> {
        let mut operands = Vec::new();
        if self.eat(b';')? {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand()?);
            if self.eat(b';')? {
                return Ok(operands);
            }
            self.expect(b',')?;
        }
    }

    fn operand(&mut self) -> Result<Operand<'a>, ParseError> {
        match self.peek()? {
            Token::Punct(b'{') => {
                self.next()?;
                let mut items = vec![self.scalar()?];
                while self.eat(b',')? {
                    items.push(self.scalar()?);
                }
                self.expect(b'}')?;
                Ok(Operand::Vector(items))
            }
            Token::Punct(b'[') => self.address(),
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Result<Operand<'a>, ParseError> {
        let sign = match self.peek()? {
            Token::Word(word) if !is_constant(word) => {
                self.next()?;
                if self.eat(b'|')? {
                    return Ok(Operand::Pair(word, self.word("a predicate after `|`")?));
                }
                return match self.peek()? {
                    _ if word == "_" => Ok(Operand::Sink),
                    Token::Punct(b'+' | b'-') => Ok(Operand::Offset(word, self.offset()?)),
                    _ => Ok(Operand::Name(word)),
                };
            }
            Token::Punct(sign @ (b'!' | b'-')) => sign,
            _ => return Ok(operand_of(self.constant()?)),
        };
        // The sign of a register or of a constant.
        self.next()?;
        match self.peek()? {
            Token::Word(name) if !is_constant(name) => {
                self.next()?;
                Ok(if sign == b'!' { Operand::Not(name) } else { Operand::Negative(name) })
            }
            _ => {
                let value = self.signed(sign, 0)?;
                Ok(operand_of(self.continued(value)?))
            }
        }
    }

    /// Parses `[base + offset]`, `[base]`, `[absolute]` or `[name, {place}]`.
    fn address(&mut self) -> Result<Operand<'a>, ParseError> {
        self.expect(b'[')?;
        let base = match self.peek()? {
            Token::Word(name) if !is_constant(name) => {
                self.next()?;
                Some(name)
            }
            _ => None,
        };
        if let Some(name) = base
            && self.eat(b',')?
        {
            if self.peek()? != Token::Punct(b'{') {
                let token = self.next()?;
                return Err(self.unexpected("a place in braces", token));
            }
            let element = vec![Operand::Name(name), self.operand()?];
            self.expect(b']')?;
            return Ok(Operand::Place(element));
        }
        let offset = if base.is_some() { self.offset()? } else { self.integer()? as i64 };
        self.expect(b']')?;
        Ok(Operand::Address { base, offset })
    }

    /// Parses `(ret), target, (args), prototype;`, of which only the target is required.
    pub(super) fn call(&mut self) -> Result<Call<'a>, ParseError> {
        let mut returns = Vec::new();
        if self.peek()? == Token::Punct(b'(') {
            returns = self.list()?;
            self.expect(b',')?;
        }
        let target = self.word("the function to call")?;
        let mut args = Vec::new();
        let mut prototype = None;
        while self.eat(b',')? {
            if self.peek()? == Token::Punct(b'(') {
                args = self.list()?;
            } else {
                prototype = Some(self.word("a call prototype")?);
            }
        }
        self.expect(b';')?;
        Ok(Call { target, returns, args, prototype })
    }

    fn list(&mut self) -> Result<Vec<Operand<'a>>, ParseError> {
        self.expect(b'(')?;
        let mut items = Vec::new();
        if self.eat(b')')? {
            return Ok(items);
        }
        loop {
            items.push(self.scalar()?);
            if self.eat(b')')? {
                return Ok(items);
            }
            self.expect(b',')?;
        }
    }

    /// Parses the initialiser after `=`: a single element, or nested braces, which are flattened.
    pub(super) fn initializer(&mut self) -> Result<Vec<Initializer<'a>>, ParseError> {
        let mut items = Vec::new();
        let mut depth = 0_u32;
        loop {
            match self.peek()? {
                Token::Punct(b'{') => {
                    self.next()?;
                    depth += 1;
                    if depth > 64 {
                        return Err(self.lexer.error("initialisers are nested deeper than 64 braces"));
                    }
                    if self.peek()? != Token::Punct(b'}') {
                        continue;
                    }
                }
                Token::Punct(b'}') => {}
                _ => items.push(self.initial()?),
            }
            while depth > 0 && self.eat(b'}')? {
                depth -= 1;
            }
            if depth == 0 {
                return Ok(items);
            }
            self.expect(b',')?;
        }
    }

    fn initial(&mut self) -> Result<Initializer<'a>, ParseError> {
        let symbol = match self.peek()? {
            Token::Word(word) if !is_constant(word) => word,
            _ => {
                return Ok(match self.constant()? {
                    Constant::Signed(v) => Initializer::Int(v as u64),
                    Constant::Unsigned(v) => Initializer::Int(v),
                    Constant::Single(v) => Initializer::Int(u64::from(v)),
                    Constant::Double(v) => Initializer::Float(v),
                });
            }
        };
        self.next()?;
        let generic = symbol == "generic" && self.eat(b'(')?;
        let symbol = if generic { self.word("a symbol")? } else { symbol };
        if generic {
            self.expect(b')')?;
        }
        Ok(Initializer::Address { symbol, offset: self.offset()?, generic })
    }
}

const fn operand_of<'a>(value: Constant) -> Operand<'a> {
    match value {
        Constant::Signed(v) => Operand::Int(v as u64),
        Constant::Unsigned(v) => Operand::Int(v),
        Constant::Single(v) => Operand::F32(v),
        Constant::Double(v) => Operand::F64(v.to_bits()),
    }
}
