//! Gives each line a checksum: its last field has the first eight hexadecimal digits of the SHA-256 of the line without
//! it.
//!
//! It finds flipped bits and joined or cut lines, not a forged line.

use sha2::{Digest as _, Sha256};

const DIGITS: usize = 8;
const FIELD: &str = ",\"sum\":\"";
const END: &str = "\"}";

/// Puts the checksum into the text of a JSON object.
pub(super) fn seal(mut object: String) -> String {
    object.truncate(object.len() - 1);
    let sum = compute_checksum(object.as_bytes());
    object.push_str(FIELD);
    object.extend(sum.map(char::from));
    object.push_str(END);
    object
}

/// Seals the object that begins at `start` and is the end of `text`.
pub(super) fn close(text: &mut Vec<u8>, start: usize) {
    text.truncate(text.len() - 1);
    let sum = compute_checksum(&text[start..]);
    text.extend_from_slice(FIELD.as_bytes());
    text.extend_from_slice(&sum);
    text.extend_from_slice(END.as_bytes());
}

/// Returns a line without its checksum and its last brace.
pub(super) fn opened(line: &[u8]) -> &[u8] {
    &line[..line.len().saturating_sub(FIELD.len() + DIGITS + END.len())]
}

/// Whether a line's checksum is that of its text. The error says what is wrong.
pub(super) fn check(line: &[u8]) -> Result<(), String> {
    let place = line.len().checked_sub(FIELD.len() + DIGITS + END.len());
    let parts = place.map(|place| line.split_at(place)).and_then(|(object, field)| {
        let sum = field.strip_prefix(FIELD.as_bytes())?.strip_suffix(END.as_bytes())?;
        Some((object, sum))
    });
    let Some((object, sum)) = parts else { return Err("the line has no checksum".to_owned()) };
    let found = compute_checksum(object);
    if found == sum {
        return Ok(());
    }
    let [sum, found] = [sum, &found].map(String::from_utf8_lossy);
    Err(format!("the checksum is {sum}, that of the text is {found}"))
}

/// Returns the checksum of an object whose last brace is left out.
fn compute_checksum(object: &[u8]) -> [u8; DIGITS] {
    let digest = Sha256::new_with_prefix(object).chain_update(b"}").finalize();
    std::array::from_fn(|i| {
        let digit = digest[i / 2] >> (4 * (1 - i % 2)) & 0xf;
        b"0123456789abcdef"[usize::from(digit)]
    })
}

#[cfg(test)]
mod tests {
    use super::{check, seal};

    #[test]
    fn the_checksum_is_the_beginning_of_the_digest_of_the_line_without_it() {
        // `printf '{"a":1}' | sha256sum`
        let sealed = seal("{\"a\":1}".to_owned());
        assert_eq!(sealed, "{\"a\":1,\"sum\":\"015abd7f\"}");
        assert_eq!(check(sealed.as_bytes()), Ok(()));
    }

    #[test]
    fn any_flipped_bit_is_found() {
        let sealed = seal("{\"case\":\"reduce\",\"time\":12.5}".to_owned()).into_bytes();
        for bit in 0..8 * sealed.len() {
            let mut damaged = sealed.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&damaged).is_err(), "bit {bit}");
        }
    }
}
