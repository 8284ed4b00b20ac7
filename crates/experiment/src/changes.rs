//! Compares two manifests of one experiment by name and value.
//!
//! Each manifest is listed as entries, one for each statement, with readable text. Entries at the same place are then
//! compared. A statement for all variants becomes one entry per variant, so that it does not matter where a manifest
//! makes it.
//!
//! A change of what decides whether a result is right is loosened, tightened or, if it is neither for certain,
//! unordered. `docs/reference/compare.md` lists which change is which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{
    ArgSpec, Axis, BlockSpec, BodySpec, BufferSpec, BuiltinSpec, CheckSpec, CompileSpec, Expectation, ExpectedFailure,
    Expression, FillSpec, FunctionParameter, GridSpec, HostSpec, LaunchSpec, LetBinding, LoopSpec, Manifest,
    MeasureSpec, PackageSpec, PrintedSpec, SearchSpec, StepSpec, StructureSpec, Times, ToleranceSpec, VariantSpec,
    WorkSpec,
};
use runner_lang::claim::{Revision, revisions};
use runner_types::{Acceptance, Claim, Effect, ElementType, ManifestChange, ManifestPart as Part, Tolerance, Value};

/// Folder of kernels, next to the manifest's folder.
const KERNELS: &str = "kernels";

/// Smallest change of a count that matters by default, in percent.
const DEFAULT_THRESHOLD: f64 = 1.0;

/// All differences: loosened ones first, then ordered by part. `known` has variants that are known to be renamed, from the
/// base's name to the new one; others are renamed if nothing else changed.
pub fn changes(base: &Manifest, new: &Manifest, known: &BTreeMap<String, String>) -> Vec<ManifestChange> {
    let [mut of_base, of_new] = [base, new].map(Listing::of);
    let mut found = Vec::new();
    let renamed = renamed(&of_base, &of_new, known);
    for (name, before) in &renamed {
        of_base.rename_variant(before, name);
    }
    for (before, name) in renamed_bindings(&of_base, &of_new) {
        of_base.rename(&before, &name);
        found.push(change(Part::Let, "", None, [Some(&before), Some(&name)], Effect::Neutral));
    }
    differences(&of_base.shared, &of_new.shared, None, &mut found);
    for (name, entries) in &of_new.variants {
        let before = renamed.get(name).unwrap_or(name);
        if before != name {
            found.push(change(Part::Variant, "", None, [Some(before), Some(name)], Effect::Neutral));
        }
        match of_base.variants.iter().find(|(known, _)| known == before) {
            Some((_, of_base)) => differences(of_base, entries, Some(name), &mut found),
            None => found.push(change(Part::Variant, "", None, [None, Some(name)], Effect::Neutral)),
        }
    }
    let is_kept = |name: &String| renamed.values().any(|before| before == name) || of_new.has(name);
    let gone = of_base.variants.iter().map(|(name, _)| name).filter(|name| !is_kept(name));
    found.extend(gone.map(|name| change(Part::Variant, "", None, [Some(name), None], Effect::Loosened)));
    judge_bindings(&mut found, [&of_base, &of_new]);
    for change in found.iter_mut().filter(|change| change.part == Part::Check) {
        change.unchecked = change.new.as_deref().and_then(|text| checked_against_itself(new, &change.name, text));
    }
    let mut claims = base.claims.clone();
    for (name, before) in &renamed {
        rename_in_claims(&mut claims, before, name);
    }
    found.extend(revisions(&claims, &new.claims).into_iter().map(revised));
    merge(found, of_new.variants.len())
}

/// Names a renamed variant in claims, which then say the same as before.
pub fn rename_in_claims(claims: &mut [Claim], from: &str, to: &str) {
    let [from, to] = [from, to].map(|name| format!("\"{name}\""));
    for claim in claims {
        claim.text = claim.text.replace(&from, &to);
    }
}

/// One statement of a manifest.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    part: Part,
    name: String,
    text: String,
    bounds: Option<ToleranceSpec>,
    /// What of the text can decide whether a result is right, if not all of it.
    decisive: Option<String>,
    /// Expressions that it depends on but that are not in its text.
    uses: String,
}

impl Entry {
    fn new(part: Part, name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), text.into());
        Self { part, name, text, bounds: None, decisive: None, uses: String::new() }
    }
}

#[derive(Debug, Default)]
struct Entries(Vec<Entry>);

impl Entries {
    fn add(&mut self, part: Part, name: impl Into<String>, text: impl Into<String>) {
        self.0.push(Entry::new(part, name, text));
    }

    fn add_some(&mut self, part: Part, name: &str, text: Option<impl Into<String>>) {
        if let Some(text) = text {
            self.add(part, name, text);
        }
    }

    /// Entries by place. Entries with the same name are numbered, so that the first is compared with the first.
    fn by_place(&self) -> BTreeMap<(Part, &str, usize), &Entry> {
        let mut counts: BTreeMap<(Part, &str), usize> = BTreeMap::new();
        let placed = self.0.iter().map(|entry| {
            let count = counts.entry((entry.part, &entry.name)).or_default();
            *count += 1;
            ((entry.part, entry.name.as_str(), *count), entry)
        });
        placed.collect()
    }
}

