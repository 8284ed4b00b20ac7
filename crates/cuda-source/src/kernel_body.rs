//! How a kernel's body uses its parameters, read from its tokens.
//!
//! Drafts use this to tell inputs from outputs. Nothing is expanded or looked up: a pointer that is passed on, cast or
//! stored in a variable may be used in any way.

use std::collections::BTreeMap;

use crate::reach::{Reach, Setting};
use crate::source::{LONGEST_HEAD, closing, head, is_name};

/// Maximum number of tokens to search backwards from an argument for the function's name.
const LONGEST_ARGUMENTS: usize = 256;

/// Functions that take numbers by value.
const VALUE_FUNCTIONS: [&str; 22] = [
    "abs", "exp", "expf", "fabs", "fabsf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "log", "logf", "max",
    "min", "pow", "powf", "rsqrtf", "sqrt", "sqrtf", "tanh", "tanhf",
];

/// How a kernel uses the elements behind a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Cannot be determined from the text.
    #[default]
    Unknown,
    /// Elements are read but not written.
    Read,
    Written,
    /// Elements are read, or added to, before any is written.
    Updated,
}

/// Uses of all parameters of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelBody {
    accesses: BTreeMap<String, Access>,
    /// Number of dimensions of `threadIdx` and `blockDim` that the body uses: 1 to 3.
    pub thread_dimensions: usize,
    /// Number of dimensions of `blockIdx` and `gridDim` that the body uses: 1 to 3.
    pub block_dimensions: usize,
    tokens: Vec<String>,
}

/// The local pointer declared at `at`, if it is initialized with an address in a parameter's memory, and that
/// parameter. `parameter_of` maps known pointers to parameters.
fn alias<'a>(
    body: &[&'a str],
    at: usize,
    parameter_of: impl Fn(&str) -> Option<&'a str>,
) -> Option<(&'a str, &'a str)> {
    let [star, alias, "=", rest @ ..] = body.get(at..)? else { return None };
    (*star == "*" && is_name(alias)).then_some(())?;
    let end = rest.iter().position(|token| *token == ";")?;
    let first = rest[..end].iter().position(|token| parameter_of(token).is_some())?;
    // `*y = x[i]` writes an element, and `float *p = x[i]` is not an address within `x`.
    let is_declared = at > 0 && (is_name(body[at - 1]) || body[at - 1] == ">") && body[at - 1] != "return";
    let is_element = rest.get(first + 1) == Some(&"[") && !rest[..first].contains(&"&");
    (is_declared && !is_element).then(|| parameter_of(rest[first]).map(|parameter| (*alias, parameter))).flatten()
}

/// Whether the name at `at` is the base address with which a local pointer is initialized.
fn begins_alias(body: &[&str], at: usize) -> bool {
    let begin = body[..at].iter().rposition(|token| matches!(*token, ";" | "{" | "}")).map_or(0, |before| before + 1);
    let head = &body[begin..at];
    let Some(equals) = head.iter().position(|token| *token == "=") else { return false };
    let is_pointer = equals >= 3 && head[equals - 2] == "*" && is_name(head[equals - 3]);
    let is_element = body.get(at + 1) == Some(&"[") && !head[equals..].contains(&"&");
    is_pointer && !is_element
}

/// One use of a pointer, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    /// A read as a function argument, which may be taken by reference.
    Argument,
    Write,
    Update,
    /// The pointer itself is passed on, cast or used in arithmetic.
    Pointer,
}

