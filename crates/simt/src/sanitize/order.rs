//! What each thread of a block knows: which of the other threads' accesses since the last block barrier happen before
//! its own next ones.
//!
//! A warp has its own time, which advances when the warp synchronises and when one of its threads releases. A block
//! barrier starts an epoch, in which every time starts at zero and no thread knows anything. Until a thread releases,
//! fences or synchronises in another way, only two numbers per warp are kept. After that, each thread has a [`Clock`]
//! of what it has acquired, which it shares with threads that know the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sanitize::compact::Moment;
use crate::sanitize::knowledge::{Knowledge, NOTHING, SetId};
use crate::sanitize::request::Space;
use crate::sanitize::tag::Tag;

const LANES: usize = 32;
const WARPS: usize = 32;

/// What a thread knows.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// For each thread of the block, a time of its warp; the thread's accesses in this epoch before that time are
    /// known.
    times: Vec<u32>,
    /// Known releases of other blocks.
    blocks: SetId,
}

impl Clock {
    fn of(&self, thread: u32) -> u32 {
        self.times.get(thread as usize).copied().unwrap_or(0)
    }

    fn raise(&mut self, thread: usize, time: u32) {
        if self.times.len() <= thread {
            self.times.resize((thread + 1).next_multiple_of(LANES), 0);
        }
        self.times[thread] = self.times[thread].max(time);
    }

    fn join(&mut self, other: &Self, sets: &Sets) {
        if self.times.len() < other.times.len() {
            self.times.resize(other.times.len(), 0);
        }
        self.times.iter_mut().zip(&other.times).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        self.blocks = sets.join(self.blocks, other.blocks);
    }
}

/// All knowledge sets of the launch.
#[derive(Debug, Default, Clone)]
struct Sets(Option<Arc<Mutex<Knowledge>>>);

impl Sets {
    fn join(&self, a: SetId, b: SetId) -> SetId {
        match &self.0 {
            Some(sets) if a != b && a != NOTHING && b != NOTHING => {
                sets.lock().unwrap_or_else(PoisonError::into_inner).join(a, b)
            }
            _ => a.max(b),
        }
    }
}

/// A clock, or `None` for a thread that knows nothing.
type Known = Option<Arc<Clock>>;

fn join(known: &mut Known, other: &Arc<Clock>, sets: &Sets) {
    match known {
        None => *known = Some(Arc::clone(other)),
        Some(mine) if Arc::ptr_eq(mine, other) => {}
        Some(mine) => Arc::make_mut(mine).join(other, sets),
    }
}

fn same(a: &Known, b: &Known) -> bool {
    a.as_ref().map(Arc::as_ptr) == b.as_ref().map(Arc::as_ptr)
}

/// Times of a warp in the current epoch.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    now: u32,
    /// Time of the last synchronisation of all lanes.
    synced: u32,
    /// Time of the last advance for any other reason.
    event: u32,
}

/// What each lane knows about the other lanes of its warp.
type Mates = [[u32; LANES]; LANES];

/// What the lanes of a warp know at some moment.
#[derive(Debug, Clone, Default)]
struct View {
    times: Times,
    /// What lanes know about each other since the warp last synchronised as a whole, if some of them have synchronised
    /// since then.
    mates: Option<Box<Mates>>,
    known: [Known; LANES],
}

impl View {
    /// Adds to a clock what lanes pass on when they release: what they know, and their own accesses.
    fn add_to(&self, clock: &mut Clock, warp: u32, mask: u32, sets: &Sets) {
        let first = warp as usize % WARPS * LANES;
        for mate in 0..LANES {
            let of_mate = |lane: usize| self.mates.as_ref().map_or(0, |mates| mates[lane][mate]);
            let known = lanes(mask).map(of_mate).max().unwrap_or(0).max(self.times.synced);
            clock.raise(first + mate, if mask >> mate & 1 == 1 { self.times.now + 1 } else { known });
        }
        let mut last: &Known = &None;
        for lane in lanes(mask) {
            if let Some(known) = &self.known[lane]
                && !same(&self.known[lane], last)
            {
                clock.join(known, sets);
                last = &self.known[lane];
            }
        }
    }
}

/// What a strong store releases to other blocks: all earlier epochs, and what its thread knew in the epoch `epoch`.
#[derive(Debug, Clone)]
pub struct Release {
    epoch: u32,
    clock: Arc<Clock>,
    /// Identifies the release: equal keys mean equal releases.
    pub key: Option<(u32, u32, u32)>,
}

