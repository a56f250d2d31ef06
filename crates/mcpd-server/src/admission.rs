//! What callers have to get past before anything is done for them: how fast they are, and whose turn it is.

use crate::quota::Pace;
use crate::turns::Turns;

/// The gates of one server.
#[derive(Debug)]
pub(crate) struct Admission {
    /// How fast callers are.
    pub(crate) pace: Pace,
    /// Who may run a process now.
    pub(crate) runs: Turns,
    /// Who may call now what is no process of ours.
    pub(crate) calls: Turns,
}

impl Admission {
    /// With so many processes at a time.
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            pace: Pace::default(),
            runs: Turns::new(processes),
            calls: Turns::new(usize::MAX),
        }
    }
}

/// Why something was not even begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its caller was too fast.
    Rate,
    /// Too much was waiting.
    Busy,
    /// It came from where nothing may come from.
    #[cfg(feature = "http")]
    Source,
    /// It had no token, or a wrong one.
    #[cfg(feature = "http")]
    Token,
}
