//! printf on the device: formats packed arguments according to C format strings.

use std::fmt::Write as _;

/// Maximum width and precision; larger values are clamped.
const MOST: i64 = 1 << 12;

/// A conversion specification, which starts with `%`.
#[expect(clippy::struct_excessive_bools, reason = "C has these five flags")]
#[derive(Debug, Clone, Copy, Default)]
struct Conversion {
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    /// Size of an integer argument in bytes.
    bytes: u64,
    /// Number of bits of the argument that `h` or `hh` keeps.
    kept: u32,
    lane_write: u8,
}

/// Returns the number of conversions that take an argument, which is `printf`'s return value.
pub fn conversions(pattern: &str) -> u32 {
    let mut count = 0;
    format(
        pattern,
        &mut |_| {
            count += 1;
            0
        },
        &|_| String::new(),
    );
    count
}

/// Formats `pattern`. `next` returns the next argument, of the given size in bytes; `text` returns the string at an
/// address.
pub fn format(pattern: &str, next: &mut dyn FnMut(u64) -> u64, text: &dyn Fn(u64) -> String) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let spec = &rest[at + 1..];
        if let Some(after) = spec.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (conversion, used) = parse(spec, next);
        rest = &spec[used..];
        convert(&mut out, conversion, next, text);
    }
    out.push_str(rest);
    out
}

fn parse(spec: &str, next: &mut dyn FnMut(u64) -> u64) -> (Conversion, usize) {
    let bytes = spec.as_bytes();
    let mut c = Conversion { bytes: 4, kept: 32, ..Conversion::default() };
    let mut at = 0;
    while let Some(flag) = bytes.get(at) {
        match flag {
            b'-' => c.minus = true,
            b'+' => c.plus = true,
            b' ' => c.space = true,
            b'0' => c.zero = true,
            b'#' => c.alternate = true,
            _ => break,
        }
        at += 1;
    }
    let number = |at: &mut usize, next: &mut dyn FnMut(u64) -> u64| {
        if bytes.get(*at) == Some(&b'*') {
            *at += 1;
            return i64::from(next(4) as u32 as i32).clamp(-MOST, MOST);
        }
        let mut value = 0_i64;
        while let Some(digit) = bytes.get(*at).filter(|b| b.is_ascii_digit()) {
            value = (value * 10 + i64::from(digit - b'0')).min(MOST);
            *at += 1;
        }
        value
    };
    // A negative `*` width means left alignment; a negative precision counts as none.
    let width = number(&mut at, next);
    (c.width, c.minus) = (width.unsigned_abs() as usize, c.minus || width < 0);
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        c.precision = usize::try_from(number(&mut at, next)).ok();
    }
    while let Some(length) = bytes.get(at) {
        match length {
            b'l' | b'z' | b'j' | b't' | b'L' => c.bytes = 8,
            b'h' => c.kept /= 2,
            _ => break,
        }
        at += 1;
    }
    c.lane_write = bytes.get(at).copied().unwrap_or(b'%');
    let whole = spec[at.min(spec.len())..].chars().next().map_or(0, char::len_utf8);
    (c, (at + whole).min(spec.len()))
}

fn convert(out: &mut String, c: Conversion, next: &mut dyn FnMut(u64) -> u64, text: &dyn Fn(u64) -> String) {
    let (sign, mut body) = match c.lane_write {
        b'd' | b'i' => {
            let raw = next(c.bytes);
            let above = if c.bytes == 8 { 0 } else { 64 - c.kept };
            let value = (raw as i64) << above >> above;
            (sign_of(value < 0, c), value.unsigned_abs().to_string())
        }
        b'u' | b'x' | b'X' | b'o' => unsigned(c, next(c.bytes)),
        b'p' => ("0x", format!("{:x}", next(8))),
        b'c' => ("", char::from(next(4) as u8).to_string()),
        b's' => {
            let mut string = text(next(8));
            if let Some(precision) = c.precision {
                string = string.chars().take(precision).collect();
            }
            ("", string)
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
            let value = f64::from_bits(next(8));
            (sign_of(value.is_sign_negative() && !value.is_nan(), c), float(value.abs(), c))
        }
        b'%' => ("", "%".to_owned()),
        other => ("%", char::from(other).to_string()),
    };
    if is_integer(c)
        && let Some(precision) = c.precision
    {
        while body.len() < precision {
            body.insert(0, '0');
        }
    }
    let length = sign.len() + body.chars().count();
    let pad = c.width.saturating_sub(length);
    let number =
        !matches!(c.lane_write, b's' | b'c') && !body.eq_ignore_ascii_case("inf") && !body.eq_ignore_ascii_case("nan");
    let zeros = c.zero && !c.minus && number && !(c.precision.is_some() && is_integer(c));
    if !c.minus && !zeros {
        out.extend(std::iter::repeat_n(' ', pad));
    }
    out.push_str(sign);
    if zeros {
        out.extend(std::iter::repeat_n('0', pad));
    }
    out.push_str(&body);
    if c.minus {
        out.extend(std::iter::repeat_n(' ', pad));
    }
}