impl Release {
    pub fn of_epochs_before(epoch: u32, blocks: SetId) -> Self {
        Self { epoch, clock: Arc::new(Clock { times: Vec::new(), blocks }), key: None }
    }

    /// Returns the known releases of other blocks, which this release passes on.
    pub fn blocks(&self) -> SetId {
        self.clock.blocks
    }

    pub const fn includes(&self, epoch: u32) -> bool {
        epoch < self.epoch
    }

    pub fn covers(&self, tag: Tag) -> bool {
        let known = || self.clock.of(tag.thread());
        let in_epoch = || if tag.time() == Tag::UNKNOWN { known() > 0 } else { known() > tag.time() };
        tag.epoch() < self.epoch || tag.epoch() == self.epoch && in_epoch()
    }
}

/// A fence by some lanes. Their later strong stores release what they knew at the fence.
#[derive(Debug, Clone)]
struct Fence {
    mask: u32,
    view: View,
}

#[derive(Debug, Default)]
struct Warp {
    view: View,
    /// Last fence of each lane, and last device-scope fence of each lane.
    fences: Vec<Fence>,
    device_fences: Vec<Fence>,
    /// What lanes have read by strong loads, and will acquire with their next fence; what comes from other blocks needs
    /// a device-scope fence.
    pending: Vec<(u32, Arc<Clock>)>,
    pending_blocks: Vec<(u32, SetId)>,
}

/// What is released through an mbarrier object.
#[derive(Debug, Default)]
struct Phases {
    arriving: Clock,
    ended: Known,
}

/// A thread, as warp and lane.
pub type Thread = (u32, usize);

/// Order of a block's accesses in the current epoch.
#[derive(Debug, Default)]
pub struct Order {
    times: [Times; WARPS],
    /// Whether, in this epoch, threads have released or fenced, or part of a warp has synchronised.
    busy: bool,
    /// State of each warp besides its times. Valid in this epoch if the block is busy.
    warps: Vec<Warp>,
    /// For each address, what the last strong store and the atomics after it released.
    places: HashMap<(Space, u64), Arc<Clock>>,
    objects: HashMap<u64, Phases>,
    /// For each barrier, what arrivals that do not wait have released.
    barriers: HashMap<u32, Clock>,
    sets: Sets,
    /// Releases of other blocks that all threads know.
    base: SetId,
    /// Whether threads know releases of other blocks, or have read some that they will acquire.
    foreign: bool,
    /// What device-scope fences had released by the end of the last epoch that had such fences.
    fenced: Option<Release>,
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

impl Order {
    /// Begins a block, in a launch with these sets.
    pub fn begin(&mut self, sets: Arc<Mutex<Knowledge>>) {
        self.begin_epoch(0);
        (self.sets, self.base, self.fenced) = (Sets(Some(sets)), NOTHING, None);
    }

    /// Orders all accesses so far, up to and including the epoch `ended`, before all later ones. What threads have read
    /// from other blocks counts as acquired.
    pub fn begin_epoch(&mut self, ended: u32) {
        self.times = [Times::default(); WARPS];
        if !self.busy {
            return;
        }
        let fences =
            || self.warps.iter().zip(0..).flat_map(|(warp, at)| warp.device_fences.iter().map(move |f| (at, f)));
        if fences().next().is_some() {
            let blocks = self.fenced.as_ref().map_or(NOTHING, Release::blocks);
            let mut clock = Clock { times: Vec::new(), blocks: self.sets.join(blocks, self.base) };
            fences().for_each(|(warp, fence)| fence.view.add_to(&mut clock, warp, fence.mask, &self.sets));
            self.fenced = Some(Release { epoch: ended, clock: Arc::new(clock), key: Some((ended, u32::MAX, 0)) });
        }
        if self.foreign {
            for warp in &self.warps {
                let known = warp.view.known.iter().flatten().map(|clock| clock.blocks);
                let pending = warp.pending_blocks.iter().map(|(_, set)| *set);
                self.base = known.chain(pending).fold(self.base, |base, set| self.sets.join(base, set));
            }
        }
        (self.busy, self.foreign) = (false, false);
        self.warps.clear();
        self.places.clear();
        self.objects.clear();
        self.barriers.clear();
    }

    /// Whether threads know different things about other blocks, or will after their next fence.
    pub const fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Whether lanes of a warp know different things about other blocks.
    pub fn lanes_differ(&self, warp: u32, mask: u32) -> bool {
        let Some(Warp { view, .. }) = self.warps.get(warp as usize % WARPS).filter(|_| self.foreign) else {
            return false;
        };
        let blocks = |lane: usize| view.known[lane].as_ref().map_or(NOTHING, |clock| clock.blocks);
        lanes(mask).any(|lane| blocks(lane) != blocks(mask.trailing_zeros() as usize % LANES))
    }

