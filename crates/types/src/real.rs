//! Floats in JSON: the worker protocol, the journal and the records.
//!
//! JSON has no infinity or NaN. serde writes both as `null`, which cannot be read back as a number. So every `f64` of a
//! stored or transmitted type is either a field with `#[serde(with = "real")]` or a [`Real`]. Finite numbers are
//! written as numbers, others as strings.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Strings for numbers that JSON cannot represent.
const INFINITE: &str = "inf";
const NEGATIVE_INFINITE: &str = "-inf";
const NOT_A_NUMBER: &str = "nan";

/// A number, serialized as a number if finite, otherwise as `"inf"`, `"-inf"` or `"nan"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Real(pub f64);

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            value if value.is_finite() => serializer.serialize_f64(value),
            value if value.is_nan() => serializer.serialize_str(NOT_A_NUMBER),
            value if value > 0.0 => serializer.serialize_str(INFINITE),
            _ => serializer.serialize_str(NEGATIVE_INFINITE),
        }
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Real;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number, \"{INFINITE}\", \"{NEGATIVE_INFINITE}\" or \"{NOT_A_NUMBER}\"")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Real, E> {
                Ok(Real(value))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Real, E> {
                Ok(Real(value as f64))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Real, E> {
                Ok(Real(value as f64))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Real, E> {
                match text {
                    INFINITE => Ok(Real(f64::INFINITY)),
                    NEGATIVE_INFINITE => Ok(Real(f64::NEG_INFINITY)),
                    NOT_A_NUMBER => Ok(Real(f64::NAN)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Number)
    }
}

/// A type that contains numbers and supports `#[serde(with = "real")]`.
pub trait Numbers: Sized {
    /// JSON representation, with a [`Real`] for each number.
    type Json: Serialize + DeserializeOwned;

    fn to_json(&self) -> Self::Json;

    fn from_json(json: Self::Json) -> Self;
}

impl Numbers for f64 {
    type Json = Real;

    fn to_json(&self) -> Real {
        Real(*self)
    }

    fn from_json(Real(value): Real) -> Self {
        value
    }
}

impl<T: Numbers> Numbers for Option<T> {
    type Json = Option<T::Json>;

    fn to_json(&self) -> Self::Json {
        self.as_ref().map(T::to_json)
    }

    fn from_json(json: Self::Json) -> Self {
        json.map(T::from_json)
    }
}

impl<T: Numbers> Numbers for Vec<T> {
    type Json = Vec<T::Json>;

    fn to_json(&self) -> Self::Json {
        self.iter().map(T::to_json).collect()
    }

    fn from_json(json: Self::Json) -> Self {
        json.into_iter().map(T::from_json).collect()
    }
}

impl<T: Numbers> Numbers for [T; 3] {
    type Json = [T::Json; 3];

    fn to_json(&self) -> Self::Json {
        self.each_ref().map(T::to_json)
    }

    fn from_json(json: Self::Json) -> Self {
        json.map(T::from_json)
    }
}

impl<K: Ord + Clone + Serialize + DeserializeOwned, T: Numbers> Numbers for BTreeMap<K, T> {
    type Json = BTreeMap<K, T::Json>;

    fn to_json(&self) -> Self::Json {
        self.iter().map(|(key, value)| (key.clone(), value.to_json())).collect()
    }

    fn from_json(json: Self::Json) -> Self {
        json.into_iter().map(|(key, value)| (key, T::from_json(value))).collect()
    }
}

/// Serializes a field, for `#[serde(with = "real")]`.
pub fn serialize<T: Numbers, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.to_json().serialize(serializer)
}

/// Deserializes a field, for `#[serde(with = "real")]`.
pub fn deserialize<'de, T: Numbers, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Json::deserialize(deserializer).map(T::from_json)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Held {
        #[serde(with = "super")]
        one: f64,
        #[serde(default, with = "super")]
        perhaps: Option<f64>,
        #[serde(with = "super")]
        list: Vec<f64>,
        #[serde(with = "super")]
        named: BTreeMap<String, [f64; 3]>,
    }

    #[test]
    fn numbers_that_json_does_not_have_are_texts_and_the_others_are_numbers() {
        let held = Held {
            one: f64::INFINITY,
            perhaps: Some(f64::NEG_INFINITY),
            list: vec![f64::NAN, 1.0, -0.5],
            named: [("a".to_owned(), [2.0, f64::INFINITY, 0.1])].into(),
        };
        let text = serde_json::to_string(&held).unwrap();
        let expected = r#"{"one":"inf","perhaps":"-inf","list":["nan",1.0,-0.5],"named":{"a":[2.0,"inf",0.1]}}"#;
        assert_eq!(text, expected);
        // Compare the JSON, since NaN is not equal to itself.
        let read: Held = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{held:?}"));
    }

    #[test]
    fn whole_numbers_and_absent_ones_are_read_and_other_texts_are_not() {
        let read: Held = serde_json::from_str(r#"{"one":3,"list":[-4],"named":{}}"#).unwrap();
        assert_eq!((read.one, read.perhaps, read.list), (3.0, None, vec![-4.0]));
        for wrong in [r#""infinity""#, "null", "1e999", "true", r#""1""#] {
            let refused = serde_json::from_str::<Real>(wrong);
            assert!(refused.is_err(), "{wrong} is read as {refused:?}");
        }
    }
}
