//! Server in this process, made with rmcp: the name of each tool says what it does.

#![expect(deprecated, reason = "rmcp marks so what 2026-07-28 has no longer")]

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
    ContentBlock, ErrorCode, ErrorData, GetPromptRequestParams, GetPromptResponse,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscriptionFilter,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Server that accepts any number of connections.
#[derive(Debug, Clone)]
pub(crate) struct Server(Arc<ServerState>);

#[derive(Debug)]
struct ServerState {
    versions: Vec<ProtocolVersion>,
    /// Request on which it hangs.
    stuck: Option<Stuck>,
    /// Times of its connections.
    connected: Mutex<Vec<Instant>>,
    tools: Mutex<Vec<Value>>,
    /// Client that requested the list of tools last.
    peer: Mutex<Option<Peer<RoleServer>>>,
    changed: Notify,
    /// Cancelled to end its connections.
    up: Mutex<CancellationToken>,
    hanging: Notify,
    released: Notify,
    cancelled: Notify,
}

/// Request that a server never answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stuck {
    Greeting,
    List,
}

impl Server {
    /// Makes a server that speaks the revisions up to `newest` and lists these tools.
    pub(super) fn new(newest: ProtocolVersion, tools: &[&str]) -> Self {
        Self::with_hang(newest, tools, None)
    }

    /// Makes a server that hangs.
    pub(super) fn hanging(stuck: Stuck) -> Self {
        Self::with_hang(ProtocolVersion::V_2026_07_28, &[], Some(stuck))
    }

    fn with_hang(newest: ProtocolVersion, tools: &[&str], stuck: Option<Stuck>) -> Self {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let versions = known.filter(|version| version.as_str() <= newest.as_str());
        Self(Arc::new(ServerState {
            versions: versions.cloned().collect(),
            stuck,
            connected: Mutex::default(),
            tools: Mutex::new(tools.iter().copied().map(tool).collect()),
            peer: Mutex::default(),
            changed: Notify::new(),
            up: Mutex::default(),
            hanging: Notify::new(),
            released: Notify::new(),
            cancelled: Notify::new(),
        }))
    }

    pub(crate) fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let up = self.0.up.lock().unwrap().clone();
        let server = self.clone();
        self.0.connected.lock().unwrap().push(Instant::now());
        tokio::spawn(up.run_until_cancelled_owned(async move {
            if server.0.stuck == Some(Stuck::Greeting) {
                let _ours = ours;
                return std::future::pending().await;
            }
            let running = server.serve(ours).await.expect("a greeting");
            running.waiting().await.ok();
        }));
        theirs
    }

    /// Replaces its tools, and announces the change.
    pub(super) async fn change(&self, tools: Vec<Value>) {
        *self.0.tools.lock().unwrap() = tools;
        if !self.0.versions.last().unwrap().has_initialize() {
            // Only subscribed clients receive the announcement.
            return self.0.changed.notify_one();
        }
        let peer = self.0.peer.lock().unwrap().clone();
        peer.unwrap().notify_tool_list_changed().await.unwrap();
    }

    /// Ends all connections; new ones are accepted.
    pub(super) fn restart(&self) {
        let mut up = self.0.up.lock().unwrap();
        std::mem::take(&mut *up).cancel();
    }

    /// Ends all connections, and rejects new ones.
    pub(super) fn go_down(&self) {
        self.0.up.lock().unwrap().cancel();
    }

    /// Returns the times of its connections.
    pub(super) fn connection_times(&self) -> Vec<Instant> {
        self.0.connected.lock().unwrap().clone()
    }

    /// Waits until the tool `hang` or `wait` is called.
    pub(super) async fn wait_for_hang(&self) {
        self.0.hanging.notified().await;
    }

    /// Lets a call of `wait` come to its end.
    pub(super) fn release(&self) {
        self.0.released.notify_one();
    }

    /// Waits until a call is cancelled.
    pub(super) async fn wait_for_cancel(&self) {
        self.0.cancelled.notified().await;
    }
}

/// Returns the list entry of a tool.
pub(super) fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Can {name}."),
        "inputSchema": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}},
        "annotations": {"readOnlyHint": true},
    })
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Sends progress and log messages, as if it worked.
async fn work(context: &RequestContext<RoleServer>) {
    let token = context.meta.get_progress_token().unwrap();
    for step in 1..=3_u8 {
        let mut progress = ProgressNotificationParam::new(token.clone(), step.into());
        progress.total = Some(3.0);
        progress.message = Some(format!("step {step}"));
        context.peer.notify_progress(progress).await.unwrap();
    }
    log(context, "worked").await;
}

async fn log(context: &RequestContext<RoleServer>, text: &str) {
    let said = LoggingMessageNotificationParam::new(LoggingLevel::Warning, json!(text));
    context.peer.notify_logging_message(said).await.unwrap();
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_logging()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.protocol_version = self.0.versions.last().unwrap().clone();
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.0.versions.clone().into()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        *self.0.peer.lock().unwrap() = Some(context.peer);
        if self.0.stuck == Some(Stuck::List) {
            return std::future::pending().await;
        }
        Ok(read(json!({"tools": *self.0.tools.lock().unwrap()})))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*call.name {
            "echo" => {
                let arguments = Value::Object(call.arguments.unwrap_or_default());
                let mut result = CallToolResult::structured(arguments);
                result
                    .content
                    .push(ContentBlock::audio("AA==", "audio/wav"));
                return Ok(result.into());
            }
            "trace" => {
                let meta = &context.meta;
                let trace = json!({
                    "traceparent": meta.get_traceparent(),
                    "tracestate": meta.get_tracestate(),
                    "baggage": meta.get_baggage(),
                });
                return Ok(CallToolResult::structured(trace).into());
            }
            "work" => work(&context).await,
            "wait" => {
                log(&context, "waiting").await;
                self.0.hanging.notify_one();
                self.0.released.notified().await;
            }
            "hang" => {
                self.0.hanging.notify_one();
                context.ct.cancelled().await;
            }
            "limit" => {
                let wait = Some(json!({"retryAfterMs": 1500}));
                return Err(ErrorData::new(ErrorCode(429), "not so fast", wait));
            }
            name => return Err(ErrorData::invalid_params(format!("no `{name}` here"), None)),
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = json!([{"name": "who", "required": true}]);
        Ok(read(
            json!({"prompts": [{"name": "greet", "arguments": arguments}]}),
        ))
    }

    async fn get_prompt(
        &self,
        prompt: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let text = format!("{}: {}", prompt.name, json!(prompt.arguments));
        let content = json!({"type": "text", "text": text});
        Ok(GetPromptResponse::Complete(read(
            json!({"messages": [{"role": "user", "content": content}]}),
        )))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = json!({"uri": "ship:///log", "name": "the/log", "mimeType": "text/plain"});
        Ok(read(json!({"resources": [resource]})))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = json!({"uriTemplate": "ship:///cabin/{number}", "name": "cabins"});
        Ok(read(json!({"resourceTemplates": [template]})))
    }

    async fn read_resource(
        &self,
        resource: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if resource.uri.ends_with("/13") {
            return Err(ErrorData::resource_not_found("there is none", None));
        }
        let contents = json!([{"uri": resource.uri, "text": "read"}]);
        Ok(ReadResourceResponse::Complete(read(
            json!({"contents": contents}),
        )))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.0.changed.notified() => {
                    context.sink().notify_tool_list_changed().await.unwrap();
                }
            }
        }
    }

    async fn on_cancelled(
        &self,
        _: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        self.0.cancelled.notify_one();
    }
}