fn differences(base: &Entries, new: &Entries, variant: Option<&str>, found: &mut Vec<ManifestChange>) {
    let [base, new] = [base, new].map(Entries::by_place);
    let places: BTreeSet<_> = base.keys().chain(new.keys()).copied().collect();
    for place in places {
        let sides = [base.get(&place).copied(), new.get(&place).copied()];
        if let [Some(base), Some(new)] = sides
            && base.text == new.text
        {
            continue;
        }
        let texts = sides.map(|side| side.map(|entry| entry.text.as_str()));
        found.push(change(place.0, place.1, variant, texts, effect(place.0, sides)));
    }
}

fn change(part: Part, name: &str, variant: Option<&str>, sides: [Option<&str>; 2], effect: Effect) -> ManifestChange {
    let [base, new] = sides.map(|side| side.map(str::to_owned));
    let variants = variant.into_iter().map(str::to_owned).collect();
    ManifestChange { effect, part, name: name.to_owned(), variants, base, new, unchecked: None }
}

fn effect(part: Part, [base, new]: [Option<&Entry>; 2]) -> Effect {
    let only = |if_removed: Effect, if_added: Effect, if_changed: Effect| match (base, new) {
        (Some(_), None) => if_removed,
        (None, Some(_)) => if_added,
        _ => if_changed,
    };
    let name = new.or(base).map_or("", |entry| entry.name.as_str());
    match part {
        Part::Check | Part::Printed => only(Effect::Loosened, Effect::Tightened, Effect::Unordered),
        // Replaces the expected failures of all backends, which may be more or fewer.
        Part::ExpectedFailure if name.starts_with("on ") => Effect::Unordered,
        Part::Mask | Part::ExpectedFailure => only(Effect::Tightened, Effect::Loosened, Effect::Unordered),
        Part::Exclude | Part::Zip | Part::Requires | Part::Sanitizer | Part::Acceptance => {
            only(Effect::Tightened, Effect::Loosened, Effect::Neutral)
        }
        Part::Include => only(Effect::Loosened, Effect::Tightened, Effect::Neutral),
        Part::Tolerance => match [base, new].map(|side| side.and_then(|entry| entry.bounds)) {
            [Some(base), Some(new)] => of_tolerances(&base, &new),
            // The check itself was added or removed.
            _ => Effect::Neutral,
        },
        Part::Axis => match (base, new) {
            (Some(base), Some(new)) => of_values(&base.text, &new.text),
            (Some(_), None) => Effect::Loosened,
            // The cases of a new axis are new. On one backend, it replaces the values of all.
            (None, _) if name.contains(" on ") => Effect::Unordered,
            (None, _) => Effect::Neutral,
        },
        Part::Threshold => {
            let [before, now] = [base, new].map(|side| side.map_or(DEFAULT_THRESHOLD, threshold));
            if now > before { Effect::Loosened } else { Effect::Tightened }
        }
        // What uses a new buffer, or used one that is gone, has changed, too.
        Part::Buffer => match (base, new) {
            (Some(base), Some(new)) if base.decisive != new.decisive => Effect::Unordered,
            _ => Effect::Neutral,
        },
        _ => Effect::Neutral,
    }
}

fn threshold(entry: &Entry) -> f64 {
    entry.text.trim_end_matches(" %").parse().unwrap_or(DEFAULT_THRESHOLD)
}

/// Effect of a changed axis: fewer values are fewer cases.
fn of_values(base: &str, new: &str) -> Effect {
    let [base, new] = [base, new].map(|text| text.split(", ").collect::<BTreeSet<_>>());
    match (base.is_subset(&new), new.is_subset(&base)) {
        (true, true) => Effect::Neutral,
        (true, false) => Effect::Tightened,
        (false, _) => Effect::Loosened,
    }
}

/// Marks changed bindings that decide whether a result is right. If only one side has a binding, whatever uses it has
/// changed, too.
fn judge_bindings(found: &mut [ManifestChange], sides: [&Listing; 2]) {
    let deciding: BTreeSet<String> = sides.into_iter().flat_map(Listing::deciding).collect();
    let is_of_both = |name: &str| sides.iter().all(|side| side.lets().any(|entry| binding(&entry.name) == name));
    for change in found.iter_mut().filter(|change| change.part == Part::Let && !change.name.is_empty()) {
        let name = binding(&change.name);
        if deciding.contains(name) && is_of_both(name) {
            change.effect = Effect::Unordered;
        }
    }
}

/// Name of a binding without its backend.
fn binding(name: &str) -> &str {
    name.split_once(" on ").map_or(name, |(name, _)| name)
}

