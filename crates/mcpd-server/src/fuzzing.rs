//! Access to private functions for fuzz targets. Compiled for those alone.

use std::sync::LazyLock;

use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::Message;

use crate::catalog::cursor;
use crate::execution::seal::{Binding, Seal};

/// Returns whether `forged` is accepted as sealed state.
#[must_use]
pub fn state_opens(forged: &str) -> bool {
    static SEAL: LazyLock<Seal> = LazyLock::new(|| Seal::new(b"fuzzing"));
    let binding = Binding {
        principal: "agent",
        method: "tools/call",
        name: "greet",
        arguments: b"{}",
    };
    SEAL.unseal(forged, binding).is_ok()
}

/// Decodes `forged` as a cursor of the list of tools.
///
/// # Panics
///
/// Panics if two cursors mean the same place.
pub fn cursor(forged: &str) {
    if let Ok(key) = cursor::decode(b't', forged) {
        assert_eq!(cursor::encode(b't', &key), forged);
    }
}

/// Checks headers against a body.
///
/// # Panics
///
/// Panics if a missing or different header is accepted.
#[cfg(feature = "http")]
pub fn headers(version: &str, method: &str, name: &str, body: &[u8]) {
    use hyper::header::{HeaderMap, HeaderValue};

    use crate::transport::exchange::Channel as _;

    let Ok(Message::Request(request)) = Message::decode(body) else {
        return;
    };
    let Ok(params) = Params::read(request.params) else {
        return;
    };
    let mut headers = HeaderMap::new();
    let given = [
        ("mcp-protocol-version", version),
        ("mcp-method", method),
        ("mcp-name", name),
    ];
    for (header, value) in given {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(header, value);
        }
    }
    let accepted = headers
        .check_version(version.trim())
        .and_then(|()| headers.check(&request, &params))
        .is_ok();
    assert!(
        !accepted || method.trim() == request.method,
        "a different method is accepted"
    );
}
