//! Aligns two sequences by a longest common subsequence.

/// Maximum product of the lengths to align; the time and memory grow with it. Longer sequences count as having nothing
/// in common.
const MOST: usize = 4_000_000;

/// Positions of the common elements of a base and a new sequence, in order.
pub(super) fn common<T>(base: &[T], new: &[T], is_same: impl Fn(&T, &T) -> bool) -> Vec<[usize; 2]> {
    let start = base.iter().zip(new).take_while(|(b, n)| is_same(b, n)).count();
    let (rest_of_base, rest_of_new) = (&base[start..], &new[start..]);
    let end = rest_of_base.iter().rev().zip(rest_of_new.iter().rev()).take_while(|(b, n)| is_same(b, n)).count();
    let middle = [&rest_of_base[..rest_of_base.len() - end], &rest_of_new[..rest_of_new.len() - end]];
    let head = (0..start).map(|at| [at, at]);
    let between = between(middle, is_same).into_iter().map(|[b, n]| [start + b, start + n]);
    let tail = (0..end).map(|at| [base.len() - end + at, new.len() - end + at]);
    head.chain(between).chain(tail).collect()
}

fn between<T>([base, new]: [&[T]; 2], is_same: impl Fn(&T, &T) -> bool) -> Vec<[usize; 2]> {
    if base.len().saturating_mul(new.len()) > MOST {
        return Vec::new();
    }
    // Length of the longest common subsequence of the rest, for each pair of positions.
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (base.len() + 1) * width];
    for b in (0..base.len()).rev() {
        for n in (0..new.len()).rev() {
            lengths[b * width + n] = if is_same(&base[b], &new[n]) {
                lengths[(b + 1) * width + n + 1] + 1
            } else {
                lengths[(b + 1) * width + n].max(lengths[b * width + n + 1])
            };
        }
    }
    let (mut places, mut b, mut n) = (Vec::new(), 0, 0);
    while b < base.len() && n < new.len() {
        if is_same(&base[b], &new[n]) {
            places.push([b, n]);
            (b, n) = (b + 1, n + 1);
        } else if lengths[(b + 1) * width + n] >= lengths[b * width + n + 1] {
            b += 1;
        } else {
            n += 1;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_common_part_is_found_and_a_moved_element_only_once() {
        let places = |base: &str, new: &str| {
            let [base, new] = [base, new].map(|text| text.chars().collect::<Vec<_>>());
            common(&base, &new, |b, n| b == n).into_iter().map(|[b, n]| (b, n)).collect::<Vec<_>>()
        };
        assert_eq!(places("abcd", "abxcd"), [(0, 0), (1, 1), (2, 3), (3, 4)]);
        assert_eq!(places("abcbd", "acbbd"), [(0, 0), (2, 1), (3, 3), (4, 4)]);
        assert_eq!(places("ab", "ba"), [(1, 0)]);
        assert_eq!(places("", "a"), []);
        assert_eq!(places("aaa", "aa"), [(0, 0), (1, 1)]);
    }
}
