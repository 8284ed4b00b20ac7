//! Passes a block's accesses to the sanitizer, which knows nothing about instructions.

use crate::error::{Site, TrapKind};
use crate::exec::access::{Region, Survey};
use crate::exec::context::{Commits, Context};
use crate::exec::{findings, remote};
use crate::memory::GLOBAL_BASE;
use crate::program::aux::{Access, Fence, StateSpace};
use crate::program::ins::{Bases, Ins, Slot};
use crate::program::row::{LANES, Row};
use crate::sanitize::{Bulk, Fault, Hazard, Op, Request, Run, Sender, Space, Strength, Way};

/// Converts a request to the sanitizer's form.
fn request<'r>(
    cx: &Context<'_>,
    i: &Ins,
    addresses: &'r Row<u64>,
    s: &Survey,
    r: &Region,
    bytes: u64,
    op: Op,
) -> Request<'r> {
    let strength = match (i.has(Access::STRONG), i.has(Access::VOLATILE)) {
        (false, false) => Strength::Plain,
        (true, false) => Strength::Relaxed,
        (_, true) => Strength::Volatile,
    };
    let (op, strength) = match (op, strength) {
        (Op::Change, _) => (op, Strength::Plain),
        (Op::Load, Strength::Volatile | Strength::Relaxed) => (Op::Poll, strength),
        (Op::Store, Strength::Volatile | Strength::Relaxed) => (Op::Change, strength),
        _ => (op, strength),
    };
    let line = cx.launch.shadow.line(cx.function, i.line);
    Request {
        space: if r.space == StateSpace::SHARED { Space::Shared } else { Space::Global },
        op,
        addresses: &addresses.0,
        origin: r.origin,
        mask: cx.mask,
        bytes: bytes as u32,
        contiguous: s.contiguous,
        together: s.lo == s.hi,
        warp: cx.warp.index,
        line,
        strength,
        narrow: i.has(Access::STRONG) && r.space == StateSpace::GLOBAL && !is_wide(cx, i),
    }
}

fn offsets(a: &Row<u64>, r: &Region) -> Row<u64> {
    Row(a.0.map(|x| x.wrapping_sub(r.origin)))
}

/// Returns the active lanes with their offsets.
fn lanes<'a>(cx: &Context<'_>, a: &'a Row<u64>, r: &Region) -> impl Iterator<Item = (usize, u64)> + use<'a> {
    let (mask, origin) = (cx.mask, r.origin);
    (0..LANES).filter(move |k| mask >> k & 1 == 1).map(move |k| (k, a.0[k].wrapping_sub(origin)))
}

const fn space(r: &Region) -> Space {
    if matches!(r.space, StateSpace::GLOBAL) { Space::Global } else { Space::Shared }
}

/// Checks and records a load of shared or global memory.
#[inline(never)]
pub fn load(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    if i.has(Access::STRONG) && r.space == StateSpace::GLOBAL && is_wide(cx, i) {
        let (grid, fair, warp) = (&cx.launch.shadow, is_fair(cx), cx.warp.index);
        cx.shadow.acquire(grid, fair, lanes(cx, a, r), (warp, i.has(Access::ACQUIRE)));
    }
    if r.space != StateSpace::GLOBAL {
        order(cx, i, true);
    }
    if r.space == StateSpace::REMOTE {
        return remote::check(cx, i, a, r, bytes, Op::Load);
    }
    if i.has(Access::STRONG) {
        let (read, warp) = (lanes(cx, a, r), cx.warp.index);
        cx.shadow.strong_read(space(r), read, warp, i.has(Access::ACQUIRE));
    }
    let request = request(cx, i, a, s, r, bytes, Op::Load);
    if cx.shadow.plain(&request, None, |_, _| 0) {
        return None;
    }
    let fatal = cx.shadow.touch(&request, |_, _| 0, |_| false)?;
    Some(report(cx, i, &fatal))
}

