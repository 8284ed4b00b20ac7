use super::*;

fn statements(body: &str) -> Vec<Statement<'_>> {
    let module = parse(body).unwrap();
    module.functions.into_iter().find_map(|f| f.body).unwrap()
}

#[test]
fn a_guarded_store_keeps_its_parts() {
    let body = statements(".entry k()\n{\n@!%p1 st.global.v2.u32 [%rd1+-8], {%r1, 7};\n}");
    let Statement::Instruction(i) = &body[0] else { panic!("{body:?}") };
    assert_eq!(i.guard, Some(Guard { register: "%p1", negated: true }));
    assert_eq!((&*i.opcode, i.line), ("st.global.v2.u32", 3));
    assert_eq!(
        i.operands,
        [
            Operand::Address { base: Some("%rd1"), offset: -8 },
            Operand::Vector(vec![Operand::Name("%r1"), Operand::Int(7)])
        ]
    );
}

#[test]
fn blanks_may_stand_before_the_modifiers_of_an_opcode() {
    let body = statements(".entry k()\n{\nlop3 .b32 %r1, %r2, %r3, %r4, 106; bar\t.sync .aligned 0; ret ;\n}");
    let opcode = |at: usize| match &body[at] {
        Statement::Instruction(i) => (i.opcode.to_string(), i.operands.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!(opcode(0), ("lop3.b32".to_owned(), 5));
    assert_eq!(opcode(1), ("bar.sync.aligned".to_owned(), 1));
    assert_eq!(opcode(2), ("ret".to_owned(), 0));
}

#[test]
fn literals_have_the_values_of_the_ptx_isa() {
    let body = statements(".entry k(){ x 0x1F, 017, 0b101, 42U, -1, 0f3F800000, 0d3FF0000000000000, 2.5; }");
    let Statement::Instruction(i) = &body[0] else { panic!("{body:?}") };
    assert_eq!(
        i.operands,
        [
            Operand::Int(31),
            Operand::Int(15),
            Operand::Int(5),
            Operand::Int(42),
            Operand::Int(u64::MAX),
            Operand::F32(1.0_f32.to_bits()),
            Operand::F64(1.0_f64.to_bits()),
            Operand::F64(2.5_f64.to_bits()),
        ]
    );
}

fn operands(text: &str) -> Vec<Operand<'_>> {
    match statements(text).remove(0) {
        Statement::Instruction(i) => i.operands,
        other => panic!("{other:?}"),
    }
}

#[test]
fn constant_expressions_have_the_precedence_of_c_and_the_types_of_the_ptx_isa() {
    let cases: [(&str, i64); 28] = [
        ("2 + 3 * 4", 14),
        ("(1 << 5) | 3", 35),
        ("1 << 2 + 1", 8),
        ("7 & 3 == 3", 1),
        ("1 | 6 ^ 2 & 3", 5),
        ("10 - 4 - 3", 3),
        ("-7 / 2", -3),
        ("-8 >> 1", -4),
        ("-8 >> 64", -1),
        ("(.u64)-8 >> 60", 15),
        ("0xF000000000000000 >> 60", 15),
        ("1 << 64", 0),
        ("-1 < 0", 1),
        ("-1 < 0U", 0),
        ("(.s64)0xFFFFFFFFFFFFFFFF < 0", 1),
        ("-7 % 3", 0),
        ("-8 % 3", 2),
        ("!5 + !0", 1),
        ("!!7", 1),
        ("~0 & 0xFF", 255),
        ("3 > 2 ? 10 : 20", 10),
        ("3 > 2 && 0 ? 10 : 1 ? 30 : 40", 30),
        ("0 || 4", 1),
        ("1 != 1", 0),
        ("WARP_SZ * 4 - 1", 127),
        ("-WARP_SZ", -32),
        ("-(2 + 3) + +1", -4),
        ("2.5 < 1.5 + 1.5", 1),
    ];
    for (text, value) in cases {
        assert_eq!(operands(&format!(".entry k(){{ x {text}; }}")), [Operand::Int(value as u64)], "{text}");
    }
    assert_eq!(operands(".entry k(){ x 1.5 * 2.0 - 0.25; }"), [Operand::F64(2.75_f64.to_bits())]);
}

#[test]
fn offsets_lengths_and_initial_values_may_be_expressions() {
    let address = |base, offset| Operand::Address { base, offset };
    assert_eq!(
        operands(".entry k(){ x [p + 4*3], [p - 2*8 + 1], [p + -(4)], [64 * 2], q + (1<<4) - 1; }"),
        [
            address(Some("p"), 12),
            address(Some("p"), -15),
            address(Some("p"), -4),
            address(None, 128),
            Operand::Offset("q", 15)
        ]
    );
    let m = parse(".global .b32 t[2*3+1] = {1 << 4, -(3), t+2*4};").unwrap();
    assert_eq!(m.variables[0].count, 7);
    let last = Initializer::Address { symbol: "t", offset: 8, generic: false };
    assert_eq!(m.variables[0].init, [Initializer::Int(16), Initializer::Int(-3_i64 as u64), last]);
}

#[test]
fn an_expression_without_a_value_is_refused() {
    for (text, words) in [
        ("1 / (3 - 3)", "a division by zero"),
        ("1.5 + 1", "takes two integers or two doubles"),
        ("1.5 % 2.5", "takes integers"),
        ("1 ? 2", "expected `:`"),
        ("(1 + 2", "expected `)`"),
        ("~2.0", "expected an integer"),
        (&"(".repeat(100), "nested deeper than 64"),
        (&"-".repeat(100), "nested deeper than 64"),
    ] {
        let error = parse(&format!(".entry k(){{ x {text}; }}")).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_register_may_have_a_sign_and_a_selector() {
    let body = statements(".entry k(){ vmad.s32.s32.s32 %r1, -%r2.b0, %r3.h1, -%r4; }");
    let Statement::Instruction(i) = &body[0] else { panic!("{body:?}") };
    assert_eq!(
        i.operands,
        [Operand::Name("%r1"), Operand::Negative("%r2.b0"), Operand::Name("%r3.h1"), Operand::Negative("%r4"),]
    );
}

#[test]
fn variables_carry_space_alignment_size_and_initial_values() {
    let m = parse(
        ".global .align 8 .u64 t[2] = {f, generic(g)+4};\n.extern .shared .align 16 .b8 s[];\n.const .v4 .f32 c[3];",
    )
    .unwrap();
    assert_eq!(m.variables[0].size(), 16);
    assert_eq!(
        m.variables[0].init,
        [
            Initializer::Address { symbol: "f", offset: 0, generic: false },
            Initializer::Address { symbol: "g", offset: 4, generic: true }
        ]
    );
    assert_eq!((m.variables[1].size(), m.variables[1].align, m.variables[1].linkage), (0, 16, Linkage::Extern));
    assert_eq!((m.variables[2].size(), m.variables[2].align, m.variables[2].space), (48, 16, Space::Const));
}

#[test]
fn directives_and_types_need_no_blank_between_them() {
    let body = statements(".entry k(){\n{.reg.b32 f;\n.reg.v2.f32 v;\n.shared.align 8.b8 s[4];}}");
    let Statement::Block(inner) = &body[0] else { panic!("{body:?}") };
    let variables: Vec<_> = inner
        .iter()
        .map(|s| match s {
            Statement::Variable(v) => (v.name, v.space, v.size(), v.align),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [("f", Space::Reg, 4, 4), ("v", Space::Reg, 8, 8), ("s", Space::Shared, 4, 8)];
    assert_eq!(variables, expected);
}

#[test]
fn a_call_through_a_register_names_its_prototype() {
    let body = statements(
        ".entry k(){ { .param .b32 p0; pr : .callprototype (.param .b32 _) _ (.param .b32 _);\n call (r0), %rd7, (p0), \
         pr; } }",
    );
    let Statement::Block(inner) = &body[0] else { panic!("{body:?}") };
    let Statement::Instruction(i) = &inner[2] else { panic!("{inner:?}") };
    let call = i.call.as_ref().unwrap();
    assert_eq!((call.target, call.prototype), ("%rd7", Some("pr")));
    assert_eq!((call.returns.len(), call.args.len()), (1, 1));
}

#[test]
fn locations_say_where_they_were_inlined_and_sections_are_ignored() {
    let text = ".version 9.0\n.target sm_90, debug\n.address_size 64\n.file 1 \"k.cu\"\n\
                .entry k(){ .loc 2 261 5, function_name $L__info0, inlined_at 1 6 28\n ret; }\n.section .debug_str\n{\n\
                .b8 1\n.b64 x+4\n}";
    let m = parse(text).unwrap();
    assert_eq!((m.version, m.target, m.files[0].path), ((9, 0), "sm_90", "k.cu"));
    let (place, inlined_at) =
        (SourcePosition { file: 2, line: 261, column: 5 }, Some(SourcePosition { file: 1, line: 6, column: 28 }));
    assert_eq!(m.functions[0].body.as_ref().unwrap()[0], Statement::Location { place, inlined_at });
}

#[test]
fn an_error_names_its_line_and_the_unexpected_token() {
    let error = parse(".entry k()\n{\n  add.s32 %r1, ;\n}").unwrap_err();
    assert_eq!(error.to_string(), "line 3: expected an operand, found `;`");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_sequence_of_tokens_makes_the_parser_panic(words in proptest::collection::vec(
        proptest::sample::select(vec![
            ".entry", ".func", "k", "(", ")", "{", "}", "[", "]", ";", ",", "@", "!", "%p1", "+", "-", "4", "0f", "0x",
            ".reg", ".b32", "<", ">", "=", ":", ".callprototype", ".branchtargets", ".loc", "call", "|", "_", "::",
            "1e",
            ".align", ".v4", "<<", "?", "~", "(.s64)", "WARP_SZ", ".global", "generic", "\"", "/*", "*/", "//", "\n", ".version", ".section", ".pragma",
        ]), 0..60)) {
        let _ = parse(&words.join(" "));
    }
}

/// PTX from a compiler, and a call to a function that takes a structure.
const REAL: [&str; 3] = [
    include_str!("../../simt/tests/ptx/kernels/features.ptx"),
    include_str!("../../simt/tests/ptx/kernels/ladder.ptx"),
    include_str!("../../ptx-conformance/ops/call_structure.ptx"),
];

/// Returns the first character boundary at or after `at`.
fn cut(text: &str, at: usize) -> usize {
    (at.min(text.len())..=text.len()).find(|&k| text.is_char_boundary(k)).unwrap_or(text.len())
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(100))]

    #[test]
    fn damaged_ptx_is_parsed_or_refused_with_a_line(
        which in 0..REAL.len(),
        from in proptest::prelude::any::<usize>(),
        changes in proptest::collection::vec(
            (proptest::prelude::any::<usize>(), 0..30_usize, proptest::sample::select(vec![
                "", ";", "{", "}", "[", "]", "(", ")", ",", "@", "%r1", ".b32", ".reg", "-", "0x", "4294967296", "1e99",
                "\u{e9}", "call", ".loc", ":", "<", "999999999999999999999999", "\"", "//", "/*", "|", "\n", "0f",
            ])),
            1..6,
        ),
    ) {
        // Only the header and part of the text, so that each case parses quickly.
        let text = REAL[which];
        let start = cut(text, from % text.len());
        let mut broken = format!("{}{}", &text[..cut(text, 4000)], &text[start..cut(text, start + 6000)]);
        for (at, length, put) in changes {
            let start = cut(&broken, at % (broken.len() + 1));
            let end = cut(&broken, start + length);
            broken.replace_range(start..end, put);
        }
        if let Err(error) = parse(&broken) {
            let lines = broken.lines().count() as u32;
            proptest::prop_assert!((1..=lines + 1).contains(&error.line), "{} of {} lines", error, lines);
            proptest::prop_assert!(!error.message.is_empty());
        }
    }
}
