//! Memory that a global request accesses: distinct bytes, 32-byte sectors and 128-byte lines.

use crate::counters::Traffic;
use crate::exec::access::Survey;
use crate::program::row::{LANES, Row};

/// Adds a request by the lanes in `mask`, each for `bytes` bytes at an aligned address.
#[inline(always)]
pub fn count(traffic: &mut Traffic, mask: u32, a: &Row<u64>, s: &Survey, bytes: u64) {
    let (sectors, lines) = sectors_and_lines(mask, a, s, bytes);
    traffic.requests += 1;
    traffic.sectors += sectors;
    traffic.lines += lines;
    traffic.bytes += addresses(mask, a, s) * bytes;
}

/// Counts the distinct addresses. The bytes at an address are counted once, however many lanes access it, as
/// `smsp__sass_data_bytes` does.
#[inline(always)]
pub fn addresses(mask: u32, a: &Row<u64>, s: &Survey) -> u64 {
    if s.lo == s.hi {
        return 1;
    }
    // In most requests, addresses ascend from lane to lane.
    let neighbours = mask & mask >> 1;
    let mut rising = 0_u32;
    for k in 0..LANES - 1 {
        rising |= u32::from(a.0[k] < a.0[k + 1]) << k;
    }
    let run = mask >> mask.trailing_zeros();
    if s.contiguous || run & run.wrapping_add(1) == 0 && neighbours & !rising == 0 {
        return u64::from(mask.count_ones());
    }
    any_addresses(mask, a)
}

#[inline(never)]
fn any_addresses(mask: u32, a: &Row<u64>) -> u64 {
    let mut active = [0_u64; LANES];
    let mut n = 0;
    let mut lanes = mask;
    while lanes != 0 {
        active[n & 31] = a.0[lanes.trailing_zeros() as usize];
        lanes &= lanes - 1;
        n += 1;
    }
    let used = &mut active[..n.min(LANES)];
    used.sort_unstable();
    used.chunk_by(PartialEq::eq).count() as u64
}

/// Counts the distinct 32-byte sectors and 128-byte lines of a request.
#[inline(always)]
fn sectors_and_lines(mask: u32, a: &Row<u64>, s: &Survey, bytes: u64) -> (u64, u64) {
    if s.contiguous && mask == u32::MAX {
        let last = s.hi + bytes - 1;
        return ((last >> 5) - (s.lo >> 5) + 1, (last >> 7) - (s.lo >> 7) + 1);
    }
    if s.lo == s.hi {
        return (1, 1);
    }
    // Within 16 lines, one bit per sector is enough.
    let base = s.lo >> 7 << 2;
    if (s.hi >> 5) - base < 64 {
        let mut seen = 0_u64;
        for k in 0..LANES {
            let at = (a.0[k] >> 5).wrapping_sub(base) & 63;
            seen |= if mask >> k & 1 == 1 { 1 << at } else { 0 };
        }
        let lines = (seen | seen >> 1 | seen >> 2 | seen >> 3) & 0x1111_1111_1111_1111;
        return (u64::from(seen.count_ones()), u64::from(lines.count_ones()));
    }
    scattered(mask, a)
}

/// Counts sectors and lines for arbitrary addresses. Accesses are aligned, so each lies within one sector.
#[inline(never)]
fn scattered(mask: u32, a: &Row<u64>) -> (u64, u64) {
    let mut sectors = [0_u64; LANES];
    let mut n = 0;
    let mut sorted = true;
    let mut lanes = mask;
    let mut previous = 0;
    while lanes != 0 {
        let sector = a.0[lanes.trailing_zeros() as usize] >> 5;
        lanes &= lanes - 1;
        if n > 0 && sector == previous {
            continue;
        }
        sorted &= n == 0 || sector > previous;
        sectors[n & 31] = sector;
        previous = sector;
        n += 1;
    }
    let used = &mut sectors[..n.min(LANES)];
    if !sorted {
        used.sort_unstable();
    }
    let (mut count, mut lines) = (0, 0);
    let (mut last, mut last_line) = (u64::MAX, u64::MAX);
    for &sector in used.iter() {
        count += u64::from(sector != last);
        lines += u64::from(sector >> 2 != last_line);
        last = sector;
        last_line = sector >> 2;
    }
    (count, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(address: impl Fn(u64) -> u64) -> Row<u64> {
        let mut row = Row([0; LANES]);
        (0..).zip(&mut row.0).for_each(|(k, a)| *a = 4096 + address(k));
        row
    }

    fn measure(mask: u32, bytes: u64, address: impl Fn(u64) -> u64) -> Traffic {
        let a = row(address);
        let active = || (0..LANES).filter(|k| mask >> k & 1 == 1).map(|k| a.0[k]);
        let s =
            Survey { lo: active().min().unwrap_or(0), hi: active().max().unwrap_or(0), low_bits: 0, contiguous: false };
        let mut traffic = Traffic::default();
        count(&mut traffic, mask, &a, &s, bytes);
        traffic
    }

    #[test]
    fn bytes_that_several_lanes_name_are_asked_for_once() {
        assert_eq!(measure(u32::MAX, 4, |_| 8).bytes, 4);
        assert_eq!(measure(u32::MAX, 4, |k| k / 2 * 4).bytes, 64);
        assert_eq!(measure(u32::MAX, 8, |k| k % 16 * 8).bytes, 128);
        assert_eq!(measure(u32::MAX, 4, |k| (31 - k) * 4).bytes, 128);
        assert_eq!(measure(0xffff_0000, 4, |k| k * 4).bytes, 64);
        assert_eq!(measure(0xaaaa_aaaa, 4, |k| k % 16 * 4).bytes, 32);
        assert_eq!(measure(0x0000_0101, 16, |k| k * 16).bytes, 32);
    }

    #[test]
    fn sectors_and_lines_are_those_that_some_lane_touches() {
        let strided = measure(u32::MAX, 4, |k| k * 32);
        assert_eq!((strided.sectors, strided.lines), (32, 8));
        let scattered = measure(u32::MAX, 4, |k| k % 3 * 65536);
        assert_eq!((scattered.bytes, scattered.sectors, scattered.lines), (12, 3, 3));
    }
}
