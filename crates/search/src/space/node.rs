//! Syntax tree of expressions, with folding and interval bounds.

use super::parameter::Value;

/// Interval of possible values of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub least: f64,
    pub most: f64,
}

impl Bounds {
    const UNKNOWN: Self = Self { least: f64::NEG_INFINITY, most: f64::INFINITY };
    const SWITCH: Self = Self { least: 0.0, most: 1.0 };

    fn exactly(value: f64) -> Self {
        Self { least: value, most: value }
    }

    /// Bounds of a list of values; infinite if one of them is not a number.
    pub fn of_values(values: &[Value]) -> Self {
        values
            .iter()
            .map(Value::number)
            .try_fold(None, |bounds: Option<Self>, number| {
                let number = number?;
                Some(Some(bounds.map_or(Self::exactly(number), |bounds| bounds.include(number))))
            })
            .flatten()
            .unwrap_or(Self::UNKNOWN)
    }

    fn include(self, number: f64) -> Self {
        Self { least: self.least.min(number), most: self.most.max(number) }
    }

    fn combine(self, other: Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let corners = [
            combine(self.least, other.least),
            combine(self.least, other.most),
            combine(self.most, other.least),
            combine(self.most, other.most),
        ];
        if corners.iter().any(|corner| corner.is_nan()) {
            return Self::UNKNOWN;
        }
        corners[1..].iter().fold(Self::exactly(corners[0]), |bounds, &corner| bounds.include(corner))
    }

    /// Whether both intervals are the same single number.
    fn is_exactly(self, other: Self) -> bool {
        self.least >= self.most && self == other
    }

    /// Whether the intervals are disjoint.
    fn excludes(self, other: Self) -> bool {
        self.most < other.least || self.least > other.most
    }

    fn switch(value: Option<bool>) -> Self {
        value.map_or(Self::SWITCH, |value| Self::exactly(f64::from(u8::from(value))))
    }

