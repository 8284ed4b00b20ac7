//! Caches bootstrapped ratios: each is computed once, where it was measured, and then read from the journal.
//!
//! A ratio is keyed by a digest of its inputs, so that it is never used for other samples.

use std::cell::RefCell;

use sha2::{Digest as _, Sha256};

use runner_stats::Interval;
use runner_types::{FormedRatios, hex};

/// Part of every digest. Change it whenever [`runner_stats::paired_ratio`] returns different ratios than before.
const METHOD: &[u8] = b"paired ratio 1";

const BYTES: usize = 8;

/// Known ratios, and those that had to be computed.
#[derive(Debug)]
pub(super) struct Bootstraps<'a> {
    known: &'a FormedRatios,
    formed: RefCell<FormedRatios>,
}

impl<'a> Bootstraps<'a> {
    pub const fn new(known: &'a FormedRatios) -> Self {
        Self { known, formed: RefCell::new(FormedRatios::new()) }
    }

    /// Result of [`runner_stats::paired_ratio`], from the journal if it is there.
    pub fn paired_ratio(&self, base: &[f64], this: &[f64], confidence: f64) -> Option<Interval> {
        let name = name(base, this, confidence);
        let found = self.known.get(&name).copied().or_else(|| self.formed.borrow().get(&name).copied());
        if let Some([point, low, high]) = found {
            return Some(Interval { point, low, high, coverage: confidence });
        }
        let interval = runner_stats::paired_ratio(base, this, confidence)?;
        self.formed.borrow_mut().insert(name, [interval.point, interval.low, interval.high]);
        Some(interval)
    }

    /// The ratios that were computed because the journal did not contain them.
    pub fn into_formed(self) -> FormedRatios {
        self.formed.into_inner()
    }
}

/// Digest of everything that a ratio depends on.
fn name(base: &[f64], this: &[f64], confidence: f64) -> String {
    let mut digest = Sha256::new_with_prefix(METHOD);
    digest.update(base.len().to_le_bytes());
    for number in base.iter().chain(this).chain([&confidence]) {
        digest.update(number.to_le_bytes());
    }
    hex(&digest.finalize()[..BYTES])
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    const BASE: [f64; 8] = [2.0, 2.1, 2.2, 2.05, 2.4, 2.0, 1.9, 2.3];
    const THIS: [f64; 8] = [1.0, 1.1, 1.0, 1.05, 1.1, 1.2, 1.0, 1.1];

    #[test]
    fn a_known_ratio_is_not_formed_again() {
        let nothing = FormedRatios::new();
        let bootstraps = Bootstraps::new(&nothing);
        let formed = bootstraps.paired_ratio(&BASE, &THIS, 0.95);
        assert_eq!(formed, runner_stats::paired_ratio(&BASE, &THIS, 0.95));
        let mut known = bootstraps.into_formed();
        assert_eq!(known.len(), 1);
        // Use a value that no bootstrap returns, to show where the ratio comes from.
        *known.values_mut().next().unwrap() = [5.0, 4.0, 6.0];
        let bootstraps = Bootstraps::new(&known);
        let found = bootstraps.paired_ratio(&BASE, &THIS, 0.95).unwrap();
        assert_eq!((found.point, found.low, found.high, found.coverage), (5.0, 4.0, 6.0, 0.95));
        for (base, this, confidence) in [(THIS, BASE, 0.95), (BASE, BASE, 0.95), (BASE, THIS, 0.9)] {
            let other = bootstraps.paired_ratio(&base, &this, confidence);
            assert_eq!(other, runner_stats::paired_ratio(&base, &this, confidence));
        }
        assert_eq!(bootstraps.into_formed().len(), 3);
    }

    /// If these numbers change, [`METHOD`] must change too, since it is part of the names under which journals store
    /// ratios.
    #[test]
    fn a_ratio_of_this_method_has_these_digits() {
        let Interval { point, low, high, .. } = runner_stats::paired_ratio(&BASE, &THIS, 0.95).unwrap();
        let expected = [2.003_186_628_610_100_3, 1.839_894_630_357_723_3, 2.126_799_874_189_270_4_f64];
        assert_eq!([point, low, high].map(f64::to_bits), expected.map(f64::to_bits));
        // SHA-256 of the method, the number 8 in 64 bits, the sixteen times and 0.95, all little-endian.
        assert_eq!(name(&BASE, &THIS, 0.95), "35d79e45633155df");
    }
}
