//! Parts of a plan, expanded without the rest.

use runner_plan::{self, PlanOptions, Shards};
use runner_types::BackendKind;

/// Zipped axes, one of which is compared; another compared axis; included points, one of them in a group of the
/// product; excluded and filtered cells.
const MANIFEST: &str = r#"
[experiment]
name = "parts"
title = "Parts of a plan"
compare = ["layout", "b"]
[axes]
n = [1, 2, 3]
layout = [1, 2]
a = [10, 20, 30]
b = [7, 8, 9]
[matrix]
zip = [["a", "b"]]
include = [{ n = 1, layout = 5, a = 10, b = 7 }, { n = 9, layout = 1, a = 10, b = 7 }]
exclude = [{ when = "n == 2 && layout == 1", why = "no" }]
[buffers.data]
type = "i32"
len = "n"
fill = 0
[[variant]]
name = "one"
source = "k.cu"
kernel = "k"
grid = [1]
block = [32]
args = ["data"]
[[variant]]
name = "two"
source = "k.cu"
kernel = "k"
grid = [1]
block = [64]
args = ["data"]
"#;

#[test]
fn a_part_of_a_plan_has_the_groups_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("parts.toml");
    std::fs::write(&path, MANIFEST).unwrap();
    std::fs::write(dir.path().join("k.cu"), "__global__ void k(int *data) {}\n").unwrap();
    let manifest = runner_manifest::load(&path).unwrap();
    let options = PlanOptions {
        filter: Some("!(n == 3 && layout == 1 && variant == \"one\")".to_owned()),
        ..PlanOptions::for_backend(BackendKind::Sim)
    };
    let shards = Shards::plan(&manifest, &options).unwrap();
    let whole = shards.whole();
    // Nine groups of n and a in the product, and one for the point with n = 9.
    assert_eq!(whole.group_count(), 10);
    for of in [1, 3, 10] {
        let division = shards.divide(of);
        assert_eq!(division.cases.iter().sum::<u64>(), whole.cells().len() as u64);
        let mut found = Vec::new();
        for groups in &division.groups {
            let part = runner_plan::expand_groups(&manifest, &options, groups).unwrap();
            assert_eq!(part.group_count(), groups.len());
            found.extend((0..part.group_count()).map(|index| runner_plan::resolve(&manifest, &part, index)));
        }
        found.sort_by_key(|group| group.job.ordinal);
        let expected: Vec<_> = (0..10).map(|index| runner_plan::resolve(&manifest, whole, index)).collect();
        assert_eq!(found, expected, "{of} shards");
    }
}
