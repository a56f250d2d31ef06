//! Ids that nobody can guess, and those that content has.

/// Bytes in hexadecimal, such as those of a hash.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.push(digit(byte >> 4));
        digits.push(digit(byte & 15));
    }
    digits
}

/// 128 random bits in hexadecimal.
pub(crate) fn random() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("a system that starts processes has randomness");
    format!("{:032x}", u128::from_ne_bytes(random))
}
