use super::value::{Scale, Value};

/// A parameter and its possible values.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Unique name in the space.
    pub name: String,
    /// Distinct values; ascending if the parameter is ordered.
    pub values: Vec<Value>,
    /// Whether the values are ordered.
    pub scale: Scale,
}

impl Parameter {
    /// Creates a parameter. If all values are numbers, they are sorted and the parameter is ordered; otherwise it is
    /// categorical.
    #[must_use]
    pub fn new(name: impl Into<String>, mut values: Vec<Value>) -> Self {
        let numbers = values.iter().all(|value| value.number().is_some());
        if numbers {
            values.sort_by(|a, b| a.number().partial_cmp(&b.number()).unwrap_or(std::cmp::Ordering::Equal));
        }
        let mut seen: Vec<Value> = Vec::new();
        for value in values {
            if !seen.contains(&value) {
                seen.push(value);
            }
        }
        let scale = if numbers { Scale::Ordered } else { Scale::Categorical };
        Self { name: name.into(), values: seen, scale }
    }

    /// Index of a value.
    #[must_use]
    pub fn position(&self, value: &Value) -> Option<u16> {
        self.values.iter().position(|known| known == value).map(|place| place as u16)
    }
}
