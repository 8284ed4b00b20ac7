//! Modules: directives, variables and function headers.

use super::ParseError;
use super::ast::{Function, Linkage, Module, ScalarType, SourceFile, Space, Variable};
use super::lexer::{Lexer, Token};

/// Parses a module. Fails at the first syntax error.
pub fn parse(text: &str) -> Result<Module<'_>, ParseError> {
    let mut parser = Parser { lexer: Lexer::new(text) };
    let mut module = Module::default();
    while parser.top_level(&mut module)? {}
    Ok(module)
}

#[derive(Debug)]
pub(super) struct Parser<'a> {
    pub(super) lexer: Lexer<'a>,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&mut self) -> Result<Token<'a>, ParseError> {
        self.lexer.peek()
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        self.lexer.next()
    }

    pub(super) fn eat(&mut self, punct: u8) -> Result<bool, ParseError> {
        let found = self.peek()? == Token::Punct(punct);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, punct: u8) -> Result<(), ParseError> {
        if self.eat(punct)? {
            return Ok(());
        }
        let found = self.peek()?;
        Err(self.unexpected(&format!("`{}`", char::from(punct)), found))
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, ParseError> {
        match self.next()? {
            Token::Word(word) => Ok(word),
            other => Err(self.unexpected(what, other)),
        }
    }

    pub(super) fn int(&mut self, what: &str) -> Result<u64, ParseError> {
        match self.next()? {
            Token::Int(value) | Token::Unsigned(value) => Ok(value),
            other => Err(self.unexpected(what, other)),
        }
    }

    pub(super) fn unexpected(&self, what: &str, found: Token<'_>) -> ParseError {
        let found = match found {
            Token::Word(word) => format!("`{word}`"),
            Token::Int(v) | Token::Unsigned(v) => format!("the number {v}"),
            Token::F32(_) | Token::F64(_) => "a floating-point number".to_owned(),
            Token::Text(text) => format!("the string \"{text}\""),
            Token::Punct(c) => format!("`{}`", char::from(c)),
            Token::Operator(operator) => format!("`{operator}`"),
            Token::End => "the end of the text".to_owned(),
        };
        self.lexer.error(format!("expected {what}, found {found}"))
    }

    /// Parses a module-level directive. Returns false at the end of the text.
    fn top_level(&mut self, module: &mut Module<'a>) -> Result<bool, ParseError> {
        let word = match self.next()? {
            Token::End => return Ok(false),
            Token::Punct(b';') => return Ok(true),
            Token::Word(word) => word,
            other => return Err(self.unexpected("a directive", other)),
        };
        match word {
            ".version" => module.version = self.version()?,
            ".target" => {
                module.target = self.word("a target")?;
                while self.eat(b',')? {
                    self.word("a target option")?;
                }
            }
            ".address_size" => {
                let bits = self.int("32 or 64")?;
                if bits != 64 {
                    return Err(self.lexer.error(format!("address size {bits}: only 64-bit modules are supported")));
                }
            }
            ".file" => self.file(module)?,
            ".section" => {
                while let Token::Word(_) = self.peek()? {
                    self.next()?;
                }
                self.expect(b'{')?;
                self.lexer.skip_braces()?;
            }
            ".pragma" | ".alias" => while !self.eat(b';')? && self.next()? != Token::End {},
            ".visible" | ".extern" | ".weak" | ".common" => {
                let linkage = match word {
                    ".visible" => Linkage::Visible,
                    ".extern" => Linkage::Extern,
                    ".weak" => Linkage::Weak,
                    _ => Linkage::Common,
                };
                let word = self.word("a declaration")?;
                self.declaration(word, linkage, module)?;
            }
            word => self.declaration(word, Linkage::Private, module)?,
        }
        Ok(true)
    }

    fn declaration(&mut self, word: &'a str, linkage: Linkage, module: &mut Module<'a>) -> Result<(), ParseError> {
        match word {
            ".entry" | ".func" => module.functions.push(self.function(word == ".entry", linkage)?),
            ".global" | ".const" | ".shared" | ".local" | ".param" => {
                module.variables.extend(self.variables(word)?.into_iter().map(|v| Variable { linkage, ..v }));
            }
            _ => return Err(self.lexer.error(format!("unknown directive `{word}`"))),
        }
        Ok(())
    }

    /// Parses a version such as `9.0`, which the lexer reads as a decimal number.
    fn version(&mut self) -> Result<(u32, u32), ParseError> {
        match self.next()? {
            Token::F64(bits) => {
                let tenths = (f64::from_bits(bits) * 10.0).round();
                Ok((tenths as u32 / 10, tenths as u32 % 10))
            }
            Token::Int(major) => Ok((major as u32, 0)),
            other => Err(self.unexpected("a version", other)),
        }
    }

    fn file(&mut self, module: &mut Module<'a>) -> Result<(), ParseError> {
        let index = self.int("a file index")? as u32;
        let path = match self.next()? {
            Token::Text(path) => path,
            other => return Err(self.unexpected("a path", other)),
        };
        while self.eat(b',')? {
            self.int("a time or a size")?;
        }
        module.files.push(SourceFile { index, path });
        Ok(())
    }

    fn function(&mut self, entry: bool, linkage: Linkage) -> Result<Function<'a>, ParseError> {
        let mut returns = Vec::new();
        if !entry {
            self.attributes()?;
            if self.peek()? == Token::Punct(b'(') {
                returns = self.parameters()?;
            }
        }
        let line = self.lexer.line()?;
        let name = self.word("a function's name")?;
        let params = if self.peek()? == Token::Punct(b'(') { self.parameters()? } else { Vec::new() };
        let mut directives = Vec::new();
        loop {
            match self.peek()? {
                Token::Punct(b'{') => {
                    self.next()?;
                    let body = Some(self.block(0)?);
                    return Ok(Function { name, line, linkage, entry, returns, params, directives, body });
                }
                Token::Punct(b';') => {
                    self.next()?;
                    return Ok(Function { name, line, linkage, entry, returns, params, directives, body: None });
                }
                Token::Word(word) if word.starts_with('.') => {
                    self.next()?;
                    directives.push((&word[1..], self.numbers()?));
                }
                other => return Err(self.unexpected("`{` or `;`", other)),
            }
        }
    }

    /// Parses the numbers after `.maxntid` and similar directives. Skips the text after `.pragma`.
    fn numbers(&mut self) -> Result<Vec<u32>, ParseError> {
        let mut numbers = Vec::new();
        loop {
            match self.peek()? {
                Token::Int(value) | Token::Unsigned(value) => {
                    self.next()?;
                    numbers.push(value as u32);
                }
                Token::Text(_) => {
                    self.next()?;
                    self.expect(b';')?;
                }
                Token::Punct(b',') => {
                    self.next()?;
                }
                _ => return Ok(numbers),
            }
        }
    }

    fn attributes(&mut self) -> Result<(), ParseError> {
        while let Token::Word(".attribute" | ".noreturn") = self.peek()? {
            self.next()?;
            if self.peek()? == Token::Punct(b'(') {
                while !self.eat(b')')? && self.next()? != Token::End {}
            }
        }
        Ok(())
    }

    /// Parses `(.param .b32 a, .reg .u32 b)`.
    pub(super) fn parameters(&mut self) -> Result<Vec<Variable<'a>>, ParseError> {
        self.expect(b'(')?;
        let mut params = Vec::new();
        if self.eat(b')')? {
            return Ok(params);
        }
        loop {
            let space = self.word("`.param`")?;
            let header = self.header(space)?;
            params.push(self.variable(header)?);
            if self.eat(b')')? {
                return Ok(params);
            }
            self.expect(b',')?;
        }
    }

    /// Parses the declarations after `.reg`, `.shared`, …, including the semicolon.
    pub(super) fn variables(&mut self, space: &'a str) -> Result<Vec<Variable<'a>>, ParseError> {
        let header = self.header(space)?;
        let mut variables = Vec::new();
        loop {
            variables.push(self.variable(header)?);
            if self.eat(b';')? {
                return Ok(variables);
            }
            self.expect(b',')?;
        }
    }

    /// Parses `.align 4 .v2 .b8` and, in kernel parameters, `.ptr .global .align 8`.
    fn header(&mut self, space: &str) -> Result<Header, ParseError> {
        let space = match space {
            ".reg" => Space::Reg,
            ".global" => Space::Global,
            ".const" => Space::Const,
            ".shared" => Space::Shared,
            ".local" => Space::Local,
            ".param" => Space::Param,
            other => return Err(self.lexer.error(format!("expected a state space, found `{other}`"))),
        };
        let mut header = Header { space, align: None, vector: 1, ty: None };
        while let Token::Word(word) = self.peek()? {
            match word {
                ".align" => {
                    self.next()?;
                    let align = self.int("an alignment")?;
                    if !align.is_power_of_two() || align > 1 << 16 {
                        return Err(self.lexer.error(format!("alignment {align} is not a power of two up to 65536")));
                    }
                    // After the type, `.ptr .align` describes the memory to which a pointer refers.
                    if header.ty.is_none() {
                        header.align = Some(align as u32);
                    }
                }
                ".attribute" => {
                    self.next()?;
                    while !self.eat(b')')? && self.next()? != Token::End {}
                }
                ".v2" | ".v4" | ".v8" => {
                    header.vector = u64::from(word.as_bytes()[2] - b'0');
                    self.next()?;
                }
                ".ptr" | ".global" | ".const" | ".shared" | ".local" if header.ty.is_some() => {
                    self.next()?;
                }
                _ => {
                    let Some(ty) = word.strip_prefix('.').and_then(ScalarType::from_name) else { break };
                    self.next()?;
                    header.ty = Some(ty);
                }
            }
        }
        Ok(header)
    }

    fn variable(&mut self, header: Header) -> Result<Variable<'a>, ParseError> {
        let line = self.lexer.line()?;
        let name = self.word("a variable's name")?;
        let Some(ty) = header.ty else {
            return Err(self.lexer.error(format!("`{name}` is declared without a type")));
        };
        let mut range = None;
        if self.eat(b'<')? {
            range = Some(self.int("a number of registers")?.min(1 << 20) as u32);
            self.expect(b'>')?;
        }
        let mut count = header.vector;
        let mut open = false;
        while self.eat(b'[')? {
            if self.eat(b']')? {
                open = true;
                continue;
            }
            count = count.saturating_mul(self.integer()?);
            self.expect(b']')?;
        }
        let init = if self.eat(b'=')? { self.initializer()? } else { Vec::new() };
        if open {
            count = init.len() as u64;
        }
        let align = header.align.unwrap_or(ty.size() * header.vector as u32);
        Ok(Variable { name, line, linkage: Linkage::Private, space: header.space, align, ty, count, range, init })
    }
}

/// The parts of a declaration that precede the name.
#[derive(Debug, Clone, Copy)]
struct Header {
    space: Space,
    align: Option<u32>,
    vector: u64,
    ty: Option<ScalarType>,
}
