//! Requests to the workers at which a front has runs, by whose answers it judges them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Action;
use crate::placement::InFlight;
use crate::presence::Moment;

/// Interval of the requests to a worker.
const PING: Duration = Duration::from_millis(250);

/// Times of the last requests.
#[derive(Debug, Default)]
pub(super) struct Pings(BTreeMap<String, Moment>);

impl Pings {
    pub(super) fn tick(&mut self, now: Moment, in_flight: &InFlight, actions: &mut Vec<Action>) {
        self.0.retain(|node, _| in_flight.contains_key(node));
        for node in in_flight.keys() {
            let last = self.0.entry(node.clone()).or_insert(now);
            if now.saturating_sub(*last) >= PING {
                *last = now;
                let node = node.clone();
                actions.push(Action::Ping { node });
            }
        }
    }
}
