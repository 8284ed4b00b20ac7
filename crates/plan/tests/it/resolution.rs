//! From a group of cells to a job, and the outcomes of cases that cannot run.

use runner_plan::{self, PlanOptions, memory_needed};
use runner_types::{
    Access, ArgPlan, BackendKind, BlockPlan, BodyPlan, DeviceInfo, ElementType, ExpectPlan, FillPlan, GridPlan,
    Outcome, Plugin, PrintedPlan, RefExpr, RefFunction, Tolerance, Value,
};

use super::fixture::{
    cuda, device, expand, launches, manifest, on_device, only_group, only_job, only_outcome, variant,
};

/// A buffer `b`, and a variant that takes it.
fn with_buffer(lines: &str) -> String {
    format!("[buffers.b]\n{lines}\n{}", variant("x", "args = [\"b\"]"))
}

fn unresolved(text: &str) -> String {
    match only_outcome(&manifest(text), &cuda()) {
        Outcome::Unresolved { message } => message,
        other => format!("{other:?}"),
    }
}

fn invalid(lines: &str) -> String {
    match only_outcome(&manifest(&format!("[axes]\nn = [4]\n{}", variant("x", lines))), &on_device()) {
        Outcome::Invalid { limit } => limit,
        other => format!("{other:?}"),
    }
}

#[test]
fn a_case_is_worked_out_whole() {
    let text = "[axes]\nn = [1000]\nblock = [128]\ntype = [\"f16\"]\n\
        [let]\nbytes = \"blocks * sizeof(type)\"\nblocks = \"ceil_div(n, block)\"\nunused = \"1 / (n - 1000)\"\n\
        [buffers.src]\ntype = \"{type}\"\nlen = \"n\"\nfill = { uniform = [0, 255], seed = 7 }\naccess = \"inout\"\n\
        [buffers.dst]\ntype = \"{type}\"\nlen = \"blocks\"\naccess = \"out\"\n\
        [buffers.spare]\ntype = \"i8\"\nlen = \"n\"\naccess = \"scratch\"\n\
        [check]\nactual = \"sum(dst)\"\nexpect = \"sum(src)\"\n[work]\nbytes = \"n * sizeof(type)\"\nflops = \"n - 1\"\n";
    let lines = "axes = { u = [4] }\nlet = { blocks = \"ceil_div(n, u * block)\" }\nkernel = \"t<{type}, {u}>\"\n\
        grid = [\"blocks\", \"2\"]\nblock = [\"block\"]\nshared = \"bytes\"\n\
        args = [\"src\", \"dst\", \"u32(n)\", \"{type}(0.5)\", \"i16(-1)\"]";
    let job = only_job(&manifest(&format!("{text}{}", variant("u{u}", lines))), &on_device());

    let [input, output] = job.buffers.as_slice() else { panic!("{:#?}", job.buffers) };
    let fill = FillPlan::Uniform { low: Value::Float(0.0), high: Value::Float(255.0), seed: 7 };
    assert_eq!((input.element, input.len, input.fill.clone()), (ElementType::F16, 1000, Some(fill)));
    assert_eq!((input.access, output.access, output.len), (Access::InOut, Access::Out, 2));
    let [launch] = launches(&job) else { panic!("{:#?}", job.body) };
    assert_eq!((launch.kernel.as_str(), launch.label.as_str()), ("t<__half, 4>", "t<__half, 4>"));
    assert_eq!(
        (launch.grid.clone(), launch.block.clone()),
        (GridPlan::Fixed([2, 2, 1]), BlockPlan::Fixed([128, 1, 1]))
    );
    assert_eq!(launch.settings.shared, Some(4));
    let scalars: Vec<u64> = launch.args.iter().filter_map(scalar_bits).collect();
    // In binary16, 0.5 has the biased exponent 14 and a zero fraction; -1 fills the two bytes of an i16.
    assert_eq!(scalars, [1000, 14 << 10, 0xffff]);
    assert_eq!((job.work.bytes, job.work.flops), (Some(2000), Some(999.0)));
    let [check] = job.checks.as_slice() else { panic!("{:#?}", job.checks) };
    let sum = |name: &str| RefExpr::Call {
        function: RefFunction::Sum,
        buffers: vec![RefExpr::Buffer(name.to_owned())],
        integers: vec![],
    };
    assert_eq!((&check.actual, &check.expect), (&sum("dst"), &ExpectPlan::Reference(sum("src"))));
    assert_eq!(check.tolerance, Tolerance { abs: 0.0, rel: 2e-3, ulp: 1, derived: true });
    // Two buffers with guard zones of 64 KiB on both sides; the restored buffer counts twice.
    assert_eq!(memory_needed(&job).0, 2 * 2000 + 4 + 4 * 65_536);
}

