//! Expected values in device memory, unreadable to the code under test.
//!
//! Uploaded expected values are in the memory of the process whose kernels are judged, and a kernel could search for
//! them. So they are masked with a `ChaCha8` stream, under a key that is drawn for each group and passed only to the
//! comparison. They are masked before the upload, so that no transfer buffer holds them in the clear.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use super::{Kernels, word};
use crate::input_sets::secret;
use crate::parallel;
use runner_backend::{BufferId, Device, DeviceError, LaunchArg};

/// Bytes of a generator block, which one thread masks.
const BLOCK: usize = 64;

/// Bytes that one core masks at a time.
const PIECE: usize = 1 << 20;

/// Bytes uploaded at a time.
const UPLOAD: usize = 1 << 24;

#[derive(Debug, Clone, Copy)]
pub struct Key([u64; 4]);

impl Key {
    pub fn draw() -> Self {
        Self([(); 4].map(|()| secret()))
    }

    /// Masks or unmasks bytes with one stream of the generator. The first byte is at `offset` of the stream, a multiple
    /// of four.
    fn mask(self, bytes: &mut [u8], stream: u64, offset: usize) {
        let mut seed = [0; 32];
        for (place, word) in seed.chunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let mut random = ChaCha8Rng::from_seed(seed);
        random.set_stream(stream);
        random.set_word_pos((offset / 4) as u128);
        for word in bytes.chunks_mut(4) {
            let drawn = random.next_u32().to_le_bytes();
            word.iter_mut().zip(drawn).for_each(|(byte, mask)| *byte ^= mask);
        }
    }
}

impl Kernels {
    /// Masks or unmasks a buffer with one stream of the generator.
    pub fn mask(&self, device: &mut dyn Device, buffer: BufferId, stream: u64) -> Result<(), DeviceError> {
        let bytes = device.size(buffer);
        let mut args = vec![LaunchArg::Buffer(buffer), word(bytes as u64)];
        args.extend(self.key.0.map(word));
        args.push(word(stream));
        self.run(device, self.mask, bytes.div_ceil(BLOCK) as u64, args)
    }

    /// Uploads `len` bytes of values, masked. `read` fills its slice with the bytes from an offset that is a multiple
    /// of eight. The host never holds a second copy of all of them.
    pub fn upload_masked(
        &self,
        device: &mut dyn Device,
        to: BufferId,
        len: usize,
        stream: u64,
        read: &(dyn Fn(usize, &mut [u8]) + Sync),
    ) -> Result<(), DeviceError> {
        let mut room = vec![0; len.min(UPLOAD)];
        for start in (0..len).step_by(UPLOAD) {
            let bytes = &mut room[..UPLOAD.min(len - start)];
            parallel::chunks(bytes, PIECE, &|piece, bytes| {
                let offset = start + piece * PIECE;
                read(offset, bytes);
                self.key.mask(bytes, stream, offset);
            });
            device.upload(to, start, bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::super::tests::bench;
    use super::*;

    #[test]
    fn values_longer_than_one_upload_are_masked_without_a_seam() {
        let (mut device, kernels) = bench();
        let values: Vec<u8> = (0..UPLOAD + PIECE + 131).map(|i| (i % 251) as u8).collect();
        let id = device.alloc(values.len(), 0).unwrap();
        let read = |offset: usize, to: &mut [u8]| to.copy_from_slice(&values[offset..][..to.len()]);
        kernels.upload_masked(device.as_mut(), id, values.len(), 3, &read).unwrap();
        let mut masked = vec![0; values.len()];
        device.download(id, 0, &mut masked).unwrap();
        kernels.key.mask(&mut masked, 3, 0);
        assert!(masked == values);
    }
}
