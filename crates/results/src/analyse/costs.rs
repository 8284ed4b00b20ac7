//! Why one variant costs more than another: which of their counts differ, ranked by estimated cost.
//!
//! Each count keeps a unit of an SM busy for a number of cycles, which follows from the unit's throughput. The more
//! cycles a difference is worth, the higher it ranks. Cycles of different units overlap, caches are not modelled, and
//! no cycle is ever shown: they only order the differences. `docs/explanation/comparing.md` describes the rule.

use std::cmp::Ordering;

use runner_types::{CaseRecord, Counters, DeviceInfo};

/// A difference is left out if it is worth less than this fraction of the busiest unit's cycles.
const LEAST: f64 = 0.02;

/// Cycles between the ends of two dependent launches that do nothing: about a microsecond.
const CYCLES_PER_LAUNCH: f64 = 2000.0;

/// Number of sectors of a local access, in which each lane has its own word.
const SECTORS_PER_WARP: f64 = 4.0;

/// Minimum share of a count that a source line needs to be named as its place.
const LEAST_OF_LINE: f64 = 0.4;

/// Relative difference up to which two factors count as equal.
const SAME_FACTOR: f64 = 0.05;

/// What a case spends, named by the unit that it keeps busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Launches,
    SharedConflicts,
    SharedRequests,
    SharedAtomics,
    LocalRequests,
    GlobalLoadSectors,
    GlobalLoadRequests,
    GlobalStoreSectors,
    GlobalStoreRequests,
    GlobalAtomics,
    DeviceMemory,
    Fp64,
    Xu,
    Tensor,
    Alu,
    Fma,
    Branches,
    Barriers,
    Instructions,
    Occupancy,
}

/// All costs that have cycles. Among equal costs, the first is the more specific.
const COUNTED: [Cost; 19] = [
    Cost::Launches,
    Cost::SharedConflicts,
    Cost::SharedRequests,
    Cost::SharedAtomics,
    Cost::LocalRequests,
    Cost::GlobalLoadSectors,
    Cost::GlobalLoadRequests,
    Cost::GlobalStoreSectors,
    Cost::GlobalStoreRequests,
    Cost::GlobalAtomics,
    Cost::DeviceMemory,
    Cost::Fp64,
    Cost::Xu,
    Cost::Tensor,
    Cost::Alu,
    Cost::Fma,
    Cost::Branches,
    Cost::Barriers,
    Cost::Instructions,
];

impl Cost {
    /// Counters whose sum is the cost.
    pub const fn counters(self) -> &'static [&'static str] {
        match self {
            Self::Launches | Self::Occupancy => &[],
            Self::SharedConflicts => &["shared_ld_bank_conflicts", "shared_st_bank_conflicts"],
            Self::SharedRequests => &["shared_ld_requests", "shared_st_requests"],
            Self::SharedAtomics => &["shared_atomics"],
            Self::LocalRequests => &["local_ld_requests", "local_st_requests"],
            Self::GlobalLoadSectors => &["gld_sectors"],
            Self::GlobalLoadRequests => &["gld_requests"],
            Self::GlobalStoreSectors => &["gst_sectors"],
            Self::GlobalStoreRequests => &["gst_requests"],
            Self::GlobalAtomics => &["global_atomics"],
            Self::DeviceMemory => &["dram_read_bytes", "dram_write_bytes"],
            Self::Fp64 => &["pipe_fp64"],
            Self::Xu => &["pipe_xu"],
            Self::Tensor => &["pipe_tensor"],
            Self::Alu => &["pipe_alu"],
            Self::Fma => &["pipe_fma"],
            Self::Branches => &["pipe_cbu"],
            Self::Barriers => &["barriers"],
            Self::Instructions => &["inst_executed"],
        }
    }

    /// Cycles of one SM that one count is worth.
    ///
    /// Warp instructions per cycle and SM are from the throughput table of the CUDA C++ Programming Guide, divided by
    /// the 32 lanes of a warp. Shared memory serves one request per cycle, and the L2 about a sector per cycle and SM.
    fn cycles(self, device: &DeviceInfo) -> f64 {
        let sms = f64::from(device.sm_count.max(1));
        let f32_warps = f64::from(device.cores_per_sm.unwrap_or(128)) / 32.0;
        match self {
            Self::Launches => CYCLES_PER_LAUNCH * sms,
            Self::SharedConflicts
            | Self::SharedRequests
            | Self::GlobalLoadSectors
            | Self::GlobalLoadRequests
            | Self::GlobalStoreSectors
            | Self::GlobalStoreRequests
            | Self::Barriers => 1.0,
            Self::LocalRequests | Self::GlobalAtomics => SECTORS_PER_WARP,
            Self::SharedAtomics | Self::Xu | Self::Tensor => 2.0,
            Self::DeviceMemory => {
                let clock = f64::from(device.sm_clock_khz) * 1e3;
                device.peak_bandwidth().map_or(0.0, |bandwidth| clock * sms / bandwidth)
            }
            Self::Fp64 => match device.compute_capability {
                (6 | 7 | 8 | 10, 0) => 1.0,
                (9, 0) => 0.5,
                _ => 16.0,
            },
            Self::Alu => {
                if device.compute_capability.0 < 7 {
                    1.0 / f32_warps
                } else {
                    0.5
                }
            }
            Self::Fma => 1.0 / f32_warps,
            Self::Branches => 0.5,
            Self::Instructions => 0.25,
            Self::Occupancy => 0.0,
        }
    }

    /// Amount of the cost in a case; `None` if it was not counted.
    fn amount(self, record: &CaseRecord) -> Option<f64> {
        match self {
            Self::Launches => Some(record.launches.len() as f64).filter(|launches| *launches > 0.0),
            Self::Occupancy => {
                record.launches.iter().filter_map(|launch| Some(launch.occupancy?.fraction)).reduce(f64::min)
            }
            _ => sum(self, record.counters.as_ref()?),
        }
    }

    /// The file and line at which a case spends most of the cost, if one line has a notable part.
    fn place(self, records: &[&CaseRecord]) -> Option<(String, u32)> {
        let mut lines: Vec<((&str, u32), f64)> = Vec::new();
        for line in records.iter().flat_map(|record| &record.lines) {
            let Some(amount) = sum(self, &line.counters) else { continue };
            match lines.iter_mut().find(|(place, _)| *place == (&*line.file, line.line)) {
                Some((_, of_line)) => *of_line += amount,
                None => lines.push(((&line.file, line.line), amount)),
            }
        }
        let total: f64 = lines.iter().map(|(_, amount)| amount).sum();
        let ((file, line), most) = lines.into_iter().rev().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        (most >= LEAST_OF_LINE * total && total > 0.0).then(|| (file.to_owned(), line))
    }
}