impl KernelBody {
    /// Reads the tokens between the braces of a kernel with these parameters.
    pub fn read(body: &[&str], parameters: &[&str]) -> Self {
        let mut uses: BTreeMap<&str, Vec<(usize, Use)>> =
            parameters.iter().map(|parameter| (*parameter, Vec::new())).collect();
        let mut dimensions = [1; 2];
        // Local pointers into what parameters point to, and where they are declared.
        let mut aliases: BTreeMap<&str, &str> = BTreeMap::new();
        let mut declared = None;
        for (at, token) in body.iter().enumerate() {
            let known = |name: &str| {
                let own = parameters.iter().find(|parameter| **parameter == name).copied();
                aliases.get(name).copied().or(own)
            };
            if let Some((alias, parameter)) = alias(body, at, known) {
                aliases.insert(alias, parameter);
                declared = Some(at + 1);
            }
            let is_initialiser = parameters.contains(token) && !aliases.is_empty() && begins_alias(body, at);
            if is_initialiser || declared == Some(at) {
                continue;
            }
            let token = &aliases.get(token).copied().unwrap_or(token);
            if let Some(uses) = uses.get_mut(token)
                && !matches!(at.checked_sub(1).map(|before| body[before]), Some("." | ":"))
            {
                uses.push((at, use_at(body, at)));
            }
            let of = ["threadIdx", "blockDim", "blockIdx", "gridDim"].iter().position(|name| name == token);
            if let (Some(of), Some([".", axis])) = (of, body.get(at + 1..at + 3)) {
                let count = ["x", "y", "z"].iter().position(|name| name == axis).map_or(1, |axis| axis + 1);
                dimensions[of / 2] = count.max(dimensions[of / 2]);
            }
        }
        let accesses = uses.iter().map(|(name, uses)| ((*name).to_owned(), access(body, uses)));
        let [thread_dimensions, block_dimensions] = dimensions;
        let tokens = body.iter().map(|token| (*token).to_owned()).collect();
        Self { accesses: accesses.collect(), thread_dimensions, block_dimensions, tokens }
    }

    /// Computes how far the kernel reaches with these values.
    pub fn reach(&self, setting: &Setting) -> Reach {
        let tokens: Vec<&str> = self.tokens.iter().map(String::as_str).collect();
        Reach::read(&tokens, setting)
    }

    /// Whether the body contains a word that `is_wanted` accepts.
    pub fn mentions(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.tokens.iter().any(|token| is_wanted(token))
    }

    /// The function that fetches from a texture object, and the type of its texels, e.g. `tex2D` and `float4`.
    pub fn fetch(&self, texture: &str) -> Option<(String, String)> {
        let word = |at: usize| self.tokens.get(at).map_or("", String::as_str);
        (0..self.tokens.len()).find_map(|at| {
            let close = (at + 2..at + 6).find(|place| word(*place) == ">")?;
            let is_fetch = word(at).starts_with("tex") && word(at + 1) == "<" && word(close + 1) == "(";
            (is_fetch && word(close + 2) == texture)
                .then(|| (word(at).to_owned(), self.tokens[at + 2..close].join(" ")))
        })
    }

    pub fn access(&self, parameter: &str) -> Access {
        self.accesses.get(parameter).copied().unwrap_or_default()
    }
}

/// How the pointer at `at` is used: the expression around it is followed as long as it is an address or an element.
fn use_at(body: &[&str], at: usize) -> Use {
    let (mut from, mut to) = (at, at + 1);
    let mut is_address = true;
    loop {
        let before = |count: usize| from.checked_sub(count).map_or("", |place| body[place]);
        let after = |count: usize| body.get(to + count).copied().unwrap_or("");
        let read = &body[..body.len().min(to + LONGEST_HEAD)];
        let is_unary = !is_operand(before(2)) || before(2) == "return";
        if is_address && after(0) == "[" {
            let Some(close) = closing(read, to) else { return Use::Pointer };
            (to, is_address) = (close + 1, false);
        } else if is_address && (after(0), after(1)) == ("-", ">") {
            (to, is_address) = (to + 3, false);
        } else if !is_address && after(0) == "." && is_name(after(1)) {
            to += 2;
        } else if !is_address && before(1) == "&" && before(2) != "&" && is_unary {
            (from, is_address) = (from - 1, true);
        } else if is_address && before(1) == "*" && (is_unary || to == at + 1) {
            (from, is_address) = (from - 1, false);
        } else if is_address && before(1) == ")" && is_cast(body, from - 1).is_some() {
            from = is_cast(body, from - 1).unwrap_or(from);
        } else if before(1) == "("
            && (after(0) == ")" || is_address && matches!(after(0), "+" | "-") && after(1) != "=")
        {
            let Some(close) = closing(read, from - 1) else { return Use::Pointer };
            let callee = before(2);
            if callee == ">"
                && let Some(cast) = (0..from - 2).rev().take(16).find(|place| body[*place].ends_with("_cast"))
            {
                (from, to) = (cast, close + 1);
            } else if is_name(callee) && !matches!(callee, "return" | "else") || matches!(callee, ">" | "]") {
                break;
            } else if callee.starts_with('"') {
                return use_in_assembly(body, from);
            } else if is_address || close == to {
                (from, to) = (from - 1, close + 1);
            } else {
                break;
            }
        } else {
            break;
        }
    }
    let before = |count: usize| from.checked_sub(count).map_or("", |place| body[place]);
    if is_address { use_by_callee(body, from, before(1)) } else { use_of_element(body, from, to) }
}

