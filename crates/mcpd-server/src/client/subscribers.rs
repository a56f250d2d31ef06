//! Subscriptions to changes: a set of pending events per subscriber, so that no event is lost and
//! repeated ones merge. Knows neither wires nor transports; they turn an [`Event`] into their
//! message.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use mcpd_scriptspec::uri::normalize_uri;
use tokio::sync::Notify;

use crate::remote::{Outlet, SharedEvent};
use crate::support::sync::lock;

/// Change that a client may subscribe to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The set of tools or a definition in it has changed.
    ToolsChanged,
    /// The set of prompts or a definition in it has changed.
    PromptsChanged,
    /// The resources or their templates have changed.
    ResourcesChanged,
    /// The content behind this URI may have changed.
    ResourceUpdated(String),
    /// The task with this id has changed its state.
    TaskChanged(String),
}

/// Events that a subscriber wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    /// Subscribed URIs in the client's spelling, by their normalized spelling.
    pub(crate) uris: BTreeMap<String, String>,
    pub(crate) tasks: BTreeSet<String>,
}

impl Event {
    /// Returns the event with its URI normalized.
    fn with_normalized_uri(&self) -> Cow<'_, Self> {
        match self {
            Self::ResourceUpdated(uri) => {
                Cow::Owned(Self::ResourceUpdated(normalize_uri(uri).into()))
            }
            _ => Cow::Borrowed(self),
        }
    }
}

impl Filter {
    /// Returns whether the filter covers an event whose URI is normalized.
    fn wants(&self, event: &Event) -> bool {
        match event {
            Event::ToolsChanged => self.tools,
            Event::PromptsChanged => self.prompts,
            Event::ResourcesChanged => self.resources,
            Event::ResourceUpdated(uri) => self.uris.contains_key(uri),
            Event::TaskChanged(id) => self.tasks.contains(id),
        }
    }
}

/// All subscribers of a server.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    members: Mutex<Members>,
    /// Outlet of what subscribers of other servers may want to know.
    pub(crate) outlet: Outlet,
    /// Events of other servers about sessions that may be here as well.
    #[cfg(feature = "http")]
    pub(crate) session_inlet: Outlet,
}

#[derive(Debug, Default)]
struct Members {
    next: u64,
    by_number: BTreeMap<u64, Arc<Mailbox>>,
    /// Load of each caller that is counted.
    counted: BTreeMap<Arc<str>, Load>,
}

/// Number of listeners, and the size of their subscriptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Load {
    listeners: usize,
    bytes: usize,
}

impl Load {
    /// Load of a subscription to one resource.
    fn of(uri: &str) -> Self {
        Self {
            listeners: 0,
            bytes: uri.len(),
        }
    }
}

/// Maximum load of one caller: its listeners, and the bytes of their subscriptions.
const MAX_LOAD: Load = Load {
    listeners: 4096,
    bytes: 16 * 1024 * 1024,
};

/// Events that one subscriber has not yet fetched. An event that is already pending is not added
/// again.
#[derive(Debug, Default)]
struct Mailbox {
    state: Mutex<MailboxState>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct MailboxState {
    filter: Filter,
    pending: BTreeSet<Event>,
}

impl MailboxState {
    /// Takes the first event that is still wanted.
    fn take_next(&mut self) -> Option<Event> {
        loop {
            let event = self.pending.pop_first()?;
            if self.filter.wants(&event.with_normalized_uri()) {
                return Some(event);
            }
        }
    }
}

impl Members {
    /// Adds load to the caller's, unless that exceeds the maximum. Returns whether it did.
    fn charge(&mut self, caller: &Arc<str>, more: Load) -> bool {
        let load = self.counted.get(caller).copied().unwrap_or_default();
        let load = Load {
            listeners: load.listeners + more.listeners,
            bytes: load.bytes + more.bytes,
        };
        let is_admitted = load.listeners <= MAX_LOAD.listeners && load.bytes <= MAX_LOAD.bytes;
        if is_admitted {
            self.counted.insert(Arc::clone(caller), load);
        }
        is_admitted
    }

    fn release(&mut self, caller: &Arc<str>, less: Load) {
        if let Some(load) = self.counted.get_mut(caller) {
            load.listeners -= less.listeners;
            load.bytes -= less.bytes;
            if *load == Load::default() {
                self.counted.remove(caller);
            }
        }
    }
}

impl Subscribers {
    /// Registers the listener of a session; from here on it misses no event of its filter. Later
    /// subscriptions to resources count against `caller`.
    pub(crate) fn subscribe(self: &Arc<Self>, caller: &Arc<str>, filter: Filter) -> Subscription {
        let mut members = lock(&self.members);
        self.add(&mut members, caller, filter, Load::default())
    }

