//! Adds the cases of a base to the groups of the manifest's cases.
//!
//! A case of the base joins the group of the manifest's case with the same key, as a separate variant. It keeps its
//! launches, sources, options and tolerances. Inputs, references and measurement settings are the manifest's, so that
//! both run on the same memory. A case with other buffers is rejected, as is one whose check needs files or variants
//! that the manifest's does not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem::take;
use std::path::Path;

use super::ResolvedGroup;
use super::hashes::{self, content};
use super::renamed::find_renamed;
use runner_types::{
    BufferPlan, Case, CaseJob, CaseKey, CheckPlan, ExpectPlan, FillPlan, Outcome, PrintedPlan, RefExpr, Tolerance,
    WholeTolerance, sha256_hex,
};

pub fn base_name(variant: &str, label: &str) -> String {
    format!("{variant}@{label}")
}

/// Result of joining a base's cases.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Joined {
    /// Variants of the manifest with a counterpart in the base in at least one group.
    pub variants: BTreeSet<String>,
    pub added: usize,
    /// Cases of the base that do not run because they are not comparable with the manifest's.
    pub refused: Vec<Refused>,
    /// Cases of the manifest whose base case runs on inputs that it did not have before.
    pub on_new_inputs: HashSet<CaseKey>,
    /// Files with inputs or expected values whose contents differ.
    pub contents: BTreeSet<Contents>,
    /// Cases of the base that the manifest does not run.
    pub gone: Vec<Case>,
    /// Renamed variants: from the base's name to the manifest's.
    pub renamed: BTreeMap<String, String>,
}

/// Contents on both sides of a file with inputs or expected values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Contents {
    pub is_expected: bool,
    pub file: String,
    pub base: String,
    pub new: String,
}

/// A case that cannot be compared with its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The case in the manifest.
    pub case: CaseKey,
    pub part: Part,
    /// Description of the base's version.
    pub base: String,
    /// Description of the manifest's version.
    pub new: String,
}

/// The difference that prevents two cases from running on the same memory with the same check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Buffers and their initial contents.
    Inputs,
    Check,
}

/// Adds the cases of `base` to the groups. Renumbers the ordinals, so that each case of the base follows its
/// counterpart.
pub fn join(groups: &mut [ResolvedGroup], base: Vec<ResolvedGroup>, label: &str) -> Joined {
    let mut joining = Joining { base: HashMap::new(), label, joined: Joined::default() };
    let renamed = find_renamed(&base, groups);
    let of_manifest = |key: &CaseKey| {
        let variant = renamed.get(&key.variant).unwrap_or(&key.variant).clone();
        name(&CaseKey { variant, ..key.clone() })
    };
    for group in base {
        let running = group.job.cases.into_iter();
        joining.base.extend(running.map(|case| (of_manifest(&case.case.key), Base::Runs(Box::new(case)))));
        let settled = group.settled.into_iter();
        joining.base.extend(settled.map(|(case, outcome)| (of_manifest(&case.key), Base::Settled(outcome))));
    }
    joining.joined.renamed.clone_from(&renamed);
    for group in groups {
        joining.group(group);
    }
    let left = joining.base.into_values().filter_map(|base| match base {
        Base::Runs(job) => Some(job.case),
        Base::Settled(_) => None,
    });
    let mut left: Vec<Case> = left.collect();
    left.sort_by_key(|case| case.ordinal);
    joining.joined.gone.extend(left);
    joining.joined
}

/// The key with its axes sorted, since manifests may list them in different orders.
fn name(key: &CaseKey) -> CaseKey {
    let mut key = key.clone();
    key.axes.sort_by(|(a, _), (b, _)| a.cmp(b));
    key
}

/// Whether a case has no result, not even a failure.
const fn is_left_out(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotRun { .. }) || !outcome.is_failure()
}

enum Base {
    Runs(Box<CaseJob>),
    Settled(Outcome),
}

struct Joining<'a> {
    base: HashMap<CaseKey, Base>,
    label: &'a str,
    joined: Joined,
}

