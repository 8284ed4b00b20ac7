//! How far a kernel reaches: which elements its threads access, and how many threads that takes.
//!
//! The body is read once from top to bottom, with an interval for every local variable. Conditions narrow intervals
//! where they hold, and loops widen those of the variables they change. So `if (x < columns && y < rows) out[y *
//! columns + x] = …` reaches `rows * columns` elements of `out` and needs `columns` by `rows` threads. Nothing is
//! expanded or looked up.

use std::collections::{BTreeMap, BTreeSet};

use crate::expression::{Expression, Interval, Operator};
use crate::source::{closing, is_name};

/// Stands for "no upper bound". Its products with sizes still fit in an `i128`.
const UNBOUNDED: i128 = 1 << 100;

/// Higher indices count as unknown.
const HIGHEST: i128 = 1 << 88;

/// Maximum nesting depth of statements; deeper ones are ignored.
const DEEPEST: usize = 64;

/// Values assumed while reading a body.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    /// By-value parameters, template arguments and constants of the file.
    pub values: BTreeMap<String, i128>,
    /// Pointers, with the bounds of their elements if these are integers.
    pub pointers: BTreeMap<String, Option<Interval>>,
    pub block: [i128; 3],
    /// `None` if the grid is to be determined.
    pub grid: [Option<i128>; 3],
}

/// Elements of an array that a kernel accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Highest known index plus one.
    pub known: i128,
    /// Whether there are accesses with an unknown index.
    pub is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reach {
    /// Extent of each pointer that is accessed.
    pub extents: BTreeMap<String, Extent>,
    /// Number of threads (blocks if `per_block`) that the grid needs in each dimension; `None` if no guard limits it.
    pub spans: [Option<i128>; 3],
    /// Dimensions in which a block works on one item, such as a row, instead of one item per thread.
    pub per_block: [bool; 3],
    /// Values that bound an index or a loop.
    pub limits: BTreeSet<String>,
    /// The subset of `limits` compared with an index that depends only on the thread, not on the block.
    pub inner_limits: BTreeSet<String>,
    /// Values that indices are multiplied or divided by.
    pub factors: BTreeSet<String>,
    /// Values that are divided without rounding up, and so must be multiples of the divisor.
    pub divided: BTreeSet<String>,
    /// Pointers whose elements are used as indices, with the pointers that they index.
    pub indices: BTreeMap<String, BTreeSet<String>>,
    /// Block size implied by constants in the body.
    pub threads: [Option<i128>; 3],
    /// Elements per block in a dimension in which threads loop over a tile.
    pub tile: [Option<i128>; 3],
    /// Element type of the dynamic shared array, as tokens, and its extent.
    pub shared: Option<(Vec<String>, Extent)>,
}

impl Reach {
    /// Reads the tokens between a kernel's braces.
    pub fn read(body: &[&str], setting: &Setting) -> Self {
        let mut walk = Walk::new(body, setting);
        walk.block(0, body.len());
        walk.finish()
    }
}

/// Known facts about a local variable.
#[derive(Debug, Clone, Default)]
struct Local {
    interval: Option<Interval>,
    /// Bits 0 to 2: dimensions of `blockIdx` that it depends on. Bits 3 to 5: dimensions of `threadIdx`.
    depends: u8,
    /// Pointers from whose elements it is computed.
    loaded: BTreeSet<String>,
    /// For a pointer into an array of the kernel: the array, the offset, and the number of array elements per pointer
    /// increment.
    pointer: Option<(String, Option<Interval>, i128)>,
    /// Number of the last assignment, to tell a narrowed value from a new one.
    version: usize,
    /// The dimension of `threadIdx` that it copies.
    thread: Option<usize>,
}

struct Walk<'t, 'a, 's> {
    body: &'t [&'a str],
    setting: &'s Setting,
    locals: BTreeMap<String, Local>,
    found: Reach,
    assigned: usize,
    depth: usize,
    dynamic: Option<String>,
    /// Extents of static shared arrays.
    arrays: BTreeMap<String, Vec<i128>>,
    /// Steps and ends of loops with constant bounds.
    strides: Vec<(i128, i128)>,
    /// Dimensions with an index computed from block and thread together.
    joint: [bool; 3],
}

