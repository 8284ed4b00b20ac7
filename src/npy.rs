//! Reads `.npy` files as raw elements, for inputs and expected values.
//!
//! Element type and length must be those of the buffer. Nothing is converted: after a silent conversion the check would
//! not compare what the user stored. Only the byte order is changed. The header alone shows whether a file fits, so a
//! plan can refuse it before anything runs.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use npyz::{DType, Endianness, NpyFile, Order, TypeChar};

use crate::model::ElementType;

/// The header of a file.
#[derive(Debug, Clone)]
pub struct Header {
    dtype: DType,
    shape: Vec<u64>,
    order: Order,
}

impl Header {
    /// Reads the header of a file, without its data. Fails if it cannot be read or is no `.npy` header.
    pub fn read(path: &Path) -> io::Result<Self> {
        NpyFile::new(BufReader::new(File::open(path)?)).map(|npy| Self::of(&npy))
    }

    fn of<R: Read>(npy: &NpyFile<R>) -> Self {
        Self { dtype: npy.dtype(), shape: npy.shape().to_vec(), order: npy.order() }
    }

    /// The number of elements.
    pub fn len(&self) -> u64 {
        // A header can claim more elements than 64 bits count.
        self.shape.iter().copied().fold(1, u64::saturating_mul)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Why the file does not fit a buffer of `element` and, if given, of `len` elements.
    pub fn check(&self, element: ElementType, len: Option<u64>) -> Result<(), String> {
        if !self.holds(element) {
            let found = self.dtype.descr();
            return Err(format!("holds {found}, the buffer is {element}: convert it with numpy's astype"));
        }
        if self.order == Order::Fortran && self.shape.len() > 1 {
            let remedy = "save it with numpy.ascontiguousarray";
            return Err(format!("is in Fortran order, the buffers are row-major: {remedy}"));
        }
        match len.filter(|wanted| *wanted != self.len()) {
            Some(wanted) => Err(format!("holds {} elements (shape {:?}), {wanted} are needed", self.len(), self.shape)),
            None => Ok(()),
        }
    }

    /// Whether the file's elements have this type, in either byte order.
    ///
    /// `NumPy` has no bf16 of its own: `ml_dtypes` writes it as two raw bytes, `V2`.
    pub fn holds(&self, element: ElementType) -> bool {
        let kind = match element {
            ElementType::F16 | ElementType::F32 | ElementType::F64 => TypeChar::Float,
            ElementType::Bf16 => TypeChar::RawData,
            e if e.is_signed_integer() => TypeChar::Int,
            _ => TypeChar::Uint,
        };
        let DType::Plain(found) = &self.dtype else { return false };
        found.type_char() == kind && found.size_field() == element.size() as u64
    }

    fn is_big_endian(&self) -> bool {
        matches!(&self.dtype, DType::Plain(found) if found.endianness() == Endianness::Big)
    }
}

/// Reads an array of `element`, and of `len` elements if given, in the machine's byte order.
///
/// Errors name the file, what it contains and what is needed.
pub fn read(path: &Path, element: ElementType, len: Option<u64>) -> Result<Vec<u8>, String> {
    let at = |problem: String| format!("{}: {problem}", path.display());
    let file = File::open(path).map_err(|e| at(format!("cannot be opened: {e}")))?;
    let npy = NpyFile::new(BufReader::new(file)).map_err(|e| at(format!("is not an .npy file: {e}")))?;
    let header = Header::of(&npy);
    header.check(element, len).map_err(at)?;
    let mut bytes = read_exactly(npy.into_inner(), header.len(), element).map_err(at)?;
    if header.is_big_endian() {
        bytes.chunks_exact_mut(element.size()).for_each(<[u8]>::reverse);
    }
    Ok(bytes)
}

fn read_exactly(reader: impl Read, len: u64, element: ElementType) -> Result<Vec<u8>, String> {
    let wanted = len.checked_mul(element.size() as u64).ok_or_else(|| format!("{len} elements do not fit memory"))?;
    let mut bytes = Vec::new();
    reader.take(wanted).read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 == wanted {
        Ok(bytes)
    } else {
        Err(format!("is cut off: {} of {wanted} bytes of data are there", bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use std::io::Write;

    use super::{ElementType, read};

    /// A version 1.0 file as the format's description defines it, written without the crate that reads it.
    fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> tempfile::NamedTempFile {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\x93NUMPY\x01\x00").unwrap();
        file.write_all(&u16::try_from(header.len()).unwrap().to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.write_all(data).unwrap();
        file
    }

    #[test]
    fn a_matrix_in_row_major_order_is_read_as_it_lies() {
        let file = file("<i2", "False", "(2, 1)", &[1, 0, 2, 0]);
        assert_eq!(read(file.path(), ElementType::I16, Some(2)).unwrap(), [1, 0, 2, 0]);
    }

    #[test]
    fn big_endian_elements_are_turned() {
        let file = file(">u4", "False", "(1,)", &[1, 2, 3, 4]);
        assert_eq!(read(file.path(), ElementType::U32, None).unwrap(), [4, 3, 2, 1]);
    }

    #[test]
    fn bf16_is_two_raw_bytes() {
        let file = file("|V2", "False", "(1,)", &[0x80, 0x3f]);
        assert_eq!(read(file.path(), ElementType::Bf16, Some(1)).unwrap(), [0x80, 0x3f]);
    }

    #[test]
    fn another_type_is_refused_with_both_names() {
        let file = file("<f8", "False", "(1,)", &[0; 8]);
        let error = read(file.path(), ElementType::F32, Some(1)).unwrap_err();
        assert!(error.contains("<f8") && error.contains("f32"), "{error}");
    }

    #[test]
    fn another_length_is_refused_with_both_numbers() {
        let file = file("|u1", "False", "(3,)", &[0; 3]);
        let error = read(file.path(), ElementType::U8, Some(4)).unwrap_err();
        assert!(error.contains("holds 3 elements") && error.contains('4'), "{error}");
    }

    #[test]
    fn a_file_that_ends_early_is_refused() {
        let file = file("|u1", "False", "(3,)", &[0; 2]);
        let error = read(file.path(), ElementType::U8, Some(3)).unwrap_err();
        assert!(error.contains("2 of 3 bytes"), "{error}");
    }

    #[test]
    fn columns_first_is_refused_for_matrices_alone() {
        let matrix = file("|u1", "True", "(2, 2)", &[0; 4]);
        assert!(read(matrix.path(), ElementType::U8, None).unwrap_err().contains("Fortran"));
        let vector = file("|u1", "True", "(4,)", &[0; 4]);
        assert!(read(vector.path(), ElementType::U8, None).is_ok());
    }

    #[test]
    fn what_is_no_npy_file_is_refused_by_name() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"1,2,3").unwrap();
        let error = read(file.path(), ElementType::U8, None).unwrap_err();
        assert!(error.contains("is not an .npy file"), "{error}");
    }
}
