//! HTTP+SSE transport of revision 2024-11-05: a stream with all messages from the server, and a
//! path to post to. Off by default. Each stream owns a [`Connection`], and ends it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

use super::body_reader::BodyReader;
use super::events::Events;
use super::headers;
use super::reply::{self, ResponseBody};
use crate::message::tool_names::ToolNames;
use crate::message::transport::Transport;
use crate::policy::principal::Principal;
use crate::server::Server;
use crate::support::random_id;
use crate::support::sync::lock;
use crate::transport::connection::Connection;

/// Path for opening a stream.
pub(super) const STREAM_PATH: &str = "/sse";
/// Path for posting messages.
pub(super) const MESSAGES_PATH: &str = "/messages";

/// Maximum number of open streams.
const MAX_STREAMS: usize = 1024;

/// Open streams, by the id in the address that their clients post to.
#[derive(Debug, Default)]
pub(super) struct Streams {
    by_id: Mutex<BTreeMap<String, Weak<Connection>>>,
}

impl Streams {
    /// Opens a stream. Its first event names the address to post to.
    pub(super) fn open(
        &self,
        server: &Server,
        names: ToolNames,
        principal: Principal,
    ) -> Response<ResponseBody> {
        let id = random_id::new();
        let (connection, messages) =
            Connection::open_over(Transport::HttpSse, principal, server, names);
        let connection = Arc::new(connection);
        let mut streams = lock(&self.by_id);
        streams.retain(|_, connection| connection.strong_count() > 0);
        if streams.len() >= MAX_STREAMS {
            return reply::text(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open");
        }
        let endpoint = format!("event: endpoint\ndata: {MESSAGES_PATH}?sessionId={id}\n\n");
        streams.insert(id, Arc::downgrade(&connection));
        let stopping = server.engine().stopping.clone();
        // The connection lives as long as its stream, which only the client or the server ends.
        let open = async move {
            stopping.cancelled().await;
            drop(connection);
            None
        };
        let events = Events::new(None, messages, Box::pin(open));
        reply::without_end(reply::events(events.beginning_with(Some(endpoint.into()))))
    }

    /// Delivers a message to the stream that the address names; the response goes there.
    pub(super) async fn post(
        &self,
        parts: &Parts,
        body: &mut Incoming,
        server: &Server,
        principal: &Principal,
        body_reader: &BodyReader,
    ) -> Response<ResponseBody> {
        let connection = self.connection(parts.uri.query().unwrap_or_default());
        let Some(connection) = connection.filter(|found| found.principal() == principal) else {
            return stream_gone();
        };
        let (body, reservation) = match body_reader.read(principal, &parts.headers, body).await {
            Ok(read) => read,
            Err(response) => return *response,
        };
        let secrets = headers::secrets(server, &parts.headers);
        let delivered = connection.deliver_from(principal, reservation, secrets, &body);
        match delivered.await {
            Ok(()) => reply::accepted_response(),
            Err(_) => stream_gone(),
        }
    }

    fn connection(&self, query: &str) -> Option<Arc<Connection>> {
        let id = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("sessionId="))?;
        lock(&self.by_id).get(id)?.upgrade()
    }
}

fn stream_gone() -> Response<ResponseBody> {
    reply::text(
        StatusCode::NOT_FOUND,
        "unknown stream; open one with GET /sse",
    )
}