impl Joining<'_> {
    fn group(&mut self, group: &mut ResolvedGroup) {
        let (cases, settled) = (take(&mut group.job.cases), take(&mut group.settled));
        let baseline = group.job.baseline.take();
        let mut first_pair = None;
        for (index, mut new) in cases.into_iter().enumerate() {
            let place = group.job.cases.len();
            new.case.ordinal *= 2;
            let beside = match self.base.remove(&name(&new.case.key)) {
                Some(Base::Runs(base)) => self.comparable(*base, &mut new),
                Some(Base::Settled(outcome)) => {
                    group.settled.push((self.add(&new.case), outcome));
                    None
                }
                None => None,
            };
            if baseline == Some(index) {
                group.job.baseline = Some(place);
            }
            if beside.is_some() {
                first_pair.get_or_insert(place);
            }
            group.job.cases.extend([new].into_iter().chain(beside));
        }
        // Without an A/A control, the noise between two equal cases would be unknown.
        group.job.baseline = group.job.baseline.or(first_pair);
        for (mut new, outcome) in settled {
            new.ordinal *= 2;
            match self.base.remove(&name(&new.key)) {
                Some(Base::Runs(_)) if is_left_out(&outcome) => self.joined.gone.push(new.clone()),
                Some(Base::Settled(of_base)) => group.settled.push((self.add(&new), of_base)),
                Some(Base::Runs(_)) | None => {}
            }
            group.settled.push((new, outcome));
        }
    }

    /// Adds the base's counterpart of `new`, with its own variant name and the next ordinal. (`new` has an even
    /// ordinal.)
    fn add(&mut self, new: &Case) -> Case {
        self.joined.variants.insert(new.key.variant.clone());
        self.joined.added += 1;
        let key = CaseKey { variant: base_name(&new.key.variant, self.label), ..new.key.clone() };
        Case { ordinal: new.ordinal + 1, key, group: new.group.clone() }
    }

    /// The base's case on the inputs of `new`; `None` if it is rejected, with the reason recorded.
    fn comparable(&mut self, mut base: CaseJob, new: &mut CaseJob) -> Option<CaseJob> {
        let mut refused = differing_buffers(&base.buffers, &new.buffers, &new.case.key);
        let checks = checks_of_base(&base.checks, &new.checks);
        if checks.is_none() || is_other_printed(&base, new) {
            refused.push(differing_check(&base, new));
        }
        // The error tells whether the results still meet the base's tolerance.
        let known: Vec<String> = base.checks.iter().map(describe_check).collect();
        let changed = new.checks.iter_mut().filter(|check| !known.contains(&describe_check(check)));
        changed.for_each(|check| check.error = true);
        for buffer in &base.buffers {
            let same = new.buffers.iter().find(|other| other.name == buffer.name);
            self.joined.contents.extend(same.and_then(|new| other_contents(buffer, new)));
        }
        let pairs = base.checks.iter().zip(&new.checks);
        self.joined.contents.extend(pairs.filter_map(|(base, new)| other_expected(base, new)));
        let Some(checks) = checks.filter(|_| refused.is_empty()) else {
            self.joined.refused.extend(refused);
            return None;
        };
        let fill = |job: &CaseJob| job.buffers.iter().map(|buffer| (buffer.name.clone(), describe(buffer))).collect();
        let [before, now]: [BTreeSet<(String, String)>; 2] = [&base, new].map(fill);
        if before != now {
            self.joined.on_new_inputs.insert(new.case.key.clone());
        }
        for buffer in &mut base.buffers {
            if let Some(same) = new.buffers.iter().find(|other| other.name == buffer.name) {
                // The fill may differ, and files with equal content may be in different folders.
                buffer.fill.clone_from(&same.fill);
            }
        }
        base.case = self.add(&new.case);
        base.checks = checks;
        base.printed.clone_from(&new.printed);
        base.work = new.work;
        base.measure.clone_from(&new.measure);
        Some(base)
    }
}

