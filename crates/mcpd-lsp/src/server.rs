//! The server: one thread that answers requests in their order, and publishes the problems of
//! changed documents once no message is waiting (debounce): of many versions, the latest.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Exit, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{
    CodeActionRequest, Completion as CompletionRequest, HoverRequest, Request as _, Shutdown,
};
use lsp_types::{
    CodeActionParams, CompletionParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, Hover, HoverContents, HoverParams, InitializeParams, MarkupContent,
    MarkupKind, PublishDiagnosticsParams, TextDocumentPositionParams, Uri,
};
use mcpd_check::Selection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::answer;
use crate::document::{Document, Schemas};
use crate::problem::{Checker, Problem};
use crate::text::Encoding;

/// Quiet time after which problems are published. A message that is waiting arrives at once.
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(2);

/// End of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol knows two exit codes")]
pub enum Ending {
    /// The editor asked for the shutdown first: exit code 0.
    Clean,
    /// It did not, or is gone: exit code 1.
    Abrupt,
}

/// Failure of the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Threads or pipes of the system failed.
    #[error("use standard input and output")]
    Io(#[from] std::io::Error),
    /// The editor does not follow the protocol.
    #[error("follow the editor: {0}")]
    Protocol(String),
}

/// Serves an editor on standard input and output until it leaves. Faults of other rules than
/// those of `selection` are not shown.
///
/// # Errors
///
/// The editor does not follow the protocol, or the pipes fail.
pub fn serve_stdio(selection: Selection) -> Result<Ending, Error> {
    let (connection, threads) = Connection::stdio();
    let ending = serve(&connection, selection)?;
    // The writer ends with the connection.
    drop(connection);
    if ending == Ending::Clean {
        threads.join()?;
    }
    Ok(ending)
}

/// Serves an editor on a connection until it leaves.
pub(crate) fn serve(connection: &Connection, selection: Selection) -> Result<Ending, Error> {
    let Ok((id, params)) = connection.initialize_start() else {
        return Ok(Ending::Abrupt);
    };
    let wrong = |error: &dyn std::fmt::Display| Error::Protocol(error.to_string());
    let params: InitializeParams = serde_json::from_value(params).map_err(|error| wrong(&error))?;
    let general = params.capabilities.general;
    let offered = general.and_then(|general| general.position_encodings);
    let encoding = Encoding::negotiate(offered.as_deref());
    let result = json!({
        "capabilities": answer::capabilities(encoding),
        "serverInfo": {"name": "mcpd", "version": env!("CARGO_PKG_VERSION")},
    });
    if connection.initialize_finish(id, result).is_err() {
        return Ok(Ending::Abrupt);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut server = Server {
        connection,
        encoding,
        schemas: Schemas::load(),
        checker: Checker::new(selection, runtime),
        documents: BTreeMap::new(),
        unpublished: Vec::new(),
        is_shut_down: false,
    };
    Ok(server.run())
}

struct Server<'c> {
    connection: &'c Connection,
    encoding: Encoding,
    schemas: Schemas,
    checker: Checker,
    /// Open documents, by their addresses.
    documents: BTreeMap<String, Document>,
    /// Addresses of those that have changed since their problems were published.
    unpublished: Vec<String>,
    is_shut_down: bool,
}

