//! What callers have to get past before anything is done for them: how fast they are, and whose turn it is.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use tokio::task::yield_now;

use crate::Server;
use crate::call;
use crate::catalog::MAX_SIZE;
use crate::context::Context;
use crate::principal::Principal;
use crate::quota::{self, Pace};
use crate::room::{Crowded, Room, Taken};
use crate::turns::{Busy, Lane, Turns};

/// How much of what is read may be waiting for its readers: so many of the largest files, and so many for one client.
const CONTENTS: usize = 16;
const CONTENTS_OF_ONE: usize = 4;
/// In bytes.
const LARGEST: usize = MAX_SIZE as usize;

/// The gates of one server.
#[derive(Debug)]
pub(crate) struct Admission {
    /// How fast callers are.
    pub(crate) pace: Pace,
    /// Who may run a process now.
    pub(crate) runs: Turns,
    /// Who may call now what is no process of ours.
    pub(crate) calls: Turns,
    /// What is read for somebody, until they have it.
    contents: Room,
}

impl Admission {
    /// With so many processes at a time.
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            pace: Pace::default(),
            runs: Turns::new(processes),
            calls: Turns::new(usize::MAX),
            contents: Room::new(LARGEST, CONTENTS, CONTENTS_OF_ONE),
        }
    }
}

/// Waits for room for so many bytes that are to be read for a caller.
///
/// # Errors
///
/// There was none for too long.
pub(crate) async fn room(
    server: &Server,
    principal: &Principal,
    bytes: u64,
) -> Result<Option<Taken>, ErrorObject> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let taken = server.admission().contents.take(principal, bytes).await;
    taken.map_err(|Crowded| {
        server.metrics().refused(Refused::Busy);
        quota::crowded("too much is being read from this server at once")
    })
}

/// Does `work` when it is the caller's turn. It runs no process of ours, so that nothing limits it but the quota of its
/// caller, who knows it by its kind and name, such as the tool `x`.
pub(crate) fn in_turn<T, N, W>(
    server: &Server,
    context: &Context,
    lane: &Arc<Lane>,
    (kind, name): (&'static str, N),
    work: W,
) -> impl Future<Output = Result<T, ErrorObject>> + use<T, N, W>
where
    N: fmt::Display,
    W: Future<Output = Result<T, ErrorObject>>,
{
    let turns = server.admission().calls.clone();
    let (caller, lane) = (context.principal.clone(), Arc::clone(lane));
    let (metrics, trail) = (Arc::clone(server.metrics()), context.trail.clone());
    async move {
        match turns.take(&caller, &lane).await {
            Ok(_turn) => {
                // Whoever takes in messages has each request begin, and leaves the rest to the task that waits for the
                // answer: whatever a function does before it first waits, messages are read and answered meanwhile.
                yield_now().await;
                work.await
            }
            Err(busy) => {
                metrics.refused(Refused::Busy);
                trail.ended_as(Busy::NAME);
                Err(call::busy_with(&format!("The {kind} `{name}`"), busy))
            }
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
