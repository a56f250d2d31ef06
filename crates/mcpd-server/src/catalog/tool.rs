//! A tool: its definition, and the script, function, shell or source behind it.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpd_protocol as protocol;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::CallToolResult;
use mcpd_scriptspec::{Code, ScriptPath, ScriptSpec, TaskSupport};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::catalog::call::{CallContext, CallHost};
use crate::catalog::source::RemoteTool;
use crate::client::request::context::Context;
use crate::execution::approval::ApprovalGate;
use crate::execution::call;
use crate::execution::input_rounds::Resumption;
use crate::message::arguments::invalid_arguments;
use crate::message::call::{CallStart, InnerCall};
use crate::message::param_headers::{self, HeaderParameter, ParameterHeaders};
use crate::message::raw::raw;
use crate::policy::EffectivePolicy;
use crate::policy::access::{self, Defaults};
use crate::policy::selection::ToolTraits;
use crate::script::Script;

mod approval;
pub(crate) mod definition;
mod entry;
pub(crate) mod listed;
mod run_plan;

use listed::ListedForm;
pub use run_plan::RunPlan;

/// Tool of the catalog.
#[derive(Debug, Clone)]
pub struct Tool {
    path: ScriptPath,
    portable_name: String,
    definition: protocol::method::Tool,
    /// Form of its arguments in lists.
    listed: ListedForm,
    /// Arguments that a client over HTTP repeats in headers.
    header_parameters: Vec<HeaderParameter>,
    /// Defaults of its arguments, computed once an access rule depends on them.
    defaults: OnceLock<Defaults>,
    /// URI of the page that shows its results, if it has one.
    app: Option<String>,
    body: Body,
}

/// Implementation of a tool.
#[derive(Debug, Clone)]
enum Body {
    Script(Arc<Script>),
    Other(Arc<dyn ToolBody>),
}

/// Implementation of a tool that is no script.
pub(crate) trait ToolBody: fmt::Debug + Send + Sync {
    /// Starts a call. Invalid arguments give a result.
    fn start(self: Arc<Self>, arguments: Option<&RawValue>, context: CallContext) -> CallStart;

    /// Effective policy of its processes, if it has any.
    fn policy(&self) -> Option<&EffectivePolicy> {
        None
    }

    /// Time limit of a run, if there is one.
    fn max_run_time(&self) -> Option<Duration> {
        None
    }

    /// Source that it comes from, for people, unless it runs here.
    fn source(&self) -> Option<&str> {
        None
    }

    /// Returns whether it belongs to the search for tools: every caller may use that, and finds
    /// what the access rules allow.
    fn is_part_of_search(&self) -> bool {
        false
    }

    /// Returns the call that a call of this tool stands for, if it calls any tool by its name.
    fn read_inner_call(&self, _arguments: Option<&RawValue>) -> Option<InnerCall> {
        None
    }

    /// Returns whether its calls may destroy something, whatever its annotations say.
    fn runs_anything(&self) -> bool {
        false
    }

    /// Name of another tool that a call starts, with the arguments of that.
    fn started_call(&self, _arguments: Option<&RawValue>) -> Option<(String, Box<RawValue>)> {
        None
    }
}

impl Tool {
    /// Creates a tool built into the program.
    pub(crate) fn built_in(
        path: ScriptPath,
        mut definition: protocol::method::Tool,
        body: impl ToolBody + 'static,
    ) -> Self {
        definition.meta = Some(definition::meta(&path, definition.meta.unwrap_or_default()));
        let parameters = schema_header_parameters(&definition);
        Self::new(path, definition, parameters, Body::Other(Arc::new(body)))
    }

    /// Creates a tool of a source, under its path.
    pub(super) fn remote(
        path: ScriptPath,
        mut definition: protocol::method::Tool,
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
        let parameters = schema_header_parameters(&definition);
        Self::new(path, definition, parameters, Body::Other(Arc::new(body)))
    }

    /// Creates the tool of a script.
    pub(crate) fn from_script(script: Arc<Script>) -> Self {
        let definition = definition::tool(&script.path, &script.spec);
        let path = script.path.clone();
        let header_parameters = script_header_parameters(&script.spec);
        Self::new(path, definition, header_parameters, Body::Script(script))
    }

    fn new(
        path: ScriptPath,
        mut definition: protocol::method::Tool,
        header_parameters: Vec<HeaderParameter>,
        body: Body,
    ) -> Self {
        let listed = match &body {
            // Most scripts need no adjustment.
            Body::Script(script)
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
            defaults: OnceLock::new(),
            app: None,
            definition,
            body,
        }
    }

    /// Returns the tool with the page at `uri`, which shows its results.
    pub(super) fn with_app(&self, uri: String) -> Self {
        Self {
            app: Some(uri),
            ..self.clone()
        }
    }

    /// URI of the page that shows its results, if it has one.
    #[must_use]
    pub fn app(&self) -> Option<&str> {
        self.app.as_deref()
    }