/// Whether a token ends an operand, so that a `*` or `&` after it has two.
fn is_operand(token: &str) -> bool {
    is_name(token) || token.starts_with(|c: char| c.is_ascii_digit()) || matches!(token, ")" | "]")
}

/// Start of the C cast that ends with the `)` at `close`: `(float4 *)`.
fn is_cast(body: &[&str], close: usize) -> Option<usize> {
    let open = body[..close].iter().rposition(|token| matches!(*token, "(" | ")"))?;
    let is_type =
        body[open] == "(" && close > open + 1 && body[open + 1..close].iter().all(|word| is_name(word) || *word == "*");
    (is_type && body[close - 1] == "*").then_some(open)
}

/// How a function uses the elements behind an address that it is passed.
fn use_by_callee(body: &[&str], from: usize, before: &str) -> Use {
    let mut depth = 0_usize;
    let mut place = 0;
    if !matches!(before, "(" | ",") {
        return Use::Pointer;
    }
    for at in (0..from).rev().take(LONGEST_ARGUMENTS) {
        match body[at] {
            ")" | "]" | "}" => depth += 1,
            "(" if depth == 0 => {
                return match (at.checked_sub(1).map_or("", |callee| body[callee]), place) {
                    (callee, 0) if callee.starts_with("atomic") => atomic(callee),
                    (callee, 0) if callee.starts_with("__ld") => Use::Read,
                    (callee, 0) if callee.starts_with("__st") => Use::Write,
                    ("store_matrix_sync" | "memcpy", 0) => Use::Write,
                    ("load_matrix_sync" | "memcpy" | "__pipeline_memcpy_async", 1) => Use::Read,
                    _ => Use::Pointer,
                };
            }
            "(" | "[" | "{" if depth == 0 => return Use::Pointer,
            "(" | "[" | "{" => depth -= 1,
            "," if depth == 0 => place += 1,
            _ => {}
        }
    }
    Use::Pointer
}

/// How inline assembly uses the address that is its operand at `from`.
fn use_in_assembly(body: &[&str], from: usize) -> Use {
    let begin = from.saturating_sub(LONGEST_ARGUMENTS);
    let Some(asm) = body[begin..from].iter().rposition(|token| matches!(*token, "asm" | "__asm__")) else {
        return Use::Pointer;
    };
    let text = &body[begin + asm..from];
    let instructions = || {
        let literals = text.iter().filter(|token| token.starts_with('"'));
        literals.flat_map(|token| token.split(|c: char| !c.is_ascii_alphanumeric() && c != '.'))
    };
    let says = |words: &[&str]| instructions().any(|word| words.iter().any(|begin| word.starts_with(begin)));
    if says(&["atom.", "red."]) {
        Use::Update
    } else if says(&["st."]) || instructions().any(|word| word.starts_with("cp.") && word.contains("global.shared")) {
        Use::Write
    } else if says(&["cp.async", "ld."]) {
        Use::Read
    } else {
        Use::Pointer
    }
}

