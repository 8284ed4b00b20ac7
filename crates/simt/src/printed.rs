//! Output of `printf`. Keeps the first [`MOST`] bytes of each launch, which is the default size of a GPU's buffer.

/// Number of bytes that are kept, rounded up to a whole character.
pub const MOST: usize = 1 << 20;

/// Appends `text` up to the limit. The kept bytes do not depend on how the text is split over calls.
pub fn append(to: &mut String, text: &str) {
    if let Some(left) = MOST.checked_sub(to.len()).filter(|left| *left > 0) {
        to.push_str(&text[..text.ceil_char_boundary(left)]);
    }
}

/// Whether the limit has been reached.
pub const fn is_full(text: &str) -> bool {
    text.len() >= MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_kept_in_whatever_parts_they_come() {
        let whole: String = "a€".repeat(MOST / 3);
        let mut at_once = String::new();
        append(&mut at_once, &whole);
        assert!(at_once.len() >= MOST && at_once.len() < MOST + 3 && whole.starts_with(&at_once));
        let mut in_parts = String::new();
        for part in whole.split_inclusive('€') {
            append(&mut in_parts, part);
        }
        assert!(in_parts == at_once);
        let (mut left, mut right) = (String::new(), String::new());
        let (one, other) = whole.split_at(MOST / 4 * 4);
        append(&mut left, one);
        append(&mut right, other);
        append(&mut left, &right);
        assert!(left == at_once);
    }
}