    /// Registers one of any number of listeners of a caller; `None` if the caller has its maximum
    /// load.
    pub(crate) fn subscribe_for(
        self: &Arc<Self>,
        caller: &Arc<str>,
        filter: Filter,
    ) -> Option<Subscription> {
        let wanted = filter.uris.keys().chain(&filter.tasks);
        let load = Load {
            listeners: 1,
            bytes: wanted.map(String::len).sum(),
        };
        let mut members = lock(&self.members);
        let is_admitted = members.charge(caller, load);
        is_admitted.then(|| self.add(&mut members, caller, filter, load))
    }

    fn add(
        self: &Arc<Self>,
        members: &mut Members,
        caller: &Arc<str>,
        filter: Filter,
        load: Load,
    ) -> Subscription {
        let mailbox = Arc::new(Mailbox::default());
        lock(&mailbox.state).filter = filter;
        let number = members.next;
        members.next += 1;
        members.by_number.insert(number, Arc::clone(&mailbox));
        Subscription {
            number,
            mailbox,
            subscribers: Arc::clone(self),
            caller: Arc::clone(caller),
            load: Mutex::new(load),
        }
    }

    /// Adds `event` to the mailbox of every subscriber that wants it, and passes it on to other
    /// servers.
    pub(crate) fn publish(&self, event: &Event) {
        match event {
            Event::ResourceUpdated(uri) => self
                .outlet
                .pass(|| SharedEvent::ResourceUpdated { uri: uri.clone() }),
            Event::TaskChanged(task) => self
                .outlet
                .pass(|| SharedEvent::TaskChanged { task: task.clone() }),
            // Each server follows its own lists.
            Event::ToolsChanged | Event::PromptsChanged | Event::ResourcesChanged => {}
        }
        self.publish_here(event);
    }

    /// Adds `event` to the mailbox of every subscriber here that wants it.
    pub(crate) fn publish_here(&self, event: &Event) {
        let key = event.with_normalized_uri();
        for mailbox in lock(&self.members).by_number.values() {
            let mut state = lock(&mailbox.state);
            if state.filter.wants(&key) && state.pending.insert(event.clone()) {
                // Of several streams of one client, the newest is the one that it reads.
                mailbox.filled.notify_last();
            }
        }
    }

    /// Number of listeners.
    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.members).by_number.len()
    }
}

/// One listener; dropping it ends the subscription.
#[derive(Debug)]
pub(crate) struct Subscription {
    number: u64,
    mailbox: Arc<Mailbox>,
    subscribers: Arc<Subscribers>,
    caller: Arc<str>,
    /// Load that it counts with.
    load: Mutex<Load>,
}

impl Subscription {
    /// Waits for the next event; of several pending ones, the first in the order of [`Event`].
    ///
    /// # Cancel safety
    ///
    /// An event is taken only by the call that returns it.
    pub(crate) async fn next(&self) -> Event {
        loop {
            if let Some(event) = lock(&self.mailbox.state).take_next() {
                return event;
            }
            self.mailbox.filled.notified().await;
        }
    }

    /// Returns the event with its URI in the listener's spelling.
    pub(crate) fn respell(&self, event: Event) -> Event {
        let Event::ResourceUpdated(uri) = event else {
            return event;
        };
        let state = lock(&self.mailbox.state);
        let wanted = state.filter.uris.get(&*normalize_uri(&uri)).cloned();
        Event::ResourceUpdated(wanted.unwrap_or(uri))
    }

    /// Number of subscribed resources.
    pub(crate) fn resource_count(&self) -> usize {
        lock(&self.mailbox.state).filter.uris.len()
    }

    /// Subscribes to a resource as well. Returns false if that exceeds the caller's maximum load.
    pub(crate) fn add_resource(&self, uri: &str) -> bool {
        let mut members = lock(&self.subscribers.members);
        let uris = &mut lock(&self.mailbox.state).filter.uris;
        let key = normalize_uri(uri);
        if !uris.contains_key(&*key) {
            let more = Load::of(&key);
            if !members.charge(&self.caller, more) {
                return false;
            }
            lock(&self.load).bytes += more.bytes;
        }
        uris.insert(key.into_owned(), uri.to_owned());
        true
    }

