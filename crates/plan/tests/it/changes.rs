//! Differences between two manifests: their names, the values on both sides, and whether the new manifest accepts more.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use runner_experiment::{Manifest, changes};
use runner_files::project::Project;
use runner_types::Effect::{self, Loosened, Neutral, Tightened, Unordered};
use runner_types::{ManifestPart as Part, SourceText};
use tempfile::TempDir;

const MANIFEST: &str = include_str!("../../../../tests/it/cli/pull_requests/sum.toml");
const KERNEL: &str = include_str!("../../../../tests/it/cli/pull_requests/sum.cu");

/// A folder with the files that the manifest names.
fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("experiments/sum.toml", MANIFEST), ("kernels/sum.cu", KERNEL), ("kernels/load.cuh", "")] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn read(folder: &Path, text: &str) -> Manifest {
    let path = folder.join("experiments/sum.toml");
    let source = Arc::new(SourceText { path: path.clone(), text: text.to_owned() });
    let read = runner_manifest::parse_within(&source, Project::from_manifest(&path));
    read.unwrap_or_else(|faults| panic!("{}", faults.render_within(false, Some(100))))
}

/// Each change as its effect, its part, and `name (variants): base → new`, with `-` for a value that is not stated.
fn described(base: &str, new: &str) -> Vec<(Effect, Part, String)> {
    // Like the files of a revision, those of the base are in another folder.
    let (there, here) = (project(), project());
    let found = changes(&read(there.path(), base), &read(here.path(), new), &BTreeMap::new());
    let one = |change: runner_types::ManifestChange| {
        let side = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let of = change.variants.join(" ");
        let text = format!("{} ({of}): {} → {}", change.name, side(change.base), side(change.new));
        (change.effect, change.part, text)
    };
    found.into_iter().map(one).collect()
}

#[test]
fn every_change_of_a_manifest_is_named_with_the_values_of_both() {
    let tree = "[128]\nargs   = [\"input\", \"sums\"]";
    let edits: [(&str, &str, Effect, Part, &str); 22] = [
        ("baseline = \"tree\"", "baseline = \"two\"", Neutral, Part::Baseline, " (): tree → two"),
        ("[4096]", "[8192, 16384]", Loosened, Part::Axis, "n (): 4096 → 8192, 16384"),
        ("rel = 1e-5", "rel = 1e-2", Loosened, Part::Tolerance, "sum(sums) (): rel 1e-5 → rel 0.01"),
        ("rel = 1e-5", "rel = 1e-6", Tightened, Part::Tolerance, "sum(sums) (): rel 1e-5 → rel 1e-6"),
        ("rel = 1e-5", "rel = 1e-6, abs = 1", Loosened, Part::Tolerance, "sum(sums) (): rel 1e-5 → abs 1, rel 1e-6"),
        (
            "rel = 1e-5",
            "rel = 1e-5, fraction = 0.01",
            Loosened,
            Part::Tolerance,
            "sum(sums) (): rel 1e-5 → rel 1e-5, fraction 0.01",
        ),
        (
            "\"sum(input)\"",
            "\"sum(input) + 1\"",
            Unordered,
            Part::Check,
            "sum(sums) (): sum(sums) = sum(input) → sum(sums) = sum(input) + 1",
        ),
        (
            "seed = 7",
            "seed = 8",
            Neutral,
            Part::Buffer,
            "input (): f32[n], uniform from 0 to 1, seed 7, access in → f32[n], uniform from 0 to 1, seed 8, access in",
        ),
        (
            "< 0.6 *",
            "< 0.9 *",
            Loosened,
            Part::Claim,
            " (): counter(\"inst_executed\", \"four\") < 0.6 * counter(\"inst_executed\", \"tree\") → \
             counter(\"inst_executed\", \"four\") < 0.9 * counter(\"inst_executed\", \"tree\")",
        ),
        (
            "< 0.6 *",
            "< 0.5 *",
            Tightened,
            Part::Claim,
            " (): counter(\"inst_executed\", \"four\") < 0.6 * counter(\"inst_executed\", \"tree\") → \
             counter(\"inst_executed\", \"four\") < 0.5 * counter(\"inst_executed\", \"tree\")",
        ),
        (
            "[[claim]]\nthat = 'counter(\"inst_executed\", \"four\") < 0.6 * counter(\"inst_executed\", \"tree\")'",
            "",
            Loosened,
            Part::Claim,
            " (): counter(\"inst_executed\", \"four\") < 0.6 * counter(\"inst_executed\", \"tree\") → -",
        ),
        ("name   = \"two\"", "name   = \"pairs\"", Neutral, Part::Variant, " (): two → pairs"),
        (
            tree,
            &format!("{tree}\noptions = [\"--use_fast_math\"]"),
            Neutral,
            Part::Option,
            "--use_fast_math (tree): - → given",
        ),
        (tree, &format!("{tree}\ndefines = {{ FAST = 1 }}"), Neutral, Part::Define, "FAST (tree): - → 1"),
        (tree, &format!("{tree}\nshared = 1024"), Neutral, Part::Setting, "shared (tree): - → 1024"),
        ("block  = [64]", "block  = [32]", Neutral, Part::Block, " (two): [64] → [32]"),
        ("kernel = \"sum<2>\"", "kernel = \"sum<8>\"", Neutral, Part::Kernel, " (two): sum<2> → sum<8>"),
        (
            tree,
            &format!("{tree}\nsanitize = {{ off = [\"race\"], reason = \"benign\" }}"),
            Loosened,
            Part::Sanitizer,
            "race (tree): - → benign",
        ),
        (
            "block  = [64]",
            "block  = [64]\nfails  = \"wrong\"",
            Loosened,
            Part::ExpectedFailure,
            "wrong (two): - → always",
        ),
        (tree, &format!("{tree}\nrequires = [\"n > 1\"]"), Loosened, Part::Requires, "n > 1 (tree): - → required"),
        ("steps    = false", "steps    = true", Neutral, Part::Steps, "steps (): false → true"),
        ("[axes]", "[measure]\nwarmup = 7\n\n[axes]", Neutral, Part::Measure, "warmup (): 2 → 7"),
    ];
    for (from, to, effect, part, text) in edits {
        let new = MANIFEST.replace(from, to);
        assert_ne!(new, MANIFEST, "{from}");
        assert_eq!(described(MANIFEST, &new), [(effect, part, text.to_owned())], "{from} → {to}");
    }
}

