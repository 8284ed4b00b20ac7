//! A stratified sample of a grid's blocks: which blocks run, and how many blocks each of them represents.
//!
//! Every axis is divided into strata. The first two and the last two positions are strata of their own, because blocks
//! at the edges of a grid do different work from those inside. The positions in between are divided into ranges of
//! nearly equal length, each represented by one position. A stratum of the grid is the product of one stratum per axis.

/// Maximum number of blocks in a sample. Grids with no more blocks run as a whole.
pub const MOST: u64 = 256;
/// Number of positions at each end of an axis that are strata of their own.
const EDGE: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chosen {
    /// Linear index of the block in the grid.
    pub linear: u64,
    /// Number of blocks that this one represents, including itself.
    pub weight: u64,
}

/// Returns the blocks of a sample, in ascending order; `None` for a grid that runs as a whole. The sample depends only
/// on the extents of the grid.
pub fn choose_blocks(grid: [u32; 3]) -> Option<Vec<Chosen>> {
    let grid = grid.map(u64::from);
    if grid.iter().product::<u64>() <= MOST {
        return None;
    }
    let strata = positions(grid).into_iter().zip(grid).enumerate();
    let axes: Vec<Vec<Chosen>> = strata.map(|(axis, (wanted, extent))| along(axis as u64, extent, wanted)).collect();
    let mut chosen = Vec::new();
    for z in &axes[2] {
        for y in &axes[1] {
            for x in &axes[0] {
                let linear = (z.linear * grid[1] + y.linear) * grid[0] + x.linear;
                chosen.push(Chosen { linear, weight: x.weight * y.weight * z.weight });
            }
        }
    }
    Some(chosen)
}

/// Returns the number of strata along each axis. Short axes have one per position; long ones share the rest.
fn positions(grid: [u64; 3]) -> [u64; 3] {
    let mut order = [0, 1, 2];
    order.sort_by_key(|&axis| grid[axis]);
    let (mut wanted, mut left) = ([1; 3], MOST);
    for (at, &axis) in order.iter().enumerate() {
        let share = (1..=left).take_while(|share| share.pow(3 - at as u32) <= left).last().unwrap_or(1);
        wanted[axis] = share.min(grid[axis]);
        left /= wanted[axis];
    }
    wanted
}

/// Chooses one position for each stratum of an axis.
fn along(axis: u64, extent: u64, wanted: u64) -> Vec<Chosen> {
    if wanted >= extent {
        return (0..extent).map(|linear| Chosen { linear, weight: 1 }).collect();
    }
    let edge = EDGE.min((wanted - 1) / 2);
    let (inside, strata) = (extent - 2 * edge, wanted - 2 * edge);
    let alone = |linear| Chosen { linear, weight: 1 };
    let between = (0..strata).map(|stratum| {
        let (begin, end) = (stratum * inside / strata, (stratum + 1) * inside / strata);
        let weight = end - begin;
        // The offset varies between strata, because kernels may treat, say, every second block differently.
        Chosen { linear: edge + begin + scattered(axis << 32 | stratum) % weight, weight }
    });
    (0..edge).map(alone).chain(between).chain((extent - edge..extent).map(alone)).collect()
}

/// Hashes a number (the finaliser of `SplitMix64`).
const fn scattered(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn represented(grid: [u32; 3]) -> u64 {
        choose_blocks(grid).map_or(0, |chosen| chosen.iter().map(|block| block.weight).sum())
    }

    #[test]
    fn a_sample_represents_every_block_once() {
        for grid in [[257, 1, 1], [65536, 1, 1], [256, 256, 1], [1000, 3, 1], [7, 50, 9], [1, 1, 65535], [2, 2, 300]] {
            let blocks = grid.iter().map(|&n| u64::from(n)).product::<u64>();
            assert_eq!(represented(grid), blocks, "{grid:?}");
            let chosen = choose_blocks(grid).unwrap_or_default();
            assert!(chosen.len() as u64 <= MOST && chosen.len() > 60, "{grid:?}: {}", chosen.len());
            assert!(chosen.is_sorted() && chosen.windows(2).all(|pair| pair[0].linear < pair[1].linear));
        }
    }

    #[test]
    fn small_grids_run_as_a_whole() {
        assert_eq!(choose_blocks([16, 16, 1]), None);
        assert!(choose_blocks([16, 16, 2]).is_some());
    }

    #[test]
    fn the_corners_and_the_edges_represent_themselves() {
        let chosen = choose_blocks([256, 128, 1]).unwrap_or_default();
        let weight = |x: u64, y: u64| chosen.iter().find(|block| block.linear == y * 256 + x).map(|block| block.weight);
        for (x, y) in [(0, 0), (1, 1), (255, 0), (254, 1), (0, 127), (255, 127), (254, 126)] {
            assert_eq!(weight(x, y), Some(1), "block ({x},{y})");
        }
        // On the top edge, y is a stratum of its own. Between the ends, the 252 positions of x form 12 strata of 21.
        let top: Vec<u64> = chosen.iter().filter(|block| block.linear < 256).map(|block| block.weight).collect();
        assert_eq!(top, [&[1, 1][..], &[21; 12], &[1, 1]].concat());
    }

    #[test]
    fn blocks_between_are_not_all_even_or_all_odd() {
        let chosen = choose_blocks([1 << 20, 1, 1]).unwrap_or_default();
        let odd = chosen.iter().filter(|block| block.linear % 2 == 1).count();
        assert!((96..160).contains(&odd), "{odd} of {}", chosen.len());
    }
}
