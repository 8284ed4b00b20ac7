//! Hands a block's accesses to the sanitizer.

use crate::error::{Site, TrapKind};
use crate::exec::access::{Region, Survey};
use crate::exec::context::{Commits, Context};
use crate::exec::{findings, remote};
use crate::memory::GLOBAL_BASE;
use crate::program::aux::form;
use crate::program::ins::{Bases, Ins, Slot};
use crate::program::row::{LANES, Row};
use crate::sanitize::{Bulk, Fault, Hazard, Op, Request, Run, Sender, Space, Strength, Way};

/// A request's offsets in its state space, and what else the sanitizer asks.
fn request<'r>(
    cx: &Context<'_>,
    i: &Ins,
    addresses: &'r Row<u64>,
    s: &Survey,
    r: &Region,
    bytes: u64,
    op: Op,
) -> Request<'r> {
    let strength = match i.aux & (form::STRONG | form::VOLATILE) {
        0 => Strength::Plain,
        form::STRONG => Strength::Relaxed,
        _ => Strength::Volatile,
    };
    let strength = if op == Op::Change { Strength::Plain } else { strength };
    let line = cx.launch.shadow.line(cx.function, i.line);
    Request {
        space: if r.space == form::SHARED { Space::Shared } else { Space::Global },
        op,
        addresses: &addresses.0,
        origin: r.origin,
        mask: cx.mask,
        bytes: bytes as u32,
        straight: s.straight,
        together: s.lo == s.hi,
        warp: cx.warp.index,
        line,
        strength,
        quiet: strength != Strength::Plain && cx.monitor.is_reported(strength, line),
    }
}

fn offsets(a: &Row<u64>, r: &Region) -> Row<u64> {
    Row(a.0.map(|x| x.wrapping_sub(r.origin)))
}

/// Offsets of the active lanes.
fn active<'a>(cx: &Context<'_>, a: &'a Row<u64>, r: &Region) -> impl Iterator<Item = u64> + use<'a> {
    let (mask, origin) = (cx.mask, r.origin);
    (0..LANES).filter(move |k| mask >> k & 1 == 1).map(move |k| a.0[k].wrapping_sub(origin))
}

/// Checks and records a load of shared or global memory.
#[inline(never)]
pub fn load(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    if i.aux & form::STRONG != 0 && r.space == form::GLOBAL {
        let (grid, fair) = (&cx.launch.shadow, is_fair(cx));
        let heard = active(cx, a, r);
        cx.monitor.acquire(grid, fair, heard);
    }
    if r.space != form::GLOBAL {
        order(cx, i, true);
    }
    if r.space == form::REMOTE {
        return remote::check(cx, i, a, r, bytes, Op::Load);
    }
    let request = request(cx, i, a, s, r, bytes, Op::Load);
    if cx.monitor.plain(&request, None, |_, _| 0) {
        return None;
    }
    let fatal = cx.monitor.touch(&request, |_, _| 0, |_| false)?;
    Some(report(cx, i, &fatal))
}

/// Checks and records a plain load or store by 32 lanes side by side from `at` on, in a space that is shared or global
/// memory, `bytes` bytes each; false where it takes the long way to say what is wrong, if anything is.
#[inline(never)]
pub fn side_by_side(cx: &mut Context<'_>, i: &Ins, space: u32, at: u64, bytes: u64, store: bool) -> bool {
    if i.aux & (form::STRONG | form::VOLATILE) != 0 || bytes < 4 {
        return false;
    }
    let row = if store { words_stored(cx, i) } else { None };
    if store && (bytes != 4 || row.is_none()) {
        return false;
    }
    let memory = cx.launch.memory;
    let (space, origin) = if space == form::GLOBAL { (Space::Global, GLOBAL_BASE) } else { (Space::Shared, 0) };
    match (space, store) {
        (Space::Global, true) => memory.mark_written(at, bytes * LANES as u64),
        (Space::Global, false) if !memory.is_written(at, bytes * LANES as u64) => return false,
        _ => {}
    }
    let run = Run {
        space,
        op: if store { Op::Store } else { Op::Load },
        start: at - origin,
        first: 0,
        lanes: LANES,
        shift: bytes.trailing_zeros() - 2,
        warp: cx.warp.index,
        line: cx.launch.shadow.line(cx.function, i.line),
    };
    cx.monitor.plain_row(&run, row)
}

