//! Declarations of parameters, as the tokens in the source.

use crate::source::is_name;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Parameter as written in the source: `const float *in`.
    pub text: String,
    pub name: Option<String>,
    /// Type without `const` and pointers: `float`, `unsigned long long`, `T`.
    pub base: String,
    /// Number of pointer levels; an array counts as one.
    pub pointers: usize,
    /// Whether the pointee, or a by-value parameter itself, is `const`.
    pub is_const: bool,
    /// Whether it is a C++ reference, which a launch cannot pass.
    pub is_reference: bool,
    /// Fields, if the type is a struct or a pointer to one.
    pub fields: Vec<Field>,
    /// Whether its type is a name that neither the file nor an included one defines.
    pub is_undefined: bool,
}

/// A field of a struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// Type without `const` and pointers.
    pub base: String,
    pub pointers: usize,
    /// Array length, if it is an array.
    pub count: Option<i128>,
    /// Fields, if its type is a struct.
    pub fields: Vec<Self>,
}

impl Parameter {
    /// Type as in a declaration without a name: `const float *`.
    pub fn type_text(&self) -> String {
        let constant = if self.is_const && self.pointers > 0 { "const " } else { "" };
        let stars = if self.pointers > 0 { format!(" {}", "*".repeat(self.pointers)) } else { String::new() };
        let reference = if self.is_reference { " &" } else { "" };
        format!("{constant}{}{stars}{reference}", self.base)
    }
}

/// Parses the declaration of a parameter.
pub(crate) fn parameter(tokens: &[&str]) -> Parameter {
    let declared = tokens.iter().position(|token| *token == "=").map_or(tokens, |at| &tokens[..at]);
    let first_pointer = declared.iter().position(|token| *token == "*");
    let is_const = declared[..first_pointer.unwrap_or(declared.len())].contains(&"const");
    let is_noise = |token: &str| {
        matches!(
            token,
            "const" | "volatile" | "__restrict__" | "__restrict" | "__grid_constant__" | "struct" | "typename"
        )
    };
    let words: Vec<&str> = declared.iter().copied().filter(|token| !is_noise(token)).collect();
    let array = words.iter().position(|token| *token == "[");
    let (words, is_array) = (&words[..array.unwrap_or(words.len())], array.is_some());
    let pointers = words.iter().filter(|token| **token == "*").count() + usize::from(is_array);
    let is_reference = words.contains(&"&");
    let end = words.iter().position(|token| matches!(*token, "*" | "&"));
    let (base, name) = match end {
        Some(end) => (&words[..end], words[end..].iter().find(|token| is_name(token))),
        None => match words {
            [base @ .., last]
                if !base.is_empty() && is_name(last) && !is_type_word(last) && base.last() != Some(&":") =>
            {
                (base, Some(last))
            }
            base => (base, None),
        },
    };
    Parameter {
        text: joined(tokens),
        name: name.map(|name| (*name).to_owned()),
        base: joined(base),
        pointers,
        is_const,
        is_reference,
        fields: Vec::new(),
        is_undefined: false,
    }
}

/// Whether a word is part of a built-in integer type, and so never a parameter's name.
fn is_type_word(token: &str) -> bool {
    matches!(token, "signed" | "unsigned" | "char" | "short" | "int" | "long" | "float" | "double" | "bool")
}

/// Formats tokens in the usual style: a space between words and before a pointer.
pub fn joined(tokens: &[&str]) -> String {
    let mut text = String::new();
    for token in tokens {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let after_word = word(text.chars().next_back());
        let both_words = after_word && word(token.chars().next());
        let begins_pointer = after_word && matches!(*token, "*" | "&" | "=");
        if both_words || begins_pointer || text.ends_with(['=', ',']) {
            text.push(' ');
        }
        text.push_str(token);
    }
    text
}
