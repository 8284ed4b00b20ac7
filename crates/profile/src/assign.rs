//! Matches rows of the profiler's table with launches.
//!
//! The profiler names a kernel, its grid and its block, but not the case. A process announces its launches in order,
//! and the profiler lists its counts in the same order, but may have skipped some. So rows are matched from both ends,
//! and a row is assigned only if both directions agree. An ambiguous launch gets no row: a wrong count is worse than a
//! missing one.

use runner_types::MarkedLaunch;

/// Row index of each launch. Rows that match no launch are skipped.
pub fn assign(launches: &[MarkedLaunch], rows: &[MarkedLaunch]) -> Vec<Option<usize>> {
    let front = embed(&launches.iter().collect::<Vec<_>>(), &rows.iter().collect::<Vec<_>>());
    let mut back = embed(&launches.iter().rev().collect::<Vec<_>>(), &rows.iter().rev().collect::<Vec<_>>());
    back.reverse();
    let flipped = back.into_iter().map(|place| place.map(|row| rows.len() - 1 - row));
    front.into_iter().zip(flipped).map(|(front, back)| front.filter(|row| back == Some(*row))).collect()
}

/// Assigns each row to the first remaining launch that matches. A row without a match is skipped.
fn embed(launches: &[&MarkedLaunch], rows: &[&MarkedLaunch]) -> Vec<Option<usize>> {
    let mut places = vec![None; launches.len()];
    let mut next = 0;
    for (index, row) in rows.iter().enumerate() {
        if let Some(skipped) = launches[next..].iter().position(|launch| launch == row) {
            places[next + skipped] = Some(index);
            next += skipped + 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_types::Dim3;

    fn launches(names: &str) -> Vec<MarkedLaunch> {
        let one = |name: char| MarkedLaunch {
            kernel: name.to_string(),
            grid: Dim3::new(4, 1, 1),
            block: Dim3::new(32, 1, 1),
        };
        names.chars().map(one).collect()
    }

    fn places(made: &str, counted: &str) -> Vec<Option<usize>> {
        assign(&launches(made), &launches(counted))
    }

    #[test]
    fn rows_in_full_number_are_the_launches_in_order() {
        assert_eq!(places("aabca", "aabca"), [Some(0), Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(places("", ""), []);
    }

    #[test]
    fn a_launch_that_was_not_counted_has_no_row_and_shifts_no_other() {
        assert_eq!(places("abcd", "acd"), [Some(0), None, Some(1), Some(2)]);
        assert_eq!(places("abcd", ""), [None; 4]);
        assert_eq!(places("abcd", "d"), [None, None, None, Some(0)]);
    }

    #[test]
    fn a_row_that_could_be_either_of_two_launches_is_neithers() {
        assert_eq!(places("abba", "aba"), [Some(0), None, None, Some(2)]);
        assert_eq!(places("aa", "a"), [None, None]);
    }

    #[test]
    fn a_row_of_no_launch_is_passed_over() {
        assert_eq!(places("ab", "axb"), [Some(0), Some(2)]);
    }

    #[test]
    fn a_launch_of_another_shape_is_another_launch() {
        let made = launches("a");
        let mut counted = made.clone();
        counted[0].grid = Dim3::new(5, 1, 1);
        assert_eq!(assign(&made, &counted), [None]);
    }
}