fn scalar_bits(arg: &ArgPlan) -> Option<u64> {
    match arg {
        ArgPlan::Scalar(scalar) => Some(scalar.bits),
        ArgPlan::Buffer(_)
        | ArgPlan::Offset { .. }
        | ArgPlan::Struct(_)
        | ArgPlan::Addressed { .. }
        | ArgPlan::Named { .. }
        | ArgPlan::Texture(_) => None,
    }
}

#[test]
fn launches_that_agree_share_one_unit_and_variants_never_do() {
    let launch = "[[variant.launch]]\nsource = \"k.cu\"\ngrid = [1]\nblock = [1]\nargs = []\n";
    let sequence = format!(
        "[[variant]]\nname = \"x\"\n{launch}kernel = \"second\"\n{launch}kernel = \"k\"\n{launch}kernel = \"second\"\n\
         {launch}kernel = \"k\"\ndefines = {{ N = \"4\" }}\n"
    );
    let job = only_job(&manifest(&sequence), &cuda());
    let units: Vec<_> = launches(&job).iter().map(|launch| &launch.unit).collect();
    assert_eq!(units[0].kernels, ["k", "second"]);
    assert!(units[0] == units[1] && units[1] == units[2]);
    assert_eq!(
        (units[3].kernels.clone(), units[3].defines.clone()),
        (vec!["k".to_owned()], vec![("N".to_owned(), "4".to_owned())])
    );
}

#[test]
fn a_symbol_belongs_to_the_first_launch() {
    let text = "[buffers.b]\ntype = \"i32\"\nlen = 64\naccess = \"out\"\nsymbol = \"table\"\n";
    let job = only_job(&manifest(&format!("{text}{}", variant("x", ""))), &cuda());
    let symbol = job.buffers[0].symbol.clone().map(|symbol| (symbol.name, symbol.launch));
    assert_eq!(symbol, Some(("table".to_owned(), 0)));
    assert_eq!(launches(&job)[0].unit.symbols, ["table"]);
    // Module variables have no guard zones.
    assert_eq!(memory_needed(&job).0, 256);
}