    /// Truth value of all numbers within the bounds, if it is the same.
    pub fn truth(self) -> Option<bool> {
        if self.least == 0.0 && self.most == 0.0 {
            Some(false)
        } else if self.least > 0.0 || self.most < 0.0 {
            Some(true)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Compare {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Divide {
    Exact,
    Floor,
    Rest,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Choose {
    Least,
    Most,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Value(Value),
    Name(usize),
    Sum(Vec<Node>),
    Product(Vec<Node>),
    Divide(Divide, Box<[Node; 2]>),
    Choose(Choose, Vec<Node>),
    Absolute(Box<Node>),
    Compare(Compare, Box<[Node; 2]>),
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    /// A condition, the value if it is true, and the value if it is false.
    If(Box<[Node; 3]>),
    /// An expression without a value, e.g. a division by zero. A constraint that needs it is false.
    Undefined,
}

impl Node {
    pub fn visit(&self, see: &mut impl FnMut(&Self)) {
        see(self);
        match self {
            Self::Value(_) | Self::Name(_) | Self::Undefined => {}
            Self::Sum(nodes) | Self::Product(nodes) | Self::Choose(_, nodes) | Self::All(nodes) | Self::Any(nodes) => {
                for node in nodes {
                    node.visit(see);
                }
            }
            Self::Divide(_, nodes) | Self::Compare(_, nodes) => {
                for node in nodes.iter() {
                    node.visit(see);
                }
            }
            Self::If(nodes) => {
                for node in nodes.iter() {
                    node.visit(see);
                }
            }
            Self::Absolute(node) | Self::Not(node) => node.visit(see),
        }
    }

    pub fn fold(&self, known: &[Option<&Value>]) -> Self {
        let all = |nodes: &[Self]| nodes.iter().map(|node| node.fold(known)).collect::<Vec<_>>();
        match self {
            Self::Value(_) | Self::Undefined => self.clone(),
            Self::Name(place) => known[*place].map_or_else(|| self.clone(), |value| Self::Value(value.clone())),
            Self::Sum(nodes) => gather(all(nodes), &Value::Int(0), add, Self::Sum),
            Self::Product(nodes) => gather(all(nodes), &Value::Int(1), multiply, Self::Product),
            Self::Divide(how, nodes) => {
                let [a, b] = nodes.each_ref().map(|node| node.fold(known));
                match (&a, &b) {
                    (Self::Undefined, _) | (_, Self::Undefined) => Self::Undefined,
                    (Self::Value(a), Self::Value(b)) => divide(*how, a, b).map_or(Self::Undefined, Self::Value),
                    _ => Self::Divide(*how, Box::new([a, b])),
                }
            }
            Self::Choose(how, nodes) => {
                let nodes = all(nodes);
                if nodes.contains(&Self::Undefined) {
                    return Self::Undefined;
                }
                match nodes.iter().map(Self::known).collect::<Option<Vec<_>>>() {
                    Some(values) => choose(*how, &values).map_or(Self::Undefined, Self::Value),
                    None => Self::Choose(*how, nodes),
                }
            }
            Self::Absolute(node) => match node.fold(known) {
                Self::Value(Value::Int(value)) => Self::Value(Value::Int(value.saturating_abs())),
                Self::Value(value) => value.number().map_or(Self::Undefined, |n| Self::Value(Value::Real(n.abs()))),
                Self::Undefined => Self::Undefined,
                node => Self::Absolute(Box::new(node)),
            },
            Self::Compare(how, nodes) => {
                let [a, b] = nodes.each_ref().map(|node| node.fold(known));
                match (&a, &b) {
                    (Self::Undefined, _) | (_, Self::Undefined) => Self::Undefined,
                    (Self::Value(a), Self::Value(b)) => {
                        compare(*how, a, b).map_or(Self::Undefined, |holds| Self::Value(Value::Bool(holds)))
                    }
                    _ => Self::Compare(*how, Box::new([a, b])),
                }
            }
            Self::All(nodes) => junction(nodes.iter().map(|node| node.fold(known)), true, Self::All),
            Self::Any(nodes) => junction(nodes.iter().map(|node| node.fold(known)), false, Self::Any),
            Self::Not(node) => match node.fold(known) {
                Self::Value(value) => Self::Value(Value::Bool(!truth(&value))),
                Self::Undefined => Self::Undefined,
                node => Self::Not(Box::new(node)),
            },
            Self::If(nodes) => match nodes[0].fold(known) {
                Self::Value(value) => nodes[if truth(&value) { 1 } else { 2 }].fold(known),
                Self::Undefined => Self::Undefined,
                condition => Self::If(Box::new([condition, nodes[1].fold(known), nodes[2].fold(known)])),
            },
        }
    }

    fn known(&self) -> Option<&Value> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }

    pub fn bounds(&self, domains: &[Bounds]) -> Bounds {
        match self {
            Self::Value(value) => value.number().map_or(Bounds::UNKNOWN, Bounds::exactly),
            Self::Undefined => Bounds::exactly(0.0),
            Self::Name(place) => domains[*place],
            Self::Sum(nodes) => nodes
                .iter()
                .map(|node| node.bounds(domains))
                .fold(Bounds::exactly(0.0), |sum, part| sum.combine(part, |a, b| a + b)),
            Self::Product(nodes) => nodes
                .iter()
                .map(|node| node.bounds(domains))
                .fold(Bounds::exactly(1.0), |product, part| product.combine(part, |a, b| a * b)),
            Self::Divide(how, nodes) => {
                let [a, b] = nodes.each_ref().map(|node| node.bounds(domains));
                match how {
                    Divide::Exact if b.least > 0.0 => a.combine(b, |a, b| a / b),
                    Divide::Floor if b.least > 0.0 => a.combine(b, |a, b| (a / b).floor()),
                    Divide::Rest if b.least > 0.0 => Bounds { least: 0.0, most: b.most },
                    _ => Bounds::UNKNOWN,
                }
            }
            Self::Choose(how, nodes) => nodes
                .iter()
                .map(|node| node.bounds(domains))
                .reduce(|a, b| match how {
                    Choose::Least => Bounds { least: a.least.min(b.least), most: a.most.min(b.most) },
                    Choose::Most => Bounds { least: a.least.max(b.least), most: a.most.max(b.most) },
                })
                .unwrap_or(Bounds::UNKNOWN),
            Self::Absolute(node) => {
                let inner = node.bounds(domains);
                let most = inner.least.abs().max(inner.most.abs());
                let least = if inner.least > 0.0 { inner.least } else { (-inner.most).max(0.0) };
                Bounds { least, most }
            }
            Self::Compare(how, nodes) => {
                let [a, b] = nodes.each_ref().map(|node| node.bounds(domains));
                // Words have no bounds, so nothing is decided about them here.
                Bounds::switch(match how {
                    Compare::Less => order(a.most < b.least, a.least >= b.most),
                    Compare::LessEqual => order(a.most <= b.least, a.least > b.most),
                    Compare::Greater => order(a.least > b.most, a.most <= b.least),
                    Compare::GreaterEqual => order(a.least >= b.most, a.most < b.least),
                    Compare::Equal => order(a.is_exactly(b), a.excludes(b)),
                    Compare::NotEqual => order(a.excludes(b), a.is_exactly(b)),
                })
            }
            Self::All(nodes) => {
                let parts: Vec<_> = nodes.iter().map(|node| node.bounds(domains).truth()).collect();
                Bounds::switch(order(parts.iter().all(|part| *part == Some(true)), parts.contains(&Some(false))))
            }
            Self::Any(nodes) => {
                let parts: Vec<_> = nodes.iter().map(|node| node.bounds(domains).truth()).collect();
                Bounds::switch(order(parts.contains(&Some(true)), parts.iter().all(|part| *part == Some(false))))
            }
            Self::Not(node) => Bounds::switch(node.bounds(domains).truth().map(|holds| !holds)),
            Self::If(nodes) => {
                let [condition, then, other] = nodes.each_ref().map(|node| node.bounds(domains));
                match condition.truth() {
                    Some(true) => then,
                    Some(false) => other,
                    None => Bounds { least: then.least.min(other.least), most: then.most.max(other.most) },
                }
            }
        }
    }
}

fn order(holds: bool, fails: bool) -> Option<bool> {
    if holds {
        Some(true)
    } else if fails {
        Some(false)
    } else {
        None
    }
}

/// Folds the known operands of a sum or product into the first operand.
fn gather(
    nodes: Vec<Node>,
    neutral: &Value,
    join: impl Fn(&Value, &Value) -> Option<Value>,
    make: impl Fn(Vec<Node>) -> Node,
) -> Node {
    let mut whole = neutral.clone();
    let mut rest = Vec::new();
    for node in nodes {
        match node {
            Node::Undefined => return Node::Undefined,
            Node::Value(value) => match join(&whole, &value) {
                Some(joined) => whole = joined,
                None => return Node::Undefined,
            },
            node => rest.push(node),
        }
    }
    if rest.is_empty() {
        return Node::Value(whole);
    }
    if whole != *neutral {
        rest.insert(0, Node::Value(whole));
    }
    if rest.len() == 1 { rest.remove(0) } else { make(rest) }
}

/// Folds `and` or `or`, whose neutral operand is true or false, respectively.
fn junction(nodes: impl Iterator<Item = Node>, neutral: bool, make: impl Fn(Vec<Node>) -> Node) -> Node {
    let mut rest = Vec::new();
    for node in nodes {
        match node {
            Node::Value(value) if truth(&value) == neutral => {}
            // As in Python, operands after the deciding one do not matter.
            Node::Value(value) if rest.is_empty() => return Node::Value(Value::Bool(truth(&value))),
            node => rest.push(node),
        }
    }
    match rest.len() {
        0 => Node::Value(Value::Bool(neutral)),
        1 => rest.remove(0),
        _ if rest.iter().any(|node| node.known().is_some_and(|value| truth(value) != neutral)) => {
            Node::Value(Value::Bool(!neutral))
        }
        _ => make(rest),
    }
}

pub(super) fn truth(value: &Value) -> bool {
    match value {
        Value::Text(text) => !text.is_empty(),
        value => value.number() != Some(0.0),
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(value) => Some(i64::from(*value)),
        Value::Int(value) => Some(*value),
        Value::Real(_) | Value::Text(_) => None,
    }
}

fn add(a: &Value, b: &Value) -> Option<Value> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.checked_add(b).map(Value::Int),
        _ => Some(Value::Real(a.number()? + b.number()?)),
    }
}

fn multiply(a: &Value, b: &Value) -> Option<Value> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.checked_mul(b).map(Value::Int),
        _ => Some(Value::Real(a.number()? * b.number()?)),
    }
}

