//! A checksum per line: the first eight hexadecimal digits of the SHA-256 of the line without it, as its last field.
//!
//! It finds flipped bits and joined or cut lines, not a forged line.

use crate::model::sha256_hex;

const DIGITS: usize = 8;
const FIELD: &str = ",\"sum\":\"";
const END: &str = "\"}";

/// Puts the checksum into the text of a JSON object.
pub(super) fn seal(mut object: String) -> String {
    let sum = of(object.as_bytes());
    object.truncate(object.len() - 1);
    object.push_str(FIELD);
    object.push_str(&sum);
    object.push_str(END);
    object
}

/// Whether a line's checksum is that of its text. The error says what is wrong.
pub(super) fn check(line: &[u8]) -> Result<(), String> {
    let place = line.len().checked_sub(FIELD.len() + DIGITS + END.len());
    let parts = place.map(|place| line.split_at(place)).and_then(|(object, field)| {
        let sum = field.strip_prefix(FIELD.as_bytes())?.strip_suffix(END.as_bytes())?;
        Some((object, sum))
    });
    let Some((object, sum)) = parts else { return Err("the line has no checksum".to_owned()) };
    let whole = [object, b"}"].concat();
    let found = of(&whole);
    if found.as_bytes() == sum {
        return Ok(());
    }
    Err(format!("the checksum is {}, that of the text is {found}", String::from_utf8_lossy(sum)))
}

fn of(object: &[u8]) -> String {
    let mut sum = sha256_hex(object);
    sum.truncate(DIGITS);
    sum
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
