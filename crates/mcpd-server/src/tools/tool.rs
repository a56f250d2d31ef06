//! A tool: its definition, and the script, function, shell or source behind it.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{self as protocol, CallToolResult};
use mcpd_scriptspec::{Code, ScriptPath, ScriptSpec, TaskSupport};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::catalog::script::Script;
use crate::execution::call;
use crate::execution::input_rounds::Resumption;
use crate::execution::permit;
use crate::limits::run_queue::ScriptQueue;
use crate::message::call::{CallFuture, CallStart};
use crate::message::param_headers::{self, HeaderParameter, ParameterHeaders};
use crate::message::raw::raw;
use crate::policy::EffectivePolicy;
use crate::policy::access::{self, Defaults};
use crate::request::context::Context;
use crate::server::Server;
use crate::tools::native::{CallContext, NativeTool};
use crate::tools::run_command::CommandTool;
use crate::tools::source::RemoteTool;

pub(crate) mod definition;
pub(crate) mod listed;

use listed::ListedForm;

/// Tool of the catalog.
#[derive(Debug, Clone)]
pub struct Tool {
    path: ScriptPath,
    portable_name: String,
    definition: protocol::Tool,
    /// Form of its arguments in lists.
    listed: ListedForm,
    /// Arguments that a client over HTTP repeats in headers.
    header_parameters: Vec<HeaderParameter>,
    /// Queue of its calls, if they run no local process.
    script_queue: Arc<ScriptQueue>,
    /// Defaults of its arguments, computed once an access rule depends on them.
    defaults: OnceLock<Defaults>,
    body: ToolBody,
}

/// Implementation of a tool.
#[derive(Debug, Clone)]
pub(crate) enum ToolBody {
    Script(Arc<Script>),
    Native(Arc<NativeTool>),
    Command(Arc<CommandTool>),
    Remote(Arc<RemoteTool>),
}

impl Tool {
    /// Creates a tool built into the program.
    pub(crate) fn native(
        path: ScriptPath,
        mut definition: protocol::Tool,
        body: Arc<NativeTool>,
    ) -> Self {
        definition.meta = Some(definition::meta(&path, definition.meta.unwrap_or_default()));
        let schema: Value = serde_json::from_str(definition.input_schema.get()).unwrap_or_default();
        Self::new(
            path,
            definition,
            param_headers::collect_parameters(&schema),
            ToolBody::Native(body),
        )
    }

    /// Creates the tool that runs shell commands.
    pub(crate) fn command(tool: Arc<CommandTool>) -> Self {
        let path = tool.path().clone();
        let mut definition = tool.definition();
        definition.meta = Some(definition::meta(&path, definition.meta.unwrap_or_default()));
        Self::new(path, definition, Vec::new(), ToolBody::Command(tool))
    }

    /// Creates a tool of a source, under its path.
    pub(crate) fn remote(
        path: ScriptPath,
        mut definition: protocol::Tool,
        body: RemoteTool,
    ) -> Self {
        path.as_str().clone_into(&mut definition.name);
        let annotations = definition.annotations.as_ref();
        if annotations.is_none_or(|annotations| annotations.title.is_none()) {
            let title = || path.to_string();
            definition.title.get_or_insert_with(title);
        }
        let mut meta = definition::meta(&path, definition.meta.unwrap_or_default());
        meta.insert("mcpd/origin".to_owned(), json!("remote"));
        definition.meta = Some(meta);
        let schema: Value = serde_json::from_str(definition.input_schema.get()).unwrap_or_default();
        let body = ToolBody::Remote(Arc::new(body));
        Self::new(
            path,
            definition,
            param_headers::collect_parameters(&schema),
            body,
        )
    }

    /// Creates the tool of a script.
    pub(crate) fn from_script(script: Arc<Script>) -> Self {
        let definition = definition::tool(&script.path, &script.spec);
        let path = script.path.clone();
        let header_parameters = script_header_parameters(&script.spec);
        Self::new(
            path,
            definition,
            header_parameters,
            ToolBody::Script(script),
        )
    }

    fn new(
        path: ScriptPath,
        mut definition: protocol::Tool,
        header_parameters: Vec<HeaderParameter>,
        body: ToolBody,
    ) -> Self {
        let listed = match &body {
            // Most scripts need no adjustment.
            ToolBody::Script(script)
                if script.spec.has_portable_schema() && script.spec.output_schema.is_none() =>
            {
                ListedForm::default()
            }
            _ => ListedForm::new(&mut definition),
        };
        Self {
            listed,
            portable_name: path.portable().into_owned(),
            path,
            header_parameters,
            script_queue: Arc::default(),
            defaults: OnceLock::new(),
            definition,
            body,
        }
    }

    /// Returns a copy under a name that no other path has.
    pub(crate) fn with_distinct_name(&self) -> Self {
        Self {
            portable_name: self.path.portable_hashed(),
            ..self.clone()
        }
    }

