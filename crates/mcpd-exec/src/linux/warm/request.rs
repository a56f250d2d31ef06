//! Request for a fork, and the report of its start.

use std::ffi::{CStr, OsString};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::Pid;

use super::zygote::Zygote;

/// Most bytes of one request: a packet has to fit into the buffer of the socket.
const MAX_REQUEST: usize = 128 * 1024;

/// Time for the fork itself. Only a zygote that was stopped takes so long.
const FORK_TIMEOUT: Duration = Duration::from_secs(2);

/// Part of a run that its fork has to be told.
pub(super) struct Request<'a> {
    pub(super) script: &'a Path,
    /// First line that the script must still have.
    pub(super) line: &'a [u8],
    pub(super) directory: Option<&'a CStr>,
    /// `RLIMIT_*`, soft and hard.
    pub(super) limits: &'a [(i32, u64, u64)],
    pub(super) mark: Option<u64>,
    pub(super) session: bool,
    pub(super) has_group: bool,
    pub(super) has_filter: bool,
    pub(super) arguments: &'a [OsString],
    pub(super) variables: Vec<&'a CStr>,
}

impl Request<'_> {
    /// Sends the request with these descriptors: the three streams, the end of the pipe for the
    /// report, the file of the control group, and the rulesets.
    ///
    /// # Errors
    ///
    /// The reason that the zygote did not get it.
    pub(super) fn send(
        &self,
        zygote: &Zygote,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        let packet = self.encode();
        if packet.len() > MAX_REQUEST {
            return Err("its arguments and variables are too long".to_owned());
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err("it needs too many descriptors".to_owned());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let parts = [IoSlice::new(&packet)];
        match sendmsg(zygote.socket(), &parts, &mut control, flags) {
            Ok(_) => Ok(()),
            Err(Errno::AGAIN) => Err("the warm interpreter is busy".to_owned()),
            Err(error) => {
                zygote.give_up();
                Err(format!("the warm interpreter has ended: {error}"))
            }
        }
    }

    /// Fields of the request, each but the last with a NUL byte behind it, which none contains.
    fn encode(&self) -> Vec<u8> {
        let limits = self
            .limits
            .iter()
            .map(|(resource, soft, hard)| format!("{resource}:{soft}:{hard}"));
        let limits = limits.collect::<Vec<_>>().join(",");
        let mark = self.mark.map(|mark| mark.to_string()).unwrap_or_default();
        let switches = [
            (self.session, "s"),
            (self.has_group, "c"),
            (self.has_filter, "f"),
        ];
        let switches: String = switches
            .iter()
            .filter_map(|(on, letter)| on.then_some(*letter))
            .collect();
        let count = self.arguments.len().to_string();
        let head = [
            self.script.as_os_str().as_bytes(),
            self.line,
            self.directory.map(CStr::to_bytes).unwrap_or_default(),
            limits.as_bytes(),
            mark.as_bytes(),
            switches.as_bytes(),
            count.as_bytes(),
        ];
        let arguments = self.arguments.iter().map(|argument| argument.as_bytes());
        let variables = self.variables.iter().map(|entry| entry.to_bytes());
        let fields: Vec<_> = head.into_iter().chain(arguments).chain(variables).collect();
        fields.join(&0)
    }
}

/// Result of a fork: its process, if there is one, and the reason that it does not run the script.
pub(super) type Forked = (Option<Pid>, Result<(), String>);

/// Waits until the fork is about to run the script. After an error it never will.
///
/// Nothing but its end bounds the time that the fork takes to confine itself, as with any process
/// on its way to its program.
pub(super) fn wait_for_fork(report: &OwnedFd, zygote: &Zygote) -> Forked {
    let mut text = Vec::new();
    let mut is_slow = false;
    loop {
        let pid = find(&text, "pid ").and_then(|number| Pid::from_raw(number.parse().ok()?));
        if find(&text, "ok").is_some() && pid.is_some() {
            return (pid, Ok(()));
        }
        if pid.is_none() && !is_slow && !is_ready(report, FORK_TIMEOUT) {
            // Without it, the other end closes, unless there is a fork that reports.
            zygote.give_up();
            is_slow = true;
        }
        let mut chunk = [0; 1024];
        match rustix::io::read(report, &mut chunk) {
            Ok(0) => {
                let reason = find(&text, "failed ").unwrap_or("the warm interpreter has ended");
                return (pid, Err(reason.to_owned()));
            }
            Ok(count) => text.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR) => {}
            Err(error) => return (pid, Err(error.to_string())),
        }
    }
}

/// Returns the rest of the complete line that begins with `word`.
fn find<'a>(text: &'a [u8], word: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(text).ok()?;
    let complete = &text[..=text.rfind('\n')?];
    complete.lines().find_map(|line| line.strip_prefix(word))
}

fn is_ready(report: &OwnedFd, timeout: Duration) -> bool {
    let timeout = Timespec::try_from(timeout).ok();
    let mut polled = [PollFd::from_borrowed_fd(report.as_fd(), PollFlags::IN)];
    matches!(
        poll(&mut polled, timeout.as_ref()),
        Ok(1..) | Err(Errno::INTR)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_read_by_complete_lines() {
        assert_eq!(find(b"pid 12", "pid "), None);
        assert_eq!(find(b"ok\npid 12\n", "pid "), Some("12"));
        assert_eq!(find(b"pid 12\nfailed x", "failed "), None);
        assert_eq!(find(b"pid 12\nfailed x y\n", "failed "), Some("x y"));
    }
}
