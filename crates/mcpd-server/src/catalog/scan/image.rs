//! Compiled programs, recognized by their first bytes.

use std::path::Path;

/// First bytes of programs of other systems: Mach-O in its six forms, and PE behind its DOS
/// header.
const FOREIGN: [&[u8]; 7] = [
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xbe\xba\xfe\xca",
    b"MZ",
];

/// Returns whether a file with these first bytes is a program of some system, and not a library.
pub(super) fn is_program(head: &[u8], file: &Path) -> bool {
    if !head.starts_with(b"\x7fELF") {
        return FOREIGN.iter().any(|magic| head.starts_with(magic));
    }
    const EXECUTABLE: u16 = 2;
    const SHARED: u16 = 3;
    const BIG_ENDIAN: u8 = 2;
    let kind = match (head.get(5), head.get(16..18)) {
        (Some(&BIG_ENDIAN), Some(&[high, low])) => u16::from_be_bytes([high, low]),
        (_, Some(&[low, high])) => u16::from_le_bytes([low, high]),
        _ => return false,
    };
    // Position-independent programs are shared objects as libraries are.
    kind == EXECUTABLE || (kind == SHARED && !is_library(file))
}

/// Returns whether a file has the name of a library, such as `libz.so.1`.
fn is_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &[u8], name: &str, expected: bool) {
        assert_eq!(is_program(head, Path::new(name)), expected, "{name}");
    }

    #[test]
    fn programs_differ_from_libraries_objects_and_data() {
        let elf = |endian: u8, kind: [u8; 2]| {
            let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
            head[5] = endian;
            head.extend(kind);
            head
        };
        check(&elf(1, [2, 0]), "static", true);
        check(&elf(2, [0, 2]), "big-endian", true);
        check(&elf(1, [3, 0]), "relocatable", true);
        check(&elf(1, [3, 0]), "libz.so.1", false);
        check(&elf(1, [1, 0]), "main.o", false);
        check(&elf(1, [4, 0]), "core", false);
        check(b"\x7fELF", "cut", false);
        check(b"MZ\x90\0", "a.exe", true);
        check(b"\xcf\xfa\xed\xfe", "macos", true);
        check(b"# My tools\n", "README.md", false);
        check(b"", "empty", false);
    }
}