const CHECKED: &str = "[let]
m = \"n\"
half = \"m / 2\"
threads = \"128\"

[buffers.mask]
type = \"i32\"
len  = \"n / 128\"
fill = \"1\"

[[check]]
actual = \"sums[0..half / 64]\"
expect = \"input[0..half / 64]\"
where  = \"mask != 0\"

[[check]]
actual";

/// Text of the manifest, its replacement, and the changes that are found.
type Edit = (&'static str, &'static str, &'static [(Effect, Part)]);

/// Each edit of a manifest that decides whether a result is right is loosened or tightened, or unordered if neither is
/// certain. What cannot let a wrong result pass is neutral.
#[test]
fn what_decides_whether_a_result_is_right_is_never_neutral() {
    let base = MANIFEST.replacen("[[check]]\nactual", CHECKED, 1);
    let edits: [Edit; 19] = [
        ("where  = \"mask != 0\"", "where  = \"mask == 1\"", &[(Unordered, Part::Mask)]),
        ("where  = \"mask != 0\"\n", "", &[(Tightened, Part::Mask)]),
        ("fill = \"1\"", "fill = \"0\"", &[(Unordered, Part::Buffer)]),
        ("uniform = [0, 1]", "uniform = [0, 0]", &[(Unordered, Part::Buffer)]),
        ("uniform = [0, 1], seed = 7", "uniform = [0, 1], seed = 9", &[(Neutral, Part::Buffer)]),
        // Bindings of a slice, directly and through another one, on all backends and on one.
        ("half = \"m / 2\"", "half = \"128\"", &[(Unordered, Part::Let)]),
        ("m = \"n\"", "m = \"128\"", &[(Unordered, Part::Let)]),
        ("[axes]", "[on.sim.let]\nm = \"128\"\n\n[axes]", &[(Unordered, Part::Let)]),
        (
            "args   = [\"input\", \"sums\"]",
            "args   = [\"input\", \"sums\"]\nlet    = { m = \"128\" }",
            &[(Unordered, Part::Let)],
        ),
        ("threads = \"128\"", "threads = \"64\"", &[(Neutral, Part::Let)]),
        ("half", "middle", &[(Neutral, Part::Let)]),
        ("[axes]", "[on.cuda.axes]\nn = [2048]\n\n[axes]", &[(Unordered, Part::Axis)]),
        ("[4096]", "[4096, 8192]", &[(Tightened, Part::Axis)]),
        ("block  = [64]", "block  = [64]\non.cuda.requires = [\"n < 0\"]", &[(Loosened, Part::Requires)]),
        ("block  = [64]", "block  = [64]\non.cuda.fails = \"wrong\"", &[(Loosened, Part::ExpectedFailure)]),
        ("steps    = false", "steps    = false\nthreshold = \"30%\"", &[(Loosened, Part::Threshold)]),
        (
            "[axes]",
            "[matrix]\nexclude = [{ when = \"n > 1\", why = \"large\" }]\n\n[axes]",
            &[(Loosened, Part::Exclude)],
        ),
        ("\"sum(input)\"", "{ variant = \"tree\" }", &[(Unordered, Part::Check)]),
        ("sums[0..half / 64]", "sums[0..half / 32]", &[(Loosened, Part::Check), (Tightened, Part::Check)]),
    ];
    for (from, to, expected) in edits {
        let new = base.replace(from, to);
        assert_ne!(new, base, "{from}");
        let found = described(&base, &new);
        let kinds: Vec<(Effect, Part)> = found.iter().map(|(effect, part, _)| (*effect, *part)).collect();
        let of_masks =
            |found: &&(Effect, Part)| !matches!(found.1, Part::Mask | Part::Tolerance) || expected.contains(*found);
        let kinds: Vec<(Effect, Part)> = kinds.iter().filter(of_masks).copied().collect();
        assert_eq!(kinds, expected, "{from} → {to}: {found:?}");
    }
}

/// Only `tree` supplies expected values, and is itself compared with nothing else.
#[test]
fn a_variant_that_is_checked_against_itself_is_named() {
    let (there, here) = (project(), project());
    let unchecked = |expected: &str| {
        let new = MANIFEST.replace("\"sum(input)\"", expected);
        let found = changes(&read(there.path(), MANIFEST), &read(here.path(), &new), &BTreeMap::new());
        found.into_iter().find(|change| change.part == Part::Check).and_then(|change| change.unchecked)
    };
    assert_eq!(unchecked("{ variant = \"tree\" }"), Some("tree".to_owned()));
    assert_eq!(unchecked("\"sum(input) + 1\""), None);
}

/// A tolerance is stated where the type's default applied before: 1e-5 and one ulp for f32.
#[test]
fn a_tolerance_is_compared_with_the_default_that_it_replaces() {
    let without = MANIFEST.replace("tolerance = { rel = 1e-5 }\n", "");
    assert_ne!(without, MANIFEST);
    for (bound, expected) in [("1e-2", Loosened), ("1e-7", Tightened)] {
        let given = MANIFEST.replace("1e-5", bound);
        let found = described(&without, &given);
        assert_eq!(
            found.iter().map(|(effect, part, _)| (*effect, *part)).collect::<Vec<_>>(),
            [(expected, Part::Tolerance)]
        );
    }
}

#[test]
fn what_is_said_of_all_variants_is_named_once_and_what_is_of_some_names_them() {
    let every = MANIFEST.replace("args   = [\"input\", \"sums\"]", "args   = [\"input\", \"sums\"]\nshared = 64");
    assert_eq!(described(MANIFEST, &every), [(Neutral, Part::Setting, "shared (): - → 64".to_owned())]);
    let [first, second] = ["block  = [64]", "block  = [32]"];
    let some = MANIFEST.replace(first, &format!("{first}\nshared = 64"));
    let some = some.replace(second, &format!("{second}\nshared = 64"));
    assert_eq!(described(MANIFEST, &some), [(Neutral, Part::Setting, "shared (two four): - → 64".to_owned())]);
}

#[test]
fn comments_and_the_order_of_keys_are_no_change() {
    let moved =
        MANIFEST.replace("source = \"sum.cu\"\nkernel = \"sum<1>\"", "kernel = \"sum<1>\"\nsource = \"sum.cu\"");
    assert_ne!(moved, MANIFEST);
    assert_eq!(described(MANIFEST, &format!("# A comment.\n{moved}")), []);
}
