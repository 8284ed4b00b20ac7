//! Numbers and intervals in the lines of records.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use runner_types::{Estimate, Real, real};

/// Confidence level of an interval that does not state it.
const NOMINAL: f64 = 0.95;

/// Maximum up to which all integers are exact in f64.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// A number, serialized without `.0` if it is an integer.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct Number(#[serde(with = "real")] pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_negative_zero = self.0 == 0.0 && self.0.is_sign_negative();
        if self.0.fract() == 0.0 && self.0.abs() <= LARGEST_WHOLE && !is_negative_zero {
            serializer.serialize_i64(self.0 as i64)
        } else {
            Real(self.0).serialize(serializer)
        }
    }
}

/// `[point, low, high]`, followed by the confidence level if it is not the nominal one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval(pub Estimate);

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Estimate { point, low, high, confidence } = self.0;
        if confidence.to_bits() == NOMINAL.to_bits() {
            [point, low, high].map(Number).serialize(serializer)
        } else {
            [point, low, high, confidence].map(Number).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;

        impl<'de> Visitor<'de> for Numbers {
            type Value = Interval;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an interval of three or four numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Interval, A::Error> {
                let mut values = [Real(0.0); 3];
                for (i, value) in values.iter_mut().enumerate() {
                    *value = numbers.next_element()?.ok_or_else(|| A::Error::invalid_length(i, &self))?;
                }
                let [Real(point), Real(low), Real(high)] = values;
                let Real(confidence) = numbers.next_element()?.unwrap_or(Real(NOMINAL));
                Ok(Interval(Estimate { point, low, high, confidence }))
            }
        }

        deserializer.deserialize_seq(Numbers)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction_and_no_number_changes() {
        let written = |value: f64| serde_json::to_string(&Number(value)).unwrap();
        assert_eq!([0.0, 17.0, -3.0, 16_777_215.0].map(written), ["0", "17", "-3", "16777215"]);
        assert_eq!([0.5, 1e300, -0.0].map(written), ["0.5", "1e+300", "-0.0"]);
        for value in [LARGEST_WHOLE, LARGEST_WHOLE + 2.0, 1e22, -0.0, 0.1 + 0.2, f64::MIN_POSITIVE] {
            let read: Number = serde_json::from_str(&written(value)).unwrap();
            assert_eq!(read.0.to_bits(), value.to_bits(), "{value}");
        }
    }

    #[test]
    fn an_interval_has_its_confidence_where_it_is_not_nominal() {
        let written = |confidence| {
            let interval = Interval(Estimate { point: 2.0, low: 1.5, high: 2.5, confidence });
            serde_json::to_string(&interval).unwrap()
        };
        assert_eq!([written(0.95), written(0.875)], ["[2,1.5,2.5]", "[2,1.5,2.5,0.875]"]);
        let read = |text: &str| serde_json::from_str::<Interval>(text).map(|interval| interval.0.confidence);
        assert!(read("[2,1.5,2.5]").is_ok_and(|confidence| confidence.to_bits() == 0.95_f64.to_bits()));
        assert!(read("[2,1.5,2.5,0.875]").is_ok_and(|confidence| confidence.to_bits() == 0.875_f64.to_bits()));
        assert!(read("[2,1.5]").is_err() && read("[2,1.5,2.5,0.875,1]").is_err());
    }
}