/// The base's checks, with the manifest's references where these are the same; `None` if a different reference needs a
/// file or a variant.
fn checks_of_base(base: &[CheckPlan], new: &[CheckPlan]) -> Option<Vec<CheckPlan>> {
    let of_base = |check: &CheckPlan| {
        let expected = describe_expected(check);
        if let Some(same) = new.iter().find(|other| describe_expected(other) == expected) {
            return Some(CheckPlan { tolerance: check.tolerance, whole: check.whole, ..same.clone() });
        }
        matches!(check.expect, ExpectPlan::Reference(_) | ExpectPlan::List(_)).then(|| check.clone())
    };
    base.iter().map(of_base).collect()
}

fn differing_buffers(base: &[BufferPlan], new: &[BufferPlan], case: &CaseKey) -> Vec<Refused> {
    let described = |buffers: &[BufferPlan], name: &str| {
        buffers.iter().find(|buffer| buffer.name == name).map_or_else(|| "none".to_owned(), describe)
    };
    // A kernel can run on other contents, but not in memory of another shape, or on what was never written.
    let shape = |buffers: &[BufferPlan], name: &str| {
        let found = buffers.iter().find(|buffer| buffer.name == name);
        found.map(|buffer| (buffer.element, buffer.len, buffer.fill.is_some()))
    };
    let names: BTreeSet<&str> = base.iter().chain(new).map(|buffer| buffer.name.as_str()).collect();
    let differing = names.into_iter().filter(|name| shape(base, name) != shape(new, name));
    let sides = differing.map(|name| (name, described(base, name), described(new, name)));
    let refused = |(name, base, new): (&str, String, String)| Refused {
        case: case.clone(),
        part: Part::Inputs,
        base: format!("`{name}`: {base}"),
        new,
    };
    sides.map(refused).collect()
}

/// The files that two buffers are filled from, if they have the same name but other contents.
fn other_contents(base: &BufferPlan, new: &BufferPlan) -> Option<Contents> {
    let file = |buffer: &BufferPlan| buffer.fill.as_ref().and_then(FillPlan::file).map(file_name);
    let [of_base, of_new] = [file(base)?, file(new)?];
    let [base, new] = [base, new].map(describe);
    (of_base == of_new && base != new).then_some(Contents { is_expected: false, file: of_new, base, new })
}

/// The files with the expected values of two checks, if they have the same name but other contents.
fn other_expected(base: &CheckPlan, new: &CheckPlan) -> Option<Contents> {
    let [of_base, of_new] = [base.expect.file().map(file_name)?, new.expect.file().map(file_name)?];
    let [base, new] =
        [base, new].map(|check| format!("SHA-256 {:.12}", hashes::golden(&check.expect).unwrap_or_default()));
    (of_base == of_new && base != new).then_some(Contents { is_expected: true, file: of_new, base, new })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Describes a buffer: `f32[1024], uniform from 0 to 1, seed 7`.
fn describe(buffer: &BufferPlan) -> String {
    let fill = match &buffer.fill {
        None => return format!("{}[{}]", buffer.element, buffer.len),
        Some(FillPlan::Constant(value)) => format!("all {value}"),
        Some(FillPlan::Iota { start, step }) => format!("from {start} by {step}"),
        Some(FillPlan::Uniform { low, high, seed }) => format!("uniform from {low} to {high}, seed {seed}"),
        Some(FillPlan::Normal { mean, deviation, seed }) => {
            format!("normal with mean {mean} and standard deviation {deviation}, seed {seed}")
        }
        Some(FillPlan::Part(part)) => {
            format!("{} bytes at {} of a file with SHA-256 {:.12}", part.bytes, part.offset, content(&part.path))
        }
        Some(FillPlan::Npy(path) | FillPlan::Raw(path)) => format!("a file with SHA-256 {:.12}", content(path)),
        Some(
            fill @ (FillPlan::List(_)
            | FillPlan::Like { .. }
            | FillPlan::Structured { .. }
            | FillPlan::Permuted { .. }
            | FillPlan::Spliced { .. }),
        ) => format!("{fill:?}"),
    };
    format!("{}[{}], {fill}", buffer.element, buffer.len)
}

fn is_other_printed(base: &CaseJob, new: &CaseJob) -> bool {
    let [base, new] = [base, new].map(|job| job.printed.as_ref().map(describe_printed));
    base != new
}

fn differing_check(base: &CaseJob, new: &CaseJob) -> Refused {
    let [base, new_said] = [base, new].map(|job| {
        let checks = job.checks.iter().map(describe_check);
        let printed = job.printed.as_ref().map(describe_printed);
        let all: Vec<String> = checks.chain(printed).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(" and ") }
    });
    let case = new.case.key.clone();
    Refused { case, part: Part::Check, base, new: new_said }
}

