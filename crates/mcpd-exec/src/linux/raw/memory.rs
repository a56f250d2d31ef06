//! Memory of this process: settings of the allocator, and pages that it can do without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::slice;

use libc::{c_int, c_void, size_t};

/// Smallest allocation that gets huge pages, in bytes: two of the usual ones of x86-64 and ARM.
const HUGE_SIZE: usize = 4 << 20;

/// Allocator of the system. Large buffers get huge pages, if the system has them for programs that
/// ask (Linux): writing to 10 MB for the first time then takes a few page faults, and not 2,500.
///
/// A buffer may take up to 2 MiB more than it holds, and a system short of free memory may take a
/// moment to find a huge page. With glibc, call [`prepare`](crate::memory::prepare), so that large
/// buffers have mappings of their own.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a static is made of it")]
pub struct Allocator;

// SAFETY: Every method does what that of the system does. Advice does not change contents.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's promise is that of the method.
        let memory = unsafe { System.alloc(layout) };
        advise_huge_pages(memory, layout.size());
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: Likewise.
        let memory = unsafe { System.alloc_zeroed(layout) };
        advise_huge_pages(memory, layout.size());
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: Likewise.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: Likewise.
        let memory = unsafe { System.realloc(memory, layout, size) };
        advise_huge_pages(memory, size);
        memory
    }
}

/// Asks for huge pages if this allocation is large.
#[inline]
fn advise_huge_pages(memory: *mut u8, size: usize) {
    if size >= HUGE_SIZE && !memory.is_null() {
        request_huge_pages(memory, size);
    }
}

/// Returns the size of a page, in bytes.
fn page_size() -> usize {
    // SAFETY: It reads a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.unsigned_abs() as usize
}

#[cold]
fn request_huge_pages(memory: *mut u8, size: usize) {
    let page = page_size();
    let begin = memory.map_addr(|address| address / page * page);
    // SAFETY: Advice, which a system without huge pages refuses, about pages that exist.
    unsafe {
        libc::madvise(begin.cast(), size, libc::MADV_HUGEPAGE);
    }
}

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
    let page = page_size() as u64;
    for segment in segments.iter().filter(is_never_written) {
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

    /// Returns a line about the mapping with this address.
    fn mapping_line(address: usize, name: &str) -> String {
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
            } else if let (true, Some(value)) = (is_here, line.strip_prefix(name)) {
                return value.trim().to_owned();
            }
        }
        panic!("no mapping at {address:#x}");
    }

    /// Returns the resident kilobytes of the mapping with this address.
    fn resident_around(address: usize) -> usize {
        let size = mapping_line(address, "Rss:");
        size.trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn large_allocation_asks_for_huge_pages_and_keeps_its_bytes() {
        let layout = |size| Layout::from_size_align(size, 16).unwrap();
        let asks = |memory: *mut u8| {
            let flags = mapping_line(memory.addr(), "VmFlags:");
            flags.split(' ').any(|flag| flag == "hg")
        };
        let is_there = fs::exists("/sys/kernel/mm/transparent_hugepage/enabled").unwrap();
        // SAFETY: What is allocated is freed, and read only where it was written.
        unsafe {
            let small = Allocator.alloc(layout(HUGE_SIZE / 2));
            small.write_bytes(7, HUGE_SIZE / 2);
            assert!(!asks(small));
            let large = Allocator.realloc(small, layout(HUGE_SIZE / 2), 2 * HUGE_SIZE);
            assert_eq!(asks(large), is_there);
            let bytes = slice::from_raw_parts(large, HUGE_SIZE / 2);
            assert!(bytes.iter().all(|byte| *byte == 7));
            Allocator.dealloc(large, layout(2 * HUGE_SIZE));
            let zeroed = Allocator.alloc_zeroed(layout(HUGE_SIZE));
            assert_eq!(asks(zeroed), is_there);
            assert!(
                slice::from_raw_parts(zeroed, HUGE_SIZE)
                    .iter()
                    .all(|byte| *byte == 0)
            );
            Allocator.dealloc(zeroed, layout(HUGE_SIZE));
        }
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