fn sum(cost: Cost, counters: &Counters) -> Option<f64> {
    cost.counters().iter().filter_map(|name| counters.get(name)).reduce(|sum, count| sum + count)
}

/// A cost that differs between two variants.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub cost: Cost,
    /// Amount in the base, over all pairs; the mean for occupancy.
    pub base: f64,
    /// Amount in the new variant, like `base`.
    pub new: f64,
    /// Whether it explains the result rather than counteracting it.
    pub explains: bool,
    /// File and line with most of the cost, in the base and in the new variant.
    pub places: [Option<(String, u32)>; 2],
    /// Bytes that the new variant uses, as a percentage of those that its sectors move; for sectors only.
    pub efficiency: Option<f64>,
}

impl Difference {
    /// Whether both costs count instructions that changed by the same factor, as when a kernel runs with more threads.
    fn repeats(&self, other: &Self) -> bool {
        const OF_INSTRUCTIONS: [Cost; 6] = [
            Cost::Instructions,
            Cost::Alu,
            Cost::Fma,
            Cost::Branches,
            Cost::GlobalLoadRequests,
            Cost::GlobalStoreRequests,
        ];
        let factors = [self.new * other.base, other.new * self.base];
        let is_same = (factors[0] - factors[1]).abs() <= SAME_FACTOR * factors[0].max(factors[1]);
        [self.cost, other.cost].iter().all(|cost| OF_INSTRUCTIONS.contains(cost)) && is_same
    }
}

/// What differs between pairs of a base and a new case. Differences that explain the result come before those that
/// counteract it, each sorted by estimated cost.
pub fn differences(pairs: &[(&CaseRecord, &CaseRecord)], device: &DeviceInfo) -> Vec<Difference> {
    // By pair and cost: the cycles of both sides, as a fraction of the busiest unit's.
    let spent: Vec<Vec<(Cost, [f64; 2])>> = pairs.iter().map(|(base, new)| relative(base, new, device)).collect();
    let saved_by = |cost: Cost| {
        let of_pair = spent.iter().flatten().filter(|(of, _)| *of == cost).map(|(_, [base, new])| base - new);
        of_pair.sum::<f64>() / pairs.len().max(1) as f64
    };
    let saved = result(pairs, &spent, &saved_by);
    let mut found: Vec<(f64, Difference)> = COUNTED
        .into_iter()
        .map(|cost| (saved_by(cost), cost))
        .filter(|(of_cost, _)| of_cost.abs() >= LEAST)
        .filter_map(|(of_cost, cost)| Some((of_cost, difference(cost, pairs, of_cost * saved >= 0.0)?)))
        .collect();
    if let Some(occupancy) = difference(Cost::Occupancy, pairs, true)
        && (occupancy.new / occupancy.base).ln().abs() >= LEAST
    {
        let gained = occupancy.new - occupancy.base;
        // No count says what occupancy is worth, so it comes last.
        found.push((0.0, Difference { explains: gained * saved >= 0.0, ..occupancy }));
    }
    found.sort_by(|(a, of_a), (b, of_b)| match of_b.explains.cmp(&of_a.explains) {
        Ordering::Equal => b.abs().total_cmp(&a.abs()),
        order => order,
    });
    let mut differences: Vec<Difference> = Vec::new();
    for (_, difference) in found {
        if !differences.iter().any(|other| difference.repeats(other)) {
            differences.push(difference);
        }
    }
    differences
}

