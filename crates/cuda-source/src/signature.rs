//! Parameters of the kernels that a CUDA C++ source defines, read from its text.
//!
//! Macros are not expanded and types are not looked up: a parameter's type consists of the tokens in the source.

use crate::expand::Functions;
use crate::expression::Expression;
use crate::kernel_body::KernelBody;
use crate::parameter::{Parameter, joined, parameter};
use crate::source::{
    Brackets, LONGEST_HEAD, MOST_DECLARATIONS, closing, function_at, head, is_name, split, tokens, without_directives,
};
use crate::types::Types;

/// Declaration of a `__global__` function.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// Function name without namespaces.
    pub name: String,
    /// Enclosing namespaces, outermost first; unnamed ones are left out.
    pub namespaces: Vec<String>,
    /// Template parameters; empty if the function is not a template.
    pub template: Vec<TemplateParameter>,
    pub parameters: Vec<Parameter>,
    /// How the kernel uses its parameters; `None` for a declaration without a body.
    pub body: Option<KernelBody>,
    /// Maximum number of threads per block, from `__launch_bounds__`.
    pub most_threads: Option<Expression>,
    /// Whether the file itself, rather than an included file, defines the kernel.
    pub own: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateParameter {
    /// Parameter as written in the source: `typename T`, `int B = 4`.
    pub text: String,
    pub name: String,
    pub default: Option<String>,
}

impl Signature {
    /// Qualified name: `mine::scale`.
    pub fn path(&self) -> String {
        self.namespaces.iter().chain([&self.name]).map(String::as_str).collect::<Vec<_>>().join("::")
    }

    /// Parameter types: `const float *, float *, int`.
    pub fn types(&self) -> String {
        self.parameters.iter().map(Parameter::type_text).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn is_of_same_kernel(&self, other: &Self) -> bool {
        let is_same_function = self.name == other.name && self.namespaces == other.namespaces;
        let names =
            |signature: &Self| signature.template.iter().map(|parameter| parameter.name.clone()).collect::<Vec<_>>();
        is_same_function && names(self) == names(other) && self.types() == other.types()
    }
}

/// Definitions of the types and functions that kernels use.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub types: Types,
    pub functions: Functions,
}

/// Finds the kernels among a file's tokens.
pub(crate) fn scan(tokens: &[&str], own: bool, context: &Context) -> Vec<Signature> {
    // One entry per open brace: the name if it opens a namespace.
    let mut open: Vec<Option<&str>> = Vec::new();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => open.push(namespace(&tokens[..at])),
            "}" => drop(open.pop()),
            "__global__" if found.len() < MOST_DECLARATIONS => {
                let namespaces = || open.iter().flatten();
                let kernel = signature(tokens, at, own, context);
                found.extend(kernel.map(|kernel| Signature {
                    namespaces: namespaces().map(|name| (*name).to_owned()).chain(kernel.namespaces).collect(),
                    ..kernel
                }));
            }
            _ => {}
        }
    }
    found
}

/// Name of the namespace whose brace follows these tokens; `None` if it is another brace.
fn namespace<'a>(before: &[&'a str]) -> Option<&'a str> {
    match before {
        [.., "namespace", name] if is_name(name) => Some(name),
        _ => None,
    }
}

