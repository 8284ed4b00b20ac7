//! Leaves the functions of the host out of a source, so that NVRTC compiles a file that nvcc compiles.
//!
//! NVRTC refuses every function and variable without `__device__`, `__global__` or `__constant__`, even one that no
//! kernel uses. The rules, for declarations outside of functions:
//!
//! - a function without one of these words, also a member of a class, is left out, body and all;
//! - a `constexpr` function without them is compiled for the device too, since nvcc lets kernels use its value;
//! - a variable without them is left out, unless it is `const` or `constexpr` and not of a class of the host's library;
//! - an explicit instantiation of a function that was left out goes with it.
//!
//! A word may come from a macro that the sources or options define. Blanks replace what is left out, so that lines
//! keep their numbers. Preprocessor directives stay. Nothing is left out of a text whose brackets do not match.

mod lexer;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::host_headers::is_of_the_host;
use lexer::{blanked, is_part, tokens, words};

/// Most namespaces and classes within each other: it protects the stack from any input.
const MAX_DEPTH: usize = 256;

/// The largest number of bodies and lists in braces that one declaration may have. A declaration with more is left
/// alone.
const MOST_BRACES: usize = 256;

/// The words that make a function or variable one of the device.
const DEVICE_WORDS: [&str; 5] = ["__device__", "__global__", "__constant__", "__shared__", "__managed__"];

/// Prefixes of the macros of NVIDIA's own headers, whose definitions are not read.
const LIBRARY_MACROS: [&str; 3] = ["_CCCL_", "CUB_", "THRUST_"];

/// The first words of declarations that are no variables of the host.
const KEPT: [&str; 14] = [
    "using",
    "typedef",
    "struct",
    "class",
    "union",
    "enum",
    "static_assert",
    "template",
    "friend",
    "namespace",
    "constexpr",
    "concept",
    "asm",
    "__asm__",
];

/// A source without the code for the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeviceCode {
    pub text: String,
    /// The names of the functions and variables that were left out, in their order.
    pub left_out: Vec<String>,
}

/// The macros whose text contains a word of the device.
#[derive(Debug, Default)]
pub(super) struct DeviceMacros(BTreeSet<String>);

impl DeviceMacros {
    /// Returns the macros that these texts and definitions (`NAME=VALUE`) make.
    pub fn collect<'a>(texts: impl Iterator<Item = &'a str>, definitions: &[(String, String)]) -> Self {
        let mut bodies: Vec<(String, Vec<String>)> =
            definitions.iter().map(|(name, value)| (name.clone(), words(value))).collect();
        for text in texts {
            let joined = crate::includes::joined_lines(text);
            for line in joined.lines() {
                let Some(rest) = line.trim_start().strip_prefix('#').map(str::trim_start) else { continue };
                let Some(rest) = rest.strip_prefix("define") else { continue };
                let mut words = words(rest).into_iter();
                bodies.extend(words.next().map(|name| (name, words.collect())));
            }
        }
        let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, body) in &bodies {
            for word in body {
                users.entry(word).or_default().push(name);
            }
        }
        // A macro may use another one, whatever their order.
        let mut known = Self::default();
        let mut marks: Vec<&str> = users.keys().copied().filter(|word| known.mark(word)).collect();
        while let Some(mark) = marks.pop() {
            for name in users.get(mark).into_iter().flatten() {
                if known.0.insert((*name).to_owned()) {
                    marks.push(name);
                }
            }
        }
        known
    }

    /// Whether a word says that a declaration is one of the device.
    fn mark(&self, word: &str) -> bool {
        DEVICE_WORDS.contains(&word)
            || LIBRARY_MACROS.iter().any(|prefix| word.starts_with(prefix))
            || self.0.contains(word)
    }
}

/// Namespaces and classes are nested too deep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: namespaces and classes are nested deeper than {MAX_DEPTH} levels here; nest them less")]
pub(super) struct TooDeep {
    line: usize,
    column: usize,
}