/// How an atomic function uses its element.
fn atomic(function: &str) -> Use {
    if function.starts_with("atomicExch") { Use::Write } else { Use::Update }
}

/// Use of the element at tokens `from..to`.
fn use_of_element(body: &[&str], from: usize, mut to: usize) -> Use {
    // A vector's component: `y[i].x`.
    while body.get(to) == Some(&".") {
        to += 2;
    }
    let before = |count: usize| from.checked_sub(count).map_or("", |place| body[place]);
    let after = |count: usize| body.get(to + count).copied().unwrap_or("");
    let is_doubled = |one: &str, other: &str| one == other && matches!(one, "+" | "-");
    match (after(0), after(1), after(2)) {
        ("=", next, _) if next != "=" => Use::Write,
        ("+" | "-" | "*" | "/" | "%" | "&" | "|" | "^", "=", _) | ("<", "<", "=") | (">", ">", "=") => Use::Update,
        (one, other, ";" | ")" | "," | "]") if is_doubled(one, other) => Use::Update,
        _ if is_doubled(before(1), before(2)) => Use::Update,
        (")" | ",", ..) if is_argument(body, from) => Use::Argument,
        _ => Use::Read,
    }
}

/// Whether the expression at `from` is an entire argument of a function that may take it by reference.
fn is_argument(body: &[&str], from: usize) -> bool {
    if !matches!(from.checked_sub(1).map(|before| body[before]), Some("," | "(")) {
        return false;
    }
    let mut depth = 0_usize;
    for at in (0..from).rev().take(LONGEST_ARGUMENTS) {
        match body[at] {
            ")" | "]" | "}" => depth += 1,
            "(" if depth == 0 => return at > 0 && may_take_reference(body[at - 1]),
            "(" | "[" | "{" if depth == 0 => return false,
            "(" | "[" | "{" => depth -= 1,
            _ => {}
        }
    }
    true
}

/// Whether the token before `(` is a function that may take its arguments by reference: any name except CUDA's by-value
/// functions, or the end of template arguments.
fn may_take_reference(callee: &str) -> bool {
    let is_word =
        matches!(callee, "if" | "while" | "for" | "switch" | "return" | "sizeof" | "int" | "float" | "double");
    let is_of_values = callee.starts_with("__") || callee.starts_with("atomic") || VALUE_FUNCTIONS.contains(&callee);
    (is_name(callee) && !is_word && !is_of_values) || callee == ">"
}

