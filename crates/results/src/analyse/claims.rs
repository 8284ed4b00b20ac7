//! Judges whether the results support the manifest's claims.
//!
//! Times have confidence intervals; counts and compile facts are exact. A claim is held only if it is true for every
//! value in the intervals, and broken only if it is false for every value; otherwise it is undecided. Intervals of
//! quantities computed from several results combine the extreme ends, as if the errors were dependent in the worst way.

use rayon::prelude::*;

use super::contender::contender;
use super::roofline;
use runner_lang::claim::{Arithmetic, ClaimFunction, ClaimProgram, Measured, Quantity, Relation};
use runner_lang::{Program, Scope};
use runner_types::{CaseRecord, Claim, Estimate, GroupKey, Outcome, Records, Regime, Unit};

/// State of a claim, most important first. The most important state of any group decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ClaimState {
    /// The claim is false in at least one group.
    Broken,
    /// In some group, the claim is true for some values in the intervals and false for others.
    Undecided,
    /// The claim is true in every group that can judge it.
    Held,
    /// No group can judge it, e.g. because the simulator measures no times, counters were not requested, or a case
    /// failed.
    NotApplicable,
}

impl ClaimState {
    /// Machine-readable name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A claim with its judgement in each group.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedClaim {
    pub claim: Claim,
    /// The most important of the groups' states.
    pub state: ClaimState,
    /// Relation between its two sides.
    pub relation: Option<Relation>,
    /// All groups and regimes that can judge it, in the order of the records.
    pub groups: Vec<ClaimGroup>,
    /// Reasons why groups cannot judge it, each with the number of groups.
    pub unjudged: Vec<(String, usize)>,
}

impl JudgedClaim {
    /// The decisive group: among those in the claim's state, the one with the smallest margin.
    pub fn decisive(&self) -> Option<&ClaimGroup> {
        let relation = self.relation?;
        let deciding = self.groups.iter().filter(|group| group.state == self.state);
        deciding.min_by(|a, b| a.room(relation).total_cmp(&b.room(relation)))
    }

    /// Number of groups in the claim's state.
    pub fn count(&self) -> usize {
        self.groups.iter().filter(|group| group.state == self.state).count()
    }
}

/// Judgement of a claim in one group.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimGroup {
    /// Axis values that the cases share.
    pub key: GroupKey,
    /// `None` if no time is involved.
    pub regime: Option<Regime>,
    pub state: ClaimState,
    /// Value of the left-hand side.
    pub left: Range,
    /// Value of the right-hand side.
    pub right: Range,
}

impl ClaimGroup {
    /// Margin by which the relation holds, as a fraction of the right-hand side; negative if it does not hold.
    fn room(&self, relation: Relation) -> f64 {
        let scale = if self.right.point == 0.0 { 1.0 } else { self.right.point.abs() };
        let above = (self.left.point - self.right.point) / scale;
        match relation {
            Relation::Greater | Relation::GreaterEqual => above,
            Relation::Less | Relation::LessEqual => -above,
            Relation::Equal => -above.abs(),
            Relation::NotEqual => above.abs(),
        }
    }
}

/// A number with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Point estimate.
    pub point: f64,
    pub low: f64,
    pub high: f64,
}

impl Range {
    const fn exact(point: f64) -> Self {
        Self { point, low: point, high: point }
    }

    const fn from_estimate(estimate: &Estimate) -> Self {
        Self { point: estimate.point, low: estimate.low, high: estimate.high }
    }

    /// Whether the range is a single number.
    pub fn is_exact(&self) -> bool {
        self.low >= self.high
    }

    /// Multiplies by a positive `factor`.
    fn times(self, factor: f64) -> Self {
        Self { point: self.point * factor, low: self.low * factor, high: self.high * factor }
    }

    /// `numerator` divided by this range, which must be positive.
    fn divides(self, numerator: f64) -> Self {
        Self { point: numerator / self.point, low: numerator / self.high, high: numerator / self.low }
    }

