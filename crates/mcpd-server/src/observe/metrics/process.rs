//! Metrics of this process from `/proc`, under the names that every Prometheus client uses. Empty
//! where the system has no `/proc`.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::core::Collector as _;
use prometheus::proto::MetricFamily;
use prometheus::{Counter, Gauge};

/// Clock ticks per second in `/proc`, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) fn families() -> Vec<MetricFamily> {
    read_process().unwrap_or_default()
}

/// Resident memory in bytes, where the system tells.
pub(super) fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(kilobytes(&status, "VmRSS")? as u64)
}

fn read_process() -> Option<Vec<MetricFamily>> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name that may have spaces; the rest begins with the third.
    let fields: Vec<f64> = stat
        .rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .map(|field| field.parse().unwrap_or_default())
        .collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split(' ').next()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let started = now.as_secs_f64() - uptime + field(22)? / TICKS_PER_SECOND;
    let descriptors = fs::read_dir("/proc/self/fd").ok()?.count();
    let cpu = Counter::new(
        "process_cpu_seconds_total",
        "Processor time of mcpd itself, without its scripts.",
    );
    let cpu = cpu.ok()?;
    cpu.inc_by((field(14)? + field(15)?) / TICKS_PER_SECOND);
    let gauges = [
        (
            "process_resident_memory_bytes",
            "Resident memory.",
            kilobytes(&status, "VmRSS")?,
        ),
        (
            "process_virtual_memory_bytes",
            "Virtual memory.",
            kilobytes(&status, "VmSize")?,
        ),
        (
            "process_open_fds",
            "Open file descriptors.",
            descriptors as f64,
        ),
        (
            "process_max_fds",
            "Maximum number of open file descriptors.",
            max_descriptors()?,
        ),
        ("process_threads", "Threads.", field(20)?),
        (
            "process_start_time_seconds",
            "Start time of the process, in seconds since 1970.",
            started,
        ),
    ];
    let mut families = cpu.collect();
    for (name, help, value) in gauges {
        let gauge = Gauge::new(name, help).ok()?;
        gauge.set(value);
        families.extend(gauge.collect());
    }
    Some(families)
}

/// Returns the value of a line such as `VmRSS:  1234 kB`, in bytes.
fn kilobytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number: f64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(number * 1024.0)
}

fn max_descriptors() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_ascii_whitespace().next()?;
    Some(soft.parse().unwrap_or(f64::INFINITY))
}
