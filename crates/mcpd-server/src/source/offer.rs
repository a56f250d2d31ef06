//! What one source has at one moment, and what is wrong with it. Bounded: no source makes the lists of the others slow.

use std::sync::Arc;

use mcpd_protocol as protocol;
use mcpd_protocol::CallToolResult;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_scriptspec::{PathError, ScriptPath};
use serde_json::value::RawValue;

use super::RemoteTool;
use crate::native::CallContext;
use crate::schema;
use crate::tool::Tool;

/// How many tools of one source are served.
const MAX_TOOLS: usize = 1000;
/// How many faults of one source are told.
const MAX_FAULTS: usize = 20;
/// What is said of a source that has said nothing.
const SILENT: &str = "has not said yet what it has";

/// What a source has at one moment. See [`Publisher::offer`](super::Publisher::offer).
#[derive(Debug, Clone)]
pub struct Offer {
    source: Arc<str>,
    tools: Vec<Arc<Tool>>,
    faults: Vec<String>,
    is_pending: bool,
}

impl Offer {
    /// That of a source that has said nothing yet.
    pub(super) fn pending(source: &str) -> Self {
        Self {
            source: source.into(),
            tools: Vec::new(),
            faults: vec![SILENT.to_owned()],
            is_pending: true,
        }
    }

    /// Another one of the same source.
    pub(super) fn of(before: &Self) -> Self {
        Self {
            source: Arc::clone(&before.source),
            tools: Vec::new(),
            faults: Vec::new(),
            is_pending: false,
        }
    }

    /// The same of a source that has failed since, unless that is known.
    pub(super) fn failed(&self, fault: String) -> Option<Self> {
        let is_known = self.faults.len() == 1 && self.faults[0] == fault;
        (!is_known).then(|| Self {
            tools: self.tools.clone(),
            faults: vec![fault],
            ..Self::of(self)
        })
    }

    /// Adds the tool at `path`, such as `notes/find`, which clients know by that name alone. `call` is what runs: it is
    /// given an object, which nobody has checked against the schema, and is dropped when the call is cancelled.
    ///
    /// A tool that can't be served is a [fault](Self::fault).
    pub fn tool<F, R>(&mut self, path: &str, definition: protocol::Tool, call: F)
    where
        F: Fn(Box<RawValue>, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<CallToolResult, ErrorObject>> + Send + 'static,
    {
        if self.tools.len() == MAX_TOOLS {
            let more = format!("has more than {MAX_TOOLS} tools: the others are not served");
            if !self.faults.contains(&more) {
                self.fault(more);
            }
            return;
        }
        match servable(path, &definition) {
            Ok(path) => {
                let body = RemoteTool::new(Arc::clone(&self.source), call);
                self.tools
                    .push(Arc::new(Tool::remote(path, definition, body)));
            }
            Err(reason) => {
                let path = path.escape_debug();
                self.fault(format!(
                    "has the tool `{path}`, which can't be served: {reason}"
                ));
            }
        }
    }

    /// Adds something that is wrong, in words that fit after the name of the source.
    pub fn fault(&mut self, fault: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault.into());
        }
    }

    /// Where it comes from, for people.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What is wrong, each in words that fit after the name of the source. There may be tools all the same.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    pub(crate) fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Whether the source has said nothing yet.
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }
}

/// The path of a tool that clients can make use of.
fn servable(path: &str, definition: &protocol::Tool) -> Result<ScriptPath, String> {
    if !schema::is_of_objects(&definition.input_schema) {
        return Err("its input schema does not say `\"type\": \"object\"`".to_owned());
    }
    path.parse().map_err(|error: PathError| error.to_string())
}
