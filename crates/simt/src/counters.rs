//! Counters of a launch, and the metrics derived from them.

use std::collections::BTreeMap;

/// Counts of one launch. Instructions and branches are counted in the PTX, and a GPU's machine code may merge or split
/// them. Requests, sectors and conflicts follow from the program's accesses.
///
/// The counters that a branch changes are not adjacent. Otherwise one handler would access two of them as a vector and
/// the next handler one by one, and the host's store forwarding would stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Instructions executed by warps, regardless of the number of active lanes.
    pub warp_instructions: u64,
    /// Branches that only some of a warp's active lanes took.
    pub divergent_branches: u64,
    /// Instructions executed by threads: warp instructions times active lanes.
    pub thread_instructions: u64,
    /// Warps of all blocks that ran.
    pub warps: u64,
    /// Branches executed by warps.
    pub branches: u64,
    /// Blocks that ran.
    pub blocks: u64,
    /// Loads from global memory.
    pub global_load: Traffic,
    /// Stores to global memory.
    pub global_store: Traffic,
    /// Loads from shared memory.
    pub shared_load: SharedTraffic,
    /// Stores to shared memory.
    pub shared_store: SharedTraffic,
    /// Warp instructions that load from local memory.
    pub local_load_requests: u64,
    /// Warp instructions that store to local memory.
    pub local_store_requests: u64,
    /// Atomic warp instructions on global memory.
    pub global_atomics: u64,
    /// Atomic warp instructions on shared memory.
    pub shared_atomics: u64,
    /// Warp arrivals at block barriers.
    pub barriers: u64,
    /// Grids launched by kernels; the counts include theirs.
    pub device_launches: u64,
}

/// Counts for one line of the PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCounts {
    /// Kernel that contains the line.
    pub kernel: String,
    /// Line of the PTX, 1-based.
    pub ptx_line: u32,
    /// Path and line of the author's source, if the PTX has them. Code inlined from elsewhere has the line of the
    /// author's call.
    pub source: Option<(String, u32)>,
    /// Counts of the line's instructions and their accesses. The counters of warps, blocks and barriers are zero.
    pub counters: Counters,
    /// For the back edge of a loop: number of warps that left the loop, by number of iterations.
    pub rounds: BTreeMap<u64, u64>,
}

impl LineCounts {
    /// Sorts lines by kernel and PTX line, and adds up duplicates.
    pub fn merge(lines: &mut Vec<Self>) {
        lines.sort_by(|a, b| a.place().cmp(&b.place()));
        lines.dedup_by(|next, first| {
            let is_same = next.place() == first.place();
            if is_same {
                first.counters.add(&next.counters);
                for (rounds, warps) in &next.rounds {
                    *first.rounds.entry(*rounds).or_default() += warps;
                }
            }
            is_same
        });
    }

    fn place(&self) -> (&str, u32, Option<&(String, u32)>) {
        (&self.kernel, self.ptx_line, self.source.as_ref())
    }
}

/// Accesses to global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Warp instructions that accessed the memory.
    pub requests: u64,
    /// Distinct 32-byte sectors, summed over requests.
    pub sectors: u64,
    /// Distinct 128-byte lines, summed over requests.
    pub lines: u64,
    /// Distinct bytes requested by active lanes, summed over requests.
    pub bytes: u64,
}

/// Accesses to shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedTraffic {
    /// Warp instructions that accessed shared memory.
    pub requests: u64,
    /// Additional passes due to bank conflicts.
    pub conflicts: u64,
    /// Conflicts if each access covered the aligned 8 or 16 bytes around it, as when a compiler merges accesses. Only
    /// counted per line.
    pub wide_conflicts: [u64; 2],
}

impl Traffic {
    fn add(&mut self, other: &Self, times: u64) {
        self.requests += times * other.requests;
        self.sectors += times * other.sectors;
        self.lines += times * other.lines;
        self.bytes += times * other.bytes;
    }

    /// Returns the ratio of requested to moved bytes in percent; `None` if nothing was moved.
    fn efficiency(&self) -> Option<f64> {
        ratio(self.bytes, self.sectors * 32)
    }
}

impl SharedTraffic {
    /// Adds a request that needs this many additional passes.
    #[inline(always)]
    pub const fn count(&mut self, conflicts: u64) {
        self.requests += 1;
        self.conflicts += conflicts;
    }
}

