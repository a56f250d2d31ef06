//! Server-sent events: a response body as a stream of events of bounded size.

use futures_util::stream::{self, Stream};
use mcpd_protocol::event_stream::{Event, Parser};
use reqwest::Response;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

/// Returns the events in the body of a response, each of at most `max_size` bytes.
pub(super) fn decode(
    response: Response,
    max_size: usize,
) -> impl Stream<Item = Result<Sse, SseError>> {
    let start = (Some(response), bytes::Bytes::new(), Parser::new(max_size));
    stream::try_unfold(start, |(mut body, mut chunk, mut parser)| async move {
        loop {
            let mut rest = &chunk[..];
            let event = parser.parse(&mut rest);
            let event = event.map_err(|error| SseError::Body(Box::new(error)))?;
            let used = chunk.len() - rest.len();
            chunk = chunk.split_off(used);
            if let Some(event) = event {
                return Ok(Some((to_sse(event), (body, chunk, parser))));
            }
            let Some(response) = &mut body else {
                return Ok(None);
            };
            match response.chunk().await {
                Ok(Some(next)) => chunk = next,
                Ok(None) => {
                    body = None;
                    let event = parser.finish().map(to_sse);
                    return Ok(event.map(|event| (event, (body, chunk, parser))));
                }
                Err(error) => return Err(SseError::Body(Box::new(error.without_url()))),
            }
        }
    })
}

/// Returns the event as rmcp has it.
fn to_sse(event: Event) -> Sse {
    let Event {
        name,
        data,
        id,
        retry,
        ..
    } = event;
    let text = |text: String| (!text.is_empty()).then_some(text);
    Sse {
        event: text(name),
        data: text(String::from_utf8_lossy(&data).into_owned()),
        id,
        retry,
    }
}