    /// Returns the releases of other blocks that all threads know.
    pub const fn base(&self) -> SetId {
        self.base
    }

    /// Makes releases of other blocks known to all threads.
    pub fn acquire_for_all(&mut self, set: SetId) {
        self.base = self.sets.join(self.base, set);
    }

    /// Returns the releases of other blocks that a thread knows.
    pub fn acquired(&self, thread: u32) -> SetId {
        let warp = self.warps.get(thread as usize / LANES).filter(|_| self.busy);
        let known = warp.and_then(|warp| warp.view.known[thread as usize % LANES].as_ref());
        self.sets.join(self.base, known.map_or(NOTHING, |clock| clock.blocks))
    }

    /// Acquires releases of other blocks, now or with the next device-scope fence.
    pub fn acquire_blocks(&mut self, (warp, lane): Thread, set: SetId, acquires: bool) {
        self.foreign = true;
        if acquires {
            return self.acquire(warp, 1 << lane, &Arc::new(Clock { times: Vec::new(), blocks: set }));
        }
        let pending = &mut self.warp(warp).pending_blocks;
        match pending.iter_mut().find(|(_, known)| *known == set) {
            Some((lanes, _)) => *lanes |= 1 << lane,
            None => pending.push((1 << lane, set)),
        }
    }

    /// Returns what a thread's strong store releases to other blocks, if anything.
    pub fn release(&mut self, epoch: u32, (warp, lane): Thread, releases: bool) -> Option<Release> {
        if !releases && !self.busy {
            return self.fenced.clone();
        }
        let sets = self.sets.clone();
        let mut clock = Clock { times: Vec::new(), blocks: self.base };
        if releases {
            self.view(warp).add_to(&mut clock, warp, 1 << lane, &sets);
            return Some(Release { epoch, clock: Arc::new(clock), key: None });
        }
        let fences = &self.warp(warp).device_fences;
        let Some(fence) = fences.iter().find(|fence| fence.mask >> lane & 1 == 1) else { return self.fenced.clone() };
        fence.view.add_to(&mut clock, warp, 1 << lane, &sets);
        let key = Some((epoch, warp * LANES as u32 + lane as u32, fence.view.times.now));
        Some(Release { epoch, clock: Arc::new(clock), key })
    }

    pub fn time(&self, warp: u32) -> u32 {
        self.times[warp as usize % WARPS].now
    }

    /// Returns the time at which the whole warp last synchronised.
    pub fn synced(&self, warp: u32) -> u32 {
        self.times[warp as usize % WARPS].synced
    }

    pub fn moment(&self, epoch: u32, warp: u32) -> Moment {
        let Times { now, synced, event } = self.times[warp as usize % WARPS];
        Moment { epoch, warp, time: now, synced, event, busy: self.busy }
    }

    /// Synchronises lanes of a warp. `alive` are the lanes that have not exited.
    #[inline]
    pub fn sync(&mut self, warp: u32, mask: u32, alive: u32) {
        let whole = mask & alive == alive;
        let times = &mut self.times[warp as usize % WARPS];
        times.now += 1;
        if whole {
            times.synced = times.now;
        } else {
            times.event = times.now;
        }
        if self.busy || !whole {
            self.sync_views(warp, if whole { u32::MAX } else { mask }, whole);
        }
    }

    #[inline(never)]
    fn sync_views(&mut self, warp: u32, mask: u32, whole: bool) {
        let sets = self.sets.clone();
        let view = self.view(warp);
        let now = view.times.now;
        if whole {
            view.mates = None;
        } else {
            let mates = view.mates.get_or_insert_with(|| Box::new([[0; LANES]; LANES]));
            let mut row = [0; LANES];
            for lane in lanes(mask) {
                row.iter_mut().zip(mates[lane]).for_each(|(all, of)| *all = of.max(*all));
            }
            lanes(mask).for_each(|lane| row[lane] = now);
            lanes(mask).for_each(|lane| mates[lane] = row);
        }
        let first = view.known[mask.trailing_zeros() as usize % LANES].clone();
        if lanes(mask).any(|lane| !same(&first, &view.known[lane])) {
            let mut all = first;
            lanes(mask).filter_map(|lane| view.known[lane].as_ref()).for_each(|known| join(&mut all, known, &sets));
            lanes(mask).for_each(|lane| view.known[lane].clone_from(&all));
        }
    }