/// Returns `part / whole` in percent.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

impl Counters {
    /// Adds the counts of another part of the launch.
    pub fn add(&mut self, other: &Self) {
        self.add_times(other, 1);
    }

    /// Adds the counts of part of the launch, which represents `times` similar parts.
    pub fn add_times(&mut self, other: &Self, times: u64) {
        self.warps += times * other.warps;
        self.blocks += times * other.blocks;
        self.warp_instructions += times * other.warp_instructions;
        self.thread_instructions += times * other.thread_instructions;
        self.branches += times * other.branches;
        self.divergent_branches += times * other.divergent_branches;
        self.global_load.add(&other.global_load, times);
        self.global_store.add(&other.global_store, times);
        for (mine, theirs) in
            [(&mut self.shared_load, &other.shared_load), (&mut self.shared_store, &other.shared_store)]
        {
            mine.requests += times * theirs.requests;
            mine.conflicts += times * theirs.conflicts;
            for (mine, theirs) in mine.wide_conflicts.iter_mut().zip(theirs.wide_conflicts) {
                *mine += times * theirs;
            }
        }
        self.local_load_requests += times * other.local_load_requests;
        self.local_store_requests += times * other.local_store_requests;
        self.global_atomics += times * other.global_atomics;
        self.shared_atomics += times * other.shared_atomics;
        self.barriers += times * other.barriers;
        self.device_launches += times * other.device_launches;
    }

    /// Returns the counts of global stores if `store`, otherwise of global loads.
    #[inline(always)]
    pub const fn global(&mut self, store: bool) -> &mut Traffic {
        if store { &mut self.global_store } else { &mut self.global_load }
    }

    /// Returns the percentage of branches that did not diverge.
    pub fn branch_efficiency(&self) -> Option<f64> {
        ratio(self.branches - self.divergent_branches, self.branches)
    }

    /// Returns the average number of active lanes per instruction divided by 32, in percent.
    pub fn warp_execution_efficiency(&self) -> Option<f64> {
        ratio(self.thread_instructions, self.warp_instructions * 32)
    }

    /// Returns all metrics by name. Ratios are in percent, except `inst_per_warp`. A metric whose denominator is zero
    /// is absent.
    pub fn metrics(&self) -> BTreeMap<&'static str, f64> {
        let counts = [
            ("inst_executed", self.warp_instructions),
            ("thread_inst_executed", self.thread_instructions),
            ("branch", self.branches),
            ("divergent_branch", self.divergent_branches),
            ("gld_requests", self.global_load.requests),
            ("gld_sectors", self.global_load.sectors),
            ("gld_transactions_128", self.global_load.lines),
            ("gld_requested_bytes", self.global_load.bytes),
            ("gst_requests", self.global_store.requests),
            ("gst_sectors", self.global_store.sectors),
            ("gst_transactions_128", self.global_store.lines),
            ("gst_requested_bytes", self.global_store.bytes),
            ("shared_ld_requests", self.shared_load.requests),
            ("shared_ld_bank_conflicts", self.shared_load.conflicts),
            ("shared_st_requests", self.shared_store.requests),
            ("shared_st_bank_conflicts", self.shared_store.conflicts),
            ("local_ld_requests", self.local_load_requests),
            ("local_st_requests", self.local_store_requests),
            ("global_atomics", self.global_atomics),
            ("shared_atomics", self.shared_atomics),
            ("barriers", self.barriers),
            ("warps_launched", self.warps),
        ];
        let ratios = [
            ("branch_efficiency", self.branch_efficiency()),
            ("warp_execution_efficiency", self.warp_execution_efficiency()),
            ("inst_per_warp", (self.warps > 0).then(|| self.warp_instructions as f64 / self.warps as f64)),
            ("gld_efficiency", self.global_load.efficiency()),
            ("gst_efficiency", self.global_store.efficiency()),
        ];
        let ratios = ratios.into_iter().filter_map(|(name, value)| Some((name, value?)));
        // Absent for kernels that launch nothing, so that their reports have no empty column.
        let launches = (self.device_launches > 0).then_some(("device_launches", self.device_launches as f64));
        counts.into_iter().map(|(name, count)| (name, count as f64)).chain(ratios).chain(launches).collect()
    }
}
