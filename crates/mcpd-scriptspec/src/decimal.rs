//! Decimal numbers as text, compared and rewritten exactly at any size; never by way of a float.

use std::{borrow::Cow, cmp::Ordering, fmt};

/// Maximum length of a number written out without its exponent, in bytes: the limit of a variable.
pub(crate) const MAX_PLAIN: i64 = 32 * 1024;

/// Length of the JSON number at the start of `text`.
pub(crate) fn number_len(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && bytes[at] == b'0') {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

/// A number exactly as written.
///
/// Equality and order are those of the values: `1.0` equals `1e0`.
#[derive(Debug, Clone)]
pub struct Decimal(String);

impl Decimal {
    /// Parses `text` if it is exactly a JSON number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (number_len(text) == Some(text.len())).then(|| Self(text.to_owned()))
    }

    /// The parsed text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Canonical text of the number's value, without exponent and trailing zeros: `12` for
    /// `1.20e1`. `None` if it would be longer than a variable may be.
    #[must_use]
    pub fn canonical(&self) -> Option<String> {
        let parts = self.parts();
        if parts.is_zero() {
            Some("0".to_owned())
        } else {
            parts.written_out()
        }
    }

    pub(crate) fn parts(&self) -> Parts<'_> {
        Parts::of(&self.0)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// A number as `±0.DIGITS × 10^point`, where the digits neither start nor end with a zero.
#[derive(Debug, Clone)]
pub(crate) struct Parts<'a> {
    negative: bool,
    /// Digits before and after the decimal point, whose concatenation is `DIGITS`.
    whole: &'a str,
    fraction: &'a str,
    point: i64,
}

impl<'a> Parts<'a> {
    /// Splits a valid JSON number.
    pub(crate) fn of(text: &'a str) -> Self {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, saturating_exponent(exponent)),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut whole = whole.trim_start_matches('0');
        let mut fraction = fraction.trim_end_matches('0');
        let mut point = length(whole) + exponent;
        if whole.is_empty() {
            let significant = fraction.trim_start_matches('0');
            point -= length(fraction) - length(significant);
            fraction = significant;
        }
        if fraction.is_empty() {
            whole = whole.trim_end_matches('0');
        }
        Self {
            negative: text.starts_with('-'),
            whole,
            fraction,
            point,
        }
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.is_zero() || self.len() <= self.point
    }

    fn written_out(&self) -> Option<String> {
        if self.point.saturating_abs() + self.len() > MAX_PLAIN {
            return None;
        }
        let digits = format!("{}{}", self.whole, self.fraction);
        let sign = if self.negative { "-" } else { "" };
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
        Some(match usize::try_from(self.point) {
            Ok(point) if point >= digits.len() => {
                format!("{sign}{digits}{}", zeros(self.point - self.len()))
            }
            Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => format!("{sign}0.{}{digits}", zeros(-self.point)),
        })
    }

    fn is_zero(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> i64 {
        length(self.whole) + length(self.fraction)
    }

    /// Compares the magnitudes, ignoring the sign.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        let digits = |parts: &Self| parts.whole.bytes().chain(parts.fraction.bytes());
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self
                .point
                .cmp(&other.point)
                .then_with(|| digits(self).cmp(digits(other))),
        }
    }

    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        let negative = |parts: &Self| parts.negative && !parts.is_zero();
        match (negative(self), negative(other)) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// Digits of the JSON number, an integer, without its exponent; `None` if
/// they would exceed the limit.
pub(crate) fn integer_text(number: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let parts = Parts::of(&number);
    if parts.is_zero() {
        Some(Cow::Borrowed("0"))
    } else if number.contains(['.', 'e', 'E']) {
        parts.written_out().map(Cow::Owned)
    } else {
        Some(number)
    }
}

/// The JSON number without an exponent; `None` if it would exceed the limit.
pub(crate) fn plain_text(number: Cow<'_, str>) -> Option<Cow<'_, str>> {
    if !number.contains(['e', 'E']) {
        return Some(number);
    }
    let parts = Parts::of(&number);
    if parts.is_zero() {
        Some(Cow::Borrowed("0"))
    } else {
        parts.written_out().map(Cow::Owned)
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Parses an exponent; one beyond the range becomes the largest of the range.
fn saturating_exponent(text: &str) -> i64 {
    const MAX_EXPONENT: i64 = i64::MAX / 4;
    let largest = if text.starts_with('-') {
        -MAX_EXPONENT
    } else {
        MAX_EXPONENT
    };
    text.parse().map_or(largest, |exponent: i64| {
        exponent.clamp(-MAX_EXPONENT, MAX_EXPONENT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, integer: Option<&str>, plain: &str) {
        let number = Decimal::parse(text).unwrap();
        let found = number
            .parts()
            .is_integer()
            .then(|| integer_text(text.into()).unwrap());
        assert_eq!(found.as_deref(), integer);
        assert_eq!(plain_text(text.into()).unwrap(), plain);
    }

    #[test]
    fn numbers_are_written_without_exponent_and_without_rounding() {
        check("0", Some("0"), "0");
        check("-0", Some("0"), "-0");
        check("0.0", Some("0"), "0.0");
        check("0e5", Some("0"), "0");
        check("2.0", Some("2"), "2.0");
        check("-120.0", Some("-120"), "-120.0");
        check("1.50", None, "1.50");
        check("1e3", Some("1000"), "1000");
        check("-1.25E+1", None, "-12.5");
        check("1.25e2", Some("125"), "125");
        check("1200e-2", Some("12"), "12");
        check("1200e-3", None, "1.2");
        check("5e-3", None, "0.005");
        check("0.05e1", None, "0.5");
        check("10.01e1", None, "100.1");
        check(
            "1000000000000000000000000001",
            Some("1000000000000000000000000001"),
            "1000000000000000000000000001",
        );
    }

    #[test]
    fn numbers_of_any_size_are_ordered() {
        let ascending = [
            "-1e999999999999999999999",
            "-1e400",
            "-2",
            "-1.5",
            "-1",
            "0",
            "1e-400",
            "0.1",
            "0.11",
            "1",
            "1.0000000000000000000001",
            "2",
            "10",
            "9007199254740993",
            "9007199254740994",
            "1e400",
        ];
        for (index, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                let found = Decimal::parse(left).cmp(&Decimal::parse(right));
                assert_eq!(found, index.cmp(&other), "{left} and {right}");
            }
        }
        assert_eq!(Decimal::parse("1.0"), Decimal::parse("10e-1"));
        assert_eq!(Decimal::parse("-0"), Decimal::parse("0.00"));
    }

    #[test]
    fn numbers_of_one_value_have_one_text() {
        for (text, canonical) in [
            ("-0.0", "0"),
            ("0e9", "0"),
            ("12", "12"),
            ("1.20e1", "12"),
            ("1.10", "1.1"),
            ("-0.5e-1", "-0.05"),
        ] {
            let number = Decimal::parse(text).unwrap();
            assert_eq!(number.canonical().as_deref(), Some(canonical));
        }
        assert_eq!(Decimal::parse("1e999999").unwrap().canonical(), None);
    }

    #[test]
    fn huge_exponent_is_not_written_out() {
        assert_eq!(integer_text("1e999999999999".into()), None);
        assert_eq!(plain_text("1e-999999999999".into()), None);
    }

    #[test]
    fn decimal_accepts_only_json_numbers() {
        for text in [
            "", "-", "+1", "01", "1.", ".5", "1e", "0x10", "1 ", " 1", "NaN", "1_000", "٣",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }
}
