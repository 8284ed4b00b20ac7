//! `runner show` for the code of a case, and for kernels that the simulator does not support.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

/// `exotic` has an instruction that is not simulated.
const KERNELS: &str = "
__global__ void plain(float *y) { y[threadIdx.x] = VALUE; }
__global__ void exotic(float *y) {
    __shared__ float tile[64];
    tile[threadIdx.x] = 1;
    unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile)), a = 7;
    asm volatile(\"cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%0, {%1}];\" : : \"l\"(y), \"r\"(from));
    y[threadIdx.x] = a;
}
__global__ void beyond(float *y) { y[threadIdx.x + 1] = VALUE; }
";

const MANIFEST: &str = "
[experiment]
name = \"code\"
[buffers.y]
type = \"f32\"
len = 32
access = \"out\"
[buffers.x]
type = \"f32\"
len = 32
fill = 4
[check]
actual = \"y\"
expect = \"copy(x)\"
[defaults]
source = \"k.cu\"
grid = [1]
block = [32]
args = [\"y\"]
defines = { VALUE = 4 }
[[variant]]
name = \"plain\"
kernel = \"plain\"
[[variant]]
name = \"both\"
launch = [{ kernel = \"exotic\" }, { kernel = \"plain\" }]
fails = \"launch_error\"
";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("k.cu"), KERNELS).unwrap();
    fs::write(folder.path().join("code.toml"), MANIFEST).unwrap();
    folder
}

/// Exit code, standard output and standard error.
fn run(folder: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.current_dir(folder.path()).args(["--color", "never"]).args(arguments).args(["--backend", "sim"]);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_code_of_a_case_is_printed_in_each_form_without_a_run() {
    let folder = folder();
    let shown = |form: &str| {
        let (code, out, error) = run(&folder, &["show", "code.toml", "plain", form]);
        assert_eq!(code, Some(0), "{form}: {error}");
        assert!(out.starts_with("// k.cu -DVALUE=4\n"), "{out}");
        out
    };
    let ptx = shown("--ptx");
    // Bit pattern of 4.0.
    assert!(ptx.contains(".visible .entry _Z5plainPf(") && ptx.contains("1082130432"), "{ptx}");
    let sass = shown("--sass");
    let store = sass.lines().find(|line| line.contains("STG.E ")).expect("the kernel stores");
    // The line in the source, and the line in the PTX of the same compilation.
    let of_ptx =
        1 + ptx.lines().filter(|line| !line.starts_with("// k.cu")).position(|l| l.contains("st.global")).unwrap();
    let words: Vec<&str> = store.split_whitespace().collect();
    assert!(store.ends_with("// k.cu:2") && words[2] == of_ptx.to_string(), "{of_ptx}: {store}");
    assert!(words[1].starts_with('B') && words[1].contains(":S"), "{store}");
    assert!(sass.contains("_Z5plainPf: ") && sass.contains(" EXIT "), "{sass}");
    assert!(!sass.contains("_Z6exoticPf"), "the case launches one kernel");
}

#[test]
fn each_line_of_a_source_has_what_was_executed_on_it_and_its_machine_code() {
    let folder = folder();
    let shown = |form: &[&str]| {
        let (code, out, error) = run(&folder, &[&["show", "code.toml", "plain", "--source"][..], form].concat());
        assert_eq!(code, Some(0), "{form:?}: {error}");
        out
    };
    let view: serde_json::Value = serde_json::from_str(&shown(&["--json"])).unwrap();
    assert_eq!(view["case"], "plain");
    let lines = view["files"][0]["lines"].as_array().unwrap();
    assert_eq!(lines.len(), KERNELS.lines().count());
    // One warp stores 32 four-byte values: four sectors.
    let counters = &lines[1]["counters"];
    assert_eq!((&counters["gst_sectors"], &counters["gst_requested_bytes"]), (&4.0.into(), &128.0.into()));
    let all = |name: &str| -> u64 { lines.iter().filter_map(|l| l["counters"][name].as_f64()).map(|n| n as u64).sum() };
    assert_eq!(all("thread_inst_executed"), 32 * all("inst_executed"), "all lanes are active");
    let machine = view["machine"].as_array().unwrap();
    let store = machine.iter().find(|one| one["text"].as_str().unwrap().starts_with("STG.E")).unwrap();
    assert_eq!((&store["executed"], &store["source"]["line"]), (&1.into(), &2.into()), "{store}");
    let table = shown(&["--csv"]);
    assert!(table.starts_with("file,line,source,counter.") && table.contains(",2,__global__ void plain"), "{table}");
    let text = shown(&[]);
    assert!(text.contains("store sectors") && text.contains("STG.E"), "{text}");
    let log: serde_json::Value = serde_json::from_str(&shown(&["--sarif"])).unwrap();
    assert_eq!((&log["version"], &log["runs"][0]["results"]), (&"2.1.0".into(), &serde_json::json!([])), "{log}");
    shown(&["--html", "page.html"]);
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("__global__ void plain(float *y)") && page.contains("STG.E"), "{page}");
}

#[test]
fn a_kernel_in_an_anonymous_namespace_has_machine_code_with_counts() {
    let folder = folder();
    // The mangled name depends on the compiler's process, so it differs between the PTX and the machine code.
    fs::write(folder.path().join("k.cu"), format!("namespace {{ {KERNELS} }}")).unwrap();
    let (code, view, error) = run(&folder, &["show", "code.toml", "plain", "--source", "--json"]);
    assert_eq!(code, Some(0), "{error}");
    let view: serde_json::Value = serde_json::from_str(&view).unwrap();
    let machine = view["machine"].as_array().unwrap();
    let store = machine.iter().find(|one| one["text"].as_str().unwrap().starts_with("STG.E")).unwrap();
    assert_eq!((&store["executed"], &store["source"]["line"]), (&1.into(), &2.into()), "{store}");
}

#[test]
fn a_case_is_named_as_it_is_listed_or_by_its_plain_number() {
    let folder = folder();
    let manifest = MANIFEST.replace("[buffers.y]", "[axes]\nn = [1, 65536]\n[buffers.y]");
    fs::write(folder.path().join("code.toml"), manifest).unwrap();
    for case in ["plain[n = 2^16]", "plain[n = 65536]"] {
        let (code, out, error) = run(&folder, &["show", "code.toml", case, "--ptx"]);
        assert_eq!(code, Some(0), "{case}: {out}{error}");
    }
    let (code, _, error) = run(&folder, &["show", "code.toml", "plain[n = 65537]", "--ptx"]);
    assert_eq!(code, Some(2), "{error}");
}

#[test]
fn a_report_links_to_the_pages_that_are_kept_in_its_folder() {
    let folder = folder();
    let done = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
        let output = command.current_dir(folder.path()).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    };
    done(&["run", "code.toml", "--backend", "sim", "--variant", "plain", "--out", "report"]);
    let link = r#""page":"source/plain.html""#;
    let page = || {
        done(&["report", "report", "--html"]);
        fs::read_to_string(folder.path().join("report/report.html")).unwrap()
    };
    assert!(!page().contains(link), "there is no page yet");
    done(&["show", "code.toml", "plain", "--backend", "sim", "--source", "--html", "report"]);
    assert!(fs::read_to_string(folder.path().join("report/source/plain.html")).unwrap().contains("STG.E"));
    assert!(page().contains(link));
    done(&["report", "report", "--check"]);
    done(&["report", "report", "--html", "-o", "elsewhere.html"]);
    let elsewhere = fs::read_to_string(folder.path().join("elsewhere.html")).unwrap();
    assert!(elsewhere.contains("report/source/plain.html"), "it is relative to the file");
}

#[test]
fn a_run_with_counts_by_lines_has_a_page_of_each_kernel_in_its_report() {
    let folder = folder();
    let manifest = MANIFEST.replace("[buffers.y]", "[axes]\nn = [1, 2]\n[buffers.y]");
    fs::write(folder.path().join("code.toml"), manifest).unwrap();
    let words = ["run", "code.toml", "--variant", "plain", "--out", "report"];
    let (code, _, error) = run(&folder, &words);
    assert_eq!((code, folder.path().join("report/source").exists()), (Some(0), false), "{error}");
    let (code, _, error) = run(&folder, &[&words[..], &["--lines"]].concat());
    assert!(code == Some(0) && error.contains("1 page of sources in report/source"), "{error}");
    // Both cases execute the same kernel.
    let pages: Vec<_> = fs::read_dir(folder.path().join("report/source")).unwrap().collect();
    assert_eq!(pages.len(), 1);
    let page = fs::read_to_string(pages[0].as_ref().unwrap().path()).unwrap();
    assert!(page.contains("__global__ void plain(float *y)") && page.contains("STG.E"), "{page}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    let output = command.current_dir(folder.path()).args(["report", "report", "--html"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = fs::read_to_string(folder.path().join("report/report.html")).unwrap();
    assert_eq!(report.matches(r#""page":"source/plain"#).count(), 1);
}

/// PTX from another compiler: each thread stores 4.0 in its element.
const PTX: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry numbers(.param .u64 numbers_y)
{
    .reg .b32 %r<2>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [numbers_y];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.f32 %f1, 0f40800000;
    st.global.f32 [%rd3], %f1;
    ret;
}
";

#[test]
fn ptx_of_another_compiler_is_assembled_and_its_lines_are_those_of_the_source() {
    let folder = folder();
    fs::write(folder.path().join("numbers.ptx"), PTX).unwrap();
    let variant = "[[variant]]\nname = \"ptx\"\nsource = \"numbers.ptx\"\nkernel = \"numbers\"\ndefines = {}\n";
    fs::write(folder.path().join("code.toml"), format!("{MANIFEST}{variant}")).unwrap();
    let store = 1 + PTX.lines().position(|line| line.contains("st.global")).unwrap();
    let (code, _, error) = run(&folder, &["run", "code.toml", "--variant", "ptx", "--lines", "--out", "report"]);
    assert_eq!(code, Some(0), "{error}");
    let lines = fs::read_to_string(folder.path().join("report/lines.csv")).unwrap();
    assert!(lines.contains(&format!("\nptx,numbers.ptx,{store},\"st.global.f32 [%rd3], %f1;\",")), "{lines}");

    let show = |form: &[&str]| run(&folder, &[&["show", "code.toml", "ptx"][..], form].concat());
    let (code, sass, error) = show(&["--sass", "--offline"]);
    if code == Some(3) && error.contains("ptxas, which assembles PTX, was not found") {
        println!("skipped: no ptxas");
        return;
    }
    assert_eq!(code, Some(0), "{error}");
    let words: Vec<&str> = sass.lines().find(|line| line.contains("STG.E ")).unwrap().split_whitespace().collect();
    assert_eq!(words[2], store.to_string(), "{sass}");
    let (_, view, error) = show(&["--source", "--json"]);
    let view: serde_json::Value = serde_json::from_str(&view).expect(&error);
    // One warp stores 32 four-byte values: four sectors.
    assert_eq!(view["files"][0]["lines"][store - 1]["counters"]["gst_sectors"], 4.0, "{view}");
    let machine = view["machine"].as_array().unwrap();
    let stored = machine.iter().find(|one| one["text"].as_str().unwrap().starts_with("STG.E")).unwrap();
    assert_eq!((&stored["executed"], &stored["source"]["line"]), (&1.into(), &store.into()), "{stored}");
}

#[test]
fn what_the_sanitizer_found_is_a_result_at_its_line() {
    let folder = folder();
    let manifest = format!("{MANIFEST}[[variant]]\nname = \"beyond\"\nkernel = \"beyond\"\n");
    fs::write(folder.path().join("code.toml"), manifest).unwrap();
    let (code, out, error) = run(&folder, &["show", "code.toml", "beyond", "--source", "--sarif"]);
    assert_eq!(code, Some(1), "{error}");
    let log: serde_json::Value = serde_json::from_str(&out).unwrap();
    let fault = &log["runs"][0]["results"][0];
    assert_eq!((&fault["ruleId"], &fault["level"]), (&"fault".into(), &"error".into()), "{log}");
    let line = KERNELS.lines().position(|line| line.contains("beyond")).unwrap() + 1;
    let place = &fault["locations"][0]["physicalLocation"];
    let expected = serde_json::json!({ "artifactLocation": { "uri": "k.cu" }, "region": { "startLine": line } });
    assert_eq!(place, &expected, "{log}");
}

#[test]
fn a_case_has_one_form_of_code_and_no_buffers_beside_it() {
    let folder = folder();
    for others in [
        ["--sass", "--ptx"],
        ["--source", "--dump=x"],
        ["--ptx", "--element=y[0]"],
        ["--sass", "--json"],
        ["--sarif", "--ptx"],
    ] {
        let (code, _, error) = run(&folder, &[&["show", "code.toml", "plain"][..], &others].concat());
        assert_eq!(code, Some(2), "{error}");
    }
}

#[test]
fn a_kernel_that_is_not_simulated_is_refused_where_it_is_launched_and_leaves_the_others() {
    let folder = folder();
    let (code, out, error) = run(&folder, &["run", "code.toml", "--out", "report"]);
    // The variant that launches both kernels is expected to fail; the other one passes.
    assert_eq!(code, Some(0), "{out}{error}");
    let (_, shown, _) = run(&folder, &["show", "code.toml", "both"]);
    assert!(shown.contains("k.cu:7") && shown.contains("copies of tensors are not simulated; with `on.sim"), "{shown}");
}

#[test]
fn what_kernels_sources_and_names_of_files_hold_never_controls_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let hostile = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{202e}";
    let kernel = format!(
        "#include <cstdio>\nextern \"C\" __global__ void k(int *o) {{ o[threadIdx.x] = 1; if (threadIdx.x == 0) \
         printf(\"\\033]0;printed\\007\\033[2J\\xe2\\x80\\xae\\n\"); }} // {hostile}\n"
    );
    fs::write(dir.path().join("esc.cu"), kernel).unwrap();
    let manifest = "[experiment]\nname = \"esc\"\n[buffers.o]\ntype = \"i32\"\nlen = 32\n[[variant]]\nname = \"v\"\n\
                    source = \"esc.cu\"\nkernel = \"k\"\ngrid = [1]\nblock = [32]\nargs = [\"o\"]\n";
    let (named, broken) = (format!("{hostile}.toml"), format!("broken {hostile}.toml"));
    for (name, text) in [("esc.toml", manifest), (&named, manifest), (&broken, "x = \n")] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let commands: [&[&str]; 5] = [
        &["show", "esc.toml", "v", "--backend", "sim"],
        &["show", "esc.toml", "v", "--backend", "sim", "--source"],
        &["check", &named, &broken],
        &["list", "."],
        &["run", &broken],
    ];
    for color in ["never", "always"] {
        for command in commands {
            let mut runner = Command::new(env!("CARGO_BIN_EXE_runner"));
            let output = runner.current_dir(dir.path()).args(["--color", color]).args(command).output().unwrap();
            let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            assert!(text.contains("\u{241b}]0;") || text.contains("esc.cu"), "{command:?}: {text:?}");
            for control in ["\u{1b}]", "\u{1b}[2J", "\u{7}", "\u{202e}"] {
                assert!(!text.contains(control), "{command:?}: {text:?}");
            }
        }
    }
}
