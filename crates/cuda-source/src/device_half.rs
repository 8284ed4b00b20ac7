//! Removes the host half of a source: functions, variables and headers that no kernel can use.
//!
//! A published file often uses a framework, a test bench or a library whose headers are not installed. Its kernels need
//! none of that. Device code cannot refer to what is removed, so the meaning of a kernel cannot change: if something
//! was needed after all, the compiler reports it as undefined. Line numbers stay the same.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::flatten::included;
use crate::includes::{joined_lines, literal_length};
use crate::source::{closing, function_at, is_name, tokens};

/// Keywords that mark a declaration as usable by device code.
const OF_DEVICE: [&str; 9] = [
    "__device__",
    "__global__",
    "__constant__",
    "__shared__",
    "__managed__",
    "__grid_constant__",
    "texture",
    "constexpr",
    "consteval",
];

/// Keywords of declarations that device code may use without a marker.
const OF_BOTH: [&str; 13] = [
    "namespace",
    "typedef",
    "using",
    "struct",
    "class",
    "enum",
    "union",
    "const",
    "template",
    "friend",
    "static_assert",
    "concept",
    "asm",
];

/// Removes the host half and every `#include` of the `absent` headers. `None` if there is nothing to remove, or if
/// braces do not match, e.g. because each branch of an `#if` opens one.
pub fn device_half(text: &str, absent: &[String]) -> Option<String> {
    let macros = MacrosOfHalves::read(text);
    let without_headers = without_includes(text, absent);
    let mask = masked(&without_headers);
    let mut half = String::with_capacity(text.len());
    let mut at = 0;
    for Declaration { range, words, .. } in declarations_with(&mask, &macros)? {
        if !macros.is_of_host(&words) {
            continue;
        }
        half.push_str(&without_headers[at..range.start]);
        half.push_str(&emptied(&without_headers[range.clone()], &mask[range.clone()]));
        at = range.end;
    }
    half.push_str(&without_headers[at..]);
    (half != text).then_some(half)
}

/// The source reduced to the declarations that these names reach, without any `#include` of the `absent` headers.
/// `None` if there is nothing to remove, or if braces do not match.
///
/// Declarations that device code could use may contain host code, e.g. in the members of a class. If no kernel uses it,
/// its removal does not change their meaning. Operators are always kept, since they are used without their names.
pub fn reached_half(text: &str, absent: &[String], names: &[&str]) -> Option<String> {
    let without_headers = without_includes(text, absent);
    let mask = masked(&without_headers);
    let all = declarations_with(&mask, &MacrosOfHalves::read(text))?;
    let kept = reached(text, &all, names, &|_| true);
    let mut half = String::with_capacity(text.len());
    let mut at = 0;
    for (place, Declaration { range, words, .. }) in all.iter().enumerate() {
        half.push_str(&without_headers[at..range.start]);
        if kept.contains(&place) || words.contains(&"operator") {
            half.push_str(&without_headers[range.clone()]);
        } else {
            half.push_str(&emptied(&without_headers[range.clone()], &mask[range.clone()]));
        }
        at = range.end;
    }
    half.push_str(&without_headers[at..]);
    (half != text).then_some(half)
}

/// Indices of the declarations that these names reach, directly or through other declarations and macros, among those
/// that `may_be_kept`.
pub(crate) fn reached(
    text: &str,
    all: &[Declaration<'_>],
    names: &[&str],
    may_be_kept: &dyn Fn(&Declaration<'_>) -> bool,
) -> BTreeSet<usize> {
    let joined = joined_lines(text);
    let macros: Vec<Vec<&str>> = joined
        .lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .map(|line| tokens(line.trim_start()))
        .collect();
    let introduced: Vec<BTreeSet<&str>> = all.iter().map(|declaration| introduced(&declaration.words)).collect();
    let (mut kept, mut known) = (BTreeSet::new(), BTreeSet::new());
    let mut wanted: Vec<&str> = names.to_vec();
    while let Some(name) = wanted.pop() {
        if !known.insert(name.to_owned()) {
            continue;
        }
        for (place, declaration) in all.iter().enumerate() {
            if introduced[place].contains(name) && may_be_kept(declaration) && kept.insert(place) {
                wanted.extend(declaration.words.iter().filter(|word| is_name(word)));
            }
        }
        let values = macros.iter().filter_map(|words| match &words[..] {
            ["#", "define", of, value @ ..] if *of == name => Some(value),
            _ => None,
        });
        wanted.extend(values.flatten().filter(|word| is_name(word)));
    }
    kept
}

/// Names that a declaration introduces: for a function, its own name; for anything else, the names outside parentheses
/// and bodies, and enumerators.
fn introduced<'a>(words: &[&'a str]) -> BTreeSet<&'a str> {
    let body = words.iter().position(|word| *word == "{").unwrap_or(words.len());
    let is_defined = is_function(&words[..body]) && body < words.len();
    if is_defined && !words[..body].contains(&"typedef") {
        return function_at(words).map(|at| words[at]).into_iter().collect();
    }
    let is_enum = words[..body].contains(&"enum");
    let mut depth = 0_usize;
    let outside = words.iter().filter(|word| {
        match **word {
            "{" | "(" => depth += 1,
            "}" | ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0 || is_enum) && is_name(word)
    });
    outside.copied().collect()
}

