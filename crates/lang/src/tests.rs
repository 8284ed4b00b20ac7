#![expect(clippy::unwrap_used, reason = "a test panics to fail")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use strum::VariantArray as _;

use super::node::{Kind, Operator};
use super::template::Style;
use super::*;
use runner_types::{ElementType, Elementwise, RefExpr, RefFunction};

fn scope() -> Scope {
    [
        ("n", Value::Int(4)),
        ("block", Value::Int(0)),
        ("big", Value::Int(i64::MAX)),
        ("x", Value::Float(0.5)),
        ("type", Value::Type(ElementType::F32)),
        ("layout", Value::Str("row".into())),
        ("on", Value::Bool(true)),
    ]
    .into_iter()
    .collect()
}

fn value(text: &str) -> Value {
    Program::parse(text).unwrap().evaluate(&scope()).unwrap()
}

fn evaluation_error(text: &str) -> ExprError {
    Program::parse(text).unwrap().evaluate(&scope()).unwrap_err()
}

fn refusal(text: &str) -> ExprError {
    Program::parse(text).unwrap_err()
}

#[test]
fn arithmetic_gives_what_the_manual_says() {
    let cases = [
        ("1 + 2 * 3", Value::Int(7)),
        ("2 ** 20 + 3", Value::Int(1_048_579)),
        ("2 ** 3 ** 2", Value::Int(512)),
        ("-7 / 2", Value::Int(-3)),
        ("-7 % 2", Value::Int(-1)),
        ("7 / 2.0", Value::Float(3.5)),
        ("1_000_003 % 10", Value::Int(3)),
        ("0xff", Value::Int(255)),
        ("1 << 20", Value::Int(1 << 20)),
        ("-8 >> 1", Value::Int(-4)),
        ("2.0 ** -1", Value::Float(0.5)),
        ("(n + 1) * 2", Value::Int(10)),
        ("n + x", Value::Float(4.5)),
        ("-n", Value::Int(-4)),
        ("(-1) ** 5000000001", Value::Int(-1)),
        ("-2 ** 2", Value::Int(4)),
        ("2 * 3 ** 2", Value::Int(18)),
        ("2 ** 1 << 2", Value::Int(16)),
        ("1 + 2 << 3", Value::Int(17)),
        ("100 - 10 - 1", Value::Int(89)),
        ("2 ** -1 ** 2", Value::Int(2)),
        ("-(n) ** 2", Value::Int(16)),
        ("- -n", Value::Int(4)),
        ("+n", Value::Int(4)),
        ("min(3, 2,)", Value::Int(2)),
        ("min (\n 3,\t2 )", Value::Int(2)),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn numbers_and_strings_are_read_as_the_manual_says() {
    let cases = [
        ("0b101", Value::Int(5)),
        ("0o17", Value::Int(15)),
        ("0xFF_ff", Value::Int(65_535)),
        ("-0x10", Value::Int(-16)),
        ("007", Value::Int(7)),
        ("-9223372036854775808", Value::Int(i64::MIN)),
        ("1_0.2_5", Value::Float(10.25)),
        ("1.", Value::Float(1.0)),
        ("1e3", Value::Float(1000.0)),
        ("2.5E-1", Value::Float(0.25)),
        ("1.5e+2", Value::Float(150.0)),
        (r#""a\"b\\c\t\x41\u00b5""#, Value::Str("a\"b\\c\tA\u{b5}".into())),
        ("\"bf16\"", Value::Type(ElementType::Bf16)),
        ("\"\"", Value::Str(String::new())),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
    let refused = [
        ("9223372036854775808", 0..19, "does not fit in a signed 64-bit integer"),
        ("n + 0xffffffffffffffff", 4..22, "does not fit in a signed 64-bit integer"),
        ("1e400", 0..5, "does not fit in a 64-bit float"),
        ("2n", 0..2, "is not a number"),
        ("1 + 0x", 4..6, "is not a number"),
        ("0b12", 0..4, "is not a number"),
        ("1e", 0..2, "is not a number"),
        ("1.5.2", 3..4, "a method call"),
        (r#"on == "a\q""#, 8..10, "is not a string escape"),
        (r#""\x4""#, 1..5, "is not a string escape"),
        (r#""\ud800""#, 1..7, "is not a string escape"),
        ("n + \"row", 4..8, "is not closed"),
        ("\"a\nb\"", 0..2, "is not closed"),
    ];
    for (text, at, message) in refused {
        let error = refusal(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert_eq!(error.at, Some(at), "{text}");
    }
}

#[test]
fn functions_give_what_the_manual_says() {
    let cases = [
        ("ceil_div(7, 2)", Value::Int(4)),
        ("ceil_div(8, 2)", Value::Int(4)),
        ("ceil_div(-7, 2)", Value::Int(-3)),
        ("round_up(13, 8)", Value::Int(16)),
        ("round_up(16, 8)", Value::Int(16)),
        ("min(3, 1, 2)", Value::Int(1)),
        ("max(3, 1.5)", Value::Float(3.0)),
        ("abs(-5)", Value::Int(5)),
        ("log2(1024)", Value::Int(10)),
        ("log2(8.0)", Value::Float(3.0)),
        ("sqrt(16)", Value::Float(4.0)),
        ("is_pow2(64)", Value::Bool(true)),
        ("is_pow2(0)", Value::Bool(false)),
        ("sizeof(type)", Value::Int(4)),
        ("sizeof(\"bf16\")", Value::Int(2)),
        ("int(2.9)", Value::Int(2)),
        ("int(-2.9)", Value::Int(-2)),
        ("float(3)", Value::Float(3.0)),
        ("select(n > 3, 10, 1 / 0)", Value::Int(10)),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn comparisons_read_types_as_texts_and_logic_stops_early() {
    let cases = [
        ("type == \"f32\"", true),
        ("type != \"i32\"", true),
        ("type == \"f23\"", false),
        ("layout == \"row\" && n >= 2", true),
        ("n == 4.0", true),
        ("n < 3 || on", true),
        ("n == 4 || 1 / block == 0", true),
        ("n == 5 && 1 / block == 0", false),
        ("!(n in [1, 2])", true),
        ("n in [1, 4]", true),
        ("n !in [1, 4]", false),
        ("5 < 3 in [false]", true),
        ("on == n in [1, 4]", true),
        ("type in [\"i32\", \"f32\"]", true),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), Value::Bool(expected), "{text}");
    }
}

#[test]
fn errors_name_the_part_that_failed_and_its_values() {
    let cases = [
        ("8 * (n / block) + big", "division by zero in `n / block` where block = 0, n = 4"),
        ("big + 1", "integer overflow in `big + 1` where big = 9223372036854775807"),
        ("(n + 1) * big", "integer overflow in `(n + 1) * big` where big = 9223372036854775807, n = 4"),
        ("2 ** 63", "integer overflow in `2 ** 63`"),
        ("n ** -2", "a negative power of an integer in `n ** -2` where n = 4"),
        ("1 << 63", "a shift by fewer than 0 or more than 62 bits in `1 << 63`"),
        ("1e308 * 10", "the float result is not finite in `1e308 * 10`"),
        ("n == \"f32\"", "`==` does not take an integer and an element type in `n == \"f32\"` where n = 4"),
        ("layout < \"z\"", "`<` does not take a string and a string in `layout < \"z\"` where layout = row"),
        ("n && on", "expected a bool, not an integer, in `n && on` where n = 4, on = true"),
        ("log2(n + 1)", "log2 of an integer that is not a power of two in `log2(n + 1)` where n = 4"),
        ("ceil_div((n + 1), block)", "division by zero in `ceil_div((n + 1), block)` where block = 0, n = 4"),
        ("sizeof(layout)", "`sizeof` takes an element type, not a string, in `sizeof(layout)` where layout = row"),
        ("blok + 1", "`blok` has no value in `blok`"),
        ("-big - 2", "integer overflow in `-big - 2` where big = 9223372036854775807"),
        ("int(1e30)", "integer overflow in `int(1e30)`"),
    ];
    for (text, expected) in cases {
        assert_eq!(evaluation_error(text).message, expected, "{text}");
    }
    assert_eq!(evaluation_error("blok + 1").hint.unwrap(), "did you mean `block`?");
}

/// A device can write an infinite float, which a loop condition then reads.
#[test]
fn the_least_and_the_greatest_number_are_finite_too() {
    for (text, x) in [("max(x, 1)", f64::INFINITY), ("min(1.5, x)", f64::NEG_INFINITY), ("max(1, 2, x)", f64::INFINITY)]
    {
        let scope = [("x", Value::Float(x))].into_iter().collect();
        let error = Program::parse(text).unwrap().evaluate(&scope).unwrap_err();
        assert!(error.message.starts_with("the float result is not finite in"), "{text}: {}", error.message);
    }
}

#[test]
fn an_error_points_at_its_bytes() {
    assert_eq!(&"1 + (n / block)"[evaluation_error("1 + (n / block)").at.unwrap()], "n / block");
    assert_eq!(&"n ^ 2"[refusal("n ^ 2").at.unwrap()], "^");
    assert_eq!(&"µ + ünknown(1)"[refusal("\"µ\" + unknown(1)").at.unwrap().start..][..0], "");
    assert_eq!(&"\"µ\" + unknown(1)"[refusal("\"µ\" + unknown(1)").at.unwrap()], "unknown");
    let cases = [
        ("2 * ((n + 1) / block )", "(n + 1) / block"),
        ("1 + ceil_div( (n), (block) ) + 1", "ceil_div( (n), (block) )"),
        ("on && !( n )", "!( n )"),
        ("n in [1, (layout)] || on", "n in [1, (layout)]"),
        ("\")\" != layout && ( (big) + 1.5e+2 * (big + 1)) > 1", "big + 1"),
    ];
    for (text, part) in cases {
        assert_eq!(&text[evaluation_error(text).at.unwrap()], part, "{text}");
    }
}

#[test]
fn what_is_not_an_expression_is_refused_with_a_hint() {
    let cases = [
        ("n ^ 2", "`**`"),
        ("n & 1 == 0", "`&&`"),
        ("n = 3", "`==`"),
        ("let y = 1", "only expressions"),
        ("if n > 1 { 2 } else { 3 }", "select"),
        ("'a'", "double quotes"),
        ("sizeof(f32)", "\"f32\""),
        ("n.abs()", "f(x)"),
        ("ceildiv(n, 2)", "`ceil_div`"),
        ("ceil_div(n)", "ceil_div(a, b)"),
        ("sum(n) + 1", "`actual`"),
        ("n === 4", "compare with `==`"),
        ("n !== 4", "compare with `!=`"),
        ("n // 2", "truncates towards zero"),
        ("n--1", "a space"),
        ("on and on", "`&&`"),
        ("n not in [1]", "`!in`"),
        ("on ? 1 : 2", "select"),
    ];
    for (text, hint) in cases {
        let error = refusal(text);
        assert!(error.hint.as_ref().is_some_and(|h| h.contains(hint)), "{text}: {error:?}");
    }
    for text in
        ["", "  ", "n +", "while true { }", "[1, 2]", "#{a: 1}", "|x| x", "n; n", "n[0]", "(n", "f(", "a..b", "`n`"]
    {
        assert!(!refusal(text).message.is_empty(), "{text}");
    }
    let cases = [
        ("(n + 1", 0..1, "`(` is not closed"),
        ("min(n, 1", 3..4, "`(` is not closed"),
        ("n in [1, 2", 5..6, "`[` is not closed"),
        ("n 2", 2..3, "an operator is missing before `2`"),
        ("n + ", 4..4, "the expression ends too early"),
        ("* n", 0..1, "a value is missing before `*`"),
        ("min(, 1)", 4..5, "a value is missing before `,`"),
        ("n)", 1..2, "unexpected `)`"),
        ("n in block", 5..10, "`in` needs a list on its right, as in `block in [128, 256]`"),
        ("n in [1] + 1", 9..10, "`+` does not take a list"),
        ("on && 1", 6..7, "`&&` takes bools, but `1` is the integer"),
        ("n µ", 2..4, "`µ` cannot occur in an expression"),
    ];
    for (text, at, message) in cases {
        let error = refusal(text);
        assert_eq!((error.message.as_str(), error.at), (message, Some(at)), "{text}");
    }
}

#[test]
fn long_and_deep_expressions_are_refused_not_followed() {
    assert!(refusal(&"1+".repeat(600)).message.contains("at most 1024"));
    for (open, close) in [("(", ")"), ("abs(", ")"), ("!", ""), ("- ", ""), ("2**", ""), ("0 in [", "]")] {
        let nested = |levels: usize| format!("{}n{}", open.repeat(levels), close.repeat(levels));
        assert!(Program::parse(&nested(MAX_DEPTH)).is_ok(), "{open}");
        assert!(refusal(&nested(MAX_DEPTH + 1)).message.contains("nests deeper"), "{open}");
    }
    assert_eq!(value(&format!("1{}", "+1".repeat(MAX_DEPTH))), Value::Int(MAX_DEPTH as i64 + 1));
    assert!(refusal(&format!("1{}", "+1".repeat(MAX_DEPTH + 1))).message.contains("nests deeper"));
    let sums_in_sums = (0..10).fold("1".to_owned(), |inner, _| format!("({inner}){}", "+1".repeat(40)));
    assert!(refusal(&sums_in_sums).message.contains("nests deeper"));
    assert_eq!(value(&format!("1{}", " + 1".repeat(40))), Value::Int(41));
}

#[test]
fn typed_results_say_what_was_found() {
    let program = |text| Program::parse(text).unwrap();
    let error = program("n - 5").evaluate_u64(&scope()).unwrap_err();
    assert_eq!(error.message, "expected a non-negative integer, but `n - 5` is the integer -1 where n = 4");
    let error = program("layout").evaluate_bool(&scope()).unwrap_err();
    assert_eq!(error.message, "expected a bool, but `layout` is the string \"row\" where layout = row");
    let error = program("n / 2.0").evaluate_i64(&scope()).unwrap_err();
    assert_eq!(error.message, "expected an integer, but `n / 2.0` is the float 2.0 where n = 4");
    assert!((program("n").evaluate_f64(&scope()).unwrap() - 4.0).abs() < f64::EPSILON);
}

#[test]
fn names_are_the_free_variables() {
    let program = Program::parse("ceil_div(n, u * block) + (n in [a, 2] && !b || type == \"x\")").unwrap();
    let names: Vec<&str> = program.names().iter().map(String::as_str).collect();
    assert_eq!(names, ["a", "b", "block", "n", "type", "u"]);
}

#[test]
fn a_template_writes_names_or_cpp() {
    let program = template::parse("k<{type}, {n * 2}>{{}} {\"}\"}").unwrap();
    assert_eq!(program.render(&scope(), Style::Cpp).unwrap(), "k<float, 8>{} }");
    assert_eq!(program.render(&scope(), Style::Names).unwrap(), "k<f32, 8>{} }");
    assert_eq!(program.names().iter().collect::<Vec<_>>(), ["n", "type"]);
    assert_eq!(template::parse("plain").unwrap().literal(), Some("plain"));
}

#[test]
fn a_broken_template_points_at_the_place() {
    assert_eq!(template::parse("ab{n").unwrap_err().at, Some(2..3));
    assert_eq!(template::parse("ab}n").unwrap_err().at, Some(2..3));
    assert_eq!(template::parse("ab{n ^ 2}").unwrap_err().at, Some(5..6));
    let error = template::parse("k{n / block}").unwrap().render(&scope(), Style::Cpp).unwrap_err();
    assert_eq!(error.at, Some(2..11));
}

#[test]
fn arguments_are_buffers_or_typed_numbers() {
    use argument::Argument;
    assert_eq!(argument::parse(" input ").unwrap(), Argument::Buffer("input".into()));
    let text = "{type}( (n + 1) * 2 )";
    let Argument::Scalar { element, element_at, value, value_at } = argument::parse(text).unwrap() else {
        panic!("a scalar was expected")
    };
    assert_eq!((element.as_str(), value.as_str()), ("{type}", "(n + 1) * 2"));
    assert_eq!((&text[element_at], &text[value_at]), ("{type}", "(n + 1) * 2"));
    for text in ["", "u32()", "(n)", "u32(n", "a b", "3"] {
        assert!(argument::parse(text).is_err(), "{text}");
    }
}

#[test]
fn references_tell_buffers_from_numbers() {
    let program = reference::parse("matmul(transpose(a, m, k), b, m, n, k + 1)").unwrap();
    assert_eq!(program.buffers().iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(program.names().iter().collect::<Vec<_>>(), ["k", "m", "n"]);
    let numbers = [("m", 2), ("n", 3), ("k", 4)].map(|(name, v)| (name, Value::Int(v)));
    let resolved = program.resolve(&numbers.into_iter().collect()).unwrap();
    let buffer = |name: &str| RefExpr::Buffer(name.into());
    let transposed =
        RefExpr::Call { function: RefFunction::Transpose, buffers: vec![buffer("a")], integers: vec![2, 4] };
    let expected = RefExpr::Call {
        function: RefFunction::Matmul,
        buffers: vec![transposed, buffer("b")],
        integers: vec![2, 3, 5],
    };
    assert_eq!(resolved, expected);
}

#[test]
fn a_reference_may_be_a_number_or_a_bare_name() {
    let resolve = |text| reference::parse(text).unwrap().resolve(&scope()).unwrap();
    assert_eq!(resolve("n * 2 + 1"), RefExpr::Constant(Value::Int(9)));
    assert_eq!(resolve("min(n, 3)"), RefExpr::Constant(Value::Int(3)));
    assert_eq!(resolve("n"), RefExpr::Constant(Value::Int(4)));
    assert_eq!(resolve("out"), RefExpr::Buffer("out".into()));
    let bare = reference::parse("out").unwrap();
    assert_eq!((bare.bare(), bare.buffers().len(), bare.names().len()), (Some("out"), 1, 0));
}

#[test]
fn an_index_of_a_reference_is_a_slice_and_elsewhere_it_is_refused() {
    let resolve = |text| reference::parse(text).unwrap().resolve(&scope()).unwrap();
    assert_eq!(resolve("out[n]"), resolve("slice(out, n, n + 1)"));
    assert_eq!(resolve("sum(sort(out)[1..2 * n])"), resolve("sum(slice(sort(out), 1, 2 * n))"));
    let message = |text| reference::parse(text).unwrap_err().message;
    assert_eq!(message("out[1"), "`[` is not closed");
    assert_eq!(message("sum(out)[0]"), "`sum` returns one number, but `slice` takes a buffer");
    assert_eq!(resolve("2 * out[0]"), resolve("2 * slice(out, 0, 1)"));
    assert!(Program::parse("n[0]").unwrap_err().message.starts_with("an index is not allowed"));
}

#[test]
fn wrong_references_say_what_the_function_takes() {
    let cases = [
        ("sum(a, b)", "`sum` takes 1 argument, not 2", "sum(x)"),
        ("dot(a)", "`dot` takes 2 arguments, not 1", "dot(x, y)"),
        ("sum(3)", "`sum` takes a buffer here, not a number", "sum(x)"),
        ("sum(sum(a))", "`sum` returns one number, but `sum` takes a buffer", "sum(x)"),
        ("summ(a)", "there is no reference function `summ`", "did you mean `sum`?"),
        ("transpose(a, 2)", "`transpose` takes 3 arguments, not 2", "transpose(a, rows, columns): row-major"),
    ];
    for (text, message, hint) in cases {
        let error = reference::parse(text).unwrap_err();
        assert_eq!((error.message.as_str(), error.hint.as_deref()), (message, Some(hint)), "{text}");
    }
    assert!(Program::parse("2 * sum(a)").unwrap_err().message.contains("cannot be part of arithmetic"));
    // Powers are defined only for numbers.
    assert!(reference::parse("sum(a) ** 2").unwrap_err().message.contains("cannot be part of arithmetic"));
    assert_eq!(reference::parse("2 * summ(a)").unwrap_err().message, "there is no reference function `summ`");
}

#[test]
fn a_name_in_arithmetic_of_a_reference_is_a_number_if_the_scope_has_it_and_a_buffer_otherwise() {
    let resolve = |text| reference::parse(text).unwrap().resolve(&scope()).unwrap();
    let both = |operation, left, right| RefExpr::Elementwise { operation, operands: vec![left, right] };
    let buffer = |name: &str| RefExpr::Buffer(name.into());
    let number = |value| RefExpr::Constant(Value::Int(value));
    // The scope has n = 4.
    let scaled = both(Elementwise::Multiply, number(4), buffer("p"));
    assert_eq!(resolve("n * p + q"), both(Elementwise::Add, scaled.clone(), buffer("q")));
    assert_eq!(resolve("(n + 1) * p - 2"), {
        both(Elementwise::Subtract, both(Elementwise::Multiply, number(5), buffer("p")), number(2))
    });
    let least = both(Elementwise::Min, both(Elementwise::Min, buffer("p"), number(4)), buffer("q"));
    assert_eq!(resolve("min(p, n, q)"), least);
    let root = RefExpr::Elementwise { operation: Elementwise::Sqrt, operands: vec![buffer("p")] };
    let sum = RefExpr::Call { function: RefFunction::Sum, buffers: vec![scaled], integers: vec![] };
    assert_eq!(resolve("sqrt(p) / sum(n * p)"), both(Elementwise::Divide, root, sum));
    assert_eq!(resolve("n * n + 1"), number(17));
    let rest = both(Elementwise::Remainder, buffer("index"), number(8));
    let is_set = RefExpr::Elementwise { operation: Elementwise::Not, operands: vec![buffer("q")] };
    let either = both(Elementwise::Or, both(Elementwise::Less, rest, number(4)), is_set);
    assert_eq!(resolve("index % (2 * n) < n || !q"), either);
    let parsed = reference::parse("n * p + scan(q)").unwrap();
    let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!((names(parsed.buffers()), names(parsed.either())), ("n p q".to_owned(), "n p".to_owned()));
}

/// The tree without positions, so that trees from different texts compare equal.
fn without_places(node: &Node) -> Node {
    let all = |parts: &[Node]| parts.iter().map(without_places).collect();
    let kind = match &node.kind {
        Kind::Literal(_) | Kind::Name(_) => node.kind.clone(),
        Kind::Negate(inner) => Kind::Negate(Box::new(without_places(inner))),
        Kind::Not(inner) => Kind::Not(Box::new(without_places(inner))),
        Kind::Binary(operator, sides) => Kind::Binary(*operator, Box::new(sides.each_ref().map(without_places))),
        Kind::And(parts) => Kind::And(all(parts)),
        Kind::Or(parts) => Kind::Or(all(parts)),
        Kind::In(value, list) => Kind::In(Box::new(without_places(value)), all(list)),
        Kind::Call(function, arguments) => Kind::Call(*function, all(arguments)),
    };
    Node { kind, span: 0..0 }
}

/// Row of the manual's precedence table that contains the tree's outermost operator.
fn row(node: &Node) -> usize {
    let rows = [&["||"][..], &["&&"], &["==", "!="], &["in"], &["<", "<=", ">", ">="], &["+", "-"]];
    let rows = rows.into_iter().chain([&["*", "/", "%"][..], &["**"], &["<<", ">>"]]);
    let symbol = match &node.kind {
        Kind::Or(_) => "||",
        Kind::And(_) => "&&",
        Kind::In(..) => "in",
        Kind::Binary(operator, _) => operator.symbol(),
        _ => return 9,
    };
    rows.into_iter().position(|row| row.contains(&symbol)).unwrap()
}

/// Prints a tree as an expression, with only the parentheses that the manual's table requires.
fn printed(node: &Node) -> String {
    let list = |parts: &[Node]| parts.iter().map(printed).collect::<Vec<_>>().join(", ");
    let side = |side: &Node, bare: bool| if bare { printed(side) } else { format!("({})", printed(side)) };
    let chain = |parts: &[Node], symbol: &str| {
        parts.iter().map(|part| side(part, row(part) > row(node))).collect::<Vec<_>>().join(symbol)
    };
    match &node.kind {
        Kind::Literal(Value::Str(text)) => format!("\"{text}\""),
        Kind::Literal(Value::Type(element)) => format!("\"{element}\""),
        Kind::Literal(value) => value.to_string(),
        Kind::Name(name) => name.clone(),
        Kind::Negate(inner) => format!("-({})", printed(inner)),
        Kind::Not(inner) => format!("!{}", side(inner, row(inner) == 9)),
        Kind::Binary(operator, sides) => {
            let right_first = *operator == Operator::Power;
            let left = side(&sides[0], row(&sides[0]) > row(node) - usize::from(!right_first));
            let right = side(&sides[1], row(&sides[1]) > row(node) - usize::from(right_first));
            format!("{left} {} {right}", operator.symbol())
        }
        Kind::And(parts) => chain(parts, "&&"),
        Kind::Or(parts) => chain(parts, " || "),
        Kind::In(value, items) => format!("{} in [{}]", side(value, row(value) >= row(node)), list(items)),
        Kind::Call(function, arguments) => format!("{}({})", function.name(), list(arguments)),
    }
}

/// Generates any tree that an expression can have.
fn trees() -> impl Strategy<Value = Node> {
    let node = |kind| Node { kind, span: 0..0 };
    let literals = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::Float),
        any::<bool>().prop_map(Value::Bool),
        "[a-zµ )(]{0,5}".prop_map(|text| Value::from_text(&text)),
    ];
    let names = "[a-z_][a-z0-9_]{3,6}".prop_filter("a name", |name| refusal_of_name(name).is_none());
    let leaves = prop_oneof![literals.prop_map(Kind::Literal), names.prop_map(Kind::Name)].prop_map(node);
    leaves.prop_recursive(5, 24, 3, move |inner| {
        let operators = prop::sample::select(Operator::VARIANTS);
        let no_number = |part: &Node| !matches!(&part.kind, Kind::Literal(value) if !matches!(value, Value::Bool(_)));
        let parts = prop::collection::vec(inner.clone().prop_filter("no number", no_number), 2..4);
        let list = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            inner.clone().prop_map(|part| Kind::Negate(Box::new(part))),
            inner.clone().prop_map(|part| Kind::Not(Box::new(part))),
            (operators, inner.clone(), inner.clone()).prop_map(|(o, a, b)| Kind::Binary(o, Box::new([a, b]))),
            parts.clone().prop_map(Kind::And),
            parts.prop_map(Kind::Or),
            (inner.clone(), list).prop_map(|(value, list)| Kind::In(Box::new(value), list)),
            inner.clone().prop_map(|part| Kind::Call(Function::Abs, vec![part])),
            (inner.clone(), inner).prop_map(|(a, b)| Kind::Call(Function::Max, vec![a, b])),
        ]
        .prop_map(node)
    })
}

fn refusal_of_name(name: &str) -> Option<ExprError> {
    Program::parse(name).err()
}

proptest::proptest! {
    #[test]
    fn a_printed_tree_reads_as_the_same_tree(tree in trees()) {
        let text = printed(&tree);
        if text.len() <= MAX_LENGTH {
            let program = Program::parse(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e:?}")))?;
            prop_assert_eq!(without_places(&program.root), tree, "{}", text);
        }
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in r#"[a-z0-9µ"'`{}()\[\]+*/%<>=!&|^.,;: \\\n-]{0,40}"#) {
        if let Ok(program) = Program::parse(&text) {
            let _ = program.evaluate(&scope());
        }
        let _ = (template::parse(&text), argument::parse(&text), reference::parse(&text));
    }

    #[test]
    fn integer_arithmetic_agrees_with_wider_arithmetic(a in proptest::num::i64::ANY, b in proptest::num::i64::ANY) {
        let scope: Scope = [("a", Value::Int(a)), ("b", Value::Int(b))].into_iter().collect();
        let (wide_a, wide_b) = (i128::from(a), i128::from(b));
        for (text, exact) in [("a + b", wide_a + wide_b), ("a - b", wide_a - wide_b), ("a * b", wide_a * wide_b)] {
            let worked = Program::parse(text).unwrap().evaluate_i64(&scope).ok();
            proptest::prop_assert_eq!(worked, i64::try_from(exact).ok());
        }
    }
}
