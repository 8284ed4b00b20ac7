//! Shapes of arrays in row-major order, and selections of elements by index.

use std::fmt::Write as _;
use std::ops::Range;

use crate::failure::Failure;

/// Extents of a named buffer, or of every array with this number of elements.
pub struct Shape {
    buffer: Option<String>,
    extents: Vec<usize>,
    text: String,
}

impl Shape {
    /// Parses `4x8` or `out=4x8`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let (buffer, extents) = text.split_once('=').map_or((None, text), |(name, rest)| (Some(name.trim()), rest));
        let extent = |extent: &str| extent.trim().parse().ok().filter(|extent| *extent > 0);
        let extents: Option<Vec<usize>> = extents.split('x').map(extent).collect();
        let sound =
            extents.filter(|all| all.iter().try_fold(1_usize, |product, next| product.checked_mul(*next)).is_some());
        let wrong = || Failure::usage(format!("--shape {text} is not a shape: write 1024x512, or out=1024x512"));
        Ok(Self { buffer: buffer.map(str::to_owned), extents: sound.ok_or_else(wrong)?, text: text.to_owned() })
    }

    fn len(&self) -> usize {
        self.extents.iter().product()
    }

    /// Elements per row.
    pub fn row(&self) -> usize {
        self.extents.last().copied().unwrap_or(1)
    }

    /// Formats the extents as `4x8`.
    pub fn extents(&self) -> String {
        self.extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
    }

    /// Formats the indices of an element as `[3, 5]`.
    pub fn indices(&self, mut element: usize) -> String {
        let mut indices: Vec<String> = Vec::new();
        for extent in self.extents.iter().rev() {
            indices.push((element % extent).to_string());
            element /= extent;
        }
        indices.reverse();
        format!("[{}]", indices.join(", "))
    }
}

/// Formats the position of consecutive elements in a row as `[3, 0..8]`.
pub fn place(shape: Option<&Shape>, line: &Range<usize>) -> String {
    let mut place = shape.map_or_else(|| format!("[{}]", line.start), |shape| shape.indices(line.start));
    if line.len() > 1 {
        let last = shape.map_or(line.start, |shape| line.start % shape.row());
        place.pop();
        let _ = write!(place, "..{}]", last + line.len());
    }
    place
}

/// Shape of an array by name and length: its own, or the first unnamed one of that length.
pub fn find_shape<'a>(shapes: &'a [Shape], name: &str, len: usize) -> Option<&'a Shape> {
    let own = shapes.iter().find(|shape| shape.buffer.as_deref() == Some(name) && shape.len() == len);
    own.or_else(|| shapes.iter().find(|shape| shape.buffer.is_none() && shape.len() == len))
}

/// Checks that every shape fits one of these arrays, given by name and length. Sides of a check have no name.
pub fn check(shapes: &[Shape], arrays: &[(Option<String>, usize)]) -> Result<(), Failure> {
    for shape in shapes {
        let named = |(name, _): &&(Option<String>, usize)| shape.buffer.is_none() || *name == shape.buffer;
        let mut candidates = arrays.iter().filter(named).peekable();
        let Some((_, len)) = candidates.peek().copied() else {
            let name = shape.buffer.as_deref().unwrap_or_default();
            return Err(Failure::usage(format!("--shape {}: the case has no buffer `{name}`", shape.text)));
        };
        if candidates.all(|(_, len)| *len != shape.len()) {
            let (wanted, has) =
                (shape.len(), if shape.buffer.is_some() { format!(", but {len}") } else { String::new() });
            let what = shape
                .buffer
                .as_ref()
                .map_or_else(|| "no buffer has".to_owned(), |name| format!("`{name}` does not have"));
            return Err(Failure::usage(format!("--shape {}: {what} {wanted} elements{has}", shape.text)));
        }
    }
    Ok(())
}

/// Elements to show, selected by index.
pub struct Selection {
    pub buffer: String,
    indices: Vec<(Option<usize>, Option<usize>)>,
    text: String,
}

