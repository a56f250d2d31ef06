//! Handlers of subscriptions: `subscriptions/listen` on the stateless wire, `resources/subscribe`
//! on the stateful one.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::{ErrorObject, RequestId};
use mcpd_protocol::meta::Meta;
use mcpd_protocol::method::{
    EmptyResult, NotificationParams, PromptListChangedNotification,
    ResourceListChangedNotification, ResourceRequestParams, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams, SubscriptionFilter, SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
    TaskStatusNotification, ToolListChangedNotification,
};
use mcpd_scriptspec::ScriptPath;
use mcpd_scriptspec::uri::normalize_uri;

use crate::catalog::Catalog;
use crate::catalog::live::LiveCatalog;
use crate::client::outbox::Outbox;
use crate::client::outbox::notification;
use crate::client::request::context::Context;
use crate::client::session::Session;
use crate::client::subscribers::{Event, Filter};
use crate::execution::input_rounds;
use crate::limits::rate_limit;
use crate::message::reply::{Handled, MethodResult};
use crate::methods::lifecycle;
use crate::policy::principal::Principal;
use crate::server::Server;
use crate::support::sync::unless_cancelled;
use crate::tools::tasks;

/// Maximum number of resources that one client may subscribe to, and of tasks.
const MAX_URIS: usize = 256;
/// Maximum length of a subscribed URI or task id, in bytes: they are kept.
const MAX_URI_LENGTH: usize = 8 * 1024;

/// Error for a caller that exceeds its load of subscriptions.
const TOO_MANY_SUBSCRIPTIONS: &str = "too many subscriptions";

/// Sends changes to the client until it disconnects or cancels, or the server stops.
pub(crate) fn listen(
    server: &Server,
    id: &RequestId,
    params: &Params<'_>,
    mut context: Context,
) -> Result<Handled, ErrorObject> {
    let params: SubscriptionsListenRequestParams = params.parse()?;
    // The subscription keeps nothing of the message.
    Arc::make_mut(&mut context.peer).reservation.take();
    let mut filter = filter(server.is_watching(), &params.notifications)?;
    let wanted = wanted_tasks(&params.notifications, &context)?;
    let meta = Meta::new().with_subscription_id(id);
    let server = server.clone();
    Ok(Handled::later(async move {
        let watch = TaskWatch {
            server: &server,
            principal: &context.peer.principal,
        };
        filter.tasks = watch.find_known(wanted).await?;
        let acknowledgement = acknowledgement(&filter, &meta);
        let tasks = filter.tasks.clone();
        // The subscription exists before its acknowledgement, so that no change falls between the
        // two.
        let caller = context.peer.principal.shared_name();
        let subscription = server.engine().subscribers.subscribe_for(caller, filter);
        let subscription =
            subscription.ok_or_else(|| rate_limit::overload_error(TOO_MANY_SUBSCRIPTIONS))?;
        let outbox = &context.peer.outbox;
        send(outbox, acknowledgement).await;
        let forward = async {
            // The client does not know the state of the tasks at this moment yet.
            for id in &tasks {
                send(outbox, watch.message(id, &meta).await).await;
            }
            loop {
                let message = match subscription.next().await {
                    Event::TaskChanged(id) => watch.message(&id, &meta).await,
                    event
                        if may_receive(server.live_catalog(), &context.peer.principal, &event) =>
                    {
                        message(subscription.respell(event), Some(&meta))
                    }
                    _ => None,
                };
                send(outbox, message).await;
            }
        };
        unless_cancelled(&context.peer.closing, forward).await;
        let mut result = EmptyResult::default();
        result.meta = meta.clone().into();
        context.encode(result)
    }))
}

/// Forwards the events of a session to its client, until one of the two is gone.
pub(crate) fn forward(
    catalog: Arc<LiveCatalog>,
    session: &Session,
    principal: Principal,
    outbox: Outbox,
) -> impl Future<Output = ()> + Send + 'static {
    // The session itself is not held: it ends with its last owner, and this task with it.
    let (subscription, ended) = (Arc::clone(&session.subscription), session.end_token());
    let forward = async move {
        while !outbox.is_closed() {
            let event = subscription.next().await;
            if may_receive(&catalog, &principal, &event) {
                send(&outbox, message(subscription.respell(event), None)).await;
            }
        }
    };
    async move {
        unless_cancelled(&ended, forward).await;
    }
}

/// Returns whether a client may know of an event: a resource that it may not read looks like one
/// that does not exist.
fn may_receive(catalog: &LiveCatalog, principal: &Principal, event: &Event) -> bool {
    let (Event::ResourceUpdated(uri), Some(access)) = (event, principal.access()) else {
        return true;
    };
    let has =
        |catalog: &Catalog| catalog.resource(uri).is_some() || catalog.template_of(uri).is_some();
    let catalog = catalog.current();
    if has(&catalog) {
        return has(&catalog.view(access));
    }
    // The file behind the URI is gone; the rules for its path decide.
    ScriptPath::from_uri(uri).is_none_or(|path| access.allows(&path))
}

/// Subscribes the session to a resource.
pub(crate) fn subscribe(params: &Params<'_>, context: &Context) -> MethodResult {
    let params: ResourceRequestParams = params.parse()?;
    check_length(&params.uri)?;
    let Some(session) = &context.session else {
        return Ok(lifecycle::empty());
    };
    if session.subscription.resource_count() >= MAX_URIS {
        return Err(too_many());
    }
    if !session.subscription.add_resource(&params.uri) {
        return Err(rate_limit::overload_error(TOO_MANY_SUBSCRIPTIONS));
    }
    Ok(lifecycle::empty())
}

