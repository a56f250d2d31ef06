//! Process information from the system.

use std::fs;

use crate::sandbox::Sandbox;

/// Returns the peak memory of a process, in bytes.
///
/// # Panics
///
/// Panics if there is no such process.
#[must_use]
pub fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it is running");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = peak.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.expect("the kernel keeps count") * 1024
}

/// Returns the number of bytes that a process has read so far, from files and connections.
///
/// # Panics
///
/// Panics if there is no such process.
#[must_use]
pub fn bytes_read(process: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{process}/io")).expect("it is running");
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    let bytes = read.and_then(|text| text.parse().ok());
    bytes.expect("the kernel keeps count")
}

/// Returns the processes with the environment of a sandbox: mcpd and its descendants.
#[must_use]
pub fn processes_of(sandbox: &Sandbox) -> Vec<u32> {
    let home = format!("HOME={}", sandbox.path().join("home").display());
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // A process that ends meanwhile can't be read, and a zombie has no environment.
    let is_marked = |process: &u32| {
        fs::read(format!("/proc/{process}/environ")).is_ok_and(|environment| {
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == home.as_bytes())
        })
    };
    numbers.filter(is_marked).collect()
}