/// Checks and records a store to shared or global memory; the bytes are still the old ones.
#[inline(never)]
pub fn store(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    if i.aux & form::STRONG != 0 && r.space == form::GLOBAL {
        let (grid, fair) = (&cx.launch.shadow, is_fair(cx));
        if i.aux & form::RELEASE != 0 {
            cx.monitor.release(grid, fair);
        }
        let written = active(cx, a, r);
        cx.monitor.signal(grid, fair, written);
    }
    if r.space != form::GLOBAL {
        order(cx, i, false);
    }
    let sources = Sources { bases: cx.bases, i, bytes };
    if r.space == form::REMOTE {
        compare_lanes(cx, i, a, s, r, &sources);
        return remote::check(cx, i, a, r, bytes, Op::Store);
    }
    let request = request(cx, i, a, s, r, bytes, Op::Store);
    if cx.monitor.plain(&request, sources.words(), |lane, word| sources.word(lane, word)) {
        // Its lanes ascend: no two have one address.
        return None;
    }
    compare_lanes(cx, i, a, s, r, &sources);
    let silent = |lane: usize| r.space == form::SHARED && sources.leave(r.at(lane, a.0[lane]), lane);
    let fatal = cx.monitor.touch(&request, |lane, word| sources.word(lane, word), silent)?;
    Some(report(cx, i, &fatal))
}

/// Notes two lanes of a store that leave different values at one address: PTX does not say which one is kept.
fn compare_lanes(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, sources: &Sources<'_>) {
    if s.straight || cx.mask.is_power_of_two() {
        return;
    }
    let Some((first, second)) = sources.collision(a, cx.mask) else { return };
    let space = if r.space == form::GLOBAL { Space::Global } else { Space::Shared };
    let line = cx.launch.shadow.line(cx.function, i.line);
    cx.monitor.note_lanes((space, a.0[first] - r.origin), (cx.warp.index, line), (first, second));
}

/// What lanes store by an instruction that stores four bytes a lane, where that is one word.
pub fn words_stored<'i>(cx: &Context<'_>, i: &'i Ins) -> Option<&'i [u32; LANES]> {
    Sources { bases: cx.bases, i, bytes: 4 }.words()
}

/// The registers that a store of so many bytes a lane takes its values from.
struct Sources<'i> {
    bases: Bases,
    i: &'i Ins,
    bytes: u64,
}

impl<'i> Sources<'i> {
    /// What lanes store, where that is one word each.
    #[inline(always)]
    fn words(&self) -> Option<&'i [u32; LANES]> {
        let single = self.bytes == 4 && self.i.aux & form::VECTOR == 1;
        // SAFETY: slot 1 of such a store is a row of words, which nothing writes while it is performed.
        single.then(|| unsafe { &*self.row::<[u32; LANES]>(1) })
    }

    /// What a lane stores to a word of its access.
    #[inline(always)]
    fn word(&self, lane: usize, word: usize) -> u32 {
        let vector = (self.i.aux & form::VECTOR) as usize;
        let element = self.bytes as usize / vector.max(1);
        // SAFETY: slots 1 to 4 of a store are rows of the element's register width; a lane is below 32.
        unsafe {
            match element {
                4 => *self.row::<u32>(1 + word).add(lane),
                8 => (*self.row::<u64>(1 + word / 2).add(lane) >> (32 * (word % 2))) as u32,
                _ => {
                    let (each, bits) = (4 / element, 8 * element);
                    (0..each.min(vector - word * each)).fold(0, |value, k| {
                        let part = *self.row::<u32>(1 + word * each + k).add(lane) & ((1 << bits) - 1);
                        value | part << (bits * k)
                    })
                }
            }
        }
    }

    /// The first lane of `mask` that stores another value than a lane before it to the same address, behind that lane.
    fn collision(&self, a: &Row<u64>, mask: u32) -> Option<(usize, usize)> {
        let active = |lane: &usize| mask >> lane & 1 == 1;
        // Accesses are aligned to their size: those of two lanes are the same or apart. Most stores have as many
        // different residues as lanes.
        let shift = self.bytes.trailing_zeros();
        let (mut seen, mut again) = (0_u64, 0_u32);
        for lane in (0..LANES).filter(active) {
            let bit = 1 << (a.0[lane] >> shift & 63);
            again |= u32::from(seen & bit != 0) << lane;
            seen |= bit;
        }
        let words = self.bytes.div_ceil(4) as usize;
        (0..LANES).filter(|lane| again >> lane & 1 == 1).find_map(|lane| {
            let first = (0..lane).filter(active).find(|&first| a.0[first] == a.0[lane])?;
            let differs = (0..words).any(|word| self.word(first, word) != self.word(lane, word));
            differs.then_some((first, lane))
        })
    }

    /// # Safety
    /// The instruction has a source of this width there.
    #[inline(always)]
    unsafe fn row<T>(&self, operand: usize) -> *const T {
        // SAFETY: by the caller's promise.
        unsafe { self.bases.at(self.i.o[operand]) }
    }

    /// Whether a lane's store leaves what stands at `to` already.
    fn leave(&self, to: *const u8, lane: usize) -> bool {
        let bytes = self.bytes as usize;
        // SAFETY: the request was checked to lie in the region with all its bytes.
        let old = unsafe { std::slice::from_raw_parts(to, bytes) };
        let mut words = old.chunks(4).enumerate();
        words.all(|(word, old)| old == &self.word(lane, word).to_le_bytes()[..old.len()])
    }
}

