//! Cooperative groups.

use super::lab::{Lab, Shape, ints, line};

const KERNELS: [&str; 6] = ["tile_scan", "warp_extremes", "labelled", "binary", "coalesced", "ring"];

fn lab() -> Lab {
    Lab::new("groups.cu", &KERNELS)
}

/// Applies `f` to the warp of each value and the index of the value in it.
fn by_warp<T>(values: &[i32], width: usize, f: impl Fn(&[i32], usize) -> T) -> Vec<T> {
    (0..values.len()).map(|i| f(&values[i / width * width..(i / width + 1) * width], i % width)).collect()
}

#[test]
fn tiles_scan_and_reduce_their_values() {
    let values = ints(4 * 64, 1000, 1);
    let mut lab = lab();
    let (input, sums, scans) = (lab.buffer(&values), lab.fresh(4 * 256), lab.fresh(4 * 256));
    lab.launch("tile_scan", line(4, 64), &[input.into(), sums.into(), scans.into()]);
    assert_eq!(lab.read::<i32>(sums), by_warp(&values, 16, |tile, _| tile.iter().sum::<i32>()));
    assert_eq!(lab.read::<i32>(scans), by_warp(&values, 16, |tile, k| tile[..k].iter().sum::<i32>()));
}

#[test]
fn warps_find_their_extremes() {
    let values: Vec<i32> = ints(3 * 96, 100_000, 2).into_iter().map(|v| v - 50_000).collect();
    let mut lab = lab();
    let input = lab.buffer(&values);
    let [most, least, running] = [(); 3].map(|()| lab.fresh(4 * 288));
    lab.launch("warp_extremes", line(3, 96), &[input, most, least, running].map(Into::into));
    assert_eq!(lab.read::<i32>(most), by_warp(&values, 32, |warp, _| *warp.iter().max().unwrap()));
    assert_eq!(lab.read::<i32>(least), by_warp(&values, 32, |warp, _| *warp.iter().min().unwrap()));
    assert_eq!(lab.read::<i32>(running), by_warp(&values, 32, |warp, k| *warp[..=k].iter().max().unwrap()));
}

#[test]
fn threads_with_one_label_form_a_group() {
    let (labels, values) = (ints(2 * 64, 5, 3), ints(2 * 64, 1000, 4));
    let mut lab = lab();
    let (label_buffer, input) = (lab.buffer(&labels), lab.buffer(&values));
    let [sizes, sums, ranks] = [(); 3].map(|()| lab.fresh(4 * 128));
    lab.launch("labelled", line(2, 64), &[label_buffer, input, sizes, sums, ranks].map(Into::into));
    let labels = &labels;
    let members =
        |i: usize| (i / 32 * 32..i / 32 * 32 + 32).filter(move |&j| labels[j] == labels[i]).collect::<Vec<_>>();
    for i in 0..128 {
        let group = members(i);
        assert_eq!(lab.read::<i32>(sizes)[i], group.len() as i32, "size at {i}");
        assert_eq!(lab.read::<i32>(sums)[i], group.iter().map(|&j| values[j]).sum::<i32>(), "sum at {i}");
        assert_eq!(lab.read::<i32>(ranks)[i], group.iter().filter(|&&j| j < i).count() as i32, "rank at {i}");
    }
}

#[test]
fn a_predicate_parts_a_warp_in_two() {
    let values = ints(2 * 64, 1000, 5);
    let mut lab = lab();
    let input = lab.buffer(&values);
    let [sums, firsts] = [(); 2].map(|()| lab.fresh(4 * 128));
    lab.launch("binary", line(2, 64), &[input, sums, firsts].map(Into::into));
    let side = |warp: &[i32], k: usize| -> Vec<i32> { warp.iter().copied().filter(|v| v % 2 == warp[k] % 2).collect() };
    assert_eq!(lab.read::<i32>(sums), by_warp(&values, 32, |warp, k| side(warp, k).iter().sum::<i32>()));
    assert_eq!(lab.read::<i32>(firsts), by_warp(&values, 32, |warp, k| side(warp, k)[0]));
}

#[test]
fn active_threads_draw_tickets_together() {
    let values = ints(4 * 64, 1000, 6);
    let mut lab = lab();
    let (input, counter, tickets) = (lab.buffer(&values), lab.buffer(&[0_i32]), lab.buffer(&[-1_i32; 256]));
    lab.launch("coalesced", line(4, 64), &[input, counter, tickets].map(Into::into));
    let wanted: Vec<bool> = values.iter().map(|v| v % 3 == 0).collect();
    let got = lab.read::<i32>(tickets);
    let mut drawn: Vec<i32> = got.iter().zip(&wanted).filter(|(_, w)| **w).map(|(t, _)| *t).collect();
    drawn.sort_unstable();
    assert_eq!(drawn, (0..drawn.len() as i32).collect::<Vec<_>>());
    assert_eq!(lab.read::<i32>(counter), [drawn.len() as i32]);
    assert!(got.iter().zip(&wanted).all(|(t, w)| (*t >= 0) == *w));
}

#[test]
fn the_grid_meets_after_every_step_of_a_ring() {
    let n = 1000_usize;
    let mut values = ints(n, 1000, 7);
    let mut lab = lab();
    let (a, b) = (lab.buffer(&values), lab.fresh(4 * n));
    let shape = Shape { cooperative: true, ..line(6, 96) };
    lab.launch("ring", shape, &[a.into(), b.into(), (n as i32).into()]);
    for _ in 0..10 {
        values = (0..n).map(|i| (values[(i + 1) % n] + values[(i + n - 1) % n]) % 1000).collect();
    }
    assert_eq!(lab.read::<i32>(a), values);
}
