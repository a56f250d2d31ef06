//! Memory of this process: settings of the allocator, and pages that it can do without.

use std::slice;

use libc::{c_int, c_void, size_t};

/// Address space that an arena of the allocator reserves at a time. It becomes memory only when
/// it is used.
#[cfg(target_env = "gnu")]
const ARENA_STEP: c_int = 4 << 20;

/// Smallest allocation that gets its own mapping. Once any option is set, glibc stops adapting
/// this threshold by itself.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: c_int = 1 << 20;

/// Lets the allocator take memory in large pieces.
pub(crate) fn prepare_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It sets numbers that the allocator reads under its locks.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, ARENA_STEP);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    }
}

/// Lets the allocator return free memory to the system, and the system take back code and constants
/// of the program and its libraries.
///
/// Most of these are the code of the start, and the relocations, which the dynamic linker has read
/// once. What is needed again is mapped again from the cache of the file.
pub(crate) fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It touches nothing but free memory, and that under the locks of the allocator.
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: The callback has the required signature, and needs no data.
    unsafe {
        libc::dl_iterate_phdr(Some(release_segments), std::ptr::null_mut());
    }
}

/// Lets the system take back the segments of an object that are never written.
unsafe extern "C" fn release_segments(
    object: *mut libc::dl_phdr_info,
    _: size_t,
    _: *mut c_void,
) -> c_int {
    // SAFETY: The linker passes a valid object, whose headers stay as they are.
    let (base, segments) = unsafe {
        let object = &*object;
        let count = object.dlpi_phnum.into();
        (
            object.dlpi_addr,
            slice::from_raw_parts(object.dlpi_phdr, count),
        )
    };
    let is_never_written = |segment: &&libc::Elf64_Phdr| {
        segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_W == 0
    };
    for segment in segments.iter().filter(is_never_written) {
        // SAFETY: It reads a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs();
        let begin = (base + segment.p_vaddr).next_multiple_of(page);
        let end = (base + segment.p_vaddr + segment.p_memsz) / page * page;
        let length = end.saturating_sub(begin) as size_t;
        // SAFETY: Whole pages of a mapping that is never written, so that they are the same when
        // they are mapped again.
        unsafe {
            libc::madvise(begin as *mut c_void, length, libc::MADV_DONTNEED);
        }
    }
    const GO_ON: c_int = 0;
    GO_ON
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the resident kilobytes of the mapping with this address.
    fn resident_around(address: usize) -> usize {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_here = false;
        for line in maps.lines() {
            let range = line
                .split(' ')
                .next()
                .and_then(|range| range.split_once('-'));
            let hex = |text| usize::from_str_radix(text, 16);
            if let Some((Ok(begin), Ok(end))) = range.map(|(begin, end)| (hex(begin), hex(end))) {
                is_here = (begin..end).contains(&address);
            } else if let (true, Some(size)) = (is_here, line.strip_prefix("Rss:")) {
                return size.trim().trim_end_matches(" kB").parse().unwrap();
            }
        }
        panic!("no mapping at {address:#x}");
    }

    #[test]
    fn release_memory_returns_constants_and_keeps_their_values() {
        static CONSTANTS: [u64; 1 << 17] = {
            let mut constants = [0; 1 << 17];
            let mut index = 0;
            while index < constants.len() {
                constants[index] = index as u64;
                index += 1;
            }
            constants
        };
        let constants = std::hint::black_box(&CONSTANTS);
        let sum = || constants.iter().sum::<u64>();
        let before = sum();
        let address = constants.as_ptr().addr();
        let touched = resident_around(address);
        release_memory();
        let released = resident_around(address);
        assert!(
            released + 512 < touched,
            "{touched} kB before, {released} kB after"
        );
        assert_eq!(sum(), before);
    }
}
