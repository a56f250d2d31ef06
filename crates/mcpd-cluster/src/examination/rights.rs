//! Rights of a node at a server, tried out for each role.

use bytes::Bytes;
use serde::Serialize;

use crate::grants::Role;
use crate::node::probe::Probe;
use crate::settings::Settings;
use crate::wire::{Frame, Here, Kind, subject_prefix};

/// Rights of a node for one role.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RoleRights {
    /// Name of the role.
    pub role: &'static str,
    /// Subjects that it would have to send to, and may not.
    pub no_publish: Vec<String>,
    /// Subjects that it would have to hear, and may not.
    pub no_subscribe: Vec<String>,
}

impl RoleRights {
    /// Returns whether the node can have this role.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.no_publish.is_empty() && self.no_subscribe.is_empty()
    }
}

/// Trial of the rights.
pub(super) struct Trial<'a> {
    settings: &'a Settings,
    probe: &'a mut Probe,
    prefix: String,
}

impl<'a> Trial<'a> {
    pub(super) fn new(settings: &'a Settings, probe: &'a mut Probe) -> Self {
        let prefix = format!("{}.", subject_prefix(settings.cluster.as_str()));
        Self {
            settings,
            probe,
            prefix,
        }
    }

    pub(super) async fn try_roles(&mut self) -> Vec<RoleRights> {
        let mut all = Vec::new();
        for role in [Role::Worker, Role::Front, Role::Operator] {
            all.push(self.try_role(role).await);
        }
        all
    }

    async fn try_role(&mut self, role: Role) -> RoleRights {
        let node = &self.settings.node;
        let full = |subject: String| format!("{}{subject}", self.prefix);
        let publish: Vec<_> = role.publish(node).into_iter().map(full).collect();
        let inbox = format!("_INBOX.{node}.probe");
        let mut subscribe: Vec<_> = role.subscribe(node).into_iter().map(full).collect();
        subscribe.push(inbox.clone());
        for subject in &publish {
            let payload = self.payload(subject);
            self.probe.publish(self.concrete(subject), payload).await;
        }
        let mut subscribed = Vec::new();
        for subject in &subscribe {
            subscribed.push(self.probe.subscribe(subject.clone()).await);
        }
        self.probe.round_trip().await;
        for subscriber in subscribed.iter_mut().flatten() {
            subscriber.unsubscribe().await.ok();
        }
        let concrete = |subject: &str| self.concrete(subject);
        let all_of_inbox = |subject: String| match subject == inbox {
            true => format!("_INBOX.{node}.>"),
            false => subject,
        };
        RoleRights {
            role: role.name(),
            no_publish: publish
                .into_iter()
                .filter(|subject| self.probe.has_refused(&concrete(subject), false))
                .collect(),
            no_subscribe: subscribe
                .into_iter()
                .filter(|subject| self.probe.has_refused(subject, true))
                .map(all_of_inbox)
                .collect(),
        }
    }

    /// Returns a subject that a pattern matches, of a node that does not exist.
    fn concrete(&self, subject: &str) -> String {
        subject.replace('*', self.probe.nowhere())
    }

    /// Returns what is sent to a subject: nothing, which every node ignores; a presence has to be
    /// one, and says that this is neither a front nor a worker.
    fn payload(&self, subject: &str) -> Bytes {
        if !subject.contains(".here.") {
            return Bytes::new();
        }
        let here = Here::new(self.settings.node.as_str(), 0, Kind::Other);
        Frame::new(here, Bytes::new()).encode().unwrap_or_default()
    }

    /// Returns whether the server allows what no role needs: to hear the runs of all workers.
    pub(super) async fn is_open(&mut self) -> bool {
        let subject = format!("{}run.*", self.prefix);
        let subscribed = self.probe.subscribe(subject.clone()).await;
        self.probe.round_trip().await;
        if let Some(mut subscriber) = subscribed {
            subscriber.unsubscribe().await.ok();
        }
        !self.probe.has_refused(&subject, true)
    }
}
