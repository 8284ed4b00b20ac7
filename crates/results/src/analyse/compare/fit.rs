//! Adjusts the assumed variation between processes to the variation that a comparison shows.
//!
//! A calibration states an upper limit, from a few kernels. Rows measured by several processes show the variation
//! between processes, whether or not anything changed. Without such rows, rows of unchanged code show the variation
//! between the two compared processes.

use strum::VariantArray as _;

use super::evidence::{Evidence, Part};

/// Minimum rows of unchanged code for estimating the variation.
const LEAST_ROWS: usize = 40;
/// Minimum degrees of freedom for estimating it from the processes of a run: the sum, over rows and sides, of the
/// number of processes minus 1.
const LEAST_FREEDOM: u32 = 40;

/// Minimum scale. However little rows vary, this much of the stated variation remains.
const LEAST_SCALE: f64 = 0.25;
/// Maximum scale.
const LARGEST_SCALE: f64 = 4.0;

/// Deviation that contains 50 % of a normal distribution, in standard deviations.
const HALF_OF_NORMAL: f64 = 0.674_489_750_196_082;
/// Deviation that contains 90 % of a normal distribution, in standard deviations.
const NINE_TENTHS_OF_NORMAL: f64 = 1.644_853_626_951_473;

/// Scales the known variation of each part. Rows of unchanged code never raise it, since all of them may be slower for
/// a common reason.
pub(super) fn fit(all: &mut [&mut Evidence]) {
    for part in 0..Part::VARIANTS.len() {
        let is_of_part = |evidence: &Evidence| evidence.main_part().is_some_and(|(main, _)| main == part);
        let rows: Vec<&Evidence> = all.iter().map(|evidence| &**evidence).filter(|row| is_of_part(row)).collect();
        let Some(scale) = scale_of_processes(&rows).or_else(|| scale_of_controls(&rows)) else { continue };
        for evidence in all.iter_mut().filter(|evidence| is_of_part(evidence)) {
            evidence.scale(scale);
        }
    }
}

/// Factor between the observed and the stated variation of a run's processes. Computed from the median over the rows of
/// the ratio of the two variances, which is robust against a few rows that vary far more.
fn scale_of_processes(rows: &[&Evidence]) -> Option<f64> {
    let (mut ratios, mut freedom) = (Vec::new(), 0);
    for side in rows.iter().flat_map(|row| &row.sides) {
        let Some(processes) = side.processes.filter(|processes| processes.count > 1) else { continue };
        let stated = side.stated.iter().fold(0.0, |sum, part| sum + part.powi(2));
        let samples = side.within[0].max(side.within[1]).powi(2) * f64::from(processes.count);
        if samples < stated {
            let own = (processes.deviation.powi(2) - samples).max(0.0);
            ratios.push(own / stated / median_of_variance(f64::from(processes.count - 1)));
            freedom += processes.count - 1;
        }
    }
    if freedom < LEAST_FREEDOM || !ratios.iter().all(|ratio: &f64| ratio.is_finite()) {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2].sqrt();
    Some((median * (1.0 + uncertainty(freedom as usize))).clamp(LEAST_SCALE, LARGEST_SCALE))
}

/// Median of the sample variance of `freedom` + 1 normally distributed values with variance 1 (Wilson and Hilferty,
/// 1931).
fn median_of_variance(freedom: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * freedom)).powi(3)
}

/// Factor by which rows of unchanged code vary less than expected. It is the larger of the estimates from their median
/// and from their 90th percentile, plus its uncertainty.
fn scale_of_controls(rows: &[&Evidence]) -> Option<f64> {
    let is_by_processes = |row: &Evidence| {
        let within = row.sides.iter().map(|side| side.within[0].max(side.within[1])).fold(0.0, f64::hypot);
        row.main_part().is_some_and(|(_, stated)| within < stated)
    };
    let is_known = |row: &Evidence| row.sides.iter().all(|side| side.processes.is_none());
    let controls = rows.iter().filter(|row| row.is_control && is_known(row) && is_by_processes(row));
    let mut deviations: Vec<f64> = controls.map(|row| row.deviation()).collect();
    if deviations.len() < LEAST_ROWS || !deviations.iter().all(|deviation| deviation.is_finite()) {
        return None;
    }
    deviations.sort_by(f64::total_cmp);
    let quantile = |share: f64| deviations[(share * (deviations.len() - 1) as f64).ceil() as usize];
    let found = (quantile(0.5) / HALF_OF_NORMAL).max(quantile(0.9) / NINE_TENTHS_OF_NORMAL);
    Some((found * (1.0 + uncertainty(deviations.len()))).clamp(LEAST_SCALE, 1.0))
}

/// How far a standard deviation estimated from this many values may be below the true one, as a fraction of it.
fn uncertainty(values: usize) -> f64 {
    NINE_TENTHS_OF_NORMAL / (2.0 * values as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::median_of_variance;

    /// Tabulated medians of χ²: 0.455 for one degree of freedom, 3.357 for four, 9.342 for ten.
    #[test]
    fn half_of_all_variances_are_below_the_median_of_the_tables() {
        for (freedom, median) in [(1.0, 0.4549), (4.0, 3.3567), (10.0, 9.3418)] {
            let found = median_of_variance(freedom) * freedom;
            assert!((found / median - 1.0).abs() < 0.04, "{freedom}: {found} for {median}");
        }
    }
}
