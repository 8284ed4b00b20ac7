//! Converts keys of cases to configurations with values of the crate `search`.

use search::space::Value;

use runner_types::{Case, CaseKey};

/// Parameter names of a configuration with their values.
pub type Values = Vec<(String, Value)>;

/// Values that distinguish a case within its group.
pub fn configuration(case: &Case) -> Values {
    let is_shared = |name: &String| case.group.0.iter().any(|(shared, _)| shared == name);
    values(&case.key).into_iter().filter(|(name, _)| !is_shared(name)).collect()
}

/// Values that identify a case: its axes and its variant.
pub fn values(key: &CaseKey) -> Values {
    let axes = key.axes.iter().map(|(name, value)| (name.clone(), value_of(value)));
    axes.chain([("variant".to_owned(), Value::Text(key.variant.clone()))]).collect()
}

pub fn value_of(value: &runner_types::Value) -> Value {
    match value {
        runner_types::Value::Int(value) => Value::Int(*value),
        runner_types::Value::Float(value) => Value::Real(*value),
        runner_types::Value::Bool(value) => Value::Bool(*value),
        other => Value::Text(other.to_string()),
    }
}
