//! The arguments of kernels and host functions.

use std::sync::Arc;

use super::BufferId;
use crate::model::{ScalarValue, Texture};

/// A value that a kernel gets as an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchArg {
    /// The address that the buffer begins at.
    Buffer(BufferId),
    /// The address that is so many bytes from the beginning of the buffer.
    Offset(BufferId, u64),
    /// A number, passed by value.
    Scalar(ScalarValue),
    /// A struct, passed by value.
    Struct(Struct),
    /// A texture or surface object of a buffer.
    Texture(Texture<BufferId>),
}

/// A struct that is passed by value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struct {
    bytes: Arc<[u8]>,
    /// The byte at which each address begins, and which address it is.
    addresses: Arc<[(usize, BufferId, u64)]>,
}

impl Struct {
    /// Returns a struct of these bytes, with the address of a byte of a buffer at each of these places; `None` if an
    /// address does not lie in it.
    pub fn new(bytes: &[u8], addresses: &[(usize, BufferId, u64)]) -> Option<Self> {
        let fits = |at: usize| at.checked_add(size_of::<u64>()).is_some_and(|end| end <= bytes.len());
        let all_fit = addresses.iter().all(|(at, ..)| fits(*at));
        all_fit.then(|| Self { bytes: bytes.into(), addresses: addresses.into() })
    }

    /// Returns the bytes that the struct consists of. `begin` says where a buffer begins.
    pub fn bytes<E>(&self, mut begin: impl FnMut(BufferId) -> Result<u64, E>) -> Result<Vec<u8>, E> {
        let mut bytes = self.bytes.to_vec();
        for (at, buffer, offset) in self.addresses.iter() {
            let address = begin(*buffer)?.wrapping_add(*offset);
            bytes[*at..*at + size_of::<u64>()].copy_from_slice(&address.to_le_bytes());
        }
        Ok(bytes)
    }

    /// Returns the buffers whose addresses it holds.
    pub fn buffers(&self) -> impl Iterator<Item = BufferId> {
        self.addresses.iter().map(|(_, buffer, _)| *buffer)
    }

    /// Returns the struct with other buffers.
    #[must_use]
    pub fn with_buffers(&self, other: impl Fn(BufferId) -> BufferId) -> Self {
        let addresses = self.addresses.iter().map(|(at, buffer, offset)| (*at, other(*buffer), *offset)).collect();
        Self { addresses, ..self.clone() }
    }
}