/// Returns the text without its host code; `None` if it has none, or if its brackets do not match.
pub(super) fn device_code(text: &str, macros: &DeviceMacros) -> Result<Option<DeviceCode>, TooDeep> {
    let plain = blanked(text);
    let tokens = tokens(&plain);
    let (edits, left_out) = (Vec::new(), Vec::new());
    let mut scan = Scan { text: &plain, tokens: &tokens, macros, depth: 0, too_deep: None, edits, left_out };
    let end = scan.scope(0, None);
    if let Some(at) = scan.too_deep {
        let before = &text[..tokens[at].start];
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        return Err(TooDeep { line: before.matches('\n').count() + 1, column });
    }
    if end != Some(tokens.len()) || scan.edits.is_empty() {
        return Ok(None);
    }
    let Scan { edits, left_out, .. } = scan;
    Ok(Some(DeviceCode { text: applied(text, &plain, &edits), left_out }))
}

/// A change of the text.
#[derive(Debug)]
enum Edit {
    /// Blanks replace this range.
    LeaveOut(Range<usize>),
    /// The words of a function of host and device, put here.
    Annotate(usize),
}

fn applied(text: &str, plain: &str, edits: &[Edit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        match edit {
            Edit::Annotate(place) => {
                out.push_str(&text[at..*place]);
                out.push_str("__host__ __device__ ");
                at = *place;
            }
            Edit::LeaveOut(range) => {
                out.push_str(&text[at..range.start]);
                // What is blank in `plain` stays: comments and directives, which may end a condition begun outside.
                for (place, c) in text[range.clone()].char_indices() {
                    let stays = c == '\n' || plain.as_bytes()[range.start + place] == b' ';
                    out.push(if stays { c } else { ' ' });
                }
                at = range.end;
            }
        }
    }
    out.push_str(&text[at..]);
    out
}

/// The state of the scan of one text.
struct Scan<'a> {
    text: &'a str,
    tokens: &'a [Range<usize>],
    macros: &'a DeviceMacros,
    /// How many scopes are open.
    depth: usize,
    /// The place of the first brace within too many scopes.
    too_deep: Option<usize>,
    edits: Vec<Edit>,
    left_out: Vec<String>,
}