/// Checks and records a plain load or store in shared or global memory by 32 contiguous lanes, `bytes` bytes each,
/// starting at `at`. Returns false if the request must take the slow path, which reports any fault.
#[inline(never)]
pub fn side_by_side(cx: &mut Context<'_>, i: &Ins, space: StateSpace, at: u64, bytes: u64, store: bool) -> bool {
    if i.has(Access::STRONG | Access::VOLATILE) || bytes < 4 {
        return false;
    }
    let row = if store { words_stored(cx, i) } else { None };
    if store && (bytes != 4 || row.is_none()) {
        return false;
    }
    let memory = cx.launch.memory;
    let (space, origin) = if space == StateSpace::GLOBAL { (Space::Global, GLOBAL_BASE) } else { (Space::Shared, 0) };
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
    cx.shadow.plain_row(&run, row)
}

/// Checks and records a store to shared or global memory, before the old bytes are overwritten.
#[inline(never)]
pub fn store(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    if i.has(Access::STRONG) && r.space == StateSpace::GLOBAL && is_wide(cx, i) {
        let (grid, fair, warp) = (&cx.launch.shadow, is_fair(cx), cx.warp.index);
        cx.shadow.release(grid, fair, lanes(cx, a, r), (warp, i.has(Access::RELEASE), false));
    }
    if r.space != StateSpace::GLOBAL {
        order(cx, i, false);
    }
    let sources = Sources { bases: cx.bases, i, bytes };
    if r.space == StateSpace::REMOTE {
        compare_lanes(cx, i, a, s, r, &sources);
        return remote::check(cx, i, a, r, bytes, Op::Store);
    }
    let request = request(cx, i, a, s, r, bytes, Op::Store);
    if i.has(Access::STRONG) {
        let (written, warp) = (lanes(cx, a, r), cx.warp.index);
        cx.shadow.strong_write(space(r), written, warp, (i.has(Access::RELEASE), false));
    }
    if cx.shadow.plain(&request, sources.words(), |lane, word| sources.word(lane, word)) {
        // Contiguous addresses ascend, so no two are equal.
        return None;
    }
    compare_lanes(cx, i, a, s, r, &sources);
    let silent = |lane: usize| r.space == StateSpace::SHARED && sources.leave(r.at(lane, a.0[lane]), lane);
    let fatal = cx.shadow.touch(&request, |lane, word| sources.word(lane, word), silent)?;
    Some(report(cx, i, &fatal))
}

/// Checks and records a store to a surface. `words` are the lanes' values.
pub fn store_texels(
    cx: &mut Context<'_>,
    i: &Ins,
    a: &Row<u64>,
    s: &Survey,
    r: &Region,
    (bytes, words): (u64, &[[u8; 16]; LANES]),
) -> Option<*const Ins> {
    let request = request(cx, i, a, s, r, bytes, Op::Store);
    let word =
        |lane: usize, word: usize| words[lane].as_chunks().0.get(word).map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let fatal = cx.shadow.touch(&request, word, |_| false)?;
    Some(report(cx, i, &fatal))
}

/// Reports two lanes of a store that write different values to one address. PTX does not define which value remains.
fn compare_lanes(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, sources: &Sources<'_>) {
    if s.contiguous || cx.mask.is_power_of_two() {
        return;
    }
    let Some((first, second)) = sources.collision(a, cx.mask) else { return };
    let space = if r.space == StateSpace::GLOBAL { Space::Global } else { Space::Shared };
    let line = cx.launch.shadow.line(cx.function, i.line);
    cx.shadow.note_lanes((space, a.0[first] - r.origin), (cx.warp.index, line), (first, second));
}

/// Returns the values that the lanes store, if each lane stores one word.
pub fn words_stored<'i>(cx: &Context<'_>, i: &'i Ins) -> Option<&'i [u32; LANES]> {
    Sources { bases: cx.bases, i, bytes: 4 }.words()
}

