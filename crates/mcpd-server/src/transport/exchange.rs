//! Exchange: the one gate of requests, whatever transport carries them. Decides the wire of each
//! request and checks its envelope; the transport adds what it alone knows of the message.

use std::sync::Arc;

use mcpd_protocol::jsonrpc::{ErrorObject, Request};
use mcpd_protocol::meta::RequestMeta;
use mcpd_protocol::{Params, Wire};

use crate::client::request::context::{Context, PeerContext};
use crate::client::request::envelope::StatelessEnvelope;
use crate::client::session::Session;
use crate::message::reply::Later;
use crate::methods::lifecycle;
use crate::policy::principal::Principal;
use crate::server::Server;

/// Channel over which a request arrived.
pub(crate) trait Channel {
    /// Returns whether a request is on the stateless wire.
    ///
    /// # Errors
    ///
    /// The channel does not carry the request's revision.
    fn is_stateless(&self, meta: &RequestMeta<'_>) -> Result<bool, ErrorObject>;

    /// Checks the revision of a stateless request against the one that the channel names.
    ///
    /// # Errors
    ///
    /// `-32020` if they differ.
    fn check_version(&self, _version: &str) -> Result<(), ErrorObject> {
        Ok(())
    }

    /// Checks a stateless request against the parts of it that the channel repeats.
    ///
    /// # Errors
    ///
    /// `-32020` if they differ.
    fn check(&self, _request: &Request<'_>, _params: &Params<'_>) -> Result<(), ErrorObject> {
        Ok(())
    }
}

/// Kind of a request, by its wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// Stands alone.
    Stateless,
    /// Opens a session.
    Initialize,
    /// Belongs to a session, or to a client that never opened one.
    Stateful,
}

impl Exchange {
    /// Decides the wire of a request.
    ///
    /// # Errors
    ///
    /// The channel does not carry the request's revision.
    pub(crate) fn of(
        request: &Request<'_>,
        params: &Params<'_>,
        channel: &impl Channel,
    ) -> Result<Self, ErrorObject> {
        Ok(match channel.is_stateless(&params.meta)? {
            true => Self::Stateless,
            false if request.method == "initialize" => Self::Initialize,
            false => Self::Stateful,
        })
    }
}

/// Checks the envelope of a stateless request of `peer`, and builds its context.
///
/// # Errors
///
/// The envelope is malformed, or differs from what the channel repeats of it.
#[inline]
pub(crate) fn open_stateless(
    server: &Server,
    request: &Request<'_>,
    params: &Params<'_>,
    channel: &impl Channel,
    peer: Arc<PeerContext>,
) -> Result<Context, ErrorObject> {
    let envelope = StatelessEnvelope::new(&params.meta)?;
    channel.check_version(&envelope.version)?;
    let context = envelope.context(server.engine().stamp(Wire::Stateless), peer)?;
    channel.check(request, params)?;
    Ok(context.narrow_by_client(&server.engine().selections.load()))
}

/// Opens a session for `principal`. Returns it with the result of `initialize`.
///
/// # Errors
///
/// The client has not introduced itself properly.
pub(crate) fn initialize(
    server: &Server,
    params: &Params<'_>,
    principal: &Principal,
) -> Result<(Session, Later), ErrorObject> {
    let introduction = lifecycle::introduce(server, params)?;
    let result = lifecycle::initialize(server.clone(), introduction.version, principal.clone());
    let session = Session::new(introduction, principal, &server.engine().subscribers);
    Ok((session, Box::pin(result)))
}
