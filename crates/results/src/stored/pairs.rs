//! Which report of the base belongs to which new one.

use super::Stored;

/// Pairs of reports, and those without a counterpart; indices into both lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paired {
    pub pairs: Vec<(usize, usize)>,
    pub only_base: Vec<usize>,
    pub only_new: Vec<usize>,
}

/// Pairs reports of one experiment whose folders have the same name. Then pairs what remains of each experiment if
/// exactly one report is left on either side: a folder may have been renamed. A device and the simulator are paired
/// only if there is nothing else.
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
