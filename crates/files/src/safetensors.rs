//! Finds tensors in safetensors files: a length, a JSON header, then the bytes of all tensors.
//!
//! Element type and length must match the buffer; nothing is converted. The header is enough to tell whether a tensor
//! fits, so a plan can reject it before anything runs.
//!
//! Source: the format description in the README of <https://github.com/huggingface/safetensors>.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use serde::Deserialize;

use crate::regular;
use runner_lang::diagnostics::nearest;
use runner_types::ElementType;

/// Maximum header length in bytes, the same as in the reference implementation.
const MAX_HEADER: u64 = 100_000_000;

/// Header entry that is not a tensor.
const METADATA: &str = "__metadata__";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Type in the format's notation, e.g. `F32`.
    dtype: String,
    pub shape: Vec<u64>,
    /// Offset of the tensor's bytes in the file.
    pub offset: u64,
    pub bytes: u64,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

impl Tensor {
    /// Finds a tensor in a file. Fails if the file cannot be read, is not in this format or lacks the tensor. The error
    /// names the file.
    pub fn find(path: &Path, name: &str) -> Result<Self, String> {
        let text = |problem: String| format!("{} {problem}", path.display());
        let mut file = regular::open(path).map_err(|error| text(format!("cannot be read: {error}")))?;
        let size = file.metadata().map_err(|error| text(format!("cannot be read: {error}")))?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|_| text("is not a safetensors file: it has no header".to_owned()))?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER || length > size.saturating_sub(8) {
            return Err(text(format!("is not a safetensors file: its header claims {length} bytes")));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(|error| text(format!("cannot be read: {error}")))?;
        let mut entries: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&header)
            .map_err(|error| text(format!("is not a safetensors file: its header cannot be parsed: {error}")))?;
        entries.remove(METADATA);
        let Some(entry) = entries.remove(name) else {
            let near = nearest(name, entries.keys().map(String::as_str));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(text(format!("has no tensor `{name}`{hint}")));
        };
        let Entry { dtype, shape, data_offsets: [from, to] } = serde_json::from_value(entry)
            .map_err(|error| text(format!("has a tensor `{name}` that cannot be parsed: {error}")))?;
        let begin = 8 + length;
        let is_inside = from <= to && begin.checked_add(to).is_some_and(|end| end <= size);
        let tensor = Self { dtype, shape, offset: begin.saturating_add(from), bytes: to.saturating_sub(from) };
        let holds = tensor.element().map(|element| tensor.len().saturating_mul(element.size() as u64));
        if !is_inside || holds.is_some_and(|bytes| bytes != tensor.bytes) {
            return Err(text(format!("has a tensor `{name}` whose size in bytes does not match its shape")));
        }
        Ok(tensor)
    }

    pub fn len(&self) -> u64 {
        self.shape.iter().copied().fold(1, u64::saturating_mul)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that the tensor fits a buffer of `element` with `len` elements, if given. The error says why not.
    pub fn check(&self, element: ElementType, len: Option<u64>) -> Result<(), String> {
        if self.element() != Some(element) {
            return Err(format!("holds {}, but the buffer is {element}: convert it", self.dtype));
        }
        match len.filter(|wanted| *wanted != self.len()) {
            Some(wanted) => Err(format!("holds {} elements (shape {:?}), expected {wanted}", self.len(), self.shape)),
            None => Ok(()),
        }
    }

    fn element(&self) -> Option<ElementType> {
        ElementType::ALL.iter().copied().find(|element| element.name().eq_ignore_ascii_case(&self.dtype))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::*;

    /// Builds a file with this header and `data` bytes of tensor data.
    fn file(header: &str, data: usize) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![7; data]].concat();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    const HEADER: &str = r#"{"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}}"#;

    #[test]
    fn a_tensor_has_its_type_its_shape_and_its_place() {
        let file = file(HEADER, 32);
        let tensor = Tensor::find(file.path(), "a.weight").unwrap();
        assert_eq!((tensor.shape.as_slice(), tensor.offset, tensor.bytes), (&[2, 3][..], 8 + HEADER.len() as u64, 24));
        assert_eq!(tensor.check(ElementType::F32, Some(6)), Ok(()));
        assert_eq!(
            tensor.check(ElementType::F32, Some(7)),
            Err("holds 6 elements (shape [2, 3]), expected 7".to_owned())
        );
        assert_eq!(
            tensor.check(ElementType::F16, None),
            Err("holds F32, but the buffer is f16: convert it".to_owned())
        );
        assert_eq!(Tensor::find(file.path(), "b").unwrap().len(), 1);
    }

    #[test]
    fn a_file_of_another_form_is_refused_with_the_reason() {
        let refusal = |header: &str, data: usize, name: &str| {
            let file = file(header, data);
            let message = Tensor::find(file.path(), name).unwrap_err();
            message.strip_prefix(&format!("{} ", file.path().display())).unwrap().to_owned()
        };
        assert_eq!(refusal(HEADER, 32, "a.weights"), "has no tensor `a.weights`; did you mean `a.weight`?");
        assert_eq!(refusal(HEADER, 31, "b"), "has a tensor `b` whose size in bytes does not match its shape");
        assert!(refusal("{", 0, "b").starts_with("is not a safetensors file: its header cannot be parsed"));
        let empty = tempfile::NamedTempFile::new().unwrap();
        assert!(Tensor::find(empty.path(), "b").unwrap_err().ends_with("it has no header"));
        std::fs::write(empty.path(), [0xff; 20]).unwrap();
        assert!(Tensor::find(empty.path(), "b").unwrap_err().contains("its header claims 18446744073709551615 bytes"));
    }
}
