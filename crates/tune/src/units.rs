//! The code of configurations in flight: units being compiled, and recent results.

use std::collections::{HashSet, VecDeque};

use crate::search_context::UnitResult;
use runner_plan::link::CompiledUnits;
use runner_types::CompileUnit;

/// Number of results to keep although no waiting configuration needs them, since consecutive proposals often share a
/// unit. Older ones are read again from the disk cache.
const KEPT: usize = 64;

#[derive(Debug, Default)]
pub struct Units {
    requested: HashSet<CompileUnit>,
    compiled: CompiledUnits,
    /// Compiled units, oldest first.
    order: VecDeque<CompileUnit>,
}

impl Units {
    pub const fn compiled(&self) -> &CompiledUnits {
        &self.compiled
    }

    /// Whether a unit must be compiled, i.e. has no result and is not being compiled. If so, marks it as being
    /// compiled.
    pub fn request(&mut self, unit: &CompileUnit) -> bool {
        !self.compiled.contains_key(unit) && self.requested.insert(unit.clone())
    }

    /// Stores the result of a requested unit.
    pub fn arrive(&mut self, unit: CompileUnit, result: UnitResult) {
        self.requested.remove(&unit);
        self.order.push_back(unit.clone());
        self.compiled.insert(unit, result);
    }

    /// Drops the oldest unneeded results.
    pub fn release(&mut self, needed: &HashSet<&CompileUnit>) {
        let mut excess = self.order.len().saturating_sub(KEPT);
        self.order.retain(|unit| {
            let goes = excess > 0 && !needed.contains(unit);
            if goes {
                excess -= 1;
                self.compiled.remove(unit);
            }
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::CompileFailure;

    #[test]
    fn results_are_released_unless_a_waiting_configuration_needs_them() {
        let unit = |n: usize| CompileUnit::from_kernels("copy.cu", [format!("copy<{n}>")]);
        let mut units = Units::default();
        for n in 0..1000 {
            assert!(units.request(&unit(n)) && !units.request(&unit(n)));
            let failure = CompileFailure { summary: n.to_string(), log: String::new() };
            units.arrive(unit(n), Err(failure));
            assert!(!units.request(&unit(n)), "a unit with a result is not compiled again");
            units.release(&HashSet::from([&unit(3)]));
        }
        let kept: Vec<String> =
            units.compiled().values().filter_map(|result| Some(result.as_ref().err()?.summary.clone())).collect();
        assert_eq!(kept.len(), KEPT);
        assert!(kept.contains(&"3".to_owned()) && kept.contains(&"999".to_owned()) && !kept.contains(&"4".to_owned()));
        assert!(units.request(&unit(4)), "a unit that was released is compiled again");
    }
}
