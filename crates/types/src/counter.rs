//! Vocabulary of counters: common names for the simulator's and the hardware's counts.
//!
//! A count is summed over the launches of a body. A ratio is recomputed from the counts of the whole body. If the
//! profiler does not report these, it is averaged, weighted by its denominator. `docs/reference/metrics.md` describes
//! each counter.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::LazyLock;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::Real;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    Count,
    Bytes,
    /// A fraction of a whole, 0 to 100.
    Percent,
    /// A ratio of two counts.
    PerOne,
    /// Time on the device's clock.
    Nanoseconds,
    BytesPerSecond,
}

/// Section of a report that shows a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterTheme {
    /// Instructions, branches, barriers and warps.
    Instructions,
    /// Requests to global memory, atomic operations and device memory traffic.
    Global,
    /// Requests to shared and local memory, and bank conflicts.
    SharedAndLocal,
    /// Warp instructions by the pipeline that executes them.
    Pipelines,
    /// Utilisation of the machine, which only hardware counts.
    Activity,
    /// PTX instruction counts from the simulator.
    Ptx,
}

/// How to compute a counter for a whole body.
#[derive(Debug, Clone, Copy)]
pub enum CounterKind {
    /// Sum over the launches.
    Count,
    /// Computed from other counters; `None` if a denominator is zero or an operand is missing.
    Formed(fn(&Counters) -> Option<f64>),
    /// Average over the launches, weighted by this count.
    Weighted(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub struct CounterInfo {
    /// Key in records and reports, e.g. `gld_sectors`.
    pub name: &'static str,
    pub unit: CounterUnit,
    pub theme: CounterTheme,
    pub kind: CounterKind,
    /// Name in nvprof; empty if nvprof had no such metric.
    pub nvprof: &'static str,
    /// Profiler metrics to add up; empty if the counter is computed from others or hardware does not count it.
    pub nsight: &'static [&'static str],
    pub simulated: bool,
}

impl CounterInfo {
    /// Whether a higher count means more work, executed or transferred by kernels. Excludes the number of warps, which
    /// the launch determines, and utilisation.
    pub fn is_cost(&self) -> bool {
        matches!(self.kind, Count) && ![Activity, Pipelines, Ptx].contains(&self.theme) && self.name != "warps_launched"
    }

    /// Whether this counter by itself shows more or less work: instructions, memory sectors and atomics, bank conflicts
    /// and barriers. The other work counts follow from these or explain them.
    pub fn decides(&self) -> bool {
        const DECIDING: [&str; 8] = [
            "inst_executed",
            "barriers",
            "gld_sectors",
            "gst_sectors",
            "global_atomics",
            "shared_ld_bank_conflicts",
            "shared_st_bank_conflicts",
            "shared_atomics",
        ];
        DECIDING.contains(&self.name)
    }

    /// Whether the simulator derives the count from machine code.
    pub fn is_derived(&self) -> bool {
        self.simulated && matches!(self.kind, Count) && (self.theme == Pipelines || self.of_ptx().is_some())
    }

    /// Name of the corresponding PTX count, if any. Machine code may have a different count.
    pub fn of_ptx(&self) -> Option<&'static str> {
        static NAMES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
            VOCABULARY.iter().filter_map(|info| Some((info.name.strip_prefix(OF_PTX)?, info.name))).collect()
        });
        NAMES.get(self.name).copied()
    }

    /// Looks up a counter; `None` for a name outside the vocabulary.
    pub fn named(name: &str) -> Option<&'static Self> {
        VOCABULARY.iter().find(|info| info.name == name)
    }
}

/// Prefix of the names of PTX counts.
const OF_PTX: &str = "ptx_";

/// A counter's name; needs no allocation if it is in the vocabulary.
pub type CounterName = Cow<'static, str>;

/// The vocabulary's own string for a name, or an owned copy.
pub fn counter_name(text: &str) -> CounterName {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| VOCABULARY.iter().map(|info| info.name).collect());
    NAMES.get(text).map_or_else(|| Cow::Owned(text.to_owned()), |name| Cow::Borrowed(*name))
}

use CounterKind::{Count, Formed, Weighted};
use CounterTheme::{Activity, Global, Instructions, Pipelines, Ptx, SharedAndLocal};
use CounterUnit as Unit;

