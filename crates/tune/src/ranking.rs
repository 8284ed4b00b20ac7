//! Chooses the counts by which a search compares configurations.
//!
//! On the simulator, machine code counts rank the configurations. If a correct configuration lacks one, its machine
//! code was not fully derived. All configurations are then ranked by the corresponding PTX count, since the two kinds
//! of counts are not comparable. The choice depends only on the evaluations, so that a resumed search and all shards
//! make the same one.

use search::pareto::Objectives;

use crate::objective::Objective;

/// Value of each quantity of an evaluation; `None` if it has none.
pub type Quantities = Vec<Option<f64>>;

/// How the evaluations of a search are compared.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// Quantities recorded for each evaluation: the requested objectives, then their PTX counts.
    quantities: Vec<Objective>,
    /// Index of each objective's PTX count in `quantities`.
    of_ptx: Vec<Option<usize>>,
    /// Index of the quantity in use for each objective.
    used: Vec<usize>,
}

impl Ranking {
    pub fn new(asked: &[Objective]) -> Self {
        let mut quantities = asked.to_vec();
        let mut place_of = |objective: Objective| {
            quantities.push(objective);
            quantities.len() - 1
        };
        let of_ptx = asked.iter().map(|objective| Some(place_of(objective.of_ptx()?))).collect();
        Self { quantities, of_ptx, used: (0..asked.len()).collect() }
    }

    pub fn quantities(&self) -> &[Objective] {
        &self.quantities
    }

    pub fn can_change(&self) -> bool {
        self.of_ptx.iter().any(Option::is_some)
    }

    /// The quantities in use, one per objective.
    pub fn used(&self) -> Vec<Objective> {
        self.used.iter().map(|&place| self.quantities[place].clone()).collect()
    }

    /// Switches to PTX counts for objectives whose machine code count a correct evaluation lacks. Returns the machine
    /// code counts no longer in use.
    pub fn admit(&mut self, values: &Quantities) -> Vec<Objective> {
        let mut given_up = Vec::new();
        for (used, of_ptx) in self.used.iter_mut().zip(&self.of_ptx) {
            if let (None, Some(of_ptx)) = (values[*used], of_ptx.filter(|place| values[*place].is_some())) {
                given_up.push(self.quantities[*used].clone());
                *used = of_ptx;
            }
        }
        given_up
    }

    /// Objectives for which an evaluation has neither a machine code count nor a PTX count.
    pub fn lacking(&self, values: &Quantities) -> Vec<&Objective> {
        let is_known = |place: usize| values.get(place).copied().flatten().is_some();
        let each = self.of_ptx.iter().enumerate();
        let lacking = each.filter(|(place, of_ptx)| !is_known(*place) && !of_ptx.is_some_and(is_known));
        lacking.map(|(place, _)| &self.quantities[place]).collect()
    }

    /// Values of the quantities in use; `None` if one is missing.
    pub fn values(&self, values: &Quantities) -> Option<Vec<f64>> {
        self.used.iter().map(|&place| values[place]).collect()
    }

    /// Positive levels of the quantities in use; `None` for a failed evaluation.
    pub fn levels(&self, values: Option<&Quantities>) -> Objectives {
        let values = self.values(values?)?;
        let levels = self.used.iter().zip(values).map(|(&place, value)| self.quantities[place].level(value));
        let levels: Box<[f64]> = levels.collect();
        levels.iter().all(|level| level.is_finite() && *level > 0.0).then_some(levels)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn all_configurations_are_ranked_by_the_ptx_as_soon_as_one_lacks_the_count_of_the_machine_code() {
        let counter = |name: &str| Objective::Counter(name.to_owned());
        let mut ranking = Ranking::new(&[counter("inst_executed"), counter("barriers"), counter("gld_sectors")]);
        let names: Vec<String> = ranking.quantities().iter().map(|one| one.name().to_owned()).collect();
        assert_eq!(names[..3], ["inst_executed", "barriers", "gld_sectors"]);
        assert_eq!(names.iter().filter(|name| name.starts_with("ptx_")).count(), names.len() - 3);
        let place = |name: &str| names.iter().position(|known| known == name).unwrap();
        let (instructions, sectors) = (place("ptx_inst_executed"), place("ptx_gld_sectors"));
        let mut both = vec![Some(1.0); names.len()];
        (both[0], both[instructions], both[2], both[sectors]) = (Some(70.0), Some(100.0), Some(8.0), Some(9.0));
        assert_eq!(ranking.admit(&both), []);
        assert_eq!(ranking.levels(Some(&both)), Some([70.0, 1.0, 8.0].into()));
        let lacking: Quantities = [None].into_iter().chain(both[1..].iter().copied()).collect();
        assert_eq!(ranking.admit(&lacking), [counter("inst_executed")]);
        assert_eq!(ranking.levels(Some(&both)), Some([100.0, 1.0, 8.0].into()), "the other objectives stay");
        assert_eq!(ranking.admit(&both), [], "one way only");
        assert_eq!(ranking.used()[0], counter("ptx_inst_executed"));
        // An evaluation without either count fails.
        assert_eq!(ranking.levels(Some(&vec![None; names.len()])), None);
        assert!(!Ranking::new(&[Objective::Time]).can_change());
    }
}