/// The newlines and directives of a part of the source.
pub(crate) fn emptied(text: &str, mask: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    let mut goes_on = false;
    for line in text.split_inclusive('\n') {
        let is_masked = mask[at..at + line.len()].trim().is_empty();
        let is_directive = is_masked && (goes_on || line.trim_start().starts_with('#'));
        goes_on = is_directive && line.trim_end().ends_with('\\');
        if is_directive {
            out.push_str(line);
        } else if line.ends_with('\n') {
            out.push('\n');
        }
        at += line.len();
    }
    out
}

/// Macros that tell which half a declaration belongs to.
#[derive(Debug, Default)]
struct MacrosOfHalves {
    /// Macros that expand to a device keyword.
    markers: BTreeSet<String>,
    /// Function-like macros that expand to nothing but host code.
    of_host: BTreeSet<String>,
}

impl MacrosOfHalves {
    fn read(text: &str) -> Self {
        let mut found = Self::default();
        let joined = joined_lines(text);
        let mut calls: Vec<(&str, &str)> = Vec::new();
        for line in joined.lines() {
            let Some(rest) = line.trim_start().strip_prefix('#') else { continue };
            let Some(definition) = rest.trim_start().strip_prefix("define") else { continue };
            let words = tokens(definition);
            let Some((name, value)) = words.split_first() else { continue };
            if value.iter().any(|word| OF_DEVICE.contains(word) || found.markers.contains(*word)) {
                found.markers.insert((*name).to_owned());
            }
            let rest = definition.trim_start();
            if let Some(body) = rest[name.len()..].starts_with('(').then(|| rest.split_once(')')).flatten() {
                calls.push((name, body.1));
            }
        }
        for (name, body) in calls {
            let mask = masked(body);
            let is_of_host = declarations(&mask)
                .is_some_and(|all| !all.is_empty() && all.iter().all(|one| found.is_of_host(&one.words)));
            if is_of_host && !found.markers.contains(name) {
                found.of_host.insert(name.to_owned());
            }
        }
        found
    }

    /// Whether only host code can use the declaration.
    fn is_of_host(&self, declaration: &[&str]) -> bool {
        if self.is_call(declaration) {
            return true;
        }
        let has_body = declaration.last() == Some(&"}");
        let end = declaration.iter().position(|word| *word == "{").unwrap_or(declaration.len());
        let head = &declaration[..if has_body { end } else { declaration.len() }];
        if head.iter().any(|word| OF_DEVICE.contains(word) || self.markers.contains(*word)) {
            return false;
        }
        if has_body {
            return true;
        }
        // `MACRO(x);` may declare anything.
        let first = head.iter().position(|word| matches!(*word, "(" | "=" | "[")).unwrap_or(head.len());
        let names = head[..first].iter().filter(|word| is_name(word)).count();
        let parameters = head.iter().position(|word| *word == "(").unwrap_or(head.len());
        // `template void f<float>(…)` is an explicit instantiation, not a template.
        let is_instance = matches!(head, ["template", next, ..] if *next != "<");
        names >= 2 && (is_instance || !head[..parameters].iter().any(|word| OF_BOTH.contains(word)))
    }

    /// Whether the words begin with a call of a macro that expands to host code.
    fn is_call(&self, words: &[&str]) -> bool {
        matches!(words, [name, "(", ..] if self.of_host.contains(*name))
    }
}

/// The source with comments, directives and contents of literals replaced by spaces. Byte offsets stay the same.
pub(crate) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let begins_line = out.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '#' && begins_line {
            directive_length(rest)
        } else if c == '"' || (c == '\'' && !out.ends_with(|before: char| before.is_ascii_alphanumeric())) {
            let length = literal_length(rest);
            // A literal that its line does not close is blanked whole.
            if let Some(content) = rest[..length].strip_prefix(c).and_then(|rest| rest.strip_suffix(c)) {
                out.push(c);
                blank(content, &mut out);
                out.push(c);
                rest = &rest[length..];
                continue;
            }
            length
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        blank(&rest[..length], &mut out);
        rest = &rest[length..];
    }
    out
}

