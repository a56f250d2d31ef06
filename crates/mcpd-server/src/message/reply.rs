//! Result of a method, now or later.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::FutureExt as _;
use mcpd_protocol::jsonrpc::ErrorObject;

/// Method name in metrics and spans for an unknown method: a client chooses that name freely, and
/// must not create labels.
pub(crate) const OTHER_METHOD: &str = "_OTHER";

/// Encoded result of a method, or the error.
pub(crate) type MethodResult = Result<Bytes, ErrorObject>;

/// Result now, or a future of it; dropping the future cancels the request.
pub(crate) enum Handled {
    Now(MethodResult),
    Later(Later),
}

/// Future of a result.
pub(crate) type Later = Pin<Box<dyn Future<Output = MethodResult> + Send>>;

impl Handled {
    /// Wraps the future of a result, and turns a panic into an error.
    pub(crate) fn later(result: impl Future<Output = MethodResult> + Send + 'static) -> Self {
        let result = AssertUnwindSafe(result).catch_unwind();
        Self::Later(Box::pin(result.map(unless_panicked)))
    }
}

/// Turns a panic of a handler into the failure of its request alone. Shared state is never left
/// half changed, for locks are never held across code that can panic.
pub(crate) fn unless_panicked<T>(
    handled: std::thread::Result<Result<T, ErrorObject>>,
) -> Result<T, ErrorObject> {
    // The panic hook has printed the message on stderr.
    handled.unwrap_or_else(|_| {
        Err(ErrorObject::internal_error(
            "internal error: the request handler panicked",
        ))
    })
}
