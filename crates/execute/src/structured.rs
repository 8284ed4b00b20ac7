//! Random content with a structure: sorted keys, permutations, one-hot rows, Zipf-distributed ranks, sparse matrices.
//!
//! Every element depends only on its index, the length and the key, so content can be generated in any order on any
//! number of threads. Nothing is drawn from a stream: the bits come from a mixing function (`SplitMix64`, Steele et al.
//! 2014) applied to key and index.

use super::source::Source;
use runner_types::{Sparse, Structure};

/// Random bits for one index.
#[derive(Debug, Clone, Copy)]
struct Bits(u64);

impl Bits {
    fn new(key: u64, index: u64) -> Self {
        Self(mixed(key ^ mixed(index.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// Draws a number uniformly from [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }

    /// Draws a number uniformly from `0..span`; the bias is below 2^-32 for the spans of indices.
    fn below(&mut self, span: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(span.max(1))) >> 64) as u64
    }
}

const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[derive(Debug)]
pub struct Elements<'a> {
    structure: &'a Structure,
    key: u64,
    len: u64,
    zipf: Option<Zipf>,
}

impl<'a> Elements<'a> {
    /// Generator for a buffer of `len` elements with this seed. The key of a sparse matrix depends only on its seed, so
    /// that its two buffers agree.
    pub fn new(structure: &'a Structure, seed: u64, name: &str, len: u64) -> Self {
        let name = if matches!(structure, Structure::CsrRows(_) | Structure::CsrColumns(_)) { "" } else { name };
        let zipf = match structure {
            Structure::Zipf { values, exponent } => Some(Zipf::new(*values, *exponent)),
            _ => None,
        };
        Self { structure, key: Source::new(seed, name).words()[0], len, zipf }
    }

    /// Element as an integer. A `Sorted` element is instead given by [`Self::way`], as a fraction between its bounds.
    pub fn integer(&self, index: u64) -> u64 {
        match self.structure {
            Structure::Sorted { .. } => 0,
            Structure::Permutation => permuted(index, self.len, self.key),
            Structure::OneHot(classes) => {
                let classes = (*classes).max(1);
                u64::from(Bits::new(self.key, index / classes).below(classes) == index % classes)
            }
            Structure::Identity(columns) => u64::from(is_diagonal(index, *columns)),
            Structure::Dominant(columns) if is_diagonal(index, *columns) => *columns,
            // -1, 0 or 1.
            Structure::Dominant(_) => Bits::new(self.key, index).below(3).wrapping_sub(1),
            Structure::Zipf { .. } => self.zipf.as_ref().map_or(0, |zipf| zipf.rank(Bits::new(self.key, index))),
            Structure::CsrRows(matrix) => row_begin(matrix, self.key, index),
            Structure::CsrColumns(matrix) => column(matrix, self.key, index),
        }
    }

    /// Element as a float: off the diagonal of a dominant matrix it is in [-1, 1), otherwise an integer.
    pub fn float(&self, index: u64) -> f64 {
        match self.structure {
            Structure::Dominant(columns) if !is_diagonal(index, *columns) => {
                2.0 * Bits::new(self.key, index).unit() - 1.0
            }
            _ => self.integer(index) as f64,
        }
    }

    /// Position of a sorted element between the lower and the upper bound, in [0, 1).
    pub fn way(&self, index: u64) -> f64 {
        (index as f64 + Bits::new(self.key, index).unit()) / self.len.max(1) as f64
    }
}

/// Whether an element of a matrix is on its diagonal.
fn is_diagonal(index: u64, columns: u64) -> bool {
    index / columns.max(1) == index % columns.max(1)
}

/// Position of an index in a random order of `0..len`: a Feistel network on the next power of four, iterated until it
/// is within the length.
pub fn permuted(index: u64, len: u64, key: u64) -> u64 {
    let half = (64 - len.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1_u64 << half) - 1;
    let mut at = index;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (Bits::new(key ^ round, right).0 & mask));
        }
        at = left << half | right;
        if at < len {
            return at;
        }
    }
}

/// Start of a row: its even share of the nonzeros, shifted by at most half the mean row length, so that rows differ in
/// length and none has more nonzeros than columns.
fn row_begin(matrix: &Sparse, key: u64, row: u64) -> u64 {
    let Sparse { rows, columns, nonzeros } = *matrix;
    let even = |row: u64| (u128::from(row) * u128::from(nonzeros) / u128::from(rows.max(1))) as u64;
    if row == 0 || row >= rows {
        return if row == 0 { 0 } else { nonzeros };
    }
    let mean = nonzeros / rows;
    let slack = mean.min(columns.saturating_sub(mean + 1));
    // The shift is from -slack / 2 to slack / 2, so neighbouring row starts never cross, and rows never overflow.
    (even(row) + Bits::new(key, row).below(slack + 1)).saturating_sub(slack / 2).min(nonzeros)
}

/// Column of a nonzero: the row's columns are divided evenly among its nonzeros, and each is somewhere in its part.
fn column(matrix: &Sparse, key: u64, place: u64) -> u64 {
    let (mut low, mut high) = (0, matrix.rows);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if row_begin(matrix, key, middle) <= place { low = middle } else { high = middle }
    }
    let (begin, end) = (row_begin(matrix, key, low), row_begin(matrix, key, low + 1));
    let (part, parts) = (place - begin, (end - begin).max(1));
    let bound = |part: u64| (u128::from(part) * u128::from(matrix.columns) / u128::from(parts)) as u64;
    bound(part) + Bits::new(!key, place).below(bound(part + 1) - bound(part))
}

