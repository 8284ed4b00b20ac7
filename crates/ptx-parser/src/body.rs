//! Function bodies: statements, labels and scopes.

use std::borrow::Cow;

use super::ParseError;
use super::ast::{Guard, Instruction, SourcePosition, Statement};
use super::lexer::Token;
use super::parser::Parser;

/// Maximum depth of nested scopes, so that no input overflows the stack.
const MAX_DEPTH: u32 = 128;

impl<'a> Parser<'a> {
    /// Parses statements up to and including the closing brace. The opening brace is already consumed.
    pub(super) fn block(&mut self, depth: u32) -> Result<Vec<Statement<'a>>, ParseError> {
        if depth > MAX_DEPTH {
            return Err(self.lexer.error(format!("scopes are nested deeper than {MAX_DEPTH}")));
        }
        let mut statements = Vec::new();
        loop {
            match self.peek()? {
                Token::Punct(b'}') => {
                    self.next()?;
                    return Ok(statements);
                }
                Token::Punct(b'{') => {
                    self.next()?;
                    statements.push(Statement::Block(self.block(depth + 1)?));
                }
                Token::Punct(b';') => {
                    self.next()?;
                }
                Token::Punct(b'@') => {
                    self.next()?;
                    let negated = self.eat(b'!')?;
                    let register = self.word("a predicate after `@`")?;
                    let opcode = self.word("an opcode after its guard")?;
                    statements.push(self.instruction(opcode, Some(Guard { register, negated }))?);
                }
                Token::Word(word) if word.starts_with('.') => {
                    self.next()?;
                    self.directive(word, &mut statements)?;
                }
                Token::Word(word) => {
                    self.next()?;
                    if self.eat(b':')? {
                        statements.push(self.labelled(word)?);
                    } else {
                        statements.push(self.instruction(word, None)?);
                    }
                }
                other => return Err(self.unexpected("a statement or `}`", other)),
            }
        }
    }

    fn instruction(&mut self, opcode: &'a str, guard: Option<Guard<'a>>) -> Result<Statement<'a>, ParseError> {
        let mut opcode = Cow::Borrowed(opcode);
        // A space may precede a modifier: `lop3 .b32`.
        while let Token::Word(modifier) = self.peek()?
            && modifier.starts_with('.')
        {
            self.next()?;
            opcode.to_mut().push_str(modifier);
        }
        let line = self.lexer.line()?;
        let (operands, call) = if opcode == "call" || opcode.starts_with("call.") {
            (Vec::new(), Some(Box::new(self.call()?)))
        } else {
            (self.operands()?, None)
        };
        Ok(Statement::Instruction(Instruction { line, guard, opcode, operands, call }))
    }

    /// Parses what follows a name and a colon: a label, a prototype, or a target table.
    fn labelled(&mut self, name: &'a str) -> Result<Statement<'a>, ParseError> {
        match self.peek()? {
            Token::Word(".callprototype") => {
                self.next()?;
                let returns = if self.peek()? == Token::Punct(b'(') { self.parameters()? } else { Vec::new() };
                self.word("`_`")?;
                let params = if self.peek()? == Token::Punct(b'(') { self.parameters()? } else { Vec::new() };
                while !self.eat(b';')? {
                    if self.next()? == Token::End {
                        return Err(self.lexer.error("the prototype does not end in `;`"));
                    }
                }
                Ok(Statement::Prototype { name, returns, params })
            }
            Token::Word(".branchtargets" | ".calltargets") => {
                self.next()?;
                let mut labels = vec![self.word("a label")?];
                while self.eat(b',')? {
                    labels.push(self.word("a label")?);
                }
                self.expect(b';')?;
                Ok(Statement::BranchTargets { name, labels })
            }
            _ => Ok(Statement::Label(name)),
        }
    }

    fn directive(&mut self, word: &'a str, out: &mut Vec<Statement<'a>>) -> Result<(), ParseError> {
        match word {
            ".loc" => {
                let file = self.int("a file index")? as u32;
                let line = self.int("a line")? as u32;
                let column = self.int("a column")? as u32;
                let inlined_at = self.inlining()?;
                out.push(Statement::Location { place: SourcePosition { file, line, column }, inlined_at });
            }
            ".pragma" => {
                while !self.eat(b';')? {
                    if self.next()? == Token::End {
                        return Err(self.lexer.error("the pragma does not end in `;`"));
                    }
                }
            }
            ".reg" | ".local" | ".shared" | ".param" | ".global" | ".const" => {
                for variable in self.variables(word)? {
                    out.push(Statement::Variable(variable));
                }
            }
            _ => return Err(self.lexer.error(format!("unknown directive `{word}` in a function"))),
        }
        Ok(())
    }

    /// Parses `, function_name $L__info_string0, inlined_at 1 6 28`, which may follow a `.loc`.
    fn inlining(&mut self) -> Result<Option<SourcePosition>, ParseError> {
        let mut place = None;
        while self.eat(b',')? {
            match self.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.word("a label")?;
                    if self.eat(b'+')? {
                        self.int("an offset")?;
                    }
                }
                "inlined_at" => {
                    let file = self.int("a file index")? as u32;
                    let line = self.int("a line")? as u32;
                    place = Some(SourcePosition { file, line, column: self.int("a column")? as u32 });
                }
                other => return Err(self.lexer.error(format!("unknown attribute `{other}` of `.loc`"))),
            }
        }
        Ok(place)
    }
}
