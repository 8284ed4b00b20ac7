//! Memory types of atomic operations.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::program::row::Lane;

/// A memory type of atomic operations.
pub trait Cell: Lane {
    type Register: Lane + PartialEq;
    fn widen(self) -> Self::Register;
    fn narrow(register: Self::Register) -> Self;
    /// Replaces the value at `at` with `f(value)` and returns the old value.
    ///
    /// # Safety
    ///
    /// `at` is valid and aligned for this type.
    unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self;
}

macro_rules! cell {
    ($t:ty, $register:ty, $atomic:ty) => {
        impl Cell for $t {
            type Register = $register;

            #[inline(always)]
            fn widen(self) -> $register {
                <$register>::from(self)
            }

            #[inline(always)]
            fn narrow(register: $register) -> Self {
                register as Self
            }

            #[inline(always)]
            unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self {
                // SAFETY: `at` is valid and aligned for this type, and racing threads all access the cell with this
                // type.
                let cell = unsafe { <$atomic>::from_ptr(at.cast()) };
                let mut old = cell.load(Ordering::Relaxed);
                loop {
                    match cell.compare_exchange_weak(old, f(old), Ordering::AcqRel, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }
        }
    };
}
cell!(u16, u32, AtomicU16);
cell!(u32, u32, AtomicU32);
cell!(u64, u64, AtomicU64);

/// Held during 128-bit updates, which are not atomic on every host.
static PAIR: Mutex<()> = Mutex::new(());

impl Cell for u128 {
    type Register = Self;

    #[inline(always)]
    fn widen(self) -> Self {
        self
    }

    #[inline(always)]
    fn narrow(register: Self) -> Self {
        register
    }

    unsafe fn update(at: *mut u8, f: impl Fn(Self) -> Self) -> Self {
        let _held = PAIR.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `at` is valid for 16 bytes; alignment for 128 bits implies alignment for 64.
        let [low, high] = [0, 8].map(|half| unsafe { AtomicU64::from_ptr(at.add(half).cast()) });
        let old = Self::from(high.load(Ordering::Acquire)) << 64 | Self::from(low.load(Ordering::Acquire));
        let new = f(old);
        low.store(new as u64, Ordering::Release);
        high.store((new >> 64) as u64, Ordering::Release);
        old
    }
}
