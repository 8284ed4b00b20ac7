//! Type aliases and structs that sources define.

use std::collections::{BTreeMap, BTreeSet};

use crate::expression::Expression;
use crate::parameter::{Field, Parameter, parameter};
use crate::source::{closing, is_name, split};

/// Maximum length of a chain of aliases, and maximum depth of nested structs.
const DEEPEST: usize = 8;

/// Prefixes of type names that the toolkit defines.
const OF_TOOLKIT: [&str; 3] = ["cu", "nv", "__"];

#[derive(Debug, Clone, Default)]
pub struct Types {
    /// Aliased types as tokens, by alias.
    names: BTreeMap<String, Vec<String>>,
    structs: BTreeMap<String, Vec<Field>>,
    /// Names of structs, classes and other types in the files.
    words: BTreeSet<String>,
}

impl Types {
    /// Adds the types that tokens and macros define. If a type is defined twice, the first definition counts.
    pub fn add(&mut self, words: &[&str], macros: &[Vec<&str>], constants: &BTreeMap<String, i128>) {
        for definition in macros {
            if let [name, value @ ..] = &definition[..]
                && !value.is_empty()
                && value.iter().all(|word| is_name(word) || *word == "*")
            {
                self.name(name, value);
            }
        }
        for (at, word) in words.iter().enumerate() {
            if let ["struct" | "class" | "union" | "enum" | "typename", name, ..] = &words[at..] {
                self.words.insert((*name).to_owned());
            }
            match *word {
                "typedef" => self.typedef(&words[at + 1..], constants),
                "using" => {
                    if let [name, "=", rest @ ..] = &words[at + 1..]
                        && let Some(end) = rest.iter().position(|word| *word == ";")
                    {
                        self.name(name, &rest[..end]);
                    }
                }
                "enum" => {
                    let rest = words[at + 1..].iter().skip_while(|word| matches!(**word, "class" | "struct"));
                    if let Some(name) = rest.copied().next().filter(|name| is_name(name)) {
                        self.name(name, &["int"]);
                    }
                }
                "struct" | "class" => drop(self.structure(&words[at + 1..], constants)),
                _ => {}
            }
        }
    }

    fn name(&mut self, name: &str, words: &[&str]) {
        let words: Vec<String> =
            words.iter().filter(|word| **word != "struct").map(|word| (*word).to_owned()).collect();
        if words.iter().any(|word| word != name) && !words.iter().any(|word| word == "(") {
            self.names.entry(name.to_owned()).or_insert(words);
        }
    }

    fn typedef(&mut self, words: &[&str], constants: &BTreeMap<String, i128>) {
        let Some(open) = words.iter().position(|word| matches!(*word, "{" | ";" | "(")) else { return };
        match words[open] {
            ";" => {
                if let Some((name, before)) = words[..open].split_last().filter(|(name, _)| is_name(name)) {
                    self.name(name, before);
                }
            }
            "{" => {
                let Some(close) = closing(words, open) else { return };
                let name = words[close + 1..].iter().find(|word| is_name(word));
                if let Some(name) = name.filter(|_| words[0] == "enum") {
                    self.name(name, &["int"]);
                } else if let Some(name) = name.filter(|_| words[0] == "struct") {
                    let fields = fields(&words[open + 1..close], constants);
                    self.structs.entry((*name).to_owned()).or_insert(fields);
                }
            }
            _ => {}
        }
    }

    /// Adds the struct whose name begins here, if this is its definition.
    fn structure(&mut self, words: &[&str], constants: &BTreeMap<String, i128>) -> Option<()> {
        let end = words.iter().position(|word| matches!(*word, "{" | ";" | "=" | ")" | "*" | ","))?;
        let base = words[..end].iter().position(|word| *word == ":").unwrap_or(end);
        let name = words[..base].iter().rev().find(|word| is_name(word) && **word != "final")?;
        (words[end] == "{" && base == end).then_some(())?;
        let close = closing(words, end)?;
        self.structs.entry((*name).to_owned()).or_insert_with(|| fields(&words[end + 1..close], constants));
        Some(())
    }

    /// Replaces aliases in a parameter's type, except names of template parameters, and finds its fields.
    pub fn resolve(&self, parameter: &mut Parameter, template: &[&str]) {
        let Parameter { base, pointers, fields, is_undefined, .. } = parameter;
        if !template.contains(&base.as_str()) {
            self.follow(base, pointers, fields, DEEPEST);
            let is_plain = is_name(base) && base.chars().all(|c| c.is_alphanumeric() || c == '_');
            let is_of_toolkit = OF_TOOLKIT.iter().any(|begin| base.starts_with(begin));
            *is_undefined = is_plain && base != "void" && !is_of_toolkit && !self.words.contains(base);
        }
    }

    /// Replaces aliases by the types that they stand for.
    pub fn replaced(&self, words: &[&str]) -> Vec<String> {
        let mut out = Vec::with_capacity(words.len());
        for word in words {
            if !self.names.contains_key(*word) {
                out.push((*word).to_owned());
                continue;
            }
            let (mut base, mut pointers) = ((*word).to_owned(), 0);
            self.follow(&mut base, &mut pointers, &mut Vec::new(), 0);
            out.extend(base.split(' ').map(str::to_owned));
            out.extend(std::iter::repeat_n("*".to_owned(), pointers));
        }
        out
    }