    /// Identity: the path below its root.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        &self.path
    }

    /// Name that every client accepts.
    #[must_use]
    pub fn portable_name(&self) -> &str {
        &self.portable_name
    }

    /// Entry in a list of the newest revision, under its path.
    #[must_use]
    pub fn definition(&self) -> &protocol::Tool {
        &self.definition
    }

    /// Schema of its arguments with names that every model provider accepts, if the definition
    /// has others.
    #[must_use]
    pub fn portable_input_schema(&self) -> Option<&RawValue> {
        self.listed.portable()
    }

    /// Differences between list and declaration, with the rule that explains each: remarks for
    /// the author.
    #[must_use]
    pub fn remarks(&self) -> &[(Code, String)] {
        &self.listed.remarks
    }

    /// Returns the arguments of a call under their declared names, if `arguments` may use
    /// portable ones.
    pub(crate) fn restore_names(&self, arguments: &RawValue) -> Option<Box<RawValue>> {
        self.listed.restore(arguments)
    }

    /// File of its script, unless it is built in.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.script().map(|script| script.file.as_path())
    }

    /// Spec of its script, unless it is built in.
    #[must_use]
    pub fn spec(&self) -> Option<&ScriptSpec> {
        self.script().map(|script| &*script.spec)
    }

    /// Effective policy of its processes, unless it has none.
    #[must_use]
    pub fn policy(&self) -> Option<&EffectivePolicy> {
        match &self.body {
            ToolBody::Script(script) => Some(&script.policy),
            ToolBody::Command(tool) => Some(tool.policy()),
            ToolBody::Native(_) | ToolBody::Remote(_) => None,
        }
    }

    /// Source that it comes from, for people, unless it runs here.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        match &self.body {
            ToolBody::Remote(tool) => Some(tool.source()),
            ToolBody::Script(_) | ToolBody::Native(_) | ToolBody::Command(_) => None,
        }
    }

    /// Time limit of a run, if there is one.
    pub(crate) fn max_run_time(&self) -> Option<Duration> {
        match &self.body {
            ToolBody::Script(script) => Some(script.policy.limits().wall),
            ToolBody::Command(tool) => Some(tool.max_timeout()),
            ToolBody::Native(_) | ToolBody::Remote(_) => None,
        }
    }

    /// Support of calls in the background.
    pub(crate) fn task_support(&self) -> TaskSupport {
        self.policy()
            .map_or(TaskSupport::Never, EffectivePolicy::task)
    }

    pub(crate) fn script(&self) -> Option<&Arc<Script>> {
        match &self.body {
            ToolBody::Script(script) => Some(script),
            ToolBody::Native(_) | ToolBody::Command(_) | ToolBody::Remote(_) => None,
        }
    }

    /// Returns whether lists show both alike.
    pub(crate) fn is_listed_like(&self, other: &Self) -> bool {
        match (&self.body, &other.body) {
            // Rescanned and found unchanged.
            (ToolBody::Script(a), ToolBody::Script(b)) if Arc::ptr_eq(&a.spec, &b.spec) => {
                self.portable_name == other.portable_name
            }
            _ => {
                self.portable_name == other.portable_name
                    && serde_json::to_value(&self.definition).ok()
                        == serde_json::to_value(&other.definition).ok()
            }
        }
    }

    /// Checks the headers that repeat arguments of a call.
    ///
    /// # Errors
    ///
    /// `-32020` with the header and argument that differ.
    pub(crate) fn check_headers(
        &self,
        headers: &ParameterHeaders,
        arguments: Option<&RawValue>,
    ) -> Result<(), ErrorObject> {
        param_headers::check(&self.header_parameters, headers, arguments)
    }

    /// Starts a call. Invalid arguments give a result, so that the model that wrote them can read
    /// it.
    pub(crate) fn call(
        &self,
        server: &Server,
        arguments: Option<&RawValue>,
        resumption: Resumption,
        context: &Context,
    ) -> CallStart {
        let spec = self.script().map(|script| &script.spec);
        if let Err(reason) = context.judge(&self.path, arguments, spec, || self.defaults()) {
            return CallStart::reject(Ok(CallToolResult::error(reason).into()));
        }
        match &self.body {
            ToolBody::Script(script) => {
                call::start_tool_call(server.engine(), script, arguments, resumption, context)
            }
            ToolBody::Command(tool) => tool.call(server, arguments, context),
            ToolBody::Native(tool) => {
                self.run_with_permit(server, context, |context| tool.call(arguments, context))
            }
            ToolBody::Remote(tool) => {
                self.run_with_permit(server, context, |context| tool.call(arguments, context))
            }
        }
    }

    fn run_with_permit(
        &self,
        server: &Server,
        context: &Context,
        call: impl FnOnce(CallContext) -> CallFuture,
    ) -> CallStart {
        let run = call(CallContext::new(server, context, &self.path));
        let name = ("tool", self.path.clone());
        let run = permit::run_with_permit(server.engine(), context, &self.script_queue, name, run);
        CallStart::Started(Box::pin(run))
    }

    fn defaults(&self) -> &Defaults {
        // An unlisted default applies all the same.
        let declared = self.listed.declared.as_deref();
        let schema = declared.unwrap_or(&self.definition.input_schema);
        self.defaults
            .get_or_init(|| access::declared_defaults(schema))
    }
}

/// Arguments that a script wants repeated in headers.
fn script_header_parameters(spec: &ScriptSpec) -> Vec<HeaderParameter> {
    match &spec.declared_schema {
        Some(schema) => param_headers::collect_parameters(schema),
        None => spec
            .options
            .iter()
            .filter_map(HeaderParameter::from_option)
            .collect(),
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.body {
            ToolBody::Script(script) => script.fmt(f),
            ToolBody::Native(_) | ToolBody::Command(_) => write!(f, "`{}` (built in)", self.path),
            ToolBody::Remote(tool) => write!(f, "`{}` ({})", self.path, tool.source()),
        }
    }
}
