//! CUB's warp and block primitives.

use super::lab::{Lab, ints, line, random};

const KERNELS: [&str; 8] = [
    "block_reduce",
    "block_max",
    "block_scan",
    "block_sort",
    "block_histogram",
    "block_exchange",
    "warp_scan",
    "warp_sort",
];

fn lab() -> Lab {
    Lab::new("cub.cu", &KERNELS)
}

#[test]
fn blocks_reduce_what_they_load() {
    let values = ints(5 * 512, 10_000, 1);
    let mut lab = lab();
    let (input, sums) = (lab.buffer(&values), lab.fresh(4 * 5));
    lab.launch("block_reduce", line(5, 128), &[input, sums].map(Into::into));
    assert_eq!(lab.read::<i32>(sums), values.chunks(512).map(|c| c.iter().sum()).collect::<Vec<i32>>());
    let floats: Vec<f32> = ints(4 * 96, 1000, 2).into_iter().map(|v| v as f32 - 999.5).collect();
    let (input, most) = (lab.buffer(&floats), lab.fresh(4 * 4));
    lab.launch("block_max", line(4, 96), &[input, most].map(Into::into));
    let expected: Vec<f32> = floats.chunks(96).map(|c| c.iter().copied().fold(f32::MIN, f32::max)).collect();
    assert_eq!(lab.read::<f32>(most), expected);
}

#[test]
fn blocks_scan_what_they_load() {
    let values = ints(3 * 512, 10_000, 3);
    let mut lab = lab();
    let (input, out, totals) = (lab.buffer(&values), lab.fresh(4 * values.len()), lab.fresh(4 * 3));
    lab.launch("block_scan", line(3, 128), &[input, out, totals].map(Into::into));
    let mut expected = Vec::new();
    for block in values.chunks(512) {
        expected.extend(block.iter().scan(0, |sum, v| Some(std::mem::replace(sum, *sum + v))));
    }
    assert_eq!(lab.read::<i32>(out), expected);
    assert_eq!(lab.read::<i32>(totals), values.chunks(512).map(|c| c.iter().sum()).collect::<Vec<i32>>());
}

#[test]
fn blocks_sort_keys_with_their_values() {
    let keys: Vec<u32> = random(2 * 256, 1 << 31, 4).into_iter().map(|v| v as u32).collect();
    let values: Vec<i32> = (0..512).collect();
    let mut lab = lab();
    let (key_buffer, value_buffer) = (lab.buffer(&keys), lab.buffer(&values));
    lab.launch("block_sort", line(2, 64), &[key_buffer, value_buffer].map(Into::into));
    let mut expected: Vec<(u32, i32)> = keys.into_iter().zip(values).collect();
    expected.chunks_mut(256).for_each(|c| c.sort_by_key(|&(key, _)| key));
    let got: Vec<(u32, i32)> = lab.read::<u32>(key_buffer).into_iter().zip(lab.read::<i32>(value_buffer)).collect();
    assert_eq!(got, expected);
}

#[test]
fn histograms_agree_by_sorting_and_by_atomics() {
    let values: Vec<u8> = random(2 * 512, 64, 5).into_iter().map(|v| (v * v / 64) as u8).collect();
    let mut lab = lab();
    let (input, sorted, counted) = (lab.buffer(&values), lab.fresh(4 * 128), lab.fresh(4 * 128));
    lab.launch("block_histogram", line(2, 128), &[input, sorted, counted].map(Into::into));
    let mut expected = vec![0_u32; 128];
    for (k, block) in values.chunks(512).enumerate() {
        for &v in block {
            expected[64 * k + v as usize] += 1;
        }
    }
    assert_eq!(lab.read::<u32>(sorted), expected);
    assert_eq!(lab.read::<u32>(counted), expected);
}

#[test]
fn runs_become_stripes() {
    let values: Vec<i32> = (0..512).collect();
    let mut lab = lab();
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * 512));
    lab.launch("block_exchange", line(1, 128), &[input, out].map(Into::into));
    let expected: Vec<i32> = (0..512).map(|i| i / 4 + 128 * (i % 4)).collect();
    assert_eq!(lab.read::<i32>(out), expected);
}

#[test]
fn logical_warps_scan_and_reduce() {
    let values = ints(2 * 128, 1000, 6);
    let mut lab = lab();
    let (input, prefixes, totals) = (lab.buffer(&values), lab.fresh(4 * 256), lab.fresh(4 * 32));
    lab.launch("warp_scan", line(2, 128), &[input, prefixes, totals].map(Into::into));
    let expected: Vec<i32> = (0..256).map(|i| values[i / 8 * 8..=i].iter().sum()).collect();
    assert_eq!(lab.read::<i32>(prefixes), expected);
    assert_eq!(lab.read::<i32>(totals), values.chunks(8).map(|c| c.iter().sum()).collect::<Vec<i32>>());
}

#[test]
fn warps_sort_by_merging() {
    let values = ints(2 * 256, 100_000, 7);
    let mut lab = lab();
    let keys = lab.buffer(&values);
    lab.launch("warp_sort", line(2, 64), &[keys.into()]);
    let mut expected = values;
    expected.chunks_mut(128).for_each(<[i32]>::sort_unstable);
    assert_eq!(lab.read::<i32>(keys), expected);
}
