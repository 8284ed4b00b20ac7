//! Inlines the device functions and macros that a kernel calls into its body.
//!
//! A kernel often uses its pointers in a function that it calls. Here a call becomes the function's statements, with
//! arguments in place of parameters, inserted before the calling statement. A function that only returns an expression
//! becomes that expression. The result is only read for indices and uses, never compiled: it has no `return`, and calls
//! of unknown functions remain.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Brackets, closing, function_at, head, is_name, split};

/// Maximum depth of nested calls to inline.
const DEEPEST: usize = 6;

/// Maximum number of tokens to insert.
const LONGEST: usize = 1 << 15;

/// A device function or a macro.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Function {
    template: Vec<String>,
    parameters: Vec<String>,
    /// Parameters that are pointers.
    pointers: BTreeSet<String>,
    body: Vec<String>,
}

/// Functions and macros that kernels may call, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Functions {
    all: BTreeMap<String, Vec<Function>>,
    /// Object-like macros with more than one token.
    macros: BTreeMap<String, Vec<String>>,
}

impl Functions {
    /// Adds the device functions among these tokens.
    pub fn add(&mut self, words: &[&str]) {
        for (at, word) in words.iter().enumerate() {
            if *word != "__device__" {
                continue;
            }
            let Some(name) = function_at(&words[at + 1..]).map(|name| at + 1 + name) else { continue };
            let Some(close) = closing(head(&words[name + 1..]), 0).map(|close| name + 1 + close) else { continue };
            let open =
                close + 1 + words[close + 1..].iter().take_while(|word| matches!(**word, "const" | "noexcept")).count();
            let Some(end) = (words.get(open) == Some(&"{")).then(|| closing(words, open)).flatten() else { continue };
            let begin = words[..at].iter().rposition(|word| matches!(*word, ";" | "}" | "{")).map_or(0, |end| end + 1);
            let declared = split(&words[name + 2..close]);
            let is_pointer = |words: &&&[&str]| words.contains(&"*") || words.contains(&"[");
            let pointers = declared.iter().filter(is_pointer).filter_map(|words| last_name(words)).map(str::to_owned);
            let pointers = pointers.collect();
            let parameters = declared.iter().filter_map(|words| last_name(words)).map(str::to_owned);
            let function = Function {
                template: template_names(&words[begin..at]),
                parameters: parameters.collect(),
                pointers,
                body: words[open + 1..end].iter().map(|word| (*word).to_owned()).collect(),
            };
            self.all.entry(words[name].to_owned()).or_default().push(function);
        }
    }

    /// Adds a macro from the tokens of its definition. `is_call` says whether it is function-like.
    pub fn add_macro(&mut self, words: &[&str], is_call: bool) {
        let [name, rest @ ..] = words else { return };
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if !is_call {
            if rest.len() > 1 {
                self.macros.entry((*name).to_owned()).or_insert_with(|| owned(rest));
            }
            return;
        }
        let Some(close) = closing(rest, 0).filter(|_| rest[0] == "(") else { return };
        let parameters = split(&rest[1..close]).into_iter().filter_map(last_name).map(str::to_owned).collect();
        let body = owned(&rest[close + 1..]);
        self.all.entry((*name).to_owned()).or_default().push(Function {
            template: Vec::new(),
            parameters,
            pointers: BTreeSet::new(),
            body,
        });
    }

    /// Inlines calls into a kernel's body.
    pub fn expand(&self, body: &[&str]) -> Vec<String> {
        let mut expansion = Expansion { functions: self, count: 0, left: LONGEST };
        let body: Vec<String> = body.iter().map(|word| (*word).to_owned()).collect();
        expansion.body(&body, DEEPEST)
    }
}

struct Expansion<'a> {
    functions: &'a Functions,
    /// Number of calls inlined so far, used to make local names unique.
    count: usize,
    left: usize,
}

