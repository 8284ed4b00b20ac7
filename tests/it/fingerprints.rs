//! Identities of shipped cases on the simulator's device. Reports are matched by key, and stored results are trusted by
//! fingerprint, so a change to this program's types must not alter either.
//!
//! No compiler is needed: code keys are derived from the compile unit. Their own tests say what a key covers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use runner_backend::Backend as _;
use runner_backend::sim::SimBackend;
use runner_plan::link::{CompiledUnits, link};
use runner_plan::{self, PlanOptions};
use runner_types::{
    BackendKind, CodeKind, CompileSettings, CompileUnit, Compiled, DeviceInfo, Environment, Machine, ToolkitInfo,
    sha256_hex,
};

/// Number of cases of each shipped experiment, and SHA-256 of their `key fingerprint` lines.
const EXPERIMENTS: &[(&str, usize, &str)] = &[
    ("access_patterns", 22, "3d4cd2f11ddbd263910af7bdbd9e242167e41fb5901f24918dbf757c15c0364c"),
    ("allocation", 8, "9517aca861b35595aa1893d706590ba49456f47cddde7ea034e0214f3609b0ad"),
    ("arithmetic", 6, "000968f7815a32c8337555ada285af5538ea077abc10c1559b0e19a7cc065f17"),
    ("block_shapes", 13, "62d0f7f397f70c575105637598bfe54163d7fa9570f4784212f80f9be4dec008"),
    ("concurrency", 14, "7783e9b1998d3981de3094b04b725937ffe1bc1282fc28c5ced12a949e67d772"),
    ("convolution", 20, "1e2b65865b1923c7da32223e443885750a329ab5a80da9269147f0d35f592efd"),
    ("cooperative_groups", 2, "2d2dea36a65443b5356f9ceb1c1516707df1eeb2f17708706459680c0fa5d26f"),
    ("copy", 28, "450dcae43ec34cac7c3e3cd399623afe10a11c3a4917f5528be5bb56305cb1ae"),
    ("divergence", 52, "bbc4ab6eebf0c0575c54466a8a8323ab6580c4f4df21f29134d953fca7f1c769"),
    ("divergence_textbook", 8, "c9c67afa5c1e3807cf5a1843ddac8b95e27f5ca732cd1805c1d23c7109a85b8f"),
    ("dynamic_parallelism", 14, "f0e0520ad9352187cf1a4cb5f3692be4f70edd77b2973cc93c3ac0e0baa86762"),
    ("latency", 12, "5295f7136b62d5c05ba26d15a7a9ef03c8831b5325bc36ef6295d2285c032e8f"),
    ("launch_limits", 6, "f85df34cd6a6d340a31cad4a4712341c3a933a1141cbd310967cfa748d1b1b71"),
    ("matmul", 24, "73bb45fb93c8145dda094786b4d227ab68927acfbcfcf601a28a1758a06dd504"),
    ("nested_hello", 6, "cdbbe1e2e346e4a30a5c82d31fd88108aa698517a6b3cbab16f76e2f6645b8ff"),
    ("occupancy", 24, "66fa0b16b7cd574f5cf989216ec253c581a372c3a7a2a0386b0ff4dfee757731"),
    ("reduce", 228, "3f875d73a9eab4667b6b7ff8d2cfad97fde63185a332dcf181388cd4275ee953"),
    ("reduction_best", 36, "4f97990a66146c5e34c64c6b735812d1c3947d122abe41e69092028caba4a362"),
    ("reduction_error", 16, "8e6787add6a4366c98925ce277e94ebafd8d89025c9777dce5dae1ac1d28d623"),
    ("reduction_operators", 64, "400a249cdb4afc5b1cedb5f7e75909b67eaa9833eee083558c466b5b0e96743e"),
    ("reduction_tree", 235, "16546b098cab1da0163f3dcf2affc50be9e3f264b3d7da8d00da746a9d11edc9"),
    ("sum_matrix", 78, "a053b89da15cde27aeddcb7ffaf4e9155a54f6dbf9fa71a174f0f18c8023f420"),
    ("textbook_errors", 15, "1fa009b5fdd38a893ce5c2ee14a4b6b12b85a51038afae5b97dc22141e3b2fd5"),
    ("unrolling", 52, "eafcc00a892524dc02c597bd58088cadb2f03bd3046992630486e8bf4b355107"),
    ("warp_primitives", 2, "f5a0b4b488bc402cf09a66643cf580e1dad92f7f509ac6adf841759c2ff585c2"),
];