    /// Identity: the path below its root.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        &self.path
    }

    /// Attributes that selections may depend on.
    pub(crate) fn traits(&self) -> ToolTraits<'_> {
        let annotations = self.definition.annotations.as_ref();
        ToolTraits {
            path: &self.path,
            tags: self.script().map_or(&[], |script| &script.spec.tags),
            is_read_only: annotations.and_then(|one| one.read_only_hint) == Some(true),
        }
    }

    /// Name that every client accepts.
    #[must_use]
    pub fn portable_name(&self) -> &str {
        &self.portable_name
    }

    /// Entry in a list of the newest revision, under its path.
    #[must_use]
    pub fn definition(&self) -> &protocol::method::Tool {
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

    /// File of its script, unless it is built in or elsewhere.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        let script = self.script().filter(|script| script.elsewhere().is_none());
        script.map(|script| script.file.as_path())
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
            Body::Script(script) => Some(&script.policy),
            Body::Other(body) => body.policy(),
        }
    }

    /// Source that it comes from, for people, unless it runs here.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        match &self.body {
            Body::Script(script) => script.elsewhere().map(|elsewhere| &*elsewhere.source),
            Body::Other(body) => body.source(),
        }
    }

    /// Time limit of a run, if there is one.
    pub(crate) fn max_run_time(&self) -> Option<Duration> {
        match &self.body {
            Body::Script(script) => Some(script.policy.limits().wall),
            Body::Other(body) => body.max_run_time(),
        }
    }

    /// Returns whether its calls have to run in the background: clients without tasks are refused.
    #[must_use]
    pub fn needs_task(&self) -> bool {
        self.task_support() == TaskSupport::Required
    }

    /// Support of calls in the background.
    pub(crate) fn task_support(&self) -> TaskSupport {
        self.policy()
            .map_or(TaskSupport::Never, EffectivePolicy::task)
    }

    /// Returns whether it belongs to the search for tools.
    pub(crate) fn is_part_of_search(&self) -> bool {
        match &self.body {
            Body::Script(_) => false,
            Body::Other(body) => body.is_part_of_search(),
        }
    }

    /// Returns the call that a call with `arguments` stands for, if there is one.
    pub(crate) fn read_inner_call(&self, arguments: Option<&RawValue>) -> Option<InnerCall> {
        match &self.body {
            Body::Script(_) => None,
            Body::Other(body) => body.read_inner_call(arguments),
        }
    }

    pub(crate) fn script(&self) -> Option<&Arc<Script>> {
        match &self.body {
            Body::Script(script) => Some(script),
            Body::Other(_) => None,
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

    /// Starts a call, which waits for approval if it needs that. Invalid arguments give a result,
    /// so that the model that wrote them can read it.
    pub(crate) fn call(
        &self,
        host: &CallHost,
        arguments: Option<&RawValue>,
        resumption: Resumption,
        context: &Context,
    ) -> CallStart {
        let spec = self.script().map(|script| &script.spec);
        if !self.is_part_of_search()
            && let Err(reason) = context.judge(&self.path, arguments, spec, || self.defaults())
        {
            return CallStart::reject(Ok(CallToolResult::error(reason).into()));
        }
        let Some(need) = self.approval_need(host, arguments, context) else {
            return self.start(host, arguments, resumption, context);
        };
        // A person judges arguments that all readers read alike.
        if let Err(fault) = mcpd_scriptspec::members(need.call.arguments.as_deref()) {
            return CallStart::reject(Ok(invalid_arguments(&fault.to_string()).into()));
        }
        let mut context = context.clone();
        context.approved = need.started;
        let request = (&self.path, arguments);
        match ApprovalGate::new(&host.engine, &context, need.call, request, resumption) {
            Ok((gate, rest)) => match self.start(host, arguments, rest, &context) {
                CallStart::Started(run) => CallStart::Started(Box::pin(gate.run(run))),
                refused @ CallStart::Refused(_) => refused,
            },
            Err(error) => CallStart::reject(Err(error)),
        }
    }

    /// Starts a call that may run.
    fn start(
        &self,
        host: &CallHost,
        arguments: Option<&RawValue>,
        resumption: Resumption,
        context: &Context,
    ) -> CallStart {
        match &self.body {
            Body::Script(script) => {
                call::start_tool_call(&host.engine, script, arguments, resumption, context)
            }
            Body::Other(body) => {
                if body.policy().is_none() && body.started_call(arguments).is_none() {
                    host.engine.executor.note_other_work();
                }
                let context = CallContext::new(host, context, &self.path);
                Arc::clone(body).start(arguments, context)
            }
        }
    }

    fn defaults(&self) -> &Defaults {
        // An unlisted default applies all the same.
        let declared = self.listed.declared.as_deref();
        let schema = declared.unwrap_or(&self.definition.input_schema);
        self.defaults
            .get_or_init(|| access::declared_defaults(schema))
    }
}

/// Arguments that the schema of a tool wants repeated in headers.
fn schema_header_parameters(definition: &protocol::method::Tool) -> Vec<HeaderParameter> {
    let schema: Value = serde_json::from_str(definition.input_schema.get()).unwrap_or_default();
    param_headers::collect_parameters(&schema)
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
        match (&self.body, self.source()) {
            (Body::Script(script), _) => script.fmt(f),
            (Body::Other(_), Some(source)) => write!(f, "`{}` ({source})", self.path),
            (Body::Other(_), None) => write!(f, "`{}` (built in)", self.path),
        }
    }
}