/// Bindings with another name and the same values wherever they are made, from the base's name to the new one.
fn renamed_bindings(base: &Listing, new: &Listing) -> Vec<(String, String)> {
    let [of_base, of_new] = [base, new].map(Listing::bindings);
    let alone = |these: &BTreeMap<String, BTreeSet<String>>, others: &BTreeMap<String, BTreeSet<String>>| {
        let own = these.iter().filter(|(name, _)| !others.contains_key(*name));
        own.map(|(name, values)| (name.clone(), values.clone())).collect::<Vec<_>>()
    };
    let (gone, added) = (alone(&of_base, &of_new), alone(&of_new, &of_base));
    let alike = |values: &BTreeSet<String>, others: &[(String, BTreeSet<String>)]| -> Vec<String> {
        others.iter().filter(|(_, other)| other == values).map(|(name, _)| name.clone()).collect()
    };
    let pairs = gone.iter().filter_map(|(before, values)| match alike(values, &added).as_slice() {
        [name] if alike(values, &gone).len() == 1 => Some((before.clone(), name.clone())),
        _ => None,
    });
    pairs.collect()
}

/// The variant that supplies the expected values of a check, if its own checks of the same value compare it only with
/// itself.
fn checked_against_itself(manifest: &Manifest, actual: &str, expected: &str) -> Option<String> {
    let is_of = |variant: &&VariantSpec| expected == format!("{actual} = {}", result_of(variant.name.text()));
    let variant = manifest.variants.iter().find(is_of)?;
    let name = variant.name.text();
    let own = variant.checks.as_deref().unwrap_or(&manifest.checks);
    let mut alike = own.iter().filter(|check| check.actual.text() == actual);
    let is_itself =
        |check: &CheckSpec| matches!(&check.expect, Expectation::Variant { name: of, span: _ } if of == name);
    alike.all(is_itself).then(|| name.to_owned())
}

fn result_of(variant: &str) -> String {
    format!("the result of {variant}")
}

/// Identifiers and other words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Replaces a whole word.
fn replace_word(text: &str, from: &str, to: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = rest.starts_with(is_of_word);
        let end = rest.find(|c| is_of_word(c) != is_word).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        replaced.push_str(if part == from { to } else { part });
        rest = after;
    }
    replaced
}

/// Effect of a changed tolerance. If any bound is higher, it accepts more.
fn of_tolerances(base: &ToleranceSpec, new: &ToleranceSpec) -> Effect {
    let bounds = |ToleranceSpec { abs, rel, ulp, fraction, norm, max_norm }: &ToleranceSpec| {
        let ulp = ulp.map(|ulp| ulp as f64);
        [*abs, *rel, ulp, *fraction, *norm, *max_norm].map(Option::unwrap_or_default)
    };
    let pairs = || bounds(base).into_iter().zip(bounds(new));
    if pairs().any(|(base, new)| new > base) {
        Effect::Loosened
    } else if pairs().any(|(base, new)| new < base) {
        Effect::Tightened
    } else {
        Effect::Neutral
    }
}

fn revised(Revision { base, new, effect }: Revision<'_>) -> ManifestChange {
    let text = |Claim { text, condition, regime, backend }: &Claim| {
        let mut all = text.clone();
        if let Some(condition) = condition {
            all.extend([" where ", condition]);
        }
        for word in [regime.map(|regime| regime.name().to_owned()), backend.map(|backend| backend.to_string())] {
            all += &word.map(|word| format!(" on {word}")).unwrap_or_default();
        }
        all
    };
    let [base, new] = [base, new].map(|claim| claim.map(text));
    change(Part::Claim, "", None, [base.as_deref(), new.as_deref()], effect)
}

/// Merges equal changes in several variants into one.
fn merge(found: Vec<ManifestChange>, of: usize) -> Vec<ManifestChange> {
    let mut merged: Vec<ManifestChange> = Vec::new();
    for change in found {
        let same = |other: &&mut ManifestChange| {
            let key = |change: &ManifestChange| (change.part, change.effect, change.variants.is_empty());
            key(other) == key(&change)
                && (&other.name, &other.base, &other.new) == (&change.name, &change.base, &change.new)
        };
        match merged.iter_mut().find(same) {
            Some(known) => {
                for variant in change.variants {
                    if !known.variants.contains(&variant) {
                        known.variants.push(variant);
                    }
                }
            }
            None => merged.push(change),
        }
    }
    for change in &mut merged {
        if change.variants.len() == of {
            change.variants.clear();
        }
    }
    merged.sort_by_key(|change| (change.effect, change.part));
    merged
}

/// Renamed variants, from the new name to the base's: those in `known`, and those with equal entries, neither of which
/// equals a third variant.
fn renamed(base: &Listing, new: &Listing, known: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_one =
        |(before, name): &(&String, &String)| base.has(before) && !new.has(before) && new.has(name) && !base.has(name);
    let mut found: BTreeMap<String, String> =
        known.iter().filter(is_one).map(|(before, name)| (name.clone(), before.clone())).collect();
    let gone: Vec<_> = base.variants.iter().filter(|(name, _)| !new.has(name)).collect();
    let added: Vec<_> = new.variants.iter().filter(|(name, _)| !base.has(name)).collect();
    let alike: Vec<(&String, &String)> = added
        .iter()
        .flat_map(|(name, entries)| {
            gone.iter().filter(|(_, before)| before.0 == entries.0).map(move |(before, _)| (name, before))
        })
        .collect();
    let is_alone = |(new, base): &&(&String, &String)| alike.iter().filter(|(n, b)| n == new || b == base).count() == 1;
    for (new, base) in alike.iter().filter(is_alone) {
        if !found.values().any(|known| known == *base) {
            found.entry((*new).clone()).or_insert_with(|| (*base).clone());
        }
    }
    found
}

