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
}

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

impl Subscribers {
    /// Registers a listener; from here on no event of its filter is lost to it.
    pub(crate) fn subscribe(self: &Arc<Self>, filter: Filter) -> Subscription {
        let mailbox = Arc::new(Mailbox::default());
        lock(&mailbox.state).filter = filter;
        let mut members = lock(&self.members);
        let number = members.next;
        members.next += 1;
        members.by_number.insert(number, Arc::clone(&mailbox));
        Subscription {
            number,
            mailbox,
            subscribers: Arc::clone(self),
        }
    }

    /// Puts `event` into the mailbox of everybody who wants it.
    pub(crate) fn publish(&self, event: &Event) {
        for mailbox in lock(&self.members).by_number.values() {
            let mut state = lock(&mailbox.state);
            if state.filter.wants(event) && state.pending.insert(event.clone()) {
                mailbox.filled.notify_one();
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
}

impl Subscription {
    /// The next event, in the order of [`Event`] where several are pending.
    ///
    /// # Cancel safety
    ///
    /// An event is taken only by the call that returns it.
    pub(crate) async fn next(&self) -> Event {
        loop {
            if let Some(event) = lock(&self.mailbox.state).pending.pop_first() {
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
        lock(&self.subscribers.members)
            .by_number
            .remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
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