const fn is_integer(c: Conversion) -> bool {
    matches!(c.lane_write, b'd' | b'i' | b'u' | b'x' | b'X' | b'o')
}

/// Returns the prefix that `#` adds, and the digits.
fn unsigned(c: Conversion, raw: u64) -> (&'static str, String) {
    let value = if c.bytes == 8 { raw } else { raw & (u64::MAX >> (64 - c.kept)) };
    let prefix = |text: &'static str| if c.alternate && value != 0 { text } else { "" };
    match c.lane_write {
        b'x' => (prefix("0x"), format!("{value:x}")),
        b'X' => (prefix("0X"), format!("{value:X}")),
        b'o' => (prefix("0"), format!("{value:o}")),
        _ => ("", value.to_string()),
    }
}

const fn sign_of(negative: bool, c: Conversion) -> &'static str {
    match (negative, c.plus, c.space) {
        (true, _, _) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn float(value: f64, c: Conversion) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return if c.lane_write.is_ascii_uppercase() { name.to_uppercase() } else { name.to_owned() };
    }
    let precision = c.precision.unwrap_or(6);
    let upper = c.lane_write.is_ascii_uppercase();
    match c.lane_write.to_ascii_lowercase() {
        b'f' => format!("{value:.precision$}"),
        b'e' => exponent(value, precision, upper),
        _ => {
            let digits = precision.max(1);
            let scientific = exponent(value, digits - 1, upper);
            let power: i32 = scientific.rsplit(['e', 'E']).next().and_then(|p| p.parse().ok()).unwrap_or(0);
            let shown = if power < -4 || power >= digits as i32 {
                scientific
            } else {
                format!("{value:.*}", (digits as i32 - 1 - power).max(0) as usize)
            };
            if c.alternate { shown } else { trim(&shown) }
        }
    }
}

/// Formats a value like `1.500000e+00`, with at least two digits in the exponent.
fn exponent(value: f64, precision: usize, upper: bool) -> String {
    let rust = format!("{value:.precision$e}");
    let (mantissa, power) = rust.split_once('e').unwrap_or((&rust, "0"));
    let (sign, power) = power.strip_prefix('-').map_or(('+', power), |p| ('-', p));
    let mut out = mantissa.to_owned();
    let e = if upper { 'E' } else { 'e' };
    // Writing to a string cannot fail.
    let _ = write!(out, "{e}{sign}{power:0>2}");
    out
}

/// Removes trailing zeros of the fraction, before the exponent if there is one.
fn trim(shown: &str) -> String {
    let (mantissa, power) = shown.find(['e', 'E']).map_or((shown, ""), |at| shown.split_at(at));
    if !mantissa.contains('.') {
        return shown.to_owned();
    }
    format!("{}{power}", mantissa.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(pattern: &str, args: &[u64]) -> String {
        let mut args = args.iter().copied();
        format(pattern, &mut |_| args.next().unwrap_or(0), &|address| format!("text{address}"))
    }

    #[test]
    fn conversions_print_what_c_prints() {
        assert_eq!(show("%5d|%-5d|%05d|%+d", &[42, 42, 42, 42]), "   42|42   |00042|+42");
        assert_eq!(show("%x %X %#x %o %u", &[255, 255, 255, 8, 7]), "ff FF 0xff 10 7");
        assert_eq!(show("%d %lld", &[u64::from(u32::MAX), u64::MAX]), "-1 -1");
        assert_eq!(show("%s %.3s %c %%", &[1, 2, 65]), "text1 tex A %");
        let (x, y) = (1.5_f64.to_bits(), 1e-7_f64.to_bits());
        assert_eq!(show("%f %.2f %e %g %g", &[x, x, x, x, y]), "1.500000 1.50 1.500000e+00 1.5 1e-07");
        assert_eq!(show("%hd %hhd %hu %hhu %hhx", &[70_000, 200, 70_000, 456, 511]), "4464 -56 4464 200 ff");
        let minus_six = u64::from((-6_i32) as u32);
        assert_eq!(
            show("[%*d|%*d|%.*f|%.*f]", &[6, 12, minus_six, 12, 2, x, minus_six, x]),
            "[    12|12    |1.50|1.500000]"
        );
        assert_eq!(show("[%08.3d|%#x|%#o|%08x]", &[7, 0, 8, 255]), "[     007|0|010|000000ff]");
        let (infinity, none) = (f64::INFINITY.to_bits(), f64::NAN.to_bits());
        assert_eq!(show("[%05f|%F|%G|%-5e]", &[infinity, infinity, none, none]), "[  inf|INF|NAN|nan  ]");
        assert_eq!(show("%8.3f|%-8.1f|%g", &[x, x, 1e6_f64.to_bits()]), "   1.500|1.5     |1e+06");
    }

    #[test]
    fn a_broken_pattern_is_printed_as_it_is() {
        assert_eq!(show("100%", &[]), "100%");
        assert_eq!(conversions("%d %s %%"), 2);
    }
}
