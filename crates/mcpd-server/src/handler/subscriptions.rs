//! What a client hears of without asking each time: `subscriptions/listen` on the stateless wire,
//! `resources/subscribe` on the stateful one.

use std::sync::Arc;

use bytes::Bytes;
use mcpd_protocol::jsonrpc::{ErrorObject, Request};
use mcpd_protocol::meta::Meta;
use mcpd_protocol::{EmptyResult, NotificationParams};
use mcpd_protocol::{PromptListChangedNotification, ToolListChangedNotification};
use mcpd_protocol::{
    ResourceListChangedNotification, ResourceRequestParams, ResourceUpdatedNotification,
    ResourceUpdatedNotificationParams,
};
use mcpd_protocol::{
    SubscriptionFilter, SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams,
};

use crate::Server;
use crate::context::{Context, notification};
use crate::dispatch::{Handled, MethodResult};
use crate::handler::lifecycle;
use crate::outbox::Outbox;
use crate::session::Session;
use crate::subscribers::{Event, Filter};

/// How many resources one client may subscribe to.
const MAX_URIS: usize = 256;

/// Tells the client of changes until it hangs up or cancels, or the server stops.
pub(crate) fn listen(
    server: &Server,
    request: &Request<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let params: SubscriptionsListenRequestParams = request.parse_params()?;
    let filter = filter(&params.notifications, server.is_watching())?;
    let meta = Meta::new().with_subscription_id(&request.id);
    let acknowledged =
        SubscriptionsAcknowledgedNotificationParams::new(honoured(&filter), meta.clone());
    // Registered before it is acknowledged, so that no change falls between the two.
    let subscription = server.subscribers().subscribe(filter);
    Ok(Handled::later(async move {
        let outbox = &context.side.outbox;
        send(
            outbox,
            notification::<SubscriptionsAcknowledgedNotification>(&acknowledged),
        )
        .await;
        let forward = async {
            loop {
                let event = subscription.next().await;
                send(outbox, message(event, Some(&meta))).await;
            }
        };
        context.closing.run_until_cancelled(forward).await;
        let mut result = EmptyResult::default();
        result.meta = meta.clone().into();
        context.encode(result)
    }))
}

/// Passes the events of a session on to its client, until one of the two is gone.
pub(crate) fn forward(
    session: &Session,
    outbox: Outbox,
) -> impl Future<Output = ()> + Send + 'static {
    // Not the session itself: it ends when nobody else holds it, and this with it.
    let (subscription, ended) = (Arc::clone(&session.subscription), session.ended());
    let forward = async move {
        while !outbox.is_closed() {
            let event = subscription.next().await;
            send(&outbox, message(event, None)).await;
        }
    };
    async move {
        ended.run_until_cancelled(forward).await;
    }
}

/// Adds a resource to what the session hears of.
pub(crate) fn subscribe(request: &Request<'_>, context: &Context) -> MethodResult {
    let params: ResourceRequestParams = request.parse_params()?;
    let Some(session) = &context.session else {
        return Ok(lifecycle::empty());
    };
    let added = session.subscription.update(|filter| {
        filter.uris.len() < MAX_URIS && {
            filter.uris.insert(params.uri);
            true
        }
    });
    if added {
        Ok(lifecycle::empty())
    } else {
        Err(too_many())
    }
}

/// Takes it away again.
pub(crate) fn unsubscribe(request: &Request<'_>, context: &Context) -> MethodResult {
    let params: ResourceRequestParams = request.parse_params()?;
    if let Some(session) = &context.session {
        session
            .subscription
            .update(|filter| filter.uris.remove(&params.uri));
    }
    Ok(lifecycle::empty())
}

fn filter(wanted: &SubscriptionFilter, watching: bool) -> Result<Filter, ErrorObject> {
    let uris = wanted.resource_subscriptions.clone().unwrap_or_default();
    if uris.len() > MAX_URIS {
        return Err(too_many());
    }
    Ok(Filter {
        tools: watching && wanted.tools_list_changed == Some(true),
        prompts: watching && wanted.prompts_list_changed == Some(true),
        resources: watching && wanted.resources_list_changed == Some(true),
        uris: uris.into_iter().collect(),
    })
}

fn honoured(filter: &Filter) -> SubscriptionFilter {
    let mut honoured = SubscriptionFilter::default();
    honoured.tools_list_changed = filter.tools.then_some(true);
    honoured.prompts_list_changed = filter.prompts.then_some(true);
    honoured.resources_list_changed = filter.resources.then_some(true);
    honoured.resource_subscriptions =
        (!filter.uris.is_empty()).then(|| filter.uris.iter().cloned().collect());
    honoured
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
    }
}

async fn send(outbox: &Outbox, message: Option<Bytes>) {
    if let Some(message) = message {
        // A closed outbox means that the client is gone; whoever owns it ends this.
        outbox.send(message).await.ok();
    }
}

fn too_many() -> ErrorObject {
    ErrorObject::invalid_params(format!(
        "a client may subscribe to {MAX_URIS} resources at most"
    ))
}
