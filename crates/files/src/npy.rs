//! Reads `.npy` files as raw elements, for inputs and expected values.
//!
//! Element type and length must match the buffer. Only the byte order is converted: after any other silent conversion,
//! the check would not compare what the user stored. The header is enough to tell whether a file fits, so a plan can
//! reject it before anything runs.

use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::regular;
use runner_types::ElementType;

/// First bytes of every file, followed by the major and minor version.
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Maximum accepted header length in bytes. Headers are usually padded to about 128.
const MAX_HEADER: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub struct Header {
    /// Byte order, kind and size in `NumPy`'s notation, e.g. `<f4`.
    descr: String,
    shape: Vec<u64>,
    fortran_order: bool,
}

impl Header {
    /// Reads only the header of a file. Fails if the file cannot be read or has no `.npy` header.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::from_start(&mut BufReader::new(regular::open(path)?))
    }

    /// Reads a header and leaves the reader at the first data byte.
    ///
    /// Source: `NumPy` Enhancement Proposal 1 and `numpy.lib.format`, versions 1.0 to 3.0.
    pub fn from_start(reader: &mut impl Read) -> io::Result<Self> {
        let mut start = [0; 8];
        reader.read_exact(&mut start)?;
        let [magic @ .., major, _minor] = &start;
        if magic != MAGIC {
            return Err(invalid("its magic bytes are wrong"));
        }
        let length = match major {
            1 => u64::from(u16::from_le_bytes(read_array(reader)?)),
            2 | 3 => u64::from(u32::from_le_bytes(read_array(reader)?)),
            other => return Err(invalid(format!("its format version is {other}; 1 to 3 are supported"))),
        };
        if length > MAX_HEADER {
            return Err(invalid(format!("its header claims {length} bytes")));
        }
        let mut text = String::new();
        if reader.take(length).read_to_string(&mut text)? as u64 != length {
            return Err(invalid("its header is cut off"));
        }
        Self::parse(&text).ok_or_else(|| invalid(format!("its header cannot be parsed: {}", text.trim_end())))
    }

    /// Parses the Python dictionary in the header. `None` unless it has exactly the three keys.
    fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let (mut descr, mut order, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            rest = match key {
                // A structured type is a list of fields, which no buffer supports.
                "descr" if value.starts_with('[') => {
                    let (fields, after) = value.rsplit_once(']')?;
                    descr = Some(format!("{fields}]"));
                    let (tail, kept) = after.split_once(',').unwrap_or((after, ""));
                    if tail.trim().is_empty() { kept } else { return None }
                }
                "descr" => {
                    let (found, after) = quoted(value)?;
                    descr = Some(found.to_owned());
                    after
                }
                "fortran_order" => {
                    let (found, after) = value.split_at(value.find([',', ' ']).unwrap_or(value.len()));
                    order = Some(match found {
                        "True" => true,
                        "False" => false,
                        _ => return None,
                    });
                    after
                }
                "shape" => {
                    let (extents, after) = value.strip_prefix('(')?.split_once(')')?;
                    let extents = extents.split(',').map(str::trim).filter(|extent| !extent.is_empty());
                    shape =
                        Some(extents.map(|extent| extent.trim_end_matches('L').parse().ok()).collect::<Option<_>>()?);
                    after
                }
                _ => return None,
            };
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        Some(Self { descr: descr?, shape: shape?, fortran_order: order? })
    }

    pub fn len(&self) -> u64 {
        // A header can claim more elements than fit in 64 bits.
        self.shape.iter().copied().fold(1, u64::saturating_mul)
    }

    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that the file fits a buffer of `element` with `len` elements, if given. The error says why not.
    pub fn check(&self, element: ElementType, len: Option<u64>) -> Result<(), String> {
        if !self.holds(element) {
            // A plain type is quoted, as in the file; a structured one is a list.
            let found = if self.descr.starts_with('[') { self.descr.clone() } else { format!("'{}'", self.descr) };
            return Err(format!("holds {found}, but the buffer is {element}: convert it with numpy's astype"));
        }
        if self.fortran_order && self.shape.len() > 1 {
            let remedy = "save it with numpy.ascontiguousarray";
            return Err(format!("is in Fortran order, but buffers are row-major: {remedy}"));
        }
        match len.filter(|wanted| *wanted != self.len()) {
            Some(wanted) => Err(format!("holds {} elements (shape {:?}), expected {wanted}", self.len(), self.shape)),
            None => Ok(()),
        }
    }

    /// Whether the elements have this type, in either byte order.
    ///
    /// `NumPy` has no native bf16: `ml_dtypes` writes it as two raw bytes, `V2`.
    pub fn holds(&self, element: ElementType) -> bool {
        let kind = match element {
            ElementType::F16 | ElementType::F32 | ElementType::F64 => 'f',
            ElementType::Bf16 => 'V',
            e if e.is_signed_integer() => 'i',
            _ => 'u',
        };
        self.descr.trim_start_matches(['<', '>', '|', '=']) == format!("{kind}{}", element.size())
    }

    fn is_big_endian(&self) -> bool {
        self.descr.starts_with('>')
    }
}

