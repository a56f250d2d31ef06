//! Request envelopes: revision, capabilities and options that a request carries in `_meta`. Every
//! message is judged separately: an earlier one counts only through the session it opened.

use std::borrow::Cow;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::meta::{self, RequestMeta};
use mcpd_protocol::{ClientCapabilities, ProtocolVersion, Stamp, Wire};

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
        let capabilities = meta
            .client_capabilities()?
            .ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?;
        Ok(Self {
            version,
            capabilities: Arc::new(capabilities),
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
            client: self.meta.client_info()?.map(Arc::new),
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
