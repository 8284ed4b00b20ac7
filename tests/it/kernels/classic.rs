//! Scans, histograms, transposes, sorts, sparse matrix products, stencils, a fractal, a queue.

use super::lab::{Lab, Shape, ints, line, random};

const KERNELS: [&str; 13] = [
    "scan_blelloch",
    "scan_add",
    "scan_look_back",
    "histogram",
    "transpose",
    "bitonic_sort",
    "spmv_scalar",
    "spmv_vector",
    "stencil_2d",
    "stencil_3d",
    "mandelbrot",
    "queue",
    "sum_of_eighty",
];

fn lab() -> Lab {
    Lab::new("classic.cu", &KERNELS)
}

fn exclusive(values: &[i32]) -> Vec<i32> {
    values.iter().scan(0, |sum, v| Some(std::mem::replace(sum, *sum + v))).collect()
}

#[test]
fn a_scan_of_many_blocks_is_scanned_block_by_block_and_added_up() {
    let n = 5000;
    let values = ints(n, 100, 1);
    let mut lab = lab();
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * n));
    let (totals, scanned, all) = (lab.fresh(4 * 20), lab.fresh(4 * 20), lab.fresh(4));
    let shape = Shape { shared: 4 * 256, ..line(20, 128) };
    lab.launch("scan_blelloch", shape, &[input.into(), out.into(), totals.into(), (n as i32).into()]);
    let one = Shape { shared: 4 * 32, ..line(1, 16) };
    lab.launch("scan_blelloch", one, &[totals.into(), scanned.into(), all.into(), 20.into()]);
    lab.launch("scan_add", line(20, 128), &[out.into(), scanned.into(), (n as i32).into()]);
    assert_eq!(lab.read::<i32>(out), exclusive(&values));
    assert_eq!(lab.read::<i32>(all), [values.iter().sum::<i32>()]);
}

#[test]
fn a_scan_in_one_pass_looks_back_at_the_blocks_before() {
    let n = 4000;
    let values = ints(n, 1000, 2);
    let mut lab = lab();
    let blocks = n.div_ceil(128);
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * n));
    let (state, ticket) = (lab.buffer(&vec![0_u64; blocks]), lab.buffer(&[0_u32]));
    let args = [input.into(), out.into(), state.into(), ticket.into(), (n as i32).into()];
    lab.launch("scan_look_back", line(blocks as u32, 128), &args);
    let inclusive: Vec<i32> = exclusive(&values).iter().zip(&values).map(|(before, v)| before + v).collect();
    assert_eq!(lab.read::<i32>(out), inclusive);
}

#[test]
fn private_histograms_add_up_to_the_whole_ones() {
    let n = 20_000;
    let values: Vec<u8> = random(n, 256, 3).into_iter().map(|v| (v * v / 256) as u8).collect();
    let mut lab = lab();
    let (data, bins) = (lab.buffer(&values), lab.buffer(&[0_u32; 256]));
    lab.launch("histogram", line(10, 128), &[data.into(), bins.into(), (n as i32).into()]);
    let mut expected = [0_u32; 256];
    for &v in &values {
        expected[v as usize] += 1;
    }
    assert_eq!(lab.read::<u32>(bins), expected);
}

#[test]
fn a_padded_tile_transposes_without_conflicts() {
    let (width, height) = (100, 70);
    let values: Vec<f32> = (0..width * height).map(|i| i as f32).collect();
    let mut lab = lab();
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * width * height));
    let shape = Shape { grid: [4, 3, 1], block: [32, 8, 1], shared: 0, cooperative: false };
    let args = [input.into(), out.into(), (width as i32).into(), (height as i32).into()];
    let report = lab.launch("transpose", shape, &args);
    let expected: Vec<f32> = (0..width * height).map(|i| values[i % height * width + i / height]).collect();
    assert_eq!(lab.read::<f32>(out), expected);
    assert_eq!(report.counters.shared_load.conflicts + report.counters.shared_store.conflicts, 0);
}

#[test]
fn each_block_sorts_its_keys() {
    let keys: Vec<u32> = random(4 * 512, 1 << 31, 4).into_iter().map(|v| v as u32).collect();
    let mut lab = lab();
    let data = lab.buffer(&keys);
    lab.launch("bitonic_sort", Shape { shared: 4 * 512, ..line(4, 256) }, &[data.into()]);
    let mut expected = keys;
    expected.chunks_mut(512).for_each(<[u32]>::sort_unstable);
    assert_eq!(lab.read::<u32>(data), expected);
}

#[test]
fn a_sparse_product_is_the_same_by_threads_and_by_warps() {
    let n = 300;
    let lengths = ints(n, 70, 5);
    let mut rows = exclusive(&lengths);
    rows.push(lengths.iter().sum());
    let entries = *rows.last().unwrap() as usize;
    // Sums of small integers are exact in any order.
    let columns = ints(entries, n as u64, 6);
    let values: Vec<f64> = ints(entries, 9, 7).into_iter().map(|v| f64::from(v - 4)).collect();
    let x: Vec<f64> = ints(n, 100, 8).into_iter().map(f64::from).collect();
    let expected: Vec<f64> = (0..n)
        .map(|row| {
            let entries = rows[row] as usize..rows[row + 1] as usize;
            entries.map(|k| values[k] * x[columns[k] as usize]).sum()
        })
        .collect();
    let mut lab = lab();
    let (row_buffer, column_buffer) = (lab.buffer(&rows), lab.buffer(&columns));
    let (value_buffer, x_buffer) = (lab.buffer(&values), lab.buffer(&x));
    for (kernel, threads) in [("spmv_scalar", n), ("spmv_vector", 32 * n)] {
        let y = lab.fresh(8 * n);
        let shape = line(threads.div_ceil(128) as u32, 128);
        let args = [row_buffer, column_buffer, value_buffer, x_buffer, y].map(Into::into);
        lab.launch(kernel, shape, &[&args[..], &[(n as i32).into()]].concat());
        assert_eq!(lab.read::<f64>(y), expected, "{kernel}");
    }
}

