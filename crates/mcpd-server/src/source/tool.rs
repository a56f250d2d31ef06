//! What is behind a tool of a source: a function that is called, and the name of the source.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::CallToolResult;
use mcpd_protocol::jsonrpc::ErrorObject;
use serde_json::value::RawValue;

use crate::call::{invalid_arguments, text_of};
use crate::native::CallContext;
use crate::tool::Run;

/// A tool that runs elsewhere.
pub(crate) struct RemoteTool {
    source: Arc<str>,
    start: Box<dyn Fn(Box<RawValue>, CallContext) -> Run + Send + Sync>,
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
                Box::pin(async { Ok(call.await?.into()) })
            }),
        }
    }

    /// Where it runs, for people.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Starts a call. Nothing but an object is ever sent elsewhere.
    pub(crate) fn call(&self, arguments: Option<&RawValue>, context: CallContext) -> Run {
        match RawValue::from_string(text_of(arguments).to_owned()) {
            Ok(arguments) if arguments.get().starts_with('{') => (self.start)(arguments, context),
            _ => {
                let refused = invalid_arguments("they are no JSON object");
                Box::pin(std::future::ready(Ok(refused.into())))
            }
        }
    }
}

impl fmt::Debug for RemoteTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTool")
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
