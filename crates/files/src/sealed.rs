//! Checksums for everything that a later run reads back: whole files, lines of JSON, and files whose format other
//! programs define.
//!
//! The same check detects a flipped bit, a truncation or an edit in everything that is stored. A checksum detects
//! damage, not forgery. The owner of a damaged file regenerates it; [`read`] and [`is_intact`] log one line about it.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::atomic::{self, WriteError};
use crate::regular;
use runner_types::{hex, sha256_hex};

/// First bytes of a sealed file, followed by the SHA-256 of its name and content, a line feed and the content. With the
/// name, a copy of another file is damaged, too: names of cache entries are addresses.
const MARK: &[u8] = b"sealed as ";

/// First bytes of a file that an older version sealed, by the SHA-256 of its content alone.
const OLDER_MARK: &[u8] = b"sealed ";

/// Number of hexadecimal digits of a SHA-256.
const FILE_DIGITS: usize = 64;

/// Number of SHA-256 digits at the end of a line.
const LINE_DIGITS: usize = 8;
const FIELD: &str = ",\"sum\":\"";
const END: &str = "\"}";

/// Extension of the file that holds the checksums of another file or of a folder's files.
const SUMS: &str = "sums";

/// Replaces the file at `path` with `content`, preceded by its checksum.
pub fn write(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    atomic::write(path, &[MARK, named_sum(path, content).as_bytes(), b"\n", content].concat())
}

/// SHA-256 of a file's name and content.
fn named_sum(path: &Path, content: &[u8]) -> String {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    hex(&Sha256::new().chain_update(name).chain_update([0]).chain_update(content).finalize())
}

/// Content of a file that [`write`] wrote. `None` if the file is missing or damaged, or if an older version wrote it.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let mut file = regular::read_data(path, regular::LONGEST_DATA).ok()?;
    let (mark, is_named) = if file.starts_with(MARK) { (MARK, true) } else { (OLDER_MARK, false) };
    let rest = file.strip_prefix(mark)?;
    let parts = rest.split_at_checked(FILE_DIGITS).and_then(|(sum, rest)| Some((sum, rest.strip_prefix(b"\n")?)));
    let sum_of = |content: &[u8]| if is_named { named_sum(path, content) } else { sha256_hex(content) };
    if parts.is_some_and(|(sum, content)| sum_of(content).as_bytes() == sum) {
        return Some(file.split_off(mark.len() + FILE_DIGITS + 1));
    }
    warn_damaged(path);
    None
}

/// Warns about a damaged cache file, which will be regenerated.
pub fn warn_damaged(path: &Path) {
    tracing::warn!("{} is damaged; regenerating it", path.display());
}

/// Stores the checksums of a file, or of all files in a folder, next to it.
pub fn attest(path: &Path) -> Result<(), WriteError> {
    let sums = sums(path).map_err(|source| WriteError { action: "read", path: path.to_owned(), source })?;
    write(&sums_file(path), sums.as_bytes())
}

/// Whether a file or folder is unchanged since [`attest`] was called. `None` if it has no checksums.
pub fn is_intact(path: &Path) -> Option<bool> {
    let stored = read(&sums_file(path))?;
    Some(sums(path).is_ok_and(|sums| sums.as_bytes() == stored))
}

fn sums_file(path: &Path) -> PathBuf {
    path.with_added_extension(SUMS)
}

/// One line per file, in name order: checksum and path relative to `root`.
fn sums(root: &Path) -> io::Result<String> {
    let (mut sums, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        } else {
            let name = path.strip_prefix(root).unwrap_or(&path);
            sums.push(format!(
                "{} {}\n",
                sha256_hex(&regular::read_data(&path, regular::LONGEST_DATA)?),
                name.display()
            ));
        }
    }
    sums.sort_unstable_by(|a, b| a[FILE_DIGITS..].cmp(&b[FILE_DIGITS..]));
    Ok(sums.concat())
}

/// Why a line's checksum is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadLine {
    NoSum,
    OtherSum { stated: String, found: String },
}

impl Display for BadLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSum => f.write_str("the line has no checksum"),
            Self::OtherSum { stated, found } => write!(f, "checksum mismatch: {stated} stated, {found} computed"),
        }
    }
}

/// Adds a checksum to a JSON object as its last field: the first digits of the SHA-256 of the text without that field.
pub fn line(mut object: String) -> String {
    object.truncate(object.len() - 1);
    let sum = line_sum(object.as_bytes());
    object.push_str(FIELD);
    object.extend(sum.map(char::from));
    object.push_str(END);
    object
}

/// Adds the checksum to the object that starts at `start` and ends at the end of `text`.
pub fn close_line(text: &mut Vec<u8>, start: usize) {
    text.truncate(text.len() - 1);
    let sum = line_sum(&text[start..]);
    text.extend_from_slice(FIELD.as_bytes());
    text.extend_from_slice(&sum);
    text.extend_from_slice(END.as_bytes());
}