/// The registers whose values a store writes.
struct Sources<'i> {
    bases: Bases,
    i: &'i Ins,
    bytes: u64,
}

impl<'i> Sources<'i> {
    /// Returns the values that the lanes store, if each lane stores one word.
    #[inline(always)]
    fn words(&self) -> Option<&'i [u32; LANES]> {
        let single = self.bytes == 4 && self.i.access().elements() == 1;
        // SAFETY: slot 1 of such a store is a row of words, and nothing writes to it in the meantime.
        single.then(|| unsafe { &*self.row::<[u32; LANES]>(1) })
    }

    /// Returns the value that a lane stores to word `word` of its access.
    #[inline(always)]
    fn word(&self, lane: usize, word: usize) -> u32 {
        let vector = (self.i.access().elements()) as usize;
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

    /// Returns the first lane of `mask` that stores a value different from an earlier lane's to the same address. The
    /// earlier lane comes first in the pair.
    fn collision(&self, a: &Row<u64>, mask: u32) -> Option<(usize, usize)> {
        let active = |lane: &usize| mask >> lane & 1 == 1;
        // Accesses are aligned to their size, so the accesses of two lanes are either the same or disjoint. In most
        // stores, all lanes have different residues.
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
    ///
    /// `operand` must be the index of a source slot of the instruction, and the slot's row must hold a `T`.
    #[inline(always)]
    unsafe fn row<T>(&self, operand: usize) -> *const T {
        // SAFETY: the caller guarantees that the slot is a source that holds a `T`.
        unsafe { self.bases.at(self.i.o[operand]) }
    }

    /// Whether a lane's store leaves the value at `to` unchanged.
    fn leave(&self, to: *const u8, lane: usize) -> bool {
        let bytes = self.bytes as usize;
        // SAFETY: all bytes of the request were checked to be inside the region.
        let old = unsafe { std::slice::from_raw_parts(to, bytes) };
        let mut words = old.chunks(4).enumerate();
        words.all(|(word, old)| old == &self.word(lane, word).to_le_bytes()[..old.len()])
    }
}

/// Checks and records an asynchronous copy to shared memory, which is pending from then on.
pub fn copy(cx: &mut Context<'_>, i: &Ins, to: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    let plain = Ins { aux: 0, ..*i };
    let request = request(cx, &plain, to, s, r, bytes, Op::Store);
    let fatal = cx.shadow.touch(&request, |_, _| 0, |_| false)?;
    Some(report(cx, i, &fatal))
}

/// Returns the thread that sends a lane's bytes.
pub fn sender(cx: &Context<'_>, i: &Ins, lane: usize) -> Sender {
    Sender { warp: cx.warp.index, lane: lane as u32, line: cx.launch.shadow.line(cx.function, i.line) }
}

/// Checks and records one side of a lane's bulk copy. `from` is the host address of its source.
pub fn bulk(cx: &mut Context<'_>, i: &Ins, lane: usize, side: Bulk, op: Op, from: *const u8) -> Option<*const Ins> {
    let by = sender(cx, i, lane);
    let fatal = cx.shadow.bulk(by, side, (op, true), words(from))?;
    Some(report(cx, i, &fatal))
}

/// Checks and records a lane's write to the block's own shared memory, given its bytes, the mbarrier object on which it
/// completes, and its kind. `from` holds the bytes.
pub fn receive(
    cx: &mut Context<'_>,
    i: &Ins,
    lane: usize,
    (side, object, way): (Bulk, u64, Way),
    from: *const u8,
) -> Option<*const Ins> {
    let by = sender(cx, i, lane);
    if let Some(fatal) = cx.shadow.bulk(by, side, (way.op(), way.bulk), words(from)) {
        return Some(report(cx, i, &fatal));
    }
    cx.shadow.send_bulk(by, side, object, way);
    None
}

/// Returns a function from the index of a word to its value, starting at `from`. The caller has checked that the words
/// are inside their region.
fn words(from: *const u8) -> impl Fn(usize) -> u32 {
    #[expect(clippy::cast_ptr_alignment, reason = "it is read unaligned")]
    // SAFETY: the caller has checked all bytes that the sanitizer asks for.
    move |word: usize| unsafe { from.cast::<u32>().wrapping_add(word).read_unaligned() }
}

pub fn local_store(cx: &mut Context<'_>, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) {
    let offsets = offsets(a, r);
    cx.shadow.local_store(cx.warp.index, &offsets.0, cx.mask, bytes as u32, s.lo == s.hi);
}

/// Records a write by the device runtime to a lane's shared or local memory. Such writes cannot race.
pub fn runtime_store(cx: &mut Context<'_>, lane: usize, space: StateSpace, offset: usize, bytes: usize) {
    if !cx.launch.sanitize {
        return;
    }
    let offset = offset as u64;
    if space == StateSpace::LOCAL {
        return cx.shadow.local_written(cx.warp.index, lane, offset, bytes as u32);
    }
    for at in offset..offset + bytes as u64 {
        cx.shadow.shared_written(at, 1);
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
    let bad = cx.shadow.local_load(cx.warp.index, &offsets.0, cx.mask, bytes as u32, s.lo == s.hi);
    if bad == 0 || !cx.shadow.ignored().reports(Fault::Unwritten) {
        return None;
    }
    let offset = offsets.0[bad.trailing_zeros() as usize];
    let site = Site::inside("local memory", offset);
    let stopped = cx.trap(i, TrapKind::Uninitialised, bad, format!("read of {site}, which was never written"));
    cx.locate_trap(site);
    Some(stopped)
}

/// Checks and records an atomic operation on shared or global memory.
pub fn atomic(cx: &mut Context<'_>, i: &Ins, a: &Row<u64>, s: &Survey, r: &Region, bytes: u64) -> Option<*const Ins> {
    if !matches!(r.space, StateSpace::SHARED | StateSpace::GLOBAL | StateSpace::REMOTE) {
        return None;
    }
    if r.space != StateSpace::GLOBAL {
        // An atomic that only counts (no explicit memory order, and neither `cas` nor `exch`) acquires nothing.
        order(cx, i, i.has(Access::POLL) && i.o[0] != Slot::NONE);
    }
    if r.space == StateSpace::REMOTE {
        return remote::check(cx, i, a, r, bytes, Op::Change);
    }
    if r.space == StateSpace::GLOBAL && is_wide(cx, i) {
        let (grid, fair, warp) = (&cx.launch.shadow, is_fair(cx), cx.warp.index);
        cx.shadow.release(grid, fair, lanes(cx, a, r), (warp, i.has(Access::RELEASE), true));
        if i.o[0] != Slot::NONE {
            cx.shadow.acquire(grid, fair, lanes(cx, a, r), (warp, i.has(Access::ACQUIRE)));
        }
    }
    let (written, read, warp) = (lanes(cx, a, r), lanes(cx, a, r), cx.warp.index);
    cx.shadow.strong_write(space(r), written, warp, (i.has(Access::RELEASE), true));
    if i.o[0] != Slot::NONE {
        cx.shadow.strong_read(space(r), read, warp, i.has(Access::ACQUIRE));
    }
    if i.o[0] != Slot::NONE && r.space == StateSpace::GLOBAL && cx.launch.shadow.is_tracking() {
        // The block learns the value, as from a strong load.
        let request = Request { op: Op::Poll, ..request(cx, i, a, s, r, bytes, Op::Change) };
        if let Some(fatal) = cx.shadow.touch(&request, |_, _| 0, |_| false) {
            return Some(report(cx, i, &fatal));
        }
    }
    let request = request(cx, i, a, s, r, bytes, Op::Change);
    let fatal = cx.shadow.touch(&request, |_, _| 0, |_| false)?;
    Some(report(cx, i, &fatal))
}

/// Orders the threads' stores before the reads of later bulk copies, as a proxy fence does. Applies to every block of
/// the cluster, because it is unknown which of their stores precede the fence.
pub fn fence_bulk(cx: &mut Context<'_>) {
    if cx.launch.sanitize {
        cx.shadow.fence_bulk();
        cx.peers.iter_mut().for_each(|peer| peer.shadow.fence_bulk());
    }
}

pub fn fence(cx: &mut Context<'_>, i: &Ins) {
    let halves = (i.has(Fence::ACQUIRE), i.has(Fence::RELEASE));
    if !cx.launch.sanitize || halves == (false, false) {
        return;
    }
    if !cx.peers.is_empty() {
        cx.shadow.barrier();
        if !i.has(Fence::BLOCK_SCOPE) {
            cx.shadow.release_to_cluster(&cx.launch.shadow);
        }
    }
    let device = i.has(Fence::DEVICE) || !i.has(Fence::BLOCK_SCOPE) && cx.launch.cluster != [1; 3];
    cx.shadow.fence(cx.warp.index, cx.mask, halves, device);
}

/// Whether the scope of a strong access includes other blocks.
fn is_wide(cx: &Context<'_>, i: &Ins) -> bool {
    !i.has(Access::BLOCK_SCOPE) && (!i.has(Access::CLUSTER_SCOPE) || cx.launch.cluster != [1; 3])
}

/// Releases everything that a block of a cluster has done so far.
pub fn release_block(cx: &mut Context<'_>) {
    if cx.launch.sanitize && !cx.peers.is_empty() {
        cx.shadow.barrier();
        cx.shadow.release_to_cluster(&cx.launch.shadow);
    }
}

/// Checks and records a lane's access to an mbarrier object of its block.
pub fn object(cx: &mut Context<'_>, i: &Ins, lane: usize, offset: u64, op: Op) -> Option<*const Ins> {
    let by = sender(cx, i, lane);
    let fatal = cx.shadow.object(by, offset, op)?;
    let site = findings::site(cx.launch, Space::Shared, offset);
    let message = findings::object_race(cx.launch, &fatal, &site);
    let cure = findings::cure(cx.launch, &fatal);
    let stopped = cx.trap(i, TrapKind::Race, 1 << lane, message);
    cx.locate_trap(site);
    cx.cure_trap(cure);
    Some(stopped)
}

/// Applies the release and acquire of a strong access to shared memory, the block's own or another block's.
fn order(cx: &mut Context<'_>, i: &Ins, reads: bool) {
    if cx.peers.is_empty() || !i.has(Access::STRONG) {
        return;
    }
    if i.has(Access::RELEASE) && !i.has(Access::BLOCK_SCOPE) {
        release_block(cx);
    }
    if reads {
        remote::acquire(cx);
    }
}

const fn is_fair(cx: &Context<'_>) -> bool {
    matches!(cx.commits, Commits::UpTo(_))
}

/// Ends the launch because an access is a fault.
#[cold]
fn report(cx: &mut Context<'_>, i: &Ins, hazard: &Hazard) -> *const Ins {
    let hazard = &cx.shadow.with_copy(*hazard);
    let kind = if hazard.fault == Fault::Unwritten { TrapKind::Uninitialised } else { TrapKind::Race };
    let site = findings::site(cx.launch, hazard.space, hazard.offset);
    let (message, cure) = if let Some(remote) = cx.shadow.remote_access_of(hazard) {
        let cure = findings::cure_of_cluster(&findings::place(cx.launch, hazard.tag.line()));
        (findings::remote_race(cx.launch, &site, hazard.now, remote), Some(cure))
    } else {
        let cure = (hazard.fault == Fault::Race).then(|| findings::cure(cx.launch, hazard));
        (findings::message(cx.launch, hazard, &site), cure)
    };
    let stopped = cx.trap(i, kind, 1 << (hazard.tag.thread() & 31), message);
    cx.locate_trap(site);
    if let Some(cure) = cure {
        cx.cure_trap(cure);
    }
    stopped
}
