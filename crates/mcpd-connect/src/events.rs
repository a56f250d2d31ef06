//! Events in the body of a response.

use mcpd_protocol::event_stream::{Event, Parser};
use reqwest::Response;

/// Events of a response.
#[derive(Debug)]
pub(crate) struct Events {
    response: Option<Response>,
    chunk: bytes::Bytes,
    parser: Parser,
}

impl Events {
    pub(crate) fn new(response: Response, max_size: usize) -> Self {
        Self {
            response: Some(response),
            chunk: bytes::Bytes::new(),
            parser: Parser::new(max_size),
        }
    }

    /// Waits for the next event; returns none at the end of the stream.
    ///
    /// # Errors
    ///
    /// Returns the reason why the stream broke off.
    ///
    /// # Cancel safety
    ///
    /// No event is lost.
    pub(crate) async fn next_event(&mut self) -> Result<Option<Event>, String> {
        loop {
            let mut rest = &self.chunk[..];
            let parsed = self.parser.parse(&mut rest);
            let used = self.chunk.len() - rest.len();
            self.chunk = self.chunk.split_off(used);
            match parsed {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(error) => return Err(error.to_string()),
            }
            let Some(response) = &mut self.response else {
                return Ok(None);
            };
            match response.chunk().await {
                Ok(Some(chunk)) => self.chunk = chunk,
                Ok(None) => {
                    self.response = None;
                    return Ok(self.parser.finish());
                }
                Err(error) => {
                    self.response = None;
                    return Err(crate::error::chain(&error.without_url()));
                }
            }
        }
    }
}
