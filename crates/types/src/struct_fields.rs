//! Structs whose fields are given by name: the compiler determines each field's offset.
//!
//! A unit asks for the mangled name of a template instance that is appended to the source. The template's arguments are
//! the size of the struct, and the offset and size of each field. So the mangled name encodes the layout, and reading
//! it works like any other requested variable, with every compiler.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

const TEMPLATE: &str = "runner_layout<";

/// Defines the template, which infers the struct's type from a kernel parameter.
const DEFINITIONS: &str = "
template <unsigned long long N, class F> struct runner_parameter;
template <class R, class A, class... B> struct runner_parameter<0, R(A, B...)> { using type = A; };
template <unsigned long long N, class R, class A, class... B>
struct runner_parameter<N, R(A, B...)> : runner_parameter<N - 1, R(B...)> {};
template <unsigned long long... V> __constant__ char runner_layout = 0;
#define RUNNER_PARAMETER(N, ...) runner_parameter<N, decltype(__VA_ARGS__)>::type
#ifdef __CUDACC_RTC__
#define RUNNER_BEGIN(M, ...) __INTADDR__(&((__VA_ARGS__ *)0)->M)
#else
#define RUNNER_BEGIN(M, ...) __builtin_offsetof(__VA_ARGS__, M)
#endif
#define RUNNER_FIELD(M, ...) RUNNER_BEGIN(M, RUNNER_PARAMETER(__VA_ARGS__)), sizeof(((RUNNER_PARAMETER(__VA_ARGS__) *)0)->M)
";

/// A buffer address within a struct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldAddress {
    /// Offset of the address within the struct.
    pub at: usize,
    pub buffer: String,
    /// Offset of the address within the buffer, in bytes.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedField {
    /// C++ path of the field, such as `shape.rows` or `points[1].x`.
    pub path: String,
    /// Bytes of the value, with zeros in place of addresses; empty for an array whose elements follow.
    pub bytes: Vec<u8>,
    /// Addresses in the field, with offsets relative to its start.
    pub addresses: Vec<FieldAddress>,
}

impl NamedField {
    /// An array that contains the fields listed after it. [`lay_out`] checks that they are within it, since the
    /// compiler does not.
    pub fn array(path: &str) -> Self {
        Self { path: path.to_owned(), bytes: Vec::new(), addresses: Vec::new() }
    }
}

/// Variable whose mangled name encodes the layout of a kernel parameter with these fields.
pub fn layout_symbol(kernel: &str, parameter: usize, fields: &[NamedField]) -> String {
    let mut text = format!("{TEMPLATE}sizeof(RUNNER_PARAMETER({parameter}, {kernel}))");
    for NamedField { path, .. } in fields {
        // Writing to a String cannot fail.
        let _ = write!(text, ", RUNNER_FIELD({path}, {parameter}, {kernel})");
    }
    text.push('>');
    text
}

/// Describes the argument that a layout variable belongs to, by its position in the manifest; `None` for other
/// variables.
pub fn describe_layout(symbol: &str) -> Option<String> {
    let (_, asked) = symbol.split_once(TEMPLATE)?.1.split_once("RUNNER_PARAMETER(")?;
    let (parameter, kernel) = asked.split_once("))")?.0.split_once(", ")?;
    Some(format!("args[{parameter}] of {kernel}"))
}

/// Code to append to a source if it requests a layout variable; otherwise empty.
pub fn layout_definitions(symbols: &[String]) -> &'static str {
    if symbols.iter().any(|symbol| symbol.starts_with(TEMPLATE)) { DEFINITIONS } else { "" }
}

