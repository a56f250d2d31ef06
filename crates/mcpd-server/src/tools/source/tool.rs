//! Tool of a source: a function that is called, and the name of the source.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::CallToolResult;
use mcpd_protocol::jsonrpc::ErrorObject;
use serde_json::value::RawValue;

use super::convert_error;
use crate::message::arguments::{arguments_text, invalid_arguments};
use crate::message::call::CallFuture;
use crate::tools::native::CallContext;

/// Tool that runs elsewhere.
pub(crate) struct RemoteTool {
    source: Arc<str>,
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
            start: Box::new(move |arguments, context| {
                let call = call(arguments, context);
                Box::pin(async { Ok(call.await.map_err(convert_error)?.into()) })
            }),
        }
    }

    /// Origin, for people.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Starts a call. Sends only objects, and none with a duplicate key: the access rules may
    /// have judged one value, and the source would read the other.
    pub(crate) fn call(&self, arguments: Option<&RawValue>, context: CallContext) -> CallFuture {
        if let Err(fault) = mcpd_scriptspec::members(arguments) {
            let refused = invalid_arguments(&fault.to_string());
            return Box::pin(std::future::ready(Ok(refused.into())));
        }
        let arguments = RawValue::from_string(arguments_text(arguments).to_owned());
        (self.start)(arguments.expect("what has members is JSON"), context)
    }
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTool")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
