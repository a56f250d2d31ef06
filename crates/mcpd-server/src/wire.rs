//! What a request's envelope says about how it wants to be answered. Every message is judged by itself:
//! what an earlier one said counts only through the session it opened.

use std::borrow::Cow;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::meta::{self, RequestMeta};
use mcpd_protocol::{ClientCapabilities, ProtocolVersion, Wire};
use tokio_util::sync::CancellationToken;

use crate::Server;
use crate::access::NeededScope;
use crate::audit::trail::Trail;
use crate::catalog::ToolNames;
use crate::context::{Context, SideStream};
use crate::mirror::ParameterHeaders;
use crate::outbox::Outbox;
use crate::principal::Principal;
use crate::room::Held;
use crate::session::Session;
use crate::trace::TraceContext;

/// The envelope of a stateless request, complete; its revision may still be one we don't speak.
#[derive(Debug)]
pub(crate) struct StatelessEnvelope<'a> {
    /// The revision the request says it is in.
    pub(crate) version: Cow<'a, str>,
    capabilities: Arc<ClientCapabilities>,
    meta: &'a RequestMeta<'a>,
}

/// What carries the messages of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// The embedding program.
    Channel,
    Stdio,
    #[cfg(feature = "http")]
    Http,
    /// The two paths of 2024-11-05.
    #[cfg(feature = "http")]
    HttpSse,
}

impl Transport {
    /// What records call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Stdio => "stdio",
            #[cfg(feature = "http")]
            Self::Http | Self::HttpSse => "http",
        }
    }

    /// Checks that it carries requests of the stateless wire. HTTP+SSE is of 2024-11-05, and requests of 2026-07-28 have
    /// headers over HTTP that nobody compares there.
    ///
    /// # Errors
    ///
    /// `-32600`, saying where they go instead.
    pub(crate) fn check_stateless(self) -> Result<(), ErrorObject> {
        match self {
            Self::Channel | Self::Stdio => Ok(()),
            #[cfg(feature = "http")]
            Self::Http => Ok(()),
            #[cfg(feature = "http")]
            Self::HttpSse => Err(ErrorObject::invalid_request(
                "revisions from 2026-07-28 on are not spoken here; post to /mcp",
            )),
        }
    }
}

/// What a transport adds to every context it makes.
#[derive(Debug, Clone)]
pub(crate) struct Face {
    pub(crate) transport: Transport,
    /// Who is on the other side.
    pub(crate) principal: Principal,
    /// What the message takes.
    pub(crate) held: Held,
    /// Where the transport learns of the scope that a request lacks.
    pub(crate) needed_scope: NeededScope,
    /// How lists spell the names of tools.
    pub(crate) names: ToolNames,
    /// Where notifications go.
    pub(crate) outbox: Outbox,
    /// The trace that the transport knows of, for messages that name none.
    pub(crate) trace: TraceContext,
    /// Arguments repeated in headers, where there are any headers.
    pub(crate) parameters: Option<Arc<ParameterHeaders>>,
    /// Cancelled when the transport wants to end what never ends by itself.
    pub(crate) closing: CancellationToken,
}

impl<'a> StatelessEnvelope<'a> {
    /// Checks what every stateless request must carry.
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

    /// The context the request is answered in.
    ///
    /// # Errors
    ///
    /// `-32022` for a revision that is not spoken this way, `-32602` for a faulty optional member.
    pub(crate) fn context(&self, server: &Server, face: Face) -> Result<Context, ErrorObject> {
        let version = stateless_version(&self.version)?;
        let side = SideStream::new(
            face.outbox,
            version,
            self.meta.log_level()?,
            self.meta.progress_token()?,
        );
        Ok(Context {
            version,
            transport: face.transport,
            principal: face.principal,
            held: face.held,
            needed_scope: face.needed_scope,
            names: face.names,
            session: None,
            capabilities: Arc::clone(&self.capabilities),
            client: self.meta.client_info()?.map(Arc::new),
            trace: TraceContext::of_message(self.meta).or(face.trace),
            side,
            stamp: server.stamp(version.wire()),
            parameters: face.parameters,
            closing: face.closing,
            trail: Trail::default(),
        })
    }
}

/// "If the server does not support the requested version, it MUST respond with an error"
/// -- 2026-07-28/basic/versioning. The older revisions begin with a handshake, not with `_meta`.
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

/// The context of a request on the stateful wire.
///
/// # Errors
///
/// `-32602` for a progress token that is none.
pub(crate) fn stateful_context(
    server: &Server,
    meta: &RequestMeta<'_>,
    session: Arc<Session>,
    face: Face,
) -> Result<Context, ErrorObject> {
    let version = session.version;
    let side = SideStream::new(
        face.outbox,
        version,
        session.log_level(),
        meta.progress_token()?,
    );
    Ok(Context {
        version,
        transport: face.transport,
        principal: face.principal,
        held: face.held,
        needed_scope: face.needed_scope,
        names: face.names,
        capabilities: Arc::clone(&session.capabilities),
        client: session.client.clone(),
        session: Some(session),
        trace: TraceContext::of_message(meta).or(face.trace),
        side,
        stamp: server.stamp(version.wire()),
        parameters: None,
        closing: face.closing,
        trail: Trail::default(),
    })
}