/// A line without its checksum and closing brace.
pub fn open_line(line: &[u8]) -> &[u8] {
    &line[..line.len().saturating_sub(FIELD.len() + LINE_DIGITS + END.len())]
}

/// Fails unless the line's checksum matches its text.
pub fn check_line(line: &[u8]) -> Result<(), BadLine> {
    let (object, field) = line.split_at(open_line(line).len());
    let sum = field.strip_prefix(FIELD.as_bytes()).and_then(|field| field.strip_suffix(END.as_bytes()));
    let sum = sum.ok_or(BadLine::NoSum)?;
    let found = line_sum(object);
    if found == sum {
        return Ok(());
    }
    let [stated, found] = [sum, &found].map(|sum| String::from_utf8_lossy(sum).into_owned());
    Err(BadLine::OtherSum { stated, found })
}

/// Checksum of an object's text without its closing brace.
fn line_sum(object: &[u8]) -> [u8; LINE_DIGITS] {
    let digest = Sha256::new_with_prefix(object).chain_update(b"}").finalize();
    std::array::from_fn(|i| {
        let digit = digest[i / 2] >> (4 * (1 - i % 2)) & 0xf;
        b"0123456789abcdef"[usize::from(digit)]
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_any_flipped_bit_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("entry");
        assert_eq!(read(&path), None);
        write(&path, b"abc").unwrap();
        // `printf 'entry\\0abc' | sha256sum`
        let expected = b"sealed as c78a1d6983efc7d6fcc34034bb718c3ea3e320dcbdb4c8244441a00ffa017c68\nabc";
        assert_eq!(fs::read(&path).unwrap(), expected);
        assert_eq!(read(&path).unwrap(), b"abc");
        for bit in 0..8 * expected.len() {
            let mut damaged = expected.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            assert_eq!(read(&path), None, "bit {bit}");
        }
        for cut in 0..expected.len() {
            fs::write(&path, &expected[..cut]).unwrap();
            assert_eq!(read(&path), None, "{cut} bytes");
        }
    }

    #[test]
    fn a_copy_of_another_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        write(&one, b"1").unwrap();
        fs::copy(&one, &other).unwrap();
        assert_eq!((read(&one), read(&other)), (Some(b"1".to_vec()), None));
    }

    #[test]
    fn a_file_that_an_older_version_sealed_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("entry");
        // SHA-256 of `abc` in FIPS 180-4, appendix B.1.
        let older = "sealed ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\nabc";
        fs::write(&path, older).unwrap();
        assert_eq!(read(&path).unwrap(), b"abc");
        fs::write(&path, older.replace("abc", "abd")).unwrap();
        assert_eq!(read(&path), None);
    }

    #[test]
    fn a_folder_is_intact_until_a_file_of_it_is_changed_added_removed_or_renamed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("package.d");
        let file = |name: &str| folder.join(name);
        let fill = || {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(file("deep/er")).unwrap();
            fs::write(file("a.h"), "a").unwrap();
            fs::write(file("deep/er/b.h"), "b").unwrap();
        };
        fill();
        assert_eq!(is_intact(&folder), None);
        attest(&folder).unwrap();
        assert_eq!(is_intact(&folder), Some(true));
        let changes: [&dyn Fn(); 4] = [
            &|| fs::write(file("deep/er/b.h"), "c").unwrap(),
            &|| fs::write(file("deep/c.h"), "").unwrap(),
            &|| fs::remove_file(file("a.h")).unwrap(),
            &|| fs::rename(file("a.h"), file("c.h")).unwrap(),
        ];
        for change in changes {
            fill();
            change();
            assert_eq!(is_intact(&folder), Some(false));
        }
        let program = dir.path().join("program");
        fs::write(&program, "x").unwrap();
        attest(&program).unwrap();
        assert_eq!(is_intact(&program), Some(true));
        fs::write(&program, "y").unwrap();
        assert_eq!(is_intact(&program), Some(false));
    }

    #[test]
    fn the_checksum_of_a_line_is_the_beginning_of_the_digest_of_the_line_without_it() {
        // `printf '{"a":1}' | sha256sum`
        let sealed = line("{\"a\":1}".to_owned());
        assert_eq!(sealed, "{\"a\":1,\"sum\":\"015abd7f\"}");
        assert_eq!(check_line(sealed.as_bytes()), Ok(()));
        assert_eq!(check_line(b"{\"a\":1}"), Err(BadLine::NoSum));
    }

    #[test]
    fn any_flipped_bit_of_a_line_is_found() {
        let sealed = line("{\"case\":\"reduce\",\"time\":12.5}".to_owned()).into_bytes();
        for bit in 0..8 * sealed.len() {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(check_line(&damaged).is_err(), "bit {bit}");
        }
    }
}
