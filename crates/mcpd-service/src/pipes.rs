//! Standard input and output as the pipes of one peer, which nothing else reads or writes.

use std::io;

/// Moves the two pipes to private descriptors: output that a library prints by mistake goes to
/// standard error and can't corrupt the session, and no child inherits either pipe.
///
/// # Errors
///
/// The system refuses.
#[cfg(unix)]
pub fn take() -> io::Result<(std::fs::File, std::fs::File)> {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    // Both copies are closed on exec.
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((input.into(), output.into()))
}

/// On other systems the pipes stay in place; children get pipes of their own in any case.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn take() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}

/// Calls `closed` as soon as `output` has no reader. The waiting thread ends with the process.
///
/// # Errors
///
/// The system starts no thread.
#[cfg(unix)]
pub fn watch_reader(
    output: &std::fs::File,
    closed: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    let output = output.try_clone()?;
    let watch = move || loop {
        // Without a flag, errors and hang-ups are still reported.
        let mut watched = [PollFd::new(&output, PollFlags::empty())];
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => {}
            // Without polling, a failed write detects the hang-up.
            Err(_) => return,
            Ok(_) => return closed(),
        }
    };
    let thread = std::thread::Builder::new().name("mcpd-output".to_owned());
    thread.spawn(watch).map(drop)
}

/// On other systems, a failed write detects the hang-up.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub fn watch_reader(_: &io::Stdout, _: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn reader_that_leaves_is_noticed() {
        let (reader, writer) = io::pipe().unwrap();
        let (sender, receiver) = mpsc::channel();
        let output = File::from(OwnedFd::from(writer));
        watch_reader(&output, move || sender.send(()).unwrap()).unwrap();
        let short = Duration::from_millis(50);
        assert!(receiver.recv_timeout(short).is_err(), "the reader is there");
        drop(reader);
        receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}