/// All statements of a manifest except its claims.
#[derive(Debug, Default)]
struct Listing {
    shared: Entries,
    /// In the manifest's order.
    variants: Vec<(String, Entries)>,
}

impl Listing {
    fn has(&self, name: &str) -> bool {
        self.variants.iter().any(|(known, _)| known == name)
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.variants.iter().map(|(_, entries)| entries).chain([&self.shared]).flat_map(|entries| &entries.0)
    }

    fn lets(&self) -> impl Iterator<Item = &Entry> {
        self.entries().filter(|entry| entry.part == Part::Let)
    }

    /// All values of each binding, with the place that makes them.
    fn bindings(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let places = self.variants.iter().map(|(name, entries)| (name.as_str(), entries)).chain([("", &self.shared)]);
        for (place, entries) in places {
            for Entry { name, text, .. } in entries.0.iter().filter(|entry| entry.part == Part::Let) {
                let (name, backend) = name.split_once(" on ").unwrap_or((name, ""));
                found.entry(name.to_owned()).or_default().insert(format!("{place} on {backend}: {text}"));
            }
        }
        found
    }

    /// Renames a variant where others name it: as the baseline, and as the source of expected values.
    fn rename_variant(&mut self, from: &str, to: &str) {
        let [expected, renamed] = [from, to].map(|name| format!(" = {}", result_of(name)));
        let entries = self.variants.iter_mut().map(|(_, entries)| entries).chain([&mut self.shared]);
        for Entry { part, text, .. } in entries.flat_map(|entries| &mut entries.0) {
            if *part == Part::Baseline && text.split(", ").next() == Some(from) {
                text.replace_range(..from.len(), to);
            } else if *part == Part::Check && text.ends_with(&expected) {
                text.replace_range(text.len() - expected.len().., &renamed);
            }
        }
    }

    /// Renames a binding everywhere.
    fn rename(&mut self, from: &str, to: &str) {
        let entries = self.variants.iter_mut().map(|(_, entries)| entries).chain([&mut self.shared]);
        for Entry { name, text, decisive, .. } in entries.flat_map(|entries| &mut entries.0) {
            *name = replace_word(name, from, to);
            *text = replace_word(text, from, to);
            *decisive = decisive.as_ref().map(|text| replace_word(text, from, to));
        }
    }

    /// Names that checks, inputs and the selection of cases depend on, also through other bindings.
    fn deciding(&self) -> BTreeSet<String> {
        let is_deciding = |entry: &&Entry| {
            matches!(
                entry.part,
                Part::Check
                    | Part::Mask
                    | Part::Printed
                    | Part::ExpectedFailure
                    | Part::Buffer
                    | Part::Requires
                    | Part::Exclude
            )
        };
        let texts = |entry: &Entry| format!("{} {} {}", entry.name, entry.text, entry.uses);
        let mut found: BTreeSet<String> = BTreeSet::new();
        let mut next: Vec<String> = self.entries().filter(is_deciding).map(texts).collect();
        while let Some(text) = next.pop() {
            for word in words(&text) {
                if found.insert(word.to_owned()) {
                    next.extend(
                        self.lets().filter(|entry| binding(&entry.name) == word).map(|entry| entry.text.clone()),
                    );
                }
            }
        }
        found
    }