/// Splits quoted text at the start from the text after it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

fn read_array<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// Builds a one-dimensional little-endian file. bf16 elements have the type `V2`, as written by `ml_dtypes`.
pub fn file(element: ElementType, bytes: &[u8]) -> Vec<u8> {
    let kind = match element {
        ElementType::F16 | ElementType::F32 | ElementType::F64 => 'f',
        ElementType::Bf16 => 'V',
        e if e.is_signed_integer() => 'i',
        _ => 'u',
    };
    let order = if element.size() == 1 || element == ElementType::Bf16 { '|' } else { '<' };
    let len = bytes.len() / element.size();
    let header = format!("{{'descr': '{order}{kind}{}', 'fortran_order': False, 'shape': ({len},), }}", element.size());
    // Magic, version and header length take 10 bytes; the data begins at a multiple of 64.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut file = [MAGIC.as_slice(), &[1, 0], &(padded as u16).to_le_bytes(), header.as_bytes()].concat();
    file.resize(10 + padded - 1, b' ');
    file.push(b'\n');
    file.extend_from_slice(bytes);
    file
}

/// Reads an array of `element`, with `len` elements if given, in the machine's byte order.
///
/// Errors name the file, what it contains and what was expected.
pub fn read(path: &Path, element: ElementType, len: Option<u64>) -> Result<Vec<u8>, String> {
    let describe = |problem: String| format!("{}: {problem}", path.display());
    let file = regular::open(path).map_err(|e| describe(format!("cannot be opened: {e}")))?;
    parse(BufReader::new(file), element, len).map_err(describe)
}

/// Like [`read`], but errors do not name the file.
pub fn parse(mut reader: impl Read, element: ElementType, len: Option<u64>) -> Result<Vec<u8>, String> {
    let header = Header::from_start(&mut reader).map_err(|e| format!("is not an .npy file: {e}"))?;
    header.check(element, len)?;
    let mut bytes = read_exactly(reader, header.len(), element)?;
    if header.is_big_endian() {
        bytes.chunks_exact_mut(element.size()).for_each(<[u8]>::reverse);
    }
    Ok(bytes)
}

fn read_exactly(reader: impl Read, len: u64, element: ElementType) -> Result<Vec<u8>, String> {
    let wanted =
        len.checked_mul(element.size() as u64).ok_or_else(|| format!("{len} elements do not fit in memory"))?;
    let mut bytes = Vec::new();
    reader.take(wanted).read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 == wanted {
        Ok(bytes)
    } else {
        Err(format!("is cut off: it has {} of {wanted} bytes of data", bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test panics to fail")]

    use std::io::Write;

    use super::{ElementType, Header, read};

    /// A version 1.0 file, built byte by byte according to the format description.
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

    /// Headers written by `numpy.save` of `NumPy` 1 and 2, plus valid but unusual shapes.
    #[test]
    fn headers_as_numpy_writes_them_are_read() {
        let parsed = |text: &str| Header::parse(text).map(|h| (h.descr, h.shape, h.fortran_order));
        let plain = |descr: &str, shape: &[u64], order| Some((descr.to_owned(), shape.to_vec(), order));
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n";
        assert_eq!(parsed(text), plain("<f4", &[3, 4], false));
        assert_eq!(parsed("{'shape': (), 'fortran_order': True, 'descr': \"|u1\"}"), plain("|u1", &[], true));
        assert_eq!(parsed("{'descr':'>i8','fortran_order':False,'shape':(5L,)}"), plain(">i8", &[5], false));
        let fields = "{'descr': [('a', '<f4'), ('b', '<i4', (2,))], 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(parsed(fields), plain("[('a', '<f4'), ('b', '<i4', (2,))]", &[2], false));
    }

    #[test]
    fn a_header_with_something_missing_or_unknown_is_refused() {
        for text in [
            "",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'extra': 1}",
            "{'descr': '<f4, 'fortran_order': False, 'shape': (3,)",
        ] {
            assert!(Header::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_header_of_version_2_has_a_longer_length() {
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\x93NUMPY\x02\x00").unwrap();
        file.write_all(&u32::try_from(header.len()).unwrap().to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.write_all(&[7, 9]).unwrap();
        assert_eq!(read(file.path(), ElementType::U8, Some(2)).unwrap(), [7, 9]);
    }

    #[test]
    fn a_header_that_claims_too_much_is_refused_before_it_is_read() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\x93NUMPY\x03\x00\xff\xff\xff\xff{").unwrap();
        let error = read(file.path(), ElementType::U8, None).unwrap_err();
        assert!(error.contains("4294967295 bytes"), "{error}");
    }

    #[test]
    fn what_is_no_npy_file_is_refused_by_name() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"1,2,3").unwrap();
        let error = read(file.path(), ElementType::U8, None).unwrap_err();
        assert!(error.contains("is not an .npy file"), "{error}");
    }
}