/// Names of a function's parameters that have no default; unnamed ones are empty. `None` if the text does not define
/// the function outside namespaces and classes.
pub fn parameters_of(text: &str, function: &str) -> Option<Vec<String>> {
    let (code, _) = without_directives(text);
    let tokens = tokens(&code);
    let (mut at, mut depth) = (0, 0_usize);
    while at + 1 < tokens.len() {
        match tokens[at] {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            name if depth == 0 && name == function && tokens[at + 1] == "(" => {
                let close = closing(&tokens, at + 1)?;
                let after = &tokens[close + 1..];
                if head(after).iter().take_while(|token| **token != ";").any(|token| *token == "{") {
                    let parameters = split(&tokens[at + 2..close]).into_iter();
                    let required = parameters.filter(|tokens| !tokens.contains(&"=")).map(parameter);
                    let is_void = |parameter: &Parameter| parameter.base == "void" && parameter.pointers == 0;
                    let named = required.filter(|parameter| !is_void(parameter));
                    return Some(named.map(|parameter| parameter.name.unwrap_or_default()).collect());
                }
                at = close;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Parses the kernel whose `__global__` is at `at`.
fn signature(tokens: &[&str], at: usize, own: bool, context: &Context) -> Option<Signature> {
    let name = at + 1 + function_at(&tokens[at + 1..])?;
    let close = name + 1 + closing(head(&tokens[name + 1..]), 0)?;
    let before = at.saturating_sub(LONGEST_HEAD);
    let begin = tokens[before..at].iter().rposition(|token| matches!(*token, ";" | "}" | "{"));
    let begin = begin.map_or(before, |end| before + end + 1);
    let parameters = split(&tokens[name + 2..close]).into_iter().map(parameter);
    let mut parameters: Vec<Parameter> =
        parameters.filter(|parameter| parameter.base != "void" || parameter.pointers > 0).collect();
    let template = template(&tokens[begin..at]);
    let types: Vec<&str> = template.iter().map(|parameter| parameter.name.as_str()).collect();
    for parameter in &mut parameters {
        context.types.resolve(parameter, &types);
    }
    let names: Vec<&str> = parameters.iter().filter_map(|parameter| parameter.name.as_deref()).collect();
    Some(Signature {
        name: tokens[name].to_owned(),
        namespaces: qualifiers(&tokens[at..name]),
        template,
        body: body(&tokens[close + 1..]).map(|body| {
            let body = context.functions.expand(body);
            KernelBody::read(&body.iter().map(String::as_str).collect::<Vec<_>>(), &names)
        }),
        parameters,
        most_threads: most_threads(&tokens[begin..name]),
        own,
    })
}

/// First argument of `__launch_bounds__` in a kernel's head.
fn most_threads(head: &[&str]) -> Option<Expression> {
    let open = head.iter().position(|token| *token == "__launch_bounds__")? + 1;
    let close = closing(head, open)?;
    split(head.get(open + 1..close)?).first().map(|tokens| Expression::parse(tokens))
}

/// Namespaces that qualify the kernel's name in its definition: `void mine::scale(…)`.
fn qualifiers(before: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = before;
    while let [rest @ .., name, ":", ":"] = before
        && is_name(name)
    {
        found.insert(0, (*name).to_owned());
        before = rest;
    }
    found
}

/// Tokens between the braces after a kernel's parameters. If the braces are not closed, tokens up to the next kernel.
/// `None` for a declaration.
fn body<'t, 'a>(after: &'t [&'a str]) -> Option<&'t [&'a str]> {
    let after = after.strip_prefix(&["{"])?;
    let mut depth = 1_usize;
    let ends = |token: &&str| {
        match *token {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        depth == 0 || *token == "__global__"
    };
    let end = after.iter().position(ends);
    Some(&after[..end.unwrap_or(after.len())])
}

/// Parameters of the template header at the start.
fn template(tokens: &[&str]) -> Vec<TemplateParameter> {
    let Some(rest) = tokens.strip_prefix(&["template", "<"]) else { return Vec::new() };
    let mut brackets = Brackets { round: 0, angle: 1 };
    let end = rest.iter().position(|token| {
        brackets.pass(token);
        brackets == Brackets::default()
    });
    let parameter = |tokens: &[&str]| {
        let (declared, default) = match tokens.iter().position(|token| *token == "=") {
            Some(at) => (&tokens[..at], Some(joined(&tokens[at + 1..]))),
            None => (tokens, None),
        };
        let name =
            declared.iter().rev().find(|token| is_name(token)).map_or_else(String::new, |name| (*name).to_owned());
        TemplateParameter { text: joined(tokens), name, default }
    };
    split(&rest[..end.unwrap_or(rest.len())]).into_iter().map(parameter).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::*;

    fn only(text: &str) -> Signature {
        let (code, _) = without_directives(text);
        let mut found = scan(&tokens(&code), true, &Context::default());
        assert_eq!(found.len(), 1, "{found:?}");
        found.pop().unwrap()
    }

    /// Each parameter as `name: base` with its pointers, and `!` if it is const.
    fn parameters(text: &str) -> Vec<String> {
        let shown = |parameter: &Parameter| {
            let pointers = "*".repeat(parameter.pointers);
            let constant = if parameter.is_const { "!" } else { "" };
            format!("{}: {}{pointers}{constant}", parameter.name.as_deref().unwrap_or("-"), parameter.base)
        };
        only(&format!("__global__ void k({text}) {{}}")).parameters.iter().map(shown).collect()
    }

    #[test]
    fn names_types_and_constness_of_parameters_are_read() {
        let found =
            parameters("const float *__restrict__ in, float* out, unsigned long long n, double const alpha = 2");
        assert_eq!(found, ["in: float*!", "out: float*", "n: unsigned long long", "alpha: double!"]);
        assert_eq!(
            parameters("float *const fixed, int a[], std::size_t n"),
            ["fixed: float*", "a: int*", "n: std::size_t"]
        );
        assert_eq!(parameters("const int *, unsigned, unsigned int"), ["-: int*!", "-: unsigned", "-: unsigned int"]);
        assert_eq!(parameters("Pair<int, float> pair, T **rows"), ["pair: Pair<int, float>", "rows: T**"]);
        assert_eq!(parameters("void"), [""; 0]);
    }

    #[test]
    fn parameters_of_a_function_of_the_host_are_those_of_its_definition() {
        let text = "#include <vector>\nstd::vector<double> f(const std::vector<float> &a);\n\
                    namespace n { int f(int wrong) { return 0; } }\n\
                    std::vector<double> f(const std::vector<float> &input, const float *filter, long rows, // f(int x) \
                    {}\n  unsigned long n, double eps = 1e-5) { return g(rows); }\nint g(void) { return f(1); }";
        let names = |function| parameters_of(text, function);
        assert_eq!(names("f").unwrap(), ["input", "filter", "rows", "n"]);
        assert_eq!(names("g").unwrap(), [""; 0]);
        assert_eq!(names("h"), None);
    }

    #[test]
    fn parameters_of_templates_are_read_with_their_defaults() {
        let found =
            only("int a; template <typename T, int B = (1 > 0)>\n__global__ __launch_bounds__(B) void k(T *x) {}");
        let template: Vec<(&str, Option<&str>)> =
            found.template.iter().map(|p| (p.name.as_str(), p.default.as_deref())).collect();
        assert_eq!(template, [("T", None), ("B", Some("(1>0)"))]);
        assert_eq!((found.name.as_str(), found.parameters[0].text.as_str()), ("k", "T *x"));
    }

    #[test]
    fn the_bound_of_a_launch_is_read_wherever_it_stands() {
        for head in [
            "__launch_bounds__(128) __global__ void k",
            "__global__ void __launch_bounds__(128, 2) k",
            "extern \"C\" __global__ __launch_bounds__(64 * 2) void k",
        ] {
            let bound = only(&format!("int before; {head}(int *x) {{}}")).most_threads.unwrap();
            assert_eq!(bound.interval(&|_| None), Some((128, 128)), "{head}");
        }
        assert_eq!(only("__global__ void k(int *x) {}").most_threads, None);
    }

    #[test]
    fn comments_and_directives_are_no_parameters() {
        let found =
            only("__global__ void k(const int *in, // the input\n#if 1\n int *out /* = in */,\n#endif\n int n);");
        assert_eq!(found.parameters.len(), 3);
    }
}
