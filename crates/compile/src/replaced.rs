//! Macros that the manifest overrides: its `defines` replace the file's own `#define`, so that sizes in a published
//! kernel can vary without changing the file.

use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replaced {
    /// The source without these definitions, with unchanged line numbers.
    pub text: String,
    /// One line for the log per replaced definition.
    pub log: String,
}

/// Removes the definitions of macros that the manifest defines; `None` if there are none. Definitions directly below an
/// `#ifndef` of the name are kept, since they have no effect. Macros with parameters are kept, too: the compiler
/// reports them.
pub(super) fn replace(source: &str, defines: &[(String, String)]) -> Option<Replaced> {
    let mut replaced = Replaced { text: String::with_capacity(source.len()), log: String::new() };
    let mut lines = source.split_inclusive('\n').enumerate();
    let mut guarded = None;
    while let Some((number, line)) = lines.next() {
        let name = defined(line).filter(|name| guarded != Some(*name));
        let Some((name, value)) = name.and_then(|name| defines.iter().find(|define| define.0 == name)) else {
            replaced.text.push_str(line);
            guarded = guard(line).or(guarded.filter(|_| line.trim().is_empty()));
            continue;
        };
        let (definition, comment) = split_comment(line);
        // Writing to a string does not fail.
        let _ = writeln!(
            replaced.log,
            "line {}: `{}` is replaced, since the manifest defines {name} as {value}",
            number + 1,
            definition.trim().trim_end_matches('\\').trim_end()
        );
        replaced.text.push_str(if comment.is_empty() { "\n" } else { comment });
        // Continuation lines of the definition.
        let mut before = line;
        while comment.is_empty()
            && goes_on(before)
            && let Some((_, line)) = lines.next()
        {
            replaced.text.push('\n');
            before = line;
        }
    }
    (!replaced.log.is_empty()).then_some(replaced)
}

/// Macro without parameters that a line defines.
fn defined(line: &str) -> Option<&str> {
    let (name, rest) = directive(line, "define")?;
    (!rest.starts_with('(')).then_some(name)
}

/// Macro of an `#ifndef`.
fn guard(line: &str) -> Option<&str> {
    directive(line, "ifndef").map(|(name, _)| name)
}

/// Name in a directive, and the rest of the line.
fn directive<'l>(line: &'l str, word: &str) -> Option<(&'l str, &'l str)> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix(word)?;
    let name = rest.trim_start();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    (name.len() < rest.len()).then(|| name.split_at(end))
}

/// Splits a line before its first comment.
fn split_comment(line: &str) -> (&str, &str) {
    let at = ["//", "/*"].into_iter().filter_map(|begin| line.find(begin)).min();
    line.split_at(at.unwrap_or(line.len()))
}

/// Whether a definition continues on the next line.
fn goes_on(line: &str) -> bool {
    line.trim_end_matches(['\r', '\n']).ends_with('\\')
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    fn replaced(source: &str) -> String {
        replace(source, &[("N".to_owned(), "8".to_owned())]).map_or_else(|| source.to_owned(), |found| found.text)
    }

    #[test]
    fn a_definition_leaves_an_empty_line_and_its_comment() {
        assert_eq!(replaced("a\n#define N 4\nb\n"), "a\n\nb\n");
        assert_eq!(replaced("  #  define\tN\nb"), "\nb");
        assert_eq!(replaced("#define N (2 * \\\n  2)\nb\n"), "\n\nb\n");
        assert_eq!(replaced("#define N 4 // four\n"), "// four\n");
        assert_eq!(replaced("#define N 4 /* the\n size */\n"), "/* the\n size */\n");
        assert_eq!(replaced("#define N 4"), "\n");
        assert_eq!(replaced("#define N 4\r\nb\r\n"), "\nb\r\n");
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        for source in ["#define NN 4\n", "#define N(x) x\n", "#undef N\n", "int N;\n", "#ifdef N\n#endif", "#defineN 4"]
        {
            assert_eq!(replaced(source), source);
        }
    }

    #[test]
    fn a_definition_of_what_is_not_defined_stays() {
        let guarded = "#ifndef N\n\n# define N 4\n#endif\n";
        assert_eq!(replaced(guarded), guarded);
        assert_eq!(replaced("#ifndef M\n#define N 4\n#endif\n"), "#ifndef M\n\n#endif\n");
        assert_eq!(replaced("#ifndef N\n#endif\n#define N 4\n"), "#ifndef N\n#endif\n\n");
    }

    #[test]
    fn the_log_names_the_line_and_both_values() {
        let found = replace("\n#define N 4\n", &[("N".to_owned(), "8".to_owned())]).unwrap();
        assert_eq!(found.log, "line 2: `#define N 4` is replaced, since the manifest defines N as 8\n");
    }
}
