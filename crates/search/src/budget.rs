use std::str::FromStr;

/// Size of a search: a number of points or a fraction of a space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Budget {
    /// A number of points.
    Count(u64),
    /// A fraction of the space.
    Share(f64),
}

/// 5 % of the space.
impl Default for Budget {
    fn default() -> Self {
        Self::Share(0.05)
    }
}

impl Budget {
    /// Number of points for a space of `size` points, at least 1.
    #[must_use]
    pub fn resolve(self, size: u64) -> u64 {
        match self {
            Self::Count(count) => count.min(size),
            Self::Share(share) => ((size as f64 * share) as u64).min(size),
        }
        .max(1)
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |number: &str| {
            let percent: f64 = number.trim().parse().ok()?;
            (percent > 0.0 && percent <= 100.0).then_some(Self::Share(percent / 100.0))
        };
        let budget = match text.trim().strip_suffix('%') {
            Some(number) => share(number),
            None => text.parse().ok().filter(|count| *count > 0).map(Self::Count),
        };
        budget.ok_or_else(|| "expected a number of configurations, or a share such as `5%`".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_number_or_a_share_of_the_space() {
        assert_eq!("5%".parse(), Ok(Budget::default()));
        assert_eq!("300".parse(), Ok(Budget::Count(300)));
        for wrong in ["0", "many", "0%", "101%", "-5%", "%"] {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
        }
        assert_eq!(Budget::Share(0.05).resolve(4362), 218);
        assert_eq!((Budget::Count(300).resolve(100), Budget::Share(0.01).resolve(10)), (100, 1));
    }
}