impl<'t, 'a, 's> Walk<'t, 'a, 's> {
    fn new(body: &'t [&'a str], setting: &'s Setting) -> Self {
        let mut locals = BTreeMap::new();
        let mut add = |name: String, interval, depends, thread| {
            locals.insert(name, Local { interval: Some(interval), depends, thread, ..Local::default() });
        };
        for (axis, name) in ["x", "y", "z"].iter().enumerate() {
            let (threads, blocks) = (setting.block[axis].max(1), setting.grid[axis].unwrap_or(UNBOUNDED));
            add(format!("threadIdx.{name}"), (0, threads - 1), 8 << axis, Some(axis));
            add(format!("blockIdx.{name}"), (0, blocks - 1), 1 << axis, None);
            add(format!("blockDim.{name}"), (threads, threads), 0, None);
            add(format!("gridDim.{name}"), (blocks, blocks), 0, None);
        }
        add("warpSize".to_owned(), (32, 32), 0, None);
        for (name, value) in &setting.values {
            add(name.clone(), (*value, *value), 0, None);
        }
        for name in setting.pointers.keys() {
            let pointer = Some((name.clone(), Some((0, 0)), 1));
            locals.insert(name.clone(), Local { pointer, ..Local::default() });
        }
        Self {
            body,
            setting,
            locals,
            found: Reach::default(),
            assigned: 0,
            depth: 0,
            dynamic: None,
            arrays: BTreeMap::new(),
            strides: Vec::new(),
            joint: [false; 3],
        }
    }

    fn finish(mut self) -> Reach {
        if let Some(name) = &self.dynamic
            && let Some(extent) = self.found.extents.remove(name)
            && let Some((_, shared)) = &mut self.found.shared
        {
            *shared = extent;
        }
        for axis in 0..3 {
            self.found.per_block[axis] &= !self.joint[axis];
            // A tile over which fewer threads loop: 32 rows in steps of 8.
            let step = self.strides.iter().find(|(_, end)| Some(*end) == self.found.threads[axis]);
            if let (1, Some((step, end))) = (axis, step) {
                self.found.tile[axis] = Some(*end);
                self.found.threads[axis] = Some(*step);
            }
        }
        self.found
    }

    /// Reads the statements from `at` to `end`.
    fn block(&mut self, mut at: usize, end: usize) {
        while at < end {
            at = self.statement(at, end).max(at + 1);
        }
    }

    /// Reads the statement at `at`; returns the index after it.
    fn statement(&mut self, at: usize, end: usize) -> usize {
        self.depth += 1;
        let after = if self.depth > DEEPEST { end } else { self.read_statement(at, end) };
        self.depth -= 1;
        after
    }

    fn close(&self, open: usize, end: usize) -> usize {
        closing(&self.body[..end], open).unwrap_or(end)
    }

    fn read_statement(&mut self, at: usize, end: usize) -> usize {
        let body = self.body;
        let Some(token) = body.get(at).filter(|_| at < end) else { return end };
        // `if constexpr`. Directives such as `#pragma` were already removed.
        let open = if body.get(at + 1) == Some(&"constexpr") { at + 2 } else { at + 1 };
        let has_condition = body.get(open) == Some(&"(");
        match *token {
            ";" | "}" => at + 1,
            "{" => {
                let close = self.close(at, end);
                self.block(at + 1, close);
                close + 1
            }
            "if" | "while" | "switch" if has_condition => {
                let close = self.close(open, end);
                let condition = &body[(open + 1).min(close)..close];
                if *token == "while" {
                    let until = self.extent_of_statement(close + 1, end);
                    self.widen(&body[(close + 1).min(until)..until], condition);
                }
                let before = self.locals.clone();
                self.narrow(condition, false);
                self.scan(condition);
                let after = self.statement(close + 1, end);
                self.restore(&before);
                let leaves = |token: &&str| matches!(*token, "return" | "continue" | "break");
                let first = body[(close + 1).min(end)..end].iter().find(|token| **token != "{");
                if *token == "if" && first.is_some_and(leaves) {
                    self.narrow(condition, true);
                }
                if body.get(after) == Some(&"else") && after < end { self.statement(after + 1, end) } else { after }
            }
            "for" if has_condition => self.read_for(open, end),
            "do" | "else" => self.statement(at + 1, end),
            _ => {
                let end = self.end_of_expression(at, end);
                self.declare(&body[at..end]);
                end + 1
            }
        }
    }

    /// Index after the statement at `at`, without reading it.
    fn extent_of_statement(&self, at: usize, end: usize) -> usize {
        if self.body.get(at) == Some(&"{") { self.close(at, end) } else { self.end_of_expression(at, end) }
    }

    /// Index of the `;` that ends the statement at `at`.
    fn end_of_expression(&self, mut at: usize, end: usize) -> usize {
        while at < end && !matches!(self.body[at], ";" | "}") {
            at = if matches!(self.body[at], "(" | "[" | "{") { self.close(at, end) } else { at };
            at += 1;
        }
        at.min(end)
    }

    fn read_for(&mut self, open: usize, end: usize) -> usize {
        let body = self.body;
        let close = self.close(open, end);
        let head = &body[(open + 1).min(close)..close];
        let parts: Vec<&[&str]> = head.split(|token| *token == ";").collect();
        let [begin, condition, step] = parts[..] else { return self.statement(close + 1, end) };
        self.declare(begin);
        let until = self.extent_of_statement(close + 1, end);
        self.widen(step, condition);
        self.widen(&body[(close + 1).min(until)..until], condition);
        self.stride(condition, step);
        let before = self.locals.clone();
        self.narrow(condition, false);
        self.scan(condition);
        let after = self.statement(close + 1, end);
        self.restore(&before);
        after
    }

    /// Records a loop with constant bounds: `j < 32; j += 8`.
    fn stride(&mut self, condition: &[&str], step: &[&str]) {
        let [_, "<", bound @ ..] = condition else { return };
        let [_, "+", "=", by @ ..] = step else { return };
        let constant = |tokens: &[&str]| match self.interval(&Expression::parse(tokens)) {
            Some((low, high)) if low == high && !tokens.contains(&"blockDim") => Some(low),
            _ => None,
        };
        if let (Some(bound), Some(by)) = (constant(bound), constant(by))
            && by > 0
            && by < bound
        {
            self.strides.push((by, bound));
        }
    }

    /// Widens the intervals of variables that a loop increments or decrements.
    fn widen(&mut self, tokens: &[&str], condition: &[&str]) {
        for (at, token) in tokens.iter().enumerate() {
            let next = |count: usize| tokens.get(at + count).copied().unwrap_or("");
            let before = |count: usize| at.checked_sub(count).map_or("", |place| tokens[place]);
            if !is_name(token) || before(1) == "." {
                continue;
            }
            let grows = (next(1), next(2)) == ("+", "+")
                || (before(1), before(2)) == ("+", "+")
                || (matches!(next(1), "+" | "*") && next(2) == "=")
                || (next(1), next(2), next(3)) == ("<", "<", "=");
            let shrinks = (next(1), next(2)) == ("-", "-")
                || (before(1), before(2)) == ("-", "-")
                || (matches!(next(1), "-" | "/") && next(2) == "=")
                || (next(1), next(2), next(3)) == (">", ">", "=");
            let Some(local) = self.locals.get_mut(*token) else { continue };
            if grows || shrinks {
                self.assigned += 1;
                local.version = self.assigned;
            }
            if let Some((low, high)) = local.interval {
                // A decreasing variable in the loop's condition is assumed to stop at 0. The offset of an increasing
                // pointer becomes unknown.
                let end = if condition.contains(token) { low.min(0) } else { -UNBOUNDED };
                local.interval = Some((if shrinks { end } else { low }, if grows { UNBOUNDED } else { high }));
            }
            if grows && let Some((_, offset, _)) = &mut local.pointer {
                *offset = None;
            }
        }
    }

    /// Undoes narrowing by conditions, and joins assigned values with earlier ones.
    fn restore(&mut self, before: &BTreeMap<String, Local>) {
        for (name, old) in before {
            let Some(local) = self.locals.get_mut(name) else { continue };
            if local.version == old.version {
                *local = old.clone();
            } else {
                local.interval = match (local.interval, old.interval) {
                    (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
                    (one, other) => one.or(other),
                };
                local.depends |= old.depends;
            }
        }
    }

    /// Reads a declaration, an assignment or an expression.
    fn declare(&mut self, tokens: &[&str]) {
        // `i < n ? x[i] : 0`: read the branches as if the condition held.
        match tokens.iter().position(|token| *token == "?") {
            Some(question) => {
                let begin = begin_of_condition(&tokens[..question]);
                self.scan(&tokens[..begin]);
                let before = self.locals.clone();
                self.narrow(&tokens[begin..question], false);
                self.scan(&tokens[begin..]);
                self.restore(&before);
            }
            None => self.scan(tokens),
        }
        if tokens.starts_with(&["extern"]) && tokens.contains(&"__shared__") {
            let name =
                tokens.iter().position(|token| *token == "[").and_then(|at| at.checked_sub(1)).map(|at| tokens[at]);
            if let Some(name) = name {
                let noise = |token: &&&str| {
                    !matches!(
                        **token,
                        "extern" | "__shared__" | "volatile" | "[" | "]" | "(" | ")" | "__align__" | "alignas"
                    ) && **token != name
                        && is_name(token)
                };
                let words = tokens.iter().filter(noise).map(|token| (*token).to_owned()).collect();
                self.dynamic = Some(name.to_owned());
                self.found.shared = Some((words, Extent::default()));
                let pointer = Some((name.to_owned(), Some((0, 0)), 1));
                self.locals.insert(name.to_owned(), Local { pointer, ..Local::default() });
            }
            return;
        }
        for part in crate::source::split(tokens) {
            self.assign(part);
        }
    }

    fn assign(&mut self, tokens: &[&str]) {
        if tokens.contains(&"__shared__") || (tokens.len() > 3 && tokens.last() == Some(&"]") && !tokens.contains(&"="))
        {
            self.array(tokens);
            return;
        }
        let mut depth = 0_usize;
        let at = tokens.iter().enumerate().position(|(at, token)| {
            match *token {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let before = at.checked_sub(1).map_or("", |before| tokens[before]);
            depth == 0 && *token == "=" && tokens.get(at + 1) != Some(&"=") && !matches!(before, "=" | "!" | "<" | ">")
        });
        let Some(at) = at.filter(|at| *at > 0) else { return };
        let (target, compound) = match tokens[at - 1] {
            "+" => (&tokens[..at - 1], Some(Operator::Add)),
            "-" => (&tokens[..at - 1], Some(Operator::Subtract)),
            "*" | "/" | "%" | "&" | "|" | "^" => return,
            _ => (&tokens[..at], None),
        };
        let Some(name) = target.last().filter(|name| is_name(name)) else { return };
        if target.len() >= 2 && target[target.len() - 2] == "." {
            return;
        }
        let value = &tokens[at + 1..];
        let mut local = self.value(value);
        if let Some(operator) = compound
            && let Some(old) = self.locals.get(*name)
        {
            let step = local.interval;
            if let Some((array, offset, scale)) = &old.pointer {
                let moved = offset.zip(step).and_then(|((a, b), (c, d))| Some((a.checked_add(c)?, b.checked_add(d)?)));
                local.pointer = Some((array.clone(), moved, *scale));
            }
            let (a, b) = (Expression::Name((*name).to_owned()), Expression::parse(value));
            local.interval = self.interval(&Expression::Binary(operator, Box::new(a), Box::new(b)));
            local.depends |= old.depends;
            local.loaded.extend(old.loaded.iter().cloned());
        }
        self.assigned += 1;
        local.version = self.assigned;
        self.locals.insert((*name).to_owned(), local);
    }

    /// Records the dimensions of a static array.
    fn array(&mut self, tokens: &[&str]) {
        let Some(first) = tokens.iter().position(|token| *token == "[").filter(|at| *at > 0) else { return };
        let mut extents = Vec::new();
        let mut at = first;
        while tokens.get(at) == Some(&"[") {
            let Some(close) = closing(tokens, at) else { return };
            let Some((extent, _)) = self.interval(&Expression::parse(&tokens[at + 1..close])) else { return };
            extents.push(extent);
            at = close + 1;
        }
        if tokens.contains(&"__shared__") {
            self.arrays.insert(tokens[first - 1].to_owned(), extents);
        }
    }

    /// Facts about the value of an initializer.
    fn value(&mut self, tokens: &[&str]) -> Local {
        let address = tokens.first() == Some(&"&");
        let parsed = Expression::parse(if address { &tokens[1..] } else { tokens });
        self.note(&parsed);
        let mut local = Local { interval: None, ..self.depends(&parsed) };
        let pointer = |name: &str| self.locals.get(name).and_then(|local| local.pointer.clone());
        let offset = match &parsed {
            Expression::Name(name) => pointer(name).map(|pointer| (pointer, Expression::Integer(0))),
            Expression::Element(name, index) if address => pointer(name).map(|pointer| (pointer, (**index).clone())),
            Expression::Binary(Operator::Add, one, other) => match &**one {
                Expression::Name(name) => pointer(name).map(|pointer| (pointer, (**other).clone())),
                _ => None,
            },
            _ => None,
        };
        if let Some(((array, base, scale), offset)) = offset {
            let moved = self.interval(&offset).zip(base);
            let moved = moved.and_then(|((a, b), (c, d))| {
                Some((a.checked_mul(scale)?.checked_add(c)?, b.checked_mul(scale)?.checked_add(d)?))
            });
            let cast = tokens.iter().position(|token| *token == "reinterpret_cast" || *token == "(");
            let scale = cast.map_or(scale, |at| scale * components(&tokens[at..]));
            local.pointer = Some((array, moved, scale));
        } else if !address {
            local.interval = self.interval(&parsed);
            local.thread = match &parsed {
                Expression::Name(name) => self.locals.get(name).and_then(|local| local.thread),
                _ => None,
            };
        }
        local
    }

    fn interval(&self, expression: &Expression) -> Option<Interval> {
        expression.interval(&|name| match name {
            Expression::Name(name) => self.locals.get(name)?.interval,
            Expression::Element(name, _) => {
                let (array, ..) = self.locals.get(name)?.pointer.as_ref()?;
                *self.setting.pointers.get(array)?
            }
            _ => None,
        })
    }

    /// Threads, blocks and loaded elements that the expression depends on.
    fn depends(&self, expression: &Expression) -> Local {
        let mut all = Local::default();
        expression.visit(&mut |part| match part {
            Expression::Name(name) => {
                if let Some(local) = self.locals.get(name) {
                    all.depends |= local.depends;
                    all.loaded.extend(local.loaded.iter().cloned());
                }
            }
            Expression::Element(name, _) => {
                if let Some(Local { pointer: Some((array, ..)), .. }) = self.locals.get(name) {
                    all.loaded.insert(array.clone());
                }
            }
            _ => {}
        });
        all
    }

    /// Records what the expression reveals about sizes and blocks.
    fn note(&mut self, expression: &Expression) {
        use Operator::{Add, Divide, Multiply, Remainder};
        let mut factors = Vec::new();
        let mut divided = Vec::new();
        let mut rounded = Vec::new();
        let mut tiles = Vec::new();
        let mut joint = Vec::new();
        let named = |expression: &Expression| match expression {
            Expression::Name(name) if self.setting.values.contains_key(name) => Some(name.clone()),
            _ => None,
        };
        expression.visit(&mut |part| {
            let Expression::Binary(operator, one, other) = part else { return };
            match operator {
                Multiply => factors.extend([one, other].into_iter().filter_map(|side| named(side))),
                Divide | Remainder => factors.extend(named(other)),
                _ => {}
            }
            if let Some((dividend, _)) = part.as_ceil_div() {
                rounded.extend(named(dividend));
            } else if *operator == Divide {
                divided.extend(named(one));
            }
            if *operator == Add {
                tiles.extend(self.tile(one, other).or_else(|| self.tile(other, one)));
                joint.extend(self.joint(one, other).or_else(|| self.joint(other, one)));
            }
        });
        self.found.factors.extend(factors);
        self.found.divided.extend(divided.into_iter().filter(|name| !rounded.contains(name)));
        for (axis, tile) in tiles {
            self.found.threads[axis] = Some(tile);
        }
        for axis in joint {
            self.joint[axis] = true;
        }
    }

    /// Axis of a sum such as `blockIdx.x * blockDim.x + threadIdx.x`, in which the block index is multiplied by a block
    /// size rather than a problem size.
    fn joint(&self, product: &Expression, thread: &Expression) -> Option<usize> {
        let Expression::Binary(Operator::Multiply, ..) = product else { return None };
        let (of_product, of_thread) = (self.depends(product).depends, self.depends(thread).depends);
        let axis = (0..3).find(|axis| of_product == 1 << axis && of_thread & (8 << axis) != 0)?;
        let mut has_size = false;
        product.visit(&mut |part| {
            if let Expression::Name(name) = part {
                let value = self.setting.values.get(name);
                has_size |= value.is_some_and(|value| *value > 1024);
            }
        });
        (!has_size).then_some(axis)
    }

    /// Axis and block size of `blockIdx.x * 32 + threadIdx.x`, where a constant replaces `blockDim.x`.
    fn tile(&self, product: &Expression, thread: &Expression) -> Option<(usize, i128)> {
        let Expression::Binary(Operator::Multiply, one, other) = product else { return None };
        let Expression::Name(thread) = thread else { return None };
        let axis = self.locals.get(thread)?.thread?;
        let is_block = |side: &Expression| {
            matches!(side, Expression::Name(name)
                if self.locals.get(name).is_some_and(|local| local.depends == 1 << axis && local.loaded.is_empty()))
        };
        let width = if is_block(one) { other } else { Some(one).filter(|_| is_block(other))? };
        let mut is_constant = true;
        width.visit(&mut |part| {
            if let Expression::Name(name) = part {
                is_constant &= self.setting.values.contains_key(name);
            }
        });
        let (low, high) = self.interval(width)?;
        (is_constant && low == high && (1..=1024).contains(&low)).then_some((axis, low))
    }

    /// Applies the bounds that a condition implies. `negated` is for the code after `if (condition) return;`.
    fn narrow(&mut self, condition: &[&str], negated: bool) {
        let mut depth = 0_usize;
        let (mut parts, mut begin, mut is_other) = (Vec::new(), 0, false);
        let (joins, splits) = if negated { ("|", "&") } else { ("&", "|") };
        for (at, token) in condition.iter().enumerate() {
            match *token {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                token if depth == 0 && condition.get(at + 1) == Some(&token) => {
                    if token == joins {
                        parts.push(&condition[begin..at]);
                        begin = at + 2;
                    }
                    is_other |= token == splits;
                }
                _ => {}
            }
        }
        parts.push(&condition[begin.min(condition.len())..]);
        // Neither side of `a || b` is certain to hold.
        if is_other {
            return;
        }
        for part in parts {
            let inner = part.strip_prefix(&["("]).and_then(|rest| rest.strip_suffix(&[")"]));
            match inner.filter(|_| closing(part, 0) == Some(part.len() - 1)) {
                Some(inner) => self.narrow(inner, negated),
                None => self.compare(part, negated),
            }
        }
    }

    fn compare(&mut self, part: &[&str], negated: bool) {
        let mut depth = 0_usize;
        let found = part.iter().enumerate().position(|(at, token)| {
            match *token {
                "(" | "[" => depth += 1,
                ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let next = part.get(at + 1).copied().unwrap_or("");
            let before = at.checked_sub(1).map_or("", |before| part[before]);
            let is_shift = next == *token || before == *token;
            depth == 0 && ((matches!(*token, "<" | ">") && !is_shift) || (matches!(*token, "=" | "!") && next == "="))
        });
        let Some(at) = found else { return };
        let has_equal = part.get(at + 1) == Some(&"=");
        let left = Expression::parse(&part[..at]);
        let right = Expression::parse(&part[at + 1 + usize::from(has_equal)..]);
        self.note(&left);
        self.note(&right);
        let is_inner = |side: &Self, expression: &Expression| {
            let depends = side.depends(expression).depends;
            depends != 0 && depends.trailing_zeros() >= 3
        };
        for (side, other) in [(&left, &right), (&right, &left)] {
            let inner = is_inner(self, other);
            side.visit(&mut |part| {
                if let Expression::Name(name) = part
                    && self.setting.values.contains_key(name)
                {
                    self.found.limits.insert(name.clone());
                    if inner {
                        self.found.inner_limits.insert(name.clone());
                    }
                }
            });
        }
        // The smaller side comes first; `strict` if equality is excluded.
        let (small, large, strict) = match (part[at], has_equal, negated) {
            ("<", equal, false) => (&left, &right, !equal),
            ("<", equal, true) => (&right, &left, equal),
            (">", equal, false) => (&right, &left, !equal),
            (">", equal, true) => (&left, &right, equal),
            ("=", true, false) | ("!", true, true) => {
                if let (Some((low, _)), Some((_, high))) = (self.interval(&right), self.interval(&right)) {
                    self.at_most(&left, high, false);
                    self.at_least(&left, low);
                }
                return;
            }
            _ => return,
        };
        let (low, high) = (self.interval(small).map(|(low, _)| low), self.interval(large).map(|(_, high)| high));
        if let Some(high) = high {
            self.at_most(small, high - i128::from(strict), true);
        }
        if let Some(low) = low {
            self.at_least(large, low + i128::from(strict));
        }
    }

    /// Applies the bound that an expression is at most `high`. `is_guard` means that the bound shows how many threads
    /// are intended.
    fn at_most(&mut self, expression: &Expression, high: i128, is_guard: bool) {
        let depends = self.depends(expression);
        let is_index = depends.loaded.is_empty() && is_guard && high < HIGHEST;
        let has_locals = match expression {
            Expression::Name(name) => {
                if let Some(local) = self.locals.get_mut(name)
                    && let Some((low, old)) = local.interval
                {
                    local.interval = Some((low, old.min(high.max(low))));
                }
                false
            }
            Expression::Binary(operator, one, other) => {
                let (first, second) = (self.interval(one), self.interval(other));
                match (operator, first, second) {
                    (Operator::Add, Some((a, _)), Some((c, _))) => {
                        self.at_most(one, high - c, is_guard);
                        self.at_most(other, high - a, is_guard);
                    }
                    (Operator::Subtract, _, Some((_, d))) if d < UNBOUNDED => self.at_most(one, high + d, is_guard),
                    (Operator::Multiply, _, Some((c, d))) if c == d && c > 0 => {
                        self.at_most(one, high.div_euclid(c), is_guard);
                    }
                    (Operator::Multiply, Some((a, b)), _) if a == b && a > 0 => {
                        self.at_most(other, high.div_euclid(a), is_guard);
                    }
                    _ => {}
                }
                // `blockIdx.x * blockDim.x + threadIdx.x` is an index that is not stored in a variable.
                let is_whole = depends.depends & 0b111 != 0 && depends.depends >> 3 != 0;
                let mut named = false;
                expression.visit(&mut |part| {
                    named |= matches!(part, Expression::Name(name) if !name.contains('.')
                        && self.locals.get(name).is_some_and(|local| local.depends != 0));
                });
                !is_whole || named
            }
            _ => true,
        };
        if is_index && !has_locals {
            for axis in 0..3 {
                if depends.depends & 0b111 == 1 << axis {
                    let span = self.found.spans[axis].unwrap_or(0).max(high + 1);
                    self.found.spans[axis] = Some(span);
                }
            }
        }
    }

    fn at_least(&mut self, expression: &Expression, low: i128) {
        match expression {
            Expression::Name(name) => {
                if let Some(local) = self.locals.get_mut(name)
                    && local.depends != 0
                    && let Some((old, high)) = local.interval
                {
                    local.interval = Some((old.max(low.min(high)), high));
                }
            }
            Expression::Binary(Operator::Subtract, one, other) => {
                if let Some((c, _)) = self.interval(other) {
                    self.at_least(one, low + c);
                }
            }
            _ => {}
        }
    }

    /// Records every access in these tokens.
    fn scan(&mut self, tokens: &[&str]) {
        for (at, token) in tokens.iter().enumerate() {
            let before = |count: usize| at.checked_sub(count).map_or("", |place| tokens[place]);
            if *token == "blockIdx" {
                self.note_block(tokens, at);
            }
            if !is_name(token) || before(1) == "." || (before(1), before(2)) == (":", ":") {
                continue;
            }
            let is_element = tokens.get(at + 1) == Some(&"[");
            let close = if is_element { closing(tokens, at + 1) } else { None };
            if let (Some(close), Some(extents)) = (close, self.arrays.get(*token).cloned()) {
                self.threads_of(tokens, (at + 1, close), &extents);
            }
            let Some(Local { pointer: Some((array, base, scale)), .. }) = self.locals.get(*token).cloned() else {
                continue;
            };
            if let Some(close) = close {
                let index = Expression::parse(&tokens[at + 2..close]);
                self.note(&index);
                let depends = self.depends(&index);
                for index in depends.loaded {
                    self.found.indices.entry(index).or_default().insert(array.clone());
                }
                self.factors_of(&index);
                let interval = self
                    .interval(&index)
                    .zip(base)
                    .and_then(|((_, high), (_, base))| base.checked_add(high.checked_add(1)?.checked_mul(scale)?));
                self.reach(&array, interval);
            } else if let Some(offset) = atomic_offset(tokens, at) {
                let interval = self
                    .interval(&offset)
                    .zip(base)
                    .and_then(|((_, high), (_, base))| base.checked_add(high.checked_add(1)?.checked_mul(scale)?));
                self.reach(&array, interval);
            } else if !is_initialiser(tokens, at) {
                self.reach(&array, None);
            }
        }
    }

    fn factors_of(&mut self, index: &Expression) {
        index.visit(&mut |part| {
            if let Expression::Name(name) = part
                && self.setting.values.contains_key(name)
            {
                self.found.factors.insert(name.clone());
            }
        });
    }

    fn reach(&mut self, array: &str, end: Option<i128>) {
        let extent = self.found.extents.entry(array.to_owned()).or_default();
        match end.filter(|end| *end < HIGHEST) {
            Some(end) => extent.known = extent.known.max(end),
            None => extent.is_open = true,
        }
    }

    /// Records a block index that is used without a thread index.
    fn note_block(&mut self, tokens: &[&str], at: usize) {
        let Some([".", axis]) = tokens.get(at + 1..at + 3) else { return };
        let Some(axis) = ["x", "y", "z"].iter().position(|name| name == axis) else { return };
        let before = at.checked_sub(1).map_or("", |before| tokens[before]);
        let after = tokens.get(at + 3).copied().unwrap_or("");
        let thread = tokens.windows(3).any(|part| part[0] == "threadIdx" && part[2] == tokens[at + 2]);
        let is_alone = !thread && !matches!(before, "*") && (after != "*" || !tokens.contains(&"blockDim"));
        let tid = tokens.iter().any(|token| self.locals.get(*token).is_some_and(|local| local.thread == Some(axis)));
        self.found.per_block[axis] |= is_alone && !tid;
    }

    /// Derives the block size from a shared array with one element per thread.
    fn threads_of(&mut self, tokens: &[&str], (open, close): (usize, usize), extents: &[i128]) {
        let thread = |tokens: &[&str]| match Expression::parse(tokens) {
            Expression::Name(name) => self.locals.get(&name).and_then(|local| local.thread),
            _ => None,
        };
        match extents {
            [only] if thread(&tokens[open + 1..close]) == Some(0) && (1..=1024).contains(only) => {
                self.found.threads[0].get_or_insert(*only);
            }
            [rows, columns] if tokens.get(close + 1) == Some(&"[") => {
                let Some(end) = closing(tokens, close + 1) else { return };
                let order = (thread(&tokens[open + 1..close]), thread(&tokens[close + 2..end]));
                // An extra column avoids bank conflicts.
                let columns = if *columns == rows + 1 { *rows } else { *columns };
                if order == (Some(1), Some(0)) && rows * columns <= 1024 {
                    self.found.threads[0].get_or_insert(columns);
                    self.found.threads[1].get_or_insert(*rows);
                }
            }
            _ => {}
        }
    }
}

/// Start of the condition before a `?`: after an assignment, a comma or an open bracket.
fn begin_of_condition(before: &[&str]) -> usize {
    let mut depth = 0_usize;
    for at in (0..before.len()).rev() {
        let is_comparison =
            matches!(before[at.saturating_sub(1)], "=" | "<" | ">" | "!") || before.get(at + 1) == Some(&"=");
        match before[at] {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" | "," if depth == 0 => return at + 1,
            "(" | "[" | "{" => depth -= 1,
            "=" if depth == 0 && !is_comparison => return at + 1,
            _ => {}
        }
    }
    0
}

/// Offset from the pointer at `at`, if it is dereferenced by `*` or is the first argument of an atomic function or
/// `__ldg`.
fn atomic_offset(tokens: &[&str], at: usize) -> Option<Expression> {
    let before = |count: usize| at.checked_sub(count).map_or("", |place| tokens[place]);
    let is_argument = before(1) == "(" && (before(2).starts_with("atomic") || before(2) == "*" || before(2) == "__ldg");
    if before(1) == "*" && at > 1 && matches!(before(2), ";" | "{" | "=" | "+" | "(" | ",") {
        return Some(Expression::Integer(0));
    }
    if !is_argument {
        return None;
    }
    let close = closing(tokens, at - 1)?;
    let argument = crate::source::split(&tokens[at..close]).into_iter().next()?;
    match argument {
        [_] => Some(Expression::Integer(0)),
        [_, "+", offset @ ..] => Some(Expression::parse(offset)),
        _ => None,
    }
}

/// Whether the pointer at `at` is only used to initialize another pointer: `const float *row = x + i * n`.
fn is_initialiser(tokens: &[&str], at: usize) -> bool {
    let begin = tokens[..at].iter().rposition(|token| *token == "=");
    begin.is_some_and(|begin| {
        tokens[..begin].contains(&"*")
            || tokens[..begin].contains(&"auto")
            || (begin > 0 && tokens[begin - 1] == "+" && tokens.len() == at + 1)
    }) || (tokens.get(at + 1..at + 3) == Some(&["+", "="]))
}

/// Number of components of the vector type in a cast; 1 for other types.
fn components(tokens: &[&str]) -> i128 {
    let end = tokens.iter().position(|token| matches!(*token, ">" | ")")).unwrap_or(tokens.len());
    let name = tokens[..end].iter().find(|token| crate::source::is_vector_name(token));
    name.and_then(|name| name.chars().next_back()?.to_digit(10)).map_or(1, i128::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    const ROWS: i128 = 1009;
    const COLUMNS: i128 = 2003;

    /// Reads a body for a matrix of `rows` by `columns` and a block of 32 by 8 threads.
    fn read(body: &str, grid: [Option<i128>; 3]) -> Reach {
        let values = [("rows", ROWS), ("columns", COLUMNS), ("TILE", 32)];
        let setting = Setting {
            values: values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            pointers: ["x", "y", "z"].iter().map(|name| ((*name).to_owned(), Some((0, 255)))).collect(),
            block: [32, 8, 1],
            grid,
        };
        Reach::read(&tokens(body), &setting)
    }

    #[track_caller]
    fn extents(body: &str, expected: &[(&str, i128)]) {
        let found = read(body, [Some(100), Some(200), Some(1)]);
        for (name, known) in expected {
            assert_eq!(found.extents.get(*name), Some(&Extent { known: *known, is_open: false }), "{name} in {body}");
        }
    }

    const INDEX: &str =
        "int i = blockIdx.x * blockDim.x + threadIdx.x; int j = blockIdx.y * blockDim.y + threadIdx.y; ";

    #[test]
    fn a_guard_says_how_many_elements_are_indexed_and_how_many_threads_are_meant() {
        let body = format!("{INDEX} if (i < columns && j < rows) y[j * columns + i] = x[i * rows + j] + z[j];");
        extents(&body, &[("y", ROWS * COLUMNS), ("x", ROWS * COLUMNS), ("z", ROWS)]);
        assert_eq!(read(&body, [None; 3]).spans, [Some(COLUMNS), Some(ROWS), None]);
        let body = format!("{INDEX} if (i >= columns || rows <= j) return; y[j * columns + i] = 1;");
        extents(&body, &[("y", ROWS * COLUMNS)]);
        assert_eq!(read(&body, [None; 3]).spans, [Some(COLUMNS), Some(ROWS), None]);
        let body = "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += gridDim.x * blockDim.x) y[i] = x[i + 3];";
        extents(body, &[("y", ROWS), ("x", ROWS + 3)]);
        assert_eq!(read(body, [None; 3]).spans, [Some(ROWS), None, None]);
    }

    #[test]
    fn a_name_that_is_given_another_value_is_read_with_that_from_there_on() {
        let body = "int i = blockIdx.x * TILE + threadIdx.x; int j = blockIdx.y * TILE + threadIdx.y;\
                    if (i < columns && j < rows) z[0] = x[j * columns + i];\
                    i = blockIdx.y * TILE + threadIdx.x; j = blockIdx.x * TILE + threadIdx.y;\
                    if (i < rows && j < columns) y[j * rows + i] = 1;";
        extents(body, &[("x", ROWS * COLUMNS), ("y", ROWS * COLUMNS), ("z", 1)]);
        assert_eq!(read(body, [None; 3]).threads, [Some(32), Some(32), None]);
    }

    #[test]
    fn what_a_condition_limits_ends_with_it() {
        extents(&format!("{INDEX} if (i < 4) {{ z[i] = 0; }} y[i] = 1;"), &[("z", 4), ("y", 3200)]);
        extents(&format!("{INDEX} y[i] = i < columns ? x[i] : 0;"), &[("x", COLUMNS), ("y", 3200)]);
        extents(
            "for (int k = threadIdx.x; k < columns; k += blockDim.x) y[blockIdx.x * columns + k] = 0;",
            &[("y", 100 * COLUMNS)],
        );
    }

    #[test]
    fn pointers_into_arrays_are_followed_and_others_leave_the_extent_open() {
        extents("const float *row = x + blockIdx.y * columns; y[0] = row[threadIdx.x];", &[("x", 199 * COLUMNS + 32)]);
        extents(
            &format!("{INDEX} float4 *v = reinterpret_cast<float4 *>(y); if (i < rows / 4) v[i] = z[2];"),
            &[("y", ROWS / 4 * 4), ("z", 3)],
        );
        extents("atomicAdd(&y[x[threadIdx.x]], 1); atomicAdd(z, 1);", &[("y", 256), ("x", 32), ("z", 1)]);
        let open = read("helper(x); y[unknown()] = 0;", [Some(1); 3]);
        assert!(open.extents["x"].is_open && open.extents["y"].is_open);
    }

    #[test]
    fn blocks_and_shared_memory_are_those_that_the_body_needs() {
        let tiled = "int i = blockIdx.x * TILE + threadIdx.x; int j = blockIdx.y * TILE + threadIdx.y;\
                     for (int k = 0; k < TILE; k += 8) y[(j + k) * columns + i] = 1;";
        let found = read(tiled, [Some(1); 3]);
        assert_eq!((found.threads, found.tile), ([Some(32), Some(8), None], [None, Some(32), None]));
        let square = "__shared__ float t[16][17]; t[threadIdx.y][threadIdx.x] = x[0];";
        assert_eq!(read(square, [Some(1); 3]).threads, [Some(16), Some(16), None]);
        let line = "__shared__ int t[128]; int tid = threadIdx.x; t[tid] = x[0];";
        assert_eq!(read(line, [Some(1); 3]).threads, [Some(128), None, None]);
        let dynamic = "extern __shared__ double t[]; t[threadIdx.x + 1] = x[0];";
        assert_eq!(
            read(dynamic, [Some(1); 3]).shared,
            Some((vec!["double".to_owned()], Extent { known: 33, is_open: false }))
        );
        let rows =
            "int row = blockIdx.x; for (int k = threadIdx.x; k < columns; k += blockDim.x) y[row * columns + k] = 0;";
        let found = read(rows, [None; 3]);
        assert_eq!((found.per_block[0], found.spans[0]), (true, None));
        let named = "int b = blockIdx.x, t = threadIdx.x; y[b * TILE + t] = 0; int c = b * blockDim.x * 2 + t;";
        assert!(!read(named, [None; 3]).per_block[0]);
        assert!(found.inner_limits.contains("columns") && found.factors.contains("columns"));
    }

    #[test]
    fn sizes_that_must_be_multiples_are_told_from_those_that_are_rounded_up() {
        let divided = |body: &str| read(body, [Some(1); 3]).divided.contains("columns");
        assert!(divided("for (int t = 0; t < columns / TILE; ++t) y[t] = 0;"));
        assert!(!divided("for (int t = 0; t < (columns + TILE - 1) / TILE; ++t) y[t] = 0;"));
    }

    #[test]
    fn a_body_that_is_cut_off_or_nested_without_end_ends() {
        for part in ["if (", "for (;;) ", "{", "y[", "a = b ? ", "do ", "else "] {
            drop(read(&part.repeat(5000), [None; 3]));
        }
    }
}