/// Counters, within each theme in the order of the report.
pub const VOCABULARY: &[CounterInfo] = &[
    simulated("inst_executed", Instructions, "inst_executed", &["smsp__inst_executed.sum"]),
    formed("inst_per_warp", Unit::PerOne, Instructions, "inst_per_warp", |c| {
        quotient(c, "inst_executed", "warps_launched", 1.0)
    }),
    count("thread_inst_executed", Instructions, "thread_inst_executed", &["smsp__thread_inst_executed.sum"]),
    formed("warp_execution_efficiency", Unit::Percent, Instructions, "warp_execution_efficiency", |c| {
        quotient(c, "thread_inst_executed", "inst_executed", 100.0 / 32.0)
    })
    .by_hardware(),
    count("branch", Instructions, "branch", &["smsp__sass_branch_targets.sum"]),
    count("divergent_branch", Instructions, "divergent_branch", &["smsp__sass_branch_targets_threads_divergent.sum"]),
    formed("branch_efficiency", Unit::Percent, Instructions, "branch_efficiency", |c| {
        rest(c, "divergent_branch", "branch")
    })
    .by_hardware(),
    simulated("barriers", Instructions, "", &[]),
    simulated("device_launches", Instructions, "", &[]),
    simulated("warps_launched", Instructions, "warps_launched", &["smsp__warps_launched.sum"]),
    simulated("gld_requests", Global, "gld_request", &["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]),
    simulated("gld_sectors", Global, "gld_transactions", &["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]),
    simulated("gld_transactions_128", Global, "gld_transactions (Kepler)", &[]),
    simulated("gld_requested_bytes", Global, "gld_requested_bytes", &["smsp__sass_data_bytes_mem_global_op_ld.sum"])
        .in_unit(Unit::Bytes),
    formed("gld_efficiency", Unit::Percent, Global, "gld_efficiency", |c| {
        quotient(c, "gld_requested_bytes", "gld_sectors", 100.0 / 32.0)
    }),
    simulated("gst_requests", Global, "gst_request", &["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"]),
    simulated("gst_sectors", Global, "gst_transactions", &["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"]),
    simulated("gst_transactions_128", Global, "gst_transactions (Kepler)", &[]),
    simulated("gst_requested_bytes", Global, "gst_requested_bytes", &["smsp__sass_data_bytes_mem_global_op_st.sum"])
        .in_unit(Unit::Bytes),
    formed("gst_efficiency", Unit::Percent, Global, "gst_efficiency", |c| {
        quotient(c, "gst_requested_bytes", "gst_sectors", 100.0 / 32.0)
    }),
    simulated(
        "global_atomics",
        Global,
        "atomic_transactions",
        &["smsp__sass_inst_executed_op_global_atom.sum", "smsp__sass_inst_executed_op_global_red.sum"],
    ),
    count("dram_read_bytes", Global, "dram_read_bytes", &["dram__bytes_read.sum"]).in_unit(Unit::Bytes),
    count("dram_write_bytes", Global, "dram_write_bytes", &["dram__bytes_write.sum"]).in_unit(Unit::Bytes),
    simulated("shared_ld_requests", SharedAndLocal, "shared_load", &["smsp__sass_inst_executed_op_shared_ld.sum"]),
    simulated(
        "shared_ld_bank_conflicts",
        SharedAndLocal,
        "shared_ld_bank_conflict",
        &["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
    ),
    simulated("shared_st_requests", SharedAndLocal, "shared_store", &["smsp__sass_inst_executed_op_shared_st.sum"]),
    simulated(
        "shared_st_bank_conflicts",
        SharedAndLocal,
        "shared_st_bank_conflict",
        &["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"],
    ),
    simulated("shared_atomics", SharedAndLocal, "", &["smsp__sass_inst_executed_op_shared_atom.sum"]),
    simulated("local_ld_requests", SharedAndLocal, "local_load", &["smsp__sass_inst_executed_op_local_ld.sum"]),
    simulated("local_st_requests", SharedAndLocal, "local_store", &["smsp__sass_inst_executed_op_local_st.sum"]),
    simulated("pipe_alu", Pipelines, "", &[]),
    simulated("pipe_fma", Pipelines, "", &[]),
    simulated("pipe_lsu", Pipelines, "", &[]),
    simulated("pipe_xu", Pipelines, "", &[]),
    simulated("pipe_cbu", Pipelines, "", &[]),
    simulated("pipe_adu", Pipelines, "", &[]),
    simulated("pipe_uniform", Pipelines, "", &[]),
    simulated("pipe_tensor", Pipelines, "", &[]),
    simulated("pipe_tex", Pipelines, "", &[]),
    simulated("pipe_tma", Pipelines, "", &[]),
    simulated("pipe_fp64", Pipelines, "", &[]),
    count("gpu_time", Activity, "", &["gpu__time_duration.sum"]).in_unit(Unit::Nanoseconds),
    count("sm_active_cycles", Activity, "active_cycles", &["sm__cycles_active.sum"]),
    count("inst_issued", Activity, "inst_issued", &["smsp__issue_active.sum"]),
    weighted(
        "achieved_occupancy",
        Unit::Percent,
        &["sm__warps_active.avg.pct_of_peak_sustained_active"],
        "sm_active_cycles",
    ),
    weighted("sm_efficiency", Unit::Percent, &["smsp__cycles_active.avg.pct_of_peak_sustained_elapsed"], "gpu_time"),
    weighted(
        "eligible_warps_per_cycle",
        Unit::PerOne,
        &["smsp__warps_eligible.avg.per_cycle_active"],
        "sm_active_cycles",
    ),
    weighted(
        "gld_throughput",
        Unit::BytesPerSecond,
        &["l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second"],
        "gpu_time",
    ),
    weighted(
        "gst_throughput",
        Unit::BytesPerSecond,
        &["l1tex__t_bytes_pipe_lsu_mem_global_op_st.sum.per_second"],
        "gpu_time",
    ),
    weighted("dram_read_throughput", Unit::BytesPerSecond, &["dram__bytes_read.sum.per_second"], "gpu_time"),
    weighted("dram_write_throughput", Unit::BytesPerSecond, &["dram__bytes_write.sum.per_second"], "gpu_time"),
    weighted(
        "stall_sync",
        Unit::PerOne,
        &["smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"],
        "inst_issued",
    ),
    CounterInfo {
        nvprof: "stall_sync",
        ..weighted(
            "stall_membar",
            Unit::PerOne,
            &["smsp__average_warps_issue_stalled_membar_per_issue_active.ratio"],
            "inst_issued",
        )
    },
    simulated("ptx_inst_executed", Ptx, "", &[]),
    simulated("ptx_thread_inst_executed", Ptx, "", &[]),
    formed("ptx_warp_execution_efficiency", Unit::Percent, Ptx, "", |c| {
        quotient(c, "ptx_thread_inst_executed", "ptx_inst_executed", 100.0 / 32.0)
    }),
    simulated("ptx_branch", Ptx, "", &[]),
    simulated("ptx_divergent_branch", Ptx, "", &[]),
    formed("ptx_branch_efficiency", Unit::Percent, Ptx, "", |c| rest(c, "ptx_divergent_branch", "ptx_branch")),
    simulated("ptx_barriers", Ptx, "", &[]),
    simulated("ptx_gld_requests", Ptx, "", &[]),
    simulated("ptx_gld_sectors", Ptx, "", &[]),
    simulated("ptx_gld_transactions_128", Ptx, "", &[]),
    simulated("ptx_gld_requested_bytes", Ptx, "", &[]).in_unit(Unit::Bytes),
    simulated("ptx_gst_requests", Ptx, "", &[]),
    simulated("ptx_gst_sectors", Ptx, "", &[]),
    simulated("ptx_gst_transactions_128", Ptx, "", &[]),
    simulated("ptx_gst_requested_bytes", Ptx, "", &[]).in_unit(Unit::Bytes),
    simulated("ptx_global_atomics", Ptx, "", &[]),
    simulated("ptx_shared_ld_requests", Ptx, "", &[]),
    simulated("ptx_shared_ld_bank_conflicts", Ptx, "", &[]),
    simulated("ptx_shared_st_requests", Ptx, "", &[]),
    simulated("ptx_shared_st_bank_conflicts", Ptx, "", &[]),
    simulated("ptx_shared_atomics", Ptx, "", &[]),
    simulated("ptx_local_ld_requests", Ptx, "", &[]),
    simulated("ptx_local_st_requests", Ptx, "", &[]),
];

fn quotient(counters: &Counters, part: &str, whole: &str, scale: f64) -> Option<f64> {
    let (part, whole) = (counters.get(part)?, counters.get(whole)?);
    (whole > 0.0).then(|| part * scale / whole)
}

/// What remains of `whole` without `part`, in percent.
fn rest(counters: &Counters, part: &str, whole: &str) -> Option<f64> {
    Some(100.0 - quotient(counters, part, whole, 100.0)?)
}

const fn count(
    name: &'static str,
    theme: CounterTheme,
    nvprof: &'static str,
    nsight: &'static [&'static str],
) -> CounterInfo {
    CounterInfo { name, unit: Unit::Count, theme, kind: Count, nvprof, nsight, simulated: false }
}

/// A count that the simulator provides too.
const fn simulated(
    name: &'static str,
    theme: CounterTheme,
    nvprof: &'static str,
    nsight: &'static [&'static str],
) -> CounterInfo {
    CounterInfo { simulated: true, ..count(name, theme, nvprof, nsight) }
}

const fn formed(
    name: &'static str,
    unit: Unit,
    theme: CounterTheme,
    nvprof: &'static str,
    form: fn(&Counters) -> Option<f64>,
) -> CounterInfo {
    CounterInfo { name, unit, theme, kind: Formed(form), nvprof, nsight: &[], simulated: true }
}

const fn weighted(name: &'static str, unit: Unit, nsight: &'static [&'static str], by: &'static str) -> CounterInfo {
    CounterInfo { name, unit, theme: Activity, kind: Weighted(by), nvprof: name, nsight, simulated: false }
}

impl CounterInfo {
    /// Marks a counter that only hardware provides.
    const fn by_hardware(self) -> Self {
        Self { simulated: false, ..self }
    }

    const fn in_unit(self, unit: CounterUnit) -> Self {
        Self { unit, ..self }
    }
}

/// Counts from hardware or the simulator, named as in the [vocabulary](VOCABULARY) or, for metrics that the manifest
/// requests, as in the profiler. The environment tells which of the two counted: a simulated device, or a real device's
/// [counting method](super::Environment::counting_method).
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(transparent)]
pub struct Counters(#[serde(serialize_with = "super::real::serialize")] pub BTreeMap<CounterName, f64>);

impl Counters {
    /// Value of a counter; `None` if it was not counted.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Renames a simulator's plain counts to PTX counts. Older versions, which did not derive counts from machine code,
    /// stored the PTX counts under plain names.
    #[must_use]
    pub fn of_simulator(mut self) -> Self {
        if self.0.keys().any(|name| name.starts_with(OF_PTX)) {
            return self;
        }
        for info in VOCABULARY {
            if let Some(name) = info.of_ptx()
                && let Some(count) = self.0.remove(info.name)
            {
                self.0.insert(name.into(), count);
            }
        }
        // Drop ratios of counts that have been renamed.
        self.0.retain(|name, _| {
            CounterInfo::named(name).is_none_or(|info| !matches!(info.kind, Formed(_)) || info.theme == Ptx)
        });
        self
    }

    /// Computes every ratio of the vocabulary whose operands are present.
    pub fn form_ratios(&mut self) {
        for info in VOCABULARY {
            if let Formed(form) = info.kind {
                let formed = form(self);
                self.0.extend(formed.map(|value| (info.name.into(), value)));
            }
        }
    }
}

impl<'de> Deserialize<'de> for Counters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counts;

        impl<'de> Visitor<'de> for Counts {
            type Value = Counters;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counters, A::Error> {
                // Sizing the map once takes less memory than growing it.
                let mut counts = Vec::with_capacity(VOCABULARY.len());
                while let Some((Known(name), Real(count))) = map.next_entry()? {
                    counts.push((name, count));
                }
                Ok(Counters(counts.into_iter().collect()))
            }
        }

        deserializer.deserialize_map(Counts)
    }
}

/// A counter name, borrowed if it is in the vocabulary.
struct Known(CounterName);

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = Known;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a counter")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Known, E> {
                Ok(Known(counter_name(text)))
            }
        }

        deserializer.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_once_and_every_weight_is_a_count() {
        for (place, info) in VOCABULARY.iter().enumerate() {
            assert!(VOCABULARY[..place].iter().all(|other| other.name != info.name), "{} stands twice", info.name);
            if let Weighted(by) = info.kind {
                let weight = CounterInfo::named(by).map(|info| info.kind);
                assert!(matches!(weight, Some(Count)), "{} is weighted by {by}, which is no count", info.name);
                assert_eq!(info.nsight.len(), 1, "{}", info.name);
            }
        }
    }

    #[test]
    fn ratios_are_formed_of_counts_and_absent_where_there_is_nothing_to_divide_by() {
        let mut counters = Counters::default();
        let counts = [("inst_executed", 200.0), ("thread_inst_executed", 4800.0), ("warps_launched", 8.0)];
        counters.0.extend(counts.map(|(name, count)| (name.into(), count)));
        counters.0.extend([("branch".into(), 0.0), ("divergent_branch".into(), 0.0)]);
        counters.form_ratios();
        assert_eq!(counters.get("warp_execution_efficiency"), Some(75.0));
        assert_eq!(counters.get("inst_per_warp"), Some(25.0));
        assert_eq!(counters.get("branch_efficiency"), None);
        assert_eq!(counters.get("gld_efficiency"), None);
    }
}