impl Server<'_> {
    fn run(&mut self) -> Ending {
        loop {
            let received = if self.unpublished.is_empty() {
                self.connection.receiver.recv().map_err(|_| false)
            } else {
                let received = self.connection.receiver.recv_timeout(DEBOUNCE_INTERVAL);
                received.map_err(|error| error.is_timeout())
            };
            match received {
                Ok(Message::Request(request)) => {
                    let response = self.answer(request);
                    self.send(response);
                }
                Ok(Message::Notification(note)) if note.method == Exit::METHOD => {
                    return if self.is_shut_down {
                        Ending::Clean
                    } else {
                        Ending::Abrupt
                    };
                }
                Ok(Message::Notification(note)) => self.follow(note),
                // The server asks for nothing.
                Ok(Message::Response(_)) => {}
                Err(true) => {
                    let uri = self.unpublished.pop();
                    uri.iter().for_each(|uri| self.publish(uri));
                }
                Err(false) => return Ending::Abrupt,
            }
        }
    }

    /// Sends a message; the loop ends soon if the editor is gone.
    fn send(&self, message: impl Into<Message>) {
        self.connection.sender.send(message.into()).ok();
    }

    fn answer(&mut self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let answered = match method.as_str() {
            _ if self.is_shut_down => {
                let message = "the server is shut down".to_owned();
                return Response::new_err(id, ErrorCode::InvalidRequest as i32, message);
            }
            Shutdown::METHOD => {
                self.is_shut_down = true;
                Ok(Value::Null)
            }
            CompletionRequest::METHOD => parse(params).map(|params| self.complete(&params)),
            HoverRequest::METHOD => parse(params).map(|params| self.hover(&params)),
            CodeActionRequest::METHOD => parse(params).map(|params| self.actions(&params)),
            _ => {
                let message = format!("there is no method `{method}`");
                return Response::new_err(id, ErrorCode::MethodNotFound as i32, message);
            }
        };
        match answered {
            Ok(result) => Response::new_ok(id, result),
            Err(message) => Response::new_err(id, ErrorCode::InvalidParams as i32, message),
        }
    }

    /// Follows a change; one that can't be read is passed over, as the protocol has no answer.
    fn follow(&mut self, note: Notification) {
        let uri = match note.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let Ok(DidOpenTextDocumentParams { text_document }) = parse(note.params) else {
                    return;
                };
                let uri = text_document.uri;
                let key = uri.as_str().to_owned();
                let document = Document::new(uri, text_document.version, text_document.text);
                self.documents.insert(key.clone(), document);
                key
            }
            DidChangeTextDocument::METHOD => {
                let Ok(params) = parse::<DidChangeTextDocumentParams>(note.params) else {
                    return;
                };
                let key = params.text_document.uri.as_str().to_owned();
                let Some(document) = self.documents.get_mut(&key) else {
                    return;
                };
                document.version = params.text_document.version;
                document.problems = None;
                self.encoding
                    .apply(&mut document.text, params.content_changes);
                key
            }
            DidCloseTextDocument::METHOD => {
                let Ok(params) = parse::<DidCloseTextDocumentParams>(note.params) else {
                    return;
                };
                let uri = params.text_document.uri;
                self.documents.remove(uri.as_str());
                self.send_problems(uri, Vec::new(), None);
                return;
            }
            _ => return,
        };
        self.unpublished.retain(|known| *known != uri);
        self.unpublished.push(uri);
    }

    fn publish(&mut self, uri: &str) {
        let Some(problems) = self.problems(uri) else {
            return;
        };
        let document = &self.documents[uri];
        let shown = problems
            .iter()
            .map(|problem| answer::diagnostic(self.encoding, document, problem));
        self.send_problems(
            document.uri.clone(),
            shown.collect(),
            Some(document.version),
        );
    }

    fn send_problems(
        &self,
        uri: Uri,
        diagnostics: Vec<lsp_types::Diagnostic>,
        version: Option<i32>,
    ) {
        let params = PublishDiagnosticsParams {
            uri,
            diagnostics,
            version,
        };
        self.send(Notification::new(
            PublishDiagnostics::METHOD.to_owned(),
            params,
        ));
    }

    /// The problems of a document; none if it is not open.
    fn problems(&mut self, uri: &str) -> Option<Rc<[Problem]>> {
        let document = self.documents.get_mut(uri)?;
        let problems = document.problems.take().unwrap_or_else(|| {
            let found = self
                .checker
                .problems(document.kind, &document.path, &document.text);
            found.into()
        });
        Some(Rc::clone(document.problems.insert(problems)))
    }

    /// The document and the byte that a request is about.
    fn place(&self, params: &TextDocumentPositionParams) -> Option<(&Document, usize)> {
        let document = self.documents.get(params.text_document.uri.as_str())?;
        Some((
            document,
            self.encoding.offset(&document.text, params.position),
        ))
    }

    fn complete(&self, params: &CompletionParams) -> Value {
        let Some((document, at)) = self.place(&params.text_document_position) else {
            return Value::Null;
        };
        let words = document.complete(&self.schemas, at).into_iter();
        to_value(
            words
                .map(|word| answer::completion(self.encoding, document, word))
                .collect::<Vec<_>>(),
        )
    }

    fn hover(&self, params: &HoverParams) -> Value {
        let found = self
            .place(&params.text_document_position_params)
            .and_then(|(document, at)| {
                let (value, span) = document.hover(&self.schemas, at)?;
                let range = self.encoding.range(&document.text, &span);
                let kind = MarkupKind::Markdown;
                let contents = HoverContents::Markup(MarkupContent { kind, value });
                Some(Hover {
                    contents,
                    range: Some(range),
                })
            });
        to_value(found)
    }

    fn actions(&mut self, params: &CodeActionParams) -> Value {
        let uri = params.text_document.uri.as_str();
        let Some(problems) = self.problems(uri) else {
            return Value::Null;
        };
        let document = &self.documents[uri];
        let offset = |position| self.encoding.offset(&document.text, position);
        let wanted: Range<usize> = offset(params.range.start)..offset(params.range.end);
        let actions = answer::Actions {
            encoding: self.encoding,
            checker: &self.checker,
            document,
        };
        to_value(actions.list(&problems, &wanted, params.context.only.as_deref()))
    }
}

fn parse<T: DeserializeOwned>(params: Value) -> Result<T, String> {
    serde_json::from_value(params).map_err(|error| error.to_string())
}

fn to_value(result: impl Serialize) -> Value {
    serde_json::to_value(result).expect("results have no keys but strings")
}

#[cfg(test)]
mod tests;
