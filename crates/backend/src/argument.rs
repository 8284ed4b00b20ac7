//! Arguments of kernels and host functions. They refer to buffers by id, since only the device knows addresses.

use std::sync::Arc;

use super::BufferId;
use runner_types::{ScalarValue, Texture};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchArg {
    /// Address of a buffer.
    Buffer(BufferId),
    /// Address at a byte offset in a buffer.
    Offset(BufferId, u64),
    Scalar(ScalarValue),
    Struct(Struct),
    /// Texture or surface object for a buffer.
    Texture(Texture<BufferId>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struct {
    bytes: Arc<[u8]>,
    /// Addresses in the struct: offset in the struct, buffer, and offset in the buffer.
    addresses: Arc<[(usize, BufferId, u64)]>,
}

impl Struct {
    /// Builds a struct from bytes and addresses (offset in the struct, buffer, offset in the buffer). `None` if an
    /// address does not fit.
    pub fn new(bytes: &[u8], addresses: &[(usize, BufferId, u64)]) -> Option<Self> {
        let fits = |at: usize| at.checked_add(size_of::<u64>()).is_some_and(|end| end <= bytes.len());
        let all_fit = addresses.iter().all(|(at, ..)| fits(*at));
        all_fit.then(|| Self { bytes: bytes.into(), addresses: addresses.into() })
    }

    /// Bytes of the struct. `begin` returns the address of a buffer.
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

    #[must_use]
    pub fn with_buffers(&self, other: impl Fn(BufferId) -> BufferId) -> Self {
        let addresses = self.addresses.iter().map(|(at, buffer, offset)| (*at, other(*buffer), *offset)).collect();
        Self { addresses, ..self.clone() }
    }
}