    fn follow(&self, base: &mut String, pointers: &mut usize, fields: &mut Vec<Field>, depth: usize) {
        for _ in 0..DEEPEST {
            let Some(words) = self.names.get(base.rsplit("::").next().unwrap_or_default()) else { break };
            let words: Vec<&str> = words.iter().map(String::as_str).chain(["x"]).collect();
            let named = parameter(&words);
            *pointers += named.pointers;
            *base = named.base;
        }
        if let Some(known) = self.structs.get(base.as_str()).filter(|_| depth > 0) {
            fields.clone_from(known);
            for field in fields {
                self.follow(&mut field.base, &mut field.pointers, &mut field.fields, depth - 1);
            }
        }
    }
}

/// Fields in a struct's body, without member functions and nested types.
fn fields(body: &[&str], constants: &BTreeMap<String, i128>) -> Vec<Field> {
    let mut found = Vec::new();
    let mut begin = 0;
    let mut at = 0;
    while at < body.len() {
        match body[at] {
            "{" | "(" | "[" => {
                let Some(close) = closing(body, at) else { break };
                // A function body; unlike an initializer, no `;` follows it.
                if body[at] == "{" && body.get(close + 1) != Some(&";") && body[begin..at].contains(&"(") {
                    begin = close + 1;
                }
                at = close;
            }
            ":" if at == begin + 1 => begin = at + 1,
            ";" => {
                found.extend(declared(&body[begin..at], constants));
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Fields in one declaration: `float *a, b[4]`.
fn declared(words: &[&str], constants: &BTreeMap<String, i128>) -> Vec<Field> {
    if words.iter().any(|word| matches!(*word, "static" | "using" | "typedef" | "friend" | "(" | "{" | "operator")) {
        return Vec::new();
    }
    let mut base: &[&str] = &[];
    let mut found = Vec::new();
    for (place, part) in split(words).into_iter().enumerate() {
        let end = part.iter().position(|word| matches!(*word, "=" | "[")).unwrap_or(part.len());
        let whole: Vec<&str> = if place == 0 { part[..end].to_vec() } else { [base, &part[..end]].concat() };
        if place == 0 {
            let type_end = part[..end].iter().position(|word| *word == "*").unwrap_or(end.saturating_sub(1));
            base = &part[..type_end];
        }
        let field = parameter(&whole);
        let count = (part.get(end) == Some(&"[")).then(|| {
            let extents = part[end..].split(|word| *word == "[").skip(1);
            let value = |extent: &[&str]| {
                let expression = Expression::parse(extent.split(|word| *word == "]").next().unwrap_or_default());
                let named = |part: &Expression| match part {
                    Expression::Name(name) => constants.get(name).map(|value| (*value, *value)),
                    _ => None,
                };
                expression.interval(&named).filter(|(low, high)| low == high).map(|(value, _)| value)
            };
            extents.map(value).try_fold(1_i128, |product, extent| product.checked_mul(extent?)).unwrap_or(0)
        });
        let Some(name) = field.name else { continue };
        found.push(Field { name, base: field.base, pointers: field.pointers, count, fields: Vec::new() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    /// Base type and pointers of a parameter, and its fields as `name: base*[count]`.
    fn resolved(text: &str, macros: &[&str], declaration: &str) -> (String, Vec<String>) {
        let mut types = Types::default();
        let macros: Vec<Vec<&str>> = macros.iter().map(|text| tokens(text)).collect();
        types.add(&tokens(text), &macros, &BTreeMap::from([("N".to_owned(), 4)]));
        let mut found = parameter(&tokens(declaration));
        types.resolve(&mut found, &["T"]);
        let shown = |base: &str, pointers: usize| format!("{base}{}", "*".repeat(pointers));
        let fields = found.fields.iter().map(|field| {
            let count = field.count.map(|count| format!("[{count}]")).unwrap_or_default();
            format!("{}: {}{count}", field.name, shown(&field.base, field.pointers))
        });
        (shown(&found.base, found.pointers), fields.collect())
    }

    #[test]
    fn names_of_types_are_followed() {
        let text =
            "typedef float real; using number = real; typedef number *row; typedef int T; typedef int (*f)(int);";
        assert_eq!(resolved(text, &[], "const number *x").0, "float*");
        assert_eq!(resolved(text, &[], "row x").0, "float*");
        assert_eq!(resolved(text, &[], "T *x").0, "T*");
        assert_eq!(resolved(text, &["DATA_TYPE double", "N 3"], "DATA_TYPE x").0, "double");
        assert_eq!(resolved("typedef a b; typedef b a;", &[], "a x").1, [""; 0]);
    }

    #[test]
    fn a_type_that_no_file_defines_is_known_as_such() {
        let mut types = Types::default();
        types.add(&tokens("struct P; typedef float real;"), &[], &BTreeMap::new());
        let is_undefined = |declaration: &str| {
            let mut found = parameter(&tokens(declaration));
            types.resolve(&mut found, &["T"]);
            found.is_undefined
        };
        assert!(is_undefined("fp *x"));
        assert!(!["P *x", "T *x", "void *x", "cuComplex *x"].into_iter().any(is_undefined));
    }

    #[test]
    fn fields_of_structs_are_read() {
        let text = "typedef float real; typedef struct tag { real x, *y; unsigned int n[N][2]; } P; \
                    struct Q { int a = 3; P p; Q() : a(1) {} int f() const { return a; } static int s; public: bool b; };";
        assert_eq!(resolved(text, &[], "P p").1, ["x: float", "y: float*", "n: unsigned int[8]"]);
        assert_eq!(
            resolved(text, &[], "const Q *q"),
            ("Q*".into(), vec!["a: int".into(), "p: P".into(), "b: bool".into()])
        );
        assert_eq!(resolved("enum class E { A }; typedef enum { B } F;", &[], "F f").0, "int");
        assert_eq!(resolved("struct R; struct R f();", &[], "R r").1, [""; 0]);
    }
}
