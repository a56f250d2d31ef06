//! Who is told of changes: a set of pending events per subscriber, so nothing is lost and nothing
//! piles up. Knows neither wires nor transports; they turn an [`Event`] into their message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::sync::lock;

/// Something a client may want to hear of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The set of tools, or a definition in it, is another.
    ToolsChanged,
    /// The same for prompts.
    PromptsChanged,
    /// The same for resources and their templates.
    ResourcesChanged,
    /// The content behind this URI may be another.
    ResourceUpdated(String),
    /// The task of this id is doing otherwise.
    TaskChanged(String),
}

/// Which events a subscriber wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) uris: BTreeSet<String>,
    pub(crate) tasks: BTreeSet<String>,
}

impl Filter {
    fn wants(&self, event: &Event) -> bool {
        match event {
            Event::ToolsChanged => self.tools,
            Event::PromptsChanged => self.prompts,
            Event::ResourcesChanged => self.resources,
            Event::ResourceUpdated(uri) => self.uris.contains(uri),
            Event::TaskChanged(id) => self.tasks.contains(id),
        }
    }
}

/// Everybody who listens.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    members: Mutex<Members>,
}

#[derive(Debug, Default)]
struct Members {
    next: u64,
    by_number: BTreeMap<u64, Arc<Mailbox>>,
    /// How many there are of those who have been counted, and how much they want to hear of, in bytes.
    counted: BTreeMap<Arc<str>, Load>,
}

/// What listeners take.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    listeners: usize,
    bytes: usize,
}

/// How many listeners one caller may have, and how many bytes what they want to hear of may come to.
const MOST: Load = Load {
    listeners: 4096,
    bytes: 16 * 1024 * 1024,
};

/// What one subscriber has not yet fetched. An event that is already pending is not added again.
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
    /// The first event that is still wanted.
    fn next(&mut self) -> Option<Event> {
        loop {
            let event = self.pending.pop_first()?;
            if self.filter.wants(&event) {
                return Some(event);
            }
        }
    }
}

impl Subscribers {
    /// Registers a listener; from here on no event of its filter is lost to it.
    pub(crate) fn subscribe(self: &Arc<Self>, filter: Filter) -> Subscription {
        self.add(&mut lock(&self.members), filter, None)
    }

    /// The same for a caller that may come any number of times; `None` if it has as many listeners as it may.
    pub(crate) fn subscribe_for(
        self: &Arc<Self>,
        caller: &str,
        filter: Filter,
    ) -> Option<Subscription> {
        let wanted = filter.uris.iter().chain(&filter.tasks);
        let bytes = wanted.map(String::len).sum();
        let mut members = lock(&self.members);
        let load = members.counted.get(caller).copied().unwrap_or_default();
        let load = Load {
            listeners: load.listeners + 1,
            bytes: load.bytes + bytes,
        };
        if load.listeners > MOST.listeners || load.bytes > MOST.bytes {
            return None;
        }
        let caller: Arc<str> = caller.into();
        members.counted.insert(Arc::clone(&caller), load);
        Some(self.add(&mut members, filter, Some((caller, bytes))))
    }

    fn add(
        self: &Arc<Self>,
        members: &mut Members,
        filter: Filter,
        counted: Option<(Arc<str>, usize)>,
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
            counted,
        }
    }

    /// Puts `event` into the mailbox of everybody who wants it.
    pub(crate) fn publish(&self, event: &Event) {
        for mailbox in lock(&self.members).by_number.values() {
            let mut state = lock(&mailbox.state);
            if state.filter.wants(event) && state.pending.insert(event.clone()) {
                // Of several streams of one client the last is the one that it reads.
                mailbox.filled.notify_last();
            }
        }
    }

    /// How many listen now.
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
    /// Whose it is, and how many bytes it was counted with.
    counted: Option<(Arc<str>, usize)>,
}

impl Subscription {
    /// The next event, in the order of [`Event`] where several are pending.
    ///
    /// # Cancel safety
    ///
    /// An event is taken only by the call that returns it.
    pub(crate) async fn next(&self) -> Event {
        loop {
            if let Some(event) = lock(&self.mailbox.state).next() {
                return event;
            }
            self.mailbox.filled.notified().await;
        }
    }

    /// Changes what this listener wants from now on.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut Filter) -> T) -> T {
        change(&mut lock(&self.mailbox.state).filter)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut members = lock(&self.subscribers.members);
        members.by_number.remove(&self.number);
        if let Some((caller, bytes)) = &self.counted
            && let Some(load) = members.counted.get_mut(caller)
        {
            load.listeners -= 1;
            load.bytes -= bytes;
            if load.listeners == 0 {
                members.counted.remove(caller);
            }
        }
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
    async fn repeated_events_are_told_once() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(lists());
        subscribers.publish(&Event::ToolsChanged);
        subscribers.publish(&Event::ToolsChanged);
        assert_eq!(listener.next().await, Event::ToolsChanged);
        subscribers.publish(&Event::ResourcesChanged);
        subscribers.publish(&Event::ToolsChanged);
        assert_eq!(listener.next().await, Event::ToolsChanged);
        assert!(lock(&listener.mailbox.state).pending.is_empty());
    }

    #[test]
    fn a_caller_has_so_many_listeners_at_most() {
        let subscribers = Arc::new(Subscribers::default());
        let uri = "x".repeat(MOST.bytes / 2);
        let wanting = |uri: &str| Filter {
            uris: BTreeSet::from([uri.to_owned()]),
            ..Filter::default()
        };
        let first = subscribers.subscribe_for("ada", wanting(&uri)).unwrap();
        let second = subscribers.subscribe_for("ada", wanting(&uri));
        assert!(second.is_some());
        assert!(subscribers.subscribe_for("ada", wanting("a")).is_none());
        assert!(subscribers.subscribe_for("bob", wanting("a")).is_some());
        drop((first, second));
        let lists = || subscribers.subscribe_for("ada", lists());
        let all: Vec<_> = (0..MOST.listeners).map(|_| lists().unwrap()).collect();
        assert!(lists().is_none());
        drop(all);
        assert!(lists().is_some());
        assert!(lock(&subscribers.members).counted.is_empty());
    }

    #[tokio::test]
    async fn what_is_no_longer_wanted_is_not_told() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(lists());
        subscribers.publish(&Event::ToolsChanged);
        listener.update(|filter| (filter.tools, filter.prompts) = (false, true));
        subscribers.publish(&Event::PromptsChanged);
        assert_eq!(listener.next().await, Event::PromptsChanged);
    }

    #[tokio::test]
    async fn of_several_who_wait_the_last_is_told() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(lists());
        let mut first = Box::pin(listener.next());
        let mut last = Box::pin(listener.next());
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut last).now_or_never().is_none());
        subscribers.publish(&Event::ToolsChanged);
        assert_eq!(last.await, Event::ToolsChanged);
        assert!(first.now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_filter_can_grow_and_a_dropped_listener_is_forgotten() {
        let subscribers = Arc::new(Subscribers::default());
        let listener = subscribers.subscribe(Filter::default());
        listener.update(|filter| {
            filter.uris.insert("mcpd://a/state".to_owned());
        });
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