    /// Unsubscribes from a resource.
    pub(crate) fn remove_resource(&self, uri: &str) {
        let mut members = lock(&self.subscribers.members);
        let key = normalize_uri(uri);
        let wanted = lock(&self.mailbox.state).filter.uris.remove(&*key);
        if wanted.is_some() {
            let less = Load::of(&key);
            lock(&self.load).bytes -= less.bytes;
            members.release(&self.caller, less);
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut members = lock(&self.subscribers.members);
        members.by_number.remove(&self.number);
        members.release(&self.caller, *lock(&self.load));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn lists() -> Filter {
        Filter {
            tools: true,
            ..Filter::default()
        }
    }

    #[tokio::test]
    async fn repeated_events_are_delivered_once() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(&"ada".into(), lists());
        subscribers.publish(&Event::ToolsChanged);
        subscribers.publish(&Event::ToolsChanged);
        assert_eq!(listener.next().await, Event::ToolsChanged);
        subscribers.publish(&Event::ResourcesChanged);
        subscribers.publish(&Event::ToolsChanged);
        assert_eq!(listener.next().await, Event::ToolsChanged);
        assert!(lock(&listener.mailbox.state).pending.is_empty());
    }

    #[test]
    fn listeners_of_a_caller_are_bounded() {
        let subscribers = Arc::new(Subscribers::default());
        let (ada, bob) = ("ada".into(), "bob".into());
        let uri = "x".repeat(MAX_LOAD.bytes / 2);
        let wanting = |uri: &str| Filter {
            uris: BTreeMap::from([(uri.to_owned(), uri.to_owned())]),
            ..Filter::default()
        };
        let first = subscribers.subscribe_for(&ada, wanting(&uri)).unwrap();
        let second = subscribers.subscribe_for(&ada, wanting(&uri));
        assert!(second.is_some());
        assert!(subscribers.subscribe_for(&ada, wanting("a")).is_none());
        assert!(subscribers.subscribe_for(&bob, wanting("a")).is_some());
        drop((first, second));
        let lists = || subscribers.subscribe_for(&ada, lists());
        let all: Vec<_> = (0..MAX_LOAD.listeners).map(|_| lists().unwrap()).collect();
        assert!(lists().is_none());
        drop(all);
        assert!(lists().is_some());
        assert!(lock(&subscribers.members).counted.is_empty());
    }

    #[tokio::test]
    async fn uri_is_reported_in_the_subscribed_spelling() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(&"ada".into(), Filter::default());
        // The second is not a path as it stands, but an embedding program may serve such a URI.
        for (wanted, published) in [("mcpd://%61/b", "mcpd://a/b"), ("mcpd://c?d", "mcpd://c?d")] {
            assert!(listener.add_resource(wanted));
            subscribers.publish(&Event::ResourceUpdated(published.to_owned()));
            let event = listener.next().await;
            assert_eq!(event, Event::ResourceUpdated(published.to_owned()));
            let told = listener.respell(event);
            assert_eq!(told, Event::ResourceUpdated(wanted.to_owned()));
        }
        listener.remove_resource("mcpd://a/%62");
        assert_eq!(listener.resource_count(), 1);
    }

    #[test]
    fn subscriptions_of_all_sessions_count_together() {
        let subscribers = Arc::new(Subscribers::default());
        let (ada, bob) = ("ada".into(), "bob".into());
        let session = |caller| subscribers.subscribe(caller, Filter::default());
        let uri = "x".repeat(MAX_LOAD.bytes);
        let (first, second, other) = (session(&ada), session(&ada), session(&bob));
        assert!(first.add_resource(&uri) && first.add_resource(&uri));
        assert!(!second.add_resource("a") && other.add_resource("a"));
        first.remove_resource(&uri);
        assert!(second.add_resource(&uri));
        drop(second);
        assert!(first.add_resource(&uri));
        drop((first, other));
        assert!(lock(&subscribers.members).counted.is_empty());
    }

    #[tokio::test]
    async fn removed_subscription_gets_no_event() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(&"ada".into(), lists());
        subscribers.publish(&Event::ToolsChanged);
        listener.add_resource("mcpd://a");
        for uri in ["mcpd://a", "mcpd://b"] {
            listener.add_resource(uri);
            subscribers.publish(&Event::ResourceUpdated(uri.to_owned()));
        }
        listener.remove_resource("mcpd://a");
        assert_eq!(listener.next().await, Event::ToolsChanged);
        let next = listener.next().await;
        assert_eq!(next, Event::ResourceUpdated("mcpd://b".to_owned()));
    }

    #[tokio::test]
    async fn newest_of_several_waiters_gets_the_event() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(&"ada".into(), lists());
        let mut first = Box::pin(listener.next());
        let mut last = Box::pin(listener.next());
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut last).now_or_never().is_none());
        subscribers.publish(&Event::ToolsChanged);
        assert_eq!(last.await, Event::ToolsChanged);
        assert!(first.now_or_never().is_none());
    }

    #[tokio::test]
    async fn filter_can_grow_and_dropped_listener_is_removed() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(&"ada".into(), Filter::default());
        assert!(listener.add_resource("mcpd://a/state"));
        subscribers.publish(&Event::ResourceUpdated("mcpd://b/state".to_owned()));
        subscribers.publish(&Event::ResourceUpdated("mcpd://a/state".to_owned()));
        assert_eq!(
            listener.next().await,
            Event::ResourceUpdated("mcpd://a/state".to_owned())
        );
        drop(listener);
        assert_eq!(subscribers.len(), 0);
    }
}
