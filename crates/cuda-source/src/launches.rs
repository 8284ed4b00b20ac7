//! Launches in a source's host code: grid, block, shared memory, arguments and allocation sizes.
//!
//! The code is read once, in source order. The value of a variable is the last one that is an expression of constants,
//! or the default if the command line may override it. Anything else stays unknown.

use std::collections::{BTreeMap, BTreeSet};

use crate::expression::Expression;
use crate::parameter::joined;
use crate::source::split;
use crate::source::{Brackets, LONGEST_HEAD, MOST_DECLARATIONS, closing, is_name, tokens};

/// Maximum length of a chain of definitions.
const DEEPEST: usize = 16;

/// A launch whose sizes are expressions of host variables.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// Kernel name without namespaces and template arguments.
    pub kernel: String,
    /// Template arguments as written, with constants replaced: `float, 16`.
    pub template: Option<String>,
    /// 1-based line number in the source.
    pub line: usize,
    pub grid: Vec<Expression>,
    pub block: Vec<Expression>,
    pub shared: Option<Expression>,
    pub arguments: Vec<Argument>,
    /// Values of host variables that are constant or have a default.
    pub values: BTreeMap<String, i128>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    pub value: Expression,
    /// Number of bytes allocated for the argument.
    pub bytes: Option<Expression>,
}

impl Launch {
    /// Evaluates an expression of host variables; `None` unless it is a single integer.
    pub fn integer(&self, expression: &Expression) -> Option<i128> {
        let value = |name: &Expression| match name {
            Expression::Name(name) => self.values.get(name).map(|value| (*value, *value)),
            _ => None,
        };
        expression.interval(&value).filter(|(low, high)| low == high).map(|(value, _)| value)
    }
}

/// Constants and launches in a source's code outside kernels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostCode {
    /// Integer constants: macros, and variables outside functions.
    pub constants: BTreeMap<String, i128>,
    pub launches: Vec<Launch>,
}

impl HostCode {
    /// Reads tokens and directives. Line numbers refer to `text`.
    pub(crate) fn read(tokens: &[&str], directives: &[&str], text: &str) -> Self {
        let mut reader = Reader { tokens, ..Reader::default() };
        for directive in directives {
            reader.define(directive);
        }
        reader.read();
        let mut found = Self { constants: reader.constants(), launches: Vec::new() };
        for call in reader.calls.clone() {
            found.launches.extend(reader.launch(&call, &found.constants));
        }
        for launch in &mut found.launches {
            launch.line = line_of(text, &launch.kernel);
        }
        found
    }
}

/// Line of a kernel's first launch; 0 if there is none.
fn line_of(text: &str, kernel: &str) -> usize {
    let is_launch = |line: &str| {
        line.match_indices(kernel).any(|(at, _)| {
            let rest = line[at + kernel.len()..].trim_start();
            rest.starts_with("<<<") || (rest.starts_with('<') && rest.contains("<<<"))
        }) || (line.contains("cudaLaunch") && line.contains(kernel))
    };
    text.lines().position(is_launch).map_or(0, |at| at + 1)
}

/// A function template of the host, in which a launch may use the template's parameters.
#[derive(Debug, Clone)]
struct Launcher<'a> {
    name: &'a str,
    parameters: Vec<&'a str>,
    /// Tokens of the body.
    range: (usize, usize),
}

/// Token ranges of a launch's parts.
#[derive(Debug, Clone)]
struct Call {
    at: usize,
    kernel: String,
    template: Option<(usize, usize)>,
    /// Grid, block and shared memory.
    configuration: Vec<(usize, usize)>,
    arguments: Vec<(usize, usize)>,
}

#[derive(Debug, Default)]
struct Reader<'t, 'a> {
    tokens: &'t [&'a str],
    /// Values of each variable, with the token index of the assignment; 0 for macros.
    values: BTreeMap<String, Vec<(usize, Expression)>>,
    /// Components of each `dim3`, with the token index of the assignment.
    dimensions: BTreeMap<String, Vec<(usize, Vec<Expression>)>>,
    allocated: BTreeMap<String, Vec<(usize, Expression)>>,
    /// Elements of arrays that hold pointers to arguments.
    pointers: BTreeMap<String, Vec<(usize, usize)>>,
    global: BTreeSet<String>,
    calls: Vec<Call>,
    launchers: Vec<Launcher<'a>>,
}

