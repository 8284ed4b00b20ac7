//! Splits an expression into tokens, one at a time, each with its byte range.

use std::ops::Range;

use super::ExprError;

#[derive(Debug, Clone, PartialEq)]
pub enum Token<'t> {
    /// An unsigned integer. Includes 2^63, which is valid after a minus.
    Integer(u64),
    /// A finite float.
    Float(f64),
    Text(String),
    /// A name or a keyword.
    Name(&'t str),
    /// An operator or a bracket. Includes operators of other languages, so that each is rejected as a whole.
    Symbol(&'static str),
    End,
}

/// All symbols. Each comes before its own prefixes.
const SYMBOLS: &[&str] = &[
    "**=", "===", "!==", "<<=", ">>=", "...", "..=", "**", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "??", "?.",
    "..", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", ":=", "=>", "->", "//", "/*", "::", "+", "-",
    "*", "/", "%", "<", ">", "!", "=", "&", "|", "^", "~", "?", ".", ",", ":", ";", "(", ")", "[", "]", "{",
];

/// The first token at or after byte `from`, skipping whitespace, within the first `end` bytes of `text`.
pub fn next(text: &str, from: usize, end: usize) -> Result<(Token<'_>, Range<usize>), ExprError> {
    let rest = &text[from..end];
    let start = from + rest.find(|c: char| !c.is_ascii_whitespace()).unwrap_or(rest.len());
    let rest = &text[start..end];
    let (token, length) = match rest.chars().next() {
        None => (Token::End, 0),
        Some('0'..='9') => number(rest, start)?,
        Some('"') => string(rest, start)?,
        Some(c) if is_name_start(c) => {
            let length = rest.find(|c| !is_name_part(c)).unwrap_or(rest.len());
            (Token::Name(&rest[..length]), length)
        }
        Some(_) if rest.starts_with("!in") && !rest[3..].starts_with(is_name_part) => (Token::Symbol("!in"), 3),
        Some(c) => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => (Token::Symbol(symbol), symbol.len()),
            None => return Err(unexpected(c, start..start + c.len_utf8())),
        },
    };
    Ok((token, start..start + length))
}

fn unexpected(c: char, at: Range<usize>) -> ExprError {
    let error = ExprError::new(format!("`{c}` cannot occur in an expression")).at(at);
    match c {
        '\'' | '`' => error.hint("write a string in double quotes"),
        _ => error,
    }
}

pub fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

pub fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a string is a valid name in C++ and in expressions.
pub fn is_name(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_part)
}

fn number(text: &str, start: usize) -> Result<(Token<'_>, usize), ExprError> {
    let radix = match text.get(..2) {
        Some("0x" | "0X") => 16,
        Some("0o" | "0O") => 8,
        Some("0b" | "0B") => 2,
        _ => 10,
    };
    let digits = |from: usize| text[from..].find(|c: char| !c.is_ascii_digit() && c != '_').map(|at| from + at);
    let mut length = digits(0).unwrap_or(text.len());
    let mut is_float = false;
    if radix == 10 {
        let point = text[length..].strip_prefix('.');
        if point.is_some_and(|after| !after.starts_with(|c| is_name_start(c) || c == '.')) {
            is_float = true;
            length = digits(length + 1).unwrap_or(text.len());
        }
        if let Some(exponent) = text[length..].strip_prefix(['e', 'E']) {
            let signed = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if signed.starts_with(|c: char| c.is_ascii_digit()) {
                is_float = true;
                length = digits(text.len() - signed.len()).unwrap_or(text.len());
            }
        }
    }
    // Name characters that follow directly were meant to be part of the number.
    length += text[length..].find(|c| !is_name_part(c)).unwrap_or(text.len() - length);
    let written = &text[..length];
    let at = start..start + length;
    let plain: String = written.chars().filter(|c| *c != '_').collect();
    let misread = || ExprError::new(format!("`{written}` is not a number")).at(at.clone());
    let too_large = |kind: &str| ExprError::new(format!("`{written}` does not fit in {kind}")).at(at.clone());
    if is_float {
        let value: f64 = plain.parse().map_err(|_| misread())?;
        return if value.is_finite() { Ok((Token::Float(value), length)) } else { Err(too_large("a 64-bit float")) };
    }
    let digits = if radix == 10 { &plain } else { &plain[2..] };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(misread());
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) if value <= i64::MIN.unsigned_abs() => Ok((Token::Integer(value), length)),
        _ => Err(too_large_integer(written, at)),
    }
}

/// Error for an integer that does not fit in a signed 64-bit integer.
pub fn too_large_integer(written: &str, at: Range<usize>) -> ExprError {
    let message = format!("`{written}` does not fit in a signed 64-bit integer");
    ExprError::new(message).hint("a float has a point or an exponent, as in 1e20").at(at)
}

fn string(text: &str, start: usize) -> Result<(Token<'_>, usize), ExprError> {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Token::Text(content), at + 1)),
            '\n' => break,
            '\\' => {
                let mut taken = at + 1;
                let mut take = || {
                    chars.next().map(|(at, c)| {
                        taken = at + c.len_utf8();
                        c
                    })
                };
                let replaced = escape(&mut take);
                let place = start + at..start + taken;
                let wrong = || {
                    let message = format!("`{}` is not a string escape", &text[at..taken]);
                    let hint = r#"valid escapes: \\, \", \n, \r, \t, \x41, \u0041, \U00000041"#;
                    ExprError::new(message).hint(hint).at(place)
                };
                content.push(replaced.ok_or_else(wrong)?);
            }
            c => content.push(c),
        }
    }
    Err(ExprError::new("the string is not closed").at(start..start + text.lines().next().map_or(1, str::len)))
}

/// Character of an escape sequence, from the characters after the backslash.
fn escape(take: &mut impl FnMut() -> Option<char>) -> Option<char> {
    let digits = match take()? {
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        c @ ('\\' | '"') => return Some(c),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let mut code = 0_u32;
    for _ in 0..digits {
        code = code.checked_mul(16)? + take()?.to_digit(16)?;
    }
    char::from_u32(code)
}

/// Length of the string literal at the start of `text`, including quotes; all of `text` if it is unterminated.
pub fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
