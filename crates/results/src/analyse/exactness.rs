//! Accuracy of results, for experiments whose claims are all about errors.

use std::collections::HashMap;

use super::contender::contender;
use runner_lang::claim::{ClaimFunction, ClaimProgram};
use runner_types::{GroupKey, Records};

/// Maximum error of a contender over all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Exactness {
    /// Variant, with the values of compared axes if any.
    pub contender: String,
    /// Error relative to the reference, in units in the last place (ulp) of the result's type.
    pub ulp: f64,
    /// Group with the maximum error.
    pub group: GroupKey,
}

/// The contenders, most accurate first; `None` if the experiment is not about errors.
pub(super) fn exactness(records: &Records) -> Option<Vec<Exactness>> {
    let claims = &records.header.claims;
    let is_about_errors = claims.iter().all(|claim| {
        let results = ClaimProgram::parse(&claim.text).map(|program| {
            let functions = program.results().into_iter().map(|result| result.function).collect::<Vec<_>>();
            functions.into_iter().all(|function| {
                matches!(function, ClaimFunction::ErrorAbs | ClaimFunction::ErrorRel | ClaimFunction::ErrorUlp)
            })
        });
        results.unwrap_or(false)
    });
    if claims.is_empty() || !is_about_errors {
        return None;
    }
    let mut found: Vec<Exactness> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for record in &records.cases {
        let Some(error) = &record.error else { continue };
        let name = contender(&records.header, &record.case);
        let this = Exactness { contender: name.clone(), ulp: error.ulp, group: record.case.group.clone() };
        match places.get(&name) {
            Some(place) if found[*place].ulp < this.ulp => found[*place] = this,
            Some(_) => {}
            None => {
                places.insert(name, found.len());
                found.push(this);
            }
        }
    }
    found.sort_by(|a, b| a.ulp.total_cmp(&b.ulp));
    (!found.is_empty()).then_some(found)
}