    fn of(manifest: &Manifest) -> Self {
        let Manifest {
            source,
            project: _,
            files: _,
            hash: _,
            name,
            title,
            question,
            template,
            baseline,
            compare,
            steps,
            packages,
            axes,
            zip,
            exclude,
            include,
            on,
            lets,
            buffers,
            checks,
            printed,
            work,
            measure,
            search,
            variants,
            claims: _,
            comparison,
        } = manifest;
        let folder = source.path.parent().unwrap_or(Path::new(""));
        let mut shared = Entries::default();
        shared.add(Part::Experiment, "", name);
        shared.add(Part::Report, "title", title);
        shared.add_some(Part::Report, "question", question.clone());
        shared.add_some(Part::Report, "template", template.as_ref().map(|(path, _)| path.display().to_string()));
        let baseline = baseline.as_ref().map(|baseline| {
            let at = baseline.at.iter().map(|(axis, value)| format!("{axis} = {value}"));
            std::iter::once(baseline.variant.clone()).chain(at).collect::<Vec<_>>().join(", ")
        });
        shared.add_some(Part::Baseline, "", baseline);
        shared.add(Part::Compared, "", compare.join(", "));
        shared.add(Part::Steps, "steps", steps.to_string());
        for PackageSpec { name, registry, published, version, sha256, license: _, bytes: _ } in packages {
            let text = format!("{} {published} {version}, SHA-256 {sha256:.12}", registry.key());
            shared.add(Part::Package, name, text);
        }
        for axis in axes {
            add_axis(axis, "", &mut shared);
        }
        for axes in zip {
            shared.add(Part::Zip, axes.join(", "), "zipped");
        }
        for rule in exclude {
            shared.add(Part::Exclude, rule.when.text(), &rule.why);
        }
        for point in include {
            let values: Vec<String> = point.iter().map(|(axis, value)| format!("{axis} = {value}")).collect();
            shared.add(Part::Include, values.join(", "), "included");
        }
        for (backend, replaced) in on {
            for axis in &replaced.axes {
                add_axis(axis, &format!(" on {backend}"), &mut shared);
            }
            add_lets(&replaced.lets, &format!(" on {backend}"), &mut shared);
        }
        add_lets(lets, "", &mut shared);
        for buffer in buffers {
            add_buffer(buffer, &mut shared);
        }
        add_measure(measure, &mut shared);
        add_search(search, &mut shared);
        shared.add_some(Part::Threshold, "", comparison.threshold.map(|threshold| format!("{} %", threshold * 100.0)));
        for Acceptance { variant, condition, reason, commit, by } in &comparison.accept {
            let of = variant.as_deref().unwrap_or("every variant");
            let of = condition.as_ref().map_or_else(|| of.to_owned(), |condition| format!("{of} where {condition}"));
            shared.add(Part::Acceptance, of, format!("up to +{} % ({commit}: {reason})", by * 100.0));
        }
        let of_variant = |variant: &VariantSpec| {
            let all = (checks.as_slice(), printed.as_ref(), work, buffers.as_slice());
            (variant.name.text().to_owned(), of_variant(variant, all, folder))
        };
        Self { shared, variants: variants.iter().map(of_variant).collect() }
    }
}

type Shared<'a> = (&'a [CheckSpec], Option<&'a PrintedSpec>, &'a WorkSpec, &'a [BufferSpec]);

fn of_variant(variant: &VariantSpec, (checks, printed, work, shared): Shared<'_>, folder: &Path) -> Entries {
    let VariantSpec {
        name: _,
        axes,
        requires,
        lets,
        buffers,
        work: own_work,
        checks: own_checks,
        printed: own_printed,
        fails,
        on,
        unsanitized,
        sampled,
        body,
        span: _,
    } = variant;
    let mut found = Entries::default();
    for axis in axes {
        add_axis(axis, "", &mut found);
    }
    add_requires(requires, "", &mut found);
    add_lets(lets, "", &mut found);
    for buffer in buffers {
        add_buffer(buffer, &mut found);
    }
    let WorkSpec { bytes, flops } = own_work.as_ref().unwrap_or(work);
    found.add_some(Part::Work, "bytes", bytes.as_ref().map(|bytes| bytes.text()));
    found.add_some(Part::Work, "flops", flops.as_ref().map(|flops| flops.text()));
    let printed = own_checks.as_ref().map_or(printed, |_| own_printed.as_ref());
    for check in own_checks.as_deref().unwrap_or(checks) {
        add_check(check, [buffers, shared], &mut found);
    }
    found.add_some(
        Part::Printed,
        "",
        printed.map(|printed| match printed {
            PrintedSpec::Lines(lines) => lines.iter().map(|line| line.text()).collect::<Vec<_>>().join(" / "),
            PrintedSpec::File(_, name) => name.text().to_owned(),
        }),
    );
    add_fails(fails, "", &mut found);
    for (backend, own) in on {
        add_requires(&own.requires, &format!(" on {backend}"), &mut found);
        match &own.fails {
            Some(own) if fails.is_empty() => add_fails(own, &format!(" on {backend}"), &mut found),
            Some(own) => found.add(Part::ExpectedFailure, format!("on {backend}"), failures_text(own)),
            None => {}
        }
    }
    if let Some(unsanitized) = unsanitized {
        let classes: Vec<&str> = unsanitized.classes.iter().map(|class| class.name()).collect();
        for class in if classes.is_empty() { vec!["everything"] } else { classes } {
            found.add(Part::Sanitizer, class, unsanitized.reason.as_str());
        }
    }
    if *sampled {
        found.add(Part::Setting, "sampled", "true");
    }
    match body {
        BodySpec::Launches { rounds, launches, steps } => {
            found.add_some(Part::Steps, "rounds", rounds.as_ref().map(|rounds| rounds.text()));
            for launch in launches {
                add_launch(launch, folder, &mut found);
            }
            found.add_some(Part::Steps, "order", steps.as_deref().map(steps_text));
        }
        BodySpec::Builtin(BuiltinSpec::Memcpy(copies)) => {
            let copies: Vec<String> = copies.iter().map(|(from, to)| format!("{from} to {to}")).collect();
            found.add(Part::Kernel, "", format!("memcpy of {}", copies.join(", ")));
        }
        BodySpec::Cpu(reference) => found.add(Part::Kernel, "", format!("cpu {}", reference.text())),
        BodySpec::Host(host) => {
            let HostSpec { source, function, args, libraries, compile } = host.as_ref();
            found.add(Part::Source, "", file(source, folder));
            found.add(Part::Kernel, "", function.text());
            found.add(Part::Arguments, "", arguments(args));
            for library in libraries {
                found.add(Part::Option, format!("-l{}", library.text()), "linked");
            }
            add_compile(compile, folder, &mut found);
        }
    }
    found
}

