//! Process information from the system.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use nix::time::ClockId;
use nix::unistd::Pid;

/// Returns a number from the status of a process; memory is in KiB.
///
/// # Errors
///
/// Fails if the process has ended, or there is no such number.
pub(crate) fn status(process: u32, name: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    let field = lines.find_map(|(field, value)| (field == name).then_some(value));
    let number = field.and_then(|value| value.split_whitespace().next());
    Ok(number.context("no such number")?.parse()?)
}

/// Returns the processor time of a process so far, without that of its children.
///
/// # Errors
///
/// Fails if the process has ended.
pub(crate) fn cpu(process: u32) -> anyhow::Result<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(process)?))?;
    Ok(clock.now()?.into())
}

/// Returns the processor time of the children of a process that have ended so far.
///
/// # Errors
///
/// Fails if the process has ended.
pub(crate) fn cpu_of_children(process: u32) -> anyhow::Result<Duration> {
    /// Place of `cutime` behind the name of the program, which may have spaces; `cstime` follows.
    const CUTIME: usize = 13;
    /// Length of a tick, which is the same on all architectures of Linux that mcpd is built for.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("no name")?;
    let times = fields.split_whitespace().skip(CUTIME).take(2);
    Ok(TICK * times.map(str::parse::<u32>).sum::<Result<u32, _>>()?)
}

/// Returns the running children of a process.
///
/// # Errors
///
/// Fails if the process has ended.
pub(crate) fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let list = fs::read_to_string(thread?.path().join("children"))?;
        for number in list.split_whitespace() {
            children.push(number.parse()?);
        }
    }
    Ok(children)
}

/// Resets the peak memory of a process.
///
/// # Errors
///
/// Fails if the process has ended.
pub(crate) fn forget_peak(process: u32) -> anyhow::Result<()> {
    fs::write(format!("/proc/{process}/clear_refs"), "5")?;
    Ok(())
}