/// Cancels the subscription.
pub(crate) fn unsubscribe(params: &Params<'_>, context: &Context) -> MethodResult {
    let params: ResourceRequestParams = params.parse()?;
    if let Some(session) = &context.session {
        session.subscription.remove_resource(&params.uri);
    }
    Ok(lifecycle::empty())
}

fn filter(watching: bool, wanted: &SubscriptionFilter) -> Result<Filter, ErrorObject> {
    let uris = wanted.resource_subscriptions.clone().unwrap_or_default();
    check(&uris)?;
    Ok(Filter {
        tools: watching && wanted.tools_list_changed == Some(true),
        prompts: watching && wanted.prompts_list_changed == Some(true),
        resources: watching && wanted.resources_list_changed == Some(true),
        uris: uris
            .into_iter()
            .map(|uri| (normalize_uri(&uri).into_owned(), uri))
            .collect(),
        tasks: BTreeSet::new(),
    })
}

/// Ids of the tasks that a client subscribes to. "If a client requests task status notifications
/// but does not declare the `io.modelcontextprotocol/tasks` extension capability, the server MUST
/// return a JSON-RPC error" -- SEP-2663
fn wanted_tasks(
    wanted: &SubscriptionFilter,
    context: &Context,
) -> Result<Vec<String>, ErrorObject> {
    let Some(ids) = &wanted.task_ids else {
        return Ok(Vec::new());
    };
    input_rounds::require_capabilities(&context.capabilities, &tasks::capability())?;
    check(ids)?;
    Ok(ids.clone())
}

/// Tasks of one client.
struct TaskWatch<'a> {
    server: &'a Server,
    principal: &'a Principal,
}

impl TaskWatch<'_> {
    /// Returns those of the ids that exist.
    async fn find_known(&self, ids: Vec<String>) -> Result<BTreeSet<String>, ErrorObject> {
        let mut known = BTreeSet::new();
        if let Some(tasks) = self.server.tasks() {
            for id in ids {
                if tasks.stored_task(&id, self.principal).await?.is_some() {
                    known.insert(id);
                }
            }
        }
        Ok(known)
    }

    /// Notification of a task's current state; `None` if it cannot be read: then the client gets
    /// the next change, or asks.
    async fn message(&self, id: &str, meta: &Meta) -> Option<Bytes> {
        let tasks = self.server.tasks()?;
        let mut task = tasks.get(id, self.principal).await.ok()??;
        task.meta = meta.clone().into();
        notification::<TaskStatusNotification>(&task)
    }
}

fn acknowledgement(filter: &Filter, meta: &Meta) -> Option<Bytes> {
    let acknowledged =
        SubscriptionsAcknowledgedNotificationParams::new(acknowledged_filter(filter), meta.clone());
    notification::<SubscriptionsAcknowledgedNotification>(&acknowledged)
}

fn acknowledged_filter(filter: &Filter) -> SubscriptionFilter {
    let mut acknowledged_filter = SubscriptionFilter::default();
    acknowledged_filter.tools_list_changed = filter.tools.then_some(true);
    acknowledged_filter.prompts_list_changed = filter.prompts.then_some(true);
    acknowledged_filter.resources_list_changed = filter.resources.then_some(true);
    acknowledged_filter.resource_subscriptions =
        (!filter.uris.is_empty()).then(|| filter.uris.values().cloned().collect());
    acknowledged_filter.task_ids =
        (!filter.tasks.is_empty()).then(|| filter.tasks.iter().cloned().collect());
    acknowledged_filter
}

fn message(event: Event, meta: Option<&Meta>) -> Option<Bytes> {
    let params = || {
        meta.cloned()
            .map(NotificationParams::from)
            .unwrap_or_default()
    };
    match event {
        Event::ToolsChanged => notification::<ToolListChangedNotification>(&params()),
        Event::PromptsChanged => notification::<PromptListChangedNotification>(&params()),
        Event::ResourcesChanged => notification::<ResourceListChangedNotification>(&params()),
        Event::ResourceUpdated(uri) => {
            let mut params = ResourceUpdatedNotificationParams::new(uri);
            params.meta = meta.cloned();
            notification::<ResourceUpdatedNotification>(&params)
        }
        // Task changes go to `subscriptions/listen` alone, with the full state of the task.
        Event::TaskChanged(_) => None,
    }
}

async fn send(outbox: &Outbox, message: Option<Bytes>) {
    if let Some(message) = message {
        // A closed outbox means that the client is gone; the owner of the outbox ends this task.
        outbox.send(message).await.ok();
    }
}

/// Checks the requested subscriptions.
///
/// # Errors
///
/// The number or a length exceeds the limit.
fn check(wanted: &[String]) -> Result<(), ErrorObject> {
    if wanted.len() > MAX_URIS {
        return Err(too_many());
    }
    wanted.iter().try_for_each(|uri| check_length(uri))
}

fn check_length(uri: &str) -> Result<(), ErrorObject> {
    if uri.len() <= MAX_URI_LENGTH {
        return Ok(());
    }
    Err(ErrorObject::invalid_params(format!(
        "the URI of a resource or the id of a task in a subscription may have at most {MAX_URI_LENGTH} bytes"
    )))
}

fn too_many() -> ErrorObject {
    ErrorObject::invalid_params(format!(
        "a client may subscribe to at most {MAX_URIS} resources and as many tasks"
    ))
}
