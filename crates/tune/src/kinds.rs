//! Groups failure reasons that differ only in numbers and names, so that a page lists a few kinds instead of every
//! failure.

use std::collections::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part<'a> {
    /// Words and punctuation that identify the kind.
    Text(&'a str),
    /// A number; `hex` if it starts with `0x`.
    Number { digits: &'a str, hex: bool },
    /// A word that contains digits, e.g. a symbol name.
    Name(&'a str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// The reason, with ranges for numbers that differ and `…` for names that differ.
    pub reason: String,
    pub count: usize,
    /// The first reason of the kind, if its reasons differ.
    pub example: Option<String>,
}

/// A piece of the pattern that failure reasons of one kind share: fixed text, a number, or a name.
#[derive(Debug)]
enum Place {
    Text(String),
    Number { least: (f64, String), most: (f64, String), hex: bool },
    Name { first: String, differs: bool },
}

/// Reasons, grouped by kind as they are added.
#[derive(Debug, Default)]
pub struct Kinds {
    known: HashMap<String, (Vec<Place>, usize, String)>,
}

impl Kinds {
    /// Adds a reason shared by `count` failures.
    pub fn add(&mut self, reason: &str, count: usize) {
        let parts = split(reason);
        let key: String = parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text,
                Part::Number { hex: false, .. } => "\0",
                Part::Number { hex: true, .. } => "\u{1}",
                Part::Name(_) => "\u{2}",
            })
            .collect();
        let (places, total, _) =
            self.known.entry(key).or_insert_with(|| (parts.iter().map(Place::new).collect(), 0, reason.to_owned()));
        *total += count;
        places.iter_mut().zip(&parts).for_each(|(place, part)| place.widen(part));
    }

    /// The kinds, most frequent first.
    pub fn sorted(self) -> Vec<Kind> {
        let kind = |(places, count, first): (Vec<Place>, usize, String)| {
            let reason: String = places.iter().map(Place::describe).collect();
            Kind { count, example: (reason != first).then_some(first), reason }
        };
        let mut kinds: Vec<Kind> = self.known.into_values().map(kind).collect();
        kinds.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
        kinds
    }
}

impl Place {
    fn new(part: &Part<'_>) -> Self {
        match *part {
            Part::Text(text) => Self::Text(text.to_owned()),
            Part::Number { digits, hex } => {
                let value = (number(digits, hex), digits.to_owned());
                Self::Number { least: value.clone(), most: value, hex }
            }
            Part::Name(name) => Self::Name { first: name.to_owned(), differs: false },
        }
    }

    fn widen(&mut self, part: &Part<'_>) {
        match (self, part) {
            (Self::Number { least, most, hex }, Part::Number { digits, .. }) => {
                let value = number(digits, *hex);
                if value < least.0 {
                    *least = (value, (*digits).to_owned());
                }
                if value > most.0 {
                    *most = (value, (*digits).to_owned());
                }
            }
            (Self::Name { first, differs }, Part::Name(name)) => *differs |= first != name,
            _ => {}
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number { least, most, .. } if least.0 >= most.0 => least.1.clone(),
            Self::Number { least, most, .. } => format!("{}–{}", least.1, most.1),
            Self::Name { first, differs: false } => first.clone(),
            Self::Name { .. } => "…".to_owned(),
        }
    }
}

fn number(digits: &str, hex: bool) -> f64 {
    if hex {
        return digits.get(2..).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default() as f64;
    }
    digits.parse().unwrap_or_default()
}

/// Splits a reason into parts. Words begin with a letter or a digit. A word that begins with a digit is a number
/// followed by its unit.
fn split(reason: &str) -> Vec<Part<'_>> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut parts = Vec::new();
    let mut rest = reason;
    while let Some(first) = rest.chars().next() {
        let end = |of: &dyn Fn(char) -> bool| rest.find(|c| !of(c)).unwrap_or(rest.len());
        let is_hex = rest.starts_with("0x") && rest[2..].starts_with(|c: char| c.is_ascii_hexdigit());
        let (part, len) = if is_hex {
            let len = 2 + rest[2..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - 2);
            (Part::Number { digits: &rest[..len], hex: true }, len)
        } else if first.is_ascii_digit() {
            let whole = end(&|c| c.is_ascii_digit());
            let fraction = rest[whole..]
                .strip_prefix('.')
                .map_or(0, |after| after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
            let len = if fraction > 0 { whole + 1 + fraction } else { whole };
            (Part::Number { digits: &rest[..len], hex: false }, len)
        } else if is_of_word(first) {
            let len = end(&is_of_word);
            let word = &rest[..len];
            (if word.contains(|c: char| c.is_ascii_digit()) { Part::Name(word) } else { Part::Text(word) }, len)
        } else {
            let len = end(&|c| !is_of_word(c));
            (Part::Text(&rest[..len]), len)
        };
        parts.push(part);
        rest = &rest[len..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_numbers_and_names_are_of_one_kind() {
        let mut kinds = Kinds::default();
        let registers = |threads: u32, registers: u32| {
            format!("invalid: {threads} threads per block at {registers} registers per thread, the kernel allows 256")
        };
        kinds.add(&registers(384, 255), 2);
        kinds.add(&registers(1024, 168), 1);
        kinds.add(&registers(96, 255), 1);
        kinds.add("timed out: no reply while checking within 0.5 s", 1);
        kinds.add("timed out: no reply while checking within 10 s", 1);
        kinds.add("function '_Z4copyILi8E' uses 0x10000 bytes, 0xc000 max", 1);
        kinds.add("function '_Z4copyILi16E' uses 0xd800 bytes, 0xc000 max", 2);
        kinds.add("trap: out of bounds in copy<2>", 1);
        let found = kinds.sorted();
        let shown: Vec<(&str, usize)> = found.iter().map(|kind| (kind.reason.as_str(), kind.count)).collect();
        assert_eq!(
            shown,
            [
                ("invalid: 96–1024 threads per block at 168–255 registers per thread, the kernel allows 256", 4),
                ("function '…' uses 0xd800–0x10000 bytes, 0xc000 max", 3),
                ("timed out: no reply while checking within 0.5–10 s", 2),
                ("trap: out of bounds in copy<2>", 1),
            ]
        );
        assert_eq!(found[0].example, Some(registers(384, 255)));
        assert_eq!(found[3].example, None);
    }
}