/// Checks and records an asynchronous copy to shared memory, which is on its way from now on.
pub fn copy(cx: &mut Context<'_>, i: &Ins, to: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    let plain = Ins { aux: 0, ..*i };
    let request = request(cx, &plain, to, s, r, bytes, Op::Store);
    let fatal = cx.monitor.touch(&request, |_, _| 0, |_| false)?;
    Some(report(cx, i, &fatal))
}

/// Who sends a lane's bytes.
pub fn sender(cx: &Context<'_>, i: &Ins, lane: usize) -> Sender {
    Sender { warp: cx.warp.index, lane: lane as u32, line: cx.launch.shadow.line(cx.function, i.line) }
}

/// Checks and records one side of a lane's bulk copy, whose source starts at `from` on the host.
pub fn bulk(cx: &mut Context<'_>, i: &Ins, lane: usize, side: Bulk, op: Op, from: *const u8) -> Option<*const Ins> {
    if side.space == Space::Global && op == Op::Change {
        let written = (side.offset..side.offset + side.bytes).step_by(4);
        cx.monitor.signal(&cx.launch.shadow, is_fair(cx), written);
    }
    let by = sender(cx, i, lane);
    let fatal = cx.monitor.bulk(by, side, (op, true), words(from))?;
    Some(report(cx, i, &fatal))
}

/// Checks and records what a lane sends to the block's own shared memory: which bytes, which barrier object is told of
/// them, and how they come. `from` has the bytes.
pub fn receive(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    (side, object, way): (Bulk, u64, Way),
    from: *const u8,
) -> Option<*const Ins> {
    let by = sender(cx, i, lane);
    if let Some(fatal) = cx.monitor.bulk(by, side, (way.op(), way.bulk), words(from)) {
        return Some(report(cx, i, &fatal));
    }
    cx.monitor.send_bulk(by, side, object, way);
    None
}

/// The words from an address on, by number. They were checked to lie in their region.
fn words(from: *const u8) -> impl Fn(usize) -> u32 {
    #[expect(clippy::cast_ptr_alignment, reason = "it is read unaligned")]
    // SAFETY: the caller has checked all bytes that the sanitizer asks for.
    move |word: usize| unsafe { from.cast::<u32>().wrapping_add(word).read_unaligned() }
}

/// Notes a store to local memory.
pub fn local_store(cx: &mut Context<'_>, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) {
    let offsets = offsets(a, r);
    cx.monitor.local_store(cx.warp.index, &offsets.0, cx.mask, bytes as u32, s.lo == s.hi);
}

/// Notes what the device runtime has written to shared or local memory for a lane. It races with nothing.
pub fn runtime_store(cx: &mut Context<'_>, lane: usize, space: u32, offset: usize, bytes: usize) {
    if !cx.launch.sanitize {
        return;
    }
    let offset = offset as u64;
    if space == form::LOCAL {
        return cx.monitor.local_written(cx.warp.index, lane, offset, bytes as u32);
    }
    for at in offset..offset + bytes as u64 {
        cx.monitor.shared_written(at, 1);
    }
}

