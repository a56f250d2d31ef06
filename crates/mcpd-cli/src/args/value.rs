//! Values of flags, parsed with a reason for each error.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::ValueEnum;

pub(super) fn seconds(text: &str) -> Result<Duration, &'static str> {
    // A text that is not a number is rejected like 0.
    time(text.parse().unwrap_or_default())
}

/// Converts seconds to a duration above zero.
pub(crate) fn time(seconds: f64) -> Result<Duration, &'static str> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        Err(_) if seconds > 0.0 => Err("expected a number of seconds up to 1.8e19"),
        _ => Err("expected a number of seconds above 0"),
    }
}

pub(super) fn whole_number(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "expected a whole number above 0")
}

/// Parses the port number of a flag or a variable.
pub(crate) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse()
        .map_err(|_| "expected a number from 0 to 65535")
}

/// Returns the command line's spelling of `values`.
pub(crate) fn spellings<T: ValueEnum>(values: &[T]) -> Vec<OsString> {
    let values = values.iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_two_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "NaN", "-inf", "abc"] {
            let error = seconds(text).unwrap_err();
            assert_eq!(error, "expected a number of seconds above 0", "{text}");
        }
        for text in ["1e20", "1e300", "inf"] {
            let error = seconds(text).unwrap_err();
            assert_eq!(error, "expected a number of seconds up to 1.8e19", "{text}");
        }
    }
}