#[test]
fn a_stencil_reads_its_halo_and_the_copied_edges() {
    let (width, height) = (50_usize, 37_usize);
    let values: Vec<f32> = ints(width * height, 1000, 9).into_iter().map(|v| v as f32).collect();
    let mut lab = lab();
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * width * height));
    let shape = Shape { grid: [4, 3, 1], block: [16, 16, 1], shared: 0, cooperative: false };
    let args = [input.into(), out.into(), (width as i32).into(), (height as i32).into()];
    lab.launch("stencil_2d", shape, &args);
    let value = |x: usize, y: usize| values[y * width + x];
    for (i, got) in lab.read::<f32>(out).into_iter().enumerate() {
        let (x, y) = (i % width, i / width);
        let near = value(x.saturating_sub(1), y) + value((x + 1).min(width - 1), y);
        let sum = value(x, y) + near + value(x, y.saturating_sub(1)) + value(x, (y + 1).min(height - 1));
        // The sums are exact integers; the product is rounded once.
        assert_eq!(got.to_bits(), (0.2 * sum).to_bits(), "({x}, {y})");
    }
}

#[test]
fn a_cube_of_blocks_of_512_threads_sums_neighbours() {
    let n = 20_usize;
    let values = ints(n * n * n, 100, 10);
    let mut lab = lab();
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * n * n * n));
    let shape = Shape { grid: [3, 3, 3], block: [8, 8, 8], shared: 0, cooperative: false };
    lab.launch("stencil_3d", shape, &[input.into(), out.into(), (n as i32).into()]);
    let value = |x: i64, y: i64, z: i64| {
        let inside = [x, y, z].iter().all(|&c| (0..n as i64).contains(&c));
        if inside { values[((z * n as i64 + y) * n as i64 + x) as usize] } else { 0 }
    };
    let expected: Vec<i32> = (0..(n * n * n) as i64)
        .map(|i| {
            let (x, y, z) = (i % n as i64, i / n as i64 % n as i64, i / (n * n) as i64);
            let faces = [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)];
            value(x, y, z) + faces.iter().map(|(a, b, c)| value(x + a, y + b, z + c)).sum::<i32>()
        })
        .collect();
    assert_eq!(lab.read::<i32>(out), expected);
}

#[test]
fn points_leave_the_disc_after_as_many_steps_as_on_the_host() {
    let (width, height, limit) = (60, 40, 50);
    let mut lab = lab();
    let steps = lab.fresh(4 * width * height);
    let args = [steps.into(), (width as i32).into(), (height as i32).into(), limit.into()];
    let report = lab.launch("mandelbrot", line((width * height).div_ceil(64) as u32, 64), &args);
    let expected: Vec<i32> = (0..width * height)
        .map(|i| {
            let real = 3.0 * (i % width) as f64 / width as f64 - 2.0;
            let imaginary = 3.0 * (i / width) as f64 / height as f64 - 1.5;
            let (mut x, mut y, mut steps) = (0.0_f64, 0.0_f64, 0);
            while steps < limit && x * x + y * y <= 4.0 {
                (x, y) = (x * x - y * y + real, 2.0 * x * y + imaginary);
                steps += 1;
            }
            steps
        })
        .collect();
    assert_eq!(lab.read::<i32>(steps), expected);
    assert!(report.counters.divergent_branches > 0);
}

#[test]
fn every_number_that_is_put_into_the_queue_is_taken_once() {
    let (blocks, each) = (3, 4);
    let count = blocks as usize * 32 * each as usize;
    let mut lab = lab();
    // Room for 128 numbers at a time; each cell's turn counter starts at zero.
    let cells = lab.buffer(&[0_i32; 2 * 128]);
    let (head, tail, taken) = (lab.buffer(&[0_u32]), lab.buffer(&[0_u32]), lab.buffer(&vec![0_u32; count]));
    let args = [cells.into(), 127.into(), head.into(), tail.into(), taken.into(), each.into()];
    lab.launch("queue", line(blocks, 64), &args);
    assert_eq!(lab.read::<u32>(taken), vec![1; count]);
    assert_eq!((lab.read::<u32>(head), lab.read::<u32>(tail)), (vec![count as u32], vec![count as u32]));
}

#[test]
fn a_block_of_two_and_a_half_warps_sums_all_of_it() {
    let values = ints(7 * 80, 1000, 11);
    let mut lab = lab();
    let (input, out) = (lab.buffer(&values), lab.fresh(4 * 7));
    lab.launch("sum_of_eighty", line(7, 80), &[input.into(), out.into()]);
    let expected: Vec<i32> = values.chunks(80).map(|c| c.iter().sum()).collect();
    assert_eq!(lab.read::<i32>(out), expected);
}
