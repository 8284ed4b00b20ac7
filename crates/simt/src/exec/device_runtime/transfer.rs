//! Copies and fills that kernels queue, in one, two and three dimensions, in device memory.
//!
//! Both sides must be in global memory. The lifetimes of shared and local memory end before a transfer begins, so CUDA
//! leaves such pointers undefined. Here they are a fault, as is a range outside an allocation when the transfer runs.

use crate::error::TrapKind;
use crate::exec::device_runtime::call::{Call, Fault};
use crate::exec::window::window;
use crate::program::aux::StateSpace;
use crate::runtime::Work;
use crate::runtime::errors::Code;
use crate::runtime::transfer::{Side, Source, Transfer};

fn submit(call: &mut Call<'_, '_>, transfer: Transfer, stream: u64) -> Result<u64, Fault> {
    let sides = [Some(transfer.to), if let Source::Copy(from) = transfer.from { Some(from) } else { None }];
    for side in sides.into_iter().flatten().filter(|_| !transfer.extent.contains(&0)) {
        if window(side.start).0 != StateSpace::GLOBAL {
            let message = "a transfer of the device runtime from or to shared or local memory".to_owned();
            return Err(Fault { kind: TrapKind::OutOfBounds, message });
        }
    }
    let [bytes, rows, slices] = transfer.extent;
    let narrow = |side: Side| (rows > 1 && side.pitch < bytes) || (slices > 1 && side.slice < bytes);
    if sides.into_iter().flatten().any(narrow) {
        return Ok(u64::from(Code::INVALID_PITCH.0));
    }
    if !call.is_stream(stream) {
        return Ok(u64::from(Code::INVALID_HANDLE.0));
    }
    call.queue(Work::Transfer(transfer), stream);
    Ok(0)
}

/// Returns a copy, if its kind is one that devices accept: device to device, or inferred from the addresses.
fn copied(
    call: &mut Call<'_, '_>,
    (from, to): (Side, Side),
    extent: [u64; 3],
    kind: u32,
    stream: u64,
) -> Result<u64, Fault> {
    if !matches!(kind, 3 | 4) {
        return Ok(u64::from(Code::INVALID_DIRECTION.0));
    }
    submit(call, Transfer { from: Source::Copy(from), to, extent }, stream)
}

fn line(start: u64) -> Side {
    Side { start, pitch: 0, slice: 0 }
}

/// Executes `cudaMemcpyAsync(to, from, bytes, kind, stream)`.
pub fn copy(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let (to, from) = (line(call.u64(0)), line(call.u64(1)));
    let (bytes, kind, stream) = (call.u64(2), call.u32(3), call.u64(4));
    copied(call, (from, to), [bytes, 1, 1], kind, stream)
}

/// Executes `cudaMemcpy2DAsync(to, pitch, from, pitch, bytes, rows, kind, stream)`.
pub fn copy_2d(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let plane = |start: u64, pitch: u64| Side { start, pitch, slice: 0 };
    let (to, from) = (plane(call.u64(0), call.u64(1)), plane(call.u64(2), call.u64(3)));
    let (extent, kind, stream) = ([call.u64(4), call.u64(5), 1], call.u32(6), call.u64(7));
    copied(call, (from, to), extent, kind, stream)
}

/// Returns the position `cudaPos` (x in bytes, y, z) within a `cudaPitchedPtr` (pointer, pitch, width, height).
fn placed(pointer: &[u64], position: &[u64]) -> Side {
    let (pitch, slice) = (pointer[1], pointer[1].wrapping_mul(pointer[3]));
    let offset =
        position[0].wrapping_add(position[1].wrapping_mul(pitch)).wrapping_add(position[2].wrapping_mul(slice));
    Side { start: pointer[0].wrapping_add(offset), pitch, slice }
}

/// Executes `cudaMemcpy3DAsync(parameters, stream)`. The parameters are the array, position and pointer of the source,
/// the same for the destination, the extent and the kind. Arrays are refused.
pub fn copy_3d(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let words: [u64; 20] = call.read_words(call.u64(0))?;
    let stream = call.u64(1);
    if words[0] != 0 || words[8] != 0 {
        return Ok(u64::from(Code::INVALID_VALUE.0));
    }
    let (from, to) = (placed(&words[4..8], &words[1..4]), placed(&words[12..16], &words[9..12]));
    copied(call, (from, to), [words[16], words[17], words[18]], words[19] as u32, stream)
}

/// Executes `cudaMemsetAsync(to, byte, bytes, stream)`.
pub fn set(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let (to, byte, bytes, stream) = (line(call.u64(0)), call.u32(1) as u8, call.u64(2), call.u64(3));
    submit(call, Transfer { from: Source::Byte(byte), to, extent: [bytes, 1, 1] }, stream)
}

/// Executes `cudaMemset2DAsync(to, pitch, byte, bytes, rows, stream)`.
pub fn set_2d(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let to = Side { start: call.u64(0), pitch: call.u64(1), slice: 0 };
    let (byte, extent, stream) = (call.u32(2) as u8, [call.u64(3), call.u64(4), 1], call.u64(5));
    submit(call, Transfer { from: Source::Byte(byte), to, extent }, stream)
}

/// Executes `cudaMemset3DAsync(pitched pointer, byte, extent, stream)`.
pub fn set_3d(call: &mut Call<'_, '_>) -> Result<u64, Fault> {
    let to = placed(&call.words::<4>(0), &[0; 3]);
    let (byte, extent, stream) = (call.u32(1) as u8, call.words::<3>(2), call.u64(3));
    submit(call, Transfer { from: Source::Byte(byte), to, extent }, stream)
}