    fn combine(self, other: Self, with: impl Fn(f64, f64) -> f64) -> Self {
        let ends = [(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)];
        let ends = ends.map(|(left, right)| with(left, right));
        Self {
            point: with(self.point, other.point),
            low: ends.into_iter().fold(f64::INFINITY, f64::min),
            high: ends.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// Judges every claim in the records' manifest.
pub fn claims(records: &Records) -> Vec<JudgedClaim> {
    judge_all(records, &records.header.claims)
}

/// Judges claims, possibly from a different manifest.
pub(super) fn judge_all(records: &Records, claims: &[Claim]) -> Vec<JudgedClaim> {
    if claims.is_empty() {
        return Vec::new();
    }
    let groups = by_group(records);
    claims.iter().map(|claim| judge(records, &groups, claim)).collect()
}

type GroupRecords<'r> = (&'r GroupKey, Vec<&'r CaseRecord>);

fn judge(records: &Records, groups: &[GroupRecords<'_>], claim: &Claim) -> JudgedClaim {
    let mut judged = JudgedClaim {
        claim: claim.clone(),
        state: ClaimState::NotApplicable,
        relation: None,
        groups: Vec::new(),
        unjudged: Vec::new(),
    };
    let program = match (Parts::parse(claim), claim.backend) {
        (Err(why), _) => return JudgedClaim { unjudged: vec![(why, 0)], ..judged },
        (_, Some(backend)) if backend != records.header.backend => {
            return JudgedClaim { unjudged: vec![(format!("it applies to `--backend {backend}` only"), 0)], ..judged };
        }
        (Ok(parts), _) => parts,
    };
    judged.relation = Some(program.claim.relation);
    // The answers are in group order, regardless of which core computes them.
    let answers = |(key, members): &GroupRecords<'_>| -> Vec<Result<ClaimGroup, String>> {
        let in_regime = |regime: Option<Regime>| {
            let (state, left, right) = program.judge(&GroupInRegime { records, members, regime })?;
            Ok(ClaimGroup { key: (*key).clone(), regime, state, left, right })
        };
        match program.applies(key) {
            Ok(true) => program.regimes(claim, members).into_iter().map(in_regime).collect(),
            Ok(false) => Vec::new(),
            Err(why) => vec![Err(why)],
        }
    };
    let answers: Vec<Vec<Result<ClaimGroup, String>>> = groups.par_iter().map(answers).collect();
    for answer in answers.into_iter().flatten() {
        match answer {
            Ok(group) => judged.groups.push(group),
            Err(why) => note(&mut judged.unjudged, why),
        }
    }
    judged.state = judged.groups.iter().map(|group| group.state).min().unwrap_or(ClaimState::NotApplicable);
    if judged.groups.is_empty() && judged.unjudged.is_empty() {
        judged.unjudged.push(("no group matches its `where`".to_owned(), 0));
    }
    judged
}

fn note(reasons: &mut Vec<(String, usize)>, why: String) {
    match reasons.iter_mut().find(|(known, _)| *known == why) {
        Some((_, count)) => *count += 1,
        None => reasons.push((why, 1)),
    }
}

fn by_group(records: &Records) -> Vec<GroupRecords<'_>> {
    let mut places = std::collections::HashMap::new();
    let mut groups: Vec<GroupRecords<'_>> = Vec::new();
    for record in &records.cases {
        // Most records belong to the same group as the previous one.
        if let Some((_, members)) = groups.last_mut().filter(|(key, _)| **key == record.case.group) {
            members.push(record);
            continue;
        }
        let place = *places.entry(&record.case.group).or_insert_with(|| {
            groups.push((&record.case.group, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(record);
    }
    groups
}

/// The parsed parts of a claim. Parsing can fail, since records of another version may use unknown syntax.
struct Parts {
    claim: ClaimProgram,
    condition: Option<Program>,
}

impl Parts {
    fn parse(claim: &Claim) -> Result<Self, String> {
        let unread = |error: runner_lang::ExprError| format!("it cannot be parsed: {error}");
        Ok(Self {
            claim: ClaimProgram::parse(&claim.text).map_err(unread)?,
            condition: claim.condition.as_deref().map(Program::parse).transpose().map_err(unread)?,
        })
    }

    fn applies(&self, key: &GroupKey) -> Result<bool, String> {
        let Some(condition) = &self.condition else { return Ok(true) };
        let mut scope = Scope::new();
        for (name, value) in &key.0 {
            scope.set(name.as_str(), value.clone());
        }
        condition.evaluate_bool(&scope).map_err(|error| format!("`where` cannot be evaluated: {error}"))
    }

    /// The regimes in which to judge a claim; a single `None` if it involves no time.
    fn regimes(&self, claim: &Claim, members: &[&CaseRecord]) -> Vec<Option<Regime>> {
        if !self.claim.results().iter().any(|result| result.function.is_timed()) {
            return vec![None];
        }
        if claim.regime.is_some() {
            return vec![claim.regime];
        }
        let measured = |regime: &Regime| members.iter().any(|r| r.result.as_ref().is_some_and(|r| r.regime == *regime));
        let regimes: Vec<_> = Regime::ALL.iter().copied().filter(measured).map(Some).collect();
        if regimes.is_empty() { vec![None] } else { regimes }
    }

    fn judge(&self, place: &GroupInRegime<'_>) -> Result<(ClaimState, Range, Range), String> {
        let (left, right) = (place.value(&self.claim.left)?, place.value(&self.claim.right)?);
        if [left, right].iter().any(|side| side.low.is_nan() || side.high.is_nan()) {
            return Err("it divides by zero".to_owned());
        }
        Ok((decide(left, self.claim.relation, right), left, right))
    }
}

/// Compares the two sides: held if the relation is true for all values of both intervals, broken if it is false for
/// all.
fn decide(left: Range, relation: Relation, right: Range) -> ClaimState {
    let (always, never) = match relation {
        Relation::Less => (left.high < right.low, left.low >= right.high),
        Relation::LessEqual => (left.high <= right.low, left.low > right.high),
        Relation::Greater => (left.low > right.high, left.high <= right.low),
        Relation::GreaterEqual => (left.low >= right.high, left.high < right.low),
        Relation::Equal => (is_same(left, right), apart(left, right)),
        Relation::NotEqual => (apart(left, right), is_same(left, right)),
    };
    match (always, never) {
        (true, _) => ClaimState::Held,
        (_, true) => ClaimState::Broken,
        _ => ClaimState::Undecided,
    }
}

/// Whether both ranges are the same single number.
fn is_same(left: Range, right: Range) -> bool {
    left.is_exact() && right.is_exact() && left.low >= right.low && left.low <= right.low
}

fn apart(left: Range, right: Range) -> bool {
    left.high < right.low || right.high < left.low
}

struct GroupInRegime<'r> {
    records: &'r Records,
    members: &'r [&'r CaseRecord],
    regime: Option<Regime>,
}

impl<'r> GroupInRegime<'r> {
    fn value(&self, quantity: &Quantity) -> Result<Range, String> {
        Ok(match quantity {
            Quantity::Number(value) => Range::exact(*value),
            Quantity::Result(result) => self.result(result)?,
            Quantity::Negate(inner) => {
                let Range { point, low, high } = self.value(inner)?;
                Range { point: -point, low: -high, high: -low }
            }
            Quantity::Binary(arithmetic, sides) => {
                let (left, right) = (self.value(&sides[0])?, self.value(&sides[1])?);
                match arithmetic {
                    Arithmetic::Add => left.combine(right, |a, b| a + b),
                    Arithmetic::Subtract => left.combine(right, |a, b| a - b),
                    Arithmetic::Multiply => left.combine(right, |a, b| a * b),
                    Arithmetic::Divide if right.low <= 0.0 && right.high >= 0.0 => {
                        return Err("it divides by a value that may be zero".to_owned());
                    }
                    Arithmetic::Divide => left.combine(right, |a, b| a / b),
                }
            }
        })
    }

    fn result(&self, result: &Measured) -> Result<Range, String> {
        let first = result.cases[0].name.as_str();
        match result.function {
            ClaimFunction::Speedup => self.speedup(first, &result.cases[1].name),
            ClaimFunction::Time => self.time(first).map(|(_, time)| time.times(1e-3)),
            ClaimFunction::Bandwidth => self.bandwidth(first),
            ClaimFunction::FractionOfPeak => {
                let peak = self.records.environment.device.peak_bandwidth();
                let peak = peak.ok_or("the device's peak bandwidth is unknown")?;
                Ok(self.bandwidth(first)?.times(1e9 / peak))
            }
            ClaimFunction::FractionOfCeiling => self.fraction_of_ceiling(first),
            ClaimFunction::Counter => {
                let name = result.counter.as_ref().map_or("", |counter| counter.name.as_str());
                if self.rows(first)?.iter().any(|record| record.sample().is_some()) {
                    return Err(format!("counts of `{first}` are estimates: only a sample of its blocks ran"));
                }
                let counters = |record: &CaseRecord| record.counters.as_ref()?.get(name);
                let rows = self.rows(first)?;
                let missing = || {
                    if let Some(failed) = rows.iter().find(|record| record.outcome.is_failure()) {
                        let is_wrong = matches!(failed.outcome, Outcome::Wrong { .. });
                        let what = if is_wrong { "is wrong" } else { "failed" };
                        format!("`{first}` {what}, so its work was not counted")
                    } else if self.records.environment.device.capabilities.has_counters {
                        format!("`{first}` has no counter `{name}`")
                    } else {
                        format!("rerun with `--counters` for `{name}`")
                    }
                };
                self.fact(first, counters)?.ok_or_else(missing)
            }
            ClaimFunction::ErrorAbs => self.error(first, |error| error.abs),
            ClaimFunction::ErrorRel => self.error(first, |error| error.rel),
            ClaimFunction::ErrorUlp => self.error(first, |error| error.ulp),
            ClaimFunction::Registers => self.most(first, |launch| launch.resources.registers.map(f64::from)),
            ClaimFunction::Spills => self.most(first, |launch| {
                let resources = &launch.resources;
                Some(f64::from(resources.spill_stores?) + f64::from(resources.spill_loads?))
            }),
            ClaimFunction::Occupancy => {
                let least = |record: &CaseRecord| {
                    let all = record.launches.iter().map(|launch| launch.occupancy.map(|o| o.fraction));
                    all.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
                };
                self.fact(first, least)?.ok_or_else(|| format!("the occupancy of `{first}` is unknown"))
            }
        }
    }

    /// The rows of a case, named by its variant with the compared axes or, if that is unique, by the variant only.
    fn rows(&self, name: &str) -> Result<Vec<&'r CaseRecord>, String> {
        let header = &self.records.header;
        let is_named = |record: &&&CaseRecord| contender(header, &record.case) == name;
        let exact: Vec<&CaseRecord> = self.members.iter().filter(is_named).copied().collect();
        if !exact.is_empty() {
            return Ok(exact);
        }
        let of_variant: Vec<&CaseRecord> =
            self.members.iter().filter(|record| record.case.key.variant == name).copied().collect();
        match of_variant.first() {
            None => Err(format!("`{name}` was not run")),
            Some(first) if of_variant.iter().any(|record| record.case.key != first.case.key) => {
                let example = contender(header, &first.case);
                Err(format!("`{name}` matches several cases of a group: name one of them, such as `{example}`"))
            }
            Some(_) => Ok(of_variant),
        }
    }

    /// The row that has a time in this regime, with the time.
    fn time(&self, name: &str) -> Result<(&'r CaseRecord, Range), String> {
        let in_regime = |row: &'r CaseRecord| {
            let result = row.result.as_ref().filter(|result| Some(result.regime) == self.regime)?;
            Some((row, Range::from_estimate(&result.time)))
        };
        let missing = || {
            if self.records.environment.device.capabilities.has_clock {
                format!("`{name}` was not timed")
            } else {
                "the simulator measures no times".to_owned()
            }
        };
        self.rows(name)?.into_iter().find_map(in_regime).ok_or_else(missing)
    }

    fn speedup(&self, this: &str, base: &str) -> Result<Range, String> {
        let ((this_row, this_time), (base_row, base_time)) = (self.time(this)?, self.time(base)?);
        // Prefer a ratio formed within rounds, if the records compare the two cases.
        let compared = |row: &'r CaseRecord, other: &CaseRecord| {
            let other = contender(&self.records.header, &other.case);
            let result = row.result.as_ref()?;
            let ratios = result.against_baseline.iter().chain(&result.against_previous);
            let ratio = ratios.into_iter().find(|ratio| ratio.against == other)?;
            Some(Range::from_estimate(ratio.reproducible.as_ref().unwrap_or(&ratio.speedup)))
        };
        if let Some(speedup) = compared(this_row, base_row) {
            return Ok(speedup);
        }
        if let Some(inverse) = compared(base_row, this_row) {
            return Ok(inverse.divides(1.0));
        }
        let unit = |row: &CaseRecord| row.result.as_ref().map(|result| result.unit);
        if unit(this_row) != unit(base_row) {
            return Err(format!("`{this}` and `{base}` are timed with different clocks"));
        }
        Ok(base_time.combine(this_time, |base, this| base / this))
    }

    /// Bandwidth in GB/s.
    fn bandwidth(&self, name: &str) -> Result<Range, String> {
        let (row, time) = self.time(name)?;
        let bytes = row.work.bytes.ok_or("[work] states no bytes")?;
        if row.result.as_ref().is_some_and(|result| result.unit != Unit::DeviceNanoseconds) {
            return Err(format!("`{name}` is timed on the host"));
        }
        // Bytes per nanosecond equal GB/s.
        Ok(time.divides(bytes as f64))
    }

    fn fraction_of_ceiling(&self, name: &str) -> Result<Range, String> {
        let (row, time) = self.time(name)?;
        let ceilings = self.records.environment.machine.ceilings.as_ref();
        let ceilings = ceilings.ok_or("the machine's ceilings were not measured")?;
        let result = row.result.as_ref();
        let share = result.and_then(|r| roofline::share_of_roof(&row.work, &r.time, r.unit, ceilings));
        let share =
            share.ok_or_else(|| format!("the work of `{name}` is not stated, or `{name}` is timed on the host"))?;
        Ok(time.divides(share * time.point))
    }

    fn error(&self, name: &str, of: fn(&runner_types::ResultError) -> f64) -> Result<Range, String> {
        let found = self.fact(name, |record| record.error.as_ref().map(of))?;
        found.ok_or_else(|| format!("no error was recorded for `{name}`: set `error = true` in [check]"))
    }

    fn most(&self, name: &str, of: impl Fn(&runner_types::LaunchRecord) -> Option<f64>) -> Result<Range, String> {
        let most = |record: &CaseRecord| {
            record.launches.iter().map(&of).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
        };
        self.fact(name, most)?.ok_or_else(|| format!("the compiler did not report it for `{name}`"))
    }

    /// A fact about a case, which only one of its rows contains.
    fn fact(&self, name: &str, of: impl Fn(&CaseRecord) -> Option<f64>) -> Result<Option<Range>, String> {
        Ok(self.rows(name)?.into_iter().find_map(of).map(Range::exact))
    }
}