    /// Returns what a warp knows, with its current times.
    fn view(&mut self, warp: u32) -> &mut View {
        let times = self.times[warp as usize % WARPS];
        let view = &mut self.warp(warp).view;
        view.times = times;
        view
    }

    fn warp(&mut self, warp: u32) -> &mut Warp {
        self.busy = true;
        let at = warp as usize % WARPS;
        if self.warps.len() <= at {
            self.warps.resize_with(at + 1, Warp::default);
        }
        &mut self.warps[at]
    }

    /// Advances the warp's time, which separates what its threads have released from their later accesses.
    fn advance(&mut self, warp: u32) {
        let times = &mut self.times[warp as usize % WARPS];
        times.now += 1;
        times.event = times.now;
    }

    /// Executes a fence for the lanes in `mask`, or only its acquiring or releasing half. `device`: its scope includes
    /// other blocks.
    pub fn fence(&mut self, warp: u32, mask: u32, (acquires, releases): (bool, bool), device: bool) {
        if acquires {
            self.finish_acquires(warp, mask);
            if device && self.foreign {
                let pending = std::mem::take(&mut self.warp(warp).pending_blocks);
                for (lanes, set) in pending {
                    let clock = Arc::new(Clock { times: Vec::new(), blocks: set });
                    self.acquire(warp, lanes & mask, &clock);
                    if lanes & !mask != 0 {
                        self.warp(warp).pending_blocks.push((lanes & !mask, set));
                    }
                }
            }
        }
        if releases {
            let fence = Fence { mask, view: self.view(warp).clone() };
            let state = self.warp(warp);
            let replace = |fences: &mut Vec<Fence>| {
                fences.retain_mut(|fence| {
                    fence.mask &= !mask;
                    fence.mask != 0
                });
                fences.push(fence.clone());
            };
            replace(&mut state.fences);
            if device {
                replace(&mut state.device_fences);
            }
            self.advance(warp);
        }
    }

    /// Whether the next fence of a warp's lanes may teach them more about other blocks.
    pub fn has_pending_blocks(&self, warp: u32) -> bool {
        self.foreign && self.warps.get(warp as usize % WARPS).is_some_and(|warp| !warp.pending_blocks.is_empty())
    }

    fn finish_acquires(&mut self, warp: u32, mask: u32) {
        if !self.busy {
            return;
        }
        let pending = std::mem::take(&mut self.warp(warp).pending);
        for (lanes, clock) in &pending {
            self.acquire(warp, lanes & mask, clock);
        }
        let left = pending.into_iter().map(|(lanes, clock)| (lanes & !mask, clock));
        self.warp(warp).pending = left.filter(|(lanes, _)| *lanes != 0).collect();
    }

    fn acquire(&mut self, warp: u32, mask: u32, clock: &Arc<Clock>) {
        let sets = self.sets.clone();
        let known = &mut self.view(warp).known;
        // Lanes that knew the same before still do.
        let mut last: Option<(Known, Known)> = None;
        for lane in lanes(mask) {
            match &last {
                Some((old, new)) if same(old, &known[lane]) => known[lane].clone_from(new),
                _ => {
                    let before = known[lane].clone();
                    join(&mut known[lane], clock, &sets);
                    last = Some((before, known[lane].clone()));
                }
            }
        }
    }

    /// Returns what the given lanes of a warp pass on.
    fn clock_of(&self, view: &View, warp: u32, mask: u32) -> Clock {
        let mut clock = Clock::default();
        view.add_to(&mut clock, warp, mask, &self.sets);
        clock
    }

    /// Whether no strong access has had an effect yet.
    pub const fn is_quiet(&self) -> bool {
        !self.busy
    }

    /// Applies a strong store or an atomic by some lanes, given with their addresses.
    pub fn write(
        &mut self,
        space: Space,
        addresses: impl Iterator<Item = (usize, u64)>,
        warp: u32,
        (releases, atomic): (bool, bool),
    ) {
        let view = self.view(warp).clone();
        let at = warp as usize % WARPS;
        for (lane, address) in addresses {
            let released = if releases {
                Some(self.clock_of(&view, warp, 1 << lane))
            } else {
                let fence = self.warps[at].fences.iter().find(|fence| fence.mask >> lane & 1 == 1);
                fence.map(|fence| self.clock_of(&fence.view, warp, 1 << lane))
            };
            match (released, atomic) {
                (None, true) => {}
                (None, false) => drop(self.places.remove(&(space, address))),
                (Some(clock), false) => drop(self.places.insert((space, address), Arc::new(clock))),
                (Some(clock), true) => {
                    let mut known = self.places.remove(&(space, address));
                    join(&mut known, &Arc::new(clock), &self.sets);
                    self.places.extend(known.map(|known| ((space, address), known)));
                }
            }
        }
        if releases {
            self.advance(warp);
        }
    }