/// Checks a load of local memory.
pub fn local_load(
    cx: &mut Context<'_>,
    i: &Ins,
    a: &Row<u64>,
    s: &Survey,
    r: &Region,
    bytes: u64,
) -> Option<*const Ins> {
    let offsets = offsets(a, r);
    let bad = cx.monitor.local_load(cx.warp.index, &offsets.0, cx.mask, bytes as u32, s.lo == s.hi);
    if bad == 0 {
        return None;
    }
    let offset = offsets.0[bad.trailing_zeros() as usize];
    let site = Site { address: offset, allocation: "local memory".to_owned(), offset: offset as i64 };
    let stopped = cx.trap(i, TrapKind::Uninitialised, bad, format!("read of {site}, which was never written"));
    cx.locate_trap(site);
    Some(stopped)
}

/// Checks and records an atomic on shared or global memory.
pub fn atomic(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    if !matches!(r.space, form::SHARED | form::GLOBAL | form::REMOTE) {
        return None;
    }
    if r.space != form::GLOBAL {
        // An atomic without an order is how threads count, not how they ask.
        order(cx, i, i.aux & form::POLL != 0 && i.o[0] != Slot::NONE);
    }
    if r.space == form::REMOTE {
        return remote::check(cx, i, a, r, bytes, Op::Change);
    }
    if r.space == form::GLOBAL {
        let (grid, fair) = (&cx.launch.shadow, is_fair(cx));
        if i.aux & form::RELEASE != 0 {
            cx.monitor.release(grid, fair);
        }
        let (heard, written) = (active(cx, a, r), active(cx, a, r));
        if i.o[0] != Slot::NONE {
            cx.monitor.acquire(grid, fair, heard);
        }
        cx.monitor.signal(grid, fair, written);
    }
    let request = request(cx, i, a, s, r, bytes, Op::Change);
    let fatal = cx.monitor.touch(&request, |_, _| 0, |_| false)?;
    Some(report(cx, i, &fatal))
}

/// A fence between what threads have stored and what bulk copies read. Whether what another block of the cluster has
/// stored lies before it cannot be told, so that it counts for all of them.
pub fn fence_bulk(cx: &mut Context<'_>) {
    if cx.launch.sanitize {
        cx.monitor.fence_bulk();
        cx.peers.iter_mut().for_each(|peer| peer.monitor.fence_bulk());
    }
}

/// A fence; `device` says that other blocks see what lies before it.
pub fn fence(cx: &mut Context<'_>, device: bool) {
    cx.monitor.barrier();
    if !cx.peers.is_empty() && cx.launch.sanitize {
        cx.monitor.release_to_cluster(&cx.launch.shadow);
    }
    if device && cx.launch.sanitize {
        let fair = is_fair(cx);
        cx.monitor.release(&cx.launch.shadow, fair);
    }
}

/// What strong accesses to shared memory, its own or another block's, release to the cluster and acquire from it.
fn order(cx: &mut Context<'_>, i: &Ins, reads: bool) {
    if cx.peers.is_empty() || i.aux & form::STRONG == 0 {
        return;
    }
    if i.aux & form::RELEASE != 0 {
        fence(cx, true);
    }
    if reads {
        remote::acquire(cx);
    }
}

const fn is_fair(cx: &Context<'_>) -> bool {
    matches!(cx.commits, Commits::UpTo(_))
}

/// Ends the launch with a fault that an access has run into.
#[cold]
fn report(cx: &mut Context<'_>, i: &Ins, hazard: &Hazard) -> *const Ins {
    let hazard = &cx.monitor.with_copy(*hazard);
    let kind = if hazard.fault == Fault::Unwritten { TrapKind::Uninitialised } else { TrapKind::Race };
    let site = findings::site(cx.launch, hazard.space, hazard.offset);
    let message = match cx.monitor.remote_access_of(hazard) {
        Some(guest) => findings::guest(cx.launch, &site, hazard.now, guest),
        None => findings::message(cx.launch, hazard, &site),
    };
    let stopped = cx.trap(i, kind, 1 << (hazard.tag.thread() & 31), message);
    cx.locate_trap(site);
    stopped
}
