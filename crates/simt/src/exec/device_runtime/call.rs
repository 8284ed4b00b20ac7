//! A call to the device runtime: its arguments, its result, and the memory that it accesses.

use crate::error::TrapKind;
use crate::exec::context::Context;
use crate::exec::window::window;
use crate::exec::{sanitizer, system};
use crate::memory::{FUNCTION_BASE, FUNCTION_STEP};
use crate::program::aux::StateSpace;
use crate::program::ins::Ins;
use crate::program::{CallSite, Kernel, Position};
use crate::runtime::errors::Code;
use crate::runtime::{FIRE_AND_FORGET, GridRuntime, Handle, Origin, Queued, TAIL, Work};

/// Fault of a call, which ends the launch.
#[derive(Debug)]
pub struct Fault {
    pub kind: TrapKind,
    pub message: String,
}

/// A call made by one lane.
#[derive(Debug)]
pub struct Call<'c, 'm> {
    pub cx: &'c mut Context<'m>,
    pub i: &'c Ins,
    pub lane: usize,
    pub site: &'m CallSite,
}

impl<'m> Call<'_, 'm> {
    pub fn runtime(&self) -> &'m GridRuntime<'m> {
        &self.cx.launch.runtime
    }

    /// Returns the bytes of argument `k`. The number of arguments was checked at load time.
    pub fn bytes<const N: usize>(&self, k: usize) -> [u8; N] {
        let offset = self.site.args.get(k).map_or(0, |a| a.0);
        let at = self.lane * self.cx.warp.local_stride + (self.cx.locals + offset) as usize;
        self.cx.warp.local.get(at..at + N).and_then(|b| b.try_into().ok()).unwrap_or([0; N])
    }

    pub fn u32(&self, k: usize) -> u32 {
        u32::from_le_bytes(self.bytes(k))
    }

    pub fn u64(&self, k: usize) -> u64 {
        u64::from_le_bytes(self.bytes(k))
    }

    /// Returns argument `k` as a `dim3`.
    pub fn extents(&self, k: usize) -> [u32; 3] {
        let bytes: [u8; 12] = self.bytes(k);
        std::array::from_fn(|d| {
            u32::from_le_bytes([bytes[4 * d], bytes[4 * d + 1], bytes[4 * d + 2], bytes[4 * d + 3]])
        })
    }

    /// Returns argument `k` as a struct of eight-byte words.
    pub fn words<const N: usize>(&self, k: usize) -> [u64; N] {
        let offset = self.site.args.get(k).map_or(0, |a| a.0);
        let start = self.lane * self.cx.warp.local_stride + (self.cx.locals + offset) as usize;
        std::array::from_fn(|w| {
            let at = start + 8 * w;
            self.cx.warp.local.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
        })
    }

    /// Writes through a pointer from the kernel.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Fault> {
        let cx = &mut *self.cx;
        let fault = |place: &str| Fault {
            kind: TrapKind::OutOfBounds,
            message: format!("the device runtime writes {} bytes at {address:#x}, outside of {place}", data.len()),
        };
        let (space, base) = window(address);
        let offset = (address - base) as usize;
        match space {
            StateSpace::SHARED => {
                if offset < cx.shared_start as usize || offset + data.len() > cx.shared_end as usize {
                    return Err(fault("the block's shared memory"));
                }
                // SAFETY: the range was checked to lie in the block's shared memory.
                unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), cx.shared.add(offset), data.len()) };
                sanitizer::runtime_store(cx, self.lane, space, offset, data.len());
                Ok(())
            }
            StateSpace::LOCAL => {
                let top = cx.locals + cx.launch.kernel.functions[cx.function].locals;
                let at = self.lane * cx.warp.local_stride + offset;
                match cx.warp.local.get_mut(at..at + data.len()) {
                    Some(bytes) if offset + data.len() <= top as usize => {
                        bytes.copy_from_slice(data);
                        sanitizer::runtime_store(cx, self.lane, space, offset, data.len());
                        Ok(())
                    }
                    _ => Err(fault("the thread's local memory")),
                }
            }
            StateSpace::GLOBAL if cx.launch.memory.extent(address).is_some_and(|a| !a.constant) => {
                cx.launch.memory.write(address, data).map_err(|_| fault("any allocation"))
            }
            _ => Err(fault("any allocation")),
        }
    }

    /// Reads eight-byte words through a pointer from the kernel.
    pub fn read_words<const N: usize>(&self, address: u64) -> Result<[u64; N], Fault> {
        let mut words = [0_u64; N];
        for (word, at) in words.iter_mut().zip((address..).step_by(8)) {
            for b in (0..8).rev() {
                let byte = system::byte_at(self.cx, self.lane, at + b).ok_or_else(|| Fault {
                    kind: TrapKind::OutOfBounds,
                    message: format!(
                        "the device runtime reads {} bytes at {address:#x}: nothing is allocated there",
                        8 * N
                    ),
                })?;
                *word = *word << 8 | u64::from(byte);
            }
        }
        Ok(words)
    }

    /// Records the thread's last error.
    pub fn remember(&self, code: Code) {
        if code != Code::SUCCESS {
            let key = (self.cx.block_index, self.cx.thread_of(self.lane as u32));
            self.runtime().state().errors.insert(key, code);
        }
    }

    /// Returns the thread's last error; `reset` clears it.
    pub fn last_error(&self, reset: bool) -> Code {
        let key = (self.cx.block_index, self.cx.thread_of(self.lane as u32));
        let mut state = self.runtime().state();
        let found = if reset { state.errors.remove(&key) } else { state.errors.get(&key).copied() };
        found.unwrap_or(Code::SUCCESS)
    }

    /// Returns the kernel at an address, if any. It is a fault if that kernel is not simulated.
    pub fn kernel_at(&self, address: u64) -> Result<Option<&'m Kernel>, Fault> {
        let offset = address.checked_sub(FUNCTION_BASE).filter(|o| o.is_multiple_of(FUNCTION_STEP));
        let Some(number) = offset.and_then(|offset| u32::try_from(offset / FUNCTION_STEP).ok()) else {
            return Ok(None);
        };
        let device = self.runtime().device;
        match device.refused.get(&number) {
            Some(reason) => {
                Err(Fault { kind: TrapKind::Illegal, message: format!("a launch that is not simulated: {reason}") })
            }
            None => Ok(device.kernels.get(&number).copied()),
        }
    }

    /// Whether a handle is a default stream of the block (zero to two), the tail stream, the fire-and-forget stream, or
    /// a stream that the grid created.
    pub fn is_stream(&self, handle: u64) -> bool {
        handle <= FIRE_AND_FORGET || self.runtime().state().handles.contains(&Handle::Stream(handle))
    }

    pub fn queue(&self, work: Work, stream: u64) {
        let (cx, kernel) = (&self.cx, self.cx.launch.kernel);
        let by = Origin {
            kernel: kernel.name.clone(),
            place: kernel.place(Position { function: cx.function, line: self.i.line }),
            block: cx.block_index,
            thread: cx.thread_of(self.lane as u32),
        };
        let queue = &mut self.runtime().state().queue;
        let stream = if stream == TAIL { &mut queue.tail } else { &mut queue.children };
        stream.push(Queued { work, by });
    }

    pub fn answer(&mut self, value: u64) {
        let Some((offset, bytes)) = self.site.result else { return };
        let offset = (self.cx.locals + offset) as usize;
        let at = self.lane * self.cx.warp.local_stride + offset;
        let bytes = bytes.min(8) as usize;
        if let Some(to) = self.cx.warp.local.get_mut(at..at + bytes) {
            to.copy_from_slice(&value.to_le_bytes()[..bytes]);
            sanitizer::runtime_store(self.cx, self.lane, StateSpace::LOCAL, offset, bytes);
        }
    }
}
