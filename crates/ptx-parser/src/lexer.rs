//! Splits text into tokens, one at a time and without copying.

use super::ParseError;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    /// A name, directive, register or opcode. It may contain dots (`%tid.x`, `ld.global.u32`), but a word that starts
    /// with a dot ends at the next dot (`.reg.b32` is two words).
    Word(&'a str),
    Int(u64),
    /// An integer with the suffix `U`.
    Unsigned(u64),
    /// `0f…`.
    F32(u32),
    /// `0d…` or a decimal number.
    F64(u64),
    Text(&'a str),
    Punct(u8),
    /// A two-character operator, e.g. `<<`.
    Operator(&'static str),
    End,
}

/// Reads the text. `peek` returns the next token, `next` consumes it.
#[derive(Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    peeked: Option<(Token<'a>, u32)>,
}

/// Two-character operators of constant expressions.
const OPERATORS: [&str; 8] = ["<<", ">>", "<=", ">=", "==", "!=", "&&", "||"];

const fn starts_word(c: u8) -> bool {
    c.is_ascii_alphabetic() || matches!(c, b'_' | b'$' | b'%' | b'.')
}

const fn continues_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$')
}

impl<'a> Lexer<'a> {
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1, peeked: None }
    }

    /// Returns the line of the next token.
    pub fn line(&mut self) -> Result<u32, ParseError> {
        self.peek()?;
        Ok(self.peeked.map_or(self.line, |p| p.1))
    }

    pub fn peek(&mut self) -> Result<Token<'a>, ParseError> {
        if let Some((token, _)) = self.peeked {
            return Ok(token);
        }
        let token = self.lex()?;
        self.peeked = Some((token, self.line));
        Ok(token)
    }

    pub fn next(&mut self) -> Result<Token<'a>, ParseError> {
        let token = self.peek()?;
        self.peeked = None;
        Ok(token)
    }

    /// Skips the body of a `.section`, including the closing brace.
    pub fn skip_braces(&mut self) -> Result<(), ParseError> {
        loop {
            match self.next()? {
                Token::Punct(b'}') => return Ok(()),
                Token::End => return Err(self.error("the section is not closed by `}`")),
                _ => {}
            }
        }
    }

    pub fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError { line: self.peeked.map_or(self.line, |p| p.1), message: message.into() }
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        let bytes = self.text.as_bytes();
        while let Some(&c) = bytes.get(self.at) {
            match c {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if bytes.get(self.at + 1) == Some(&b'/') => self.skip_line(),
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => {
                    let Some(length) = self.text[self.at + 2..].find("*/") else {
                        return Err(self.error("the comment is not closed by `*/`"));
                    };
                    let comment = &bytes[self.at..self.at + 4 + length];
                    self.line += comment.split(|&c| c == b'\n').count() as u32 - 1;
                    self.at += comment.len();
                }
                b'#' => self.skip_line(),
                _ => break,
            }
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|&c| c == b'\n').unwrap_or(rest.len());
    }

    fn lex(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip_blank()?;
        let bytes = self.text.as_bytes();
        let Some(&c) = bytes.get(self.at) else { return Ok(Token::End) };
        // A `%` that does not start a name is the operator.
        if starts_word(c) && (c != b'%' || bytes.get(self.at + 1).is_some_and(|&c| continues_word(c))) {
            return Ok(self.word());
        }
        if c.is_ascii_digit() {
            return self.number();
        }
        if c == b'"' {
            let start = self.at + 1;
            let Some(length) = bytes[start..].iter().position(|&c| c == b'"' || c == b'\n') else {
                return Err(self.error("the string is not closed"));
            };
            self.at = start + length + 1;
            return Ok(Token::Text(&self.text[start..start + length]));
        }
        if !c.is_ascii() {
            return Err(self.error("a character outside ASCII"));
        }
        if let Some(operator) = OPERATORS.iter().find(|operator| bytes[self.at..].starts_with(operator.as_bytes())) {
            self.at += operator.len();
            return Ok(Token::Operator(operator));
        }
        self.at += 1;
        Ok(Token::Punct(c))
    }

    fn word(&mut self) -> Token<'a> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut end = start + 1;
        let dotted = bytes[start] != b'.';
        while let Some(&c) = bytes.get(end) {
            let after = bytes.get(end + 1).copied().unwrap_or(b' ');
            if continues_word(c) || (dotted && c == b'.' && continues_word(after)) {
                end += 1;
            } else if c == b':' && after == b':' && bytes.get(end + 2).is_some_and(|&c| continues_word(c)) {
                end += 2;
            } else {
                break;
            }
        }
        self.at = end;
        Token::Word(&self.text[start..end])
    }

    fn number(&mut self) -> Result<Token<'a>, ParseError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut end = start;
        let hex_like = bytes[start] == b'0' && bytes.get(start + 1).is_some_and(u8::is_ascii_alphabetic);
        while let Some(&c) = bytes.get(end) {
            let exponent =
                !hex_like && matches!(c, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E') && end > start;
            let point = !hex_like && c == b'.' && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            if c.is_ascii_alphanumeric() || exponent || point {
                end += 1;
            } else {
                break;
            }
        }
        self.at = end;
        let text = &self.text[start..end];
        literal(text).ok_or_else(|| self.error(format!("`{text}` is not a number")))
    }
}

fn literal<'a>(text: &str) -> Option<Token<'a>> {
    let rest = text.get(2..).unwrap_or_default();
    match text.get(..2) {
        Some("0f" | "0F") if rest.len() == 8 => return u32::from_str_radix(rest, 16).ok().map(Token::F32),
        Some("0d" | "0D") if rest.len() == 16 => return u64::from_str_radix(rest, 16).ok().map(Token::F64),
        _ => {}
    }
    if text.contains('.') || (!text.starts_with("0x") && !text.starts_with("0X") && text.contains(['e', 'E'])) {
        return text.parse::<f64>().ok().map(|v| Token::F64(v.to_bits()));
    }
    let unsigned = text.strip_suffix(['U', 'u']);
    let digits = unsigned.unwrap_or(text);
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        Some(_) if digits.starts_with('0') => (8, &digits[1..]),
        _ => (10, digits),
    };
    let token = if unsigned.is_some() { Token::Unsigned } else { Token::Int };
    u64::from_str_radix(digits, radix).ok().map(token)
}
