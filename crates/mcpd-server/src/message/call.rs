//! Result of a call of a tool, at once or later.

use std::future::ready;
use std::pin::Pin;

use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{CallToolResult, Interactive};
use serde_json::value::RawValue;

/// Ending of a call.
pub(crate) type CallEnding = Result<Interactive<CallToolResult>, ErrorObject>;

/// Future of a call; dropping it ends the run.
pub(crate) type CallFuture = Pin<Box<dyn Future<Output = CallEnding> + Send>>;

/// Immediate response to a call.
pub(crate) enum CallStart {
    /// Rejected before anything runs.
    Refused(Box<CallEnding>),
    Started(CallFuture),
}

impl CallStart {
    pub(crate) fn reject(ended: CallEnding) -> Self {
        Self::Refused(Box::new(ended))
    }

    /// Returns a future for callers that treat a rejection like any other ending.
    pub(crate) fn into_run(self) -> CallFuture {
        match self {
            Self::Refused(ended) => Box::pin(ready(*ended)),
            Self::Started(run) => run,
        }
    }
}

/// Call of a tool that the arguments of another call hold.
#[derive(Debug)]
pub(crate) struct InnerCall {
    /// Name of the tool, as JSON.
    pub(crate) name: Box<RawValue>,
    pub(crate) arguments: Box<RawValue>,
}

impl InnerCall {
    /// Returns the parameters of this call, with everything else from `outer`.
    pub(crate) fn params<'a>(&'a self, outer: &Params<'a>) -> Params<'a> {
        outer.with_members([("name", &*self.name), ("arguments", &*self.arguments)])
    }
}
