//! Tool of a source: a function that is called, and the name of the source.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::CallToolResult;
use serde_json::value::RawValue;

use crate::catalog::call::CallContext;
use crate::catalog::handler::convert_error;
use crate::catalog::tool::ToolBody;
use crate::limits::run_queue::ScriptQueue;
use crate::message::arguments::{arguments_text, invalid_arguments};
use crate::message::call::{CallFuture, CallStart};

/// Tool that runs elsewhere.
pub(crate) struct RemoteTool {
    source: Arc<str>,
    queue: Arc<ScriptQueue>,
    start: Box<dyn Fn(Box<RawValue>, CallContext) -> CallFuture + Send + Sync>,
}

impl RemoteTool {
    pub(super) fn new<F, R>(source: Arc<str>, call: F) -> Self
    where
        F: Fn(Box<RawValue>, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<CallToolResult, ErrorObject>> + Send + 'static,
    {
        Self {
            source,
            queue: Arc::default(),
            start: Box::new(move |arguments, context| {
                let call = call(arguments, context);
                Box::pin(async { Ok(call.await.map_err(convert_error)?.into()) })
            }),
        }
    }
}

impl ToolBody for RemoteTool {
    /// Sends only objects, and none with a duplicate key: the access rules may have judged one
    /// value, and the source would read the other.
    fn start(self: Arc<Self>, arguments: Option<&RawValue>, context: CallContext) -> CallStart {
        let permit = context.request_permit(&self.queue, ("tool", context.path().as_str()));
        if let Err(fault) = mcpd_scriptspec::members(arguments) {
            let refused = invalid_arguments(&fault.to_string());
            return CallStart::reject(Ok(refused.into()));
        }
        let arguments = RawValue::from_string(arguments_text(arguments).to_owned());
        let arguments = arguments.expect("what has members is JSON");
        // The function may begin its work when it is called, before its future is polled.
        CallStart::Started(Box::pin(
            permit.run(async move { (self.start)(arguments, context).await }),
        ))
    }

    fn source(&self) -> Option<&str> {
        Some(&self.source)
    }
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTool")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
