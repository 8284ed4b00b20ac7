//! T1, the input of a search. Only the space is interpreted; the rest is passed through.

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::FormatError;
use crate::space::{Constraint, Expression, Parameter, Space, Value};

/// A tuning problem.
#[derive(Debug, Serialize, Deserialize)]
pub struct Problem {
    /// General description of the problem; not interpreted.
    #[serde(rename = "General", default, skip_serializing_if = "serde_json::Value::is_null")]
    pub general: serde_json::Value,
    /// Parameters and constraints.
    #[serde(rename = "ConfigurationSpace")]
    pub space: ConfigurationSpace,
    /// Description of the kernel; not interpreted.
    #[serde(rename = "KernelSpecification", default, skip_serializing_if = "serde_json::Value::is_null")]
    pub kernel: serde_json::Value,
}

/// Parameters and constraints of a problem.
#[derive(Debug, Serialize, Deserialize)]
pub struct ConfigurationSpace {
    /// Parameters, in order.
    #[serde(rename = "TuningParameters")]
    pub parameters: Vec<TuningParameter>,
    /// Constraints that valid configurations satisfy.
    #[serde(rename = "Conditions", default)]
    pub conditions: Vec<Condition>,
}

/// A parameter of the problem.
#[derive(Debug, Serialize, Deserialize)]
pub struct TuningParameter {
    /// Unique name of the parameter.
    #[serde(rename = "Name")]
    pub name: String,
    /// `int`, `uint`, `float`, `bool` or `string`.
    #[serde(rename = "Type")]
    pub kind: String,
    /// Possible values, as a Python list or a JSON array.
    #[serde(rename = "Values")]
    pub values: Values,
    /// Default value without tuning.
    #[serde(rename = "Default", default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// Possible values of a parameter.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// A list in Python syntax.
    Text(String),
    /// A JSON array.
    List(Vec<Value>),
}

/// A constraint of the problem.
#[derive(Debug, Serialize, Deserialize)]
pub struct Condition {
    /// Expression that is true for valid points.
    #[serde(rename = "Expression")]
    pub expression: String,
    /// Names of the parameters used in the expression.
    #[serde(rename = "Parameters", default)]
    pub parameters: Vec<String>,
}

impl Problem {
    /// Parses a T1 file.
    pub fn read(source: impl Read) -> Result<Self, FormatError> {
        Ok(serde_json::from_reader(source)?)
    }

    /// Creates a problem from parameters and constraint expressions.
    #[must_use]
    pub fn new(name: &str, parameters: &[Parameter], constraints: &[&str]) -> Self {
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let used = |text: &str| {
            Expression::parse(text, &names)
                .map(|expression| expression.parameters().into_iter().map(|place| names[place].to_owned()).collect())
                .unwrap_or_default()
        };
        Self {
            general: serde_json::json!({ "BenchmarkName": name, "OutputFormat": "JSON" }),
            space: ConfigurationSpace {
                parameters: parameters
                    .iter()
                    .map(|parameter| TuningParameter {
                        name: parameter.name.clone(),
                        kind: kind(&parameter.values).to_owned(),
                        values: Values::Text(list(&parameter.values)),
                        default: parameter.values.first().cloned(),
                    })
                    .collect(),
                conditions: constraints
                    .iter()
                    .map(|text| Condition { expression: (*text).to_owned(), parameters: used(text) })
                    .collect(),
            },
            kernel: serde_json::Value::Null,
        }
    }

    /// Builds the space of the problem.
    pub fn space(&self) -> Result<Space, FormatError> {
        let parameters = self
            .space
            .parameters
            .iter()
            .map(|parameter| {
                let values = match &parameter.values {
                    Values::List(values) => values.clone(),
                    Values::Text(text) => parse_list(text).ok_or_else(|| {
                        FormatError::Meaning(format!("the values of `{}` are not a list: {text}", parameter.name))
                    })?,
                };
                if values.is_empty() {
                    return Err(FormatError::Meaning(format!("`{}` has no values", parameter.name)));
                }
                Ok(Parameter::new(parameter.name.clone(), values))
            })
            .collect::<Result<Vec<_>, FormatError>>()?;
        let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let constraints = self
            .space
            .conditions
            .iter()
            .map(|condition| Expression::parse(&condition.expression, &names).map(Constraint::Expression))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| FormatError::Meaning(error.to_string()))?;
        Ok(Space::new(parameters, &constraints)?)
    }
}

/// Parses a list in Python syntax: `[1, 2]`, `['a', True]`.
fn parse_list(text: &str) -> Option<Vec<Value>> {
    let inner = text.trim();
    let inner = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.or_else(|| text.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')))?;
    let items = inner.split(',').map(str::trim).filter(|item| !item.is_empty());
    Some(
        items
            .map(|item| {
                let quoted = ['"', '\''].into_iter().find_map(|quote| item.strip_prefix(quote)?.strip_suffix(quote));
                quoted.map_or_else(|| Value::parse(item), |word| Value::Text(word.to_owned()))
            })
            .collect(),
    )
}

fn list(values: &[Value]) -> String {
    let items: Vec<String> = values
        .iter()
        .map(|value| match value {
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Text(word) => format!("'{word}'"),
            value => value.to_string(),
        })
        .collect();
    format!("[{}]", items.join(", "))
}

fn kind(values: &[Value]) -> &'static str {
    match values.first() {
        Some(Value::Bool(_)) => "bool",
        Some(Value::Text(_)) => "string",
        Some(Value::Real(_)) => "float",
        _ if values.iter().any(|value| matches!(value, Value::Real(_))) => "float",
        _ => "int",
    }
}
