//! Recovers names of variables in the source from mangled symbols.

/// Names of a vector's elements, as coordinates and as colours.
pub const SELECTORS: [&[u8; 4]; 2] = [b"xyzw", b"rgba"];

/// Returns the name of an element of a vector register.
pub fn element(name: &str, k: u8) -> String {
    format!("{name}.{}", char::from(SELECTORS[0][usize::from(k & 3)]))
}

/// Namespaces of the libraries in the toolkit.
const LIBRARIES: [&str; 5] = ["cuda", "cub", "thrust", "std", "cooperative_groups"];

/// Returns a variable's name in the source, without scopes. `None` if the compiler or a library declared it.
pub fn source_name(symbol: &str) -> Option<&str> {
    let Some(mangled) = symbol.strip_prefix("_Z") else {
        let own = !symbol.starts_with("__") && !symbol.contains('$');
        return own.then_some(symbol);
    };
    let mut names = identifiers(mangled);
    let first = names.next()?;
    let last = names.last().unwrap_or(first);
    (!LIBRARIES.contains(&first) && !first.starts_with("__")).then_some(last)
}

/// Returns the identifiers in a name mangled according to the Itanium C++ ABI, outermost scope first. Skips literals
/// among template arguments (`Li256E`), because their digits are not lengths.
fn identifiers(mangled: &str) -> impl Iterator<Item = &str> {
    let mut left = mangled;
    std::iter::from_fn(move || {
        loop {
            let at = left.find(|c: char| c == 'L' || c.is_ascii_digit())?;
            left = &left[at..];
            if left.starts_with('L') {
                left = left.find('E').map_or("", |end| &left[end + 1..]);
                continue;
            }
            let digits = left.find(|c: char| !c.is_ascii_digit()).unwrap_or(left.len());
            let length = left[..digits].parse::<usize>().ok();
            left = &left[digits..];
            if let Some((name, rest)) = length.filter(|n| *n > 0).and_then(|n| left.split_at_checked(n)) {
                left = rest;
                return Some(name);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::mir::names::source_name;

    #[test]
    fn a_variable_is_named_as_in_the_source() {
        assert_eq!(source_name("counter"), Some("counter"));
        assert_eq!(source_name("_ZZ5earlyE4tile"), Some("tile"));
        assert_eq!(source_name("_ZZ4sortILi256EfEvPT0_E4keys"), Some("keys"));
        assert_eq!(source_name("_ZN7filters5tableE"), Some("table"));
    }

    #[test]
    fn a_variable_that_the_source_does_not_declare_has_no_name() {
        assert_eq!(source_name("$str"), None);
        assert_eq!(source_name("__unnamed_1"), None);
        assert_eq!(source_name("_ZN4cuda3std3__48in_placeE"), None);
    }
}
