//! Request envelopes: revision, capabilities and options that a request carries in `_meta`. Every
//! message is judged separately: an earlier one counts only through the session it opened.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::meta::{self, RequestMeta};
use mcpd_protocol::{ClientCapabilities, Implementation, ProtocolVersion, Stamp, Wire};

use crate::client::request::context::{Context, PeerContext};
use crate::client::request::side_stream::SideStream;
use crate::client::session::Session;
use crate::message::trace::TraceContext;
use crate::observe::audit::request_log::RequestRecord;

/// Complete envelope of a stateless request; its revision may still be unsupported.
#[derive(Debug)]
pub(crate) struct StatelessEnvelope<'a> {
    /// Revision named by the request.
    pub(crate) version: Cow<'a, str>,
    capabilities: Arc<ClientCapabilities>,
    meta: &'a RequestMeta<'a>,
}

impl<'a> StatelessEnvelope<'a> {
    /// Checks the members that every stateless request must carry.
    ///
    /// # Errors
    ///
    /// `-32602`, naming the member that is missing or wrong.
    pub(crate) fn new(meta: &'a RequestMeta<'a>) -> Result<Self, ErrorObject> {
        let version = meta
            .protocol_version()?
            .ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
        let text = meta.client_capabilities_text();
        let capabilities =
            LAST_CAPABILITIES.with(|last| last.get(text, || meta.client_capabilities()))?;
        Ok(Self {
            version,
            capabilities: capabilities.ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?,
            meta,
        })
    }

    /// Builds the context of the request, whose results get the `stamp` of this wire.
    ///
    /// # Errors
    ///
    /// `-32022` for a revision that this wire does not speak, `-32602` for a faulty optional
    /// member.
    pub(crate) fn context(
        &self,
        stamp: Arc<Stamp>,
        peer: Arc<PeerContext>,
    ) -> Result<Context, ErrorObject> {
        let version = stateless_version(&self.version)?;
        let side = SideStream::new(
            peer.outbox.clone(),
            version,
            self.meta.log_level()?,
            self.meta.progress_token()?,
        );
        Ok(Context {
            version,
            trace: TraceContext::of_message(self.meta).or(&peer.trace),
            peer,
            session: None,
            capabilities: Arc::clone(&self.capabilities),
            client: LAST_CLIENT
                .with(|last| last.get(self.meta.client_info_text(), || self.meta.client_info()))?,
            side,
            stamp,
            record: RequestRecord::default(),
            approved: None,
            task_run: None,
        })
    }
}

/// Parses the revision. "If the server does not support the requested version, it MUST respond
/// with an error" -- 2026-07-28/basic/versioning. The older revisions begin with a handshake, not
/// with `_meta`.
fn stateless_version(requested: &str) -> Result<ProtocolVersion, ErrorObject> {
    let is_stateless = |version: &ProtocolVersion| version.wire() == Wire::Stateless;
    let version = requested.parse().ok().filter(is_stateless);
    version.ok_or_else(|| {
        let mut supported = ProtocolVersion::ALL.to_vec();
        supported.retain(is_stateless);
        ErrorObject::unsupported_protocol_version(requested, &supported)
    })
}

thread_local! {
    static LAST_CAPABILITIES: LastRead<ClientCapabilities> = LastRead::default();
    static LAST_CLIENT: LastRead<Implementation> = LastRead::default();
}

/// Value that was read last, with its text: nearly all requests of a client say the same of it.
/// All clients of a thread share it, as a value depends on its text alone.
struct LastRead<T>(RefCell<Option<(Box<str>, Arc<T>)>>);

impl<T> Default for LastRead<T> {
    fn default() -> Self {
        Self(RefCell::new(None))
    }
}

impl<T> LastRead<T> {
    /// Longest text that is kept, in bytes.
    const MAX_KEPT: usize = 1024;

    /// Returns the value of `text`, which `read` reads unless it is the last one.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    fn get(
        &self,
        text: Option<&str>,
        read: impl FnOnce() -> Result<Option<T>, ErrorObject>,
    ) -> Result<Option<Arc<T>>, ErrorObject> {
        let Some(text) = text else {
            return Ok(read()?.map(Arc::new));
        };
        let last = self.0.borrow();
        if let Some((known, value)) = last.as_ref()
            && **known == *text
        {
            return Ok(Some(Arc::clone(value)));
        }
        drop(last);
        let value = read()?.map(Arc::new);
        if let Some(value) = value.as_ref().filter(|_| text.len() <= Self::MAX_KEPT) {
            self.0.replace(Some((text.into(), Arc::clone(value))));
        }
        Ok(value)
    }
}

fn missing(key: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("`_meta` lacks `{key}`"))
}

/// Builds the context of a request on the stateful wire, whose results get the `stamp` of it.
///
/// # Errors
///
/// `-32602` for an invalid progress token.
pub(crate) fn stateful_context(
    stamp: Arc<Stamp>,
    meta: &RequestMeta<'_>,
    session: Arc<Session>,
    peer: Arc<PeerContext>,
) -> Result<Context, ErrorObject> {
    let version = session.version;
    let side = SideStream::new(
        peer.outbox.clone(),
        version,
        session.log_level(),
        meta.progress_token()?,
    );
    Ok(Context {
        version,
        trace: TraceContext::of_message(meta).or(&peer.trace),
        peer,
        capabilities: Arc::clone(&session.capabilities),
        client: session.client.clone(),
        session: Some(session),
        side,
        stamp,
        record: RequestRecord::default(),
        approved: None,
        task_run: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_text_is_read_once() {
        let last = LastRead::default();
        let get = |text: &str, value| {
            let read = || match value {
                Some(value) => Ok(Some(value)),
                None => Err(missing("value")),
            };
            let value = last.get(Some(text), read).ok()?;
            value.map(|value| *value)
        };
        assert_eq!(get("a", Some(1)), Some(1));
        assert_eq!(get("a", Some(2)), Some(1), "not read again");
        assert_eq!(get("b", Some(3)), Some(3));
        assert_eq!(get("c", None), None, "a fault");
        assert_eq!(get("c", Some(4)), Some(4), "which is not kept");
        let long = "d".repeat(2000);
        assert_eq!(get(&long, Some(5)), Some(5));
        assert_eq!(get(&long, Some(6)), Some(6), "too long to be kept");
    }
}
