//! Modules linked from the PTX of several files.

use simt::{LaunchSpec, Machine, Options, Part, SimError, profiles};

const HEADER: &str = ".version 8.5\n.target sm_90\n.address_size 64\n";

/// Kernel that writes `scale` of 5, plus another file's counter and its own constant.
const MAIN: &str = "
.file 1 \"main.cu\"
.extern .func (.param .b32 r) scale(.param .b32 x);
.extern .global .align 4 .u32 counter;
.global .align 4 .u32 own = 100;
.visible .entry main_kernel(.param .u64 out)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    {
    .param .b32 p;
    .param .b32 q;
    st.param.b32 [p], 5;
    call.uni (q), scale, (p);
    ld.param.b32 %r1, [q];
    }
    ld.global.u32 %r2, [counter];
    add.u32 %r3, %r1, %r2;
    ld.global.u32 %r4, [own];
    add.u32 %r5, %r3, %r4;
    st.global.u32 [%rd1], %r5;
    ret;
}
";

/// File with a function that multiplies by a constant. A constant in the first file has the same name.
const OTHER: &str = "
.file 1 \"other.cu\"
.visible .global .align 4 .u32 counter = 2000;
.global .align 4 .u32 own = 7;
.visible .func (.param .b32 r) scale(.param .b32 x)
{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [x];
    ld.global.u32 %r2, [own];
    mul.lo.u32 %r3, %r1, %r2;
    st.param.b32 [r], %r3;
    ret;
}
";

fn load(parts: &[(&str, &str)]) -> Result<i32, SimError> {
    let texts: Vec<String> = parts.iter().map(|(_, ptx)| format!("{HEADER}{ptx}")).collect();
    let parts: Vec<Part<'_>> = parts.iter().zip(&texts).map(|((name, _), ptx)| Part { name, ptx }).collect();
    let mut machine = Machine::new(profiles().remove(0), Options::default()).unwrap();
    let module = machine.load_linked(&parts)?;
    let out = machine.alloc(4).unwrap();
    let args = [out.to_le_bytes().to_vec()];
    let (grid, block) = ([1; 3], [1; 3]);
    let spec =
        LaunchSpec { kernel: "main_kernel", grid, block, shared: 0, cooperative: false, cluster: None, args: &args };
    machine.launch(module, &spec).unwrap();
    let mut bytes = [0; 4];
    machine.read(out, &mut bytes).unwrap();
    Ok(i32::from_le_bytes(bytes))
}

fn refusal(parts: &[(&str, &str)]) -> String {
    load(parts).unwrap_err().to_string()
}

#[test]
fn a_kernel_calls_a_function_and_reads_a_variable_of_another_file() {
    // 5 * 7 (constant of the other file) + 2000 + 100 (own constant), whichever file comes first.
    assert_eq!(load(&[("main.cu", MAIN), ("other.cu", OTHER)]), Ok(2135));
    assert_eq!(load(&[("other.cu", OTHER), ("main.cu", MAIN)]), Ok(2135));
}

#[test]
fn a_visible_definition_comes_before_a_weak_one() {
    let weak = OTHER.replace(".visible .func", ".weak .func").replace(".visible .global", ".weak .global");
    let weak = weak.replace("own = 7", "own = 1").replace("= 2000", "= 1");
    for parts in [[MAIN, &weak, OTHER], [OTHER, &weak, MAIN]] {
        let named = parts.map(|text| ("a file", text));
        assert_eq!(load(&named), Ok(2135));
    }
    assert_eq!(load(&[("main.cu", MAIN), ("weak.cu", &weak), ("again.cu", &weak)]), Ok(5 + 1 + 100));
}

#[test]
fn what_is_defined_twice_or_nowhere_is_named_with_its_files() {
    let twice = refusal(&[("main.cu", MAIN), ("other.cu", OTHER), ("third.cu", OTHER)]);
    assert_eq!(twice, "`scale` is defined in other.cu and in third.cu");
    assert_eq!(refusal(&[("main.cu", MAIN)]), "no file defines `scale`, which main.cu declares");
    let no_counter = OTHER.replace(".visible .global .align 4 .u32 counter = 2000;", "");
    let missing = refusal(&[("main.cu", MAIN), ("other.cu", &no_counter)]);
    assert_eq!(missing, "no file defines `counter`, which main.cu declares");
    let broken = refusal(&[("main.cu", MAIN), ("other.cu", "nonsense")]);
    assert!(broken.starts_with("other.cu: the PTX does not parse: "), "{broken}");
}
