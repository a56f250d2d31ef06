//! Decoder of JavaScript's texts and numbers.

/// Decodes a quoted string, or a template without substitutions.
pub(super) fn string(literal: &str) -> Result<String, &'static str> {
    let inner = &literal[1..literal.len() - 1];
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => escape(&mut chars, &mut text)?,
            // A line end in a template is one character, regardless of the file.
            '\r' => {
                if !chars.as_str().starts_with('\n') {
                    text.push('\n');
                }
            }
            _ => text.push(char),
        }
    }
    Ok(text)
}

/// Decodes an escape after its backslash.
fn escape(chars: &mut std::str::Chars<'_>, text: &mut String) -> Result<(), &'static str> {
    let Some(char) = chars.next() else {
        return Err("nothing follows the backslash");
    };
    text.push(match char {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '0' if !chars
            .as_str()
            .starts_with(|next: char| next.is_ascii_digit()) =>
        {
            '\0'
        }
        '0'..='9' => return Err("an octal escape, which strict mode does not allow"),
        'x' => {
            let code = hexadecimal(chars, 2)?;
            char::from_u32(code).ok_or(NO_CHARACTER)?
        }
        'u' => unicode(chars)?,
        // A line continuation.
        '\r' => {
            if chars.as_str().starts_with('\n') {
                chars.next();
            }
            return Ok(());
        }
        '\n' | '\u{2028}' | '\u{2029}' => return Ok(()),
        other => other,
    });
    Ok(())
}

const NO_CHARACTER: &str = "an escape that is not a character";

/// Decodes the part after `\u`; a surrogate pair is one character.
fn unicode(chars: &mut std::str::Chars<'_>) -> Result<char, &'static str> {
    if let Some(rest) = chars.as_str().strip_prefix('{') {
        let (digits, rest) = rest.split_once('}').ok_or(NO_CHARACTER)?;
        *chars = rest.chars();
        let code = u32::from_str_radix(digits, 16).ok();
        let code = code.filter(|_| !digits.starts_with('+'));
        return code.and_then(char::from_u32).ok_or(NO_CHARACTER);
    }
    let first = hexadecimal(chars, 4)?;
    if let Some(char) = char::from_u32(first) {
        return Ok(char);
    }
    let rest = chars.as_str().strip_prefix("\\u").ok_or(NO_CHARACTER)?;
    *chars = rest.chars();
    let second = hexadecimal(chars, 4)?;
    if !(0xd800..0xdc00).contains(&first) || !(0xdc00..0xe000).contains(&second) {
        return Err(NO_CHARACTER);
    }
    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(code).ok_or(NO_CHARACTER)
}

fn hexadecimal(chars: &mut std::str::Chars<'_>, count: usize) -> Result<u32, &'static str> {
    let digits = chars.as_str().get(..count).ok_or(NO_CHARACTER)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(NO_CHARACTER);
    }
    *chars = chars.as_str()[count..].chars();
    u32::from_str_radix(digits, 16).map_err(|_| NO_CHARACTER)
}

const NO_NUMBER: &str = "not a number";

/// Formats a number for JSON.
pub(super) fn number(literal: &str) -> Result<String, &'static str> {
    let is_separated = literal.starts_with('_') || literal.ends_with('_') || literal.contains("__");
    let text = literal.replace('_', "");
    let radix = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => {
            return if is_separated {
                Err(NO_NUMBER)
            } else {
                decimal(&text)
            };
        }
    };
    // `from_str_radix` would accept a sign.
    let digits = text[2..].strip_prefix('+').map_or(&text[2..], |_| "");
    let value = u128::from_str_radix(digits, radix).map_err(|_| NO_NUMBER)?;
    Ok(value.to_string())
}

/// Adds the digits that JSON requires on both sides of a point, and removes leading zeros.
fn decimal(text: &str) -> Result<String, &'static str> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(place) => text.split_at(place),
        None => (text, ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let power = exponent.get(1..).unwrap_or("1");
    let power = power.strip_prefix(['+', '-']).unwrap_or(power);
    let lacks_digits = power.is_empty() || whole.is_empty() && fraction.is_empty();
    if lacks_digits || ![whole, fraction, power].into_iter().all(is_digits) {
        return Err(NO_NUMBER);
    }
    if whole.len() > 1 && whole.starts_with('0') {
        return Err("a number with a leading `0` is ambiguous: octal or decimal");
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{whole}{point}{fraction}{exponent}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<const N: usize>(
        read: fn(&str) -> Result<String, &'static str>,
        cases: [(&str, Option<&str>); N],
    ) {
        for (literal, expected) in cases {
            assert_eq!(read(literal).ok().as_deref(), expected, "{literal}");
        }
    }

    #[test]
    fn numbers_are_written_as_in_json() {
        check(
            number,
            [
                ("0", Some("0")),
                ("42", Some("42")),
                ("1_000", Some("1000")),
                ("0xFf", Some("255")),
                ("0b101", Some("5")),
                ("0o17", Some("15")),
                (".5", Some("0.5")),
                ("5.", Some("5")),
                ("5.e3", Some("5e3")),
                ("1.25E-7", Some("1.25E-7")),
                ("010", None),
                ("1__0", None),
                ("10n", None),
                ("1e", None),
                (".", None),
                ("1.2.3", None),
                ("0x", None),
                ("0x+5", None),
                ("0xfffffffffffffffffffffffffffffffff", None),
            ],
        );
    }

    #[test]
    fn escapes_become_characters() {
        check(
            string,
            [
                (r#""a\"b""#, Some("a\"b")),
                (r"'\n\t\x41\u00e9\u{1F600}'", Some("\n\tAé😀")),
                (r"'\ud83d\ude00'", Some("😀")),
                (r"'\q\0'", Some("q\0")),
                ("'one \\\r\ntwo'", Some("one two")),
                ("`a\r\nb\rc`", Some("a\nb\nc")),
                (r"'\ud83d'", None),
                (r"'\ude00\ud83d'", None),
                (r"'\x4'", None),
                (r"'\u{110000}'", None),
                (r"'\u{41'", None),
                (r"'\12'", None),
            ],
        );
    }
}