fn add_axis(Axis { name, values, span: _ }: &Axis, on: &str, found: &mut Entries) {
    let values: Vec<String> = values.iter().map(Value::to_string).collect();
    found.add(Part::Axis, format!("{name}{on}"), values.join(", "));
}

fn add_requires(requires: &[Expression], on: &str, found: &mut Entries) {
    for condition in requires {
        found.add(Part::Requires, format!("{}{on}", condition.text()), "required");
    }
}

fn add_lets(lets: &[LetBinding], on: &str, found: &mut Entries) {
    for LetBinding { name, value } in lets {
        found.add(Part::Let, format!("{name}{on}"), value.text());
    }
}

fn add_fails(fails: &[ExpectedFailure], on: &str, found: &mut Entries) {
    for ExpectedFailure { failure, condition } in fails {
        let text = condition.as_ref().map_or("always", |condition| condition.text());
        found.add(Part::ExpectedFailure, format!("{}{on}", failure.name()), text);
    }
}

fn failures_text(fails: &[ExpectedFailure]) -> String {
    let one = |ExpectedFailure { failure, condition }: &ExpectedFailure| match condition {
        Some(condition) => format!("{} where {}", failure.name(), condition.text()),
        None => failure.name().to_owned(),
    };
    if fails.is_empty() { "none".to_owned() } else { fails.iter().map(one).collect::<Vec<_>>().join(", ") }
}

fn add_buffer(buffer: &BufferSpec, found: &mut Entries) {
    let BufferSpec { name, element, len, fill, access, symbol, allocate, vary, poison } = buffer;
    let mut parts = vec![format!("{}[{}]", element.text(), len.text())];
    parts.extend(fill.as_ref().map(fill_text));
    // Each part is a key of the manifest with its value.
    let access = format!("access {access:?}").to_lowercase();
    let vary = vary.map(|vary| format!("vary {vary:?}").to_lowercase());
    let poison = poison.then(|| "poison".to_owned());
    // Another seed gives other random numbers of the same kind.
    let unseeded = fill.as_ref().map(|fill| without_seed(&fill_text(fill)));
    let decisive = unseeded.into_iter().chain([access.clone()]).chain(vary.clone()).chain(poison.clone());
    let decisive: Vec<String> = decisive.collect();
    parts.push(access);
    parts.extend(symbol.as_ref().map(|symbol| format!("symbol {}", symbol.text())));
    if *allocate != runner_types::Allocation::default() {
        parts.push(format!("allocate {allocate:?}").to_lowercase());
    }
    parts.extend(vary.into_iter().chain(poison));
    let decisive = Some(decisive.join(", "));
    found.0.push(Entry { decisive, ..Entry::new(Part::Buffer, name, parts.join(", ")) });
}

fn without_seed(fill: &str) -> String {
    let parts = fill.split(", ").map(|part| if part.starts_with("seed ") { "seed" } else { part });
    parts.collect::<Vec<_>>().join(", ")
}

fn fill_text(fill: &FillSpec) -> String {
    match fill {
        FillSpec::Constant(value) => format!("all {}", value.text()),
        FillSpec::Iota { start, step } => format!("from {} by {}", start.text(), step.text()),
        FillSpec::Uniform { low, high, seed } => {
            format!("uniform from {} to {}, seed {seed}", low.text(), high.text())
        }
        FillSpec::Normal { mean, deviation, seed } => {
            format!("normal with mean {} and standard deviation {}, seed {seed}", mean.text(), deviation.text())
        }
        FillSpec::Npy(spec) | FillSpec::Raw(spec) => format!("the file {}", spec.name.text()),
        FillSpec::Tensor(spec) => format!("{} of the file {}", spec.tensor.text(), spec.file.name.text()),
        FillSpec::List(values) => format!("[{}]", texts(values)),
        FillSpec::Like { buffer, fill } => format!("like {buffer} ({})", fill_text(fill)),
        FillSpec::Structured { structure, seed } => format!("{}, seed {seed}", structure_text(structure)),
    }
}

fn structure_text(structure: &StructureSpec) -> String {
    match structure {
        StructureSpec::Sorted { low, high } => format!("sorted from {} to {}", low.text(), high.text()),
        StructureSpec::Permutation => "permutation".to_owned(),
        StructureSpec::OneHot(columns) => format!("one-hot rows of {}", columns.text()),
        StructureSpec::Identity(columns) => format!("identity of {} columns", columns.text()),
        StructureSpec::Dominant(columns) => format!("diagonally dominant of {} columns", columns.text()),
        StructureSpec::Zipf { values, exponent } => {
            format!("Zipf of {} values, exponent {}", values.text(), exponent.text())
        }
        StructureSpec::CsrRows { nonzeros, columns } => {
            format!("CSR rows of {} in {} columns", nonzeros.text(), columns.text())
        }
        StructureSpec::CsrColumns { rows, begins: _, nonzeros, columns } => {
            format!("CSR columns of {rows}, {} in {} columns", nonzeros.text(), columns.text())
        }
    }
}