impl Expansion<'_> {
    fn body(&mut self, words: &[String], depth: usize) -> Vec<String> {
        let mut out: Vec<String> = Vec::with_capacity(words.len());
        // Start of the current statement, and the open parentheses: true for a condition's.
        let mut begin = 0;
        let mut open: Vec<bool> = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_str();
            let before = out.last().map_or("", String::as_str);
            if depth > 0 && self.left > 0 && is_name(word) && before != "." {
                if let Some(value) = self.functions.macros.get(word) {
                    self.left = self.left.saturating_sub(value.len());
                    let value = self.body(value, depth - 1);
                    out.extend(value);
                    at += 1;
                    continue;
                }
                if let Some((function, arguments, end)) = self.call(words, at) {
                    let (statements, value) = self.inlined(&function, &arguments, depth);
                    out.splice(begin..begin, statements);
                    out.extend(value);
                    at = end;
                    continue;
                }
            }
            match word {
                "(" => open.push(matches!(before, "if" | "for" | "while" | "switch" | "constexpr")),
                ")" if open.pop() == Some(true) && open.is_empty() => {
                    out.push(")".to_owned());
                    begin = out.len();
                    at += 1;
                    continue;
                }
                "{" | "}" => open.clear(),
                _ => {}
            }
            out.push(word.to_owned());
            if open.is_empty() && matches!(word, ";" | "{" | "}" | "else" | "do") {
                begin = out.len();
            }
            at += 1;
        }
        out
    }

    /// The function called at `at`, its template and call arguments, and the end of the call.
    fn call(&self, words: &[String], at: usize) -> Option<(Function, Vec<Vec<String>>, usize)> {
        let candidates = self.functions.all.get(&words[at])?;
        let view: Vec<&str> = words[at..].iter().take(512).map(String::as_str).collect();
        let (open, template) = if view.get(1) == Some(&"<") {
            let mut brackets = Brackets::default();
            let close = (1..view.len()).find(|place| {
                brackets.pass(view[*place]);
                brackets == Brackets::default()
            })?;
            (close + 1, split(&view[2..close]))
        } else {
            (1, Vec::new())
        };
        (view.get(open) == Some(&"(")).then_some(())?;
        let close = closing(&view, open)?;
        let arguments = split(&view[open + 1..close]);
        let function = candidates.iter().find(|function| function.parameters.len() == arguments.len())?;
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let given = function.template.iter().enumerate().map(|(place, name)| match template.get(place) {
            Some(value) => owned(value),
            None => vec![name.clone()],
        });
        let all = given.chain(arguments.iter().map(|argument| owned(argument))).collect();
        Some((function.clone(), all, at + close + 1))
    }

    /// Statements to insert before the call, and the expression that replaces it.
    fn inlined(&mut self, function: &Function, arguments: &[Vec<String>], depth: usize) -> (Vec<String>, Vec<String>) {
        self.count += 1;
        self.left = self.left.saturating_sub(function.body.len());
        let arguments: Vec<Vec<String>> = arguments.iter().map(|argument| self.body(argument, depth - 1)).collect();
        let names = || function.template.iter().chain(&function.parameters);
        // `&x[i]` and `x + i` become a pointer of the function.
        let mut own_pointers = Vec::new();
        let mut replaced: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, argument) in names().zip(&arguments) {
            let value = match &argument[..] {
                [_] => argument.clone(),
                several if function.pointers.contains(name) => {
                    let own = format!("{name}__{}", self.count);
                    own_pointers.extend(["auto", "*", &own, "="].map(str::to_owned));
                    own_pointers.extend_from_slice(several);
                    own_pointers.push(";".to_owned());
                    vec![own]
                }
                several => [&["(".to_owned()], several, &[")".to_owned()]].concat(),
            };
            replaced.insert(name.as_str(), value);
        }
        let locals = locals(&function.body).into_iter().filter(|name| !replaced.contains_key(name));
        let own: Vec<(&str, Vec<String>)> =
            locals.map(|name| (name, vec![format!("{name}__{}", self.count)])).collect();
        replaced.extend(own);
        let is_expression = |body: &[String]| !body.iter().any(|word| matches!(word.as_str(), ";" | "{"));
        let own = match &function.body[..] {
            [word, value @ .., end] if word == "return" && end == ";" => value,
            body => body,
        };
        let body = substituted(own, &replaced);
        let body = self.body(&body, depth - 1);
        let wrap =
            |open: &str, body: Vec<String>, close: &str| [vec![open.to_owned()], body, vec![close.to_owned()]].concat();
        if is_expression(own) {
            return (own_pointers, wrap("(", body, ")"));
        }
        let body = body.into_iter().filter(|word| word != "return").collect::<Vec<_>>();
        (
            wrap("{", [own_pointers, body].concat(), "}"),
            vec!["unknown_result".to_owned(), "(".to_owned(), ")".to_owned()],
        )
    }
}

/// Replaces names, but not member names after a `.`.
fn substituted(words: &[String], replaced: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let mut out = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let is_member = at.checked_sub(1).is_some_and(|before| words[before] == ".");
        match replaced.get(word.as_str()).filter(|_| !is_member) {
            Some(value) => out.extend(value.iter().cloned()),
            None => out.push(word.clone()),
        }
    }
    out
}