fn divide(how: Divide, a: &Value, b: &Value) -> Option<Value> {
    let (x, y) = (a.number()?, b.number()?);
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        match how {
            Divide::Floor => {
                let whole = a.checked_div(b)?;
                return Some(Value::Int(if a % b != 0 && (a < 0) != (b < 0) { whole - 1 } else { whole }));
            }
            Divide::Rest => {
                let rest = a.checked_rem(b)?;
                return Some(Value::Int(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }));
            }
            Divide::Power if b >= 0 => return a.checked_pow(u32::try_from(b).ok()?).map(Value::Int),
            Divide::Exact | Divide::Power => {}
        }
    }
    let result = match how {
        Divide::Exact => x / y,
        Divide::Floor => (x / y).floor(),
        Divide::Rest => x - (x / y).floor() * y,
        Divide::Power => x.powf(y),
    };
    result.is_finite().then_some(Value::Real(result))
}

fn choose(how: Choose, values: &[&Value]) -> Option<Value> {
    let mut best = *values.first()?;
    for value in values {
        let (new, old) = (value.number()?, best.number()?);
        if (how == Choose::Least && new < old) || (how == Choose::Most && new > old) {
            best = value;
        }
    }
    Some(best.clone())
}

fn compare(how: Compare, a: &Value, b: &Value) -> Option<bool> {
    let ordering = match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => a.partial_cmp(&b)?,
            // A word never equals a number and cannot be ordered relative to one.
            _ => {
                return match how {
                    Compare::Equal => Some(false),
                    Compare::NotEqual => Some(true),
                    _ => None,
                };
            }
        },
    };
    Some(match how {
        Compare::Less => ordering.is_lt(),
        Compare::LessEqual => ordering.is_le(),
        Compare::Greater => ordering.is_gt(),
        Compare::GreaterEqual => ordering.is_ge(),
        Compare::Equal => ordering.is_eq(),
        Compare::NotEqual => ordering.is_ne(),
    })
}
