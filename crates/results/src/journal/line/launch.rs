//! A launch in a line of the records.

use serde::{Deserialize, Serialize};

use super::number::Number;
use runner_types::{Dim3, KernelResources, LaunchRecord, Occupancy, OccupancyLimiter};

/// A launch's label, grid, block, dynamic shared memory, resources, occupancy and stream, stored as a list.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LaunchLine(String, Extent, Extent, u32, Resources, Option<OccupancyLine>, u32);

/// Blocks per SM, fraction of the maximum warps, and limiting resource.
type OccupancyLine = (u32, Number, Option<OccupancyLimiter>);

/// Extents, without trailing ones.
#[derive(Debug, Serialize, Deserialize)]
struct Extent(Vec<u32>);

/// Registers, static shared memory, local memory, spill stores and loads, maximum number of threads, and the cluster
/// size if the kernel was compiled for clusters.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Resources {
    Plain([Option<u32>; 6]),
    Clustered(Clustered),
}

type Fact = Option<u32>;
type Clustered = (Fact, Fact, Fact, Fact, Fact, Fact, [u32; 3]);

impl LaunchLine {
    pub fn new(launch: &LaunchRecord) -> Self {
        let r = &launch.resources;
        let facts = [r.registers, r.shared_static, r.local, r.spill_stores, r.spill_loads, r.max_threads];
        let occupancy = |o: Occupancy| (o.blocks_per_sm, Number(o.fraction), o.limiter);
        Self(
            launch.label.clone(),
            Extent::new(launch.grid),
            Extent::new(launch.block),
            launch.shared,
            match r.cluster {
                None => Resources::Plain(facts),
                Some(cluster) => {
                    let [registers, shared, local, stores, loads, threads] = facts;
                    Resources::Clustered((registers, shared, local, stores, loads, threads, cluster))
                }
            },
            launch.occupancy.map(occupancy),
            launch.stream,
        )
    }

    pub fn launch(self) -> LaunchRecord {
        let Self(label, grid, block, shared, resources, occupancy, stream) = self;
        let (plain, cluster) = match resources {
            Resources::Plain(plain) => (plain, None),
            Resources::Clustered((registers, shared, local, stores, loads, threads, cluster)) => {
                ([registers, shared, local, stores, loads, threads], Some(cluster))
            }
        };
        let [registers, shared_static, local, spill_stores, spill_loads, max_threads] = plain;
        let of_line =
            |(blocks_per_sm, Number(fraction), limiter): OccupancyLine| Occupancy { blocks_per_sm, fraction, limiter };
        LaunchRecord {
            label,
            grid: grid.dim(),
            block: block.dim(),
            shared,
            resources: KernelResources {
                registers,
                shared_static,
                local,
                spill_stores,
                spill_loads,
                max_threads,
                cluster,
            },
            occupancy: occupancy.map(of_line),
            stream,
        }
    }
}

impl Extent {
    fn new(dim: Dim3) -> Self {
        let mut extents = vec![dim.x, dim.y, dim.z];
        while extents.len() > 1 && extents.last() == Some(&1) {
            extents.pop();
        }
        Self(extents)
    }

    fn dim(&self) -> Dim3 {
        let extent = |i: usize| self.0.get(i).copied().unwrap_or(1);
        Dim3::new(extent(0), extent(1), extent(2))
    }
}
