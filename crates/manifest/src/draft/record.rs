//! Structs passed by value in drafts: a value for each field.

use super::layout::elements;
use super::parameter::{DraftParameter, FLOATS, Fill, RecordField, Role, What};
use super::sizes::SMALL;
use super::sizes::is_size;
use crate::element::{components, element, is_vector};
use runner_cuda_source::parameter::{Field, Parameter};
use runner_types::ElementType;

/// Values of integer fields that are named like sizes.
const SIZES: [i64; 4] = [61, 53, 47, 43];

/// Names of vector components.
const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// Integer fields of by-value struct parameters, named as in the kernel's body: `p.width`.
pub fn integers(parameters: &[Parameter]) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for parameter in parameters.iter().filter(|parameter| parameter.pointers == 0) {
        let Some(name) = &parameter.name else { continue };
        for (place, field) in parameter.fields.iter().enumerate() {
            let is_integer = element(&field.base).is_some_and(|element| !element.is_float());
            if is_integer && field.pointers == 0 && field.count.is_none() && !is_vector(&field.base) {
                found.push((format!("{name}.{}", field.name), integer(place, field)));
            }
        }
    }
    found
}

fn integer(place: usize, field: &Field) -> i64 {
    if field.base == "bool" {
        1
    } else if is_size(&field.name) {
        SIZES[place % SIZES.len()]
    } else {
        SMALL[place % SMALL.len()]
    }
}

/// Fields of a struct that is passed by value; buffer names start with `owner`. On failure, returns the name of the
/// field that cannot be passed.
pub fn record(owner: &str, fields: &[Field], seed: usize) -> Result<Vec<RecordField>, String> {
    let of_field = |(place, field): (usize, &Field)| {
        let name = format!("{owner}_{}", field.name);
        let number = |element: ElementType, place: usize| DraftParameter {
            name: name.clone(),
            element,
            what: What::Number {
                value: if element.is_float() {
                    format!("{:?}", FLOATS[place % FLOATS.len()])
                } else {
                    integer(place, field).to_string()
                },
            },
        };
        let value = match (element(&field.base), elements(&field.fields)) {
            (known, whole) if field.pointers == 1 => {
                let of_vector = known.map(|element| (element, components(&field.base)));
                let (element, count) = of_vector.or(whole).ok_or_else(|| field.name.clone())?;
                let len = if count == 1 { "n".to_owned() } else { format!("n * {count}") };
                let (low, high) = if element.is_float() { ("-1", "2") } else { ("0", "255") };
                let fill = Fill::Uniform(low.to_owned(), high.to_owned());
                let what = What::Buffer { role: Role::InOut, len, fill, seed: seed + place };
                DraftParameter { name: name.clone(), element, what }
            }
            (Some(element), _) if field.pointers == 0 && is_vector(&field.base) => {
                let count = usize::try_from(components(&field.base)).unwrap_or(1);
                let part = |place: usize| RecordField {
                    name: COMPONENTS[place % COMPONENTS.len()].to_owned(),
                    value: number(element, place),
                    count: None,
                };
                DraftParameter {
                    name: name.clone(),
                    element,
                    what: What::Record { fields: (0..count).map(part).collect() },
                }
            }
            (Some(element), _) if field.pointers == 0 => number(element, place),
            _ if field.pointers == 0 && !field.fields.is_empty() => {
                let fields = record(&name, &field.fields, seed + place)?;
                DraftParameter { name: name.clone(), element: ElementType::U8, what: What::Record { fields } }
            }
            _ => return Err(field.name.clone()),
        };
        Ok(RecordField { name: field.name.clone(), value, count: field.count })
    };
    fields.iter().enumerate().map(of_field).collect()
}
