//! What each thread of a block knows: which accesses of the others since the block's last barrier happen before its own
//! next ones.
//!
//! A warp counts its own time, which advances when the warp synchronises, and when one of its threads releases. A
//! barrier of the block begins an epoch, in which every time starts at zero and nobody knows anything. Until a thread
//! releases, fences or synchronises otherwise, two numbers per warp are all that is kept. After that each thread has a
//! [`Clock`] of what it has acquired, shared by threads that know the same.

use std::collections::HashMap;
use std::sync::Arc;

use crate::sanitize::compact::Moment;
use crate::sanitize::request::Space;
use crate::sanitize::tag::Tag;

const LANES: usize = 32;
const WARPS: usize = 32;

/// For each thread of the block the time of its warp before which its accesses are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clock(Vec<u32>);

impl Clock {
    fn of(&self, thread: u32) -> u32 {
        self.0.get(thread as usize).copied().unwrap_or(0)
    }

    fn raise(&mut self, thread: usize, time: u32) {
        if self.0.len() <= thread {
            self.0.resize((thread + 1).next_multiple_of(LANES), 0);
        }
        self.0[thread] = self.0[thread].max(time);
    }

    fn contains(&self, other: &Self) -> bool {
        other.0.iter().enumerate().all(|(thread, time)| self.of(thread as u32) >= *time)
    }

    fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
    }
}

/// A clock, or none for a thread that knows nothing.
type Known = Option<Arc<Clock>>;

fn join(known: &mut Known, other: &Arc<Clock>) {
    match known {
        None => *known = Some(Arc::clone(other)),
        Some(mine) if Arc::ptr_eq(mine, other) || mine.contains(other) => {}
        Some(mine) if other.contains(mine) => *known = Some(Arc::clone(other)),
        Some(mine) => Arc::make_mut(mine).join(other),
    }
}

/// The times of a warp in the present epoch.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    now: u32,
    /// When all lanes last synchronised.
    synced: u32,
    /// When the time last advanced for another reason.
    event: u32,
}

/// For each lane what it knows of the other lanes of its warp.
type Mates = [[u32; LANES]; LANES];

/// What the lanes of a warp know at a moment.
#[derive(Debug, Clone, Default)]
struct View {
    times: Times,
    /// Since the last synchronisation of the whole warp, if some lanes have synchronised.
    mates: Option<Box<Mates>>,
    known: [Known; LANES],
}

impl View {
    /// Returns what a lane passes on when it releases: what it knows, and its own accesses.
    fn clock(&self, warp: usize, lane: usize) -> Clock {
        let mut clock = self.known[lane].as_deref().cloned().unwrap_or_default();
        for mate in 0..LANES {
            let of_mate = self.mates.as_ref().map_or(0, |mates| mates[lane][mate]);
            clock.raise(warp * LANES + mate, of_mate.max(self.times.synced));
        }
        clock.raise(warp * LANES + lane, self.times.now + 1);
        clock
    }
}

/// A fence of some lanes: their later strong stores release what they knew then.
#[derive(Debug)]
struct Fence {
    mask: u32,
    view: View,
}

#[derive(Debug, Default)]
struct Warp {
    view: View,
    fences: Vec<Fence>,
    /// What lanes have read by strong loads, and acquire with their next fence.
    pending: Vec<(u32, Arc<Clock>)>,
}

/// What is released through an mbarrier object.
#[derive(Debug, Default)]
struct Phases {
    arriving: Clock,
    ended: Known,
}

/// A thread, by warp and lane.
pub type Thread = (u32, usize);

/// The order of a block's accesses in the present epoch.
#[derive(Debug, Default)]
pub struct Order {
    times: [Times; WARPS],
    /// Threads have released, fenced, or synchronised as a part of a warp, in this epoch.
    busy: bool,
    /// The state of each warp beyond its times; of this epoch if the block is busy.
    warps: Vec<Warp>,
    /// What the last strong store to each address released, with the atomics after it.
    places: HashMap<(Space, u64), Arc<Clock>>,
    objects: HashMap<u64, Phases>,
    /// What the arrivals at each barrier release that do not wait.
    barriers: HashMap<u32, Clock>,
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

impl Order {
    /// Orders all accesses so far before all later ones.
    pub fn begin_epoch(&mut self) {
        self.times = [Times::default(); WARPS];
        if self.busy {
            self.busy = false;
            self.warps.clear();
            self.places.clear();
            self.objects.clear();
            self.barriers.clear();
        }
    }

    /// Returns the time of a warp.
    pub fn time(&self, warp: u32) -> u32 {
        self.times[warp as usize % WARPS].now
    }

    /// Returns when a whole warp last synchronised.
    pub fn synced(&self, warp: u32) -> u32 {
        self.times[warp as usize % WARPS].synced
    }

    pub fn moment(&self, epoch: u32, warp: u32) -> Moment {
        let Times { now, synced, event } = self.times[warp as usize % WARPS];
        Moment { epoch, warp, time: now, synced, event, busy: self.busy }
    }

    /// Synchronises lanes of a warp; `alive` are the lanes that have not exited.
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
        let mut all: Known = None;
        let mut differ = false;
        let first = view.known[mask.trailing_zeros() as usize % LANES].clone();
        for lane in lanes(mask) {
            let same = match (&first, &view.known[lane]) {
                (Some(first), Some(known)) => Arc::ptr_eq(first, known),
                (first, known) => first.is_none() && known.is_none(),
            };
            differ |= !same;
        }
        if differ {
            lanes(mask).filter_map(|lane| view.known[lane].as_ref()).for_each(|known| join(&mut all, known));
            lanes(mask).for_each(|lane| view.known[lane].clone_from(&all));
        }
    }

