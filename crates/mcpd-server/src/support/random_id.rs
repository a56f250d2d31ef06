//! Unguessable random ids, and hexadecimal digits of hashes.

/// Formats bytes in hexadecimal, such as those of a hash.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    let mut digits = vec![0; 2 * bytes.len()];
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    String::from_utf8(digits).expect("digits are text")
}

/// Returns 128 random bits in hexadecimal.
pub(crate) fn new() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("a system that starts processes has randomness");
    format!("{:032x}", u128::from_ne_bytes(random))
}