/// Bytes of a struct and the addresses in it, from the mangled name of its layout variable. The error names a field
/// whose size differs from its value's.
pub fn lay_out(fields: &[NamedField], mangled: &str) -> Result<(Vec<u8>, Vec<FieldAddress>), String> {
    // `_Z13runner_layoutIJLy24ELy0ELy8EEE`: each number is a literal of type `unsigned long long`, mangled as `y`.
    let literals = mangled.split("Ly").skip(1).map_while(|rest| rest.split_once('E')?.0.parse().ok());
    let numbers: Vec<usize> = literals.collect();
    let Some((size, places)) = numbers.split_first().filter(|(_, places)| places.len() == 2 * fields.len()) else {
        return Err(format!("`{mangled}` has no layout of {} fields", fields.len()));
    };
    let (mut bytes, mut addresses, mut arrays) = (vec![0; *size], Vec::new(), Vec::new());
    for (field, place) in fields.iter().zip(places.chunks_exact(2)) {
        let (begin, given) = (place[0], field.bytes.len());
        if given == 0 {
            arrays.push((field.path.as_str(), begin..begin + place[1]));
            continue;
        }
        if given != place[1] {
            let (path, wanted) = (&field.path, place[1]);
            return Err(format!(
                "the field `{path}` has {wanted} bytes in the kernel's struct, but {given} are passed"
            ));
        }
        let is_element = |array: &str| field.path.strip_prefix(array).is_some_and(|rest| rest.starts_with('['));
        if let Some((array, _)) = arrays.iter().find(|(array, at)| is_element(array) && !at.contains(&begin)) {
            return Err(format!("`{}` is beyond the end of `{array}` in the kernel's struct", field.path));
        }
        let Some(to) = bytes.get_mut(begin..begin + given) else {
            return Err(format!("the field `{}` is outside the struct of {size} bytes", field.path));
        };
        to.copy_from_slice(&field.bytes);
        addresses.extend(field.addresses.iter().map(|one| FieldAddress { at: begin + one.at, ..one.clone() }));
    }
    Ok((bytes, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(path: &str, bytes: &[u8], addresses: &[FieldAddress]) -> NamedField {
        NamedField { path: path.to_owned(), bytes: bytes.to_vec(), addresses: addresses.to_vec() }
    }

    #[test]
    fn fields_lie_where_the_name_of_the_variable_says() {
        let address = FieldAddress { at: 0, buffer: "b".to_owned(), bytes: 4 };
        let fields = [field("shape.rows", &[1, 2], &[]), field("x", &[0; 8], std::slice::from_ref(&address))];
        let symbol = layout_symbol("k<float, 4>", 1, &fields);
        assert!(layout_definitions(&["table".to_owned(), symbol.clone()]).contains("runner_layout"));
        assert_eq!(layout_definitions(&["table".to_owned()]), "");
        assert_eq!(
            symbol,
            "runner_layout<sizeof(RUNNER_PARAMETER(1, k<float, 4>)), RUNNER_FIELD(shape.rows, 1, k<float, 4>), \
             RUNNER_FIELD(x, 1, k<float, 4>)>"
        );
        assert_eq!(describe_layout(&format!("&{symbol}")), Some("args[1] of k<float, 4>".to_owned()));
        assert_eq!(describe_layout("k<float, 4>"), None);
        let laid = lay_out(&fields, "_Z13runner_layoutIJLy24ELy4ELy2ELy16ELy8EEE");
        let bytes = [vec![0; 4], vec![1, 2], vec![0; 18]].concat();
        assert_eq!(laid, Ok((bytes, vec![FieldAddress { at: 16, ..address }])));
    }

    #[test]
    fn a_value_that_does_not_fit_its_field_is_named() {
        let fields = [field("shape.rows", &[0; 8], &[])];
        assert_eq!(
            lay_out(&fields, "_Z13runner_layoutIJLy8ELy4ELy4EEE"),
            Err("the field `shape.rows` has 4 bytes in the kernel's struct, but 8 are passed".to_owned())
        );
        assert!(
            lay_out(&fields, "_Z13runner_layoutIJLy8ELy4ELy8EEE")
                .is_err_and(|why| why.contains("is outside the struct"))
        );
        assert!(lay_out(&fields, "_Z5table").is_err());
        let elements = [NamedField::array("t"), field("t[1].v", &[0; 4], &[]), field("t[2].v", &[0; 4], &[])];
        assert_eq!(
            lay_out(&elements, "_Z13runner_layoutIJLy60ELy8ELy16ELy20ELy4ELy28ELy4EEE"),
            Err("`t[2].v` is beyond the end of `t` in the kernel's struct".to_owned())
        );
    }
}