    /// Returns what a warp knows, with its present times.
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

    /// Separates what a thread of the warp has released from what comes next.
    fn advance(&mut self, warp: u32) {
        let times = &mut self.times[warp as usize % WARPS];
        times.now += 1;
        times.event = times.now;
    }

    /// Executes a fence of some lanes, or one half of it.
    pub fn fence(&mut self, warp: u32, mask: u32, (acquires, releases): (bool, bool)) {
        if acquires {
            self.finish_acquires(warp, mask);
        }
        if releases {
            let view = self.view(warp).clone();
            let fences = &mut self.warp(warp).fences;
            fences.iter_mut().for_each(|fence| fence.mask &= !mask);
            fences.retain(|fence| fence.mask != 0);
            fences.push(Fence { mask, view });
            self.advance(warp);
        }
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
        let known = &mut self.view(warp).known;
        // Lanes that knew the same still do.
        let mut last: Option<(Known, Known)> = None;
        for lane in lanes(mask) {
            let before = known[lane].clone();
            let same = last.as_ref().filter(|(old, _)| match (old, &before) {
                (Some(old), Some(before)) => Arc::ptr_eq(old, before),
                (old, before) => old.is_none() && before.is_none(),
            });
            match same {
                Some((_, new)) => known[lane].clone_from(new),
                None => {
                    join(&mut known[lane], clock);
                    last = Some((before, known[lane].clone()));
                }
            }
        }
    }

    /// Whether strong accesses have no effect yet.
    pub const fn is_quiet(&self) -> bool {
        !self.busy
    }

    /// Performs a strong store or an atomic of some lanes at their addresses.
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
                Some(view.clock(at, lane))
            } else {
                let fence = self.warps[at].fences.iter().find(|fence| fence.mask >> lane & 1 == 1);
                fence.map(|fence| fence.view.clock(at, lane))
            };
            match (released, atomic) {
                (None, true) => {}
                (None, false) => drop(self.places.remove(&(space, address))),
                (Some(clock), false) => drop(self.places.insert((space, address), Arc::new(clock))),
                (Some(clock), true) => {
                    let mut known = self.places.remove(&(space, address));
                    join(&mut known, &Arc::new(clock));
                    known.into_iter().for_each(|known| drop(self.places.insert((space, address), known)));
                }
            }
        }
        if releases {
            self.advance(warp);
        }
    }

    /// Performs a strong load, or the load of an atomic, of some lanes at their addresses.
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

    /// Arrives at an mbarrier object.
    pub fn arrive(&mut self, object: u64, (warp, lane): Thread) {
        let clock = self.view(warp).clock(warp as usize % WARPS, lane);
        self.objects.entry(object).or_default().arriving.join(&clock);
        self.advance(warp);
    }

    /// Completes a phase of an mbarrier object.
    pub fn end_phase(&mut self, object: u64) {
        if let Some(phases) = self.objects.get_mut(&object) {
            phases.ended = Some(Arc::new(std::mem::take(&mut phases.arriving)));
        }
    }

    /// Makes what a thread has done known to all that observe the last phase of an object.
    pub fn add_to_phase(&mut self, object: u64, (warp, lane): Thread) {
        let clock = Arc::new(self.view(warp).clock(warp as usize % WARPS, lane));
        join(&mut self.objects.entry(object).or_default().ended, &clock);
        self.advance(warp);
    }

    /// Observes that a phase of an object has completed.
    pub fn observe_phase(&mut self, object: u64, (warp, lane): Thread) {
        if let Some(clock) = self.objects.get(&object).and_then(|phases| phases.ended.clone()) {
            self.acquire(warp, 1 << lane, &clock);
        }
    }

    /// Arrives at a barrier of the block without waiting.
    pub fn arrive_at_barrier(&mut self, id: u32, warp: u32, mask: u32) {
        let view = self.view(warp).clone();
        let clock = self.barriers.entry(id).or_default();
        lanes(mask).for_each(|lane| clock.join(&view.clock(warp as usize % WARPS, lane)));
        self.advance(warp);
    }

    /// Opens a barrier for a part of the block: warps that wait, with their lanes.
    pub fn open_barrier(&mut self, id: u32, waiting: impl Iterator<Item = (u32, u32)> + Clone) {
        let mut all = self.barriers.remove(&id).unwrap_or_default();
        for (warp, mask) in waiting.clone() {
            let view = self.view(warp);
            lanes(mask).for_each(|lane| all.join(&view.clock(warp as usize % WARPS, lane)));
        }
        let all = Arc::new(all);
        for (warp, mask) in waiting {
            self.sync(warp, mask, mask);
            self.acquire(warp, mask, &all);
        }
    }

    /// Whether an access of this epoch happens before a later one.
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
            // Lanes that load one word together: the first one stands for all.
            return !same_warp && self.knows(view, lane, earlier);
        }
        if same_thread {
            // Others have accessed the word, too, at moments that are not kept.
            return view.known[lane].is_some() || view.mates.is_some();
        }
        let of_mate =
            view.mates.as_ref().filter(|_| same_warp).map_or(0, |mates| mates[lane][earlier.thread() as usize % LANES]);
        of_mate > earlier.time() || self.knows(view, lane, earlier)
    }

    fn knows(&self, view: &View, lane: usize, earlier: Tag) -> bool {
        let known = view.known[lane].as_ref().map_or(0, |clock| clock.of(earlier.thread()));
        if earlier.time() == Tag::UNKNOWN { known > 0 } else { known > earlier.time() }
    }
}