/// Cycles for which base and new keep each unit busy, as a fraction of the busiest unit's.
fn relative(base: &CaseRecord, new: &CaseRecord, device: &DeviceInfo) -> Vec<(Cost, [f64; 2])> {
    let cycles = COUNTED.into_iter().filter_map(|cost| {
        let cycles = cost.cycles(device);
        Some((cost, [cost.amount(base)? * cycles, cost.amount(new)? * cycles]))
    });
    let cycles: Vec<(Cost, [f64; 2])> = cycles.collect();
    let busiest = |of: &dyn Fn(Cost) -> bool| {
        cycles.iter().filter(|(cost, _)| of(*cost)).flat_map(|(_, both)| *both).fold(0.0, f64::max)
    };
    // A launch is waiting time and keeps no unit busy.
    let of_units = busiest(&|cost| cost != Cost::Launches);
    let busiest = if of_units > 0.0 { of_units } else { busiest(&|_| true) };
    if busiest <= 0.0 {
        return Vec::new();
    }
    cycles.into_iter().map(|(cost, both)| (cost, both.map(|cycles| cycles / busiest))).collect()
}

/// How much the new variant saves: by time if both have one, otherwise by the cycles of the busiest unit, otherwise by
/// those of all units. Positive if it costs less.
fn result(
    pairs: &[(&CaseRecord, &CaseRecord)],
    spent: &[Vec<(Cost, [f64; 2])>],
    saved_by: &impl Fn(Cost) -> f64,
) -> f64 {
    let time = |record: &CaseRecord| record.result.as_ref().map(|result| result.time.point).filter(|time| *time > 0.0);
    let times: Option<Vec<f64>> = pairs.iter().map(|(base, new)| Some((time(base)? / time(new)?).ln())).collect();
    if let Some(times) = times {
        return times.iter().sum();
    }
    // Launches run one after another, while the units of an SM work at the same time.
    let busiest = |pair: &Vec<(Cost, [f64; 2])>| {
        let of = |side: usize| {
            let (launches, units): (Vec<_>, Vec<_>) = pair.iter().partition(|(cost, _)| *cost == Cost::Launches);
            let launches: f64 = launches.iter().map(|(_, both)| both[side]).sum();
            launches + units.iter().map(|(_, both)| both[side]).fold(0.0, f64::max)
        };
        of(0) - of(1)
    };
    let by_busiest: f64 = spent.iter().map(busiest).sum::<f64>() / spent.len().max(1) as f64;
    if by_busiest.abs() >= LEAST { by_busiest } else { COUNTED.into_iter().map(saved_by).sum() }
}

fn difference(cost: Cost, pairs: &[(&CaseRecord, &CaseRecord)], explains: bool) -> Option<Difference> {
    let both: Vec<(f64, f64)> =
        pairs.iter().filter_map(|(base, new)| Some((cost.amount(base)?, cost.amount(new)?))).collect();
    if both.is_empty() {
        return None;
    }
    let of_mean = if cost == Cost::Occupancy { both.len() as f64 } else { 1.0 };
    let (bases, news): (Vec<&CaseRecord>, Vec<&CaseRecord>) = pairs.iter().copied().unzip();
    Some(Difference {
        cost,
        base: both.iter().map(|(base, _)| base).sum::<f64>() / of_mean,
        new: both.iter().map(|(_, new)| new).sum::<f64>() / of_mean,
        explains,
        places: [cost.place(&bases), cost.place(&news)],
        efficiency: efficiency(cost, &news),
    })
}

fn efficiency(cost: Cost, records: &[&CaseRecord]) -> Option<f64> {
    let name = match cost {
        Cost::GlobalLoadSectors => "gld_efficiency",
        Cost::GlobalStoreSectors => "gst_efficiency",
        _ => return None,
    };
    records.iter().filter_map(|record| record.counters.as_ref()?.get(name)).reduce(f64::min)
}
