//! Messages that the server sends on its own: notifications are recorded, questions are answered.

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, Implementation, LoggingMessageNotificationParam,
    ProgressNotificationParam, ResourceUpdatedNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Client that answers one question and forwards every notification.
#[derive(Debug)]
pub(super) struct Listener(UnboundedSender<Value>);

/// Notifications received by a listener, in order: `{"progress": …}`, `{"log": …}` or `{"updated":
/// …}`.
#[derive(Debug)]
pub(super) struct Arrivals {
    seen: Vec<Value>,
    arriving: UnboundedReceiver<Value>,
}

impl Listener {
    pub(super) fn new() -> (Self, Arrivals) {
        let (sender, arriving) = mpsc::unbounded_channel();
        let seen = Vec::new();
        (Self(sender), Arrivals { seen, arriving })
    }

    fn record(&self, arrival: Value) {
        self.0.send(arrival).expect("the test still runs");
    }
}

impl Arrivals {
    /// Waits for the first arrival from which `find` extracts a value, and returns that value.
    pub(super) async fn first<T>(&mut self, find: impl Fn(&Value) -> Option<T>) -> T {
        loop {
            if let Some(found) = self.seen.iter().find_map(&find) {
                return found;
            }
            let arrival = self.arriving.recv().await;
            self.seen.push(arrival.expect("the client still runs"));
        }
    }

    /// Waits for exactly this arrival.
    pub(super) async fn expect(&mut self, arrival: Value) {
        self.first(|seen| (*seen == arrival).then_some(())).await;
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::from_build_env())
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = json!(question);
        assert_eq!(question["message"], "Who books the table?");
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"name": "Ada"})))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.record(json!({"progress": [params.progress, params.total, params.message]}));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.record(json!({"log": [params.level, params.data]}));
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.record(json!({"updated": params.uri}));
    }
}