/// Names of the variables declared by these tokens.
fn locals(words: &[String]) -> Vec<&str> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let is_type = |at: usize| {
        is_name(word(at)) && !matches!(word(at), "return" | "else" | "case" | "goto" | "do" | "new" | "delete")
    };
    let is_declared = |at: &usize| {
        let at = *at;
        let begins = matches!(word(at + 1), "=" | ";" | "[" | "(" | ",") && is_name(word(at));
        begins
            && at > 0
            && (is_type(at - 1) || (at > 2 && word(at - 1) == "*" && is_type(at - 2) && !is_value(word(at - 3))))
    };
    (1..words.len()).filter(is_declared).map(word).collect()
}

/// Whether the token before `a * b` shows that it is a product, not a declaration.
fn is_value(before: &str) -> bool {
    !matches!(before, ";" | "{" | "}" | "(" | "const" | "volatile" | "__shared__" | "unsigned")
}

/// Name of the parameter declared by these tokens.
fn last_name<'a>(words: &[&'a str]) -> Option<&'a str> {
    let end = words.iter().position(|word| matches!(*word, "=" | "[")).unwrap_or(words.len());
    words[..end].iter().rev().find(|word| is_name(word)).copied()
}

fn template_names(words: &[&str]) -> Vec<String> {
    let Some(["<", rest @ ..]) = words.strip_prefix(&["template"]) else { return Vec::new() };
    let mut brackets = Brackets { round: 0, angle: 1 };
    let end = rest.iter().position(|word| {
        brackets.pass(word);
        brackets == Brackets::default()
    });
    split(&rest[..end.unwrap_or(rest.len())]).into_iter().filter_map(last_name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    fn expanded(functions: &str, macros: &[(&str, bool)], body: &str) -> String {
        let mut known = Functions::default();
        known.add(&tokens(functions));
        for (text, is_call) in macros {
            known.add_macro(&tokens(text), *is_call);
        }
        known.expand(&tokens(body)).join(" ")
    }

    #[test]
    fn a_macro_without_a_name_is_none() {
        assert_eq!(expanded("", &[("() const { return a[0]; }", true)], "x = 1;"), "x = 1 ;");
    }

    #[test]
    fn a_function_becomes_its_statements_before_the_statement_that_calls_it() {
        let functions = "template <int B> __device__ void add(float *y, const float *x, int i) { y[i] += x[i] * B; }";
        assert_eq!(
            expanded(functions, &[], "int j = 1; if (j < n) add<4>(a, b, j); else c[0] = 1;"),
            "int j = 1 ; if ( j < n ) { a [ j ] += b [ j ] * 4 ; } unknown_result ( ) ; else c [ 0 ] = 1 ;"
                .replace("+=", "+ =")
        );
        let load = "__device__ float load(const float *p, int i) { if (i < 0) return 0; return p[i]; }";
        assert_eq!(
            expanded(load, &[], "y[i] = load(x + 1, i);"),
            "{ auto * p__1 = x + 1 ; if ( i < 0 ) 0 ; p__1 [ i ] ; } y [ i ] = unknown_result ( ) ;"
        );
    }

    #[test]
    fn an_expression_takes_the_place_of_its_call() {
        let functions = "__device__ int at(int r, int c) { return r * N + c; }";
        assert_eq!(expanded(functions, &[], "x[at(i, j + 1)] = 0;"), "x [ ( i * N + ( j + 1 ) ) ] = 0 ;");
        let macros = [("IDX(i, j) ((i) * 8 + (j))", true), ("TID (threadIdx.x + 1)", false), ("N 4", false)];
        assert_eq!(
            expanded("", &macros, "x[IDX(TID, 2)] = N;"),
            "x [ ( ( ( ( ( threadIdx . x + 1 ) ) ) * 8 + ( 2 ) ) ) ] = N ;"
        );
    }

    #[test]
    fn names_of_a_function_stay_apart_from_those_of_its_caller() {
        let functions = "__device__ void f(int *y) { int i = 3; for (int k = 0; k < i; k++) y[i * k] = a.i; }";
        assert_eq!(
            expanded(functions, &[], "int i = 7; f(x); x[i] = 0;"),
            "int i = 7 ; { int i__1 = 3 ; for ( int k__1 = 0 ; k__1 < i__1 ; k__1 + + ) x [ i__1 * k__1 ] = a . i ; } \
             unknown_result ( ) ; x [ i ] = 0 ;"
        );
    }

    #[test]
    fn functions_that_call_themselves_end() {
        let text = "__device__ int f(int x) { return f(x) + f(x); } __device__ void g(int x) { g(x); g(x); }";
        assert!(expanded(text, &[], "f(1); g(2);").len() < 1 << 20);
        assert!(expanded("", &[("A A A", false), ("B(x) B(x) B(x)", true)], "A B(1)").len() < 1 << 20);
        for part in ["__device__ f(", "__device__ int f() {", "template <"] {
            drop(expanded(&part.repeat(2000), &[], "f("));
        }
    }
}
