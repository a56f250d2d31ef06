//! Values of flags, parsed with a reason for each error.

use std::num::NonZeroUsize;

use crate::value::Seconds;

pub(crate) fn seconds(text: &str) -> Result<Seconds, &'static str> {
    // A text that is not a number is rejected like 0.
    Seconds::new(text.parse().unwrap_or_default())
}

pub(crate) fn whole_number(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "expected a whole number above 0")
}

/// Parses the port number of a flag or a variable.
pub(crate) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse()
        .map_err(|_| "expected a number from 0 to 65535")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn seconds_have_two_bounds() {
        assert_eq!(seconds("0.5"), Ok(Seconds(Duration::from_millis(500))));
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
