//! Conversions between words of a line and masks.

use crate::memory;

/// Words per line.
pub const WORDS: usize = 32;

/// Bit of each word, for loops over all words.
pub const BIT: [u32; WORDS] = {
    let mut bits = [0; WORDS];
    let mut w = 0;
    while w < WORDS {
        bits[w] = 1 << w;
        w += 1;
    }
    bits
};

/// Iterates over the indices of the words in a mask.
pub fn each(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let word = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (word < WORDS).then_some(word)
    })
}

/// Mask of the bytes of `words` words, starting at word `first`.
#[inline]
pub const fn byte_mask(first: usize, words: usize) -> u128 {
    (u128::MAX >> (128 - 4 * words)) << (4 * first)
}

/// Mask of the bytes of these words.
#[inline]
pub fn bytes_of(words: u32) -> u128 {
    if words == u32::MAX {
        return u128::MAX;
    }
    u128::from(memory::bytes_of(words as u16)) | u128::from(memory::bytes_of((words >> 16) as u16)) << 64
}