#[test]
fn an_expression_without_a_value_is_an_outcome_with_its_values() {
    let axes = "[axes]\nn = [0]\n";
    let cases = [
        (format!("{axes}{}", variant("x", "grid = [\"8 / n\"]")), "grid: division by zero in `8 / n` where n = 0"),
        (
            format!("{axes}[let]\na = \"b\"\nb = \"1 % n\"\n{}", variant("x", "shared = \"a\"")),
            "let `b`: division by zero in `1 % n` where n = 0",
        ),
        (
            format!("{axes}{}", variant("x", "requires = \"8 / n > 1\"")),
            "requires: division by zero in `8 / n` where n = 0",
        ),
        (
            format!("{axes}{}", variant("x", "args = [\"u32(n - 1)\"]")),
            "args: `u32(n - 1)`: -1 does not fit in u32 (0 to 4294967295)",
        ),
        (
            format!("{axes}{}", variant("x", "grid = [\"n - 1\"]")),
            "grid: expected a non-negative integer, but `n - 1` is the integer -1 where n = 0",
        ),
        (
            format!("{axes}{}", with_buffer("type = \"i32\"\nlen = \"n\"\naccess = \"out\"")),
            "buffers.b.len: `n` is 0, but a buffer needs at least one element",
        ),
        (
            format!("{axes}{}", with_buffer("type = \"u8\"\nlen = 4\nfill = \"n + 256\"")),
            "buffers.b.fill: `n + 256`: 256 does not fit in u8 (0 to 255)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(unresolved(&text), expected, "{text}");
    }
}

#[test]
fn limits_of_the_device_are_judged_before_a_launch() {
    let cases = [
        ("block = [64, 32]", "2048 threads per block, the device allows 1024"),
        ("block = [1, 1, 128]", "block.z is 128, the device allows 64"),
        ("grid = [1, 65536]", "grid.y is 65536, the device allows 65535"),
        ("grid = [\"2 ** 33\"]", "grid.x is 8589934592, the device allows 2147483647"),
        ("grid = [\"n - 4\"]", "grid.x is 0, but must be at least 1"),
        ("shared = 200000", "200000 bytes of shared memory per block, the device allows 100000"),
        ("cooperative = true", "a cooperative launch, which the device does not support"),
    ];
    for (lines, expected) in cases {
        assert_eq!(invalid(lines), expected, "{lines}");
    }
    // Without a device, no limit is checked.
    only_job(&manifest(&variant("x", "block = [64, 32]")), &cuda());
}

#[test]
fn an_architecture_with_instructions_of_its_own_is_left_out_where_the_device_is_another() {
    let outcome = |option: &str, compute_capability: (u32, u32)| {
        let device = DeviceInfo { compute_capability, ..device() };
        let options = PlanOptions { device: Some(device), ..cuda() };
        let group = only_group(&manifest(&variant("x", &format!("options = [\"{option}\"]"))), &options);
        group.settled.into_iter().map(|(_, outcome)| outcome).next()
    };
    assert_eq!(outcome("-arch=sm_90a", (9, 0)), None);
    let why = "compiled for sm_90a, but the device is sm_80".to_owned();
    assert_eq!(outcome("--gpu-architecture=sm_90a", (8, 0)), Some(Outcome::Excluded { why }));
    // `f` stands for the family: the same major version, and no minor version before the named one.
    assert_eq!(outcome("-arch=sm_100f", (10, 3)), None);
    assert!(matches!(outcome("-arch=sm_103f", (10, 0)), Some(Outcome::Excluded { .. })));
}

#[test]
fn the_launch_of_a_sequence_that_breaks_a_limit_is_named() {
    let launch = "[[variant.launch]]\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [1]\nargs = []\n";
    let text = format!("[[variant]]\nname = \"x\"\n{launch}block = [1]\n{launch}block = [1025]\nlabel = \"tail\"\n");
    let outcome = only_outcome(&manifest(&text), &on_device());
    assert_eq!(
        outcome,
        Outcome::Invalid { limit: "launch `tail`: 1025 threads per block, the device allows 1024".into() }
    );
}

#[test]
fn more_memory_than_the_device_has_is_refused_by_arithmetic() {
    let text = with_buffer("type = \"f64\"\nlen = \"2 ** 26\"\nfill = 0\naccess = \"inout\"");
    let needed = 2 * (8 << 26) + 2 * 65_536;
    let expected = Outcome::OutOfMemory { needed, available: 1 << 30 };
    assert_eq!(only_outcome(&manifest(&text), &on_device()), expected);
    let past_counting = with_buffer("type = \"f64\"\nlen = \"2 ** 62\"\naccess = \"out\"");
    let expected = Outcome::OutOfMemory { needed: u64::MAX, available: 1 << 30 };
    assert_eq!(only_outcome(&manifest(&past_counting), &on_device()), expected);
}

#[test]
fn cells_left_out_are_settled_with_the_text_of_the_manifest() {
    let text = "[axes]\nn = [1]\n[matrix]\nexclude = [{ when = 'variant == \"y\"', why = \"studied elsewhere\" }]\n";
    let variants = [variant("x", "requires = \"n > 1\""), variant("y", ""), variant("z", "")].concat();
    let group = only_group(&manifest(&format!("{text}{variants}")), &cuda());
    let settled: Vec<(&str, &Outcome)> =
        group.settled.iter().map(|(case, outcome)| (case.key.variant.as_str(), outcome)).collect();
    let excluded = |why: &str| Outcome::Excluded { why: why.to_owned() };
    assert_eq!(settled, [("x", &excluded("requires n > 1")), ("y", &excluded("studied elsewhere"))]);
    assert_eq!(group.job.cases.len(), 1);
}

#[test]
fn the_baseline_is_found_among_the_cases_that_run() {
    let text = "baseline = { variant = \"x\", a = 2 }\ncompare = [\"a\"]\n[axes]\na = [1, 2]\nn = [1, 2]\n";
    let manifest = manifest(&format!("{text}{}{}", variant("w", ""), variant("x", "requires = \"n * a != 4\"")));
    let plan = expand(&manifest, &cuda());
    let baselines: Vec<_> = (0..2).map(|index| runner_plan::resolve(&manifest, &plan, index).job.baseline).collect();
    // In the second group, x[a=2, n=2] is excluded.
    assert_eq!(baselines, [Some(3), None]);
}

#[test]
fn a_case_that_depends_on_an_unknown_device_says_on_what() {
    let text = "[let]\nwaves = \"sm_count * 2\"\n";
    let manifest = manifest(&format!("{text}{}{}", variant("x", "grid = [\"waves * warp_size\"]"), variant("y", "")));
    let group = only_group(&manifest, &cuda());
    assert_eq!((group.job.cases.len(), group.undecided.len()), (1, 1));
    assert_eq!(group.undecided[0].names, ["sm_count", "warp_size"]);
    let group = only_group(&manifest, &on_device());
    assert_eq!(launches(&group.job.cases[0])[0].grid, GridPlan::Fixed([640, 1, 1]));
}

#[test]
fn a_grid_may_wait_for_the_block_that_the_occupancy_query_finds() {
    let text = "[axes]\nn = [100]\n[let]\nm = \"n * 2\"\n";
    let lines = "block = \"occupancy\"\ngrid = [\"ceil_div(m, occupancy_block)\"]";
    let job = only_job(&manifest(&format!("{text}{}", variant("x", lines))), &on_device());
    let scope = [("m".to_owned(), Value::Int(200))].into_iter().collect();
    let expected = GridPlan::AfterBlock { dims: vec!["ceil_div(m, occupancy_block)".to_owned()], scope };
    assert_eq!((&launches(&job)[0].grid, &launches(&job)[0].block), (&expected, &BlockPlan::Occupancy));
}

#[test]
fn a_check_against_a_variant_needs_that_variant() {
    let text = "[axes]\nn = [1, 2]\n[buffers.b]\ntype = \"f32\"\nlen = 4\naccess = \"out\"\n\
        [check]\nactual = \"b\"\nexpect = { variant = \"naive\" }\ntolerance = { ulp = 3 }\n";
    let naive = variant("naive", "args = [\"b\"]\nrequires = \"n == 1\"");
    let manifest = manifest(&format!("{text}{naive}{}", variant("fast", "args = [\"b\"]")));
    let plan = expand(&manifest, &cuda());
    let first = runner_plan::resolve(&manifest, &plan, 0);
    assert_eq!(first.job.cases[0].checks, []);
    assert_eq!(first.job.cases[1].checks[0].expect, ExpectPlan::Variant("naive".to_owned()));
    assert_eq!(first.job.cases[1].checks[0].tolerance, Tolerance { abs: 0.0, rel: 0.0, ulp: 3, derived: false });
    let second = runner_plan::resolve(&manifest, &plan, 1);
    let why = "its check compares with variant `naive`, which does not run in this group".to_owned();
    assert_eq!((second.job.cases.len(), &second.settled[1].1), (0, &Outcome::not_run(why)));
}

#[test]
fn checks_of_a_variant_stand_in_place_of_the_shared_ones() {
    let text = "[buffers.a]\ntype = \"f32\"\nlen = 8\nfill = 1\n[buffers.b]\ntype = \"f32\"\nlen = 8\n\
        [check]\nactual = \"b\"\nexpect = \"copy(a)\"\n";
    let args = "args = [\"a\", \"b\"]\n";
    let own = format!("{args}check = {{ actual = \"max(b)\", expect = \"max(a)\" }}");
    let none = format!("{args}check = []");
    let variants = [variant("shared", args), variant("own", &own), variant("none", &none)].concat();
    let group = only_group(&manifest(&format!("{text}{variants}")), &on_device());
    let checks = |case: usize| group.job.cases[case].checks.iter().map(|check| check.text.as_str()).collect::<Vec<_>>();
    assert_eq!((checks(0), checks(1), checks(2)), (vec!["b against copy(a)"], vec!["max(b) against max(a)"], vec![]));
}

#[test]
fn a_reference_on_the_host_is_checked_too_and_takes_no_device_memory() {
    let text = "[buffers.a]\ntype = \"i32\"\nlen = 64\nfill = 1\n[buffers.o]\ntype = \"i32\"\nlen = 1\naccess = \"out\"\n\
        [check]\nactual = \"o\"\nexpect = \"sum(a)\"\n";
    let cpu = "[[variant]]\nname = \"cpu\"\ncpu = \"sum(a)\"\n";
    let group = only_group(&manifest(&format!("{text}{}{cpu}", variant("x", "args = [\"a\", \"o\"]"))), &cuda());
    let job = &group.job.cases[1];
    assert!(matches!(job.body, BodyPlan::Cpu(_)));
    let buffers: Vec<&str> = job.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
    assert_eq!((buffers, job.checks.len(), memory_needed(job).0), (vec!["a", "o"], 1, 0));
}

#[test]
fn the_turns_of_a_group_are_drawn_from_the_same_seed_each_time() {
    let manifest = manifest(&format!("[axes]\nn = [1, 2]\n{}", variant("x", "")));
    let seeds = || {
        let plan = expand(&manifest, &cuda());
        [0, 1].map(|index| runner_plan::resolve(&manifest, &plan, index).job.seed)
    };
    assert_eq!(seeds(), seeds());
    assert_ne!(seeds()[0], seeds()[1]);
}

#[test]
fn a_host_function_runs_on_a_gpu_where_it_can_be_built_and_is_excluded_elsewhere() {
    let text = "[buffers.a]\ntype = \"f32\"\nlen = 8\nfill = 1\n[buffers.b]\ntype = \"f32\"\nlen = 8\n\
        [check]\nactual = \"b\"\nexpect = \"copy(a)\"\n[[variant]]\nname = \"library\"\nsource = \"plugin.cu\"\n\
        host = \"copy_{kind}\"\naxes = { kind = [\"f32\"] }\nlibraries = [\"cublas\"]\ndefines = { N = 8 }\n\
        args = [\"a\", \"b\", \"u32(8)\"]\n";
    let manifest = manifest(&text.replace("\"library\"", "\"library_{kind}\""));
    let mut plan = expand(&manifest, &on_device());
    assert!(plan.calls_host());
    let group = runner_plan::resolve(&manifest, &plan, 0);
    let BodyPlan::Host(host) = &group.job.cases[0].body else { panic!("{:?}", group.job.cases[0].body) };
    assert_eq!((host.function.as_str(), host.args.len()), ("copy_f32", 3));
    assert_eq!(host.unit.kernels, ["copy_f32"]);
    assert_eq!(host.unit.plugin, Some(Plugin { libraries: vec!["cublas".to_owned()] }));
    assert_eq!(group.job.cases[0].body.units(), [&host.unit]);

    plan.exclude_host("nvcc is not here");
    assert!(!plan.calls_host());
    let excluded = |why: &str| Outcome::Excluded { why: why.to_owned() };
    assert_eq!(runner_plan::resolve(&manifest, &plan, 0).settled[0].1, excluded("nvcc is not here"));
    let on_simulator = expand(&manifest, &PlanOptions::for_backend(BackendKind::Sim));
    assert!(!on_simulator.calls_host());
    let why = "a host function needs a GPU, and this is the simulator";
    assert_eq!(runner_plan::resolve(&manifest, &on_simulator, 0).settled[0].1, excluded(why));
}

#[test]
fn a_repeated_launch_is_as_many_launches_each_of_which_knows_its_number() {
    let lines = "axes = { s = [3] }\nrepeat = \"2 * s - 1\"\nstream = \"nth % s\"\nkernel = \"k<{s}>\"\n\
        grid = [\"nth + 1\"]\nargs = [\"u32(10 * nth)\"]";
    let job = only_job(&manifest(&variant("v{s}", lines)), &cuda());
    let made: Vec<_> = launches(&job)
        .iter()
        .map(|launch| {
            (launch.settings.stream_index(), launch.grid.clone(), launch.args.iter().filter_map(scalar_bits).sum())
        })
        .collect();
    let expected = [(0, 1, 0), (1, 2, 10), (2, 3, 20), (0, 4, 30), (1, 5, 40)];
    assert_eq!(made, expected.map(|(stream, blocks, sum)| (stream, GridPlan::Fixed([blocks, 1, 1]), sum)));
    // All are launches of one kernel in one unit.
    assert!(launches(&job).iter().all(|launch| launch.unit == launches(&job)[0].unit));
    assert_eq!(launches(&job)[0].unit.kernels, ["k<3>"]);
}

#[test]
fn repetitions_and_streams_have_bounds() {
    let refused = |lines: &str| unresolved(&variant("x", lines));
    assert_eq!(refused("let = { r = 1025 }\nrepeat = \"r\""), "repeat: `r` is 1025, but must be from 1 to 1024");
    assert_eq!(refused("let = { r = 0 }\nrepeat = \"r\""), "repeat: `r` is 0, but must be from 1 to 1024");
    assert_eq!(refused("repeat = 200\nstream = \"nth\""), "stream: `nth` is 128, but must be from 0 to 127");
    let inner = "repeat = 32\nlaunch = [{ kernel = \"k\", repeat = 33 }]";
    assert_eq!(refused(inner), "repeat: 32 rounds of 33 repetitions are 1056, but at most 1024 can be queued");
}

#[test]
fn the_repeat_of_a_variant_repeats_its_whole_sequence() {
    let lines = "repeat = 2\nlaunch = [{ kernel = \"k\", grid = [\"nth + 1\"] }, { kernel = \"second\" }]";
    let job = only_job(&manifest(&variant("x", lines)), &cuda());
    let order: Vec<_> = launches(&job).iter().map(|launch| (launch.kernel.as_str(), launch.grid.clone())).collect();
    let blocks = |x| GridPlan::Fixed([x, 1, 1]);
    assert_eq!(order, [("k", blocks(1)), ("second", blocks(1)), ("k", blocks(2)), ("second", blocks(1))]);
}

#[test]
fn an_entry_of_a_sequence_has_a_repeat_of_its_own_in_every_round() {
    let lines = "repeat = 2\nlaunch = [{ kernel = \"k\", repeat = 3, stream = \"nth\" }, { kernel = \"second\", stream = \"nth\" }]";
    let job = only_job(&manifest(&variant("x", lines)), &cuda());
    let order: Vec<_> =
        launches(&job).iter().map(|launch| (launch.kernel.as_str(), launch.settings.stream_index())).collect();
    let expected = [("k", 0), ("k", 1), ("k", 2), ("second", 0), ("k", 0), ("k", 1), ("k", 2), ("second", 1)];
    assert_eq!(order, expected);
}

#[test]
fn a_file_that_does_not_fit_its_buffer_stops_the_case_before_the_run() {
    // The file holds two f32. They fit at n = 2, so the manifest is valid.
    let text = |n: u32, type_: &str| {
        let head = format!(
            "[axes]\nn = [2, 3]\ntype = [\"f32\", \"i32\"]\n[matrix]\nexclude = [\
            {{ when = \"n != {n} || type != \\\"{type_}\\\"\", why = \"elsewhere\" }}]\n"
        );
        format!("{head}{}", with_buffer("type = \"{type}\"\nlen = \"n\"\nfill = { npy = \"two_f32.npy\" }"))
    };
    let faults_of = |n, type_| {
        let manifest = manifest(&text(n, type_));
        let plan = expand(&manifest, &cuda());
        let groups = (0..plan.group_count()).map(|group| runner_plan::resolve(&manifest, &plan, group));
        let mut told: Vec<String> = groups
            .flat_map(|group| group.settled)
            .filter_map(|(_, outcome)| match outcome {
                Outcome::Unresolved { message } => Some(message),
                _ => None,
            })
            .collect();
        told.pop()
    };
    assert_eq!(faults_of(2, "f32"), None);
    let told = |n, type_| faults_of(n, type_).unwrap_or_default();
    assert!(told(3, "f32").ends_with("two_f32.npy holds 2 elements (shape [2]), expected 3"));
    assert!(told(2, "i32").ends_with("two_f32.npy holds '<f4', but the buffer is i32: convert it with numpy's astype"));
}

#[test]
fn a_golden_file_that_does_not_fit_stops_the_case_before_the_run() {
    let check = |actual: &str, len: u32| {
        let buffer = format!("[buffers.b]\ntype = \"f32\"\nlen = \"{len} * n\"\naccess = \"out\"\n");
        let check = format!("[check]\nactual = \"{actual}\"\nexpect = {{ npy = \"two_f32.npy\" }}\n");
        format!("[axes]\nn = [1]\n{buffer}{check}{}", variant("x", "args = [\"b\"]"))
    };
    assert_eq!(only_job(&manifest(&check("copy(b)", 2)), &cuda()).checks.len(), 1);
    assert_eq!(only_job(&manifest(&check("transpose(b, 2, 1)", 2)), &cuda()).checks.len(), 1);
    assert!(unresolved(&check("copy(b)", 3)).contains("holds 2 elements (shape [2]), expected 3"));
}

#[test]
fn lines_that_are_to_be_printed_have_the_values_of_the_case() {
    let text = |check: &str| format!("[axes]\nn = [7]\ntype = [\"f32\"]\n{check}{}", variant("x", ""));
    let lines = only_job(&manifest(&text("[check]\nprinted = [\"{2 * n} of {type}\", \"{{done}}\"]\n")), &cuda());
    assert_eq!(lines.printed, Some(PrintedPlan::Lines(vec!["14 of f32".to_owned(), "{done}".to_owned()])));
    let own = variant("y", "check = []");
    let group = only_group(&manifest(&format!("{}{own}", text("[check]\nprinted = [\"a\"]\n"))), &cuda());
    let printed: Vec<bool> = group.job.cases.iter().map(|job| job.printed.is_some()).collect();
    assert_eq!(printed, [true, false], "a variant's own checks stand in place of the shared ones, as a whole");
}

#[test]
fn machine_code_is_excluded_on_the_simulator_with_the_reason() {
    let manifest = manifest(&variant("a", "source = \"k.cubin\"\nargs = [\"null\"]"));
    let simulated = DeviceInfo { backend: BackendKind::Sim, ..device() };
    let Outcome::Excluded { why } = only_outcome(&manifest, &PlanOptions { device: Some(simulated), ..cuda() }) else {
        panic!("must be excluded")
    };
    assert_eq!(why, "the simulator executes PTX, but k.cubin is machine code: name the PTX that it was generated from");
    assert_eq!(launches(&only_job(&manifest, &on_device()))[0].kernel, "k");
}

#[test]
fn a_struct_is_laid_out_as_c_does_and_an_offset_counts_elements() {
    let lines = "args = [[\"f32(1)\", \"f64(2)\", \"u8(7)\"], \"b + 3\", \"bool(1 < 2)\"]";
    let job =
        only_job(&manifest(&format!("[buffers.b]\ntype = \"float4\"\nlen = 8\n{}", variant("x", lines))), &cuda());
    let one = [&1_f32.to_le_bytes()[..], &[0; 4], &2_f64.to_le_bytes(), &[7], &[0; 7]].concat();
    let args = &launches(&job)[0].args;
    assert_eq!(args[0], ArgPlan::Struct(one), "a double begins at a multiple of 8, and the whole is one of 8");
    assert_eq!(args[1], ArgPlan::Offset { buffer: "b".to_owned(), bytes: 3 * 16 });
    assert_eq!(scalar_bits(&args[2]), Some(1));
    assert_eq!((job.buffers[0].element, job.buffers[0].len), (ElementType::F32, 32));
    let past = format!("[buffers.b]\ntype = \"f32\"\nlen = 8\n{}", variant("x", "args = [\"b + 8\"]"));
    assert_eq!(unresolved(&past), "args: `b + 8` is 8 elements from the beginning, but the buffer has 8");
}

#[test]
fn a_texture_has_the_type_of_its_buffer_and_must_fit_it() {
    let with = |element: &str, argument: &str| {
        let arguments = format!("args = [{{ {argument} }}]");
        format!("[buffers.b]\ntype = \"{element}\"\nlen = 24\n{}", variant("x", &arguments))
    };
    let plane = with("uchar4", "texture = \"b\", size = [3, \"2 * 4\"], filter = \"linear\", as_float = true");
    let job = only_job(&manifest(&plane), &cuda());
    let ArgPlan::Texture(texture) = &launches(&job)[0].args[0] else { panic!("{:?}", launches(&job)[0].args) };
    assert_eq!((texture.shape, texture.element, texture.channels), ([3, 8, 1], ElementType::U8, 4));
    assert_eq!((texture.buffer.as_str(), texture.bytes()), ("b", 96));
    for (element, argument, why) in [
        ("f32", "texture = \"b\", size = [5, 5]", "5 × 5 × 1 texels have 100 bytes, but the buffer has 96"),
        (
            "f32",
            "texture = \"b\", size = [3], kind = \"cube\"",
            "3 × 3 × 6 texels have 216 bytes, but the buffer has 96",
        ),
        (
            "f32",
            "surface = \"b\", size = [1, 25], kind = \"1d_layered\"",
            "1 × 1 × 25 texels have 100 bytes, but the buffer has 96",
        ),
        ("f64", "texture = \"b\", size = [4]", "texels cannot be f64: use an integer of up to 32 bits, f16 or f32"),
        ("float3", "texture = \"b\", size = [4]", "a texel has 1, 2 or 4 channels, but elements of the buffer have 3"),
        (
            "u8",
            "texture = \"b\", size = [4], filter = \"linear\"",
            "`filter = \"linear\"` returns floats, but texels are u8",
        ),
        (
            "f32",
            "texture = \"b\", size = [4], address = \"wrap\"",
            "`address` of \"wrap\" or \"mirror\" needs `normalized = true`",
        ),
        ("f32", "surface = \"b\", size = [1], kind = \"cube\"", "there is no surface of kind `cube`"),
    ] {
        assert_eq!(unresolved(&with(element, argument)), format!("args: a texture of `b`: {why}"));
    }
}
