//! Seeded random streams that fill a buffer.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};

/// Generator of a buffer's random streams, represented by its key.
pub struct Source([u8; 32]);

impl Source {
    pub fn new(seed: u64, name: &str) -> Self {
        Self(Sha256::new().chain_update(seed.to_le_bytes()).chain_update(name.as_bytes()).finalize().into())
    }

    /// The key as little-endian words.
    pub fn words(&self) -> [u64; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(self.0.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        words
    }

    pub fn stream(&self, chunk: usize) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::from_seed(self.0);
        rng.set_stream(chunk as u64);
        rng
    }
}