impl<'a> Reader<'_, 'a> {
    fn define(&mut self, directive: &str) {
        let Some(rest) = directive.strip_prefix("define") else { return };
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, value) = rest.split_at(end);
        if value.starts_with('(') {
            return;
        }
        let value = Expression::parse(&tokens(value));
        self.global.insert(name.to_owned());
        self.values.entry(name.to_owned()).or_default().push((0, value));
    }

    fn read(&mut self) {
        let (mut at, mut depth) = (0, 0_usize);
        while at < self.tokens.len() {
            match self.tokens[at] {
                "__global__" | "__device__" => {
                    at = self.after_function(at);
                    continue;
                }
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "dim3" => self.dim3(at),
                "template" => self.launchers.extend(self.launcher(at)),
                "=" => self.assignment(at, depth == 0),
                "cudaMalloc" | "cudaMallocManaged" | "cudaMallocAsync" => self.allocation(at),
                "<" if self.tokens[at..].starts_with(&["<", "<", "<"]) && self.calls.len() < MOST_DECLARATIONS => {
                    self.chevrons(at);
                    at += 3;
                    continue;
                }
                "cudaLaunchKernel" | "cudaLaunchCooperativeKernel" => self.launch_kernel(at),
                "cudaLaunchKernelEx" => self.launch_kernel_ex(at),
                _ => {}
            }
            at += 1;
        }
    }

    /// Index after the kernel or device function at `at`; for a variable, the index after the keyword.
    fn after_function(&self, at: usize) -> usize {
        let Some(name) = crate::source::function_at(&self.tokens[at + 1..]) else { return at + 1 };
        let open = at + 1 + name + 1;
        let Some(close) = closing(self.tokens, open) else { return at + 1 };
        match self.tokens.get(close + 1) {
            Some(&"{") => closing(self.tokens, close + 1).map_or(self.tokens.len(), |end| end + 1),
            _ => close + 1,
        }
    }

    /// The function template whose header is at `at`.
    fn launcher(&self, at: usize) -> Option<Launcher<'a>> {
        let end = self.end_of_angles(at + 1)?;
        let parameters = split(&self.tokens[at + 2..end]).into_iter().filter_map(|part| {
            let declared = part.split(|token| *token == "=").next().unwrap_or_default();
            declared.iter().rev().find(|token| is_name(token)).copied()
        });
        let name = end + 1 + crate::source::function_at(&self.tokens[end + 1..])?;
        let open = closing(self.tokens, name + 1)? + 1;
        (self.tokens.get(open) == Some(&"{")).then_some(())?;
        let range = (open, closing(self.tokens, open)?);
        Some(Launcher { name: self.tokens[name], parameters: parameters.collect(), range })
    }

    /// Index of the `>` that closes the `<` at `open`.
    fn end_of_angles(&self, open: usize) -> Option<usize> {
        (self.tokens.get(open) == Some(&"<")).then_some(())?;
        let mut brackets = Brackets::default();
        (open..self.tokens.len().min(open + LONGEST_HEAD)).find(|place| {
            brackets.pass(self.tokens[*place]);
            brackets == Brackets::default()
        })
    }

    /// Template arguments at `at` by parameter, as the first call of the surrounding function template passes them.
    fn instance(&self, at: usize) -> BTreeMap<&'a str, &[&'a str]> {
        let found = self.launchers.iter().rfind(|one| (one.range.0..one.range.1).contains(&at));
        let arguments = found.and_then(|launcher| {
            (0..self.tokens.len()).find_map(|place| {
                let is_outside = !(launcher.range.0..launcher.range.1).contains(&place);
                (self.tokens[place] == launcher.name && is_outside).then_some(())?;
                let end = self.end_of_angles(place + 1)?;
                (self.tokens.get(end + 1) == Some(&"(")).then_some(())?;
                Some((launcher, split(&self.tokens[place + 2..end])))
            })
        });
        let Some((launcher, arguments)) = arguments else { return BTreeMap::new() };
        launcher.parameters.iter().copied().zip(arguments).collect()
    }

    /// Ranges of the arguments in the parentheses at `open`.
    fn ranges(&self, open: usize) -> Vec<(usize, usize)> {
        let Some(close) = closing(self.tokens, open) else { return Vec::new() };
        self.split_range(open + 1, close)
    }

    fn split_range(&self, begin: usize, end: usize) -> Vec<(usize, usize)> {
        let mut at = begin;
        let parts = split(&self.tokens[begin..end]).into_iter();
        let range = |part: &[&str]| {
            let range = (at, at + part.len());
            at += part.len() + 1;
            range
        };
        parts.map(range).collect()
    }

    fn expression(&self, (begin, end): (usize, usize)) -> Expression {
        Expression::parse(&self.tokens[begin..end])
    }

    /// `dim3 grid(a, b), block(c);`, `dim3 grid = dim3(a, b)`, `dim3 grid{a, b}`.
    fn dim3(&mut self, mut at: usize) {
        loop {
            let Some(name) = self.tokens.get(at + 1).filter(|name| is_name(name)) else { return };
            let open = if self.tokens.get(at + 2) == Some(&"=") {
                at + 3 + usize::from(self.tokens.get(at + 3) == Some(&"dim3"))
            } else {
                at + 2
            };
            let parts: Vec<Expression> = match self.tokens.get(open) {
                Some(&("(" | "{")) => self.ranges(open).into_iter().map(|range| self.expression(range)).collect(),
                _ => return,
            };
            self.dimensions.entry((*name).to_owned()).or_default().push((at, parts));
            match closing(self.tokens, open) {
                Some(close) if self.tokens.get(close + 1) == Some(&",") => at = close + 1,
                _ => return,
            }
        }
    }

    fn assignment(&mut self, at: usize, is_global: bool) {
        let is_operator =
            |token: &&str| matches!(*token, "=" | "<" | ">" | "!" | "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^");
        if at == 0 || is_operator(&self.tokens[at - 1]) || self.tokens.get(at + 1) == Some(&"=") {
            return;
        }
        let end = self.tokens[at..].iter().position(|token| matches!(*token, ";" | "}"));
        let end = end.map_or(self.tokens.len(), |end| at + end);
        let first = self.split_range(at + 1, end.max(at + 1)).first().copied();
        let Some((begin, end)) = first else { return };
        if self.tokens[at - 1] == "]" {
            // `void *args[] = {&a, &n}`.
            if self.tokens[..at].ends_with(&["[", "]"]) && self.tokens.get(begin) == Some(&"{") && at >= 3 {
                self.pointers.insert(self.tokens[at - 3].to_owned(), self.ranges(begin));
            }
            return;
        }
        if !is_name(self.tokens[at - 1]) {
            return;
        }
        let name = match self.tokens[..at - 1] {
            [.., object, "."] => format!("{object}.{}", self.tokens[at - 1]),
            _ => self.tokens[at - 1].to_owned(),
        };
        if self.tokens.get(begin) == Some(&"dim3") && self.tokens.get(begin + 1) == Some(&"(") {
            let parts = self.ranges(begin + 1).into_iter().map(|range| self.expression(range)).collect();
            self.dimensions.entry(name).or_default().push((at, parts));
            return;
        }
        if is_global {
            self.global.insert(name.clone());
        }
        let value = self.expression((begin, end));
        self.values.entry(name).or_default().push((at, value));
    }

    fn allocation(&mut self, at: usize) {
        if self.tokens.get(at + 1) != Some(&"(") {
            return;
        }
        let ranges = self.ranges(at + 1);
        let [(begin, end), bytes, ..] = ranges[..] else { return };
        let Some(name) = self.tokens[begin..end].iter().rev().find(|token| is_name(token)) else { return };
        let bytes = self.expression(bytes);
        self.allocated.entry((*name).to_owned()).or_default().push((at, bytes));
    }

    /// Reads `kernel<T, 16><<<grid, block, shared>>>(arguments)`, whose `<<<` is at `at`.
    fn chevrons(&mut self, at: usize) {
        let Some(length) = self.tokens[at..].windows(3).position(|part| part == [">", ">", ">"]) else { return };
        let end = at + length;
        if self.tokens.get(end + 3) != Some(&"(") || at == 0 {
            return;
        }
        let mut name = at - 1;
        let mut template = None;
        if self.tokens[name] == ">" {
            let mut depth = 0_usize;
            let open = (0..at).rev().find(|place| {
                match self.tokens[*place] {
                    ">" => depth += 1,
                    "<" => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let Some(open) = open.filter(|open| *open > 0) else { return };
            template = Some((open + 1, name));
            name = open - 1;
        }
        if !is_name(self.tokens[name]) {
            return;
        }
        let call = Call {
            at,
            kernel: self.tokens[name].to_owned(),
            template,
            configuration: self.split_range(at + 3, end),
            arguments: self.ranges(end + 3),
        };
        self.calls.push(call);
    }

    /// Last name in a range, e.g. the kernel in `(void *)kernel`.
    fn last_name(&self, (begin, end): (usize, usize)) -> Option<&'a str> {
        self.tokens[begin..end].iter().rev().find(|token| is_name(token)).copied()
    }

    /// `cudaLaunchKernel(kernel, grid, block, arguments, shared, stream)`.
    fn launch_kernel(&mut self, at: usize) {
        if self.tokens.get(at + 1) != Some(&"(") {
            return;
        }
        let ranges = self.ranges(at + 1);
        let [kernel, grid, block, arguments, ref rest @ ..] = ranges[..] else { return };
        let Some(kernel) = self.last_name(kernel) else { return };
        let pointers = self.last_name(arguments).and_then(|name| self.pointers.get(name)).cloned().unwrap_or_default();
        // An argument is passed by its address: `&n`.
        let argument = |(begin, end): (usize, usize)| (begin + usize::from(self.tokens[begin] == "&"), end);
        let arguments = pointers.into_iter().filter(|(begin, end)| begin < end).map(argument).collect();
        let configuration = [grid, block].into_iter().chain(rest.first().copied()).collect();
        self.calls.push(Call { at, kernel: kernel.to_owned(), template: None, configuration, arguments });
    }

    /// `cudaLaunchKernelEx(&configuration, kernel, arguments…)`.
    fn launch_kernel_ex(&mut self, at: usize) {
        if self.tokens.get(at + 1) != Some(&"(") {
            return;
        }
        let ranges = self.ranges(at + 1);
        let [configuration, kernel, ref arguments @ ..] = ranges[..] else { return };
        let (Some(object), Some(kernel)) = (self.last_name(configuration), self.last_name(kernel)) else { return };
        for (member, name) in [("gridDim", "grid"), ("blockDim", "block")] {
            let member = format!("{object}.{member}");
            let value =
                self.values.get(&member).and_then(|values| values.last().cloned()).map(|(at, value)| (at, vec![value]));
            let value = value.or_else(|| self.dimensions.get(&member)?.last().cloned());
            self.dimensions.entry(format!("{object} {name}")).or_default().extend(value);
        }
        let call = Call {
            at,
            kernel: kernel.to_owned(),
            template: None,
            configuration: vec![configuration],
            arguments: arguments.to_vec(),
        };
        self.calls.push(call);
    }

    fn constants(&self) -> BTreeMap<String, i128> {
        let mut constants = BTreeMap::new();
        for name in &self.global {
            constants.extend(self.constant(name, usize::MAX).map(|value| (name.clone(), value)));
        }
        constants
    }

    fn constant(&self, name: &str, at: usize) -> Option<i128> {
        let mut values = BTreeMap::new();
        let expanded = self.expanded(&Expression::Name(name.to_owned()), at, DEEPEST, &mut values);
        Launch { values, ..Launch::default() }.integer(&expanded)
    }

    /// Last known value of a variable before `at`, or else the first one after it.
    fn definition(&self, name: &str, at: usize) -> Option<&Expression> {
        let is_known = |value: &&(usize, Expression)| {
            let mut is_known = true;
            value.1.visit(&mut |part| {
                is_known &= match part {
                    Expression::Unknown | Expression::Element(..) | Expression::Choice(..) => false,
                    Expression::Call(function, _) => matches!(function.as_str(), "min" | "max" | "ceil_div"),
                    // Skip `n = n / 2`, as in a loop.
                    Expression::Name(other) => other != name,
                    _ => true,
                };
            });
            is_known
        };
        let all = self.values.get(name)?;
        all.iter()
            .rev()
            .filter(|(place, _)| *place < at)
            .find(is_known)
            .or_else(|| all.iter().find(is_known))
            .map(|(_, value)| value)
    }

    /// Replaces variables by their definitions, except those with an integer value, which are added to `values`.
    fn expanded(
        &self,
        expression: &Expression,
        at: usize,
        depth: usize,
        values: &mut BTreeMap<String, i128>,
    ) -> Expression {
        let found = std::cell::RefCell::new(std::mem::take(values));
        let result = expression.replaced(&|name| {
            let as_is = || Expression::Name(name.to_owned());
            if depth == 0 || found.borrow().contains_key(name) {
                return as_is();
            }
            if let Some((variable, axis)) = name.split_once('.')
                && let Some(axis) = ["x", "y", "z"].iter().position(|other| *other == axis)
                && let Some(parts) = self.dimension(variable, at)
            {
                let part = parts.get(axis).cloned().unwrap_or(Expression::Integer(1));
                return self.expanded(&part, at, depth - 1, &mut found.borrow_mut());
            }
            let chosen = self.chosen(name, at, depth, &found.borrow());
            let Some(value) = chosen.as_ref().or_else(|| self.definition(name, at)) else { return as_is() };
            let mut inner = found.borrow().clone();
            let value = self.expanded(value, at, depth - 1, &mut inner);
            let mut is_constant = true;
            value.visit(&mut |part| is_constant &= !matches!(part, Expression::Name(_) | Expression::Unknown));
            let whole = Launch::default().integer(&value);
            if let Some(whole) = whole.filter(|_| is_constant) {
                found.borrow_mut().insert(name.to_owned(), whole);
                return as_is();
            }
            found.borrow_mut().extend(inner);
            value
        });
        *values = found.into_inner();
        result
    }

    /// Value of a variable that was last defined as `a < b ? c : d`, if the condition is known.
    fn chosen(&self, name: &str, at: usize, depth: usize, known: &BTreeMap<String, i128>) -> Option<Expression> {
        let (end, Expression::Choice(..)) = self.values.get(name)?.iter().rfind(|(place, _)| *place < at)? else {
            return None;
        };
        let tokens = &self.tokens[end + 1..];
        let tokens = &tokens[..tokens.iter().position(|token| *token == ";")?];
        let question = tokens.iter().position(|token| *token == "?")?;
        let colon = question + tokens[question..].iter().position(|token| *token == ":")?;
        let condition = &tokens[..question];
        let condition = condition.strip_prefix(&["("]).and_then(|rest| rest.strip_suffix(&[")"])).unwrap_or(condition);
        let sign = condition.iter().position(|token| matches!(*token, "<" | ">" | "=" | "!"))?;
        let has_equal = condition.get(sign + 1) == Some(&"=");
        let value = |side: &[&str]| {
            let mut values = known.clone();
            let expanded = self.expanded(&Expression::parse(side), at, depth - 1, &mut values);
            Launch { values, ..Launch::default() }.integer(&expanded)
        };
        let (left, right) = (value(&condition[..sign])?, value(&condition[sign + 1 + usize::from(has_equal)..])?);
        let holds = match (condition[sign], has_equal) {
            ("<", false) => left < right,
            ("<", true) => left <= right,
            (">", false) => left > right,
            (">", true) => left >= right,
            ("=", true) => left == right,
            ("!", true) => left != right,
            _ => return None,
        };
        Some(Expression::parse(if holds { &tokens[question + 1..colon] } else { &tokens[colon + 1..] }))
    }

    fn dimension(&self, name: &str, at: usize) -> Option<&Vec<Expression>> {
        let all = self.dimensions.get(name)?;
        all.iter().rev().find(|(place, _)| *place < at).or_else(|| all.first()).map(|(_, parts)| parts)
    }

    /// Dimensions of a grid or a block.
    fn sides(&self, range: (usize, usize), at: usize) -> Vec<Expression> {
        let tokens = &self.tokens[range.0..range.1];
        match tokens {
            [name] if self.dimensions.contains_key(*name) => self.dimension(name, at).cloned().unwrap_or_default(),
            ["dim3", "(" | "{", ..] => {
                self.ranges(range.0 + 1).into_iter().map(|range| self.expression(range)).collect()
            }
            ["{", ..] => self.ranges(range.0).into_iter().map(|range| self.expression(range)).collect(),
            tokens => vec![Expression::parse(tokens)],
        }
    }

    fn launch(&self, call: &Call, constants: &BTreeMap<String, i128>) -> Option<Launch> {
        let instance = self.instance(call.at);
        let mut values = BTreeMap::new();
        for (name, argument) in &instance {
            values.extend(
                Launch::default().integer(&Expression::parse(argument)).map(|value| ((*name).to_owned(), value)),
            );
        }
        let of_instance = values.clone();
        let mut expand = |expression: &Expression| self.expanded(expression, call.at, DEEPEST, &mut values);
        let mut whole = |sides: Vec<Expression>| -> Vec<Expression> {
            let mut sides: Vec<Expression> = sides.iter().map(&mut expand).collect();
            while sides.len() > 1 && sides.last() == Some(&Expression::Integer(1)) {
                sides.pop();
            }
            sides
        };
        let (grid, block, shared) = match call.configuration[..] {
            [grid, block, ref rest @ ..] => (
                self.sides(grid, call.at),
                self.sides(block, call.at),
                rest.first().map(|shared| self.expression(*shared)),
            ),
            [configuration] => {
                let object = self.last_name(configuration)?;
                let sides =
                    |name: &str| self.dimension(&format!("{object} {name}"), call.at).cloned().unwrap_or_default();
                let shared = Expression::Name(format!("{object}.dynamicSmemBytes"));
                (
                    sides("grid"),
                    sides("block"),
                    self.values.contains_key(&format!("{object}.dynamicSmemBytes")).then_some(shared),
                )
            }
            [] => return None,
        };
        let (grid, block) = (whole(grid), whole(block));
        let shared = shared.map(|shared| expand(&shared));
        let mut arguments = Vec::new();
        for range in &call.arguments {
            let plain = self.expression(*range);
            let bytes = match &plain {
                Expression::Name(name) => self
                    .allocated
                    .get(name)
                    .and_then(|all| all.iter().rev().find(|(place, _)| *place < call.at).or_else(|| all.first())),
                _ => None,
            };
            let bytes = bytes.map(|(_, bytes)| expand(bytes));
            arguments.push(Argument { value: expand(&plain), bytes });
        }
        let template = call.template.map(|(begin, end)| {
            let parts = split(&self.tokens[begin..end]).into_iter().map(|part| {
                if let ["true" | "false"] = part {
                    return joined(part);
                }
                let mut known = of_instance.clone();
                let expanded = self.expanded(&Expression::parse(part), call.at, DEEPEST, &mut known);
                known.extend(constants.iter().map(|(name, value)| (name.clone(), *value)));
                let value = Launch { values: known, ..Launch::default() }.integer(&expanded);
                let named = match part {
                    [name] => instance.get(name).copied(),
                    _ => None,
                };
                value.map_or_else(|| joined(named.unwrap_or(part)), |value| value.to_string())
            });
            parts.collect::<Vec<_>>().join(", ")
        });
        Some(Launch { kernel: call.kernel.clone(), template, line: 0, grid, block, shared, arguments, values })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::*;
    use crate::source::without_directives;

    fn host(text: &str) -> HostCode {
        let (code, directives) = without_directives(text);
        HostCode::read(&tokens(&code), &directives.iter().map(String::as_str).collect::<Vec<_>>(), text)
    }

    fn only(text: &str) -> Launch {
        let found = host(text).launches;
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }

    fn texts(expressions: &[Expression]) -> Vec<String> {
        expressions.iter().map(|expression| expression.text().unwrap_or_else(|| "?".to_owned())).collect()
    }

    #[test]
    fn a_launch_is_read_down_to_variables_with_values() {
        let launch = only(
            "#define BLOCK 256\n__global__ void saxpy(int n, float a, float *x) { int n2 = 3; }\n\
             int main(int argc, char **argv) {\n  int n = 1 << 20;\n  if (argc > 1) n = atoi(argv[1]);\n\
             size_t bytes = n * sizeof(float);\n float *d_x; cudaMalloc((void **)&d_x, bytes);\n\
             const int blocks = (n + BLOCK - 1) / BLOCK;\n  float a = 2.5f;\n\
             saxpy<<<blocks, BLOCK>>>(n, a, d_x);\n}",
        );
        assert_eq!((launch.kernel.as_str(), launch.line), ("saxpy", 10));
        assert_eq!(texts(&launch.grid), ["ceil_div(n, BLOCK)"]);
        assert_eq!(launch.integer(&launch.block[0]), Some(256));
        assert_eq!(launch.integer(&launch.grid[0]), Some(4096));
        assert_eq!(launch.values.get("n"), Some(&(1 << 20)));
        assert_eq!(launch.arguments[0].value, Expression::Name("n".into()));
        assert_eq!(launch.arguments[1].value, Expression::Float(2.5));
        assert_eq!(launch.arguments[2].bytes.as_ref().and_then(Expression::text).as_deref(), Some("n * 4"));
    }

    #[test]
    fn dimensions_templates_and_shared_memory_are_read() {
        let launch = only(
            "constexpr int TILE = 16;\nvoid run(float *out, const float *in, int w, int h) {\n\
             dim3 threads(TILE, TILE), grid((w + threads.x - 1) / threads.x, (h + TILE - 1) / TILE, 1);\n\
             blur<float, TILE><<<grid, threads, TILE * TILE * sizeof(float), stream>>>(out, in, w, h);\n}",
        );
        assert_eq!(launch.template.as_deref(), Some("float, 16"));
        assert_eq!(texts(&launch.grid), ["ceil_div(w, TILE)", "ceil_div(h, TILE)"]);
        assert_eq!(launch.block.iter().map(|side| launch.integer(side)).collect::<Vec<_>>(), [Some(16), Some(16)]);
        assert_eq!(launch.shared.as_ref().and_then(|shared| launch.integer(shared)), Some(1024));
        assert_eq!(launch.values.get("w"), None);
    }

    #[test]
    fn template_arguments_of_a_launcher_are_those_of_its_first_call() {
        let launch = only(
            "template <typename T, const int DIM, int STAGES = 2> void run(T *x) { constexpr int TILE = (DIM >= 64) ? DIM / 4 : 8;\n\
             dim3 block(TILE * 2); k<T, TILE, DIM * STAGES, true><<<DIM, block>>>(x); }\n\
             void all(float *x) { if (wide) run<float, 64, 3>(x); else run<float, 32, 2>(x); }",
        );
        assert_eq!(launch.template.as_deref(), Some("float, 16, 192, true"));
        assert_eq!((launch.integer(&launch.grid[0]), launch.integer(&launch.block[0])), (Some(64), Some(32)));
    }

    #[test]
    fn launches_by_functions_of_the_runtime_are_read() {
        let launch = only(
            "int main() { int n = 100; float *d; void *args[] = {&d, &n};\n\
             cudaLaunchKernel((void *)k, dim3(4), dim3(32, 2), args, 64, 0); }",
        );
        assert_eq!(
            (launch.kernel.as_str(), texts(&launch.grid), texts(&launch.block)),
            ("k", vec!["4".into()], vec!["32".into(), "2".into()])
        );
        assert_eq!(launch.arguments[1].value, Expression::Name("n".into()));
        assert_eq!(launch.shared, Some(Expression::Integer(64)));
        let launch = only(
            "int main() { cudaLaunchConfig_t config = {0}; config.gridDim = dim3(8, 2); config.blockDim = 128;\n\
             config.dynamicSmemBytes = 4 * 32; cudaLaunchKernelEx(&config, k, d, 7); }",
        );
        assert_eq!((texts(&launch.grid), texts(&launch.block)), (vec!["8".into(), "2".into()], vec!["128".into()]));
        assert_eq!(launch.shared.as_ref().and_then(|shared| launch.integer(shared)), Some(128));
        assert_eq!(launch.arguments.len(), 2);
    }

    #[test]
    fn constants_are_those_outside_of_functions() {
        let host = host(
            "#define A 4\n#define B (A * 2)\n#define F(x) x\nstatic const int C = B + 1; __constant__ float t[C];\n\
             __global__ void k() { const int no = 5; } int main() { int also_no = 6; }",
        );
        let constants: Vec<(&str, i128)> = host.constants.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(constants, [("A", 4), ("B", 8), ("C", 9)]);
    }

    #[test]
    fn what_is_cut_off_or_refers_to_itself_ends() {
        for part in [
            "k<<<",
            "dim3 a(",
            "a = b; b = a; k<<<a, b>>>(a);",
            "x = {",
            "cudaMalloc(",
            "#define A A\nk<<<A, A>>>();\n",
        ] {
            drop(host(&part.repeat(500)));
        }
    }
}