/// Some cases in full: launches, host code, a copy by the driver, input files, several launches, a two-dimensional
/// shape.
const CASES: &[&str] = &[
    "reduce neighbored[n=16384, block=128, type=i32] ec4640760fc0f1bc1434bf78edfc76c756097fe3cae78cd8f2cb3e2d7f637d07",
    "reduce cpu[n=16384, block=128, type=f32] 90e726209955cf20cd2a21e099c35f094edec8342b020bf27ab0c39dc50e3e98",
    "copy memcpy[n=65536] 84dcf07d5f3d19bd3313f7a6f31b93ea8b20aca5789dca80db508166d2a41151",
    "cooperative_groups groups d1a8781ab57ac702a316a56f219c7cb79b6a5fb36f9def4dec6ca60f277c55f0",
    "nested_hello tree1 7fd976925687084f2848547570fd76a9592078f095b3e53af607343de9a2993e",
    "concurrency streams1[blocks=1] ab3bb44ba8d87c6abb89a1c234cb4f96330bd13093d27013f48904d979d137e1",
    "sum_matrix sum[side=512, bx=32, by=8] 7e8167ab2fc81ff59cb7139baf307c792c45805c22f3964f44f03e5e54d2cc9f",
];

fn device() -> DeviceInfo {
    SimBackend::new(Some("h100"), simt::Options::default()).unwrap().devices().unwrap().swap_remove(0).1
}

fn environment() -> Environment {
    Environment {
        device: device(),
        driver: None,
        driver_cuda: None,
        toolkit: ToolkitInfo { version: (13, 0), build: Some("13.0.88".to_owned()) },
        host_compiler: None,
        runner: "0.1.0".to_owned(),
        timing_method: None,
        counting_method: None,
        machine: Machine::default(),
    }
}

/// Code whose key depends on what the unit requests, but on no path.
fn compiled(unit: &CompileUnit) -> Compiled {
    let CompileUnit { kernels, symbols, defines, options, settings, .. } = unit;
    let CompileSettings { debug, max_registers, relocatable } = settings;
    let file = unit.source.file_name().unwrap().to_str().unwrap();
    let asked = serde_json::json!([file, kernels, symbols, defines, options, debug, max_registers, relocatable]);
    Compiled {
        kind: CodeKind::Ptx,
        code: PathBuf::from("k.ptx"),
        toolkit: environment().toolkit,
        ..fake_backend::compiled(&sha256_hex(asked.to_string().as_bytes()))
    }
}

/// One line per case: its key, and its fingerprint, if any.
fn identities(experiment: &str) -> Vec<String> {
    // Relative, as users pass it: the paths of a case's input files are part of its identity.
    let path = Path::new("experiments").join(experiment).with_extension("toml");
    let manifest = runner_manifest::load(&path).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let options = PlanOptions { device: Some(device()), ..PlanOptions::for_backend(BackendKind::Sim) };
    let plan = runner_plan::expand(&manifest, &options).unwrap_or_else(|faults| panic!("{}", faults.render(false)));
    let mut lines = Vec::new();
    for index in 0..plan.group_count() {
        let job = runner_plan::resolve(&manifest, &plan, index).job;
        let units = job.cases.iter().flat_map(|case| case.body.units());
        let units: CompiledUnits = units.map(|unit| (unit.clone(), Ok(compiled(unit)))).collect();
        for case in link(job, &units, &environment()).0.cases {
            let fingerprint = case.fingerprint.map(|fingerprint| fingerprint.0).unwrap_or_default();
            lines.push(format!("{} {} {fingerprint}", case.case.key.experiment, case.case.key));
        }
    }
    lines
}

#[test]
fn shipped_cases_keep_their_keys_and_fingerprints() {
    let mut found = String::new();
    let mut expected = String::new();
    for (experiment, cases, digest) in EXPERIMENTS {
        let lines = identities(experiment);
        let _ = writeln!(found, "{experiment} {} {}", lines.len(), sha256_hex(lines.join("\n").as_bytes()));
        let _ = writeln!(expected, "{experiment} {cases} {digest}");
    }
    assert_eq!(found, expected);
}

#[test]
fn a_case_of_each_kind_has_the_fingerprint_under_which_its_result_was_stored() {
    for case in CASES {
        let experiment = case.split(' ').next().unwrap();
        let lines = identities(experiment);
        assert!(lines.iter().any(|line| line == case), "{case} is not among\n{}", lines.join("\n"));
    }
}