fn add_check(check: &CheckSpec, buffers: [&[BufferSpec]; 2], found: &mut Entries) {
    let CheckSpec { actual, expect, tolerance, mask, error: _ } = check;
    let name = actual.text();
    let expected = match expect {
        Expectation::Reference(reference) => reference.text().to_owned(),
        Expectation::Variant { name, span: _ } => result_of(name),
        Expectation::Npy(spec) | Expectation::Raw(spec) => format!("the file {}", spec.name.text()),
        Expectation::Tensor(spec) => format!("{} of the file {}", spec.tensor.text(), spec.file.name.text()),
        Expectation::List(values) => format!("[{}]", texts(values)),
        Expectation::Python(function) | Expectation::Cpp(function) => function.text.clone(),
    };
    let uses = match expect {
        Expectation::Python(function) | Expectation::Cpp(function) => {
            let parameter = |parameter: &FunctionParameter| match parameter {
                FunctionParameter::Buffer(name) => name.clone(),
                FunctionParameter::Value(value) => value.text().to_owned(),
            };
            function.parameters.iter().map(parameter).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    };
    found.0.push(Entry { uses, ..Entry::new(Part::Check, name, format!("{name} = {expected}")) });
    let element = buffers.into_iter().flatten().find(|buffer| actual.buffers().contains(&buffer.name));
    let element = element.and_then(|buffer| buffer.element.text().parse().ok());
    let bounds = Some(effective(tolerance, element));
    found.0.push(Entry { bounds, ..Entry::new(Part::Tolerance, name, tolerance_text(tolerance)) });
    found.add_some(Part::Mask, name, mask.as_ref().map(|mask| mask.text()));
}

/// The bounds, or the type's default if there are none.
fn effective(spec: &ToleranceSpec, element: Option<ElementType>) -> ToleranceSpec {
    let is_default = ToleranceSpec { fraction: None, ..*spec } == ToleranceSpec::default();
    let default = element.filter(|_| is_default).map(Tolerance::default_for);
    default.map_or(*spec, |default| ToleranceSpec { rel: Some(default.rel), ulp: Some(default.ulp), ..*spec })
}

fn tolerance_text(ToleranceSpec { abs, rel, ulp, fraction, norm, max_norm }: &ToleranceSpec) -> String {
    let ulp = ulp.map(|ulp| ulp as f64);
    let named =
        [("abs", *abs), ("rel", *rel), ("ulp", ulp), ("fraction", *fraction), ("norm", *norm), ("max_norm", *max_norm)];
    let given: Vec<String> = named
        .into_iter()
        .filter_map(|(name, bound)| {
            let bound = bound?;
            // Small bounds are written in the notation of manifests.
            Some(if bound != 0.0 && bound < 1e-3 { format!("{name} {bound:e}") } else { format!("{name} {bound}") })
        })
        .collect();
    if given.is_empty() { "the type's default".to_owned() } else { given.join(", ") }
}

fn add_launch(launch: &LaunchSpec, folder: &Path, found: &mut Entries) {
    let LaunchSpec { label, source, kernel, grid, block, settings, args, repeat, cluster, persist, lets, compile } =
        launch;
    found.add(Part::Source, "", file(source, folder));
    found.add(Part::Kernel, "", kernel.text());
    found.add_some(Part::Setting, "label", label.clone());
    let grid = match grid {
        GridSpec::Dims(dims) => format!("[{}]", texts(dims)),
        GridSpec::Occupancy => "occupancy".to_owned(),
    };
    let block = match block {
        BlockSpec::Dims(dims) => format!("[{}]", texts(dims)),
        BlockSpec::Occupancy => "occupancy".to_owned(),
    };
    found.add(Part::Grid, "", grid);
    found.add(Part::Block, "", block);
    found.add(Part::Arguments, "", arguments(args));
    for (setting, value) in settings.given() {
        found.add(Part::Setting, setting.name, value.map_or("true", |value| value.text()));
    }
    found.add_some(Part::Setting, "repeat", repeat.as_ref().map(|repeat| repeat.text()));
    found.add_some(Part::Setting, "cluster", cluster.as_ref().map(|cluster| format!("[{}]", texts(cluster))));
    let persist = persist.as_ref().map(|persist| format!("{}, ratio {}", persist.buffer, persist.ratio.text()));
    found.add_some(Part::Setting, "persist", persist);
    add_lets(lets, "", found);
    add_compile(compile, folder, found);
}

fn add_compile(compile: &CompileSpec, folder: &Path, found: &mut Entries) {
    let CompileSpec { defines, options, include_paths, settings, compiler, linked } = compile;
    for (name, value) in defines {
        found.add(Part::Define, name, value.text());
    }
    for option in options {
        found.add(Part::Option, option.text(), "given");
    }
    for path in include_paths {
        found.add(Part::IncludePath, file(path, folder), "searched");
    }
    for (setting, value) in settings.given() {
        found.add(Part::Setting, setting.name, value.map_or("true", |value| value.text()));
    }
    found.add(Part::Compiler, "", compiler.name());
    for path in linked {
        found.add(Part::Source, "linked", file(path, folder));
    }
}

fn add_measure(measure: &MeasureSpec, found: &mut Entries) {
    let MeasureSpec {
        regimes,
        precision,
        timeout,
        warmup,
        min_samples,
        max_samples,
        budget,
        energy,
        processes,
        metrics,
    } = measure;
    let regimes: Vec<&str> = regimes.iter().map(|regime| regime.name()).collect();
    let texts = [
        ("regimes", regimes.join(", ")),
        ("precision", format!("{} %", precision * 100.0)),
        ("timeout", format!("{timeout} s")),
        ("warmup", warmup.to_string()),
        ("min_samples", min_samples.to_string()),
        ("max_samples", max_samples.to_string()),
        ("budget", format!("{budget} s")),
        ("energy", energy.to_string()),
    ];
    for (name, text) in texts {
        found.add(Part::Measure, name, text);
    }
    found.add_some(Part::Measure, "processes", processes.map(|processes| processes.to_string()));
    for metric in metrics {
        found.add(Part::Measure, format!("metric {metric}"), "counted");
    }
}

fn add_search(search: &SearchSpec, found: &mut Entries) {
    let SearchSpec { strategy, budget, seed, objectives, finalists, samples, drop_above, axes } = search;
    let texts = [
        ("strategy", strategy.clone()),
        ("budget", budget.clone()),
        ("seed", seed.map(|seed| seed.to_string())),
        ("objectives", Some(objectives.join(", ")).filter(|text| !text.is_empty())),
        ("finalists", finalists.map(|count| count.to_string())),
        ("samples", samples.map(|count| count.to_string())),
        ("drop_above", drop_above.map(|factor| factor.to_string())),
    ];
    for (name, text) in texts {
        found.add_some(Part::Search, name, text);
    }
    for Axis { name, values, span: _ } in axes {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        found.add(Part::Search, format!("axis {name}"), values.join(", "));
    }
}

fn steps_text(steps: &[StepSpec]) -> String {
    let one = |step: &StepSpec| match step {
        StepSpec::Launch(index) => format!("launch {}", index + 1),
        StepSpec::Memset { buffer, value } => format!("{buffer} = {}", value.text()),
        StepSpec::Copy { from, to } => format!("copy {from} to {to}"),
        StepSpec::Swap(a, b) => format!("swap {a} and {b}"),
        StepSpec::Loop(LoopSpec { times, lets, steps }) => {
            let times = match times {
                Times::Fixed(count) => format!("{} times", count.text()),
                Times::Until { condition, at_most } => {
                    format!("until {}, at most {} times", condition.text(), at_most.text())
                }
            };
            let lets: Vec<String> =
                lets.iter().map(|LetBinding { name, value }| format!("{name} = {}; ", value.text())).collect();
            format!("{times} ({}{})", lets.concat(), steps_text(steps))
        }
    };
    steps.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn arguments(args: &[ArgSpec]) -> String {
    args.iter().map(argument).collect::<Vec<_>>().join(", ")
}

fn argument(arg: &ArgSpec) -> String {
    match arg {
        ArgSpec::Buffer(name) => name.clone(),
        ArgSpec::Offset { buffer, offset } => format!("{buffer} + {}", offset.text()),
        ArgSpec::Struct(fields) => format!("{{{}}}", arguments(fields)),
        ArgSpec::Named(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, arg)| format!("{name} = {}", argument(arg))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        ArgSpec::Array { of, count, align } => format!("{} × {}, align {align}", argument(of), count.text()),
        ArgSpec::Texture(texture) => {
            let sampler =
                texture.sampler.as_ref().map_or_else(|| "surface".to_owned(), |sampler| format!("{sampler:?}"));
            format!("{} {}[{}] {sampler}", texture.kind.name(), texture.buffer, texts(&texture.size))
        }
        ArgSpec::Scalar { element, value } => format!("{}({})", element.text(), value.text()),
    }
}

fn texts(expressions: &[Expression]) -> String {
    expressions.iter().map(|expression| expression.text()).collect::<Vec<_>>().join(", ")
}

/// Name of a file as a manifest in `folder` refers to it.
fn file(path: &Path, folder: &Path) -> String {
    let kernels = folder.parent().map(|above| above.join(KERNELS));
    let mut folders = kernels.into_iter().chain([folder.join("..").join(KERNELS), folder.to_owned()]);
    let named = folders.find_map(|folder| path.strip_prefix(folder).ok().map(Path::to_owned));
    // A package's folder is in the cache, and its path means nothing to readers.
    let named = named.or_else(|| path.file_name().map(|name| Path::new(name).to_owned()));
    named.unwrap_or_else(|| path.to_owned()).display().to_string()
}
