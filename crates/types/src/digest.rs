//! SHA-256 digests, used as content addresses.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// SHA-256 of `bytes`, hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Digits of a SHA-256.
const DIGITS: usize = 64;

/// Returns bytes behind their hash, as a file that is trusted only if it is whole.
pub fn seal(bytes: &[u8]) -> Vec<u8> {
    [sha256_hex(bytes).as_bytes(), bytes].concat()
}

/// Returns the bytes that [`seal`] was given; `None` if they or their hash were changed.
pub fn unseal(mut sealed: Vec<u8>) -> Option<Vec<u8>> {
    let bytes = (sealed.len() >= DIGITS).then(|| sealed.split_off(DIGITS))?;
    (sha256_hex(&bytes).as_bytes() == sealed).then_some(bytes)
}

/// Writes bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::sha256_hex;

    #[test]
    fn the_digest_of_abc_is_the_standards_example() {
        // The digest is in FIPS 180-2, appendix B.1.
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
