//! A second process that ends what mcpd's runs have left behind when mcpd itself is killed: nobody can
//! tidy up after a SIGKILL but somebody else. It does nothing at an orderly end. Linux only.

use std::io::{self, Read as _, Write as _};
use std::process::ChildStdin;

use mcpd_server::ServerBuilder;

/// The variable by which the processes of one mcpd are told from all others.
const MARK: &str = "MCPD_SERVER";
/// The first argument of the second process.
const ARGUMENT: &str = "__watchdog";
/// Said before an orderly end.
const ALL_IS_WELL: &[u8] = b".";

/// The lifeline to the second process: it tears when this one dies, whatever kills it.
pub(crate) struct Watchdog(Option<ChildStdin>);

/// Starts watching over the runs of the server that is being built.
pub(crate) fn guard(builder: ServerBuilder) -> (ServerBuilder, Watchdog) {
    let mark = format!("{:016x}", getrandom::u64().unwrap_or_default());
    let lifeline = second_process(&mark).unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to start the watchdog; if mcpd is killed, its scripts go on");
        None
    });
    (builder.variable(MARK, mark), Watchdog(lifeline))
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(lifeline) = &mut self.0 {
            // If it is gone already, there is nobody to reassure.
            lifeline.write_all(ALL_IS_WELL).ok();
        }
    }
}

/// The mark, if this process is to be the second one.
pub(crate) fn requested() -> Option<String> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == ARGUMENT).then(|| arguments.next()?.into_string().ok())?
}

/// Waits for the other process to end; if it was killed, ends what its runs left behind.
pub(crate) fn watch(mark: &str) {
    let mut last_words = Vec::new();
    io::stdin().read_to_end(&mut last_words).ok();
    if last_words != ALL_IS_WELL {
        end_all(&format!("{MARK}={mark}"));
    }
}

#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "it has to outlive every executor"
)]
fn second_process(mark: &str) -> io::Result<Option<ChildStdin>> {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    let mut child = Command::new("/proc/self/exe")
        .args([ARGUMENT, mark])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // What a terminal or a supervisor sends to mcpd's group is not meant for it.
        .process_group(0)
        .spawn()?;
    Ok(child.stdin.take())
}

/// Elsewhere there is no /proc to find the processes in.
#[cfg(not(target_os = "linux"))]
fn second_process(_: &str) -> io::Result<Option<ChildStdin>> {
    Ok(None)
}

#[cfg(not(target_os = "linux"))]
fn end_all(_: &str) {}

/// Ends every process that has `mark` in its environment. One may start another while it is being
/// killed, so this looks again until it has found nothing twice.
#[cfg(target_os = "linux")]
fn end_all(mark: &str) {
    use rustix::process::{Signal, getpgid, kill_process, kill_process_group};

    let mut quiet = 0;
    while quiet < 2 {
        let found = linux::marked(mark.as_bytes());
        quiet = if found.is_empty() { quiet + 1 } else { 0 };
        for process in found {
            // The group first, for members that have dropped the mark, and only if it is its own.
            if getpgid(Some(process)) == Ok(process) {
                kill_process_group(process, Signal::KILL).ok();
            }
            kill_process(process, Signal::KILL).ok();
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::Pid;

    /// Every live process that has `mark` in its environment.
    pub(super) fn marked(mark: &[u8]) -> Vec<Pid> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            // What may not be read belongs to somebody else; what is empty has ended.
            .filter(|process: &i32| {
                let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
                environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == mark)
            })
            .filter_map(Pid::from_raw)
            .collect()
    }
}