impl Selection {
    /// Parses a selection such as `out[3, 0..8]`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong =
            || Failure::usage(format!("--element {text} names no elements: write out[5], out[3, 5] or out[3, 0..8]"));
        let (buffer, rest) = text.split_once('[').ok_or_else(wrong)?;
        let inside = rest.trim_end().strip_suffix(']').ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
        let index = |part: &str| match part.split_once("..") {
            Some((from, to)) => Ok((end(from)?, end(to)?)),
            None => number(part).map(|index| (Some(index), index.checked_add(1))),
        };
        let indices = inside.split(',').map(index).collect::<Result<_, Failure>>()?;
        Ok(Self { buffer: buffer.trim().to_owned(), indices, text: text.to_owned() })
    }

    /// Selected elements of an array, as ranges of consecutive elements.
    pub fn lines(&self, len: usize, shape: Option<&Shape>) -> Result<Vec<Range<usize>>, Failure> {
        let flat = [len];
        let extents = shape.filter(|_| self.indices.len() > 1).map_or(&flat[..], |shape| &shape.extents);
        if self.indices.len() != extents.len() {
            let hint = if shape.is_none() { "; give its extents with --shape" } else { "" };
            let (given, has) = (self.indices.len(), extents.len());
            let message =
                format!("--element {}: {given} indices given, but `{}` has {has}{hint}", self.text, self.buffer);
            return Err(Failure::usage(message));
        }
        let mut starts = vec![0];
        let mut line = 1;
        for (place, ((from, to), extent)) in self.indices.iter().zip(extents).enumerate() {
            let (from, to) = (from.unwrap_or(0), to.unwrap_or(*extent));
            if from >= to || to > *extent {
                let message = format!("--element {}: {from}..{to} is not within 0..{extent}", self.text);
                return Err(Failure::usage(message));
            }
            if place + 1 == extents.len() {
                starts = starts.iter().map(|start| start * extent + from).collect();
                line = to - from;
            } else {
                starts = starts.iter().flat_map(|start| (from..to).map(move |index| start * extent + index)).collect();
            }
        }
        Ok(starts.into_iter().map(|start| start..start + line).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First element of each range, and the number of elements in a range.
    fn lines(text: &str, len: usize, shape: Option<&str>) -> Result<(Vec<usize>, usize), String> {
        let shape = shape.map(Shape::parse).transpose().map_err(|error| error.message)?;
        let found = Selection::parse(text).and_then(|found| found.lines(len, shape.as_ref()));
        let found = found.map_err(|error| error.message)?;
        Ok((found.iter().map(|line| line.start).collect(), found.first().map_or(0, ExactSizeIterator::len)))
    }

    #[test]
    fn elements_are_selected_by_row_and_column() {
        assert_eq!(lines("out[7]", 12, None), Ok((vec![7], 1)));
        assert_eq!(lines("out[7]", 12, Some("3x4")), Ok((vec![7], 1)));
        assert_eq!(lines("out[1, 3]", 12, Some("3x4")), Ok((vec![7], 1)));
        assert_eq!(lines("out[1.., 1..3]", 12, Some("3x4")), Ok((vec![5, 9], 2)));
        assert_eq!(lines("out[1, .., 2]", 24, Some("2x3x4")), Ok((vec![14, 18, 22], 1)));
    }

    #[test]
    fn indices_that_no_element_has_are_refused() {
        let refusal = |text, shape| lines(text, 12, shape).err();
        assert_eq!(refusal("out[1, 4]", Some("3x4")).as_deref(), Some("--element out[1, 4]: 4..5 is not within 0..4"));
        assert_eq!(
            refusal("out[1, 4]", None).as_deref(),
            Some("--element out[1, 4]: 2 indices given, but `out` has 1; give its extents with --shape")
        );
        assert_eq!(
            refusal("out[x]", None).as_deref(),
            Some("--element out[x] names no elements: write out[5], out[3, 5] or out[3, 0..8]")
        );
        assert_eq!(
            refusal("out[1]", Some("3x0")).as_deref(),
            Some("--shape 3x0 is not a shape: write 1024x512, or out=1024x512")
        );
    }

    #[test]
    fn the_indices_of_an_element_are_in_row_major_order() {
        assert_eq!(Shape::parse("3x4").ok().map(|shape| shape.indices(7)), Some("[1, 3]".to_owned()));
        assert_eq!(Shape::parse("x=2x3x4").ok().map(|shape| shape.indices(23)), Some("[1, 2, 3]".to_owned()));
    }
}