/// Describes a check: `sum(partial) = sum(input), abs 0, rel 0.00001, ulp 0`.
fn describe_check(check: &CheckPlan) -> String {
    let Tolerance { abs, rel, ulp, derived } = check.tolerance;
    let abs = if derived { "abs by the terms".to_owned() } else { format!("abs {abs}") };
    let mut parts = vec![describe_expected(check), abs, format!("rel {rel}"), format!("ulp {ulp}")];
    let WholeTolerance { fraction, norm, max_norm } = check.whole;
    for (name, bound) in [("fraction", fraction), ("norm", norm), ("max_norm", max_norm)] {
        if bound > 0.0 {
            parts.push(format!("{name} {bound}"));
        }
    }
    parts.join(", ")
}

/// Describes what is checked, without the tolerance: `sum(partial) = sum(input)`.
fn describe_expected(check: &CheckPlan) -> String {
    let expected = match &check.expect {
        // Describe the expressions, since the plan has numbers where the manifest's text has names.
        ExpectPlan::Reference(expected) => format!("{} = {}", in_words(&check.actual), in_words(expected)),
        ExpectPlan::Variant(name) => format!("{} = that of `{name}`", in_words(&check.actual)),
        ExpectPlan::Part(part) => format!(
            "{} = {} bytes at {} of a file with SHA-256 {:.12}",
            in_words(&check.actual),
            part.bytes,
            part.offset,
            content(&part.path)
        ),
        ExpectPlan::Npy(path) | ExpectPlan::Raw(path) => {
            format!("{} = a file with SHA-256 {:.12}", in_words(&check.actual), content(path))
        }
        ExpectPlan::Python(function) | ExpectPlan::Cpp(function) => format!(
            "{} = {} from the file with SHA-256 {:.12}",
            in_words(&check.actual),
            function.function,
            hashes::golden(&check.expect).unwrap_or_default()
        ),
        ExpectPlan::List(values) => format!("{} = {values:?}", in_words(&check.actual)),
    };
    let mask = check.mask.as_ref().map(|mask| format!(", where {}", in_words(mask)));
    expected + &mask.unwrap_or_default()
}

fn in_words(expr: &RefExpr) -> String {
    match expr {
        RefExpr::Buffer(name) => name.clone(),
        RefExpr::Constant(value) => value.to_string(),
        RefExpr::Call { function, buffers, integers } => {
            let args = buffers.iter().map(in_words).chain(integers.iter().map(i64::to_string));
            format!("{}({})", function.name(), args.collect::<Vec<_>>().join(", "))
        }
        RefExpr::Elementwise { operation, operands } => {
            format!("{operation:?}({})", operands.iter().map(in_words).collect::<Vec<_>>().join(", "))
        }
    }
}

fn describe_printed(printed: &PrintedPlan) -> String {
    match printed {
        PrintedPlan::Lines(lines) => format!("lines with SHA-256 {:.12}", sha256_hex(lines.join("\n").as_bytes())),
        PrintedPlan::File(path) => format!("printed lines, a file with SHA-256 {:.12}", content(path)),
    }
}
