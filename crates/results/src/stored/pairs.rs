//! Pairs reports of the base with new reports.

use super::Stored;

/// Pairs of reports, and reports without a counterpart, as indices into both lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paired {
    pub pairs: Vec<(usize, usize)>,
    pub only_base: Vec<usize>,
    pub only_new: Vec<usize>,
}

/// Pairs reports of the same experiment whose folders have the same name. Then, if exactly one report of an experiment
/// remains on each side, those two are paired as well, since the folder may have been renamed. A device and the
/// simulator are paired only if there is no other counterpart.
pub fn pairs(base: &[Stored], new: &[Stored]) -> Paired {
    let experiment = |stored: &Stored| stored.records.header.experiment.clone();
    let mut found = Paired { only_base: (0..base.len()).collect(), ..Paired::default() };
    let take = |found: &mut Paired, i: usize, is_match: &dyn Fn(&Stored) -> bool| -> bool {
        let candidates: Vec<usize> = found.only_base.iter().copied().filter(|b| is_match(&base[*b])).collect();
        let [only] = candidates[..] else { return false };
        found.only_base.retain(|b| *b != only);
        found.pairs.push((only, i));
        true
    };
    for (i, stored) in new.iter().enumerate() {
        let alike = |b: &Stored| experiment(b) == experiment(stored) && b.folder == stored.folder;
        if !take(&mut found, i, &alike) {
            found.only_new.push(i);
        }
    }
    for i in std::mem::take(&mut found.only_new) {
        let name = experiment(&new[i]);
        let is_alone = new.iter().enumerate().all(|(other, stored)| {
            other == i || experiment(stored) != name || found.pairs.iter().any(|(_, paired)| *paired == other)
        });
        let backend = |stored: &Stored| stored.records.header.backend;
        let is_only = base.len() == 1 && new.len() == 1;
        let alike = |b: &Stored| experiment(b) == name && (is_only || backend(b) == backend(&new[i]));
        if !is_alone || !take(&mut found, i, &alike) {
            found.only_new.push(i);
        }
    }
    found.pairs.sort_by_key(|(_, new)| *new);
    found
}
