//! `.npy` files as raw elements: inputs and goldens.
//!
//! The element type and the number of elements must be the buffer's; nothing is converted, because a silent conversion
//! would make the check compare something else than the user stored. Only the byte order is turned.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use npyz::{DType, Endianness, NpyFile, Order, TypeChar};

use crate::model::ElementType;

/// Reads an array of `element`; `len` elements where given.
///
/// Errors name the file, what it holds and what was wanted.
pub fn read(path: &Path, element: ElementType, len: Option<u64>) -> Result<Vec<u8>, String> {
    let at = |problem: String| format!("{}: {problem}", path.display());
    let file = File::open(path).map_err(|e| at(format!("cannot be opened: {e}")))?;
    let npy = NpyFile::new(BufReader::new(file)).map_err(|e| at(format!("is not an .npy file: {e}")))?;
    let swap = check_type(&npy.dtype(), element).map_err(at)?;
    if npy.order() == Order::Fortran && npy.shape().len() > 1 {
        return Err(at("is in Fortran order, the buffers are row-major: save it with numpy.ascontiguousarray".into()));
    }
    let found = npy.len();
    if let Some(wanted) = len.filter(|wanted| *wanted != found) {
        return Err(at(format!("holds {found} elements (shape {:?}), {wanted} are needed", npy.shape())));
    }
    let mut bytes = read_exactly(npy.into_inner(), found, element).map_err(at)?;
    if swap {
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

/// Whether the bytes of each element must be reversed; an error where the type is another.
///
/// `NumPy` has no bf16 of its own: `ml_dtypes` writes it as two raw bytes, `V2`.
fn check_type(dtype: &DType, element: ElementType) -> Result<bool, String> {
    let kind = match element {
        ElementType::F16 | ElementType::F32 | ElementType::F64 => TypeChar::Float,
        ElementType::Bf16 => TypeChar::RawData,
        e if e.is_signed_integer() => TypeChar::Int,
        _ => TypeChar::Uint,
    };
    match dtype {
        DType::Plain(found) if found.type_char() == kind && found.size_field() == element.size() as u64 => {
            Ok(found.endianness() == Endianness::Big)
        }
        other => Err(format!("holds {}, the buffer is {element}: convert it with numpy's astype", other.descr())),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use std::io::Write;

    use super::{ElementType, read};

    /// A version 1.0 file by the letter of the format's description, written without the crate that reads it.
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