/// Combines all uses of a pointer.
fn access(body: &[&str], uses: &[(usize, Use)]) -> Access {
    let first = |wanted: &[Use]| uses.iter().find(|(_, found)| wanted.contains(found)).map(|(at, _)| *at);
    let read = first(&[Use::Read, Use::Argument, Use::Update]);
    let written = first(&[Use::Write]);
    match (read, written) {
        (None, None) => Access::Unknown,
        (None, Some(_)) => Access::Written,
        // The written value may depend on a read in the same statement.
        (Some(read), Some(written)) => {
            let end =
                head(&body[written..]).iter().position(|token| *token == ";").map_or(body.len(), |at| written + at);
            if read < end { Access::Updated } else { Access::Written }
        }
        (Some(_), None) if first(&[Use::Update, Use::Argument, Use::Pointer]).is_some() => Access::Updated,
        (Some(_), None) => Access::Read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    fn accesses(body: &str) -> [Access; 2] {
        let body = KernelBody::read(&tokens(body), &["x", "y", "n"]);
        ["x", "y"].map(|name| body.access(name))
    }

    #[test]
    fn a_pointer_that_is_read_before_it_is_written_is_updated() {
        for body in [
            "if (i < n) y[i] = a * x[i] + y[i];",
            "y[i] += x[i];",
            "y[i * 2 + 1] -= x[y2[i]];",
            "y[i] <<= x[i];",
            "y[i]++; int z = x[i];",
            "++y[i]; int z = x[i];",
            "*y += x[0];",
            "*(y + i) = *(y + i) + x[i];",
            "atomicAdd(&y[x[i]], 1);",
            "atomicMax(y, x[i]);",
            "atomicAdd(y + blockIdx.x, x[i]);",
            "float4 v = y[i]; y[i] = f(v, 2 * x[i]);",
            "y[i].x += x[i].x;",
            "float s = 0; for (int k = 0; k < n; k++) s += y[k] * x[k]; y[i] = s;",
            "swap(y[i], y[i + 1]); int z = x[i];",
            "reduce<float>(1 + (n), y[i]); int z = x[i];",
            "atomicAdd(&(y[i]), x[i]);",
            "float *p = y + i, z = x[i]; p[1] += z;",
            "auto *p = &y[n]; const float *q = x; p[0] = p[1] + q[i];",
        ] {
            assert_eq!(accesses(body), [Access::Read, Access::Updated], "{body}");
        }
    }

    #[test]
    fn a_pointer_that_is_written_first_is_written() {
        for body in [
            "y[i] = x[i] * 2;",
            "y[i] = 0; for (int k = 0; k < n; k++) y[i] += x[k];",
            "y[i].x = x[i] == 3;",
            "y[n - 1 - i] = x[i] <= 2 && x[i] >= 1;",
            "*y = x[0];",
            "atomicExch(&y[i], x[i]);",
            "y[i] = __ldg(&x[i]);",
            "if (!i) y[0] = 0; __syncthreads(); atomicAdd(y, x[i]);",
            "y[i] = fmaxf(a * 2, x[i]);",
            "float *p = x + i; float *q = y; *q = p[0];",
            "(reinterpret_cast<float4 *>(&(y[4 * i]))[0]) = (reinterpret_cast<const float4 *>(&(x[i]))[0]);",
            "((float4 *)y)[i] = ((float4 *)(x + 4))[i];",
            "*(float4 *)(y + i) = *(float4 *)&x[i];",
            "__stcs(y + i, __ldcs(x + i));",
            "wmma::load_matrix_sync(a, x + i, 16); wmma::store_matrix_sync(&y[i], a, 16, layout);",
            "asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\" :: \"r\"(s), \"l\"(&x[i])); y[i] = 0;",
            "T *p = &y[i]; const T *q = x + 1; p->a = q->a;",
        ] {
            assert_eq!(accesses(body), [Access::Read, Access::Written], "{body}");
        }
    }

    #[test]
    fn a_pointer_that_is_passed_on_may_be_used_in_any_way() {
        for body in ["f(x, y);", "p = x + i; q = y; *q = p[0];", "g(&x[i], &y[i]);", "s.y[0] = s.x[0];"] {
            assert_eq!(accesses(body), [Access::Unknown; 2], "{body}");
        }
    }

    #[test]
    fn the_dimensions_of_threads_and_blocks_are_those_that_the_body_names() {
        let dimensions = |body: &str| {
            let body = KernelBody::read(&tokens(body), &[]);
            (body.thread_dimensions, body.block_dimensions)
        };
        assert_eq!(dimensions("int i = threadIdx.x; int y = blockIdx.x;"), (1, 1));
        assert_eq!(dimensions("int row = blockIdx.y * blockDim.y + threadIdx.y;"), (2, 2));
        assert_eq!(dimensions("int batch = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;"), (1, 2));
        assert_eq!(dimensions("int z = blockIdx.z;"), (1, 3));
    }

    #[test]
    fn the_function_that_fetches_from_a_texture_names_its_texels() {
        let body =
            KernelBody::read(&tokens("float4 c = tex2D<float4>(image, x, y); d = tex3D<unsigned char>(v, x);"), &[]);
        assert_eq!(body.fetch("image"), Some(("tex2D".into(), "float4".into())));
        assert_eq!(body.fetch("v"), Some(("tex3D".into(), "unsigned char".into())));
        assert_eq!(body.fetch("x"), None);
    }

    #[test]
    fn brackets_that_are_not_closed_end_nothing() {
        let body = format!("y[{}", "y[(".repeat(50_000));
        assert_eq!(accesses(&body)[1], Access::Unknown);
    }
}