/// Appends a space for each byte of `text`, but keeps newlines.
fn blank(text: &str, out: &mut String) {
    out.extend(text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
}

/// Length of a directive including its continuation lines, up to a multi-line comment.
fn directive_length(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(comment) = line.find("/*").filter(|comment| !line[*comment..].contains("*/")) {
            return at + comment;
        }
        at += line.len();
        if !line.trim_end().ends_with('\\') {
            return at - usize::from(line.ends_with('\n'));
        }
    }
    at
}

/// A declaration at namespace scope.
#[derive(Debug)]
pub(crate) struct Declaration<'a> {
    /// Bytes in the text.
    pub range: Range<usize>,
    pub words: Vec<&'a str>,
    /// Number of enclosing namespaces and `extern "C"` blocks.
    pub depth: usize,
}

/// Declarations of the masked text at namespace scope. `None` if brackets do not match.
pub(crate) fn declarations(mask: &str) -> Option<Vec<Declaration<'_>>> {
    declarations_with(mask, &MacrosOfHalves::default())
}

/// The same, where a call of a macro that expands to host code is a declaration without a `;`.
fn declarations_with<'a>(mask: &'a str, macros: &MacrosOfHalves) -> Option<Vec<Declaration<'a>>> {
    let words = tokens(mask);
    let place = |word: &str| word.as_ptr() as usize - mask.as_ptr() as usize;
    let declaration = |begin: usize, end: usize, depth: usize| Declaration {
        range: place(words[begin])..place(words[end]) + words[end].len(),
        words: words[begin..=end].to_vec(),
        depth,
    };
    let mut found = Vec::new();
    let (mut begin, mut at, mut open) = (0, 0, 0_usize);
    while at < words.len() {
        let end = match words[at] {
            // A call of another macro, without a `;`, may come before it.
            "(" if at > begin && macros.is_call(&words[at - 1..]) && (at == begin + 1 || words[at - 2] == ")") => {
                if at > begin + 1 {
                    found.push(declaration(begin, at - 2, open));
                    begin = at - 1;
                }
                let close = closing(&words, at)?;
                close + usize::from(words.get(close + 1) == Some(&";"))
            }
            "(" | "[" => {
                at = closing(&words, at)? + 1;
                continue;
            }
            "}" => {
                open = open.checked_sub(1)?;
                at += 1;
                begin = at;
                continue;
            }
            "{" if is_scope(&words[begin..at]) => {
                open += 1;
                at += 1;
                begin = at;
                continue;
            }
            "{" => {
                let close = closing(&words, at)?;
                // A function ends with its body; a type or an initialized variable continues to the `;`.
                if !is_function(&words[begin..at]) {
                    at = close + 1;
                    continue;
                }
                close
            }
            ";" => at,
            _ => {
                at += 1;
                continue;
            }
        };
        found.push(declaration(begin, end, open));
        at = end + 1;
        begin = at;
    }
    (open == 0).then_some(found)
}

/// Whether the brace after these words opens a namespace or `extern "C"` block, whose declarations are scanned one by
/// one.
fn is_scope(head: &[&str]) -> bool {
    match head {
        ["extern", language] => language.starts_with('"'),
        [.., "namespace"] => true,
        _ => head.contains(&"namespace") && !head.contains(&"="),
    }
}

/// Whether the brace after these words opens a function body.
pub(crate) fn is_function(head: &[&str]) -> bool {
    let (mut angles, mut brackets) = (0_usize, 0_usize);
    let mut has_parameters = false;
    for (at, word) in head.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| head[before]);
        match *word {
            "<" => angles += 1,
            ">" => angles = angles.saturating_sub(1),
            "(" => {
                let is_attribute = before.starts_with("__") && before.ends_with("__");
                has_parameters |= brackets == 0 && !is_attribute && !matches!(before, "alignas" | "decltype");
                brackets += 1;
            }
            ")" => brackets = brackets.saturating_sub(1),
            // An initializer, but not a default argument or `operator=`.
            "=" if angles == 0 && brackets == 0 && !has_operator(head, at) => return false,
            _ => {}
        }
    }
    has_parameters
}

/// Whether the word at `at` is part of an operator's name.
fn has_operator(head: &[&str], at: usize) -> bool {
    head[at.saturating_sub(2)..at].contains(&"operator")
}

