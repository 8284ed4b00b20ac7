//! Parses operands and initialisers.

use super::ParseError;
use super::ast::{Call, Initializer, Operand};
use super::lexer::Token;
use super::parser::Parser;

impl<'a> Parser<'a> {
    /// Parses the operands of an instruction, up to and including its semicolon.
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
        match self.next()? {
            Token::Punct(b'!') => Ok(Operand::Not(self.word("a predicate after `!`")?)),
            Token::Punct(b'-') => match self.next()? {
                Token::Int(v) => Ok(Operand::Int(v.wrapping_neg())),
                Token::F64(v) => Ok(Operand::F64(v ^ (1 << 63))),
                Token::F32(v) => Ok(Operand::F32(v ^ (1 << 31))),
                Token::Word(name) => Ok(Operand::Negative(name)),
                other => Err(self.unexpected("a number or a register after `-`", other)),
            },
            Token::Int(v) => Ok(Operand::Int(v)),
            Token::F32(v) => Ok(Operand::F32(v)),
            Token::F64(v) => Ok(Operand::F64(v)),
            Token::Word(name) => {
                if self.eat(b'|')? {
                    return Ok(Operand::Pair(name, self.word("a predicate after `|`")?));
                }
                if name == "_" {
                    return Ok(Operand::Sink);
                }
                match self.peek()? {
                    Token::Punct(b'+' | b'-') => Ok(Operand::Offset(name, self.offset()?)),
                    _ => Ok(Operand::Name(name)),
                }
            }
            other => Err(self.unexpected("an operand", other)),
        }
    }

    /// Parses `[base + offset]`, `[base]`, `[absolute]` or `[name, {place}]`.
    fn address(&mut self) -> Result<Operand<'a>, ParseError> {
        self.expect(b'[')?;
        let base = match self.peek()? {
            Token::Word(name) => {
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
            return Ok(Operand::Element(element));
        }
        let offset = if self.peek()? == Token::Punct(b']') { 0 } else { self.offset()? };
        self.expect(b']')?;
        Ok(Operand::Address { base, offset })
    }

    /// Parses `+ 4`, `- 4`, `+-4` or `4`.
    fn offset(&mut self) -> Result<i64, ParseError> {
        let mut negative = false;
        loop {
            match self.next()? {
                Token::Punct(b'+') => {}
                Token::Punct(b'-') => negative = !negative,
                Token::Int(v) => return Ok(if negative { (v as i64).wrapping_neg() } else { v as i64 }),
                other => return Err(self.unexpected("an offset", other)),
            }
        }
    }

    /// `(ret), target, (args), prototype;`, where only the target is required.
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

    /// Parses the initialiser after `=`: one element, or nested braces, flattened.
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
        match self.next()? {
            Token::Punct(b'-') => match self.next()? {
                Token::Int(v) => Ok(Initializer::Int(v.wrapping_neg())),
                Token::F64(v) => Ok(Initializer::Float(-f64::from_bits(v))),
                Token::F32(v) => Ok(Initializer::Int(u64::from(v ^ (1 << 31)))),
                other => Err(self.unexpected("a number after `-`", other)),
            },
            Token::Int(v) => Ok(Initializer::Int(v)),
            Token::F32(v) => Ok(Initializer::Int(u64::from(v))),
            Token::F64(v) => Ok(Initializer::Float(f64::from_bits(v))),
            Token::Word("generic") => {
                self.expect(b'(')?;
                let symbol = self.word("a symbol")?;
                self.expect(b')')?;
                Ok(Initializer::Address { symbol, offset: self.optional_offset()?, generic: true })
            }
            Token::Word(symbol) => Ok(Initializer::Address { symbol, offset: self.optional_offset()?, generic: false }),
            other => Err(self.unexpected("an initial value", other)),
        }
    }

    fn optional_offset(&mut self) -> Result<i64, ParseError> {
        match self.peek()? {
            Token::Punct(b'+' | b'-') => self.offset(),
            _ => Ok(0),
        }
    }
}