impl Scan<'_> {
    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |range| &self.text[range.clone()])
    }

    /// Scans the declarations of a namespace, or of the class of this name, from `at` to its closing brace. Returns the
    /// place of that brace, or `None` if brackets do not match.
    fn scope(&mut self, mut at: usize, class: Option<&str>) -> Option<usize> {
        if self.depth > MAX_DEPTH {
            self.too_deep = Some(at - 1);
            return None;
        }
        self.depth += 1;
        while at < self.tokens.len() && self.token(at) != "}" {
            at = self.declaration(at, class)?;
        }
        self.depth -= 1;
        Some(at)
    }

    /// Scans the declaration that begins at `start`. Returns the place after it.
    fn declaration(&mut self, mut start: usize, class: Option<&str>) -> Option<usize> {
        while matches!(self.token(start), "public" | "private" | "protected") && self.token(start + 1) == ":" {
            start += 2;
        }
        let mut at = start;
        let (mut initialised, mut operator, mut braces) = (false, false, 0);
        loop {
            match self.token(at) {
                "" => return None,
                "}" => return Some(at),
                "(" | "[" => at = self.closing(at)?,
                "operator" => operator = true,
                "=" if !operator => initialised = true,
                ";" => {
                    self.without_body(start, at, class);
                    return Some(at + 1);
                }
                "{" if braces == MOST_BRACES => return None,
                "{" => {
                    braces += 1;
                    let head = Head::scan(self, start, at);
                    if initialised || (head.list.is_some() && head.is_initialiser(self, at)) {
                        at = self.closing(at)?;
                    } else if head.is_scope(self) {
                        let end = self.scope(at + 1, class)?;
                        return (self.token(end) == "}").then_some(end + 1);
                    } else if head.list.is_some() {
                        let end = self.closing(at)?;
                        self.function(&head, start, end, class);
                        // A semicolon after a body is an empty declaration, which goes with it.
                        return Some(end + 1);
                    } else if let Some(name) = head.class_name(self) {
                        let end = self.scope(at + 1, Some(&name))?;
                        at = (self.token(end) == "}").then_some(end)?;
                    } else {
                        at = self.closing(at)?;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// A function that is only declared, or a variable, which ends at `end`.
    fn without_body(&mut self, start: usize, end: usize, class: Option<&str>) {
        let head = Head::scan(self, start, end);
        let defaulted = end >= 2 && matches!(self.token(end - 1), "default" | "delete") && self.token(end - 2) == "=";
        if head.list.is_some() && !head.has(self, "=") && !head.has(self, "{") {
            self.function(&head, start, end, class);
        } else if class.is_none() && !defaulted && head.is_host_variable(self) {
            let name = head.variable_name(self);
            self.leave_out(start, end, name);
        }
    }

    /// Scans a function from `start` to `end`, with or without a body.
    fn function(&mut self, head: &Head, start: usize, end: usize, class: Option<&str>) {
        let Some(list) = head.list else { return };
        let is_instantiation = self.token(start) == "template" && self.token(start + 1) != "<";
        if is_instantiation {
            // `template void reduce<int>(int *);`
            let name = head.tokens.clone().take_while(|at| *at < list).map(|at| self.token(at));
            let name = name.take_while(|token| *token != "<").last().unwrap_or_default().to_owned();
            if self.left_out.contains(&name) {
                self.leave_out(start, end, name);
            }
            return;
        }
        let no_function =
            ["using", "typedef", "static_assert", "asm", "__asm__"].iter().any(|word| head.has(self, word));
        if no_function || head.tokens.clone().any(|at| self.macros.mark(self.token(at))) {
            return;
        }
        // One word before the parameters is a macro, unless it is a constructor or `main`.
        let name = self.token(list - 1);
        let name = if name.starts_with(is_part) { name } else { "operator" }.to_owned();
        if list - head.begin < 2 && name != "main" && class != Some(name.as_str()) {
            return;
        }
        match head.tokens.clone().find(|at| self.token(*at) == "constexpr") {
            Some(at) => self.edits.push(Edit::Annotate(self.tokens[at].start)),
            None => self.leave_out(start, end, name),
        }
    }

    fn leave_out(&mut self, start: usize, end: usize, name: String) {
        self.edits.push(Edit::LeaveOut(self.tokens[start].start..self.tokens[end].end));
        if !self.left_out.contains(&name) {
            self.left_out.push(name);
        }
    }

    /// Returns the place of the bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for at in open..self.tokens.len() {
            match self.token(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
        }
        None
    }
}

/// A declaration, as far as it precedes the body or semicolon.
struct Head {
    /// The declaration's tokens outside of brackets and of the template header.
    tokens: std::vec::IntoIter<usize>,
    /// Where it begins after its template headers.
    begin: usize,
    /// The parenthesis that opens its parameters.
    list: Option<usize>,
}

impl Head {
    fn scan(scan: &Scan<'_>, start: usize, end: usize) -> Self {
        let mut begin = start;
        while scan.token(begin) == "template" && scan.token(begin + 1) == "<" {
            begin = after_angles(scan, begin + 1, end);
        }
        let (mut tokens, mut list, mut at) = (Vec::new(), None, begin);
        while at < end {
            tokens.push(at);
            if matches!(scan.token(at), "(" | "[" | "{") {
                let attribute = matches!(
                    scan.token(at.saturating_sub(1)),
                    "__align__"
                        | "alignas"
                        | "__attribute__"
                        | "__declspec"
                        | "__launch_bounds__"
                        | "decltype"
                        | "noexcept"
                );
                // `operator()` has a list of parameters after these parentheses.
                let call = scan.token(at.saturating_sub(1)) == "operator";
                if scan.token(at) == "(" && list.is_none() && !attribute && !call && at > begin {
                    list = Some(at);
                }
                at = scan.closing(at).unwrap_or(end);
            }
            at += 1;
        }
        Self { tokens: tokens.into_iter(), begin, list }
    }

    fn has(&self, scan: &Scan<'_>, word: &str) -> bool {
        self.tokens.clone().any(|at| scan.token(at) == word)
    }

    /// Whether it is a namespace, or a block of declarations with C linkage.
    fn is_scope(&self, scan: &Scan<'_>) -> bool {
        self.has(scan, "namespace") || (scan.token(self.begin) == "extern" && self.tokens.len() == 2)
    }

    /// Whether the brace at `at` initialises a member, in the list of a constructor.
    fn is_initialiser(&self, scan: &Scan<'_>, at: usize) -> bool {
        let after = self.list.unwrap_or(at);
        let colon = self.tokens.clone().any(|token| {
            token > after && scan.token(token) == ":" && scan.token(token - 1) != ":" && scan.token(token + 1) != ":"
        });
        colon && scan.token(at - 1).starts_with(|c: char| is_part(c) || c == '>')
    }

    /// Returns the name of the class that it defines; empty for one without a name.
    fn class_name(&self, scan: &Scan<'_>) -> Option<String> {
        let keyword = self.tokens.clone().find(|at| matches!(scan.token(*at), "struct" | "class" | "union"))?;
        if self.has(scan, "enum") {
            return None;
        }
        let names = self.tokens.clone().filter(|at| *at > keyword).take_while(|at| scan.token(*at) != ":");
        let names = names.map(|at| scan.token(at)).filter(|token| token.starts_with(is_part) && *token != "final");
        Some(names.filter(|name| !matches!(*name, "alignas" | "__align__")).last().unwrap_or_default().to_owned())
    }

    fn is_host_variable(&self, scan: &Scan<'_>) -> bool {
        let words: Vec<&str> = self.tokens.clone().map(|at| scan.token(at)).collect();
        let declared: Vec<&str> = words.iter().copied().take_while(|word| !matches!(*word, "=" | "[" | "{")).collect();
        // `extern "C"`, whose text is blanked, begins a declaration of any kind.
        let is_linkage =
            declared.first() == Some(&"extern") && declared.get(1).is_some_and(|word| word.starts_with("___"));
        // `struct cudaDeviceProp properties;` declares a variable, `struct Node;` a class.
        let elaborated = matches!(declared.first(), Some(&("struct" | "class" | "union" | "enum")))
            && !words.iter().any(|word| matches!(*word, "{" | ":"));
        let declared = if elaborated { &declared[1..] } else { &declared[..] };
        let kept = |word: &&str| KEPT.contains(word) || scan.macros.mark(word);
        let names =
            declared.iter().filter(|word| word.starts_with(is_part) && !matches!(**word, "alignas" | "__align__"));
        // A pointer to constants is a variable, and a constant pointer is none.
        let after_pointer = declared.iter().rposition(|word| *word == "*").map_or(declared, |at| &declared[at..]);
        let is_constant = after_pointer.contains(&"const") && !declared.iter().any(|word| is_of_the_host(word));
        declared.first().is_some_and(|first| first.starts_with(is_part))
            && !is_linkage
            && !is_constant
            && !declared.iter().any(kept)
            && names.count() >= 2
    }

    fn variable_name(&self, scan: &Scan<'_>) -> String {
        let words = self.tokens.clone().map(|at| scan.token(at));
        let names = words.take_while(|word| !matches!(*word, "=" | "[" | "{" | "("));
        names.filter(|word| word.starts_with(is_part)).last().unwrap_or_default().to_owned()
    }
}

/// Returns the place after the angle brackets that open at `open`.
fn after_angles(scan: &Scan<'_>, open: usize, end: usize) -> usize {
    let (mut depth, mut at) = (0_usize, open);
    while at < end {
        match scan.token(at) {
            "<" => depth += 1,
            ">" if depth == 1 => return at + 1,
            ">" => depth -= 1,
            "(" | "[" | "{" => at = scan.closing(at).unwrap_or(end),
            _ => {}
        }
        at += 1;
    }
    end
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// What scanning depends on, with spaces between.
    const PARTS: &str = "namespace struct a S extern \"C\" template <class T> < > { } {} ( ) [ ] ; , = : :: int f(int \
                         operator operator() __global__ __device__ constexpr using <<< >>> \" ' R\"x( )x\" // /* */ \
                         \\\n \n \n#define A é";

    fn left_out(text: &str) -> Vec<String> {
        let macros = DeviceMacros::collect(std::iter::once(text), &[]);
        device_code(text, &macros).unwrap().map(|code| code.left_out).unwrap_or_default()
    }

    #[test]
    fn functions_and_variables_without_a_word_of_the_device_are_left_out_with_their_bodies() {
        let text = "static std::vector<int> all(3);\nint count = 0;\nvoid check(cudaError_t e, int line);\n\
                    template <typename T> T *upload(const std::vector<T> &v) { return nullptr; }\n\
                    __host__ int helper() { return '}'; }\n\
                    int main(int argc, char **argv) {\n  k<<<1, dim3{1, 1}>>>(p); // }\n  puts(\"{\");\n}\n";
        assert_eq!(left_out(text), ["all", "count", "check", "upload", "helper", "main"]);
        let code = device_code(text, &DeviceMacros::default()).unwrap().unwrap().text;
        assert_eq!(code.matches('\n').count(), text.matches('\n').count());
        assert_eq!(code.replace("// }", "").trim(), "");
    }

    #[test]
    fn code_of_the_device_stays() {
        let text = "#include <x.h>\nnamespace n { __device__ int f(int x) { return x; } }\nconst int N = 4;\n\
                    template <int B = (1 + 2)> __global__ void __launch_bounds__(B) k(int *p) { p[0] = n::f(N); }\n\
                    template __global__ void k<3>(int *);\nextern \"C\" __global__ void c() {}\n\
                    struct alignas(16) S { int a[2]; __device__ S(int x) : a{x, x} {} S() = default; };\n\
                    enum E { A, B };\nusing F = void (*)(int);\ntypedef int (*G)(int);\n\
                    static_assert(sizeof(int) == 4, \"\");\n\
                    __constant__ float table[2] = {1, 2};\nMAKE(k)\n";
        assert_eq!(left_out(text), [""; 0]);
    }

    #[test]
    fn variables_of_the_host_are_left_out_and_constants_of_the_device_stay() {
        let text = "extern cudaDeviceProp deviceProp;\nstruct cudaDeviceProp properties;\n\
                    const char *names[] = {\"a\"};\n\
                    static const std::vector<int> sizes = {1, 2};\nstatic void *workspace = NULL;\n\
                    extern __shared__ float shared[];\nstruct Node;\nstruct alignas(16) Wide;\n\
                    const float half = 0.5f;\n\
                    const int table[2] = {1, 2};\nconst char *const fixed = \"b\";\nextern \"C\" int c;\n";
        assert_eq!(left_out(text), ["deviceProp", "properties", "names", "sizes", "workspace"]);
    }

    #[test]
    fn an_explicit_instantiation_goes_with_its_function() {
        let text = "template <class T> void reduce(int n, T *p) { k<T><<<1, 1>>>(p); }\n\
                    template <class T> __global__ void k(T *p) {}\n\
                    template void reduce<int>(int n, int *p);\ntemplate void reduce<float>(int, float *);\n\
                    template void k<int>(int *);\ntemplate class Pair<int>;\n";
        let code = device_code(text, &DeviceMacros::default()).unwrap().unwrap();
        assert_eq!(code.left_out, ["reduce"]);
        assert!(!code.text.contains("reduce"), "{}", code.text);
        assert!(code.text.contains("template void k<int>(int *);\ntemplate class Pair<int>;"), "{}", code.text);
    }

    #[test]
    fn a_word_of_the_device_may_come_from_a_macro() {
        let text = "#define HD __host__ __device__\n#define FUNCTION(type) INLINE type\n\
                    #define INLINE HD \\\n  inline\n\
                    HD int f() { return 1; }\nFUNCTION(int) g() { return 1; }\nint h() { return 1; }\n";
        assert_eq!(left_out(text), ["h"]);
        let given = [("KERNEL".to_owned(), "extern __global__ void".to_owned())];
        let macros = DeviceMacros::collect(std::iter::empty(), &given);
        assert_eq!(device_code("KERNEL k(int a) { }\n", &macros), Ok(None));
    }

    #[test]
    fn members_of_classes_follow_the_same_rules() {
        let text = "struct S : Base<int> {\n  S(int a) : x(a), y{a} { cudaMalloc(&p, 4); }\n  ~S() { cudaFree(p); }\n\
                    public:\n  bool operator==(const S &o) const { return true; }\n\
                    __device__ int get() const { return x; }\n  int x, y;\n};\n";
        assert_eq!(left_out(text), ["S", "operator"]);
        let code = device_code(text, &DeviceMacros::default()).unwrap().unwrap().text;
        assert!(code.contains("int x, y;") && code.contains("get() const") && !code.contains("cudaFree"), "{code}");
    }

    #[test]
    fn a_constexpr_function_is_compiled_for_the_device_too() {
        let text = "template <int N> static constexpr int half() { return N / 2; }\n";
        let code = device_code(text, &DeviceMacros::default()).unwrap().unwrap();
        assert_eq!(code.text, "template <int N> static __host__ __device__ constexpr int half() { return N / 2; }\n");
        assert!(code.left_out.is_empty());
    }

    #[test]
    fn directives_within_a_function_stay_and_a_text_with_unmatched_brackets_is_left_alone() {
        let text = "int main() {\n#ifdef X\n  f(); // } \u{e9}\u{e9}\n#define N 4\n#endif\n}\n";
        let code = device_code(text, &DeviceMacros::default()).unwrap().unwrap().text;
        assert_eq!(code.replace([' '], ""), "\n#ifdefX\n//}\u{e9}\u{e9}\n#defineN4\n#endif\n\n");
        assert_eq!(device_code("#if A\nint f() {\n#else\nint g() {\n#endif\n}\n", &DeviceMacros::default()), Ok(None));
    }

    #[test]
    fn namespaces_and_classes_nest_up_to_a_depth() {
        let nested =
            |scope: &str, levels: usize| format!("/* é */\né; {}}};", scope.repeat(levels) + &"};".repeat(levels - 1));
        for scope in ["struct a{", "namespace a{", "extern \"C\" {"] {
            let text = |levels| nested(scope, levels) + "int main() { }";
            let none = DeviceMacros::default();
            assert_eq!(device_code(&text(MAX_DEPTH), &none).unwrap().unwrap().left_out, ["main"]);
            for levels in [MAX_DEPTH + 1, 20_000] {
                let column = 3 + scope.len() * (MAX_DEPTH + 1);
                let message = device_code(&text(levels), &none).unwrap_err().to_string();
                assert!(message.starts_with(&format!("2:{column}: namespaces and classes are nested")), "{message}");
            }
        }
    }

    #[test]
    fn macros_that_use_each_other_in_a_long_chain_are_followed() {
        let chain: Vec<String> = (0..50_000).map(|nth| format!("#define M{nth} M{}", nth + 1)).collect();
        let chain = chain.join("\n");
        let macros =
            DeviceMacros::collect(std::iter::once(format!("{chain}\n#define M50000 __device__\n").as_str()), &[]);
        assert!(macros.mark("M0") && !macros.mark("M50001"));
    }

    #[test]
    fn raw_strings_hide_their_brackets() {
        assert_eq!(left_out("const char *const s = R\"x(} )\" { )x\";\nint main() { }\n"), ["main"]);
    }

    proptest! {
        #[test]
        fn any_text_keeps_its_lines(
            parts in prop::collection::vec(select(PARTS.split(' ').collect::<Vec<_>>()), 0..80),
        ) {
            let text = parts.join(" ");
            let macros = DeviceMacros::collect(std::iter::once(text.as_str()), &[]);
            if let Ok(Some(code)) = device_code(&text, &macros) {
                prop_assert_eq!(code.text.matches('\n').count(), text.matches('\n').count());
            }
        }
    }
}