/// Blanks the lines that include these headers.
fn without_includes(text: &str, absent: &[String]) -> String {
    let is_of = |line: &str| included(line).is_some_and(|name| absent.iter().any(|header| header == name));
    text.split_inclusive('\n').map(|line| if is_of(line) { "\n" } else { line }).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn half(text: &str) -> Option<String> {
        device_half(text, &["helper.h".to_owned()])
    }

    /// Remaining lines with their line numbers.
    fn lines(text: &str) -> Vec<(usize, String)> {
        let half = half(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(half.lines().count(), text.lines().count(), "{half}");
        let lines = half.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(at, line)| (at + 1, line.to_owned())).collect()
    }

    fn left(text: &str) -> Vec<usize> {
        lines(text).into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn a_literal_that_its_line_does_not_close_is_masked_whole() {
        for text in ["'a\u{fffd}", "\"b\u{6c2}\nint x;", "\"", "'\\"] {
            let masked = masked(text);
            assert_eq!((masked.len(), masked.trim()), (text.len(), text.split_once('\n').map_or("", |(_, rest)| rest)));
        }
        assert_eq!(masked("f('\u{fffd}');"), "f('   ');");
    }

    #[test]
    fn functions_and_variables_of_the_host_go_and_lines_keep_their_numbers() {
        let text = "#include <math.h>\n# include \"helper.h\"\nTimer *timer = NULL;\nconst int N = 4;\n\
                    static void check(int a = 3, const char *b = \"{\")\n{\n#ifdef DEBUG\n  f(\"}\");\n#endif\n}\n\
                    __device__ float twice(float x) { return 2 * x; }\nextern \"C\" void run(std::vector<int> &x);\n\
                    __global__ void k(float *x)\n{ x[0] = twice(N); }\ntemplate <int B = 3> void launch() { k<<<1, B>>>(0); }\n\
                    int main() { return 0; }\n";
        assert_eq!(left(text), [1, 4, 7, 9, 11, 13, 14]);
    }

    #[test]
    fn types_scopes_and_what_macros_mark_stay() {
        for text in [
            "struct P { float x; P() { y(); } };\n",
            "typedef struct { int a; } T;\n",
            "class __align__(16) V { int a[4]; };\n",
            "static const float t[] = {1, 2};\n",
            "constexpr int f(int x) { return x; }\n",
            "#define FN __device__ inline\nFN int f(int x) { return x; }\n",
            "DECLARE(x);\n",
            "__constant__ float c[4];\n",
            "template <typename T> struct S { T a; };\n",
            "enum E { A, B };\nusing F = float;\nnamespace c = d;\n",
        ] {
            assert_eq!(half(text), None, "{text}");
        }
        assert_eq!(half("template void run<float>(float *x);\n").as_deref(), Some("\n"));
        assert_eq!(left("namespace a {\nvoid f() {}\n}\nextern \"C\" {\nint x;\n}\n"), [1, 3, 4, 6]);
    }

    #[test]
    fn a_call_of_a_macro_that_defines_host_functions_goes() {
        let text = "#define BIND(name) \\\n  void name(at::Tensor x) { name##_kernel<<<1, 1>>>(x); }\n\
                    #define KERNEL(name) __global__ void name##_kernel(float *x) { x[0] = 1; }\n\
                    #define CHECK(x) if (x) throw 1\nKERNEL(a)\nBIND(a)\nBIND(b);\n__global__ void c() { CHECK(0); }\n";
        assert_eq!(left(text), [1, 2, 3, 4, 5, 8]);
    }

    #[test]
    fn what_no_kernel_reaches_goes_even_if_device_code_could_use_it() {
        let text = "#include <helper.h>\n#define SIZE (TILE * 2)\n#define TILE 4\nclass Timer { Watch *watch; };\n\
                    struct P { float x; };\nP operator+(P a, P b) { return a; }\nnamespace n {\n__device__ float twice(P p) { return 2 * p.x; }\n\
                    __device__ void log(Timer *t) {}\n}\n__global__ void k(float *x)\n{ x[SIZE] = n::twice(P()); }\n\
                    __global__ void other(Timer t) {}\n";
        let half = reached_half(text, &["helper.h".to_owned()], &["k"]).unwrap();
        let left: Vec<usize> =
            half.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(at, _)| at + 1).collect();
        assert_eq!(left, [2, 3, 5, 6, 7, 8, 10, 11, 12]);
        assert_eq!(half.lines().count(), text.lines().count());
        assert_eq!(reached_half("__global__ void k() {}\n", &[], &["k"]), None);
    }

    #[test]
    fn braces_that_do_not_match_leave_the_text() {
        assert_eq!(half("#if A\nint f() {\n#else\nint g() {\n#endif\n}\n"), None);
        assert_eq!(half("}\nint f() {}\n"), None);
        for part in ["int f(", "{", "\"", "#if\\", "/*"] {
            drop(half(&part.repeat(5000)));
        }
    }
}
