//! File and folder names derived from text, such as a device's name.
//!
//! Different strings must not share a file, and any string must yield a valid name. A name depends on other files only
//! if they have the same slug.

use std::collections::HashSet;
use std::fmt::Write as _;

use runner_types::sha256_hex;

/// Maximum length in bytes. File systems allow 255.
const LONGEST_SLUG: usize = 80;

/// Maximum length of an escaped name in bytes. File systems allow 255.
const LONGEST_ESCAPED: usize = 200;

const HASH_DIGITS: usize = 8;

/// Name for a file or folder: lower-case letters and digits, joined by hyphens, e.g. `nvidia-h100-80gb-hbm3`. Different
/// strings may have the same slug; [`FileNames`] tells them apart.
pub fn slug(text: &str) -> String {
    hyphenated(text).to_ascii_lowercase()
}

/// Keeps letters and digits and joins them by hyphens. For names that users choose and type.
pub fn hyphenated(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(LONGEST_SLUG);
    name.trim_end_matches('-').to_owned()
}

/// Slug followed by hash digits, which distinguish strings with the same slug.
pub fn hashed_slug(text: &str) -> String {
    with_hash(&slug(text), text)
}

fn with_hash(name: &str, text: &str) -> String {
    let hash = &sha256_hex(text.as_bytes())[..HASH_DIGITS];
    if name.is_empty() { hash.to_owned() } else { format!("{name}-{hash}") }
}

/// A name unique to `text`. Bytes other than ASCII letters, digits and `others` become `%` and two hexadecimal digits.
/// If the name is too long for a file system, a hash replaces the rest.
pub fn escaped(text: &str, others: &str) -> String {
    let mut escaped = String::new();
    for (place, byte) in text.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || others.as_bytes().contains(&byte);
        // Escape a leading dot, which would make the name hidden or special.
        if is_plain || (byte == b'.' && place > 0) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    shortened(escaped)
}

/// The escaped name, or, if that is too long, its beginning and a hash. A name that was not shortened contains no `~`.
pub fn shortened(escaped: String) -> String {
    if escaped.len() <= LONGEST_ESCAPED {
        return escaped;
    }
    let hash = sha256_hex(escaped.as_bytes());
    format!("{}~{hash}", &escaped[..LONGEST_ESCAPED - hash.len() - 1])
}

/// Hands out unique file names for one folder, even on file systems that ignore case.
#[derive(Debug, Default)]
pub struct FileNames {
    used: HashSet<String>,
}

impl FileNames {
    /// Returns `name`, or `name-2`, `name-3` and so on if it was handed out before.
    pub fn claim(&mut self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        loop {
            // Never happens: the iterator is infinite.
            let Some(name) = names.next() else { return String::new() };
            if self.used.insert(name.to_lowercase()) {
                return name;
            }
        }
    }

    /// One name per file. Each item is a short string for the name and a string that distinguishes the file from others
    /// with the same slug. A file's name depends on other files only if one has the same slug.
    pub fn for_all<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
        let files: Vec<(String, &str)> = files.into_iter().map(|(text, identity)| (slug(text), identity)).collect();
        let mut slugs = HashSet::new();
        let shared: HashSet<&String> = files.iter().map(|(slug, _)| slug).filter(|slug| !slugs.insert(*slug)).collect();
        let is_alone = |slug: &String| !slug.is_empty() && !shared.contains(slug);
        let mut names = Self::default();
        // Names without a conflict stay as they are, so they are assigned first.
        let alone: Vec<Option<String>> =
            files.iter().map(|(slug, _)| is_alone(slug).then(|| names.claim(slug))).collect();
        let named = alone.into_iter().zip(&files);
        named.map(|(alone, (slug, text))| alone.unwrap_or_else(|| names.claim(&with_hash(slug, text)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Strings over a small alphabet, so that many have the same slug.
    fn texts() -> impl Strategy<Value = Vec<String>> {
        let near = prop::collection::vec(prop::sample::select(vec!["a", "A", "b", "-", " ", "2", "/", ".", "ä"]), 0..5);
        let long = (79_usize..83).prop_map(|length| "x".repeat(length));
        prop::collection::vec(prop_oneof![8 => near.prop_map(|parts| parts.concat()), 1 => long], 0..40)
    }

    proptest! {
        #[test]
        fn no_two_files_share_a_name(texts in texts()) {
            let names = FileNames::for_all(texts.iter().map(|text| (text.as_str(), text.as_str())));
            let different: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
            prop_assert_eq!(different.len(), texts.len(), "{:?}", names);
            for name in &names {
                let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
                prop_assert!(is_plain && !name.is_empty() && name.len() < 100, "{:?}", name);
            }
        }

        #[test]
        fn no_name_is_handed_out_twice(texts in texts()) {
            let mut names = FileNames::default();
            let claimed: BTreeSet<String> = texts.iter().map(|text| names.claim(text).to_lowercase()).collect();
            prop_assert_eq!(claimed.len(), texts.len());
        }

        #[test]
        fn different_texts_are_escaped_to_different_names(a in ".{0,90}", b in ".{0,90}", tail in "[a-z/~%]{0,220}") {
            let names = [&a, &b].map(|start| escaped(&format!("{start}{tail}"), "=,[]"));
            prop_assert_eq!(a == b, names[0] == names[1]);
            prop_assert!(names.iter().all(|name| name.len() <= LONGEST_ESCAPED && !name.contains('/')));
        }
    }

    #[test]
    fn only_files_that_would_share_a_name_get_a_hash() {
        let names = FileNames::for_all([("time n 1", "t"), ("copy v.1", "copy v.1"), ("copy v-1", "copy v-1")]);
        // The digits are from `printf 'copy v.1' | sha256sum`.
        assert_eq!(names, ["time-n-1", "copy-v-1-48de5e30", "copy-v-1-22319266"]);
    }

    #[test]
    fn equal_names_are_numbered() {
        let mut names = FileNames::default();
        assert_eq!(["a", "a", "a-2", "A", "b"].map(|name| names.claim(name)), ["a", "a-2", "a-2-2", "A-3", "b"]);
    }

    #[test]
    fn a_file_name_has_letters_digits_and_single_hyphens() {
        assert_eq!(slug("NVIDIA H100 80GB HBM3"), "nvidia-h100-80gb-hbm3");
        assert_eq!(slug("bandwidth-block = 512, type = i32"), "bandwidth-block-512-type-i32");
        assert_eq!([slug("time-"), slug("time-../x|y")], ["time", "time-x-y"]);
        assert_eq!(slug(&"ab".repeat(60)).len(), 80);
    }
}
