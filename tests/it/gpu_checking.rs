//! What a check accepts and rejects on a GPU: the manifests of `cli::checking`, compared on the device.

use crate::cli::checking::{expect, folder, run_on};
use crate::gpu::first;

#[test]
#[ignore = "needs a GPU"]
fn what_another_variant_left_makes_no_kernel_right() {
    let _turn = first::id();
    let folder = folder();
    expect(run_on("cuda", &folder, "counter.toml", &[]), 1, &["wrong, forgets_to"]);
    expect(run_on("cuda", &folder, "copies.toml", &[]), 1, &["wrong, cheat"]);
    let both = ["--variant", "honest", "--variant", "copies_a_variable"];
    expect(run_on("cuda", &folder, "state.toml", &both), 1, &["wrong, copies_a_variable"]);
}

#[test]
#[ignore = "needs a GPU"]
fn results_are_accepted_and_refused_as_on_the_simulator() {
    let _turn = first::id();
    let folder = folder();
    expect(run_on("cuda", &folder, "subnormals.toml", &[]), 0, &["5 of 5 cases measured"]);
    expect(
        run_on("cuda", &folder, "orders.toml", &[]),
        1,
        &["2 of 4 cases measured", "wrong, wrong_sign", "wrong, zeros"],
    );
    expect(run_on("cuda", &folder, "fraction.toml", &[]), 1, &["which `fraction` does not allow"]);
}
