//! Host addresses of the elements of a load or a store.

use std::mem::MaybeUninit;

use crate::program::ins::Ins;
use crate::program::row::{LANES, Row};

/// Host addresses of a request's elements, which are aligned to their size.
#[derive(Debug, Clone, Copy)]
pub enum Elements {
    /// The elements of all 32 lanes are contiguous from this address.
    All(*mut u8),
    /// A pointer per lane; valid only for active lanes.
    Active(*mut u8),
    /// All active lanes access this element.
    Same(*mut u8),
    /// Each lane's elements start at its pointer.
    Apart,
    /// The request is complete, was split up or has failed. Holds the handler's return value.
    Done(*const Ins),
}

/// A pointer per lane, set only for [`Elements::Apart`].
#[derive(Debug)]
pub struct Pointers(Row<MaybeUninit<*mut u8>>);

impl Pointers {
    #[inline(always)]
    pub const fn new() -> Self {
        Self(Row([MaybeUninit::uninit(); LANES]))
    }

    /// Returns the pointer of a lane.
    ///
    /// # Safety
    ///
    /// The pointers were set.
    #[inline(always)]
    pub unsafe fn element(&self, lane: usize) -> *mut u8 {
        // SAFETY: the caller has set all pointers.
        unsafe { self.0.0[lane & 31].assume_init() }
    }

    /// Sets the pointers of all lanes.
    #[inline(always)]
    pub fn set(&mut self, of: impl Fn(usize) -> *mut u8) {
        for (k, pointer) in self.0.0.iter_mut().enumerate() {
            pointer.write(of(k));
        }
    }
}