/// Draws ranks by rejection-inversion (Hörmann and Derflinger 1996).
#[derive(Debug)]
struct Zipf {
    values: f64,
    exponent: f64,
    first: f64,
    last: f64,
    s: f64,
}

impl Zipf {
    fn new(values: u64, exponent: f64) -> Self {
        let mut zipf = Self { values: values.max(1) as f64, exponent, first: 0.0, last: 0.0, s: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.values + 0.5);
        zipf.s = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// Draws a 0-based rank.
    fn rank(&self, mut bits: Bits) -> u64 {
        loop {
            let u = self.last + bits.unit() * (self.first - self.last);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.values);
            if k - x <= self.s || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// Integral of the density, which is a logarithm for the exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let y = (1.0 - self.exponent) * log;
        log * if y.abs() > 1e-8 { libm::expm1(y) / y } else { 1.0 + y / 2.0 }
    }

    fn inverse(&self, x: f64) -> f64 {
        let y = (x * (1.0 - self.exponent)).max(-1.0);
        libm::exp(x * if y.abs() > 1e-8 { libm::log1p(y) / y } else { 1.0 - y / 2.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::Value;

    fn all(structure: &Structure, len: u64) -> Vec<u64> {
        let elements = Elements::new(structure, 1, "b", len);
        (0..len).map(|index| elements.integer(index)).collect()
    }

    #[test]
    fn a_permutation_has_every_number_once_in_another_order() {
        for len in [1, 2, 5, 64, 1000] {
            let mut found = all(&Structure::Permutation, len);
            assert!(len < 5 || found.iter().enumerate().any(|(index, value)| index as u64 != *value));
            found.sort_unstable();
            assert_eq!(found, (0..len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_one_hot_row_has_a_single_one() {
        let found = all(&Structure::OneHot(7), 70);
        assert!(found.chunks(7).all(|row| row.iter().sum::<u64>() == 1));
        let places = |row: &[u64]| row.iter().position(|one| *one == 1);
        assert!(found.chunks(7).any(|row| places(row) != places(&found[..7])));
    }

    #[test]
    fn a_matrix_has_ones_on_its_diagonal_or_is_dominated_by_it() {
        assert_eq!(all(&Structure::Identity(3), 9), [1, 0, 0, 0, 1, 0, 0, 0, 1]);
        let structure = Structure::Dominant(20);
        let elements = Elements::new(&structure, 1, "b", 400);
        let floats: Vec<f64> = (0..400).map(|index| elements.float(index)).collect();
        let integers: Vec<f64> = (0..400).map(|index| elements.integer(index).cast_signed() as f64).collect();
        for matrix in [&floats, &integers] {
            for (row, elements) in matrix.chunks(20).enumerate() {
                let others: f64 = elements.iter().enumerate().filter(|(i, _)| *i != row).map(|(_, x)| x.abs()).sum();
                assert!(elements[row] > others, "{row}: {elements:?}");
                assert!(elements.iter().any(|x| *x < 0.0), "{elements:?}");
            }
        }
        assert!(floats.iter().any(|x| x.fract() != 0.0) && integers.iter().all(|x| x.fract() == 0.0));
    }

    #[test]
    fn sorted_elements_ascend_over_the_whole_range() {
        let structure = Structure::Sorted { low: Value::Float(0.0), high: Value::Float(1.0) };
        let elements = Elements::new(&structure, 1, "b", 100);
        let found: Vec<f64> = (0..100).map(|index| elements.way(index)).collect();
        assert!(found.is_sorted() && found[0] < 0.01 && (0.99..1.0).contains(&found[99]), "{found:?}");
    }

    #[test]
    fn ranks_follow_zipfs_law() {
        let len = 100_000;
        let found = all(&Structure::Zipf { values: 50, exponent: 1.0 }, len);
        assert!(found.iter().all(|rank| *rank < 50));
        let count = |rank| found.iter().filter(|found| **found == rank).count() as f64 / len as f64;
        // The 50th harmonic number is 4.499205.
        for rank in [0, 1, 9] {
            let expected = 1.0 / (rank as f64 + 1.0) / 4.499_205;
            assert!((count(rank) / expected - 1.0).abs() < 0.05, "{rank}: {} {expected}", count(rank));
        }
    }

    #[test]
    fn the_buffers_of_a_sparse_matrix_agree() {
        for matrix in [
            Sparse { rows: 20, columns: 30, nonzeros: 97 },
            Sparse { rows: 3, columns: 4, nonzeros: 12 },
            Sparse { rows: 5, columns: 9, nonzeros: 2 },
            Sparse { rows: 1, columns: 5, nonzeros: 4 },
        ] {
            let rows = all(&Structure::CsrRows(matrix), matrix.rows + 1);
            let columns = all(&Structure::CsrColumns(matrix), matrix.nonzeros);
            assert_eq!((rows[0], rows[rows.len() - 1]), (0, matrix.nonzeros));
            assert!(rows.is_sorted(), "{rows:?}");
            for row in rows.windows(2) {
                let row = &columns[row[0] as usize..row[1] as usize];
                assert!(row.windows(2).all(|pair| pair[0] < pair[1]), "{row:?}");
                assert!(row.iter().all(|column| *column < matrix.columns), "{row:?}");
            }
        }
    }
}
