//! Constraints, and their compilation into a decision diagram.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::diagram::{Builder, Diagram, END};
use super::expression::Expression;
use super::node::{Bounds, Node, truth};
use super::parameter::{Parameter, Value};

/// Maximum number of partial points and nodes held during compilation; they take a few gigabytes at most.
const MOST_STATES: usize = 8_000_000;

/// Predicate on the values of a rule's parameters.
type Test = dyn Fn(&[Value]) -> bool + Send + Sync;

/// A condition that all valid points satisfy.
#[derive(Clone)]
pub enum Constraint {
    /// An expression. It is evaluated as soon as parameters are known, which prunes partial points.
    Expression(Expression),
    /// A function, called once all its parameters are known.
    Rule {
        /// Indices of the parameters.
        parameters: Vec<usize>,
        /// Predicate on the values of these parameters, in the same order.
        test: Arc<Test>,
    },
}

impl fmt::Debug for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(expression) => f.debug_tuple("Expression").field(expression).finish(),
            Self::Rule { parameters, .. } => {
                f.debug_struct("Rule").field("parameters", parameters).finish_non_exhaustive()
            }
        }
    }
}

impl Constraint {
    fn parameters(&self) -> Vec<usize> {
        match self {
            Self::Expression(expression) => expression.parameters(),
            Self::Rule { parameters, .. } => parameters.clone(),
        }
    }
}

/// Builds the diagram of all points that satisfy the constraints.
pub(super) fn compile(parameters: &[Parameter], constraints: &[Constraint]) -> Result<Diagram, SpaceError> {
    let order = order(parameters.len(), constraints);
    let mut level_of = vec![0; parameters.len()];
    for (level, &place) in order.iter().enumerate() {
        level_of[place] = level;
    }
    let mut expressions = Vec::new();
    let mut rules = Vec::new();
    for constraint in constraints {
        match constraint {
            Constraint::Expression(expression) => expressions.push(expression.clone()),
            Constraint::Rule { parameters, test } => {
                let levels: Vec<usize> = parameters.iter().map(|&place| level_of[place]).collect();
                rules.push(Rule { last: levels.iter().copied().max().unwrap_or(0), parameters, test: &**test });
            }
        }
    }
    // A rule needs its parameters' values until the last of them is known.
    let frontiers = (0..order.len())
        .map(|level| {
            let mut open: Vec<usize> = rules
                .iter()
                .filter(|rule| rule.last >= level)
                .flat_map(|rule| rule.parameters.iter().copied())
                .filter(|&place| level_of[place] < level)
                .collect();
            open.sort_unstable();
            open.dedup();
            open
        })
        .collect();
    let mut compiler = Compiler {
        parameters,
        order: &order,
        rules: &rules,
        frontiers,
        bounds: parameters.iter().map(|parameter| Bounds::of_values(&parameter.values)).collect(),
        builder: Builder::new(),
        states: HashMap::new(),
        point: vec![0; parameters.len()],
    };
    let nothing = vec![None; parameters.len()];
    let rest = rest(expressions.iter().map(|expression| expression.fold(&nothing)), &compiler.bounds);
    let root = match rest {
        Some(rest) => compiler.node(0, &rest)?,
        None => None,
    };
    let root = root.ok_or(SpaceError::Empty)?;
    Ok(compiler.builder.finish(order, root))
}

struct Rule<'a> {
    parameters: &'a [usize],
    /// Level of the rule's last parameter.
    last: usize,
    test: &'a Test,
}

/// Everything that the completions of a partial point depend on.
#[derive(PartialEq, Eq, Hash)]
struct State {
    level: usize,
    rest: Vec<Expression>,
    frontier: Vec<u16>,
}

struct Compiler<'a> {
    parameters: &'a [Parameter],
    order: &'a [usize],
    rules: &'a [Rule<'a>],
    /// Parameters per level whose values are still needed by open rules.
    frontiers: Vec<Vec<usize>>,
    bounds: Vec<Bounds>,
    builder: Builder,
    states: HashMap<State, Option<u32>>,
    point: Vec<u16>,
}

impl Compiler<'_> {
    /// Node of a partial point with the undecided expressions; `None` if no completion is valid.
    fn node(&mut self, level: usize, expressions: &[Expression]) -> Result<Option<u32>, SpaceError> {
        let Some(&place) = self.order.get(level) else { return Ok(Some(END)) };
        let frontier = self.frontiers[level].iter().map(|&place| self.point[place]).collect();
        let state = State { level, rest: expressions.to_vec(), frontier };
        if let Some(&known) = self.states.get(&state) {
            return Ok(known);
        }
        if self.states.len() + self.builder.len() > MOST_STATES {
            return Err(SpaceError::TooComplex);
        }
        let mut choices = Vec::new();
        let parameters = self.parameters;
        let mut known = vec![None; parameters.len()];
        for (index, value) in parameters[place].values.iter().enumerate() {
            self.point[place] = index as u16;
            if !self.satisfies_rules(level) {
                continue;
            }
            known[place] = Some(value);
            let Some(rest) = rest(expressions.iter().map(|expression| expression.fold(&known)), &self.bounds) else {
                continue;
            };
            if let Some(child) = self.node(level + 1, &rest)? {
                choices.push((index as u16, child));
            }
        }
        let node = self.builder.node(&choices).map_err(|()| SpaceError::TooLarge)?;
        self.states.insert(state, node);
        Ok(node)
    }

    fn satisfies_rules(&self, level: usize) -> bool {
        self.rules.iter().filter(|rule| rule.last == level).all(|rule| {
            let values: Vec<Value> = rule
                .parameters
                .iter()
                .map(|&place| self.parameters[place].values[usize::from(self.point[place])].clone())
                .collect();
            (rule.test)(&values)
        })
    }
}

/// Expressions that are still undecided; `None` if one cannot become true.
fn rest(folded: impl Iterator<Item = Expression>, bounds: &[Bounds]) -> Option<Vec<Expression>> {
    let mut rest = Vec::new();
    for expression in folded {
        match &expression.0 {
            Node::Value(value) if truth(value) => {}
            Node::Value(_) | Node::Undefined => return None,
            _ => match expression.decided(bounds) {
                Some(true) => {}
                Some(false) => return None,
                None => rest.push(expression),
            },
        }
    }
    Some(rest)
}

/// Chooses the order of parameters. Parameters of the same constraint are adjacent, so that it is decided early and
/// little state is kept. Unconstrained parameters come last, where each level has a single node.
fn order(parameters: usize, constraints: &[Constraint]) -> Vec<usize> {
    let mut open: Vec<Vec<usize>> = constraints.iter().map(Constraint::parameters).collect();
    let mut order: Vec<usize> = Vec::new();
    while let Some(next) = (0..open.len()).min_by_key(|&place| {
        let new = open[place].iter().filter(|parameter| !order.contains(parameter)).count();
        // On ties, prefer the constraint with more known parameters, since it prunes more points.
        (new, usize::MAX - open[place].len())
    }) {
        for parameter in open.swap_remove(next) {
            if !order.contains(&parameter) {
                order.push(parameter);
            }
        }
    }
    order.extend((0..parameters).filter(|parameter| !order.contains(parameter)).collect::<Vec<_>>());
    order
}

/// Why a space cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// No combination satisfies all constraints.
    #[error("no combination of the values satisfies all constraints")]
    Empty,
    /// The number of valid points exceeds 64 bits.
    #[error("the space has more than 2^64 valid points; give it fewer parameters or values")]
    TooLarge,
    /// The constraints relate too many parameters with each other.
    #[error("the constraints are too complex to compile; state them with fewer parameters each")]
    TooComplex,
}