    /// Applies a strong load, or the load of an atomic, by some lanes, given with their addresses.
    pub fn read(&mut self, space: Space, addresses: impl Iterator<Item = (usize, u64)>, warp: u32, acquires: bool) {
        if self.places.is_empty() {
            return;
        }
        for (lane, address) in addresses {
            let Some(clock) = self.places.get(&(space, address)).cloned() else { continue };
            if acquires {
                self.acquire(warp, 1 << lane, &clock);
                continue;
            }
            let pending = &mut self.warp(warp).pending;
            match pending.iter_mut().find(|(_, known)| Arc::ptr_eq(known, &clock)) {
                Some((lanes, _)) => *lanes |= 1 << lane,
                None => pending.push((1 << lane, clock)),
            }
        }
    }

    pub fn arrive(&mut self, object: u64, (warp, lane): Thread) {
        let view = self.view(warp).clone();
        view.add_to(&mut self.objects.entry(object).or_default().arriving, warp, 1 << lane, &self.sets);
        self.advance(warp);
    }

    /// Completes a phase of an mbarrier object.
    pub fn end_phase(&mut self, object: u64) {
        if let Some(phases) = self.objects.get_mut(&object) {
            phases.ended = Some(Arc::new(std::mem::take(&mut phases.arriving)));
        }
    }

    /// Makes a thread's accesses known to all that observe the last phase of the object.
    pub fn add_to_phase(&mut self, object: u64, (warp, lane): Thread) {
        let view = self.view(warp).clone();
        let clock = Arc::new(self.clock_of(&view, warp, 1 << lane));
        join(&mut self.objects.entry(object).or_default().ended, &clock, &self.sets);
        self.advance(warp);
    }

    pub fn observe_phase(&mut self, object: u64, (warp, lane): Thread) {
        if let Some(clock) = self.objects.get(&object).and_then(|phases| phases.ended.clone()) {
            self.acquire(warp, 1 << lane, &clock);
        }
    }

    /// Arrives at a barrier of the block without waiting.
    pub fn arrive_at_barrier(&mut self, id: u32, warp: u32, mask: u32) {
        let view = self.view(warp).clone();
        view.add_to(self.barriers.entry(id).or_default(), warp, mask, &self.sets);
        self.advance(warp);
    }

    /// Opens a barrier for part of the block, given the waiting warps and their lanes.
    pub fn open_barrier(&mut self, id: u32, waiting: impl Iterator<Item = (u32, u32)> + Clone) {
        let mut all = self.barriers.remove(&id).unwrap_or_default();
        for (warp, mask) in waiting.clone() {
            let view = self.view(warp).clone();
            view.add_to(&mut all, warp, mask, &self.sets);
        }
        let all = Arc::new(all);
        for (warp, mask) in waiting {
            self.sync(warp, mask, mask);
            self.acquire(warp, mask, &all);
        }
    }

    /// Whether an access in this epoch happens before a later one.
    pub fn is_before(&self, earlier: Tag, later: Tag) -> bool {
        let (warp, lane) = (later.warp() as usize % WARPS, later.thread() as usize % LANES);
        let same_thread = earlier.thread() == later.thread();
        let alone = !earlier.several_lanes() && !earlier.several_warps();
        let same_warp = earlier.warp() == later.warp() && !earlier.several_warps();
        if same_thread && alone && !later.several_lanes() || same_warp && !earlier.is_since(self.times[warp].synced) {
            return true;
        }
        let Some(Warp { view, .. }) = self.warps.get(warp).filter(|_| self.busy) else { return false };
        if later.several_lanes() {
            // If several lanes load a word together, the first one stands for all.
            return !same_warp && knows(view, lane, earlier);
        }
        if same_thread {
            // Other threads accessed the word as well, but the moments were not recorded.
            return view.known[lane].is_some() || view.mates.is_some();
        }
        let of_mate =
            view.mates.as_ref().filter(|_| same_warp).map_or(0, |mates| mates[lane][earlier.thread() as usize % LANES]);
        of_mate > earlier.time() || knows(view, lane, earlier)
    }
}

/// Whether a lane has acquired a thread's access.
fn knows(view: &View, lane: usize, earlier: Tag) -> bool {
    let known = view.known[lane].as_ref().map_or(0, |clock| clock.of(earlier.thread()));
    if earlier.time() == Tag::UNKNOWN { known > 0 } else { known > earlier.time() }
}
