//! Arguments of kernels and host functions. They name buffers by id, since only the device knows addresses.

use std::sync::Arc;

use super::BufferId;
use runner_types::{ScalarValue, Texture};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchArg {
    /// Address of a buffer.
    Buffer(BufferId),
    /// Address at an offset in bytes from the beginning of a buffer.
    Offset(BufferId, u64),
    Scalar(ScalarValue),
    Struct(Struct),
    /// A texture or surface object of a buffer.
    Texture(Texture<BufferId>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struct {
    bytes: Arc<[u8]>,
    /// For each address in the struct: its offset, its buffer, and the offset in that buffer.
    addresses: Arc<[(usize, BufferId, u64)]>,
}

impl Struct {
    /// Makes a struct of bytes and addresses: offset in the struct, buffer, offset in the buffer. `None` if an
    /// address does not fit.
    pub fn new(bytes: &[u8], addresses: &[(usize, BufferId, u64)]) -> Option<Self> {
        let fits = |at: usize| at.checked_add(size_of::<u64>()).is_some_and(|end| end <= bytes.len());
        let all_fit = addresses.iter().all(|(at, ..)| fits(*at));
        all_fit.then(|| Self { bytes: bytes.into(), addresses: addresses.into() })
    }

    /// The bytes of the struct. `begin` returns the address of a buffer.
    pub fn bytes<E>(&self, mut begin: impl FnMut(BufferId) -> Result<u64, E>) -> Result<Vec<u8>, E> {
        let mut bytes = self.bytes.to_vec();
        for (at, buffer, offset) in self.addresses.iter() {
            let address = begin(*buffer)?.wrapping_add(*offset);
            bytes[*at..*at + size_of::<u64>()].copy_from_slice(&address.to_le_bytes());
        }
        Ok(bytes)
    }

    pub fn buffers(&self) -> impl Iterator<Item = BufferId> {
        self.addresses.iter().map(|(_, buffer, _)| *buffer)
    }

    /// Replaces the buffers.
    #[must_use]
    pub fn with_buffers(&self, other: impl Fn(BufferId) -> BufferId) -> Self {
        let addresses = self.addresses.iter().map(|(at, buffer, offset)| (*at, other(*buffer), *offset)).collect();
        Self { addresses, ..self.clone() }
    }
}
